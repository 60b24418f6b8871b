"""Which pods are on which nodes: what a packing says, changed pod by pod."""

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
    """Pods on nodes.

    Attributes:
        nodes: All nodes of the cluster.
    """

    def __init__(self, matching: Matching, nodes: Sequence[Group]) -> None:
        self._matching = matching
        self.nodes = list(nodes)

    @classmethod
    def of(cls, matching: Matching, packed: Packed) -> PlacedPods:
        """Read them off a packing."""
        return cls(matching, [*_nodes(matching, packed)])

    def counts(self) -> dict[int, int]:
        """Return how many pods of each consumer there are."""
        return summed((index, each * nodes.number) for nodes in self.nodes for index, each in nodes.content.items())

    def key_of(self, pods: Mapping[int, int]) -> object:
        """Return what decides whether there is room for pods: the same for those that are alike."""
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
        """Return another one that can be changed."""
        return PlacedPods(self._matching, self.nodes)

    def add_all(self, pods: Mapping[int, int]) -> bool:
        """Put pods on nodes if all have room; return whether they have."""
        before = list(self.nodes)
        if any(self.add(index, count) for index, count in pods.items()):
            self.nodes = before
            return False
        return True

    def add(self, index: int, count: int) -> int:
        """Put pods of a consumer on the first nodes that have room; return how many found none."""
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
        """Take pods of a consumer off the last nodes that have some."""
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
    """Return who has a place when all that may run runs: what always runs first, gangs with what they start with.

    Args:
        matching: The consumers and the nodes that take them.
        always: Places of what always runs.
        everything: Places of everything.
        most: Pods by consumer that may run at once and that quotas admit.
        urgent: Places by priority, if priorities differ.
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
                # What work that ends can do without may be enough for others to start.
                each = consumers[i].pods_each if consumers[i].least_copies else consumers[i].starting
                placed.remove(i, max(0, counts.get(i, 0) - copies * each))
    _admit(matching, placed, most)
    return placed


def _copies(matching: Matching, unit: Sequence[int], counts: Mapping[int, int]) -> int:
    """Return how many copies of a gang run with so many pods."""
    consumers = matching.consumers
    starts = [(i, consumers[i].starting) for i in unit]
    return min([consumers[unit[0]].copies, *(counts.get(i, 0) // pods for i, pods in starts if pods)])


def _admit(matching: Matching, placed: PlacedPods, most: Mapping[int, int]) -> None:
    """Put on nodes what still has room there, in order: what always runs first, what a gang can do without last."""
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
    """Put as many copies of a gang on nodes as have room; return how many have none."""
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
    """Return nodes of one load with the consumers that the items stand for; as many alike as there are."""
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


# Who sits where: from the pods of each node to its devices


def seated(matching: Matching, memory: DeviceMemory, placed: PlacedPods) -> list[PlannedNode]:
    """Return every node with its pods, in the order of the inventory.

    Kubernetes knows slots and no devices: which of a node's GPUs a pod gets, the device plugin decides. Here it is
    the one with the fewest holders, as that of NVIDIA prefers unless it is told otherwise.
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
    """Return who holds each device of a node that has these pods."""
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
    """Deal slots to pods that ask for as many each; return holders and slots of each device, and take these off it."""
    if amount == 1:
        return {number: (slots, slots) for number, slots in _filled(devices, used, free, pods).items()}
    found: dict[int, tuple[int, int]] = {}
    while pods:
        open_ones = [number for number in devices if free[number]]
        # They take turns: as many pods as there are devices leave each with as many more.
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
    """Take slots one by one, each of the device with the fewest holders; the first of several such."""

    def until(level: int) -> list[int]:
        """Return how many slots each device gives until it has so many holders."""
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
