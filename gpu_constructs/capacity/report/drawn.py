"""The capacity report with pictures, as SVG and as a page: the slots and the memory of every device."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any

from gpu_constructs.capacity.planned import PlanData, PlannedNode
from gpu_constructs.capacity.report import words
from gpu_constructs.capacity.report.render import render

MOST_ROWS = 150
"""Rows of devices that are drawn; a picture of more is not looked at."""
FIRST_ROWS = 50
"""Rows of a table that are seen at once; the others unfold."""

# Widths of characters in the widest of the usual fonts, as a share of their height: better short than cut.
_WIDTHS = {
    **dict.fromkeys("fijlrtI.,:;'|!()[] -/\u2013", 0.41),
    **dict.fromkeys("mwMW@%\u2026", 1.0),
    **dict.fromkeys("<>=+~#&^", 0.85),
}


def svg(plan: PlanData, title: str) -> str:
    """Return the picture: a card for every node, with who holds its devices and what their memory has to hold."""
    drawn, left_out = _most_urgent(plan)
    return render("plan.svg.j2", plan, title, drawn=drawn, left_out=left_out, **_bars())


def html(plan: PlanData, title: str) -> str:
    """Return the page, without scripts: the verdict and what does not fit, pictures of the nodes, then all tables."""
    drawn, left_out = _most_urgent(plan)
    return render("plan.html.j2", plan, title, drawn=drawn, left_out=left_out, first_rows=FIRST_ROWS, **_bars())


def _bars() -> Mapping[str, Callable[..., Any]]:
    """Return the functions that templates with bars call."""
    return {one.__name__: one for one in (share, fitting, length, lines, in_lines)}


def _most_urgent(plan: PlanData) -> tuple[list[PlannedNode], str]:
    """Return the nodes that a picture shows, in their order, and a sentence on those that it does not."""
    urgent = sorted(
        plan.nodes, key=lambda node: max(map(words.fullness, node.devices), default=(0, 0, 0)), reverse=True
    )
    rows = 0
    kept: set[int] = set()
    for node in urgent:
        rows += max(1, len(words.device_rows(node)))
        if kept and rows > MOST_ROWS:
            break
        kept.add(id(node))
    missing = sum(node.count for node in plan.nodes if id(node) not in kept)
    more = f"{words.counted(missing, 'more node')} with less on them: not drawn here." if missing else ""
    return [node for node in plan.nodes if id(node) in kept], more


def share(percent: float) -> str:
    """Return a percentage as SVG writes it."""
    return f"{percent:.2f}".rstrip("0").rstrip(".") + "%"


def in_lines(names: Sequence[str], width: float, size: int, most: int) -> list[str]:
    """Return names in few lines; the last line says how many names are left out."""
    made = [""]
    for number, name in enumerate(names):
        rest = len(names) - number - 1
        longer = f"{made[-1]} \u00b7 {name}" if made[-1] else name
        is_last = len(made) == most
        if length(longer, size) <= _room(width, size, rest if is_last else 0):
            made[-1] = longer
        elif made[-1] and is_last:
            made[-1] += f" and {rest + 1:,} more"
            break
        else:
            if made[-1]:
                made.append("")
            made[-1] = fitting(name, _room(width, size, rest if len(made) == most else 0), size)
    return made


def _room(width: float, size: int, rest: int) -> float:
    return width - (length(f" and {rest:,} more", size) if rest else 0)


def lines(sentence: str, width: float, size: int) -> list[str]:
    """Return the lines of a sentence, broken at its spaces."""
    made: list[str] = []
    line = ""
    for word in sentence.split():
        longer = f"{line} {word}".strip()
        if line and length(longer, size) > width:
            made.append(line)
            longer = word
        line = fitting(longer, width, size)
    return [*made, line]


def fitting(text: str, width: float, size: int, weight: float = 1) -> str:
    """Return a text, cut if it is too long for its place."""
    text = words.readable(text)
    if length(text, size, weight) <= width:
        return text
    ends = accumulate((_advance(char) * size * weight for char in text), initial=length("\u2026", size, weight))
    kept = max(sum(end <= width for end in ends) - 1, 0)
    return f"{text[:kept].rstrip()}\u2026"


def length(text: str, size: int, weight: float = 1) -> float:
    """Return how wide a text is at most."""
    return sum(map(_advance, text)) * size * weight


def _advance(char: str) -> float:
    is_wide = unicodedata.east_asian_width(char) in "WF"
    return 1.05 if is_wide else _WIDTHS.get(char, 0.74 if char.isupper() else 0.64)
