import pytest

from app_tables import objects
from gpu_constructs.capacity.planner import plan_capacity
from gpu_constructs.catalog.inventory import GpuInventory, GpuNode
from gpu_constructs.catalog.sharing import Sharing
from gpu_constructs.kube.placement import Taint
from tables import beside

EXAMPLES = beside(__file__, "plans")


def node_of(given):
    """Return a node of the table, whose sharing is a constructor of Sharing with keywords."""
    sharing = [getattr(Sharing, name)(**options) for name, options in given.get("sharing", {}).items()]
    taints = [Taint(**taint) for taint in given.get("taints", [])]
    return GpuNode(**{**given, "sharing": next(iter(sharing), None), "taints": taints})


def described(plan):
    """Return a plan in the form of the table."""
    said = {
        "problems": [f"{one.kind}: {one.text}" for one in plan.problems],
        "conditions": [one.text for one in plan.conditions],
        "notes": list(plan.notes),
    }
    everyone = {one.consumer.title: one for one in plan.consumers}
    return {
        "always": plan.always_fits,
        "all": plan.all_fits,
        "placed": {title: f"{one.placed} of {one.placed + one.waiting}" for title, one in everyone.items()},
        "asks": {title: dict(one.consumer.asks) for title, one in everyone.items()},
        **{name: texts for name, texts in said.items() if texts},
    }


@pytest.mark.parametrize("sentence", EXAMPLES)
def test_plans_of_objects_and_nodes(sentence):
    for example in EXAMPLES[sentence]:
        inventory = GpuInventory(nodes=[node_of(one) for one in example["nodes"]])
        plan = plan_capacity(objects(example["objects"], "ml"), inventory)
        advice = {"advice": list(plan.advice)} if "advice" in example["plan"] else {}
        assert described(plan) | advice == example["plan"], example["objects"]


def test_a_large_fleet_gets_no_advice():
    nodes = [GpuNode(name=f"n{number}", gpu_model="RTX 3090", sharing=Sharing.none()) for number in range(400)]
    pod = {"containers": [{"limits": {"nvidia.com/gpu": 1}}]}
    pods = objects({"kind": "Deployment", "name": f"p{number}", "pod": pod} for number in range(401))
    assert plan_capacity(pods, GpuInventory(nodes=nodes)).advice == []
