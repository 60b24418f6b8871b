"""What two constructs of an app contradict each other in."""

from __future__ import annotations

import pytest
from cdk8s import App, Chart

from gpu_constructs import (
    CapacityPlan,
    External,
    GpuInventory,
    GpuNamespace,
    GpuNode,
    PowerLimit,
    SynthesisError,
    Taint,
    Talos,
    TalosGpuNode,
    Toleration,
    synthesize,
)
from gpu_constructs.errors import GpuConstructsWarning


@pytest.fixture
def app(tmp_path):
    made = App(outdir=str(tmp_path / "dist"))
    External(made, "labels", node_labels=["nvidia.com/gpu.present"], runtime_classes=["nvidia"])
    return made


def problems_of(app):
    """Return every problem that a synth finds; none where it succeeds."""
    try:
        synthesize(app)
    except SynthesisError as error:
        return error.problems
    return []


BOARD = "NVIDIA GeForce RTX 3090"

# Power limits.

IN_TURN = (
    "a/limit: limits the power of GPUs on nodes that b/limit limits too, so the two would set their limits in turn; "
    "join them with limits={...} in one, or give the two node_selectors that no node matches both of"
)


def limits(app, one, other):
    for number, (id, given) in enumerate({"a": one, "b": other}.items()):
        chart = Chart(app, id)
        namespace = GpuNamespace(chart, "namespace", name=f"power-{id}")
        PowerLimit(chart, "limit", name=id, namespace=namespace, watts=200 + number, **given)


def pool(*names, operator="In"):
    term = {"matchExpressions": [{"key": "pool", "operator": operator, "values": list(names)}]}
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    }


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({}, {}),
        ({}, {"node_selector": {"pool": "a"}}),
        ({"node_selector": {"pool": "a"}}, {"node_selector": {"zone": "b"}}),
        (pool("a", "b"), pool("b", "c")),
        (pool("a", operator="NotIn"), {"node_selector": {"pool": "b"}}),
    ],
)
def test_two_power_limits_for_one_node_are_an_error(app, one, other):
    limits(app, one, other)
    assert problems_of(app) == [IN_TURN]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"node_selector": {"pool": "a"}}, {"node_selector": {"pool": "b"}}),
        (pool("a", "b"), pool("c")),
        (pool("a", operator="NotIn"), {"node_selector": {"pool": "a"}}),
        ({"node_selector": {"pool": "a"}}, pool(operator="DoesNotExist")),
    ],
)
def test_power_limits_for_different_nodes_stand_side_by_side(app, one, other):
    limits(app, one, other)
    assert problems_of(app) == []


FAST, SLOW = ([Toleration(key="pool", value=value, effect="NoSchedule")] for value in ("fast", "slow"))


def test_power_limits_that_tolerate_different_taints_may_be_for_different_nodes(app):
    limits(app, {"tolerations": FAST}, {"tolerations": SLOW})
    with pytest.warns(GpuConstructsWarning, match="a/limit: limits the power of GPUs on nodes that b/limit"):
        synthesize(app)


def test_declared_nodes_show_that_power_limits_are_for_different_ones(app):
    limits(app, {"tolerations": FAST}, {"tolerations": SLOW})
    nodes = [
        GpuNode(
            name=name, gpu_model="NVIDIA GeForce RTX 3090", taints=[Taint(key="pool", value=name, effect="NoSchedule")]
        )
        for name in ("fast", "slow")
    ]
    CapacityPlan(app, GpuInventory(nodes=nodes))
    assert problems_of(app) == []


def test_configured_nodes_show_that_power_limits_are_for_different_ones(app):
    limits(app, {"node_selector": {"pool": "a"}}, {"node_selector": {"zone": "b"}})
    for name in ("a", "b"):
        TalosGpuNode(app, f"node-{name}", platform=Talos("1.12"), node_labels={"pool": name, "zone": name})
    assert problems_of(app) == []


def test_a_declared_node_that_takes_both_power_limits_is_an_error(app):
    limits(app, {"node_selector": {"pool": "a"}}, {"node_selector": {"zone": "b"}})
    CapacityPlan(
        app,
        GpuInventory(nodes=[GpuNode(name="n", gpu_model="NVIDIA GeForce RTX 3090", labels={"pool": "a", "zone": "b"})]),
    )
    assert problems_of(app) == [IN_TURN]
