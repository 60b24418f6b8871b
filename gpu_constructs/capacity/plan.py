"""What a capacity plan says, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.node_offer import Device, NodeOffer

Answer = Literal["yes", "no", "undecided", "conditional"]
"""Whether something fits; ``undecided`` where the search gave up, ``conditional`` where it fits if conditions hold."""

VramVerdict = Literal["safe", "depends", "overcommitted", "unknown", "undecided"]
"""Whether memory can run out: never; by the bad luck of who meets whom; on every placement; nobody says what is taken;
the search gave up."""


@dataclass(frozen=True)
class Problem:
    """One thing that does not fit.

    Attributes:
        kind: ``placement`` (a pod has no node), ``slots`` (too few of a resource), ``rollout`` (an update would wait
            for ever), ``waiting`` (not all can run at once), ``vram`` (memory may run out), ``power`` (more than a
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
        typical_mib: Memory that those take most of the time; of some nobody may have said.
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
        watts: What its boards draw together at their power limits; None where one is not known.
    """

    offer: NodeOffer
    first: int
    count: int
    devices: Sequence[PlannedDevice]
    watts: int | None

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
        always: How many are held as long as nobody stops anything.
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
        watts: Of all boards; those that are not known are left out.
        unknown: How many boards those are.
        racks: Watts of each rack.
        rack_watts: What each rack may draw, where it is declared.
    """

    watts: int
    unknown: int
    racks: Mapping[str, int]
    rack_watts: Mapping[str, int]


@dataclass(frozen=True)
class Plan:
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

    def to_text(self, title: str) -> str:
        """Give it to read in a terminal, at most 100 columns wide."""
        from gpu_constructs.capacity.report.as_text import text

        return text(self, title)

    def to_json(self, title: str) -> str:
        """Give it to other programs."""
        from gpu_constructs.capacity.report.as_json import json_text

        return json_text(self, title)

    def to_svg(self, title: str) -> str:
        """Give its picture: nodes and GPUs as bars of slots and memory."""
        from gpu_constructs.capacity.report.as_svg import svg

        return svg(self, title)

    def to_html(self, title: str) -> str:
        """Give it as one page that needs no network."""
        from gpu_constructs.capacity.report.as_html import html

        return html(self, title)
