import copy

from gpu_constructs import Toleration
from gpu_constructs.kube.placement import (
    check_affinity,
    gpu_node_affinity,
    label_exists,
    required_node_affinity,
    with_node_alternatives,
    with_node_expressions,
)
from refusals import refusal
from tables import cases

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@cases
def test_a_toleration_has_the_form_of_the_kubernetes_api(toleration, written):
    expected = written or {"key": "a", "operator": "Equal", "value": "", "effect": "PreferNoSchedule"}
    assert toleration.to_manifest() == expected


@cases
def test_values_that_kubernetes_does_not_allow_are_rejected(given, problem):
    assert refusal(Toleration, **given) == problem


def test_tegra_nodes_and_the_default_labels_of_nfd_are_alternatives():
    keys = {
        (tegra, foreign): [
            term["matchExpressions"][0]["key"].rpartition("/")[2]
            for term in gpu_node_affinity(tegra=tegra, foreign=foreign)["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
        ]
        for tegra in (False, True)
        for foreign in (False, True)
    }
    ours, foreign = ["pci-10de.present", "gpu.present"], ["pci-0300_10de.present", "pci-0302_10de.present"]
    tegra = ["cpu-model.vendor_id"]
    assert keys == {
        (False, False): ours,
        (True, False): ours + tegra,
        (False, True): ours + foreign,
        (True, True): ours + tegra + foreign,
    }


@cases
def test_more_expressions_apply_in_each_alternative_and_keep_the_rest(affinity, expressions, together):
    before = copy.deepcopy(affinity)
    assert with_node_expressions(affinity, expressions) == together
    assert affinity == before


@cases
def test_an_affinity_in_the_form_of_the_kubernetes_api_is_accepted(given):
    before = copy.deepcopy(given)
    check_affinity(given)
    assert given == before


@cases
def test_an_affinity_that_kubernetes_rejects_is_rejected(given, problem):
    assert refusal(check_affinity, given) == problem


def keys(affinity):
    terms = affinity["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    return ["".join(rule["key"] for rule in term["matchExpressions"]) for term in terms]


def of_terms(*names):
    return required_node_affinity([[label_exists(key) for key in name] for name in names])


def test_alternatives_apply_in_each_alternative_of_the_user():
    alternatives = [[label_exists("x")], [label_exists("y"), label_exists("z")]]
    assert keys(with_node_alternatives(None, alternatives)) == ["x", "yz"]
    assert keys(with_node_alternatives(of_terms("a", "b"), alternatives)) == ["ax", "ayz", "bx", "byz"]


def test_alternatives_that_already_apply_are_not_added_again():
    alternatives = [[label_exists("x")], [label_exists("y"), label_exists("z")]]
    for given in (of_terms("ax", "azy"), with_node_alternatives(of_terms("a", "b"), alternatives)):
        assert with_node_alternatives(given, alternatives) is given
    assert keys(with_node_alternatives(of_terms("ay"), alternatives)) == ["ayx", "ayyz"]
