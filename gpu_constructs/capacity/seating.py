"""Who sits where: from the pods of each node to its devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.matching import Matching
from gpu_constructs.capacity.node_offer import NodeOffer
from gpu_constructs.capacity.placed_pods import PlacedPods
from gpu_constructs.capacity.plan import Seat


@dataclass(frozen=True)
class SeatedNode:
    """Nodes of one pool with the same pods on them.

    Attributes:
        offer: Index of the pool.
        first: Number of the first of these nodes in the pool, from 0.
        count: How many there are.
        kind: Of the nodes, for the matching.
        seats: Who holds each of the pool's devices.
    """

    offer: int
    first: int
    count: int
    kind: int
    seats: Sequence[Sequence[Seat]]


def seated(matching: Matching, placed: PlacedPods) -> list[SeatedNode]:
    """Give every node with its pods, in the order of the inventory.

    Kubernetes knows slots and no devices: which of a node's GPUs a pod gets, the device plugin decides. Here it is
    the one with the fewest holders, as that of NVIDIA prefers unless it is told otherwise.
    """
    contents: list[list[tuple[Mapping[int, int], int]]] = [[] for _ in matching.kinds]
    for nodes in placed.nodes:
        contents[nodes.kind].append((nodes.pods, nodes.number))
    found: list[SeatedNode] = []
    for number, kind in enumerate(matching.kinds):
        common = dict.fromkeys(matching.daemons[number], 1)
        rest = contents[number][::-1]
        for offer in kind:
            first, left = 0, matching.offers[offer].count
            while left:
                pods, count = rest.pop()
                taken = min(count, left)
                if count > taken:
                    rest.append((pods, count - taken))
                seats = seats_of(matching.offers[offer], matching.consumers, {**common, **pods})
                found.append(SeatedNode(offer, first, taken, number, seats))
                first, left = first + taken, left - taken
    return sorted(found, key=lambda node: (node.offer, node.first))


def seats_of(offer: NodeOffer, consumers: Sequence[Consumer], pods: Mapping[int, int]) -> list[list[Seat]]:
    """Give who holds each device of a node that has these pods."""
    free = [device.slots for device in offer.devices]
    used = [0] * len(free)
    by_resource: dict[str, list[int]] = {}
    for number, device in enumerate(offer.devices):
        by_resource.setdefault(device.resource, []).append(number)
    found: list[list[Seat]] = [[] for _ in free]
    for index in sorted(pods):
        for resource, amount in sorted(consumers[index].asks.items()):
            for number, (holders, slots) in _dealt(by_resource[resource], used, free, pods[index], amount).items():
                found[number].append(Seat(index, holders, slots))
    return found


def _dealt(
    devices: Sequence[int], used: list[int], free: list[int], pods: int, amount: int
) -> dict[int, tuple[int, int]]:
    """Deal slots to pods that ask for as many each; give holders and slots of each device, and take these off it."""
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
    taken: dict[int, int] = {}
    while slots:
        least = min(used[number] for number in devices if free[number])
        lowest = [number for number in devices if free[number] and used[number] == least]
        above = min((used[number] for number in devices if free[number] and used[number] > least), default=None)
        each = min([slots // len(lowest), *(free[number] for number in lowest)])
        if above is not None:
            each = min(each, above - least)
        for number in lowest if each else lowest[:slots]:
            some = each or 1
            taken[number] = taken.get(number, 0) + some
            used[number] += some
            free[number] -= some
            slots -= some
    return taken
