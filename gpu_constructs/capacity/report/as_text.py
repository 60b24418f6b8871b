"""The capacity report for terminals and logs: plain text of at most 100 columns."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from gpu_constructs.capacity.planned import PlanData
from gpu_constructs.capacity.report import words
from gpu_constructs.capacity.report.render import render

COLUMNS = 100
_BAR = 30
# As wide as each other, and in any font.
_SIGNS = {"good": "[ok] ", "warn": "[! ] ", "bad": "[X ] ", "unknown": "[? ] "}


def text(plan: PlanData, title: str) -> str:
    """Return everything a reader needs of the plan, the verdict first."""
    written = render("plan.txt.j2", plan, title, signs=_SIGNS, wrapped=wrapped, row=row, bar=bar, places=places)
    return "\n".join(line.rstrip() for line in written.splitlines()) + "\n"


def bar(part: int, whole: int) -> str:
    """Return a share as a bar; what is more than everything breaks out of the end."""
    full = min(_BAR, max(part > 0, _BAR * part // whole)) if whole else 0
    return f"[{'#' * full}{'.' * (_BAR - full)}{'>' if part > whole else ']'}"


def places(nodes: Sequence[str], width: int) -> str:
    """Return where pods may run: the first node, cut to a width, and the number of the others."""
    if len(nodes) < 2:
        return _short(nodes[0], width) if nodes else "nowhere"
    return f"{_short(nodes[0], width - 7)}, +{len(nodes) - 1:,}"


def row(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Return a row of a table, cells of a negative width to the left; a name too long gets lines of its own."""
    name = words.readable(cells[0])
    before: list[str] = []
    if _width(name) > -widths[0]:
        before, name = [wrapped(name)], ""
    padded = []
    for cell, width in zip((name, *cells[1:]), widths, strict=True):
        space = " " * (abs(width) - _width(cell))
        padded.append(cell + space if width < 0 else space + cell)
    return "\n".join([*before, " ".join(padded)])


def wrapped(sentence: str, start: str = "") -> str:
    """Return the lines of a sentence, broken at spaces, and within a name only if no line can hold it."""
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
    return "\n".join([*lines, line])


def _short(name: str, width: int) -> str:
    name = words.readable(name)
    while _width(name) > width:
        name = f"{name.rstrip('~')[:-1]}~"
    return name


def _width(line: str) -> int:
    return len(line) if line.isascii() else sum(map(_columns_of, line))


def _columns_of(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
