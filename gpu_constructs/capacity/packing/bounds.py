"""Proofs that items, such as pods, do not fit into bins, such as nodes, and a fast packing for items of equal size.

A proof compares two sums: the amount that some items need, and the amount that all bins that accept one of these items
have. If the first sum is larger, the items do not fit. The module ``problem`` defines the terms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, reduce
from itertools import pairwise
from operator import or_

from gpu_constructs.capacity.gathered import grouped
from gpu_constructs.capacity.packing.problem import Bin, Filling, Item, Load, Part, Shortage, bits
from gpu_constructs.records import dataclass

MOST_WORK = 1_000_000
"""Number of visited sources and sinks after which ``shortage`` stops its search for proofs (see ``_Flow``)."""
MOST_SIZES = 64
"""Largest number of values of ``Shortage.at_least`` that ``shortage`` tries in each dimension."""
MOST_SHRUNK = 64
"""Largest number of different items in a proof for which ``shortage`` looks for a proof with fewer items."""


@dataclass(frozen=True)
class _Count:
    """A comparison between what items (pods) need and what bins (nodes) have.

    The comparison is in amounts, places or large places, which the class ``Shortage`` explains.

    Attributes:
        dimension: Index of the dimension for amounts and large places; None for places.
        at_least: Amount of one large place; None for amounts and places.
        needs: Amount or number of places that all copies of an item need, by index of the item. An item whose copies
            take less than ``at_least`` needs 0 large places.
        has: Amount or number of places that all bins of a kind (equal bins) have together, by index of the kind. The
            number of places is an upper bound.
    """

    dimension: int | None
    at_least: int | None
    needs: Mapping[int, int]
    has: Mapping[int, int]


def homeless(index: int, item: Item, bins: Sequence[Bin]) -> Shortage:
    """Return a proof that an item fits into no bin: each of its copies needs one place, and all bins have 0 places.

    If every bin is too small in the same dimension, for example in GPU memory, the proof contains the dimension and the
    amount that one copy needs. Call the function only if no bin can contain a copy of the item.

    Args:
        index: Index of the item in the packing problem.
        item: Item that fits into no bin.
        bins: Kinds of bins (equal bins) of the packing problem.
    """
    kinds = tuple(k for k in sorted(item.bins) if bins[k].count > 0)
    for d, takes in enumerate(item.size):
        if kinds and item.most_per_bin != 0 and all(bins[k].size[d] < takes for k in kinds):
            return Shortage((index,), kinds, d, item.count, 0, takes)
    return Shortage((index,), kinds, None, item.count, 0)


def shortage(part: Part) -> Shortage | None:
    """Return a proof that the items (pods) of one part of the packing problem do not all fit into its bins (nodes).

    A proof is a comparison of two sums: what some items need, and what the bins have. If several proofs exist, return
    the one with the fewest items, then with the fewest kinds of bins. Return None if no comparison is a proof.
    """
    left = MOST_WORK
    found: list[tuple[tuple[int, ...], Shortage]] = []
    order = sorted(part.items, key=lambda i: part.masks[i].bit_count())
    for count in _counts(part):
        sources = [i for i in order if count.needs[i]]
        limit = None if count.dimension is not None else _limit(part, sources)
        flow = _Flow([part.masks[i] for i in sources], count.has, limit, left)
        is_known = flow.send([count.needs[i] for i in sources])
        left -= flow.work
        # If the search is too expensive, the sum over all items may still exceed the bins.
        everyone = [list(range(len(sources)))] if sum(count.needs.values()) > sum(count.has.values()) else []
        for blocked in flow.blocked if is_known else everyone:
            short = _shrunk(part, count, sorted(sources[at] for at in blocked))
            rank = (len(short.items), len(short.bins), short.dimension is None, short.at_least is not None, len(found))
            found.append((rank, short))
    return min(found, key=lambda each: each[0])[1] if found else None


def alike(part: Part) -> Filling | None:
    """Return the best packing of one part of the packing problem if all its items (pods) have the same size.

    The packing puts as many items as possible into bins (nodes). If not all items fit, earlier items take precedence.
    The result is None if the sizes differ or the search is too expensive.
    """
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
    """Distribute copies of items evenly over equal bins. Yield the content of each group of bins.

    The numbers of copies of an item in two bins differ by at most 1.

    Args:
        kind: Index of the kind of bins.
        bins: Number of the bins.
        sums: Number of copies of each item in all these bins together.
    """
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
    """Yield comparisons between what the items need and what the bins have.

    If the items need more than the bins have in one comparison, some items do not fit. The class ``Shortage`` explains
    the three kinds of comparisons: amounts, places and large places.
    """
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
    """Return an upper bound of the number of copies of items that fit into all bins of a kind, by index of the kind.

    The bound is exact if all items have the same size.

    Args:
        part: Part of the packing problem.
        items: Indices of the items.
        kinds: Indices of the kinds of bins (equal bins).
    """
    total = sum(part.items[i].count for i in items)
    size = tuple(map(min, zip(*(part.items[i].size for i in items), strict=True)))
    smallest = Item(size, total, frozenset(kinds))
    return {k: part.bins[k].count * smallest.fit(part.bins[k].size, total) for k in smallest.bins}


def _limit(part: Part, items: Sequence[int]) -> Callable[[int, int], int]:
    """Return a function that computes how many copies of an item all bins of one kind (equal bins) hold together.

    The returned function takes two arguments: the position of the item in ``items``, and the index of the kind.
    """
    return cache(lambda at, kind: part.fit(items[at], kind) * part.bins[kind].count)


def _shrunk(part: Part, count: _Count, items: list[int]) -> Shortage:
    """Return a proof that items do not fit, with as few items as possible.

    The function removes an item if the remaining items still need more than the bins that accept them have.

    Args:
        part: Part of the packing problem.
        count: Comparison that proves that the items do not fit.
        items: Indices of the items.
    """
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
    """Return the indices of the kinds of bins (equal bins) that accept at least one of the items."""
    return list(bits(reduce(or_, (part.masks[i] for i in items))))


def _available(part: Part, count: _Count, items: Sequence[int]) -> int:
    """Return what the bins that accept at least one of the items have together: an amount, or a count of places."""
    if count.dimension is not None:
        return sum(count.has[k] for k in _reached(part, items))
    total = 0
    for k in _reached(part, items):
        here = [i for i in items if part.masks[i] >> k & 1]
        total += min(_places(part, here, [k])[k], part.bins[k].count * sum(part.fit(i, k) for i in here))
    return total


class _Flow:
    """A distribution of as large an amount as possible from sources to sinks (a maximum flow).

    Each source supplies an amount and can send it to some of the sinks only. Sources stand for items, sinks stand for
    kinds of bins, and the flow is the number or amount of items in the bins. If sources cannot send everything, the
    flow shows which sources have too few sinks. A later source never takes flow from an earlier one.

    Attributes:
        sent: Amount that each source sends to each sink.
        unmet: Amount that each source cannot send.
        blocked: Sets of sources that supply more than all their sinks can take. Empty if the sources send everything.
        work: Number of sources and sinks that the search has visited.
    """

    def __init__(
        self,
        masks: Sequence[int],
        room: Mapping[int, int],
        limit: Callable[[int, int], int] | None,
        most_work: int,
    ) -> None:
        """Initialize a flow in which no source has sent anything yet.

        Args:
            masks: Bit mask for each source. Bit k is 1 if the source may use sink k.
            room: Amount that each sink can take, by index of the sink.
            limit: Function that returns the largest amount, above 0, that a source can send to a sink. None if no such
                limit exists.
            most_work: Number of visited sources and sinks after which the method ``send`` gives up.
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
        # Bit mask of the sinks to which a source sends its limit.
        self.full = [0] * len(masks)
        self.with_room = sum(1 << k for k, free in room.items() if free > 0)
        # Bit mask of the sinks from which no path leads to a sink with room.
        self.dead = 0

    def send(self, supplies: Sequence[int]) -> bool:
        """Send amounts from the sources to the sinks until each source has sent its supply, or cannot send more.

        The result is in the attributes ``sent`` and ``unmet``.

        Args:
            supplies: Amount that each source has to send.

        Returns:
            True if the search ended, and False if it was too expensive.
        """
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
        """Return the shortest chain of changes that lets a source send more to the sinks; empty if no chain exists.

        A chain is a list of pairs of a source and a sink. For example, ``[(b, y), (a, x)]`` means: b moves an amount
        from x to y, which makes room in x. Then a, the given source, sends this amount to x.
        """
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
        """Send the largest possible amount along a chain of sources and sinks, and return this amount.

        Args:
            path: Chain, as the method ``_path`` returns it.
            most: Largest amount to send.
        """
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
        """Add ``amount``, which can be negative, to the amount that the source ``at`` sends to the sink ``k``."""
        sent = self.sent[at]
        sent[k] = sent.get(k, 0) + amount
        self.users[k][at] = None
        self.full[at] &= ~(1 << k)
        if self.limit and sent[k] >= self.limit(at, k):
            self.full[at] |= 1 << k
        if not sent[k]:
            del sent[k], self.users[k][at]
