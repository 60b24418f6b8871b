"""Parts of the DCGM exporter that have options of their own: where its list is, its Service, its dumps."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from gpu_constructs import _fields, _references
from gpu_constructs._references import NamedObject
from gpu_constructs.errors import GpuConstructsError, ShortErrors

_KEY = re.compile(r"(?!\.{1,2}\Z)[-._a-zA-Z0-9]{1,253}\Z")


@dataclass(frozen=True, kw_only=True)
class MetricsConfigMap(metaclass=ShortErrors):
    """A list of metrics that somebody else keeps, in the exporter's namespace.

    What it holds is not known here: no dashboard and no alerts can be made for it.

    Attributes:
        config_map: The ConfigMap, by name or as an object.
        key: Its key with the CSV.
        is_profiled: Whether the list has ``DCGM_FI_PROF_*`` metrics, for which the exporter needs SYS_ADMIN.

    Raises:
        GpuConstructsError: It is no ConfigMap.
    """

    config_map: str | NamedObject
    key: str = "metrics"
    is_profiled: bool = False

    def __post_init__(self) -> None:
        _fields.members(self, "metrics")
        if not _KEY.match(self.key):
            raise GpuConstructsError(f"metrics.key must be letters, digits, '-', '_' or '.'; got {self.key!r}")
        object.__setattr__(self, "config_map", _references.name_of("metrics.config_map", self.config_map, "ConfigMap"))


@dataclass(frozen=True, kw_only=True)
class ExporterService(metaclass=ShortErrors):
    """The Service in front of the exporter's pods.

    Attributes:
        type: ``ClusterIP``; another type shows pod names and GPU ids to whoever reaches it.
        cluster_ip: ``"None"`` makes it headless; None leaves the address to the cluster.
        internal_traffic_policy: ``Local`` answers a node from its own exporter.
        annotations: Of the Service.

    Raises:
        GpuConstructsError: Another word, or an annotation that is none.

    Source: NVIDIA/dcgm-exporter@4.5.3-4.8.2:deployment/templates/service.yaml.
    """

    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = "ClusterIP"
    cluster_ip: str | None = None
    internal_traffic_policy: Literal["Cluster", "Local"] | None = None
    annotations: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _fields.members(self, "service")
        _fields.labels("service.annotations", dict.fromkeys(self.annotations, ""))
        object.__setattr__(self, "annotations", dict(self.annotations))
        if self.cluster_ip not in (None, "None"):
            try:
                ipaddress.ip_address(self.cluster_ip)
            except ValueError:
                raise GpuConstructsError(
                    f"service.cluster_ip must be an address, or 'None' for a headless Service; got {self.cluster_ip!r}"
                ) from None
        if self.cluster_ip == "None" and self.type != "ClusterIP":
            raise GpuConstructsError(f"service.cluster_ip must not be 'None' with type {self.type!r}; leave it out")

    def to_manifest(
        self, metadata: Mapping[str, Any], selector: Mapping[str, str], *, port: int, port_name: str
    ) -> dict[str, Any]:
        """Give the Service; its name is the ``job`` of the scraped series, its port that of the pods."""
        spec = {
            "clusterIP": self.cluster_ip,
            "internalTrafficPolicy": self.internal_traffic_policy,
            "ports": [{"name": port_name, "port": port, "targetPort": port_name, "protocol": "TCP"}],
            "selector": dict(selector),
            "type": self.type,
        }
        return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


@dataclass(frozen=True, kw_only=True)
class DebugDump(metaclass=ShortErrors):
    """Files with what the exporter read, for a bug report; they live and die with the pod.

    It writes two at each reading. A pod whose files outgrow ``size_limit`` is evicted.

    Attributes:
        retention: Hours that a file is kept.
        compression: Whether files are compressed.
        size_limit: What all files together may take of the node's disk.

    Raises:
        GpuConstructsError: Less than an hour, or a limit that is no quantity.

    Source: NVIDIA/dcgm-exporter@4.5.3-4.8.2:pkg/cmd/app.go, ``--dump-enabled``.
    """

    retention: int = 24
    compression: bool = True
    size_limit: str = "1Gi"

    def __post_init__(self) -> None:
        _fields.members(self, "debug_dump")
        _fields.whole_number("debug_dump.retention", self.retention, minimum=1, maximum=8760)
        _fields.size("debug_dump.size_limit", self.size_limit)
