from __future__ import annotations

import pytest

from capacity_consumers import GPU, MIG, daemons, gpus, job, node, planned, wants
from gpu_constructs.capacity import device_memory
from gpu_constructs.capacity.planned import Device


def devices_of(plan):
    return [one for there in plan.nodes for one in there.devices]


def numbers(plan):
    return [(one.typical_mib, one.seated_mib, one.worst_mib, one.has_unknown) for one in devices_of(plan)]


MPS = gpus(1, 2, 16_000, vram_each_mib=8_000)
PARTS = [Device(MIG, 1, 4_864, 0, "1g.5gb"), Device(MIG, 1, 4_864, 0, "1g.5gb")]


def mib(name, vram, slots=1, **given):
    return wants(name, slots, vram_mib=vram, **given)


@pytest.mark.parametrize(
    ("consumers", "devices", "expected"),
    [
        pytest.param([], gpus(1, 2), [(0, 0, 0, False)], id="nobody"),
        pytest.param([mib("a", 5, typical_vram_mib=3)], gpus(), [(3, 5, 5, False)], id="typical is less"),
        pytest.param([mib("a", 5)], gpus(), [(5, 5, 5, False)], id="typical is not said"),
        pytest.param([wants("a", typical_vram_mib=3)], gpus(), [(3, 0, 0, False)], id="only typical is said"),
        pytest.param([mib("a", 5), mib("b", 3)], gpus(2, 2), [(5, 5, 8, False), (3, 3, 8, False)], id="who may meet"),
        pytest.param([mib("a", 5, copies=9, least_copies=1)], gpus(1, 2), [(10, 10, 10, False)], id="copies meet"),
        pytest.param([mib("a", 5, copies=9, most_per_node=1)], gpus(1, 2), [(5, 5, 5, False)], id="never two of them"),
        pytest.param([mib("a", 5, copies=0), mib("b", 2)], gpus(1, 2), [(2, 2, 2, False)], id="copies that are none"),
        pytest.param([mib("a", 7), daemons("b", vram_mib=2)], gpus(1, 2), [(9, 9, 9, False)], id="one on every node"),
        pytest.param([mib("a", 5, 2)], gpus(1, 4), [(5, 5, 5, False)], id="memory counts once, not for each slot"),
        pytest.param([mib("a", 5, 2)], gpus(2, 2), [(5, 5, 5, False)] * 2, id="on each GPU of several"),
        pytest.param([mib("a", 5, 2, copies=3)], gpus(2, 2), [(10, 10, 10, False)] * 2, id="slots of the others count"),
        pytest.param([mib("a", 9_000), mib("b", 9_000)], MPS, [(16_000, 16_000, 16_000, False)], id="MPS holds down"),
        pytest.param([mib("a", 5, asks={MIG: 1})], PARTS, [(5, 5, 5, False), (0, 0, 5, False)], id="parts of a GPU"),
        pytest.param([mib("a", 5), wants("b")], gpus(1, 2), [(5, 5, 5, True)], id="one does not say"),
        pytest.param([wants("a")], gpus(1, 2), [(0, 0, 0, False)], id="alone it needs not say"),
        pytest.param([wants("a", copies=2)], gpus(1, 2), [(0, 0, 0, True)], id="two that do not say"),
        pytest.param([wants("a"), wants("b")], gpus(2), [(0, 0, 0, False)] * 2, id="whole GPUs need no word"),
        pytest.param([wants("a", 3), job("b", 2)], gpus(1, 4), [(0, 0, 0, False)], id="too large to meet"),
    ],
)
def test_memory_that_is_taken_of_a_device(consumers, devices, expected):
    assert numbers(planned(consumers, [node("n", devices)])) == expected


@pytest.mark.parametrize(
    ("consumers", "devices", "verdict"),
    [
        pytest.param([], gpus(1, 2, None), "safe", id="nobody"),
        pytest.param([wants("a")], gpus(1, 1, None), "safe", id="alone on a GPU"),
        pytest.param([mib("a", 16_000)], gpus(), "safe", id="all of it"),
        pytest.param([mib("a", 16_001)], gpus(), "overcommitted", id="more than all of it"),
        pytest.param([mib("a", 9_000), mib("b", 9_000)], gpus(2), "safe", id="each its own"),
        pytest.param([mib("a", 9_000), mib("b", 9_000)], gpus(2, 2), "depends", id="apart or not"),
        pytest.param([mib("a", 9_000, copies=3)], gpus(2, 2), "overcommitted", id="two of three must meet"),
        pytest.param([mib("a", 9_000, 2, copies=2)], gpus(1, 4), "overcommitted", id="slots of one GPU"),
        pytest.param([mib("a", 9_000, 2, copies=2)], gpus(2, 2), "depends", id="both slots of a pod on one GPU"),
        pytest.param([mib("a", 9_000, 3, copies=2)], gpus(2, 3), "depends", id="three slots of a GPU"),
        pytest.param([mib("a", 9_000), wants("b")], gpus(1, 2), "unknown", id="one does not say"),
        pytest.param([mib("a", 9_000, copies=2), wants("b")], gpus(1, 3), "overcommitted", id="too much all the same"),
        pytest.param([mib("a", 9_000, copies=2), wants("b")], gpus(2, 3), "unknown", id="more, and one does not say"),
        pytest.param([mib("a", 1)], gpus(1, 1, None), "unknown", id="a GPU that nobody knows"),
        pytest.param([mib("a", 12_000), daemons("d", vram_mib=8_000)], gpus(1, 2), "overcommitted", id="with daemons"),
        pytest.param([mib("a", 9_000)], MPS, "overcommitted", id="MPS gives less"),
        pytest.param([mib("a", 8_000, copies=2)], MPS, "safe", id="MPS gives as much"),
        pytest.param([mib("a", 9_000, copies=2, least_copies=1)], gpus(1, 1), "safe", id="the second one waits"),
    ],
)
def test_the_verdict(consumers, devices, verdict):
    assert planned(consumers, [node("n", devices)]).vram == verdict


def test_a_pod_too_large_for_some_gpus_only_depends_on_where_it_goes():
    nodes = [node("n"), node("m", gpus(1, 1, 40_000))]
    assert planned([mib("a", 20_000)], nodes).vram == "depends"
    assert planned([mib("a", 20_000, copies=2)], nodes).vram == "overcommitted"
    assert (
        planned([mib("a", 20_000, zone="z")], [nodes[0], node("z", gpus(1, 1, 40_000), labels={"zone": "z"})]).vram
        == "safe"
    )


def test_one_of_them_is_on_each_node_that_every_node_gets():
    nodes = [node("n", gpus(1, 3), count=2)]
    assert planned([mib("a", 16_000), daemons("d", vram_mib=8_000)], nodes).vram == "overcommitted"
    assert planned([mib("a", 8_000), daemons("d", vram_mib=8_000)], nodes).vram == "safe"


def test_pods_that_have_not_slots_enough_on_all_gpus_do_not_meet_on_one():
    plan = planned([mib("a", 5, 3), mib("b", 5, 2)], [node("n", gpus(2, 2))])
    assert [one.worst_mib for one in devices_of(plan)] == [8, 8]


def test_the_search_for_conflicts_ends(monkeypatch):
    nodes = [node("n", gpus(1, 2)), node("m", gpus(1, 2))]
    consumers = [mib("a", 9_000, copies=4)]
    assert not planned(consumers, nodes).has_more_conflicts
    monkeypatch.setattr(device_memory, "_MOST_PLACES", 1)
    plan = planned(consumers, [*nodes[:1], node("m", gpus(1, 3))])
    assert (len(plan.conflicts), plan.has_more_conflicts) == (1, True)


def conflicts_of(plan):
    return [(one.device, one.vram_mib, dict(one.pods), one.together_mib) for one in plan.conflicts]


def test_conflicts_name_the_board_and_its_part():
    board = [Device(MIG, 2, 4_864, 0, "1g.5gb")]
    plan = planned([mib("a", 3_000, copies=2, asks={MIG: 1})], [node("n", board, gpu_model="NVIDIA A100", count=3)])
    assert conflicts_of(plan) == [("NVIDIA A100 1g.5gb", 4_864, {0: 2}, 6_000)]


def test_conflicts_on_the_same_boards_are_said_once():
    nodes = [node("n", gpus(1, 2), gpu_model="X", labels={"zone": "z"}), node("m", gpus(2, 2), gpu_model="X")]
    plan = planned([mib("a", 9_000, copies=2), mib("b", 1, zone="z")], nodes)
    assert conflicts_of(plan) == [("X", 16_000, {0: 2}, 18_000)]


def test_what_mps_does_not_give_is_a_conflict_of_one():
    assert conflicts_of(planned([mib("a", 9_000)], [node("n", MPS)])) == [("n (each holder)", 8_000, {0: 1}, 9_000)]


def test_the_smallest_conflicts_come_first_and_no_more_than_twenty():
    few = planned([mib("a", 5_000, copies=4), mib("b", 12_000), mib("c", 8_000)], [node("n", gpus(1, 6))])
    assert [dict(one.pods) for one in few.conflicts] == [{1: 1, 2: 1}, {0: 1, 1: 1}, {0: 2, 2: 1}, {0: 4}]
    assert not few.has_more_conflicts
    many = planned([mib(f"p{number}", 9_000) for number in range(9)], [node("n", gpus(1, 6))])
    assert (len(many.conflicts), many.has_more_conflicts) == (20, True)


def test_resources_are_looked_at_each_by_itself():
    devices = [*gpus(1, 2), Device(MIG, 1, 4_864, 1, "1g.5gb")]
    both = mib("a", 9_000, asks={GPU: 1, MIG: 1})
    plan = planned([both, mib("b", 8_000)], [node("n", devices)])
    assert conflicts_of(plan) == [("n 1g.5gb", 4_864, {0: 1}, 9_000), ("n", 16_000, {0: 1, 1: 1}, 17_000)]
    assert plan.vram == "overcommitted"
