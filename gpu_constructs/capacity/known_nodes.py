"""Which nodes that an app knows take the pods of a DaemonSet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpu_constructs.capacity.eligibility import daemon_key, offer_key, refusal_of
from gpu_constructs.capacity.node_labels import is_of_sharing, labels_of
from gpu_constructs.capacity.node_offer import NodeOffer
from gpu_constructs.inventory import GpuInventory
from gpu_constructs.provided import GpuNodes
from gpu_constructs.sharing import Sharing


def nodes_taking(
    pod_spec: Mapping[str, Any], inventory: GpuInventory | None, configured: Sequence[GpuNodes]
) -> frozenset[str]:
    """Return the names of known nodes that take the pods of a DaemonSet.

    Args:
        pod_spec: What decides it, as Kubernetes writes it.
        inventory: The GPU nodes; None where they are not declared.
        configured: Nodes whose configuration the app makes, which stand for themselves without an inventory.
    """
    demands = daemon_key(pod_spec)
    return frozenset(
        node.name for node in _known(inventory, configured) if refusal_of(demands, offer_key(node)) is None
    )


def _known(inventory: GpuInventory | None, configured: Sequence[GpuNodes]) -> Iterator[NodeOffer]:
    for node in inventory.nodes if inventory is not None else ():
        # How its GPUs are shared, and so what these labels say, is not settled here.
        labels = {key: value for key, value in labels_of(node, Sharing.none()).items() if not is_of_sharing(key)}
        taints = [taint.to_manifest() for taint in node.taints]
        yield NodeOffer(name=node.name, count=node.count, devices=(), labels=labels, taints=taints)
    if inventory is None:
        for number, nodes in enumerate(configured):
            yield NodeOffer(name=f"#{number}", count=1, devices=(), labels=nodes.labels, taints=nodes.taints)
