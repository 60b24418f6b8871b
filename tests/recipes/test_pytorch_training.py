import warnings

import pytest

import schemas
from gpu_constructs import (
    Backend,
    GpuConstructsWarning,
    GpuProfile,
    Kubernetes,
    PyTorchTraining,
    TrainingPod,
)
from gpu_constructs.kube.pod_specs import pod_specs
from recipe_objects import Recipe
from tables import cases

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
def test_a_training_needs_only_a_script(api, objects, snapshot):
    assert objects(chart_with(api=api)) == snapshot


@pytest.mark.parametrize("api", OPERATORS)
def test_several_nodes_with_all_options(api, objects, snapshot, keywords):
    assert objects(chart_with(api=api, **keywords)) == snapshot


@pytest.mark.parametrize("api", APIS)
def test_pods_of_every_api_can_have_claims(api):
    profile = GpuProfile(platform=Kubernetes("1.35"), backend=Backend.dra_claims())
    made = rendered(api=api, pod=TrainingPod(script="print()", profile=profile))
    assert [error for manifest in made for error in schemas.schema_errors(manifest, ["1.34", "1.35"])] == []
    assert "ResourceClaimTemplate" in [manifest["kind"] for manifest in made]
    for spec in (spec for manifest in made for spec in pod_specs(manifest)):
        assert spec["resourceClaims"] == [{"name": "gpu", "resourceClaimTemplateName": "train-gpu"}]


def test_processes_are_always_written(rows):
    for given, processes in rows:
        assert main(api="PyTorchJob", **given)["spec"]["nprocPerNode"] == str(processes)
        assert main(api="TrainJob", **given)["spec"]["trainer"]["numProcPerNode"] == processes


def test_restart_policies_of_each_api():
    for api in ("Job", "TrainJob"):
        for given, policy in (({}, "Never"), ({"restart_policy": "OnFailure"}, "OnFailure")):
            assert [spec["restartPolicy"] for spec in pods(api=api, **given)] == [policy]
    for given, policy in (({}, "OnFailure"), ({"restart_policy": "ExitCode"}, "ExitCode")):
        master = main(api="PyTorchJob", **given)["spec"]["pytorchReplicaSpecs"]["Master"]
        assert master["restartPolicy"] == policy
        assert "restartPolicy" not in master["template"]["spec"]


@pytest.mark.parametrize("api", OPERATORS)
def test_several_nodes_without_a_queue_warn(api):
    with pytest.warns(
        GpuConstructsWarning, match="gpu/train: the 3 pods start one by one. With fewer than 6 GPUs free"
    ):
        chart_with(api=api, num_nodes=3, pod=TrainingPod(script="print()", gpus=2))


@cases
def test_one_node_or_a_queue_does_not_warn(given):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chart_with(api="PyTorchJob", **given)


def test_impossible_options_are_rejected(rows):
    TRAINING.refuses(rows)


def test_without_an_operator_its_variables_are_allowed():
    assert chart_with(pod=TrainingPod(script="print()", env={"RANK": "0"}))
