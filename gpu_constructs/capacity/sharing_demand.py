"""What a choice of sharing turns on: the boards of nodes that are alike, and what the pods that go there want."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.gathered import summed
from gpu_constructs.catalog.inventory import GpuNode
from gpu_constructs.catalog.mig_profiles import mig_resource, mig_vram_mib, normal_profile, size_of
from gpu_constructs.catalog.platforms import Platform
from gpu_constructs.catalog.sharing import GPU

_MIG = "nvidia.com/mig-"

# In MiB, the first that serves: what is small wastes little, what is usual reads well.
_UNITS = (1024, 512, 256, 128, 2048, 4096, 8192)
_SMALLEST_UNIT = 128
_MANY_UNITS = 256


@dataclass(frozen=True)
class Settings:
    """What only the user knows.

    Attributes:
        isolation: Whether pods must be kept apart.
        trusted_cuda_services: Whether MPS may serve them.
        platform: What the nodes run; None where it is not known.
    """

    isolation: bool = False
    trusted_cuda_services: bool = False
    platform: Platform | None = None


@dataclass(frozen=True)
class Hardware:
    """What counts of a node beside its name and its labels.

    Attributes:
        model_name: The board; empty where it is not known.
        architecture: Architecture of the board.
        gpus: Boards of a node.
        mib: Memory of a board, or of the MIG device that stands for one; None where it is not known.
        mig_profiles: What a board may be divided into; None where it is not known.
        counts_memory: Whether a request of several slots means memory.
        layouts: How the inventory divides each board; empty where it divides none.
        is_single: Whether their devices are asked for as GPUs are.
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
        """Return the hardware of a node."""
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
        """What a node has whose boards are divided already, by resource."""
        parts = (part for layout in self.layouts for part in layout or (("", 1),))
        return Counter(
            summed((GPU if self.is_single or not name else mig_resource(name), count) for name, count in parts)
        )

    @property
    def board(self) -> str:
        """What a board is called in a sentence."""
        if not self.model_name:
            return "a board"
        return f"{'an' if self.model_name.startswith('N') else 'a'} {self.model_name}"

    def boards_for(self, consumer: Consumer) -> int:
        """Return the number of whole GPUs that a pod asks for; slots that count memory are one."""
        whole = sum(count for name, count in consumer.asks.items() if not name.startswith(_MIG))
        return 1 if self.counts_memory else max(1, whole)

    def wanted(self, consumer: Consumer) -> dict[str, int]:
        """Return what a pod takes of boards that are divided already, by resource."""
        named = {mig_resource(profile): count for profile, count in devices_for(consumer)}
        return named or {GPU: self.boards_for(consumer)}

    def places(self, consumer: Consumer) -> int:
        """Return the number of boards of a node, or of devices if it is divided already, that a consumer's pods use."""
        return min(self.devices[name] for name in self.wanted(consumer)) if self.layouts else self.gpus

    def refusal(self, consumer: Consumer) -> str | None:
        """Return why these boards do not serve a consumer's pods; None if they do."""
        lacking = self._lacking_as_divided(consumer) if self.layouts else self._lacking(consumer)
        if lacking or devices_for(consumer) or (consumer.vram_mib or 0) <= (self.mib or consumer.vram_mib or 0):
            return lacking
        what = f"a MIG device of {self.board}" if self.is_single else self.board
        return f"each of its pods takes {consumer.vram_mib} MiB, and {what} has {self.mib} MiB"

    def _lacking_as_divided(self, consumer: Consumer) -> str | None:
        wanted = self.wanted(consumer)
        if all(self.devices[name] >= count for name, count in wanted.items()):
            return None
        has = ", ".join(f"{count} x {name}" for name, count in self.devices.items())
        asks = " and ".join(name if count == 1 else f"{count} x {name}" for name, count in wanted.items())
        return f"it asks for {asks}, and a node, divided as it is, has {has}"

    def _lacking(self, consumer: Consumer) -> str | None:
        for profile, _ in devices_for(consumer):
            if size_of(profile) not in (self.mig_profiles or ()):
                return f"it asks for {mig_resource(profile)}, which {self.board} is not known to give"
        if devices_for(consumer) or self.boards_for(consumer) <= self.gpus:
            return None
        has = "1 GPU" if self.gpus == 1 else f"{self.gpus} GPUs"
        return f"each of its pods asks for {self.boards_for(consumer)} GPUs, and a node has {has}"


def devices_for(consumer: Consumer) -> tuple[tuple[str, int], ...]:
    """Return the MIG devices that a pod asks for by name, by profile."""
    return tuple(
        (normal_profile(name.removeprefix(_MIG)), count)
        for name, count in consumer.asks.items()
        if name.startswith(_MIG) and size_of(name.removeprefix(_MIG))
    )


@dataclass(frozen=True)
class Demand:
    """What the pods of a consumer want of nodes that are alike.

    Attributes:
        consumer: The consumer.
        boards: Whole boards that a pod takes.
        total_boards: Boards of all nodes that take its pods; of those divided already, devices.
        node_boards: The same of each of these nodes here.
        ranks: Pods that run together, each of which wants boards of its own; 1 of those that run by themselves.
    """

    consumer: Consumer
    boards: int
    total_boards: int
    node_boards: int
    ranks: int = 1

    @cached_property
    def devices(self) -> tuple[tuple[str, int], ...]:
        """MIG devices that a pod asks for by name."""
        return devices_for(self.consumer)

    @property
    def is_wide(self) -> bool:
        """Whether slots of one board do not serve it."""
        return self.boards > 1 or self.ranks > 1

    @property
    def pods(self) -> int:
        """Pods that may meet on a node."""
        return 1 if self.consumer.is_for_each_node else self.consumer.pods

    @property
    def new_pods(self) -> int:
        """Pods that an update makes before any old one may go."""
        return self.consumer.updating if self.pods else 0

    @property
    def mib(self) -> int | None:
        """What each takes of a board; None where nobody says."""
        return self.consumer.vram_mib or None

    @property
    def starting_pods(self) -> int:
        """Pods that run until somebody stops them, or those without which work does not start."""
        return max(self.consumer.least_pods, min(self.consumer.starting, self.consumer.pods))

    @property
    def most_for_each_board(self) -> Fraction:
        """How many of its pods come to a board when they spread evenly."""
        return self._spread(self.consumer.pods)

    @property
    def load_for_each_board(self) -> Fraction:
        """The same of those with which all has started: what else there is may queue."""
        return self._spread(self.starting_pods)

    @property
    def least_for_each_board(self) -> Fraction:
        """The same of those that run until somebody stops them."""
        return self._spread(self.consumer.least_pods)

    @property
    def new_for_each_board(self) -> Fraction:
        """The same of those that an update adds."""
        return self._spread(self.new_pods) if self.new_pods else Fraction()

    def _spread(self, pods: int) -> Fraction:
        return Fraction(1, self.node_boards) if self.consumer.is_for_each_node else Fraction(pods, self.total_boards)


# Slots that count memory, so that the scheduler adds up what pods take


@dataclass(frozen=True)
class MemorySlots:
    """Slots of one size.

    Attributes:
        unit_mib: Memory that a slot stands for.
        slots: How many a board has.
    """

    unit_mib: int
    slots: int

    @property
    def unit(self) -> str:
        """The memory of a slot, as Kubernetes writes it."""
        return f"{self.unit_mib // 1024}Gi" if self.unit_mib % 1024 == 0 else f"{self.unit_mib}Mi"

    def of(self, mib: int) -> int:
        """Return the number of slots that a pod asks for."""
        return -(-mib // self.unit_mib)


def most_pods(has: int, wants: Iterable[tuple[int, int]]) -> int:
    """Return the maximum number of pods that find a place at a time.

    Args:
        has: Number of places.
        wants: How many each of some pods takes, and how many such pods there are, by rising places.
    """
    found = 0
    for takes, pods in wants:
        taken = min(pods, has // takes)
        found += taken
        has -= taken * takes
    return found


def memory_slots(board_mib: int, smallest: int, largest: int) -> MemorySlots | None:
    """Return the slots that suit the smallest and the largest budget; None if there are none."""
    made = (MemorySlots(unit, board_mib // unit) for unit in _UNITS if unit <= max(smallest, _SMALLEST_UNIT))
    # Rounded up, the largest must still find the units it asks for.
    return next((one for one in made if 2 <= one.slots <= _MANY_UNITS and one.of(largest) <= one.slots), None)
