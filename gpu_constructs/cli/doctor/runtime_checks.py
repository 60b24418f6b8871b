"""Checks of the container runtime, and of the objects that the plan has and the cluster lacks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpu_constructs.cli.doctor.checking import NotLookedError, Problem, check, shortened
from gpu_constructs.cli.doctor.snapshot import Manifest
from gpu_constructs.cli.doctor.view import View, key, metadata, spec, status, title, variable
from gpu_constructs.kube.kinds import BUILT_IN_GROUPS, group_of
from gpu_constructs.kube.pod_specs import containers, pod_specs

_NO_HANDLER = re.compile(r'no runtime for "[^"]*" is configured')
_NO_DEVICE = re.compile("unresolvable CDI devices|CDI device injection failed", re.IGNORECASE)
_CDI_SINCE = (1, 13)
# Objects that stay in the cluster: finished Jobs and Pods can be gone.
_LASTING = ("Namespace", "RuntimeClass", "DaemonSet", "Deployment", "StatefulSet", "PriorityClass")
# kubernetes/kubernetes@v1.36.2:pkg/apis/batch/validation, pkg/apis/apps/validation: fields that no update can change.
_IMMUTABLE = {
    "Job": ("template", "selector", "completions"),
    "Deployment": ("selector",),
    "DaemonSet": ("selector",),
    "StatefulSet": ("selector", "serviceName"),
}


@check
def runtimeclass(view: View) -> Iterator[Problem]:
    """Yield a problem for each object whose pods name a RuntimeClass that does not exist."""
    known = {metadata(one)["name"] for one in view.all("RuntimeClass")}
    users = [*view.controllers(programs=True), *view.controllers(programs=False)]
    users += [(pod, spec(pod)) for pod in (*view.program_pods(), *view.workloads)]
    for one, pod_spec in users:
        name = pod_spec.get("runtimeClassName")
        if name and name not in known and not metadata(one).get("ownerReferences"):
            yield Problem(title(one), f'its pods name the RuntimeClass "{name}", which does not exist')


@check
def runtime_handler(view: View) -> Iterator[Problem]:
    """Yield a problem for each GPU node whose container runtime does not know a handler."""
    for one in view.all("RuntimeClass"):
        handler = one.get("handler")
        for node in view.gpu_nodes if metadata(one)["name"] in view.gpu_classes else ():
            names = [known.get("name") for known in status(node).get("runtimeHandlers") or ()]
            if names and handler not in names:
                yield Problem(title(node), f'the container runtime has no handler "{handler}"')
    for pod in (*view.program_pods(), *view.workloads):
        yield from _by_events(view, pod, _NO_HANDLER)


@check
def cdi_devices(view: View) -> Iterator[Problem]:
    """Yield a problem for each pod that waits because the runtime does not find a CDI device."""
    for pod in (*view.program_pods(), *view.workloads):
        yield from _by_events(view, pod, _NO_DEVICE)


def _by_events(view: View, pod: Manifest, pattern: re.Pattern[str]) -> Iterator[Problem]:
    """Yield a problem if an event of a pod that does not run has a message that a pattern matches."""
    found = next((message for message in view.messages(pod) if pattern.search(message)), None)
    if found and status(pod).get("phase") == "Pending":
        yield Problem(title(pod), shortened(found))


def talos_release(view: View, node: Manifest) -> tuple[int, ...]:
    """Return the release of Talos on a node, such as ``(1, 12)``."""
    found = re.search(r"v(\d+)\.(\d+)", view.os_image(node))
    return (int(found[1]), int(found[2])) if found else ()


def strategies(manifest: Manifest) -> set[str]:
    """Return the device list strategies of a device plugin, from its arguments and known words of its environment."""
    found: set[str] = set()
    for pod_spec in pod_specs(manifest):
        found |= variable(pod_spec, "DEVICE_LIST_STRATEGY")
        words = [word for one in containers(pod_spec) for word in (*one.get("command", ()), *one.get("args", ()))]
        found |= {str(word).partition("=")[2] for word in words if str(word).startswith("--device-list-strategy=")}
    return found


@check
def cdi_strategy(view: View) -> Iterator[Problem]:
    """Yield a problem for each device plugin that uses CDI on a release of Talos without support for it."""
    old = [node for node in view.talos if () < talos_release(view, node) < _CDI_SINCE]
    for one in view.programs("device plugin") if old else ():
        if used := sorted(name for name in strategies(one) if "cdi" in name):
            yield Problem(
                title(one), f"it uses the strategy {used[0]}, and {title(old[0])} runs {view.os_image(old[0])}"
            )


# --- the plan ----------------------------------------------------------------------------------------------------


@check
def plan_crds(view: View) -> Iterator[Problem]:
    """Yield a problem for each kind in the plan that no custom resource definition of the cluster defines."""
    known = {(spec(one).get("group"), (spec(one).get("names") or {}).get("kind")) for one in _definitions(view)}
    planned = view.plan.manifests if view.plan else ()
    for group, kind in sorted({(group_of(one["apiVersion"]), one["kind"]) for one in planned}):
        if group not in BUILT_IN_GROUPS and (group, kind) not in known:
            yield Problem(
                f"{kind}.{group}", "the manifests of the plan have this kind, and the cluster does not know it"
            )


def _definitions(view: View) -> list[Manifest]:
    ours = view.plan.manifests if view.plan else ()
    return [*view.all("CustomResourceDefinition"), *(one for one in ours if one["kind"] == "CustomResourceDefinition")]


@check
def plan_objects(view: View) -> Iterator[Problem]:
    """Yield a problem for each lasting object of the plan that the cluster does not have."""
    for one in view.plan.manifests if view.plan else ():
        kind, (namespace, name) = one["kind"], key(one)
        if kind in _LASTING and kind in view.snapshot.objects and view.find(kind, name, namespace) is None:
            yield Problem(title(one), "the plan has this object, and the cluster does not")


@check
def plan_immutable(view: View) -> Iterator[Problem]:
    """Yield a problem for each object whose difference from the plan the API server refuses to apply."""
    compared = 0
    for one in view.plan.manifests if view.plan else ():
        namespace, name = key(one)
        live = view.find(one["kind"], name, namespace) if one["kind"] in _IMMUTABLE else None
        compared += live is not None
        for path in _IMMUTABLE[one["kind"]] if live else ():
            if path in spec(one) and (different := difference(spec(one)[path], spec(live or {}).get(path), path)):
                yield Problem(title(one), f"spec.{different} differs from the plan, and no update can change it")
                break
    if not compared:
        raise NotLookedError("the cluster has no object of the plan with such a field")


def difference(wanted: Any, has: Any, path: str) -> str | None:
    """Return the path of the first field that an object lacks or that differs; None if all wanted fields are equal.

    Fields that only the object in the cluster has do not count, because the API server adds its defaults.
    """
    if isinstance(wanted, Mapping):
        inside = has if isinstance(has, Mapping) else {}
        found = (difference(value, inside.get(name), f"{path}.{name}") for name, value in wanted.items())
        return next(filter(None, found), None)
    if isinstance(wanted, Sequence) and not isinstance(wanted, str):
        members = has if isinstance(has, list) else []
        if len(members) != len(wanted):
            return path
        pairs = enumerate(zip(wanted, members, strict=True))
        return next(filter(None, (difference(one, other, f"{path}[{at}]") for at, (one, other) in pairs)), None)
    return path if str(wanted) != str(has) and wanted not in (None, "", 0, False) else None
