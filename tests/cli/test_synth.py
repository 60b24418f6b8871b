"""``gpu-constructs synth``: runs an app, and ``--check`` compares its files without changing them."""

import json
import sys

import pytest

from gpu_constructs.cli.main import main
from gpu_constructs.kube.side_files import marked
from tables import cases

APP = f"""\
import os, pathlib
out = pathlib.Path(os.environ["CDK8S_OUTDIR"])
out.mkdir(exist_ok=True)
mark = {marked("a.k8s.yaml", "")!r}
for path in out.glob("*.k8s.yaml"):
    path.unlink()
for name in ("a", "b"):
    (out / (name + ".k8s.yaml")).write_text(mark + pathlib.Path("value.txt").read_text())
"""


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    (tmp_path / "neighbor.txt").write_text("", encoding="utf-8")
    folder = tmp_path / "project"
    (folder / "dist").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / "app.py").write_text(APP, encoding="utf-8")
    (folder / "value.txt").write_text("1\n", encoding="utf-8")
    monkeypatch.chdir(folder)
    monkeypatch.delenv("CDK8S_OUTDIR", raising=False)
    assert main(["synth"]) == 0
    return folder


def everything(folder):
    return {path: (path.stat().st_mtime_ns, path.is_file() and path.read_bytes()) for path in folder.rglob("*")}


def changes(capsys, *arguments):
    capsys.readouterr()
    status = main(["synth", *arguments, "--format", "json"])
    return status, json.loads(capsys.readouterr().out)["changes"]


def test_a_run_names_what_it_changed(project, capsys):
    (project / "dist" / "a.k8s.yaml").unlink()
    capsys.readouterr()
    main(["synth"])
    assert capsys.readouterr().out == "created dist/a.k8s.yaml\n\nfiles: 1 created\n"
    main(["synth"])
    assert capsys.readouterr().out == "the files in dist did not change\n"


def test_a_check_names_missing_stale_and_extra_files_and_changes_nothing(project, capsys):
    assert main(["synth", "--check"]) == 0
    (project / "dist" / "a.k8s.yaml").unlink()
    (project / "dist" / "b.k8s.yaml").write_text("2", encoding="utf-8")
    (project / "dist" / "c.k8s.yaml").write_text("2", encoding="utf-8")
    before = everything(project.parent)
    status, found = changes(capsys, "--check")
    assert status == 1
    assert found == {"missing": ["dist/a.k8s.yaml"], "stale": ["dist/b.k8s.yaml"], "extra": ["dist/c.k8s.yaml"]}
    assert everything(project.parent) == before
    (project / "dist" / "a.k8s.yaml").write_text(marked("a.k8s.yaml", "1\n"), encoding="utf-8")
    main(["synth", "--check"])
    output = capsys.readouterr().out
    assert "(dist/b.k8s.yaml)\n  error file-is-stale: differs from what the app writes\n" in output
    assert output.endswith("the files of the app are not fresh: 1 stale, 1 extra\n")


@pytest.mark.parametrize("where", ["..", "elsewhere"])
def test_the_app_is_a_folder_or_a_file(project, monkeypatch, capsys, where):
    (project.parent / "elsewhere").mkdir()
    monkeypatch.chdir(project.parent if where == ".." else project.parent / "elsewhere")
    path = "project" if where == ".." else "../project/app.py"
    (project / "value.txt").write_text("2\n", encoding="utf-8")
    assert changes(capsys, "--check", path)[1]["stale"] == ["dist/a.k8s.yaml", "dist/b.k8s.yaml"]


def test_the_settings_of_cdk8s_name_command_and_folder(project, capsys):
    command = f"{sys.executable} other.py && test -e ../neighbor.txt && test -e .git"
    (project / "cdk8s.yaml").write_text(f"app: {command}\noutput: out\n", encoding="utf-8")
    (project / "app.py").rename(project / "other.py")
    assert changes(capsys, "--check") == (
        1,
        {"missing": ["out/a.k8s.yaml", "out/b.k8s.yaml"], "stale": [], "extra": []},
    )
    assert not (project / "out").exists()


def test_a_failing_app_shows_its_error(project, capsys):
    (project / "app.py").write_text("raise SystemExit('the app is wrong')", encoding="utf-8")
    for arguments in ([], ["--check"]):
        assert main(["synth", *arguments]) == 3
        assert capsys.readouterr().err == (
            "the app is wrong\ngpu-constructs synth: python app.py failed with exit status 1. Correct the error above\n"
        )


def test_what_was_not_checked_is_stated(project, capsys):
    (project / "app.py").write_text(APP.replace("mark +", ""), encoding="utf-8")
    main(["synth"])
    assert main(["synth", "--check"]) == 0
    assert "Not checked: files that the app no longer writes" in " ".join(capsys.readouterr().out.split())


@cases
def test_an_app_that_cannot_be_checked_is_an_error(project, monkeypatch, capsys, app, outdir, says, status):
    monkeypatch.setenv("CDK8S_OUTDIR", "empty" if app == "nothing" else outdir)
    if app == "nothing":
        (project / "app.py").write_text("", encoding="utf-8")
    elif app == "absent":
        (project / "app.py").unlink()
    assert main(["synth", "--check"]) == status
    assert says in capsys.readouterr().err
