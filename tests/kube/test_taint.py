import pytest

from gpu_constructs import GpuConstructsError
from gpu_constructs.kube.placement import Taint, taint_of_text
from refusals import refusal
from tables import cases


def test_a_taint_has_the_forms_of_kubernetes_and_talos():
    taint = Taint(value="present", effect="NoExecute")
    assert taint.to_manifest() == {"key": "nvidia.com/gpu", "value": "present", "effect": "NoExecute"}
    assert taint.to_text() == "present:NoExecute"


def test_a_taint_without_a_value_has_none():
    assert Taint(key="dedicated").to_manifest() == {"key": "dedicated", "effect": "NoSchedule"}
    assert Taint(key="dedicated").to_text() == ":NoSchedule"


@cases
def test_values_that_kubernetes_does_not_allow_are_rejected(given, message):
    assert refusal(Taint, **given).startswith(message)


def test_its_toleration_lets_pods_run_on_the_node(expected):
    taint = Taint(key="dedicated", value="ai", effect="NoExecute")
    assert taint.toleration.to_manifest() == {"operator": "Equal", **taint.to_manifest()}
    assert Taint().toleration.to_manifest() == expected


@cases
def test_a_taint_in_the_form_of_talos_is_parsed(text, taint):
    assert taint_of_text("a", text) == taint


@pytest.mark.parametrize("text", ["", "present", "a:b:NoSchedule", "present:"])
def test_a_text_that_is_not_a_taint_is_rejected(text):
    with pytest.raises(GpuConstructsError, match=r"^taint\.effect must be one of"):
        taint_of_text("a", text)
