"""`Run`: the kind of the object that runs the pods of a workload, such as a Deployment or a Job, and its settings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from gpu_constructs.errors import GpuConstructsError, ShortErrors
from gpu_constructs.kube.fields import arguments, cron_schedule, of_type, one_of, whole_number
from gpu_constructs.records import dataclass, fields, regex
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
_TIME_ZONE = regex(r"(?!local\Z)[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*\Z", re.IGNORECASE)
_CONDITIONS = ("onExitCodes", "onPodConditions")


@dataclass(frozen=True, kw_only=True)
class Run(metaclass=ShortErrors):
    """The object that runs the pods of a workload, such as a Deployment or a Job, with its settings.

    Create it with ``Run.deployment(...)``, ``Run.stateful_set(...)``, ``Run.job(...)``, ``Run.cron_job(...)`` or
    ``Run.pod()``.

    Attributes:
        serves: Whether the pods run until you delete them. True for a Deployment or StatefulSet.
        longest_name: Largest number of characters in the name of the object. The limit is below 63 for a StatefulSet
            and a CronJob, because Kubernetes appends a suffix to the name for some labels and objects.

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
        """Raise an error if a setting has the right type but a value that is not allowed."""

    @property
    def kind(self) -> str:
        """Kind of the Kubernetes object, such as ``Deployment``."""
        return type(self).__name__

    @property
    def pods_at_once(self) -> int:
        """Number of pods that run at the same time."""
        return 1

    @property
    def has_budget(self) -> bool:
        """Whether the workload gets a PodDisruptionBudget, which limits how many of its pods a drain can stop."""
        return False

    def has_service(self, ports: Mapping[str, int]) -> bool:
        """Check whether the workload gets a Service.

        A StatefulSet always gets one, a Job or CronJob never. Other kinds get a Service if their container has ports.
        """
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
        """Return the manifest of the object that runs the pods. The pods get the labels of the object.

        Args:
            metadata: Metadata of the object.
            pod_spec: Spec of the pods.
            selector: Labels that identify the pods, for ``spec.selector``.
            pod_annotations: Annotations of the pods. None: no annotations.
            volume_claim_templates: PersistentVolumeClaims for each pod of a StatefulSet.
        """
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
    """A bare Pod, which no controller replaces or moves to another node: ``Run.pod()``."""


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
                f"pod_disruption_budget=True needs two replicas or more, got {self.replicas}: for a single pod, it "
                "would block every drain of its node"
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
    """Pods that run until you delete them and that are all alike: ``Run.deployment(...)``.

    Attributes:
        replicas: Number of pods. The default is 1, not 2 as in cdk8s-plus, because each pod needs its own GPUs.
        strategy: Update strategy. None: ``Recreate`` for one replica, ``Strategy.rolling_update()`` for several. With
            both, an old pod stops before a new one starts, so that no new pod waits for the GPU of an old one.
        pod_disruption_budget: Whether a PodDisruptionBudget lets drains of nodes stop only one pod at a time. None:
            True for two replicas or more. For one replica, True is an error, because the budget would block each drain.
    """

    def _spec(self, template: Mapping[str, Any], selector: Mapping[str, str]) -> dict[str, Any]:
        # An update never needs a GPU that an old pod still holds. A single pod stops before the new one starts.
        # Several pods stop and start one at a time.
        strategy = self.strategy or (Strategy.recreate() if self.replicas <= 1 else Strategy.rolling_update())
        return {**super()._spec(template, selector), "strategy": strategy.to_manifest(self.kind)}


@dataclass(frozen=True, kw_only=True)
class StatefulSet(_Serving):
    """Pods that run until you delete them, each with its own name and disks: ``Run.stateful_set(...)``.

    Attributes:
        replicas: Number of pods, 1 by default.
        strategy: Update strategy. None: the default of Kubernetes.
        pod_disruption_budget: Whether a PodDisruptionBudget lets drains of nodes stop only one pod at a time. None:
            True for two replicas or more.
        pod_management_policy: Order in which the pods start. ``Parallel`` starts all pods at once, as a training over
            several nodes needs. None: one after the other, the default of Kubernetes.
    """

    longest_name = 52
    # The pods get their DNS names from the headless Service.
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
    """Pods that end when they finish their work: ``Run.job(...)``.

    Attributes:
        completions: Number of pods that must succeed.
        completion_mode: ``Indexed`` or ``NonIndexed``. With ``Indexed``, each pod has an index
            (``JOB_COMPLETION_INDEX``). None: ``Indexed`` if ``completions`` is above 1.
        parallelism: Number of pods that run at once. None: ``completions``.
        backoff_limit: Number of retries. The default is 2, not 6 as in Kubernetes, because each retry needs the GPUs
            again.
        pod_failure_policy: Rules that decide which failures end the Job and which failures do not count, as in the
            Kubernetes API.
        active_deadline_seconds: Time after which Kubernetes stops the Job, in seconds. None: never.
        ttl_seconds_after_finished: Time after which Kubernetes deletes the finished Job, in seconds. None: never,
            because GitOps tools would create the Job again.
        suspend: Whether the Job waits until a user or a queue such as Kueue sets this to False.
    """

    api_version = "batch/v1"
    # The pods of a Job receive no requests, so they need no Service.
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
                f"parallelism must be at most completions, that is {self.completions}, got {self.parallelism}"
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
            # A pod uses its index to find its share of the work.
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
    """A Job that starts on a schedule, with all settings of a Job: ``Run.cron_job(schedule=...)``.

    Attributes:
        schedule: Schedule in the five fields of cron, or a macro such as ``@daily``.
        time_zone: Time zone of the schedule, such as ``Europe/Berlin``. None: the time zone of the control plane.
        concurrency_policy: What happens if the previous Job still runs at the scheduled time. ``Forbid`` by default,
            because both Jobs would need the GPUs.
    """

    longest_name = 52

    schedule: str
    time_zone: str | None = None
    concurrency_policy: Literal["Allow", "Forbid", "Replace"] = "Forbid"

    def _check(self) -> None:
        super()._check()
        cron_schedule("schedule", self.schedule)
        if self.time_zone is not None and not _TIME_ZONE.match(self.time_zone):
            raise GpuConstructsError(f"time_zone must be a name like 'Europe/Berlin', got {self.time_zone!r}")

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
    """Raise an error unless a pod failure policy of a Job has a valid structure.

    The function checks the keys and the actions of the rules, but not the content of their conditions.
    """
    if not policy.get("rules") or len(policy) > 1:
        raise GpuConstructsError(
            f"pod_failure_policy must contain only 'rules', with at least one, got {dict(policy)!r}"
        )
    of_type("pod_failure_policy['rules']", policy["rules"], Sequence[Mapping[str, Any]])
    for index, rule in enumerate(policy["rules"]):
        field = f"pod_failure_policy['rules'][{index}]"
        for key in rule:
            one_of(f"{field} key", key, ("action", *_CONDITIONS))
        one_of(f"{field}['action']", rule.get("action"), ("FailJob", "Ignore", "Count"))
        if sum(condition in rule for condition in _CONDITIONS) != 1:
            raise GpuConstructsError(
                f"{field} must contain either 'onExitCodes' or 'onPodConditions', got {dict(rule)!r}"
            )


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
"""Text for error messages: the method of ``Run`` and the keyword that set each setting."""


def run_of(kind: Kind, run: Run | None) -> Run:
    """Return the option ``run``. If ``run`` is None, return a ``Run`` of ``kind`` with the default settings.

    Raises:
        GpuConstructsError: ``kind`` is neither the default (``Deployment``) nor the kind of ``run``. Also raised for
            ``CronJob`` without ``run``, because a CronJob needs a schedule.
    """
    if run is not None:
        if kind not in ("Deployment", run.kind):
            raise GpuConstructsError(
                f"kind and run must not both have a value, got kind={kind!r} and run=Run(...) of the kind {run.kind}"
            )
        return run
    if kind == "CronJob":
        raise GpuConstructsError("kind 'CronJob' needs a schedule. Pass run=Run.cron_job(schedule='0 3 * * *')")
    factories: Mapping[Kind, type[Run]] = {"Deployment": Deployment, "StatefulSet": StatefulSet, "Job": Job, "Pod": Pod}
    return factories[kind]()
