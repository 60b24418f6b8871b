import pytest

from gpu_constructs import GpuConstructsError, Toleration
from gpu_constructs.placement import (
    CRITICAL_ADDONS,
    GPU_TAINT,
    gpu_node_affinity,
    label_exists,
    label_is,
    required_node_affinity,
    tolerations,
)
from gpu_constructs.pod_specs import node_labels_required


def refusal(**given):
    with pytest.raises(GpuConstructsError) as refused:
        Toleration(**given)
    return str(refused.value)


@pytest.mark.parametrize(
    ("toleration", "written"),
    [
        (
            Toleration(key="dedicated", value="ai", effect="NoSchedule"),
            {"key": "dedicated", "operator": "Equal", "value": "ai", "effect": "NoSchedule"},
        ),
        (Toleration(operator="Exists"), {"operator": "Exists"}),
        (Toleration(key="a.b/c", operator="Exists"), {"key": "a.b/c", "operator": "Exists"}),
        (
            Toleration(key="a", operator="Exists", effect="NoExecute", toleration_seconds=0),
            {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0},
        ),
        (Toleration(key="a", value="", effect="PreferNoSchedule"), None),
    ],
)
def test_a_toleration_is_written_as_kubernetes_writes_it(toleration, written):
    expected = written or {"key": "a", "operator": "Equal", "value": "", "effect": "PreferNoSchedule"}
    assert toleration.to_manifest() == expected


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (
            {"key": "a", "effect": "NoSchedul"},
            "toleration.effect must be one of 'NoSchedule', 'PreferNoSchedule', 'NoExecute'; got 'NoSchedul' "
            "(did you mean 'NoSchedule'?)",
        ),
        (
            {"key": "a", "operator": "Exist"},
            "toleration.operator must be one of 'Equal', 'Exists'; got 'Exist' (did you mean 'Exists'?)",
        ),
        (
            {"key": "a", "operator": "Exists", "value": "ai"},
            "toleration.value must be left out with operator 'Exists'; got 'ai'",
        ),
        ({"value": "ai"}, "toleration.key is required with operator 'Equal'; got None"),
        ({"key": "a b"}, "toleration.key has a key that is no label key; got 'a b'"),
        (
            {"key": "a", "effect": "NoSchedule", "toleration_seconds": 5},
            "toleration.toleration_seconds needs effect 'NoExecute'; got 'NoSchedule'",
        ),
        (
            {"key": "a", "effect": "NoExecute", "toleration_seconds": True},
            "toleration.toleration_seconds must be an int, got True (bool)",
        ),
    ],
)
def test_what_kubernetes_would_not_take_is_refused(given, problem):
    assert refusal(**given) == problem


def test_a_value_that_is_no_label_value_is_refused():
    problem = refusal(key="a", value="b c")
    assert problem.startswith("toleration.")
    assert "must be a label value" in problem
    assert problem.endswith("got 'b c'")


@pytest.mark.parametrize("field", ["key", "value"])
def test_a_word_of_another_type_is_refused_as_a_python_type(field):
    problem = refusal(**{"key": "a", field: 5})
    assert problem.startswith(f"toleration.{field} must be ")
    assert "int" in problem


def test_lists_join_in_order_without_repeats():
    taint = Toleration(key="dedicated", value="ai")
    assert tolerations((CRITICAL_ADDONS, GPU_TAINT), [taint, GPU_TAINT], [taint]) == [
        {"key": "CriticalAddonsOnly", "operator": "Exists"},
        {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
        {"key": "dedicated", "operator": "Equal", "value": "ai"},
    ]
    assert tolerations() == []


def test_a_required_affinity_takes_any_of_its_terms_and_all_of_a_terms_expressions():
    terms = [[label_is("a", "x", "y"), label_exists("b")], [label_exists("c")]]
    assert required_node_affinity(terms)["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] == {
        "nodeSelectorTerms": [
            {
                "matchExpressions": [
                    {"key": "a", "operator": "In", "values": ["x", "y"]},
                    {"key": "b", "operator": "Exists"},
                ]
            },
            {"matchExpressions": [{"key": "c", "operator": "Exists"}]},
        ]
    }


def test_gpu_pods_go_where_discovery_or_an_administrator_marked_a_gpu():
    assert list(node_labels_required({"affinity": gpu_node_affinity()})) == [
        {"feature.node.kubernetes.io/pci-10de.present", "nvidia.com/gpu.present"}
    ]
