"""Nested data as Python objects: shared, endless, too deep or no text, wherever users hand it over."""

from __future__ import annotations

from typing import Any

import pytest
from cdk8s import App, Chart

from gpu_constructs import (
    DcgmExporter,
    DevicePluginChart,
    EnvValue,
    GpuConstructsError,
    GpuNamespace,
    GpuOperator,
    GpuWorkload,
    Kubernetes,
    NodeFeatureDiscovery,
    NvidiaGpuExporter,
    PluginConfig,
    Talos,
    TalosGpuNode,
    Volume,
)
from gpu_constructs.feature_discovery.node_feature_discovery import NfdWorker
from gpu_constructs.nested import problem_of
from gpu_constructs.operator.helm_values import HelmValues


def ninefold(levels: int, shared: Any) -> Any:
    for _ in range(levels):
        shared = {f"k{number}": shared for number in range(9)}
    return shared


def ninefold_list(levels: int) -> Any:
    shared: Any = ["x"]
    for _ in range(levels):
        shared = [shared] * 9
    return shared


def held_by_itself() -> Any:
    cycle: dict[str, Any] = {"a": 1}
    cycle["b"] = [cycle]
    return cycle


def deep(levels: int) -> Any:
    value: Any = {}
    for _ in range(levels):
        value = {"a": value}
    return value


HOSTILE = {
    "ninefold": (ninefold(40, {"a": "x"}), "must hold at most 100000 values; got more"),
    "ninefold lists": ({"a": ninefold_list(40)}, "must hold at most 100000 values; got more"),
    "long texts": (ninefold(3, "x" * 10**5), "must hold at most 100000 values; got more"),
    "cycle": (held_by_itself(), "must not hold itself"),
    "deep": (deep(5000), "must be nested at most 100 deep"),
    "surrogate": ({"a": "x\ud800"}, r"must hold text that UTF-8 can write; got half of a surrogate pair, '\ud800'"),
    "surrogate as key": ({"a\udc00": "x"}, r"must hold text that UTF-8 can write; got half of a surrogate pair"),
}


def gpu() -> Chart:
    return Chart(App(), "gpu")


def workload(**given: Any) -> object:
    return GpuWorkload(gpu(), "app", **{"image": "a:1", "namespace": "ns", **given})


def from_helm(construct: Any, values: Any, **given: Any) -> object:
    return construct.from_helm_values(gpu(), "app", values, release_name="r", namespace="n", **given)


def plugin(**given: Any) -> object:
    return DevicePluginChart(App(), "plugin", platform=Kubernetes(), **given)


PLACES = {
    "values of the plugin": lambda v: DevicePluginChart.from_helm_values(
        App(), "plugin", {"affinity": v}, release_name="r", namespace="n", platform=Kubernetes()
    ),
    "values of the plugin, not strict": lambda v: DevicePluginChart.from_helm_values(
        App(), "plugin", {"typo": v}, release_name="r", namespace="n", platform=Kubernetes(), strict=False
    ),
    "values of the DCGM exporter": lambda v: from_helm(DcgmExporter, {"extraEnv": [v]}),
    "values of nvidia_gpu_exporter": lambda v: from_helm(NvidiaGpuExporter, {"affinity": v}, strict=False),
    "values of the operator": lambda v: GpuOperator(
        gpu(), "app", platform=Kubernetes(), values={"node-feature-discovery": {"worker": {"config": v}}}
    ),
    "a values file": lambda v: HelmValues(App(), "values", release="r", values={"a": v}),
    "a patch of the machine configuration": lambda v: TalosGpuNode(
        App(), "node", platform=Talos("1.12"), config_patches=[{"machine": v}]
    ),
    "configuration of a worker": lambda v: NodeFeatureDiscovery(worker=NfdWorker(config=v)),
    "configuration of the plugin": lambda v: PluginConfig(sharing=v),
    "affinity": lambda v: plugin(affinity={"nodeAffinity": v}),
    "security context": lambda v: plugin(pod_security_context={"seccompProfile": v}),
    "annotations": lambda v: plugin(pod_annotations=v),
    "node selector": lambda v: workload(node_selector=v),
    "labels": lambda v: GpuNamespace(gpu(), "app", name="n", labels=v),
    "variables": lambda v: workload(env={"A": v}),
    "source of a variable": lambda v: EnvValue(value_from=v),
    "source of a volume": lambda v: Volume(source={"csi": v}),
    "resources": lambda v: workload(resources=v),
}


def test_what_no_object_can_hold_is_refused_in_one_short_line():
    for hostile in HOSTILE:
        for place in PLACES:
            value, says = HOSTILE[hostile]
            with pytest.raises(GpuConstructsError) as refused:
                PLACES[place](value)
            message = str(refused.value)
            assert says in message, (hostile, place)
            assert message.isprintable(), (hostile, place)
            assert len(message) < 250, (hostile, place)


def test_a_shared_value_that_does_not_grow_is_taken():
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}}}
    shared = {"a": "b"}
    assert problem_of("values", {"one": shared, "two": [shared, shared], "three": affinity, "four": affinity}) is None
    assert problem_of("values", ninefold(5, {"a": "x"})) == (
        "values must hold at most 100000 values; got more, each place of a shared one counted; leave some out"
    )
    assert problem_of("values", ninefold(4, "x")) is None


def test_a_list_of_objects_is_measured_object_by_object():
    large = ninefold(4, {"a": "x"})
    assert problem_of("manifests", [large] * 50) is None
    assert str(problem_of("manifests", [large, held_by_itself()])).startswith("manifests[1] must not hold itself")


def test_each_shared_value_is_looked_into_once():
    class Counted(dict):
        looks = 0

        def items(self):
            Counted.looks += 1
            return super().items()

    assert problem_of("values", ninefold(3, Counted(a="x"))) is None
    assert Counted.looks == 1


def test_any_text_that_utf_8_can_write_is_taken():
    for text in ["plain", "Grüße", "🙂", "日本"]:
        assert problem_of("text", {text: [text]}) is None, text


def test_a_long_message_keeps_its_first_words_and_the_way_out():
    error = GpuConstructsError(f"values must be short; got {'x' * 10**6}; leave it out", path="gpu/app")
    assert len(str(error)) < 2100
    assert str(error).startswith("gpu/app: values must be short; got x")
    assert str(error).endswith("x; leave it out")
