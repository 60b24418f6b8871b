"""The pods that an object creates from one pod spec: how many exist, and how many GPUs each requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from gpu_constructs.capacity.consumer import Pods
from gpu_constructs.capacity.gathered import grouped
from gpu_constructs.facts.readable import amounts, at, quantity, share
from gpu_constructs.facts.release_workloads import IsGpu
from gpu_constructs.kube.pod_specs import containers, most_at_once
from gpu_constructs.records import dataclass, field


@dataclass(frozen=True, kw_only=True)
class PodGroup(Pods):
    """The pods that an object creates from one pod spec.

    Attributes:
        spec: Pod spec.
        annotations: Annotations of the pods.
        asks: Number of GPUs that a pod requests, by resource, if a controller such as KServe computes this number.
            None if the pod spec states it.
    """

    spec: Mapping[str, Any]
    annotations: Mapping[str, Any] = field(default_factory=dict)
    asks: Mapping[str, int] | None = None


def update(
    rolling: Mapping[str, Any], copies: int, least_copies: int, *, surge: object = "25%", unavailable: object = "25%"
) -> dict[str, Any]:
    """Return a dict with the attributes of ``Pods`` that state how many extra pods a rolling update creates.

    Args:
        rolling: Settings of the update in the object: ``maxSurge`` and ``maxUnavailable``, as numbers or percentages.
        copies: Largest number of copies of the object, such as replicas. Percentages in ``maxSurge`` refer to this
            number.
        least_copies: Smallest number of copies. Percentages in ``maxUnavailable`` refer to this number, or to
            ``copies`` if ``least_copies`` is 0.
        surge: Value of ``maxSurge`` if the object does not set it.
        unavailable: Value of ``maxUnavailable`` if the object does not set it.
    """
    given = [rolling.get("maxSurge"), rolling.get("maxUnavailable")]
    extra = _first_share((given[0], surge), copies, up=True)
    gone = _first_share((given[1], unavailable), least_copies or copies, up=False)
    are_none = all(value is not None and share(value, 100, up=True) == 0 for value in given)
    notes = ("Kubernetes rejects the object: maxSurge and maxUnavailable are both 0",) if are_none else ()
    rollout = {"surge": extra, "surge_is_needed": not gone} if extra and copies else {}
    return {**rollout, "notes": notes}


def _first_share(values: Iterable[object], of: int, *, up: bool) -> int | None:
    shares = (share(value, of, up=up) for value in values)
    return next((one for one in shares if one is not None), None)


def pods_of(template: object) -> dict[str, Any]:
    """Return the spec, labels and annotations of a pod template, as a dict of arguments of ``PodGroup``."""
    return {
        "spec": at(template, "spec"),
        "labels": at(template, "metadata.labels"),
        "annotations": at(template, "metadata.annotations"),
    }


def leader_and_workers(leader: object, worker: object, size: int) -> list[tuple[str, object, int]]:
    """Return a triple for each pod template of a group of one leader and its workers: name, template, number of pods.

    If ``leader`` is not a pod template, all pods use the template ``worker``. The name is ``leader`` or ``worker``;
    empty if the group has only one template. The number ``size`` counts the leader and the workers.

    Source:
        kubernetes-sigs/lws@v0.10.0:api/leaderworkerset/v1/leaderworkerset_types.go
    """
    if not isinstance(leader, Mapping):
        return [("", worker, size)]
    return [("leader", leader, 1), ("worker", worker, size - 1)] if size > 1 else [("", leader, 1)]


def is_suspended(spec: Mapping[str, Any]) -> bool:
    """Check whether a spec has ``suspend: true``."""
    return spec.get("suspend") is True


def runs(spec: Mapping[str, Any], *, overlaps: bool) -> dict[str, Any]:
    """Return attributes of ``Pods``, as a dict, for an object that starts Jobs on a schedule, such as a CronJob.

    Args:
        spec: Spec of the object.
        overlaps: Whether a Job may start before the previous Job ends. If True, the plan counts two Jobs at a time.
    """
    stopped = is_suspended(spec)
    copies = 2 if overlaps and not stopped else 1
    notes = ("a run may start before the previous one ends: the plan counts two at a time",) if copies > 1 else ()
    return {"copies": copies, "is_stopped": stopped, "notes": notes}


def whole_set(copies: int, least: int) -> dict[str, Any]:
    """Return attributes of ``Pods``, as a dict, for an update that creates a whole second set of pods.

    Args:
        copies: Largest number of copies (replicas).
        least: Number of new copies that must run before the update deletes an old pod. 0 means all new copies.
    """
    together = least or copies
    return {"surge": copies, "surge_is_needed": copies > 0, "surge_together": max(together, 1)}


def asked(container: Mapping[str, Any], is_gpu: IsGpu) -> dict[str, int]:
    """Return the number of GPUs that a container requests, as a dict by resource.

    The function ``is_gpu`` checks whether a resource stands for GPUs. An amount that is not a number counts as 1, for
    example the placeholder ``${trialParameters.gpus}`` in a Katib trial template.
    """
    given = {**amounts(container, "requests"), **amounts(container, "limits")}
    known = ((resource, quantity(amount)) for resource, amount in given.items() if is_gpu(resource))
    # Kubernetes rejects fractions of a GPU, and a placeholder stands for at least one.
    counts = ((resource, 1 if n is None or 0 < n < 1 else int(n)) for resource, n in known)
    return {resource: count for resource, count in counts if count > 0}


def most_asked(pod_spec: Mapping[str, Any], is_gpu: IsGpu) -> dict[str, int]:
    """Return the largest number of GPUs that one container of a pod requests, as a dict by resource.

    The function ``is_gpu`` checks whether a resource stands for GPUs.
    """
    each = grouped(item for container in containers(pod_spec) for item in asked(container, is_gpu).items())
    return {resource: max(counts) for resource, counts in each.items()}


def pod_asks(pod_spec: Mapping[str, Any], is_gpu: IsGpu) -> dict[str, int]:
    """Return the number of GPUs that the scheduler reserves for a pod, as a dict by resource.

    The number can be smaller than the sum over all containers, because containers can use the GPUs of init containers
    that have ended. The function ``is_gpu`` checks whether a resource stands for GPUs.
    """
    held = grouped(
        (resource, (id(container), Decimal(count)))
        for container in containers(pod_spec)
        for resource, count in asked(container, is_gpu).items()
    )
    return {resource: int(most_at_once(pod_spec, dict(each))) for resource, each in held.items()}
