"""The verdict of a capacity plan in sentences."""

from __future__ import annotations

from gpu_constructs.capacity.planned import PlanData
from gpu_constructs.capacity.report.words import (
    Statement,
    counted,
    first_that_holds,
    listed,
    percent,
    sentence,
    subjects,
)
from gpu_constructs.capacity.wording import some

_NOT_SHARED = "No two pods share a device; how much memory some of them have is not known."


def verdict(plan: PlanData) -> list[Statement]:
    """Return the sentences on whether it fits: pods, then memory, then updates and power if they matter."""
    stuck = sum(problem.kind == "rollout" for problem in plan.problems)
    over = [rack for rack, most in plan.power.rack_watts.items() if plan.power.racks.get(rack, 0) > most]
    which = f"{'Rack' if len(over) == 1 else 'Racks'} {listed(over)}"
    said = (
        (True, _placement(plan)),
        (plan.consumers, _memory(plan)),
        (stuck, Statement("bad", f"{counted(stuck, 'update')} would wait forever.")),
        (over, Statement("bad", f"{which} may draw less than the boards do at their power limits.")),
    )
    return [statement for holds, statement in said if holds]


def _placement(plan: PlanData) -> Statement:
    condition = _condition(plan)
    waiting = sum(each.waiting for each in plan.consumers)
    wait = f"not at once: {waiting:,} of {counted(_pods(plan), 'pod')} {'waits' if waiting == 1 else 'wait'}."
    fits = f"What always runs {condition[:1].lower()}{condition[1:]}" if condition else "What always runs fits"
    return first_that_holds(
        (not plan.consumers, "good", "Nothing asks for GPUs."),
        (plan.always_fits == "no", "bad", "Does not fit: not even what always runs has a place."),
        (
            plan.always_fits == "undecided",
            "unknown",
            "Undecided: neither a place for all that always runs was found, nor that none is.",
        ),
        (plan.all_fits == "no", "warn", f"{condition}; but {wait}" if condition else f"Everything fits, but {wait}"),
        (plan.all_fits == "undecided", "unknown", f"{fits}; whether everything does at once is undecided."),
        (condition, "unknown", f"{condition}."),
        (True, "good", "Everything fits: every pod has a place at once."),
    )


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
    pods, is_known = _pods(plan), all(one.device.vram_mib is not None for one in devices)
    wanted = [
        (one.worst_mib / one.device.vram_mib, percent(one.worst_mib, one.device.vram_mib), node, one.device)
        for node in plan.nodes
        for one in node.devices
        if one.device.vram_mib and one.worst_mib > one.device.vram_mib
    ]
    _, most, node, device = max(wanted, key=lambda one: one[0], default=(0, 0, None, None))
    at_worst = f" At worst {most} % are wanted of {node.title} {device.title}." if node and device else ""
    return first_that_holds(
        (plan.vram == "unknown", "unknown", f"Memory is not known: {_what_is_unknown(plan)}."),
        (
            plan.vram == "undecided",
            "unknown",
            "Memory is undecided: the search for a placement that it allows gave up.",
        ),
        (
            plan.vram == "depends",
            "warn",
            f"Memory depends on who meets whom: some pods do not go together.{at_worst}",
        ),
        (
            plan.vram == "overcommitted",
            "bad",
            f"Memory is overcommitted: wherever the pods go, it runs out somewhere.{at_worst}",
        ),
        (
            pods and not any(one.seats for one in devices),
            "unknown",
            "No pod has a place, so memory was not looked at.",
        ),
        (
            pods > 1 and any(one.device.slots > 1 for one in devices),
            "good",
            "Memory is safe: whichever pods meet on a device, it holds them.",
        ),
        (is_known, "good", "Memory is safe: no two pods share a device."),
        (True, "good", _NOT_SHARED),
    )


def _what_is_unknown(plan: PlanData) -> str:
    blank = [node.offer.name for node in plan.nodes if any(one.device.vram_mib is None for one in node.devices)]
    silent = any(one.has_unknown for node in plan.nodes for one in node.devices)
    pods = "not every pod says how much it takes"
    boards = f"nobody says how much the GPUs of {some(list(dict.fromkeys(blank)), 3)} have"
    return ", and ".join([*([pods] if silent or not blank else []), *([boards] if blank else [])])
