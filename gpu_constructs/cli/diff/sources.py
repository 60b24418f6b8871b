"""Readers of the old and the new objects of a comparison, from folders, files and Git revisions of a folder."""

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
    """Return the old and the new objects of a comparison, each from a folder or a file.

    Args:
        old: Folder or file with the old manifests, or ``-`` for standard input.
        new: Folder or file with the new manifests, or ``-`` for standard input.

    Raises:
        CommandError: A path is not readable, both paths are ``-``, or the new path contains no objects.
    """
    if old == new == STDIN:
        raise CommandError(f"PATH must be {STDIN} at most once, got {STDIN} for OLD and NEW. Name a folder or a file")
    (before, unread), (after, also) = side_of(old), not_empty(new, *side_of(new))
    return Sides(before, after, [*unread, *also])


def of_git(revisions: str, folder: str) -> Sides:
    """Return the old and the new objects of a folder: from two Git revisions, or from one revision and the disk.

    Args:
        revisions: Git revision of the old objects, such as ``main``. To compare two revisions, join them by ``..``.
        folder: Folder of the working tree.

    Raises:
        CommandError: The folder is not readable in a revision or on the disk, or the new objects are missing.
    """
    first, separator, second = revisions.partition("..")
    before, unread = committed(first or "HEAD", folder)
    after, also = not_empty(folder, *(committed(second or "HEAD", folder) if separator else side_of(folder)))
    return Sides(before, after, [*unread, *also])


def not_empty(path: str, side: Side, broken: list[Broken]) -> tuple[Side, list[Broken]]:
    """Return ``side`` and ``broken`` unchanged, or raise an error if ``side`` is empty.

    Empty manifests are most often the output of a command that failed, such as ``helm template``. Without the error,
    ``diff`` would report that the change removes all objects.

    Args:
        path: Folder or file with the new manifests, for the message.
        side: New objects.
        broken: Parts of the new manifests that are not readable.

    Raises:
        CommandError: ``side`` contains neither objects nor texts of machine configuration files or Helm values files.
    """
    if not side.objects and not side.texts:
        why = broken[0] if broken else "Name a folder or a file with manifests"
        raise CommandError(f"found no Kubernetes objects in {side.root or path}. {why}", Exit.COULD_NOT_LOOK)
    return side, broken


def side_of(path: str, shown: str = "") -> tuple[Side, list[Broken]]:
    """Return the objects in a folder or file, and the parts of the manifest files that are not readable.

    For a folder, the result also has the texts of its machine configuration files and Helm values files.

    Args:
        path: Folder, file, or ``-`` for standard input.
        shown: Name of the folder in messages. If empty, messages state ``path``.

    Raises:
        CommandError: The path does not exist, or the user has no permission to read it.
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
    """Return the objects in a Git revision of a folder, and the parts of its files that are not readable.

    Args:
        revision: Commit, branch or tag.
        folder: Path of the folder in the working tree.

    Raises:
        CommandError: Git is not installed, or the revision or the folder is not in the repository.
    """
    with _archive(revision, folder) as path:
        return side_of(str(path), f"{revision}:{Path(folder).as_posix()}")


@contextmanager
def _archive(revision: str, folder: str) -> Iterator[Path]:
    """Write the content of a folder in a Git revision to a temporary folder. Yield the path of the temporary folder.

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
