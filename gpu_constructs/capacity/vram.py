"""Sums of the memory that pods take on one device, in whole MiB.

Kubernetes does not count GPU memory, so pods on a shared device can take more memory than the device has. A *candidate*
is a set of equal pods that can use the device, for example the replicas of a Deployment. A *slot* is one unit of the
device's resource. The functions compute how much memory pods can take together, and which smallest sets of pods exceed
the memory of the device.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, groupby, islice
from typing import NamedTuple

from gpu_constructs.capacity.gathered import grouped, summed
from gpu_constructs.records import dataclass

Candidate = tuple[int, int, int]
"""Equal pods: memory in MiB of each pod, number of pods, and number of slots that each pod holds."""

_MOST_SUMS = 500_000
_MOST_TIED = 20


def worst_mib(slots: int, candidates: Sequence[Candidate]) -> int:
    """Return the largest total memory in MiB of pods that can share a device at the same time.

    A pod takes its memory once, even if it holds several slots. The function chooses the pods that fit the slots and
    take the most memory (a knapsack problem). If the exact search takes too long, the result is an upper bound.

    Args:
        slots: Number of slots of the device.
        candidates: Pods that can use the device.
    """
    fitting = [one for one in candidates if one[0] > 0 and one[1] > 0 and one[2] <= slots]
    pods = {width: summed(sizes) for width, sizes in grouped((one[2], one[:2]) for one in fitting).items()}
    pieces = [piece for width, sizes in sorted(pods.items()) for piece in _greatest(slots // width, width, sizes)]
    if len(pods) == 1 or sum(width * count for _, count, width in pieces) <= slots:
        return sum(mib * count for mib, count, _ in pieces)
    return _knapsack(slots, pieces)


def _greatest(most: int, width: int, sizes: dict[int, int]) -> Iterator[tuple[int, int, int]]:
    """Yield the pods with the largest memory, in groups of pods with equal memory.

    Each group is a triple: memory of each pod in MiB, number of pods, and slots of each pod.

    Args:
        most: Largest number of pods in all groups together.
        width: Number of slots that each pod holds.
        sizes: Number of pods by their memory in MiB.
    """
    for mib in sorted(sizes, reverse=True):
        count = min(most, sizes[mib])
        if count:
            yield mib, count, width
        most -= count


def _knapsack(slots: int, pieces: Sequence[tuple[int, int, int]]) -> int:
    """Return the largest memory in MiB of pods that together hold at most the given number of slots.

    Args:
        slots: Number of slots.
        pieces: Entry for each set of equal pods: memory in MiB of each pod, number of pods, and slots of each pod.
    """
    # Slots and MiB of sets of pods, by rising slots. It omits a set if another one has more memory in as few slots.
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
    """Yield a pair for each bundle of 1, 2, 4, … equal pods: its memory in MiB, and its number of slots.

    Any number of equal pods is the sum of some of these bundles, so the knapsack search handles fewer items.

    Args:
        pieces: Triple for each set of equal pods: memory in MiB of each pod, number of pods, and slots of each pod.
    """
    for mib, count, width in pieces:
        bundle = 1
        while count > 0:
            pods = min(bundle, count)
            yield mib * pods, width * pods
            count -= pods
            bundle *= 2


def bound(slots: int, pieces: Iterable[tuple[int, int, int]]) -> int:
    """Return an upper bound of the memory in MiB that pods can take in the given number of slots.

    To fill all slots, the function assumes that a part of a pod can run. For example, half of a pod then takes half of
    the pod's slots and half of its memory.

    Args:
        slots: Number of slots.
        pieces: Entry for each set of equal pods: memory in MiB of each pod, number of pods, and slots of each pod.
    """
    total = 0
    for mib, count, width in sorted(pieces, key=lambda one: -one[0] / one[2]):
        whole = min(count, slots // width)
        total += mib * whole
        slots -= width * whole
        if whole < count:
            # Whole pods cannot use the remaining slots better than this part of a pod.
            return total + mib * slots // width
    return total


def conflicts(
    vram_mib: int, slots: int, candidates: Sequence[Candidate], *, limit: int = 20, budget: int = 20_000
) -> tuple[list[dict[int, int]], bool]:
    """Return the minimal sets of pods that need more memory than a device has.

    If you remove any pod from a minimal set, the remaining pods fit the device.

    Args:
        vram_mib: Memory of the device in MiB.
        slots: Number of slots of the device.
        candidates: Pods that can share the device.
        limit: Largest number of returned sets. Default: 20.
        budget: Largest number of search steps. Default: 20,000.

    Returns:
        The sets, and whether these are all sets. Each set maps an index in ``candidates`` to the number of its pods.
        Sets with the fewest pods come first. Among sets of equal size, those with the most memory come first.
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
    """A group of equal pods that can use the device.

    Attributes:
        mib: Memory in MiB of each pod.
        width: Number of slots that each pod holds.
        count: Number of pods.
        index: Index of this group in the list of all groups that can use the device.
    """

    mib: int
    width: int
    count: int
    index: int


_Chosen = tuple[int, "_Chosen"] | None


class _Way(NamedTuple):
    """An incomplete set of pods in the search for sets with a certain number of pods.

    A candidate is a group of equal pods that can use the device.

    Attributes:
        rest: Number of pods that the set still lacks.
        mib: Memory in MiB of the chosen pods.
        used: Number of slots of the chosen pods.
        place: Position (in the sorted list of candidates) of the candidate from which the search chooses the next pod.
        taken: Number of pods that the search has already chosen from this candidate.
        chosen: Linked list with the index of the candidate of each chosen pod. The last chosen pod comes first.
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
    """A search for the minimal sets of pods that exceed the memory of a device.

    If you remove any pod from a minimal set, the remaining pods fit the device. The search finds small sets first. Each
    step extends the incomplete set with the highest upper bound of memory (best-first search).
    """

    def __init__(self, vram_mib: int, slots: int, pods: Sequence[_Pods], budget: int) -> None:
        self.gave_up = False
        self._vram_mib, self._slots, self._pods, self._budget = vram_mib, slots, pods, budget
        self._counts = list(accumulate((one.count for one in pods), initial=0))
        self._sums = list(accumulate((one.mib * one.count for one in pods), initial=0))
        self._narrowest = list(accumulate((one.width for one in reversed(pods)), min))[::-1]

    def _of_first(self, pods: int) -> int:
        """Return the total memory in MiB of the largest pods.

        Args:
            pods: Number of largest pods to add up.
        """
        place = bisect_left(self._counts, pods)
        return self._sums[place] - (self._counts[place] - pods) * self._pods[place - 1].mib if place else 0

    def sets(self) -> Iterator[tuple[int, int, _Chosen]]:
        """Yield a triple for each minimal set of pods that exceeds the memory of the device.

        A triple contains the number of pods in the set, their memory in MiB, and a linked list. For each pod of the
        set, the list contains the index of the group of equal pods to which the pod belongs. Sets with the fewest pods
        come first. Among sets with equal numbers of pods, those with the most memory come first.
        """
        total = self._counts[-1]
        if self._of_first(total) <= self._vram_mib:
            return
        fewest = bisect_left(range(total + 1), True, key=lambda pods: self._of_first(pods) > self._vram_mib)
        for pods in range(fewest, min(total, self._slots // self._narrowest[0]) + 1):
            if self._sums[-1] - self._of_first(total - pods + 1) > self._vram_mib:
                return  # The smallest pods exceed the memory even without one of them.
            yield from self._of_size(pods)

    def _of_size(self, pods: int) -> Iterator[tuple[int, int, _Chosen]]:
        # Bound of the memory, number of pods to choose, tie-breaker.
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
        """Return an upper bound of the memory in MiB of the sets that the search can build from an incomplete set.

        Return None if the search cannot build a minimal set that exceeds the memory of the device.

        Args:
            way: Incomplete set of pods.
        """
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
