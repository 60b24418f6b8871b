"""Checks of the container runtime, and of the objects in the synthesized manifests (``--plan``)."""

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
# Objects that stay in the cluster: the cluster deletes finished Jobs and Pods.
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
    users += [(pod, spec(pod)) for pod in view.gpu_pods]
    for one, name in ((one, pod_spec.get("runtimeClassName")) for one, pod_spec in users):
        if name and name not in known and not metadata(one).get("ownerReferences"):
            yield Problem(title(one), f'its pods name the RuntimeClass "{name}", which does not exist')


@check
def runtime_handler(view: View) -> Iterator[Problem]:
    """Yield a problem for each GPU node whose container runtime lacks the handler of an NVIDIA RuntimeClass."""
    classes = [one.get("handler") for one in view.all("RuntimeClass") if metadata(one)["name"] in view.gpu_classes]
    for node in view.gpu_nodes:
        names = [known.get("name") for known in status(node).get("runtimeHandlers") or ()]
        missing = [handler for handler in classes if names and handler not in names]
        yield from (Problem(title(node), f'the container runtime has no handler "{one}"') for one in missing)
    yield from _by_events(view, _NO_HANDLER)


@check
def cdi_devices(view: View) -> Iterator[Problem]:
    """Return a problem for each Pending pod whose container runtime does not find a CDI device."""
    return _by_events(view, _NO_DEVICE)


def _by_events(view: View, pattern: re.Pattern[str]) -> Iterator[Problem]:
    """Yield a problem for each Pending GPU pod that has an event whose message matches a pattern.

    Args:
        view: Objects of the cluster.
        pattern: Regular expression that matches a part of the message.
    """
    for pod in (pod for pod in view.gpu_pods if status(pod).get("phase") == "Pending"):
        if found := next(filter(pattern.search, view.messages(pod)), None):
            yield Problem(title(pod), shortened(found))


def talos_release(view: View, node: Manifest) -> tuple[int, ...]:
    """Return the Talos release of a node, such as ``(1, 12)``. Return an empty tuple if the node states no release."""
    found = re.search(r"v(\d+)\.(\d+)", view.os_image(node))
    return (int(found[1]), int(found[2])) if found else ()


def strategies(manifest: Manifest) -> set[str]:
    """Return the device list strategies of a device plugin, from its arguments and from ``DEVICE_LIST_STRATEGY``."""
    found: set[str] = set()
    for pod_spec in pod_specs(manifest):
        found |= variable(pod_spec, "DEVICE_LIST_STRATEGY")
        words = [word for one in containers(pod_spec) for word in (*one.get("command", ()), *one.get("args", ()))]
        found |= {str(word).partition("=")[2] for word in words if str(word).startswith("--device-list-strategy=")}
    return found


@check
def cdi_strategy(view: View) -> Iterator[Problem]:
    """Return a problem for each device plugin that uses CDI although a node runs a Talos release before 1.13."""
    old = [view.os_image(node) for node in view.talos if () < talos_release(view, node) < _CDI_SINCE]
    used = ((one, name) for one in view.programs("device plugin") if old for name in strategies(one) if "cdi" in name)
    return (
        Problem(title(one), f"it uses the strategy {name}, which needs Talos 1.13, but a node runs {old[0]}")
        for one, name in used
    )


# --- the plan ----------------------------------------------------------------------------------------------------


@check
def plan_crds(view: View) -> Iterator[Problem]:
    """Return a problem for each custom resource kind in the synthesized manifests that the cluster does not know."""
    definitions = [*view.all("CustomResourceDefinition"), *view.planned_objects("CustomResourceDefinition")]
    known = {(spec(one).get("group"), (spec(one).get("names") or {}).get("kind")) for one in definitions}
    known |= {
        (group_of(one.get("apiVersion", "")), kind) for kind, those in view.snapshot.objects.items() for one in those
    }
    planned = {(group_of(one["apiVersion"]), one["kind"]) for one in view.planned_objects()}
    unknown = sorted(one for one in planned - known if one[0] not in BUILT_IN_GROUPS)
    reason = "the manifests of the plan have this kind, and the cluster does not know it"
    return (Problem(f"{kind}.{group}", reason) for group, kind in unknown)


@check
def plan_objects(view: View) -> Iterator[Problem]:
    """Return a problem for each synthesized DaemonSet, Deployment or other lasting object that the cluster lacks.

    The check ignores kinds such as Jobs, because finished Jobs can disappear from the cluster.
    """
    lasting = (one for one in view.planned_objects(*_LASTING) if one["kind"] in view.snapshot.objects)
    missing = (one for one in lasting if view.find(one["kind"], key(one)[1], key(one)[0]) is None)
    return (Problem(title(one), "the plan has this object, but the cluster does not") for one in missing)


@check
def plan_immutable(view: View) -> Iterator[Problem]:
    """Yield a problem for each object in the cluster whose synthesized manifest has a changed immutable field."""
    planned = ((one, view.find(one["kind"], key(one)[1], key(one)[0])) for one in view.planned_objects(*_IMMUTABLE))
    compared = [(one, live) for one, live in planned if live is not None]
    if not compared:
        raise NotLookedError("the cluster has none of the planned objects with an immutable field")
    for one, live in compared:
        wanted = {name: spec(one)[name] for name in _IMMUTABLE[one["kind"]] if name in spec(one)}
        if different := difference(wanted, spec(live), "spec"):
            yield Problem(title(one), f"{different} differs from the plan, and no update can change it")


def difference(wanted: Any, has: Any, path: str) -> str | None:
    """Return the path of the first field in ``wanted`` that is missing in ``has`` or differs there.

    Return None if there is no such field. The function ignores fields that are only in ``has``, and fields that are
    None, 0, False or an empty text in ``wanted``. Lists with different numbers of items differ.

    Args:
        wanted: Part of a synthesized manifest.
        has: The same part of the object in the cluster.
        path: Path of this part, such as ``spec``.
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
