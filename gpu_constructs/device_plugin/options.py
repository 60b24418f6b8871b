"""What a user may say about the pods of each program of the device plugin's image."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
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
    # The plugin reads 0 as all of them.
    fields.each(partial(fields.whole_number, minimum=1), where, () if given == "all" else given)


@dataclass(frozen=True, kw_only=True)
class Component(fields.Options):
    """Options of the pods of one program, where they differ from those of the chart.

    Attributes:
        env: Additional environment variables. Variables that silently override the configuration file are
            refused; set the option in the file.
        host_network: Whether to use the network of the node, for example if pod addresses are scarce.
        node_selector: Node labels to select, in addition to the chart's.
        resources: Requests and limits of the main container, in place of the chart's.
        security_context: Security context of the main container, in the form of Kubernetes, in place of the
            rights computed from the options. It must still hold what the configuration needs.

    Raises:
        GpuConstructsError: A variable that has a keyword or a place in the file, an empty variable, an
            unknown field of the security context.
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
            where, home = f"{self._NAME}.env[{name!r}] must not be", _FLAGS.get(name)
            yield (
                home is not None,
                f"{where} set: it would override {home} of the configuration silently; set {home} in "
                "config=PluginConfig(...)",
            )
            yield name in self._RESERVED, f"{where} set: this library sets it; leave it out"
        for variable in self.environment():
            where = f"{self._NAME}.env[{variable['name']!r}]"
            yield (
                variable.get("value") == "",
                f"{where} must not be empty: an empty variable counts as set; leave it out",
            )

    def needs_rights_for(self, uses: frozenset[str]) -> list[str]:
        """Return those of the things in use that take rights."""
        return sorted(use for use in self._RIGHTS if use in uses or getattr(self, use, False))

    def rights(self, uses: frozenset[str], platform: Platform) -> Rights:
        """Return the rights that the main container needs for what is in use.

        Watching MIG devices takes SYS_ADMIN; the container toolkit of Talos 1.12 and later grants its MIG
        monitor to privileged containers only (NVIDIA/nvidia-container-toolkit#1740).
        """
        needed = self.needs_rights_for(uses)
        held = {self._RIGHTS[use] for use in needed}
        return Rights(
            add=("SYS_ADMIN",) if "SYS_ADMIN" in held else (),
            privileged="privileged" in held or ("mig" in needed and platform.mig_needs_privileged),
        )

    def environment(self) -> list[dict[str, Any]]:
        """Return the additional variables in the form of Kubernetes."""
        return environment(self.env, visible_devices_is_managed=False)


@dataclass(frozen=True, kw_only=True)
class DevicePlugin(Component):
    """Options of the plugin's own pods, where they differ from those of the chart.

    Attributes:
        cdi_feature_flags: Flags for the generation of CDI specs, like ``disable-nvsandboxutils``. The plugin
            skips flags it does not know.
        cdi_disable_hooks: OCI hooks left out of CDI specs, like ``enable-cuda-compat``, or ``["all"]``. From
            release 0.20.0.
        dp_disable_healthchecks: XIDs that do not make a GPU unhealthy, or ``"all"``; in addition to
            13, 31, 43, 45, 68 and 109, which the plugin ignores by itself.
        dp_enable_healthchecks: XIDs of these six that make a GPU unhealthy all the same, or ``"all"``.
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

    _NAME: ClassVar[str] = "device_plugin"
    _LISTS: ClassVar[tuple[str, ...]] = ("cdi_disable_hooks", "cdi_feature_flags", *_HEALTHCHECKS)
    _RESERVED: ClassVar[tuple[str, ...]] = (*_OURS, *(name.upper() for name in _LISTS))
    # The runtime believes a device list in volumes only if the plugin holds SYS_ADMIN; handing out device nodes takes
    # a privileged container.
    _RIGHTS: ClassVar[Mapping[str, str]] = {
        "mig": "SYS_ADMIN",
        "volume-mounts": "SYS_ADMIN",
        "pass-device-specs": "privileged",
    }

    def __post_init__(self) -> None:
        for name in _HEALTHCHECKS:
            xids = getattr(self, name)
            if xids != "all" and not isinstance(xids, list | tuple):
                raise GpuConstructsError(f"device_plugin.{name} must be a list of XIDs or 'all'; got {xids!r}")
        super().__post_init__()

    def _conflicts(self) -> Iterable[fields.Conflict]:
        disabled, enabled = self.dp_disable_healthchecks, self.dp_enable_healthchecks
        yield from super()._conflicts()
        yield (
            disabled and enabled and ("all" in (disabled, enabled) or set(disabled) & set(enabled)),
            "device_plugin.dp_disable_healthchecks and dp_enable_healthchecks must not name the same XIDs: all of "
            "them disabled, the plugin watches none, and else those enabled win; got "
            f"{disabled!r} and {enabled!r}; leave one out",
        )

    def check_release(self, release: DevicePluginRelease) -> None:
        """Check that a release of the plugin has all that is set.

        Raises:
            GpuConstructsError: A setting that came with a later release.
        """
        is_late = self.cdi_disable_hooks and not release.has_cdi_disable_hooks
        message = (
            f"device_plugin.cdi_disable_hooks needs release 0.20.0 of the device plugin, which {release.version} "
            "would ignore or refuse; leave it out or move up"
        )
        fields.refuse_first([(is_late, message)])
        for flag in self.cdi_feature_flags:
            if flag not in release.cdi_feature_flags:
                warn(f"device_plugin.cdi_feature_flags: release {release.version} of the device plugin skips {flag!r}")

    def variables(self) -> dict[str, str]:
        """Return the settings that have no place in the configuration file."""
        lists = {name.upper(): getattr(self, name) for name in self._LISTS}
        return {name: v if isinstance(v, str) else ",".join(map(str, v)) for name, v in lists.items() if v}


@dataclass(frozen=True, kw_only=True)
class GpuFeatureDiscovery(Component):
    """Options of GPU Feature Discovery's own pods, where they differ from those of the chart.

    Attributes:
        vgpu: Whether to recognise vGPUs, which takes a privileged container: they show in the whole PCI
            configuration space only. Without it only the vgpu labels are missing (a logged error, not a failure).
    """

    vgpu: bool = False

    _NAME: ClassVar[str] = "gpu_feature_discovery"
    _RIGHTS: ClassVar[Mapping[str, str]] = {"mig": "SYS_ADMIN", "vgpu": "privileged"}


@dataclass(frozen=True, kw_only=True)
class MpsControlDaemon(Component):
    """Options of the MPS control daemon's own pods, where they differ from those of the chart.

    The pods exist only if a configuration shares GPUs by MPS, and are always privileged: they mount memory
    into the node's file system and change the GPUs' compute mode.

    Attributes:
        root: Directory on the node for pipes, logs and shared memory, ``/run/nvidia/mps`` by default.
        host_pid: Whether to see the node's processes, by which the MPS server finds itself when the driver runs
            outside containers; True by default, as in NVIDIA's chart.
    """

    root: str = DEFAULT_MPS_ROOT
    host_pid: bool = True

    _NAME: ClassVar[str] = "mps_control_daemon"
    # No limit: the MPS server keeps a context for each GPU, and with it dies every container it serves.
    _DEFAULT_RESOURCES: ClassVar[Resources] = {"requests": {"cpu": "10m", "memory": "64Mi"}}

    def _conflicts(self) -> Iterable[fields.Conflict]:
        context = self.security_context
        yield from super()._conflicts()
        yield (
            not self.root.strip("/"),
            "mps_control_daemon.root must be a directory of its own: it is mounted writable into a privileged pod; "
            f"got {self.root!r}; leave it out for '/run/nvidia/mps'",
        )
        yield (
            context is not None and not context.get("privileged"),
            "mps_control_daemon.security_context must be privileged: the daemon changes the GPUs' compute mode; "
            f"got {context!r}; leave it out",
        )
