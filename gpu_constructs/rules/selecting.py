"""Labels and values that pods select, compared with those that nodes can have: part of R12."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from gpu_constructs.errors import did_you_mean
from gpu_constructs.gpu_models import board_called, is_full_name, near_boards
from gpu_constructs.node_label_domains import is_set_by_others
from gpu_constructs.pod_specs import node_values_required
from gpu_constructs.rules.facts import Facts, Pod
from gpu_constructs.rules.finding import Finding
from gpu_constructs.workload.gpu_request import product_label

PRODUCT = "nvidia.com/gpu.product"
"""Node label with the name of the boards, as GPU Feature Discovery writes it."""


def of_nobody(pod: Pod, label: str, facts: Facts) -> Finding:
    """Return the warning that a pod selects a label which nothing in the app sets or declares."""
    near = did_you_mean(label, sorted({*facts.node_labels, *facts.stated_node_labels}))
    return Finding(
        pod.index,
        f"selects nodes by the label {label!r}, which nothing in this app sets{near}; declare it with "
        f"External(app, 'existing', node_labels=[{label!r}]), TalosGpuNode(node_labels=...) or GpuNode(labels=...)",
        is_warning=True,
    )


def values_are_those_of_nodes(facts: Facts, for_gpu_nodes: Iterable[Pod]) -> Iterator[Finding]:
    """Yield pods whose selectors name a value that no node has.

    Args:
        facts: The app.
        for_gpu_nodes: Pods that are meant for nodes with GPUs, whose labels the app may know.
    """
    for pod in for_gpu_nodes:
        for label, values in node_values_required(pod.spec):
            has = facts.stated_node_labels.get(label, frozenset())
            if not values or has & {*values}:
                continue
            if label == PRODUCT and facts.publishes(label):
                yield from _of_products(pod, values, facts)
            elif has and not facts.publishes(label) and not is_set_by_others(label):
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
            is_warning=all("gpu-feature-discovery" not in offer.components for offer in facts.provided),
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
