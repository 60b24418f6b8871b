"""Draws the dashboard's layout from its JSON, as docs/images shows it: ``uv run python tests/dashboard_picture.py``."""

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

import dist
import synthetic_exporter
from gpu_constructs.observability.dashboard import dashboard
from gpu_constructs.observability.gpu_series import dcgm_series, nvidia_smi_series
from gpu_constructs.observability.metrics import hostname_label, metric_set

IMAGES = dist.ROOT / "docs" / "images"

_COLUMN, _LINE, _GAP, _HEAD = 42, 11, 4, 46
_LETTER = 6.9
_STYLE = """
  .page { fill: #f4f5f5 } .panel { fill: #ffffff; stroke: #c7d0d9 } .title { fill: #24292e; font-weight: 600 }
  .row { fill: #24292e; font-weight: 700 } .note { fill: #5a6570; font-size: 10px }
  .ink { stroke: #3871dc; fill: none; stroke-width: 1.5 } .second { stroke: #b8860b } .fill { fill: #3871dc }
  .faint { fill: #dfe5ec } .head { fill: #24292e; font-weight: 700; font-size: 18px }
  @media (prefers-color-scheme: dark) {
    .page { fill: #111217 } .panel { fill: #181b1f; stroke: #3a3f47 } .title, .row, .head { fill: #e4e7eb }
    .note { fill: #a0a8b2 } .ink { stroke: #6e9fff } .second { stroke: #e0b400 } .fill { fill: #6e9fff }
    .faint { fill: #2c3138 }
  }
"""


def contents() -> dict[str, dict[str, Any]]:
    """The dashboards that are drawn, by the name of their picture."""
    fields = [metric.field for metric in metric_set("profiling", "4.8.3") if metric.prometheus_type != "label"]
    label = hostname_label("4.8.3")
    smi = nvidia_smi_series(job="nvidia-gpu-exporter", metrics=synthetic_exporter.NVIDIA_SMI_METRICS)
    return {
        "gpu-dashboard": dashboard(dcgm_series(job="dcgm-exporter", metrics=fields, hostname_label=label, pods="all")),
        "gpu-dashboard-nvidia-smi": dashboard(smi),
    }


def picture(content: Mapping[str, Any]) -> str:
    """The layout as SVG: rows, and each panel at its place with its title and a sketch of its kind."""
    panels = content["panels"]
    width = 24 * _COLUMN + 2 * _GAP
    height = _HEAD + _LINE * max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in panels) + _GAP
    variables = ", ".join(one["label"] for one in content["templating"]["list"])
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="system-ui, sans-serif" font-size="12" role="img">',
        f"<title>{escape(content['title'])}: rows and panels</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="page" width="{width}" height="{height}"/>',
        f'<text class="head" x="{2 * _GAP}" y="22">{escape(content["title"])}</text>',
        f'<text class="note" x="{2 * _GAP}" y="38">Chosen at the top: {escape(variables)}</text>',
        *(line for panel in panels for line in _drawn(panel)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _drawn(panel: Mapping[str, Any]) -> Iterator[str]:
    place = panel["gridPos"]
    x, y = _GAP + place["x"] * _COLUMN, _HEAD + place["y"] * _LINE
    if panel["type"] == "row":
        yield f'<text class="row" x="{x + _GAP}" y="{y + _LINE + 1}">{escape(panel["title"])}</text>'
        return
    width, height = place["w"] * _COLUMN - _GAP, place["h"] * _LINE - _GAP
    yield f'<rect class="panel" x="{x}" y="{y + _GAP}" width="{width}" height="{height}" rx="3"/>'
    yield f'<text class="title" x="{x + 7}" y="{y + 18}">{escape(_short(panel["title"], width))}</text>'
    inner = (x + 8, y + 26, width - 16, height - 30)
    yield from _SKETCHES[panel["type"]](panel, *inner)


def _short(title: str, width: int) -> str:
    fitting = int((width - 12) / _LETTER)
    return title if len(title) <= fitting else f"{title[: fitting - 1].rstrip()}…"


def _stat(panel: Mapping[str, Any], x: int, y: int, width: int, height: int) -> Iterator[str]:
    yield f'<rect class="fill" x="{x}" y="{y + 1}" width="{width // 3}" height="{height - 4}" rx="2"/>'


def _graph(panel: Mapping[str, Any], x: int, y: int, width: int, height: int) -> Iterator[str]:
    shapes = {"ink": (0.75, 0.35, 0.5, 0.2, 0.45, 0.3), "ink second": (0.25, 0.15, 0.2, 0.1, 0.15, 0.1)}
    for number, (style, shape) in enumerate(shapes.items()):
        if number < len(panel["targets"]):
            step = width / (len(shape) - 1)
            points = " ".join(f"{x + i * step:.0f},{y + height * part:.0f}" for i, part in enumerate(shape))
            yield f'<polyline class="{style}" points="{points}"/>'


def _bars(panel: Mapping[str, Any], x: int, y: int, width: int, height: int) -> Iterator[str]:
    for number, part in enumerate((0.8, 0.5, 0.3)):
        top = y + number * height // 3
        yield f'<rect class="faint" x="{x}" y="{top}" width="{width}" height="{height // 3 - 5}"/>'
        yield f'<rect class="fill" x="{x}" y="{top}" width="{int(width * part)}" height="{height // 3 - 5}"/>'


def _table(panel: Mapping[str, Any], x: int, y: int, width: int, height: int) -> Iterator[str]:
    (names,) = (one["options"]["renameByName"] for one in panel["transformations"] if one["id"] == "organize")
    titles = list(names.values())
    step = width / len(titles)
    for number, title in enumerate(titles):
        fitting = int(step / 5.4)
        text = title if len(title) <= fitting else f"{title[: fitting - 1]}…"
        yield f'<text class="note" x="{x + number * step:.0f}" y="{y + 10}">{escape(text)}</text>'
    for top in range(y + 16, y + height - 6, 14):
        yield f'<rect class="faint" x="{x}" y="{top}" width="{width}" height="8"/>'


def _text(panel: Mapping[str, Any], x: int, y: int, width: int, height: int) -> Iterator[str]:
    for number, top in enumerate(range(y + 2, y + height - 6, 11)):
        part = width if number % 4 != 3 else width * 2 // 3
        yield f'<rect class="faint" x="{x}" y="{top}" width="{part}" height="5"/>'


_SKETCHES = {"stat": _stat, "timeseries": _graph, "bargauge": _bars, "table": _table, "text": _text}

if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    for name, content in contents().items():
        (IMAGES / f"{name}.svg").write_text(picture(content), encoding="utf-8")
