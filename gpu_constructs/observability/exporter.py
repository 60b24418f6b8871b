"""Manifests that both exporters have: their Service, scrape object, web configuration, and parts of their pods."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from constructs import Construct

from gpu_constructs.catalog.platforms import Kubernetes, Platform
from gpu_constructs.catalog.versions import Unverified
from gpu_constructs.errors import GpuConstructsError, short_errors, warn
from gpu_constructs.kube import env, fields, placement, references, update_strategy, volume
from gpu_constructs.kube.labels import object_labels, selector_labels
from gpu_constructs.kube.pods import Pods
from gpu_constructs.kube.resources import Resources
from gpu_constructs.observability.exporter_options import ExporterService
from gpu_constructs.observability.gpu_dashboard import GpuDashboard
from gpu_constructs.observability.gpu_series import GpuSeries
from gpu_constructs.observability.scrape import Scrape, scrape_manifest
from gpu_constructs.observability.web_config import Guard, Volumes
from gpu_constructs.tree.construct import GpuObject, from_values
from gpu_constructs.tree.manifest import Manifest

Manifests = dict[str, dict[str, Any]]

LONGEST_NAME = 63 - len("-web-config")


@dataclass(frozen=True, kw_only=True)
class Program:
    """Facts of an exporter.

    Attributes:
        name: Name of the exporter, and of its objects by default.
        port: Port by default.
        port_name: Name of the port, by which scrape objects find it.
        resources: Requests and limits by default.
        user: User of pods that need no root.
        variables: Variables that only this library sets, each with the keyword to set instead. An empty one has no
            keyword, and ``nothing`` is for those that take labels away from the series.
    """

    name: str
    port: int
    port_name: str
    resources: Resources
    user: int
    variables: Mapping[str, str]

    def check_variable(self, field: str, name: str) -> None:
        """Check that a variable of the user is not one that only this library sets.

        Raises:
            GpuConstructsError: It is, or it takes away what alerts and dashboards need.
        """
        keyword = self.variables.get(name)
        if keyword == "nothing":
            raise GpuConstructsError(
                f"{field} must not hold {name!r}: it takes away labels that alerts and dashboard ask for; leave it out"
            )
        if keyword is not None:
            way_out = f"set {keyword}" if keyword else "leave it out"
            raise GpuConstructsError(f"{field} must not hold {name!r}: this library sets it; {way_out}")


@dataclass(frozen=True, kw_only=True)
class Exporter:
    """An exporter that a user wants.

    Attributes:
        program: Facts of the exporter.
        id: Id of the construct.
        name: Prefix of the names of all objects.
        namespace: Namespace of the objects.
        instance: Label that tells the pods of two exporters apart; None for the id, or the name if that is another.
        version: Release that the objects name.
        interval_seconds: Seconds between two scrapes if the user does not say.
        options: Options of the user, those of ``ExporterOptions``.
        path: Path of the metrics.

    Raises:
        GpuConstructsError: An option has a value that is not allowed, or that another one rules out.
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
                f"name must have at most {LONGEST_NAME} characters, since others follow; got {self.name!r}"
            )
        fields.port_number("port", self.port)
        _check_scrape(self)
        for variable in self.options.get("env") or {}:
            self.program.check_variable("env", variable)

    @property
    def selector(self) -> dict[str, str]:
        """Labels by which the DaemonSet and the Service find the pods."""
        default = self.id if self.name == self.program.name else self.name
        instance = default if self.instance is None else self.instance
        return selector_labels(name=self.program.name, instance=instance, component="exporter")

    @property
    def metadata(self) -> dict[str, Any]:
        """Metadata of the objects."""
        labels = object_labels(self.selector, version=self.version)
        return {"name": self.name, "namespace": self.namespace, "labels": labels}

    @property
    def port(self) -> int:
        """Port of the metrics."""
        port: int = self.options.get("port", self.program.port)
        return port

    @cached_property
    def scrape(self) -> Scrape:
        """How the exporter is scraped."""
        return Scrape.of(self.options.get("scrape", "ServiceMonitor"), self.options.get("scrape_labels"))

    @property
    def job(self) -> str | None:
        """Value of the label ``job`` of the series, or None if an object of the user scrapes."""
        return self.name if self.scrape.is_object else None

    @property
    def scrape_seconds(self) -> int:
        """Seconds between two scrapes."""
        return self.scrape.interval_seconds or self.interval_seconds

    @property
    def service(self) -> ExporterService | None:
        """Service in front of the pods, or None without one."""
        given = self.options.get("service", True)
        return (ExporterService() if given is True else given) or None

    @cached_property
    def guard(self) -> Guard:
        """What stands in front of the metrics."""
        return Guard(self.options.get("tls"), self.options.get("basic_auth"))

    @property
    def service_account(self) -> str | None:
        """Name of the ServiceAccount that the user names."""
        given = self.options.get("service_account")
        return None if given is None else references.name_of("service_account", given, "ServiceAccount")

    def pods(self, image: str, platform: Platform, node_labels: Mapping[str, str] | None = None) -> Pods:
        """Return the pods of the exporter.

        Args:
            image: Image if the user names none.
            platform: Platform, which decides the runtime class.
            node_labels: Node labels to select besides the one of nodes with GPUs.
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
        """Return the variables of the user."""
        return env.environment(self.options.get("env") or {}, visible_devices_is_managed=False)


def _check_scrape(exporter: Exporter) -> None:
    """Check that there is a way to the pods that lets the scraper in, and warn of a second one."""
    kind, service = exporter.scrape.kind, exporter.service
    if service is None and kind in ("ServiceMonitor", "VMServiceScrape", "annotations"):
        raise GpuConstructsError(
            f"service must not be False with scrape={kind!r}, which finds pods through the Service; use "
            "scrape='PodMonitor' or 'VMPodScrape'"
        )
    if kind == "annotations" and exporter.guard.text is not None:
        raise GpuConstructsError(
            "scrape must not be 'annotations' with tls or basic_auth, since annotations carry neither certificates "
            "nor passwords; take one of the kinds that are objects, or 'none'"
        )
    annotations = {
        "service.annotations": service.annotations if service else {},
        "pod_annotations": exporter.options.get("pod_annotations") or {},
    }
    for place, given in annotations.items():
        if exporter.scrape.is_object and given.get("prometheus.io/scrape") == "true":
            warn(
                f"{place} holds 'prometheus.io/scrape' beside scrape={kind!r}: a Prometheus that looks for it "
                "scrapes the same target again; leave it out, or pass scrape='annotations'"
            )


def probes(exporter: Exporter, alive: str, ready: str, failures: int) -> dict[str, Any]:
    """Return the probes of the container.

    Args:
        exporter: The exporter.
        alive: Path that a living exporter answers.
        ready: Path that an exporter with readings answers.
        failures: Failures that the startup probe bears, five seconds apart.
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
    """Return the DaemonSet.

    Args:
        exporter: The exporter.
        pods: Pods of the exporter.
        container: The container without its port and its mounts.
        own: Volumes of the exporter.
        checksums: Annotations that restart the pods if what they read changes.
        more: Further fields of the pods' spec.

    Raises:
        GpuConstructsError: The user mounts something at a path of the exporter's own.
    """
    places = {mount["mountPath"] for _, mount in own.values()}
    given, volumes = volume.mounts(exporter.options.get("volumes") or {}, shared_memory=None, reserved=own)
    for mount in given:
        # Two slashes in front mean something else to normpath.
        if posixpath.normpath("/" + mount["mountPath"].lstrip("/")) in places:
            raise GpuConstructsError(
                f"volumes must not hold {mount['mountPath']!r}: the exporter has its own there; take another path"
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
    """Return the Service and the scrape object, as far as the user wants them."""
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


class ExporterObject(GpuObject):
    """An exporter with its objects and its dashboard.

    Attributes:
        name: Name of the DaemonSet and the Service.
        namespace: Namespace of the objects.
        series: What is exported, for ``GpuAlerts`` and ``GpuDashboard``.
    """

    name: str
    namespace: str
    series: GpuSeries
    _default_version: str
    _options_of: Callable[..., Mapping[str, Any]]

    @classmethod
    @short_errors
    def from_helm_values(
        cls,
        scope: Construct,
        id: str,
        values: Mapping[str, Any],
        *,
        release_name: str,
        namespace: str,
        version: str | Unverified | None = None,
        platform: Platform = Kubernetes(),  # noqa: B008
        strict: bool = True,
    ) -> Self:
        """Make the exporter from the values of its Helm chart.

        Emits the same objects under the same names, but for the deviations that the page "Coming from the
        Helm chart" lists.

        Args:
            scope: A chart, or a construct in one.
            id: Construct id.
            values: What the values file says, as Python; the chart's own defaults need not be in it.
            release_name: Name of the Helm release; names and labels are made from it as Helm does.
            namespace: Namespace of the Helm release.
            version: Version of the program: that of NVIDIA's chart, and one major release behind the chart of
                nvidia_gpu_exporter, 1.14.0 for chart 2.14.0. None: that of the construct.
            platform: What the values cannot say; plain Kubernetes by default, which adds nothing.
            strict: Refuse a key that the chart does not read, or whose value it or the exporter would refuse
                or ignore. False drops such a key with a warning.

        Raises:
            GpuConstructsError: See ``strict``; and whatever the keywords themselves raise.
        """
        return from_values(
            cls,
            cls._options_of,
            scope,
            id,
            values,
            release_name=release_name,
            namespace=namespace,
            version=cls._default_version if version is None else version,
            platform=platform,
            strict=strict,
        )

    def _emit(self, exporter: Exporter, series: GpuSeries, manifests: Manifests) -> None:
        self.name = exporter.name
        self.namespace = exporter.namespace
        self.series = series
        for child, manifest in manifests.items():
            Manifest(self, child, manifest)
        if exporter.options.get("dashboard", True):
            GpuDashboard(self, "dashboard", exporter=self)
