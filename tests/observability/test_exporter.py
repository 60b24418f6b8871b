"""Tests of the parts that both exporters share."""

import warnings

import pytest
from cdk8s import ApiObject

from exporter_rendering import Rendering
from gpu_constructs import (
    BasicAuth,
    DcgmExporter,
    DebugDump,
    ExporterService,
    GpuConstructsWarning,
    Kubernetes,
    MetricsConfigMap,
    NvidiaGpuExporter,
    NvidiaRuntimeClass,
    Tls,
    Toleration,
    Volume,
)
from gpu_constructs.kube.config_map import sha256
from gpu_constructs.observability.gpu_series import GpuExporter
from gpu_constructs.observability.scrape import SCRAPE_KINDS

DCGM = Rendering(DcgmExporter, "dcgm-exporter")
SMI = Rendering(NvidiaGpuExporter, "nvidia-gpu-exporter")
EACH = pytest.mark.parametrize("exporter", [DCGM, SMI], ids=["dcgm", "nvidia_smi"])
PROBES = ("startupProbe", "livenessProbe", "readinessProbe")
USERS = {"prometheus": "$2y$10$" + "a" * 53}
AUTH = BasicAuth(users=USERS, secret="scrape")
TLS = Tls(secret="certificate")
TAINT = Toleration(key="dedicated", value="ai", effect="NoSchedule")


@EACH
def test_names_and_series_are_those_of_the_exporter(exporter):
    made = exporter.made(name="gpus", namespace="watch", dashboard=False)
    assert isinstance(made, GpuExporter)
    assert (made.name, made.namespace, made.api_object.kind) == ("gpus", "watch", "DaemonSet")
    assert (made.series.job, exporter.made(scrape="none").series.job) == ("gpus", None)
    namespaces = {one["metadata"]["namespace"] for one in exporter.objects(namespace="watch", dashboard=True)}
    assert namespaces == {"watch"}


@EACH
def test_the_label_instance_distinguishes_pods(exporter):
    def instance(**given):
        return exporter.daemonset(**given)["spec"]["selector"]["matchLabels"]["app.kubernetes.io/instance"]

    assert (instance(), instance(name="second"), instance(instance="blue")) == ("exporter", "second", "blue")


@EACH
def test_service_and_scrape_objects_find_the_pods_and_their_port(exporter):
    template = exporter.daemonset()["spec"]["template"]
    (port,) = template["spec"]["containers"][0]["ports"]
    service = exporter.find("Service")
    assert service["spec"]["selector"].items() <= template["metadata"]["labels"].items()
    assert [(one["name"], one["targetPort"]) for one in service["spec"]["ports"]] == [(port["name"], port["name"])]
    for kind in SCRAPE_KINDS[:4]:
        found = exporter.find(kind, scrape=kind, scrape_labels={"release": "x"})
        of = template if "Pod" in kind else service
        assert found["spec"]["selector"]["matchLabels"].items() <= of["metadata"]["labels"].items(), kind
        assert exporter.endpoint(scrape=kind)["port"] == port["name"], kind
        assert found["metadata"]["labels"]["release"] == "x", kind
        kinds = [one["kind"] for one in exporter.objects(scrape=kind)]
        assert [one for one in kinds if one in SCRAPE_KINDS] == [kind]


@EACH
def test_pods_are_scraped_without_a_service_or_not_at_all(exporter):
    for kind in ("PodMonitor", "VMPodScrape"):
        assert "Service" not in [one["kind"] for one in exporter.objects(service=False, scrape=kind)]
    assert not {one["kind"] for one in exporter.objects(scrape="none")} & {*SCRAPE_KINDS}


@EACH
def test_annotations_on_the_service_are_for_a_prometheus_that_looks_for_them(exporter, expected):
    service = exporter.find("Service", scrape="annotations", port=9500)
    assert service["metadata"]["annotations"] == expected
    with warnings.catch_warnings(action="error"):
        exporter.objects(pod_annotations={"prometheus.io/scrape": "true"}, scrape="annotations")
    with pytest.warns(GpuConstructsWarning) as warned:
        exporter.objects(pod_annotations={"prometheus.io/scrape": "true"})
    assert [str(one.message) for one in warned] == [
        "pod_annotations contains 'prometheus.io/scrape', but the exporter also has scrape='ServiceMonitor'. If "
        "one Prometheus reads both, it scrapes the exporter twice. Remove the annotation, or pass scrape='annotations'"
    ]


@EACH
def test_flags_container_and_service_have_the_same_port(exporter):
    assert exporter.container(port=9500)["ports"][0]["containerPort"] == 9500
    assert exporter.find("Service", port=9500)["spec"]["ports"][0]["port"] == 9500
    assert ":9500" in str(exporter.container(port=9500))


@EACH
def test_the_dashboard_carries_the_label_of_the_sidecar_and_can_be_left_out(exporter):
    board = exporter.find("ConfigMap", called="-dashboard", dashboard=True)
    assert board["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert list(board["data"]) == [f"{exporter.name}.json"]
    assert "-dashboard" not in str(exporter.objects())


# --- pods --------------------------------------------------------------------


@EACH
def test_it_runs_on_gpu_nodes_under_the_nvidia_runtime_and_takes_no_slot(exporter, chart):
    spec = exporter.pod()
    assert spec["nodeSelector"] == {"nvidia.com/gpu.present": "true"}
    assert spec["runtimeClassName"] == "nvidia"
    assert spec["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
    assert (spec["automountServiceAccountToken"], spec["enableServiceLinks"]) == (False, False)
    assert "priorityClassName" not in spec
    assert "nvidia.com/gpu" not in str(spec["containers"][0]["resources"])
    assert "cpu" not in spec["containers"][0]["resources"]["limits"]
    assert exporter.variables()["NVIDIA_VISIBLE_DEVICES"] == "all"
    assert exporter.daemonset()["spec"]["updateStrategy"]["rollingUpdate"] == {"maxUnavailable": 1}
    assert "runtimeClassName" not in exporter.pod(platform=Kubernetes())
    named = NvidiaRuntimeClass(chart, "runtime-class", name="gpu-runtime")
    assert exporter.pod(platform=Kubernetes(), runtime_class=named)["runtimeClassName"] == "gpu-runtime"


@EACH
def test_options_of_pods_reach_them(exporter, snapshot, keywords):
    everything = exporter.daemonset(**keywords)
    assert [everything] == snapshot


@EACH
def test_a_volume_of_the_user_named_like_one_of_the_exporter_gets_another_name(exporter):
    own = Volume.config_map("own")
    found = exporter.volumes(tls=TLS, volumes={"/tls": own, "/data": own})
    paths = {mount["mountPath"]: name for name, (_, mount) in found.items()}
    assert (paths["/tls"], paths["/data"]) == ("tls-1", "data")
    assert found["tls-1"][0] == {"configMap": {"name": "own"}}


def test_a_mount_path_of_the_exporter_is_rejected():
    for path in ("/tmp", "/tmp/", "//tmp", "///tmp", "/./tmp", "/etc/gpu-constructs/tls"):
        message = DCGM.refusal(volumes={path: Volume.empty_dir()}, tls=TLS)
        assert message == f"volumes must not contain {path!r}, which the exporter uses. Choose another path"


# --- TLS and passwords -------------------------------------------------------


@EACH
def test_a_certificate_is_served_asked_for_and_restarts_the_pods(exporter):
    text = exporter.find("ConfigMap", called="-web-config", tls=TLS)["data"]["web-config.yaml"]
    assert "cert_file: /etc/gpu-constructs/tls/tls.crt" in text
    annotations = exporter.daemonset(tls=TLS)["spec"]["template"]["metadata"]["annotations"]
    assert annotations["gpu-constructs/web-config-sha256"] == sha256(text)
    found = exporter.volumes(tls=TLS)
    assert found["tls"][0]["secret"] == {"secretName": "certificate", "defaultMode": 0o440}
    assert found["web-config"][0] == {"configMap": {"name": f"{exporter.name}-web-config"}}
    assert "/etc/gpu-constructs/web/web-config.yaml" in str(exporter.container(tls=TLS))
    for probe in PROBES:
        assert exporter.container(tls=TLS)[probe]["httpGet"]["scheme"] == "HTTPS"
    endpoint = exporter.endpoint(tls=TLS, namespace="watch")
    assert endpoint["scheme"] == "https"
    assert endpoint["tlsConfig"]["serverName"] == f"{exporter.name}.watch.svc"


@EACH
def test_hashes_of_passwords_are_in_a_secret_and_a_new_one_restarts_the_pods(exporter):
    secret = exporter.find("Secret", called="-web-config", basic_auth=AUTH)
    assert USERS["prometheus"] in secret["stringData"]["web-config.yaml"]
    source = {"secretName": f"{exporter.name}-web-config", "defaultMode": 0o440}
    assert exporter.volumes(basic_auth=AUTH)["web-config"][0] == {"secret": source}
    assert exporter.endpoint(basic_auth=AUTH)["basicAuth"]["password"] == {"name": "scrape", "key": "password"}
    other = BasicAuth(users={"prometheus": "$2y$10$" + "b" * 53}, secret="scrape")
    first, second = (exporter.daemonset(basic_auth=auth)["spec"]["template"]["metadata"] for auth in (AUTH, other))
    assert first["annotations"] != second["annotations"]


def test_probes_only_connect_if_the_exporter_requires_a_password_or_certificate():
    guards = (
        {"basic_auth": AUTH},
        {"tls": Tls(secret="certificate", client_auth_type="RequireAndVerifyClientCert", client_secret="client")},
    )
    for exporter, paths in ((DCGM, ("/health",) * 3), (SMI, ("/-/ready", "/-/healthy", "/-/ready"))):
        for probe, path in zip(PROBES, paths, strict=True):
            asked = exporter.container()[probe]
            assert asked["httpGet"] == {"path": path, "port": exporter.container()["ports"][0]["name"]}
            assert asked["timeoutSeconds"] == 5
            for guard in guards:
                asked = exporter.container(**guard)[probe]
                assert ("tcpSocket" in asked, "httpGet" in asked) == (True, False)


# --- errors ------------------------------------------------------------------


@EACH
def test_options_that_no_exporter_supports_are_rejected(exporter, refused):
    refused(exporter.made, at="gpu/exporter: ")
    named = f"scrap is not a keyword of {exporter.exporter.__name__} (did you mean 'scrape'?)"
    assert exporter.refusal(scrap=1) == named


def test_an_option_that_cannot_work_is_refused(refused):
    refused(MetricsConfigMap, ExporterService, DebugDump)


def test_a_metrics_config_map_is_a_name_or_an_object(chart):
    made = ApiObject(chart, "list", api_version="v1", kind="ConfigMap")
    assert MetricsConfigMap(config_map=made) == MetricsConfigMap(config_map=made.name)
