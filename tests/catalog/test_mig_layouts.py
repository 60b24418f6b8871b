"""Which MIG devices a board can be divided into."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from gpu_constructs.catalog.gpu_models import GPU_MODELS
from gpu_constructs.catalog.mig_layouts import fits, layout_problem, placements, profiles_of
from gpu_constructs.catalog.mig_profiles import MIG_PROFILES, require_mig_profile, size_of

A100 = "NVIDIA A100-SXM4-40GB"
H100 = "NVIDIA H100 80GB HBM3"
RTX_PRO = "NVIDIA RTX PRO 6000 Blackwell Server Edition"
DIVIDED = [name for name, profiles in MIG_PROFILES.items() if profiles]


def by_force(name, devices):
    """Check whether some choice of starts gives every device memory of its own."""
    where = placements(name)
    spans = [where[device] for device in devices]
    for starts in product(*[span.starts for span in spans]):
        parts = [part for span, start in zip(spans, starts, strict=True) for part in range(start, start + span.width)]
        if len(parts) == len(set(parts)):
            return True
    return False


@given(st.data())
def test_a_layout_fits_when_some_choice_of_places_does(data):
    name = data.draw(st.sampled_from(DIVIDED))
    devices = data.draw(st.lists(st.sampled_from(MIG_PROFILES[name]), max_size=5))
    layout = {profile: devices.count(profile) for profile in devices}
    assert fits(name, layout) is by_force(name, devices)


def test_every_board_is_filled_by_each_of_its_profiles():
    for name in DIVIDED:
        most = {6: (7, 4, 3, 2, 1, 1), 3: (4, 2, 1)}[len(MIG_PROFILES[name])]
        for profile, count in zip(MIG_PROFILES[name], most, strict=True):
            assert fits(name, {profile: count}), name
            assert not fits(name, {profile: count + 1}), name


def test_what_nvidia_divides_boards_into_fits():
    for layout in [
        {"1g.5gb": 2, "2g.10gb": 1, "3g.20gb": 1},
        {"4g.20gb": 1, "1g.5gb": 3},
        {"4g.20gb": 1, "3g.20gb": 1},
        {"3g.20gb": 1, "2g.10gb": 2},
        {"4g.20gb": 1, "1g.10gb": 2},
        {"3g.20gb": 1, "1g.5gb": 4},
        {"2g.10gb": 3, "1g.10gb": 1},
        {"1g.5gb+me": 1, "1g.5gb": 6},
        {"1g.5gb.me": 1},
        {"1g.5gb": 0},
        {},
    ]:
        assert layout_problem(A100, layout) is None, layout


def test_what_does_not_fit_is_told_with_the_reason():
    for name, layout, problem in [
        (A100, {"1g.5gb": 8}, f"it takes 8 compute slices, and {A100} has 7"),
        (A100, {"1g.5gb": 10**9}, f"it takes {10**9} compute slices, and {A100} has 7"),
        (
            A100,
            {"1g.10gb": 3, "4g.20gb": 1},
            "no place is left for '1g.10gb' beside 1 x '4g.20gb' and 2 x '1g.10gb': of the 8 parts of memory of "
            f"{A100} it takes 2 from number 0 or 2 or 4 or 6 on",
        ),
        (
            H100,
            {"3g.40gb": 2, "1g.10gb": 1},
            f"no place is left for '1g.10gb' beside 2 x '3g.40gb': of the 8 parts of memory of {H100} it takes 1 from "
            "number 0 or 1 or 2 or 3 or 4 or 5 or 6 on",
        ),
        (A100, {"1g.20gb": 1}, f"{A100} has no '1g.20gb': it has 1g.5gb, 1g.10gb, 2g.10gb, 3g.20gb, 4g.20gb, 7g.40gb"),
        (
            A100,
            {"1g.5gb+gfx": 1},
            f"{A100} has no '1g.5gb+gfx': it has 1g.5gb, 1g.5gb+me, 1g.10gb, 2g.10gb, 3g.20gb, 4g.20gb, 7g.40gb",
        ),
        (A100, {"1g.5gb+me": 2}, "only one device of a board has the media extensions of '1g.5gb+me'"),
        (
            "NVIDIA A30",
            {"1g.6gb+me": 1, "2g.12gb.me": 1},
            "only one device of a board has the media extensions of '1g.6gb+me' and '2g.12gb+me'",
        ),
        ("NVIDIA A30", {"2g.12gb": 2, "1g.6gb": 1}, "it takes 5 compute slices, and NVIDIA A30 has 4"),
        (
            RTX_PRO,
            {"1g.24gb.me.all": 1, "1g.24gb": 1},
            "'1g.24gb+me.all' takes all media engines of the board, so every other device must do without, like "
            "'1g.24gb-me'; '1g.24gb' does not",
        ),
        ("NVIDIA L4", {"1g.5gb": 1}, "NVIDIA L4 has no MIG"),
        (None, {"4g.40gb": 2}, "it takes 8 compute slices, and no board has more than 7"),
        ("Another board", {"4g.40gb": 2}, "it takes 8 compute slices, and no board has more than 7"),
    ]:
        assert layout_problem(name, layout) == problem, (name, layout, problem)
        assert not fits(name, layout), (name, layout, problem)


def test_all_media_engines_go_with_devices_that_have_none():
    assert fits(RTX_PRO, {"1g.24gb+me.all": 1, "1g.24gb-me": 3})
    assert fits(RTX_PRO, {"1g.24gb+me": 1, "1g.24gb": 2, "1g.24gb+gfx": 1})


def test_a_board_without_mig_may_stay_undivided():
    assert placements("NVIDIA L4") == {}
    assert placements(None) is placements("Another board") is None
    assert fits("NVIDIA L4", {})
    assert profiles_of("NVIDIA L4") == profiles_of("Another board") == ()


def test_every_profile_of_a_board_is_one_and_fits_alone():
    for name in DIVIDED:
        assert name in GPU_MODELS, name
        for profile in profiles_of(name):
            require_mig_profile("profile", profile)
            assert fits(name, {profile: 1}), name
        assert tuple(dict.fromkeys(size_of(profile) for profile in profiles_of(name))) == MIG_PROFILES[name], name
