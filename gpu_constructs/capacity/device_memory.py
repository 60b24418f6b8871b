"""Memory of the devices: who may meet on one, what they take together, who does not go together."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.matching import Matching
from gpu_constructs.capacity.node_offer import Device, NodeOffer
from gpu_constructs.capacity.packing import Bin, Item, pack
from gpu_constructs.capacity.plan import Answer, Conflict, PlannedDevice, Seat, VramVerdict
from gpu_constructs.capacity.pod_counts import most_on_node
from gpu_constructs.capacity.vram import conflicts, worst_mib

MOST_CONFLICTS = 20
_MOST_PLACES = 20


class _Place(NamedTuple):
    """A device of a kind of nodes, and all that decides who meets there.

    Attributes:
        kind: Of the nodes.
        device: One of those that are alike.
        in_node: Slots of its resource that a node has, those of the device among them.
        number: How many devices like it the cluster has.
    """

    kind: int
    device: Device
    in_node: int
    number: int

    @property
    def is_only(self) -> bool:
        """Whether the node has no other device of the resource."""
        return self.in_node == self.device.slots

    def slots_of(self, asked: int) -> int:
        """Give how many slots of it a pod holds at least that holds some; the rest lies on other devices."""
        return max(1, asked - (self.in_node - self.device.slots))

    def pods_of(self, asked: int) -> int:
        """Give how many pods that hold some of it there can be at most."""
        return min(self.device.slots // self.slots_of(asked), self.in_node // asked)


class _Guests(NamedTuple):
    """Consumers that the same nodes take and that ask for as many slots.

    Attributes:
        asked: Slots of each pod.
        known: Consumers that say what they take, as memory, pods on a node and index, the greatest first.
        pods: Pods of all of them on a node.
        is_silent: Whether one does not say what it takes.
    """

    asked: int
    known: Sequence[tuple[int, int, int]]
    pods: int
    is_silent: bool


class _Meeting(NamedTuple):
    """What pods that may meet on a device take.

    Attributes:
        worst_mib: The most, together.
        has_unknown: Whether one that may meet another there does not say it.
        is_held_short: Whether one is allowed less than it takes.
    """

    worst_mib: int
    has_unknown: bool
    is_held_short: bool


class DeviceMemory:
    """What pods take of the memory of devices, when any of those that may run runs."""

    def __init__(self, matching: Matching) -> None:
        self._matching = matching
        self._meetings: dict[object, _Meeting] = {}

    @cached_property
    def _guests(self) -> Mapping[str, Sequence[Sequence[_Guests]]]:
        """For each resource who asks for it, by the kind of the nodes."""
        groups: dict[tuple[str, int, frozenset[int]], list[int]] = {}
        for index, consumer in enumerate(self._matching.consumers):
            if most_on_node(consumer):
                for resource, asked in consumer.asks.items():
                    groups.setdefault((resource, asked, self._matching.takers[index]), []).append(index)
        found: dict[str, list[list[_Guests]]] = {
            resource: [[] for _ in self._matching.kinds] for resource in self._matching.resources
        }
        for (resource, asked, takers), indexes in groups.items():
            those = [(self._matching.consumers[index], index) for index in indexes]
            known = [(one.vram_mib, most_on_node(one), index) for one, index in those if one.vram_mib is not None]
            guests = _Guests(
                asked=asked,
                known=sorted(known, key=lambda one: (-one[0], one[2])),
                pods=sum(most_on_node(one) for one, _ in those),
                is_silent=len(known) < len(those),
            )
            for kind in takers:
                found[resource][kind].append(guests)
        return found

    @cached_property
    def _places(self) -> Sequence[_Place]:
        """The devices of the cluster, those that are alike in one."""
        matching = self._matching
        found: list[_Place] = []
        for number, kind in enumerate(matching.kinds):
            alike: dict[object, list[Device]] = {}
            for device in matching.offers[kind[0]].devices:
                alike.setdefault(_key(device), []).append(device)
            for devices in alike.values():
                in_node = matching.offers[kind[0]].allocatable[devices[0].resource]
                found.append(_Place(number, devices[0], in_node, matching.bins[number].count * len(devices)))
        return found

    def planned(self, kind: int, offer: NodeOffer, seats: Sequence[Sequence[Seat]]) -> list[PlannedDevice]:
        """Give the devices of a node with what those who sit there take."""
        consumers = self._matching.consumers
        found: list[PlannedDevice] = []
        for device, those in zip(offer.devices, seats, strict=True):
            meeting = self._meeting(_Place(kind, device, offer.allocatable[device.resource], 0))
            found.append(
                PlannedDevice(
                    device=device,
                    seats=tuple(those),
                    typical_mib=sum(_taken(_typical(consumers[seat.consumer]), device) * seat.pods for seat in those),
                    seated_mib=sum(
                        _taken(consumers[seat.consumer].vram_mib or 0, device) * seat.pods for seat in those
                    ),
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
                # What lies on other devices must find slots too.
                worst = min(worst, _bound(place.in_node, [(mib, pods, asked) for mib, pods, _, asked in known]))
            self._meetings[key] = _Meeting(
                worst_mib=worst,
                has_unknown=_has_unknown(place, guests),
                is_held_short=device.vram_each_mib is not None
                and any(group.known and group.known[0][0] > device.vram_each_mib for group in guests),
            )
        return self._meetings[key]

    def conflicts(self) -> tuple[list[Conflict], bool]:
        """Give the smallest sets of pods that do not go together, and whether there are more of them."""
        over = [place for place in self._places if self._excess(place) > 1]
        over.sort(key=lambda place: -self._excess(place))
        found: dict[tuple[object, ...], Conflict] = {}
        is_complete = True
        searched: set[tuple[object, ...]] = set()
        for place in over:
            device, offer = place.device, self._matching.offers[self._matching.kinds[place.kind][0]]
            name = " ".join(filter(None, (offer.gpu_model or offer.name, device.profile)))
            guests = self._guests[device.resource][place.kind]
            key = (name, _key(device), place.in_node, *sorted(id(group) for group in guests))
            if key in searched:
                continue
            if len(searched) == _MOST_PLACES:
                is_complete = False
                break
            searched.add(key)
            candidates = sorted(
                (index, _taken(mib, device), pods, place.slots_of(group.asked), mib)
                for group in guests
                for mib, pods, index in group.known
            )
            made = [
                Conflict(f"{name} (each holder)", device.vram_each_mib, {index: 1}, mib)
                for index, taken, _, _, mib in candidates
                if device.vram_each_mib is not None and taken < mib
            ]
            is_complete &= len(made) <= MOST_CONFLICTS
            if device.vram_mib is not None:
                one_of_all = [one[1:4] for one in candidates]
                sets = conflicts(device.vram_mib, device.slots, one_of_all, limit=MOST_CONFLICTS)
                is_complete &= sets.is_complete
                for chosen in sets.sets:
                    pods = {candidates[number][0]: count for number, count in chosen.items()}
                    total = sum(candidates[number][1] * count for number, count in chosen.items())
                    made.append(Conflict(name, device.vram_mib, pods, total))
            for one in made[: 2 * MOST_CONFLICTS]:
                found.setdefault((one.device, one.vram_mib, tuple(sorted(one.pods.items()))), one)
        order = sorted(found.values(), key=lambda one: (sum(one.pods.values()), -one.together_mib, sorted(one.pods)))
        return order[:MOST_CONFLICTS], not is_complete or len(order) > MOST_CONFLICTS

    def _excess(self, place: _Place) -> float:
        """Give by how much more than there is may be taken of a device: at most 1 where it is enough."""
        meeting, mib = self._meeting(place), place.device.vram_mib
        most = meeting.worst_mib / mib if mib else 0.0
        return max(most, 1 + 1e-9) if meeting.is_held_short else most

    def verdict(self, together: Mapping[int, int]) -> VramVerdict:
        """Tell whether memory can run out.

        Args:
            together: Pods of each consumer that have a place at once, whoever else runs; of those that every node gets
                all.
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
        """Tell whether pods could be put on devices so that none has too little memory.

        Each device is looked at by itself, and who does not say what it takes is taken to take nothing: a ``no`` is
        proven, a ``yes`` where pods hold slots of one device each.
        """
        matching = self._matching
        by_kind: dict[tuple[int, str], list[int]] = {}
        for number, place in enumerate(self._places):
            by_kind.setdefault((place.kind, place.device.resource), []).append(number)
        reach: dict[tuple[frozenset[int], str], _Reach] = {}
        items: dict[tuple[tuple[int, int], frozenset[int], tuple[int, int] | None], int] = {}
        for index, pods in together.items():
            consumer = matching.consumers[index]
            groups = [(matching.takers[index], pods)]
            if consumer.is_for_each_node:
                groups = [(frozenset([kind]), matching.bins[kind].count) for kind in sorted(matching.takers[index])]
                groups = [one for one in groups if index in matching.daemons[min(one[0])]]
            most = 1 if consumer.is_for_each_node else consumer.most_per_node
            for resource, asked in consumer.asks.items() if pods else ():
                for takers, count in groups:
                    if (takers, resource) not in reach:
                        reach[takers, resource] = _Reach.of(
                            self._places, [number for kind in takers for number in by_kind.get((kind, resource), ())]
                        )
                    reached = reach[takers, resource]
                    mib = consumer.vram_mib or 0
                    those = reached.with_memory(mib, self._places)
                    if not those:
                        return "no"
                    devices = 1 if reached.is_only else -(-asked // reached.most_slots)
                    limit = (index, most) if most is not None and devices == 1 else None
                    one = (asked if reached.is_only else 1, mib), those, limit
                    items[one] = items.get(one, 0) + count * devices
                    if not reached.is_only:
                        other = (1, 0), reached.places, None
                        items[other] = items.get(other, 0) + count * (asked - devices)
        endless = 1 + sum(size[1] * count for (size, _, _), count in items.items())
        bins = [
            Bin((place.device.slots, endless if place.device.vram_mib is None else place.device.vram_mib), place.number)
            for place in self._places
        ]
        wanted = [
            Item(size, count, those, None if limit is None else limit[1])
            for (size, those, limit), count in items.items()
        ]
        return pack(wanted, bins).answer


class _Reach(NamedTuple):
    """Devices that the pods of a consumer may get.

    Attributes:
        places: Their numbers.
        is_only: Whether each is the only one of its node.
        most_slots: Slots of the one that has most.
        limits: What a pod can have of them, each amount once, rising.
        made: Those with memory enough, by how many of the limits are less.
    """

    places: frozenset[int]
    is_only: bool
    most_slots: int
    limits: Sequence[int]
    made: dict[int, frozenset[int]]

    @classmethod
    def of(cls, places: Sequence[_Place], numbers: Sequence[int]) -> _Reach:
        """Look at these."""
        those = [places[number] for number in numbers]
        return cls(
            frozenset(numbers),
            all(place.is_only for place in those),
            max((place.device.slots for place in those), default=1),
            sorted({most for place in those if (most := _most(place.device)) is not None}),
            {},
        )

    def with_memory(self, mib: int, places: Sequence[_Place]) -> frozenset[int]:
        """Give those that have as much for one pod."""
        step = bisect_left(self.limits, mib)
        if step not in self.made:
            enough = ((number, _most(places[number].device)) for number in self.places)
            self.made[step] = frozenset(number for number, most in enough if most is None or most >= mib)
        return self.made[step]


def _most(device: Device) -> int | None:
    """Give how much of a device one pod can have; None where it is not known."""
    given = [mib for mib in (device.vram_mib, device.vram_each_mib) if mib is not None]
    return min(given, default=None)


def _key(device: Device) -> tuple[object, ...]:
    return device.resource, device.slots, device.vram_mib, device.vram_each_mib


def _has_unknown(place: _Place, guests: Sequence[_Guests]) -> bool:
    """Tell whether a pod that does not say what it takes may meet another on a device."""
    silent = min(((place.slots_of(one.asked), at) for at, one in enumerate(guests) if one.is_silent), default=None)
    if silent is None:
        return False
    others = (place.slots_of(one.asked) for at, one in enumerate(guests) if at != silent[1] or one.pods > 1)
    other = min(others, default=None)
    return other is not None and silent[0] + other <= place.device.slots


def _first(known: Sequence[tuple[int, int, int]], most: int) -> Iterator[tuple[int, int, int]]:
    """Give the greatest that can be on a device at once."""
    for mib, pods, index in known:
        if most <= 0:
            return
        yield mib, pods, index
        most -= pods


def _bound(slots: int, known: Iterable[tuple[int, int, int]]) -> int:
    """Give memory that pods in so many slots do not exceed: as if a part of a pod could be left out."""
    total = 0
    for mib, pods, asked in sorted(known, key=lambda one: -one[0] / one[2]):
        whole = min(pods, slots // asked)
        total += mib * whole
        slots -= asked * whole
        if whole < pods:
            return total + mib * slots // asked
    return total


def _typical(consumer: Consumer) -> int:
    given = consumer.typical_vram_mib if consumer.typical_vram_mib is not None else consumer.vram_mib
    return given or 0


def _taken(mib: int, device: Device) -> int:
    """Give what a pod takes of a device, of which something may allow it less."""
    return mib if device.vram_each_mib is None else min(mib, device.vram_each_mib)
