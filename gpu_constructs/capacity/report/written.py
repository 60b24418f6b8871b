"""The forms of the capacity report that use templates: text, an SVG picture and an HTML page.

The module imports the template engine only when a function writes a report.
"""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from html import escape
from importlib.util import cache_from_source
from typing import TYPE_CHECKING, Any

from gpu_constructs.capacity.planned import PlanData
from gpu_constructs.capacity.report import verdict, words

if TYPE_CHECKING:
    from jinja2 import Environment, FileSystemBytecodeCache
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate

from gpu_constructs.capacity.planned import PlannedNode


def render(template: str, plan: PlanData, title: str, **more: Any) -> str:
    """Return the report on a capacity plan as text.

    Args:
        template: Filename of the Jinja template, such as ``plan.svg.j2``.
        plan: Capacity plan of an app.
        title: Title of the report.
        more: Further variables and functions for the template, by name.
    """
    statements = verdict.verdict(plan)
    return _templates().get_template(template).render(plan=plan, title=title, verdict=statements, words=words, **more)


@cache
def _templates() -> Environment:
    """Return the template engine with the settings and filters that the report templates need."""
    from jinja2 import Environment, PackageLoader, StrictUndefined, pass_eval_context, select_autoescape
    from markupsafe import Markup

    @pass_eval_context
    def shown(context: Any, value: Any) -> Any:
        """Return a value as escaped text on one line, for HTML and SVG elements and their quoted attributes.

        Do not use the result in attributes without quotes.
        """
        if not context.autoescape or isinstance(value, Markup):
            return value
        return Markup(escape(words.readable(str(value)), quote=False).replace('"', "&quot;"))

    def inline(markup: Markup) -> Markup:
        """Return SVG elements as inline HTML: without indentation and without self-closing tags."""
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
    """Return a cache of compiled templates in the folder of Python's bytecode.

    Return None if that folder is not writable.
    """
    from jinja2 import FileSystemBytecodeCache

    folder = os.path.dirname(cache_from_source(__file__))
    if sys.dont_write_bytecode or not os.access(folder, os.W_OK):
        return None
    return FileSystemBytecodeCache(folder, "template-%s.cache")


# For a terminal


COLUMNS = 100
_BAR = 30
# Signs of equal width, in characters that every font has.
_SIGNS = {"good": "[ok] ", "warn": "[! ] ", "bad": "[X ] ", "unknown": "[? ] "}


def text(plan: PlanData, title: str) -> str:
    """Return the capacity report as text for a terminal, with the verdict first.

    Args:
        plan: Capacity plan of an app.
        title: Title of the report.
    """
    written = render("plan.txt.j2", plan, title, signs=_SIGNS, wrapped=wrapped, row=row, bar=bar, places=places)
    return "\n".join(line.rstrip() for line in written.splitlines()) + "\n"


def bar(part: int, whole: int) -> str:
    """Return a bar that shows the share of ``part`` in ``whole``, such as ``[##...]``, or ``[#####>`` above 100 %."""
    full = min(_BAR, max(part > 0, _BAR * part // whole)) if whole else 0
    return f"[{'#' * full}{'.' * (_BAR - full)}{'>' if part > whole else ']'}"


def places(nodes: Sequence[str], width: int) -> str:
    """Return the name of the first node and the number of further nodes, in at most ``width`` terminal columns."""
    if len(nodes) < 2:
        return _short(nodes[0], width) if nodes else "nowhere"
    return f"{_short(nodes[0], width - 7)}, +{len(nodes) - 1:,}"


def row(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Return one row of a table as text, with each cell as wide as its column.

    A negative width aligns the text of a cell to the left, and a positive width aligns it to the right. If the first
    cell is too wide, it has a line of its own.
    """
    name = words.readable(cells[0])
    before: list[str] = []
    if _width(name) > -widths[0]:
        before, name = [wrapped(name)], ""
    each = zip((name, *cells[1:]), widths, strict=True)
    spaced = [(cell, " " * (abs(width) - _width(cell)), width < 0) for cell, width in each]
    return "\n".join([*before, " ".join(cell + space if is_left else space + cell for cell, space, is_left in spaced)])


def wrapped(sentence: str, start: str = "") -> str:
    """Return a sentence with line breaks, so that no line has more than 100 columns.

    Lines break at spaces, and within a word only if the word is longer than a line. The first line begins with the text
    ``start``, and all further lines have an indentation of the same length.
    """
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
    """Return a name that is at most ``width`` columns wide. A shortened name ends with ``~``."""
    name = words.readable(name)
    while _width(name) > width:
        name = f"{name.rstrip('~')[:-1]}~"
    return name


def _width(line: str) -> int:
    """Return the number of terminal columns that a text occupies."""
    return len(line) if line.isascii() else sum(map(_columns_of, line))


def _columns_of(char: str) -> int:
    """Return the number of terminal columns that a character occupies: 0, 1 or 2."""
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


# As a picture and as a page


MOST_ROWS = 150
"""Largest number of device rows in a picture. No one reads a longer picture."""
FIRST_ROWS = 50
"""Number of rows of a table that the HTML page shows at first. The reader can expand the table."""

# Widths of characters in the widest usual font, relative to the font size. Too wide an estimate only shortens texts.
_WIDTHS = {
    **dict.fromkeys("fijlrtI.,:;'|!()[] -/\u2013", 0.41),
    **dict.fromkeys("mwMW@%\u2026", 1.0),
    **dict.fromkeys("<>=+~#&^", 0.85),
}


def svg(plan: PlanData, title: str) -> str:
    """Return the capacity report as an SVG picture.

    The picture has a card for each node, with the pods and the memory of its devices.

    Args:
        plan: Capacity plan of an app.
        title: Title of the report.
    """
    drawn, left_out = _most_urgent(plan)
    return render("plan.svg.j2", plan, title, drawn=drawn, left_out=left_out, **_IN_PICTURES)


def html(plan: PlanData, title: str) -> str:
    """Return the capacity report as an HTML page without scripts.

    The page shows the verdict, the problems, a picture of the nodes, and then all tables.

    Args:
        plan: Capacity plan of an app.
        title: Title of the report.
    """
    drawn, left_out = _most_urgent(plan)
    return render("plan.html.j2", plan, title, drawn=drawn, left_out=left_out, first_rows=FIRST_ROWS, **_IN_PICTURES)


def _most_urgent(plan: PlanData) -> tuple[list[PlannedNode], str]:
    """Return the nodes to show in a picture, and a sentence that states how many nodes the picture omits.

    A picture with too many rows omits the nodes with the least urgent devices. The function ``words.fullness`` defines
    the urgency of a device.
    """
    urgent = sorted(
        plan.nodes, key=lambda node: max(map(words.fullness, node.devices), default=(0, 0, 0)), reverse=True
    )
    rows = accumulate(max(1, len(words.device_rows(node))) for node in urgent)
    kept = {id(node) for node, row in zip(urgent, rows, strict=True) if node is urgent[0] or row <= MOST_ROWS}
    missing = sum(node.count for node in plan.nodes if id(node) not in kept)
    more = f"The picture omits {words.counted(missing, 'more node')} with less on them." if missing else ""
    return [node for node in plan.nodes if id(node) in kept], more


def share(percent: float) -> str:
    """Return a percentage in SVG syntax, for example ``12.5%``."""
    return f"{percent:.2f}".rstrip("0").rstrip(".") + "%"


def in_lines(names: Sequence[str], width: float, size: int, most: int) -> list[str]:
    """Return the lines of text that list some names in a picture.

    If the lines have no room for all names, the last line ends with the number of omitted names.

    Args:
        names: Names to list.
        width: Largest width of a line in pixels.
        size: Font size in pixels.
        most: Largest number of lines.
    """
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
    """Return the width in pixels that remains for names in a line, next to the number of omitted names.

    Args:
        width: Width of the line in pixels.
        size: Font size in pixels.
        rest: Number of omitted names. If it is 0, the names get the whole line.
    """
    return width - (length(f" and {rest:,} more", size) if rest else 0)


def lines(sentence: str, width: float, size: int) -> list[str]:
    """Divide a sentence at its spaces into lines of text for a picture. Shorten a word that is wider than a line.

    Args:
        sentence: Sentence to divide.
        width: Largest width of a line in pixels.
        size: Font size in pixels.
    """
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
    """Return text that is at most ``width`` pixels wide. A shortened text ends with an ellipsis.

    Args:
        text: Text to show.
        width: Largest width in pixels.
        size: Font size in pixels.
        weight: Width of the letters relative to letters that are not bold. Default: 1.
    """
    text = words.readable(text)
    if length(text, size, weight) <= width:
        return text
    ends = accumulate((_advance(char) * size * weight for char in text), initial=length("\u2026", size, weight))
    kept = max(sum(end <= width for end in ends) - 1, 0)
    return f"{text[:kept].rstrip()}\u2026"


def length(text: str, size: int, weight: float = 1) -> float:
    """Return an upper bound of the width of a text in pixels. The exact width is unknown, as the font is unknown.

    Args:
        text: Text to measure.
        size: Font size in pixels.
        weight: Width of the letters relative to letters that are not bold. Default: 1.
    """
    return sum(map(_advance, text)) * size * weight


def _advance(char: str) -> float:
    """Return an upper bound of the width of a character as a factor of the font size, for example 0.64."""
    is_wide = unicodedata.east_asian_width(char) in "WF"
    return 1.05 if is_wide else _WIDTHS.get(char, 0.74 if char.isupper() else 0.64)


_IN_PICTURES: Mapping[str, Callable[..., Any]] = {
    one.__name__: one for one in (share, fitting, length, lines, in_lines)
}
"""Functions that the templates of the SVG picture and the HTML page call."""
