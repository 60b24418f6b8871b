import inspect
import traceback
from pathlib import Path

import cdk8s
import pytest
from cdk8s import Chart, Testing
from constructs import Construct

import gpu_constructs
from gpu_constructs import (
    DcgmExporter,
    DevicePluginChart,
    External,
    GpuConstructsError,
    GpuNamespace,
    GpuWorkload,
    HelmValues,
    NvidiaRuntimeClass,
    PowerLimit,
    ValidationBridge,
)
from gpu_constructs.tree.construct import GpuObject, checked

CONSTRUCTS = [
    GpuNamespace,
    NvidiaRuntimeClass,
    DevicePluginChart,
    ValidationBridge,
    DcgmExporter,
    GpuWorkload,
    PowerLimit,
    External,
    HelmValues,
]
REQUIRED = {GpuWorkload: {"image": "a:1"}, HelmValues: {"release": "r", "values": {}}}
LIBRARY = str(Path(gpu_constructs.__file__).parent)


class Thing:
    """An object that no keyword accepts."""

    def __repr__(self):
        return "a thing"


def keywords_of(construct):
    parameters = inspect.signature(construct.__init__).parameters.values()
    return [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]


def paths(app):
    return [construct.node.path for construct in app.node.find_all()]


def make(construct, app, id="x", **given):
    scope = app if issubclass(construct, Chart) else app.node.find_child("gpu")
    return construct(scope, id, **{**REQUIRED.get(construct, {}), **given})


def refusal(construct, app, **given):
    with pytest.raises(GpuConstructsError) as refused:
        make(construct, app, **given)
    return refused.value


@pytest.mark.parametrize("construct", CONSTRUCTS)
def test_a_value_of_a_wrong_type_is_rejected_before_the_tree_changes(app, chart, construct):
    before = paths(app)
    for keyword in keywords_of(construct):
        error = refusal(construct, app, **{keyword: Thing()})
        assert keyword in error.problem
        assert "thing" in error.problem.lower()
        assert error.problem.isprintable()
        frames = traceback.extract_tb(error.__traceback__)
        assert [frame for frame in frames if frame.filename.startswith(LIBRARY)] == frames[-1:]
        assert frames[-2].line.startswith("return construct(scope, id")
        assert not [frame for frame in frames if "jsii" in frame.filename]
    assert paths(app) == before


def test_the_traceback_of_a_rejected_construct_shows_only_the_mistake(app, chart):
    try:
        GpuNamespace(chart, "namespace", name="Not A Label")
    except GpuConstructsError as error:
        printed = "".join(traceback.format_exception(error))
    assert 'GpuNamespace(chart, "namespace", name="Not A Label")' in printed
    assert printed.count(LIBRARY) == 1
    assert "jsii" not in printed.lower()
    assert "another exception occurred" not in printed
    assert printed.splitlines()[-1] == (
        "gpu_constructs.errors.GpuConstructsError: gpu/namespace: name must be a DNS label (a-z, 0-9 and '-', at most "
        "63 characters, letter or digit at both ends), got 'Not A Label'"
    )


def test_the_id_of_a_rejected_construct_can_be_used_again(app, chart):
    refusal(GpuNamespace, app, name="Not A Label")
    make(GpuNamespace, app, name="a-label")
    assert paths(app) == ["", "gpu", "gpu/x", "gpu/x/Default"]


def test_an_unknown_keyword_is_rejected_with_the_nearest_one(app, chart):
    for construct in CONSTRUCTS:
        keyword = max(keywords_of(construct), key=len)
        misspelt = keyword.replace(keyword[1:3], keyword[2] + keyword[1], 1)
        problem = refusal(construct, app, **{misspelt: 1}).problem
        assert problem == f"{misspelt} is not a keyword of {construct.__name__} (did you mean {keyword!r}?)"


def test_a_missing_keyword_is_named(app, chart):
    with pytest.raises(
        GpuConstructsError, match=r"^gpu/values: release is required by HelmValues. Pass release=\.\.\.$"
    ):
        HelmValues(chart, "values", values={})


def test_a_scope_that_is_no_construct_is_refused():
    with pytest.raises(GpuConstructsError, match=r"^scope must be a construct, got str$"):
        GpuNamespace("chart", "namespace")


COMPONENTS = [DevicePluginChart, ValidationBridge, DcgmExporter, PowerLimit]


def test_an_id_that_is_no_printable_text_is_refused(app, chart):
    before = paths(app)
    for construct in CONSTRUCTS:
        for id in (5, "", None, "a\nb", "\x00", "a\u200bb", "\ud800"):
            assert str(refusal(construct, app, id=id)) == f"id must be a printable str that is not empty, got {id!r}"
    assert paths(app) == before


def test_the_id_of_a_component_is_a_label_of_its_pods_and_must_be_fit_for_one(app, chart):
    before = paths(app)
    for construct in COMPONENTS:
        for id in ("my gpus", "-gpus", "gpus.", "größe", "a" * 64):
            assert refusal(construct, app, id=id).problem == (
                "id must be a label value (letters, digits, '-', '_', '.', at most 63 characters, letter or digit at "
                f"both ends), got {id!r}"
            )
    assert paths(app) == before


@pytest.mark.parametrize("construct", COMPONENTS)
def test_the_id_of_a_component_is_the_instance_of_its_objects(app, chart, construct):
    made = make(construct, app, "My_GPUs.2")
    rendered = Testing.synth(made if isinstance(made, Chart) else chart)
    (daemonset,) = [m for m in rendered if m["metadata"]["name"] == made.api_object.name and m["kind"] == "DaemonSet"]
    for labels in (daemonset["metadata"]["labels"], daemonset["spec"]["selector"]["matchLabels"]):
        assert labels["app.kubernetes.io/instance"] == "My_GPUs.2"


@pytest.mark.parametrize("construct", [c for c in CONSTRUCTS if c not in COMPONENTS])
def test_the_id_of_anything_else_may_be_any_words(app, chart, construct):
    more = {"name": "a"} if construct is GpuWorkload else {}
    for id in ("my gpus", "-gpus", "größe (2)", "a" * 64):
        assert make(construct, app, id, **more).node.id == id


def test_an_object_in_an_app_without_a_chart_is_rejected(app):
    with pytest.raises(
        GpuConstructsError, match=r"^namespace: scope must be a Chart or a construct in a Chart, got an App$"
    ):
        GpuNamespace(app, "namespace")


def test_an_option_without_its_keyword_is_refused(app, chart):
    with pytest.raises(GpuConstructsError) as refused:
        GpuNamespace(chart, "namespace", "team")
    assert refused.value.problem.startswith("GpuNamespace takes only scope, id without a keyword, got 'team' without")
    assert paths(app) == ["", "gpu"]


def test_an_id_that_is_taken_is_refused(app, chart):
    for construct in CONSTRUCTS:
        make(construct, app, construct.__name__.lower())
        before = paths(app)
        error = refusal(construct, app, id=construct.__name__.lower())
        assert error.problem == "id must be unique, but another construct has it. Choose another ID"
        assert paths(app) == before


def test_an_error_of_an_inner_construct_keeps_the_inner_path(chart):
    class Team(GpuObject):
        @checked
        def __init__(self, scope: Construct, id: str, *, name: str) -> None:
            super().__init__(scope, id)
            GpuNamespace(self, "namespace", name=name)

    with pytest.raises(GpuConstructsError, match=r"^gpu/team/namespace: name must be a DNS label"):
        Team(chart, "team", name="Not A Label")


def test_other_exceptions_pass_through_unchanged(chart):
    class Broken(GpuObject):
        @checked
        def __init__(self, scope: Construct, id: str) -> None:
            super().__init__(scope, id)
            raise ZeroDivisionError("a bug")

    with pytest.raises(ZeroDivisionError, match=r"^a bug$"):
        Broken(chart, "broken")


@pytest.mark.parametrize("construct", CONSTRUCTS)
def test_a_construct_renders_alone_and_its_main_object_is_reachable_two_ways(app, chart, construct):
    made = make(construct, app)
    rendered = Testing.synth(made if isinstance(made, Chart) else chart)
    assert all(manifest["kind"] for manifest in rendered)
    assert bool(rendered) == (construct not in (External, HelmValues))
    if rendered:
        assert made.api_object is cdk8s.ApiObject.of(made)
        assert made.api_object is made.node.default_child
