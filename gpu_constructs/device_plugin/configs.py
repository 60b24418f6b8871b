"""Several configurations in one cluster: which node gets which, and how it gets there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from gpu_constructs import _fields
from gpu_constructs.device_plugin.config import Flags, PluginConfig
from gpu_constructs.errors import GpuConstructsError, ShortErrors, short_errors

NODE_LABEL = "nvidia.com/device-plugin.config"
"""Names the configuration of a node; set by whoever runs the cluster."""

FallbackStrategy = Literal["named", "single", "empty"]
Use = Literal["mig", "mps", "volume-mounts", "cdi", "pass-device-specs", "imex"]

_NAME = re.compile(r"[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?\Z")


@dataclass(frozen=True, kw_only=True)
class Configs(metaclass=ShortErrors):
    """Named configurations, chosen by the node label ``nvidia.com/device-plugin.config``.

    Made by ``Configs.named(...)``, ``Configs.managed(...)`` or ``Configs.external(...)``.

    Attributes:
        delivery: ``daemonsets`` (one DaemonSet for each configuration), ``config-manager`` (one DaemonSet
            whose pods look at their node's label) or ``external`` (the same, from a ConfigMap that is there).
        configs: The configurations by name; empty for ``external``.
        default: Name of the one for nodes without the label.
        config_map: Name of the external ConfigMap.
        fallback_strategies: What config-manager tries where neither label nor default says; of an external
            ConfigMap, since the others have a default.
        flags: Settings that override an external file, as environment variables.
        may_use: What the files of an external ConfigMap may turn on, so what the pods must hold.

    Raises:
        GpuConstructsError: A name that is no label value or no key of a ConfigMap, a default that is none of
            the names, several configurations and no default.
    """

    delivery: Literal["daemonsets", "config-manager", "external"]
    configs: Mapping[str, PluginConfig] = field(default_factory=dict)
    default: str | None = None
    config_map: str | None = None
    fallback_strategies: Sequence[FallbackStrategy] = ()
    flags: Flags = Flags()  # noqa: RUF009
    may_use: Sequence[Use] = ()

    def __post_init__(self) -> None:
        _fields.members(self, "configs")
        if self.delivery == "external":
            if self.config_map is None or self.configs:
                raise GpuConstructsError("configs.config_map is required, and nothing beside it; use Configs.external")
            _fields.dns_subdomain("configs.config_map", self.config_map)
            if self.default is not None:
                _check_name("configs.default", self.default)
            elif not self.fallback_strategies:
                raise GpuConstructsError(
                    "configs.default is required without fallback_strategies: config-manager fails on every node "
                    "without a label; name a key of the ConfigMap"
                )
            return
        if self.config_map is not None or self.flags != Flags() or self.may_use:
            raise GpuConstructsError("configs.config_map, flags and may_use are for Configs.external; leave them out")
        if self.fallback_strategies:
            raise GpuConstructsError(
                "configs.fallback_strategies are for Configs.external: nothing is looked for beyond the default; leave "
                "them out"
            )
        if not self.configs:
            raise GpuConstructsError(f"configs must hold at least one configuration; got {dict(self.configs)!r}")
        for name in self.configs:
            _check_name("configs", name)
        suffixes: dict[str, str] = {}
        for name in self.configs:
            other = suffixes.setdefault(object_suffix(name), name)
            if other != name:
                raise GpuConstructsError(
                    f"configs must have names that differ in letters and digits, for the names of their objects; got "
                    f"{other!r} and {name!r}"
                )
        if self.default is None:
            raise GpuConstructsError(
                f"configs.default is required: it serves the nodes without the label {NODE_LABEL}; "
                f"name one of {', '.join(map(repr, self.configs))}"
            )
        _fields.one_of("configs.default", self.default, tuple(self.configs))

    @classmethod
    @short_errors
    def named(cls, configs: Mapping[str, PluginConfig], *, default: str) -> Configs:
        """Give each configuration DaemonSets of its own, on the nodes labelled with its name.

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


def object_suffix(name: str) -> str:
    """Give a configuration's name as it stands in the names of its objects."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _check_name(field: str, name: str) -> None:
    _fields.of_type(field, name, str)
    if not _NAME.match(name):
        raise GpuConstructsError(
            f"{field} must have names that a node label and a ConfigMap's key can hold (letters, digits, '-', '_', "
            f"'.', at most 63 characters, letter or digit at both ends); got {name!r}"
        )
