import json

import pytest
from cdk8s import App, Chart, Testing

from gpu_constructs import (
    DcgmExporter,
    GpuConstructsError,
    GpuNamespace,
    Kubernetes,
    Metric,
    NvidiaRuntimeClass,
    Toleration,
    Unverified,
)
from gpu_constructs._config_map import sha256
from gpu_constructs.observability.metrics import counters_csv, default_metrics

NAME = "dcgm-exporter"
TAINT = Toleration(key="dedicated", value="ai", effect="NoSchedule")
IMAGES = {
    "3.4.2": "nvcr.io/nvidia/k8s/dcgm-exporter:3.3.6-3.4.2-ubuntu22.04",
    "4.8.2": "nvcr.io/nvidia/k8s/dcgm-exporter:4.5.3-4.8.2-distroless",
    "4.8.3": "nvcr.io/nvidia/k8s/dcgm-exporter:4.6.0-4.8.3-distroless",
}
SCRAPES = ["ServiceMonitor", "PodMonitor", "VMServiceScrape"]
UTILISATION = Metric(field="DCGM_FI_DEV_GPU_UTIL", prometheus_type="gauge", help="Percent busy")
TENSOR = Metric(field="DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", prometheus_type="gauge", help="Tensor pipe busy")


def chart_with(**given):
    chart = Chart(App(), "gpu")
    DcgmExporter(chart, "exporter", **given)
    return chart


def rendered(**given):
    return Testing.synth(chart_with(**given))


def refusal(**given):
    with pytest.raises(GpuConstructsError) as refused:
        chart_with(**given)
    return str(refused.value)


def find(manifests, kind, name=NAME):
    (found,) = (m for m in manifests if m["kind"] == kind and m["metadata"]["name"] == name)
    return found


def daemonset(**given):
    return find(rendered(**{"scrape": "none", "dashboard": False, **given}), "DaemonSet")


def pod(**given):
    return daemonset(**given)["spec"]["template"]["spec"]


def container(**given):
    (only,) = pod(**given)["containers"]
    return only


def csv(**given):
    manifests = rendered(**{"scrape": "none", "dashboard": False, **given})
    return find(manifests, "ConfigMap", "dcgm-exporter-metrics")["data"]["metrics.csv"]


def brief(manifests):
    """The metrics and the dashboard have tests of their own; here only that they are there."""
    return [
        {**m, "data": dict.fromkeys(m["data"], f"({m['metadata']['name']})")} if m["kind"] == "ConfigMap" else m
        for m in manifests
    ]


@pytest.mark.parametrize("version", IMAGES)
def test_every_release_on_talos(version, objects, snapshot):
    assert brief(objects(chart_with(version=version))) == snapshot


@pytest.mark.parametrize("scrape", SCRAPES)
def test_every_scrape_object(scrape, objects, snapshot):
    manifests = objects(chart_with(scrape=scrape, scrape_labels={"release": "kube-prometheus-stack"}))
    assert [find(manifests, scrape)] == snapshot


def test_plain_kubernetes_with_own_metrics_and_without_extras(objects, snapshot):
    chart = chart_with(platform=Kubernetes(), metrics=[UTILISATION], scrape="none", dashboard=False)
    assert objects(chart) == snapshot


def test_its_objects_have_fixed_names():
    assert [(m["kind"], m["metadata"]["name"]) for m in rendered()] == [
        ("ConfigMap", "dcgm-exporter-metrics"),
        ("DaemonSet", "dcgm-exporter"),
        ("Service", "dcgm-exporter"),
        ("ConfigMap", "dcgm-exporter-dashboard"),
        ("ServiceMonitor", "dcgm-exporter"),
    ]


def test_the_daemonset_is_its_main_object(chart):
    exporter = DcgmExporter(chart, "exporter")
    assert (exporter.api_object.kind, exporter.api_object.name) == ("DaemonSet", NAME)


@pytest.mark.parametrize("version", IMAGES)
def test_a_release_is_an_image_and_the_metrics_it_has_by_default(version):
    assert container(version=version)["image"] == IMAGES[version]
    assert csv(version=version) == counters_csv(default_metrics(version))


def test_the_newest_release_that_works_is_the_default():
    assert rendered() == rendered(version="4.8.3")


def test_an_unverified_release_takes_the_image_it_is_given():
    image = "registry.example/dcgm-exporter:4.7.0-4.9.0"
    assert container(version=Unverified("4.9.0", like="4.8.3", image=image))["image"] == image


@pytest.mark.parametrize("like", IMAGES)
def test_an_unverified_release_differs_from_the_one_it_is_like_by_image_and_version_only(like):
    # 3.3.0 is older than the releases that 4.x rules are for, and 9.9.9 newer than those that 3.x rules are for.
    for version in ("3.3.0", "9.9.9"):
        image = f"registry.example/dcgm-exporter:{version}"
        text = json.dumps(rendered(version=Unverified(version, like=like, image=image)))
        assert json.loads(text.replace(image, IMAGES[like]).replace(version, like)) == rendered(version=like)


@pytest.mark.parametrize("version", IMAGES)
def test_utilisation_memory_temperature_power_and_clocks_are_always_there(version):
    text = csv(version=version)
    for field in ("GPU_UTIL", "FB_USED", "FB_FREE", "GPU_TEMP", "POWER_USAGE", "SM_CLOCK", "MEM_CLOCK"):
        assert f"\nDCGM_FI_DEV_{field}, gauge, " in text


def test_own_metrics_replace_the_list():
    assert csv(metrics=[UTILISATION]) == counters_csv([UTILISATION])


def test_the_pods_read_the_list_and_restart_when_it_changes():
    first, second = (daemonset(metrics=metrics) for metrics in ([UTILISATION], [UTILISATION, TENSOR]))
    checksums = [m["spec"]["template"]["metadata"]["annotations"] for m in (first, second)]
    assert checksums[0] == {"gpu-constructs/metrics-sha256": sha256(counters_csv([UTILISATION]))}
    assert checksums[0] != checksums[1]
    assert first["metadata"] == second["metadata"]
    assert {"name": "metrics", "configMap": {"name": "dcgm-exporter-metrics"}} in pod()["volumes"]


def test_sys_admin_comes_with_profiling_metrics_only():
    assert container(metrics=[TENSOR])["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["SYS_ADMIN"]}
    assert container(metrics=[UTILISATION])["securityContext"]["capabilities"] == {"drop": ["ALL"]}


@pytest.mark.parametrize("scrape", SCRAPES)
def test_one_scrape_object_of_the_wanted_kind(scrape):
    kinds = [m["kind"] for m in rendered(scrape=scrape)]
    assert [kind for kind in kinds if kind in SCRAPES] == [scrape]


def test_none_leaves_the_scrape_object_out():
    assert [m["kind"] for m in rendered(scrape="none")] == ["ConfigMap", "DaemonSet", "Service", "ConfigMap"]


@pytest.mark.parametrize("scrape", SCRAPES)
def test_scrape_labels_stand_on_the_scrape_object_and_nowhere_else(scrape):
    labelled = [
        m["kind"]
        for m in rendered(scrape=scrape, scrape_labels={"release": "prometheus"})
        if "release" in m["metadata"]["labels"]
    ]
    assert labelled == [scrape]


def test_the_dashboard_carries_the_label_of_the_sidecar_and_can_be_left_out():
    board = find(rendered(), "ConfigMap", "dcgm-exporter-dashboard")
    assert board["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert json.loads(board["data"]["dcgm-exporter.json"])["title"]
    assert "dcgm-exporter-dashboard" not in str(rendered(dashboard=False))


def test_the_service_selects_the_pods():
    labels = daemonset()["spec"]["template"]["metadata"]["labels"]
    assert find(rendered(), "Service")["spec"]["selector"].items() <= labels.items()
    assert daemonset()["spec"]["selector"]["matchLabels"].items() <= labels.items()


@pytest.mark.parametrize("scrape", ["ServiceMonitor", "VMServiceScrape"])
def test_the_scrape_object_selects_the_service_and_its_port(scrape):
    manifests = rendered(scrape=scrape)
    service, monitor = find(manifests, "Service"), find(manifests, scrape)
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    ports = [port["name"] for port in service["spec"]["ports"]]
    assert [endpoint["port"] for endpoint in monitor["spec"]["endpoints"]] == ports


def test_a_pod_monitor_selects_the_pods_and_their_port():
    manifests = rendered(scrape="PodMonitor")
    template, monitor = find(manifests, "DaemonSet")["spec"]["template"], find(manifests, "PodMonitor")
    assert monitor["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    assert endpoint["port"] in [port["name"] for port in template["spec"]["containers"][0]["ports"]]


def test_it_runs_on_gpu_nodes_under_the_nvidia_runtime_and_takes_no_slot():
    assert pod()["nodeSelector"] == {"nvidia.com/gpu.present": "true"}
    assert pod()["runtimeClassName"] == "nvidia"
    assert "nvidia.com/gpu" not in str(container()["resources"])


def test_plain_kubernetes_gets_no_runtime_class_unless_one_is_named(chart):
    assert "runtimeClassName" not in pod(platform=Kubernetes())
    runtime_class = NvidiaRuntimeClass(chart, "runtime-class", name="gpu-runtime")
    assert pod(platform=Kubernetes(), runtime_class=runtime_class)["runtimeClassName"] == "gpu-runtime"


def test_it_has_no_rights_and_no_token():
    assert pod()["automountServiceAccountToken"] is False
    assert not any(m["kind"] in ("ServiceAccount", "Role", "ClusterRole") for m in rendered())


def test_placement_image_resources_and_priority_can_be_replaced():
    given = {
        "tolerations": [TAINT],
        "node_selector": {"pool": "gpu"},
        "image": "registry.example/dcgm@sha256:" + "0" * 64,
        "resources": {"limits": {"memory": "2Gi"}},
        "priority_class_name": "monitoring",
    }
    spec = pod(**given)
    (only,) = spec["containers"]
    assert spec["tolerations"] == [
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        TAINT.to_manifest(),
    ]
    assert spec["nodeSelector"] == {"nvidia.com/gpu.present": "true", "pool": "gpu"}
    assert spec["priorityClassName"] == "monitoring"
    assert only["image"] == given["image"]
    assert only["resources"] == {"limits": {"memory": "2Gi"}}
    assert {"name": "GOMEMLIMIT", "value": "1536MiB"} in only["env"]


def test_losing_metrics_evicts_no_workload():
    assert "priorityClassName" not in pod()


def test_everything_lives_in_the_namespace_it_is_given(chart):
    DcgmExporter(chart, "exporter", namespace=GpuNamespace(chart, "namespace", name="monitoring-gpu"))
    namespaces = {m["metadata"].get("namespace") for m in Testing.synth(chart) if m["kind"] != "Namespace"}
    assert namespaces == {"monitoring-gpu"}


RELEASES = "'3.4.2', '4.8.2', '4.8.3'"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"scrape": "ServiceMonitr"},
            "scrape must be one of 'ServiceMonitor', 'PodMonitor', 'VMServiceScrape', 'none'; got 'ServiceMonitr' "
            "(did you mean 'ServiceMonitor'?)",
        ),
        (
            {"version": "4.9.0"},
            f"version of the DCGM exporter must be one of {RELEASES}; got '4.9.0'; force it with "
            "Unverified('4.9.0', like='4.8.3', image='...')",
        ),
        (
            {"version": "v4.8.3"},
            f"version of the DCGM exporter must be one of {RELEASES}; got 'v4.8.3' (did you mean '4.8.3'?)",
        ),
        (
            {"version": Unverified("4.9.0", like="4.8.3")},
            "version.image of the DCGM exporter is required for a release we have not checked, since its tag names "
            "more than the release; got None, e.g. image='nvcr.io/nvidia/k8s/dcgm-exporter:4.6.0-4.8.3-distroless'",
        ),
        (
            {"version": "3.1.0"},
            f"version of the DCGM exporter must be one of {RELEASES}; got '3.1.0'; it is older than anything "
            "supported: move up to '3.4.2' or later",
        ),
        (
            {"namespace": "default"},
            "namespace must not be 'default': GPU components need a namespace whose Pod Security level is "
            "privileged; leave it out for 'nvidia-gpu-operator' or name one of your own",
        ),
        ({"metrics": []}, "metrics must hold at least one gauge or counter; got []"),
        (
            {"metrics": [UTILISATION, UTILISATION]},
            "metrics must name each field once; got 'DCGM_FI_DEV_GPU_UTIL' more than once",
        ),
        (
            {"metrics": ["DCGM_FI_DEV_GPU_UTIL"]},
            "metrics[0] must be Metric; got str: 'DCGM_FI_DEV_GPU_UTIL'",
        ),
        ({"dashboard": "no"}, "dashboard must be bool; got str: 'no'"),
        (
            {"scrape_labels": {"release": ""}, "scrap": 1},
            "scrap is no keyword of DcgmExporter (did you mean 'scrape'?)",
        ),
        ({"scrape_labels": {"a b": "c"}}, "scrape_labels has a key that is no label key; got 'a b'"),
        (
            {"image": "dcgm-exporter"},
            "image must be pinned as 'repository:tag' or 'repository@sha256:...', never 'latest'; got 'dcgm-exporter'",
        ),
    ],
    ids=str,
)
def test_bad_input_gets_one_error(given, message):
    assert refusal(**given) == f"gpu/exporter: {message}"


def test_a_priority_class_that_cannot_exist_is_refused():
    assert refusal(priority_class_name="very high").startswith(
        "gpu/exporter: priority_class_name must be a DNS subdomain"
    )


@pytest.mark.parametrize(
    ("memory", "problem"),
    [
        ("900m", "must leave the exporter a few MiB"),
        ("1", "must leave the exporter a few MiB"),
        ("lots", "must be a Kubernetes quantity like '500m' or '16Gi'"),
        ("1 GiB", "must be a Kubernetes quantity like '500m' or '16Gi'"),
        ("", "must be a Kubernetes quantity like '500m' or '16Gi'"),
    ],
)
def test_a_refused_memory_limit_leaves_the_chart_as_it_was(chart, memory, problem):
    with pytest.raises(GpuConstructsError) as refused:
        DcgmExporter(chart, "exporter", resources={"limits": {"memory": memory}})
    assert refused.value.problem == f"resources['limits']['memory'] {problem}; got {memory!r}"
    assert list(chart.node.children) == []
