from typing import Any

import pytest
from cdk8s import Testing

from gpu_constructs import GpuNamespace, Kubernetes, Talos, Toleration, ValidationBridge
from gpu_constructs.operator.bridge import script as script_of
from scripted_daemonset import ScriptedDaemonSet, without_script
from tables import beside

NAME = "nvidia-validation-bridge"
TAINT = Toleration(key="dedicated", value="ai", effect="NoSchedule")

made = ScriptedDaemonSet(ValidationBridge, "bridge")
chart_with, rendered, refusal = made.chart_with, made.rendered, made.refusal
daemonset, pod, container, environment = made.daemonset, made.pod, made.container, made.environment
STAGE = "/var/lib/gpu-constructs/driver"
LIBRARIES, PROGRAMS = "/usr/local/glibc/usr/lib", "/usr/local/bin"
ELSEWHERE = beside(__file__, "validation_bridge")["elsewhere"]


def host_paths(**given: Any) -> list[dict[str, Any]]:
    return [volume["hostPath"] for volume in pod(**given)["volumes"] if "hostPath" in volume]


def test_on_talos_1_12(objects, snapshot):
    assert without_script(objects(chart_with())) == snapshot


def test_on_plain_kubernetes(objects, snapshot):
    assert without_script(objects(chart_with(platform=Kubernetes()))) == snapshot


def test_staging_on_talos_1_12(objects, snapshot):
    assert without_script(objects(chart_with(strategy="stage"))) == snapshot


def test_all_options(objects, snapshot, keywords):
    chart = chart_with(**keywords)
    assert without_script(objects(chart)) == snapshot


@pytest.mark.parametrize("strategy", ["markers", "stage"])
def test_the_script_reads_every_variable_and_runs_from_its_config_map(strategy):
    config_map, _ = rendered(strategy=strategy)
    (text,) = config_map["data"].values()
    assert text == script_of(strategy)
    assert [line for line in text.splitlines() if line.startswith("#!")] == ["#!/bin/sh"]
    names = environment(
        strategy=strategy,
        expected_driver_version="570.211.01",
        required_modules=["nvidia"],
        required_devices=["nvidia0"],
    )
    assert [name for name in names if f': "${{{name}:=' not in text] == []


def test_markers_mount_one_host_path_and_staging_none_on_the_path_of_the_shell():
    assert host_paths() == [{"path": "/run/nvidia/validations", "type": "DirectoryOrCreate"}]
    mounts = {mount["name"]: mount for mount in container(strategy="stage")["volumeMounts"]}
    writable = [name for name, mount in mounts.items() if name != "state" and not mount.get("readOnly")]
    assert writable == ["stage"]
    on_path = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}
    assert on_path.isdisjoint(mount["mountPath"] for mount in mounts.values())


def test_the_directories_of_staging_can_be_replaced():
    given = {"strategy": "stage", "stage_dir": "/var/nvidia-driver", "source_lib_dir": "/var/lib/nvidia/lib"}
    found = environment(**given)
    assert (found["STAGE_DIR"], found["SOURCE_LIB_DIR"]) == ("/var/nvidia-driver", "/host/var/lib/nvidia/lib")
    assert found["SOURCE_BIN_DIR"] == f"/host{PROGRAMS}"
    assert {"path": "/var/nvidia-driver", "type": "DirectoryOrCreate"} in host_paths(**given)


def test_on_plain_kubernetes_the_user_sets_the_folders_of_the_driver():
    assert [path["path"] for path in host_paths(**ELSEWHERE)] == ["/opt/driver/lib64", "/opt/driver/bin", STAGE]
    assert environment(**ELSEWHERE)["SOURCE_LIB_DIR"] == "/host/opt/driver/lib64"
    assert environment(**ELSEWHERE)["SOURCE_BIN_DIR"] == "/host/opt/driver/bin"
    given = {**ELSEWHERE, "source_bin_dir": ELSEWHERE["source_lib_dir"]}
    assert [path["path"] for path in host_paths(**given)] == ["/opt/driver/lib64", STAGE]


@pytest.mark.parametrize("strategy", ["markers", "stage"])
def test_the_devices_of_the_node_are_mounted_if_one_is_necessary(strategy):
    given = {"strategy": strategy, "required_devices": ["nvidiactl", "/dev/nvidia-caps/nvidia-cap1"]}
    assert {"path": "/dev"} in host_paths(**given)
    assert {"name": "dev", "mountPath": "/host/dev", "readOnly": True} in container(**given)["volumeMounts"]
    assert environment(**given)["REQUIRED_DEVICES"] == "nvidiactl nvidia-caps/nvidia-cap1"
    assert environment(**given)["DEV_ROOT"] == "/host/dev"


def test_attributes_give_strategy_namespace_and_driver_path(chart):
    markers = ValidationBridge(chart, "markers")
    stage = ValidationBridge(chart, "stage", strategy="stage", namespace="operator")
    assert (markers.api_object.kind, markers.api_object.name) == ("DaemonSet", NAME)
    assert (markers.strategy, markers.namespace, markers.driver_install_dir) == ("markers", "nvidia-gpu-operator", None)
    assert (stage.strategy, stage.namespace, stage.driver_install_dir) == ("stage", "operator", STAGE)


def test_the_liveness_probe_allows_three_turns():
    for interval, period in ((1, 30), (10, 30), (60, 180)):
        assert container(interval_seconds=interval)["livenessProbe"]["periodSeconds"] == period


def test_objects_are_in_the_given_namespace(chart):
    namespace = GpuNamespace(chart, "namespace", name="operator")
    ValidationBridge(chart, "bridge", namespace=namespace)
    assert {m["metadata"].get("namespace") for m in Testing.synth(chart)} == {None, "operator"}
    for level in ("baseline", "restricted"):
        other = GpuNamespace(chart, level, name="operator", pod_security=level)
        assert refusal(namespace=other) == (
            "gpu/bridge: namespace must be privileged, because the bridge mounts a host path, got GpuNamespace "
            f"'operator' with pod_security={level!r}. Set pod_security='privileged' for it"
        )


@pytest.mark.parametrize("strategy", ["markers", "stage"])
def test_talos_needs_the_bridge_up_to_1_12(strategy):
    for release in ("1.10", "1.11", "1.12"):
        assert len(rendered(platform=Talos(release), strategy=strategy)) == 2
    for release in ("1.13", "1.14"):
        refused = refusal(platform=Talos(release), strategy=strategy)
        assert refused.startswith(f"gpu/bridge: platform Talos {release} does not support the GPU Operator with a ")
        assert "hostPaths.driverInstallDir=/usr/local" in refused
        assert "Leave the bridge out" in refused


def test_bad_input_raises_one_error(refused):
    refused(chart_with, at="gpu/bridge: ")
