"""What one set of GPU pods reads, and what that makes them hold."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpu_constructs import placement
from gpu_constructs._config_map import config_map, sha256
from gpu_constructs.device_plugin.config import CONFIG_FILE, Flags, PluginConfig
from gpu_constructs.device_plugin.configs import NODE_LABEL, Configs, object_suffix
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.platforms import NO_VOLUME_MOUNTS, Platform

CHECKSUM = "gpu-constructs/config-sha256"
_AVAILABLE = "/available-configs"
DEFAULT_DRIVER_ROOT_IN_CONTAINER = "/driver-root"
DEFAULT_MPS_ROOT = "/run/nvidia/mps"


@dataclass(frozen=True, kw_only=True)
class Defaults:
    """Settings of the whole chart, for configurations that do not state them.

    Attributes:
        device_list_strategy: Empty leaves it to the plugin.
        device_discovery_strategy: None leaves it to the programs.
        fail_on_init_error: None leaves it to the programs.
        mps_root: Of the MPS control daemon.
    """

    device_list_strategy: tuple[str, ...]
    device_discovery_strategy: str | None
    fail_on_init_error: bool | None
    mps_root: str


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """What the pods of one plugin, one GPU Feature Discovery and one MPS control daemon read and need.

    Attributes:
        suffix: Behind the names of their objects and in their selectors; empty for the default.
        labels: Of their pods, where there are several: the name of their configuration.
        config_map: Name of the ConfigMap with their file or files.
        data: What the ConfigMap holds; None where something else makes it.
        config_manager: Variables of config-manager, which picks one of several files; None for one file.
        node_expressions: What they ask of their nodes' labels, to get the right nodes.
        env: Settings that no file states, by the variable's name.
        uses: ``mig``, ``mps``, ``volume-mounts``, ``cdi`` (and ``cdi-cri``), ``pass-device-specs``.
        nvidia_driver_root: Mounted into the plugin; None mounts nothing.
        container_driver_root: Where it is mounted.
        mps_root: Directory of the MPS control daemon on the node.
        rivals: Suffixes of the other sets of pods that may follow these pods on a node; empty for one set.
    """

    suffix: str
    labels: Mapping[str, str]
    config_map: str
    data: Mapping[str, str] | None
    config_manager: Mapping[str, str] | None
    node_expressions: Sequence[Mapping[str, Any]]
    env: Mapping[str, str]
    uses: frozenset[str]
    nvidia_driver_root: str | None
    container_driver_root: str
    mps_root: str
    rivals: tuple[str, ...] = ()

    @property
    def checksum(self) -> dict[str, str]:
        """The annotations that restart the pods when a file of theirs changes; none for external files."""
        if self.data is None:
            return {}
        if self.config_manager is None:
            (text,) = self.data.values()
            return {CHECKSUM: sha256(text)}
        return {f"{object_suffix(name)}.{CHECKSUM}": sha256(text) for name, text in self.data.items()}

    def manifest(self, metadata: Mapping[str, Any]) -> dict[str, Any] | None:
        """Give the ConfigMap, unless something else makes it."""
        return None if self.data is None else config_map({**metadata, "name": self.config_map}, dict(self.data))

    def variables(self, *sections: type[Any], besides: Collection[str] = ()) -> dict[str, str]:
        """Give those settings of ``env`` that a program reads: those of the sections, and the named ones."""
        read = {field.metadata.get("env") for one in sections for field in dataclasses.fields(one)} | set(besides)
        return {name: value for name, value in self.env.items() if name in read}

    def volumes(self) -> list[dict[str, Any]]:
        """Give the volumes with the file or files."""
        files = {"name": "config" if self.config_manager is None else "available-configs"}
        volumes: list[dict[str, Any]] = [{**files, "configMap": {"name": self.config_map}}]
        if self.config_manager is not None:
            volumes.append({"name": "config", "emptyDir": {}})
        return volumes

    def mounts(self, *, writes: bool = False) -> list[dict[str, Any]]:
        """Give the mounts of a container that reads the file, or of config-manager, which links it there."""
        # config-manager's file is a link into the directory of all files, so that stands beside it.
        mounts: list[dict[str, Any]] = [
            {"name": "config", "mountPath": "/config", "readOnly": None if writes else True}
        ]
        if self.config_manager is not None:
            mounts.append({"name": "available-configs", "mountPath": _AVAILABLE, "readOnly": True})
        return mounts


def deliveries(configs: Configs, *, name: str, platform: Platform, defaults: Defaults) -> list[Delivery]:
    """Give one delivery for each set of pods, that of the default configuration first.

    Raises:
        GpuConstructsError: A CDI strategy on a platform where it cannot work, or configurations that cannot
            be served by the same pods.
    """
    if configs.delivery == "external":
        return [_external(configs, platform, defaults)]
    if configs.delivery == "config-manager":
        return [_managed(configs, name, platform, defaults)]
    assert configs.default is not None
    ordered = [configs.default, *(c for c in configs.configs if c != configs.default)]
    return [_own(configs, config, name, platform, defaults) for config in ordered]


def _own(configs: Configs, config: str, name: str, platform: Platform, defaults: Defaults) -> Delivery:
    (settled,), env = _settle([configs.configs[config]], defaults)
    is_default = config == configs.default
    others = [other for other in configs.configs if other != configs.default]
    expressions: list[Mapping[str, Any]] = []
    if not is_default:
        expressions = [placement.label_is(NODE_LABEL, config)]
    elif others:
        # Holds for nodes without the label too, and for those whose label names no configuration.
        expressions = [{"key": NODE_LABEL, "operator": "NotIn", "values": others}]
    suffixes = {name: "" if name == configs.default else f"-{object_suffix(name)}" for name in configs.configs}
    suffix = suffixes.pop(config)
    return Delivery(
        suffix=suffix,
        rivals=tuple(suffixes.values()),
        labels={NODE_LABEL: config} if others else {},
        config_map=f"{name}-config{suffix}",
        data={"config.yaml": settled.to_yaml()},
        config_manager=None,
        node_expressions=expressions,
        **_needs([settled.flags], uses_of(settled), env, platform, defaults),
    )


def _managed(configs: Configs, name: str, platform: Platform, defaults: Defaults) -> Delivery:
    settled, env = _settle(list(configs.configs.values()), defaults)
    uses = frozenset().union(*map(uses_of, settled))
    return Delivery(
        suffix="",
        labels={},
        config_map=f"{name}-config",
        data={key: config.to_yaml() for key, config in zip(configs.configs, settled, strict=True)},
        config_manager=_config_manager(configs),
        node_expressions=(),
        **_needs([config.flags for config in settled], uses, env, platform, defaults),
    )


def _external(configs: Configs, platform: Platform, defaults: Defaults) -> Delivery:
    assert configs.config_map is not None
    if {"cdi", "volume-mounts"} & set(configs.may_use):
        # A variable would override the files, which are allowed to choose.
        defaults = dataclasses.replace(defaults, device_list_strategy=())
    _, env = _settle([PluginConfig(flags=configs.flags)], defaults)
    stated = PluginConfig(flags=configs.flags)
    may_use: frozenset[str] = frozenset(configs.may_use)
    env = {**env, **_overriding(configs.flags)}
    return Delivery(
        suffix="",
        labels={},
        config_map=configs.config_map,
        data=None,
        config_manager=_config_manager(configs),
        node_expressions=(),
        **_needs(
            [configs.flags],
            uses_of(stated) | may_use,
            env,
            platform,
            defaults,
            may_use=may_use - uses_of(stated),
        ),
    )


def _config_manager(configs: Configs) -> dict[str, str]:
    return {
        "CONFIG_FILE_DST": CONFIG_FILE,
        "CONFIG_FILE_SRCDIR": _AVAILABLE,
        "DEFAULT_CONFIG": configs.default or "",
        "FALLBACK_STRATEGIES": ",".join(configs.fallback_strategies),
        "NODE_LABEL": NODE_LABEL,
    }


def uses_of(config: PluginConfig) -> frozenset[str]:
    """Give what a configuration turns on that takes rights, mounts or pods."""
    strategies = config.device_list_strategy
    used = {
        "mig": config.mig_strategy != "none",
        "mps": config.sharing.strategy == "mps",
        "volume-mounts": "volume-mounts" in strategies,
        "cdi": any(strategy.startswith("cdi-") for strategy in strategies),
        "cdi-cri": "cdi-cri" in strategies,
        "imex": bool(config.imex.channel_ids),
        "pass-device-specs": config.flags.plugin.pass_device_specs is True,
    }
    return frozenset(use for use, is_used in used.items() if is_used)


def _settle(configs: list[PluginConfig], defaults: Defaults) -> tuple[list[PluginConfig], dict[str, str]]:
    """Give each default one place: the environment, or the files as soon as one of them states it."""
    env: dict[str, str] = {}
    discovery, fails = defaults.device_discovery_strategy, defaults.fail_on_init_error
    if all(config.flags.device_discovery_strategy is None for config in configs):
        env |= {"DEVICE_DISCOVERY_STRATEGY": discovery} if discovery else {}
    else:
        configs = [_with(config, device_discovery_strategy=discovery) for config in configs]
    if all(config.flags.fail_on_init_error is None for config in configs):
        env |= {"FAIL_ON_INIT_ERROR": str(fails).lower()} if fails is not None else {}
    else:
        configs = [_with(config, fail_on_init_error=fails) for config in configs]
    strategies = defaults.device_list_strategy
    if strategies and all(not config.device_list_strategy for config in configs):
        env["DEVICE_LIST_STRATEGY"] = ",".join(strategies)
    elif strategies:
        configs = [_with_strategies(config, strategies) for config in configs]
    return configs, env


def _with(config: PluginConfig, **members: Any) -> PluginConfig:
    missing = {name: value for name, value in members.items() if getattr(config.flags, name) is None}
    return dataclasses.replace(config, flags=dataclasses.replace(config.flags, **missing)) if missing else config


def _with_strategies(config: PluginConfig, strategies: tuple[str, ...]) -> PluginConfig:
    if config.device_list_strategy:
        return config
    plugin = dataclasses.replace(config.flags.plugin, device_list_strategy=strategies)  # type: ignore[arg-type]
    return dataclasses.replace(config, flags=dataclasses.replace(config.flags, plugin=plugin))


def _overriding(flags: Flags) -> dict[str, str]:
    """Give the variables for settings that override a file we do not see."""
    variables: dict[str, str] = {}
    for section in (flags, flags.plugin, flags.gfd):
        for field in dataclasses.fields(section):
            value = getattr(section, field.name)
            # GPU Feature Discovery is told to use that API anyway, and nobody else reads it.
            if value is None or "env" not in field.metadata or field.name == "use_node_feature_api":
                continue
            document = PluginConfig(flags=_only(section, field.name, value)).document()["flags"]
            (written,) = (document.get("plugin") or document.get("gfd") or document).values()
            variables[field.metadata["env"]] = _text(written)
    return variables


def _only(section: Any, name: str, value: Any) -> Flags:
    kept = type(section)(**{name: value})
    if isinstance(kept, Flags):
        return kept
    return Flags(**{"plugin" if hasattr(kept, "pass_device_specs") else "gfd": kept})


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, list) else str(value)


def _needs(
    flags: Sequence[Flags],
    uses: frozenset[str],
    env: dict[str, str],
    platform: Platform,
    defaults: Defaults,
    may_use: frozenset[str] = frozenset(),
) -> dict[str, Any]:
    strategies = env.get("DEVICE_LIST_STRATEGY", "").split(",")
    uses = uses | {"cdi"} if any(strategy.startswith("cdi-") for strategy in strategies) else uses
    uses = uses | (frozenset(strategies) & {"cdi-cri", "volume-mounts"})
    if "cdi" in uses and not platform.supports_cdi:
        raise GpuConstructsError(
            f"{_cdi(flags, strategies)} cannot work on {platform}: a CDI spec would name host "
            "paths that exist from Talos 1.13 on; use 'envvar'"
        )
    # Of files unseen it is not known that they use them.
    if "volume-mounts" in uses - may_use and not platform.accepts_volume_mounts:
        raise GpuConstructsError(
            f"device_list_strategy 'volume-mounts' cannot work on {platform}: {NO_VOLUME_MOUNTS}; use 'envvar'"
        )
    if "cdi-cri" in uses and platform.kubernetes == "1.27":
        raise GpuConstructsError(
            f"device_list_strategy 'cdi-cri' cannot work on {platform}: kubelets hand no CDI devices to the runtime "
            "before Kubernetes 1.28; use 'cdi-annotations'"
        )
    driver_root = _agreed("nvidia_driver_root", [one.nvidia_driver_root for one in flags])
    # Of files unseen it is not known whether they use CDI, and where they look for the driver.
    if driver_root is None and "cdi" in uses - may_use:
        driver_root = platform.nvidia_driver_root
        env = {**env, **({"NVIDIA_DRIVER_ROOT": driver_root} if driver_root else {})}
    # Files unseen that use CDI name the platform's root, for no other works there.
    dev_root = platform.dev_root_of(driver_root or (platform.nvidia_driver_root if "cdi" in uses else None))
    if dev_root and {one.nvidia_dev_root for one in flags} <= {None, dev_root}:
        env = {**env, "NVIDIA_DEV_ROOT": dev_root}
    mps_root = _agreed("mps_root", [one.mps_root for one in flags]) or defaults.mps_root
    if "mps" in uses and all(one.mps_root is None for one in flags):
        env = {**env, "MPS_ROOT": mps_root}
    in_container = _agreed("plugin.container_driver_root", [one.plugin.container_driver_root for one in flags])
    return {
        "env": env,
        "uses": uses,
        "nvidia_driver_root": driver_root,
        "container_driver_root": in_container or DEFAULT_DRIVER_ROOT_IN_CONTAINER,
        "mps_root": mps_root,
    }


def _cdi(flags: Sequence[Flags], strategies: Sequence[str]) -> str:
    stated = [s for one in flags for s in PluginConfig(flags=one).device_list_strategy]
    named = [strategy for strategy in (*stated, *strategies) if strategy.startswith("cdi-")]
    return f"device_list_strategy {named[0]!r}" if named else "configs.may_use 'cdi'"


def _agreed(member: str, values: Sequence[str | None]) -> str | None:
    """Give the one path that all files of one pod name: it is mounted, and a pod has one mount."""
    different = list(dict.fromkeys(values))
    if len(different) > 1:
        raise GpuConstructsError(
            f"flags.{member} must be the same in every configuration of Configs.managed, whose pods have one mount; "
            f"got {', '.join(map(repr, different))}; use Configs.named"
        )
    return different[0]
