"""A metric of the DCGM exporter: which fields it reads from the GPUs and publishes to Prometheus."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from gpu_constructs import _fields
from gpu_constructs.errors import GpuConstructsError, ShortErrors, did_you_mean

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
                f"the exporter reads comma-separated lines; got {self.help!r}; write ';' or another word"
            )
        if self.prometheus_type == "label" and self.field.startswith("DCGM_EXP_"):
            raise GpuConstructsError(
                f"metric.prometheus_type of {self.field} must be 'gauge': the exporter computes it and has no text to "
                "put on other series; got 'label'"
            )


def _gauge(field: str, text: str) -> Metric:
    return Metric(field=field, prometheus_type="gauge", help=text)


def _counter(field: str, text: str) -> Metric:
    return Metric(field=field, prometheus_type="counter", help=text)


_PROFILING = "Profiling (data centre GPUs; GeForce from Blackwell on; needs SYS_ADMIN)"
_LABELS = "Labels on every series"
_OTHERS = "Others"

_DEFAULT: dict[str, tuple[Metric, ...]] = {
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
"""What the images publish by default."""

_RECOMMENDED: dict[str, tuple[Metric, ...]] = {
    "Clocks": (
        _gauge("DCGM_EXP_CLOCK_EVENTS_COUNT", "Readings in the last five minutes at which a reason held clocks back"),
        _gauge("DCGM_FI_DEV_PSTATE", "Performance state from 0 (fastest) to 15"),
    ),
    "Temperature": (
        _gauge("DCGM_FI_DEV_SLOWDOWN_TEMP", "Temperature at which the GPU slows down in degrees Celsius"),
        _gauge("DCGM_FI_DEV_FAN_SPEED", "Fan speed in percent"),
    ),
    "Power": (
        _gauge("DCGM_FI_DEV_POWER_MGMT_LIMIT", "Power limit that is set in watts"),
        _gauge("DCGM_FI_DEV_ENFORCED_POWER_LIMIT", "Power limit that the driver enforces in watts"),
        _gauge("DCGM_FI_DEV_POWER_MGMT_LIMIT_MIN", "Lowest power limit the board takes in watts"),
        _gauge("DCGM_FI_DEV_POWER_MGMT_LIMIT_MAX", "Highest power limit the board takes in watts"),
        _gauge("DCGM_FI_DEV_POWER_MGMT_LIMIT_DEF", "Power limit of the board by default in watts"),
    ),
    "Throttling": (
        _counter("DCGM_FI_DEV_POWER_VIOLATION", "Time held back by the power limit in nanoseconds"),
        _counter("DCGM_FI_DEV_THERMAL_VIOLATION", "Time held back by temperature in nanoseconds"),
        _counter("DCGM_FI_DEV_RELIABILITY_VIOLATION", "Time held back for reliability in nanoseconds"),
        _counter("DCGM_FI_DEV_BOARD_LIMIT_VIOLATION", "Time held back by a limit of the board in nanoseconds"),
    ),
    "Errors": (
        _gauge("DCGM_EXP_XID_ERRORS_COUNT", "XID errors of the last five minutes by code"),
        _counter("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "Corrected memory errors since driver start"),
        _counter("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "Uncorrected memory errors since driver start"),
        _gauge("DCGM_FI_DEV_ROW_REMAP_PENDING", "1 when memory rows wait for a GPU reset to be remapped"),
        _gauge(
            "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION",
            "What the driver asks for: 0 nothing; 1 GPU reset; 2 reboot; 3 drain P2P; 4 drain and reset",
        ),
    ),
    "PCIe": (
        _gauge("DCGM_FI_DEV_PCIE_LINK_WIDTH", "PCIe lanes in use"),
        _gauge("DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH", "PCIe lanes that GPU and slot have"),
    ),
}
"""What alerts and dashboard ask for besides."""

_MORE_PROFILING: dict[str, tuple[Metric, ...]] = {
    _PROFILING: (
        _gauge("DCGM_FI_PROF_SM_ACTIVE", "Share of time a multiprocessor had work (0 to 1)"),
        _gauge("DCGM_FI_PROF_SM_OCCUPANCY", "Warps resident on the multiprocessors of those that fit (0 to 1)"),
        _gauge("DCGM_FI_PROF_PIPE_FP64_ACTIVE", "Share of time the FP64 pipe was busy (0 to 1)"),
        _gauge("DCGM_FI_PROF_PIPE_FP32_ACTIVE", "Share of time the FP32 pipe was busy (0 to 1)"),
        _gauge("DCGM_FI_PROF_PIPE_FP16_ACTIVE", "Share of time the FP16 pipe was busy (0 to 1)"),
        _gauge("DCGM_FI_PROF_NVLINK_TX_BYTES", "Bytes sent over NVLink per second"),
        _gauge("DCGM_FI_PROF_NVLINK_RX_BYTES", "Bytes received over NVLink per second"),
    ),
}
"""What profiling can tell besides; more of it at once means more passes over the hardware's counters."""

_SEED = frozenset(
    {
        "DCGM_FI_DEV_SM_CLOCK",
        "DCGM_FI_DEV_MEM_CLOCK",
        "DCGM_FI_DEV_GPU_TEMP",
        "DCGM_FI_DEV_POWER_USAGE",
        "DCGM_FI_DEV_GPU_UTIL",
        "DCGM_FI_DEV_FB_USED",
    }
)

_SINCE = {"DCGM_FI_DEV_FB_RESERVED": (4, 4, 0), "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION": (4, 0, 0)}
"""First releases of what is not in every release."""


def _titles() -> list[str]:
    titles = [*_DEFAULT, *(title for title in _RECOMMENDED if title not in _DEFAULT)]
    return [*(title for title in titles if title not in (_PROFILING, _LABELS)), _OTHERS, _PROFILING, _LABELS]


_GROUP_OF = {
    metric.field: title
    for groups in (_DEFAULT, _RECOMMENDED, _MORE_PROFILING)
    for title, metrics in groups.items()
    for metric in metrics
}


def _every_metric() -> list[Metric]:
    return [
        metric
        for groups in (_DEFAULT, _RECOMMENDED, _MORE_PROFILING)
        for metrics in groups.values()
        for metric in metrics
    ]


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


MetricSet = Literal["seed", "default", "recommended", "profiling"]
"""Lists of metrics by name; see ``metric_set``."""


def metric_set(name: MetricSet, release: str) -> tuple[Metric, ...]:
    """Give a list of metrics by its name, as a release of the exporter knows them.

    Args:
        name: ``seed`` is six: utilisation, VRAM used, temperature, power and the two clocks. ``default`` is
            what the image publishes by itself. ``recommended`` is that and what alerts and dashboard ask for:
            XIDs and reasons for throttling by kind, power limits, ECC errors. ``profiling`` is that and all
            pipes of the profiling module, at a price: the hardware counts a few at a time, so that each is
            sampled less.
        release: Exporter release, such as ``4.8.3``.

    The driver version stays in from ``default`` on, a label on every series, as in the image's own list. Its
    price is a new set of series at each driver upgrade, that is at a reboot, when counters start over anyway;
    queries that aggregate by device do not notice.

    Raises:
        GpuConstructsError: Another name, or a release that is not three numbers joined by dots.

    Source: NVIDIA/dcgm-exporter@3.3.6-3.4.2:etc/dcp-metrics-included.csv (the file its chart names),
    @4.5.3-4.8.2 and @7ad58324 (release 4.6.0-4.8.3):etc/default-counters.csv.
    """
    _fields.one_of("metrics", name, get_args(MetricSet))
    number = release_number(release)
    chosen = [_DEFAULT]
    if name in ("recommended", "profiling"):
        chosen.append(_RECOMMENDED)
    if name == "profiling":
        chosen.append(_MORE_PROFILING)
    return tuple(
        _as_of(number, metric)
        for title in _titles()
        for groups in chosen
        for metric in groups.get(title, ())
        if number >= _SINCE.get(metric.field, number) and (name != "seed" or metric.field in _SEED)
    )


def default_metrics(release: str) -> tuple[Metric, ...]:
    """Give the metrics that the image of this release publishes by default, with the same types."""
    return metric_set("default", release)


def _as_of(number: tuple[int, int, int], metric: Metric) -> Metric:
    if metric.field == "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL" and number < (4, 8, 3):
        return replace(metric, prometheus_type="counter")
    return metric


def exported_metrics(
    given: MetricSet | Sequence[Metric | str], release: str, *, known_as: str, is_profiled: bool = True
) -> tuple[Metric, ...]:
    """Give what to export, checked against the fields that the image knows.

    Args:
        given: A list by its name; or metrics, those of ``profiling`` also by their field alone.
        release: Exporter release.
        known_as: The release as the error is to name it.
        is_profiled: False leaves the profiling metrics of a named list out.

    Raises:
        GpuConstructsError: Another name, a field that the release does not know, one that is twice in the
            list, or a list that publishes nothing.
    """
    if isinstance(given, str):
        named = metric_set(given, release)  # type: ignore[arg-type]
        return tuple(metric for metric in named if is_profiled or not needs_profiling([metric]))
    number = release_number(release)
    ours = {metric.field: _as_of(number, metric) for metric in _every_metric()}
    metrics = tuple(
        (ours.get(metric) or _by_name(metric, release, known_as)) if isinstance(metric, str) else metric
        for metric in given
    )
    foreign = [m for m in metrics if m != ours.get(m.field) or number < _SINCE.get(m.field, number)]
    if foreign:
        # A table of seven hundred names, for those who go beyond ours.
        from gpu_constructs.observability import dcgm_fields

        for metric in foreign:
            dcgm_fields.require(metric.field, metric.prometheus_type, release, known_as=known_as)
    check_metrics(metrics)
    return metrics


def _by_name(field: str, release: str, known_as: str) -> Metric:
    if _FIELD.match(field):
        from gpu_constructs.observability import dcgm_fields

        dcgm_fields.require(field, "label", release, known_as=known_as)
    near = did_you_mean(field, _GROUP_OF) if not _FIELD.match(field) else ""
    raise GpuConstructsError(
        "metrics can hold a field by its name alone only where this library knows its type; "
        f"got {field!r}{near}; pass Metric(field=..., prometheus_type=..., help=...)"
    )


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
    groups: dict[str, list[Metric]] = {title: [] for title in _titles()}
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
