"""What ResourceQuotas admit: pods over one are never created, however many GPUs are free.

Source:
    kubernetes/kubernetes@v1.36.2:staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go: the
    API server refuses the object; controllers of pods then report FailedCreate and try again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from gpu_constructs.capacity.consumer import Consumer, QuotaShare
from gpu_constructs.capacity.gathered import grouped, summed
from gpu_constructs.capacity.matching import Matching
from gpu_constructs.capacity.planned import Problem

_Amount = tuple[str, str, int]
"""Quota, resource and how much of it there is."""
_WAY_OUT = "raise the quota, or ask for less"


class Quotas:
    """Pods that the quotas of an app admit.

    Attributes:
        least: Pods by consumer that run until they are stopped and that quotas admit.
        most: The same when all that may run runs.
        of_daemons: Pods that each consumer gets which every node gets.
    """

    def __init__(self, matching: Matching) -> None:
        self._matching = matching
        self._consumers = matching.consumers
        self._left: dict[_Amount, int] = {}
        able = [index for unit in matching.units for index in unit]
        self.of_daemons = {
            index: self._admit(index, nodes) for index, nodes in matching.nodes_of_daemons.items() if nodes
        }
        self.least = dict.fromkeys(able, 0)
        for unit in matching.units:
            self._admit_unit(unit, self.least, self._consumers[unit[0]].least_copies)
        self.most = dict(self.least)
        self._left_always = dict(self._left)
        for unit in matching.units:
            copies = self._consumers[unit[0]].copies - self._consumers[unit[0]].least_copies
            self._admit_unit(unit, self.most, copies)

    @property
    def admits_always(self) -> bool:
        """Whether all that always runs is created."""
        return not self._lacking(lasting=True)

    @property
    def admits_all(self) -> bool:
        """Whether all that may run at once is created."""
        return not self._lacking(lasting=False)

    def _admit(self, index: int, pods: int) -> int:
        """Return how many of some more pods are created, and count them."""
        shares = self._consumers[index].quotas
        admitted = min([pods, *(self._room(share) // share.takes for share in shares)])
        for share in shares:
            self._left[_amount(share)] = self._room(share) - admitted * share.takes
        return admitted

    def _room(self, share: QuotaShare) -> int:
        return max(self._left.get(_amount(share), share.hard), 0)

    def _admit_unit(self, unit: Sequence[int], pods: dict[int, int], copies: int) -> None:
        """Admit copies of what starts together; of a gang whole ones only, and the pods it can start without last."""
        consumers = self._consumers
        if not consumers[unit[0]].is_gang:
            pods[unit[0]] += self._admit(unit[0], copies * consumers[unit[0]].pods_each)
            return
        each = summed(
            (_amount(share), consumers[index].starting * share.takes)
            for index in unit
            for share in consumers[index].quotas
        )
        rooms = [self._left.get(amount, amount[2]) // takes for amount, takes in each.items() if takes]
        copies = min([copies, *rooms])
        for index in unit:
            pods[index] += self._admit(index, copies * consumers[index].starting)
        for index in unit:
            pods[index] += self._admit(index, copies * (consumers[index].pods_each - consumers[index].starting))

    def _first_over(self, pods: Mapping[int, int], left: Mapping[_Amount, int]) -> QuotaShare | None:
        """Return the first quota that does not admit some more pods together."""
        wanted: dict[_Amount, int] = {}
        for index, count in pods.items():
            for share in self._consumers[index].quotas:
                amount = _amount(share)
                wanted[amount] = wanted.get(amount, 0) + count * share.takes
                if wanted[amount] > left.get(amount, share.hard):
                    return share
        return None

    def _wanted(self, index: int, *, lasting: bool) -> int:
        consumer = self._consumers[index]
        if consumer.is_for_each_node:
            return self._matching.nodes_of_daemons.get(index, 0)
        return consumer.least_pods if lasting else consumer.pods

    def _lacking(self, *, lasting: bool) -> list[int]:
        admitted = {**(self.least if lasting else self.most), **self.of_daemons}
        return [index for index, count in admitted.items() if count < self._wanted(index, lasting=lasting)]

    def problems(self) -> Iterator[Problem]:
        """Return what quotas do not admit: what always runs, what starts, what updates, then all at once."""
        always = self._lacking(lasting=True)
        yield from self._of(always, lasting=True)
        told = set(always)
        for unit in self._matching.units if not always else ():
            first = self._consumers[unit[0]]
            if not first.least_copies:
                share = self._first_over({i: self._consumers[i].starting for i in unit}, self._left_always)
                if share:
                    told.update(unit)
                    yield _later("slots", first, share, "it would never start", "its pods")
            new = {index: pods for index in unit if (pods := self._consumers[index].updating)}
            share = self._first_over(new, self._left_always)
            if share:
                yield _later("rollout", first, share, "an update would wait forever", "new pods before the old ones go")
        yield from self._of([index for index in self._lacking(lasting=False) if index not in told], lasting=False)

    def _of(self, lacking: Sequence[int], *, lasting: bool) -> Iterator[Problem]:
        shares = [(index, share) for index, one in enumerate(self._consumers) for share in one.quotas]
        short = grouped((_amount(share), index) for index, share in shares if index in lacking)
        wanted = summed((_amount(share), self._wanted(index, lasting=lasting) * share.takes) for index, share in shares)
        what = "always runs" if lasting else "may run at once"
        for (quota, resource, hard), those in short.items():
            wants = wanted[quota, resource, hard]
            if wants > hard:
                who = self._matching.named(those)
                yield Problem(
                    kind="slots" if lasting else "waiting",
                    subject=self._matching.subject_of(those),
                    what=f"{quota} admits {hard} {resource}, and what {what} wants {wants}",
                    details=(f"for the rest {_not_created(resource)}, of {who} or of others that the quota counts",),
                    way_out=_WAY_OUT if lasting else f"leave it where work may queue; else {_WAY_OUT}",
                )


def _amount(share: QuotaShare) -> _Amount:
    return share.quota, share.resource, share.hard


def _not_created(resource: str) -> str:
    # The claim is made for a pod that is there already, by a controller or by the scheduler.
    is_of_claims = resource.endswith("/devices")
    return "claims are not created, and pods stay Pending" if is_of_claims else "pods are not created (FailedCreate)"


def _later(kind: Literal["slots", "rollout"], consumer: Consumer, share: QuotaShare, what: str, pods: str) -> Problem:
    return Problem(
        kind=kind,
        subject=consumer.subject,
        what=what,
        details=(
            f"{share.quota} admits {share.hard} {share.resource}, and beside what always runs that is too "
            f"little for {pods}: {_not_created(share.resource)}",
        ),
        way_out=_WAY_OUT,
    )
