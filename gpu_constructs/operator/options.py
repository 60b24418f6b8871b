"""What a user may say about the GPU Operator: its release, and the device plugin's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import Any

import yaml

from gpu_constructs.catalog import versions
from gpu_constructs.catalog.platforms import Platform
from gpu_constructs.catalog.sharing import Sharing
from gpu_constructs.catalog.versions import DevicePluginRelease, GpuOperatorRelease
from gpu_constructs.device_plugin.config import Flags, MigStrategy, PluginConfig
from gpu_constructs.device_plugin.configs import Configs
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube import fields

# The operator states these as variables of its containers, which beat the file: NVIDIA/gpu-operator@v26.7.0,
# assets/state-device-plugin and assets/gpu-feature-discovery, 0500_daemonset.yaml; the roots are sourced from
# driver-ready.
_OVERRIDDEN: Mapping[str, tuple[str, str, object]] = {
    "flags.fail_on_init_error": ("FAIL_ON_INIT_ERROR", "devicePlugin", True),
    "flags.plugin.pass_device_specs": ("PASS_DEVICE_SPECS", "devicePlugin", True),
    "flags.plugin.device_id_strategy": ("DEVICE_ID_STRATEGY", "devicePlugin", "uuid"),
    "flags.plugin.device_list_strategy": ("DEVICE_LIST_STRATEGY", "devicePlugin", None),
    "flags.mps_root": ("MPS_ROOT", "devicePlugin", "/run/nvidia/mps"),
    "flags.nvidia_driver_root": ("NVIDIA_DRIVER_ROOT", "devicePlugin", None),
    "flags.nvidia_dev_root": ("NVIDIA_DEV_ROOT", "devicePlugin", None),
    "flags.plugin.container_driver_root": ("DRIVER_ROOT_CTR_PATH", "devicePlugin", None),
    "flags.gfd.sleep_interval": ("GFD_SLEEP_INTERVAL", "gfd", None),
}


def release_for(version: str | versions.Unverified, platform: Platform) -> GpuOperatorRelease:
    """Return the release of the operator.

    Raises:
        GpuConstructsError: An unknown release, or one that does not run on the platform.
    """
    has_new_layout = platform.brings_driver and platform.supports_cdi
    first = versions.FIRST_GPU_OPERATOR_FOR_CDI_ON_TALOS
    fits = [repr(name) for name, one in versions.GPU_OPERATOR.items() if not has_new_layout or one.is_at_least(first)]
    number = (version.version if isinstance(version, versions.Unverified) else version).removeprefix("v")
    if platform.brings_driver and number in versions.FAILS_ON_TALOS:
        raise GpuConstructsError(
            f"version {number!r} of the GPU Operator fails on {platform}: it cannot read Talos' version label "
            f"(NVIDIA/gpu-operator#2239); take {' or '.join(fits)}"
        )
    release = versions.release_of(versions.GPU_OPERATOR, version, "the GPU Operator")
    if has_new_layout and not release.is_at_least(first):
        raise GpuConstructsError(
            f"version of the GPU Operator must be at least {first!r} on {platform}, where the driver lies in "
            f"/usr/local; got {release.version!r}; take {' or '.join(fits)}"
        )
    return release


def plugin_configs(
    config: PluginConfig | Configs | None,
    sharing: Sharing | None,
    mig_strategy: MigStrategy | None,
    release: DevicePluginRelease,
) -> Configs | None:
    """Return the configurations as config-manager serves them, one alone under the name ``default``.

    Raises:
        GpuConstructsError: They are stated twice or meant for one DaemonSet each, a setting came with a later release
            of the plugin, or the operator's own variables would beat it.
    """
    if config is not None and sharing is not None:
        raise GpuConstructsError(
            "sharing must be left out beside config, which holds it; got both; say it there, by "
            "PluginConfig(sharing=...)"
        )
    is_external = isinstance(config, Configs) and config.delivery == "external"
    if config is not None and mig_strategy is not None and not is_external:
        raise GpuConstructsError(
            f"mig_strategy must be left out beside config, which holds it; got {mig_strategy!r}; say it there, by "
            f"PluginConfig(flags=Flags(mig_strategy={mig_strategy!r}))"
        )
    if sharing is not None and sharing.strategy != "none":
        config = PluginConfig(sharing=sharing, flags=Flags(mig_strategy=mig_strategy))
    configs = Configs.managed({"default": config}, default="default") if isinstance(config, PluginConfig) else config
    if configs is not None:
        _check_configs(configs, release)
    return configs


def _check_configs(configs: Configs, release: DevicePluginRelease) -> None:
    fields.refuse_first(
        [
            (
                configs.delivery == "daemonsets",
                "config must be a PluginConfig, Configs.managed(...) or Configs.external(...): the operator has one "
                "DaemonSet with a config-manager; got Configs.named(...)",
            ),
            (
                configs.delivery == "external" and (configs.flags != Flags() or configs.may_use),
                "config.flags and config.may_use do nothing here: the operator's pods are privileged, and settings for "
                "every node are values={'devicePlugin': {'env': [...]}}; leave them out",
            ),
        ]
    )
    for name, one in configs.configs.items():
        one.check_release(release)
        _check_overridden(one, name)
    strategies = {one.mig_strategy for one in configs.configs.values()}
    if len(strategies) > 1:
        raise GpuConstructsError(
            "config must have one flags.mig_strategy in all configurations, since the operator states it for all "
            f"nodes; got {', '.join(map(repr, sorted(strategies)))}"
        )


def mig_strategy_of(configs: Configs | None) -> MigStrategy | None:
    """Return the MIG strategy that the operator must be told, since its variable beats the file; None for any."""
    known = [] if configs is None else list(configs.configs.values())
    stated = {one.flags.mig_strategy for one in known} - {None}
    if stated:
        return stated.pop()
    return "none" if any(one.sharing.strategy == "mps" for one in known) else None


def _check_overridden(config: PluginConfig, name: str) -> None:
    for path, (variable, section, value) in _OVERRIDDEN.items():
        stated = attrgetter(path)(config)
        if stated is None or stated == value:
            continue
        way_out = f"values={{{section!r}: {{'env': [{{'name': {variable!r}, 'value': ...}}]}}}}"
        if variable == "DEVICE_LIST_STRATEGY":
            way_out = "device_list_strategy=..."
        raise GpuConstructsError(
            f"config {name!r} must not state {path}: the operator states {variable} beside it, which wins; got "
            f"{stated!r}; take it out and pass {way_out}"
        )


def configs_of_text(section: Mapping[str, Any], release: DevicePluginRelease) -> tuple[Configs | None, list[str]]:
    """Return the configurations that the user wrote as text, and what is doubtful in them.

    Args:
        section: Values below ``devicePlugin.config``.
        release: Release of the plugin.

    Returns:
        No configurations if they cannot be known: the ConfigMap is not made here, or an entry cannot be read; one
        without settings if there is no ConfigMap.

    Raises:
        GpuConstructsError: A text that is not YAML.
    """
    data = (section.get("data") or {}) if section.get("create") else {}
    texts = {name: text for name, text in data.items() if text is not None}
    warnings, configs = [], {}
    for name, text in texts.items():
        path = f"values.devicePlugin.config.data[{name!r}]"
        try:
            yaml.safe_load(text)
        except (yaml.YAMLError, ValueError) as error:
            raise GpuConstructsError(
                f"{path} must be YAML; got {' '.join(str(error).split())}; mend it, or pass config=PluginConfig(...)"
            ) from None
        try:
            configs[name] = PluginConfig.from_yaml(text)
            configs[name].check_release(release)
            _check_overridden(configs[name], name)
        except GpuConstructsError as error:
            warnings.append(f"{path} may not do what it says: {error.problem}")
    if not texts and not section.get("name"):
        configs = {"default": PluginConfig()}
    if not configs or configs.keys() < texts.keys():
        return None, warnings
    default = str(section.get("default"))
    return Configs.managed(configs, default=default if default in configs else next(iter(configs))), warnings
