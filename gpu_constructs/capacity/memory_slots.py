"""How a board is cut into slots that count memory, so that the scheduler adds up what pods take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# In MiB, the first that serves: what is small wastes little, what is usual reads well.
_UNITS = (1024, 512, 256, 128, 2048, 4096, 8192)
_SMALLEST_UNIT = 128
_MANY_UNITS = 256


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
        """Give how many slots a pod asks for."""
        return -(-mib // self.unit_mib)

    def room(self, sizes: Sequence[tuple[int, int]]) -> int:
        """Give how many pods a board holds at a time, at most.

        Args:
            sizes: MiB of each pod and how many there are, by rising MiB.
        """
        room, left = 0, self.slots
        for mib, pods in sizes:
            taken = min(pods, left // self.of(mib))
            room, left = room + taken, left - taken * self.of(mib)
        return room


def memory_slots(board_mib: int, smallest: int, largest: int) -> MemorySlots | None:
    """Give the slots that suit the smallest and the largest budget; None where there are none."""
    for unit in _UNITS:
        made = MemorySlots(unit, board_mib // unit)
        is_fine = unit <= max(smallest, _SMALLEST_UNIT)
        # Rounded up, the largest must still find the units it asks for.
        if is_fine and 2 <= made.slots <= _MANY_UNITS and made.of(largest) <= made.slots:
            return made
    return None
