import re
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.eligibility import (
    Eligibility,
    offer_key,
    placement_key,
    refusal,
    refusal_of,
    unknown_labels,
    vram_refusal,
)
from gpu_constructs.capacity.node_offer import Device, NodeOffer

GPU = "nvidia.com/gpu"


def consumer(spec=None, *, asks=None, **members):
    return Consumer(
        subject=0,
        kind="Deployment",
        namespace="ai",
        name="x",
        asks={GPU: 1} if asks is None else asks,
        pod_spec=spec or {},
        **members,
    )


GPUS = (Device(GPU, 1, 16303, 0),)


def offer(labels=None, taints=(), *, devices=GPUS, name="talos-1", count=1):
    return NodeOffer(name=name, count=count, devices=devices, labels=labels or {}, taints=taints)


def affinity(*terms):
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"affinity": {"nodeAffinity": required}}


def rule(key, operator, *values):
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def term(*rules):
    return {"matchExpressions": list(rules)}


def names(*rules):
    return {"matchFields": list(rules)}


def taint(text):
    key, _, rest = text.partition("=") if "=" in text else (text.rpartition(":")[0], "", ":" + text.rpartition(":")[2])
    value, _, effect = rest.partition(":")
    return {"key": key, "effect": effect, **({"value": value} if value else {})}


def test_an_empty_pod_goes_to_an_empty_node():
    assert refusal(consumer(), offer()) is None


@pytest.mark.parametrize(
    ("labels", "spec", "said"),
    [
        ({"a/x": "1"}, {"nodeSelector": {"a/x": "1"}}, None),
        ({"a/x": "2"}, {"nodeSelector": {"a/x": "1"}}, "has a/x=2, where its pods want 1"),
        ({}, {"nodeSelector": {"a/x": "1"}}, "has no label a/x, where its pods want 1"),
        ({"disk": ""}, {"nodeSelector": {"disk": ""}}, None),
        ({}, {"nodeSelector": {"disk": ""}}, "has no label disk, where its pods want it empty"),
        ({"n": "true"}, {"nodeSelector": {"n": True}}, None),
        ({"n": "b"}, affinity(term(rule("n", "In", "a", "b"))), None),
        ({"n": "c"}, affinity(term(rule("n", "In", "a", "b"))), "has n=c, where its pods want a or b"),
        ({"n": "b"}, affinity(term(rule("n", "NotIn", "a", "b"))), "has n=b, where its pods want another"),
        ({}, affinity(term(rule("n", "NotIn", "a", "b"))), None),
        ({"n": ""}, affinity(term(rule("n", "Exists"))), None),
        ({}, affinity(term(rule("n", "Exists"))), "has no label n, which its pods want"),
        ({}, affinity(term(rule("n", "DoesNotExist"))), None),
        (
            {"n": "a"},
            affinity(term(rule("n", "DoesNotExist"))),
            "has n=a, where its pods want no such label",
        ),
        ({"n": "9"}, affinity(term(rule("n", "Gt", "8"))), None),
        ({"n": "8"}, affinity(term(rule("n", "Gt", "8"))), "has n=8, where its pods want more than 8"),
        ({"n": "-9"}, affinity(term(rule("n", "Lt", "-8"))), None),
        ({"n": "10"}, affinity(term(rule("n", "Lt", "9"))), "has n=10, where its pods want less than 9"),
        ({}, affinity(term(rule("n", "Lt", "9"))), "has no label n, where its pods want less than 9"),
        ({"n": "8Gi"}, affinity(term(rule("n", "Gt", "1"))), "has n=8Gi, where its pods want more than 1"),
        ({"n": "1_0"}, affinity(term(rule("n", "Gt", "1"))), "has n=1_0, where its pods want more than 1"),
        # Terms are alternatives, rules in one are not, and a selector holds besides.
        ({"n": "a"}, affinity(term(rule("n", "In", "b")), term(rule("n", "In", "a"))), None),
        (
            {"n": "a"},
            affinity(term(rule("n", "In", "a"), rule("m", "Exists"))),
            "has no label m, which its pods want",
        ),
        (
            {"n": "a"},
            affinity(term(rule("n", "In", "b")), term(rule("m", "Exists"))),
            "matches no term of its pods' node affinity: has n=a, where its pods want b; "
            "has no label m, which its pods want",
        ),
        (
            {"n": "a"},
            {"nodeSelector": {"m": "1"}, **affinity(term(rule("n", "In", "a")))},
            "has no label m, where its pods want 1",
        ),
        # An empty term matches nothing, and no term at all neither.
        ({"n": "a"}, affinity({}), "is matched by nothing: the node affinity of its pods has no term"),
        ({"n": "a"}, affinity(), "is matched by nothing: the node affinity of its pods has no term"),
        ({"n": "a"}, affinity({}, term(rule("n", "Exists"))), None),
        ({"n": "a"}, {"affinity": {"nodeAffinity": {}}}, None),
        # A term with a rule that cannot be read matches nothing; another one may.
        (
            {"n": "a"},
            affinity(term(rule("n", "In"))),
            "cannot match 'n In', which is no rule that Kubernetes can read",
        ),
        (
            {"n": "9"},
            affinity(term(rule("n", "Gt", "8.5"))),
            "cannot match 'n Gt 8.5', which is no rule that Kubernetes can read",
        ),
        (
            {"n": "9"},
            affinity(term(rule("n", "Like", "8"))),
            "cannot match 'n Like 8', which is no rule that Kubernetes can read",
        ),
        ({"n": "9"}, affinity(term(rule("n", "Exists", "x")), term(rule("n", "Exists"))), None),
        # The name of the node.
        ({}, affinity(names(rule("metadata.name", "In", "talos-1"))), None),
        (
            {},
            affinity(names(rule("metadata.name", "In", "talos-2"))),
            "is talos-1, where its pods want the node to be talos-2",
        ),
        (
            {},
            affinity(names(rule("metadata.name", "NotIn", "talos-1"))),
            "is talos-1, where its pods want the node to not be talos-1",
        ),
        (
            {},
            affinity(names(rule("metadata.name", "Exists"))),
            "cannot match 'field metadata.name Exists', which is no rule that Kubernetes can read",
        ),
        (
            {},
            affinity(names(rule("metadata.name", "In", "talos-1", "talos-2"))),
            "cannot match 'field metadata.name In talos-1,talos-2', which is no rule that Kubernetes can read",
        ),
        # A label of that name is another matter.
        (
            {},
            {"nodeSelector": {"metadata.name": "talos-1"}},
            "has no label metadata.name, where its pods want talos-1",
        ),
        ({}, {"nodeName": "talos-1"}, None),
        ({}, {"nodeName": "talos-2"}, "is not the node talos-2, which its pods name"),
        # What is written wrongly does not crash.
        ({}, {"nodeSelector": None, "affinity": [], "tolerations": {}, "nodeName": None}, None),
        ({}, {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": None}}}, None),
    ],
)
def test_labels_and_names_are_compared_as_the_scheduler_does(labels, spec, said):
    assert refusal(consumer(spec), offer(labels)) == said


def test_a_number_beyond_64_bits_is_none():
    spec = affinity(term(rule("n", "Gt", "1")))
    assert refusal(consumer(spec), offer({"n": str(2**63 - 1)})) is None
    assert refusal(consumer(spec), offer({"n": str(2**63)})) is not None


def test_preferences_refuse_nothing():
    spec = {
        "affinity": {
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 1, "preference": term(rule("n", "Exists"))}
                ]
            }
        }
    }
    assert refusal(consumer(spec), offer()) is None


@pytest.mark.parametrize(
    ("taints", "tolerations", "is_taken"),
    [
        (["dedicated=ai:NoSchedule"], [], False),
        (["dedicated=ai:NoExecute"], [], False),
        (["dedicated=ai:PreferNoSchedule"], [], True),
        (["dedicated=ai:NoSchedule"], [{"operator": "Exists"}], True),
        (["dedicated=ai:NoSchedule"], [{"key": "", "operator": "Exists", "effect": "NoSchedule"}], True),
        (["dedicated=ai:NoExecute"], [{"operator": "Exists", "effect": "NoSchedule"}], False),
        (["dedicated=ai:NoSchedule"], [{"key": "dedicated", "operator": "Exists"}], True),
        (["dedicated=ai:NoSchedule"], [{"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}], True),
        (["dedicated=ai:NoSchedule"], [{"key": "dedicated", "operator": "Exists", "effect": "NoExecute"}], False),
        (["dedicated=ai:NoSchedule"], [{"key": "other", "operator": "Exists"}], False),
        (["dedicated=ai:NoSchedule"], [{"key": "dedicated", "value": "ai"}], True),
        (["dedicated=ai:NoSchedule"], [{"key": "dedicated", "operator": "Equal", "value": "ai"}], True),
        (["dedicated=ai:NoSchedule"], [{"key": "dedicated", "value": "web"}], False),
        (["dedicated=ai:NoSchedule"], [{"key": "dedicated"}], False),
        (["dedicated:NoSchedule"], [{"key": "dedicated"}], True),
        (["dedicated:NoSchedule"], [{"key": "dedicated", "value": ""}], True),
        (["dedicated=ai:NoSchedule"], [{"value": "ai"}], False),
        (["a:NoSchedule", "b:NoSchedule"], [{"key": "a", "operator": "Exists"}], False),
        (
            ["a:NoSchedule", "b:NoSchedule"],
            [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}],
            True,
        ),
        (["sla=95:NoSchedule"], [{"key": "sla", "operator": "Gt", "value": "90"}], True),
        (["sla=95:NoSchedule"], [{"key": "sla", "operator": "Gt", "value": "95"}], False),
        (["sla=95:NoSchedule"], [{"key": "sla", "operator": "Lt", "value": "96"}], True),
        (["sla=95:NoSchedule"], [{"key": "sla", "operator": "Lt", "value": "95"}], False),
        (["sla=high:NoSchedule"], [{"key": "sla", "operator": "Lt", "value": "95"}], False),
        (["sla=95:NoSchedule"], [{"key": "sla", "operator": "Near", "value": "95"}], False),
        (["a:NoExecute"], [{"key": "a", "operator": "Exists", "tolerationSeconds": 60}], True),
    ],
)
def test_taints_are_tolerated_as_the_scheduler_does(taints, tolerations, is_taken):
    got = refusal(consumer({"tolerations": tolerations}), offer(taints=[taint(text) for text in taints]))
    assert (got is None) == is_taken


def test_a_taint_is_named_as_kubectl_writes_it():
    assert refusal(consumer(), offer(taints=[taint("dedicated=ai:NoSchedule")])) == (
        "has the taint dedicated=ai:NoSchedule, which its pods do not tolerate"
    )
    assert refusal(consumer(), offer(taints=[taint("gpu:NoExecute")])) == (
        "has the taint gpu:NoExecute, which its pods do not tolerate"
    )


@pytest.mark.parametrize(
    ("text", "is_taken", "in_host_network"),
    [
        ("node.kubernetes.io/unschedulable:NoSchedule", True, True),
        ("node.kubernetes.io/not-ready:NoExecute", True, True),
        ("node.kubernetes.io/not-ready:NoSchedule", False, False),
        ("node.kubernetes.io/unreachable:NoExecute", True, True),
        ("node.kubernetes.io/disk-pressure:NoSchedule", True, True),
        ("node.kubernetes.io/memory-pressure:NoSchedule", True, True),
        ("node.kubernetes.io/pid-pressure:NoSchedule", True, True),
        ("node.kubernetes.io/network-unavailable:NoSchedule", False, True),
        ("node.kubernetes.io/out-of-service:NoExecute", False, False),
    ],
)
def test_pods_of_a_daemonset_tolerate_what_kubernetes_adds(text, is_taken, in_host_network):
    node = offer(taints=[taint(text)])
    assert (refusal(consumer(is_for_each_node=True), node) is None) == is_taken
    assert (refusal(consumer({"hostNetwork": True}, is_for_each_node=True), node) is None) == in_host_network
    assert refusal(consumer(), node) is not None


def test_a_pod_that_names_its_node_is_kept_off_by_noexecute_only():
    spec = {"nodeName": "talos-1"}
    assert refusal(consumer(spec), offer(taints=[taint("a:NoSchedule")])) is None
    assert refusal(consumer(spec), offer(taints=[taint("a:NoExecute")])) is not None
    assert refusal(consumer({**spec, "nodeSelector": {"a": "b"}}), offer()) is not None


@pytest.mark.parametrize(
    ("devices", "asks", "said"),
    [
        ((Device(GPU, 4, None, 0),), {GPU: 4}, None),
        ((Device(GPU, 4, None, 0),), {GPU: 8}, f"offers 4 {GPU}, of which a pod wants 8"),
        ((Device(GPU, 1, None, 0), Device(GPU, 1, None, 1)), {GPU: 2}, None),
        ((Device(GPU, 1, None, 0),), {"nvidia.com/mig-1g.10gb": 1}, "offers no nvidia.com/mig-1g.10gb"),
        ((), {GPU: 1}, f"offers no {GPU}"),
        ((Device("gpu.nvidia.com", 1, None, 0),), {"gpu.nvidia.com": 1}, None),
        ((), {}, None),
    ],
)
def test_a_node_must_offer_what_one_pod_takes(devices, asks, said):
    assert refusal(consumer(asks=asks), offer(devices=devices)) == said


@pytest.mark.parametrize(
    ("spec", "labels", "scheduling", "is_taken"),
    [
        ({"runtimeClassName": "nvidia"}, {"r": "1"}, {"nodeSelector": {"r": "1"}}, True),
        ({"runtimeClassName": "nvidia"}, {}, {"nodeSelector": {"r": "1"}}, False),
        ({}, {}, {"nodeSelector": {"r": "1"}}, True),
        ({"runtimeClassName": "other"}, {}, {"nodeSelector": {"r": "1"}}, True),
        ({"runtimeClassName": "nvidia"}, {}, {}, True),
        ({"runtimeClassName": "nvidia", "nodeSelector": {"r": "2"}}, {"r": "1"}, {"nodeSelector": {"r": "1"}}, False),
    ],
)
def test_a_runtime_class_demands_nodes_too(spec, labels, scheduling, is_taken):
    assert (refusal(consumer(spec), offer(labels), {"nvidia": scheduling}) is None) == is_taken


def test_a_runtime_class_brings_tolerations():
    classes = {"nvidia": {"tolerations": [{"key": GPU, "operator": "Exists"}]}}
    node = offer(taints=[taint(f"{GPU}:NoSchedule")])
    assert refusal(consumer({"runtimeClassName": "nvidia"}), node, classes) is None
    assert refusal(consumer(), node, classes) is not None


def test_pods_that_their_runtime_class_contradicts_go_nowhere():
    spec = {"runtimeClassName": "nvidia", "nodeSelector": {"topology.kubernetes.io/zone": "a"}}
    classes = {"nvidia": {"nodeSelector": {"topology.kubernetes.io/zone": "b"}}}
    assert refusal(consumer(spec), offer(), classes) == (
        "has no topology.kubernetes.io/zone that would do: its pods want of it what no node has at once"
    )


UNKNOWN = "nvidia.com/gpu.machine"


@pytest.mark.parametrize(
    ("spec", "is_taken", "open_labels"),
    [
        ({"nodeSelector": {UNKNOWN: "x"}}, True, (UNKNOWN,)),
        (affinity(term(rule(UNKNOWN, "NotIn", "x"))), True, (UNKNOWN,)),
        (affinity(term(rule(UNKNOWN, "DoesNotExist"))), True, (UNKNOWN,)),
        (affinity(term(rule(UNKNOWN, "Gt", "8"))), True, (UNKNOWN,)),
        # One rule that fails decides, one alternative that holds too.
        (affinity(term(rule(UNKNOWN, "Exists"), rule("n", "Exists"))), False, ()),
        (affinity(term(rule(UNKNOWN, "Exists")), term(rule("m", "Exists"))), True, ()),
        (affinity(term(rule(UNKNOWN, "Exists")), term(rule("n", "Exists"))), True, (UNKNOWN,)),
        (affinity(term(rule(UNKNOWN, "Exists"), rule("m", "Exists"))), True, (UNKNOWN,)),
        ({"nodeSelector": {UNKNOWN: "x"}, "nodeName": "talos-2"}, False, ()),
        (
            {"nodeSelector": {UNKNOWN: "x"}, **affinity(term(rule("kubernetes.io/arch", "In", "amd64")))},
            True,
            (UNKNOWN, "kubernetes.io/arch"),
        ),
        # What no value can satisfy is a no.
        ({"nodeSelector": {UNKNOWN: "x"}, **affinity(term(rule(UNKNOWN, "NotIn", "x")))}, False, ()),
        ({"nodeSelector": {UNKNOWN: "x"}, **affinity(term(rule(UNKNOWN, "In", "x", "y")))}, True, (UNKNOWN,)),
        (affinity(term(rule(UNKNOWN, "Exists"), rule(UNKNOWN, "DoesNotExist"))), False, ()),
        (affinity(term(rule(UNKNOWN, "Gt", "8"), rule(UNKNOWN, "Lt", "9"))), False, ()),
        (affinity(term(rule(UNKNOWN, "Gt", "8"), rule(UNKNOWN, "Lt", "10"))), True, (UNKNOWN,)),
        (
            affinity(term(rule(UNKNOWN, "Gt", "8"), rule(UNKNOWN, "Lt", "10"), rule(UNKNOWN, "NotIn", "9"))),
            False,
            (),
        ),
        (affinity(term(rule(UNKNOWN, "Lt", "0"), rule(UNKNOWN, "NotIn", "-1"))), True, (UNKNOWN,)),
        (affinity(term(rule(UNKNOWN, "Exists"), rule(UNKNOWN, "NotIn", "any"))), True, (UNKNOWN,)),
        # A valid alternative is not spoilt by one that cannot be read.
        (affinity(term(rule(UNKNOWN, "In"))), False, ()),
    ],
)
def test_labels_that_nobody_can_know_are_let_pass_and_named(spec, is_taken, open_labels):
    node = offer({"m": "1"})
    assert (refusal(consumer(spec), node) is None) == is_taken
    assert unknown_labels(consumer(spec), node) == open_labels


@pytest.mark.parametrize(
    ("label", "is_unknown"),
    [
        ("nvidia.com/gpu.product", True),
        ("feature.node.kubernetes.io/cpu-model.vendor_id", True),
        ("kubernetes.io/arch", True),
        ("topology.kubernetes.io/zone", True),
        ("topology.kubernetes.io/region", True),
        ("node.kubernetes.io/instance-type", True),
        ("extensions.talos.dev/nvidia-container-toolkit", True),
        ("eks.amazonaws.com/nodegroup", True),
        ("cloud.google.com/gke-accelerator", True),
        ("kubernetes.azure.com/agentpool", True),
        ("karpenter.sh/nodepool", True),
        ("node-role.kubernetes.io/gpu", False),
        ("kubernetes.io/hostname", False),
        ("notnvidia.com/gpu", False),
        ("example.com/pool", False),
        ("pool", False),
    ],
)
def test_only_labels_that_others_set_later_are_unknown(label, is_unknown):
    wanting = consumer({"nodeSelector": {label: "x"}})
    assert (refusal(wanting, offer()) is None) == is_unknown
    assert refusal(wanting, offer({label: "x"})) is None
    assert unknown_labels(wanting, offer({label: "x"})) == ()
    assert refusal(wanting, offer({label: "y"})) is not None


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"nodeName": "gpu-3"}, "the node gpu-3"),
        ({"nodeSelector": {"kubernetes.io/hostname": "gpu-3"}}, "kubernetes.io/hostname gpu-3"),
        (affinity(names(rule("metadata.name", "In", "gpu-3"))), "the node gpu-3"),
        (affinity(term(rule("kubernetes.io/hostname", "DoesNotExist"))), "kubernetes.io/hostname"),
    ],
)
def test_a_pool_is_no_single_node(spec, said):
    assert refusal(consumer(spec), offer(name="gpu-3", count=2)) == (
        f"is a pool whose nodes have no names here, where its pods want {said}; declare that node by itself"
    )


def test_a_pool_takes_pods_that_avoid_a_node():
    avoiding = consumer(affinity(term(rule("kubernetes.io/hostname", "NotIn", "gpu-3"))))
    by_name = consumer(affinity(names(rule("metadata.name", "NotIn", "gpu-3"))))
    pool = offer(name="gpu", count=2)
    assert refusal(avoiding, pool) is None
    assert unknown_labels(avoiding, pool) == ("kubernetes.io/hostname",)
    assert refusal(by_name, pool) is None
    assert unknown_labels(by_name, pool) == ("metadata.name",)
    assert refusal(consumer(affinity(term(rule("kubernetes.io/hostname", "Exists")))), pool) is None


@pytest.mark.parametrize(
    ("devices", "wanted", "said"),
    [
        ((Device(GPU, 4, 16303, 0),), None, None),
        ((Device(GPU, 4, 16303, 0),), 16303, None),
        (
            (Device(GPU, 4, 16303, 0),),
            20480,
            "has GPU memory 16303Mi, of which a pod wants 20480Mi (gpu-constructs/vram)",
        ),
        ((Device(GPU, 4, None, 0),), 20480, None),
        ((Device(GPU, 1, 16303, 0), Device(GPU, 1, None, 1)), 20480, None),
        ((Device(GPU, 1, 16303, 0), Device(GPU, 1, 24576, 1)), 20480, None),
        (
            (Device(GPU, 4, 16303, 0, vram_each_mib=4075),),
            8192,
            "has GPU memory 16303Mi, of which MPS gives each holder 4075Mi and a pod wants 8192Mi "
            "(gpu-constructs/vram)",
        ),
        ((Device(GPU, 4, 16303, 0, vram_each_mib=4075),), 4075, None),
        ((Device("nvidia.com/mig-1g.5gb", 1, 4864, 0, "1g.5gb"),), 8192, None),
    ],
)
def test_a_gpu_must_have_the_memory_that_a_pod_states(devices, wanted, said):
    assert vram_refusal(consumer(vram_mib=wanted), offer(devices=devices)) == said


# Against another implementation, written from the documentation of Kubernetes


KEYS, VALUES, NODES = ("a", "b", "c/d"), ("x", "y", "1", "2", "10"), ("n1", "n2")
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Bad")
labels_drawn = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES))
rules_drawn = st.builds(
    lambda key, operator, values: rule(key, operator, *values),
    st.sampled_from(KEYS),
    st.sampled_from(OPERATORS),
    st.lists(st.sampled_from(VALUES), max_size=2),
)
fields_drawn = st.builds(
    lambda operator, values: rule("metadata.name", operator, *values),
    st.sampled_from(OPERATORS),
    st.lists(st.sampled_from(NODES), min_size=1, max_size=2),
)
terms_drawn = st.fixed_dictionaries(
    {},
    optional={
        "matchExpressions": st.lists(rules_drawn, max_size=3),
        "matchFields": st.lists(fields_drawn, max_size=1),
    },
)
specs_drawn = st.builds(
    lambda selector, terms: {"nodeSelector": selector, **({} if terms is None else affinity(*terms))},
    labels_drawn,
    st.none() | st.lists(terms_drawn, max_size=3),
)


def plainly_matches(spec, labels, name):
    if any(labels.get(key) != value for key, value in spec["nodeSelector"].items()):
        return False
    if "affinity" not in spec:
        return True
    return any(plainly_holds(one, labels, name) for one in terms_of(spec))


def terms_of(spec):
    return spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]


def plainly_holds(one, labels, name):
    expressions, fields = one.get("matchExpressions", []), one.get("matchFields", [])
    if not expressions and not fields:
        return False
    for each in fields:
        if len(each["values"]) != 1 or each["operator"] not in ("In", "NotIn"):
            return False
    for each in expressions:
        count, operator = len(each.get("values", [])), each["operator"]
        if operator not in OPERATORS[:-1] or (operator in ("In", "NotIn") and not count):
            return False
        if operator in ("Exists", "DoesNotExist") and count:
            return False
        if operator in ("Gt", "Lt") and (count != 1 or not each["values"][0].isdigit()):
            return False
    found = {**{f"l:{key}": value for key, value in labels.items()}, "f:metadata.name": name}
    for front, each in [("l:", one) for one in expressions] + [("f:", one) for one in fields]:
        has, values = found.get(front + each["key"]), each.get("values", [])
        if has is None:
            if each["operator"] in ("In", "Exists", "Gt", "Lt"):
                return False
        elif (
            (each["operator"] == "In" and has not in values)
            or (each["operator"] == "NotIn" and has in values)
            or each["operator"] == "DoesNotExist"
            or (each["operator"] == "Gt" and not (has.isdigit() and int(has) > int(values[0])))
            or (each["operator"] == "Lt" and not (has.isdigit() and int(has) < int(values[0])))
        ):
            return False
    return True


@settings(max_examples=400)
@given(specs_drawn, labels_drawn, st.sampled_from(NODES))
def test_labels_that_are_all_declared_are_judged_as_the_documentation_says(spec, labels, name):
    got = refusal(consumer(spec), offer(labels, name=name))
    assert (got is None) == plainly_matches(spec, labels, name), got


UNKNOWN_KEYS = ("nvidia.com/a", "nvidia.com/b")


@settings(max_examples=200)
@given(st.data())
def test_unknown_labels_pass_exactly_where_some_values_of_them_would(data):
    def unknown(drawn):
        return {("nvidia.com/" + key if key in "ab" else key): value for key, value in drawn.items()}

    def unknown_rules(drawn):
        return [{**one, "key": next(iter(unknown({one["key"]: 0})))} for one in drawn]

    one_term = st.lists(rules_drawn, min_size=1, max_size=3).map(unknown_rules).map(lambda rules: term(*rules))
    selector = unknown(data.draw(st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=1)))
    terms = data.draw(st.none() | st.lists(one_term, min_size=1, max_size=2))
    labels = {key: value for key, value in data.draw(labels_drawn).items() if key == "c/d"}
    spec = {"nodeSelector": selector, **({} if terms is None else affinity(*terms))}
    # More values than any rules can tell apart.
    possible = [None, "free", "0", "3", "11", "12", *VALUES]
    is_taken = any(
        plainly_matches(spec, labels | {k: v for k, v in zip(UNKNOWN_KEYS, found, strict=True) if v is not None}, "n")
        for found in product(possible, repeat=2)
    )
    assert (refusal(consumer(spec), offer(labels, name="n")) is None) == is_taken


tolerations_drawn = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "key": st.sampled_from(["a", "b"]),
            "operator": st.sampled_from(["Equal", "Exists"]),
            "value": st.sampled_from(["", "x"]),
            "effect": st.sampled_from(["NoSchedule", "NoExecute"]),
        },
    ),
    max_size=2,
)
consumers_drawn = st.builds(
    lambda spec, tolerations, count, each, name: consumer(
        {**spec, "tolerations": tolerations, **({"nodeName": name} if name else {})},
        asks={GPU: count},
        is_for_each_node=each,
    ),
    specs_drawn,
    tolerations_drawn,
    st.integers(1, 2),
    st.booleans(),
    st.sampled_from(["", "", "", "n1"]),
)
offers_drawn = st.builds(
    lambda labels, taints, slots, name, count: offer(
        {**labels, "nobody/asks": name},
        [taint(text) for text in taints],
        devices=(Device(GPU, slots, None, 0), Device("other/thing", slots, None, 0)),
        name=name,
        count=count,
    ),
    labels_drawn,
    st.lists(st.sampled_from(["a=x:NoSchedule", "b:NoExecute", "a:PreferNoSchedule"]), max_size=1),
    st.integers(1, 2),
    st.sampled_from(NODES),
    st.integers(1, 2),
)


@settings(max_examples=150)
@given(st.lists(consumers_drawn, max_size=4), st.lists(offers_drawn, max_size=4))
def test_judging_many_at_once_says_the_same_as_judging_each(consumers, offers):
    many = Eligibility(consumers, offers)
    for (i, one), (j, node) in product(enumerate(consumers), enumerate(offers)):
        assert many.refusal(i, j) == refusal(one, node)
        assert many.accepts(i, j) == (refusal(one, node) is None)
        assert many.unknown_labels(i, j) == unknown_labels(one, node)
    for i, j in product(range(len(consumers)), repeat=2):
        if placement_key(consumers[i]) == placement_key(consumers[j]):
            assert many.consumer_groups[i] == many.consumer_groups[j]
    for i, j in product(range(len(offers)), repeat=2):
        if offer_key(offers[i]) == offer_key(offers[j]):
            assert many.offer_groups[i] == many.offer_groups[j]


def test_nodes_that_differ_in_what_nobody_asks_for_are_one_group():
    offers = [offer({"kubernetes.io/hostname": f"n{i}", "pool": "x"}, name=f"n{i}") for i in range(3)]
    many = Eligibility([consumer({"nodeSelector": {"pool": "x"}}), consumer()], offers)
    assert many.offer_groups == [0, 0, 0]
    others = [
        offer({"pool": "x"}, name="a"),
        offer({"pool": "x"}, name="b", count=2),
        offer({"pool": "x"}, name="c", devices=(*GPUS, Device("other/thing", 1, None, 0))),
    ]
    assert Eligibility([consumer({"nodeSelector": {"pool": "x"}})], others).offer_groups == [0, 0, 0]
    assert many.consumer_groups == [0, 1]
    by_name = Eligibility([consumer({"nodeSelector": {"kubernetes.io/hostname": "n1"}})], offers)
    assert by_name.offer_groups == [0, 1, 2]
    assert [by_name.refusal(0, i) is None for i in range(3)] == [False, True, False]


def test_a_pool_stays_one_among_many():
    wanting = consumer({"nodeSelector": {"kubernetes.io/hostname": "gpu-3"}})
    pool = offer(name="gpu", count=2)
    assert Eligibility([wanting], [pool]).refusal(0, 0) == refusal(wanting, pool)


def test_pods_that_differ_in_anything_that_counts_have_keys_of_their_own():
    specs = [
        {},
        {"nodeName": "n"},
        {"nodeSelector": {"a": "1"}},
        {"nodeSelector": {"a": "2"}},
        {"runtimeClassName": "nvidia"},
        {"tolerations": [{"operator": "Exists"}]},
        affinity(),
        affinity(term(rule("a", "Exists"))),
        affinity(names(rule("metadata.name", "In", "n"))),
    ]
    consumers = [*map(consumer, specs), consumer(asks={GPU: 2}), consumer(is_for_each_node=True)]
    assert len({placement_key(one) for one in consumers}) == len(consumers)


def test_keys_do_not_hang_on_memory_or_on_what_containers_run():
    keys = {
        placement_key(consumer({"containers": [{"image": image}]}, vram_mib=mib)) for image, mib in [("a", 1), ("b", 2)]
    }
    assert len(keys) == 1


def test_reasons_are_one_line_each():
    spec = affinity(*[term(rule(f"k{i}", "Exists")) for i in range(6)])
    said = refusal(consumer(spec), offer())
    assert said is not None
    assert said.endswith("; and 3 more")
    assert not re.search(r"[\n.]\Z", said)


# How much a container may ask for


@pytest.mark.parametrize(
    ("asks", "most_asked", "most_each", "is_taken"),
    [
        (2, {}, 1, False),
        (2, {GPU: 2}, 1, False),
        (2, {GPU: 1}, 1, True),
        (2, {}, 2, True),
        (2, {}, None, True),
        (1, {}, 1, True),
    ],
)
def test_a_container_asks_for_no_more_than_it_may_have(asks, most_asked, most_each, is_taken):
    shared = offer(devices=(Device(GPU, 4, None, 0, most_each=most_each), Device("other", 4, None, 0, most_each=1)))
    one = consumer(asks={GPU: asks}, most_asked=most_asked)
    said = f"shares GPUs so that a container gets 1 {GPU} at most, of which one asks for 2"
    assert refusal(one, shared) == (None if is_taken else said)
    many = Eligibility([consumer(asks={}), one], [offer(), shared])
    assert many.accepts(1, 1) == is_taken
    assert many.refusal(1, 1) == (None if is_taken else said)


def test_one_device_that_gives_more_is_enough():
    devices = (Device(GPU, 4, None, 0, most_each=1), Device(GPU, 4, None, 1))
    assert refusal(consumer(asks={GPU: 2}), offer(devices=devices)) is None


def test_a_node_that_offers_nothing_says_why():
    empty = replace(offer(devices=()), notes=("a", "its plugin does not run"))
    assert refusal(consumer(), empty) == f"offers no {GPU}: its plugin does not run"
    assert refusal(consumer(asks={"other": 1}), replace(offer(), notes=("a",))) == "offers no other"


def test_a_label_that_is_known_to_be_absent_is_no_guess():
    bare = offer_key(offer())
    demands = placement_key(consumer({"nodeSelector": {"nvidia.com/x": "1"}}))
    assert refusal_of(demands, bare) is None
    absent = replace(bare, absent=frozenset(("nvidia.com/x",)))
    assert refusal_of(demands, absent) == "has no label nvidia.com/x, where its pods want 1"
