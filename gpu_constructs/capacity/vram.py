"""What pods that meet on one device take of its memory, in whole MiB: nothing in Kubernetes counts it."""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, islice
from typing import NamedTuple

from gpu_constructs.capacity.gathered import grouped, summed

Candidate = tuple[int, int, int]
"""Pods that are alike: MiB that each takes, how many there are, slots of the device that each holds."""

_MOST_SUMS = 500_000
_MOST_TIED = 20


def worst_mib(slots: int, candidates: Sequence[Candidate]) -> int:
    """Return the most memory that pods which may meet on a device take together.

    A pod takes its memory once, however many slots it holds. Where pods hold different numbers of very many slots,
    the answer may be more than the exact one, never less.
    """
    fitting = [one for one in candidates if one[0] > 0 and one[1] > 0 and one[2] <= slots]
    pods = {width: summed(sizes) for width, sizes in grouped((one[2], one[:2]) for one in fitting).items()}
    pieces = [piece for width, sizes in sorted(pods.items()) for piece in _greatest(slots // width, width, sizes)]
    if len(pods) == 1 or sum(width * count for _, count, width in pieces) <= slots:
        return sum(mib * count for mib, count, _ in pieces)
    return _knapsack(slots, pieces)


def _greatest(most: int, width: int, sizes: dict[int, int]) -> Iterator[tuple[int, int, int]]:
    for mib in sorted(sizes, reverse=True):
        count = min(most, sizes[mib])
        if count:
            yield mib, count, width
        most -= count


def _knapsack(slots: int, pieces: Sequence[tuple[int, int, int]]) -> int:
    # (slots, MiB) of the sums of which no other takes fewer slots and more memory, by rising slots.
    best, sums = [(0, 0)], 0
    for mib, width in _halved(pieces):
        sums += len(best)
        if sums > _MOST_SUMS:
            return bound(slots, pieces)
        more = [(used + width, taken + mib) for used, taken in best if used + width <= slots]
        merged, best, most = heapq.merge(best, more, key=lambda one: (one[0], -one[1])), [], -1
        for used, taken in merged:
            if taken > most:
                best.append((used, taken))
                most = taken
    return best[-1][1]


def _halved(pieces: Sequence[tuple[int, int, int]]) -> Iterator[tuple[int, int]]:
    """Return bundles of pods that are alike, from which every number of them can be put together."""
    for mib, count, width in pieces:
        bundle = 1
        while count > 0:
            pods = min(bundle, count)
            yield mib * pods, width * pods
            count -= pods
            bundle *= 2


def bound(slots: int, pieces: Iterable[tuple[int, int, int]]) -> int:
    """Return memory that pods in so many slots do not exceed, as if pods could be divided.

    Args:
        slots: The slots.
        pieces: MiB of each pod, number of pods and slots of each pod.
    """
    total = 0
    for mib, count, width in sorted(pieces, key=lambda one: -one[0] / one[2]):
        whole = min(count, slots // width)
        total += mib * whole
        slots -= width * whole
        if whole < count:
            # Part of a pod: there is none, but nothing whole makes more of the slots that are left.
            return total + mib * slots // width
    return total


def conflicts(
    vram_mib: int, slots: int, candidates: Sequence[Candidate], *, limit: int = 20, budget: int = 20_000
) -> tuple[list[dict[int, int]], bool]:
    """Return the smallest sets of pods that want more memory than a device has.

    Args:
        vram_mib: Memory of the device.
        slots: Slots of the device.
        candidates: Pods that may meet there.
        limit: The most sets to return.
        budget: The most steps of the search.

    Returns:
        Each set, the number of pods by the index of the candidate: together they want more memory than there is, and
        without any one of them they do not. The fewest pods first, then what wants most, then the lowest index. Then
        whether there are no others.
    """
    pods = [
        _Pods(mib, width, min(count, slots // width), index)
        for index, (mib, count, width) in enumerate(candidates)
        if mib > 0 and count > 0 and width <= slots
    ]
    search = _Search(vram_mib, slots, sorted(pods, key=lambda one: (-one.mib, one.width, one.index)), budget)
    found: list[dict[int, int]] = []
    for _, tied in groupby(search.sets(), key=lambda one: one[:2]):
        some = (_counted(chosen) for _, _, chosen in islice(tied, _MOST_TIED * limit))
        found += heapq.nsmallest(limit + 1, some, key=lambda one: [(index, -one[index]) for index in one])
        if len(found) > limit:
            break
    return found[:limit], not search.gave_up and len(found) <= limit


@dataclass(frozen=True)
class _Pods:
    """Pods of one candidate."""

    mib: int
    width: int
    count: int
    index: int


_Chosen = tuple[int, "_Chosen"] | None


class _Way(NamedTuple):
    """Part of a set of pods.

    Attributes:
        rest: Number of pods still to choose.
        mib: Memory of those chosen.
        used: Slots of those chosen.
        place: Candidate to take from.
        taken: Number of pods taken from that candidate.
        chosen: Candidates of those chosen.
    """

    rest: int
    mib: int = 0
    used: int = 0
    place: int = 0
    taken: int = 0
    chosen: _Chosen = None


def _counted(chosen: _Chosen) -> dict[int, int]:
    indexes = []
    while chosen is not None:
        index, chosen = chosen
        indexes.append(index)
    return dict(Counter(sorted(indexes)))


class _Search:
    """Best first, greatest pods first: such a set is one whose last pod is the first that is too much."""

    def __init__(self, vram_mib: int, slots: int, pods: Sequence[_Pods], budget: int) -> None:
        self.gave_up = False
        self._vram_mib, self._slots, self._pods, self._budget = vram_mib, slots, pods, budget
        self._counts = list(accumulate((one.count for one in pods), initial=0))
        self._sums = list(accumulate((one.mib * one.count for one in pods), initial=0))
        self._narrowest = list(accumulate((one.width for one in reversed(pods)), min))[::-1]

    def _of_first(self, pods: int) -> int:
        """Return the memory of so many of the greatest pods."""
        place = bisect_left(self._counts, pods)
        return self._sums[place] - (self._counts[place] - pods) * self._pods[place - 1].mib if place else 0

    def sets(self) -> Iterator[tuple[int, int, _Chosen]]:
        """Return the number of pods, the memory and the indexes of every set, fewest pods and most memory first."""
        total = self._counts[-1]
        if self._of_first(total) <= self._vram_mib:
            return
        fewest = bisect_left(range(total + 1), True, key=lambda pods: self._of_first(pods) > self._vram_mib)
        for pods in range(fewest, min(total, self._slots // self._narrowest[0]) + 1):
            if self._sums[-1] - self._of_first(total - pods + 1) > self._vram_mib:
                return  # Even the smallest are too much without one of them.
            yield from self._of_size(pods)

    def _of_size(self, pods: int) -> Iterator[tuple[int, int, _Chosen]]:
        # Bound of the memory, pods still to choose, tie-breaker.
        heap = [(0, pods, 0, _Way(pods))]
        number = 0
        while heap and not self.gave_up:
            most, _, _, way = heapq.heappop(heap)
            if not way.rest:
                yield pods, -most, way.chosen
                continue
            self._budget -= 1
            self.gave_up = self._budget < 0
            one = self._pods[way.place]
            further = [way._replace(place=way.place + 1, taken=0)]
            if way.taken < one.count:
                chosen = one.index, way.chosen
                further.append(
                    _Way(way.rest - 1, way.mib + one.mib, way.used + one.width, way.place, way.taken + 1, chosen)
                )
            for each in further:
                bound_of_way = self._bound(each)
                if bound_of_way is not None:
                    number += 1
                    heapq.heappush(heap, (-bound_of_way, each.rest, -number, each))

    def _bound(self, way: _Way) -> int | None:
        """Return the most that such a set can want; None if there is none."""
        if not way.rest:
            return way.mib if way.used <= self._slots else None
        if way.mib > self._vram_mib or way.place == len(self._pods):
            return None
        gone, total = self._counts[way.place] + way.taken, self._counts[-1]
        if total - gone < way.rest or way.used + way.rest * self._narrowest[way.place] > self._slots:
            return None
        least = way.mib + self._sums[-1] - self._of_first(total - way.rest + 1)
        most = way.mib + self._of_first(gone + way.rest) - self._of_first(gone)
        return most if least <= self._vram_mib < most else None
