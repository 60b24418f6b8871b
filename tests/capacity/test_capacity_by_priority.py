"""Where there are too few GPUs, priorities decide who waits and who is evicted."""

from capacity_manifests import gpu, manifest, template
from gpu_constructs.capacity.planner import plan_capacity
from gpu_constructs.catalog.inventory import GpuInventory, GpuNode


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


def test_who_waits_is_who_has_the_least_priority():
    for manifests, gpus, waiting, _what in [
        ([always("a", "low"), always("b", "high")], 1, {"a": 1}, "the low one waits, though it is first"),
        ([always("b", "high"), always("a", "low")], 1, {"a": 1}, "in any order of the files"),
        ([always("a", "low", 3), always("b", "high", gpus=2)], 3, {"a": 2}, "fewer pods run for it"),
        ([always("a", "low"), always("b", "patient")], 1, {"a": 1}, "who evicts nobody is ahead too"),
        ([always("a", "low"), work("j", "high")], 1, {"a": 1}, "work evicts"),
        ([always("a", "low"), work("j", "patient")], 1, {"j": 1}, "work that evicts nobody waits"),
        ([always("a", "low"), work("i", "low"), work("j", "patient")], 2, {"i": 1}, "and is ahead in the queue"),
        ([always("a", "low"), work("i", "middle"), work("j", "patient")], 2, {"a": 1}, "work evicts for itself"),
        ([always("a", "low"), always("b", "middle"), work("j", "high")], 2, {"a": 1}, "the lowest is evicted"),
        ([always("a", "high"), work("j", "low", 2)], 2, {"j": 1}, "low work waits"),
        ([work("i", "low", 2), work("j", "high", 2)], 2, {"i": 2}, "of work the urgent one runs"),
    ]:
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
