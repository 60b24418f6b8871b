import warnings
from datetime import timedelta

import pytest

from gpu_constructs import (
    Configs,
    Flags,
    GfdFlags,
    GpuConstructsError,
    GpuConstructsWarning,
    Kubernetes,
    PluginConfig,
    PluginFlags,
    Sharing,
    Talos,
    Unverified,
    versions,
)
from gpu_constructs.device_plugin.consistency import check, check_names, plugin_configs
from gpu_constructs.device_plugin.delivery import Defaults

PLAIN = PluginConfig()
MPS = PluginConfig(sharing=Sharing.mps(replicas=4))
RACY = (
    "plugin: config-manager takes the default configuration first and corrects it by a signal afterwards, so a node "
    "may advertise nothing until its plugin pod is restarted (NVIDIA/k8s-device-plugin#1645); Configs.named has no "
    "such race"
)
OVERWRITTEN = "plugin: device_list_strategy 'volume-mounts' overwrites what 'envvar' says; leave one of them out"


def release_of(version):
    return versions.release_of(versions.DEVICE_PLUGIN, version, "the device plugin")


def checked(config, *, strategies=(), mps_root="/run/nvidia/mps", version="0.20.0", platform=Kubernetes(), **programs):  # noqa: B008
    configs = Configs.named({"default": config}, default="default") if isinstance(config, PluginConfig) else config
    defaults = Defaults(
        device_list_strategy=strategies, device_discovery_strategy=None, fail_on_init_error=None, mps_root=mps_root
    )
    given = {"has_plugin": True, "has_gpu_feature_discovery": True, **programs}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        check(configs, defaults, id="plugin", release=release_of(version), platform=platform, **given)
    assert {warning.category for warning in caught} <= {GpuConstructsWarning}
    return [str(warning.message) for warning in caught]


def refusal(config, **given):
    with pytest.raises(GpuConstructsError) as refused:
        checked(config, **given)
    return str(refused.value)


def named(config):
    return Configs.named({"plain": PLAIN, "other": config}, default="plain")


def managed(config):
    return Configs.managed({"plain": PLAIN, "other": config}, default="plain")


def external(config):
    return Configs.external("theirs", flags=config.flags)


# --- refused --------------------------------------------------------------------------------------------------

PLUGIN_ALONE, GFD_ALONE = {"has_gpu_feature_discovery": False}, {"has_plugin": False}


@pytest.mark.parametrize("delivery", [lambda config: config, named, managed, external])
@pytest.mark.parametrize(
    ("flags", "message", "fine_without"),
    [
        (
            Flags(device_discovery_strategy="vfio"),
            "flags.device_discovery_strategy 'vfio' is for GPU Feature Discovery alone, the plugin refuses it; use "
            "'nvml' or pass device_plugin=False",
            GFD_ALONE,
        ),
        (
            Flags(use_node_feature_api=False),
            "flags.use_node_feature_api must not be False: GPU Feature Discovery has no directory of the node to write "
            "to here, it publishes a NodeFeature; leave it out",
            PLUGIN_ALONE,
        ),
        (
            Flags(gfd=GfdFlags(output_file="/tmp/gfd")),
            "flags.gfd.output_file would be ignored: GPU Feature Discovery publishes a NodeFeature instead of a file; "
            "got '/tmp/gfd'; leave it out",
            PLUGIN_ALONE,
        ),
        (
            Flags(gfd=GfdFlags(output_file="")),
            "flags.gfd.output_file would be ignored: GPU Feature Discovery publishes a NodeFeature instead of a file; "
            "got ''; leave it out",
            PLUGIN_ALONE,
        ),
        (
            Flags(gfd=GfdFlags(oneshot=True)),
            "flags.gfd.oneshot must not be True: a DaemonSet restarts a program that ends, for ever; use "
            "sleep_interval='infinite' (from release 0.19.0) or leave it out",
            PLUGIN_ALONE,
        ),
    ],
    ids=["vfio", "api", "file", "stdout", "oneshot"],
)
def test_what_an_installed_program_would_refuse_or_ignore_is_refused(delivery, flags, message, fine_without):
    config = delivery(PluginConfig(flags=flags))
    assert refusal(config) == message
    checked(config, **fine_without)


@pytest.mark.parametrize(
    "flags",
    [
        Flags(device_discovery_strategy="tegra", use_node_feature_api=True),
        Flags(gfd=GfdFlags(oneshot=False, sleep_interval="infinite")),
    ],
)
def test_the_same_settings_with_other_values_are_fine(flags):
    assert checked(PluginConfig(flags=flags)) == []


@pytest.mark.parametrize("delivery", [lambda config: config, named, managed])
@pytest.mark.parametrize(
    ("config", "what", "first"),
    [
        (
            PluginConfig(flags=Flags(plugin=PluginFlags(shared_devices_allocation_policy="packed"))),
            "flags.plugin.shared_devices_allocation_policy",
            "0.20.0",
        ),
        (
            PluginConfig(flags=Flags(gfd=GfdFlags(sleep_interval="infinite"))),
            "flags.gfd.sleep_interval 'infinite'",
            "0.19.0",
        ),
        (
            PluginConfig(sharing=Sharing.mps(replicas=2, fail_requests_greater_than_one=False)),
            "sharing.mps.fail_requests_greater_than_one=False",
            "0.20.0",
        ),
    ],
)
def test_what_came_with_a_later_release_is_refused_in_any_of_the_files(delivery, config, what, first):
    message = (
        f"{what} needs release {first} of the device plugin, which {{}} would ignore or refuse; leave it out or move up"
    )
    assert refusal(delivery(config), version="0.18.2") == message.format("0.18.2")
    assert refusal(delivery(config), version=Unverified("0.18.1", like="0.18.2")) == message.format("0.18.1")
    checked(delivery(config), version="0.20.0")


def test_flags_beside_an_external_config_map_are_held_against_the_release_too():
    flags = Flags(gfd=GfdFlags(sleep_interval="infinite"))
    assert refusal(Configs.external("theirs", flags=flags), version="0.18.2").startswith("flags.gfd.sleep_interval")


def test_what_every_release_knows_is_fine_on_the_oldest():
    flags = Flags(mig_strategy="mixed", gfd=GfdFlags(sleep_interval=timedelta(seconds=30)))
    assert checked(PluginConfig(flags=flags), version="0.18.2") == []
    assert checked(MPS, version="0.18.2") == []


def test_the_root_of_mps_is_said_in_one_place_or_alike():
    config = PluginConfig(flags=Flags(mps_root="/var/mps"), sharing=MPS.sharing)
    assert refusal(config, mps_root="/srv/mps") == (
        "mps_control_daemon.root must be flags.mps_root of the configuration, '/var/mps'; got '/srv/mps'; say it in "
        "one place"
    )
    assert checked(config, mps_root="/var/mps") == checked(config) == checked(MPS, mps_root="/srv/mps") == []


# --- warned of ------------------------------------------------------------------------------------------------


def test_nothing_is_said_of_what_works():
    for config in (PLAIN, MPS, named(MPS)):
        assert checked(config, platform=Talos("1.13")) == checked(config) == []


def test_config_manager_is_racy():
    assert checked(managed(PLAIN)) == checked(Configs.external("theirs")) == [RACY]
    assert checked(managed(PLAIN), has_plugin=False) == [RACY]


def test_mps_is_doubtful_on_the_release_of_talos_that_it_was_reported_on():
    doubtful = (
        "plugin: MPS is reported not to start on Talos 1.12.3 (NVIDIA/k8s-device-plugin#1614); try it on one node, or "
        "use Sharing.time_slicing"
    )
    for config in (MPS, named(MPS)):
        assert checked(config, platform=Talos("1.12.3")) == [doubtful]
        assert checked(config, platform=Talos("1.11")) == checked(config, platform=Talos("1.13")) == []
        assert checked(config, platform=Talos("1.12.3"), has_plugin=False) == []
    external = Configs.external("theirs", may_use=["mps"])
    assert checked(external, platform=Talos("1.12.3")) == [RACY, doubtful]


BOTH = ("envvar", "volume-mounts")


@pytest.mark.parametrize(
    ("config", "strategies"),
    [
        (PluginConfig(flags=Flags(plugin=PluginFlags(device_list_strategy=BOTH))), ()),
        (named(PluginConfig(flags=Flags(plugin=PluginFlags(device_list_strategy=BOTH[::-1])))), ()),
        (PLAIN, BOTH),
        (PLAIN, (*BOTH, "cdi-cri")),
    ],
    ids=["file", "one of several files", "keyword", "keyword with more"],
)
def test_two_strategies_of_which_one_overwrites_the_other_are_warned_of(config, strategies):
    assert checked(config, strategies=strategies) == [OVERWRITTEN]
    assert checked(config, strategies=strategies, has_plugin=False) == []


def test_one_of_the_two_strategies_or_a_file_that_decides_otherwise_is_fine():
    assert checked(PLAIN, strategies=("volume-mounts", "cdi-cri")) == checked(PLAIN, strategies=("envvar",)) == []
    decided = PluginConfig(flags=Flags(plugin=PluginFlags(device_list_strategy="envvar")))
    assert checked(decided, strategies=BOTH) == []


@pytest.mark.parametrize("version", ["0.19.0", "0.19.1", "0.19.2"])
def test_releases_that_hand_out_rdma_devices_unasked_are_warned_of_until_told_about_each(version):
    release = Unverified(version, like="0.20.0")
    warned = (
        f"plugin: release {version} of the device plugin hands GDS, GDRCopy and MOFED devices to every container "
        "unless told not to (NVIDIA/k8s-device-plugin#1692); state flags.gds_enabled, flags.gdrcopy_enabled and "
        "flags.mofed_enabled, or use another release"
    )
    told = {"gds_enabled": False, "gdrcopy_enabled": True, "mofed_enabled": False}
    assert checked(PLAIN, version=release) == [warned]
    assert checked(PluginConfig(flags=Flags(**told)), version=release) == []
    for flag in told:
        forgotten = PluginConfig(flags=Flags(**{**told, flag: None}))
        assert checked(forgotten, version=release) == [warned]
        assert checked(named(PluginConfig(flags=Flags(**told))), version=release) == [warned]
    assert checked(Configs.external("theirs", flags=Flags(**told)), version=release) == [RACY]
    assert checked(PLAIN, version=release, has_plugin=False) == []


@pytest.mark.parametrize("version", ["0.18.2", "0.19.3", "0.20.0", Unverified("0.20.1", like="0.20.0")], ids=str)
def test_releases_before_and_after_hand_out_what_they_are_told(version):
    assert checked(PLAIN, version=version) == []


# --- names ----------------------------------------------------------------------------------------------------


def named_object(name, kind="DaemonSet", namespace="gpu"):
    return {"kind": kind, "metadata": {"name": name, "namespace": namespace}}


@pytest.mark.parametrize("kind", ["DaemonSet", "Deployment"])
def test_a_workload_has_a_name_that_labels_of_its_pods_can_hold(kind):
    check_names([named_object("a" * 63, kind)])
    with pytest.raises(GpuConstructsError) as refused:
        check_names([named_object("fine"), named_object("a" * 64, kind)])
    assert str(refused.value) == (
        f"name must be shorter: {kind} '{'a' * 64}' would have 64 characters of at most 63; shorten name= or the names "
        "of the configurations"
    )


def test_other_objects_may_have_longer_names():
    check_names([named_object("a" * 64, "ConfigMap")])


def test_two_objects_of_one_name_are_refused_and_only_if_nothing_tells_them_apart():
    same = named_object("plugin-gpu-feature-discovery")
    with pytest.raises(GpuConstructsError) as refused:
        check_names([same, named_object("plugin"), dict(same)])
    assert str(refused.value) == (
        "configs must have names that no program has: DaemonSet 'plugin-gpu-feature-discovery' would be made twice; "
        "call the configuration something else"
    )
    check_names([named_object("a"), named_object("a", "ConfigMap"), named_object("a", namespace="other")])


# --- what can be seen -----------------------------------------------------------------------------------------


def test_of_an_external_config_map_only_the_flags_are_seen():
    flags = Flags(mig_strategy="mixed")
    assert plugin_configs(Configs.external("theirs", flags=flags)) == [PluginConfig(flags=flags)]
    assert plugin_configs(named(MPS)) == [PLAIN, MPS]
