"""Files for people and other tools, in folders beside the manifests that ``kubectl apply -f`` does not read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

Folder = Literal["helm-values", "machine-config", "reports"]

FOLDERS: Mapping[Folder, tuple[str, ...]] = {
    "helm-values": (".values.yaml",),
    "machine-config": (".yaml",),
    "reports": (".html", ".json", ".svg", ".txt"),
}
"""The folders of dist/ that hold them, with what their names end in."""

_MARK = "Written by gpu_constructs: change the app, not this file."
_LINES = {
    ".html": f"<!-- {_MARK} -->\n",
    ".json": f'{{ "//": "{_MARK}",\n',
    ".svg": f"<!-- {_MARK} -->\n",
    ".txt": f"# {_MARK}\n",
    ".yaml": f"# {_MARK}\n",
}


@dataclass(frozen=True, kw_only=True)
class SideFile:
    """One file.

    Attributes:
        folder: Where it goes: ``dist/<folder>/``, below that the cluster's folder where there are several.
        stem: Its name without the ending.
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


@runtime_checkable
class WritesSideFiles(Protocol):
    """A construct that has files to write."""

    def side_files(self) -> Sequence[SideFile]:
        """Give the files."""


def first_line(name: str) -> str:
    """Give the line by which a generated file of that name says so itself."""
    return _LINES[name[name.rindex(".") :]]


def marked(name: str, text: str) -> str:
    """Give the text of a file with that line in front; an object of JSON starts with it instead."""
    return first_line(name) + (text.removeprefix("{\n") if name.endswith(".json") else text)
