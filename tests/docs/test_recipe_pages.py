"""The pages of recipes: what they say of their programs and of numbers is so."""

import dataclasses
import re
from pathlib import Path
from typing import Any, get_args

from cdk8s import App, Chart, Testing

import documents
import recipe_pages
import schemas
from documents import Page, objects_in, of_kind
from gpu_constructs import (
    GpuRequest,
    Jellyfin,
    KatibExperiment,
    KatibParameter,
    Plex,
    PyTorchTraining,
    Talos,
    TrainingPod,
    Volume,
    VolumeClaim,
)
from gpu_constructs.kube import pod_security
from gpu_constructs.kube.pod_specs import pod_specs
from gpu_constructs.recipes import comfyui, cuda_smoke_test, kubeflow_notebook, ollama
from gpu_constructs.recipes.katib_experiment import COLLECTOR_INJECTION
from gpu_constructs.recipes.pytorch_training import KUEUE_QUEUE, Api
from gpu_constructs.recipes.training_pod import memory_fraction


def names_in(namespace: str, objects: list[dict[str, Any]]) -> dict[str, str]:
    """The names of a namespace's objects by kind."""
    return {m["kind"]: m["metadata"]["name"] for m in objects if m["metadata"].get("namespace") == namespace}


def script_in(objects: list[dict[str, Any]]) -> dict[str, Any]:
    """The ConfigMap with the training's script, which is Python."""
    (found,) = (one for one in objects if "train.py" in (one.get("data") or {}))
    compile(found["data"]["train.py"], "train.py", "exec")
    return found


def test_comfyui(tmp_path: Path) -> None:
    page = Page("comfyui")
    for app in page.apps:
        page.run(app, tmp_path)
    made = {folder.name: objects_in(folder) for folder in tmp_path.iterdir()}
    assert sorted(made) == ["dist-comfyui", "dist-models", "dist-own", "dist-shared"]
    names = {"Deployment": "comfyui", "Service": "comfyui", "PersistentVolumeClaim": "comfyui-root"}
    assert names_in("comfyui", made["dist-comfyui"]) == names
    assert [port["port"] for port in of_kind("Service", made["dist-comfyui"])["spec"]["ports"]] == [8188]
    (variable,) = recipe_pages.container(made["dist-shared"])["env"]
    assert variable == {"name": "CLI_ARGS", "value": "--reserve-vram 4"}
    assert "4015 MiB remain, which is 3.92 GiB, so the value is 4:" in page.text
    mounts = [one for one in recipe_pages.container(made["dist-models"])["volumeMounts"] if one.get("readOnly")]
    paths = {name: f"/root/ComfyUI/models/{name}/shared" for name in ("checkpoints", "loras")}
    assert {one["subPath"]: one["mountPath"] for one in mounts} == paths
    assert len({one["name"] for one in mounts}) == 1
    assert f"the construct adds `{' '.join(recipe_pages.container(made['dist-own'])['args'])}`" in page.text
    assert sorted(page.column("layout field")) == sorted(one.name for one in dataclasses.fields(comfyui.ComfyUILayout))
    (modes,) = (row[1] for row in page.table("keyword") if row[0] == "`vram_mode`")
    assert all(f"`{mode}`" in modes for mode in get_args(comfyui.VramMode))
    ((known, layout),) = comfyui.LAYOUTS.items()
    assert f"The construct knows `docker.io/{known}`" in page.text
    assert f"`{layout.flags_variable}`" in page.text


def test_ollama(tmp_path: Path) -> None:
    page = Page("ollama")
    for app in page.apps:
        page.run(app, tmp_path)
    made = objects_in(tmp_path / "dist-ollama")
    names = names_in("ollama", made)
    assert names.pop("Job").startswith("ollama-pull-")
    assert names == {"Deployment": "ollama", "Service": "ollama", "PersistentVolumeClaim": "ollama-data"}
    assert of_kind("PersistentVolumeClaim", made)["spec"]["resources"]["requests"]["storage"] == "100Gi"
    shared = recipe_pages.container(objects_in(tmp_path / "dist-shared"))
    variables = {one["name"]: one["value"] for one in shared["env"] if one["name"] not in ("HOME", "OLLAMA_MODELS")}
    assert {row[0].strip("`"): row[1] for row in page.table("variable")} == variables
    release = ollama.IMAGE.rpartition(":")[2]
    assert f"ollama/ollama@v{release}" in page.text
    assert f"in {release} it affects" in page.text


def test_vllm(tmp_path: Path) -> None:
    page = Page("vllm")
    for app in page.apps:
        page.run(app, tmp_path)
    made = objects_in(tmp_path / "dist-vllm")
    assert names_in("vllm", made) == {"Deployment": "vllm", "Service": "vllm", "PersistentVolumeClaim": "vllm-data"}
    server = of_kind("Deployment", [one for one in made if one["metadata"].get("namespace") == "vllm"])
    pod = server["spec"]["template"]["spec"]
    assert (pod["securityContext"]["runAsUser"], pod["enableServiceLinks"]) == (2000, False)
    probe = pod["containers"][0]["startupProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] == 1800
    args = recipe_pages.container(objects_in(tmp_path / "dist-shared"))["args"]
    index = args.index("--gpu-memory-utilization")
    assert f"`{' '.join(args[index : index + 2])}`" in page.text
    free, board, share, wanted = map(float, re.findall(r"\d+\.\d+", *page.blocks("text")))
    assert free < wanted == round(share * board, 2)


def test_media_servers(tmp_path: Path) -> None:
    page = Page("media-servers")
    for app in page.apps:
        page.run(app, tmp_path)
    for server in (Jellyfin, Plex):
        name = server.__name__.lower()
        made = objects_in(tmp_path / f"dist-{name}")
        assert names_in("media", made) == {
            "Deployment": name,
            "Service": name,
            "PersistentVolumeClaim": f"{name}-config",
        }
        service = of_kind("Service", [one for one in made if one["metadata"].get("namespace") == "media"])
        assert f"`http://{name}.media.svc:{service['spec']['ports'][0]['port']}`" in page.text
    for image, server, path, level in page.table("image"):
        image, construct = image.strip("`"), {"Jellyfin": Jellyfin, "Plex": Plex}[server.partition(",")[0]]
        spec = media_server(construct, **({} if "default" in server else {"image": f"lscr.io/{image}:1"}))
        assert f"/{image}:" in spec["containers"][0]["image"]
        assert path.strip("`") == spec["containers"][0]["volumeMounts"][1]["mountPath"]
        assert level_of(spec) == level.strip("`")
    for _, value, level in page.table("your media are in"):
        volume = eval(value.strip("`"), {"Volume": Volume})
        assert level_of(media_server(Jellyfin, media={"/media": volume})) == level.strip("`")


def media_server(construct: type, **given: Any) -> dict[str, Any]:
    """The spec of a media server's pods."""
    chart = Chart(App(), "media")
    construct(chart, "server", **given)
    (spec,) = pod_specs(of_kind("Deployment", Testing.synth(chart)))
    return dict(spec)


def level_of(spec: dict[str, Any]) -> str:
    """The strictest Pod Security level that admits a pod."""
    levels = ("restricted", "baseline", "privileged")
    return next(one for one in levels if not pod_security.violations(spec, one))


def test_cuda_smoke_test(tmp_path: Path) -> None:
    page = Page("cuda-smoke-test")
    job = of_kind("Job", page.written(0, tmp_path))
    spec, label = job["spec"], "app.kubernetes.io/name"
    assert (job["metadata"]["name"], job["metadata"]["namespace"]) == ("gpu-test", "gpu-device-plugin")
    assert spec["template"]["metadata"]["labels"][label] == "gpu-test"
    for words in documents.commands(page.path):
        assert "gpu-device-plugin" in words
        assert {"job/gpu-test", f"{label}=gpu-test", "gpu-test"} & set(words)
    assert "`backoffLimit: 0`" in page.text
    assert "`hold_seconds=60` is enough" in page.text
    assert "ten minutes plus the time of their turns" in page.text
    assert (spec["completions"], spec["backoffLimit"], spec["activeDeadlineSeconds"]) == (9, 0, 600 + 2 * 60)
    assert spec["template"]["spec"]["containers"][0]["command"] == ["sh", "-c", cuda_smoke_test.command(60)]
    assert "ttlSecondsAfterFinished" not in spec
    (wait,) = (words for words in documents.commands(page.path) if "wait" in words)
    assert int(wait[-1].removeprefix("--timeout=").removesuffix("m")) * 60 >= spec["activeDeadlineSeconds"]
    packed = page.written(1, tmp_path)
    texts = [text for one in packed if one["kind"] == "ConfigMap" for text in one["data"].values()]
    assert any("sharedDevicesAllocationPolicy: packed" in text for text in texts)
    given = [part for row in page.table("slots are") for part in row[1].split("`") if part.startswith("gpus=")]
    assert len(given) == 3
    for text in given:
        eval(text.removeprefix("gpus="), {"GpuRequest": GpuRequest})


def test_katib_experiment(tmp_path: Path) -> None:
    page = Page("katib-experiment")
    written = page.written(0, tmp_path)
    assert of_kind("Experiment", written)["spec"]["trialTemplate"]["primaryContainerName"] == "training"
    assert script_in(written)
    labels = [one["metadata"]["labels"] for one in written if one["metadata"]["name"] == "kubeflow-user"]
    assert any(COLLECTOR_INJECTION.items() <= one.items() for one in labels)
    assert all(f"`{': '.join(label)}`" in page.text for label in COLLECTOR_INJECTION.items())
    for row in page.table("factory"):
        made = eval(row[0].strip("`"), {"KatibParameter": KatibParameter})
        assert (made.choices is None) is ("which you must set" in row[2])
    chart = Chart(App(), "search")
    trial = TrainingPod(script="print()", args=["${trialParameters.x}"])
    parameters = {"x": KatibParameter.discrete(1, 2)}
    KatibExperiment(chart, "x", trial=trial, parameters=parameters, objective_metric_name="loss")
    defaults = {row[0].strip("`"): row[1].strip("`") for row in page.table("keyword")}
    assert defaults["max_failed_trial_count"] == str(Testing.synth(chart)[-1]["spec"]["maxFailedTrialCount"])


def test_kubeflow_notebook(tmp_path: Path) -> None:
    page = Page("kubeflow-notebook")
    written = page.written(0, tmp_path)
    notebook, disk = of_kind("Notebook", written), of_kind("PersistentVolumeClaim", written)
    metadata, security = notebook["metadata"], notebook["spec"]["template"]["spec"]["securityContext"]
    assert f"`/notebook/{metadata['namespace']}/{metadata['name']}/`" in page.text
    assert f"user {security['runAsUser']} and group {security['fsGroup']}" in page.text
    assert f"a disk of {disk['spec']['resources']['requests']['storage']} at `/home/jovyan`" in page.text
    assert f"`{kubeflow_notebook._STOPPED}`" in page.text


def test_the_first_training_is_a_job_with_its_script_and_disks(tmp_path: Path) -> None:
    page = Page("pytorch-training")
    written = page.written(0, tmp_path)
    container = of_kind("Job", written)["spec"]["template"]["spec"]["containers"][0]
    assert container["command"] == ["python", "/train/train.py"]
    assert "`/train/train.py`" in page.text
    assert script_in(written)
    assert {"/checkpoints", "/tmp"} <= {mount["mountPath"] for mount in container["volumeMounts"]}


def test_the_other_trainings_are_what_is_said(tmp_path: Path) -> None:
    page = Page("pytorch-training")
    job = Testing.synth(page.run(page.programs[1], tmp_path)["chart"])[-1]
    assert (job["kind"], job["spec"]["trainer"]) == ("TrainJob", {"numNodes": 4, "numProcPerNode": 2})
    assert KUEUE_QUEUE in job["metadata"]["labels"]
    pod = eval(page.programs[3].partition("\n\n")[2], page.run(page.programs[3], tmp_path))
    assert f"are {memory_fraction(pod.request)}, so the construct sets" in page.text
    rendered = pod.render(name="x", namespace="x", component="x", container="x")
    variables = {one["name"]: one["value"] for one in rendered.spec["containers"][0]["env"]}
    assert f"`PYTORCH_CUDA_ALLOC_CONF={variables['PYTORCH_CUDA_ALLOC_CONF']}`" in page.text
    assert page.column("`api`") == list(get_args(Api))


def test_a_training_of_each_night_is_what_a_training_pod_would_be(tmp_path: Path) -> None:
    page = Page("pytorch-training")
    page.run(page.programs[2], tmp_path)
    written = objects_in(tmp_path)
    assert [error for one in written for error in schemas.schema_errors(one)] == []
    cron, script = of_kind("CronJob", written), script_in(written)
    chart = Chart(App(), "training", namespace="training")
    pod = TrainingPod(script="print()", volumes={"/checkpoints": VolumeClaim(storage="50Gi")}, platform=Talos("1.12"))
    PyTorchTraining(chart, "nightly", pod=pod)
    job = Testing.synth(chart)[-1]
    (expected,), (made,) = pod_specs(job), pod_specs(cron)
    assert (cron["spec"]["schedule"], cron["spec"]["concurrencyPolicy"]) == ("0 3 * * *", "Forbid")
    for one in (expected, made):
        (holder,) = one["containers"]
        one["containers"] = [{**holder, "name": "", "env": sorted(holder["env"], key=str)}]
        (train,) = (volume for volume in one["volumes"] if "configMap" in volume)
        one["script"] = train.pop("configMap")["name"]
        for part in (one["volumes"], one["containers"][0]["volumeMounts"]):
            part.sort(key=str)
    assert made.pop("script") == script["metadata"]["name"]
    expected.pop("script")
    # Kubernetes' own default.
    assert made.pop("terminationGracePeriodSeconds") == 30
    assert made == expected
    annotations = [one["spec"]["template"]["metadata"]["annotations"] for one in (job, cron["spec"]["jobTemplate"])]
    assert annotations[0] == annotations[1]
