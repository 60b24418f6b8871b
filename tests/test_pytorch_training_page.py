"""The page on trainings: its programs run as written, its numbers and defaults are those of the code."""

from __future__ import annotations

import inspect
import warnings
from pathlib import Path
from typing import Any

import pytest
import yaml
from cdk8s import Chart, Testing

import dist
import documents
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


def test_the_budget_is_the_fraction_that_the_page_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pod = eval(PROGRAMS[2].partition("\n\n")[2], run(2, tmp_path, monkeypatch))
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
