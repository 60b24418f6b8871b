"""A placement: the pods on each node, with methods that add and remove pods.

A *consumer* is a workload as the capacity plan sees it: equal pods of one object that request GPUs. Long-running pods
run until someone deletes them. A gang is a set of pods that must all run at the same time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.device_memory import DeviceMemory
from gpu_constructs.capacity.gathered import grouped, summed
from gpu_constructs.capacity.matching import Matching, Packed
from gpu_constructs.capacity.packing import Group, overlaid
from gpu_constructs.capacity.planned import NodeOffer, PlannedNode, Seat


class PlacedPods:
    """A placement: the pods on each node of the cluster.

    Attributes:
        nodes: Groups of nodes that have the same pods.
    """

    def __init__(self, matching: Matching, nodes: Sequence[Group]) -> None:
        self._matching = matching
        self.nodes = list(nodes)

    @classmethod
    def of(cls, matching: Matching, packed: Packed) -> PlacedPods:
        """Return the placement (the pods on each node) for a result of ``Matching.pack``."""
        return cls(matching, [*_nodes(matching, packed)])

    def counts(self) -> dict[int, int]:
        """Return the number of placed pods by the index of the workload."""
        return summed((index, each * nodes.number) for nodes in self.nodes for index, each in nodes.content.items())

    def key_of(self, pods: Mapping[int, int]) -> object:
        """Return a dict key for a set of pods. Two sets of pods with equal keys fit the same nodes.

        The sets then request the same resources, and the same nodes accept their pods.

        Args:
            pods: Number of pods by the index of the workload.
        """
        matching = self._matching
        return tuple(
            (
                count,
                matching.size_of(index),
                matching.takers[index],
                None if matching.consumers[index].most_per_node is None else index,
            )
            for index, count in pods.items()
        )

    def copy(self) -> PlacedPods:
        """Return a copy of the placement that the caller can change."""
        return PlacedPods(self._matching, self.nodes)

    def add_all(self, pods: Mapping[int, int]) -> bool:
        """Place all given pods, or none of them if one pod has no room. Return whether all pods have room."""
        before = list(self.nodes)
        if any(self.add(index, count) for index, count in pods.items()):
            self.nodes = before
            return False
        return True

    def add(self, index: int, count: int) -> int:
        """Place pods of a workload on the first nodes with room. Return the number of pods without room.

        Args:
            index: Index of the workload.
            count: Number of pods to place.
        """
        takers, size = self._matching.takers[index], self._matching.size_of(index)
        most = self._matching.consumers[index].most_per_node
        at = 0
        while count and at < len(self.nodes):
            nodes = self.nodes[at]
            limits = [count] if most is None else [count, most - nodes.content.get(index, 0)]
            rooms = (left // takes for left, takes in zip(nodes.room, size, strict=True) if takes)
            each = min([*limits, *rooms]) if nodes.kind in takers else 0
            if each > 0:
                self.nodes[at : at + 1] = nodes.filled(index, size, each, count)
                count -= min(count, each * nodes.number)
            at += 1
        return count

    def remove(self, index: int, count: int) -> None:
        """Remove pods of a workload, from the last nodes of the placement first.

        Args:
            index: Index of the workload.
            count: Number of pods to remove.
        """
        size = self._matching.size_of(index)
        at = len(self.nodes)
        while count and at:
            at -= 1
            nodes = self.nodes[at]
            each = nodes.content.get(index, 0)
            if each:
                whole = min(nodes.number, count // each)
                rest = count - whole * each if whole < nodes.number else 0
                self.nodes[at : at + 1] = nodes.changed(index, size, [(-each, whole), (-rest, 1)])
                count -= whole * each + rest


def settled(
    matching: Matching,
    always: Packed,
    everything: Packed,
    most: Mapping[int, int],
    urgent: PlacedPods | None = None,
) -> PlacedPods:
    """Return the pods on each node if all pods of the app exist and each pod with room runs.

    If not all pods have room, long-running pods (pods that run until someone deletes them) get room before pods that
    end by themselves. A gang (pods that must run together) gets room only if all pods that it needs to start have room.

    Args:
        matching: Workloads and the nodes that accept their pods.
        always: Assignment of the long-running pods to nodes.
        everything: Assignment of all pods to nodes, as far as the nodes have room.
        most: Number of pods that ResourceQuotas admit, by the index of the workload.
        urgent: Placement in which pods of higher priority get room first. None if all pods have room, or if all pods
            have the same priority.
    """
    placed = PlacedPods.of(matching, everything)
    if everything.packing.answer == "yes":
        return placed
    counts = placed.counts()
    consumers = matching.consumers
    lasting = sum(min(counts.get(i, 0), consumers[i].least_pods) for unit in matching.units for i in unit)
    best = PlacedPods.of(matching, always)
    if urgent or lasting < sum(best.counts().values()):
        placed = (urgent or best).copy()
        counts = placed.counts()
    for unit in matching.units:
        if consumers[unit[0]].is_gang:
            copies = _copies(matching, unit, counts)
            for i in unit:
                # A Job starts without these pods, so other work that needs the places to start gets them.
                each = consumers[i].pods_each if consumers[i].least_copies else consumers[i].starting
                placed.remove(i, max(0, counts.get(i, 0) - copies * each))
    _admit(matching, placed, most)
    return placed


def _copies(matching: Matching, unit: Sequence[int], counts: Mapping[int, int]) -> int:
    """Return how many copies of a gang (pods that must run together) can start with the given numbers of pods.

    Args:
        matching: Workloads and the nodes that accept their pods.
        unit: Indices of the workloads of the gang.
        counts: Number of pods by the index of the workload.
    """
    consumers = matching.consumers
    starts = [(i, consumers[i].starting) for i in unit]
    return min([consumers[unit[0]].copies, *(counts.get(i, 0) // pods for i, pods in starts if pods)])


def _admit(matching: Matching, placed: PlacedPods, most: Mapping[int, int]) -> None:
    """Add pods to a placement, as far as nodes have room, until each workload has its number of pods in ``most``.

    Pods of higher priority get room first. At equal priority, long-running pods get room first. A gang (pods that must
    run together) may be able to start with some of its pods. Its remaining pods get room last.

    Args:
        matching: Workloads and the nodes that accept their pods.
        placed: Placement, which the function changes.
        most: Largest number of pods in the placement, by the index of the workload.
    """
    consumers, counts, full = matching.consumers, placed.counts(), set()
    units = sorted(matching.units, key=lambda unit: (-consumers[unit[0]].priority, not consumers[unit[0]].least_copies))
    for unit in units:
        each = {i: consumers[i].starting for i in unit}
        key = placed.key_of(each)
        if key not in full:
            lacking = _copies(matching, unit, most) - _copies(matching, unit, counts)
            if not consumers[unit[0]].is_gang:
                lacking = placed.add(unit[0], most[unit[0]] - counts.get(unit[0], 0))
            elif lacking:
                lacking = _add_copies(placed, each, lacking)
            full |= {key} if lacking else set()
    counts = placed.counts()
    for unit in units:
        if any(consumers[i].starting < consumers[i].pods_each for i in unit):
            copies = _copies(matching, unit, counts)
            for i in unit:
                wanted = min(copies * consumers[i].pods_each, most[i])
                placed.add(i, max(0, wanted - counts.get(i, 0)))


def _add_copies(placed: PlacedPods, each: Mapping[int, int], lacking: int) -> int:
    """Place as many copies of a gang (pods that must run together) as the nodes have room for.

    Return the number of copies without room.

    Args:
        placed: Placement, which the function changes.
        each: Number of pods of each workload in one copy.
        lacking: Number of copies to place.
    """
    some = lacking
    while some:
        if placed.add_all({i: some * count for i, count in each.items()}):
            lacking -= some
            some = min(some, lacking)
        else:
            some //= 2
    return lacking


def _nodes(matching: Matching, packed: Packed) -> Iterator[Group]:
    queues = grouped((item, [consumer, pods]) for item, consumer, pods in reversed([*packed.seated()]))
    missing = [one.count for one in matching.bins]
    for load in packed.packing.loads:
        missing[load.bin] -= load.count
        for pods, count in _shared_out(load.items, load.count, queues):
            yield Group(load.bin, count, pods, matching.left(load.bin, pods))
    for kind, count in enumerate(missing):
        if count:
            yield Group(kind, count, {}, matching.bins[kind].size)


def _shared_out(
    items: Mapping[int, int], nodes: int, queues: Mapping[int, list[list[int]]]
) -> Iterator[tuple[dict[int, int], int]]:
    """Choose to which workloads the pods on a group of nodes belong.

    An item is a group of equal pods, which can belong to several workloads. Yield pairs: a dict with the number of pods
    of each workload on a node, and the number of nodes with these pods.

    Args:
        items: Number of pods of each item on a node.
        nodes: Number of nodes, each with the items in ``items``.
        queues: For each item, a list of pairs: index of a workload, and number of its pods that still need a node. The
            last workload in the list gets nodes first. The function subtracts the pods that get nodes.
    """
    while nodes:
        for item in items:
            while not queues[item][-1][1]:
                queues[item].pop()
        alike = min((queues[item][-1][1] // each for item, each in items.items()), default=nodes)
        alike = min(alike, nodes)
        pods: dict[int, int] = {}
        for item, each in items.items():
            missing = each
            while missing:
                if not queues[item][-1][1]:
                    queues[item].pop()
                consumer = queues[item][-1]
                some = missing if alike else min(missing, consumer[1])
                consumer[1] -= some * max(alike, 1)
                missing -= some
                pods[consumer[0]] = pods.get(consumer[0], 0) + some
        yield pods, max(alike, 1)
        nodes -= max(alike, 1)


# Devices of pods: from the pods on a node to the pods on each of its devices


def seated(matching: Matching, memory: DeviceMemory, placed: PlacedPods) -> list[PlannedNode]:
    """Return the nodes of the capacity plan, each with its devices and the pods on every device.

    The nodes are in the order of the inventory. The scheduler counts only the slots of a node, and the device plugin
    chooses the device of each pod. This function chooses the device with the fewest used slots, as the NVIDIA device
    plugin does by default.

    Args:
        matching: Workloads and the nodes that accept their pods.
        memory: Memory that pods take on the devices.
        placed: Placement: the pods on each node.
    """
    contents = grouped((nodes.kind, (nodes.number, nodes.content)) for nodes in placed.nodes)
    found: list[tuple[int, PlannedNode]] = []
    for number, kind in enumerate(matching.kinds):
        common = dict.fromkeys(matching.daemons[number], 1)
        offers = [(matching.offers[index].count, index) for index in kind]
        firsts = Counter[int]()
        for count, index, pods in overlaid(offers, contents[number]):
            offer = matching.offers[index]
            devices = memory.planned(number, offer, seats_of(offer, matching.consumers, {**common, **pods}))
            found.append((index, PlannedNode(offer=offer, first=firsts[index], count=count, devices=devices)))
            firsts[index] += count
    return [node for _, node in sorted(found, key=lambda one: (one[0], one[1].first))]


def seats_of(offer: NodeOffer, consumers: Sequence[Consumer], pods: Mapping[int, int]) -> list[list[Seat]]:
    """Return the slots that the given pods hold, as one list for each device of a node.

    Args:
        offer: Node with its devices.
        consumers: Workloads of the capacity plan.
        pods: Number of pods on the node, by the index of the workload.
    """
    free = [device.slots for device in offer.devices]
    used = [0] * len(free)
    by_resource = grouped((device.resource, number) for number, device in enumerate(offer.devices))
    found: list[list[Seat]] = [[] for _ in free]
    for index in sorted(pods):
        for resource, amount in sorted(consumers[index].asks.items()):
            for number, (holders, slots) in _dealt(by_resource[resource], used, free, pods[index], amount).items():
                found[number].append(Seat(index, holders, slots))
    return found


def _dealt(
    devices: Sequence[int], used: list[int], free: list[int], pods: int, amount: int
) -> dict[int, tuple[int, int]]:
    """Assign slots of devices to pods that each request ``amount`` slots. Return the assignment as a dict.

    Args:
        devices: Indices of the devices.
        used: Number of used slots of each device, which the function updates.
        free: Number of free slots of each device, which the function updates.
        pods: Number of pods.
        amount: Number of slots that each pod requests.

    Returns:
        A dict from the index of a device to a pair: number of pods on the device, and number of their slots.
    """
    if amount == 1:
        return {number: (slots, slots) for number, slots in _filled(devices, used, free, pods).items()}
    found: dict[int, tuple[int, int]] = {}
    while pods:
        open_ones = [number for number in devices if free[number]]
        # In each round, one pod for each device gets slots. These pods use the same number of slots of every device.
        rounds = min(pods // len(open_ones), min(free[number] for number in open_ones) // amount)
        if rounds:
            taken, holders = _filled(open_ones, used, free, rounds * len(open_ones) * amount), 0
            holders, pods = rounds * min(amount, len(open_ones)), pods - rounds * len(open_ones)
        else:
            taken, holders, pods = _filled(open_ones, used, free, amount), 1, pods - 1
        for number, slots in taken.items():
            before = found.get(number, (0, 0))
            found[number] = (before[0] + holders, before[1] + slots)
    return found


def _filled(devices: Sequence[int], used: list[int], free: list[int], slots: int) -> dict[int, int]:
    """Assign slots one by one, each from the device with the fewest used slots.

    If several devices have the fewest used slots, the first of them provides the slot. Return a dict from the index of
    a device to the number of slots that it provides.

    Args:
        devices: Indices of the devices.
        used: Number of used slots of each device, which the function updates.
        free: Number of free slots of each device, which the function updates.
        slots: Number of slots to assign.
    """

    def until(level: int) -> list[int]:
        """Return the number of slots to add on each device, so that it has ``level`` used slots or no free slot."""
        return [max(0, min(free[number], level - used[number])) for number in devices]

    levels = range(max(used[number] + free[number] for number in devices) + 1)
    level = bisect_right(levels, slots, key=lambda level: sum(until(level))) - 1
    taken = dict(zip(devices, until(level), strict=True))
    rest = slots - sum(taken.values())
    for number in [one for one in devices if used[one] + taken[one] == level and free[one] > taken[one]][:rest]:
        taken[number] += 1
    for number, some in taken.items():
        used[number] += some
        free[number] -= some
    return {number: some for number, some in taken.items() if some}
