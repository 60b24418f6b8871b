"""PromQL expressions from templates of the tables ``alerts.yaml`` and ``panels.yaml``, for one exporter.

A template is a text with names in angle brackets, such as ``<power> / <power_limit>``. Each name stands for a fixed
text, an entry in the section ``terms`` of the table, a quantity of ``quantities.csv``, or a metric of the exporter. An
entry in ``terms`` has one of these forms:

- A text: another template.
- A list of choices: each has a condition ``if`` and a result ``then``. The first choice whose condition is true
  applies. If no condition is true, the renderer raises ``NoAnswer``.
- A mapping: a query. Its key ``of`` is a quantity or a metric. The keys ``over``, ``where``, ``by`` and ``boards`` are
  arguments of ``GpuSeries.query``. The key ``plain``, instead of ``of``, selects the unchanged series of a metric. The
  key ``name`` inserts only the name of the metric.

A condition maps properties of the exporter or of the options to expected values, such as ``{exporter: dcgm}``.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

from gpu_constructs.observability.gpu_series import GpuSeries, Query
from gpu_constructs.records import regex

_NAME = regex(r"<([A-Za-z][\w.]*)>")


class NoAnswer(Exception):
    """The error for a template that does not apply to the exporter, for example because the exporter has no metric."""


class Terms:
    """A renderer of PromQL templates for one exporter, which also records the metrics that the result uses.

    A template contains names in angle brackets. The renderer replaces each name by its text.

    Args:
        series: Series of the exporter.
        table: Templates by name, from the section ``terms`` of ``alerts.yaml`` or ``panels.yaml``. An entry can also be
            a query, or a list of choices with conditions.
        values: Fixed texts by name, such as the threshold of an alert.
        facts: Properties of the exporter and of the options by name, which the conditions ``if`` test. Three of them
            always exist: ``exporter`` (family of the metric names, for example ``dcgm``), ``job`` (whether the library
            knows the value of the label ``job``), and ``pods`` (``GpuSeries.pods``, for example ``none``).
        options: Arguments of ``GpuSeries.query`` for all queries.
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
        """Return a copy of this renderer with further templates (``table``), texts (``values``) and ``facts``.

        The arguments have the same form as those of the constructor. Their entries replace existing entries of the same
        name.
        """
        other = copy(self)
        other._table = {**self._table, **(table or {})}
        other._values = {**self._values, **(values or {})}
        other._facts = {**self._facts, **(facts or {})}
        return other

    def render(self, template: str) -> str:
        """Return the PromQL text of a template, after replacing all names in angle brackets.

        Raises:
            NoAnswer: If the exporter has no metric for a quantity in the template, or no choice in a list applies.
        """
        return _NAME.sub(lambda found: self._named(found[1]), template)

    def query(self, template: str) -> Query:
        """Return a ``Query``: the PromQL text of a template, and the names of the metrics in this text.

        Raises:
            NoAnswer: If ``render`` raises this error for the template.
        """
        self.needs = set()
        return Query(self.render(template), frozenset(self.needs))

    def holds(self, conditions: Mapping[str, Any]) -> bool:
        """Check whether all given conditions are true, for example those of a panel or an alert.

        Args:
            conditions: A dict from the name of each property, such as ``exporter``, to the required value or a list of
                allowed values. The key ``exported`` is special: its value is a metric or quantity that the exporter
                must export.
        """
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
            return self._query_text(term)
        for choice in term:
            if self.holds(choice.get("if", {})):
                return self._text(choice["then"])
        raise NoAnswer

    def _query_text(self, term: Mapping[str, Any]) -> str:
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
