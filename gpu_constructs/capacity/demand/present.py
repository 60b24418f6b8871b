"""Which objects of an app count: each once, and none whose pods another one makes or that has ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpu_constructs._kinds import group_of
from gpu_constructs.capacity.demand.app_objects import App
from gpu_constructs.capacity.demand.copies import makes_pods
from gpu_constructs.capacity.demand.pod_group import mapping, members
from gpu_constructs.rules.facts import Manifest, namespace_of

_ENDED = frozenset({"Complete", "Completed", "Failed", "Succeeded"})
_DEEPEST = 10


@dataclass(frozen=True)
class Present:
    """Objects that count.

    Attributes:
        indexes: Of the objects, in their order.
        repeated: Those of them that stand among the objects once more.
    """

    indexes: tuple[int, ...]
    repeated: frozenset[int]


def present(app: App) -> Present:
    """Give the objects that count: of one written twice the first, which is the app's own."""
    first: dict[tuple[str, str, str, object], int] = {}
    found, repeated = [], set()
    for index, (kind, manifest) in enumerate(zip(app.facts.kinds, app.facts.objects, strict=True)):
        name = mapping(manifest.get("metadata")).get("name")
        if isinstance(name, str):
            kept = first.setdefault((*kind, namespace_of(manifest), name), index)
            if kept != index:
                repeated.add(kept)
                continue
        if not _has_ended(kind, manifest) and not _is_owned(manifest, app):
            found.append(index)
    return Present(tuple(found), frozenset(repeated))


def _has_ended(kind: tuple[str, str], manifest: Manifest) -> bool:
    status = mapping(manifest.get("status"))
    if kind == ("", "Pod"):
        return status.get("phase") in ("Failed", "Succeeded")
    return any(
        str(one.get("type")) in _ENDED and one.get("status") == "True" for one in members(status.get("conditions"))
    )


def _is_owned(manifest: Manifest, app: App, depth: int = 0) -> bool:
    """Tell whether an object among these, whose pods are counted, has made another."""
    namespace = namespace_of(manifest)
    for owner in members(mapping(manifest.get("metadata")).get("ownerReferences")):
        if owner.get("controller") is not True:
            continue
        kind = (group_of(str(owner.get("apiVersion"))), str(owner.get("kind")))
        index = app.index_of(*kind, owner.get("name"), namespace)
        if index is not None:
            other: Mapping[str, Any] = app.facts.objects[index]
            return makes_pods(kind) or (depth < _DEEPEST and _is_owned(other, app, depth + 1))
    return False
