from __future__ import annotations

from hypothesis import given, settings

from gpu_constructs.capacity.packing import Bin, Item
from gpu_constructs.capacity.packing.greedy import greedy
from gpu_constructs.capacity.packing.part import join, split
from gpu_constructs.capacity.packing.problem import Packing
from packing_checks import check_loads, problems

ONE = frozenset([0])


@given(problems(copies=12))
@settings(max_examples=300)
def test_whatever_it_places_has_room_there(problem):
    items, bins = problem
    loads, unplaced = join(items, bins, [(part, greedy(part)) for part in split(items, bins)[0]])
    check_loads(items, bins, Packing("undecided", loads, unplaced, None, 0))


def test_what_has_few_choices_is_not_shut_out():
    items = [Item((2, 1), 1, frozenset([0, 1])), Item((1, 2), 1, ONE)]
    (part,), _ = split(items, [Bin((2, 2), 1), Bin((2, 2), 1)])
    assert greedy(part).unplaced == (0, 0)


def test_the_earlier_are_preferred_where_as_many_fit():
    (part,), _ = split([Item((3,), 1, ONE), Item((4,), 1, ONE)], [Bin((5,), 1)])
    assert greedy(part).unplaced == (0, 1)


def test_more_are_preferred_to_earlier():
    (part,), _ = split([Item((5,), 1, ONE), Item((2,), 2, ONE), Item((6,), 1, ONE)], [Bin((6,), 1)])
    assert sum(greedy(part).unplaced) == 2


def test_bins_with_the_same_content_stay_one():
    (part,), _ = split([Item((3,), 5000, ONE), Item((2,), 4000, ONE)], [Bin((10,), 2500)])
    filling = greedy(part)
    assert not any(filling.unplaced)
    assert len(filling.loads) < 10
