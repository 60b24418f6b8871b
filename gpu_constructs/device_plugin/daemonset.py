"""The pods of the device plugin, as plain manifests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpu_constructs.device_plugin.agent import GpuAgent

KUBELET_DEVICE_PLUGINS = "/var/lib/kubelet/device-plugins"
CDI_ROOT = "/var/run/cdi"
DRIVER_ROOT_IN_CONTAINER = "/driver-root"


def device_plugin_daemonset(
    agent: GpuAgent,
    *,
    name: str,
    selector: dict[str, str],
    device_list_strategy: Sequence[str],
    nvidia_driver_root: str | None,
) -> dict[str, Any]:
    """Give the plugin's DaemonSet.

    It mounts the kubelet's plugin directory and, only with a CDI strategy, the directory of CDI specs and the
    driver's root. It talks to no API server.
    """
    env = agent.environment()
    mounts: list[dict[str, Any]] = [{"name": "device-plugins", "mountPath": KUBELET_DEVICE_PLUGINS}]
    volumes: list[dict[str, Any]] = [
        {"name": "device-plugins", "hostPath": {"path": KUBELET_DEVICE_PLUGINS, "type": "Directory"}}
    ]
    if device_list_strategy:
        env.append({"name": "DEVICE_LIST_STRATEGY", "value": ",".join(device_list_strategy)})
    if any(strategy.startswith("cdi-") for strategy in device_list_strategy):
        mounts.append({"name": "cdi-root", "mountPath": CDI_ROOT})
        volumes.append({"name": "cdi-root", "hostPath": {"path": CDI_ROOT, "type": "DirectoryOrCreate"}})
    if nvidia_driver_root is not None:
        env.append({"name": "NVIDIA_DRIVER_ROOT", "value": nvidia_driver_root})
        mounts.append({"name": "driver-root", "mountPath": DRIVER_ROOT_IN_CONTAINER, "readOnly": True})
        # Without a type: on Talos the kubelet would look for it inside its own container and refuse.
        volumes.append({"name": "driver-root", "hostPath": {"path": nvidia_driver_root}})
    # Mounting its device list as volumes, the runtime wants to see SYS_ADMIN before it believes the plugin.
    capabilities = ("SYS_ADMIN",) if "volume-mounts" in device_list_strategy else ()
    return agent.daemonset(
        name=name,
        selector=selector,
        container={
            "name": "nvidia-device-plugin-ctr",
            "command": ["nvidia-device-plugin"],
            "env": sorted(env, key=lambda variable: str(variable["name"])),
            "securityContext": agent.security_context(add=capabilities),
            "volumeMounts": mounts,
        },
        volumes=volumes,
    )
