"""What is to be packed and the answer, as plain data; parts of it that do not depend on each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from operator import ge, or_
from typing import Literal, NamedTuple, TypeVar

from gpu_constructs.capacity.gathered import grouped, summed

Answer = Literal["yes", "no", "undecided"]


@dataclass(frozen=True)
class Item:
    """Things that are alike, each of which goes whole into one bin.

    Attributes:
        size: Amount that one takes of each dimension: none below 0.
        count: Number of them.
        bins: Indexes of the kinds of bins that take it.
        most_per_bin: Number of this very item that a bin takes at most; None for no such limit.
    """

    size: tuple[int, ...]
    count: int
    bins: frozenset[int]
    most_per_bin: int | None = None

    @property
    def most(self) -> int:
        """Number of it that a bin takes at most, as far as its own limit goes."""
        return self.count if self.most_per_bin is None else min(self.count, self.most_per_bin)

    def fit(self, room: tuple[int, ...], most: int) -> int:
        """Return how many of it go into a room, at most a given number."""
        return min([most, *(has // takes for has, takes in zip(room, self.size, strict=True) if takes)])


@dataclass(frozen=True)
class Bin:
    """Bins that are alike.

    Attributes:
        size: Amount that one has of each dimension.
        count: Number of them.
    """

    size: tuple[int, ...]
    count: int


@dataclass(frozen=True)
class Load:
    """Bins of one kind with the same content.

    Attributes:
        bin: Index of the kind.
        count: Number of such bins.
        items: Number of each item in every one of them; nothing for bins that are empty.
    """

    bin: int
    count: int
    items: Mapping[int, int]


@dataclass(frozen=True)
class Shortage:
    """Why it cannot be: these items go into no other bins, and need more than those have.

    Attributes:
        items: Indexes of the items.
        bins: Indexes of the kinds of bins that take one of them. A kind that is too small for every one of them that
            may go there is left out, unless none is left then.
        dimension: Dimension that there is too little of; None for places, where each item needs one, and a bin has as
            many as the smallest of these items in each dimension would find, and of no item more than go into it alone.
        needed: Amount of it that the items need together.
        available: Amount of it that the bins have together.
        at_least: None, or a size in the dimension: then only items that take as much count, each needs one place, and
            a bin has as many as this size goes into what it has.
    """

    items: tuple[int, ...]
    bins: tuple[int, ...]
    dimension: int | None
    needed: int
    available: int
    at_least: int | None = None


@dataclass(frozen=True)
class Packing:
    """Whether all items find a place.

    Attributes:
        answer: ``yes`` and ``no`` are proven; ``undecided`` if the solver gave up or is not installed.
        loads: Content of every bin: all items, or as many as a simple rule could place.
        unplaced: Number of each item that is not in ``loads``; items of which all are, are left out.
        shortage: Reason why the answer is no; None if no simple count proves it, and for the other answers.
    """

    answer: Answer
    loads: tuple[Load, ...]
    unplaced: Mapping[int, int]
    shortage: Shortage | None


@dataclass(frozen=True)
class Part:
    """Items and bins that depend on no other ones.

    Attributes:
        dimensions: Indexes of the dimensions that its items take.
        items: The items, by their index in the problem.
        masks: The kinds of bins that take an item and are large enough for one; bit k stands for kind k.
        bins: The kinds of bins, by their index in the problem.
    """

    dimensions: tuple[int, ...]
    items: Mapping[int, Item]
    masks: Mapping[int, int]
    bins: Mapping[int, Bin]

    def fit(self, item: int, kind: int) -> int:
        """Return how many of an item go into an empty bin of a kind."""
        return self.items[item].fit(self.bins[kind].size, self.items[item].most)


@dataclass(frozen=True)
class Filling:
    """What is in the bins of a part.

    Attributes:
        loads: Content of each of its bins, by the indexes of the problem.
        unplaced: Number of each item that found no place; items of which all did, are left out.
    """

    loads: Sequence[Load]
    unplaced: Mapping[int, int]


def bits(mask: int) -> Iterator[int]:
    """Return the indexes of the bits that are set, the lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def split(items: Sequence[Item], bins: Sequence[Bin]) -> tuple[list[Part], list[int]]:
    """Take a problem apart.

    Returns:
        The parts, and the items that no bin takes.
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
    """Return for each item which kinds of bins take it and are large enough."""

    @cache
    def mask(takers: frozenset[int], size: tuple[int, ...]) -> int:
        return sum(1 << k for k in takers if bins[k].count > 0 and all(map(ge, bins[k].size, size)))

    return [0 if item.most_per_bin == 0 else mask(item.bins, item.size) for item in items]


def _dimensions(items: Sequence[Item]) -> dict[int, tuple[int, ...]]:
    """Put dimensions together that one item takes both of."""
    together: dict[int, tuple[int, ...]] = {}
    for pattern in dict.fromkeys(tuple(d for d, takes in enumerate(i.size) if takes) for i in items if i.count > 0):
        union = tuple(sorted({other for d in pattern for other in (d, *together.get(d, ()))}))
        together.update(dict.fromkeys(union, union))
    return together


def _components(members: Sequence[int], masks: Sequence[int]) -> Iterable[tuple[int, list[int]]]:
    """Put items together that may meet in a bin, also by way of others; return the bins of each component."""
    unions: list[int] = []
    for mask in dict.fromkeys(masks[i] for i in members):
        touched = [union for union in unions if union & mask]
        unions = [*(union for union in unions if not union & mask), reduce(or_, touched, mask)]
    return grouped((next(union for union in unions if union & masks[i]), i) for i in members).items()


_Run = tuple[int, Mapping[int, int]]
"""How many bins have the same content."""
_One = TypeVar("_One")
_Other = TypeVar("_Other")


def join(bins: Sequence[Bin], fillings: Iterable[Filling]) -> tuple[Load, ...]:
    """Return what is in the bins of the problem."""
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
    """Pair two rows of as many things, each in runs of things that are alike, as runs of pairs that are alike."""
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
    """Bins that are alike, with the same content.

    Attributes:
        kind: Index of their kind.
        number: Number of these bins.
        content: Number of each item in every one of them.
        room: Amount of each dimension that every one has left.
    """

    kind: int
    number: int
    content: Mapping[int, int]
    room: tuple[int, ...]

    def changed(self, index: int, size: Sequence[int], changes: Iterable[tuple[int, int]]) -> Iterator[Group]:
        """Return what becomes of the bins when some of them get more of an item, or fewer.

        Args:
            index: The item.
            size: Amount that one of it takes of each dimension.
            changes: How many more each of some bins gets, and how many bins these are.
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
        """Return what becomes of bins of which each gets so many copies of an item, as long as some are left."""
        full = min(self.number, copies // each)
        rest = copies - full * each if full < self.number else 0
        return [*self.changed(index, size, ((each, full), (rest, 1)))]
