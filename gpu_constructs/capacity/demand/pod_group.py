"""Pods of one spec that an object makes, how many, and what they take of GPUs as the scheduler counts it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from gpu_constructs.capacity.consumer import Pods
from gpu_constructs.capacity.gathered import grouped
from gpu_constructs.facts.app import most_at_once
from gpu_constructs.facts.readable import amounts, at, quantity, share
from gpu_constructs.kube.pod_specs import containers

IsGpu = Callable[[str], bool]
"""Whether a resource is GPUs."""


@dataclass(frozen=True, kw_only=True)
class PodGroup(Pods):
    """Pods of one spec that an object makes.

    Attributes:
        spec: The pod spec.
        annotations: Annotations of the pods.
        asks: GPUs that each takes, if the controller writes that itself; None: as the spec says.
    """

    spec: Mapping[str, Any]
    annotations: Mapping[str, Any] = field(default_factory=dict)
    asks: Mapping[str, int] | None = None


def update(
    rolling: Mapping[str, Any], copies: int, least_copies: int, *, surge: object = "25%", unavailable: object = "25%"
) -> dict[str, Any]:
    """Return how a rolling update goes on: the members ``surge``, ``surge_is_needed`` and ``notes`` of pods.

    Both are shares of the copies that run when the update comes, which may be few.
    """
    given = [rolling.get("maxSurge"), rolling.get("maxUnavailable")]
    extra = _first_share((given[0], surge), copies, up=True)
    gone = _first_share((given[1], unavailable), least_copies or copies, up=False)
    are_none = all(value is not None and share(value, 100, up=True) == 0 for value in given)
    notes = ("Kubernetes refuses it: maxSurge and maxUnavailable are both 0",) if are_none else ()
    rollout = {"surge": extra, "surge_is_needed": not gone} if extra and copies else {}
    return {**rollout, "notes": notes}


def _first_share(values: Iterable[object], of: int, *, up: bool) -> int | None:
    shares = (share(value, of, up=up) for value in values)
    return next((one for one in shares if one is not None), None)


def merged(base: Any, over: Any) -> Any:
    """Return a mapping with another laid over it, member by member; anything else is replaced."""
    if not isinstance(base, Mapping) or not isinstance(over, Mapping):
        return over
    return {**base, **{key: merged(base.get(key), value) for key, value in over.items()}}


def pods_of(template: object) -> dict[str, Any]:
    """Return the members ``spec``, ``labels`` and ``annotations`` that a pod template has."""
    return {
        "spec": at(template, "spec"),
        "labels": at(template, "metadata.labels"),
        "annotations": at(template, "metadata.annotations"),
    }


def leader_and_workers(leader: object, worker: object, size: int) -> list[tuple[str, object, int]]:
    """Return the parts of a group of pods, each with its template and how many of it are in the group.

    kubernetes-sigs/lws@v0.10.0:api/leaderworkerset/v1/leaderworkerset_types.go: without a template of its own the
    leader is as the workers are.
    """
    if not isinstance(leader, Mapping):
        return [("", worker, size)]
    return [("leader", leader, 1), ("worker", worker, size - 1)] if size > 1 else [("", leader, 1)]


def is_suspended(spec: Mapping[str, Any]) -> bool:
    """Check whether the object with this spec is suspended."""
    return spec.get("suspend") is True


def runs(spec: Mapping[str, Any], *, overlaps: bool) -> dict[str, Any]:
    """Return the members ``copies``, ``is_stopped`` and ``notes`` of what starts by a calendar."""
    stopped = is_suspended(spec)
    copies = 2 if overlaps and not stopped else 1
    notes = ("a run may start before the last one has ended: counted as two at a time",) if copies > 1 else ()
    return {"copies": copies, "is_stopped": stopped, "notes": notes}


def whole_set(copies: int, least: int) -> dict[str, Any]:
    """Return the members of an update that makes all of the new pods before any old one goes."""
    together = least or copies
    return {"surge": copies, "surge_is_needed": copies > 0, "surge_together": max(together, 1)}


def asked(container: Mapping[str, Any], is_gpu: IsGpu) -> dict[str, int]:
    """Return how many of each GPU resource a container asks for; an amount that is not a number counts as 1."""
    given = {**amounts(container, "requests"), **amounts(container, "limits")}
    known = ((resource, quantity(amount)) for resource, amount in given.items() if is_gpu(resource))
    # Kubernetes refuses parts of a GPU, and a placeholder stands for one at least.
    counts = ((resource, 1 if n is None or 0 < n < 1 else int(n)) for resource, n in known)
    return {resource: count for resource, count in counts if count > 0}


def most_asked(pod_spec: Mapping[str, Any], is_gpu: IsGpu) -> dict[str, int]:
    """Return the most of each GPU resource that one container of a pod asks for."""
    each = grouped(item for container in containers(pod_spec) for item in asked(container, is_gpu).items())
    return {resource: max(counts) for resource, counts in each.items()}


def pod_asks(pod_spec: Mapping[str, Any], is_gpu: IsGpu) -> dict[str, int]:
    """Return how many of each GPU resource the scheduler sets aside for a pod."""
    held = grouped(
        (resource, (id(container), Decimal(count)))
        for container in containers(pod_spec)
        for resource, count in asked(container, is_gpu).items()
    )
    return {resource: int(most_at_once(pod_spec, dict(each))) for resource, each in held.items()}
