"""The data of a packing problem and of its result, and the division of a problem into independent parts.

An item stands for equal copies, for example pods. Each copy goes as a whole into one bin, for example a node. A
dimension is one kind of amount that copies take and bins have, for example one extended resource. A kind of bins stands
for equal bins. A part is a set of items with all bins that they can use. Items of one part do not affect other parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, reduce
from operator import ge, or_
from typing import Literal, NamedTuple, TypeVar

from gpu_constructs.capacity.gathered import grouped, summed
from gpu_constructs.records import dataclass

Answer = Literal["yes", "no", "undecided"]


@dataclass(frozen=True)
class Item:
    """Equal copies, for example pods, each of which goes as a whole into one bin.

    Attributes:
        size: Amount that one copy takes in each dimension; not negative.
        count: Number of copies.
        bins: Indices of the kinds of bins that accept the item.
        most_per_bin: Largest number of copies in one bin; None if no such limit exists.
    """

    size: tuple[int, ...]
    count: int
    bins: frozenset[int]
    most_per_bin: int | None = None

    @property
    def most(self) -> int:
        """Largest number of copies that may be in one bin, without regard to sizes."""
        return self.count if self.most_per_bin is None else min(self.count, self.most_per_bin)

    def fit(self, room: tuple[int, ...], most: int) -> int:
        """Return the number of copies that fit into the free room of a bin, but at most ``most``."""
        return min([most, *(has // takes for has, takes in zip(room, self.size, strict=True) if takes)])


@dataclass(frozen=True)
class Bin:
    """A kind of bins: equal bins, for example equal nodes.

    Attributes:
        size: Amount that one bin has in each dimension.
        count: Number of bins.
    """

    size: tuple[int, ...]
    count: int


@dataclass(frozen=True)
class Load:
    """Bins of one kind that have equal content.

    Attributes:
        bin: Index of the kind of bins.
        count: Number of these bins.
        items: Number of copies of an item in every one of these bins, by index of the item. Empty for empty bins.
    """

    bin: int
    count: int
    items: Mapping[int, int]


@dataclass(frozen=True)
class Shortage:
    """A proof that some items do not fit: they need more than the bins that accept at least one of them have together.

    Three kinds of proof exist:

    - Amounts: the proof adds up the amounts of one dimension, for example of one resource.
    - Places: a place is room for one copy of an item. Each copy needs one place.
    - Large places: a place is the amount ``at_least`` in one dimension. Each copy that takes at least this amount needs
      one place.

    Attributes:
        items: Indices of the items.
        bins: Indices of the kinds of bins (equal bins) that accept one of the items and have room for a copy of it. If
            no such kind exists: indices of the kinds that accept an item but lack room.
        dimension: Index of the dimension for a proof by amounts or by large places; None for a proof by places.
        needed: Amount, or number of places, that the items need together.
        available: Amount, or number of places, that the bins have together.
        at_least: Amount of one place, for a proof by large places; otherwise None.
    """

    items: tuple[int, ...]
    bins: tuple[int, ...]
    dimension: int | None
    needed: int
    available: int
    at_least: int | None = None


@dataclass(frozen=True)
class Packing:
    """The result of packing items into bins.

    Attributes:
        answer: Whether all items fit. ``yes`` and ``no`` are certain. ``undecided`` means that the solver gave up or is
            not installed.
        loads: Content of every bin. If the answer is not ``yes``, some copies of items are in no bin.
        unplaced: Number of copies that are in no bin, by index of the item. Items without such copies have no entry.
        shortage: What the items need and the smaller amount that the bins have, as a proof of the answer ``no``. None
            for other answers, and if the solver found ``no`` in another way.
    """

    answer: Answer
    loads: tuple[Load, ...]
    unplaced: Mapping[int, int]
    shortage: Shortage | None


@dataclass(frozen=True)
class Part:
    """Items and the bins that they can use. Other items of the packing problem do not compete with them.

    Attributes:
        dimensions: Indices of the dimensions (for example resources) in which the items take an amount.
        items: Items by their index in the problem.
        masks: Bit mask for each item, by index of the item. Bit k is 1 if bins of kind k accept the item and have room
            for one copy.
        bins: Kinds of bins by their index in the problem.
    """

    dimensions: tuple[int, ...]
    items: Mapping[int, Item]
    masks: Mapping[int, int]
    bins: Mapping[int, Bin]

    def fit(self, item: int, kind: int) -> int:
        """Return the number of copies of an item that fit into one empty bin of a kind."""
        return self.items[item].fit(self.bins[kind].size, self.items[item].most)


@dataclass(frozen=True)
class Filling:
    """A packing of one part of a problem: the contents of its bins, and the copies that are in no bin.

    Attributes:
        loads: Bins with their content. The indices are those of the whole problem.
        unplaced: Number of copies that are in no bin, by index of the item. Items without such copies have no entry.
    """

    loads: Sequence[Load]
    unplaced: Mapping[int, int]


def bits(mask: int) -> Iterator[int]:
    """Yield the positions of the bits of a number that are 1, the lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def split(items: Sequence[Item], bins: Sequence[Bin]) -> tuple[list[Part], list[int]]:
    """Divide a packing problem into independent parts, which the solver can handle separately.

    Two items are in the same part if the same bin accepts both and they take amounts in a common dimension. They are
    also in the same part if other items connect them in this way.

    Returns:
        The parts, and the indices of the items of which no bin can contain a copy.
    """
    masks = _masks(items, bins)
    homeless = [i for i, item in enumerate(items) if item.count > 0 and not masks[i]]
    together = _dimensions(items)
    groups = grouped(
        (next((together[d] for d, takes in enumerate(item.size) if takes), ()), i)
        for i, item in enumerate(items)
        if item.count > 0 and masks[i]
    )
    parts = [
        Part(
            dimensions,
            {i: items[i] for i in component},
            {i: masks[i] for i in component},
            {k: bins[k] for k in bits(mask)},
        )
        for dimensions, members in groups.items()
        for mask, component in _components(members, masks)
    ]
    return parts, homeless


def _masks(items: Sequence[Item], bins: Sequence[Bin]) -> list[int]:
    """Return a bit mask for each item. Bit k is 1 if bins of kind k accept the item and have room for one copy."""

    @cache
    def mask(takers: frozenset[int], size: tuple[int, ...]) -> int:
        return sum(1 << k for k in takers if bins[k].count > 0 and all(map(ge, bins[k].size, size)))

    return [0 if item.most_per_bin == 0 else mask(item.bins, item.size) for item in items]


def _dimensions(items: Sequence[Item]) -> dict[int, tuple[int, ...]]:
    """Return a dict from each dimension to all dimensions that items connect with it, directly or indirectly.

    An item that takes amounts in several dimensions connects these dimensions.
    """
    together: dict[int, tuple[int, ...]] = {}
    for pattern in dict.fromkeys(tuple(d for d, takes in enumerate(i.size) if takes) for i in items if i.count > 0):
        union = tuple(sorted({other for d in pattern for other in (d, *together.get(d, ()))}))
        together.update(dict.fromkeys(union, union))
    return together


def _components(members: Sequence[int], masks: Sequence[int]) -> Iterable[tuple[int, list[int]]]:
    """Yield a pair for each group of items that compete for bins: a bit mask, and the list of the items.

    Two items are in one group if the same bin accepts both, or if other items connect them in this way. Bit k of the
    mask is 1 if bins of kind k accept an item of the group.
    """
    unions: list[int] = []
    for mask in dict.fromkeys(masks[i] for i in members):
        touched = [union for union in unions if union & mask]
        unions = [*(union for union in unions if not union & mask), reduce(or_, touched, mask)]
    return grouped((next(union for union in unions if union & masks[i]), i) for i in members).items()


_Run = tuple[int, Mapping[int, int]]
"""Number of bins with equal content, and their content: the number of copies by index of the item."""
_One = TypeVar("_One")
_Other = TypeVar("_Other")


def join(bins: Sequence[Bin], fillings: Iterable[Filling]) -> tuple[Load, ...]:
    """Return the contents of all bins of a problem, from the packings of its independent parts.

    Args:
        bins: Kinds of bins (equal bins) of the problem.
        fillings: Packing of each part. The items of two parts can share a bin if they take different dimensions of it.
    """
    runs: list[list[_Run]] = [[(one.count, {})] if one.count > 0 else [] for one in bins]
    for filling in fillings:
        for kind, loads in grouped((load.bin, (load.count, load.items)) for load in filling.loads).items():
            runs[kind] = [(count, {**one, **more}) for count, one, more in overlaid(runs[kind], loads)]
    found: list[Load] = []
    for kind, those in enumerate(runs):
        same = summed((tuple(sorted(content.items())), count) for count, content in those)
        ordered = sorted(same.items(), key=lambda each: not each[0])
        found.extend(Load(kind, count, dict(key)) for key, count in ordered)
    return tuple(found)


def overlaid(
    some: Iterable[tuple[int, _One]], others: Sequence[tuple[int, _Other]]
) -> Iterator[tuple[int, _One, _Other]]:
    """Combine two sequences of the same length position by position.

    Each argument describes a sequence as a list of runs. A run is a pair: a count of positions, and the value at these
    positions. Yield tuples: count of positions, first value, second value. For example, ``[(3, a)]`` and ``[(1, x), (2,
    y)]`` result in ``(1, a, x)`` and ``(2, a, y)``.
    """
    rest = list(reversed(others))
    for left, one in some:
        while left:
            there, other = rest.pop()
            taken = min(left, there)
            yield taken, one, other
            left -= taken
            if there > taken:
                rest.append((there - taken, other))


class Group(NamedTuple):
    """Bins of one kind with equal content, while the function ``greedy`` fills them.

    Attributes:
        kind: Index of the kind of bins.
        number: Number of these bins.
        content: Number of copies of an item in every one of these bins, by index of the item.
        room: Free amount in each dimension of every one of these bins.
    """

    kind: int
    number: int
    content: Mapping[int, int]
    room: tuple[int, ...]

    def changed(self, index: int, size: Sequence[int], changes: Iterable[tuple[int, int]]) -> Iterator[Group]:
        """Yield the groups of equal bins that result if the number of copies of an item changes in some bins.

        This group itself stays unchanged.

        Args:
            index: Index of the item.
            size: Amount that one copy takes in each dimension.
            changes: Pairs of two numbers: the copies to add to a bin (negative to remove copies), and the number of
                bins to change in this way.
        """
        left = self.number
        for more, number in changes:
            if more and number:
                content = {**self.content, index: self.content.get(index, 0) + more}
                room = tuple(has - more * takes for has, takes in zip(self.room, size, strict=True))
                yield Group(self.kind, number, {i: count for i, count in content.items() if count}, room)
                left -= number
        if left:
            yield self._replace(number=left)

    def filled(self, index: int, size: Sequence[int], each: int, copies: int) -> list[Group]:
        """Put copies of an item into the bins of this group, and return the resulting groups of equal bins.

        The method puts ``each`` copies into one bin after the other, and the remaining copies into one more bin. Bins
        with equal content form one group.

        Args:
            index: Index of the item.
            size: Amount that one copy takes in each dimension.
            each: Number of copies for each bin.
            copies: Number of copies for all bins together.
        """
        full = min(self.number, copies // each)
        rest = copies - full * each if full < self.number else 0
        return [*self.changed(index, size, ((each, full), (rest, 1)))]
