"""What may run out though every pod has a place, in words: memory of a GPU, power of a rack."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.eligibility import vram_refusal
from gpu_constructs.capacity.matching import Matching
from gpu_constructs.capacity.plan import Conflict, PlannedDevice, Power, Problem, VramVerdict
from gpu_constructs.capacity.report.words import percent
from gpu_constructs.capacity.wording import MOST_NAMED, joined, nodewise, several

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
        self._sharing: dict[str, frozenset[int]] = {}

    def of_large_budgets(self) -> Iterator[Problem]:
        """Pods that want more memory than any device they may get has."""
        refused: dict[object, Mapping[str, str]] = {}
        for index, consumer in enumerate(self._consumers):
            is_there = consumer.pods > 0 or consumer.is_for_each_node
            if consumer.vram_mib is None or not is_there or not self._matching.takers[index]:
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
        """Give why no GPU of some nodes has memory enough, of a few of them; nothing where one has."""
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
        greatest = max(devices, key=_degree, default=None)
        reasons = []
        is_open = bool(others) or not conflicts
        if is_open and greatest is not None and _degree(greatest) > 1:
            mib = greatest.device.vram_mib or 0
            who = "a pod may take" if greatest.device.slots == 1 else "pods that may meet on one GPU take up to"
            reasons.append(f"{who} {greatest.worst_mib} of its {mib} MiB ({percent(greatest.worst_mib, mib)} %)")
        if others:
            sets = [joined([self._pods(i, n) for i, n in one.pods.items()]) for one in others]
            more = len(sets) - _MOST_CONFLICTS
            few = "; ".join(sets[:_MOST_CONFLICTS]) + (f"; and {more} more" if more > 0 else "")
            reasons.append(f"too much for one GPU: {few}")
        met = {index for one in others for index in one.pods}
        where = frozenset[int]().union(*(self._matching.takers[index] for index in met))
        queued = [index for index in sorted(waiting) if not where.isdisjoint(self._matching.takers[index])]
        if queued:
            who = joined([self._matching.titles[index] for index in queued])
            reasons.append(f"not all run at once: pods of {who} wait for slots")
        ways = self._ways(others)
        if silent:
            reasons.append(f"{joined(silent)} {'states' if len(silent) == 1 else 'state'} no budget")
            ways.insert(0, "GpuRequest(vram=...) for each" if len(silent) > 1 else "GpuRequest(vram=...) for it")
        elif verdict == "unknown":
            blank = [one.name for one in self._offers if any(device.vram_mib is None for device in one.devices)]
            reasons.append(f"the memory of the GPUs of {joined(blank)} is not known")
            ways.insert(0, "GpuNode(vram=...)")
        # What is too much for any GPU by itself has been said: what is left then is that nobody knows.
        start = _STARTS[verdict if is_open else "unknown"]
        yield Problem(kind="vram", subject=None, what=start, way_out=", or ".join(ways), details=tuple(reasons))

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
        """Tell whether there are so many pods of a consumer only while it is updated."""
        consumer = self._consumers[index]
        return count > (1 if consumer.is_for_each_node else consumer.pods)

    def _is_said(self, conflict: Conflict) -> bool:
        """Tell whether it is one pod that is too large wherever it goes."""
        return sum(conflict.pods.values()) == 1 and not self._too_large.isdisjoint(conflict.pods)

    def _is_silent(self, index: int, consumer: Consumer) -> bool:
        """Tell whether pods that may meet others do not say what they take."""
        is_there = consumer.pods > 0 or consumer.is_for_each_node
        takers = self._matching.takers[index]
        return (
            consumer.vram_mib is None
            and is_there
            and any(not self._shared_in(name).isdisjoint(takers) for name in consumer.asks)
        )

    def _shared_in(self, resource: str) -> frozenset[int]:
        """Give the kinds of nodes with a device of a resource that several pods may hold."""
        if resource not in self._sharing:
            self._sharing[resource] = frozenset(
                number
                for number, kind in enumerate(self._matching.kinds)
                if any(one.slots > 1 for one in self._offers[kind[0]].devices if one.resource == resource)
            )
        return self._sharing[resource]


def power_problems(matching: Matching, power: Power) -> Iterator[Problem]:
    """Racks whose GPUs draw more than they have, and those of which nobody can tell."""
    unknown: dict[str, int] = {}
    names: dict[str, list[str]] = {}
    for offer in matching.offers:
        boards = sum(watts is None for watts in offer.gpu_watts) * offer.count
        if boards:
            unknown[offer.rack] = unknown.get(offer.rack, 0) + boards
            names.setdefault(offer.rack, []).append(offer.name)
    for rack, most in power.rack_watts.items():
        draws, blank = power.racks.get(rack, 0), unknown.get(rack, 0)
        which = "1 board" if blank == 1 else f"{blank} boards"
        of_blank = f"the power of {which} ({joined(names.get(rack, []))}) is not known"
        if draws > most:
            more = f"; {of_blank}" if blank else ""
            yield Problem(
                kind="power",
                subject=None,
                what=f"the GPUs of rack {rack!r} draw {draws} W at their power limits, and it has {most} W{more}",
                way_out="hold them lower with PowerLimit or GpuNode(power_limit=...), or move a node",
            )
        elif blank:
            yield Problem(
                kind="power",
                subject=None,
                what=f"whether the GPUs of rack {rack!r} draw more than the {most} W that it has cannot be told: "
                f"{of_blank}, and the others draw {draws} W at their power limits",
                way_out="name the board with GpuNode(gpu_model=...), or hold it with GpuNode(power_limit=...)",
            )


def _degree(planned: PlannedDevice) -> float:
    return planned.worst_mib / planned.device.vram_mib if planned.device.vram_mib else 0.0
