"""The verdict of a capacity plan: sentences that state whether the pods and their GPU memory fit.

A condition of a plan is an assumption that the plan cannot check, for example a label of a node. The report prints
conditions after "fits, if".
"""

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

_NOT_SHARED = "No two pods share a device. The memory of some devices is not known."


def verdict(plan: PlanData) -> list[Statement]:
    """Return the sentences that summarize a plan: on pods, on GPU memory, and on problems with updates and power."""
    stuck = sum(problem.kind == "rollout" for problem in plan.problems)
    over = [rack for rack, most in plan.power.rack_watts.items() if plan.power.racks.get(rack, 0) > most]
    which, supply = (f"Rack {listed(over)}", "has") if len(over) == 1 else (f"Racks {listed(over)}", "have")
    rows = (
        (True, _placement(plan)),
        (plan.consumers, _memory(plan)),
        (stuck, Statement("bad", f"{counted(stuck, 'update')} would wait forever.")),
        (over, Statement("bad", f"{which} {supply} less power than the boards draw at their power limits.")),
    )
    return [statement for holds, statement in rows if holds]


def _placement(plan: PlanData) -> Statement:
    """Return the sentence that states whether every pod has room on a node."""
    condition = _condition(plan)
    waiting = sum(each.waiting for each in plan.consumers)
    wait = f"not at once: {waiting:,} of {counted(_pods(plan), 'pod')} {'waits' if waiting == 1 else 'wait'}."
    fits = condition or "The long-running pods fit"
    return first_that_holds(
        (not plan.consumers, "good", "No pod requests GPUs."),
        (plan.always_fits == "no", "bad", "Does not fit: not even the long-running pods have a place."),
        (
            plan.always_fits == "undecided",
            "unknown",
            "Undecided: the search found no place for all long-running pods, and no proof that none exists.",
        ),
        (plan.all_fits == "no", "warn", f"{condition}; but {wait}" if condition else f"Everything fits, but {wait}"),
        (plan.all_fits == "undecided", "unknown", f"{fits}. It is unknown whether all pods fit at once."),
        (condition, "unknown", f"{condition}."),
        (True, "good", "Everything fits: every pod has a place at once."),
    )


def _pods(plan: PlanData) -> int:
    """Return the total number of pods in the plan, including the pods without room on a node."""
    return sum(each.placed + each.waiting for each in plan.consumers)


def _condition(plan: PlanData) -> str:
    """Return the first condition on which the pods fit, and how many more there are; empty if there is no condition."""
    if not plan.conditions:
        return ""
    first, more = plan.conditions[0], len(plan.conditions) - 1
    about = subjects(plan).get(-1 if first.subject is None else first.subject)
    others = f", and {counted(more, 'more condition')} {'holds' if more == 1 else 'hold'}" if more else ""
    return sentence(first.text) + (f" ({about})" if about else "") + others


def _memory(plan: PlanData) -> Statement:
    """Return the sentence that states whether the memory of a GPU can run out."""
    devices = [device for node in plan.nodes for device in node.devices]
    pods, is_known = _pods(plan), all(one.device.vram_mib is not None for one in devices)
    wanted = [
        (one.worst_mib / one.device.vram_mib, percent(one.worst_mib, one.device.vram_mib), node, one.device)
        for node in plan.nodes
        for one in node.devices
        if one.device.vram_mib and one.worst_mib > one.device.vram_mib
    ]
    _, most, node, device = max(wanted, key=lambda one: one[0], default=(0, 0, None, None))
    at_worst = f" In the worst case, pods need {most} % of {node.title} {device.title}." if node and device else ""
    return first_that_holds(
        (plan.vram == "unknown", "unknown", f"Memory is not known: {_what_is_unknown(plan)}."),
        (
            plan.vram == "undecided",
            "unknown",
            "Memory may run out: the search for a placement with enough memory gave up.",
        ),
        (
            plan.vram == "depends",
            "warn",
            f"Memory depends on the placement: some pods do not fit together.{at_worst}",
        ),
        (
            plan.vram == "overcommitted",
            "bad",
            f"Memory does not suffice: on every placement, it runs out on some device.{at_worst}",
        ),
        (
            pods and not any(one.seats for one in devices),
            "unknown",
            "No pod has a place, so the plan did not check memory.",
        ),
        (
            pods > 1 and any(one.device.slots > 1 for one in devices),
            "good",
            "Memory is safe: it suffices for any pods that can share a device.",
        ),
        (is_known, "good", "Memory is safe: no two pods share a device."),
        (True, "good", _NOT_SHARED),
    )


def _what_is_unknown(plan: PlanData) -> str:
    """Return a clause that names the pods or nodes with unknown GPU memory."""
    blank = [node.offer.name for node in plan.nodes if any(one.device.vram_mib is None for one in node.devices)]
    silent = any(one.has_unknown for node in plan.nodes for one in node.devices)
    pods = "not every pod states how much it takes"
    boards = f"the inventory does not state the memory of {some(list(dict.fromkeys(blank)), 3)}"
    return ", and ".join([*([pods] if silent or not blank else []), *([boards] if blank else [])])
