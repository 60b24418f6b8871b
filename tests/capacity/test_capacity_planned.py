"""Plans of a few consumers on a few nodes. The cases are in tables/planned.yaml."""

import pytest

from capacity_consumers import GPU, daemons, gpus, job, node, planned, texts, wants
from gpu_constructs.capacity import device_memory, room_beside
from gpu_constructs.capacity.planned import Device
from tables import beside

CASES = beside(__file__, "planned")


def consumer_of(given):
    """Return a consumer of the table. A Job always ends, and each node gets a pod of a DaemonSet."""
    of_kind = {"Job": {"least_copies": 0}, "DaemonSet": {"is_for_each_node": True}}
    return wants(**{**of_kind.get(given.get("kind"), {}), **given})


def node_of(given):
    """Return a node of the table, by default with one GPU of one slot."""
    given = dict(given)
    whole = gpus(*(given.pop(key, usual) for key, usual in (("gpus", 1), ("slots", 1), ("vram", 16_000))))
    devices = [Device(**{"resource": GPU, **one}) for one in given.pop("devices", ())]
    return node(devices=devices or whole, **given)


def described(plan):
    """Return a plan in the form of the table."""
    names = {one.consumer.subject: one.consumer.title for one in plan.consumers}
    there = [(one, device) for one in plan.nodes for device in one.devices]
    return {
        "verdict": f"{plan.always_fits} {plan.all_fits} {plan.vram}",
        "placed": [f"{one.consumer.title} {one.placed} of {one.placed + one.waiting}" for one in plan.consumers],
        "problems": [
            {"kind": one.kind, "of": names.get(one.subject), "text": one.text, "way_out": one.way_out}
            for one in plan.problems
        ],
        "conditions": [one.text for one in plan.conditions],
        "notes": list(plan.notes),
        "conflicts": [f"{one.device} {one.vram_mib}: {one.together_mib} of {dict(one.pods)}" for one in plan.conflicts],
        "has_more_conflicts": plan.has_more_conflicts,
        "memory": [[one.typical_mib, one.seated_mib, one.worst_mib, one.has_unknown] for _, one in there],
        "seats": [{seat.consumer: [seat.pods, seat.slots] for seat in one.seats} for _, one in there],
        "nodes": [[one.title, one.count] for one in plan.nodes],
        "refusals": [dict(one.refusals) for one in plan.consumers],
        "stock": {name: [one.total, one.always, one.wanted, one.placed, one.left] for name, one in plan.stock.items()},
    }


USUAL = {"verdict": "yes yes safe", "problems": [], "conditions": [], "notes": []}


@pytest.mark.parametrize("sentence", CASES)
def test_a_plan_states_what_fits_and_what_does_not(sentence):
    for case in CASES[sentence]:
        nodes = [node_of(one) for one in case["nodes"]]
        plan = planned([consumer_of(one) for one in case["consumers"]], nodes, **case.get("racks", {}))
        found, expected = described(plan), USUAL | case["plan"]
        assert {name: found[name] for name in expected} == expected, case


# Limits


LONG = "a-name-that-goes-on-" * 12
SURGE = {"surge": 1, "surge_is_needed": True}


def gang(name, *pods, **given):
    return [job(name, part=f"p{at}", pods_each=each, is_gang=True, **given) for at, each in enumerate(pods)]


def zoned(*zones, devices=None):
    return [node(f"n{number}", devices, labels={"zone": zone}) for number, zone in enumerate(zones)]


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
def test_no_sentence_exceeds_the_limit(consumers, nodes):
    plan = planned(consumers, nodes)
    assert plan.problems
    assert max(max(len(problem.text), len(problem.way_out)) for problem in plan.problems) <= 600


def test_the_search_next_to_always_running_pods_is_limited(monkeypatch):
    consumers = [wants("a", 2), wants("b", 2), job("c", 3), job("d", 3, zone="z")]
    nodes = [*zoned("z", devices=gpus(4)), node("m", gpus(3))]
    assert "it would never start" in str(planned(consumers, nodes).problems)
    monkeypatch.setattr(room_beside, "MOST_SEARCHES", -1)
    plan = planned(consumers, nodes)
    assert "it would never start" not in str(plan.problems)
    assert [condition.text for condition in plan.conditions] == [
        "it fits, if the updates and jobs that the plan did not check also fit next to the long-running pods"
    ]


def test_a_list_of_long_names_contains_the_first_and_counts_the_others():
    many = [wants(f"{LONG}{number}", vram_mib=1) for number in range(30)]
    (text,) = texts(planned(many, [node(f"{LONG}{number}") for number in range(9)]), "slots")
    assert f"/{LONG}0 and 29 more request 30 nvidia.com/gpu, but {LONG}0 and 8 more have 9 together" in text
    (text,) = texts(
        planned([wants(zone="z")], [node(f"{LONG}{n}", labels={"zone": f"z{n}"}) for n in range(9)]), "placement"
    )
    assert text.endswith("; and 8 more")


def test_the_search_for_conflicts_is_limited(monkeypatch):
    nodes = [node("n", gpus(1, 2)), node("m", gpus(1, 2))]
    consumers = [wants("a", vram_mib=9_000, copies=4)]
    assert not planned(consumers, nodes).has_more_conflicts
    monkeypatch.setattr(device_memory, "_MOST_PLACES", 1)
    plan = planned(consumers, [*nodes[:1], node("m", gpus(1, 3))])
    assert (len(plan.conflicts), plan.has_more_conflicts) == (1, True)


def test_a_sentence_names_only_a_few_consumers():
    small = wants("a", copies=40)
    large = [wants(f"b{n}", 8 + n) for n in range(5)]
    plan = planned([small, *large], [node("n", gpus(20), count=6)])
    assert len([one for one in plan.conditions if "which does not plan ahead" in one.text]) <= 3
