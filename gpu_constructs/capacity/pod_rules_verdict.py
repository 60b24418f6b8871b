"""What rules between pods make of the answers of a plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Literal

from gpu_constructs.capacity.conditions import DECLARE, unchecked
from gpu_constructs.capacity.consumer import Condition, Consumer
from gpu_constructs.capacity.demand.pod_rules import Rules
from gpu_constructs.capacity.matching import Matching, Packed
from gpu_constructs.capacity.placed_pods import PlacedPods
from gpu_constructs.capacity.planned import Problem
from gpu_constructs.capacity.pod_rules_search import BetweenPods, Found
from gpu_constructs.capacity.quotas import Quotas
from gpu_constructs.capacity.wording import joined, several

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
        self.conditions = [unchecked(one, matching.consumers[index].subject) for index, one in rules.conditions]
        for index, labels in between.undeclared.items():
            clause = f"its {_RULES} find a place by the label {joined(labels)}, which is not declared for all nodes"
            self.conditions.append(unchecked(Condition(clause, DECLARE), matching.consumers[index].subject))
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
