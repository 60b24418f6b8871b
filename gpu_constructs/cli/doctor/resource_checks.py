"""Checks of node labels and of the GPU resources that nodes advertise, also against the plan."""

from __future__ import annotations

from collections.abc import Iterator

from gpu_constructs.catalog.sharing import GPU
from gpu_constructs.cli.doctor.checking import Problem, check
from gpu_constructs.cli.doctor.node_checks import features_of
from gpu_constructs.cli.doctor.plugin_checks import accepts
from gpu_constructs.cli.doctor.snapshot import Manifest
from gpu_constructs.cli.doctor.view import View, gpus, is_ready, labels, offered, spec, status, title
from gpu_constructs.cli.findings import Severity
from gpu_constructs.kube.placement import FOREIGN_PCI_PRESENT, GPU_PCI_PRESENT, GPU_PRESENT

_PRODUCT, _COUNT, _REPLICAS = "nvidia.com/gpu.product", "nvidia.com/gpu.count", "nvidia.com/gpu.replicas"
_OF_DISCOVERY = (GPU_PRESENT, GPU_PCI_PRESENT, *FOREIGN_PCI_PRESENT)
_PLANNED = ("nvidia.com/", "feature.node.kubernetes.io/")
_DEFAULT_DOMAIN = "feature.node.kubernetes.io/"


# --- labels ------------------------------------------------------------------------------------------------------


@check
def nfd_stale(view: View) -> Iterator[Problem]:
    """Yield a problem for each NodeFeature of a node that does not exist."""
    for node, feature in features_of(view):
        if node not in view.nodes:
            yield Problem(title(feature), f"it describes the node {node}, which does not exist")


@check
def nfd_labels(view: View) -> Iterator[Problem]:
    """Yield a problem for each GPU label that Node Feature Discovery found and the node does not have."""
    for name, feature in features_of(view):
        node = view.nodes.get(name)
        for label, value in (spec(feature).get("labels") or {}).items():
            full = label if "/" in label else f"{_DEFAULT_DOMAIN}{label}"
            if node is not None and full in _OF_DISCOVERY and labels(node).get(full) != value:
                yield Problem(title(node), f"its NodeFeature has the label {full}={value}, and the node does not")


@check
def gfd_labels(view: View) -> Iterator[Problem]:
    """Yield a problem for each node on which GPU Feature Discovery runs and the label of the product is missing."""
    for pod in filter(is_ready, view.program_pods("GPU Feature Discovery")):
        node = view.nodes.get(spec(pod).get("nodeName", ""))
        if node is not None and _PRODUCT not in labels(node):
            yield Problem(title(node), f"{title(pod)} runs there, and the node has no label {_PRODUCT}")


@check
def plan_labels(view: View) -> Iterator[Problem]:
    """Yield a problem for each label of the plan that a node lacks or that has another value there."""
    for planned in view.planned_nodes:
        node = view.nodes.get(planned.get("title", ""))
        for label, value in (planned.get("labels") or {}).items() if node else ():
            has = labels(node or {}).get(label)
            if label.startswith(_PLANNED) and has != value:
                state = "does not have it" if has is None else f"has {has}"
                severity: Severity = "error" if label in _OF_DISCOVERY else "warning"
                reason = f"the plan has the label {label}={value}, and the node {state}"
                yield Problem(title(node or {}), reason, severity=severity)


# --- resources ---------------------------------------------------------------------------------------------------


@check
def advertised(view: View) -> Iterator[Problem]:
    """Yield a problem for each GPU node that advertises no GPU."""
    for node in view.gpu_nodes:
        if any(offered(node).values()):
            continue
        plugins = [one for one in view.programs("device plugin") if accepts(one, node)]
        if not plugins and any(accepts(one, node) for one in view.programs("DRA driver")):
            continue
        state = "advertises 0" if gpus(status(node).get("allocatable") or {}) else "does not advertise"
        runs = "" if plugins or not view.programs("device plugin") else ", because no device plugin selects it"
        yield Problem(title(node), f"the node {state} nvidia.com/gpu{runs}")


@check
def unhealthy(view: View) -> Iterator[Problem]:
    """Yield a problem for each GPU resource of which a node offers less than it has."""
    for node in view.gpu_nodes:
        offers = offered(node)
        for name, total in gpus(status(node).get("capacity") or {}).items():
            if 0 < offers.get(name, 0) < total:
                yield Problem(title(node), f"{total - offers[name]} of {total} {name} are unhealthy")


@check
def shared_slots(view: View) -> Iterator[Problem]:
    """Yield a problem for each node whose slots differ from the number of GPUs times the replicas in its labels."""
    for node in view.gpu_nodes:
        has, total = labels(node), gpus(status(node).get("capacity") or {})
        count, replicas = has.get(_COUNT, ""), has.get(_REPLICAS, "")
        slots = sum(amount for name, amount in total.items() if name in (GPU, f"{GPU}.shared"))
        is_known = count.isdigit() and replicas.isdigit() and slots and len(total) == 1
        if is_known and slots != int(count) * max(int(replicas), 1):
            reason = f"its labels state {count} GPUs with {replicas} replicas, and it advertises {slots} slots"
            yield Problem(title(node), reason)


@check
def plan_slots(view: View) -> Iterator[Problem]:
    """Yield a problem for each resource of which the nodes offer another amount than the plan."""
    for planned in view.planned_nodes:
        node = view.nodes.get(planned.get("title", ""))
        for name, amount in (planned.get("allocatable") or {}).items() if node else ():
            yield from _difference(node or {}, name, amount)
    for name, replicas in view.planned_slots.items():
        for node in view.gpu_nodes:
            count = labels(node).get(_COUNT, "")
            if count.isdigit():
                yield from _difference(node, name, int(count) * replicas)


def _difference(node: Manifest, name: str, expected: int) -> Iterator[Problem]:
    offers = offered(node).get(name, 0)
    if offers != expected:
        yield Problem(title(node), f"the plan expects {expected} {name}, and the node advertises {offers}")
