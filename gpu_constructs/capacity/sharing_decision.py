"""The rule by which a way of sharing is chosen for nodes that are alike."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import Literal

from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.mig_division import Division, Want, divide, parts, smallest_part
from gpu_constructs.capacity.vram import worst_mib
from gpu_constructs.inventory import GpuNode
from gpu_constructs.mig_profiles import mig_resource, normal_profile, size_of
from gpu_constructs.platforms import Platform, Talos
from gpu_constructs.sharing import Sharing

Mode = Literal["exclusive", "mig", "mps", "time-slicing", "vram-units"]
Layouts = tuple[dict[str, int], ...]
# MIG devices by profile, or else how many whole boards.
_Need = tuple[tuple[tuple[str, int], ...], int]

_MIG = "nvidia.com/mig-"
# In MiB, the first that serves: what is small wastes little, what is usual reads well.
_UNITS = (1024, 512, 256, 128, 2048, 4096, 8192)
_SMALLEST_UNIT = 128
_MANY_UNITS = 256
_MPS_CLIENTS = 48
_MPS_CLIENTS_OF = {"Volta": 16}
_TOO_OLD_FOR_MPS = ("", "Maxwell", "Pascal")
_MOST_NAMED = 6
_NOT_BOTH = "one GPU alone and another shared, on one node, is not to be had of the device plugin"
_NOT_SEVERAL = "several slots are not several GPUs"


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
class Choice:
    """The way of sharing that was chosen.

    Attributes:
        mode: In a word.
        sharing: For the device plugin.
        reasons: What led there.
        pods_at_once: How many pods one node holds at a time, at most.
        layouts: How each board is divided; empty without MIG.
    """

    mode: Mode
    sharing: Sharing
    reasons: tuple[str, ...]
    pods_at_once: int
    layouts: Layouts = ()


@dataclass(frozen=True)
class Hardware:
    """What counts of a node beside its name and its labels."""

    model_name: str
    architecture: str
    gpus: int
    mib: int | None
    mig_profiles: tuple[str, ...] | None
    counts_memory: bool

    @classmethod
    def of(cls, node: GpuNode) -> Hardware:
        """Read it off a node."""
        return cls(
            model_name=node.model.name if node.model else "",
            architecture=node.model.architecture if node.model else "",
            gpus=node.gpus,
            mib=node.usable_vram_mib,
            mig_profiles=node.mig_profiles,
            counts_memory=node.sharing is not None and node.sharing.vram_unit_mib is not None,
        )

    @property
    def board(self) -> str:
        """What a board is called in a sentence."""
        if not self.model_name:
            return "a board"
        return f"{'an' if self.model_name.startswith('N') else 'a'} {self.model_name}"

    def boards_for(self, consumer: Consumer) -> int:
        """Give how many whole GPUs a pod asks for; slots that count memory are one."""
        whole = sum(count for name, count in consumer.asks.items() if not name.startswith(_MIG))
        return 1 if self.counts_memory else max(1, whole)

    def refusal(self, consumer: Consumer) -> str | None:
        """Say why these boards are none for a consumer's pods; None where they are."""
        for profile, _ in devices_for(consumer):
            if size_of(profile) not in (self.mig_profiles or ()):
                return f"it asks for {mig_resource(profile)}, which {self.board} is not known to give"
        if devices_for(consumer):
            return None
        if self.boards_for(consumer) > self.gpus:
            has = "1 GPU" if self.gpus == 1 else f"{self.gpus} GPUs"
            return f"each of its pods asks for {self.boards_for(consumer)} GPUs, and a node has {has}"
        if consumer.vram_mib is not None and self.mib is not None and consumer.vram_mib > self.mib:
            return f"each of its pods takes {consumer.vram_mib} MiB, and {self.board} has {self.mib} MiB"
        return None


def devices_for(consumer: Consumer) -> tuple[tuple[str, int], ...]:
    """Give the MIG devices that a pod asks for by name, by profile."""
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
        total_boards: Boards of all nodes that take its pods.
        node_boards: Boards of each of these nodes here.
    """

    consumer: Consumer
    boards: int
    total_boards: int
    node_boards: int

    @cached_property
    def devices(self) -> tuple[tuple[str, int], ...]:
        """MIG devices that a pod asks for by name."""
        return devices_for(self.consumer)

    @property
    def pods(self) -> int:
        """Pods that may meet on a node."""
        return 1 if self.consumer.is_for_each_node else self.consumer.pods

    @property
    def mib(self) -> int | None:
        """What each takes of a board; None where nobody says."""
        return self.consumer.vram_mib or None

    @property
    def pods_for_each_board(self) -> Fraction:
        """How many of its pods come to a board when they spread evenly."""
        return self._spread(self.consumer.pods)

    @property
    def least_for_each_board(self) -> Fraction:
        """The same of those that run until somebody stops them."""
        return self._spread(self.consumer.least_pods)

    def _spread(self, pods: int) -> Fraction:
        return Fraction(1, self.node_boards) if self.consumer.is_for_each_node else Fraction(pods, self.total_boards)


def decide(hardware: Hardware, demands: Sequence[Demand], settings: Settings, *, boards_in_all: int) -> Choice:
    """Choose a way of sharing.

    Args:
        hardware: What the nodes have.
        demands: What goes on them.
        settings: What the user says.
        boards_in_all: Boards of the cluster.
    """
    return _Decision(hardware, demands, settings, boards_in_all).choice()


class _Decision:
    def __init__(self, hardware: Hardware, demands: Sequence[Demand], settings: Settings, boards_in_all: int) -> None:
        self.hardware = hardware
        self.demands = demands
        self.settings = settings
        self.boards_in_all = boards_in_all
        self.load = sum((one.pods_for_each_board * one.boards for one in demands), Fraction())
        self.least = sum((one.least_for_each_board * one.boards for one in demands), Fraction())
        self.comers = self._comers(one.pods_for_each_board for one in demands)
        self.sizes = sorted((one.mib, one.pods) for one in demands if one.mib is not None)
        self.unknown = [one.consumer.title for one in demands if one.mib is None]
        self.is_wide = [one.boards > 1 for one in demands]
        # What it all turns on: memory of the board, where it and all that is taken of it are known.
        self.mib = None if self.unknown else hardware.mib

    def choice(self) -> Choice:
        if not self.demands:
            return Choice("exclusive", Sharing.none(), ("none of the workloads goes on its nodes",), 0)
        asks_for_mig = any(one.devices for one in self.demands)
        if self.load <= 1 and not asks_for_mig:
            return self._exclusive("each has a GPU of its own")
        if asks_for_mig:
            return self._mig("they ask for MIG devices")
        if self.settings.isolation:
            return self._isolated()
        if alone := self._why_alone():
            return self._exclusive(alone)
        if self.is_mixed and self.hardware.mig_profiles:
            return self._mig(_NOT_BOTH)
        why_not_mps = self._why_not_mps() if self.settings.trusted_cuda_services else ""
        if self.settings.trusted_cuda_services and not why_not_mps:
            return self._mps()
        against = (f"MPS is not for these: {why_not_mps}",) if why_not_mps else ()
        return self._vram_units(against) or self._time_slicing(against)

    # What the numbers say

    @property
    def needed(self) -> int:
        return ceil(self.load)

    @cached_property
    def is_big(self) -> list[bool]:
        half = (self.hardware.mib or 0) / 2
        return [one.boards > 1 or bool(half and one.mib and one.mib >= half) for one in self.demands]

    @property
    def is_mixed(self) -> bool:
        return self.hardware.gpus > 1 and any(self.is_big) and not all(self.is_big)

    def _why_alone(self) -> str | None:
        """Say why no two pods can share a board; None where some can."""
        if all(self.is_wide):
            return f"each of them asks for several GPUs, and {_NOT_SEVERAL}"
        if self.mib is None:
            return None
        if all(self.is_big):
            return f"each of them takes half of the {self.mib} MiB of {self.hardware.board} or more"
        two = [mib for mib, pods in self.sizes for _ in range(min(pods, 2))][:2]
        if sum(two) > self.mib:
            return (
                f"no two of them go together: even the smallest, {_sum(two)}, are more than the {self.mib} MiB of "
                f"{self.hardware.board}"
            )
        return None

    def _largest(self, count: int) -> list[int]:
        return [mib for mib, pods in reversed(self.sizes) for _ in range(min(pods, count))][:count]

    # What it is about, in words

    @property
    def count(self) -> str:
        pods = sum(one.pods for one in self.demands)
        boards = max(one.total_boards for one in self.demands)
        where = "the cluster has" if boards == self.boards_in_all else "the nodes that take them have"
        gpus = sum(one.pods * one.boards for one in self.demands)
        what = "GPUs" if gpus == pods else f"{gpus} GPUs"
        return f"{'1 pod asks' if pods == 1 else f'{pods} pods ask'} for {what} at once and {where} {boards}"

    def _waiting(self, room: int) -> Iterator[str]:
        more = self.comers - room
        if more > 0:
            yield f"a node holds {room} of them at a time, and {more} that may come to it {_wait(more)}"

    # The ways

    def _exclusive(self, *reasons: str) -> Choice:
        room, left = 0, self.hardware.gpus
        for one in sorted(self.demands, key=lambda one: one.boards):
            taken = min(one.pods, left // one.boards)
            room, left = room + taken, left - taken * one.boards
        return Choice("exclusive", Sharing.none(), (self.count, *reasons, *self._waiting(room)), room)

    def _isolated(self) -> Choice:
        if self.hardware.mig_profiles:
            return self._mig("MIG keeps pods on one board apart")
        if alone := self._why_alone():
            return self._exclusive(alone)
        why = "has no MIG" if self.hardware.mig_profiles == () else "is not known to have MIG"
        return self._exclusive(f"{self.hardware.board} {why}, and nothing else keeps pods on one board apart")

    @property
    def _is_renamed(self) -> bool:
        return any(name.endswith(".shared") for one in self.demands for name in one.consumer.asks)

    def _why_not_mps(self) -> str:
        if isinstance(self.settings.platform, Talos):
            return f"it is untested on {self.settings.platform}"
        if self.hardware.architecture in _TOO_OLD_FOR_MPS:
            return f"it takes Volta or newer, and {self.hardware.board} is not known to be that"
        if self.mib is None:
            return f"it holds each client to a share of the memory, and {self._what_is_unknown()}"
        if any(self.is_wide):
            return _NOT_SEVERAL
        clients = _MPS_CLIENTS_OF.get(self.hardware.architecture, _MPS_CLIENTS)
        if self.needed > clients:
            return f"it serves {clients} clients of a GPU, and {self.needed} may meet there"
        each, largest = self.mib // self.needed, self.sizes[-1][0]
        if each < largest:
            return f"it would hold each of {self.needed} clients to {each} MiB, and the largest takes {largest} MiB"
        return ""

    def _mps(self) -> Choice:
        mib, largest = self.mib or 0, self.sizes[-1][0]
        reasons = (
            f"{self.count}: {self.needed} replicas",
            f"MPS holds each to {mib // self.needed} of the {mib} MiB of {self.hardware.board}, and the largest takes "
            f"{largest} MiB",
            "a fault of one of them may end all on that GPU",
        )
        sharing = Sharing.mps(replicas=self.needed, rename_by_default=self._is_renamed)
        return Choice("mps", sharing, reasons, min(self.hardware.gpus * self.needed, self.comers))

    def _what_is_unknown(self) -> str:
        if self.unknown:
            return f"{_named(self.unknown)} {'say' if len(self.unknown) > 1 else 'says'} nothing of memory"
        return "the memory of the board is not known"

    def _vram_units(self, against: Sequence[str]) -> Choice | None:
        if self.hardware.gpus > 1 or self.mib is None or any(self.is_wide):
            return None
        unit = self._unit(self.mib)
        if unit is None:
            return None
        slots = self.mib // unit
        written = f"{unit // 1024}Gi" if unit % 1024 == 0 else f"{unit}Mi"
        room, left = 0, slots
        for mib, pods in self.sizes:
            taken = min(pods, left // -(-mib // unit))
            room, left = room + taken, left - taken * -(-mib // unit)
        lasting = ceil(sum(one.least_for_each_board * -(-(one.mib or 0) // unit) for one in self.demands))
        for_good = (
            f"what runs until somebody stops it takes {lasting} slots, so some of it waits for good: give it less "
            "memory, or another GPU",
        )
        total = sum(mib * pods for mib, pods in self.sizes)
        together = (
            f"all of them together take {total} MiB, {100 * total // self.mib} % of the {self.mib} MiB of "
            f"{self.hardware.board}",
        )
        reasons = (
            self.count,
            *(together if all(one.total_boards == 1 for one in self.demands) else ()),
            f"with one GPU in a node, {slots} slots of {written} make the scheduler add up what each says it takes: "
            "what does not fit beside the others waits instead of running out of memory",
            *(for_good if lasting > slots else ()),
            *against,
        )
        sharing = Sharing.vram_units(vram=f"{self.mib}Mi", unit=written, rename_by_default=self._is_renamed)
        return Choice("vram-units", sharing, reasons, room)

    def _unit(self, board: int) -> int | None:
        smallest, largest = self.sizes[0][0], self.sizes[-1][0]
        for unit in _UNITS:
            slots = board // unit
            is_fine = unit <= max(smallest, _SMALLEST_UNIT)
            # Rounded up, the largest must still find the units it asks for.
            if is_fine and 2 <= slots <= _MANY_UNITS and -(-largest // unit) <= slots:
                return unit
        return None

    def _time_slicing(self, against: Sequence[str]) -> Choice:
        elsewhere = (f"{_NOT_BOTH}: take MIG, DRA, or a second node pool with a configuration of its own",)
        mixed = elsewhere if self.is_mixed else ()
        if any(self.is_wide):
            return self._exclusive(f"some of them ask for several GPUs, and {_NOT_SEVERAL}", *mixed, *against)
        replicas = max(2, self.needed)
        if self.mib is None:
            way_out = "state GpuRequest(vram=...)" if self.unknown else "pass vram= for the node"
            return self._sliced(
                replicas,
                f"{self._what_is_unknown()}, so whether it is enough for {replicas} at once cannot be told: {way_out}",
                *mixed,
                *against,
            )
        mib, board = self.mib, self.hardware.board
        most = mib // self.sizes[0][0]
        capped: tuple[str, ...] = ()
        if most < replicas:
            replicas = most
            capped = (f"{mib} MiB hold no more than {most} even of the smallest, {_sum(self.sizes[0][:1])} each",)
        # From how many on they can be too much: never from one, which fits alone.
        safe = bisect_left(range(2, replicas + 1), True, key=lambda n: worst_mib(n, self.sizes) > mib) + 1
        held = self._largest(min(safe, replicas))
        if safe >= 2 and self.least <= safe:
            which = f"the {safe} largest budgets" if len(held) == safe else "all of them"
            what = f"{mib} MiB of {board} hold {which}, {_sum(held)}, together"
            if safe == replicas:
                return self._sliced(safe, what, *capped, *against)
            more = f"{safe + 1} of them could take {worst_mib(safe + 1, self.sizes)} MiB"
            return self._sliced(safe, f"{what}; {more}", *mixed, *against)
        if safe < 2 and self.least <= 1:
            return self._exclusive(
                f"the two largest, {_sum(self._largest(2))}, are more than the {mib} MiB of {board}, and what runs "
                "until somebody stops it has GPUs enough without sharing",
                *mixed,
                *against,
            )
        worst = worst_mib(replicas, self.sizes)
        return self._sliced(
            replicas,
            *capped,
            f"memory may run out: the {replicas} largest that may meet take {worst} MiB, {100 * worst // mib} % of the "
            f"{mib} MiB of {board}, and the scheduler does not keep them apart",
            *mixed,
            *against,
        )

    def _sliced(self, replicas: int, *reasons: str) -> Choice:
        sharing = Sharing.time_slicing(replicas=replicas, rename_by_default=self._is_renamed)
        room = min(self.hardware.gpus * replicas, sum(one.pods for one in self.demands))
        return Choice(
            "time-slicing", sharing, (f"{self.count}: {replicas} replicas", *reasons, *self._waiting(room)), room
        )

    # MIG

    def _mig(self, why: str) -> Choice:
        division, asks, wants = self._division()
        if not any(division.layouts) and not any(one.devices for one in self.demands):
            return self._exclusive("those that take whole boards leave none to divide")
        lacking = Counter[str]()
        for want, placed in zip(wants, division.placed, strict=True):
            lacking[_asked(want.devices)] += want.count - placed
        missing = [f"{count} x {what}" for what, count in lacking.items() if count]
        reasons = [
            self.count,
            why,
            f"with the MIG strategy 'mixed', {self.hardware.board} gives {_divided(division.layouts)}",
            *(f"{_named([one.consumer.title for one in those])} should ask for {what}" for what, those in asks.items()),
        ]
        if missing:
            reasons.append(f"a node lacks {', '.join(missing)} for pods that may come to it")
        return Choice("mig", Sharing.none(), tuple(reasons), sum(division.placed), division.layouts)

    def _division(self) -> tuple[Division, dict[str, list[Demand]], list[Want]]:
        """Divide for what is said; who says nothing gets the largest devices with which all have one."""
        hardware = self.hardware
        guesses: list[str | None] = [None, *reversed(parts(hardware.model_name, hardware.mig_profiles or ()))]
        for guess in guesses if self.unknown else guesses[-1:]:
            alike: dict[_Need, list[Demand]] = {}
            for one in self.demands:
                alike.setdefault(self._need(one, guess), []).append(one)
            order = sorted(alike, key=self._size, reverse=True)
            # Those that run until somebody stops them first, the largest of them first.
            lasting = [self._comers(one.least_for_each_board for one in alike[need]) for need in order]
            others = [
                self._comers(one.pods_for_each_board for one in alike[need]) - count
                for need, count in zip(order, lasting, strict=True)
            ]
            wants = [Want(*need, count) for need, count in zip(order * 2, lasting + others, strict=True)]
            division = divide(hardware.model_name, hardware.gpus, wants)
            if all(placed == want.count for placed, want in zip(division.placed, wants, strict=True)):
                break
        asks: dict[str, list[Demand]] = {}
        for need in order:
            asks.setdefault(_asked(need[0]), []).extend(alike[need])
        return division, asks, wants

    def _comers(self, for_each_board: Iterable[Fraction]) -> int:
        return ceil(sum(for_each_board, Fraction()) * self.hardware.gpus)

    def _need(self, demand: Demand, guess: str | None) -> _Need:
        if demand.devices:
            return demand.devices, 0
        part = guess
        if demand.mib is not None:
            part = smallest_part(self.hardware.model_name, self.hardware.mig_profiles or (), demand.mib)
        return ((), demand.boards) if part is None or demand.boards > 1 else (((part, 1),), 0)

    def _size(self, need: _Need) -> tuple[int, int, _Need]:
        profiles = self.hardware.mig_profiles or ()
        places = [profiles.index(size_of(profile) or "") for profile, _ in need[0]]
        return need[1], max(places, default=0), need


def _wait(count: int) -> str:
    return "waits" if count == 1 else "wait"


def _named(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _sum(sizes: Sequence[int]) -> str:
    if len(sizes) > _MOST_NAMED:
        return f"{sum(sizes)} MiB in all"
    unit, name = (1024, "GiB") if all(mib % 1024 == 0 for mib in sizes) else (1, "MiB")
    return f"{' + '.join(str(mib // unit) for mib in sizes)} {name}"


def _asked(devices: Sequence[tuple[str, int]]) -> str:
    return " and ".join(mig_resource(profile) for profile, _ in devices) or "whole boards"


def _divided(layouts: Layouts) -> str:
    in_words = [", ".join(f"{count} x {profile}" for profile, count in one.items()) or "a whole GPU" for one in layouts]
    if len(set(in_words)) == 1:
        return in_words[0]
    times = {one: in_words.count(one) for one in in_words}
    return "; ".join(f"{one} on {count} of {len(in_words)} boards" for one, count in times.items())
