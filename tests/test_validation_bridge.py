from typing import Any

import pytest
from cdk8s import Testing

from gpu_constructs import GpuNamespace, Kubernetes, Talos, Toleration, ValidationBridge
from gpu_constructs.operator.validation_bridge import script as script_of
from scripted_daemonset import ScriptedDaemonSet, without_script

NAME = "nvidia-validation-bridge"
SCRIPT = "validation-bridge.sh"
TAINT = Toleration(key="dedicated", value="ai", effect="NoSchedule")
VALIDATIONS = "/run/nvidia/validations"

made = ScriptedDaemonSet(ValidationBridge, "bridge")
chart_with, rendered, refusal = made.chart_with, made.rendered, made.refusal
daemonset, pod, container, environment = made.daemonset, made.pod, made.container, made.environment
script = made.script
STAGE = "/var/lib/gpu-constructs/driver"
LIBRARIES, PROGRAMS = "/usr/local/glibc/usr/lib", "/usr/local/bin"
ELSEWHERE: dict[str, Any] = {
    "platform": Kubernetes(),
    "strategy": "stage",
    "source_lib_dir": "/opt/driver/lib64",
    "source_bin_dir": "/opt/driver/bin",
}


def host_paths(**given: Any) -> list[dict[str, Any]]:
    return [volume["hostPath"] for volume in pod(**given)["volumes"] if "hostPath" in volume]


def test_on_talos_1_12(objects, snapshot):
    assert without_script(objects(chart_with())) == snapshot


def test_on_plain_kubernetes(objects, snapshot):
    assert without_script(objects(chart_with(platform=Kubernetes()))) == snapshot


def test_staging_on_talos_1_12(objects, snapshot):
    assert without_script(objects(chart_with(strategy="stage"))) == snapshot


def test_it_makes_a_config_map_and_a_daemonset_of_one_name_and_no_rights():
    assert [(m["kind"], m["metadata"]["name"], m["metadata"]["namespace"]) for m in rendered()] == [
        ("ConfigMap", NAME, "nvidia-gpu-operator"),
        ("DaemonSet", NAME, "nvidia-gpu-operator"),
    ]


def test_the_daemonset_is_its_main_object(chart):
    bridge = ValidationBridge(chart, "bridge")
    assert (bridge.api_object.kind, bridge.api_object.name) == ("DaemonSet", NAME)


def test_the_script_in_the_config_map_is_the_one_of_the_strategy(chart):
    assert script() == script_of("markers")
    (config_map, _) = rendered(strategy="stage")
    assert config_map["data"] == {SCRIPT: script_of("stage")}
    assert script_of("stage") != script_of("markers")


@pytest.mark.parametrize("strategy", ["markers", "stage"])
def test_the_script_says_once_what_runs_it(strategy):
    lines = script_of(strategy).splitlines()
    assert lines[0] == "#!/bin/sh"
    assert [line for line in lines[1:] if line.startswith("#!")] == []


def test_the_pod_runs_the_script_from_a_mount_nobody_can_write():
    assert container()["command"] == ["/bin/sh", f"/script/{SCRIPT}"]
    assert {"name": "script", "mountPath": "/script", "readOnly": True} in container()["volumeMounts"]
    assert {"name": "script", "configMap": {"name": NAME, "defaultMode": 0o555}} in pod()["volumes"]


@pytest.mark.parametrize("platform", [Talos("1.10"), Kubernetes()], ids=str)
def test_for_markers_only_one_path_of_the_host_is_mounted(platform):
    assert host_paths(platform=platform) == [{"path": VALIDATIONS, "type": "DirectoryOrCreate"}]


def test_for_staging_the_drivers_folders_are_mounted_read_only_and_one_directory_writable():
    mounts = {mount["name"]: mount for mount in container(strategy="stage")["volumeMounts"]}
    host = {v["name"]: v["hostPath"] for v in pod(strategy="stage")["volumes"] if "hostPath" in v}
    assert host == {
        "driver-libraries": {"path": LIBRARIES},
        "driver-programs": {"path": PROGRAMS},
        "stage": {"path": STAGE, "type": "DirectoryOrCreate"},
    }
    assert [mounts[name].get("readOnly", False) for name in host] == [True, True, False]
    assert mounts["stage"]["mountPath"] == STAGE


def test_the_drivers_folders_have_no_type_for_talos_kubelet_to_look_for_in_its_own_container():
    assert [path for path in host_paths(strategy="stage") if path.get("type") == "Directory"] == []


def test_no_program_of_the_host_is_on_the_path_of_the_shell():
    on_path = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}
    assert on_path.isdisjoint(mount["mountPath"] for mount in container(strategy="stage")["volumeMounts"])


def test_for_staging_the_environment_names_the_mounts():
    assert environment(strategy="stage") == {
        "INTERVAL_SECONDS": "10",
        "RETRACT_ON_EXIT": "true",
        "SOURCE_BIN_DIR": f"/host{PROGRAMS}",
        "SOURCE_LIB_DIR": f"/host{LIBRARIES}",
        "STAGE_DIR": STAGE,
        "STATE_DIR": "/tmp",
    }
    mounted = {mount["mountPath"] for mount in container(strategy="stage")["volumeMounts"]}
    assert {f"/host{PROGRAMS}", f"/host{LIBRARIES}", STAGE, "/tmp"} <= mounted


def test_another_directory_can_be_staged_to():
    given = {"strategy": "stage", "stage_dir": "/var/nvidia-driver"}
    assert environment(**given)["STAGE_DIR"] == "/var/nvidia-driver"
    assert {"path": "/var/nvidia-driver", "type": "DirectoryOrCreate"} in host_paths(**given)


def test_elsewhere_the_drivers_folders_are_the_users():
    assert [path["path"] for path in host_paths(**ELSEWHERE)] == ["/opt/driver/lib64", "/opt/driver/bin", STAGE]
    assert environment(**ELSEWHERE)["SOURCE_LIB_DIR"] == "/host/opt/driver/lib64"
    assert environment(**ELSEWHERE)["SOURCE_BIN_DIR"] == "/host/opt/driver/bin"


def test_on_talos_the_drivers_folders_can_be_replaced():
    given = environment(strategy="stage", source_lib_dir="/var/lib/nvidia/lib")
    assert (given["SOURCE_LIB_DIR"], given["SOURCE_BIN_DIR"]) == ("/host/var/lib/nvidia/lib", f"/host{PROGRAMS}")


def test_one_folder_with_library_and_program_is_mounted_once():
    given = {**ELSEWHERE, "source_bin_dir": ELSEWHERE["source_lib_dir"]}
    assert [path["path"] for path in host_paths(**given)] == ["/opt/driver/lib64", STAGE]


@pytest.mark.parametrize("strategy", ["markers", "stage"])
def test_the_nodes_devices_are_mounted_when_one_is_asked_for(strategy):
    given = {"strategy": strategy, "required_devices": ["nvidiactl", "/dev/nvidia-caps/nvidia-cap1"]}
    assert {"path": "/dev"} in host_paths(**given)
    assert {"name": "dev", "mountPath": "/host/dev", "readOnly": True} in container(**given)["volumeMounts"]
    assert environment(**given)["REQUIRED_DEVICES"] == "nvidiactl nvidia-caps/nvidia-cap1"
    assert environment(**given)["DEV_ROOT"] == "/host/dev"


def test_other_modules_can_be_required():
    assert environment(required_modules=["nvidia", "nvidia_modeset"])["REQUIRED_MODULES"] == "nvidia nvidia_modeset"


def test_it_says_its_strategy_its_namespace_and_where_the_operator_must_look(chart):
    markers = ValidationBridge(chart, "markers")
    stage = ValidationBridge(chart, "stage", strategy="stage", namespace="operator")
    assert (markers.strategy, markers.namespace, markers.driver_install_dir) == ("markers", "nvidia-gpu-operator", None)
    assert (stage.strategy, stage.namespace, stage.driver_install_dir) == ("stage", "operator", STAGE)


@pytest.mark.parametrize("strategy", ["markers", "stage"])
def test_it_is_root_and_holds_nothing_else(strategy):
    spec = pod(strategy=strategy)
    assert spec["securityContext"] == {
        "runAsUser": 0,
        "runAsGroup": 0,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert spec["containers"][0]["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    assert spec["automountServiceAccountToken"] is False
    assert "serviceAccountName" not in spec
    assert spec.keys().isdisjoint({"hostNetwork", "hostPID", "hostIPC"})


def test_its_memory_limit_has_room_for_what_the_runtime_starts_for_each_probe():
    assert container()["resources"] == {"requests": {"cpu": "10m", "memory": "8Mi"}, "limits": {"memory": "64Mi"}}


def test_its_probes_end_in_time_on_a_busy_node():
    readiness, liveness = (container()[f"{kind}Probe"] for kind in ("readiness", "liveness"))
    assert (readiness["timeoutSeconds"], readiness["failureThreshold"]) == (5, 5)
    assert (liveness["timeoutSeconds"], liveness["failureThreshold"]) == (5, 3)


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


@pytest.mark.parametrize("strategy", ["markers", "stage"])
def test_every_variable_is_one_the_script_reads(strategy):
    names = environment(
        strategy=strategy,
        expected_driver_version="570.211.01",
        required_modules=["nvidia"],
        required_devices=["nvidia0"],
    )
    assert [name for name in names if f': "${{{name}:=' not in script_of(strategy)] == []


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


@pytest.mark.parametrize("given", [{}, {"strategy": "stage"}, {"required_devices": ["nvidia0"]}], ids=str)
def test_every_mount_has_its_volume(given):
    mounted = [mount["name"] for mount in container(**given)["volumeMounts"]]
    assert mounted == [volume["name"] for volume in pod(**given)["volumes"]]
    assert len({mount["mountPath"] for mount in container(**given)["volumeMounts"]}) == len(mounted)


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


@pytest.mark.parametrize("strategy", ["markers", "stage"])
@pytest.mark.parametrize("release", ["1.13", "1.14"])
def test_later_talos_needs_none(release, strategy):
    refused = refusal(platform=Talos(release), strategy=strategy)
    assert refused.startswith(f"gpu/bridge: platform Talos {release} does not go with the GPU Operator beside a ")
    assert "hostPaths.driverInstallDir=/usr/local" in refused
    assert "leave the bridge out" in refused


@pytest.mark.parametrize("level", ["baseline", "restricted"])
def test_a_namespace_that_would_refuse_its_pods_is_refused(chart, level):
    namespace = GpuNamespace(chart, "namespace", name="operator", pod_security=level)
    assert refusal(namespace=namespace) == (
        "gpu/bridge: namespace must be privileged, since the bridge mounts a host path; got GpuNamespace 'operator' "
        f"with pod_security={level!r}; pass pod_security='privileged' there"
    )


WAY_OUT = f"leave it out for '{STAGE}'"


@pytest.mark.parametrize(
    ("stage_dir", "why"),
    [
        (
            "/run/nvidia/driver",
            "must not be below /run, which is mounted nosuid,noexec, so that the operator could not ",
        ),
        ("/run", "must not be below /run, "),
        ("/var/run/nvidia", "must not be below /var/run, which is mounted nosuid,noexec"),
        ("/usr/local", "must be below /var, the one part of a Talos node that can be written and run from; "),
        ("/etc/nvidia", "must be below /var, "),
        ("/variable/driver", "must be below /var, "),
        ("/", "must be an absolute path "),
        ("var/driver", "must be an absolute path "),
        ("/var/lib/../driver", "must be an absolute path "),
        ("/var/driver/", "must be an absolute path "),
        ("/var/./driver", "must be an absolute path "),
        ("/var/my driver", "must be an absolute path "),
        ("/var/a:b", "must be an absolute path "),
        ("", "must be an absolute path "),
        ("/var", "must be a directory of its own, apart from /var/lib/containerd; "),
        ("/var/lib", "must be a directory of its own, apart from /var/lib/containerd; "),
        ("/var/lib/kubelet/driver", "must be a directory of its own, apart from /var/lib/kubelet; "),
    ],
)
def test_a_directory_the_driver_cannot_be_run_from_is_refused(stage_dir, why):
    refused = refusal(strategy="stage", stage_dir=stage_dir)
    assert refused.startswith(f"gpu/bridge: stage_dir {why}")
    assert f"got {stage_dir!r}" in refused
    assert refused.endswith(WAY_OUT) or "absolute path" in why


def test_the_stage_does_not_lie_in_the_drivers_folders_or_around_them():
    given = {**ELSEWHERE, "source_lib_dir": "/var/driver/usr/lib64", "stage_dir": "/var/driver"}
    assert refusal(**given) == (
        "gpu/bridge: stage_dir must be a directory of its own, apart from /var/driver/usr/lib64; got '/var/driver'; "
        f"{WAY_OUT}"
    )


@pytest.mark.parametrize(
    ("missing", "file"), [("source_lib_dir", "libnvidia-ml.so.1"), ("source_bin_dir", "nvidia-smi")]
)
def test_elsewhere_the_drivers_folders_must_be_given(missing, file):
    assert refusal(**{**ELSEWHERE, missing: None}) == (
        f"gpu/bridge: {missing} is required with strategy 'stage' on {Kubernetes()}, where nothing is known of the "
        f"driver's place; pass the folder of the nodes that holds {file}"
    )


@pytest.mark.parametrize("option", ["stage_dir", "source_lib_dir", "source_bin_dir"])
def test_an_option_of_staging_is_refused_beside_markers(option):
    assert refusal(**{option: "/var/driver"}) == (
        f"gpu/bridge: {option} must be left out with strategy 'markers', which copies nothing; got '/var/driver'; "
        "leave it out, or pass strategy='stage'"
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"strategy": "none"}, "strategy must be one of 'markers', 'stage'; got 'none'"),
        ({"strategy": 5}, "strategy must be one of 'markers', 'stage'; got 5"),
        (
            {"strategy": "stage", "source_bin_dir": "bin"},
            "source_bin_dir must be an absolute path of letters, digits, '-', '_' and '.', without '..' and a trailing "
            "'/'; got 'bin'",
        ),
        (
            {"required_modules": []},
            "required_modules must name a kernel module; got an empty list; leave it out for nvidia and nvidia_uvm",
        ),
        (
            {"required_modules": ["nvidia", "nvidia-uvm"]},
            "required_modules[1] must be a kernel module's name as in /proc/modules (letters, digits, '_'); "
            "got 'nvidia-uvm' (did you mean 'nvidia_uvm'?)",
        ),
        ({"required_modules": "nvidia"}, "required_modules must be a list, got 'nvidia' (str)"),
        (
            {"required_devices": ["nvidia*"]},
            "required_devices[0] must be a name below /dev, like 'nvidiactl'; got 'nvidia*'",
        ),
        (
            {"required_devices": ["../etc/passwd"]},
            "required_devices[0] must be a name below /dev, like 'nvidiactl'; got '../etc/passwd'",
        ),
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
