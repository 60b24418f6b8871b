"""Which of several choices each node gives the pods of a claim, so that every consumer asks for one thing.

kubernetes/kubernetes@v1.36.2:staging/src/k8s.io/dynamic-resource-allocation/structured/internal/stable: on each node
the allocator takes the first choice of ``firstAvailable`` whose devices are free there. ``allocationMode: All`` takes
every device of the node that matches, and fails there as long as one of them is taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.gathered import grouped
from gpu_constructs.capacity.matching import Matching
from gpu_constructs.capacity.packing import Bin, Item, pack
from gpu_constructs.capacity.planned import NodeOffer


@dataclass(frozen=True)
class Chosen:
    """Consumers without choices.

    Attributes:
        consumers: Those given; in place of one with choices there is one for each choice that is taken.
        is_open: Whether some pods could take something else, so that others find more room or less.
        is_least_sure: Whether a lack of room for what always runs would hold whatever they take.
        is_sure: Whether the same goes for all that may run.
    """

    consumers: Sequence[Consumer]
    is_open: bool = False
    is_least_sure: bool = True
    is_sure: bool = True


def chosen(
    consumers: Sequence[Consumer], offers: Sequence[NodeOffer], runtime_classes: Mapping[str, Mapping[str, Any]]
) -> Chosen:
    """Return consumers each of which asks for one thing.

    Args:
        consumers: Everyone who asks for GPUs.
        offers: Offers of each node or pool.
        runtime_classes: The member ``scheduling`` of RuntimeClasses, by name.
    """
    if not offers or not any(one.choices for one in consumers):
        return Chosen(consumers)
    variants = [_variants(one, offers) if one.choices else [one] for one in consumers]
    matching = Matching([*chain.from_iterable(variants)], offers, runtime_classes)
    numbers = iter(range(sum(map(len, variants))))
    members = [list(islice(numbers, len(those))) for those in variants]
    # What no node takes is not a choice, but for the first of those that have no other.
    members = [[one for one in those if matching.takers[one]] or those[:1] for those in members]
    return _Split(consumers, members, matching).made()


def _variants(consumer: Consumer, offers: Sequence[NodeOffer]) -> list[Consumer]:
    """Return a consumer once for each thing that a node may give it, in the order of its choices."""
    given = [_given(consumer, offer) for offer in offers]
    # The same thing may be a better choice on one node than on another.
    ranked = sorted((rank, asks, number) for number, one in enumerate(given) for asks, rank in one.items())
    nodes = grouped((asks, number) for _, asks, number in ranked)
    found = [replace(consumer, asks=dict(asks), choices=(), only_on=frozenset(those)) for asks, those in nodes.items()]
    if not found:
        wanted = [consumer.choices[0].wanted(one.allocatable) for one in offers]
        return [replace(consumer, asks=max(wanted, key=lambda one: sum(one.values())), choices=())]
    if consumer.is_for_each_node:
        # The pods of a DaemonSet that find nothing are those of one of them.
        homeless = [number for number, one in enumerate(given) if not one]
        found[0] = replace(found[0], only_on=frozenset([*(found[0].only_on or ()), *homeless]))
    if len(found) == 1:
        return found
    return [replace(one, part=f"{one.part} on {' and '.join(one.asks) or 'no GPU'}".strip()) for one in found]


def _given(consumer: Consumer, offer: NodeOffer) -> dict[tuple[tuple[str, int], ...], int]:
    """Return what a node may give the pods, each with its place among the choices."""
    tried = enumerate(choice.on(offer.allocatable) for choice in consumer.choices)
    able = [(tuple(sorted(asks.items())), rank) for rank, asks in tried if asks is not None]
    # A DaemonSet has one pod on the node, which takes the first choice there is.
    return dict(able[:1] if consumer.is_for_each_node else reversed(able))


class _Split:
    """The pods of each consumer, divided among its choices: an earlier choice gets pods first."""

    def __init__(self, consumers: Sequence[Consumer], members: Sequence[Sequence[int]], matching: Matching) -> None:
        self._consumers = consumers
        self._members = members
        self._matching = matching
        self._able = {index for unit in matching.units for index in unit}
        self._open = [at for at, those in enumerate(members) if len(those) > 1 and not consumers[at].is_for_each_node]

    def made(self) -> Chosen:
        """Return the consumers that this comes to."""
        steady, is_least_sure = self._placed([one.least_pods for one in self._consumers], {})
        everything, is_sure = self._placed([one.pods for one in self._consumers], steady)
        found: list[Consumer] = []
        for at, those in enumerate(self._members):
            some = [self._matching.consumers[one] for one in those]
            if at in self._open:
                some = [_with_pods(one, everything[i], steady[i]) for one, i in zip(some, those, strict=True)]
                some = [one for one in some if one.pods] or some[:1]
            found += some
        return Chosen(found, bool(self._open), is_least_sure, is_sure)

    def _placed(self, pods: Sequence[int], least: Mapping[int, int]) -> tuple[dict[int, int], bool]:
        """Return the pods of each variant, and whether a lack of room then holds for all other choices.

        Args:
            pods: Pods of each consumer.
            least: Those of each variant that stay where they are.
        """
        counts = {one: least.get(one, 0) for those in self._members for one in those}
        for those, count in zip(self._members, pods, strict=True):
            counts[those[0]] += count - sum(counts[one] for one in those)
        found = self._filled(counts, least)
        fixed = {those[0]: pods[at] for at, those in enumerate(self._members) if at not in self._open}
        return found, self._answer(found) == "yes" or self._answer(fixed) == "no" or self._are_too_many(pods)

    def _answer(self, counts: Mapping[int, int]) -> str:
        return self._matching.pack({one: n for one, n in counts.items() if one in self._able}).packing.answer

    def _filled(self, counts: Mapping[int, int], least: Mapping[int, int]) -> dict[int, int]:
        """Return the pods of each variant, those without a place moved to the next choice.

        Args:
            counts: Pods of each variant.
            least: Those of them that stay where they are.
        """
        found = dict(counts)
        for at in self._open:
            those = self._members[at]
            # What has no place in any choice is said to want the first one.
            for one, after in zip(those, [*those[1:], those[0]], strict=True):
                others = {other: n for other, n in found.items() if other != one and other in self._able}
                rest = self._matching.pack(others, {one: found[one]}).lacking().get(one, 0)
                # The pods of a gang are not divided.
                rest = found[one] if rest and self._consumers[at].is_gang else min(rest, found[one] - least.get(one, 0))
                found[one] -= rest
                found[after] += rest
        return found

    def _are_too_many(self, counts: Sequence[int]) -> bool:
        """Check whether so many pods of each consumer need more devices than there are, whatever each one takes."""
        bins = [Bin((sum(one.size),), one.count) for one in self._matching.bins]
        items = []
        for consumer, count, those in zip(self._consumers, counts, self._members, strict=True):
            kinds = frozenset[int]().union(*(self._matching.takers[one] for one in those))
            if kinds and not consumer.is_for_each_node:
                items.append(Item((min(sum(self._matching.size_of(one)) for one in those),), count, kinds))
        return pack(items, bins).answer == "no"


def _with_pods(consumer: Consumer, pods: int, least: int) -> Consumer:
    """Return a consumer with so many pods; an update, whose pods may choose otherwise, is not looked at."""
    if consumer.is_gang:
        return consumer if pods else replace(consumer, copies=0, least_copies=0)
    return replace(consumer, copies=pods, least_copies=min(pods, least), pods_each=1, surge=0, surge_is_needed=False)
