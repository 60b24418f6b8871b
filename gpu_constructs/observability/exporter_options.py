"""Options of the exporters."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Literal

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube import fields, references
from gpu_constructs.kube.env import AnyEnvValue
from gpu_constructs.kube.pods import ProgramOptions
from gpu_constructs.kube.references import NamedObject
from gpu_constructs.kube.volume import Mountable
from gpu_constructs.observability.scrape import Scrape, ScrapeKind
from gpu_constructs.observability.web_config import BasicAuth, Tls, file_name


@dataclass(frozen=True, kw_only=True)
class MetricsConfigMap(fields.Options):
    """A list of metrics that somebody else keeps, in the exporter's namespace.

    What it holds is not known here: no dashboard and no alerts can be made for it.

    Attributes:
        config_map: The ConfigMap, by name or as an object.
        key: Its key with the CSV.
        is_profiled: Whether the list has ``DCGM_FI_PROF_*`` metrics, for which the exporter needs SYS_ADMIN.

    Raises:
        GpuConstructsError: It is not a ConfigMap.
    """

    config_map: str | NamedObject
    key: str = "metrics"
    is_profiled: bool = False

    _NAME: ClassVar[str] = "metrics"
    _CHECKS: ClassVar[fields.Checks] = {"key": file_name}

    _KEPT: ClassVar[fields.Kept] = {"config_map": partial(references.name_of, "metrics.config_map", kind="ConfigMap")}


def _address(field: str, given: str) -> None:
    try:
        ipaddress.ip_address(given)
    except ValueError:
        raise GpuConstructsError(
            f"{field} must be an address, or 'None' for a headless Service; got {given!r}"
        ) from None


@dataclass(frozen=True, kw_only=True)
class ExporterService(fields.Options):
    """The Service in front of the exporter's pods.

    Attributes:
        type: ``ClusterIP``; another type shows pod names and GPU ids to whoever reaches it.
        cluster_ip: ``"None"`` makes it headless; None leaves the address to the cluster.
        internal_traffic_policy: ``Local`` answers a node from its own exporter.
        annotations: Annotations of the Service.

    Raises:
        GpuConstructsError: Another word, or an annotation that is none.

    Source: NVIDIA/dcgm-exporter@4.5.3-4.8.2:deployment/templates/service.yaml.
    """

    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = "ClusterIP"
    cluster_ip: str | None = None
    internal_traffic_policy: Literal["Cluster", "Local"] | None = None
    annotations: Mapping[str, str] = field(default_factory=dict)

    _NAME: ClassVar[str] = "service"
    _CHECKS: ClassVar[fields.Checks] = {
        "cluster_ip": fields.unless("None", _address),
        "annotations": fields.annotation_keys,
    }

    _KEPT: ClassVar[fields.Kept] = {"annotations": dict}

    def _conflicts(self) -> Iterable[fields.Conflict]:
        is_shown = self.cluster_ip == "None" and self.type != "ClusterIP"
        yield is_shown, f"service.cluster_ip must not be 'None' with type {self.type!r}; leave it out"

    def to_manifest(
        self, metadata: Mapping[str, Any], selector: Mapping[str, str], *, port: int, port_name: str
    ) -> dict[str, Any]:
        """Return the Service; its name is the ``job`` of the scraped series, its port that of the pods."""
        spec = {
            "clusterIP": self.cluster_ip,
            "internalTrafficPolicy": self.internal_traffic_policy,
            "ports": [{"name": port_name, "port": port, "targetPort": port_name, "protocol": "TCP"}],
            "selector": dict(selector),
            "type": self.type,
        }
        return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


@dataclass(frozen=True, kw_only=True)
class DebugDump(fields.Options):
    """Files with what the exporter read, for a bug report; they live and die with the pod.

    It writes two at each reading. A pod whose files outgrow ``size_limit`` is evicted.

    Attributes:
        retention: Hours that a file is kept.
        compression: Whether files are compressed.
        size_limit: What all files together may take of the node's disk.

    Raises:
        GpuConstructsError: Less than an hour, or a limit that is not a quantity.

    Source: NVIDIA/dcgm-exporter@4.5.3-4.8.2:pkg/cmd/app.go, ``--dump-enabled``.
    """

    retention: int = 24
    compression: bool = True
    size_limit: str = "1Gi"

    _CHECKS: ClassVar[fields.Checks] = {
        "retention": partial(fields.whole_number, minimum=1, maximum=8760),
        "size_limit": fields.size,
    }


class ExporterOptions(ProgramOptions, total=False):
    """Options of both exporters.

    Attributes:
        basic_auth: Passwords for the metrics, and with which the scrape object logs in.
        dashboard: Whether to emit the Grafana dashboard, True by default; ``GpuDashboard`` has options for it.
        env: Additional environment variables of the exporter.
        port: Port of the metrics, in the pod and in the Service.
        scrape: Kind of the scrape object, or a ``Scrape`` with its options; ``ServiceMonitor`` by default, ``none``
            leaves it out. The VictoriaMetrics operator converts a ``ServiceMonitor`` where the CRD is installed, so
            one is enough.
        scrape_labels: Labels by which the monitoring stack finds the scrape object, such as
            ``release: kube-prometheus-stack``.
        service: Whether to emit the Service, or its options; True by default. Kinds that scrape pods do without.
        tls: A certificate for the metrics, which the scrape object then uses.
        volumes: Additional mounts by path.
    """

    basic_auth: BasicAuth | None
    dashboard: bool
    env: Mapping[str, str | AnyEnvValue] | None
    port: int
    scrape: ScrapeKind | Scrape
    scrape_labels: Mapping[str, str] | None
    service: bool | ExporterService
    tls: Tls | None
    volumes: Mapping[str, Mountable] | None
