"""A problem of packing taken apart into what has nothing to do with each other, and its results put together again."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gpu_constructs.capacity.packing.problem import Bin, Item, Load


@dataclass(frozen=True)
class Part:
    """A part that stands for itself: items that are the same in all respects are one, and kinds of bins likewise.

    Attributes:
        dimensions: Indexes of its dimensions in the problem.
        sizes: Of each item, in these dimensions.
        counts: Of each item.
        masks: The kinds of bins that take an item and are large enough for one; bit k stands for kind k.
        mosts: How many of each item a bin takes at most; never above its count.
        capacities: Of each kind of bin, in these dimensions.
        bins: How many there are of each kind.
        items: Indexes in the problem of what is one item here.
        kinds: Indexes in the problem of what is one kind here.
    """

    dimensions: tuple[int, ...]
    sizes: tuple[tuple[int, ...], ...]
    counts: tuple[int, ...]
    masks: tuple[int, ...]
    mosts: tuple[int, ...]
    capacities: tuple[tuple[int, ...], ...]
    bins: tuple[int, ...]
    items: tuple[tuple[int, ...], ...]
    kinds: tuple[tuple[int, ...], ...]

    def fit(self, item: int, kind: int) -> int:
        """Say how many of an item go into an empty bin of a kind."""
        return room_for(self.capacities[kind], self.sizes[item], self.mosts[item])

    def takers(self, kind: int) -> list[int]:
        """List the items that a kind of bin takes."""
        return [item for item, mask in enumerate(self.masks) if mask >> kind & 1]


@dataclass(frozen=True)
class Filling:
    """What is in the bins of a part.

    Attributes:
        loads: Kind, how many bins, and how many of each item in every one of them; together all bins.
        unplaced: How many of each item found no place.
    """

    loads: Sequence[tuple[int, int, Mapping[int, int]]]
    unplaced: tuple[int, ...]


def room_for(room: Sequence[int], size: Sequence[int], most: int) -> int:
    """Say how many of a size go into a room, up to a limit."""
    for has, takes in zip(room, size, strict=True):
        if takes and has // takes < most:
            most = has // takes
    return most


def bits(mask: int) -> Iterator[int]:
    """Give the indexes of the bits that are set, the lowest first."""
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
    groups: dict[tuple[int, ...], list[int]] = {}
    together = _dimensions(items)
    for i, item in enumerate(items):
        if item.count > 0 and masks[i]:
            used = next((d for d, takes in enumerate(item.size) if takes), None)
            groups.setdefault(() if used is None else together[used], []).append(i)
    parts = []
    for dimensions, members in groups.items():
        for component in _components(members, masks):
            parts.append(_part(dimensions, component, items, bins, masks))
    return parts, homeless


def _masks(items: Sequence[Item], bins: Sequence[Bin]) -> list[int]:
    """Say for each item which kinds of bins take it and are large enough."""
    dimensions = len(bins[0].size) if bins else 0
    sizes = [sorted(b.size[d] for b in bins) for d in range(dimensions)]
    large_enough: list[list[int]] = []
    for d in range(dimensions):
        found, mask = [0], 0
        for k in sorted(range(len(bins)), key=lambda k: bins[k].size[d], reverse=True):
            mask |= 1 << k
            found.append(mask)
        large_enough.append(found[::-1])
    named: dict[frozenset[int], int] = {}
    masks = []
    for item in items:
        mask = named.get(item.bins, -1)
        if mask < 0:
            row = bytearray(b"0" * (len(bins) + 1))
            for k in item.bins:
                if bins[k].count > 0:
                    row[-1 - k] = 49
            mask = named[item.bins] = int(row, 2)
        for d, takes in enumerate(item.size):
            if takes and mask:
                mask &= large_enough[d][bisect_left(sizes[d], takes)]
        masks.append(mask if item.most_per_bin != 0 else 0)
    return masks


def _dimensions(items: Sequence[Item]) -> dict[int, tuple[int, ...]]:
    """Put dimensions together that one item takes both of; others cannot get into each other's way."""
    together: dict[int, tuple[int, ...]] = {}
    for pattern in dict.fromkeys(tuple(d for d, takes in enumerate(i.size) if takes) for i in items if i.count > 0):
        union = tuple(sorted({other for d in pattern for other in (d, *together.get(d, ()))}))
        together.update(dict.fromkeys(union, union))
    return together


def _components(members: Sequence[int], masks: Sequence[int]) -> list[list[int]]:
    """Put items together that may meet in a bin, also by way of others."""
    components: list[tuple[int, list[int]]] = []
    for mask in dict.fromkeys(masks[i] for i in members):
        touched = [c for c in components if c[0] & mask]
        if len(touched) == 1 and not mask & ~touched[0][0]:
            continue
        for c in touched:
            mask |= c[0]
        components = [c for c in components if not c[0] & mask]
        components.append((mask, []))
    if len(components) == 1:
        return [list(members)]
    for i in members:
        next(found for mask, found in components if mask & masks[i]).append(i)
    return sorted(found for _, found in components)


def _part(
    dimensions: tuple[int, ...],
    members: Sequence[int],
    items: Sequence[Item],
    bins: Sequence[Bin],
    masks: Sequence[int],
) -> Part:
    alike: dict[tuple[tuple[int, ...], int, int], list[int]] = {}
    for i in members:
        most = items[i].most_per_bin
        # Limits count for each item by itself, so only items without one are the same.
        limited = -1 if most is None or most >= items[i].count else i
        alike.setdefault((items[i].size, masks[i], limited), []).append(i)
    height, width = len(alike), len(bins)
    # One byte for each pair, so that columns are slices.
    table = "".join(format(mask, f"0{width}b") for _, mask, _ in alike)
    columns: dict[tuple[tuple[int, ...], str], list[int]] = {}
    nobody = "0" * height
    for k in range(width):
        column = table[width - 1 - k :: width]
        if column != nobody:
            columns.setdefault((tuple(bins[k].size[d] for d in dimensions), column), []).append(k)
    table = "".join(column for _, column in reversed(columns))
    counts = tuple(sum(items[i].count for i in same) for same in alike.values())
    limits = (items[same[0]].most_per_bin for same in alike.values())
    return Part(
        dimensions=dimensions,
        sizes=tuple(tuple(size[d] for d in dimensions) for size, _, _ in alike),
        counts=counts,
        masks=tuple(int(table[row::height], 2) for row in range(height)),
        mosts=tuple(
            count if limit is None or len(same) > 1 else min(limit, count)
            for count, limit, same in zip(counts, limits, alike.values(), strict=True)
        ),
        capacities=tuple(size for size, _ in columns),
        bins=tuple(sum(bins[k].count for k in same) for same in columns.values()),
        items=tuple(map(tuple, alike.values())),
        kinds=tuple(map(tuple, columns.values())),
    )


Content = dict[int, int]
Run = tuple[int, Content]
"""How many bins have the same content."""


def join(
    items: Sequence[Item], bins: Sequence[Bin], filled: Sequence[tuple[Part, Filling]]
) -> tuple[tuple[Load, ...], dict[int, int]]:
    """Say in terms of the problem what is in its bins, and what found no place."""
    runs: list[list[Run]] = [[(b.count, {})] if b.count > 0 else [] for b in bins]
    left = {i: item.count for i, item in enumerate(items)}
    for part, filling in filled:
        for kind, group in enumerate(part.kinds):
            loads = [
                run
                for of, count, content in filling.loads
                if of == kind
                for run in _by_item(part, count, content, left)
            ]
            for k in group:
                mine, loads = _cut(loads, bins[k].count)
                runs[k] = _overlay(runs[k], mine)
    loads_of_all: list[Load] = []
    for k, found in enumerate(runs):
        same: dict[tuple[tuple[int, int], ...], int] = {}
        for count, content in found:
            key = tuple(sorted(content.items()))
            same[key] = same.get(key, 0) + count
        ordered = sorted(same.items(), key=lambda each: not each[0])
        loads_of_all.extend(Load(k, count, dict(key)) for key, count in ordered)
    return tuple(loads_of_all), {i: count for i, count in left.items() if count}


def _by_item(part: Part, count: int, content: Mapping[int, int], left: dict[int, int]) -> list[Run]:
    """Name the items in bins with the same content, the earlier ones first; ``left`` shrinks."""
    runs: list[Run] = [(count, {})]
    for of, each in content.items():
        named = []
        rest = list(runs)[::-1]
        while rest:
            bins, before = rest.pop()
            item = next(i for i in part.items[of] if left[i])
            whole = min(bins, left[item] // each)
            if whole:
                named.append((whole, {**before, item: each}))
                left[item] -= whole * each
            else:
                mixed, missing = dict(before), each
                for i in part.items[of]:
                    taken = min(missing, left[i])
                    if taken:
                        mixed[i] = taken
                        left[i] -= taken
                        missing -= taken
                named.append((1, mixed))
            if bins > max(whole, 1):
                rest.append((bins - max(whole, 1), before))
        runs = named
    return runs


def _cut(loads: Sequence[Run], count: int) -> tuple[list[Run], list[Run]]:
    """Take the first so many bins, and give them and the others."""
    first, others = [], []
    for bins, content in loads:
        taken = min(bins, count)
        count -= taken
        if taken:
            first.append((taken, content))
        if bins > taken:
            others.append((bins - taken, content))
    return first, others


def _overlay(one: Sequence[Run], other: Sequence[Run]) -> list[Run]:
    """Put the content of as many bins into those that hold something of another part."""
    both: list[Run] = []
    rest = list(other)
    for bins, content in one:
        mine, rest = _cut(rest, bins)
        both.extend((count, {**content, **added}) for count, added in mine)
    return both
