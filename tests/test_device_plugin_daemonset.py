import dataclasses

import pytest

from gpu_constructs import Kubernetes, Talos
from gpu_constructs.device_plugin.daemonset import device_plugin_daemonset
from test_gpu_agent import AGENT

SELECTOR = {"app.kubernetes.io/name": "nvidia-device-plugin"}
KUBELET = {
    "name": "device-plugins",
    "hostPath": {"path": "/var/lib/kubelet/device-plugins", "type": "Directory"},
}


def pod(strategies=("envvar",), driver_root=None, **changes):
    manifest = device_plugin_daemonset(
        dataclasses.replace(AGENT, **changes),
        name="nvidia-device-plugin",
        selector=SELECTOR,
        device_list_strategy=strategies,
        nvidia_driver_root=driver_root,
    )
    return manifest["spec"]["template"]["spec"]


def container(*args, **changes):
    (only,) = pod(*args, **changes)["containers"]
    return only


def environment(*args, **changes):
    return {variable["name"]: variable["value"] for variable in container(*args, **changes)["env"]}


def host_paths(spec):
    return [volume for volume in spec["volumes"] if "hostPath" in volume]


def test_of_the_host_it_mounts_the_plugin_directory_of_the_kubelet_and_nothing_else():
    assert host_paths(pod()) == [KUBELET]


def test_it_talks_to_no_api_server():
    assert pod()["automountServiceAccountToken"] is False
    assert pod()["serviceAccountName"] is None


def test_the_strategy_is_stated_in_the_environment():
    assert environment()["DEVICE_LIST_STRATEGY"] == "envvar"
    assert environment(("envvar", "cdi-cri"))["DEVICE_LIST_STRATEGY"] == "envvar,cdi-cri"


def test_without_a_strategy_the_default_of_the_plugin_holds():
    assert "DEVICE_LIST_STRATEGY" not in environment(())


def test_the_environment_is_sorted_so_that_a_diff_shows_changes_only():
    names = [variable["name"] for variable in container(("cdi-cri",), "/usr/local", mig_strategy="mixed")["env"]]
    assert names == sorted(names)


@pytest.mark.parametrize("strategy", ["cdi-cri", "cdi-annotations"])
def test_a_cdi_strategy_mounts_the_directory_of_the_specs(strategy):
    spec = pod((strategy,))
    assert {"name": "cdi-root", "hostPath": {"path": "/var/run/cdi", "type": "DirectoryOrCreate"}} in spec["volumes"]
    assert {"name": "cdi-root", "mountPath": "/var/run/cdi"} in spec["containers"][0]["volumeMounts"]


def test_a_driver_root_is_mounted_read_only_and_named():
    spec = pod(("cdi-cri",), "/usr/local")
    assert environment(("cdi-cri",), "/usr/local")["NVIDIA_DRIVER_ROOT"] == "/usr/local"
    mount = {"name": "driver-root", "mountPath": "/driver-root", "readOnly": True}
    assert mount in spec["containers"][0]["volumeMounts"]


def test_the_driver_root_has_no_type_since_the_kubelet_of_talos_would_look_inside_its_own_container():
    (root,) = (volume for volume in pod(("cdi-cri",), "/usr/local")["volumes"] if volume["name"] == "driver-root")
    assert root["hostPath"] == {"path": "/usr/local"}


def test_every_mount_has_its_volume():
    spec = pod(("cdi-cri",), "/")
    mounted = [mount["name"] for mount in spec["containers"][0]["volumeMounts"]]
    assert sorted(mounted) == sorted(volume["name"] for volume in spec["volumes"])


@pytest.mark.parametrize("strategies", [("volume-mounts",), ("envvar", "volume-mounts")])
def test_volume_mounts_needs_sys_admin_and_no_more(strategies):
    security = container(strategies, platform=Kubernetes())["securityContext"]
    assert security["capabilities"] == {"drop": ["ALL"], "add": ["SYS_ADMIN"]}
    assert "privileged" not in security


@pytest.mark.parametrize("strategies", [("envvar",), ("cdi-cri",), ("cdi-annotations",), ()])
def test_any_other_strategy_needs_no_capability(strategies):
    assert container(strategies)["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_volume_mounts_beside_mig_takes_what_mig_takes():
    assert container(("volume-mounts",), mig_strategy="single", platform=Talos("1.12"))["securityContext"] == {
        "privileged": True,
        "readOnlyRootFilesystem": True,
    }
