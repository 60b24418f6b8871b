import warnings

import pytest
from cdk8s import App, Chart, Testing

import schemas
from gpu_constructs import (
    Backend,
    DevicePluginChart,
    GpuConstructsError,
    GpuConstructsWarning,
    GpuNamespace,
    GpuProfile,
    GpuRequest,
    Kubernetes,
    Talos,
    VolumeClaim,
    synthesize,
)
from gpu_constructs.pod_specs import pod_specs
from gpu_constructs.recipes.pytorch_training import PyTorchTraining
from gpu_constructs.recipes.training_pod import TrainingPod

APIS = ["Job", "PyTorchJob", "TrainJob"]
OPERATORS = ["PyTorchJob", "TrainJob"]
POD = TrainingPod(script="print('hello')")
QUEUED = {"kueue.x-k8s.io/queue-name": "gpus"}


def chart_with(**given):
    chart = Chart(App(), "gpu")
    PyTorchTraining(chart, "train", **{"pod": POD, **given})
    return chart


def rendered(**given):
    return Testing.synth(chart_with(**given))


def main(**given):
    return rendered(**given)[-1]


def pods(**given):
    return [spec for manifest in rendered(**given) for spec in pod_specs(manifest)]


def refusal(**given):
    with pytest.raises(GpuConstructsError) as refused:
        chart_with(**given)
    return str(refused.value)


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


@pytest.mark.parametrize(("api", "container"), [("Job", "training"), ("PyTorchJob", "pytorch"), ("TrainJob", "node")])
def test_the_container_is_called_what_the_operator_looks_for(api, container):
    assert [spec["containers"][0]["name"] for spec in pods(api=api)] == [container]


@pytest.mark.parametrize("api", APIS)
def test_the_runtime_class_is_in_the_pods_of_every_api(api):
    assert {spec["runtimeClassName"] for spec in pods(api=api)} == {"nvidia"}


@pytest.mark.parametrize("api", APIS)
def test_istio_leaves_its_proxy_out(api):
    made = str(rendered(api=api))
    assert "{'sidecar.istio.io/inject': 'false'}" in made


def test_a_train_job_refers_to_a_runtime_of_its_own_namespace():
    runtime, job = rendered(api="TrainJob", namespace="team")[-2:]
    assert (runtime["kind"], runtime["metadata"]["namespace"]) == ("TrainingRuntime", "team")
    assert job["spec"]["runtimeRef"]["name"] == runtime["metadata"]["name"]
    assert job["spec"]["runtimeRef"]["kind"] == "TrainingRuntime"
    assert runtime["metadata"]["labels"]["trainer.kubeflow.org/framework"] == "torch"


def test_a_pytorch_job_has_one_master_and_the_rest_workers():
    specs = main(api="PyTorchJob", num_nodes=3, suspend=True)["spec"]["pytorchReplicaSpecs"]
    assert {role: spec["replicas"] for role, spec in specs.items()} == {"Master": 1, "Worker": 2}
    assert specs["Master"]["template"] == specs["Worker"]["template"]


def test_pods_that_still_run_are_cleaned_up_after_a_pytorch_job():
    assert main(api="PyTorchJob")["spec"]["runPolicy"]["cleanPodPolicy"] == "Running"


@pytest.mark.parametrize(
    ("given", "processes"),
    [
        ({}, 1),
        ({"pod": TrainingPod(script="print()", gpus=2)}, 2),
        ({"pod": TrainingPod(script="print()", gpus=2), "nproc_per_node": 1}, 1),
        ({"pod": TrainingPod(script="print()", gpus=GpuRequest(count=2, mig_profile="1g.10gb"))}, 1),
    ],
)
def test_processes_are_always_written(given, processes):
    assert main(api="PyTorchJob", **given)["spec"]["nprocPerNode"] == str(processes)
    assert main(api="TrainJob", **given)["spec"]["trainer"]["numProcPerNode"] == processes


def test_a_job_with_two_gpus_runs_a_process_on_each():
    (spec,) = pods(pod=TrainingPod(script="print()", gpus=2))
    assert spec["containers"][0]["command"] == ["torchrun", "--standalone", "--nproc-per-node=2", "/train/train.py"]


@pytest.mark.parametrize(
    ("api", "given", "policy"),
    [
        ("Job", {}, "Never"),
        ("Job", {"restart_policy": "OnFailure"}, "OnFailure"),
        ("TrainJob", {}, "Never"),
        ("TrainJob", {"restart_policy": "OnFailure"}, "OnFailure"),
    ],
)
def test_pods_restart_as_asked(api, given, policy):
    assert [spec["restartPolicy"] for spec in pods(api=api, **given)] == [policy]


@pytest.mark.parametrize("given", [{}, {"restart_policy": "ExitCode"}])
def test_the_replicas_of_a_pytorch_job_say_how_pods_restart(given):
    master = main(api="PyTorchJob", **given)["spec"]["pytorchReplicaSpecs"]["Master"]
    assert master["restartPolicy"] == given.get("restart_policy", "OnFailure")
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


@pytest.mark.parametrize(
    ("given", "says"),
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
        ({"labels": {"app.kubernetes.io/name": "x"}}, "labels must not hold 'app.kubernetes.io/name'"),
        ({"annotations": {"a b": "x"}}, "annotations key has a key that is no label key; got 'a b'"),
        (
            {"api": "TrainJob", "pod": TrainingPod(script="print()", env={"PET_NNODES": "2"})},
            "env['PET_NNODES'] must be left out: the operator of a TrainJob sets it",
        ),
    ],
)
def test_what_could_not_run_is_refused(given, says):
    assert refusal(**given).startswith(f"gpu/train: {says}")


def test_the_variables_of_operators_may_be_set_where_there_is_none():
    assert chart_with(pod=TrainingPod(script="print()", env={"RANK": "0"}))


@pytest.mark.parametrize("api", APIS)
def test_no_rule_is_broken_in_a_restricted_namespace(api, tmp_path):
    app, platform = App(outdir=str(tmp_path)), Talos("1.12.11")
    DevicePluginChart(app, "plugin", platform=platform)
    chart = Chart(app, "train", namespace="team")
    GpuNamespace(chart, "namespace", name="team", pod_security="restricted")
    PyTorchTraining(chart, "train", pod=TrainingPod(script="print()", platform=platform), api=api)
    with warnings.catch_warnings():
        warnings.simplefilter("error", GpuConstructsWarning)
        synthesize(app)
