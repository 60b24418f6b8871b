from collections import Counter
from itertools import product

from hypothesis import assume, given
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
    node,
    planned,
    texts,
    wants,
)
from depth import at_depth
from gpu_constructs.capacity.packing import solver
from gpu_constructs.capacity.planned import Device
from gpu_constructs.capacity.planner import plan_capacity
from gpu_constructs.catalog.inventory import GpuInventory, GpuNode

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
    """Return the consumers that have no place, whatever else runs."""
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


@at_depth(300, quick=20)
@given(consumers_of_all_sorts(), nodes_of_all_sorts())
def test_starts_and_updates_match_an_exhaustive_search(consumers, nodes):
    plan = planned(consumers, nodes)
    homeless = lost(consumers, nodes)
    able = [one for one in consumers if one not in homeless]
    some = hosts(consumers, nodes)
    steady = pods_of(able, lambda one: one.least_pods)
    always = can_all_run(steady, some)
    everything = can_all_run(pods_of(able, lambda one: one.pods), some)
    always_lost = any(one.least_copies or one.is_for_each_node for one in homeless)
    # In which order pods come is a condition where it decides.
    assert (plan.always_fits in FITS) == (always and not always_lost)
    assert (plan.all_fits in FITS) == (everything and not homeless)
    never = {problem.subject for problem in plan.problems if "it would never start" in problem.text}
    waiting = {one.consumer.subject for one in plan.consumers if one.waiting and one.consumer in able}
    assert bool(texts(plan, "waiting")) == (always and not everything and bool(waiting - never))
    assert everything or waiting
    if always:
        check_beside(plan, [one for one in able if not one.is_for_each_node], steady, some)


def check_beside(plan, able, steady, some):
    """Check that pods never start, or wait in an update, exactly if no placement has room for them."""
    stuck, waits = set(), set()
    for one in able:
        unit = [other for other in able if other.subject == one.subject] if one.is_gang else [one]
        first = [pod for other in unit for pod in [other] * other.starting]
        if not one.least_copies and not can_all_run([*steady, *first], some):
            stuck.add(one.subject)
        if one.surge_is_needed and not can_all_run([*steady, *[one] * one.surge_together], some):
            waits.add(one.subject)
    said = [problem for problem in plan.problems if "it would never start" in problem.text]
    assert Counter(problem.subject for problem in said) == Counter(stuck)
    assert Counter(problem.subject for problem in plan.problems if problem.kind == "rollout") == Counter(waits)


@at_depth(300, quick=30)
@given(consumers_of_all_sorts(7), nodes_of_all_sorts())
def test_seats_are_those_of_a_possible_placement(consumers, nodes):
    check(planned(consumers, nodes), consumers, nodes)


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
            assert all(one.placed >= copies * one.consumer.starting for one in parts)
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
    """Nodes with one device whose pods hold several slots, or with several devices and one slot for each pod."""
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
    """Return every device with all pods that can share it."""
    for offer in nodes:
        for device in offer.devices:
            come = those_who_come(consumers, offer)
            groups = list(groups_on(come, device.slots))
            daemon = [one for one in consumers if one.is_for_each_node]
            yield offer, device, [group for group in groups if all(group.count(one) <= 1 + one.surge for one in daemon)]


def every_seating_overflows(plan, consumers, nodes):
    """Check the verdict for pods that have a place whichever other pods run."""
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


@at_depth(400, quick=50)
@given(shared_devices())
def test_memory_verdicts_match_an_exhaustive_search(drawn):
    consumers, nodes = drawn
    plan = planned(consumers, nodes)
    met = list(meetings(consumers, nodes))
    may_run_out = any(is_over(group, device) for _, device, groups in met for group in groups)
    is_silent = any(
        len(group) > 1 and any(one.vram_mib is None for one in group) for _, _, groups in met for group in groups
    )
    if may_run_out and every_seating_overflows(plan, consumers, nodes):
        assert plan.vram == "overcommitted"
    elif is_silent:
        assert plan.vram == "unknown"
    else:
        assert plan.vram == ("depends" if may_run_out else "safe")
    assert bool(plan.conflicts) == may_run_out
    assert bool(texts(plan, "vram")) == (plan.vram != "safe")
    worst = {
        (offer.name, device.gpu): max((sum(taken(one, device) for one in group) for group in groups), default=0)
        for offer, device, groups in met
    }
    said = {(one.offer.name, planned.device.gpu): planned.worst_mib for one in plan.nodes for planned in one.devices}
    assert said == worst
    check_conflicts(plan, consumers, met)


def check_conflicts(plan, consumers, met):
    """Check that conflicts are the smallest sets that exceed a device."""
    smallest = set()
    for _, device, groups in met:
        for group in groups:
            pods = tuple(sorted(Counter(consumers.index(one) for one in group).items()))
            without = [tuple(one for at, one in enumerate(group) if at != gone) for gone in range(len(group))]
            if len(group) == 1 and device.vram_each_mib is not None and (group[0].vram_mib or 0) > device.vram_each_mib:
                smallest.add((device.vram_each_mib, pods))
            if sum(taken(one, device) for one in group) > device.vram_mib and all(
                sum(taken(one, device) for one in fewer) <= device.vram_mib for fewer in without
            ):
                smallest.add((device.vram_mib, pods))
    numbers = [sum(one.pods.values()) for one in plan.conflicts]
    assert not plan.has_more_conflicts
    assert {(one.vram_mib, tuple(sorted(one.pods.items()))) for one in plan.conflicts} == smallest
    assert numbers == sorted(numbers)


# Numbers without end: the work is that of the kinds there are, not of the pods, nodes and slots


HUGE = 10**9


def test_a_plan_handles_very_large_numbers(rows):
    for consumers, nodes, _what in rows:
        check(planned(consumers, nodes), consumers, nodes)


# By hand


def test_a_suspended_object_does_not_count_and_a_note_states_it():
    container = {"name": "c", "image": "a:1", "resources": {"limits": {"nvidia.com/gpu": 9}}}
    spec = {"suspend": True, "template": {"spec": {"containers": [container]}}}
    run = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "r"}, "spec": spec}
    made = plan_capacity([run], GpuInventory(nodes=[GpuNode(name="n", vram="24Gi")]))
    assert made.problems == []
    assert any(note.startswith("default/r: the app suspends, ") for note in made.notes)


def test_power_is_summed_by_rack():
    nodes = [
        node("n", gpu_watts=[300, 300], rack="r", count=2),
        node("m", gpu_watts=[None, 100], rack="r"),
        node("k", gpu_watts=[50]),
    ]
    power = planned([], nodes, r=2_000).power
    assert (power.watts, power.unknown, power.racks, power.rack_watts) == (1_350, 1, {"r": 1_300}, {"r": 2_000})
    assert [one.watts for one in planned([], nodes).nodes] == [600, None, 50]


def test_manifests_outside_an_app_are_planned():
    container = {"name": "c", "image": "a:1", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    pods = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}
        for name in "pq"
    ]
    inventory = GpuInventory(nodes=[GpuNode(name="n", vram="24Gi")])
    made = plan_capacity([{"apiVersion": "v1", "kind": "List", "items": pods}], inventory)
    assert (made.stock["nvidia.com/gpu"].wanted, made.stock["nvidia.com/gpu"].total) == (2, 1)


def test_without_the_solver_a_plan_states_how_to_install_it(monkeypatch):
    consumers = [wants(str(number), size) for number, size in enumerate((6, 5, 4, 3, 3, 3, 2, 2, 2, 2))]
    nodes = [node("pool", gpus(8), count=4)]
    assert planned(consumers, nodes).always_fits in FITS
    monkeypatch.setattr(solver, "is_installed", lambda: False)
    plan = planned(consumers, nodes)
    assert plan.always_fits == "undecided"
    assert plan.notes[-1].endswith("it is not installed. Run pip install 'gpu-constructs[plan]'")
