"""Text for a terminal: colors, line breaks at 80 columns, and tables."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Sequence
from typing import Literal, TextIO

WIDTH = 80
Color = Literal["red", "yellow", "green", "blue", "bold", "dim"]
_CODES: dict[Color, int] = {"red": 31, "yellow": 33, "green": 32, "blue": 34, "bold": 1, "dim": 2}


def has_colors(stream: TextIO | None = None) -> bool:
    """Check whether an output is a terminal that shows colors.

    The result is False if the environment contains ``NO_COLOR``, or if TERM is ``dumb``.

    Args:
        stream: Output to check, such as ``sys.stderr``. None, the default: standard output.
    """
    out = sys.stdout if stream is None else stream
    return out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def painted(text: str, color: Color, stream: TextIO | None = None) -> str:
    """Return a text with the terminal codes for a color, or unchanged if ``has_colors(stream)`` is False."""
    return f"\x1b[{_CODES[color]}m{text}\x1b[0m" if has_colors(stream) else text


def wrapped(text: str, indent: int = 0, first: int | None = None) -> str:
    """Return a text with line breaks before column 80. Long words, such as paths, stay whole.

    Args:
        text: Text without line breaks.
        indent: Number of spaces before each line.
        first: Number of spaces before the first line; by default ``indent``.
    """
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=" " * (indent if first is None else first),
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as text with aligned columns. The first row contains the headings."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return "\n".join(lines)
