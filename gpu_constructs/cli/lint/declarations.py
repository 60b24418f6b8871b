"""The options ``--external`` and ``--platform``: what the cluster contains besides the manifests."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import get_args

from gpu_constructs.cli import platforms
from gpu_constructs.cli.exits import CommandError
from gpu_constructs.errors import GpuConstructsError, did_you_mean
from gpu_constructs.facts.provided import COMPONENTS, GpuRuntime, Provided

KINDS = (
    "runtime_classes",
    "node_labels",
    "namespaces",
    "config_maps",
    "priority_classes",
    "secrets",
    "service_accounts",
    "gpu_resources",
    "components",
    "gpu_runtime",
)
"""Kinds of declarations for ``--external``: the keyword arguments of ``External``."""
_WORDS = {"components": tuple(COMPONENTS), "gpu_runtime": get_args(GpuRuntime)}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options ``--external`` and ``--platform`` to the parser of a command."""
    parser.add_argument(
        "--external",
        metavar="KIND=NAME",
        action="append",
        default=[],
        type=_declaration,
        help=f"declare what the cluster already contains; KIND is one of {', '.join(KINDS)}. You can repeat the option",
    )
    parser.add_argument(
        "--platform",
        metavar="NAME[:RELEASE]",
        help=f"platform of the nodes: one of {', '.join(platforms.NAMES)}, such as talos:1.13",
    )


def _declaration(text: str) -> tuple[str, str]:
    kind, separator, name = text.partition("=")
    if kind not in KINDS or not separator or not name:
        near = did_you_mean(kind, KINDS)
        raise argparse.ArgumentTypeError(f"must be KIND=NAME with one of {', '.join(KINDS)}, got {text!r}{near}")
    if name not in _WORDS.get(kind, (name,)):
        raise argparse.ArgumentTypeError(f"{kind} must be one of {', '.join(_WORDS[kind])}, got {name!r}")
    return kind, name


def declared_by(args: argparse.Namespace) -> list[tuple[str, Provided]]:
    """Return what the user declares on the command line about the cluster.

    Returns:
        Pairs: the option, such as ``--external``, and the ``Provided`` that it declares. Messages name the option.

    Raises:
        CommandError: The platform is not known, a name is not valid in Kubernetes, or the user passes two different
            values for ``--external gpu_runtime``.
    """
    found = [("--platform", platforms.provided_on(args.platform))] if args.platform else []
    return [*found, ("--external", _provided(args.external))] if args.external else found


def _provided(declarations: Sequence[tuple[str, str]]) -> Provided:
    from gpu_constructs.facts.externals import declared

    names: dict[str, list[str]] = {}
    for kind, name in declarations:
        names.setdefault(kind, []).append(name)
    runtimes = names.pop("gpu_runtime", [])
    if len(set(runtimes)) > 1:
        raise CommandError(f"--external gpu_runtime must have one value, got {', '.join(runtimes)}. Pass one of them")
    try:
        return declared(**names, **({"gpu_runtime": runtimes[0]} if runtimes else {}))  # type: ignore[arg-type]
    except GpuConstructsError as error:
        raise CommandError(f"--external {error}") from None
