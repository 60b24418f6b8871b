"""Recordings of the command line as SVG: the real output of a command, with its colors.

``python docs/site/recording.py docs/images/diff.svg gpu-constructs diff before.yaml after.yaml`` writes a picture.
"""

import contextlib
import io
import os
import re
import shlex
import sys
from html import escape
from pathlib import Path
from unittest.mock import patch

from gpu_constructs.cli.main import main

CHARACTER, LINE, MARGIN = 8.43, 18, 16
COLORS = {"31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "34": "#79c0ff", "2": "#8b949e"}
STYLE = "font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;font-size:14px"
CODE = re.compile(r"\x1b\[(\d+)m")


class Terminal(io.StringIO):
    """An output that commands take for a terminal."""

    def isatty(self) -> bool:
        """Return True."""
        return True


def output_of(command: str) -> str:
    """Return the prompt with a command, and what the command prints to a terminal with colors."""
    out, given = Terminal(), {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    with patch.dict(os.environ, {**given, "TERM": "xterm"}, clear=True), contextlib.redirect_stdout(out):
        main(shlex.split(command)[1:])
    return f"\x1b[32m$\x1b[0m {command}\n{out.getvalue()}"


def svg(text: str) -> str:
    """Return a text with ANSI colors as an SVG picture."""
    lines, color, weight = [], "#e6edf3", "normal"
    for line in text.rstrip("\n").split("\n"):
        spans = []
        for number, part in enumerate(CODE.split(line)):
            if number % 2:
                color = COLORS.get(part, color if part == "1" else "#e6edf3")
                weight = "bold" if part == "1" else "normal" if part == "0" else weight
            elif part:
                spans.append(f'<tspan fill="{color}" font-weight="{weight}">{escape(part)}</tspan>')
        place = f'x="{MARGIN}" y="{MARGIN + (len(lines) + 1) * LINE - 4}"'
        # Browsers do not take the style of white space from the root.
        lines.append(f'<text {place} style="white-space:pre">{"".join(spans)}</text>')
    longest = max(len(CODE.sub("", line)) for line in text.split("\n"))
    width, height = round(longest * CHARACTER + 2 * MARGIN), len(lines) * LINE + 2 * MARGIN
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    frame = f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>'
    start = f'<svg xmlns="http://www.w3.org/2000/svg" {size} style="{STYLE}">'
    return "\n".join([start, frame, *lines, "</svg>\n"])


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(svg(output_of(shlex.join(sys.argv[2:]))), encoding="utf-8")
