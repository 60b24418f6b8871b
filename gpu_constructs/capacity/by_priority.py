"""Who gets the places where there are too few: by priority, and by eviction.

Sources:
    kubernetes/kubernetes@v1.36.2:pkg/scheduler/framework/plugins/queuesort/priority_sort.go: of pods that wait the one
    with the highest priority is tried first, also where its policy is ``Never``.

    kubernetes/kubernetes@v1.36.2:pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go: a pod evicts
    pods with lower priority only, the lowest first, unless its policy is ``Never``; what it need not evict stays.
"""

from __future__ import annotations

from collections.abc import Mapping

from gpu_constructs.capacity.matching import Matching
from gpu_constructs.capacity.placed_pods import PlacedPods


def tiers(matching: Matching, pods: Mapping[int, int]) -> list[dict[int, int]]:
    """Return pods by their priority, the highest first.

    Args:
        matching: Who goes where.
        pods: Pods by consumer.
    """
    found: dict[int, dict[int, int]] = {}
    for index, count in pods.items():
        if count:
            found.setdefault(matching.consumers[index].priority, {})[index] = count
    return [found[priority] for priority in sorted(found, reverse=True)]


def placed_by_priority(matching: Matching, least: Mapping[int, int], most: Mapping[int, int]) -> PlacedPods:
    """Return which pods run when all that may run is there: what always runs came first, then the rest.

    Args:
        matching: Who goes where.
        least: Pods by consumer that run for as long as nobody stops them.
        most: The same when all that may run runs.
    """
    placed = PlacedPods.of(matching, matching.pack({}))
    for tier in tiers(matching, least):
        placed = _with(matching, placed, tier)
    for tier in tiers(matching, {index: most[index] - count for index, count in least.items()}):
        before = placed.counts()
        placed = _with(matching, placed, tier)
        after = placed.counts()
        lacking = {
            index: missing
            for index, count in tier.items()
            if matching.consumers[index].preempts
            and (missing := count - after.get(index, 0) + before.get(index, 0)) > 0
        }
        if lacking:
            placed = _evicting(matching, after, lacking)
    return placed


def evicted(matching: Matching, steady: Mapping[int, int], pods: Mapping[int, int]) -> dict[int, int]:
    """Return which of the pods that always run go when others of a higher priority come.

    Args:
        matching: Who goes where.
        steady: Pods by consumer that always run.
        pods: Pods by consumer that come.
    """
    after = _evicting(matching, steady, pods).counts()
    remain = {index: after.get(index, 0) - pods.get(index, 0) for index in steady}
    return {index: gone for index, count in steady.items() if (gone := count - remain[index]) > 0}


def _evicting(matching: Matching, there: Mapping[int, int], pods: Mapping[int, int]) -> PlacedPods:
    """Return pods beside those that have their priority or a higher one, and what then is left for the others."""
    priority = min(matching.consumers[index].priority for index in pods)
    stronger = {index: count for index, count in there.items() if matching.consumers[index].priority >= priority}
    weaker = {index: count for index, count in there.items() if index not in stronger}
    placed = _with(matching, PlacedPods.of(matching, matching.pack(stronger)), pods)
    for tier in tiers(matching, weaker):
        placed = _with(matching, placed, tier)
    return placed


def _with(matching: Matching, placed: PlacedPods, more: Mapping[int, int]) -> PlacedPods:
    """Return as many more pods as have a place beside all that are there."""
    there = placed.counts()
    made = PlacedPods.of(matching, matching.pack(there, more))
    found = made.counts()
    wanted = {index: there.get(index, 0) for index in {*there, *more}}
    if all(found.get(index, 0) >= count for index, count in wanted.items()):
        return made
    made = placed.copy()
    for index, count in more.items():
        made.add(index, count)
    return made
