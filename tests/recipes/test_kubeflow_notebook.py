from gpu_constructs import (
    KubeflowNotebook,
    TrainingPod,
)
from recipe_objects import Recipe

NOTEBOOK = Recipe(KubeflowNotebook, "gpu/lab")
chart_with = NOTEBOOK.chart


def test_a_notebook_without_options(objects, snapshot):
    assert objects(chart_with()) == snapshot


def test_a_notebook_with_all_options(objects, snapshot, keywords):
    made = chart_with(**keywords)
    assert objects(made) == snapshot


def test_a_notebook_ignores_the_program_of_a_training():
    training = TrainingPod(script="print()", args=["x"], image="registry.example/train:1", working_dir="/x")
    container = NOTEBOOK.container("Notebook", pod=training)
    assert container.keys().isdisjoint({"command", "args", "workingDir", "env"})
    assert container["image"].startswith("ghcr.io/kubeflow/")
    assert [manifest["kind"] for manifest in NOTEBOOK.manifests(pod=training)] == ["PersistentVolumeClaim", "Notebook"]


def test_the_user_and_group_are_those_of_the_image():
    context = NOTEBOOK.pod("Notebook", pod=TrainingPod(run_as_user=7, fs_group=7))["securityContext"]
    assert (context["runAsUser"], context["fsGroup"]) == (1000, 100)


def test_impossible_options_are_rejected(rows):
    NOTEBOOK.refuses(rows)
