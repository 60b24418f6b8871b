"""Functions for rules about slots that each stand for an amount of GPU memory (``Sharing.vram_units``)."""

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
    """Return the amounts of GPU memory, such as ``1Gi``, that a slot of a resource represents on the nodes.

    The result contains None if some slots do not stand for an amount of GPU memory, for example with time-slicing.
    """
    return {sharing.vram_unit for offer in facts.provided for sharing in _sharings(offer, resource)}


def _sharings(offer: Provided, resource: str) -> list[Sharing]:
    """Return the sharing settings with which the device plugin of a construct advertises a resource.

    The list has an element for each configuration of the device plugin that advertises this resource.

    Args:
        offer: Declaration of the construct about its effects on the cluster.
        resource: Name of the extended resource.
    """
    # If the device plugin has several configurations, gpu_resources contains only one of them.
    each = [one.sharing for one in offer.gpu_offers if one.sharing.gpu_resource == resource]
    return each or [sharing for name, sharing in offer.gpu_resources.items() if name == resource]


def slots_for(vram: Decimal, sharing: Sharing) -> int:
    """Return the number of slots that a pod needs for an amount of GPU memory. A GPU can have fewer slots than this.

    Args:
        vram: GPU memory, in bytes.
        sharing: Sharing settings, which state the GPU memory for which a slot stands.
    """
    return ceil(vram / ((sharing.vram_unit_mib or 1) * _MEBIBYTE))


def miscounted(node: GpuNode, sharing: Sharing) -> str | None:
    """Return the reason why slots cannot stand for the GPU memory of a node.

    Return None if they can, or if the sharing settings do not use slots for memory.

    Args:
        node: Node or pool of equal nodes.
        sharing: Sharing settings of the GPUs of the node.
    """
    unit = sharing.vram_unit_mib
    if unit is None:
        return None
    if node.gpus > 1:
        return f"slots for memory need nodes with one GPU, but each node of {node.name!r} has {node.gpus}"
    usable = node.usable_vram_mib
    if usable is not None and unit * sharing.replicas > usable:
        return f"{sharing.replicas} slots of {sharing.vram_unit} are more than the {usable}Mi that {node.name!r} has"
    return None


def miscounted_nodes(facts: Facts) -> Iterator[tuple[int, str, bool]]:
    """Yield a triple for each device plugin and each node on which its slots cannot stand for GPU memory.

    The triple contains the index in ``Facts.provided`` of the construct that runs the device plugin, the reason, and a
    bool. The bool is True if the app has another device plugin.
    """
    if facts.inventory is None:
        return
    providers = [(index, offer) for index, offer in enumerate(facts.provided) if offer.gpu_resources]
    for index, offer in providers:
        for node in facts.inventory.nodes:
            # The device plugin of the app replaces the sharing of a running cluster.
            sharing = None if node.is_observed else node.sharing
            sharing = sharing or _sharing_by(offer, node)
            why = None if sharing is None else miscounted(node, sharing)
            if why is not None:
                yield index, why, len(providers) > 1


def _sharing_by(offer: Provided, node: GpuNode) -> Sharing | None:
    """Return the sharing settings that the device plugin of a construct applies on a node.

    Return None if no configuration of the device plugin applies to the node.

    Args:
        offer: Declaration of the construct about its effects on the cluster.
        node: Node or pool of equal nodes.
    """
    if not offer.gpu_offers:
        return offer.gpu_resources.get(GPU) or offer.gpu_resources.get(f"{GPU}.shared")
    wanted = node.labels.get(_CONFIG)
    named = [one for one in offer.gpu_offers if one.config == wanted or len(offer.gpu_offers) == 1]
    chosen = named or [one for one in offer.gpu_offers if one.is_default]
    return chosen[0].sharing if chosen else None
