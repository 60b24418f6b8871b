"""What nodes offer to pods, and what a capacity plan says of both, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.gathered import summed

Answer = Literal["yes", "no", "undecided", "conditional"]
"""Whether something fits; ``undecided`` where the search gave up, ``conditional`` where it fits if conditions hold."""

VramVerdict = Literal["safe", "depends", "overcommitted", "unknown", "undecided"]
"""Whether memory can run out: never; by the bad luck of who meets whom; on every placement; nobody says what is taken;
the search gave up."""


@dataclass(frozen=True)
class Device:
    """What the scheduler hands out: a GPU, or a part of one that the hardware divides off.

    Attributes:
        resource: Name under which it is advertised, as ``nvidia.com/gpu``; a device class of DRA by its name.
        slots: Number of containers that may hold it at a time.
        vram_mib: Memory that its holders have together; None if it is not known.
        gpu: Index of the board in the node.
        profile: The MIG profile; empty for a whole board.
        vram_each_mib: The most that one holder may take, if something enforces it, as MPS does.
        most_each: The most slots that a container may ask for, if the plugin refuses more.
    """

    resource: str
    slots: int
    vram_mib: int | None
    gpu: int
    profile: str = ""
    vram_each_mib: int | None = None
    most_each: int | None = None

    @property
    def title(self) -> str:
        """Name of it beside its node."""
        return f"GPU {self.gpu}" + (f" {self.profile}" if self.profile else "")


@dataclass(frozen=True)
class NodeOffer:
    """A node, or a pool of nodes that are alike.

    Attributes:
        name: Name of the node or the pool.
        count: Nodes in the pool.
        devices: Devices of each node.
        labels: Labels that are declared, and those that GPU Feature Discovery and the kubelet will write.
        taints: Taints, as Kubernetes writes them.
        gpu_model: Name of the board, as ``nvidia-smi`` prints it; empty if it is not known.
        sharing: Sharing of its GPUs, in words, as ``time-slicing x 5``; empty if they are not shared.
        vram_unit_mib: Memory that a slot stands for, where slots count memory.
        gpu_watts: Power limits of its boards; None where one is not known.
        rack: Name of its rack; empty if it is not declared.
        notes: Assumptions about it, each a sentence without a full stop.
        absent: Labels that it is known not to have, though others of their domain may appear later.
    """

    name: str
    count: int
    devices: Sequence[Device]
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Mapping[str, str]] = ()
    gpu_model: str = ""
    sharing: str = ""
    vram_unit_mib: int | None = None
    gpu_watts: Sequence[int | None] = ()
    rack: str = ""
    notes: tuple[str, ...] = ()
    absent: frozenset[str] = frozenset()

    @cached_property
    def allocatable(self) -> Mapping[str, int]:
        """How many of each resource a node has."""
        return summed((device.resource, device.slots) for device in self.devices)


@dataclass(frozen=True)
class Problem:
    """One thing that does not fit.

    Attributes:
        kind: ``placement`` (a pod has no node), ``slots`` (too few of a resource), ``rollout`` (an update would wait
            without end), ``waiting`` (not all can run at once), ``vram`` (memory may run out), ``power`` (more than a
            rack may draw), ``unchecked`` (a condition that the plan cannot look at: it fits, if that holds).
        subject: Index of the object it is about; None where it is about no single one.
        what: What is wrong.
        way_out: What to do.
        details: Why, node by node.
    """

    kind: Literal["placement", "slots", "rollout", "waiting", "vram", "power", "unchecked"]
    subject: int | None
    what: str
    way_out: str
    details: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """What is wrong and why, in one sentence."""
        return f"{self.what}: {'; '.join(self.details)}" if self.details else self.what


@dataclass(frozen=True)
class Seat:
    """Slots of one device that the pods of one consumer hold.

    Attributes:
        consumer: Index of the consumer in the plan.
        pods: How many of its pods hold it.
        slots: How many slots they hold together.
    """

    consumer: int
    pods: int
    slots: int


@dataclass(frozen=True)
class PlannedDevice:
    """A device with who sits on it.

    Attributes:
        device: The device.
        seats: Who holds it, in one placement that is possible.
        typical_mib: Memory that those take most of the time; some may not be known.
        seated_mib: Memory that those take at most, together.
        worst_mib: Memory that the greediest pods which may meet here take together.
        has_unknown: Whether one of those that may meet here does not say what it takes.
    """

    device: Device
    seats: Sequence[Seat] = ()
    typical_mib: int = 0
    seated_mib: int = 0
    worst_mib: int = 0
    has_unknown: bool = False

    @property
    def used_slots(self) -> int:
        """Slots that are held."""
        return sum(seat.slots for seat in self.seats)


@dataclass(frozen=True)
class PlannedNode:
    """Nodes of one pool with the same pods on them.

    Attributes:
        offer: The node or the pool.
        first: Number of the first of these nodes in the pool, from 0.
        count: How many there are.
        devices: The devices of each of them.
    """

    offer: NodeOffer
    first: int
    count: int
    devices: Sequence[PlannedDevice]

    @property
    def watts(self) -> int | None:
        """What the boards of each draw together at their power limits; None where one is not known."""
        watts = self.offer.gpu_watts
        return None if None in watts else sum(each or 0 for each in watts)

    @property
    def title(self) -> str:
        """What they are called: the pool's name with their numbers, where it has several."""
        if self.offer.count == 1:
            return self.offer.name
        last = self.first + self.count - 1
        return f"{self.offer.name} {self.first + 1}" + (f" to {last + 1}" if self.count > 1 else "")


@dataclass(frozen=True)
class PlannedConsumer:
    """A consumer with what becomes of it.

    Attributes:
        consumer: The consumer.
        placed: Pods that have a place when all runs at once.
        waiting: Pods that wait then.
        nodes: Names of the nodes and pools that would take its pods.
        refusals: Why each other one would not, by its name.
    """

    consumer: Consumer
    placed: int
    waiting: int
    nodes: Sequence[str]
    refusals: Mapping[str, str]


@dataclass(frozen=True)
class Conflict:
    """Consumers that together want more memory than a device has, and none fewer of them does.

    Attributes:
        device: What the device is called, as ``NVIDIA GeForce RTX 5070 Ti``.
        vram_mib: Memory of the device.
        pods: Pods of each consumer, by its index.
        together_mib: What they want.
    """

    device: str
    vram_mib: int
    pods: Mapping[int, int]
    together_mib: int


@dataclass(frozen=True)
class Stock:
    """One resource in the whole cluster.

    Attributes:
        total: How many there are.
        always: How many are held by what runs until it is stopped.
        wanted: How many are wanted when all that may run runs.
        placed: How many of those have a place.
    """

    total: int
    always: int
    wanted: int
    placed: int

    @property
    def left(self) -> int:
        """How many nobody holds when all that fits runs."""
        return self.total - self.placed


@dataclass(frozen=True)
class Power:
    """What boards draw at their power limits.

    Attributes:
        watts: Power of all boards; those that are not known are left out.
        unknown: How many boards those are.
        racks: Watts of each rack.
        rack_watts: What each rack may draw, where it is declared.
    """

    watts: int
    unknown: int
    racks: Mapping[str, int]
    rack_watts: Mapping[str, int]


@dataclass(frozen=True)
class PlanData:
    """Where everything goes, and what does not fit.

    Attributes:
        nodes: Every node, those alike in one.
        consumers: Everyone who asks for GPUs.
        stock: Every resource that is offered or asked for.
        always_fits: Whether what runs until somebody stops it has a place.
        all_fits: Whether everything has a place at once.
        vram: Whether memory can run out.
        conflicts: The smallest sets of pods that do not go together, the most important first.
        has_more_conflicts: Whether there are others beyond these.
        power: What the boards draw.
        problems: What does not fit.
        advice: What could be better, each a sentence without a full stop.
        notes: What was assumed, each a sentence without a full stop.
        conditions: What the verdict rests on and the plan cannot look at: it fits, if that holds.
    """

    nodes: Sequence[PlannedNode]
    consumers: Sequence[PlannedConsumer]
    stock: Mapping[str, Stock]
    always_fits: Answer
    all_fits: Answer
    vram: VramVerdict
    conflicts: Sequence[Conflict]
    has_more_conflicts: bool
    power: Power
    problems: Sequence[Problem]
    advice: Sequence[str]
    notes: Sequence[str]
    conditions: Sequence[Problem] = ()
