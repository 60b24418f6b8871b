"""Files for people and other tools, in folders beside the manifests that ``kubectl apply -f`` does not read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Folder = Literal["helm-values", "machine-config", "reports"]

FOLDERS: Mapping[Folder, tuple[str, ...]] = {
    "helm-values": (".values.yaml",),
    "machine-config": (".yaml",),
    "reports": (".html", ".json", ".svg", ".txt"),
}
"""The folders of dist/ that hold them, with what their names end in."""

_MARK = re.compile(r"Written by gpu_constructs(?: \((?P<program>[^()]+)\))?: change the app, not this file\.")
_AROUND_MARK = {
    ".html": ("<!-- ", " -->\n"),
    ".json": ('{ "//": "', '",\n'),
    ".svg": ("<!-- ", " -->\n"),
    ".txt": ("# ", "\n"),
    ".yaml": ("# ", "\n"),
}


@dataclass(frozen=True, kw_only=True)
class SideFile:
    """One file.

    Attributes:
        folder: Where it goes: ``dist/<folder>/``, below that the cluster's folder where there are several.
        stem: Name of the file without the ending.
        text: What it holds, without the first line that says it is generated.
        ending: What its name ends in; by default the first that the folder has.
    """

    folder: Folder
    stem: str
    text: str
    ending: str = ""

    @property
    def name(self) -> str:
        """The whole name."""
        return self.stem + (self.ending or FOLDERS[self.folder][0])


def first_line(name: str, program: str = "") -> str:
    """Return the line by which a generated file of that name says so.

    Args:
        name: Name of the file.
        program: Name of the program that writes it; empty for one without a name.
    """
    before, after = _around_mark(name)
    author = f" ({program})" if program else ""
    return f"{before}Written by gpu_constructs{author}: change the app, not this file.{after}"


def author(name: str, line: str) -> str | None:
    """Return the program that a file names in its first line: None where this library did not write the file."""
    before, after = _around_mark(name)
    mark = _MARK.fullmatch(line.removeprefix(before).removesuffix(after))
    if mark is None or line != before + mark[0] + after:
        return None
    return mark["program"] or ""


def _around_mark(name: str) -> tuple[str, str]:
    return _AROUND_MARK[name[name.rindex(".") :]]


def marked(name: str, text: str, program: str = "") -> str:
    """Return the text of a file with that line in front; an object of JSON starts with it instead."""
    return first_line(name, program) + (text.removeprefix("{\n") if name.endswith(".json") else text)
