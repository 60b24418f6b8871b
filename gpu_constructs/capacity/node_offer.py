"""What a node offers to pods: devices, labels, taints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property


@dataclass(frozen=True)
class Device:
    """What the scheduler hands out: a GPU, or a part of one that the hardware divides off.

    Attributes:
        resource: What it is advertised as, as ``nvidia.com/gpu``; a device class of DRA by its name.
        slots: How many containers may hold it at a time.
        vram_mib: Memory that its holders have together; None where it is not known.
        gpu: Index of the board in the node.
        profile: The MIG profile; empty for a whole board.
        vram_each_mib: The most that one holder may take, where something enforces it, as MPS does.
        most_each: The most slots that a container may ask for, where the plugin refuses more.
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
        """What it is called beside its node."""
        return f"GPU {self.gpu}" + (f" {self.profile}" if self.profile else "")


@dataclass(frozen=True)
class NodeOffer:
    """A node, or a pool of nodes that are alike.

    Attributes:
        name: Of the node or the pool.
        count: Nodes in the pool.
        devices: Of each node.
        labels: Those declared, and those that GPU Feature Discovery and the kubelet will write.
        taints: As Kubernetes writes them.
        gpu_model: The board, as ``nvidia-smi`` prints it; empty where it is not known.
        sharing: How its GPUs are shared, in words, as ``time-slicing x 5``; empty where they are not.
        vram_unit_mib: Memory that a slot stands for, where slots count memory.
        gpu_watts: Power limits of its boards; None where one is not known.
        rack: Where it stands; empty where nobody says.
        notes: What was assumed about it, each a sentence without a full stop.
        absent: Labels that it is known not to have, though nobody can know of others of their domain.
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
        sums: dict[str, int] = {}
        for device in self.devices:
            sums[device.resource] = sums.get(device.resource, 0) + device.slots
        return sums
