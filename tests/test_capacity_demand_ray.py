import pytest

from capacity_manifests import found, manifest, one, template, told

T = {"template": template()}
CPU = {"template": template({"name": "head"})}
CLUSTER = "ray.io/v1 RayCluster"


def workers(**more):
    return {"groupName": "w", **T, **more}


def cluster(*groups, head=CPU, **more):
    return {"headGroupSpec": head, "workerGroupSpecs": list(groups), **more}


@pytest.mark.parametrize(
    ("group", "scales", "expected"),
    [
        (workers(replicas=3), False, (3, 3, 1)),
        (workers(minReplicas=2), False, (2, 2, 1)),
        (workers(replicas=9, maxReplicas=4), False, (4, 4, 1)),
        (workers(replicas=2, numOfHosts=4), False, (2, 2, 4)),
        (workers(replicas=1, minReplicas=1, maxReplicas=6), True, (6, 1, 1)),
        (workers(replicas=2, maxReplicas=6), True, (6, 0, 1)),
    ],
)
def test_a_group_of_workers_has_copies_between_bounds(group, scales, expected):
    consumer = one(manifest(CLUSTER, cluster(group, enableInTreeAutoscaling=scales)))
    assert (consumer.copies, consumer.least_copies, consumer.pods_each) == expected
    assert (consumer.part, consumer.is_gang) == ("w", expected[2] > 1)


def test_an_autoscaler_without_an_end_is_told():
    consumer = one(manifest(CLUSTER, cluster(workers(replicas=2), enableInTreeAutoscaling=True)))
    assert consumer.copies == 2
    assert "no maxReplicas" in told(consumer)


def test_the_head_is_one_pod():
    head, worker = found(manifest(CLUSTER, cluster(workers(replicas=2), head=T)))
    assert (head.part, head.copies, head.least_copies) == ("head", 1, 1)
    assert worker.copies == 2


def test_no_workers_are_nobody():
    assert found(manifest(CLUSTER, cluster(workers(), workers(replicas=2, suspend=True)))) == []


@pytest.mark.parametrize(
    ("strategy", "expected"), [({}, (2, True)), ({"type": "NewCluster"}, (2, True)), ({"type": "None"}, (0, False))]
)
def test_an_update_of_a_service_makes_a_second_cluster(strategy, expected):
    spec = {"rayClusterConfig": cluster(workers(replicas=2)), "upgradeStrategy": strategy}
    consumer = one(manifest("ray.io/v1 RayService", spec))
    assert (consumer.surge, consumer.surge_is_needed) == expected
    assert consumer.least_pods == 2


def test_all_parts_of_a_service_are_updated_at_once():
    spec = {"rayClusterConfig": cluster(workers(replicas=3, minReplicas=3), head=T)}
    for consumer, pods in zip(found(manifest("ray.io/v1 RayService", spec)), (1, 3), strict=True):
        assert (consumer.is_gang, consumer.copies, consumer.least_copies) == (True, 1, 1)
        assert (consumer.pods, consumer.surge, consumer.surge_is_needed, consumer.surge_together) == (
            pods,
            pods,
            True,
            1,
        )


def test_workers_of_a_service_that_scale_are_updated_with_the_fewest():
    group = workers(replicas=2, minReplicas=2, maxReplicas=6)
    consumer = one(manifest("ray.io/v1 RayService", {"rayClusterConfig": cluster(group, enableInTreeAutoscaling=True)}))
    assert (consumer.copies, consumer.least_copies, consumer.is_gang) == (6, 2, False)
    assert (consumer.surge, consumer.surge_is_needed, consumer.surge_together) == (6, True, 2)


def test_a_job_is_a_gang_that_ends():
    spec = {"rayClusterSpec": cluster(workers(replicas=2, numOfHosts=2), head=T)}
    for consumer, pods in zip(found(manifest("ray.io/v1 RayJob", spec)), (1, 4), strict=True):
        assert (consumer.copies, consumer.least_copies, consumer.is_gang) == (1, 0, True)
        assert (consumer.pods, consumer.starts_with) == (pods, None)


def test_a_job_that_scales_starts_with_the_workers_that_it_declares():
    group = workers(replicas=2, maxReplicas=6, numOfHosts=2)
    consumer = one(manifest("ray.io/v1 RayJob", {"rayClusterSpec": cluster(group, enableInTreeAutoscaling=True)}))
    assert (consumer.pods, consumer.starts_with) == (12, 4)


def test_a_calendar_of_jobs_that_is_suspended_counts_once():
    spec = {"jobTemplate": {"rayClusterSpec": cluster(workers(replicas=2))}}
    running = one(manifest("ray.io/v1 RayCronJob", spec))
    assert (running.copies, running.pods_each, running.is_stopped) == (2, 2, False)
    stopped = one(manifest("ray.io/v1 RayCronJob", {**spec, "suspend": True}))
    assert (stopped.copies, stopped.pods_each, stopped.is_stopped) == (1, 2, True)
    assert "a run may start" not in told(stopped)


def test_a_job_on_a_cluster_that_is_there_has_none_of_its_own():
    spec = {"clusterSelector": {"ray.io/cluster": "c"}, "rayClusterSpec": cluster(workers(replicas=2))}
    assert found(manifest("ray.io/v1 RayJob", spec)) == []


@pytest.mark.parametrize(("mode", "expected"), [(None, 1), ("K8sJobMode", 1), ("HTTPMode", 0)])
def test_what_submits_a_job_is_a_pod_of_one_mode_only(mode, expected):
    spec = {"rayClusterSpec": cluster(), "submitterPodTemplate": template()} | (
        {"submissionMode": mode} if mode else {}
    )
    assert len(found(manifest("ray.io/v1 RayJob", spec))) == expected
