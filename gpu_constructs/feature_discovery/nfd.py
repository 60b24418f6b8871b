"""Node Feature Discovery: labels nodes with their PCI devices, and GPU nodes with ``nvidia.com/gpu.present``.

Source: the node-feature-discovery charts bundled in NVIDIA/k8s-device-plugin@v0.18.2 and @v0.20.0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import resources
from typing import Any

from gpu_constructs._container_security import POD, container_security
from gpu_constructs._daemonset import daemonset
from gpu_constructs._labels import object_labels, selector_labels
from gpu_constructs.platforms import GPU_PRESENT
from gpu_constructs.versions import NodeFeatureDiscoveryRelease

_CONTROL_PLANE = "node-role.kubernetes.io/control-plane"

LABELS = "feature.node.kubernetes.io/*"
"""The labels NFD publishes in its own domain."""

WORKER_CONFIG: Mapping[str, Any] = {
    "sources": {
        "pci": {"deviceClassWhitelist": ["02", "03"], "deviceLabelFields": ["vendor"]},
        "custom": [
            {
                "name": "nvidia gpu present",
                "labels": {GPU_PRESENT: "true"},
                "matchFeatures": [
                    {
                        "feature": "pci.device",
                        "matchExpressions": {
                            "vendor": {"op": "In", "value": ["10de"]},
                            "class": {"op": "In", "value": ["0300", "0302"]},
                        },
                    }
                ],
            }
        ],
    }
}
"""Labels ``pci-10de.present`` as NVIDIA's chart does, and besides publishes ``nvidia.com/gpu.present``, which
in a standalone installation nothing else does. A rule in the worker's own file needs no custom resource, so one
``kubectl apply`` is enough. Classes: 0300 display controller, 0302 3D controller."""

MASTER_CONFIG: Mapping[str, Any] = {"extraLabelNs": ["nvidia.com"]}
"""Allows labels outside NFD's own domain."""


@lru_cache(maxsize=2)
def custom_resource_definitions(version: str) -> tuple[dict[str, Any], ...]:
    """Give the NodeFeature, NodeFeatureGroup and NodeFeatureRule definitions of an NFD release."""
    file = resources.files(__package__) / "crds" / f"node-feature-discovery-{version}.json"
    return tuple(json.loads(file.read_text(encoding="utf-8")))


def _field(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _probe(release: NodeFeatureDiscoveryRelease, **settings: int) -> dict[str, Any]:
    check = {"httpGet": {"path": "/healthz", "port": "http"}} if release.has_http_health else {"grpc": {"port": 8082}}
    return {**check, **settings}


def _ports(release: NodeFeatureDiscoveryRelease) -> list[dict[str, Any]]:
    if release.has_http_health:
        return [{"name": "http", "containerPort": 8080}]
    return [{"name": "metrics", "containerPort": 8081}, {"name": "health", "containerPort": 8082}]


def _arguments(release: NodeFeatureDiscoveryRelease) -> list[str]:
    return ["-port=8080"] if release.has_http_health else ["-metrics=8081", "-grpc-health=8082"]


class NodeFeatureDiscovery:
    """The objects of one NFD installation, as plain manifests."""

    def __init__(
        self,
        *,
        release: NodeFeatureDiscoveryRelease,
        namespace: str,
        prefix: str,
        instance: str,
        tolerations: Sequence[Mapping[str, Any]],
        worker_config_sha256: str,
        master_config_sha256: str,
    ) -> None:
        self._release = release
        self._namespace = namespace
        self._prefix = prefix
        self._instance = instance
        self._tolerations = list(tolerations)
        self._sha256 = {"worker": worker_config_sha256, "master": master_config_sha256}

    def config_map_name(self, component: str) -> str:
        """Give the name of the ConfigMap with a component's file."""
        return f"{self._prefix}-{component}-conf"

    def metadata(self, component: str, *, name: str | None = None) -> dict[str, Any]:
        """Give the metadata of a component's object."""
        return {
            "name": name or f"{self._prefix}-{component}",
            "namespace": self._namespace,
            "labels": object_labels(self._selector(component), version=self._release.version),
        }

    def _selector(self, component: str) -> dict[str, str]:
        return selector_labels(name="node-feature-discovery", instance=self._instance, component=component)

    def manifests(self) -> Mapping[str, dict[str, Any]]:
        """Give every object by construct id, but the ConfigMaps, in the order they should stand in the file."""
        return {
            **{f"{c}-service-account": self._service_account(c) for c in ("master", "worker", "gc")},
            **self._cluster_rights("master", self._master_rules()),
            **self._cluster_rights("gc", self._gc_rules()),
            **self._worker_rights(),
            "master": self._deployment("master", self._master_container(), self._master_placement()),
            "gc": self._deployment("gc", self._gc_container(), self._anywhere()),
            "worker": self._worker(),
        }

    def _service_account(self, component: str) -> dict[str, Any]:
        return {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": self.metadata(component),
            "automountServiceAccountToken": False,
        }

    def _master_rules(self) -> list[dict[str, Any]]:
        # No namespaces and no NodeFeatureGroups: it reads those only with a namespace selector or with a feature
        # gate that is off in both releases.
        return [
            {
                "apiGroups": [""],
                "resources": ["nodes", "nodes/status"],
                "verbs": ["get", "list", "patch", "update"],
            },
            {
                "apiGroups": ["nfd.k8s-sigs.io"],
                "resources": ["nodefeatures", "nodefeaturerules"],
                "verbs": ["get", "list", "watch"],
            },
        ]

    def _gc_rules(self) -> list[dict[str, Any]]:
        return [
            {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch"]},
            {"apiGroups": ["nfd.k8s-sigs.io"], "resources": ["nodefeatures"], "verbs": ["delete", "list"]},
            {
                "apiGroups": ["topology.node.k8s.io"],
                "resources": ["noderesourcetopologies"],
                "verbs": ["delete", "list"],
            },
        ]

    def _cluster_rights(self, component: str, rules: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
        metadata = {k: v for k, v in self.metadata(component).items() if k != "namespace"}
        rbac = "rbac.authorization.k8s.io"
        return {
            f"{component}-cluster-role": {
                "apiVersion": f"{rbac}/v1",
                "kind": "ClusterRole",
                "metadata": metadata,
                "rules": rules,
            },
            f"{component}-cluster-role-binding": {
                "apiVersion": f"{rbac}/v1",
                "kind": "ClusterRoleBinding",
                "metadata": metadata,
                "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": metadata["name"]},
                "subjects": [{"kind": "ServiceAccount", "name": metadata["name"], "namespace": self._namespace}],
            },
        }

    def _worker_rights(self) -> dict[str, dict[str, Any]]:
        metadata = self.metadata("worker")
        rbac = "rbac.authorization.k8s.io"
        return {
            "worker-role": {
                "apiVersion": f"{rbac}/v1",
                "kind": "Role",
                "metadata": metadata,
                "rules": [
                    {
                        "apiGroups": ["nfd.k8s-sigs.io"],
                        "resources": ["nodefeatures"],
                        "verbs": ["create", "delete", "get", "update"],
                    },
                    {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
                ],
            },
            "worker-role-binding": {
                "apiVersion": f"{rbac}/v1",
                "kind": "RoleBinding",
                "metadata": metadata,
                "roleRef": {"apiGroup": rbac, "kind": "Role", "name": metadata["name"]},
                "subjects": [{"kind": "ServiceAccount", "name": metadata["name"], "namespace": self._namespace}],
            },
        }

    def _container(self, component: str, **fields: Any) -> dict[str, Any]:
        return {
            "name": component,
            "image": self._release.image,
            "imagePullPolicy": "IfNotPresent",
            "command": [f"nfd-{component}"],
            "securityContext": container_security(non_root=True),
            **fields,
        }

    def _master_container(self) -> dict[str, Any]:
        return self._container(
            "master",
            args=_arguments(self._release),
            env=[_field("NODE_NAME", "spec.nodeName")],
            ports=_ports(self._release),
            startupProbe=_probe(self._release, failureThreshold=30),
            livenessProbe=_probe(self._release),
            readinessProbe=_probe(self._release, failureThreshold=10),
            resources={"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "4Gi"}},
            volumeMounts=[{"name": "config", "mountPath": "/etc/kubernetes/node-feature-discovery", "readOnly": True}],
        )

    def _gc_container(self) -> dict[str, Any]:
        probes = (
            {
                "livenessProbe": _probe(self._release, initialDelaySeconds=10),
                "readinessProbe": _probe(self._release, initialDelaySeconds=5),
                "ports": _ports(self._release),
            }
            if self._release.has_http_health
            else {"ports": [{"name": "metrics", "containerPort": 8081}]}
        )
        return self._container(
            "gc",
            args=["-gc-interval=1h"],
            env=[_field("NODE_NAME", "spec.nodeName")],
            resources={"requests": {"cpu": "10m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}},
            **probes,
        )

    def _anywhere(self) -> dict[str, Any]:
        """One pod for the whole cluster, which may have tainted nodes only."""
        control_plane = {"key": _CONTROL_PLANE, "operator": "Exists", "effect": "NoSchedule"}
        return {"tolerations": [control_plane, *self._tolerations]}

    def _master_placement(self) -> dict[str, Any]:
        near_the_api_server = {
            "weight": 1,
            "preference": {"matchExpressions": [{"key": _CONTROL_PLANE, "operator": "Exists"}]},
        }
        return {
            **self._anywhere(),
            "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [near_the_api_server]}},
            "volumes": [self._config_volume("master")],
        }

    def _config_volume(self, component: str) -> dict[str, Any]:
        return {"name": "config", "configMap": {"name": self.config_map_name(component)}}

    def _pod_template(self, component: str, container: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
        annotations = {"gpu-constructs/config-sha256": self._sha256[component]} if component in self._sha256 else None
        return {
            "metadata": {"labels": self.metadata(component)["labels"], "annotations": annotations},
            "spec": {
                "automountServiceAccountToken": True,
                "containers": [container],
                "enableServiceLinks": False,
                "securityContext": POD,
                "serviceAccountName": self.metadata(component)["name"],
                **fields,
            },
        }

    def _deployment(self, component: str, container: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": self.metadata(component),
            "spec": {
                "replicas": 1,
                # Two masters would label against each other; one at a time needs no leader election.
                "strategy": {"type": "Recreate"},
                "selector": {"matchLabels": self._selector(component)},
                "template": self._pod_template(component, container, fields),
            },
        }

    def _worker(self) -> dict[str, Any]:
        host_paths = {
            "host-boot": ("/boot", "/host-boot"),
            "host-lib": ("/lib", "/host-lib"),
            "host-os-release": ("/etc/os-release", "/host-etc/os-release"),
            "host-proc-swaps": ("/proc/swaps", "/host-proc/swaps"),
            "host-sys": ("/sys", "/host-sys"),
            "host-usr-lib": ("/usr/lib", "/host-usr/lib"),
        }
        owner_references = ["-owner-refs=pod,ds"] if self._release.has_http_health else []
        container = self._container(
            "worker",
            args=[*owner_references, *_arguments(self._release)],
            env=[
                _field("NODE_NAME", "spec.nodeName"),
                _field("POD_NAME", "metadata.name"),
                _field("POD_UID", "metadata.uid"),
            ],
            ports=_ports(self._release),
            livenessProbe=_probe(self._release, initialDelaySeconds=10),
            readinessProbe=_probe(self._release, initialDelaySeconds=5, failureThreshold=10),
            resources={"requests": {"cpu": "5m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}},
            volumeMounts=[
                {"name": "config", "mountPath": "/etc/kubernetes/node-feature-discovery", "readOnly": True},
                *({"name": name, "mountPath": inside, "readOnly": True} for name, (_, inside) in host_paths.items()),
            ],
        )
        fields = {
            "tolerations": self._tolerations,
            "volumes": [
                self._config_volume("worker"),
                *({"name": name, "hostPath": {"path": path}} for name, (path, _) in host_paths.items()),
            ],
        }
        template = self._pod_template("worker", container, fields)
        return daemonset(
            metadata=self.metadata("worker"),
            selector=self._selector("worker"),
            annotations=template["metadata"]["annotations"],
            pod_spec=template["spec"],
            rolling_update={"maxUnavailable": "10%"},
        )
