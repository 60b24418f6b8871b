"""Updates that delete a pod before they make the new one, which something that waits may overtake.

kubernetes/kubernetes@v1.36.2:pkg/controller/deployment/recreate.go: no new pod is made while an old one runs. The
deletion makes the scheduler try all waiting pods again, before the new pod exists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.matching import Matching
from gpu_constructs.capacity.wording import joined

# What no controller updates.
_KEPT = frozenset({"Pod", "ReplicaSet", "ReplicationController", "ResourceClaim"})


def races(matching: Matching, waiting: Mapping[int, int]) -> Iterator[str]:
    """Yield a sentence where the new pods of updates may lose their GPUs to pods that wait.

    Args:
        matching: Who goes where.
        waiting: Pods that wait when all that may run runs, by consumer.
    """
    updated = _alike(matching, (index for index, one in enumerate(matching.consumers) if _deletes_first(one)))
    queued = _alike(matching, waiting)
    pairs = [
        (some, others)
        for some in updated
        for others in queued
        if len({*some, *others}) > 1 and _overtakes(matching, others[0], some[0])
    ]
    losers = sorted({index for some, _ in pairs for index in some})
    winners = sorted({index for _, others in pairs for index in others})
    if losers:
        its = "its old pod before it makes the new one" if len(losers) == 1 else "old pods before it makes new ones"
        mine, others = (joined([matching.titles[index] for index in those]) for those in (losers, winners))
        yield (
            f"an update of {mine} deletes {its}, and a waiting pod of {others} may take the GPU in between; with a "
            "PriorityClass of a higher value the scheduler evicts that pod for the new one"
        )


def _alike(matching: Matching, indexes: Iterable[int]) -> list[list[int]]:
    """Return consumers by what decides who overtakes whom."""
    found: dict[object, list[int]] = {}
    for index in indexes:
        one = matching.consumers[index]
        key = (matching.takers[index], frozenset(one.asks), one.priority, one.preempts)
        found.setdefault(key, []).append(index)
    return list(found.values())


def _deletes_first(one: Consumer) -> bool:
    return one.kind not in _KEPT and not one.surge and (one.least_pods > 0 or one.is_for_each_node)


def _overtakes(matching: Matching, waiting: int, index: int) -> bool:
    one, other = matching.consumers[index], matching.consumers[waiting]
    gets_it_back = one.priority > other.priority and one.preempts
    return (
        not gets_it_back
        and not matching.takers[index].isdisjoint(matching.takers[waiting])
        and not set(one.asks).isdisjoint(other.asks)
    )
