"""The command ``lint``: checks manifests of any origin with the rules for GPU workloads."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpu_constructs.cli import documents, reporting
from gpu_constructs.cli.exits import CommandError, Exit
from gpu_constructs.cli.findings import SEVERITIES, Finding, Report
from gpu_constructs.cli.lint import baseline, declarations

if TYPE_CHECKING:
    from gpu_constructs.cli.lint.examination import Examined

EXAMPLES = """\
  gpu-constructs lint dist/
  helm template ollama ollama/ollama | gpu-constructs lint -
  gpu-constructs lint dist/ --platform talos:1.12 --inventory gpus.yaml
  gpu-constructs lint dist/ --external runtime_classes=nvidia --ignore R13
  gpu-constructs lint dist/ --baseline lint.json --report sarif=lint.sarif"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", help="file or folder with manifests; - stands for standard input"
    )
    parser.add_argument(
        "--each", action="store_true", help="check each folder directly in PATH as a cluster of its own"
    )
    parser.add_argument(
        "--inventory", type=Path, metavar="FILE", help="GPU nodes of the cluster, for checks of boards and numbers"
    )
    declarations.add_arguments(parser)
    parser.add_argument(
        "--ignore", metavar="CODE", action="append", default=[], help="leave out a code; you can repeat the option"
    )
    parser.add_argument("--baseline", type=Path, metavar="FILE", help="leave out the known findings in this file")
    parser.add_argument(
        "--write-baseline", type=Path, metavar="FILE", help="write all findings to this file as known, and exit with 0"
    )
    reporting.add_format(parser)
    reporting.add_fail_on(parser)


def run(args: argparse.Namespace) -> Exit:
    """Check manifests, and print the findings.

    Raises:
        CommandError: An argument is wrong, a file is not readable, or no file contains a Kubernetes object.
        GpuConstructsError: The inventory is not valid, or the library does not support the release of the platform.
    """
    declared = declarations.declared_by(args)
    known = baseline.read(args.baseline) if args.baseline else []
    if args.inventory and not args.inventory.is_file():
        raise CommandError(f"found no inventory {args.inventory}. Name a file with GPU nodes", Exit.COULD_NOT_LOOK)
    clusters = list(_clusters(args))
    broken = [one for read in clusters for one in read.broken]
    objects = sum(len(read.objects) for read in clusters)
    if not objects and not broken:
        where = ", ".join(args.paths)
        raise CommandError(f"found no Kubernetes objects in {where}. Name files with manifests", Exit.COULD_NOT_LOOK)
    # These modules take longer to import than all others, so wrong arguments do not wait for them.
    from gpu_constructs.catalog.inventory import GpuInventory
    from gpu_constructs.cli.lint.codes import codes, require_codes
    from gpu_constructs.cli.lint.examination import Examined, examine

    inventory = GpuInventory.from_file(args.inventory) if args.inventory else None
    result, ignore = Examined(), require_codes(args.ignore)
    for read in clusters:
        examine(read.objects, declared, inventory, ignore, result)
    if args.write_baseline:
        baseline.write(args.write_baseline, result.found)
        known = [baseline.key_of(one) for one in result.found]
    new, gone = baseline.without_known(result.found, known)
    files = len({one.file for read in clusters for one in read.objects})
    summary = _summary(f"{_counted(objects, 'object')} in {_counted(files, 'file')}", result, new, gone)
    details: dict[str, Any] = {
        "objects": objects,
        "not_checked": [*result.gaps, *result.failed],
        "baseline": {
            "known": len(result.found) - len(new),
            "gone": [dict(zip(_KEYS, one, strict=True)) for one in gone],
        },
    }
    titles: Mapping[str, str] = {code: one.title for code, one in codes().items()}
    return _status(reporting.finish(args, Report("lint", new, summary, details, rules=titles), broken), result)


_KEYS = ("code", "object", "reason")


def _clusters(args: argparse.Namespace) -> Iterator[documents.Documents]:
    """Yield the objects of each cluster.

    By default, all paths together form one cluster. With ``--each``, each folder inside a path is a cluster.

    Raises:
        CommandError: The user passes ``--each``, and a path is not a folder that contains folders.
    """
    if not args.each:
        yield documents.read(args.paths)
        return
    for path in args.paths:
        folders = sorted(one for one in Path(path).iterdir() if one.is_dir()) if Path(path).is_dir() else []
        if not folders:
            raise CommandError(f"--each needs a folder with folders of clusters, got {path}. Leave --each out")
        for folder in folders:
            yield documents.read([str(folder)])


def _status(status: Exit, result: Examined) -> Exit:
    return Exit.COULD_NOT_LOOK if result.failed else status


def _counted(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _summary(where: str, result: Examined, new: Sequence[Finding], gone: Sequence[baseline.Key]) -> str:
    """Return the last line of the report: the numbers of findings, and what the checks could not examine.

    Args:
        where: Text for the examined input, such as ``12 objects in 3 files``.
        result: Result of the checks.
        new: Findings that the baseline (the file of accepted findings) does not contain.
        gone: Entries of the baseline that the checks no longer find.
    """
    numbers = [(sum(one.severity == severity for one in new), severity) for severity in SEVERITIES]
    counts = [_counted(number, severity) for number, severity in numbers if number]
    pods = "no pod requests a GPU" if not result.pods else f"{_counted(result.pods, 'pod spec')} with GPUs"
    parts = [f"{where}, {pods}: {', '.join(counts) or 'nothing found'}"]
    if len(result.found) > len(new):
        parts.append(f"Known from the baseline: {_counted(len(result.found) - len(new), 'finding')}")
    if gone:
        parts.append(
            f"No longer found, remove from the baseline: {', '.join(f'{code} of {about}' for code, about, _ in gone)}"
        )
    if result.gaps:
        parts.append(f"Not checked: {'; '.join(result.gaps)}")
    return ". ".join([*parts, *result.failed])
