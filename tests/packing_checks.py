"""Small problems of packing, their answers by trying everything, and what holds for every result."""

from collections import Counter

from hypothesis import strategies as st

from gpu_constructs.capacity.packing import Bin, Item, Packing, Shortage


def check(items: list[Item], bins: list[Bin], packing: Packing) -> None:
    """Hold a packing against its problem, by arithmetic alone."""
    check_loads(items, bins, packing)
    assert (packing.answer == "yes") == (not packing.unplaced)
    if packing.shortage is not None:
        assert packing.answer == "no"
        check_shortage(items, bins, packing.shortage)


def check_loads(items: list[Item], bins: list[Bin], packing: Packing) -> None:
    there_are, placed = Counter(), Counter()
    for load in packing.loads:
        assert load.count > 0
        there_are[load.bin] += load.count
        for index, count in load.items.items():
            assert count > 0
            assert load.bin in items[index].bins
            assert count <= most(items[index])
            placed[index] += count * load.count
        for d, has in enumerate(bins[load.bin].size):
            assert sum(items[index].size[d] * count for index, count in load.items.items()) <= has
    assert there_are == Counter({k: b.count for k, b in enumerate(bins) if b.count})
    assert all(count > 0 for count in packing.unplaced.values())
    assert placed + Counter(packing.unplaced) == Counter({i: item.count for i, item in enumerate(items) if item.count})


def check_shortage(items: list[Item], bins: list[Bin], shortage: Shortage) -> None:
    """Compute the proof again, as its documentation reads."""
    short = [items[i] for i in shortage.items]
    assert short
    for item in short:
        assert item.count > 0
        for k in item.bins - set(shortage.bins):
            assert not goes_into(item, bins[k])
    d, least = shortage.dimension, shortage.at_least
    if d is None:
        assert least is None
        assert shortage.needed == sum(item.count for item in short)
        assert shortage.available == sum(places(short, k, bins[k]) for k in shortage.bins)
    elif least is None:
        assert shortage.needed == sum(item.count * item.size[d] for item in short)
        assert shortage.available == sum(bins[k].count * bins[k].size[d] for k in shortage.bins)
    else:
        assert shortage.needed == sum(item.count for item in short if item.size[d] >= least)
        assert shortage.available == sum(bins[k].count * (bins[k].size[d] // least) for k in shortage.bins)
    assert shortage.needed > shortage.available


def places(items: list[Item], kind: int, one: Bin) -> int:
    """Count how many of these items all bins of a kind have places for, at most."""
    here = [item for item in items if kind in item.bins and goes_into(item, one)]
    if not here:
        return 0
    alone = sum(
        min([most(item), *(has // takes for has, takes in zip(one.size, item.size, strict=True) if takes)])
        for item in here
    )
    smallest = [min(item.size[d] for item in here) for d in range(len(one.size))]
    return one.count * min([alone, *(has // least for has, least in zip(one.size, smallest, strict=True) if least)])


def goes_into(item: Item, one: Bin) -> bool:
    return one.count > 0 and most(item) > 0 and all(a <= b for a, b in zip(item.size, one.size, strict=True))


def most(item: Item) -> int:
    return item.count if item.most_per_bin is None else min(item.count, item.most_per_bin)


def all_fit(items: list[Item], bins: list[Bin]) -> bool:
    """Check by brute force whether all copies fit into the bins."""
    copies = [i for i, item in enumerate(items) for _ in range(item.count)]
    kinds = [k for k, b in enumerate(bins) for _ in range(b.count)]
    states = {(tuple(bins[k].size for k in kinds), ((),) * len(kinds))}
    for i in copies:
        states = {
            (
                (*rooms[:at], tuple(a - b for a, b in zip(rooms[at], items[i].size, strict=True)), *rooms[at + 1 :]),
                (*contents[:at], (*contents[at], i), *contents[at + 1 :]),
            )
            for rooms, contents in states
            for at, kind in enumerate(kinds)
            if kind in items[i].bins
            and all(a >= b for a, b in zip(rooms[at], items[i].size, strict=True))
            and contents[at].count(i) < most(items[i])
        }
    return bool(states)


@st.composite
def problems(draw: st.DrawFn, dimensions: int = 2, copies: int = 6, largest: int = 8) -> tuple[list[Item], list[Bin]]:
    """Draw at most four bins, and items that fill them roughly."""
    bins: list[Bin] = []
    for _ in range(draw(st.integers(1, 3))):
        left = 4 - sum(b.count for b in bins)
        size = st.tuples(*[st.integers(largest // 2, largest * 3 // 2)] * dimensions)
        bins.append(Bin(draw(size), draw(st.integers(1 if not bins else 0, min(left, 3)))))
    items: list[Item] = []
    while (left := copies - sum(item.count for item in items)) and (not items or draw(st.booleans()) or left > 3):
        items.append(
            Item(
                size=draw(st.tuples(*[st.integers(0, largest)] * dimensions).filter(any)),
                count=draw(st.integers(1, left)),
                bins=draw(st.frozensets(st.integers(0, len(bins) - 1), min_size=0 if draw(st.booleans()) else 1)),
                most_per_bin=draw(st.sampled_from([None, None, 1, 2])),
            )
        )
    return items, bins
