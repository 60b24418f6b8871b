"""The answer: counts first, then simple rules, then a search."""

from __future__ import annotations

from collections.abc import Sequence

from gpu_constructs.capacity.packing import bounds
from gpu_constructs.capacity.packing.greedy import greedy
from gpu_constructs.capacity.packing.part import Filling, Part, join, split
from gpu_constructs.capacity.packing.problem import Bin, Item, Packing, Shortage

SHARE_OF_REPAIR = 4
"""What part of the budget goes into moving things before everything is searched."""


def pack(items: Sequence[Item], bins: Sequence[Bin], *, budget: int = 50_000) -> Packing:
    """Find a place for every item.

    Args:
        items: What is to be placed; where there is no place for all, the earlier ones matter more.
        bins: Where to.
        budget: Steps of search after which the answer is ``undecided``. A step takes some 20 microseconds on one core.
    """
    parts, homeless = split(items, bins)
    shortages = [bounds.homeless(i, items[i], bins) for i in homeless]
    filled: list[tuple[Part, Filling]] = []
    is_impossible = bool(homeless)
    open_parts: list[int] = []
    effort = 0
    for part in parts:
        filling = bounds.alike(part)
        is_exact = filling is not None
        filling = filling or greedy(part)
        if any(filling.unplaced):
            shortage = bounds.shortage(part)
            if shortage:
                shortages.append(shortage)
            if not is_exact:
                # Most problems need neither this nor the search.
                from gpu_constructs.capacity.packing.repair import repair

                filling, steps = repair(part, filling, budget // SHARE_OF_REPAIR - effort)
                effort += steps
            if shortage or is_exact:
                is_impossible = True
            elif any(filling.unplaced):
                open_parts.append(len(filled))
        filled.append((part, filling))
    is_undecided = False
    # The small ones first, so that what they leave of the budget is for the large ones.
    for done, at in enumerate(sorted(open_parts, key=lambda at: len(parts[at].counts))):
        if is_impossible:
            break
        from gpu_constructs.capacity.packing.search import search

        found = search(parts[at], (budget - effort) // (len(open_parts) - done))
        effort += found.effort
        if found.filling:
            filled[at] = (parts[at], found.filling)
        is_undecided = is_undecided or found.answer == "undecided"
        is_impossible = found.answer == "no"
    loads, unplaced = join(items, bins, filled)
    return Packing(
        answer="no" if is_impossible else "undecided" if is_undecided else "yes",
        loads=loads,
        unplaced=unplaced,
        shortage=min(shortages, key=_rank) if shortages else None,
        effort=effort,
    )


def _rank(shortage: Shortage) -> tuple[int, int, tuple[int, ...]]:
    return len(shortage.items), len(shortage.bins), shortage.items
