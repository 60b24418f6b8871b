"""The object that tells Prometheus or VictoriaMetrics to scrape the exporter."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, Literal, get_args

from gpu_constructs import _fields
from gpu_constructs.observability.metrics import COLLECTION_INTERVAL_SECONDS

ScrapeKind = Literal["ServiceMonitor", "PodMonitor", "VMServiceScrape"]

_API_VERSION: dict[ScrapeKind, str] = {
    "ServiceMonitor": "monitoring.coreos.com/v1",
    "PodMonitor": "monitoring.coreos.com/v1",
    "VMServiceScrape": "operator.victoriametrics.com/v1beta1",
}

# The exporter says which pod uses a GPU (pod, namespace, container): honorLabels keeps that. For an idle GPU
# it says nothing, and the target's own labels would fill the gap: the GPU would look used by the exporter. So
# they are dropped, once what `up` needs to name its target is kept.
_RELABELINGS: list[dict[str, Any]] = [
    {"action": "replace", "sourceLabels": ["pod"], "targetLabel": "exporter_pod"},
    {"action": "replace", "sourceLabels": ["__meta_kubernetes_pod_node_name"], "targetLabel": "node"},
    {"action": "labeldrop", "regex": "pod|container|namespace|service|endpoint"},
]


def scrape_manifest(
    *,
    kind: ScrapeKind,
    name: str,
    namespace: str,
    labels: Mapping[str, str],
    selector_labels: Mapping[str, str],
    port: str = "metrics",
    additional_labels: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Give the manifest of the object that makes a monitoring stack scrape the exporter.

    It scrapes every 30 s, as often as the exporter reads the GPUs, and waits 10 s at most. Series keep the
    pod, namespace and container of the workload that holds the GPU; the exporter's own pod and node are in
    the labels ``exporter_pod`` and ``node``.

    Args:
        kind: ``ServiceMonitor`` or ``PodMonitor`` (prometheus-operator; the VictoriaMetrics operator converts
            them where their CRDs are installed) or ``VMServiceScrape``.
        name: Name of the object.
        namespace: Namespace of the object and of what it selects.
        labels: Labels of the object.
        selector_labels: Labels of the Service, for ``PodMonitor`` of the pods.
        port: Name of the Service port, for ``PodMonitor`` of the container port.
        additional_labels: Labels by which the stack finds the object, such as
            ``release: kube-prometheus-stack``.

    Raises:
        GpuConstructsError: For a kind that is none of the three.

    Source: prometheus-operator v0.93.0 and VictoriaMetrics operator v0.74.1, their CRDs.
    """
    _fields.one_of("kind", kind, get_args(ScrapeKind))
    endpoint: dict[str, Any] = {
        "port": port,
        "path": "/metrics",
        "interval": f"{COLLECTION_INTERVAL_SECONDS}s",
        "scrapeTimeout": "10s",
        "honorLabels": True,
        "relabelConfigs" if kind == "VMServiceScrape" else "relabelings": deepcopy(_RELABELINGS),
    }
    spec: dict[str, Any] = {
        "selector": {"matchLabels": dict(selector_labels)},
        "namespaceSelector": {"matchNames": [namespace]},
    }
    if kind == "PodMonitor":
        # Without it the job is called <namespace>/<object>; with it, as for the other kinds, dcgm-exporter.
        spec["jobLabel"] = "app.kubernetes.io/name"
        spec["podMetricsEndpoints"] = [endpoint]
    else:
        spec["endpoints"] = [endpoint]
    return {
        "apiVersion": _API_VERSION[kind],
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "labels": {**labels, **(additional_labels or {})}},
        "spec": spec,
    }
