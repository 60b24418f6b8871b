"""Rules of an app: every way to render the app runs them, and none runs them twice."""

import pytest
from cdk8s import ApiObject, App, Chart, Include, JsonPatch, Testing

from gpu_constructs import External, GpuConstructsError, GpuConstructsWarning, SynthesisError, synthesize
from gpu_constructs.catalog.inventory import GpuInventory, GpuNode
from gpu_constructs.checks.rules.table import DEFAULT_SETTINGS
from gpu_constructs.cluster import gpu_rules
from gpu_constructs.cluster.gpu_rules import GpuRules, settings_of
from refusals import refusal
from tables import cases

GPU = "nvidia.com/gpu"
ALL = "NVIDIA_VISIBLE_DEVICES"
OVERRIDDEN = (
    "gpu/train: container 'main' has a GPU and sets NVIDIA_VISIBLE_DEVICES to 'all': it overrides the allocated GPU, "
    "and 'all' exposes every GPU of the node. Leave it out, or annotate the object with "
    "gpu-constructs/visible-devices=unmanaged [R05]"
)
ONE = GpuInventory(nodes=[GpuNode(name="one")])


def train(chart, id="train", *, image="a:1", value="all"):
    container = {"name": "main", "image": image, "resources": {"limits": {GPU: 1, "memory": "8Gi"}}}
    if value:
        container["env"] = [{"name": ALL, "value": value}]
    made = ApiObject(chart, id, api_version="batch/v1", kind="Job", metadata={"name": id})
    made.add_json_patch(JsonPatch.add("/spec", {"template": {"spec": {"containers": [container]}}}))
    return made


def synthesized(app):
    try:
        synthesize(app)
    except SynthesisError as error:
        return error.problems
    return []


WAYS = {
    "app.synth": lambda app, chart: app.synth(),
    "app.synth_yaml": lambda app, chart: app.synth_yaml(),
    "Testing.synth": lambda app, chart: Testing.synth(chart),
    "chart.to_json": lambda app, chart: chart.to_json(),
}


def plain(app, chart, way="app.synth_yaml"):
    """Render an app with cdk8s, and return the error if that fails."""
    try:
        WAYS[way](app, chart)
    except RuntimeError as error:
        return [line.strip() for line in str(error).splitlines()[1:]]
    return []


def test_enforced_rules_fail_in_every_rendering(app, chart):
    train(chart)
    assert [plain(app, chart, way) for way in WAYS] == [[]] * len(WAYS)
    assert synthesized(app) == [OVERRIDDEN]
    GpuRules.enforce(app)
    assert synthesized(app) == [OVERRIDDEN]
    # After the synth of this library, the rules apply to cdk8s again.
    assert [plain(app, chart, way) for way in WAYS] == [[f"[] {OVERRIDDEN}"]] * len(WAYS)


def test_the_synth_of_this_library_removes_them_from_cdk8s(app, chart, monkeypatch):
    train(chart, value=None)
    GpuRules.enforce(app)
    runs = []
    monkeypatch.setattr(gpu_rules, "broken_rules", lambda facts, ignore: runs.append(facts) or [])
    synthesize(app)
    assert runs == []
    app.synth_yaml()
    assert runs != []


def test_ignored_rules_pass_in_every_rendering(app, chart):
    train(chart)
    GpuRules.enforce(app, ignore=["R05"])
    assert plain(app, chart) == []
    assert synthesized(app) == []


def test_later_settings_replace_earlier_ones(app, chart):
    train(chart)
    GpuRules.enforce(app, ignore=["R05"])
    GpuRules.enforce(app)
    assert plain(app, chart) == [f"[] {OVERRIDDEN}"]
    GpuRules.enforce(app, ignore=["R05", "R26"])
    assert plain(app, chart) == []
    assert settings_of(app).ignore == {"R05", "R26"}


def test_an_inventory_reaches_the_rules(app, chart):
    train(chart)
    GpuRules.enforce(app, inventory=ONE)
    with pytest.warns(GpuConstructsWarning, match=r"\[R05\]"):
        assert plain(app, chart) == []
    with pytest.warns(GpuConstructsWarning, match=r"\[R05\]"):
        assert synthesized(app) == []


@pytest.mark.parametrize("way", [*WAYS, "our synth"])
def test_a_warning_appears_once_in_every_rendering(app, chart, way):
    train(chart, image="a", value=None)
    GpuRules.enforce(app)
    said = r"gpu/train: container 'main' has a GPU and runs image 'a'.*\[R26\]"
    with pytest.warns(GpuConstructsWarning, match=said) as warned:
        assert (plain(app, chart, way) if way in WAYS else synthesized(app)) == []
    assert len(warned) == 1


def test_an_annotation_of_the_object_ignores_a_rule(app, chart):
    made = train(chart)
    made.metadata.add_annotation("gpu-constructs/ignore-rules", "R05")
    GpuRules.enforce(app)
    assert plain(app, chart) == []
    assert synthesized(app) == []


def test_objects_included_from_a_file_are_checked(app, chart, tmp_path):
    file = tmp_path / "chart.yaml"
    file.write_text(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: served}\n"
        "spec:\n  strategy: {type: Recreate}\n  template:\n    spec:\n      containers:\n"
        "      - {name: main, image: 'a:1', resources: {limits: {nvidia.com/gpu: '0.5', memory: 1Gi}}}\n"
    )
    Include(chart, "helm", url=str(file))
    GpuRules.enforce(app)
    (problem,) = plain(app, chart)
    assert problem.startswith("[] gpu/helm/served-deployment: limits['nvidia.com/gpu'] of container 'main' must be")
    assert synthesized(app) == [problem.removeprefix("[] ")]


def test_rules_use_the_declarations_of_constructs(app, chart):
    train(chart, value=None)
    External(app, "nodes", gpu_runtime="runtime-class")
    GpuRules.enforce(app)
    assert [problem for problem in plain(app, chart) if problem.endswith("[R04]")]


def test_rules_do_not_use_facts_of_another_app(app, tmp_path):
    GpuRules.enforce(app, ignore=["R05"])
    other = App(outdir=str(tmp_path / "other"))
    train(Chart(other, "gpu"))
    assert settings_of(other) == DEFAULT_SETTINGS
    assert synthesized(other) == [OVERRIDDEN]


@cases
def test_invalid_settings_are_rejected(app, given, problem):
    assert refusal(GpuRules.enforce, app, **given).startswith(problem)
    assert settings_of(app) == DEFAULT_SETTINGS


def test_only_an_app_is_accepted(chart):
    with pytest.raises(GpuConstructsError, match=r"app must be a cdk8s App, got Chart\. Pass the App that contains"):
        GpuRules.enforce(chart)


@pytest.mark.parametrize("way", ["app.synth", "app.synth_yaml"])
def test_the_rules_run_once_however_many_charts_are_rendered(app, monkeypatch, way):
    for number in range(4):
        train(Chart(app, f"c{number}"), value=None)
    runs = []
    monkeypatch.setattr(gpu_rules, "broken_rules", lambda facts, ignore: runs.append(len(facts.manifests)) or [])
    GpuRules.enforce(app)
    GpuRules.enforce(app)
    WAYS[way](app, None)
    assert runs == [4]
    train(Chart(app, "later"), value=None)
    WAYS[way](app, None)
    assert runs == [4, 5]


def test_the_next_rendering_checks_objects_that_are_added_later(app, chart):
    train(chart, value=None)
    GpuRules.enforce(app)
    assert plain(app, chart) == []
    train(chart, "second")
    assert len(plain(app, chart)) == 1
    assert len(plain(app, chart)) == 1


@pytest.mark.parametrize("way", ["app.synth", "app.synth_yaml"])
def test_a_chart_that_renders_after_the_app_is_checked_again(app, chart, way):
    train(chart, value=None)
    GpuRules.enforce(app)
    WAYS[way](app, chart)
    train(chart, "second")
    with pytest.raises(RuntimeError, match="R05"):
        Testing.synth(chart)
