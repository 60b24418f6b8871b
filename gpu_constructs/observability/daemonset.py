"""The manifests of the DCGM exporter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpu_constructs.catalog import versions
from gpu_constructs.catalog.versions import comparable
from gpu_constructs.errors import GpuConstructsError, refuse_if, warn
from gpu_constructs.kube import env, fields, rbac
from gpu_constructs.kube.config_map import config_map, sha256
from gpu_constructs.kube.container_security import Rights
from gpu_constructs.kube.pods import Pods
from gpu_constructs.kube.resources import Resources, container_resources
from gpu_constructs.observability import metrics as catalogue
from gpu_constructs.observability.exporter import Exporter, Manifests, Program, daemonset, found_by, probes
from gpu_constructs.observability.exporter_options import DebugDump, MetricsConfigMap
from gpu_constructs.observability.gpu_series import GpuSeries, dcgm_series
from gpu_constructs.observability.metrics import Metric
from gpu_constructs.observability.pod_mapping import POD_RESOURCES, PodMapping
from gpu_constructs.observability.web_config import Volumes
from gpu_constructs.records import dataclass, regex

METRICS_KEY = "metrics.csv"
"""Key of the ConfigMap whose value is the CSV with the list of metrics."""

METRICS_CHECKSUM = "gpu-constructs/metrics-sha256"
"""Annotation of the pods with a checksum of the CSV. If the CSV changes, Kubernetes therefore replaces the pods."""

DEFAULT_RESOURCES: Resources = {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "1Gi"}}
"""Default requests and limits. With pod mapping the exporter uses 400 to 500 MiB, and more on nodes with eight GPUs.

A memory limit of 512Mi is too low (dcgm-exporter#609, #702). There is no CPU limit, because the kubelet would kill
healthy pods whose probes answer late.
"""

_METRICS_DIRECTORY = "/etc/gpu-constructs/metrics"
_DUMPS = "/dcgm-exporter-debug"
_SINCE = {"tls": "4.0.0", "basic_auth": "4.0.0", "debug_dump": "4.2.0"}
"""First release of the exporter that supports each option."""

OWN_VARIABLES: Mapping[str, str] = {
    "DCGM_EXPORTER_COLLECTORS": "metrics",
    "DCGM_EXPORTER_CONFIGMAP_DATA": "metrics",
    "DCGM_EXPORTER_INTERVAL": "collect_interval_seconds",
    "DCGM_EXPORTER_KUBERNETES": "pod_mapping",
    "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_LABELS": "pod_mapping=PodMapping(enable_pod_labels=...)",
    "DCGM_EXPORTER_KUBERNETES_ENABLE_POD_UID": "pod_mapping=PodMapping(enable_pod_uid=...)",
    "DCGM_EXPORTER_KUBERNETES_GPU_ID_TYPE": "pod_mapping=PodMapping(gpu_id_type=...)",
    "DCGM_EXPORTER_KUBERNETES_POD_LABEL_ALLOWLIST_REGEX": "pod_mapping=PodMapping(pod_label_allowlist_regex=...)",
    "DCGM_EXPORTER_LISTEN": "port",
    "DCGM_EXPORTER_WEB_CONFIG_FILE": "tls or basic_auth",
    "DCGM_POD_RESOURCES_KUBELET_SOCKET": "pod_mapping=PodMapping(kubelet_path=...)",
    "DCGM_REMOTE_HOSTENGINE_INFO": "remote_hostengine",
    "GOMEMLIMIT": "resources",
    "KUBERNETES_ENABLE_DRA": "pod_mapping=PodMapping(enable_dra=...)",
    "KUBERNETES_VIRTUAL_GPUS": "sharing, or pod_mapping=PodMapping(virtual_gpus=...)",
    "NODE_NAME": "",
    "NO_SETCAP": "",
    "NVIDIA_DRIVER_CAPABILITIES": "",
    "NVIDIA_RESOURCE_NAMES": "sharing, or pod_mapping=PodMapping(nvidia_resource_names=...)",
    "NVIDIA_VISIBLE_DEVICES": "",
    **{f"DCGM_EXPORTER_DUMP_{word}": "debug_dump" for word in ("COMPRESSION", "DIRECTORY", "ENABLED", "RETENTION")},
    # These variables rename the labels of every series. Dashboards and alerts need the original labels.
    "DCGM_EXPORTER_USE_OLD_NAMESPACE": "nothing",
    "DCGM_EXPORTER_NO_HOSTNAME": "nothing",
}
"""Variables that users must not set, each with the keyword to set instead. An empty text: there is no keyword."""

_ADDRESS = regex(
    r"(\[[0-9A-Fa-f:.]+\]|\$\([A-Za-z_][A-Za-z0-9_]*\)|[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?):[0-9]{1,5}\Z"
)

DCGM_EXPORTER = Program(
    name="dcgm-exporter",
    port=9400,
    port_name="metrics",
    resources=DEFAULT_RESOURCES,
    user=1000,
    variables=OWN_VARIABLES,
)


@dataclass(frozen=True, kw_only=True)
class DcgmSettings:
    """Settings that the DCGM exporter has and nvidia_gpu_exporter does not.

    Attributes:
        release: Release of the exporter, which decides the supported options.
        metrics: Metrics that the exporter exports. Empty if the list of metrics is in a ConfigMap of the user.
        config_map: ConfigMap with the user's own list of metrics. None if the user has no ConfigMap.
        is_profiled: Whether the pods use DCGM's profiling module, which needs the capability SYS_ADMIN.
        mapping: Options for the labels that name the pod of each GPU. None if the series have no such labels.
        remote_hostengine: ``host:port`` of a hostengine (a DCGM server) that reads the GPUs. None if the exporter reads
            them itself.
        debug_dump: Options of the files for a bug report. None if the exporter writes no such files.
    """

    release: str
    metrics: tuple[Metric, ...]
    config_map: MetricsConfigMap | None
    is_profiled: bool
    mapping: PodMapping | None
    remote_hostengine: str | None
    debug_dump: DebugDump | None

    @property
    def rules(self) -> list[dict[str, list[str]]]:
        """RBAC rules that let the exporter read objects from the API server; empty if it needs none."""
        return self.mapping.rules() if self.mapping else []

    @property
    def writable_root(self) -> bool:
        """Whether the exporter needs a writable root file system. If not, the exporter writes only to /tmp."""
        return versions.DCGM_EXPORTER[self.release].writes_to_image


def exporter_rights(*, is_profiled: bool) -> Rights:
    """Return the Linux capabilities that the container needs: SYS_ADMIN for DCGM's profiling module, otherwise none."""
    return Rights(add=("SYS_ADMIN",)) if is_profiled else Rights()


def check_address(field: str, given: str) -> None:
    """Raise an error unless ``given`` has the form ``host:port``, as the address of a hostengine (a DCGM server).

    ``field`` is the name of the option, for the message.
    """
    refuse_if(not _ADDRESS.match(given), field, "be 'host:port'", given)
    fields.port_number(f"port of {field}", int(given.rpartition(":")[2]))


def check(exporter: Exporter, settings: DcgmSettings) -> None:
    """Raise an error if the options of a DCGM exporter contradict each other or its release.

    Raises:
        GpuConstructsError: If the release does not support an option, two options exclude each other, or
            ``security_context`` removes a capability that the pods need.
    """
    given = {"debug_dump": settings.debug_dump, **exporter.options}
    for option, since in _SINCE.items():
        if given.get(option) is not None and comparable(settings.release) < comparable(since):
            raise GpuConstructsError(
                f"{option} needs version {since!r} or later of the DCGM exporter, got {exporter.version!r}. "
                f"Use a later version, or leave {option} out"
            )
    if exporter.options.get("host_network") and exporter.port < 1024:
        raise GpuConstructsError(
            "port must be at least 1024 with host_network=True, because the exporter has no right to bind lower ports, "
            f"got {exporter.port}"
        )
    if settings.config_map and exporter.options.get("dashboard", True):
        raise GpuConstructsError(
            "dashboard must be False with metrics=MetricsConfigMap(...), whose metrics the library does not know, got "
            "True. Pass dashboard=False"
        )
    if exporter.options.get("security_context") is not None:
        _check_rights(exporter.options["security_context"], settings)


def _check_rights(context: Mapping[str, Any], settings: DcgmSettings) -> None:
    capabilities = Mapping[str, Sequence[str] | None] | None
    fields.of_type("security_context['capabilities']", context.get("capabilities"), capabilities)
    needed = exporter_rights(is_profiled=settings.is_profiled)
    if not needed.are_in(context):
        raise GpuConstructsError(
            f"security_context must contain {needed} for profiling metrics, got {dict(context)!r}. Remove "
            "security_context, or remove the profiling metrics"
        )
    is_root = context.get("runAsUser") in (None, 0) and not context.get("runAsNonRoot")
    lost = [
        *(["access to the kubelet's socket, by which the exporter finds pods"] if settings.mapping else []),
        *(["SYS_ADMIN"] if settings.is_profiled else []),
    ]
    if lost and not is_root:
        warn(
            f"security_context must run the exporter as root for {' and '.join(lost)}, got {dict(context)!r}. Remove "
            "runAsUser and runAsNonRoot"
        )


def series_of(exporter: Exporter, settings: DcgmSettings) -> GpuSeries:
    """Return the series that alerts and dashboards can query from this exporter."""
    mapping, scrape = settings.mapping, exporter.scrape
    hides_node = settings.remote_hostengine and mapping is None
    names_pods = mapping is not None and scrape.kind != "annotations" and scrape.honor_labels
    return dcgm_series(
        job=exporter.job,
        metrics=[metric.field for metric in settings.metrics if metric.prometheus_type != "label"],
        # If the exporter does not map pods, the label contains the name of the remote hostengine and not of the node.
        hostname_label="node" if hides_node else catalogue.hostname_label(settings.release),
        pods="none" if not names_pods else "all" if mapping and mapping.virtual_gpus else "one",
        scrape_interval_seconds=exporter.scrape_seconds,
    )


def dcgm_manifests(exporter: Exporter, settings: DcgmSettings, pods: Pods) -> Manifests:
    """Return the objects of the exporter, by construct ID.

    The pods request no GPU. They read the GPUs through libraries of the NVIDIA driver, which the NVIDIA runtime mounts.
    The kubelet reports which pod uses which GPU. The exporter uses the API server only for labels and UIDs of pods, and
    for resource claims.

    Source: NVIDIA/dcgm-exporter@4.5.3-4.8.2:deployment/templates/daemonset.yaml, docker/Dockerfile,
    pkg/cmd/app.go; @3.3.6-3.4.2:docker/dcgm-exporter-entrypoint.sh.
    """
    metadata, rules, account = exporter.metadata, settings.rules, exporter.service_account
    manifests: Manifests = {}
    checksums = {}
    if settings.config_map is None:
        csv = catalogue.counters_csv(settings.metrics)
        checksums[METRICS_CHECKSUM] = sha256(csv)
        manifests["metrics"] = config_map({**metadata, "name": f"{exporter.name}-metrics"}, {METRICS_KEY: csv})
    manifests |= exporter.guard.manifests(metadata)
    if rules:
        manifests |= rbac.service_account(metadata) if account is None else {}
        manifests |= rbac.cluster_role(metadata, rules, account=account or exporter.name)
        account = account or exporter.name
    manifests["Default"] = _daemonset(exporter, settings, pods, checksums, account)
    return {**manifests, **found_by(exporter)}


def _daemonset(
    exporter: Exporter, settings: DcgmSettings, pods: Pods, checksums: Mapping[str, str], account: str | None
) -> dict[str, Any]:
    mapping, is_profiled = settings.mapping, settings.is_profiled
    # The socket of the kubelet belongs to root. Linux also passes an added capability only to root.
    needs_root = mapping is not None or is_profiled or settings.writable_root
    uid = 0 if needs_root else exporter.program.user
    container = {
        "name": "exporter",
        "args": _arguments(settings),
        "env": sorted(_environment(exporter, settings), key=lambda variable: str(variable["name"])),
        # 3.x answers 503 until its first reading, one interval after its start.
        **probes(exporter, "/health", "/health", 12 + 2 * exporter.interval_seconds // 5),
        # Without the prefix CAP_: the API server rejects CAP_SYS_ADMIN with allowPrivilegeEscalation false.
        "securityContext": {
            **exporter_rights(is_profiled=is_profiled).to_manifest(read_only=not settings.writable_root),
            "runAsNonRoot": not needs_root,
            "runAsUser": uid,
        },
    }
    return daemonset(
        exporter,
        pods,
        container,
        _volumes(exporter, settings),
        checksums,
        service_account=account,
        # The files of a Secret belong to root. A group lets other users read them.
        security_context={} if needs_root else {"fsGroup": uid},
        automountServiceAccountToken=bool(settings.rules),
        hostPID=(mapping is not None and mapping.host_pid) or None,
    )


def _arguments(settings: DcgmSettings) -> list[str]:
    key = settings.config_map.key if settings.config_map else METRICS_KEY
    arguments = ["-f", f"{_METRICS_DIRECTORY}/{key}"]
    if settings.remote_hostengine is not None:
        arguments += ["-r", settings.remote_hostengine]
    dump = settings.debug_dump
    if dump is not None:
        arguments += ["--dump-enabled", f"--dump-directory={_DUMPS}", f"--dump-retention={dump.retention}"]
        arguments.append(f"--dump-compression={str(dump.compression).lower()}")
    return arguments


def _environment(exporter: Exporter, settings: DcgmSettings) -> list[dict[str, Any]]:
    mapping = settings.mapping
    resources = container_resources(exporter.options.get("resources"), default=DEFAULT_RESOURCES)
    memory_limit = resources.get("limits", {}).get("memory")
    variables = {
        "DCGM_EXPORTER_INTERVAL": str(exporter.interval_seconds * 1000),
        "DCGM_EXPORTER_KUBERNETES": str(mapping is not None).lower(),
        "DCGM_EXPORTER_LISTEN": f":{exporter.port}",
        "DCGM_EXPORTER_WEB_CONFIG_FILE": exporter.guard.path,
        # The Go runtime uses at most three quarters of the memory limit. The DCGM library needs the rest.
        "GOMEMLIMIT": None if memory_limit is None else _three_quarters(str(memory_limit)),
        # The entrypoint of 3.x writes SYS_ADMIN to the file capabilities of the exporter, which needs SETFCAP. Root
        # does not need this step, so the variable skips it.
        "NO_SETCAP": "true" if settings.writable_root else None,
        "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
        # The container sees all GPUs of the node but requests none. The image sets the same value. The manifest repeats
        # it for reviewers.
        "NVIDIA_VISIBLE_DEVICES": "all",
        **(mapping.environment() if mapping else {}),
    }
    return [
        *({"name": name, "value": value} for name, value in variables.items() if value is not None),
        {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        *env.environment(exporter.options.get("env") or {}, visible_devices_is_managed=False),
    ]


def _volumes(exporter: Exporter, settings: DcgmSettings) -> Volumes:
    volumes: Volumes = {}
    if settings.mapping is not None:
        volumes["pod-resources"] = (
            {"hostPath": {"path": settings.mapping.kubelet_path, "type": "Directory"}},
            {"mountPath": POD_RESOURCES, "readOnly": True},
        )
    config_map = settings.config_map.config_map if settings.config_map else f"{exporter.name}-metrics"
    # A directory and not a subPath, because the kubelet never updates a file of a subPath mount.
    volumes["metrics"] = ({"configMap": {"name": config_map}}, {"mountPath": _METRICS_DIRECTORY, "readOnly": True})
    volumes |= exporter.guard.volumes(exporter.name)
    if settings.debug_dump is not None:
        volumes["debug-dumps"] = (
            {"emptyDir": {"sizeLimit": settings.debug_dump.size_limit}},
            {"mountPath": _DUMPS},
        )
    if not settings.writable_root:
        volumes["tmp"] = ({"emptyDir": {"sizeLimit": "64Mi"}}, {"mountPath": "/tmp"})
    return volumes


def _three_quarters(memory: str) -> str:
    mebibytes = int(fields.amount(memory) * 3 / 4 / 2**20)
    refuse_if(not mebibytes, "resources['limits']['memory']", "leave the exporter a few MiB of memory", memory)
    return f"{mebibytes}MiB"
