"""Which nodes are better shared another way, where memory or slots do not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpu_constructs.capacity.node_offer import NodeOffer
from gpu_constructs.capacity.plan import Plan
from gpu_constructs.capacity.problems import MOST_REPLICAS
from gpu_constructs.capacity.recommendation import SharingRecommendation, recommend_sharing
from gpu_constructs.inventory import GpuInventory, GpuNode

_USUAL_UNIT = "1Gi"
_MOST = 3
_MOST_NAMED = 3
_MOST_REASONS = 3
_MOST_PAIRS = 100_000
"""Consumers times nodes that are looked at: of a whole fleet nothing is advised."""


def advice(plan: Plan, inventory: GpuInventory, manifests: Sequence[Mapping[str, Any]]) -> list[str]:
    """Give a few sentences on how to share the nodes where something does not fit.

    Args:
        plan: The plan.
        inventory: The nodes it is made for.
        manifests: RuntimeClasses, which decide where pods go.
    """
    offers = {node.offer.name: node.offer for node in plan.nodes}
    tight, short = _nodes_short_of_memory(plan), _nodes_short_of_slots(plan)
    asking = [one.consumer for one in plan.consumers if one.consumer.asks and (one.placed or one.waiting)]
    # Of DRA the recommendation knows nothing.
    if not (tight or short) or not asking or any("/" not in name for one in asking for name in one.asks):
        return []
    if len(asking) * len(offers) > _MOST_PAIRS:
        return []
    said: dict[str, list[str]] = {}
    for node, found in zip(inventory.nodes, recommend_sharing(inventory, [*asking, *manifests]), strict=True):
        # A pool of which pods select every node by name is not there by its own name.
        if node.name not in offers or (found.mode == "exclusive" and not _has_gpus_enough(plan, inventory, node)):
            continue
        is_known = all(one.vram_mib is not None for one in asking if one.title in found.workloads)
        what = _what_to_do(
            node,
            offers[node.name],
            found,
            is_tight=node.name in tight,
            is_short=node.name in short,
            is_known=is_known,
        )
        if what:
            said.setdefault(f"{what}: {'; '.join(_reasons(found))}", []).append(node.name)
    return [f"{_named(names)}: {what}" for what, names in list(said.items())[:_MOST]]


def _reasons(found: SharingRecommendation) -> Sequence[str]:
    """Give what speaks for it, and what it leaves without a place; how many ask says that only of GPUs alone."""
    first = 0 if found.mode == "exclusive" else 1
    return found.reasons[first : first + _MOST_REASONS]


def _nodes_short_of_memory(plan: Plan) -> set[str]:
    if plan.vram == "safe":
        return set()
    return {
        node.offer.name
        for node in plan.nodes
        for one in node.devices
        if one.device.vram_mib is not None and one.worst_mib > one.device.vram_mib
    }


def _nodes_short_of_slots(plan: Plan) -> set[str]:
    subjects = {one.subject for one in plan.problems if one.kind in ("slots", "rollout")}
    return {name for one in plan.consumers if one.waiting or one.consumer.subject in subjects for name in one.nodes}


def _has_gpus_enough(plan: Plan, inventory: GpuInventory, node: GpuNode) -> bool:
    """Tell whether what always runs would have a place without sharing, by count."""
    those = [one for one in plan.consumers if node.name in one.nodes]
    reached = {name for one in those for name in one.nodes}
    wanted = 0
    for one in those:
        pods = one.placed + one.waiting if one.consumer.is_for_each_node else one.consumer.least_pods
        wanted += pods * max(one.consumer.asks.values())
    return wanted <= sum(each.gpus * each.count for each in inventory.nodes if each.name in reached)


def _what_to_do(
    node: GpuNode,
    offer: NodeOffer,
    found: SharingRecommendation,
    *,
    is_tight: bool,
    is_short: bool,
    is_known: bool,
) -> str | None:
    """Say what to change; None where it is so already, or would help nothing."""
    is_divided = any(device.profile for device in offer.devices)
    slots = max((device.slots for device in offer.devices), default=1)
    replicas, sharing = found.sharing.replicas, found.sharing
    renamed = ", rename_by_default=True" if sharing.rename_by_default else ""
    if found.mode == "mig":
        return f"divide it by MIG with mig_layout={found.mig_layout}" if is_tight and not is_divided else None
    if is_divided or not found.workloads:
        return None
    if found.mode == "exclusive":
        return "give each pod a GPU of its own with Sharing.none()" if is_tight and slots > 1 else None
    if found.mode == "vram-units":
        counts_memory = slots == replicas or (node.sharing is not None and node.sharing.vram_unit is not None)
        if (is_tight or (is_short and slots < replicas)) and not counts_memory:
            unit = "" if sharing.vram_unit == _USUAL_UNIT else f", unit={sharing.vram_unit!r}"
            given = f"vram='{node.usable_vram_mib}Mi'{unit}{renamed}"
            return f"share it by Sharing.vram_units({given})"
        return None
    helps = (is_tight and is_known and replicas < slots) or (is_short and slots < replicas <= MOST_REPLICAS)
    if found.mode == "time-slicing" and helps:
        return f"share it by Sharing.time_slicing(replicas={replicas}{renamed})"
    return None


def _named(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
