"""Several configurations in one cluster: which node gets which, and how it gets there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from gpu_constructs.catalog.sharing import GPU, Sharing
from gpu_constructs.catalog.versions import DevicePluginRelease
from gpu_constructs.device_plugin.config import Flags, PluginConfig
from gpu_constructs.errors import GpuConstructsError, short_errors
from gpu_constructs.facts.provided import GpuOffer, placement_of
from gpu_constructs.kube import fields

NODE_LABEL = "nvidia.com/device-plugin.config"
"""Label that names the configuration of a node; the administrator of the cluster sets it."""

FallbackStrategy = Literal["named", "single", "empty"]
Use = Literal["mig", "mps", "volume-mounts", "cdi", "pass-device-specs", "imex"]

_NAME_OF_LABEL = re.compile(r"[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?\Z")


def object_suffix(name: str) -> str:
    """Return the name of a configuration as it stands in the names of its objects."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _name(field: str, name: str) -> None:
    fields.of_type(field, name, str)
    if not _NAME_OF_LABEL.match(name):
        raise GpuConstructsError(
            f"{field} must have names that a node label and a ConfigMap's key can hold (letters, digits, '-', '_', "
            f"'.', at most 63 characters, letter or digit at both ends); got {name!r}"
        )


def _names(field: str, names: Iterable[str]) -> None:
    for name in names:
        _name(field, name)


@dataclass(frozen=True, kw_only=True)
class Configs(fields.Options):
    """Named configurations, chosen by the node label ``nvidia.com/device-plugin.config``.

    Made by ``Configs.named(...)``, ``Configs.managed(...)`` or ``Configs.external(...)``.

    Attributes:
        delivery: ``daemonsets`` (one DaemonSet for each configuration), ``config-manager`` (one DaemonSet
            whose pods look at their node's label) or ``external`` (the same, from a ConfigMap that is there).
        configs: The configurations by name; empty for ``external``.
        default: Name of the configuration for nodes without the label.
        config_map: Name of the external ConfigMap.
        fallback_strategies: What config-manager tries if there is neither a label nor a default; for an external
            ConfigMap, since the others have a default.
        flags: Settings that override an external file, as environment variables.
        may_use: What the files of an external ConfigMap may turn on, so what the pods must hold.

    Raises:
        GpuConstructsError: A name that a label value or a key of a ConfigMap cannot be, a default that is not among
            the names, several configurations and no default.
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
    flags: Flags = Flags()  # noqa: RUF009
    may_use: Sequence[Use] = ()

    def _conflicts(self) -> Iterable[fields.Conflict]:
        return self._conflicts_of_external() if self.delivery == "external" else self._conflicts_of_ours()

    def _conflicts_of_external(self) -> Iterable[fields.Conflict]:
        return [
            (
                self.config_map is None or self.configs,
                "configs.config_map is required, and nothing beside it; use Configs.external",
            ),
            (
                self.default is None and not self.fallback_strategies,
                "configs.default is required without fallback_strategies: config-manager fails on every node "
                "without a label; name a key of the ConfigMap",
            ),
        ]

    def _conflicts_of_ours(self) -> Iterable[fields.Conflict]:
        names = list(self.configs)
        yield (
            self.config_map is not None or self.flags != Flags() or self.may_use,
            "configs.config_map, flags and may_use are for Configs.external; leave them out",
        )
        yield (
            self.fallback_strategies,
            "configs.fallback_strategies are for Configs.external: nothing is looked for beyond the default; leave "
            "them out",
        )
        yield not names, f"configs must hold at least one configuration; got {dict(self.configs)!r}"
        firsts = {object_suffix(name): name for name in reversed(names)}
        for name in names:
            first = firsts[object_suffix(name)]
            yield (
                first != name,
                "configs must have names that differ in letters and digits, for the names of their objects; got "
                f"{first!r} and {name!r}",
            )
        yield (
            self.default is None,
            f"configs.default is required: it serves the nodes without the label {NODE_LABEL}; "
            f"name one of {', '.join(map(repr, names))}",
        )
        fields.one_of("configs.default", self.default, names)

    @classmethod
    @short_errors
    def named(cls, configs: Mapping[str, PluginConfig], *, default: str) -> Configs:
        """Return configurations that have DaemonSets of their own, on the nodes labelled with their names.

        The default also serves nodes without the label and nodes whose label names none of them. No pod
        needs the API, nothing is exchanged at run time, and a changed file restarts its own pods only.

        Args:
            configs: The configurations by name.
            default: Name of the one for all other nodes.
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
        """Let NVIDIA's config-manager pick each node's configuration at run time, as in NVIDIA's chart.

        Its pods may read all nodes of the cluster and hold the rights of the most demanding configuration,
        and it is racy: the init container always takes the default, the sidecar corrects it afterwards by a
        signal (NVIDIA/k8s-device-plugin#1645). ``Configs.named`` is the better choice but where relabelling a
        node must not start new pods.

        Args:
            configs: The configurations by name.
            default: Name of the configuration for nodes without the label. On a node whose label names none of
                them the plugin starts with the default too, and the sidecar of config-manager restarts again and
                again: the pod is never ready.
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
        """Read the configurations from a ConfigMap that something else makes, through config-manager.

        Nothing in it is checked, and an edit is not picked up before the pods restart.

        Args:
            config_map: Its name; each key is a configuration.
            default: Key for nodes without the label.
            fallback_strategies: ``named`` (the key ``default``), ``single`` (the only key), ``empty``.
            flags: Settings for every node; they override whatever the files say.
            may_use: What the files may turn on: ``mig``, ``mps``, ``volume-mounts``, ``cdi``,
                ``pass-device-specs``, ``imex``. The pods hold what these need, and nothing by default.
                With ``cdi`` state ``flags.nvidia_driver_root`` too, which is mounted for it.
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
    """Return every configuration that is known: those by name, and the settings that override an external file."""
    return list(configs.configs.values()) or [PluginConfig(flags=configs.flags)]


def advertised_resources(configs: Configs) -> dict[str, Sharing]:
    """Return the resources of all nodes; if nodes differ, with the sharing that asks least of a container."""
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
    configs: Configs, pod_specs: Mapping[str, Mapping[str, Any]], release: DevicePluginRelease
) -> tuple[GpuOffer, ...]:
    """Return how each configuration advertises GPUs; none for those of an external file.

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
    """Return the pod spec that serves each configuration, of the chart's objects by their ids."""
    served_by = {
        name: manifests.get(f"daemonset-{object_suffix(name)}", manifests["Default"]) for name in configs.configs
    }
    return {name: manifest["spec"]["template"]["spec"] for name, manifest in served_by.items()}
