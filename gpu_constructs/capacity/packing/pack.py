"""The answer: counts first, then simple rules that never go back, then a solver."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count

from gpu_constructs.capacity.packing import bounds
from gpu_constructs.capacity.packing.problem import (
    Answer,
    Bin,
    Filling,
    Group,
    Item,
    Load,
    Packing,
    Part,
    Shortage,
    join,
    split,
)
from gpu_constructs.capacity.packing.solver import solve

MOST_WORK = 1_000_000
"""Bins looked at before no further rule is tried."""

MOST_SPREAD = 2_000
"""Copies up to which bins are filled evenly too, for which each copy is placed by itself."""


def pack(items: Sequence[Item], bins: Sequence[Bin]) -> Packing:
    """Find a place for every item.

    Args:
        items: Things to place; if there is no place for all, the earlier ones matter more.
        bins: Bins for them.
    """
    parts, homeless = split(items, bins)
    shortages = [bounds.homeless(i, items[i], bins) for i in homeless]
    is_impossible = bool(homeless)
    fillings: list[Filling] = []
    left_open: list[int] = []
    for at, part in enumerate(parts):
        exact = bounds.alike(part)
        fillings.append(exact or greedy(part))
        if fillings[at].unplaced:
            shortage = bounds.shortage(part)
            shortages += [shortage] if shortage else []
            is_impossible = is_impossible or bool(shortage or exact)
            left_open.append(at)
    answer: Answer = "no" if is_impossible else _solved(parts, left_open, fillings)
    lacking = [(i, items[i].count) for i in homeless]
    lacking += [each for filling in fillings for each in filling.unplaced.items()]
    return Packing(
        answer=answer,
        loads=join(bins, fillings),
        unplaced=dict(sorted(lacking)),
        shortage=min(shortages, key=_simplest) if shortages else None,
    )


def _solved(parts: Sequence[Part], left_open: Iterable[int], fillings: list[Filling]) -> Answer:
    """Have a solver decide the parts that are left open, the simplest first; take its fillings over."""
    found: Answer = "yes"
    for at in sorted(left_open, key=lambda at: len(parts[at].items)):
        answer, filling = solve(parts[at])
        fillings[at] = filling or fillings[at]
        if answer == "no":
            return "no"
        if answer == "undecided":
            found = "undecided"
    return found


def _simplest(shortage: Shortage) -> tuple[int, int, tuple[int, ...]]:
    return len(shortage.items), len(shortage.bins), shortage.items


def greedy(part: Part) -> Filling:
    """Return the best packing that a simple rule finds: most copies placed, then the earlier items."""
    weights = _weights(part)
    sums = {i: _scaled(weights, item.size) for i, item in part.items.items()}
    orders = _orders(part, weights, sums)
    is_small = sum(item.count for item in part.items.values()) <= MOST_SPREAD
    found: list[Filling] = []
    looked = 0
    for order, spreads in [*((one, False) for one in orders), *((one, True) for one in orders[:3:2] if is_small)]:
        bins = _Bins(part, weights)
        unplaced = {i: bins.put(i, sums[i], spreads=spreads) for i in sorted(part.items, key=order)}
        loads = [Load(kind, number, content) for kind, number, content, _ in bins.groups.values()]
        found.append(Filling(loads, {i: lacking for i, lacking in unplaced.items() if lacking}))
        looked += bins.looked
        if not found[-1].unplaced or looked > MOST_WORK:
            break
    return min(found, key=lambda one: (sum(one.unplaced.values()), [one.unplaced.get(i, 0) for i in part.items]))


def _orders(part: Part, weights: Sequence[int], sums: Mapping[int, int]) -> list[Callable[[int], tuple[int, ...]]]:
    """Return the keys by which items are sorted, the most promising first."""
    choices = {i: mask.bit_count() for i, mask in part.masks.items()}
    largest = {i: max(t * w for t, w in zip(item.size, weights, strict=True)) for i, item in part.items.items()}
    return [
        lambda i: (-sums[i], choices[i]),
        lambda i: (i,),
        lambda i: (choices[i], -sums[i]),
        lambda i: (-largest[i], choices[i]),
        lambda i: (sums[i], i),
    ]


def _weights(part: Part) -> list[int]:
    """Return weights that make one number of a size: each dimension counts for its share of all there is of it."""
    totals = [
        sum(parts) for parts in zip(*([n * one.count for n in one.size] for one in part.bins.values()), strict=True)
    ]
    return [10**15 // max(total, 1) + 1 if d in part.dimensions else 0 for d, total in enumerate(totals)]


def _scaled(weights: Sequence[int], size: Sequence[int]) -> int:
    return sum(takes * weight for takes, weight in zip(size, weights, strict=True))


class _Bins:
    """Bins of a part while items are put into them.

    Attributes:
        groups: The bins.
        looked: Number of them looked at.
    """

    def __init__(self, part: Part, weights: Sequence[int]) -> None:
        self._part = part
        self._weights = weights
        self._least = [min(sizes) for sizes in zip(*(item.size for item in part.items.values()), strict=True)]
        self._ids = count()
        # The room of bins that still take something, the least first, and their key among the groups.
        self._queue: list[tuple[int, int]] = []
        self.groups: dict[int, Group] = {}
        self.looked = 0
        for kind, one in part.bins.items():
            self._add(Group(kind, one.count, {}, one.size))

    def put(self, index: int, weight: int, *, spreads: bool) -> int:
        """Put an item where there is the least room for it, or copy by copy where there is the most of it.

        Returns:
            How many copies have no place.
        """
        copies = self._part.items[index].count
        turns = [1] * copies if spreads else [copies]
        return sum(self._put(index, weight, turn, most_room_first=spreads) for turn in turns)

    def _put(self, index: int, weight: int, left: int, *, most_room_first: bool) -> int:
        item, mask = self._part.items[index], self._part.masks[index]
        used: list[int] = []
        changed: list[Group] = []
        there = range(bisect_left(self._queue, (weight, -1)), len(self._queue))
        for at in reversed(there) if most_room_first else there:
            self.looked += 1
            group = self.groups[self._queue[at][1]]
            most = item.most - group.content.get(index, 0)
            each = item.fit(group.room, most) if mask >> group.kind & 1 else 0
            if each > 0:
                used.append(at)
                changed += group.filled(index, item.size, each, left)
                left -= min(left, each * group.number)
                if not left:
                    break
        for at in reversed(used):
            del self.groups[self._queue.pop(at)[1]]
        for group in changed:
            self._add(group)
        return left

    def _add(self, group: Group) -> None:
        key = next(self._ids)
        self.groups[key] = group
        if all(has >= takes for has, takes in zip(group.room, self._least, strict=True)):
            insort(self._queue, (_scaled(self._weights, group.room), key))
