from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_consumers import GPU, accepts, gpus, hosts, job, node, planned, wants
from gpu_constructs.capacity import one_by_one
from gpu_constructs.capacity.matching import Matching
from gpu_constructs.capacity.one_by_one import stranded

PUT = "kube-scheduler does not plan ahead"


def only_if(others, how, who, gpus):
    return f"it fits, if the pods of {others} are put {how}: else {who}, of {gpus} {GPU} a pod, has no place, as {PUT}"


@pytest.mark.parametrize(
    ("consumers", "nodes", "conditions"),
    [
        pytest.param(
            [wants("a", copies=4), wants("b", 4)],
            [node("n", gpus(4), count=2)],
            [only_if("ml/a", "together", "ml/b", 4)],
            id="small ones spread",
        ),
        pytest.param(
            [wants("a"), wants("b"), job("c", 4)],
            [node("n", gpus(4), count=2)],
            [only_if("ml/a and ml/b", "together", "ml/c", 4)],
            id="work that ends",
        ),
        pytest.param(
            [wants("a"), wants("b", zone="x")],
            [node("n", labels={"zone": "x"}), node("m", labels={"zone": "y"})],
            [only_if("ml/a", "elsewhere", "ml/b", 1)],
            id="who may go anywhere comes first",
        ),
        pytest.param([wants("a", copies=2), wants("b", 2)], [node("n", gpus(4), count=2)], [], id="room for all"),
        pytest.param([wants("a", copies=4)], [node("n", gpus(4), count=2)], [], id="one size"),
        pytest.param([wants("a", copies=2), wants("b", 4)], [node("n", gpus(4))], [], id="no place at all"),
        pytest.param(
            [wants("a", copies=2, most_per_node=1), wants("b", 3)],
            [node("n", gpus(3)), node("m", gpus(5), count=2)],
            [],
            id="apart on the widest nodes",
        ),
    ],
)
def test_pods_come_one_by_one(consumers, nodes, conditions):
    assert [one.text for one in planned(consumers, nodes).conditions if PUT in one.text] == conditions


def test_no_more_than_a_few_are_named():
    small = wants("a", copies=40)
    large = [wants(f"b{n}", 8 + n) for n in range(5)]
    plan = planned([small, *large], [node("n", gpus(20), count=6)])
    assert len([one for one in plan.conditions if PUT in one.text]) <= 3


def found(consumers, nodes):
    matching = Matching(consumers, nodes, {})
    pods = {i: one.pods for i, one in enumerate(consumers) if matching.takers[i]}
    return [list(one.consumers) for one in stranded(matching, pods)]


def by_hand(consumers, nodes):
    """Place each pod on the node with most left, and give those of whose kind one has no place."""
    left = [[host.offer, host.left["nvidia.com/gpu"], {}] for host in hosts(consumers, nodes)]
    known = [i for i, one in enumerate(consumers) if any(accepts(offer, one) for offer in nodes)]
    choices = {i: sum(accepts(offer, consumers[i]) for offer in nodes) for i in known}
    lost = []
    for i in sorted(known, key=lambda i: (sum(consumers[i].asks.values()), -choices[i], i)):
        one, asked = consumers[i], sum(consumers[i].asks.values())
        for _ in range(one.pods):
            able = [there for there in left if accepts(there[0], one) and there[1] >= asked]
            able = [there for there in able if one.most_per_node is None or there[2].get(i, 0) < one.most_per_node]
            if not able:
                lost.append(i)
                break
            best = max(able, key=lambda there: there[1])
            best[1] -= asked
            best[2][i] = best[2].get(i, 0) + 1
    return lost


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4), st.sampled_from([None, None, 1])), min_size=2, max_size=4),
    st.lists(st.tuples(st.integers(1, 6), st.integers(1, 4)), min_size=1, max_size=2),
)
@settings(max_examples=300)
def test_waves_of_pods_are_as_pods_by_themselves(pods, pools):
    sizes = {}
    for asked, copies, most in pods:
        sizes.setdefault(asked, (copies, most))
    consumers = [
        wants(f"w{asked}", asked, copies=copies, most_per_node=most, subject=asked)
        for asked, (copies, most) in sizes.items()
    ]
    nodes = [node(f"n{at}", gpus(each), count=count) for at, (each, count) in enumerate(pools)]
    first = min(range(len(consumers)), key=lambda i: consumers[i].asks["nvidia.com/gpu"])
    expected = [i for i in by_hand(consumers, nodes) if i != first]
    assert sorted(index for those in found(consumers, nodes) for index in those) == sorted(expected)


def test_of_too_many_nothing_is_said(monkeypatch):
    consumers, nodes = [wants("a", copies=4), wants("b", 4)], [node("n", gpus(4), count=2)]
    assert found(consumers, nodes) == [[1]]
    monkeypatch.setattr(one_by_one, "_MOST_STEPS", 1)
    assert found(consumers, nodes) == []
