import pytest

from capacity_consumers import wants
from gpu_constructs.capacity.demand.apart import most_per_node, placement_notes
from gpu_constructs.capacity.demand.between import rules_between

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
HOST = {"topologyKey": "kubernetes.io/hostname"}
OWN = {"matchLabels": {"app": "x"}}


def away(*terms, kind="podAntiAffinity"):
    return {"affinity": {kind: {REQUIRED: list(terms)}}}


def expressed(key, operator, *values):
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ({**HOST, "labelSelector": OWN}, 1),
        ({**HOST, "labelSelector": {}}, 1),
        (HOST, None),
        ({**HOST, "labelSelector": {"matchLabels": {"app": "y"}}}, None),
        ({**HOST, "labelSelector": {"matchLabels": {"app": "x", "tier": "z"}}}, None),
        ({"topologyKey": "topology.kubernetes.io/zone", "labelSelector": OWN}, None),
        ({**HOST, "labelSelector": OWN, "namespaces": ["ml"]}, 1),
        ({**HOST, "labelSelector": OWN, "namespaces": ["other"]}, None),
        ({**HOST, "labelSelector": OWN, "namespaceSelector": {}}, 1),
        ({**HOST, "labelSelector": OWN, "namespaceSelector": {"matchLabels": {"a": "b"}}}, None),
        ({**HOST, "labelSelector": OWN, "matchLabelKeys": ["pod-template-hash"]}, 1),
        ({**HOST, "labelSelector": OWN, "mismatchLabelKeys": ["pod-template-hash"]}, None),
        ({**HOST, "labelSelector": expressed("app", "In", "x", "y")}, 1),
        ({**HOST, "labelSelector": expressed("app", "In", "y")}, None),
        ({**HOST, "labelSelector": expressed("app", "Exists")}, 1),
        ({**HOST, "labelSelector": expressed("app", "DoesNotExist")}, None),
        ({**HOST, "labelSelector": expressed("tier", "NotIn", "x")}, 1),
        ({**HOST, "labelSelector": expressed("app", "NotIn", "x")}, None),
        ({**HOST, "labelSelector": expressed("app", "Roughly", "x")}, None),
    ],
)
def test_pods_keep_off_nodes_of_their_like(term, expected):
    assert most_per_node(away(term), {"app": "x"}, "ml") == expected


def test_another_scheduler_is_told():
    assert list(placement_notes({"schedulerName": "volcano"})) == [
        "its scheduler volcano places its pods where kube-scheduler would"
    ]
    assert list(placement_notes({"schedulerName": "default-scheduler"})) == []


@pytest.mark.parametrize("rubbish", [None, [], "x", 3, {REQUIRED: "x"}, {REQUIRED: [None, 3, {"labelSelector": []}]}])
def test_rubbish_keeps_nobody_apart(rubbish):
    assert most_per_node({"affinity": {"podAntiAffinity": rubbish}}, {}, "ml") is None
    pods = wants("a", pod_spec={"affinity": {"podAffinity": rubbish}, "topologySpreadConstraints": rubbish})
    assert rules_between([pods], []).nears == []
