import warnings

import pytest

import schemas
from gpu_constructs import (
    Backend,
    GpuConstructsWarning,
    GpuProfile,
    GpuRequest,
    Kubernetes,
    PyTorchTraining,
    TrainingPod,
    VolumeClaim,
)
from gpu_constructs.kube.pod_specs import pod_specs
from recipe_objects import Recipe

APIS = ["Job", "PyTorchJob", "TrainJob"]
OPERATORS = ["PyTorchJob", "TrainJob"]
POD = TrainingPod(script="print('hello')")
QUEUED = {"kueue.x-k8s.io/queue-name": "gpus"}


TRAINING = Recipe(PyTorchTraining, "gpu/train", pod=POD)
chart_with, rendered = TRAINING.chart, TRAINING.manifests


def main(**given):
    return rendered(**given)[-1]


def pods(**given):
    return [spec for manifest in rendered(**given) for spec in pod_specs(manifest)]


@pytest.mark.parametrize("api", APIS)
def test_a_script_is_all_that_must_be_said(api, objects, snapshot):
    assert objects(chart_with(api=api)) == snapshot


@pytest.mark.parametrize("api", OPERATORS)
def test_several_nodes_with_everything(api, objects, snapshot):
    pod = TrainingPod(
        image="nvcr.io/nvidia/pytorch:25.01-py3",
        command=["torchrun", "-m", "train"],
        args=["--epochs", "3"],
        env={"HOME": "/work", "NCCL_DEBUG": "INFO"},
        gpus=GpuRequest(count=2, min_vram="20Gi"),
        volumes={"/work": VolumeClaim(storage="100Gi", access_modes=["ReadWriteMany"])},
        shared_memory="8Gi",
        image_pull_secrets=["registry"],
        priority_class_name="batch",
    )
    made = chart_with(
        api=api,
        pod=pod,
        num_nodes=3,
        backoff_limit=1,
        active_deadline_seconds=86400,
        ttl_seconds_after_finished=3600,
        suspend=True,
        labels=QUEUED,
        annotations={"team": "ml"},
        ignore_rules=["R13"],
    )
    assert objects(made) == snapshot


@pytest.mark.parametrize("api", APIS)
def test_claims_reach_the_pods_of_every_api(api):
    profile = GpuProfile(platform=Kubernetes("1.35"), backend=Backend.dra_claims())
    made = rendered(api=api, pod=TrainingPod(script="print()", profile=profile))
    assert [error for manifest in made for error in schemas.schema_errors(manifest, ["1.34", "1.35"])] == []
    assert "ResourceClaimTemplate" in [manifest["kind"] for manifest in made]
    for spec in (spec for manifest in made for spec in pod_specs(manifest)):
        assert spec["resourceClaims"] == [{"name": "gpu", "resourceClaimTemplateName": "train-gpu"}]


def test_processes_are_always_written():
    for given, processes in (
        ({}, 1),
        ({"pod": TrainingPod(script="print()", gpus=2)}, 2),
        ({"pod": TrainingPod(script="print()", gpus=2), "nproc_per_node": 1}, 1),
        ({"pod": TrainingPod(script="print()", gpus=GpuRequest(count=2, mig_profile="1g.10gb"))}, 1),
        ({"pod": TrainingPod(script="print()", gpus=GpuRequest(count=2, resource="nvidia.com/mig-1g.10gb"))}, 1),
    ):
        assert main(api="PyTorchJob", **given)["spec"]["nprocPerNode"] == str(processes)
        assert main(api="TrainJob", **given)["spec"]["trainer"]["numProcPerNode"] == processes


def test_pods_restart_as_asked():
    for api in ("Job", "TrainJob"):
        for given, policy in (({}, "Never"), ({"restart_policy": "OnFailure"}, "OnFailure")):
            assert [spec["restartPolicy"] for spec in pods(api=api, **given)] == [policy]
    for given, policy in (({}, "OnFailure"), ({"restart_policy": "ExitCode"}, "ExitCode")):
        master = main(api="PyTorchJob", **given)["spec"]["pytorchReplicaSpecs"]["Master"]
        assert master["restartPolicy"] == policy
        assert "restartPolicy" not in master["template"]["spec"]


@pytest.mark.parametrize("api", OPERATORS)
def test_several_nodes_that_nobody_starts_together_are_warned_of(api):
    with pytest.warns(
        GpuConstructsWarning, match="gpu/train: the 3 pods start one by one; with fewer than 6 GPUs free"
    ):
        chart_with(api=api, num_nodes=3, pod=TrainingPod(script="print()", gpus=2))


@pytest.mark.parametrize(
    "given", [{"num_nodes": 1}, {"num_nodes": 2, "suspend": True}, {"num_nodes": 2, "labels": QUEUED}]
)
def test_one_node_and_what_somebody_starts_together_is_not_warned_of(given):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chart_with(api="PyTorchJob", **given)


def test_what_could_not_run_is_refused():
    TRAINING.refuses(
        [
            ({"pod": TrainingPod()}, "script or command is required with the image"),
            ({"num_nodes": 0}, "num_nodes must be at least 1"),
            ({"num_nodes": 2}, "num_nodes must be 1 for api 'Job', got 2"),
            ({"nproc_per_node": 0}, "nproc_per_node must be at least 1"),
            ({"nproc_per_node": 2}, "nproc_per_node must be at most the pod's 1 GPU, since"),
            ({"restart_policy": "ExitCode"}, "restart_policy 'ExitCode' needs api 'PyTorchJob'; got 'Job'"),
            ({"backoff_limit": -1}, "backoff_limit must be at least 0"),
            ({"api": "TFJob"}, "api must be one of 'Job', 'PyTorchJob', 'TrainJob'; got 'TFJob'"),
            ({"name": "1"}, "name must start with a letter"),
            ({"name": "a" * 53}, "name must have at most 52 characters; got 53"),
            ({"name": "A"}, "name must be a DNS label"),
            ({"labels": {"app.kubernetes.io/name": "x"}}, "labels must not hold 'app.kubernetes.io/name'"),
            ({"annotations": {"a b": "x"}}, "annotations key has a key that is not a label key; got 'a b'"),
            (
                {"api": "TrainJob", "pod": TrainingPod(script="print()", env={"PET_NNODES": "2"})},
                "env['PET_NNODES'] must be left out: the operator of a TrainJob sets it",
            ),
        ]
    )


def test_the_variables_of_operators_may_be_set_where_there_is_none():
    assert chart_with(pod=TrainingPod(script="print()", env={"RANK": "0"}))
