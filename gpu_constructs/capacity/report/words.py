"""What every form of the capacity report says in the same words: verdicts, amounts, devices that are alike."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Literal, NamedTuple

from gpu_constructs.capacity.condition import Condition
from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.node_offer import Device, NodeOffer
from gpu_constructs.capacity.plan import (
    Conflict,
    Plan,
    PlannedConsumer,
    PlannedDevice,
    PlannedNode,
    Power,
    Problem,
    Seat,
)

Level = Literal["good", "warn", "bad", "unknown"]
"""How much a statement asks for somebody to act."""

MARKS: Mapping[Level, str] = {"good": "\u2713", "warn": "!", "bad": "\u2717", "unknown": "?"}
"""A sign of each level, for readers who do not see its colour."""

PROBLEM_TITLES = {
    "placement": "No node for a pod",
    "slots": "Too few GPUs",
    "rollout": "An update that would wait for ever",
    "waiting": "Not all at once",
    "vram": "Memory may run out",
    "power": "Power of a rack",
    "unchecked": "Fits, if",
}
"""By the kind of a problem, what it is about."""

PROBLEM_LEVELS: Mapping[str, Level] = {
    "placement": "bad",
    "slots": "bad",
    "rollout": "bad",
    "waiting": "warn",
    "vram": "warn",
    "power": "warn",
    "unchecked": "unknown",
}

# They turn the reading direction of what comes after them, so that a name reads as another.
_TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_NO_CHARACTERS = frozenset(("Cc", "Cs", "Cn", "Zl", "Zp"))


class Statement(NamedTuple):
    """A sentence, and how much it asks for somebody to act."""

    level: Level
    text: str


class DeviceRow(NamedTuple):
    """Devices of one node that are alike in everything but the board, as one row."""

    title: str
    alike: int
    planned: PlannedDevice


def readable(text: str) -> str:
    """Replace what would break a line, turn its direction, or be no character at all."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_readable, text))


def _readable(char: str) -> str:
    if char in "\n\r\t":
        return " "
    return "\ufffd" if char in _TURNING or unicodedata.category(char) in _NO_CHARACTERS else char


def sentence(text: str) -> str:
    """Begin a sentence with a capital, unless it begins with a name."""
    first = text.split(" ", 1)[0]
    return text[:1].upper() + text[1:] if first.isascii() and first.isalpha() and first.islower() else text


def memory(mib: int) -> str:
    """Give an amount of memory in the unit that suits it."""
    return f"{mib} MiB" if mib < 1024 else f"{mib / 1024:.1f} GiB"


def memory_or(mib: int | None, otherwise: str) -> str:
    """Give an amount of memory, or what to say where it is not known."""
    return otherwise if mib is None else memory(mib)


def watts(number: int) -> str:
    """Give a power."""
    return f"{number:,} W"


def percent(part: int, whole: int) -> int:
    """Give a share in percent, rounded, but so that what is too much never reads as 100."""
    share = (200 * part + whole) // (2 * whole) if whole else 0
    return max(share, 101) if part > whole > 0 else share


def counted(number: int, noun: str) -> str:
    """Give a number with its noun, in the plural where it takes it."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def some(names: Sequence[str], most: int = 3) -> str:
    """Name the first, and how many more there are."""
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most:,} more"


def listed(names: Sequence[str]) -> str:
    """Name all of them in a sentence."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def verdict(plan: Plan) -> list[Statement]:
    """Say in sentences whether it fits: pods, then memory, then updates and power where there is something to say."""
    said = [_placement(plan)]
    if plan.consumers:
        said.append(_memory(plan))
    stuck = sum(problem.kind == "rollout" for problem in plan.problems)
    if stuck:
        said.append(Statement("bad", f"{counted(stuck, 'update')} would wait for ever."))
    over = [rack for rack, most in plan.power.rack_watts.items() if plan.power.racks.get(rack, 0) > most]
    if over:
        which = "Rack" if len(over) == 1 else "Racks"
        said.append(Statement("bad", f"{which} {listed(over)} may draw less than the boards do at their power limits."))
    return said


def _placement(plan: Plan) -> Statement:
    if not plan.consumers:
        return Statement("good", "Nothing asks for GPUs.")
    pods = sum(each.placed + each.waiting for each in plan.consumers)
    waiting = sum(each.waiting for each in plan.consumers)
    if plan.always_fits == "no":
        return Statement("bad", "Does not fit: not even what always runs has a place.")
    if plan.always_fits == "undecided":
        return Statement("unknown", "Undecided: neither a place for all that always runs was found, nor that none is.")
    condition = _condition(plan)
    if plan.all_fits == "no":
        wait = f"not at once: {waiting:,} of {counted(pods, 'pod')} {'waits' if waiting == 1 else 'wait'}."
        return Statement("warn", f"{condition}; but {wait}" if condition else f"Everything fits, but {wait}")
    if plan.all_fits == "undecided":
        fits = f"What always runs {condition[:1].lower()}{condition[1:]}" if condition else "What always runs fits"
        return Statement("unknown", f"{fits}; whether everything does at once is undecided.")
    if condition:
        return Statement("unknown", f"{condition}.")
    return Statement("good", "Everything fits: every pod has a place at once.")


def _condition(plan: Plan) -> str:
    """Return the condition under which it fits, and how many more there are; empty where it simply fits."""
    if not plan.conditions:
        return ""
    first, more = plan.conditions[0], len(plan.conditions) - 1
    about = subjects(plan).get(-1 if first.subject is None else first.subject)
    others = f", and {counted(more, 'more condition')} {'holds' if more == 1 else 'hold'}" if more else ""
    return sentence(first.text) + (f" ({about})" if about else "") + others


def _memory(plan: Plan) -> Statement:
    devices = [device for node in plan.nodes for device in node.devices]
    if plan.vram == "safe":
        pods = sum(each.placed + each.waiting for each in plan.consumers)
        if pods and not any(one.seats for one in devices):
            return Statement("unknown", "No pod has a place, so memory was not looked at.")
        if pods > 1 and any(one.device.slots > 1 for one in devices):
            return Statement("good", "Memory is safe: whichever pods meet on a device, it holds them.")
        is_known = all(one.device.vram_mib is not None for one in devices)
        return Statement("good", "Memory is safe: no two pods share a device." if is_known else _NOT_SHARED)
    if plan.vram == "unknown":
        return Statement("unknown", f"Memory is not known: {_what_is_unknown(plan)}.")
    if plan.vram == "undecided":
        return Statement("unknown", "Memory is undecided: the search for a placement that it allows gave up.")
    fullest = max(
        (
            (device.worst_mib / device.device.vram_mib, f"{node.title} {device.device.title}", device)
            for node in plan.nodes
            for device in node.devices
            if device.device.vram_mib
        ),
        key=lambda one: one[0],
        default=None,
    )
    at_worst = ""
    if fullest and fullest[0] > 1:
        _, where, device = fullest
        at_worst = f" At worst {percent(device.worst_mib, device.device.vram_mib or 0)} % are wanted of {where}."
    if plan.vram == "depends":
        return Statement("warn", f"Memory depends on who meets whom: some pods do not go together.{at_worst}")
    return Statement("bad", f"Memory is overcommitted: wherever the pods go, it runs out somewhere.{at_worst}")


_NOT_SHARED = "No two pods share a device; how much memory some of them have is not known."


def _what_is_unknown(plan: Plan) -> str:
    blank = [node.offer.name for node in plan.nodes if any(one.device.vram_mib is None for one in node.devices)]
    is_silent = any(one.has_unknown for node in plan.nodes for one in node.devices)
    pods = "not every pod says how much it takes"
    boards = f"nobody says how much the GPUs of {some(list(dict.fromkeys(blank)))} have"
    return ", and ".join([*([pods] if is_silent or not blank else []), *([boards] if blank else [])])


def device_rows(node: PlannedNode) -> list[DeviceRow]:
    """Put devices of a node that are alike, boards aside, in one row."""
    alike: dict[tuple[object, ...], list[PlannedDevice]] = {}
    for planned in node.devices:
        device = planned.device
        key = (device.resource, device.slots, device.vram_mib, device.profile, device.vram_each_mib)
        sums = (planned.typical_mib, planned.seated_mib, planned.worst_mib, planned.has_unknown)
        alike.setdefault((*key, *sums, tuple(planned.seats)), []).append(planned)
    return [DeviceRow(_row_title([one.device for one in group]), len(group), group[0]) for group in alike.values()]


def _row_title(devices: Sequence[Device]) -> str:
    if len(devices) == 1:
        return devices[0].title
    boards = sorted({device.gpu for device in devices})
    where = f"GPU {_ranges(boards)}"
    if devices[0].profile or len(devices) > len(boards):
        return f"{len(devices)} \u00d7 {devices[0].profile or devices[0].resource} on {where}"
    return where


def _ranges(numbers: Sequence[int]) -> str:
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return ", ".join(f"{a}" if a == b else f"{a}, {b}" if b == a + 1 else f"{a} to {b}" for a, b in runs)


def state(planned: PlannedDevice) -> Statement:
    """Say whether the memory of a device can run out."""
    vram = planned.device.vram_mib
    if vram is None:
        return Statement("unknown", "memory not known")
    if planned.seated_mib > vram:
        return Statement("bad", "runs out with these pods")
    if planned.worst_mib > vram:
        return Statement("warn", "may run out")
    if planned.has_unknown:
        return Statement("unknown", "not known of every pod")
    return Statement("good", "cannot run out" if planned.worst_mib or planned.seats else "free")


def fullness(planned: PlannedDevice) -> tuple[int, int, int]:
    """Give what sorts devices: those where memory runs out first, then those that may, then the fullest."""
    vram = planned.device.vram_mib or 0
    over = max(0, percent(planned.seated_mib, vram) - 100), max(0, percent(planned.worst_mib, vram) - 100)
    return *over, percent(planned.used_slots, planned.device.slots)


def amounts(plan: Plan, planned: PlannedDevice) -> list[tuple[str, str]]:
    """Give what is taken of a device's memory, each amount with its name."""
    vram = planned.device.vram_mib

    def said(mib: int, is_least: bool) -> str:
        return _or_more(mib, is_least, f" ({percent(mib, vram)} %)" if vram else "")

    silent = is_silent(plan, planned)
    return [
        ("typical", said(planned.typical_mib, silent)),
        ("at most", said(planned.seated_mib, silent)),
        ("worst case", said(planned.worst_mib, planned.has_unknown or silent)),
    ]


def is_silent(plan: Plan, planned: PlannedDevice) -> bool:
    """Tell whether one who holds a device says nothing of what it takes."""
    return any(plan.consumers[seat.consumer].consumer.vram_mib is None for seat in planned.seats)


def _or_more(mib: int, is_least: bool, share: str = "", least: str = "at least ") -> str:
    if is_least and not mib:
        return "?"
    return f"{least if is_least else ''}{memory(mib)}{share}"


def capacity(device: Device) -> str:
    """Say how much memory a device has, and how much each who holds it may take where that is enforced."""
    each = "" if device.vram_each_mib is None else f", {memory(device.vram_each_mib)} a pod"
    return memory_or(device.vram_mib, "not known") + each


def board(offer: NodeOffer) -> str:
    """Say what a node has: its boards, how they are shared, where it stands."""
    what = [offer.gpu_model or "board not known", offer.sharing or "not shared"]
    return ", ".join([*what, *([f"rack {offer.rack}"] if offer.rack else [])])


def each_of(node: PlannedNode) -> str:
    """Say of how many nodes this holds; empty for one."""
    return "" if node.count == 1 else f"each of {node.count:,} nodes"


def holder(plan: Plan, seat: Seat) -> str:
    """Say who holds a seat, with how many pods and slots."""
    pods = "" if seat.pods == 1 else f" \u00d7 {seat.pods}"
    slots = "" if seat.slots == seat.pods else f" ({counted(seat.slots, 'slot')})"
    return f"{plan.consumers[seat.consumer].consumer.title}{pods}{slots}"


def takes(consumer: Consumer) -> list[str]:
    """Say what each pod takes of every resource."""
    return [f"{number} {resource}" for resource, number in sorted(consumer.asks.items())]


def pods(consumer: Consumer) -> str:
    """Say how many pods there are, at once and always."""
    if consumer.is_for_each_node:
        return "one a node"
    return f"{consumer.pods:,}"


def typical(consumer: Consumer) -> int | None:
    """Give what each container takes most of the time: as much as at most, where only that is said."""
    return consumer.vram_mib if consumer.typical_vram_mib is None else consumer.typical_vram_mib


def most_urgent_first(consumers: Sequence[PlannedConsumer]) -> list[PlannedConsumer]:
    """Put those first that wait, the rest in their order."""
    return sorted(consumers, key=lambda each: each.waiting == 0)


def subjects(plan: Plan) -> Mapping[int, str]:
    """Name the objects that problems are about."""
    named: dict[int, str] = {}
    for each in plan.consumers:
        consumer = each.consumer
        named.setdefault(consumer.subject, f"{consumer.kind} {consumer.namespace}/{consumer.name}")
    return named


def problem_title(problem: Problem, named: Mapping[int, str]) -> str:
    """Say what a problem is about, with its object where it has one."""
    about = None if problem.subject is None else named.get(problem.subject)
    return PROBLEM_TITLES[problem.kind] + (f": {about}" if about else "")


def conflict(plan: Plan, found: Conflict) -> str:
    """Say in a sentence which pods do not go together."""
    who = [
        plan.consumers[index].consumer.title + ("" if number == 1 else f" \u00d7 {number}")
        for index, number in found.pods.items()
    ]
    want = "wants" if sum(found.pods.values()) == 1 else "together want"
    together, has = memory(found.together_mib), memory(found.vram_mib)
    if together == has:
        together, has = f"{found.together_mib} MiB", f"{found.vram_mib} MiB"
    return f"{listed(who)} {want} {together} of the {has} of {found.device}"


def assumptions(plan: Plan) -> list[str]:
    """List what was assumed, of the plan, its nodes and its consumers, alike ones of several as one."""
    said = dict.fromkeys(plan.notes)
    about: dict[str, dict[str, None]] = {}
    for title, note in _notes(plan):
        if note not in said and f"{title}: {note}" not in said:
            about.setdefault(note, {})[title] = None
    return [*said, *(f"{some(list(titles))}: {note}" for note, titles in about.items())]


def _notes(plan: Plan) -> Iterator[tuple[str, str]]:
    for node in plan.nodes:
        yield from ((node.offer.name, note) for note in node.offer.notes)
    for each in plan.consumers:
        notes = (note for note in each.consumer.notes if not isinstance(note, Condition))
        yield from ((each.consumer.title, note) for note in notes)


def rack_lines(plan: Plan) -> Iterator[tuple[str, int, int | None]]:
    """Give each rack with what its boards draw and what it may draw, None where nobody says."""
    for rack in sorted({*plan.power.racks, *plan.power.rack_watts}):
        yield rack, plan.power.racks.get(rack, 0), plan.power.rack_watts.get(rack)


def first(names: Iterable[str], most: int) -> list[str]:
    """Give the first of many without looking at the rest."""
    return list(islice(names, most))


def power(drawn: Power) -> str:
    """Say what all boards draw."""
    said = f"{watts(drawn.watts)} at the power limits of the boards"
    if not drawn.unknown:
        return said
    unknown = f"{counted(drawn.unknown, 'board')} of unknown power"
    return f"{said}, not counting {unknown}" if drawn.watts else unknown


def rack(name: str, drawn: int, most: int | None) -> str:
    """Say what the boards of a rack draw, and what they may."""
    if most is None:
        return f"rack {name}: {watts(drawn)}"
    return f"rack {name}: {watts(drawn)} of {watts(most)}" + (", too much" if drawn > most else "")


def short_amounts(plan: Plan, planned: PlannedDevice) -> list[tuple[str, str]]:
    """Give the amounts with no share but the greatest one's, and none where nothing is taken."""
    if not planned.worst_mib:
        return []
    vram = planned.device.vram_mib
    share = f" ({percent(planned.worst_mib, vram)} %)" if vram else ""
    silent = is_silent(plan, planned)
    # Room is short there: in words the last of them would be cut.
    least = "\u2265 "
    return [
        ("typical", _or_more(planned.typical_mib, silent, least=least)),
        ("at most", _or_more(planned.seated_mib, silent, least=least)),
        ("worst", _or_more(planned.worst_mib, planned.has_unknown or silent, share, least)),
    ]
