"""Options of the DCGM exporter and nvidia_gpu_exporter."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
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
from gpu_constructs.records import dataclass, field


@dataclass(frozen=True, kw_only=True)
class MetricsConfigMap(fields.Options):
    """An existing ConfigMap with a list of metrics for the DCGM exporter.

    The app does not create the ConfigMap. It must be in the namespace of the exporter.

    The library does not know the metrics in the ConfigMap, so it cannot create a dashboard or alerts for them.

    Attributes:
        config_map: Name or object of the ConfigMap.
        key: Key of the ConfigMap whose value is the CSV. ``metrics`` by default.
        is_profiled: Whether the list contains ``DCGM_FI_PROF_*`` metrics. The exporter needs SYS_ADMIN for them. False
            by default.

    Raises:
        GpuConstructsError: If ``config_map`` is not a ConfigMap, or the key is not valid.
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
            f"{field} must be an address, or 'None' for a headless Service, got {given!r}"
        ) from None


@dataclass(frozen=True, kw_only=True)
class ExporterService(fields.Options):
    """The Service in front of the pods of an exporter.

    Attributes:
        type: Service type. ``ClusterIP`` by default. With another type, clients outside of the cluster can read names
            of pods and IDs of GPUs.
        cluster_ip: Address of the Service. ``"None"`` makes it headless. None, the default: the cluster chooses an
            address.
        internal_traffic_policy: Traffic policy. ``Local`` sends the requests of a node to the exporter on the same
            node. None, the default: the field is not set.
        annotations: Annotations of the Service.

    Raises:
        GpuConstructsError: If a value is unknown, or an annotation is not valid.

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
        yield is_shown, f"service.cluster_ip must not be 'None' with type {self.type!r}. Leave it out"

    def to_manifest(
        self, metadata: Mapping[str, Any], selector: Mapping[str, str], *, port: int, port_name: str
    ) -> dict[str, Any]:
        """Return the manifest of the Service.

        The name in ``metadata`` becomes the label ``job`` of the scraped series. ``port`` is the port of the Service
        and of the pods. ``selector`` contains the labels of the pods.
        """
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
    """Options of the files with GPU readings that the exporter writes for a bug report.

    The exporter writes two files at each reading. The files disappear with the pod. Kubernetes evicts a pod whose files
    exceed ``size_limit``.

    Attributes:
        retention: Age after which the exporter deletes a file, in hours. 24 by default.
        compression: Whether the exporter compresses files. True by default.
        size_limit: Upper limit of the disk space for all files, as a quantity. ``1Gi`` by default.

    Raises:
        GpuConstructsError: If the retention is less than an hour, or the limit is not a quantity.

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
    """Options that the DCGM exporter and nvidia_gpu_exporter share.

    Attributes:
        basic_auth: Users and passwords that clients need to read the metrics, and the password for the scraper.
        dashboard: Whether to emit the Grafana dashboard. True by default. To change its options, create a
            ``GpuDashboard``.
        env: Environment variables to add to the exporter.
        port: Port of the metrics, in the pod and in the Service.
        scrape: Kind of the object that makes Prometheus or VictoriaMetrics scrape the exporter, or a ``Scrape`` with
            options. ``ServiceMonitor`` by default; ``none`` emits no such object. A ``ServiceMonitor`` is enough for
            VictoriaMetrics too: its operator converts the object if the CRD of ServiceMonitors is in the cluster.
        scrape_labels: Labels of the ServiceMonitor (or object of another kind), with which the monitoring stack selects
            it, such as ``release: kube-prometheus-stack``.
        service: Whether to emit the Service, or an ``ExporterService`` with its options. True by default. A
            ``PodMonitor`` or ``VMPodScrape`` selects pods and needs no Service.
        tls: Certificate of the HTTPS endpoint for the metrics. The scraper then uses TLS too.
        volumes: Volumes to add, by mount path.
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
