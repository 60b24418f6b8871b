"""Conversion of the values of NVIDIA's Helm chart ``nvidia-device-plugin`` into arguments of ``DevicePluginChart``.

A table in `gpu_constructs.migration` describes the conversion of simple values. This module converts the other values.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from operator import attrgetter
from typing import Any

from gpu_constructs.catalog import versions
from gpu_constructs.catalog.platforms import Platform
from gpu_constructs.device_plugin import config_reader
from gpu_constructs.device_plugin.config import Flags, PluginConfig
from gpu_constructs.device_plugin.configs import Configs, FallbackStrategy, Use, object_suffix, plugin_configs
from gpu_constructs.device_plugin.delivery import DEFAULT_MPS_ROOT, uses_of, with_setting
from gpu_constructs.device_plugin.installation import check_programs
from gpu_constructs.device_plugin.options import DevicePlugin, GpuFeatureDiscovery, MpsControlDaemon
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.feature_discovery import chart_values as nfd_values
from gpu_constructs.kube import durations, fields, placement
from gpu_constructs.kube.update_strategy import UpdateStrategy
from gpu_constructs.migration.chart import Reading, chart
from gpu_constructs.migration.chart_values import coalesced
from gpu_constructs.migration.converters import update_strategy
from gpu_constructs.migration.problems import Installation, Problems, reported_at_once

CHART = "nvidia-device-plugin"
_ALWAYS = (placement.CRITICAL_ADDONS, placement.GPU_TAINT)
_FILE = ("config.flags", "config.flags.plugin", "config.flags.gfd")

_Served = Callable[[PluginConfig], None]
_Overrides = Mapping[str, tuple[str, Any]]
"""Helm values that override settings of the configuration file, by name of the setting.

Each value of the mapping is a pair of the key and the value in the Helm values. For example, the name
``flags.mig_strategy`` has the pair ``("migStrategy", "mixed")``.
"""


@reported_at_once
def chart_options(values: Mapping[str, Any], installation: Installation, problems: Problems) -> dict[str, Any]:
    """Return the keyword arguments of ``DevicePluginChart`` for Helm values, as a dict.

    Args:
        values: Helm values.
        installation: Release name, namespace, version and platform of the Helm release.
        problems: Record to which the function adds the problems in the Helm values.

    Raises:
        GpuConstructsError: There are problems. The error lists all problems.
    """
    release = versions.release_of(versions.DEVICE_PLUGIN, installation.version, "the device plugin")
    if isinstance(values, Mapping) and values.get("nfd", {}) is None:
        values = {**values, "nfd": nfd_values.WITHOUT_THE_OUTER_CHARTS}
    read = Reading(
        chart(CHART),
        values,
        release=installation.behaves_like,
        strict=problems,
        converters={
            "as said": lambda field, value: value,
            "sleep interval": lambda field, text: (
                text if text == "infinite" else durations.from_go_duration(field, text)
            ),
            "strategies": _strategies_of,
            "update strategy without surge": _update_strategy,
            **nfd_values.CONVERTERS,
        },
    )
    plugin = read.struct("device_plugin", DevicePlugin) if read.get("devicePlugin.enabled", True) else False
    labeler = _gpu_feature_discovery(read)
    mps = _mps_control_daemon(read, release)
    served = partial(_served, release=release, has_plugin=plugin is not False, has_labeler=labeler is not False)
    config = _configs(read, served, has_mps=release.config_manager_survives_host_pid or not mps.host_pid)
    uses = _uses(config)
    options = {"namespace": installation.namespace, **read.options()}
    discovery = None
    if read.get("nfd.enabled", read.get("gfd.enabled", False)):
        discovery = nfd_values.node_feature_discovery(
            read,
            release_name=installation.release_name,
            namespace=installation.namespace,
            gpu_namespace=options["namespace"],
            release=release.node_feature_discovery,
        )
    options |= {
        "name": _name(read, installation.release_name, config),
        "instance": installation.release_name,
        "config": config,
        "device_plugin": _sufficient(read, "securityContext", plugin, uses, installation.platform),
        "gpu_feature_discovery": _sufficient(read, "gfd.securityContext", labeler, uses, installation.platform),
        # The affinity of the Helm chart always selects the labels of a Node Feature Discovery.
        "node_feature_discovery": discovery or "external",
        "mps_control_daemon": mps,
        "allow_default_namespace": read.get("allowDefaultNamespace", False)
        or read.get("namespaceOverride") == "default",
        # This library adds its own tolerations, and copies the others to Node Feature Discovery. Helm does not.
        "tolerations": [one for one in options.get("tolerations", ()) if one not in _ALWAYS],
        "image": read.image(f"v{release.version}"),
    }
    path = "priorityClassName"
    if path in read:
        priority_class = read.converted(path, "dns subdomain", path, read.get(path))
        if priority_class or not read.get(path):
            options["priority_class_name"] = priority_class
    return options


def _mps_control_daemon(read: Reading, release: versions.DevicePluginRelease) -> MpsControlDaemon:
    hidden = {} if release.chart_shows_mps_host_pid else {"host_pid": ("mps", False)}
    return read.struct("mps_control_daemon", MpsControlDaemon, **hidden)


def _served(config: PluginConfig, **installed: Any) -> None:
    """Raise an error if an installed component would reject or ignore a setting of a device plugin configuration.

    Args:
        config: Configuration to check.
        installed: Keyword arguments of ``check_programs``: ``release``, ``has_plugin`` and ``has_labeler``.
    """
    configs = Configs.named({"default": config}, default="default")
    check_programs(configs, Flags(mps_root=DEFAULT_MPS_ROOT), **installed)


# --- converters -----------------------------------------------------------------------------------------------


def _strategies_of(field: str, text: str) -> str | tuple[str, ...]:
    words = tuple(word.strip() for word in text.split(","))
    return words[0] if len(words) == 1 else words


def _update_strategy(field: str, given: Mapping[str, Any]) -> UpdateStrategy | None:
    strategy = update_strategy(field, given)
    if strategy is not None and strategy.max_surge not in (None, 0, "0%"):
        raise GpuConstructsError("maxSurge must be absent: two plugins on a node use the same socket")
    return strategy


# --- programs -------------------------------------------------------------------------------------------------


def _gpu_feature_discovery(read: Reading) -> bool | GpuFeatureDiscovery:
    if not read.get("gfd.enabled", False):
        return False
    # Helm merges the user's value over the chart's own. Without a value, the chart's own has no effect.
    path = "gfd.securityContext"
    given = read.get(path)
    laid = coalesced({"privileged": True}, given) or None if given else None
    return read.struct("gpu_feature_discovery", GpuFeatureDiscovery, security_context=(path, laid))


def _sufficient(read: Reading, path: str, component: Any, uses: frozenset[str], platform: Platform) -> Any:
    """Return the options of a component. If its security context lacks a right, the result has no security context.

    For example, a component that watches MIG devices needs the capability SYS_ADMIN.

    Args:
        read: Helm values, to which the function reports the missing rights as a problem.
        path: Dotted key of the security context in the Helm values.
        component: Options of the component, or a bool that states whether the chart installs the component.
        uses: Features that the configuration enables, such as ``mig``.
        platform: Platform of the nodes.
    """
    if isinstance(component, bool) or component.security_context is None:
        return component
    needed = component.rights(uses, platform)
    if needed.are_in(component.security_context):
        return component
    read.refuse(path, f"lacks {needed}, which the configuration needs, got {dict(component.security_context)!r}")
    return dataclasses.replace(component, security_context=None)


def _name(read: Reading, release_name: str, config: PluginConfig | Configs) -> str:
    """Return the prefix of the names of all objects, as the Helm chart derives it from the release name and the values.

    The function shortens the prefix, so that the longest name, such as ``<prefix>-gpu-feature-discovery-a100``, has at
    most 63 characters.

    Args:
        read: Helm values.
        release_name: Name of the Helm release.
        config: Configuration or configurations of the device plugin.
    """
    others = [] if isinstance(config, PluginConfig) else [c for c in config.configs if c != config.default]
    suffix = max([len(f"-{object_suffix(other)}") for other in others], default=0)
    return read.name(release_name, CHART, 63 - len("-gpu-feature-discovery") - suffix, fields.dns_subdomain)


# --- configurations -------------------------------------------------------------------------------------------


def _overrides(read: Reading, served: _Served) -> _Overrides:
    """Return the Helm values that override settings of the configuration files, by name of the setting.

    Each value of the dict is a pair: the key and the value in the Helm values, for example
    ``{"flags.mig_strategy": ("migStrategy", "mixed")}``. The Helm chart passes these values to the pods as environment
    variables.

    Args:
        read: Helm values.
        served: Function that raises an error if an installed component does not support a configuration.
    """
    found: dict[str, tuple[str, Any]] = {}
    for section in _FILE:
        for member, (path, value) in read.members(section).items():
            setting = f"{section}.{member}".removeprefix("config.")
            if read.accepts(path, partial(_alone, served, setting, value)):
                found[setting] = path, value
    return found


def _laid_over(read: Reading, config: PluginConfig, file: str, overrides: _Overrides) -> PluginConfig:
    """Return a copy of a device plugin configuration in which Helm values replace settings of the configuration.

    The Helm chart passes these values as environment variables, which override the configuration file.

    Args:
        read: Helm values, to which the function reports values that contradict the configuration.
        config: Configuration of the device plugin.
        file: Name of the configuration file for messages, such as ``config.map.default``.
        overrides: Helm values that replace settings: pairs of a key and a value, by name of the setting.
    """
    for setting, (path, value) in overrides.items():
        stated = attrgetter(setting)(config)
        if stated is not None and _comparable(stated) != _comparable(value):
            read.contradict(path, file, setting, _plain(stated), _plain(value))
        config = read.attempt(path, partial(with_setting, config, setting, value)) or config
    root = read.get("mps.root", DEFAULT_MPS_ROOT)
    if config.flags.mps_root not in (None, root):
        read.contradict("mps.root", file, "flags.mps_root", config.flags.mps_root, root)
    found: PluginConfig = with_setting(config, "flags.mps_root", None)
    return found


def _alone(served: _Served, setting: str, value: Any) -> None:
    served(with_setting(PluginConfig(), setting, value))


def _comparable(value: Any) -> Any:
    return frozenset((value,) if isinstance(value, str) else value) if isinstance(value, str | tuple) else value


def _plain(value: Any) -> Any:
    if isinstance(value, timedelta):
        return durations.go_duration(value)
    return ",".join(value) if isinstance(value, tuple) else value


def _uses(config: PluginConfig | Configs) -> frozenset[str]:
    if isinstance(config, PluginConfig):
        return uses_of(config)
    return frozenset(config.may_use).union(*map(uses_of, plugin_configs(config)))


def _configs(read: Reading, served: _Served, *, has_mps: bool) -> PluginConfig | Configs:
    overrides = _overrides(read, served)
    path = "config.name"
    external, files = read.converted(path, "dns subdomain", path, read.get(path)), read.get("config.map") or {}
    if external and files:
        raise GpuConstructsError("values.config must have name or map, not both")
    if external:
        return _external(read, external, overrides, has_mps=has_mps)
    configs = {
        name: _laid_over(read, _file(read, f"config.map.{name}", text, served), f"config.map.{name}", overrides)
        for name, text in _named_files(read, files).items()
    }
    if not configs:
        return _laid_over(read, PluginConfig(), "", overrides)
    default = _default(read, configs)
    if default is None:
        default = "empty" if "empty" not in configs else "empty-fallback"
        configs[default] = _laid_over(read, PluginConfig(), "", overrides)
    return configs[default] if len(configs) == 1 else Configs.named(configs, default=default)


def _external(read: Reading, config_map: str, overrides: _Overrides, *, has_mps: bool) -> Configs:
    make = partial(
        Configs.external,
        config_map,
        fallback_strategies=_strategies(read),
        flags=_laid_over(read, PluginConfig(), "", overrides).flags,
        may_use=_may_use(overrides, has_mps=has_mps),
    )
    default = str(read.get("config.default", ""))
    is_name = default != "" and read.accepts("config.default", partial(make, default=default))
    return make(default=default if is_name else None)


def _strategies(read: Reading) -> list[FallbackStrategy]:
    path = "config.fallbackStrategies"
    return [
        strategy
        for strategy in read.get(path, ("named", "single"))
        if read.accepts(path, partial(fields.one_of, path, strategy, ("named", "single", "empty")))
    ]


def _may_use(overrides: _Overrides, *, has_mps: bool) -> tuple[Use, ...]:
    """Return the features that the configuration files of an external ConfigMap can enable, such as ``mig``.

    The pods get the rights for these features. The result omits a feature if a Helm value already decides whether the
    pods use the feature, such as ``migStrategy`` for ``mig``.

    Args:
        overrides: Helm values that override the configuration files, by name of the setting.
        has_mps: Whether the configuration files can enable MPS.
    """
    strategy = "flags.plugin.device_list_strategy"
    decided: dict[Use, str] = {"mig": "flags.mig_strategy", "volume-mounts": strategy, "cdi": strategy}
    mps: tuple[Use, ...] = ("mps",) if has_mps else ()
    return (*mps, *(use for use, setting in decided.items() if setting not in overrides))


def _named_files(read: Reading, files: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the texts of the configuration files in ``config.map`` of the Helm values, by filename.

    If YAML reads a filename as a number or a boolean, the result contains the name as text, like the ConfigMap of the
    Helm chart. The result omits a file with an invalid or a duplicate name.

    Args:
        read: Helm values, to which the function reports problems.
        files: Value of ``config.map``: the text of each configuration file by filename.
    """
    found: dict[str, Any] = {}
    for key, text in files.items():
        name = str(key).lower() if isinstance(key, bool) else str(key)
        path = f"config.map.{name}"
        if key is None or name in found:
            read.refuse(path, "must be unique. Remove one of the two keys" if name in found else "must have a name")
        elif read.accepts(path, partial(Configs.named, dict.fromkeys((*found, name), PluginConfig()), default=name)):
            found[name] = text
    return found


def _file(read: Reading, path: str, text: Any, served: _Served) -> PluginConfig:
    if not isinstance(text, str):
        read.refuse(path, f"must be text, got {type(text).__name__}: Helm could not render the chart")
        return PluginConfig()
    if not text.strip():
        return PluginConfig()
    config = config_reader.read_without(
        text, PluginConfig, lambda problem: read.refuse(path, f"must be valid: {problem}")
    )
    return config if read.accepts(path, partial(served, config)) else PluginConfig()


def _default(read: Reading, configs: Mapping[str, PluginConfig]) -> str | None:
    """Return the name of the configuration that config-manager selects for nodes without a configuration label.

    Return None if config-manager selects an empty configuration.

    Args:
        read: Helm values.
        configs: Configurations of the device plugin by name.

    Raises:
        GpuConstructsError: config-manager would find no configuration for these nodes.
    """
    name = str(read.get("config.default", ""))
    if name:
        if name in configs:
            return name
        allowed = ", ".join(map(repr, configs))
        read.refuse("config.default", f"must be a key of config.map ({allowed}), got {name!r}: the pods would fail")
    for strategy in _strategies(read):
        if strategy == "named" and "default" in configs:
            return "default"
        if strategy == "single" and len(configs) == 1:
            return next(iter(configs))
        if strategy == "empty":
            return None
    raise GpuConstructsError(
        f"values.config.default must have a value for nodes on which the label nvidia.com/device-plugin.config is not "
        f"set. Use one of {', '.join(map(repr, configs))}"
    )
