"""The command ``doctor``: finds the cause of a problem with GPUs in a cluster, or in a copy of its objects.

The command reads the objects of the cluster into a ``Snapshot``. The checks read only this snapshot, so they have the
same results for a live cluster and for a folder with a copy of its objects.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gpu_constructs.cli import kubectl
from gpu_constructs.cli.documents import Broken
from gpu_constructs.cli.exits import CommandError, Exit
from gpu_constructs.cli.findings import Report
from gpu_constructs.cli.reporting import add_fail_on, add_format, finish

if TYPE_CHECKING:
    from gpu_constructs.cli.doctor.snapshot import Snapshot

EXAMPLES = """\
  gpu-constructs doctor
  gpu-constructs doctor --context home --plan dist/home
  gpu-constructs doctor --wait 10m
  gpu-constructs doctor --bundle for-support
  gpu-constructs doctor --from for-support
  gpu-constructs doctor --rights | kubectl apply -f -"""
_PAUSE = 5.0
_UNITS = {"s": 1, "m": 60, "h": 3600}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command ``doctor`` to its parser."""
    kubectl.add_cluster(parser)
    parser.add_argument(
        "--from",
        dest="source",
        metavar="BUNDLE",
        help="look at a folder or file instead of a cluster: a bundle, output of kubectl get, or a must-gather folder",
    )
    parser.add_argument("--plan", metavar="DIR", help="folder of the cluster in dist/, to compare the cluster with it")
    parser.add_argument("--bundle", metavar="DIR", type=Path, help="also write what the command read to a new folder")
    parser.add_argument("--namespace", default="", help="look only at the workloads of this namespace")
    parser.add_argument(
        "--wait", metavar="TIME", type=_duration, default=0, help="repeat until no check fails, at most this long: 10m"
    )
    parser.add_argument("--short", action="store_true", help="print no line for checks that passed or do not apply")
    parser.add_argument("--rights", action="store_true", help="print the ClusterRole that the command needs, and exit")
    add_format(parser, ("text", "json", "github", "markdown"))
    add_fail_on(parser)


def _duration(text: str) -> float:
    found = re.fullmatch(r"(\d{1,6})([smh])", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"must be a number with s, m or h, such as 10m, got {text!r}")
    return int(found[1]) * _UNITS[found[2]]


def run(args: argparse.Namespace) -> Exit:
    """Check a live cluster or a saved copy of its objects, and print the problems. Return the exit status.

    Raises:
        CommandError: Options contradict each other, or the cluster or the saved copy is not readable.
    """
    from gpu_constructs.cli.doctor import bundle, output

    if args.rights:
        sys.stdout.write(output.rights())
        return Exit.NOTHING
    if args.source and (args.wait or args.context or args.kubeconfig):
        raise CommandError("--from excludes --wait, --context and --kubeconfig. Remove --from or these options")
    end = time.monotonic() + args.wait
    while True:
        snapshot, report, is_complete, broken = _looked(args)
        has_failed = not is_complete or any(one.severity == "error" for one in report.findings)
        if not has_failed or time.monotonic() >= end:
            break
        if sys.stderr.isatty():
            print(f"{report.summary} Looking again in {_PAUSE:.0f} s.", file=sys.stderr)
        time.sleep(min(_PAUSE, max(end - time.monotonic(), 0)))
    if args.bundle is not None:
        bundle.write(snapshot, args.bundle)
    status = finish(args, report, broken)
    return status if is_complete else Exit.COULD_NOT_LOOK


def _looked(args: argparse.Namespace) -> tuple[Snapshot, Report, bool, Sequence[Broken]]:
    """Read a cluster or a saved copy of its objects, and run all checks once.

    Returns:
        The state of the cluster, the report, a bool, and the parts of the input that the command could not read. The
        bool is True if the command could read everything that a complete report needs.
    """
    from gpu_constructs.cli.doctor import bundle, checking, live, output
    from gpu_constructs.cli.doctor.view import View

    plan, broken = bundle.read_plan(args.plan) if args.plan else (None, ())
    if args.source:
        snapshot, more = bundle.read(args.source, args.namespace, plan)
        broken = (*broken, *more)
    else:
        snapshot = live.read(kubectl.Kubectl.of(args), args.namespace, plan, all_logs=args.bundle is not None)
    view = View(snapshot)
    results = checking.run(view)
    is_complete = checking.could_look(results, view)
    report = output.report_of(results, snapshot.where, is_complete=is_complete, is_short=args.short)
    return snapshot, report, is_complete, broken
