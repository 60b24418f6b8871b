"""Expressions in PromQL from tables of terms, as one exporter answers them.

A template has names in angle brackets, such as ``<power> / <power_limit>``. A name stands for a value, a term of the
table, a quantity of ``quantities.csv``, or a metric of the exporter. A term of the table is one of these:

- a text: a template of its own;
- a list: choices, of which the first counts whose ``if`` holds. Without one the exporter has no answer;
- a mapping: a query for a quantity or a metric (``of``), with the options ``over``, ``where`` and ``by`` of
  ``GpuSeries.query``; ``boards`` are matchers of the labels of a GPU. ``plain`` is a metric as it was scraped, and
  ``name`` the bare name of the metric of a quantity.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import copy
from typing import Any

from gpu_constructs.observability.gpu_series import GpuSeries, Query

_NAME = re.compile(r"<([A-Za-z][\w.]*)>")


class NoAnswer(Exception):
    """Raised if the exporter has no metric for a term."""


class Terms:
    """Renders templates for one exporter, and collects the metrics that they need.

    Args:
        series: What the exporter publishes.
        table: Terms by name.
        values: Texts by name, which are taken as they are.
        facts: What an ``if`` compares with: a value, or one of a list of values. ``exported`` compares with the
            metrics of the exporter.
        options: Options of all queries; see ``GpuSeries.query``.
    """

    def __init__(
        self,
        series: GpuSeries,
        table: Mapping[str, Any],
        *,
        values: Mapping[str, Any],
        facts: Mapping[str, Any],
        options: Mapping[str, str] | None = None,
    ) -> None:
        labels = {f"label.{name}": label for name, label in series.labels._asdict().items()}
        key = f"{series.labels.node}, {series.labels.uuid}"
        self._series = series
        self._table = table
        self._values = {"job": series.job, "labels": ", ".join(series.labels), "key": key, **labels, **values}
        self._facts = {"exporter": series.dialect, "job": series.job is not None, "pods": series.pods, **facts}
        self._options = options or {}
        self.needs: set[str] = set()

    def extended(
        self,
        table: Mapping[str, Any] | None = None,
        values: Mapping[str, Any] | None = None,
        facts: Mapping[str, Any] | None = None,
    ) -> Terms:
        """Return the same with further terms, values and facts."""
        other = copy(self)
        other._table = {**self._table, **(table or {})}
        other._values = {**self._values, **(values or {})}
        other._facts = {**self._facts, **(facts or {})}
        return other

    def render(self, template: str) -> str:
        """Return a template with its names replaced.

        Raises:
            NoAnswer: The exporter has no metric for one of the names.
        """
        return _NAME.sub(lambda found: self._named(found[1]), template)

    def query(self, template: str) -> Query:
        """Return the query of a template.

        Raises:
            NoAnswer: The exporter has no metric for one of the names.
        """
        self.needs = set()
        return Query(self.render(template), frozenset(self.needs))

    def holds(self, conditions: Mapping[str, Any]) -> bool:
        """Check whether conditions hold for the exporter."""
        return all(self._holds(fact, wanted) for fact, wanted in conditions.items())

    def _holds(self, fact: str, wanted: Any) -> bool:
        if fact == "exported":
            return self._series.metric_of(wanted) in self._series.metrics
        return self._facts[fact] in (wanted if isinstance(wanted, list) else [wanted])

    def _named(self, name: str) -> str:
        if name in self._values:
            return str(self._values[name])
        return self._text(self._table.get(name, {"of": name}))

    def _text(self, term: Any) -> str:
        if isinstance(term, str):
            return self.render(term)
        if isinstance(term, Mapping):
            return self._asked(term)
        for choice in term:
            if self.holds(choice.get("if", {})):
                return self._text(choice["then"])
        raise NoAnswer

    def _asked(self, term: Mapping[str, Any]) -> str:
        texts = {key: self.render(text) for key, text in term.items()}
        if "plain" in texts:
            return self._series.plain(texts["plain"], texts.get("where", ""))
        name = texts.get("of") or texts["name"]
        metric = self._series.metric_of(name)
        if metric is None:
            raise NoAnswer
        self.needs.add(metric)
        if "name" in texts:
            return metric
        options = {key: texts[key] for key in ("over", "where", "boards") if key in texts}
        by = tuple(filter(None, texts.get("by", "").split(", ")))
        query = self._series.query(name, by=by, **options, **self._options)
        return query.expr if query else ""
