"""The Grafana dashboard of the exporter's metrics, as plain dicts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from gpu_constructs.observability.metrics import Metric, check_metrics, hostname_label

_DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
_COLUMNS = 24

_SM_CLOCK = "DCGM_FI_DEV_SM_CLOCK"
_MEM_CLOCK = "DCGM_FI_DEV_MEM_CLOCK"
_GPU_TEMP = "DCGM_FI_DEV_GPU_TEMP"
_MEMORY_TEMP = "DCGM_FI_DEV_MEMORY_TEMP"
_POWER = "DCGM_FI_DEV_POWER_USAGE"
_ENERGY = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
_GPU_UTIL = "DCGM_FI_DEV_GPU_UTIL"
_COPY_UTIL = "DCGM_FI_DEV_MEM_COPY_UTIL"
_ENC_UTIL = "DCGM_FI_DEV_ENC_UTIL"
_DEC_UTIL = "DCGM_FI_DEV_DEC_UTIL"
_FB_USED = "DCGM_FI_DEV_FB_USED"
_FB_FREE = "DCGM_FI_DEV_FB_FREE"
_FB_RESERVED = "DCGM_FI_DEV_FB_RESERVED"
_XID = "DCGM_FI_DEV_XID_ERRORS"
_PCIE_REPLAY = "DCGM_FI_DEV_PCIE_REPLAY_COUNTER"
_UNCORRECTABLE_ROWS = "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS"
_CORRECTABLE_ROWS = "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS"
_REMAP_FAILURE = "DCGM_FI_DEV_ROW_REMAP_FAILURE"
_ENGINE_ACTIVE = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
_TENSOR_ACTIVE = "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"
_DRAM_ACTIVE = "DCGM_FI_PROF_DRAM_ACTIVE"
_PCIE_TX = "DCGM_FI_PROF_PCIE_TX_BYTES"
_PCIE_RX = "DCGM_FI_PROF_PCIE_RX_BYTES"

# Of a MIG GPU these come once per instance; everything else is the whole GPU's, repeated for each instance.
_PER_INSTANCE = frozenset({_FB_USED, _FB_FREE, _FB_RESERVED, _ENGINE_ACTIVE, _TENSOR_ACTIVE, _DRAM_ACTIVE})

_Steps = Sequence[tuple[float, str]]
_HOT: _Steps = ((85, "orange"), (92, "red"))
_FULL: _Steps = ((0.9, "orange"), (0.97, "red"))
_ANY: _Steps = ((1, "red"),)


@dataclass(frozen=True, kw_only=True)
class _Query:
    """One query and what its series are called."""

    expr: str
    needs: tuple[str, ...]
    legend: str = ""


@dataclass(frozen=True, kw_only=True)
class _Panel:
    """One panel; its id is written down, so that panels left out never renumber the others."""

    id: int
    title: str
    kind: Literal["stat", "timeseries", "table"]
    queries: Sequence[_Query]
    width: int
    height: int = 8
    unit: str = "none"
    steps: _Steps = ()
    maximum: float | None = None
    description: str = ""
    columns: dict[str, str] = field(default_factory=dict)
    column_units: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class _Row:
    id: int
    title: str
    panels: Sequence[_Panel]


def _graph(
    id: int,
    title: str,
    *queries: _Query,
    unit: str = "none",
    width: int = 12,
    maximum: float | None = None,
    description: str = "",
) -> _Panel:
    return _Panel(
        id=id,
        title=title,
        kind="timeseries",
        queries=queries,
        width=width,
        unit=unit,
        maximum=maximum,
        description=description,
    )


class _Writer:
    """Writes queries for one exporter release, keeping only what the metric list can answer."""

    def __init__(self, *, exported: frozenset[str], release: str) -> None:
        self.exported = exported
        self.host = hostname_label(release)
        self.selector = f'{self.host}=~"$node",gpu=~"$gpu"'
        self.device = f"{self.host}, gpu, UUID, modelName"
        self.legend = f"{{{{{self.host}}}}} / GPU {{{{gpu}}}}"

    def vector(self, metric: str, *, over: str = "{}", by: str = "", where: str = "") -> str:
        """One value per GPU: a time-sliced GPU may be reported for every pod on it, with the same value."""
        if not by and metric in _PER_INSTANCE:
            by = ", GPU_I_ID"
        series = f"{metric}{{{self.selector}{where}}}"
        return f"max by ({self.device}{by}) ({over.format(series)})"

    def query(self, expr: str, *needs: str, legend: str = "") -> _Query:
        return _Query(expr=expr, needs=needs, legend=legend)

    def each(self, metric: str, *, over: str = "{}", scale: str = "", suffix: str = "") -> _Query:
        """One series per GPU."""
        instance = " {{GPU_I_ID}}" if metric in _PER_INSTANCE else ""
        return self.query(self.vector(metric, over=over) + scale, metric, legend=f"{self.legend}{instance}{suffix}")

    def vram_total(self) -> list[str]:
        parts = [_FB_USED, _FB_FREE, _FB_RESERVED]
        return [part for part in parts if part != _FB_RESERVED or part in self.exported]


def _overview(w: _Writer, anchor: str) -> _Row:
    used = f"sum({w.vector(_FB_USED)})"
    total = " + ".join(f"sum({w.vector(part)})" for part in w.vram_total())
    energy = w.vector(_ENERGY, over="increase({}[$__range])")

    def stat(id: int, title: str, query: _Query, unit: str = "none", steps: _Steps = ()) -> _Panel:
        return _Panel(id=id, title=title, kind="stat", queries=[query], width=3, height=4, unit=unit, steps=steps)

    return _Row(
        id=1,
        title="Overview",
        panels=[
            stat(11, "GPUs", w.query(f"count({w.vector(anchor)})", anchor)),
            stat(12, "Mean utilisation", w.query(f"avg({w.vector(_GPU_UTIL)})", _GPU_UTIL), "percent"),
            stat(13, "VRAM used", w.query(used, _FB_USED), "mbytes"),
            stat(14, "VRAM share", w.query(f"{used} / ({total})", *w.vram_total()), "percentunit", _FULL),
            stat(15, "Hottest GPU", w.query(f"max({w.vector(_GPU_TEMP)})", _GPU_TEMP), "celsius", _HOT),
            stat(16, "Power", w.query(f"sum({w.vector(_POWER)})", _POWER), "watt"),
            stat(17, "Energy in time range", w.query(f"sum({energy}) / 3.6e9", _ENERGY), "kwatth"),
            stat(18, "GPUs with an XID", w.query(f"count({w.vector(_XID)} > 0) or vector(0)", _XID), steps=_ANY),
        ],
    )


def _devices(w: _Writer) -> _Row:
    total = " + ".join(w.vector(part) for part in w.vram_total())
    share = w.query(f"{w.vector(_FB_USED)} / ({total})", *w.vram_total(), legend=f"{w.legend} {{{{GPU_I_ID}}}}")

    return _Row(
        id=2,
        title="GPUs",
        panels=[
            _graph(
                21,
                "Utilisation",
                w.each(_GPU_UTIL),
                unit="percent",
                maximum=100,
                description="Share of time in which any kernel ran, not how much of the GPU was busy.",
            ),
            _graph(22, "VRAM used", w.each(_FB_USED), unit="mbytes"),
            _graph(23, "VRAM share", share, unit="percentunit", maximum=1),
            _graph(
                24,
                "Temperature",
                w.each(_GPU_TEMP),
                w.each(_MEMORY_TEMP, suffix=" memory"),
                unit="celsius",
            ),
            _graph(25, "SM clock", w.each(_SM_CLOCK, scale=" * 1e6"), unit="hertz"),
            _graph(26, "Memory clock", w.each(_MEM_CLOCK, scale=" * 1e6"), unit="hertz"),
            _graph(27, "Memory transfer time", w.each(_COPY_UTIL), unit="percent", maximum=100),
            _graph(
                28,
                "Video encoder and decoder",
                w.each(_ENC_UTIL, suffix=" encoder"),
                w.each(_DEC_UTIL, suffix=" decoder"),
                unit="percent",
                maximum=100,
            ),
        ],
    )


def _power(w: _Writer) -> _Row:
    return _Row(
        id=3,
        title="Power",
        panels=[
            _graph(31, "Power", w.each(_POWER), unit="watt"),
            _Panel(
                id=32,
                title="Energy in time range",
                kind="stat",
                queries=[w.each(_ENERGY, over="increase({}[$__range])", scale=" / 3.6e9")],
                width=12,
                unit="kwatth",
            ),
        ],
    )


def _pods(w: _Writer) -> _Row:
    def by_pod(metric: str) -> _Query:
        return w.query(w.vector(metric, by=", GPU_I_ID, namespace, pod, container", where=',pod!=""'), metric)

    return _Row(
        id=4,
        title="Pods",
        panels=[
            _Panel(
                id=41,
                title="Pods with a GPU",
                kind="table",
                queries=[by_pod(_GPU_UTIL), by_pod(_FB_USED), by_pod(_POWER)],
                width=24,
                height=10,
                description=(
                    "Needs series that keep the workload's pod label (honorLabels). Values are those of the "
                    "whole GPU; of the pods that share one by time-slicing the exporter names only one."
                ),
                columns={
                    "namespace": "Namespace",
                    "pod": "Pod",
                    "container": "Container",
                    w.host: "Node",
                    "gpu": "GPU",
                    "modelName": "Model",
                    "GPU_I_ID": "MIG instance",
                    "Value #A": "GPU utilisation",
                    "Value #B": "GPU memory used",
                    "Value #C": "GPU power",
                },
                column_units={"Value #A": "percent", "Value #B": "mbytes", "Value #C": "watt"},
            )
        ],
    )


def _errors(w: _Writer) -> _Row:
    return _Row(
        id=5,
        title="Errors",
        panels=[
            _Panel(
                id=51,
                title="Last XID",
                kind="table",
                queries=[w.query(w.vector(_XID, by=", err_code, err_msg") + " > 0", _XID)],
                width=8,
                description="The last XID of each GPU since the exporter started; empty when there was none.",
                columns={
                    w.host: "Node",
                    "gpu": "GPU",
                    "modelName": "Model",
                    "err_code": "XID",
                    "err_msg": "Meaning",
                },
            ),
            _graph(
                52,
                "PCIe replays",
                w.each(_PCIE_REPLAY, over="increase({}[$__rate_interval])"),
                width=8,
                description="Packets sent again. A steady stream of them means a bad slot, riser or cable.",
            ),
            _graph(
                53,
                "Remapped memory rows",
                w.each(_UNCORRECTABLE_ROWS, suffix=" uncorrectable"),
                w.each(_CORRECTABLE_ROWS, suffix=" correctable"),
                w.each(_REMAP_FAILURE, suffix=" out of spare rows"),
                width=8,
                description="Absent on GeForce. Out of spare rows: replace the GPU.",
            ),
        ],
    )


def _profiling(w: _Writer) -> _Row:
    return _Row(
        id=6,
        title="Profiling (empty on GeForce before Blackwell)",
        panels=[
            _graph(61, "Engine active", w.each(_ENGINE_ACTIVE), unit="percentunit", maximum=1),
            _graph(62, "Tensor pipe active", w.each(_TENSOR_ACTIVE), unit="percentunit", maximum=1),
            _graph(63, "Memory interface active", w.each(_DRAM_ACTIVE), unit="percentunit", maximum=1),
            _graph(
                64,
                "PCIe traffic",
                w.each(_PCIE_TX, suffix=" sent"),
                w.each(_PCIE_RX, suffix=" received"),
                unit="Bps",
            ),
        ],
    )


def _target(letter: str, query: _Query, kind: str) -> dict[str, Any]:
    graph = kind == "timeseries"
    return {
        "refId": letter,
        "datasource": dict(_DATASOURCE),
        "editorMode": "code",
        "expr": query.expr,
        "format": "table" if kind == "table" else "time_series",
        "instant": not graph,
        "range": graph,
        **({"legendFormat": query.legend} if query.legend else {}),
    }


def _field_config(panel: _Panel) -> dict[str, Any]:
    steps = [
        {"color": "text", "value": None},
        *({"color": color, "value": value} for value, color in panel.steps),
    ]
    defaults: dict[str, Any] = {
        "unit": panel.unit,
        "min": 0,
        "thresholds": {"mode": "absolute", "steps": steps},
        "color": {"mode": "palette-classic" if panel.kind == "timeseries" else "thresholds"},
    }
    if panel.maximum is not None:
        defaults["max"] = panel.maximum
    if panel.kind == "table":
        del defaults["min"]
    overrides = [
        {
            "matcher": {"id": "byName", "options": panel.columns[column]},
            "properties": [{"id": "unit", "value": unit}],
        }
        for column, unit in panel.column_units.items()
    ]
    return {"defaults": defaults, "overrides": overrides}


def _options(panel: _Panel) -> dict[str, Any]:
    if panel.kind == "timeseries":
        return {
            "legend": {
                "displayMode": "table",
                "placement": "bottom",
                "calcs": ["lastNotNull", "max"],
                "showLegend": True,
            },
            "tooltip": {"mode": "multi", "sort": "desc"},
        }
    if panel.kind == "stat":
        return {
            "colorMode": "value",
            "graphMode": "none",
            "textMode": "auto",
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        }
    return {"showHeader": True}


def _transformations(panel: _Panel, letters: Iterable[str]) -> list[dict[str, Any]]:
    values = [f"Value #{letter}" for letter in letters]
    columns = {
        column: title for column, title in panel.columns.items() if not column.startswith("Value #") or column in values
    }
    if len(values) == 1 and values[0] in columns:
        columns["Value"] = columns.pop(values[0])  # Grafana numbers the values of several queries only.
    hidden = ["Time", "UUID", *(value for value in ["Value", *values] if value not in columns)]
    return [
        {"id": "merge", "options": {}},
        {
            "id": "organize",
            "options": {
                "excludeByName": dict.fromkeys(hidden, True),
                "indexByName": {column: index for index, column in enumerate(columns)},
                "renameByName": columns,
            },
        },
    ]


def _panel(panel: _Panel, exported: frozenset[str], x: int, y: int) -> dict[str, Any] | None:
    targets = [
        (letter, query)
        for letter, query in zip("ABCDEFGH", panel.queries, strict=False)
        if exported.issuperset(query.needs)
    ]
    if not targets:
        return None
    return {
        "id": panel.id,
        "type": panel.kind,
        "title": panel.title,
        **({"description": panel.description} if panel.description else {}),
        "datasource": dict(_DATASOURCE),
        "gridPos": {"x": x, "y": y, "w": panel.width, "h": panel.height},
        "targets": [_target(letter, query, panel.kind) for letter, query in targets],
        "fieldConfig": _field_config(panel),
        "options": _options(panel),
        **(
            {"transformations": _transformations(panel, [letter for letter, _ in targets])}
            if panel.kind == "table"
            else {}
        ),
    }


def _place(rows: Iterable[_Row], exported: frozenset[str]) -> list[dict[str, Any]]:
    """Lay the panels out from left to right, row by row, without those that have nothing to show."""
    placed: list[dict[str, Any]] = []
    y = 0
    for row in rows:
        inside: list[dict[str, Any]] = []
        x, line, next_line = 0, y + 1, y + 1
        for spec in row.panels:
            if x + spec.width > _COLUMNS:
                x, line = 0, next_line
            panel = _panel(spec, exported, x, line)
            if panel:
                inside.append(panel)
                x += spec.width
                next_line = max(next_line, line + spec.height)
        if inside:
            header = {"id": row.id, "type": "row", "title": row.title, "collapsed": False, "panels": []}
            placed += [{**header, "gridPos": {"x": 0, "y": y, "w": _COLUMNS, "h": 1}}, *inside]
            y = next_line
    return placed


def _choice(name: str, label: str, query: str) -> dict[str, Any]:
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": dict(_DATASOURCE),
        "definition": query,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "sort": 3,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]},
    }


def dashboard(
    *,
    metrics: Sequence[Metric],
    release: str,
    title: str = "NVIDIA GPUs",
    uid: str = "gpu-constructs-gpus",
) -> dict[str, Any]:
    """Give a Grafana dashboard that asks only for metrics which the exporter publishes.

    A panel whose metrics are not in the list is left out, and a row without panels too. Every query first
    takes one value per GPU, so that GPUs shared by time-slicing are never counted twice. Panel ids and the
    uid never change. Needs Grafana 10.4 or newer.

    Args:
        metrics: What the exporter is told to publish.
        release: Exporter release, such as ``4.8.3``; it decides the name of the node label.
        title: Title of the dashboard.
        uid: Its identity in Grafana: two dashboards in one Grafana need two.

    Raises:
        GpuConstructsError: For a list without any gauge or counter, or a release that cannot be read.
    """
    check_metrics(metrics)
    values = [metric.field for metric in metrics if metric.prometheus_type != "label"]
    exported = frozenset(values)
    anchor = next((known for known in (_GPU_TEMP, _GPU_UTIL) if known in exported), values[0])
    writer = _Writer(exported=exported, release=release)
    rows = [
        _overview(writer, anchor),
        _devices(writer),
        _power(writer),
        _pods(writer),
        _errors(writer),
        _profiling(writer),
    ]
    return {
        "uid": uid,
        "title": title,
        "tags": ["gpu", "nvidia", "dcgm"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "1m",
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "templating": {
            "list": [
                {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"},
                _choice("node", "Node", f"label_values({anchor}, {writer.host})"),
                _choice("gpu", "GPU", f'label_values({anchor}{{{writer.host}=~"$node"}}, gpu)'),
            ]
        },
        "annotations": {"list": []},
        "panels": _place(rows, exported),
    }


def dashboard_json(
    *,
    metrics: Sequence[Metric],
    release: str,
    title: str = "NVIDIA GPUs",
    uid: str = "gpu-constructs-gpus",
) -> str:
    """Give ``dashboard(…)`` as JSON text, the same bytes for the same input, for the key of a ConfigMap."""
    content = dashboard(metrics=metrics, release=release, title=title, uid=uid)
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
