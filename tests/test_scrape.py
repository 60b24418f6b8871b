import re

import pytest

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.observability.scrape import scrape_manifest
from schemas import schema_errors

KINDS = ["ServiceMonitor", "PodMonitor", "VMServiceScrape"]
SELECTOR = {"app.kubernetes.io/name": "dcgm-exporter", "app.kubernetes.io/instance": "dcgm-exporter"}


def scrape(kind, **more):
    return scrape_manifest(
        kind=kind,
        name="dcgm-exporter",
        namespace="nvidia-gpu-operator",
        labels={"app.kubernetes.io/part-of": "gpu"},
        selector_labels=SELECTOR,
        **more,
    )


def endpoint_of(manifest):
    spec = manifest["spec"]
    (endpoint,) = spec["podMetricsEndpoints"] if manifest["kind"] == "PodMonitor" else spec["endpoints"]
    return endpoint


def relabelled(target, rules):
    """Apply relabelling rules to a target's labels as Prometheus does."""
    labels = dict(target)
    for rule in rules:
        if rule["action"] == "replace":
            value = ";".join(labels.get(label, "") for label in rule["sourceLabels"])
            if value:
                labels[rule["targetLabel"]] = value
        else:
            assert rule["action"] == "labeldrop"
            labels = {name: value for name, value in labels.items() if not re.fullmatch(rule["regex"], name)}
    return {name: value for name, value in labels.items() if not name.startswith("__")}


def stored(target, sample, endpoint):
    """The labels under which Prometheus stores a sample of a target."""
    assert endpoint["honorLabels"] is True
    rules = endpoint.get("relabelings") or endpoint["relabelConfigs"]
    return {**relabelled(target, rules), **sample}


TARGET = {
    "job": "dcgm-exporter",
    "instance": "10.0.0.7:9400",
    "namespace": "nvidia-gpu-operator",
    "service": "dcgm-exporter",
    "endpoint": "metrics",
    "pod": "dcgm-exporter-x7k2p",
    "container": "exporter",
    "__meta_kubernetes_pod_node_name": "k8s-worker4",
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_object_satisfies_its_crd(kind):
    assert schema_errors(scrape(kind, additional_labels={"release": "kube-prometheus-stack"})) == []


@pytest.mark.parametrize(
    ("kind", "api_version"),
    [
        ("ServiceMonitor", "monitoring.coreos.com/v1"),
        ("PodMonitor", "monitoring.coreos.com/v1"),
        ("VMServiceScrape", "operator.victoriametrics.com/v1beta1"),
    ],
)
def test_the_object_selects_the_exporter_in_its_own_namespace(kind, api_version):
    manifest = scrape(kind)
    assert (manifest["apiVersion"], manifest["kind"]) == (api_version, kind)
    assert manifest["metadata"]["namespace"] == "nvidia-gpu-operator"
    assert manifest["spec"]["selector"] == {"matchLabels": SELECTOR}
    assert manifest["spec"]["namespaceSelector"] == {"matchNames": ["nvidia-gpu-operator"]}


@pytest.mark.parametrize("kind", KINDS)
def test_it_scrapes_every_thirty_seconds_and_waits_ten(kind):
    endpoint = endpoint_of(scrape(kind))
    assert (endpoint["port"], endpoint["path"]) == ("metrics", "/metrics")
    assert (endpoint["interval"], endpoint["scrapeTimeout"]) == ("30s", "10s")


@pytest.mark.parametrize("kind", KINDS)
def test_a_busy_gpu_shows_its_workload(kind):
    sample = {"gpu": "0", "pod": "ollama-0", "namespace": "ollama", "container": "ollama"}
    labels = stored(TARGET, sample, endpoint_of(scrape(kind)))
    assert (labels["pod"], labels["namespace"], labels["container"]) == ("ollama-0", "ollama", "ollama")


@pytest.mark.parametrize("kind", KINDS)
def test_an_idle_gpu_shows_no_pod(kind):
    labels = stored(TARGET, {"gpu": "1"}, endpoint_of(scrape(kind)))
    assert labels.keys().isdisjoint({"pod", "namespace", "container", "service", "endpoint"})


@pytest.mark.parametrize("kind", KINDS)
def test_the_target_keeps_its_pod_and_node_under_names_of_their_own(kind):
    labels = stored(TARGET, {}, endpoint_of(scrape(kind)))
    assert labels == {
        "job": "dcgm-exporter",
        "instance": "10.0.0.7:9400",
        "exporter_pod": "dcgm-exporter-x7k2p",
        "node": "k8s-worker4",
    }


def test_pods_scraped_without_a_service_get_the_same_job_name():
    assert scrape("PodMonitor")["spec"]["jobLabel"] == "app.kubernetes.io/name"


@pytest.mark.parametrize("kind", KINDS)
def test_additional_labels_stand_beside_the_usual_ones(kind):
    manifest = scrape(kind, additional_labels={"release": "kube-prometheus-stack"})
    assert manifest["metadata"]["labels"] == {
        "app.kubernetes.io/part-of": "gpu",
        "release": "kube-prometheus-stack",
    }


def test_another_port_name_is_used_as_given():
    assert endpoint_of(scrape("ServiceMonitor", port="gpu-metrics"))["port"] == "gpu-metrics"


def test_changing_one_manifest_leaves_the_next_one_alone():
    endpoint_of(scrape("ServiceMonitor"))["relabelings"][0]["sourceLabels"].append("x")
    assert endpoint_of(scrape("ServiceMonitor"))["relabelings"][0]["sourceLabels"] == ["pod"]


def test_a_misspelt_kind_is_refused():
    with pytest.raises(GpuConstructsError) as refused:
        scrape("ServiceMonitr")
    assert str(refused.value) == (
        "kind must be one of 'ServiceMonitor', 'PodMonitor', 'VMServiceScrape'; got 'ServiceMonitr' "
        "(did you mean 'ServiceMonitor'?)"
    )
