"""The data that decides how nodes share GPUs: the boards of a node, and the GPUs and memory that pods need there.

A *consumer* is a workload as the capacity plan sees it: equal pods of one object that request GPUs. The library makes
one decision for all equal nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property

from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.gathered import summed
from gpu_constructs.catalog.inventory import GpuNode
from gpu_constructs.catalog.mig_profiles import mig_resource, mig_vram_mib, normal_profile, size_of
from gpu_constructs.catalog.platforms import Platform
from gpu_constructs.catalog.sharing import GPU
from gpu_constructs.records import dataclass

_MIG = "nvidia.com/mig-"

# Sizes of a slot in MiB, in order of preference. Small slots waste little memory, and usual sizes are easy to read.
_UNITS = (1024, 512, 256, 128, 2048, 4096, 8192)
_SMALLEST_UNIT = 128
_MANY_UNITS = 256


@dataclass(frozen=True)
class Settings:
    """The arguments of ``recommend_sharing`` that the library cannot derive from manifests and the inventory.

    Attributes:
        isolation: Whether pods must not affect each other. Default: False.
        trusted_cuda_services: Whether the pods may share GPUs by MPS. Default: False.
        platform: Platform of the nodes; None (the default) if it is not known.
    """

    isolation: bool = False
    trusted_cuda_services: bool = False
    platform: Platform | None = None


@dataclass(frozen=True)
class Hardware:
    """The boards of a node, without properties that do not affect sharing, such as the name and labels of the node.

    Attributes:
        model_name: Name of the board; empty if it is not known.
        architecture: Architecture of the board; empty if it is not known.
        gpus: Number of boards of the node.
        mib: Memory of a board in MiB; None if it is not known. If ``is_single`` is True, it is the memory of the
            smallest MIG device instead.
        mig_profiles: MIG profiles that the board supports; None if they are not known.
        counts_memory: Whether each slot stands for an amount of memory, so that a request for several slots is a
            request for memory.
        layouts: MIG layout of each board in the inventory; empty if the inventory sets no layout.
        is_single: Whether pods request MIG devices as ``nvidia.com/gpu`` (MIG strategy ``single``).
    """

    model_name: str
    architecture: str
    gpus: int
    mib: int | None
    mig_profiles: tuple[str, ...] | None
    counts_memory: bool
    layouts: tuple[tuple[tuple[str, int], ...], ...] = ()
    is_single: bool = False

    @classmethod
    def of(cls, node: GpuNode) -> Hardware:
        """Return the properties of a node's boards that affect sharing."""
        layouts = tuple(tuple(layout.items()) for layout in node.layouts) if any(node.layouts) else ()
        is_single = bool(layouts) and node.mig_strategy == "single"
        mib = node.usable_vram_mib
        if is_single:
            mib = min(
                mig_vram_mib(node.model.name if node.model else None, one) for layout in layouts for one, _ in layout
            )
        return cls(
            model_name=node.model.name if node.model else "",
            architecture=node.model.architecture if node.model else "",
            gpus=node.gpus,
            mib=mib,
            mig_profiles=node.mig_profiles,
            counts_memory=node.sharing is not None and node.sharing.vram_unit_mib is not None,
            layouts=layouts,
            is_single=is_single,
        )

    @cached_property
    def devices(self) -> Counter[str]:
        """Number of MIG devices and whole boards of a node that has a MIG layout, by the resource that pods request."""
        parts = (part for layout in self.layouts for part in layout or (("", 1),))
        return Counter(
            summed((GPU if self.is_single or not name else mig_resource(name), count) for name, count in parts)
        )

    @property
    def board(self) -> str:
        """Name of the board with an article, such as ``an NVIDIA L4``, or ``a board`` if the model is unknown."""
        if not self.model_name:
            return "a board"
        return f"{'an' if self.model_name.startswith('N') else 'a'} {self.model_name}"

    def boards_for(self, consumer: Consumer) -> int:
        """Return the number of GPUs that a pod of a workload uses.

        If each slot stands for an amount of memory, the result is 1, because all slots of a pod are on one GPU.
        """
        whole = sum(count for name, count in consumer.asks.items() if not name.startswith(_MIG))
        return 1 if self.counts_memory else max(1, whole)

    def wanted(self, consumer: Consumer) -> dict[str, int]:
        """Return the amounts that a pod of a workload requests on boards with a MIG layout, by resource.

        The result is, for example, ``{"nvidia.com/mig-1g.5gb": 1}``.
        """
        named = {mig_resource(profile): count for profile, count in devices_for(consumer)}
        return named or {GPU: self.boards_for(consumer)}

    def places(self, consumer: Consumer) -> int:
        """Return the number of boards of one node that the pods of a workload can use.

        With a MIG layout, return the number of MIG devices of one node that the pods can use.
        """
        return min(self.devices[name] for name in self.wanted(consumer)) if self.layouts else self.gpus

    def refusal(self, consumer: Consumer) -> str | None:
        """Return the reason why the pods of a workload cannot use these boards. Return None if they can."""
        lacking = self._lacking_as_divided(consumer) if self.layouts else self._lacking(consumer)
        if lacking or devices_for(consumer) or (consumer.vram_mib or 0) <= (self.mib or consumer.vram_mib or 0):
            return lacking
        what = f"a MIG device of {self.board}" if self.is_single else self.board
        return f"each of its pods takes {consumer.vram_mib} MiB, but {what} has {self.mib} MiB"

    def _lacking_as_divided(self, consumer: Consumer) -> str | None:
        wanted = self.wanted(consumer)
        if all(self.devices[name] >= count for name, count in wanted.items()):
            return None
        has = ", ".join(f"{count} x {name}" for name, count in self.devices.items())
        asks = " and ".join(name if count == 1 else f"{count} x {name}" for name, count in wanted.items())
        return f"it requests {asks}, but a node with its MIG layout has {has}"

    def _lacking(self, consumer: Consumer) -> str | None:
        for profile, _ in devices_for(consumer):
            if size_of(profile) not in (self.mig_profiles or ()):
                return f"it requests {mig_resource(profile)}, which {self.board} may not support"
        if devices_for(consumer) or self.boards_for(consumer) <= self.gpus:
            return None
        has = "1 GPU" if self.gpus == 1 else f"{self.gpus} GPUs"
        return f"each of its pods requests {self.boards_for(consumer)} GPUs, but a node has {has}"


def devices_for(consumer: Consumer) -> tuple[tuple[str, int], ...]:
    """Return the MIG devices that a pod of a workload requests by name, such as ``(("1g.5gb", 2),)``."""
    return tuple(
        (normal_profile(name.removeprefix(_MIG)), count)
        for name, count in consumer.asks.items()
        if name.startswith(_MIG) and size_of(name.removeprefix(_MIG))
    )


@dataclass(frozen=True)
class Demand:
    """The GPU boards and the GPU memory that the pods of a workload need on equal nodes.

    Attributes:
        consumer: Workload of the pods.
        boards: Number of whole boards that a pod takes.
        total_boards: Number of boards (or MIG devices, if the inventory sets a layout) of all nodes that accept the
            pods.
        node_boards: Number of boards (or MIG devices, if the inventory sets a layout) of each of these nodes.
        ranks: Number of pods that must run together, each on its own boards, such as the workers of a training. It is 1
            for pods that run on their own.
    """

    consumer: Consumer
    boards: int
    total_boards: int
    node_boards: int
    ranks: int = 1

    @cached_property
    def devices(self) -> tuple[tuple[str, int], ...]:
        """MIG devices that a pod requests by name, as pairs of profile and number, such as ``("1g.5gb", 2)``."""
        return devices_for(self.consumer)

    @property
    def is_wide(self) -> bool:
        """Whether one pod needs several boards, or several pods must run together, each on its own board."""
        return self.boards > 1 or self.ranks > 1

    @property
    def pods(self) -> int:
        """Number of pods that one node may run: 1 for a DaemonSet, otherwise all pods of the workload."""
        return 1 if self.consumer.is_for_each_node else self.consumer.pods

    @property
    def new_pods(self) -> int:
        """Number of pods of the workload that an update creates before it deletes an old pod."""
        return self.consumer.updating if self.pods else 0

    @property
    def mib(self) -> int | None:
        """Memory in MiB that a pod takes on each of its boards. It is None if the pod states no memory."""
        return self.consumer.vram_mib or None

    @property
    def starting_pods(self) -> int:
        """Number of pods that must run at the same time.

        For example, 3 for a Deployment with three replicas, 4 for a Job whose four pods run together, and 1 for a Job
        whose pods start one by one.
        """
        return max(self.consumer.least_pods, min(self.consumer.starting, self.consumer.pods))

    @property
    def most_for_each_board(self) -> Fraction:
        """Average number of pods on a board, if all pods of the workload run."""
        return self._spread(self.consumer.pods)

    @property
    def load_for_each_board(self) -> Fraction:
        """Average number of pods on a board, if the workload runs ``starting_pods`` pods."""
        return self._spread(self.starting_pods)

    @property
    def least_for_each_board(self) -> Fraction:
        """Average number of pods on a board, if only the long-running pods of the workload run."""
        return self._spread(self.consumer.least_pods)

    @property
    def new_for_each_board(self) -> Fraction:
        """Average number of pods that an update adds to a board."""
        return self._spread(self.new_pods) if self.new_pods else Fraction()

    def _spread(self, pods: int) -> Fraction:
        return Fraction(1, self.node_boards) if self.consumer.is_for_each_node else Fraction(pods, self.total_boards)


# Slots that count memory: the scheduler then adds up the memory of pods


@dataclass(frozen=True)
class MemorySlots:
    """The slots of a board if each slot stands for the same amount of memory.

    Attributes:
        unit_mib: Memory in MiB that a slot stands for.
        slots: Number of slots of a board.
    """

    unit_mib: int
    slots: int

    @property
    def unit(self) -> str:
        """Memory of a slot as a Kubernetes quantity, for example ``1Gi``."""
        return f"{self.unit_mib // 1024}Gi" if self.unit_mib % 1024 == 0 else f"{self.unit_mib}Mi"

    def of(self, mib: int) -> int:
        """Return the number of slots that a pod with the given memory in MiB requests."""
        return -(-mib // self.unit_mib)


def most_pods(has: int, wants: Iterable[tuple[int, int]]) -> int:
    """Return the largest number of pods that can run at the same time on the given number of slots.

    Args:
        has: Number of slots.
        wants: Pairs for groups of equal pods: number of slots that a pod takes, and number of pods. Groups whose pods
            take the fewest slots must come first.
    """
    found = 0
    for takes, pods in wants:
        taken = min(pods, has // takes)
        found += taken
        has -= taken * takes
    return found


def memory_slots(board_mib: int, smallest: int, largest: int) -> MemorySlots | None:
    """Return the number of slots of a board and their size, such as 1 GiB; None if no size is suitable.

    With a suitable size, a board has 2 to 256 slots, and the largest pod fits on the board. The size is at most the
    memory of the smallest pod, but never below 128 MiB.

    Args:
        board_mib: Memory of the board in MiB.
        smallest: Memory of the smallest pod in MiB.
        largest: Memory of the largest pod in MiB.
    """
    made = (MemorySlots(unit, board_mib // unit) for unit in _UNITS if unit <= max(smallest, _SMALLEST_UNIT))
    # A pod takes whole slots, so the largest pod may need more slots than the board has.
    return next((one for one in made if 2 <= one.slots <= _MANY_UNITS and one.of(largest) <= one.slots), None)
