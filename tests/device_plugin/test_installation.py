"""What several options of the chart together get wrong, or what works badly."""

import warnings
from datetime import timedelta

import pytest
from cdk8s import App

from gpu_constructs import (
    Configs,
    DevicePluginChart,
    Flags,
    GfdFlags,
    GpuConstructsError,
    GpuConstructsWarning,
    Kubernetes,
    MpsControlDaemon,
    PluginConfig,
    PluginFlags,
    Sharing,
    Talos,
    Unverified,
)

PLAIN = PluginConfig()
MPS = PluginConfig(sharing=Sharing.mps(replicas=4))
RACY = "plugin: config-manager takes the default configuration first and corrects it by a signal afterwards, so a node "
OVERWRITTEN = "plugin: device_list_strategy 'volume-mounts' overwrites what 'envvar' says; leave one of them out"
PLUGIN_ALONE, GFD_ALONE = {"gpu_feature_discovery": False}, {"device_plugin": False}


def warned(config, **given):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        options = {"platform": Kubernetes(), "node_feature_discovery": "external", **given}
        DevicePluginChart(App(), "plugin", config=config, **options)
    assert {warning.category for warning in caught} <= {GpuConstructsWarning}
    return [RACY if str(warning.message).startswith(RACY) else str(warning.message) for warning in caught]


def refusal(config, **given):
    with pytest.raises(GpuConstructsError) as refused:
        warned(config, **given)
    return refused.value.problem


def named(config):
    return Configs.named({"plain": PLAIN, "other": config}, default="plain")


def managed(config):
    return Configs.managed({"plain": PLAIN, "other": config}, default="plain")


def external(config):
    return Configs.external("theirs", flags=config.flags)


def test_what_an_installed_program_would_refuse_or_ignore_is_refused():
    for flags, message, fine_without in (
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
            Flags(gfd=GfdFlags(oneshot=True)),
            "flags.gfd.oneshot must not be True: a DaemonSet restarts a program that ends, forever; use "
            "sleep_interval='infinite' (from release 0.19.0) or leave it out",
            PLUGIN_ALONE,
        ),
    ):
        config = PluginConfig(flags=flags)
        for given in (config, named(config), managed(config), external(config)):
            assert refusal(given) == message
        assert warned(config, **fine_without) == []
    fine = Flags(device_discovery_strategy="tegra", use_node_feature_api=True, gfd=GfdFlags(oneshot=False))
    assert warned(PluginConfig(flags=fine)) == []


def test_what_came_with_a_later_release_is_refused_in_any_of_the_files():
    for config, what, first in (
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
    ):
        for given in (config, named(config), managed(config), *([] if config.sharing.replicas else [external(config)])):
            for version in ("0.18.2", Unverified("0.18.1", like="0.18.2")):
                release = getattr(version, "version", version)
                assert refusal(given, version=version) == (
                    f"{what} needs release {first} of the device plugin, which {release} would ignore or refuse; leave "
                    "it out or move up"
                )
        assert warned(config) == []
    flags = Flags(mig_strategy="mixed", gfd=GfdFlags(sleep_interval=timedelta(seconds=30)))
    assert warned(PluginConfig(flags=flags), version="0.18.2") == warned(MPS, version="0.18.2") == []


def test_the_root_of_mps_is_said_in_one_place_or_alike():
    config = PluginConfig(flags=Flags(mps_root="/var/mps"), sharing=MPS.sharing)
    assert refusal(config, mps_control_daemon=MpsControlDaemon(root="/srv/mps")) == (
        "mps_control_daemon.root must be flags.mps_root of the configuration, '/var/mps'; got '/srv/mps'; say it in "
        "one place"
    )
    assert warned(config, mps_control_daemon=MpsControlDaemon(root="/var/mps")) == warned(config) == []


# --- warned of ------------------------------------------------------------------------------------------------


def test_config_manager_is_racy():
    assert warned(managed(PLAIN)) == warned(Configs.external("theirs")) == [RACY]
    assert warned(managed(PLAIN), **GFD_ALONE) == [RACY]


def test_mps_is_doubtful_on_the_release_of_talos_that_it_was_reported_on():
    doubtful = (
        "plugin: MPS is reported not to start on Talos 1.12.3 (NVIDIA/k8s-device-plugin#1614); try it on one node, or "
        "use Sharing.time_slicing"
    )
    for config in (MPS, named(MPS)):
        assert warned(config, platform=Talos("1.12.3")) == [doubtful]
        assert warned(config, platform=Talos("1.11")) == warned(config, platform=Talos("1.13")) == warned(config) == []
        assert warned(config, platform=Talos("1.12.3"), **GFD_ALONE) == []
    assert warned(Configs.external("theirs", may_use=["mps"]), platform=Talos("1.12.3")) == [RACY, doubtful]


def test_two_strategies_of_which_one_overwrites_the_other_are_warned_of():
    both = PluginConfig(flags=Flags(plugin=PluginFlags(device_list_strategy=("envvar", "volume-mounts"))))
    assert warned(both) == warned(named(both)) == [OVERWRITTEN]
    assert warned(None, device_list_strategy=["volume-mounts", "envvar", "cdi-cri"]) == [OVERWRITTEN]
    assert warned(both, **GFD_ALONE) == []
    for fine in (["volume-mounts", "cdi-cri"], "envvar"):
        assert warned(None, device_list_strategy=fine) == []


@pytest.mark.parametrize("version", ["0.19.0", "0.19.2"])
def test_releases_that_hand_out_rdma_devices_unasked_are_warned_of_until_told_about_each(version):
    release = {"version": Unverified(version, like="0.20.0")}
    says = (
        f"plugin: release {version} of the device plugin hands GDS, GDRCopy and MOFED devices to every container "
        "unless told not to (NVIDIA/k8s-device-plugin#1692); state flags.gds_enabled, flags.gdrcopy_enabled and "
        "flags.mofed_enabled, or use another release"
    )
    told = {"gds_enabled": False, "gdrcopy_enabled": True, "mofed_enabled": False}
    assert warned(PLAIN, **release) == [says]
    assert warned(PluginConfig(flags=Flags(**told)), **release) == warned(PLAIN, **release, **GFD_ALONE) == []
    for flag in told:
        assert warned(PluginConfig(flags=Flags(**{**told, flag: None})), **release) == [says]
    assert warned(named(PluginConfig(flags=Flags(**told))), **release) == [says]
    assert warned(Configs.external("theirs", flags=Flags(**told)), **release) == [RACY]
    for other in ("0.18.2", "0.19.3", "0.20.0", Unverified("0.20.1", like="0.20.0")):
        assert warned(PLAIN, version=other) == []
