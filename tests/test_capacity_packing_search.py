from __future__ import annotations

from hypothesis import given, settings

from gpu_constructs.capacity.packing import Bin, Item
from gpu_constructs.capacity.packing.part import join, split
from gpu_constructs.capacity.packing.problem import Packing
from gpu_constructs.capacity.packing.search import search
from packing_checks import all_fit, check_loads, problems


def searched(items, bins, budget=50_000):
    """Answer by the search alone."""
    parts, homeless = split(items, bins)
    found = [search(part, budget) for part in parts]
    if homeless or any(each.answer == "no" for each in found):
        return "no"
    assert all(each.answer == "yes" for each in found)
    filled = [(part, each.filling) for part, each in zip(parts, found, strict=True)]
    loads, unplaced = join(items, bins, filled)
    assert not unplaced
    check_loads(items, bins, Packing("yes", loads, unplaced, None, 0))
    return "yes"


@given(problems())
@settings(max_examples=300)
def test_it_alone_answers_as_trying_everything_does(problem):
    assert searched(*problem) == ("yes" if all_fit(*problem) else "no")


@given(problems(dimensions=1, copies=8))
@settings(max_examples=200)
def test_it_alone_answers_as_trying_everything_does_in_one_dimension(problem):
    assert searched(*problem) == ("yes" if all_fit(*problem) else "no")


@given(problems(dimensions=3, copies=5))
@settings(max_examples=100)
def test_it_alone_answers_as_trying_everything_does_in_three_dimensions(problem):
    assert searched(*problem) == ("yes" if all_fit(*problem) else "no")


@given(problems(dimensions=1, copies=8, largest=4))
@settings(max_examples=400)
def test_it_alone_answers_as_trying_everything_does_where_much_is_small(problem):
    assert searched(*problem) == ("yes" if all_fit(*problem) else "no")


def test_what_fits_is_left_out_where_that_is_better():
    items = [Item((size,), count, frozenset([0])) for size, count in ((5, 1), (4, 2), (3, 1), (2, 2))]
    assert searched(items, [Bin((10,), 2)]) == "yes"


def test_what_keeps_itself_apart_does_not_give_its_place_to_something_larger():
    both = frozenset([0, 1])
    items = [Item((2,), 3, both, most_per_bin=1), Item((6,), 1, both)]
    assert searched(items, [Bin((8,), 1), Bin((7,), 2)]) == "yes"


def test_what_goes_to_few_bins_does_not_give_its_place_to_something_larger():
    items = [Item((4,), 1, frozenset([0])), Item((5,), 1, frozenset([0, 1]))]
    assert searched(items, [Bin((7,), 2), Bin((5,), 1)]) == "yes"


def test_what_sizes_cannot_fill_is_not_searched():
    # 19 is odd, so of 3 bins with 57 the even sizes can have 54.
    (part,), _ = split([Item((4,), 13, frozenset([0])), Item((2,), 2, frozenset([0]))], [Bin((19,), 3)])
    found = search(part, 1)
    assert (found.answer, found.effort) == ("no", 0)


def test_it_gives_up_at_its_budget():
    sizes = [(7 * n) % 60 + 21 for n in range(40)]
    (part,), _ = split([Item((size, size * 3 % 17), 1, frozenset([0])) for size in sizes], [Bin((110, 18), 19)])
    found = search(part, 20)
    assert (found.answer, found.filling, found.effort) == ("undecided", None, 20)


def test_without_a_budget_it_says_nothing():
    (part,), _ = split([Item((1,), 1, frozenset([0])), Item((2,), 1, frozenset([0]))], [Bin((3,), 1)])
    assert search(part, 0).answer == "undecided"
