"""The page on trainings: its programs run as written, its numbers and defaults are those of the code."""

from __future__ import annotations

import inspect
import warnings
from pathlib import Path
from typing import Any

import pytest
import yaml
from cdk8s import App, Chart, Testing

import dist
import documents
import schemas
from gpu_constructs import Talos, VolumeClaim
from gpu_constructs.pod_specs import pod_specs
from gpu_constructs.recipes.pytorch_training import KUEUE_QUEUE, PyTorchTraining
from gpu_constructs.recipes.training_job import Api
from gpu_constructs.recipes.training_pod import TrainingPod, memory_fraction

PAGE = dist.ROOT / "docs" / "pytorch-training.md"
TEXT = " ".join(documents.prose(PAGE).split())
PROGRAMS = [block.text for block in documents.blocks(PAGE, "python")]


def run(number: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.chdir(folder)
    made: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(compile(PROGRAMS[number], f"pytorch-training.md block {number}", "exec"), made)
    return made


def test_the_first_block_trains_in_a_restricted_namespace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(0, tmp_path, monkeypatch)
    written = [one for path in tmp_path.rglob("*.k8s.yaml") for one in yaml.safe_load_all(path.read_text())]
    (job,) = (one for one in written if one["kind"] == "Job")
    container = job["spec"]["template"]["spec"]["containers"][0]
    assert container["command"] == ["python", "/train/train.py"]
    assert "`/train/train.py`" in TEXT
    (script,) = (one["data"]["train.py"] for one in written if "train.py" in (one.get("data") or {}))
    compile(script, "train.py", "exec")
    for path in ("/checkpoints", "/tmp"):
        assert path in {mount["mountPath"] for mount in container["volumeMounts"]}


def test_the_second_block_is_a_train_job_that_kueue_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chart = run(1, tmp_path, monkeypatch)["chart"]
    assert isinstance(chart, Chart)
    job = Testing.synth(chart)[-1]
    assert (job["kind"], job["spec"]["trainer"]) == ("TrainJob", {"numNodes": 4, "numProcPerNode": 2})
    assert KUEUE_QUEUE in job["metadata"]["labels"]


def test_the_third_block_trains_each_night_as_a_training_pod_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(2, tmp_path, monkeypatch)
    written = [one for path in tmp_path.rglob("*.k8s.yaml") for one in yaml.safe_load_all(path.read_text())]
    assert [error for one in written for error in schemas.schema_errors(one)] == []
    (cron,) = (one["spec"] for one in written if one["kind"] == "CronJob")
    (script,) = (one for one in written if "train.py" in (one.get("data") or {}))
    compile(script["data"]["train.py"], "train.py", "exec")
    chart = Chart(App(), "training", namespace="training")
    volumes = {"/checkpoints": VolumeClaim(storage="50Gi")}
    pod = TrainingPod(script="print()", volumes=volumes, platform=Talos("1.12"))
    PyTorchTraining(chart, "nightly", pod=pod)
    (expected,) = pod_specs(Testing.synth(chart)[-1])
    (made,) = pod_specs(next(one for one in written if one["kind"] == "CronJob"))
    assert (cron["schedule"], cron["concurrencyPolicy"]) == ("0 3 * * *", "Forbid")
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
    job = Testing.synth(chart)[-1]
    annotations = [one["spec"]["template"]["metadata"]["annotations"] for one in (job, cron["jobTemplate"])]
    assert annotations[0] == annotations[1]


def test_the_budget_is_the_fraction_that_the_page_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pod = eval(PROGRAMS[3].partition("\n\n")[2], run(3, tmp_path, monkeypatch))
    assert f"are {memory_fraction(pod.request)}, given as" in TEXT
    rendered = pod.render(name="x", namespace="x", component="x", container="x")
    variables = {one["name"]: one["value"] for one in rendered.spec["containers"][0]["env"]}
    assert f"`PYTORCH_CUDA_ALLOC_CONF={variables['PYTORCH_CUDA_ALLOC_CONF']}`" in TEXT


def test_every_api_has_a_row() -> None:
    assert [row[0].strip("`") for row in documents.table(PAGE, "api")] == list(Api.__args__)  # type: ignore[attr-defined]


def test_every_keyword_of_the_table_is_one() -> None:
    keywords = inspect.signature(PyTorchTraining.__init__).parameters
    defaults = {row[0].strip("`"): row[1] for row in documents.table(PAGE, "keyword")}
    assert {name for name in defaults if "." not in name} <= set(keywords)
    members = {name.partition(".")[2] for name in defaults if "." in name}
    assert members <= set(TrainingPod.__dataclass_fields__)
    assert defaults["backoff_limit"] == str(keywords["backoff_limit"].default)
