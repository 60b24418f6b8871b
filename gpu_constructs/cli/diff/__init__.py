"""The command ``diff``: what a change of manifests does to a cluster."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from gpu_constructs.cli.exits import CommandError, Exit
from gpu_constructs.cli.kubectl import Kubectl, add_cluster
from gpu_constructs.cli.reporting import add_format, finish

if TYPE_CHECKING:
    from gpu_constructs.cli.diff.analysis import Comparison
    from gpu_constructs.cli.diff.model import Sides

EXAMPLES = """\
  gpu-constructs diff dist-old dist            two folders or files
  gpu-constructs diff --git HEAD               dist as committed, and as it is
  gpu-constructs diff --git main..topic dist   dist of two branches
  gpu-constructs diff --cluster dist/home      what runs, and a folder
  gpu-constructs diff --git HEAD --format markdown --report sarif=diff.sarif
  gpu-constructs diff old new --fail-on immutable,broadening"""
_FAIL_ON = ("any", "never", "immutable", "restart", "capacity", "broadening")
_DIST = "dist"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command ``diff`` to its parser."""
    parser.add_argument("paths", nargs="*", metavar="PATH", help="OLD and NEW; with --git or --cluster, one folder")
    other = parser.add_mutually_exclusive_group()
    other.add_argument(
        "--git", metavar="REF", help=f"compare a folder (default: {_DIST}) as committed with the folder, or REF..REF"
    )
    other.add_argument("--cluster", action="store_true", help="compare what runs in a cluster with a folder or file")
    parser.add_argument("--inventory", metavar="FILE", help="GPU nodes of the cluster as YAML, for a capacity plan")
    parser.add_argument("--security-only", action="store_true", help="show only rights and access that grow or shrink")
    parser.add_argument(
        "--fail-on",
        action="append",
        metavar="TOPIC",
        type=_topics,
        help=f"exit with 1 only for these topics, with commas or repeated: {', '.join(_FAIL_ON)} (default: any)",
    )
    add_cluster(parser)
    add_format(parser)


def _topics(text: str) -> list[str]:
    topics = [one.strip() for one in text.split(",")]
    if wrong := [one for one in topics if one not in _FAIL_ON]:
        raise argparse.ArgumentTypeError(f"must be one or more of {', '.join(_FAIL_ON)}, got {wrong[0]!r}")
    return topics


def run(args: argparse.Namespace) -> Exit:
    """Compare old and new objects from the sources that the arguments name, and print the effects of the change.

    Return the exit status of the command.

    Raises:
        CommandError: The arguments contradict each other, or the command cannot read the old or the new objects.
    """
    from gpu_constructs.cli import inventory
    from gpu_constructs.cli.diff import showing
    from gpu_constructs.cli.diff.analysis import compared, only_security
    from gpu_constructs.cli.diff.model import TOPICS
    from gpu_constructs.cli.diff.steps import steps_of
    from gpu_constructs.cli.findings import Report

    sides = _sides(args)
    found = compared(sides, inventory.read(args.inventory)[0] if args.inventory else None)
    steps = []
    if args.security_only:
        found = only_security(found)
    else:
        steps = steps_of(found, sides.new, Kubectl(args.context, args.kubeconfig).options)
    summary = showing.summary_of(found)
    report = Report(
        "diff",
        showing.findings_of(found),
        summary,
        showing.as_data(found, steps),
        rules={str(topic): title for topic, title in TOPICS.items()},
        files={
            "text": lambda: showing.as_text(found, steps, summary, sides.how),
            "markdown": lambda: showing.as_markdown(found, steps, summary, sides.how),
        },
    )
    chosen = {one for given in args.fail_on or [["any"]] for one in given}
    return finish(args, report, [*sides.broken, *found.broken], _status(found, chosen))


def _sides(args: argparse.Namespace) -> Sides:
    """Read the old and the new objects from the folders, files, Git revisions or cluster that the arguments name."""
    from gpu_constructs.cli.diff import live, sources

    paths = args.paths
    if args.git is not None and len(paths) < 2:
        return sources.of_git(args.git, paths[0] if paths else _DIST)
    if args.cluster and len(paths) == 1:
        return live.of_cluster(Kubectl.of(args), paths[0])
    if args.git is None and not args.cluster and len(paths) == 2:
        return sources.of_paths(*paths)
    wanted = "at most one folder with --git" if args.git is not None else "one folder with --cluster"
    wanted = wanted if args.git is not None or args.cluster else "two folders or files, OLD and NEW"
    raise CommandError(f"PATH must be {wanted}, got {len(paths)} paths. See gpu-constructs diff --help")


def _status(found: Comparison, chosen: set[str]) -> Exit:
    """Return the exit status: ``FOUND`` if an effect of the change has one of the given topics, otherwise ``NOTHING``.

    Args:
        found: Result of the comparison.
        chosen: Topics from the option ``--fail-on``, such as ``restart``. ``any`` stands for every difference.
    """
    is_found = found.differs if "any" in chosen else bool({one.topic for one in found.all_effects} & chosen)
    return Exit.FOUND if is_found else Exit.NOTHING
