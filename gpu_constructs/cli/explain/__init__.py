"""The command ``explain``: prints, offline, what the documentation says about a rule, alert, construct or term."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

from gpu_constructs.cli import terminal
from gpu_constructs.cli.exits import CommandError, Exit
from gpu_constructs.records import dataclass

EXAMPLES = """\
  gpu-constructs explain R07
  gpu-constructs explain D12
  gpu-constructs explain GpuExporterAbsent
  gpu-constructs explain nvidia.com/gpu.shared
  gpu-constructs explain --list"""
_CHECKS, _OF_DOCTOR = "checks of lint", "checks of doctor"


@dataclass(frozen=True)
class Explanation:
    """What the documentation says about a name, such as the name of an alert or the code of a rule.

    Attributes:
        group: Kind of the name as a plural noun, such as ``alerts``.
        title: Title that the command prints after the name; empty if the name alone is the heading.
        text: Paragraphs in Markdown.
        link: Page and section of the documentation.
    """

    group: str
    title: str
    text: str
    link: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    parser.add_argument("name", nargs="*", metavar="NAME", help="code, alert, resource name, node label or term")
    parser.add_argument("--list", action="store_true", help="print all names")
    parser.add_argument("--format", choices=("text", "json"), default="text", help="format (default: text)")


def run(args: argparse.Namespace) -> Exit:
    """Print the explanations of names, or the list of all names.

    Raises:
        CommandError: The documentation does not explain one of the names.
    """
    if args.list == bool(args.name):
        raise CommandError("explain needs a NAME or --list, and not both. Example: gpu-constructs explain R07")
    known = explanations()
    if args.list:
        groups: dict[str, list[str]] = {}
        for name, one in known.items():
            groups.setdefault(one.group, []).append(name)
        sys.stdout.write(_json(groups) if args.format == "json" else _listed(groups))
        return Exit.NOTHING
    chosen = _chosen(known, " ".join(args.name))
    if args.format == "json":
        found = [
            {"name": given, "title": known[name].title, "text": known[name].text, "link": known[name].link}
            for given, name in chosen.items()
        ]
        sys.stdout.write(_json(found[0] if len(found) == 1 else {"names": found}))
    else:
        print("\n\n".join(_text(given, name, known[name]) for given, name in chosen.items()))
    return Exit.NOTHING


def _text(given: str, name: str, found: Explanation) -> str:
    heading = terminal.wrapped(f"{given if '*' in name else name}: {_words(found.title)}".removesuffix(": "))
    return "\n\n".join([terminal.painted(heading, "bold"), *plain(found.text), *_boards(given), found.link])


@cache
def explanations() -> dict[str, Explanation]:
    """Return a dict from each name that the command can explain, such as ``R07``, to its explanation."""
    from gpu_constructs.cli.doctor.checking import rows
    from gpu_constructs.cli.lint.codes import codes

    table = files("gpu_constructs.cli.explain").joinpath("explanations.json").read_text(encoding="utf-8")
    checks = {
        code: Explanation(_CHECKS, one.title, one.reason, one.link) for code, one in codes().items() if one.reason
    }
    of_doctor = {
        row.id: Explanation(
            _OF_DOCTOR, f"{row.title} ({row.severity})", row.way_out and f"**Way out.** {row.way_out}.", row.link
        )
        for row in rows()
    }
    return {**{name: Explanation(*row) for name, row in json.loads(table).items()}, **checks, **of_doctor}


def _chosen(known: Mapping[str, Explanation], given: str) -> dict[str, str]:
    """Return a dict from each name as the user typed it, such as ``r7``, to the name in ``known``, such as ``R07``.

    If ``given`` as a whole is a name, such as ``machine configuration``, the only key is ``given``. Otherwise, each
    word of ``given`` is a key.

    Raises:
        CommandError: ``given`` is not a name, and one of its words is not a name either.
    """
    try:
        return {given: _name_among(known, given)}
    except CommandError:
        return {word: _name_among(known, word) for word in given.split() or [given]}


def _name_among(known: Mapping[str, Explanation], given: str) -> str:
    """Return the name in ``known`` that the user means.

    The function ignores case, and the code of a rule needs no leading zero: ``r7`` stands for ``R07``.

    Args:
        known: Explanations by name. A name that ends with ``*`` stands for all names with the same start.
        given: Name that the user typed.

    Raises:
        CommandError: ``known`` does not contain the name.
    """
    wanted = re.sub(r"\Ar(?=\d\Z)", "r0", given.strip().lower())
    for name in known:
        if name.lower() == wanted:
            return name
    for name in known:
        if name.endswith("*") and wanted.startswith(name[:-1]) and " " not in wanted:
            return name
    from gpu_constructs.errors import did_you_mean

    near = did_you_mean(wanted, [name.lower() for name in known])
    actual = {name.lower(): name for name in known}
    near = re.sub(r"'(.*)'", lambda match: f"'{actual[match[1]]}'", near)
    groups = ", ".join(dict.fromkeys(one.group for one in known.values()))
    raise CommandError(f"the documentation does not explain {given!r}{near}. It has {groups}: see explain --list")


def _boards(name: str) -> Iterator[str]:
    """Yield a paragraph with the boards that support a MIG resource, such as ``nvidia.com/mig-1g.10gb``.

    Yield nothing for the name of anything else.
    """
    profile = re.match(r"nvidia\.com/mig-(\d+g\.\d+gb)", name.lower())
    if profile:
        from gpu_constructs.catalog.mig_profiles import MIG_PROFILES

        boards = [board for board, profiles in MIG_PROFILES.items() if profile[1] in profiles]
        yield terminal.wrapped(f"Boards with this profile: {', '.join(boards) or 'none that the library knows'}.")


def plain(markdown: str) -> Iterator[str]:
    """Yield the paragraphs, lists and code blocks of a text in Markdown as plain text for 80 columns."""
    for number, part in enumerate(re.split(r"^```\w*\n(.*?)^```$\n?", markdown, flags=re.MULTILINE | re.DOTALL)):
        if number % 2:
            yield "\n".join(f"    {line}".rstrip() for line in part.rstrip().split("\n"))
            continue
        for block in filter(None, (one.strip() for one in part.split("\n\n"))):
            items = re.split(r"^- ", block, flags=re.MULTILINE)
            lines = [terminal.wrapped(_words(items[0]))] if items[0].strip() else []
            yield "\n".join([*lines, *(terminal.wrapped(f"- {_words(item)}", indent=2, first=0) for item in items[1:])])


def _words(text: str) -> str:
    """Return a text in Markdown on one line, with plain text in place of links, bold text and code."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(text.split()))
    return re.sub(r"\*\*([^*]*?)\.?\*\*", r"\1:", text).replace("`", "")


def _listed(groups: Mapping[str, list[str]]) -> str:
    parts = [
        f"{terminal.painted(group, 'bold')}\n{terminal.wrapped(', '.join(names), 2)}" for group, names in groups.items()
    ]
    return "\n\n".join(parts) + "\n"


def _json(value: object) -> str:
    content = {"version": 1, "command": "explain", **(value if isinstance(value, dict) else {})}
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
