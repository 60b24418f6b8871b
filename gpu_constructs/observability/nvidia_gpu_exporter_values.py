"""Conversion of Helm values of nvidia_gpu_exporter into keyword arguments of ``NvidiaGpuExporter``.

This module converts the values that need Python code. The table ``migration/charts/nvidia-gpu-exporter.yaml`` describes
the conversion of all other values.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from gpu_constructs.catalog import versions
from gpu_constructs.kube import fields
from gpu_constructs.kube.env import EnvValue
from gpu_constructs.migration.chart import Reading, chart
from gpu_constructs.migration.converters import checked, relabelings, variable
from gpu_constructs.migration.problems import Installation, Problems, reported_at_once
from gpu_constructs.migration.programs import arguments, entries, mounts_of, taken_over
from gpu_constructs.observability.exporter_options import ExporterService
from gpu_constructs.observability.nvidia_gpu_exporter_pod import (
    LONGEST_NAME,
    NAME,
    NVIDIA_GPU_EXPORTER,
    SCRAPE_INTERVAL_SECONDS,
    check_collection,
    check_telemetry_path,
    pod_image,
)
from gpu_constructs.observability.nvidia_smi_fields import AUTO, Backend, exported_metrics
from gpu_constructs.observability.scrape import Relabeling, Scrape, ScrapeKind

_SCRAPE_TIMEOUT_SECONDS = 10
_OS = {"kubernetes.io/os": "linux"}
_BACKENDS: Mapping[str, Backend] = {"exec": "nvidia-smi", "nvml": "nvml"}


@reported_at_once
def exporter_options(values: Mapping[str, Any], installation: Installation, problems: Problems) -> dict[str, Any]:
    """Return the keyword arguments of ``NvidiaGpuExporter`` that have the same effect as the Helm values.

    Args:
        values: Helm values of the user.
        installation: Name and namespace of the Helm release, and release of the exporter.
        problems: Empty list to which the function adds the problems of the values. ``reported_at_once`` passes it.

    Raises:
        GpuConstructsError: The function adds a problem, such as a misspelled key, or a value that the chart, the
            exporter or this library would reject.
    """
    release = versions.release_of(versions.NVIDIA_GPU_EXPORTER, installation.version, "nvidia_gpu_exporter")
    read = Reading(
        chart(NAME),
        values,
        release=installation.behaves_like,
        strict=problems,
        converters={"backend": _backend, "telemetry path": checked(check_telemetry_path)},
        each={"relabelings": relabelings(Relabeling), "variables": _variable},
    )
    collection = _collection(read)
    backend = collection["backend"]
    scrape = _scrape(read, collection.get("collect_interval_seconds") or SCRAPE_INTERVAL_SECONDS)
    given = mounts_of(read, entries(read, "volumes"), entries(read, "volumeMounts"))
    options = {
        "dashboard": False,
        "node_selector": _OS,
        **read.options(),
        **collection,
        "name": read.name(installation.release_name, NAME, LONGEST_NAME, fields.dns_label),
        "instance": installation.release_name,
        "namespace": installation.namespace,
        "query_field_names": _queried(read, backend),
        "query_field_names_exclude": _left_out(read, backend),
        "volumes": taken_over(read, *given),
        "service_account": _service_account(read),
        "scrape": scrape,
        "service": _service(read, scrape),
    }
    _check_port(read, options.get("port", 9835))
    image = read.image(release.version)
    if image not in (None, pod_image(release, backend, is_verified=isinstance(installation.version, str))):
        options["image"] = image
    return options


# --- collection -----------------------------------------------------------------------------------------------


def _backend(field: str, text: str) -> Backend:
    fields.one_of(field, text, tuple(_BACKENDS))
    return _BACKENDS[text]


def _read_flags(read: Reading) -> None:
    """Convert the command-line flags in the Helm value ``extraArgs``, and store the resulting keywords in ``read``.

    These keywords override the keywords that result from other Helm values. Add a problem for each flag that the
    library cannot convert.
    """
    known = chart(NAME).flags
    given = arguments(read, "extraArgs", read.get("extraArgs", ()), lambda flag, word: not word.startswith("--"))
    for path, flag, value in given:
        row = known.get(flag if value else flag.removeprefix("no-"), {})
        if row.get("switch") and value is None:
            read.said[f"collection.{row['into']}"] = path, not flag.startswith("no-")
        elif "convert" in row and value is not None:
            made = read.converted(path, row["convert"], flag, value)
            if made is not None:
                read.said[f"collection.{row['into']}"] = path, made
        elif "key" in row:
            read.refuse(
                path,
                f"sets --{flag}, which the chart sets too, so the exporter would exit. Set values.{row['key']} instead",
            )
        else:
            argument = f"contains {f'--{flag}' if value is None else f'--{flag}={value}'!r}"
            read.refuse(
                path, row.get("why_not", f"{argument}, for which there is no keyword. Patch the container's args")
            )


def _collection(read: Reading) -> dict[str, Any]:
    default = "nvml" if read.get("image.tag", "").endswith("-nvml") else "nvidia-smi"
    members = {"backend": ("image.tag", default), "compute_apps": ("computeApps.enabled", _compute_apps(read))}
    members |= {"collect_interval_seconds": ("", None)}  # Before the timeout, whose check reads it.
    members |= {"nvidia_smi_command": ("nvidiaSmiCommand", read.get("nvidiaSmiCommand") or None)}
    _read_flags(read)
    return read.made_of(_collected, {**members, **read.members("collection")})


def _collected(**given: Any) -> dict[str, Any]:
    check_collection(**given)
    return given


def _queried(read: Reading, backend: Backend) -> list[str]:
    # The chart joins the list with commas, so one entry may hold several.
    path = "queryFieldNames"
    names = [name for entry in read.get(path, ()) for name in str(entry).split(",")]
    if AUTO in names and len(names) > 1:
        read.refuse(
            path, f"must be either {AUTO!r} or names, because the exporter does not start with both, got {names!r}"
        )
        return [AUTO]
    known = [name for name in names if read.accepts(path, partial(exported_metrics, backend, [name]))]
    return list(dict.fromkeys(known)) or [AUTO]


def _left_out(read: Reading, backend: Backend) -> list[str]:
    path = "queryFieldNamesExclude"
    patterns = [pattern.strip() for entry in read.get(path, ()) for pattern in str(entry).split(",")]
    return [p for p in patterns if p and read.accepts(path, partial(exported_metrics, backend, exclude=[p]))]


def _compute_apps(read: Reading) -> bool:
    is_on, sees_all = read.get("computeApps.enabled", False), read.get("hostPID", False)
    if is_on and not sees_all:
        read.refuse("computeApps.enabled", "needs hostPID. Without it, the exporter sees only its own process")
    if sees_all and not is_on:
        read.refuse("hostPID", "is necessary only for computeApps.enabled. Leave it out")
    return bool(is_on and sees_all)


# --- pods -----------------------------------------------------------------------------------------------------


def _variable(given: Any) -> tuple[str, str | EnvValue]:
    name, value = variable(given)
    NVIDIA_GPU_EXPORTER.check_variable("variable", name)
    return name, value


def _check_port(read: Reading, port: int) -> None:
    service = read.get("service.port", 9835)
    if service != port and read.get("service.enabled", True):
        read.refuse(
            "service.port",
            f"must be the pods' port, {port}, because the library uses one port for both, got {service!r}",
        )


def _service_account(read: Reading) -> str | None:
    path = "serviceAccount.name"
    name: str | None = read.converted(path, "dns subdomain", path, read.get(path))
    if name and read.get("serviceAccount.create", True):
        why_not = read.keys["serviceAccount.annotations"].why_not.partition(". ")[0]
        read.refuse(path, f"{why_not}. To use one, create it yourself and set serviceAccount.create: false")
        return None
    return name


# --- Service and scrape ---------------------------------------------------------------------------------------


def _service(read: Reading, scrape: Scrape) -> bool | ExporterService:
    if not read.get("service.enabled", True):
        if scrape.kind != "ServiceMonitor":
            return False
        read.refuse("service.enabled", "must be true with serviceMonitor.enabled, which finds pods through the Service")
    return read.struct("service", ExporterService)


def _scrape(read: Reading, collect_interval: int) -> Scrape:
    section = "serviceMonitor" if read.get("serviceMonitor.enabled") else "podMonitor"
    if not read.get(f"{section}.enabled"):
        return Scrape(kind="none")
    if section == "serviceMonitor" and read.get("podMonitor.enabled"):
        read.refuse(
            "podMonitor.enabled",
            "must be false with serviceMonitor.enabled. Otherwise, Prometheus scrapes every GPU twice",
        )
    members = read.members("scrape", under=f"{section}.")
    if f"{section}.interval" not in read:
        members["interval_seconds"] = f"{section}.interval", 15
    interval = members.get("interval_seconds", ("", None))[1]
    path, timeout = members.get("scrape_timeout_seconds", (f"{section}.scrapeTimeout", None))
    if timeout and interval is None and timeout > collect_interval:
        read.refuse(path, f"must be at most {collect_interval}s, the default interval, got {timeout}s")
        timeout = None
    members["scrape_timeout_seconds"] = path, timeout or min(_SCRAPE_TIMEOUT_SECONDS, interval or collect_interval)
    kind: ScrapeKind = "ServiceMonitor" if section == "serviceMonitor" else "PodMonitor"
    return read.made_of(partial(Scrape, kind=kind, honor_labels=False), members)
