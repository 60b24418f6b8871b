"""A capacity plan with its reports."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_constructs.capacity.planned import PlanData
from gpu_constructs.capacity.report import as_json, written


@dataclass(frozen=True)
class Plan(PlanData):
    """Where everything goes and what does not fit, as data and as reports."""

    def to_text(self, title: str) -> str:
        """Return the report for a terminal, at most 100 columns wide."""
        return written.text(self, title)

    def to_json(self, title: str) -> str:
        """Return the report for other programs."""
        return as_json.json_text(self, title)

    def to_svg(self, title: str) -> str:
        """Return a picture: nodes and GPUs as bars of slots and memory."""
        return written.svg(self, title)

    def to_html(self, title: str) -> str:
        """Return the report as one page that needs no network."""
        return written.html(self, title)
