import pytest

import refusals
from gpu_constructs.cluster.priority_classes import GpuPriorityClasses
from tables import cases


def refusal(chart, **given):
    return refusals.refusal(GpuPriorityClasses, chart, "classes", **given).removeprefix("gpu/classes: ")


def test_the_classes_are_as_before(chart, objects, snapshot):
    GpuPriorityClasses(chart, "classes")
    assert objects(chart) == snapshot


def test_names_values_and_preemption_are_as_given(chart, objects):
    classes = GpuPriorityClasses(chart, "classes", prefix="ml", values={"batch": -10}, never_preempting=("notebook",))
    assert (classes.serving, classes.notebook, classes.batch) == ("ml-serving", "ml-notebook", "ml-batch")
    assert [(m["value"], m["preemptionPolicy"]) for m in objects(chart)] == [
        (100_000, "PreemptLowerPriority"),
        (10_000, "Never"),
        (-10, "PreemptLowerPriority"),
    ]


@cases
def test_values_that_kubernetes_rejects_are_rejected(chart, given, problem):
    assert refusal(chart, **given) == problem


@pytest.mark.parametrize("prefix", ["GPU", "", "a_b", "x" * 60])
def test_a_prefix_that_results_in_an_invalid_name_is_rejected(chart, prefix):
    assert refusal(chart, prefix=prefix).startswith("prefix must be a DNS subdomain")
