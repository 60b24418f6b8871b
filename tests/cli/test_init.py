"""``gpu-constructs init``: a small app that works at once."""

import json
import subprocess
import sys

import pytest

from gpu_constructs.cli.main import main
from gpu_constructs.version import version
from tables import cases

FILES = {"app.py", "pyproject.toml", "cdk8s.yaml", "README.md", ".gitignore", ".gitattributes"}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CDK8S_OUTDIR", raising=False)
    return tmp_path


@cases
def test_the_app_works_at_once_and_shows_its_options(here, capsys, options, lint, dist):
    assert main(["init", "my-app", *options]) == 0
    assert "defaults" not in capsys.readouterr().out
    app = here / "my-app"
    assert {path.name for path in app.iterdir()} == FILES
    ran = subprocess.run([sys.executable, "app.py"], cwd=app, capture_output=True, text=True, check=True)
    assert "warning" not in ran.stderr
    for name, text in dist.items():
        assert text in (app / "dist" / name).read_text(encoding="utf-8"), name
    assert main(["lint", "my-app/dist", *lint, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["findings"] == []
    subprocess.run([sys.executable, "-m", "ruff", "check", "--quiet", "--isolated", "app.py"], cwd=app, check=True)


@cases
def test_a_wrong_option_writes_nothing(here, capsys, options, says):
    assert main(["init", "my-app", *options]) == 2
    assert says in capsys.readouterr().err
    assert list(here.iterdir()) == []


def test_defaults_are_stated_and_the_version_is_pinned(here, capsys):
    (here / "wheels").mkdir()
    (here / "wheels" / f"gpu_constructs-{version()}-py3-none-any.whl").touch()
    (here / "my app").mkdir()
    assert main(["init", "my app", "--nodes", "2", "--find-links", "wheels"]) == 0
    output, error = capsys.readouterr()
    assert error == ""
    assert "\n  cd 'my app'\n" in output
    assert "defaults: --platform 'talos', --gpu 'NVIDIA GeForce RTX 4090', --share '4'" in output
    project = (here / "my app" / "pyproject.toml").read_text(encoding="utf-8")
    assert 'name = "my-app"' in project
    assert f'"gpu-constructs=={version()}"' in project
    assert 'find-links = ["../wheels"]' in project
    assert {path.name for path in here.iterdir()} == {"wheels", "my app"}


def test_without_a_wheel_the_command_warns_that_no_index_has_the_package(capsys):
    assert main(["init", "my-app"]) == 0
    assert capsys.readouterr().err == (
        "warning: gpu-constructs is not on a package index yet, so uv cannot install it.\n"
        "Pass --find-links WHEELDIR, which names a folder with its wheel.\n"
    )


@pytest.mark.parametrize(("platform", "expected"), [("talos", True), ("k3s", False)])
def test_only_talos_gets_the_command_for_the_machine_configuration(here, capsys, platform, expected):
    assert main(["init", "my-app", "--platform", platform]) == 0
    command = "talosctl --nodes <node-ip> patch machineconfig --patch @dist/machine-config/gpu-node.yaml"
    assert (f"\n  {command}\n  kubectl apply" in capsys.readouterr().out) is expected
    assert (f"\n{command}\n```\n" in (here / "my-app" / "README.md").read_text(encoding="utf-8")) is expected


def test_a_terminal_asks_for_what_is_missing(monkeypatch, capsys):
    questions = []
    answers = iter(["k3s", "", "3", "1"])
    monkeypatch.setattr("builtins.input", lambda question: questions.append(question) or next(answers))
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["init", "my-app"]) == 0
    assert questions[1] == "board of the nodes, as nvidia-smi prints it [RTX 4090]: "
    with open("my-app/app.py", encoding="utf-8") as file:
        text = file.read()
    assert "Kubernetes()" in text
    assert "NODES = 3\nSHARE = 1\nSHARING = Sharing.none()" in text


@pytest.mark.parametrize("name", ["full", "file"])
def test_a_folder_that_is_not_empty_stays_as_it_is(here, capsys, name):
    (here / "full").mkdir()
    (here / "full" / "x").touch()
    (here / "file").touch()
    assert main(["init", name]) == 2
    assert capsys.readouterr().err == (
        f"gpu-constructs init: {name} must be a new or an empty folder. Pass another folder\n"
    )
    assert [path.name for path in (here / "full").iterdir()] == ["x"]


@pytest.mark.parametrize("is_new", [True, False])
def test_an_error_of_the_disk_leaves_no_file(here, monkeypatch, capsys, is_new):
    def fail(self, target):
        if self.name in ("app", "README.md"):
            raise OSError(28, "No space left on device", str(target))
        return original(self, target)

    original = type(here).rename
    if not is_new:
        (here / "my-app").mkdir()
    monkeypatch.setattr(type(here), "rename", fail)
    assert main(["init", "my-app"]) == 2
    assert "No space left on device. The folder stays as it was" in capsys.readouterr().err
    assert [path.name for path in here.rglob("*")] == ([] if is_new else ["my-app"])
