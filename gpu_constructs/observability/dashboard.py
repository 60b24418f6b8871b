"""The Grafana dashboard of a GPU exporter, rendered from ``panels.yaml`` as plain dicts."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube.tables import table
from gpu_constructs.observability.gpu_series import GpuSeries
from gpu_constructs.observability.terms import NoAnswer, Terms

DatasourceType = Literal["prometheus", "victoriametrics-metrics-datasource"]
"""Grafana data source type: the built-in one for Prometheus, or the plugin of VictoriaMetrics."""

DEFAULT_UIDS = {"dcgm": "gpu-constructs-gpus", "nvidia_smi": "gpu-constructs-gpus-nvidia-smi"}
"""Default dashboard UIDs, by family of metric names. They differ, so one Grafana can contain both dashboards."""

DEFAULT_TITLES = {"dcgm": "NVIDIA GPUs", "nvidia_smi": "NVIDIA GPUs (nvidia-smi)"}
"""Default titles, by family of metric names. They differ, because Grafana allows each title only once in a folder."""

_COLUMNS = 24
_WIDTH, _HEIGHT = 12, 8
_LETTERS = "ABCDEFGH"
_ANCHORS = ("temperature", "power", "sm_clock", "memory_clock", "utilization", "vram_used")
_HIDDEN = ("Time", "UUID", "uuid", "err_code")
_LONG = ("targets", "fieldConfig", "options", "transformations")


_Query = Mapping[str, str]
"""A query of a panel, as a dict with the keys ``expr``, ``letter`` (the ``refId`` in Grafana) and ``legend``.

In a table, a query has a title and a unit instead of a legend. The letter of a query stays the same if the panel omits
another query.
"""


def dashboard(
    series: GpuSeries,
    *,
    title: str | None = None,
    uid: str | None = None,
    datasource_type: DatasourceType = "prometheus",
    kube_state_metrics: bool = True,
    refresh: str = "1m",
) -> dict[str, Any]:
    """Return a Grafana dashboard that queries only metrics that the exporter provides.

    The dashboard omits panels whose metrics the exporter does not have, and rows that would contain no panel. If
    several pods share a GPU, each query counts the GPU only once. Later releases of this library keep the panel
    IDs and the default UID. The dashboard needs Grafana 10.4 or later.

    Args:
        series: Series of the exporter.
        title: Title of the dashboard. None, the default: ``NVIDIA GPUs``, and for nvidia_gpu_exporter
            ``NVIDIA GPUs (nvidia-smi)``.
        uid: Unique ID of the dashboard in Grafana. None, the default: ``gpu-constructs-gpus``, with ``-nvidia-smi`` for
            nvidia_gpu_exporter.
        datasource_type: Data source type: ``prometheus``, which also reads VictoriaMetrics, or
            ``victoriametrics-metrics-datasource``, the plugin of VictoriaMetrics.
        kube_state_metrics: Whether to show GPU requests and pending pods, which come from kube-state-metrics.
        refresh: Interval at which Grafana updates the panels. An empty text disables updates.

    Raises:
        GpuConstructsError: If ``series`` has no metrics, for example because a ``MetricsConfigMap`` lists them.
    """
    if not series.metrics:
        raise GpuConstructsError(
            "exporter must export metrics that the library knows, got none. Give it metrics='recommended' or a list"
        )
    datasource = {"type": datasource_type, "uid": "${datasource}"}
    board = _Board(series, datasource, kube_state_metrics)
    source = {"name": "datasource", "label": "Data source", "type": "datasource", "query": datasource_type}
    return {
        "uid": DEFAULT_UIDS[series.dialect] if uid is None else uid,
        "title": DEFAULT_TITLES[series.dialect] if title is None else title,
        "tags": ["gpu", "nvidia", series.dialect.replace("_", "-")],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": refresh,
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": [source, *_variables(series, datasource)]},
        "annotations": {"list": []},
        "panels": board.panels(),
    }


class _Board:
    """A builder for the Grafana variables and panels of the dashboard of one exporter."""

    def __init__(self, series: GpuSeries, datasource: Mapping[str, str], kube_state_metrics: bool) -> None:
        self._series = series
        self._table: Mapping[str, Any] = table(__package__, "panels.yaml")
        self._datasource = datasource
        self._anchor = _anchor(series)
        self._terms = Terms(
            series,
            self._table["terms"],
            values={"anchor": self._anchor},
            facts={"kube_state_metrics": kube_state_metrics},
            options={"node": "$node", "gpu": "$gpu"},
        )

    def panels(self) -> list[dict[str, Any]]:
        """Return the panels of the dashboard, row by row and from left to right, without panels that have no query."""
        placed: list[dict[str, Any]] = []
        y = 0
        for row in self._table["rows"]:
            panels = list(self._panels_of(row)) if self._terms.holds(row.get("if", {})) else []
            if all(panel["type"] == "text" for panel in panels):
                continue
            head = {"id": row["id"], "type": "row", "title": row["title"], "collapsed": False, "panels": []}
            placed.append({**head, "gridPos": {"x": 0, "y": y, "w": _COLUMNS, "h": 1}})
            placed += panels
            y = _place(panels, y + 1)
        return placed

    def _panels_of(self, row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        for panel in row["panels"]:
            terms = self._terms.extended(panel.get("with"))
            if not terms.holds(panel.get("if", {})):
                continue
            queries = list(self._queries(panel, terms))
            if queries or panel["kind"] == "text":
                yield self._panel(panel, queries, terms)

    def _queries(self, panel: Mapping[str, Any], terms: Terms) -> Iterator[_Query]:
        """Yield a dict for each query of a panel. Leave out queries whose metrics the exporter does not have.

        The keys of the dict are ``expr`` (the PromQL expression), ``letter`` (the ``refId`` in Grafana), and all
        keys of the query in ``panels.yaml`` except ``query``, such as ``legend``.

        Args:
            panel: Panel, as in ``panels.yaml``.
            terms: Renderer of the query templates in the panel.
        """
        exported = self._series.metrics | {self._anchor}
        for letter, given in zip(_LETTERS, panel.get("queries") or panel.get("columns") or (), strict=False):
            described = given if isinstance(given, Mapping) else {"query": given}
            try:
                expr, needs = terms.query(described["query"])
            except NoAnswer:
                continue
            if needs <= exported:
                texts = {key: terms.render(text) for key, text in described.items() if key != "query"}
                yield {**texts, "letter": letter, "expr": expr}

    def _panel(self, panel: Mapping[str, Any], queries: Sequence[_Query], terms: Terms) -> dict[str, Any]:
        kind = panel["kind"]
        style = {"width": _WIDTH, "height": _HEIGHT, **self._table["kinds"][kind], **panel}
        place = {"x": 0, "y": 0, "w": style["width"], "h": style["height"]}
        written = {"id": panel["id"], "type": kind, "title": panel["title"], "gridPos": place}
        if kind == "text":
            return {**written, "options": {"mode": "markdown", "content": panel["text"]}}
        if "description" in panel:
            written["description"] = terms.render(panel["description"])
        interval = self._series.scrape_interval_seconds
        written |= {
            "datasource": dict(self._datasource),
            "targets": [_target(query, kind, self._datasource, interval) for query in queries],
            "fieldConfig": _field_config(style, queries),
            "options": copy.deepcopy(style["options"]),
        }
        if kind == "stat" and any("legend" in query for query in queries):
            written["options"]["textMode"] = "value_and_name"
        if kind == "table":
            labels = {terms.render(label): title for label, title in panel["labels"].items()}
            written["transformations"] = _transformations(labels, queries)
        return written


def _variables(series: GpuSeries, datasource: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Yield the Grafana variables with which a user selects the data source, nodes, GPUs and pods."""
    node, gpu, _, _ = series.labels
    chosen = f'{node}=~"$node"'
    yield _variable(series, datasource, "node", "Node", node)
    yield _variable(series, datasource, "gpu", "GPU", gpu, chosen)
    if series.pods != "none":
        used = (chosen, f'{gpu}=~"$gpu"', 'pod!=""')
        yield _variable(series, datasource, "namespace", "Namespace", "namespace", *used)
        yield _variable(series, datasource, "pod", "Pod", "pod", *used, 'namespace=~"$namespace"')


def _variable(
    series: GpuSeries, datasource: Mapping[str, str], name: str, title: str, label: str, *matchers: str
) -> dict[str, Any]:
    query = f"label_values({series.plain(_anchor(series), *matchers)}, {label})"
    return {
        "name": name,
        "label": title,
        "type": "query",
        "datasource": dict(datasource),
        "definition": query,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "sort": 3,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]},
    }


def _target(query: _Query, kind: str, datasource: Mapping[str, str], interval: int) -> dict[str, Any]:
    is_graph = kind == "timeseries"
    return {
        "refId": query["letter"],
        "datasource": dict(datasource),
        "editorMode": "code",
        "expr": query["expr"],
        # Grafana computes $__rate_interval from this value. If it is not set, Grafana uses the interval of the data
        # source.
        "interval": f"{interval}s",
        "format": "table" if kind == "table" else "time_series",
        "instant": not is_graph,
        "range": is_graph,
        **({"legendFormat": query["legend"]} if "legend" in query else {}),
    }


def _anchor(series: GpuSeries) -> str:
    """Return the name of the metric from whose labels Grafana reads the GPUs, nodes and pods that a user can select."""
    if series.dialect == "nvidia_smi":
        return "nvidia_smi_gpu_info"
    known = (name for name in map(series.metric_of, _ANCHORS) if name in series.metrics)
    return next(known, None) or min(series.metrics)


def _place(panels: Sequence[dict[str, Any]], y: int) -> int:
    """Set the position of each panel in the dashboard, and return the first free vertical position below the panels.

    The panels fill lines over the full width of the dashboard. The first line is at the vertical position ``y``.
    """
    lines: list[list[dict[str, Any]]] = []
    for place in (panel["gridPos"] for panel in panels):
        if not lines or sum(one["w"] for one in lines[-1]) + place["w"] > _COLUMNS:
            lines.append([])
        lines[-1].append(place)
    for line in lines:
        taken, x = sum(place["w"] for place in line), 0
        height = max(place["h"] for place in line)
        for place in line:
            width = _COLUMNS - x if place is line[-1] else place["w"] * _COLUMNS // taken
            place.update(x=x, y=y, w=width, h=height)
            x += width
        y += height
    return y


def _field_config(style: Mapping[str, Any], queries: Sequence[_Query]) -> dict[str, Any]:
    steps = [{"color": "text", "value": None}]
    steps += [{"color": color, "value": value} for value, color in style.get("steps", {}).items()]
    defaults = {"unit": style.get("unit", "none"), "thresholds": {"mode": "absolute", "steps": steps}}
    overrides: list[dict[str, Any]] = []
    if style["kind"] == "table":
        overrides = [_column(query, style.get("texts", {}).get(query["title"])) for query in queries]
        return {"defaults": defaults, "overrides": overrides}
    defaults["min"] = 0
    if "maximum" in style:
        defaults["max"] = style["maximum"]
    if style["kind"] == "timeseries" and any(query.get("legend", "").endswith(" limit") for query in queries):
        dashed = {"id": "custom.lineStyle", "value": {"fill": "dash", "dash": [8, 8]}}
        overrides.append({"matcher": {"id": "byRegexp", "options": "/ limit$/"}, "properties": [dashed]})
    return {"defaults": {**defaults, **copy.deepcopy(style["defaults"])}, "overrides": overrides}


def _column(query: _Query, texts: Mapping[str, str] | None) -> dict[str, Any]:
    properties: list[dict[str, Any]] = [{"id": "unit", "value": query.get("unit", "none")}]
    if texts:
        options = {value: {"text": text} for value, text in texts.items()}
        properties.append({"id": "mappings", "value": [{"type": "value", "options": options}]})
    return {"matcher": {"id": "byName", "options": query["title"]}, "properties": properties}


def _transformations(labels: Mapping[str, str], queries: Sequence[_Query]) -> list[dict[str, Any]]:
    # Grafana numbers the values only if there are several queries.
    values = {f"Value #{query['letter']}" if len(queries) > 1 else "Value": query["title"] for query in queries}
    renamed = {**{label: title for label, title in labels.items() if label}, **values}
    index = {name: number for number, name in enumerate(renamed)}
    organize = {"excludeByName": dict.fromkeys(_HIDDEN, True), "indexByName": index, "renameByName": renamed}
    return [{"id": "merge", "options": {}}, {"id": "organize", "options": organize}]


def json_text(content: Mapping[str, Any]) -> str:
    """Return a dashboard as JSON text. Each value is on its own line, so that changes are easy to review."""
    encode = json.JSONEncoder(ensure_ascii=False).encode

    def panel_text(panel: Mapping[str, Any]) -> str:
        parts = [encode({key: value for key, value in panel.items() if key not in _LONG})[:-1]]
        for key in _LONG:
            if key == "targets" and key in panel:
                targets = ",\n        ".join(map(encode, panel[key]))
                parts.append(f'"targets": [\n        {targets}]')
            elif key in panel:
                parts.append(f'"{key}": {encode(panel[key])}')
        return ",\n      ".join(parts) + "}"

    texts = {
        "panels": map(panel_text, content["panels"]),
        "templating": map(encode, content["templating"]["list"]),
    }
    lists = {key: "[\n    " + ",\n    ".join(parts) + "\n  ]" for key, parts in texts.items()}
    lists["templating"] = f'{{"list": {lists["templating"]}}}'
    lines = (f'"{key}": {lists.get(key) or encode(value)}' for key, value in content.items())
    return "{\n  " + ",\n  ".join(lines) + "\n}\n"
