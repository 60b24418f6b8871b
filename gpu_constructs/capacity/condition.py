"""What a plan cannot look at although it decides whether pods run."""

from __future__ import annotations


class Condition(str):
    """A note on which the verdict rests: a clause that reads after "fits, if".

    A plan with one never says that everything fits. Any other note says how something was counted.

    Attributes:
        way_out: How to make the plan sure of it.
    """

    way_out: str

    def __new__(cls, clause: str, way_out: str = "leave it where you know that it holds") -> Condition:
        """Return the clause with its way out."""
        made = super().__new__(cls, clause)
        made.way_out = way_out
        return made
