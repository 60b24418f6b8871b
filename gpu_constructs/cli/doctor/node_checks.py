"""Checks of nodes and their drivers."""

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
_DEPLOY = "nvidia.com/gpu.deploy.driver"
# siderolabs/talos@v1.13.0:internal/integration/api/extensions_nvidia.go
_SERVICES = {"ext-nvidia-persistenced": "Running", "ext-nvidia-cdi-gen": "Finished"}


@check
def node_found(view: View) -> Iterator[Problem]:
    """Yield a problem if no node has a GPU, and for each node of the plan that the cluster does not have."""
    if not view.gpu_nodes:
        yield Problem("", f"none of the {len(view.nodes)} nodes has a sign of an NVIDIA GPU")
    for node in view.planned_nodes:
        if node.get("count") == 1 and node.get("title") not in view.nodes:
            yield Problem(f"Node {node.get('title')}", "the plan contains this node, and the cluster does not")


@check
def node_ready(view: View) -> Iterator[Problem]:
    """Yield a problem for each GPU node that is not ready."""
    for node in view.gpu_nodes:
        ready = condition(node, "Ready")
        if ready.get("status") != "True":
            stated = ": ".join(filter(None, (ready.get("reason"), ready.get("message")))) or "it states no condition"
            yield Problem(title(node), f"the node is not ready: {shortened(stated)}")


@check
def node_schedulable(view: View) -> Iterator[Problem]:
    """Yield a problem for each GPU node on which new pods must not run."""
    for node in view.gpu_nodes:
        if spec(node).get("unschedulable"):
            yield Problem(title(node), "the node is cordoned, so no new pod starts there")


def extensions(node: Manifest) -> dict[str, str]:
    """Return the versions of the extensions of a Talos node, by extension, from its labels and annotations."""
    stated = {**(metadata(node).get("annotations") or {}), **labels(node)}
    return {key.removeprefix(_EXTENSION): value for key, value in stated.items() if key.startswith(_EXTENSION)}


@check
def talos_extensions(view: View) -> Iterator[Problem]:
    """Yield a problem for each Talos node that lacks an extension or mixes two driver branches."""
    for node in view.talos:
        has = [name for name in extensions(node) if _MODULES.match(name) or _TOOLKIT.match(name)]
        branches = {found[1] for name in has if (found := _BRANCH.search(name))}
        if not extensions(node) and any(offered(node).values()):
            continue
        if not any(map(_MODULES.match, has)):
            yield Problem(title(node), "the node has no extension with NVIDIA kernel modules")
        elif not any(map(_TOOLKIT.match, has)):
            yield Problem(title(node), "the node has no extension with the NVIDIA container toolkit")
        if len(branches) > 1:
            yield Problem(title(node), f"the extensions belong to different driver branches: {', '.join(has)}")


@check
def talos_schematic(view: View) -> Iterator[Problem]:
    """Yield a problem for each Talos node that runs a schematic that the plan does not contain."""
    planned = view.plan.schematics if view.plan else ()
    running = {title(node): extensions(node).get("schematic") for node in view.talos}
    if not any(running.values()):
        raise NotLookedError("no GPU node states its schematic")
    for name, schematic in running.items():
        if schematic and schematic not in planned:
            yield Problem(name, f"the node runs the schematic {schematic[:12]}…, and the plan has {planned[0][:12]}…")


def features_of(view: View) -> Iterator[tuple[str, Manifest]]:
    """Yield the name of a node and its NodeFeature, for each NodeFeature."""
    for one in view.all("NodeFeature"):
        yield labels(one).get("nfd.node.kubernetes.io/node-name", metadata(one)["name"]), one


@check
def talos_modules(view: View) -> Iterator[Problem]:
    """Yield a problem for each GPU node whose NodeFeature lists loaded kernel modules without those of NVIDIA."""
    gpu_nodes = {metadata(node)["name"] for node in view.gpu_nodes}
    for node, feature in features_of(view):
        flags = ((spec(feature).get("features") or {}).get("flags") or {}).get("kernel.loadedmodule") or {}
        loaded = flags.get("elements") or {}
        missing = [module for module in ("nvidia", "nvidia_uvm") if module not in loaded]
        if node in gpu_nodes and loaded and missing:
            yield Problem(f"Node {node}", f"the kernel has not loaded {' and '.join(missing)}")


@check
def talos_services(view: View) -> Iterator[Problem]:
    """Yield a problem for each NVIDIA service of a Talos node that is not in its final state."""
    for node, services in view.snapshot.services.items():
        for name, wanted in _SERVICES.items():
            if name in services and services[name] != wanted:
                reason = f"the service {name} is in the state {services[name]} instead of {wanted}"
                yield Problem(f"Node {node}", reason)


@check
def node_taints(view: View) -> Iterator[Problem]:
    """Yield a problem for each taint of the plan and each label of the machine configuration that a node lacks."""
    wanted = view.plan.machine_labels if view.plan else {}
    for planned in view.planned_nodes:
        node = view.nodes.get(planned.get("title", ""))
        if node is None:
            continue
        has = [(one.get("key"), one.get("value", ""), one.get("effect")) for one in spec(node).get("taints") or ()]
        for one in planned.get("taints") or ():
            if (one["key"], one.get("value", ""), one["effect"]) not in has:
                yield Problem(title(node), f"the node lacks the taint {one['key']}={one.get('value', '')} of the plan")
        for name, value in wanted.items():
            if labels(node).get(name) != value:
                yield Problem(title(node), f"the node lacks the label {name}={value} of the machine configuration")


# --- driver ------------------------------------------------------------------------------------------------------


@check
def driver_version(view: View) -> Iterator[Problem]:
    """Yield a problem for each Talos node on which another driver runs than that of its extension."""
    for node in view.talos:
        runs = labels(node).get("nvidia.com/cuda.driver-version.full", "")
        installed = next((value for name, value in extensions(node).items() if _MODULES.match(name)), "")
        if runs and installed and not installed.startswith(runs):
            yield Problem(title(node), f"the driver {runs} runs, and the extension contains {installed}")


@check
def driver_daemonset(view: View) -> Iterator[Problem]:
    """Yield a problem for each DaemonSet that installs a driver."""
    for one in view.programs("driver"):
        yield Problem(title(one), "the GPU Operator manages a driver, and the node brings its own driver")


@check
def driver_label(view: View) -> Iterator[Problem]:
    """Yield a problem for each node whose label asks for a driver of the GPU Operator."""
    for node in view.gpu_nodes:
        value = labels(node).get(_DEPLOY)
        has_driver = value == "pre-installed" or extensions(node)
        if (value == "true" and has_driver) or (value == "pre-installed" and view.programs("driver")):
            yield Problem(title(node), f"the label {_DEPLOY}={value} does not last, because the node has a driver")
