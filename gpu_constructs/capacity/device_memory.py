"""The GPU memory that pods take on each device, if several pods share the device.

A *consumer* is a workload as the capacity plan sees it: equal pods of one object that request GPUs. A *slot* is one
unit of an extended resource. A device with several slots serves several pods, and Kubernetes does not add up their GPU
memory. This module compares the memory of pods that can share a device with the memory of the device.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import product
from typing import NamedTuple

from gpu_constructs.capacity.gathered import grouped
from gpu_constructs.capacity.matching import Matching
from gpu_constructs.capacity.packing import Bin, Item, pack
from gpu_constructs.capacity.planned import Answer, Conflict, Device, NodeOffer, PlannedDevice, Seat, VramVerdict
from gpu_constructs.capacity.vram import bound, conflicts, worst_mib

MOST_CONFLICTS = 20
_MOST_PLACES = 20


class _Place(NamedTuple):
    """Equal devices on equal nodes, with the numbers that limit how many pods can share one of these devices.

    Attributes:
        kind: Index of the group of equal nodes.
        device: One of the devices.
        in_node: Number of slots of all devices of one node that provide the same resource as ``device``.
        number: Number of devices on all nodes of the group that are equal to ``device``.
    """

    kind: int
    device: Device
    in_node: int
    number: int

    @property
    def is_only(self) -> bool:
        """Whether no other device of the node provides the same extended resource."""
        return self.in_node == self.device.slots

    def slots_of(self, asked: int) -> int:
        """Return the smallest number of slots of this device that a pod on it holds if it requests ``asked`` slots.

        For example, if a node has two devices with 4 slots each, a pod that requests 6 slots holds at least 2 slots of
        each device.
        """
        return max(1, asked - (self.in_node - self.device.slots))

    def pods_of(self, asked: int) -> int:
        """Return how many pods can use the device at the same time, if each of them requests ``asked`` slots."""
        return min(self.device.slots // self.slots_of(asked), self.in_node // asked)


class _Guests(NamedTuple):
    """Workloads (consumers) whose pods can run on the same nodes and request the same number of slots.

    Attributes:
        asked: Number of slots that each pod requests.
        known: One tuple for each workload that states its memory: memory of a pod in MiB, largest number of its pods on
            one node, and index of the workload. The tuple with the largest memory comes first.
        pods: Largest number of pods of all these workloads together on one node.
        is_silent: Whether one of the workloads does not state the memory of its pods.
    """

    asked: int
    known: Sequence[tuple[int, int, int]]
    pods: int
    is_silent: bool


class _Meeting(NamedTuple):
    """The memory that the pods on one device can take together.

    Attributes:
        worst_mib: Largest total memory in MiB of pods that can share the device at the same time.
        has_unknown: Whether a pod that can share the device states no memory.
        is_held_short: Whether a pod needs more memory than MPS allows it on the device.
    """

    worst_mib: int
    has_unknown: bool
    is_held_short: bool


class DeviceMemory:
    """Methods that compute how much memory pods can take together on each device, and whether memory can run out."""

    def __init__(self, matching: Matching) -> None:
        self._matching = matching
        self._meetings: dict[object, _Meeting] = {}
        self._reach = cache(self._find_reach)
        self._with_memory = cache(self._find_with_memory)

    @cached_property
    def _guests(self) -> Mapping[str, Sequence[Sequence[_Guests]]]:
        """Workloads by the resource that they request.

        Each key is the name of a resource. Each value is a list with one entry for each group of equal nodes. The entry
        contains the workloads that request the resource and whose pods these nodes accept.
        """
        groups = grouped(
            ((resource, asked, self._matching.takers[index]), index)
            for index, consumer in enumerate(self._matching.consumers)
            if consumer.most_on_node
            for resource, asked in consumer.asks.items()
        )
        found: dict[str, list[list[_Guests]]] = {
            resource: [[] for _ in self._matching.kinds] for resource in self._matching.resources
        }
        for (resource, asked, takers), indexes in groups.items():
            those = [(self._matching.consumers[index], index) for index in indexes]
            known = [(one.vram_mib, one.most_on_node, index) for one, index in those if one.vram_mib is not None]
            guests = _Guests(
                asked=asked,
                known=sorted(known, key=lambda one: (-one[0], one[2])),
                pods=sum(one.most_on_node for one, _ in those),
                is_silent=len(known) < len(those),
            )
            for kind in takers:
                found[resource][kind].append(guests)
        return found

    @cached_property
    def _places(self) -> Sequence[_Place]:
        """Devices of all nodes in the cluster. Equal devices on equal nodes share one list entry."""
        matching = self._matching
        return [
            _Place(number, alike[0], offer.allocatable[alike[0].resource], matching.bins[number].count * len(alike))
            for number, offer in enumerate(matching.offers[kind[0]] for kind in matching.kinds)
            for alike in grouped((_key(device), device) for device in offer.devices).values()
        ]

    def planned(self, kind: int, offer: NodeOffer, seats: Sequence[Sequence[Seat]]) -> list[PlannedDevice]:
        """Return the devices of a node, each with its pods and with the memory that these pods take.

        Args:
            kind: Index of the group of equal nodes that contains the node.
            offer: Node with its devices.
            seats: Slots that pods hold, as one list for each device, in the order of ``offer.devices``.
        """
        found: list[PlannedDevice] = []
        for device, those in zip(offer.devices, seats, strict=True):
            meeting = self._meeting(_Place(kind, device, offer.allocatable[device.resource], 0))
            holders = [(self._matching.consumers[seat.consumer], seat.pods) for seat in those]
            found.append(
                PlannedDevice(
                    device=device,
                    seats=tuple(those),
                    typical_mib=sum(_taken(one.usual_vram_mib or 0, device) * pods for one, pods in holders),
                    seated_mib=sum(_taken(one.vram_mib or 0, device) * pods for one, pods in holders),
                    worst_mib=meeting.worst_mib,
                    has_unknown=meeting.has_unknown,
                )
            )
        return found

    def _meeting(self, place: _Place) -> _Meeting:
        device = place.device
        key = (place.kind, _key(device))
        if key not in self._meetings:
            guests = self._guests[device.resource][place.kind]
            known = [
                (_taken(mib, device), pods, place.slots_of(group.asked), group.asked)
                for group in guests
                for mib, pods, _ in _first(group.known, place.pods_of(group.asked))
            ]
            worst = worst_mib(device.slots, [one[:3] for one in known])
            if any(width < asked for _, _, width, asked in known):
                # Slots that a pod holds on other devices count against the node.
                worst = min(worst, bound(place.in_node, [(mib, pods, asked) for mib, pods, _, asked in known]))
            self._meetings[key] = _Meeting(
                worst_mib=worst,
                has_unknown=_has_unknown(place, guests),
                is_held_short=device.vram_each_mib is not None
                and any(group.known and group.known[0][0] > device.vram_each_mib for group in guests),
            )
        return self._meetings[key]

    def conflicts(self) -> tuple[list[Conflict], bool]:
        """Return a pair: the minimal sets of pods that exceed the memory of a device, and whether more sets may exist.

        If you remove any pod from a minimal set, the remaining pods fit the device. The first member also contains
        each single pod that needs more memory than its limit from MPS.
        """
        over = [place for place in self._places if self._excess(place) > 1]
        found: dict[tuple[object, ...], Conflict] = {}
        searched: dict[tuple[object, ...], bool] = {}
        for place in sorted(over, key=lambda place: -self._excess(place)):
            guests = self._guests[place.device.resource][place.kind]
            key = (self._name(place), _key(place.device), place.in_node, *sorted(id(group) for group in guests))
            if key in searched:
                continue
            if len(searched) == _MOST_PLACES:
                searched[key] = False
                break
            made, searched[key] = self._conflicts_on(place, guests)
            for one in made:
                found.setdefault((one.device, one.vram_mib, tuple(sorted(one.pods.items()))), one)
        order = sorted(found.values(), key=lambda one: (sum(one.pods.values()), -one.together_mib, sorted(one.pods)))
        return order[:MOST_CONFLICTS], not all(searched.values()) or len(order) > MOST_CONFLICTS

    def _name(self, place: _Place) -> str:
        offer = self._matching.offers[self._matching.kinds[place.kind][0]]
        return " ".join(filter(None, (offer.gpu_model or offer.name, place.device.profile)))

    def _conflicts_on(self, place: _Place, guests: Sequence[_Guests]) -> tuple[list[Conflict], bool]:
        """Return a pair: the minimal sets of pods that exceed the memory of a device, and whether the list is complete.

        The list also contains each single pod that needs more memory than its limit from MPS.

        Args:
            place: Device. It stands for all equal devices on equal nodes.
            guests: Workloads whose pods can use the device. The pods of one entry request the same number of slots.
        """
        device, name = place.device, self._name(place)
        candidates = sorted(
            (index, _taken(mib, device), pods, place.slots_of(group.asked), mib)
            for group in guests
            for mib, pods, index in group.known
        )
        made = [
            Conflict(f"{name} (each pod)", device.vram_each_mib, {index: 1}, mib)
            for index, taken, _, _, mib in candidates
            if device.vram_each_mib is not None and taken < mib
        ]
        is_complete = len(made) <= MOST_CONFLICTS
        if device.vram_mib is not None:
            one_of_all = [one[1:4] for one in candidates]
            sets, are_all = conflicts(device.vram_mib, device.slots, one_of_all, limit=MOST_CONFLICTS)
            is_complete &= are_all
            chosen = ([(candidates[number], count) for number, count in one.items()] for one in sets)
            made += [
                Conflict(
                    name,
                    device.vram_mib,
                    pods={one[0]: count for one, count in those},
                    together_mib=sum(one[1] * count for one, count in those),
                )
                for those in chosen
            ]
        return made[: 2 * MOST_CONFLICTS], is_complete

    def _excess(self, place: _Place) -> float:
        """Return the largest memory that pods can take on a device, divided by the memory of the device.

        If the result is above 1, memory can run out. The result is also above 1 if a pod needs more memory than MPS
        allows it. The result is 0 if the memory of the device is not known.
        """
        meeting, mib = self._meeting(place), place.device.vram_mib
        most = meeting.worst_mib / mib if mib else 0.0
        return max(most, 1 + 1e-9) if meeting.is_held_short else most

    def verdict(self, together: Mapping[int, int]) -> VramVerdict:
        """Return the answer whether GPU memory can run out, for example ``safe`` or ``overcommitted``.

        Args:
            together: Number of pods that certainly have room at the same time, by the index of the workload.
        """
        held = [(place, self._meeting(place)) for place in self._places]
        is_unknown = any(one.has_unknown or (one.worst_mib and place.device.vram_mib is None) for place, one in held)
        if all(self._excess(place) <= 1 for place, _ in held):
            return "unknown" if is_unknown else "safe"
        fits = self._some_placement_fits(together)
        if fits == "no":
            return "overcommitted"
        if is_unknown:
            return "unknown"
        return "depends" if fits == "yes" else "undecided"

    def _some_placement_fits(self, together: Mapping[int, int]) -> Answer:
        """Return whether a placement of the pods exists in which the memory of each device is enough for its pods.

        Pods that state no memory count as 0 MiB. The answer ``no`` is certain. The answer ``yes`` may be wrong if a pod
        holds slots of several devices. The dict ``together`` contains the number of pods by the index of the workload.
        """
        items = Counter[_Wanted]()
        for index, pods in together.items():
            consumer = self._matching.consumers[index]
            most = 1 if consumer.is_for_each_node else consumer.most_per_node
            for (resource, asked), (takers, count) in product(consumer.asks.items(), self._groups(index, pods)):
                reached = self._reach(takers, resource)
                those = self._with_memory(reached.places, consumer.vram_mib or 0)
                if not those:
                    return "no"
                devices = 1 if reached.is_only else -(-asked // reached.most_slots)
                limit = (index, most) if most is not None and devices == 1 else None
                slots = asked if reached.is_only else 1
                items[(slots, consumer.vram_mib or 0), those, limit] += count * devices
                if not reached.is_only:
                    items[(1, 0), reached.places, None] += count * (asked - devices)
        return self._packs(items)

    def _packs(self, items: Mapping[_Wanted, int]) -> Answer:
        endless = 1 + sum(size[1] * count for (size, _, _), count in items.items())
        bins = [
            Bin((place.device.slots, endless if place.device.vram_mib is None else place.device.vram_mib), place.number)
            for place in self._places
        ]
        wanted = [Item(size, count, those, limit and limit[1]) for (size, those, limit), count in items.items()]
        return pack(wanted, bins).answer

    def _groups(self, index: int, pods: int) -> list[tuple[frozenset[int], int]]:
        """Return pairs for the pods of a workload: the groups of nodes that the pods can use, and the number of pods.

        A DaemonSet has one pair for each group of equal nodes, with one pod for each node of the group. Any other
        workload has one pair with all its pods.

        Args:
            index: Index of the workload.
            pods: Number of pods of the workload. For a DaemonSet, the function only checks whether it is 0.
        """
        takers = self._matching.takers[index]
        if not pods or not self._matching.consumers[index].is_for_each_node:
            return [(takers, pods)] if pods else []
        there = [kind for kind in sorted(takers) if index in self._matching.daemons[kind]]
        return [(frozenset([kind]), self._matching.bins[kind].count) for kind in there]

    def _find_reach(self, takers: frozenset[int], resource: str) -> _Reach:
        places = enumerate(self._places)
        those = {number: one for number, one in places if one.kind in takers and one.device.resource == resource}
        return _Reach(
            frozenset(those),
            all(place.is_only for place in those.values()),
            max((place.device.slots for place in those.values()), default=1),
        )

    def _find_with_memory(self, places: frozenset[int], mib: int) -> frozenset[int]:
        most = ((number, _most(self._places[number].device)) for number in places)
        return frozenset(number for number, has in most if has is None or has >= mib)


_Wanted = tuple[tuple[int, int], frozenset[int], tuple[int, int] | None]


class _Reach(NamedTuple):
    """The devices that the pods of a workload can get for one of the resources that they request.

    Attributes:
        places: Positions of the devices in the list ``DeviceMemory._places``.
        is_only: Whether each device is the only device of its resource on its node.
        most_slots: Largest number of slots of one of these devices.
    """

    places: frozenset[int]
    is_only: bool
    most_slots: int


def _most(device: Device) -> int | None:
    """Return the memory in MiB that one pod can get on a device. Return None if the memory is not known."""
    given = [mib for mib in (device.vram_mib, device.vram_each_mib) if mib is not None]
    return min(given, default=None)


def _key(device: Device) -> tuple[object, ...]:
    return device.resource, device.slots, device.vram_mib, device.vram_each_mib


def _has_unknown(place: _Place, guests: Sequence[_Guests]) -> bool:
    """Return whether a pod that states no GPU memory can share a device with another pod.

    The argument ``guests`` contains the workloads whose pods can use the device.
    """
    silent = min(((place.slots_of(one.asked), at) for at, one in enumerate(guests) if one.is_silent), default=None)
    if silent is None:
        return False
    others = (place.slots_of(one.asked) for at, one in enumerate(guests) if at != silent[1] or one.pods > 1)
    other = min(others, default=None)
    return other is not None and silent[0] + other <= place.device.slots


def _first(known: Sequence[tuple[int, int, int]], most: int) -> Iterator[tuple[int, int, int]]:
    """Yield the first triples of a list, until they stand for ``most`` pods or more.

    A triple stands for equal pods: memory of a pod in MiB, number of pods, and index of the workload.

    Args:
        known: Triples. The triple with the largest memory comes first.
        most: Number of pods that a device can serve at the same time.
    """
    for mib, pods, index in known:
        if most <= 0:
            return
        yield mib, pods, index
        most -= pods


def _taken(mib: int, device: Device) -> int:
    """Return the memory in MiB that a pod takes on a device: ``mib``, or the limit of MPS if that is smaller."""
    return mib if device.vram_each_mib is None else min(mib, device.vram_each_mib)
