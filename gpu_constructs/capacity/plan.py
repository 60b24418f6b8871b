"""The capacity plan of an app, with methods that return the plan as a report."""

from __future__ import annotations

from gpu_constructs.capacity.planned import PlanData
from gpu_constructs.capacity.report import as_json, written
from gpu_constructs.records import dataclass


@dataclass(frozen=True)
class Plan(PlanData):
    """The capacity plan of an app: the placement of all pods and the problems, as data and as reports."""

    def to_text(self, title: str) -> str:
        """Return the report as text for a terminal, at most 100 columns wide.

        Args:
            title: Title of the report.
        """
        return written.text(self, title)

    def to_json(self, title: str) -> str:
        """Return the report as JSON, for other programs.

        Args:
            title: Title of the report.
        """
        return as_json.json_text(self, title)

    def to_svg(self, title: str) -> str:
        """Return the report as an SVG picture with bars for the slots and the memory of each GPU.

        Args:
            title: Title of the report.
        """
        return written.svg(self, title)

    def to_html(self, title: str) -> str:
        """Return the report as one HTML page that loads nothing from the network.

        Args:
            title: Title of the report.
        """
        return written.html(self, title)
