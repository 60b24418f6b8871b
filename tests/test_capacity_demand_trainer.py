import pytest

from capacity_manifests import found, gpu, manifest, one, pod, told

TRAIN_JOB = "trainer.kubeflow.org/v1alpha1 TrainJob"
RUNTIME = "trainer.kubeflow.org/v1alpha1 TrainingRuntime"
STEP = "trainer.kubeflow.org/trainjob-ancestor-step"


def step(name="node", label="trainer", amount=0, parallelism=None, **more):
    container = gpu(amount, "node") if amount else {"name": "node"}
    made = {"template": {"spec": pod(container, **more)}}
    if parallelism is not None:
        made["parallelism"] = parallelism
    metadata = {"labels": {STEP: label}} if label else {}
    return {"name": name, "template": {"metadata": metadata, "spec": made}}


def runtime(*jobs, kind=RUNTIME, **policy):
    spec = {"mlPolicy": policy, "template": {"spec": {"replicatedJobs": list(jobs)}}}
    return manifest(kind, spec, name="torch")


def train(nodes=None, amount=None, kind="TrainingRuntime", **more):
    trainer = {}
    if nodes is not None:
        trainer["numNodes"] = nodes
    if amount is not None:
        trainer["resourcesPerNode"] = gpu(amount)["resources"]
    ref = {"name": "torch"} | ({"kind": kind} if kind else {})
    return manifest(TRAIN_JOB, {"runtimeRef": ref, "trainer": trainer, **more})


@pytest.mark.parametrize(
    ("job", "policy", "expected"),
    [
        (train(), {}, (1, 2)),
        (train(), {"numNodes": 3}, (3, 2)),
        (train(4), {"numNodes": 3}, (4, 2)),
        (train(4, 8), {"numNodes": 3}, (4, 8)),
    ],
)
def test_a_train_job_takes_nodes_and_resources_of_its_own_or_its_runtime(job, policy, expected):
    consumer = one(runtime(step(amount=2), **policy), job)
    assert (consumer.pods_each, consumer.asks["nvidia.com/gpu"]) == expected
    assert (consumer.kind, consumer.copies, consumer.least_copies, consumer.is_gang) == ("TrainJob", 1, 0, True)
    assert consumer.notes == ()


def test_a_runtime_that_nobody_uses_makes_no_pods():
    assert found(runtime(step(amount=2))) == []


def test_a_runtime_of_the_cluster_is_meant_where_no_kind_is_given():
    shared = runtime(step(amount=2), kind="trainer.kubeflow.org/v1alpha1 ClusterTrainingRuntime")
    assert one(shared, train(kind=None)).asks == {"nvidia.com/gpu": 2}
    assert found(runtime(step(amount=2)), train(kind=None)) == []


def test_only_the_trainer_gets_the_resources_of_a_node():
    jobs = [step("dataset", "dataset-initializer"), step()]
    consumer = one(runtime(*jobs), train(2, 1))
    assert (consumer.part, consumer.pods_each) == ("node", 2)


def test_another_job_of_the_runtime_keeps_its_own_pods():
    jobs = [step("judge", None, amount=1, parallelism=5), step(amount=1)]
    assert {c.part: c.pods_each for c in found(runtime(*jobs), train(2))} == {"judge": 5, "node": 2}


@pytest.mark.parametrize(
    ("launches", "expected"), [(True, {"launcher": 1, "node": 3}), (False, {"launcher": 1, "node": 4})]
)
def test_a_launcher_of_mpi_may_be_one_of_the_nodes(launches, expected):
    jobs = [step("launcher", "trainer", amount=1), step("node", None, amount=1)]
    consumers = found(runtime(*jobs, numNodes=1, mpi={"runLauncherAsNode": launches}), train(4))
    assert {consumer.part: consumer.pods_each for consumer in consumers} == expected


def test_without_its_runtime_only_its_own_words_count():
    consumer = one(train(3, 2))
    assert (consumer.pods_each, consumer.asks) == (3, {"nvidia.com/gpu": 2})
    assert "its runtime is not in this app" in told(consumer)
    assert "counted as one node" in told(one(train(amount=2)))


def test_a_patch_of_the_runtime_changes_which_nodes_are_taken():
    template = {"spec": {"nodeSelector": {"a": "b"}, "tolerations": [{"operator": "Exists"}]}}
    jobs = [{"name": "node", "template": {"spec": {"template": template}}}]
    patch = {"trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}}}
    base = runtime(step(amount=1, nodeSelector={"c": "d"}))
    for job in (train(1, 1, runtimePatches=[patch]), train(1, 1, kind=None, runtimePatches=[patch])):
        consumer = one(base, job)
        assert consumer.pod_spec["nodeSelector"].items() >= {"a": "b"}.items()
        assert consumer.pod_spec["tolerations"] == [{"operator": "Exists"}]


def test_a_trial_may_be_a_train_job():
    held = train(2, 1)
    trial = {"trialTemplate": {"trialSpec": held}}
    consumer = one(runtime(step()), manifest("kubeflow.org/v1beta1 Experiment", trial, name="e"))
    assert (consumer.copies, consumer.pods_each, consumer.is_gang) == (3, 2, True)


@pytest.mark.parametrize("rubbish", [None, [], "x", 3, [None, 3]])
def test_rubbish_is_no_runtime(rubbish):
    broken = manifest(RUNTIME, {"mlPolicy": rubbish, "template": {"spec": {"replicatedJobs": rubbish}}}, name="torch")
    assert found(broken, train(1, 1, runtimePatches=rubbish)) == []
