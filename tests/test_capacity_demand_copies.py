import pytest

from capacity_manifests import found, gpu, manifest, one, pod, template, told
from gpu_constructs import pod_specs
from gpu_constructs.capacity.demand.copies import _MAKERS, TEMPLATES

T = {"template": template()}
JOB = {"template": template()}
DEPLOYMENT = "apps/v1 Deployment"
STATEFUL_SET = "apps/v1 StatefulSet"
ROLLOUT = "argoproj.io/v1alpha1 Rollout"
LWS = "leaderworkerset.x-k8s.io/v1 LeaderWorkerSet"
PYTORCH = "kubeflow.org/v1 PyTorchJob"
EXPERIMENT = "kubeflow.org/v1beta1 Experiment"
VOLCANO = "batch.volcano.sh/v1alpha1 Job"
KNATIVE = "serving.knative.dev/v1 Service"
LEADER_WORKERS = {"leaderTemplate": template(), "workerTemplate": template()}


def rolling(**numbers):
    return {"strategy": {"rollingUpdate": numbers}, **T}


def scaled(**annotations):
    marks = {f"autoscaling.knative.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return {"template": template(annotations=marks)}


def trying(spec=None, kind="Job", api_version="batch/v1", **more):
    held = {"apiVersion": api_version, "kind": kind, "spec": spec or JOB}
    return {"trialTemplate": {"trialSpec": held}, **more}


WORKERS = {"Master": T, "Worker": {"replicas": 3, **T}}

# kind, spec, then (copies, least, pods of each copy, surge, whether it is needed, gang)
TABLE = {
    "a pod runs until somebody stops it": ("v1 Pod", pod(), (1, 1, 1, 0, False, False)),
    "a pod that may end is not there for ever": ("v1 Pod", pod(restartPolicy="Never"), (1, 0, 1, 0, False, False)),
    "so is one that starts again on failure only": (
        "v1 Pod",
        pod(restartPolicy="OnFailure"),
        (1, 0, 1, 0, False, False),
    ),
    "a deployment of one waits for a new pod": (DEPLOYMENT, T, (1, 1, 1, 1, True, False)),
    "four may lose one at an update": (DEPLOYMENT, {"replicas": 4, **T}, (4, 4, 1, 1, False, False)),
    "five make two more, rounded up": (DEPLOYMENT, {"replicas": 5, **T}, (5, 5, 1, 2, False, False)),
    "Recreate needs nothing": (DEPLOYMENT, {"strategy": {"type": "Recreate"}, **T}, (1, 1, 1, 0, False, False)),
    "an update without surge takes one away first": (
        DEPLOYMENT,
        rolling(maxSurge=0, maxUnavailable=1),
        (1, 1, 1, 0, False, False),
    ),
    "an update that may take all away needs no surge": (
        DEPLOYMENT,
        rolling(maxSurge="100%", maxUnavailable="100%"),
        (1, 1, 1, 1, False, False),
    ),
    "a share of nothing unavailable needs the surge": (
        DEPLOYMENT,
        {"replicas": 3, **rolling(maxSurge="34%", maxUnavailable="33%")},
        (3, 3, 1, 2, True, False),
    ),
    "a replica set replaces nothing": ("apps/v1 ReplicaSet", {"replicas": 2, **T}, (2, 2, 1, 0, False, False)),
    "a replication controller neither": ("v1 ReplicationController", T, (1, 1, 1, 0, False, False)),
    "a stateful set goes one by one": (STATEFUL_SET, {"replicas": 3, **T}, (3, 3, 1, 0, False, False)),
    "a job is one pod": ("batch/v1 Job", JOB, (1, 0, 1, 0, False, False)),
    "a job in parallel": ("batch/v1 Job", {"parallelism": 4, **JOB}, (4, 0, 1, 0, False, False)),
    "no more pods at once than are to complete": (
        "batch/v1 Job",
        {"parallelism": 4, "completions": 2, "completionMode": "Indexed", **JOB},
        (2, 0, 1, 0, False, False),
    ),
    "one after the other": ("batch/v1 Job", {"completions": 9, **JOB}, (1, 0, 1, 0, False, False)),
    "runs that meet": ("batch/v1 CronJob", {"jobTemplate": {"spec": JOB}}, (2, 0, 1, 0, False, False)),
    "runs that never meet": (
        "batch/v1 CronJob",
        {"concurrencyPolicy": "Forbid", "jobTemplate": {"spec": {"parallelism": 3, **JOB}}},
        (1, 0, 3, 0, False, False),
    ),
    "a run that replaces the last": (
        "batch/v1 CronJob",
        {"concurrencyPolicy": "Replace", "jobTemplate": {"spec": JOB}},
        (1, 0, 1, 0, False, False),
    ),
    "three trials at a time": (EXPERIMENT, trying(), (3, 0, 1, 0, False, False)),
    "never more trials than there are": (EXPERIMENT, trying(maxTrialCount=2), (2, 0, 1, 0, False, False)),
    "as many trials as it says": (
        EXPERIMENT,
        trying(parallelTrialCount=5, maxTrialCount=12),
        (5, 0, 1, 0, False, False),
    ),
    "the job of a trial has pods": (
        EXPERIMENT,
        trying({"parallelism": 4, **JOB}, parallelTrialCount=2),
        (2, 0, 4, 0, False, False),
    ),
    "a trial of training is a gang": (
        EXPERIMENT,
        trying({"pytorchReplicaSpecs": {"Worker": {"replicas": 2, **T}}}, "PyTorchJob", "kubeflow.org/v1"),
        (3, 0, 2, 0, False, True),
    ),
    "a trial by itself": (
        "kubeflow.org/v1beta1 Trial",
        {"runSpec": {"apiVersion": "batch/v1", "kind": "Job", "spec": {"parallelism": 2, **JOB}}},
        (1, 0, 2, 0, False, False),
    ),
    "a notebook stays": ("kubeflow.org/v1 Notebook", T, (1, 1, 1, 0, False, False)),
    "a training job is a gang that ends": (
        PYTORCH,
        {"pytorchReplicaSpecs": {"Worker": {"replicas": 3, **T}}},
        (1, 0, 3, 0, False, True),
    ),
    "an elastic job takes all it may": (
        PYTORCH,
        {"elasticPolicy": {"minReplicas": 1, "maxReplicas": 4}, "pytorchReplicaSpecs": {"Worker": T}},
        (1, 0, 4, 0, False, True),
    ),
    "an elastic job without a minimum is a gang": (
        PYTORCH,
        {"elasticPolicy": {"maxReplicas": 4}, "pytorchReplicaSpecs": {"Worker": T}},
        (1, 0, 4, 0, False, True),
    ),
    "a TensorFlow worker is one": (
        "kubeflow.org/v1 TFJob",
        {"tfReplicaSpecs": {"Worker": T}},
        (1, 0, 1, 0, False, True),
    ),
    "a launcher of MPI is one": (
        "kubeflow.org/v1 MPIJob",
        {"mpiReplicaSpecs": {"Launcher": T}},
        (1, 0, 1, 0, False, True),
    ),
    "a group of one": (LWS, {"leaderWorkerTemplate": {"workerTemplate": template()}}, (1, 1, 1, 0, False, True)),
    "groups whose leader is as the others": (
        LWS,
        {"replicas": 2, "leaderWorkerTemplate": {"size": 4, "workerTemplate": template()}},
        (2, 2, 4, 0, False, True),
    ),
    "a surge of groups is one of all their pods": (
        LWS,
        {
            "replicas": 4,
            "leaderWorkerTemplate": {"size": 3, "workerTemplate": template()},
            "rolloutStrategy": {"rollingUpdateConfiguration": {"maxSurge": "50%", "maxUnavailable": 0}},
        },
        (4, 4, 3, 6, True, True),
    ),
    "a job set is its jobs times their pods": (
        "jobset.x-k8s.io/v1alpha2 JobSet",
        {"replicatedJobs": [{"name": "w", "replicas": 2, "template": {"spec": {"parallelism": 3, **JOB}}}]},
        (1, 0, 6, 0, False, True),
    ),
    "a task of Volcano": (VOLCANO, {"tasks": [{"name": "w", "replicas": 4, **T}]}, (1, 0, 4, 0, False, True)),
    "a task of Volcano that starts with fewer": (
        VOLCANO,
        {"minAvailable": 2, "tasks": [{"name": "w", "replicas": 4, **T}]},
        (1, 0, 4, 0, False, True),
    ),
    "a revision of Knative may go to sleep": (KNATIVE, T, (1, 0, 1, 1, True, False)),
    "a revision of Knative between bounds": (
        KNATIVE,
        scaled(min_scale="2", max_scale="6"),
        (6, 2, 1, 2, True, False),
    ),
    "a revision of Knative by the old names": (KNATIVE, scaled(minScale="2", maxScale="3"), (3, 2, 1, 2, True, False)),
    "a clone set takes pods away first": (
        "apps.kruise.io/v1alpha1 CloneSet",
        {"replicas": 3, **T},
        (3, 3, 1, 0, False, False),
    ),
    "a clone set may make new ones first": (
        "apps.kruise.io/v1alpha1 CloneSet",
        {"replicas": 3, "updateStrategy": {"maxSurge": 1, "maxUnavailable": 0}, **T},
        (3, 3, 1, 1, True, False),
    ),
    "a stateful set of Kruise": (
        "apps.kruise.io/v1beta1 StatefulSet",
        {"replicas": 3, **T},
        (3, 3, 1, 0, False, False),
    ),
    "jobs as KEDA wants them": (
        "keda.sh/v1alpha1 ScaledJob",
        {"minReplicaCount": 1, "maxReplicaCount": 5, "jobTargetRef": {"parallelism": 2, **JOB}},
        (5, 1, 2, 0, False, False),
    ),
    "a rollout is as a deployment": (
        ROLLOUT,
        {"replicas": 8, "strategy": {"canary": {}}, **T},
        (8, 8, 1, 2, False, False),
    ),
    "blue and green are two whole sets": (
        ROLLOUT,
        {"replicas": 3, "strategy": {"blueGreen": {}}, **T},
        (3, 3, 1, 3, True, False),
    ),
    "a canary with routed traffic grows to a whole set": (
        ROLLOUT,
        {"replicas": 3, "strategy": {"canary": {"trafficRouting": {"istio": {}}}}, **T},
        (3, 3, 1, 3, True, False),
    ),
}


@pytest.mark.parametrize(("kind", "spec", "expected"), TABLE.values(), ids=TABLE)
def test_how_many_pods_a_kind_makes(kind, spec, expected):
    consumer = one(manifest(kind, spec))
    got = (
        consumer.copies,
        consumer.least_copies,
        consumer.pods_each,
        consumer.surge,
        consumer.surge_is_needed,
        consumer.is_gang,
    )
    assert got == expected
    assert not consumer.is_for_each_node
    assert (consumer.namespace, consumer.name, consumer.kind, consumer.part) == ("ml", "x", kind.split()[-1], "")


def test_every_kind_with_pods_is_counted_or_a_template():
    known = set(pod_specs._PATHS) | set(pod_specs._OBJECTS)
    assert known - set(_MAKERS) == TEMPLATES
    assert ("trainer.kubeflow.org", "TrainJob") in _MAKERS


@pytest.mark.parametrize(
    ("kind", "spec", "together"),
    [
        (DEPLOYMENT, {"replicas": 8, **rolling(maxSurge=4, maxUnavailable=0)}, 1),
        (ROLLOUT, {"replicas": 3, "strategy": {"blueGreen": {}}, **T}, 3),
        (ROLLOUT, {"replicas": 3, "strategy": {"canary": {"trafficRouting": {"istio": {}}}}, **T}, 3),
        (
            ROLLOUT,
            {"replicas": 3, "strategy": {"canary": {"trafficRouting": {"a": {}}, "dynamicStableScale": True}}, **T},
            1,
        ),
        (ROLLOUT, {"replicas": 8, "strategy": {"canary": {}}, **T}, 1),
        (KNATIVE, scaled(min_scale="3", max_scale="4"), 3),
        (KNATIVE, T, 1),
        (LWS, {"replicas": 2, "leaderWorkerTemplate": {"size": 4, "workerTemplate": template()}}, 1),
    ],
)
def test_how_many_new_copies_an_update_needs_before_any_old_one_goes(kind, spec, together):
    assert one(manifest(kind, spec)).surge_together == together


def test_a_second_set_is_as_large_as_the_fewest_copies_that_run():
    rollout = manifest(ROLLOUT, {"replicas": 3, "strategy": {"blueGreen": {}}, **T})
    consumer = one(rollout, hpa("Rollout", least=2, most=6, version="argoproj.io/v1alpha1"))
    assert (consumer.surge, consumer.surge_together) == (6, 2)


def test_an_elastic_job_starts_with_its_fewest_workers():
    bounds = {"minReplicas": 2, "maxReplicas": 4}
    consumer = one(manifest(PYTORCH, {"elasticPolicy": bounds, "pytorchReplicaSpecs": {"Worker": T}}))
    assert (consumer.pods, consumer.starts_with, consumer.is_gang) == (4, 2, True)
    assert one(manifest(PYTORCH, {"pytorchReplicaSpecs": {"Worker": T}})).starts_with is None


def test_jobs_of_keda_without_an_end_are_told_and_may_be_paused():
    kind, spec = "keda.sh/v1alpha1 ScaledJob", {"jobTargetRef": JOB}
    assert one(manifest(kind, spec)).copies == 100
    assert "sets no maxReplicaCount" in told(one(manifest(kind, spec)))
    paused = {"autoscaling.keda.sh/paused": "true"}
    assert one(manifest(kind, spec, annotations=paused)).is_stopped
    assert not one(manifest(kind, spec, annotations={"autoscaling.keda.sh/paused": "false"})).is_stopped


@pytest.mark.parametrize("kind", ["v1 PodTemplate", "serving.kserve.io/v1alpha1 ServingRuntime"])
def test_a_template_makes_no_pods_by_itself(kind):
    assert found(manifest(kind, pod()) | {"template": template()}) == []


@pytest.mark.parametrize("replicas", [0, -3])
def test_no_replicas_are_nobody(replicas):
    assert found(manifest(DEPLOYMENT, {"replicas": replicas, **T})) == []


def test_a_huge_number_of_replicas_is_a_number():
    consumer = one(manifest(DEPLOYMENT, {"replicas": 10**12, **T}))
    assert (consumer.pods, consumer.surge) == (10**12, 25 * 10**10)


@pytest.mark.parametrize("rubbish", ["3", "a", [], {}, None, True, 1.5, float("nan")])
def test_a_number_that_is_none_counts_as_absent(rubbish):
    assert one(manifest(DEPLOYMENT, {"replicas": rubbish, **T})).copies == 1
    assert one(manifest("batch/v1 Job", {"parallelism": rubbish, "completions": rubbish, **JOB})).copies == 1
    assert one(manifest(DEPLOYMENT, rolling(maxSurge=rubbish, maxUnavailable=rubbish))).surge == 1


def test_an_update_that_may_do_nothing_is_told():
    assert "refuses" in told(one(manifest(DEPLOYMENT, rolling(maxSurge=0, maxUnavailable="0%"))))
    assert "refuses" not in told(one(manifest(DEPLOYMENT, rolling(maxSurge=0, maxUnavailable="25%"))))


def test_a_daemon_set_is_for_each_node():
    consumer = one(manifest("apps/v1 DaemonSet", T))
    assert (consumer.is_for_each_node, consumer.surge, consumer.surge_is_needed) == (True, 0, False)
    rolled = {"updateStrategy": {"rollingUpdate": {"maxSurge": "10%", "maxUnavailable": 0}}, **T}
    consumer = one(manifest("apps/v1 DaemonSet", rolled))
    assert (consumer.surge, consumer.surge_is_needed) == (1, True)
    assert "share of the nodes" in told(consumer)
    kept = {"updateStrategy": {"type": "OnDelete", "rollingUpdate": {"maxSurge": 1}}, **T}
    assert one(manifest("apps/v1 DaemonSet", kept)).surge == 0


SUSPENDABLE = {
    "batch/v1 Job": {"suspend": True, **JOB},
    "batch/v1 CronJob": {"suspend": True, "jobTemplate": {"spec": JOB}},
    PYTORCH: {"runPolicy": {"suspend": True}, "pytorchReplicaSpecs": {"Worker": T}},
    "jobset.x-k8s.io/v1alpha2 JobSet": {
        "suspend": True,
        "replicatedJobs": [{"name": "w", "template": {"spec": JOB}}],
    },
    "ray.io/v1 RayCluster": {"suspend": True, "headGroupSpec": T},
    "ray.io/v1 RayService": {"suspend": True, "rayClusterConfig": {"headGroupSpec": T}},
    "ray.io/v1 RayJob": {"suspend": True, "rayClusterSpec": {"headGroupSpec": T}},
    "ray.io/v1 RayCronJob": {"suspend": True, "jobTemplate": {"rayClusterSpec": {"headGroupSpec": T}}},
    "trainer.kubeflow.org/v1alpha1 TrainJob": {
        "suspend": True,
        "trainer": {"resourcesPerNode": gpu()["resources"]},
    },
}


@pytest.mark.parametrize("kind", SUSPENDABLE)
def test_what_is_suspended_is_counted_and_told(kind):
    consumer = one(manifest(kind, SUSPENDABLE[kind]))
    assert (consumer.copies, consumer.least_copies, consumer.surge) == (1, 0, 0)
    assert consumer.is_stopped
    assert "suspended" in told(consumer)


def test_trials_that_are_suspended_wait_for_a_queue_and_run():
    assert not one(manifest(EXPERIMENT, trying({"suspend": True, **JOB}))).is_stopped


def test_a_paused_deployment_makes_no_pods_and_is_told():
    consumer = one(manifest(DEPLOYMENT, {"paused": True, "replicas": 3, **T}))
    assert (consumer.is_stopped, consumer.least_copies, consumer.surge) == (True, 0, 0)
    assert "a paused Deployment that is new makes no pods" in told(consumer)
    assert not one(manifest(DEPLOYMENT, {"paused": False, **T})).is_stopped


def test_a_paused_deployment_that_runs_keeps_its_pods_and_is_not_updated():
    running = manifest(DEPLOYMENT, {"paused": True, "replicas": 3, **T}) | {"status": {"replicas": 3}}
    consumer = one(running)
    assert (consumer.is_stopped, consumer.least_copies, consumer.surge) == (False, 3, 0)


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        (DEPLOYMENT, {"template": template(schedulingGates=[{"name": "a.b/c"}])}),
        ("apps/v1 DaemonSet", {"template": template(schedulingGates=[{"name": "a.b/c"}])}),
        ("v1 Pod", pod(schedulingGates=[{"name": "a.b/c"}])),
    ],
)
def test_pods_with_scheduling_gates_do_not_run_until_these_are_removed(kind, spec):
    consumer = one(manifest(kind, spec))
    assert (consumer.is_stopped, consumer.least_copies, consumer.surge) == (True, 0, 0)
    assert "scheduling gate a.b/c" in told(consumer)


def test_the_gate_of_a_queue_opens_by_itself():
    gated = pod(schedulingGates=[{"name": "kueue.x-k8s.io/admission"}])
    assert not one(manifest("v1 Pod", gated, labels={"kueue.x-k8s.io/queue-name": "q"})).is_stopped


def test_a_stopped_notebook_does_not_run():
    annotations = {"kubeflow-resource-stopped": "2026-01-01T00:00:00Z"}
    consumer = one(manifest("kubeflow.org/v1 Notebook", T, annotations=annotations))
    assert (consumer.copies, consumer.least_copies, consumer.is_stopped) == (1, 0, True)
    assert "stopped" in told(consumer)


def parts(consumers):
    return {c.part: (c.copies, c.pods_each, c.is_gang) for c in consumers}


def test_the_parts_of_a_training_job_are_one_gang():
    assert parts(found(manifest(PYTORCH, {"pytorchReplicaSpecs": WORKERS}))) == {
        "Master": (1, 1, True),
        "Worker": (1, 3, True),
    }


def test_mpi_has_no_workers_by_itself():
    spec = {"mpiReplicaSpecs": {"Launcher": T, "Worker": T}}
    assert list(parts(found(manifest("kubeflow.org/v1 MPIJob", spec)))) == ["Launcher"]
    spec["mpiReplicaSpecs"]["Worker"] = {"replicas": 2, **T}
    assert parts(found(manifest("kubeflow.org/v1 MPIJob", spec)))["Worker"] == (1, 2, True)


def test_a_leader_with_pods_of_its_own_is_a_part():
    spec = {"replicas": 2, "leaderWorkerTemplate": {"size": 4, **LEADER_WORKERS}}
    assert parts(found(manifest(LWS, spec))) == {"leader": (2, 1, True), "worker": (2, 3, True)}
    assert parts(found(manifest(LWS, {"leaderWorkerTemplate": LEADER_WORKERS}))) == {"": (1, 1, True)}


def test_a_part_without_gpus_is_nobody():
    plain = template({"name": "head"})
    spec = {"leaderWorkerTemplate": {"size": 3, "leaderTemplate": plain, "workerTemplate": template()}}
    assert parts(found(manifest(LWS, spec))) == {"worker": (1, 2, True)}


def test_jobs_that_follow_one_another_are_no_gang():
    jobs = [
        {"name": "a", "template": {"spec": JOB}},
        {"name": "b", "dependsOn": [{"name": "a", "status": "Complete"}], "template": {"spec": JOB}},
    ]
    consumers = found(manifest("jobset.x-k8s.io/v1alpha2 JobSet", {"replicatedJobs": jobs}))
    assert parts(consumers) == {"a": (1, 1, False), "b": (1, 1, False)}
    assert "in turn" in told(consumers[0])


def test_tasks_without_a_name_are_called_as_volcano_calls_them():
    tasks = [{"replicas": 1, **T}, {"replicas": 2, "name": "w", **T}, T]
    assert parts(found(manifest(VOLCANO, {"tasks": tasks}))) == {"default0": (1, 1, True), "w": (1, 2, True)}


def test_a_rollout_may_take_the_pods_of_a_deployment():
    deployment = manifest(DEPLOYMENT, {"replicas": 0, **T}, name="model")
    spec = {"replicas": 2, "workloadRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "model"}}
    consumer = one(deployment, manifest(ROLLOUT, spec))
    assert (consumer.subject, consumer.kind, consumer.copies) == (1, "Rollout", 2)


def test_two_runs_of_ray_may_meet():
    consumer = one(manifest("ray.io/v1 RayCronJob", {"jobTemplate": {"rayClusterSpec": {"headGroupSpec": T}}}))
    assert (consumer.copies, consumer.least_copies) == (2, 0)


def hpa(target, least=None, most=5, name="x", version="apps/v1"):
    spec = {"scaleTargetRef": {"kind": target, "name": name, "apiVersion": version}, "maxReplicas": most}
    return manifest("autoscaling/v2 HorizontalPodAutoscaler", spec | ({} if least is None else {"minReplicas": least}))


def test_an_autoscaler_sets_most_and_least():
    scaled_set = manifest(STATEFUL_SET, {"replicas": 2, **T})
    consumer = one(scaled_set, hpa("StatefulSet"))
    assert (consumer.copies, consumer.least_copies) == (5, 1)
    assert one(scaled_set, hpa("StatefulSet", least=3)).least_copies == 3
    assert one(scaled_set, hpa("StatefulSet", name="y")).copies == 2
    assert one(scaled_set, hpa("Deployment")).copies == 2
    assert one(scaled_set, hpa("StatefulSet", version="example.com/v1")).copies == 2


def test_an_autoscaler_scales_groups_and_trainings():
    group = manifest(LWS, {"leaderWorkerTemplate": {"size": 2, "workerTemplate": template()}})
    consumer = one(group, hpa("LeaderWorkerSet", version="leaderworkerset.x-k8s.io/v1"))
    assert (consumer.copies, consumer.least_copies, consumer.pods) == (5, 1, 10)
    training = manifest(PYTORCH, {"pytorchReplicaSpecs": {"Worker": T}})
    assert one(training, hpa("PyTorchJob", version="kubeflow.org/v1")).pods == 5


def test_an_update_of_the_fewest_copies_waits_though_that_of_many_does_not():
    consumer = one(manifest(DEPLOYMENT, T), hpa("Deployment", most=8))
    assert (consumer.surge, consumer.surge_is_needed) == (2, True)


def test_an_autoscaler_leaves_alone_what_is_switched_off():
    assert found(manifest(DEPLOYMENT, {"replicas": 0, **T}), hpa("Deployment")) == []


def keda(annotations=None, **spec):
    spec = {"scaleTargetRef": {"name": "x"}, **spec}
    return manifest("keda.sh/v1alpha1 ScaledObject", spec, annotations=annotations)


@pytest.mark.parametrize(
    ("scaler", "expected"),
    [
        (keda(), (100, 0)),
        (keda(minReplicaCount=2, maxReplicaCount=4), (4, 2)),
        (keda(minReplicaCount=2, idleReplicaCount=0, maxReplicaCount=4), (4, 0)),
        (keda({"autoscaling.keda.sh/paused-replicas": "3"}, maxReplicaCount=9), (3, 3)),
    ],
)
def test_keda_sets_most_and_least(scaler, expected):
    for replicas in (0, 1):
        consumer = one(manifest(DEPLOYMENT, {"replicas": replicas, **T}), scaler)
        assert (consumer.copies, consumer.least_copies) == expected


def test_a_scaler_does_not_mean_the_job_of_a_trial():
    trial = trying({"template": template()}, "StatefulSet", "apps/v1")
    assert one(manifest(EXPERIMENT, trial), hpa("StatefulSet", name=None)).pods == 3
