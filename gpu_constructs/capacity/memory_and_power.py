"""What may run out though every pod has a place, in words: memory of a GPU, power of a rack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.eligibility import vram_refusal
from gpu_constructs.capacity.matching import Matching
from gpu_constructs.capacity.planned import Conflict, PlannedDevice, Power, Problem, VramVerdict
from gpu_constructs.capacity.report.words import percent
from gpu_constructs.capacity.wording import MOST_NAMED, counted, joined, nodewise, several

_MOST_CONFLICTS = 3
_STARTS: Mapping[VramVerdict, str] = {
    "depends": "memory of a GPU may run out, depending on which pods get it",
    "overcommitted": "memory of a GPU runs out once all pods are busy, wherever they are placed",
    "undecided": "memory of a GPU may run out, and the search for a placement that fits gave up",
    "unknown": "nobody can say whether memory of a GPU runs out",
}


class MemoryProblems:
    """Finds what is too much for the memory of GPUs."""

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
        """Pods that want more memory than any device they may get has."""
        refused: dict[object, Mapping[str, str]] = {}
        for index, consumer in enumerate(self._consumers):
            if consumer.vram_mib is None or not consumer.makes_pods or not self._matching.takers[index]:
                continue
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
                    what=f"its pods{part} want more memory than any GPU that they may get",
                    way_out="take a smaller model or quantization, or a larger GPU",
                    details=nodewise(refused[key], len(nodes)),
                )

    def _too_small(self, consumer: Consumer, kinds: Sequence[int]) -> Mapping[str, str]:
        """Return why no GPU of some nodes has enough memory, for a few of them; empty if one has."""
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
        """Memory that may run out, or that nobody can add up.

        Args:
            verdict: Whether it can.
            devices: Every device, with what is taken of it.
            conflicts: Pods that do not go together.
            waiting: Consumers some of whose pods wait for slots.
        """
        if verdict == "safe":
            return
        others = [one for one in conflicts if not self._is_said(one)]
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
        # What is too much for any GPU by itself has been said: what is left is that it is not known.
        start = _STARTS[verdict if is_open else "unknown"]
        yield Problem(kind="vram", subject=None, what=start, way_out=", or ".join(ways), details=tuple(reasons))

    def _unknown(self, silent: Sequence[str]) -> tuple[str, str]:
        """Return what is not known, and the way to state it."""
        if silent:
            states, which = ("states", "it") if len(silent) == 1 else ("state", "each")
            return f"{joined(silent)} {states} no budget", f"GpuRequest(vram=...) for {which}"
        blank = [one.name for one in self._offers if any(device.vram_mib is None for device in one.devices)]
        return f"the memory of the GPUs of {joined(blank)} is not known", "GpuNode(vram=...)"

    def _degrees(self, devices: Sequence[PlannedDevice]) -> Iterator[str]:
        """Return how much may be taken of the device of which most is, if that is too much."""
        known = [(one, one.device.vram_mib) for one in devices if one.device.vram_mib]
        one, mib = max(known, key=lambda one: one[0].worst_mib / one[1], default=(None, 0))
        if one and one.worst_mib > mib:
            who = "a pod may take" if one.device.slots == 1 else "pods that may meet on one GPU take up to"
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
            return ["a smaller budget", "a nodeSelector for larger GPUs"]
        in_update = {i for one in conflicts for i, count in one.pods.items() if self._is_update(i, count)}
        ways = ["an update that takes old pods away first (Recreate, or maxSurge 0)"] if in_update else []
        ways.append("smaller budgets")
        if any(offer.vram_unit_mib is None for offer in self._offers if any(one.slots > 1 for one in offer.devices)):
            ways += ["fewer slots", "Sharing.vram_units(...) where nodes have one GPU"]
        return [*ways, "MIG"]

    def _pods(self, index: int, count: int) -> str:
        while_updated = " (while it is updated)" if self._is_update(index, count) else ""
        return f"{several(self._matching.titles[index], count)}{while_updated}"

    def _is_update(self, index: int, count: int) -> bool:
        """Return whether there are so many pods of a consumer only while it is updated."""
        consumer = self._consumers[index]
        return count > (1 if consumer.is_for_each_node else consumer.pods)

    def _is_said(self, conflict: Conflict) -> bool:
        """Return whether it is one pod that is too large wherever it goes."""
        return sum(conflict.pods.values()) == 1 and not self._too_large.isdisjoint(conflict.pods)

    def _is_silent(self, index: int, consumer: Consumer) -> bool:
        """Return whether pods that may meet others do not say what they take."""
        met = ((name, kind) in self._shared for name in consumer.asks for kind in self._matching.takers[index])
        return consumer.vram_mib is None and consumer.makes_pods and any(met)


def power_problems(matching: Matching, power: Power) -> Iterator[Problem]:
    """Racks whose GPUs draw more than they have, and those of which nobody can tell."""
    blank: dict[str, Counter[str]] = {}
    for offer in matching.offers:
        boards = sum(watts is None for watts in offer.gpu_watts) * offer.count
        if boards:
            blank.setdefault(offer.rack, Counter())[offer.name] += boards
    for rack, most in power.rack_watts.items():
        draws, names = power.racks.get(rack, 0), blank.get(rack, Counter[str]())
        of_blank = f"the power of {counted(sum(names.values()), 'board')} ({joined(list(names))}) is not known"
        if draws > most:
            what = f"the GPUs of rack {rack!r} draw {draws} W at their power limits, and it has {most} W"
            way_out = "hold them lower with PowerLimit or GpuNode(power_limit=...), or move a node"
            yield Problem("power", None, f"{what}; {of_blank}" if names else what, way_out)
        elif names:
            yield Problem(
                kind="power",
                subject=None,
                what=f"whether the GPUs of rack {rack!r} draw more than the {most} W that it has cannot be told: "
                f"{of_blank}, and the others draw {draws} W at their power limits",
                way_out="name the board with GpuNode(gpu_model=...), or hold it with GpuNode(power_limit=...)",
            )
