"""A complete search: one bin after the other gets each content that it may need, until all items have a place.

Of all packings, the search looks for the one that has most of the first items in the first bins. Three things hold for
it, and whatever breaks one of them is passed over: bins of a kind have their contents in falling order; nothing that
goes into a later bin would fit beside what a bin has; and nothing that goes into a later bin could take the place of
something smaller and less particular.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from gpu_constructs.capacity.packing.greedy import Scale
from gpu_constructs.capacity.packing.part import Filling, Part, bits, room_for

MOST_PAIRS = 200_000
"""Pairs of an item and a kind of bin up to which a search is worth its preparation."""
MOST_BINS = 100_000
"""Bins up to which a search is begun."""
MOST_RULES = 6
"""Counts that are kept while searching: those with the least to spare."""
MOST_UNIONS = 24
"""Sets of kinds of bins for which something is counted."""
MOST_REACH = 1 << 17
"""Capacity up to which it is computed what sizes can fill of it."""
DECISIONS = 8
"""Decisions how many of one item go into a bin, in a step."""

Content = tuple[tuple[int, int], ...]
"""Item and how many of it."""


@dataclass(frozen=True)
class Found:
    """What a search came to.

    Attributes:
        answer: ``undecided`` where it gave up.
        filling: Where all items are; None without a yes.
        effort: Steps taken.
    """

    answer: Literal["yes", "no", "undecided"]
    filling: Filling | None
    effort: int


@dataclass
class _Rule:
    """What no content of bins exceeds: a weight for each item, and a limit for each kind of bin.

    Attributes:
        weights: Of one of each item.
        limits: Of one bin of each kind.
        spare: What the bins that are not filled yet have beyond the items that have no place yet.
    """

    weights: list[int]
    limits: list[int]
    spare: int


def search(part: Part, budget: int) -> Found:
    """Find a packing, or prove that there is none, in so many steps."""
    if budget <= 0 or len(part.counts) * len(part.bins) > MOST_PAIRS or sum(part.bins) > MOST_BINS:
        return Found("undecided", None, 0)
    return _Search(part, budget).run()


class _Search:
    def __init__(self, part: Part, budget: int) -> None:
        self.part = part
        self.work_left = budget * DECISIONS
        self.work = 0
        items, kinds = range(len(part.counts)), range(len(part.bins))
        scale = Scale(part)
        sums = [scale.sum(size) for size in part.sizes]
        demand = [one * count for one, count in zip(sums, part.counts, strict=True)]
        takers = [part.takers(k) for k in kinds]
        wanted = [
            sum(demand[i] // part.masks[i].bit_count() for i in takers[k])
            // max(1, scale.sum(part.capacities[k]) * part.bins[k] // 1000)
            for k in kinds
        ]
        self.kinds = sorted(kinds, key=lambda k: (wanted[k], k))
        self.fits = [{i: part.fit(i, k) for i in takers[k]} for k in kinds]
        self.later: list[list[int]] = [[0] * len(part.counts)]
        for k in self.kinds[:0:-1]:
            row = list(self.later[-1])
            for i, fit in self.fits[k].items():
                row[i] += fit * part.bins[k]
            self.later.append(row)
        self.later.reverse()
        self.order = [
            sorted(takers[k], key=lambda i: (self.later[at][i] > 0, -sums[i], i)) for at, k in enumerate(self.kinds)
        ]
        self.remaining = list(part.counts)
        rules = _rules(part)
        self.is_hopeless = any(rule.spare < 0 for rule in rules)
        # One number holds all dimensions, and one all rules: this is what most of the time would go into.
        self.dimensions = _Lanes(len(part.dimensions), [n for size in part.capacities for n in size])
        self.sizes = [self.dimensions.pack(size) for size in part.sizes]
        self.capacities = [self.dimensions.pack(size) + self.dimensions.tops for size in part.capacities]
        most = [n * count for rule in rules for n, count in zip(rule.weights, part.counts, strict=True)]
        self.rules = _Lanes(len(rules), [sum(most), *(sum(rule.limits) + abs(rule.spare) for rule in rules)])
        self.weights = [self.rules.pack([rule.weights[i] for rule in rules]) for i in items]
        self.limits = [self.rules.pack([rule.limits[k] for rule in rules]) for k in kinds]
        self.spare = self.rules.pack([rule.spare for rule in rules]) + self.rules.tops
        self.larger = _larger(part) if len(part.counts) <= 64 else [()] * len(part.counts)
        self.radix = [1]
        for i in items:
            self.radix.append(self.radix[-1] * (part.counts[i] + 1))

    def run(self) -> Found:
        part, remaining = self.part, self.remaining
        if self.is_hopeless:
            return Found("no", None, 0)
        bins = [(at, left) for at, k in enumerate(self.kinds) for left in range(part.bins[k], 0, -1)]
        code = sum(count * radix for count, radix in zip(remaining, self.radix, strict=False))
        left_over = sum(remaining)
        # What was left when it failed, before each bin. That bins of a kind fall in order matters for no state: the
        # packing that is looked for comes to each of its own by the highest way there, which is tried first.
        failed: list[set[int]] = [set() for _ in bins]
        stack: list[tuple[Iterator[Content], int]] = []
        path: list[Content] = []
        bound: Content | None = None
        while True:
            if not left_over:
                return Found("yes", self._filling(bins, path), self._effort())
            if len(path) < len(bins):
                at, left = bins[len(path)]
                stack.append((self._contents(at, left, bound), code))
            while stack:
                contents, code = stack[-1]
                if len(path) == len(stack):
                    content = path.pop()
                    left_over += self._undo(self.kinds[bins[len(path)][0]], content)
                found = next(contents, None)
                if self.work > self.work_left:
                    return Found("undecided", None, self._effort())
                if found is None:
                    failed[len(path)].add(code)
                    stack.pop()
                    continue
                at, left = bins[len(path)]
                code -= sum(count * self.radix[i] for i, count in found)
                left_over -= self._do(self.kinds[at], found)
                path.append(found)
                bound = found if left > 1 else None
                if not left_over or (len(path) < len(bins) and code not in failed[len(path)]):
                    break
            else:
                return Found("no", None, self._effort())

    def _effort(self) -> int:
        return -(-min(self.work, self.work_left) // DECISIONS)

    def _do(self, kind: int, content: Content) -> int:
        for i, count in content:
            self.remaining[i] -= count
            self.spare += self.weights[i] * count
        self.spare -= self.limits[kind]
        return sum(count for _, count in content)

    def _undo(self, kind: int, content: Content) -> int:
        for i, count in content:
            self.remaining[i] += count
            self.spare -= self.weights[i] * count
        self.spare += self.limits[kind]
        return sum(count for _, count in content)

    def _filling(self, bins: Sequence[tuple[int, int]], path: Sequence[Content]) -> Filling:
        loads: dict[tuple[int, Content], int] = {}
        for (at, _), content in zip(bins, [*path, *[()] * (len(bins) - len(path))], strict=True):
            key = (self.kinds[at], content)
            loads[key] = loads.get(key, 0) + 1
        return Filling(
            [(kind, count, dict(content)) for (kind, content), count in loads.items()], (0,) * len(self.part.counts)
        )

    def _contents(self, at: int, left: int, bound: Content | None) -> Iterator[Content]:
        """Give what a bin may hold, the highest first; ``left`` bins of its kind are not filled yet, it included."""
        part, kind = self.part, self.kinds[at]
        fits, later, remaining = self.fits[kind], self.later[at], self.remaining
        if any(count > later[i] + left * fits.get(i, 0) for i, count in enumerate(remaining)):
            self.work += 1
            return
        items = [i for i in self.order[at] if remaining[i]]
        depth = len(items)
        self.work += 2 + (depth + len(remaining)) // 4
        sizes = [self.sizes[i] for i in items]
        weights = [self.weights[i] for i in items]
        tops = [min(fits[i], remaining[i]) for i in items]
        lows = [max(0, remaining[i] - (left - 1) * fits[i] - later[i]) for i in items]
        if items and not later[items[0]]:
            lows[0] = max(lows[0], -(-remaining[items[0]] // left))
        highest, compared = self._limits(at, items, bound)
        # What the items from each place on can add to the rules at most.
        adds = [0] * (depth + 1)
        for place in range(depth - 1, -1, -1):
            adds[place] = adds[place + 1] + weights[place] * tops[place]
        has_room, is_spared = self.dimensions.tops, self.rules.tops
        chosen = [0] * depth
        rooms = [self.capacities[kind]] * (depth + 1)
        used = [self.spare - self.limits[kind]] * (depth + 1)
        is_highest = [True] * (depth + 1)
        place = 0
        while True:
            while place < depth:
                self.work += 1
                top, room = tops[place], rooms[place]
                if (room - sizes[place] * top) & has_room != has_room:
                    top = self.dimensions.room_for(room, part.sizes[items[place]], top)
                if is_highest[place] and place < compared and highest[place] < top:
                    top = highest[place]
                if top < lows[place]:
                    break
                chosen[place] = top
                used[place + 1] = used[place] + weights[place] * top
                if (used[place + 1] + adds[place + 1]) & is_spared != is_spared:
                    break
                rooms[place + 1] = room - sizes[place] * top
                is_highest[place + 1] = is_highest[place] and place < compared and top == highest[place]
                place += 1
            else:
                self.work += 2 + depth // 4
                if self._is_full(items, chosen, tops, rooms[depth]):
                    yield tuple((i, count) for i, count in zip(items, chosen, strict=True) if count)
            if self.work > self.work_left:
                return
            # The highest place that can do with one less.
            while True:
                place -= 1
                if place < 0:
                    return
                self.work += 1
                if chosen[place] > lows[place]:
                    chosen[place] -= 1
                    used[place + 1] = used[place] + weights[place] * chosen[place]
                    if (used[place + 1] + adds[place + 1]) & is_spared == is_spared:
                        rooms[place + 1] = rooms[place] - sizes[place] * chosen[place]
                        is_highest[place + 1] = False
                        place += 1
                        break

    def _limits(self, at: int, items: Sequence[int], bound: Content | None) -> tuple[list[int], int]:
        """Say what the bin before has of each item, and for how many of them that is a limit."""
        if bound is None:
            return [], 0
        before = dict(bound)
        here = set(items)
        highest = [before.get(i, 0) for i in items]
        compared = 0
        for i in self.order[at]:
            if i in here:
                compared += 1
            elif i in before:
                break
        return highest, compared

    def _is_full(self, items: Sequence[int], chosen: Sequence[int], tops: Sequence[int], room: int) -> bool:
        """Say whether nothing that is left would fit, or could take the place of something smaller."""
        sizes, has_room = self.sizes, self.dimensions.tops
        spare = set()
        for i, count, top in zip(items, chosen, tops, strict=True):
            if count < top:
                spare.add(i)
                if (room - sizes[i]) & has_room == has_room:
                    return False
        if spare:
            for i, count in zip(items, chosen, strict=True):
                if count:
                    for j in self.larger[i]:
                        if j in spare and (room + sizes[i] - sizes[j]) & has_room == has_room:
                            return False
        return True


class _Lanes:
    """Several numbers in one, each with a bit above it that is set unless the number is below 0."""

    def __init__(self, count: int, largest: Sequence[int]) -> None:
        self.width = max([1, *largest]).bit_length() + 2
        self.count = count
        self.tops = sum(1 << self.width * lane + self.width - 1 for lane in range(count))

    def pack(self, numbers: Sequence[int]) -> int:
        """Put numbers into one, without the bits above them."""
        return sum(number << self.width * lane for lane, number in enumerate(numbers))

    def room_for(self, room: int, size: Sequence[int], most: int) -> int:
        """Say how many of a size go into a room, up to a limit."""
        mask = (1 << self.width - 1) - 1
        return room_for([room >> self.width * lane & mask for lane in range(self.count)], size, most)


def _larger(part: Part) -> list[tuple[int, ...]]:
    """List for each item those that are larger and no less particular, so that they could always change places."""
    found = []
    for i, size in enumerate(part.sizes):
        found.append(
            tuple(
                j
                for j, other in enumerate(part.sizes)
                if part.mosts[i] == part.counts[i]
                and other != size
                and not part.masks[j] & ~part.masks[i]
                and all(a >= b for a, b in zip(other, size, strict=True))
            )
        )
    return found


def _rules(part: Part) -> list[_Rule]:
    """Choose what to count: the counts with the least to spare."""
    items, kinds = range(len(part.counts)), range(len(part.bins))
    unions = [(1 << len(part.bins)) - 1]
    if len(items) * len(kinds) <= MOST_PAIRS // 50:
        for mask in dict.fromkeys(part.masks):
            unions.extend(dict.fromkeys(mask | other for other in unions if (mask | other) not in unions))
            if mask not in unions:
                unions.append(mask)
            if len(unions) > MOST_UNIONS:
                break
    ways: list[tuple[list[int], list[int]]] = []
    for d in range(len(part.dimensions)):
        reach = _reach(part, d)
        ways.append(([size[d] for size in part.sizes], reach))
        for least in sorted({size[d] for size in part.sizes if size[d]}, reverse=True)[:MOST_UNIONS]:
            # Of a size s, s // least is one of the weights that no content exceeds.
            ways.append(([size[d] // least for size in part.sizes], [has // least for has in reach]))
        if len({size[d] for size in part.capacities}) == 1:
            has = part.capacities[0][d]
            for least in sorted({size[d] for size in part.sizes if 0 < 2 * size[d] <= has})[:MOST_UNIONS]:
                ways.append((_beside(part, d, least), [has] * len(part.bins)))
    ranked: list[tuple[float, int, _Rule]] = []
    for weights, limits in ways:
        for union in unions:
            inside = [w if not mask & ~union else 0 for w, mask in zip(weights, part.masks, strict=True)]
            has = sum(limits[k] * part.bins[k] for k in bits(union))
            needs = sum(w * count for w, count in zip(inside, part.counts, strict=True))
            if needs:
                limits_inside = [limit if union >> k & 1 else 0 for k, limit in enumerate(limits)]
                ranked.append(
                    ((has - needs) / has if has else -1.0, len(ranked), _Rule(inside, limits_inside, has - needs))
                )
    ranked.sort(key=lambda each: each[:2])
    return [rule for _, _, rule in ranked[:MOST_RULES]]


def _beside(part: Part, d: int, least: int) -> list[int]:
    """Count an item as a whole bin where nothing of at least this size fits beside it; smaller ones do not count."""
    has = part.capacities[0][d]
    return [0 if size[d] < least else has if size[d] > has - least else size[d] for size in part.sizes]


def _reach(part: Part, d: int) -> list[int]:
    """Say how much of each kind's capacity the sizes of the items can fill at most."""
    found = []
    for kind, size in enumerate(part.capacities):
        has = size[d]
        takers = part.takers(kind)
        if has > MOST_REACH or len(takers) > 200 or len(part.bins) > 50:
            found.append(has)
            continue
        sums, within = 1, (1 << has + 1) - 1
        for i in takers:
            step, left, doubled = part.sizes[i][d], part.fit(i, kind), 1
            while step and left:
                taken = min(doubled, left)
                sums |= sums << step * taken & within
                left -= taken
                doubled *= 2
        found.append(sums.bit_length() - 1)
    return found
