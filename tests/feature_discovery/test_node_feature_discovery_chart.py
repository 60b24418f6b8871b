"""Tests of Node Feature Discovery as a chart of its own, also from the values of its Helm chart."""

import re
import warnings
from typing import Any

import pytest
import yaml
from cdk8s import App, Testing

from gpu_constructs import (
    DevicePluginChart,
    GpuConstructsError,
    GpuConstructsWarning,
    NodeFeatureDiscovery,
    NodeFeatureDiscoveryChart,
    synthesize,
)
from gpu_constructs.catalog.versions import NODE_FEATURE_DISCOVERY
from house_style import assert_house_style
from tables import cases

RELEASE = {"release_name": "nfd", "namespace": "nfd"}
RULE = {"name": "a", "labels": {"a": "b"}, "matchFeatures": [{"feature": "pci.device"}]}
GONE = {"name": "b", "matchOn": [{"pciId": {"vendor": ["10de"]}}]}


def made(values: Any, **given: Any) -> tuple[NodeFeatureDiscoveryChart, list[str]]:
    """Return the chart and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        chart = NodeFeatureDiscoveryChart.from_helm_values(App(), "nfd", values, **{**RELEASE, **given})
    assert {warning.category for warning in caught} <= {GpuConstructsWarning}
    return chart, [str(warning.message) for warning in caught]


def configuration(chart: NodeFeatureDiscoveryChart, name: str = "worker") -> Any:
    """Return the content of a configuration file."""
    (found,) = [m for m in Testing.synth(chart) if m["kind"] == "ConfigMap" and f"nfd-{name}.conf" in m["data"]]
    return yaml.safe_load(found["data"][f"nfd-{name}.conf"])


def test_the_chart_emits_the_objects_of_node_feature_discovery():
    kinds = [one["kind"] for one in Testing.synth(NodeFeatureDiscoveryChart(App(), "nfd"))]
    assert kinds.count("CustomResourceDefinition") == 3
    assert (kinds.count("DaemonSet"), kinds.count("Deployment"), kinds.count("Namespace")) == (1, 2, 1)
    alone = NodeFeatureDiscovery(master=None, gc=None)
    kinds = [m["kind"] for m in Testing.synth(NodeFeatureDiscoveryChart(App(), "nfd", node_feature_discovery=alone))]
    assert "Deployment" not in kinds


@pytest.mark.parametrize("version", NODE_FEATURE_DISCOVERY)
def test_values_keep_the_defaults_of_the_programs(version):
    chart, warned = made({}, version=version)
    assert (configuration(chart), configuration(chart, "master"), warned) == ({}, {}, [])
    names = {m["metadata"]["name"] for m in Testing.synth(chart) if m["kind"] in ("DaemonSet", "Deployment")}
    assert names == {f"nfd-node-feature-discovery-{part}" for part in ("master", "worker", "gc")}
    assert chart.provides.nfd_labels.publishes("feature.node.kubernetes.io/pci-0300_10de.present")


@cases
def test_the_file_of_the_worker_is_that_of_the_user(values, config):
    chart, warned = made({"worker": {"config": values}})
    assert (configuration(chart), warned) == (config, [])


def test_an_entry_that_the_program_skips_is_dropped_with_a_warning_and_the_rest_stays(expected):
    config = {"sources": {"custom": [GONE, RULE], "system": {"a": 1}}}
    chart, warned = made({"worker": {"config": config}, "tls": {"enable": False}})
    assert configuration(chart) == {"sources": {"custom": [RULE]}}
    keys = expected
    assert [one.partition(" is dropped: it ")[0] for one in warned] == keys


def test_values_of_release_0_16_can_state_the_defaults_of_keys_that_later_releases_lack(rows):
    values = {"enableNodeFeatureApi": True, "tls": {"enable": False}, "master": {"service": {"port": 8080}}}
    assert made({**values, "featureGates": {"NodeFeatureAPI": True}}, version="0.16.4")[1] == []
    for section, said in rows:
        with pytest.raises(GpuConstructsError, match=f"^nfd: {re.escape(said)}"):
            made(section, version="0.16.4")
    _, (warned,) = made({"worker": {"hostNetwork": True}}, version="0.16.4")
    assert warned.startswith("values.worker.hostNetwork is dropped: it is not a key of release 0.16.4")


def test_all_problems_are_reported_at_once_with_the_paths_of_the_user():
    values = {"master": {"replicas": 1, "replicaCont": 2}, "worker": {"config": {"core": {"sourcs": []}}}, "gc": 1}
    with pytest.raises(GpuConstructsError) as caught:
        made(values)
    assert_house_style(caught.value, "nfd")
    starts = ["values.master.replicaCont", "values.worker.config", "values.gc"]
    assert [one.partition(" ")[0] for one in caught.value.problems] == starts
    assert "(did you mean 'master.replicaCount'?)" in caught.value.problem


def test_values_can_contain_the_gate_that_is_always_on():
    made({"featureGates": {"NodeFeatureAPI": True}})
    with pytest.raises(GpuConstructsError, match="which is always on"):
        made({"featureGates": {"NodeFeatureAPI": False}})


def test_values_without_a_component_are_rejected():
    off = {name: {"enable": False} for name in ("master", "worker", "gc")}
    with pytest.raises(GpuConstructsError, match="must enable one of master, worker, gc and topologyUpdater"):
        made(off)


def test_the_device_plugin_finds_the_labels_that_the_chart_publishes(tmp_path):
    app = App(outdir=str(tmp_path))
    NodeFeatureDiscoveryChart.from_helm_values(app, "nfd", {}, **RELEASE)
    DevicePluginChart(
        app,
        "plugin",
        node_feature_discovery="external",
        node_selector={"feature.node.kubernetes.io/pci-0300_10de.present": "true"},
    )
    synthesize(app)


def test_the_label_of_an_instance_must_be_a_label_value() -> None:
    with pytest.raises(GpuConstructsError, match=r"nfd: instance must be a label value .* got ' '"):
        NodeFeatureDiscoveryChart(App(), "nfd", instance=" ")
