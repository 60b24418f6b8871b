"""The search for a packing of items, such as pods, into bins, such as nodes.

The search first tries fast rules that never move an item again. If these rules leave items without a bin, the search
compares sums to prove that no packing contains all items. If the sums prove nothing, the search calls a solver of
integer programs.
"""

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
"""Number of examined groups of equal bins after which the function ``greedy`` tries no further rule."""

MOST_SPREAD = 2_000
"""Largest number of copies (pods) for which ``greedy`` also tries to fill all bins evenly, because this is slow."""


def pack(items: Sequence[Item], bins: Sequence[Bin]) -> Packing:
    """Return the content of each bin, and whether all items fit.

    Args:
        items: Items to place. If not all fit, earlier items take precedence.
        bins: Kinds of bins into which the items go, each with its number of equal bins.
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
    """Call the solver for the unsolved parts of a packing problem. Return whether all items of these parts fit.

    The result is ``no`` if the solver answers ``no`` for one part, and ``yes`` if it answers ``yes`` for every unsolved
    part. Otherwise, the result is ``undecided``.

    Args:
        parts: All parts of the problem.
        left_open: Indices of the unsolved parts.
        fillings: Packing of each part, which the function replaces if the solver finds a better one.
    """
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
    """Return the sort key of a proof that items do not fit: few items come first, then few kinds of bins."""
    return len(shortage.items), len(shortage.bins), shortage.items


def greedy(part: Part) -> Filling:
    """Return the best packing that several fast rules find for one part of a packing problem.

    A rule sorts the items (pods) and puts one after the other into bins (nodes), without moving an item again. The best
    packing contains the most copies of items. If several contain equally many, earlier items of the part take
    precedence.
    """
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
    """Return sort keys for items. For each sort key, ``greedy`` places all items in bins in the order of the key.

    A sort key is a function that takes the index of an item. For example, the first key sorts items by size, the
    largest first. Sort keys that usually result in better packings come first.

    Args:
        part: Part of the packing problem that contains the items.
        weights: Weight of each dimension, from ``_weights``.
        sums: Weighted sum of the amounts that one copy of an item needs, by index of the item.
    """
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
    """Return a weight for each dimension, with which ``_scaled`` turns the size of an item into one number.

    The weight of a dimension is the inverse of the total amount in all bins, so a scarce dimension has a large weight.
    """
    totals = [
        sum(parts) for parts in zip(*([n * one.count for n in one.size] for one in part.bins.values()), strict=True)
    ]
    return [10**15 // max(total, 1) + 1 if d in part.dimensions else 0 for d, total in enumerate(totals)]


def _scaled(weights: Sequence[int], size: Sequence[int]) -> int:
    """Return the weighted sum of the amounts of a size: each amount times the weight of its dimension."""
    return sum(takes * weight for takes, weight in zip(size, weights, strict=True))


class _Bins:
    """The contents of the bins of one part of a problem, while the function ``greedy`` fills them.

    Attributes:
        groups: Groups of bins with equal content, by a number that identifies the group.
        looked: Number of groups of bins that the method ``put`` has examined so far.
    """

    def __init__(self, part: Part, weights: Sequence[int]) -> None:
        self._part = part
        self._weights = weights
        self._least = [min(sizes) for sizes in zip(*(item.size for item in part.items.values()), strict=True)]
        self._ids = count()
        # Weighted room and key of each group whose bins can accept more items, in ascending order of the room.
        self._queue: list[tuple[int, int]] = []
        self.groups: dict[int, Group] = {}
        self.looked = 0
        for kind, one in part.bins.items():
            self._add(Group(kind, one.count, {}, one.size))

    def put(self, index: int, weight: int, *, spreads: bool) -> int:
        """Put the copies of an item into bins. Return the number of copies without room.

        Args:
            index: Index of the item.
            weight: Weighted sum of the amounts that a copy needs.
            spreads: Whether each copy goes into the emptiest bin. If False, the method fills one bin after the other,
                the fullest first.
        """
        copies = self._part.items[index].count
        turns = [1] * copies if spreads else [copies]
        return sum(self._put(index, weight, turn, most_room_first=spreads) for turn in turns)

    def _put(self, index: int, weight: int, left: int, *, most_room_first: bool) -> int:
        """Fill one bin after the other with copies of an item. Return the number of copies without room.

        Args:
            index: Index of the item.
            weight: Weighted sum of the amounts that a copy needs.
            left: Number of copies to put into bins.
            most_room_first: Whether to start with the emptiest bin. If False, the method starts with the fullest bin.
        """
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
        """Record a group of equal bins.

        Later searches use the group only if one of its bins has room for the smallest item.
        """
        key = next(self._ids)
        self.groups[key] = group
        if all(has >= takes for has, takes in zip(group.room, self._least, strict=True)):
            insort(self._queue, (_scaled(self._weights, group.room), key))
