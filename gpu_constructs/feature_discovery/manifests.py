"""The manifests of Node Feature Discovery (NFD), which labels nodes with their PCI devices and other features.

Source: the Helm charts of NFD 0.17.3 and 0.19.0 in NVIDIA/k8s-device-plugin@v0.18.2 and @v0.20.0.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from importlib import resources
from typing import Any

from gpu_constructs.catalog import nfd_labels
from gpu_constructs.catalog.nfd_labels import NfdLabels
from gpu_constructs.catalog.versions import NodeFeatureDiscoveryRelease
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.feature_discovery import config, programs
from gpu_constructs.feature_discovery.components import NfdComponent, NfdDaemonSet, NfdDeployment, NfdMaster
from gpu_constructs.feature_discovery.node_feature_discovery import NodeFeatureDiscovery
from gpu_constructs.feature_discovery.options import NfdPodMonitor, duration_text, flags, known_flags
from gpu_constructs.kube import container_security, fields, placement, pods, rbac
from gpu_constructs.kube.config_map import config_map, sha256
from gpu_constructs.kube.labels import object_labels, selector_labels
from gpu_constructs.kube.yaml_text import yaml_text
from gpu_constructs.records import dataclass

CONFIG_CHECKSUM = "gpu-constructs/config-sha256"
LABELS = f"{nfd_labels.DOMAIN}*"
"""Pattern of the node labels that NFD can publish, for an installation of NFD whose configuration is unknown."""

_NAME = "node-feature-discovery"
_CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
_NEAR_THE_API_SERVER = {"weight": 1, "preference": {"matchExpressions": [placement.label_exists(_CONTROL_PLANE)]}}
_API_SERVER_AND_DNS = (80, 443, 53, 6443)
_KUBELET = 10250

Manifests = dict[str, dict[str, Any]]


@cache
def _definitions(name: str) -> tuple[dict[str, Any], ...]:
    file = resources.files(__package__) / "crds" / f"{name}.json"
    return tuple(json.loads(file.read_text(encoding="utf-8")))


def custom_resource_definitions(version: str) -> tuple[dict[str, Any], ...]:
    """Return the CRDs of NodeFeature, NodeFeatureGroup and NodeFeatureRule in a release of Node Feature Discovery.

    Args:
        version: Value of ``NodeFeatureDiscoveryRelease.definitions``: ``0.17.3`` or ``0.19.0``.
    """
    return _definitions(f"node-feature-discovery-{version}")


def topology_definitions() -> tuple[dict[str, Any], ...]:
    """Return the CRD of NodeResourceTopology, which is the same in the Helm charts of NFD 0.17.3 and 0.19.0."""
    return _definitions("node-resource-topology-0.19.0")


def published_labels(given: NodeFeatureDiscovery) -> NfdLabels | None:
    """Return the node labels that Node Feature Discovery publishes with the given options.

    Return None if the options omit the worker or the master.
    """
    if given.worker is None or given.master is None:
        return None
    return nfd_labels.nfd_labels(given.worker.document(), given.master.document())


def node_feature_discovery(
    given: NodeFeatureDiscovery,
    *,
    release: NodeFeatureDiscoveryRelease,
    namespace: str,
    default_prefix: str,
    instance: str,
    tolerations: Sequence[Mapping[str, Any]],
) -> Manifests:
    """Return the manifests of Node Feature Discovery by construct ID, in the order of the output file.

    Args:
        given: Options of Node Feature Discovery.
        release: Release of Node Feature Discovery.
        namespace: Namespace of the objects, unless the options set a namespace.
        default_prefix: Prefix of the names of the objects, unless the options set ``fullname``.
        instance: Value of the label ``app.kubernetes.io/instance``.
        tolerations: Tolerations of the chart for the pods of all components, as in a manifest.

    Raises:
        GpuConstructsError: The release does not have an option, two components use the same port in the network of the
            node, or the master would ignore the namespace of the workers.
    """
    _check_release(given.components, release)
    _check_ports(given, release)
    namespace = given.namespace or namespace
    if given.master is not None:
        config.check_namespace(given.master.config, namespace)
    installation = _Installation(given, release, namespace, given.fullname or default_prefix, instance, tolerations)
    parts = [_Part(installation, component) for component in given.components.values()]
    once_first = sorted(parts, key=lambda part: isinstance(part.component, NfdDaemonSet))
    made = {definition["spec"]["names"]["plural"]: definition for definition in installation.definitions()}
    for part in parts:
        made |= part.file()
    for part in parts:
        made |= part.account()
    for part in once_first:
        made |= part.rights()
    for part in once_first:
        made[part.child] = part.workload()
    for part in parts:
        made |= part.guards()
    if given.prometheus is not None:
        made["pod-monitor"] = installation.pod_monitor(given.prometheus)
    return made


def _check_ports(given: NodeFeatureDiscovery, release: NodeFeatureDiscoveryRelease) -> None:
    of_nodes: dict[int, str] = {}
    for name, component in given.components.items():
        taken = of_nodes if component.host_network else {}
        where = " in the node's network" if component.host_network else ""
        for port, number in programs.ports(component, release).items():
            field = f"{name}.{'port' if port == 'http' else f'{port}_port'}"
            other = taken.setdefault(number, field)
            fields.refuse_first([(other != field, f"{field} must differ from {other}{where}; both are {number}")])


def _check_release(components: Mapping[str, NfdComponent], release: NodeFeatureDiscoveryRelease) -> None:
    """Raise if a release of Node Feature Discovery does not support an option that the user sets.

    Args:
        components: Options of the components by name, such as ``worker``.
        release: Release of Node Feature Discovery.

    Raises:
        GpuConstructsError: An option, a key of ``config``, a feature in a rule or a command-line flag needs a later
            release, or the release no longer has it.
    """
    for row in config.facts_of_files()["releases"]:
        for name in row["of"]:
            if name in components and _value(components[name], row["option"]) is not None:
                _check_row(row, name, release)
    for name, component in components.items():
        for where, flag in flags(f"{name}.extra_args", component.extra_args):
            release.require(f"{where} -{flag}", known_flags(name)[flag])
    rules = _value(components.get("worker"), "config.sources.custom") or ()
    for where, feature in _features("worker.config.sources.custom", rules):
        release.require(f"{where} {feature!r}", config.facts_of_files()["features"][feature])


def _check_row(row: Mapping[str, Any], component: str, release: NodeFeatureDiscoveryRelease) -> None:
    option = f"{component}.{row['option']}"
    if "since" in row:
        release.require(option, row["since"])
    elif release.is_at_least(row["until"]):
        raise GpuConstructsError(f"{option} {row['why'].format(release=release.version, component=component)}")


def _value(owner: Any, path: str) -> Any:
    for key in path.split("."):
        owner = owner.get(key) if isinstance(owner, Mapping) else getattr(owner, key, None)
    return owner


def _features(field: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield a pair for each feature in NFD rules: the path of the feature, and its name such as ``pci.device``.

    Args:
        field: Path of ``value`` in the configuration file, such as ``worker.config.sources.custom``.
        value: Rule, item of ``matchFeatures`` or ``matchAny``, or a list of such objects.
    """
    if isinstance(value, Mapping):
        if isinstance(value.get("feature"), str):
            yield f"{field}.feature", value["feature"]
        for key in ("matchFeatures", "matchAny"):
            yield from _features(f"{field}.{key}", value.get(key) or ())
    else:
        for index, item in enumerate(value):
            yield from _features(f"{field}[{index}]", item)


@dataclass(frozen=True)
class _Installation:
    """The settings that are the same for all components of Node Feature Discovery, such as the namespace."""

    given: NodeFeatureDiscovery
    release: NodeFeatureDiscoveryRelease
    namespace: str
    prefix: str
    instance: str
    tolerations: Sequence[Mapping[str, Any]]

    def definitions(self) -> tuple[dict[str, Any], ...]:
        updater = self.given.topology_updater
        ours = custom_resource_definitions(self.release.definitions)
        return (*ours, *topology_definitions()) if updater is not None and updater.create_crds else ours

    def pod_monitor(self, monitor: NfdPodMonitor) -> dict[str, Any]:
        common = {"app.kubernetes.io/name": _NAME, "app.kubernetes.io/instance": self.instance}
        labels = object_labels(common, version=self.release.version)
        endpoint = {
            "honorLabels": True,
            "interval": duration_text(monitor.scrape_interval),
            "path": "/metrics",
            "port": "http" if self.release.has_http_health else "metrics",
            "scheme": "http",
        }
        return {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PodMonitor",
            "metadata": {"name": self.prefix, "namespace": self.namespace, "labels": {**labels, **monitor.labels}},
            "spec": {
                "namespaceSelector": {"matchNames": [self.namespace]},
                "podMetricsEndpoints": [endpoint],
                "selector": {"matchLabels": common},
            },
        }


@dataclass(frozen=True)
class _Part:
    """A component of Node Feature Discovery, such as the worker, with methods that return its manifests."""

    of: _Installation
    component: NfdComponent

    @property
    def child(self) -> str:
        return self.component.container_name

    @cached_property
    def facts(self) -> programs.Facts:
        return programs.facts_of(self.component, self.of.given, self.of.release, self.of.namespace)

    @property
    def selector(self) -> dict[str, str]:
        return selector_labels(name=_NAME, instance=self.of.instance, component=self.child)

    @property
    def account_name(self) -> str:
        return self.component.service_account.name or f"{self.of.prefix}-{self.child}"

    def metadata(self, suffix: str = "", annotations: Mapping[str, str] | None = None) -> dict[str, Any]:
        return {
            "name": f"{self.of.prefix}-{self.child}{suffix}",
            "namespace": self.of.namespace,
            "labels": object_labels(self.selector, version=self.of.release.version),
            **({"annotations": dict(annotations)} if annotations else {}),
        }

    @cached_property
    def text(self) -> str | None:
        document = self.component.document()
        return None if document is None else yaml_text(document)

    def file(self) -> Manifests:
        if self.text is None:
            return {}
        return {f"{self.child}-config": config_map(self.metadata("-conf"), {f"nfd-{self.child}.conf": self.text})}

    def account(self) -> Manifests:
        account = self.component.service_account
        if not account.create:
            return {}
        metadata = {**self.metadata(annotations=account.annotations), "name": self.account_name}
        return {f"{self.child}-service-account": rbac.service_account(metadata)["service-account"]}

    def rights(self) -> Manifests:
        made: Manifests = {}
        for scope, grant in (("cluster", rbac.cluster_role), ("namespace", rbac.role)):
            rules = programs.rules(self.component, self.facts, scope)
            if rules and self.component.rbac_create:
                made |= grant(self.metadata(), rules)
        for manifest in made.values():
            for subject in manifest.get("subjects", ()):
                subject["name"] = self.account_name
        return {f"{self.child}-{child}": manifest for child, manifest in made.items()}

    def workload(self) -> dict[str, Any]:
        component = self.component
        if isinstance(component, NfdDeployment):
            # Two active masters would overwrite each other's labels. A single master needs no leader election.
            strategy = {"type": "RollingUpdate" if component.replica_count > 1 else "Recreate"}
            kind, spec = "Deployment", {"replicas": component.replica_count, "strategy": strategy}
            annotations = component.deployment_annotations
        else:
            assert isinstance(component, NfdDaemonSet)
            kind, spec = "DaemonSet", {"updateStrategy": component.update_strategy.to_manifest()}
            annotations = component.daemonset_annotations
        checksum = {} if self.text is None else {CONFIG_CHECKSUM: sha256(self.text)}
        pod_metadata = {
            "labels": {**component.labels, **self.metadata()["labels"]},
            "annotations": {**component.annotations, **checksum} or None,
        }
        return {
            "apiVersion": "apps/v1",
            "kind": kind,
            "metadata": self.metadata(annotations=annotations),
            "spec": {
                **spec,
                "revisionHistoryLimit": component.revision_history_limit,
                "selector": {"matchLabels": self.selector},
                "template": {"metadata": pod_metadata, "spec": self.pod_spec()},
            },
        }

    def pod_spec(self) -> dict[str, Any]:
        component, given = self.component, self.of.given
        volumes, mounts = programs.volumes(component, f"{self.of.prefix}-{self.child}-conf", self.facts)
        container = programs.container(component, given, self.of.release, self.facts)
        dns: dict[str, Any] = {"dnsPolicy": component.dns_policy} if component.dns_policy else {}
        return pods.pod_spec(
            [{**container, "volumeMounts": mounts or None}],
            service_account=self.account_name,
            affinity=self.affinity(),
            hostNetwork=component.host_network or None,
            hostUsers=component.host_users,
            imagePullSecrets=pods.pull_secrets(given.image_pull_secrets),
            initContainers=config.plain(component.init_containers) or None,
            nodeSelector=dict(component.node_selector) or None,
            priorityClassName=component.priority_class_name or given.priority_class_name,
            securityContext=config.merged(container_security.POD, component.pod_security_context),
            tolerations=self.tolerations() or None,
            volumes=volumes or None,
            **dns,
        )

    def affinity(self) -> dict[str, Any] | None:
        if self.component.affinity is not None:
            return dict(self.component.affinity) or None
        if not isinstance(self.component, NfdMaster):
            return None
        return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [_NEAR_THE_API_SERVER]}}

    def tolerations(self) -> list[Mapping[str, Any]]:
        tolerated = [*self.of.tolerations, *(toleration.to_manifest() for toleration in self.component.tolerations)]
        if isinstance(self.component, NfdDeployment):
            # All nodes of the cluster can have taints.
            tolerated.insert(0, {**placement.label_exists(_CONTROL_PLANE), "effect": "NoSchedule"})
        return [toleration for nth, toleration in enumerate(tolerated) if toleration not in tolerated[:nth]]

    def guards(self) -> Manifests:
        component, made = self.component, {}
        if isinstance(component, NfdDeployment) and component.pod_disruption_budget is not None:
            made[f"{self.child}-pod-disruption-budget"] = {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": self.metadata(),
                "spec": {
                    **component.pod_disruption_budget.to_manifest(),
                    "selector": {"matchLabels": self.selector},
                },
            }
        if component.network_policy is not None:
            made[f"{self.child}-network-policy"] = {
                "apiVersion": "networking.k8s.io/v1",
                "kind": "NetworkPolicy",
                "metadata": self.metadata("-network-policy"),
                "spec": {
                    "podSelector": {"matchLabels": self.selector},
                    "policyTypes": ["Egress", "Ingress"],
                    **self.traffic(component.network_policy.egress, component.network_policy.ingress),
                },
            }
        return made

    def traffic(self, egress: Any, ingress: Any) -> dict[str, Any]:
        asks_kubelet = self.component._NAME == "topology_updater" and self.facts["asks_kubelet"]
        reached = (*_API_SERVER_AND_DNS, *((_KUBELET,) if asks_kubelet else ()))
        tcp = [{"protocol": "TCP", "port": port} for port in reached]
        own = [{"protocol": "TCP", "port": port} for port in programs.ports(self.component, self.of.release)]
        return {
            "egress": [{"ports": [*tcp, {"protocol": "UDP", "port": 53}]}] if egress is None else config.plain(egress),
            "ingress": [{"ports": own}] if ingress is None else config.plain(ingress),
        }
