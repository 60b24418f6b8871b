"""The DCGM exporter's pod on every GPU node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpu_constructs import _fields
from gpu_constructs._container_security import POD, Rights
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.observability.exporter_options import DebugDump
from gpu_constructs.observability.metrics import release_number
from gpu_constructs.observability.pod_mapping import POD_RESOURCES, PodMapping
from gpu_constructs.observability.user_mounts import beside_own
from gpu_constructs.observability.web_config import TLS_DIRECTORY, WEB_CONFIG_KEY, BasicAuth, Tls, probe

PORT_NAME = "metrics"
"""Name of the port of ``/metrics`` and ``/health``, by which scrape objects find it."""

METRICS_KEY = "metrics.csv"
"""Key of the ConfigMap that holds the CSV."""

METRICS_CHECKSUM = "gpu-constructs/metrics-sha256"
"""Annotation of the pod template that rolls the pods when the CSV changes."""

WEB_CONFIG_CHECKSUM = "gpu-constructs/web-config-sha256"
"""Likewise, when the web configuration changes."""

DEFAULT_RESOURCES: Mapping[str, Mapping[str, str]] = {
    "requests": {"cpu": "100m", "memory": "256Mi"},
    "limits": {"memory": "1Gi"},
}
"""With pod mapping the exporter uses 400 to 500 MiB, more on nodes with eight GPUs; a limit of 512Mi is
known to be too low (dcgm-exporter#609, #702). No CPU limit: throttled probes get healthy pods killed."""

NON_ROOT_USER = 1000
"""The user of a pod that needs no root."""

_METRICS_DIRECTORY = "/etc/gpu-constructs/metrics"
_WEB_CONFIG_DIRECTORY = "/etc/gpu-constructs/web"
_DUMPS = "/dcgm-exporter-debug"

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
    # Renames the labels of every series, away from what dashboards and alerts ask for.
    "DCGM_EXPORTER_USE_OLD_NAMESPACE": "nothing",
    "DCGM_EXPORTER_NO_HOSTNAME": "nothing",
}
"""Variables that have a keyword, or none because this library sets them."""


def exporter_rights(*, is_profiled: bool) -> Rights:
    """Give what the exporter must be allowed: only the profiling module asks for anything."""
    return Rights(add=("SYS_ADMIN",)) if is_profiled else Rights()


def exporter_pod(
    *,
    image: str,
    image_pull_policy: str,
    release: str,
    metrics_config_map: str,
    metrics_key: str,
    is_profiled: bool,
    mapping: PodMapping | None,
    collect_interval_seconds: int,
    port: int,
    resources: Mapping[str, Mapping[str, Any]],
    remote_hostengine: str | None = None,
    tls: Tls | None = None,
    basic_auth: BasicAuth | None = None,
    web_config: str | None = None,
    debug_dump: DebugDump | None = None,
    security_context: Mapping[str, Any] | None = None,
    pod_security_context: Mapping[str, Any] | None = None,
    service_account: str | None = None,
    runtime_class: str | None = None,
    host_network: bool = False,
    placement: Mapping[str, Any] | None = None,
    env: Sequence[Mapping[str, Any]] = (),
    mounts: Sequence[Mapping[str, Any]] = (),
    volumes: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Give the exporter's pod.

    The pod reads the GPUs through the driver's libraries, which the nvidia runtime puts into it, and asks the
    kubelet which pod holds which GPU. It takes no GPU slot, and talks to the API server only where the mapping
    reads pods or claims.

    Args:
        image: Whole image reference.
        image_pull_policy: As Kubernetes writes it.
        release: Exporter release of that image, such as ``4.8.3``.
        metrics_config_map: ConfigMap with the CSV.
        metrics_key: Its key.
        is_profiled: Whether the CSV holds ``DCGM_FI_PROF_*`` metrics; only then the pod gets SYS_ADMIN.
        mapping: How it learns of pods; None for not at all.
        collect_interval_seconds: Seconds between two readings of the GPUs.
        port: It listens on.
        resources: ``requests`` and ``limits``. The Go runtime is told to stay within three quarters of the
            memory limit, the rest is for DCGM itself.
        remote_hostengine: ``host:port`` of a hostengine that reads the GPUs instead.
        tls: Its certificate.
        basic_auth: Its passwords.
        web_config: Name of the object that holds both; a Secret where there are passwords.
        debug_dump: What it keeps for a bug report.
        security_context: Of the container, instead of what the options need.
        pod_security_context: Of the pod, on top of ours.
        service_account: Its ServiceAccount; None takes the namespace's default.
        runtime_class: RuntimeClass that injects the driver's libraries; None where the default runtime does.
        host_network: Whether it runs in the node's network.
        placement: Further fields of the pod: where it runs and how important it is.
        env: Further variables.
        mounts: Further mounts.
        volumes: And their volumes.

    Raises:
        GpuConstructsError: For a release or a memory limit that cannot be read, or a mount where it has its own.

    Source: NVIDIA/dcgm-exporter@4.5.3-4.8.2:deployment/templates/daemonset.yaml, docker/Dockerfile,
    pkg/cmd/app.go; @3.3.6-3.4.2:docker/dcgm-exporter-entrypoint.sh.
    """
    writable_root = release_number(release)[0] < 4
    # The kubelet's socket belongs to root, and a capability only reaches root.
    needs_root = mapping is not None or is_profiled or writable_root
    variables = {
        "DCGM_EXPORTER_INTERVAL": str(collect_interval_seconds * 1000),
        "DCGM_EXPORTER_KUBERNETES": str(mapping is not None).lower(),
        "DCGM_EXPORTER_LISTEN": f":{port}",
        "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
        # Every GPU of the node without asking for one; the image says the same, here it can be reviewed.
        "NVIDIA_VISIBLE_DEVICES": "all",
        **(mapping.environment() if mapping else {}),
    }
    memory_limit = resources.get("limits", {}).get("memory")
    if memory_limit is not None:
        variables["GOMEMLIMIT"] = _three_quarters(str(memory_limit))
    if writable_root:
        # The 3.x entrypoint stamps SYS_ADMIN on the exporter's file, for which it wants SETFCAP. Root has its
        # capabilities without the stamp, so the step is skipped. What else 3.x writes is not known: its root
        # stays writable. 4.x starts the exporter directly and needs /tmp at most.
        variables["NO_SETCAP"] = "true"
    if web_config is not None:
        variables["DCGM_EXPORTER_WEB_CONFIG_FILE"] = f"{_WEB_CONFIG_DIRECTORY}/{WEB_CONFIG_KEY}"

    mounted = _volumes(
        mapping=mapping,
        metrics_config_map=metrics_config_map,
        tls=tls,
        web_config=web_config,
        is_secret=basic_auth is not None,
        debug_dump=debug_dump,
        writable_root=writable_root,
    )
    own_mounts = [{"name": volume, **mount} for volume, (_, mount) in mounted.items()]
    mounts, volumes = beside_own(own_mounts, mounts, volumes)
    arguments = ["-f", f"{_METRICS_DIRECTORY}/{metrics_key}"]
    if remote_hostengine is not None:
        arguments += ["-r", remote_hostengine]
    if debug_dump is not None:
        arguments += ["--dump-enabled", f"--dump-directory={_DUMPS}", f"--dump-retention={debug_dump.retention}"]
        arguments.append(f"--dump-compression={str(debug_dump.compression).lower()}")
    user = {"runAsNonRoot": False, "runAsUser": 0} if needs_root else {"runAsNonRoot": True, "runAsUser": NON_ROOT_USER}
    computed = {**exporter_rights(is_profiled=is_profiled).to_manifest(read_only=not writable_root), **user}
    all_variables: list[Mapping[str, Any]] = [
        *({"name": name, "value": value} for name, value in variables.items()),
        {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        *env,
    ]
    container: dict[str, Any] = {
        "name": "exporter",
        "image": image,
        "imagePullPolicy": image_pull_policy,
        "args": arguments,
        "env": sorted(all_variables, key=lambda variable: str(variable["name"])),
        "ports": [{"name": PORT_NAME, "containerPort": port, "protocol": "TCP"}],
        # 3.x answers 503 until its first reading, one interval after start.
        "startupProbe": probe(
            "/health", PORT_NAME, tls, basic_auth, period=5, failures=12 + 2 * collect_interval_seconds // 5
        ),
        "livenessProbe": probe("/health", PORT_NAME, tls, basic_auth, period=20, failures=3),
        "readinessProbe": probe("/health", PORT_NAME, tls, basic_auth, period=10, failures=3),
        "resources": {part: dict(amounts) for part, amounts in resources.items()},
        # Spelt without CAP_: the API server refuses CAP_SYS_ADMIN beside allowPrivilegeEscalation false.
        "securityContext": computed if security_context is None else dict(security_context),
        "volumeMounts": [*own_mounts, *mounts],
    }
    # A Secret's files belong to root; a group makes them readable to others.
    group = {} if needs_root else {"fsGroup": NON_ROOT_USER}
    return {
        "automountServiceAccountToken": bool(mapping and mapping.rules()),
        "containers": [container],
        "dnsPolicy": "ClusterFirstWithHostNet" if host_network else None,
        "enableServiceLinks": False,
        "hostNetwork": host_network or None,
        "hostPID": (mapping is not None and mapping.host_pid) or None,
        "runtimeClassName": runtime_class,
        "securityContext": {**POD, **group, **(pod_security_context or {})},
        "serviceAccountName": service_account,
        "volumes": [*({"name": volume, **source} for volume, (source, _) in mounted.items()), *volumes],
        **(placement or {}),
    }


def _volumes(
    *,
    mapping: PodMapping | None,
    metrics_config_map: str,
    tls: Tls | None,
    web_config: str | None,
    is_secret: bool,
    debug_dump: DebugDump | None,
    writable_root: bool,
) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Give each volume with its source and its mount."""
    volumes: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
    if mapping is not None:
        volumes["pod-resources"] = (
            {"hostPath": {"path": mapping.kubelet_path, "type": "Directory"}},
            {"mountPath": POD_RESOURCES, "readOnly": True},
        )
    # A directory, not a subPath: the kubelet never refreshes a file mounted by subPath.
    volumes["metrics"] = (
        {"configMap": {"name": metrics_config_map}},
        {"mountPath": _METRICS_DIRECTORY, "readOnly": True},
    )
    if web_config is not None:
        source: dict[str, Any] = (
            {"secret": {"secretName": web_config, "defaultMode": 0o440}}
            if is_secret
            else {"configMap": {"name": web_config}}
        )
        volumes["web-config"] = (source, {"mountPath": _WEB_CONFIG_DIRECTORY, "readOnly": True})
    if tls is not None:
        volumes["tls"] = (
            {"secret": {"secretName": tls.secret, "defaultMode": 0o440}},
            {"mountPath": TLS_DIRECTORY, "readOnly": True},
        )
    if debug_dump is not None:
        volumes["debug-dumps"] = ({"emptyDir": {"sizeLimit": debug_dump.size_limit}}, {"mountPath": _DUMPS})
    if not writable_root:
        volumes["tmp"] = ({"emptyDir": {"sizeLimit": "64Mi"}}, {"mountPath": "/tmp"})
    return volumes


def _three_quarters(memory: str) -> str:
    mebibytes = int(_fields.amount(memory) * 3 / 4 / 2**20)
    if not mebibytes:
        raise GpuConstructsError(f"resources['limits']['memory'] must leave the exporter a few MiB; got {memory!r}")
    return f"{mebibytes}MiB"
