"""GPU Feature Discovery: labels a node with the product, memory and sharing of its GPUs.

Source: NVIDIA/k8s-device-plugin@v0.20.0:cmd/gpu-feature-discovery.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpu_constructs import _rbac as rbac
from gpu_constructs._container_security import Rights
from gpu_constructs._labels import object_labels, selector_labels
from gpu_constructs.device_plugin.agent import APP, NODE_RULES, GpuAgent
from gpu_constructs.device_plugin.component import Component
from gpu_constructs.device_plugin.config import GfdFlags
from gpu_constructs.device_plugin.delivery import Delivery
from gpu_constructs.platforms import Platform

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


@dataclass(frozen=True, kw_only=True)
class GpuFeatureDiscovery(Component):
    """GPU Feature Discovery's own pods, where they differ from what the chart says for all.

    Attributes:
        vgpu: Recognise vGPUs, which takes a privileged container: they show in the whole PCI configuration
            space only. Without it only the vgpu labels are missing (a logged error, not a failure).
    """

    vgpu: bool = False

    _NAME = "gpu_feature_discovery"

    def rights(self, uses: frozenset[str], platform: Platform) -> Rights:
        """Give the rights it needs for what is in use."""
        needed = super().rights(uses, platform)
        return Rights(add=needed.add, privileged=needed.privileged or self.vgpu)

    def needs_rights_for(self, uses: frozenset[str]) -> list[str]:
        """Give those of the things in use that take rights."""
        return [*super().needs_rights_for(uses), *(["vgpu"] if self.vgpu else [])]


def _field(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def gpu_feature_discovery(
    agent: GpuAgent, deliveries: Sequence[Delivery], *, component: GpuFeatureDiscovery
) -> Mapping[str, dict[str, Any]]:
    """Give the objects by construct id: ServiceAccount, Role, RoleBinding, a DaemonSet for each delivery.

    They write one NodeFeature object for each node and mount nothing of the host; the rights are those on
    NodeFeature objects of its own namespace, with config-manager also to read nodes.
    """
    name = f"{agent.name}-gpu-feature-discovery"
    selector = selector_labels(name=APP, instance=agent.instance, component="gpu-feature-discovery")
    metadata = {**agent.metadata(selector, name=name), "labels": object_labels(selector)}
    return {
        **rbac.service_account(metadata),
        **rbac.role(metadata, _rules(agent)),
        **(rbac.cluster_role(metadata, NODE_RULES) if deliveries[0].config_manager is not None else {}),
        **{f"daemonset{delivery.suffix}": _daemonset(agent, delivery, component, name) for delivery in deliveries},
    }


def _rules(agent: GpuAgent) -> list[dict[str, Any]]:
    # Owner references: read from its pod, and refused without delete where that admission plugin is on.
    owned = ["delete"] if agent.sets_owner_references else []
    pods = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}] if agent.sets_owner_references else []
    return [
        {"apiGroups": ["nfd.k8s-sigs.io"], "resources": ["nodefeatures"], "verbs": ["get", "create", "update", *owned]},
        *pods,
    ]


def _daemonset(agent: GpuAgent, delivery: Delivery, component: GpuFeatureDiscovery, name: str) -> dict[str, Any]:
    settings = delivery.variables(GfdFlags, besides=("MIG_STRATEGY", "FAIL_ON_INIT_ERROR", "DEVICE_DISCOVERY_STRATEGY"))
    env = [
        *agent.environment(component, delivery, {**settings, "GFD_USE_NODE_FEATURE_API": "true"}),
        _field("NAMESPACE", "metadata.namespace"),
        _field("NODE_NAME", "spec.nodeName"),
        *([_field("POD_NAME", "metadata.name")] if agent.sets_owner_references else []),
    ]
    return agent.daemonset(
        component,
        name=f"{name}{delivery.suffix}",
        label="gpu-feature-discovery",
        delivery=delivery,
        service_account=name,
        shares_processes=delivery.config_manager is not None,
        container=agent.container(
            component,
            delivery=delivery,
            name="gpu-feature-discovery-ctr",
            command=["gpu-feature-discovery"],
            env=sorted(env, key=lambda variable: str(variable["name"])),
            securityContext=agent.security_context(component, delivery),
        ),
    )
