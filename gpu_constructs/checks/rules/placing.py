"""Rules for the nodes that pods select and for taints that pods tolerate: R10 to R12, R25, R32."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from gpu_constructs.catalog import nfd_labels
from gpu_constructs.catalog.gpu_models import board_called, is_full_name, near_boards, product_label
from gpu_constructs.errors import did_you_mean, sentence, then
from gpu_constructs.facts.app import Facts, Pod
from gpu_constructs.facts.finding import Finding
from gpu_constructs.facts.provided import GpuNodes, is_among
from gpu_constructs.facts.publishing import KINDS, OF_GFD
from gpu_constructs.facts.readable import Manifest
from gpu_constructs.kube import labels, pod_specs
from gpu_constructs.kube.placement import GPU_PRESENT

PRODUCT = "nvidia.com/gpu.product"
"""Node label that GPU Feature Discovery sets to the product name of the boards, such as ``NVIDIA-L4``."""

_SHARED = "-SHARED"
_OLD_ROLE = "node-role.kubernetes.io/gpu"
_PCI = f"{nfd_labels.DOMAIN}pci-"
_OF_GPU_NODES = ("nvidia.com/", "extensions.talos.dev/n", _PCI)
_NVIDIA = "10de"
"""PCI vendor ID of NVIDIA."""
# NVIDIA/gpu-operator@v26.7.0:controllers/state_manager.go, NVIDIA/mig-parted, NVIDIA/k8s-device-plugin:README.md
_SET_BY_HAND = (
    *("nvidia.com/device-plugin.config", "nvidia.com/gpu.deploy.", "nvidia.com/gpu.workload.config"),
    *("nvidia.com/mig.config", "nvidia.com/vgpu.config"),
)
_DISCOVERED = ("nvidia.com/", "feature.node.kubernetes.io/")


def products_are_those_of_shared_gpus(facts: Facts) -> Iterator[Finding]:
    """Yield problems: pods for shared GPUs that select a product name without the suffix ``-SHARED`` (R10).

    GPU Feature Discovery adds this suffix to the product name of shared GPUs, so the pods stay pending.
    """
    for pod in facts.gpu_pods:
        resource = pod.asks[0].resource
        shared = facts.sharing_of(resource)
        # With rename_by_default, the product label has no suffix.
        if shared is None or shared[1].rename_by_default:
            continue
        if facts.is_exclusive_somewhere(resource):
            continue
        for label, values in pod_specs.node_values_required(pod.spec):
            if label == PRODUCT and values and not any(value.endswith(_SHARED) for value in values):
                yield Finding(
                    pod.index,
                    f"selects nodes by {PRODUCT} {values[0]!r}, which is {values[0] + _SHARED!r} on the shared GPUs of "
                    f"{{0}}, so its pods stay pending. Select both values with a node affinity",
                    providers=(shared[0],),
                )


def old_role_is_not_selected(facts: Facts) -> Iterator[Finding]:
    """Yield problems: pods that select the node label ``node-role.kubernetes.io/gpu``, which no software sets (R11)."""
    if facts.publishes(_OLD_ROLE) or _OLD_ROLE in facts.stated_node_labels:
        return
    for pod in facts.pods:
        if any(alternatives == {_OLD_ROLE} for alternatives in pod_specs.node_labels_required(pod.spec)):
            yield Finding(
                pod.index,
                f"selects nodes by the label {_OLD_ROLE!r}, which no program sets, so its pods stay "
                f"pending. Select {GPU_PRESENT!r}, or declare it with "
                f"External(app, 'existing', node_labels=[{_OLD_ROLE!r}]) if you set it yourself",
            )


def selected_labels_are_published(facts: Facts) -> Iterator[Finding]:
    """Yield problems: pods that stay pending, because they select a node label or value that no node has (R12)."""
    yield from _values_are_those_of_nodes(facts, filter(_is_for_gpu_nodes, facts.pods))
    for pod in facts.pods:
        for alternatives in pod_specs.node_labels_required(pod.spec):
            if not any(_may_be_there(facts, label) for label in alternatives):
                label = max(alternatives, key=lambda one: (not one.startswith(_DISCOVERED), one))
                yield _unpublished(facts, pod, label) if _is_of_gpus(label) else _of_nobody(pod, label, facts)


def rules_of_features_have_a_reader(facts: Facts) -> Iterator[Finding]:
    """Yield problems: NodeFeatureRules and NodeFeatures in an app without Node Feature Discovery (R32).

    Only Node Feature Discovery reads these objects. The app can install it, or declare that the cluster has it.
    """
    # The values of a parent chart have the names of its charts as keys.
    charts = {name for one in facts.releases for name in (one.release.chart, *one.release.values)}
    if (
        facts.bringing("node-feature-discovery")
        or f"{nfd_labels.DOMAIN}*" in facts.node_labels
        or charts & {"node-feature-discovery", "gpu-operator", "nvidia-device-plugin"}
    ):
        return
    for index, _ in facts.of_kind(*KINDS):
        yield Finding(
            index,
            "has no effect without Node Feature Discovery, which nothing in this app installs. Add a "
            "NodeFeatureDiscoveryChart, or declare it with "
            "External(app, 'existing', components=['node-feature-discovery'])",
        )


def _is_of_gpus(label: str) -> bool:
    """Check whether Node Feature Discovery, GPU Feature Discovery or the GPU Operator defines a node label.

    The prefix ``nvidia.com/`` is not enough: for ``nvidia.com/gpu``, the result is False.
    """
    of_nvidia = (*OF_GFD, GPU_PRESENT, *(f"{start}*" for start in _SET_BY_HAND))
    return label.startswith(nfd_labels.DOMAIN) or is_among(label, of_nvidia)


def _is_of_gpu_nodes(label: str) -> bool:
    """Check whether a node label can only exist on nodes with NVIDIA GPUs."""
    return label.startswith(_OF_GPU_NODES) and not _is_of_another_device(label)


def _is_of_another_device(label: str) -> bool:
    """Check whether a node label states a PCI device of another vendor, such as a GPU of Intel."""
    return label.startswith(_PCI) and _NVIDIA not in label


def _discovery(facts: Facts) -> tuple[int, ...]:
    """Return the index in ``Facts.provided`` of the first construct with ``nfd_labels``, in a tuple of one item.

    Return an empty tuple if there is no such construct.
    """
    return tuple(index for index, offer in enumerate(facts.provided) if offer.nfd_labels is not None)[:1]


def _may_be_there(facts: Facts, label: str) -> bool:
    """Check whether the app, or software that is not in the app, possibly sets a node label."""
    if facts.publishes(label) or label in facts.stated_node_labels or labels.is_set_by_others(label):
        return True
    return _is_of_another_device(label) and not _discovery(facts)


def _unpublished(facts: Facts, pod: Pod, label: str) -> Finding:
    """Return the problem that a pod selects a node label of NVIDIA or Node Feature Discovery that nothing sets."""
    declared = f"declare it with External(app, 'existing', node_labels=[{label!r}])"
    if label.startswith(_SET_BY_HAND):
        return Finding(
            pod.index,
            f"selects nodes by the label {label!r}, which this app does not declare, so its pods do not run. "
            f"Only you or the GPU Operator can set it{then(declared)} if nodes have it",
        )
    discovery = _discovery(facts)
    if discovery and label.startswith(nfd_labels.DOMAIN):
        instead = "a label that it publishes" if _is_of_another_device(label) else repr(GPU_PRESENT)
        return Finding(
            pod.index,
            f"selects nodes by the label {label!r}, which {{0}} does not publish with its configuration. Select "
            f"{instead}, or {declared} if another program publishes it",
            providers=discovery,
            # Files on a node and rules in other apps can define any label.
            is_warning=not nfd_labels.is_of_a_source(label),
        )
    # The rule of Node Feature Discovery publishes only GPU_PRESENT under nvidia.com/.
    is_of_gfd = label.startswith("nvidia.com/") and label != GPU_PRESENT
    way_out = "gpu_feature_discovery=True" if is_of_gfd else "node_feature_discovery=True"
    operators = tuple(facts.bringing("gpu-operator")[:1])
    maker = "make {0} with" if operators else "add a DevicePluginChart with"
    return Finding(
        pod.index,
        f"selects nodes by the label {label!r}, which nothing in this app publishes, so its pods do not run. "
        f"{sentence(maker)} {way_out} or {declared}",
        providers=operators,
    )


def gpu_pods_tolerate_the_taints_of_gpu_nodes(facts: Facts) -> Iterator[Finding]:
    """Yield problems: pods that do not tolerate the taints of GPU nodes (R25).

    If no node accepts the pods of a DaemonSet, Kubernetes creates no pods and reports no event.
    """
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
"""A node, as a pair. The first member is its name in the inventory, or an index in ``Facts.provided``.

The index is that of the construct that configures the node, such as ``TalosGpuNode``. The second member contains the
labels and taints of the node.
"""


def _tainted_nodes(facts: Facts) -> list[_Node]:
    """Return the nodes that constructs of the app configure. If there are none, return the nodes of the inventory.

    The function ignores the inventory if the labels of any of its nodes come from a running cluster.
    """
    configured: list[_Node] = [*facts.gpu_nodes]
    if configured or facts.inventory is None or any(node.is_observed for node in facts.inventory.nodes):
        return configured
    return [
        (node.name, GpuNodes(labels=node.labels, taints=[taint.to_manifest() for taint in node.taints]))
        for node in facts.inventory.nodes
    ]


def _selected(nodes: Sequence[_Node], spec: Manifest) -> tuple[list[_Node], bool]:
    """Return the declared nodes that a pod can select, and whether the pod can run only on declared nodes.

    The list is empty if the pod selects a label that no declared node has.

    Args:
        nodes: Declared nodes: those of node configurations in the app, or of the inventory.
        spec: Spec of the pod.
    """
    wanted = {k: v for k, v in (spec.get("nodeSelector") or {}).items() if not _is_of_gpu_nodes(k)}
    given = {key for _, gpu_nodes in nodes for key in gpu_nodes.labels}
    if wanted.keys() - given:
        return [], False
    required = (label for alternatives in pod_specs.node_labels_required(spec) for label in alternatives)
    is_certain = all(label in given or _is_of_gpu_nodes(label) for label in required)
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
    """Yield a problem if nodes have taints that pods do not tolerate.

    For the pods of a DaemonSet (``is_for_each``), one node with such a taint is a problem. For other pods, there is a
    problem only if every node has such a taint.

    Args:
        nodes: Nodes on which the pods should run.
        tolerations: Tolerations of the pods.
        subject: Index in ``Facts.objects`` of the object that creates the pods. None if this object is not in the app,
            for example because the GPU Operator creates it later.
        providers: Index in ``Facts.provided`` of the construct that installs the GPU Operator. Empty if ``subject`` has
            a value.
        is_for_each: Whether a DaemonSet creates the pods.
        is_certain: Whether the pods can run only on ``nodes``; True by default. If False, the problem is a warning.
    """
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
        f"pods do not run {never}. Pass "
        f"tolerations=[Toleration(key={taint['key']!r}, operator='Exists', effect={taint['effect']!r})]",
        providers=(*providers, node) if isinstance(node, int) else providers,
        is_warning=not (from_all and is_certain),
    )


def _is_for_gpu_nodes(pod: Pod) -> bool:
    """Check whether a pod requests NVIDIA GPUs, or selects a label that only nodes with NVIDIA GPUs have."""
    required = (label for alternatives in pod_specs.node_labels_required(pod.spec) for label in alternatives)
    return bool(pod.asks) or any(map(_is_of_gpu_nodes, required))


def _untolerated(nodes: GpuNodes, tolerations: Sequence[Manifest]) -> list[Mapping[str, str]]:
    """Return the taints of nodes that pods with the given tolerations do not tolerate."""
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
    """Return the warning that a pod selects a node label that the app neither sets nor declares."""
    near = did_you_mean(label, sorted({*facts.node_labels, *facts.stated_node_labels}))
    return Finding(
        pod.index,
        f"selects nodes by the label {label!r}, which nothing in this app sets{near}. Declare it with "
        f"External(app, 'existing', node_labels=[{label!r}]), TalosGpuNode(node_labels=...) or GpuNode(labels=...)",
        is_warning=True,
    )


def _values_are_those_of_nodes(facts: Facts, for_gpu_nodes: Iterable[Pod]) -> Iterator[Finding]:
    """Yield a problem for each pod that selects a node label with values that no declared node has.

    Args:
        facts: Facts that the library derives from the objects of the app.
        for_gpu_nodes: Pods that request GPUs or select labels of GPU nodes.
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
                    f"selects nodes by the label {label!r} with {_listed(values)}, but the nodes of this app "
                    f"have {_listed(sorted(has))}. Select one of them, or declare the label with "
                    f"External(app, 'existing', node_labels=[{label!r}])",
                    is_warning=True,
                )


def _of_products(pod: Pod, values: Sequence[str], facts: Facts) -> Iterator[Finding]:
    """Yield a problem if a pod selects only boards that do not exist.

    Boards do not exist if the library does not recognize their product names, or if no node of the inventory has them.

    Args:
        pod: Pod that selects nodes by the label ``nvidia.com/gpu.product``.
        values: Values of the label that the pod accepts.
        facts: Facts that the library derives from the objects of the app.
    """
    products = list(dict.fromkeys(value.removesuffix("-SHARED").partition("-MIG-")[0] for value in values))
    if not any(map(_may_be_a_product, products)):
        meant = [product_label(board.name) for board in map(board_called, products) if board is not None]
        near = f" (did you mean {_listed(meant)}?)" if meant else near_boards(products[0])
        yield Finding(
            pod.index,
            f"selects nodes by {PRODUCT} {_listed(products)}, which is not the name of a board{near}. Write the name "
            "that nvidia-smi prints, with dashes instead of spaces",
            # Another publisher of the label can set any value.
            is_warning=not facts.bringing("gpu-feature-discovery"),
        )
        return
    models = [] if facts.inventory is None else [node.model for node in facts.inventory.nodes]
    boards = sorted({product_label(model.name) for model in models if model is not None})
    if models and None not in models and not {*boards} & {*products}:
        yield Finding(
            pod.index,
            f"selects nodes by {PRODUCT} {_listed(products)}, which no node of the inventory has. Its nodes have "
            f"{_listed(boards)}. Select one of them, or add the node to the inventory",
            is_warning=not pod.asks,
        )


def _may_be_a_product(product: str) -> bool:
    """Check whether a text can be the product name of a board."""
    board = board_called(product)
    # The value of a label must match exactly.
    return is_full_name(product) or not near_boards(product) if board is None else product == product_label(board.name)


def _listed(values: Sequence[str]) -> str:
    """Return texts as a list in a sentence: ``'a' or 'b'``."""
    return " or ".join(map(repr, values))
