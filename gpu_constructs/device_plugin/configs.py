"""``Configs``, several configurations of the device plugin in one cluster. A node label selects one for each node."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal

from gpu_constructs.catalog.sharing import GPU, Sharing
from gpu_constructs.catalog.versions import DevicePluginRelease
from gpu_constructs.device_plugin.config import Flags, PluginConfig
from gpu_constructs.errors import GpuConstructsError, short_errors
from gpu_constructs.facts.provided import GpuOffer, placement_of
from gpu_constructs.kube import fields
from gpu_constructs.records import dataclass, field, regex

NODE_LABEL = "nvidia.com/device-plugin.config"
"""Node label whose value is the name of the configuration for the node. The administrator of the cluster sets it."""

FallbackStrategy = Literal["named", "single", "empty"]
Use = Literal["mig", "mps", "volume-mounts", "cdi", "pass-device-specs", "imex"]

_NAME_OF_LABEL = regex(r"[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?\Z")


def object_suffix(name: str) -> str:
    """Return the name of a configuration, changed so that it is valid in the names of Kubernetes objects."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _name(field: str, name: str) -> None:
    fields.of_type(field, name, str)
    if not _NAME_OF_LABEL.match(name):
        raise GpuConstructsError(
            f"{field} must have names of letters, digits, '-', '_' and '.' (at most 63 characters, letter or digit at "
            f"both ends), got {name!r}"
        )


def _names(field: str, names: Iterable[str]) -> None:
    for name in names:
        _name(field, name)


@dataclass(frozen=True, kw_only=True)
class Configs(fields.Options):
    """Named configurations, which the node label ``nvidia.com/device-plugin.config`` selects.

    Create it with ``Configs.named(...)``, ``Configs.managed(...)`` or ``Configs.external(...)``.

    Attributes:
        delivery: Method by which nodes get their configuration. ``daemonsets`` creates one DaemonSet for each
            configuration. ``config-manager`` creates one DaemonSet, whose pods read the label of their node.
            ``external`` is the same with an existing ConfigMap.
        configs: Configurations by name. Empty for ``external``.
        default: Name of the configuration for nodes without the label.
        config_map: Name of the external ConfigMap.
        fallback_strategies: Methods by which config-manager selects a configuration for nodes without the label. They
            apply only to an external ConfigMap that has no ``default``.
        flags: Settings that override the files of an external ConfigMap. The pods get them as environment variables.
        may_use: Features that the files of an external ConfigMap can enable. The pods get the rights for them.

    Raises:
        GpuConstructsError: A name is not valid as a label value or as a key of a ConfigMap, the default is not one of
            the names, or there are several configurations but no default.
    """

    _NAME: ClassVar[str] = "configs"
    _CHECKS: ClassVar[fields.Checks] = {
        "config_map": fields.dns_subdomain,
        "configs.configs": lambda _, given: _names("configs", given),
        "default": _name,
    }

    delivery: Literal["daemonsets", "config-manager", "external"]
    configs: Mapping[str, PluginConfig] = field(default_factory=dict)
    default: str | None = None
    config_map: str | None = None
    fallback_strategies: Sequence[FallbackStrategy] = ()
    flags: Flags = Flags()
    may_use: Sequence[Use] = ()

    def _conflicts(self) -> Iterable[fields.Conflict]:
        return self._conflicts_of_external() if self.delivery == "external" else self._conflicts_of_ours()

    def _conflicts_of_external(self) -> Iterable[fields.Conflict]:
        return [
            (
                self.config_map is None or self.configs,
                "configs must contain config_map and no configurations, because an existing ConfigMap contains them. "
                "Use Configs.external",
            ),
            (
                self.default is None and not self.fallback_strategies,
                "configs.default must have a value if fallback_strategies is empty: otherwise, config-manager fails on "
                "every node without a label. Use a key of the ConfigMap",
            ),
        ]

    def _conflicts_of_ours(self) -> Iterable[fields.Conflict]:
        names = list(self.configs)
        yield (
            self.config_map is not None or self.flags != Flags() or self.may_use,
            "configs.config_map, flags and may_use are only for Configs.external. Remove them",
        )
        yield (
            self.fallback_strategies,
            "configs.fallback_strategies are only for Configs.external, because other configurations have a default. "
            "Remove them",
        )
        yield not names, f"configs must contain at least one configuration, got {dict(self.configs)!r}"
        firsts = {object_suffix(name): name for name in reversed(names)}
        for name in names:
            first = firsts[object_suffix(name)]
            yield (
                first != name,
                "configs must have names that differ in letters and digits, because names of objects contain them, got "
                f"{first!r} and {name!r}",
            )
        yield (
            self.default is None,
            f"configs.default must have a value for the nodes without the label {NODE_LABEL}. "
            f"Use one of {', '.join(map(repr, names))}",
        )
        fields.one_of("configs.default", self.default, names)

    @classmethod
    @short_errors
    def named(cls, configs: Mapping[str, PluginConfig], *, default: str) -> Configs:
        """Create configurations that each have their own DaemonSets.

        The DaemonSets run on the nodes whose label ``nvidia.com/device-plugin.config`` is the name of the
        configuration.

        The default also applies to nodes without the label and nodes with an unknown name. No pod needs access to the
        Kubernetes API, and the file of a pod does not change while it runs. A change of a configuration restarts only
        the pods of this configuration.

        Args:
            configs: Configurations by name.
            default: Name of the configuration for all other nodes.
        """
        return cls(delivery="daemonsets", configs=configs, default=default)

    @classmethod
    @short_errors
    def managed(
        cls,
        configs: Mapping[str, PluginConfig],
        *,
        default: str,
    ) -> Configs:
        """Create configurations from which NVIDIA's config-manager selects one in each pod.

        The Helm chart of NVIDIA works in the same way.

        The pods can read all nodes of the cluster, and have the rights that any of the configurations needs.
        config-manager has a race condition. Its init container always selects the default, and its sidecar later
        selects the correct file and sends a signal (NVIDIA/k8s-device-plugin#1645). Use ``Configs.named`` instead,
        unless a change of a node label must not replace pods.

        Args:
            configs: Configurations by name.
            default: Name of the configuration for nodes without the label. If the label of a node has an unknown name,
                the plugin also uses the default. Its pod is then never ready, because the sidecar always fails.
        """
        return cls(delivery="config-manager", configs=configs, default=default)

    @classmethod
    @short_errors
    def external(
        cls,
        config_map: str,
        *,
        default: str | None = None,
        fallback_strategies: Sequence[FallbackStrategy] = ("named", "single"),
        flags: Flags | None = None,
        may_use: Sequence[Use] = (),
    ) -> Configs:
        """Use an existing ConfigMap, from which NVIDIA's config-manager selects a configuration in each pod.

        The library does not check the files. A change of a file has an effect only after the pods restart.

        Args:
            config_map: Name of the ConfigMap. Each key is the name of a configuration.
            default: Key of the configuration for nodes without the label. If None, ``fallback_strategies`` decide.
            fallback_strategies: Methods to select a configuration for nodes without the label, in the order in which
                config-manager tries them: ``named`` (the key ``default``), ``single`` (the only key) or ``empty``.
            flags: Settings that override the files on all nodes.
            may_use: Features that the files can enable: ``mig``, ``mps``, ``volume-mounts``, ``cdi``,
                ``pass-device-specs`` and ``imex``. The pods get the rights that these features need. By default, the
                pods get no such rights. With ``cdi``, also set ``flags.nvidia_driver_root``, which the pods then mount.
        """
        return cls(
            delivery="external",
            config_map=config_map,
            default=default,
            fallback_strategies=fallback_strategies,
            flags=Flags() if flags is None else flags,
            may_use=may_use,
        )


def plugin_configs(configs: Configs) -> list[PluginConfig]:
    """Return all configurations that the library knows.

    For an external ConfigMap, the result is one configuration with its ``flags``.
    """
    return list(configs.configs.values()) or [PluginConfig(flags=configs.flags)]


def advertised_resources(configs: Configs) -> dict[str, Sharing]:
    """Return a dict from each extended resource that nodes advertise to how pods share it.

    If two configurations share a resource differently, the result contains the sharing that rejects fewer requests.
    """
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
        # The variable for the MIG strategy overrides the files.
        if configs.flags.mig_strategy in (None, "mixed"):
            offered["nvidia.com/mig-*"] = Sharing.none()
    return offered


def gpu_offers(
    configs: Configs, pod_specs: Mapping[str, Mapping[str, Any]], release: DevicePluginRelease
) -> tuple[GpuOffer, ...]:
    """Return one ``GpuOffer`` for each configuration of the plugin that the library knows.

    A ``GpuOffer`` describes how nodes advertise their GPUs. The library does not know the files of an external
    ConfigMap.

    Args:
        configs: Configurations of the plugin.
        pod_specs: Pod specs of the plugin, by name of the configuration.
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
    """Return the pod specs of the plugin, by name of the configuration.

    ``manifests`` contains the objects of the chart by construct ID.
    """
    served_by = {
        name: manifests.get(f"daemonset-{object_suffix(name)}", manifests["Default"]) for name in configs.configs
    }
    return {name: manifest["spec"]["template"]["spec"] for name, manifest in served_by.items()}
