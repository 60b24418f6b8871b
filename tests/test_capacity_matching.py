from __future__ import annotations

import pytest

from capacity_consumers import GPU, MIG, daemons, gpus, job, node, wants
from gpu_constructs.capacity.matching import Matching
from gpu_constructs.capacity.node_offer import Device


def matching(consumers, nodes):
    return Matching(consumers, nodes, {})


def test_nodes_that_take_the_same_pods_and_have_the_same_devices_are_of_one_kind():
    nodes = [
        node("n1", labels={"disk": "a"}),
        node("n2", labels={"disk": "b"}),
        node("n3", gpus(2)),
        node("n4", count=5),
    ]
    found = matching([wants()], nodes)
    assert found.kinds == [[0, 1, 3], [2]]
    assert [(one.size, one.count) for one in found.bins] == [((1,), 7), ((2,), 1)]
    assert found.takers == [frozenset([0, 1])]


def test_nodes_that_some_pods_tell_apart_are_not_of_one_kind():
    nodes = [node("n1", labels={"zone": "a"}), node("n2", labels={"zone": "b"})]
    found = matching([wants("all"), wants("some", zone="b")], nodes)
    assert found.kinds == [[0], [1]]
    assert found.takers == [frozenset([0, 1]), frozenset([1])]
    assert found.names(found.takers[1]) == ["n2"]
    assert found.refusals(0) == {}
    assert found.refusals(1) == {"n1": "has zone=a, where its pods want b"}


def test_why_nodes_refuse_is_said_of_a_few():
    found = matching([wants(gpus=2)], [node(f"n{number}") for number in range(9)])
    assert list(found.refusals(0)) == [f"n{number}" for number in range(6)]


def test_names_are_in_the_order_of_the_inventory():
    found = matching([wants()], [node("z"), node("y", gpus(2)), node("x")])
    assert found.names([1, 0]) == ["z", "y", "x"]


def test_pods_that_every_node_gets_have_their_place_before_others():
    found = matching(
        [wants(), daemons("d"), daemons("e", zone="a")], [node("n", gpus(4)), node("m", gpus(4), labels={"zone": "a"})]
    )
    assert [one.size for one in found.bins] == [(3,), (2,)]
    assert found.daemons == [[1], [1, 2]]
    assert found.nodes_of_daemons == {1: 2, 2: 1}
    assert found.crowded == {}


def test_of_the_pods_that_every_node_gets_the_first_have_the_room_there_is():
    found = matching([daemons("d", 2), daemons("e", 2), daemons("f", 1)], [node("n", gpus(3), count=4)])
    assert found.daemons == [[0, 2]]
    assert found.crowded == {0: [1]}
    assert found.nodes_of_daemons == {0: 4, 2: 4}
    assert found.bins[0].size == (0,)


@pytest.mark.parametrize(
    ("consumers", "units"),
    [
        ([wants("a"), job("b")], [[0], [1]]),
        ([wants("a", copies=0), daemons("b")], []),
        ([wants("a", 5), wants("b")], [[1]]),
        ([job("a", part="x", is_gang=True), wants("b"), job("a", part="y", is_gang=True)], [[0, 2], [1]]),
        ([job("a", part="x"), job("a", part="y")], [[0], [1]]),
        ([job("a", part="x", is_gang=True), job("a", 5, part="y", is_gang=True)], []),
        ([job("a", part="x", is_gang=True), job("a", part="y", is_gang=True, copies=2)], [[0], [1]]),
        ([job("a", part="x", is_gang=True), job("a", 5, part="y", is_gang=True, pods_each=0)], [[0]]),
    ],
)
def test_parts_of_a_gang_start_together_and_all_others_by_themselves(consumers, units):
    assert matching(consumers, [node("n", gpus(4))]).units == units


def test_pods_that_are_alike_are_packed_as_one():
    found = matching([wants("a"), wants("b", copies=2), wants("c", 2)], [node("n", gpus(4))])
    assert found.pack({0: 1, 1: 2, 2: 1}).members == [[(0, 1), (1, 2)], [(2, 1)]]


def test_a_second_tier_is_packed_by_itself_but_for_pods_that_keep_apart():
    apart = wants("b", copies=3, most_per_node=1)
    found = matching([wants("a", copies=4), apart], [node("n", gpus(9), count=2)])
    packed = found.pack({0: 1, 1: 1}, {0: 3, 1: 2})
    assert packed.members == [[(0, 1)], [(1, 3)], [(0, 3)]]
    assert packed.packing.answer == "no"
    assert packed.lacking() == {1: 1}


def test_pods_that_come_first_lack_a_place_last():
    found = matching([wants("a", copies=2), wants("b", copies=2)], [node("n", gpus(3))])
    assert found.pack({1: 2, 0: 2}).lacking() == {0: 1}
    assert found.pack({0: 2, 1: 2}).lacking() == {1: 1}
    assert found.pack({0: 1, 1: 2}, {0: 1}).lacking() == {0: 1}


def test_what_is_lacking_of_several_tiers_is_added_up():
    found = matching([wants("a", copies=5)], [node("n")])
    assert found.pack({0: 3}, {0: 2}).lacking() == {0: 4}


def test_resources_that_only_nodes_or_only_pods_know_are_counted():
    found = matching([wants(asks={MIG: 1})], [node("n")])
    assert found.resources == (GPU, MIG)
    assert found.bins[0].size == (1, 0)
    assert found.size_of(0) == (0, 1)
    assert found.takers == [frozenset()]


def test_devices_of_two_resources_stand_side_by_side():
    devices = [*gpus(2, 3), Device(MIG, 1, 4, 2, "1g.5gb")]
    assert matching([], [node("n", devices)]).bins[0].size == (6, 1)
