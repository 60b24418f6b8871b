"""The command ``recommend``: proposes how the GPU nodes of a cluster share their GPUs between the pods of manifests."""

from __future__ import annotations

import argparse
from typing import Any

from gpu_constructs.capacity.recommendation import SharingRecommendation, recommend_sharing
from gpu_constructs.capacity.report.words import counted
from gpu_constructs.cli import inventory, reporting, terminal
from gpu_constructs.cli.exits import Exit
from gpu_constructs.cli.findings import Report
from gpu_constructs.cli.plan import situation_of
from gpu_constructs.cli.plan.wording import for_manifests
from gpu_constructs.cli.platforms import NAMES, platform_of
from gpu_constructs.device_plugin.config import Flags, PluginConfig

EXAMPLES = """\
  gpu-constructs recommend dist/ --inventory gpus.yaml
  gpu-constructs recommend dist/ --inventory gpus.yaml --isolation
  helm template web ./web | gpu-constructs recommend - --inventory gpus.yaml"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    parser.add_argument(
        "paths", nargs="+", metavar="PATH", help="file or folder with manifests; - stands for standard input"
    )
    inventory.add_inventory(parser)
    parser.add_argument(
        "--platform", metavar="NAME[:RELEASE]", help=f"platform of the nodes: {', '.join(NAMES)}; Talos excludes MPS"
    )
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--isolation", action="store_true", help="pods must not affect each other: share by MIG only")
    kinds.add_argument(
        "--trusted-cuda-services",
        action="store_true",
        help="the pods are small CUDA services of one owner, and a fault in one may end all: allow MPS",
    )
    reporting.add_format(parser, ("text", "json", "markdown"))


def run(args: argparse.Namespace) -> Exit:
    """Print a recommendation for each node of the inventory.

    Raises:
        CommandError: An argument is wrong, a file is not readable, or no file contains a Kubernetes object.
        GpuConstructsError: No workload requests a GPU.
    """
    found, situation, remarks = situation_of(args)
    made = recommend_sharing(
        situation.inventory,
        situation.manifests,
        isolation=args.isolation,
        trusted_cuda_services=args.trusted_cuda_services,
        platform=platform_of(args.platform) if args.platform else None,
    )
    summary = f"Set this on {counted(len(made), 'node')}, and check the result with gpu-constructs plan"
    parts = [*map(_text, made), *(terminal.wrapped(f"note: {one}") for one in remarks)]
    report = Report(
        "recommend", [], summary, {"recommendations": [_data(one) for one in made]}, text="\n\n".join(parts)
    )
    return reporting.finish(args, report, found.broken)


def _text(made: SharingRecommendation) -> str:
    """Return a recommendation as text: what to set, and why."""
    data = _data(made)
    mode = f"{made.node}: {made.mode}, {counted(made.pods_at_once, 'pod')} at once"
    lines = [mode, *(terminal.wrapped(f"- {one}", indent=4, first=2) for one in data["reasons"])]
    lines.append("  configuration file of the device plugin:")
    return "\n".join([*lines, *(f"    {line}" for line in data["config"].splitlines())])


def _data(made: SharingRecommendation) -> dict[str, Any]:
    flags = Flags(mig_strategy="mixed") if made.mode == "mig" else Flags()
    return {
        "node": made.node,
        "mode": made.mode,
        "config": PluginConfig(flags=flags, sharing=made.sharing).to_yaml(),
        "mig_layout": made.mig_layout,
        "reasons": [for_manifests(one) for one in made.reasons],
        "workloads": list(made.workloads),
        "pods_at_once": made.pods_at_once,
    }
