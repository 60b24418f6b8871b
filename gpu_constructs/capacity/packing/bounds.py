"""Counts that prove that a part cannot be packed, and the packing where a count is all there is to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from gpu_constructs.capacity.packing.max_flow import max_flow
from gpu_constructs.capacity.packing.part import Filling, Part, bits
from gpu_constructs.capacity.packing.problem import Bin, Item, Shortage

MOST_WORK = 1_000_000
"""Sources and sinks looked at in all flows of a part."""
MOST_SIZES = 64
"""Sizes tried as the least that counts, in each dimension."""
MOST_SHRUNK = 64
"""Items up to which a shortage is made as small as can be."""


@dataclass(frozen=True)
class _Count:
    """A way to count: what each item needs, and what a bin of each kind has.

    Attributes:
        dimension: Index in the part; None for places.
        at_least: Least size that counts.
        needs: Of all copies of each item; 0 for those that do not count.
        has: Of all bins of each kind; too much for places, which depend on the items.
    """

    dimension: int | None
    at_least: int | None
    needs: Sequence[int]
    has: Sequence[int]


def homeless(index: int, item: Item, bins: Sequence[Bin]) -> Shortage:
    """Say why an item goes into no bin at all."""
    kinds = tuple(k for k in sorted(item.bins) if bins[k].count > 0)
    for d, takes in enumerate(item.size):
        if kinds and item.most_per_bin != 0 and all(bins[k].size[d] < takes for k in kinds):
            return Shortage((index,), kinds, d, item.count, 0, takes)
    return Shortage((index,), kinds, None, item.count, 0)


def shortage(part: Part) -> Shortage | None:
    """Find the simplest count that proves that a part cannot be packed."""
    left = MOST_WORK
    found: list[tuple[tuple[int, ...], Shortage]] = []
    order = sorted(range(len(part.counts)), key=lambda i: part.masks[i].bit_count())
    for count in _counts(part):
        sources = [i for i in order if count.needs[i]]
        flow = max_flow(
            [count.needs[i] for i in sources],
            [part.masks[i] for i in sources],
            count.has,
            limit=None if count.dimension is not None else _limit(part, sources),
            most_work=left,
        )
        left -= flow.work if flow else left
        # Where it is too much work to find out who has too little, all together may have.
        everyone = [list(range(len(sources)))] if sum(count.needs) > sum(count.has) else []
        for blocked in flow.blocked if flow else everyone:
            short = _shrunk(part, count, sorted(sources[at] for at in blocked))
            rank = (len(short.items), len(short.bins), short.dimension is None, short.at_least is not None, len(found))
            found.append((tuple(map(int, rank)), short))
    return min(found, key=lambda each: each[0])[1] if found else None


def alike(part: Part) -> Filling | None:
    """Pack a part whose items are all of one size: as many as possible, and the earlier ones first."""
    if len(set(part.sizes)) > 1:
        return None
    items = range(len(part.counts))
    flow = max_flow(part.counts, part.masks, _places(part, items), limit=_limit(part, items), most_work=5 * MOST_WORK)
    if flow is None:
        return None
    into: list[dict[int, int]] = [{} for _ in part.bins]
    for item, sent in enumerate(flow.sent):
        for kind, count in sent.items():
            into[kind][item] = count
    return Filling(
        [load for kind, sums in enumerate(into) for load in _spread(kind, part.bins[kind], sums)], tuple(flow.unmet)
    )


def _spread(kind: int, bins: int, sums: dict[int, int]) -> Iterator[tuple[int, int, dict[int, int]]]:
    """Deal items out to bins in turn, so that no bin has more than one more of anything than another."""
    starts: dict[int, dict[int, int]] = {0: {}}
    at = 0
    extra: list[tuple[int, int, int]] = []
    for item, count in sums.items():
        each, rest = divmod(count, bins)
        if each:
            starts[0][item] = each
        for first, last in ((at, min(at + rest, bins)), (0, at + rest - bins)):
            if last > first:
                extra.append((first, last, item))
        at = (at + rest) % bins
    edges = sorted({0, bins, *(edge for first, last, _ in extra for edge in (first, last))})
    for first, end in pairwise(edges):
        content = dict(starts[0])
        for start, last, item in extra:
            if start <= first < last:
                content[item] = content.get(item, 0) + 1
        yield kind, end - first, content


def _counts(part: Part) -> Iterator[_Count]:
    for d in range(len(part.dimensions)):
        yield _Count(
            d,
            None,
            [size[d] * count for size, count in zip(part.sizes, part.counts, strict=True)],
            [size[d] * count for size, count in zip(part.capacities, part.bins, strict=True)],
        )
    yield _Count(None, None, part.counts, _places(part, range(len(part.counts))))
    for d in range(len(part.dimensions)):
        sizes = sorted({size[d] for size in part.sizes if size[d]}, reverse=True)
        step = -(-len(sizes) // MOST_SIZES)
        for least in sizes[:: step or 1]:
            yield _Count(
                d,
                least,
                [count if size[d] >= least else 0 for size, count in zip(part.sizes, part.counts, strict=True)],
                [size[d] // least * count for size, count in zip(part.capacities, part.bins, strict=True)],
            )


def _places(part: Part, items: Sequence[int]) -> list[int]:
    """Say how many of these items the bins of each kind have places for, at most."""
    smallest = [min(part.sizes[i][d] for i in items) for d in range(len(part.dimensions))]
    most = sum(part.counts[i] for i in items)
    return [
        count * min([most, *(has // least for has, least in zip(size, smallest, strict=True) if least)])
        for size, count in zip(part.capacities, part.bins, strict=True)
    ]


def _limit(part: Part, items: Sequence[int]) -> Callable[[int, int], int]:
    return cache(lambda at, kind: part.fit(items[at], kind) * part.bins[kind])


def _shrunk(part: Part, count: _Count, items: list[int]) -> Shortage:
    """Leave out of a proof what it does not need."""

    def needed(some: Sequence[int]) -> int:
        return sum(count.needs[i] for i in some)

    def available(some: Sequence[int]) -> int:
        union = 0
        for i in some:
            union |= part.masks[i]
        if count.dimension is not None:
            return sum(count.has[k] for k in bits(union))
        return sum(_places_of(part, k, [i for i in some if part.masks[i] >> k & 1]) for k in bits(union))

    if len(items) <= MOST_SHRUNK:
        for item in reversed(items):
            fewer = [i for i in items if i != item]
            if fewer and needed(fewer) > available(fewer):
                items = fewer
    union = 0
    for i in items:
        union |= part.masks[i]
    return Shortage(
        items=tuple(sorted(original for i in items for original in part.items[i])),
        bins=tuple(sorted(original for k in bits(union) for original in part.kinds[k])),
        dimension=None if count.dimension is None else part.dimensions[count.dimension],
        needed=needed(items),
        available=available(items),
        at_least=count.at_least,
    )


def _places_of(part: Part, kind: int, items: Sequence[int]) -> int:
    """Say how many of these items all bins of a kind have places for, at most."""
    smallest = [min(part.sizes[i][d] for i in items) for d in range(len(part.dimensions))]
    rooms = (has // least for has, least in zip(part.capacities[kind], smallest, strict=True) if least)
    return part.bins[kind] * min([sum(part.fit(i, kind) for i in items), *rooms])
