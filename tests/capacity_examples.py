"""Capacity plans made by hand, for the tests of what reports say of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
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


def one_gpu() -> Plan:
    """One 16 GB board, five slots, five workloads of which two do not go together."""
    board = "NVIDIA GeForce RTX 5070 Ti"
    consumers = [
        _consumer("ollama", 5324, 8 * GIB, subject=0),
        _consumer("comfyui", 7 * GIB, 12 * GIB, subject=1),
        _consumer("notebook", GIB, 4 * GIB, subject=2, kind="Notebook", notes=("takes 4 GiB, as nobody says",)),
        _consumer("train", 4 * GIB, 4 * GIB, subject=3, kind="PyTorchJob", part="Worker", least_copies=0),
        _consumer("katib", 2 * GIB, 2 * GIB, subject=4, kind="Experiment", least_copies=0),
    ]
    offer = NodeOffer(
        name="k8s-worker4",
        count=1,
        devices=[Device(GPU, 5, 16303, 0)],
        gpu_model=board,
        sharing="time-slicing x 5",
        gpu_watts=[300],
        notes=("has the 16303 MiB that its board is known to have",),
    )
    seats = [Seat(index, 1, 1) for index in range(5)]
    device = PlannedDevice(offer.devices[0], seats, 5324 + 14 * GIB, 30 * GIB, 30 * GIB)
    sets = [{0: 1, 1: 1}, {1: 1, 2: 1}, {1: 1, 3: 1}]
    return _plan(
        nodes=[PlannedNode(offer, 0, 1, [device])],
        consumers=_all(consumers, ["k8s-worker4"]),
        stock={GPU: Stock(total=5, always=3, wanted=5, placed=5)},
        vram="overcommitted",
        conflicts=[
            *(Conflict(board, 16303, one, sum((consumers[i].vram_mib or 0) for i in one)) for one in sets),
            Conflict(board, 16303, {0: 1, 2: 1, 3: 1}, 16 * GIB),
        ],
        power=Power(watts=300, unknown=0, racks={}, rack_watts={}),
        problems=[
            Problem(
                "vram",
                None,
                "the pods that always run want 24.0 GiB of the 15.9 GiB of k8s-worker4 GPU 0",
                "share it by slices of memory, lower a budget, or add a board",
            )
        ],
        advice=[
            "Sharing.vram_units(vram='16303Mi') makes the scheduler keep the sum of budgets within the board",
            "OLLAMA_KEEP_ALIVE=1m gives memory back sooner",
        ],
        notes=["a pod takes its budget at most, as its annotation says"],
    )


def waiting() -> Plan:
    """Two RTX 3090 with four slots each, and a ninth pod that waits."""
    board = "NVIDIA GeForce RTX 3090"
    consumers = [_consumer("inference", 4 * GIB, 6 * GIB, copies=9, least_copies=8)]
    offer = NodeOffer(
        name="workstation",
        count=1,
        devices=[Device(GPU, 4, 24576, gpu) for gpu in (0, 1)],
        gpu_model=board,
        sharing="time-slicing x 4",
        gpu_watts=[350, 350],
        rack="garage",
    )
    devices = [PlannedDevice(device, [Seat(0, 4, 4)], 16 * GIB, 24 * GIB, 24 * GIB) for device in offer.devices]
    return _plan(
        nodes=[PlannedNode(offer, 0, 1, devices)],
        consumers=_all(consumers, ["workstation"], {0: 1}),
        stock={GPU: Stock(total=8, always=8, wanted=9, placed=8)},
        all_fits="no",
        power=Power(watts=700, unknown=0, racks={"garage": 700}, rack_watts={"garage": 600}),
        problems=[
            Problem(
                "waiting",
                0,
                "1 of the 9 pods of ai/inference waits: workstation has 8 nvidia.com/gpu and 8 are held",
                "replicas of 5 give workstation 10 slots, or let it have 8 pods at most",
            ),
            Problem(
                "rollout",
                0,
                "an update makes 1 pod before it takes one away, and no slot is left for it",
                "give the Deployment maxSurge: 0",
            ),
            Problem(
                "power", None, "rack garage: its boards draw 700 W and it may draw 600 W", "cap them at 300 W each"
            ),
        ],
    )


def mig() -> Plan:
    """Four A100, divided, with MPS boards beside them and a board that nobody knows."""
    consumers = [
        _consumer("small", 3 * GIB, 4 * GIB, asks={"nvidia.com/mig-1g.10gb": 1}, copies=10, least_copies=10),
        _consumer("middle", 12 * GIB, 18 * GIB, subject=1, asks={"nvidia.com/mig-2g.20gb": 1}, copies=3),
        _consumer("service", 2 * GIB, 3 * GIB, subject=2, asks={GPU: 1}, copies=3, least_copies=3),
        _consumer("who-knows", subject=3, kind="Job", least_copies=0),
    ]
    layout = ("2g.20gb", "2g.20gb", "1g.10gb", "1g.10gb", "1g.10gb")
    size = {"1g.10gb": 9728, "2g.20gb": 19968}
    divided = NodeOffer(
        name="dgx",
        count=2,
        devices=[Device(f"nvidia.com/mig-{one}", 1, size[one], gpu, one) for gpu in (0, 1) for one in layout],
        gpu_model="NVIDIA A100-SXM4-80GB",
        sharing="",
        gpu_watts=[400, 400],
        rack="a",
    )
    served = NodeOffer(
        name="inference",
        count=1,
        devices=[Device(GPU, 4, 23034, 0, vram_each_mib=5758)],
        gpu_model="NVIDIA L4",
        sharing="MPS x 4",
        gpu_watts=[72],
        rack="b",
    )
    odd = NodeOffer(name="odd", count=1, devices=[Device(GPU, 1, None, 0)], gpu_watts=[None])
    one = {"1g.10gb": Seat(0, 1, 1), "2g.20gb": Seat(1, 1, 1)}

    def held(device: Device, seats: list[Seat]) -> PlannedDevice:
        each = 4 * GIB if device.profile == "1g.10gb" else 18 * GIB
        return PlannedDevice(device, seats, (each * 3 // 4) * len(seats), each * len(seats), each)

    full = [held(device, [one[device.profile]]) for device in divided.devices]
    rest = [
        held(device, [one[device.profile]] if device.gpu == 0 and device.profile == "1g.10gb" else [])
        for device in divided.devices
    ]
    mps = PlannedDevice(served.devices[0], [Seat(2, 3, 3)], 6 * GIB, 9 * GIB, 12 * GIB, has_unknown=True)
    blind = PlannedDevice(odd.devices[0], [Seat(3, 1, 1)], has_unknown=True)
    return _plan(
        nodes=[
            PlannedNode(divided, 0, 1, full),
            PlannedNode(divided, 1, 1, rest),
            PlannedNode(served, 0, 1, [mps]),
            PlannedNode(odd, 0, 1, [blind]),
        ],
        consumers=_all(consumers, ["dgx", "inference"]),
        stock={
            "nvidia.com/mig-1g.10gb": Stock(total=12, always=10, wanted=10, placed=9),
            "nvidia.com/mig-2g.20gb": Stock(total=8, always=3, wanted=3, placed=3),
            GPU: Stock(total=5, always=3, wanted=4, placed=4),
        },
        vram="unknown",
        power=Power(watts=1672, unknown=1, racks={"a": 1600, "b": 72}, rack_watts={"a": 5000}),
        notes=["odd: nobody says how much memory its board has"],
    )


def refused() -> Plan:
    """Nothing takes the pod, for a reason that each node has."""
    consumer = _consumer("chat", 60 * GIB, 70 * GIB, asks={GPU: 2}, copies=1)
    offer = NodeOffer(
        name="k8s-worker4",
        count=1,
        devices=[Device(GPU, 1, 16303, 0)],
        gpu_model="NVIDIA GeForce RTX 5070 Ti",
        gpu_watts=[None],
        taints=[{"key": "nvidia.com/gpu", "effect": "NoSchedule"}],
        labels={"nvidia.com/gpu.present": "true"},
    )
    why = {"k8s-worker4": "it has 1 nvidia.com/gpu and a pod asks for 2", "old": "the pod does not tolerate its taint"}
    return _plan(
        nodes=[PlannedNode(offer, 0, 1, [PlannedDevice(offer.devices[0])])],
        consumers=[PlannedConsumer(consumer=consumer, placed=0, waiting=1, nodes=(), refusals=why)],
        stock={GPU: Stock(total=1, always=2, wanted=2, placed=0)},
        always_fits="no",
        all_fits="no",
        vram="undecided",
        power=Power(watts=0, unknown=1, racks={}, rack_watts={}),
        problems=[
            Problem(
                "placement",
                0,
                f"no node takes a pod of ai/chat: {'; '.join(f'{node}: {reason}' for node, reason in why.items())}",
                "ask for 1 nvidia.com/gpu, or declare a node with 2 boards",
            )
        ],
    )


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
