"""The options ``--format``, ``--report`` and ``--fail-on``, and the function that writes the report of a command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from gpu_constructs.cli.documents import Broken
from gpu_constructs.cli.exits import CommandError, Exit
from gpu_constructs.cli.findings import FORMATS, SEVERITIES, Report, status_of


def add_format(
    parser: argparse.ArgumentParser, formats: Sequence[str] = tuple(FORMATS), files: Sequence[str] = ()
) -> None:
    """Add the options ``--format`` and ``--report`` to the parser of a command.

    Args:
        parser: Parser of the command.
        formats: Formats that the command can write; by default all formats.
        files: Further formats, such as ``html``, that the command writes only to a file. ``Report.files`` has a
            function for each of these formats.
    """
    parser.add_argument("--format", choices=formats, default="text", help="format of the output (default: text)")
    parser.add_argument(
        "--report",
        metavar="FORMAT=FILE",
        action="append",
        default=[],
        type=partial(_report, (*formats, *files)),
        help=f"also write the result to a file as {', '.join((*formats, *files))}; you can repeat the option",
    )


def add_fail_on(parser: argparse.ArgumentParser, default: str = "error") -> None:
    """Add the option ``--fail-on`` to the parser of a command.

    Args:
        parser: Parser of the command.
        default: Lowest severity that leads to the exit status 1 by default.
    """
    parser.add_argument(
        "--fail-on",
        choices=(*SEVERITIES, "never"),
        default=default,
        help=f"exit with 1 if a finding has at least this severity (default: {default})",
    )


def _report(formats: Sequence[str], text: str) -> tuple[str, Path]:
    name, separator, file = text.partition("=")
    if not separator or name not in formats or not file:
        raise argparse.ArgumentTypeError(f"must be FORMAT=FILE with one of {', '.join(formats)}, got {text!r}")
    return name, Path(file)


def finish(args: argparse.Namespace, report: Report, broken: Sequence[Broken] = (), status: Exit | None = None) -> Exit:
    """Print a report, write a file for each option ``--report``, and return the exit status.

    Args:
        args: Arguments of the command, with the attributes ``format``, ``report`` and, if the command has it,
            ``fail_on``.
        report: Result of the command.
        broken: Parts of the input that the command could not read. The function prints them to standard error. If
            there are any, the exit status is ``COULD_NOT_LOOK``, because the result is incomplete.
        status: Exit status if the input was readable. None, the default: the findings and ``args.fail_on`` decide.

    Raises:
        CommandError: The command cannot write a file of ``--report``.
    """
    for name, file in args.report:
        try:
            file.write_text(report.written(name), encoding="utf-8")
        except OSError as error:
            raise CommandError(f"cannot write {file}: {error.strerror}. Pass another file", Exit.USAGE) from None
    sys.stdout.write(report.written(args.format))
    sys.stdout.flush()
    for one in broken:
        print(one, file=sys.stderr)
    if broken:
        return Exit.COULD_NOT_LOOK
    return status_of(report.findings, getattr(args, "fail_on", "error")) if status is None else status
