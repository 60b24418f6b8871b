"""`Configs`: several configurations of the device plugin in one cluster. A node label selects one for each node."""

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
"""Key of the node label whose value is the name of the configuration for the node. The cluster administrator sets it.
"""

FallbackStrategy = Literal["named", "single", "empty"]
Use = Literal["mig", "mps", "volume-mounts", "cdi", "pass-device-specs", "imex"]

_NAME_OF_LABEL = regex(r"[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?\Z")


def object_suffix(name: str) -> str:
    """Return the name of a configuration in a form that is valid in object names, such as ``a-100`` for ``A_100``."""
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
    """Named configurations of the device plugin. The node label ``nvidia.com/device-plugin.config`` selects one.

    Create an instance with ``Configs.named(...)``, ``Configs.managed(...)`` or ``Configs.external(...)``.

    Attributes:
        delivery: Method by which nodes get their configuration. ``daemonsets`` creates one DaemonSet for each
            configuration. ``config-manager`` creates one DaemonSet, in whose pods NVIDIA's config-manager reads the
            label of the node. ``external`` is like ``config-manager``, but with an existing ConfigMap.
        configs: Configurations by name. Empty for ``external``.
        default: Name of the configuration for nodes without the label. None is valid only for ``external``.
        config_map: Name of the existing ConfigMap for ``external``.
        fallback_strategies: Methods by which config-manager selects a configuration for nodes without the label. They
            apply only to ``external``, and only if ``default`` is None.
        flags: Settings that override the configuration files in the existing ConfigMap. The pods get these settings as
            environment variables.
        may_use: Features that the configuration files in the existing ConfigMap can enable, such as ``mig``. The pods
            get the rights that these features need.

    Raises:
        GpuConstructsError: If a name is not valid as a label value or as a key of a ConfigMap, or if an attribute does
            not fit ``delivery``. For ``external``, also raised if both ``default`` and ``fallback_strategies`` are
            empty. For ``daemonsets`` and ``config-manager``, also raised if ``default`` is not a key of ``configs``.
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
            f"configs.default must have a value for nodes on which the label {NODE_LABEL} is not set. "
            f"Use one of {', '.join(map(repr, names))}",
        )
        fields.one_of("configs.default", self.default, names)

    @classmethod
    @short_errors
    def named(cls, configs: Mapping[str, PluginConfig], *, default: str) -> Configs:
        """Create configurations that each have their own DaemonSets.

        The DaemonSets run on the nodes whose label ``nvidia.com/device-plugin.config`` is the name of the
        configuration. The DaemonSets of the default configuration also run on all nodes without the label, and on nodes
        whose label contains an unknown name.

        Unlike with ``Configs.managed``, the pods do not read node labels from the API server, and the configuration
        file of a pod does not change while the pod runs. A change of a configuration restarts only the pods of this
        configuration.

        Args:
            configs: Configurations by name.
            default: Name of the default configuration.
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
        """Create configurations from which NVIDIA's config-manager selects one in each pod, as in NVIDIA's Helm chart.

        Prefer ``Configs.named``, because config-manager has a race condition. In each pod, an init container first
        selects the default configuration. A sidecar later selects the correct configuration and sends a signal to
        the device plugin (NVIDIA/k8s-device-plugin#1645).

        After a change of the node label, the pods keep running and read another configuration. The pods can read all
        nodes of the cluster, and have the rights that the configurations together need.

        Args:
            configs: Configurations by name.
            default: Name of the configuration for nodes without the label. If the label of a node contains an unknown
                name, the device plugin on this node also uses the default configuration. The pod is then never ready,
                because the sidecar always fails.
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

        The library does not check the configuration files in the ConfigMap. A change of such a file has an effect only
        after the pods restart.

        Args:
            config_map: Name of the ConfigMap. Each key is the name of a configuration.
            default: Key of the configuration for nodes without the label. If None, config-manager uses
                ``fallback_strategies``.
            fallback_strategies: Methods to select a configuration for nodes without the label, in the order in which
                config-manager tries them: ``named`` (the key ``default``), ``single`` (the only key) or ``empty`` (an
                empty configuration).
            flags: Settings that override the configuration files on all nodes.
            may_use: Features that the configuration files can enable: ``mig``, ``mps``, ``volume-mounts``, ``cdi``,
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
    """Return the configurations in ``configs``.

    For an external ConfigMap, whose files the library cannot read, return one configuration with ``configs.flags``.
    """
    return list(configs.configs.values()) or [PluginConfig(flags=configs.flags)]


def advertised_resources(configs: Configs) -> dict[str, Sharing]:
    """Return the ``Sharing`` of each extended resource that nodes can advertise, by resource name.

    For example, the key ``nvidia.com/gpu.shared`` has the value ``Sharing.time_slicing(...)``. If two configurations
    advertise a resource with different sharing, the result prefers a ``Sharing`` that accepts requests for several
    units.
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
    """Return one ``GpuOffer`` for each configuration of the device plugin.

    A ``GpuOffer`` describes how nodes with this configuration advertise their GPUs. For an external ConfigMap, the
    result is empty.

    Args:
        configs: Configurations of the device plugin.
        pod_specs: Pod specs of the device plugin, by name of the configuration.
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
    """Return the pod spec of the device plugin for each configuration, by name of the configuration.

    Args:
        configs: Configurations of the device plugin.
        manifests: Objects of the ``DevicePluginChart`` by construct path.
    """
    served_by = {
        name: manifests.get(f"daemonset-{object_suffix(name)}", manifests["Default"]) for name in configs.configs
    }
    return {name: manifest["spec"]["template"]["spec"] for name, manifest in served_by.items()}
