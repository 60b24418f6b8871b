"""The problems of a capacity plan as texts: which pods have no room, on which nodes, why, and what to do.

A *consumer* is a workload as the plan sees it: equal pods of one object that request GPUs. Long-running pods run until
someone deletes them.
"""

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
"""Largest number of replicas of a GPU that advice recommends."""
_MOST_STRANDED = 3
_WAY_TO_UPDATE = "leave room for new pods next to the old ones, or delete the old ones first"
_WAY_TO_START = "run fewer long-running pods, or add a node to the inventory"
_IN_PLACE = "maxSurge 0 and maxUnavailable 1"
_WAYS_TO_A_NODE = (
    ("taint", "add the toleration"),
    ("but a pod requests", "{smaller}"),
    ("offers no ", "request what nodes offer ({offered}), or change sharing or mig_layout"),
    ("its pods select", "select labels that nodes have, or declare them with GpuNode(labels=...)"),
)
"""Advice for pods that no node accepts, as pairs: words in the reason why a node rejects the pods, and the advice."""
_WAYS_TO_UPDATE = {
    "Deployment": f"set strategy.type 'Recreate', or {_IN_PLACE}",
    "DaemonSet": f"set {_IN_PLACE} in updateStrategy.rollingUpdate",
    "LeaderWorkerSet": f"set {_IN_PLACE} in rolloutStrategy.rollingUpdateConfiguration",
}
_NO_ROOM = {
    "slots": (
        "it would never start",
        "its pod{part} needs {wanted}",
        "its pods, which must run together, need {wanted}",
    ),
    "rollout": (
        "an update would wait forever",
        "its new pod{part} needs {wanted} before the old pod releases its own",
        "its new pods need {wanted} before the old pods release theirs",
    ),
}
"""Texts about pods without room: the problem, the reason for one pod, and the reason for several pods."""


class Problems:
    """Methods that describe the problems of a capacity plan. Each public method covers one kind of problem.

    Call ``beside`` before ``of_waiting``, which skips the workloads that ``beside`` reported.
    """

    def __init__(self, matching: Matching) -> None:
        self._matching = matching
        self._consumers = matching.consumers
        self._offers = matching.offers
        self._reported: set[int] = set()
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
        """Whether all searches for room next to the long-running pods ended before they reached their work limit."""
        return not self._effort.is_spent

    def of_placement(self) -> Iterator[Problem]:
        """Yield a problem for each workload whose pods no node accepts, or whose pods a LimitRange rejects.

        Also yield a problem for each DaemonSet that creates pods on nodes where they cannot run.
        """
        for index, consumer in enumerate(self._consumers):
            if self._matching.takers[index] or not consumer.makes_pods:
                if index in self._matching.unsatisfied:
                    yield self._of_some_nodes(index)
            elif consumer.refused:
                yield Problem(
                    kind="placement",
                    subject=consumer.subject,
                    what="a LimitRange rejects its pods",
                    details=(consumer.refused,),
                    way_out="request what the LimitRange allows, or change it",
                )
            else:
                whys = self._matching.refusals(index)
                yield Problem(
                    kind="placement",
                    subject=consumer.subject,
                    what=f"no node of the inventory accepts its pods{_of_part(consumer)}",
                    way_out=self._way_to_a_node(whys),
                    details=nodewise(whys, len(self._offers)),
                )

    def _of_some_nodes(self, index: int) -> Problem:
        """Return the problem that a DaemonSet creates pods on some nodes where these pods cannot run."""
        consumer, kinds = self._consumers[index], self._matching.unsatisfied[index]
        whys = nodewise(self._matching.refusals_of(index, kinds), len(self._matching.names(kinds)))
        return Problem(
            kind="placement",
            subject=consumer.subject,
            what="some pods of the DaemonSet stay Pending",
            details=(
                "a DaemonSet creates a pod on every node that its node selector, affinity and tolerations admit, "
                "whatever the pod requests",
                *whys,
            ),
            way_out=f"set a node_selector that only nodes with {joined(sorted(consumer.asks))} match",
        )

    def _way_to_a_node(self, whys: Mapping[str, str]) -> str:
        reasons = " ".join(whys.values())
        offered = ", ".join(sorted({name for offer in self._offers for name in offer.allocatable})) or "nothing"
        smaller = "set a smaller vram" if self._units else "request less in each pod and run more pods"
        ways = [way.format(smaller=smaller, offered=offered) for words, way in _WAYS_TO_A_NODE if words in reasons]
        return ", or ".join([*ways, "add a node that accepts it to the inventory"])

    def of_full_nodes(self) -> Iterator[Problem]:
        """Yield a problem for each DaemonSet that creates pods on nodes without room for them."""
        kinds = grouped((index, kind) for kind, those in self._matching.crowded.items() for index in those)
        for index, full in kinds.items():
            consumer = self._consumers[index]
            others = sorted({other for kind in full for other in self._matching.daemons[kind]})
            beside = f" next to {self._matching.named(others)}" if others else ""
            yield Problem(
                kind="slots",
                subject=consumer.subject,
                what=f"each matching node gets a DaemonSet pod, which needs {self._in_words(consumer.asks)}, but "
                f"{joined(self._matching.names(full))} {has(self._matching.names(full))} no room for that pod{beside}",
                way_out="select fewer nodes, or remove the GPU request: pods that only watch GPUs need none",
            )

    def of_what_always_runs(self, packed: Packed, urgent: PlacedPods | None) -> Problem:
        """Return the problem that the nodes do not have enough room for the long-running pods.

        Args:
            packed: Assignment of the long-running pods to nodes, as far as the nodes have room.
            urgent: Placement in which pods of higher priority get room first. None if all pods have room, or if all
                pods have the same priority.
        """
        lacking = packed.lacking()
        by_priority = ""
        if urgent:
            running = urgent.counts()
            lacking = {i: more for i, count in self._steady.items() if (more := count - running.get(i, 0)) > 0}
            by_priority = (
                f"; because of their priorities, {self._some_of(lacking)} {_wait(lacking)}"
                if packed.packing.shortage
                else ""
            )
        return Problem(
            kind="slots",
            subject=self._matching.subject_of(lacking),
            what="the long-running pods do not fit",
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
            return f"no placement has room for every pod; in the best placement found, {some}"
        who = sorted({index for item in shortage.items for index, _ in packed.members[item]})
        titles, nodes = self._matching.named(who), self._matching.names(shortage.bins)
        verb, have = "requests" if len(who) == 1 else "request", f"{joined(nodes)} {has(nodes)}"
        has_room = f"{have} {shortage.available}{' together' if len(nodes) > 1 and shortage.available else ''}"
        if shortage.dimension is None:
            return f"{titles} {verb} {counted(shortage.needed, 'place')} for pods, but {has_room}"
        resource = self._matching.resources[shortage.dimension]
        if shortage.at_least is None or shortage.at_least == 1:
            return f"{titles} {verb} {self._amount(resource, shortage.needed)}, but {has_room}"
        take, each = ("takes", "") if shortage.needed == 1 else ("take", " each")
        return (
            f"{counted(shortage.needed, 'pod')} of {titles} {take} {self._amount(resource, shortage.at_least)} or more"
            f"{each}, but {have} room for {shortage.available or 'no'} such pod{'' if shortage.available == 1 else 's'}"
        )

    def _way_to_slots(self, packed: Packed) -> str:
        better = self._way_by_sharing(packed)
        return ", or ".join([*([better] if better else []), "run fewer pods", "add a node to the inventory"])

    def _way_by_sharing(self, packed: Packed) -> str | None:
        shortage = packed.packing.shortage
        if shortage is None or shortage.dimension is None:
            return None
        place, resource = shortage.dimension, self._matching.resources[shortage.dimension]
        if resource in self._units:
            return f"set a smaller vram (GpuRequest(vram=...), {memory(self._units[resource])} a unit)"
        if "/" not in resource or shortage.at_least not in (None, 1) or not self._shares(packed, shortage, place):
            return None
        slots, devices = self._slots_of(resource, shortage.bins)
        # DaemonSet pods hold slots of each node too.
        replicas = -(-(shortage.needed + slots - shortage.available) // devices) if devices else MOST_REPLICAS + 1
        what = "configure more slots" if slots > devices else "let pods share GPUs"
        sharing = f"Sharing.time_slicing(replicas={replicas}) for the device plugin and the GpuProfile"
        return f"{what} with {sharing} (pods then share the memory)" if replicas <= MOST_REPLICAS else None

    def _slots_of(self, resource: str, kinds: Iterable[int]) -> tuple[int, int]:
        """Return the number of slots and the number of devices of a resource on the nodes of the given groups."""
        offers = [self._offers[index] for kind in kinds for index in self._matching.kinds[kind]]
        slots = [(one.slots, offer.count) for offer in offers for one in offer.devices if one.resource == resource]
        return sum(each * count for each, count in slots), sum(count for _, count in slots)

    def _shares(self, packed: Packed, shortage: Shortage, place: int) -> bool:
        """Check whether more slots on each GPU could help the pods that lack slots according to ``shortage``.

        Return True only if each of these pods requests one slot of the resource ``Matching.resources[place]``, and no
        pods must run together. Pods that must run together each need their own board.
        """
        members = [index for item in shortage.items for index, _ in packed.members[item]]
        asked = {self._matching.size_of(index)[place] for index in members}
        return asked == {1} and not any(self._consumers[index].is_gang for index in members)

    def beside(self, always: Packed) -> Iterator[Problem]:
        """Yield the problems of pods that find no room next to the long-running pods.

        These pods are the new pods of each update, and the pods without which a Job cannot start.

        Args:
            always: Assignment of the long-running pods to nodes.
        """
        room = RoomBeside(self._matching, self._steady, self._effort, always)
        for unit in self._matching.units:
            if not self._consumers[unit[0]].least_copies:
                first = {index: pods for index in unit if (pods := self._consumers[index].starting)}
                if first and not room.takes(first):
                    self._reported.update(unit)
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
        """Return the problem that new pods evict long-running pods. Return None if the new pods evict no pods.

        Args:
            pods: Number of new pods by the index of the workload.
            start: Clause at the beginning of the problem's text, such as ``an update starts``.
        """
        consumer = self._consumers[min(pods)]
        kinds, names = frozenset(self._takers(pods)), frozenset(name for i in pods for name in self._consumers[i].asks)
        lower, are_daemons = self._lower_than(consumer.priority, kinds, names)
        if not consumer.preempts or not lower:
            return None
        # A DaemonSet pod cannot move to another node, so no search can show whether it loses its place.
        if not are_daemons and not self._has_room_above(consumer.priority, pods):
            return None
        gone = evicted(self._matching, self._steady, pods)
        self._reported.update(gone)
        return Problem(
            kind="waiting",
            subject=consumer.subject,
            what=f"{start} only if the scheduler evicts long-running pods with a lower priority",
            way_out=f"ignore this if you intend it. Otherwise, {_WAY_TO_START}",
            details=(f"the scheduler evicts pods of {self._matching.named(gone) or lower}, which then wait",),
        )

    def _find_lower(self, priority: int, kinds: frozenset[int], names: frozenset[str]) -> tuple[str, bool]:
        """Return the names of workloads whose long-running pods have a priority below ``priority``.

        Also return whether any of these is a DaemonSet. The workloads request one of the resources ``names``, and can
        use nodes of the groups ``kinds``.
        """
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
        """Check whether pods fit if the scheduler evicts all long-running pods with a priority below ``priority``.

        Also return True if the searches for room reached their work limit.
        """
        if priority not in self._rooms:
            if not self._effort.allows(len(self._steady) + len(self._matching.bins)):
                return True
            steady = {index: n for index, n in self._steady.items() if self._consumers[index].priority >= priority}
            self._rooms[priority] = RoomBeside(self._matching, steady, self._effort)
        return self._rooms[priority].takes(pods)

    def _no_room(self, kind: Literal["slots", "rollout"], pods: Mapping[int, int], kinds: Collection[int]) -> Problem:
        """Return the problem that node groups lack room to start a workload (``slots``) or update it (``rollout``)."""
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
            details=(f"{needs}, but the long-running pods leave no room for {them} on {nodes}",),
        )

    def _in_words(self, amounts: Mapping[str, int]) -> str:
        return joined([self._amount(name, amount) for name, amount in sorted(amounts.items())])

    def _amount(self, resource: str, amount: int) -> str:
        """Return text such as ``2 nvidia.com/gpu``. If each slot stands for memory, the text states how much memory."""
        unit = self._units.get(resource)
        return f"{amount} {resource}" if unit is None else f"{counted(amount, 'unit')} of {memory(unit)} ({resource})"

    def one_by_one(self, pods: Mapping[int, int]) -> Iterator[Problem]:
        """Yield a problem (``unchecked``) if pods fit together, but kube-scheduler may leave some of them without room.

        Args:
            pods: Number of pods by the index of the workload. The nodes have room for all these pods.
        """
        for found in stranded(self._matching, pods)[:_MOST_STRANDED]:
            who, others = self._matching.named(found.consumers), self._matching.named(found.others)
            pod = self._in_words(self._consumers[found.consumers[0]].asks)
            how = "together" if found.are_smaller else "elsewhere"
            yield unchecked(
                Condition(
                    f"kube-scheduler, which does not plan ahead, places the pods of {others} {how}: otherwise {who}, "
                    f"with {pod} in each pod, {has(found.consumers)} no room",
                    "give one of them its own nodes, with labels and a node_selector",
                ),
                self._matching.subject_of(found.consumers),
            )

    def of_waiting(self, packed: Packed, lacking: Mapping[int, int]) -> Iterator[Problem]:
        """Yield a problem if not all pods have room at the same time.

        Args:
            packed: Assignment of all pods to nodes, as far as the nodes have room.
            lacking: Number of pods that stay Pending, by the index of the workload.
        """
        waiting = {index: count for index, count in lacking.items() if index not in self._reported}
        if not waiting or packed.packing.answer == "yes":
            return
        some = self._some_of(waiting)
        stay = "a pod stays" if sum(waiting.values()) == 1 else "pods stay"
        what = f"not all pods fit at once: {stay} Pending ({some})"
        if packed.packing.answer == "undecided":
            what = (
                "the plan does not know whether all pods fit at once; on the best placement found, "
                f"{stay} Pending ({some})"
            )
        is_proven = packed.packing.answer != "undecided" and packed.packing.shortage is not None
        yield Problem(
            kind="waiting",
            subject=self._matching.subject_of(waiting),
            what=what,
            way_out=f"ignore this if work may queue. Otherwise, {self._way_to_slots(packed)}",
            details=(self._shortage(packed, waiting),) if is_proven else (),
        )


def _of_part(consumer: Consumer) -> str:
    return f" ({consumer.part})" if consumer.part else ""


def _wait(pods: Mapping[int, int]) -> str:
    return "waits" if sum(pods.values()) == 1 else "wait"
