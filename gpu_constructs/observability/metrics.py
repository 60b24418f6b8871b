"""Metrics of the DCGM exporter: fields that it reads from the GPUs and publishes to Prometheus.

A metric whose name the DCGM of an exporter's image does not know ends the exporter at its start.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, get_args

from gpu_constructs.errors import GpuConstructsError, did_you_mean, warn
from gpu_constructs.kube import fields, tables
from gpu_constructs.observability.exporter_options import MetricsConfigMap

MetricType = Literal["gauge", "counter", "label"]

COLLECTION_INTERVAL_SECONDS = 30
"""Seconds between two readings of the GPUs, the exporter's default. Scraping more often repeats points."""

_FIELD = re.compile(r"DCGM_(FI|EXP)_[A-Z0-9_]+\Z")
_TABLE = "dcgm_metrics.csv"
_RELEASE = re.compile(r"(\d+)\.(\d+)\.(\d+)\Z")


@dataclass(frozen=True, kw_only=True)
class Metric(fields.Options):
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

    def _conflicts(self) -> Iterable[fields.Conflict]:
        forbidden = sorted({letter for letter in self.help if letter in ',"' or not letter.isprintable()})
        return [
            (
                not _FIELD.match(self.field),
                "metric.field must be a DCGM name such as 'DCGM_FI_DEV_GPU_UTIL' "
                f"(capital letters, digits and '_'); got {self.field!r}",
            ),
            (
                forbidden,
                f"metric.help of {self.field} must not contain {', '.join(map(repr, forbidden))}: "
                f"the exporter reads comma-separated lines; got {self.help!r}; write ';' or another word",
            ),
            (
                self.prometheus_type == "label" and self.field.startswith("DCGM_EXP_"),
                f"metric.prometheus_type of {self.field} must be 'gauge': the exporter computes it and has no text to "
                "put on other series; got 'label'",
            ),
        ]


_LABELS = "Labels on every series"
_OTHERS = "Others"

MetricSet = Literal["seed", "default", "recommended", "profiling"]
"""Lists of metrics by name; see ``metric_set``."""

_LISTS: tuple[str, ...] = get_args(MetricSet)
"""Each list holds those before it."""


def release_number(release: str) -> tuple[int, int, int]:
    """Return an exporter release such as ``4.8.3`` (the second part of the image tag) as comparable numbers.

    Raises:
        GpuConstructsError: For anything but three numbers joined by dots.
    """
    found = _RELEASE.match(release)
    if not found:
        raise GpuConstructsError(f"release must be an exporter release such as '4.8.3'; got {release!r}")
    major, minor, patch = map(int, found.groups())
    return major, minor, patch


def hostname_label(release: str) -> str:
    """Return the label that carries the name of the node: ``Hostname`` up to 4.8.2, ``hostname`` from 4.8.3 on.

    Source: NVIDIA/dcgm-exporter@4.5.3-4.8.2 and @7ad58324 (release 4.6.0-4.8.3):
    internal/pkg/rendermetrics/render_metrics.go.
    """
    return "hostname" if release_number(release) >= (4, 8, 3) else "Hostname"


def metric_set(name: MetricSet, release: str) -> tuple[Metric, ...]:
    """Return a list of metrics by its name, as a release of the exporter knows them.

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
    """
    fields.one_of("metrics", name, _LISTS)
    lists = _LISTS[: _LISTS.index(name) + 1]
    return tuple(metric for metric, of_list in _listed(release).values() if of_list in lists)


@cache
def _listed(release: str) -> Mapping[str, tuple[Metric, str | None]]:
    """Return each metric of a list with the list, or None if it is younger than the release, by field."""
    number = release_number(release)
    found: dict[str, tuple[Metric, str | None]] = {}
    for row in tables.rows(__package__, _TABLE):
        earlier, _, changed = row["earlier"].partition(" before ")
        kind = earlier if earlier and number < release_number(changed) else row["type"]
        is_known = number >= release_number(row["since"] or "0.0.0")
        metric = Metric(field=row["field"], prometheus_type=kind, help=row["help"])  # type: ignore[arg-type]
        found[metric.field] = metric, row["list"] if is_known else None
    return found


def exported_metrics(
    given: MetricSet | Sequence[Metric | str], release: str, *, known_as: str, is_profiled: bool = True
) -> tuple[Metric, ...]:
    """Return the metrics to export, checked against the fields that the image knows.

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
    """Return the row of every name that an image of this exporter release takes.

    Releases from 4.x on are held against 4.8.2, the last one whose list was read.
    """
    major = "3" if release.startswith("3.") else "4"
    return {row["field"]: row for row in tables.rows(__package__, "dcgm_fields.csv") if major in row["releases"]}


def require_known(field: str, prometheus_type: str, release: str, *, known_as: str) -> None:
    """Raise for a name that the image does not know, and for a number if its value is text.

    Raises:
        GpuConstructsError: With the nearest name, or the release that knows it.
    """
    known = _known_fields(release)
    if field in known and (prometheus_type == "label" or not known[field]["is_text"]):
        return
    if field in known:
        raise GpuConstructsError(
            f"metrics must take {field} as a label: its value is text, which as a {prometheus_type} would spoil the "
            "whole scrape; pass prometheus_type='label'"
        )
    if field in _known_fields("4.8.2"):
        way_out = f"; it came with a later release: take version='4.8.3' instead of {known_as!r}"
    else:
        near = difflib.get_close_matches(field, known, n=1, cutoff=0.6)
        way_out = (
            f" (did you mean {near[0]!r}?)"
            if near
            else "; for a field of a later DCGM keep the list in a ConfigMap of your own: metrics=MetricsConfigMap(...)"
        )
    raise GpuConstructsError(
        f"metrics must name fields that the DCGM exporter {known_as} knows: it would end at an unknown one; "
        f"got {field!r}{way_out}"
    )


def _by_name(field: str, release: str, known_as: str) -> Metric:
    near = ""
    if _FIELD.match(field):
        require_known(field, "label", release, known_as=known_as)
    else:
        near = did_you_mean(field, _listed(release))
    raise GpuConstructsError(
        "metrics can hold a field by its name alone only where this library knows its type; "
        f"got {field!r}{near}; pass Metric(field=..., prometheus_type=..., help=...)"
    )


def needs_profiling(metrics: Sequence[Metric]) -> bool:
    """Check whether a metric comes from DCGM's profiling module, for which the exporter needs SYS_ADMIN."""
    return any(metric.field.startswith("DCGM_FI_PROF_") for metric in metrics)


def check_metrics(metrics: Sequence[Metric]) -> None:
    """Raise for a list that publishes nothing, or one metric twice (from 4.8.3 on that fails every scrape).

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
    """Return the CSV that the exporter's ``-f`` flag reads: groups under a comment, one line per metric.

    Groups come in a fixed order, metrics within a group in the order given.
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
    """Return the metrics to export, and whether the exporter must be able to profile.

    Args:
        given: A list by its name, metrics or fields, or a list of the user's own.
        release: Exporter release.
        gpu_models: Names of the GPUs, if they are known.
        known_as: Release as errors name it.

    Raises:
        GpuConstructsError: Profiling metrics for GPUs without any, or as of ``exported_metrics``.
    """
    can_profile = not gpu_models or _can_profile(gpu_models)
    if isinstance(given, MetricsConfigMap):
        if given.is_profiled and not can_profile:
            raise GpuConstructsError(
                f"metrics.is_profiled must be False for {', '.join(map(repr, gpu_models))}: GeForce has no profiling "
                "metrics before Blackwell; got True"
            )
        return (), given.is_profiled
    exported = exported_metrics(given, release, known_as=known_as, is_profiled=can_profile or given == "profiling")
    is_profiled = needs_profiling(exported)
    if is_profiled and not can_profile:
        first = next(metric.field for metric in exported if needs_profiling([metric]))
        got = repr(given) if isinstance(given, str) else repr(first)
        raise GpuConstructsError(
            f"metrics must not hold profiling metrics for {', '.join(map(repr, gpu_models))}: GeForce has none before "
            f"Blackwell; got {got}; take metrics='recommended', which leaves them out for such GPUs"
        )
    return exported, is_profiled


def _can_profile(gpu_models: Sequence[str]) -> bool:
    """Check whether a board of these names can be profiled; one that is not known is taken to be."""
    from gpu_constructs.catalog.gpu_models import doubt_of, has_profiling_metrics

    known = {model: has_profiling_metrics(model) for model in gpu_models}
    for model in (model for model, profiles in known.items() if profiles is None):
        near = doubt_of(model)
        if near is not None:
            warn(f"gpu_models: {model!r} is not the name of a known board{near}; it is taken to have profiling")
    return any(profiles is not False for profiles in known.values())
