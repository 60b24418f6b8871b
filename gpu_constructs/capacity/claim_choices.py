"""Which of several choices each node gives the pods of a claim, so that every consumer asks for one thing.

kubernetes/kubernetes@v1.36.2:staging/src/k8s.io/dynamic-resource-allocation/structured/internal/stable: on each node
the allocator takes the first choice of ``firstAvailable`` whose devices are free there. ``allocationMode: All`` takes
every device of the node that matches, and fails there as long as one of them is taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.matching import Matching
from gpu_constructs.capacity.node_offer import NodeOffer
from gpu_constructs.capacity.packing import Bin, Item, pack

_UNDECIDED = "whether another of its choices has a place for {} of its pods was not found out: not counted"


@dataclass(frozen=True)
class Chosen:
    """Consumers without choices.

    Attributes:
        consumers: Those given; in place of one with choices there is one for each choice that is taken.
        is_decided: Whether all pods were given to a choice, or proved to have no place in any.
    """

    consumers: Sequence[Consumer]
    is_decided: bool = True


def chosen(
    consumers: Sequence[Consumer], offers: Sequence[NodeOffer], runtime_classes: Mapping[str, Mapping[str, Any]]
) -> Chosen:
    """Return consumers each of which asks for one thing.

    Args:
        consumers: Everyone who asks for GPUs.
        offers: What each node or pool offers.
        runtime_classes: The member ``scheduling`` of RuntimeClasses, by name.
    """
    if not any(one.choices for one in consumers):
        return Chosen(consumers)
    variants: list[Consumer] = []
    members: list[list[int]] = []
    for consumer in consumers:
        those = _variants(consumer, offers) if consumer.choices else [consumer]
        members.append([*range(len(variants), len(variants) + len(those))])
        variants += those
    matching = Matching(variants, offers, runtime_classes)
    # What no node takes is no choice, but for the first of those that have no other.
    members = [[one for one in those if matching.takers[one]] or those[:1] for those in members]
    return _Split(consumers, members, matching).made()


def _variants(consumer: Consumer, offers: Sequence[NodeOffer]) -> list[Consumer]:
    """Return a consumer once for each thing that a node may give it, in the order of its choices."""
    where: dict[tuple[tuple[str, int], ...], list[int]] = {}
    ranks: dict[tuple[tuple[str, int], ...], int] = {}
    homeless: list[int] = []
    for number, offer in enumerate(offers):
        given = [(rank, choice.on(offer.allocatable)) for rank, choice in enumerate(consumer.choices)]
        able = [(rank, tuple(sorted(asks.items()))) for rank, asks in given if asks is not None]
        homeless += [] if able else [number]
        # A DaemonSet has one pod on the node, which takes the first choice there is.
        for rank, asks in able[:1] if consumer.is_for_each_node else able:
            where.setdefault(asks, []).append(number)
            ranks[asks] = min(rank, ranks.get(asks, rank))
    found: list[Consumer] = []
    for asks in sorted(where, key=lambda one: (ranks[one], one)):
        # The pods of a DaemonSet that find nothing are those of one of them.
        more = homeless if consumer.is_for_each_node and not found else []
        only = frozenset([*where[asks], *more])
        found.append(replace(consumer, asks=dict(asks), most_asked={}, choices=(), only_on=only))
    if len(found) < 2:
        return found or [replace(consumer, choices=())]
    return [replace(one, part=f"{one.part} on {' and '.join(one.asks) or 'no GPU'}".strip()) for one in found]


class _Split:
    """Gives the pods of each consumer to its choices, the first ones first."""

    def __init__(self, consumers: Sequence[Consumer], members: Sequence[Sequence[int]], matching: Matching) -> None:
        self._consumers = consumers
        self._members = members
        self._matching = matching
        self._able = {index for unit in matching.units for index in unit}
        self._open = [at for at, those in enumerate(members) if len(those) > 1 and not consumers[at].is_for_each_node]

    def made(self) -> Chosen:
        """Return the consumers that this comes to."""
        counts = {those[0]: self._consumers[at].least_pods for at, those in enumerate(self._members)}
        steady, lacking = self._filled(counts, {})
        counts = dict(steady)
        for at, those in enumerate(self._members):
            counts[those[0]] += self._consumers[at].pods - self._consumers[at].least_pods
        everything, waiting = self._filled(counts, steady)
        if lacking and not self._are_too_many([one.least_pods for one in self._consumers]):
            lost = {at: max(lacking.get(at, 0), waiting.get(at, 0)) for at in (*lacking, *waiting)}
        else:
            lost = {} if self._are_too_many([one.pods for one in self._consumers]) else waiting
        found: list[Consumer] = []
        for at, those in enumerate(self._members):
            some = [self._matching.consumers[one] for one in those]
            if at in self._open:
                less = {those[0]: lost.get(at, 0)}
                numbers = [(everything.get(one, 0) - less.get(one, 0), steady.get(one, 0)) for one in those]
                some = [_with_pods(one, *pods) for one, pods in zip(some, numbers, strict=True)]
                some = [one for one in some if one.pods] or some[:1]
            if lost.get(at):
                some[0] = replace(some[0], notes=(*some[0].notes, _UNDECIDED.format(lost[at])))
            found += some
        return Chosen(found, not lost)

    def _filled(self, counts: Mapping[int, int], least: Mapping[int, int]) -> tuple[dict[int, int], dict[int, int]]:
        """Move pods that have no place to their next choice.

        Args:
            counts: Pods of each variant.
            least: Those of them that stay where they are.

        Returns:
            Pods of each variant, and how many pods of a consumer have no place; these are back at its first choice.
        """
        found = {one: counts.get(one, 0) for those in self._members for one in those}
        lost: dict[int, int] = {}
        for at in self._open:
            those, rest = self._members[at], 0
            for one, after in zip(those, [*those[1:], those[0]], strict=True):
                others = {other: n for other, n in found.items() if other != one and other in self._able}
                rest = self._matching.pack(others, {one: found[one]}).lacking().get(one, 0)
                # The pods of a gang are not divided.
                rest = found[one] if rest and self._consumers[at].is_gang else min(rest, found[one] - least.get(one, 0))
                found[one] -= rest
                found[after] += rest
            if rest:
                lost[at] = rest
        return found, lost

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
