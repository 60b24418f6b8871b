"""Functions that write output files and remove outdated ones. They never change files that another script wrote."""

from __future__ import annotations

import os
import tempfile
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from gpu_constructs.kube.side_files import FOLDERS, author
from gpu_constructs.records import dataclass, field
from gpu_constructs.tree.held_apps import running_script

NEEDS_CRDS_FOLDER = "needs-crds"
SUFFIX = ".k8s.yaml"
METADATA_FILE = "construct-metadata.json"
"""Name of the file for ``App(record_construct_metadata=True)``."""

DEFAULT_PROGRAM = "app.py"
"""Name of the script in messages if the first line of an output file contains no name."""

_NAMED = 3
"""Largest number of files that a message lists."""


class _Call(NamedTuple):
    """The record of one call of ``synth`` in this process, with the IDs of the Apps and the paths of the files."""

    root: Path
    is_single: bool
    apps: frozenset[int]
    paths: frozenset[Path]


_calls: list[_Call] = []


class PartlyWritten(Exception):
    """The error if the operating system does not allow ``synth`` to write or remove a file.

    Attributes:
        reason: Description of the first failure.
        details: Lines that list which files synth replaced or removed, and which it did not. Empty if synth changed no
            files.
    """

    def __init__(self, reason: str, details: Sequence[str]) -> None:
        self.reason = reason
        self.details = list(details)
        super().__init__(reason)


@dataclass
class OutputFiles:
    """The output files that one call of ``synth`` writes.

    Attributes:
        root: Folder that contains all output files.
        outdirs: Output folders of the Apps (``App(outdir=...)``): ``root`` itself, or folders in ``root``.
        program: Name of the script that writes the files. Files of another script stay unchanged. If separate calls
            in one script write two Apps to one folder, the name for the second App has a suffix, such as ``app.py-2``.
        apps: IDs by which later calls recognize the Apps: Python ``id()`` of each App, or one number for a whole fleet.
        removes_beside: Whether this call also removes outdated files below ``root`` that are outside ``outdirs``.
        clusters: Names of the clusters of a fleet. This object does not remove the files of these clusters, because
            each cluster has its own ``OutputFiles``. Empty by default.
        texts: Text of each file, by path.
    """

    root: Path
    outdirs: Sequence[Path]
    program: str
    apps: frozenset[int]
    removes_beside: bool = True
    clusters: Collection[str] = ()
    texts: dict[Path, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        earlier = list(dict.fromkeys(call.apps for call in self._calls_near()))
        place = next((place for place, apps in enumerate(earlier) if not apps.isdisjoint(self.apps)), len(earlier))
        if place:
            self.program = f"{self.program or DEFAULT_PROGRAM}-{place + 1}"

    @property
    def is_single(self) -> bool:
        """Whether the call of ``synth`` has only one App, whose output folder is ``root``."""
        return list(self.outdirs) == [self.root]

    def folder(self, name: str, outdir: Path) -> Path:
        """Return the folder for files of an app that are not manifests.

        Args:
            name: Name of the folder, such as ``reports``.
            outdir: Output folder of the app.
        """
        return self.root / name if self.is_single else self.root / name / outdir.name

    def problems(self) -> list[str]:
        """Return messages that state why ``synth`` cannot write a file, or would replace a file of another script."""
        blocked: dict[Path, str] = {}
        taken: dict[str, list[Path]] = defaultdict(list)
        others = [call for call in self._calls_near() if call.apps.isdisjoint(self.apps)]
        for path in self.texts:
            link = _link(path, self.root)
            if link is not None:
                blocked[link] = "is a symbolic link, through which synth does not write. Remove the link"
            elif path.is_dir():
                blocked[path] = "is a folder, so synth cannot write this file"
            else:
                by = _author(path)
                if by is not None and any(path in call.paths for call in others):
                    taken["another App of this program"].append(path)
                elif by and by != self.program:
                    taken[by].append(path)
        return [
            *(f"{shown(path)}: {problem}" for path, problem in blocked.items()),
            *(
                f"{_listed(paths)}: belongs to {by}. Give one of the two its own outdir{_if_gone(by)}"
                for by, paths in taken.items()
            ),
        ]

    def warnings(self) -> list[str]:
        """Return one warning for each other script that has files in the output folders."""
        _, others = self._earlier()
        return [
            f"{_listed(paths)}: belongs to {by}, so synth keeps it, and kubectl applies it too. Give one of the two "
            f"its own outdir{_if_gone(by)}"
            for by, paths in others.items()
        ]

    def write(self) -> Mapping[str, Sequence[Path]]:
        """Write the output files that have changed, and remove outdated output files of earlier runs.

        Returns:
            Lists of paths, by ``written``, ``unchanged``, ``removed`` and ``taken_over``. See ``StagedFiles.commit``.

        Raises:
            PartlyWritten: If the operating system prevents a write or a removal.
        """
        return self.stage().commit()

    def stage(self) -> StagedFiles:
        """Write the output files that have changed to temporary files in their folders. ``commit`` renames these later.

        Raises:
            PartlyWritten: If the operating system prevents this. No temporary file remains.
        """
        stale, _ = self._earlier()
        changed = [path for path, text in self.texts.items() if not _holds(path, text)]
        staged = StagedFiles(
            root=self.root,
            stale=stale,
            taken_over=[path for path in changed if path.exists() and _author(path) is None],
            unchanged=sorted(self.texts.keys() - set(changed)),
            call=_Call(self.root, self.is_single, self.apps, frozenset(self.texts)),
        )
        try:
            for path in changed:
                self._stage(path, staged.temporary)
        except OSError as error:
            staged.discard(changed)
            raise PartlyWritten(_cannot("write", path, error), []) from None
        return staged

    def _stage(self, path: Path, staged: dict[Path, str]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, staged[path] = tempfile.mkstemp(dir=path.parent, prefix=".gpu-constructs-")
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(self.texts[path])
        os.chmod(staged[path], 0o644)

    def _earlier(self) -> tuple[list[Path], dict[str, list[Path]]]:
        """Return the output files of earlier runs that this run does not write.

        The result is a pair: the list of the files of this script, and a dict from the name of each other script to its
        files.
        """
        own: list[Path] = []
        others: dict[str, list[Path]] = defaultdict(list)
        seen = set(self.texts)
        for path, is_beside in self._candidates():
            if path in seen or _link(path, self.root) is not None:
                continue
            seen.add(path)
            by = _author(path)
            if by is None:
                continue
            if by == self.program:
                own.append(path)
            elif not is_beside:
                others[by or f"{DEFAULT_PROGRAM} or an earlier release"].append(path)
        return sorted(own), {by: sorted(paths) for by, paths in others.items()}

    def _candidates(self) -> Iterator[tuple[Path, bool]]:
        """Yield a pair for each file that an earlier run can have written: its path and a bool.

        The bool is True if the file is outside the output folders of the Apps of this run.
        """
        sides = [(folder, ending) for folder, endings in FOLDERS.items() for ending in endings]
        for outdir in self.outdirs:
            for pattern in (f"*{SUFFIX}", f"{NEEDS_CRDS_FOLDER}/*{SUFFIX}", METADATA_FILE):
                yield from ((path, False) for path in outdir.glob(pattern))
            for folder, ending in sides:
                yield from ((path, False) for path in self.folder(folder, outdir).glob(f"*{ending}"))
        if not self.is_single and self.removes_beside:
            yield from ((path, True) for path in self._beside(sides) if self._cluster_of(path) not in self.clusters)

    def _beside(self, sides: Sequence[tuple[str, str]]) -> Iterator[Path]:
        """Yield all output files below ``root``, including files for clusters that no longer have an App.

        Args:
            sides: Folders of files that are not manifests, each with a file ending, such as ``("reports", ".html")``.
        """
        beside = [f"{folder}/{depth}*{ending}" for folder, ending in sides for depth in ("", "*/")]
        for pattern in (*beside, f"*{SUFFIX}", f"*/*{SUFFIX}", f"*/{NEEDS_CRDS_FOLDER}/*{SUFFIX}"):
            yield from self.root.glob(pattern)

    def _cluster_of(self, path: Path) -> str:
        """Return the name of the cluster to which a file in the folder ``root`` belongs.

        The name is empty if the file belongs to no single cluster.
        """
        first, *rest = path.relative_to(self.root).parts
        if first not in FOLDERS:
            return first if rest else ""
        return rest[0] if len(rest) > 1 else ""

    def _calls_near(self) -> list[_Call]:
        """Return the earlier calls of ``synth`` in this process that share output folders with this call.

        Such calls could remove files of each other. The result is empty in a test or a notebook, which can write the
        same App several times.
        """
        if running_script() is None:
            return []
        return [call for call in _calls if _looks_into(self, call) or _looks_into(call, self)]


@dataclass
class StagedFiles:
    """The changed output files of one call of ``synth``, under temporary names. ``commit`` renames them.

    Attributes:
        root: Folder that contains all output files.
        stale: Output files of an earlier run that ``commit`` removes, because the app no longer writes them.
        taken_over: Files that ``commit`` replaces, although this library did not write them.
        unchanged: Output files that already have their new text.
        call: Record of the call of ``synth``, for later calls in the same process.
        temporary: Path of each temporary file, by final path of the file.
    """

    root: Path
    stale: Sequence[Path]
    taken_over: Sequence[Path]
    unchanged: Sequence[Path]
    call: _Call
    temporary: dict[Path, str] = field(default_factory=dict)

    def commit(self) -> Mapping[str, Sequence[Path]]:
        """Rename the temporary files to their final names, and remove the outdated output files.

        Returns:
            Lists of paths by what happened to the files: ``written``, ``unchanged``, ``removed`` and ``taken_over``.
            ``taken_over`` are the files in ``written`` that replaced a file which this library did not write.

        Raises:
            PartlyWritten: If the operating system prevents a write or a removal.
        """
        changed, replaced, removed = list(self.temporary), list[Path](), list[Path]()
        path, verb = self.root, "write"
        try:
            for path in changed:
                os.replace(self.temporary[path], path)
                del self.temporary[path]
                replaced.append(path)
            verb = "remove"
            for path in self.stale:
                path.unlink()
                removed.append(path)
        except OSError as error:
            outcome = {
                "replaced": replaced,
                "not replaced": changed[len(replaced) :],
                "removed": removed,
                "not removed": self.stale[len(removed) :],
            }
            details = _outcome_in_words(outcome) if replaced or removed else []
            raise PartlyWritten(_cannot(verb, path, error), details) from None
        finally:
            self.discard(changed)
        _calls.append(self.call)
        return {
            "written": replaced,
            "unchanged": self.unchanged,
            "removed": removed,
            "taken_over": self.taken_over,
        }

    def discard(self, changed: Iterable[Path] = ()) -> None:
        """Remove the temporary files. Also remove empty folders of temporary and outdated files.

        Args:
            changed: Further files. The method also removes their folders if these are empty. No files by default.
        """
        with suppress(OSError):
            folders = {path.parent for path in (*self.temporary, *changed, *self.stale)}
            for file in self.temporary.values():
                Path(file).unlink(missing_ok=True)
            for folder in folders:
                _remove_empty_folders(folder, self.root)


def _cannot(verb: str, path: Path, error: OSError) -> str:
    return f"{shown(path)}: synth cannot {verb} it: {error.strerror or error}"


def _outcome_in_words(outcome: Mapping[str, Sequence[Path]]) -> list[str]:
    return [f"{what}: {', '.join(map(shown, paths))}" for what, paths in outcome.items() if paths]


def _looks_into(one: OutputFiles | _Call, other: OutputFiles | _Call) -> bool:
    """Check whether a call of ``synth`` (``one``) looks for files to remove in folders of another call (``other``).

    A call for several clusters searches all folders below its root.
    """
    return one.root == other.root or (not one.is_single and other.root.is_relative_to(one.root))


def running_program() -> str:
    """Return the name of the running script, which the first line of each output file contains.

    The name is the path of the script, relative to the repository (the folder with ``.git``). Outside a repository,
    the path is relative to the working directory. The name is empty for ``app.py``, and if the process runs no script.
    """
    script = running_script()
    if script is None:
        return ""
    bases = [folder for folder in script.parents if (folder / ".git").exists()][:1] or [Path.cwd()]
    name = script.relative_to(bases[0]).as_posix() if script.is_relative_to(bases[0]) else script.name
    return "" if name == DEFAULT_PROGRAM else program_name(name)


def program_name(name: str) -> str:
    """Return the name of a script without characters that are not valid in YAML comments, HTML or JSON."""
    plain = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "._/-") else "_" for letter in name)
    while "--" in plain:
        plain = plain.replace("--", "-")
    return plain


def shown(path: Path) -> str:
    """Return a path for messages: relative to the working directory if the path is inside it, otherwise absolute."""
    here = Path.cwd()
    return path.relative_to(here).as_posix() if path.is_relative_to(here) else str(path)


def _listed(paths: Sequence[Path]) -> str:
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return ", ".join(map(shown, paths[:_NAMED])) + more


def _if_gone(program: str) -> str:
    if " " in program:
        return ""
    return f", or delete its files if {program} no longer exists"


def _author(path: Path) -> str | None:
    """Return the name of the script that generated a file, from its first line. Return None for any other file."""
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            return author(path.name, lines.readline())
    except OSError:
        return None


def _holds(path: Path, text: str) -> bool:
    try:
        return path.read_bytes() == text.encode()
    except OSError:
        return False


def _link(path: Path, root: Path) -> Path | None:
    """Return the first symbolic link in the path from a root folder to a file. Return None if the path has no link.

    ``synth`` never writes or removes a file through a symbolic link, because other software can own the target.
    """
    folders = path.parents[: len(path.relative_to(root).parts) - 1]
    return next((part for part in (*reversed(folders), path) if part.is_symlink()), None)


def _remove_empty_folders(folder: Path, root: Path) -> None:
    while folder != root and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent
