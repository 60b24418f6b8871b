"""The nodes that accept the pods of each workload, and the search for a placement of pods on them.

A *consumer* is a workload as the capacity plan sees it: equal pods of one object that request GPUs. Nodes that have the
same devices and accept the same pods form a group, called a *kind* in the code. The plan checks only one node of each
group. An *offer* is a node or a node pool with its devices. A *packing* is an assignment of pods to nodes with enough
slots.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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
from gpu_constructs.records import dataclass, replace

_MOST_REFUSALS = 6


@dataclass(frozen=True)
class Packed:
    """A packing (an assignment of pods to nodes), with the workloads to which its pods belong.

    The packing works with items: pods of equal size that the same nodes accept. One item can stand for several
    workloads.

    Attributes:
        packing: Result of the packing, by item.
        members: For each item, pairs of the index of a workload and the number of its pods. If the nodes lack room for
            some pods of an item, the workloads that come first in the list get room first.
    """

    packing: Packing
    members: Sequence[Sequence[tuple[int, int]]]

    def seated(self) -> Iterator[tuple[int, int, int]]:
        """Yield a triple for each pair in ``members``: index of the item, index of the workload, number of placed pods.

        An item stands for pods of equal size that the same nodes accept. A workload can belong to several items.
        """
        for item, members in enumerate(self.members):
            left = sum(pods for _, pods in members) - self.packing.unplaced.get(item, 0)
            for consumer, pods in members:
                yield item, consumer, min(pods, left)
                left -= min(pods, left)

    def lacking(self) -> dict[int, int]:
        """Return the number of pods without room, by the index of the workload."""
        seats = summed((consumer, pods) for _, consumer, pods in self.seated())
        wanted = summed(member for members in self.members for member in members)
        return {consumer: pods - seats[consumer] for consumer, pods in wanted.items() if pods > seats[consumer]}


class Matching:
    """The workloads (consumers) of a capacity plan and the nodes that accept their pods.

    Attributes:
        consumers: Workloads whose pods request GPUs.
        offers: Nodes and node pools with their devices.
        titles: Name of each workload in a sentence, with its kind if another workload has the same name.
        resources: Resources that a pod requests or a node advertises, in alphabetical order.
        eligibility: Check of which nodes accept which workloads, with reasons.
        kinds: Groups of nodes that have the same devices and accept the same pods, as lists of indices of ``offers``.
        takers: For each workload, the indices of the groups of nodes that accept its pods.
        unsatisfied: For each DaemonSet, by its index, the groups of nodes where its controller creates a pod that never
            starts.
        uncertain: Groups of nodes where a DaemonSet perhaps creates a pod that never starts. The key is the index of
            the DaemonSet. The value is a dict from each such group to the undeclared labels that decide this.
        units: Lists of workloads whose pods start together. A workload whose pods start on their own is alone in its
            list. DaemonSets, and workloads that no node accepts, are in no list.
        daemons: For each group of nodes, the indices of the DaemonSets whose pods have room there.
        crowded: For each group of nodes, the indices of the DaemonSets whose pods have no room there next to those of
            ``daemons``.

    Source:
        kubernetes/kubernetes@v1.36.2:pkg/controller/daemon/daemon_controller.go, NodeShouldRunDaemonPod: The controller
        creates a pod on each node that the node affinity and the tolerations of the pod template allow. The controller
        ignores resources. It also ignores the ``scheduling`` field of the RuntimeClass, which the API server applies
        later.
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
        # After the workloads, ``judged`` lists each DaemonSet again, as its controller sees it.
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
        """Find the groups of nodes where a DaemonSet creates a pod that never starts.

        The function stores the groups where this is certain in the attribute ``unsatisfied``. It stores the groups
        where this depends on undeclared labels in the attribute ``uncertain``.

        Args:
            takers: Sets of groups of nodes. First comes one set for each workload: the groups that accept its pods.
                Then comes one set for each DaemonSet: the groups where the DaemonSet controller creates a pod.
        """
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
        """Return the labels that a node does not declare and that decide whether a DaemonSet creates a pod there.

        Args:
            index: Index of the DaemonSet among the workloads.
            offer: Index of the node.
        """
        return self.eligibility.unknown_labels(self._templates[index], offer)

    def _units(self) -> list[list[int]]:
        # Pod specs with different numbers of copies start on their own, for example those of a RayCluster.
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
        """Number of nodes where the pod of a DaemonSet has room, by the index of the DaemonSet."""
        held = zip(self.bins, self.daemons, strict=True)
        return summed((index, one.count) for one, those in held for index in those)

    def pack(self, *tiers: Mapping[int, int], guest: Item | None = None) -> Packed:
        """Return an assignment of pods to nodes with enough slots (a packing).

        Args:
            tiers: Dicts with the number of pods to place, by the index of the workload. Pods of an earlier dict get
                room first. Within a dict, pods of an earlier workload get room first.
            guest: Further pods of equal size, which get room after all pods of ``tiers``. None (the default): no
                further pods.
        """
        counts = [(number, index, n) for number, pods in enumerate(tiers) for index, n in pods.items() if n]
        # A limit of pods on each node applies to one item, so the pods of a workload with a limit are one item.
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
        """Return the reasons why nodes reject the pods of a workload, by the name of the node or pool.

        If many nodes reject the pods, the result contains only the first few of these nodes.
        """
        refusing = (number for number in range(len(self.kinds)) if number not in self.takers[index])
        return self.refusals_of(index, refusing)

    def refusals_of(self, index: int, kinds: Iterable[int]) -> Mapping[str, str]:
        """Return the reasons why nodes of the given groups reject a workload's pods, by the name of the node or pool.

        If the groups contain many nodes, the result contains only the first few of these nodes.

        Args:
            index: Index of the workload.
            kinds: Indices of the groups of equal nodes.
        """
        template = self._templates.get(index, index)
        return {
            self.offers[one].name: self.consumers[index].refused
            or self.eligibility.refusal(index, one)
            or self.eligibility.refusal(template, one)
            or "allocates other devices to its claims"
            for one in islice((one for number in kinds for one in self.kinds[number]), _MOST_REFUSALS)
        }

    def left(self, kind: int, pods: Mapping[int, int]) -> tuple[int, ...]:
        """Return the free amount of each resource on a node with the given pods, in the order of ``resources``.

        Args:
            kind: Index of the group of equal nodes that contains the node.
            pods: Number of pods on the node, by the index of the workload.
        """
        taken = [[count * takes for takes in self._sizes[index]] for index, count in pods.items()]
        return tuple(has - sum(those) for has, *those in zip(self.bins[kind].size, *taken, strict=True))

    def names(self, kinds: Collection[int]) -> Sequence[str]:
        """Return the names of the nodes and pools in some groups of ``self.kinds``, in the order of ``self.offers``."""
        return self._names(frozenset(kinds))

    def _find_names(self, kinds: frozenset[int]) -> Sequence[str]:
        return [self.offers[i].name for i in sorted(one for number in kinds for one in self.kinds[number])]

    def named(self, consumers: Iterable[int]) -> str:
        """Return the names of the given workloads as text for a sentence, such as ``default/a, default/b and ml/c``."""
        return joined([self.titles[index] for index in consumers])

    def subject_of(self, consumers: Iterable[int]) -> int | None:
        """Return the index of the Kubernetes object that creates the pods of all given workloads.

        Return None if several objects create these pods.
        """
        subjects = {self.consumers[index].subject for index in consumers}
        return subjects.pop() if len(subjects) == 1 else None

    def size_of(self, index: int) -> tuple[int, ...]:
        """Return the amounts of resources that a pod of a workload requests, in the order of ``resources``."""
        return self._sizes[index]


def _titles(consumers: Sequence[Consumer]) -> list[str]:
    named = Counter(one.title for one in consumers)
    return [f"{one.kind} {one.title}" if named[one.title] > 1 else one.title for one in consumers]


def _resources(consumers: Sequence[Consumer], offers: Sequence[NodeOffer]) -> tuple[str, ...]:
    found = {name for one in consumers for name in one.asks}
    return tuple(sorted(found.union(*(one.allocatable for one in offers))))


def _as_controller_sees(consumer: Consumer) -> Consumer:
    """Return a copy of a DaemonSet without what its controller ignores: requests for GPUs, and the runtime class."""
    spec = {key: value for key, value in consumer.pod_spec.items() if key != "runtimeClassName"}
    return replace(consumer, asks={}, most_asked={}, pod_spec=spec)


# Pools with nodes that pods select by name: each name stands for at most one node


def with_named_nodes(
    consumers: Sequence[Consumer], offers: Sequence[NodeOffer], runtime_classes: Mapping[str, Mapping[str, Any]]
) -> list[NodeOffer]:
    """Return the given nodes and pools. Divide a pool if pods select one of its nodes by the name of the node.

    The inventory does not declare the names of the nodes in a pool. If pods select a name that no declared node has,
    the plan assumes that each pool may have a node with this name.

    Args:
        consumers: Workloads whose pods request GPUs.
        offers: Nodes and node pools with their devices.
        runtime_classes: Field ``scheduling`` of each RuntimeClass, by name.
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
    # A hostname that a pool declares is the name of one of its nodes.
    labels = {key: value for key, value in pool.labels.items() if key != HOSTNAME}
    names = wanted[: pool.count]
    for name in names:
        note = f"pods select it by name: the plan assumes a node of the pool {pool.name}"
        notes = (note,) if pool.devices else (note, *pool.notes)
        yield replace(pool, name=name, count=1, labels={**labels, HOSTNAME: name}, notes=notes)
    if len(names) < pool.count:
        yield replace(pool, count=pool.count - len(names), labels=labels)
