"""What does not fit, in words: who, where, why, and what to do."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.eligibility import vram_refusal
from gpu_constructs.capacity.matching import Matching, Packed
from gpu_constructs.capacity.packing import Item
from gpu_constructs.capacity.placed_pods import PlacedPods
from gpu_constructs.capacity.plan import Conflict, PlannedDevice, Power, Problem, VramVerdict
from gpu_constructs.capacity.report.words import percent

_MOST_NAMED = 6
_MOST_CONFLICTS = 3
MOST_REPLICAS = 128
"""Turns on a GPU of which more are no way out."""
_LONG = 200
"""Characters of a list of names, after which the rest of them is counted."""
_MOST_SEARCHES = 30_000
"""Consumers and kinds of nodes in all packings that look for a place beside what always runs."""
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
        self._stuck: dict[object, bool] = {}
        self._too_large: set[int] = set()
        self._never_starting: set[int] = set()
        self._sharing: dict[str, frozenset[int]] = {}
        self._searched = 0
        self._places = range(len(matching.resources))
        self._rest: Sequence[int] | None = None
        self.is_searched = True
        """Whether all was looked for that might have no place beside what always runs."""

    # A pod by itself

    def of_placement(self) -> Iterator[Problem]:
        """Pods that no node would ever take."""
        for index, consumer in enumerate(self._consumers):
            if self._matching.takers[index] or not (consumer.pods or consumer.is_for_each_node):
                continue
            whys = self._matching.refusals(index)
            said = _nodewise(whys, len(self._offers))
            yield Problem(
                kind="placement",
                subject=consumer.subject,
                text=f"no node of the inventory takes its pods{_of_part(consumer)}: {said}",
                way_out=self._way_to_a_node(whys),
            )

    def _way_to_a_node(self, whys: Mapping[str, str]) -> str:
        reasons = " ".join(whys.values())
        ways = []
        if "taint" in reasons:
            ways.append("give it the toleration")
        if "of which a pod wants" in reasons:
            ways.append("ask for less in one pod and for more pods")
        if "offers no " in reasons:
            offered = ", ".join(sorted({name for offer in self._offers for name in offer.allocatable})) or "nothing"
            ways.append(f"ask for what nodes offer ({offered}), change sharing or mig_layout")
        if "its pods want" in reasons:
            ways.append("select labels that nodes have, or declare them with GpuNode(labels=...)")
        return ", or ".join([*ways, "add a node to the inventory that takes it"])

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
                yield Problem(
                    kind="vram",
                    subject=consumer.subject,
                    text=f"its pods{_of_part(consumer)} want more memory than any GPU that they may get: "
                    f"{_nodewise(refused[key], len(nodes))}",
                    way_out="take a smaller model or quantization, or a larger GPU",
                )

    def _too_small(self, consumer: Consumer, kinds: Sequence[int]) -> Mapping[str, str]:
        """Give why no GPU of some nodes has memory enough, of a few of them; nothing where one has."""
        whys: dict[str, str] = {}
        for kind in kinds:
            offers = [self._offers[index] for index in self._matching.kinds[kind]]
            why = vram_refusal(consumer, offers[0])
            if why is None:
                return {}
            whys.update(dict.fromkeys([offer.name for offer in offers[:_MOST_NAMED]], why))
        return dict(list(whys.items())[:_MOST_NAMED])

    def of_full_nodes(self) -> Iterator[Problem]:
        """Nodes that cannot hold what every node gets."""
        kinds: dict[int, list[int]] = {}
        for kind, those in self._matching.crowded.items():
            for index in those:
                kinds.setdefault(index, []).append(kind)
        for index, full in kinds.items():
            consumer = self._consumers[index]
            others = sorted({other for kind in full for other in self._matching.daemons[kind]})
            beside = f" beside {_joined([self._consumers[other].title for other in others])}" if others else ""
            yield Problem(
                kind="slots",
                subject=consumer.subject,
                text=f"every node that takes it is to have its pod, which needs {_in_words(consumer.asks)}, and "
                f"{_joined(self._matching.names(full))} {_has(self._matching.names(full))} no room for it{beside}",
                way_out="select fewer nodes, or have the pods ask for no GPU: what only watches GPUs needs none",
            )

    # All that always runs

    def of_what_always_runs(self, packed: Packed) -> Problem:
        """Too little for what runs until somebody stops it."""
        lacking = packed.lacking()
        return Problem(
            kind="slots",
            subject=self._only_subject(lacking),
            text=f"what always runs does not fit: {self._shortage(packed, lacking)}",
            way_out=self._way_to_slots(packed),
        )

    def _only_subject(self, those: Iterable[int]) -> int | None:
        subjects = {self._consumers[index].subject for index in those}
        return subjects.pop() if len(subjects) == 1 else None

    def _some_of(self, lacking: Mapping[int, int]) -> str:
        return _joined([_pods_of(self._consumers[i], count) for i, count in sorted(lacking.items())])

    def _shortage(self, packed: Packed, lacking: Mapping[int, int]) -> str:
        shortage = packed.packing.shortage
        if shortage is None:
            waits = "waits" if sum(lacking.values()) == 1 else "wait"
            return (
                f"however pods are placed, some have no place; in the best way found {self._some_of(lacking)} {waits}"
            )
        who = sorted({index for item in shortage.items for index, _ in packed.members[item]})
        titles, nodes = _joined([self._consumers[index].title for index in who]), self._matching.names(shortage.bins)
        want, have = "wants" if len(who) == 1 else "want", f"{_joined(nodes)} {_has(nodes)}"
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
                f"{pods} of {titles} {take} {shortage.at_least} {resource} or more{' each' * (shortage.needed > 1)}, "
                f"and {have} room for {shortage.available or 'no'} {such}"
            )
        return f"{titles} {want} {shortage.needed} {resource}, and {have} {shortage.available}{together}"

    def _way_to_slots(self, packed: Packed) -> str:
        ways, shortage = ["fewer pods", "another node in the inventory"], packed.packing.shortage
        if shortage is not None and shortage.dimension is not None and shortage.at_least in (None, 1):
            place, resource = shortage.dimension, self._matching.resources[shortage.dimension]
            asked = {self._matching.size_of(packed.members[item][0][0])[place] for item in shortage.items}
            offers = [self._offers[index] for kind in shortage.bins for index in self._matching.kinds[kind]]
            slots = [(one.slots, offer.count) for offer in offers for one in offer.devices if one.resource == resource]
            devices, total = sum(count for _, count in slots), sum(each * count for each, count in slots)
            # Two slots of a GPU are not two GPUs: who asks for several gets no more by sharing.
            if devices and "/" in resource and asked == {1}:
                what = "more slots" if any(each > 1 for each, _ in slots) else "GPUs that pods share"
                # What every node gets has slots of its own.
                replicas = -(-(shortage.needed + total - shortage.available) // devices)
                if replicas <= MOST_REPLICAS:
                    ways.insert(0, f"{what} with Sharing.time_slicing(replicas={replicas}), which divides no memory")
        return ", or ".join(ways)

    # What comes and goes

    def beside(self, always: Packed) -> Iterator[Problem]:
        """Look at what starts beside what always runs: new pods of an update, work that ends.

        Args:
            always: Where what always runs has its places.
        """
        room = PlacedPods.of(self._matching, always)
        steady = {index: self._consumers[index].least_pods for unit in self._matching.units for index in unit}
        for unit in self._matching.units:
            first = self._consumers[unit[0]]
            each = {index: self._consumers[index].pods_each if first.is_gang else 1 for index in unit}
            if not first.least_copies and not self._fits(each, room, steady):
                self._never_starting.update(unit)
                yield self._never_starts(unit, each)
            new = {i: count for i, count in each.items() if self._consumers[i].surge_is_needed}
            new = {i: count for i, count in new.items() if self._consumers[i].surge}
            if new and not self._fits(new, room, steady):
                yield self._update_waits(new, self._matching.takers[min(new)].union(*map(self._takers, new)))
        for index, consumer in enumerate(self._consumers):
            if consumer.is_for_each_node and consumer.surge_is_needed and consumer.surge:
                kinds = [kind for kind, those in enumerate(self._matching.daemons) if index in those]
                full = [kind for kind in kinds if not self._fits_on(kind, index, room, steady)]
                if full:
                    yield self._update_waits({index: 1}, full)

    def _takers(self, index: int) -> frozenset[int]:
        return self._matching.takers[index]

    def _fits(self, pods: Mapping[int, int], room: PlacedPods, steady: Mapping[int, int]) -> bool:
        """Tell whether pods have a place for some placement of what always runs; true where nobody can say."""
        return room.takes(pods) or not self._is_stuck(room.key_of(pods), self._free(pods, steady), steady, pods)

    def _free(self, pods: Mapping[int, int], steady: Mapping[int, int]) -> bool:
        """Tell whether there is enough in the whole cluster."""
        for place in range(len(self._matching.resources)):
            wanted = sum(count * self._matching.size_of(index)[place] for index, count in pods.items())
            if wanted > self._left(steady)[place]:
                return False
        return True

    def _left(self, steady: Mapping[int, int]) -> Sequence[int]:
        if self._rest is None:
            rest = [sum(one.size[place] * one.count for one in self._matching.bins) for place in self._places]
            for index, count in steady.items():
                for place, takes in enumerate(self._matching.size_of(index)):
                    rest[place] -= takes * count
            self._rest = rest
        return self._rest

    def _fits_on(self, kind: int, index: int, room: PlacedPods, steady: Mapping[int, int]) -> bool:
        """Tell the same of one more pod that every node gets, which must stand on a node of its own kind."""
        size = self._matching.size_of(index)
        if any(
            nodes.kind == kind and all(has >= takes for has, takes in zip(nodes.left, size, strict=True))
            for nodes in room.nodes
        ):
            return True
        guest = Item(size, 1, frozenset([kind]))
        return not self._is_stuck((kind, size), self._free({index: 1}, steady), steady, {}, guest)

    def _is_stuck(
        self,
        key: object,
        is_enough: bool,
        steady: Mapping[int, int],
        pods: Mapping[int, int],
        guest: Item | None = None,
    ) -> bool:
        """Tell whether pods have no place wherever what always runs is placed; false where nobody can say."""
        if not is_enough:
            return True
        if key not in self._stuck:
            if self._searched > _MOST_SEARCHES:
                self.is_searched = False
                return False
            self._searched += len(steady) + len(self._matching.bins)
            wanted = {**steady, **{index: steady.get(index, 0) + count for index, count in pods.items()}}
            self._stuck[key] = self._matching.pack(wanted, guest=guest).packing.answer == "no"
        return self._stuck[key]

    def _never_starts(self, unit: Sequence[int], pods: Mapping[int, int]) -> Problem:
        consumer = self._consumers[unit[0]]
        nodes = self._matching.names(sorted(set().union(*(self._matching.takers[index] for index in unit))))
        together = sum(pods.values()) > 1
        what = "its pods, which must run together, need" if together else f"its pod{_of_part(consumer)} needs"
        return Problem(
            kind="slots",
            subject=consumer.subject,
            text=f"it would never start: {what} {self._wanted(pods)}, and what always runs leaves no place for "
            f"{'them' if together else 'it'} on {_joined(nodes)}",
            way_out="fewer or smaller pods that always run, or another node in the inventory",
        )

    def _update_waits(self, pods: Mapping[int, int], kinds: Collection[int]) -> Problem:
        consumer = self._consumers[min(pods)]
        wanted = self._wanted(pods)
        nodes = _joined(self._matching.names(kinds))
        if sum(pods.values()) > 1:
            what, old = f"its new pods need {wanted} before the old ones give theirs back", "them"
        else:
            what, old = f"its new pod{_of_part(consumer)} needs {wanted} before the old one gives its own back", "it"
        return Problem(
            kind="rollout",
            subject=consumer.subject,
            text=f"an update would wait for ever: {what}, and what always runs leaves no place for {old} on {nodes}",
            way_out=_WAYS_TO_UPDATE.get(consumer.kind, _WAY_TO_UPDATE),
        )

    def _wanted(self, pods: Mapping[int, int]) -> str:
        wanted: dict[str, int] = {}
        for index, count in pods.items():
            for name, amount in self._consumers[index].asks.items():
                wanted[name] = wanted.get(name, 0) + amount * count
        return _in_words(wanted)

    def of_waiting(self, packed: Packed, lacking: Mapping[int, int]) -> Iterator[Problem]:
        """Not everything that may run has a place at once.

        Args:
            packed: What was found out about all of it.
            lacking: Pods that wait, by consumer.
        """
        waiting = {index: count for index, count in lacking.items() if index not in self._never_starting}
        if not waiting:
            return
        some = self._some_of(waiting)
        if packed.packing.answer == "undecided":
            text = (
                f"it was not found out whether all that may run fits at once; in the best way found some wait ({some})"
            )
        else:
            wait = "a pod waits" if sum(waiting.values()) == 1 else "pods wait"
            text = f"when all that may run runs, {wait} as Pending ({some})"
            if packed.packing.shortage is not None:
                text += f": {self._shortage(packed, waiting)}"
        yield Problem(
            kind="waiting",
            subject=self._only_subject(waiting),
            text=text,
            way_out=f"leave it where work may queue; else {self._way_to_slots(packed)}",
        )

    # Memory and power

    def of_memory(
        self, verdict: VramVerdict, devices: Sequence[PlannedDevice], conflicts: Sequence[Conflict]
    ) -> Iterator[Problem]:
        """Memory that may run out, or that nobody can add up."""
        if verdict == "safe":
            return
        others = [one for one in conflicts if not self._is_said(one)]
        silent = [one.title for i, one in enumerate(self._consumers) if one.vram_mib is None and self._shares(i)]
        if conflicts and not others and not silent:
            return
        greatest = max(devices, key=_degree, default=None)
        reasons = []
        if greatest is not None and _degree(greatest) > 1:
            has = greatest.device.vram_mib or 0
            who = "a pod may take" if greatest.device.slots == 1 else "pods that may meet on one GPU take up to"
            reasons.append(f"{who} {greatest.worst_mib} of its {has} MiB ({percent(greatest.worst_mib, has)} %)")
        if others:
            sets = [_joined([_several(self._consumers[i].title, n) for i, n in one.pods.items()]) for one in others]
            more = len(sets) - _MOST_CONFLICTS
            few = "; ".join(sets[:_MOST_CONFLICTS]) + (f"; and {more} more" if more > 0 else "")
            reasons.append(f"too much for one GPU: {few}")
        ways = ["smaller budgets", "fewer slots", "Sharing.vram_units(...) where nodes have one GPU", "MIG"]
        if all(sum(one.pods.values()) == 1 for one in others):
            ways = ["a smaller budget", "a nodeSelector for larger GPUs"]
        ways = ways if reasons else []
        if silent:
            reasons.append(f"{_joined(silent)} {'states' if len(silent) == 1 else 'state'} no budget")
            ways.insert(0, "GpuRequest(vram=...) for each" if len(silent) > 1 else "GpuRequest(vram=...) for it")
        elif verdict == "unknown":
            blank = [one.name for one in self._offers if any(device.vram_mib is None for device in one.devices)]
            reasons.append(f"the memory of the GPUs of {_joined(blank)} is not known")
            ways.insert(0, "GpuNode(vram=...)")
        starts = {
            "depends": "memory of a GPU may run out, depending on which pods get it",
            "overcommitted": "memory of a GPU runs out once all pods are busy, wherever they are placed",
            "undecided": "memory of a GPU may run out, and the search for a placement that fits gave up",
            "unknown": "nobody can say whether memory of a GPU runs out",
        }
        yield Problem(
            kind="vram", subject=None, text=f"{starts[verdict]}: {'; '.join(reasons)}", way_out=", or ".join(ways)
        )

    def _is_said(self, conflict: Conflict) -> bool:
        """Tell whether it is one pod that is too large wherever it goes."""
        return sum(conflict.pods.values()) == 1 and not self._too_large.isdisjoint(conflict.pods)

    def _shares(self, index: int) -> bool:
        consumer, takers = self._consumers[index], self._matching.takers[index]
        is_there = consumer.pods > 0 or consumer.is_for_each_node
        return is_there and any(not self._shared_in(name).isdisjoint(takers) for name in consumer.asks)

    def _shared_in(self, resource: str) -> frozenset[int]:
        """Give the kinds of nodes with a device of a resource that several pods may hold."""
        if resource not in self._sharing:
            self._sharing[resource] = frozenset(
                number
                for number, kind in enumerate(self._matching.kinds)
                if any(one.slots > 1 for one in self._offers[kind[0]].devices if one.resource == resource)
            )
        return self._sharing[resource]

    def of_power(self, power: Power) -> Iterator[Problem]:
        """Racks whose GPUs draw more than they have."""
        for rack, most in power.rack_watts.items():
            draws = power.racks.get(rack, 0)
            if draws > most:
                yield Problem(
                    kind="power",
                    subject=None,
                    text=f"the GPUs of rack {rack!r} draw {draws} W at their power limits, and it has {most} W",
                    way_out="hold them lower with PowerLimit or GpuNode(power_limit=...), or move a node",
                )


def _degree(planned: PlannedDevice) -> float:
    return planned.worst_mib / planned.device.vram_mib if planned.device.vram_mib else 0.0


def _several(title: str, pods: int) -> str:
    return title if pods == 1 else f"{pods} x {title}"


def _pods_of(consumer: Consumer, count: int) -> str:
    if consumer.pods == 1:
        return consumer.title
    return f"{count} {'pod' if count == 1 else 'pods'} of {consumer.title}"


def _of_part(consumer: Consumer) -> str:
    return f" ({consumer.part})" if consumer.part else ""


def _in_words(amounts: Mapping[str, int]) -> str:
    return _joined([f"{amount} {name}" for name, amount in sorted(amounts.items())])


def _has(nodes: Sequence[str]) -> str:
    return "has" if len(nodes) == 1 else "have"


def _nodewise(whys: Mapping[str, str], nodes: int) -> str:
    """Say of each node why, nodes of one reason together.

    Args:
        whys: Why, by the name of the node; not of all.
        nodes: How many nodes and pools there are to say it of.
    """
    together: dict[str, list[str]] = {}
    for name, why in whys.items():
        together.setdefault(why, []).append(name)
    said, told = "", 0
    for why, names in together.items():
        more = f"{'; ' if said else ''}{'each of ' if len(names) > 1 else ''}{_joined(names)} {why}"
        if said and len(said) + len(more) > 2 * _LONG:
            break
        said, told = said + more, told + len(names)
    return said + (f"; and {nodes - told} more" if nodes > told else "")


def _joined(words: Sequence[str]) -> str:
    """Join words as a sentence does, the first few of them."""
    few, length = 0, 0
    while few < min(len(words), _MOST_NAMED) and (not few or length + len(words[few]) <= _LONG):
        length += len(words[few]) + 2
        few += 1
    if len(words) > few:
        return f"{', '.join(words[:few])} and {len(words) - few} more"
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1]))) if words else ""
