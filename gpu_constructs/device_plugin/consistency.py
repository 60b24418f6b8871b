"""What only several options of the device plugin's chart together can get wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpu_constructs import versions
from gpu_constructs.device_plugin.config import Flags, PluginConfig
from gpu_constructs.device_plugin.configs import Configs, object_suffix
from gpu_constructs.device_plugin.delivery import DEFAULT_MPS_ROOT, Defaults
from gpu_constructs.errors import GpuConstructsError, warn
from gpu_constructs.platforms import Platform
from gpu_constructs.provided import GpuOffer, placement_of
from gpu_constructs.sharing import GPU, Sharing

_LONGEST_NAME = 63


def plugin_configs(configs: Configs) -> list[PluginConfig]:
    """Give every configuration we see: those by name, and the settings that override an external file."""
    return list(configs.configs.values()) or [PluginConfig(flags=configs.flags)]


def advertised_resources(configs: Configs) -> dict[str, Sharing]:
    """Give the resources of all nodes; where nodes differ, with the sharing that asks least of a container."""
    offered: dict[str, Sharing] = {}
    for config in plugin_configs(configs):
        names = {GPU, *config.sharing.resources}
        for resource in names:
            sharing = config.sharing if resource in config.sharing.resources else Sharing.none()
            name = sharing.resource_name(resource)
            if name not in offered or offered[name].fail_requests_greater_than_one:
                offered[name] = sharing
        if config.mig_strategy == "mixed":
            offered["nvidia.com/mig-*"] = Sharing.none()
    if configs.delivery == "external":
        offered[f"{GPU}.shared"] = Sharing.none()
        # A variable, which wins over the files unseen.
        if configs.flags.mig_strategy in (None, "mixed"):
            offered["nvidia.com/mig-*"] = Sharing.none()
    return offered


def gpu_offers(
    configs: Configs, pod_specs: Mapping[str, Mapping[str, Any]], release: versions.DevicePluginRelease
) -> tuple[GpuOffer, ...]:
    """Give how each configuration advertises GPUs; none for those of an external file.

    Args:
        configs: The configurations.
        pod_specs: The pod spec that each is served by.
        release: Release of the device plugin.
    """
    return tuple(
        GpuOffer(
            sharing=config.sharing,
            mig_strategy=config.mig_strategy,
            config=name if len(configs.configs) > 1 else "",
            is_default=name == configs.default,
            pod_spec=placement_of(pod_specs[name]),
            names_mig_attributes=release.names_mig_attributes,
        )
        for name, config in configs.configs.items()
    )


def plugin_pods(configs: Configs, manifests: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Give the pod spec that serves each configuration, of the chart's objects by their ids."""
    served_by = {
        name: manifests.get(f"daemonset-{object_suffix(name)}", manifests["Default"]) for name in configs.configs
    }
    return {name: manifest["spec"]["template"]["spec"] for name, manifest in served_by.items()}


def check(
    configs: Configs,
    defaults: Defaults,
    *,
    id: str,
    release: versions.DevicePluginRelease,
    platform: Platform,
    has_plugin: bool,
    has_gpu_feature_discovery: bool,
) -> None:
    """Refuse configurations that these programs, together, could not serve; warn of those that work badly.

    Raises:
        GpuConstructsError: A setting that came with a later release, or that a program which is installed
            would refuse or ignore.
    """
    for config in plugin_configs(configs):
        config.check_release(release)
        if has_plugin:
            _check_plugin(config.flags, defaults)
        if has_gpu_feature_discovery:
            _check_gpu_feature_discovery(config.flags)
    if configs.delivery != "daemonsets":
        warn(
            f"{id}: config-manager takes the default configuration first and corrects it by a signal afterwards, so a "
            "node may advertise nothing until its plugin pod is restarted (NVIDIA/k8s-device-plugin#1645); "
            "Configs.named has no such race"
        )
    if has_plugin:
        _warn_of_the_plugin(configs, defaults, id=id, release=release, platform=platform)


def warn_of_mps(configs: Configs, *, id: str, platform: Platform) -> None:
    """Warn of sharing by MPS on a platform where it is reported not to start."""
    shared_by = {config.sharing.strategy for config in plugin_configs(configs)}
    if "mps" in shared_by | set(configs.may_use) and platform.mps_is_doubtful:
        warn(
            f"{id}: MPS is reported not to start on {platform} (NVIDIA/k8s-device-plugin#1614); try it on one node, or "
            "use Sharing.time_slicing"
        )


def _warn_of_the_plugin(
    configs: Configs, defaults: Defaults, *, id: str, release: versions.DevicePluginRelease, platform: Platform
) -> None:
    warn_of_mps(configs, id=id, platform=platform)
    strategies = [config.device_list_strategy or defaults.device_list_strategy for config in plugin_configs(configs)]
    if any({"envvar", "volume-mounts"} <= {*listed} for listed in strategies):
        warn(f"{id}: device_list_strategy 'volume-mounts' overwrites what 'envvar' says; leave one of them out")
    if release.version in versions.RDMA_ON_BY_DEFAULT and any(map(_leaves_rdma_open, plugin_configs(configs))):
        warn(
            f"{id}: release {release.version} of the device plugin hands GDS, GDRCopy and MOFED devices to every "
            "container unless told not to (NVIDIA/k8s-device-plugin#1692); state flags.gds_enabled, "
            "flags.gdrcopy_enabled and flags.mofed_enabled, or use another release"
        )


def _leaves_rdma_open(config: PluginConfig) -> bool:
    flags = config.flags
    return None in (flags.gds_enabled, flags.gdrcopy_enabled, flags.mofed_enabled)


def _check_plugin(flags: Flags, defaults: Defaults) -> None:
    if flags.device_discovery_strategy == "vfio":
        raise GpuConstructsError(
            "flags.device_discovery_strategy 'vfio' is for GPU Feature Discovery alone, the plugin refuses it; use "
            "'nvml' or pass device_plugin=False"
        )
    if flags.mps_root not in (None, defaults.mps_root) and defaults.mps_root != DEFAULT_MPS_ROOT:
        raise GpuConstructsError(
            f"mps_control_daemon.root must be flags.mps_root of the configuration, {flags.mps_root!r}; got "
            f"{defaults.mps_root!r}; say it in one place"
        )


def _check_gpu_feature_discovery(flags: Flags) -> None:
    if flags.use_node_feature_api is False:
        raise GpuConstructsError(
            "flags.use_node_feature_api must not be False: GPU Feature Discovery has no directory of the node to write "
            "to here, it publishes a NodeFeature; leave it out"
        )
    if flags.gfd.output_file is not None:
        raise GpuConstructsError(
            "flags.gfd.output_file would be ignored: GPU Feature Discovery publishes a NodeFeature instead of a file; "
            f"got {flags.gfd.output_file!r}; leave it out"
        )
    if flags.gfd.oneshot:
        raise GpuConstructsError(
            "flags.gfd.oneshot must not be True: a DaemonSet restarts a program that ends, for ever; use "
            "sleep_interval='infinite' (from release 0.19.0) or leave it out"
        )


def check_names(manifests: Sequence[Mapping[str, Any]]) -> None:
    """Refuse object names that labels of their pods could not hold, and those that two objects would have.

    Raises:
        GpuConstructsError: A workload's name is longer than a label's value, or a configuration is called like a
            program.
    """
    made = [(m["kind"], m["metadata"].get("namespace"), m["metadata"]["name"]) for m in manifests]
    for identity in made:
        if made.count(identity) > 1:
            kind, _, name = identity
            raise GpuConstructsError(
                f"configs must have names that no program has: {kind} {name!r} would be made twice; call the "
                "configuration something else"
            )
    for manifest in manifests:
        if manifest["kind"] not in ("DaemonSet", "Deployment"):
            continue
        # The label of the component, which a configuration's name stands behind too, may be the longer one.
        metadata = manifest["metadata"]
        name = max([metadata["name"], *metadata.get("labels", {}).values()], key=len)
        if len(name) > _LONGEST_NAME:
            raise GpuConstructsError(
                f"name must be shorter: {manifest['kind']} {name!r} would have {len(name)} characters of "
                f"at most {_LONGEST_NAME}; shorten name= or the names of the configurations"
            )
