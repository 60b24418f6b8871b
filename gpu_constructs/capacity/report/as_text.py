"""The capacity report for terminals and logs: plain text of at most 100 columns."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from gpu_constructs.capacity.plan import Plan, PlannedConsumer, PlannedNode, Problem
from gpu_constructs.capacity.report import words

COLUMNS = 100
_BAR = 30


def text(plan: Plan, title: str) -> str:
    """Write everything a reader needs of the plan, the verdict first."""
    lines = [*_wrapped(f"GPU capacity: {title}"), ""]
    for said in words.verdict(plan):
        lines += _wrapped(said.text, f"[{_SIGNS[said.level]}] ")
    for heading, body in (
        ("Resources", _stock(plan)),
        ("Nodes", _nodes(plan)),
        ("Who asks for GPUs", _consumers(plan)),
        ("What does not fit", _problems(plan, plan.problems)),
        ("Fits, if", _problems(plan, plan.conditions)),
        ("What does not go together", _conflicts(plan)),
        ("Power", _power(plan)),
        ("Advice", _items(plan.advice)),
        ("Assumed", _items(words.assumptions(plan))),
    ):
        section = list(body)
        if section:
            lines += ["", heading, "-" * len(heading), *section]
    return "\n".join(line.rstrip() for line in lines) + "\n"


# As wide as each other, and in any font.
_SIGNS = {"good": "ok", "warn": "! ", "bad": "X ", "unknown": "? "}


def _stock(plan: Plan) -> Iterator[str]:
    if not plan.stock:
        return
    yield _columns(("resource", "there are", "always held", "wanted", "placed", "left"), _STOCK)
    for resource, stock in plan.stock.items():
        numbers = (stock.total, stock.always, stock.wanted, stock.placed, stock.left)
        yield from _row(resource, [f"{number:,}" for number in numbers], _STOCK)


_STOCK = (46, 9, 11, 9, 9, 9)


def _nodes(plan: Plan) -> Iterator[str]:
    for number, node in enumerate(plan.nodes):
        if number:
            yield ""
        about = [words.board(node.offer), *([words.watts(node.watts)] if node.watts is not None else [])]
        alike = f" ({words.each_of(node)})" if node.count > 1 else ""
        yield from _wrapped(f"{node.title}{alike}: {', '.join(about)}")
        yield from _devices(plan, node)


def _devices(plan: Plan, node: PlannedNode) -> Iterator[str]:
    for row in words.device_rows(node):
        planned, device = row.planned, row.planned.device
        slots = f"slots {planned.used_slots:,}/{device.slots:,}"
        each = ", each" if row.alike > 1 else ""
        memory = f"memory {words.capacity(device)}, " if device.vram_mib else ""
        yield from _wrapped(
            f"{row.title}{each}: {device.resource}, {slots}, {memory}{words.state(planned).text}",
            "  ",
        )
        yield f"    slots       {_bar(planned.used_slots, device.slots)}"
        taken = (planned.typical_mib, planned.seated_mib, planned.worst_mib)
        for (name, amount), mib in zip(words.amounts(plan, planned), taken, strict=True):
            if device.vram_mib and planned.worst_mib:
                yield f"    {name:<12}{_bar(mib, device.vram_mib)} {amount}"
            elif mib:
                yield f"    {name:<12}{amount}"
        held = ", ".join(words.holder(plan, seat) for seat in planned.seats)
        yield from _wrapped(held or "nobody", "    held by     ")


def _bar(part: int, whole: int) -> str:
    """Draw a share; what is more than everything breaks out of the end."""
    full = min(_BAR, max(part > 0, _BAR * part // whole)) if whole else 0
    return f"[{'#' * full}{'.' * (_BAR - full)}{'>' if part > whole else ']'}"


def _consumers(plan: Plan) -> Iterator[str]:
    if not plan.consumers:
        return
    yield _columns(("pods of", "pods", "always", "waiting", "typical", "at most", "may run on"), _CONSUMER)
    for each in words.most_urgent_first(plan.consumers):
        yield from _consumer(each)


_CONSUMER = (36, 6, 6, 7, 9, 9, 21)


def _consumer(each: PlannedConsumer) -> Iterator[str]:
    consumer = each.consumer
    values = (
        words.pods(consumer),
        f"{consumer.least_pods:,}",
        f"{each.waiting:,}" if each.waiting else "-",
        words.memory_or(words.typical(consumer), "?"),
        words.memory_or(consumer.vram_mib, "?"),
        _short(words.some(words.first(each.nodes, 1), 1), _CONSUMER[-1] - (7 if len(each.nodes) > 1 else 0))
        + (f", +{len(each.nodes) - 1:,}" if len(each.nodes) > 1 else "")
        or "nowhere",
    )
    yield from _row(f"{consumer.title} ({consumer.kind})", values, _CONSUMER)
    yield from _wrapped(f"each takes {', '.join(words.takes(consumer))}", "    ")


def _problems(plan: Plan, problems: Iterable[Problem]) -> Iterator[str]:
    named = words.subjects(plan)
    for problem in problems:
        sign = _SIGNS[words.PROBLEM_LEVELS[problem.kind]]
        yield from _wrapped(words.problem_title(problem, named), f"[{sign}] ")
        yield from _wrapped(f"Why: {words.sentence(problem.text)}", "     ")
        yield from _wrapped(f"Way out: {words.sentence(problem.way_out)}", "     ")


def _conflicts(plan: Plan) -> Iterator[str]:
    yield from _items(words.conflict(plan, one) for one in plan.conflicts)
    if plan.has_more_conflicts:
        yield from _items(["there are others beyond these"])


def _power(plan: Plan) -> Iterator[str]:
    power = plan.power
    if not power.watts and not power.unknown:
        return
    yield from _wrapped(words.power(power))
    for rack, drawn, most in words.rack_lines(plan):
        yield from _wrapped(words.rack(rack, drawn, most), "- ")


def _items(sentences: Iterable[str]) -> Iterator[str]:
    for sentence in sentences:
        yield from _wrapped(sentence, "- ")


def _row(name: str, values: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    """Write a row of a table; a name too long for its column gets lines of its own."""
    name = words.readable(name)
    if _width(name) > widths[0]:
        yield from _wrapped(name)
        name = ""
    yield _columns((name, *values), widths)


def _columns(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Put names to the left, numbers to the right."""
    first, *rest = (
        cell + " " * (width - _width(cell))
        if number == 0 or (widths is _CONSUMER and number == len(cells) - 1)
        else " " * (width - _width(cell)) + cell
        for number, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return " ".join([first, *rest])


def _wrapped(sentence: str, start: str = "") -> list[str]:
    """Break a sentence at its spaces, within a name only where a line cannot hold it."""
    lines, line = [], start
    for word in words.readable(sentence).split():
        if len(line) > len(start) and _width(line) + 1 + _width(word) > COLUMNS:
            lines.append(line)
            line = " " * len(start)
        line += f" {word}" if len(line) > len(start) else word
        while _width(line) > COLUMNS:
            fitting = next(end for end in range(COLUMNS, 0, -1) if _width(line[:end]) <= COLUMNS)
            lines.append(line[:fitting])
            line = " " * len(start) + line[fitting:]
    return [*lines, line]


def _short(name: str, width: int) -> str:
    name = words.readable(name)
    while _width(name) > width:
        name = f"{name.rstrip('~')[:-1]}~"
    return name


def _width(line: str) -> int:
    if line.isascii():
        return len(line)
    return sum(map(_columns_of, line))


def _columns_of(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
