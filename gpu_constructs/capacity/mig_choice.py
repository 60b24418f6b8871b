"""Which MIG devices nodes that are alike are divided into for what goes on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from gpu_constructs.capacity.mig_division import Want, divide, parts, smallest_part
from gpu_constructs.capacity.sharing_demand import Demand, Hardware
from gpu_constructs.mig_profiles import mig_resource, size_of

Layouts = tuple[dict[str, int], ...]
# MIG devices by profile, or else how many whole boards.
_Need = tuple[tuple[tuple[str, int], ...], int]


@dataclass(frozen=True)
class MigChoice:
    """The devices of a node, and who should ask for which.

    Attributes:
        layouts: Profiles and how many of each, of every board.
        asks: Who should ask for what, by what that is called.
        pods: How many pods a node holds at a time.
        missing: What a node lacks for pods that may come to it, as ``2 x nvidia.com/mig-1g.5gb``.
        has_room_to_update: Whether there is a device left for the new pod of an update.
    """

    layouts: Layouts
    asks: dict[str, list[Demand]]
    pods: int
    missing: tuple[str, ...]
    has_room_to_update: bool

    @property
    def in_words(self) -> str:
        """How the boards are divided."""
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
    alike: dict[tuple[tuple[str, int], ...], list[Demand]] = {}
    for one in demands:
        alike.setdefault(tuple(hardware.wanted(one.consumer).items()), []).append(one)
    left, lacking, pods = Counter(hardware.devices), Counter[str](), 0
    has_room_to_update = True
    lasting = [ceil(sum(one.least_for_each_board * one.node_boards for one in those)) for those in alike.values()]
    most = [ceil(sum(one.most_for_each_board * one.node_boards for one in those)) for those in alike.values()]
    for counts in (lasting, [all_ - first for all_, first in zip(most, lasting, strict=True)]):
        for need, count in zip(alike, counts, strict=True):
            placed = min([count, *(left[name] // number for name, number in need)])
            pods += placed
            left.subtract({name: number * placed for name, number in need})
            lacking.update({name: number * (count - placed) for name, number in need})
        if counts is lasting:
            has_room_to_update = all(
                ceil(one.new_for_each_board * one.node_boards) * number <= left[name]
                for need, those in alike.items()
                for one in those
                for name, number in need
            )
    return MigChoice(
        layouts=tuple(dict(layout) for layout in hardware.layouts),
        asks={},
        pods=pods,
        missing=tuple(f"{count} x {what}" for what, count in lacking.items() if count),
        has_room_to_update=has_room_to_update,
    )


def _choice(hardware: Hardware, demands: Sequence[Demand], guess: str | None) -> MigChoice:
    alike: dict[_Need, list[Demand]] = {}
    for one in demands:
        alike.setdefault(_need(hardware, one, guess), []).append(one)
    order = sorted(alike, key=lambda need: _size(hardware, need), reverse=True)
    # Those that run until somebody stops them first, the largest of them first.
    lasting = [_comers(hardware, (one.least_for_each_board for one in alike[need])) for need in order]
    others = [
        _comers(hardware, (one.most_for_each_board for one in alike[need])) - count
        for need, count in zip(order, lasting, strict=True)
    ]
    wants = [Want(*need, count) for need, count in zip(order * 2, lasting + others, strict=True)]
    # An update gets what is left; of updates one at a time, that of the largest.
    new = [_comers(hardware, [max(one.new_for_each_board for one in alike[need])]) for need in order]
    update = [Want(*need, count) for need, count in zip(order, new, strict=True) if count][:1]
    division = divide(hardware.model_name, hardware.gpus, [*wants, *update])
    lacking = Counter[str]()
    for want, placed in zip(wants, division.placed, strict=False):
        lacking[_called(want.devices)] += want.count - placed
    asks: dict[str, list[Demand]] = {}
    for need in order:
        asks.setdefault(_called(need[0]), []).extend(alike[need])
    return MigChoice(
        layouts=division.layouts,
        asks=asks,
        pods=sum(division.placed[: len(wants)]),
        missing=tuple(f"{count} x {what}" for what, count in lacking.items() if count),
        has_room_to_update=all(division.placed[-1] == one.count for one in update),
    )


def _comers(hardware: Hardware, for_each_board: Iterable[Fraction]) -> int:
    return ceil(sum(for_each_board, Fraction()) * hardware.gpus)


def _need(hardware: Hardware, demand: Demand, guess: str | None) -> _Need:
    if demand.devices:
        return demand.devices, 0
    part = guess
    if demand.mib is not None:
        part = smallest_part(hardware.model_name, hardware.mig_profiles or (), demand.mib)
    return ((), demand.boards) if part is None or demand.is_wide else (((part, 1),), 0)


def _size(hardware: Hardware, need: _Need) -> tuple[int, int, _Need]:
    profiles = hardware.mig_profiles or ()
    places = [profiles.index(size_of(profile) or "") for profile, _ in need[0]]
    return need[1], max(places, default=0), need


def _called(devices: Sequence[tuple[str, int]]) -> str:
    return " and ".join(mig_resource(profile) for profile, _ in devices) or "whole boards"
