"""The documents as data: their code blocks, their shell commands, their tables, their links."""

import contextlib
import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import dist
import schemas

README = dist.ROOT / "README.md"
EXAMPLE_CLUSTERS = dist.ROOT / "docs" / "example-clusters.md"
DOCUMENTS = (*sorted(dist.ROOT.glob("*.md")), *sorted((dist.ROOT / "docs").rglob("*.md")))
EXAMPLES = tuple(sorted((dist.ROOT / "examples").glob("**/README.md")))

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_END = frozenset("|&;()")


class Block(NamedTuple):
    """A fenced block."""

    language: str
    text: str


def blocks(document: Path, language: str = "", heading: str = "") -> list[Block]:
    """The fenced blocks of a document, or those of one language or below one heading."""
    text = document.read_text(encoding="utf-8")
    if heading:
        text = re.split(r"^##+ ", text.split(f"{heading}\n", 1)[1], maxsplit=1, flags=re.M)[0]
    found = [Block(*match.groups()) for match in _FENCE.finditer(text)]
    return [block for block in found if language in ("", block.language)]


def prose(document: Path) -> str:
    """A document without its fenced blocks."""
    return _FENCE.sub("", document.read_text(encoding="utf-8"))


def commands(document: Path, heading: str = "") -> list[list[str]]:
    """The simple commands of a document's shell blocks, as words: pipes, lists and substitutions taken apart."""
    lines = [
        line for block in blocks(document, "bash", heading) for line in block.text.replace("\\\n", " ").splitlines()
    ]
    return [command for line in lines for command in simple_commands(line)]


def simple_commands(line: str) -> list[list[str]]:
    """The simple commands of one line of shell."""
    words = shlex.shlex(line, posix=True, punctuation_chars="|&;()")
    words.whitespace_split = True
    words.commenters = "#"
    found: list[list[str]] = [[]]
    for word in words:
        if set(word) <= _END:
            found.append([])
        else:
            found[-1].append(word)
    return [command for command in found if command]


def table(document: Path, first_heading: str) -> list[list[str]]:
    """The rows below the heading of the table whose first column is called that."""
    lines = iter(prose(document).splitlines())
    for line in lines:
        if line.startswith(f"| {first_heading} |"):
            break
    next(lines)
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def links(document: Path) -> list[str]:
    """The targets of a document's links within the repository."""
    return [target for target in _LINK.findall(prose(document)) if "://" not in target]


def anchors(document: Path) -> set[str]:
    """The anchors that GitHub gives to a document's headings, and those that the site gives to names of the API."""
    text = prose(document)
    headings = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in re.findall(r"^#+ (.*)$", text, re.M)}
    return headings | set(re.findall(r"^::: (\S+)$", text, re.M))


class Page:
    """A page of docs/: what it says, the programs in it, and what these make."""

    def __init__(self, name: str) -> None:
        self.path = dist.ROOT / "docs" / f"{name}.md"
        self.raw = self.path.read_text(encoding="utf-8")
        self.text = " ".join(prose(self.path).split())
        self.programs = self.blocks("python")
        self.apps = [program for program in self.programs if "synth(app)" in program]
        self.refused = [program for program in self.programs if program not in self.apps]

    def blocks(self, language: str) -> list[str]:
        return [block.text for block in blocks(self.path, language)]

    def table(self, first_heading: str) -> list[list[str]]:
        return table(self.path, first_heading)

    def column(self, first_heading: str) -> list[str]:
        """The first column of a table, without backticks."""
        return [row[0].strip("`") for row in self.table(first_heading)]

    def run(self, program: str, folder: Path) -> dict[str, Any]:
        """Run a program in a folder and return its names."""
        names: dict[str, Any] = {}
        with contextlib.chdir(folder):
            exec(compile(program, f"{self.path.name} {program.splitlines()[0]}", "exec"), names)
        return names

    def written(self, number: int, folder: Path) -> list[dict[str, Any]]:
        """Run the app of a number and return the objects that it writes."""
        self.run(self.apps[number], folder)
        return objects_in(folder)


def objects_in(folder: Path) -> list[dict[str, Any]]:
    """The objects that an app wrote below a folder."""
    return [one for file in sorted(folder.rglob("*.k8s.yaml")) for one in schemas.load_yaml(file.read_text("utf-8"))]


def of_kind(kind: str, objects: list[dict[str, Any]]) -> dict[str, Any]:
    """The one object of a kind."""
    (found,) = (one for one in objects if one["kind"] == kind)
    return found


def releases_of(title: str, known: Iterable[str]) -> list[str]:
    """Return the releases that a cell of a table names: ``0.18.0, 0.18.1`` or ``0.17.0 to 0.17.4``."""
    first, _, last = title.partition(" to ")
    listed = list(known)
    return listed[listed.index(first) : listed.index(last) + 1] if last else title.split(", ")


def spans(releases: Iterable[str]) -> str:
    """Return releases as tables state them, three or more in a row together: ``0.17.0 to 0.17.4, 0.20.0``."""
    runs: list[list[str]] = []
    for release in releases:
        line, _, patch = release.rpartition(".")
        if runs and runs[-1][-1] == f"{line}.{int(patch) - 1}":
            runs[-1].append(release)
        else:
            runs.append([release])
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(run) for run in runs)
