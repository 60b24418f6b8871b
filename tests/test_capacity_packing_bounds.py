from __future__ import annotations

from hypothesis import given, settings

from gpu_constructs.capacity.packing import Bin, Item, bounds
from gpu_constructs.capacity.packing.part import join, split
from gpu_constructs.capacity.packing.problem import Packing
from packing_checks import all_fit, check_loads, check_shortage, most_that_fit, problems


@given(problems())
@settings(max_examples=300)
def test_every_shortage_is_true(problem):
    items, bins = problem
    parts, homeless = split(items, bins)
    found = [bounds.shortage(part) for part in parts] + [bounds.homeless(i, items[i], bins) for i in homeless]
    for shortage in filter(None, found):
        check_shortage(items, bins, shortage)
        assert not all_fit(items, bins)


@given(problems(dimensions=1))
@settings(max_examples=200)
def test_of_one_size_as_many_as_possible_are_placed(problem):
    items, bins = problem
    items = [Item((3,), item.count, item.bins, item.most_per_bin) for item in items]
    parts, homeless = split(items, bins)
    loads, unplaced = join(items, bins, [(part, bounds.alike(part)) for part in parts])
    check_loads(items, bins, Packing("undecided", loads, unplaced, None, 0))
    assert sum(item.count for item in items) - sum(unplaced.values()) == most_that_fit(items, bins)
    short = {i for part in parts for i in (bounds.shortage(part) or bounds.homeless(0, items[0], bins)).items}
    assert bool(unplaced) == bool(homeless) or short


@given(problems(dimensions=1))
@settings(max_examples=100)
def test_of_one_size_it_is_always_said_what_is_short(problem):
    items, bins = problem
    items = [Item((3,), item.count, item.bins, item.most_per_bin) for item in items]
    parts, _ = split(items, bins)
    for part in parts:
        assert any(bounds.alike(part).unplaced) == (bounds.shortage(part) is not None)


def test_where_it_is_too_much_work_to_find_who_is_short_all_together_are(monkeypatch):
    items, bins = [Item((2,), 3, frozenset([0])), Item((3,), 2, frozenset([0, 1]))], [Bin((4,), 1), Bin((6,), 1)]
    (part,), _ = split(items, bins)
    assert bounds.shortage(part).items == (0,)
    monkeypatch.setattr(bounds, "MOST_WORK", 0)
    shortage = bounds.shortage(part)
    check_shortage(items, bins, shortage)
    assert (shortage.needed, shortage.available) in ((6, 4), (12, 10))


def test_of_several_sizes_counting_is_not_all():
    (part,), _ = split([Item((1,), 1, frozenset([0])), Item((2,), 1, frozenset([0]))], [Bin((3,), 1)])
    assert bounds.alike(part) is None


def test_a_shortage_names_no_more_than_it_needs():
    items = [Item((1,), 2, frozenset([k])) for k in range(5)] + [Item((1,), 3, frozenset(range(5)))]
    bins = [Bin((3,), 1)] * 4 + [Bin((1,), 1)]
    (part,), _ = split(items, bins)
    shortage = bounds.shortage(part)
    check_shortage(items, bins, shortage)
    assert (shortage.items, shortage.bins) == ((4,), (4,))
