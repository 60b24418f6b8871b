import warnings

import pytest
from cdk8s import App, Chart, Testing

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
    Volume,
    VolumeClaim,
    synthesize,
)
from gpu_constructs.pod_specs import pod_specs
from gpu_constructs.recipes.kubeflow_notebook import KubeflowNotebook
from gpu_constructs.recipes.training_pod import TrainingPod


def chart_with(**given):
    chart = Chart(App(), "gpu")
    KubeflowNotebook(chart, "lab", **given)
    return chart


def rendered(**given):
    return Testing.synth(chart_with(**given))


def pod(**given):
    (spec,) = pod_specs(rendered(**given)[-1])
    return spec


def refusal(**given):
    with pytest.raises(GpuConstructsError) as refused:
        chart_with(**given)
    return str(refused.value)


def test_a_notebook_with_nothing_said(objects, snapshot):
    assert objects(chart_with()) == snapshot


def test_a_notebook_with_everything(objects, snapshot):
    shared = TrainingPod(
        gpus=GpuRequest(vram="6Gi"),
        env={"HF_HOME": "/data/hf"},
        volumes={"/data": VolumeClaim(storage="100Gi")},
        shared_memory="4Gi",
        resources={"requests": {"cpu": "2"}, "limits": {"memory": "32Gi"}},
        service_account="default-editor",
    )
    made = chart_with(
        pod=shared,
        image="registry.example/lab:1",
        home=Volume.persistent_volume_claim("notebook-home"),
        stopped=True,
        name="research",
        namespace="team",
        labels={"poddefault": "on"},
        annotations={"note": "x"},
        ignore_rules=["R13"],
    )
    assert objects(made) == snapshot


def test_the_container_is_called_as_the_notebook():
    assert [one["name"] for one in pod(name="research")["containers"]] == ["research"]


def test_what_a_training_runs_is_not_run_in_its_notebook():
    training = TrainingPod(script="print()", args=["x"], image="registry.example/train:1", working_dir="/x")
    (container,) = pod(pod=training)["containers"]
    assert container.keys().isdisjoint({"command", "args", "workingDir", "env"})
    assert container["image"].startswith("ghcr.io/kubeflow/")
    assert [manifest["kind"] for manifest in rendered(pod=training)] == ["PersistentVolumeClaim", "Notebook"]


def test_gpus_and_sizes_are_those_of_the_training():
    spec = pod(pod=TrainingPod(gpus=2, platform=Kubernetes(), shared_memory="8Gi"))
    assert spec["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == 2
    assert "runtimeClassName" not in spec
    assert {"name": "dev-shm", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}} in spec["volumes"]


def test_the_user_and_group_are_those_of_the_image():
    context = pod(pod=TrainingPod(run_as_user=7, fs_group=7))["securityContext"]
    assert (context["runAsUser"], context["fsGroup"]) == (1000, 100)


def test_home_is_a_disk_of_its_own():
    disk = rendered()[0]
    assert (disk["kind"], disk["metadata"]["name"]) == ("PersistentVolumeClaim", "lab-home-jovyan")
    mounts = {mount["mountPath"] for mount in pod()["containers"][0]["volumeMounts"]}
    assert mounts == {"/home/jovyan", "/dev/shm"}


@pytest.mark.parametrize("stopped", [True, False])
def test_only_a_stopped_notebook_says_so(stopped):
    annotations = rendered(stopped=stopped)[-1]["metadata"].get("annotations", {})
    assert ("kubeflow-resource-stopped" in annotations) is stopped


CLAIMS = GpuProfile(platform=Kubernetes("1.35"), backend=Backend.dra_claims())


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"pod": TrainingPod(profile=CLAIMS)}, "pods of a Notebook have no place for claims"),
        ({"pod": TrainingPod(volumes={"/home/jovyan": Volume.empty_dir()})}, "pod must not mount '/home/jovyan'"),
        ({"home": "disk"}, "training_pod.volumes['/home/jovyan'] must be a Volume, a VolumeClaim or"),
        ({"image": "jupyter"}, "training_pod.image must be pinned"),
        ({"name": "a" * 53}, "name must have at most 52 characters; got 53"),
        (
            {"annotations": {"kubeflow-resource-stopped": "x"}},
            "annotations must not hold 'kubeflow-resource-stopped'; pass stopped=True or leave it out",
        ),
        ({"labels": {"app.kubernetes.io/name": "x"}}, "labels must not hold 'app.kubernetes.io/name'"),
    ],
)
def test_what_could_not_run_is_refused(given, says):
    assert refusal(**given).startswith(f"gpu/lab: {says}")


def test_no_rule_is_broken_in_a_restricted_namespace(tmp_path):
    app, platform = App(outdir=str(tmp_path)), Talos("1.12.11")
    DevicePluginChart(app, "plugin", platform=platform)
    chart = Chart(app, "lab", namespace="team")
    GpuNamespace(chart, "namespace", name="team", pod_security="restricted")
    KubeflowNotebook(chart, "lab", pod=TrainingPod(platform=platform))
    with warnings.catch_warnings():
        warnings.simplefilter("error", GpuConstructsWarning)
        synthesize(app)
