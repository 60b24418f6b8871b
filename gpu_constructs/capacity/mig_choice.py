"""The choice of MIG devices for the boards of a node. The choice depends on the pods that run there.

A MIG profile, such as ``1g.5gb``, is a size of MIG devices. A layout is the number of MIG devices of each profile on a
board. A demand is a workload with the boards and the GPU memory that its pods need on a node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from math import ceil

from gpu_constructs.capacity.gathered import grouped, summed
from gpu_constructs.capacity.sharing_demand import Demand, Hardware
from gpu_constructs.catalog.mig_layouts import fits
from gpu_constructs.catalog.mig_profiles import mig_resource, mig_vram_mib, size_of
from gpu_constructs.records import dataclass

Layouts = tuple[dict[str, int], ...]
Layout = Mapping[str, int] | Sequence[Mapping[str, int]]
_Amounts = tuple[tuple[str, int], ...]
_Need = tuple[_Amounts, int]
"""Devices that a pod takes: the number of MIG devices of each profile, and the number of whole boards."""


@dataclass(frozen=True)
class MigChoice:
    """The MIG devices of a node, and the resource that each workload should request.

    Attributes:
        layouts: Layout of each board: the number of MIG devices of each profile; empty for a whole board.
        asks: Dict from what pods should request, such as ``nvidia.com/mig-1g.5gb`` or ``whole boards``, to the
            workloads of these pods. Empty for a layout that the inventory declares.
        pods: Number of pods, of all workloads together, that get their devices on a node at the same time.
        missing: Devices that a node lacks for its pods, such as ``2 x nvidia.com/mig-1g.5gb``.
        has_room_to_update: Whether enough devices remain free for the new pods of one update at a time.
    """

    layouts: Layouts
    asks: dict[str, list[Demand]]
    pods: int
    missing: tuple[str, ...]
    has_room_to_update: bool

    @property
    def layout(self) -> Layout | None:
        """MIG layout of the node, as ``GpuNode`` accepts it. None if the node has no board.

        This is one layout for all boards, or a list with the layout of each board.
        """
        if not self.layouts:
            return None
        return self.layouts[0] if all(one == self.layouts[0] for one in self.layouts) else self.layouts

    @property
    def in_words(self) -> str:
        """Text that lists the MIG devices of the boards, for example ``2 x 1g.5gb, 1 x 3g.20gb``."""
        each = [", ".join(f"{count} x {part}" for part, count in one.items()) or "a whole GPU" for one in self.layouts]
        if len(set(each)) == 1:
            return each[0]
        return "; ".join(f"{one} on {count} of {len(each)} boards" for one, count in Counter(each).items())


def mig_choice(hardware: Hardware, demands: Sequence[Demand]) -> MigChoice:
    """Return a ``MigChoice``: a layout for the boards of a node, and the resource that each workload should request.

    The MIG devices are large enough for the memory that the pods state. For pods that state no memory, the devices are
    as large as possible, but small enough that every pod gets one. If only smaller devices leave room for an update,
    the function chooses the smaller devices.

    Args:
        hardware: Boards of a node.
        demands: Workloads of the node.
    """
    guesses: list[str | None] = [None, *reversed(parts(hardware.model_name, hardware.mig_profiles or ()))]
    is_silent = any(one.mib is None for one in demands)
    made: MigChoice | None = None
    for guess in guesses if is_silent else guesses[-1:]:
        tried = _choice(hardware, demands, guess)
        # Prefer smaller devices to the first attempt only if they leave room for an update.
        if made is None or made.missing:
            made = tried
        if not tried.missing and tried.has_room_to_update:
            return tried
    assert made is not None
    return made


def kept_choice(hardware: Hardware, demands: Sequence[Demand]) -> MigChoice:
    """Return the MIG layout that the inventory declares, and how many pods get their devices with this layout.

    Args:
        hardware: Boards of a node, with their declared layouts.
        demands: Workloads of the node.
    """
    alike = grouped((tuple(hardware.wanted(one.consumer).items()), one) for one in demands)
    lasting, others = _comers(alike.values())
    left = Counter(hardware.devices)
    placed = [_taken_off(left, need, count) for need, count in zip(alike, lasting, strict=True)]
    has_room_to_update = all(
        ceil(one.new_for_each_board * one.node_boards) * number <= left[name]
        for need, those in alike.items()
        for one in those
        for name, number in need
    )
    placed += [_taken_off(left, need, count) for need, count in zip(alike, others, strict=True)]
    each = zip([*alike] * 2, lasting + others, placed, strict=True)
    lacking = summed((name, number * (count - pods)) for need, count, pods in each for name, number in need)
    layouts = tuple(dict(layout) for layout in hardware.layouts)
    return MigChoice(layouts, {}, sum(placed), _listed(lacking), has_room_to_update)


def _taken_off(left: Counter[str], need: _Amounts, pods: int) -> int:
    """Assign free devices to as many pods as possible. Return the number of these pods.

    Args:
        left: Number of free devices by name. The function subtracts the assigned devices.
        need: Number of devices that each pod needs, by name.
        pods: Largest number of pods.
    """
    placed = min([pods, *(left[name] // number for name, number in need)])
    left.subtract({name: number * placed for name, number in need})
    return placed


def _choice(hardware: Hardware, demands: Sequence[Demand], guess: str | None) -> MigChoice:
    alike = grouped((_need(hardware, one, guess), one) for one in demands)
    # Long-running pods come first, the largest before the others.
    order = sorted(alike, key=lambda need: _size(hardware, need), reverse=True)
    lasting, others = _comers([alike[need] for need in order])
    wants = [*zip(order * 2, lasting + others, strict=True)]
    # An update gets the remaining devices. One update runs at a time, so reserve devices for the largest.
    new = [ceil(max(one.new_for_each_board * one.node_boards for one in alike[need])) for need in order]
    update = [(need, count) for need, count in zip(order, new, strict=True) if count][:1]
    layouts, placed = divide(hardware.model_name, hardware.gpus, [*wants, *update])
    each = zip(wants, placed, strict=False)
    lacking = summed((_called(need), count - pods) for (need, count), pods in each)
    asks = grouped((_called(need), one) for need in order for one in alike[need])
    has_room_to_update = all(placed[-1] == count for _, count in update)
    return MigChoice(layouts, asks, sum(placed[: len(wants)]), _listed(lacking), has_room_to_update)


def _comers(groups: Collection[Sequence[Demand]]) -> tuple[list[int], list[int]]:
    """Return two lists with one number for each group: its long-running pods on one node, and its other pods there.

    A group is a list of workloads whose pods need the same devices. Long-running pods run until someone deletes them.
    """
    lasting = [ceil(sum(one.least_for_each_board * one.node_boards for one in those)) for those in groups]
    most = [ceil(sum(one.most_for_each_board * one.node_boards for one in those)) for those in groups]
    return lasting, [every - first for every, first in zip(most, lasting, strict=True)]


def _listed(lacking: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(f"{count} x {what}" for what, count in lacking.items() if count)


def _need(hardware: Hardware, demand: Demand, guess: str | None) -> _Need:
    if demand.devices:
        return demand.devices, 0
    part = guess
    if demand.mib is not None:
        part = smallest_part(hardware.model_name, hardware.mig_profiles or (), demand.mib)
    return ((), demand.boards) if part is None or demand.is_wide else (((part, 1),), 0)


def _size(hardware: Hardware, need: _Need) -> tuple[int, int, _Need]:
    places = [(hardware.mig_profiles or ()).index(size_of(profile) or "") for profile, _ in need[0]]
    return need[1], max(places, default=0), need


def _called(need: _Need) -> str:
    return " and ".join(mig_resource(profile) for profile, _ in need[0]) or "whole boards"


# Dividing boards


def parts(model_name: str, profiles: Sequence[str]) -> list[str]:
    """Return the MIG profiles of a board that are smaller than the whole board, the smallest first.

    Args:
        model_name: Name of the board.
        profiles: MIG profiles that the board supports. The last of them is the whole board.
    """
    size = {profile: mig_vram_mib(model_name, profile) for profile in profiles[:-1]}
    return sorted(size, key=lambda profile: (size[profile], profiles.index(profile)))


def smallest_part(model_name: str, profiles: Sequence[str], mib: int) -> str | None:
    """Return the smallest MIG profile of a board with at least the given memory in MiB.

    Return None if every profile that is smaller than the whole board has less memory.

    Args:
        model_name: Name of the board.
        profiles: MIG profiles that the board supports. The last of them is the whole board.
        mib: Memory in MiB.
    """
    return next((part for part in parts(model_name, profiles) if mib <= mig_vram_mib(model_name, part)), None)


def divide(model_name: str, boards: int, wants: Sequence[tuple[_Need, int]]) -> tuple[Layouts, list[int]]:
    """Return a MIG layout for the boards of a node, and how many of the given pods get devices with this layout.

    Pods that come first in ``wants`` get devices first. Each MIG device is on the first board with room for it.

    Args:
        model_name: Name of the board.
        boards: Number of boards.
        wants: Groups of equal pods. Each entry has the devices or boards that one pod takes, and the number of pods.

    Returns:
        A pair. The first member is the layout of each board: the number of MIG devices of each profile, or an empty
        dict for a whole board. The second member is the number of pods that get their devices, for each entry of
        ``wants``.
    """
    layouts: list[dict[str, int] | None] = [{} for _ in range(boards)]
    placed = [0] * len(wants)
    for number, (need, count) in enumerate(wants):
        while placed[number] < count and _is_placed(model_name, layouts, need):
            placed[number] += 1
    return tuple(layout or {} for layout in layouts), placed


def _is_placed(model_name: str, layouts: list[dict[str, int] | None], need: _Need) -> bool:
    """Place one more pod on the boards of a node if they have room. Return whether they have room.

    Args:
        model_name: Name of the board.
        layouts: Number of MIG devices of each profile, for each board; None for a board that a pod takes as a whole. If
            the boards have room, the function adds the devices of the pod.
        need: MIG devices of the pod as pairs of profile and number, and its number of whole boards.
    """
    devices, boards = need
    if not devices:
        empty = [board for board, layout in enumerate(layouts) if layout == {}][:boards]
        for board in empty if len(empty) == boards else ():
            layouts[board] = None
        return len(empty) == boards
    tried = list(layouts)
    for profile in (profile for profile, count in devices for _ in range(count)):
        for board, layout in enumerate(tried):
            more = None if layout is None else {**layout, profile: layout.get(profile, 0) + 1}
            if more and _fits(model_name, frozenset(more.items())):
                tried[board] = more
                break
        else:
            return False
    layouts[:] = tried
    return True


@lru_cache(maxsize=4096)
def _fits(model_name: str, layout: frozenset[tuple[str, int]]) -> bool:
    return fits(model_name, dict(layout))
