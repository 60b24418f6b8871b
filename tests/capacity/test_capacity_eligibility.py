from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from depth import at_depth
from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.eligibility import Eligibility, vram_refusal
from gpu_constructs.capacity.planned import Device, NodeOffer
from tables import beside

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


TABLES = beside(__file__, "eligibility")


def spec_of(row):
    """Return the pod spec of a row, with its node affinity in full."""
    spec = dict(row.get("spec", {}))
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


def taint(text):
    key, _, rest = text.partition("=") if "=" in text else (text.rpartition(":")[0], "", ":" + text.rpartition(":")[2])
    value, _, effect = rest.partition(":")
    return {"key": key, "effect": effect, **({"value": value} if value else {})}


REFUSALS = {"labels and names are compared as the scheduler does": TABLES["labels"], **TABLES["refusals"]}


@pytest.mark.parametrize("sentence", REFUSALS)
def test_a_node_rejects_pods_with_a_reason(sentence):
    for row in REFUSALS[sentence]:
        given = {name: row[name] for name in ("asks", "is_for_each_node", "most_asked", "vram_mib") if name in row}
        one = consumer(spec_of(row), **given)
        devices = [Device(**{"resource": GPU, "vram_mib": None, **each}) for each in row.get("devices", ())]
        where = {"name": row.get("name", "talos-1"), "count": row.get("count", 1)}
        node = offer(row.get("labels"), list(map(taint, row.get("taints", ()))), **where)
        node = replace(node, devices=devices if "devices" in row else GPUS, notes=tuple(row.get("notes", ())))
        node = replace(node, absent=frozenset(row.get("absent", ())))
        if "said_of_memory" in row:
            assert vram_refusal(one, node) == row["said_of_memory"], row
        else:
            assert refusal(one, node, row.get("runtime_classes")) == row["said"], row
        if "open_labels" in row:
            assert unknown_labels(one, node) == tuple(row["open_labels"]), row


def test_tolerations_match_taints_as_in_the_scheduler():
    for row in TABLES["taints"]:
        node = offer(taints=[taint(text) for text in row["taints"]])
        assert (refusal(consumer({"tolerations": row["tolerations"]}), node) is None) == row["is_taken"], row


def test_labels_of_unknown_value_match_and_are_named():
    node = offer({"m": "1"})
    for row in TABLES["unknown"]:
        one = consumer(spec_of(row))
        assert (refusal(one, node) is None) == row["is_taken"], row
        assert unknown_labels(one, node) == tuple(row["open_labels"]), row


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
def test_declared_labels_match_as_kubernetes_documents(spec, labels, name):
    got = refusal(consumer(spec), offer(labels, name=name))
    assert (got is None) == plainly_matches(spec, labels, name), got


UNKNOWN_KEYS = ("nvidia.com/a", "nvidia.com/b")


@at_depth(400, quick=50)
@given(st.data())
def test_unknown_labels_match_exactly_if_some_values_would(data):
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


def test_nodes_that_differ_in_unselected_labels_are_one_group():
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
