"""What is to be packed, and what came of it, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Item:
    """Things that are alike, each of which goes whole into one bin.

    Attributes:
        size: What one takes of each dimension: none below 0.
        count: How many there are.
        bins: Indexes of the kinds of bins that take it.
        most_per_bin: How many of this very item a bin takes at most; None for no such limit.
    """

    size: tuple[int, ...]
    count: int
    bins: frozenset[int]
    most_per_bin: int | None = None


@dataclass(frozen=True)
class Bin:
    """Bins that are alike.

    Attributes:
        size: What one has of each dimension.
        count: How many there are.
    """

    size: tuple[int, ...]
    count: int


@dataclass(frozen=True)
class Load:
    """Bins of one kind with the same content.

    Attributes:
        bin: Index of the kind.
        count: How many of its bins these are.
        items: How many of each item every one of them has; nothing for bins that are empty.
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
        dimension: What there is too little of; None for places, where each item needs one, and a bin has as many as
            the smallest of these items in each dimension would find, and of no item more than go into it alone.
        needed: What the items need of it together.
        available: What the bins have of it together.
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
        answer: ``yes`` and ``no`` are proven; ``undecided`` where the search gave up.
        loads: What is in every bin: all items, or as many as a simple rule could place.
        unplaced: How many of each item are not in ``loads``; those of which all are, are left out.
        shortage: Why the answer is no; None where no simple count tells, and for the other answers.
        effort: Steps that moving and searching took; 0 where none was needed.
    """

    answer: Literal["yes", "no", "undecided"]
    loads: tuple[Load, ...]
    unplaced: Mapping[int, int]
    shortage: Shortage | None
    effort: int
