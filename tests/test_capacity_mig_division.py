import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_constructs.capacity.mig_division import Division, Want, divide, parts, smallest_part
from gpu_constructs.mig_layouts import layout_problem
from gpu_constructs.mig_profiles import MIG_PROFILES, mig_vram_mib

A100 = "NVIDIA A100-SXM4-40GB"
A30 = "NVIDIA A30"


def want(profile, count, each=1):
    return Want(((profile, each),), 0, count)


def test_the_parts_of_a_board_come_smallest_first_without_the_whole():
    assert parts(A100, MIG_PROFILES[A100]) == ["1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb"]
    assert parts(A30, MIG_PROFILES[A30]) == ["1g.6gb", "2g.12gb"]


@pytest.mark.parametrize(
    ("mib", "profile"),
    [(1, "1g.5gb"), (4864, "1g.5gb"), (4865, "1g.10gb"), (19968, "3g.20gb"), (19969, None), (40960, None)],
)
def test_the_smallest_part_holds_the_memory_that_its_devices_really_have(mib, profile):
    assert smallest_part(A100, MIG_PROFILES[A100], mib) == profile


def test_who_comes_first_gets_the_room():
    assert divide(A100, 1, [want("3g.20gb", 3), want("1g.5gb", 9)]) == Division(({"3g.20gb": 2},), (2, 0))
    assert divide(A100, 1, [want("1g.5gb", 3), want("3g.20gb", 3)]) == Division(({"1g.5gb": 3, "3g.20gb": 1},), (3, 1))


def test_a_whole_board_is_not_divided():
    assert divide(A100, 3, [Want((), 2, 1), want("1g.5gb", 9)]) == Division(({}, {}, {"1g.5gb": 7}), (1, 7))
    assert divide(A100, 1, [want("1g.5gb", 1), Want((), 1, 1)]) == Division(({"1g.5gb": 1},), (1, 0))


def test_boards_that_are_too_few_for_one_pod_are_left_to_the_others():
    assert divide(A100, 1, [Want((), 2, 1), want("1g.5gb", 1)]) == Division(({"1g.5gb": 1},), (0, 1))


def test_a_pod_with_several_devices_gets_all_or_none():
    assert divide(A30, 1, [want("1g.6gb", 2, each=3)]) == Division(({"1g.6gb": 3},), (1,))
    assert divide(A30, 2, [want("1g.6gb", 2, each=3)]) == Division(({"1g.6gb": 4}, {"1g.6gb": 2}), (2,))


@pytest.mark.parametrize("count", [0, 10**9])
def test_no_pods_and_very_many_take_no_longer_than_there_is_room(count):
    assert sum(divide(A100, 8, [want("1g.5gb", count)]).placed) == min(count, 56)


@given(
    st.sampled_from([A100, A30]),
    st.integers(1, 3),
    st.lists(st.tuples(st.integers(0, 5), st.integers(1, 3), st.integers(0, 4)), max_size=5),
)
def test_every_division_is_one_that_the_board_takes_and_that_has_no_room_for_who_waits(model, boards, drawn):
    profiles = MIG_PROFILES[model]
    wants = [want(profiles[place % len(profiles)], count, each) for place, each, count in drawn]
    division = divide(model, boards, wants)
    assert all(layout_problem(model, layout) is None for layout in division.layouts)
    assert sum(layout.get(p, 0) for layout in division.layouts for p in profiles) == sum(
        placed * one.devices[0][1] for placed, one in zip(division.placed, wants, strict=True)
    )
    for placed, one in zip(division.placed, wants, strict=True):
        ((profile, each),) = one.devices
        assert placed <= one.count
        if placed < one.count and each == 1:
            assert all(
                layout_problem(model, {**layout, profile: layout.get(profile, 0) + 1}) for layout in division.layouts
            )
    assert all(mig_vram_mib(model, profile) for layout in division.layouts for profile in layout)
