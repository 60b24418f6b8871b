import random
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from depth import at_depth
from gpu_constructs.capacity.packing import Bin, Item, Load, pack, solver
from packing_checks import all_fit, check, problems

ONE = frozenset([0])


def whole(size: int, count: int = 1) -> Item:
    return Item((size,), count, ONE)


def partition_in_threes(bins: int, capacity: int, seed: int) -> tuple[list[Item], list[Bin]]:
    """Return three items for each bin that fill it exactly, each of more than a quarter and less than half of it."""
    drawn, sizes = random.Random(seed), []
    while len(sizes) < 3 * bins:
        a, b = (drawn.randint(capacity // 4 + 1, capacity // 2 - 1) for _ in range(2))
        if capacity / 4 < capacity - a - b < capacity / 2:
            sizes += [a, b, capacity - a - b]
    drawn.shuffle(sizes)
    return [whole(size) for size in sizes], [Bin((capacity,), bins)]


@at_depth(300, quick=50)
@given(problems())
def test_the_answer_is_that_of_trying_everything(problem):
    items, bins = problem
    packing = pack(items, bins)
    check(items, bins, packing)
    assert packing.answer == ("yes" if all_fit(items, bins) else "no")


@at_depth(150, quick=25)
@given(problems(), st.integers(0, 2))
def test_one_more_bin_never_makes_a_packing_worse(problem, which):
    items, bins = problem
    before = pack(items, bins)
    which %= len(bins)
    more = [replace(b, count=b.count + (k == which)) for k, b in enumerate(bins)]
    after = pack(items, more)
    check(items, more, after)
    assert (before.answer, after.answer) != ("yes", "no")


def test_an_item_that_no_bin_accepts_is_a_shortage():
    packing = pack([whole(1), Item((1,), 2, frozenset())], [Bin((5,), 1)])
    assert packing.answer == "no"
    assert packing.loads == (Load(0, 1, {0: 1}),)
    assert packing.unplaced == {1: 2}
    short = packing.shortage
    assert (short.items, short.bins, short.dimension, short.needed, short.available) == ((1,), (), None, 2, 0)


def test_an_item_too_large_for_every_bin_names_the_dimension():
    items, bins = [Item((1, 9), 3, frozenset([0, 1]))], [Bin((4, 8), 1), Bin((4, 7), 5)]
    packing = pack(items, bins)
    check(items, bins, packing)
    short = packing.shortage
    assert (short.bins, short.dimension, short.at_least, short.needed, short.available) == ((0, 1), 1, 9, 3, 0)


def test_items_for_a_few_bins_count_there():
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


def test_items_that_keep_apart_lack_places():
    items, bins = [Item((1,), 3, ONE, most_per_bin=1), whole(2)], [Bin((8,), 2)]
    packing = pack(items, bins)
    check(items, bins, packing)
    short = packing.shortage
    assert (short.items, short.dimension, short.needed, short.available) == ((0,), None, 3, 2)


def test_a_limit_per_bin_is_each_items_own():
    items, bins = [Item((1,), 2, ONE, most_per_bin=1), Item((1,), 2, ONE, most_per_bin=1)], [Bin((2,), 2)]
    assert pack(items, bins).loads == (Load(0, 2, {0: 1, 1: 1}),)


def test_items_of_size_zero_also_need_a_bin():
    assert pack([Item((0,), 3, ONE, most_per_bin=1)], [Bin((0,), 3)]).answer == "yes"
    assert pack([Item((0,), 3, ONE, most_per_bin=1)], [Bin((0,), 2)]).answer == "no"
    assert pack([Item((0,), 3, ONE)], [Bin((0,), 1)]).loads == (Load(0, 1, {0: 3}),)


def test_dimensions_that_no_item_combines_share_bins():
    items = [Item((1, 0), 4, ONE), Item((0, 1), 3, ONE), Item((2, 0), 1, ONE)]
    bins = [Bin((3, 2), 2)]
    packing = pack(items, bins)
    check(items, bins, packing)
    assert packing.answer == "yes"
    assert sum(load.count for load in packing.loads) == 2


def test_earlier_equal_items_get_the_places():
    packing = pack([whole(1, 3), whole(1, 3), whole(1, 3)], [Bin((5,), 1)])
    assert packing.answer == "no"
    assert packing.unplaced == {1: 1, 2: 3}


def test_bins_that_must_be_exactly_full_are_filled():
    for bins in [5, 10]:
        for capacity in [100, 16303]:
            items, of = partition_in_threes(bins, capacity, bins * capacity)
            packing = pack(items, of)
            check(items, of, packing)
            assert packing.answer == "yes"


def test_a_problem_that_misses_by_one_is_impossible():
    items, bins = partition_in_threes(10, 16303, 3)
    items[0], items[1] = whole(items[0].size[0] + 1), whole(items[1].size[0] - 1)
    assert pack(items, bins).answer == "no"


def elsewhere(items: list[Item]) -> list[Item]:
    return [replace(item, bins=frozenset([1])) for item in items]


def test_a_hard_part_does_not_hide_an_impossible_part():
    (hard, many), (items, few) = partition_in_threes(100, 100, 10_000), partition_in_threes(12, 16303, 0)
    items[0], items[1] = whole(items[0].size[0] + 1), whole(items[1].size[0] - 1)
    assert pack(hard, many).answer == "undecided"
    assert pack([*hard, *elsewhere(items)], [*many, *few]).answer == "no"


def test_without_the_solver_only_its_problems_are_undecided(monkeypatch):
    monkeypatch.setattr(solver, "is_installed", lambda: False)
    for problem in (partition_in_threes(10, 1000, 1), partition_in_threes(10, 16303, 3)):
        packing = pack(*problem)
        check(*problem, packing)
        assert packing.answer == "undecided"
    assert pack([whole(5, 3)], [Bin((9,), 2)]).answer == "no"
    assert pack([whole(5, 2), whole(4, 2)], [Bin((9,), 2)]).answer == "yes"
