"""What every form of the capacity report says in the same words: verdicts, amounts, devices that are alike."""

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

Level = Literal["good", "warn", "bad", "unknown"]
"""How urgent a statement is."""

MARKS: Mapping[Level, str] = {"good": "\u2713", "warn": "!", "bad": "\u2717", "unknown": "?"}
"""A sign of each level, for readers who do not see its colour."""

PROBLEMS: Mapping[str, tuple[Level, str]] = {
    "placement": ("bad", "No node for a pod"),
    "slots": ("bad", "Too few GPUs"),
    "rollout": ("bad", "An update that would wait forever"),
    "waiting": ("warn", "Not all at once"),
    "vram": ("warn", "Memory may run out"),
    "power": ("warn", "Power of a rack"),
    "unchecked": ("unknown", "Fits, if"),
}
"""Level and title of each kind of problem."""

# They turn the reading direction of what comes after them, so that a name reads as another.
_TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_NO_CHARACTERS = frozenset(("Cc", "Cs", "Cn", "Zl", "Zp"))


class Statement(NamedTuple):
    """A sentence with its level."""

    level: Level
    text: str


def first_that_holds(*rows: tuple[object, Level, str]) -> Statement:
    """Return the statement of the first row whose condition holds."""
    return next(Statement(level, text) for holds, level, text in rows if holds)


class DeviceRow(NamedTuple):
    """Devices of one node that are alike in everything but the board, as one row."""

    title: str
    alike: int
    planned: PlannedDevice

    @property
    def slots(self) -> str:
        """Slots that are held, in words."""
        each = " each" if self.alike > 1 else ""
        return f"{self.planned.used_slots:,} of {counted(self.planned.device.slots, 'slot')}{each}"


# Texts and amounts


def readable(text: str) -> str:
    """Return the text without what would break a line, turn its direction, or is not a character."""
    return text if text.isascii() and text.isprintable() else "".join(map(_readable, text))


def _readable(char: str) -> str:
    if char in "\n\r\t":
        return " "
    return "\ufffd" if char in _TURNING or unicodedata.category(char) in _NO_CHARACTERS else char


def sentence(text: str) -> str:
    """Return the text with a capital at its start, unless it starts with a name."""
    first = text.split(" ", 1)[0]
    return text[:1].upper() + text[1:] if first.isascii() and first.isalpha() and first.islower() else text


def memory(mib: int) -> str:
    """Return an amount of memory as people read it."""
    return f"{mib} MiB" if mib < 1024 else f"{mib / 1024:.1f} GiB"


def memory_or(mib: int | None, otherwise: str = "?") -> str:
    """Return an amount of memory, or a text if it is not known."""
    return otherwise if mib is None else memory(mib)


def watts(number: int) -> str:
    """Return a power."""
    return f"{number:,} W"


def percent(part: int, whole: int) -> int:
    """Return a share in percent, rounded, but above 100 if the part is more than the whole."""
    share = (200 * part + whole) // (2 * whole) if whole else 0
    return max(share, 101) if part > whole > 0 else share


def counted(number: int, noun: str) -> str:
    """Return a number with its noun, in the plural if it needs one."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def listed(names: Sequence[str]) -> str:
    """Return all names as a sentence lists them."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


# Nodes and devices


def name(node: PlannedNode) -> str:
    """Return the title of nodes, with their number if there are several."""
    return node.title + (f" (each of {node.count:,} nodes)" if node.count > 1 else "")


def about(node: PlannedNode) -> str:
    """Return what a node has: its boards, how they are shared, where it stands, what it draws."""
    offer = node.offer
    rack = f"rack {offer.rack}" if offer.rack else ""
    drawn = "" if node.watts is None else watts(node.watts)
    return ", ".join(filter(None, (offer.gpu_model or "board not known", offer.sharing or "not shared", rack, drawn)))


def device_rows(node: PlannedNode) -> list[DeviceRow]:
    """Return the devices of a node, those that are alike, boards aside, in one row."""

    def key(planned: PlannedDevice) -> object:
        device = planned.device
        kind = (device.resource, device.slots, device.vram_mib, device.profile, device.vram_each_mib)
        sums = (planned.typical_mib, planned.seated_mib, planned.worst_mib, planned.has_unknown)
        return *kind, *sums, tuple(planned.seats)

    alike = grouped((key(planned), planned) for planned in node.devices)
    return [DeviceRow(_row_title([one.device for one in group]), len(group), group[0]) for group in alike.values()]


def _row_title(devices: Sequence[Device]) -> str:
    if len(devices) == 1:
        return devices[0].title
    boards = sorted({device.gpu for device in devices})
    where = f"GPU {_ranges(boards)}"
    what = devices[0].profile or (devices[0].resource if len(devices) > len(boards) else "")
    return f"{len(devices)} \u00d7 {what} on {where}" if what else where


def _ranges(numbers: Sequence[int]) -> str:
    by_start = groupby(enumerate(numbers), key=lambda one: one[1] - one[0])
    runs = [[number for _, number in run] for _, run in by_start]
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)


def state(planned: PlannedDevice) -> Statement:
    """Return whether the memory of a device can run out."""
    vram = planned.device.vram_mib
    if vram is None:
        return Statement("unknown", "memory not known")
    return first_that_holds(
        (planned.seated_mib > vram, "bad", "runs out with these pods"),
        (planned.worst_mib > vram, "warn", "may run out"),
        (planned.has_unknown, "unknown", "not known of every pod"),
        (planned.worst_mib or planned.seats, "good", "cannot run out"),
        (True, "good", "free"),
    )


def fullness(planned: PlannedDevice) -> tuple[int, int, int]:
    """Return the sort key of a device: those whose memory runs out first, then those whose may, then the fullest."""
    vram = planned.device.vram_mib or 0
    over = max(0, percent(planned.seated_mib, vram) - 100), max(0, percent(planned.worst_mib, vram) - 100)
    return *over, percent(planned.used_slots, planned.device.slots)


def amounts(plan: PlanData, planned: PlannedDevice, *, short: bool = False) -> list[tuple[str, str]]:
    """Return what is taken of a device's memory, each amount with its name.

    Args:
        plan: The plan.
        planned: The device.
        short: Whether there is little room: then only the greatest amount has its share.
    """
    vram, silent = planned.device.vram_mib, is_silent(plan, planned)
    least = "\u2265 " if short else "at least "

    def said(mib: int, is_least: bool, has_share: bool) -> str:
        if is_least and not mib:
            return "?"
        share = f" ({percent(mib, vram)} %)" if vram and has_share else ""
        return f"{least if is_least else ''}{memory(mib)}{share}"

    return [
        ("typical", said(planned.typical_mib, silent, not short)),
        ("at most", said(planned.seated_mib, silent, not short)),
        ("worst" if short else "worst case", said(planned.worst_mib, planned.has_unknown or silent, True)),
    ]


def taken(plan: PlanData, planned: PlannedDevice) -> str:
    """Return the amounts of memory that are taken of a device, in one line; empty if nothing is."""
    short = amounts(plan, planned, short=True) if planned.worst_mib else []
    return "; ".join(f"{what} {amount}" for what, amount in short)


def is_silent(plan: PlanData, planned: PlannedDevice) -> bool:
    """Return whether a pod that holds a device does not state what it takes."""
    return any(plan.consumers[seat.consumer].consumer.vram_mib is None for seat in planned.seats)


def capacity(device: Device) -> str:
    """Return the memory of a device, and what each pod may take if that is enforced."""
    each = "" if device.vram_each_mib is None else f", {memory(device.vram_each_mib)} a pod"
    return memory_or(device.vram_mib, "not known") + each


def holder(plan: PlanData, seat: Seat) -> str:
    """Return who holds a seat, with how many pods and slots."""
    pods = "" if seat.pods == 1 else f" \u00d7 {seat.pods}"
    slots = "" if seat.slots == seat.pods else f" ({counted(seat.slots, 'slot')})"
    return f"{plan.consumers[seat.consumer].consumer.title}{pods}{slots}"


def holders(plan: PlanData, planned: PlannedDevice, *, numbered: bool = False) -> list[str]:
    """Return who holds slots of a device, numbered as in its bar if asked for."""
    return [f"{f'{number} ' * numbered}{holder(plan, seat)}" for number, seat in enumerate(planned.seats, 1)]


# Consumers, problems, the rest


def takes(consumer: Consumer) -> str:
    """Return what each pod takes of every resource."""
    return ", ".join(f"{number} {resource}" for resource, number in sorted(consumer.asks.items()))


def pods(consumer: Consumer) -> str:
    """Return how many pods run at once."""
    return "one a node" if consumer.is_for_each_node else f"{consumer.pods:,}"


def most_urgent_first(consumers: Sequence[PlannedConsumer]) -> list[PlannedConsumer]:
    """Return the consumers, those that wait first."""
    return sorted(consumers, key=lambda each: each.waiting == 0)


def subjects(plan: PlanData) -> Mapping[int, str]:
    """Return the names of the objects that problems are about."""
    consumers = [each.consumer for each in reversed(plan.consumers)]
    return {one.subject: f"{one.kind} {one.namespace}/{one.name}" for one in consumers}


def problem_title(problem: Problem, named: Mapping[int, str]) -> str:
    """Return what a problem is about, with its object if it has one."""
    about = None if problem.subject is None else named.get(problem.subject)
    return PROBLEMS[problem.kind][1] + (f": {about}" if about else "")


def conflicts(plan: PlanData) -> list[str]:
    """Return the sentences on pods that do not go together."""
    more = ["there are others beyond these"] if plan.has_more_conflicts else []
    return [*(conflict(plan, one) for one in plan.conflicts), *more]


def conflict(plan: PlanData, found: Conflict) -> str:
    """Return which pods do not go together."""
    who = [
        plan.consumers[index].consumer.title + ("" if number == 1 else f" \u00d7 {number}")
        for index, number in found.pods.items()
    ]
    want = "wants" if sum(found.pods.values()) == 1 else "together want"
    together, has = memory(found.together_mib), memory(found.vram_mib)
    if together == has:
        together, has = f"{found.together_mib} MiB", f"{found.vram_mib} MiB"
    return f"{listed(who)} {want} {together} of the {has} of {found.device}"


def assumptions(plan: PlanData) -> list[str]:
    """Return what was assumed of the plan, its nodes and its consumers, alike notes as one."""
    said = dict.fromkeys(plan.notes)
    notes = dict.fromkeys(_notes(plan))
    about = grouped((note, title) for title, note in notes if not said.keys() & {note, f"{title}: {note}"})
    return [*said, *(f"{some(titles, 3)}: {note}" for note, titles in about.items())]


def _notes(plan: PlanData) -> Iterator[tuple[str, str]]:
    yield from ((node.offer.name, note) for node in plan.nodes for note in node.offer.notes)
    of_consumers = ((each.consumer.title, note) for each in plan.consumers for note in each.consumer.notes)
    yield from ((title, note) for title, note in of_consumers if not isinstance(note, Condition))


def rack_lines(plan: PlanData) -> list[tuple[str, int, int | None]]:
    """Return each rack with what its boards draw and what it may draw, None if that is not declared."""
    drawn, most = plan.power.racks, plan.power.rack_watts
    return [(rack, drawn.get(rack, 0), most.get(rack)) for rack in sorted({*drawn, *most})]


def power(plan: PlanData) -> str:
    """Return what all boards draw; empty if there are none."""
    drawn, unknown = plan.power.watts, plan.power.unknown
    known = f"{watts(drawn)} at the power limits of the boards" if drawn or not unknown else ""
    blank = f"{counted(unknown, 'board')} of unknown power" if unknown else ""
    return ", not counting ".join(filter(None, (known, blank))) if drawn or unknown else ""
