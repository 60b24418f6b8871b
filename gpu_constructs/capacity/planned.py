"""The data classes of a capacity plan: the devices of nodes, the pods on these devices, and the problems of the plan.

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
"""Answer to the question whether the nodes have room for the pods.

- ``undecided``: The search for room gave up.
- ``conditional``: The nodes have room under the conditions in ``Plan.conditions``, which the plan cannot check.
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
        slots: Amount of the resource that the device provides, for example 4 for a GPU with 4 replicas.
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
        """Name of the device in a sentence about its node, for example ``GPU 0`` or ``GPU 0 1g.5gb``."""
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
        notes: Assumptions about the node, each a sentence without a period, or a ``Condition``.
        absent: Labels that no component of the cluster publishes on the node. The node has such a label only if
            ``labels`` contains it.
        published: Labels that components of the cluster publish on some nodes only. The plan does not know whether this
            node has them.
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
    """A problem that the capacity plan reports, for example a Deployment whose pods no node accepts.

    Attributes:
        kind: Kind of the problem:

            - ``placement``: No node of the inventory accepts the pods of a workload.
            - ``slots``: The nodes do not have enough free slots for pods that must run.
            - ``rollout``: The update of a workload would wait forever, because its new pods have no room.
            - ``waiting``: Not all pods of the app can run at the same time.
            - ``vram``: The memory of a GPU may run out.
            - ``power``: The boards of a rack may draw more power than the rack allows.
            - ``unchecked``: The pods fit only under a condition that the plan cannot check.
        subject: Index of the object that has the problem, among the objects of the app. None if the problem concerns
            several objects, or a node.
        what: Text of the problem, without its reasons.
        way_out: Instruction that states how the user can solve the problem.
        details: Reasons of the problem, for example one for each node that rejects the pods.
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
        seats: Slots of the device that pods hold in one possible placement, with one entry for each workload.
        typical_mib: Memory in MiB that the pods in ``seats`` usually take together. Pods that state no memory count
            as 0.
        seated_mib: Largest memory in MiB that the pods in ``seats`` take together. Pods that state no memory count
            as 0.
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
        first: Position in the pool of the first node of this entry; 0 for the first node of the pool.
        count: Number of nodes of this entry.
        devices: Devices of each node of this entry, with the pods that use the devices.
    """

    offer: NodeOffer
    first: int
    count: int
    devices: Sequence[PlannedDevice]

    @property
    def watts(self) -> int | None:
        """Total power limit of the boards of one node in watts; None if the limit of a board is not known."""
        watts = self.offer.gpu_watts
        return None if None in watts else sum(each or 0 for each in watts)

    @property
    def title(self) -> str:
        """Name of the nodes in reports, such as ``gpu-a`` for one node, or ``gpu-pool 1 to 3`` for nodes of a pool."""
        if self.offer.count == 1:
            return self.offer.name
        last = self.first + self.count - 1
        return f"{self.offer.name} {self.first + 1}" + (f" to {last + 1}" if self.count > 1 else "")


@dataclass(frozen=True)
class PlannedConsumer:
    """A workload with the result of its placement.

    Attributes:
        consumer: Workload whose pods request GPUs.
        placed: Number of pods that run if all pods of the capacity plan exist.
        waiting: Number of pods that stay Pending if all pods of the capacity plan exist.
        nodes: Names of the nodes and pools that accept the pods of the workload.
        refusals: Reasons why nodes reject the pods of the workload, by the name of the node or pool.
    """

    consumer: Consumer
    placed: int
    waiting: int
    nodes: Sequence[str]
    refusals: Mapping[str, str]


@dataclass(frozen=True)
class Conflict:
    """A minimal set of pods that together need more memory than a device has.

    If you remove any pod from the set, the other pods fit the device. A conflict can also be a single pod that needs
    more memory than its limit from MPS.

    Attributes:
        device: Name of the device, such as ``NVIDIA GeForce RTX 5070 Ti``.
        vram_mib: Memory of the device, or the limit from MPS, in MiB.
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
        placed: Number of slots in use, if every pod with room runs.
    """

    total: int
    always: int
    wanted: int
    placed: int

    @property
    def left(self) -> int:
        """Number of free slots, if every pod with room runs."""
        return self.total - self.placed


@dataclass(frozen=True)
class Power:
    """The total power of the boards, if every board draws as much as its power limit allows.

    Attributes:
        watts: Sum of the known power limits in watts.
        unknown: Number of boards with an unknown power limit.
        racks: Sum of the known power limits in watts, by rack.
        rack_watts: Power limit of each rack in watts, for racks with a declared limit.
    """

    watts: int
    unknown: int
    racks: Mapping[str, int]
    rack_watts: Mapping[str, int]


@dataclass(frozen=True)
class PlanData:
    """The data of a capacity plan: the placement of all pods, and the problems that the plan found.

    Attributes:
        nodes: Nodes of the cluster. Nodes of a pool that have the same pods are one entry.
        consumers: Workloads whose pods request GPUs, with the result of their placement.
        stock: Slots of every resource that a node advertises or a pod requests.
        always_fits: Answer whether all long-running pods have room. Long-running pods run until someone deletes them.
        all_fits: Answer whether all pods have room at the same time, for example ``conditional``.
        vram: Answer whether GPU memory can run out, for example ``overcommitted``.
        conflicts: Minimal sets of pods that together need more memory than a device has. Sets with the fewest pods come
            first.
        has_more_conflicts: Whether more conflicts may exist than ``conflicts`` lists.
        power: Total power of the boards, if every board draws as much as its power limit allows.
        problems: Problems that the plan found.
        advice: Possible improvements, each a sentence without a period.
        notes: Assumptions of the plan, each a sentence without a period.
        conditions: Conditions on which the answers depend, as problems of the kind ``unchecked``.
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
