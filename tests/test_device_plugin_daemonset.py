import dataclasses

import pytest

from gpu_constructs import (
    Configs,
    DevicePlugin,
    Flags,
    GpuConstructsError,
    GpuConstructsWarning,
    Imex,
    Kubernetes,
    PluginConfig,
    PluginFlags,
    Sharing,
    Talos,
    Unverified,
    versions,
)
from gpu_constructs.device_plugin.daemonset import device_plugin_daemonset, mps_volumes
from test_delivery import EVERY_FLAG, only
from test_gpu_agent import AGENT, PRIVILEGED, WITH_SYS_ADMIN

KUBELET = {"name": "device-plugins", "hostPath": {"path": "/var/lib/kubelet/device-plugins", "type": "Directory"}}
CDI_ROOT = {"name": "cdi-root", "hostPath": {"path": "/var/run/cdi", "type": "DirectoryOrCreate"}}
MPS_ROOT = {"name": "mps-root", "hostPath": {"path": "/run/nvidia/mps", "type": "DirectoryOrCreate"}}
MPS_SHM = {"name": "mps-shm", "hostPath": {"path": "/run/nvidia/mps/shm"}}
PLAIN = PluginConfig()
MPS = PluginConfig(sharing=Sharing.mps(replicas=4))
MIG = PluginConfig(flags=Flags(mig_strategy="mixed"))


CDI_FLAGS = ", ".join(map(repr, versions.DEVICE_PLUGIN["0.20.0"].cdi_feature_flags))
HOOKS = (
    "'all', 'chmod', 'create-symlinks', 'disable-device-node-modification', 'enable-cuda-compat', "
    "'update-application-profile', 'update-ldcache'"
)


def strategies(*listed):
    return PluginConfig(flags=Flags(plugin=PluginFlags(device_list_strategy=listed)))


def daemonset(config=PLAIN, component=None, platform=Kubernetes(), service_account=None):  # noqa: B008
    agent = dataclasses.replace(AGENT, platform=platform)
    delivery = only(config, platform=platform)
    return device_plugin_daemonset(
        agent, delivery, component=component or DevicePlugin(), service_account=service_account
    )


def pod(*args, **given):
    return daemonset(*args, **given)["spec"]["template"]["spec"]


def container(*args, **given):
    return pod(*args, **given)["containers"][-1]


def environment(*args, **given):
    return {variable["name"]: variable["value"] for variable in container(*args, **given)["env"]}


def host_paths(spec):
    return [volume for volume in spec["volumes"] if "hostPath" in volume]


def refusal(make):
    with pytest.raises(GpuConstructsError) as refused:
        make()
    return str(refused.value)


# --- what it mounts -------------------------------------------------------------------------------------------


def test_of_the_host_it_mounts_the_plugin_directory_of_the_kubelet_and_nothing_else():
    assert host_paths(pod()) == [KUBELET]
    assert host_paths(pod(MIG)) == host_paths(pod(strategies("envvar", "volume-mounts"))) == [KUBELET]


def test_a_kubelet_that_has_it_elsewhere_is_followed_on_the_node_and_not_in_the_container():
    component = DevicePlugin(kubelet_device_plugins_dir="/var/lib/k0s/kubelet/device-plugins")
    (volume,) = host_paths(pod(component=component))
    assert volume["hostPath"] == {"path": "/var/lib/k0s/kubelet/device-plugins", "type": "Directory"}
    mount = {"name": "device-plugins", "mountPath": "/var/lib/kubelet/device-plugins"}
    assert mount in container(component=component)["volumeMounts"]


@pytest.mark.parametrize("strategy", ["cdi-cri", "cdi-annotations"])
def test_a_cdi_strategy_mounts_the_directory_of_the_specs_and_the_drivers_root(strategy):
    spec = pod(strategies(strategy), platform=Talos("1.13"))
    # The kubelet of Talos would look for a typed path inside its own container.
    assert host_paths(spec) == [KUBELET, CDI_ROOT, {"name": "driver-root", "hostPath": {"path": "/usr/local"}}]
    mounts = spec["containers"][0]["volumeMounts"]
    assert {"name": "cdi-root", "mountPath": "/var/run/cdi"} in mounts
    assert {"name": "driver-root", "mountPath": "/driver-root", "readOnly": True} in mounts


def test_a_driver_root_that_the_file_names_is_mounted_without_cdi_too():
    flags = Flags(nvidia_driver_root="/opt/driver", plugin=PluginFlags(container_driver_root="/there"))
    spec = pod(PluginConfig(flags=flags))
    assert host_paths(spec) == [KUBELET, {"name": "driver-root", "hostPath": {"path": "/opt/driver"}}]
    assert spec["containers"][0]["volumeMounts"][-1] == {
        "name": "driver-root",
        "mountPath": "/there",
        "readOnly": True,
    }


def test_mps_shares_pipes_and_memory_with_its_daemon():
    spec = pod(MPS)
    assert host_paths(spec) == [KUBELET, MPS_ROOT, MPS_SHM]
    assert spec["containers"][0]["volumeMounts"][-2:] == [
        {"name": "mps-root", "mountPath": "/mps"},
        {"name": "mps-shm", "mountPath": "/dev/shm"},
    ]
    assert environment(MPS)["MPS_ROOT"] == "/run/nvidia/mps"


@pytest.mark.parametrize(
    "config",
    [PluginConfig(imex=Imex(channel_ids=[0])), Configs.external("theirs", may_use=["imex"])],
    ids=["one", "external"],
)
def test_imex_channels_are_seen_where_they_are_handed_out(config):
    spec = pod(config)
    path = "/dev/nvidia-caps-imex-channels"
    channels = {"name": "imex-channels", "hostPath": {"path": path, "type": "DirectoryOrCreate"}}
    assert host_paths(spec) == [KUBELET, channels]
    mount = {"name": "imex-channels", "mountPath": path, "readOnly": True}
    assert spec["containers"][-1]["volumeMounts"][-1] == mount
    assert spec["containers"][-1]["securityContext"]["capabilities"] == {"drop": ["ALL"]}


@pytest.mark.parametrize("root", ["/var/mps", "/var/mps/"])
def test_the_memory_of_mps_lies_below_its_root(root):
    assert mps_volumes(root)[1]["hostPath"] == {"path": "/var/mps/shm"}


@pytest.mark.parametrize("path", ["/", "/config", "/config/", "/dev/shm", "/mps", "/var/lib/kubelet/device-plugins"])
def test_a_driver_root_over_something_else_is_refused(path):
    flags = Flags(nvidia_driver_root="/opt", plugin=PluginFlags(container_driver_root=path))
    config = PluginConfig(flags=flags, sharing=Sharing.mps(replicas=2))
    assert refusal(lambda: pod(config)) == (
        "flags.plugin.container_driver_root must be a directory of its own in the plugin's container; got "
        f"{path!r}, where something else is mounted; leave it out"
    )


@pytest.mark.parametrize(
    "config", [PLAIN, MPS, MIG, strategies("cdi-cri"), Configs.external("theirs", flags=EVERY_FLAG, may_use=["mps"])]
)
def test_every_volume_has_one_mount_and_every_mount_its_volume(config):
    spec = pod(config)
    mounted = [mount["name"] for mount in spec["containers"][-1]["volumeMounts"]]
    assert sorted(mounted) == sorted(volume["name"] for volume in spec["volumes"])


# --- what it holds --------------------------------------------------------------------------------------------


def test_it_talks_to_no_api_server():
    assert pod()["automountServiceAccountToken"] is False
    assert pod()["serviceAccountName"] is None


@pytest.mark.parametrize("listed", [("volume-mounts",), ("envvar", "volume-mounts")])
def test_volume_mounts_needs_sys_admin_and_no_more(listed):
    assert container(strategies(*listed))["securityContext"] == WITH_SYS_ADMIN


@pytest.mark.parametrize("strategy", ["envvar", "cdi-cri", "cdi-annotations"])
def test_any_other_strategy_needs_no_capability(strategy):
    assert container(strategies(strategy))["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_handing_out_device_nodes_takes_a_privileged_container():
    config = PluginConfig(flags=Flags(plugin=PluginFlags(pass_device_specs=True)))
    assert container(config)["securityContext"] == PRIVILEGED


def test_mps_takes_no_right_of_the_plugin():
    assert container(MPS)["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    spec = pod(MPS)
    assert (spec["hostPID"], spec["shareProcessNamespace"]) == (None, None)


def test_processes_are_shared_only_with_the_config_manager_that_signals_them():
    assert pod()["shareProcessNamespace"] is None
    assert pod(Configs.managed({"a": PLAIN}, default="a"))["shareProcessNamespace"] is True


# --- what it is told ------------------------------------------------------------------------------------------


def test_flags_beside_an_external_config_map_reach_it_but_those_of_gpu_feature_discovery():
    config = Configs.external("theirs", flags=EVERY_FLAG)
    told = environment(config).keys() - environment(Configs.external("theirs")).keys()
    assert told == {name for name in only(config).env if not name.startswith("GFD_")}


def test_settings_without_a_place_in_the_file_are_variables():
    component = DevicePlugin(
        cdi_feature_flags=["disable-nvsandboxutils", "enable-coherent-annotations"],
        cdi_disable_hooks=["all"],
        dp_disable_healthchecks=[48, 79],
        dp_enable_healthchecks=[13],
    )
    assert component.variables() == {
        "CDI_DISABLE_HOOKS": "all",
        "CDI_FEATURE_FLAGS": "disable-nvsandboxutils,enable-coherent-annotations",
        "DP_DISABLE_HEALTHCHECKS": "48,79",
        "DP_ENABLE_HEALTHCHECKS": "13",
    }
    assert component.variables().items() <= environment(component=component).items()


@pytest.mark.parametrize("name", ["dp_disable_healthchecks", "dp_enable_healthchecks"])
def test_all_xids_have_a_word(name):
    assert DevicePlugin(**{name: "all"}).variables() == {name.upper(): "all"}


def test_what_is_not_said_is_no_variable():
    assert DevicePlugin().variables() == {}
    assert all(environment(MPS).values())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"cdi_feature_flags": "a"}, "cdi_feature_flags must be a list, got 'a' (str)"),
        (
            {"cdi_feature_flags": ["disable-nvsandboxutils", "disable-nvsandbox"]},
            f"cdi_feature_flags[1] must be one of {CDI_FLAGS}; got 'disable-nvsandbox' (did you mean "
            "'disable-nvsandboxutils'?)",
        ),
        ({"cdi_feature_flags": ["a,b"]}, f"cdi_feature_flags[0] must be one of {CDI_FLAGS}; got 'a,b'"),
        ({"cdi_disable_hooks": [""]}, f"cdi_disable_hooks[0] must be one of {HOOKS}; got ''"),
        (
            {"cdi_disable_hooks": ["update-ld-cache"]},
            f"cdi_disable_hooks[0] must be one of {HOOKS}; got 'update-ld-cache' (did you mean 'update-ldcache'?)",
        ),
        ({"cdi_disable_hooks": [5]}, "cdi_disable_hooks[0] must be str; got int: 5"),
        ({"dp_disable_healthchecks": 48}, "dp_disable_healthchecks must be a list of XIDs or 'all'; got 48"),
        ({"dp_enable_healthchecks": "xids"}, "dp_enable_healthchecks must be a list of XIDs or 'all'; got 'xids'"),
        ({"dp_enable_healthchecks": None}, "dp_enable_healthchecks must be a list of XIDs or 'all'; got None"),
        ({"dp_disable_healthchecks": ["48"]}, "dp_disable_healthchecks[0] must be int; got str: '48'"),
        ({"dp_disable_healthchecks": [48, True]}, "dp_disable_healthchecks[1] must be an int, got True (bool)"),
        ({"dp_disable_healthchecks": [0]}, "dp_disable_healthchecks[0] must be at least 1, got 0"),
        (
            {"kubelet_device_plugins_dir": "var/lib"},
            "kubelet_device_plugins_dir must be an absolute path without '..'; got 'var/lib'",
        ),
        (
            {"kubelet_device_plugins_dir": "/var/../lib"},
            "kubelet_device_plugins_dir must be an absolute path without '..'; got '/var/../lib'",
        ),
    ],
    ids=str,
)
def test_a_setting_that_the_plugin_would_ignore_or_misread_is_refused(given, message):
    assert refusal(lambda: DevicePlugin(**given)) == f"device_plugin.{message}"


@pytest.mark.parametrize(
    ("disabled", "enabled"), [("all", [48]), ([48], "all"), ("all", "all"), ([13, 48], [48, 79])], ids=str
)
def test_the_same_xid_is_not_enabled_and_disabled(disabled, enabled):
    given = {"dp_disable_healthchecks": disabled, "dp_enable_healthchecks": enabled}
    assert refusal(lambda: DevicePlugin(**given)) == (
        "device_plugin.dp_disable_healthchecks and dp_enable_healthchecks must not name the same XIDs: all of them "
        f"disabled, the plugin watches none, and else those enabled win; got {disabled!r} and {enabled!r}; leave one "
        "out"
    )


def test_a_feature_flag_that_a_release_skips_is_warned_of():
    component = DevicePlugin(cdi_feature_flags=["disable-nvsandboxutils", "disable-ipc-discoverer"])
    component.check_release(versions.DEVICE_PLUGIN["0.20.0"])
    with pytest.warns(GpuConstructsWarning) as caught:
        component.check_release(versions.DEVICE_PLUGIN["0.18.2"])
    assert [str(warning.message) for warning in caught] == [
        "device_plugin.cdi_feature_flags: release 0.18.2 of the device plugin skips 'disable-ipc-discoverer'"
    ]


def test_a_setting_that_came_with_a_later_release_is_refused_on_earlier_ones():
    old, new = (versions.DEVICE_PLUGIN[version] for version in ("0.18.2", "0.20.0"))
    forced = versions.release_of(versions.DEVICE_PLUGIN, Unverified("0.19.4", like="0.19.3"), "it")
    component = DevicePlugin(cdi_disable_hooks=["all"])
    component.check_release(new)
    DevicePlugin().check_release(old)
    for release, version in ((old, "0.18.2"), (forced, "0.19.4")):
        assert refusal(lambda release=release: component.check_release(release)) == (
            f"device_plugin.cdi_disable_hooks needs release 0.20.0 of the device plugin, which {version} would ignore "
            "or refuse; leave it out or move up"
        )
