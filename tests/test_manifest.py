import json

import pytest
import yaml
from cdk8s import ApiObject, App, Chart, JsonPatch, Testing, Yaml
from constructs import Construct

from gpu_constructs import GpuNamespace, synthesize
from gpu_constructs._manifest import Manifest
from gpu_constructs.rules.gpu_rules import GpuRules

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "train", "namespace": "default"},
    "spec": {
        "containers": [
            {
                "image": "a:1",
                "name": "main",
                "ports": [{"containerPort": 8080, "name": "http"}],
                "readinessProbe": {"httpGet": {"path": "/", "port": "http"}},
                "livenessProbe": {"httpGet": {"path": "/", "port": 8080}},
                "resources": {"limits": {"nvidia.com/gpu": "1", "memory": "1Gi"}, "claims": [{"name": "gpu"}]},
            }
        ],
        "initContainers": [{"image": "a:1", "name": "sidecar", "restartPolicy": "Always"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}],
        "hostUsers": False,
        "aFieldOfTheFuture": {"on": "yes", "ratio": 0.5, "empty": {}, "zero": 0, "text": "", "number": "1"},
    },
}


def config_map(**more):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, **more}


def keys_in_order(value):
    if isinstance(value, dict):
        assert list(value) == sorted(value)
        for member in value.values():
            keys_in_order(member)
    elif isinstance(value, list):
        for member in value:
            keys_in_order(member)


def test_every_field_survives(chart):
    Manifest(chart, "pod", POD)
    (rendered,) = Testing.synth(chart)
    assert rendered == POD


def test_every_field_survives_into_the_file(app, chart, tmp_path):
    Manifest(chart, "pod", POD)
    GpuRules.enforce(app, ignore=["R20", "R21"])
    synthesize(app)
    assert yaml.safe_load((tmp_path / "dist" / "gpu.k8s.yaml").read_text()) == POD


def test_numbers_that_are_not_amounts_stay_numbers(chart):
    Manifest(chart, "pod", POD)
    (rendered,) = Testing.synth(chart)
    (container,) = rendered["spec"]["containers"]
    assert type(container["livenessProbe"]["httpGet"]["port"]) is int


def test_keys_are_sorted_at_every_depth(chart):
    Manifest(chart, "pod", POD)
    (rendered,) = Testing.synth(chart)
    assert list(rendered) == ["apiVersion", "kind", "metadata", "spec"]
    keys_in_order(rendered)


def test_the_order_of_a_list_is_kept(chart):
    Manifest(chart, "x", config_map(items=("b", "a")))
    (rendered,) = Testing.synth(chart)
    assert rendered["items"] == ["b", "a"]


def test_members_that_are_none_are_left_out_at_every_depth(chart):
    made = Manifest(chart, "x", config_map(data=None, binaryData={"a": None, "b": [{"c": None, "d": 1}]}))
    (rendered,) = Testing.synth(chart)
    assert rendered == made.to_json() == config_map(binaryData={"b": [{"d": 1}]})


def test_a_cluster_scoped_kind_has_no_namespace_even_under_a_chart_that_has_one(app):
    chart = Chart(app, "gpu", namespace="team")
    Manifest(chart, "namespace", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    Manifest(chart, "x", config_map())
    namespace, other = Testing.synth(chart)
    assert "namespace" not in namespace["metadata"]
    assert other["metadata"]["namespace"] == "team"


def test_an_objects_own_namespace_wins_over_the_charts(app):
    chart = Chart(app, "gpu", namespace="team")
    Manifest(chart, "x", {**config_map(), "metadata": {"name": "x", "namespace": "other"}})
    (rendered,) = Testing.synth(chart)
    assert rendered["metadata"]["namespace"] == "other"


def test_labels_of_the_chart_arrive(app):
    chart = Chart(app, "gpu", labels={"team": "ml"})
    Manifest(chart, "x", {**config_map(), "metadata": {"name": "x", "labels": {"app": "x"}}})
    (rendered,) = Testing.synth(chart)
    assert rendered["metadata"]["labels"] == {"app": "x", "team": "ml"}


def test_labels_and_annotations_added_later_arrive(chart):
    namespace = GpuNamespace(chart, "namespace")
    namespace.api_object.metadata.add_label("team", "ml")
    ApiObject.of(namespace).metadata.add_annotation("owner", "me")
    (rendered,) = Testing.synth(chart)
    assert rendered["metadata"]["labels"]["team"] == "ml"
    assert rendered["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "privileged"
    assert rendered["metadata"]["annotations"] == {"owner": "me"}


def test_patches_reach_fields_the_body_has_and_has_not(chart):
    x = Manifest(chart, "x", config_map(data={"b": "old", "c": "gone"}))
    x.add_json_patch(
        JsonPatch.replace("/data/b", "new"),
        JsonPatch.remove("/data/c"),
        JsonPatch.add("/data/a~1b", "added"),
        JsonPatch.add("/metadata/annotations", {"note": "yes"}),
    )
    (rendered,) = Testing.synth(chart)
    assert rendered["data"] == {"a/b": "added", "b": "new"}
    assert rendered["metadata"] == {"annotations": {"note": "yes"}, "name": "x"}


def test_patches_of_several_calls_apply_in_order_after_labels_added_later(chart):
    x = Manifest(chart, "x", config_map(data={"a": "1"}))
    x.add_json_patch(JsonPatch.replace("/data/a", "2"), JsonPatch.copy("/data/a", "/data/b"))
    x.add_json_patch(JsonPatch.replace("/data/a", "3"), JsonPatch.replace("/metadata/labels/team", "patched"))
    x.metadata.add_label("team", "ml")
    (rendered,) = Testing.synth(chart)
    assert rendered["data"] == {"a": "3", "b": "2"}
    assert rendered["metadata"]["labels"] == {"team": "patched"}


def test_a_patch_sees_the_namespace_the_chart_gave(app):
    chart = Chart(app, "gpu", namespace="team")
    Manifest(chart, "x", config_map()).add_json_patch(JsonPatch.test("/metadata/namespace", "team"))
    assert Testing.synth(chart)[0]["metadata"]["namespace"] == "team"


def test_what_a_patch_adds_is_sorted_too(chart):
    x = Manifest(chart, "x", config_map(zeta={"b": 1}))
    x.add_json_patch(JsonPatch.add("/alpha", {"z": 1, "a": {"y": 2, "b": 3}}), JsonPatch.add("/zeta/a", 1))
    (rendered,) = Testing.synth(chart)
    assert list(rendered) == ["apiVersion", "kind", "metadata", "alpha", "zeta"]
    keys_in_order(rendered["alpha"])
    keys_in_order(rendered["zeta"])


def test_an_integer_in_a_patch_stays_an_integer(chart):
    x = Manifest(chart, "pod", POD)
    x.add_json_patch(JsonPatch.replace("/spec/containers/0/resources/limits/nvidia.com~1gpu", 2))
    (rendered,) = Testing.synth(chart)
    limits = rendered["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {"nvidia.com/gpu": 2, "memory": "1Gi"}
    assert type(limits["nvidia.com/gpu"]) is int


def test_a_construct_and_cdk8s_give_the_same_object_to_patch(chart):
    namespace = GpuNamespace(chart, "namespace")
    ApiObject.of(namespace).add_json_patch(JsonPatch.add("/metadata/annotations", {"a": "1"}))
    namespace.api_object.add_json_patch(JsonPatch.add("/metadata/annotations/b", "2"))
    (rendered,) = Testing.synth(chart)
    assert rendered["metadata"]["annotations"] == {"a": "1", "b": "2"}


def test_a_body_given_as_a_function_is_asked_again_at_synth(chart):
    data = {"a": "early"}
    Manifest(chart, "x", lambda: config_map(data=dict(data)))
    data["a"] = "late"
    (rendered,) = Testing.synth(chart)
    assert rendered["data"] == {"a": "late"}


def test_rendering_leaves_the_given_body_as_it_was(chart):
    body = config_map(data={"b": None, "a": "1"})
    Manifest(chart, "x", body).add_json_patch(JsonPatch.add("/data/c", "2"))
    first, second = Testing.synth(chart), Testing.synth(chart)
    assert first == second
    assert body == config_map(data={"b": None, "a": "1"})


def test_objects_of_one_chart_come_in_the_order_they_were_made(chart):
    for name in ("b", "a"):
        Manifest(Construct(chart, name), "Default", {**config_map(), "metadata": {"name": name}})
    assert [manifest["metadata"]["name"] for manifest in Testing.synth(chart)] == ["b", "a"]


def test_a_dependency_puts_an_object_behind_another(chart):
    first = Manifest(chart, "b", {**config_map(), "metadata": {"name": "b"}})
    first.add_dependency(Manifest(chart, "a", {**config_map(), "metadata": {"name": "a"}}))
    assert [manifest["metadata"]["name"] for manifest in Testing.synth(chart)] == ["a", "b"]


@pytest.mark.parametrize("outdir", ["plain", "deep/er"])
def test_plain_cdk8s_synth_writes_the_same_object(tmp_path, outdir):
    app = App(outdir=str(tmp_path / outdir))
    chart = Chart(app, "gpu")
    Manifest(chart, "pod", POD).add_json_patch(JsonPatch.add("/metadata/labels", {"a": "b"}))
    app.synth()
    written = (tmp_path / outdir / "gpu.k8s.yaml").read_text()
    assert written == Yaml.stringify(*Testing.synth(chart))
    assert yaml.safe_load(written) == {**POD, "metadata": {**POD["metadata"], "labels": {"a": "b"}}}


def test_a_kind_outside_namespaces_that_only_the_caller_knows_gets_none_from_the_chart():
    chart = Chart(App(), "gpu", namespace="elsewhere")
    rule = {"apiVersion": "nfd.k8s-sigs.io/v1alpha1", "kind": "NodeFeatureRule", "metadata": {"name": "x"}}
    Manifest(chart, "known", rule, is_cluster_scoped=True)
    Manifest(chart, "unknown", {**rule, "metadata": {"name": "y"}})
    assert [one["metadata"].get("namespace") for one in Testing.synth(chart)] == [None, "elsewhere"]


def test_metadata_of_every_kind_arrives(chart):
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "b"}
    metadata = {"name": "x", "ownerReferences": [owner], "annotations": {"a": "b"}}
    Manifest(chart, "owned", {**config_map(), "metadata": metadata})
    (rendered,) = Testing.synth(chart)
    assert rendered["metadata"] == metadata
    keys_in_order(rendered["metadata"])


BODIES = [
    {},
    {"labels": {"b": "2", "a": "1"}},
    {"labels": {}, "annotations": {}, "finalizers": []},
    {"annotations": {"x": "y"}, "finalizers": ["z"]},
    {"namespace": "own", "labels": {"of-chart": "mine"}},
    {"ownerReferences": [{"name": "o"}], "generation": 3},
]


@pytest.mark.parametrize("metadata", BODIES, ids=str)
@pytest.mark.parametrize("kind", ["ConfigMap", "Namespace"])
@pytest.mark.parametrize("given", [{}, {"namespace": "team", "labels": {"of-chart": "yes", "a": "chart"}}], ids=str)
def test_it_renders_the_same_with_and_without_asking_cdk8s(metadata, kind, given):
    chart = Chart(App(), "c", **given)
    made = Manifest(chart, "x", {"apiVersion": "v1", "kind": kind, "metadata": {"name": "n", **metadata}, "data": {}})
    without = made.to_json_in(given.get("namespace"), given.get("labels", {}))
    asked = made.to_json()
    assert without == asked
    assert json.dumps(without) == json.dumps(asked)


def test_metadata_that_was_given_out_is_asked_for_again(chart):
    made = Manifest(chart, "x", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n"}})
    ApiObject.of(made).metadata.add_label("late", "yes")
    assert made.to_json_in(None, {})["metadata"]["labels"] == {"late": "yes"}


def test_an_object_without_a_name_gets_the_one_of_cdk8s(chart):
    made = Manifest(chart, "x", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}})
    assert made.to_json_in(None, {}) == made.to_json()
    assert made.to_json()["metadata"]["name"]
