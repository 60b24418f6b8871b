"""Conversion of Helm values of the DCGM exporter into keyword arguments of ``DcgmExporter``.

This module converts the list of metrics, the command-line arguments and the environment variables.
"""

from __future__ import annotations

import csv
import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from gpu_constructs.catalog.versions import DCGM_EXPORTER, ExporterRelease
from gpu_constructs.errors import GpuConstructsError, did_you_mean, then, warn
from gpu_constructs.kube.env import EnvValue
from gpu_constructs.kube.plain_data import shown
from gpu_constructs.migration.chart import Reading, chart
from gpu_constructs.migration.converters import Converter, variable
from gpu_constructs.migration.programs import Mount, arguments, entries
from gpu_constructs.observability import daemonset as pods
from gpu_constructs.observability.exporter_options import MetricsConfigMap
from gpu_constructs.observability.metrics import Metric, metric_set, needs_profiling, require_known

_FILES = "/etc/dcgm-exporter"
_DEFAULT_FILE = f"{_FILES}/default-counters.csv"
_PROFILING_FILE = f"{_FILES}/dcp-metrics-included.csv"
CHART_MAP, _KEY = "exporter-metrics-config-map", "metrics"

_Listed = tuple[Metric, ...] | MetricsConfigMap
FlagValues = dict[str, tuple[str, str]]
"""A dict from each command-line flag of the exporter to a pair: the Helm key that sets the flag, and its value."""


def of_chart(read: Reading) -> ExporterRelease:
    """Return the properties of the DCGM exporter release that the Helm chart installs."""
    return DCGM_EXPORTER[read.release]


def chart_list(read: Reading) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the pod volume and the volume mount that the Helm chart creates for its list of metrics."""
    name, file = "exporter-metrics-volume", of_chart(read).chart_file
    return (
        {"name": name, "configMap": {"name": CHART_MAP, "items": [{"key": _KEY, "path": file}]}},
        {"name": name, "mountPath": f"{_FILES}/{file}", "subPath": file},
    )


def chart_metrics(release: str) -> tuple[Metric, ...]:
    """Return the metrics in the ConfigMap that the Helm chart of a release creates.

    The ConfigMap contains an older list of metrics than the image of the exporter.

    Source: NVIDIA/dcgm-exporter@3.3.6-3.4.2 to @4.5.3-4.8.2: deployment/templates/metrics-configmap.yaml.
    """
    facts = DCGM_EXPORTER[release]
    return tuple(
        replace(metric, prometheus_type="counter") if metric.field in facts.chart_list_counts else metric
        for metric in metric_set("default", release)
        if metric.field not in facts.chart_list_lacks
    )


def listed_metrics(
    read: Reading, program: FlagValues, mounts: Sequence[Mount], namespace: str, *, can_profile: bool
) -> tuple[str | list[Metric] | MetricsConfigMap, str]:
    """Return a pair: the metrics that the exporter exports, and the path of the mount with the file that lists them.

    The metrics have the form of the keyword ``metrics`` of ``DcgmExporter``. The path is empty if the exporter does not
    read a mounted file.

    Args:
        read: Helm values.
        program: A dict from each flag of the exporter to a pair: the Helm key that sets the flag, and its value.
        mounts: Mounts of the container.
        namespace: Namespace of the exporter.
        can_profile: Whether the container has the rights that the profiling module needs.
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
        read.refuse(
            "customMetrics",
            "has no effect, because arguments or mounts make the exporter read another list. Leave it out",
        )
    if isinstance(listed, MetricsConfigMap):
        return listed, own_mount
    kept = listed or chart_metrics(release)
    if needs_profiling(kept) and not can_profile:
        warn(
            "the converted exporter omits profiling metrics, because values.securityContext does not contain "
            "SYS_ADMIN. The exporter of the chart omits them too"
        )
        kept = _without_profiling(kept)
        if not any(metric.prometheus_type != "label" for metric in kept):
            read.refuse("customMetrics", "contains only profiling metrics, which need SYS_ADMIN in securityContext")
            kept = _without_profiling(chart_metrics(release))
    return ("default" if kept == metric_set("default", release) else list(kept)), own_mount


def _without_profiling(metrics: Sequence[Metric]) -> tuple[Metric, ...]:
    return tuple(metric for metric in metrics if not needs_profiling([metric]))


def _from_api(read: Reading, path: str, reference: str, namespace: str, can_profile: bool) -> MetricsConfigMap | None:
    """Return the ConfigMap from which the exporter reads its list of metrics through the API server.

    Return None if the Helm chart creates this ConfigMap, or if the exporter cannot read it.

    Args:
        read: Helm values.
        path: Helm key that sets ``reference``, for messages.
        reference: The ConfigMap as the exporter's flag names it: ``<namespace>:<name>``.
        namespace: Namespace of the exporter.
        can_profile: Whether the container has the rights that the profiling module needs.
    """
    where, _, name = reference.partition(":")
    if where != namespace:
        read.refuse(path, f"must name a ConfigMap of the exporter's namespace {namespace!r}, got {reference!r}")
    elif name != CHART_MAP:
        return read.attempt(path, partial(MetricsConfigMap, config_map=name, is_profiled=can_profile))
    return None


def _from_file(
    read: Reading, program: FlagValues, mounts: Sequence[Mount], can_profile: bool
) -> tuple[_Listed | None, str]:
    """Return a pair: the list of metrics in the file that the exporter reads, and the mount path of this file.

    The list is None if the Helm chart creates the file. The mount path is empty if the file is part of the image.

    Args:
        read: Helm values.
        program: Values of the exporter's command-line flags, one of which is the path of the file.
        mounts: Mounts of the container.
        can_profile: Whether the container has the rights that the profiling module needs.
    """
    path, file = program.get("collectors", ("arguments", _DEFAULT_FILE))
    around = [mount for mount in mounts if f"{file}/".startswith(f"{mount.path.rstrip('/')}/")]
    mount = max(around, key=lambda mount: len(mount.path), default=None)
    if mount is None:
        return _of_image(read, path, file), ""
    name, key = _key_of(file, mount)
    if (name, key) == (CHART_MAP, _KEY):
        return None, mount.path
    if not name:
        read.refuse(path, f"must name a file of a mounted ConfigMap, got {file!r}")
        return metric_set("default", read.release), ""
    made = read.attempt(path, partial(MetricsConfigMap, config_map=name, key=key, is_profiled=can_profile))
    return made or metric_set("default", read.release), mount.path


def _of_image(read: Reading, path: str, file: str) -> tuple[Metric, ...]:
    listed = metric_set("default", read.release)
    if file not in (_DEFAULT_FILE, _PROFILING_FILE):
        read.refuse(path, f"must be a metrics file of the image or of extraConfigMapVolumes, got {file!r}")
    if file != _DEFAULT_FILE or of_chart(read).chart_file == file.rpartition("/")[2]:
        return listed
    field = of_chart(read).default_file_pcie
    throughput = tuple(
        Metric(field=field.format(way), prometheus_type="counter", help=f"PCIe traffic {word}")
        for way, word in (("TX", "sent"), ("RX", "received"))
    )
    return (*_without_profiling(listed), *throughput)


def _key_of(file: str, mount: Mount) -> tuple[str, str]:
    """Return the name of the ConfigMap that contains a mounted file, and the key of the file in this ConfigMap.

    Return empty texts if the file does not come from a ConfigMap.
    """
    source = mount.source.get("configMap")
    if source is None or not isinstance(source.get("name"), str):
        return "", ""
    inner = posixpath.join(mount.sub_path, file[len(mount.path.rstrip("/")) + 1 :]).rstrip("/")
    items = [{"key": inner, "path": inner}] if not source.get("items") else source["items"]
    keys = [item.get("key") for item in items if isinstance(item, Mapping) and item.get("path") == inner]
    return (source["name"], str(keys[0])) if keys else ("", "")


def _custom(read: Reading, text: str) -> tuple[Metric, ...]:
    """Return the metrics in the Helm value ``customMetrics``, a CSV text, as the exporter reads them.

    The result omits lines that make the exporter exit. The function adds a problem for each omitted line.
    """
    first = next((line for line in text.splitlines() if line.strip()), "")
    indent = first[: len(first) - len(first.lstrip(" "))]
    found: dict[str, Metric] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        row = line.removeprefix(indent)
        if not row.strip() or row.startswith("#"):
            continue
        metric = read.attempt("customMetrics", partial(_metric_of, row, f"line {number}", read.release))
        if metric is not None and metric.field in found:
            read.refuse("customMetrics", f"has {metric.field} twice, again in line {number}. Keep one")
        elif metric is not None:
            found[metric.field] = metric
    if any(metric.prometheus_type != "label" for metric in found.values()):
        return tuple(found.values())
    read.refuse("customMetrics", "contains no metric")
    return ()


def _metric_of(row: str, at: str, release: str) -> Metric:
    try:
        cells = [cell.strip(" ") for cell in next(csv.reader([row], strict=True))]
    except csv.Error:
        raise GpuConstructsError(f"{at} must have quotes only around whole fields, got {shown(row.strip())}") from None
    if len(cells) != 3:
        raise GpuConstructsError(
            f"{at} must contain field, type and help, separated by commas, got {shown(row.strip())}"
        )
    field, kind, text = cells
    try:
        # A quoted cell can contain a comma, which ``Metric`` does not allow.
        metric = Metric(field=field, prometheus_type=kind, help=text.replace(",", ";").replace('"', "'"))  # type: ignore[arg-type]
        require_known(field, kind, release, known_as=release)
    except GpuConstructsError as error:
        raise GpuConstructsError(f"{at}: {error.problem}") from None
    return metric


_CHART = "dcgm-exporter"

# Values that this library sets itself. A user may set the same.
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


def program(read: Reading) -> tuple[FlagValues, dict[str, object]]:
    """Return a pair: the values of the exporter's flags, and the value of the keyword ``env`` of ``DcgmExporter``.

    The flag values come from the arguments and the environment variables of the container. The dict of flag values
    contains a pair for each flag: the Helm key that sets the flag, and its value.
    """
    flags = chart(_CHART).flags
    flag_values, env = _variables(read)
    for flag, (path, text) in _arguments(read).items():
        # A flag takes precedence over its variable.
        if {"into", "why_not"} & flags[flag].keys():
            flag_values[flag] = path, text
        else:
            env[flags[flag]["variable"]] = text
    for flag, (path, text) in flag_values.items():
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
    return flag_values, env


def _variables(read: Reading) -> tuple[FlagValues, dict[str, object]]:
    flags = chart(_CHART).flags
    by_variable = {row["variable"]: flag for flag, row in flags.items() if {"into", "why_not"} & row.keys()}
    flag_values: FlagValues = {}
    env: dict[str, object] = {}
    for path, entry in entries(read, "extraEnv").items():
        name, value = read.attempt(path, partial(variable, entry)) or ("", "")
        flag = by_variable.get(name)
        if flag is None and name in pods.OWN_VARIABLES:
            _refuse_own(read, path, name, value)
        elif flag is None and name:
            env[name] = value
        elif flag and not isinstance(value, str):
            read.refuse(path, f"must set {name} to text, because other settings depend on it, got valueFrom")
        # The exporter ignores an empty variable.
        elif flag and value and read.accepts(path, partial(_check_text, flag, str(value))):
            flag_values[flag] = path, str(value)
    return flag_values, env


def _refuse_own(read: Reading, path: str, name: str, value: str | EnvValue) -> None:
    if (value if isinstance(value, str) else value.value_from) not in _AS_OURS.get(name, ()):
        way_out = pods.OWN_VARIABLES[name]
        set_it = f"set {way_out}" if way_out else "leave it out"
        read.refuse(path, f"must not set {name}, which this library sets{then(set_it)}")


def _check_text(flag: str, text: str) -> None:
    row = chart(_CHART).flags[flag]
    if row.get("switch") and text and text not in _BOOLEANS:
        raise GpuConstructsError(f"{row['variable']} must be true or false, got {text!r}")


def _arguments(read: Reading) -> FlagValues:
    rows = chart(_CHART).flags.items()
    known = {flag: row for flag, row in rows if read.release in (row["releases"] or (read.release,))}
    by_short = {row["short"]: flag for flag, row in known.items() if "short" in row}

    def takes_next(spelt: str, word: str) -> bool:
        flag = by_short.get(spelt, spelt)
        return flag in known and not known[flag].get("switch")

    flag_values: FlagValues = {}
    own = ("-f", f"{_FILES}/{of_chart(read).chart_file}")
    given = read.get("arguments", ()) if "arguments" in read else own
    for path, spelt, text in arguments(read, "arguments", given, takes_next):
        flag = by_short.get(spelt, spelt)
        row = known.get(flag)
        if row is None:
            read.refuse(
                path, f"is not a flag of the exporter, so the exporter would exit{did_you_mean(spelt, [*known])}"
            )
            continue
        value = "true" if text is None and row.get("switch") else text
        if not value:
            read.refuse(path, "must have a value, because the exporter exits without one")
        elif read.accepts(path, partial(_check_text, flag, value)):
            earlier = flag_values.get(flag, ("", ""))[1] if row.get("list") else ""
            flag_values[flag] = path, f"{earlier},{value}".strip(",")
    return flag_values


def _hostengine(field: str, address: str) -> str:
    if ":" not in address or address.endswith("]"):
        # The default port of DCGM.
        address = f"{address}:5555"
    pods.check_address(field, address)
    return address


def _milliseconds(field: str, text: str) -> int:
    if not text.isdecimal() or int(text) % 1000 or not 1000 <= int(text) <= 3_600_000:
        raise GpuConstructsError(f"it must be milliseconds, in whole thousands from 1000 to 3600000, got {text!r}")
    return int(text) // 1000


CONVERTERS: Mapping[str, Converter] = {
    "hostengine": _hostengine,
    "hours": lambda field, text: int(text) if text.isdecimal() else None,
    "milliseconds": _milliseconds,
}
"""Functions that convert values of the exporter's flags, by the name in the column ``convert`` of the chart's table."""
