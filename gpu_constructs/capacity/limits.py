"""The limits that affect pods although nodes have free slots: ResourceQuotas, GPU memory, and power of racks.

A *consumer* is a workload as the capacity plan sees it: equal pods of one object that request GPUs. Long-running pods
are pods that run until someone deletes them.

Source:
    kubernetes/kubernetes@v1.36.2:staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go: The API
    server rejects an object that exceeds a ResourceQuota, however many GPUs are free. Controllers of pods then report
    FailedCreate and try again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal

from gpu_constructs.capacity.consumer import Consumer, QuotaShare
from gpu_constructs.capacity.eligibility import vram_refusal
from gpu_constructs.capacity.gathered import grouped, summed
from gpu_constructs.capacity.matching import Matching
from gpu_constructs.capacity.planned import Conflict, PlannedDevice, Power, Problem, VramVerdict
from gpu_constructs.capacity.report.words import percent
from gpu_constructs.capacity.wording import MOST_NAMED, counted, joined, nodewise, several

_Amount = tuple[str, str, int]
"""One limit of a ResourceQuota: its name, the key of the limit, such as ``requests.nvidia.com/gpu``, and the limit."""
_WAY_OUT = "raise the quota, or request less"


class Quotas:
    """The number of pods that the ResourceQuotas of an app admit.

    The keys of the dicts are indices of workloads. Only ``of_daemons`` contains DaemonSets.

    Attributes:
        least: Number of admitted long-running pods. Long-running pods run until someone deletes them.
        most: Number of all admitted pods, including pods that end by themselves, such as pods of a Job.
        of_daemons: Number of admitted pods of each DaemonSet.
        admits_always: Whether the quotas admit all long-running pods.
        admits_all: Whether the quotas admit all pods at the same time.
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
        self.admits_always = not self._lacking(lasting=True)
        self.admits_all = not self._lacking(lasting=False)

    def _admit(self, index: int, pods: int) -> int:
        """Return how many pods of a workload the ResourceQuotas admit.

        The function subtracts the amounts of the admitted pods from what the quotas still allow.

        Args:
            index: Index of the workload.
            pods: Number of pods that the workload requests.
        """
        shares = self._consumers[index].quotas
        admitted = min([pods, *(self._room(share) // share.takes for share in shares)])
        for share in shares:
            self._left[_amount(share)] = self._room(share) - admitted * share.takes
        return admitted

    def _room(self, share: QuotaShare) -> int:
        return max(self._left.get(_amount(share), share.hard), 0)

    def _admit_unit(self, unit: Sequence[int], pods: dict[int, int], copies: int) -> None:
        """Count the pods that ResourceQuotas admit, for a list of workloads whose pods start together.

        A copy of a gang (pods that must run together) needs a minimum number of pods to start. The function admits
        only copies with this minimum, and then as many remaining pods of these copies as the quotas allow.

        Args:
            unit: Indices of the workloads.
            pods: Number of admitted pods by the index of the workload. The function increases these numbers.
            copies: Largest number of copies (for example replicas) to admit.
        """
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
        """Return the first limit of a ResourceQuota that the given pods exceed.

        Return None if the ResourceQuotas admit all given pods.

        Args:
            pods: Number of pods by the index of the workload.
            left: Amount that other pods leave free, by limit of a ResourceQuota. A limit that the dict does not contain
                is completely free.
        """
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
        """Yield a problem for each limit of a ResourceQuota that is too small.

        Problems of long-running pods come first. Then come Jobs that would never start, and updates that would wait
        forever. Problems of all pods together come last.
        """
        always = self._lacking(lasting=True)
        yield from self._of(always, lasting=True)
        reported = set(always)
        for unit in self._matching.units if not always else ():
            first = self._consumers[unit[0]]
            if not first.least_copies:
                share = self._first_over({i: self._consumers[i].starting for i in unit}, self._left_always)
                if share:
                    reported.update(unit)
                    yield _later("slots", first, share, "it would never start", "its pods")
            new = {index: pods for index in unit if (pods := self._consumers[index].updating)}
            share = self._first_over(new, self._left_always)
            if share:
                yield _later("rollout", first, share, "an update would wait forever", "the new pods of the update")
        yield from self._of([index for index in self._lacking(lasting=False) if index not in reported], lasting=False)

    def _of(self, lacking: Sequence[int], *, lasting: bool) -> Iterator[Problem]:
        shares = [(index, share) for index, one in enumerate(self._consumers) for share in one.quotas]
        short = grouped((_amount(share), index) for index, share in shares if index in lacking)
        wanted = summed((_amount(share), self._wanted(index, lasting=lasting) * share.takes) for index, share in shares)
        what = "the long-running pods" if lasting else "all pods together"
        for (quota, resource, hard), those in short.items():
            wants = wanted[quota, resource, hard]
            if wants > hard:
                who = self._matching.named(those)
                yield Problem(
                    kind="slots" if lasting else "waiting",
                    subject=self._matching.subject_of(those),
                    what=f"{quota} admits {hard} {resource}, but {what} request {wants}",
                    details=(f"{_rejection(resource)}: pods of {who}, or other pods that the quota counts",),
                    way_out=_WAY_OUT if lasting else f"ignore this if work may queue. Otherwise, {_WAY_OUT}",
                )


def _amount(share: QuotaShare) -> _Amount:
    return share.quota, share.resource, share.hard


def _rejection(resource: str) -> str:
    # The controller creates a claim after the pod, so the pod exists and stays Pending.
    is_of_claims = resource.endswith("/devices")
    return (
        "the API server rejects claims, so pods stay Pending"
        if is_of_claims
        else "the API server rejects pods (FailedCreate)"
    )


def _later(kind: Literal["slots", "rollout"], consumer: Consumer, share: QuotaShare, what: str, pods: str) -> Problem:
    return Problem(
        kind=kind,
        subject=consumer.subject,
        what=what,
        details=(
            f"{share.quota} admits {share.hard} {share.resource}, too little for {pods} next to the "
            f"long-running pods: {_rejection(share.resource)}",
        ),
        way_out=_WAY_OUT,
    )


# Limits that running pods can exceed: GPU memory and power


_MOST_CONFLICTS = 3
_STARTS: Mapping[VramVerdict, str] = {
    "depends": "GPU memory may run out, depending on which pods share a GPU",
    "overcommitted": "GPU memory runs out once all pods are busy, on every placement",
    "undecided": "GPU memory may run out, because the search for a placement with enough memory gave up",
    "unknown": "the plan cannot determine whether GPU memory runs out",
}


class MemoryProblems:
    """Methods that describe problems with GPU memory.

    Examples are a pod that needs more memory than every GPU has, and pods that exceed the memory of a shared GPU.
    """

    def __init__(self, matching: Matching) -> None:
        self._matching = matching
        self._consumers = matching.consumers
        self._offers = matching.offers
        self._too_large: set[int] = set()
        self._shared = {
            (one.resource, number)
            for number, kind in enumerate(matching.kinds)
            for one in matching.offers[kind[0]].devices
            if one.slots > 1
        }

    def of_large_budgets(self) -> Iterator[Problem]:
        """Yield a problem for each workload if every device that its pods can get has too little memory."""
        refused: dict[object, Mapping[str, str]] = {}
        stated = [(i, one) for i, one in enumerate(self._consumers) if one.vram_mib is not None and one.makes_pods]
        for index, consumer in ((i, one) for i, one in stated if self._matching.takers[i]):
            key = (consumer.vram_mib, tuple(consumer.asks), self._matching.takers[index])
            if key not in refused:
                refused[key] = self._too_small(consumer, sorted(self._matching.takers[index]))
            if refused[key]:
                self._too_large.add(index)
                nodes = self._matching.names(self._matching.takers[index])
                part = f" ({consumer.part})" if consumer.part else ""
                yield Problem(
                    kind="vram",
                    subject=consumer.subject,
                    what=f"its pods{part} do not fit in the memory of any GPU that they can get",
                    way_out="use a smaller model or quantization, or a larger GPU",
                    details=nodewise(refused[key], len(nodes)),
                )

    def _too_small(self, consumer: Consumer, kinds: Sequence[int]) -> Mapping[str, str]:
        """Return why the GPUs of nodes have too little memory for a pod of a workload: a dict from node name to reason.

        The dict is empty if a GPU of one node has enough memory. Otherwise, it contains a few of the nodes as examples.

        Args:
            consumer: Workload.
            kinds: Indices of the groups of equal nodes to check.
        """
        whys: dict[str, str] = {}
        for kind in kinds:
            offers = [self._offers[index] for index in self._matching.kinds[kind]]
            why = vram_refusal(consumer, offers[0])
            if why is None:
                return {}
            whys.update(dict.fromkeys([offer.name for offer in offers[:MOST_NAMED]], why))
        return dict(list(whys.items())[:MOST_NAMED])

    def of_meetings(
        self,
        verdict: VramVerdict,
        devices: Sequence[PlannedDevice],
        conflicts: Sequence[Conflict],
        waiting: Collection[int],
    ) -> Iterator[Problem]:
        """Yield a problem if memory of shared GPUs may run out, or if the memory of pods or boards is not known.

        Args:
            verdict: Whether memory can run out.
            devices: All devices of the nodes, with the memory that pods take.
            conflicts: Sets of pods that need more memory than a device has.
            waiting: Indices of the workloads with pods that wait for slots.
        """
        if verdict == "safe":
            return
        others = [one for one in conflicts if not self._is_reported(one)]
        silent = [self._matching.titles[i] for i, one in enumerate(self._consumers) if self._is_silent(i, one)]
        if conflicts and not others and not silent:
            return
        is_open = bool(others) or not conflicts
        reasons = [*self._degrees(devices if is_open else ()), *self._sets(others), *self._queued(others, waiting)]
        ways = self._ways(others)
        if silent or verdict == "unknown":
            why, way = self._unknown(silent)
            reasons.append(why)
            ways.insert(0, way)
        # Another problem already reports pods that are too large for every GPU. This one reports unknown memory.
        start = _STARTS[verdict if is_open else "unknown"]
        yield Problem(kind="vram", subject=None, what=start, way_out=", or ".join(ways), details=tuple(reasons))

    def _unknown(self, silent: Sequence[str]) -> tuple[str, str]:
        """Return two texts: that the memory of pods or boards is not known, and how to declare this memory.

        Args:
            silent: Names of the workloads that state no memory. If it is empty, the memory of boards is not known.
        """
        if silent:
            states, which = ("states", "it") if len(silent) == 1 else ("state", "each")
            return f"{joined(silent)} {states} no GPU memory", f"set GpuRequest(vram=...) for {which}"
        blank = [one.name for one in self._offers if any(device.vram_mib is None for device in one.devices)]
        return f"the memory of the GPUs of {joined(blank)} is not known", "set GpuNode(vram=...)"

    def _degrees(self, devices: Sequence[PlannedDevice]) -> Iterator[str]:
        """Yield one sentence about the device whose memory the pods can exceed by the largest factor.

        Yield nothing if pods cannot exceed the memory of any device.
        """
        known = [(one, one.device.vram_mib) for one in devices if one.device.vram_mib]
        one, mib = max(known, key=lambda one: one[0].worst_mib / one[1], default=(None, 0))
        if one and one.worst_mib > mib:
            who = "a pod may take" if one.device.slots == 1 else "pods that can share one GPU take up to"
            yield f"{who} {one.worst_mib} of its {mib} MiB ({percent(one.worst_mib, mib)} %)"

    def _sets(self, conflicts: Sequence[Conflict]) -> Iterator[str]:
        if conflicts:
            sets = [joined([self._pods(i, n) for i, n in one.pods.items()]) for one in conflicts]
            more = [f"and {len(sets) - _MOST_CONFLICTS} more"] if len(sets) > _MOST_CONFLICTS else []
            yield f"too much for one GPU: {'; '.join([*sets[:_MOST_CONFLICTS], *more])}"

    def _queued(self, conflicts: Sequence[Conflict], waiting: Collection[int]) -> Iterator[str]:
        takers = self._matching.takers
        where = frozenset[int]().union(*(takers[index] for one in conflicts for index in one.pods))
        queued = [self._matching.titles[index] for index in sorted(waiting) if not where.isdisjoint(takers[index])]
        if queued:
            yield f"not all run at once: pods of {joined(queued)} wait for slots"

    def _ways(self, conflicts: Sequence[Conflict]) -> list[str]:
        if not conflicts:
            return []
        if all(sum(one.pods.values()) == 1 for one in conflicts):
            return ["set a smaller budget", "select larger GPUs with a nodeSelector"]
        in_update = {i for one in conflicts for i, count in one.pods.items() if self._is_update(i, count)}
        ways = ["delete old pods first in updates (Recreate, or maxSurge 0)"] if in_update else []
        ways.append("set smaller budgets")
        if any(offer.vram_unit_mib is None for offer in self._offers if any(one.slots > 1 for one in offer.devices)):
            ways += ["configure fewer slots", "use Sharing.vram_units(...) on nodes with one GPU"]
        return [*ways, "use MIG"]

    def _pods(self, index: int, count: int) -> str:
        while_updated = " (while it is updated)" if self._is_update(index, count) else ""
        return f"{several(self._matching.titles[index], count)}{while_updated}"

    def _is_update(self, index: int, count: int) -> bool:
        """Return whether a workload has ``count`` pods only during an update, which adds pods to the usual number."""
        consumer = self._consumers[index]
        return count > (1 if consumer.is_for_each_node else consumer.pods)

    def _is_reported(self, conflict: Conflict) -> bool:
        """Return whether ``of_large_budgets`` has already reported a conflict.

        A conflict is a set of pods that need more memory than a device has. The method ``of_large_budgets`` reports
        a single pod if every GPU that it can get has too little memory.
        """
        return sum(conflict.pods.values()) == 1 and not self._too_large.isdisjoint(conflict.pods)

    def _is_silent(self, index: int, consumer: Consumer) -> bool:
        """Return whether a workload does not state its GPU memory although its pods can share a device."""
        met = ((name, kind) in self._shared for name in consumer.asks for kind in self._matching.takers[index])
        return consumer.vram_mib is None and consumer.makes_pods and any(met)


def power_problems(matching: Matching, power: Power) -> Iterator[Problem]:
    """Yield a problem for each rack whose GPUs may draw more power than the declared limit of the rack.

    The GPUs may exceed this limit if the sum of their power limits is larger, or if the power limit of a GPU is not
    known.
    """
    boards = ((one, sum(watts is None for watts in one.gpu_watts) * one.count) for one in matching.offers)
    blank = grouped((offer.rack, (offer.name, number)) for offer, number in boards if number)
    for rack, most in power.rack_watts.items():
        draws, names = power.racks.get(rack, 0), summed(blank.get(rack, ()))
        of_blank = f"the power of {counted(sum(names.values()), 'board')} ({joined(list(names))}) is not known"
        if draws > most:
            what = f"the GPUs of rack {rack!r} draw {draws} W at their power limits, but the rack has {most} W"
            way_out = "lower the limits with PowerLimit or GpuNode(power_limit=...), or move a node"
            yield Problem("power", None, f"{what}; {of_blank}" if names else what, way_out)
        elif names:
            yield Problem(
                kind="power",
                subject=None,
                what=f"the GPUs of rack {rack!r} may draw more than its {most} W: {of_blank}, and other boards draw "
                f"{draws} W at their power limits",
                way_out="name the board with GpuNode(gpu_model=...), or limit it with GpuNode(power_limit=...)",
            )
