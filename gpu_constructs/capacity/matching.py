"""Which nodes take which pods: consumers that are alike and nodes that are alike, each pair looked at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any

from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.eligibility import Eligibility, placement_key
from gpu_constructs.capacity.label_index import LabelIndex
from gpu_constructs.capacity.node_offer import NodeOffer
from gpu_constructs.capacity.packing import Bin, Item, Packing, pack

_MOST_REFUSALS = 6


@dataclass(frozen=True)
class Packed:
    """An answer of the packing, in terms of consumers.

    Attributes:
        packing: The answer.
        members: For each item of the packing its consumers with their pods, in the order in which they are seated.
    """

    packing: Packing
    members: Sequence[Sequence[tuple[int, int]]]

    def lacking(self) -> dict[int, int]:
        """Give how many pods of each consumer have no place."""
        found: dict[int, int] = {}
        for item, members in enumerate(self.members):
            rest = self.packing.unplaced.get(item, 0)
            # Who comes first is seated first.
            for consumer, pods in reversed(members):
                if rest:
                    found[consumer] = found.get(consumer, 0) + min(rest, pods)
                    rest -= min(rest, pods)
        return found


class Matching:
    """Consumers and the nodes that take their pods.

    Attributes:
        consumers: Everyone who asks for GPUs.
        offers: Every node and pool.
        titles: What each consumer is called in a sentence: with its kind where another one is called the same.
        resources: What is asked for or offered, in order.
        eligibility: Which node takes whose pods, and why not.
        kinds: Offers that are alike to all consumers, as indexes.
        takers: For each consumer the kinds that take its pods.
        unsatisfied: For each consumer the kinds whose nodes get a pod of its DaemonSet that never starts there.
        uncertain: For each consumer the kinds of which that depends on labels that are not declared, each with them.
        units: Consumers whose pods start together, in the order given: the parts of a gang, any other by itself.
            Those that cannot start because no node takes one of them are left out, and those that every node gets.
        daemons: For each kind those that every one of its nodes gets and has room for.
        crowded: Kinds with no room for all that every node gets, each with those that have none.

    Source:
        kubernetes/kubernetes@v1.36.2:pkg/controller/daemon/daemon_controller.go, NodeShouldRunDaemonPod: a DaemonSet
        makes a pod wherever the node affinity and the tolerations of its template allow one. It looks neither at
        resources nor at the RuntimeClass, which admission adds to the pod afterwards.
    """

    def __init__(
        self,
        consumers: Sequence[Consumer],
        offers: Sequence[NodeOffer],
        runtime_classes: Mapping[str, Mapping[str, Any]],
    ) -> None:
        self.consumers = consumers
        self.offers = offers
        named = Counter(one.title for one in consumers)
        self.titles = [f"{one.kind} {one.title}" if named[one.title] > 1 else one.title for one in consumers]
        # After the consumers, what the controller of each DaemonSet looks at.
        self._templates = {
            index: len(consumers) + number
            for number, index in enumerate(i for i, one in enumerate(consumers) if one.is_for_each_node)
        }
        judged = [*consumers, *(_as_controller_sees(consumers[index]) for index in self._templates)]
        self.eligibility = Eligibility(judged, offers, runtime_classes)
        names = {name for one in consumers for name in one.asks} | {name for one in offers for name in one.allocatable}
        self.resources = tuple(sorted(names))
        # Of each group one is asked for all.
        asking = {group: index for index, group in reversed([*enumerate(self.eligibility.consumer_groups)])}
        offering = {group: index for index, group in reversed([*enumerate(self.eligibility.offer_groups)])}
        nodes = list(offering.items())
        by_labels = LabelIndex([offers[index] for _, index in nodes])
        accepting: dict[int, list[int]] = {group: [] for group in offering}
        for group, index in asking.items():
            for node in by_labels.candidates(placement_key(judged[index])):
                if self.eligibility.accepts(index, nodes[node][1]):
                    accepting[nodes[node][0]].append(group)
        accepted = {group: frozenset(those) for group, those in accepting.items()}
        limited = [one.only_on for one in judged if one.only_on is not None]
        by_kind: dict[object, list[int]] = {}
        for index, group in enumerate(self.eligibility.offer_groups):
            open_labels = tuple(self._open_labels(one, index) for one in self._templates)
            allowed = tuple(index in only for only in limited)
            key = (tuple(offers[index].devices), accepted[group], open_labels, allowed)
            by_kind.setdefault(key, []).append(index)
        self.kinds = list(by_kind.values())
        taking: dict[int, list[int]] = {group: [] for group in asking}
        for number, kind in enumerate(self.kinds):
            for group in accepted[self.eligibility.offer_groups[kind[0]]]:
                taking[group].append(number)
        common = {group: frozenset(numbers) for group, numbers in taking.items()}
        takers = [
            self._allowed(one, common[group])
            for one, group in zip(judged, self.eligibility.consumer_groups, strict=True)
        ]
        self.takers = [
            kinds & takers[self._templates[index]] if index in self._templates else kinds
            for index, kinds in enumerate(takers[: len(consumers)])
        ]
        self.unsatisfied: dict[int, list[int]] = {}
        self.uncertain: dict[int, dict[int, tuple[str, ...]]] = {}
        for index, template in self._templates.items():
            for number in sorted(takers[template] - self.takers[index]):
                labels = self._open_labels(index, self.kinds[number][0])
                if labels:
                    self.uncertain.setdefault(index, {})[number] = labels
                else:
                    self.unsatisfied.setdefault(index, []).append(number)
        self._refusals: dict[object, Mapping[str, str]] = {}
        self._names: dict[frozenset[int], Sequence[str]] = {}
        self._sizes = [tuple(consumer.asks.get(name, 0) for name in self.resources) for consumer in consumers]
        self.units = self._units()
        self.daemons: list[list[int]] = [[] for _ in self.kinds]
        self.crowded: dict[int, list[int]] = {}
        self.bins = [
            Bin(
                tuple(offers[kind[0]].allocatable.get(name, 0) for name in self.resources),
                sum(offers[index].count for index in kind),
            )
            for kind in self.kinds
        ]
        for index, consumer in enumerate(consumers):
            for number in sorted(self.takers[index]) if consumer.is_for_each_node else ():
                self._add_daemon(index, number)

    def _allowed(self, one: Consumer, kinds: frozenset[int]) -> frozenset[int]:
        if one.refused:
            return frozenset()
        return kinds if one.only_on is None else frozenset(k for k in kinds if self.kinds[k][0] in one.only_on)

    def _open_labels(self, index: int, offer: int) -> tuple[str, ...]:
        """Return the labels, not declared for a node, that decide whether a DaemonSet makes a pod there."""
        return self.eligibility.unknown_labels(self._templates[index], offer)

    def _units(self) -> list[list[int]]:
        found: dict[object, list[int]] = {}
        for index, one in enumerate(self.consumers):
            # Parts of one object with other numbers of copies are groups of their own, as those of a RayCluster.
            key: object = (one.subject, one.copies, one.least_copies) if one.is_gang else (index,)
            if one.pods and not one.is_for_each_node:
                found.setdefault(key, []).append(index)
        return [unit for unit in found.values() if all(self.takers[index] for index in unit)]

    def _add_daemon(self, index: int, kind: int) -> None:
        held = self.bins[kind]
        left = tuple(has - takes for has, takes in zip(held.size, self._sizes[index], strict=True))
        if min(left) < 0:
            self.crowded.setdefault(kind, []).append(index)
            return
        self.daemons[kind].append(index)
        self.bins[kind] = Bin(left, held.count)

    @cached_property
    def nodes_of_daemons(self) -> Mapping[int, int]:
        """How many nodes have the pod of each consumer that every node gets."""
        found: dict[int, int] = {}
        for held, those in zip(self.bins, self.daemons, strict=True):
            for index in those:
                found[index] = found.get(index, 0) + held.count
        return found

    def pack(self, *tiers: Mapping[int, int], guest: Item | None = None) -> Packed:
        """Find a place for so many pods of each consumer.

        Args:
            tiers: Pods by consumer; those of a tier, and in it those given first, before the others.
            guest: One more item.
        """
        members: dict[object, dict[int, int]] = {}
        for number, pods in enumerate(tiers):
            for index, count in pods.items():
                if count:
                    # How many a node takes at most counts for one item: all pods of such a consumer are one.
                    is_free = self.consumers[index].most_per_node is None
                    key: object = (number, self._sizes[index], self.takers[index]) if is_free else index
                    those = members.setdefault(key, {})
                    those[index] = those.get(index, 0) + count
        items = [
            Item(
                size=self._sizes[first],
                count=sum(those.values()),
                bins=self.takers[first],
                most_per_bin=self.consumers[first].most_per_node,
            )
            for those in members.values()
            for first in [next(iter(those))]
        ]
        packing = pack(items if guest is None else [*items, guest], self.bins)
        return Packed(packing, [list(those.items()) for those in members.values()])

    def refusals(self, index: int) -> Mapping[str, str]:
        """Return why nodes do not take a consumer's pods, by the name of the node or pool; of a few of them."""
        groups = self.eligibility.consumer_groups
        group = (
            groups[index],
            groups[self._templates.get(index, index)],
            self.takers[index],
            self.consumers[index].refused,
        )
        if group not in self._refusals:
            refusing = [number for number in range(len(self.kinds)) if number not in self.takers[index]]
            self._refusals[group] = self.refusals_of(index, refusing)
        return self._refusals[group]

    def refusals_of(self, index: int, kinds: Collection[int]) -> Mapping[str, str]:
        """Return why nodes of some kinds do not take a consumer's pods, by name; of a few of them."""
        template = self._templates.get(index, index)
        return {
            self.offers[one].name: self.consumers[index].refused
            or self.eligibility.refusal(index, one)
            or self.eligibility.refusal(template, one)
            or "gives its claims something else"
            for one in islice((one for number in kinds for one in self.kinds[number]), _MOST_REFUSALS)
        }

    def names(self, kinds: Collection[int]) -> Sequence[str]:
        """Give the nodes and pools of some kinds, in the order of the inventory."""
        key = frozenset(kinds)
        if key not in self._names:
            self._names[key] = [
                self.offers[i].name for i in sorted(one for number in key for one in self.kinds[number])
            ]
        return self._names[key]

    def size_of(self, index: int) -> tuple[int, ...]:
        """Give what one pod of a consumer takes, by the order of the resources."""
        return self._sizes[index]


def _as_controller_sees(consumer: Consumer) -> Consumer:
    """Return a DaemonSet's pods with what their controller looks at only."""
    spec = {key: value for key, value in consumer.pod_spec.items() if key != "runtimeClassName"}
    return replace(consumer, asks={}, most_asked={}, pod_spec=spec)
