"""What does not fit, in words: who, where, why, and what to do."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from gpu_constructs.capacity.by_priority import evicted
from gpu_constructs.capacity.condition import Condition
from gpu_constructs.capacity.conditions import unchecked
from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.matching import Matching, Packed
from gpu_constructs.capacity.one_by_one import stranded
from gpu_constructs.capacity.plan import Problem
from gpu_constructs.capacity.pod_counts import starting, updating
from gpu_constructs.capacity.room_beside import Effort, RoomBeside
from gpu_constructs.capacity.wording import has, joined, memory, nodewise

MOST_REPLICAS = 128
"""Turns on a GPU of which more are no way out."""
_MOST_STRANDED = 3
_WAY_TO_UPDATE = "leave room for its new pods beside the old ones, or delete the old ones first"
_IN_PLACE = "maxSurge 0 and maxUnavailable 1"
_WAYS_TO_UPDATE = {
    "Deployment": f"write strategy.type 'Recreate', or {_IN_PLACE}",
    "DaemonSet": f"write {_IN_PLACE} in updateStrategy.rollingUpdate",
    "LeaderWorkerSet": f"write {_IN_PLACE} in rolloutStrategy.rollingUpdateConfiguration",
}


class Problems:
    """Finds them, one kind after the other, in the numbers of a plan."""

    def __init__(self, matching: Matching) -> None:
        self._matching = matching
        self._consumers = matching.consumers
        self._offers = matching.offers
        self._told: set[int] = set()
        self._effort = Effort()
        self._steady = {
            index: self._consumers[index].least_pods
            for unit in matching.units
            for index in unit
            if self._consumers[index].least_pods
        }
        self._rooms: dict[int, RoomBeside] = {}
        self._lower: dict[object, tuple[str, bool]] = {}
        units = {(name, offer.vram_unit_mib) for offer in matching.offers for name in offer.allocatable if "/" in name}
        several = {name for name, unit in units for other, another in units if name == other and unit != another}
        self._units = {name: unit for name, unit in units if unit is not None and name not in several}

    @property
    def is_searched(self) -> bool:
        """Whether all was looked for that might have no place beside what always runs."""
        return not self._effort.is_spent

    # A pod by itself

    def of_placement(self) -> Iterator[Problem]:
        """Pods that no node would ever take."""
        for index, consumer in enumerate(self._consumers):
            if self._matching.takers[index] or not (consumer.pods or consumer.is_for_each_node):
                if index in self._matching.unsatisfied:
                    yield self._of_some_nodes(index)
                continue
            if consumer.refused:
                yield Problem(
                    kind="placement",
                    subject=consumer.subject,
                    what="its pods are refused",
                    details=(consumer.refused,),
                    way_out="ask for what the LimitRange allows, or change that",
                )
                continue
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
        ways = []
        if "taint" in reasons:
            ways.append("give it the toleration")
        if "of which a pod wants" in reasons:
            ways.append("a smaller vram" if self._units else "ask for less in one pod and for more pods")
        if "offers no " in reasons:
            offered = ", ".join(sorted({name for offer in self._offers for name in offer.allocatable})) or "nothing"
            ways.append(f"ask for what nodes offer ({offered}), change sharing or mig_layout")
        if "its pods want" in reasons:
            ways.append("select labels that nodes have, or declare them with GpuNode(labels=...)")
        return ", or ".join([*ways, "add a node to the inventory that takes it"])

    def of_full_nodes(self) -> Iterator[Problem]:
        """Nodes that cannot hold what every node gets."""
        kinds: dict[int, list[int]] = {}
        for kind, those in self._matching.crowded.items():
            for index in those:
                kinds.setdefault(index, []).append(kind)
        for index, full in kinds.items():
            consumer = self._consumers[index]
            others = sorted({other for kind in full for other in self._matching.daemons[kind]})
            beside = f" beside {joined([self._matching.titles[other] for other in others])}" if others else ""
            yield Problem(
                kind="slots",
                subject=consumer.subject,
                what=f"every node that takes it is to have its pod, which needs {self._in_words(consumer.asks)}, and "
                f"{joined(self._matching.names(full))} {has(self._matching.names(full))} no room for it{beside}",
                way_out="select fewer nodes, or have the pods ask for no GPU: what only watches GPUs needs none",
            )

    # All that always runs

    def of_what_always_runs(self, packed: Packed, running: Mapping[int, int]) -> Problem:
        """Return that there is too little for what runs until somebody stops it.

        Args:
            packed: What was found out about it.
            running: Pods by consumer that have a place by their priority; empty where priorities decide nothing.
        """
        lacking = packed.lacking()
        by_priority = ""
        if running:
            lacking = {i: more for i, count in self._steady.items() if (more := count - running.get(i, 0)) > 0}
            waits = "waits" if sum(lacking.values()) == 1 else "wait"
            by_priority = f"; by priority {self._some_of(lacking)} {waits}" if packed.packing.shortage else ""
        return Problem(
            kind="slots",
            subject=self._only_subject(lacking),
            what="what always runs does not fit",
            way_out=self._way_to_slots(packed),
            details=(f"{self._shortage(packed, lacking)}{by_priority}",),
        )

    def _only_subject(self, those: Iterable[int]) -> int | None:
        subjects = {self._consumers[index].subject for index in those}
        return subjects.pop() if len(subjects) == 1 else None

    def _some_of(self, lacking: Mapping[int, int]) -> str:
        return joined([self._pods_of(i, count) for i, count in sorted(lacking.items())])

    def _pods_of(self, index: int, count: int) -> str:
        title = self._matching.titles[index]
        if self._consumers[index].pods == 1:
            return title
        return f"{count} {'pod' if count == 1 else 'pods'} of {title}"

    def _shortage(self, packed: Packed, lacking: Mapping[int, int]) -> str:
        shortage = packed.packing.shortage
        if shortage is None:
            waits = "waits" if sum(lacking.values()) == 1 else "wait"
            return (
                f"however pods are placed, some have no place; in the best way found {self._some_of(lacking)} {waits}"
            )
        who = sorted({index for item in shortage.items for index, _ in packed.members[item]})
        titles, nodes = joined([self._matching.titles[index] for index in who]), self._matching.names(shortage.bins)
        want, have = "wants" if len(who) == 1 else "want", f"{joined(nodes)} {has(nodes)}"
        together = " together" if len(nodes) > 1 and shortage.available else ""
        if shortage.dimension is None:
            places = "1 place" if shortage.needed == 1 else f"{shortage.needed} places"
            return f"{titles} {want} {places}, and {have} {shortage.available}{together}"
        resource = self._matching.resources[shortage.dimension]
        if shortage.at_least is not None and shortage.at_least > 1:
            pods = "1 pod" if shortage.needed == 1 else f"{shortage.needed} pods"
            take = "takes" if shortage.needed == 1 else "take"
            such = "such pod" if shortage.available == 1 else "such pods"
            return (
                f"{pods} of {titles} {take} {self._amount(resource, shortage.at_least)} or more"
                f"{' each' * (shortage.needed > 1)}, "
                f"and {have} room for {shortage.available or 'no'} {such}"
            )
        return f"{titles} {want} {self._amount(resource, shortage.needed)}, and {have} {shortage.available}{together}"

    def _way_to_slots(self, packed: Packed) -> str:
        ways, shortage = ["fewer pods", "another node in the inventory"], packed.packing.shortage
        if shortage is None or shortage.dimension is None:
            return ", or ".join(ways)
        place, resource = shortage.dimension, self._matching.resources[shortage.dimension]
        if resource in self._units:
            return ", or ".join([f"smaller vram (GpuRequest(vram=...), {memory(self._units[resource])} a unit)", *ways])
        members = [index for item in shortage.items for index, _ in packed.members[item]]
        asked = {self._matching.size_of(index)[place] for index in members}
        # Two slots of a GPU are not two GPUs: who asks for several gets no more by sharing, nor the ranks of a gang.
        if asked != {1} or "/" not in resource or any(self._consumers[index].is_gang for index in members):
            return ", or ".join(ways)
        offers = [self._offers[index] for kind in shortage.bins for index in self._matching.kinds[kind]]
        slots = [(one.slots, offer.count) for offer in offers for one in offer.devices if one.resource == resource]
        devices, total = sum(count for _, count in slots), sum(each * count for each, count in slots)
        if devices and shortage.at_least in (None, 1):
            what = "more slots" if any(each > 1 for each, _ in slots) else "GPUs that pods share"
            # What every node gets has slots of its own.
            replicas = -(-(shortage.needed + total - shortage.available) // devices)
            if replicas <= MOST_REPLICAS:
                sharing = f"Sharing.time_slicing(replicas={replicas}) for plugin and GpuProfile"
                ways.insert(0, f"{what} with {sharing}, which divides no memory")
        return ", or ".join(ways)

    # What comes and goes

    def beside(self, always: Packed) -> Iterator[Problem]:
        """Look at what starts beside what always runs: new pods of an update, work that ends.

        Args:
            always: Where what always runs has its places.
        """
        room = RoomBeside(self._matching, self._steady, self._effort, always)
        for unit in self._matching.units:
            if not self._consumers[unit[0]].least_copies:
                first = {index: pods for index in unit if (pods := starting(self._consumers[index]))}
                if first and not room.takes(first):
                    self._told.update(unit)
                    yield self._evicts(first, "it starts") or self._never_starts(unit, first)
            new = {index: pods for index in unit if (pods := updating(self._consumers[index]))}
            if new and not room.takes(new):
                yield self._evicts(new, "an update starts") or self._update_waits(new, self._takers(new))
        for index, consumer in enumerate(self._consumers):
            if consumer.is_for_each_node and consumer.surge_is_needed and consumer.surge:
                kinds = [kind for kind, those in enumerate(self._matching.daemons) if index in those]
                full = [kind for kind in kinds if not room.takes_on(kind, index)]
                if full:
                    yield self._update_waits({index: 1}, full)

    def _takers(self, pods: Iterable[int]) -> list[int]:
        return sorted(frozenset[int]().union(*(self._matching.takers[index] for index in pods)))

    def _evicts(self, pods: Mapping[int, int], start: str) -> Problem | None:
        """Give what pods take places from that always runs, as the scheduler allows it; None where it does not."""
        consumer = self._consumers[min(pods)]
        kinds, names = frozenset(self._takers(pods)), frozenset(name for i in pods for name in self._consumers[i].asks)
        key = (consumer.priority, kinds, names)
        if key not in self._lower:
            self._lower[key] = self._lower_than(*key)
        lower, are_daemons = self._lower[key]
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
            details=(f"the scheduler evicts pods of {self._named(gone) or lower}, which wait then",),
        )

    def _named(self, those: Iterable[int]) -> str:
        return joined([self._matching.titles[index] for index in those])

    def _lower_than(self, priority: int, kinds: frozenset[int], names: frozenset[str]) -> tuple[str, bool]:
        """Name what always runs on some kinds of nodes with a lower priority, and tell whether every node gets one."""
        lower = [
            index
            for index, one in enumerate(self._consumers)
            if one.priority < priority
            and (index in self._steady or one.is_for_each_node)
            and not names.isdisjoint(one.asks)
            and not kinds.isdisjoint(self._matching.takers[index])
        ]
        titles = [self._matching.titles[index] for index in lower]
        return joined(titles), any(self._consumers[index].is_for_each_node for index in lower)

    def _has_room_above(self, priority: int, pods: Mapping[int, int]) -> bool:
        """Tell whether pods have a place beside what always runs with a priority or more; true where nobody can say."""
        if priority not in self._rooms:
            if not self._effort.allows(len(self._steady) + len(self._matching.bins)):
                return True
            steady = {index: n for index, n in self._steady.items() if self._consumers[index].priority >= priority}
            self._rooms[priority] = RoomBeside(self._matching, steady, self._effort)
        return self._rooms[priority].takes(pods)

    def _never_starts(self, unit: Sequence[int], pods: Mapping[int, int]) -> Problem:
        consumer = self._consumers[unit[0]]
        nodes = self._matching.names(self._takers(unit))
        together = sum(pods.values()) > 1
        what = "its pods, which must run together, need" if together else f"its pod{_of_part(consumer)} needs"
        return Problem(
            kind="slots",
            subject=consumer.subject,
            what="it would never start",
            way_out="fewer or smaller pods that always run, or another node in the inventory",
            details=(
                f"{what} {self._wanted(pods)}, and what always runs leaves no place for "
                f"{'them' if together else 'it'} on {joined(nodes)}",
            ),
        )

    def _update_waits(self, pods: Mapping[int, int], kinds: Collection[int]) -> Problem:
        consumer = self._consumers[min(pods)]
        wanted = self._wanted(pods)
        nodes = joined(self._matching.names(kinds))
        if sum(pods.values()) > 1:
            what, old = f"its new pods need {wanted} before the old ones give theirs back", "them"
        else:
            what, old = f"its new pod{_of_part(consumer)} needs {wanted} before the old one gives its own back", "it"
        return Problem(
            kind="rollout",
            subject=consumer.subject,
            what="an update would wait for ever",
            way_out=_WAYS_TO_UPDATE.get(consumer.kind, _WAY_TO_UPDATE),
            details=(f"{what}, and what always runs leaves no place for {old} on {nodes}",),
        )

    def _wanted(self, pods: Mapping[int, int]) -> str:
        wanted: dict[str, int] = {}
        for index, count in pods.items():
            for name, amount in self._consumers[index].asks.items():
                wanted[name] = wanted.get(name, 0) + amount * count
        return self._in_words(wanted)

    def _in_words(self, amounts: Mapping[str, int]) -> str:
        return joined([self._amount(name, amount) for name, amount in sorted(amounts.items())])

    def _amount(self, resource: str, amount: int) -> str:
        """Say how many there are of a resource, and of what memory each is, where they count it."""
        unit = self._units.get(resource)
        if unit is None:
            return f"{amount} {resource}"
        return f"{amount} unit{'s' if amount != 1 else ''} of {memory(unit)} ({resource})"

    def one_by_one(self, pods: Mapping[int, int]) -> Iterator[Problem]:
        """Return which of some pods may find no place, though there is one, as the scheduler does not plan ahead.

        Args:
            pods: Pods by consumer, which have a place together.
        """
        titles = self._matching.titles
        for found in stranded(self._matching, pods)[:_MOST_STRANDED]:
            who, others = (joined([titles[index] for index in those]) for those in (found.consumers, found.others))
            pod = self._in_words(self._consumers[found.consumers[0]].asks)
            verb, how = "has" if len(found.consumers) == 1 else "have", "together" if found.are_smaller else "elsewhere"
            yield unchecked(
                Condition(
                    f"the pods of {others} are put {how}: else {who}, of {pod} a pod, {verb} no place, as "
                    "kube-scheduler does not plan ahead",
                    "give one of them nodes of its own, by labels and a node_selector",
                ),
                self._only_subject(found.consumers),
            )

    def of_waiting(self, packed: Packed, lacking: Mapping[int, int]) -> Iterator[Problem]:
        """Not everything that may run has a place at once.

        Args:
            packed: What was found out about all of it.
            lacking: Pods that wait, by consumer.
        """
        waiting = {index: count for index, count in lacking.items() if index not in self._told}
        if not waiting:
            return
        some = self._some_of(waiting)
        details: tuple[str, ...] = ()
        if packed.packing.answer == "undecided":
            what = (
                f"it was not found out whether all that may run fits at once; in the best way found some wait ({some})"
            )
        else:
            wait = "a pod waits" if sum(waiting.values()) == 1 else "pods wait"
            what = f"when all that may run runs, {wait} as Pending ({some})"
            if packed.packing.shortage is not None:
                details = (self._shortage(packed, waiting),)
        yield Problem(
            kind="waiting",
            subject=self._only_subject(waiting),
            what=what,
            way_out=f"leave it where work may queue; else {self._way_to_slots(packed)}",
            details=details,
        )


def _of_part(consumer: Consumer) -> str:
    return f" ({consumer.part})" if consumer.part else ""
