"""Which objects of an app count: each once, and none whose pods another one makes or that has ended.

Also what asks for GPUs by objects of kinds that a plan knows nothing of.
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
# Of Kubernetes itself all that make pods are known; the others bound, divide or describe what pods take.
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
    """Return the objects that count, each by its index with whether it stands among the objects once more.

    Of one written twice it is the first, which is the app's own.
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
    status = mapping(manifest.get("status"))
    if kind == ("", "Pod"):
        return status.get("phase") in ("Failed", "Succeeded")
    return any(
        str(one.get("type")) in _ENDED and one.get("status") == "True" for one in members(status.get("conditions"))
    )


def _is_owned(manifest: Manifest, app: App, depth: int = 0) -> bool:
    """Check whether an object among these, whose pods are counted, has made another."""
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
    """Return a condition for each object that requests GPUs for a number of pods that is not known.

    Args:
        facts: The app.
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
            f"there is room for {kind} {namespace_of(one)}/{name_of(one)}, which asks for {resources} and is of a kind "
            "that is not known: not counted",
            "leave room for it in the inventory, by fewer GPUs than there are",
        )
        for kind, one, resources in asking
        if resources
    ]


def _resources(value: Any, app: App, *, are_amounts: bool = False, depth: int = 0) -> Iterator[str]:
    if depth > _DEEPEST:
        return
    if isinstance(value, list):
        for member in value:
            yield from _resources(member, app, depth=depth + 1)
    if not isinstance(value, Mapping):
        return
    # As Spark asks for GPUs of its executors.
    if isinstance(value.get("name"), str) and "quantity" in value and app.is_gpu(value["name"]):
        yield value["name"]
    for key, member in value.items():
        if isinstance(member, Mapping | list):
            if key not in _WORDS:
                yield from _resources(member, app, are_amounts=key in _AMOUNTS, depth=depth + 1)
        elif isinstance(key, str) and app.is_gpu(key):
            amount = quantity(member)
            # An amount that is not a number is a parameter, but only where amounts stand.
            if are_amounts if amount is None else amount > 0:
                yield key
