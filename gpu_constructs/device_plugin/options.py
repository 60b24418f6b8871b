"""Options for the pods of the device plugin, GPU Feature Discovery and the MPS control daemon."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Literal

from gpu_constructs.catalog.platforms import Platform
from gpu_constructs.catalog.versions import DEFAULT_DEVICE_PLUGIN, DEVICE_PLUGIN, DevicePluginRelease
from gpu_constructs.device_plugin.config import environment_variables
from gpu_constructs.device_plugin.delivery import DEFAULT_MPS_ROOT
from gpu_constructs.errors import GpuConstructsError, warn
from gpu_constructs.kube import fields
from gpu_constructs.kube.container_security import SECURITY_CONTEXT, Rights
from gpu_constructs.kube.env import AnyEnvValue, environment
from gpu_constructs.kube.resources import Resources, container_resources
from gpu_constructs.records import dataclass, field

KUBELET_DEVICE_PLUGINS = "/var/lib/kubelet/device-plugins"
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

Xids = Literal["all"] | Sequence[int]

_OURS = ("CONFIG_FILE", "GFD_CONFIG_FILE", "NODE_NAME", "NAMESPACE", "POD_NAME", "NVIDIA_MIG_MONITOR_DEVICES")
_FLAGS = environment_variables()
_READ_HERE = {"capabilities": Mapping[str, Sequence[str]] | None, "privileged": bool | None}
_HEALTHCHECKS = ("dp_disable_healthchecks", "dp_enable_healthchecks")


def _security_context(where: str, given: Mapping[str, Any]) -> None:
    for key, value in given.items():
        fields.one_of(f"{where} key", key, SECURITY_CONTEXT)
        fields.of_type(f"{where}[{key!r}]", value, _READ_HERE.get(key, Any))


def _words(allowed: Sequence[str]) -> fields.Check:
    return partial(fields.each, partial(fields.one_of, allowed=allowed))


def _xids(where: str, given: Xids) -> None:
    # The plugin reads 0 as all XIDs.
    fields.each(partial(fields.whole_number, minimum=1), where, () if given == "all" else given)


@dataclass(frozen=True, kw_only=True)
class Component(fields.Options):
    """Pod options of one component: the device plugin, GPU Feature Discovery or the MPS control daemon.

    Attributes:
        env: Environment variables to add. The library rejects a variable that would silently override a setting of
            ``PluginConfig``. Change the setting in ``PluginConfig`` instead.
        host_network: Whether the pods use the network of the node, for example if pod addresses are scarce.
        node_selector: Labels that a node must have, besides those of ``node_selector`` of the chart.
        resources: Requests and limits of the main container, in place of those of the chart.
        security_context: Security context of the main container, with the fields of the Kubernetes API. It replaces the
            security context that the library derives from the configuration, and must contain the same capabilities.

    Raises:
        GpuConstructsError: If ``env`` contains a variable that the library sets or that overrides ``PluginConfig``, if
            the value of a variable is empty, or if the security context has an unknown field.
    """

    env: Mapping[str, str | AnyEnvValue] = field(default_factory=dict)
    host_network: bool = False
    node_selector: Mapping[str, str] = field(default_factory=dict)
    resources: Resources | None = None
    security_context: Mapping[str, Any] | None = None

    _NAME: ClassVar[str] = "component"
    _CHECKS: ClassVar[fields.Checks] = {
        "cdi_disable_hooks": _words(CDI_HOOKS),
        "cdi_feature_flags": _words(CDI_FEATURE_FLAGS),
        "dp_disable_healthchecks": _xids,
        "dp_enable_healthchecks": _xids,
        "kubelet_device_plugins_dir": fields.absolute_path,
        "node_selector": fields.labels,
        "resources": lambda _, given: container_resources(given, default={}),
        "root": fields.absolute_path,
        "security_context": _security_context,
    }
    _DEFAULT_RESOURCES: ClassVar[Resources] = {
        "requests": {"cpu": "10m", "memory": "64Mi"},
        "limits": {"memory": "512Mi"},
    }
    _RESERVED: ClassVar[tuple[str, ...]] = _OURS
    _RIGHTS: ClassVar[Mapping[str, str]] = {"mig": "SYS_ADMIN"}

    def _conflicts(self) -> Iterable[fields.Conflict]:
        for name in self.env:
            where, home = f"{self._NAME}.env[{name!r}] must be absent", _FLAGS.get(name)
            yield (
                home is not None,
                f"{where}: it would silently override {home} of the configuration. Set {home} in "
                "config=PluginConfig(...)",
            )
            yield name in self._RESERVED, f"{where}: the library sets it. Remove it"
        for variable in self.environment():
            where = f"{self._NAME}.env[{variable['name']!r}]"
            yield (
                variable.get("value") == "",
                f"{where} must not be empty: an empty variable counts as set. Remove it",
            )

    def needs_rights_for(self, uses: frozenset[str]) -> list[str]:
        """Return the enabled features for which the main container needs a capability or the privileged mode.

        Args:
            uses: Features that the configuration enables.

        Returns:
            Names of features in alphabetical order, such as ``mig`` and ``volume-mounts``.
        """
        return sorted(use for use in self._RIGHTS if use in uses or getattr(self, use, False))

    def rights(self, uses: frozenset[str], platform: Platform) -> Rights:
        """Return the rights (capabilities or privileged mode) that the main container needs.

        To watch MIG devices, the container needs the capability SYS_ADMIN. On Talos 1.12 and later, the NVIDIA
        Container Toolkit lets only privileged containers watch MIG devices (NVIDIA/nvidia-container-toolkit#1740).

        Args:
            uses: Features that the configuration enables, such as ``mig``.
            platform: Platform of the nodes.
        """
        needed = self.needs_rights_for(uses)
        held = {self._RIGHTS[use] for use in needed}
        return Rights(
            add=("SYS_ADMIN",) if "SYS_ADMIN" in held else (),
            privileged="privileged" in held or ("mig" in needed and platform.mig_needs_privileged),
        )

    def environment(self) -> list[dict[str, Any]]:
        """Return the environment variables in ``self.env`` as a list in the form of a manifest."""
        return environment(self.env, visible_devices_is_managed=False)


@dataclass(frozen=True, kw_only=True)
class DevicePlugin(Component):
    """Options for the pods of the device plugin, besides the pod options of ``DevicePluginChart``.

    Attributes:
        cdi_feature_flags: Feature flags for the CDI specs that the device plugin writes, such as
            ``disable-nvsandboxutils``. The device plugin ignores unknown flags.
        cdi_disable_hooks: OCI hooks to omit in CDI specs, such as ``enable-cuda-compat``, or ``["all"]``. This option
            needs release 0.20.0 of the device plugin or later.
        dp_disable_healthchecks: XIDs (error numbers of the NVIDIA driver) that do not make a GPU unhealthy, or
            ``"all"``. The device plugin always ignores the XIDs 13, 31, 43, 45, 68 and 109, except those in
            ``dp_enable_healthchecks``.
        dp_enable_healthchecks: XIDs among the six that the device plugin ignores by default. These XIDs then make a GPU
            unhealthy. ``"all"`` selects all six.
        kubelet_device_plugins_dir: Device plugin directory of the kubelet on the node. The default is
            ``/var/lib/kubelet/device-plugins``. k0s and MicroK8s use another directory.

    Source:
        NVIDIA/k8s-device-plugin@v0.20.0:internal/rm/health.go, cmd/nvidia-device-plugin/main.go
    """

    cdi_feature_flags: Sequence[str] = ()
    cdi_disable_hooks: Sequence[str] = ()
    dp_disable_healthchecks: Xids = ()
    dp_enable_healthchecks: Xids = ()
    kubelet_device_plugins_dir: str = KUBELET_DEVICE_PLUGINS

    _NAME: ClassVar[str] = "device_plugin"
    _LISTS: ClassVar[tuple[str, ...]] = ("cdi_disable_hooks", "cdi_feature_flags", *_HEALTHCHECKS)
    _RESERVED: ClassVar[tuple[str, ...]] = (*_OURS, *(name.upper() for name in _LISTS))
    # The runtime accepts a device list in volumes only from a plugin with SYS_ADMIN. To pass device nodes, the plugin
    # needs a privileged container.
    _RIGHTS: ClassVar[Mapping[str, str]] = {
        "mig": "SYS_ADMIN",
        "volume-mounts": "SYS_ADMIN",
        "pass-device-specs": "privileged",
    }

    def __post_init__(self) -> None:
        for name in _HEALTHCHECKS:
            xids = getattr(self, name)
            if xids != "all" and not isinstance(xids, list | tuple):
                raise GpuConstructsError(f"device_plugin.{name} must be a list of XIDs or 'all', got {xids!r}")
        super().__post_init__()

    def _conflicts(self) -> Iterable[fields.Conflict]:
        disabled, enabled = self.dp_disable_healthchecks, self.dp_enable_healthchecks
        yield from super()._conflicts()
        yield (
            disabled and enabled and ("all" in (disabled, enabled) or set(disabled) & set(enabled)),
            "device_plugin.dp_disable_healthchecks and dp_enable_healthchecks must not contain the same XIDs, "
            "got "
            f"{disabled!r} and {enabled!r}. Remove one of them",
        )

    def check_release(self, release: DevicePluginRelease) -> None:
        """Raise if a release of the device plugin does not support an option. Warn about unknown CDI feature flags.

        Raises:
            GpuConstructsError: An option needs a later release.
        """
        late = (
            (self.cdi_disable_hooks and not release.has_cdi_disable_hooks, "cdi_disable_hooks", "0.20.0"),
            (
                self.dp_enable_healthchecks and not release.has_enabled_healthchecks,
                "dp_enable_healthchecks",
                "0.18.0",
            ),
        )
        fields.refuse_first(
            (
                is_late,
                f"device_plugin.{option} needs release {first} of the device plugin: release {release.version} ignores "
                "or rejects it. Remove it, or use a later release",
            )
            for is_late, option, first in late
        )
        for flag in self.cdi_feature_flags:
            if flag not in release.cdi_feature_flags:
                warn(
                    f"device_plugin.cdi_feature_flags: release {release.version} of the device plugin ignores the "
                    f"unknown flag {flag!r}"
                )

    def variables(self) -> dict[str, str]:
        """Return environment variables for the options that have no setting in the configuration file.

        The result contains one variable for each such option that is not empty, for example
        ``{"DP_DISABLE_HEALTHCHECKS": "79"}``.
        """
        lists = {name.upper(): getattr(self, name) for name in self._LISTS}
        return {name: v if isinstance(v, str) else ",".join(map(str, v)) for name, v in lists.items() if v}


@dataclass(frozen=True, kw_only=True)
class GpuFeatureDiscovery(Component):
    """Options for the pods of GPU Feature Discovery, besides the pod options of ``DevicePluginChart``.

    Attributes:
        vgpu: Whether to publish the node labels of NVIDIA vGPUs (``nvidia.com/vgpu.*``). If True, the library
            makes the container privileged, because GPU Feature Discovery must read the whole PCI configuration space.
            If False, GPU Feature Discovery logs an error on nodes with vGPUs, and omits these labels.
    """

    vgpu: bool = False

    _NAME: ClassVar[str] = "gpu_feature_discovery"
    _RIGHTS: ClassVar[Mapping[str, str]] = {"mig": "SYS_ADMIN", "vgpu": "privileged"}


@dataclass(frozen=True, kw_only=True)
class MpsControlDaemon(Component):
    """Options for the pods of the MPS control daemon, besides the pod options of ``DevicePluginChart``.

    The pods exist only if a configuration shares GPUs by MPS. Their containers are always privileged, because they
    mount a tmpfs that the node must see, and change the compute mode of the GPUs.

    Attributes:
        root: Directory on the node for the pipes, logs and shared memory of MPS. ``/run/nvidia/mps`` by default.
        host_pid: Whether the pods use the process namespace of the node. True by default, as in the Helm chart of
            NVIDIA. If the NVIDIA driver runs on the node and not in a container, the MPS server needs this namespace to
            find its own process.
    """

    root: str = DEFAULT_MPS_ROOT
    host_pid: bool = True

    _NAME: ClassVar[str] = "mps_control_daemon"
    # No limit: the MPS server keeps a context for each GPU, and all its clients end with it.
    _DEFAULT_RESOURCES: ClassVar[Resources] = {"requests": {"cpu": "10m", "memory": "64Mi"}}

    def _conflicts(self) -> Iterable[fields.Conflict]:
        context = self.security_context
        yield from super()._conflicts()
        yield (
            not self.root.strip("/"),
            "mps_control_daemon.root must be a separate directory, to which a privileged pod can write, "
            f"got {self.root!r}. Remove root to use '/run/nvidia/mps'",
        )
        yield (
            context is not None and not context.get("privileged"),
            f"mps_control_daemon.security_context must have privileged=True, got {context!r}. The daemon changes the "
            "compute mode of GPUs, so remove security_context, or set privileged in it",
        )
