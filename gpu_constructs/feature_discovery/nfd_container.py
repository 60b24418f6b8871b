"""What each of NFD's programs runs with: its flags, variables, ports, probes and the node's files it sees.

Source: the node-feature-discovery charts bundled in NVIDIA/k8s-device-plugin@v0.18.2 and @v0.20.0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpu_constructs._container_security import container_security
from gpu_constructs._resources import Resources, container_resources
from gpu_constructs.feature_discovery import node_feature_discovery as options
from gpu_constructs.feature_discovery.nfd_config import merged
from gpu_constructs.feature_discovery.nfd_rights import owner_references
from gpu_constructs.versions import NodeFeatureDiscoveryRelease

_CONFIG_FOLDER = "/etc/kubernetes/node-feature-discovery"
_PORT_FLAGS = {"http": "-port", "metrics": "-metrics", "health": "-grpc-health"}
_RESOURCES: Mapping[str, Resources] = {
    "master": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "4Gi"}},
    "worker": {"requests": {"cpu": "5m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}},
    "gc": {"requests": {"cpu": "10m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}},
    "topology-updater": {"requests": {"cpu": "50m", "memory": "40Mi"}, "limits": {"memory": "60Mi"}},
}
_PROBES: Mapping[str, Mapping[str, Mapping[str, int]]] = {
    "master": {
        "startup": {"failureThreshold": 30},
        "liveness": {},
        "readiness": {"failureThreshold": 10},
    },
    "worker": {
        "liveness": {"initialDelaySeconds": 10},
        "readiness": {"initialDelaySeconds": 5, "failureThreshold": 10},
    },
    "gc": {"liveness": {"initialDelaySeconds": 10}, "readiness": {"initialDelaySeconds": 5}},
    "topology-updater": {
        "liveness": {"initialDelaySeconds": 10},
        "readiness": {"initialDelaySeconds": 5, "failureThreshold": 10},
    },
}
_WORKER_HOST_PATHS = {
    "host-boot": ("/boot", "/host-boot"),
    "host-lib": ("/lib", "/host-lib"),
    "host-os-release": ("/etc/os-release", "/host-etc/os-release"),
    "host-proc-swaps": ("/proc/swaps", "/host-proc/swaps"),
    "host-sys": ("/sys", "/host-sys"),
    "host-usr-lib": ("/usr/lib", "/host-usr/lib"),
}


def ports(component: options.NfdComponent, release: NodeFeatureDiscoveryRelease) -> dict[str, int]:
    """Give the ports that a component listens on, by their names in the pod."""
    given = component.ports()
    if release.has_http_health:
        return {"http": given["port"] or 8080}
    listening = {"metrics": given["metrics_port"] or 8081}
    return {**listening, "health": given["health_port"] or 8082} if "health_port" in given else listening


def container(
    component: options.NfdComponent,
    installation: options.NodeFeatureDiscovery,
    release: NodeFeatureDiscoveryRelease,
) -> dict[str, Any]:
    """Give the container of a component, but for its mounts."""
    is_root = isinstance(component, options.NfdTopologyUpdater)
    security = {**container_security(non_root=not is_root), **({"runAsUser": 0} if is_root else {})}
    listening = ports(component, release)
    return {
        "name": component.container_name,
        "image": installation.image or release.image,
        "imagePullPolicy": installation.image_pull_policy,
        "command": [f"nfd-{component.container_name}"],
        "args": [*_arguments(component, installation, release), *component.extra_args],
        "env": [*_own_environment(component), *component.environment()],
        "ports": [{"name": port, "containerPort": number} for port, number in listening.items()],
        "resources": container_resources(component.resources, default=_RESOURCES[component.container_name]),
        "securityContext": merged(security, component.security_context),
        **dict(_probes(component, listening)),
    }


def volumes(component: options.NfdComponent, config_map: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Give a pod's volumes, and where its container sees them, all read-only."""
    files = {} if component.document() is None else {"config": ({"configMap": {"name": config_map}}, _CONFIG_FOLDER)}
    for volume, (path, inside) in _host_paths(component).items():
        files[volume] = ({"hostPath": {"path": path}}, inside)
    return (
        [{"name": name, **source} for name, (source, _) in files.items()],
        [{"name": name, "mountPath": inside, "readOnly": True} for name, (_, inside) in files.items()],
    )


def _probes(component: options.NfdComponent, listening: Mapping[str, int]) -> Iterator[tuple[str, dict[str, Any]]]:
    if "http" in listening:
        check: dict[str, Any] = {"httpGet": {"path": "/healthz", "port": "http"}}
    elif "health" in listening:
        check = {"grpc": {"port": listening["health"]}}
    else:
        return
    for probe, ours in _PROBES[component.container_name].items():
        numbers = getattr(component, f"{probe}_probe")
        yield f"{probe}Probe", {**check, **ours, **(numbers.to_manifest() if numbers else {})}


def _arguments(
    component: options.NfdComponent,
    installation: options.NodeFeatureDiscovery,
    release: NodeFeatureDiscoveryRelease,
) -> Iterator[str]:
    gates = [f"-feature-gates={gate}={str(on).lower()}" for gate, on in sorted(installation.feature_gates.items())]
    if isinstance(component, options.NfdMaster):
        yield from _master_arguments(component)
        yield from gates
    elif isinstance(component, options.NfdWorker):
        yield from gates
        if release.has_owner_refs:
            yield f"-owner-refs={','.join(owner_references(component, release))}"
    elif isinstance(component, options.NfdTopologyUpdater):
        yield from _topology_updater_arguments(component)
    elif isinstance(component, options.NfdGarbageCollector):
        yield f"-gc-interval={options.duration_text(component.interval)}"
        if component.port is None and component.metrics_port is None:
            return
    for port, number in ports(component, release).items():
        yield f"{_PORT_FLAGS[port]}={number}"


def _own_environment(component: options.NfdComponent) -> list[dict[str, Any]]:
    fields = {"NODE_NAME": "spec.nodeName"}
    if isinstance(component, options.NfdWorker):
        fields |= {"POD_NAME": "metadata.name", "POD_UID": "metadata.uid"}
    if isinstance(component, options.NfdTopologyUpdater):
        fields |= {"NODE_ADDRESS": "status.hostIP"}
    return [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()]


def _master_arguments(master: options.NfdMaster) -> Iterator[str]:
    if master.instance is not None:
        yield f"-instance={master.instance}"
    if master.replica_count > 1:
        yield "-enable-leader-election"
    if master.extra_label_ns:
        yield f"-extra-label-ns={','.join(master.extra_label_ns)}"
    if master.deny_label_ns:
        yield f"-deny-label-ns={','.join(master.deny_label_ns)}"
    if master.enable_taints:
        yield "-enable-taints"
    if master.resync_period is not None:
        yield f"-resync-period={options.duration_text(master.resync_period)}"
    if master.nfd_api_parallelism is not None:
        yield f"-nfd-api-parallelism={master.nfd_api_parallelism}"


def _topology_updater_arguments(updater: options.NfdTopologyUpdater) -> Iterator[str]:
    socket = updater.kubelet_pod_resources_sock_path.rpartition("/")[2]
    yield f"-podresources-socket=/host-var/lib/kubelet-podresources/{socket}"
    yield f"-sleep-interval={options.duration_text(updater.update_interval)}"
    yield f"-watch-namespace={updater.watch_namespace}"
    if not updater.pod_set_fingerprint:
        yield "-pods-fingerprint=false"
    if updater.kubelet_config_path is not None:
        yield "-kubelet-config-uri=file:///host-var/kubelet-config"
    if not updater.kubelet_state_dir:
        yield "-kubelet-state-dir="


def _host_paths(component: options.NfdComponent) -> dict[str, tuple[str, str]]:
    """Give volumes of the node's files: where they are there, and where in the container."""
    if isinstance(component, options.NfdWorker):
        paths = dict(_WORKER_HOST_PATHS)
        if component.mount_usr_src:
            paths["host-usr-src"] = ("/usr/src", "/host-usr/src")
        if component.mount_features_d:
            paths["features-d"] = (f"{_CONFIG_FOLDER}/features.d", f"{_CONFIG_FOLDER}/features.d")
        return paths
    if isinstance(component, options.NfdTopologyUpdater):
        # The socket's directory: a kubelet that restarts makes a new socket, which a mounted socket would not show.
        folder = component.kubelet_pod_resources_sock_path.rpartition("/")[0]
        paths = {
            "host-sys": ("/sys", "/host-sys"),
            "kubelet-pod-resources": (folder, "/host-var/lib/kubelet-podresources"),
        }
        if component.kubelet_state_dir:
            paths["kubelet-state"] = (component.kubelet_state_dir, "/host-var/lib/kubelet")
        if component.kubelet_config_path is not None:
            paths["kubelet-config"] = (component.kubelet_config_path, "/host-var/kubelet-config")
        return paths
    return {}
