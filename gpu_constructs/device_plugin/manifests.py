"""The objects around the GPUs: device plugin, GPU Feature Discovery and MPS control daemon, as plain manifests.

Source: NVIDIA/k8s-device-plugin@v0.20.0:cmd/nvidia-device-plugin, cmd/gpu-feature-discovery, cmd/mps-control-daemon.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from typing import Any

from gpu_constructs.device_plugin.agent import Installation, Volumes, daemonset, environment, security_context
from gpu_constructs.device_plugin.config import Flags, GfdFlags, PluginFlags
from gpu_constructs.device_plugin.delivery import Delivery
from gpu_constructs.device_plugin.options import (
    KUBELET_DEVICE_PLUGINS,
    DevicePlugin,
    GpuFeatureDiscovery,
)
from gpu_constructs.kube import fields, rbac
from gpu_constructs.kube.container_security import container_security

MPS_CAPABLE = "nvidia.com/mps.capable"
"""Published by GPU Feature Discovery on nodes whose configuration shares GPUs by MPS."""

GFD_LABELS = (
    "nvidia.com/cuda.*",
    "nvidia.com/gpu.clique",
    "nvidia.com/gpu.compute.*",
    "nvidia.com/gpu.count",
    "nvidia.com/gpu.family",
    "nvidia.com/gpu.machine",
    "nvidia.com/gpu.memory",
    "nvidia.com/gpu.mode",
    "nvidia.com/gpu.product",
    "nvidia.com/gpu.replicas",
    "nvidia.com/gpu.sharing-strategy",
    "nvidia.com/mig*",
    MPS_CAPABLE,
    "nvidia.com/vgpu.*",
)
"""The labels that GPU Feature Discovery publishes; ``nvidia.com/gpu.present`` is not among them."""

_CDI_ROOT = "/var/run/cdi"
_IMEX_CHANNELS = "/dev/nvidia-caps-imex-channels"
_READ_NODES = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}]
"""What config-manager reads: the labels of its node, for which it lists them all."""

Manifests = dict[str, dict[str, Any]]


def gpu_manifests(given: Installation, served: Sequence[Delivery]) -> Manifests:
    """Return the objects around the GPUs by construct path.

    Args:
        given: The installation.
        served: What each set of pods reads, that of the default configuration first.

    Raises:
        GpuConstructsError: An option does not fit the configuration or the release.
    """
    plugin, labeler = given.plugin, given.labeler
    metadata = given.metadata("device-plugin", name=given.name)
    needs_nodes = served[0].config_manager is not None
    account = given.name if needs_nodes else None
    manifests: Manifests = {}
    if needs_nodes and plugin is not None:
        manifests |= {**rbac.service_account(metadata), **rbac.cluster_role(metadata, _READ_NODES)}
    for one in served:
        file = one.manifest(metadata)
        if file is not None and (plugin is not None or labeler is not None):
            manifests[f"config{one.suffix}"] = file
        if plugin is not None:
            child = "Default" if not one.suffix else f"daemonset{one.suffix}"
            manifests[child] = _device_plugin(given, one, plugin, account)
        if plugin is not None and "mps" in one.uses:
            manifests[f"mps-control-daemon{one.suffix}"] = _mps_control_daemon(given, one, account)
    objects = {} if labeler is None else _gpu_feature_discovery(given, served, labeler)
    return manifests | {f"gpu-feature-discovery/{child}": manifest for child, manifest in objects.items()}


def _host_path(path: str, kind: str | None, mount: str, **more: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the source and the mount of a path of the node."""
    return {"hostPath": {"path": path, **({"type": kind} if kind else {})}}, {"mountPath": mount, **more}


# --- the device plugin ----------------------------------------------------------------------------------------


def _device_plugin(
    given: Installation, delivery: Delivery, component: DevicePlugin, account: str | None
) -> dict[str, Any]:
    """Return the plugin's DaemonSet, which talks to the API server only through config-manager."""
    variables = {**delivery.variables(Flags, PluginFlags), **component.variables()}
    return daemonset(
        given,
        component,
        delivery,
        {
            "name": "nvidia-device-plugin-ctr",
            "command": ["nvidia-device-plugin"],
            "env": environment(component, delivery, variables, {}),
            "securityContext": security_context(given, component, delivery),
        },
        name=given.name,
        label="device-plugin",
        volumes=_plugin_volumes(delivery, component),
        service_account=account,
        shareProcessNamespace=delivery.config_manager is not None or None,
    )


def _plugin_volumes(delivery: Delivery, component: DevicePlugin) -> Volumes:
    """Return the plugin directory of the kubelet, and of the node what the configuration uses."""
    volumes = {
        "device-plugins": _host_path(component.kubelet_device_plugins_dir, "Directory", KUBELET_DEVICE_PLUGINS),
    }
    if "cdi" in delivery.uses:
        volumes["cdi-root"] = _host_path(_CDI_ROOT, "DirectoryOrCreate", _CDI_ROOT)
    if "imex" in delivery.uses:
        # The plugin hands out a channel only if it sees the channel's device node.
        volumes["imex-channels"] = _host_path(_IMEX_CHANNELS, "DirectoryOrCreate", _IMEX_CHANNELS, readOnly=True)
    if "mps" in delivery.uses:
        volumes |= _mps_volumes(delivery.mps_root)
    if delivery.nvidia_driver_root is not None:
        inside = delivery.container_driver_root
        mounts = [*delivery.mounts(), *(mount for _, mount in volumes.values())]
        is_taken = posixpath.normpath(inside) in ["/", *(mount["mountPath"] for mount in mounts)]
        message = (
            "flags.plugin.container_driver_root must be a directory of its own in the plugin's container; got "
            f"{inside!r}, where something else is mounted; leave it out"
        )
        fields.refuse_first([(is_taken, message)])
        # Without a type: on Talos the kubelet would look for it inside its own container and refuse.
        volumes["driver-root"] = _host_path(delivery.nvidia_driver_root, None, inside, readOnly=True)
    return volumes


# --- the MPS control daemon -----------------------------------------------------------------------------------


def _mps_volumes(root: str) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Return what the plugin and the MPS control daemon share on a node: pipes, and memory to talk through."""
    return {
        "mps-root": _host_path(root, "DirectoryOrCreate", "/mps"),
        # The daemon's init container mounts it there, so it has no type of its own.
        "mps-shm": _host_path(f"{root.rstrip('/')}/shm", None, "/dev/shm"),
    }


def _mps_control_daemon(given: Installation, delivery: Delivery, account: str | None) -> dict[str, Any]:
    """Return the daemon's DaemonSet, on the nodes that GPU Feature Discovery found capable.

    Raises:
        GpuConstructsError: config-manager of this release would die of the processes it sees.
    """
    release, component = given.release, given.daemon
    sees_all = delivery.config_manager is not None and component.host_pid
    message = (
        f"config with config-manager cannot share by MPS on release {release.version} of the device plugin: its "
        "sidecar panics on processes without a command line, which host_pid=True shows it; use Configs.named, "
        "release 0.20.0 or MpsControlDaemon(host_pid=False)"
    )
    fields.refuse_first([(sees_all and not release.config_manager_survives_host_pid, message)])
    privileged = container_security(privileged=True, read_only=False)
    variables = delivery.variables(besides=["MIG_STRATEGY"])
    mount_memory = {
        "name": "mps-control-daemon-mounts",
        "command": ["mps-control-daemon", "mount-shm"],
        "securityContext": privileged,
        # So that the mount it makes is seen by the node, and through it by the plugin and the workloads.
        "volumeMounts": [{"name": "mps-root", "mountPath": "/mps", "mountPropagation": "Bidirectional"}],
    }
    return daemonset(
        given,
        component,
        delivery,
        {
            "name": "mps-control-daemon-ctr",
            "command": ["mps-control-daemon"],
            "env": environment(component, delivery, variables, {}),
            "securityContext": dict(component.security_context or privileged),
        },
        name=f"{given.name}-mps-control-daemon",
        label="mps-control-daemon",
        volumes=_mps_volumes(delivery.mps_root),
        node_labels={MPS_CAPABLE: "true"},
        init_containers=[mount_memory],
        service_account=account,
        hostPID=component.host_pid or None,
        # Either shows the sidecar the process that it signals; Kubernetes takes one of them.
        shareProcessNamespace=not component.host_pid or None,
    )


# --- GPU Feature Discovery ------------------------------------------------------------------------------------


def _gpu_feature_discovery(
    given: Installation, served: Sequence[Delivery], component: GpuFeatureDiscovery
) -> Manifests:
    """Return the objects by construct id: ServiceAccount, Role, RoleBinding, a DaemonSet for each delivery.

    They write one NodeFeature object for each node and mount nothing of the host; the rights are those on
    NodeFeature objects of its own namespace, with config-manager also to read nodes.
    """
    name = f"{given.name}-gpu-feature-discovery"
    metadata = given.metadata("gpu-feature-discovery", name=name)
    needs_nodes = served[0].config_manager is not None
    return {
        **rbac.service_account(metadata),
        **rbac.role(metadata, _label_rules(given.release.sets_owner_references)),
        **(rbac.cluster_role(metadata, _READ_NODES) if needs_nodes else {}),
        **{f"daemonset{one.suffix}": _label_daemonset(given, one, component, name) for one in served},
    }


def _label_rules(sets_owner_references: bool) -> list[dict[str, Any]]:
    # Owner references: read from its pod, and refused without delete where that admission plugin is on.
    owned = ["delete"] if sets_owner_references else []
    pods = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}] if sets_owner_references else []
    return [
        {"apiGroups": ["nfd.k8s-sigs.io"], "resources": ["nodefeatures"], "verbs": ["get", "create", "update", *owned]},
        *pods,
    ]


def _label_daemonset(
    given: Installation, delivery: Delivery, component: GpuFeatureDiscovery, name: str
) -> dict[str, Any]:
    settings = delivery.variables(GfdFlags, besides=("MIG_STRATEGY", "FAIL_ON_INIT_ERROR", "DEVICE_DISCOVERY_STRATEGY"))
    fields = {"NAMESPACE": "metadata.namespace", "NODE_NAME": "spec.nodeName"}
    if given.release.sets_owner_references:
        fields["POD_NAME"] = "metadata.name"
    variables = {**settings, "GFD_USE_NODE_FEATURE_API": "true"}
    return daemonset(
        given,
        component,
        delivery,
        {
            "name": "gpu-feature-discovery-ctr",
            "command": ["gpu-feature-discovery"],
            "env": environment(component, delivery, variables, fields),
            "securityContext": security_context(given, component, delivery),
        },
        name=name,
        label="gpu-feature-discovery",
        volumes={},
        service_account=name,
        shareProcessNamespace=delivery.config_manager is not None or None,
    )
