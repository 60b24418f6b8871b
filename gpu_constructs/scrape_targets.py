"""Which pods of an app the scrape objects beside them reach."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gpu_constructs.pod_specs import containers

Manifest = Mapping[str, Any]

_KINDS: Mapping[tuple[str, str], str] = {
    ("monitoring.coreos.com", "ServiceMonitor"): "endpoints",
    ("monitoring.coreos.com", "PodMonitor"): "podMetricsEndpoints",
    ("operator.victoriametrics.com", "VMServiceScrape"): "endpoints",
    ("operator.victoriametrics.com", "VMPodScrape"): "podMetricsEndpoints",
}
_TEMPLATES = frozenset({"DaemonSet", "Deployment", "ReplicaSet", "StatefulSet", "Job"})


class Target(NamedTuple):
    """A port, path and query of the pods that one object makes."""

    pods: int
    port: str
    path: str
    params: str = ""


def scrape_targets(manifests: Sequence[Manifest]) -> dict[int, set[Target]]:
    """Give what each scrape object reaches, both by index; what is not in the app is not seen.

    Selectors by expression and empty ones are taken for reaching nothing, and so is an endpoint that keeps only
    some of its targets.
    """
    found: dict[int, set[Target]] = {}
    for index, manifest in enumerate(manifests):
        group = str(manifest.get("apiVersion", "")).rpartition("/")[0]
        endpoints = _KINDS.get((group, str(manifest.get("kind"))))
        if endpoints is None:
            continue
        reach = _pods if endpoints == "podMetricsEndpoints" else _behind_services
        spec = manifest.get("spec") or {}
        found[index] = {
            target
            for endpoint in spec.get(endpoints) or ()
            if not _chooses(endpoint)
            for target in reach(manifests, manifest, endpoint)
        }
    return found


def _chooses(endpoint: Manifest) -> bool:
    steps = endpoint.get("relabelings") or endpoint.get("relabelConfigs") or ()
    return any(str(step.get("action")).lower().startswith(("keep", "drop")) for step in steps)


def _labels(manifest: Manifest) -> Mapping[str, str]:
    return (manifest.get("metadata") or {}).get("labels") or {}


def _namespace(manifest: Manifest) -> str:
    return str((manifest.get("metadata") or {}).get("namespace") or "default")


def _selects(scrape: Manifest, labels: Mapping[str, str], namespace: str) -> bool:
    spec = scrape["spec"]
    selector, places = spec.get("selector") or {}, spec.get("namespaceSelector") or {}
    # An empty selector takes everything; where there is none, Prometheus' operator refuses the object.
    is_there = spec.get("selector") is not None or str(scrape.get("kind")).startswith("VM")
    if selector.get("matchExpressions") or not is_there:
        return False
    if not places.get("any") and namespace not in (places.get("matchNames") or [_namespace(scrape)]):
        return False
    return dict(selector.get("matchLabels") or {}).items() <= labels.items()


def _templates(manifests: Sequence[Manifest]) -> Iterator[tuple[int, str, Manifest]]:
    for index, manifest in enumerate(manifests):
        if manifest.get("kind") in _TEMPLATES:
            yield index, _namespace(manifest), (manifest.get("spec") or {}).get("template") or {}
        elif manifest.get("kind") == "Pod":
            yield index, _namespace(manifest), manifest


def _number(template: Manifest, port: object) -> str:
    """Give a port of the pods by number, so that names and numbers compare."""
    for container in containers(template.get("spec") or {}):
        for one in container.get("ports") or ():
            if port is not None and port == one.get("name"):
                return str(one.get("containerPort"))
    return str(port)


def _asked(endpoint: Manifest) -> tuple[str, str]:
    params = endpoint.get("params") or {}
    return str(endpoint.get("path") or "/metrics"), repr(sorted(params.items())) if params else ""


def _pods(manifests: Sequence[Manifest], scrape: Manifest, endpoint: Manifest) -> Iterator[Target]:
    port = endpoint.get("port") or endpoint.get("portNumber") or endpoint.get("targetPort")
    for index, namespace, template in _templates(manifests):
        if _selects(scrape, _labels(template), namespace):
            yield Target(index, _number(template, port), *_asked(endpoint))


def _behind_services(manifests: Sequence[Manifest], scrape: Manifest, endpoint: Manifest) -> Iterator[Target]:
    for service in manifests:
        if service.get("kind") != "Service" or not _selects(scrape, _labels(service), _namespace(service)):
            continue
        spec = service.get("spec") or {}
        for port in spec.get("ports") or ():
            # Both operators look at targetPort only where there is no port.
            theirs = None if endpoint.get("port") else endpoint.get("targetPort")
            if theirs is None and endpoint.get("port") != port.get("name"):
                continue
            pod_port = theirs or port.get("targetPort") or port.get("port")
            for index, namespace, template in _templates(manifests):
                is_behind = (spec.get("selector") or {"": ""}).items() <= _labels(template).items()
                if is_behind and namespace == _namespace(service):
                    yield Target(index, _number(template, pod_port), *_asked(endpoint))
