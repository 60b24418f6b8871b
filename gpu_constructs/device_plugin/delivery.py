"""`Delivery`: the configuration that pods of the device plugin read, and the rights and mounts that the pods need.

With ``Configs.named``, each configuration has its own DaemonSets and its own ``Delivery``. Otherwise, one ``Delivery``
contains all configurations.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from gpu_constructs.catalog.platforms import NO_VOLUME_MOUNTS, Platform
from gpu_constructs.device_plugin.config import CONFIG_FILE, Flags, GfdFlags, PluginConfig, PluginFlags
from gpu_constructs.device_plugin.configs import NODE_LABEL, Configs, object_suffix, plugin_configs
from gpu_constructs.kube import fields, placement
from gpu_constructs.kube.config_map import config_map, sha256
from gpu_constructs.records import dataclass, field

CHECKSUM = "gpu-constructs/config-sha256"
_AVAILABLE = "/available-configs"
DEFAULT_DRIVER_ROOT_IN_CONTAINER = "/driver-root"
DEFAULT_MPS_ROOT = "/run/nvidia/mps"


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """The configuration files that the pods of some DaemonSets read, and the rights and mounts that these pods need.

    The pods are those of the device plugin, GPU Feature Discovery and the MPS control daemon. With ``Configs.named``,
    there is one ``Delivery`` for each configuration, otherwise one for all configurations.

    Attributes:
        config_map: Name of the ConfigMap with the configuration files.
        data: Content of the ConfigMap. None if the user creates the ConfigMap.
        env: Environment variables by name, for settings that are not in the configuration files.
        uses: Features that the configuration files enable or can enable: ``mig``, ``mps``, ``volume-mounts``, ``cdi``,
            ``cdi-cri``, ``pass-device-specs`` and ``imex``. With ``cdi-cri``, the set also contains ``cdi``.
        nvidia_driver_root: Root directory of the NVIDIA driver on the node, which the device plugin mounts. None: no
            mount.
        container_driver_root: Path in the container at which the device plugin mounts ``nvidia_driver_root``.
        mps_root: Directory of the MPS control daemon on the node.
        suffix: Suffix of the object names and of the component label, such as ``-a100``; empty for the default
            configuration.
        labels: Label of the pods with the name of the configuration; empty if there is only one configuration.
        config_manager: Environment variables by name for config-manager, which selects one of several configuration
            files. None without config-manager.
        node_expressions: Expressions on node labels that select the nodes of the configuration.
        rivals: Suffixes of the other configurations. Their pods can still run on a node after a change of the node
            label. Empty if there is only one configuration.
    """

    config_map: str
    data: Mapping[str, str] | None
    env: Mapping[str, str]
    uses: frozenset[str]
    nvidia_driver_root: str | None
    container_driver_root: str
    mps_root: str
    suffix: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    config_manager: Mapping[str, str] | None = None
    node_expressions: Sequence[Mapping[str, Any]] = ()
    rivals: tuple[str, ...] = ()

    @property
    def checksum(self) -> dict[str, str]:
        """Pod annotations with checksums of the configuration files, so that a change of such a file restarts the pods.

        Empty if the user creates the ConfigMap.
        """
        if self.data is None:
            return {}
        if self.config_manager is None:
            (text,) = self.data.values()
            return {CHECKSUM: sha256(text)}
        return {f"{object_suffix(name)}.{CHECKSUM}": sha256(text) for name, text in self.data.items()}

    def manifest(self, metadata: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the ConfigMap with the configuration files. Return None if the user creates the ConfigMap.

        Args:
            metadata: Metadata of the ConfigMap. The method sets the name to ``self.config_map``.
        """
        return None if self.data is None else config_map({**metadata, "name": self.config_map}, dict(self.data))

    def variables(self, *sections: type[Any], besides: Collection[str] = ()) -> dict[str, str]:
        """Return those environment variables in ``env`` that one component reads.

        Args:
            sections: Classes whose settings the component reads, such as ``GfdFlags`` for GPU Feature Discovery.
            besides: Names of variables that the component also reads, but that belong to no setting in ``sections``.
        """
        read = {key.metadata.get("env") for one in sections for key in dataclasses.fields(one)} | set(besides)
        return {name: value for name, value in self.env.items() if name in read}

    def volumes(self) -> list[dict[str, Any]]:
        """Return the pod volumes for the configuration files.

        With config-manager, there is a second volume, for the configuration file that config-manager selects.
        """
        files = {"name": "config" if self.config_manager is None else "available-configs"}
        volumes: list[dict[str, Any]] = [{**files, "configMap": {"name": self.config_map}}]
        if self.config_manager is not None:
            volumes.append({"name": "config", "emptyDir": {}})
        return volumes

    def mounts(self, *, writes: bool = False) -> list[dict[str, Any]]:
        """Return the volume mounts of a container that reads the configuration file.

        Args:
            writes: Whether the container also writes the configuration file, as config-manager does.
        """
        # The file of config-manager is a link into the directory of all files, so containers mount both.
        mounts: list[dict[str, Any]] = [
            {"name": "config", "mountPath": "/config", "readOnly": None if writes else True}
        ]
        if self.config_manager is not None:
            mounts.append({"name": "available-configs", "mountPath": _AVAILABLE, "readOnly": True})
        return mounts


def deliveries(configs: Configs, *, name: str, platform: Platform, defaults: Flags) -> list[Delivery]:
    """Return one ``Delivery`` for each configuration of ``Configs.named``, the default configuration first.

    With config-manager, return one ``Delivery`` for all configurations together.

    Args:
        configs: Configurations of the device plugin.
        name: Prefix of the names of all objects.
        platform: Platform of the nodes.
        defaults: Values of flags that a configuration does not set.

    Raises:
        GpuConstructsError: The platform does not support a device list strategy, or configurations for the same pods
            set different values for a path, such as ``nvidia_driver_root``.
    """
    if configs.delivery != "daemonsets":
        return [_by_config_manager(configs, name, platform, defaults)]
    ordered = sorted(configs.configs, key=lambda config: config != configs.default)
    suffixes = {config: "" if config == configs.default else f"-{object_suffix(config)}" for config in configs.configs}
    return [_own(configs, config, suffixes, name, platform, defaults) for config in ordered]


def _own(
    configs: Configs, config: str, suffixes: Mapping[str, str], name: str, platform: Platform, defaults: Flags
) -> Delivery:
    (settled,), env = _settle([configs.configs[config]], defaults)
    others = [other for other, suffix in suffixes.items() if suffix]
    chosen = placement.label_is(NODE_LABEL, config)
    # This expression also matches nodes without the label, and nodes with an unknown name.
    left_over = {"key": NODE_LABEL, "operator": "NotIn", "values": others}
    return Delivery(
        suffix=suffixes[config],
        rivals=tuple(suffix for other, suffix in suffixes.items() if other != config),
        labels={NODE_LABEL: config} if others else {},
        config_map=f"{name}-config{suffixes[config]}",
        data={"config.yaml": settled.to_yaml()},
        node_expressions=[chosen] if suffixes[config] else [left_over] if others else [],
        **_needs([settled.flags], uses_of(settled), env, platform, defaults),
    )


def _by_config_manager(configs: Configs, name: str, platform: Platform, defaults: Flags) -> Delivery:
    stated = plugin_configs(configs)
    if {"cdi", "volume-mounts"} & set(configs.may_use):
        # A variable would override the files, which can choose these strategies.
        defaults = with_setting(defaults, "plugin.device_list_strategy", None)
    settled, env = _settle(stated, defaults)
    is_external = configs.delivery == "external"
    served = stated if is_external else settled
    uses = frozenset[str]().union(*map(uses_of, served))
    files = {key: config.to_yaml() for key, config in zip(configs.configs, settled, strict=False)}
    return Delivery(
        config_map=configs.config_map or f"{name}-config",
        data=None if is_external else files,
        config_manager=_config_manager(configs),
        **_needs(
            [config.flags for config in served],
            uses | set(configs.may_use),
            {**env, **(_variables(configs.flags) if is_external else {})},
            platform,
            defaults,
            may_use=frozenset(configs.may_use) - uses,
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
    """Return the enabled features of a configuration that need additional rights, mounts or pods.

    The names of these features are ``mig``, ``mps``, ``imex``, ``pass-device-specs``, ``volume-mounts``, ``cdi`` and
    ``cdi-cri``.
    """
    used = {
        "mig": config.mig_strategy != "none",
        "mps": config.sharing.strategy == "mps",
        "imex": bool(config.imex.channel_ids),
        "pass-device-specs": config.flags.plugin.pass_device_specs is True,
    }
    return _uses_of(config.device_list_strategy).union(use for use, is_used in used.items() if is_used)


def _uses_of(strategies: Collection[str]) -> frozenset[str]:
    cdi = ["cdi" for strategy in strategies if strategy.startswith("cdi-")]
    return frozenset(cdi) | (frozenset(strategies) & {"cdi-cri", "volume-mounts"})


def with_setting(struct: Any, setting: str, value: Any) -> Any:
    """Return a copy of a dataclass instance in which one attribute has another value.

    Args:
        struct: Instance to copy, for example a ``PluginConfig``.
        setting: Name of the attribute, or a dotted path such as ``flags.plugin.device_list_strategy``.
        value: New value of the attribute.
    """
    member, _, rest = setting.partition(".")
    own = with_setting(getattr(struct, member), rest, value) if rest else value
    return dataclasses.replace(struct, **{member: own})


def _settle(configs: list[PluginConfig], defaults: Flags) -> tuple[list[PluginConfig], dict[str, str]]:
    """Apply default values of flags to configurations.

    If no configuration sets a flag, its default value becomes an environment variable of the pods. If only some
    configurations set the flag, the function adds the default value to the configurations that do not.

    Returns:
        A pair: the configurations with the added default values, and the environment variables by name.
    """
    env: dict[str, str] = {}
    for setting in ("device_discovery_strategy", "fail_on_init_error", "plugin.device_list_strategy"):
        get = attrgetter(setting)
        stated = [get(config.flags) is not None for config in configs]
        if get(defaults) is not None and not any(stated):
            env |= _variables(with_setting(Flags(), setting, get(defaults)))
        elif get(defaults) is not None:
            given = zip(configs, stated, strict=True)
            configs = [
                config if is_stated else with_setting(config, f"flags.{setting}", get(defaults))
                for config, is_stated in given
            ]
    return configs, env


def _variables(flags: Flags) -> dict[str, str]:
    """Return environment variables for the given flags, for example ``{"MIG_STRATEGY": "mixed"}``.

    In the pods, the variables override the configuration file.
    """
    document = PluginConfig(flags=flags).document().get("flags", {})
    sections = ((Flags, document), (PluginFlags, document.get("plugin", {})), (GfdFlags, document.get("gfd", {})))
    return {
        field.metadata["env"]: _text(written[field.metadata["key"]])
        for struct, written in sections
        for field in dataclasses.fields(struct)
        # The DaemonSet of GPU Feature Discovery sets this variable, and no other program reads it.
        if field.metadata["key"] in written and "env" in field.metadata and field.name != "use_node_feature_api"
    }


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, list) else str(value)


def _needs(
    flags: Sequence[Flags],
    uses: frozenset[str],
    env: dict[str, str],
    platform: Platform,
    defaults: Flags,
    may_use: frozenset[str] = frozenset(),
) -> dict[str, Any]:
    """Return keyword arguments of ``Delivery``: the features, environment variables and paths that the pods need.

    Args:
        flags: Flags of each configuration file.
        uses: Features that the configuration files enable or can enable.
        env: Environment variables by name, for settings that are not in the configuration files.
        platform: Platform of the nodes.
        defaults: Values of flags that a configuration does not set.
        may_use: Features in ``uses`` that the files of an external ConfigMap can enable. The library cannot read these
            files.

    Raises:
        GpuConstructsError: The platform does not support a feature, or configuration files for the same pods set
            different values for a path, such as ``nvidia_driver_root``.
    """
    strategies = env.get("DEVICE_LIST_STRATEGY", "").split(",")
    uses = uses | _uses_of(strategies)
    fields.refuse_first(_impossible(flags, uses, strategies, platform, may_use))
    stated = {member: _agreed(member, flags) for member in ("nvidia_driver_root", "mps_root")}
    driver_root, mps_root = stated["nvidia_driver_root"], stated["mps_root"] or defaults.mps_root
    own = {"MPS_ROOT": mps_root if "mps" in uses and stated["mps_root"] is None else None}
    # The library does not know whether external files use CDI, or where they expect the driver.
    if driver_root is None and "cdi" in uses - may_use:
        driver_root = own["NVIDIA_DRIVER_ROOT"] = platform.nvidia_driver_root
    # External files with CDI use the driver root of the platform, because no other path works there.
    dev_root = platform.dev_root_of(driver_root or (platform.nvidia_driver_root if "cdi" in uses else None))
    if {one.nvidia_dev_root for one in flags} <= {None, dev_root}:
        own["NVIDIA_DEV_ROOT"] = dev_root
    return {
        "env": {**env, **{name: path for name, path in own.items() if path}},
        "uses": uses,
        "nvidia_driver_root": driver_root,
        "container_driver_root": _agreed("plugin.container_driver_root", flags) or DEFAULT_DRIVER_ROOT_IN_CONTAINER,
        "mps_root": mps_root,
    }


def _impossible(
    flags: Sequence[Flags], uses: frozenset[str], strategies: Sequence[str], platform: Platform, may_use: frozenset[str]
) -> Iterable[fields.Conflict]:
    """Return a pair for each feature that some platforms do not support: a bool, and an error message.

    The bool is True if the pods use the feature and the platform does not support it.

    Args:
        flags: Flags of each configuration file, for the messages.
        uses: Features that the configuration files enable or can enable.
        strategies: Device list strategies from environment variables, for the messages.
        platform: Platform of the nodes.
        may_use: Features in ``uses`` that the files of an external ConfigMap can enable. The library cannot read these
            files.
    """
    return [
        (
            "cdi" in uses and not platform.supports_cdi,
            f"{_cdi(flags, strategies)} cannot work on {platform}: a CDI spec would name host paths that exist only "
            "from Talos 1.13 on. Use 'envvar'",
        ),
        (
            # The library does not know whether external files use these features.
            "volume-mounts" in uses - may_use and not platform.accepts_volume_mounts,
            f"device_list_strategy 'volume-mounts' cannot work on {platform}: {NO_VOLUME_MOUNTS}. Use 'envvar'",
        ),
        (
            "cdi-cri" in uses and platform.kubernetes == "1.27",
            f"device_list_strategy 'cdi-cri' cannot work on {platform}: the kubelet passes CDI devices only from "
            "Kubernetes 1.28 on. Use 'cdi-annotations'",
        ),
    ]


def _cdi(flags: Sequence[Flags], strategies: Sequence[str]) -> str:
    stated = [s for one in flags for s in PluginConfig(flags=one).device_list_strategy]
    named = [strategy for strategy in (*stated, *strategies) if strategy.startswith("cdi-")]
    return f"device_list_strategy {named[0]!r}" if named else "configs.may_use 'cdi'"


def _agreed(member: str, flags: Sequence[Flags]) -> Any:
    """Return the path that all configuration files of a pod set, such as the driver root. Return None if none sets it.

    The pod mounts the path only once, so the configuration files must set the same path.

    Args:
        member: Name of the setting in ``flags``, such as ``nvidia_driver_root``.
        flags: Flags of each configuration file.

    Raises:
        GpuConstructsError: The configuration files set different paths.
    """
    different = list(dict.fromkeys(map(attrgetter(member), flags)))
    message = (
        f"flags.{member} must be the same in every configuration of Configs.managed, because its pods have one mount, "
        f"got {', '.join(map(repr, different))}. Use Configs.named"
    )
    fields.refuse_first([(len(different) > 1, message)])
    return different[0]
