import pytest
from cdk8s import Testing

import refusals
from gpu_constructs import External, GpuConstructsError
from gpu_constructs.facts.provided import Provided


def refusal(chart, **given):
    return refusals.refusal(External, chart, "existing", **given).removeprefix("gpu/existing: ")


def test_an_external_provides_what_it_declares_and_emits_nothing(chart):
    external = External(
        chart, "existing", runtime_classes=["nvidia"], node_labels=["nvidia.com/gpu.present"], namespaces=["team"]
    )
    assert external.provides == Provided(
        runtime_classes=("nvidia",), node_labels=("nvidia.com/gpu.present",), namespaces=("team",)
    )
    assert Testing.synth(chart) == []


@pytest.mark.parametrize("label", ["nvidia.com/gpu.*", "nvidia.com/*", "feature.node.kubernetes.io/pci-*", "gpu*"])
def test_a_star_matches_the_rest_of_a_label_key(chart, label):
    assert External(chart, "existing", node_labels=[label]).provides.node_labels == (label,)


@pytest.mark.parametrize("label", ["", "*", "a b", "a b*", "nvidia.com/*.present", "/*"])
def test_an_invalid_label_key_is_rejected(chart, label):
    assert refusal(chart, node_labels=["fine", label]).startswith("node_labels must have valid label keys, got ")


@pytest.mark.parametrize("keyword", ["runtime_classes", "namespaces"])
def test_a_name_kubernetes_refuses_is_refused_by_its_keyword(chart, keyword):
    assert refusal(chart, **{keyword: ["fine", "Not A Name"]}).startswith(f"{keyword} must be a DNS ")


@pytest.mark.parametrize("keyword", ["runtime_classes", "node_labels", "namespaces"])
def test_a_single_text_is_no_list(chart, keyword):
    assert refusal(chart, **{keyword: "nvidia"}) == f"{keyword} must be a list, got 'nvidia' (str)"


def test_gpus_of_another_plugin_are_declared_by_their_names(chart):
    assert External(chart, "existing", gpu_resources=["a.com/gpu"]).provides.other_gpu_resources == ("a.com/gpu",)
    assert refusal(chart, gpu_resources=["a b"]) == "gpu_resources must have valid label keys, got 'a b'"


def test_an_unknown_component_is_rejected_with_the_nearest_name(app):
    with pytest.raises(GpuConstructsError, match=r"components\[0\] .*did you mean 'validation-bridge'"):
        External(app, "existing", components=["validation-brige"])
