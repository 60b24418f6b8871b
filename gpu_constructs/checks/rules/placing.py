"""Which nodes take a pod: R10 to R12, R25."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from gpu_constructs.catalog import nfd_labels
from gpu_constructs.catalog.gpu_models import board_called, is_full_name, near_boards, product_label
from gpu_constructs.errors import did_you_mean
from gpu_constructs.facts.app import Facts, Pod
from gpu_constructs.facts.finding import Finding
from gpu_constructs.facts.provided import GpuNodes
from gpu_constructs.facts.readable import Manifest
from gpu_constructs.kube import labels, pod_specs
from gpu_constructs.kube.placement import GPU_PRESENT

PRODUCT = "nvidia.com/gpu.product"
"""Node label with the name of the boards, as GPU Feature Discovery writes it."""

_SHARED = "-SHARED"
_OLD_ROLE = "node-role.kubernetes.io/gpu"
_OF_GPU_NODES = ("nvidia.com/", "extensions.talos.dev/n", "feature.node.kubernetes.io/pci-")
# NVIDIA/gpu-operator@v26.7.0:controllers/state_manager.go, NVIDIA/mig-parted, NVIDIA/k8s-device-plugin:README.md
_SET_BY_HAND = (
    *("nvidia.com/device-plugin.config", "nvidia.com/gpu.deploy.", "nvidia.com/gpu.workload.config"),
    *("nvidia.com/mig.config", "nvidia.com/vgpu.config"),
)
_DISCOVERED = ("nvidia.com/", "feature.node.kubernetes.io/")


def products_are_those_of_shared_gpus(facts: Facts) -> Iterator[Finding]:
    """R10: GPU Feature Discovery writes a shared GPU's product with -SHARED behind it."""
    for pod in facts.gpu_pods:
        resource = pod.asks[0].resource
        shared = facts.sharing_of(resource)
        # With another name of the resource the product keeps its own.
        if shared is None or shared[1].rename_by_default:
            continue
        if facts.is_exclusive_somewhere(resource):
            continue
        for label, values in pod_specs.node_values_required(pod.spec):
            if label == PRODUCT and values and not any(value.endswith(_SHARED) for value in values):
                yield Finding(
                    pod.index,
                    f"selects nodes by {PRODUCT} {values[0]!r}, which is {values[0] + _SHARED!r} where GPUs are "
                    f"shared as {{0}} does, so its pods would never be scheduled; select that one too, by an affinity "
                    "that takes both",
                    providers=(shared[0],),
                )


def old_role_is_not_selected(facts: Facts) -> Iterator[Finding]:
    """R11: nothing sets this label any more, and no kubelet may."""
    if facts.publishes(_OLD_ROLE) or _OLD_ROLE in facts.stated_node_labels:
        return
    for pod in facts.pods:
        if any(alternatives == {_OLD_ROLE} for alternatives in pod_specs.node_labels_required(pod.spec)):
            yield Finding(
                pod.index,
                f"selects nodes by the label {_OLD_ROLE!r}, which no discovery and no kubelet sets, so its pods would "
                f"never be scheduled; select {GPU_PRESENT!r}, or declare it with "
                f"External(app, 'existing', node_labels=[{_OLD_ROLE!r}]) where you set it by hand",
            )


def selected_labels_are_published(facts: Facts) -> Iterator[Finding]:
    """R12: a pod that selects a label which nothing publishes, or a value that no node has, is never scheduled."""
    yield from _values_are_those_of_nodes(facts, filter(_is_for_gpu_nodes, facts.pods))
    for pod in facts.pods:
        for alternatives in pod_specs.node_labels_required(pod.spec):
            if not any(_may_be_there(facts, label) for label in alternatives):
                label = max(alternatives, key=lambda one: (not one.startswith(_DISCOVERED), one))
                is_discovered = label.startswith(_DISCOVERED)
                yield _unpublished(facts, pod, label) if is_discovered else _of_nobody(pod, label, facts)


def _may_be_there(facts: Facts, label: str) -> bool:
    return facts.publishes(label) or label in facts.stated_node_labels or labels.is_set_by_others(label)


def _unpublished(facts: Facts, pod: Pod, label: str) -> Finding:
    """Return the finding for a label that a discovery, the GPU Operator or a user sets."""
    declared = f"declare it with External(app, 'existing', node_labels=[{label!r}])"
    if label.startswith(_SET_BY_HAND):
        return Finding(
            pod.index,
            f"selects nodes by the label {label!r}, which no discovery publishes: you or the GPU Operator set it, and "
            f"nothing in this app says so, so its pods would never be scheduled; {declared} where nodes have it",
        )
    discovery = tuple(index for index, offer in enumerate(facts.provided) if offer.nfd_labels is not None)[:1]
    if discovery and label.startswith(nfd_labels.DOMAIN):
        return Finding(
            pod.index,
            f"selects nodes by the label {label!r}, which {{0}} does not publish as it is configured; select "
            f"{GPU_PRESENT!r}, or {declared} where something else publishes it",
            providers=discovery,
            # Files on a node, and rules of other apps, write names of their own.
            is_warning=not nfd_labels.is_of_a_source(label),
        )
    # Of nvidia.com/, Node Feature Discovery publishes this one alone.
    is_of_gfd = label.startswith("nvidia.com/") and label != GPU_PRESENT
    way_out = "gpu_feature_discovery=True" if is_of_gfd else "node_feature_discovery=True"
    operators = tuple(facts.bringing("gpu-operator")[:1])
    maker = "make {0} with" if operators else "add a DevicePluginChart with"
    return Finding(
        pod.index,
        f"selects nodes by the label {label!r}, which nothing in this app publishes, so its pods would never be "
        f"scheduled; {maker} {way_out} or {declared}",
        providers=operators,
    )


def gpu_pods_tolerate_the_taints_of_gpu_nodes(facts: Facts) -> Iterator[Finding]:
    """R25: Kubernetes says nothing about a DaemonSet whose pods a node does not take."""
    nodes = _tainted_nodes(facts)
    for pod in facts.pods if nodes else ():
        if _is_for_gpu_nodes(pod):
            selected, is_certain = _selected(nodes, pod.spec)
            yield from _repelled(
                selected,
                pod.spec.get("tolerations") or (),
                pod.index,
                is_for_each=pod.is_for_each_node,
                is_certain=is_certain,
            )
    for index, offer in enumerate(facts.provided):
        if offer.later_tolerations is not None:
            yield from _repelled(nodes, offer.later_tolerations, None, (index,), is_for_each=True)


_Node = tuple[int | str, GpuNodes]
"""A node with the index of its provider, or with its name in the inventory."""


def _tainted_nodes(facts: Facts) -> list[_Node]:
    configured: list[_Node] = [*facts.gpu_nodes]
    if configured or facts.inventory is None or any(node.is_observed for node in facts.inventory.nodes):
        return configured
    return [
        (node.name, GpuNodes(labels=node.labels, taints=[taint.to_manifest() for taint in node.taints]))
        for node in facts.inventory.nodes
    ]


def _selected(nodes: Sequence[_Node], spec: Manifest) -> tuple[list[_Node], bool]:
    """Return the nodes that a pod may be meant for, and whether the app says enough to be certain of them.

    There are none where the pod selects by a label that no node here is given.
    """
    wanted = {k: v for k, v in (spec.get("nodeSelector") or {}).items() if not k.startswith(_OF_GPU_NODES)}
    given = {key for _, gpu_nodes in nodes for key in gpu_nodes.labels}
    if wanted.keys() - given:
        return [], False
    required = (label for alternatives in pod_specs.node_labels_required(spec) for label in alternatives)
    is_certain = all(label in given or label.startswith(_OF_GPU_NODES) for label in required)
    found = [(node, has) for node, has in nodes if all(has.labels.get(key, v) == v for key, v in wanted.items())]
    return found, is_certain


def _repelled(
    nodes: Sequence[_Node],
    tolerations: Sequence[Manifest],
    subject: int | None,
    providers: tuple[int, ...] = (),
    *,
    is_for_each: bool,
    is_certain: bool = True,
) -> Iterator[Finding]:
    """Check for a taint that keeps pods away: from one of the nodes where each needs one, else from all of them."""
    repelling = [(node, taint) for node, has in nodes for taint in _untolerated(has, tolerations)]
    from_all = {node for node, _ in repelling} == {node for node, _ in nodes}
    if not repelling or not (is_for_each or from_all):
        return
    node, taint = repelling[0]
    where = f"{{{len(providers)}}}" if isinstance(node, int) else f"node {node!r}"
    never = "on any GPU node of this app" if from_all else "there"
    yield Finding(
        subject,
        f"does not tolerate the taint {taint['key']}={taint.get('value', '')}:{taint['effect']} of {where}, so its "
        f"pods would never run {never}; pass "
        f"tolerations=[Toleration(key={taint['key']!r}, operator='Exists', effect={taint['effect']!r})]",
        providers=(*providers, node) if isinstance(node, int) else providers,
        is_warning=not (from_all and is_certain),
    )


def _is_for_gpu_nodes(pod: Pod) -> bool:
    required = (label for alternatives in pod_specs.node_labels_required(pod.spec) for label in alternatives)
    return bool(pod.asks) or any(label.startswith(_OF_GPU_NODES) for label in required)


def _untolerated(nodes: GpuNodes, tolerations: Sequence[Manifest]) -> list[Mapping[str, str]]:
    return [
        taint
        for taint in nodes.taints
        if taint["effect"] != "PreferNoSchedule" and not any(_tolerates(one, taint) for one in tolerations)
    ]


def _tolerates(toleration: Manifest, taint: Mapping[str, str]) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint["key"])
    return toleration.get("key") == taint["key"] and (toleration.get("value") or "") == (taint.get("value") or "")


def _of_nobody(pod: Pod, label: str, facts: Facts) -> Finding:
    """Return the warning that a pod selects a label which nothing in the app sets or declares."""
    near = did_you_mean(label, sorted({*facts.node_labels, *facts.stated_node_labels}))
    return Finding(
        pod.index,
        f"selects nodes by the label {label!r}, which nothing in this app sets{near}; declare it with "
        f"External(app, 'existing', node_labels=[{label!r}]), TalosGpuNode(node_labels=...) or GpuNode(labels=...)",
        is_warning=True,
    )


def _values_are_those_of_nodes(facts: Facts, for_gpu_nodes: Iterable[Pod]) -> Iterator[Finding]:
    """Yield pods whose selectors name a value that no node has.

    Args:
        facts: The app.
        for_gpu_nodes: Pods that are meant for nodes with GPUs, whose labels the app may know.
    """
    for pod in for_gpu_nodes:
        for label, values in pod_specs.node_values_required(pod.spec):
            has = facts.stated_node_labels.get(label, frozenset())
            if not values or has & {*values}:
                continue
            if label == PRODUCT and facts.publishes(label):
                yield from _of_products(pod, values, facts)
            elif has and not facts.publishes(label) and not labels.is_set_by_others(label):
                yield Finding(
                    pod.index,
                    f"selects nodes by the label {label!r} of {_listed(values)}; the nodes of this app have "
                    f"{_listed(sorted(has))}; select one of them, or declare the label with "
                    f"External(app, 'existing', node_labels=[{label!r}])",
                    is_warning=True,
                )


def _of_products(pod: Pod, values: Sequence[str], facts: Facts) -> Iterator[Finding]:
    products = list(dict.fromkeys(value.removesuffix("-SHARED").partition("-MIG-")[0] for value in values))
    if not any(map(_may_be_a_product, products)):
        meant = [product_label(board.name) for board in map(board_called, products) if board is not None]
        near = f" (did you mean {_listed(meant)}?)" if meant else near_boards(products[0])
        yield Finding(
            pod.index,
            f"selects nodes by {PRODUCT} {_listed(products)}, which no board is called{near}; write the name as "
            "nvidia-smi prints it, with dashes for blanks",
            # What publishes the label in place of GPU Feature Discovery may write anything.
            is_warning=not facts.bringing("gpu-feature-discovery"),
        )
        return
    models = [] if facts.inventory is None else [node.model for node in facts.inventory.nodes]
    boards = sorted({product_label(model.name) for model in models if model is not None})
    if models and None not in models and not {*boards} & {*products}:
        yield Finding(
            pod.index,
            f"selects nodes by {PRODUCT} {_listed(products)}, of which the inventory has none; it has "
            f"{_listed(boards)}; select one of them, or add the node to the inventory",
            is_warning=not pod.asks,
        )


def _may_be_a_product(product: str) -> bool:
    board = board_called(product)
    # Labels have one spelling.
    return is_full_name(product) or not near_boards(product) if board is None else product == product_label(board.name)


def _listed(values: Sequence[str]) -> str:
    return " or ".join(map(repr, values))
