import pytest

from gpu_constructs.capacity.demand.apart import most_per_node, placement_notes

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


def test_what_is_not_looked_at_is_told():
    spread = {"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}]}
    assert list(placement_notes(spread, is_apart=False)) == ["its topologySpreadConstraints are not looked at"]
    soft = {"topologySpreadConstraints": [{"whenUnsatisfiable": "ScheduleAnyway"}]}
    assert list(placement_notes(soft, is_apart=False)) == []
    other = away(HOST)
    assert list(placement_notes(other, is_apart=False)) == ["its podAntiAffinity to other pods is not looked at"]
    assert list(placement_notes(other, is_apart=True)) == []
    near = away(HOST, kind="podAffinity")
    assert list(placement_notes(near, is_apart=False)) == ["its podAffinity is not looked at"]
    assert list(placement_notes({"schedulerName": "volcano"}, is_apart=False)) == [
        "its scheduler volcano may place it otherwise"
    ]
    assert list(placement_notes({"schedulerName": "default-scheduler"}, is_apart=False)) == []


@pytest.mark.parametrize("rubbish", [None, [], "x", 3, {REQUIRED: "x"}, {REQUIRED: [None, 3, {"labelSelector": []}]}])
def test_rubbish_keeps_nobody_apart(rubbish):
    assert most_per_node({"affinity": {"podAntiAffinity": rubbish}}, {}, "ml") is None
    list(placement_notes({"affinity": rubbish, "topologySpreadConstraints": rubbish}, is_apart=False))
