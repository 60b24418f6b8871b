"""Which fields of a chart's objects follow from a key of its values that this library drops with a warning."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from parity_compare import ABSENT, Context, Difference
from parity_fields import matches, quantity
from parity_values import follows

Condition = Callable[[Difference, Context], bool]


@dataclass(frozen=True)
class Governed:
    """The fields that keys decide.

    Attributes:
        fields: By key, objects and field.
        derived: Fields where the chart says no word of the values: that follows from the key being there at all.
    """

    fields: Mapping[str, tuple[tuple[str, str], ...]]
    derived: tuple[str, ...]

    def is_decided(self, why: str) -> Condition:
        """A key of the values decides the field, and the user was warned, with these words, that it is dropped."""

        def holds(difference: Difference, context: Context) -> bool:
            return any(
                re.match(why, reason, re.S) and self._decides(key, difference, context)
                for key, reason in context.dropped
            )

        return holds

    def _decides(self, key: str, difference: Difference, context: Context) -> bool:
        while key and key not in self.fields:
            key = key.rpartition("[" if key.endswith("]") else ".")[0]
        fields = [pattern for objects, pattern in self.fields.get(key, ()) if _is_of(difference.object, objects)]
        if not any(matches(pattern, difference.path) for pattern in fields):
            return False
        if difference.chart in (ABSENT, "{}", "[]"):
            return True
        if key == "resources":
            given = context.release.given_value(key) or {}
            return difference.chart in {quantity(amount) for amounts in given.values() for amount in amounts.values()}
        is_derived = any(matches(pattern, difference.path) for pattern in self.derived)
        return is_derived or follows(difference.chart, difference.path[-1], context.release.given_value(key))


def _is_of(found: str, wanted: str) -> bool:
    role, _, kind = wanted.partition(" ")
    return found.partition(" ")[0] == role and found.partition(" ")[2] in kind.split("|")
