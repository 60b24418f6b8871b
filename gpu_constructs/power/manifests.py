"""The ConfigMap and the DaemonSet of `PowerLimit`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpu_constructs.kube.config_map import SCRIPT_MODE, config_map, sha256, shell_script
from gpu_constructs.kube.container_security import container_security
from gpu_constructs.kube.labels import object_labels, selector_labels
from gpu_constructs.kube.pods import Pods
from gpu_constructs.kube.resources import Resources
from gpu_constructs.power.options import AgentSettings, PowerRequest

NAME = "nvidia-powerlimit"
RESOURCES: Resources = {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "128Mi"}}

_SCRIPT = "power-limit.sh"
_STATE_DIR = "/run/power-limit"
_TEXTFILE_DIR = "/textfile"
_CHECKSUM = "gpu-constructs/script-sha256"
_PROBE_SECONDS = 10
# One call of nvidia-smi takes several seconds. This time is enough for a call for each board of a full node.
_RESTORE_SECONDS = 120
# The shell reacts to a signal only after the current call of nvidia-smi ends.
_STOP_SECONDS = 10

_Volumes = dict[str, tuple[dict[str, Any], dict[str, Any]]]


def power_limit(
    pods: Pods,
    *,
    name: str,
    namespace: str,
    instance: str,
    requests: Sequence[PowerRequest],
    settings: AgentSettings,
    textfile_directory: str | None,
) -> dict[str, dict[str, Any]]:
    """Return the manifests of a `PowerLimit`: the ConfigMap with the script, and the DaemonSet that runs the script.

    Args:
        pods: Options and defaults of the pods.
        name: Name of the ConfigMap and the DaemonSet.
        namespace: Namespace of the ConfigMap and the DaemonSet.
        instance: Value of the label ``app.kubernetes.io/instance``.
        requests: Requested power limits, in order of precedence.
        settings: Settings of the script.
        textfile_directory: Directory on the nodes for the metrics file. If None, the script writes no metrics.

    Returns:
        The ConfigMap with the key ``script``, and the DaemonSet with the key ``Default``. The keys are construct IDs.
    """
    script = shell_script("gpu_constructs.power", "power_limit.sh")
    selector = selector_labels(name=NAME, instance=instance, component="power-limit")
    metadata = {"name": name, "namespace": namespace, "labels": object_labels(selector)}
    volumes = _volumes(name, textfile_directory)
    variables = {
        **settings.variables(),
        **_limits(requests),
        # The NVIDIA runtime mounts nvidia-smi and its libraries. The container sees all GPUs but requests none.
        "NVIDIA_DISABLE_REQUIRE": "true",
        "NVIDIA_DRIVER_CAPABILITIES": "utility",
        "NVIDIA_VISIBLE_DEVICES": "all",
        "METRICS_FILE": f"{_TEXTFILE_DIR}/{name}.prom" if textfile_directory else "",
        "STATE_DIR": _STATE_DIR,
    }
    container = pods.container(
        "powerlimit",
        command=["/bin/sh", f"/script/{_SCRIPT}"],
        env=[{"name": name, "value": value} for name, value in sorted(variables.items()) if value],
        securityContext=container_security(add=("SYS_ADMIN",)),
        volumeMounts=[{"name": volume, **mount} for volume, (_, mount) in volumes.items()],
        **_probes(settings),
    )
    spec = pods.spec(
        [container],
        security_context={"runAsUser": 0},
        terminationGracePeriodSeconds=(
            _RESTORE_SECONDS if settings.restore_on_exit else settings.command_timeout_seconds + _STOP_SECONDS
        ),
        volumes=[{"name": volume, **source} for volume, (source, _) in volumes.items()],
    )
    return {
        "script": config_map(metadata, {_SCRIPT: script}),
        "Default": pods.daemonset(spec, metadata=metadata, selector=selector, checksums={_CHECKSUM: sha256(script)}),
    }


def _limits(requests: Sequence[PowerRequest]) -> dict[str, str]:
    return {
        "POWER_LIMIT": "".join(request.to_rule() for request in requests if request.target is None),
        "POWER_LIMITS": "\n".join(request.to_rule() for request in requests if request.target is not None),
    }


def _volumes(name: str, textfile_directory: str | None) -> _Volumes:
    """Return the volumes of the pods by volume name. Each value is a pair of the volume source and the volume mount."""
    volumes: _Volumes = {
        "script": (
            {"configMap": {"name": name, "defaultMode": SCRIPT_MODE}},
            {"mountPath": "/script", "readOnly": True},
        ),
        "state": ({"emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}, {"mountPath": _STATE_DIR}),
    }
    if textfile_directory is not None:
        source = {"hostPath": {"path": textfile_directory, "type": "DirectoryOrCreate"}}
        volumes["textfile"] = (source, {"mountPath": _TEXTFILE_DIR})
    return volumes


def _probes(settings: AgentSettings) -> dict[str, Any]:
    stale_after = 2 * settings.interval_seconds + 60
    heartbeat = f"[ $(( $(date +%s) - $(cat {_STATE_DIR}/heartbeat) )) -lt {stale_after} ]"
    return {
        "readinessProbe": {
            "exec": {"command": ["test", "-f", f"{_STATE_DIR}/ready"]},
            "periodSeconds": 10,
            "timeoutSeconds": 5,
        },
        # The first check may take one minute longer than the start of nvidia-smi.
        "startupProbe": {
            "exec": {"command": ["test", "-f", f"{_STATE_DIR}/heartbeat"]},
            "periodSeconds": _PROBE_SECONDS,
            "timeoutSeconds": 5,
            "failureThreshold": -(-settings.start_timeout_seconds // _PROBE_SECONDS) + 6,
        },
        "livenessProbe": {
            "exec": {"command": ["/bin/sh", "-c", heartbeat]},
            "periodSeconds": 60,
            "timeoutSeconds": 5,
            "failureThreshold": 3,
        },
    }
