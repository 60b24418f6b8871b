"""Tests of rules by which Node Feature Discovery sets labels, and of what reads these labels."""

import warnings

import pytest
import yaml
from cdk8s import ApiObject, Chart, Include, JsonPatch, Testing

from gpu_constructs import (
    External,
    FeatureExpression,
    FeatureMatch,
    FeatureRule,
    GpuConstructsWarning,
    GpuInventory,
    GpuNode,
    GpuWorkload,
    Kubernetes,
    NodeFeatureDiscoveryChart,
    NodeFeatureRule,
    plan_capacity,
    synthesize,
)

BOARD = "example.com/board"
GPU = FeatureMatch(feature="pci.device", match_expressions={"vendor": ["10de"]})


def board_rule(**given):
    return FeatureRule(**{"name": "board", "labels": {BOARD: "rtx"}, "match_features": [GPU], **given})


def made(chart, *rules, **given):
    return NodeFeatureRule(chart, "rule", rules=rules or [board_rule()], **given)


def rule(rules=None, **given):
    """Return the manifest of a rule. Raise what its construct raises."""
    chart = Chart(Testing.app(), "gpu")
    NodeFeatureRule(chart, "rule", rules=[board_rule(**given)] if rules is None else rules)
    return Testing.synth(chart)[0]["spec"]["rules"][0]


def expression(**given):
    return match(feature="cpu.model", match_expressions={"id": FeatureExpression(**given)})


def match(**given):
    return rule(match_features=[FeatureMatch(**given)])


def test_a_rule_with_all_options_is_valid(chart, objects, snapshot, keywords):
    every = board_rule(**keywords)
    role = FeatureRule(name="node role", labels={"node-role.kubernetes.io/gpu": ""})
    made(chart, every, role, name="other", extra_label_ns=["node-role.kubernetes.io"])
    profile = board_rule(labels={"profile.node.kubernetes.io/a": "b", "x.feature.node.kubernetes.io/a": "b"})
    NodeFeatureRule(chart, "profile", rules=[profile])
    assert objects(chart) == snapshot


def test_a_rule_that_node_feature_discovery_would_ignore_is_rejected(refused):
    refused(rule, LONG=1025 * "b")


def test_an_expression_that_node_feature_discovery_would_reject_is_rejected(refused):
    refused(expression)


def test_a_feature_that_node_feature_discovery_does_not_discover_is_rejected(refused):
    refused(match)


def test_every_operator_accepts_its_number_of_values():
    values = {0: "Exists DoesNotExist IsTrue IsFalse", 1: "In NotIn InRegexp Gt Ge Lt Le", 2: "In GtLt GeLe"}
    for count, operators in values.items():
        for operator in operators.split():
            given = [str(number) for number in range(count)]
            got = expression(op=operator, value=given)["matchFeatures"][0]["matchExpressions"]["id"]
            assert got == {"op": operator, **({"value": given} if given else {})}


# --- published labels -----------------------------------------------------------------------------------------

LABEL = {"labels": {BOARD: "rtx"}}
NFR = {"apiVersion": "nfd.k8s-sigs.io/v1alpha1", "kind": "NodeFeatureRule", "metadata": {"name": "a"}}


def typed(chart, folder):
    made(chart)


def raw(chart, folder, **metadata):
    added = ApiObject(chart, "raw", api_version=NFR["apiVersion"], kind=NFR["kind"], **metadata)
    added.add_json_patch(JsonPatch.add("/spec", {"rules": [{"name": "a", **LABEL}]}))


def included(chart, folder):
    (folder / "rule.yaml").write_text(yaml.safe_dump({**NFR, "spec": {"rules": [{"name": "a", **LABEL}]}}))
    Include(chart, "included", url=str(folder / "rule.yaml"))


def with_the_label_of_cdk8s(chart, folder):
    raw(chart, folder, metadata={"labels": {"app.kubernetes.io/managed-by": "cdk8s"}})


def templated(template):
    return lambda chart, folder: made(chart, board_rule(labels={}, labels_template=template))


@pytest.mark.parametrize(
    ("add", "is_published"),
    [
        (lambda chart, folder: None, False),
        (typed, True),
        (raw, True),
        (included, True),
        (with_the_label_of_cdk8s, True),
        (templated("example.com/{{ .x }}=rtx"), True),
        (templated("{{ range .pci.device }}example.com/board=rtx\n{{ end }}"), True),
        (templated("{{ range $i, $e := .pci.device -}}\n{{ .domain }}/board={{ $i }}\n{{ end }}"), True),
        (templated('{{ range .pci.device }}{{ printf "%s/board=%s" .a .b }}{{ end }}'), True),
        (templated("{{ range .pci.device }}\n  example.com/card-{{ .x }}=1\n{{ end }}"), False),
    ],
)
def test_pods_can_select_the_label_of_a_rule_of_any_origin(app, chart, tmp_path, recwarn, add, is_published):
    warnings.simplefilter("always")
    NodeFeatureDiscoveryChart(app, "nfd")
    External(app, "cluster", namespaces=["ml"], gpu_resources=["nvidia.com/gpu"])
    GpuWorkload(chart, "work", image="a:1", platform=Kubernetes(), namespace="ml", node_selector={BOARD: "rtx"})
    add(chart, tmp_path)
    said = [str(one) for one in synthesize(app).warnings]
    assert [BOARD in one and one.endswith("[R12]") for one in said] == ([] if is_published else [True])


def test_a_capacity_plan_lists_the_label_of_a_rule_as_a_condition():
    rule = {**NFR, "spec": {"rules": [{"name": "a", **LABEL}]}}
    limits = {"limits": {"nvidia.com/gpu": 1}}
    spec = {"nodeSelector": {BOARD: "rtx"}, "containers": [{"name": "a", "image": "a:1", "resources": limits}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}

    def planned(*manifests, **labels):
        return plan_capacity(manifests, GpuInventory(nodes=[GpuNode(name="n", **labels)]))

    assert planned(pod).all_fits == "no"
    assert planned(pod, rule).all_fits == "conditional"
    assert f"undeclared label {BOARD}" in planned(pod, rule).to_text("plan")
    assert planned(pod, rule, **LABEL).all_fits == "yes"
    assert planned(pod, rule, labels={BOARD: "other"}).all_fits == "no"


def test_a_rule_without_node_feature_discovery_has_a_warning(app, chart):
    made(chart)
    with pytest.warns(GpuConstructsWarning, match=r"gpu/rule: has no effect without Node Feature Discovery.*\[R32\]"):
        synthesize(app)
    External(app, "cluster", components=["node-feature-discovery"])
    assert synthesize(app).warnings == []
