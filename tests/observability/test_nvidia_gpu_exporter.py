import warnings

from cdk8s import App, Chart

import invariants
from exporter_rendering import Rendering
from gpu_constructs import (
    BasicAuth,
    GpuNamespace,
    NvidiaGpuExporter,
    Tls,
    Unverified,
)
from gpu_constructs.kube import pod_security

SMI = Rendering(NvidiaGpuExporter, "nvidia-gpu-exporter")
IMAGE = "docker.io/utkuozdemir/nvidia_gpu_exporter:1.14.0"
AUTH = BasicAuth(users={"prometheus": "$2y$10$" + "a" * 53}, secret="scrape-password")
TLS = Tls(secret="exporter-tls")


def chart_with(**given):
    chart = Chart(App(), "gpu")
    NvidiaGpuExporter(chart, "exporter", **given)
    return chart


def flags(**given):
    """Return the flags by name, with True for a switch."""
    said = {}
    words = SMI.container(**given)["args"]
    while words:
        flag, *words = words
        said[flag] = words.pop(0) if words and not words[0].startswith("--") else True
    return said


def test_on_talos(objects, snapshot):
    assert objects(chart_with(dashboard=False)) == snapshot


def test_with_everything_on_plain_kubernetes(objects, snapshot, keywords):
    chart = chart_with(**keywords)
    assert objects(chart) == snapshot


def test_the_series_follow_backend_fields_and_options():
    options = {"query_field_names": ["power.draw"], "compute_apps": True, "pcie_throughput": True}
    series = SMI.made(dashboard=False, backend="nvml", **options).series
    assert (series.dialect, series.pods) == ("nvidia_smi", "none")
    assert series.metrics >= {
        "nvidia_smi_power_draw_watts",
        "nvidia_smi_xid_errors_total",
        "nvidia_smi_compute_apps",
        "nvidia_smi_pcie_throughput_tx_bytes_per_second",
    }
    assert "nvidia_smi_power_limit_watts" not in series.metrics


# --- no privileges -----------------------------------------------------------------------------------------------


def test_its_pods_have_no_rights_and_meet_the_level_restricted(rows):
    for (given,) in rows:
        spec = SMI.pod(**given)
        assert pod_security.violations(spec, "restricted") == [], given
        assert spec["automountServiceAccountToken"] is False
        assert spec["containers"][0]["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "runAsUser": 65534,
        }
        invariants.hold_for(SMI.objects(**given))
    assert SMI.pod(basic_auth=AUTH)["securityContext"]["fsGroup"] == 65534
    assert SMI.variables()["NVIDIA_DRIVER_CAPABILITIES"] == "utility"


def test_host_pid_and_host_network_need_a_privileged_namespace(chart):
    for given, field in (({"compute_apps": True}, "hostPID"), ({"host_network": True}, "hostNetwork")):
        assert pod_security.violations(SMI.pod(**given), "baseline") == [f"hostNamespaces: {field} is true"]
        for level in ("restricted", "baseline"):
            space = GpuNamespace(chart, f"{level}-{field}", name=level, pod_security=level)
            message = SMI.refusal(namespace=space, **given)
            assert message.startswith(f"namespace must be privileged, because {next(iter(given))} ")
            assert SMI.find("DaemonSet", namespace=space)["metadata"]["namespace"] == level
        assert SMI.pod(namespace=GpuNamespace(chart, field, name="open"), **given)[field] is True
    assert SMI.find("DaemonSet", namespace="default")["metadata"]["namespace"] == "default"


# --- images and readings -----------------------------------------------------------------------------------------


def test_the_backend_decides_the_image_the_flag_and_the_architecture():
    assert SMI.container()["image"] == IMAGE
    assert flags()["--collect.backend"] == "exec"
    assert SMI.container(backend="nvml")["image"] == f"{IMAGE}-nvml"
    assert flags(backend="nvml")["--collect.backend"] == "nvml"
    assert SMI.pod(backend="nvml")["nodeSelector"]["kubernetes.io/arch"] == "amd64"
    own = "registry.example/exporter:1.15.0"
    for backend in ("nvidia-smi", "nvml"):
        assert SMI.container(backend=backend, image=own)["image"] == own
        unverified = Unverified("1.15.0", like="1.14.0", image=own)
        assert SMI.container(backend=backend, version=unverified)["image"] == own
    theirs = str(SMI.objects(version=unverified))
    assert theirs.replace(own, IMAGE).replace("1.15.0", "1.14.0") == str(SMI.objects())


def test_only_specified_options_become_flags(expected):
    assert flags() == expected
    said = flags(query_field_names=["power.draw", "fan.speed"], query_field_names_exclude=["ecc.*", "gom.*"])
    assert said["--query-field-names"] == "power.draw,fan.speed"
    assert said["--query-field-names-exclude"] == "ecc.*,gom.*"


def test_the_scrape_interval_is_that_of_readings_in_the_background():
    def times(**given):
        return SMI.endpoint(**given)["interval"], SMI.endpoint(**given)["scrapeTimeout"]

    assert times() == ("30s", "10s")
    assert times(collect_interval_seconds=5) == ("5s", "5s")
    assert flags(collect_interval_seconds=5)["--collect.interval"] == "5s"


def test_the_startup_probe_waits_for_three_calls():
    for given, timeout in (({}, 10), ({"collect_interval_seconds": 300, "collect_timeout_seconds": 120}, 120)):
        probe = SMI.container(**given)["startupProbe"]
        assert probe["periodSeconds"] * probe["failureThreshold"] >= 3 * (timeout + 2)


def test_another_path_reaches_flag_scrape_object_and_annotations():
    for path in ("/metrics", "/gpu/metrics", "/-/metrics", "/.well-known", "/..a", "/debug/pprofile"):
        assert flags(telemetry_path=path)["--web.telemetry-path"] == path
    assert SMI.endpoint(telemetry_path="/gpu")["path"] == "/gpu"
    annotations = SMI.find("Service", scrape="annotations", telemetry_path="/gpu")["metadata"]["annotations"]
    assert annotations["prometheus.io/path"] == "/gpu"
    bad = "metrics / /m/ //m /a/../b /./m /{m} /m%41 /m?x /-/ready /debug/pprof/x".split()
    for path in (*bad, "/m x"):
        assert SMI.refusal(telemetry_path=path).startswith("telemetry_path must be a path like '/metrics'"), path


# --- errors ------------------------------------------------------------------------------------------------------


def test_invalid_options_are_rejected(refused):
    refused(SMI.made, at="gpu/exporter: ")


def test_it_causes_no_warning():
    with warnings.catch_warnings(action="error"):
        chart_with(dashboard=False)
