"""Parts of nvidia_gpu_exporter's objects, and what its options must be."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gpu_constructs import _fields, placement, versions
from gpu_constructs._container_security import POD_SECURITY_CONTEXT, SECURITY_CONTEXT, container_security
from gpu_constructs._labels import object_labels, selector_labels
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.observability.nvidia_smi_fields import Backend
from gpu_constructs.observability.web_config import TLS_DIRECTORY, BasicAuth, Tls

NAME = "nvidia-gpu-exporter"
LONGEST_NAME = 63 - len("-web-config")
DEFAULT_NAMESPACE = "gpu-monitoring"
"""Not the one of the other GPU components, which is privileged: this exporter does without."""

PORT_NAME = "http"
SCRAPE_INTERVAL_SECONDS = 30
"""How often it is scraped where it reads the GPUs on each scrape."""

DEFAULT_RESOURCES: Mapping[str, Mapping[str, str]] = {
    "requests": {"cpu": "50m", "memory": "64Mi"},
    "limits": {"memory": "256Mi"},
}
"""An exporter of some tens of MiB, and one nvidia-smi at a time beside it, which is what needs the CPU. No CPU
limit: a throttled nvidia-smi takes the longer, and readings fail that way."""

WEB_CONFIG_CHECKSUM = "gpu-constructs/web-config-sha256"
"""Annotation of the pod template that rolls the pods when the web configuration changes."""

WEB_CONFIG_DIRECTORY = "/etc/gpu-constructs/web"
USER = 65534
"""Nobody, as the chart's README has it."""

ARCHITECTURE = "kubernetes.io/arch"
# --web.write-timeout: later than that, no answer reaches the scraper.
WRITE_TIMEOUT_SECONDS = 15
RUNS_AT_START = 3
"""Fields, their units and the driver's version are asked for before the exporter listens."""

_CLEAN_PATH = re.compile(r"(/(?!\.{1,2}(?:/|\Z))[^/\s{}%?#]+)+\Z")
_OWN_PATHS = re.compile(r"/-/(healthy|ready)\Z|/debug/pprof(/|\Z)")
_OWN_VARIABLES = ("NVIDIA_DRIVER_CAPABILITIES", "NVIDIA_VISIBLE_DEVICES")


# --- checks ---------------------------------------------------------------------------------------------------


def check_backend(backend: Backend, command: str, *, compute_apps_mig: bool, pcie_throughput: bool) -> None:
    """Refuse options of the other backend, at which the exporter would not start."""
    if backend == "nvml":
        if command != "nvidia-smi":
            raise GpuConstructsError(
                f"nvidia_smi_command must be left out with backend='nvml', which runs no command; got {command!r}"
            )
        return
    if not command.strip():
        raise GpuConstructsError(f"nvidia_smi_command must be a command; got {command!r}; leave it out")
    for keyword, is_on in (("compute_apps_mig", compute_apps_mig), ("pcie_throughput", pcie_throughput)):
        if is_on:
            raise GpuConstructsError(f"{keyword} needs backend='nvml', nvidia-smi does not tell it; got {backend!r}")


def check_times(interval: int, timeout: int) -> None:
    """Refuse a reading that takes longer than an answer may."""
    _fields.whole_number("collect_interval_seconds", interval, minimum=0, maximum=3600)
    _fields.whole_number("collect_timeout_seconds", timeout, minimum=1, maximum=300)
    if not interval and timeout >= WRITE_TIMEOUT_SECONDS:
        raise GpuConstructsError(
            f"collect_timeout_seconds must be below {WRITE_TIMEOUT_SECONDS} while GPUs are read at each scrape, since "
            f"no answer takes longer; got {timeout}; set collect_interval_seconds to read in the background"
        )


def _check_telemetry_path(field: str, path: str) -> None:
    if not _CLEAN_PATH.match(path) or _OWN_PATHS.match(path):
        raise GpuConstructsError(
            f"{field} must be a path like '/metrics', without '/' at its end, '..' or any of '{{}}%?#', and none of "
            f"/-/healthy, /-/ready and /debug/pprof; got {path!r}"
        )


def _check_pod_labels(field: str, labels: Mapping[str, str]) -> None:
    _fields.labels(field, labels)
    own = object_labels(selector_labels(name="", instance="", component=""), version="v")
    for key in labels:
        if key in own:
            raise GpuConstructsError(f"{field} must not hold {key!r}: this library sets it; leave it out")


def _check_pod_annotations(field: str, annotations: Mapping[str, str]) -> None:
    _fields.labels(field, dict.fromkeys(annotations, ""))
    for key in annotations:
        if key.startswith("gpu-constructs/"):
            raise GpuConstructsError(f"{field} must not hold {key!r}: this library sets it; leave it out")


def _check_env(field: str, variables: Mapping[str, object]) -> None:
    for name in variables:
        if name in _OWN_VARIABLES:
            raise GpuConstructsError(f"{field} must not hold {name!r}: this library sets it; leave it out")


def _keys(allowed: Sequence[str]) -> Callable[[str, Mapping[str, Any]], None]:
    def check(field: str, given: Mapping[str, Any]) -> None:
        for key in given:
            _fields.one_of(f"{field} key", key, allowed)

    return check


def _check_secrets(field: str, names: Sequence[str]) -> None:
    for name in names:
        _fields.dns_subdomain(field, name)


CHECKS: Mapping[str, Callable[[str, Any], None]] = {
    "affinity": lambda _, given: placement.check_affinity(given),
    "env": _check_env,
    "image": _fields.image,
    "image_pull_policy": lambda field, given: _fields.one_of(field, given, ("Always", "IfNotPresent", "Never")),
    "image_pull_secrets": _check_secrets,
    "node_selector": _fields.labels,
    "pod_annotations": _check_pod_annotations,
    "pod_labels": _check_pod_labels,
    "pod_security_context": _keys(POD_SECURITY_CONTEXT),
    "priority_class_name": _fields.dns_subdomain,
    "security_context": _keys(SECURITY_CONTEXT),
    "telemetry_path": _check_telemetry_path,
}
"""What each keyword must be, told by its name and its value."""


# --- manifests ------------------------------------------------------------------------------------------------


def pod_image(release: versions.NvidiaGpuExporterRelease, backend: Backend, *, is_verified: bool) -> str:
    """Give the image that has the backend."""
    # Of an unverified release the user says the image, the right one.
    return f"{release.image}-nvml" if backend == "nvml" and is_verified else release.image


def unprivileged() -> dict[str, Any]:
    """Give the security context of a container that holds nothing."""
    return {**container_security(non_root=True), "runAsUser": USER}


def guard_volumes(
    tls: Tls | None, basic_auth: BasicAuth | None, web_config_object: str | None
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Give the mounts of web configuration and certificate, and their volumes."""
    mounted: list[dict[str, Any]] = []
    sources: list[dict[str, Any]] = []
    if web_config_object is not None:
        mounted.append({"name": "web-config", "mountPath": WEB_CONFIG_DIRECTORY, "readOnly": True})
        secret = {"secret": {"secretName": web_config_object, "defaultMode": 0o440}}
        sources.append({"name": "web-config", **(secret if basic_auth else {"configMap": {"name": web_config_object}})})
    if tls is not None:
        mounted.append({"name": "tls", "mountPath": TLS_DIRECTORY, "readOnly": True})
        sources.append({"name": "tls", "secret": {"secretName": tls.secret, "defaultMode": 0o440}})
    return mounted, sources
