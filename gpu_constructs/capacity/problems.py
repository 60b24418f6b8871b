"""What does not fit, in words: who, where, why, and what to do."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from typing import Literal

from gpu_constructs.capacity.conditions import unchecked
from gpu_constructs.capacity.consumer import Condition, Consumer
from gpu_constructs.capacity.gathered import grouped, summed
from gpu_constructs.capacity.matching import Matching, Packed
from gpu_constructs.capacity.packing import Shortage
from gpu_constructs.capacity.placed_pods import PlacedPods
from gpu_constructs.capacity.planned import Problem
from gpu_constructs.capacity.room_beside import Effort, RoomBeside, evicted, stranded
from gpu_constructs.capacity.wording import counted, has, joined, memory, nodewise

MOST_REPLICAS = 128
"""Turns on a GPU of which more are no way out."""
_MOST_STRANDED = 3
_WAY_TO_UPDATE = "leave room for its new pods beside the old ones, or delete the old ones first"
_WAY_TO_START = "fewer or smaller pods that always run, or another node in the inventory"
_IN_PLACE = "maxSurge 0 and maxUnavailable 1"
_WAYS_TO_A_NODE = (
    ("taint", "give it the toleration"),
    ("of which a pod wants", "{smaller}"),
    ("offers no ", "ask for what nodes offer ({offered}), change sharing or mig_layout"),
    ("its pods want", "select labels that nodes have, or declare them with GpuNode(labels=...)"),
)
"""Words in the reasons why nodes refuse a pod, and what to do then."""
_WAYS_TO_UPDATE = {
    "Deployment": f"write strategy.type 'Recreate', or {_IN_PLACE}",
    "DaemonSet": f"write {_IN_PLACE} in updateStrategy.rollingUpdate",
    "LeaderWorkerSet": f"write {_IN_PLACE} in rolloutStrategy.rollingUpdateConfiguration",
}
_NO_ROOM = {
    "slots": (
        "it would never start",
        "its pod{part} needs {wanted}",
        "its pods, which must run together, need {wanted}",
    ),
    "rollout": (
        "an update would wait forever",
        "its new pod{part} needs {wanted} before the old one gives its own back",
        "its new pods need {wanted} before the old ones give theirs back",
    ),
}
"""What is said of pods without a place: what it comes to, what one pod needs, and what several need."""


class Problems:
    """Finds them, one kind after the other, in the numbers of a plan."""

    def __init__(self, matching: Matching) -> None:
        self._matching = matching
        self._consumers = matching.consumers
        self._offers = matching.offers
        self._told: set[int] = set()
        self._lower_than = cache(self._find_lower)
        self._effort = Effort()
        self._steady = {
            index: self._consumers[index].least_pods
            for unit in matching.units
            for index in unit
            if self._consumers[index].least_pods
        }
        self._rooms: dict[int, RoomBeside] = {}
        named = ((name, one.vram_unit_mib) for one in matching.offers for name in one.allocatable if "/" in name)
        units = {name: set(those) for name, those in grouped(named).items()}
        self._units = {name: unit for name, those in units.items() for unit in those if unit and len(those) == 1}

    @property
    def is_searched(self) -> bool:
        """Whether all was looked for that might have no place beside what always runs."""
        return not self._effort.is_spent

    # A pod by itself

    def of_placement(self) -> Iterator[Problem]:
        """Pods that no node would ever take."""
        for index, consumer in enumerate(self._consumers):
            if self._matching.takers[index] or not consumer.makes_pods:
                if index in self._matching.unsatisfied:
                    yield self._of_some_nodes(index)
            elif consumer.refused:
                yield Problem(
                    kind="placement",
                    subject=consumer.subject,
                    what="its pods are refused",
                    details=(consumer.refused,),
                    way_out="ask for what the LimitRange allows, or change that",
                )
            else:
                whys = self._matching.refusals(index)
                yield Problem(
                    kind="placement",
                    subject=consumer.subject,
                    what=f"no node of the inventory takes its pods{_of_part(consumer)}",
                    way_out=self._way_to_a_node(whys),
                    details=nodewise(whys, len(self._offers)),
                )

    def _of_some_nodes(self, index: int) -> Problem:
        """Return what a DaemonSet does whose controller makes pods also on nodes that cannot run them."""
        consumer, kinds = self._consumers[index], self._matching.unsatisfied[index]
        whys = nodewise(self._matching.refusals_of(index, kinds), len(self._matching.names(kinds)))
        return Problem(
            kind="placement",
            subject=consumer.subject,
            what="some pods of the DaemonSet stay Pending",
            details=(
                "a DaemonSet makes a pod on every node that its node selector, node affinity and tolerations admit, "
                "whatever the pod asks for",
                *whys,
            ),
            way_out=f"write a node_selector that only nodes with {joined(sorted(consumer.asks))} match",
        )

    def _way_to_a_node(self, whys: Mapping[str, str]) -> str:
        reasons = " ".join(whys.values())
        offered = ", ".join(sorted({name for offer in self._offers for name in offer.allocatable})) or "nothing"
        smaller = "a smaller vram" if self._units else "ask for less in one pod and for more pods"
        ways = [way.format(smaller=smaller, offered=offered) for words, way in _WAYS_TO_A_NODE if words in reasons]
        return ", or ".join([*ways, "add a node to the inventory that takes it"])

    def of_full_nodes(self) -> Iterator[Problem]:
        """Nodes that cannot hold what every node gets."""
        kinds = grouped((index, kind) for kind, those in self._matching.crowded.items() for index in those)
        for index, full in kinds.items():
            consumer = self._consumers[index]
            others = sorted({other for kind in full for other in self._matching.daemons[kind]})
            beside = f" beside {self._matching.named(others)}" if others else ""
            yield Problem(
                kind="slots",
                subject=consumer.subject,
                what=f"every node that takes it is to have its pod, which needs {self._in_words(consumer.asks)}, and "
                f"{joined(self._matching.names(full))} {has(self._matching.names(full))} no room for it{beside}",
                way_out="select fewer nodes, or have the pods ask for no GPU: what only watches GPUs needs none",
            )

    # All that always runs

    def of_what_always_runs(self, packed: Packed, urgent: PlacedPods | None) -> Problem:
        """Return that there is too little for what runs until it is stopped.

        Args:
            packed: What was found out about it.
            urgent: Pods that have a place by their priority; None where priorities decide nothing.
        """
        lacking = packed.lacking()
        by_priority = ""
        if urgent:
            running = urgent.counts()
            lacking = {i: more for i, count in self._steady.items() if (more := count - running.get(i, 0)) > 0}
            by_priority = f"; by priority {self._some_of(lacking)} {_wait(lacking)}" if packed.packing.shortage else ""
        return Problem(
            kind="slots",
            subject=self._matching.subject_of(lacking),
            what="what always runs does not fit",
            way_out=self._way_to_slots(packed),
            details=(f"{self._shortage(packed, lacking)}{by_priority}",),
        )

    def _some_of(self, lacking: Mapping[int, int]) -> str:
        titles = self._matching.titles
        return joined(
            [
                titles[i] if self._consumers[i].pods == 1 else f"{counted(count, 'pod')} of {titles[i]}"
                for i, count in sorted(lacking.items())
            ]
        )

    def _shortage(self, packed: Packed, lacking: Mapping[int, int]) -> str:
        shortage = packed.packing.shortage
        if shortage is None:
            some = f"{self._some_of(lacking)} {_wait(lacking)}"
            return f"however pods are placed, some have no place; in the best way found {some}"
        who = sorted({index for item in shortage.items for index, _ in packed.members[item]})
        titles, nodes = self._matching.named(who), self._matching.names(shortage.bins)
        want, have = "wants" if len(who) == 1 else "want", f"{joined(nodes)} {has(nodes)}"
        has_room = f"{have} {shortage.available}{' together' if len(nodes) > 1 and shortage.available else ''}"
        if shortage.dimension is None:
            return f"{titles} {want} {counted(shortage.needed, 'place')}, and {has_room}"
        resource = self._matching.resources[shortage.dimension]
        if shortage.at_least is None or shortage.at_least == 1:
            return f"{titles} {want} {self._amount(resource, shortage.needed)}, and {has_room}"
        take, each = ("takes", "") if shortage.needed == 1 else ("take", " each")
        return (
            f"{counted(shortage.needed, 'pod')} of {titles} {take} {self._amount(resource, shortage.at_least)} or more"
            f"{each}, and {have} room for {shortage.available or 'no'} such pod{'' if shortage.available == 1 else 's'}"
        )

    def _way_to_slots(self, packed: Packed) -> str:
        better = self._way_by_sharing(packed)
        return ", or ".join([*([better] if better else []), "fewer pods", "another node in the inventory"])

    def _way_by_sharing(self, packed: Packed) -> str | None:
        shortage = packed.packing.shortage
        if shortage is None or shortage.dimension is None:
            return None
        place, resource = shortage.dimension, self._matching.resources[shortage.dimension]
        if resource in self._units:
            return f"smaller vram (GpuRequest(vram=...), {memory(self._units[resource])} a unit)"
        if "/" not in resource or shortage.at_least not in (None, 1) or not self._shares(packed, shortage, place):
            return None
        slots, devices = self._slots_of(resource, shortage.bins)
        # What every node gets has slots of its own.
        replicas = -(-(shortage.needed + slots - shortage.available) // devices) if devices else MOST_REPLICAS + 1
        what = "more slots" if slots > devices else "GPUs that pods share"
        sharing = f"Sharing.time_slicing(replicas={replicas}) for plugin and GpuProfile"
        return f"{what} with {sharing}, which divides no memory" if replicas <= MOST_REPLICAS else None

    def _slots_of(self, resource: str, kinds: Iterable[int]) -> tuple[int, int]:
        """Return how many slots and how many devices some kinds of nodes have of a resource."""
        offers = [self._offers[index] for kind in kinds for index in self._matching.kinds[kind]]
        slots = [(one.slots, offer.count) for offer in offers for one in offer.devices if one.resource == resource]
        return sum(each * count for each, count in slots), sum(count for _, count in slots)

    def _shares(self, packed: Packed, shortage: Shortage, place: int) -> bool:
        """Return whether more slots help: two slots of a GPU are not two GPUs, nor boards for the ranks of a gang."""
        members = [index for item in shortage.items for index, _ in packed.members[item]]
        asked = {self._matching.size_of(index)[place] for index in members}
        return asked == {1} and not any(self._consumers[index].is_gang for index in members)

    # What comes and goes

    def beside(self, always: Packed) -> Iterator[Problem]:
        """Return what finds no place beside what always runs: new pods of an update, work that ends.

        Args:
            always: Where what always runs has its places.
        """
        room = RoomBeside(self._matching, self._steady, self._effort, always)
        for unit in self._matching.units:
            if not self._consumers[unit[0]].least_copies:
                first = {index: pods for index in unit if (pods := self._consumers[index].starting)}
                if first and not room.takes(first):
                    self._told.update(unit)
                    yield self._evicts(first, "it starts") or self._no_room("slots", first, self._takers(unit))
            new = {index: pods for index in unit if (pods := self._consumers[index].updating)}
            if new and not room.takes(new):
                yield self._evicts(new, "an update starts") or self._no_room("rollout", new, self._takers(new))
        yield from self._updates_on_each_node(room)

    def _updates_on_each_node(self, room: RoomBeside) -> Iterator[Problem]:
        for index, consumer in enumerate(self._consumers):
            if consumer.is_for_each_node and consumer.surge_is_needed and consumer.surge:
                kinds = [kind for kind, those in enumerate(self._matching.daemons) if index in those]
                full = [kind for kind in kinds if not room.takes_on(kind, index)]
                if full:
                    yield self._no_room("rollout", {index: 1}, full)

    def _takers(self, pods: Iterable[int]) -> list[int]:
        return sorted(frozenset[int]().union(*(self._matching.takers[index] for index in pods)))

    def _evicts(self, pods: Mapping[int, int], start: str) -> Problem | None:
        """Return the always-running pods that lose their places to others; None if the scheduler evicts none."""
        consumer = self._consumers[min(pods)]
        kinds, names = frozenset(self._takers(pods)), frozenset(name for i in pods for name in self._consumers[i].asks)
        lower, are_daemons = self._lower_than(consumer.priority, kinds, names)
        if not consumer.preempts or not lower:
            return None
        # What every node gets goes with its node, so that no packing tells.
        if not are_daemons and not self._has_room_above(consumer.priority, pods):
            return None
        gone = evicted(self._matching, self._steady, pods)
        self._told.update(gone)
        return Problem(
            kind="waiting",
            subject=consumer.subject,
            what=f"{start} only in place of what always runs with a lower priority",
            way_out="leave it where that is meant; else fewer pods that always run, or another node in the inventory",
            details=(f"the scheduler evicts pods of {self._matching.named(gone) or lower}, which wait then",),
        )

    def _find_lower(self, priority: int, kinds: frozenset[int], names: frozenset[str]) -> tuple[str, bool]:
        """Return what always runs on some nodes with a lower priority, and whether every node gets one of it."""
        lower = [
            index
            for index, one in enumerate(self._consumers)
            if one.priority < priority
            and (index in self._steady or one.is_for_each_node)
            and not names.isdisjoint(one.asks)
            and not kinds.isdisjoint(self._matching.takers[index])
        ]
        return self._matching.named(lower), any(self._consumers[index].is_for_each_node for index in lower)

    def _has_room_above(self, priority: int, pods: Mapping[int, int]) -> bool:
        """Return whether pods have a place beside what always runs with a priority or more; true if unknown."""
        if priority not in self._rooms:
            if not self._effort.allows(len(self._steady) + len(self._matching.bins)):
                return True
            steady = {index: n for index, n in self._steady.items() if self._consumers[index].priority >= priority}
            self._rooms[priority] = RoomBeside(self._matching, steady, self._effort)
        return self._rooms[priority].takes(pods)

    def _no_room(self, kind: Literal["slots", "rollout"], pods: Mapping[int, int], kinds: Collection[int]) -> Problem:
        """Return that pods find no place on nodes of some kinds beside what always runs."""
        consumer, nodes = self._consumers[min(pods)], joined(self._matching.names(kinds))
        what, alone, together = _NO_ROOM[kind]
        needs, them = (alone, "it") if sum(pods.values()) == 1 else (together, "them")
        asks = summed((name, n * count) for i, count in pods.items() for name, n in self._consumers[i].asks.items())
        needs = needs.format(part=_of_part(consumer), wanted=self._in_words(asks))
        return Problem(
            kind=kind,
            subject=consumer.subject,
            what=what,
            way_out=_WAY_TO_START if kind == "slots" else _WAYS_TO_UPDATE.get(consumer.kind, _WAY_TO_UPDATE),
            details=(f"{needs}, and what always runs leaves no place for {them} on {nodes}",),
        )

    def _in_words(self, amounts: Mapping[str, int]) -> str:
        return joined([self._amount(name, amount) for name, amount in sorted(amounts.items())])

    def _amount(self, resource: str, amount: int) -> str:
        """Return an amount of a resource, and the memory of each unit if the resource counts memory."""
        unit = self._units.get(resource)
        return f"{amount} {resource}" if unit is None else f"{counted(amount, 'unit')} of {memory(unit)} ({resource})"

    def one_by_one(self, pods: Mapping[int, int]) -> Iterator[Problem]:
        """Return which of some pods may find no place, though there is one, as the scheduler does not plan ahead.

        Args:
            pods: Pods by consumer, which have a place together.
        """
        for found in stranded(self._matching, pods)[:_MOST_STRANDED]:
            who, others = self._matching.named(found.consumers), self._matching.named(found.others)
            pod = self._in_words(self._consumers[found.consumers[0]].asks)
            how = "together" if found.are_smaller else "elsewhere"
            yield unchecked(
                Condition(
                    f"the pods of {others} are put {how}: else {who}, of {pod} a pod, {has(found.consumers)} no place, "
                    "as kube-scheduler does not plan ahead",
                    "give one of them nodes of its own, by labels and a node_selector",
                ),
                self._matching.subject_of(found.consumers),
            )

    def of_waiting(self, packed: Packed, lacking: Mapping[int, int]) -> Iterator[Problem]:
        """Not everything that may run has a place at once.

        Args:
            packed: What was found out about all of it.
            lacking: Pods that wait, by consumer.
        """
        waiting = {index: count for index, count in lacking.items() if index not in self._told}
        if not waiting or packed.packing.answer == "yes":
            return
        some = self._some_of(waiting)
        wait = "a pod waits" if sum(waiting.values()) == 1 else "pods wait"
        what = f"when all that may run runs, {wait} as Pending ({some})"
        if packed.packing.answer == "undecided":
            what = (
                f"it was not found out whether all that may run fits at once; in the best way found some wait ({some})"
            )
        is_proven = packed.packing.answer != "undecided" and packed.packing.shortage is not None
        yield Problem(
            kind="waiting",
            subject=self._matching.subject_of(waiting),
            what=what,
            way_out=f"leave it where work may queue; else {self._way_to_slots(packed)}",
            details=(self._shortage(packed, waiting),) if is_proven else (),
        )


def _of_part(consumer: Consumer) -> str:
    return f" ({consumer.part})" if consumer.part else ""


def _wait(pods: Mapping[int, int]) -> str:
    return "waits" if sum(pods.values()) == 1 else "wait"
