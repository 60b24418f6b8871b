"""The entry point of the command ``gpu-constructs``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType

from gpu_constructs.cli import terminal
from gpu_constructs.cli.exits import CommandError, Exit
from gpu_constructs.errors import GpuConstructsError

NAME = "gpu-constructs"
COMMANDS: Mapping[str, str] = {
    "init": "Write a small app for a cluster with GPUs, which works at once.",
    "lint": "Check manifests of any origin with the rules for GPU workloads.",
    "plan": "Check whether the pods of manifests fit the GPU nodes of a cluster.",
    "recommend": "Propose how the GPU nodes of a cluster share their GPUs.",
    "diff": "Show what a change of manifests does: restarts, refused changes, GPUs, rights, and the commands to run.",
    "doctor": "Look at a live cluster, or at a copy of its objects, and find the cause of a problem with GPUs.",
    "migrate": "Print Python for the values of a Helm chart.",
    "compare": "Compare what helm template printed with what this library makes of the same values.",
    "synth": "Run an app, or check that its files are fresh.",
    "explain": "Print what the documentation says about a code, an alert or a name.",
}
"""Commands in the order of the help text, each with its summary. The module of a command has the name of the command.

Each of these modules defines ``EXAMPLES``, ``add_arguments(parser)`` and ``run(args)``. ``run`` returns an ``Exit``.
"""
_STATUSES = "exit status: 0 nothing found, 1 found, 2 wrong usage, 3 could not read all"

_EXAMPLES = """\
  helm template ollama ollama/ollama | gpu-constructs lint -
  gpu-constructs init my-cluster --platform talos --gpu "RTX 4090"
  gpu-constructs explain R07"""


def parser(chosen: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of the command line.

    Args:
        chosen: Command whose arguments the parser reads, such as ``lint``. For every other command, the parser has only
            a name and a summary. None, the default: the parser reads the arguments of all commands.
    """
    made = argparse.ArgumentParser(
        NAME,
        description="Check, plan, compare and migrate Kubernetes manifests with NVIDIA GPUs.\n"
        "No command changes a cluster.",
        epilog=f"examples:\n{_EXAMPLES}\n\n{_STATUSES}\nhelp for a command: {NAME} COMMAND --help",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument(
        "--version",
        action=_Version,
        nargs=0,
        default=argparse.SUPPRESS,
        help="show the version of the program, and exit",
    )
    commands = made.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        command = commands.add_parser(
            name,
            help=summary,
            description=terminal.wrapped(summary),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if chosen in (None, name):
            module = _module(name)
            command.epilog = f"examples:\n{module.EXAMPLES}\n\n{_STATUSES}"
            module.add_arguments(command)
    return made


class _Version(argparse.Action):
    """The option ``--version``, which imports the slow module with the version only if the user passes the option."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print the version and exit."""
        from gpu_constructs.version import version

        print(f"{NAME} {version()}")
        parser.exit()


def _module(command: str) -> ModuleType:
    return import_module(f"gpu_constructs.cli.{command}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that the arguments name, such as ``lint``, and return the exit status of this process.

    Args:
        arguments: Arguments of ``gpu-constructs``, such as ``["lint", "dist/"]``. None, the default: the arguments of
            this process.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    chosen = next((one for one in given if one in COMMANDS), "")
    args = parser(chosen).parse_args(given)
    try:
        status = int(_module(args.command).run(args))
        sys.stdout.flush()
        return status
    except CommandError as error:
        print(f"{NAME} {args.command}: {error}", file=sys.stderr)
        return error.status
    except GpuConstructsError as error:
        # Messages of the library mention Python code. Commands about manifests reword them.
        worded = getattr(_module(args.command), "for_manifests", str)
        print(f"{NAME} {args.command}: {worded(str(error))}", file=sys.stderr)
        return Exit.USAGE
    except BrokenPipeError:
        # The reader of the output, such as head, ended first. Python must not flush the rest at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.COULD_NOT_LOOK
