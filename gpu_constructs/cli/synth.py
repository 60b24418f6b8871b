"""The command ``synth``: runs the user's app, or checks that the output files of the app are up to date."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from gpu_constructs.cli import reporting
from gpu_constructs.cli.exits import CommandError, Exit
from gpu_constructs.cli.findings import Finding, Report
from gpu_constructs.records import dataclass

EXAMPLES = """\
  gpu-constructs synth
  gpu-constructs synth --check
  gpu-constructs synth --check clusters/home --format github"""
_CONFIG, _OUTDIR, _DEFAULT_APP = "cdk8s.yaml", "CDK8S_OUTDIR", "app.py"
_LARGEST = 1 << 30
_LINK = "docs/synthesize.md#review-a-change"
_KINDS: Mapping[str, tuple[str, str, str]] = {
    "missing": ("file-is-missing", "is not there, but the app writes it", "created"),
    "stale": ("file-is-stale", "differs from what the app writes", "changed"),
    "extra": ("file-is-extra", "is there, but the app no longer writes it", "removed"),
}
"""Texts by kind of difference between the output files before and after a run of the app.

A value contains the code and the reason of the finding of ``--check``, and the verb in the report without ``--check``.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    parser.add_argument(
        "app",
        nargs="?",
        default=".",
        metavar="APP",
        help="folder of the app, or its Python file (default: this folder)",
    )
    parser.add_argument("--check", action="store_true", help="change nothing, and exit with 1 if a file is not fresh")
    reporting.add_format(parser)


def run(args: argparse.Namespace) -> Exit:
    """Run the user's app, and print which of its output files changed.

    With ``--check``, run a copy of the app instead, and print which output files of the original are not up to date.

    Raises:
        CommandError: There is no app, or the app fails.
    """
    project = Project.of(Path(args.app))
    before = contents(project.folder)
    if not args.check:
        project.run(project.folder)
        return reporting.finish(args, _changes(project, differences(before, contents(project.folder))))
    with tempfile.TemporaryDirectory(prefix="gpu-constructs-") as temporary:
        copy = _copied(project.folder, Path(temporary))
        project.run(copy)
        found = differences(before, contents(copy))
        marked = _has_marks(copy / project.outdir)
    return reporting.finish(args, _freshness(project, found, marked))


@dataclass(frozen=True)
class Project:
    """The user's app.

    Attributes:
        folder: Folder in which the app runs, as an absolute path.
        given: Path of ``folder`` as the user typed it, for messages.
        command: Command that runs the app: text for a shell, or a tuple of words.
        outdir: Folder of the output files, relative to ``folder``.
    """

    folder: Path
    given: Path
    command: str | tuple[str, ...]
    outdir: str

    @classmethod
    def of(cls, path: Path) -> Project:
        """Return the app in a folder, or the app in a Python file.

        Args:
            path: Folder of the app, or its Python file.

        Raises:
            CommandError: There is no app, or the settings in ``cdk8s.yaml`` are not valid.
        """
        folder, file = (path, _DEFAULT_APP) if path.is_dir() else (path.parent, path.name)
        settings = _settings(folder / _CONFIG)
        outdir = os.environ.get(_OUTDIR) or settings.get("output") or "dist"
        command = settings.get("app") if path.is_dir() else None
        if command is None and not (folder / file).is_file():
            problem = f"found no app at {path}: neither {_CONFIG} with the key app nor {file}"
            raise CommandError(f"{problem}. Name the folder of the app, or its Python file", Exit.COULD_NOT_LOOK)
        return cls(folder.resolve(), folder, command or (sys.executable, file), _relative(outdir, folder.resolve()))

    def run(self, folder: Path) -> None:
        """Run the app.

        Args:
            folder: Folder of the app, or of a copy of the app.

        Raises:
            CommandError: The app fails. The function prints the error output of the app.
        """
        # A copy uses the environment of the original, and must not install anything there.
        more = {_OUTDIR: self.outdir, "PYTHONDONTWRITEBYTECODE": "1"}
        if folder != self.folder:
            more["UV_NO_SYNC"] = "1"
        ran = subprocess.run(
            self.command,
            shell=isinstance(self.command, str),
            cwd=folder,
            env={**os.environ, **more},
            capture_output=True,
            text=True,
            check=False,
        )
        if ran.returncode or folder == self.folder:
            sys.stderr.write(ran.stderr.replace(str(folder), str(self.folder)))
        if ran.returncode:
            sys.stderr.write(ran.stdout)
            shown = self.command if isinstance(self.command, str) else f"python {self.command[-1]}"
            problem = f"{shown} failed with exit status {ran.returncode}. Correct the error above"
            raise CommandError(problem, Exit.COULD_NOT_LOOK)


def _settings(path: Path) -> dict[str, str]:
    """Return the settings in ``cdk8s.yaml`` that have text as their value, by key.

    The dict is empty if the file does not exist.

    Args:
        path: Path of ``cdk8s.yaml``.

    Raises:
        CommandError: The command cannot read the file, or the file is not YAML.
    """
    if not path.is_file():
        return {}
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, OSError, UnicodeDecodeError) as error:
        problem = f"cannot read {path}: {str(error).partition(chr(10))[0]}. Correct this file"
        raise CommandError(problem, Exit.COULD_NOT_LOOK) from None
    return {key: one for key, one in content.items() if isinstance(one, str)} if isinstance(content, dict) else {}


def _relative(outdir: str, folder: Path) -> str:
    """Return the output folder as a path relative to the folder of the app.

    Args:
        outdir: Output folder as the user sets it, such as ``dist``.
        folder: Folder of the app.

    Raises:
        CommandError: The output folder is not in the folder of the app.
    """
    made = Path(os.path.normpath(folder / outdir))
    if made == folder or not made.is_relative_to(folder):
        raise CommandError(f"the output folder must be in {folder}, got {outdir!r}. Set {_OUTDIR} to such a folder")
    return str(made.relative_to(folder))


def _entries(folder: Path) -> Iterator[tuple[Path, bool]]:
    """Yield the path of each file in the folder of an app and its subfolders, with the bool True.

    Also yield each symbolic link, and each folder to which apps do not write, such as a virtual environment, with the
    bool False. The function skips the content of these folders.
    """
    for where, folders, files in os.walk(folder):
        kept = []
        for name in sorted(folders):
            path = Path(where) / name
            is_foreign = name.startswith(".") or name in ("node_modules", "__pycache__")
            if is_foreign or path.is_symlink() or (path / "pyvenv.cfg").exists():
                yield path, False
            else:
                kept.append(name)
        folders[:] = kept
        yield from ((path, not path.is_symlink()) for path in (Path(where) / name for name in sorted(files)))


def contents(folder: Path) -> dict[str, bytes]:
    """Return a dict from the path of each file in the folder of an app to a digest of its content (BLAKE2b).

    The paths are relative to the folder. The dict omits symbolic links, hidden folders and virtual environments. Two
    results of this function, before and after a run of the app, show which files the app changed.

    Raises:
        CommandError: The files have more than 1 GiB together, or the command cannot read one of the files.
    """
    from hashlib import blake2b

    found, size = {}, 0
    try:
        for path, is_file in _entries(folder):
            if is_file and path.is_file():
                data = path.read_bytes()
                size += len(data)
                found[str(path.relative_to(folder))] = blake2b(data).digest()
                if size > _LARGEST:
                    problem = f"the files in {folder} must have at most 1 GiB together"
                    raise CommandError(f"{problem}. Move data out of the folder of the app", Exit.COULD_NOT_LOOK)
    except OSError as error:
        raise CommandError(f"cannot read {error.filename}: {error.strerror}", Exit.COULD_NOT_LOOK) from None
    return found


def _copied(folder: Path, temporary: Path) -> Path:
    """Copy an app to a temporary folder. Return the path of the copy.

    For example, the copy of the app ``/src/repo/app`` in the Git repository ``/src/repo`` is ``temporary/repo/app``.
    Symbolic links in the temporary folder lead to the other content of ``/src``, so that relative paths still work.
    """
    repository = next((one for one in (folder, *folder.parents) if (one / ".git").exists()), folder)
    copy, above = temporary, repository.parent
    for name in folder.relative_to(above).parts:
        for neighbor in above.iterdir():
            if neighbor.name != name:
                (copy / neighbor.name).symlink_to(neighbor)
        copy, above = copy / name, above / name
        copy.mkdir()
    for path, is_file in _entries(folder):
        target = copy / path.relative_to(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        if is_file:
            shutil.copy2(path, target)
        elif path.name != "__pycache__":
            target.symlink_to(path.resolve())
    return copy


def differences(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> dict[str, list[str]]:
    """Return the files that a run of the app changes, as sorted lists by kind of the difference.

    The kinds are ``missing`` (only in ``after``), ``stale`` (in both, with other content) and ``extra`` (only in
    ``before``).

    Args:
        before: Content or digest of each file before the run, by path of the file.
        after: Content or digest of each file after the run, by path of the file.
    """
    return {
        "missing": sorted(after.keys() - before.keys()),
        "stale": sorted(file for file in after.keys() & before.keys() if after[file] != before[file]),
        "extra": sorted(before.keys() - after.keys()),
    }


def _has_marks(outdir: Path) -> bool:
    """Check whether a folder contains a manifest whose first line states that this library wrote the file.

    The library never removes an output file without such a line.

    Args:
        outdir: Folder with the output files.

    Raises:
        CommandError: The folder contains no files.
    """
    from gpu_constructs.kube.side_files import author

    files = [path for path in outdir.rglob("*") if path.is_file()]
    if not files:
        problem = f"the app wrote no files to {outdir.name}/. If it sets another outdir, set output in {_CONFIG}"
        raise CommandError(problem, Exit.COULD_NOT_LOOK)
    manifests = [path for path in files if path.name.endswith(".k8s.yaml")]
    return any(author(path.name, _first_line(path)) is not None for path in manifests)


def _first_line(path: Path) -> str:
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.readline()


def _shown(project: Project, file: str) -> str:
    """Return a path for messages: the folder of the app as the user typed it, and then ``file``."""
    return str(project.given / file)


def _changes(project: Project, found: Mapping[str, list[str]]) -> Report:
    """Return the report of the command: which files a run of the app created, changed or removed.

    Args:
        project: The user's app.
        found: Paths of files by kind of difference, as ``differences`` returns them.
    """
    lines = [f"{_KINDS[kind][2]} {_shown(project, file)}" for kind, files in found.items() for file in files]
    counts = [f"{len(files)} {_KINDS[kind][2]}" for kind, files in found.items() if files]
    summary = (
        f"files: {', '.join(counts)}" if counts else f"the files in {_shown(project, project.outdir)} did not change"
    )
    return Report("synth", (), summary, {"changes": dict(found)}, "\n".join(lines))


def _freshness(project: Project, found: Mapping[str, list[str]], marked: bool) -> Report:
    """Return the report of ``--check``: a finding for each file that differs from what the app writes.

    Args:
        project: The user's app.
        found: Paths of files by kind of difference, as ``differences`` returns them.
        marked: Whether the app calls the function ``synth`` of this library, which marks each file that it writes.
            Otherwise, the command cannot find files that the app no longer writes, and the report states this.
    """
    findings = [
        Finding(code, "error", "", reason, file=_shown(project, file), way_out="Run gpu-constructs synth.", link=_LINK)
        for kind, (code, reason, _) in _KINDS.items()
        for file in found[kind]
    ]
    counts = [f"{len(files)} {kind}" for kind, files in found.items() if files]
    where = _shown(project, project.outdir)
    summary = (
        f"the files of the app are not fresh: {', '.join(counts)}" if counts else f"the files in {where} are fresh"
    )
    if not marked:
        summary += ". Not checked: files that the app no longer writes, because it does not end with synth(app)"
    return Report("synth", findings, summary, {"changes": dict(found)})
