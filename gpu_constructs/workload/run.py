"""What runs the pods of a workload, and the object around them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

from gpu_constructs.errors import GpuConstructsError, ShortErrors
from gpu_constructs.kube.fields import arguments, cron_schedule, of_type, one_of, whole_number
from gpu_constructs.workload.options import Strategy

Kind = Literal["Deployment", "StatefulSet", "Job", "CronJob", "Pod"]

_LEAST = {
    "replicas": 0,
    "completions": 1,
    "parallelism": 1,
    "backoff_limit": 0,
    "active_deadline_seconds": 1,
    "ttl_seconds_after_finished": 0,
}
_TIME_ZONE = re.compile(r"(?!local\Z)[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*\Z", re.IGNORECASE)
_CONDITIONS = ("onExitCodes", "onPodConditions")


@dataclass(frozen=True, kw_only=True)
class Run(metaclass=ShortErrors):
    """What runs the pods of a workload, with the settings that only this kind has.

    Made by ``Run.deployment(...)``, ``Run.stateful_set(...)``, ``Run.job(...)``, ``Run.cron_job(...)`` or
    ``Run.pod()``.

    Attributes:
        serves: Whether the pods run until they are stopped, instead of to their own end.
        longest_name: Length of the longest name. Kubernetes appends to it in a label or the name of a Job.

    Raises:
        GpuConstructsError: A setting is out of range.
    """

    deployment: ClassVar[type[Deployment]]
    stateful_set: ClassVar[type[StatefulSet]]
    job: ClassVar[type[Job]]
    cron_job: ClassVar[type[CronJob]]
    pod: ClassVar[type[Pod]]

    api_version: ClassVar[str] = "v1"
    serves: ClassVar[bool] = False
    longest_name: ClassVar[int] = 63
    _service: ClassVar[bool | None] = None

    def __post_init__(self) -> None:
        given = {member.name: getattr(self, member.name) for member in fields(self)}
        for name, number in given.items():
            if name in _LEAST and (number is not None or name in ("replicas", "completions", "backoff_limit")):
                whole_number(name, number, minimum=_LEAST[name])
        arguments(type(self).__init__, given)
        self._check()

    def _check(self) -> None:
        """Check what the types of the settings do not say."""

    @property
    def kind(self) -> str:
        """Kind of the object, after which the class is called."""
        return type(self).__name__

    @property
    def pods_at_once(self) -> int:
        """Number of pods that run at the same time."""
        return 1

    @property
    def has_budget(self) -> bool:
        """Whether the pods get a PodDisruptionBudget."""
        return False

    def has_service(self, ports: Mapping[str, int]) -> bool:
        """Check whether the pods get a Service: by default if they have ports."""
        return bool(ports) if self._service is None else self._service

    def manifest(
        self,
        metadata: Mapping[str, Any],
        pod_spec: Mapping[str, Any],
        *,
        selector: Mapping[str, str],
        pod_annotations: Mapping[str, str] | None = None,
        volume_claim_templates: Sequence[Mapping[str, Any]] = (),
    ) -> dict[str, Any]:
        """Return the object around a pod; its labels go on the pods too."""
        template = {
            "metadata": {"labels": metadata["labels"], "annotations": pod_annotations or None},
            "spec": pod_spec,
        }
        spec = self._spec(template, selector)
        if self.kind == "StatefulSet":
            spec |= {"serviceName": metadata["name"], "volumeClaimTemplates": list(volume_claim_templates) or None}
        return {"apiVersion": self.api_version, "kind": self.kind, "metadata": metadata, "spec": spec}

    def _spec(self, template: Mapping[str, Any], selector: Mapping[str, str]) -> dict[str, Any]:
        return dict(template["spec"])


@dataclass(frozen=True, kw_only=True)
class Pod(Run):
    """A bare Pod, which nothing starts again: ``Run.pod()``."""


@dataclass(frozen=True, kw_only=True)
class _Serving(Run):
    api_version = "apps/v1"
    serves = True

    replicas: int = 1
    strategy: Strategy | None = None
    pod_disruption_budget: bool | None = None

    def _check(self) -> None:
        if self.strategy is not None:
            self.strategy.to_manifest(self.kind)
        if self.pod_disruption_budget and self.replicas < 2:
            raise GpuConstructsError(
                f"pod_disruption_budget=True needs two replicas or more, got {self.replicas}: of a single pod it would "
                "block every drain of its node"
            )

    @property
    def pods_at_once(self) -> int:
        return self.replicas

    @property
    def has_budget(self) -> bool:
        return self.replicas >= 2 if self.pod_disruption_budget is None else self.pod_disruption_budget

    def _spec(self, template: Mapping[str, Any], selector: Mapping[str, str]) -> dict[str, Any]:
        return {"replicas": self.replicas, "selector": {"matchLabels": dict(selector)}, "template": template}


@dataclass(frozen=True, kw_only=True)
class Deployment(_Serving):
    """Pods that serve and are all alike: ``Run.deployment(...)``.

    Attributes:
        replicas: Number of pods. 1 by default, where cdk8s-plus has 2: each holds its own GPUs.
        strategy: How pods are replaced. None: ``Recreate`` for one replica, else one after the other without surge; a
            surge waits for a GPU that may never be free.
        pod_disruption_budget: Whether only one pod may be missing when nodes are drained. None: for two replicas or
            more; of one replica it would block every drain, so True is refused there.
    """

    def _spec(self, template: Mapping[str, Any], selector: Mapping[str, str]) -> dict[str, Any]:
        # An update never needs a GPU that the old pods still hold: a single pod is stopped before its successor
        # starts, of several one at a time.
        strategy = self.strategy or (Strategy.recreate() if self.replicas <= 1 else Strategy.rolling_update())
        return {**super()._spec(template, selector), "strategy": strategy.to_manifest(self.kind)}


@dataclass(frozen=True, kw_only=True)
class StatefulSet(_Serving):
    """Pods that serve, each with a name and disks of its own: ``Run.stateful_set(...)``.

    Attributes:
        replicas: Number of pods, 1 by default.
        strategy: How pods are replaced. None: as Kubernetes does.
        pod_disruption_budget: Whether only one pod may be missing when nodes are drained, as of a Deployment.
        pod_management_policy: ``Parallel`` starts all pods at once, as training over nodes needs it.
    """

    longest_name = 52
    # A headless one, which gives the pods their names.
    _service = True

    pod_management_policy: Literal["OrderedReady", "Parallel"] | None = None

    def _spec(self, template: Mapping[str, Any], selector: Mapping[str, str]) -> dict[str, Any]:
        return {
            **super()._spec(template, selector),
            "podManagementPolicy": self.pod_management_policy,
            "updateStrategy": self.strategy.to_manifest(self.kind) if self.strategy else None,
        }


@dataclass(frozen=True, kw_only=True)
class Job(Run):
    """Pods that run to their end: ``Run.job(...)``.

    Attributes:
        completions: Pods that must succeed; more than one are numbered (``JOB_COMPLETION_INDEX``).
        completion_mode: ``Indexed`` or ``NonIndexed``. None: indexed for more than one.
        parallelism: Pods at once; all of them by default.
        backoff_limit: Retries of the pods; 2 where Kubernetes has 6, since each holds a GPU again.
        pod_failure_policy: Which failures count, and which end the Job at once, in the form of Kubernetes.
        active_deadline_seconds: Time after which the Job is stopped. None: never.
        ttl_seconds_after_finished: Time after which a finished Job is deleted. None: never, since GitOps tools would
            start a deleted one again.
        suspend: Whether nothing starts until this is set to false, as Kueue does.
    """

    api_version = "batch/v1"
    # Nothing sends requests to pods that end.
    _service = False

    completions: int = 1
    completion_mode: Literal["Indexed", "NonIndexed"] | None = None
    parallelism: int | None = None
    backoff_limit: int = 2
    pod_failure_policy: Mapping[str, Any] | None = None
    active_deadline_seconds: int | None = None
    ttl_seconds_after_finished: int | None = None
    suspend: bool = False

    def _check(self) -> None:
        if self.pods_at_once > self.completions:
            raise GpuConstructsError(
                f"parallelism must be at most completions, which are {self.completions}; got {self.parallelism}"
            )
        if self.pod_failure_policy is not None:
            _check_failure_policy(self.pod_failure_policy)

    @property
    def pods_at_once(self) -> int:
        """Number of pods that run at the same time."""
        return self.completions if self.parallelism is None else self.parallelism

    def _spec(self, template: Mapping[str, Any], selector: Mapping[str, str]) -> dict[str, Any]:
        return {
            "activeDeadlineSeconds": self.active_deadline_seconds,
            "backoffLimit": self.backoff_limit,
            # Numbered, so that each pod knows its part.
            "completionMode": self.completion_mode or ("Indexed" if self.completions > 1 else None),
            "completions": self.completions if self.completions > 1 or self.completion_mode == "Indexed" else None,
            "parallelism": self.pods_at_once if self.pods_at_once > 1 else None,
            "podFailurePolicy": self.pod_failure_policy,
            "suspend": self.suspend or None,
            "template": template,
            "ttlSecondsAfterFinished": self.ttl_seconds_after_finished,
        }


@dataclass(frozen=True, kw_only=True)
class CronJob(Job):
    """A Job at certain times, with all settings of a Job: ``Run.cron_job(schedule=...)``.

    Attributes:
        schedule: Times in cron's five fields or as ``@daily`` and its like.
        time_zone: Time zone of the schedule, like ``Europe/Berlin``. None: that of the cluster's control plane.
        concurrency_policy: ``Forbid`` by default: two of its Jobs at once would both want the GPU.
    """

    longest_name = 52

    schedule: str
    time_zone: str | None = None
    concurrency_policy: Literal["Allow", "Forbid", "Replace"] = "Forbid"

    def _check(self) -> None:
        super()._check()
        cron_schedule("schedule", self.schedule)
        if self.time_zone is not None and not _TIME_ZONE.match(self.time_zone):
            raise GpuConstructsError(f"time_zone must be a name like 'Europe/Berlin'; got {self.time_zone!r}")

    def _spec(self, template: Mapping[str, Any], selector: Mapping[str, str]) -> dict[str, Any]:
        return {
            "concurrencyPolicy": self.concurrency_policy,
            "failedJobsHistoryLimit": 1,
            "jobTemplate": {"spec": {**super()._spec(template, selector), "suspend": None}},
            "schedule": self.schedule,
            "successfulJobsHistoryLimit": 1,
            "suspend": self.suspend or None,
            "timeZone": self.time_zone,
        }


def _check_failure_policy(policy: Mapping[str, Any]) -> None:
    """Check the first levels of a policy for the form of Kubernetes."""
    if not policy.get("rules") or len(policy) > 1:
        raise GpuConstructsError(f"pod_failure_policy must hold 'rules' alone, with at least one; got {dict(policy)!r}")
    of_type("pod_failure_policy['rules']", policy["rules"], Sequence[Mapping[str, Any]])
    for index, rule in enumerate(policy["rules"]):
        field = f"pod_failure_policy['rules'][{index}]"
        for key in rule:
            one_of(f"{field} key", key, ("action", *_CONDITIONS))
        one_of(f"{field}['action']", rule.get("action"), ("FailJob", "Ignore", "Count"))
        if sum(condition in rule for condition in _CONDITIONS) != 1:
            raise GpuConstructsError(f"{field} must hold either 'onExitCodes' or 'onPodConditions'; got {dict(rule)!r}")


Run.deployment, Run.stateful_set, Run.pod = Deployment, StatefulSet, Pod
Run.job, Run.cron_job = Job, CronJob

SETTINGS: Mapping[str, str] = {
    member.name: f"Run.{factory}({member.name}=...)"
    for factory, made in (
        ("cron_job", CronJob),
        ("job", Job),
        ("stateful_set", StatefulSet),
        ("deployment", Deployment),
    )
    for member in fields(made)
}
"""Where each setting of a controller is given."""


def run_of(kind: Kind, run: Run | None) -> Run:
    """Return what runs the pods: ``run``, or the kind with its defaults.

    Raises:
        GpuConstructsError: Both are given and differ, or a kind that needs a setting.
    """
    if run is not None:
        if kind not in ("Deployment", run.kind):
            raise GpuConstructsError(f"kind and run must not both be given; got {kind!r} and run of a {run.kind}")
        return run
    if kind == "CronJob":
        raise GpuConstructsError("kind 'CronJob' needs a schedule; pass run=Run.cron_job(schedule='0 3 * * *')")
    factories: Mapping[Kind, type[Run]] = {"Deployment": Deployment, "StatefulSet": StatefulSet, "Job": Job, "Pod": Pod}
    return factories[kind]()
