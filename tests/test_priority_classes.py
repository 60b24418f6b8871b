import pytest

from gpu_constructs import GpuConstructsError
from gpu_constructs.priority_classes import GpuPriorityClasses

SYSTEM_CLUSTER_CRITICAL = 2_000_000_000


def refusal(chart, **given):
    with pytest.raises(GpuConstructsError) as refused:
        GpuPriorityClasses(chart, "classes", **given)
    return refused.value.problem


def test_the_classes_are_as_before(chart, objects, snapshot):
    GpuPriorityClasses(chart, "classes")
    assert objects(chart) == snapshot


def test_serving_comes_before_notebooks_before_batch_before_pods_without_a_class(chart, objects):
    classes = GpuPriorityClasses(chart, "classes")
    values = {m["metadata"]["name"]: m["value"] for m in objects(chart)}
    order = [values[classes.serving], values[classes.notebook], values[classes.batch], 0]
    assert order == sorted(order, reverse=True)
    assert len(set(order)) == 4
    assert max(order) < SYSTEM_CLUSTER_CRITICAL


def test_none_is_the_default_of_the_cluster_and_batch_alone_evicts_nobody(chart, objects):
    GpuPriorityClasses(chart, "classes")
    found = objects(chart)
    assert ["globalDefault" in m for m in found] == [False] * 3
    assert {m["metadata"]["name"]: m["preemptionPolicy"] for m in found} == {
        "gpu-serving": "PreemptLowerPriority",
        "gpu-notebook": "PreemptLowerPriority",
        "gpu-batch": "Never",
    }


def test_names_values_and_preemption_are_as_given(chart, objects):
    classes = GpuPriorityClasses(chart, "classes", prefix="ml", values={"batch": -10}, never_preempting=("notebook",))
    assert (classes.serving, classes.notebook, classes.batch) == ("ml-serving", "ml-notebook", "ml-batch")
    assert [(m["value"], m["preemptionPolicy"]) for m in objects(chart)] == [
        (100_000, "PreemptLowerPriority"),
        (10_000, "Never"),
        (-10, "PreemptLowerPriority"),
    ]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"values": {"batch": 10_000}}, "values['notebook'] must be above values['batch'], 10000; got 10000"),
        ({"values": {"serving": 5}}, "values['serving'] must be above values['notebook'], 10000; got 5"),
        (
            {"values": {"serving": 1_000_000_001}},
            "values['serving'] must be at most 1000000000, got 1000000001; higher ones are the system's",
        ),
        ({"prefix": "system"}, "prefix must not start with 'system-', which Kubernetes reserves; got 'system'"),
        ({"prefix": "system-gpu"}, "prefix must not start with 'system-', which Kubernetes reserves; got 'system-gpu'"),
    ],
)
def test_what_kubernetes_refuses_is_refused(chart, given, problem):
    assert refusal(chart, **given) == problem


def test_a_tier_that_there_is_not_is_refused(chart):
    assert "'serve'" in refusal(chart, values={"serve": 1})


@pytest.mark.parametrize("prefix", ["GPU", "", "a_b", "x" * 60])
def test_a_prefix_that_makes_no_name_is_refused(chart, prefix):
    assert refusal(chart, prefix=prefix).startswith("prefix must be a DNS subdomain")
