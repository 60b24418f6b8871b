"""The pods of the device plugin, as plain manifests."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gpu_constructs import _fields
from gpu_constructs._container_security import Rights
from gpu_constructs.device_plugin.agent import GpuAgent
from gpu_constructs.device_plugin.component import Component
from gpu_constructs.device_plugin.config import Flags, PluginFlags
from gpu_constructs.device_plugin.delivery import Delivery
from gpu_constructs.errors import GpuConstructsError, warn
from gpu_constructs.platforms import Platform
from gpu_constructs.versions import DEFAULT_DEVICE_PLUGIN, DEVICE_PLUGIN, DevicePluginRelease

KUBELET_DEVICE_PLUGINS = "/var/lib/kubelet/device-plugins"
CDI_ROOT = "/var/run/cdi"
CDI_FEATURE_FLAGS = DEVICE_PLUGIN[DEFAULT_DEVICE_PLUGIN].cdi_feature_flags
CDI_HOOKS = (
    "all",
    "chmod",
    "create-symlinks",
    "disable-device-node-modification",
    "enable-cuda-compat",
    "update-application-profile",
    "update-ldcache",
)
IMEX_CHANNELS = "/dev/nvidia-caps-imex-channels"

Xids = Literal["all"] | Sequence[int]


@dataclass(frozen=True, kw_only=True)
class DevicePlugin(Component):
    """The plugin's own pods, where they differ from what the chart says for all.

    Attributes:
        cdi_feature_flags: Handed to the generation of CDI specs, like ``disable-nvsandboxutils``. The plugin
            skips flags it does not know.
        cdi_disable_hooks: OCI hooks left out of CDI specs, like ``enable-cuda-compat``, or ``["all"]``. From
            release 0.20.0.
        dp_disable_healthchecks: XIDs that shall not make a GPU unhealthy for ever, or ``"all"``; on top of
            13, 31, 43, 45, 68 and 109, which the plugin ignores by itself.
        dp_enable_healthchecks: XIDs of these six that shall make a GPU unhealthy all the same, or ``"all"``.
        kubelet_device_plugins_dir: The kubelet's plugin directory on the node; k0s and MicroK8s have it
            elsewhere. ``/var/lib/kubelet/device-plugins`` by default.

    Source:
        NVIDIA/k8s-device-plugin@v0.20.0:internal/rm/health.go, cmd/nvidia-device-plugin/main.go
    """

    cdi_feature_flags: Sequence[str] = ()
    cdi_disable_hooks: Sequence[str] = ()
    dp_disable_healthchecks: Xids = ()
    dp_enable_healthchecks: Xids = ()
    kubelet_device_plugins_dir: str = KUBELET_DEVICE_PLUGINS

    _NAME = "device_plugin"

    def __post_init__(self) -> None:
        for name in ("dp_disable_healthchecks", "dp_enable_healthchecks"):
            xids = getattr(self, name)
            if xids != "all" and not isinstance(xids, list | tuple):
                raise GpuConstructsError(f"device_plugin.{name} must be a list of XIDs or 'all'; got {xids!r}")
        super().__post_init__()
        for name, words in (("cdi_feature_flags", CDI_FEATURE_FLAGS), ("cdi_disable_hooks", CDI_HOOKS)):
            for index, word in enumerate(getattr(self, name)):
                _fields.one_of(f"device_plugin.{name}[{index}]", word, words)
        for name in ("dp_disable_healthchecks", "dp_enable_healthchecks"):
            xids = getattr(self, name)
            for index, xid in enumerate(() if xids == "all" else xids):
                # The plugin reads 0 as all of them.
                _fields.whole_number(f"device_plugin.{name}[{index}]", xid, minimum=1)
        disabled, enabled = self.dp_disable_healthchecks, self.dp_enable_healthchecks
        if disabled and enabled and ("all" in (disabled, enabled) or set(disabled) & set(enabled)):
            raise GpuConstructsError(
                "device_plugin.dp_disable_healthchecks and dp_enable_healthchecks must not name the same XIDs: all of "
                "them disabled, the plugin watches none, and else those enabled win; got "
                f"{disabled!r} and {enabled!r}; leave one out"
            )
        _fields.absolute_path("device_plugin.kubelet_device_plugins_dir", self.kubelet_device_plugins_dir)

    def needs_rights_for(self, uses: frozenset[str]) -> list[str]:
        """Give those of the things in use that take rights."""
        return sorted(uses & {"mig", "pass-device-specs", "volume-mounts"})

    def _reserved(self) -> tuple[str, ...]:
        typed = ("CDI_FEATURE_FLAGS", "CDI_DISABLE_HOOKS", "DP_DISABLE_HEALTHCHECKS", "DP_ENABLE_HEALTHCHECKS")
        return (*super()._reserved(), *typed)

    def rights(self, uses: frozenset[str], platform: Platform) -> Rights:
        """Give the rights the plugin needs for what is in use.

        Mounting its device list as volumes, the runtime wants to see SYS_ADMIN before it believes the
        plugin; handing out device nodes takes a privileged one.
        """
        needed = super().rights(uses, platform)
        return Rights(
            add=("SYS_ADMIN",) if "volume-mounts" in uses else needed.add,
            privileged=needed.privileged or "pass-device-specs" in uses,
        )

    def check_release(self, release: DevicePluginRelease) -> None:
        """Refuse what a release of the plugin would ignore.

        Raises:
            GpuConstructsError: A setting that came with a later release.
        """
        if self.cdi_disable_hooks and not release.has_cdi_disable_hooks:
            raise GpuConstructsError(
                f"device_plugin.cdi_disable_hooks needs release 0.20.0 of the device plugin, which {release.version} "
                "would ignore or refuse; leave it out or move up"
            )
        for flag in self.cdi_feature_flags:
            if flag not in release.cdi_feature_flags:
                warn(f"device_plugin.cdi_feature_flags: release {release.version} of the device plugin skips {flag!r}")

    def variables(self) -> dict[str, str]:
        """Give the settings that have no place in the configuration file."""
        lists = {
            "CDI_DISABLE_HOOKS": self.cdi_disable_hooks,
            "CDI_FEATURE_FLAGS": self.cdi_feature_flags,
            "DP_DISABLE_HEALTHCHECKS": self.dp_disable_healthchecks,
            "DP_ENABLE_HEALTHCHECKS": self.dp_enable_healthchecks,
        }
        return {name: v if isinstance(v, str) else ",".join(map(str, v)) for name, v in lists.items() if v}


def device_plugin_daemonset(
    agent: GpuAgent, delivery: Delivery, *, component: DevicePlugin, service_account: str | None
) -> dict[str, Any]:
    """Give the plugin's DaemonSet.

    It mounts the kubelet's plugin directory and, only where the configuration uses them, the directory of
    CDI specs, the driver's root, and what it shares with the MPS control daemon. It talks to the API server
    only through config-manager.
    """
    mounts: list[dict[str, Any]] = [{"name": "device-plugins", "mountPath": KUBELET_DEVICE_PLUGINS}]
    volumes: list[dict[str, Any]] = [
        {
            "name": "device-plugins",
            "hostPath": {"path": component.kubelet_device_plugins_dir, "type": "Directory"},
        }
    ]
    if "cdi" in delivery.uses:
        mounts.append({"name": "cdi-root", "mountPath": CDI_ROOT})
        volumes.append({"name": "cdi-root", "hostPath": {"path": CDI_ROOT, "type": "DirectoryOrCreate"}})
    if "imex" in delivery.uses:
        # The plugin hands out a channel only if it sees the channel's device node.
        mounts.append({"name": "imex-channels", "mountPath": IMEX_CHANNELS, "readOnly": True})
        volumes.append({"name": "imex-channels", "hostPath": {"path": IMEX_CHANNELS, "type": "DirectoryOrCreate"}})
    if "mps" in delivery.uses:
        mounts += [{"name": "mps-root", "mountPath": "/mps"}, {"name": "mps-shm", "mountPath": "/dev/shm"}]
        volumes += mps_volumes(delivery.mps_root)
    if delivery.nvidia_driver_root is not None:
        taken = ["/", *(mount["mountPath"] for mount in [*delivery.mounts(), *mounts])]
        if posixpath.normpath(delivery.container_driver_root) in taken:
            raise GpuConstructsError(
                "flags.plugin.container_driver_root must be a directory of its own in the plugin's container; got "
                f"{delivery.container_driver_root!r}, where something else is mounted; leave it out"
            )
        mounts.append({"name": "driver-root", "mountPath": delivery.container_driver_root, "readOnly": True})
        # Without a type: on Talos the kubelet would look for it inside its own container and refuse.
        volumes.append({"name": "driver-root", "hostPath": {"path": delivery.nvidia_driver_root}})
    variables = {**delivery.variables(Flags, PluginFlags), **component.variables()}
    return agent.daemonset(
        component,
        name=f"{agent.name}{delivery.suffix}",
        label="device-plugin",
        delivery=delivery,
        service_account=service_account,
        shares_processes=delivery.config_manager is not None,
        container=agent.container(
            component,
            delivery=delivery,
            name="nvidia-device-plugin-ctr",
            command=["nvidia-device-plugin"],
            env=agent.environment(component, delivery, variables),
            securityContext=agent.security_context(component, delivery),
            mounts=mounts,
        ),
        volumes=volumes,
    )


def mps_volumes(root: str) -> list[dict[str, Any]]:
    """Give what the plugin and the MPS control daemon share on a node: pipes, and memory to talk through."""
    return [
        {"name": "mps-root", "hostPath": {"path": root, "type": "DirectoryOrCreate"}},
        # The daemon's init container mounts it there, so it has no type of its own.
        {"name": "mps-shm", "hostPath": {"path": f"{root.rstrip('/')}/shm"}},
    ]
