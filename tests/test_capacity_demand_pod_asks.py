import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_manifests import gpu
from gpu_constructs.capacity.demand.pod_asks import pod_asks

GPU, MIG = "nvidia.com/gpu", "nvidia.com/mig-1g.5gb"


def counts(init=(), containers=()):
    spec = {"initContainers": list(init), "containers": list(containers)}
    return pod_asks(spec, lambda name: name.startswith("nvidia.com/"))


def sidecar(count=1):
    return gpu(count, restartPolicy="Always")


@pytest.mark.parametrize(
    ("init", "containers", "expected"),
    [
        ((), [gpu(1), gpu(2)], 3),
        ([gpu(4)], [gpu(1)], 4),
        ([gpu(1)], [gpu(4)], 4),
        ([sidecar(1)], [gpu(1)], 2),
        # The sidecar runs already while the later container does its work.
        ([sidecar(1), gpu(4)], [gpu(1)], 5),
        ([gpu(4), sidecar(1)], [gpu(1)], 4),
        ([sidecar(2), gpu(1), sidecar(1), gpu(3)], [gpu(1)], 6),
    ],
)
def test_a_pod_takes_what_runs_at_once(init, containers, expected):
    assert counts(init, containers) == {GPU: expected}


@pytest.mark.parametrize(
    ("amount", "expected"),
    [("2", 2), ("1k", 1000), ("500m", 1), ("${trialParameters.n}", 1), (2.0, 2), (10**12, 10**12)],
)
def test_an_amount_is_read_as_kubernetes_reads_it(amount, expected):
    assert counts(containers=[gpu(amount)]) == {GPU: expected}


@pytest.mark.parametrize("amount", [0, "0", "0.0", -1])
def test_none_asked_for_is_none(amount):
    assert counts(containers=[gpu(amount)]) == {}


def test_a_request_counts_as_its_limit_does():
    container = {"resources": {"requests": {GPU: 1, "cpu": "1"}, "limits": {MIG: 2}}}
    assert counts(containers=[container]) == {GPU: 1, MIG: 2}


CONTAINER = st.tuples(st.booleans(), st.dictionaries(st.sampled_from([GPU, MIG]), st.integers(1, 9)))


def most_at_once(init, containers):
    """Play the start of a pod: who runs at each moment, and what they take together."""
    moments = []
    running = []
    for lasts, takes in init:
        moments.append([*running, takes])
        if lasts:
            running.append(takes)
    moments.append([*running, *(takes for _, takes in containers)])
    sums = {}
    for moment, resource in itertools.product(moments, (GPU, MIG)):
        sums[resource] = max(sums.get(resource, 0), sum(takes.get(resource, 0) for takes in moment))
    return {resource: count for resource, count in sums.items() if count}


@settings(max_examples=200)
@given(st.lists(CONTAINER, max_size=5), st.lists(CONTAINER, max_size=3))
def test_a_pod_takes_the_most_that_ever_runs_at_once(init, containers):
    def written(lasts, takes):
        return {"resources": {"limits": takes}, **({"restartPolicy": "Always"} if lasts else {})}

    got = counts([written(*one) for one in init], [written(False, takes) for _, takes in containers])
    assert got == most_at_once(init, containers)
