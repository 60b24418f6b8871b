import re
from dataclasses import replace
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from depth import at_depth
from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.eligibility import Eligibility, vram_refusal
from gpu_constructs.capacity.planned import Device, NodeOffer
from app_tables import table

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


def refusal(one, node, runtime_classes=None):
    return Eligibility([one], [node], runtime_classes).refusal(0, 0)


def unknown_labels(one, node):
    return Eligibility([one], [node]).unknown_labels(0, 0)


TABLES = table(__file__, "eligibility")


def spec_of(row):
    """Return the pod spec of a row, with its node affinity in full."""
    spec = dict(row["spec"])
    if "terms" not in spec:
        return spec
    terms = []
    for rules in spec.pop("terms"):
        expressions = [rule(*text.split()) for text in rules if not text.startswith("field:")]
        fields = [rule(*text.removeprefix("field:").split()) for text in rules if text.startswith("field:")]
        parts = {"matchExpressions": expressions, "matchFields": fields}
        terms.append({key: value for key, value in parts.items() if value})
    return {**spec, **affinity(*terms)}


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


def test_labels_and_names_are_compared_as_the_scheduler_does():
    for row in TABLES["labels"]:
        assert refusal(consumer(spec_of(row)), offer(row.get("labels"))) == row["said"], row


def test_taints_are_tolerated_as_the_scheduler_does():
    for row in TABLES["taints"]:
        node = offer(taints=[taint(text) for text in row["taints"]])
        assert (refusal(consumer({"tolerations": row["tolerations"]}), node) is None) == row["is_taken"], row


def test_a_taint_is_named_as_kubectl_writes_it():
    for text in ("dedicated=ai:NoSchedule", "gpu:NoExecute"):
        said = refusal(consumer(), offer(taints=[taint(text)]))
        assert said == f"has the taint {text}, which its pods do not tolerate"


def test_pods_of_a_daemonset_tolerate_what_kubernetes_adds():
    for text, is_taken, in_host_network in [
        ("node.kubernetes.io/unschedulable:NoSchedule", True, True),
        ("node.kubernetes.io/not-ready:NoExecute", True, True),
        ("node.kubernetes.io/not-ready:NoSchedule", False, False),
        ("node.kubernetes.io/unreachable:NoExecute", True, True),
        ("node.kubernetes.io/disk-pressure:NoSchedule", True, True),
        ("node.kubernetes.io/memory-pressure:NoSchedule", True, True),
        ("node.kubernetes.io/pid-pressure:NoSchedule", True, True),
        ("node.kubernetes.io/network-unavailable:NoSchedule", False, True),
        ("node.kubernetes.io/out-of-service:NoExecute", False, False),
    ]:
        node = offer(taints=[taint(text)])
        assert (refusal(consumer(is_for_each_node=True), node) is None) == is_taken
        assert (refusal(consumer({"hostNetwork": True}, is_for_each_node=True), node) is None) == in_host_network
        assert refusal(consumer(), node) is not None


def test_a_pod_that_names_its_node_is_kept_off_by_noexecute_only():
    spec = {"nodeName": "talos-1"}
    assert refusal(consumer(spec), offer(taints=[taint("a:NoSchedule")])) is None
    assert refusal(consumer(spec), offer(taints=[taint("a:NoExecute")])) is not None
    assert refusal(consumer({**spec, "nodeSelector": {"a": "b"}}), offer()) is not None


def test_a_node_must_offer_what_one_pod_takes():
    for devices, asks, said in [
        ((Device(GPU, 4, None, 0),), {GPU: 4}, None),
        ((Device(GPU, 4, None, 0),), {GPU: 8}, f"offers 4 {GPU}, of which a pod wants 8"),
        ((Device(GPU, 1, None, 0), Device(GPU, 1, None, 1)), {GPU: 2}, None),
        ((Device(GPU, 1, None, 0),), {"nvidia.com/mig-1g.10gb": 1}, "offers no nvidia.com/mig-1g.10gb"),
        ((), {GPU: 1}, f"offers no {GPU}"),
        ((Device("gpu.nvidia.com", 1, None, 0),), {"gpu.nvidia.com": 1}, None),
        ((), {}, None),
    ]:
        assert refusal(consumer(asks=asks), offer(devices=devices)) == said


def test_a_runtime_class_demands_nodes_too():
    for spec, labels, scheduling, is_taken in [
        ({"runtimeClassName": "nvidia"}, {"r": "1"}, {"nodeSelector": {"r": "1"}}, True),
        ({"runtimeClassName": "nvidia"}, {}, {"nodeSelector": {"r": "1"}}, False),
        ({}, {}, {"nodeSelector": {"r": "1"}}, True),
        ({"runtimeClassName": "other"}, {}, {"nodeSelector": {"r": "1"}}, True),
        ({"runtimeClassName": "nvidia"}, {}, {}, True),
        ({"runtimeClassName": "nvidia", "nodeSelector": {"r": "2"}}, {"r": "1"}, {"nodeSelector": {"r": "1"}}, False),
    ]:
        assert (refusal(consumer(spec), offer(labels), {"nvidia": scheduling}) is None) == is_taken


def test_pods_that_their_runtime_class_contradicts_go_nowhere():
    spec = {"runtimeClassName": "nvidia", "nodeSelector": {"topology.kubernetes.io/zone": "a"}}
    classes = {"nvidia": {"nodeSelector": {"topology.kubernetes.io/zone": "b"}}}
    assert refusal(consumer(spec), offer(), classes) == (
        "has no topology.kubernetes.io/zone that would do: its pods want of it what no node has at once"
    )


def test_labels_that_nobody_can_know_are_let_pass_and_named():
    node = offer({"m": "1"})
    for row in TABLES["unknown"]:
        one = consumer(spec_of(row))
        assert (refusal(one, node) is None) == row["is_taken"], row
        assert unknown_labels(one, node) == tuple(row["open_labels"]), row


def test_only_labels_that_others_set_later_are_unknown():
    for label, is_unknown in [
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
    ]:
        wanting = consumer({"nodeSelector": {label: "x"}})
        assert (refusal(wanting, offer()) is None) == is_unknown
        assert refusal(wanting, offer({label: "x"})) is None
        assert unknown_labels(wanting, offer({label: "x"})) == ()
        assert refusal(wanting, offer({label: "y"})) is not None


def test_a_pool_is_no_single_node():
    for spec, said in [
        ({"nodeName": "gpu-3"}, "the node gpu-3"),
        ({"nodeSelector": {"kubernetes.io/hostname": "gpu-3"}}, "kubernetes.io/hostname gpu-3"),
        (affinity(names(rule("metadata.name", "In", "gpu-3"))), "the node gpu-3"),
        (affinity(term(rule("kubernetes.io/hostname", "DoesNotExist"))), "kubernetes.io/hostname"),
    ]:
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


def test_a_gpu_must_have_the_memory_that_a_pod_states():
    for devices, wanted, said in [
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
    ]:
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
    optional={"matchExpressions": st.lists(rules_drawn, max_size=3), "matchFields": st.lists(fields_drawn, max_size=1)},
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


@at_depth(400, quick=80)
@given(specs_drawn, labels_drawn, st.sampled_from(NODES))
def test_labels_that_are_all_declared_are_judged_as_the_documentation_says(spec, labels, name):
    got = refusal(consumer(spec), offer(labels, name=name))
    assert (got is None) == plainly_matches(spec, labels, name), got


UNKNOWN_KEYS = ("nvidia.com/a", "nvidia.com/b")


@at_depth(400, quick=50)
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


def test_reasons_are_one_line_each():
    spec = affinity(*[term(rule(f"k{i}", "Exists")) for i in range(6)])
    said = refusal(consumer(spec), offer())
    assert said is not None
    assert said.endswith("; and 3 more")
    assert not re.search(r"[\n.]\Z", said)


# How much a container may ask for


def test_a_container_asks_for_no_more_than_it_may_have():
    for asks, most_asked, most_each, is_taken in [
        (2, {}, 1, False),
        (2, {GPU: 2}, 1, False),
        (2, {GPU: 1}, 1, True),
        (2, {}, 2, True),
        (2, {}, None, True),
        (1, {}, 1, True),
    ]:
        shared = offer(devices=(Device(GPU, 4, None, 0, most_each=most_each), Device("other", 4, None, 0, most_each=1)))
        one = consumer(asks={GPU: asks}, most_asked=most_asked)
        said = f"shares GPUs so that a container gets 1 {GPU} at most, of which one asks for 2"
        assert refusal(one, shared) == (None if is_taken else said)


def test_a_node_that_offers_nothing_says_why():
    empty = replace(offer(devices=()), notes=("a", "its plugin does not run"))
    assert refusal(consumer(), empty) == f"offers no {GPU}: its plugin does not run"
    assert refusal(consumer(asks={"other": 1}), replace(offer(), notes=("a",))) == "offers no other"


def test_a_label_that_is_known_to_be_absent_is_no_guess():
    demanding = consumer({"nodeSelector": {"nvidia.com/x": "1"}})
    assert refusal(demanding, offer()) is None
    absent = replace(offer(), absent=frozenset(("nvidia.com/x",)))
    assert refusal(demanding, absent) == "has no label nvidia.com/x, where its pods want 1"
