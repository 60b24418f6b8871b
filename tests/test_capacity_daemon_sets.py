"""A DaemonSet gets a pod on every node that its template admits, whatever the pod asks for."""

import pytest

from capacity_manifests import gpu, manifest, pod
from gpu_constructs.capacity.planner import plan_capacity
from gpu_constructs.inventory import GpuInventory, GpuNode
from gpu_constructs.sharing import Sharing
from gpu_constructs.taint import Taint

PLAIN = GpuNode(name="plain", gpu_model="NVIDIA A100-SXM4-80GB", sharing=Sharing.none(), labels={"pool": "plain"})
DIVIDED = GpuNode(
    name="divided",
    gpu_model="NVIDIA A100-SXM4-80GB",
    mig_layout={"3g.40gb": 2},
    mig_strategy="mixed",
    sharing=Sharing.none(),
    labels={"pool": "divided"},
)
TAINTED = GpuNode(
    name="tainted",
    vram="24Gi",
    sharing=Sharing.none(),
    taints=[Taint(key="dedicated", value="ai", effect="NoSchedule")],
)
TEMPLATE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "whole", "namespace": "ml"},
    "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]}}},
}


def daemon_set(*containers, **spec):
    return manifest("apps/v1 DaemonSet", {"template": {"spec": pod(*containers, **spec)}}, "d")


def runtime_class(**scheduling):
    metadata = {"name": "nvidia"}
    return {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": metadata, "scheduling": scheduling}


def planned(*manifests, nodes=(PLAIN, DIVIDED)):
    return plan_capacity(manifests, GpuInventory(nodes=list(nodes)))


def counts(plan):
    return [(one.placed, one.waiting) for one in plan.consumers]


def affinity(key, operator, *values):
    rule = {"key": key, "operator": operator, "values": list(values)}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


@pytest.mark.parametrize(
    ("manifests", "nodes", "lacking"),
    [
        ([daemon_set()], (PLAIN, DIVIDED), "divided offers no nvidia.com/gpu"),
        ([daemon_set(gpu(resource="nvidia.com/mig-3g.40gb"))], (PLAIN, DIVIDED), "plain offers no nvidia.com/mig-3g"),
        ([daemon_set(gpu(2))], (PLAIN, GpuNode(name="two", vram="24Gi", gpus=2)), "plain offers 1 nvidia.com/gpu"),
        (
            [daemon_set({"name": "a"}, resourceClaims=[{"name": "g", "resourceClaimTemplateName": "whole"}]), TEMPLATE],
            (
                GpuNode(name="plain", gpu_model="NVIDIA A100-SXM4-80GB"),
                GpuNode(name="divided", gpu_model="NVIDIA A100-SXM4-80GB", mig_layout={"3g.40gb": 2}),
            ),
            "divided offers no gpu.nvidia.com",
        ),
    ],
)
def test_a_node_without_the_resource_gets_a_pod_that_stays_pending(manifests, nodes, lacking):
    plan = planned(*manifests, nodes=nodes)
    assert counts(plan) == [(1, 1)]
    assert (plan.always_fits, plan.all_fits) == ("no", "no")
    (problem,) = plan.problems
    assert (problem.kind, lacking in problem.text, "stay Pending" in problem.text) == ("placement", True, True)
    assert "node_selector" in problem.way_out


@pytest.mark.parametrize("spec", [{"nodeSelector": {"pool": "plain"}}, affinity("pool", "NotIn", "divided")])
def test_a_selector_that_only_nodes_with_the_resource_match_fits(spec):
    plan = planned(daemon_set(**spec))
    assert (counts(plan), plan.problems) == ([(1, 0)], [])
    assert plan.all_fits != "no"


def test_a_taint_keeps_the_pod_off():
    plan = planned(daemon_set(gpu(resource="nvidia.com/mig-3g.40gb")), nodes=(DIVIDED, TAINTED))
    assert (counts(plan), plan.problems) == ([(1, 0)], [])


def test_what_the_plugin_refuses_fails_on_its_node():
    sharing = Sharing.time_slicing(replicas=4, fail_requests_greater_than_one=True)
    shared = GpuNode(name="shared", vram="24Gi", sharing=sharing)
    plan = planned(daemon_set(gpu(2)), nodes=(GpuNode(name="two", vram="24Gi", gpus=2), shared))
    assert counts(plan) == [(1, 1)]
    assert "shares GPUs so that a container gets 1" in plan.problems[0].text


def test_a_pod_that_may_not_come_is_noted_and_fails_nothing():
    plan = planned(daemon_set(nodeSelector={"nvidia.com/unheard-of": "x"}))
    assert (counts(plan), plan.problems) == ([(1, 0)], [])
    assert [condition.text for condition in plan.conditions] == [
        "it fits, if divided has no label nvidia.com/unheard-of that it selects: with it the DaemonSet makes a pod "
        "there that stays Pending",
        "it fits, if the label nvidia.com/unheard-of, which pods select and which is not declared, is as they want it "
        "on plain",
    ]


def test_the_controller_does_not_see_what_a_runtime_class_selects():
    runs = daemon_set(runtimeClassName="nvidia")
    plan = planned(runs, runtime_class(nodeSelector={"pool": "plain"}))
    assert counts(plan) == [(1, 1)]
    assert "divided has pool=divided" in plan.problems[0].text


def test_the_controller_does_not_see_what_a_runtime_class_tolerates():
    tolerations = [{"key": "dedicated", "operator": "Exists"}]
    plan = planned(
        daemon_set(runtimeClassName="nvidia"), runtime_class(tolerations=tolerations), nodes=(PLAIN, TAINTED)
    )
    assert (counts(plan), plan.problems) == ([(1, 0)], [])


@pytest.mark.parametrize(
    ("spec", "is_noted"),
    [
        ({}, True),
        ({"nodeSelector": {"kubernetes.io/os": "linux"}}, True),
        (affinity("kubernetes.io/arch", "In", "amd64"), True),
        ({"nodeSelector": {"pool": "plain"}}, False),
        (affinity("nvidia.com/gpu.present", "Exists"), False),
    ],
)
def test_nodes_without_gpus_are_told_of_where_nothing_keeps_its_pods_off_them(spec, is_noted):
    plan = planned(daemon_set(**spec), nodes=(PLAIN,))
    assert (counts(plan), plan.problems) == ([(1, 0)], [])
    assert any("nodes without GPUs" in one.text for one in plan.conditions) == is_noted
