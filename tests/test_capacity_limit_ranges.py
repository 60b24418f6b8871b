"""A LimitRange gives containers what they do not ask for, and refuses pods; the plan counts pods as admitted."""

import pytest

from capacity_manifests import gpu, manifest, pod
from gpu_constructs.capacity.planner import plan_capacity
from gpu_constructs.inventory import GpuInventory, GpuNode
from gpu_constructs.sharing import Sharing

GPU = "nvidia.com/gpu"


def limits(kind="Container", name="limits", namespace="ml", **given):
    return manifest("v1 LimitRange", {"limits": [{"type": kind, **given}]}, name, namespace=namespace)


def deployment(*containers, replicas=1, **spec):
    recreate = {"replicas": replicas, "strategy": {"type": "Recreate"}}
    return manifest("apps/v1 Deployment", {**recreate, "template": {"spec": pod(*containers, **spec)}})


def planned(*manifests, slots=2):
    node = GpuNode(name="n", vram="24Gi", sharing=Sharing.time_slicing(replicas=slots))
    return plan_capacity(manifests, GpuInventory(nodes=[node]))


def asked(plan):
    return [dict(one.consumer.asks) for one in plan.consumers]


def container(limit=None, request=None, name="main"):
    given = {"limits": limit or {}, "requests": request or {}}
    return {"name": name, "resources": given}


@pytest.mark.parametrize(
    "given",
    [
        {"default": {GPU: 1}},
        {"default": {GPU: "1"}, "defaultRequest": {GPU: 1}},
        # A maximum without a default is the default.
        {"max": {GPU: 1}},
    ],
)
def test_a_default_gives_every_container_a_gpu(given):
    plan = planned(limits(**given), deployment(gpu(), {"name": "sidecar"}, initContainers=[{"name": "init"}]))
    assert asked(plan) == [{GPU: 2}]
    assert "ml/x: LimitRange limits gives GPUs to containers that ask for none: init and sidecar" in plan.notes


def test_a_pod_that_asks_for_no_gpu_counts_with_the_default():
    plan = planned(limits(default={GPU: 1}), deployment({"name": "web"}, replicas=3))
    assert (asked(plan), plan.always_fits) == ([{GPU: 1}], "no")


@pytest.mark.parametrize(
    "given",
    [
        {"default": {GPU: 0}, "max": {GPU: 4}},
        {"default": {"cpu": "1"}},
        {"default": {GPU: 1}, "namespace": "other"},
        {"default": {GPU: 1}, "kind": "Pod"},
    ],
)
def test_what_gives_no_gpu_changes_nothing(given):
    plan = planned(limits(**given), deployment(gpu(), {"name": "sidecar"}))
    assert (asked(plan), plan.all_fits, plan.problems) == ([{GPU: 1}], "yes", [])


@pytest.mark.parametrize(
    ("given", "containers", "why"),
    [
        ({"max": {GPU: 1}}, [gpu(2)], f"limits['{GPU}'] of container main is 2, above max 1"),
        ({"max": {"memory": "8Gi"}}, [gpu(), container({"memory": "16Gi"})], "is 16Gi, above max 8Gi"),
        ({"max": {"cpu": 1}}, [container({GPU: 1}, {"cpu": "1500m"})], "requests['cpu'] of container main is 1500m"),
        ({"min": {"memory": "1Gi"}}, [container({GPU: 1}, {"memory": "512Mi"})], "is 512Mi, below min 1Gi"),
        ({"kind": "Pod", "max": {GPU: 1}}, [gpu(), gpu(name="b")], f"limits['{GPU}'] of the pod is 2, above max 1"),
        (
            {"kind": "Pod", "min": {"memory": "4Gi"}},
            [container({GPU: 1, "memory": "1Gi"}), container({"memory": "1Gi"})],
            "of the pod is 2147483648, below min 4Gi",
        ),
    ],
)
def test_a_pod_that_is_refused_does_not_run(given, containers, why):
    plan = planned(limits(**given), deployment(*containers), slots=4)
    assert [(one.placed, one.waiting) for one in plan.consumers] == [(0, 1)]
    (problem,) = plan.problems
    assert problem.kind == "placement"
    assert problem.text.startswith("its pods are refused: LimitRange limits: ")
    assert why in problem.text
    assert (plan.always_fits, plan.all_fits) == ("no", "no")


@pytest.mark.parametrize(
    ("given", "containers"),
    [
        ({"max": {GPU: 1}, "default": {GPU: 0}}, [gpu()]),
        ({"max": {"memory": "8Gi"}}, [gpu(), container({"memory": "8Gi"})]),
        ({"min": {"memory": "1Gi"}}, [gpu()]),
        ({"kind": "Pod", "max": {"memory": "8Gi"}}, [gpu()]),
        ({"max": {"memory": "much"}}, [gpu()]),
        ({"kind": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}, [gpu()]),
    ],
)
def test_a_pod_within_its_limits_runs(given, containers):
    plan = planned(limits(**given), deployment(*containers))
    assert (plan.all_fits, plan.problems) == ("yes", [])


def test_pods_of_a_daemon_set_that_are_refused_are_told_once():
    refused = manifest("apps/v1 DaemonSet", {"template": {"spec": pod(gpu(2))}}, "d")
    plan = planned(limits(max={GPU: 1}), refused)
    assert [problem.text.partition(":")[0] for problem in plan.problems] == ["its pods are refused"]
