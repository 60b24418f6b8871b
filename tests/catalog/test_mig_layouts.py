"""Combinations of MIG devices that a board supports."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from gpu_constructs.catalog.gpu_models import GPU_MODELS
from gpu_constructs.catalog.mig_layouts import fits, layout_problem, placements, profiles_of
from gpu_constructs.catalog.mig_profiles import MIG_PROFILES, require_mig_profile, size_of

A100 = "NVIDIA A100-SXM4-40GB"
RTX_PRO = "NVIDIA RTX PRO 6000 Blackwell Server Edition"
DIVIDED = [name for name, profiles in MIG_PROFILES.items() if profiles]


def by_force(name, devices):
    """Check whether the devices have placements without shared memory slices."""
    where = placements(name)
    spans = [where[device] for device in devices]
    for starts in product(*[span.starts for span in spans]):
        parts = [part for span, start in zip(spans, starts, strict=True) for part in range(start, start + span.width)]
        if len(parts) == len(set(parts)):
            return True
    return False


@given(st.data())
def test_a_layout_fits_if_one_choice_of_placements_does(data):
    name = data.draw(st.sampled_from(DIVIDED))
    devices = data.draw(st.lists(st.sampled_from(MIG_PROFILES[name]), max_size=5))
    layout = {profile: devices.count(profile) for profile in devices}
    assert fits(name, layout) is by_force(name, devices)


def test_each_profile_can_fill_its_board():
    for name in DIVIDED:
        most = {6: (7, 4, 3, 2, 1, 1), 3: (4, 2, 1)}[len(MIG_PROFILES[name])]
        for profile, count in zip(MIG_PROFILES[name], most, strict=True):
            assert fits(name, {profile: count}), name
            assert not fits(name, {profile: count + 1}), name


def test_the_example_layouts_of_nvidia_fit(rows):
    for (layout,) in rows:
        assert layout_problem(A100, layout) is None, layout


def test_a_layout_that_does_not_fit_has_a_reason(rows):
    for name, layout, problem in rows:
        assert layout_problem(name, layout) == problem, (name, layout, problem)
        assert not fits(name, layout), (name, layout, problem)


def test_a_device_with_all_media_engines_fits_beside_devices_without_them():
    assert fits(RTX_PRO, {"1g.24gb+me.all": 1, "1g.24gb-me": 3})
    assert fits(RTX_PRO, {"1g.24gb+me": 1, "1g.24gb": 2, "1g.24gb+gfx": 1})


def test_a_board_without_mig_can_have_an_empty_layout():
    assert placements("NVIDIA L4") == {}
    assert placements(None) is placements("Another board") is None
    assert fits("NVIDIA L4", {})
    assert profiles_of("NVIDIA L4") == profiles_of("Another board") == ()


def test_every_profile_of_a_board_is_valid_and_fits_alone():
    for name in DIVIDED:
        assert name in GPU_MODELS, name
        for profile in profiles_of(name):
            require_mig_profile("profile", profile)
            assert fits(name, {profile: 1}), name
        assert tuple(dict.fromkeys(size_of(profile) for profile in profiles_of(name))) == MIG_PROFILES[name], name
