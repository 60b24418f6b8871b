"""Conditions of a plan, where it says "fits, if" and not "everything fits", and what rules between pods make of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Literal

from gpu_constructs.capacity.consumer import Condition, Consumer
from gpu_constructs.capacity.demand.pod_rules import Rules
from gpu_constructs.capacity.gathered import grouped
from gpu_constructs.capacity.limits import Quotas
from gpu_constructs.capacity.matching import Matching, Packed
from gpu_constructs.capacity.placed_pods import PlacedPods
from gpu_constructs.capacity.placement_keys import admits_plain_nodes, placement_key
from gpu_constructs.capacity.plan import Plan
from gpu_constructs.capacity.planned import Answer, Problem
from gpu_constructs.capacity.pod_rules_search import BetweenPods, Found
from gpu_constructs.capacity.wording import has, joined, several

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
    of_nodes = ((offer.name, note) for offer in matching.offers for note in offer.notes)
    yield from (
        unchecked(Condition(f"on {name} {note}", note.way_out))
        for name, note in of_nodes
        if isinstance(note, Condition)
    )
    yield from (
        unchecked(condition, consumer.subject)
        for index, consumer in enumerate(matching.consumers)
        if not consumer.is_stopped
        for condition in _of_consumer(matching, index)
    )
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


# What rules between pods make of the answers


_RULES = "topologySpreadConstraints, podAffinity or podAntiAffinity"
_WAY_OUT = (
    "prefer what is required (whenUnsatisfiable: ScheduleAnyway, preferredDuringSchedulingIgnoredDuringExecution), or "
    "another node in the inventory that the rules admit"
)
_MOST_SEARCHES = 12
"""Searches for pods that start or are updated beside what always runs."""

_Answer = Literal["yes", "no", "undecided"]


class Beside:
    """The answers of a plan with the rules between pods.

    Attributes:
        always: Whether what always runs has a place.
        everything: Whether everything has one at once.
        always_runs: Whether what always runs has a place, and quotas admit it.
        all_runs: Whether the same goes for everything.
        placed: A placement that keeps the rules; None where there are none.
        problems: Problems of what the rules keep from running.
        conditions: Conditions on which the answers rest.
    """

    def __init__(
        self,
        matching: Matching,
        between: BetweenPods,
        rules: Rules,
        quotas: Quotas,
        always: Packed,
        everything: Packed,
    ) -> None:
        self._matching = matching
        self._between = between
        self.always: _Answer = always.packing.answer
        self.everything: _Answer = everything.packing.answer
        self.placed: PlacedPods | None = None
        self.problems: list[Problem] = []
        clause = f"its {_RULES} find a place by the label {{}}, which is not declared for all nodes"
        blank = ((i, Condition(clause.format(joined(labels)), DECLARE)) for i, labels in between.undeclared.items())
        found = [*rules.conditions, *blank]
        self.conditions = [unchecked(one, matching.consumers[index].subject) for index, one in found]
        if not between.involved.isdisjoint(index for index, count in quotas.most.items() if count):
            self._look(quotas)
        self.always_runs = self.always == "yes" and quotas.admits_always
        self.all_runs = self.everything == "yes" and quotas.admits_all

    def _look(self, quotas: Quotas) -> None:
        if self.always == "yes":
            found = self._between.search(quotas.least, quotas.least)
            self.always = self._judged(found, quotas.least, "slots")
        found = self._between.search(quotas.least, quotas.most)
        if self.always != "yes":
            self.everything = self.always
            self.placed = found.placed if found is not None and found.answer == "no" else self.placed
            return
        if self.everything == "yes" and quotas.most != quotas.least:
            self.everything = self._judged(found, quotas.most, "waiting")
        self.placed = None if found is None or found.answer == "undecided" else found.placed
        self.problems += self._later(quotas.least)

    def _judged(self, found: Found | None, pods: Mapping[int, int], kind: Literal["slots", "waiting"]) -> _Answer:
        """Return the answer of a search, and keep what there is to say about it."""
        if found is None or found.answer == "undecided":
            clause = f"{_RULES} allow such a placement: none was found, and not all were looked at"
            self.conditions.append(unchecked(Condition(clause)))
            return "yes"
        self.placed = found.placed
        if found.answer == "no":
            counts = found.placed.counts()
            lacking = {index: more for index, count in pods.items() if (more := count - counts.get(index, 0)) > 0}
            who = joined([several(self._matching.titles[index], count) for index, count in lacking.items()])
            what = "what always runs does not fit" if kind == "slots" else "not all that may run fits at once"
            self.problems.append(
                Problem(
                    kind=kind,
                    subject=self._matching.subject_of(lacking),
                    what=what,
                    details=(f"there are GPUs enough, but {_RULES} leave {who} Pending",),
                    way_out=_WAY_OUT,
                )
            )
        elif found.is_alone:
            self.conditions.append(unchecked(_NO_OTHER_NODES))
        return found.answer

    def _later(self, steady: Mapping[int, int]) -> Iterator[Problem]:
        """Return what starts or is updated and never finds a place beside what always runs."""
        lowest = min((self._matching.consumers[i].priority for i, count in steady.items() if count), default=0)
        for first, pods, kind in islice(self._comers(steady, lowest), _MOST_SEARCHES):
            more = {index: steady.get(index, 0) + pods.get(index, 0) for index in {*steady, *pods}}
            found = self._between.search(steady, more)
            if found is not None and found.answer == "no":
                yield Problem(
                    kind=kind,
                    subject=first.subject,
                    what="it would never start" if kind == "slots" else "an update would wait forever",
                    details=(f"{_RULES} leave no place for its new pods beside what always runs",),
                    way_out=_WAY_OUT,
                )

    def _comers(
        self, steady: Mapping[int, int], lowest: int
    ) -> Iterator[tuple[Consumer, Mapping[int, int], Literal["slots", "rollout"]]]:
        """Return what comes beside what always runs, pods that start and new pods of updates, with its problem."""
        consumers = self._matching.consumers
        for unit in self._matching.units:
            first = consumers[unit[0]]
            evicts = first.preempts and first.priority > lowest
            if evicts or self._between.involved.isdisjoint(unit) or self._between.is_of_revisions(unit):
                continue
            # Work that ends may let others start as long as it runs.
            if not first.least_copies and not self._between.is_near_others(unit, steady):
                yield first, {index: consumers[index].starting for index in unit}, "slots"
            new = {index: count for index in unit if (count := consumers[index].updating)}
            if new:
                yield first, new, "rollout"


_NO_OTHER_NODES = Condition(
    "the cluster has no nodes beside those of the inventory that its node selector admits: such a node is an "
    "empty domain of its topologySpreadConstraints",
    "write a node_selector that only nodes with GPUs match",
)
