"""GPU metrics: the DCGM exporter with what scrapes and shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from constructs import Construct

from gpu_constructs import _fields, placement, versions
from gpu_constructs._config_map import config_map, sha256
from gpu_constructs._construct import GpuObject, checked
from gpu_constructs._labels import object_labels, selector_labels
from gpu_constructs._manifest import Manifest
from gpu_constructs._resources import Resources, container_resources
from gpu_constructs.namespace import DEFAULT_NAMESPACE, component_namespace
from gpu_constructs.observability import metrics as catalogue
from gpu_constructs.observability.daemonset import (
    DEFAULT_RESOURCES,
    METRICS_KEY,
    PORT_NAME,
    exporter_daemonset,
    exporter_service,
)
from gpu_constructs.observability.dashboard import dashboard_json
from gpu_constructs.observability.metrics import Metric
from gpu_constructs.observability.scrape import scrape_manifest
from gpu_constructs.placement import Toleration
from gpu_constructs.platforms import DEFAULT_PLATFORM, GPU_PRESENT, Platform
from gpu_constructs.provided import Provided
from gpu_constructs.runtime_class import runtime_class_name

NAME = "dcgm-exporter"


class DcgmExporter(GpuObject):
    """Exports the metrics of every GPU, in Prometheus' format, with the pod that holds each GPU.

    Emits ConfigMap ``dcgm-exporter-metrics``; DaemonSet and Service ``dcgm-exporter``; the scrape object
    ``dcgm-exporter``, whose kind must be installed in the cluster; and ConfigMap ``dcgm-exporter-dashboard``,
    which Grafana's sidecar loads by the label ``grafana_dashboard``.

    The pods run on nodes labelled ``nvidia.com/gpu.present=true`` and take no GPU slot. Where pods share a GPU,
    the exporter names one of them on its series; the GPU's own numbers are right all the same.

    Attributes:
        metrics: What is exported.
        api_object: The DaemonSet.

    Source:
        NVIDIA/dcgm-exporter@3.3.6-3.4.2 and @4.5.3-4.8.2, deployment/; image 4.6.0-4.8.3 as pinned by
        NVIDIA/gpu-operator@v26.7.0
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        namespace: object = DEFAULT_NAMESPACE,
        platform: Platform = DEFAULT_PLATFORM,
        version: str | versions.Unverified = versions.DEFAULT_DCGM_EXPORTER,
        metrics: Sequence[Metric] | None = None,
        scrape: Literal["ServiceMonitor", "PodMonitor", "VMServiceScrape", "none"] = "ServiceMonitor",
        scrape_labels: Mapping[str, str] | None = None,
        dashboard: bool = True,
        runtime_class: object = None,
        tolerations: Sequence[Toleration] = (),
        node_selector: Mapping[str, str] | None = None,
        image: str | None = None,
        resources: Resources | None = None,
        priority_class_name: str | None = None,
    ) -> None:
        """Make the exporter.

        Args:
            scope: A chart, or a construct in one.
            id: Construct id.
            namespace: By name or object; it must be privileged (host path, SYS_ADMIN for profiling).
            platform: ``Talos("1.12")`` or ``Kubernetes()``; decides the runtime class.
            version: Chart and exporter release: ``"4.8.3"`` by default; ``"4.8.2"``, whose image lacks
                libraries and with them XID and NVLink metrics; ``"3.4.2"``, which predates Blackwell GPUs.
            metrics: What to export. None: the release's own list, which has utilisation, VRAM, temperature,
                power and clocks among others.
            scrape: Kind of the scrape object; the VictoriaMetrics operator converts a ``ServiceMonitor``
                where the CRD is installed, so one is enough. ``none`` leaves it out.
            scrape_labels: Labels by which the monitoring stack finds the scrape object, such as
                ``release: kube-prometheus-stack``.
            dashboard: Whether to emit the Grafana dashboard.
            runtime_class: Name or object. None: the platform decides. Without the nvidia runtime the
                exporter ends with "Cannot init NVML library".
            tolerations: Taints of the GPU nodes, on top of ``nvidia.com/gpu``.
            node_selector: Node labels, besides ``nvidia.com/gpu.present=true``.
            image: Another ``repository:tag`` or digest.
            resources: By default requests of 100m CPU and 256Mi and a memory limit of 1Gi.
            priority_class_name: None by default: losing metrics must not evict workloads.

        Raises:
            GpuConstructsError: A value above is not allowed.
        """
        _fields.label_value("id", id)
        where = component_namespace(namespace)
        release = versions.release_of(versions.DCGM_EXPORTER, version, "the DCGM exporter")
        _fields.labels("scrape_labels", scrape_labels or {})
        _fields.labels("node_selector", node_selector or {})
        if priority_class_name is not None:
            _fields.dns_subdomain("priority_class_name", priority_class_name)
        if image is not None:
            _fields.image("image", image)
        exported = catalogue.default_metrics(release.behaves_like) if metrics is None else tuple(metrics)
        catalogue.check_metrics(exported)
        runtime = runtime_class_name(runtime_class, platform)
        amounts = container_resources(resources, default=DEFAULT_RESOURCES)
        selector = selector_labels(name=NAME, instance=id, component="exporter")
        labels = object_labels(selector, version=release.version)
        csv = catalogue.counters_csv(exported)
        metrics_map = {"name": f"{NAME}-metrics", "namespace": where, "labels": labels}
        exporter = exporter_daemonset(
            name=NAME,
            namespace=where,
            image=image or release.image,
            release=release.behaves_like,
            labels=labels,
            selector_labels=selector,
            metrics_config_map=f"{NAME}-metrics",
            metrics_sha256=sha256(csv),
            profiling=catalogue.needs_profiling(exported),
            runtime_class=runtime,
            node_selector={GPU_PRESENT: "true", **(node_selector or {})},
            tolerations=placement.tolerations((placement.GPU_TAINT,), tolerations),
            resources=amounts,
            priority_class=priority_class_name,
        )
        super().__init__(scope, id)
        self.metrics = exported
        self.provides = Provided(pod_security_default=platform.pod_security_default, components=("dcgm-exporter",))

        Manifest(self, "metrics", config_map(metrics_map, {METRICS_KEY: csv}))
        Manifest(self, "Default", exporter)
        Manifest(
            self,
            "service",
            exporter_service(name=NAME, namespace=where, labels=labels, selector_labels=selector),
        )
        if dashboard:
            board = {
                "name": f"{NAME}-dashboard",
                "namespace": where,
                "labels": {**labels, "grafana_dashboard": "1"},
            }
            text = dashboard_json(metrics=exported, release=release.behaves_like)
            Manifest(self, "dashboard", config_map(board, {f"{NAME}.json": text}))
        if scrape != "none":
            Manifest(
                self,
                "scrape",
                scrape_manifest(
                    kind=scrape,
                    name=NAME,
                    namespace=where,
                    labels=labels,
                    selector_labels=selector,
                    port=PORT_NAME,
                    additional_labels=scrape_labels,
                ),
            )
