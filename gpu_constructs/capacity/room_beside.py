"""Who has a place where there are few: beside what always runs, by priority and eviction, and who comes one by one.

Sources:
    kubernetes/kubernetes@v1.36.2:pkg/scheduler/framework/plugins/queuesort/priority_sort.go: of pods that wait the one
    with the highest priority is tried first, also where its policy is ``Never``.

    kubernetes/kubernetes@v1.36.2:pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go: a pod evicts
    pods with lower priority only, the lowest first, unless its policy is ``Never``; what it need not evict stays.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gpu_constructs.capacity.gathered import grouped
from gpu_constructs.capacity.matching import Matching, Packed
from gpu_constructs.capacity.packing import Item
from gpu_constructs.capacity.placed_pods import PlacedPods

MOST_SEARCHES = 30_000
"""Consumers and kinds of nodes in all packings that look for a place beside what always runs."""
_MOST_STEPS = 200_000
"""Nodes looked at, after which nothing is said."""


@dataclass
class Effort:
    """What was looked at in all packings so far.

    Attributes:
        searched: Number of consumers and kinds of nodes.
        is_spent: Whether something was not looked for, as that was enough.
    """

    searched: int = 0
    is_spent: bool = False

    def allows(self, more: int) -> bool:
        """Check whether a packing may be made, and count it."""
        if self.searched > MOST_SEARCHES:
            self.is_spent = True
            return False
        self.searched += more
        return True


class RoomBeside:
    """The places that pods which always run leave."""

    def __init__(
        self, matching: Matching, steady: Mapping[int, int], effort: Effort, packed: Packed | None = None
    ) -> None:
        """Look at what they leave.

        Args:
            matching: The consumers and the nodes that take them.
            steady: Pods that always run, by consumer.
            effort: Effort of all that is looked for.
            packed: Places of these pods, if they are known already.
        """
        self._matching = matching
        self._steady = steady
        self._effort = effort
        self._placed = PlacedPods.of(matching, packed or matching.pack(steady))
        self._answers: dict[object, bool] = {}
        self._left = [
            sum(one.size[place] * one.count for one in matching.bins)
            - sum(matching.size_of(index)[place] * count for index, count in steady.items())
            for place in range(len(matching.resources))
        ]

    def takes(self, pods: Mapping[int, int]) -> bool:
        """Check whether pods have a place for some placement of what always runs; true if it is not known."""
        key = self._placed.key_of(pods)
        if key not in self._answers:
            self._answers[key] = self._placed.copy().add_all(pods) or self._may_have_room(pods)
        return self._answers[key]

    def takes_on(self, kind: int, index: int) -> bool:
        """Return the same of one more pod that every node gets, which must stand on a node of its own kind."""
        size = self._matching.size_of(index)
        if (kind, size) not in self._answers:
            here = (nodes.room for nodes in self._placed.nodes if nodes.kind == kind)
            has_room = any(all(has >= takes for has, takes in zip(left, size, strict=True)) for left in here)
            guest = Item(size, 1, frozenset([kind]))
            self._answers[kind, size] = has_room or self._may_have_room({index: 1}, guest)
        return self._answers[kind, size]

    def _may_have_room(self, pods: Mapping[int, int], guest: Item | None = None) -> bool:
        """Check whether pods have a place for another placement of what always runs; true if it is not known."""
        sizes = [(self._matching.size_of(index), count) for index, count in pods.items()]
        if any(sum(count * size[place] for size, count in sizes) > left for place, left in enumerate(self._left)):
            return False
        if not self._effort.allows(len(self._steady) + len(self._matching.bins)):
            return True
        more = {} if guest else {index: self._steady.get(index, 0) + count for index, count in pods.items()}
        return self._matching.pack({**self._steady, **more}, guest=guest).packing.answer != "no"


# By priority


def tiers(matching: Matching, pods: Mapping[int, int]) -> list[dict[int, int]]:
    """Return pods by their priority, the highest first.

    Args:
        matching: The consumers and the nodes that take them.
        pods: Pods by consumer.
    """
    found = grouped((matching.consumers[index].priority, (index, count)) for index, count in pods.items() if count)
    return [dict(found[priority]) for priority in sorted(found, reverse=True)]


def placed_by_priority(matching: Matching, least: Mapping[int, int], most: Mapping[int, int]) -> PlacedPods:
    """Return which pods run when all that may run is there: what always runs came first, then the rest.

    Args:
        matching: The consumers and the nodes that take them.
        least: Pods by consumer that run until they are stopped.
        most: The same when all that may run runs.
    """
    placed = PlacedPods.of(matching, matching.pack({}))
    for tier in tiers(matching, least):
        placed = _with(matching, placed, tier)
    for tier in tiers(matching, {index: most[index] - count for index, count in least.items()}):
        before = placed.counts()
        placed = _with(matching, placed, tier)
        after = placed.counts()
        lacking = {
            index: missing
            for index, count in tier.items()
            if matching.consumers[index].preempts
            and (missing := count - after.get(index, 0) + before.get(index, 0)) > 0
        }
        if lacking:
            placed = _evicting(matching, after, lacking)
    return placed


def evicted(matching: Matching, steady: Mapping[int, int], pods: Mapping[int, int]) -> dict[int, int]:
    """Return which of the pods that always run go when others of a higher priority come.

    Args:
        matching: The consumers and the nodes that take them.
        steady: Pods by consumer that always run.
        pods: Pods by consumer that come.
    """
    after = _evicting(matching, steady, pods).counts()
    remain = {index: after.get(index, 0) - pods.get(index, 0) for index in steady}
    return {index: gone for index, count in steady.items() if (gone := count - remain[index]) > 0}


def _evicting(matching: Matching, there: Mapping[int, int], pods: Mapping[int, int]) -> PlacedPods:
    """Return pods beside those that have their priority or a higher one, and what then is left for the others."""
    priority = min(matching.consumers[index].priority for index in pods)
    stronger = {index: count for index, count in there.items() if matching.consumers[index].priority >= priority}
    weaker = {index: count for index, count in there.items() if index not in stronger}
    placed = _with(matching, PlacedPods.of(matching, matching.pack(stronger)), pods)
    for tier in tiers(matching, weaker):
        placed = _with(matching, placed, tier)
    return placed


def _with(matching: Matching, placed: PlacedPods, more: Mapping[int, int]) -> PlacedPods:
    """Return as many more pods as have a place beside all that are there."""
    there = placed.counts()
    made = PlacedPods.of(matching, matching.pack(there, more))
    found = made.counts()
    wanted = {index: there.get(index, 0) for index in {*there, *more}}
    if all(found.get(index, 0) >= count for index, count in wanted.items()):
        return made
    made = placed.copy()
    for index, count in more.items():
        made.add(index, count)
    return made


# One by one, as the scheduler sees them: it does not plan ahead


class Stranded(NamedTuple):
    """Pods that find no place when they come last.

    Attributes:
        consumers: Consumers whose pods these are.
        others: Consumers whose pods came before, to nodes that would have done for them.
        are_smaller: Whether a pod of some of those takes less.
    """

    consumers: Sequence[int]
    others: Sequence[int]
    are_smaller: bool


@dataclass
class _Wave:
    """Consumers whose pods are alike, and how many these are."""

    size: tuple[int, ...]
    takers: frozenset[int]
    most: int | None
    pods: int
    consumers: list[int]

    @property
    def places(self) -> list[int]:
        return [place for place, takes in enumerate(self.size) if takes]

    def room(self, left: Sequence[int], has: int) -> int:
        """Return how many more a node takes that has some."""
        room = min(left[place] // self.size[place] for place in self.places)
        return room if self.most is None else min(room, self.most - has)


def stranded(matching: Matching, pods: Mapping[int, int]) -> list[Stranded]:
    """Place pods one after the other on the node with most left of what they take, small ones before large ones.

    Of pods of one size those with more nodes to go to come first: the worst order for the others.

    Args:
        matching: The consumers and the nodes that take them.
        pods: Number of pods of each consumer.

    Returns:
        The pods that find no place then; none if there are too many nodes and pods to look at.
    """
    waves = _waves(matching, pods)
    if len(waves) < 2:
        return []
    nodes: list[dict[tuple[int, ...], int]] = [{one.size: one.count} for one in matching.bins]
    found: list[Stranded] = []
    steps = 0
    for number, wave in enumerate(waves):
        lacking, looked = _place(wave, nodes, _MOST_STEPS - steps)
        steps += looked
        if steps > _MOST_STEPS:
            return []
        before = [one for one in waves[:number] if lacking and _meet(one, wave)]
        if before:
            smaller = [one for one in before if sum(one.size) < sum(wave.size)]
            others = sorted(index for one in smaller or before for index in one.consumers)
            found.append(Stranded(wave.consumers, others, bool(smaller)))
    return found


def _waves(matching: Matching, pods: Mapping[int, int]) -> list[_Wave]:
    each = [(index, matching.consumers[index].most_per_node) for index, count in pods.items() if count]
    alike = grouped(
        ((matching.size_of(index), matching.takers[index], None if most is None else (most, index)), index)
        for index, most in each
    )
    waves = [
        _Wave(size, takers, limit and limit[0], sum(pods[index] for index in those), those)
        for (size, takers, limit), those in alike.items()
    ]
    return sorted(waves, key=lambda one: (sum(one.size), -len(one.takers), one.consumers[0]))


def _meet(one: _Wave, other: _Wave) -> bool:
    return not one.takers.isdisjoint(other.takers) and not set(one.places).isdisjoint(other.places)


def _place(wave: _Wave, nodes: list[dict[tuple[int, ...], int]], most_steps: int) -> tuple[int, int]:
    """Return how many pods have no place, and how many nodes were looked at."""
    places, each = wave.places, sum(wave.size)
    # What is left, turned around: the most first; then the kind, how many nodes, how many of these pods they have.
    queue = [
        (-sum(left[place] for place in places), kind, left, 0, number)
        for kind in sorted(wave.takers)
        for left, number in nodes[kind].items()
    ]
    for kind in wave.takers:
        nodes[kind] = {}
    heapq.heapify(queue)
    lacking, steps = wave.pods, 0
    done: list[tuple[int, tuple[int, ...], int]] = []
    while lacking and queue and steps <= most_steps:
        steps += 1
        free, kind, left, has, number = heapq.heappop(queue)
        room = wave.room(left, has)
        if room < 1:
            done.append((kind, left, number))
            continue
        # They take turns; several at once where no other node has as much left.
        turns = (queue[0][0] - free) // each if queue else room
        some = min(number, lacking)
        turns = max(1, min(turns, room, lacking // some))
        less = tuple(amount - turns * takes for amount, takes in zip(left, wave.size, strict=True))
        heapq.heappush(queue, (free + turns * each, kind, less, has + turns, some))
        if some < number:
            heapq.heappush(queue, (free, kind, left, has, number - some))
        lacking -= turns * some
    for kind, left, number in [*done, *((kind, left, number) for _, kind, left, _, number in queue)]:
        nodes[kind][left] = nodes[kind].get(left, 0) + number
    return lacking, steps + len(queue)
