"""Which MIG devices nodes that are alike are divided into for what goes on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil

from gpu_constructs.capacity.gathered import grouped, summed
from gpu_constructs.capacity.sharing_demand import Demand, Hardware
from gpu_constructs.catalog.mig_layouts import fits
from gpu_constructs.catalog.mig_profiles import mig_resource, mig_vram_mib, size_of

Layouts = tuple[dict[str, int], ...]
Layout = Mapping[str, int] | Sequence[Mapping[str, int]]
_Amounts = tuple[tuple[str, int], ...]
_Need = tuple[_Amounts, int]
"""What a pod takes: MIG devices by profile, or else how many whole boards."""


@dataclass(frozen=True)
class MigChoice:
    """The devices of a node, and who should ask for which.

    Attributes:
        layouts: Profiles and how many of each, of every board.
        asks: Consumers by the name of what they should ask for.
        pods: Number of pods that a node holds at a time.
        missing: Devices that a node lacks for pods that may come to it, as ``2 x nvidia.com/mig-1g.5gb``.
        has_room_to_update: Whether there is a device left for the new pod of an update.
    """

    layouts: Layouts
    asks: dict[str, list[Demand]]
    pods: int
    missing: tuple[str, ...]
    has_room_to_update: bool

    @property
    def layout(self) -> Layout | None:
        """The same in one mapping where all boards are divided alike; None if there are none."""
        if not self.layouts:
            return None
        return self.layouts[0] if all(one == self.layouts[0] for one in self.layouts) else self.layouts

    @property
    def in_words(self) -> str:
        """Division of the boards, in words."""
        each = [", ".join(f"{count} x {part}" for part, count in one.items()) or "a whole GPU" for one in self.layouts]
        if len(set(each)) == 1:
            return each[0]
        return "; ".join(f"{one} on {count} of {len(each)} boards" for one, count in Counter(each).items())


def mig_choice(hardware: Hardware, demands: Sequence[Demand]) -> MigChoice:
    """Divide for what is said; who says nothing gets the largest devices with which all have one."""
    guesses: list[str | None] = [None, *reversed(parts(hardware.model_name, hardware.mig_profiles or ()))]
    is_silent = any(one.mib is None for one in demands)
    made: MigChoice | None = None
    for guess in guesses if is_silent else guesses[-1:]:
        tried = _choice(hardware, demands, guess)
        # Room for an update is worth smaller devices only where it is found.
        if made is None or made.missing:
            made = tried
        if not tried.missing and tried.has_room_to_update:
            return tried
    assert made is not None
    return made


def kept_choice(hardware: Hardware, demands: Sequence[Demand]) -> MigChoice:
    """Count who has a place on boards that are divided already, as they are."""
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
    """Take what pods need off what is left; return how many of them find it."""
    placed = min([pods, *(left[name] // number for name, number in need)])
    left.subtract({name: number * placed for name, number in need})
    return placed


def _choice(hardware: Hardware, demands: Sequence[Demand], guess: str | None) -> MigChoice:
    alike = grouped((_need(hardware, one, guess), one) for one in demands)
    # Those that run until they are stopped first, the largest of them first.
    order = sorted(alike, key=lambda need: _size(hardware, need), reverse=True)
    lasting, others = _comers([alike[need] for need in order])
    wants = [*zip(order * 2, lasting + others, strict=True)]
    # An update gets what is left; of updates one at a time, that of the largest.
    new = [ceil(max(one.new_for_each_board * one.node_boards for one in alike[need])) for need in order]
    update = [(need, count) for need, count in zip(order, new, strict=True) if count][:1]
    layouts, placed = divide(hardware.model_name, hardware.gpus, [*wants, *update])
    each = zip(wants, placed, strict=False)
    lacking = summed((_called(need), count - pods) for (need, count), pods in each)
    asks = grouped((_called(need), one) for need in order for one in alike[need])
    has_room_to_update = all(placed[-1] == count for _, count in update)
    return MigChoice(layouts, asks, sum(placed[: len(wants)]), _listed(lacking), has_room_to_update)


def _comers(groups: Collection[Sequence[Demand]]) -> tuple[list[int], list[int]]:
    """Return how many pods of each group come to a node: those that run until they are stopped, and the others."""
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
    """Return the profiles that are less than the whole board, the smallest first."""
    size = {profile: mig_vram_mib(model_name, profile) for profile in profiles[:-1]}
    return sorted(size, key=lambda profile: (size[profile], profiles.index(profile)))


def smallest_part(model_name: str, profiles: Sequence[str], mib: int) -> str | None:
    """Return the smallest profile that holds so much memory; None if only the whole board does."""
    return next((part for part in parts(model_name, profiles) if mib <= mig_vram_mib(model_name, part)), None)


def divide(model_name: str, boards: int, wants: Sequence[tuple[_Need, int]]) -> tuple[Layouts, list[int]]:
    """Divide boards for the wants, the first ones first, each on the first boards that have room.

    Args:
        model_name: The board.
        boards: Number of boards.
        wants: What each of some pods takes, and how many pods these are.

    Returns:
        Profiles and how many of each, of every board; empty for one that is not divided. Then how many pods of each
        want have a device.
    """
    layouts: list[dict[str, int] | None] = [{} for _ in range(boards)]
    placed = [0] * len(wants)
    for number, (need, count) in enumerate(wants):
        while placed[number] < count and _is_placed(model_name, layouts, need):
            placed[number] += 1
    return tuple(layout or {} for layout in layouts), placed


def _is_placed(model_name: str, layouts: list[dict[str, int] | None], need: _Need) -> bool:
    """Find room for one more pod; a board that is taken whole is None."""
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
