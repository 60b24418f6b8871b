from __future__ import annotations

from hypothesis import given, settings

from gpu_constructs.capacity.packing import Bin, Item, Load
from gpu_constructs.capacity.packing.part import Filling, bits, join, split
from packing_checks import goes_into, problems


def test_bits_are_given_from_the_lowest():
    assert list(bits(0b101001)) == [0, 3, 5]


def test_items_and_bins_that_are_the_same_become_one():
    everywhere = frozenset([0, 1, 2])
    items = [Item((2,), 3, everywhere), Item((1,), 1, everywhere), Item((2,), 4, everywhere)]
    (part,), homeless = split(items, [Bin((5,), 1), Bin((6,), 1), Bin((5,), 2)])
    assert not homeless
    assert (part.sizes, part.counts, part.items) == (((2,), (1,)), (7, 1), ((0, 2), (1,)))
    assert (part.capacities, part.bins, part.kinds) == (((5,), (6,)), (3, 1), ((0, 2), (1,)))


def test_items_with_a_limit_of_their_own_stay_apart():
    items = [Item((1,), 3, frozenset([0]), 1), Item((1,), 3, frozenset([0]), 1), Item((1,), 3, frozenset([0]), 3)]
    (part,), _ = split(items, [Bin((9,), 3)])
    assert part.items == ((0,), (1,), (2,))
    assert part.mosts == (1, 1, 3)


def test_bins_that_are_too_small_do_not_take_an_item():
    items = [Item((4, 1), 1, frozenset([0, 1, 2])), Item((1, 1), 1, frozenset([0, 1, 2]))]
    (part,), _ = split(items, [Bin((3, 9), 1), Bin((4, 0), 1), Bin((4, 1), 1)])
    assert part.kinds == ((0,), (2,))
    assert part.masks == (0b10, 0b11)


def test_what_cannot_meet_is_parted():
    items = [
        Item((1, 0), 1, frozenset([0])),
        Item((0, 1), 1, frozenset([0])),
        Item((1, 0), 1, frozenset([1, 2])),
        Item((2, 0), 1, frozenset([2, 3])),
        Item((3, 0), 1, frozenset([3, 4])),
    ]
    parts, _ = split(items, [Bin((4, 4), 1 + k) for k in range(5)])
    assert sorted(((p.dimensions, p.items) for p in parts), key=lambda each: each[1]) == [
        ((0,), ((0,),)),
        ((1,), ((1,),)),
        ((0,), ((2,), (3,), (4,))),
    ]


def test_dimensions_that_an_item_uses_together_stay_together():
    items = [Item((1, 0, 0), 1, frozenset([0])), Item((1, 0, 2), 1, frozenset([0])), Item((0, 1, 0), 1, frozenset([0]))]
    parts, _ = split(items, [Bin((9, 9, 9), 1)])
    assert sorted(part.dimensions for part in parts) == [(0, 2), (1,)]


def test_contents_of_parts_are_laid_over_each_other():
    items = [Item((1, 0), 3, frozenset([0])), Item((0, 1), 1, frozenset([0]))]
    bins = [Bin((2, 1), 3)]
    one, other = split(items, bins)[0]
    firsts = Filling([(0, 1, {0: 2}), (0, 1, {0: 1}), (0, 1, {})], (0,))
    seconds = Filling([(0, 1, {0: 1}), (0, 2, {})], (0,))
    loads, unplaced = join(items, bins, [(one, firsts), (other, seconds)])
    assert loads == (Load(0, 1, {0: 2, 1: 1}), Load(0, 1, {0: 1}), Load(0, 1, {}))
    assert not unplaced


def test_what_is_the_same_is_told_apart_again_the_earlier_first():
    items = [Item((1,), 3, frozenset([0])), Item((1,), 4, frozenset([0]))]
    bins = [Bin((2,), 3)]
    (part,), _ = split(items, bins)
    loads, unplaced = join(items, bins, [(part, Filling([(0, 3, {0: 2})], (1,)))])
    assert loads == (Load(0, 1, {0: 2}), Load(0, 1, {0: 1, 1: 1}), Load(0, 1, {1: 2}))
    assert unplaced == {1: 1}


@given(problems())
@settings(max_examples=200)
def test_parts_have_every_item_once_with_the_bins_it_goes_into(problem):
    items, bins = problem
    parts, homeless = split(items, bins)
    seen = sorted([i for part in parts for same in part.items for i in same] + homeless)
    assert seen == [i for i, item in enumerate(items) if item.count]
    assert all(not any(goes_into(items[i], bins[k]) for k in items[i].bins) for i in homeless)
    for part in parts:
        for same, mask in zip(part.items, part.masks, strict=True):
            kinds = {original for k in bits(mask) for original in part.kinds[k]}
            for i in same:
                assert kinds == {k for k in items[i].bins if goes_into(items[i], bins[k])}
