from pathlib import Path

import pytest
from cdk8s import App, Chart
from constructs import Construct

from gpu_constructs import GpuNamespace, HelmValues, SynthesisError, synthesize
from gpu_constructs.side_files import FOLDERS, SideFile, WritesSideFiles
from gpu_constructs.synthesis import HEADER


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


def test_constructs_that_write_files_say_so_and_others_do_not(app, chart):
    assert isinstance(HelmValues(app, "values", release="x", values={}), WritesSideFiles)
    assert not isinstance(GpuNamespace(chart, "namespace"), WritesSideFiles)


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_file_lies_in_its_folder_beside_the_manifests_and_says_that_it_is_generated(tmp_path, folder):
    synthesize(app_in(tmp_path, SideFile(folder=folder, stem="gpu-1", text="a: b\n")))
    assert (tmp_path / folder / f"gpu-1{FOLDERS[folder]}").read_text() == HEADER + "a: b\n"


def test_with_several_clusters_it_lies_in_a_folder_of_its_cluster_beside_theirs(tmp_path):
    synthesize(app_in(tmp_path / "homelab", machine()), app_in(tmp_path / "fleet", machine()))
    assert sorted(str(file.relative_to(tmp_path)) for file in tmp_path.glob("machine-config/*/*")) == [
        "machine-config/fleet/gpu-1.yaml",
        "machine-config/homelab/gpu-1.yaml",
    ]


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


def test_files_of_one_name_in_different_folders_do_not_meet(tmp_path):
    synthesize(app_in(tmp_path, machine("x"), SideFile(folder="helm-values", stem="x", text="a: b\n")))
    assert len(list(tmp_path.glob("*/x*.yaml"))) == 2
