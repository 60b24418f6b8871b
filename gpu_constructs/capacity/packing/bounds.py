"""Counts that prove that a part cannot be packed, and the packing of a part for which a count is enough."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, reduce
from itertools import pairwise
from operator import or_

from gpu_constructs.capacity.gathered import grouped
from gpu_constructs.capacity.packing.problem import Bin, Filling, Item, Load, Part, Shortage, bits

MOST_WORK = 1_000_000
"""Sources and sinks looked at in all flows of a part."""
MOST_SIZES = 64
"""Sizes tried as the least that counts, in each dimension."""
MOST_SHRUNK = 64
"""Items that differ up to which a shortage is made as small as can be."""


@dataclass(frozen=True)
class _Count:
    """A way to count: what each item needs, and what a bin of each kind has.

    Attributes:
        dimension: Index of the dimension; None for places.
        at_least: Least size that counts.
        needs: What all copies of each item need; 0 for those that do not count.
        has: What all bins of each kind have; too much for places, which depend on the items.
    """

    dimension: int | None
    at_least: int | None
    needs: Mapping[int, int]
    has: Mapping[int, int]


def homeless(index: int, item: Item, bins: Sequence[Bin]) -> Shortage:
    """Return why an item goes into no bin at all."""
    kinds = tuple(k for k in sorted(item.bins) if bins[k].count > 0)
    for d, takes in enumerate(item.size):
        if kinds and item.most_per_bin != 0 and all(bins[k].size[d] < takes for k in kinds):
            return Shortage((index,), kinds, d, item.count, 0, takes)
    return Shortage((index,), kinds, None, item.count, 0)


def shortage(part: Part) -> Shortage | None:
    """Return the simplest count that proves that a part cannot be packed."""
    left = MOST_WORK
    found: list[tuple[tuple[int, ...], Shortage]] = []
    order = sorted(part.items, key=lambda i: part.masks[i].bit_count())
    for count in _counts(part):
        sources = [i for i in order if count.needs[i]]
        limit = None if count.dimension is not None else _limit(part, sources)
        flow = _Flow([part.masks[i] for i in sources], count.has, limit, left)
        is_known = flow.send([count.needs[i] for i in sources])
        left -= flow.work
        # If it is too much work to find out who has too little, all together may have.
        everyone = [list(range(len(sources)))] if sum(count.needs.values()) > sum(count.has.values()) else []
        for blocked in flow.blocked if is_known else everyone:
            short = _shrunk(part, count, sorted(sources[at] for at in blocked))
            rank = (len(short.items), len(short.bins), short.dimension is None, short.at_least is not None, len(found))
            found.append((rank, short))
    return min(found, key=lambda each: each[0])[1] if found else None


def alike(part: Part) -> Filling | None:
    """Pack a part whose items are all of one size: as many as possible, and the earlier ones first."""
    if len({item.size for item in part.items.values()}) > 1:
        return None
    items = list(part.items)
    flow = _Flow([part.masks[i] for i in items], _places(part, items, part.bins), _limit(part, items), 5 * MOST_WORK)
    if not flow.send([part.items[i].count for i in items]):
        return None
    sent = zip(items, flow.sent, strict=True)
    into = grouped((kind, (item, count)) for item, those in sent for kind, count in those.items())
    return Filling(
        [load for kind, one in part.bins.items() for load in _spread(kind, one.count, dict(into.get(kind, ())))],
        {item: count for item, count in zip(items, flow.unmet, strict=True) if count},
    )


def _spread(kind: int, bins: int, sums: Mapping[int, int]) -> Iterator[Load]:
    """Deal items out to bins in turn, so that no bin has more than one more of anything than another."""
    every = {item: count // bins for item, count in sums.items() if count >= bins}
    at = 0
    extra: list[tuple[int, int, int]] = []
    for item, count in sums.items():
        end = at + count % bins
        extra += [(first, last, item) for first, last in ((at, min(end, bins)), (0, end - bins)) if last > first]
        at = end % bins
    edges = sorted({0, bins, *(edge for first, last, _ in extra for edge in (first, last))})
    for first, end in pairwise(edges):
        content = dict(every)
        for start, last, item in extra:
            if start <= first < last:
                content[item] = content.get(item, 0) + 1
        yield Load(kind, end - first, content)


def _counts(part: Part) -> Iterator[_Count]:
    items, bins = part.items, part.bins
    for d in part.dimensions:
        needs = {i: one.size[d] * one.count for i, one in items.items()}
        yield _Count(d, None, needs, {k: one.size[d] * one.count for k, one in bins.items()})
    needs = {i: one.count for i, one in items.items()}
    yield _Count(None, None, needs, _places(part, list(items), bins))
    for d in part.dimensions:
        sizes = sorted({one.size[d] for one in items.values() if one.size[d]}, reverse=True)
        for least in sizes[:: -(-len(sizes) // MOST_SIZES) or 1]:
            needs = {i: one.count if one.size[d] >= least else 0 for i, one in items.items()}
            yield _Count(d, least, needs, {k: one.size[d] // least * one.count for k, one in bins.items()})


def _places(part: Part, items: Sequence[int], kinds: Iterable[int]) -> dict[int, int]:
    """Return how many of these items all bins of each kind have places for, at most."""
    total = sum(part.items[i].count for i in items)
    size = tuple(map(min, zip(*(part.items[i].size for i in items), strict=True)))
    smallest = Item(size, total, frozenset(kinds))
    return {k: part.bins[k].count * smallest.fit(part.bins[k].size, total) for k in smallest.bins}


def _limit(part: Part, items: Sequence[int]) -> Callable[[int, int], int]:
    return cache(lambda at, kind: part.fit(items[at], kind) * part.bins[kind].count)


def _shrunk(part: Part, count: _Count, items: list[int]) -> Shortage:
    """Leave out of a proof what it does not need."""
    each = [(i, part.items[i]) for i in items]
    same = grouped(((one.size, part.masks[i], i if one.most < one.count else None), i) for i, one in each)
    for those in reversed(same.values()) if len(same) <= MOST_SHRUNK else ():
        fewer = [i for i in items if i not in those]
        if fewer and sum(count.needs[i] for i in fewer) > _available(part, count, fewer):
            items = fewer
    return Shortage(
        items=tuple(items),
        bins=tuple(_reached(part, items)),
        dimension=count.dimension,
        needed=sum(count.needs[i] for i in items),
        available=_available(part, count, items),
        at_least=count.at_least,
    )


def _reached(part: Part, items: Sequence[int]) -> list[int]:
    return list(bits(reduce(or_, (part.masks[i] for i in items))))


def _available(part: Part, count: _Count, items: Sequence[int]) -> int:
    """Return what the bins that take some items have for these."""
    if count.dimension is not None:
        return sum(count.has[k] for k in _reached(part, items))
    total = 0
    for k in _reached(part, items):
        here = [i for i in items if part.masks[i] >> k & 1]
        total += min(_places(part, here, [k])[k], part.bins[k].count * sum(part.fit(i, k) for i in here))
    return total


class _Flow:
    """The largest flow from sources to sinks: a later source never takes anything away from an earlier one.

    Attributes:
        sent: Amount that each source sends to each sink.
        unmet: Amount that each source has left over.
        blocked: Sets of sources that together have more than their sinks take; empty if all is sent, else the first
            of every region that is full.
        work: Number of sources and sinks looked at.
    """

    def __init__(
        self,
        masks: Sequence[int],
        room: Mapping[int, int],
        limit: Callable[[int, int], int] | None,
        most_work: int,
    ) -> None:
        """Prepare a flow.

        Args:
            masks: The sinks that each source may use, as bits.
            room: Amount that each sink takes.
            limit: Greatest amount that a source may send to a sink that it may use; above 0.
            most_work: Work after which it gives up.
        """
        self.masks = masks
        self.room = dict(room)
        self.limit = limit
        self.most_work = most_work
        self.sent: list[dict[int, int]] = [{} for _ in masks]
        self.unmet = [0] * len(masks)
        self.blocked: list[list[int]] = []
        self.work = 0
        self.users: dict[int, dict[int, None]] = {k: {} for k in room}
        # Sinks to which a source sends as much as it may.
        self.full = [0] * len(masks)
        self.with_room = sum(1 << k for k, free in room.items() if free > 0)
        # Sinks from which nothing can be sent on to one with room.
        self.dead = 0

    def send(self, supplies: Sequence[int]) -> bool:
        """Send as much as possible of what the sources have; return False if it takes too much work."""
        for source, need in enumerate(supplies):
            left = need
            while left > 0:
                path = self._path(source)
                if self.work > self.most_work:
                    return False
                if not path:
                    self.unmet[source] = left
                    break
                left -= self._send_by(path, left)
        return True

    def _path(self, source: int) -> list[tuple[int, int]]:
        """Return the shortest way to a sink with room: each source on it with the sink that it sends more to."""
        came_from: dict[int, int] = {}
        rerouted: dict[int, int] = {source: -1}
        seen, touches_dead = self.dead, False
        queue = [source]
        for at in queue:
            touches_dead = touches_dead or bool(self.masks[at] & self.dead)
            new = self.masks[at] & ~seen & ~self.full[at]
            self.work += 1
            if new & self.with_room:
                k = next(bits(new & self.with_room))
                path = [(at, k)]
                while at != source:
                    k = rerouted[at]
                    at = came_from[k]
                    path.append((at, k))
                return path
            seen |= new
            for k in bits(new):
                came_from[k] = at
                self.work += 1 + len(self.users[k])
                for other in self.users[k]:
                    if other not in rerouted:
                        rerouted[other] = k
                        queue.append(other)
        if not touches_dead:
            self.blocked.append(sorted(rerouted))
        self.dead = seen
        return []

    def _send_by(self, path: Sequence[tuple[int, int]], most: int) -> int:
        """Send as much as a way allows: each source takes away from the next sink what it sends to its own."""
        end = path[0][1]
        leaves = [(path[step][0], path[step + 1][1]) for step in range(len(path) - 1)]
        amount = min([most, self.room[end], *(self.sent[at][k] for at, k in leaves)])
        if self.limit:
            amount = min([amount, *(self.limit(at, k) - self.sent[at].get(k, 0) for at, k in path)])
        self.room[end] -= amount
        if not self.room[end]:
            self.with_room ^= 1 << end
        for at, k in path:
            self._change(at, k, amount)
        for at, k in leaves:
            self._change(at, k, -amount)
        return amount

    def _change(self, at: int, k: int, amount: int) -> None:
        sent = self.sent[at]
        sent[k] = sent.get(k, 0) + amount
        self.users[k][at] = None
        self.full[at] &= ~(1 << k)
        if self.limit and sent[k] >= self.limit(at, k):
            self.full[at] |= 1 << k
        if not sent[k]:
            del sent[k], self.users[k][at]
