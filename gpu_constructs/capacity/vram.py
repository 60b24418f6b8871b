"""What pods that meet on one device take of its memory, in whole MiB: nothing in Kubernetes counts it."""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

Candidate = tuple[int, int] | tuple[int, int, int]
"""Pods that are alike: MiB that each takes, how many there are, slots of the device that each holds (1)."""

_MOST_SUMS = 500_000


@dataclass(frozen=True)
class Conflicts:
    """Pods that do not go together on a device.

    Attributes:
        sets: Each the number of pods by the index of the candidate: together they want more memory than there is, and
            without any one of them they do not. The fewest pods first, then what wants most, then the lowest index.
        is_complete: Whether there are no others.
    """

    sets: list[dict[int, int]]
    is_complete: bool


def worst_mib(slots: int, candidates: Sequence[Candidate]) -> int:
    """Give the most memory that pods which may meet on a device take together.

    A pod takes its memory once, however many slots it holds. Where pods hold different numbers of very many slots,
    the answer may be more than the exact one, never less.
    """
    pods: dict[int, dict[int, int]] = {}
    for mib, count, width in _apart(candidates):
        if mib > 0 and count > 0 and width <= slots:
            of_width = pods.setdefault(width, {})
            of_width[mib] = of_width.get(mib, 0) + count
    pieces = [piece for width, sizes in sorted(pods.items()) for piece in _greatest(slots // width, width, sizes)]
    if len(pods) == 1 or sum(width * count for _, count, width in pieces) <= slots:
        return sum(mib * count for mib, count, _ in pieces)
    return _knapsack(slots, pieces)


def _apart(candidates: Sequence[Candidate]) -> Iterator[tuple[int, int, int]]:
    for candidate in candidates:
        mib, count, *width = candidate
        yield mib, count, max(1, *width) if width else 1


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
            return _bound(slots, pieces)
        more = [(used + width, taken + mib) for used, taken in best if used + width <= slots]
        merged, best, most = heapq.merge(best, more, key=lambda one: (one[0], -one[1])), [], -1
        for used, taken in merged:
            if taken > most:
                best.append((used, taken))
                most = taken
    return best[-1][1]


def _halved(pieces: Sequence[tuple[int, int, int]]) -> Iterator[tuple[int, int]]:
    """Give bundles of pods that are alike, out of which every number of them can be put together."""
    for mib, count, width in pieces:
        bundle = 1
        while count > 0:
            pods = min(bundle, count)
            yield mib * pods, width * pods
            count -= pods
            bundle *= 2


def _bound(slots: int, pieces: Sequence[tuple[int, int, int]]) -> int:
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
) -> Conflicts:
    """Find the smallest sets of pods that want more memory than a device has.

    Args:
        vram_mib: What the device has.
        slots: How many of it pods may hold.
        candidates: Pods that may meet there.
        limit: The most sets to give.
        budget: The most steps of the search.
    """
    indexes: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for index, (mib, count, width) in enumerate(_apart(candidates)):
        if mib > 0 and count > 0 and width <= slots:
            indexes.setdefault((mib, width), []).append((index, min(count, slots // width)))
    order = sorted(indexes, key=lambda one: (-one[0], one[1]))
    groups = [_Group(mib, width, indexes[mib, width]) for mib, width in order]
    found: list[dict[int, int]] = []
    tied: list[dict[int, int]] = []
    last: tuple[int, int] | None = None
    search = _Search(vram_mib, slots, groups, budget)
    for pods, total, chosen in search.sets():
        if (pods, total) != last:
            found.extend(_in_order(tied))
            tied, last = [], (pods, total)
            if len(found) > limit:
                break
        # None beyond the limit of a group's own can come before the limit of all.
        tied = heapq.nsmallest(limit + 1, [*tied, *_of_groups(groups, chosen, limit + 1)], key=_place)
    found.extend(_in_order(tied))
    return Conflicts(found[:limit], is_complete=not search.gave_up and len(found) <= limit)


@dataclass(frozen=True)
class _Group:
    """Candidates of one size: MiB and slots of each pod, index and number of pods of each candidate."""

    mib: int
    width: int
    members: Sequence[tuple[int, int]]

    @property
    def count(self) -> int:
        return sum(count for _, count in self.members)

    def picks(self, pods: int, limit: int) -> Iterator[dict[int, int]]:
        """Give the first ways to take so many pods, those with the lowest indexes first."""
        # Further ones would come only after the limit: each later pod alone is a way that comes before.
        members = self.members[: pods + limit]
        taken = [0] * len(members)

        def fill(start: int, rest: int) -> None:
            for place in range(start, len(members)):
                taken[place] = min(rest, members[place][1])
                rest -= taken[place]

        fill(0, pods)
        for _ in range(limit):
            yield {index: count for (index, _), count in zip(members, taken, strict=True) if count}
            behind = room = 0
            for place in range(len(members) - 1, -1, -1):
                if taken[place] and room > behind:
                    taken[place] -= 1
                    fill(place + 1, behind + 1)
                    break
                behind += taken[place]
                room += members[place][1]
            else:
                return


def _of_groups(groups: Sequence[_Group], chosen: dict[int, int], limit: int) -> list[dict[int, int]]:
    ways: list[dict[int, int]] = [{}]
    for group, pods in chosen.items():
        ways = heapq.nsmallest(
            limit, ({**way, **pick} for pick in groups[group].picks(pods, limit) for way in ways), key=_place
        )
    return ways


def _place(pods: dict[int, int]) -> list[tuple[int, int]]:
    # More of a lower index comes first, as it would with each pod's index written out in order.
    return [(index, -pods[index]) for index in sorted(pods)]


def _in_order(sets: list[dict[int, int]]) -> list[dict[int, int]]:
    return [dict(sorted(one.items())) for one in sorted(sets, key=_place)]


_Chosen = tuple[int, "_Chosen"] | None


@dataclass
class _Search:
    """Best first over the sizes, greatest first: such a set is one whose last pod is the first that is too much."""

    vram_mib: int
    slots: int
    groups: Sequence[_Group]
    budget: int
    gave_up: bool = False
    _counts: list[int] = field(init=False)
    _sums: list[int] = field(init=False)
    _narrowest: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self._counts = list(accumulate((group.count for group in self.groups), initial=0))
        self._sums = list(accumulate((group.mib * group.count for group in self.groups), initial=0))
        widths = [group.width for group in reversed(self.groups)]
        self._narrowest = list(accumulate(widths, min))[::-1]

    def _of_first(self, pods: int) -> int:
        """Memory of so many pods in the order of the groups."""
        place = bisect_left(self._counts, pods)
        return self._sums[place] - (self._counts[place] - pods) * self.groups[place - 1].mib if place else 0

    def sets(self) -> Iterator[tuple[int, int, dict[int, int]]]:
        """Give pods, memory and how many of each group of every set, fewest pods and greatest memory first."""
        total = self._counts[-1]
        if not self.groups or self._of_first(total) <= self.vram_mib:
            return
        fewest = bisect_left(range(total + 1), True, key=lambda pods: self._of_first(pods) > self.vram_mib)
        for pods in range(fewest, min(total, self.slots // self._narrowest[0]) + 1):
            if self._sums[-1] - self._of_first(total - pods + 1) > self.vram_mib:
                return  # Even the smallest are too much without one of them.
            yield from self._of_size(pods)
            if self.gave_up:
                return

    def _of_size(self, pods: int) -> Iterator[tuple[int, int, dict[int, int]]]:
        # Bound of the memory, pods still to choose, tie-breaker; then what is chosen: memory, slots, the group to take
        # from, how many are taken from it, and those before.
        heap: list[tuple[int, int, int, int, int, int, int, _Chosen]] = []
        number = 0

        def push(rest: int, mib: int, used: int, group: int, taken: int, chosen: _Chosen) -> None:
            nonlocal number
            bound = self._bound(rest, mib, used, group, taken)
            if bound is not None:
                number += 1
                heapq.heappush(heap, (-bound, rest, -number, mib, used, group, taken, chosen))

        push(pods, 0, 0, 0, 0, None)
        while heap:
            bound, rest, _, mib, used, group, taken, chosen = heapq.heappop(heap)
            if not rest:
                yield pods, -bound, _counted(chosen)
                continue
            if self.budget <= 0:
                self.gave_up = True
                return
            self.budget -= 1
            one = self.groups[group]
            push(rest, mib, used, group + 1, 0, chosen)
            if taken < one.count:
                push(rest - 1, mib + one.mib, used + one.width, group, taken + 1, (group, chosen))

    def _bound(self, rest: int, mib: int, used: int, group: int, taken: int) -> int | None:
        """Give the most that such a set can want; None where there is none."""
        if not rest:
            return mib if used <= self.slots else None
        if mib > self.vram_mib or group == len(self.groups):
            return None
        gone, total = self._counts[group] + taken, self._counts[-1]
        if total - gone < rest or used + rest * self._narrowest[group] > self.slots:
            return None
        least = mib + self._sums[-1] - self._of_first(total - rest + 1)
        most = mib + self._of_first(gone + rest) - self._of_first(gone)
        if least > self.vram_mib or most <= self.vram_mib:
            return None
        return most


def _counted(chosen: _Chosen) -> dict[int, int]:
    counts: dict[int, int] = {}
    while chosen is not None:
        group, chosen = chosen
        counts[group] = counts.get(group, 0) + 1
    return counts
