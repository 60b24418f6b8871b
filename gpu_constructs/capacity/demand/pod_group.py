"""Pods of one spec that an object makes, and how many."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

OVERLAPS = "a run may start before the last one has ended: counted as two at a time"

_PERCENT = re.compile(r"([0-9]{1,9})%\Z")


@dataclass(frozen=True, kw_only=True)
class PodGroup:
    """Pods of one spec that an object makes.

    Attributes:
        spec: The pod spec.
        labels: Of the pods.
        annotations: Of the pods.
        asks: What each takes of GPUs, where the controller writes that itself; None: as the spec says.
        part: As in :class:`~gpu_constructs.capacity.consumer.Consumer`, like all that follow.
        copies: See there.
        least_copies: See there.
        pods_each: See there.
        surge: See there.
        surge_is_needed: See there.
        surge_together: See there.
        is_gang: See there. What starts or is replaced as a whole is one copy, so that its parts have as many.
        starts_with: See there.
        is_stopped: See there.
        is_for_each_node: See there.
        notes: See there.
    """

    spec: Mapping[str, Any]
    labels: Mapping[str, Any] = field(default_factory=dict)
    annotations: Mapping[str, Any] = field(default_factory=dict)
    asks: Mapping[str, int] | None = None
    part: str = ""
    copies: int = 1
    least_copies: int = 0
    pods_each: int = 1
    surge: int = 0
    surge_is_needed: bool = False
    surge_together: int = 1
    is_gang: bool = False
    starts_with: int | None = None
    is_stopped: bool = False
    is_for_each_node: bool = False
    notes: tuple[str, ...] = ()


def mapping(value: object) -> Mapping[str, Any]:
    """Give a mapping as it is, anything else as an empty one."""
    return value if isinstance(value, Mapping) else {}


def members(value: object) -> list[Mapping[str, Any]]:
    """Give the mappings of a list; of anything else none."""
    return [member for member in value if isinstance(member, Mapping)] if isinstance(value, list) else []


def number(value: object, default: int) -> int:
    """Give a whole number from 0 on; the default where it is none."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return max(value, 0) if isinstance(value, int) and not isinstance(value, bool) else default


def share(value: object, of: int, *, up: bool) -> int | None:
    """Give what a number or a percentage comes to; None where it is neither."""
    percent = _PERCENT.match(value) if isinstance(value, str) else None
    if percent is None:
        given = number(value, -1)
        return None if given < 0 else given
    hundredths = int(percent[1]) * of
    return -(-hundredths // 100) if up else hundredths // 100


def update(
    rolling: Mapping[str, Any], copies: int, least: int, *, surge: object = "25%", unavailable: object = "25%"
) -> dict[str, Any]:
    """Give how a rolling update goes on: the members ``surge``, ``surge_is_needed`` and ``notes`` of pods.

    Both are shares of the copies that run when the update comes, which may be few.
    """
    given = [rolling.get("maxSurge"), rolling.get("maxUnavailable")]
    asked = [surge if given[0] is None else given[0], unavailable if given[1] is None else given[1]]
    extra = share(asked[0], copies, up=True)
    extra = share(surge, copies, up=True) if extra is None else extra
    running = least or copies
    gone = share(asked[1], running, up=False)
    gone = share(unavailable, running, up=False) if gone is None else gone
    notes = ("Kubernetes refuses it: maxSurge and maxUnavailable are both 0",) if _are_none(given) else ()
    if not extra or not copies:
        return {"notes": notes}
    return {"surge": extra, "surge_is_needed": not gone, "notes": notes}


def _are_none(given: Iterable[object]) -> bool:
    return all(value is not None and share(value, 100, up=True) == 0 for value in given)


def merged(base: Any, over: Any) -> Any:
    """Give a mapping with another laid over it, member by member; anything else is replaced."""
    if not isinstance(base, Mapping) or not isinstance(over, Mapping):
        return over
    return {**base, **{key: merged(base.get(key), value) for key, value in over.items()}}


def pods_of(template: object) -> dict[str, Any]:
    """Give the members ``spec``, ``labels`` and ``annotations`` that a pod template has."""
    metadata = mapping(mapping(template).get("metadata"))
    return {
        "spec": mapping(mapping(template).get("spec")),
        "labels": mapping(metadata.get("labels")),
        "annotations": mapping(metadata.get("annotations")),
    }


def leader_and_workers(leader: object, worker: object, size: int) -> list[tuple[str, object, int]]:
    """Give the parts of a group of pods, each with its template and how many of it are in the group.

    kubernetes-sigs/lws@v0.10.0:api/leaderworkerset/v1/leaderworkerset_types.go: without a template of its own the
    leader is as the workers are.
    """
    if not isinstance(leader, Mapping):
        return [("", worker, size)]
    return [("leader", leader, 1), ("worker", worker, size - 1)] if size > 1 else [("", leader, 1)]


def is_suspended(spec: Mapping[str, Any]) -> bool:
    """Tell whether somebody suspended what has this spec."""
    return spec.get("suspend") is True


def runs(spec: Mapping[str, Any], *, overlaps: bool) -> dict[str, Any]:
    """Give the members ``copies``, ``is_stopped`` and ``notes`` of what starts by a calendar."""
    stopped = is_suspended(spec)
    meets = overlaps and not stopped
    return {"copies": 2 if meets else 1, "is_stopped": stopped, "notes": (OVERLAPS,) if meets else ()}


def whole_set(copies: int, least: int) -> dict[str, Any]:
    """Give the members of an update that makes all of the new pods before any old one goes."""
    together = least or copies
    return {"surge": copies, "surge_is_needed": copies > 0, "surge_together": max(together, 1)}
