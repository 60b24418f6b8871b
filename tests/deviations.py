"""The intended differences between this library and the charts: a table for each chart, in the package.

A difference is explained by a row when one of its rules fits: the object, the field, both values and the conditions.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

import gpu_constructs
import parity_conditions as on
from gpu_constructs.cli.compare.fields import matches
from parity_chart import Manifest, Release
from parity_compare import ABSENT, Context, Difference, same

WRONG_TYPE = "D41"
FOLDER = Path(gpu_constructs.__file__).parent / "migration" / "deviations"


@dataclass(frozen=True)
class Rule:
    """Where a deviation may show, and what both sides then say.

    A value is literal, with facts of the release in braces; ``(given)`` for anything but nothing, ``(any)``; after
    ``~`` a regular expression; after ``=`` the name of a function of ``parity_conditions``. None at all is nothing.

    Attributes:
        of: Roles and kinds: ``|`` between several, ``*`` for all.
        at: Patterns of the field.
        chart: What the chart says.
        ours: What this library says.
        when: Further conditions: functions of ``parity_conditions``, with their argument where they take one.
    """

    of: str
    at: tuple[str, ...]
    chart: Any
    ours: Any
    when: tuple[tuple[str, Any], ...]

    def holds(self, difference: Difference, context: Context) -> bool:
        return (
            any(matches(pattern, difference.path) for pattern in self.at)
            and _fits(difference.chart, self.chart, difference, context)
            and _fits(difference.ours, self.ours, difference, context)
            and all(_condition(name, argument)(difference, context) for name, argument in self.when)
        )


def _condition(name: str, argument: Any) -> Callable[[Difference, Context], bool]:
    found = getattr(on, name)
    return found if argument is None else found(argument)


@dataclass(frozen=True)
class Deviation:
    """A row.

    Attributes:
        number: It never changes, so that other texts can name it.
        what: What is different.
        why: Why it is meant to be.
        rules: The fields that differ.
        repaired: Name of the function that gives an object of the chart as it was meant, where a template is broken.
        dropped: What the warning says of a key of the values that is dropped, behind ``it``.
    """

    number: str
    what: str
    why: str
    rules: tuple[Rule, ...] = ()
    repaired: str = ""
    dropped: str = ""


@dataclass(frozen=True)
class Table:
    """All the rows about one chart; the judge of a comparison."""

    deviations: tuple[Deviation, ...]
    _rules: dict[str, list[tuple[str, Rule]]] = field(default_factory=dict, compare=False, repr=False)

    def explain(self, difference: Difference, context: Context) -> str | None:
        """Return the number of the first row that a difference fits."""
        about = difference.object
        if about not in self._rules:
            every = ((one.number, rule) for one in self.deviations for rule in one.rules)
            self._rules[about] = [(number, rule) for number, rule in every if _is_one_of(about, rule.of)]
        return next((number for number, rule in self._rules[about] if rule.holds(difference, context)), None)

    def repaired(self, manifest: Manifest, release: Release) -> tuple[Manifest, str | None]:
        """Return an object of the chart as it was meant, and the number of the row that says so."""
        for deviation in self.deviations:
            meant = getattr(on, deviation.repaired)(manifest, release) if deviation.repaired else None
            if meant is not None:
                return meant, deviation.number
        return manifest, None

    def of_warning(self, text: str) -> str | None:
        """Return the number of the row that a warning about a dropped key belongs to."""
        said = re.match(r"values\.\S+ (?:is dropped: it |(?=is .*, but values\.))(.*)", text, re.S)
        for deviation in self.deviations if said else ():
            if deviation.dropped and re.match(deviation.dropped, said[1], re.S):
                return deviation.number
        return None

    def markdown(self) -> str:
        """The table as the documents show it."""
        rows = [f"| {d.number} | {d.what} | {d.why} |" for d in self.deviations]
        return "\n".join(["| Number | What is different | Why |", "|---|---|---|", *rows, ""])


def _is_one_of(found: str, wanted: str) -> bool:
    role, _, kind = found.partition(" ")
    roles, _, kinds = wanted.partition(" ")
    return (roles == "*" or role in roles.split("|")) and (kinds == "*" or kind in kinds.split("|"))


def _fits(found: Any, wanted: Any, difference: Difference, context: Context) -> bool:
    if wanted in ("(any)", "(given)"):
        return wanted == "(any)" or found is not ABSENT
    if isinstance(wanted, str) and wanted.startswith("~"):
        return re.fullmatch(wanted[1:], str(found)) is not None
    if isinstance(wanted, str) and wanted.startswith("="):
        return same(found, getattr(on, wanted[1:])(difference, context))
    return same(found, wanted.format(**context.release.facts()) if isinstance(wanted, str) else wanted)


@cache
def table(chart: str) -> Table:
    """Read the table of a chart."""
    read = yaml.safe_load((FOLDER / f"{chart}.yaml").read_text(encoding="utf-8"))

    def whole(text: str) -> str:
        return re.sub(r"\$([A-Z]+)", lambda match: str(read["groups"][match[1]]), text)

    def rule(row: Mapping[str, Any], why: str) -> Rule:
        at = [row["at"]] if isinstance(row["at"], str) else row["at"]
        when = [(one, None) if isinstance(one, str) else next(iter(one.items())) for one in row.get("when", ())]
        when = [(name, why if name == "follows_what_was_dropped" else argument) for name, argument in when]
        ours, chart = row.get("ours", ABSENT), row.get("chart", ABSENT)
        return Rule(whole(row["of"]), tuple(map(whole, at)), chart, ours, tuple(when))

    rows = (
        {**row, "rules": tuple(rule(one, row.get("dropped", "")) for one in row.get("rules", ()))}
        for row in read["deviations"]
    )
    return Table(tuple(Deviation(**row) for row in rows))


PLUGIN, EXPORTER, SMI = (table(name) for name in ("nvidia-device-plugin", "dcgm-exporter", "nvidia-gpu-exporter"))
