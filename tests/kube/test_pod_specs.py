import cdk8s_plus_27 as kplus
import pytest
from cdk8s import Cron, Testing

from gpu_constructs import GpuConstructsError
from gpu_constructs.kube.pod_specs import containers, node_labels_required, pod_spec_paths, pod_specs
from tables import cases

POD = {"containers": [{"name": "main"}]}
TEMPLATE = {"template": {"spec": POD}}

JOB_SET = {"replicatedJobs": [{"name": name, "template": {"spec": TEMPLATE}} for name in ("initializer", "node")]}


def trying(**tried):
    return {"trialTemplate": {"trialSpec": tried}}


def manifest_of(kind, spec):
    api_version, _, name = kind.partition(" ")
    return {"apiVersion": api_version, "kind": name, "spec": spec}


def test_the_pod_specs_of_each_kind_are_found(rows):
    for kind, spec, paths in rows:
        manifest = manifest_of(kind, spec)
        assert [".".join(map(str, path)) for path in pod_spec_paths(manifest)] == paths, kind
        assert list(pod_specs(manifest)) == [POD] * len(paths), kind
    assert list(pod_specs({"apiVersion": "v1", "kind": "PodTemplate", **TEMPLATE})) == [POD]


@pytest.mark.parametrize("kind", ["ServingRuntime", "ClusterServingRuntime"])
def test_a_serving_runtime_is_a_pod_and_can_contain_another(kind):
    spec = {**POD, "workerSpec": POD}
    manifest = manifest_of(f"serving.kserve.io/v1alpha1 {kind}", spec)
    assert pod_spec_paths(manifest) == [("spec",), ("spec", "workerSpec")]
    assert list(pod_specs(manifest)) == [spec, POD]


def test_each_component_of_an_inference_service_is_a_pod():
    predictor = {"model": {}, "workerSpec": POD}
    spec = {"predictor": predictor, "transformer": POD, "explainer": POD, "canary": [{"predictor": predictor}]}
    manifest = manifest_of("serving.kserve.io/v1beta1 InferenceService", spec)
    assert pod_spec_paths(manifest) == [
        ("spec", "predictor"),
        ("spec", "predictor", "workerSpec"),
        ("spec", "transformer"),
        ("spec", "explainer"),
        ("spec", "canary", 0, "predictor"),
        ("spec", "canary", 0, "predictor", "workerSpec"),
    ]


def test_a_train_job_and_an_experiment_with_one_have_no_pods():
    patch = {"template": {"spec": JOB_SET}}
    job = manifest_of(
        "trainer.kubeflow.org/v1alpha1 TrainJob", {"runtimePatches": [{"manager": "a", "trainingRuntimeSpec": patch}]}
    )
    assert pod_spec_paths(job) == []
    assert pod_spec_paths(manifest_of("kubeflow.org/v1beta1 Experiment", trying(**job))) == []


@cases
def test_the_caller_can_specify_the_path_for_an_unknown_kind(path, found):
    manifest = manifest_of("example.com/v1 Gadget", {"a": TEMPLATE, "list": [POD, POD]})
    assert pod_spec_paths(manifest) == []
    assert [list(steps) for steps in pod_spec_paths(manifest, path)] == found
    assert list(pod_specs(manifest, path=path)) == [POD] * len(found)


@pytest.mark.parametrize("path", ["", "spec..template", ".spec", "spec.", 5, ("spec",)])
def test_a_path_with_an_empty_step_is_rejected(path):
    with pytest.raises(GpuConstructsError, match=r"^path must be keys joined by dots, .*, got "):
        pod_spec_paths({}, path)


@cases
def test_an_object_that_creates_no_pods_has_none(manifest):
    assert list(pod_specs(manifest)) == []


def test_the_pods_of_cdk8s_plus_workloads_are_found(chart):
    main = [kplus.ContainerProps(image="a:1")]
    kplus.Deployment(chart, "deployment", containers=main)
    kplus.DaemonSet(chart, "daemon-set", containers=main)
    kplus.StatefulSet(chart, "stateful-set", containers=[kplus.ContainerProps(image="a:1", port_number=80)])
    kplus.Job(chart, "job", containers=main)
    kplus.CronJob(chart, "cron-job", containers=main, schedule=Cron.daily())
    kplus.Pod(chart, "pod", containers=main)
    found = [spec for manifest in Testing.synth(chart) for spec in pod_specs(manifest)]
    assert [[container["image"] for container in containers(spec)] for spec in found] == [["a:1"]] * 6


def test_init_containers_come_first():
    assert [c["name"] for c in containers({"containers": [{"name": "b"}], "initContainers": [{"name": "a"}]})] == [
        "a",
        "b",
    ]
    assert list(containers({"initContainers": None})) == []


@pytest.mark.parametrize("server", ["model", "huggingface", "pytorch", "triton"])
def test_the_model_server_of_a_predictor_is_a_container(server):
    one = {"resources": {"limits": {"nvidia.com/gpu": 1}}}
    assert list(containers({server: one})) == [one]
    assert list(containers({server: one, "containers": [{"name": "a"}]})) == [{"name": "a"}, one]


@cases
def test_required_node_labels_are_distinguished_from_alternatives(pod, required):
    assert [sorted(labels) for labels in node_labels_required(pod)] == required
