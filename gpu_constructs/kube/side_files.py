"""Files in ``dist/`` that are not manifests, such as Helm values, and the line that marks generated files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from gpu_constructs.records import dataclass, regex

Folder = Literal["helm-values", "machine-config", "reports"]

FOLDERS: Mapping[Folder, tuple[str, ...]] = {
    "helm-values": (".values.yaml",),
    "machine-config": (".yaml",),
    "reports": (".html", ".json", ".svg", ".txt"),
}
"""Folders of ``dist/``, with the endings of the filenames in them."""

_MARK = regex(r"Written by gpu_constructs(?: \((?P<program>[^()]+)\))?: change the app, not this file\.")
_AROUND_MARK = {
    ".html": ("<!-- ", " -->\n"),
    ".json": ('{ "//": "', '",\n'),
    ".svg": ("<!-- ", " -->\n"),
    ".txt": ("# ", "\n"),
    ".yaml": ("# ", "\n"),
}


@dataclass(frozen=True, kw_only=True)
class SideFile:
    """A file that is not a manifest, in a folder of ``dist/`` that ``kubectl apply -f dist/`` does not read.

    Attributes:
        folder: Folder below ``dist/``. If the user's app writes the output files of several clusters, this folder
            contains a folder for each cluster.
        stem: Name of the file without the ending.
        text: Content of the file, without the first line that marks it as generated.
        ending: Ending of the name, such as ``.json``. Empty (the default): the usual ending of the folder, such as
            ``.values.yaml`` for ``helm-values``.
    """

    folder: Folder
    stem: str
    text: str
    ending: str = ""

    @property
    def name(self) -> str:
        """Name of the file with its ending."""
        return self.stem + (self.ending or FOLDERS[self.folder][0])


def first_line(name: str, program: str = "") -> str:
    """Return the first line of a file, which marks it as generated.

    Args:
        name: Name of the file, whose ending determines the form of the comment.
        program: Path of the user's app, such as ``clusters.py``. Empty (the default) omits the path.
    """
    before, after = _around_mark(name)
    author = f" ({program})" if program else ""
    return f"{before}Written by gpu_constructs{author}: change the app, not this file.{after}"


def author(name: str, line: str) -> str | None:
    """Return the path of the user's app in the mark of an output file, for example ``clusters.py``.

    The mark is the first line, such as ``# Written by gpu_constructs (clusters.py): change the app, not this file.``
    Return an empty text if the mark contains no path. Return None if the line is not a mark.

    Args:
        name: Filename, whose ending determines the form of the comment.
        line: First line of the file.
    """
    before, after = _around_mark(name)
    mark = _MARK.fullmatch(line.removeprefix(before).removesuffix(after))
    if mark is None or line != before + mark[0] + after:
        return None
    return mark["program"] or ""


def _around_mark(name: str) -> tuple[str, str]:
    return _AROUND_MARK[name[name.rindex(".") :]]


def marked(name: str, text: str, program: str = "") -> str:
    """Return the text of an output file, with a mark that states that this library generated the file.

    The mark is a comment in the first line. In a JSON file, the mark is the first member of the object. ``program`` is
    the path of the user's app in the mark; empty by default.
    """
    return first_line(name, program) + (text.removeprefix("{\n") if name.endswith(".json") else text)
