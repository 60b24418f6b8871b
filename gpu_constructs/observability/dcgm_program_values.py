"""What NVIDIA's chart tells the DCGM exporter: the metrics that it reads, its arguments and its variables."""

from __future__ import annotations

import csv
import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from gpu_constructs.errors import GpuConstructsError, did_you_mean, warn
from gpu_constructs.kube.env import EnvValue
from gpu_constructs.kube.plain_data import shown
from gpu_constructs.migration.chart import Reading, chart
from gpu_constructs.migration.converters import Converter, variable
from gpu_constructs.migration.programs import Mount, arguments, entries
from gpu_constructs.observability import daemonset as pods
from gpu_constructs.observability.exporter_options import MetricsConfigMap
from gpu_constructs.observability.metrics import Metric, metric_set, needs_profiling, require_known

OLD = ("3.4.2",)
_FILES = "/etc/dcgm-exporter"
_DEFAULT_FILE = f"{_FILES}/default-counters.csv"
_PROFILING_FILE = f"{_FILES}/dcp-metrics-included.csv"
_CHART_FILE = dict.fromkeys(OLD, _PROFILING_FILE)
"""File that the chart's own arguments name, by release, if it is not the default."""
_MAP, _KEY = "exporter-metrics-config-map", "metrics"
CHART_VOLUME: Mapping[str, Any] = {
    "name": "exporter-metrics-volume",
    "configMap": {"name": _MAP, "items": [{"key": _KEY, "path": "default-counters.csv"}]},
}
CHART_MOUNT: Mapping[str, Any] = {
    "name": "exporter-metrics-volume",
    "mountPath": _DEFAULT_FILE,
    "subPath": "default-counters.csv",
}

_Listed = tuple[Metric, ...] | MetricsConfigMap
Said = dict[str, tuple[str, str]]
"""By flag: the key that says it, and its value."""


def chart_metrics(release: str) -> tuple[Metric, ...]:
    """Return the list in the chart's own ConfigMap, which lags behind the image's.

    Source: NVIDIA/dcgm-exporter@3.3.6-3.4.2 and @4.5.3-4.8.2: deployment/templates/metrics-configmap.yaml.
    """
    is_old = release in OLD
    left_out = ("DCGM_FI_DRIVER_VERSION",) if is_old else ("DCGM_FI_DRIVER_VERSION", "DCGM_FI_DEV_FB_RESERVED")
    rates = ("DCGM_FI_PROF_PCIE_TX_BYTES", "DCGM_FI_PROF_PCIE_RX_BYTES")
    counters = rates if is_old else ("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",)
    return tuple(
        replace(metric, prometheus_type="counter") if metric.field in counters else metric
        for metric in metric_set("default", release)
        if metric.field not in left_out
    )


def listed_metrics(
    read: Reading, program: Said, mounts: Sequence[Mount], namespace: str, *, can_profile: bool
) -> tuple[str | list[Metric] | MetricsConfigMap, str]:
    """Return the list that the exporter really reads, and the path of the mount that only serves it.

    Args:
        read: The values.
        program: What the exporter is told, by flag, each with its key.
        mounts: What its container mounts.
        namespace: Namespace of the exporter.
        can_profile: Whether the container may profile.
    """
    listed: _Listed | None
    release, own_mount = read.release, ""
    from_api = program.get("configmap-data", ("", "none"))
    if from_api[1] != "none":
        listed = _from_api(read, *from_api, namespace, can_profile)
    else:
        listed, own_mount = _from_file(read, program, mounts, can_profile)
    custom = read.get("customMetrics")
    if listed is None and custom:
        listed = _custom(read, custom)
    elif custom:
        read.refuse("customMetrics", "is read by nobody: arguments or mounts make the exporter read another list")
    if isinstance(listed, MetricsConfigMap):
        return listed, own_mount
    kept = listed or chart_metrics(release)
    if needs_profiling(kept) and not can_profile:
        warn(
            "profiling metrics are left out: values.securityContext holds no SYS_ADMIN, without which the exporter "
            "of the chart leaves them out too"
        )
        kept = _without_profiling(kept)
        if not any(metric.prometheus_type != "label" for metric in kept):
            read.refuse("customMetrics", "holds only profiling metrics, which need SYS_ADMIN in securityContext")
            kept = _without_profiling(chart_metrics(release))
    return ("default" if kept == metric_set("default", release) else list(kept)), own_mount


def _without_profiling(metrics: Sequence[Metric]) -> tuple[Metric, ...]:
    return tuple(metric for metric in metrics if not needs_profiling([metric]))


def _from_api(read: Reading, path: str, reference: str, namespace: str, can_profile: bool) -> MetricsConfigMap | None:
    """Return the ConfigMap that the exporter reads by itself; None for the chart's own."""
    where, _, name = reference.partition(":")
    if where != namespace:
        read.refuse(path, f"must name a ConfigMap of the exporter's namespace {namespace!r}; got {reference!r}")
    elif name != _MAP:
        return read.attempt(path, partial(MetricsConfigMap, config_map=name, is_profiled=can_profile))
    return None


def _from_file(read: Reading, program: Said, mounts: Sequence[Mount], can_profile: bool) -> tuple[_Listed | None, str]:
    """Return the list in a file of the container, None for the chart's own; and the path of its mount."""
    path, file = program.get("collectors", ("arguments", _DEFAULT_FILE))
    around = [mount for mount in mounts if f"{file}/".startswith(f"{mount.path.rstrip('/')}/")]
    mount = max(around, key=lambda mount: len(mount.path), default=None)
    if mount is None:
        return _of_image(read, path, file), ""
    name, key = _key_of(file, mount)
    if (name, key) == (_MAP, _KEY):
        return None, mount.path
    if not name:
        read.refuse(path, f"must name a file of a ConfigMap that is mounted; got {file!r}")
        return metric_set("default", read.release), ""
    made = read.attempt(path, partial(MetricsConfigMap, config_map=name, key=key, is_profiled=can_profile))
    return made or metric_set("default", read.release), mount.path


def _of_image(read: Reading, path: str, file: str) -> tuple[Metric, ...]:
    listed = metric_set("default", read.release)
    if file not in (_DEFAULT_FILE, _PROFILING_FILE):
        read.refuse(path, f"must name a list of the image or of extraConfigMapVolumes; got {file!r}")
    if file != _DEFAULT_FILE or read.release not in OLD:
        return listed
    throughput = tuple(
        Metric(field=f"DCGM_FI_DEV_PCIE_{way}_THROUGHPUT", prometheus_type="counter", help=f"PCIe traffic {word} in KB")
        for way, word in (("TX", "sent"), ("RX", "received"))
    )
    return (*_without_profiling(listed), *throughput)


def _key_of(file: str, mount: Mount) -> tuple[str, str]:
    """Return the ConfigMap and the key of a file in a mount; empty where it is in none."""
    source = mount.source.get("configMap")
    if source is None or not isinstance(source.get("name"), str):
        return "", ""
    inner = posixpath.join(mount.sub_path, file[len(mount.path.rstrip("/")) + 1 :]).rstrip("/")
    items = [{"key": inner, "path": inner}] if not source.get("items") else source["items"]
    keys = [item.get("key") for item in items if isinstance(item, Mapping) and item.get("path") == inner]
    return (source["name"], str(keys[0])) if keys else ("", "")


def _custom(read: Reading, text: str) -> tuple[Metric, ...]:
    """Return the metrics of a CSV as the exporter reads it, without the lines at which it would end."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    indent = first[: len(first) - len(first.lstrip(" "))]
    found: dict[str, Metric] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        row = line.removeprefix(indent)
        if not row.strip() or row.startswith("#"):
            continue
        metric = read.attempt("customMetrics", partial(_metric_of, row, f"line {number}", read.release))
        if metric is not None and metric.field in found:
            read.refuse("customMetrics", f"has {metric.field} twice, again in line {number}; keep one")
        elif metric is not None:
            found[metric.field] = metric
    if any(metric.prometheus_type != "label" for metric in found.values()):
        return tuple(found.values())
    read.refuse("customMetrics", "holds no metric")
    return ()


def _metric_of(row: str, at: str, release: str) -> Metric:
    try:
        cells = [cell.strip(" ") for cell in next(csv.reader([row], strict=True))]
    except csv.Error:
        raise GpuConstructsError(f"{at} must quote whole fields; got {shown(row.strip())}") from None
    if len(cells) != 3:
        raise GpuConstructsError(f"{at} must hold field, type and help, parted by commas; got {shown(row.strip())}")
    field, kind, text = cells
    try:
        # A comma can stand in quotes, where ours takes none.
        metric = Metric(field=field, prometheus_type=kind, help=text.replace(",", ";").replace('"', "'"))  # type: ignore[arg-type]
        require_known(field, kind, release, known_as=release)
    except GpuConstructsError as error:
        raise GpuConstructsError(f"{at}: {error.problem}") from None
    return metric


_CHART = "dcgm-exporter"

# What we set ourselves, where the user says the same.
_AS_OURS: Mapping[str, Sequence[Any]] = {
    "NODE_NAME": ({"fieldRef": {"fieldPath": "spec.nodeName"}},),
    "NO_SETCAP": ("true",),
    "NVIDIA_DRIVER_CAPABILITIES": ("compute,utility", "utility,compute"),
    "NVIDIA_VISIBLE_DEVICES": ("all",),
}
_BOOLEANS = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}


def program(read: Reading) -> tuple[Said, dict[str, object]]:
    """Return what arguments and variables tell the exporter, and the variables without a keyword."""
    flags = chart(_CHART).flags
    said, env = _variables(read)
    for flag, (path, text) in _arguments(read).items():
        # A flag wins over its variable.
        if {"into", "why_not"} & flags[flag].keys():
            said[flag] = path, text
        else:
            env[flags[flag]["variable"]] = text
    for flag, (path, text) in said.items():
        row = flags[flag]
        value = _BOOLEANS[text] if row.get("switch") else text
        if value and "why_not" in row and value != row.get("neutral"):
            read.refuse(path, row["why_not"])
        elif row.get("switch") and "into" in row:
            read.said[row["into"]] = path, value
        elif "convert" in row:
            made = read.converted(path, row["convert"], row["into"], value)
            if made is not None:
                read.said[row["into"]] = path, made
    return said, env


def _variables(read: Reading) -> tuple[Said, dict[str, object]]:
    flags = chart(_CHART).flags
    by_variable = {row["variable"]: flag for flag, row in flags.items() if {"into", "why_not"} & row.keys()}
    said: Said = {}
    env: dict[str, object] = {}
    for path, entry in entries(read, "extraEnv").items():
        name, value = read.attempt(path, partial(variable, entry)) or ("", "")
        flag = by_variable.get(name)
        if flag is None and name in pods.OWN_VARIABLES:
            _refuse_own(read, path, name, value)
        elif flag is None and name:
            env[name] = value
        elif flag and not isinstance(value, str):
            read.refuse(path, f"must say {name} with a value, which decides more than the variable; got a source")
        # The exporter takes an empty variable for none.
        elif flag and value and read.accepts(path, partial(_check_text, flag, str(value))):
            said[flag] = path, str(value)
    return said, env


def _refuse_own(read: Reading, path: str, name: str, value: str | EnvValue) -> None:
    if (value if isinstance(value, str) else value.value_from) not in _AS_OURS.get(name, ()):
        way_out = pods.OWN_VARIABLES[name]
        set_it = f"set {way_out}" if way_out else "leave it out"
        read.refuse(path, f"must not set {name}, which this library sets; {set_it}")


def _check_text(flag: str, text: str) -> None:
    row = chart(_CHART).flags[flag]
    if row.get("switch") and text and text not in _BOOLEANS:
        raise GpuConstructsError(f"{row['variable']} must be true or false; got {text!r}")


def _arguments(read: Reading) -> Said:
    known = {flag: row for flag, row in chart(_CHART).flags.items() if not (row.get("new") and read.release in OLD)}
    by_short = {row["short"]: flag for flag, row in known.items() if "short" in row}

    def takes_next(spelt: str, word: str) -> bool:
        flag = by_short.get(spelt, spelt)
        return flag in known and not known[flag].get("switch")

    said: Said = {}
    own = ("-f", _CHART_FILE.get(read.release, _DEFAULT_FILE))
    given = read.get("arguments", ()) if "arguments" in read else own
    for path, spelt, text in arguments(read, "arguments", given, takes_next):
        flag = by_short.get(spelt, spelt)
        row = known.get(flag)
        if row is None:
            read.refuse(path, f"is not a flag of the exporter, which would end at once{did_you_mean(spelt, [*known])}")
            continue
        value = "true" if text is None and row.get("switch") else text
        if not value:
            read.refuse(path, "must have a value: the exporter would end at once")
        elif read.accepts(path, partial(_check_text, flag, value)):
            earlier = said.get(flag, ("", ""))[1] if row.get("list") else ""
            said[flag] = path, f"{earlier},{value}".strip(",")
    return said


def _hostengine(field: str, address: str) -> str:
    if ":" not in address or address.endswith("]"):
        # The port that DCGM itself takes where none is said.
        address = f"{address}:5555"
    pods.check_address(field, address)
    return address


def _milliseconds(field: str, text: str) -> int:
    if not text.isdecimal() or int(text) % 1000 or not 1000 <= int(text) <= 3_600_000:
        raise GpuConstructsError(f"it must be milliseconds that make whole seconds, 1000 to 3600000; got {text!r}")
    return int(text) // 1000


CONVERTERS: Mapping[str, Converter] = {
    "hostengine": _hostengine,
    "hours": lambda field, text: int(text) if text.isdecimal() else None,
    "milliseconds": _milliseconds,
}
"""Converters of the rows of flags."""
