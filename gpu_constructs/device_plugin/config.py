"""The file the device plugin, GPU Feature Discovery and the MPS control daemon all read (``CONFIG_FILE``).

Source: NVIDIA/k8s-device-plugin@v0.18.2 and @v0.20.0, api/config/v1.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar, Literal

from gpu_constructs.catalog.platforms import DeviceListStrategy
from gpu_constructs.catalog.sharing import GPU, Sharing
from gpu_constructs.catalog.versions import DevicePluginRelease
from gpu_constructs.errors import GpuConstructsError, short_errors
from gpu_constructs.kube import fields
from gpu_constructs.kube.durations import LONGEST, go_duration
from gpu_constructs.kube.yaml_text import yaml_text

MigStrategy = Literal["none", "single", "mixed"]

CONFIG_FILE = "/config/config.yaml"
_SHORTEST_SLEEP = timedelta(seconds=1)


def _key(key: str, env: str, *more: str, default: Any = None) -> Any:
    """Return a member with its key in the file and the variables that override it: the main one, then others."""
    return dataclasses.field(default=default, metadata={"key": key, "env": env, "more_env": more})


def device_list_strategies(
    field: str, given: DeviceListStrategy | Sequence[DeviceListStrategy]
) -> tuple[DeviceListStrategy, ...]:
    """Return the strategies as a tuple.

    Raises:
        GpuConstructsError: No strategy is named, or one twice.
    """
    strategies: tuple[DeviceListStrategy, ...] = (given,) if isinstance(given, str) else tuple(given)
    fields.refuse_first(
        [
            (
                not strategies,
                f"{field} must name at least one strategy, got an empty list: pods would get no GPU; "
                "leave it out for the platform's default",
            ),
            (
                len(set(strategies)) < len(strategies),
                f"{field} must not repeat a strategy; got {list(strategies)!r}",
            ),
        ]
    )
    return strategies


def _sleep_interval(field: str, given: timedelta | str) -> None:
    fields.refuse_first(
        [
            (
                isinstance(given, timedelta) and given < _SHORTEST_SLEEP,
                f"{field} must be at least one second; got {isinstance(given, timedelta) and go_duration(given)!r}; "
                "a shorter one keeps a core busy reading labels that change once a day",
            ),
            (
                isinstance(given, timedelta) and given > LONGEST,
                f"{field} must be at most 292 years, all that fits 64 bits; got {given!r}; "
                "'infinite' looks once (from release 0.19.0)",
            ),
        ]
    )


@dataclass(frozen=True, kw_only=True)
class _Section(fields.Options):
    """A part of the file."""

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

    _NAME: ClassVar[str] = "flags.plugin"

    _KEPT: ClassVar[fields.Kept] = {
        "device_list_strategy": lambda given: tuple(given) if isinstance(given, list) else given
    }


@dataclass(frozen=True, kw_only=True)
class GfdFlags(_Section):
    """What only GPU Feature Discovery reads: ``flags.gfd`` in the file. None leaves a setting to the program.

    Attributes:
        oneshot: Label once and exit. For a Job of your own: in a DaemonSet it would restart forever.
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

    _NAME: ClassVar[str] = "flags.gfd"

    def __post_init__(self) -> None:
        given: Any = self.sleep_interval
        if isinstance(given, int | float | str) and given != "infinite":
            raise GpuConstructsError(
                f"flags.gfd.sleep_interval must be a datetime.timedelta or 'infinite'; got {given!r}; "
                "write timedelta(seconds=60)"
            )
        super().__post_init__()


@dataclass(frozen=True, kw_only=True)
class Flags(_Section):
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

    _NAME: ClassVar[str] = "flags"


@dataclass(frozen=True, kw_only=True)
class Imex(_Section):
    """IMEX channels handed to every GPU container on fabric-attached nodes: ``imex`` in the file.

    Attributes:
        channel_ids: ``[]`` or ``[0]``; the plugin knows no other channel.
        required: Whether the plugin fails on a node without the channel's device node, instead of leaving
            the channel out.
    """

    channel_ids: Sequence[int] = _key("channelIDs", "IMEX_CHANNEL_IDS", default=())
    required: bool = _key("required", "IMEX_REQUIRED", default=False)

    _NAME: ClassVar[str] = "imex"

    _KEPT: ClassVar[fields.Kept] = {"channel_ids": tuple}

    def _conflicts(self) -> Iterable[fields.Conflict]:
        ids = list(self.channel_ids)
        is_other = ids not in ([], [0]) or any(isinstance(channel, bool) for channel in ids)
        yield is_other, f"imex.channel_ids must be [] or [0], the one channel there is; got {ids!r}"
        yield (
            self.required and not ids,
            "imex.required needs channel_ids=[0]; got required=True without a channel",
        )


@dataclass(frozen=True, kw_only=True)
class PluginConfig(_Section):
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

    _NAME: ClassVar[str] = "config"

    def _conflicts(self) -> Iterable[fields.Conflict]:
        mig = self.mig_strategy
        named = [resource for resource in self.sharing.resources if resource != GPU]
        return [
            (
                self.sharing.strategy == "mps" and mig != "none",
                f"flags.mig_strategy must be 'none' with Sharing.mps: MPS does not share MIG devices; got {mig!r}; "
                "use Sharing.time_slicing",
            ),
            (
                self.sharing.vram_unit is not None and mig == "single",
                "flags.mig_strategy must not be 'single' with Sharing.vram_units, which counts one memory in each "
                "node, where MIG devices have several; use 'mixed'",
            ),
            (
                named and mig != "mixed",
                f"sharing.resources names {next(iter(named), None)!r}, which exists with flags.mig_strategy 'mixed' "
                f"only; got {mig!r}",
            ),
        ]

    @property
    def mig_strategy(self) -> MigStrategy:
        """MIG strategy, the programs' default included."""
        return self.flags.mig_strategy or "none"

    @property
    def device_list_strategy(self) -> tuple[str, ...]:
        """Device list strategies; empty if the file leaves them to the plugin."""
        given = self.flags.plugin.device_list_strategy
        return () if given is None else device_list_strategies("flags.plugin.device_list_strategy", given)

    def check_release(self, release: DevicePluginRelease) -> None:
        """Check that a release of the plugin has all that is set.

        Raises:
            GpuConstructsError: A setting that came with a later release.
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
        ignored = f"of the device plugin, which {release.version} would ignore or refuse; leave it out or move up"
        fields.refuse_first((is_late, f"{field} needs release {first} {ignored}") for is_late, field, first in late)

    def document(self) -> dict[str, Any]:
        """Return the content of the file; what is None is left out."""
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
        """Return the text of the file."""
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

        return read(text, cls)


def environment_variables() -> Mapping[str, str]:
    """Return the variables that silently override the file, with the member each overrides."""
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
