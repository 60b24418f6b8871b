"""Node Feature Discovery: labels nodes with their PCI devices, and GPU nodes with ``nvidia.com/gpu.present``.

Source: the node-feature-discovery charts bundled in NVIDIA/k8s-device-plugin@v0.18.2 and @v0.20.0.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

from gpu_constructs import _rbac
from gpu_constructs._config_map import config_map, sha256
from gpu_constructs._container_security import POD
from gpu_constructs._labels import object_labels, selector_labels
from gpu_constructs._yaml import yaml_text
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.feature_discovery import nfd_config, nfd_container, nfd_flags, nfd_labels, nfd_rights
from gpu_constructs.feature_discovery import node_feature_discovery as options
from gpu_constructs.feature_discovery.nfd_labels import NfdLabels
from gpu_constructs.versions import NodeFeatureDiscoveryRelease

_NAME = "node-feature-discovery"
_CONTROL_PLANE = "node-role.kubernetes.io/control-plane"

LABELS = f"{nfd_labels.DOMAIN}*"
"""The labels that an NFD whose configuration is not known may publish in its own domain."""


def custom_resource_definitions(version: str) -> tuple[dict[str, Any], ...]:
    """Give the NodeFeature, NodeFeatureGroup and NodeFeatureRule definitions of an NFD release."""
    return _definitions(f"node-feature-discovery-{version}")


def topology_definitions() -> tuple[dict[str, Any], ...]:
    """Give the NodeResourceTopology definition, the same in the charts of 0.17.3 and 0.19.0."""
    return _definitions("node-resource-topology-0.19.0")


@lru_cache(maxsize=4)
def _definitions(name: str) -> tuple[dict[str, Any], ...]:
    file = resources.files(__package__) / "crds" / f"{name}.json"
    return tuple(json.loads(file.read_text(encoding="utf-8")))


def published_labels(given: options.NodeFeatureDiscovery) -> NfdLabels | None:
    """Return the node labels that an installation publishes by itself; None where it publishes none."""
    if given.worker is None or given.master is None:
        return None
    return nfd_labels.nfd_labels(given.worker.document(), given.master.document())


def node_feature_discovery(
    given: options.NodeFeatureDiscovery,
    *,
    release: NodeFeatureDiscoveryRelease,
    namespace: str,
    default_prefix: str,
    instance: str,
    tolerations: Sequence[Mapping[str, Any]],
) -> dict[str, dict[str, Any]]:
    """Give every object by construct id, in the order they should stand in the file.

    Args:
        given: What the user says.
        release: What runs.
        namespace: Where it lives unless the user says so.
        default_prefix: What its objects' names begin with unless the user says so.
        instance: The chart's id, for the labels.
        tolerations: The chart's, as Kubernetes writes them; they reach every component.

    Raises:
        GpuConstructsError: An option that the release does not have; two components with one port in the
            node's network; a master that does not look at the workers' namespace.
    """
    _refuse_what_the_release_lacks(given, release)
    _refuse_shared_ports(given, release)
    namespace = given.namespace or namespace
    if given.master is not None:
        nfd_config.check_namespace(given.master.config, namespace)
    installation = _Installation(
        given=given,
        release=release,
        namespace=namespace,
        prefix=given.fullname or default_prefix,
        instance=instance,
        tolerations=tolerations,
    )
    return installation.manifests()


@dataclass(frozen=True, kw_only=True)
class _Installation:
    given: options.NodeFeatureDiscovery
    release: NodeFeatureDiscoveryRelease
    namespace: str
    prefix: str
    instance: str
    tolerations: Sequence[Mapping[str, Any]]

    def manifests(self) -> dict[str, dict[str, Any]]:
        components = self.given.components
        made = {definition["spec"]["names"]["plural"]: definition for definition in self._custom_resource_definitions()}
        for component in components.values():
            document = component.document()
            if document is not None:
                name = component.container_name
                files = {f"nfd-{name}.conf": yaml_text(document)}
                made[f"{name}-config"] = config_map(self._metadata(component, "-conf"), files)
        for component in components.values():
            if component.service_account.create:
                made[f"{component.container_name}-service-account"] = self._service_account(component)
        once_first = sorted(components.values(), key=lambda component: isinstance(component, options.NfdDaemonSet))
        for component in once_first:
            if component.rbac_create:
                made |= self._rights(component)
        for component in once_first:
            made[component.container_name] = self._workload(component)
        for component in components.values():
            if isinstance(component, options.NfdDeployment) and component.pod_disruption_budget is not None:
                made[f"{component.container_name}-pod-disruption-budget"] = {
                    "apiVersion": "policy/v1",
                    "kind": "PodDisruptionBudget",
                    "metadata": self._metadata(component),
                    "spec": {
                        **component.pod_disruption_budget.to_manifest(),
                        "selector": {"matchLabels": self._selector(component)},
                    },
                }
            if component.network_policy is not None:
                made[f"{component.container_name}-network-policy"] = self._network_policy(
                    component, component.network_policy
                )
        if self.given.prometheus is not None:
            made["pod-monitor"] = self._pod_monitor(self.given.prometheus)
        return made

    def _custom_resource_definitions(self) -> Iterator[dict[str, Any]]:
        yield from custom_resource_definitions(self.release.version)
        updater = self.given.topology_updater
        if updater is not None and updater.create_crds:
            yield from topology_definitions()

    # --- names, labels, rights --------------------------------------------------------------------------------

    def _metadata(self, component: options.NfdComponent, suffix: str = "") -> dict[str, Any]:
        return {
            "name": f"{self.prefix}-{component.container_name}{suffix}",
            "namespace": self.namespace,
            "labels": object_labels(self._selector(component), version=self.release.version),
        }

    def _selector(self, component: options.NfdComponent) -> dict[str, str]:
        return selector_labels(name=_NAME, instance=self.instance, component=component.container_name)

    def _account(self, component: options.NfdComponent) -> str:
        return component.service_account.name or f"{self.prefix}-{component.container_name}"

    def _service_account(self, component: options.NfdComponent) -> dict[str, Any]:
        metadata = {**self._metadata(component), "name": self._account(component)}
        if component.service_account.annotations:
            metadata["annotations"] = dict(component.service_account.annotations)
        return _rbac.service_account(metadata)["service-account"]

    def _rights(self, component: options.NfdComponent) -> dict[str, dict[str, Any]]:
        rights = nfd_rights.rights(component, self.given, self.release, self.namespace)
        made: dict[str, dict[str, Any]] = {}
        if rights.cluster:
            made |= _rbac.cluster_role(self._metadata(component), rights.cluster)
        if rights.namespace:
            made |= _rbac.role(self._metadata(component), rights.namespace)
        for manifest in made.values():
            for subject in manifest.get("subjects", ()):
                subject["name"] = self._account(component)
        return {f"{component.container_name}-{child}": manifest for child, manifest in made.items()}

    # --- workloads --------------------------------------------------------------------------------------------

    def _workload(self, component: options.NfdComponent) -> dict[str, Any]:
        if isinstance(component, options.NfdDeployment):
            # Two masters would label against each other; one at a time needs no leader election.
            strategy = {"type": "RollingUpdate" if component.replica_count > 1 else "Recreate"}
            kind, spec = "Deployment", {"replicas": component.replica_count, "strategy": strategy}
            annotations = component.deployment_annotations
        else:
            assert isinstance(component, options.NfdDaemonSet)
            kind, spec = "DaemonSet", {"updateStrategy": component.update_strategy.to_manifest()}
            annotations = component.daemonset_annotations
        return {
            "apiVersion": "apps/v1",
            "kind": kind,
            "metadata": {**self._metadata(component), **({"annotations": dict(annotations)} if annotations else {})},
            "spec": {
                **spec,
                "revisionHistoryLimit": component.revision_history_limit,
                "selector": {"matchLabels": self._selector(component)},
                "template": self._pod_template(component),
            },
        }

    def _pod_template(self, component: options.NfdComponent) -> dict[str, Any]:
        document = component.document()
        checksum = {} if document is None else {options.CONFIG_CHECKSUM: sha256(yaml_text(document))}
        config_map = f"{self.prefix}-{component.container_name}-conf"
        volumes, mounts = nfd_container.volumes(component, config_map)
        container = nfd_container.container(component, self.given, self.release)
        return {
            "metadata": {
                "labels": {**component.labels, **self._metadata(component)["labels"]},
                "annotations": {**component.annotations, **checksum} or None,
            },
            "spec": {
                "affinity": _affinity(component),
                "automountServiceAccountToken": True,
                "containers": [{**container, "volumeMounts": mounts or None}],
                "dnsPolicy": component.dns_policy or ("ClusterFirstWithHostNet" if component.host_network else None),
                "enableServiceLinks": False,
                "hostNetwork": component.host_network or None,
                "hostUsers": component.host_users,
                "imagePullSecrets": [{"name": secret} for secret in self.given.image_pull_secrets] or None,
                "initContainers": nfd_config.plain(component.init_containers) or None,
                "nodeSelector": dict(component.node_selector) or None,
                "priorityClassName": component.priority_class_name or self.given.priority_class_name,
                "securityContext": nfd_config.merged(POD, component.pod_security_context),
                "serviceAccountName": self._account(component),
                "tolerations": self._tolerations(component) or None,
                "volumes": volumes or None,
            },
        }

    def _tolerations(self, component: options.NfdComponent) -> list[Mapping[str, Any]]:
        tolerated = [*self.tolerations, *(toleration.to_manifest() for toleration in component.tolerations)]
        if isinstance(component, options.NfdDeployment):
            # One pod for the whole cluster, which may have tainted nodes only.
            tolerated.insert(0, {"key": _CONTROL_PLANE, "operator": "Exists", "effect": "NoSchedule"})
        return [toleration for nth, toleration in enumerate(tolerated) if toleration not in tolerated[:nth]]

    # --- around the workloads ---------------------------------------------------------------------------------

    def _network_policy(self, component: options.NfdComponent, policy: options.NfdNetworkPolicy) -> dict[str, Any]:
        asks_kubelet = isinstance(component, options.NfdTopologyUpdater) and component.kubelet_config_path is None
        reachable = (80, 443, 53, 6443, *((10250,) if asks_kubelet else ()))
        tcp = [{"protocol": "TCP", "port": port} for port in reachable]
        egress = [{"ports": [*tcp, {"protocol": "UDP", "port": 53}]}]
        ports = nfd_container.ports(component, self.release)
        ingress = [{"ports": [{"protocol": "TCP", "port": port} for port in ports]}]
        return {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": self._metadata(component, "-network-policy"),
            "spec": {
                "podSelector": {"matchLabels": self._selector(component)},
                "policyTypes": ["Egress", "Ingress"],
                "egress": egress if policy.egress is None else nfd_config.plain(policy.egress),
                "ingress": ingress if policy.ingress is None else nfd_config.plain(policy.ingress),
            },
        }

    def _pod_monitor(self, monitor: options.NfdPodMonitor) -> dict[str, Any]:
        common = {"app.kubernetes.io/name": _NAME, "app.kubernetes.io/instance": self.instance}
        labels = object_labels(common, version=self.release.version)
        return {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PodMonitor",
            "metadata": {
                "name": self.prefix,
                "namespace": self.namespace,
                "labels": {**labels, **monitor.labels},
            },
            "spec": {
                "namespaceSelector": {"matchNames": [self.namespace]},
                "podMetricsEndpoints": [
                    {
                        "honorLabels": True,
                        "interval": options.duration_text(monitor.scrape_interval),
                        "path": "/metrics",
                        "port": "http" if self.release.has_http_health else "metrics",
                        "scheme": "http",
                    }
                ],
                "selector": {"matchLabels": common},
            },
        }


def _affinity(component: options.NfdComponent) -> dict[str, Any] | None:
    if component.affinity is not None:
        return dict(component.affinity) or None
    if not isinstance(component, options.NfdMaster):
        return None
    near_the_api_server = {
        "weight": 1,
        "preference": {"matchExpressions": [{"key": _CONTROL_PLANE, "operator": "Exists"}]},
    }
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [near_the_api_server]}}


def _refuse_what_the_release_lacks(given: options.NodeFeatureDiscovery, release: NodeFeatureDiscoveryRelease) -> None:
    for name, component in given.components.items():
        nfd_flags.check_release(name, component.extra_args, release)
        for member, number in component.ports().items():
            if number is None:
                continue
            if member == "port":
                release.require(f"{name}.port", "0.18.0")
            elif release.has_http_health:
                raise GpuConstructsError(
                    f"{name}.{member} is gone since Node Feature Discovery 0.18.0, and this is {release.version}; set "
                    f"{name}.port, which serves metrics and health"
                )
    if given.worker is not None and given.worker.owner_refs is not None:
        release.require("worker.owner_refs", "0.19.0")
    if given.gc is not None and not release.has_http_health:
        for member in ("liveness_probe", "readiness_probe"):
            if getattr(given.gc, member) is not None:
                release.require(f"gc.{member}", "0.18.0")
    files = {name: c.config for name, c in (("master", given.master), ("worker", given.worker)) if c is not None}
    nfd_config.check_release(files, release)


def _refuse_shared_ports(given: options.NodeFeatureDiscovery, release: NodeFeatureDiscoveryRelease) -> None:
    taken: dict[int, str] = {}
    for name, component in given.components.items():
        own: dict[int, str] = taken if component.host_network else {}
        for port, number in nfd_container.ports(component, release).items():
            field = f"{name}.{'port' if port == 'http' else f'{port}_port'}"
            if number in own:
                where = " in the node's network" if component.host_network else ""
                raise GpuConstructsError(f"{field} must differ from {own[number]}{where}; both are {number}")
            own[number] = field
