"""Checks of the labels and GPU resources of nodes, and a comparison of both with the capacity plan."""

from __future__ import annotations

from collections.abc import Iterator

from gpu_constructs.catalog.sharing import GPU
from gpu_constructs.cli.doctor.checking import NotLookedError, Problem, check
from gpu_constructs.cli.doctor.node_checks import features_of
from gpu_constructs.cli.doctor.plugin_checks import accepts
from gpu_constructs.cli.doctor.view import View, gpus, is_ready, labels, number, offered, spec, status, title
from gpu_constructs.kube.placement import FOREIGN_PCI_PRESENT, GPU_PCI_PRESENT, GPU_PRESENT

_PRODUCT, _COUNT, _REPLICAS = "nvidia.com/gpu.product", "nvidia.com/gpu.count", "nvidia.com/gpu.replicas"
_OF_DISCOVERY = (GPU_PRESENT, GPU_PCI_PRESENT, *FOREIGN_PCI_PRESENT)
_DEFAULT_DOMAIN = "feature.node.kubernetes.io/"


# --- labels ------------------------------------------------------------------------------------------------------


@check
def nfd_stale(view: View) -> Iterator[Problem]:
    """Return a problem for each NodeFeature of Node Feature Discovery that describes a node that does not exist."""
    stale = ((node, one) for node, one in features_of(view) if node not in view.nodes)
    return (Problem(title(one), f"it describes the node {node}, which does not exist") for node, one in stale)


@check
def nfd_labels(view: View) -> Iterator[Problem]:
    """Yield a problem for each GPU label that is in the NodeFeature of a node but not on the node."""
    for name, feature in features_of(view):
        found = (spec(feature).get("labels") or {}).items()
        full = {label if "/" in label else f"{_DEFAULT_DOMAIN}{label}": value for label, value in found}
        has = labels(view.nodes[name]) if name in view.nodes else full
        for label in (one for one in _OF_DISCOVERY if one in full and has.get(one) != full[one]):
            yield Problem(f"Node {name}", f"its NodeFeature has the label {label}={full[label]}, and the node does not")


@check
def gfd_labels(view: View) -> Iterator[Problem]:
    """Return a problem for each node on which GPU Feature Discovery has not set the label ``nvidia.com/gpu.product``.

    The check looks only at nodes with a ready pod of GPU Feature Discovery.
    """
    pods = [pod for pod in view.program_pods("GPU Feature Discovery") if is_ready(pod)]
    running = ((pod, view.node_of(pod)) for pod in pods)
    reason = f"runs there, and the node has no label {_PRODUCT}"
    return (
        Problem(title(node), f"{title(pod)} {reason}") for pod, node in running if node and _PRODUCT not in labels(node)
    )


@check
def plan_labels(view: View) -> Iterator[Problem]:
    """Yield a problem for each GPU label in the capacity plan that a node lacks or has with another value."""
    for planned, node in view.planned():
        for label, value in (planned.get("labels") or {}).items():
            has = labels(node).get(label)
            if label.startswith(("nvidia.com/", _DEFAULT_DOMAIN)) and has != value:
                reason = f"the plan has the label {label}={value}, and the node "
                reason += "does not have it" if has is None else f"has {has}"
                yield Problem(title(node), reason, severity="error" if label in _OF_DISCOVERY else "warning")


# --- resources ---------------------------------------------------------------------------------------------------


@check
def advertised(view: View) -> Iterator[Problem]:
    """Yield a problem for each GPU node that advertises no GPU resource.

    Omit a node if a DRA driver can run there and a device plugin cannot.
    """
    stated = [node for node in view.gpu_nodes if "allocatable" in status(node)]
    if view.gpu_nodes and not stated:
        raise NotLookedError("no GPU node has the field status.allocatable")
    for node in (node for node in stated if not any(offered(node).values())):
        has_plugin, has_driver = (
            any(accepts(one, node) for one in view.programs(name)) for name in ("device plugin", "DRA driver")
        )
        state = "advertises 0" if offered(node) else "does not advertise"
        runs = "" if has_plugin or not view.programs("device plugin") else ", because no device plugin selects it"
        if has_plugin or not has_driver:
            yield Problem(title(node), f"the node {state} nvidia.com/gpu{runs}")


@check
def unhealthy(view: View) -> Iterator[Problem]:
    """Return a problem for each GPU resource of a node that has unhealthy devices.

    The check reports a resource if ``0 < allocatable < capacity``.
    """
    totals = ((node, *one) for node in view.gpu_nodes for one in gpus(status(node).get("capacity") or {}).items())
    return (
        Problem(title(node), f"{total - offered(node)[name]} of {total} {name} are unhealthy")
        for node, name, total in totals
        if 0 < offered(node).get(name, 0) < total
    )


@check
def shared_slots(view: View) -> Iterator[Problem]:
    """Yield a problem for each node that does not advertise as many GPU slots as its labels state.

    The expected number is ``nvidia.com/gpu.count`` times ``nvidia.com/gpu.replicas``.
    """
    for node in view.gpu_nodes:
        total = gpus(status(node).get("capacity") or {})
        count, replicas = (number(labels(node).get(name)) for name in (_COUNT, _REPLICAS))
        slots = sum(total.get(name, 0) for name in (GPU, f"{GPU}.shared"))
        if count and replicas and len(total) == 1 and slots not in (0, count * replicas):
            reason = f"its labels state {count} GPUs with {replicas} replicas, and it advertises {slots} slots"
            yield Problem(title(node), reason)


@check
def plan_slots(view: View) -> Iterator[Problem]:
    """Return a problem for each GPU resource of which a node advertises more or fewer slots than expected.

    The expected number comes from the capacity plan of ``--plan``. Without a capacity plan, it comes from the device
    plugins in the synthesized manifests.
    """
    wanted = [(node, *one) for planned, node in view.planned() for one in (planned.get("allocatable") or {}).items()]
    counted = ((node, number(labels(node).get(_COUNT))) for node in view.gpu_nodes)
    wanted += [(node, name, n * each) for node, n in counted for name, each in view.planned_slots.items() if n]
    return (
        Problem(title(node), f"the plan expects {amount} {name}, and the node advertises {offered(node).get(name, 0)}")
        for node, name, amount in wanted
        if offered(node).get(name, 0) != amount
    )
