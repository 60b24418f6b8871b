"""Which pods are on which nodes: what a packing says, changed pod by pod."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.matching import Matching, Packed
from gpu_constructs.capacity.pod_counts import starting


class Nodes(NamedTuple):
    """Nodes of one kind with the same pods, beside those that every node gets.

    Attributes:
        kind: Of the nodes.
        number: How many there are.
        pods: How many pods of each consumer every one of them has.
        left: What every one has left of each resource.
    """

    kind: int
    number: int
    pods: Mapping[int, int]
    left: tuple[int, ...]


class PlacedPods:
    """Pods on nodes.

    Attributes:
        nodes: All nodes of the cluster.
    """

    def __init__(self, matching: Matching, nodes: Sequence[Nodes]) -> None:
        self._matching = matching
        self.nodes = list(nodes)
        self._answers: dict[object, bool] = {}

    @classmethod
    def of(cls, matching: Matching, packed: Packed) -> PlacedPods:
        """Read them off a packing."""
        return cls(matching, [*_nodes(matching, packed)])

    def counts(self) -> dict[int, int]:
        """Give how many pods of each consumer there are."""
        found: dict[int, int] = {}
        for nodes in self.nodes:
            for index, each in nodes.pods.items():
                found[index] = found.get(index, 0) + each * nodes.number
        return found

    def key_of(self, pods: Mapping[int, int]) -> object:
        """Give what decides whether there is room for pods: the same for those that are alike."""
        matching = self._matching
        return tuple(
            (
                count,
                matching.size_of(index),
                matching.takers[index],
                None if matching.consumers[index].most_per_node is None else index,
            )
            for index, count in pods.items()
        )

    def takes(self, pods: Mapping[int, int]) -> bool:
        """Tell whether there is room for pods as it stands, each put where it fits first; another way may do."""
        key = self.key_of(pods)
        if key not in self._answers:
            self._answers[key] = self.copy().add_all(pods)
        return self._answers[key]

    def copy(self) -> PlacedPods:
        """Give another one that can be changed."""
        return PlacedPods(self._matching, self.nodes)

    def add_all(self, pods: Mapping[int, int]) -> bool:
        """Put pods on nodes if all have room; tell whether they have."""
        before = list(self.nodes)
        if any(self.add(index, count) for index, count in pods.items()):
            self.nodes = before
            return False
        return True

    def add(self, index: int, count: int) -> int:
        """Put pods of a consumer on the first nodes that have room; give how many found none."""
        takers, size = self._matching.takers[index], self._matching.size_of(index)
        wants = [(place, takes) for place, takes in enumerate(size) if takes]
        most = self._matching.consumers[index].most_per_node
        at = 0
        while count and at < len(self.nodes):
            nodes = self.nodes[at]
            each = count if nodes.kind in takers else 0
            for place, takes in wants:
                each = min(each, nodes.left[place] // takes)
            if most is not None:
                each = min(each, most - nodes.pods.get(index, 0))
            at += 1
            if each > 0:
                whole = min(nodes.number, count // each)
                self._change(at - 1, index, size, [(each, whole)])
                count -= whole * each
        return count

    def remove(self, index: int, count: int) -> None:
        """Take pods of a consumer off the last nodes that have some."""
        size = self._matching.size_of(index)
        at = len(self.nodes)
        while count and at:
            at -= 1
            nodes = self.nodes[at]
            each = nodes.pods.get(index, 0)
            if each:
                whole = min(nodes.number, count // each)
                rest = count - whole * each if whole < nodes.number else 0
                self._change(at, index, size, [(-each, whole), (-rest, 1)])
                count -= whole * each + rest

    def _change(self, at: int, index: int, size: Sequence[int], changes: Sequence[tuple[int, int]]) -> None:
        """Give some of the nodes that are alike more pods, or fewer."""
        nodes = self.nodes[at]
        parts, count = [], nodes.number
        for more, number in changes:
            if more and number:
                pods = {**nodes.pods, index: nodes.pods.get(index, 0) + more}
                left = tuple(has - more * takes for has, takes in zip(nodes.left, size, strict=True))
                parts.append(Nodes(nodes.kind, number, {one: each for one, each in pods.items() if each}, left))
                count -= number
        self.nodes[at : at + 1] = [*parts, nodes._replace(number=count)] if count else parts


def settled(matching: Matching, always: Packed, everything: Packed, urgent: PlacedPods | None = None) -> PlacedPods:
    """Return who has a place when all that may run runs: what always runs first, gangs with what they start with.

    Args:
        matching: Who goes where.
        always: Where what always runs has its places.
        everything: Where all has.
        urgent: Who has a place by priority, where priorities differ.
    """
    placed = PlacedPods.of(matching, everything)
    if everything.packing.answer == "yes":
        return placed
    counts = placed.counts()
    consumers = matching.consumers
    lasting = sum(min(counts.get(i, 0), consumers[i].least_pods) for unit in matching.units for i in unit)
    best = PlacedPods.of(matching, always)
    if urgent or lasting < sum(best.counts().values()):
        placed = urgent or best
        counts = placed.counts()
    for unit in matching.units:
        if consumers[unit[0]].is_gang:
            copies = _copies(matching, unit, counts)
            for i in unit:
                # What work that ends can do without may be enough for others to start.
                each = consumers[i].pods_each if consumers[i].least_copies else starting(consumers[i])
                placed.remove(i, max(0, counts.get(i, 0) - copies * each))
    _admit(matching, placed)
    return placed


def _turn(consumer: Consumer) -> tuple[int, bool]:
    return -consumer.priority, not consumer.least_copies


def _copies(matching: Matching, unit: Sequence[int], counts: Mapping[int, int]) -> int:
    """Give how many copies of a gang run with so many pods."""
    consumers = matching.consumers
    starts = [(i, starting(consumers[i])) for i in unit]
    return min([consumers[unit[0]].copies, *(counts.get(i, 0) // pods for i, pods in starts if pods)])


def _admit(matching: Matching, placed: PlacedPods) -> None:
    """Put on nodes what still has room there, in order: what always runs first, what a gang can do without last."""
    counts, full = placed.counts(), set()
    units = sorted(matching.units, key=lambda unit: _turn(matching.consumers[unit[0]]))
    for unit in units:
        first = matching.consumers[unit[0]]
        each = {i: starting(matching.consumers[i]) for i in unit}
        lacking = (
            first.copies - _copies(matching, unit, counts) if first.is_gang else first.pods - counts.get(unit[0], 0)
        )
        key = placed.key_of(each)
        some = lacking if first.is_gang else 0
        if not first.is_gang and key not in full and placed.add(unit[0], lacking):
            full.add(key)
        while some and key not in full:
            if placed.add_all({i: some * count for i, count in each.items()}):
                lacking -= some
                some = min(some, lacking)
            elif some > 1:
                some //= 2
            else:
                full.add(key)
    counts = placed.counts()
    for unit in units:
        if any(starting(matching.consumers[i]) < matching.consumers[i].pods_each for i in unit):
            copies = _copies(matching, unit, counts)
            for i in unit:
                placed.add(i, max(0, copies * matching.consumers[i].pods_each - counts.get(i, 0)))


def _nodes(matching: Matching, packed: Packed) -> Iterator[Nodes]:
    queues = [[list(member) for member in members] for members in packed.members]
    for item, queue in enumerate(queues):
        lacking = packed.packing.unplaced.get(item, 0)
        for member in reversed(queue):
            less = min(lacking, member[1])
            member[1] -= less
            lacking -= less
        queue.reverse()
    missing = [one.count for one in matching.bins]
    for load in packed.packing.loads:
        missing[load.bin] -= load.count
        for pods, count in _shared_out(load.items, load.count, queues):
            left = list(matching.bins[load.bin].size)
            for index, each in pods.items():
                for place, takes in enumerate(matching.size_of(index)):
                    left[place] -= each * takes
            yield Nodes(load.bin, count, pods, tuple(left))
    for kind, count in enumerate(missing):
        if count:
            yield Nodes(kind, count, {}, matching.bins[kind].size)


def _shared_out(
    items: Mapping[int, int], nodes: int, queues: Sequence[list[list[int]]]
) -> Iterator[tuple[dict[int, int], int]]:
    """Give nodes of one load with the consumers that the items stand for; as many alike as there are."""
    while nodes:
        for item in items:
            while not queues[item][-1][1]:
                queues[item].pop()
        alike = min((queues[item][-1][1] // each for item, each in items.items()), default=nodes)
        alike = min(alike, nodes)
        pods: dict[int, int] = {}
        for item, each in items.items():
            missing = each
            while missing:
                if not queues[item][-1][1]:
                    queues[item].pop()
                consumer = queues[item][-1]
                some = missing if alike else min(missing, consumer[1])
                consumer[1] -= some * max(alike, 1)
                missing -= some
                pods[consumer[0]] = pods.get(consumer[0], 0) + some
        yield pods, max(alike, 1)
        nodes -= max(alike, 1)
