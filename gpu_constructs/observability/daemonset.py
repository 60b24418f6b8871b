"""The DCGM exporter's pod on every GPU node, and the Service in front of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpu_constructs import _fields
from gpu_constructs._container_security import POD, container_security
from gpu_constructs._daemonset import daemonset
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.observability.metrics import COLLECTION_INTERVAL_SECONDS, release_number

PORT = 9400
"""Port of ``/metrics`` and ``/health``, in the pod and in the Service."""

PORT_NAME = "metrics"
"""Name of that port, by which scrape objects find it."""

METRICS_KEY = "metrics.csv"
"""Key of the ConfigMap that holds the CSV."""

CHECKSUM_ANNOTATION = "gpu-constructs/metrics-sha256"
"""Annotation of the pod template that rolls the pods when the CSV changes."""

DEFAULT_RESOURCES: Mapping[str, Mapping[str, str]] = {
    "requests": {"cpu": "100m", "memory": "256Mi"},
    "limits": {"memory": "1Gi"},
}
"""With pod mapping the exporter uses 400 to 500 MiB, more on nodes with eight GPUs; a limit of 512Mi is
known to be too low (dcgm-exporter#609, #702). No CPU limit: throttled probes get healthy pods killed."""

_METRICS_DIRECTORY = "/etc/gpu-constructs"
_POD_RESOURCES = "/var/lib/kubelet/pod-resources"


def exporter_daemonset(
    *,
    name: str,
    namespace: str,
    image: str,
    release: str,
    labels: Mapping[str, str],
    selector_labels: Mapping[str, str],
    metrics_config_map: str,
    metrics_sha256: str,
    profiling: bool,
    service_account: str | None = None,
    runtime_class: str | None = "nvidia",
    node_selector: Mapping[str, str] | None = None,
    affinity: Mapping[str, Any] | None = None,
    tolerations: Sequence[Mapping[str, Any]] = (),
    resources: Mapping[str, Mapping[str, str]] | None = None,
    priority_class: str | None = None,
    image_pull_secrets: Sequence[str] = (),
) -> dict[str, Any]:
    """Give the manifest of the exporter's DaemonSet.

    The pod reads the GPUs through the driver's libraries, which the nvidia runtime puts into it, and asks the
    kubelet which pod holds which GPU. It takes no GPU slot and talks to no API server.

    Args:
        name: Name of the DaemonSet.
        namespace: Its namespace; needs Pod Security level privileged (hostPath; SYS_ADMIN when profiling).
        image: Whole image reference.
        release: Exporter release of that image, such as ``4.8.3``.
        labels: Labels of the DaemonSet and its pods; ``selector_labels`` are added.
        selector_labels: Labels that select the pods.
        metrics_config_map: ConfigMap with the CSV under ``METRICS_KEY``.
        metrics_sha256: Checksum of that CSV, for ``CHECKSUM_ANNOTATION``.
        profiling: Whether the CSV holds ``DCGM_FI_PROF_*`` metrics; only then the pod gets SYS_ADMIN.
        service_account: ServiceAccount of the pod (its token is not mounted); None takes the namespace's
            default.
        runtime_class: RuntimeClass that injects the driver's libraries; None where the default runtime does.
            Without them the exporter ends with "Cannot init NVML library".
        node_selector: Labels of the nodes it runs on.
        affinity: Affinity of the pods, as in a pod spec.
        tolerations: Taints its pods tolerate, as in a pod spec.
        resources: ``requests`` and ``limits``; None takes ``DEFAULT_RESOURCES``. The Go runtime is told to
            stay within three quarters of the memory limit, the rest is for DCGM itself.
        priority_class: PriorityClass of the pods; None by default: losing metrics must not evict workloads.
        image_pull_secrets: Names of Secrets for the image's registry.

    Raises:
        GpuConstructsError: For a release or a memory limit that cannot be read.

    Source: NVIDIA/dcgm-exporter@4.5.3-4.8.2:deployment/templates/daemonset.yaml, docker/Dockerfile,
    pkg/cmd/app.go; @3.3.6-3.4.2:docker/dcgm-exporter-entrypoint.sh.
    """
    writable_root = release_number(release)[0] < 4
    chosen = DEFAULT_RESOURCES if resources is None else resources

    environment: list[dict[str, Any]] = [
        {"name": "DCGM_EXPORTER_KUBERNETES", "value": "true"},
        {"name": "DCGM_EXPORTER_LISTEN", "value": f":{PORT}"},
        {"name": "DCGM_EXPORTER_INTERVAL", "value": str(COLLECTION_INTERVAL_SECONDS * 1000)},
        {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        # Every GPU of the node without asking for one; the image says the same, here it can be reviewed.
        {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"},
        {"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "compute,utility"},
    ]
    memory_limit = chosen.get("limits", {}).get("memory")
    if memory_limit is not None:
        environment.append({"name": "GOMEMLIMIT", "value": _three_quarters(memory_limit)})
    if writable_root:
        # The 3.x entrypoint stamps SYS_ADMIN on the exporter's file, for which it wants SETFCAP. Root has its
        # capabilities without the stamp, so the step is skipped. What else 3.x writes is not known: its root
        # stays writable. 4.x starts the exporter directly and needs /tmp at most.
        environment.append({"name": "NO_SETCAP", "value": "true"})

    volumes: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "pod-resources": (
            {"hostPath": {"path": _POD_RESOURCES, "type": "Directory"}},
            {"mountPath": _POD_RESOURCES, "readOnly": True},
        ),
        # A directory, not a subPath: the kubelet never refreshes a file mounted by subPath.
        "metrics": (
            {"configMap": {"name": metrics_config_map}},
            {"mountPath": _METRICS_DIRECTORY, "readOnly": True},
        ),
    }
    if not writable_root:
        volumes["tmp"] = ({"emptyDir": {"sizeLimit": "64Mi"}}, {"mountPath": "/tmp"})

    pod: dict[str, Any] = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": POD,
        "containers": [
            {
                "name": "exporter",
                "image": image,
                "imagePullPolicy": "IfNotPresent",
                "args": ["-f", f"{_METRICS_DIRECTORY}/{METRICS_KEY}"],
                "env": environment,
                "ports": [{"name": PORT_NAME, "containerPort": PORT, "protocol": "TCP"}],
                # 3.x answers 503 until its first reading, one interval after start.
                "startupProbe": _probe(period=5, failures=24),
                "livenessProbe": _probe(period=20, failures=3),
                "readinessProbe": _probe(period=10, failures=3),
                "resources": {part: dict(amounts) for part, amounts in chosen.items()},
                "securityContext": {
                    # Spelt without CAP_: the API server refuses CAP_SYS_ADMIN beside allowPrivilegeEscalation false.
                    **container_security(add=("SYS_ADMIN",) if profiling else (), read_only=not writable_root),
                    # The kubelet's socket belongs to root, and a capability only reaches root.
                    "runAsNonRoot": False,
                    "runAsUser": 0,
                },
                "volumeMounts": [{"name": volume, **mount} for volume, (_, mount) in volumes.items()],
            }
        ],
        "volumes": [{"name": volume, **source} for volume, (source, _) in volumes.items()],
    }
    optional: dict[str, Any] = {
        "serviceAccountName": service_account,
        "runtimeClassName": runtime_class,
        "nodeSelector": dict(node_selector or {}),
        "affinity": dict(affinity or {}),
        "tolerations": [dict(toleration) for toleration in tolerations],
        "priorityClassName": priority_class,
        "imagePullSecrets": [{"name": secret} for secret in image_pull_secrets],
    }
    pod.update({field: value for field, value in optional.items() if value})

    return daemonset(
        metadata={"name": name, "namespace": namespace, "labels": {**labels, **selector_labels}},
        selector=selector_labels,
        annotations={CHECKSUM_ANNOTATION: metrics_sha256},
        pod_spec=pod,
        rolling_update={"maxUnavailable": 1, "maxSurge": 0},
    )


def exporter_service(
    *,
    name: str,
    namespace: str,
    labels: Mapping[str, str],
    selector_labels: Mapping[str, str],
) -> dict[str, Any]:
    """Give the manifest of the Service by which a monitoring stack finds the exporter's pods.

    Args:
        name: Name of the Service; also the ``job`` of the scraped series.
        namespace: Its namespace, that of the DaemonSet.
        labels: Labels of the Service; ``selector_labels`` are added, so that a scrape object can select it.
        selector_labels: Labels that select the exporter's pods.
    """
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace, "labels": {**labels, **selector_labels}},
        "spec": {
            "type": "ClusterIP",
            "selector": dict(selector_labels),
            "ports": [{"name": PORT_NAME, "port": PORT, "targetPort": PORT_NAME, "protocol": "TCP"}],
        },
    }


def _probe(*, period: int, failures: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": "/health", "port": PORT_NAME},
        "periodSeconds": period,
        # The default second is too short on a node whose CPUs are all busy.
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    }


def _three_quarters(memory: str) -> str:
    mebibytes = int(_fields.amount(memory) * 3 / 4 / 2**20)
    if not mebibytes:
        raise GpuConstructsError(f"resources['limits']['memory'] must leave the exporter a few MiB; got {memory!r}")
    return f"{mebibytes}MiB"
