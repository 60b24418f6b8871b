"""Compare plans of claims with choices with every order of pods. tables/plans.yaml has examples."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from capacity_consumers import node, wants
from depth import at_depth
from gpu_constructs.capacity.planned import Device
from gpu_constructs.capacity.planner import plan_of
from tables import beside

WHOLE, MIG = "gpu.nvidia.com", "mig.nvidia.com"
ALL_OF = frozenset([WHOLE])
CHOICES = beside(__file__, "capacity_claim_choices")["choices"]


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
    """Check whether all pods run in some order, each on a node with its first free choice."""
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


@at_depth(300, quick=40)
@given(consumers_with_choices(), nodes_with_devices())
def test_pods_that_run_in_some_order_never_lack_room(consumers, nodes):
    plan = plan_of(consumers, nodes, {}, {})
    if can_all_come(consumers, nodes):
        assert (plan.always_fits == "no", plan.all_fits == "no") == (False, False)
        assert not {problem.kind for problem in plan.problems} & {"placement", "slots", "rollout"}
