"""Recipes in an app with a device plugin and a namespace pass all rules and checks without a warning."""

import warnings

import pytest
from cdk8s import App, Chart

from gpu_constructs import (
    ComfyUI,
    CudaSmokeTest,
    DevicePluginChart,
    GpuConstructsWarning,
    GpuInventory,
    GpuNamespace,
    GpuNode,
    GpuProfile,
    GpuRequest,
    GpuRules,
    Jellyfin,
    KatibExperiment,
    KatibParameter,
    KubeflowNotebook,
    Kubernetes,
    Ollama,
    Plex,
    PyTorchTraining,
    Sharing,
    SynthesisError,
    TrainingPod,
    Vllm,
    Volume,
    synthesize,
)
from gpu_constructs.recipes.katib_experiment import COLLECTOR_INJECTION
from tables import beside, cases

BOARD = "NVIDIA GeForce RTX 5070 Ti"
BUDGET = {"gpus": GpuRequest(vram="6Gi", products=[BOARD])}
KNOWN = {"image": "docker.io/yanwk/comfyui-boot:cu130-slim-v2"}
OWN = beside(__file__, "recipes_in_a_cluster")["own"]


def trained(chart, profile, **given):
    pod = TrainingPod(script="print()", args=given.pop("args", ()), profile=profile, **BUDGET)
    return pod, {"parameters": {"lr": KatibParameter.double(min=0.01, max=0.05)}, "objective_metric_name": "loss"}


RECIPES = {
    "ollama": ("restricted", lambda c, p: Ollama(c, "x", models=["qwen3:8b"], profile=p, **BUDGET)),
    "vllm": ("restricted", lambda c, p: Vllm(c, "x", model="Qwen/Qwen3-8B-AWQ", profile=p, **BUDGET)),
    "comfyui": ("baseline", lambda c, p: ComfyUI(c, "x", profile=p, **KNOWN, **BUDGET)),
    "comfyui of a user": ("restricted", lambda c, p: ComfyUI(c, "x", profile=p, **OWN, **BUDGET)),
    "jellyfin": ("restricted", lambda c, p: Jellyfin(c, "x", profile=p, **BUDGET)),
    "plex": ("baseline", lambda c, p: Plex(c, "x", profile=p, **BUDGET)),
    "smoke test": ("restricted", lambda c, p: CudaSmokeTest(c, "x", slots=4, profile=p, **BUDGET)),
    "notebook": ("restricted", lambda c, p: KubeflowNotebook(c, "x", pod=trained(c, p)[0])),
    "search": (
        "baseline",
        lambda c, p: KatibExperiment(
            c, "x", trial=(made := trained(c, p, args=["--lr=${trialParameters.lr}"]))[0], **made[1]
        ),
    ),
    **{
        f"training by a {api}": (
            "restricted",
            lambda c, p, api=api: PyTorchTraining(c, "x", pod=trained(c, p)[0], api=api),
        )
        for api in ("Job", "PyTorchJob", "TrainJob")
    },
}


def app_with(folder, make, level, platform, sharing):
    app = App(outdir=str(folder))
    DevicePluginChart(app, "plugin", platform=platform, sharing=sharing)
    chart = Chart(app, "work", namespace="team")
    GpuNamespace(chart, "namespace", name="team", pod_security=level, labels=COLLECTOR_INJECTION)
    make(chart, GpuProfile(platform=platform, sharing=sharing))
    return app


@pytest.mark.parametrize("recipe", RECIPES)
def test_recipes_break_no_rule_in_the_strictest_namespace_that_allows_them(recipe, tmp_path, rows):
    level, make = RECIPES[recipe]
    for number, (platform, sharing) in enumerate(rows):
        app = app_with(tmp_path / str(number), make, level, platform, sharing)
        if sharing.vram_unit:
            GpuRules.enforce(app, inventory=GpuInventory(nodes=[GpuNode(name="one", gpu_model=BOARD)]))
        with warnings.catch_warnings():
            warnings.simplefilter("error", GpuConstructsWarning)
            synthesize(app)


def test_an_image_that_runs_as_root_is_rejected_in_a_restricted_namespace(tmp_path):
    _, make = RECIPES["comfyui"]
    with pytest.raises(SynthesisError, match="runAsNonRoot"):
        synthesize(app_with(tmp_path, make, "restricted", Kubernetes(), Sharing.none()))


@cases
def test_a_server_accepts_another_disk_mounts_and_variables(recipe, path, chart, objects):
    more = {"ollama": (Ollama, {}), "vllm": (Vllm, {"model": "a/b"}), "comfyui": (ComfyUI, KNOWN), "plex": (Plex, {})}[
        recipe
    ]
    disk = {path: Volume.persistent_volume_claim("mine")}
    server = more[0](chart, "x", volumes=disk, env={"MORE": "1"}, **more[1])
    server.attach_volume("/more", Volume.empty_dir())
    server.add_env("EVEN_MORE", "1")
    made = {one["kind"]: one for one in objects(chart)}
    assert "PersistentVolumeClaim" not in made
    pod = made["Deployment"]["spec"]["template"]["spec"]
    assert {"claimName": "mine"} in [volume.get("persistentVolumeClaim") for volume in pod["volumes"]]
    assert {"MORE", "EVEN_MORE"} <= {one["name"] for one in pod["containers"][0]["env"]}
