"""What becomes of pods that come one by one, as the scheduler sees them: it does not plan ahead."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gpu_constructs.capacity.matching import Matching

_MOST_STEPS = 200_000
"""Nodes looked at, after which nothing is said."""


class Stranded(NamedTuple):
    """Pods that find no place when they come last.

    Attributes:
        consumers: Whose they are.
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
    pods: int = 0
    consumers: list[int] = field(default_factory=list)

    @property
    def places(self) -> list[int]:
        return [place for place, takes in enumerate(self.size) if takes]


def stranded(matching: Matching, pods: Mapping[int, int]) -> list[Stranded]:
    """Place pods one after the other on the node with most left of what they take, small ones before large ones.

    Of pods of one size those with more nodes to go to come first: the worst order for the others.

    Args:
        matching: Who goes where.
        pods: How many pods of each consumer.

    Returns:
        Who finds no place then; nobody where there are too many nodes and pods to see.
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
    waves: dict[object, _Wave] = {}
    for index, count in pods.items():
        if count:
            size, takers = matching.size_of(index), matching.takers[index]
            most = matching.consumers[index].most_per_node
            wave = waves.setdefault((size, takers, None if most is None else index), _Wave(size, takers, most))
            wave.pods += count
            wave.consumers.append(index)
    return sorted(waves.values(), key=lambda one: (sum(one.size), -len(one.takers), one.consumers[0]))


def _meet(one: _Wave, other: _Wave) -> bool:
    return not one.takers.isdisjoint(other.takers) and not set(one.places).isdisjoint(other.places)


def _place(wave: _Wave, nodes: list[dict[tuple[int, ...], int]], most_steps: int) -> tuple[int, int]:
    """Give how many pods have no place, and how many nodes were looked at."""
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
        room = min(left[place] // wave.size[place] for place in places)
        if wave.most is not None:
            room = min(room, wave.most - has)
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
