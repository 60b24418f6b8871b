"""Claims of DRA that leave a choice, or take all devices of a node, are counted as each node can satisfy them."""

from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from capacity_consumers import node, wants
from capacity_manifests import manifest
from gpu_constructs.capacity.consumer import Choice
from gpu_constructs.capacity.node_offer import Device
from gpu_constructs.capacity.planner import plan_capacity, plan_of
from gpu_constructs.inventory import GpuInventory, GpuNode

WHOLE, MIG = "gpu.nvidia.com", "mig.nvidia.com"
A100 = "NVIDIA A100-SXM4-80GB"


def boards(number=1, name="boards", **given):
    return GpuNode(name=name, gpu_model=A100, gpus=number, **given)


def divided(parts=2, name="divided"):
    return GpuNode(name=name, gpu_model=A100, mig_layout={"1g.10gb": parts})


def claim(*choices, name="t", **request):
    listed = [{"name": f"c{number}", **choice} for number, choice in enumerate(choices)]
    wanted = {"firstAvailable": listed} if listed else {"exactly": request}
    spec = {"spec": {"devices": {"requests": [{"name": "gpu", **wanted}]}}}
    return manifest("resource.k8s.io/v1 ResourceClaimTemplate", spec, name)


def first_of(*classes, counts=(), **given):
    numbers = counts or [1] * len(classes)
    return claim(*({"deviceClassName": one, "count": n} for one, n in zip(classes, numbers, strict=True)), **given)


def every(device_class=WHOLE, **given):
    return claim(deviceClassName=device_class, allocationMode="All", **given)


def pods(kind="apps/v1 Deployment", replicas=1, name="x", templates=("t",)):
    held = [{"name": one, "resourceClaimTemplateName": one} for one in templates]
    template = {"spec": {"containers": [{"name": "main"}], "resourceClaims": held}}
    job = {"parallelism": replicas, "completions": replicas, "template": template}
    recreated = {"replicas": replicas, "strategy": {"type": "Recreate"}, "template": template}
    return manifest(kind, job if kind == "batch/v1 Job" else recreated, name)


def planned(*manifests, nodes):
    return plan_capacity(manifests, GpuInventory(nodes=list(nodes)))


def outcome(plan):
    return plan.all_fits, sum(one.placed for one in plan.consumers), sum(one.waiting for one in plan.consumers)


@pytest.mark.parametrize(
    ("template", "replicas", "nodes", "expected"),
    [
        # Each node takes the first choice that it can satisfy.
        (first_of(MIG, WHOLE), 2, [boards(2)], ("yes", 2, 0)),
        (first_of(WHOLE, MIG), 2, [divided(2)], ("yes", 2, 0)),
        (first_of(MIG, WHOLE), 3, [boards(1), divided(2)], ("yes", 3, 0)),
        (first_of(WHOLE, MIG), 3, [boards(1), divided(2)], ("yes", 3, 0)),
        # What one choice runs out of, the next one gives.
        (
            first_of(WHOLE, MIG),
            3,
            [GpuNode(name="n", gpu_model=A100, gpus=2, mig_layout=[{}, {"1g.10gb": 2}])],
            ("yes", 3, 0),
        ),
        (first_of(WHOLE, WHOLE, counts=(4, 2)), 1, [boards(2)], ("yes", 1, 0)),
        # However they choose, there are too few devices.
        (first_of(MIG, WHOLE), 4, [boards(1), divided(2)], ("no", 3, 1)),
        (first_of(MIG, WHOLE, counts=(3, 2)), 1, [boards(1), divided(2)], ("no", 0, 1)),
        # All devices of a node: none of them may be taken.
        (every(), 2, [boards(4, count=2)], ("yes", 2, 0)),
        (every(), 2, [boards(4), boards(2, name="two")], ("yes", 2, 0)),
        (every(), 2, [boards(4)], ("no", 1, 1)),
        (every(MIG), 1, [boards(4)], ("no", 0, 1)),
    ],
)
def test_each_node_takes_the_first_choice_that_it_can_satisfy(template, replicas, nodes, expected):
    plan = planned(template, pods(replicas=replicas), nodes=nodes)
    assert outcome(plan) == expected
    assert bool(plan.problems) == (expected[0] == "no")


# Whether a job starts beside what always runs is not looked at while a choice is open.
@pytest.mark.parametrize(("kind", "answer"), [("apps/v1 Deployment", "yes"), ("batch/v1 Job", "conditional")])
def test_all_devices_of_a_node_wait_where_one_is_taken(kind, answer):
    other = first_of(WHOLE, name="one")
    plan = planned(every(), other, pods(kind=kind), pods(name="y", templates=("one",)), nodes=[boards(4)])
    assert plan.all_fits == "no"
    assert (
        planned(
            every(), other, pods(kind=kind), pods(name="y", templates=("one",)), nodes=[boards(4), boards(name="b")]
        ).all_fits
        == answer
    )


def test_all_devices_that_meet_conditions_are_not_counted_out():
    template = every(selectors=[{"cel": {"expression": "device.attributes['gpu.nvidia.com'].index == 0"}}])
    plan = planned(template, pods(replicas=4), nodes=[boards(4)])
    assert outcome(plan) == ("conditional", 4, 0)
    assert any("one device of a node meets the conditions" in one.what for one in plan.conditions)


def test_a_daemon_set_chooses_on_each_node():
    nodes = [boards(1), divided(2)]
    plan = planned(first_of(WHOLE, MIG), pods("apps/v1 DaemonSet"), nodes=nodes)
    assert outcome(plan) == ("conditional", 2, 0)
    assert outcome(planned(every(MIG), pods("apps/v1 DaemonSet"), nodes=nodes)) == ("no", 1, 1)


def test_a_choice_that_is_no_gpu_fails_nothing():
    plan = planned(first_of(MIG, "fpga.example.com"), pods(replicas=3), nodes=[boards(1)])
    assert (plan.all_fits, plan.problems) == ("conditional", [])
    assert any("fpga.example.com, which is not known to be GPUs" in one.what for one in plan.conditions)


def test_two_requests_choose_together():
    plan = planned(first_of(WHOLE, MIG), first_of(WHOLE, MIG, name="u"), pods(templates=("t", "u")), nodes=[divided(2)])
    assert outcome(plan) == ("yes", 1, 0)


def test_all_devices_leave_none_for_another_request_of_the_pod():
    plan = planned(every(), first_of(WHOLE, name="u"), pods(templates=("t", "u")), nodes=[boards(4)])
    assert outcome(plan) == ("no", 0, 1)
    assert "offers 4 gpu.nvidia.com, of which a pod wants 5" in plan.problems[0].text


def test_what_was_not_found_out_fails_nothing():
    plan = planned(first_of(WHOLE, WHOLE, counts=(4, 2)), pods(replicas=2), nodes=[boards(4)])
    assert (plan.always_fits, outcome(plan)) == ("undecided", ("undecided", 1, 1))
    assert [problem.kind for problem in plan.problems] == ["waiting"]


def test_what_runs_may_have_chosen_otherwise_than_in_the_way_of_a_job():
    both = [first_of(WHOLE, WHOLE, counts=(2, 1)), first_of(WHOLE, name="one")]
    plan = planned(*both, pods(), pods("batch/v1 Job", name="y", templates=("one",)), nodes=[boards(2)])
    assert (plan.always_fits, plan.all_fits) == ("conditional", "undecided")
    assert [problem.kind for problem in plan.problems] == ["waiting"]


# Against every order in which pods come

ALL_OF = frozenset([WHOLE])
CHOICES = [
    *(Choice({WHOLE: 1}), Choice({WHOLE: 2}), Choice({WHOLE: 1}, ALL_OF)),
    *(Choice({MIG: 1}), Choice({MIG: 2}), Choice({WHOLE: 1, MIG: 1})),
]


@st.composite
def consumers_with_choices(draw):
    found = []
    for subject in range(draw(st.integers(1, 3))):
        choices = tuple(draw(st.lists(st.sampled_from(CHOICES), min_size=1, max_size=3, unique_by=repr)))
        copies = draw(st.integers(1, 2))
        least = draw(st.sampled_from([0, copies]))
        numbers = {"copies": copies, "least_copies": least, "subject": subject}
        found.append(wants(f"c{subject}", asks=choices[0].asks, choices=choices, **numbers))
    return found


@st.composite
def nodes_with_devices(draw):
    found = []
    for number in range(draw(st.integers(1, 2))):
        boards = [Device(WHOLE, 1, None, gpu) for gpu in range(draw(st.integers(1, 2)))]
        found.append(node(f"n{number}", [*boards, *[Device(MIG, 1, None, 9, "1g")] * draw(st.integers(0, 3))]))
    return found


def can_all_come(consumers, nodes):
    """Check whether all pods run in some order, each on a node of which it takes the first choice that is free."""
    seen = set()

    def come(free, left):
        if not any(left):
            return True
        if (free, left) in seen:
            return False
        seen.add((free, left))
        for index, at in product(range(len(left)), range(len(nodes))):
            has = dict(free[at])
            for choice in consumers[index].choices if left[index] else ():
                asks = choice.on(nodes[at].allocatable)
                if asks is not None and all(has.get(name, 0) >= count for name, count in asks.items()):
                    rest = tuple(sorted((name, count - asks.get(name, 0)) for name, count in has.items()))
                    fewer = (*left[:index], left[index] - 1, *left[index + 1 :])
                    if come((*free[:at], rest, *free[at + 1 :]), fewer):
                        return True
                    break
        return False

    return come(tuple(tuple(sorted(one.allocatable.items())) for one in nodes), tuple(one.pods for one in consumers))


@given(consumers_with_choices(), nodes_with_devices())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_runs_in_some_order_is_never_said_to_lack_room(consumers, nodes):
    plan = plan_of(consumers, nodes, {}, {})
    if can_all_come(consumers, nodes):
        assert (plan.always_fits == "no", plan.all_fits == "no") == (False, False)
        assert not {problem.kind for problem in plan.problems} & {"placement", "slots", "rollout"}
