"""Checks whether nodes have room for pods: next to running pods, after evictions, and if pods start one by one.

A *consumer* is a workload as the capacity plan sees it: equal pods of one object that request GPUs. Long-running pods
run until someone deletes them. A *packing* is an assignment of pods to nodes with enough slots.

Sources:
    kubernetes/kubernetes@v1.36.2:pkg/scheduler/framework/plugins/queuesort/priority_sort.go: The scheduler tries the
    waiting pod with the highest priority first, even if its preemption policy is ``Never``.

    kubernetes/kubernetes@v1.36.2:pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go: A pod evicts
    only pods with lower priority, the lowest first, and no more than necessary. With the preemption policy ``Never``,
    it evicts no pods.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gpu_constructs.capacity.gathered import grouped
from gpu_constructs.capacity.matching import Matching, Packed
from gpu_constructs.capacity.packing import Item
from gpu_constructs.capacity.placed_pods import PlacedPods
from gpu_constructs.records import dataclass

MOST_SEARCHES = 30_000
"""Amount of work after which no further search starts, added up over all searches of a plan.

The work of a search is the number of its workloads plus the number of its groups of equal nodes.
"""
_MOST_STEPS = 200_000
"""Number of visited nodes after which the check of a one-by-one placement gives up."""


@dataclass
class Effort:
    """The amount of work that the searches for room have done so far, with a limit for very large clusters.

    Attributes:
        searched: Work so far. Each search adds its number of workloads and its number of groups of equal nodes.
        is_spent: Whether the limit has prevented a search.
    """

    searched: int = 0
    is_spent: bool = False

    def allows(self, more: int) -> bool:
        """Check whether the limit allows another search. If it does, add the work of this search to ``searched``.

        Args:
            more: Work of the search: its number of workloads plus its number of groups of equal nodes.
        """
        if self.searched > MOST_SEARCHES:
            self.is_spent = True
            return False
        self.searched += more
        return True


class RoomBeside:
    """The capacity that the long-running pods leave free on the nodes."""

    def __init__(
        self, matching: Matching, steady: Mapping[int, int], effort: Effort, packed: Packed | None = None
    ) -> None:
        """Place the long-running pods, and compute the free capacity that remains.

        Args:
            matching: Workloads and the nodes that accept their pods.
            steady: Number of long-running pods by the index of the workload.
            effort: Counter of the work of all searches of the capacity plan.
            packed: Placement of the long-running pods. With None (the default), the method computes it.
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
        """Check whether pods have room next to the long-running pods.

        Return True if at least one placement of the long-running pods and the given pods exists. Also return True if
        the search reaches its limit.

        Args:
            pods: Number of pods by the index of the workload.
        """
        key = self._placed.key_of(pods)
        if key not in self._answers:
            self._answers[key] = self._placed.copy().add_all(pods) or self._may_have_room(pods)
        return self._answers[key]

    def takes_on(self, kind: int, index: int) -> bool:
        """Check whether at least one node of a group has room for a pod of a DaemonSet next to the long-running pods.

        Also return True if the search reaches its limit.

        Args:
            kind: Index of the group of equal nodes.
            index: Index of the DaemonSet among the workloads.
        """
        size = self._matching.size_of(index)
        if (kind, size) not in self._answers:
            here = (nodes.room for nodes in self._placed.nodes if nodes.kind == kind)
            has_room = any(all(has >= takes for has, takes in zip(left, size, strict=True)) for left in here)
            guest = Item(size, 1, frozenset([kind]))
            self._answers[kind, size] = has_room or self._may_have_room({index: 1}, guest)
        return self._answers[kind, size]

    def _may_have_room(self, pods: Mapping[int, int], guest: Item | None = None) -> bool:
        """Check whether a placement of the long-running pods and the given pods exists.

        Also return True if the search reaches its limit.

        Args:
            pods: Number of pods by the index of the workload.
            guest: Size of the only pod in ``pods``, and the nodes to which the check limits this pod. With None (the
                default), each pod may use every node that accepts it.
        """
        sizes = [(self._matching.size_of(index), count) for index, count in pods.items()]
        if any(sum(count * size[place] for size, count in sizes) > left for place, left in enumerate(self._left)):
            return False
        if not self._effort.allows(len(self._steady) + len(self._matching.bins)):
            return True
        more = {} if guest else {index: self._steady.get(index, 0) + count for index, count in pods.items()}
        return self._matching.pack({**self._steady, **more}, guest=guest).packing.answer != "no"


# By priority


def tiers(matching: Matching, pods: Mapping[int, int]) -> list[dict[int, int]]:
    """Divide pods into groups of equal priority. Return the groups, the highest priority first.

    Args:
        matching: Workloads and the nodes that accept their pods.
        pods: Number of pods by the index of the workload.
    """
    found = grouped((matching.consumers[index].priority, (index, count)) for index, count in pods.items() if count)
    return [dict(found[priority]) for priority in sorted(found, reverse=True)]


def placed_by_priority(matching: Matching, least: Mapping[int, int], most: Mapping[int, int]) -> PlacedPods:
    """Return the pods on each node after the scheduler has tried to place all pods.

    The long-running pods start first, then all other pods. In both groups, pods with the highest priority start first.
    If one of the other pods lacks room, it evicts pods of lower priority, unless its preemption policy is ``Never``.

    Args:
        matching: Workloads and the nodes that accept their pods.
        least: Number of long-running pods by the index of the workload.
        most: Number of all pods by the index of the workload.
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
    """Return the number of long-running pods that the scheduler evicts for new pods, by the index of the workload.

    Args:
        matching: Workloads and the nodes that accept their pods.
        steady: Number of long-running pods by the index of the workload.
        pods: Number of new pods by the index of the workload. A new pod evicts only pods of a lower priority.
    """
    after = _evicting(matching, steady, pods).counts()
    remain = {index: after.get(index, 0) - pods.get(index, 0) for index in steady}
    return {index: gone for index, count in steady.items() if (gone := count - remain[index]) > 0}


def _evicting(matching: Matching, there: Mapping[int, int], pods: Mapping[int, int]) -> PlacedPods:
    """Return the pods on each node after new pods evict running pods of lower priority.

    Evicted pods start again on other nodes if room remains there.

    Args:
        matching: Workloads and the nodes that accept their pods.
        there: Number of running pods by the index of the workload.
        pods: Number of new pods by the index of the workload.
    """
    priority = min(matching.consumers[index].priority for index in pods)
    stronger = {index: count for index, count in there.items() if matching.consumers[index].priority >= priority}
    weaker = {index: count for index, count in there.items() if index not in stronger}
    placed = _with(matching, PlacedPods.of(matching, matching.pack(stronger)), pods)
    for tier in tiers(matching, weaker):
        placed = _with(matching, placed, tier)
    return placed


def _with(matching: Matching, placed: PlacedPods, more: Mapping[int, int]) -> PlacedPods:
    """Return a placement of the running pods and of as many new pods as the nodes have room for.

    Args:
        matching: Workloads and the nodes that accept their pods.
        placed: Placement of the running pods.
        more: Number of new pods by the index of the workload.
    """
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


# One-by-one placement: the scheduler does not plan ahead for later pods


class Stranded(NamedTuple):
    """Pods that have no room if the scheduler places them after other pods.

    Attributes:
        consumers: Indices of the workloads of the pods without room.
        others: Indices of the workloads whose pods the scheduler placed earlier, on nodes that the pods without room
            could use.
        are_smaller: Whether the pods of ``others`` request less than the pods without room.
    """

    consumers: Sequence[int]
    others: Sequence[int]
    are_smaller: bool


@dataclass
class _Wave:
    """Equal pods that the function ``stranded`` places directly one after the other.

    Attributes:
        size: Amount of each resource that a pod requests, in the order of ``Matching.resources``.
        takers: Indices of the groups of equal nodes that accept the pods.
        most: Largest number of these pods on a node; None if there is no limit.
        pods: Number of these pods.
        consumers: Indices of the workloads to which these pods belong.
    """

    size: tuple[int, ...]
    takers: frozenset[int]
    most: int | None
    pods: int
    consumers: list[int]

    @property
    def places(self) -> list[int]:
        return [place for place, takes in enumerate(self.size) if takes]

    def room(self, left: Sequence[int], has: int) -> int:
        """Return the number of further pods of this wave (equal pods) for which a node has room.

        Args:
            left: Free amount of each resource on the node.
            has: Number of pods of this wave that already run on the node.
        """
        room = min(left[place] // self.size[place] for place in self.places)
        return room if self.most is None else min(room, self.most - has)


def stranded(matching: Matching, pods: Mapping[int, int]) -> list[Stranded]:
    """Return the pods that have no room if the scheduler places all pods one by one in a bad order.

    Small pods come before large pods, and each pod goes to the node with the most room. Among pods of the same size,
    pods that more nodes accept come first. In this order, the last pods find the least room.

    Args:
        matching: Workloads and the nodes that accept their pods.
        pods: Number of pods by the index of the workload.

    Returns:
        The pods that have no room; empty if the cluster has too many nodes and pods for this check.
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
    """Place the pods of a wave (a group of equal pods) one by one, each on the node with the most room.

    Return the number of pods without room, and the number of steps (visited nodes).

    Args:
        wave: Group of equal pods.
        nodes: One dict for each pool of nodes. The dict contains the number of nodes by their free amounts of
            resources. The function updates the dicts.
        most_steps: Number of steps after which the function stops.
    """
    places, each = wave.places, sum(wave.size)
    # Negative sum of the room (the most room comes first), group of nodes, room, pods of the wave, number of nodes.
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
        # Each pod goes to the node with the most room. Place several pods at once while this node stays the best one.
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
