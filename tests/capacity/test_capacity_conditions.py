import json

from app_tables import objects
from gpu_constructs.capacity.planner import plan_capacity
from gpu_constructs.catalog.inventory import GpuInventory, GpuNode


def test_every_report_states_a_condition_in_its_verdict():
    pod = {"containers": [{"limits": {"nvidia.com/gpu": 1}}], "nodeSelector": {"nvidia.com/gpu.product": "X"}}
    nodes = [GpuNode(name="n", vram="24Gi", count=2)]
    plan = plan_capacity(objects([{"kind": "Deployment", "pod": pod}]), GpuInventory(nodes=nodes))
    (condition,) = plan.conditions
    assert plan.problems == []
    assert (condition.kind, condition.way_out) == ("unchecked", "declare it with GpuNode(labels=...)")
    for report in (plan.to_text("x"), plan.to_html("x"), plan.to_svg("x")):
        assert "It fits, if" in report
        assert "Everything fits" not in report
    text = plan.to_text("x")
    assert "Fits, if\n--------" in text
    assert "nvidia.com/gpu.product" not in text.partition("Assumptions")[2]
    verdict = json.loads(plan.to_json("x"))["verdict"]
    assert verdict["sentences"][0]["text"].startswith("It fits, if the undeclared label nvidia.com/gpu.product")
