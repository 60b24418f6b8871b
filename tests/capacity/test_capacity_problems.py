from __future__ import annotations

import pytest

from capacity_consumers import GPU, MIG, daemons, gpus, job, node, planned, texts, told, wants
from gpu_constructs.capacity import room_beside
from gpu_constructs.capacity.planned import Device

SURGE = {"surge": 1, "surge_is_needed": True}


def zoned(*zones, devices=None):
    return [node(f"n{number}", devices, labels={"zone": zone}) for number, zone in enumerate(zones)]


def gang(name, *pods, **given):
    return [job(name, part=f"p{at}", pods_each=each, is_gang=True, **given) for at, each in enumerate(pods)]


NOWHERE = [
    (wants("a", 2, part="Worker"), [node("n")]),
    (wants("a"), [node("n", taints=[{"key": "x", "effect": "NoSchedule"}])]),
    (wants("a", zone="z"), [node("n"), node("m"), *zoned("y")]),
    (wants("a", asks={MIG: 1}), [node("n")]),
    (wants("a", zone="z"), zoned(*"abcdefghij")),
]


def test_pods_that_no_node_takes(snapshot):
    """The messages, one a row of NOWHERE, are in the snapshot."""
    assert "\n".join(told([consumer], nodes) for consumer, nodes in NOWHERE) == snapshot


def test_what_has_no_pods_may_have_no_node():
    plan = planned([wants("a", 9, copies=0, vram_mib=99_000)], [node("n")])
    assert (plan.problems, plan.always_fits, plan.all_fits, plan.vram) == ([], "yes", "yes", "safe")


FEWER = "fewer pods, or another node in the inventory"


TOO_LITTLE = [
    ([wants("a", copies=2)], [node("n")]),
    ([wants("a", copies=3)], [node("n"), node("m")]),
    ([wants("a", copies=4, vram_mib=1), wants("b", copies=3, vram_mib=1)], [node("n", gpus(2, 3))]),
    ([wants("a"), daemons("d")], [node("n")]),
    ([wants("a", 2, copies=2)], [node("n", gpus(3))]),
    ([wants("a", copies=2, most_per_node=1)], [node("n", gpus(3))]),
    ([wants("a", 3, copies=3), wants("b", 2)], [node(name, gpus(4)) for name in "nmk"]),
    ([wants("a", copies=10**9)], [node("n")]),
    ([wants(name) for name in "abcdefgh"], [node("n")]),
]


def test_too_little_for_what_always_runs(snapshot):
    """The messages, one a row of TOO_LITTLE, are in the snapshot."""
    assert "\n".join(told(consumers, nodes) for consumers, nodes in TOO_LITTLE) == snapshot


NEVER_STARTS = [
    ([wants("a", 2), job("b")], [node("n", gpus(2))]),
    ([wants("a"), *gang("b", 1, 1)], [node("n", gpus(2))]),
]


def test_what_never_starts_is_no_matter_of_waiting(snapshot):
    """The messages, one a row of NEVER_STARTS, are in the snapshot."""
    assert "\n".join(told(consumers, nodes) for consumers, nodes in NEVER_STARTS) == snapshot


def test_what_starts_when_something_else_moves_is_no_problem():
    nodes = zoned("x", "y", devices=gpus(2))
    consumers = [wants("a"), wants("b"), job("c", 2)]
    assert planned(consumers, nodes).problems == []


UPDATES = [
    (wants("a", **SURGE), [node("n")]),
    (wants("a", most_per_node=1, **SURGE), [node("n", gpus(4))]),
    (daemons("a", **SURGE), [node("n"), node("m", gpus(2))]),
    (wants("a", kind="RayService", **SURGE), [node("n")]),
]


def test_updates_that_wait_for_ever(snapshot):
    """The messages, one a row of UPDATES, are in the snapshot."""
    assert "\n".join(told([consumer], nodes) for consumer, nodes in UPDATES) == snapshot


def test_a_gang_is_updated_as_a_whole():
    parts = [wants("a", part=part, is_gang=True, pods_each=2, **SURGE) for part in ("x", "y")]
    assert planned(parts, [node("n", gpus(8))]).problems == []
    (problem,) = planned(parts, [node("n", gpus(7))]).problems
    assert problem.text == (
        "an update would wait forever: its new pods need 4 nvidia.com/gpu before the old ones give theirs back, and "
        "what always runs leaves no place for them on n"
    )


@pytest.mark.parametrize("given", [{"surge": 1}, {"surge_is_needed": True}])
def test_an_update_that_may_take_an_old_pod_first_waits_for_nothing(given):
    assert planned([wants("a", **given)], [node("n")]).problems == []


def test_an_update_waits_where_what_is_left_is_on_several_nodes():
    pods = wants("a", 2, copies=2, **SURGE)
    assert [one.kind for one in planned([pods], [node("n", gpus(3)), node("m", gpus(3))]).problems] == ["rollout"]
    assert planned([pods], [node("n", gpus(3)), node("m", gpus(4))]).problems == []


def test_a_set_that_is_replaced_as_a_whole_needs_room_for_all_of_it():
    whole = wants("a", kind="Rollout", copies=3, surge=3, surge_is_needed=True, surge_together=3)
    assert planned([whole], [node("n", gpus(6))]).problems == []
    (problem,) = planned([whole], [node("n", gpus(5))]).problems
    assert (problem.kind, problem.text) == (
        "rollout",
        "an update would wait forever: its new pods need 3 nvidia.com/gpu before the old ones give theirs back, and "
        "what always runs leaves no place for them on n",
    )


def test_a_gang_starts_once_what_it_starts_with_has_room():
    gang = job("b", is_gang=True, pods_each=4, starts_with=2)
    assert "it would never start" in str(planned([wants("a"), gang], [node("n", gpus(2))]).problems)
    plan = planned([wants("a"), gang], [node("n", gpus(3))])
    assert [problem.kind for problem in plan.problems] == ["waiting"]


URGENT = [
    ([wants("a"), job("b", priority=1)], 1),
    ([daemons("a"), job("b", priority=1)], 1),
    ([wants("a"), job("b", priority=1, preempts=False)], 1),
    ([wants("a", priority=1), job("b", priority=1)], 1),
    ([wants("a"), wants("b", 2, priority=1), job("c", 2, priority=1)], 3),
    ([wants("a"), wants("b", priority=1, **SURGE)], 2),
]


def test_what_is_more_urgent_takes_the_place_of_what_always_runs(snapshot):
    """The messages, one a row of URGENT, are in the snapshot."""
    assert "\n".join(told(consumers, [node("n", gpus(devices))]) for consumers, devices in URGENT) == snapshot


def test_what_always_runs_elsewhere_is_not_evicted():
    consumers = [wants("a", zone="x"), wants("b", zone="y", priority=1), job("c", zone="y", priority=1)]
    (problem,) = planned(consumers, zoned("x", "y")).problems
    assert problem.text.startswith("it would never start")


def test_memory_units_are_said_as_units():
    units = [node("u", gpus(1, 16), vram_unit_mib=1_024)]
    (problem,) = planned([wants("a", 12), wants("b", 8)], units).problems
    assert (
        problem.text
        == "what always runs does not fit: ml/a and ml/b want 20 units of 1Gi (nvidia.com/gpu), and u has 16"
    )
    assert problem.way_out == (
        "smaller vram (GpuRequest(vram=...), 1Gi a unit), or fewer pods, or another node in the inventory"
    )
    waiting = [one for one in planned([wants("a", 10), job("b", copies=9)], units).problems if one.kind == "waiting"]
    assert waiting[0].way_out.startswith("leave it where work may queue; else smaller vram (GpuRequest(vram=...), 1Gi")
    (problem,) = planned([wants("a", 16), job("b")], units).problems
    assert "its pod needs 1 unit of 1Gi (nvidia.com/gpu)" in problem.text
    (problem,) = planned([wants("a", 17)], units).problems
    assert problem.way_out == "a smaller vram, or add a node to the inventory that takes it"


def test_nodes_with_other_units_are_counted_in_slots():
    units = [node("u", gpus(1, 16), vram_unit_mib=1_024), node("v", gpus(1, 16))]
    assert (
        "want 40 nvidia.com/gpu, and u and v have 32" in planned([wants(x, 10) for x in "abcd"], units).problems[0].text
    )


def test_ranks_of_a_gang_are_not_told_to_share_a_gpu():
    (problem,) = planned([wants("a", is_gang=True, pods_each=2)], [node("n")]).problems
    assert problem.way_out == FEWER


def test_two_of_one_name_are_told_apart_by_their_kinds():
    consumers = [wants("a", subject=1, copies=2), wants("a", kind="StatefulSet", subject=2)]
    (problem,) = planned(consumers, [node("n")]).problems
    assert "Deployment ml/a and StatefulSet ml/a want 3" in problem.text


def test_pods_that_are_no_gang_start_one_by_one():
    assert texts(planned([wants("a"), job("b", pods_each=3)], [node("n", gpus(2))]), "slots") == []


WAITING = [
    [wants("a"), job("b", copies=2)],
    [wants("a"), job("b"), job("c")],
    [wants("a"), job("b"), job("c", copies=3)],
]


def test_what_waits_when_all_runs(snapshot):
    """The messages, one a row of WAITING, are in the snapshot."""
    assert "\n".join(told(consumers, [node("n", gpus(2))]) for consumers in WAITING) == snapshot


@pytest.mark.parametrize(
    ("consumers", "pod", "others"),
    [
        ([daemons("d", 2), daemons("e", 2)], 2, "ml/d"),
        ([daemons("d", 2), daemons("e"), daemons("f", 3)], 3, "ml/d and ml/e"),
    ],
)
def test_nodes_too_small_for_what_every_node_gets(consumers, pod, others):
    plan = planned(consumers, [node("n", gpus(3), count=2), node("m", gpus(9))])
    assert texts(plan, "slots") == [
        f"every node that takes it is to have its pod, which needs {pod} nvidia.com/gpu, and n has no room for it "
        f"beside {others}"
    ]
    assert (plan.always_fits, plan.all_fits) == ("no", "no")
    assert (plan.consumers[-1].placed, plan.consumers[-1].waiting) == (1, 2)


LONG = "a-name-that-goes-on-" * 12


@pytest.mark.parametrize(
    ("consumers", "nodes"),
    [
        ([wants(f"{LONG}{n}", vram_mib=9_000) for n in range(30)], [node(f"{LONG}{n}", gpus(1, 2)) for n in range(9)]),
        ([wants(LONG, zone="z")], [node(f"{LONG}{n}", labels={"zone": LONG + str(n)}) for n in range(9)]),
        ([wants(LONG), *gang(LONG + "b", 1, 1, namespace=LONG)], [node(LONG, gpus(2))]),
        ([wants(f"{LONG}{n}", **SURGE) for n in range(2)], [node(f"{LONG}{n}") for n in range(2)]),
        ([wants(f"{LONG}{n}", asks={f"{LONG}/{i}": 1 for i in range(9)}) for n in range(2)], [node(LONG)]),
        ([daemons(f"{LONG}{n}") for n in range(9)], [node(f"{LONG}{n}", [Device(GPU, n + 1, 1, 0)]) for n in range(8)]),
    ],
)
def test_no_sentence_is_longer_than_anybody_reads(consumers, nodes):
    plan = planned(consumers, nodes)
    assert plan.problems
    assert max(max(len(problem.text), len(problem.way_out)) for problem in plan.problems) <= 600


def test_the_search_for_a_place_beside_what_always_runs_ends(monkeypatch):
    consumers = [wants("a", 2), wants("b", 2), job("c", 3), job("d", 3, zone="z")]
    nodes = [*zoned("z", devices=gpus(4)), node("m", gpus(3))]
    assert "it would never start" in str(planned(consumers, nodes).problems)
    monkeypatch.setattr(room_beside, "MOST_SEARCHES", -1)
    plan = planned(consumers, nodes)
    assert "it would never start" not in str(plan.problems)
    assert [condition.text for condition in plan.conditions] == [
        "it fits, if those updates and jobs that were not looked at find a place beside what always runs"
    ]


def test_of_long_names_the_first_is_said_and_the_others_are_counted():
    many = [wants(f"{LONG}{number}", vram_mib=1) for number in range(30)]
    (text,) = texts(planned(many, [node(f"{LONG}{number}") for number in range(9)]), "slots")
    assert f"/{LONG}0 and 29 more want 30 nvidia.com/gpu, and {LONG}0 and 8 more have 9 together" in text
    (text,) = texts(
        planned([wants(zone="z")], [node(f"{LONG}{n}", labels={"zone": f"z{n}"}) for n in range(9)]), "placement"
    )
    assert text.endswith("; and 8 more")
