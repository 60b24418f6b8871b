"""A plan that rests on what it cannot look at says so in its verdict."""

import json

import pytest

from capacity_manifests import gpu, manifest, pod, template
from gpu_constructs.capacity.planner import plan_capacity
from gpu_constructs.inventory import GpuInventory, GpuNode

DEPLOYMENT, JOB = "apps/v1 Deployment", "batch/v1 Job"


def planned(*manifests, count=2, gpus=1, **node):
    nodes = [GpuNode(name="n", vram="24Gi", gpus=gpus, count=count, **node)]
    return plan_capacity(list(manifests), GpuInventory(nodes=nodes))


def workload(kind=DEPLOYMENT, name="x", **spec):
    return manifest(kind, {"template": template(gpu(), **spec)}, name)


FARM = {**manifest("example.com/v1 RenderFarm", {"template": {"spec": pod()}}, "farm")}
CLAIM = {"resourceClaims": [{"name": "g", "resourceClaimName": "elsewhere"}]}


@pytest.mark.parametrize(
    ("manifests", "condition", "answers"),
    [
        pytest.param(
            [workload(schedulerName="volcano")],
            "It fits, if its scheduler volcano places its pods where kube-scheduler would (Deployment ml/x).",
            ("conditional", "conditional"),
            id="another scheduler",
        ),
        pytest.param(
            [workload(nodeSelector={"nvidia.com/gpu.product": "X"})],
            "It fits, if the label nvidia.com/gpu.product, which pods select and which is not declared, is as they "
            "want it on n.",
            ("conditional", "conditional"),
            id="a label that is not declared",
        ),
        pytest.param(
            [workload(), FARM],
            "It fits, if there is room for RenderFarm ml/farm, which asks for nvidia.com/gpu and is of a kind that is "
            "not known: not counted.",
            ("conditional", "conditional"),
            id="an object of a kind that is not known",
        ),
        pytest.param(
            [workload(**CLAIM)],
            "It fits, if ResourceClaim elsewhere, which is not in this app, has its devices (Deployment ml/x).",
            ("conditional", "conditional"),
            id="a claim of another app",
        ),
        pytest.param(
            [workload(), workload(JOB, "train", schedulerName="volcano")],
            "It fits, if its scheduler volcano places its pods where kube-scheduler would (Job ml/train).",
            ("yes", "conditional"),
            id="work that ends says nothing of what always runs",
        ),
        pytest.param(
            [workload(schedulerName="volcano"), workload(name="y", schedulerName="volcano")],
            "It fits, if its scheduler volcano places its pods where kube-scheduler would (Deployment ml/x), and 1 "
            "more condition holds.",
            ("conditional", "conditional"),
            id="several",
        ),
        pytest.param(
            [workload(schedulerName="volcano"), manifest(JOB, {"parallelism": 2, "template": template()}, "train")],
            "It fits, if its scheduler volcano places its pods where kube-scheduler would (Deployment ml/x); but not "
            "at once: 1 of 3 pods waits.",
            ("conditional", "no"),
            id="not at once",
        ),
    ],
)
def test_what_cannot_be_looked_at_is_in_the_verdict_of_every_report(manifests, condition, answers):
    plan = planned(*manifests)
    assert (plan.always_fits, plan.all_fits) == answers
    verdict = json.loads(plan.to_json("x"))["verdict"]
    assert verdict["sentences"][0]["text"] == condition
    assert (verdict["alwaysFits"], verdict["allFits"]) == answers
    for report in (plan.to_text("x"), plan.to_html("x"), plan.to_svg("x")):
        assert "It fits, if" in report
        assert "Everything fits" not in report


def test_a_condition_is_listed_with_its_way_out_and_is_no_shortcoming():
    plan = planned(workload(nodeSelector={"nvidia.com/gpu.product": "X"}))
    (condition,) = plan.conditions
    assert plan.problems == []
    assert (condition.kind, condition.way_out) == ("unchecked", "declare it with GpuNode(labels=...)")
    text = plan.to_text("x")
    assert "Fits, if\n--------" in text
    assert "What does not fit" not in text
    assert "nvidia.com/gpu.product" not in text.partition("Assumed")[2]
