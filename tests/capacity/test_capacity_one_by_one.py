from __future__ import annotations

from capacity_consumers import GPU, gpus, job, node, planned, wants

PUT = "kube-scheduler does not plan ahead"


def only_if(others, how, who, gpus):
    return f"it fits, if the pods of {others} are put {how}: else {who}, of {gpus} {GPU} a pod, has no place, as {PUT}"


def test_pods_come_one_by_one():
    for consumers, nodes, conditions, _what in [
        (
            [wants("a", copies=4), wants("b", 4)],
            [node("n", gpus(4), count=2)],
            [only_if("ml/a", "together", "ml/b", 4)],
            "small ones spread",
        ),
        (
            [wants("a"), wants("b"), job("c", 4)],
            [node("n", gpus(4), count=2)],
            [only_if("ml/a and ml/b", "together", "ml/c", 4)],
            "work that ends",
        ),
        (
            [wants("a"), wants("b", zone="x")],
            [node("n", labels={"zone": "x"}), node("m", labels={"zone": "y"})],
            [only_if("ml/a", "elsewhere", "ml/b", 1)],
            "who may go anywhere comes first",
        ),
        ([wants("a", copies=2), wants("b", 2)], [node("n", gpus(4), count=2)], [], "room for all"),
        ([wants("a", copies=4)], [node("n", gpus(4), count=2)], [], "one size"),
        ([wants("a", copies=2), wants("b", 4)], [node("n", gpus(4))], [], "no place at all"),
        (
            [wants("a", copies=2, most_per_node=1), wants("b", 3)],
            [node("n", gpus(3)), node("m", gpus(5), count=2)],
            [],
            "apart on the widest nodes",
        ),
    ]:
        assert [one.text for one in planned(consumers, nodes).conditions if PUT in one.text] == conditions


def test_no_more_than_a_few_are_named():
    small = wants("a", copies=40)
    large = [wants(f"b{n}", 8 + n) for n in range(5)]
    plan = planned([small, *large], [node("n", gpus(20), count=6)])
    assert len([one for one in plan.conditions if PUT in one.text]) <= 3
