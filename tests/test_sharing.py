import warnings

import pytest

from gpu_constructs import Flags, GpuConstructsError, GpuConstructsWarning, PluginConfig, Sharing

MIG = "nvidia.com/mig-1g.5gb"
EITHER = pytest.mark.parametrize("make", [Sharing.time_slicing, Sharing.mps])


def refusal(make, **options):
    with pytest.raises(GpuConstructsError) as refused:
        make(**options)
    return str(refused.value)


@pytest.mark.parametrize(
    ("replicas", "problem"),
    [
        (1, "must be at least 2, got 1"),
        (0, "must be at least 2, got 0"),
        (-4, "must be at least 2, got -4"),
        ("5", "must be an int, got '5' (str)"),
        (2.5, "must be an int, got 2.5 (float)"),
        (True, "must be an int, got True (bool)"),
        ([2], "must be an int, got [2] (list)"),
    ],
)
@EITHER
def test_replicas_that_share_nothing_are_refused_with_the_way_out(make, replicas, problem):
    field = f"sharing.{make.__name__}.replicas"
    assert refusal(make, replicas=replicas) == f"{field} {problem}; use Sharing.none() for exclusive GPUs"


def test_mps_without_replicas_shares_nothing_either():
    assert refusal(Sharing.mps, replicas=None) == (
        "sharing.mps.replicas must be an int, got None (NoneType); use Sharing.none() for exclusive GPUs"
    )


@pytest.mark.parametrize("option", ["fail_requests_greater_than_one", "rename_by_default"])
@pytest.mark.parametrize("given", ["yes", 1, None])
@EITHER
def test_a_switch_that_is_no_bool_is_refused_as_a_python_type(make, option, given):
    assert refusal(make, replicas=2, **{option: given}) == (
        f"sharing.{make.__name__}.{option} must be bool; got {type(given).__name__}: {given!r}"
    )


@EITHER
def test_requests_for_several_slots_are_refused_unless_told_otherwise(make):
    assert make(replicas=5).fail_requests_greater_than_one is True
    assert make(replicas=5, fail_requests_greater_than_one=False).fail_requests_greater_than_one is False


@pytest.mark.parametrize(("make", "strategy"), [(Sharing.time_slicing, "time-slicing"), (Sharing.mps, "mps")])
def test_a_sharing_keeps_what_it_was_given(make, strategy):
    sharing = make(replicas=5)
    assert (sharing.strategy, sharing.replicas, sharing.rename_by_default) == (strategy, 5, False)
    assert sharing.resources == {"nvidia.com/gpu": 5}


def test_without_sharing_a_gpu_is_one_slot_and_several_may_be_asked_for():
    sharing = Sharing.none()
    assert (sharing.strategy, sharing.replicas, sharing.fail_requests_greater_than_one) == ("none", 1, False)
    assert sharing.resources == {}


def test_slots_are_asked_for_by_the_plain_name_unless_renamed():
    assert Sharing.none().gpu_resource == "nvidia.com/gpu"
    assert Sharing.time_slicing(replicas=2).gpu_resource == "nvidia.com/gpu"
    assert Sharing.time_slicing(replicas=2, rename_by_default=True).gpu_resource == "nvidia.com/gpu.shared"
    assert Sharing.mps(replicas=2, rename_by_default=True).gpu_resource == "nvidia.com/gpu.shared"


def test_only_what_is_shared_is_renamed():
    sharing = Sharing.time_slicing(resources={MIG: 2}, rename_by_default=True)
    assert (sharing.gpu_resource, sharing.replicas) == ("nvidia.com/gpu", 1)
    assert sharing.resource_name(MIG) == f"{MIG}.shared"


def test_a_sharing_cannot_be_changed_after_it_was_checked():
    with pytest.raises(AttributeError):
        Sharing.none().replicas = 5


def test_a_dictionary_changed_afterwards_does_not_change_the_sharing():
    given = {"nvidia.com/gpu": 2}
    sharing = Sharing.time_slicing(resources=given)
    given["nvidia.com/gpu"] = 1
    assert sharing.resources == {"nvidia.com/gpu": 2}


def test_replicas_are_short_for_those_of_the_gpu():
    assert Sharing.time_slicing(replicas=4) == Sharing.time_slicing(resources={"nvidia.com/gpu": 4})


@pytest.mark.parametrize(("options", "got"), [({}, "neither"), ({"replicas": 2, "resources": {MIG: 2}}, "both")])
def test_replicas_and_resources_exclude_each_other(options, got):
    assert (
        refusal(Sharing.time_slicing, **options)
        == f"sharing.time_slicing takes either replicas or resources; got {got}"
    )


@pytest.mark.parametrize("resources", [{}, [("nvidia.com/gpu", 2)], "nvidia.com/gpu", 5])
def test_resources_that_name_nothing_are_refused(resources):
    got = {} if resources == {} else resources
    assert refusal(Sharing.time_slicing, resources=resources) == (
        f"sharing.time_slicing.resources must name what is shared, like {{'nvidia.com/gpu': 4}}; got {got!r}; "
        "use Sharing.none() for exclusive GPUs"
    )


def test_the_replicas_of_a_mig_device_are_refused_by_its_name():
    assert refusal(Sharing.time_slicing, resources={MIG: 1}) == (
        "sharing.time_slicing.resources['nvidia.com/mig-1g.5gb'] must be at least 2, got 1; "
        "use Sharing.none() for exclusive GPUs"
    )


@pytest.mark.parametrize(
    "profile", ["1g.5gb", "7g.80gb", "1g.10gb.me", "1g.24gb.me.all", "1g.24gb-me", "2g.48gb.gfx", "10g.100gb"]
)
def test_every_kind_of_mig_device_can_be_shared(profile):
    name = f"nvidia.com/mig-{profile}"
    assert Sharing.time_slicing(resources={name: 2}).resources == {name: 2}


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("gpu", None),
        ("nvidia.com/gpus", "nvidia.com/gpu"),
        ("nvidia.com/gpu.shared", "nvidia.com/gpu"),
        ("amd.com/gpu", "nvidia.com/gpu"),
        ("nvidia.com/mig-1g", "nvidia.com/mig-1g.5gb"),
        ("nvidia.com/mig-1g.5gb\n", "nvidia.com/mig-1g.5gb"),
        ("nvidia.com/mig-1c.3g.20gb", "nvidia.com/mig-1g.5gb"),
        ("", None),
        (5, None),
        (None, None),
    ],
)
def test_a_resource_that_no_node_has_is_refused(name, meant):
    hint = f" (did you mean {meant!r}?)" if meant else ""
    assert refusal(Sharing.time_slicing, resources={name: 2}) == (
        "sharing.time_slicing.resources must hold 'nvidia.com/gpu' or MIG devices like 'nvidia.com/mig-1g.5gb', which "
        f"are all the plugin advertises; got {name!r}{hint}"
    )


def test_mps_shares_up_to_48_ways_and_says_what_shares_more():
    assert Sharing.mps(replicas=48).replicas == 48
    assert refusal(Sharing.mps, replicas=49) == (
        "sharing.mps.replicas must be at most 48, got 49; MPS serves 48 clients of a GPU (16 below compute capability "
        "7.5); use Sharing.time_slicing for more"
    )
    assert Sharing.time_slicing(replicas=49).replicas == 49


def test_mps_does_not_share_mig_devices():
    assert refusal(Sharing, strategy="mps", resources={MIG: 2}) == (
        "sharing.mps.resources must be 'nvidia.com/gpu': MPS does not share MIG devices; got "
        "'nvidia.com/mig-1g.5gb'; use Sharing.time_slicing for them"
    )


def mig_name(length):
    return f"nvidia.com/mig-{'1' * (length - len('nvidia.com/mig-g.5gb'))}g.5gb"


def test_a_name_leaves_room_for_the_suffix_that_renaming_adds():
    assert Sharing.time_slicing(resources={mig_name(56): 2}, rename_by_default=True)
    assert refusal(Sharing.time_slicing, resources={mig_name(57): 2}, rename_by_default=True) == (
        "sharing.time_slicing.resources must have names of at most 56 characters with rename_by_default, which adds "
        f"'.shared'; got {mig_name(57)!r}"
    )


def test_a_name_is_no_longer_than_the_plugin_takes():
    assert Sharing.time_slicing(resources={mig_name(63): 2})
    assert refusal(Sharing.time_slicing, resources={mig_name(64): 2}) == (
        f"sharing.time_slicing.resources must have names of at most 63 characters; got {mig_name(64)!r}"
    )


@pytest.mark.parametrize("strategy", ["time_slicing", "MPS", "", None, 5])
def test_an_unknown_strategy_is_refused(strategy):
    meant = {"time_slicing": "time-slicing", None: "none"}.get(strategy)
    hint = f" (did you mean {meant!r}?)" if meant else ""
    assert refusal(Sharing, strategy=strategy) == (
        f"sharing.strategy must be one of 'none', 'time-slicing', 'mps'; got {strategy!r}{hint}"
    )


@pytest.mark.parametrize(
    "option",
    [{"resources": {"nvidia.com/gpu": 2}}, {"rename_by_default": True}, {"fail_requests_greater_than_one": True}],
)
def test_no_sharing_takes_no_options(option):
    assert refusal(Sharing, strategy="none", **option) == (
        "sharing without a strategy takes nothing else; use Sharing.none()"
    )


# --- units of memory ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("vram", "unit", "replicas"),
    [
        ("16303Mi", "1Gi", 15),
        ("16Gi", "1Gi", 16),
        ("16303Mi", "512Mi", 31),
        ("24564Mi", "4Gi", 5),
        ("2Gi", "1Gi", 2),
        ("25.4G", "1Gi", 23),
    ],
)
def test_a_gpu_has_as_many_slots_as_whole_units_fit_into_its_memory(vram, unit, replicas):
    sharing = Sharing.vram_units(vram=vram, unit=unit)
    assert (sharing.strategy, sharing.resources) == ("time-slicing", {"nvidia.com/gpu": replicas})
    assert sharing.vram_unit == unit


def test_the_slots_of_a_gpu_fit_into_one_message_to_the_kubelet():
    with pytest.warns(GpuConstructsWarning, match="start late"):
        assert Sharing.vram_units(vram="63550Mi", unit="1Mi").replicas == 63_550
    assert Sharing.time_slicing(replicas=63_550).replicas == 63_550
    assert "must give at most 63550 slots" in refusal(Sharing.vram_units, vram="63551Mi", unit="1Mi")
    assert refusal(Sharing.time_slicing, replicas=63_551) == (
        "sharing.time_slicing.replicas must be at most 63550, got 63551; the kubelet does not read a longer list of "
        "slots from the plugin"
    )


def test_units_may_be_asked_for_several_at_a_time():
    assert Sharing.vram_units(vram="16Gi").fail_requests_greater_than_one is False


def test_units_are_of_one_gibibyte_and_renamed_only_where_that_is_said():
    sharing = Sharing.vram_units(vram="16Gi")
    assert (sharing.vram_unit, sharing.vram_unit_mib, sharing.gpu_resource) == ("1Gi", 1024, "nvidia.com/gpu")
    assert Sharing.vram_units(vram="16Gi", rename_by_default=True).gpu_resource == "nvidia.com/gpu.shared"


@pytest.mark.parametrize("sharing", [Sharing.none(), Sharing.time_slicing(replicas=4), Sharing.mps(replicas=4)])
def test_other_slots_count_no_memory(sharing):
    assert (sharing.vram_unit, sharing.vram_unit_mib) == (None, None)
    with pytest.raises(GpuConstructsError) as refused:
        sharing.units("8Gi")
    assert str(refused.value) == (
        f"units are of Sharing.vram_units alone; got a sharing of strategy {sharing.strategy!r}"
    )


@pytest.mark.parametrize(
    ("unit", "vram", "units"),
    [
        ("1Gi", "8Gi", 8),
        ("1Gi", "7.2Gi", 8),
        ("1Gi", "8193Mi", 9),
        ("1Gi", "1Mi", 1),
        ("1Gi", "15Gi", 15),
        ("512Mi", "8Gi", 16),
        ("1Gi", "8G", 8),
        ("1Gi", "8589934593", 9),
    ],
)
def test_part_of_a_unit_is_asked_for_as_a_whole_one(unit, vram, units):
    assert Sharing.vram_units(vram="16303Mi", unit=unit).units(vram) == units


@pytest.mark.parametrize(
    ("vram", "problem"),
    [
        (
            "15361Mi",
            "vram must be at most 15 units of 1Gi, which is all that is handed out of a GPU; got '15361Mi', which is "
            "16; take less, or a larger GPU",
        ),
        ("8", "vram must be at least 1Mi; got '8'; write the unit, as in '8Gi'"),
        ("0", "vram must be at least 1Mi; got '0'; write the unit, as in '8Gi'"),
        ("much", "vram must be a Kubernetes quantity like '500m' or '16Gi'; got 'much'"),
        (8, "vram must be str; got int: 8"),
    ],
)
def test_what_no_gpu_can_give_is_refused(vram, problem):
    with pytest.raises(GpuConstructsError) as refused:
        Sharing.vram_units(vram="16303Mi").units(vram)
    assert str(refused.value) == problem


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({}, "vram is required by Sharing.vram_units; pass vram=..."),
        ({"vram": 16}, "sharing.vram_units.vram must be str; got int: 16"),
        ({"vram": "16 GB"}, "sharing.vram_units.vram must be a Kubernetes quantity like '500m' or '16Gi'; got '16 GB'"),
        ({"vram": "16Gi", "unit": 1}, "sharing.vram_units.unit must be str; got int: 1"),
        (
            {"vram": "16Gi", "unit": "1G"},
            "sharing.vram_units.unit must be whole MiB, at least one; got '1G'; write '1Gi' or '512Mi'",
        ),
        (
            {"vram": "16Gi", "unit": "0"},
            "sharing.vram_units.unit must be whole MiB, at least one; got '0'; write '1Gi' or '512Mi'",
        ),
        (
            {"vram": "16303Mi", "unit": "8Gi"},
            "sharing.vram_units.vram must be at least two units of '8Gi'; got '16303Mi'; take a smaller unit, or use "
            "Sharing.none() for exclusive GPUs",
        ),
        (
            {"vram": "80Gi", "unit": "1Mi"},
            "sharing.vram_units.unit must give at most 63550 slots, more than which the kubelet does not read from the "
            "plugin; got '1Mi', 81920 of '80Gi'; take a larger unit",
        ),
        (
            {"vram": "16Gi", "rename_by_default": 1},
            "sharing.time_slicing.rename_by_default must be bool; got int: 1",
        ),
    ],
)
def test_memory_that_cannot_be_counted_in_units_is_refused(options, problem):
    assert refusal(Sharing.vram_units, **options) == problem


def test_so_many_units_that_pods_start_late_are_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Sharing.vram_units(vram="1024Mi", unit="1Mi").replicas == 1024
    with pytest.warns(GpuConstructsWarning, match="makes 1025 slots of '1Mi'"):
        Sharing.vram_units(vram="1025Mi", unit="1Mi")


SLOTS = {"nvidia.com/gpu": 2}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            {"strategy": "none"},
            "sharing.vram_unit needs the strategy 'time-slicing', got 'none'; use Sharing.vram_units",
        ),
        (
            {"strategy": "mps", "resources": SLOTS},
            "sharing.vram_unit needs the strategy 'time-slicing', got 'mps'; use Sharing.vram_units",
        ),
        (
            {"strategy": "time-slicing", "resources": SLOTS, "fail_requests_greater_than_one": True},
            "sharing.time_slicing.fail_requests_greater_than_one must be False with vram_unit, where a container asks "
            "for as many slots as it takes memory; leave it out",
        ),
        (
            {"strategy": "time-slicing", "resources": {**SLOTS, MIG: 2}},
            "sharing.time_slicing.resources must be 'nvidia.com/gpu' alone with vram_unit, since a node with MIG "
            f"devices has several memories; got 'nvidia.com/gpu', {MIG!r}",
        ),
    ],
)
def test_a_unit_of_memory_goes_with_slots_of_whole_gpus_alone(options, problem):
    assert refusal(Sharing, vram_unit="1Gi", **options) == problem
    assert Sharing(strategy="time-slicing", resources=SLOTS, vram_unit="1Gi").units("2Gi") == 2


# --- units in the plugin's file ----------------------------------------------------


def test_the_plugin_is_told_of_slots_alone():
    units, slots = (
        PluginConfig(sharing=sharing).document()
        for sharing in (
            Sharing.vram_units(vram="16303Mi"),
            Sharing.time_slicing(replicas=15, fail_requests_greater_than_one=False),
        )
    )
    assert units == slots


@pytest.mark.parametrize("mig_strategy", [None, "none", "mixed"])
def test_units_go_with_whole_gpus_whatever_else_is_divided(mig_strategy):
    assert PluginConfig(sharing=Sharing.vram_units(vram="80Gi"), flags=Flags(mig_strategy=mig_strategy))


def test_units_are_refused_where_the_devices_of_a_board_have_its_name():
    sharing = Sharing.vram_units(vram="80Gi")
    assert refusal(PluginConfig, sharing=sharing, flags=Flags(mig_strategy="single")) == (
        "flags.mig_strategy must not be 'single' with Sharing.vram_units, which counts one memory in each node, where "
        "MIG devices have several; use 'mixed'"
    )
