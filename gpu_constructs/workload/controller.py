"""What runs the pods: Deployment, StatefulSet, Job, CronJob or a bare Pod, as plain manifests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from gpu_constructs import _fields
from gpu_constructs.errors import GpuConstructsError

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

    def manifest(
        self, metadata: Mapping[str, Any], pod_spec: Mapping[str, Any], *, selector: Mapping[str, str]
    ) -> dict[str, Any]:
        """Give the object around a pod; its labels go on the pods too."""
        template = {"metadata": {"labels": metadata["labels"]}, "spec": pod_spec}
        specs: dict[Kind, Callable[[], Mapping[str, Any]]] = {
            "Deployment": lambda: self._deployment(template, selector),
            "StatefulSet": lambda: self._stateful_set(template, selector, metadata["name"]),
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
        one_by_one = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
        return {
            "replicas": self.replicas,
            "selector": {"matchLabels": dict(selector)},
            "strategy": {"type": "Recreate"} if self.replicas <= 1 else one_by_one,
            "template": template,
        }

    def _stateful_set(
        self, template: Mapping[str, Any], selector: Mapping[str, str], service_name: str
    ) -> dict[str, Any]:
        return {
            "replicas": self.replicas,
            "selector": {"matchLabels": dict(selector)},
            "serviceName": service_name,
            "template": template,
        }

    def _job(self, template: Mapping[str, Any]) -> dict[str, Any]:
        parallelism = self.completions if self.parallelism is None else self.parallelism
        return {
            "activeDeadlineSeconds": self.active_deadline_seconds,
            "backoffLimit": self.backoff_limit,
            # Numbered, so that each pod knows its part.
            "completionMode": "Indexed" if self.completions > 1 else None,
            "completions": self.completions if self.completions > 1 else None,
            "parallelism": parallelism if parallelism > 1 else None,
            "template": template,
            "ttlSecondsAfterFinished": self.ttl_seconds_after_finished,
        }

    def _cron_job(self, template: Mapping[str, Any]) -> dict[str, Any]:
        return {
            # Two of its Jobs at once would both want the GPU.
            "concurrencyPolicy": "Forbid",
            "failedJobsHistoryLimit": 1,
            "jobTemplate": {"spec": self._job(template)},
            "schedule": self.schedule,
            "successfulJobsHistoryLimit": 1,
        }
