from __future__ import annotations

from hypothesis import given, settings

from gpu_constructs.capacity.packing import Bin, Item
from gpu_constructs.capacity.packing.greedy import greedy
from gpu_constructs.capacity.packing.part import Filling, Part, join, split
from gpu_constructs.capacity.packing.problem import Packing
from gpu_constructs.capacity.packing.repair import repair
from packing_checks import check_loads, problems


def empty(part: Part) -> Filling:
    return Filling([(kind, count, {}) for kind, count in enumerate(part.bins)], part.counts)


@given(problems(copies=12))
@settings(max_examples=300)
def test_whatever_it_moves_has_room_there_and_nobody_loses_a_place(problem):
    items, bins = problem
    for start in (empty, greedy):
        filled = []
        for part in split(items, bins)[0]:
            before = start(part)
            after, _ = repair(part, before, 1000)
            assert all(a <= b for a, b in zip(after.unplaced, before.unplaced, strict=True))
            filled.append((part, after))
        loads, unplaced = join(items, bins, filled)
        check_loads(items, bins, Packing("undecided", loads, unplaced, None, 0))


def test_a_chain_of_moves_makes_room():
    items = [
        Item((3,), 1, frozenset([0, 1])),
        Item((4,), 1, frozenset([1, 2])),
        Item((5,), 1, frozenset([0])),
    ]
    (part,), _ = split(items, [Bin((5,), 1), Bin((6,), 1), Bin((7,), 1)])
    stuck = Filling([(0, 1, {0: 1}), (1, 1, {1: 1}), (2, 1, {})], (0, 0, 1))
    after, steps = repair(part, stuck, 1000)
    assert [dict(content) for _, _, content in after.loads] == [{2: 1}, {0: 1}, {1: 1}]
    assert after.unplaced == (0, 0, 0)
    assert steps > 0


def test_it_does_not_put_more_of_an_item_into_a_bin_than_that_allows():
    items = [Item((1,), 2, frozenset([0]), 1), Item((1,), 1, frozenset([0, 1]))]
    (part,), _ = split(items, [Bin((2,), 1), Bin((9,), 1)])
    stuck = Filling([(0, 1, {0: 1, 1: 1}), (1, 1, {})], (1, 0))
    assert repair(part, stuck, 1000)[0].unplaced == (1, 0)


def test_without_a_budget_nothing_moves():
    (part,), _ = split([Item((1,), 1, frozenset([0])), Item((2,), 1, frozenset([0]))], [Bin((3,), 1)])
    assert repair(part, empty(part), 0) == (empty(part), 0)
