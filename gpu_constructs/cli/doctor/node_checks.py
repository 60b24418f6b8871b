"""Checks of GPU nodes and their NVIDIA drivers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpu_constructs.cli.doctor.checking import NotLookedError, Problem, check, shortened
from gpu_constructs.cli.doctor.snapshot import Manifest
from gpu_constructs.cli.doctor.view import View, condition, labels, metadata, offered, spec, title

_EXTENSION = "extensions.talos.dev/"
_MODULES = re.compile(r"(nvidia-open-gpu-kernel-modules|nonfree-kmod-nvidia)(-\w+)?$")
_TOOLKIT = re.compile(r"nvidia-container-toolkit(-\w+)?$")
_BRANCH = re.compile(r"-(lts|production)$")
_DEPLOY, _DRIVER = "nvidia.com/gpu.deploy.driver", "nvidia.com/cuda.driver-version.full"
# siderolabs/talos@v1.13.0:internal/integration/api/extensions_nvidia.go
_SERVICES = {"ext-nvidia-persistenced": "Running", "ext-nvidia-cdi-gen": "Finished"}


@check
def node_found(view: View) -> Iterator[Problem]:
    """Yield a problem if no node has a GPU, and for each node of the capacity plan that is not in the cluster."""
    if not view.gpu_nodes:
        yield Problem("", f"none of the {len(view.nodes)} nodes has a sign of an NVIDIA GPU")
    names = (one.get("title") for one in view.planned_nodes if one.get("count") == 1)
    missing = (name for name in names if name not in view.nodes)
    yield from (Problem(f"Node {name}", "the plan contains this node, but the cluster does not") for name in missing)


@check
def node_ready(view: View) -> Iterator[Problem]:
    """Return a problem for each GPU node that is not ready."""
    states = [(title(node), condition(node, "Ready")) for node in view.gpu_nodes]
    failed = [(name, one) for name, one in states if one and one.get("status") != "True"]
    silent = [name for name, one in states if not one]
    if silent and not failed:
        raise NotLookedError(f"{silent[0]} states no condition")
    stated = ((name, ": ".join(filter(None, (one.get("reason"), one.get("message"))))) for name, one in failed)
    return (Problem(name, f"the node is not ready: {shortened(text) or 'without a reason'}") for name, text in stated)


@check
def node_schedulable(view: View) -> Iterator[Problem]:
    """Return a problem for each cordoned GPU node, because no new pod starts there."""
    cordoned = (node for node in view.gpu_nodes if spec(node).get("unschedulable"))
    return (Problem(title(node), "someone cordoned the node, so no new pod starts there") for node in cordoned)


def extensions(node: Manifest) -> dict[str, str]:
    """Return the versions of the system extensions of a Talos node, by name of the extension.

    The versions are in the labels and annotations whose keys start with ``extensions.talos.dev/``.
    """
    stated = {**(metadata(node).get("annotations") or {}), **labels(node)}
    return {key.removeprefix(_EXTENSION): value for key, value in stated.items() if key.startswith(_EXTENSION)}


@check
def talos_extensions(view: View) -> Iterator[Problem]:
    """Yield a problem for each Talos GPU node that lacks an NVIDIA system extension or mixes driver branches.

    The driver branches are ``lts`` and ``production``.
    """
    for node in view.talos:
        has = [name for name in extensions(node) if _MODULES.match(name) or _TOOLKIT.match(name)]
        branches = {found[1] for name in has if (found := _BRANCH.search(name))}
        wanted = {"NVIDIA kernel modules": _MODULES, "the NVIDIA container toolkit": _TOOLKIT}
        missing = [what for what, pattern in wanted.items() if not any(map(pattern.match, has))]
        # Releases of Talos without such labels exist. A GPU that the node advertises proves the extensions.
        if missing and (extensions(node) or not any(offered(node).values())):
            yield Problem(title(node), f"the node has no extension with {missing[0]}")
        if len(branches) > 1:
            yield Problem(title(node), f"the extensions belong to different driver branches: {', '.join(has)}")


@check
def talos_schematic(view: View) -> Iterator[Problem]:
    """Return a problem for each Talos GPU node whose schematic is not in the synthesized files (``--plan``)."""
    planned = view.plan.schematics if view.plan else ()
    running = {title(node): extensions(node).get("schematic", "") for node in view.talos}
    if not any(running.values()):
        raise NotLookedError("no GPU node states its schematic")
    other = {name: one for name, one in running.items() if one and one not in planned}
    return (
        Problem(name, f"the node runs the schematic {one[:12]}…, not that of the plan") for name, one in other.items()
    )


def features_of(view: View) -> Iterator[tuple[str, Manifest]]:
    """Return pairs: the name of a node, and its NodeFeature object from Node Feature Discovery."""
    of_node = "nfd.node.kubernetes.io/node-name"
    return ((labels(one).get(of_node, metadata(one)["name"]), one) for one in view.all("NodeFeature"))


@check
def talos_modules(view: View) -> Iterator[Problem]:
    """Yield a problem for each GPU node on which the kernel module ``nvidia`` or ``nvidia_uvm`` is not loaded.

    The source is the NodeFeature of the node. The check omits a node if its NodeFeature lists no modules.
    """
    gpu_nodes = {metadata(node)["name"] for node in view.gpu_nodes}
    for node, feature in features_of(view):
        flags = ((spec(feature).get("features") or {}).get("flags") or {}).get("kernel.loadedmodule") or {}
        loaded = flags.get("elements") or {}
        missing = [module for module in ("nvidia", "nvidia_uvm") if module not in loaded]
        if node in gpu_nodes and loaded and missing:
            yield Problem(f"Node {node}", f"the kernel has not loaded {' and '.join(missing)}")


@check
def talos_services(view: View) -> Iterator[Problem]:
    """Return a problem for each NVIDIA service on a Talos node that is not in the expected state.

    The expected state is ``Running`` for ``ext-nvidia-persistenced`` and ``Finished`` for ``ext-nvidia-cdi-gen``.
    """
    states = ((node, has, name) for node, has in view.snapshot.services.items() for name in _SERVICES if name in has)
    return (
        Problem(f"Node {node}", f"the service {name} is in the state {has[name]} instead of {_SERVICES[name]}")
        for node, has, name in states
        if has[name] != _SERVICES[name]
    )


@check
def node_taints(view: View) -> Iterator[Problem]:
    """Yield a problem for each expected taint or label that a node lacks.

    The capacity plan states the expected taints, and the machine configuration files state the expected labels. The
    command reads both only with the option ``--plan``.
    """
    wanted = view.plan.machine_labels if view.plan else {}
    for planned, node in view.planned():
        has = [(one.get("key"), one.get("value", ""), one.get("effect")) for one in spec(node).get("taints") or ()]
        taints = ((one["key"], one.get("value", ""), one["effect"]) for one in planned.get("taints") or ())
        missing = [f"taint {one[0]}={one[1]} of the plan" for one in taints if one not in has]
        absent = (f"{name}={value}" for name, value in wanted.items() if labels(node).get(name) != value)
        missing += [f"label {label} of the machine configuration" for label in absent]
        yield from (Problem(title(node), f"the node lacks the {one}") for one in missing)


# --- driver ------------------------------------------------------------------------------------------------------


@check
def driver_version(view: View) -> Iterator[Problem]:
    """Yield a problem for each Talos GPU node that runs another driver version than its driver extension contains."""
    for node in view.talos:
        runs = labels(node).get(_DRIVER, "")
        installed = next((value for name, value in extensions(node).items() if _MODULES.match(name)), runs)
        if not installed.startswith(runs):
            yield Problem(title(node), f"the driver {runs} runs, and the extension contains {installed}")


@check
def driver_daemonset(view: View) -> Iterator[Problem]:
    """Return a problem for each DaemonSet of the GPU Operator that installs an NVIDIA driver.

    The check assumes that the GPU nodes already have a driver. The check does not look for this driver.
    """
    reason = "the GPU Operator runs this DaemonSet to install a driver, but the GPU nodes already have their own driver"
    return (Problem(title(one), reason) for one in view.programs("driver"))


@check
def driver_label(view: View) -> Iterator[Problem]:
    """Return a problem for each GPU node for which the GPU Operator manages a driver although the node has its own.

    The label ``nvidia.com/gpu.deploy.driver`` of the node shows that the GPU Operator manages a driver there.
    """
    asking = [node for node in view.gpu_nodes if labels(node).get(_DEPLOY) == "true" and extensions(node)]
    if view.programs("driver"):
        asking += [node for node in view.gpu_nodes if labels(node).get(_DEPLOY) == "pre-installed"]
    reason = f"by the label {_DEPLOY}, the GPU Operator manages a driver here, but the node has its own driver"
    return (Problem(title(node), reason) for node in asking)
