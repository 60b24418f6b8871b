import pytest

from gpu_constructs import GpuConstructsError
from gpu_constructs.kube.placement import Taint, taint_of_text
from refusals import refusal
from tables import cases


def test_a_taint_is_written_as_kubernetes_and_as_talos_write_it():
    taint = Taint(value="present", effect="NoExecute")
    assert taint.to_manifest() == {"key": "nvidia.com/gpu", "value": "present", "effect": "NoExecute"}
    assert taint.to_text() == "present:NoExecute"


def test_a_taint_without_a_value_has_none():
    assert Taint(key="dedicated").to_manifest() == {"key": "dedicated", "effect": "NoSchedule"}
    assert Taint(key="dedicated").to_text() == ":NoSchedule"


@cases
def test_what_kubernetes_would_not_take_is_refused(given, message):
    assert refusal(Taint, **given).startswith(message)


def test_its_toleration_is_what_pods_must_tolerate():
    taint = Taint(key="dedicated", value="ai", effect="NoExecute")
    assert taint.toleration.to_manifest() == {"operator": "Equal", **taint.to_manifest()}
    assert Taint().toleration.to_manifest() == {
        "key": "nvidia.com/gpu",
        "operator": "Equal",
        "value": "",
        "effect": "NoSchedule",
    }


@cases
def test_a_taint_is_read_as_talos_writes_it(text, taint):
    assert taint_of_text("a", text) == taint


@pytest.mark.parametrize("text", ["", "present", "a:b:NoSchedule", "present:"])
def test_a_text_that_is_no_taint_is_refused(text):
    with pytest.raises(GpuConstructsError, match=r"^taint\.effect must be one of"):
        taint_of_text("a", text)
