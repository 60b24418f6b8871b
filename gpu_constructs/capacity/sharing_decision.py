"""The rule by which a way of sharing is chosen for nodes that are alike."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil
from typing import Literal

from gpu_constructs.capacity.memory_slots import MemorySlots, memory_slots
from gpu_constructs.capacity.mig_choice import Layouts, MigChoice, kept_choice, mig_choice
from gpu_constructs.capacity.sharing_demand import Demand, Hardware
from gpu_constructs.capacity.vram import conflicts, worst_mib
from gpu_constructs.gpu_models import mps_clients
from gpu_constructs.platforms import Platform, Talos
from gpu_constructs.sharing import MOST_SLOTS, Sharing

Mode = Literal["exclusive", "mig", "mps", "time-slicing", "vram-units"]

_TOO_OLD_FOR_MPS = ("", "Maxwell", "Pascal")
_MOST_NAMED = 6
_MOST_SETS = 3
_MOST_STEPS = 2_000
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
        self.load = sum((one.load_for_each_board * one.boards for one in demands), Fraction())
        self.least = sum((one.least_for_each_board * one.boards for one in demands), Fraction())
        # Of updates one at a time.
        self.new = max((one.new_for_each_board * one.boards for one in demands), default=Fraction())
        self.comers = ceil(sum((one.most_for_each_board for one in demands), Fraction()) * hardware.gpus)
        self.sizes = sorted((one.mib, one.pods) for one in demands if one.mib is not None)
        self.unknown = [one.consumer.title for one in demands if one.mib is None]
        # What it all turns on: memory of the board, where it and all that is taken of it are known.
        self.mib = None if self.unknown else hardware.mib

    def choice(self) -> Choice:
        if self.hardware.layouts:
            return self._kept()
        if not self.demands:
            return Choice("exclusive", Sharing.none(), ("none of the workloads goes on its nodes",), 0)
        asks_for_mig = any(one.devices for one in self.demands)
        if self.load <= 1 and not asks_for_mig:
            return self._exclusive("there are GPUs enough without sharing")
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
        """Slots of a board with which all has started, and an update has room."""
        return ceil(self.load + self.new)

    @cached_property
    def is_big(self) -> list[bool]:
        half = (self.hardware.mib or 0) / 2
        return [one.is_wide or bool(half and one.mib and one.mib >= half) for one in self.demands]

    @property
    def is_mixed(self) -> bool:
        return self.hardware.gpus > 1 and any(self.is_big) and not all(self.is_big)

    @cached_property
    def meeting(self) -> list[tuple[int, int]]:
        """Memory and pods of those that may meet, what an update adds among them."""
        return sorted((one.mib, one.pods + one.new_pods) for one in self.demands if one.mib is not None)

    def _why_wide(self) -> str:
        """Say why slots do not serve some of them; empty where they serve all."""
        wide = [one for one in self.demands if one.is_wide]
        several = [one.consumer.title for one in wide if one.boards > 1]
        if several:
            return f"{_named(several)} {_verb('ask', several)} for several GPUs in a pod, and {_NOT_SEVERAL}"
        together = [one.consumer.title for one in wide]
        return f"the pods of {_named(together)} run together and want a GPU each: {_NOT_SEVERAL}" if wide else ""

    def _why_alone(self) -> str | None:
        """Say why no two pods can share a board; None where some can."""
        if all(one.is_wide for one in self.demands):
            return self._why_wide()
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
        return [mib for mib, pods in reversed(self.meeting) for _ in range(min(pods, count))][:count]

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
            queueing = [one.consumer.title for one in self.demands if one.pods > one.starting_pods]
            who = f": {_named(queueing)} may queue" if queueing else ""
            yield f"a node holds {room} of them at a time, and {more} that may come to it {_wait(more)}{who}"

    def _pending(self, slots: int) -> Iterator[str]:
        """Say what has no place for good, where a board has so many slots of the pods' own size."""
        if self.least > slots:
            wanted, has = ceil(self.least * self.hardware.gpus), self.hardware.gpus * slots
            yield f"what always runs wants {wanted} places of a node that has {has}, so some of it stays Pending"
        else:
            yield from self._stuck(
                one for one in self.demands if self.least + one.new_for_each_board * one.boards > slots
            )

    @staticmethod
    def _stuck(those: Iterable[Demand]) -> Iterator[str]:
        names = [one.consumer.title for one in those if one.new_pods]
        if names:
            yield (
                f"an update of {_named(names)} finds no place for a new pod beside the old one: write strategy.type "
                "'Recreate', or maxSurge 0"
            )

    def _apart(self, most: int, slots: int, taken: Mapping[int, int], unit: str, shown: int = 1) -> str:
        """Name the smallest sets that are too much; empty where there are none.

        Args:
            most: What there is.
            slots: How many pods may meet.
            taken: What each pod takes, by the index of the demand.
            unit: What that is shown in.
            shown: How much one of these is.
        """
        pods = [(taken.get(i, 0), one.pods) for i, one in enumerate(self.demands)]
        sets = []
        for one in conflicts(most, slots, pods, limit=_MOST_SETS, budget=_MOST_STEPS).sets:
            each = [
                f"{f'{count} x ' if count > 1 else ''}{self.demands[i].consumer.title} {taken[i] // shown}"
                for i, count in list(one.items())[:_MOST_NAMED]
            ]
            sets.append(f"{' + '.join(each)}{' + ...' if len(one) > _MOST_NAMED else ''} {unit}")
        return ", ".join(sets)

    # The ways

    def _exclusive(self, *reasons: str) -> Choice:
        room, left = 0, self.hardware.gpus
        for one in sorted(self.demands, key=lambda one: one.boards):
            taken = min(one.pods, left // one.boards)
            room, left = room + taken, left - taken * one.boards
        said = (self.count, *reasons, *self._pending(1), *self._waiting(room))
        return Choice("exclusive", Sharing.none(), said, room)

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
        if wide := self._why_wide():
            return wide
        clients = mps_clients(self.hardware.architecture)
        if self.needed > clients:
            return f"it serves {clients} clients of a GPU, and {self.needed} may meet there"
        each, largest = self.mib // self.needed, self.sizes[-1][0]
        if each < largest:
            return f"it would hold each of {self.needed} clients to {each} MiB, and the largest takes {largest} MiB"
        return ""

    def _mps(self) -> Choice:
        mib, largest, room = self.mib or 0, self.sizes[-1][0], min(self.hardware.gpus * self.needed, self.comers)
        reasons = (
            f"{self.count}: {self.needed} replicas",
            f"MPS holds each to {mib // self.needed} of the {mib} MiB of {self.hardware.board}, and the largest takes "
            f"{largest} MiB",
            "a fault of one of them may end all on that GPU",
            *self._waiting(room),
        )
        return Choice("mps", Sharing.mps(replicas=self.needed, rename_by_default=self._is_renamed), reasons, room)

    def _what_is_unknown(self) -> str:
        pods = f"{_named(self.unknown)} {_verb('say', self.unknown)} nothing of memory" if self.unknown else ""
        board = "the memory of the board is not known" if self.hardware.mib is None else ""
        return " and ".join(filter(None, (pods, board)))

    def _vram_units(self, against: Sequence[str]) -> Choice | None:
        if self.hardware.gpus > 1 or self.mib is None or any(one.is_wide for one in self.demands):
            return None
        made = memory_slots(self.mib, self.sizes[0][0], self.sizes[-1][0])
        if made is None:
            return None
        units = {i: made.of(one.mib or 0) for i, one in enumerate(self.demands)}
        apart = self._apart(made.slots, made.slots, units, "units")
        keeps = f"the scheduler then keeps the sum of budgets within the board, {made.slots} units of {made.unit}"
        asked = [f"{one.consumer.title} {units[i]}" for i, one in enumerate(self.demands)]
        reasons = (
            self.count,
            keeps + (f"; {apart} wait for each other" if apart else ""),
            f"pods then ask for units: {_named(asked)} (GpuRequest(vram=...) under that profile does so)",
            *self._units_pending(made, units),
            *against,
        )
        renamed = self._is_renamed
        sharing = Sharing.vram_units(vram=f"{self.mib}Mi", unit=made.unit, rename_by_default=renamed)
        return Choice("vram-units", sharing, reasons, made.room(self.sizes))

    def _units_pending(self, made: MemorySlots, units: Mapping[int, int]) -> Iterator[str]:
        lasting = sum((one.least_for_each_board * units[i] for i, one in enumerate(self.demands)), Fraction())
        if lasting > made.slots:
            yield (
                f"what always runs takes {ceil(lasting)} of the {made.slots} units, so some of it stays Pending: give "
                "it less memory, or another GPU"
            )
            return
        each = enumerate(self.demands)
        yield from self._stuck(one for i, one in each if lasting + one.new_for_each_board * units[i] > made.slots)

    def _time_slicing(self, against: Sequence[str]) -> Choice:
        elsewhere = (f"{_NOT_BOTH}: take MIG, DRA, or a second node pool with a configuration of its own",)
        mixed = elsewhere if self.is_mixed else ()
        if wide := self._why_wide():
            return self._exclusive(wide, *mixed, *against)
        replicas = max(2, self.needed)
        if self.mib is None:
            return self._sliced(replicas, *self._of_unknown(replicas), *mixed, *against)
        mib, board = self.mib, self.hardware.board
        most = mib // self.sizes[0][0]
        capped: tuple[str, ...] = ()
        if most < replicas:
            replicas = most
            capped = (f"{mib} MiB hold no more than {most} even of the smallest, {_sum(self.sizes[0][:1])} each",)
        # From how many on they can be too much: never from one, which fits alone.
        safe = bisect_left(range(2, replicas + 1), True, key=lambda n: worst_mib(n, self.meeting) > mib) + 1
        held = self._largest(min(safe, replicas))
        if safe >= 2 and self.least <= safe:
            which = f"the {safe} largest budgets" if len(held) == safe else "all of them"
            what = f"{mib} MiB of {board} hold {which}, {_sum(held)}, together"
            if safe == replicas:
                return self._sliced(safe, what, *capped, *against)
            more = f"{safe + 1} of them could take {worst_mib(safe + 1, self.meeting)} MiB"
            return self._sliced(safe, f"{what}; {more}", *mixed, *against)
        if safe < 2 and self.least <= 1:
            return self._exclusive(
                f"the two largest, {_sum(self._largest(2))}, are more than the {mib} MiB of {board}, and what runs "
                "until somebody stops it has GPUs enough without sharing",
                *mixed,
                *against,
            )
        worst = worst_mib(replicas, self.meeting)
        return self._sliced(
            replicas,
            *capped,
            f"memory may run out: the {replicas} largest that may meet take {worst} MiB, {100 * worst // mib} % of the "
            f"{mib} MiB of {board}, and the scheduler does not keep them apart",
            *mixed,
            *against,
        )

    def _of_unknown(self, replicas: int) -> Iterator[str]:
        """Say what is not known, and what the rest says all the same."""
        ways = ["state GpuRequest(vram=...)"] if self.unknown else []
        ways += ["pass vram= for the node"] if self.hardware.mib is None else []
        known = {i: one.mib for i, one in enumerate(self.demands) if one.mib is not None}
        if self.hardware.mib is not None:
            shown, unit = _unit(known.values())
            apart = self._apart(self.hardware.mib, replicas, known, unit, shown)
            if apart:
                yield (
                    f"memory may run out: {apart} do not go together on the {self.hardware.mib} MiB of "
                    f"{self.hardware.board}, and the scheduler does not keep them apart"
                )
        yield (
            f"{self._what_is_unknown()}, so whether it is enough for {replicas} at once cannot be told: "
            f"{' and '.join(ways)}"
        )

    def _sliced(self, replicas: int, *reasons: str) -> Choice:
        replicas = min(replicas, MOST_SLOTS)
        sharing = Sharing.time_slicing(replicas=replicas, rename_by_default=self._is_renamed)
        room = min(self.hardware.gpus * replicas, sum(one.pods for one in self.demands))
        said = (f"{self.count}: {replicas} replicas", *reasons, *self._pending(replicas), *self._waiting(room))
        return Choice("time-slicing", sharing, said, room)

    def _mig(self, why: str) -> Choice:
        made = mig_choice(self.hardware, self.demands)
        if not any(made.layouts) and not any(one.devices for one in self.demands):
            return self._exclusive("those that take whole boards leave none to divide")
        reasons = (
            self.count,
            f"{why}: with the MIG strategy 'mixed', {self.hardware.board} gives {made.in_words}",
            *self._lacking(made),
            *(f"{_named([one.consumer.title for one in who])} should ask for {it}" for it, who in made.asks.items()),
        )
        return Choice("mig", Sharing.none(), reasons, made.pods, made.layouts)

    def _kept(self) -> Choice:
        """Leave boards that the inventory divides as they are: pods ask for their devices by name."""
        made = kept_choice(self.hardware, self.demands)
        strategy, board = "single" if self.hardware.is_single else "mixed", self.hardware.board
        reasons = (
            f"the inventory divides it: with the MIG strategy '{strategy}', {board} gives {made.in_words}",
            *([] if self.demands else ["none of the workloads goes on its nodes"]),
            *self._lacking(made),
        )
        return Choice("mig", Sharing.none(), reasons, made.pods, made.layouts)

    def _lacking(self, made: MigChoice) -> Iterator[str]:
        if made.missing:
            yield f"a node lacks {', '.join(made.missing)} for pods that may come to it"
        if not made.has_room_to_update:
            yield from self._stuck(self.demands)


def _unit(sizes: Iterable[int]) -> tuple[int, str]:
    return (1024, "GiB") if all(mib % 1024 == 0 for mib in sizes) else (1, "MiB")


def _verb(verb: str, names: Sequence[str]) -> str:
    return verb if len(names) > 1 else f"{verb}s"


def _wait(count: int) -> str:
    return "waits" if count == 1 else "wait"


def _named(names: Sequence[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _sum(sizes: Sequence[int]) -> str:
    if len(sizes) > _MOST_NAMED:
        return f"{sum(sizes)} MiB in all"
    unit, name = _unit(sizes)
    return f"{' + '.join(str(mib // unit) for mib in sizes)} {name}"
