"""The manifests of the device plugin, GPU Feature Discovery and the MPS control daemon.

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
"""Key of the label that GPU Feature Discovery sets on nodes whose configuration shares GPUs by MPS."""

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
"""Node labels that GPU Feature Discovery publishes. ``nvidia.com/gpu.present`` comes from Node Feature Discovery."""

_CDI_ROOT = "/var/run/cdi"
_IMEX_CHANNELS = "/dev/nvidia-caps-imex-channels"
_READ_NODES = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}]
"""RBAC rules of config-manager. To read the labels of its own node, config-manager requests the list of all nodes."""

Manifests = dict[str, dict[str, Any]]


def gpu_manifests(given: Installation, served: Sequence[Delivery]) -> Manifests:
    """Return the manifests of the device plugin, GPU Feature Discovery and the MPS control daemon, by construct path.

    The result omits the manifests of components that the user does not install.

    Args:
        given: Options of the ``DevicePluginChart``.
        served: Configurations of the device plugin, with the rights and mounts that each one needs. The first item is
            the default configuration. If config-manager selects the configuration in the pods, there is only one item
            for all configurations.

    Raises:
        GpuConstructsError: An option contradicts the configuration or the release of the device plugin.
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
    """Return a pair for a path on the node: the volume source (``hostPath``), and the volume mount.

    Args:
        path: Path on the node.
        kind: Value of ``hostPath.type``, such as ``Directory``; None for no type.
        mount: Path in the container.
        more: Other fields of the volume mount, such as ``readOnly``.
    """
    return {"hostPath": {"path": path, **({"type": kind} if kind else {})}}, {"mountPath": mount, **more}


# --- the device plugin ----------------------------------------------------------------------------------------


def _device_plugin(
    given: Installation, delivery: Delivery, component: DevicePlugin, account: str | None
) -> dict[str, Any]:
    """Return the DaemonSet of the device plugin.

    Args:
        given: Options of the ``DevicePluginChart``.
        delivery: Configuration of the pods, with the rights and mounts that it needs.
        component: Options for the pods of the device plugin.
        account: Name of the ServiceAccount for config-manager; None without config-manager, because the device plugin
            does not use the API server.
    """
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
    """Return the volumes of the device plugin by name. Each value is a pair: the volume source, and the volume mount.

    The volumes are the device plugin directory of the kubelet, and other paths on the node that the configuration
    needs. Examples are paths of CDI, and the root directory of the NVIDIA driver.
    """
    volumes = {
        "device-plugins": _host_path(component.kubelet_device_plugins_dir, "Directory", KUBELET_DEVICE_PLUGINS),
    }
    if "cdi" in delivery.uses:
        volumes["cdi-root"] = _host_path(_CDI_ROOT, "DirectoryOrCreate", _CDI_ROOT)
    if "imex" in delivery.uses:
        # The plugin passes an IMEX channel to a workload only if the container of the plugin has the device node of the
        # channel.
        volumes["imex-channels"] = _host_path(_IMEX_CHANNELS, "DirectoryOrCreate", _IMEX_CHANNELS, readOnly=True)
    if "mps" in delivery.uses:
        volumes |= _mps_volumes(delivery.mps_root)
    if delivery.nvidia_driver_root is not None:
        inside = delivery.container_driver_root
        mounts = [*delivery.mounts(), *(mount for _, mount in volumes.values())]
        is_taken = posixpath.normpath(inside) in ["/", *(mount["mountPath"] for mount in mounts)]
        message = (
            "flags.plugin.container_driver_root must be a separate directory in the container of the plugin, got "
            f"{inside!r}, which is the path of another mount. Remove it"
        )
        fields.refuse_first([(is_taken, message)])
        # No type: on Talos, the kubelet would check the path in its own container and fail.
        volumes["driver-root"] = _host_path(delivery.nvidia_driver_root, None, inside, readOnly=True)
    return volumes


# --- the MPS control daemon -----------------------------------------------------------------------------------


def _mps_volumes(root: str) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Return the volumes for the pipes and the shared memory of MPS, by volume name.

    The device plugin and the MPS control daemon mount these volumes. Each value is a pair of the volume source and the
    volume mount.

    Args:
        root: Directory of the MPS control daemon on the node.
    """
    return {
        "mps-root": _host_path(root, "DirectoryOrCreate", "/mps"),
        # No type: the init container of the daemon mounts this path.
        "mps-shm": _host_path(f"{root.rstrip('/')}/shm", None, "/dev/shm"),
    }


def _mps_control_daemon(given: Installation, delivery: Delivery, account: str | None) -> dict[str, Any]:
    """Return the DaemonSet of the MPS control daemon, for nodes with the label ``nvidia.com/mps.capable=true``.

    Args:
        given: Options of the ``DevicePluginChart``.
        delivery: Configuration of the pods, with the rights and mounts that it needs.
        account: Name of the ServiceAccount for config-manager; None without config-manager.

    Raises:
        GpuConstructsError: The pods use config-manager and ``host_pid=True``, which do not work together before release
            0.20.0.
    """
    release, component = given.release, given.daemon
    sees_all = delivery.config_manager is not None and component.host_pid
    message = (
        f"sharing by MPS does not work with config-manager of release {release.version} and host_pid=True: its sidecar "
        "fails on processes without a command line. Use Configs.named, release 0.20.0 or "
        "MpsControlDaemon(host_pid=False)"
    )
    fields.refuse_first([(sees_all and not release.config_manager_survives_host_pid, message)])
    privileged = container_security(privileged=True, read_only=False)
    variables = delivery.variables(besides=["MIG_STRATEGY"])
    mount_memory = {
        "name": "mps-control-daemon-mounts",
        "command": ["mps-control-daemon", "mount-shm"],
        "securityContext": privileged,
        # The daemon mounts memory, and this mount must appear on the node, in the plugin and in the workloads.
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
        # Both settings let the sidecar see the process of the daemon, to which it sends a signal. Kubernetes allows
        # only one of the settings.
        shareProcessNamespace=not component.host_pid or None,
    )


# --- GPU Feature Discovery ------------------------------------------------------------------------------------


def _gpu_feature_discovery(
    given: Installation, served: Sequence[Delivery], component: GpuFeatureDiscovery
) -> Manifests:
    """Return the objects of GPU Feature Discovery by construct ID.

    The objects are a ServiceAccount, a Role, a RoleBinding, and a DaemonSet for each configuration in ``served``. With
    config-manager, there are also a ClusterRole and a ClusterRoleBinding, with which the pods read the node labels.

    Each pod writes a NodeFeature object for its node, and mounts no host path. The Role applies only to the namespace
    of the pods.
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
    # The pod sets itself as owner of its NodeFeature, so it needs the right to read pods. With the admission plugin
    # OwnerReferencesPermissionEnforcement, it also needs the right to delete NodeFeatures.
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
