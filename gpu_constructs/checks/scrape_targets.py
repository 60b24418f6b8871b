"""A check that finds metrics endpoints which two objects of the app scrape.

Four kinds of objects select the pods that a metrics collector scrapes: ServiceMonitor, PodMonitor, VMServiceScrape and
VMPodScrape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from gpu_constructs.facts.app import Facts, Pod
from gpu_constructs.facts.finding import Finding
from gpu_constructs.facts.readable import Manifest, annotations_of, at, labels_of, mapping, members, namespace_of
from gpu_constructs.kube.annotations import SCRAPED_TWICE
from gpu_constructs.kube.pod_specs import containers

_KINDS: Mapping[tuple[str, str], str] = {
    ("monitoring.coreos.com", "ServiceMonitor"): "endpoints",
    ("monitoring.coreos.com", "PodMonitor"): "podMetricsEndpoints",
    ("operator.victoriametrics.com", "VMServiceScrape"): "endpoints",
    ("operator.victoriametrics.com", "VMPodScrape"): "podMetricsEndpoints",
}
_WITH_PODS = frozenset({"DaemonSet", "Deployment", "Job", "Pod", "ReplicaSet", "StatefulSet"})


def targets_are_scraped_once(facts: Facts) -> Iterator[Finding]:
    """Yield problems: pairs of objects, such as two ServiceMonitors, that scrape the same endpoint of the same pods."""
    scraped = [
        (index, targets)
        for index, targets in scrape_targets(facts).items()
        if annotations_of(facts.objects[index]).get(SCRAPED_TWICE) != "intended"
    ]
    for place, (index, targets) in enumerate(scraped):
        for other, others in scraped[:place]:
            both = sorted(targets & others)
            if both:
                yield Finding(
                    index,
                    f"scrapes port {both[0].port} of {{0}}, and so does {{1}}, so every series exists twice. This "
                    "also applies if the VictoriaMetrics operator creates one of these objects from the other. Remove "
                    f"one of the two, or annotate one with {SCRAPED_TWICE}=intended if two databases need the series",
                    others=(both[0].pods, other),
                )


class Target(NamedTuple):
    """A metrics endpoint of the pods of one object, such as a DaemonSet.

    Attributes:
        pods: Index of the object in ``Facts.objects``.
        port: Number of the port, or its name if no container declares a port with this name.
        path: Path of the URL, such as ``/metrics``.
        params: Query parameters of the URL as text; empty by default.
    """

    pods: int
    port: str
    path: str
    params: str = ""


def scrape_targets(facts: Facts) -> dict[int, set[Target]]:
    """Return the metrics endpoints that each ServiceMonitor, PodMonitor, VMServiceScrape and VMPodScrape scrapes.

    The keys are the indices of these objects in ``Facts.objects``. The value for an object with ``matchExpressions`` is
    an empty set. The sets omit endpoints with relabeling rules that keep or drop targets.
    """
    found: dict[int, set[Target]] = {}
    for kind, endpoints in _KINDS.items():
        reach = _pods if endpoints == "podMetricsEndpoints" else _behind_services
        for index, manifest in facts.of_kind(kind):
            each = [one for one in members(at(manifest, "spec").get(endpoints)) if not _chooses(one)]
            found[index] = {target for endpoint in each for target in reach(facts, manifest, endpoint)}
    return dict(sorted(found.items()))


def _chooses(endpoint: Manifest) -> bool:
    """Check whether an endpoint in a ServiceMonitor or similar object keeps or drops targets by relabeling rules.

    The action of such a rule starts with ``keep`` or ``drop``, as in ``keepequal``.
    """
    steps = members(endpoint.get("relabelings") or endpoint.get("relabelConfigs"))
    return any(str(step.get("action")).lower().startswith(("keep", "drop")) for step in steps)


def _selects(scrape: Manifest, labels: Mapping[str, str], namespace: str) -> bool:
    """Check whether the selectors of a ServiceMonitor or similar object match a pod or a Service.

    Args:
        scrape: ServiceMonitor, PodMonitor, VMServiceScrape or VMPodScrape. If it has ``matchExpressions``, the result
            is False.
        labels: Labels of the pod or Service.
        namespace: Namespace of the pod or Service.
    """
    spec = at(scrape, "spec")
    selector, places = mapping(spec.get("selector")), mapping(spec.get("namespaceSelector"))
    names = places.get("matchNames")
    # An empty selector matches everything. The Prometheus operator rejects an object without a selector.
    is_there = spec.get("selector") is not None or str(scrape.get("kind")).startswith("VM")
    if selector.get("matchExpressions") or not is_there:
        return False
    if not places.get("any") and namespace not in (
        names if isinstance(names, list) and names else [namespace_of(scrape)]
    ):
        return False
    return mapping(selector.get("matchLabels")).items() <= labels.items()


def _numbered(pod: Pod, port: object, endpoint: Manifest) -> Target:
    """Return a metrics endpoint of a pod, with the port as a number if a container declares the name of the port.

    Thus, endpoints are equal if one ServiceMonitor names the port and another states its number.

    Args:
        pod: Pod spec.
        port: Name or number of the container port.
        endpoint: Endpoint in the ServiceMonitor or similar object, with a path and query parameters.
    """
    ports = [one for container in containers(pod.spec) for one in members(container.get("ports"))]
    number = next((one.get("containerPort") for one in ports if port is not None and port == one.get("name")), port)
    params = mapping(endpoint.get("params"))
    query = repr(sorted(params.items(), key=repr)) if params else ""
    return Target(pod.index, str(number), str(endpoint.get("path") or "/metrics"), query)


def _selected(facts: Facts, takes: Callable[[Mapping[str, str], str], bool]) -> Iterator[Pod]:
    """Yield the pods of the app for which ``takes(labels, namespace)`` is True."""
    for pod in facts.pods:
        is_known = pod.manifest["kind"] in _WITH_PODS
        if is_known and takes(labels_of({"metadata": pod.metadata}), namespace_of(pod.manifest)):
            yield pod


def _pods(facts: Facts, scrape: Manifest, endpoint: Manifest) -> Iterator[Target]:
    """Yield the metrics endpoints of pods that one item of ``podMetricsEndpoints`` selects.

    Args:
        facts: Facts that the library derives from the objects of the app.
        scrape: PodMonitor or VMPodScrape.
        endpoint: Item of ``podMetricsEndpoints`` in its spec.
    """
    port = endpoint.get("port") or endpoint.get("portNumber") or endpoint.get("targetPort")
    for pod in _selected(facts, partial(_selects, scrape)):
        yield _numbered(pod, port, endpoint)


def _behind_services(facts: Facts, scrape: Manifest, endpoint: Manifest) -> Iterator[Target]:
    """Yield the metrics endpoints of pods that one item of ``endpoints`` selects through Services.

    Args:
        facts: Facts that the library derives from the objects of the app.
        scrape: ServiceMonitor or VMServiceScrape.
        endpoint: Item of ``endpoints`` in its spec.
    """
    # Both operators use targetPort only if the endpoint has no port.
    theirs = None if endpoint.get("port") else endpoint.get("targetPort")
    for _, service in facts.of_kind(("", "Service")):
        selector = at(service, "spec.selector") or {"": ""}
        ports = members(at(service, "spec").get("ports"))
        reached = [one for one in ports if theirs is not None or endpoint.get("port") == one.get("name")]
        for port in reached if _selects(scrape, labels_of(service), namespace_of(service)) else ():
            pod_port = theirs or port.get("targetPort") or port.get("port")
            for pod in _selected(facts, partial(_is_behind, namespace_of(service), selector)):
                yield _numbered(pod, pod_port, endpoint)


def _is_behind(place: str, selector: Mapping[str, str], labels: Mapping[str, str], namespace: str) -> bool:
    """Check whether a Service selects a pod.

    Args:
        place: Namespace of the Service.
        selector: Selector of the Service.
        labels: Labels of the pod.
        namespace: Namespace of the pod.
    """
    return namespace == place and selector.items() <= labels.items()
