"""The file the device plugin, GPU Feature Discovery and the MPS control daemon all read (``CONFIG_FILE``).

Source: NVIDIA/k8s-device-plugin@v0.18.2 and @v0.20.0, api/config/v1.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar, Literal

from gpu_constructs import _fields
from gpu_constructs._durations import LONGEST, go_duration
from gpu_constructs._yaml import yaml_text
from gpu_constructs.errors import GpuConstructsError, ShortErrors, short_errors
from gpu_constructs.platforms import DeviceListStrategy
from gpu_constructs.sharing import GPU, Sharing
from gpu_constructs.versions import DevicePluginRelease

MigStrategy = Literal["none", "single", "mixed"]

CONFIG_FILE = "/config/config.yaml"
_ANNOTATION_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/\Z")
_SHORTEST_SLEEP = timedelta(seconds=1)


def _key(key: str, env: str, *more: str, default: Any = None) -> Any:
    """Name a member's key in the file, and the variables that would override it: the main one, then others."""
    return dataclasses.field(default=default, metadata={"key": key, "env": env, "more_env": more})


def _paths(struct: Any, prefix: str, *members: str) -> None:
    for member in members:
        value = getattr(struct, member)
        if value is None:
            continue
        _fields.absolute_path(f"{prefix}.{member}", value)


def device_list_strategies(field: str, given: DeviceListStrategy | Sequence[DeviceListStrategy]) -> tuple[str, ...]:
    """Give the strategies as a tuple.

    Raises:
        GpuConstructsError: None is named, or one twice.
    """
    strategies: tuple[str, ...] = (given,) if isinstance(given, str) else tuple(given)
    if not strategies:
        raise GpuConstructsError(
            f"{field} must name at least one strategy, got an empty list: pods would get no GPU; "
            "leave it out for the platform's default"
        )
    if len(set(strategies)) < len(strategies):
        raise GpuConstructsError(f"{field} must not repeat a strategy; got {list(strategies)!r}")
    return strategies


@dataclass(frozen=True, kw_only=True)
class PluginFlags(metaclass=ShortErrors):
    """What only the plugin reads: ``flags.plugin`` in the file. None leaves a setting to the plugin.

    Attributes:
        pass_device_specs: Hand device nodes to the kubelet too, for the CPU manager's sake and against GPUs
            lost on a ``systemctl daemon-reload``; makes the pod privileged. The plugin's default is False.
        device_list_strategy: How allocated devices are handed to the runtime: ``envvar`` (the plugin's
            default), ``volume-mounts``, ``cdi-annotations``, ``cdi-cri``, or a list of them.
        device_id_strategy: ``uuid`` (the plugin's default) or ``index``.
        cdi_annotation_prefix: Of the annotations that ``cdi-annotations`` writes; ``cdi.k8s.io/`` by default.
        nvidia_ctk_path: Where nvidia-ctk or nvidia-cdi-hook lies on the node, for the hooks of a CDI spec;
            ``/usr/bin/nvidia-ctk`` by default.
        container_driver_root: Where the driver's root is mounted in the plugin; ``/driver-root`` by default.
        shared_devices_allocation_policy: Spread containers over shared devices (``distributed``, the
            plugin's default) or fill one after the other (``packed``). From release 0.20.0.
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

    def __post_init__(self) -> None:
        _fields.members(self, "flags.plugin")
        if self.device_list_strategy is not None:
            strategies = device_list_strategies("flags.plugin.device_list_strategy", self.device_list_strategy)
            if not isinstance(self.device_list_strategy, str):
                object.__setattr__(self, "device_list_strategy", strategies)
        if self.cdi_annotation_prefix is not None and not _ANNOTATION_PREFIX.match(self.cdi_annotation_prefix):
            raise GpuConstructsError(
                "flags.plugin.cdi_annotation_prefix must be a domain and a slash, like 'cdi.k8s.io/'; "
                f"got {self.cdi_annotation_prefix!r}"
            )
        _paths(self, "flags.plugin", "nvidia_ctk_path", "container_driver_root")


@dataclass(frozen=True, kw_only=True)
class GfdFlags(metaclass=ShortErrors):
    """What only GPU Feature Discovery reads: ``flags.gfd`` in the file. None leaves a setting to the program.

    Attributes:
        oneshot: Label once and exit. For a Job of your own: in a DaemonSet it would restart for ever.
        no_timestamp: Leave out the label ``nvidia.com/gfd.timestamp``.
        sleep_interval: How long between two looks, at least one second; the program's default is 60 seconds.
            ``"infinite"`` looks once (from release 0.19.0). A number without a unit would be nanoseconds in
            the file, so there is none here.
        output_file: Where labels are written when they are not published as a NodeFeature; empty is stdout.
        machine_type_file: Read for ``nvidia.com/gpu.machine``; ``/sys/class/dmi/id/product_name`` by default.
    """

    oneshot: bool | None = _key("oneshot", "GFD_ONESHOT")
    no_timestamp: bool | None = _key("noTimestamp", "GFD_NO_TIMESTAMP")
    sleep_interval: timedelta | Literal["infinite"] | None = _key("sleepInterval", "GFD_SLEEP_INTERVAL")
    output_file: str | None = _key("outputFile", "GFD_OUTPUT_FILE")
    machine_type_file: str | None = _key("machineTypeFile", "GFD_MACHINE_TYPE_FILE")

    def __post_init__(self) -> None:
        field = "flags.gfd.sleep_interval"
        if isinstance(self.sleep_interval, int | float) or (
            isinstance(self.sleep_interval, str) and self.sleep_interval != "infinite"
        ):
            raise GpuConstructsError(
                f"{field} must be a datetime.timedelta or 'infinite'; got {self.sleep_interval!r}; "
                "write timedelta(seconds=60)"
            )
        _fields.members(self, "flags.gfd")
        if isinstance(self.sleep_interval, timedelta) and self.sleep_interval < _SHORTEST_SLEEP:
            raise GpuConstructsError(
                f"{field} must be at least one second; got {go_duration(self.sleep_interval)!r}; "
                "a shorter one keeps a core busy reading labels that change once a day"
            )
        if isinstance(self.sleep_interval, timedelta) and self.sleep_interval > LONGEST:
            raise GpuConstructsError(
                f"{field} must be at most 292 years, all that fits 64 bits; got {self.sleep_interval!r}; "
                "'infinite' looks once (from release 0.19.0)"
            )
        if self.output_file:
            _paths(self, "flags.gfd", "output_file")
        _paths(self, "flags.gfd", "machine_type_file")


@dataclass(frozen=True, kw_only=True)
class Flags(metaclass=ShortErrors):
    """What the programs share: ``flags`` in the file. None leaves a setting to the programs.

    Attributes:
        mig_strategy: How MIG devices are advertised: ``none`` (the default), ``single`` as
            ``nvidia.com/gpu``, ``mixed`` each profile under its own name.
        fail_on_init_error: False keeps the pods quietly running on a node without a usable GPU; True, the
            default, restarts them until there is one.
        mps_root: Directory of the MPS control daemon on the node; the chart's default is ``/run/nvidia/mps``.
        nvidia_driver_root: Root of the driver's files on the node; ``/`` by default.
        nvidia_dev_root: Root of the device nodes on the node; the driver's root by default.
        gdrcopy_enabled: Hand GDRCopy devices to containers. False by default.
        gds_enabled: Hand GPUDirect Storage devices to containers. False by default.
        mofed_enabled: Hand MOFED (InfiniBand) devices to containers. False by default.
        use_node_feature_api: Whether GFD publishes a NodeFeature object; False writes a file.
        device_discovery_strategy: ``auto`` (the default), ``nvml``, ``tegra``; ``vfio`` for GFD alone.
        plugin: What only the plugin reads.
        gfd: What only GPU Feature Discovery reads.
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

    def __post_init__(self) -> None:
        _fields.members(self, "flags")
        _paths(self, "flags", "mps_root", "nvidia_driver_root", "nvidia_dev_root")


@dataclass(frozen=True, kw_only=True)
class Imex(metaclass=ShortErrors):
    """IMEX channels handed to every GPU container on fabric-attached nodes: ``imex`` in the file.

    Attributes:
        channel_ids: ``[]`` or ``[0]``; the plugin knows no other channel.
        required: Whether the plugin fails on a node without the channel's device node, instead of leaving
            the channel out.
    """

    channel_ids: Sequence[int] = _key("channelIDs", "IMEX_CHANNEL_IDS", default=())
    required: bool = _key("required", "IMEX_REQUIRED", default=False)

    def __post_init__(self) -> None:
        _fields.members(self, "imex")
        ids = list(self.channel_ids)
        object.__setattr__(self, "channel_ids", tuple(ids))
        if ids not in ([], [0]) or any(isinstance(channel, bool) for channel in ids):
            raise GpuConstructsError(f"imex.channel_ids must be [] or [0], the one channel there is; got {ids!r}")
        if self.required and not ids:
            raise GpuConstructsError("imex.required needs channel_ids=[0]; got required=True without a channel")


@dataclass(frozen=True, kw_only=True)
class PluginConfig(metaclass=ShortErrors):
    """The configuration file of the plugin, of GPU Feature Discovery and of the MPS control daemon.

    Everything that a file can say is here, but for what the programs read and then ignore: ``resources``,
    and ``rename`` and ``devices`` of a shared resource.

    Attributes:
        flags: Settings of the programs.
        sharing: ``Sharing.none()`` by default.
        imex: IMEX channels; none by default.

    Raises:
        GpuConstructsError: A value that the programs would refuse, or take and ignore; MPS beside MIG; MIG
            devices shared without ``mig_strategy="mixed"``.

    Source:
        NVIDIA/k8s-device-plugin@v0.20.0:api/config/v1
    """

    _NOT_TAKEN: ClassVar[dict[str, str]] = {
        "resources": "the plugin reads it, warns and throws it away, so resources keep their names; leave it out"
    }

    flags: Flags = dataclasses.field(default=Flags())
    sharing: Sharing = dataclasses.field(default=Sharing.none())
    imex: Imex = dataclasses.field(default=Imex())

    def __post_init__(self) -> None:
        _fields.members(self, "config")
        mig = self.mig_strategy
        if self.sharing.strategy == "mps" and mig != "none":
            raise GpuConstructsError(
                f"flags.mig_strategy must be 'none' with Sharing.mps: MPS does not share MIG devices; got {mig!r}; "
                "use Sharing.time_slicing"
            )
        if self.sharing.vram_unit is not None and mig == "single":
            raise GpuConstructsError(
                "flags.mig_strategy must not be 'single' with Sharing.vram_units, which counts one memory in each "
                "node, where MIG devices have several; use 'mixed'"
            )
        named = [resource for resource in self.sharing.resources if resource != GPU]
        if named and mig != "mixed":
            raise GpuConstructsError(
                f"sharing.resources names {named[0]!r}, which exists with flags.mig_strategy 'mixed' only; got {mig!r}"
            )

    @property
    def mig_strategy(self) -> MigStrategy:
        """How MIG devices are advertised, the programs' default included."""
        return self.flags.mig_strategy or "none"

    @property
    def device_list_strategy(self) -> tuple[str, ...]:
        """How devices are handed to the runtime; empty where the file leaves it to the plugin."""
        given = self.flags.plugin.device_list_strategy
        return () if given is None else device_list_strategies("flags.plugin.device_list_strategy", given)

    def check_release(self, release: DevicePluginRelease) -> None:
        """Refuse what a release of the plugin would ignore.

        Raises:
            GpuConstructsError: A setting that came with a later release.
        """
        late = {
            "flags.plugin.shared_devices_allocation_policy": (
                self.flags.plugin.shared_devices_allocation_policy is not None
                and not release.has_shared_devices_allocation_policy,
                "0.20.0",
            ),
            "flags.gfd.sleep_interval 'infinite'": (
                self.flags.gfd.sleep_interval == "infinite" and not release.has_infinite_sleep_interval,
                "0.19.0",
            ),
            "sharing.mps.fail_requests_greater_than_one=False": (
                self.sharing.strategy == "mps"
                and not self.sharing.fail_requests_greater_than_one
                and not release.honours_mps_fail_requests,
                "0.20.0",
            ),
        }
        for field, (is_late, first) in late.items():
            if is_late:
                raise GpuConstructsError(
                    f"{field} needs release {first} of the device plugin, which {release.version} would ignore or "
                    "refuse; leave it out or move up"
                )

    def document(self) -> dict[str, Any]:
        """Give the file's content; what is None is left out."""
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
        """Give the file's text."""
        return yaml_text(self.document())

    @classmethod
    @short_errors
    def from_yaml(cls, text: str) -> PluginConfig:
        """Read an existing file, more strictly than the plugin does.

        Args:
            text: The file; the text below a key of the ConfigMap, not the ConfigMap itself.

        Raises:
            GpuConstructsError: A key the plugin does not know, knows elsewhere, or knows and ignores; a key
                given twice; a value it would refuse. Each with its line.
        """
        from gpu_constructs.device_plugin.config_reader import read

        return read(text)


def environment_variables() -> Mapping[str, str]:
    """Give the variables that would override the file without a word, with the member each overrides."""
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
