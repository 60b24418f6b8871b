import json
import re
from pathlib import Path

import jsii
import pytest
import yaml
from cdk8s import ApiObject, ApiObjectMetadata, App, Chart, Include, IResolver, JsonPatch, Testing, Yaml
from constructs import Construct, IValidation
from hypothesis import given, settings
from hypothesis import strategies as st

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
    synthesize,
)
from gpu_constructs.facts.provided import Provided
from gpu_constructs.output import rendering
from gpu_constructs.output.layout import HEADER
from gpu_constructs.tree.manifest import Manifest
from refusals import problems
from tables import beside


@jsii.implements(IValidation)
class Complaints:
    def __init__(self, *messages):
        self.messages = messages

    def validate(self):
        return list(self.messages)


class Lazily:
    """A body that fails at rendering and not at creation."""

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
    """Return the bytes of every file below a folder, and None for every empty folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file() or not any(path.iterdir())
    }


def kinds(file):
    return [manifest["kind"] for manifest in yaml.safe_load_all(file.read_text())]


def problems_of(*apps):
    return problems(synthesize, *apps)


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


def test_each_object_goes_to_the_file_that_is_applied_in_time(app, dist, expected):
    for name in ("east", "west"):
        chart = Chart(app, name, namespace=name)
        obj(chart, "v1", "ConfigMap")
        GpuNamespace(chart, "namespace", name=name)
    crd(chart, "example.com")
    # Even if the app contains the definition, because kubectl looks up all kinds first.
    obj(chart, "example.com/v1", "Widget")
    obj(chart, "kueue.x-k8s.io/v1beta1", "WorkloadPriorityClass", "urgent")
    groups = {"Device": "resource", "Priority": "scheduling", "Runtime": "node", "Storage": "storage"}
    for kind, group in groups.items():
        obj(chart, f"{group}.k8s.io/v1", f"{kind}Class", kind.lower())
    synthesize(app)
    assert {name: kinds(dist / name) for name in files(dist)} == expected


def test_helm_values_of_several_apps_lie_beside_them_by_cluster(make_app, dist):
    east, west = make_app("east"), make_app("west")
    HelmValues(west, "values", release="gpu-operator", values={})
    synthesize(east, west)
    assert list(files(dist)) == ["east/gpu.k8s.yaml", "helm-values/west/gpu-operator.values.yaml", "west/gpu.k8s.yaml"]


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


def test_files_are_readable_by_everyone(make_app, dist):
    synthesize(make_app())
    assert (dist / "gpu.k8s.yaml").stat().st_mode & 0o777 == 0o644


# Files of earlier runs.


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


OUTDIR = ["east/own.k8s.yaml", "east/needs-crds/own.k8s.yaml"]
BESIDE = beside(__file__, "synthesis")["beside"]
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


@pytest.mark.parametrize("rest", [b"", b"kind: Service\n", b"\xff\xfe\n"])
def test_a_file_with_the_first_line_of_generated_ones_is_removed(make_app, dist, rest):
    for name in (*OUTDIR, *BESIDE):
        plant(dist, name, HEADER.encode() + rest)
    synthesize(make_app("east"), make_app("west"))
    assert list(files(dist)) == ["east/gpu.k8s.yaml", "west/gpu.k8s.yaml"]


@pytest.mark.parametrize("text", FOREIGN)
def test_a_file_without_that_line_stays(make_app, dist, text):
    for name in (*OUTDIR, *BESIDE):
        plant(dist, name, text)
    synthesize(make_app("east"), make_app("west"))
    left = files(dist)
    assert left.keys() == {"east/gpu.k8s.yaml", "west/gpu.k8s.yaml", *OUTDIR, *BESIDE}
    assert {left[name] for name in (*OUTDIR, *BESIDE)} == {text}


def test_in_no_other_place_and_of_no_other_name_is_a_file_looked_at(make_app, dist):
    for name in DEEPER:
        plant(dist, name, HEADER.encode())
    synthesize(make_app("east"), make_app("west"))
    assert files(dist).keys() == {"east/gpu.k8s.yaml", "west/gpu.k8s.yaml", *DEEPER}


def test_beside_the_folders_of_the_apps_a_folder_named_like_a_file_stays(make_app, dist):
    plant(dist, "own.k8s.yaml/notes.txt", b"mine")
    synthesize(make_app("east"), make_app("west"))
    assert sorted(files(dist)) == ["east/gpu.k8s.yaml", "own.k8s.yaml/notes.txt", "west/gpu.k8s.yaml"]


def test_one_app_alone_looks_at_no_folder_but_its_own(make_app, dist, expected):
    for name in ("west/own.k8s.yaml", "helm-values/west/own.values.yaml", "needs-crds/deep/own.k8s.yaml"):
        plant(dist, name, HEADER.encode())
    synthesize(make_app())
    assert sorted(files(dist)) == expected


def test_a_folder_with_a_file_of_the_users_stays(make_app, dist):
    gone = make_app("gone")
    synthesize(make_app("east"), make_app("west"), gone)
    (dist / "gone" / "notes.txt").write_text("mine")
    synthesize(make_app("east"), make_app("west"))
    assert list(files(dist)) == ["east/gpu.k8s.yaml", "gone/notes.txt", "west/gpu.k8s.yaml"]


# synth reports all problems and writes nothing.


def test_all_problems_of_all_apps_are_reported_at_once(make_app, expected):
    east, west, north = make_app("east"), make_app("west"), make_app("north")
    GpuWorkload(Chart(east, "train", namespace="team"), "train", image="a:1", kind="Job")
    west.charts[0].node.add_validation(Complaints("one thing is wrong", "another is [too]"))
    ApiObject(Chart(north, "raw"), "raw", api_version="v1", kind="Secret", metadata=ApiObjectMetadata(namespace="b"))
    problems = problems_of(east, west, north)
    assert [problem.split(" ")[0:3] for problem in problems] == expected
    assert problems[3:5] == ["west: gpu: one thing is wrong", "west: gpu: another is [too]"]


def test_a_validation_of_an_app_without_charts_is_reported(app):
    External(app, "existing").node.add_validation(Complaints("nothing here"))
    assert problems_of(app) == ["existing: nothing here"]


def test_text_that_utf_8_cannot_encode_is_one_line(app, chart, dist):
    obj(chart, "v1", "ConfigMap", "a").add_json_patch(JsonPatch.add("/data", {"a": "\ud800"}))
    (problem,) = problems_of(app)
    assert problem == "gpu.k8s.yaml: objects must contain text that UTF-8 can encode, got '\\ud800'. Leave it out"
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


def test_an_error_of_a_late_body_is_a_problem_like_any_other(app, chart):
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


@pytest.mark.parametrize("spelling", ["dist", "./dist", "dist/../dist"])
def test_two_apps_for_one_outdir_are_refused(monkeypatch, tmp_path, spelling):
    monkeypatch.chdir(tmp_path)
    assert problems_of(App(outdir="dist"), App(outdir=spelling)) == [
        "every App needs its own outdir, got the same one twice"
    ]


# Write errors.


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


# This library renders some charts and cdk8s others, with the same result.


class Reversed(Chart):
    """A chart that changes its objects at rendering."""

    def to_json(self):
        made = super().to_json()
        return [*made[::-1], {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "added"}}]


class Renamed(ApiObject):
    """An object of another library that changes itself at rendering."""

    def to_json(self):
        made = super().to_json()
        return {**made, "metadata": {"name": f"{made['metadata']['name']}-renamed"}}


def raw(scope, name="raw", **more):
    return ApiObject(scope, f"raw-{name}", api_version="v1", kind="Secret", metadata={"name": name}, **more)


def maps(scope, *names):
    return [obj(scope, "v1", "ConfigMap", name, data={"name": name}) for name in names]


def a_foreign_object_that_renders_itself(app):
    chart = Chart(app, "mixed")
    maps(chart, "first")
    Renamed(chart, "own", api_version="v1", kind="Secret", metadata={"name": "own"})
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


def charts_that_depend_on_charts(app):
    first, second, third = (Chart(app, name) for name in ("first", "second", "third"))
    for chart in (first, second, third):
        obj(chart, "v1", "ConfigMap", f"of-{chart.node.id}")
    first.add_dependency(second)
    second.add_dependency(third)


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
    obj(Chart(app, "gpu"), "v1", "ConfigMap", "a", spec=odd, text="\u2028é\U0001f600\ttab \x07", empty={}, octal="0777")
    obj(Chart(app, "small"), "v1", "ConfigMap", "b")


WAYS = [
    a_foreign_object_that_renders_itself,
    objects_that_come_from_a_file,
    charts_that_depend_on_charts,
    objects_that_depend_on_objects_of_other_charts,
    constructs_that_depend_on_constructs,
    a_chart_that_depends_on_an_object,
    a_chart_that_renders_itself,
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
    """Return the content of a file, with the order of keys."""
    return [json.dumps(document) for document in yaml.safe_load_all(text)]


def assert_written_as_by_cdk8s(build, tmp_path):
    theirs = written(build, tmp_path / "theirs", lambda app: app.synth())
    # cdk8s also writes a file for a chart without objects, and numbers the files of charts that wait for others.
    theirs = {re.sub(r"^[0-9]{4}-", "", name): said for name, said in theirs.items() if said}
    assert written(build, tmp_path / "ours", synthesize) == theirs
    assert theirs


@pytest.mark.parametrize("build", WAYS, ids=lambda build: build.__name__)
def test_the_files_have_the_content_that_cdk8s_writes(build, tmp_path):
    # A declaration of the namespace of one app writes nothing.
    def with_namespace(app):
        build(app)
        External(app, "existing", namespaces=["team"])

    assert_written_as_by_cdk8s(with_namespace, tmp_path)


@settings(max_examples=15)
@given(data=st.data())
def test_any_tree_has_the_content_that_cdk8s_writes(data, tmp_path_factory):
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
                # Every second chart is at the top level.
                scopes.append(Chart(app if where % 2 else scope, f"chart{number}"))
            elif what == "construct":
                scopes.append(Construct(scope, f"construct{number}"))
            else:
                one = maps(scope, f"m{number}")[0] if what == "ours" else raw(scope, f"r{number}")
                if after is not None and made:
                    # On an earlier object of the same chart, which prevents a cycle.
                    earlier = [each for each in made if Chart.of(each) is Chart.of(one)]
                    if earlier:
                        earlier[after % len(earlier)].node.add_dependency(one)
                made.append(one)

    assert_written_as_by_cdk8s(build, tmp_path_factory.mktemp("tree"))


@pytest.mark.parametrize("place", ["app", "small", "big", "big/thing", "big/ConfigMap-b", "empty"])
def test_every_validation_is_reported_with_every_renderer(app, place):
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


def test_circular_dependencies_are_a_problem_with_every_renderer(app):
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


# Output for the user.


def test_synth_prints_every_problem_and_exits_with_status_1(app, chart, capsys):
    chart.node.add_validation(Complaints("first", "second"))
    with pytest.raises(SystemExit) as exit_:
        synth(app)
    assert exit_.value.code == 1
    assert exit_.value.__suppress_context__
    printed = capsys.readouterr()
    assert printed.err == "2 problems found, nothing was written\n  gpu: first\n  gpu: second\n"
    assert printed.out == ""


@pytest.mark.parametrize("name", ["00-namespaces", "01-crds", "02-classes"])
def test_a_chart_that_bears_the_name_of_a_shared_file_is_refused(app, name):
    obj(Chart(app, name), "v1", "ConfigMap", namespace="default")
    with pytest.raises(SynthesisError, match=f"{name}: id must not be '{name}', which is the file"):
        synthesize(app)


class Wants(Construct):
    """A construct that needs node labels from another source."""

    def __init__(self, scope, id):
        super().__init__(scope, id)
        self.provides = Provided(wants_node_labels={"example.com/label=false": "it fails"})


def test_a_possible_problem_is_a_warning_with_its_path_and_all_files_are_written(app, chart, tmp_path):
    obj(chart, "v1", "ConfigMap", data={})
    Wants(chart, "needy")
    message = (
        f"^{chart.node.path}/needy: needs the node label example.com/label=false, which nothing in this app sets: it "
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


def test_cdk8s_renders_metadata_that_it_changes(tmp_path):
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


def test_the_number_of_default_resolvers_is_known():
    assert len(App().resolvers) == rendering._RESOLVERS


def plain_manifest(chart: Chart, name: str) -> Manifest:
    return Manifest(chart, name, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {}})


def test_validating_leaves_nothing_in_the_app(tmp_path: Path) -> None:
    app = App(outdir=str(tmp_path))
    plain_manifest(Chart(app, "one"), "a")
    synthesize(app)
    synthesize(app)
    assert [child.node.id for child in app.node.children] == ["one"]
    assert [path.name for path in tmp_path.iterdir()] == ["one.k8s.yaml"]


@pytest.mark.parametrize("id", ["after", "before"])
def test_an_object_that_cdk8s_refused_is_left_out(tmp_path, id):
    app = App(outdir=str(tmp_path))
    if id == "after":
        GpuNamespace(Chart(app, "namespaces"), "namespace", name="gpu")
    with pytest.raises(RuntimeError, match="cannot find a parent chart"):
        ApiObject(app, "refused", api_version="v1", kind="ConfigMap")
    if id == "before":
        GpuNamespace(Chart(app, "namespaces"), "namespace", name="gpu")
    synthesize(app)
    assert [path.name for path in tmp_path.iterdir()] == ["00-namespaces.k8s.yaml"]
