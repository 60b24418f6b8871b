"""Places for what a simple rule left over: by moving things from bin to bin, a chain of moves at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gpu_constructs.capacity.packing.part import Filling, Part, bits, room_for

MOST_BINS = 20_000
"""Bins up to which this is tried: each stands for itself here."""
MOST_CHAIN = 2_000
"""Items looked at in a bin, for one copy that has no place, before it is given up."""
LOOKS = 16
"""Items looked at in a bin, in a step."""


@dataclass
class _Bin:
    kind: int
    room: tuple[int, ...]
    content: dict[int, int]


@dataclass(frozen=True)
class _Move:
    """An item that needs a place because another one takes its own.

    Attributes:
        item: The item.
        out_of: The bin it has to leave; None for the first.
        because_of: The move of the item that takes its place there.
    """

    item: int
    out_of: int | None = None
    because_of: _Move | None = None

    def chain(self) -> Iterator[_Move]:
        """Give this move and those that led to it."""
        move: _Move | None = self
        while move:
            yield move
            move = move.because_of


def repair(part: Part, filling: Filling, budget: int) -> tuple[Filling, int]:
    """Find places for copies that have none, in so many steps.

    Returns:
        A filling that is at least as good, and the steps taken.
    """
    if sum(part.bins) > MOST_BINS:
        return filling, 0
    bins = [
        _Bin(kind, _room(part, kind, content), dict(content))
        for kind, count, content in filling.loads
        for _ in range(count)
    ]
    of_kind: list[list[int]] = [[] for _ in part.bins]
    for at, one in enumerate(bins):
        of_kind[one.kind].append(at)
    unplaced = list(filling.unplaced)
    looks = 0
    for item, count in enumerate(filling.unplaced):
        for _ in range(count):
            if looks >= budget * LOOKS:
                break
            is_placed, looked = _place(part, bins, of_kind, item)
            looks += looked
            if not is_placed:
                break
            unplaced[item] -= 1
    loads = [(one.kind, 1, one.content) for one in bins]
    return Filling(loads, tuple(unplaced)), min(budget, -(-looks // LOOKS))


def _room(part: Part, kind: int, content: Mapping[int, int]) -> tuple[int, ...]:
    return tuple(
        has - sum(part.sizes[item][d] * count for item, count in content.items())
        for d, has in enumerate(part.capacities[kind])
    )


def _place(part: Part, bins: list[_Bin], of_kind: list[list[int]], item: int) -> tuple[bool, int]:
    """Find a chain of moves that gives one copy a place, shortest first, and make it."""
    queue = [_Move(item)]
    seen = {item}
    looks = 0
    for move in queue:
        size, most = part.sizes[move.item], part.mosts[move.item]
        used = {step.out_of for step in move.chain()}
        for kind in bits(part.masks[move.item]):
            for at in of_kind[kind]:
                looks += 1
                one = bins[at]
                if at in used or one.content.get(move.item, 0) >= most:
                    continue
                if room_for(one.room, size, 1):
                    _make(part, bins, move, at)
                    return True, looks
                for other in one.content:
                    looks += 1
                    if other not in seen and all(
                        has + leaves >= takes
                        for has, leaves, takes in zip(one.room, part.sizes[other], size, strict=True)
                    ):
                        seen.add(other)
                        queue.append(_Move(other, at, move))
        if looks > MOST_CHAIN:
            break
    return False, looks


def _make(part: Part, bins: list[_Bin], last: _Move, into: int) -> None:
    """Make the moves of a chain, the last one into a bin with room."""
    for move in last.chain():
        _add(part, bins[into], move.item, 1)
        if move.out_of is not None:
            _add(part, bins[move.out_of], move.item, -1)
            into = move.out_of


def _add(part: Part, one: _Bin, item: int, count: int) -> None:
    one.room = tuple(has - takes * count for has, takes in zip(one.room, part.sizes[item], strict=True))
    one.content[item] = one.content.get(item, 0) + count
    if not one.content[item]:
        del one.content[item]
