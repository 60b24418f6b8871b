"""The values of NVIDIA's chart of the exporter: every key goes where it should, or is refused with the reason."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from cdk8s import App, Chart, Testing
from hypothesis import given
from hypothesis import strategies as st

import exporter_keys
from gpu_constructs import DcgmExporter, GpuConstructsError, GpuConstructsWarning, Kubernetes, Talos, Unverified
from gpu_constructs.observability.dcgm_helm import KEYS, chart_metrics, exporter_options
from gpu_constructs.observability.exporter_options import DebugDump, ExporterService, MetricsConfigMap
from gpu_constructs.observability.metrics import Metric
from gpu_constructs.observability.pod_mapping import PodMapping
from gpu_constructs.observability.scrape import Relabeling, Scrape
from gpu_constructs.observability.web_config import Tls
from gpu_constructs.placement import Toleration
from gpu_constructs.update_strategy import UpdateStrategy
from gpu_constructs.workload.env import EnvValue
from gpu_constructs.workload.volume import Volume
from test_properties import assert_house_style, quickly

OLD, NEW = exporter_keys.RELEASES
FILES = "/etc/dcgm-exporter"


def options(values: Any, version: Any = NEW, *, strict: bool = True, **given: Any) -> dict[str, Any]:
    where = {"release_name": "dcgm-exporter", "namespace": "gpu", "platform": Kubernetes(), **given}
    return exporter_options(values, version=version, strict=strict, **where)


def refusal(values: Any, version: Any = NEW, **given: Any) -> str:
    with pytest.raises(GpuConstructsError) as refused:
        options(values, version, **given)
    assert_house_style(refused.value)
    return str(refused.value)


def dropped(values: Any, version: Any = NEW) -> tuple[list[str], dict[str, Any]]:
    """What is warned of, and the options all the same."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = options(values, version, strict=False)
    assert {warning.category for warning in caught} <= {GpuConstructsWarning}
    return [str(warning.message) for warning in caught], found


def rendered(values: Any, version: Any = NEW, **given: Any) -> dict[tuple[str, str], Any]:
    chart = Chart(App(), "c")
    where = {"release_name": "dcgm-exporter", "namespace": "gpu", **given}
    DcgmExporter.from_helm_values(chart, "exporter", values, version=version, **where)
    return {(m["kind"], m["metadata"]["name"]): m for m in Testing.synth(chart)}


def fields(metrics: Any) -> set[str]:
    return {metric.field for metric in metrics}


def env(name: str, value: str) -> dict[str, Any]:
    return {"extraEnv": [{"name": name, "value": value}]}


# --- every key ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", exporter_keys.RELEASES)
def test_every_key_of_the_charts_values_is_known_and_no_other(release):
    known, read = exporter_keys.known(release), exporter_keys.read(release)
    assert [leaf for leaf in read if not any(leaf == k or leaf.startswith(f"{k}.") for k in known)] == []
    assert [k for k in known if not any(leaf == k or leaf.startswith(f"{k}.") for leaf in read)] == []


def test_every_key_goes_somewhere_or_says_why_not():
    assert [path for path, key in KEYS.items() if bool(key.to) == bool(key.why_not)] == []


TLS = {"enabled": True, "existingSecret": "s"}
HPC = {
    "extraHostVolumes": [{"name": "hpc", "hostPath": "/run/hpc"}],
    "extraVolumeMounts": [{"name": "hpc", "mountPath": "/run/hpc"}],
}
SAMPLES: list[tuple[dict[str, Any], str, Any]] = [
    ({"image": {"repository": "local/exporter", "tag": "1"}}, "image", "local/exporter:1"),
    ({"image": {"repository": "local/exporter"}}, "image", "local/exporter:4.5.3-4.8.2-distroless"),
    ({"image": {"tag": "1"}}, "image", "nvcr.io/nvidia/k8s/dcgm-exporter:1"),
    ({"image": {"pullPolicy": "Always"}}, "image_pull_policy", "Always"),
    ({"imagePullSecrets": [{"name": "a"}]}, "image_pull_secrets", ["a"]),
    ({"nameOverride": "gpu"}, "name", "dcgm-exporter-gpu"),
    ({"fullnameOverride": "gpu"}, "name", "gpu"),
    ({"fullnameOverride": "a" * 70}, "name", "a" * 52),
    ({"namespaceOverride": "monitoring"}, "namespace", "monitoring"),
    ({"hostPID": True}, "pod_mapping", PodMapping(host_pid=True)),
    ({"runtimeClassName": "nvidia"}, "runtime_class", "nvidia"),
    ({"priorityClassName": "high"}, "priority_class_name", "high"),
    ({"hostNetwork": True}, "host_network", True),
    ({"serviceAccount": {"create": False, "name": "mine"}}, "service_account", "mine"),
    ({"serviceAccount": {"name": "mine"}}, "service_account", None),
    ({"serviceAccount": {"create": False}, "kubernetesDRA": {"enabled": True}}, "service_account", "default"),
    (
        {"rollingUpdate": {"maxUnavailable": "25%"}},
        "update_strategy",
        UpdateStrategy(type="RollingUpdate", max_unavailable="25%"),
    ),
    ({"podLabels": {"a": "b"}}, "pod_labels", {"a": "b"}),
    ({"podAnnotations": {"a": "b"}}, "pod_annotations", {"a": "b"}),
    ({"podSecurityContext": {"fsGroup": 1}}, "pod_security_context", {"fsGroup": 1}),
    (
        {"securityContext": {"readOnlyRootFilesystem": True}},
        "security_context",
        {
            "runAsNonRoot": False,
            "runAsUser": 0,
            "capabilities": {"add": ["SYS_ADMIN"], "drop": ["ALL"]},
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
        },
    ),
    ({"securityContext": {"runAsUser": 0}}, "security_context", None),
    ({"service": {"type": "NodePort"}}, "service", ExporterService(type="NodePort")),
    ({"service": {"clusterIP": "None"}}, "service", ExporterService(cluster_ip="None")),
    ({"service": {"internalTrafficPolicy": "Local"}}, "service", ExporterService(internal_traffic_policy="Local")),
    ({"service": {"annotations": {"a": "b"}}}, "service", ExporterService(annotations={"a": "b"})),
    ({"service": {"enable": False}, "serviceMonitor": {"enabled": False}}, "service", False),
    ({"service": {"port": 9500, "address": ":9500"}}, "port", 9500),
    ({"service": {"port": 9500, "address": "0.0.0.0:9500"}}, "port", 9500),
    (
        {"resources": {"limits": {"cpu": "1"}}},
        "resources",
        {
            "limits": {"cpu": "1", "memory": "512Mi"},
            "requests": {"cpu": "100m", "memory": "128Mi"},
        },
    ),
    (
        {"resources": {"limits": {"memory": "2Gi"}}},
        "resources",
        {
            "limits": {"memory": "2Gi"},
            "requests": {"cpu": "100m", "memory": "128Mi"},
        },
    ),
    ({"serviceMonitor": {"enabled": False}}, "scrape", "none"),
    ({"serviceMonitor": {"interval": "1m"}}, "scrape", Scrape(interval_seconds=60)),
    ({"serviceMonitor": {"scrapeTimeout": "20s"}}, "scrape", Scrape(scrape_timeout_seconds=20)),
    ({"serviceMonitor": {"additionalLabels": {"a": "b"}}}, "scrape", Scrape(labels={"a": "b"})),
    (
        {"serviceMonitor": {"relabelings": [{"sourceLabels": ["a"], "targetLabel": "b"}]}},
        "scrape",
        Scrape(relabelings=[Relabeling(source_labels=["a"], target_label="b")]),
    ),
    (
        {"serviceMonitor": {"relabelings": [{"sourceLabels": ["pod"], "targetLabel": "b"}]}},
        "scrape",
        Scrape(honor_labels=False, relabelings=[Relabeling(source_labels=["pod"], target_label="b")]),
    ),
    (
        {"serviceMonitor": {"metricRelabelings": [{"action": "LabelDrop", "regex": "x"}]}},
        "scrape",
        Scrape(metric_relabelings=[Relabeling(action="labeldrop", regex="x")]),
    ),
    ({"nodeSelector": {"a": "b"}}, "node_selector", {"a": "b"}),
    ({"tolerations": [{"operator": "Exists"}]}, "tolerations", [Toleration(operator="Exists")]),
    ({"tolerations": []}, "tolerations", []),
    ({"tolerations": None}, "tolerations", []),
    ({"affinity": {"podAffinity": {}}}, "affinity", {"podAffinity": {}}),
    (HPC, "volumes", {"/run/hpc": Volume(source={"hostPath": {"path": "/run/hpc"}})}),
    (env("DCGM_HPC_JOB_MAPPING_DIR", "/run/hpc"), "env", {"DCGM_HPC_JOB_MAPPING_DIR": "/run/hpc"}),
    (env("DCGM_EXPORTER_INTERVAL", "15000"), "collect_interval_seconds", 15),
    (env("DCGM_REMOTE_HOSTENGINE_INFO", "$(NODE_IP):5555"), "remote_hostengine", "$(NODE_IP):5555"),
    (env("NVIDIA_RESOURCE_NAMES", "a.b/c"), "pod_mapping", PodMapping(nvidia_resource_names=["a.b/c"])),
    (env("DCGM_EXPORTER_KUBERNETES", "false"), "pod_mapping", False),
    (env("NVIDIA_VISIBLE_DEVICES", "all"), "env", {}),
    (env("DCGM_EXPORTER_INTERVAL", ""), "env", {}),
    (
        {"extraEnv": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}}]},
        "env",
        {"A": EnvValue(value_from={"fieldRef": {"fieldPath": "status.hostIP"}})},
    ),
    (
        {"hostPID": True, "kubernetes": {"enablePodUID": True}, **env("KUBERNETES_VIRTUAL_GPUS", "true")},
        "pod_mapping",
        PodMapping.time_slicing(),
    ),
    ({"arguments": ["-r", "nvidia-dcgm"]}, "remote_hostengine", "nvidia-dcgm:5555"),
    ({"arguments": ["--collect-interval=60000"]}, "collect_interval_seconds", 60),
    ({"arguments": ["-d", "g:0"]}, "env", {"DCGM_EXPORTER_DEVICES_STR": "g:0"}),
    ({"arguments": ["-a", ":9500"], "service": {"port": 9500}}, "port", 9500),
    (
        {
            "hostPID": True,
            "arguments": ["--kubernetes-virtual-gpus", "--kubernetes-enable-pod-uid"],
        },
        "pod_mapping",
        PodMapping.time_slicing(),
    ),
    ({"arguments": ["-c", "60000"], **env("DCGM_EXPORTER_INTERVAL", "1000")}, "collect_interval_seconds", 60),
    ({"kubeletPath": "/k"}, "pod_mapping", PodMapping(kubelet_path="/k")),
    ({"kubernetes": {"enablePodLabels": True}}, "pod_mapping", PodMapping(enable_pod_labels=True)),
    (
        {"kubernetes": {"enablePodLabels": True, "podLabelAllowlistRegex": ["a"]}},
        "pod_mapping",
        PodMapping(enable_pod_labels=True, pod_label_allowlist_regex=["a"]),
    ),
    ({"kubernetesDRA": {"enabled": True}}, "pod_mapping", PodMapping(enable_dra=True)),
    ({"kubernetes": {"rbac": {"create": False}}}, "pod_mapping", True),
    ({"debugDump": {"enabled": True, "retention": 2}}, "debug_dump", DebugDump(retention=2)),
    ({"tlsServerConfig": {**TLS, "certFilename": "c"}}, "tls", Tls(secret="s", cert_filename="c")),
    ({"tlsServerConfig": {"certFilename": "c"}}, "tls", None),
    (
        {"customMetrics": "DCGM_FI_DEV_GPU_UTIL, gauge, x"},
        "metrics",
        [Metric(field="DCGM_FI_DEV_GPU_UTIL", prometheus_type="gauge", help="x")],
    ),
]


@pytest.mark.parametrize(("values", "keyword", "made"), SAMPLES)
def test_a_value_goes_into_its_keyword_and_nowhere_else(values, keyword, made):
    found, usual = options(values), options({})
    assert found.get(keyword) == made
    others = {key for key in {*found, *usual} if found.get(key) != usual.get(key)} - {keyword}
    companions = {"env", "volumes", "scrape", "pod_mapping", "service_account", "service", "metrics"}
    assert others <= companions


def test_every_key_with_a_keyword_has_a_sample():
    said = {path for values, _, _ in SAMPLES for path in KEYS if at(values, path)}
    unsaid = {path for path, key in KEYS.items() if key.to and not key.to.startswith("nothing")} - said
    covered_elsewhere = {
        "service.address",
        "extraConfigMapVolumes",
        "serviceMonitor.honorLabels",
        "rollingUpdate.maxSurge",
        "debugDump.compression",
        *(f"tlsServerConfig.{word}" for word in ("keyFilename", "caFilename", "clientAuthType")),
    }
    assert unsaid <= covered_elsewhere


def at(values: Any, path: str) -> bool:
    for word in path.split("."):
        if not isinstance(values, dict) or word not in values:
            return False
        values = values[word]
    return True


@pytest.mark.parametrize("release", exporter_keys.RELEASES)
def test_stating_all_that_the_chart_has_anyway_scrapes_as_the_chart_does(release):
    said: dict[str, Any] = {}
    for path, key in KEYS.items():
        if key.default is not None and release in (key.releases or (release,)):
            *parents, last = path.split(".")
            place = said
            for parent in parents:
                place = place.setdefault(parent, {})
            place[last] = key.default
    stated, unsaid = rendered(said, release), rendered({}, release)
    monitor = stated.pop(("ServiceMonitor", "dcgm-exporter"))["spec"]["endpoints"][0]
    assert (monitor["interval"], monitor["honorLabels"]) == ("15s", False)
    del unsaid["ServiceMonitor", "dcgm-exporter"]
    stated["DaemonSet", "dcgm-exporter"]["spec"]["updateStrategy"]["rollingUpdate"].pop("maxSurge")
    stated["Service", "dcgm-exporter"]["spec"].pop("internalTrafficPolicy", None)
    assert stated == unsaid


def test_the_chart_makes_no_dashboard():
    for values in ({}, {"serviceMonitor": {"enabled": False}}):
        assert options(values)["dashboard"] is False
    assert not [name for kind, name in rendered({}) if name.endswith("-dashboard")]


# --- metrics -----------------------------------------------------------------------------------------------------


def mounted(name: str, path: str, **source: Any) -> dict[str, Any]:
    return {
        "extraConfigMapVolumes": [{"name": "m", "configMap": {"name": name, **source}}],
        "extraVolumeMounts": [{"name": "m", "mountPath": path}],
    }


@pytest.mark.parametrize(
    ("version", "values", "made"),
    [
        (OLD, {}, "default"),
        (NEW, {}, list(chart_metrics(NEW))),
        (NEW, {"extraVolumeMounts": []}, "default"),
        (NEW, {"extraConfigMapVolumes": [], "extraVolumeMounts": []}, "default"),
        (NEW, {"arguments": ["-f", f"{FILES}/dcp-metrics-included.csv"]}, "default"),
        (NEW, {"arguments": []}, list(chart_metrics(NEW))),
        (OLD, {"arguments": ["-m", "gpu:exporter-metrics-config-map"]}, list(chart_metrics(OLD))),
        (OLD, env("DCGM_EXPORTER_CONFIGMAP_DATA", "gpu:mine"), MetricsConfigMap(config_map="mine", is_profiled=True)),
        (
            OLD,
            {"arguments": ["-f", "/x/a.csv"], **mounted("mine", "/x")},
            MetricsConfigMap(config_map="mine", key="a.csv", is_profiled=True),
        ),
        (
            OLD,
            {"arguments": ["-f", "/x/a.csv"], **mounted("mine", "/x", items=[{"key": "k", "path": "a.csv"}])},
            MetricsConfigMap(config_map="mine", key="k", is_profiled=True),
        ),
        (
            NEW,
            {
                "arguments": ["-f", "/x/a.csv"],
                **mounted("mine", "/x"),
                "securityContext": {"capabilities": {"add": None}},
            },
            MetricsConfigMap(config_map="mine", key="a.csv"),
        ),
        (
            NEW,
            {
                "arguments": ["-f", "/x/a.csv"],
                **mounted("exporter-metrics-config-map", "/x", items=[{"key": "metrics", "path": "a.csv"}]),
            },
            list(chart_metrics(NEW)),
        ),
    ],
)
def test_the_metrics_are_those_that_the_pods_of_the_chart_really_read(version, values, made):
    assert options(values, version)["metrics"] == made


def test_the_old_image_has_another_list_without_profiling():
    listed = options({"arguments": ["-f", f"{FILES}/default-counters.csv"]}, OLD)["metrics"]
    assert "DCGM_FI_DEV_PCIE_TX_THROUGHPUT" in fields(listed)
    assert not [field for field in fields(listed) if field.startswith("DCGM_FI_PROF_")]


def test_without_sys_admin_profiling_metrics_are_left_out_with_a_warning():
    values = {"securityContext": {"capabilities": {"add": None}}}
    with pytest.warns(GpuConstructsWarning, match="profiling metrics are left out: values.securityContext holds no"):
        listed = options(values)["metrics"]
    assert fields(chart_metrics(NEW)) - fields(listed) == {f for f in fields(chart_metrics(NEW)) if "_PROF_" in f}


def test_only_profiling_metrics_without_sys_admin_leave_nothing():
    values = {"securityContext": None, "customMetrics": "DCGM_FI_PROF_DRAM_ACTIVE, gauge, x"}
    with warnings.catch_warnings(action="ignore"):
        assert "values.customMetrics holds only profiling metrics" in refusal(values)
    told, found = dropped(values)
    assert any("values.customMetrics is dropped" in text for text in told)
    assert fields(found["metrics"]) < fields(chart_metrics(NEW))


CUSTOM = {
    "comments and blank lines": ("# c\n\nDCGM_FI_DEV_GPU_UTIL, gauge, x\n", ["x"]),
    "blanks at the margin": ("  DCGM_FI_DEV_GPU_UTIL, gauge, x\n  # c\n", ["x"]),
    "a comma in quotes": ('DCGM_FI_DEV_GPU_UTIL,gauge,"a, b"', ["a; b"]),
    "quotes in quotes": ('DCGM_FI_DEV_GPU_UTIL,gauge,"a ""b"""', ["a 'b'"]),
}


@pytest.mark.parametrize("name", CUSTOM)
def test_a_csv_is_read_as_the_exporter_reads_it(name):
    text, helps = CUSTOM[name]
    assert [metric.help for metric in options({"customMetrics": text})["metrics"]] == helps


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("DCGM_FI_DEV_FB_USED, gauge, a, b", "line 2 must hold field, type and help"),
        ("DCGM_FI_DEV_FB_USED, gauge", "line 2 must hold field, type and help"),
        (' DCGM_FI_DEV_FB_USED, gauge, "a"', "line 2 must quote whole fields"),
        ('DCGM_FI_DEV_FB_USED,gauge,"a', "line 2 must quote whole fields"),
        ("DCGM_FI_DEV_FB_USD, gauge, a", "line 2: "),
        ("DCGM_FI_DEV_FB_USED, summary, a", "line 2: "),
        ("dcgm_gpu_temp, gauge, a", "line 2: "),
        ("DCGM_FI_DEV_GPU_UTIL, gauge, a", "has DCGM_FI_DEV_GPU_UTIL twice, again in line 2"),
    ],
)
def test_a_line_at_which_the_exporter_would_end_is_refused_or_dropped(line, problem):
    values = {"customMetrics": f"DCGM_FI_DEV_GPU_UTIL, gauge, x\n{line}"}
    assert problem in refusal(values)
    told, found = dropped(values)
    assert [text for text in told if problem in text]
    assert fields(found["metrics"]) == {"DCGM_FI_DEV_GPU_UTIL"}


# --- refused -----------------------------------------------------------------------------------------------------

REFUSED: list[tuple[Any, str, Any, str]] = [
    (OLD, "customMetrics", "a", "is no key of release 3.4.2"),
    (OLD, "tlsServerConfig", {"enabled": True}, "is no key of release 3.4.2"),
    (NEW, "serviceMonitors", {"enabled": True}, "did you mean 'serviceMonitor'?"),
    (NEW, "hostNetwork", "true", "write it without quotes"),
    (NEW, "basicAuth", {"users": {"admin": "hunter2"}}, "it holds passwords"),
    (NEW, "initContainers", [{"name": "a"}], "patch api_object"),
    (NEW, "livenessProbe", {"periodSeconds": 9}, "a startup probe waits"),
    (NEW, "serviceAccount", {"annotations": {"a": "b"}}, "asks the API server only"),
    (NEW, "debugDump", {"enabled": True, "directory": "/x"}, "live in a volume of the pod"),
    (NEW, "tlsServerConfig", {"enabled": True}, "must come with existingSecret"),
    (NEW, "tlsServerConfig", {"enabled": True, "cert": "CERT", "key": "KEY"}, "must come with existingSecret"),
    (NEW, "tlsServerConfig", {**TLS, "cert": "CERT"}, "is not read beside existingSecret"),
    (NEW, "tlsServerConfig", {"enabled": True, "existingSecret": "{{ .Release.Name }}"}, "existingSecret"),
    (NEW, "tlsServerConfig", {**TLS, "clientAuthType": "RequireAnyClientCert"}, "values.serviceMonitor.enabled"),
    (NEW, "tlsServerConfig", {**TLS, "clientAuthType": "Never"}, "cannot be taken over: tls.client_auth_type"),
    (NEW, "service", {"port": 9500}, "would listen on ':9400', where probes and the Service ask for port 9500"),
    (NEW, "service", {"address": ":9500"}, "must go with the other"),
    (NEW, "service", {"address": "127.0.0.1:9400"}, "must name no host"),
    (NEW, "service", {"enable": False}, "must be true with serviceMonitor.enabled"),
    (NEW, "service", {"type": "ExternalName"}, "cannot be taken over: service.type"),
    (NEW, "serviceMonitor", {"apiVersion": "azmonitoring.coreos.com/v1"}, "must be 'monitoring.coreos.com/v1'"),
    (NEW, "serviceMonitor", {"interval": "1500ms"}, "must be whole seconds"),
    (NEW, "serviceMonitor", {"interval": "soon"}, "cannot be taken over: interval"),
    (NEW, "serviceMonitor", {"interval": "10s", "scrapeTimeout": "20s"}, "must be at most the interval of 10s"),
    (NEW, "serviceMonitor", {"relabelings": [{"action": "nope"}]}, "values.serviceMonitor.relabelings[0]"),
    (NEW, "serviceMonitor", {"additionalLabels": {"a": 1}}, "quote it"),
    (NEW, "image", {"tag": ""}, "would make the tag '4.8.2', which no image has"),
    (NEW, "kubernetes", {"enablePodLabels": True, "rbac": {"create": False}}, "the exporter could not read pods"),
    (NEW, "kubernetes", {"enablePodLabels": True, "podLabelAllowlistRegex": ["a{1,2}"]}, "without a comma"),
    (NEW, "securityContext", {"privileged": True}, "allowPrivilegeEscalation must be true with privileged"),
    (NEW, "securityContext", {"capabilites": {}}, "security_context key"),
    (NEW, "resources", {"limits": {"memory": "1Ki"}, "requests": {"memory": "1Ki"}}, "a few MiB"),
    (NEW, "podLabels", {"app.kubernetes.io/name": "x"}, "which this library sets"),
    (NEW, "tolerations", [{"key": "a", "operator": "Nope"}], "values.tolerations[0]"),
    (NEW, "arguments", ["--nope"], "is no flag of the exporter, which would end at once"),
    (OLD, "arguments", ["--log-format", "json"], "is no flag of the exporter"),
    (NEW, "arguments", ["x"], "must be a flag"),
    (NEW, "arguments", ["-c"], "must have a value"),
    (NEW, "arguments", ["-c", "1500"], "make whole seconds"),
    (NEW, "arguments", ["-k=maybe"], "must be true or false"),
    (NEW, "arguments", ["-r", "a b:1"], "must be 'host:port'"),
    (NEW, "arguments", ["-o"], "that dashboards and alerts ask for"),
    (NEW, "arguments", ["--web-config-file", "/x"], "pass tls= or basic_auth="),
    (NEW, "arguments", ["-f", "/x.csv"], "must name a list of the image or of extraConfigMapVolumes"),
    (NEW, "arguments", ["-m", "elsewhere:mine"], "must name a ConfigMap of the exporter's namespace 'gpu'"),
    (NEW, "extraEnv", [{"name": "GOMEMLIMIT", "value": "1GiB"}], "must not set GOMEMLIMIT"),
    (NEW, "extraEnv", [{"name": "A", "value": 1}], "quote it"),
    (NEW, "extraEnv", [{"name": "DCGM_EXPORTER_LISTEN", "valueFrom": {"fieldRef": {}}}], "must say DCGM_EXPORTER"),
    (NEW, "extraVolumeMounts", [{"name": "x", "mountPath": "/x"}], "must name one of the extra volumes"),
    (NEW, "extraHostVolumes", [{"name": "x", "hostPath": "/x"}], "is mounted nowhere"),
    (NEW, "extraConfigMapVolumes", [], "takes away the volume that the chart's own mount names"),
]


@pytest.mark.parametrize(("version", "key", "value", "problem"), REFUSED)
def test_what_cannot_be_taken_over_is_refused_by_its_key_or_dropped(version, key, value, problem):
    refused = refusal({key: value}, version)
    assert "values." in refused
    assert problem in refused
    told, found = dropped({key: value}, version)
    assert [text for text in told if text.startswith("values.") and problem in text]
    for secret in ("hunter2", "CERT", "KEY"):
        assert secret not in refused
    with warnings.catch_warnings(action="ignore"):
        assert found["name"] == "dcgm-exporter"
        assert rendered({key: value}, version, strict=False)["DaemonSet", "dcgm-exporter"]


def test_the_old_exporter_takes_no_options_of_newer_ones():
    problem = "values.extraEnv[0] cannot be taken over: pod_mapping.virtual_gpus must be left out with version '3.4.2'"
    assert problem in refusal(env("KUBERNETES_VIRTUAL_GPUS", "true"), OLD)


def test_dropped_tls_leaves_no_half_of_it():
    with warnings.catch_warnings(action="ignore"):
        found = rendered({"tlsServerConfig": {"enabled": True, "clientAuthType": "RequireAnyClientCert"}}, strict=False)
    (container,) = found["DaemonSet", "dcgm-exporter"]["spec"]["template"]["spec"]["containers"]
    assert "DCGM_EXPORTER_WEB_CONFIG_FILE" not in {variable["name"] for variable in container["env"]}
    assert container["readinessProbe"]["httpGet"].get("scheme") is None
    assert "scheme" not in found["ServiceMonitor", "dcgm-exporter"]["spec"]["endpoints"][0]
    assert not [kind for kind, name in found if "web-config" in name or kind == "Secret"]


def test_where_clients_must_show_a_certificate_tls_stays_whole_and_nothing_is_scraped():
    values = {"tlsServerConfig": {**TLS, "clientAuthType": "RequireAndVerifyClientCert"}}
    told, found = dropped(values)
    assert found["tls"] == Tls(secret="s", client_auth_type="RequireAndVerifyClientCert")
    assert found["scrape"] == "none"
    assert len(told) == 1


@pytest.mark.parametrize(
    ("values", "port"),
    [({"port": 9500}, 9400), ({"address": ":9500"}, 9400), ({"port": 9500, "address": ":9600"}, 9500)],
)
def test_of_two_ports_the_one_that_is_kept_serves_both(values, port):
    _, found = dropped({"service": values})
    assert found["port"] == port


# --- versions, platforms, arguments ------------------------------------------------------------------------------


def test_a_version_that_was_not_checked_reads_the_keys_of_the_one_it_is_like():
    version = Unverified("4.9.0", like="4.8.2", image="nvcr.io/nvidia/k8s/dcgm-exporter:4.9.0-x")
    assert options({"image": {"repository": "a"}}, version)["image"] == "a:4.9.0-x"
    found = rendered({}, version)["DaemonSet", "dcgm-exporter"]
    assert found["metadata"]["labels"]["app.kubernetes.io/version"] == "4.9.0"


def test_the_newest_release_takes_the_values_of_the_newest_chart():
    assert options({"customMetrics": "DCGM_FI_DEV_GPU_UTIL, gauge, x"}, "4.8.3")["metrics"]


def test_the_platform_says_what_the_values_cannot():
    found = rendered({}, platform=Talos("1.13"))["DaemonSet", "dcgm-exporter"]
    assert found["spec"]["template"]["spec"]["runtimeClassName"] == "nvidia"
    assert "runtimeClassName" not in rendered({})["DaemonSet", "dcgm-exporter"]["spec"]["template"]["spec"]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"values": "a: 1"}, "values must be a mapping"),
        ({"release_name": 1}, "release_name must be"),
        ({"release_name": "a" * 60}, "release_name must have at most 53 characters"),
        ({"version": "4.8.1"}, "version of the DCGM exporter must be one of"),
        ({"strict": "no"}, "strict must be"),
    ],
)
def test_bad_arguments_are_refused(given, problem):
    assert problem in refusal(given.pop("values", {}), **given)


def test_errors_say_where_the_exporter_is():
    with pytest.raises(GpuConstructsError, match=r"^c/exporter: values\.typo is no key"):
        rendered({"typo": 1})


_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 70000) | st.sampled_from(["", "a", "true", "1s", ":9400", "a b", "/x"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["name", "key", "a"]), inner, max_size=2)
    ),
    max_leaves=4,
)


@quickly
@given(st.dictionaries(st.sampled_from(sorted(KEYS)), _ANYTHING, max_size=3), st.sampled_from([OLD, NEW]))
def test_whatever_the_values_are_they_make_options_or_a_house_error(flat, version):
    values: dict[str, Any] = {}
    for path, value in flat.items():
        *parents, last = path.split(".")
        place = values
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = value
    with warnings.catch_warnings(action="ignore"):
        assert options(values, version, strict=False)["name"] == "dcgm-exporter"
        try:
            options(values, version)
        except GpuConstructsError as error:
            assert_house_style(error)
