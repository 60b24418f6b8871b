"""The blocks of the documents by language: each is run or checked. How it is tested lists by which test."""

import contextlib
import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from test_talos_gpu_node_page import talosctl_problem
from test_troubleshooting import problem

import dist
import documents
import tutorial
from gpu_constructs.cli.main import parser

HOW_IT_IS_TESTED = dist.ROOT / "docs" / "how-it-is-tested.md"
PROJECT = tomllib.loads((dist.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_every_block_has_a_language_whose_check_is_documented() -> None:
    known = {name for row in documents.table(HOW_IT_IS_TESTED, "Language") for name in re.findall(r"`(\w+)`", row[0])}
    used = set()
    for document in documents.DOCUMENTS:
        fences = re.findall(r"^( *)```(\S*)", document.read_text(encoding="utf-8"), re.M)
        # The tests find no block that is indented.
        assert all(not indent for indent, _ in fences), document.name
        used |= {language for _, language in fences[::2]}
    assert used == known


def complaints(folder: Path) -> str:
    """What ruff finds in the programs of a folder: undefined names, unused imports, unused variables."""
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--quiet", "--select", "F"]
    ran = subprocess.run(
        [*command, "--output-format", "concise", "."], cwd=folder, capture_output=True, text=True, check=False
    )
    return ran.stdout + ran.stderr


def test_a_python_block_defines_and_imports_all_that_it_uses(tmp_path: Path) -> None:
    written = 0
    for document in documents.DOCUMENTS:
        for number, program in enumerate(documents.blocks(document, "python")):
            (tmp_path / f"{document.stem}-{number}.py").write_text(program.text, encoding="utf-8")
            written += 1
    assert written > 100
    assert complaints(tmp_path) == ""


def test_a_block_that_uses_what_another_one_defines_would_be_found(tmp_path: Path) -> None:
    (tmp_path / "page-0.py").write_text('GpuWorkload(chart, "chat")\n', encoding="utf-8")
    found = complaints(tmp_path)
    assert "Undefined name `GpuWorkload`" in found
    assert "Undefined name `chart`" in found


def test_blocks_of_data_parse() -> None:
    for document in documents.DOCUMENTS:
        for block in documents.blocks(document, "yaml"):
            assert list(yaml.safe_load_all(block.text)), document.name
        for block in documents.blocks(document, "json"):
            assert json.loads(block.text), document.name


def shell_blocks(folder: Path) -> list[str]:
    """Write the shell blocks of all documents, with words for their placeholders, and return the files' names."""
    for document in documents.DOCUMENTS:
        for number, block in enumerate(documents.blocks(document, "bash")):
            text = re.sub(r"<([a-z-]+)>", r"\1", block.text)
            (folder / f"{document.stem}-{number}.sh").write_text(text, encoding="utf-8")
    return sorted(path.name for path in folder.iterdir())


def shell_complaints(program: str, folder: Path, *files: str) -> str:
    ran = subprocess.run([*program.split(), *files], cwd=folder, capture_output=True, text=True, check=False)
    return ran.stdout + ran.stderr


def test_a_shell_block_is_syntax_that_bash_reads(tmp_path: Path) -> None:
    names = shell_blocks(tmp_path)
    assert len(names) > 100
    assert "".join(shell_complaints("bash -n", tmp_path, name) for name in names) == ""


@pytest.mark.system_tools
def test_shellcheck_finds_nothing_in_a_shell_block(tmp_path: Path) -> None:
    # A reader types the commands one by one, and sees whether cd works; the file that one sources exists only then.
    command = "shellcheck --shell=bash --exclude=SC1091,SC2164 --format=gcc"
    assert shell_complaints(command, tmp_path, *shell_blocks(tmp_path)) == ""


# Programs with a check of their own, and pages whose own tests check or run all other commands.
PROGRAMS: dict[str, Callable[[list[str]], str | None]] = {"kubectl": problem, "talosctl": talosctl_problem}
PAGES = {tutorial.PAGE.stem, "capacity-plan", "coming-from-helm", "dra", "fleets", "gpu-operator", "talos-gpu-node"}


def _extra_exists(command: str) -> bool:
    return set(re.findall(r"\[(\w+)\]$", command)) <= PROJECT["optional-dependencies"].keys()


def _wheel_is_named_so(command: str) -> bool:
    wheel = f"{PROJECT['name'].replace('-', '_')}-{PROJECT['version']}-py3-none-any.whl"
    return f"build/{wheel}" in command and _extra_exists(command)


def _helm_installs_our_values(command: str) -> bool:
    (values,) = re.findall(r"--values (\S+)", command)
    (namespace,) = re.findall(r"--namespace (\S+)", command)
    cluster = Path(values).parent.name
    release = Path(values).name.removesuffix(".values.yaml")
    namespaces = [m["metadata"]["name"] for m in dist.objects(cluster) if m["kind"] == "Namespace"]
    return (dist.ROOT / values).is_file() and namespace in namespaces and command.startswith(f"helm install {release} ")


def _files_exist(command: str) -> bool:
    return all(
        (dist.ROOT / path).exists() for path in re.findall(r"(?:^|\s)(\.ci/\S+|tests/\S+|app\.py|dist/)", command)
    )


def _port_is_forwarded(command: str) -> bool:
    (port,) = re.findall(r"localhost:(\d+)/", command)
    forwards = [
        words[-1] for page in documents.DOCUMENTS for words in documents.commands(page) if "port-forward" in words
    ]
    return port in forwards


def _variable_is_documented(command: str) -> bool:
    variables = {row[0].strip("`") for row in documents.table(HOW_IT_IS_TESTED, "Variable")}
    return command.removeprefix("export ").partition("=")[0] in variables


def _program_takes_these_words(command: str) -> bool:
    with contextlib.suppress(SystemExit):
        return bool(parser().parse_args(shlex.split(command)[1:]).command)
    return False


UV = r"(python3 -m |\.venv/bin/)?uv run"
CHECKS: dict[str, Callable[[str], bool]] = {
    rf"{UV} python app\.py|git diff dist/|\.ci/kind build/kubeconfig": _files_exist,
    rf"{UV}( --group e2e)? pytest( --dist loadgroup| -n 0)?( -m e2e( and not nvidia)?)?( tests/\S+)?": _files_exist,
    r"python3 -m pip (--python \.venv )?install -qq uv|python3 -m venv --without-pip \.venv": lambda _: True,
    r"uv sync|uv run pre-commit install": lambda _: (dist.ROOT / ".pre-commit-config.yaml").is_file(),
    r"pip install \.\./gpu-constructs(\[\w+\])?": _extra_exists,
    r"uv build --wheel --out-dir build": lambda _: "build/" in (dist.ROOT / ".gitignore").read_text(encoding="utf-8"),
    r"pip install build/\S+": _wheel_is_named_so,
    r"helm install .*": _helm_installs_our_values,
    r"curl -s localhost:\d+/metrics": _port_is_forwarded,
    r"export \w+=.*": _variable_is_documented,
    r"gpu-constructs .*": _program_takes_these_words,
    r"uv run gpu-constructs synth|cd my-cluster|uv build --wheel --out-dir wheels": lambda _: True,
    r"helm template llm \./chart": lambda _: True,
    r"pip install shtab|mkdir -p \S+|shtab --shell=bash gpu_constructs\.cli\.main\.parser > \S+": lambda _: True,
    # What reads the output of another command, or keeps it.
    r"(grep|tr) .*|[A-Z_]+=\$": lambda _: True,
}


def unchecked(command: list[str]) -> bool:
    """Whether no rule knows a command, or the one that does finds it wrong."""
    if command[0] in PROGRAMS:
        return PROGRAMS[command[0]](command) is not None
    text = " ".join(command)
    return not any(re.fullmatch(rule, text) and holds(text) for rule, holds in CHECKS.items())


def test_every_shell_command_is_known_and_right() -> None:
    for document in documents.DOCUMENTS:
        found = [words for words in documents.commands(document) if document.stem not in PAGES or words[0] in PROGRAMS]
        assert not [" ".join(words) for words in found if unchecked(words)], document.name


def test_a_wrong_command_would_be_found(rows) -> None:
    for (command,) in rows:
        assert unchecked(command.split())
