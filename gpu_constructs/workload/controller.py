"""What runs the pods: Deployment, StatefulSet, Job, CronJob or a bare Pod, as plain manifests."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gpu_constructs import _fields
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.workload.strategy import Strategy

Kind = Literal["Deployment", "StatefulSet", "Job", "CronJob", "Pod"]

_API_VERSIONS: Mapping[Kind, str] = {
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
    "Pod": "v1",
}
_SERVING = ("Deployment", "StatefulSet")
_ENDING = ("Job", "CronJob")
_TIME_ZONE = re.compile(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*\Z")
_CONDITIONS = ("onExitCodes", "onPodConditions")


@dataclass(frozen=True, kw_only=True)
class Controller:
    """A kind and the settings that only some kinds have.

    Raises:
        GpuConstructsError: A setting is out of range or does not fit the kind.
    """

    kind: Kind
    replicas: int = 1
    completions: int = 1
    parallelism: int | None = None
    backoff_limit: int = 2
    active_deadline_seconds: int | None = None
    ttl_seconds_after_finished: int | None = None
    schedule: str | None = None
    strategy: Strategy | None = None
    pod_management_policy: Literal["OrderedReady", "Parallel"] | None = None
    completion_mode: Literal["Indexed", "NonIndexed"] | None = None
    pod_failure_policy: Mapping[str, Any] | None = None
    suspend: bool = False
    concurrency_policy: Literal["Allow", "Forbid", "Replace"] = "Forbid"
    time_zone: str | None = None

    def __post_init__(self) -> None:
        for field, minimum, default, kinds in (
            ("replicas", 0, 1, _SERVING),
            ("completions", 1, 1, _ENDING),
            ("parallelism", 1, None, _ENDING),
            ("backoff_limit", 0, 2, _ENDING),
            ("active_deadline_seconds", 1, None, _ENDING),
            ("ttl_seconds_after_finished", 0, None, _ENDING),
        ):
            value = getattr(self, field)
            if value is not None or default is not None:
                _fields.whole_number(field, value, minimum=minimum)
            if value != default:
                self._fits(field, kinds)
        if self.schedule is not None:
            self._fits("schedule", ("CronJob",))
            _fields.cron_schedule("schedule", self.schedule)
        elif self.kind == "CronJob":
            raise GpuConstructsError("schedule is required with kind 'CronJob'; got None, e.g. '0 3 * * *'")
        only_of: tuple[tuple[str, object, tuple[str, ...]], ...] = (
            ("strategy", None, _SERVING),
            ("pod_management_policy", None, ("StatefulSet",)),
            ("completion_mode", None, _ENDING),
            ("pod_failure_policy", None, _ENDING),
            ("suspend", False, _ENDING),
            ("concurrency_policy", "Forbid", ("CronJob",)),
            ("time_zone", None, ("CronJob",)),
        )
        for field, unset, allowed in only_of:
            if getattr(self, field) != unset:
                self._fits(field, allowed)
        if self.parallelism is not None and self.parallelism > self.completions:
            raise GpuConstructsError(
                f"parallelism must be at most completions, which are {self.completions}; got {self.parallelism}"
            )
        if self.strategy is not None:
            self.strategy.to_manifest(self.kind)
        if self.time_zone is not None and (self.time_zone.lower() == "local" or not _TIME_ZONE.match(self.time_zone)):
            raise GpuConstructsError(f"time_zone must be a name like 'Europe/Berlin'; got {self.time_zone!r}")
        if self.pod_failure_policy is not None:
            _check_failure_policy(self.pod_failure_policy)

    def _fits(self, field: str, kinds: tuple[str, ...]) -> None:
        if self.kind not in kinds:
            raise GpuConstructsError(f"{field} needs kind {' or '.join(map(repr, kinds))}; got {self.kind!r}")

    @property
    def serves(self) -> bool:
        """Whether its pods run until they are stopped, rather than to their own end."""
        return self.kind in _SERVING

    @property
    def longest_name(self) -> int:
        """How long its name may be, leaving room for what Kubernetes appends in a label or a Job's name."""
        return 52 if self.kind in ("CronJob", "StatefulSet") else 63

    def has_service(self, ports: Mapping[str, int]) -> bool:
        """Whether it gets a Service: a StatefulSet always, what ends never, the rest where it has ports."""
        return self.kind == "StatefulSet" or (bool(ports) and self.kind not in _ENDING)

    @property
    def pods_at_once(self) -> int:
        """How many of its pods run at the same time."""
        if self.serves:
            return self.replicas
        return self.completions if self.parallelism is None else self.parallelism

    def has_budget(self, wanted: bool | None) -> bool:
        """Whether its pods get a PodDisruptionBudget.

        Raises:
            GpuConstructsError: It is wanted for a single pod, whose node could then never be drained.
        """
        if wanted and (not self.serves or self.replicas < 2):
            raise GpuConstructsError(
                "pod_disruption_budget=True needs two replicas or more, got "
                f"{self.replicas if self.serves else self.kind}: of a single pod it would block every drain of its node"
            )
        return self.serves and self.replicas >= 2 if wanted is None else wanted

    def manifest(
        self,
        metadata: Mapping[str, Any],
        pod_spec: Mapping[str, Any],
        *,
        selector: Mapping[str, str],
        pod_annotations: Mapping[str, str] | None = None,
        volume_claim_templates: Sequence[Mapping[str, Any]] = (),
    ) -> dict[str, Any]:
        """Give the object around a pod; its labels go on the pods too."""
        template = {
            "metadata": {"labels": metadata["labels"], "annotations": pod_annotations or None},
            "spec": pod_spec,
        }
        specs: dict[Kind, Callable[[], Mapping[str, Any]]] = {
            "Deployment": lambda: self._deployment(template, selector),
            "StatefulSet": lambda: {
                **self._stateful_set(template, selector, metadata["name"]),
                "volumeClaimTemplates": list(volume_claim_templates) or None,
            },
            "Job": lambda: self._job(template),
            "CronJob": lambda: self._cron_job(template),
            "Pod": lambda: pod_spec,
        }
        return {
            "apiVersion": _API_VERSIONS[self.kind],
            "kind": self.kind,
            "metadata": metadata,
            "spec": specs[self.kind](),
        }

    def _deployment(self, template: Mapping[str, Any], selector: Mapping[str, str]) -> dict[str, Any]:
        # An update never needs a GPU that the old pods still hold: a single pod is stopped before its successor
        # starts, of several one at a time.
        strategy = self.strategy or (Strategy.recreate() if self.replicas <= 1 else Strategy.rolling_update())
        return {
            "replicas": self.replicas,
            "selector": {"matchLabels": dict(selector)},
            "strategy": strategy.to_manifest("Deployment"),
            "template": template,
        }

    def _stateful_set(
        self, template: Mapping[str, Any], selector: Mapping[str, str], service_name: str
    ) -> dict[str, Any]:
        return {
            "podManagementPolicy": self.pod_management_policy,
            "replicas": self.replicas,
            "selector": {"matchLabels": dict(selector)},
            "serviceName": service_name,
            "template": template,
            "updateStrategy": self.strategy.to_manifest("StatefulSet") if self.strategy else None,
        }

    def _job(self, template: Mapping[str, Any]) -> dict[str, Any]:
        parallelism = self.completions if self.parallelism is None else self.parallelism
        return {
            "activeDeadlineSeconds": self.active_deadline_seconds,
            "backoffLimit": self.backoff_limit,
            # Numbered, so that each pod knows its part.
            "completionMode": self.completion_mode or ("Indexed" if self.completions > 1 else None),
            "completions": self.completions if self.completions > 1 or self.completion_mode == "Indexed" else None,
            "parallelism": parallelism if parallelism > 1 else None,
            "podFailurePolicy": self.pod_failure_policy,
            "suspend": self.suspend or None,
            "template": template,
            "ttlSecondsAfterFinished": self.ttl_seconds_after_finished,
        }

    def _cron_job(self, template: Mapping[str, Any]) -> dict[str, Any]:
        return {
            # Two of its Jobs at once would both want the GPU.
            "concurrencyPolicy": self.concurrency_policy,
            "failedJobsHistoryLimit": 1,
            "jobTemplate": {"spec": {**self._job(template), "suspend": None}},
            "schedule": self.schedule,
            "successfulJobsHistoryLimit": 1,
            "suspend": self.suspend or None,
            "timeZone": self.time_zone,
        }


def _check_failure_policy(policy: Mapping[str, Any]) -> None:
    """Refuse a policy whose first levels are not as Kubernetes writes them."""
    if not policy.get("rules") or len(policy) > 1:
        raise GpuConstructsError(f"pod_failure_policy must hold 'rules' alone, with at least one; got {dict(policy)!r}")
    _fields.of_type("pod_failure_policy['rules']", policy["rules"], Sequence[Mapping[str, Any]])
    for index, rule in enumerate(policy["rules"]):
        field = f"pod_failure_policy['rules'][{index}]"
        for key in rule:
            _fields.one_of(f"{field} key", key, ("action", *_CONDITIONS))
        _fields.one_of(f"{field}['action']", rule.get("action"), ("FailJob", "Ignore", "Count"))
        if sum(condition in rule for condition in _CONDITIONS) != 1:
            raise GpuConstructsError(f"{field} must hold either 'onExitCodes' or 'onPodConditions'; got {dict(rule)!r}")
