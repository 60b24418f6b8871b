"""The two sides of a comparison: folders and files, and a folder as it is committed in Git."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from gpu_constructs.cli.diff.model import Side, Sides
from gpu_constructs.cli.diff.nodes import FOLDERS
from gpu_constructs.cli.documents import STDIN, Broken, read
from gpu_constructs.cli.exits import CommandError, Exit
from gpu_constructs.records import replace

_WAY_OUT = "Pass a commit, a branch or a tag, and a folder that it contains"


def of_paths(old: str, new: str) -> Sides:
    """Return the old and the new version to compare, each read from a folder or a file.

    Raises:
        CommandError: One of them is not readable, both are the standard input, or the new version has no objects.
    """
    if old == new == STDIN:
        raise CommandError(f"PATH must be {STDIN} at most once, got {STDIN} for OLD and NEW. Name a folder or a file")
    (before, unread), (after, also) = side_of(old), not_empty(new, *side_of(new))
    return Sides(before, after, [*unread, *also])


def of_git(revisions: str, folder: str) -> Sides:
    """Return the old and the new version of a folder: two revisions, or one revision and the folder on the disk.

    Args:
        revisions: Revision, or two revisions with ``..`` between them.
        folder: Folder of the working tree.

    Raises:
        CommandError: One of the versions is not readable, or the new version has no objects.
    """
    first, separator, second = revisions.partition("..")
    before, unread = committed(first or "HEAD", folder)
    after, also = not_empty(folder, *(committed(second or "HEAD", folder) if separator else side_of(folder)))
    return Sides(before, after, [*unread, *also])


def not_empty(path: str, side: Side, broken: list[Broken]) -> tuple[Side, list[Broken]]:
    """Return a new version and its unreadable parts if the version has an object, or a file for nodes or for Helm.

    A version with neither is the output of a program that failed. It never means the deletion of all objects.

    Args:
        path: Folder or file of the version, for the message.
        side: New version.
        broken: Parts of it that are not readable.

    Raises:
        CommandError: The version is empty.
    """
    if not side.objects and not side.texts:
        why = broken[0] if broken else "Name a folder or a file with manifests"
        raise CommandError(f"found no Kubernetes objects in {side.root or path}. {why}", Exit.COULD_NOT_LOOK)
    return side, broken


def side_of(path: str, shown: str = "") -> tuple[Side, list[Broken]]:
    """Return the objects and the other files in a folder or in a file, and the parts that are not readable.

    Args:
        path: Folder, file, or ``-`` for standard input.
        shown: Name of the folder in messages; by default ``path``.

    Raises:
        CommandError: The path does not exist, or the operating system does not let the program read it.
    """
    found = read([path])
    if path == STDIN or not Path(path).is_dir():
        return Side(found.objects), list(found.broken)
    root = shown or path.rstrip("/")

    def renamed(file: str) -> str:
        return root + file.removeprefix(path.rstrip("/")) if shown else file

    objects = [replace(one, file=renamed(one.file)) for one in found.objects]
    broken = [replace(one, file=renamed(one.file)) for one in found.broken]
    texts = {}
    for file in sorted(Path(path).rglob("*.yaml")):
        name = file.relative_to(path)
        if set(FOLDERS) & set(name.parts):
            texts[name.as_posix()] = file.read_bytes().decode("utf-8", "replace")
    return Side(objects, texts, root), broken


def committed(revision: str, folder: str) -> tuple[Side, list[Broken]]:
    """Return the objects and the other files of a folder as a Git revision contains them.

    Args:
        revision: Commit, branch or tag.
        folder: Folder of the working tree.

    Raises:
        CommandError: Git is not installed, or the revision or the folder is not in the repository.
    """
    with _archive(revision, folder) as path:
        return side_of(str(path), f"{revision}:{Path(folder).as_posix()}")


@contextmanager
def _archive(revision: str, folder: str) -> Iterator[Path]:
    """Write a folder of a Git revision to a temporary folder, and yield the path of that folder.

    The temporary folder exists until the end of the ``with`` block.
    """
    try:
        if revision.startswith("-"):
            raise CommandError(f"--git must be a revision, got {revision!r}. {_WAY_OUT}")
        # The folder itself can be missing in the working tree, so Git runs in the folder above it.
        above = Path(folder).absolute().parent
        prefix = _git(above, "rev-parse", "--show-prefix").decode().strip()
        archive = _git(above, "archive", "--format=tar", f"{revision}^{{tree}}:{prefix}{Path(folder).absolute().name}")
    except FileNotFoundError:
        raise CommandError("git must be on the PATH, and it is not. Install Git", Exit.COULD_NOT_LOOK) from None
    with TemporaryDirectory() as made, tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(made, filter="data")
        yield Path(made)


def _git(where: Path, *arguments: str) -> bytes:
    if not where.is_dir():
        raise CommandError(f"{where} must be a folder, and it does not exist. {_WAY_OUT}", Exit.COULD_NOT_LOOK)
    done = subprocess.run(["git", "-C", str(where), *arguments], capture_output=True, check=False)
    if done.returncode:
        last = (done.stderr.decode("utf-8", "replace").strip() or "no message").splitlines()[-1]
        raise CommandError(f"git {arguments[0]}: {last}. {_WAY_OUT}", Exit.COULD_NOT_LOOK)
    return done.stdout
