from capacity_manifests import gpu, manifest, pod, template
from gpu_constructs.capacity.demand.present import uncounted
from gpu_constructs.facts.app import Facts

T = {"template": template()}


def told(*manifests):
    return uncounted(Facts(list(manifests)))


def test_an_object_of_an_unknown_kind_that_asks_for_gpus_is_told():
    for kind, spec in [
        ("example.com/v1 Model", T),
        ("argoproj.io/v1alpha1 Workflow", {"templates": [{"name": "t", "container": gpu(8)}]}),
        (
            "argoproj.io/v1alpha1 CronWorkflow",
            {"workflowSpec": {"templates": [{"container": gpu("{{inputs.parameters.gpus}}")}]}},
        ),
        ("example.com/v1 Model", {"resources": {"requests": {"nvidia.com/gpu": "1"}}}),
        ("example.com/v1 Model", {"capacity": [{"nvidia.com/gpu": 2}]}),
        (
            "sparkoperator.k8s.io/v1beta2 SparkApplication",
            {"executor": {"gpu": {"name": "nvidia.com/gpu", "quantity": 1}}},
        ),
    ]:
        (sentence,) = told(manifest(kind, spec))
        assert sentence == (
            f"there is room for {kind.split()[-1]} ml/x, which asks for nvidia.com/gpu and is of a kind that is not "
            "known: not counted"
        )


def test_each_resource_is_told_once():
    (sentence,) = told(
        manifest("example.com/v1 Model", {"a": pod(gpu(), gpu(1, resource="nvidia.com/mig-1g.5gb")), "b": T})
    )
    assert "nvidia.com/gpu, nvidia.com/mig-1g.5gb and is" in sentence


def test_what_is_counted_or_makes_no_pods_is_not_told():
    for kind, spec in [
        ("apps/v1 Deployment", T),
        ("serving.kserve.io/v1alpha1 ServingRuntime", pod()),
        ("example.com/v1 Model", {"resources": {"limits": {"cpu": 1, "nvidia.com/gpu": 0}}}),
        ("example.com/v1 Model", {"nodeSelector": {"nvidia.com/gpu": "1"}}),
        ("example.com/v1 Model", {"chosen": {"nvidia.com/gpu": "true"}}),
        ("v1 ResourceQuota", {"hard": {"nvidia.com/gpu": 4}}),
        ("v1 LimitRange", {"limits": [{"max": {"nvidia.com/gpu": 4}}]}),
        ("karpenter.sh/v1 NodePool", {"limits": {"nvidia.com/gpu": 8}}),
        ("kueue.x-k8s.io/v1beta1 Workload", {"podSets": [T]}),
        ("scheduling.volcano.sh/v1beta1 Queue", {"capability": {"nvidia.com/gpu": 8}}),
    ]:
        assert told(manifest(kind, spec)) == []


def test_what_a_known_object_has_made_is_not_told():
    owner = {"apiVersion": "serving.knative.dev/v1", "kind": "Service", "name": "x", "controller": True}
    revision = manifest("serving.knative.dev/v1 Revision", pod(), name="r")
    assert len(told(revision)) == 1
    revision["metadata"]["ownerReferences"] = [owner]
    assert told(revision, manifest("serving.knative.dev/v1 Service", T)) == []


def test_an_experiment_with_trials_of_an_unknown_kind_is_told():
    held = manifest("argoproj.io/v1alpha1 Workflow", {"templates": [{"container": gpu()}]})
    (sentence,) = told(manifest("kubeflow.org/v1beta1 Experiment", {"trialTemplate": {"trialSpec": held}}))
    assert sentence.startswith("there is room for Experiment ml/x, which asks for nvidia.com/gpu")
    held = manifest("batch/v1 Job", T)
    assert told(manifest("kubeflow.org/v1beta1 Experiment", {"trialTemplate": {"trialSpec": held}})) == []
