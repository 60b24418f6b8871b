from __future__ import annotations

import sys
from collections import Counter
from itertools import product

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from capacity_consumers import (
    GPU,
    MIG,
    accepts,
    admits,
    can_all_run,
    daemons,
    gpus,
    groups_on,
    hosts,
    job,
    node,
    placed,
    planned,
    texts,
    wants,
)
from gpu_constructs.capacity.node_offer import Device
from gpu_constructs.capacity.planner import plan_capacity
from gpu_constructs.capacity.pod_counts import starting
from gpu_constructs.inventory import GpuInventory, GpuNode

# Against every placement

# On a machine that is busy, drawing takes longer than hypothesis likes.
FITS = ("yes", "conditional")


@st.composite
def nodes_of_all_sorts(draw):
    found = []
    for name in draw(st.sampled_from(["n", "nm", "nmo"])):
        devices = gpus(draw(st.integers(1, 2)), draw(st.integers(1, 3)), draw(st.sampled_from([8, 16])))
        if draw(st.integers(0, 3)) == 0:
            devices.append(Device(MIG, 1, 4, 2, "1g.5gb"))
        found.append(node(name, devices, labels={"zone": draw(st.sampled_from("xy"))}))
    if len(found) == 1:
        found = [node("n", found[0].devices, draw(st.integers(1, 3)), labels=found[0].labels)]
    return found


ASKS = [{GPU: 1}, {GPU: 1}, {GPU: 1}, {GPU: 2}, {GPU: 3}, {MIG: 1}, {GPU: 1, MIG: 1}]


@st.composite
def consumers_of_all_sorts(draw, most_pods=5):
    found, pods = [], 0
    for subject, name in enumerate("abcde"):
        kind = draw(st.sampled_from(["pods", "pods", "pods", "gang", "daemons"]))
        given = {
            "subject": subject,
            "zone": draw(st.sampled_from([None, None, "x", "y"])),
            "asks": draw(st.sampled_from(ASKS)),
            "vram_mib": draw(st.sampled_from([None, 0, 3, 5, 9])),
        }
        if kind == "daemons":
            if draw(st.booleans()):
                found.append(daemons(name, **given))
            continue
        copies = draw(st.integers(1, 2))
        least = draw(st.sampled_from([0, copies, 1]))
        parts = ["", "Worker"] if kind == "gang" else [""]
        for part in parts:
            each = draw(st.integers(1, 2)) if kind == "gang" else 1
            asks = draw(st.sampled_from(ASKS)) if part else given["asks"]
            most = draw(st.sampled_from([None, None, 1]))
            numbers = {"copies": copies, "least_copies": least, "pods_each": each, "is_gang": kind == "gang"}
            surge = {"surge": 1, "surge_is_needed": draw(st.booleans()), "surge_together": draw(st.integers(1, 2))}
            if kind == "gang":
                surge = {"starts_with": draw(st.sampled_from([None, 1, each]))}
            found.append(wants(name, part=part, most_per_node=most, **{**given, "asks": asks}, **numbers, **surge))
            pods += copies * each
    assume(pods <= most_pods)
    return found


def pods_at_once(one):
    return one.pods


def least(one):
    return one.least_pods


def pods_of(consumers, number):
    return [one for one in consumers if not one.is_for_each_node for _ in range(number(one))]


def lost(consumers, nodes):
    """Give those that have no place, whatever else runs."""
    alone = [one for one in consumers if not any(accepts(offer, one) for offer in nodes)]
    gangs = {one.subject for one in alone if one.is_gang}
    found = [one for one in consumers if one in alone or (one.is_gang and one.subject in gangs)]
    for one in consumers:
        if one.is_for_each_node and one not in found:
            before = consumers[: consumers.index(one)]
            mine = [offer for offer in nodes if admits(offer, one)]
            if not all(host.has_all_daemons for host in hosts([*before, one], mine)):
                found.append(one)
    return found


@given(consumers_of_all_sorts(), nodes_of_all_sorts())
@settings(max_examples=200)
def test_what_fits_is_what_some_placement_shows(consumers, nodes):
    plan = planned(consumers, nodes)
    homeless = lost(consumers, nodes)
    able = [one for one in consumers if one not in homeless]
    some = hosts(consumers, nodes)
    always = can_all_run(pods_of(able, lambda one: one.least_pods), some)
    everything = can_all_run(pods_of(able, lambda one: one.pods), some)
    always_lost = any(one.least_copies or one.is_for_each_node for one in homeless)
    # In which order pods come is a condition where it decides.
    assert (plan.always_fits in FITS) == (always and not always_lost)
    assert (plan.all_fits in FITS) == (everything and not homeless)
    never = {problem.subject for problem in plan.problems if "it would never start" in problem.text}
    waiting = {one.consumer.subject for one in plan.consumers if one.waiting and one.consumer in able}
    assert bool(texts(plan, "waiting")) == (always and not everything and bool(waiting - never))
    assert everything or waiting


@given(consumers_of_all_sorts(), nodes_of_all_sorts())
@settings(max_examples=200)
def test_what_never_starts_and_what_update_waits_is_what_has_no_room_in_any_placement(consumers, nodes):
    plan = planned(consumers, nodes)
    able = [one for one in consumers if one not in lost(consumers, nodes) and not one.is_for_each_node]
    steady, some = pods_of(able, lambda one: one.least_pods), hosts(consumers, nodes)
    assume(can_all_run(steady, some))
    stuck, waits = set(), set()
    for one in able:
        unit = [other for other in able if other.subject == one.subject] if one.is_gang else [one]
        first = [pod for other in unit for pod in [other] * starting(other)]
        if not one.least_copies and not can_all_run([*steady, *first], some):
            stuck.add(one.subject)
        if one.surge_is_needed and not can_all_run([*steady, *[one] * one.surge_together], some):
            waits.add(one.subject)
    said = [problem for problem in plan.problems if "it would never start" in problem.text]
    assert Counter(problem.subject for problem in said) == Counter(stuck)
    assert Counter(problem.subject for problem in plan.problems if problem.kind == "rollout") == Counter(waits)


@given(consumers_of_all_sorts(7), nodes_of_all_sorts())
@settings(max_examples=200)
def test_seats_are_those_of_a_placement_that_is_possible(consumers, nodes):
    plan = planned(consumers, nodes)
    check(plan, consumers, nodes)


def check(plan, consumers, nodes):
    assert [one.consumer for one in plan.consumers] == list(consumers)
    counted = Counter()
    for one in plan.nodes:
        counted[one.offer.name] += one.count
    assert counted == {offer.name: offer.count for offer in nodes}
    held, room = Counter(), []
    for one in plan.nodes:
        assert [planned.device for planned in one.devices] == list(one.offer.devices)
        here, left = Counter(), Counter(one.offer.allocatable)
        for planned_device in one.devices:
            device = planned_device.device
            assert planned_device.used_slots <= device.slots
            left[device.resource] -= planned_device.used_slots
            assert planned_device.worst_mib >= planned_device.seated_mib
            taken = 0
            for seat in planned_device.seats:
                assert accepts(one.offer, consumers[seat.consumer])
                assert 1 <= seat.pods <= seat.slots
                here[seat.consumer, device.resource] += seat.slots
                taken += seat.pods * (consumers[seat.consumer].vram_mib or 0)
            assert planned_device.seated_mib == taken
            assert len({seat.consumer for seat in planned_device.seats}) == len(planned_device.seats)
        on_node = {}
        for (index, resource), slots in here.items():
            pods, rest = divmod(slots, consumers[index].asks[resource])
            assert rest == 0
            assert on_node.setdefault(index, pods) == pods
            most = 1 if consumers[index].is_for_each_node else consumers[index].most_per_node
            assert most is None or pods <= most
        for index, pods in on_node.items():
            held[index] += pods * one.count
        room.append((one, left, on_node))
    always_fits = not any(one.least_pods > each.placed for one, each in zip(consumers, plan.consumers, strict=True))
    for index, each in enumerate(plan.consumers):
        one = each.consumer
        assert held[index] == each.placed
        accepting = [offer for offer in nodes if accepts(offer, one)]
        assert list(each.nodes) == [offer.name for offer in accepting]
        assert each.refusals.keys() == {offer.name for offer in nodes if offer not in accepting}
        every = sum(offer.count for offer in nodes if admits(offer, one))
        assert each.placed + each.waiting == (every if one.is_for_each_node else one.pods)
        if plan.always_fits == "yes" and not one.is_for_each_node:
            assert each.placed >= one.least_pods
        if each.waiting and accepting and not one.is_gang and not one.is_for_each_node:
            for node_there, left, on_node in room:
                fits = accepts(node_there.offer, one) and all(left[name] >= amount for name, amount in one.asks.items())
                assert not fits or on_node.get(index) == one.most_per_node
    assert always_fits or plan.always_fits != "yes"
    for each in plan.consumers:
        if each.consumer.is_gang:
            parts = [one for one in plan.consumers if one.consumer.subject == each.consumer.subject]
            copies = max(-(-one.placed // one.consumer.pods_each) for one in parts)
            assert copies <= each.consumer.copies
            assert all(one.placed >= copies * starting(one.consumer) for one in parts)
    for name, stock in plan.stock.items():
        assert stock.total == sum(offer.allocatable.get(name, 0) * offer.count for offer in nodes)
        assert stock.placed == sum(one.placed * one.consumer.asks.get(name, 0) for one in plan.consumers)
        assert stock.placed <= min(stock.total, stock.wanted)
        assert stock.always <= stock.wanted
    for problem in plan.problems:
        assert max(len(problem.text), len(problem.way_out)) <= 600
        assert problem.way_out


# Memory, against every placement


@st.composite
def shared_devices(draw):
    """Nodes of one device each whose pods hold several slots, or of several where each holds one."""
    alone = draw(st.booleans())
    nodes = []
    for name in draw(st.sampled_from(["n", "nm"])):
        each = draw(st.sampled_from([None, None, None, 6]))
        devices = gpus(1 if alone else 2, draw(st.integers(1, 4)), draw(st.sampled_from([8, 12])), vram_each_mib=each)
        nodes.append(node(name, devices, labels={"zone": name}))
    consumers = []
    for subject, name in enumerate(draw(st.sampled_from(["ab", "abc", "abcd"]))):
        zone, vram = draw(st.sampled_from([None, None, "n"])), draw(st.sampled_from([None, 0, 2, 3, 4, 5, 7, 9]))
        given = {"subject": subject, "vram_mib": vram, "asks": {GPU: draw(st.integers(1, 2)) if alone else 1}}
        given["surge"] = draw(st.sampled_from([0, 0, 0, 1]))
        if draw(st.integers(0, 5)) == 0:
            consumers.append(daemons(name, zone=zone, **given))
        else:
            most = draw(st.sampled_from([None, None, 1])) if alone else None
            copies = draw(st.integers(1, 2))
            least = draw(st.integers(0, copies))
            consumers.append(wants(name, zone=zone, most_per_node=most, copies=copies, least_copies=least, **given))
    return consumers, nodes


def those_who_come(consumers, offer):
    here = [one for one in consumers if accepts(offer, one)]
    return [one for one in here for _ in range(one.surge + (1 if one.is_for_each_node else one.pods))]


def taken(pod, device):
    return min(pod.vram_mib or 0, pod.vram_mib or 0 if device.vram_each_mib is None else device.vram_each_mib)


def is_over(pods, device):
    held_short = device.vram_each_mib is not None and any((pod.vram_mib or 0) > device.vram_each_mib for pod in pods)
    return held_short or sum(taken(pod, device) for pod in pods) > device.vram_mib


def meetings(consumers, nodes):
    """Give every device with all pods that may meet there."""
    for offer in nodes:
        for device in offer.devices:
            come = those_who_come(consumers, offer)
            groups = list(groups_on(come, device.slots))
            daemon = [one for one in consumers if one.is_for_each_node]
            yield offer, device, [group for group in groups if all(group.count(one) <= 1 + one.surge for one in daemon)]


def every_seating_overflows(plan, consumers, nodes):
    """Tell it of those who have a place whoever else gets one."""
    able, some = [one for one in consumers if one not in lost(consumers, nodes)], hosts(consumers, nodes)
    number = next((n for n in (pods_at_once, least) if can_all_run(pods_of(able, n), some)), lambda one: 0)
    pods, places = [], [(offer, device) for offer in nodes for device in offer.devices]
    for each in plan.consumers:
        one = each.consumer
        if one.is_for_each_node:
            for offer in nodes:
                on_it = any(
                    consumers[seat.consumer] == one
                    for there in plan.nodes
                    if there.offer == offer
                    for device in there.devices
                    for seat in device.seats
                )
                pods += [(one, [at for at, (of, _) in enumerate(places) if of == offer])] * on_it
        else:
            mine = [at for at, (offer, _) in enumerate(places) if accepts(offer, one)]
            pods += [(one, mine)] * (number(one) if mine else 0)
    assume(len(places) ** len(pods) <= 20_000)
    for chosen in product(*(mine for _, mine in pods)):
        held = [[one for (one, _), there in zip(pods, chosen, strict=True) if there == at] for at in range(len(places))]
        is_possible = all(
            sum(one.asks[GPU] for one in those) <= device.slots
            and all(one.most_per_node is None or those.count(one) <= one.most_per_node for one in those)
            for those, (_, device) in zip(held, places, strict=True)
        )
        if is_possible and not any(is_over(those, place[1]) for those, place in zip(held, places, strict=True)):
            return False
    return True


@given(shared_devices())
@settings(max_examples=250)
def test_the_verdict_on_memory_is_that_of_all_placements(drawn):
    consumers, nodes = drawn
    plan = planned(consumers, nodes)
    check_of_memory = list(meetings(consumers, nodes))
    may_run_out = any(is_over(group, device) for _, device, groups in check_of_memory for group in groups)
    is_silent = any(
        len(group) > 1 and any(one.vram_mib is None for one in group)
        for _, _, groups in check_of_memory
        for group in groups
    )
    if may_run_out and every_seating_overflows(plan, consumers, nodes):
        assert plan.vram == "overcommitted"
    elif is_silent:
        assert plan.vram == "unknown"
    else:
        assert plan.vram == ("depends" if may_run_out else "safe")
    assert bool(plan.conflicts) == may_run_out
    assert bool(texts(plan, "vram")) == (plan.vram != "safe")


@given(shared_devices())
@settings(max_examples=150)
def test_the_worst_of_a_device_is_that_of_all_who_may_meet_there(drawn):
    consumers, nodes = drawn
    plan = planned(consumers, nodes)
    worst = {
        (offer.name, device.gpu): max((sum(taken(one, device) for one in group) for group in groups), default=0)
        for offer, device, groups in meetings(consumers, nodes)
    }
    said = {(one.offer.name, planned.device.gpu): planned.worst_mib for one in plan.nodes for planned in one.devices}
    assert said == worst


@given(shared_devices())
@settings(max_examples=150)
def test_conflicts_are_the_smallest_sets_that_are_too_much(drawn):
    consumers, nodes = drawn
    plan = planned(consumers, nodes)
    smallest = set()
    for _, device, groups in meetings(consumers, nodes):
        for group in groups:
            pods = tuple(sorted(Counter(consumers.index(one) for one in group).items()))
            without = [tuple(one for at, one in enumerate(group) if at != gone) for gone in range(len(group))]
            if len(group) == 1 and device.vram_each_mib is not None and (group[0].vram_mib or 0) > device.vram_each_mib:
                smallest.add((device.vram_each_mib, pods))
            if sum(taken(one, device) for one in group) > device.vram_mib and all(
                sum(taken(one, device) for one in fewer) <= device.vram_mib for fewer in without
            ):
                smallest.add((device.vram_mib, pods))
    said = {(one.vram_mib, tuple(sorted(one.pods.items()))) for one in plan.conflicts}
    assert not plan.has_more_conflicts
    assert said == smallest
    assert [sum(one.pods.values()) for one in plan.conflicts] == sorted(
        sum(one.pods.values()) for one in plan.conflicts
    )


@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 9)), min_size=1, max_size=5),
    st.integers(1, 3),
    st.integers(1, 4),
)
@settings(max_examples=150)
def test_the_worst_of_one_gpu_of_several_is_no_less_than_all_who_may_meet_there(pods, devices, slots):
    consumers = [wants(name, asked, vram_mib=mib) for name, (asked, mib) in zip("abcde", pods, strict=False)]
    plan = planned(consumers, [node(devices=gpus(devices, slots, 10))])
    said = {planned.worst_mib for one in plan.nodes for planned in one.devices}
    come = [one for one in pods if one[0] <= devices * slots]
    best = 0
    for chosen in product([0, 1], repeat=len(come)):
        those = [one for one, is_in in zip(come, chosen, strict=True) if is_in]
        if len(those) <= slots and sum(asked for asked, _ in those) <= devices * slots:
            best = max(best, sum(mib for _, mib in those))
    assert len(said) == 1
    assert min(said) >= best
    if len({asked for asked, _ in pods}) == 1:
        assert min(said) == best


# Numbers without end: the work is that of the kinds there are, not of the pods, nodes and slots


def counted_calls(function):
    calls = 0

    def count(_frame, event, _argument):
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(None)
    return calls


HUGE = 10**9


@pytest.mark.parametrize(
    ("consumers", "nodes"),
    [
        pytest.param([wants(copies=HUGE)], [node("n", gpus(8))], id="replicas"),
        pytest.param([wants("a"), job("b", copies=HUGE, pods_each=3, is_gang=True)], [node("n", gpus(8))], id="gangs"),
        pytest.param([wants(copies=HUGE, most_per_node=1)], [node("n", gpus(8), count=10**6)], id="nodes"),
        pytest.param([job("a", copies=HUGE), daemons("d")], [node("n", gpus(8), count=10**6)], id="daemons"),
        pytest.param([wants("a", 4_000, vram_mib=4_000, copies=50)], [node("n", gpus(8, 16_303))], id="slices"),
        pytest.param([wants("a", 3, copies=HUGE), job("b", 2, copies=HUGE)], [node("n", gpus(8, 16_303))], id="both"),
        pytest.param(
            [
                wants(name, size, vram_mib=size, copies=HUGE)
                for name, size in zip("abc", (300, 700, 1_100), strict=True)
            ],
            [node("n", gpus(2, 16_303, 16_303), count=10**6)],
            id="sizes",
        ),
    ],
)
def test_very_many_of_something_are_planned_at_once(consumers, nodes):
    assert counted_calls(lambda: check(planned(consumers, nodes), consumers, nodes)) < 200_000


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(lambda n: ([wants(f"w{i}", i % 3 + 1, vram_mib=i % 7) for i in range(n)], 1), id="consumers"),
        pytest.param(lambda n: ([wants(f"w{i}", copies=9) for i in range(9)], n), id="nodes"),
        pytest.param(lambda n: ([wants(f"w{i}", surge=1, surge_is_needed=True) for i in range(n)], 1), id="updates"),
        pytest.param(lambda n: ([job(f"w{i}", subject=i) for i in range(n)], 1), id="jobs"),
        pytest.param(lambda n: ([job(f"w{i}", subject=i, is_gang=True, pods_each=3) for i in range(n)], 1), id="gangs"),
        pytest.param(lambda n: ([daemons(f"w{i}", zone="z0") for i in range(n)], n), id="daemons"),
    ],
)
def test_twice_as_much_takes_about_twice_the_work(case):
    def calls(number):
        consumers, count = case(number)
        nodes = [node(f"n{i}", gpus(8, 2), labels={"zone": f"z{i}"}) for i in range(count)]
        return counted_calls(lambda: planned(consumers, nodes))

    calls(10)
    assert calls(400) < 3 * calls(200)


# By hand


def test_nothing_asks_for_anything():
    plan = planned([], [node("n", gpus(2, 3), count=4)])
    assert (plan.always_fits, plan.all_fits, plan.vram, plan.problems) == ("yes", "yes", "safe", [])
    assert [(one.title, one.count) for one in plan.nodes] == [("n 1 to 4", 4)]
    assert (plan.stock[GPU].total, plan.stock[GPU].left) == (24, 24)


def test_what_always_runs_has_its_place_before_what_ends():
    plan = planned([job("a", copies=4), wants("b", copies=2)], [node("n", gpus(3))])
    assert placed(plan) == {"ml/a": 1, "ml/b": 2}
    stock = plan.stock[GPU]
    assert (stock.total, stock.always, stock.wanted, stock.placed, stock.left) == (3, 2, 6, 3, 0)


def test_half_of_a_gang_is_not_seated():
    plan = planned([job("a", part="x", is_gang=True), job("a", 2, part="y", is_gang=True)], [node("n", gpus(2))])
    assert placed(plan) == {"ml/a x": 0, "ml/a y": 0}
    assert not any(device.seats for one in plan.nodes for device in one.devices)


def test_a_gang_of_which_one_part_has_no_node_waits_as_a_whole():
    gang = [wants("a", part="x", is_gang=True), wants("a", part="y", is_gang=True, zone="z")]
    plan = planned([*gang, job("b")], [node("n")])
    assert placed(plan) == {"ml/a x": 0, "ml/a y": 0, "ml/b": 1}
    assert (plan.always_fits, plan.all_fits) == ("no", "no")
    assert [problem.kind for problem in plan.problems] == ["placement"]


def test_a_gang_is_seated_with_what_it_starts_with_and_more_where_there_is_room():
    gang = [job("a", part="x", is_gang=True), job("a", part="y", is_gang=True, pods_each=4, starts_with=2)]
    assert placed(planned(gang, [node("n", gpus(2))])) == {"ml/a x": 0, "ml/a y": 0}
    assert placed(planned(gang, [node("n", gpus(3))])) == {"ml/a x": 1, "ml/a y": 2}
    assert placed(planned(gang, [node("n", gpus(4))])) == {"ml/a x": 1, "ml/a y": 3}
    both = [job(name, is_gang=True, pods_each=4, starts_with=1, subject=ord(name)) for name in "ab"]
    assert placed(planned(both, [node("n", gpus(2))])) == {"ml/a": 1, "ml/b": 1}


def test_what_somebody_stopped_holds_nothing_and_is_no_problem():
    stopped = [wants("b", is_stopped=True, vram_mib=99_000), daemons("d", is_stopped=True), job("c", is_stopped=True)]
    plan = planned([wants("a", vram_mib=1), *stopped], [node("n")])
    assert (plan.always_fits, plan.all_fits, plan.vram, plan.problems) == ("yes", "yes", "safe", [])
    assert (plan.stock[GPU].always, plan.stock[GPU].wanted) == (1, 1)


def test_what_somebody_suspended_is_said_not_to_count():
    container = {"name": "c", "image": "a:1", "resources": {"limits": {"nvidia.com/gpu": 9}}}
    spec = {"suspend": True, "template": {"spec": {"containers": [container]}}}
    run = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "r"}, "spec": spec}
    made = plan_capacity([run], GpuInventory(nodes=[GpuNode(name="n", vram="24Gi")]))
    assert made.problems == []
    assert any(note.startswith("default/r: it is suspended, ") for note in made.notes)


def test_kinds_that_are_not_known_are_said_to_be_left_out():
    container = {"name": "c", "image": "a:1", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    flow = {"apiVersion": "a.io/v1", "kind": "Flow", "metadata": {"name": "p"}, "spec": {"steps": [container]}}
    made = plan_capacity([flow], GpuInventory(nodes=[GpuNode(name="n", vram="24Gi")]))
    assert any("Flow" in one.text and "not counted" in one.text for one in made.conditions)


def test_work_that_ends_and_has_no_node_does_not_touch_what_always_runs():
    plan = planned([wants("a"), job("b", 2)], [node("n")])
    assert (plan.always_fits, plan.all_fits) == ("yes", "no")


def test_pods_that_every_node_gets_wait_where_there_is_no_room():
    plan = planned([daemons("d"), daemons("e"), wants("f")], [node("n", count=2), node("m", gpus(3))])
    assert [(one.placed, one.waiting) for one in plan.consumers] == [(3, 0), (1, 2), (1, 0)]
    assert plan.always_fits == "no"


def test_nodes_of_a_pool_that_hold_others_are_shown_apart():
    plan = planned([wants("a", 2)], [node("n", gpus(2), count=3)])
    assert sorted((one.count, sum(device.used_slots for device in one.devices)) for one in plan.nodes) == [
        (1, 2),
        (2, 0),
    ]
    assert [one.first for one in plan.nodes] == [0, plan.nodes[0].count]


def test_power_is_added_up_by_rack():
    nodes = [
        node("n", gpu_watts=[300, 300], rack="r", count=2),
        node("m", gpu_watts=[None, 100], rack="r"),
        node("k", gpu_watts=[50]),
    ]
    power = planned([], nodes, r=2_000).power
    assert (power.watts, power.unknown, power.racks, power.rack_watts) == (1_350, 1, {"r": 1_300}, {"r": 2_000})
    assert [one.watts for one in planned([], nodes).nodes] == [600, None, 50]


def test_problems_are_in_the_order_of_their_weight():
    consumers = [
        wants("a", 9),
        wants("b", vram_mib=20_000),
        job("c", copies=3),
        job("d", 2, most_per_node=1),
        wants("e", zone="z", surge=1, surge_is_needed=True),
    ]
    plan = planned(consumers, [node("n", gpus(2), gpu_watts=[9], rack="r"), node("m", labels={"zone": "z"})], r=1)
    assert [problem.kind for problem in plan.problems] == ["placement", "slots", "rollout", "vram", "power", "waiting"]


def test_notes_say_whose_they_are_and_conditions_what_was_taken_as_matching():
    pods = wants("a", pod_spec={"nodeSelector": {"nvidia.com/gpu.product": "X"}}, notes=("it is odd",))
    nodes = [node(f"n{number}", notes=("it is new",) if not number else ()) for number in range(8)]
    plan = planned([pods], nodes)
    assert plan.notes == ["n0: it is new", "ml/a: it is odd"]
    assert [condition.text for condition in plan.conditions] == [
        "it fits, if the label nvidia.com/gpu.product, which pods select and which is not declared, is as they want it "
        "on n0, n1, n2, n3, n4, n5 and 2 more"
    ]


@pytest.mark.parametrize(
    ("serving", "queued", "is_noted"),
    [
        ({}, {"copies": 2}, True),
        ({"kind": "StatefulSet"}, {"copies": 2}, True),
        ({}, {"copies": 1, "zone": "z"}, False),
        ({"surge": 1}, {"copies": 2}, False),
        ({"kind": "Pod"}, {"copies": 2}, False),
        ({"priority": 1}, {"copies": 2}, False),
        ({"priority": 1, "preempts": False}, {"copies": 2}, True),
        ({}, {"copies": 2, "priority": -1}, False),
        ({"priority": 1}, {"copies": 2, "priority": 1}, True),
    ],
)
def test_an_update_that_deletes_first_may_lose_its_gpu_to_what_waits(serving, queued, is_noted):
    nodes = [node("n", gpus(2)), node("z", labels={"zone": "z"})] if "zone" in queued else [node("n", gpus(2))]
    plan = planned([wants("a", **serving), job("q", **queued)], nodes)
    note = (
        "an update of ml/a deletes its old pod before it makes the new one, and a waiting pod of ml/q may take the GPU "
        "in between; with a PriorityClass of a higher value the scheduler evicts that pod for the new one"
    )
    assert (note in plan.notes) == is_noted


def test_the_same_app_is_planned_the_same_way():
    consumers = [wants(f"w{i}", i % 3 + 1, copies=3, least_copies=1, vram_mib=5_000 * (i % 4)) for i in range(12)]
    nodes = [node(f"n{i}", gpus(2, 3)) for i in range(5)]
    assert planned(consumers, nodes) == planned(consumers, nodes)


def test_manifests_that_no_app_makes_are_planned():
    container = {"name": "c", "image": "a:1", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    pods = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}
        for name in "pq"
    ]
    inventory = GpuInventory(nodes=[GpuNode(name="n", vram="24Gi")])
    made = plan_capacity([{"apiVersion": "v1", "kind": "List", "items": pods}], inventory)
    assert (made.stock["nvidia.com/gpu"].wanted, made.stock["nvidia.com/gpu"].total) == (2, 1)
