"""Every default of a chart, stated by the user: what is made is what Helm makes of it, which is not always ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from cdk8s import App, Chart, Testing

import exporter_keys
import helm_keys
from gpu_constructs import DcgmExporter, DevicePluginChart, GpuConstructsWarning, Kubernetes, NvidiaGpuExporter
from gpu_constructs._helm import Key
from gpu_constructs.device_plugin.helm import KEYS as PLUGIN_KEYS
from gpu_constructs.observability.dcgm_helm import KEYS as DCGM_KEYS
from gpu_constructs.observability.nvidia_gpu_exporter_helm import KEYS as SMI_KEYS

Values = dict[str, Any]


def device_plugin(values: Values, release: str, **more: Any) -> list[Any]:
    where = {"release_name": "nvdp", "namespace": "nvidia", "platform": Kubernetes(), **more}
    return Testing.synth(DevicePluginChart.from_helm_values(App(), "plugin", values, version=release, **where))


def dcgm_exporter(values: Values, release: str, **more: Any) -> list[Any]:
    chart = Chart(App(), "c")
    DcgmExporter.from_helm_values(
        chart, "exporter", values, version=release, release_name="dcgm-exporter", namespace="gpu", **more
    )
    return Testing.synth(chart)


def nvidia_gpu_exporter(values: Values, release: str, **more: Any) -> list[Any]:
    chart = Chart(App(), "c")
    NvidiaGpuExporter.from_helm_values(
        chart, "exporter", values, version=release, release_name="nvidia-gpu-exporter", namespace="gpu", **more
    )
    return Testing.synth(chart)


EVERYTHING_ON: Mapping[Any, Values] = {
    device_plugin: {"gfd": {"enabled": True}, "nfd": {"topologyUpdater": {"enable": True, "createCRDs": True}}},
    dcgm_exporter: {},
    nvidia_gpu_exporter: {"serviceMonitor": {"enabled": True}},
}
OURS_DIFFERS = {
    # Ours orders the terms by what Node Feature Discovery publishes.
    (device_plugin, "affinity"),
    # Ours scrapes once for each reading, and keeps the labels of the pods that use a GPU.
    (dcgm_exporter, "serviceMonitor.interval"),
    (dcgm_exporter, "serviceMonitor.honorLabels"),
    # Ours leaves out what the API server says anyway.
    (dcgm_exporter, "rollingUpdate.maxSurge"),
    (dcgm_exporter, "service.internalTrafficPolicy"),
}


def nested(path: str, value: Any) -> Values:
    for name in reversed(path.split(".")):
        value = {name: value}
    return value


def over(base: Any, given: Any) -> Any:
    if not isinstance(base, Mapping) or not isinstance(given, Mapping):
        return given
    return {**base, **{key: over(base.get(key), value) for key, value in given.items()}}


def stated_keys(keys: Mapping[str, Key], release: str) -> list[str]:
    return [
        path
        for path, key in keys.items()
        if key.default is not None and not key.why_not and release in (key.releases or (release,))
    ]


CHARTS = [
    *((device_plugin, release, PLUGIN_KEYS) for release in helm_keys.RELEASES),
    *((dcgm_exporter, release, DCGM_KEYS) for release in exporter_keys.RELEASES),
    (nvidia_gpu_exporter, "1.14.0", SMI_KEYS),
]


KEYS = {made: keys for made, _, keys in CHARTS}
NEWEST = {made: release for made, release, _ in CHARTS}


@pytest.mark.parametrize(
    ("made", "release", "path"),
    [
        pytest.param(made, release, path, id=f"{made.__name__}-{release}-{path}")
        for made, release, keys in CHARTS
        for path in stated_keys(keys, release)
        if not path.startswith("podMonitor")
    ],
)
def test_a_stated_default_changes_what_ours_does_otherwise_and_nothing_else(made, release, path):
    base = EVERYTHING_ON[made]
    default = KEYS[made][path].default
    stated = made(over(base, nested(path, default)), release)
    assert (stated != made(base, release)) is ((made, path) in OURS_DIFFERS)


def endpoint(values: Values) -> Any:
    (monitor,) = [one for one in dcgm_exporter(values, "4.8.2") if one["kind"] == "ServiceMonitor"]
    return monitor["spec"]["endpoints"][0]


@pytest.mark.parametrize("interval", ["15s", "30s", "1m"])
@pytest.mark.parametrize("honors", [True, False])
def test_a_stated_interval_and_whose_labels_win_are_as_stated(interval, honors):
    found = endpoint({"serviceMonitor": {"interval": interval, "honorLabels": honors}})
    assert (found["interval"], found["honorLabels"]) == (interval.replace("1m", "60s"), honors)


def test_a_stated_affinity_is_the_one_of_the_chart():
    affinity = PLUGIN_KEYS["affinity"].default
    (daemonset,) = [one for one in device_plugin({"affinity": affinity}, "0.20.0") if one["kind"] == "DaemonSet"]
    assert daemonset["spec"]["template"]["spec"]["affinity"] == affinity


GPU_LIMIT = {"limits": {"nvidia.com/gpu": 1, "memory": "1Gi"}, "requests": {"memory": "1Gi"}}


def amounts(objects: list[Any]) -> Any:
    (daemonset,) = [one for one in objects if one["kind"] == "DaemonSet"]
    return daemonset["spec"]["template"]["spec"]["containers"][0]["resources"]


@pytest.mark.parametrize("made", KEYS)
def test_of_amounts_the_one_that_cannot_be_taken_over_is_dropped_alone(made):
    memory = {"limits": {"memory": "1Gi"}, "requests": {"memory": "1Gi"}}
    given = over(memory, {"limits": {"nvidia.com/gpu": 1}, "requests": {"cpu": "1 core"}})
    with pytest.warns(GpuConstructsWarning) as caught:
        objects = made({"resources": given}, NEWEST[made], strict=False)
    assert [str(warning.message).partition(" is dropped")[0] for warning in caught] == [
        "values.resources.limits['nvidia.com/gpu']",
        "values.resources.requests.cpu",
    ]
    assert amounts(objects) == amounts(made({"resources": memory}, NEWEST[made]))


@pytest.mark.parametrize("is_strict", [True, False])
@pytest.mark.parametrize("made", KEYS)
def test_an_empty_list_for_an_affinity_means_none(made, is_strict):
    objects = made({"affinity": []}, NEWEST[made], strict=is_strict)
    assert objects == made({"affinity": None}, NEWEST[made])
