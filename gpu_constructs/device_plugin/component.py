"""What can be said about the pods of one program of the device plugin's image alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpu_constructs import _fields
from gpu_constructs._container_security import SECURITY_CONTEXT, Rights
from gpu_constructs._resources import Resources, container_resources
from gpu_constructs.device_plugin.config import environment_variables
from gpu_constructs.errors import GpuConstructsError, ShortErrors
from gpu_constructs.platforms import Platform
from gpu_constructs.workload.env import AnyEnvValue, environment

_OURS = ("CONFIG_FILE", "GFD_CONFIG_FILE", "NODE_NAME", "NAMESPACE", "POD_NAME", "NVIDIA_MIG_MONITOR_DEVICES")
_FLAGS = environment_variables()
_READ_HERE = {"capabilities": Mapping[str, Sequence[str]] | None, "privileged": bool | None}


@dataclass(frozen=True, kw_only=True)
class Component(metaclass=ShortErrors):
    """One program's pods: what differs from what the chart says for all.

    Attributes:
        env: Further environment variables. Those that override the configuration file without a word are
            refused: say it in the file.
        host_network: Run in the node's network, where pod addresses are scarce. False by default.
        node_selector: Node labels asked for besides the chart's.
        resources: Of the main container, instead of the chart's.
        security_context: Of the main container, as Kubernetes writes it, instead of the rights computed from
            the options. Must still hold what the configuration needs.

    Raises:
        GpuConstructsError: A variable that has a keyword or a place in the file, an empty variable, an
            unknown field of the security context.
    """

    env: Mapping[str, str | AnyEnvValue] = field(default_factory=dict)
    host_network: bool = False
    node_selector: Mapping[str, str] = field(default_factory=dict)
    resources: Resources | None = None
    security_context: Mapping[str, Any] | None = None

    _DEFAULT_RESOURCES = {  # noqa: RUF012
        "requests": {"cpu": "10m", "memory": "64Mi"},
        "limits": {"memory": "512Mi"},
    }
    _NAME = "component"

    def __post_init__(self) -> None:
        _fields.members(self, self._NAME)
        _fields.labels(f"{self._NAME}.node_selector", self.node_selector)
        for name in self.env:
            where = f"{self._NAME}.env[{name!r}]"
            if name in _FLAGS:
                raise GpuConstructsError(
                    f"{where} must not be set: it would override {_FLAGS[name]} of the configuration without a word; "
                    f"set {_FLAGS[name]} in config=PluginConfig(...)"
                )
            if name in self._reserved():
                raise GpuConstructsError(f"{where} must not be set: this library sets it; leave it out")
        for variable in self.environment():
            if variable.get("value") == "":
                raise GpuConstructsError(
                    f"{self._NAME}.env[{variable['name']!r}] must not be empty: an empty variable counts as set; leave "
                    "it out"
                )
        if self.resources is not None:
            container_resources(self.resources, default={})
        for key, value in (self.security_context or {}).items():
            _fields.one_of(f"{self._NAME}.security_context key", key, SECURITY_CONTEXT)
            _fields.of_type(f"{self._NAME}.security_context[{key!r}]", value, _READ_HERE.get(key, Any))

    def rights(self, uses: frozenset[str], platform: Platform) -> Rights:
        """Give the rights the main container needs for what is in use: none, unless MIG devices are watched.

        Watching MIG devices takes SYS_ADMIN; the container toolkit of Talos 1.12 and later grants its MIG
        monitor to privileged containers only (NVIDIA/nvidia-container-toolkit#1740).
        """
        if "mig" not in uses:
            return Rights()
        return Rights(add=("SYS_ADMIN",), privileged=platform.mig_needs_privileged)

    def needs_rights_for(self, uses: frozenset[str]) -> list[str]:
        """Give those of the things in use that take rights."""
        return sorted(uses & {"mig"})

    def _reserved(self) -> tuple[str, ...]:
        return _OURS

    def environment(self) -> list[dict[str, Any]]:
        """Give the further variables as Kubernetes writes them."""
        return environment(self.env, visible_devices_is_managed=False)
