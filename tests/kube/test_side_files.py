from pathlib import Path

import pytest
from cdk8s import App, Chart
from constructs import Construct

from gpu_constructs import GpuNamespace, synthesize
from gpu_constructs.kube.side_files import FOLDERS, SideFile
from refusals import problems


class Writer(Construct):
    """A construct of a user that writes files."""

    def __init__(self, scope, id, *files):
        super().__init__(scope, id)
        self.files = files

    def side_files(self):
        return self.files


def machine(stem="gpu-1", text="machine: {}\n"):
    return SideFile(folder="machine-config", stem=stem, text=text)


def app_in(folder: Path, *files: SideFile) -> App:
    app = App(outdir=str(folder))
    GpuNamespace(Chart(app, "gpu"), "namespace", name="gpu")
    if files:
        Writer(app, "writer", *files)
    return app


@pytest.mark.parametrize(("folder", "ending"), [(folder, ending) for folder in FOLDERS for ending in FOLDERS[folder]])
def test_a_file_is_in_its_folder_and_states_that_it_is_generated(tmp_path, folder, ending):
    synthesize(app_in(tmp_path, SideFile(folder=folder, stem="gpu-1", ending=ending, text="{\n}\n")))
    first, rest = (tmp_path / folder / f"gpu-1{ending}").read_text().split("\n", 1)
    assert "Written by gpu_constructs: change the app, not this file." in first
    assert rest == ("}\n" if ending == ".json" else "{\n}\n")


@pytest.mark.parametrize("ending", FOLDERS["reports"])
def test_synth_removes_its_old_reports_and_keeps_those_of_others(tmp_path, ending):
    synthesize(app_in(tmp_path, SideFile(folder="reports", stem="plan", ending=ending, text="{\n}")))
    mine = tmp_path / f"reports/mine{ending}"
    mine.write_text("{}")
    synthesize(app_in(tmp_path))
    assert [file.name for file in (tmp_path / "reports").iterdir()] == [mine.name]


@pytest.mark.parametrize("others", [(), ("fleet",)], ids=["one-cluster", "two-clusters"])
def test_synth_removes_its_old_files_and_keeps_those_of_others(tmp_path, others):
    folders = [tmp_path / name for name in ("homelab", *others)] if others else [tmp_path]
    synthesize(*(app_in(folder, machine(), machine("gpu-2")) for folder in folders))
    generated = next(iter(tmp_path.glob("machine-config/**/gpu-2.yaml")))
    mine = generated.with_name("mine.yaml")
    mine.write_text("machine: {}\n")
    synthesize(*(app_in(folder, machine()) for folder in folders))
    assert not generated.exists()
    assert mine.exists()


def test_two_constructs_cannot_write_the_same_file(tmp_path):
    app = app_in(tmp_path, machine())
    Writer(app, "other", machine())
    assert problems(synthesize, app) == [
        "other: another construct already writes machine-config/gpu-1.yaml. Give one of them another name"
    ]
    assert not (tmp_path / "machine-config").exists()
