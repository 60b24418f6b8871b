"""The release of the GPU Operator, and the configuration of its device plugin."""

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

# The operator sets these variables in its containers, and they override the file: NVIDIA/gpu-operator@v26.7.0,
# assets/state-device-plugin and assets/gpu-feature-discovery, 0500_daemonset.yaml. The roots come from the file
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
    """Return the properties of a GPU Operator release. Check that the release runs on the platform.

    Raises:
        GpuConstructsError: The library does not know the release, or the release does not run on the platform.
    """
    has_new_layout = platform.brings_driver and platform.supports_cdi
    first = versions.FIRST_GPU_OPERATOR_FOR_CDI_ON_TALOS
    release = versions.release_of(versions.GPU_OPERATOR, version, "the GPU Operator")
    fits = [
        repr(name)
        for name, one in versions.GPU_OPERATOR.items()
        if (not has_new_layout or one.is_at_least(first)) and (one.reads_version_of_talos or not platform.brings_driver)
    ]
    if platform.brings_driver and not release.reads_version_of_talos:
        raise GpuConstructsError(
            f"version {release.version!r} of the GPU Operator fails on {platform}: it cannot read the version "
            f"label of Talos (NVIDIA/gpu-operator#2239). Use {' or '.join(fits)}"
        )
    if has_new_layout and not release.is_at_least(first):
        raise GpuConstructsError(
            f"version of the GPU Operator must be at least {first!r} on {platform}, where the driver is in "
            f"/usr/local, got {release.version!r}. Use {' or '.join(fits)}"
        )
    return release


def plugin_configs(
    config: PluginConfig | Configs | None,
    sharing: Sharing | None,
    mig_strategy: MigStrategy | None,
    release: DevicePluginRelease,
) -> Configs | None:
    """Return the device plugin configurations that the keywords ``config`` and ``sharing`` of ``GpuOperator`` set.

    Return None if these keywords set no configuration. A single ``PluginConfig`` gets the name ``default``, and so does
    the configuration for ``sharing``, which also contains ``mig_strategy``.

    Raises:
        GpuConstructsError: Two keywords set the same option, the operator does not support ``config``, or a setting
            needs a later release of the device plugin. Also raised for a setting that the operator overrides by an
            environment variable of the device plugin.
    """
    if config is not None and sharing is not None:
        raise GpuConstructsError(
            "sharing must be absent with config, which contains it, got both. Set it with PluginConfig(sharing=...)"
        )
    is_external = isinstance(config, Configs) and config.delivery == "external"
    if config is not None and mig_strategy is not None and not is_external:
        raise GpuConstructsError(
            f"mig_strategy must be absent with config, which contains it, got {mig_strategy!r}. Set it with "
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
                "config must be a PluginConfig, Configs.managed(...) or Configs.external(...), got Configs.named(...): "
                "the operator has one DaemonSet with a config-manager",
            ),
            (
                configs.delivery == "external" and (configs.flags != Flags() or configs.may_use),
                "config.flags and config.may_use must be absent for a GpuOperator, because its device plugin is "
                "privileged already. Remove them, and set flags for all nodes with values={'devicePlugin': {'env': "
                "[...]}}",
            ),
        ]
    )
    for name, one in configs.configs.items():
        one.check_release(release)
        _check_overridden(one, name)
    strategies = {one.mig_strategy for one in configs.configs.values()}
    if len(strategies) > 1:
        raise GpuConstructsError(
            "config must have one flags.mig_strategy in all configurations, because the operator sets it for all "
            f"nodes, got {', '.join(map(repr, sorted(strategies)))}"
        )


def mig_strategy_of(configs: Configs | None) -> MigStrategy | None:
    """Return the MIG strategy that the operator must set for device plugin configurations.

    This is the strategy that the configurations set. If they set no strategy, return ``"none"`` for configurations with
    MPS, and None for other configurations, which allow any strategy.
    """
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
            f"config {name!r} must not contain {path}, which the variable {variable} of the operator overrides, got "
            f"{stated!r}. Remove it, and set {way_out}"
        )


def configs_of_text(section: Mapping[str, Any], release: DevicePluginRelease) -> tuple[Configs | None, list[str]]:
    """Return the device plugin configurations in ``devicePlugin.config.data`` of Helm values, and warnings about them.

    Each key of ``data`` is the name of a configuration, and its value is the configuration as YAML text.

    Args:
        section: Helm values below ``devicePlugin.config``.
        release: Release of the device plugin.

    Returns:
        A pair: the configurations, and the warnings. The configurations are None if a text is YAML but not a valid
        configuration. They are also None if ``section`` contains no texts, but the name of a ConfigMap. If ``section``
        contains neither texts nor a name, the only configuration is ``default``, without settings.

    Raises:
        GpuConstructsError: A text is not YAML.
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
                f"{path} must be YAML, got {' '.join(str(error).split())}. Correct it, or pass config=PluginConfig(...)"
            ) from None
        try:
            configs[name] = PluginConfig.from_yaml(text)
            configs[name].check_release(release)
            _check_overridden(configs[name], name)
        except GpuConstructsError as error:
            warnings.append(f"{path} may have another effect than expected: {error.problem}")
    if not texts and not section.get("name"):
        configs = {"default": PluginConfig()}
    if not configs or configs.keys() < texts.keys():
        return None, warnings
    default = str(section.get("default"))
    return Configs.managed(configs, default=default if default in configs else next(iter(configs))), warnings
