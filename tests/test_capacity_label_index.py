from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_consumers import node, wants
from gpu_constructs.capacity.eligibility import placement_key, refusal
from gpu_constructs.capacity.label_index import LabelIndex

KEYS = ["zone", "nvidia.com/gpu.product", "kubernetes.io/hostname", "disk"]
values = st.sampled_from(["a", "b", "n0"])
rules = st.fixed_dictionaries(
    {
        "key": st.sampled_from(KEYS),
        "operator": st.sampled_from(["In", "In", "NotIn", "Exists", "DoesNotExist"]),
        "values": st.lists(values, min_size=1, max_size=2),
    }
)
terms = st.lists(st.fixed_dictionaries({"matchExpressions": st.lists(rules, min_size=1, max_size=2)}), max_size=3)


def pods(selector, terms):
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return wants(pod_spec={"nodeSelector": selector, **({"affinity": {"nodeAffinity": required}} if terms else {})})


@given(
    st.dictionaries(st.sampled_from(KEYS), values, max_size=2),
    terms,
    st.lists(st.tuples(st.dictionaries(st.sampled_from(KEYS), values), st.integers(1, 2)), min_size=1, max_size=5),
)
@settings(max_examples=300)
def test_no_node_that_takes_a_pod_is_left_out(selector, terms, nodes):
    offers = [node(f"n{at}", labels=labels, count=count) for at, (labels, count) in enumerate(nodes)]
    consumer = pods(selector, terms)
    found = LabelIndex(offers).candidates(placement_key(consumer))
    assert {at for at, offer in enumerate(offers) if refusal(consumer, offer) is None} <= set(found)
    assert list(found) == sorted(set(found))


def test_a_selector_leaves_few_of_many():
    index = LabelIndex([node(f"n{at}", labels={"zone": f"z{at % 50}"}) for at in range(500)])
    assert list(index.candidates(placement_key(pods({"zone": "z7"}, [])))) == list(range(7, 500, 50))
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z7", "z8"]}]}
    assert len(index.candidates(placement_key(pods({}, [term])))) == 20
    assert len(index.candidates(placement_key(pods({}, [])))) == 500
