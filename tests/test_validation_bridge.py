from importlib import resources

import pytest
from cdk8s import Testing

from gpu_constructs import GpuNamespace, Kubernetes, Talos, Toleration, ValidationBridge
from scripted_daemonset import ScriptedDaemonSet, without_script

NAME = "nvidia-validation-bridge"
SCRIPT = "validation-bridge.sh"
TAINT = Toleration(key="dedicated", value="ai", effect="NoSchedule")
VALIDATIONS = "/run/nvidia/validations"

made = ScriptedDaemonSet(ValidationBridge, "bridge")
chart_with, rendered, refusal = made.chart_with, made.rendered, made.refusal
daemonset, pod, container, environment = made.daemonset, made.pod, made.container, made.environment
script = made.script


def test_on_talos_1_12(objects, snapshot):
    assert without_script(objects(chart_with())) == snapshot


def test_on_plain_kubernetes(objects, snapshot):
    assert without_script(objects(chart_with(platform=Kubernetes()))) == snapshot


def test_it_makes_a_config_map_and_a_daemonset_of_one_name_and_no_rights():
    assert [(m["kind"], m["metadata"]["name"], m["metadata"]["namespace"]) for m in rendered()] == [
        ("ConfigMap", NAME, "nvidia-gpu-operator"),
        ("DaemonSet", NAME, "nvidia-gpu-operator"),
    ]


def test_the_daemonset_is_its_main_object(chart):
    bridge = ValidationBridge(chart, "bridge")
    assert (bridge.api_object.kind, bridge.api_object.name) == ("DaemonSet", NAME)


def test_the_script_in_the_config_map_is_the_file_that_is_shipped():
    shipped = resources.files("gpu_constructs.operator") / "validation_bridge.sh"
    assert script() == shipped.read_text(encoding="utf-8")


def test_the_script_says_what_runs_it():
    assert script().startswith("#!/bin/sh\n")


def test_the_pod_runs_the_script_from_a_mount_nobody_can_write():
    assert container()["command"] == ["/bin/sh", f"/script/{SCRIPT}"]
    assert {"name": "script", "mountPath": "/script", "readOnly": True} in container()["volumeMounts"]
    assert {"name": "script", "configMap": {"name": NAME, "defaultMode": 0o555}} in pod()["volumes"]


@pytest.mark.parametrize("platform", [Talos("1.10"), Kubernetes()], ids=str)
def test_only_one_path_of_the_host_is_mounted(platform):
    paths = [volume["hostPath"] for volume in pod(platform=platform)["volumes"] if "hostPath" in volume]
    assert paths == [{"path": VALIDATIONS, "type": "DirectoryOrCreate"}]


def test_it_is_root_and_holds_nothing_else():
    assert pod()["securityContext"] == {
        "runAsUser": 0,
        "runAsGroup": 0,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert container()["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    assert pod()["automountServiceAccountToken"] is False
    assert "serviceAccountName" not in pod()
    assert pod().keys().isdisjoint({"hostNetwork", "hostPID", "hostIPC"})


def test_its_memory_limit_has_room_for_what_the_runtime_starts_for_each_probe():
    assert container()["resources"] == {"requests": {"cpu": "1m", "memory": "8Mi"}, "limits": {"memory": "64Mi"}}


def test_it_does_not_run_under_the_runtime_it_checks():
    assert "runtimeClassName" not in pod()


def test_on_talos_it_runs_where_a_driver_extension_is_before_any_operator_labelled_the_node():
    required = pod()["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert [term["matchExpressions"] for term in required["nodeSelectorTerms"]] == [
        [{"key": f"extensions.talos.dev/{extension}", "operator": "Exists"}]
        for extension in (
            "nvidia-open-gpu-kernel-modules-production",
            "nvidia-open-gpu-kernel-modules-lts",
            "nonfree-kmod-nvidia-production",
            "nonfree-kmod-nvidia-lts",
        )
    ]


def test_elsewhere_it_runs_where_a_gpu_is():
    required = pod(platform=Kubernetes())["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (term,) = required["nodeSelectorTerms"]
    assert term["matchExpressions"] == [{"key": "nvidia.com/gpu.present", "operator": "Exists"}]


def test_the_environment_is_the_contract_of_the_script():
    assert environment() == {
        "INTERVAL_SECONDS": "10",
        "RETRACT_ON_EXIT": "true",
        "STATE_DIR": "/tmp",
        "VALIDATIONS_DIR": VALIDATIONS,
    }


def test_every_variable_is_one_the_script_reads():
    names = environment(expected_driver_version="570.211.01").keys()
    assert [name for name in names if f': "${{{name}:=' not in script()] == []


def test_every_keyword_arrives_in_the_environment():
    given = environment(expected_driver_version="570.211.01", interval_seconds=30, retract_on_exit=False)
    assert given["EXPECTED_DRIVER_VERSION"] == "570.211.01"
    assert given["INTERVAL_SECONDS"] == "30"
    assert given["RETRACT_ON_EXIT"] == "false"


def test_it_is_ready_when_the_markers_are_in_place():
    assert container()["readinessProbe"]["exec"] == {"command": ["test", "-f", "/tmp/ready"]}


def test_it_is_alive_as_long_as_the_loop_touches_its_file():
    assert container()["livenessProbe"]["exec"] == {"command": ["rm", "/tmp/alive"]}


@pytest.mark.parametrize(("interval", "period"), [(1, 30), (10, 30), (60, 180)])
def test_the_loop_has_three_turns_to_show_life(interval, period):
    assert container(interval_seconds=interval)["livenessProbe"]["periodSeconds"] == period


def test_its_state_lies_in_memory():
    assert {"name": "state", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}} in pod()["volumes"]


def test_every_mount_has_its_volume():
    mounted = sorted(mount["name"] for mount in container()["volumeMounts"])
    assert mounted == sorted(volume["name"] for volume in pod()["volumes"])


def test_its_selector_matches_its_pods():
    spec = daemonset()["spec"]
    assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()


def test_placement_image_and_resources_can_be_replaced():
    given = {
        "tolerations": [TAINT],
        "node_selector": {"pool": "gpu"},
        "image": "registry.example/busybox:1",
        "resources": {"limits": {"memory": "32Mi"}},
    }
    spec = pod(**given)
    assert spec["tolerations"] == [
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        TAINT.to_manifest(),
    ]
    assert spec["nodeSelector"] == {"pool": "gpu"}
    assert spec["containers"][0]["image"] == "registry.example/busybox:1"
    assert spec["containers"][0]["resources"] == {"limits": {"memory": "32Mi"}}


def test_it_lives_in_the_namespace_it_is_given(chart):
    namespace = GpuNamespace(chart, "namespace", name="operator")
    ValidationBridge(chart, "bridge", namespace=namespace)
    assert [m["kind"] for m in Testing.synth(chart)] == ["Namespace", "ConfigMap", "DaemonSet"]
    assert {m["metadata"].get("namespace") for m in Testing.synth(chart)} == {None, "operator"}


@pytest.mark.parametrize("release", ["1.10", "1.11", "1.12"])
def test_talos_needs_it_until_1_12(release):
    assert len(rendered(platform=Talos(release))) == 2


@pytest.mark.parametrize("release", ["1.13", "1.14"])
def test_later_talos_needs_none(release):
    assert refusal(platform=Talos(release)) == (
        f"gpu/bridge: platform Talos {release} needs no ValidationBridge: from Talos 1.13 on the operator's own "
        "validator passes with driver.enabled=false, toolkit.enabled=false and hostPaths.driverInstallDir=/usr/local; "
        "leave the bridge out"
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"strategy": "stage"}, "strategy must be one of 'markers'; got 'stage'"),
        ({"strategy": 5}, "strategy must be one of 'markers'; got 5"),
        ({"interval_seconds": 0}, "interval_seconds must be at least 1, got 0"),
        ({"interval_seconds": True}, "interval_seconds must be an int, got True (bool)"),
        ({"interval_seconds": "10"}, "interval_seconds must be an int, got '10' (str)"),
        ({"retract_on_exit": "no"}, "retract_on_exit must be bool; got str: 'no'"),
        (
            {"image": "busybox"},
            "image must be pinned as 'repository:tag' or 'repository@sha256:...', never 'latest'; got 'busybox'",
        ),
        (
            {"namespace": "default"},
            "namespace must not be 'default': GPU components need a namespace whose Pod Security level is "
            "privileged; leave it out for 'nvidia-gpu-operator' or name one of your own",
        ),
        ({"marker": "x"}, "marker is no keyword of ValidationBridge"),
    ],
    ids=str,
)
def test_bad_input_gets_one_error(given, message):
    assert refusal(**given) == f"gpu/bridge: {message}"
