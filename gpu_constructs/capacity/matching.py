"""Which nodes take which pods: consumers that are alike and nodes that are alike, each pair looked at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import islice
from typing import Any

from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.eligibility import Eligibility
from gpu_constructs.capacity.gathered import grouped, summed
from gpu_constructs.capacity.packing import Bin, Item, Packing, pack
from gpu_constructs.capacity.placement_keys import NODE_NAME, placement_key
from gpu_constructs.capacity.planned import NodeOffer
from gpu_constructs.capacity.wording import joined
from gpu_constructs.kube.placement import HOSTNAME

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

    def seated(self) -> Iterator[tuple[int, int, int]]:
        """Return how many pods have a place, by item and consumer: who comes first is seated first."""
        for item, members in enumerate(self.members):
            left = sum(pods for _, pods in members) - self.packing.unplaced.get(item, 0)
            for consumer, pods in members:
                yield item, consumer, min(pods, left)
                left -= min(pods, left)

    def lacking(self) -> dict[int, int]:
        """Return how many pods of each consumer have no place."""
        seats = summed((consumer, pods) for _, consumer, pods in self.seated())
        wanted = summed(member for members in self.members for member in members)
        return {consumer: pods - seats[consumer] for consumer, pods in wanted.items() if pods > seats[consumer]}


class Matching:
    """Consumers and the nodes that take their pods.

    Attributes:
        consumers: Everyone who asks for GPUs.
        offers: Every node and pool.
        titles: Name of each consumer in a sentence: with its kind if another one has the same name.
        resources: Resources that are asked for or offered, in order.
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
        self.titles = _titles(consumers)
        # After the consumers, what the controller of each DaemonSet looks at.
        daemons = [index for index, one in enumerate(consumers) if one.is_for_each_node]
        self._templates = {index: len(consumers) + number for number, index in enumerate(daemons)}
        judged = [*consumers, *(_as_controller_sees(consumers[index]) for index in daemons)]
        self.eligibility = Eligibility(judged, offers, runtime_classes)
        self.resources = _resources(consumers, offers)
        self._sizes = [tuple(consumer.asks.get(name, 0) for name in self.resources) for consumer in consumers]
        self.kinds = self._kinds([one.only_on for one in judged if one.only_on is not None])
        takers = self._all_takers(judged)
        self.takers = takers[: len(consumers)]
        self._look_at_idle_pods(takers)
        self._names = cache(self._find_names)
        self.units = self._units()
        self.bins = [self._bin(kind) for kind in self.kinds]
        self.daemons: list[list[int]] = [[] for _ in self.kinds]
        self.crowded: dict[int, list[int]] = {}
        for index in daemons:
            for number in sorted(self.takers[index]):
                self._add_daemon(index, number)

    def _bin(self, kind: Sequence[int]) -> Bin:
        has = self.offers[kind[0]].allocatable
        return Bin(tuple(has.get(name, 0) for name in self.resources), sum(self.offers[one].count for one in kind))

    def _kinds(self, limits: Sequence[frozenset[int]]) -> list[list[int]]:
        def key(index: int, group: int) -> object:
            open_labels = tuple(self._open_labels(one, index) for one in self._templates)
            allowed = tuple(index in only for only in limits)
            return tuple(self.offers[index].devices), self.eligibility.accepted[group], open_labels, allowed

        groups = enumerate(self.eligibility.offer_groups)
        return [*grouped((key(index, group), index) for index, group in groups).values()]

    def _all_takers(self, judged: Sequence[Consumer]) -> list[frozenset[int]]:
        taking = grouped(
            (group, number)
            for number, kind in enumerate(self.kinds)
            for group in self.eligibility.accepted[self.eligibility.offer_groups[kind[0]]]
        )
        common = {group: frozenset(numbers) for group, numbers in taking.items()}
        groups = self.eligibility.consumer_groups
        return [self._allowed(one, common.get(group, frozenset())) for one, group in zip(judged, groups, strict=True)]

    def _allowed(self, one: Consumer, kinds: frozenset[int]) -> frozenset[int]:
        if one.refused:
            return frozenset()
        return kinds if one.only_on is None else frozenset(k for k in kinds if self.kinds[k][0] in one.only_on)

    def _look_at_idle_pods(self, takers: Sequence[frozenset[int]]) -> None:
        """Look at nodes that get a pod of a DaemonSet, or may, and do not run it."""
        for index, template in self._templates.items():
            self.takers[index] &= takers[template]
        idle = [
            (index, number, self._open_labels(index, self.kinds[number][0]))
            for index, template in self._templates.items()
            for number in sorted(takers[template] - self.takers[index])
        ]
        self.unsatisfied = grouped((index, number) for index, number, labels in idle if not labels)
        uncertain = grouped((index, (number, labels)) for index, number, labels in idle if labels)
        self.uncertain = {index: dict(those) for index, those in uncertain.items()}

    def _open_labels(self, index: int, offer: int) -> tuple[str, ...]:
        """Return the labels, not declared for a node, that decide whether a DaemonSet makes a pod there."""
        return self.eligibility.unknown_labels(self._templates[index], offer)

    def _units(self) -> list[list[int]]:
        # Parts of one object with other numbers of copies are groups of their own, as those of a RayCluster.
        found = grouped(
            ((one.subject, one.copies, one.least_copies) if one.is_gang else (index,), index)
            for index, one in enumerate(self.consumers)
            if one.pods and not one.is_for_each_node
        )
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
        held = zip(self.bins, self.daemons, strict=True)
        return summed((index, one.count) for one, those in held for index in those)

    def pack(self, *tiers: Mapping[int, int], guest: Item | None = None) -> Packed:
        """Find a place for so many pods of each consumer.

        Args:
            tiers: Pods by consumer; those of a tier, and in it those given first, before the others.
            guest: One more item.
        """
        counts = [(number, index, n) for number, pods in enumerate(tiers) for index, n in pods.items() if n]
        # How many a node takes at most counts for one item: all pods of such a consumer are one.
        together = grouped(
            (
                (number, self._sizes[index], self.takers[index])
                if self.consumers[index].most_per_node is None
                else index,
                (index, n),
            )
            for number, index, n in counts
        )
        members = [list(summed(those).items()) for those in together.values()]
        items = [
            Item(
                size=self._sizes[first],
                count=sum(count for _, count in those),
                bins=self.takers[first],
                most_per_bin=self.consumers[first].most_per_node,
            )
            for those in members
            for first in [those[0][0]]
        ]
        return Packed(pack(items if guest is None else [*items, guest], self.bins), members)

    def refusals(self, index: int) -> Mapping[str, str]:
        """Return why nodes do not take a consumer's pods, by the name of the node or pool; of a few of them."""
        refusing = (number for number in range(len(self.kinds)) if number not in self.takers[index])
        return self.refusals_of(index, refusing)

    def refusals_of(self, index: int, kinds: Iterable[int]) -> Mapping[str, str]:
        """Return why nodes of some kinds do not take a consumer's pods, by name; of a few of them."""
        template = self._templates.get(index, index)
        return {
            self.offers[one].name: self.consumers[index].refused
            or self.eligibility.refusal(index, one)
            or self.eligibility.refusal(template, one)
            or "gives its claims something else"
            for one in islice((one for number in kinds for one in self.kinds[number]), _MOST_REFUSALS)
        }

    def left(self, kind: int, pods: Mapping[int, int]) -> tuple[int, ...]:
        """Return how much of each resource a node has left beside so many pods of each consumer."""
        taken = [[count * takes for takes in self._sizes[index]] for index, count in pods.items()]
        return tuple(has - sum(those) for has, *those in zip(self.bins[kind].size, *taken, strict=True))

    def names(self, kinds: Collection[int]) -> Sequence[str]:
        """Return the nodes and pools of some kinds, in the order of the inventory."""
        return self._names(frozenset(kinds))

    def _find_names(self, kinds: frozenset[int]) -> Sequence[str]:
        return [self.offers[i].name for i in sorted(one for number in kinds for one in self.kinds[number])]

    def named(self, consumers: Iterable[int]) -> str:
        """Return some consumers as a list in a sentence."""
        return joined([self.titles[index] for index in consumers])

    def subject_of(self, consumers: Iterable[int]) -> int | None:
        """Return the object that some consumers are of; None if there are several."""
        subjects = {self.consumers[index].subject for index in consumers}
        return subjects.pop() if len(subjects) == 1 else None

    def size_of(self, index: int) -> tuple[int, ...]:
        """Return what one pod of a consumer takes, by the order of the resources."""
        return self._sizes[index]


def _titles(consumers: Sequence[Consumer]) -> list[str]:
    named = Counter(one.title for one in consumers)
    return [f"{one.kind} {one.title}" if named[one.title] > 1 else one.title for one in consumers]


def _resources(consumers: Sequence[Consumer], offers: Sequence[NodeOffer]) -> tuple[str, ...]:
    found = {name for one in consumers for name in one.asks}
    return tuple(sorted(found.union(*(one.allocatable for one in offers))))


def _as_controller_sees(consumer: Consumer) -> Consumer:
    """Return a DaemonSet's pods with what their controller looks at only."""
    spec = {key: value for key, value in consumer.pod_spec.items() if key != "runtimeClassName"}
    return replace(consumer, asks={}, most_asked={}, pod_spec=spec)


# Nodes of a pool that pods select by name: each name is that of one node at most


def with_named_nodes(
    consumers: Sequence[Consumer], offers: Sequence[NodeOffer], runtime_classes: Mapping[str, Mapping[str, Any]]
) -> list[NodeOffer]:
    """Return nodes and pools, with one node of a pool by itself for each name that pods want.

    A name that no node of the inventory has may be that of a node of any pool.

    Args:
        consumers: Everyone who asks for GPUs.
        offers: Offers of each node or pool.
        runtime_classes: The member ``scheduling`` of RuntimeClasses, by name.
    """
    if all(one.count == 1 for one in offers):
        return list(offers)
    declared = {name for one in offers if one.count == 1 for name in (one.name, one.labels.get(HOSTNAME))}
    wanted = dict.fromkeys(
        name for one in consumers for name in _selected_names(one, runtime_classes) if name not in declared
    )
    if not wanted:
        return list(offers)
    return [each for one in offers for each in (_apart(one, list(wanted)) if one.count > 1 else (one,))]


def _selected_names(consumer: Consumer, runtime_classes: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    demands = placement_key(consumer, runtime_classes)
    if demands.node_name:
        yield demands.node_name
    for rule in (rule for term in (demands.selected, *demands.alternatives) for rule in term):
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
