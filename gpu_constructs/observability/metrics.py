"""A metric of the DCGM exporter: which fields it reads from the GPUs and publishes to Prometheus."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from gpu_constructs import _fields
from gpu_constructs.errors import GpuConstructsError, ShortErrors

MetricType = Literal["gauge", "counter", "label"]

COLLECTION_INTERVAL_SECONDS = 30
"""Seconds between two readings of the GPUs, the exporter's default. Scraping more often repeats points."""

_FIELD = re.compile(r"DCGM_(FI|EXP)_[A-Z0-9_]+\Z")
_RELEASE = re.compile(r"(\d+)\.(\d+)\.(\d+)\Z")


@dataclass(frozen=True, kw_only=True)
class Metric(metaclass=ShortErrors):
    """One line of the exporter's CSV.

    Attributes:
        field: DCGM field (``DCGM_FI_…``) or value computed by the exporter (``DCGM_EXP_…``); also the name of
            the Prometheus metric. A name that the image's DCGM does not know ends the exporter at start.
        prometheus_type: ``gauge``, ``counter``, or ``label``, which puts the field's value as a label on
            every other series. Releases before 4.8.3 also take ``histogram`` and ``summary`` but print a
            plain number for them, so they are refused here.
        help: Text of Prometheus' HELP line, without comma, double quote or line break: at those the exporter
            would end when it reads its list.

    Raises:
        GpuConstructsError: For a name, a type or a help text that the exporter would not take.

    Source: NVIDIA/dcgm-exporter@4.5.3-4.8.2:internal/pkg/counters/{counter_config,variables}.go.
    """

    field: str
    prometheus_type: MetricType
    help: str

    def __post_init__(self) -> None:
        _fields.members(self, "metric")
        if not _FIELD.match(self.field):
            raise GpuConstructsError(
                "metric.field must be a DCGM name such as 'DCGM_FI_DEV_GPU_UTIL' "
                f"(capital letters, digits and '_'); got {self.field!r}"
            )
        forbidden = sorted({letter for letter in self.help if letter in ',"' or not letter.isprintable()})
        if forbidden:
            raise GpuConstructsError(
                f"metric.help of {self.field} must not contain {', '.join(map(repr, forbidden))}: "
                f"the exporter reads comma-separated lines; got {self.help!r}"
            )


def _gauge(field: str, text: str) -> Metric:
    return Metric(field=field, prometheus_type="gauge", help=text)


def _counter(field: str, text: str) -> Metric:
    return Metric(field=field, prometheus_type="counter", help=text)


_PROFILING = "Profiling (data centre GPUs; GeForce from Blackwell on; needs SYS_ADMIN)"
_LABELS = "Labels on every series"
_OTHERS = "Others"

_GROUPS: dict[str, tuple[Metric, ...]] = {
    "Clocks": (
        _gauge("DCGM_FI_DEV_SM_CLOCK", "Clock of the streaming multiprocessors in MHz"),
        _gauge("DCGM_FI_DEV_MEM_CLOCK", "Clock of the memory in MHz"),
    ),
    "Temperature": (
        _gauge("DCGM_FI_DEV_GPU_TEMP", "Temperature of the GPU core in degrees Celsius"),
        _gauge("DCGM_FI_DEV_MEMORY_TEMP", "Temperature of the memory in degrees Celsius"),
    ),
    "Power": (
        _gauge("DCGM_FI_DEV_POWER_USAGE", "Power the board draws in watts"),
        _counter("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "Energy used since driver start in millijoules"),
    ),
    "Utilisation": (
        _gauge("DCGM_FI_DEV_GPU_UTIL", "Percent of time in which at least one kernel was running"),
        _gauge("DCGM_FI_DEV_MEM_COPY_UTIL", "Percent of time in which memory was read or written"),
        _gauge("DCGM_FI_DEV_ENC_UTIL", "Percent of time in which the video encoder was busy"),
        _gauge("DCGM_FI_DEV_DEC_UTIL", "Percent of time in which the video decoder was busy"),
    ),
    "Memory": (
        _gauge("DCGM_FI_DEV_FB_USED", "VRAM in use in MiB"),
        _gauge("DCGM_FI_DEV_FB_FREE", "VRAM free in MiB"),
        _gauge("DCGM_FI_DEV_FB_RESERVED", "VRAM held by driver and firmware in MiB"),
    ),
    "Errors": (
        _gauge("DCGM_FI_DEV_XID_ERRORS", "Last XID error code seen (stays until the exporter restarts)"),
        _counter("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "PCIe packets that had to be sent again"),
        _counter("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "Memory rows remapped after uncorrectable errors"),
        _counter("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "Memory rows remapped after correctable errors"),
        _gauge("DCGM_FI_DEV_ROW_REMAP_FAILURE", "1 when no spare memory row is left"),
    ),
    "NVLink and vGPU": (
        _gauge("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "NVLink traffic over all links"),
        _gauge("DCGM_FI_DEV_VGPU_LICENSE_STATUS", "State of the vGPU licence"),
    ),
    _PROFILING: (
        _gauge("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "Share of time the graphics or compute engine was busy (0 to 1)"),
        _gauge("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "Share of time the tensor pipe was busy (0 to 1)"),
        _gauge("DCGM_FI_PROF_DRAM_ACTIVE", "Share of time the memory interface was busy (0 to 1)"),
        _gauge("DCGM_FI_PROF_PCIE_TX_BYTES", "Bytes sent over PCIe per second"),
        _gauge("DCGM_FI_PROF_PCIE_RX_BYTES", "Bytes received over PCIe per second"),
    ),
    _LABELS: (Metric(field="DCGM_FI_DRIVER_VERSION", prometheus_type="label", help="Version of the NVIDIA driver"),),
}

_GROUP_OF = {metric.field: title for title, metrics in _GROUPS.items() for metric in metrics}


def release_number(release: str) -> tuple[int, int, int]:
    """Read an exporter release such as ``4.8.3`` (the second part of the image tag) as comparable numbers.

    Raises:
        GpuConstructsError: For anything but three numbers joined by dots.
    """
    found = _RELEASE.match(release)
    if not found:
        raise GpuConstructsError(f"release must be an exporter release such as '4.8.3'; got {release!r}")
    major, minor, patch = map(int, found.groups())
    return major, minor, patch


def hostname_label(release: str) -> str:
    """Name the label that carries the node's name: ``Hostname`` up to 4.8.2, ``hostname`` from 4.8.3 on.

    Source: NVIDIA/dcgm-exporter@4.5.3-4.8.2 and @7ad58324 (release 4.6.0-4.8.3):
    internal/pkg/rendermetrics/render_metrics.go.
    """
    return "hostname" if release_number(release) >= (4, 8, 3) else "Hostname"


def default_metrics(release: str) -> tuple[Metric, ...]:
    """Give the metrics that the image of this release publishes by default, with the same types.

    The driver version stays in, a label on every series, as in the image's own list. Its price is a new set
    of series at each driver upgrade, that is at a reboot, when counters start over anyway; queries that
    aggregate by device do not notice. To go without::

        [metric for metric in default_metrics("4.8.3") if metric.prometheus_type != "label"]

    Args:
        release: Exporter release, such as ``4.8.3``.

    Raises:
        GpuConstructsError: When the release is not three numbers joined by dots.

    Source: NVIDIA/dcgm-exporter@3.3.6-3.4.2:etc/dcp-metrics-included.csv (the file its chart names),
    @4.5.3-4.8.2 and @7ad58324 (release 4.6.0-4.8.3):etc/default-counters.csv.
    """
    number = release_number(release)
    metrics = [metric for group in _GROUPS.values() for metric in group]
    if number < (4, 4, 0):
        metrics = [metric for metric in metrics if metric.field != "DCGM_FI_DEV_FB_RESERVED"]
    if number < (4, 8, 3):
        metrics = [
            replace(metric, prometheus_type="counter")
            if metric.field == "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL"
            else metric
            for metric in metrics
        ]
    return tuple(metrics)


def needs_profiling(metrics: Sequence[Metric]) -> bool:
    """Say whether a metric comes from DCGM's profiling module, for which the exporter needs SYS_ADMIN."""
    return any(metric.field.startswith("DCGM_FI_PROF_") for metric in metrics)


def check_metrics(metrics: Sequence[Metric]) -> None:
    """Refuse a list that publishes nothing, or one metric twice (from 4.8.3 on that fails every scrape).

    Raises:
        GpuConstructsError: Naming the metric that is in the list twice, or the empty list.
    """
    names = [metric.field for metric in metrics]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise GpuConstructsError(f"metrics must name each field once; got {twice[0]!r} more than once")
    if all(metric.prometheus_type == "label" for metric in metrics):
        raise GpuConstructsError(f"metrics must hold at least one gauge or counter; got {names}")


def counters_csv(metrics: Sequence[Metric]) -> str:
    """Write the CSV that the exporter's ``-f`` flag reads: groups under a comment, one line per metric.

    Groups come in a fixed order, metrics within a group in the order given.

    Raises:
        GpuConstructsError: For a list that ``check_metrics`` refuses.
    """
    check_metrics(metrics)
    groups: dict[str, list[Metric]] = {title: [] for title in (*_GROUPS, _OTHERS)}
    for metric in metrics:
        groups[_group(metric)].append(metric)
    blocks = ["# DCGM field, Prometheus type, help"]
    for title, members in groups.items():
        if members:
            lines = [f"{metric.field}, {metric.prometheus_type}, {metric.help}".rstrip() for metric in members]
            blocks.append("\n".join([f"# {title}", *lines]))
    return "\n\n".join(blocks) + "\n"


def _group(metric: Metric) -> str:
    if metric.prometheus_type == "label":
        return _LABELS
    if needs_profiling([metric]):
        return _PROFILING
    return _GROUP_OF.get(metric.field, _OTHERS)
