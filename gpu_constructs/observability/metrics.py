"""Metrics of the DCGM exporter: DCGM fields that it reads from the GPUs and exports to Prometheus.

If the DCGM library in the image does not know a field, the exporter exits when it starts.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Literal, get_args

from gpu_constructs.catalog.versions import comparable
from gpu_constructs.errors import GpuConstructsError, did_you_mean, warn
from gpu_constructs.kube import fields, tables
from gpu_constructs.observability.exporter_options import MetricsConfigMap
from gpu_constructs.records import dataclass, regex

MetricType = Literal["gauge", "counter", "label"]

COLLECTION_INTERVAL_SECONDS = 30
"""Default time between two readings of the GPUs, in seconds. A scrape between two readings returns the same values."""

_FIELD = regex(r"DCGM_(FI|EXP)_[A-Z0-9_]+\Z")
_TABLE = "dcgm_metrics.csv"


@dataclass(frozen=True, kw_only=True)
class Metric(fields.Options):
    """A metric that the DCGM exporter exports. It becomes one line in the CSV of the exporter.

    Attributes:
        field: DCGM field (``DCGM_FI_…``), or a value that the exporter computes (``DCGM_EXP_…``). It is also the name
            of the Prometheus metric. If the image does not know the field, the exporter exits when it starts.
        prometheus_type: ``gauge``, ``counter`` or ``label``. ``label`` adds the value as a label to every other series.
            Releases before 4.8.3 also accept ``histogram`` and ``summary`` but print a plain number for them, so this
            library rejects both.
        help: Text of the HELP line. It must not contain a comma, a double quote or a line break, because the exporter
            would fail to read the CSV.

    Raises:
        GpuConstructsError: If the exporter would reject the name, the type or the help text.

    Source: NVIDIA/dcgm-exporter@4.5.3-4.8.2:internal/pkg/counters/{counter_config,variables}.go.
    """

    field: str
    prometheus_type: MetricType
    help: str

    def _conflicts(self) -> Iterable[fields.Conflict]:
        forbidden = sorted({letter for letter in self.help if letter in ',"' or not letter.isprintable()})
        return [
            (
                not _FIELD.match(self.field),
                "metric.field must be a DCGM name such as 'DCGM_FI_DEV_GPU_UTIL' "
                f"(capital letters, digits and '_'), got {self.field!r}",
            ),
            (
                forbidden,
                f"metric.help of {self.field} must not contain {', '.join(map(repr, forbidden))}, because the "
                f"exporter reads comma-separated lines, got {self.help!r}. Write ';' or another word",
            ),
            (
                self.prometheus_type == "label" and self.field.startswith("DCGM_EXP_"),
                f"metric.prometheus_type of {self.field} must be 'gauge', because the exporter computes a number for "
                "it and not a label, got 'label'",
            ),
        ]


_LABELS = "Labels on every series"
_OTHERS = "Others"

MetricSet = Literal["seed", "default", "recommended", "profiling"]
"""Names of the lists of metrics that this library provides. The docstring of ``metric_set`` describes each list."""

_LISTS: tuple[str, ...] = get_args(MetricSet)
"""Names of the lists, from the shortest to the longest. Each list contains all metrics of the lists before it."""


def hostname_label(release: str) -> str:
    """Return the label with the name of the node: ``Hostname`` up to 4.8.2, ``hostname`` from 4.8.3 on.

    Source: NVIDIA/dcgm-exporter@4.5.3-4.8.2 and @7ad58324 (release 4.6.0-4.8.3):
    internal/pkg/rendermetrics/render_metrics.go.
    """
    return "hostname" if comparable(release) >= comparable("4.8.3") else "Hostname"


def metric_set(name: MetricSet, release: str) -> tuple[Metric, ...]:
    """Return a list of metrics by its name, for a release of the exporter.

    All lists except ``seed`` add the version of the NVIDIA driver as a label to every series, like the list in the
    exporter's image. Each driver upgrade therefore creates new series. This does not change results: an upgrade
    includes a reboot, which resets counters anyway, and queries that combine series by device ignore the label.

    Args:
        name: Name of the list. ``seed`` has six metrics: utilization, used VRAM, temperature, power and two clocks.
            ``default`` is the list of the image. ``recommended`` adds to ``default`` the metrics of alerts and
            dashboard, such as XIDs and ECC errors. ``profiling`` adds to ``recommended`` all metrics of the profiling
            module. The hardware measures only a few profiling metrics at a time, so more metrics get fewer samples.
        release: Exporter release, such as ``4.8.3``.

    Raises:
        GpuConstructsError: If the name is unknown.
    """
    fields.one_of("metrics", name, _LISTS)
    lists = _LISTS[: _LISTS.index(name) + 1]
    return tuple(metric for metric, of_list in _listed(release).values() if of_list in lists)


@cache
def _listed(release: str) -> Mapping[str, tuple[Metric, str | None]]:
    """Return a dict from the name of each DCGM field to a pair: its metric, and a metric set.

    The metric set is the smallest one of the library that contains the field, such as ``seed``. None: the exporter
    release does not know the field.
    """
    number = comparable(release)
    found: dict[str, tuple[Metric, str | None]] = {}
    for row in tables.rows(__package__, _TABLE):
        earlier, _, changed = row["earlier"].partition(" before ")
        kind = earlier if earlier and number < comparable(changed) else row["type"]
        is_known = number >= comparable(row["since"] or "0.0.0")
        metric = Metric(field=row["field"], prometheus_type=kind, help=row["help"])  # type: ignore[arg-type]
        found[metric.field] = metric, row["list"] if is_known else None
    return found


def exported_metrics(
    given: MetricSet | Sequence[Metric | str], release: str, *, known_as: str, is_profiled: bool = True
) -> tuple[Metric, ...]:
    """Return the metrics to export. Check that the image of the exporter knows their DCGM fields.

    Args:
        given: Name of a list, or metrics. For a metric of the list ``profiling``, the name of its field is enough.
        release: Exporter release.
        known_as: Text that names the release in error messages.
        is_profiled: Whether to keep the profiling metrics if ``given`` is the name of a list.

    Raises:
        GpuConstructsError: If a name is unknown, the release does not know a field, a field occurs twice, or no metric
            remains.
    """
    if isinstance(given, str):
        named = metric_set(given, release)  # type: ignore[arg-type]
        return tuple(metric for metric in named if is_profiled or not needs_profiling([metric]))
    listed = _listed(release)
    metrics = tuple(
        one if isinstance(one, Metric) else listed[one][0] if one in listed else _by_name(one, release, known_as)
        for one in given
    )
    published = metric_set("profiling", release)
    for metric in metrics:
        if metric not in published:
            require_known(metric.field, metric.prometheus_type, release, known_as=known_as)
    check_metrics(metrics)
    return metrics


def _known_fields(release: str) -> Mapping[str, Mapping[str, str]]:
    """Return the row in ``dcgm_fields.csv`` of each DCGM field that the image of a release knows, by name of the field.

    All releases from 4.8.2 on have the fields of 4.8.2.
    """
    number = comparable(release)
    return {
        row["field"]: row
        for row in tables.rows(__package__, "dcgm_fields.csv")
        if str(number.major) in row["releases"]
        and release not in row["absent"].split()
        and (number.major == 3 or number >= comparable(row["since"] or "4.0.0"))
    }


def require_known(field: str, prometheus_type: str, release: str, *, known_as: str) -> None:
    """Raise an error if a DCGM field cannot become a metric of the given type in an exporter release.

    Args:
        field: DCGM field, such as ``DCGM_FI_DEV_GPU_UTIL``.
        prometheus_type: ``gauge``, ``counter`` or ``label``.
        release: Exporter release.
        known_as: Text that names the release in error messages.

    Raises:
        GpuConstructsError: If the image does not know the field, or the value of the field is text and the type is not
            ``label``. The message contains the most similar field, or a release that knows the field.
    """
    known = _known_fields(release)
    if field in known and (prometheus_type == "label" or not known[field]["is_text"]):
        return
    if field in known:
        raise GpuConstructsError(
            f"metrics must use {field} as a label, because its value is text: a {prometheus_type} with text would "
            "make the whole scrape invalid. Pass prometheus_type='label'"
        )
    if field in _known_fields("4.8.2"):
        way_out = f". A later release knows it. Use version='4.8.3' instead of {known_as!r}"
    else:
        near = difflib.get_close_matches(field, known, n=1, cutoff=0.6)
        way_out = (
            f" (did you mean {near[0]!r}?)"
            if near
            else ". For a field of a later DCGM, use your own ConfigMap with metrics=MetricsConfigMap(...)"
        )
    raise GpuConstructsError(
        f"metrics must name fields that the DCGM exporter {known_as} knows, because it exits at an unknown field, got "
        f"{field!r}{way_out}"
    )


def _by_name(field: str, release: str, known_as: str) -> Metric:
    near = ""
    if _FIELD.match(field):
        require_known(field, "label", release, known_as=known_as)
    else:
        near = did_you_mean(field, _listed(release))
    raise GpuConstructsError(
        f"metrics must contain a type for a field that this library does not know, got {field!r}{near}. Pass "
        "Metric(field=..., prometheus_type=..., help=...)"
    )


def needs_profiling(metrics: Sequence[Metric]) -> bool:
    """Check whether at least one of the metrics comes from DCGM's profiling module.

    The exporter needs SYS_ADMIN for these metrics.
    """
    return any(metric.field.startswith("DCGM_FI_PROF_") for metric in metrics)


def check_metrics(metrics: Sequence[Metric]) -> None:
    """Raise an error if a list has no metric to export, or contains a metric twice.

    From release 4.8.3 on, a duplicate metric makes every scrape fail.

    Raises:
        GpuConstructsError: In both cases. For a duplicate, the message contains the name of the metric.
    """
    names = [metric.field for metric in metrics]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise GpuConstructsError(f"metrics must name each field once, got {twice[0]!r} more than once")
    if all(metric.prometheus_type == "label" for metric in metrics):
        raise GpuConstructsError(f"metrics must contain at least one gauge or counter, got {names}")


def counters_csv(metrics: Sequence[Metric]) -> str:
    """Return the CSV for the flag ``-f`` of the exporter, with one line for each metric.

    The CSV puts metrics on the same subject together, below a comment with the subject. The subjects have a fixed
    order. Metrics on the same subject keep the order of ``metrics``.
    """
    group_of = {row["field"]: row["group"] for row in tables.rows(__package__, _TABLE)}
    titles = list(dict.fromkeys(group_of.values()))
    groups: dict[str, list[Metric]] = {title: [] for title in (*titles[:-2], _OTHERS, *titles[-2:])}
    for metric in metrics:
        title = titles[-2] if needs_profiling([metric]) else group_of.get(metric.field, _OTHERS)
        groups[_LABELS if metric.prometheus_type == "label" else title].append(metric)
    blocks = ["# DCGM field, Prometheus type, help"]
    for title, members in groups.items():
        if members:
            lines = [f"{metric.field}, {metric.prometheus_type}, {metric.help}".rstrip() for metric in members]
            blocks.append("\n".join([f"# {title}", *lines]))
    return "\n\n".join(blocks) + "\n"


def chosen_metrics(
    given: MetricSet | MetricsConfigMap | Sequence[Metric | str],
    release: str,
    gpu_models: Sequence[str],
    *,
    known_as: str,
) -> tuple[tuple[Metric, ...], bool]:
    """Return a pair: the metrics to export, and whether the exporter needs DCGM's profiling module for them.

    Args:
        given: Name of a list, metrics or DCGM fields, or a ConfigMap with a list of the user.
        release: Exporter release.
        gpu_models: Model names of the GPUs. Empty if they are unknown.
        known_as: Text that names the release in error messages.

    Raises:
        GpuConstructsError: If no GPU supports the requested profiling metrics, or if ``exported_metrics`` rejects a
            metric.
    """
    can_profile = not gpu_models or _can_profile(gpu_models)
    if isinstance(given, MetricsConfigMap):
        if given.is_profiled and not can_profile:
            raise GpuConstructsError(
                f"metrics.is_profiled must be False for {', '.join(map(repr, gpu_models))}: GeForce has no profiling "
                "metrics before Blackwell, got True"
            )
        return (), given.is_profiled
    exported = exported_metrics(given, release, known_as=known_as, is_profiled=can_profile or given == "profiling")
    is_profiled = needs_profiling(exported)
    if is_profiled and not can_profile:
        first = next(metric.field for metric in exported if needs_profiling([metric]))
        got = repr(given) if isinstance(given, str) else repr(first)
        raise GpuConstructsError(
            f"metrics must not contain profiling metrics for {', '.join(map(repr, gpu_models))}: GeForce has none "
            "before "
            f"Blackwell, got {got}. Use metrics='recommended', which omits them for such GPUs"
        )
    return exported, is_profiled


def _can_profile(gpu_models: Sequence[str]) -> bool:
    """Check whether one of the GPU models supports profiling. An unknown model counts as supporting it."""
    from gpu_constructs.catalog.gpu_models import doubt_of, has_profiling_metrics

    known = {model: has_profiling_metrics(model) for model in gpu_models}
    for model in (model for model, profiles in known.items() if profiles is None):
        near = doubt_of(model)
        if near is not None:
            warn(
                f"gpu_models: {model!r} is not the name of a known board{near}, so the library "
                "assumes that it supports profiling"
            )
    return any(profiles is not False for profiles in known.values())
