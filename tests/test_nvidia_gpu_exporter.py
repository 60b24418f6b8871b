import warnings

import pytest
from cdk8s import App, Chart, Testing

import invariants
from gpu_constructs import (
    BasicAuth,
    ExporterService,
    GpuConstructsError,
    GpuNamespace,
    Kubernetes,
    Scrape,
    Tls,
    Toleration,
    Unverified,
    UpdateStrategy,
    Volume,
    pod_security,
)
from gpu_constructs._config_map import sha256
from gpu_constructs.observability.gpu_exporter import GpuExporter
from gpu_constructs.observability.nvidia_gpu_exporter import NvidiaGpuExporter

NAME = "nvidia-gpu-exporter"
IMAGE = "docker.io/utkuozdemir/nvidia_gpu_exporter:1.14.0"
HASH = "$2y$10$" + "a" * 53
AUTH = BasicAuth(users={"prometheus": HASH}, secret="scrape-password")
TLS = Tls(secret="exporter-tls")
BARE = {"scrape": "none", "dashboard": False}


def chart_with(**given):
    chart = Chart(App(), "gpu")
    NvidiaGpuExporter(chart, "exporter", **given)
    return chart


def rendered(**given):
    manifests = Testing.synth(chart_with(**given))
    invariants.hold_for(manifests)
    return manifests


def refusal(**given):
    with pytest.raises(GpuConstructsError) as refused:
        chart_with(**given)
    return str(refused.value).removeprefix("gpu/exporter: ")


def find(manifests, kind, name=NAME):
    (found,) = (m for m in manifests if m["kind"] == kind and m["metadata"]["name"] == name)
    return found


def pod(**given):
    return find(rendered(**{**BARE, **given}), "DaemonSet")["spec"]["template"]["spec"]


def container(**given):
    (only,) = pod(**given)["containers"]
    return only


def flags(**given):
    """The flags by name; True for a switch."""
    said = {}
    words = container(**given)["args"]
    while words:
        flag, *words = words
        said[flag] = words.pop(0) if words and not words[0].startswith("--") else True
    return said


def endpoint(**given):
    return find(rendered(**{"dashboard": False, **given}), "ServiceMonitor")["spec"]["endpoints"][0]


def test_on_talos(objects, snapshot):
    assert objects(chart_with(dashboard=False)) == snapshot


def test_with_everything_on_plain_kubernetes(objects, snapshot):
    chart = chart_with(
        platform=Kubernetes(),
        backend="nvml",
        query_field_names=["power.draw", "power.limit", "utilization.gpu"],
        query_field_names_exclude=["remapped_rows.histogram.*"],
        collect_interval_seconds=15,
        collect_timeout_seconds=20,
        compute_apps=True,
        compute_apps_mig=True,
        pcie_throughput=True,
        tls=TLS,
        basic_auth=AUTH,
        scrape="VMServiceScrape",
        dashboard=False,
        service=ExporterService(internal_traffic_policy="Local", annotations={"team": "gpu"}),
        log_level="debug",
        log_format="json",
        env={"GOMEMLIMIT": "200MiB"},
        volumes={"/captures": Volume.config_map("captures")},
        service_account="puller",
        tolerations=[Toleration(key="dedicated", value="ai", effect="NoSchedule")],
        node_selector={"pool": "gpu"},
        update_strategy=UpdateStrategy.on_delete(),
        pod_labels={"team": "gpu"},
        pod_annotations={"note": "x"},
    )
    assert objects(chart) == snapshot


def test_its_objects_have_fixed_names():
    assert [(m["kind"], m["metadata"]["name"]) for m in rendered()] == [
        ("DaemonSet", NAME),
        ("Service", NAME),
        ("ServiceMonitor", NAME),
        ("ConfigMap", f"{NAME}-dashboard"),
    ]


def test_its_members_say_what_dashboards_and_alerts_ask(chart):
    exporter = NvidiaGpuExporter(chart, "exporter", name="smi", namespace="watch", dashboard=False)
    assert isinstance(exporter, GpuExporter)
    assert (exporter.name, exporter.namespace, exporter.api_object.kind) == ("smi", "watch", "DaemonSet")
    assert (exporter.series.dialect, exporter.series.job, exporter.series.pods) == ("nvidia_smi", "smi", "none")
    assert exporter.series.has("nvidia_smi_power_draw_watts", "nvidia_smi_last_collect_success")


def test_it_cannot_say_the_job_where_somebody_else_scrapes(chart):
    assert NvidiaGpuExporter(chart, "exporter", **BARE).series.job is None


def test_the_series_follow_backend_fields_and_options(chart):
    exporter = NvidiaGpuExporter(
        chart,
        "exporter",
        **BARE,
        backend="nvml",
        query_field_names=["power.draw"],
        compute_apps=True,
        pcie_throughput=True,
    )
    assert exporter.series.has(
        "nvidia_smi_power_draw_watts",
        "nvidia_smi_xid_errors_total",
        "nvidia_smi_compute_apps",
        "nvidia_smi_pcie_throughput_tx_bytes_per_second",
    )
    assert not exporter.series.has("nvidia_smi_power_limit_watts")


# --- no privileges -----------------------------------------------------------------------------------------------

PLAIN = [
    {},
    {"backend": "nvml", "pcie_throughput": True},
    {"tls": TLS, "basic_auth": AUTH},
    {"platform": Kubernetes()},
    {"volumes": {"/captures": Volume.config_map("captures")}},
]


@pytest.mark.parametrize("given", PLAIN)
def test_the_level_restricted_takes_its_pods(given):
    assert pod_security.violations(pod(**given), "restricted") == []


@pytest.mark.parametrize("given", PLAIN)
def test_its_pods_hold_nothing(given):
    spec = pod(**given)
    assert spec["automountServiceAccountToken"] is False
    assert spec["containers"][0]["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "runAsUser": 65534,
    }
    assert not {kind for volume in spec.get("volumes", ()) for kind in volume} & {"hostPath"}


@pytest.mark.parametrize(
    ("given", "field"), [({"compute_apps": True}, "hostPID"), ({"host_network": True}, "hostNetwork")]
)
def test_what_shares_something_of_the_node_needs_a_privileged_namespace(given, field, chart):
    assert pod_security.violations(pod(**given), "baseline") == [f"hostNamespaces: {field} is true"]
    for level in ("restricted", "baseline"):
        space = GpuNamespace(chart, level, name=level, pod_security=level)
        message = refusal(namespace=space, **given)
        assert message.startswith(f"namespace must be privileged, since {next(iter(given))} ")
        assert field in message or "the node's network" in message
    assert pod(namespace=GpuNamespace(chart, "open", name="open"), **given)[field] is True


@pytest.mark.parametrize("level", ["restricted", "baseline", "privileged"])
def test_every_other_namespace_will_do(level, chart):
    space = GpuNamespace(chart, "space", name="watch", pod_security=level)
    assert find(rendered(namespace=space), "DaemonSet")["metadata"]["namespace"] == "watch"


def test_the_namespace_default_will_do():
    assert find(rendered(namespace="default"), "DaemonSet")["metadata"]["namespace"] == "default"


def test_it_sees_every_gpu_and_takes_none():
    only = container(env={"B": "$(A)", "A": "x"})
    assert [variable["name"] for variable in only["env"]] == [
        "NVIDIA_VISIBLE_DEVICES",
        "NVIDIA_DRIVER_CAPABILITIES",
        "B",
        "A",
    ]
    assert [variable["value"] for variable in only["env"]][:2] == ["all", "utility"]
    assert not any("nvidia.com" in name for amounts in only["resources"].values() for name in amounts)


# --- images and places ------------------------------------------------------------------------------------------


def test_the_backend_decides_the_image_the_flag_and_the_architecture():
    assert container()["image"] == IMAGE
    assert flags()["--collect.backend"] == "exec"
    assert pod()["nodeSelector"] == {"nvidia.com/gpu.present": "true"}
    assert container(backend="nvml")["image"] == f"{IMAGE}-nvml"
    assert flags(backend="nvml")["--collect.backend"] == "nvml"
    assert pod(backend="nvml")["nodeSelector"]["kubernetes.io/arch"] == "amd64"


@pytest.mark.parametrize("backend", ["nvidia-smi", "nvml"])
def test_an_image_of_ones_own_is_taken_as_it_is(backend):
    own = "registry.example/exporter:1.15.0"
    assert container(backend=backend, image=own)["image"] == own
    assert container(backend=backend, version=Unverified("1.15.0", like="1.14.0", image=own))["image"] == own


def test_an_unverified_release_differs_by_image_and_version_only():
    own = "registry.example/exporter:1.15.0"
    theirs = str(rendered(**BARE, version=Unverified("1.15.0", like="1.14.0", image=own)))
    assert theirs.replace(own, IMAGE).replace("1.15.0", "1.14.0") == str(rendered(**BARE))


def test_talos_gets_its_runtime_class_and_plain_kubernetes_none():
    assert pod()["runtimeClassName"] == "nvidia"
    assert "runtimeClassName" not in pod(platform=Kubernetes())


def test_the_taint_of_gpu_nodes_is_always_tolerated():
    assert [one["key"] for one in pod(tolerations=[Toleration(key="x", operator="Exists")])["tolerations"]] == [
        "nvidia.com/gpu",
        "x",
    ]


# --- readings ---------------------------------------------------------------------------------------------------


def test_only_what_is_said_becomes_a_flag():
    assert flags() == {
        "--web.listen-address": ":9835",
        "--web.telemetry-path": "/metrics",
        "--nvidia-smi-command": "nvidia-smi",
        "--query-field-names": "AUTO",
        "--collect.backend": "exec",
        "--collect.timeout": "10s",
        "--log.level": "info",
        "--log.format": "logfmt",
    }


def test_fields_are_asked_for_and_left_out_by_name():
    said = flags(query_field_names=["power.draw", "fan.speed"], query_field_names_exclude=["ecc.*", "gom.*"])
    assert said["--query-field-names"] == "power.draw,fan.speed"
    assert said["--query-field-names-exclude"] == "ecc.*,gom.*"


def test_scrapes_wait_for_a_reading_and_no_longer():
    assert (endpoint()["interval"], endpoint()["scrapeTimeout"]) == ("30s", "10s")
    assert "--collect.interval" not in flags()


def test_readings_in_the_background_are_scraped_as_often_as_they_are_made():
    assert flags(collect_interval_seconds=5)["--collect.interval"] == "5s"
    assert (endpoint(collect_interval_seconds=5)["interval"], endpoint()["scrapeTimeout"]) == ("5s", "10s")


def test_the_start_is_given_time_for_three_questions():
    def patience(**given):
        probe = container(**given)["startupProbe"]
        return probe["periodSeconds"] * probe["failureThreshold"]

    assert patience() >= 3 * (10 + 2)
    assert patience(collect_interval_seconds=300, collect_timeout_seconds=120) >= 3 * (120 + 2)


@pytest.mark.parametrize("probe", ["startupProbe", "livenessProbe", "readinessProbe"])
def test_probes_ask_the_endpoints_for_it_and_wait_for_the_answer(probe):
    asked = "healthy" if probe == "livenessProbe" else "ready"
    assert container()[probe]["httpGet"] == {"path": f"/-/{asked}", "port": "http"}
    assert container()[probe]["timeoutSeconds"] == 5
    assert container(tls=TLS)[probe]["httpGet"]["scheme"] == "HTTPS"
    assert container(basic_auth=AUTH)[probe]["tcpSocket"] == {"port": "http"}


# --- found and guarded ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["ServiceMonitor", "PodMonitor", "VMServiceScrape", "VMPodScrape"])
def test_every_kind_of_scrape_object_finds_port_and_path(kind):
    manifest = find(rendered(scrape=kind, scrape_labels={"release": "x"}, telemetry_path="/gpu", dashboard=False), kind)
    (point,) = manifest["spec"].get("endpoints") or manifest["spec"]["podMetricsEndpoints"]
    assert (point["port"], point["path"], manifest["metadata"]["labels"]["release"]) == ("http", "/gpu", "x")


def test_series_say_their_node():
    assert {"action": "replace", "sourceLabels": ["__meta_kubernetes_pod_node_name"], "targetLabel": "node"} in (
        endpoint()["relabelings"]
    )


def test_annotations_say_port_and_path():
    manifest = find(rendered(scrape="annotations", port=9900, telemetry_path="/gpu", dashboard=False), "Service")
    assert manifest["metadata"]["annotations"] == {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": "9900",
        "prometheus.io/path": "/gpu",
        "prometheus.io/scheme": "http",
    }
    assert manifest["spec"]["ports"] == [{"name": "http", "port": 9900, "protocol": "TCP", "targetPort": "http"}]


def test_a_certificate_is_served_and_asked_for():
    manifests = rendered(tls=TLS, dashboard=False)
    text = find(manifests, "ConfigMap", f"{NAME}-web-config")["data"]["web-config.yaml"]
    template = find(manifests, "DaemonSet")["spec"]["template"]
    assert template["metadata"]["annotations"] == {"gpu-constructs/web-config-sha256": sha256(text)}
    assert flags(tls=TLS)["--web.config.file"] == "/etc/gpu-constructs/web/web-config.yaml"
    mounted = {each["mountPath"] for each in template["spec"]["containers"][0]["volumeMounts"]}
    assert mounted == {"/etc/gpu-constructs/web", "/etc/gpu-constructs/tls"}
    assert "/etc/gpu-constructs/tls/tls.crt" in text
    assert endpoint(tls=TLS)["tlsConfig"]["serverName"] == f"{NAME}.gpu-monitoring.svc"


def test_passwords_are_in_a_secret_that_the_pods_user_can_read():
    manifests = rendered(basic_auth=AUTH, dashboard=False)
    assert HASH in find(manifests, "Secret", f"{NAME}-web-config")["stringData"]["web-config.yaml"]
    assert pod(basic_auth=AUTH)["securityContext"]["fsGroup"] == 65534
    assert pod(basic_auth=AUTH)["volumes"] == [
        {"name": "web-config", "secret": {"secretName": f"{NAME}-web-config", "defaultMode": 0o440}}
    ]
    assert endpoint(basic_auth=AUTH)["basicAuth"]["password"] == {"name": "scrape-password", "key": "password"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"backend": "demo"}, "backend must be one of 'nvidia-smi', 'nvml'; got 'demo'"),
        (
            {"query_field_names": ["power.drawn"]},
            "query_field_names[0] must be a field that nvidia-smi knows; got 'power.",
        ),
        (
            {"query_field_names_exclude": ["index"]},
            "query_field_names_exclude[0] must not be 'index': the labels of nvid",
        ),
        ({"query_field_names": "AUTO"}, "query_field_names must be a list, got 'AUTO' (str)"),
        ({"collect_interval_seconds": -1}, "collect_interval_seconds must be at least 0, got -1"),
        ({"collect_timeout_seconds": 0}, "collect_timeout_seconds must be at least 1, got 0"),
        (
            {"collect_timeout_seconds": 15},
            "collect_timeout_seconds must be below 15 while GPUs are read at each scrape, since no answer takes "
            "longer; got 15; set collect_interval_seconds to read in the background",
        ),
        (
            {"pcie_throughput": True},
            "pcie_throughput needs backend='nvml', nvidia-smi does not tell it; got 'nvidia-smi'",
        ),
        ({"compute_apps": True, "compute_apps_mig": True}, "compute_apps_mig needs backend='nvml'"),
        (
            {"backend": "nvml", "compute_apps_mig": True},
            "compute_apps_mig must be False without compute_apps, whose series it labels",
        ),
        (
            {"backend": "nvml", "nvidia_smi_command": "sudo nvidia-smi"},
            "nvidia_smi_command must be left out with backend='nvml', which runs no command; got 'sudo nvidia-smi'",
        ),
        ({"nvidia_smi_command": " "}, "nvidia_smi_command must be a command; got ' '"),
        ({"version": "1.13.0"}, "version of nvidia_gpu_exporter must be one of '1.14.0'; got '1.13.0'"),
        ({"version": Unverified("1.15.0", like="1.14.0")}, "version.image of nvidia_gpu_exporter is required"),
        ({"env": {"NVIDIA_VISIBLE_DEVICES": "0"}}, "env must not hold 'NVIDIA_VISIBLE_DEVICES': this library sets it"),
        ({"name": "x" * 53}, "name must have at most 52 characters, since others follow"),
        ({"namespace": "No"}, "namespace must be a DNS label"),
        ({"port": 0}, "port must be at least 1, got 0"),
        ({"log_level": "trace"}, "log_level must be one of 'debug', 'info', 'warn', 'error'; got 'trace'"),
        ({"service": False}, "service must not be False with scrape='ServiceMonitor'"),
        ({"scrape": "annotations", "tls": TLS}, "scrape must not be 'annotations' with tls or basic_auth"),
        ({"basic_auth": BasicAuth(users={"p": HASH})}, "basic_auth.secret is required for the scrape object"),
        ({"pod_labels": {"app.kubernetes.io/name": "x"}}, "pod_labels must not hold 'app.kubernetes.io/name'"),
        ({"pod_annotations": {"gpu-constructs/x": "y"}}, "pod_annotations must not hold 'gpu-constructs/x'"),
        ({"security_context": {"runAsRoot": True}}, "security_context key must be one of"),
        ({"pod_security_context": {"privileged": True}}, "pod_security_context key must be one of"),
        ({"image": "x:latest"}, "image must be pinned"),
        ({"image_pull_policy": "Sometimes"}, "image_pull_policy must be one of"),
        ({"image_pull_secrets": ["A"]}, "image_pull_secrets must be a DNS subdomain"),
        ({"priority_class_name": "A"}, "priority_class_name must be a DNS subdomain"),
        ({"node_selector": {"a b": "c"}}, "node_selector has a key that is no label key"),
        ({"affinity": {"nodeafinity": {}}}, "affinity key must be one of"),
    ],
)
def test_what_cannot_work_is_refused(given, message):
    assert refusal(**given).startswith(message)


@pytest.mark.parametrize(
    "path",
    ["metrics", "/", "/m/", "//m", "/a/../b", "/./m", "/m x", "/{m}", "/m%41", "/m?x", "/-/ready", "/debug/pprof/x"],
)
def test_paths_at_which_the_exporter_would_end_are_refused(path):
    assert refusal(telemetry_path=path).startswith("telemetry_path must be a path like '/metrics'")


@pytest.mark.parametrize("path", ["/metrics", "/gpu/metrics", "/-/metrics", "/.well-known", "/..a", "/debug/pprofile"])
def test_paths_that_it_serves_are_taken(path):
    assert flags(telemetry_path=path)["--web.telemetry-path"] == path


def test_pods_are_scraped_without_a_service():
    kinds = [m["kind"] for m in rendered(service=False, scrape=Scrape(kind="PodMonitor"), dashboard=False)]
    assert kinds == ["DaemonSet", "PodMonitor"]


def test_nothing_is_warned_of():
    with warnings.catch_warnings(action="error"):
        chart_with(dashboard=False)
