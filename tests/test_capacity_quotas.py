"""A ResourceQuota on GPUs: pods over it are not created, however many GPUs are free."""

import pytest

from capacity_manifests import gpu, manifest, template
from gpu_constructs.capacity.planner import plan_capacity
from gpu_constructs.inventory import GpuInventory, GpuNode

DEPLOYMENT, JOB = "apps/v1 Deployment", "batch/v1 Job"
GPUS = "requests.nvidia.com/gpu"
IN_PLACE = {"type": "Recreate"}
ONE_MORE = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}


def quota(hard, resource=GPUS, namespace="ml", **spec):
    return manifest("v1 ResourceQuota", {"hard": {resource: hard}, **spec}, "q", namespace=namespace)


def deployment(replicas=1, name="a", strategy=IN_PLACE, gpus=1, **pods):
    spec = {"replicas": replicas, "strategy": strategy, "template": template(gpu(gpus), **pods)}
    return manifest(DEPLOYMENT, spec, name)


def job(parallelism=1, name="j", **pods):
    return manifest(JOB, {"parallelism": parallelism, "template": template(**pods)}, name)


def planned(*manifests, gpus=8):
    return plan_capacity(list(manifests), GpuInventory(nodes=[GpuNode(name="n", vram="24Gi", gpus=gpus)]))


def placed(plan):
    return {one.consumer.name: (one.placed, one.waiting) for one in plan.consumers}


@pytest.mark.parametrize(
    ("manifests", "kind", "answers", "pods"),
    [
        pytest.param([quota(2), deployment(3)], "slots", ("no", "no"), {"a": (2, 1)}, id="what always runs"),
        pytest.param(
            [quota(2), deployment(2), deployment(1, "b")], "slots", ("no", "no"), {"a": (2, 0), "b": (0, 1)}, id="sum"
        ),
        pytest.param([quota("3"), deployment(gpus=4)], "slots", ("no", "no"), {"a": (0, 1)}, id="one pod"),
        pytest.param(
            [quota(2), deployment(1), job(2)], "waiting", ("yes", "no"), {"a": (1, 0), "j": (1, 1)}, id="work that ends"
        ),
        pytest.param(
            [quota(2), deployment(2), job(1)], "slots", ("yes", "no"), {"a": (2, 0), "j": (0, 1)}, id="never starts"
        ),
        pytest.param(
            [quota(2), deployment(2, strategy=ONE_MORE)], "rollout", ("yes", "yes"), {"a": (2, 0)}, id="an update"
        ),
        pytest.param([quota(1, "pods"), deployment(2)], "slots", ("no", "no"), {"a": (1, 1)}, id="number of pods"),
    ],
)
def test_pods_over_a_quota_are_not_created(manifests, kind, answers, pods):
    plan = planned(*manifests)
    (problem,) = plan.problems
    assert (problem.kind, "ResourceQuota ml/q admits" in problem.text) == (kind, True)
    assert "FailedCreate" in problem.text
    assert "raise the quota" in problem.way_out
    assert (plan.always_fits, plan.all_fits) == answers
    assert placed(plan) == pods


@pytest.mark.parametrize(
    "manifests",
    [
        pytest.param([quota(3), deployment(3)], id="as many as it admits"),
        pytest.param([quota(3), deployment(2, strategy=ONE_MORE)], id="an update too"),
        pytest.param([quota(1, namespace="other"), deployment(3)], id="of another namespace"),
        pytest.param([quota(1, "requests.cpu"), deployment(3)], id="of something else"),
        pytest.param([quota(1, scopes=["Terminating"]), deployment(3)], id="of pods with a deadline"),
        pytest.param(
            [quota(1, scopes=["NotTerminating"]), job(3, activeDeadlineSeconds=60)], id="of pods without a deadline"
        ),
        pytest.param(
            [
                quota(
                    1,
                    scopeSelector={
                        "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["low"]}]
                    },
                ),
                deployment(3, priorityClassName="high"),
            ],
            id="of another priority class",
        ),
    ],
)
def test_what_a_quota_admits_or_does_not_count_fits(manifests):
    plan = planned(*manifests)
    assert (plan.problems, plan.conditions, plan.all_fits) == ([], [], "yes")


def test_a_daemon_set_counts_for_a_quota_once_a_node():
    daemons = manifest("apps/v1 DaemonSet", {"template": template(nodeSelector={"gpu": "yes"})}, "d")
    nodes = [GpuNode(name="n", vram="24Gi", count=3, labels={"gpu": "yes"})]
    plan = plan_capacity([quota(2), daemons], GpuInventory(nodes=nodes))
    assert [problem.kind for problem in plan.problems] == ["slots"]
    assert (plan.all_fits, placed(plan)) == ("no", {"d": (2, 1)})


def test_devices_of_claims_count_by_their_class():
    spec = {"devices": {"requests": [{"name": "g", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]}}
    claim = manifest("resource.k8s.io/v1 ResourceClaimTemplate", {"spec": spec}, "t")
    pods = {"template": {"spec": {"resourceClaims": [{"name": "g", "resourceClaimTemplateName": "t"}]}}, "replicas": 2}
    theirs = manifest(DEPLOYMENT, {**pods, "strategy": IN_PLACE}, "a")
    plan = planned(quota(1, "gpu.nvidia.com.deviceclass.resource.k8s.io/devices"), claim, theirs)
    text = plan.problems[0].text
    assert ("deviceclass.resource.k8s.io/devices" in text, "claims are not created" in text) == (True, True)
    assert placed(plan) == {"a": (1, 1)}
