import warnings

import pytest

from gpu_constructs import Flags, GpuConstructsWarning, PluginConfig, Sharing
from refusals import refusal
from tables import cases

MIG = "nvidia.com/mig-1g.5gb"
EITHER = pytest.mark.parametrize("make", [Sharing.time_slicing, Sharing.mps])


@cases
@EITHER
def test_replicas_out_of_range_are_rejected_with_a_solution(make, replicas, problem):
    field = f"sharing.{make.__name__}.replicas"
    assert refusal(make, replicas=replicas) == f"{field} {problem}. Use Sharing.none() for exclusive GPUs"


@pytest.mark.parametrize("option", ["fail_requests_greater_than_one", "rename_by_default"])
@pytest.mark.parametrize("given", ["yes", 1, None])
@EITHER
def test_an_option_that_is_not_a_bool_is_rejected_with_its_python_type(make, option, given):
    assert refusal(make, replicas=2, **{option: given}) == (
        f"sharing.{make.__name__}.{option} must be bool, got {type(given).__name__}: {given!r}"
    )


def test_only_shared_resources_are_renamed():
    sharing = Sharing.time_slicing(resources={MIG: 2}, rename_by_default=True)
    assert (sharing.gpu_resource, sharing.replicas) == ("nvidia.com/gpu", 1)
    assert sharing.resource_name(MIG) == f"{MIG}.shared"


def test_replicas_and_resources_exclude_each_other():
    for options, got in [({}, "neither"), ({"replicas": 2, "resources": {MIG: 2}}, "both")]:
        assert (
            refusal(Sharing.time_slicing, **options)
            == f"sharing.time_slicing must have either replicas or resources, got {got}"
        )


def test_empty_resources_are_rejected():
    for resources in [{}, [("nvidia.com/gpu", 2)], "nvidia.com/gpu", 5]:
        got = {} if resources == {} else resources
        assert refusal(Sharing.time_slicing, resources=resources) == (
            f"sharing.time_slicing.resources must name the shared resources, like {{'nvidia.com/gpu': 4}}, got "
            f"{got!r}. "
            "Use Sharing.none() for exclusive GPUs"
        )


def test_every_kind_of_mig_device_can_be_shared():
    for profile in ["1g.5gb", "7g.80gb", "1g.10gb.me", "1g.24gb.me.all", "1g.24gb-me", "2g.48gb.gfx", "10g.100gb"]:
        name = f"nvidia.com/mig-{profile}"
        assert Sharing.time_slicing(resources={name: 2}).resources == {name: 2}, profile


def test_a_resource_that_no_node_has_is_rejected(rows):
    for name, meant in rows:
        hint = f" (did you mean {meant!r}?)" if meant else ""
        assert refusal(Sharing.time_slicing, resources={name: 2}) == (
            "sharing.time_slicing.resources must name 'nvidia.com/gpu' or MIG devices like 'nvidia.com/mig-1g.5gb', "
            f"got {name!r}{hint}"
        )


def test_mps_allows_48_slots_and_suggests_time_slicing_for_more():
    assert Sharing.mps(replicas=48).replicas == 48
    assert refusal(Sharing.mps, replicas=49) == (
        "sharing.mps.replicas must be at most 48, got 49. MPS serves 48 clients of a GPU (16 below compute capability "
        "7.5). Use Sharing.time_slicing for more"
    )
    assert Sharing.time_slicing(replicas=49).replicas == 49


def test_mps_does_not_share_mig_devices():
    assert refusal(Sharing, strategy="mps", resources={MIG: 2}) == (
        "sharing.mps.resources must be 'nvidia.com/gpu', got 'nvidia.com/mig-1g.5gb', because MPS does not share MIG "
        "devices. Use Sharing.time_slicing for MIG devices"
    )


def mig_name(length):
    return f"nvidia.com/mig-{'1' * (length - len('nvidia.com/mig-g.5gb'))}g.5gb"


def test_a_name_leaves_room_for_the_suffix_that_renaming_adds():
    assert Sharing.time_slicing(resources={mig_name(56): 2}, rename_by_default=True)
    assert refusal(Sharing.time_slicing, resources={mig_name(57): 2}, rename_by_default=True) == (
        "sharing.time_slicing.resources must have names of at most 56 characters with rename_by_default, which adds "
        f"'.shared', got {mig_name(57)!r}"
    )


def test_a_resource_name_has_the_maximum_length_of_the_plugin():
    assert Sharing.time_slicing(resources={mig_name(63): 2})
    assert refusal(Sharing.time_slicing, resources={mig_name(64): 2}) == (
        f"sharing.time_slicing.resources must have names of at most 63 characters, got {mig_name(64)!r}"
    )


def test_an_unknown_strategy_is_rejected():
    for strategy in ["time_slicing", "MPS", "", None, 5]:
        meant = {"time_slicing": "time-slicing", None: "none"}.get(strategy)
        hint = f" (did you mean {meant!r}?)" if meant else ""
        assert refusal(Sharing, strategy=strategy) == (
            f"sharing.strategy must be one of 'none', 'time-slicing', 'mps', got {strategy!r}{hint}"
        )


def test_no_sharing_takes_no_options(rows):
    for (option,) in rows:
        assert refusal(Sharing, strategy="none", **option) == (
            "sharing must have no other options with the strategy 'none'. Use Sharing.none()"
        )


# --- memory units ------------------------------------------------------------------


def test_a_gpu_has_as_many_slots_as_whole_units_fit_into_its_memory(rows):
    for vram, unit, replicas in rows:
        sharing = Sharing.vram_units(vram=vram, unit=unit)
        assert (sharing.strategy, sharing.resources) == ("time-slicing", {"nvidia.com/gpu": replicas})
        assert sharing.vram_unit == unit, (vram, unit, replicas)


def test_the_slots_of_a_gpu_fit_into_one_message_to_the_kubelet():
    with pytest.warns(GpuConstructsWarning, match="start late"):
        assert Sharing.vram_units(vram="63550Mi", unit="1Mi").replicas == 63_550
    assert Sharing.time_slicing(replicas=63_550).replicas == 63_550
    assert "must give at most 63550 slots" in refusal(Sharing.vram_units, vram="63551Mi", unit="1Mi")
    assert refusal(Sharing.time_slicing, replicas=63_551) == (
        "sharing.time_slicing.replicas must be at most 63550, got 63551. The kubelet does not read a longer list of "
        "slots from the plugin"
    )


def test_units_are_one_gibibyte_and_not_renamed_by_default():
    sharing = Sharing.vram_units(vram="16Gi")
    assert (sharing.vram_unit, sharing.vram_unit_mib, sharing.gpu_resource) == ("1Gi", 1024, "nvidia.com/gpu")
    assert Sharing.vram_units(vram="16Gi", rename_by_default=True).gpu_resource == "nvidia.com/gpu.shared"


def test_other_slots_do_not_stand_for_memory():
    for sharing in [Sharing.none(), Sharing.time_slicing(replicas=4), Sharing.mps(replicas=4)]:
        assert (sharing.vram_unit, sharing.vram_unit_mib) == (None, None), sharing
        assert refusal(sharing.units, "8Gi") == (
            f"sharing.units(...) needs Sharing.vram_units, got the strategy {sharing.strategy!r}"
        )


def test_a_request_for_part_of_a_unit_is_rounded_up(rows):
    for unit, vram, units in rows:
        assert Sharing.vram_units(vram="16303Mi", unit=unit).units(vram) == units, (unit, vram, units)


def test_a_request_that_no_gpu_can_meet_is_rejected(rows):
    for vram, problem in rows:
        assert refusal(Sharing.vram_units(vram="16303Mi").units, vram) == problem, (vram, problem)


def test_memory_that_does_not_fit_the_unit_is_rejected(rows):
    for options, problem in rows:
        assert refusal(Sharing.vram_units, **options) == problem, (options, problem)


def test_so_many_units_that_pods_start_late_are_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Sharing.vram_units(vram="1024Mi", unit="1Mi").replicas == 1024
    with pytest.warns(GpuConstructsWarning, match="makes 1025 slots of '1Mi'"):
        Sharing.vram_units(vram="1025Mi", unit="1Mi")


SLOTS = {"nvidia.com/gpu": 2}


def test_a_memory_unit_requires_slots_of_whole_gpus(rows):
    for options, problem in rows:
        assert refusal(Sharing, vram_unit="1Gi", **options) == problem, (options, problem)
        assert Sharing(strategy="time-slicing", resources=SLOTS, vram_unit="1Gi").units("2Gi") == 2


# --- memory units in the configuration of the plugin --------------------------------


def test_the_configuration_of_the_plugin_contains_only_slots():
    units, slots = (
        PluginConfig(sharing=sharing).document()
        for sharing in (
            Sharing.vram_units(vram="16303Mi"),
            Sharing.time_slicing(replicas=15, fail_requests_greater_than_one=False),
        )
    )
    assert units == slots


def test_units_apply_to_whole_gpus_beside_mig_devices():
    for mig_strategy in [None, "none", "mixed"]:
        assert PluginConfig(sharing=Sharing.vram_units(vram="80Gi"), flags=Flags(mig_strategy=mig_strategy))


def test_units_are_rejected_if_mig_devices_have_the_name_of_whole_gpus():
    sharing = Sharing.vram_units(vram="80Gi")
    assert refusal(PluginConfig, sharing=sharing, flags=Flags(mig_strategy="single")) == (
        "flags.mig_strategy must not be 'single' with Sharing.vram_units, because MIG devices differ in memory. Use "
        "'mixed'"
    )
