"""Simple rules that place one item after the other and never go back."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from typing import Literal

from gpu_constructs.capacity.packing.part import Filling, Part, room_for

MOST_WORK = 1_000_000
"""Bins looked at before no further rule is tried."""
MOST_PAIRS = 200_000
"""Pairs of an item and a kind of bin up to which it is computed which kinds are wanted most."""
MOST_SPREAD = 2_000
"""Copies up to which the rule that fills bins evenly is tried, which places each by itself."""

Fit = Literal["tightest", "first", "widest"]
Content = tuple["Content", int, int] | None
"""What is in a bin: what was there before, an item and how many of it."""
_Group = tuple[int, tuple[int, ...], Content, int]
"""Bins that are alike: kind, room, content, how many."""


class Scale:
    """Sizes of several dimensions as one number: each counts for its share of all there is of its dimension."""

    def __init__(self, part: Part) -> None:
        totals = [
            sum(size[d] * count for size, count in zip(part.capacities, part.bins, strict=True))
            for d in range(len(part.dimensions))
        ]
        self.weights = [10**15 // max(total, 1) + 1 for total in totals]

    def sum(self, size: Sequence[int]) -> int:
        """Give the sum of the shares."""
        return sum(takes * weight for takes, weight in zip(size, self.weights, strict=True))

    def largest(self, size: Sequence[int]) -> int:
        """Give the largest of the shares."""
        return max((takes * weight for takes, weight in zip(size, self.weights, strict=True)), default=0)


def greedy(part: Part) -> Filling:
    """Give the best packing that a simple rule finds: most copies placed, then the earlier items."""
    scale = Scale(part)
    sums = [scale.sum(size) for size in part.sizes]
    largest = [scale.largest(size) for size in part.sizes]
    choices = [mask.bit_count() for mask in part.masks]
    items = range(len(part.counts))
    orders: dict[str, Callable[[int], tuple[int, ...]]] = {
        "size": lambda i: (-sums[i], choices[i]),
        "choices": lambda i: (choices[i], -sums[i]),
        "largest": lambda i: (-largest[i], choices[i]),
        "given": lambda i: (i,),
        "smallest": lambda i: (sums[i], i),
    }
    rules: list[tuple[str, Fit]] = [
        ("size", "tightest"),
        ("given", "tightest"),
        ("choices", "tightest"),
        ("largest", "tightest"),
        ("size", "first"),
        ("choices", "first"),
        ("size", "widest"),
        ("choices", "widest"),
        ("smallest", "tightest"),
    ]
    best: tuple[tuple[int, ...], list[_Group]] | None = None
    work = 0
    for order, fit in rules:
        if best and (work > MOST_WORK or (fit == "widest" and sum(part.counts) > MOST_SPREAD)):
            continue
        groups, unplaced, looked = _place(part, sorted(items, key=orders[order]), fit, scale, sums)
        work += looked
        if not best or (sum(unplaced), unplaced) < (sum(best[0]), best[0]):
            best = (unplaced, groups)
        if not any(best[0]):
            break
    if best is None:
        raise AssertionError("at least one rule is always tried")
    return Filling([(kind, count, _items(content)) for kind, _, content, count in best[1]], best[0])


def _items(content: Content) -> dict[int, int]:
    found: dict[int, int] = {}
    while content:
        content, item, count = content
        found[item] = found.get(item, 0) + count
    return found


def _place(
    part: Part, order: Sequence[int], fit: Fit, scale: Scale, sums: Sequence[int]
) -> tuple[list[_Group], tuple[int, ...], int]:
    groups: list[_Group] = [(k, size, None, part.bins[k]) for k, size in enumerate(part.capacities)]
    wanted = _wanted(part) if fit == "first" else []
    least = [min(size[d] for size in part.sizes) for d in range(len(part.dimensions))]

    def key(group: _Group) -> int:
        if fit == "first":
            return wanted[group[0]]
        return scale.sum(group[1]) if fit == "tightest" else -scale.sum(group[1])

    queue = sorted((key(group), at) for at, group in enumerate(groups))
    unplaced = [0] * len(part.counts)
    work = 0
    for item in order:
        size, mask, most, left = part.sizes[item], part.masks[item], part.mosts[item], part.counts[item]
        while left:
            at = bisect_left(queue, (sums[item], -1)) if fit == "tightest" else 0
            changed: list[int] = []
            used: list[int] = []
            start = at
            for at in range(start, len(queue)):
                kind, room, content, count = groups[queue[at][1]]
                if not mask >> kind & 1:
                    continue
                already = content[2] if fit == "widest" and content and content[1] == item else 0
                each = room_for(room, size, most - already)
                if each < 1:
                    continue
                if fit == "widest":
                    each = 1
                used.append(at)
                bins, rest = min(count, left // each), left % each
                taken = [(each, bins)] if bins else []
                if bins < count and bins * each < left:
                    taken.append((rest, 1))
                for copies, number in taken:
                    left -= copies * number
                    count -= number
                    smaller = tuple(has - takes * copies for has, takes in zip(room, size, strict=True))
                    before = content[0] if already and content else content
                    changed.append(len(groups))
                    groups.append((kind, smaller, (before, item, copies + already), number))
                if count:
                    changed.append(len(groups))
                    groups.append((kind, room, content, count))
                if not left or fit == "widest":
                    break
            work += max(at - start, 0) + 1
            for at in reversed(used):
                groups[queue.pop(at)[1]] = (0, (), None, 0)
            for new in changed:
                if all(has >= takes for has, takes in zip(groups[new][1], least, strict=True)):
                    insort(queue, (key(groups[new]), new))
            if not used or fit != "widest":
                break
        unplaced[item] = left
    return [group for group in groups if group[3]], tuple(unplaced), work


def _wanted(part: Part) -> list[int]:
    """Rank kinds of bins: those that items with other choices want least first."""
    shares: dict[int, int] = {}
    for mask, count in zip(part.masks, part.counts, strict=True):
        shares[mask] = shares.get(mask, 0) + 10**9 * count // mask.bit_count()
    if sum(mask.bit_count() for mask in shares) > MOST_PAIRS:
        return [0] * len(part.bins)
    sums = [0] * len(part.bins)
    width = len(part.bins)
    for mask, share in shares.items():
        for back, bit in enumerate(format(mask, f"0{width}b")):
            if bit == "1":
                sums[width - 1 - back] += share
    return [share // count for share, count in zip(sums, part.bins, strict=True)]
