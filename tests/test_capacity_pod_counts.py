from __future__ import annotations

import pytest

from capacity_consumers import daemons, job, wants
from gpu_constructs.capacity.pod_counts import as_it_runs, most_on_node, starting, updating


@pytest.mark.parametrize(
    ("consumer", "pods"),
    [
        (job(pods_each=3), 1),
        (job(pods_each=3, is_gang=True), 3),
        (job(pods_each=3, is_gang=True, starts_with=2), 2),
        (job(pods_each=3, is_gang=True, starts_with=9), 3),
        (job(pods_each=3, is_gang=True, starts_with=0), 0),
        (job(pods_each=3, starts_with=2), 1),
    ],
)
def test_pods_to_start_with(consumer, pods):
    assert starting(consumer) == pods


@pytest.mark.parametrize(
    ("consumer", "pods"),
    [
        (wants(surge=2), 0),
        (wants(surge_is_needed=True), 0),
        (wants(surge=2, surge_is_needed=True), 1),
        (wants(copies=3, surge=3, surge_is_needed=True, surge_together=3), 3),
        (wants(copies=3, pods_each=2, is_gang=True, surge=2, surge_is_needed=True), 2),
    ],
)
def test_new_pods_at_once(consumer, pods):
    assert updating(consumer) == pods


@pytest.mark.parametrize(
    ("consumer", "pods"),
    [
        (wants(copies=3), 3),
        (wants(copies=3, surge=2), 5),
        (wants(copies=3, surge=2, most_per_node=1), 1),
        (wants(copies=0, surge=2), 0),
        (daemons(), 1),
        (daemons(surge=1), 2),
    ],
)
def test_pods_on_a_node_at_most(consumer, pods):
    assert most_on_node(consumer) == pods


def test_what_is_stopped_has_no_pods():
    stopped = as_it_runs(wants(copies=3, surge=1, is_stopped=True))
    assert (stopped.pods, stopped.least_pods, most_on_node(stopped), updating(stopped)) == (0, 0, 0, 0)
    assert not as_it_runs(daemons(is_stopped=True)).is_for_each_node
    running = wants(copies=3)
    assert as_it_runs(running) is running
