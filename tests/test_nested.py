"""Nested Python objects from users: shared, recursive, too deep, or with invalid text."""

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
    "ninefold": (ninefold(40, {"a": "x"}), "must contain at most 100000 values, got more"),
    "ninefold lists": ({"a": ninefold_list(40)}, "must contain at most 100000 values, got more"),
    "long texts": (ninefold(3, "x" * 10**5), "must contain at most 100000 values, got more"),
    "cycle": (held_by_itself(), "must not contain itself"),
    "deep": (deep(5000), "must have at most 100 nested levels"),
    "surrogate": ({"a": "x\ud800"}, r"must contain text that UTF-8 can encode, got half of a surrogate pair, '\ud800'"),
    "surrogate as key": ({"a\udc00": "x"}, r"must contain text that UTF-8 can encode, got half of a surrogate pair"),
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


def test_a_value_that_no_object_can_contain_is_rejected_in_one_short_line():
    for hostile in HOSTILE:
        for place in PLACES:
            value, says = HOSTILE[hostile]
            with pytest.raises(GpuConstructsError) as refused:
                PLACES[place](value)
            message = str(refused.value)
            assert says in message, (hostile, place)
            assert message.isprintable(), (hostile, place)
            assert len(message) < 250, (hostile, place)


def test_a_shared_value_of_limited_size_is_accepted():
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}}}
    shared = {"a": "b"}
    assert problem_of("values", {"one": shared, "two": [shared, shared], "three": affinity, "four": affinity}) is None
    assert problem_of("values", ninefold(5, {"a": "x"})) == (
        "values must contain at most 100000 values, got more (a value in two places counts twice). Remove some"
    )
    assert problem_of("values", ninefold(4, "x")) is None


def test_a_list_of_objects_is_measured_object_by_object():
    large = ninefold(4, {"a": "x"})
    assert problem_of("manifests", [large] * 50) is None
    assert str(problem_of("manifests", [large, held_by_itself()])).startswith("manifests[1] must not contain itself")


def test_each_shared_value_is_measured_once():
    class Counted(dict):
        looks = 0

        def items(self):
            Counted.looks += 1
            return super().items()

    assert problem_of("values", ninefold(3, Counted(a="x"))) is None
    assert Counted.looks == 1


def test_any_text_that_utf_8_can_encode_is_accepted():
    for text in ["plain", "Grüße", "🙂", "日本"]:
        assert problem_of("text", {text: [text]}) is None, text


def test_a_long_message_keeps_its_beginning_and_its_end():
    error = GpuConstructsError(f"values must be short, got {'x' * 10**6}. Leave it out", path="gpu/app")
    assert len(str(error)) < 2100
    assert str(error).startswith("gpu/app: values must be short, got x")
    assert str(error).endswith("x. Leave it out")
