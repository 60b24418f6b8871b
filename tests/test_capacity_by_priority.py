"""Where there are too few GPUs, priorities decide who waits and who is evicted."""

import pytest

from capacity_manifests import gpu, manifest, template
from gpu_constructs.capacity.planner import plan_capacity
from gpu_constructs.inventory import GpuInventory, GpuNode


def ranked(name, value, **more):
    return manifest("scheduling.k8s.io/v1 PriorityClass", None, name) | {"value": value, **more}


CLASSES = [
    ranked("low", 1),
    ranked("middle", 50),
    ranked("high", 100),
    ranked("patient", 100, preemptionPolicy="Never"),
]


def always(name, priority, replicas=1, gpus=1):
    pods = template(gpu(gpus), priorityClassName=priority)
    spec = {"replicas": replicas, "strategy": {"type": "Recreate"}, "template": pods}
    return manifest("apps/v1 Deployment", spec, name)


def work(name, priority, pods=1, gpus=1):
    spec = {"parallelism": pods, "template": template(gpu(gpus), priorityClassName=priority)}
    return manifest("batch/v1 Job", spec, name)


def planned(*manifests, gpus=1):
    nodes = [GpuNode(name="n", vram="24Gi", gpus=gpus)]
    return plan_capacity([*CLASSES, *manifests], GpuInventory(nodes=nodes))


@pytest.mark.parametrize(
    ("manifests", "gpus", "waiting"),
    [
        pytest.param(
            [always("a", "low"), always("b", "high")], 1, {"a": 1}, id="the low one waits, though it is first"
        ),
        pytest.param([always("b", "high"), always("a", "low")], 1, {"a": 1}, id="in any order of the files"),
        pytest.param([always("a", "low", 3), always("b", "high", gpus=2)], 3, {"a": 2}, id="fewer pods run for it"),
        pytest.param([always("a", "low"), always("b", "patient")], 1, {"a": 1}, id="who evicts nobody is ahead too"),
        pytest.param([always("a", "low"), work("j", "high")], 1, {"a": 1}, id="work evicts"),
        pytest.param([always("a", "low"), work("j", "patient")], 1, {"j": 1}, id="work that evicts nobody waits"),
        pytest.param(
            [always("a", "low"), work("i", "low"), work("j", "patient")], 2, {"i": 1}, id="and is ahead in the queue"
        ),
        pytest.param(
            [always("a", "low"), work("i", "middle"), work("j", "patient")], 2, {"a": 1}, id="work evicts for itself"
        ),
        pytest.param(
            [always("a", "low"), always("b", "middle"), work("j", "high")], 2, {"a": 1}, id="the lowest is evicted"
        ),
        pytest.param([always("a", "high"), work("j", "low", 2)], 2, {"j": 1}, id="low work waits"),
        pytest.param([work("i", "low", 2), work("j", "high", 2)], 2, {"i": 2}, id="of work the urgent one runs"),
    ],
)
def test_who_waits_is_who_has_the_least_priority(manifests, gpus, waiting):
    plan = planned(*manifests, gpus=gpus)
    assert {one.consumer.name: one.waiting for one in plan.consumers if one.waiting} == waiting
    (name,) = waiting
    named = {problem.text for problem in plan.problems} | {
        one.consumer.name
        for one in plan.consumers
        for problem in plan.problems
        if problem.subject == one.consumer.subject
    }
    assert name in named or any(f"ml/{name}" in text for text in named)


def test_the_object_that_waits_is_the_one_that_the_error_is_about():
    plan = planned(always("a", "low"), always("b", "high"))
    (problem,) = plan.problems
    assert problem.subject == next(one.consumer.subject for one in plan.consumers if one.consumer.name == "a")
    assert problem.text.endswith("; by priority ml/a waits")


def test_only_who_is_evicted_is_named():
    plan = planned(always("a", "low"), always("b", "middle"), work("j", "high"), gpus=2)
    (problem,) = plan.problems
    assert "the scheduler evicts pods of ml/a, which wait then" in problem.text
