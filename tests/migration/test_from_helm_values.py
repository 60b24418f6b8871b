"""Constructs from the values of Helm charts, with everything that they emit."""

import warnings
from pathlib import Path
from typing import Any

import chart_cases
import pytest
import yaml
from cdk8s import App, Chart, Testing
from hypothesis import given, settings
from hypothesis import strategies as st

import chart_tables
from gpu_constructs import (
    DcgmExporter,
    DevicePluginChart,
    GpuConstructsError,
    GpuConstructsWarning,
    NvidiaGpuExporter,
    Talos,
    Unverified,
)
from gpu_constructs.catalog import versions
from gpu_constructs.migration.chart import chart
from gpu_constructs.observability.dcgm_program_values import chart_metrics
from house_style import assert_house_style
from tables import beside

CLASSES: dict[str, Any] = {
    "dcgm-exporter": DcgmExporter,
    "nvidia-device-plugin": DevicePluginChart,
    "nvidia-gpu-exporter": NvidiaGpuExporter,
}
RELEASES = [(name, release) for name in CLASSES for release in chart_tables.leaves(name)]
EVERYTHING = beside(__file__, "from_helm_values")["everything"]


def made(name: str, values: Any, **given: Any) -> Chart:
    of = chart_cases.CHARTS[name]
    said = {"release_name": of.release, "namespace": "gpu", "version": of.version, **given}
    if name == "nvidia-device-plugin":
        return DevicePluginChart.from_helm_values(App(), "c", values, **said)
    parent = Chart(App(), "c")
    CLASSES[name].from_helm_values(parent, "exporter", values, **said)
    return parent


def manifests(name: str, values: Any, **given: Any) -> list[dict[str, Any]]:
    return Testing.synth(made(name, values, **given))


def values_of(file: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((Path(__file__).parent / f"{file}.yaml").read_text(encoding="utf-8"))
    return found


def pod(manifest: dict[str, Any]) -> dict[str, Any]:
    return manifest["spec"]["template"]["spec"]


# --- any values ------------------------------------------------------------------------------------------------

_LEAVES = st.none() | st.booleans() | st.integers() | st.sampled_from(["", "x", "5m", "A B", "1.0", "-f"])
_ANYTHING = st.recursive(
    _LEAVES,
    lambda below: (
        st.lists(below, max_size=2)
        | st.dictionaries(st.sampled_from(["name", "key", "limits", "cpu", "mountPath", "value"]), below, max_size=2)
    ),
    max_leaves=4,
)


@settings(max_examples=60)
@given(
    chosen=st.sampled_from(RELEASES).flatmap(
        lambda one: st.tuples(
            st.just(one), st.dictionaries(st.sampled_from(list(chart(one[0]).keys)), _ANYTHING, max_size=4)
        )
    ),
    strict=st.booleans(),
)
def test_any_values_result_in_objects_or_an_error_in_house_style(chosen, strict):
    (name, version), flat = chosen
    values: dict[str, Any] = {}
    for path, value in flat.items():
        *sections, last = path.split(".")
        section = values
        for word in sections:
            section = section.setdefault(word, {})
        section[last] = value
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GpuConstructsWarning)
        try:
            made = manifests(name, values, version=version, strict=strict)
        except GpuConstructsError as error:
            assert_house_style(error, error.path)
        else:
            assert made


ODD = ("x", "A B", 7, True, {"a": "b"}, ["x"], [{"name": "x"}], {"limits": {"cpu": "x"}})


@pytest.mark.parametrize("name", CLASSES)
def test_a_bad_key_does_not_matter_if_strict_is_false(name):
    for path in chart(name).keys:
        for odd in ODD:
            values: Any = odd
            for word in reversed(path.split(".")):
                values = {word: values}
            chart_cases.options(name, values, strict=False)


@pytest.mark.filterwarnings("ignore:.*passes GDS")
@pytest.mark.parametrize(("name", "version"), RELEASES)
def test_a_chart_with_all_features_passes_the_invariants(name, version, objects):
    keys = chart(name).keys.items()
    has_all = all(version in (key.releases or (version,)) or key.why_not for _, key in keys)
    values = EVERYTHING[name] if has_all or name != "dcgm-exporter" else {}
    assert objects(made(name, values, version=version))


def test_mps_runs_with_host_pid_as_in_the_chart_of_the_release():
    shared = "version: v1\nsharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}"
    for version, sees in (("0.17.4", None), ("0.18.0", True)):
        found = manifests("nvidia-device-plugin", {"config": {"map": {"a": shared}}}, version=version)
        (daemon,) = [m for m in found if m["metadata"]["name"].endswith("mps-control-daemon")]
        assert pod(daemon).get("hostPID") is sees, version


# --- the installation ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CLASSES)
def test_the_platform_determines_what_the_values_cannot_state(name):
    daemonsets = [pod(m) for m in manifests(name, {}, platform=Talos("1.13")) if m["kind"] == "DaemonSet"]
    assert {spec["runtimeClassName"] for spec in daemonsets} == {"nvidia"}
    plain = [pod(m) for m in manifests(name, {}) if m["kind"] == "DaemonSet"]
    assert not any("runtimeClassName" in spec for spec in plain)


@pytest.mark.parametrize("name", CLASSES)
def test_an_unverified_version_has_the_keys_of_the_similar_one(name):
    like = chart_cases.CHARTS[name].version
    found = manifests(name, {}, version=Unverified("9.9.9", like=like, image="example.org/x:9"))
    images = {c["image"] for m in found if m["kind"] == "DaemonSet" for c in pod(m)["containers"]}
    assert images == {"example.org/x:9"}


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("keyword", ["release_name", "namespace", "version", "strict"])
def test_arguments_of_another_type_are_rejected(name, keyword):
    with pytest.raises(GpuConstructsError, match=f"^(c(/exporter)?: )?{keyword} "):
        manifests(name, {}, **{keyword: 3})


# --- default values of the charts ------------------------------------------------------------------------------


def test_the_default_values_of_the_exporter_without_privileges_change_nothing():
    assert manifests("nvidia-gpu-exporter", values_of("values-nvidia-gpu-exporter")) == manifests(
        "nvidia-gpu-exporter", {}
    )


def test_a_copy_of_the_default_values_of_the_plugin_sets_only_the_affinity():
    values = values_of("values-nvidia-device-plugin")
    stated, unsaid = (manifests("nvidia-device-plugin", given) for given in (values, {}))
    (one,), (other,) = ([pod(m) for m in found if m["kind"] == "DaemonSet"] for found in (stated, unsaid))
    assert one.pop("affinity") == values["affinity"]
    del other["affinity"]
    assert stated == unsaid


def test_a_rich_file(objects, snapshot):
    values = values_of("rich-nvidia-gpu-exporter")
    assert objects(made("nvidia-gpu-exporter", values, namespace="monitoring")) == snapshot


def test_the_lists_of_metrics_in_the_charts_are_older_than_those_of_the_images():
    counters = {r: [m.field for m in chart_metrics(r) if m.prometheus_type == "counter"] for r in ("3.4.2", "4.8.2")}
    assert "DCGM_FI_PROF_PCIE_TX_BYTES" in counters["3.4.2"]
    assert "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL" in counters["4.8.2"]
    assert {"label"}.isdisjoint(metric.prometheus_type for r in counters for metric in chart_metrics(r))


def test_the_list_of_the_dcgm_chart_is_that_of_its_release():
    for version, release in versions.DCGM_EXPORTER.items():
        found = manifests("dcgm-exporter", {}, version=version)
        (csv,) = [text for m in found if m["kind"] == "ConfigMap" for name, text in m["data"].items()]
        lines = dict(line.split(", ")[:2] for line in csv.splitlines() if line.startswith("DCGM"))
        # Before 3.6.0 no list is mounted, so the program reads that of the image.
        changed = release.chart_list_counts if release.chart_mounts_list else ()
        assert all(lines[field] == "counter" for field in changed), version
        lacks = release.chart_list_lacks if release.chart_mounts_list else ()
        assert not set(lacks) & set(lines), version
