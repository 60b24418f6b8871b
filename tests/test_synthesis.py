import json
import os
import re
import subprocess
import sys
from pathlib import Path

import jsii
import pytest
import yaml
from cdk8s import ApiObject, ApiObjectMetadata, App, Chart, Include, IResolver, JsonPatch, Testing, Yaml
from constructs import Construct, IValidation
from hypothesis import given, settings
from hypothesis import strategies as st

import gpu_constructs
from gpu_constructs import (
    DevicePluginChart,
    External,
    GpuConstructsError,
    GpuConstructsWarning,
    GpuNamespace,
    GpuWorkload,
    HelmValues,
    SynthesisError,
    synth,
    synthesis,
    synthesize,
)
from gpu_constructs._manifest import Manifest
from gpu_constructs.provided import Provided
from gpu_constructs.synthesis import HEADER


@jsii.implements(IValidation)
class Complaints:
    def __init__(self, *messages):
        self.messages = messages

    def validate(self):
        return list(self.messages)


class Lazily:
    """A body that fails when it is rendered, not when it is made."""

    def __init__(self, failure):
        self.failure = failure
        self.has_been_made = False

    def __call__(self):
        if self.has_been_made:
            raise self.failure
        self.has_been_made = True
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}


def obj(scope, api_version, kind, name="x", **more):
    return Manifest(
        scope, f"{kind}-{name}", {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **more}
    )


def crd(scope, group, plural="widgets"):
    return obj(scope, "apiextensions.k8s.io/v1", "CustomResourceDefinition", f"{plural}.{group}", spec={"group": group})


def files(folder):
    """Every file below a folder with its bytes, every empty folder with None."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file() or not any(path.iterdir())
    }


def kinds(file):
    return [manifest["kind"] for manifest in yaml.safe_load_all(file.read_text())]


def problems_of(*apps):
    with pytest.raises(SynthesisError) as refused:
        synthesize(*apps)
    return refused.value.problems


@pytest.fixture
def dist(tmp_path):
    return tmp_path / "dist"


@pytest.fixture
def make_app(dist):
    """Make an App of one chart with one ConfigMap, for a cluster in dist/ or for dist/ itself."""

    def make(cluster="", *charts):
        app = App(outdir=str(dist / cluster))
        for name in charts or ("gpu",):
            obj(Chart(app, name), "v1", "ConfigMap", name)
        return app

    return make


# Which object goes to which file.


def test_each_chart_has_a_file_named_after_it(make_app, dist):
    synthesize(make_app("", "east", "west"))
    assert list(files(dist)) == ["east.k8s.yaml", "west.k8s.yaml"]
    assert yaml.safe_load((dist / "east.k8s.yaml").read_text())["metadata"] == {"name": "east"}


def test_namespaces_of_all_charts_come_first(app, dist):
    for name in ("east", "west"):
        chart = Chart(app, name, namespace=name)
        obj(chart, "v1", "ConfigMap")
        GpuNamespace(chart, "namespace", name=name)
    synthesize(app)
    assert list(files(dist)) == ["00-namespaces.k8s.yaml", "east.k8s.yaml", "west.k8s.yaml"]
    assert kinds(dist / "00-namespaces.k8s.yaml") == ["Namespace"] * 2
    assert kinds(dist / "east.k8s.yaml") == ["ConfigMap"]


def test_definitions_come_next(app, chart, dist):
    obj(chart, "v1", "ConfigMap")
    crd(Chart(app, "other"), "example.com")
    synthesize(app)
    assert list(files(dist)) == ["01-crds.k8s.yaml", "gpu.k8s.yaml"]
    assert kinds(dist / "01-crds.k8s.yaml") == ["CustomResourceDefinition"]


def test_objects_kubernetes_does_not_define_lie_apart_even_where_the_app_does(app, chart, dist):
    crd(chart, "example.com")
    obj(chart, "example.com/v1", "Widget")
    obj(chart, "monitoring.coreos.com/v1", "ServiceMonitor")
    obj(chart, "v1", "ConfigMap")
    synthesize(app)
    assert list(files(dist)) == ["01-crds.k8s.yaml", "gpu.k8s.yaml", "needs-crds/gpu.k8s.yaml"]
    assert kinds(dist / "gpu.k8s.yaml") == ["ConfigMap"]
    assert kinds(dist / "needs-crds" / "gpu.k8s.yaml") == ["Widget", "ServiceMonitor"]


def test_every_kind_kubernetes_serves_stays_with_its_chart(app, chart, dist):
    for api_version, kind in (("v1", "Secret"), ("apps/v1", "Deployment"), ("rbac.authorization.k8s.io/v1", "Role")):
        obj(chart, api_version, kind, kind.lower())
    synthesize(app)
    assert kinds(dist / "gpu.k8s.yaml") == ["Secret", "Deployment", "Role"]


def test_classes_that_pods_name_come_before_all_charts(app, chart, dist):
    classes = {
        "DeviceClass": "resource.k8s.io/v1",
        "PriorityClass": "scheduling.k8s.io/v1",
        "RuntimeClass": "node.k8s.io/v1",
        "StorageClass": "storage.k8s.io/v1",
    }
    for kind, api_version in classes.items():
        obj(chart, api_version, kind, kind.lower())
    obj(chart, "v1", "ConfigMap", "config")
    # Of another group, so its definition must be there first.
    obj(chart, "kueue.x-k8s.io/v1beta1", "WorkloadPriorityClass", "urgent")
    synthesize(app)
    assert list(files(dist)) == ["02-classes.k8s.yaml", "gpu.k8s.yaml", "needs-crds/gpu.k8s.yaml"]
    assert kinds(dist / "02-classes.k8s.yaml") == list(classes)


def test_helm_values_of_one_app_lie_in_a_folder_below_its_manifests(app, dist):
    HelmValues(Chart(app, "gpu"), "values", release="gpu-operator", values={"driver": {"enabled": False}})
    synthesize(app)
    assert files(dist) == {"helm-values/gpu-operator.values.yaml": HEADER.encode() + b"driver:\n  enabled: false\n"}


def test_helm_values_of_several_apps_lie_beside_them_by_cluster(make_app, dist):
    east, west = make_app("east"), make_app("west")
    HelmValues(west, "values", release="gpu-operator", values={})
    synthesize(east, west)
    assert list(files(dist)) == [
        "east/gpu.k8s.yaml",
        "helm-values/west/gpu-operator.values.yaml",
        "west/gpu.k8s.yaml",
    ]


def test_two_values_files_of_one_release_are_refused(app):
    for id in ("a", "b"):
        HelmValues(app, id, release="gpu-operator", values={"from": id})
    (problem,) = problems_of(app)
    assert "gpu-operator" in problem
    assert problem.startswith("b: ")


def test_every_file_says_in_its_first_line_that_it_is_generated(make_app, dist):
    east, west = make_app("east"), make_app("west")
    crd(east.charts[0], "example.com")
    obj(east.charts[0], "example.com/v1", "Widget")
    GpuNamespace(west.charts[0], "namespace")
    HelmValues(west, "values", release="gpu-operator", values={})
    synthesize(east, west)
    written = files(dist)
    assert HEADER == "# Written by gpu_constructs: change the app, not this file.\n"
    assert len(written) == 6
    assert [name for name, text in written.items() if not text.startswith(HEADER.encode())] == []
    assert [name for name, text in written.items() if text.count(HEADER.encode()) != 1] == []


def test_a_chart_inside_a_chart_has_a_file_of_its_own(app, chart, dist):
    obj(chart, "v1", "ConfigMap", "outer")
    obj(Chart(chart, "inner"), "v1", "ConfigMap", "inner")
    synthesize(app)
    by_name = {yaml.safe_load(text)["metadata"]["name"]: name for name, text in files(dist).items()}
    assert by_name["outer"] == "gpu.k8s.yaml"
    assert by_name["inner"].startswith("gpu-inner-")


def test_an_outdir_given_relative_to_the_working_directory_is_written_there(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    app = App(outdir="out")
    obj(Chart(app, "gpu"), "v1", "ConfigMap")
    synthesize(app)
    assert list(files(tmp_path)) == ["out/gpu.k8s.yaml"]


def test_files_are_readable_by_everyone(make_app, dist):
    synthesize(make_app())
    assert (dist / "gpu.k8s.yaml").stat().st_mode & 0o777 == 0o644


def test_every_object_of_an_app_is_written_once(app, chart, dist):
    DevicePluginChart(app, "plugin")
    GpuWorkload(chart, "train", image="a:1", kind="Job", namespace="nvidia-gpu-operator")
    expected = [manifest for one in app.charts for manifest in Testing.synth(one)]
    synthesize(app)
    written = [m for file in dist.rglob("*.yaml") for m in yaml.safe_load_all(file.read_text())]
    by_identity = {(m["kind"], m["metadata"]["name"]): m for m in written}
    assert len(by_identity) == len(written) == len(expected)
    assert all(by_identity[m["kind"], m["metadata"]["name"]] == m for m in expected)


def test_two_runs_give_the_same_bytes(dist):
    def run():
        app = App(outdir=str(dist))
        DevicePluginChart(app, "plugin")
        HelmValues(app, "values", release="gpu-operator", values={"b": 1, "a": 2})
        synthesize(app)
        return files(dist)

    assert run() == run()


# What is left of earlier runs.


def test_a_renamed_chart_leaves_no_file_of_its_old_name(make_app, dist):
    synthesize(make_app("", "old", "same"))
    synthesize(make_app("", "new", "same"))
    assert list(files(dist)) == ["new.k8s.yaml", "same.k8s.yaml"]


def test_a_cluster_that_is_gone_leaves_no_folder(make_app, dist):
    gone = make_app("gone")
    HelmValues(gone, "values", release="gpu-operator", values={})
    obj(gone.charts[0], "example.com/v1", "Widget")
    synthesize(make_app("east"), make_app("west"), gone)
    assert "helm-values/gone/gpu-operator.values.yaml" in files(dist)
    synthesize(make_app("east"), make_app("west"))
    assert list(files(dist)) == ["east/gpu.k8s.yaml", "west/gpu.k8s.yaml"]


def test_an_emptied_folder_is_removed(app, chart, dist, make_app):
    obj(chart, "example.com/v1", "Widget")
    HelmValues(app, "values", release="gpu-operator", values={})
    synthesize(app)
    assert {path.name for path in dist.iterdir()} == {"needs-crds", "helm-values"}
    synthesize(make_app())
    assert list(files(dist)) == ["gpu.k8s.yaml"]


def test_an_app_without_objects_leaves_an_empty_dist(make_app, dist):
    synthesize(make_app())
    synthesize(App(outdir=str(dist)))
    assert files(dist) == {}


def test_files_that_were_not_generated_are_left_alone(make_app, dist):
    foreign = ["README.md", "kustomization.yaml", "needs-crds/notes.txt", "extra/own.yaml", "helm-values/own.yaml"]
    for name in foreign:
        path = dist / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    synthesize(make_app("", "old"))
    synthesize(make_app("", "new"))
    assert sorted(files(dist)) == sorted([*foreign, "new.k8s.yaml"])
    assert (dist / "README.md").read_text() == "mine"


OUTDIR = ["east/own.k8s.yaml", "east/needs-crds/own.k8s.yaml"]
BESIDE = [
    "own.k8s.yaml",
    "gone/own.k8s.yaml",
    "gone/needs-crds/own.k8s.yaml",
    "helm-values/gone/own.values.yaml",
    "helm-values/own.values.yaml",
]
DEEPER = ["gone/charts/own/own.k8s.yaml", "east/deep/own.k8s.yaml", "east/own.values.yaml", "gone/own.yaml"]


def plant(dist, name, text):
    (dist / name).parent.mkdir(parents=True, exist_ok=True)
    (dist / name).write_bytes(text)


FOREIGN = [
    b"kind: Service\n",
    b"",
    b"# mine\n" + HEADER.encode(),
    b" " + HEADER.encode(),
    b"\xff\xfe\n",
    HEADER[:-1].encode(),
]


@pytest.mark.parametrize("name", [*OUTDIR, *BESIDE])
@pytest.mark.parametrize("rest", [b"", b"kind: Service\n", b"\xff\xfe\n"])
def test_a_file_with_the_first_line_of_generated_ones_is_removed(make_app, dist, name, rest):
    plant(dist, name, HEADER.encode() + rest)
    synthesize(make_app("east"), make_app("west"))
    assert list(files(dist)) == ["east/gpu.k8s.yaml", "west/gpu.k8s.yaml"]


@pytest.mark.parametrize("name", [*OUTDIR, *BESIDE])
@pytest.mark.parametrize("text", FOREIGN)
def test_a_file_without_that_line_stays(make_app, dist, name, text):
    plant(dist, name, text)
    synthesize(make_app("east"), make_app("west"))
    assert sorted(files(dist)) == sorted(["east/gpu.k8s.yaml", "west/gpu.k8s.yaml", name])
    assert files(dist)[name] == text


@pytest.mark.parametrize("name", DEEPER)
def test_in_no_other_place_and_of_no_other_name_is_a_file_looked_at(make_app, dist, name):
    plant(dist, name, HEADER.encode())
    synthesize(make_app("east"), make_app("west"))
    assert sorted(files(dist)) == sorted(["east/gpu.k8s.yaml", "west/gpu.k8s.yaml", name])


def test_beside_the_folders_of_the_apps_a_folder_named_like_a_file_stays(make_app, dist):
    plant(dist, "own.k8s.yaml/notes.txt", b"mine")
    synthesize(make_app("east"), make_app("west"))
    assert sorted(files(dist)) == ["east/gpu.k8s.yaml", "own.k8s.yaml/notes.txt", "west/gpu.k8s.yaml"]


@pytest.mark.parametrize(("text", "stays"), [(HEADER.encode(), False), (b"driver: {}\n", True)])
def test_helm_values_of_one_app_are_removed_only_when_they_were_generated(make_app, dist, text, stays):
    plant(dist, "helm-values/gpu-operator.values.yaml", text)
    synthesize(make_app())
    assert ("helm-values/gpu-operator.values.yaml" in files(dist)) is stays


def test_one_app_alone_looks_at_no_folder_but_its_own(make_app, dist):
    for name in ("west/own.k8s.yaml", "helm-values/west/own.values.yaml", "needs-crds/deep/own.k8s.yaml"):
        plant(dist, name, HEADER.encode())
    synthesize(make_app())
    assert sorted(files(dist)) == [
        "gpu.k8s.yaml",
        "helm-values/west/own.values.yaml",
        "needs-crds/deep/own.k8s.yaml",
        "west/own.k8s.yaml",
    ]


def test_helm_values_that_are_written_replace_what_lies_there_under_their_name(app, chart, dist):
    plant(dist, "helm-values/gpu-operator.values.yaml", b"driver: {}\n")
    HelmValues(chart, "values", release="gpu-operator", values={"a": 1})
    synthesize(app)
    assert files(dist)["helm-values/gpu-operator.values.yaml"] == HEADER.encode() + b"a: 1\n"


def test_a_folder_with_a_file_of_the_users_stays(make_app, dist):
    gone = make_app("gone")
    synthesize(make_app("east"), make_app("west"), gone)
    (dist / "gone" / "notes.txt").write_text("mine")
    synthesize(make_app("east"), make_app("west"))
    assert list(files(dist)) == ["east/gpu.k8s.yaml", "gone/notes.txt", "west/gpu.k8s.yaml"]


def test_one_app_alone_leaves_its_neighbours_alone(make_app, dist):
    synthesize(make_app("east"), make_app("west"))
    synthesize(make_app("east", "renamed"))
    assert list(files(dist)) == ["east/renamed.k8s.yaml", "west/gpu.k8s.yaml"]


# What is wrong is said, all of it, and nothing is written.


def test_all_problems_of_all_apps_are_reported_at_once(make_app):
    east, west, north = make_app("east"), make_app("west"), make_app("north")
    GpuWorkload(Chart(east, "train", namespace="team"), "train", image="a:1", kind="Job")
    west.charts[0].node.add_validation(Complaints("one thing is wrong", "another is [too]"))
    ApiObject(Chart(north, "raw"), "raw", api_version="v1", kind="Secret", metadata=ApiObjectMetadata(namespace="b"))
    problems = problems_of(east, west, north)
    assert [problem.split(" ")[0:3] for problem in problems] == [
        ["east:", "train/train:", "namespace"],
        ["east:", "train/train:", "runtime_class"],
        ["east:", "train/train:", "selects"],
        ["west:", "gpu:", "one"],
        ["west:", "gpu:", "another"],
        ["north:", "raw/raw:", "namespace"],
    ]
    assert problems[3:5] == ["west: gpu: one thing is wrong", "west: gpu: another is [too]"]


def test_validations_of_the_user_are_reported_with_the_path_they_stand_at(app, chart):
    namespace = GpuNamespace(chart, "namespace")
    namespace.node.add_validation(Complaints("names must be blue"))
    Chart(app, "other").node.add_validation(Complaints("no: charts, today"))
    assert sorted(problems_of(app)) == ["gpu/namespace: names must be blue", "other: no: charts, today"]


def test_a_validation_of_the_app_itself_is_reported(app, chart):
    app.node.add_validation(Complaints("too many cooks"))
    (problem,) = problems_of(app)
    assert problem.endswith("too many cooks")
    assert not problem.startswith(":")


def test_a_validation_of_an_app_without_charts_is_reported(app):
    External(app, "existing").node.add_validation(Complaints("nothing here"))
    assert problems_of(app) == ["existing: nothing here"]


def test_a_validation_that_has_nothing_to_say_lets_the_files_be_written(app, chart, dist):
    obj(chart, "v1", "ConfigMap")
    chart.node.add_validation(Complaints())
    synthesize(app)
    assert list(files(dist)) == ["gpu.k8s.yaml"]


def test_text_that_no_file_can_hold_is_one_line(app, chart, dist):
    obj(chart, "v1", "ConfigMap", "a").add_json_patch(JsonPatch.add("/data", {"a": "\ud800"}))
    (problem,) = problems_of(app)
    assert problem == "gpu.k8s.yaml: objects must hold text that UTF-8 can write; got '\\ud800'; leave it out"
    assert not dist.exists()


@pytest.mark.parametrize("patch", [JsonPatch.replace("/spec/a/b", 1), JsonPatch.test("/metadata/name", "other")])
def test_a_patch_that_does_not_apply_is_one_line_with_the_path_of_its_object(app, chart, patch):
    GpuNamespace(chart, "namespace").api_object.add_json_patch(patch)
    (problem,) = problems_of(app)
    assert problem.startswith("gpu/namespace: a JSON patch does not apply: ")
    assert problem.isprintable()
    assert "Error: " not in problem
    assert "TypeCannot" not in problem


def test_a_patch_that_does_not_apply_to_a_foreign_object_is_one_line_with_its_path(app, chart):
    made = ApiObject(chart, "raw", api_version="v1", kind="ConfigMap")
    made.add_json_patch(JsonPatch.replace("/spec/a/b", 1))
    (problem,) = problems_of(app)
    assert "gpu/raw" in problem
    assert problem.isprintable()
    assert "TypeCannot" not in problem


def test_an_error_of_ours_in_a_body_rendered_late_is_a_problem_like_any_other(app, chart):
    Manifest(chart, "x", Lazily(GpuConstructsError("gpus must be at least 1, got 0", path="gpu/x")))
    assert problems_of(app) == ["gpu/x: gpus must be at least 1, got 0"]


@pytest.mark.parametrize("failure", [ZeroDivisionError("boom"), KeyError("boom"), RuntimeError("boom")], ids=repr)
def test_an_exception_of_the_users_own_code_surfaces_as_itself(app, chart, dist, failure):
    Manifest(chart, "x", Lazily(failure))
    with pytest.raises(type(failure)) as raised:
        synthesize(app)
    assert raised.value is failure
    assert files(dist) == {}


def test_an_exception_in_a_validation_of_the_users_surfaces_as_itself(app, chart):
    class Broken(Complaints):
        def validate(self):
            raise ZeroDivisionError("boom")

    chart.node.add_validation(Broken())
    with pytest.raises(ZeroDivisionError, match=r"^boom$"):
        synthesize(app)


def test_one_cluster_with_a_problem_keeps_every_cluster_as_it_was(make_app, dist):
    synthesize(make_app("east", "old"), make_app("west", "old"))
    before = files(dist)
    east, west = make_app("east", "new"), make_app("west", "new")
    obj(Chart(west, "bad", namespace="nowhere"), "v1", "ConfigMap")
    problems_of(east, west)
    assert files(dist) == before


def test_no_app_at_all_is_refused():
    assert problems_of() == ["synth must be given at least one App"]


def test_outdirs_that_do_not_lie_side_by_side_are_refused(tmp_path):
    apps = [App(outdir=str(tmp_path / outdir)) for outdir in ("a/east", "b/west")]
    assert problems_of(*apps) == [
        f"the outdirs of several Apps must lie side by side; got {tmp_path}/a/east, {tmp_path}/b/west"
    ]


def test_an_outdir_inside_another_is_refused(tmp_path):
    (problem,) = problems_of(*(App(outdir=str(tmp_path / outdir)) for outdir in ("dist", "dist/west")))
    assert problem.startswith("the outdirs of several Apps must lie side by side")


@pytest.mark.parametrize("spelling", ["dist", "./dist", "dist/../dist"])
def test_two_apps_for_one_outdir_are_refused(monkeypatch, tmp_path, spelling):
    monkeypatch.chdir(tmp_path)
    assert problems_of(App(outdir="dist"), App(outdir=spelling)) == [
        "every App needs an outdir of its own; got the same one twice"
    ]


# When the disk refuses.


@pytest.mark.parametrize("blocked", ["needs-crds", "helm-values"])
def test_a_file_where_a_folder_is_needed_leaves_everything_as_it_was(app, chart, dist, make_app, blocked):
    synthesize(make_app("", "old"))
    (dist / blocked).write_text("mine")
    before = files(dist)
    obj(chart, "v1", "ConfigMap")
    obj(chart, "example.com/v1", "Widget")
    HelmValues(app, "values", release="gpu-operator", values={})
    with pytest.raises((OSError, SynthesisError)):
        synthesize(app)
    assert files(dist) == before


def test_a_folder_where_a_file_is_needed_leaves_everything_as_it_was(app, chart, dist, make_app):
    synthesize(make_app("", "a-first", "gpu"))
    (dist / "gpu.k8s.yaml").unlink()
    (dist / "gpu.k8s.yaml").mkdir()
    before = files(dist)
    obj(Chart(app, "a-first"), "v1", "ConfigMap", "changed")
    obj(chart, "v1", "ConfigMap", "new")
    with pytest.raises((OSError, SynthesisError)):
        synthesize(app)
    assert files(dist) == before


def test_a_write_that_fails_half_way_leaves_everything_as_it_was(make_app, dist, monkeypatch):
    synthesize(make_app("", "a-first", "b-second"))
    before = files(dist)
    written = []

    def full_disk(path, mode):
        written.append(path)
        if len(written) == 2:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "chmod", full_disk)
    with pytest.raises((OSError, SynthesisError)):
        synthesize(make_app("", "c-third", "d-fourth"))
    assert len(written) == 2
    assert files(dist) == before


# Some charts are rendered here, some by cdk8s: nobody can tell which.


class Reversed(Chart):
    """A chart that changes what it holds when it is rendered."""

    def to_json(self):
        made = super().to_json()
        return [*made[::-1], {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "added"}}]


class Renamed(ApiObject):
    """An object that is not ours and changes itself when it is rendered."""

    def to_json(self):
        made = super().to_json()
        return {**made, "metadata": {"name": f"{made['metadata']['name']}-renamed"}}


def raw(scope, name="raw", **more):
    return ApiObject(scope, f"raw-{name}", api_version="v1", kind="Secret", metadata={"name": name}, **more)


def maps(scope, *names):
    return [obj(scope, "v1", "ConfigMap", name, data={"name": name}) for name in names]


def one_chart_of_ours(app):
    maps(Chart(app, "gpu"), "b", "a", "c")


def several_charts_of_ours(app):
    for name, count in (("big", 4), ("small", 1), ("medium", 2)):
        maps(Chart(app, name), *(f"{name}-{number}" for number in range(count)))


def a_chart_of_ours_beside_a_foreign_one(app):
    maps(Chart(app, "ours"), "b", "a")
    raw(Chart(app, "theirs"))


def a_foreign_object_among_ours(app):
    chart = Chart(app, "mixed")
    maps(chart, "first")
    raw(chart)
    maps(chart, "last")
    maps(Chart(app, "ours"), "b", "a")


def a_foreign_object_that_renders_itself(app):
    chart = Chart(app, "mixed")
    maps(chart, "first")
    Renamed(chart, "own", api_version="v1", kind="Secret", metadata={"name": "own"})
    maps(Chart(app, "ours"), "b", "a")


def a_foreign_object_deep_below_a_construct(app):
    chart = Chart(app, "mixed")
    maps(chart, "first")
    raw(Construct(Construct(chart, "outer"), "inner"))
    maps(chart, "last")
    maps(Chart(app, "ours"), "b", "a")


def objects_that_come_from_a_file(app):
    file = Path(app.outdir).with_suffix(".yaml")
    file.write_text(
        "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: y}\n"
    )
    chart = Chart(app, "mixed")
    maps(chart, "first")
    Include(chart, "file", url=str(file))
    maps(chart, "last")
    maps(Chart(app, "ours"), "b", "a")


def charts_inside_charts(app):
    outer = Chart(app, "outer")
    maps(outer, "a")
    inner = Chart(Construct(outer, "between"), "inner")
    maps(inner, "b", "c")
    maps(Chart(inner, "innermost"), "d")
    maps(outer, "e")
    maps(Chart(app, "other"), "f", "g")


def a_foreign_object_in_the_inner_chart_alone(app):
    outer = Chart(app, "outer")
    maps(outer, "a")
    raw(Chart(outer, "inner"))
    maps(outer, "b")
    maps(Chart(app, "other"), "f", "g")


def a_foreign_object_in_the_outer_chart_alone(app):
    outer = Chart(app, "outer")
    maps(Chart(outer, "inner"), "a", "b")
    raw(outer)
    maps(Chart(app, "other"), "f", "g")


def charts_that_depend_on_charts(app):
    first, second, third = (Chart(app, name) for name in ("first", "second", "third"))
    for chart in (first, second, third):
        obj(chart, "v1", "ConfigMap", f"of-{chart.node.id}")
    first.add_dependency(second)
    second.add_dependency(third)


def objects_that_depend_on_objects(app):
    chart = Chart(app, "gpu")
    a, b, c = maps(chart, "a", "b", "c")
    a.add_dependency(c)
    b.add_dependency(a)
    maps(Chart(app, "small"), "d")


def objects_that_depend_on_objects_of_other_charts(app):
    first, second = Chart(app, "first"), Chart(app, "second")
    a, b, c = maps(first, "a", "b", "c")
    d, e, f = maps(second, "d", "e", "f")
    a.add_dependency(f)
    b.add_dependency(c)
    d.add_dependency(e)
    maps(Chart(app, "small"), "g")


def constructs_that_depend_on_constructs(app):
    chart = Chart(app, "gpu")
    first, second = Construct(chart, "first"), Construct(chart, "second")
    maps(first, "a", "b")
    maps(second, "c", "d")
    first.node.add_dependency(second)
    maps(Chart(app, "small"), "e")


def a_chart_that_depends_on_an_object(app):
    first, second = Chart(app, "first"), Chart(app, "second")
    maps(first, "a", "b")
    (c, _) = maps(second, "c", "d")
    first.node.add_dependency(c)
    maps(Chart(app, "small"), "e")


def a_chart_that_renders_itself(app):
    maps(Reversed(app, "own"), "a", "b", "c")
    maps(Chart(app, "small"), "d")


def a_chart_that_renders_itself_and_is_the_smallest(app):
    maps(Reversed(app, "own"), "a")
    maps(Chart(app, "big"), "b", "c", "d")


def empty_charts_beside_others(app):
    Chart(app, "empty")
    maps(Chart(app, "ours"), "a", "b")
    Construct(Chart(app, "hollow"), "nothing")
    raw(Chart(app, "theirs"))


def a_namespace_and_labels_of_the_chart(app):
    chart = Chart(app, "gpu", namespace="team", labels={"of": "the chart"})
    maps(chart, "b", "a")
    obj(chart, "v1", "Secret", "patched").add_json_patch(JsonPatch.add("/data", {"a": "b"}))
    maps(Chart(app, "small"), "c")


DASHES = "a\n---\nb\n  ---\n---\n"
TEXTS = [
    DASHES,
    "---\n",
    "---",
    "\n---\n\n",
    "---\na: b\n---\n",
    "a\r\n---\r\n",
    f"{'x ' * 200}\n---\n",
    "- ---\n",
    "...\n---\n",
]


def texts_with_lines_that_part_documents(app):
    chart = Chart(app, "gpu")
    for number, text in enumerate(TEXTS):
        obj(chart, "v1", "ConfigMap", f"t{number}", data={"text": text, text: "key", "list": [text, [text]]})
    small = Chart(app, "small")
    obj(small, "v1", "ConfigMap", "x", metadata_like={"---": {"---": "---\n---\n"}})


def values_that_change_on_the_bridge(app):
    odd = {"one": 1.0, "big": 2**53, "half": 0.5, "no": False, "none": None, "list": [None, [], {}, ()], "pair": (1, 2)}
    obj(Chart(app, "gpu"), "v1", "ConfigMap", "a", spec=odd, text="\u2028é\U0001f600\ttab ", empty={}, octal="0777")
    obj(Chart(app, "small"), "v1", "ConfigMap", "b")


WAYS = [
    one_chart_of_ours,
    several_charts_of_ours,
    a_chart_of_ours_beside_a_foreign_one,
    a_foreign_object_among_ours,
    a_foreign_object_that_renders_itself,
    a_foreign_object_deep_below_a_construct,
    objects_that_come_from_a_file,
    charts_inside_charts,
    a_foreign_object_in_the_inner_chart_alone,
    a_foreign_object_in_the_outer_chart_alone,
    charts_that_depend_on_charts,
    objects_that_depend_on_objects,
    objects_that_depend_on_objects_of_other_charts,
    constructs_that_depend_on_constructs,
    a_chart_that_depends_on_an_object,
    a_chart_that_renders_itself,
    a_chart_that_renders_itself_and_is_the_smallest,
    empty_charts_beside_others,
    a_namespace_and_labels_of_the_chart,
    texts_with_lines_that_part_documents,
    values_that_change_on_the_bridge,
]


def written(build, folder, write):
    app = App(outdir=str(folder))
    build(app)
    write(app)
    return {name: documents(text.decode().removeprefix(HEADER)) for name, text in files(folder).items()}


def documents(text):
    """Give what a file says, the order of keys too."""
    return [json.dumps(document) for document in yaml.safe_load_all(text)]


def assert_written_as_by_cdk8s(build, tmp_path):
    theirs = written(build, tmp_path / "theirs", lambda app: app.synth())
    # cdk8s also writes a file for a chart without objects, and numbers the files of charts that wait for others.
    theirs = {re.sub(r"^[0-9]{4}-", "", name): said for name, said in theirs.items() if said}
    assert written(build, tmp_path / "ours", synthesize) == theirs
    assert theirs


@pytest.mark.parametrize("build", WAYS, ids=lambda build: build.__name__)
def test_the_files_say_what_cdk8s_writes(build, tmp_path):
    # The namespace of one of them is declared, which writes nothing.
    def with_namespace(app):
        build(app)
        External(app, "existing", namespaces=["team"])

    assert_written_as_by_cdk8s(with_namespace, tmp_path)


@settings(max_examples=25)
@given(data=st.data())
def test_any_tree_says_what_cdk8s_writes(data, tmp_path_factory):
    steps = data.draw(
        st.lists(
            st.tuples(
                st.sampled_from(["chart", "construct", "ours", "ours", "ours", "theirs"]),
                st.integers(0, 9),
                st.none() | st.integers(0, 9),
            ),
            min_size=1,
            max_size=9,
        )
    )

    def build(app):
        scopes, made = [Chart(app, "gpu")], []
        maps(scopes[0], "first")
        for number, (what, where, after) in enumerate(steps):
            scope = scopes[where % len(scopes)]
            if what == "chart":
                # Every other one at the top.
                scopes.append(Chart(app if where % 2 else scope, f"chart{number}"))
            elif what == "construct":
                scopes.append(Construct(scope, f"construct{number}"))
            else:
                one = maps(scope, f"m{number}")[0] if what == "ours" else raw(scope, f"r{number}")
                if after is not None and made:
                    # Always on an earlier one of the same chart, so that there is no circle.
                    earlier = [each for each in made if Chart.of(each) is Chart.of(one)]
                    if earlier:
                        earlier[after % len(earlier)].node.add_dependency(one)
                made.append(one)

    assert_written_as_by_cdk8s(build, tmp_path_factory.mktemp("tree"))


def test_of_many_files_each_gets_its_own_documents_in_their_order(app, dist):
    for number in range(30):
        chart = Chart(app, f"c{number}")
        GpuNamespace(chart, "namespace", name=f"n{number}")
        crd(chart, f"g{number}.example.com")
        obj(chart, f"g{number}.example.com/v1", "Widget", f"w{number}", spec={"text": DASHES})
        for letter in "ba":
            obj(chart, "v1", "ConfigMap", f"{letter}{number}", namespace=f"n{number}", data={"text": DASHES})
    synthesize(app)

    def names(file):
        return [manifest["metadata"]["name"] for manifest in yaml.safe_load_all((dist / file).read_text())]

    assert names("00-namespaces.k8s.yaml") == [f"n{number}" for number in range(30)]
    assert names("01-crds.k8s.yaml") == [f"widgets.g{number}.example.com" for number in range(30)]
    for number in range(30):
        assert names(f"c{number}.k8s.yaml") == [f"b{number}", f"a{number}"]
        assert names(f"needs-crds/c{number}.k8s.yaml") == [f"w{number}"]
    assert len(files(dist)) == 62
    for manifest in yaml.safe_load_all((dist / "c7.k8s.yaml").read_text()):
        assert manifest["data"] == {"text": DASHES}


@pytest.mark.parametrize("place", ["app", "small", "big", "big/thing", "big/ConfigMap-b", "empty"])
def test_a_validation_is_reported_wherever_it_stands_and_whoever_renders_the_chart(app, place):
    maps(Chart(app, "small"), "a")
    big = Chart(app, "big")
    Construct(big, "thing")
    maps(big, "b", "c", "d")
    Chart(Chart(app, "outer"), "empty")
    at = {construct.node.path: construct for construct in app.node.find_all()}
    at |= {"app": app, "empty": at["outer/empty"]}
    at[place].node.add_validation(Complaints("this is wrong"))
    (problem,) = problems_of(app)
    assert problem == f"{at[place].node.path or 'app'}: this is wrong"


def test_an_app_of_empty_charts_is_validated(app):
    Chart(app, "empty").node.add_validation(Complaints("nothing here"))
    assert problems_of(app) == ["empty: nothing here"]


@pytest.mark.parametrize("name", ["small", "big"])
def test_an_exception_of_a_late_body_surfaces_as_itself_whoever_renders_the_chart(app, dist, name):
    small, big = Chart(app, "small"), Chart(app, "big")
    maps(big, "b", "c", "d")
    failure = ZeroDivisionError("boom")
    Manifest(small if name == "small" else big, "x", Lazily(failure))
    with pytest.raises(ZeroDivisionError) as raised:
        synthesize(app)
    assert raised.value is failure
    assert files(dist) == {}


def test_an_error_of_ours_in_a_chart_that_cdk8s_does_not_render_is_a_problem_like_any_other(app):
    maps(Chart(app, "small"), "a")
    big = Chart(app, "big")
    maps(big, "b", "c", "d")
    Manifest(big, "x", Lazily(GpuConstructsError("gpus must be at least 1, got 0", path="big/x")))
    assert problems_of(app) == ["big/x: gpus must be at least 1, got 0"]


def test_dependencies_in_a_circle_are_a_problem_whoever_renders_the_chart(app):
    maps(Chart(app, "small"), "a")
    b, c, _ = maps(Chart(app, "big"), "b", "c", "d")
    b.add_dependency(c)
    c.add_dependency(b)
    (problem,) = problems_of(app)
    assert "cycle" in problem.lower()
    assert problem.isprintable()


# Other ways to render.


def test_the_same_app_renders_through_cdk8s_itself(tmp_path):
    app = App(outdir=str(tmp_path))
    chart = Chart(app, "train", namespace="team")
    GpuWorkload(chart, "train", image="a:1", kind="Job")
    DevicePluginChart(app, "plugin")
    HelmValues(app, "values", release="gpu-operator", values={})
    External(app, "existing", namespaces=["team"])
    app.synth()
    assert {path.name for path in tmp_path.iterdir()} == {"train.k8s.yaml", "plugin.k8s.yaml"}
    assert (tmp_path / "train.k8s.yaml").read_text() == Yaml.stringify(*Testing.synth(chart))


def test_no_check_of_the_whole_app_fires_when_one_chart_is_rendered(app):
    chart = Chart(app, "train", namespace="nowhere")
    GpuWorkload(chart, "train", image="a:1", kind="Job", gpus=2)
    assert [manifest["kind"] for manifest in Testing.synth(chart)] == ["Job"]
    assert len(problems_of(app)) == 3


# What a user sees.


def test_synth_prints_every_problem_and_exits_with_status_1(app, chart, capsys):
    chart.node.add_validation(Complaints("first", "second"))
    with pytest.raises(SystemExit) as exit_:
        synth(app)
    assert exit_.value.code == 1
    assert exit_.value.__suppress_context__
    printed = capsys.readouterr()
    assert printed.err == "2 problems found, nothing was written\n  gpu: first\n  gpu: second\n"
    assert printed.out == ""


HEAD = """
from cdk8s import App, Chart, JsonPatch
from gpu_constructs import *
east, west = App(outdir="dist/east"), App(outdir="dist/west")
chart = Chart(east, "gpu")
"""


@pytest.fixture
def run_app(tmp_path):
    """Run an app.py in a process of its own."""

    def run(body):
        (tmp_path / "app.py").write_text(HEAD + body)
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(
            [sys.executable, "app.py"],
            cwd=tmp_path,
            env={**os.environ, "PATH": path, "PYTHONPATH": str(Path(gpu_constructs.__file__).parents[1])},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_an_app_is_written_with_one_line_and_stays_as_it_was_when_it_goes_wrong(run_app, dist):
    done = run_app('GpuNamespace(chart, "namespace")\nsynth(east, west)\n')
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "wrote 1 file to dist/\n")
    before = files(dist)
    assert list(before) == ["east/00-namespaces.k8s.yaml"]

    done = run_app(
        'GpuNamespace(chart, "namespace", name="other")\n'
        'GpuWorkload(chart, "train", image="a:1", kind="Job", platform=Kubernetes(), namespace="nowhere")\n'
        'DevicePluginChart(west, "plugin", sharing=Sharing.time_slicing(replicas=4))\n'
        'GpuWorkload(Chart(west, "gpu"), "train", image="a:1", kind="Job", gpus=2)\n'
        "synth(east, west)\n"
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        "2 problems found, nothing was written",
        "  east: gpu/train: namespace 'nowhere' is not in this app; add GpuNamespace(chart, 'namespace', "
        "name='nowhere') or declare it with External(app, 'existing', namespaces=['nowhere'])",
        "  west: gpu/train: asks for 2 x nvidia.com/gpu but plugin shares it with fail_requests_greater_than_one: two "
        "slots are not two GPUs; ask for 1, or pass Sharing.time_slicing(...,",
        "    fail_requests_greater_than_one=False) [R07]",
    ]
    assert files(dist) == before


def test_an_app_whose_patch_does_not_apply_ends_without_a_traceback_or_a_word_of_jsii(run_app, dist):
    done = run_app(
        'GpuNamespace(chart, "namespace").api_object.add_json_patch(JsonPatch.replace("/a/b", 1))\nsynth(east)\n'
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 2
    assert "Traceback" not in done.stderr
    assert "jsii" not in done.stderr.lower()
    assert not dist.exists()


def test_an_app_with_a_mistake_ends_at_the_users_line(run_app, dist):
    done = run_app('GpuNamespace(chart, "namespace", pod_security="privleged")\nsynth(east)\n')
    assert (done.returncode, done.stdout) == (1, "")
    lines = done.stderr.splitlines()
    assert '    GpuNamespace(chart, "namespace", pod_security="privleged")' in lines
    assert lines[-1].endswith("got 'privleged' (did you mean 'privileged'?)")
    assert len([line for line in lines if line.startswith("  File ")]) == 2
    assert "jsii" not in done.stderr.lower()
    assert not dist.exists()


def test_outdirs_right_in_the_project_leave_the_folders_beside_them_alone(make_app, dist, monkeypatch):
    plant(dist, "other-app/web.k8s.yaml", b"kind: Service\n")
    monkeypatch.chdir(dist)
    synthesize(make_app("east"), make_app("west"))
    assert "other-app/web.k8s.yaml" in files(dist)


def test_outdirs_right_in_the_project_lose_a_cluster_that_is_gone_all_the_same(make_app, dist, monkeypatch):
    dist.mkdir()
    monkeypatch.chdir(dist)
    synthesize(make_app("east"), make_app("west"), make_app("gone"))
    synthesize(make_app("east"), make_app("west"))
    assert list(files(dist)) == ["east/gpu.k8s.yaml", "west/gpu.k8s.yaml"]


@pytest.mark.parametrize("name", ["00-namespaces", "01-crds", "02-classes"])
def test_a_chart_that_bears_the_name_of_a_shared_file_is_refused(app, name):
    obj(Chart(app, name), "v1", "ConfigMap", namespace="default")
    with pytest.raises(SynthesisError, match=f"{name}: id must not be '{name}', the file that"):
        synthesize(app)


class Wants(Construct):
    """A construct that works only where somebody labels the nodes."""

    def __init__(self, scope, id):
        super().__init__(scope, id)
        self.provides = Provided(wants_node_labels={"example.com/label=false": "it fails"})


def test_what_may_be_right_all_the_same_is_a_warning_with_its_path_and_everything_is_written(app, chart, tmp_path):
    obj(chart, "v1", "ConfigMap", data={})
    Wants(chart, "needy")
    message = (
        f"^{chart.node.path}/needy: wants the node label example.com/label=false, which nothing in this app sets: it "
        "fails$"
    )
    with pytest.warns(GpuConstructsWarning, match=message) as warned:
        synthesize(app)
    assert [warning.filename for warning in warned] == [__file__]
    assert list(Path(app.outdir).glob("*.k8s.yaml"))


def test_a_problem_stands_alone_without_the_warnings(app, chart, recwarn):
    Wants(chart, "needy")
    GpuWorkload(chart, "train", image="a:1")
    with pytest.raises(SynthesisError):
        synthesize(app)
    assert not recwarn.list


def test_what_cdk8s_was_told_to_do_with_metadata_is_left_to_it(tmp_path):
    @jsii.implements(IResolver)
    class Shout:
        def resolve(self, context):
            if context.value == "quiet":
                context.replace_value("LOUD")

    def written(outdir, **given):
        app = App(outdir=str(outdir), **given)
        for name in ("one", "two"):
            chart = Chart(app, name)
            metadata = {"name": name, "labels": {"says": "quiet"}}
            Manifest(chart, "x", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        synthesize(app)
        return [(outdir / f"{name}.k8s.yaml").read_text() for name in ("one", "two")]

    assert all("says: quiet" in text for text in written(tmp_path / "plain"))
    assert all("says: LOUD" in text for text in written(tmp_path / "resolved", resolvers=[Shout()]))


def test_an_app_has_as_many_resolvers_of_itself_as_we_think():
    assert len(App().resolvers) == synthesis._RESOLVERS


def plain_manifest(chart: Chart, name: str) -> Manifest:
    return Manifest(chart, name, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {}})


def test_an_app_of_one_chart_is_rendered_in_the_order_of_its_dependencies(tmp_path: Path) -> None:
    app = App(outdir=str(tmp_path))
    chart = Chart(app, "one")
    first, second, third = (plain_manifest(chart, name) for name in ("a", "b", "c"))
    first.add_dependency(third)
    third.add_dependency(second)
    expected = Yaml.stringify(*Testing.synth(chart))
    synthesize(app)
    assert (tmp_path / "one.k8s.yaml").read_text().partition("\n")[2] == expected
    assert expected.index("name: b") < expected.index("name: c") < expected.index("name: a")


def test_validating_leaves_nothing_in_the_app(tmp_path: Path) -> None:
    app = App(outdir=str(tmp_path))
    plain_manifest(Chart(app, "one"), "a")
    synthesize(app)
    synthesize(app)
    assert [child.node.id for child in app.node.children] == ["one"]
    assert [path.name for path in tmp_path.iterdir()] == ["one.k8s.yaml"]


def test_what_only_cdk8s_can_write_keeps_its_place(tmp_path: Path) -> None:
    app = App(outdir=str(tmp_path))
    chart = Chart(app, "one")
    for name, text in (("a", "plain"), ("b", "bell\x07"), ("c", "plain"), ("d", " block\n")):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"text": text}}
        Manifest(chart, name, body)
    synthesize(app)
    assert (tmp_path / "one.k8s.yaml").read_text().partition("\n")[2] == Yaml.stringify(*Testing.synth(chart))
