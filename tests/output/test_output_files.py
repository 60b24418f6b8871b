"""Tests of what synth does with existing files, and of its messages about them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cdk8s import ApiObject, App, Chart, YamlOutputType
from constructs import Construct

import gpu_constructs
from gpu_constructs import (
    DevicePluginChart,
    External,
    GpuConstructsError,
    GpuConstructsWarning,
    GpuNamespace,
    GpuWorkload,
    HelmValues,
    NvidiaRuntimeClass,
    SynthesisError,
    synth,
    synthesize,
)
from gpu_constructs.facts.provided import Provided
from gpu_constructs.kube.side_files import author, first_line
from gpu_constructs.output import files
from gpu_constructs.output.layout import HEADER
from gpu_constructs.tree.manifest import Manifest
from refusals import problems
from tables import cases

WIDGET = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "x"}}


def config_map(chart, name="x", **data):
    return Manifest(chart, name, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})


def app_of(outdir, *charts, **options):
    app = App(outdir=str(outdir), **options)
    for name in charts:
        config_map(Chart(app, name), name)
    return app


def texts(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def problems_of(*apps, **options):
    return problems(synthesize, *apps, **options)


@pytest.fixture
def dist(tmp_path):
    return tmp_path / "dist"


# Files of other authors.


@pytest.mark.parametrize("outdir", ["dist", "."])
def test_manifests_that_a_plain_cdk8s_app_or_a_person_wrote_stay(tmp_path, monkeypatch, outdir):
    monkeypatch.chdir(tmp_path)
    shop = App(outdir=str(tmp_path / outdir))
    ApiObject(Chart(shop, "shop"), "x", api_version="v1", kind="ConfigMap")
    shop.synth()
    mine = tmp_path / outdir / "mine.k8s.yaml"
    mine.write_text("kind: Service\n")
    synthesize(app_of(outdir, "old"))
    report = synthesize(app_of(outdir, "new"))
    assert sorted(texts(tmp_path / outdir)) == ["mine.k8s.yaml", "new.k8s.yaml", "shop.k8s.yaml"]
    assert report.removed == [(tmp_path / outdir).resolve() / "old.k8s.yaml"]


def test_a_file_of_another_program_stays_and_is_named_and_one_of_an_earlier_chart_goes(dist):
    synthesize(app_of(dist, "a", "renamed"), program="a.py")
    with pytest.warns(
        GpuConstructsWarning, match=r"^\S*a\.k8s\.yaml, \S*renamed\.k8s\.yaml: belongs to a\.py, so synth"
    ):
        synthesize(app_of(dist, "b", "gone"), program="b.py")
    with pytest.warns(GpuConstructsWarning, match="belongs to b.py, so synth keeps it") as said:
        synthesize(app_of(dist, "a"), program="a.py")
    assert len(said) == 1
    assert list(texts(dist)) == ["a.k8s.yaml", "b.k8s.yaml", "gone.k8s.yaml"]


def test_a_file_of_another_program_is_never_replaced(dist):
    for program in ("a.py", "b.py"):
        app = app_of(dist / program[0], program[0])
        GpuNamespace(Chart(app, "gpu"), "namespace", name=program[0])
        synthesize(app, program=program)
    (dist / "b" / "00-namespaces.k8s.yaml").rename(dist / "a" / "00-namespaces.k8s.yaml")
    before = texts(dist)
    app = app_of(dist / "a", "a", "more")
    GpuNamespace(Chart(app, "gpu"), "namespace", name="a")
    (problem,) = problems_of(app, program="a.py")
    assert problem.endswith(
        "a/00-namespaces.k8s.yaml: belongs to b.py. Give one of the two its own outdir, or delete its "
        "files if b.py no longer exists"
    )
    assert texts(dist) == before


def test_a_program_of_another_name_knows_the_files_of_an_earlier_release_that_it_writes(dist):
    synthesize(app_of(dist, "a"))
    synthesize(app_of(dist, "a"), program="a.py")
    assert texts(dist)["a.k8s.yaml"].startswith(first_line("a.k8s.yaml", "a.py"))


def test_programs_that_write_clusters_side_by_side_leave_those_of_each_other_and_say_nothing(dist):
    synthesize(app_of(dist / "a", "gpu"), app_of(dist / "b", "gpu"), program="a.py")
    synthesize(app_of(dist / "c", "gpu"), app_of(dist / "d", "gpu"), program="b.py")
    synthesize(app_of(dist / "a", "gpu"), app_of(dist / "e", "gpu"), program="a.py")
    assert list(texts(dist)) == [f"{cluster}/gpu.k8s.yaml" for cluster in "acde"]


def test_the_first_line_says_who_wrote_a_file():
    for name in ["x.yaml", "x.json", "x.html", "x.svg", "x.txt"]:
        for program in ["", "b.py", "clusters/a/app.py"]:
            line = first_line(name, program)
            assert author(name, line) == program, (name, program)
            assert author(name, line.replace("Written", "written")) is None, (name, program)
            assert author(name, line.rstrip("\n")) is None, (name, program)


def test_a_script_is_known_by_its_path_in_the_repository_and_what_is_no_script_by_none(tmp_path, monkeypatch):
    def name_of(script):
        monkeypatch.setattr(sys.modules["__main__"], "__file__", script and str(script), raising=False)
        return files.running_program()

    monkeypatch.chdir(tmp_path)
    assert name_of(tmp_path / "app.py") == ""
    assert name_of(tmp_path / "b.py") == "b.py"
    assert name_of(tmp_path / "team a" / "app.py") == "team_a/app.py"
    assert name_of(None) == ""
    assert name_of(pytest.__file__) == ""
    (tmp_path / "team" / ".git").mkdir(parents=True)
    assert name_of(tmp_path / "team" / "app.py") == ""
    assert name_of(tmp_path / "team" / "clusters" / "a.py") == "clusters/a.py"
    monkeypatch.chdir("/")
    assert name_of(tmp_path / "team" / "clusters" / "a.py") == "clusters/a.py"


@pytest.mark.parametrize("program", ["a b", "a(b)", 'a"', "a--b", "a\n", 3])
def test_a_name_that_no_first_line_can_carry_is_refused(dist, program):
    (problem,) = problems_of(app_of(dist, "gpu"), program=program)
    assert problem.startswith("program must consist of letters, digits and '._/-', got ")


# Symbolic links.


@cases
def test_files_behind_a_link_are_not_removed(tmp_path, dist, name, is_folder):
    behind = tmp_path / "behind"
    behind.mkdir()
    (behind / Path(name).name).write_text(HEADER)
    link = dist / name
    if is_folder:
        link, target = link.parent, behind
    else:
        target = behind / Path(name).name
    link.parent.mkdir(parents=True)
    link.symlink_to(target)
    synthesize(app_of(dist, "gpu"))
    assert list(texts(behind)) == [Path(name).name]
    assert link.is_symlink()


@pytest.mark.parametrize(("link", "is_inside"), [("needs-crds", True), ("gpu.k8s.yaml", False), ("helm-values", False)])
def test_nothing_is_written_through_a_link(tmp_path, dist, monkeypatch, link, is_inside):
    monkeypatch.chdir(tmp_path)
    behind = (dist if is_inside else tmp_path) / "behind"
    behind.mkdir(parents=True)
    (behind / "gpu.k8s.yaml").write_text("mine")
    (dist).mkdir(exist_ok=True)
    (dist / link).symlink_to(behind / link if "." in link else behind)
    app = app_of(dist, "gpu", "other")
    Manifest(app.charts[0], "widget", WIDGET)
    HelmValues(app, "values", release="gpu-operator", values={})
    assert problems_of(app) == [f"dist/{link}: is a symbolic link, through which synth does not write. Remove the link"]
    assert texts(behind) == {"gpu.k8s.yaml": "mine"}
    assert not (dist / "other.k8s.yaml").exists()


def test_an_outdir_that_is_a_link_is_the_users_choice(tmp_path, dist):
    behind = tmp_path / "behind"
    behind.mkdir()
    dist.symlink_to(behind)
    synthesize(app_of(dist, "old"))
    synthesize(app_of(dist, "new"))
    assert list(texts(behind)) == ["new.k8s.yaml"]
    assert dist.is_symlink()


# Write errors.


def test_a_failure_half_way_says_what_was_and_was_not_replaced(tmp_path, dist, monkeypatch, expected):
    monkeypatch.chdir(tmp_path)
    synthesize(app_of(dist, "a", "b", "c", "gone"))
    real, calls = os.replace, []

    def refuse(source, target):
        calls.append(target)
        if len(calls) == 3:
            raise PermissionError(13, "Permission denied", str(source))
        real(source, target)

    monkeypatch.setattr(os, "replace", refuse)
    app = App(outdir=str(dist))
    for name in ("a", "b", "c", "d"):
        config_map(Chart(app, name), name, new="yes")
    with pytest.raises(SynthesisError) as failed:
        synthesize(app)
    assert str(failed.value).splitlines() == expected
    assert list(texts(dist)) == ["a.k8s.yaml", "b.k8s.yaml", "c.k8s.yaml", "gone.k8s.yaml"]
    assert ["new" in text for text in texts(dist).values()] == [True, True, False, False]


def test_a_file_that_cannot_be_removed_is_named(tmp_path, dist, monkeypatch, expected):
    monkeypatch.chdir(tmp_path)
    synthesize(app_of(dist, "gone", "same"))

    def refuse(path, missing_ok=False):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(SynthesisError) as failed:
        synthesize(app_of(dist, "new", "same"))
    assert str(failed.value).splitlines()[1:] == expected


def test_a_failure_before_the_first_file_leaves_nothing_behind(tmp_path, dist, monkeypatch, expected):
    monkeypatch.chdir(tmp_path)

    def full_disk(path, mode):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(os, "chmod", full_disk)
    app = app_of(dist)
    Manifest(Chart(app, "gpu"), "x", WIDGET)
    with pytest.raises(SynthesisError) as failed:
        synthesize(app)
    assert str(failed.value).splitlines() == expected
    assert list(dist.rglob("*")) == []


# Output of synth.


def test_one_line_summarizes_the_result(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def says(*apps, **options):
        synth(*apps, **options)
        printed = capsys.readouterr()
        assert printed.out == ""
        return printed.err

    assert says(app_of("dist", "a", "b")) == "wrote 2 files to dist/\n"
    assert says(app_of("dist", "a", "b")) == "dist/ is unchanged (2 files)\n"
    assert says(app_of("dist", "a", "c")) == "wrote 1 of 2 files to dist/, removed 1\n"
    assert says(app_of("dist", "a")) == "wrote 0 of 1 file to dist/, removed 1\n"
    assert says(app_of("dist", "a", "d"), quiet=True) == ""
    assert says(app_of("out/east", "a"), app_of("out/west", "a")) == "wrote 2 files to out/\n"
    assert says(app_of(".", "a")) == "wrote 1 file to ./\n"
    (tmp_path / "dist" / "z.k8s.yaml").write_text("mine")
    assert says(app_of("dist", "a", "d", "z")) == (
        "wrote 1 of 3 files to dist/, replaced 1 that gpu_constructs did not write (dist/z.k8s.yaml)\n"
    )


def test_the_report_counts_warnings(dist):
    app = app_of(dist, "a")
    Wants(app, "needy")
    with pytest.warns(GpuConstructsWarning):
        report = synthesize(app)
    assert str(report).endswith(", 1 warning")
    assert [warning.partition(":")[0] for warning in report.warnings] == ["needy"]


class Wants(Construct):
    """A construct that needs node labels from another source."""

    def __init__(self, scope, id):
        super().__init__(scope, id)
        self.provides = Provided(wants_node_labels={"example.com/label=false": "it fails"})


# Wrong calls.


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (lambda app: synth(), "synth needs at least one App"),
        (lambda app: synth(app.charts[0]), "synth takes Apps only, got the Chart 'gpu'. Pass the App that contains it"),
        (lambda app: synth([app]), "synth takes each App as a separate argument, got a list. Write synth(*apps)"),
        (lambda app: synth(app, "dist"), "synth takes Apps only, got 'dist'. Set the folder with App(outdir='dist')"),
        (lambda app: synth(app, None), "synth takes Apps only, got None (NoneType). Pass the App that contains it"),
        (lambda app: synth(App), "synth takes Apps only, got the class App. Make one with App()"),
        (lambda app: synth(app, app), "every App needs its own outdir, got the same one twice"),
        (
            lambda app: synth(app, App(outdir="a/b")),
            "the outdirs of several Apps must be in the same folder, got a/b, dist",
        ),
        (lambda app: synth(app, strict="yes"), "strict must be True or False, got 'yes'"),
        (lambda app: synth(App(outdir="")), "outdir must name a folder, got ''. Leave it out to use dist/"),
        (lambda app: synth(App(outdir=" ")), "outdir must name a folder, got ' '. Leave it out to use dist/"),
        (
            lambda app: synth(App(yaml_output_type=YamlOutputType.FILE_PER_APP)),
            "yaml_output_type must be FILE_PER_CHART for synth, which sorts objects into files itself",
        ),
        (
            lambda app: synth(App(output_file_extension=".yaml")),
            "output_file_extension must be '.k8s.yaml' for synth, got '.yaml'. Leave it out, or call app.synth()",
        ),
    ],
)
def test_a_wrong_call_is_one_line(tmp_path, monkeypatch, capsys, call, line):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as exit_:
        call(app_of("dist", "gpu"))
    assert exit_.value.code == 1
    (printed,) = capsys.readouterr().err.splitlines()
    assert printed.startswith(line)
    assert len(printed) <= 200
    assert list(tmp_path.iterdir()) == []


def test_a_keyword_that_synth_does_not_have_is_refused_at_the_users_line(app):
    with pytest.raises(GpuConstructsError, match="outdir is not a keyword of synth"):
        synth(app, outdir="dist")


def test_an_outdir_variable_that_is_set_and_empty_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CDK8S_OUTDIR", "")
    assert problems_of(app_of("east", "gpu")) == [
        "CDK8S_OUTDIR must name a folder, got an empty value. Unset it, or name a folder"
    ]
    assert list(tmp_path.iterdir()) == []


def test_the_metadata_file_that_cdk8s_writes_on_demand_is_written_too(tmp_path):
    apps = {way: app_of(tmp_path / way, "a", "b", record_construct_metadata=True) for way in ("ours", "theirs")}
    apps["theirs"].synth()
    synthesize(apps["ours"])
    ours, theirs = (json.loads((tmp_path / way / "construct-metadata.json").read_text()) for way in apps)
    del ours["//"]
    assert ours == theirs
    assert [resource["path"] for resource in ours["resources"].values()] == ["a/a", "b/b"]
    synthesize(app_of(tmp_path / "ours", "a", "b"))
    assert "construct-metadata.json" not in texts(tmp_path / "ours")


# Warnings as errors.


def test_strict_lists_every_warning_of_every_app_and_writes_nothing(dist):
    east, west = app_of(dist / "east", "gpu"), app_of(dist / "west", "gpu")
    for app in (east, west):
        Wants(app, "needy")
    GpuWorkload(west.charts[0], "train", image="a:1", kind="Job")
    problems = problems_of(east, west, strict=True)
    wanting = [re.match(r"(\w+): [\w/]+: needs the node label", problem) for problem in problems]
    assert [found[1] for found in wanting if found] == ["east", "west"]
    assert len(problems) > 2
    assert not dist.exists()


def test_strict_lists_warnings_of_constructs(dist, tmp_path):
    nothing = {"device_plugin": False, "gpu_feature_discovery": False, "node_feature_discovery": False}
    app, other = app_of(dist), App(outdir=str(tmp_path / "other"))
    for scope, id in ((app, "plugin"), (other, "other")):
        with pytest.warns(GpuConstructsWarning):
            DevicePluginChart(scope, id, **nothing)
    assert [problem.partition(":")[0] for problem in problems_of(app, strict=True)] == ["plugin"]
    assert synthesize(app).warnings == problems_of(app, strict=True)


@pytest.mark.parametrize(("value", "is_strict"), [("1", True), ("true", True), ("0", False), ("", False)])
def test_strictness_is_read_from_the_environment(dist, monkeypatch, recwarn, value, is_strict):
    monkeypatch.setenv("GPU_CONSTRUCTS_STRICT", value)
    app = app_of(dist, "gpu")
    NvidiaRuntimeClass(app.charts[0], "class")
    Wants(app, "needy")
    if not is_strict:
        with pytest.warns(GpuConstructsWarning):
            synthesize(app)
        return
    assert [problem.partition(":")[0] for problem in problems_of(app)] == ["needy"]
    with pytest.raises(RuntimeError, match="needy: needs the node label"):
        app.synth()
    assert not dist.exists()


def test_a_value_of_that_variable_that_is_neither_is_refused(dist, monkeypatch):
    monkeypatch.setenv("GPU_CONSTRUCTS_STRICT", "yes")
    assert problems_of(app_of(dist, "gpu")) == [
        "GPU_CONSTRUCTS_STRICT must be 1 or 0, got 'yes'. Unset it if warnings must not be errors"
    ]


@pytest.mark.filterwarnings("ignore:needy")
def test_a_warning_that_a_filter_ignores_is_no_error(dist):
    app = app_of(dist, "gpu")
    Wants(app, "needy")
    synthesize(app, strict=True)
    assert list(texts(dist)) == ["gpu.k8s.yaml"]


# Rendering by cdk8s.


@pytest.mark.parametrize("way", ["synth", "synth_yaml"])
def test_cdk8s_checks_what_synth_checks_where_an_app_holds_our_constructs(dist, way):
    app = App(outdir=str(dist))
    GpuWorkload(Chart(app, "train", namespace="nowhere"), "train", image="a:1", kind="Job")
    expected = problems_of(app)
    with pytest.raises(RuntimeError) as refused:
        getattr(app, way)()
    assert refused.value.problems == expected
    assert not dist.exists()


def test_cdk8s_checks_nothing_of_an_app_without_our_constructs(dist):
    app = App(outdir=str(dist))
    ApiObject(
        Chart(app, "gpu"), "x", api_version="v1", kind="ConfigMap", metadata={"name": "x", "namespace": "nowhere"}
    )
    app.synth()
    assert list(texts(dist)) == ["gpu.k8s.yaml"]


def test_a_warning_is_given_by_cdk8s_too(app):
    External(app, "existing", namespaces=["team"])
    Wants(app, "needy")
    config_map(Chart(app, "gpu"))
    with pytest.warns(GpuConstructsWarning, match="needy: needs") as said:
        app.synth()
    assert len(said) == 1


# Whole programs.


@pytest.fixture
def run(tmp_path):
    """Run a program of a user in a separate process."""

    def run(name, text, *options, **environment):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("from gpu_constructs import *\nfrom cdk8s import *\n" + text)
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(
            [sys.executable, *options, name],
            cwd=tmp_path,
            env={
                **os.environ,
                "PATH": path,
                "PYTHONPATH": str(Path(gpu_constructs.__file__).parents[1]),
                **environment,
            },
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Continue as another run of a program, whose script is in a folder of this test."""
    monkeypatch.chdir(tmp_path)

    def start(script):
        monkeypatch.setattr(sys.modules["__main__"], "__file__", str(tmp_path / script), raising=False)
        monkeypatch.setattr(files, "_calls", [])

    return start


def test_two_programs_and_two_apps_of_one_leave_the_files_of_each_other(start, dist):
    start("app.py")
    synthesize(app_of(dist, "a"))
    start("team/app.py")
    with pytest.warns(
        GpuConstructsWarning, match=r"dist/a\.k8s\.yaml: belongs to app\.py or an earlier release, so synth"
    ):
        synthesize(app_of(dist, "b"))
    for is_again in (False, True):
        start("app.py")
        with pytest.warns(GpuConstructsWarning) as said:
            reports = [synthesize(app_of(dist, name)) for name in "cd"]
        assert [bool(report.written) for report in reports] == [not is_again] * 2
        assert list(texts(dist)) == ["b.k8s.yaml", "c.k8s.yaml", "d.k8s.yaml"]
    warnings = "".join(str(one.message) for one in said)
    assert "dist/b.k8s.yaml: belongs to team/app.py, so synth keeps it" in warnings
    assert "dist/d.k8s.yaml: belongs to app.py-2, so synth keeps it" in warnings
    start("app.py")
    with pytest.warns(GpuConstructsWarning):
        synthesize(app_of(dist, "c"))
    (problem,) = problems_of(app_of(dist, "c"))
    assert problem.startswith("dist/c.k8s.yaml: belongs to another App of this program. Give one of the two")


def test_apps_with_outdirs_of_their_own_need_no_name_of_their_own_in_one_script(start, dist):
    start("app.py")
    for outdir in ("a", "b", "a/c"):
        synthesize(app_of(dist / outdir, "gpu"))
    assert [text.startswith(HEADER) for text in texts(dist).values()] == [True] * 3


def test_a_mistake_ends_a_program_at_the_users_line(run, dist):
    done = run("app.py", 'GpuNamespace(Chart(App(), "gpu"), "namespace", pod_security="privleged")\n')
    assert (done.returncode, done.stdout) == (1, "")
    lines = done.stderr.splitlines()
    assert '    GpuNamespace(Chart(App(), "gpu"), "namespace", pod_security="privleged")' in lines
    assert lines[-1].endswith("got 'privleged' (did you mean 'privileged'?)")
    assert len([line for line in lines if line.startswith("  File ")]) == 2
    assert "jsii" not in done.stderr.lower()
    assert not dist.exists()


def test_a_warning_is_one_line_and_printed_once(run, expected):
    text = (
        "app = App()\n"
        'DevicePluginChart(app, "plugin", device_plugin=False, gpu_feature_discovery=False, '
        "node_feature_discovery=False)\n"
        "synth(app)\n"
    )
    done = run("app.py", text)
    assert done.stderr.splitlines() == expected


FORGOTTEN = """
def app(name):
    made = App(outdir=name)
    GpuNamespace(Chart(made, "gpu"), "namespace", name="gpu")
    return made
app("a").synth()
app("b").synth_yaml()
Testing.synth(app("c").charts[0])
app("d").charts[0].to_json()
synth(app("e"), quiet=True)
GpuNamespace(Testing.chart(), "namespace")
App(outdir="f")
app("g")
"""


def test_an_app_that_is_never_synthesized_is_named_at_the_end_of_a_program(run):
    done = run("app.py", FORGOTTEN)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == (
        "warning: App(outdir='g') has no output, because the program never rendered it. End the program with "
        "synth(app)\n"
    )


@pytest.mark.parametrize("end", ["1 / 0\n", pytest.param("synth(app('h').charts[0])\n", marks=pytest.mark.slow)])
def test_a_program_that_failed_causes_no_warning_about_it(run, end):
    done = run("app.py", FORGOTTEN + end)
    assert done.returncode == 1
    assert "has no output" not in done.stderr
