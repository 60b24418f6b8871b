"""Conditions of a plan: where it says "fits, if" and not "everything fits"."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from gpu_constructs.capacity.consumer import Condition, Consumer
from gpu_constructs.capacity.gathered import grouped
from gpu_constructs.capacity.matching import Matching, Packed
from gpu_constructs.capacity.placement_keys import admits_plain_nodes, placement_key
from gpu_constructs.capacity.plan import Plan
from gpu_constructs.capacity.planned import Answer, Problem
from gpu_constructs.capacity.wording import has, joined

_ONLY_THESE = Condition(
    "the cluster has no nodes beside those of the inventory: no node selector or node affinity keeps its pods off "
    "nodes without GPUs, where they stay Pending",
    "write a node_selector that only nodes with GPUs match",
)
# What no controller updates.
_KEPT = frozenset({"Pod", "ReplicaSet", "ReplicationController", "ResourceClaim"})
DECLARE = "declare it with GpuNode(labels=...)"
"""The way out of a label that no node declares."""


def unchecked(condition: Condition, subject: int | None = None) -> Problem:
    """Return a condition as the problem that a synth warns of.

    Args:
        condition: The condition.
        subject: Index of the object it is about.
    """
    return Problem(kind="unchecked", subject=subject, what=f"it fits, if {condition}", way_out=condition.way_out)


def conditional(plan: Plan, found: Sequence[Problem]) -> Plan:
    """Return a plan with more conditions, under which its answers then stand.

    Args:
        plan: The plan.
        found: The conditions.
    """
    together = list(dict.fromkeys([*plan.conditions, *found]))
    about = {condition.subject for condition in together}
    lasting = {each.consumer.subject for each in plan.consumers if each.consumer.lasts}
    return replace(
        plan,
        conditions=together,
        always_fits=_answer(plan.always_fits, is_sure=about.isdisjoint({None, *lasting})),
        all_fits=_answer(plan.all_fits, is_sure=not about),
    )


def _answer(answer: Answer, *, is_sure: bool) -> Answer:
    return "conditional" if answer == "yes" and not is_sure else answer


def conditions(matching: Matching) -> Iterator[Problem]:
    """Return the conditions that consumers bring along, and those that labels of nodes are.

    Args:
        matching: The consumers and the nodes that take them.
    """
    for offer in matching.offers:
        for note in offer.notes:
            if isinstance(note, Condition):
                yield unchecked(Condition(f"on {offer.name} {note}", note.way_out))
    for index, consumer in enumerate(matching.consumers):
        if not consumer.is_stopped:
            for condition in _of_consumer(matching, index):
                yield unchecked(condition, consumer.subject)
    for label, nodes in sorted(_undeclared(matching).items()):
        yield unchecked(
            Condition(
                f"the label {label}, which pods select and which is not declared, is as they want it on "
                f"{joined([*dict.fromkeys(nodes)])}",
                DECLARE,
            )
        )


def _of_consumer(matching: Matching, index: int) -> Iterator[Condition]:
    consumer = matching.consumers[index]
    yield from (note for note in consumer.notes if isinstance(note, Condition))
    if consumer.is_for_each_node and admits_plain_nodes(placement_key(consumer)):
        yield _ONLY_THESE
    for kind, labels in matching.uncertain.get(index, {}).items():
        names = matching.names([kind])
        yield Condition(
            f"{joined(names)} {has(names)} no label {joined(labels)} that it selects: with it the DaemonSet makes a "
            "pod there that stays Pending",
            DECLARE,
        )


def _undeclared(matching: Matching) -> Mapping[str, Sequence[str]]:
    """Return the labels that were taken as matching, each with the nodes where they were."""
    # Of each group one is asked for all.
    groups = matching.eligibility.consumer_groups[: len(matching.consumers)]
    asking = {group: index for index, group in reversed([*enumerate(groups)])}
    return grouped(
        (label, name)
        for index in sorted(asking.values())
        for number in sorted(matching.takers[index])
        for label in matching.eligibility.unknown_labels(index, matching.kinds[number][0])
        for name in matching.names([number])
    )


# Updates that delete a pod before they make the new one, which something that waits may overtake


def races(matching: Matching, always: Packed, waiting: Mapping[int, int]) -> Iterator[str]:
    """Return a sentence where the new pods of updates may lose their GPUs to pods that wait.

    Args:
        matching: The consumers and the nodes that take them.
        always: Whether what always runs has a place, without which nothing is said.
        waiting: Pods that wait when all that may run runs, by consumer.

    Source:
        kubernetes/kubernetes@v1.36.2:pkg/controller/deployment/recreate.go: no new pod is made while an old one runs.
        The deletion makes the scheduler try all waiting pods again, before the new pod exists.
    """
    if always.packing.answer != "yes":
        return
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
        yield (
            f"an update of {matching.named(losers)} deletes {its}, and a waiting pod of {matching.named(winners)} may "
            "take the GPU in between; with a PriorityClass of a higher value the scheduler evicts that pod for the new "
            "one"
        )


def _alike(matching: Matching, indexes: Iterable[int]) -> list[list[int]]:
    """Return consumers by what decides who overtakes whom."""
    asking = [(index, matching.consumers[index]) for index in indexes]
    return [
        *grouped(
            ((matching.takers[index], frozenset(one.asks), one.priority, one.preempts), index) for index, one in asking
        ).values()
    ]


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
