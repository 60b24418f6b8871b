import json
from pathlib import Path

import yaml
from cdk8s import ApiObject, App, Chart, JsonPatch, Testing

import tables
from gpu_constructs import GpuNamespace, synthesize
from gpu_constructs.cluster.gpu_rules import GpuRules
from gpu_constructs.tree.manifest import Manifest

POD = tables.read(Path(__file__).with_name("pod.yaml"))


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


def test_every_field_survives_into_the_file(app, chart, tmp_path):
    Manifest(chart, "pod", POD)
    GpuRules.enforce(app, ignore=["R20", "R21"])
    synthesize(app)
    assert yaml.safe_load((tmp_path / "dist" / "gpu.k8s.yaml").read_text()) == POD


def test_keys_are_sorted_at_every_depth(chart):
    Manifest(chart, "pod", POD)
    (rendered,) = Testing.synth(chart)
    assert list(rendered) == ["apiVersion", "kind", "metadata", "spec"]
    keys_in_order(rendered)


def test_a_cluster_scoped_kind_has_no_namespace_even_under_a_chart_that_has_one(app):
    chart = Chart(app, "gpu", namespace="team")
    Manifest(chart, "namespace", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    Manifest(chart, "x", config_map())
    namespace, other = Testing.synth(chart)
    assert "namespace" not in namespace["metadata"]
    assert other["metadata"]["namespace"] == "team"


def test_labels_and_annotations_added_later_arrive(chart):
    namespace = GpuNamespace(chart, "namespace")
    namespace.api_object.metadata.add_label("team", "ml")
    ApiObject.of(namespace).metadata.add_annotation("owner", "me")
    (rendered,) = Testing.synth(chart)
    assert rendered["metadata"]["labels"]["team"] == "ml"
    assert rendered["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "privileged"
    assert rendered["metadata"]["annotations"] == {"owner": "me"}


def test_patches_change_existing_and_missing_fields(chart):
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


def test_what_a_patch_adds_is_sorted_too(chart):
    x = Manifest(chart, "x", config_map(zeta={"b": 1}))
    x.add_json_patch(JsonPatch.add("/alpha", {"z": 1, "a": {"y": 2, "b": 3}}), JsonPatch.add("/zeta/a", 1))
    (rendered,) = Testing.synth(chart)
    assert list(rendered) == ["apiVersion", "kind", "metadata", "alpha", "zeta"]
    keys_in_order(rendered["alpha"])
    keys_in_order(rendered["zeta"])


def test_a_construct_and_cdk8s_give_the_same_object_to_patch(chart):
    namespace = GpuNamespace(chart, "namespace")
    ApiObject.of(namespace).add_json_patch(JsonPatch.add("/metadata/annotations", {"a": "1"}))
    namespace.api_object.add_json_patch(JsonPatch.add("/metadata/annotations/b", "2"))
    (rendered,) = Testing.synth(chart)
    assert rendered["metadata"]["annotations"] == {"a": "1", "b": "2"}


def test_rendering_leaves_the_given_body_as_it_was(chart):
    body = config_map(data={"b": None, "a": "1"})
    Manifest(chart, "x", body).add_json_patch(JsonPatch.add("/data/c", "2"))
    first, second = Testing.synth(chart), Testing.synth(chart)
    assert first == second
    assert body == config_map(data={"b": None, "a": "1"})


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


def test_it_renders_the_same_with_and_without_cdk8s(rows):
    for (metadata,) in rows:
        for kind in ["ConfigMap", "Namespace"]:
            for given in [{}, {"namespace": "team", "labels": {"of-chart": "yes", "a": "chart"}}]:
                chart = Chart(App(), "c", **given)
                made = Manifest(
                    chart, "x", {"apiVersion": "v1", "kind": kind, "metadata": {"name": "n", **metadata}, "data": {}}
                )
                without = made.to_json_in(given.get("namespace"), given.get("labels", {}))
                asked = made.to_json()
                assert without == asked, (metadata, kind, given)
                assert json.dumps(without) == json.dumps(asked), (metadata, kind, given)


def test_metadata_that_a_caller_has_read_is_rendered_by_cdk8s(chart):
    made = Manifest(chart, "x", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n"}})
    ApiObject.of(made).metadata.add_label("late", "yes")
    assert made.to_json_in(None, {})["metadata"]["labels"] == {"late": "yes"}


def test_an_object_without_a_name_gets_the_one_of_cdk8s(chart):
    made = Manifest(chart, "x", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}})
    assert made.to_json_in(None, {}) == made.to_json()
    assert made.to_json()["metadata"]["name"]
