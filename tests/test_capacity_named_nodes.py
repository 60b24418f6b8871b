"""A name that pods select is that of one node at most, also where nodes are declared as a pool."""

import pytest

from capacity_manifests import manifest, pod
from gpu_constructs.capacity.planner import plan_capacity
from gpu_constructs.inventory import GpuInventory, GpuNode
from gpu_constructs.sharing import Sharing

HOSTNAME = "kubernetes.io/hostname"
POOL = GpuNode(name="pool", vram="24Gi", count=3, sharing=Sharing.none())
SELECTED = {"nodeSelector": {HOSTNAME: "pool-1"}}


def affinity(operator, *values, field="matchExpressions", key=HOSTNAME):
    terms = [{field: [{"key": key, "operator": operator, "values": list(values)}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"affinity": {"nodeAffinity": required}}


def deployment(replicas=1, name="x", **spec):
    recreate = {"replicas": replicas, "strategy": {"type": "Recreate"}}
    return manifest("apps/v1 Deployment", {**recreate, "template": {"spec": pod(**spec)}}, name)


def planned(*manifests, nodes=(POOL,)):
    return plan_capacity(manifests, GpuInventory(nodes=list(nodes)))


def counts(plan):
    return [(one.placed, one.waiting) for one in plan.consumers]


@pytest.mark.parametrize(
    ("replicas", "spec", "expected"),
    [
        (1, SELECTED, (1, 0)),
        (2, SELECTED, (1, 1)),
        (1, affinity("In", "pool-1", field="matchFields", key="metadata.name"), (1, 0)),
        (1, {"nodeName": "pool-1"}, (1, 0)),
        (2, affinity("In", "a", "b"), (2, 0)),
        (3, affinity("In", "a", "b"), (2, 1)),
        (3, affinity("NotIn", "a"), (3, 0)),
    ],
)
def test_a_name_is_one_node_of_the_pool(replicas, spec, expected):
    plan = planned(deployment(replicas, **spec))
    assert counts(plan) == [expected]
    # A name that pods only avoid may be that of any node of the pool.
    assert (plan.all_fits in ("yes", "conditional"), plan.problems == []) == (not expected[1], not expected[1])
    assert sum(one.count for one in plan.nodes) == 3


def test_pods_of_one_name_leave_the_other_nodes_of_the_pool():
    plan = planned(deployment(**SELECTED), deployment(2, "y"))
    assert (counts(plan), plan.problems) == ([(1, 0), (2, 0)], [])
    assert planned(deployment(**SELECTED), deployment(3, "y")).always_fits == "no"
    assert "pool-1: pods select it by name: taken as a node of the pool pool" in plan.notes


def test_who_avoids_a_node_that_others_select_goes_to_the_rest():
    avoiding = deployment(3, "y", **affinity("NotIn", "pool-1"))
    assert counts(planned(deployment(1, **SELECTED), avoiding)) == [(1, 0), (2, 1)]


def test_a_node_that_is_declared_is_none_of_the_pool():
    nodes = (POOL, GpuNode(name="pool-1", vram="24Gi", sharing=Sharing.none()))
    plan = planned(deployment(2, **SELECTED), nodes=nodes)
    assert counts(plan) == [(1, 1)]


def test_a_name_declared_for_a_pool_is_that_of_one_node():
    pool = GpuNode(name="pool", vram="24Gi", count=3, sharing=Sharing.none(), labels={HOSTNAME: "pool-1"})
    assert counts(planned(deployment(3, **SELECTED), nodes=[pool])) == [(1, 2)]


def test_a_daemon_set_for_a_node_by_name_has_one_pod():
    daemon_set = manifest("apps/v1 DaemonSet", {"template": {"spec": pod(**SELECTED)}}, "d")
    plan = planned(daemon_set)
    assert (counts(plan), plan.problems) == ([(1, 0)], [])


def test_a_name_may_be_that_of_a_node_of_any_pool():
    other = GpuNode(name="big", vram="80Gi", gpus=2, count=2, sharing=Sharing.none())
    plan = planned(deployment(2, **SELECTED), nodes=(POOL, other))
    assert plan.problems == []


def test_a_pool_of_which_every_node_is_named_gets_its_problems_told():
    plan = planned(deployment(4, **affinity("In", "a", "b", "c")))
    assert (counts(plan), plan.all_fits) == ([(3, 1)], "no")
