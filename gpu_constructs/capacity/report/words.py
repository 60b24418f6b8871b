"""Texts that all forms of the capacity report share: amounts of memory, names of devices, and sentences.

A device is a GPU or a MIG device. A slot is one unit of an extended resource that a node advertises, for example one of
several replicas of a shared GPU. A consumer is a workload whose pods request GPUs.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Literal, NamedTuple

from gpu_constructs.capacity.consumer import Condition, Consumer
from gpu_constructs.capacity.gathered import grouped
from gpu_constructs.capacity.planned import (
    Conflict,
    Device,
    PlanData,
    PlannedConsumer,
    PlannedDevice,
    PlannedNode,
    Problem,
    Seat,
)
from gpu_constructs.capacity.wording import some
from gpu_constructs.errors import sentence as sentence

Level = Literal["good", "warn", "bad", "unknown"]
"""Urgency of a statement in a report: ``bad`` is the most urgent one."""

MARKS: Mapping[Level, str] = {"good": "\u2713", "warn": "!", "bad": "\u2717", "unknown": "?"}
"""Character for each level of urgency, for readers who cannot see its color."""

PROBLEMS: Mapping[str, tuple[Level, str]] = {
    "placement": ("bad", "No node for a pod"),
    "slots": ("bad", "Too few GPUs"),
    "rollout": ("bad", "An update that would wait forever"),
    "waiting": ("warn", "Not all at once"),
    "vram": ("warn", "Memory may run out"),
    "power": ("warn", "Power of a rack"),
    "unchecked": ("unknown", "Fits, if"),
}
"""Level of urgency and title for each kind of problem in a plan."""

# Characters that change the reading direction of the following text, so that one name can look like another.
_TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_NO_CHARACTERS = frozenset(("Cc", "Cs", "Cn", "Zl", "Zp"))


class Statement(NamedTuple):
    """A sentence in a report, with a level of urgency that decides its color."""

    level: Level
    text: str


def first_that_holds(*rows: tuple[object, Level, str]) -> Statement:
    """Return the statement that belongs to the first true condition.

    Args:
        rows: Possible statements, each with a condition, a level of urgency and a text.
    """
    return next(Statement(level, text) for holds, level, text in rows if holds)


class DeviceRow(NamedTuple):
    """One row of a table of devices, for all devices of a node that differ only in their board number.

    Attributes:
        title: Title of the row, such as ``GPU 0 to 3``.
        alike: Number of devices that the row stands for.
        planned: One of these devices, with the pods that the plan places on it.
    """

    title: str
    alike: int
    planned: PlannedDevice

    @property
    def slots(self) -> str:
        """Text with the number of used slots and of all slots of a device, such as ``1 of 4 slots``."""
        each = " each" if self.alike > 1 else ""
        return f"{self.planned.used_slots:,} of {counted(self.planned.device.slots, 'slot')}{each}"


# Texts and amounts


def readable(text: str) -> str:
    """Return text with spaces for tabs and line breaks, and U+FFFD for control codes and changes of text direction."""
    return text if text.isascii() and text.isprintable() else "".join(map(_readable, text))


def _readable(char: str) -> str:
    if char in "\n\r\t":
        return " "
    return "\ufffd" if char in _TURNING or unicodedata.category(char) in _NO_CHARACTERS else char


def memory(mib: int) -> str:
    """Return a text for an amount of memory: in MiB below 1024 MiB, otherwise in GiB."""
    return f"{mib} MiB" if mib < 1024 else f"{mib / 1024:.1f} GiB"


def memory_or(mib: int | None, otherwise: str = "?") -> str:
    """Return a text for an amount of memory, or the text ``otherwise`` if the amount is not known."""
    return otherwise if mib is None else memory(mib)


def watts(number: int) -> str:
    """Return a text for a power in watts, such as ``1,200 W``."""
    return f"{number:,} W"


def percent(part: int, whole: int) -> int:
    """Return the amount ``part`` in percent of ``whole``, as a whole number.

    If ``part`` is larger than ``whole``, the result is at least 101.
    """
    share = (200 * part + whole) // (2 * whole) if whole else 0
    return max(share, 101) if part > whole > 0 else share


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, which is plural if the number is not 1."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def listed(names: Sequence[str]) -> str:
    """Return names as a list in a sentence: ``a, b and c``."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


# Nodes and devices


def name(node: PlannedNode) -> str:
    """Return the name of a node or pool, with the number of its nodes if it has several."""
    return node.title + (f" (each of {node.count:,} nodes)" if node.count > 1 else "")


def about(node: PlannedNode) -> str:
    """Return a short description of a node: its boards, how pods share the boards, its rack and its power."""
    offer = node.offer
    rack = f"rack {offer.rack}" if offer.rack else ""
    drawn = "" if node.watts is None else watts(node.watts)
    return ", ".join(filter(None, (offer.gpu_model or "board not known", offer.sharing or "not shared", rack, drawn)))


def device_rows(node: PlannedNode) -> list[DeviceRow]:
    """Return the rows of a table of a node's devices. Devices that differ only in their board number share a row."""

    def key(planned: PlannedDevice) -> object:
        device = planned.device
        kind = (device.resource, device.slots, device.vram_mib, device.profile, device.vram_each_mib)
        sums = (planned.typical_mib, planned.seated_mib, planned.worst_mib, planned.has_unknown)
        return *kind, *sums, tuple(planned.seats)

    alike = grouped((key(planned), planned) for planned in node.devices)
    return [DeviceRow(_row_title([one.device for one in group]), len(group), group[0]) for group in alike.values()]


def _row_title(devices: Sequence[Device]) -> str:
    """Return the title of a table row, for example ``GPU 0 to 3`` for four boards."""
    if len(devices) == 1:
        return devices[0].title
    boards = sorted({device.gpu for device in devices})
    where = f"GPU {_ranges(boards)}"
    what = devices[0].profile or (devices[0].resource if len(devices) > len(boards) else "")
    return f"{len(devices)} \u00d7 {what} on {where}" if what else where


def _ranges(numbers: Sequence[int]) -> str:
    """Return numbers as text in which a range replaces consecutive numbers, for example ``0 to 3, 5``."""
    by_start = groupby(enumerate(numbers), key=lambda one: one[1] - one[0])
    runs = [[number for _, number in run] for _, run in by_start]
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)


def state(planned: PlannedDevice) -> Statement:
    """Return a statement on whether the pods can exhaust the memory of a device, such as ``may run out``."""
    vram = planned.device.vram_mib
    if vram is None:
        return Statement("unknown", "memory not known")
    return first_that_holds(
        (planned.seated_mib > vram, "bad", "runs out with these pods"),
        (planned.worst_mib > vram, "warn", "may run out"),
        (planned.has_unknown, "unknown", "unknown for some pods"),
        (planned.worst_mib or planned.seats, "good", "cannot run out"),
        (True, "good", "free"),
    )


def fullness(planned: PlannedDevice) -> tuple[int, int, int]:
    """Return a sort key for the urgency of a device. The most urgent device has the highest key.

    The most urgent devices are those whose memory runs out in the planned placement. Next are those whose memory can
    run out in another placement. The share of used slots decides the order of all other devices.
    """
    vram = planned.device.vram_mib or 0
    over = max(0, percent(planned.seated_mib, vram) - 100), max(0, percent(planned.worst_mib, vram) - 100)
    return *over, percent(planned.used_slots, planned.device.slots)


def amounts(plan: PlanData, planned: PlannedDevice, *, short: bool = False) -> list[tuple[str, str]]:
    """Return the memory that pods take on a device as three pairs of a label and an amount.

    Examples of pairs are ``("typical", "4.0 GiB (50 %)")`` and ``("at most", "?")``. The first amount is the memory
    that the pods on the device usually take. The second amount is the most memory that these pods can take together;
    ``?`` if it is unknown. The third amount, the worst case, is the largest memory that pods can take on the device in
    any placement.

    Args:
        plan: Capacity plan of an app.
        planned: Device, with the pods that the plan places on it.
        short: Whether to return short texts, in which only the third amount has a percentage; False by default.
    """
    vram, silent = planned.device.vram_mib, is_silent(plan, planned)
    least = "\u2265 " if short else "at least "

    def amount(mib: int, is_least: bool, has_share: bool) -> str:
        if is_least and not mib:
            return "?"
        share = f" ({percent(mib, vram)} %)" if vram and has_share else ""
        return f"{least if is_least else ''}{memory(mib)}{share}"

    return [
        ("typical", amount(planned.typical_mib, silent, not short)),
        ("at most", amount(planned.seated_mib, silent, not short)),
        ("worst" if short else "worst case", amount(planned.worst_mib, planned.has_unknown or silent, True)),
    ]


def taken(plan: PlanData, planned: PlannedDevice) -> str:
    """Return the memory that pods take on a device as one line of text; empty if the pods take none."""
    short = amounts(plan, planned, short=True) if planned.worst_mib else []
    return "; ".join(f"{what} {amount}" for what, amount in short)


def is_silent(plan: PlanData, planned: PlannedDevice) -> bool:
    """Check whether at least one pod that the plan places on the device does not state its GPU memory."""
    return any(plan.consumers[seat.consumer].consumer.vram_mib is None for seat in planned.seats)


def capacity(device: Device) -> str:
    """Return a text for the memory of a device, and for the memory limit of each pod if MPS enforces one."""
    each = "" if device.vram_each_mib is None else f", {memory(device.vram_each_mib)} a pod"
    return memory_or(device.vram_mib, "not known") + each


def holder(plan: PlanData, seat: Seat) -> str:
    """Return text for the pods of one workload on a device, such as ``ml/llm (4 slots)``.

    The text omits the number of pods if it is 1. It omits the number of slots if each pod uses one slot.

    Args:
        plan: Capacity plan of an app.
        seat: Pods of the workload on the device, and the slots that these pods use.
    """
    pods = "" if seat.pods == 1 else f" \u00d7 {seat.pods}"
    slots = "" if seat.slots == seat.pods else f" ({counted(seat.slots, 'slot')})"
    return f"{plan.consumers[seat.consumer].consumer.title}{pods}{slots}"


def holders(plan: PlanData, planned: PlannedDevice, *, numbered: bool = False) -> list[str]:
    """Return one text for each workload on a device: its name, and the numbers of its pods and slots there.

    If ``numbered`` is True, each text begins with its position in the list, counted from 1.
    """
    return [f"{f'{number} ' * numbered}{holder(plan, seat)}" for number, seat in enumerate(planned.seats, 1)]


# Consumers, problems, the rest


def takes(consumer: Consumer) -> str:
    """Return a text for the resources that a pod of a workload requests, such as ``1 nvidia.com/gpu``."""
    return ", ".join(f"{number} {resource}" for resource, number in sorted(consumer.asks.items()))


def pods(consumer: Consumer) -> str:
    """Return a text for the number of pods of a workload, such as ``3``, or ``one a node`` for a DaemonSet."""
    return "one a node" if consumer.is_for_each_node else f"{consumer.pods:,}"


def most_urgent_first(consumers: Sequence[PlannedConsumer]) -> list[PlannedConsumer]:
    """Return the workloads of a plan in a new order: first those with pods that have no room on a node."""
    return sorted(consumers, key=lambda each: each.waiting == 0)


def subjects(plan: PlanData) -> Mapping[int, str]:
    """Return names such as ``Deployment ml/llm`` of the objects whose pods request GPUs, by index of the object."""
    consumers = [each.consumer for each in reversed(plan.consumers)]
    return {one.subject: f"{one.kind} {one.namespace}/{one.name}" for one in consumers}


def problem_title(problem: Problem, named: Mapping[int, str]) -> str:
    """Return the title of a problem, with the name of its object, such as ``Too few GPUs: Deployment ml/llm``.

    Args:
        problem: Problem of the capacity plan.
        named: Names of the objects, by index of the object.
    """
    about = None if problem.subject is None else named.get(problem.subject)
    return PROBLEMS[problem.kind][1] + (f": {about}" if about else "")


def conflicts(plan: PlanData) -> list[str]:
    """Return a sentence for each known set of pods that together need more memory than a device has."""
    more = ["more such sets exist"] if plan.has_more_conflicts else []
    return [*(conflict(plan, one) for one in plan.conflicts), *more]


def conflict(plan: PlanData, found: Conflict) -> str:
    """Return a sentence about one set of pods that together need more memory than a device has."""
    who = [
        plan.consumers[index].consumer.title + ("" if number == 1 else f" \u00d7 {number}")
        for index, number in found.pods.items()
    ]
    need = "needs" if sum(found.pods.values()) == 1 else "together need"
    together, has = memory(found.together_mib), memory(found.vram_mib)
    if together == has:
        together, has = f"{found.together_mib} MiB", f"{found.vram_mib} MiB"
    return f"{listed(who)} {need} {together}, but {found.device} has {has}"


def assumptions(plan: PlanData) -> list[str]:
    """Return the assumptions of a capacity plan as sentences: first general ones, then those about nodes and workloads.

    If an assumption concerns several nodes or workloads, one sentence names these nodes or workloads.
    """
    of_plan = dict.fromkeys(plan.notes)
    notes = dict.fromkeys(_notes(plan))
    about = grouped((note, title) for title, note in notes if not of_plan.keys() & {note, f"{title}: {note}"})
    return [*of_plan, *(f"{some(titles, 3)}: {note}" for note, titles in about.items())]


def _notes(plan: PlanData) -> Iterator[tuple[str, str]]:
    """Yield (assumption, name of the node or workload) for the assumptions about nodes and workloads."""
    yield from ((node.offer.name, note) for node in plan.nodes for note in node.offer.notes)
    of_consumers = ((each.consumer.title, note) for each in plan.consumers for note in each.consumer.notes)
    yield from ((title, note) for title, note in of_consumers if not isinstance(note, Condition))


def rack_lines(plan: PlanData) -> list[tuple[str, int, int | None]]:
    """Return a tuple for each rack: name, power of its boards in watts, and power limit in watts.

    The limit is None if the inventory declares none.
    """
    drawn, most = plan.power.racks, plan.power.rack_watts
    return [(rack, drawn.get(rack, 0), most.get(rack)) for rack in sorted({*drawn, *most})]


def power(plan: PlanData) -> str:
    """Return a text for the power of all boards together; empty if the plan has no boards."""
    drawn, unknown = plan.power.watts, plan.power.unknown
    known = f"{watts(drawn)} at the power limits of the boards" if drawn or not unknown else ""
    blank = f"{counted(unknown, 'board')} of unknown power" if unknown else ""
    return ", not counting ".join(filter(None, (known, blank))) if drawn or unknown else ""
