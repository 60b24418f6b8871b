"""Where slots count memory: whether all nodes count alike, and whether their GPUs can be counted so."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from math import ceil

from gpu_constructs.catalog.inventory import GpuNode
from gpu_constructs.catalog.sharing import GPU, Sharing
from gpu_constructs.facts.app import Facts
from gpu_constructs.facts.provided import Provided

_CONFIG = "nvidia.com/device-plugin.config"
_MEBIBYTE = 1024 * 1024


def units_of(facts: Facts, resource: str) -> set[str | None]:
    """Return what a slot of a resource stands for on the nodes of an app: memory, or a turn (None)."""
    return {sharing.vram_unit for offer in facts.provided for sharing in _sharings(offer, resource)}


def _sharings(offer: Provided, resource: str) -> list[Sharing]:
    # Of several configurations gpu_resources tells one.
    each = [one.sharing for one in offer.gpu_offers if one.sharing.gpu_resource == resource]
    return each or [sharing for name, sharing in offer.gpu_resources.items() if name == resource]


def slots_for(vram: Decimal, sharing: Sharing) -> int:
    """Return how many units so much memory is, be it more than a GPU has."""
    return ceil(vram / ((sharing.vram_unit_mib or 1) * _MEBIBYTE))


def miscounted(node: GpuNode, sharing: Sharing) -> str | None:
    """Return why slots cannot count the memory of a node's GPU; None where they can, or count turns.

    Args:
        node: The node or pool.
        sharing: How its GPUs are shared.
    """
    unit = sharing.vram_unit_mib
    if unit is None:
        return None
    if node.gpus > 1:
        return (
            f"units of memory are right for one GPU in a node, and each of {node.name!r} has {node.gpus}, of which a "
            "pod may get units of several"
        )
    usable = node.usable_vram_mib
    if usable is not None and unit * sharing.replicas > usable:
        return f"{sharing.replicas} units of {sharing.vram_unit} are more than the {usable}Mi that {node.name!r} has"
    return None


def miscounted_nodes(facts: Facts) -> Iterator[tuple[int, str, bool]]:
    """Return the provider, what is wrong, and whether another provider may serve that node."""
    if facts.inventory is None:
        return
    providers = [(index, offer) for index, offer in enumerate(facts.provided) if offer.gpu_resources]
    for index, offer in providers:
        for node in facts.inventory.nodes:
            # What was seen in a cluster is so until the app's own plugin comes.
            sharing = None if node.is_observed else node.sharing
            sharing = sharing or _sharing_by(offer, node)
            why = None if sharing is None else miscounted(node, sharing)
            if why is not None:
                yield index, why, len(providers) > 1


def _sharing_by(offer: Provided, node: GpuNode) -> Sharing | None:
    if not offer.gpu_offers:
        return offer.gpu_resources.get(GPU) or offer.gpu_resources.get(f"{GPU}.shared")
    wanted = node.labels.get(_CONFIG)
    named = [one for one in offer.gpu_offers if one.config == wanted or len(offer.gpu_offers) == 1]
    chosen = named or [one for one in offer.gpu_offers if one.is_default]
    return chosen[0].sharing if chosen else None
