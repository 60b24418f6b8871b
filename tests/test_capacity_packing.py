from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_constructs.capacity.packing import Bin, Item, Load, pack
from packing_checks import all_fit, check, problems

ONE = frozenset([0])


def whole(size: int, count: int = 1) -> Item:
    return Item((size,), count, ONE)


def partition_in_threes(bins: int, capacity: int, seed: int) -> tuple[list[Item], list[Bin]]:
    """Give three items for each bin that fill it exactly, each of more than a quarter and less than half of it."""
    drawn, sizes = random.Random(seed), []
    while len(sizes) < 3 * bins:
        a, b = (drawn.randint(capacity // 4 + 1, capacity // 2 - 1) for _ in range(2))
        if capacity / 4 < capacity - a - b < capacity / 2:
            sizes += [a, b, capacity - a - b]
    drawn.shuffle(sizes)
    return [whole(size) for size in sizes], [Bin((capacity,), bins)]


@given(problems())
@settings(max_examples=300)
def test_the_answer_is_that_of_trying_everything(problem):
    items, bins = problem
    packing = pack(items, bins)
    check(items, bins, packing)
    assert packing.answer == ("yes" if all_fit(items, bins) else "no")


@given(problems(dimensions=1, copies=7))
@settings(max_examples=150)
def test_the_answer_is_that_of_trying_everything_in_one_dimension(problem):
    items, bins = problem
    packing = pack(items, bins)
    check(items, bins, packing)
    assert packing.answer == ("yes" if all_fit(items, bins) else "no")


@given(problems(), st.integers(0, 2))
@settings(max_examples=150)
def test_one_more_bin_takes_nothing_away(problem, which):
    items, bins = problem
    before = pack(items, bins)
    which %= len(bins)
    more = [replace(b, count=b.count + (k == which)) for k, b in enumerate(bins)]
    after = pack(items, more)
    check(items, more, after)
    assert (before.answer, after.answer) != ("yes", "no")


@given(problems())
@settings(max_examples=100)
def test_the_same_problem_is_packed_the_same_way(problem):
    assert pack(*problem) == pack(*problem)


@given(problems())
@settings(max_examples=200)
def test_without_a_budget_nothing_is_searched_and_no_answer_is_a_guess(problem):
    items, bins = problem
    packing = pack(items, bins, budget=0)
    check(items, bins, packing)
    assert packing.effort == 0
    assert packing.answer in ("undecided", "yes" if all_fit(items, bins) else "no")


def test_without_a_budget_what_simple_rules_miss_is_undecided():
    items, bins = partition_in_threes(10, 1000, 1)
    packing = pack(items, bins, budget=0)
    check(items, bins, packing)
    assert (packing.answer, packing.effort) == ("undecided", 0)
    assert pack(items, bins).answer == "yes"


def test_nothing_to_pack_fits():
    assert pack([], []).answer == pack([Item((1,), 0, frozenset())], []).answer == "yes"
    assert pack([], [Bin((1,), 2)]).loads == (Load(0, 2, {}),)


def test_an_item_that_no_bin_takes_says_so():
    packing = pack([whole(1), Item((1,), 2, frozenset())], [Bin((5,), 1)])
    assert packing.answer == "no"
    assert packing.loads == (Load(0, 1, {0: 1}),)
    assert packing.unplaced == {1: 2}
    short = packing.shortage
    assert (short.items, short.bins, short.dimension, short.needed, short.available) == ((1,), (), None, 2, 0)


def test_an_item_that_is_too_large_for_every_bin_says_in_what():
    items, bins = [Item((1, 9), 3, frozenset([0, 1]))], [Bin((4, 8), 1), Bin((4, 7), 5)]
    packing = pack(items, bins)
    check(items, bins, packing)
    short = packing.shortage
    assert (short.bins, short.dimension, short.at_least, short.needed, short.available) == ((0, 1), 1, 9, 3, 0)


def test_an_item_that_fails_on_other_things_in_other_bins_has_no_place():
    items, bins = [Item((5, 5), 1, frozenset([0, 1]))], [Bin((4, 9), 1), Bin((9, 4), 1)]
    packing = pack(items, bins)
    check(items, bins, packing)
    assert packing.shortage.dimension is None


def test_what_goes_only_to_a_few_bins_is_counted_there():
    items = [Item((1,), 3, frozenset([0])), Item((1,), 2, frozenset([0, 1])), Item((1,), 4, frozenset([2]))]
    bins = [Bin((2,), 1), Bin((2,), 1), Bin((4,), 1)]
    packing = pack(items, bins)
    check(items, bins, packing)
    short = packing.shortage
    assert (short.items, short.bins, short.dimension, short.needed, short.available) == ((0,), (0,), 0, 3, 2)
    assert packing.unplaced == {0: 1}


def test_large_items_are_counted_by_how_many_go_into_a_bin():
    items, bins = [whole(5, 3), whole(1, 1)], [Bin((9,), 2)]
    packing = pack(items, bins)
    check(items, bins, packing)
    short = packing.shortage
    assert (short.items, short.at_least, short.needed, short.available) == ((0,), 5, 3, 2)


def test_items_that_keep_themselves_apart_are_short_of_places():
    items, bins = [Item((1,), 3, ONE, most_per_bin=1), whole(2)], [Bin((8,), 2)]
    packing = pack(items, bins)
    check(items, bins, packing)
    short = packing.shortage
    assert (short.items, short.dimension, short.needed, short.available) == ((0,), None, 3, 2)


def test_a_limit_per_bin_is_each_items_own():
    items, bins = [Item((1,), 2, ONE, most_per_bin=1), Item((1,), 2, ONE, most_per_bin=1)], [Bin((2,), 2)]
    assert pack(items, bins).loads == (Load(0, 2, {0: 1, 1: 1}),)


def test_a_limit_of_none_at_all_keeps_an_item_out():
    packing = pack([Item((1,), 1, ONE, most_per_bin=0)], [Bin((2,), 2)])
    assert packing.answer == "no"
    assert packing.shortage.dimension is None


def test_things_of_no_size_need_a_bin_all_the_same():
    assert pack([Item((0,), 3, ONE, most_per_bin=1)], [Bin((0,), 3)]).answer == "yes"
    assert pack([Item((0,), 3, ONE, most_per_bin=1)], [Bin((0,), 2)]).answer == "no"
    assert pack([Item((0,), 3, ONE)], [Bin((0,), 1)]).loads == (Load(0, 1, {0: 3}),)


def test_dimensions_that_nobody_uses_together_share_their_bins():
    items = [Item((1, 0), 4, ONE), Item((0, 1), 3, ONE), Item((2, 0), 1, ONE)]
    bins = [Bin((3, 2), 2)]
    packing = pack(items, bins)
    check(items, bins, packing)
    assert packing.answer == "yes"
    assert sum(load.count for load in packing.loads) == 2


def test_the_earlier_of_what_is_alike_gets_the_places():
    packing = pack([whole(1, 3), whole(1, 3), whole(1, 3)], [Bin((5,), 1)])
    assert packing.answer == "no"
    assert packing.unplaced == {1: 1, 2: 3}


def test_thousands_of_alike_cost_no_more_than_one():
    items = [Item((1, 16), 1_000_000, ONE)]
    packing = pack(items, [Bin((1000, 16000), 1000)])
    assert packing.loads == (Load(0, 1000, {0: 1000}),)


@pytest.mark.parametrize("bins", [5, 10, 20])
@pytest.mark.parametrize("capacity", [100, 16303])
def test_bins_that_have_to_be_exactly_full_are_filled(bins, capacity):
    items, of = partition_in_threes(bins, capacity, bins * capacity)
    packing = pack(items, of)
    check(items, of, packing)
    assert packing.answer == "yes"


def test_full_bins_that_miss_by_one_are_told_apart():
    items, bins = partition_in_threes(10, 16303, 3)
    items[0], items[1] = whole(items[0].size[0] + 1), whole(items[1].size[0] - 1)
    assert pack(items, bins).answer == "no"


@pytest.mark.parametrize("count", [4, 99])
def test_sizes_of_about_a_quarter_are_told_apart(count):
    bins = [Bin((100,), count)]
    fitting = [whole(size, count) for size in (26, 27, 23, 24)]
    assert pack(fitting, bins).answer == "yes"
    packing = pack([whole(26, count), whole(27, count + 1), whole(23, count - 1), whole(24, count)], bins)
    assert packing.answer == "no"


def vectors() -> tuple[list[Item], list[Bin]]:
    sizes = [tuple((7 * i * (d + 3) + 13 * d) % 41 for d in range(4)) for i in range(180)]
    items = [Item(size, 1, frozenset({0, i % 40, *range(i % 7, 40, 2)})) for i, size in enumerate(sizes)]
    return items, [Bin((100,) * 4, 1)] * 40


def layers() -> tuple[list[Item], list[Bin]]:
    items = [Item((n % 50 + 51, n % 7), 3, frozenset(range(20))) for n in range(60)]
    return items, [Bin((205 + k, 11), 3) for k in range(20)]


@pytest.mark.parametrize(
    "problem",
    [partition_in_threes(40, 1000, 40_000), partition_in_threes(100, 81920, 7), vectors(), layers()],
    ids=["threes", "many threes", "vectors", "layers"],
)
def test_a_hard_problem_ends_within_its_budget(problem):
    items, bins = problem
    packing = pack(items, bins)
    check(items, bins, packing)
    assert packing.effort <= 50_000


def elsewhere(items: list[Item]) -> list[Item]:
    return [replace(item, bins=frozenset([1])) for item in items]


def test_what_is_too_hard_does_not_hide_what_cannot_be():
    (hard, many), (items, few) = partition_in_threes(100, 100, 10_000), partition_in_threes(12, 16303, 0)
    items[0], items[1] = whole(items[0].size[0] + 1), whole(items[1].size[0] - 1)
    assert pack(hard, many).answer == "undecided"
    assert pack([*hard, *elsewhere(items)], [*many, *few]).answer == "no"


def test_what_fits_does_not_hide_what_is_too_hard():
    (hard, many), (easy, few) = partition_in_threes(100, 100, 10_000), partition_in_threes(12, 16303, 0)
    items, bins = [*hard, *elsewhere(easy)], [*many, *few]
    packing = pack(items, bins)
    check(items, bins, packing)
    assert packing.answer == "undecided"
    assert min(packing.unplaced) < len(hard) > max(packing.unplaced)


def test_the_budget_is_the_most_that_is_spent():
    items, bins = partition_in_threes(40, 1000, 40_000)
    packing = pack(items, bins, budget=500)
    assert packing.answer == "undecided"
    assert 0 < packing.effort <= 500


def test_a_thousand_bins_and_five_thousand_items_that_all_differ_take_less_than_a_step_each():
    drawn = random.Random(1)
    bins = [Bin((drawn.choice([4, 8, 16]), drawn.randint(16_000, 82_000)), 1) for _ in range(1000)]
    items = [
        Item(
            (1, drawn.randint(1_000, 9_000)),
            1,
            frozenset(drawn.sample(range(1000), 5 if i % 2 else 300)),
        )
        for i in range(5000)
    ]
    packing = pack(items, bins)
    check(items, bins, packing)
    assert packing.answer == "yes"
    assert packing.effort < len(items)
