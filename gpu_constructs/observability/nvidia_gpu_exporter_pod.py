"""The manifests of nvidia_gpu_exporter."""

from __future__ import annotations

from collections.abc import Sequence

from gpu_constructs.catalog import versions
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube import env, fields
from gpu_constructs.kube.container_security import container_security
from gpu_constructs.kube.pods import Pods
from gpu_constructs.kube.resources import Resources
from gpu_constructs.observability.exporter import LONGEST_NAME as LONGEST_NAME
from gpu_constructs.observability.exporter import Exporter, Manifests, Program, daemonset, found_by, probes
from gpu_constructs.observability.nvidia_smi_fields import Backend

NAME = "nvidia-gpu-exporter"
DEFAULT_NAMESPACE = "gpu-monitoring"
"""Default namespace. It differs from that of other GPU components, because this exporter needs no privileged pods."""

SCRAPE_INTERVAL_SECONDS = 30
"""Time between two scrapes, in seconds. It applies if the exporter reads the GPUs at each scrape."""

DEFAULT_RESOURCES: Resources = {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}}
"""Default requests and limits. The exporter needs some tens of MiB, and the CPU for one nvidia-smi at a time.

There is no CPU limit, because a throttled nvidia-smi takes longer, so readings would fail.
"""

ARCHITECTURE = "kubernetes.io/arch"
# Time limit for an answer, which is --web.write-timeout of the exporter. The scraper gets no answer after it.
WRITE_TIMEOUT_SECONDS = 15
RUNS_AT_START = 3
"""Number of calls of nvidia-smi before the exporter serves metrics: the fields, their units, and the driver version."""

_CLEAN_PATH = fields.regex(r"(/(?!\.{1,2}(?:/|\Z))[^/\s{}%?#]+)+\Z")
_OWN_PATHS = fields.regex(r"/-/(healthy|ready)\Z|/debug/pprof(/|\Z)")

NVIDIA_GPU_EXPORTER = Program(
    name=NAME,
    port=9835,
    port_name="http",
    resources=DEFAULT_RESOURCES,
    # User of the Helm chart.
    user=65534,
    variables={"NVIDIA_DRIVER_CAPABILITIES": "", "NVIDIA_VISIBLE_DEVICES": ""},
)


def check_collection(
    *,
    backend: Backend = "nvidia-smi",
    nvidia_smi_command: str = "nvidia-smi",
    collect_interval_seconds: int = 0,
    collect_timeout_seconds: int = 10,
    compute_apps: bool = False,
    compute_apps_mig: bool = False,
    pcie_throughput: bool = False,
) -> None:
    """Raise an error if an option is invalid, or if the backend does not support it.

    The parameters are keywords of ``NvidiaGpuExporter``. If the exporter reads the GPUs at each scrape,
    ``collect_timeout_seconds`` must be below 15, because the exporter ends an HTTP response after 15 seconds.
    """
    if backend == "nvml" and nvidia_smi_command != "nvidia-smi":
        raise GpuConstructsError(
            "nvidia_smi_command must be left out with backend='nvml', which runs no command, got "
            f"{nvidia_smi_command!r}"
        )
    if not nvidia_smi_command.strip():
        raise GpuConstructsError(f"nvidia_smi_command must be a command, got {nvidia_smi_command!r}. Leave it out")
    for keyword, is_on in {"compute_apps_mig": compute_apps_mig, "pcie_throughput": pcie_throughput}.items():
        if is_on and backend != "nvml":
            raise GpuConstructsError(
                f"{keyword} needs backend='nvml', because nvidia-smi does not report it, got {backend!r}"
            )
    if compute_apps_mig and not compute_apps:
        raise GpuConstructsError(
            "compute_apps_mig must be False without compute_apps, because it only adds a label to the series of "
            "compute_apps"
        )
    fields.whole_number("collect_interval_seconds", collect_interval_seconds, minimum=0, maximum=3600)
    fields.whole_number("collect_timeout_seconds", collect_timeout_seconds, minimum=1, maximum=300)
    if not collect_interval_seconds and collect_timeout_seconds >= WRITE_TIMEOUT_SECONDS:
        raise GpuConstructsError(
            f"collect_timeout_seconds must be below {WRITE_TIMEOUT_SECONDS} if the exporter reads GPUs at each "
            f"scrape, because it ends an HTTP response after that time, got {collect_timeout_seconds}. Set "
            "collect_interval_seconds to read in the background"
        )


def check_telemetry_path(field: str, path: str) -> None:
    """Raise an error if the exporter cannot serve the metrics at an HTTP path, for example at ``/-/ready``.

    ``field`` is the name of the option, for the message.
    """
    if not _CLEAN_PATH.match(path) or _OWN_PATHS.match(path):
        raise GpuConstructsError(
            f"{field} must be a path like '/metrics', without a trailing '/', '..' or any of '{{}}%?#', and none of "
            f"/-/healthy, /-/ready and /debug/pprof, got {path!r}"
        )


def pod_image(release: versions.ExporterRelease, backend: Backend, *, is_verified: bool) -> str:
    """Return the image of the exporter with a backend.

    Args:
        release: Release of the exporter.
        backend: Program or library with which the exporter reads the GPUs.
        is_verified: Whether the library knows the release. If False, the function returns ``release.image`` unchanged.
    """
    # For an unverified release, the user sets the image.
    return f"{release.image}-nvml" if backend == "nvml" and is_verified else release.image


def arguments(
    exporter: Exporter,
    *,
    backend: Backend,
    nvidia_smi_command: str,
    query_field_names: Sequence[str],
    query_field_names_exclude: Sequence[str],
    collect_interval_seconds: int,
    collect_timeout_seconds: int,
    compute_apps: bool,
    compute_apps_mig: bool,
    pcie_throughput: bool,
    log_level: str,
    log_format: str,
) -> list[str]:
    """Return the command line arguments of the exporter for the keywords of ``NvidiaGpuExporter``.

    Raises:
        GpuConstructsError: If the backend does not support an option, a reading can exceed the HTTP time limit, or the
            exporter cannot serve the metrics at ``exporter.path``.
    """
    check_collection(
        backend=backend,
        nvidia_smi_command=nvidia_smi_command,
        collect_interval_seconds=collect_interval_seconds,
        collect_timeout_seconds=collect_timeout_seconds,
        compute_apps=compute_apps,
        compute_apps_mig=compute_apps_mig,
        pcie_throughput=pcie_throughput,
    )
    check_telemetry_path("telemetry_path", exporter.path)
    flags = {
        "--web.listen-address": f":{exporter.port}",
        "--web.telemetry-path": exporter.path,
        "--nvidia-smi-command": nvidia_smi_command,
        "--query-field-names": ",".join(query_field_names),
        "--query-field-names-exclude": ",".join(query_field_names_exclude) or None,
        "--collect.backend": "nvml" if backend == "nvml" else "exec",
        "--collect.interval": f"{collect_interval_seconds}s" if collect_interval_seconds else None,
        "--collect.timeout": f"{collect_timeout_seconds}s",
        "--log.level": log_level,
        "--log.format": log_format,
        "--web.config.file": exporter.guard.path,
    }
    switches = {
        "--collect.compute-apps": compute_apps,
        "--collect.compute-apps-mig": compute_apps_mig,
        "--collect.pcie-throughput": pcie_throughput,
    }
    return [
        *(word for flag, value in flags.items() if value is not None for word in (flag, value)),
        *(flag for flag, is_on in switches.items() if is_on),
    ]


def smi_manifests(
    exporter: Exporter, pods: Pods, args: Sequence[str], *, collect_timeout_seconds: int, compute_apps: bool
) -> Manifests:
    """Return the objects of the exporter, by construct ID.

    Args:
        exporter: Exporter with the options of the user.
        pods: Pod settings of the exporter.
        args: Command-line arguments of the exporter.
        collect_timeout_seconds: Time limit of a reading of the GPUs, in seconds.
        compute_apps: Whether the exporter reports the processes on a GPU. Its pods then see all processes of the node.
    """
    # At the start, each call of nvidia-smi can take the timeout. It takes two seconds more to kill nvidia-smi.
    failures = 6 + RUNS_AT_START * (collect_timeout_seconds + 2) // 5
    user = exporter.program.user
    container = {
        "name": NAME,
        "args": args,
        "env": [
            # The container sees all GPUs of the node but requests none. It gets only the driver capability for
            # readings.
            {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"},
            {"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "utility"},
            *env.environment(exporter.options.get("env") or {}, visible_devices_is_managed=False),
        ],
        **probes(exporter, "/-/healthy", "/-/ready", failures),
        "securityContext": {**container_security(non_root=True), "runAsUser": user},
    }
    default = daemonset(
        exporter,
        pods,
        container,
        exporter.guard.volumes(exporter.name),
        {},
        service_account=exporter.service_account,
        # The files of a Secret belong to root. A group lets other users read them.
        security_context={"fsGroup": user} if exporter.guard.text else {},
        automountServiceAccountToken=False,
        hostPID=compute_apps or None,
    )
    return {"Default": default, **exporter.guard.manifests(exporter.metadata), **found_by(exporter)}
