"""A capacity plan as tables for a terminal and for Markdown, and its differences from another plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpu_constructs.capacity.planned import PlanData
from gpu_constructs.capacity.report import words

Rows = list[tuple[str, ...]]
_NONE = "-"


def resources(plan: PlanData) -> Rows:
    """Return the slots of each resource as rows of a table. The first row contains the headings."""
    rows = [(name, *map(str, (one.total, one.wanted, one.left))) for name, one in plan.stock.items()]
    return [("resource", "slots", "requested", "free"), *rows]


def nodes(plan: PlanData) -> Rows:
    """Return the devices of each node as rows of a table. The first row contains the headings."""
    rows = [
        (
            words.name(node),
            device.title,
            node.offer.sharing or "exclusive",
            f"{device.planned.used_slots}/{device.planned.device.slots}",
            words.memory_or(device.planned.device.vram_mib),
            words.state(device.planned).text,
        )
        for node in plan.nodes
        for device in words.device_rows(node)
    ]
    return [("node", "device", "sharing", "held", "memory", ""), *rows]


def workloads(plan: PlanData) -> Rows:
    """Return the workloads with GPUs as rows of a table. The first row contains the headings."""
    rows = [
        (
            each.consumer.title,
            words.pods(each.consumer),
            str(each.waiting or _NONE),
            words.takes(each.consumer),
            words.memory_or(each.consumer.vram_mib),
        )
        for each in words.most_urgent_first(plan.consumers)
    ]
    return [("workload", "pods", "wait", "each requests", "memory"), *rows]


def changes(before: PlanData, after: PlanData) -> Rows:
    """Return the differences between two capacity plans as rows of a table. The first row contains the headings.

    Args:
        before: Plan without the changes of ``--what-if``.
        after: Plan with the changes of ``--what-if``.
    """
    now, then = dict(_facts(before)), dict(_facts(after))
    rows = [(about, now.get(about, _NONE), then.get(about, _NONE)) for about in dict.fromkeys([*now, *then])]
    return [("", "now", "with the changes"), *(row for row in rows if row[1] != row[2])]


def _facts(plan: PlanData) -> Iterator[tuple[str, str]]:
    """Yield the properties of a capacity plan that ``changes`` compares, as pairs of a subject and a text.

    For example, the subject is the name of a workload, and the text is ``fits: 2 pods``.
    """
    for each in plan.consumers:
        pods = words.counted(each.placed + each.waiting, "pod")
        waits = f"{each.waiting} of {pods} {'waits' if each.waiting == 1 else 'wait'}"
        yield each.consumer.title, f"does not fit: {waits}" if each.waiting else f"fits: {pods}"
    for name, one in plan.stock.items():
        yield name, f"{one.total} slots, {one.left} free"
    for node in plan.nodes:
        for device in words.device_rows(node):
            worst = words.memory(device.planned.worst_mib)
            yield f"{words.name(node)} {device.title}", f"{worst} of {words.memory_or(device.planned.device.vram_mib)}"
    for problem in plan.problems:
        yield words.PROBLEMS[problem.kind][1], "yes"


def as_markdown(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as a Markdown table. The first row contains the headings."""
    head, *rest = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    lines = [head, ["---"] * len(head), *rest]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
