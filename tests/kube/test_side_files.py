from pathlib import Path

import pytest
from cdk8s import App, Chart
from constructs import Construct

from gpu_constructs import GpuNamespace, SynthesisError, synthesize
from gpu_constructs.kube.side_files import FOLDERS, SideFile


class Writer(Construct):
    """Anybody's construct with files of its own."""

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
def test_a_file_lies_in_its_folder_beside_the_manifests_and_says_that_it_is_generated(tmp_path, folder, ending):
    synthesize(app_in(tmp_path, SideFile(folder=folder, stem="gpu-1", ending=ending, text="{\n}\n")))
    first, rest = (tmp_path / folder / f"gpu-1{ending}").read_text().split("\n", 1)
    assert "Written by gpu_constructs: change the app, not this file." in first
    assert rest == ("}\n" if ending == ".json" else "{\n}\n")


@pytest.mark.parametrize("ending", FOLDERS["reports"])
def test_a_report_that_nothing_writes_any_more_goes_and_one_of_others_stays(tmp_path, ending):
    synthesize(app_in(tmp_path, SideFile(folder="reports", stem="plan", ending=ending, text="{\n}")))
    mine = tmp_path / f"reports/mine{ending}"
    mine.write_text("{}")
    synthesize(app_in(tmp_path))
    assert [file.name for file in (tmp_path / "reports").iterdir()] == [mine.name]


@pytest.mark.parametrize("others", [(), ("fleet",)], ids=["one-cluster", "two-clusters"])
def test_a_file_that_nothing_writes_any_more_goes_and_files_of_others_stay(tmp_path, others):
    folders = [tmp_path / name for name in ("homelab", *others)] if others else [tmp_path]
    synthesize(*(app_in(folder, machine(), machine("gpu-2")) for folder in folders))
    generated = next(iter(tmp_path.glob("machine-config/**/gpu-2.yaml")))
    mine = generated.with_name("mine.yaml")
    mine.write_text("machine: {}\n")
    synthesize(*(app_in(folder, machine()) for folder in folders))
    assert not generated.exists()
    assert mine.exists()


def test_two_constructs_do_not_write_one_file(tmp_path):
    app = app_in(tmp_path, machine())
    Writer(app, "other", machine())
    with pytest.raises(SynthesisError) as refused:
        synthesize(app)
    assert refused.value.problems == [
        "other: machine-config/gpu-1.yaml is written by another construct already; give one of them another name"
    ]
    assert not (tmp_path / "machine-config").exists()
