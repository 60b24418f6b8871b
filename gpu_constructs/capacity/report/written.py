"""The capacity report from templates: text for terminals and logs, a picture and a page.

Only what writes a report imports the templating library.
"""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from importlib.util import cache_from_source
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

from gpu_constructs.capacity.planned import PlanData
from gpu_constructs.capacity.report import verdict, words

if TYPE_CHECKING:
    from jinja2 import Environment, FileSystemBytecodeCache
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate

from gpu_constructs.capacity.planned import PlannedNode


def render(template: str, plan: PlanData, title: str, **more: Any) -> str:
    """Return the report that a template makes of a plan."""
    said = verdict.verdict(plan)
    return _templates().get_template(template).render(plan=plan, title=title, verdict=said, words=words, **more)


@cache
def _templates() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined, pass_eval_context, select_autoescape
    from markupsafe import Markup

    @pass_eval_context
    def shown(context: Any, value: Any) -> Any:
        """Return the value as markup of one line; names stand in texts, never in attributes without quotes."""
        if not context.autoescape or isinstance(value, Markup):
            return value
        return Markup(escape(words.readable(str(value)), {'"': "&quot;"}))

    def inline(markup: Markup) -> Markup:
        """Return elements of SVG as HTML has them: on one line, and none closed by itself."""
        lines = "".join(line.strip() for line in markup.splitlines())
        return Markup(re.sub(r"<(\w+)([^<>]*) />", r"<\1\2></\1>", lines).replace("</title>", "</title>\n"))

    made = Environment(
        loader=PackageLoader("gpu_constructs.capacity.report"),
        autoescape=select_autoescape(("html.j2", "svg.j2")),
        finalize=shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        bytecode_cache=_compiled(),
    )
    made.filters |= {"inline": inline, "number": "{:,}".format}
    return made


def _compiled() -> FileSystemBytecodeCache | None:
    """Return where compiled templates are kept: beside the bytecode of this module, if Python may write there."""
    from jinja2 import FileSystemBytecodeCache

    folder = os.path.dirname(cache_from_source(__file__))
    if sys.dont_write_bytecode or not os.access(folder, os.W_OK):
        return None
    return FileSystemBytecodeCache(folder, "template-%s.cache")


# For a terminal


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
    each = zip((name, *cells[1:]), widths, strict=True)
    spaced = [(cell, " " * (abs(width) - _width(cell)), width < 0) for cell, width in each]
    return "\n".join([*before, " ".join(cell + space if is_left else space + cell for cell, space, is_left in spaced)])


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


# As a picture and as a page


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
    return render("plan.svg.j2", plan, title, drawn=drawn, left_out=left_out, **_IN_PICTURES)


def html(plan: PlanData, title: str) -> str:
    """Return the page, without scripts: the verdict and what does not fit, pictures of the nodes, then all tables."""
    drawn, left_out = _most_urgent(plan)
    return render("plan.html.j2", plan, title, drawn=drawn, left_out=left_out, first_rows=FIRST_ROWS, **_IN_PICTURES)


def _most_urgent(plan: PlanData) -> tuple[list[PlannedNode], str]:
    """Return the nodes that a picture shows, in their order, and a sentence on those that it does not."""
    urgent = sorted(
        plan.nodes, key=lambda node: max(map(words.fullness, node.devices), default=(0, 0, 0)), reverse=True
    )
    rows = accumulate(max(1, len(words.device_rows(node))) for node in urgent)
    kept = {id(node) for node, row in zip(urgent, rows, strict=True) if node is urgent[0] or row <= MOST_ROWS}
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


_IN_PICTURES: Mapping[str, Callable[..., Any]] = {
    one.__name__: one for one in (share, fitting, length, lines, in_lines)
}
"""What templates with bars call."""
