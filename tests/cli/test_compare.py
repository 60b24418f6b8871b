"""The command ``compare``: what a chart rendered against what this library makes of the same values."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpu_constructs.cli.compare import emitted
from gpu_constructs.cli.documents import Document
from gpu_constructs.cli.main import main, parser
from gpu_constructs.cli.migrate import migration_of, program
from tables import cases

VALUES = "runtimeClassName: nvidia\nfailOnInitError: true\n"


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Objects that this library emits for the values."""
    file = tmp_path_factory.mktemp("values") / "values.yaml"
    file.write_text(VALUES)
    args = parser("compare").parse_args(["compare", str(file), "-", "--namespace", "gpu", "--release-name", "nvdp"])
    return [dict(one.manifest) for one in emitted(program(migration_of(args, is_strict=False))[0])]


@pytest.fixture(autouse=True)
def without_process(ours: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the program run only once for all tests."""
    monkeypatch.setattr("gpu_constructs.cli.compare.emitted", lambda text: [Document(one, "app", 0) for one in ours])


def compared(folder: Path, rendered: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]) -> tuple[int, Any]:
    """Return the exit status and the JSON of the command for objects that a chart rendered."""
    values, manifests = folder / "values.yaml", folder / "rendered.yaml"
    values.write_text(VALUES)
    manifests.write_text(yaml.dump_all(rendered))
    status = main(["compare", str(values), str(manifests), "--all", "--format", "json"])
    return status, json.loads(capsys.readouterr().out)


def test_the_same_objects_have_no_difference(
    ours: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, report = compared(tmp_path, ours, capsys)
    assert (status, report["findings"]) == (0, [])


@cases
def test_a_difference_from_the_chart_is_reported(
    of: str,
    at: str,
    value: Any,
    reports: str | None,
    explained: str | None,
    ours: list[dict[str, Any]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rendered = copy.deepcopy(ours)
    place: Any = next(one for one in rendered if one["kind"] == of)
    *path, last = (step.replace("~", ".") for step in at.split("."))
    for step in path:
        place = place[int(step) if step.isdigit() else step]
    place[last] = value
    status, report = compared(tmp_path, rendered, capsys)
    others = [one["reason"] for one in report["findings"] if one["severity"] == "warning"]
    if reports is not None:
        assert [one for one in others if one.startswith(reports)]
        assert status == 1
    else:
        assert explained in [one["code"] for one in report["findings"] if one["severity"] == "note"]


def test_an_object_that_only_the_chart_has_is_one_line(
    ours: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "token", "namespace": "gpu"},
        "data": {"a": "b"},
    }
    status, report = compared(tmp_path, [*ours, secret], capsys)
    assert status == 1
    assert [one["reason"] for one in report["findings"]] == ["only the chart has this object"]


def test_a_broken_document_is_named_and_the_status_says_so(
    ours: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values, manifests = tmp_path / "values.yaml", tmp_path / "rendered.yaml"
    values.write_text(VALUES)
    manifests.write_text(yaml.dump_all(ours) + "---\na: [\n")
    assert main(["compare", str(values), str(manifests)]) == 3
    assert "rendered.yaml:" in capsys.readouterr().err


def test_a_chart_that_stays_a_helm_release_is_not_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = tmp_path / "values.yaml"
    values.write_text("driver: {enabled: false}\n")
    assert main(["compare", str(values), str(values), "--chart", "gpu-operator"]) == 2
    assert "the Helm chart must be one of nvidia-device-plugin, dcgm-exporter" in capsys.readouterr().err
