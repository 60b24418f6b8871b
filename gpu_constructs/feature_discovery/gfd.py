"""GPU Feature Discovery: labels a node with the product, memory and sharing of its GPUs.

Source: NVIDIA/k8s-device-plugin@v0.20.0:cmd/gpu-feature-discovery.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpu_constructs._labels import object_labels
from gpu_constructs.device_plugin.agent import GpuAgent

LABELS = (
    "nvidia.com/cuda.*",
    "nvidia.com/gpu.clique",
    "nvidia.com/gpu.compute.*",
    "nvidia.com/gpu.count",
    "nvidia.com/gpu.family",
    "nvidia.com/gpu.machine",
    "nvidia.com/gpu.memory",
    "nvidia.com/gpu.mode",
    "nvidia.com/gpu.product",
    "nvidia.com/gpu.replicas",
    "nvidia.com/gpu.sharing-strategy",
    "nvidia.com/mig*",
    "nvidia.com/mps.capable",
    "nvidia.com/vgpu.*",
)
"""The labels GFD publishes; ``nvidia.com/gpu.present`` is none of them."""


def _field(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def gpu_feature_discovery(
    agent: GpuAgent,
    *,
    name: str,
    selector: dict[str, str],
    vgpu: bool,
) -> Mapping[str, dict[str, Any]]:
    """Give the objects by construct id: ServiceAccount, Role, RoleBinding, DaemonSet.

    It writes one NodeFeature object for its node and mounts nothing of the host but its configuration; the
    rights are those on NodeFeature objects of its own namespace. Reading whether a GPU is a vGPU takes the
    whole PCI configuration space and therefore a privileged container; without it only the vgpu labels are
    missing (a logged error, not a failure).
    """
    metadata = {"name": name, "namespace": agent.namespace, "labels": object_labels(selector)}
    env = [
        *agent.environment(),
        {"name": "GFD_USE_NODE_FEATURE_API", "value": "true"},
        _field("NAMESPACE", "metadata.namespace"),
        _field("NODE_NAME", "spec.nodeName"),
        _field("POD_NAME", "metadata.name"),
    ]
    return {
        "service-account": {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": metadata,
            "automountServiceAccountToken": False,
        },
        "role": {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": metadata,
            "rules": [
                {
                    "apiGroups": ["nfd.k8s-sigs.io"],
                    "resources": ["nodefeatures"],
                    # delete: owner references are refused without it where that admission plugin is on.
                    "verbs": ["get", "create", "update", "delete"],
                },
                {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
            ],
        },
        "role-binding": {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": agent.namespace}],
        },
        "daemonset": agent.daemonset(
            name=name,
            selector=selector,
            service_account=name,
            container={
                "name": "gpu-feature-discovery-ctr",
                "command": ["gpu-feature-discovery"],
                "env": sorted(env, key=lambda variable: str(variable["name"])),
                "securityContext": agent.security_context(privileged=vgpu),
            },
        ),
    }
