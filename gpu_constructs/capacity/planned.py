"""The data classes of a capacity plan: the devices of nodes, the pods on them, and the problems.

A *consumer* is a workload as the plan sees it: equal pods of one object that request GPUs. A *slot* is one unit of an
extended resource that a node advertises. Long-running pods run until someone deletes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Literal

from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.gathered import summed
from gpu_constructs.records import dataclass, field

Answer = Literal["yes", "no", "undecided", "conditional"]
"""Answer to the question whether pods fit.

``undecided`` means that the search gave up. ``conditional`` means that they fit under conditions that the plan lists.
"""

VramVerdict = Literal["safe", "depends", "overcommitted", "unknown", "undecided"]
"""Answer to the question whether GPU memory can run out.

- ``safe``: It cannot run out.
- ``depends``: It can run out in some placements of the pods.
- ``overcommitted``: It can run out in every placement of the pods.
- ``unknown``: The plan does not know the memory of a pod or a board.
- ``undecided``: The search for a placement with enough memory gave up.
"""


@dataclass(frozen=True)
class Device:
    """A unit of hardware that the kubelet allocates: a GPU or a MIG device.

    Attributes:
        resource: Name of the extended resource, such as ``nvidia.com/gpu``, or of the DRA device class.
        slots: Number of slots of the device: the number of containers that can use it at the same time.
        vram_mib: Memory of the device in MiB, which all its pods share; None if it is not known.
        gpu: Index of the board in the node.
        profile: MIG profile; empty for a whole board.
        vram_each_mib: Memory limit in MiB of each pod on the device, if MPS enforces one; otherwise None.
        most_each: Largest number of slots that a container can request, if the device plugin sets a limit; otherwise
            None.
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
        """Name of the device in a sentence about its node."""
        return f"GPU {self.gpu}" + (f" {self.profile}" if self.profile else "")


@dataclass(frozen=True)
class NodeOffer:
    """A node, or a pool of equal nodes, with the devices that it advertises.

    Attributes:
        name: Name of the node or the pool.
        count: Number of nodes in the pool; 1 for a node.
        devices: Devices of each node.
        labels: Labels that the user declares, and labels that GPU Feature Discovery and the kubelet will set.
        taints: Taints as in the manifest of a Node.
        gpu_model: Name of the board, as ``nvidia-smi`` prints it; empty if it is not known.
        sharing: Text that describes how pods share the GPUs, such as ``time-slicing x 5``; empty for exclusive GPUs.
        vram_unit_mib: Memory in MiB that one slot stands for, if slots count memory; otherwise None.
        gpu_watts: Power limit of each board in watts; None for a board with an unknown limit.
        rack: Name of the rack; empty if the inventory names none.
        notes: Assumptions about the node, each a sentence without a period.
        absent: Labels that no program publishes on the node. If the user does not declare such a label, the node lacks
            it. For other labels of the same domain, the plan assumes that a program may set them.
        published: Labels that programs publish on some nodes, so that the plan does not know whether the node has them.
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
    published: frozenset[str] = frozenset()

    @cached_property
    def allocatable(self) -> Mapping[str, int]:
        """Number of slots of each resource on each node."""
        return summed((device.resource, device.slots) for device in self.devices)


@dataclass(frozen=True)
class Problem:
    """A problem of the plan: pods that do not fit, or a condition under which they fit.

    Attributes:
        kind: Kind of the problem. ``placement``: no node accepts a pod. ``slots``: a resource has too few slots.
            ``rollout``: an update would wait forever. ``waiting``: not all pods can run at the same time. ``vram``:
            memory may run out. ``power``: the boards of a rack exceed its power limit. ``unchecked``: the pods fit only
            under a condition that the plan cannot check.
        subject: Index of the object that has the problem; None if no single object has it.
        what: Text of the problem.
        way_out: Instruction that states how the user can solve the problem.
        details: Reasons, for example one for each node.
    """

    kind: Literal["placement", "slots", "rollout", "waiting", "vram", "power", "unchecked"]
    subject: int | None
    what: str
    way_out: str
    details: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Text of the problem and its reasons, as one sentence."""
        return f"{self.what}: {'; '.join(self.details)}" if self.details else self.what


@dataclass(frozen=True)
class Seat:
    """The slots of one device that the pods of one workload hold.

    Attributes:
        consumer: Index of the workload in ``Plan.consumers``.
        pods: Number of pods that hold slots of the device.
        slots: Number of slots that these pods hold together.
    """

    consumer: int
    pods: int
    slots: int


@dataclass(frozen=True)
class PlannedDevice:
    """A device with the pods that use it.

    Attributes:
        device: Device of a node.
        seats: Slots that pods hold in one possible placement, with one entry for each workload.
        typical_mib: Memory in MiB that these pods usually take together. Pods that state no memory count as 0.
        seated_mib: Largest memory in MiB that these pods take together. Pods that state no memory count as 0.
        worst_mib: Largest memory in MiB that pods can take together on the device, in any placement.
        has_unknown: Whether a pod that can share the device states no memory.
    """

    device: Device
    seats: Sequence[Seat] = ()
    typical_mib: int = 0
    seated_mib: int = 0
    worst_mib: int = 0
    has_unknown: bool = False

    @property
    def used_slots(self) -> int:
        """Number of slots that pods hold on the device."""
        return sum(seat.slots for seat in self.seats)


@dataclass(frozen=True)
class PlannedNode:
    """Nodes of one pool that have the same pods, or a single node.

    Attributes:
        offer: Node or pool with its devices.
        first: Position of the first of these nodes in the pool; 0 for the first node of the pool.
        count: Number of nodes in this entry.
        devices: Devices of each of these nodes, with their pods.
    """

    offer: NodeOffer
    first: int
    count: int
    devices: Sequence[PlannedDevice]

    @property
    def watts(self) -> int | None:
        """Power in watts of all boards of one node at their power limits. It is None if a limit is not known."""
        watts = self.offer.gpu_watts
        return None if None in watts else sum(each or 0 for each in watts)

    @property
    def title(self) -> str:
        """Name of the nodes: the name of the pool, and their positions if the pool has several nodes."""
        if self.offer.count == 1:
            return self.offer.name
        last = self.first + self.count - 1
        return f"{self.offer.name} {self.first + 1}" + (f" to {last + 1}" if self.count > 1 else "")


@dataclass(frozen=True)
class PlannedConsumer:
    """A workload with the result of its placement.

    Attributes:
        consumer: Workload whose pods request GPUs.
        placed: Number of pods that run if all pods of the plan start.
        waiting: Number of pods that stay Pending if all pods of the plan start.
        nodes: Names of the nodes and pools that accept its pods.
        refusals: Reason why a node rejects its pods, by the name of the node or pool.
    """

    consumer: Consumer
    placed: int
    waiting: int
    nodes: Sequence[str]
    refusals: Mapping[str, str]


@dataclass(frozen=True)
class Conflict:
    """A minimal set of pods that together need more memory than a device has.

    If you remove any pod from the set, the other pods fit the device.

    Attributes:
        device: Name of the device, such as ``NVIDIA GeForce RTX 5070 Ti``.
        vram_mib: Memory of the device in MiB.
        pods: Number of pods by the index of the workload in ``Plan.consumers``.
        together_mib: Memory in MiB that these pods need together.
    """

    device: str
    vram_mib: int
    pods: Mapping[int, int]
    together_mib: int


@dataclass(frozen=True)
class Stock:
    """Numbers of slots of one resource in the whole cluster. A slot is a unit of the resource that pods can request.

    Attributes:
        total: Number of slots that the nodes advertise.
        always: Number of slots that long-running pods request.
        wanted: Number of slots that all pods request together.
        placed: Number of slots that pods hold, if all pods that fit run.
    """

    total: int
    always: int
    wanted: int
    placed: int

    @property
    def left(self) -> int:
        """Number of free slots if all pods that fit run."""
        return self.total - self.placed


@dataclass(frozen=True)
class Power:
    """The power of the boards at their power limits.

    Attributes:
        watts: Sum of the known power limits in watts.
        unknown: Number of boards with an unknown power limit.
        racks: Sum of the known power limits in watts, by rack.
        rack_watts: Power in watts that each rack allows, for racks with a declared limit.
    """

    watts: int
    unknown: int
    racks: Mapping[str, int]
    rack_watts: Mapping[str, int]


@dataclass(frozen=True)
class PlanData:
    """The placement of all pods, and the problems of the plan.

    Attributes:
        nodes: Nodes of the cluster. Nodes of a pool that have the same pods are one entry.
        consumers: Workloads whose pods request GPUs, with the result of their placement.
        stock: Slots of every resource that a node advertises or a pod requests.
        always_fits: Whether all long-running pods have room. Long-running pods run until someone deletes them.
        all_fits: Whether all pods have room at the same time.
        vram: Whether GPU memory can run out.
        conflicts: Minimal sets of pods that together need more memory than a device has. Sets with the fewest pods come
            first.
        has_more_conflicts: Whether more conflicts exist than ``conflicts`` lists.
        power: Power of the boards at their power limits.
        problems: Problems that the plan found.
        advice: Possible improvements, each a sentence without a period.
        notes: Assumptions of the plan, each a sentence without a period.
        conditions: Conditions on which the answers depend and that the plan cannot check.
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
