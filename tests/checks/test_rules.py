"""Each rule with apps that break it and apps that follow it, as plain manifests."""

import copy
import re
from itertools import cycle, islice

import pytest

from app_tables import check_findings, objects
from gpu_constructs.catalog.sharing import Sharing
from gpu_constructs.checks.rules.table import CODES, RULES, broken_rules
from gpu_constructs.facts.app import Facts
from gpu_constructs.facts.provided import Provided
from gpu_constructs.facts.readable import quantity
from gpu_constructs.kube.annotations import IGNORE_RULES
from operations import grows_with
from tables import beside

GPU = "nvidia.com/gpu"
ROWS, SAYS = beside(__file__, "rules"), beside(__file__, "rules_say")
SLICED = Provided(gpu_resources={GPU: Sharing.time_slicing(replicas=2)}, node_labels=("nvidia.com/*",))


def app_of(row):
    return objects(row["objects"]), row.get("provided", ()), row.get("inventory")


def broken(manifests, provided=(), inventory=None, **more):
    return broken_rules(Facts(manifests, provided, inventory), **more)


def codes(manifests, provided=(), inventory=None, **more):
    return {finding.code for finding in broken(manifests, provided, inventory, **more)}


def leaving_out(code, manifests):
    """Return the objects and items of lists, each with an annotation that ignores the rule."""
    manifests = copy.deepcopy(manifests)
    while any(manifest["kind"] == "List" for manifest in manifests):
        manifests = [one for manifest in manifests for one in manifest.get("items", [manifest])]
    for manifest in manifests:
        manifest["metadata"].setdefault("annotations", {})[IGNORE_RULES] = code
    return manifests


@pytest.mark.parametrize("rule", RULES, ids=CODES)
def test_a_rule_finds_violations_unless_the_object_or_the_app_ignores_it(rule):
    for row in ROWS[rule.code]["broken"]:
        manifests, *app = app_of(row)
        found = broken(manifests, *app)
        assert rule.code in {finding.code for finding in found}, row
        assert all("\n" not in finding.problem and re.search(r"[.;] |, got ", finding.problem) for finding in found), (
            found
        )
        if rule.severity == "warning":
            assert all(finding.is_warning for finding in found if finding.code == rule.code), row
        assert rule.code not in codes(leaving_out(rule.code, manifests), *app), row
        assert rule.code not in codes(manifests, *app, ignore=[rule.code]), row


@pytest.mark.parametrize("rule", RULES, ids=CODES)
def test_a_rule_accepts_apps_that_follow_it(rule):
    assert ROWS[rule.code]["kept"]
    for row in ROWS[rule.code]["kept"]:
        assert rule.code not in codes(*app_of(row)), row


@pytest.mark.parametrize("sentence", SAYS)
def test_the_message_of_a_rule_has_a_reason_and_a_solution(sentence):
    check_findings(broken_rules, SAYS[sentence])


def test_codes_are_consecutive():
    assert tuple(f"R{number:02}" for number in range(1, 33)) == CODES


def test_amounts_are_read_as_kubernetes_reads_them():
    for given, number in [
        (1, 1),
        ("2", 2),
        ("1k", 1000),
        ("1Ki", 1024),
        ("1e3", 1000),
        ("+1", 1),
        ("1e100", 2**63 - 1),
        ("-1e100", -(2**63 - 1)),
        ("1e" + "9" * 5000, 2**63 - 1),
        ("1e0000002", 100),
        ("1" * 99 + "Ei", 2**63 - 1),
        ("1/2", None),
        ("1_0", None),
        (None, None),
    ]:
        assert quantity(given) == number, (given, number)


def deployments(count):
    pod = {"containers": [{"limits": {GPU: 1, "memory": "8Gi"}}], "runtimeClassName": "nvidia"}
    spec = {"strategy": {"type": "Recreate"}}
    return objects(
        {"kind": "Deployment", "name": f"d{n}", "spec": spec, "pod_metadata": {"labels": {"app": f"d{n}"}}, "pod": pod}
        for n in range(count)
    )


def test_the_work_of_the_rules_grows_linearly():
    def checking(count):
        manifests = deployments(count)
        return lambda: broken(manifests, [SLICED])

    assert checking(100)() == []
    assert grows_with(checking, 100) < 2.2


def replaced(value, path, given):
    """Return a copy in which one member, at any depth, has another value."""
    if not path:
        return given
    if isinstance(value, list):
        return [replaced(one, path[1:], given) if number == path[0] else one for number, one in enumerate(value)]
    return {key: replaced(one, path[1:], given) if key == path[0] else one for key, one in value.items()}


def places(value, path=()):
    for key, one in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*path, key)
        if isinstance(one, dict | list):
            yield from places(one, (*path, key))


def test_a_member_of_another_type_does_not_crash_the_rules():
    (row,) = SAYS["all that rules read"]
    written, *app = app_of(row)
    others = cycle([None, 3, "text", [None], {"a": None}])
    for index, made in enumerate(written):
        for path in places(made):
            # Each member gets two of the five values in turn.
            for given in islice(others, 2) if path not in (("apiVersion",), ("kind",)) else ():
                broken([*written[:index], replaced(made, path, given), *written[index + 1 :]], *app)


def test_a_budget_is_compared_only_with_pods_that_have_its_label():
    manifests = deployments(500)
    for number in range(500):
        spec = {"selector": {"matchLabels": {"app": f"d{number}"}}, "maxUnavailable": 1}
        manifests += objects([{"kind": "PodDisruptionBudget", "name": f"b{number}", "spec": spec}])
    looked = []

    class Counted(dict):
        def get(self, key, default=None):
            looked.append(key)
            return super().get(key, default)

    facts = Facts(manifests)
    for pod in facts.pods:
        object.__setattr__(pod, "metadata", {"labels": Counted(pod.metadata["labels"])})
    assert broken_rules(facts) == []
    # The rule reads each of the 500 pods a few times, not once for each budget.
    assert len(looked) < 5000


def test_a_pod_counts_like_in_the_scheduler():
    def box(count):
        return {"limits": {GPU: count}}

    def sidecar(count):
        return {**box(count), "restartPolicy": "Always"}

    for init, main, counted in [
        ([], [box(1), box(2)], 3),
        ([box(4)], [box(1)], 4),
        ([sidecar(1), box(4)], [box(1)], 5),
        ([box(4), sidecar(1)], [box(1)], 4),
        ([sidecar(2)], [box(3)], 5),
    ]:
        made = objects([{"kind": "Job", "pod": {"containers": main, "initContainers": init}}])
        (pod,) = Facts(made).gpu_pods
        assert pod.counts() == {GPU: counted}


def test_invalid_limits_are_ignored():
    for limits in [["nvidia.com/gpu"], "nvidia.com/gpu", 1]:
        spec = {"containers": [{"name": "c", "resources": {"limits": limits}}]}
        assert Facts([{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}]).gpu_pods == []
