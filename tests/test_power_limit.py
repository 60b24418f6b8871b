import math
import re
from importlib import resources

import pytest
from cdk8s import App, Chart, Testing

from gpu_constructs import (
    GpuConstructsError,
    GpuNamespace,
    Kubernetes,
    NvidiaRuntimeClass,
    PowerLimit,
    SynthesisError,
    Toleration,
    UpdateStrategy,
    synthesize,
)
from gpu_constructs.errors import GpuConstructsWarning
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


def test_it_says_which_boards_it_holds_at_what():
    limits = {"index:0": 200, "name:*RTX 3090": "80%"}
    made = PowerLimit(chart_with().node.try_find_child("limit").node.scope, "b", name="b", watts=300, limits=limits)
    (cap,) = made.provides.power_caps
    assert list(cap.limits.items()) == [("*RTX 3090", "80%"), ("*", "300")]


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
        "COMMAND_TIMEOUT_SECONDS": "20",
        "INTERVAL_SECONDS": "1800",
        "NVIDIA_DISABLE_REQUIRE": "true",
        "NVIDIA_DRIVER_CAPABILITIES": "utility",
        "NVIDIA_VISIBLE_DEVICES": "all",
        "OUT_OF_RANGE": "clamp",
        "PERSISTENCE_MODE": "1",
        "POWER_LIMIT": "300",
        "RESTORE_ON_EXIT": "0",
        "RETRY_SECONDS": "15",
        "START_TIMEOUT_SECONDS": "300",
        "STATE_DIR": "/run/power-limit",
    }


def test_every_variable_of_ours_is_one_the_script_reads():
    given = environment(limits={"index:0": 250}, textfile_directory="/var/textfile")
    ours = [name for name in given if not name.startswith("NVIDIA_")]
    assert {"POWER_LIMITS", "METRICS_FILE"} <= set(ours)
    assert [name for name in ours if f': "${{{name}:=' not in script()] == []


def test_every_keyword_arrives_in_the_environment():
    given = environment(
        watts=250,
        interval_seconds=60,
        retry_seconds=20,
        start_timeout_seconds=120,
        command_timeout_seconds=40,
        out_of_range="refuse",
        persistence_mode=False,
        restore_on_exit=True,
    )
    assert given["RETRY_SECONDS"] == "20"
    assert given["START_TIMEOUT_SECONDS"] == "120"
    assert given["COMMAND_TIMEOUT_SECONDS"] == "40"
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


def test_a_pod_that_restores_the_defaults_has_the_time_to():
    assert pod()["terminationGracePeriodSeconds"] == 30
    assert pod(command_timeout_seconds=60)["terminationGracePeriodSeconds"] == 70
    assert pod(restore_on_exit=True)["terminationGracePeriodSeconds"] == 120


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


@pytest.mark.parametrize("seconds", [0, 5, 300, 301, 3600])
def test_it_may_wait_for_the_driver_as_long_as_the_script_does_and_a_minute_more(seconds):
    probe = container(start_timeout_seconds=seconds)["startupProbe"]
    assert 60 <= probe["periodSeconds"] * probe["failureThreshold"] - seconds < 70


def test_the_startup_probe_allows_six_minutes_by_default():
    probe = container()["startupProbe"]
    assert (probe["periodSeconds"], probe["failureThreshold"]) == (10, 36)


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
LIMIT = "whole watts, a share of the board's default like '80%', or 'default'"
OFTEN = "leave it out for a look every 1800 seconds"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"watts": 0}, f"watts must be at least 1, got 0; {BOARD}"),
        ({"watts": -1}, f"watts must be at least 1, got -1; {BOARD}"),
        ({"watts": True}, "watts must be an int, got True (bool)"),
        ({"watts": "300"}, f"watts must be {LIMIT}; got '300'; give the number 300"),
        ({"watts": 300.0}, "watts must be one of (int, str, None); got float: 300.0"),
        ({"watts": math.nan}, "watts must be one of (int, str, None); got float: nan"),
        (
            {"watts": None},
            "watts must be given where there are no limits; got None; name a limit, or leave the PowerLimit out for "
            "the boards' own",
        ),
        ({"limits": {"index:0": 1.5}}, "limits['index:0'] must be one of (int, str); got float: 1.5"),
        ({"limits": {"index:0": True}}, "limits['index:0'] must be an int, got True (bool)"),
        ({"gpu_models": "NVIDIA L4"}, "gpu_models must be a list, got 'NVIDIA L4' (str)"),
        ({"retry_seconds": 0}, "retry_seconds must be at least 1, got 0"),
        ({"start_timeout_seconds": -1}, "start_timeout_seconds must be at least 0, got -1"),
        ({"command_timeout_seconds": 0}, "command_timeout_seconds must be at least 1, got 0"),
        (
            {"name": "Limit"},
            "name must be a DNS label (a-z, 0-9 and '-', at most 63 characters, letter or digit at both ends); "
            "got 'Limit'",
        ),
        (
            {"textfile_directory": "var/prom"},
            "textfile_directory must be an absolute path without '..'; got 'var/prom'",
        ),
        (
            {"textfile_directory": "/etc/prom"},
            "textfile_directory must be below /var, the one part of a Talos node that can be written; got '/etc/prom'; "
            "name the directory that node_exporter's --collector.textfile.directory mounts",
        ),
        (
            {"affinity": {"nodeAffinit": {}}},
            "affinity key must be one of 'nodeAffinity', 'podAffinity', 'podAntiAffinity'; got 'nodeAffinit' "
            "(did you mean 'nodeAffinity'?)",
        ),
        (
            {"update_strategy": UpdateStrategy.rolling_update(max_surge=1, max_unavailable=0)},
            "update_strategy must not surge: two agents of a node would undo each other's limits; got max_surge=1; use "
            "max_unavailable",
        ),
        (
            {"pod_annotations": {"gpu-constructs/script-sha256": "x"}},
            "pod_annotations must not hold 'gpu-constructs/script-sha256': this library sets it; leave it out",
        ),
        ({"pod_annotations": {"a b": "x"}}, "pod_annotations has a key that is no label key; got 'a b'"),
        (
            {"priority_class_name": "A"},
            "priority_class_name must be a DNS subdomain (DNS labels joined by '.', at most 253 characters); got 'A'",
        ),
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
            "resources['limits']['nvidia.com/gpu'] must not be set here; got 1; leave it out: this "
            "pod needs no GPU of its own, and would take one from the workloads",
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


@pytest.mark.parametrize(("watts", "text"), [(300, "300"), ("80%", "80%"), ("default", "default")])
def test_a_limit_is_watts_or_a_share_of_the_default_or_the_default(watts, text):
    assert environment(watts=watts)["POWER_LIMIT"] == text


def test_limits_of_some_gpus_are_lines_with_the_most_specific_first():
    given = environment(
        limits={"name:*3090": 250, "index:1": "80%", "uuid:GPU-1": 280, "pci:0000:01:00.0": "default"}, watts=300
    )
    assert given["POWER_LIMITS"].splitlines() == [
        "uuid:GPU-1=280",
        "pci:0000:01:00.0=default",
        "index:1=80%",
        "name:*3090=250",
    ]
    assert given["POWER_LIMIT"] == "300"


def test_gpus_without_a_limit_of_their_own_can_be_left_alone():
    given = environment(watts=None, limits={"index:0": 250})
    assert "POWER_LIMIT" not in given
    assert given["POWER_LIMITS"] == "index:0=250"


def test_it_tells_what_alerts_need(chart):
    limit = PowerLimit(chart, "limit", limits={"name:*": "80%", "index:0": 250}, interval_seconds=60)
    assert [wish.to_rule() for wish in limit.wishes] == ["index:0=250", "name:*=80%", "300"]
    assert (limit.interval_seconds, limit.out_of_range) == (60, "clamp")


def test_a_limit_that_a_board_makes_another_is_warned_of_where_it_is_written():
    with pytest.warns(GpuConstructsWarning, match="^gpu/limit: watts: 300 W is out of the range of") as warned:
        made.construct(Chart(App(), "gpu"), made.id, gpu_models=["NVIDIA GeForce RTX 5090"])
    assert [warning.filename for warning in warned] == [__file__]


def test_a_limit_that_a_board_would_refuse_is_an_error_and_leaves_no_construct(chart):
    with pytest.raises(GpuConstructsError, match="gpu/limit: watts must be a limit that the board takes"):
        PowerLimit(chart, "limit", gpu_models=["NVIDIA L4"], out_of_range="refuse")
    assert Testing.synth(chart) == []


def test_a_board_that_is_not_known_is_no_problem():
    assert environment(gpu_models=["NVIDIA Something 1"], out_of_range="refuse", watts=9999)["POWER_LIMIT"] == "9999"


def test_a_name_that_no_board_has_is_warned_of_with_the_nearest(chart):
    said = (
        r"gpu/limit: gpu_models: 'RTX 4099' is not the name of a known board \(did you mean 'NVIDIA GeForce RTX 4090'"
    )
    with pytest.warns(GpuConstructsWarning, match=said):
        PowerLimit(chart, "limit", watts=300, gpu_models=["RTX 4099"])


def test_the_textfile_of_node_exporter_takes_one_host_path_and_is_called_like_the_object():
    given = {"textfile_directory": "/var/lib/node_exporter", "name": "limit-3090"}
    assert environment(**given)["METRICS_FILE"] == "/textfile/limit-3090.prom"
    assert [volume for volume in pod(**given)["volumes"] if "hostPath" in volume] == [
        {"name": "textfile", "hostPath": {"path": "/var/lib/node_exporter", "type": "DirectoryOrCreate"}}
    ]
    assert {"name": "textfile", "mountPath": "/textfile"} in container(**given)["volumeMounts"]
    assert container(**given)["securityContext"] == container()["securityContext"]


def test_outside_of_talos_the_textfile_may_lie_anywhere():
    assert pod(platform=Kubernetes(), textfile_directory="/opt/prom")["volumes"][2]["hostPath"]["path"] == "/opt/prom"


def test_what_the_pods_carry_can_be_chosen():
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}
    given = {
        "affinity": affinity,
        "image_pull_policy": "Always",
        "image_pull_secrets": ["registry"],
        "priority_class_name": "gpu-agents",
        "update_strategy": UpdateStrategy.rolling_update(max_unavailable="25%"),
        "pod_annotations": {"cdi.k8s.io/gpu": "nvidia.com/gpu=all"},
    }
    spec, manifest = pod(**given), daemonset(**given)
    assert spec["affinity"] == affinity
    assert spec["containers"][0]["imagePullPolicy"] == "Always"
    assert spec["imagePullSecrets"] == [{"name": "registry"}]
    assert spec["priorityClassName"] == "gpu-agents"
    assert manifest["spec"]["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%"}}
    annotations = manifest["spec"]["template"]["metadata"]["annotations"]
    assert annotations["cdi.k8s.io/gpu"] == "nvidia.com/gpu=all"
    assert "gpu-constructs/script-sha256" in annotations


def test_by_default_nothing_of_that_is_written():
    absent = {"affinity", "imagePullSecrets", "priorityClassName"}
    assert absent.isdisjoint(pod())
    assert daemonset()["spec"]["updateStrategy"] == {"type": "RollingUpdate"}


def test_nodes_of_two_kinds_get_a_power_limit_each(objects):
    chart = Chart(App(), "gpu")
    PowerLimit(chart, "limit-3090", name="limit-3090", watts=300, node_selector={"gpu": "3090"})
    PowerLimit(chart, "limit-5090", name="limit-5090", watts=450, node_selector={"gpu": "5090"})
    made_of_both = objects(chart)
    assert len({(m["kind"], m["metadata"]["name"]) for m in made_of_both}) == 4
    daemonsets = [m for m in made_of_both if m["kind"] == "DaemonSet"]
    assert {m["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/name"] for m in daemonsets} == {NAME}
    for manifest in daemonsets:
        labels, spec = manifest["spec"]["template"]["metadata"]["labels"], manifest["spec"]["template"]["spec"]
        assert labels["app.kubernetes.io/instance"] == manifest["metadata"]["name"]
        assert spec["volumes"][0]["configMap"]["name"] == manifest["metadata"]["name"]


def test_two_power_limits_of_one_name_are_refused_by_synth(app, chart):
    PowerLimit(chart, "one")
    PowerLimit(chart, "two")
    with pytest.raises(SynthesisError, match="nvidia-powerlimit"):
        synthesize(app)
