"""The option ``--inventory``: the GPU nodes of a cluster, from a file of the user or from ``kubectl get nodes``."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

from gpu_constructs.catalog.inventory import GpuInventory
from gpu_constructs.cli import documents
from gpu_constructs.cli.exits import CommandError, Exit
from gpu_constructs.errors import GpuConstructsError, warnings_kept_in


def add_inventory(parser: argparse.ArgumentParser) -> None:
    """Add the required option ``--inventory`` to the parser of a command."""
    parser.add_argument(
        "--inventory",
        metavar="FILE",
        required=True,
        help="GPU nodes of the cluster: an inventory, or what kubectl get nodes prints as JSON or YAML",
    )


def read(path: str) -> tuple[GpuInventory, list[str]]:
    """Return the GPU nodes in a file, and warnings about these nodes.

    The file contains an inventory in YAML, or Kubernetes nodes as ``kubectl get nodes -o json|yaml`` prints them. The
    function detects which of the two the file contains.

    Args:
        path: Path of the file.

    Raises:
        CommandError: The command cannot read the file, or its content is not valid.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        problem = f"cannot read the inventory {path}: {error.strerror}. Pass another file"
        raise CommandError(problem, Exit.COULD_NOT_LOOK) from None
    except ValueError:
        raise CommandError(f"inventory {path} must be UTF-8 text. Pass another file", Exit.COULD_NOT_LOOK) from None
    objects = [one.manifest for one in documents.parsed(path, text) if isinstance(one, documents.Document)]
    remarks: list[str] = []
    try:
        with warnings.catch_warnings(action="ignore"), warnings_kept_in(remarks):
            if objects:
                return GpuInventory.from_nodes({"kind": "List", "items": objects}), remarks
            return GpuInventory.from_yaml(text), remarks
    except GpuConstructsError as error:
        # The whole message begins with the line, such as "line 3: nodes[0].gpus must be ...".
        raise CommandError(f"inventory {path}: {error.problem}") from None
