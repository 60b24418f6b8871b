from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from depth import at_depth
from gpu_constructs.capacity.vram import conflicts, worst_mib

GIB = 1024
RTX_5070_TI = 16303
OLLAMA, COMFYUI, NOTEBOOK, TRAIN, KATIB = range(5)
SEED = [(gib * GIB, 1, 1) for gib in (8, 12, 4, 4, 2)]


def test_the_worst_case_of_five_pods_is_nearly_twice_the_memory():
    assert worst_mib(5, SEED) == 30720
    assert 100 * worst_mib(5, SEED) // RTX_5070_TI == 188


def test_conflicts_on_a_shared_gpu_are_found_in_order():
    assert conflicts(RTX_5070_TI, 5, SEED) == (
        [
            {OLLAMA: 1, COMFYUI: 1},
            {COMFYUI: 1, NOTEBOOK: 1},
            {COMFYUI: 1, TRAIN: 1},
            {OLLAMA: 1, NOTEBOOK: 1, TRAIN: 1},
        ],
        True,
    )


def test_a_limited_search_states_that_more_conflicts_exist():
    all_of_them = conflicts(RTX_5070_TI, 5, SEED)
    assert conflicts(RTX_5070_TI, 5, SEED, limit=4) == all_of_them
    assert conflicts(RTX_5070_TI, 5, SEED, limit=3) == (all_of_them[0][:3], False)


def test_a_search_without_budget_does_not_claim_completeness():
    assert conflicts(RTX_5070_TI, 5, SEED, budget=0) == ([], False)


def test_equal_pods_come_with_the_lowest_indices_first():
    assert conflicts(10, 2, [(6, 1, 1)] * 400, limit=3)[0] == [{0: 1, 1: 1}, {0: 1, 2: 1}, {0: 1, 3: 1}]
    assert conflicts(10, 2, [(6, 2, 1), (6, 1, 1)])[0] == [{0: 2}, {0: 1, 1: 1}]


@pytest.mark.parametrize(
    ("slots", "candidates"),
    [
        (256, [(size, 3, 1) for size in range(60, 5060)]),
        (256, [(size, 10**12, 1 + size % 7) for size in range(60, 5060)]),
        (48, [(1700 + 7 * size % 311, 2, 1) for size in range(5000)]),
        (100_000, [(1 + size % 3, 10**9, 1 + size % 5) for size in range(5000)]),
        (10**9, [(1, 10**12, 1)]),
        (10**9, [(mib, 10**12, mib) for mib in range(1, 200)]),
    ],
)
def test_thousands_of_candidates_take_a_limited_number_of_steps(slots, candidates):
    found = conflicts(81559, slots, candidates, budget=2_000)
    for pods in found[0]:
        taken = [candidates[index][0] for index, count in pods.items() for _ in range(count)]
        assert sum(taken) > 81559 >= sum(taken) - min(taken)
    assert found == conflicts(81559, slots, candidates, budget=2_000)
    assert found != ([], True)
    assert worst_mib(slots, candidates) > 81559


SIZES = st.integers(0, 12)
CANDIDATES = st.lists(st.tuples(SIZES, st.integers(0, 3), st.sampled_from([1, 1, 1, 2, 3, 4])), max_size=5)


def _sets(slots, candidates):
    widths = [width for _, _, width in candidates]
    for counts in product(*(range(candidate[1] + 1) for candidate in candidates)):
        if sum(map(int.__mul__, counts, widths)) <= slots:
            yield counts, sum(count * candidate[0] for count, candidate in zip(counts, candidates, strict=True))


@at_depth(300, quick=50)
@given(st.integers(0, 9), CANDIDATES)
def test_the_worst_case_is_the_largest_of_all_sets(slots, candidates):
    assert worst_mib(slots, candidates) == max(mib for _, mib in _sets(slots, candidates))


@at_depth(600, quick=80)
@given(st.integers(0, 30), st.integers(0, 9), CANDIDATES, st.integers(1, 8))
def test_conflicts_are_the_minimal_sets(vram, slots, candidates, limit):
    expected = []
    for counts, mib in _sets(slots, candidates):
        taken = [candidates[index][0] for index, count in enumerate(counts) for _ in range(count)]
        if mib > vram and all(sum(part) <= vram for part in combinations(taken, len(taken) - 1)):
            indexes = [index for index, count in enumerate(counts) for _ in range(count)]
            expected.append((len(indexes), -mib, indexes, {i: c for i, c in enumerate(counts) if c}))
    expected.sort()
    found = conflicts(vram, slots, candidates, limit=limit)
    assert found == ([one[-1] for one in expected[:limit]], len(expected) <= limit)
    assert [list(one) for one in found[0]] == [sorted(one) for one in found[0]]


@at_depth(300, quick=50)
@given(st.integers(1, 40), st.lists(st.tuples(st.integers(1, 60), st.integers(1, 9), st.integers(1, 6)), max_size=12))
def test_an_upper_bound_is_never_below_the_worst_case(slots, candidates):
    from gpu_constructs.capacity import vram

    exact = worst_mib(slots, candidates)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vram, "_MOST_SUMS", 0)
        assert worst_mib(slots, candidates) >= exact
