"""The page for those who come from the Helm chart: its programs run, and its tables are the ones in the code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import deviations
import dist
import documents
import exporter_deviations
import exporter_keys
import helm_keys
import parity_smi_exporter
import smi_deviations
import smi_keys
from gpu_constructs.observability.nvidia_gpu_exporter_helm import KEYS

TEXT = helm_keys.PAGE.read_text(encoding="utf-8")


def marked(name: str) -> str:
    start, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    return TEXT[TEXT.index(start) + len(start) : TEXT.index(end)]


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
    (text,) = (b.text for b in documents.blocks(helm_keys.PAGE, "python") if f'release_name="{release}"' in b.text)
    return text


def test_the_programs_run_as_written_on_values_that_lie_beside_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = documents.blocks(helm_keys.PAGE, "python")
    assert len(programs) == len(PROGRAMS)
    monkeypatch.chdir(tmp_path)
    for program, (file, (chart, samples)) in zip(programs, PROGRAMS.items(), strict=True):
        assert f'Path("{file}")' in program.text
        for values in samples:
            (tmp_path / file).write_text(values, encoding="utf-8")
            exec(compile(program.text, "coming-from-helm.md", "exec"), {})
            assert (tmp_path / "dist" / f"{chart}.k8s.yaml").is_file()


def test_the_page_shows_every_key_of_the_values() -> None:
    assert marked("keys").strip() == helm_keys.markdown().strip(), "run python tests/helm_keys.py"


def test_the_page_shows_every_deviation() -> None:
    assert marked("deviations") == deviations.markdown(), f"put this into the page:\n\n{deviations.markdown()}"


def test_the_page_shows_every_key_of_the_exporters_values_and_every_deviation_of_it() -> None:
    assert marked("exporter-keys").strip() == exporter_keys.markdown().strip(), "run python tests/helm_keys.py"
    assert marked("exporter-deviations") == exporter_deviations.markdown(), "run python tests/helm_keys.py"


def test_the_page_shows_the_keys_and_deviations_of_the_exporter_without_privileges() -> None:
    assert marked("smi-keys").strip() == smi_keys.markdown().strip(), "run python tests/helm_keys.py"
    assert marked("smi-deviations") == smi_deviations.markdown(), "run python tests/helm_keys.py"


def test_every_key_of_the_exporter_without_privileges_has_a_row_or_its_section_has() -> None:
    rows = smi_keys.rows()
    assert [path for path in KEYS if (path in rows) == (f"{path.partition('.')[0]}.*" in rows)] == []
    assert set(rows) <= {*KEYS, *(f"{path.partition('.')[0]}.*" for path in KEYS)}


def test_the_case_that_is_shown_is_one_that_the_comparison_reads() -> None:
    (shown,) = documents.blocks(helm_keys.PAGE, "json")
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
    commands = [command for command in documents.commands(helm_keys.PAGE) if command[0] == "helm"]
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
        " ".join(command) for command in documents.commands(helm_keys.PAGE) if command[0] not in ("helm", "kubectl")
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
    (shown,) = documents.blocks(helm_keys.PAGE, "json")
    (case,) = json.loads(shown.text).values()
    words = [word for command in documents.commands(helm_keys.PAGE) for word in command]
    assert {f"goldens/{case['values']}", f"goldens/{case['render']}"} <= set(words)
    (rendered,) = [c for c in documents.commands(helm_keys.PAGE) if f"goldens/{case['render']}" in c]
    assert rendered[2:4] == [case["release"], case["chart"]]
    assert (_after(rendered, "--version"), _after(rendered, "--namespace")) == (case["version"], case["namespace"])
