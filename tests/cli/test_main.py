"""The program ``gpu-constructs`` itself: its help, its version, its start as a module, and completion in a shell."""

import re
import subprocess
import sys

import pytest

from dist import ROOT
from gpu_constructs.cli.main import COMMANDS, main
from gpu_constructs.version import version


def ended(*arguments):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    return stop.value.code


def ran(*command):
    return subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, check=False)


def test_the_help_lists_all_commands_and_the_exit_statuses(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert ended("--help") == 0
    output = capsys.readouterr().out
    assert all(re.search(rf"^ +{name}\s+\S", output, re.M) for name in COMMANDS)
    assert "exit status: 0 nothing found, 1 found, 2 wrong usage, 3 could not read all" in output
    assert "examples:\n" in output
    assert max(map(len, output.splitlines())) <= 80


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_has_examples(capsys, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    assert ended(command, "--help") == 0
    output = capsys.readouterr().out
    examples = output.split("examples:\n")[1].split("\n\n")[0].splitlines()
    assert examples
    assert max(map(len, output.splitlines())) <= 80
    assert all(f"gpu-constructs {command}" in line for line in examples)


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_a_page(command):
    assert f"[`{command}`](command-{command}.md)" in (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    assert (ROOT / "docs" / f"command-{command}.md").is_file()


def test_a_missing_or_unknown_command_is_wrong_usage(capsys):
    assert ended() == 2
    assert ended("lnt") == 2
    assert "invalid choice: 'lnt'" in capsys.readouterr().err


def test_the_program_is_also_a_module():
    done = ran("gpu_constructs", "--version")
    assert (done.stdout, done.returncode) == (f"gpu-constructs {version()}\n", 0)
    assert ran("gpu_constructs", "lint", "missing.yaml").returncode == 3


def test_a_shell_can_complete_commands_and_options():
    script = ran("shtab", "--shell=bash", "gpu_constructs.cli.main.parser").stdout
    assert all(word in script for word in (*COMMANDS, "--inventory", "--find-links", "--check"))
    assert subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode == 0


@pytest.mark.parametrize("command", ["explain R07", "explain --list"])
@pytest.mark.parametrize("buffering", ["", "1"])
def test_output_that_was_not_all_read_has_its_own_status(command, buffering):
    program = f"PYTHONUNBUFFERED={buffering} {sys.executable} -m gpu_constructs {command}; echo status $? >&2"
    done = subprocess.run(["bash", "-c", f"({program}) | true"], capture_output=True, text=True, check=False)
    assert done.stderr == "status 3\n"
