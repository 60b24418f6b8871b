import inspect
import json
import warnings

import cdk8s_plus_27 as kplus
import pytest
from cdk8s import ApiObject, App, Chart, Include, JsonPatch, Testing

from gpu_constructs import (
    CapacityPlan,
    DevicePluginChart,
    GpuAccess,
    GpuConstructsError,
    GpuInventory,
    GpuNamespace,
    GpuNode,
    GpuProfile,
    GpuRequest,
    GpuRules,
    GpuWorkload,
    Kubernetes,
    Run,
    Sharing,
    SynthesisError,
    synthesize,
)
from gpu_constructs.errors import GpuConstructsWarning
from refusals import problems
from tables import beside

SLICES = Sharing.time_slicing(replicas=2)
PROFILE = GpuProfile(platform=Kubernetes(), sharing=SLICES)
BOARD = "NVIDIA GeForce RTX 3090"
ONE = GpuInventory(nodes=[GpuNode(name="one", gpu_model=BOARD)])


def cluster(tmp_path, inventory=ONE, **given):
    app = App(outdir=str(tmp_path / "dist"))
    DevicePluginChart(
        app, "plugin", platform=Kubernetes(), sharing=SLICES, node_feature_discovery=False, gpu_feature_discovery=False
    )
    plan = CapacityPlan(app, inventory, **given)
    chart = Chart(app, "work", namespace="work")
    GpuNamespace(chart, "namespace", name="work", pod_security="baseline")
    return app, chart, plan


def server(chart, name, vram=None, **given):
    return GpuWorkload(chart, name, image="a/b:1", profile=PROFILE, gpus=GpuRequest(vram=vram), **given)


def plain(name="theirs", replicas=1, kind="Deployment"):
    limits = {"nvidia.com/gpu": 1, "memory": "1Gi"}
    container = {"name": "c", "image": "a/b:1", "resources": {"limits": limits}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "work", "annotations": {"gpu-constructs/vram": "1Gi"}},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "strategy": {"type": "Recreate"},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}},
        },
    }


def said(app):
    """Return the problems of a synth, or its warnings."""
    problems, told = [], []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", GpuConstructsWarning)
        try:
            synthesize(app)
        except SynthesisError as refused:
            problems, told = refused.problems, [str(refused)]
        else:
            told = [str(warning.message) for warning in caught]
    assert longest_line(*told) <= 200
    # As one line each, for the tests that look for a sentence.
    return problems, [] if problems else [" ".join(line.strip() for line in one.split("\n")) for one in told]


def longest_line(*messages):
    return max((len(line) for message in messages for line in message.splitlines()), default=0)


LONG = ".".join(["name-that-goes-on"] * 11)
MANY = GpuInventory(
    nodes=[GpuNode(name=f"{LONG}-{number}", vram="8Gi", labels={"disk": f"d{number}"}) for number in range(9)]
)


def test_reasons_stand_below_a_short_first_line(tmp_path):
    app, chart, _ = cluster(tmp_path, MANY)
    server(chart, "a", "1Gi", node_selector={"disk": "none"})
    (problem,), _ = said(app)
    first, *reasons = problem.splitlines()
    assert first == (
        "work/a: no node of the inventory accepts its pods. Select labels that nodes have, or declare them with "
        "GpuNode(labels=...), or add a node that accepts it to the inventory"
    )
    assert len(reasons) > 1


def test_an_app_that_fits_is_synthesized_without_warnings(tmp_path):
    app, chart, plan = cluster(tmp_path)
    server(chart, "a", "8Gi")
    server(chart, "b", "8Gi")
    assert said(app) == ([], [])
    assert (plan.plan.always_fits, plan.plan.all_fits, plan.plan.vram) == ("yes", "yes", "safe")
    assert plan.plan.stock["nvidia.com/gpu"].left == 0


def test_always_running_pods_without_a_place_fail_the_synth_and_write_nothing(tmp_path):
    app, chart, _ = cluster(tmp_path)
    for name in "abc":
        server(chart, name, "1Gi")
    (problem,), _ = said(app)
    assert problem.startswith("work/c: the long-running pods do not fit. Configure more slots with ")
    assert "work/a, work/b and work/c request 3 nvidia.com/gpu, but one has 2" in problem
    assert "Sharing.time_slicing(replicas=3)" in problem
    assert not (tmp_path / "dist").exists()


def test_a_pod_that_no_node_accepts_fails_with_the_reason_of_each(tmp_path, expected):
    nodes = [
        GpuNode(name="one", gpu_model=BOARD),
        GpuNode(name="pool", gpu_model="NVIDIA L4", count=3, labels={"disk": "hdd"}),
    ]
    app, chart, _ = cluster(tmp_path, GpuInventory(nodes=nodes))
    server(chart, "a", "1Gi", node_selector={"disk": "ssd"})
    (problem,), _ = said(app)
    first, *reasons = problem.splitlines()
    assert first.startswith("work/a: no node of the inventory accepts its pods. Select labels that nodes have, or ")
    assert reasons == expected


def test_objects_of_cdk8s_plus_count(tmp_path):
    app, chart, plan = cluster(tmp_path)
    container = kplus.ContainerProps(image="a/b:1")
    deployment = kplus.Deployment(chart, "theirs", replicas=3, containers=[container])
    deployment.with_(GpuAccess(profile=PROFILE, request=GpuRequest(vram="1Gi")))
    (problem,), _ = said(app)
    assert problem.startswith("work/theirs: the long-running pods do not fit. ")
    assert plan.plan.consumers[0].consumer.pods == 3


def test_objects_of_a_file_count(tmp_path, expected):
    app, chart, _ = cluster(tmp_path)
    file = tmp_path / "theirs.json"
    file.write_text(json.dumps(plain(replicas=3)))
    Include(chart, "include", url=str(file))
    (problem,), _ = said(app)
    assert problem.splitlines()[1:] == expected


def test_an_uncountable_gpu_request_is_a_condition(tmp_path):
    job = {**plain("theirs"), "apiVersion": "example.com/v1", "kind": "RenderFarm"}
    app, _, plan = cluster(tmp_path, other_manifests=[job])
    problems, (warned,) = said(app)
    assert problems == []
    assert "RenderFarm work/theirs" in warned
    assert "does not count it" in warned
    assert plan.plan.consumers == []


def test_other_manifests_count_and_keep_their_names(tmp_path):
    others = [{"apiVersion": "v1", "kind": "List", "items": [plain(replicas=3)]}]
    app, _, _ = cluster(tmp_path, other_manifests=others)
    (problem,), _ = said(app)
    assert problem.startswith("capacity-plan: Deployment work/theirs: the long-running pods do not fit")


def test_updates_of_other_manifests_only_warn(tmp_path):
    theirs = plain(replicas=2)
    del theirs["spec"]["strategy"]
    app, _, _ = cluster(tmp_path, other_manifests=[None, theirs])
    problems, (warned,) = said(app)
    assert problems == []
    assert warned.startswith("capacity-plan: Deployment work/theirs: an update would wait forever")


def test_the_sharing_of_a_node_must_match_the_plugin_of_the_app(tmp_path):
    node = GpuNode(name="one", gpu_model=BOARD, sharing=Sharing.time_slicing(replicas=4))
    app, _, _ = cluster(tmp_path, GpuInventory(nodes=[node]))
    (problem,), _ = said(app)
    assert problem == (
        "capacity-plan: gpu_node.sharing of 'one' must be time-slicing x 2, as in the app's device plugin, got "
        "time-slicing x 4. Remove gpu_node.sharing. To change the sharing, change sharing= of the DevicePluginChart or "
        "GpuOperator, and of the GpuProfile"
    )


def test_a_name_cannot_move_the_cursor_of_a_terminal(tmp_path):
    theirs = plain(replicas=3)
    theirs["metadata"]["name"] = "a\x1b[31m\nb\u202e"
    app, _, _ = cluster(tmp_path, other_manifests=[theirs])
    (problem,), _ = said(app)
    assert all(line.isprintable() for line in problem.split("\n"))
    assert problem.endswith("\n  work/a\ufffd[31m b\ufffd requests 3 nvidia.com/gpu, but one has 2")


def test_each_problem_of_several_clusters_names_its_cluster(tmp_path, expected):
    apps = [App(outdir=str(tmp_path / name)) for name in ("a", "b")]
    for app in apps:
        CapacityPlan(app, ONE, other_manifests=[plain(replicas=3)])
    assert [problem.split(": ")[:2] for problem in problems(synthesize, *apps)] == expected


RACK = GpuInventory(nodes=[GpuNode(name="one", gpu_model=BOARD, rack="r1")], rack_watts={"r1": 300})
SEVERITIES = beside(__file__, "capacity_plan")["severities"]


@pytest.mark.parametrize("kind", SEVERITIES)
@pytest.mark.parametrize("severity", ["warn", "error", "off"])
def test_each_kind_of_problem_has_the_chosen_severity(tmp_path, kind, severity):
    inventory, servers, words = SEVERITIES[kind]
    app, chart, plan = cluster(tmp_path, inventory, **{kind: severity})
    for number, given in enumerate(servers):
        server(chart, f"a{number}", **given)
    problems, warned = said(app)
    assert bool(problems) == (severity == "error")
    assert any(words in one for one in (*problems, *warned)) == (severity != "off")
    assert any(words in one.text for one in (*plan.plan.problems, *plan.plan.conditions))


def test_the_report_is_in_a_folder_that_kubectl_does_not_read(tmp_path):
    app, chart, _ = cluster(tmp_path)
    server(chart, "a", "1Gi")
    synthesize(app)
    dist = tmp_path / "dist"
    assert sorted(file.name for file in (dist / "reports").iterdir()) == [
        f"capacity-plan.{ending}" for ending in ("html", "json", "svg", "txt")
    ]
    assert [file for file in dist.iterdir() if "capacity" in file.name] == []
    assert "dist" in (dist / "reports/capacity-plan.txt").read_text().splitlines()[1]


def test_each_of_several_clusters_has_its_own_report_folder(tmp_path, expected):
    apps = [App(outdir=str(tmp_path / name)) for name in ("a", "b")]
    for app in apps:
        CapacityPlan(app, ONE, title="mine")
    synthesize(*apps)
    assert sorted(str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.json")) == expected


@pytest.mark.parametrize("render", [App.synth, App.synth_yaml, lambda app: Testing.synth(app.charts[0])])
def test_every_way_to_render_an_app_fails_if_it_does_not_fit(tmp_path, render):
    app, chart, _ = cluster(tmp_path)
    for name in "abc":
        server(chart, name, "1Gi")
    with pytest.raises(Exception, match="the long-running pods do not fit"):
        render(app)


def test_the_plan_is_available_after_rendering(tmp_path):
    app, _, plan = cluster(tmp_path)
    with pytest.raises(GpuConstructsError, match="capacity-plan: plan is available after a synth"):
        _ = plan.plan
    app.synth_yaml()
    assert plan.plan.consumers == []


def test_rules_that_count_gpus_know_the_inventory(tmp_path):
    app, chart, _ = cluster(tmp_path)
    server(chart, "a", "1Gi")
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}
    spec = {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 9}
    scaler = ApiObject(chart, "hpa", api_version="autoscaling/v2", kind="HorizontalPodAutoscaler")
    scaler.add_json_patch(JsonPatch.add("/spec", spec))
    problems, _ = said(app)
    assert any(problem.endswith("[R30]") for problem in problems)


def test_the_inventory_of_the_rules_overrides_that_of_the_plan(tmp_path):
    app, chart, _ = cluster(tmp_path)
    GpuRules.enforce(app, inventory=GpuInventory(nodes=[GpuNode(name="a", vram="24Gi", gpus=4)]))
    server(chart, "a", "1Gi", run=Run.job(completions=2, parallelism=2))
    assert said(app) == ([], [])


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"app": None}, "app must be a cdk8s App, got NoneType"),
        ({"inventory": [GpuNode(name="a")]}, "inventory must be a GpuInventory, got list"),
        ({"vram": "fail"}, "vram must be one of 'warn', 'error', 'off'"),
        ({"vrm": "off"}, "vrm is not a keyword of CapacityPlan (did you mean 'vram'?)"),
        ({"id": "../../elsewhere"}, "id must be a DNS label"),
        ({"title": ""}, "title must be a printable str that is not empty, got ''. Leave it out"),
        ({"title": "a\nb"}, "title must be a printable str that is not empty"),
        ({"id": 7}, "id must be str, got int: 7"),
        ({"other_manifests": "a.yaml"}, "other_manifests must be a list of objects as plain data"),
        ({"other_manifests": [{}]}, "other_manifests[0] must be a Kubernetes object"),
        ({"other_manifests": {"kind": "List"}}, "Put it in a list: other_manifests=[...]"),
    ],
)
def test_invalid_arguments_are_rejected(tmp_path, given, problem):
    arguments = {"app": App(outdir=str(tmp_path)), "inventory": ONE, **given}
    with pytest.raises(GpuConstructsError) as refused:
        CapacityPlan(**arguments)
    assert problem in str(refused.value)
    assert refused.traceback[-1].frame.code.path.name in ("errors.py", "test_capacity_plan.py")


def test_an_app_has_one_plan(tmp_path):
    app, _, _ = cluster(tmp_path)
    with pytest.raises(GpuConstructsError, match="app must have one capacity plan"):
        CapacityPlan(app, ONE, id="second")


def test_its_arguments_and_defaults_are_fixed():
    parameters = inspect.signature(CapacityPlan.__init__).parameters
    assert list(parameters)[:3] == ["self", "app", "inventory"]
    assert {name: one.default for name, one in parameters.items() if one.kind is one.KEYWORD_ONLY} == {
        "id": "capacity-plan",
        "vram": "warn",
        "waiting": "warn",
        "power": "warn",
        "unchecked": "warn",
        "other_manifests": (),
        "title": None,
    }
