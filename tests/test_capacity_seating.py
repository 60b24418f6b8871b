from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_consumers import GPU, MIG, daemons, gpus, node, wants
from gpu_constructs.capacity.matching import Matching
from gpu_constructs.capacity.node_offer import Device
from gpu_constructs.capacity.placed_pods import PlacedPods
from gpu_constructs.capacity.seating import seated, seats_of


def seats(devices, consumers, pods):
    found = seats_of(node("n", devices), consumers, pods)
    return [[(seat.consumer, seat.pods, seat.slots) for seat in one] for one in found]


@pytest.mark.parametrize(
    ("devices", "asked", "pods", "expected"),
    [
        pytest.param(gpus(1, 4), 1, 3, [[(0, 3, 3)]], id="turns of one GPU"),
        pytest.param(gpus(1, 9), 4, 2, [[(0, 2, 8)]], id="slices of one GPU"),
        pytest.param(gpus(3), 1, 2, [[(0, 1, 1)], [(0, 1, 1)], []], id="whole GPUs"),
        pytest.param(gpus(2, 4), 1, 5, [[(0, 3, 3)], [(0, 2, 2)]], id="the least held first"),
        pytest.param(gpus(2, 2), 3, 1, [[(0, 1, 2)], [(0, 1, 1)]], id="a pod on one GPU twice"),
        pytest.param(gpus(2, 4), 2, 4, [[(0, 4, 4)], [(0, 4, 4)]], id="each pod on both"),
        pytest.param([Device(GPU, 3, 8, 0), Device(GPU, 1, 8, 1)], 1, 4, [[(0, 3, 3)], [(0, 1, 1)]], id="one is full"),
        pytest.param(gpus(1), 1, 0, [[]], id="none"),
        pytest.param(gpus(8, 16_303), 16_303, 8, [[(0, 8, 16_303)]] * 8, id="slices of a mebibyte"),
        pytest.param(gpus(2, 10**9), 1, 10**9, [[(0, 5 * 10**8, 5 * 10**8)]] * 2, id="very many pods"),
        pytest.param(gpus(2, 10**9), 4, 10**8, [[(0, 10**8, 2 * 10**8)]] * 2, id="very many pods of several slots"),
    ],
)
def test_slots_go_to_the_gpu_with_the_fewest_holders(devices, asked, pods, expected):
    assert seats(devices, [wants(gpus=asked)], {0: pods}) == expected


def test_each_resource_has_its_own_devices():
    devices = [*gpus(1, 2), Device(MIG, 1, 4, 1, "1g.5gb")]
    both = wants(asks={MIG: 1, GPU: 2})
    assert seats(devices, [both], {0: 1}) == [[(0, 1, 2)], [(0, 1, 1)]]


def test_the_second_consumer_sits_beside_the_first():
    assert seats(gpus(2, 2), [wants("a"), wants("b")], {1: 2, 0: 1}) == [[(0, 1, 1), (1, 1, 1)], [(1, 1, 1)]]


@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(1, 5), st.integers(0, 6)), max_size=4),
)
@settings(max_examples=300)
def test_slots_are_those_of_handing_them_out_one_by_one(slots, asked):
    pods, room = [], sum(slots)
    for each, count in asked:
        pods.append(min(count, room // each))
        room -= pods[-1] * each
    devices = [Device(GPU, number, 8, gpu) for gpu, number in enumerate(slots)]
    found = seats(devices, [wants(gpus=each) for each, _ in asked], {i: n for i, n in enumerate(pods) if n})
    used = [0] * len(slots)
    for index, (each, _) in enumerate(asked):
        held = [[0, 0] for _ in slots]
        for _ in range(pods[index]):
            mine = [0] * len(slots)
            for _ in range(each):
                at = min((one for one in range(len(slots)) if used[one] < slots[one]), key=lambda one: (used[one], one))
                used[at] += 1
                mine[at] += 1
            for at, number in enumerate(mine):
                held[at][0] += number > 0
                held[at][1] += number
        assert [[one[1:] for one in here if one[0] == index] for here in found] == [
            [(holders, number)] if number else [] for holders, number in held
        ]


def test_nodes_of_a_pool_with_the_same_pods_are_in_one():
    matching = Matching([wants(copies=5), daemons("d")], [node("m", gpus(3)), node("pool", gpus(3), count=4)], {})
    found = seated(matching, PlacedPods.of(matching, matching.pack({0: 5})))
    assert [(one.offer, one.first, one.count) for one in found if one.offer == 0] == [(0, 0, 1)]
    pool = [(one.first, one.count) for one in found if one.offer == 1]
    assert [first for first, _ in pool] == [sum(count for _, count in pool[:at]) for at in range(len(pool))]
    assert sum(count for _, count in pool) == 4
    assert all(any(seat.consumer == 1 for device in one.seats for seat in device) for one in found)
    assert (
        sum(seat.pods * one.count for one in found for device in one.seats for seat in device if not seat.consumer) == 5
    )


def test_a_million_nodes_are_a_few():
    matching = Matching([wants(copies=10**6 + 1)], [node("pool", gpus(8, 2), count=10**6)], {})
    found = seated(matching, PlacedPods.of(matching, matching.pack({0: 10**6 + 1})))
    assert len(found) <= 3
