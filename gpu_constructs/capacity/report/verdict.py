"""The verdict of a capacity plan in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from gpu_constructs.capacity.planned import PlanData, PlannedDevice
from gpu_constructs.capacity.report.words import Statement, counted, listed, percent, sentence, subjects
from gpu_constructs.capacity.wording import some

_NOT_SHARED = "No two pods share a device; how much memory some of them have is not known."


def verdict(plan: PlanData) -> list[Statement]:
    """Return the sentences on whether it fits: pods, then memory, then updates and power if they matter."""
    said = [_placement(plan)]
    if plan.consumers:
        said.append(_memory(plan))
    stuck = sum(problem.kind == "rollout" for problem in plan.problems)
    if stuck:
        said.append(Statement("bad", f"{counted(stuck, 'update')} would wait forever."))
    over = [rack for rack, most in plan.power.rack_watts.items() if plan.power.racks.get(rack, 0) > most]
    if over:
        which = "Rack" if len(over) == 1 else "Racks"
        said.append(Statement("bad", f"{which} {listed(over)} may draw less than the boards do at their power limits."))
    return said


def _placement(plan: PlanData) -> Statement:
    if not plan.consumers:
        return Statement("good", "Nothing asks for GPUs.")
    if plan.always_fits == "no":
        return Statement("bad", "Does not fit: not even what always runs has a place.")
    if plan.always_fits == "undecided":
        return Statement("unknown", "Undecided: neither a place for all that always runs was found, nor that none is.")
    condition = _condition(plan)
    if plan.all_fits == "no":
        waiting = sum(each.waiting for each in plan.consumers)
        wait = f"not at once: {waiting:,} of {counted(_pods(plan), 'pod')} {'waits' if waiting == 1 else 'wait'}."
        return Statement("warn", f"{condition}; but {wait}" if condition else f"Everything fits, but {wait}")
    if plan.all_fits == "undecided":
        fits = f"What always runs {condition[:1].lower()}{condition[1:]}" if condition else "What always runs fits"
        return Statement("unknown", f"{fits}; whether everything does at once is undecided.")
    if condition:
        return Statement("unknown", f"{condition}.")
    return Statement("good", "Everything fits: every pod has a place at once.")


def _pods(plan: PlanData) -> int:
    return sum(each.placed + each.waiting for each in plan.consumers)


def _condition(plan: PlanData) -> str:
    """Return the condition under which it fits, and how many more there are; empty if it simply fits."""
    if not plan.conditions:
        return ""
    first, more = plan.conditions[0], len(plan.conditions) - 1
    about = subjects(plan).get(-1 if first.subject is None else first.subject)
    others = f", and {counted(more, 'more condition')} {'holds' if more == 1 else 'hold'}" if more else ""
    return sentence(first.text) + (f" ({about})" if about else "") + others


def _memory(plan: PlanData) -> Statement:
    devices = [device for node in plan.nodes for device in node.devices]
    if plan.vram == "safe":
        return _safe_memory(devices, _pods(plan))
    wanted = [
        (one.worst_mib / one.device.vram_mib, f"{node.title} {one.device.title}", one)
        for node in plan.nodes
        for one in node.devices
        if one.device.vram_mib and one.worst_mib > one.device.vram_mib
    ]
    at_worst = ""
    if wanted:
        _, where, device = max(wanted, key=lambda one: one[0])
        at_worst = f" At worst {percent(device.worst_mib, device.device.vram_mib or 0)} % are wanted of {where}."
    said = {
        "unknown": Statement("unknown", f"Memory is not known: {_what_is_unknown(plan)}."),
        "undecided": Statement("unknown", "Memory is undecided: the search for a placement that it allows gave up."),
        "depends": Statement("warn", f"Memory depends on who meets whom: some pods do not go together.{at_worst}"),
        "overcommitted": Statement(
            "bad", f"Memory is overcommitted: wherever the pods go, it runs out somewhere.{at_worst}"
        ),
    }
    return said[plan.vram]


def _safe_memory(devices: Sequence[PlannedDevice], pods: int) -> Statement:
    if pods and not any(one.seats for one in devices):
        return Statement("unknown", "No pod has a place, so memory was not looked at.")
    if pods > 1 and any(one.device.slots > 1 for one in devices):
        return Statement("good", "Memory is safe: whichever pods meet on a device, it holds them.")
    is_known = all(one.device.vram_mib is not None for one in devices)
    return Statement("good", "Memory is safe: no two pods share a device." if is_known else _NOT_SHARED)


def _what_is_unknown(plan: PlanData) -> str:
    blank = [node.offer.name for node in plan.nodes if any(one.device.vram_mib is None for one in node.devices)]
    silent = any(one.has_unknown for node in plan.nodes for one in node.devices)
    pods = "not every pod says how much it takes"
    boards = f"nobody says how much the GPUs of {some(list(dict.fromkeys(blank)), 3)} have"
    return ", and ".join([*([pods] if silent or not blank else []), *([boards] if blank else [])])
