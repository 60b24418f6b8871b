"""Conditions of a plan: where it says "fits, if" and not "everything fits"."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpu_constructs.capacity.condition import Condition
from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.matching import Matching
from gpu_constructs.capacity.placement_keys import admits_plain_nodes, placement_key
from gpu_constructs.capacity.plan import Answer, Plan, Problem
from gpu_constructs.capacity.wording import has, joined

_ONLY_THESE = Condition(
    "the cluster has no nodes beside those of the inventory: no node selector or node affinity keeps its pods off "
    "nodes without GPUs, where they stay Pending",
    "write a node_selector that only nodes with GPUs match",
)
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
    lasting = {each.consumer.subject for each in plan.consumers if _lasts(each.consumer)}
    return replace(
        plan,
        conditions=together,
        always_fits=_answer(plan.always_fits, is_sure=about.isdisjoint({None, *lasting})),
        all_fits=_answer(plan.all_fits, is_sure=not about),
    )


def _lasts(consumer: Consumer) -> bool:
    return consumer.is_for_each_node or consumer.least_copies > 0


def _answer(answer: Answer, *, is_sure: bool) -> Answer:
    return "conditional" if answer == "yes" and not is_sure else answer


def conditions(matching: Matching) -> Iterator[Problem]:
    """Return the conditions that consumers bring along, and those that labels of nodes are.

    Args:
        matching: Who goes where.
    """
    for offer in matching.offers:
        for note in offer.notes:
            if isinstance(note, Condition):
                yield unchecked(Condition(f"on {offer.name} {note}", note.way_out))
    for index, consumer in enumerate(matching.consumers):
        if consumer.is_stopped:
            continue
        for note in consumer.notes:
            if isinstance(note, Condition):
                yield unchecked(note, consumer.subject)
        if consumer.is_for_each_node and admits_plain_nodes(placement_key(consumer)):
            yield unchecked(_ONLY_THESE, consumer.subject)
        for kind, labels in matching.uncertain.get(index, {}).items():
            names = matching.names([kind])
            yield unchecked(
                Condition(
                    f"{joined(names)} {has(names)} no label {joined(labels)} that it selects: with it the DaemonSet "
                    "makes a pod there that stays Pending",
                    DECLARE,
                ),
                consumer.subject,
            )
    # Of each group one is asked for all.
    eligibility, asked = matching.eligibility, set()
    undeclared: dict[str, dict[str, None]] = {}
    for index, group in enumerate(eligibility.consumer_groups[: len(matching.consumers)]):
        if group not in asked:
            asked.add(group)
            for number in sorted(matching.takers[index]):
                for label in eligibility.unknown_labels(index, matching.kinds[number][0]):
                    undeclared.setdefault(label, {}).update(dict.fromkeys(matching.names([number])))
    for label, nodes in sorted(undeclared.items()):
        yield unchecked(
            Condition(
                f"the label {label}, which pods select and which is not declared, is as they want it on "
                f"{joined(list(nodes))}",
                DECLARE,
            )
        )
