"""The page on the smoke test: its programs run as written, and its numbers are those of the code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

import dist
import documents
from gpu_constructs.recipes.cuda_smoke_test import command
from gpu_constructs.workload.gpu_request import GpuRequest

PAGE = dist.ROOT / "docs" / "cuda-smoke-test.md"
TEXT = " ".join(documents.prose(PAGE).split())
PROGRAMS = [block.text for block in documents.blocks(PAGE, "python")]


def run(number: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    monkeypatch.chdir(folder)
    exec(compile(PROGRAMS[number], f"cuda-smoke-test.md block {number}", "exec"), {})
    return [one for path in folder.rglob("*.k8s.yaml") for one in yaml.safe_load_all(path.read_text())]


def job_in(written: list[dict[str, Any]]) -> dict[str, Any]:
    (job,) = (one for one in written if one["kind"] == "Job")
    return job


def test_eight_slots_are_nine_pods_in_the_namespace_that_the_commands_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_in(run(0, tmp_path, monkeypatch))
    assert job["spec"]["completions"] == 9
    assert (job["metadata"]["name"], job["metadata"]["namespace"]) == ("gpu-test", "gpu-device-plugin")
    label = "app.kubernetes.io/name"
    assert job["spec"]["template"]["metadata"]["labels"][label] == "gpu-test"
    for words in documents.commands(PAGE):
        assert "gpu-device-plugin" in words
        assert {"job/gpu-test", f"{label}=gpu-test", "gpu-test"} & set(words)


def test_the_packed_plugin_is_told_so_and_no_pod_is_to_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = run(1, tmp_path, monkeypatch)
    assert job_in(written)["spec"]["completions"] == 4
    texts = [text for one in written if one["kind"] == "ConfigMap" for text in one["data"].values()]
    assert any("sharedDevicesAllocationPolicy: packed" in text for text in texts)


def test_what_is_said_of_the_job_is_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = job_in(run(0, tmp_path, monkeypatch))["spec"]
    assert "`backoffLimit: 0`" in TEXT
    assert spec["backoffLimit"] == 0
    assert "`hold_seconds=60` is enough" in TEXT
    assert spec["template"]["spec"]["containers"][0]["command"] == ["sh", "-c", command(60)]
    assert "ten minutes and their turns" in TEXT
    assert spec["activeDeadlineSeconds"] == 600 + 2 * 60
    assert "ttlSecondsAfterFinished" not in spec


def test_the_waiting_fits_into_the_time_that_the_command_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (wait,) = (words for words in documents.commands(PAGE) if "wait" in words)
    minutes = int(wait[-1].removeprefix("--timeout=").removesuffix("m"))
    assert minutes * 60 >= job_in(run(0, tmp_path, monkeypatch))["spec"]["activeDeadlineSeconds"]


def test_the_requests_in_the_table_are_taken() -> None:
    given = [
        part for row in documents.table(PAGE, "slots are") for part in row[1].split("`") if part.startswith("gpus=")
    ]
    assert len(given) == 3
    for text in given:
        eval(text.removeprefix("gpus="), {"GpuRequest": GpuRequest})
