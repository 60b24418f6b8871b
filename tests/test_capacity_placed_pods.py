from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_consumers import GPU, daemons, gpus, job, node, wants
from gpu_constructs.capacity.matching import Matching
from gpu_constructs.capacity.placed_pods import PlacedPods, settled


def nothing_on(consumers, nodes):
    matching = Matching(consumers, nodes, {})
    return PlacedPods.of(matching, matching.pack({}))


def on_nodes(placed):
    return [(one.number, dict(one.pods), one.left[0]) for one in placed.nodes]


def test_nodes_without_pods_are_there_too():
    assert on_nodes(nothing_on([daemons()], [node("n", gpus(2), count=3)])) == [(3, {}, 1)]


@pytest.mark.parametrize(
    ("count", "rest", "nodes"),
    [
        (1, 0, [(1, {0: 1}, 3), (4, {}, 5)]),
        (2, 0, [(1, {0: 2}, 1), (4, {}, 5)]),
        (3, 0, [(1, {0: 2}, 1), (1, {0: 1}, 3), (3, {}, 5)]),
        (4, 0, [(2, {0: 2}, 1), (3, {}, 5)]),
        (9, 0, [(4, {0: 2}, 1), (1, {0: 1}, 3)]),
        (10, 0, [(5, {0: 2}, 1)]),
        (10**9, 10**9 - 10, [(5, {0: 2}, 1)]),
    ],
)
def test_pods_go_where_they_fit_first(count, rest, nodes):
    placed = nothing_on([wants(gpus=2, copies=9)], [node("n", gpus(5), count=5)])
    assert placed.add(0, count) == rest
    assert on_nodes(placed) == nodes


def test_pods_that_keep_apart_go_to_nodes_that_have_none_of_them():
    placed = nothing_on([wants(copies=3, most_per_node=1)], [node("n", gpus(5), count=2)])
    assert placed.add(0, 1) == 0
    assert placed.add(0, 2) == 1
    assert placed.counts() == {0: 2}


def test_all_go_or_none():
    placed = nothing_on([wants("a"), wants("b")], [node("n", gpus(3))])
    assert not placed.add_all({0: 2, 1: 2})
    assert placed.counts() == {}
    assert placed.add_all({0: 2, 1: 1})
    assert placed.counts() == {0: 2, 1: 1}


def test_asking_whether_there_is_room_places_nothing():
    placed = nothing_on([wants("a")], [node("n", gpus(3))])
    assert placed.takes({0: 3})
    assert not placed.takes({0: 4})
    assert placed.counts() == {}


def test_pods_that_keep_apart_are_no_matter_to_others_like_them():
    placed = nothing_on([wants("a", most_per_node=1), wants("b", most_per_node=1)], [node("n", gpus(3))])
    placed.add(0, 1)
    assert not placed.takes({0: 1})
    assert placed.takes({1: 1})


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(-6, 6)), max_size=12), st.integers(1, 4), st.integers(1, 5))
@settings(max_examples=150)
def test_pods_that_come_and_go_are_counted(steps, count, slots):
    consumers = [wants("a"), wants("b", 2), wants("c", most_per_node=1)]
    placed = nothing_on(consumers, [node("n", gpus(1, slots), count=count), node("m", gpus(2), count=2)])
    expected = [0, 0, 0]
    for index, change in steps:
        if change >= 0:
            expected[index] += change - placed.add(index, change)
        else:
            less = min(-change, expected[index])
            placed.remove(index, less)
            expected[index] -= less
        assert [placed.counts().get(one, 0) for one in range(3)] == expected
        assert sum(one.number for one in placed.nodes) == count + 2
        for one in placed.nodes:
            has = slots if one.kind == 0 else 2
            asks = [consumers[index].asks[GPU] * each for index, each in one.pods.items()]
            assert one.left == (has - sum(asks),)
            assert one.left[0] >= 0
            assert all(one.pods.values())
            assert one.pods.get(2, 0) <= 1


def counts_when_all_runs(consumers, nodes):
    matching = Matching(consumers, nodes, {})
    able = [index for unit in matching.units for index in unit]
    always = matching.pack({index: consumers[index].least_pods for index in able})
    more = {index: consumers[index].pods - consumers[index].least_pods for index in able}
    everything = matching.pack({index: consumers[index].least_pods for index in able}, more)
    found = settled(matching, always, everything).counts()
    return [found.get(index, 0) for index in range(len(consumers))]


def gang(name, *pods, copies=1, **given):
    return [
        job(name, part=f"p{at}", pods_each=each, is_gang=True, copies=copies, **given) for at, each in enumerate(pods)
    ]


@pytest.mark.parametrize(
    ("consumers", "gpus_there", "counts"),
    [
        pytest.param(gang("a", 3), 2, [0], id="half a gang gives its places back"),
        pytest.param([*gang("a", 3), job("b", copies=5)], 2, [0, 2], id="others get them"),
        pytest.param(gang("a", 1, 2), 2, [0, 0], id="parts wait together"),
        pytest.param(gang("a", 1, 2), 3, [1, 2], id="parts run together"),
        pytest.param(gang("a", 2, copies=3), 5, [4], id="whole copies run"),
        pytest.param([*gang("a", 3), *gang("b", 2)], 4, [3, 0], id="the first gang of two"),
        pytest.param([*gang("a", 5), *gang("b", 2)], 4, [0, 2], id="the gang that fits"),
        pytest.param([job("a", copies=4), wants("b", copies=2)], 3, [1, 2], id="what always runs is first"),
        pytest.param(
            [job("a", copies=8), wants("b", 4)], 4, [0, 1], id="what always runs is first, though it is large"
        ),
        pytest.param([wants("a", copies=4, least_copies=1), wants("b", copies=3)], 4, [1, 3], id="the least is first"),
        pytest.param([*gang("a", 5), *gang("b", 2, copies=3)], 4, [0, 4], id="as many copies as fit"),
        pytest.param(gang("a", 7, copies=10**9), 16, [14], id="very many gangs"),
    ],
)
def test_when_not_all_fits(consumers, gpus_there, counts):
    assert counts_when_all_runs(consumers, [node("n", gpus(gpus_there))]) == counts
