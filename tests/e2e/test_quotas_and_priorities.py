"""Who gets the GPUs: quotas, limits and priorities on a real control plane, beside what the plan expects."""

import time

import pytest

import plans
from cluster import ApiError, eventually
from gpu_constructs import (
    ContainerLimits,
    GpuNamespace,
    GpuNode,
    GpuPriorityClasses,
    GpuProfile,
    GpuWorkload,
    Kubernetes,
    NamespaceQuota,
    Run,
)
from limits import enforce

GPU, TEAM = "nvidia.com/gpu", "team"
PROFILE = GpuProfile(platform=Kubernetes("1.34"))


def workload(name, gpus=1, replicas=1, **more):
    more = {"run": Run.deployment(replicas=replicas), **more}
    return lambda chart: GpuWorkload(chart, name, image=plans.IMAGE, profile=PROFILE, gpus=gpus, **more)


def namespace(**given):
    return lambda chart: GpuNamespace(chart, "namespace", name=TEAM, pod_security="baseline", **given)


def gpu_quota(**gpus):
    return namespace(resource_quota=NamespaceQuota(gpus=gpus.get("gpus", {}), hard=gpus.get("hard", {})))


def node(gpus, **more):
    return GpuNode(name="gpu-0", vram="24Gi", gpus=gpus, **more)


@pytest.fixture(scope="module")
def kept_team(sites, release):
    # A namespace takes five seconds to go: it stays for all tests, and its quotas go.
    cluster = sites.site(release, "talos").cluster
    with cluster.keeping(*plans.rendered(namespace())):
        yield cluster


@pytest.fixture
def team(kept_team, cluster):
    """A cluster with the namespace of a team; what a test leaves in it is deleted."""
    assert kept_team is cluster
    return cluster


def used(cluster):
    """Return what the namespace uses of its quota."""
    return cluster.get("v1", "ResourceQuota", "namespace-quota", TEAM)["status"]["used"]


# --- quotas -----------------------------------------------------------------------------------------------------

QUOTA_OF_TWO = gpu_quota(gpus={GPU: 2})


@pytest.mark.parametrize(
    ("quota", "work", "counts"),
    [
        pytest.param(QUOTA_OF_TWO, workload("a", replicas=3), {"requests.nvidia.com/gpu": "2"}, id="replicas"),
        pytest.param(
            QUOTA_OF_TWO,
            workload("a", run=Run.job(completions=3)),
            {"requests.nvidia.com/gpu": "2"},
            id="pods of a job",
        ),
        pytest.param(
            gpu_quota(gpus={GPU: 3}),
            workload("a", gpus=4),
            {"requests.nvidia.com/gpu": "0"},
            id="a pod that is too large",
        ),
        pytest.param(gpu_quota(gpus={GPU: 0}), workload("a"), {"requests.nvidia.com/gpu": "0"}, id="none at all"),
        pytest.param(gpu_quota(hard={"pods": 1}), workload("a", replicas=2), {"pods": "1"}, id="the number of pods"),
    ],
)
def test_pods_over_a_quota_are_not_created_and_the_plan_knows(team, kubelets, quota, work, counts):
    manifests = plans.rendered(quota, work, namespace=TEAM)
    plan = plans.planned(manifests, [node(8)])
    kubelets.register(*plans.nodes_of_plan(plan))
    *limits, controller = manifests
    enforce(team, limits)
    team.apply(controller)
    eventually(lambda: plans.reports(team, "FailedCreate"), "the controller reports pods that it could not create")
    plans.wait_for(team, plans.placed(plan))
    eventually(lambda: used(team) == counts, f"the quota counts {counts}", state=lambda: used(team))
    assert plan.all_fits == "no"
    assert all("exceeded quota: namespace-quota" in message for message in plans.reports(team, "FailedCreate"))


@pytest.mark.parametrize(
    ("quota", "work", "nodes"),
    [
        pytest.param(QUOTA_OF_TWO, workload("a", replicas=2), [node(8)], id="as many as it admits"),
        pytest.param(
            gpu_quota(gpus={"nvidia.com/gpu.shared": 0}), workload("a", replicas=2), [node(8)], id="another resource"
        ),
    ],
)
def test_what_a_quota_admits_runs_and_the_plan_knows(team, kubelets, quota, work, nodes):
    manifests = plans.rendered(quota, work, namespace=TEAM)
    plan = plans.planned(manifests, nodes)
    kubelets.register(*plans.nodes_of_plan(plan))
    enforce(team, manifests[:-1])
    team.apply(manifests[-1])
    plans.wait_for(team, {"a": 2})
    assert (plans.placed(plan), plan.all_fits, plans.reports(team, "FailedCreate")) == ({"a": 2}, "yes", [])


def test_what_a_pod_gives_back_another_one_takes(team, kubelets):
    manifests = plans.rendered(QUOTA_OF_TWO, workload("first", replicas=2), workload("second"), namespace=TEAM)
    kubelets.register(*plans.nodes_of_plan(plans.planned(manifests, [node(8)])))
    *limits, first, second = manifests
    enforce(team, limits)
    team.apply(first)
    plans.wait_for(team, {"first": 2})
    team.apply(second)
    eventually(lambda: plans.reports(team, "FailedCreate"), "the second one is refused")
    team.delete(first)
    plans.wait_for(team, {"second": 1})


def pod(*amounts, name="probe"):
    """Return a pod with a container for each set of limits."""
    containers = [
        {"name": f"c{number}", "image": plans.IMAGE, "resources": {"limits": dict(each)}}
        for number, each in enumerate(amounts)
    ]
    metadata = {"name": name, "namespace": TEAM}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers}}


def quota_of(hard):
    metadata = {"name": "namespace-quota", "namespace": TEAM}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}}


def test_a_quota_on_limits_of_gpus_which_the_library_refuses_counts_nothing(team):
    enforce(team, [quota_of({"limits.nvidia.com/gpu": "0", "pods": "5"})])
    team.create(pod({GPU: "1"}))
    eventually(lambda: used(team) == {"pods": "1"}, "the pod is counted, and its GPU is not")


# --- limits of a container ----------------------------------------------------------------------------------------

LIMITS = ContainerLimits(max={GPU: 1, "memory": "64Gi"}, default={"memory": "16Gi"}, default_request={"memory": "4Gi"})


@pytest.mark.parametrize(
    ("manifest", "sentence"),
    [
        pytest.param(pod({GPU: "2"}), "maximum nvidia.com/gpu usage per Container is 1, but limit is 2", id="two GPUs"),
        pytest.param(pod({}, {GPU: "2"}), "maximum nvidia.com/gpu usage per Container is 1", id="in the second one"),
        pytest.param(pod({"memory": "65Gi"}), "maximum memory usage per Container is 64Gi", id="too much memory"),
    ],
)
def test_a_container_over_its_limit_is_refused(team, manifest, sentence):
    enforce(team, plans.rendered(namespace(limit_range=LIMITS)))
    with pytest.raises(ApiError, match=sentence) as refused:
        team.create(manifest, dry_run=True)
    assert refused.value.status == 403


def test_containers_get_what_they_do_not_state_and_never_a_gpu(team):
    enforce(team, plans.rendered(namespace(limit_range=LIMITS)))
    made = team.create(pod({GPU: "1"}, {}), dry_run=True)["spec"]["containers"]
    with_gpu, other = (one["resources"] for one in made)
    assert with_gpu == {"limits": {GPU: "1", "memory": "16Gi"}, "requests": {GPU: "1", "memory": "4Gi"}}
    assert other == {"limits": {GPU: "0", "memory": "16Gi"}, "requests": {GPU: "0", "memory": "4Gi"}}


def test_a_bare_maximum_would_hand_a_gpu_to_every_container(team):
    spec = {"limits": [{"type": "Container", "max": {GPU: "1"}}]}
    metadata = {"name": "bare", "namespace": TEAM}
    enforce(team, [{"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": spec}])
    made = team.create(pod({}, {}), dry_run=True)["spec"]["containers"]
    assert [one["resources"].get("limits") for one in made] == [{GPU: "1"}] * 2


@pytest.mark.parametrize("limits", [None, LIMITS], ids=["alone", "beside defaults"])
def test_a_quota_on_memory_makes_pods_state_it_unless_a_default_does(team, limits):
    quota = NamespaceQuota(gpus={GPU: 4}, hard={"requests.memory": "256Gi"})
    enforce(team, plans.rendered(namespace(resource_quota=quota, limit_range=limits)))
    if limits is None:
        with pytest.raises(ApiError, match=r"must specify requests\.memory"):
            team.create(pod({GPU: "1"}), dry_run=True)
    else:
        (made,) = team.create(pod({GPU: "1"}), dry_run=True)["spec"]["containers"]
        assert "memory" in made["resources"]["limits"]


# --- priorities ---------------------------------------------------------------------------------------------------

SERVING, NOTEBOOK, BATCH = "gpu-serving", "gpu-notebook", "gpu-batch"


def server(name="server", gpus=1, **more):
    return workload(name, gpus, priority_class_name=SERVING, **more)


def notebook():
    return workload("notebook", run=Run.stateful_set(), priority_class_name=NOTEBOOK)


def job(pods=1, name="job"):
    return workload(name, run=Run.job(completions=pods), priority_class_name=BATCH)


def classes(**given):
    return lambda chart: GpuPriorityClasses(chart, "classes", **given)


@pytest.mark.parametrize(
    ("gpus", "first", "then", "remain", "gone"),
    [
        pytest.param(1, [job()], [server()], {"server": 1}, {"job"}, id="a server evicts a job"),
        pytest.param(1, [job()], [notebook()], {"notebook": 1}, {"job"}, id="a notebook evicts a job"),
        pytest.param(
            2, [job(), server()], [notebook()], {"server": 1, "notebook": 1}, {"job"}, id="and never a server"
        ),
        pytest.param(1, [server()], [notebook()], {"server": 1}, set(), id="it waits instead"),
        pytest.param(1, [server()], [server("other")], {"server": 1}, set(), id="equals do not evict each other"),
        pytest.param(
            2, [job(), notebook()], [server()], {"notebook": 1, "server": 1}, {"job"}, id="the lowest goes first"
        ),
        pytest.param(3, [job(3)], [server(gpus=2)], {"server": 1, "job": 1}, {"job"}, id="only as many as needed"),
        pytest.param(2, [job()], [server()], {"job": 1, "server": 1}, set(), id="no pod is evicted without need"),
        pytest.param(1, [workload("plain")], [job()], {"plain": 1}, set(), id="a job waits for pods without a class"),
        pytest.param(1, [workload("plain")], [notebook()], {"notebook": 1}, {"plain"}, id="a notebook does not"),
    ],
)
def test_pods_give_way_as_their_classes_say_and_the_plan_knows(cluster, kubelets, gpus, first, then, remain, gone):
    before, after = plans.rendered(classes(), *first), plans.rendered(*then)
    plan = plans.planned([*before, *after], [node(gpus)])
    kubelets.register(*plans.nodes_of_plan(plan))
    cluster.apply(*before)
    plans.wait_for(cluster, plans.placed(plans.planned(before, [node(gpus)])))
    names = {pod["metadata"]["uid"]: plans.name_of(pod) for pod in cluster.pods()}
    cluster.apply(*after)
    plans.wait_for(cluster, remain, plans.waiting(plan) - gone)
    assert plans.placed(plan) == remain
    eventually(lambda: evicted(cluster, names) == gone, "the events name who was evicted")


def evicted(cluster, names):
    """Return the workloads whose pods the scheduler evicted."""
    uids = {event["involvedObject"]["uid"] for event in cluster.events("Preempted")}
    return {name for uid, name in names.items() if uid in uids}


def test_an_evicted_job_waits_for_its_turn_and_goes_on(cluster, kubelets):
    manifests = plans.rendered(classes(), job(), server())
    plan = plans.planned(manifests, [node(1)])
    kubelets.register(*plans.nodes_of_plan(plan))
    *before, after = manifests
    cluster.apply(*before)
    plans.wait_for(cluster, {"job": 1})
    cluster.apply(after)
    plans.wait_for(cluster, plans.placed(plan), plans.waiting(plan))
    cluster.delete(after)
    plans.wait_for(cluster, {"job": 1})


def test_a_class_that_shall_not_evict_waits(cluster, kubelets):
    first = plans.rendered(classes(never_preempting=["serving", "batch"]), job())
    kubelets.register(*plans.nodes_of_plan(plans.planned(first, [node(1)])))
    cluster.apply(*first)
    plans.wait_for(cluster, {"job": 1})
    cluster.apply(*plans.rendered(server()))
    plans.wait_for(cluster, {"job": 1}, ["server"])


def test_of_pods_that_wait_the_one_with_the_higher_class_comes_first_and_the_plan_knows(cluster, kubelets):
    taken, queue = plans.rendered(classes(), server()), plans.rendered(workload("plain", run=Run.job()), job())
    plan = plans.planned([*taken[:-1], *queue], [node(1)])
    kubelets.register(*plans.nodes_of_plan(plan))
    cluster.apply(*taken)
    plans.wait_for(cluster, {"server": 1})
    cluster.apply(*queue)
    plans.wait_for(cluster, {"server": 1}, ["plain", "job"])
    # The scheduler tries a pod again only seconds after it failed, whatever its class: both must be past that.
    time.sleep(5)
    cluster.delete(taken[-1])
    plans.wait_for(cluster, plans.placed(plan), plans.waiting(plan))
    assert (plans.placed(plan), plans.waiting(plan)) == ({"job": 1}, {"plain"})
