import math
import re
from importlib import resources

import pytest
from cdk8s import Testing

from gpu_constructs import GpuNamespace, Kubernetes, NvidiaRuntimeClass, PowerLimit, Toleration
from scripted_daemonset import ScriptedDaemonSet, without_script

NAME = "nvidia-powerlimit"
SCRIPT = "power-limit.sh"
TAINT = Toleration(key="dedicated", value="ai", effect="NoSchedule")

made = ScriptedDaemonSet(PowerLimit, "limit")
chart_with, rendered, refusal = made.chart_with, made.rendered, made.refusal
daemonset, pod, container, environment = made.daemonset, made.pod, made.container, made.environment
script = made.script


def test_on_talos(objects, snapshot):
    assert without_script(objects(chart_with())) == snapshot


def test_on_plain_kubernetes(objects, snapshot):
    assert without_script(objects(chart_with(platform=Kubernetes(), watts=250))) == snapshot


def test_it_makes_a_config_map_and_a_daemonset_of_one_name_and_no_rights():
    assert [(m["kind"], m["metadata"]["name"], m["metadata"]["namespace"]) for m in rendered()] == [
        ("ConfigMap", NAME, "nvidia-gpu-operator"),
        ("DaemonSet", NAME, "nvidia-gpu-operator"),
    ]


def test_its_pods_are_found_by_the_label_that_commands_use():
    manifest = daemonset()
    assert manifest["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/name"] == NAME
    assert manifest["metadata"]["labels"]["app.kubernetes.io/name"] == NAME


def test_its_selector_matches_its_pods():
    spec = daemonset()["spec"]
    assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()


def test_it_says_its_limit_and_gives_its_daemonset(chart):
    limit = PowerLimit(chart, "limit", watts=250)
    assert limit.watts == 250
    assert (limit.api_object.kind, limit.api_object.name) == ("DaemonSet", NAME)


def test_the_script_in_the_config_map_is_the_file_that_is_shipped():
    shipped = resources.files("gpu_constructs.power") / "power_limit.sh"
    assert script() == shipped.read_text(encoding="utf-8")


def test_the_script_says_what_runs_it():
    assert script().startswith("#!/bin/sh\n")


def test_the_pod_runs_the_script_from_a_mount_nobody_can_write():
    assert container()["command"] == ["/bin/sh", f"/script/{SCRIPT}"]
    assert {"name": "script", "mountPath": "/script", "readOnly": True} in container()["volumeMounts"]
    assert {"name": "script", "configMap": {"name": NAME, "defaultMode": 0o555}} in pod()["volumes"]


def test_the_environment_is_the_contract_of_the_script():
    assert environment() == {
        "INTERVAL_SECONDS": "1800",
        "NVIDIA_DISABLE_REQUIRE": "true",
        "NVIDIA_DRIVER_CAPABILITIES": "utility",
        "NVIDIA_VISIBLE_DEVICES": "all",
        "OUT_OF_RANGE": "clamp",
        "PERSISTENCE_MODE": "1",
        "POWER_LIMIT": "300",
        "RESTORE_ON_EXIT": "0",
        "STATE_DIR": "/run/power-limit",
    }


def test_every_variable_of_ours_is_one_the_script_reads():
    ours = [name for name in environment() if not name.startswith("NVIDIA_")]
    assert [name for name in ours if f': "${{{name}:=' not in script()] == []


def test_every_keyword_arrives_in_the_environment():
    given = environment(
        watts=250, interval_seconds=60, out_of_range="refuse", persistence_mode=False, restore_on_exit=True
    )
    assert given["POWER_LIMIT"] == "250"
    assert given["INTERVAL_SECONDS"] == "60"
    assert given["OUT_OF_RANGE"] == "refuse"
    assert given["PERSISTENCE_MODE"] == "0"
    assert given["RESTORE_ON_EXIT"] == "1"


def test_it_holds_sys_admin_and_is_not_privileged():
    assert container()["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"], "add": ["SYS_ADMIN"]},
        "readOnlyRootFilesystem": True,
    }
    assert pod()["securityContext"] == {"runAsUser": 0, "seccompProfile": {"type": "RuntimeDefault"}}
    assert pod()["automountServiceAccountToken"] is False
    assert pod().keys().isdisjoint({"hostNetwork", "hostPID", "hostIPC", "serviceAccountName"})


def test_it_mounts_nothing_of_the_host():
    assert [volume["name"] for volume in pod()["volumes"] if "hostPath" in volume] == []


def test_it_takes_no_gpu_slot():
    assert container()["resources"] == {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "128Mi"}}


def test_it_runs_on_gpu_nodes_under_the_runtime_that_brings_nvidia_smi():
    assert pod()["nodeSelector"] == {"nvidia.com/gpu.present": "true"}
    assert pod()["runtimeClassName"] == "nvidia"


def test_plain_kubernetes_gets_no_runtime_class_unless_one_is_named(chart):
    assert "runtimeClassName" not in pod(platform=Kubernetes())
    assert pod(platform=Kubernetes(), runtime_class="nvidia")["runtimeClassName"] == "nvidia"
    runtime_class = NvidiaRuntimeClass(chart, "runtime-class", name="gpu-runtime")
    assert pod(runtime_class=runtime_class)["runtimeClassName"] == "gpu-runtime"


def test_it_is_ready_when_every_gpu_is_as_wanted():
    assert container()["readinessProbe"]["exec"] == {"command": ["test", "-f", "/run/power-limit/ready"]}


@pytest.mark.parametrize(("interval", "age"), [(10, 80), (1800, 3660)])
def test_it_is_alive_while_its_heart_beats_once_in_two_intervals(interval, age):
    command = container(interval_seconds=interval)["livenessProbe"]["exec"]["command"]
    assert command[:2] == ["/bin/sh", "-c"]
    assert command[2].endswith(f"-lt {age} ]")


def test_it_may_wait_for_the_driver_as_long_as_the_script_does():
    probe = container()["startupProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] > 300


def test_every_mount_has_its_volume():
    mounted = sorted(mount["name"] for mount in container()["volumeMounts"])
    assert mounted == sorted(volume["name"] for volume in pod()["volumes"])


def test_placement_image_and_resources_can_be_replaced():
    given = {
        "tolerations": [TAINT],
        "node_selector": {"pool": "gpu"},
        "image": "registry.example/debian@sha256:" + "0" * 64,
        "resources": {"limits": {"memory": "256Mi"}},
    }
    spec = pod(**given)
    assert spec["tolerations"] == [
        {"key": "CriticalAddonsOnly", "operator": "Exists"},
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        TAINT.to_manifest(),
    ]
    assert spec["nodeSelector"] == {"nvidia.com/gpu.present": "true", "pool": "gpu"}
    assert spec["containers"][0]["image"] == given["image"]
    assert spec["containers"][0]["resources"] == {"limits": {"memory": "256Mi"}}


def test_the_default_image_is_a_debian_of_a_fixed_day():
    assert re.fullmatch(r"docker\.io/library/debian:bookworm-[0-9]{8}-slim", container()["image"])


def test_it_lives_in_the_namespace_it_is_given(chart):
    PowerLimit(chart, "limit", namespace=GpuNamespace(chart, "namespace", name="gpu-device-plugin"))
    assert {m["metadata"].get("namespace") for m in Testing.synth(chart)} == {None, "gpu-device-plugin"}


BOARD = "leave the PowerLimit out for the board's own limit"
OFTEN = "leave it out for a look every 1800 seconds"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"watts": 0}, f"watts must be at least 1, got 0; {BOARD}"),
        ({"watts": -1}, f"watts must be at least 1, got -1; {BOARD}"),
        ({"watts": True}, f"watts must be an int, got True (bool); {BOARD}"),
        ({"watts": "300"}, f"watts must be an int, got '300' (str); {BOARD}"),
        ({"watts": 300.0}, f"watts must be an int, got 300.0 (float); {BOARD}"),
        ({"watts": math.nan}, f"watts must be an int, got nan (float); {BOARD}"),
        ({"watts": None}, f"watts must be an int, got None (NoneType); {BOARD}"),
        ({"interval_seconds": 9}, f"interval_seconds must be at least 10, got 9; {OFTEN}"),
        ({"interval_seconds": True}, f"interval_seconds must be an int, got True (bool); {OFTEN}"),
        ({"interval_seconds": "30m"}, f"interval_seconds must be an int, got '30m' (str); {OFTEN}"),
        (
            {"out_of_range": "clam"},
            "out_of_range must be one of 'clamp', 'refuse'; got 'clam' (did you mean 'clamp'?)",
        ),
        ({"persistence_mode": 1}, "persistence_mode must be bool; got int: 1"),
        ({"restore_on_exit": "no"}, "restore_on_exit must be bool; got str: 'no'"),
        (
            {"image": "debian"},
            "image must be pinned as 'repository:tag' or 'repository@sha256:...', never 'latest'; got 'debian'",
        ),
        (
            {"namespace": "default"},
            "namespace must not be 'default': GPU components need a namespace whose Pod Security level is "
            "privileged; leave it out for 'nvidia-gpu-operator' or name one of your own",
        ),
        ({"runtime_class": 5}, "runtime_class must be the name of a RuntimeClass or a RuntimeClass object; got int"),
        ({"watt": 300}, "watt is no keyword of PowerLimit (did you mean 'watts'?)"),
        (
            {"resources": {"limits": {"nvidia.com/gpu": 1}}},
            "resources['limits']['nvidia.com/gpu'] must not be set here; ask for GPUs with gpus=",
        ),
    ],
    ids=str,
)
def test_bad_input_gets_one_error(given, message):
    assert refusal(**given) == f"gpu/limit: {message}"


def test_a_limit_that_the_script_would_not_read_is_refused():
    assert environment(watts=9999)["POWER_LIMIT"] == "9999"
    assert refusal(watts=10_000) == f"gpu/limit: watts must be at most 9999, got 10000; {BOARD}"


def test_an_interval_that_the_script_would_not_read_is_refused():
    assert refusal(interval_seconds=10**8) == (
        f"gpu/limit: interval_seconds must be at most 9999999, got 100000000; {OFTEN}"
    )
