"""Options of the chart that contradict each other or work badly."""

import warnings
from datetime import timedelta
from functools import partial

import pytest
from cdk8s import App

import refusals
from gpu_constructs import (
    Configs,
    DevicePlugin,
    DevicePluginChart,
    Flags,
    GfdFlags,
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
RACY = "plugin: config-manager first selects the default configuration and later makes the plugin load the right one. "
OVERWRITTEN = "plugin: device_list_strategy 'volume-mounts' overrides 'envvar'. Remove one of them"
PLUGIN_ALONE, GFD_ALONE = {"gpu_feature_discovery": False}, {"device_plugin": False}


def warned(config, **given):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        options = {"platform": Kubernetes(), "node_feature_discovery": "external", **given}
        DevicePluginChart(App(), "plugin", config=config, **options)
    assert {warning.category for warning in caught} <= {GpuConstructsWarning}
    return [RACY if str(warning.message).startswith(RACY) else str(warning.message) for warning in caught]


refusal = partial(refusals.problem, warned)


def named(config):
    return Configs.named({"plain": PLAIN, "other": config}, default="plain")


def managed(config):
    return Configs.managed({"plain": PLAIN, "other": config}, default="plain")


def external(config):
    return Configs.external("theirs", flags=config.flags)


def test_settings_that_an_installed_program_would_reject_or_ignore_are_rejected(rows):
    for flags, message, fine_without in rows:
        config = PluginConfig(flags=flags)
        for given in (config, named(config), managed(config), external(config)):
            assert refusal(given) == message
        assert warned(config, **fine_without) == []
    fine = Flags(device_discovery_strategy="tegra", use_node_feature_api=True, gfd=GfdFlags(oneshot=False))
    assert warned(PluginConfig(flags=fine)) == []


def test_settings_of_a_later_release_are_rejected_in_all_files(rows):
    for config, what, first in rows:
        for given in (config, named(config), managed(config), *([] if config.sharing.replicas else [external(config)])):
            for version in ("0.18.2", Unverified("0.18.9", like="0.18.2")):
                release = getattr(version, "version", version)
                assert refusal(given, version=version) == (
                    f"{what} needs release {first} of the device plugin: release {release} ignores or rejects it. "
                    "Remove it, or use a later release"
                )
        assert warned(config) == []
    flags = Flags(mig_strategy="mixed", gfd=GfdFlags(sleep_interval=timedelta(seconds=30)))
    assert warned(PluginConfig(flags=flags), version="0.18.2") == warned(MPS, version="0.18.2") == []


def test_settings_of_release_0_18_0_are_rejected_before_it():
    flags = PluginConfig(flags=Flags(gdrcopy_enabled=False))
    assert refusal(flags, version="0.17.4") == (
        "flags.gdrcopy_enabled needs release 0.18.0 of the device plugin: release 0.17.4 ignores or rejects it. Remove "
        "it, or use a later release"
    )
    watched = DevicePlugin(dp_enable_healthchecks=[31])
    assert refusal(PLAIN, version="0.17.4", device_plugin=watched) == (
        "device_plugin.dp_enable_healthchecks needs release 0.18.0 of the device plugin: release 0.17.4 ignores or "
        "rejects it. Remove it, or use a later release"
    )
    assert warned(flags, version="0.18.0") == warned(PLAIN, version="0.18.0", device_plugin=watched) == []
    flagged = DevicePlugin(cdi_feature_flags=["enable-coherent-annotations"])
    for version in ("0.17.4", "0.18.1"):
        skips = f"release {version} of the device plugin ignores the unknown flag 'enable-coherent-annotations'"
        assert warned(PLAIN, version=version, device_plugin=flagged) == [f"device_plugin.cdi_feature_flags: {skips}"]


def test_two_different_roots_of_mps_are_rejected():
    config = PluginConfig(flags=Flags(mps_root="/var/mps"), sharing=MPS.sharing)
    assert refusal(config, mps_control_daemon=MpsControlDaemon(root="/srv/mps")) == (
        "mps_control_daemon.root must equal flags.mps_root of the configuration ('/var/mps'), got '/srv/mps'. Set only "
        "one of these options"
    )
    assert warned(config, mps_control_daemon=MpsControlDaemon(root="/var/mps")) == warned(config) == []


# --- warned of ------------------------------------------------------------------------------------------------


def test_config_manager_warns_of_its_race():
    assert warned(managed(PLAIN)) == warned(Configs.external("theirs")) == [RACY]
    assert warned(managed(PLAIN), **GFD_ALONE) == [RACY]


def test_config_manager_of_old_releases_warns_that_each_node_needs_a_label():
    needs = (
        "plugin: config-manager of release 0.18.1 can wait forever on a node that has no label "
        "nvidia.com/device-plugin.config. Label each GPU node, or use release 0.18.2 or later"
    )
    assert warned(managed(PLAIN), version="0.18.1") == [RACY, needs]
    assert warned(managed(PLAIN), version="0.18.2") == [RACY]
    assert warned(named(PLAIN), version="0.18.1") == []


def test_mps_warns_on_the_talos_releases_with_reported_failures():
    doubtful = (
        "plugin: users report that MPS does not start on Talos 1.12.3 (NVIDIA/k8s-device-plugin#1614). Try it on one "
        "node, or use Sharing.time_slicing"
    )
    for config in (MPS, named(MPS)):
        assert warned(config, platform=Talos("1.12.3")) == [doubtful]
        assert warned(config, platform=Talos("1.11")) == warned(config, platform=Talos("1.13")) == warned(config) == []
        assert warned(config, platform=Talos("1.12.3"), **GFD_ALONE) == []
    assert warned(Configs.external("theirs", may_use=["mps"]), platform=Talos("1.12.3")) == [RACY, doubtful]


def test_a_strategy_that_overrides_another_one_warns():
    both = PluginConfig(flags=Flags(plugin=PluginFlags(device_list_strategy=("envvar", "volume-mounts"))))
    assert warned(both) == warned(named(both)) == [OVERWRITTEN]
    assert warned(None, device_list_strategy=["volume-mounts", "envvar", "cdi-cri"]) == [OVERWRITTEN]
    assert warned(both, **GFD_ALONE) == []
    for fine in (["volume-mounts", "cdi-cri"], "envvar"):
        assert warned(None, device_list_strategy=fine) == []


@pytest.mark.parametrize("version", ["0.19.0", "0.19.1", "0.19.2"])
def test_releases_that_pass_rdma_devices_by_default_warn_until_each_flag_is_set(version):
    release = {"version": version}
    says = (
        f"plugin: release {version} of the device plugin passes GDS, GDRCopy and MOFED devices to every container "
        "by default (NVIDIA/k8s-device-plugin#1692). Set flags.gds_enabled, flags.gdrcopy_enabled and "
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
