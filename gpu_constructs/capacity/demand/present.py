"""The objects of an app that the capacity plan counts.

The plan counts each object once. It omits objects that have ended, and objects that another object of the app creates.
The module also finds objects of unknown kinds that request GPUs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpu_constructs.capacity.consumer import Condition
from gpu_constructs.capacity.demand.app_objects import App
from gpu_constructs.capacity.demand.copies import is_known, makes_pods
from gpu_constructs.facts.app import Facts
from gpu_constructs.facts.readable import Manifest, mapping, members, name_of, namespace_of, quantity
from gpu_constructs.kube.kinds import BUILT_IN_GROUPS, group_of

_ENDED = frozenset({"Complete", "Completed", "Failed", "Succeeded"})
# The plan knows all built-in kinds that create pods. Objects of the other groups limit or describe what pods use.
_NO_PODS = BUILT_IN_GROUPS | {
    "constraints.gatekeeper.sh",
    "karpenter.sh",
    "kueue.x-k8s.io",
    "kyverno.io",
    "nfd.k8s-sigs.io",
    "nvidia.com",
    "policies.kyverno.io",
    "scheduling.run.ai",
    "scheduling.volcano.sh",
    "scheduling.x-k8s.io",
}
_AMOUNTS = frozenset({"limits", "requests"})
_WORDS = frozenset({"annotations", "labels", "matchLabels", "nodeSelector"})
_MOST_OWNERS = 10
_DEEPEST = 60


def present(app: App) -> dict[int, bool]:
    """Return the index of each object that the plan counts, with True if the app contains the same object twice.

    Of two objects with the same kind, namespace and name, the first one counts.
    """
    first: dict[tuple[str, str, str, object], int] = {}
    found: dict[int, bool] = {}
    for index, (kind, manifest) in enumerate(zip(app.facts.kinds, app.facts.objects, strict=True)):
        name = manifest["metadata"].get("name")
        kept = first.setdefault((*kind, namespace_of(manifest), name), index) if isinstance(name, str) else index
        if kept != index:
            found.update({kept: True} if kept in found else {})
        elif not _has_ended(kind, manifest) and not _is_owned(manifest, app):
            found[index] = False
    return found


def _has_ended(kind: tuple[str, str], manifest: Manifest) -> bool:
    """Check whether the status of an object states that its pods have ended."""
    status = mapping(manifest.get("status"))
    if kind == ("", "Pod"):
        return status.get("phase") in ("Failed", "Succeeded")
    return any(
        str(one.get("type")) in _ENDED and one.get("status") == "True" for one in members(status.get("conditions"))
    )


def _is_owned(manifest: Manifest, app: App, depth: int = 0) -> bool:
    """Check whether the plan already counts the pods of the object, because another object of the app creates it."""
    namespace = namespace_of(manifest)
    for owner in members(manifest["metadata"].get("ownerReferences")):
        if owner.get("controller") is not True:
            continue
        kind = (group_of(str(owner.get("apiVersion"))), str(owner.get("kind")))
        index = app.index_of(*kind, owner.get("name"), namespace)
        if index is not None:
            other: Mapping[str, Any] = app.facts.objects[index]
            return makes_pods(kind) or (depth < _MOST_OWNERS and _is_owned(other, app, depth + 1))
    return False


def uncounted(facts: Facts) -> list[Condition]:
    """Return a condition for each object that requests GPUs and whose number of pods the plan does not know.

    A condition is a clause that follows "fits, if" in the report.

    Args:
        facts: Manifests of the app, and facts that the library derives from them.
    """
    app = App(facts)
    each = ((facts.kinds[index], facts.objects[index]) for index in present(app))
    asking = (
        (kind, one, ", ".join(dict.fromkeys(_resources({**one, "metadata": None, "status": None}, app))))
        for (group, kind), one in each
        if group not in _NO_PODS and not is_known(one)
    )
    return [
        Condition(
            f"there is room for {kind} {namespace_of(one)}/{name_of(one)}, which requests {resources}: the plan "
            "does not know this kind and does not count it",
            "declare fewer GPUs in the inventory, to leave room for it",
        )
        for kind, one, resources in asking
        if resources
    ]


def _resources(value: Any, app: App, *, are_amounts: bool = False, depth: int = 0) -> Iterator[str]:
    """Yield the names of GPU resources in a manifest, at any depth."""
    if depth > _DEEPEST:
        return
    if isinstance(value, list):
        for member in value:
            yield from _resources(member, app, depth=depth + 1)
    if not isinstance(value, Mapping):
        return
    # A SparkApplication requests GPUs for its executors with the keys "name" and "quantity".
    if isinstance(value.get("name"), str) and "quantity" in value and app.is_gpu(value["name"]):
        yield value["name"]
    for key, member in value.items():
        if isinstance(member, Mapping | list):
            if key not in _WORDS:
                yield from _resources(member, app, are_amounts=key in _AMOUNTS, depth=depth + 1)
        elif isinstance(key, str) and app.is_gpu(key):
            amount = quantity(member)
            # An amount that is not a number is a parameter, but only in a section of amounts.
            if are_amounts if amount is None else amount > 0:
                yield key
