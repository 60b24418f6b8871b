"""The configuration file that the device plugin, GPU Feature Discovery and the MPS control daemon read.

Source: NVIDIA/k8s-device-plugin@v0.18.2 and @v0.20.0, api/config/v1.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, ClassVar, Literal

from gpu_constructs.catalog.platforms import DeviceListStrategy
from gpu_constructs.catalog.sharing import GPU, Sharing
from gpu_constructs.catalog.versions import DevicePluginRelease
from gpu_constructs.errors import GpuConstructsError, short_errors
from gpu_constructs.kube import fields
from gpu_constructs.kube.durations import LONGEST, go_duration
from gpu_constructs.kube.yaml_text import yaml_text
from gpu_constructs.records import dataclass

MigStrategy = Literal["none", "single", "mixed"]

CONFIG_FILE = "/config/config.yaml"
_SHORTEST_SLEEP = timedelta(seconds=1)


def _key(key: str, env: str, *more: str, default: Any = None) -> Any:
    return dataclasses.field(default=default, metadata={"key": key, "env": env, "more_env": more})


def device_list_strategies(
    field: str, given: DeviceListStrategy | Sequence[DeviceListStrategy]
) -> tuple[DeviceListStrategy, ...]:
    """Return a tuple with the given device list strategy or strategies, such as ``("envvar",)``.

    Raises:
        GpuConstructsError: The list is empty or repeats a strategy.
    """
    strategies: tuple[DeviceListStrategy, ...] = (given,) if isinstance(given, str) else tuple(given)
    fields.refuse_first(
        [
            (
                not strategies,
                f"{field} must name at least one strategy, got an empty list: pods would get no GPU. "
                "Remove it to use the default of the platform",
            ),
            (
                len(set(strategies)) < len(strategies),
                f"{field} must not repeat a strategy, got {list(strategies)!r}",
            ),
        ]
    )
    return strategies


def _sleep_interval(field: str, given: timedelta | str) -> None:
    fields.refuse_first(
        [
            (
                isinstance(given, timedelta) and given < _SHORTEST_SLEEP,
                f"{field} must be at least one second, got {isinstance(given, timedelta) and go_duration(given)!r}. "
                "A shorter interval keeps a CPU core busy",
            ),
            (
                isinstance(given, timedelta) and given > LONGEST,
                f"{field} must be at most 292 years, the limit of 64 bits, got {given!r}. "
                "Use 'infinite' to set the labels only once (from release 0.19.0)",
            ),
        ]
    )


@dataclass(frozen=True, kw_only=True)
class _Section(fields.Options):
    """Base class for a section of the device plugin's configuration file, such as ``flags.plugin``."""

    _CHECKS: ClassVar[fields.Checks] = {
        "cdi_annotation_prefix": fields.matching(
            r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/\Z", "be a domain and a slash, like 'cdi.k8s.io/'"
        ),
        "container_driver_root": fields.absolute_path,
        "device_list_strategy": device_list_strategies,
        "machine_type_file": fields.absolute_path,
        "mps_root": fields.absolute_path,
        "nvidia_ctk_path": fields.absolute_path,
        "nvidia_dev_root": fields.absolute_path,
        "nvidia_driver_root": fields.absolute_path,
        "output_file": fields.path_or_nothing,
        "sleep_interval": _sleep_interval,
    }


@dataclass(frozen=True, kw_only=True)
class PluginFlags(_Section):
    """The settings of ``flags.plugin``, which only the device plugin reads. None keeps the default of the plugin.

    Attributes:
        pass_device_specs: Whether the device plugin also passes device nodes to the kubelet. Set it to True if the
            kubelet uses the CPU manager, or if containers lose their GPUs after ``systemctl daemon-reload``. The
            container of the device plugin is then privileged. None: False.
        device_list_strategy: Method by which the device plugin passes the allocated devices to the container runtime:
            ``envvar``, ``volume-mounts``, ``cdi-annotations``, ``cdi-cri``, or a list of these. None: ``envvar``.
        device_id_strategy: Format of the IDs of the allocated devices: ``uuid`` or ``index``. None: ``uuid``.
        cdi_annotation_prefix: Prefix of the annotations of the strategy ``cdi-annotations``. None: ``cdi.k8s.io/``.
        nvidia_ctk_path: Path of ``nvidia-ctk`` or ``nvidia-cdi-hook`` on the node. The hooks in CDI specs run this
            program. None: ``/usr/bin/nvidia-ctk``.
        container_driver_root: Path at which the container of the device plugin mounts ``Flags.nvidia_driver_root``.
            None: ``/driver-root``.
        shared_devices_allocation_policy: Method by which the device plugin selects a device for a container if several
            containers share devices. ``distributed`` spreads containers over the devices, and ``packed`` fills one
            device after the other. None: ``distributed``. This option needs release 0.20.0 or later.
    """

    pass_device_specs: bool | None = _key("passDeviceSpecs", "PASS_DEVICE_SPECS")
    device_list_strategy: DeviceListStrategy | Sequence[DeviceListStrategy] | None = _key(
        "deviceListStrategy", "DEVICE_LIST_STRATEGY"
    )
    device_id_strategy: Literal["uuid", "index"] | None = _key("deviceIDStrategy", "DEVICE_ID_STRATEGY")
    cdi_annotation_prefix: str | None = _key("cdiAnnotationPrefix", "CDI_ANNOTATION_PREFIX")
    nvidia_ctk_path: str | None = _key("nvidiaCTKPath", "NVIDIA_CDI_HOOK_PATH", "NVIDIA_CTK_PATH")
    container_driver_root: str | None = _key("containerDriverRoot", "DRIVER_ROOT_CTR_PATH", "CONTAINER_DRIVER_ROOT")
    shared_devices_allocation_policy: Literal["distributed", "packed"] | None = _key(
        "sharedDevicesAllocationPolicy", "SHARED_DEVICES_ALLOCATION_POLICY"
    )

    _NAME: ClassVar[str] = "flags.plugin"

    _KEPT: ClassVar[fields.Kept] = {
        "device_list_strategy": lambda given: tuple(given) if isinstance(given, list) else given
    }


@dataclass(frozen=True, kw_only=True)
class GfdFlags(_Section):
    """The settings of ``flags.gfd``, which only GPU Feature Discovery reads. None keeps the default of this program.

    Attributes:
        oneshot: Whether GPU Feature Discovery exits after it has set the node labels once. Use it only in a Job,
            because a DaemonSet would restart the container forever.
        no_timestamp: Whether GPU Feature Discovery omits the node label ``nvidia.com/gfd.timestamp``.
        sleep_interval: Time between two updates of the node labels, as a ``timedelta`` of at least one second. None: 60
            seconds. With ``"infinite"``, GPU Feature Discovery sets the labels only once. This value needs release
            0.19.0 or later.
        output_file: Path of the file to which GPU Feature Discovery writes the labels if it creates no NodeFeature
            object. If empty, it writes the labels to standard output.
        machine_type_file: Path of the file with the value of the node label ``nvidia.com/gpu.machine``. None:
            ``/sys/class/dmi/id/product_name``.
    """

    oneshot: bool | None = _key("oneshot", "GFD_ONESHOT")
    no_timestamp: bool | None = _key("noTimestamp", "GFD_NO_TIMESTAMP")
    sleep_interval: timedelta | Literal["infinite"] | None = _key("sleepInterval", "GFD_SLEEP_INTERVAL")
    output_file: str | None = _key("outputFile", "GFD_OUTPUT_FILE")
    machine_type_file: str | None = _key("machineTypeFile", "GFD_MACHINE_TYPE_FILE")

    _NAME: ClassVar[str] = "flags.gfd"

    def __post_init__(self) -> None:
        given: Any = self.sleep_interval
        if isinstance(given, int | float | str) and given != "infinite":
            raise GpuConstructsError(
                f"flags.gfd.sleep_interval must be a datetime.timedelta or 'infinite', got {given!r}. "
                "Write, for example, timedelta(seconds=60)"
            )
        super().__post_init__()


@dataclass(frozen=True, kw_only=True)
class Flags(_Section):
    """The settings that several components read: ``flags`` in the configuration file of the device plugin.

    The components are the device plugin, GPU Feature Discovery and the MPS control daemon. None keeps the default of
    the components.

    Attributes:
        mig_strategy: Resource names of MIG devices: ``single`` (``nvidia.com/gpu``), ``mixed`` (one name for each
            profile, such as ``nvidia.com/mig-1g.5gb``) or ``none``, which ignores MIG. None: ``none``.
        fail_on_init_error: Whether a pod fails on a node without a usable GPU. None: True. If False, the pod keeps
            running but has no effect.
        mps_root: Directory of the MPS control daemon on the node. None: ``/run/nvidia/mps``.
        nvidia_driver_root: Root directory of the NVIDIA driver on the node. None: ``/``.
        nvidia_dev_root: Directory on the node that contains the device nodes, such as ``dev/nvidia0``. None: the value
            of ``nvidia_driver_root``.
        gdrcopy_enabled: Whether containers get GDRCopy devices. None: False.
        gds_enabled: Whether containers get GPUDirect Storage devices. None: False.
        mofed_enabled: Whether containers get MOFED (InfiniBand) devices. None: False.
        use_node_feature_api: Whether GPU Feature Discovery publishes node labels in a NodeFeature object, not in a
            file. If a ``DevicePluginChart`` installs GPU Feature Discovery, False is not valid, and None means True.
        device_discovery_strategy: Method by which the components find GPUs: ``auto``, ``nvml`` or ``tegra``. Only GPU
            Feature Discovery also supports ``vfio``. None: ``auto``.
        plugin: Settings that only the device plugin reads.
        gfd: Settings that only GPU Feature Discovery reads.
    """

    mig_strategy: MigStrategy | None = _key("migStrategy", "MIG_STRATEGY", "GFD_MIG_STRATEGY")
    fail_on_init_error: bool | None = _key("failOnInitError", "FAIL_ON_INIT_ERROR", "GFD_FAIL_ON_INIT_ERROR")
    mps_root: str | None = _key("mpsRoot", "MPS_ROOT")
    nvidia_driver_root: str | None = _key("nvidiaDriverRoot", "NVIDIA_DRIVER_ROOT")
    nvidia_dev_root: str | None = _key("nvidiaDevRoot", "NVIDIA_DEV_ROOT")
    gdrcopy_enabled: bool | None = _key("gdrcopyEnabled", "GDRCOPY_ENABLED")
    gds_enabled: bool | None = _key("gdsEnabled", "GDS_ENABLED")
    mofed_enabled: bool | None = _key("mofedEnabled", "MOFED_ENABLED")
    use_node_feature_api: bool | None = _key("useNodeFeatureAPI", "GFD_USE_NODE_FEATURE_API", "USE_NODE_FEATURE_API")
    device_discovery_strategy: Literal["auto", "nvml", "tegra", "vfio"] | None = _key(
        "deviceDiscoveryStrategy", "DEVICE_DISCOVERY_STRATEGY"
    )
    plugin: PluginFlags = dataclasses.field(default=PluginFlags(), metadata={"key": "plugin"})
    gfd: GfdFlags = dataclasses.field(default=GfdFlags(), metadata={"key": "gfd"})

    _NAME: ClassVar[str] = "flags"


@dataclass(frozen=True, kw_only=True)
class Imex(_Section):
    """The settings of ``imex``: the IMEX channels that each GPU container gets on nodes with an NVLink fabric.

    Attributes:
        channel_ids: IDs of the channels, ``[]`` or ``[0]``. The device plugin supports only channel 0.
        required: Whether the device plugin fails on a node without the device node of the channel. If False, containers
            on such a node get no channel.
    """

    channel_ids: Sequence[int] = _key("channelIDs", "IMEX_CHANNEL_IDS", default=())
    required: bool = _key("required", "IMEX_REQUIRED", default=False)

    _NAME: ClassVar[str] = "imex"

    _KEPT: ClassVar[fields.Kept] = {"channel_ids": tuple}

    def _conflicts(self) -> Iterable[fields.Conflict]:
        ids = list(self.channel_ids)
        is_other = ids not in ([], [0]) or any(isinstance(channel, bool) for channel in ids)
        yield is_other, f"imex.channel_ids must be [] or [0], the only channel, got {ids!r}"
        yield (
            self.required and not ids,
            "imex.required needs channel_ids=[0], got required=True without a channel",
        )


@dataclass(frozen=True, kw_only=True)
class PluginConfig(_Section):
    """A configuration file, which the device plugin, GPU Feature Discovery and the MPS control daemon read.

    The class does not support the keys that the device plugin ignores. These are ``resources`` at the top level, and
    ``rename`` and ``devices`` of a shared resource.

    Attributes:
        flags: Settings of the device plugin, GPU Feature Discovery and the MPS control daemon.
        sharing: Sharing of GPUs. ``Sharing.none()`` by default.
        imex: IMEX channels of GPU containers. By default, containers get no channels.

    Raises:
        GpuConstructsError: If a component would reject or ignore a value, if the configuration combines MPS with MIG,
            or if it shares MIG devices and ``mig_strategy`` is not ``mixed``.

    Source:
        NVIDIA/k8s-device-plugin@v0.20.0:api/config/v1
    """

    _NOT_TAKEN: ClassVar[dict[str, str]] = {
        "resources": "the plugin warns about it and ignores it, so resources keep their names. Remove it"
    }

    flags: Flags = dataclasses.field(default=Flags())
    sharing: Sharing = dataclasses.field(default=Sharing.none())
    imex: Imex = dataclasses.field(default=Imex())

    _NAME: ClassVar[str] = "config"

    def _conflicts(self) -> Iterable[fields.Conflict]:
        mig = self.mig_strategy
        named = [resource for resource in self.sharing.resources if resource != GPU]
        return [
            (
                self.sharing.strategy == "mps" and mig != "none",
                f"flags.mig_strategy must be 'none' with Sharing.mps: MPS does not share MIG devices, got {mig!r}. "
                "Use Sharing.time_slicing",
            ),
            (
                self.sharing.vram_unit is not None and mig == "single",
                "flags.mig_strategy must not be 'single' with Sharing.vram_units, because MIG devices differ in "
                "memory. Use 'mixed'",
            ),
            (
                named and mig != "mixed",
                f"sharing.resources names {next(iter(named), None)!r}, which needs flags.mig_strategy 'mixed', got "
                f"{mig!r}. Set 'mixed'",
            ),
        ]

    @property
    def mig_strategy(self) -> MigStrategy:
        """MIG strategy of the configuration: the value of ``flags.mig_strategy``, or ``none`` if this value is None."""
        return self.flags.mig_strategy or "none"

    @property
    def device_list_strategy(self) -> tuple[str, ...]:
        """Device list strategies in ``flags.plugin``, such as ``envvar``; empty if the configuration sets none."""
        given = self.flags.plugin.device_list_strategy
        return () if given is None else device_list_strategies("flags.plugin.device_list_strategy", given)

    def check_release(self, release: DevicePluginRelease) -> None:
        """Raise if a release of the device plugin does not support a setting of the configuration.

        Raises:
            GpuConstructsError: A setting needs a later release.
        """
        flags, sharing = self.flags, self.sharing
        late = (
            (
                flags.plugin.shared_devices_allocation_policy is not None
                and not release.has_shared_devices_allocation_policy,
                "flags.plugin.shared_devices_allocation_policy",
                "0.20.0",
            ),
            (
                flags.gdrcopy_enabled is not None and not release.has_gdrcopy_enabled,
                "flags.gdrcopy_enabled",
                "0.18.0",
            ),
            (
                flags.gfd.sleep_interval == "infinite" and not release.has_infinite_sleep_interval,
                "flags.gfd.sleep_interval 'infinite'",
                "0.19.0",
            ),
            (
                sharing.strategy == "mps"
                and not sharing.fail_requests_greater_than_one
                and not release.honours_mps_fail_requests,
                "sharing.mps.fail_requests_greater_than_one=False",
                "0.20.0",
            ),
        )
        ignored = (
            f"of the device plugin: release {release.version} ignores or rejects it. Remove it, or use a later release"
        )
        fields.refuse_first((is_late, f"{field} needs release {first} {ignored}") for is_late, field, first in late)

    def document(self) -> dict[str, Any]:
        """Return the content of the configuration file as a dict. The dict omits settings that are None."""
        document: dict[str, Any] = {"version": "v1"}
        flags = _members(self.flags)
        if flags:
            document["flags"] = flags
        if self.sharing.strategy != "none":
            key = {"time-slicing": "timeSlicing", "mps": "mps"}[self.sharing.strategy]
            shared: dict[str, Any] = {"renameByDefault": self.sharing.rename_by_default}
            shared["failRequestsGreaterThanOne"] = self.sharing.fail_requests_greater_than_one
            shared["resources"] = [{"name": n, "replicas": r} for n, r in self.sharing.resources.items()]
            document["sharing"] = {key: shared}
        if self.imex.channel_ids:
            document["imex"] = {"channelIDs": list(self.imex.channel_ids), "required": self.imex.required}
        return document

    def to_yaml(self) -> str:
        """Return the text of the configuration file, in YAML."""
        return yaml_text(self.document())

    @classmethod
    @short_errors
    def from_yaml(cls, text: str) -> PluginConfig:
        """Create a configuration from the text of a configuration file, and reject mistakes that the plugin ignores.

        Args:
            text: Content of the configuration file, in YAML. In a ConfigMap, this is the value of one key.

        Raises:
            GpuConstructsError: If a key is unknown, in the wrong section or a duplicate, or if the device plugin would
                ignore a key or reject its value. The message states the line.
        """
        from gpu_constructs.device_plugin.config_reader import read

        return read(text, cls)


def environment_variables() -> Mapping[str, str]:
    """Return the setting that each environment variable overrides, such as ``{"MPS_ROOT": "flags.mps_root"}``."""
    return {
        name: f"{prefix}.{field.name}"
        for prefix, owner in (("flags", Flags), ("flags.plugin", PluginFlags), ("flags.gfd", GfdFlags), ("imex", Imex))
        for field in dataclasses.fields(owner)
        if "env" in field.metadata
        for name in (field.metadata["env"], *field.metadata["more_env"])
    }


def _members(struct: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in dataclasses.fields(struct):
        value = getattr(struct, field.name)
        if dataclasses.is_dataclass(value):
            value = _members(value) or None
        elif isinstance(value, timedelta):
            value = go_duration(value)
        elif isinstance(value, list | tuple):
            value = list(value)
        if value is not None:
            found[field.metadata["key"]] = value
    return found
