"""Nodes of a pool that pods select by name: each name is that of one node at most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.node_offer import NodeOffer
from gpu_constructs.capacity.placement_keys import NODE_NAME, completed, placement_key
from gpu_constructs.placement import HOSTNAME


def with_named_nodes(
    consumers: Sequence[Consumer], offers: Sequence[NodeOffer], runtime_classes: Mapping[str, Mapping[str, Any]]
) -> list[NodeOffer]:
    """Return nodes and pools, with one node of a pool by itself for each name that pods want.

    A name that no node of the inventory has may be that of a node of any pool.

    Args:
        consumers: Everyone who asks for GPUs.
        offers: What each node or pool offers.
        runtime_classes: The member ``scheduling`` of RuntimeClasses, by name.
    """
    if all(one.count == 1 for one in offers):
        return list(offers)
    declared = {name for one in offers if one.count == 1 for name in (one.name, one.labels.get(HOSTNAME))}
    wanted = dict.fromkeys(name for one in consumers for name in _names(one, runtime_classes) if name not in declared)
    if not wanted:
        return list(offers)
    return [each for one in offers for each in (_apart(one, list(wanted)) if one.count > 1 else (one,))]


def _names(consumer: Consumer, runtime_classes: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    demands = completed(placement_key(consumer), runtime_classes)
    if demands.node_name:
        yield demands.node_name
    yield from (value for key, value in demands.selector if key == HOSTNAME)
    for term in demands.terms or ():
        for rule in term:
            if rule.key in (HOSTNAME, NODE_NAME) and rule.operator == "In":
                yield from rule.values


def _apart(pool: NodeOffer, wanted: Sequence[str]) -> Iterator[NodeOffer]:
    # A host name declared for a pool is that of one of its nodes.
    labels = {key: value for key, value in pool.labels.items() if key != HOSTNAME}
    names = wanted[: pool.count]
    for name in names:
        note = f"pods select it by name: taken as a node of the pool {pool.name}"
        notes = (note,) if pool.devices else (note, *pool.notes)
        yield replace(pool, name=name, count=1, labels={**labels, HOSTNAME: name}, notes=notes)
    if len(names) < pool.count:
        yield replace(pool, count=pool.count - len(names), labels=labels)
