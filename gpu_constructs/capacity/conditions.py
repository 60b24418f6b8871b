"""The conditions of a capacity plan, and the check of whether rules between pods leave room for all pods.

A condition is an assumption that the capacity plan cannot check, for example that a node has a label that the inventory
does not declare. Rules between pods are topology spread constraints, pod affinity and pod anti-affinity. A *consumer*
is a workload as the plan sees it: equal pods of one object that request GPUs. Long-running pods run until someone
deletes them.
"""

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
    "the inventory lists all nodes of the cluster: without a node selector or affinity, the DaemonSet also creates a "
    "pod on other nodes, which stays Pending",
    "set a node_selector that only nodes with GPUs match",
)
# Kinds whose pods no controller updates.
_KEPT = frozenset({"Pod", "ReplicaSet", "ReplicationController", "ResourceClaim"})
DECLARE = "declare it with GpuNode(labels=...)"
"""Instruction for a label that pods select and that the inventory does not declare on a node."""


def unchecked(condition: Condition, subject: int | None = None) -> Problem:
    """Return a problem of the kind ``unchecked`` that states a condition.

    Args:
        condition: Assumption that the capacity plan cannot check, and on which the answer of the plan depends.
        subject: Index of the object that the condition concerns; None if it concerns no single object.
    """
    return Problem(kind="unchecked", subject=subject, what=f"it fits, if {condition}", way_out=condition.way_out)


def conditional(plan: Plan, found: Sequence[Problem]) -> Plan:
    """Return a copy of a capacity plan with further conditions, which are assumptions that the plan cannot check.

    If the copy has conditions, ``all_fits`` is "conditional" instead of "yes". The attribute ``always_fits`` changes in
    the same way, but ignores conditions on objects without long-running pods.

    Args:
        plan: Capacity plan.
        found: Conditions to add, as problems of the kind ``unchecked``.
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
    """Yield a problem for each assumption that the capacity plan cannot check.

    An assumption is about a node or a workload, or about a label that pods select and that the inventory does not
    declare on a node.

    Args:
        matching: Workloads and the nodes that accept their pods.
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
                f"the undeclared label {label}, which pods select, has a matching value on "
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
            f"{joined(names)} {has(names)} no label {joined(labels)}, which the DaemonSet selects: with this label, "
            "the DaemonSet creates a pod there that stays Pending",
            DECLARE,
        )


def _undeclared(matching: Matching) -> Mapping[str, Sequence[str]]:
    """Return a dict from each label that pods select to the names of the nodes that do not declare the label.

    These nodes accept the pods only if the label has a matching value there.
    """
    # The same nodes accept all workloads of a group, so one workload of each group is enough.
    groups = matching.eligibility.consumer_groups[: len(matching.consumers)]
    asking = {group: index for index, group in reversed([*enumerate(groups)])}
    return grouped(
        (label, name)
        for index in sorted(asking.values())
        for number in sorted(matching.takers[index])
        for label in matching.eligibility.unknown_labels(index, matching.kinds[number][0])
        for name in matching.names([number])
    )


# Updates that delete an old pod before they create the new pod: a waiting pod may take the GPU


def races(matching: Matching, always: Packed, waiting: Mapping[int, int]) -> Iterator[str]:
    """Yield a warning about workloads whose updates delete an old pod before they create the new pod.

    Until the new pod exists, a pending pod of another workload may take the GPU of the old pod. If no pending pod can
    do this, the function yields nothing.

    Args:
        matching: Workloads and the nodes that accept their pods.
        always: Placement of the long-running pods (pods that run until someone deletes them). If some of these pods do
            not fit, the function yields nothing.
        waiting: Number of pending pods by the index of the workload, when all pods of the app exist.

    Source: kubernetes/kubernetes@v1.36.2:pkg/controller/deployment/recreate.go: The controller creates no new pod while
    an old one runs. The deletion makes the scheduler try all waiting pods again before the new pod exists.
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
        its = "its old pod before it creates the new one" if len(losers) == 1 else "old pods before it creates new ones"
        yield (
            f"an update of {matching.named(losers)} deletes {its}, and a waiting pod of {matching.named(winners)} may "
            "take the GPU first. With a higher PriorityClass, the new pod evicts that pod"
        )


def _alike(matching: Matching, indexes: Iterable[int]) -> list[list[int]]:
    """Group workloads whose pods compete for the same free GPUs. Return each group as a list of workload indices.

    The workloads of a group have the same accepting nodes, GPU resources, priority and preemption policy.

    Args:
        matching: Workloads and the nodes that accept their pods.
        indexes: Indices of the workloads to group.
    """
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


# The effect of rules between pods on the answers


_RULES = "topologySpreadConstraints, podAffinity or podAntiAffinity"
_WAY_OUT = (
    "replace required rules by preferred ones (whenUnsatisfiable: ScheduleAnyway, "
    "preferredDuringSchedulingIgnoredDuringExecution), or add a node that the rules admit to the inventory"
)
_MOST_SEARCHES = 12
"""Largest number of searches that check whether pods of Jobs or updates fit beside the long-running pods."""

_Answer = Literal["yes", "no", "undecided"]


class Beside:
    """The answers whether the nodes have room for all pods if pods also follow rules between pods.

    Rules between pods are topology spread constraints, pod affinity and pod anti-affinity.

    Attributes:
        always: Whether all long-running pods have room.
        everything: Whether all pods have room at the same time.
        always_runs: Whether all long-running pods have room, and ResourceQuotas admit them.
        all_runs: Whether all pods have room at the same time, and ResourceQuotas admit them.
        placed: Placement that follows the rules; possibly without some of the pods. None if the search gave up, or if
            the app has no rules between pods.
        problems: Problems that the rules cause.
        conditions: Assumptions that the capacity plan cannot check and on which the answers depend.
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
        clause = f"its {_RULES} leave room for it, although not all nodes declare the label {{}}"
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
        """Return "no" if a search proved that the given pods do not fit, otherwise "yes".

        For "no", add a problem to ``self.problems``. For "yes", add a condition to ``self.conditions`` if the search
        gave up or did not run, or if nodes outside the inventory can make the placement invalid.

        Args:
            found: Result of the search; None if the cluster is too large for a search.
            pods: Number of pods by the index of the workload.
            kind: Kind of the problem to record: ``slots`` for long-running pods, ``waiting`` for all pods together.
        """
        if found is None or found.answer == "undecided":
            clause = f"{_RULES} allow a placement of the pods: the search gave up before it found one"
            self.conditions.append(unchecked(Condition(clause)))
            return "yes"
        self.placed = found.placed
        if found.answer == "no":
            counts = found.placed.counts()
            lacking = {index: more for index, count in pods.items() if (more := count - counts.get(index, 0)) > 0}
            who = joined([several(self._matching.titles[index], count) for index, count in lacking.items()])
            what = "the long-running pods do not fit" if kind == "slots" else "not all pods fit at once"
            self.problems.append(
                Problem(
                    kind=kind,
                    subject=self._matching.subject_of(lacking),
                    what=what,
                    details=(f"the GPUs suffice, but {_RULES} leave {who} Pending",),
                    way_out=_WAY_OUT,
                )
            )
        elif found.is_alone:
            self.conditions.append(unchecked(_NO_OTHER_NODES))
        return found.answer

    def _later(self, steady: Mapping[int, int]) -> Iterator[Problem]:
        """Yield a problem if rules between pods leave no node for the pods of a Job, or for the new pods of an update.

        Args:
            steady: Number of long-running pods by the index of the workload. These pods run until someone deletes them.
        """
        lowest = min((self._matching.consumers[i].priority for i, count in steady.items() if count), default=0)
        for first, pods, kind in islice(self._comers(steady, lowest), _MOST_SEARCHES):
            more = {index: steady.get(index, 0) + pods.get(index, 0) for index in {*steady, *pods}}
            found = self._between.search(steady, more)
            if found is not None and found.answer == "no":
                yield Problem(
                    kind=kind,
                    subject=first.subject,
                    what="it would never start" if kind == "slots" else "an update would wait forever",
                    details=(f"{_RULES} leave no room for its new pods next to the long-running pods",),
                    way_out=_WAY_OUT,
                )

    def _comers(
        self, steady: Mapping[int, int], lowest: int
    ) -> Iterator[tuple[Consumer, Mapping[int, int], Literal["slots", "rollout"]]]:
        """Yield the groups of pods that start later: the pods of a Job, or the new pods of an update.

        A group is a tuple: its first workload, the number of its pods by the index of the workload, and the kind of
        the problem if these pods have no room. The function skips groups that no rule between pods concerns, and
        groups that can evict long-running pods.

        Args:
            steady: Number of long-running pods (pods that run until someone deletes them) by the index of the workload.
            lowest: Lowest priority of the long-running pods.
        """
        consumers = self._matching.consumers
        for unit in self._matching.units:
            first = consumers[unit[0]]
            evicts = first.preempts and first.priority > lowest
            if evicts or self._between.involved.isdisjoint(unit) or self._between.is_of_revisions(unit):
                continue
            # Other pods may have to run near the pods of a Job. These other pods then start while the Job runs.
            if not first.least_copies and not self._between.is_near_others(unit, steady):
                yield first, {index: consumers[index].starting for index in unit}, "slots"
            new = {index: count for index in unit if (count := consumers[index].updating)}
            if new:
                yield first, new, "rollout"


_NO_OTHER_NODES = Condition(
    "the inventory lists all nodes that the node selector of the pods admits: any other node is an empty domain of "
    "their topologySpreadConstraints",
    "set a node_selector that only nodes with GPUs match",
)
