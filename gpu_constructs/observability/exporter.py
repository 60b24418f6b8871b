"""Parts of the manifests that the DCGM exporter and nvidia_gpu_exporter have in common.

These are the Service, the ServiceMonitor (or PodMonitor, VMServiceScrape or VMPodScrape), the web configuration, and
parts of the pods.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from gpu_constructs.catalog.platforms import Platform
from gpu_constructs.errors import GpuConstructsError, then, warn
from gpu_constructs.kube import env, fields, placement, references, update_strategy, volume
from gpu_constructs.kube.labels import object_labels, selector_labels
from gpu_constructs.kube.pods import Pods
from gpu_constructs.kube.resources import Resources
from gpu_constructs.observability.exporter_options import ExporterService
from gpu_constructs.observability.scrape import Scrape, scrape_manifest
from gpu_constructs.observability.web_config import Guard, Volumes
from gpu_constructs.records import dataclass

Manifests = dict[str, dict[str, Any]]

LONGEST_NAME = 63 - len("-web-config")


@dataclass(frozen=True, kw_only=True)
class Program:
    """Properties of an exporter that do not depend on the options of the user.

    Attributes:
        name: Name of the exporter, and default name of its objects.
        port: Default port.
        port_name: Name of the port, to which the ServiceMonitor refers.
        resources: Default resource requests and limits.
        user: User ID of pods that do not need root.
        variables: A dict whose keys are the environment variables that the user must not set. The value is one of
            these: the keyword to set instead; an empty text for a variable that only this library sets; ``"nothing"``
            for a variable that removes labels.
    """

    name: str
    port: int
    port_name: str
    resources: Resources
    user: int
    variables: Mapping[str, str]

    def check_variable(self, field: str, name: str) -> None:
        """Raise an error if the user must not set the environment variable ``name``.

        ``field`` is the option that contains the variable, for the message.

        Raises:
            GpuConstructsError: If this library sets the variable, or the variable removes labels that alerts and
                dashboards need.
        """
        keyword = self.variables.get(name)
        if keyword == "nothing":
            raise GpuConstructsError(
                f"{field} must not contain {name!r}, which removes labels that alerts and dashboard use. Leave it out"
            )
        if keyword is not None:
            way_out = f"Set {keyword}" if keyword else "leave it out"
            raise GpuConstructsError(f"{field} must not contain {name!r}: this library sets it{then(way_out)}")


@dataclass(frozen=True, kw_only=True)
class Exporter:
    """An exporter with the options of the user.

    Attributes:
        program: Properties of the exporter that do not depend on the options.
        id: ID of the construct.
        name: Prefix of the names of all objects.
        namespace: Namespace of the objects.
        instance: Value of the label ``app.kubernetes.io/instance``, which distinguishes the pods of two exporters.
            None: the construct ID, or ``name`` if the user sets one.
        version: Release of the exporter, for the labels of the objects.
        interval_seconds: Default time between two scrapes, in seconds.
        options: Options of the user, with the keys of ``ExporterOptions``.
        path: HTTP path of the metrics.

    Raises:
        GpuConstructsError: If the value of an option is not allowed, or two options exclude each other.
    """

    program: Program
    id: str
    name: str
    namespace: str
    instance: str | None
    version: str
    interval_seconds: int
    options: Mapping[str, Any]
    path: str = "/metrics"

    def __post_init__(self) -> None:
        fields.label_value("id", self.id)
        fields.label_value("instance", self.selector["app.kubernetes.io/instance"])
        fields.dns_label("name", self.name)
        if len(self.name) > LONGEST_NAME:
            raise GpuConstructsError(
                f"name must have at most {LONGEST_NAME} characters, because objects append a suffix, got {self.name!r}"
            )
        fields.port_number("port", self.port)
        _check_scrape(self)
        for variable in self.options.get("env") or {}:
            self.program.check_variable("env", variable)

    @property
    def selector(self) -> dict[str, str]:
        """Labels with which the DaemonSet and the Service select the pods."""
        default = self.id if self.name == self.program.name else self.name
        instance = default if self.instance is None else self.instance
        return selector_labels(name=self.program.name, instance=instance, component="exporter")

    @property
    def metadata(self) -> dict[str, Any]:
        """Metadata that the objects of the exporter have in common: name, namespace and labels."""
        labels = object_labels(self.selector, version=self.version)
        return {"name": self.name, "namespace": self.namespace, "labels": labels}

    @property
    def port(self) -> int:
        """Number of the port that serves the metrics."""
        port: int = self.options.get("port", self.program.port)
        return port

    @cached_property
    def scrape(self) -> Scrape:
        """The scrape settings of the exporter."""
        return Scrape.of(self.options.get("scrape", "ServiceMonitor"), self.options.get("scrape_labels"))

    @property
    def job(self) -> str | None:
        """Value of the label ``job`` of the series. None if the library emits no ServiceMonitor or similar object."""
        return self.name if self.scrape.is_object else None

    @property
    def scrape_seconds(self) -> int:
        """Time between two scrapes, in seconds."""
        return self.scrape.interval_seconds or self.interval_seconds

    @property
    def service(self) -> ExporterService | None:
        """The Service for the pods. None if the user disables it."""
        given = self.options.get("service", True)
        return (ExporterService() if given is True else given) or None

    @cached_property
    def guard(self) -> Guard:
        """TLS and password settings of the HTTP endpoint that serves the metrics."""
        return Guard(self.options.get("tls"), self.options.get("basic_auth"))

    @property
    def service_account(self) -> str | None:
        """Name of the ServiceAccount that the user sets. None if the user sets none."""
        given = self.options.get("service_account")
        return None if given is None else references.name_of("service_account", given, "ServiceAccount")

    def pods(self, image: str, platform: Platform, node_labels: Mapping[str, str] | None = None) -> Pods:
        """Return the pod settings of the exporter, from the options of the user and the defaults of ``program``.

        Args:
            image: Image to use if the user sets no image.
            platform: Platform of the cluster, which determines the runtime class.
            node_labels: Labels that a node needs besides ``nvidia.com/gpu.present``.
        """
        return Pods(
            options=self.options,
            image=image,
            resources=self.program.resources,
            runtime_class=platform.runtime_class,
            node_labels={placement.GPU_PRESENT: "true", **(node_labels or {})},
            update_strategy=update_strategy.UpdateStrategy.rolling_update(max_unavailable=1),
        )

    def environment(self) -> list[dict[str, Any]]:
        """Return the environment variables that the user sets, as in a manifest."""
        return env.environment(self.options.get("env") or {}, visible_devices_is_managed=False)


def _check_scrape(exporter: Exporter) -> None:
    """Raise an error if Prometheus could not find the pods of an exporter, or has no password for their metrics.

    Warn if both a ServiceMonitor and a ``prometheus.io`` annotation select the pods, so that each series exists twice.
    """
    kind, service = exporter.scrape.kind, exporter.service
    if service is None and kind in ("ServiceMonitor", "VMServiceScrape", "annotations"):
        raise GpuConstructsError(
            f"service must not be False with scrape={kind!r}, which finds pods through the Service. Use "
            "scrape='PodMonitor' or 'VMPodScrape'"
        )
    if kind == "annotations" and exporter.guard.text is not None:
        raise GpuConstructsError(
            "scrape must not be 'annotations' with tls or basic_auth, because annotations contain neither certificates "
            "nor passwords. Use a kind that emits an object, such as 'ServiceMonitor', or use 'none'"
        )
    annotations = {
        "service.annotations": service.annotations if service else {},
        "pod_annotations": exporter.options.get("pod_annotations") or {},
    }
    for place, given in annotations.items():
        if exporter.scrape.is_object and given.get("prometheus.io/scrape") == "true":
            warn(
                f"{place} contains 'prometheus.io/scrape', but the exporter also has scrape={kind!r}. If one "
                "Prometheus reads both, it scrapes the exporter twice. Remove the annotation, or pass "
                "scrape='annotations'"
            )


def probes(exporter: Exporter, alive: str, ready: str, failures: int) -> dict[str, Any]:
    """Return the startup, liveness and readiness probes of the exporter's container.

    Args:
        exporter: The exporter.
        alive: HTTP path for the liveness probe. The exporter answers on this path as soon as it runs.
        ready: HTTP path for the readiness and startup probes. Requests to it fail until the exporter has read the GPUs
            once.
        failures: Number of failures that the startup probe allows. The startup probe runs every five seconds.
    """
    port = exporter.program.port_name
    return {
        "startupProbe": exporter.guard.probe(ready, port, period=5, failures=failures),
        "livenessProbe": exporter.guard.probe(alive, port, period=20, failures=3),
        "readinessProbe": exporter.guard.probe(ready, port, period=10, failures=3),
    }


def daemonset(
    exporter: Exporter,
    pods: Pods,
    container: Mapping[str, Any],
    own: Volumes,
    checksums: Mapping[str, str],
    **more: Any,
) -> dict[str, Any]:
    """Return the manifest of the exporter's DaemonSet.

    Args:
        exporter: The exporter.
        pods: Pod settings of the exporter.
        container: Fields of the container, except its port and its volume mounts.
        own: Volumes of the exporter besides those of the user. A dict from volume name to a pair: source and mount.
        checksums: Pod annotations with checksums of the configuration. If one changes, Kubernetes replaces the pods.
        more: Further fields of the pod spec.

    Raises:
        GpuConstructsError: If the user mounts a volume at a path that the exporter uses.
    """
    places = {mount["mountPath"] for _, mount in own.values()}
    given, volumes = volume.mounts(exporter.options.get("volumes") or {}, shared_memory=None, reserved=own)
    for mount in given:
        # normpath keeps two leading slashes, so they become one here.
        if posixpath.normpath("/" + mount["mountPath"].lstrip("/")) in places:
            raise GpuConstructsError(
                f"volumes must not contain {mount['mountPath']!r}, which the exporter uses. Choose another path"
            )
    made = pods.container(
        **container,
        ports=[{"name": exporter.program.port_name, "containerPort": exporter.port, "protocol": "TCP"}],
        volumeMounts=[*({"name": name, **mount} for name, (_, mount) in own.items()), *given] or None,
    )
    own_volumes = [{"name": name, **source} for name, (source, _) in own.items()]
    return pods.daemonset(
        pods.spec([made], **more, volumes=[*own_volumes, *volumes] or None),
        metadata=exporter.metadata,
        selector=exporter.selector,
        checksums={**checksums, **exporter.guard.checksums},
    )


def found_by(exporter: Exporter) -> Manifests:
    """Return the Service and the ServiceMonitor (or similar object), by construct ID.

    The result omits objects that the user disables.
    """
    manifests: Manifests = {}
    port_name = exporter.program.port_name
    if exporter.service:
        annotations = {**exporter.service.annotations, **exporter.scrape.annotations(exporter.port, exporter.path)}
        metadata = {**exporter.metadata, "annotations": annotations or None}
        manifests["service"] = exporter.service.to_manifest(
            metadata, exporter.selector, port=exporter.port, port_name=port_name
        )
    if exporter.scrape.is_object:
        manifests["scrape"] = scrape_manifest(
            exporter.scrape,
            metadata=exporter.metadata,
            selector_labels=exporter.selector,
            port=port_name,
            collect_interval_seconds=exporter.interval_seconds,
            access=exporter.guard.access(f"{exporter.name}.{exporter.namespace}.svc"),
            path=exporter.path,
        )
    return manifests
