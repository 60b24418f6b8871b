"""Capacity plans made by hand, for the tests of what reports say of them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.plan import Plan
from gpu_constructs.capacity.planned import (
    Conflict,
    Device,
    NodeOffer,
    PlannedConsumer,
    PlannedDevice,
    PlannedNode,
    Power,
    Problem,
    Seat,
    Stock,
)
from tables import beside

GPU = "nvidia.com/gpu"
GIB = 1024


def _consumer(name: str, typical: int | None = None, most: int | None = None, **given: Any) -> Consumer:
    usual = {"subject": 0, "kind": "Deployment", "namespace": "ai", "asks": {GPU: 1}, "least_copies": 1}
    return Consumer(**{**usual, "pod_spec": {}, "name": name, "typical_vram_mib": typical, "vram_mib": most, **given})


def _all(consumers: Iterable[Consumer], nodes: Iterable[str], waiting: Mapping[int, int] | None = None) -> Any:
    wait = waiting or {}
    return tuple(
        PlannedConsumer(
            consumer=consumer,
            placed=consumer.pods - wait.get(index, 0),
            waiting=wait.get(index, 0),
            nodes=tuple(nodes),
            refusals={},
        )
        for index, consumer in enumerate(consumers)
    )


def _plan(**given: Any) -> Plan:
    values: dict[str, Any] = {
        "nodes": (),
        "consumers": (),
        "stock": {},
        "always_fits": "yes",
        "all_fits": "yes",
        "vram": "safe",
        "conflicts": (),
        "has_more_conflicts": False,
        "power": Power(watts=0, unknown=0, racks={}, rack_watts={}),
        "problems": (),
        "advice": (),
        "notes": (),
    }
    return Plan(**{**values, **given})


def empty() -> Plan:
    return _plan()


EXAMPLES: Mapping[str, Plan] = beside(Path(__file__).parent / "capacity/examples", "examples")


def one_gpu() -> Plan:
    """One 16 GB board, five slots, five workloads of which two do not go together."""
    return EXAMPLES["one-gpu"]


def waiting() -> Plan:
    """Two RTX 3090 with four slots each, and a ninth pod that waits."""
    return EXAMPLES["waiting"]


def mig() -> Plan:
    """Four A100, divided, with MPS boards beside them and a board that no one knows."""
    return EXAMPLES["mig"]


def refused() -> Plan:
    """Nothing takes the pod, for a reason that each node has."""
    return EXAMPLES["refused"]


@cache
def fleet() -> Plan:
    """Eight hundred nodes, of which 600 are alike, and 1,000 consumers."""
    consumers = [
        _consumer(
            f"team-{number % 40:02}-service-{number:04}",
            (number % 7 + 1) * GIB,
            (number % 7 + 1 + number % 5) * GIB,
            subject=number,
            namespace=f"team-{number % 40:02}",
            kind=("Deployment", "StatefulSet", "Job", "PyTorchJob")[number % 4],
        )
        for number in range(1_000)
    ]
    boards = (("NVIDIA L4", 23034, 72), ("NVIDIA A100-SXM4-80GB", 81920, 400), ("NVIDIA H100 80GB HBM3", 81559, 700))
    alike = NodeOffer(
        name="render",
        count=600,
        devices=[Device(GPU, 4, 24576, gpu) for gpu in range(8)],
        gpu_model="NVIDIA GeForce RTX 3090",
        sharing="time-slicing x 4",
        gpu_watts=[350] * 8,
    )
    same = [PlannedDevice(device, [Seat(0, 2, 2)], 2 * GIB, 4 * GIB, 8 * GIB) for device in alike.devices]
    nodes = [PlannedNode(alike, 0, 600, same)]
    for number in range(200):
        name, vram, watts = boards[number % 3]
        offer = NodeOffer(
            name=f"gpu-{number:03}",
            count=1,
            devices=[Device(GPU, 4, vram, gpu) for gpu in range(4)],
            gpu_model=name,
            sharing="time-slicing x 4",
            gpu_watts=[watts] * 4,
            rack=f"rack-{number // 20:02}",
        )
        devices = []
        for device in offer.devices:
            who = [(number * 16 + device.gpu * 4 + slot) % 1_000 for slot in range(number % 5)]
            sums = [sum(field(consumers[one]) for one in who) for field in (_typical, _most)]
            devices.append(PlannedDevice(device, [Seat(one, 1, 1) for one in who], *sums, max(sums[1], 45 * GIB)))
        nodes.append(PlannedNode(offer, 0, 1, devices))
    racks: dict[str, int] = {}
    for node in nodes[1:]:
        racks[node.offer.rack] = racks.get(node.offer.rack, 0) + (node.watts or 0)
    return _plan(
        nodes=nodes,
        consumers=_all(consumers, [node.offer.name for node in nodes], {321: 1, 990: 1}),
        stock={GPU: Stock(total=22_400, always=800, wanted=1_002, placed=1_000)},
        all_fits="no",
        vram="depends",
        has_more_conflicts=True,
        conflicts=[Conflict("NVIDIA L4", 23034, {10: 1, 21: 1}, 24 * GIB)],
        power=Power(watts=sum((node.watts or 0) * node.count for node in nodes), unknown=0, racks=racks, rack_watts={}),
        problems=[Problem("waiting", 321, "1 of 1 pods of it waits", "add a node")],
    )


def _typical(consumer: Consumer) -> int:
    return consumer.typical_vram_mib or 0


def _most(consumer: Consumer) -> int:
    return consumer.vram_mib or 0


EVIL = "<script>alert(1)</script>&\"'`]]>--><!--"
LONG = "a-name-that-goes-on-" * 12


def hostile() -> Plan:
    """Names that would be markup, or longer than any column, or turn the line round."""
    plan = one_gpu()
    offer = replace(
        plan.nodes[0].offer,
        name=EVIL,
        gpu_model=LONG + EVIL,
        sharing=EVIL + "\n\u202e\x00\ud800\uffff",
        rack=EVIL,
        notes=(EVIL, LONG),
        labels={EVIL: LONG},
        taints=[{"key": EVIL, "effect": "NoSchedule"}],
    )
    device = Device(EVIL, 30, 16303, 0, "<b>" + LONG)
    consumers = [
        _consumer(f"{EVIL}{number}" if number % 2 else f"{LONG}{number}", GIB, 2 * GIB, subject=number, asks={EVIL: 1})
        for number in range(25)
    ]
    seats = [Seat(number, 1, 1) for number in range(25)]
    planned = PlannedDevice(device, seats, 25 * GIB, 50 * GIB, 60 * GIB, has_unknown=True)
    return replace(
        plan,
        nodes=[PlannedNode(offer, 0, 1, [planned])],
        consumers=[
            PlannedConsumer(consumer=one, placed=0, waiting=1, nodes=[EVIL, LONG], refusals={LONG: EVIL})
            for one in consumers
        ],
        stock={EVIL: Stock(total=30, always=25, wanted=25, placed=25), LONG: Stock(0, 0, 1, 0)},
        conflicts=[Conflict(EVIL, 16303, {0: 9, 1: 1}, 20 * GIB)],
        power=Power(watts=300, unknown=2, racks={EVIL: 300, LONG: 1}, rack_watts={EVIL: 200}),
        problems=[Problem("placement", 1, EVIL + LONG, EVIL), Problem("vram", 99, LONG, LONG)],
        advice=[EVIL, LONG],
        notes=[EVIL + "\nsecond line", LONG],
    )


PLANS: Mapping[str, Callable[[], Plan]] = {
    "empty": empty,
    "one-gpu": one_gpu,
    "waiting": waiting,
    "mig": mig,
    "refused": refused,
    "fleet": fleet,
    "hostile": hostile,
}
