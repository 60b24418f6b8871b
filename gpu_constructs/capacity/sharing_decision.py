"""The rules that choose how equal nodes share their GPUs.

A *demand* is a workload with the number of boards and the GPU memory that its pods need on these nodes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from math import ceil
from typing import Literal

from gpu_constructs.capacity.mig_choice import Layout, MigChoice, kept_choice, mig_choice
from gpu_constructs.capacity.sharing_demand import Demand, Hardware, Settings, memory_slots, most_pods
from gpu_constructs.capacity.vram import conflicts, worst_mib
from gpu_constructs.capacity.wording import MOST_NAMED, memory_sum, some, unit_of, verb
from gpu_constructs.catalog.gpu_models import mps_clients
from gpu_constructs.catalog.platforms import Talos
from gpu_constructs.catalog.sharing import MOST_SLOTS, Sharing
from gpu_constructs.records import dataclass

Mode = Literal["exclusive", "mig", "mps", "time-slicing", "vram-units"]

_TOO_OLD_FOR_MPS = ("", "Maxwell", "Pascal")
_MOST_SETS = 3
_MOST_STEPS = 2_000
_NOT_BOTH = "the device plugin cannot share one GPU of a node and keep another one exclusive"
_NOT_SEVERAL = "several slots are not several GPUs"


@dataclass(frozen=True, kw_only=True)
class SharingRecommendation:
    """A recommendation of how pods share the GPUs of a node, or of each node of a pool.

    Attributes:
        node: Name of the node or the pool.
        mode: Mode of sharing; ``vram-units`` is time-slicing with slots that count memory.
        sharing: Sharing setting to pass to ``DevicePluginChart`` or ``GpuOperator``, and to ``GpuProfile``.
        mig_layout: Layout for ``GpuNode(mig_layout=...)`` if the mode is ``mig``; otherwise None. If all boards have
            the same layout, it is one mapping from MIG profiles to numbers of devices. Otherwise it is a list with one
            such mapping for each board, empty for a board without MIG devices.
        reasons: Reasons and warnings, each a sentence without a period.
        workloads: Workloads that can run on the node, as ``namespace/name``.
        pods_at_once: Largest number of pods of these workloads that one node runs at the same time.
    """

    node: str
    mode: Mode
    sharing: Sharing
    mig_layout: Layout | None = None
    reasons: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()
    pods_at_once: int = 0


class Decision:
    """The decision on how pods share the GPUs of equal nodes, which are nodes with the same boards and workloads."""

    def __init__(
        self, hardware: Hardware, demands: Sequence[Demand], settings: Settings, *, boards_in_all: int
    ) -> None:
        """Store the arguments, and compute the total boards and memory that the pods need.

        Args:
            hardware: Boards of each node.
            demands: Workloads of the nodes.
            settings: Settings that the user specifies.
            boards_in_all: Number of boards in the cluster.
        """
        self._hardware = hardware
        self._demands = demands
        self._settings = settings
        self._boards_in_all = boards_in_all
        self._load = _total(one.load_for_each_board * one.boards for one in demands)
        self._least = _total(one.least_for_each_board * one.boards for one in demands)
        # Number of slots of a board with which all pods can start, and one update at a time can run.
        new = max((one.new_for_each_board * one.boards for one in demands), default=Fraction())
        self._needed = ceil(self._load + new)
        self._comers = ceil(_total(one.most_for_each_board for one in demands) * hardware.gpus)
        known = [(one.mib, one) for one in demands if one.mib is not None]
        self._sizes = sorted((mib, one.pods) for mib, one in known)
        # Pods that can share a board, including those that an update adds.
        self._meeting = sorted((mib, one.pods + one.new_pods, 1) for mib, one in known)
        self._unknown = [one.consumer.title for one in demands if one.mib is None]
        # Memory of a board; None if the memory of the board or of a pod is not known.
        self._mib = None if self._unknown else hardware.mib
        self._is_big = [self._takes_half(one) for one in demands]
        self._is_mixed = hardware.gpus > 1 and any(self._is_big) and not all(self._is_big)

    def _takes_half(self, demand: Demand) -> bool:
        """Check whether a pod takes at least half of a board, or belongs to pods that together need several boards."""
        half = (self._hardware.mib or 0) / 2
        return demand.is_wide or bool(half and demand.mib and demand.mib >= half)

    def made(self) -> SharingRecommendation:
        """Return the recommendation for the equal nodes. Its attribute ``node`` is empty, and the caller sets it."""
        if self._hardware.layouts:
            return self._kept()
        if not self._demands:
            return self._made("exclusive", Sharing.none(), ("none of the workloads can run on this node or pool",), 0)
        if any(one.devices for one in self._demands):
            return self._mig("pods request MIG devices")
        if self._load <= 1:
            return self._exclusive("the GPUs suffice without sharing")
        if self._settings.isolation and self._hardware.mig_profiles:
            return self._mig("MIG isolates pods on one board")
        if alone := self._why_alone():
            return self._exclusive(alone)
        if self._settings.isolation:
            why = "does not support MIG" if self._hardware.mig_profiles == () else "may not support MIG"
            return self._exclusive(f"{self._hardware.board} {why}, and nothing else isolates pods on one board")
        if self._is_mixed and self._hardware.mig_profiles:
            return self._mig(_NOT_BOTH)
        return self._shared()

    def _shared(self) -> SharingRecommendation:
        against: tuple[str, ...] = ()
        if self._settings.trusted_cuda_services:
            why_not = self._why_not_mps()
            if not why_not:
                return self._mps()
            against = (f"MPS does not suit the pods: {why_not}",)
        return self._vram_units(against) or self._time_slicing(against)

    # Reasons from the numbers

    @property
    def _is_renamed(self) -> bool:
        return any(name.endswith(".shared") for one in self._demands for name in one.consumer.asks)

    def _why_wide(self) -> str:
        """Return why workloads that need several boards at once prevent GPU sharing; empty without such workloads."""
        wide = [one for one in self._demands if one.is_wide]
        several = [one.consumer.title for one in wide if one.boards > 1]
        if several:
            return f"{some(several)} {verb('request', several)} several GPUs in a pod, and {_NOT_SEVERAL}"
        together = [one.consumer.title for one in wide]
        return f"the pods of {some(together)} run together and need a GPU each: {_NOT_SEVERAL}" if wide else ""

    def _why_alone(self) -> str:
        """Return the reason why no two pods can share a board; empty if two of them can."""
        if all(one.is_wide for one in self._demands):
            return self._why_wide()
        if self._mib is None:
            return ""
        if all(self._is_big):
            return f"each pod takes at least half of the {self._mib} MiB of {self._hardware.board}"
        two = [mib for mib, pods in self._sizes for _ in range(min(pods, 2))][:2]
        what = f"even the two smallest, {memory_sum(two)}, are more than the {self._mib} MiB of {self._hardware.board}"
        return f"no two of the pods fit together: {what}" if sum(two) > self._mib else ""

    def _why_not_mps(self) -> str:
        each, largest = (self._mib or 0) // self._needed, self._sizes[-1][0] if self._sizes else 0
        clients = mps_clients(self._hardware.architecture)
        board = self._hardware.board
        whys = (
            (isinstance(self._settings.platform, Talos), f"MPS lacks a test on {self._settings.platform}"),
            (
                self._hardware.architecture in _TOO_OLD_FOR_MPS,
                f"MPS needs Volta or newer, and {board} may be older",
            ),
            (
                self._mib is None,
                f"MPS limits each client to a share of the memory, but {self._what_is_unknown()}",
            ),
            (any(one.is_wide for one in self._demands), self._why_wide()),
            (self._needed > clients, f"MPS serves {clients} clients on a GPU, but {self._needed} pods can share one"),
            (
                each < largest,
                f"MPS would limit {self._needed} clients to {each} MiB each, but the largest pod takes {largest} MiB",
            ),
        )
        return next((why for holds, why in whys if holds), "")

    # Sentences about the demand

    @property
    def _count(self) -> str:
        pods = sum(one.pods for one in self._demands)
        boards = max(one.total_boards for one in self._demands)
        where = "the cluster has" if boards == self._boards_in_all else "the nodes that accept them have"
        gpus = sum(one.pods * one.boards for one in self._demands)
        what = "GPUs" if gpus == pods else f"{gpus} GPUs"
        return f"{'1 pod requests' if pods == 1 else f'{pods} pods request'} {what} at once, and {where} {boards}"

    def _waiting(self, room: int) -> Iterator[str]:
        more = self._comers - room
        queueing = [one.consumer.title for one in self._demands if one.pods > one.starting_pods]
        who = f": {some(queueing)} may queue" if queueing else ""
        if more > 0:
            wait = "waits" if more == 1 else "wait"
            yield f"a node holds {room} of the pods at a time. If they spread evenly, {more} more {wait}{who}"

    def _pending(self, slots: int, taken: Sequence[int] = (), unit: str = "") -> Iterator[str]:
        """Yield the reasons why long-running pods or the new pods of an update stay Pending.

        Args:
            slots: Number of slots of a board.
            taken: Number of slots that a pod takes, one number for each workload. Default: the number of boards that
                the pod takes.
            unit: Word for a slot if slots count memory (``units``); otherwise empty.
        """
        each = list(zip(self._demands, taken or [one.boards for one in self._demands], strict=True))
        least = _total(one.least_for_each_board * count for one, count in each)
        if least > slots and unit:
            yield (
                f"the long-running pods take {ceil(least)} of the {slots} {unit}, so some stay Pending: give them "
                "less memory, or another GPU"
            )
        elif least > slots:
            wanted, has = ceil(least * self._hardware.gpus), self._hardware.gpus * slots
            yield f"the long-running pods need {wanted} slots on a node that has {has}, so some stay Pending"
        else:
            yield from self._stuck(one for one, count in each if least + one.new_for_each_board * count > slots)

    @staticmethod
    def _stuck(those: Iterable[Demand]) -> Iterator[str]:
        names = [one.consumer.title for one in those if one.new_pods]
        if names:
            yield (
                f"an update of {some(names)} finds no room for a new pod next to the old one: set strategy.type "
                "'Recreate', or maxSurge 0"
            )

    def _apart(self, most: int, slots: int, taken: Sequence[int], unit: str, shown: int = 1) -> str:
        """Return text that lists sets of pods that need more memory than a board has; empty if there are no such sets.

        Args:
            most: Memory of the board, in MiB or in units of memory.
            slots: Largest number of pods that share the board.
            taken: Memory of a pod of each workload, in the same unit as ``most``.
            unit: Unit of memory in the text, such as ``GiB``.
            shown: Divisor that converts ``taken`` to ``unit``, for example 1024 from MiB to GiB. Default: 1.
        """
        pods = [(mib, one.pods, 1) for mib, one in zip(taken, self._demands, strict=True)]
        sets = []
        for one in conflicts(most, slots, pods, limit=_MOST_SETS, budget=_MOST_STEPS)[0]:
            each = [
                f"{f'{count} x ' if count > 1 else ''}{self._demands[i].consumer.title} {taken[i] // shown}"
                for i, count in list(one.items())[:MOST_NAMED]
            ]
            sets.append(f"{' + '.join(each)}{' + ...' if len(one) > MOST_NAMED else ''} {unit}")
        return ", ".join(sets)

    def _what_is_unknown(self) -> str:
        pods = f"{some(self._unknown)} {verb('state', self._unknown)} no memory" if self._unknown else ""
        board = "the memory of the board is not known" if self._hardware.mib is None else ""
        return " and ".join(filter(None, (pods, board)))

    # Recommendations

    def _exclusive(self, *reasons: str) -> SharingRecommendation:
        room = most_pods(self._hardware.gpus, sorted((one.boards, one.pods) for one in self._demands))
        reasons = (self._count, *reasons, *self._pending(1), *self._waiting(room))
        return self._made("exclusive", Sharing.none(), reasons, room)

    def _mps(self) -> SharingRecommendation:
        mib, largest, room = self._mib or 0, self._sizes[-1][0], min(self._hardware.gpus * self._needed, self._comers)
        reasons = (
            f"{self._count}: {self._needed} replicas",
            f"MPS limits each pod to {mib // self._needed} of the {mib} MiB of {self._hardware.board}, and the largest "
            f"pod takes {largest} MiB",
            "a fault in one pod may end all pods on that GPU",
            *self._waiting(room),
        )
        return self._made("mps", Sharing.mps(replicas=self._needed, rename_by_default=self._is_renamed), reasons, room)

    def _vram_units(self, against: Sequence[str]) -> SharingRecommendation | None:
        if self._hardware.gpus > 1 or self._mib is None or any(one.is_wide for one in self._demands):
            return None
        made = memory_slots(self._mib, self._sizes[0][0], self._sizes[-1][0])
        if made is None:
            return None
        units = [made.of(one.mib or 0) for one in self._demands]
        apart = self._apart(made.slots, made.slots, units, "units")
        keeps = f"the scheduler then keeps the sum of the budgets within a board, {made.slots} units of {made.unit}"
        asked = [f"{one.consumer.title} {count}" for one, count in zip(self._demands, units, strict=True)]
        reasons = (
            self._count,
            keeps + (f"; {apart} do not fit together, so they wait for each other" if apart else ""),
            f"pods then request units: {some(asked)} (GpuRequest(vram=...) does so if its GpuProfile has this sharing)",
            *self._pending(made.slots, units, "units"),
            *against,
        )
        sharing = Sharing.vram_units(vram=f"{self._mib}Mi", unit=made.unit, rename_by_default=self._is_renamed)
        room = most_pods(made.slots, [(made.of(mib), pods) for mib, pods in self._sizes])
        return self._made("vram-units", sharing, reasons, room)

    def _time_slicing(self, against: Sequence[str]) -> SharingRecommendation:
        elsewhere = f"{_NOT_BOTH}: use MIG, DRA, or a second node pool with its own configuration"
        mixed = (elsewhere,) if self._is_mixed else ()
        if wide := self._why_wide():
            return self._exclusive(wide, *mixed, *against)
        replicas, board, capped = max(2, self._needed), self._hardware.board, list[str]()
        if self._mib is None:
            return self._sliced(replicas, *self._of_unknown(replicas), *mixed, *against)
        most = self._mib // self._sizes[0][0]
        if most < replicas:
            replicas = most
            capped = [f"{self._mib} MiB hold at most {most} smallest pods, {memory_sum(self._sizes[0][:1])} each"]
        # ``safe``: largest number of pods whose memory fits the board, whichever pods share it.
        mib = self._mib
        safe = bisect_left(range(2, replicas + 1), True, key=lambda n: worst_mib(n, self._meeting) > mib) + 1
        if safe >= 2 and self._least <= safe:
            held = self._largest(safe)
            which = f"the {safe} largest budgets" if len(held) == safe else "all budgets"
            what = f"{mib} MiB of {board} hold {which}, {memory_sum(held)}, together"
            if safe == replicas:
                return self._sliced(safe, what, *capped, *against)
            more = f"{safe + 1} of them could take {worst_mib(safe + 1, self._meeting)} MiB"
            return self._sliced(safe, f"{what}; {more}", *mixed, *against)
        if safe < 2 and self._least <= 1:
            why = (
                f"the two largest pods, {memory_sum(self._largest(2))}, are more than the {mib} MiB of {board}, and "
                "without sharing the GPUs suffice for the long-running pods"
            )
            return self._exclusive(why, *mixed, *against)
        worst = worst_mib(replicas, self._meeting)
        why = (
            f"memory may run out: the {replicas} largest pods take {worst} MiB, {100 * worst // mib} % of the "
            f"{mib} MiB of {board}, and the scheduler may place them together"
        )
        return self._sliced(replicas, *capped, why, *mixed, *against)

    def _largest(self, count: int) -> list[int]:
        return [mib for mib, pods, _ in reversed(self._meeting) for _ in range(min(pods, count))][:count]

    def _of_unknown(self, replicas: int) -> Iterator[str]:
        """Yield warnings that ``replicas`` pods may exceed a board's memory, if the memory of board or pods is unknown.

        The first warning lists pods with known memory that do not fit together, if there are any.
        """
        mib, board = self._hardware.mib, self._hardware.board
        ways = [
            *(["set GpuRequest(vram=...)"] if self._unknown else []),
            *([] if mib else ["set GpuNode(vram=...)"]),
        ]
        shown, unit = unit_of(one.mib for one in self._demands if one.mib is not None)
        apart = mib and self._apart(mib, replicas, [one.mib or 0 for one in self._demands], unit, shown)
        if apart:
            yield (
                f"memory may run out: {apart} do not fit together on the {mib} MiB of {board}, and the scheduler may "
                "place them together"
            )
        yield (f"{self._what_is_unknown()}, so it may not suffice for {replicas} pods at once: {' and '.join(ways)}")

    def _sliced(self, replicas: int, *reasons: str) -> SharingRecommendation:
        replicas = min(replicas, MOST_SLOTS)
        sharing = Sharing.time_slicing(replicas=replicas, rename_by_default=self._is_renamed)
        room = min(self._hardware.gpus * replicas, sum(one.pods for one in self._demands))
        reasons = (f"{self._count}: {replicas} replicas", *reasons, *self._pending(replicas), *self._waiting(room))
        return self._made("time-slicing", sharing, reasons, room)

    def _mig(self, why: str) -> SharingRecommendation:
        made = mig_choice(self._hardware, self._demands)
        if not any(made.layouts) and not any(one.devices for one in self._demands):
            return self._exclusive("the pods that take whole boards leave none for MIG devices")
        reasons = (
            self._count,
            f"{why}: with the MIG strategy 'mixed', {self._hardware.board} offers {made.in_words}",
            *self._lacking(made),
            *(f"{some([one.consumer.title for one in who])} should request {it}" for it, who in made.asks.items()),
        )
        return self._made("mig", Sharing.none(), reasons, made.pods, made.layout)

    def _kept(self) -> SharingRecommendation:
        """Return the recommendation to keep the MIG layout that the inventory declares."""
        made = kept_choice(self._hardware, self._demands)
        strategy, board = "single" if self._hardware.is_single else "mixed", self._hardware.board
        reasons = (
            f"the inventory sets the MIG layout: with the MIG strategy '{strategy}', {board} offers {made.in_words}",
            *([] if self._demands else ["none of the workloads can run on this node or pool"]),
            *self._lacking(made),
        )
        return self._made("mig", Sharing.none(), reasons, made.pods, made.layout)

    def _made(
        self, mode: Mode, sharing: Sharing, reasons: tuple[str, ...], pods_at_once: int, layout: Layout | None = None
    ) -> SharingRecommendation:
        return SharingRecommendation(
            node="",
            mode=mode,
            sharing=sharing,
            mig_layout=layout,
            reasons=reasons,
            workloads=tuple(dict.fromkeys(one.consumer.title for one in self._demands)),
            pods_at_once=pods_at_once,
        )

    def _lacking(self, made: MigChoice) -> Iterator[str]:
        if made.missing:
            yield f"a node lacks {', '.join(made.missing)} for its pods"
        if not made.has_room_to_update:
            yield from self._stuck(self._demands)


def _total(numbers: Iterable[Fraction]) -> Fraction:
    return sum(numbers, Fraction())
