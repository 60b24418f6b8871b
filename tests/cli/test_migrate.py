"""The command ``migrate``: the program that it prints does what the values of the chart did."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

import gpu_constructs as gpu
from gpu_constructs.cli.exits import CommandError
from gpu_constructs.cli.main import main
from gpu_constructs.cli.migrate import Migration, program
from gpu_constructs.cli.migrate.charts import CHARTS
from gpu_constructs.errors import GpuConstructsError
from tables import cases

CASES = Path(__file__).parents[1] / "migration" / "cases"
EVERY = 100
"""The tests of the README's command run one case of so many. The slow tests run one of four."""


def installations() -> Iterator[tuple[str, Mapping[str, Any], dict[str, Any]]]:
    """Yield the chart, the values and the installation of each case of the conversion of Helm values."""
    for file in sorted(CASES.glob("*.yaml")):
        # The chart of the device plugin contains Node Feature Discovery.
        chart = file.stem if file.stem in ("dcgm-exporter", "nvidia-gpu-exporter") else "nvidia-device-plugin"
        for case in yaml.load(file.read_text(), Loader=yaml.CSafeLoader):
            if isinstance(case.get("values"), dict):
                version = case.get("version", CHARTS[chart].default_version)
                release = {"release_name": case.get("release", chart), "namespace": "gpu", "version": version}
                yield chart, case["values"], {**release, "platform": gpu.Kubernetes()}


def written(folder: Path, build: Callable[[], object]) -> dict[str, str]:
    """Return the files that a program writes, by name. Return the error if it fails."""
    folder.mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.chdir(folder)
        warnings.simplefilter("ignore")
        try:
            build()
        except (CommandError, GpuConstructsError, SystemExit) as error:
            return {"error": str(error)}
    return {str(file.relative_to(folder)): file.read_text() for file in sorted(folder.rglob("*.yaml"))}


def from_helm_values(chart: str, values: Mapping[str, Any], installation: Mapping[str, Any], text: str) -> None:
    """Write what the construct emits for the values of its chart, in an app that declares what the program declares."""
    app = gpu.App()
    of = CHARTS[chart]
    scope = app if of.is_chart else gpu.Chart(app, chart)
    if declared := re.search(r"^External\(.*?\)$", text, re.MULTILINE | re.DOTALL):
        eval(f"gpu.{declared[0]}", {"gpu": gpu, "app": app})
    construct = getattr(gpu, of.class_name)
    construct.from_helm_values(scope, installation["release_name"], values, strict=False, **installation)
    gpu.synth(app)


def assert_programs_match(folder: Path, every: int) -> None:
    """Check that a program emits what ``from_helm_values`` emits, for one case of so many."""
    emitting = 0
    for number, (chart, values, installation) in list(enumerate(installations()))[::every]:
        migration = Migration(chart, "values.yaml", values, installation, None, is_strict=False)
        ours = written(folder / f"{number}-program", lambda given=migration: run(program(given)[0]))
        text = (folder / f"{number}-program" / "app.py").read_text() if "error" not in ours else ""
        theirs = written(
            folder / f"{number}-values", lambda given=(chart, values, installation, text): from_helm_values(*given)
        )
        assert ours.keys() == theirs.keys(), (chart, values)
        if "error" not in ours:
            assert ours == theirs, (chart, values)
            emitting += 1
    assert emitting > 600 / every


def run(text: str) -> None:
    """Run a program in the current folder, and keep its source there."""
    Path("app.py").write_text(text)
    exec(compile(text, "app.py", "exec"), {})


def test_the_program_emits_what_the_values_emit(tmp_path: Path) -> None:
    assert_programs_match(tmp_path, EVERY)


@pytest.mark.slow
def test_many_programs_emit_what_their_values_emit(tmp_path: Path) -> None:
    assert_programs_match(tmp_path, 4)


@cases
def test_the_output_states_what_changes(
    file: str | None,
    values: str,
    arguments: list[str] | None,
    status: int,
    error: str | None,
    prints: list[str] | None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / (file or "values.yaml")
    path.write_text(values)
    assert main(["migrate", str(path), *(arguments or [])]) == status
    output = capsys.readouterr()
    assert output.err.replace(str(path), "values.yaml") == (error or "")
    assert [text for text in prints or [] if text not in output.out] == []


def test_the_values_can_come_from_standard_input() -> None:
    command = [sys.executable, "-m", "gpu_constructs", "migrate", "-", "--chart", "dcgm-exporter"]
    done = subprocess.run(command, input="{}", capture_output=True, text=True, check=True)
    assert "DcgmExporter(" in done.stdout


def test_a_program_is_written_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values, app = tmp_path / "values.yaml", tmp_path / "app.py"
    values.write_text("failOnInitError: true\nlegacyDaemonsetAPI: true\n")
    assert main(["migrate", str(values), "--output", str(app)]) == 1
    compile(app.read_text(), "app.py", "exec")
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("Line 2: values.legacyDaemonsetAPI is dropped: it is not a key of the Helm chart")
    assert main(["migrate", str(values), "--output", str(app)]) == 2
    assert capsys.readouterr().err.endswith(f"cannot write {app}: File exists. Pass another file\n")
