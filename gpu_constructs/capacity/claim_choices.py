"""The devices that pods get if their ResourceClaims list alternatives in ``firstAvailable``.

A *consumer* is a workload as the capacity plan sees it: equal pods of one object that request GPUs. The other modules
of the plan need consumers that request one fixed set of devices. If a consumer accepts alternative sets, this module
makes a copy of the consumer, a *variant*, for each set. The variants replace the consumer and share its pods.

On each node, the DRA allocator of kube-scheduler takes the first alternative whose devices are free there. A request
with ``allocationMode: All`` takes every matching device of the node, so every such device must be free.

Source:
    kubernetes/kubernetes@v1.36.2:staging/src/k8s.io/dynamic-resource-allocation/structured/internal/stable
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, islice
from typing import Any

from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.gathered import grouped
from gpu_constructs.capacity.matching import Matching
from gpu_constructs.capacity.packing import Bin, Item, pack
from gpu_constructs.capacity.planned import NodeOffer
from gpu_constructs.records import dataclass, replace


@dataclass(frozen=True)
class Chosen:
    """The workloads (consumers) after the capacity plan chose among the alternative devices in their claims.

    A claim can list alternatives, for example one H100 or two A100. The plan replaces a workload with such a claim by
    one workload for each alternative, and divides the pods among these workloads.

    Attributes:
        consumers: Workloads whose pods each request one fixed set of devices.
        is_open: Whether kube-scheduler may choose another alternative for a pod than the plan chose. If True, the plan
            does not know how much room remains.
        is_least_sure: Whether an answer "no room" for the long-running pods (pods that run until someone deletes them)
            is certain. If False, another choice of devices may leave room.
        is_sure: Whether an answer "no room" for all pods together is certain.
    """

    consumers: Sequence[Consumer]
    is_open: bool = False
    is_least_sure: bool = True
    is_sure: bool = True


def chosen(
    consumers: Sequence[Consumer], offers: Sequence[NodeOffer], runtime_classes: Mapping[str, Mapping[str, Any]]
) -> Chosen:
    """Return a ``Chosen`` whose workloads (consumers) each request one fixed set of devices.

    If the claims of a workload list alternative devices, one workload for each alternative (a variant) replaces the
    original workload. The variants divide the pods of the original workload. Workloads without alternatives stay
    unchanged.

    Args:
        consumers: Workloads whose pods request GPUs.
        offers: Nodes and node pools with their devices.
        runtime_classes: Field ``scheduling`` of each RuntimeClass, by name.
    """
    if not offers or not any(one.choices for one in consumers):
        return Chosen(consumers)
    variants = [_variants(one, offers) if one.choices else [one] for one in consumers]
    matching = Matching([*chain.from_iterable(variants)], offers, runtime_classes)
    numbers = iter(range(sum(map(len, variants))))
    members = [list(islice(numbers, len(those))) for those in variants]
    # Drop variants that no node accepts, but keep the first variant if no node accepts any variant.
    members = [[one for one in those if matching.takers[one]] or those[:1] for those in members]
    return _Split(consumers, members, matching).made()


def _variants(consumer: Consumer, offers: Sequence[NodeOffer]) -> list[Consumer]:
    """Return copies of a workload (variants), one for each alternative set of devices that some node can allocate.

    The variant with the preferred devices comes first. If no node can allocate any of the sets, the result is one copy
    that requests the preferred set.
    """
    given = [_given(consumer, offer) for offer in offers]
    # The same set of devices may be the first alternative on one node, and a later alternative on another node.
    ranked = sorted((rank, asks, number) for number, one in enumerate(given) for asks, rank in one.items())
    nodes = grouped((asks, number) for _, asks, number in ranked)
    found = [replace(consumer, asks=dict(asks), choices=(), only_on=frozenset(those)) for asks, those in nodes.items()]
    if not found:
        wanted = [consumer.choices[0].wanted(one.allocatable) for one in offers]
        return [replace(consumer, asks=max(wanted, key=lambda one: sum(one.values())), choices=())]
    if consumer.is_for_each_node:
        # The first variant also stands for the DaemonSet pods on nodes that have none of the alternatives.
        homeless = [number for number, one in enumerate(given) if not one]
        found[0] = replace(found[0], only_on=frozenset([*(found[0].only_on or ()), *homeless]))
    if len(found) == 1:
        return found
    return [replace(one, part=f"{one.part} on {' and '.join(one.asks) or 'no GPU'}".strip()) for one in found]


def _given(consumer: Consumer, offer: NodeOffer) -> dict[tuple[tuple[str, int], ...], int]:
    """Return the alternative sets of devices that a node can allocate to a pod of a workload, each with its rank.

    Returns:
        A dict. Each key is a set of devices, as pairs of DRA device class and number of devices, for example
        ``(("gpu.nvidia.com", 2),)``. Each value is the rank of the set: its position in ``consumer.choices``, where 0
        is the preferred set. For a DaemonSet, the dict contains only the first set that the node can allocate.
    """
    tried = enumerate(choice.on(offer.allocatable) for choice in consumer.choices)
    able = [(tuple(sorted(asks.items())), rank) for rank, asks in tried if asks is not None]
    # A DaemonSet has one pod on the node, which gets the first alternative that the node has.
    return dict(able[:1] if consumer.is_for_each_node else reversed(able))


class _Split:
    """A division of the pods of each workload among the alternative devices that its claims list.

    A variant is a copy of a workload that requests one of the alternatives. At first, all pods of a workload belong to
    the variant with the preferred devices. Pods without room then move to the next variant.
    """

    def __init__(self, consumers: Sequence[Consumer], members: Sequence[Sequence[int]], matching: Matching) -> None:
        self._consumers = consumers
        self._members = members
        self._matching = matching
        self._able = {index for unit in matching.units for index in unit}
        self._open = [at for at, those in enumerate(members) if len(those) > 1 and not consumers[at].is_for_each_node]

    def made(self) -> Chosen:
        """Return a ``Chosen`` with the workloads after the division of their pods.

        Variants replace each workload that accepts alternative devices. A variant is a copy of the workload that
        requests one of the alternatives, with its share of the pods. The result omits variants without pods, but it
        contains at least one variant of each workload.
        """
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
        """Divide the pods of each workload among its variants.

        A variant is a copy of a workload that requests one of its alternative devices.

        Args:
            pods: Number of pods of each workload, in the order of the workloads.
            least: Number of pods of each variant that must not move to another variant, by the index of the variant.

        Returns:
            A pair. The first member is a dict from the index of the variant to the number of its pods. The second
            member is True if the result is certain: all pods have room, or no division has room for all pods. If
            False, another division may have room for all pods.
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
        """Move pods without room to the next variant of their workload. Return the new number of pods of each variant.

        A variant is a copy of a workload that requests one of the alternative devices of its claims, for example one
        H100 or two A100. The keys of all dicts are indices of variants.

        Args:
            counts: Number of pods of each variant before the move.
            least: Number of pods of each variant that must not move to another variant.
        """
        found = dict(counts)
        for at in self._open:
            those = self._members[at]
            # Pods that lack room in every variant return to the first variant.
            for one, after in zip(those, [*those[1:], those[0]], strict=True):
                others = {other: n for other, n in found.items() if other != one and other in self._able}
                rest = self._matching.pack(others, {one: found[one]}).lacking().get(one, 0)
                # Pods that must run together move to the next variant together.
                rest = found[one] if rest and self._consumers[at].is_gang else min(rest, found[one] - least.get(one, 0))
                found[one] -= rest
                found[after] += rest
        return found

    def _are_too_many(self, counts: Sequence[int]) -> bool:
        """Check whether pods need more devices than the cluster has, even if each pod gets its smallest alternative.

        Args:
            counts: Number of pods of each workload, in the order of the workloads.
        """
        bins = [Bin((sum(one.size),), one.count) for one in self._matching.bins]
        items = []
        for consumer, count, those in zip(self._consumers, counts, self._members, strict=True):
            kinds = frozenset[int]().union(*(self._matching.takers[one] for one in those))
            if kinds and not consumer.is_for_each_node:
                items.append(Item((min(sum(self._matching.size_of(one)) for one in those),), count, kinds))
        return pack(items, bins).answer == "no"


def _with_pods(consumer: Consumer, pods: int, least: int) -> Consumer:
    """Return a copy of a workload with ``pods`` pods, without extra pods for updates.

    A gang (pods that must run together) stays unchanged, or loses all pods if ``pods`` is 0.

    Args:
        consumer: Workload.
        pods: Number of pods of the copy.
        least: Number of pods of the copy that run until someone deletes them.
    """
    if consumer.is_gang:
        return consumer if pods else replace(consumer, copies=0, least_copies=0)
    return replace(consumer, copies=pods, least_copies=min(pods, least), pods_each=1, surge=0, surge_is_needed=False)
