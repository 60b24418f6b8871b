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
TAINT = Toleration(key="dedicated", value="ai", effect="NoSchedule")

made = ScriptedDaemonSet(PowerLimit, "limit")
chart_with, refusal = made.chart_with, made.refusal
daemonset, pod, container, environment = made.daemonset, made.pod, made.container, made.environment
script = made.script


def test_on_talos(objects, snapshot):
    assert without_script(objects(chart_with())) == snapshot


def test_on_plain_kubernetes(objects, snapshot):
    assert without_script(objects(chart_with(platform=Kubernetes(), watts=250))) == snapshot


def test_it_declares_its_limits_for_alerts_and_synth(chart):
    limit = PowerLimit(chart, "limit", limits={"name:*3090": "80%", "index:0": 250}, interval_seconds=60)
    assert [request.to_rule() for request in limit.requests] == ["index:0=250", "name:*3090=80%", "300"]
    assert (limit.watts, limit.interval_seconds, limit.out_of_range) == (300, 60, "clamp")
    assert (limit.api_object.kind, limit.api_object.name) == ("DaemonSet", NAME)
    (cap,) = limit.provides.power_caps
    assert list(cap.limits.items()) == [("*3090", "80%"), ("*", "300")]


def test_the_script_in_the_config_map_is_the_file_of_the_package():
    shipped = resources.files("gpu_constructs.power") / "power_limit.sh"
    assert script() == shipped.read_text(encoding="utf-8")


def test_every_keyword_arrives_in_a_variable_that_the_script_reads(keywords):
    given = environment(**keywords)
    ours = {name: value for name, value in given.items() if not name.startswith("NVIDIA_")}
    assert ours == {
        "COMMAND_TIMEOUT_SECONDS": "40",
        "INTERVAL_SECONDS": "60",
        "METRICS_FILE": "/textfile/limit-3090.prom",
        "OUT_OF_RANGE": "refuse",
        "PERSISTENCE_MODE": "0",
        "POWER_LIMIT": "250",
        "POWER_LIMITS": "uuid:GPU-1=280\npci:0000:01:00.0=default\nindex:1=80%\nname:*3090=250",
        "RESTORE_ON_EXIT": "1",
        "RETRY_SECONDS": "20",
        "START_TIMEOUT_SECONDS": "120",
        "STATE_DIR": "/run/power-limit",
    }
    assert [name for name in ours if f': "${{{name}:=' not in script()] == []
    for watts, text in [(1, "1"), (9999, "9999"), ("1%", "1%"), ("default", "default")]:
        assert environment(watts=watts)["POWER_LIMIT"] == text, watts
    alone = environment(watts=None, limits={"index:0": 250})
    assert ("POWER_LIMIT" in alone, alone["POWER_LIMITS"]) == (False, "index:0=250")


def test_a_pod_that_restores_the_defaults_has_the_time_to():
    assert pod()["terminationGracePeriodSeconds"] == 30
    assert pod(command_timeout_seconds=60)["terminationGracePeriodSeconds"] == 70
    assert pod(restore_on_exit=True)["terminationGracePeriodSeconds"] == 120


def test_the_liveness_probe_needs_a_heartbeat_in_two_intervals():
    for interval, age in [(10, 80), (1800, 3660)]:
        command = container(interval_seconds=interval)["livenessProbe"]["exec"]["command"]
        assert command[:2] == ["/bin/sh", "-c"], interval
        assert command[2].endswith(f"-lt {age} ]"), interval


def test_the_startup_probe_waits_a_minute_longer_than_the_script():
    for seconds in [0, 301, 3600]:
        probe = container(start_timeout_seconds=seconds)["startupProbe"]
        assert 60 <= probe["periodSeconds"] * probe["failureThreshold"] - seconds < 70, seconds


def test_options_of_pods_reach_them(chart):
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}
    manifest = daemonset(
        platform=Kubernetes(),
        runtime_class=NvidiaRuntimeClass(chart, "runtime-class", name="gpu-runtime"),
        namespace=GpuNamespace(chart, "namespace", name="gpus"),
        tolerations=[TAINT],
        node_selector={"pool": "gpu"},
        image="registry.example/debian@sha256:" + "0" * 64,
        resources={"limits": {"memory": "256Mi"}},
        affinity=affinity,
        image_pull_policy="Always",
        image_pull_secrets=["registry"],
        priority_class_name="gpu-agents",
        update_strategy=UpdateStrategy.rolling_update(max_unavailable="25%"),
        pod_annotations={"cdi.k8s.io/gpu": "nvidia.com/gpu=all"},
    )
    template, spec = manifest["spec"]["template"], manifest["spec"]["template"]["spec"]
    (only,) = spec["containers"]
    assert manifest["metadata"]["namespace"] == "gpus"
    assert manifest["spec"]["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%"}}
    assert set(template["metadata"]["annotations"]) == {"cdi.k8s.io/gpu", "gpu-constructs/script-sha256"}
    assert [one["key"] for one in spec["tolerations"]] == ["CriticalAddonsOnly", "nvidia.com/gpu", "dedicated"]
    assert spec["nodeSelector"] == {"nvidia.com/gpu.present": "true", "pool": "gpu"}
    assert (spec["runtimeClassName"], spec["affinity"]) == ("gpu-runtime", affinity)
    assert (spec["imagePullSecrets"], spec["priorityClassName"]) == ([{"name": "registry"}], "gpu-agents")
    assert (only["image"][:23], only["imagePullPolicy"]) == ("registry.example/debian", "Always")
    assert only["resources"] == {"limits": {"memory": "256Mi"}}
    assert "runtimeClassName" not in pod(platform=Kubernetes())


def test_the_textfile_of_node_exporter_takes_one_host_path_anywhere_outside_of_talos():
    given = {"textfile_directory": "/opt/prom", "platform": Kubernetes()}
    assert [volume for volume in pod(**given)["volumes"] if "hostPath" in volume] == [
        {"name": "textfile", "hostPath": {"path": "/opt/prom", "type": "DirectoryOrCreate"}}
    ]
    assert {"name": "textfile", "mountPath": "/textfile"} in container(**given)["volumeMounts"]
    assert container(**given)["securityContext"] == container()["securityContext"]


def test_nodes_of_two_kinds_get_a_power_limit_each_under_two_names(app, chart):
    for watts in (300, 450):
        PowerLimit(chart, f"limit-{watts}", name=f"limit-{watts}", watts=watts, node_selector={"watts": str(watts)})
    manifests = Testing.synth(chart)
    assert len({(m["kind"], m["metadata"]["name"]) for m in manifests}) == 4
    for manifest in (m for m in manifests if m["kind"] == "DaemonSet"):
        labels, spec = manifest["spec"]["template"]["metadata"]["labels"], manifest["spec"]["template"]["spec"]
        assert labels["app.kubernetes.io/name"] == NAME
        assert labels["app.kubernetes.io/instance"] == manifest["metadata"]["name"]
        assert spec["volumes"][0]["configMap"]["name"] == manifest["metadata"]["name"]
    for id in ("one", "two"):
        PowerLimit(chart, id)
    with pytest.raises(SynthesisError, match=NAME):
        synthesize(app)


# --- errors ------------------------------------------------------------------


def test_bad_input_gets_one_error(rows):
    for given, message in rows:
        assert refusal(**given).startswith(f"gpu/limit: {message}"), given


def test_an_invalid_limit_is_rejected(rows):
    for limit, message in rows:
        assert refusal(limits={"index:0": limit}) == f"gpu/limit: limits['index:0'] {message}", limit
        assert refusal(watts=limit).startswith(f"gpu/limit: watts {message}"), limit


def test_a_key_that_chooses_no_gpu_is_refused(rows):
    for key, message in rows:
        assert refusal(limits={key: 250}).startswith(f"gpu/limit: limits key {message}, got {key!r}"), key
    assert refusal(limits={"uid:GPU-1": 250}).endswith(" (did you mean 'uuid'?)")


def test_one_device_in_two_spellings_is_refused():
    for one, other in (("uuid:GPU-ab", "uuid:GPU-AB"), ("pci:0A:00.0", "pci:0000:0a:00.0")):
        values = [key.partition(":")[2] for key in (one, other)]
        assert refusal(limits={one: 250, other: 280}) == (
            f"gpu/limit: limits must name a device once, got {values[0]!r} and {values[1]!r}. Leave one of them out"
        )
    assert environment(limits={"pci:0000:0a:00.0": 250, "pci:0001:0a:00.0": 280})["POWER_LIMITS"].count("\n") == 1


# --- boards ------------------------------------------------------------------

RTX_3090, RTX_5090 = "NVIDIA GeForce RTX 3090", "NVIDIA GeForce RTX 5090"


def told(recwarn, watts, names, limits=None, **given):
    """Return the warnings without their path."""
    recwarn.clear()
    chart_with(watts=watts, gpu_models=names, limits=limits, **given)
    return [str(one.message).removeprefix("gpu/limit: ") for one in recwarn if one.category is GpuConstructsWarning]


def refused(watts, names, limits=None):
    return refusal(watts=watts, gpu_models=names, limits=limits, out_of_range="refuse").removeprefix("gpu/limit: ")


@pytest.mark.filterwarnings("always")
def test_a_limit_out_of_the_range_of_a_board_is_a_warning_or_an_error(recwarn, rows):
    for watts, name, board, result in rows:
        text = f"{watts} W" if isinstance(watts, int) else watts
        assert told(recwarn, watts, [name]) == [
            f"watts: {text} is out of the range of {board}, so the limit becomes {result} W"
        ]
        assert refused(watts, [name]) == (
            f"watts must be within the range of the board, got {text} for {board}. Set another limit, add a limit for "
            "this board to limits, or use out_of_range='clamp' for the nearest allowed limit"
        )
    fine = [(400, RTX_5090), (72, "NVIDIA L4"), (40, "L4"), ("default", RTX_5090), ("100%", RTX_3090)]
    # A board without a known range causes no warning.
    for watts, name in [*fine, (9999, "NVIDIA B300 SXM6 AC"), (9999, "NVIDIA Something")]:
        assert told(recwarn, watts, [name], out_of_range="refuse") == [], watts


@pytest.mark.filterwarnings("always")
def test_a_limit_above_the_default_or_for_an_unknown_board_is_a_warning(recwarn, rows):
    for watts, names, limits, warning in rows:
        (only,) = told(recwarn, watts, names, limits)
        assert only.startswith(warning)


@pytest.mark.filterwarnings("always")
def test_a_limit_by_name_takes_its_boards_from_the_fallback_and_the_first_name_wins(recwarn):
    limits = {"name:*5090": 450, "name:*": 250}
    assert told(recwarn, 300, [RTX_3090, RTX_5090], limits, out_of_range="refuse") == []
    assert "limits['name:*'] must be" in refused(300, [RTX_3090, RTX_5090], dict(reversed(limits.items())))
    assert told(recwarn, 60, ["NVIDIA L4"], {"name:NVIDIA L[!5]": 50}, out_of_range="refuse") == []


@pytest.mark.filterwarnings("always")
def test_a_limit_of_one_device_is_a_warning_if_it_is_wrong_for_every_board(recwarn):
    for key in ["uuid:GPU-1", "pci:01:00.0", "index:0"]:
        assert told(recwarn, None, [RTX_3090, "NVIDIA L4"], {key: 60}, out_of_range="refuse") == [], key
        assert told(recwarn, None, ["NVIDIA L4", "NVIDIA Something"], {key: 300}, out_of_range="refuse") == [], key
        assert f"limits['{key}'] must be" in refused(None, ["NVIDIA L4", "NVIDIA A10G"], {key: 400}), key
        assert told(recwarn, None, ["NVIDIA L4", "NVIDIA A10G"], {key: 400}) == [
            f"limits['{key}']: 400 W is out of the range of NVIDIA L4 (40 to 72 W) and NVIDIA A10G (100 to 300 W), so "
            "the limit becomes 72 W and 300 W"
        ], key


def test_a_limit_that_a_board_clamps_is_a_warning_at_the_line_of_the_user():
    with pytest.warns(GpuConstructsWarning, match="^gpu/limit: watts: 300 W is out of the range of") as warned:
        made.construct(Chart(App(), "gpu"), made.id, gpu_models=["NVIDIA GeForce RTX 5090"])
    assert [warning.filename for warning in warned] == [__file__]


def test_a_rejected_limit_leaves_no_construct(chart):
    with pytest.raises(GpuConstructsError, match="gpu/limit: watts must be within the range of the board"):
        PowerLimit(chart, "limit", gpu_models=["NVIDIA L4"], out_of_range="refuse")
    assert Testing.synth(chart) == []
