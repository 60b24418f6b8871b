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
from gpu_constructs.facts.readable import Manifest, mapping, members, name_of, namespace_of
from gpu_constructs.facts.release_workloads import ReleaseWorkloads, gpus_named
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
_MOST_OWNERS = 10
_WAY_OUT = "declare fewer GPUs in the inventory, to leave room for it"


def present(app: App) -> dict[int, bool]:
    """Return a dict whose keys are the indices of the objects whose pods the plan counts.

    A value is True if the app contains another object with the same kind, namespace and name. The plan counts only the
    first of these objects.
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
    """Check whether another object of the app creates this object, so that the plan must not count its pods twice.

    Args:
        manifest: Object to check.
        app: Objects of the app.
        depth: Number of owner references that led to this object; 0 by default. The search stops at 10 references.
    """
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
    """Return a condition for each object whose pods request GPUs, but whose number of pods the plan does not know.

    A condition is a clause that follows "fits, if" in the report of the capacity plan.

    Args:
        facts: Manifests of the app, and data that the library derives from them.
    """
    app = App(facts)
    releases = {one.index for one in facts.releases}
    found = []
    for index in present(app):
        one, (group, kind) = facts.objects[index], facts.kinds[index]
        if index not in releases and group not in _NO_PODS and not is_known(one) and (names := _resources(one, app)):
            named = f"{kind} {namespace_of(one)}/{name_of(one)}"
            reason = "the plan does not know this kind and does not count it"
            found.append(Condition(f"there is room for {named}, which requests {names}: {reason}", _WAY_OUT))
    return [*found, *(condition for one in facts.releases for condition in _of_release(one, app))]


def _of_release(one: ReleaseWorkloads, app: App) -> Iterator[Condition]:
    """Yield the conditions under which the capacity plan is right about the GPUs that a Helm release requests.

    Yield a condition for each Helm value that requests GPUs, if the library does not know how many pods the Helm chart
    creates from this value. Yield another condition if a GPU workload of the release gets Helm values from objects that
    the plan does not read, for example from a Secret.

    Args:
        one: Helm release and the workloads that its Helm chart creates.
        app: Objects of the user's app.
    """
    release, manifest = one.release, app.facts.objects[one.index]
    named = f"{manifest['kind']} {namespace_of(manifest)}/{name_of(manifest)}"
    for path, resource in one.uncounted(app.is_gpu):
        yield Condition(
            f"there is room for the pods of {named} that request {resource} at {path}: the plan cannot count the pods "
            f"that chart {release.chart!r} creates from this value",
            _WAY_OUT,
        )
    if release.unread and any(next(gpus_named(each.pod, app.is_gpu), None) for each in one.workloads):
        yield Condition(
            f"the values that {named} reads through {release.unread}, and that the plan does not read, leave its GPU "
            "requests unchanged",
            "write these values into the object itself",
        )


def _resources(manifest: Manifest, app: App) -> str:
    """Return the names of the GPU resources that a manifest requests, separated by commas; empty if it has none."""
    asking = {**manifest, "metadata": None, "status": None}
    return ", ".join(dict.fromkeys(name for _, name in gpus_named(asking, app.is_gpu)))
