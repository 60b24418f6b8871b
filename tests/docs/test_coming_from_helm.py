"""The page for those who come from the Helm chart: its programs run, and its tables are the ones in the code."""

import json
from pathlib import Path

import pytest

import chart_tables
import dist
import documents
import parity_smi_exporter

TEXT = chart_tables.PAGE.read_text(encoding="utf-8")


# The file of values that each program reads, with values that are worth a try.
PROGRAMS = {
    "values.yaml": ("nvdp", ["", "migStrategy: single\ngfd: {enabled: true}\n"]),
    "exporter-values.yaml": ("gpu-metrics", ["", "serviceMonitor: {interval: 1m}\nkubernetes: {enablePodUID: true}\n"]),
    "smi-values.yaml": (
        "gpu-metrics",
        ["", "runtimeClassName: nvidia\nserviceMonitor: {enabled: true}\ngrafanaDashboard: {enabled: true}\n"],
    ),
}


def program_of(release: str) -> str:
    """The program that is about a Helm release."""
    (text,) = (b.text for b in documents.blocks(chart_tables.PAGE, "python") if f'release_name="{release}"' in b.text)
    return text


def test_the_programs_run_as_written_on_values_that_lie_beside_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = documents.blocks(chart_tables.PAGE, "python")
    assert len(programs) == len(PROGRAMS)
    monkeypatch.chdir(tmp_path)
    for program, (file, (chart, samples)) in zip(programs, PROGRAMS.items(), strict=True):
        assert f'"{file}"' in program.text
        for values in samples:
            (tmp_path / file).write_text(values, encoding="utf-8")
            exec(compile(program.text, "coming-from-helm.md", "exec"), {})
            assert (tmp_path / "dist" / f"{chart}.k8s.yaml").is_file()


def test_the_page_shows_every_key_of_the_values_and_every_deviation():
    for name, table in chart_tables.tables().items():
        start, end = chart_tables.between(TEXT, name)
        assert TEXT[start:end] == table, f"{name}: run python tests/chart_tables.py"


def test_the_case_that_is_shown_is_one_that_the_comparison_reads() -> None:
    (shown,) = documents.blocks(chart_tables.PAGE, "json")
    ((name, case),) = json.loads(shown.text).items()
    assert (case["values"], case["render"]) == (f"{name}.values.yaml", f"{name}.yaml")
    assert set(case) == {"chart", "version", "release", "namespace", "values", "render"}


# What the page asks of Helm, and the flags that it has for that.
HELM = {
    "get values": {"--namespace", "--output"},
    "template": {"--repo", "--version", "--namespace", "--values", "--include-crds"},
    "uninstall": {"--namespace", "--no-hooks", "--cascade", "--wait"},
}


def test_every_helm_command_is_about_the_release_of_the_program() -> None:
    commands = [command for command in documents.commands(chart_tables.PAGE) if command[0] == "helm"]
    assert commands
    for command in commands:
        verb = next(verb for verb in HELM if " ".join(command[1:]).startswith(verb))
        release = command[1 + len(verb.split())]
        program = program_of(release)
        assert f'namespace="{_after(command, "--namespace")}"' in program
        if "--version" in command:
            assert f'version="{program_version(_after(command, "--version"))}"' in program
        assert {word for word in command if word.startswith("--")} <= HELM[verb]


def program_version(chart: str) -> str:
    """The version of the program, which the chart of the exporter without privileges does not have."""
    return parity_smi_exporter.PROGRAM if chart == parity_smi_exporter.VERSION else chart


def _after(command: list[str], flag: str) -> str:
    return command[command.index(flag) + 1]


def test_every_other_command_is_one_that_is_there() -> None:
    others = {
        " ".join(command) for command in documents.commands(chart_tables.PAGE) if command[0] not in ("helm", "kubectl")
    }
    assert others == {
        "cat dist/*.k8s.yaml > ours.yaml",
        "diff helm.yaml ours.yaml",
        "mkdir goldens",
        "cp values.yaml goldens/mine.values.yaml",
        "uv run python -m tests.parity goldens",
    }
    assert (dist.ROOT / "tests" / "parity.py").is_file()


def test_the_files_of_the_shown_case_are_those_that_the_commands_write() -> None:
    (shown,) = documents.blocks(chart_tables.PAGE, "json")
    (case,) = json.loads(shown.text).values()
    words = [word for command in documents.commands(chart_tables.PAGE) for word in command]
    assert {f"goldens/{case['values']}", f"goldens/{case['render']}"} <= set(words)
    (rendered,) = [c for c in documents.commands(chart_tables.PAGE) if f"goldens/{case['render']}" in c]
    assert rendered[2:4] == [case["release"], case["chart"]]
    assert (_after(rendered, "--version"), _after(rendered, "--namespace")) == (case["version"], case["namespace"])
