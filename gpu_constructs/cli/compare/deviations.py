"""The intended differences between Helm charts and this library, and which differences each of them explains."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gpu_constructs.cli.compare.fields import Path, matches
from gpu_constructs.kube.tables import table
from gpu_constructs.records import dataclass

ABSENT: Any = type("Absent", (), {"__repr__": lambda _: "nothing"})()
"""The value of a field that an object does not have."""

ANCHORS: Mapping[str, str] = {
    "nvidia-device-plugin": "what-is-different-on-purpose",
    "dcgm-exporter": "what-is-different-in-the-exporter",
    "nvidia-gpu-exporter": "what-is-different-in-nvidia-gpu-exporter",
}
"""Sections of the documentation that list the deviations, by name of the Helm chart."""


class Rule(NamedTuple):
    """The differing fields that a deviation (an intended difference from the Helm chart) explains.

    Attributes:
        roles: Functions of the objects in the Helm chart, as ``roles.yaml`` names them, such as ``plugin``; ``*`` for
            all.
        kinds: Kinds of the objects; ``*`` for all.
        patterns: Patterns for the path of the field, such as ``pod.containers[*].image``.
        chart: Value in the objects of the Helm chart: for example a literal, ``(given)`` for any value, or ``(any)``
            for any value or none. ``ABSENT`` stands for no value. See ``_is_value`` for all forms.
        ours: Value in the objects of this library, in the same form.
        keys: Names with which the path of the field can end; empty for all names.
        has_conditions: Whether the deviation applies only under conditions that this command does not check.
    """

    roles: Sequence[str]
    kinds: Sequence[str]
    patterns: Sequence[str]
    chart: Any
    ours: Any
    keys: Sequence[str]
    has_conditions: bool

    def fits(self, role: str, kind: str, path: Path, chart: Any, ours: Any) -> bool:
        """Check whether the deviation explains a difference.

        Args:
            role: Function of the object in the Helm chart, such as ``plugin``.
            kind: Kind of the object.
            path: Path of the field that differs.
            chart: Value of the field in the Helm chart; ``ABSENT`` if the Helm chart does not set the field.
            ours: Value of the field in this library; ``ABSENT`` if this library does not set the field.
        """
        return (
            (self.roles == ["*"] or role in self.roles)
            and (self.kinds == ["*"] or kind in self.kinds)
            and any(matches(pattern, path) for pattern in self.patterns)
            and (not self.keys or path[-1].strip("[]") in self.keys)
            and _is_value(chart, self.chart)
            and _is_value(ours, self.ours)
        )


@dataclass(frozen=True)
class Deviation:
    """An intended difference between the objects of a Helm chart and the objects of this library.

    Attributes:
        number: Number of the deviation in the documentation, such as ``D12``.
        what: Description of the difference, in Markdown.
        why: Reason for the difference.
        rules: Rules that state which differing fields the deviation explains.
    """

    number: str
    what: str
    why: str
    rules: Sequence[Rule]


def deviations_of(chart: str) -> list[Deviation]:
    """Return the intended differences from a Helm chart; empty if the documentation lists none for the chart."""
    if chart not in ANCHORS:
        return []
    found = table("gpu_constructs.migration", f"deviations/{chart}.yaml")

    def whole(text: str) -> str:
        return re.sub(r"\$([A-Z]+)", lambda match: str(found["groups"][match[1]]), text)

    def rules_of(row: Mapping[str, Any]) -> Iterator[Rule]:
        for rule in row.get("rules", ()):
            at = [rule["at"]] if isinstance(rule["at"], str) else rule["at"]
            conditions = rule.get("when", ())
            keys = [key for one in conditions if isinstance(one, Mapping) for key in one.get("key", ())]
            has_conditions = any(not isinstance(one, Mapping) or "key" not in one for one in conditions)
            # Rules for every field of every object apply only if their conditions do.
            if not (has_conditions and rule["of"] == "* *" and at == ["**"]):
                roles, _, kinds = whole(rule["of"]).partition(" ")
                values = rule.get("chart", ABSENT), rule.get("ours", ABSENT)
                yield Rule(roles.split("|"), kinds.split("|"), [*map(whole, at)], *values, keys, has_conditions)

    return [Deviation(row["number"], row["what"], row["why"], list(rules_of(row))) for row in found["deviations"]]


def explanation(
    deviations: Sequence[Deviation], role: str, kind: str, path: Path, chart: Any, ours: Any
) -> tuple[Deviation, bool] | None:
    """Return the deviation that explains a difference, and a bool. Return None if no deviation explains it.

    The bool is True if the explanation is certain. It is False if the explanation depends on conditions that this
    command does not check.

    Args:
        deviations: Intended differences between the Helm chart and this library.
        role: Function of the object in the Helm chart, such as ``plugin``.
        kind: Kind of the object.
        path: Path of the field that differs.
        chart: Value in the Helm chart; ``ABSENT`` if the Helm chart does not set the field.
        ours: Value in this library; ``ABSENT`` if this library does not set the field.
    """
    fits = [(one, rule) for one in deviations for rule in one.rules if rule.fits(role, kind, path, chart, ours)]
    certain = [one for one, rule in fits if not rule.has_conditions]
    if certain:
        return certain[0], True
    return (fits[0][0], False) if fits else None


def _is_value(found: Any, wanted: Any) -> bool:
    """Check whether a value of a field fits the value that a rule states.

    Args:
        found: Value in the manifests; ``ABSENT`` if there is none.
        wanted: Value in the rule: a literal, a regular expression after ``~``, ``(given)`` for any value, ``(any)`` for
            any value or none, or ``ABSENT``. A text that starts with ``=`` or contains ``{`` also fits any value.
    """
    if wanted in ("(any)", "(given)"):
        return wanted == "(any)" or found is not ABSENT
    if wanted is ABSENT or found is ABSENT:
        return found is wanted
    if isinstance(wanted, str) and wanted.startswith("~"):
        return re.fullmatch(wanted[1:], str(found)) is not None
    # A fact of the release in braces, and a function after ``=``, can be any value here.
    is_computed = isinstance(wanted, str) and (wanted.startswith("=") or "{" in wanted)
    return is_computed or str(found) == str(wanted)
