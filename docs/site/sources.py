"""What the site is built from: the pages of ``docs/`` and the files of the repository that they link to.

Pages link to files outside ``docs/`` by relative paths, which work on GitHub. A site has no such files. This program
copies the pages into a folder, adds each of those files below ``repository/``, and adapts the links. A link to a folder
becomes plain text, because a site has no folders.

``python docs/site/sources.py FOLDER SCRIPT…`` writes the folder, with the scripts that a browser needs.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from posixpath import dirname, normpath, relpath

ROOT = Path(__file__).parents[2]
SHOWN = (".md", ".png", ".svg")
"""Endings of files that a site shows. A browser shows the others as text."""

_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!\w+:)([^)#\s]+)(#[^)\s]*)?\)")


def write(folder: Path, *scripts: Path) -> None:
    """Write all sources of the site into a folder, and nothing else."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs", folder, ignore=shutil.ignore_patterns("*.py"))
    for script in scripts:
        shutil.copy(script, folder / "site")
    pages = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
    known = set(pages)
    for page in pages:
        text, targets = adapted(page)
        _place(folder, page).write_text(text, encoding="utf-8")
        for target in targets - known:
            if target.endswith(".md"):
                pages.append(target)
            else:
                shutil.copy(ROOT / target, _place(folder, target))
        known |= targets


def adapted(page: str) -> tuple[str, set[str]]:
    """Return the text of a page as the site has it, and the files of the repository that it links to."""
    targets = set()
    here = dirname(in_site(page))

    def link(found: re.Match[str]) -> str:
        text, target, anchor = found.groups()
        path = normpath(f"{dirname(page)}/{target}".lstrip("/"))
        if (ROOT / path).is_dir():
            return text
        if (ROOT / path).is_file() and not path.startswith("docs/"):
            targets.add(path)
        return f"[{text}]({relpath(in_site(path), here or '.')}{anchor or ''})"

    text = _outside_fences(lambda part: _LINK.sub(link, part), (ROOT / page).read_text(encoding="utf-8"))
    if "```mermaid" in text:
        text += f'\n<script src="{relpath("site/mermaid.js", here or ".")}"></script>\n'
    return text, targets


def in_site(path: str) -> str:
    """Return where the site has a file of the repository."""
    if path == "README.md":
        return "repository/overview.md"  # MkDocs would make a README the start page of its folder.
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return f"repository/{path}" if path.endswith(SHOWN) else f"repository/{path}.txt"


def _place(folder: Path, path: str) -> Path:
    place = folder / in_site(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


def _outside_fences(change: Callable[[str], str], markdown: str) -> str:
    return "".join(part if part.startswith("```") else change(part) for part in _FENCE.split(markdown))


if __name__ == "__main__":
    write(*map(Path, sys.argv[1:]))
