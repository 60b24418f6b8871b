"""The command ``init``: writes a small cdk8s app that runs without a change."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import NamedTuple

from gpu_constructs.cli import platforms
from gpu_constructs.cli.exits import CommandError, Exit

EXAMPLES = """\
  gpu-constructs init my-cluster
  gpu-constructs init my-cluster --platform talos:1.12.11 --gpu L4 --nodes 2
  gpu-constructs init my-cluster --platform k3s --find-links ../wheels"""
_TEMPLATES: Mapping[str, str] = {
    "app.py": "app.py.txt",
    "pyproject.toml": "pyproject.toml.txt",
    "cdk8s.yaml": "cdk8s.yaml.txt",
    "README.md": "README.md.txt",
    ".gitignore": "gitignore.txt",
    ".gitattributes": "gitattributes.txt",
}
_NAMES = (
    *("App", "CapacityPlan", "Chart", "CudaSmokeTest", "DevicePluginChart", "GpuInventory", "GpuNamespace"),
    *("GpuNode", "GpuProfile", "GpuRequest", "Sharing", "synth"),
)
_RUNTIME_CLASS = ', runtime_class="nvidia-gpu"'
"""Keyword argument for K3s and RKE2, which create the RuntimeClass ``nvidia``. The app creates ``nvidia-gpu``."""
_PATCH = "talosctl --nodes <node-ip> patch machineconfig --patch @dist/machine-config/gpu-node.yaml"
_PATCH_IN_README = f"""
If the nodes run an image with the NVIDIA extensions, patch their machine configuration before you apply the manifests:

```bash
{_PATCH}
```
"""
_NO_INDEX = """\
warning: gpu-constructs is not on a package index yet, so uv cannot install it.
Pass --find-links WHEELDIR, which names a folder with its wheel."""


class _Question(NamedTuple):
    """A property of the cluster, such as the number of GPU nodes, for which ``init`` has an option and a question.

    Attributes:
        option: Name of the option, without hyphens.
        default: Value if the user passes none.
        text: Question on a terminal, and help of the option.
        read: Function that checks the user's value and returns the text for the app. It raises ``CommandError`` if the
            value is wrong.
    """

    option: str
    default: str
    text: str
    read: Callable[[str], str]


def _platform(given: str) -> str:
    platforms.platform_of(given)
    return given


def _gpu(given: str) -> str:
    from gpu_constructs.catalog.gpu_models import board_called, near_boards

    board = board_called(given)
    if board is None:
        raise CommandError(f"--gpu must be a board, as nvidia-smi prints it, got {given!r}{near_boards(given)}")
    return board.name


def _number(option: str, largest: int) -> Callable[[str], str]:
    def read(given: str) -> str:
        if not re.fullmatch(r"[1-9][0-9]{0,4}", given) or int(given) > largest:
            raise CommandError(f"--{option} must be a whole number from 1 to {largest}, got {given!r}")
        return given

    return read


_QUESTIONS = (
    _Question("platform", "talos", f"platform of the nodes: {', '.join(platforms.NAMES)}", _platform),
    _Question("gpu", "RTX 4090", "board of the nodes, as nvidia-smi prints it", _gpu),
    _Question("nodes", "1", "number of GPU nodes", _number("nodes", 1000)),
    _Question("share", "4", "number of pods that share a GPU; 1 means no sharing", _number("share", 100)),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    parser.add_argument("dir", type=Path, metavar="DIR", help="new or empty folder for the app")
    for one in _QUESTIONS:
        parser.add_argument(f"--{one.option}", help=f"{one.text} (default: {one.default})")
    parser.add_argument(
        "--find-links",
        type=Path,
        metavar="WHEELDIR",
        help="folder with the wheel of this package until an index has it",
    )


def run(args: argparse.Namespace) -> Exit:
    """Write the app, and print the commands that the user runs next.

    Raises:
        CommandError: The folder is not empty, or an argument is not valid.
        GpuConstructsError: The library does not support the release of the platform.
    """
    folder: Path = args.dir
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise CommandError(f"{folder} must be a new or an empty folder. Pass another folder")
    asks = sys.stdin.isatty() and sys.stdout.isatty()
    missing = [one.option for one in _QUESTIONS if getattr(args, one.option) is None]
    facts = {one.option: one.read(_answer(one, getattr(args, one.option), asks)) for one in _QUESTIONS}
    texts = _texts(folder, facts, _find_links(folder, args.find_links))
    _write(folder, texts)
    print(f"wrote {', '.join(texts)} to {folder}/")
    if missing and not asks:
        print("defaults: " + ", ".join(f"--{name} {facts[name]!r}" for name in missing))
    if args.find_links is None:
        print(_NO_INDEX, file=sys.stderr)
    steps = [f"cd {shlex.quote(str(folder))}", "uv run gpu-constructs synth", "kubectl apply -f dist/"]
    if _PATCH in texts["README.md"]:
        steps.insert(2, _PATCH)
    print("\n  ".join(["\nnext:", *steps]))
    return Exit.NOTHING


def _answer(question: _Question, given: str | None, asks: bool) -> str:
    """Return the value of a property of the cluster, from the command line, from the terminal, or by default.

    Args:
        question: Property.
        given: Value of the option on the command line. If it is not None, it is the result.
        asks: Whether to ask the user on the terminal if ``given`` is None. If False, the result is the default.
    """
    if given is not None or not asks:
        return question.default if given is None else given
    try:
        return input(f"{question.text} [{question.default}]: ").strip() or question.default
    except EOFError:
        return question.default


def _find_links(folder: Path, wheels: Path | None) -> str:
    """Return the line ``find-links`` of pyproject.toml, which names the folder with the wheel of this package.

    Args:
        folder: Folder of the app. The path in the line is relative to this folder.
        wheels: Folder with the wheel. If None, the result is empty.

    Raises:
        CommandError: ``wheels`` does not contain the wheel of this version.
    """
    if wheels is None:
        return ""
    from gpu_constructs.version import version

    name = f"gpu_constructs-{version()}-*.whl"
    if not any(wheels.glob(name)):
        raise CommandError(
            f"--find-links must be a folder with {name}, got {str(wheels)!r}. Build it: uv build --wheel"
        )
    return f'find-links = ["{Path(os.path.relpath(wheels, folder)).as_posix()}"]'


def _texts(folder: Path, facts: Mapping[str, str], find_links: str) -> dict[str, str]:
    """Return a dict from the name of each file of the new app, such as ``app.py``, to its text.

    Args:
        folder: Folder of the app. Its name becomes the name of the cluster.
        facts: Properties of the cluster by name of the option, such as ``{"gpu": "L4", "nodes": "2", ...}``.
        find_links: Line ``find-links`` for pyproject.toml; empty for no such line.
    """
    from gpu_constructs.version import version

    platform = platforms.platform_of(facts["platform"])
    kind, _, release = facts["platform"].partition(":")
    made_by = type(platform).__name__
    is_talos = made_by == "Talos"
    names = [*_NAMES, made_by, *(["TalosGpuNode"] if is_talos else [])]
    nodes = int(facts["nodes"])
    values = {
        "name": re.sub(r"[^a-z0-9]+", "-", folder.resolve().name.lower()).strip("-") or "my-cluster",
        "version": version(),
        "find_links": find_links,
        "imports": "\n".join(f"    {name}," for name in sorted(names, key=lambda name: (name.islower(), name))),
        "platform": f'{made_by}("{platform.version}")' if release or is_talos else f"{made_by}()",
        "platform_name": str(platform) if kind in ("talos", "kubernetes") else kind,
        "board": facts["gpu"],
        "nodes": facts["nodes"],
        "nodes_in_words": "one node" if nodes == 1 else f"{nodes} nodes",
        "share": facts["share"],
        "sharing": "Sharing.none()" if facts["share"] == "1" else "Sharing.time_slicing(replicas=SHARE)",
        "node": 'TalosGpuNode(app, "gpu-node", platform=PLATFORM)\n' if is_talos else "",
        "machine_config": _PATCH_IN_README if is_talos else "",
        "runtime_class": _RUNTIME_CLASS if kind in platforms.WITH_RUNTIME_CLASS else "",
    }
    templates = files("gpu_constructs.cli.init").joinpath("templates")
    made = {
        name: Template(templates.joinpath(template).read_text(encoding="utf-8")).substitute(values)
        for name, template in _TEMPLATES.items()
    }
    return {name: f"{text.rstrip()}\n" for name, text in made.items()}


def _write(folder: Path, texts: Mapping[str, str]) -> None:
    """Write all files of the new app to a folder. If one file fails, write none.

    Args:
        folder: Folder of the app.
        texts: Text of each file, by name of the file.

    Raises:
        CommandError: The command cannot write a file.
    """
    try:
        is_new = not folder.exists()
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".gpu-constructs-") as temporary:
            staged = Path(temporary) / "app"
            staged.mkdir()
            for name, text in texts.items():
                (staged / name).write_text(text, encoding="utf-8")
            if is_new:
                staged.rename(folder)
            else:
                _move(staged, folder)
    except OSError as error:
        problem = f"cannot write {error.filename or folder}: {error.strerror}"
        raise CommandError(f"{problem}. The folder stays as it was. Pass another folder") from None


def _move(staged: Path, folder: Path) -> None:
    """Move all files from ``staged`` to an empty folder. If a file cannot move, delete the files that have moved."""
    try:
        for path in staged.iterdir():
            path.rename(folder / path.name)
    except OSError:
        for path in folder.iterdir():
            path.unlink()
        raise
