"""What every cluster has: API groups, kinds that live outside namespaces, first namespaces."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

NAMESPACES_OF_EVERY_CLUSTER = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})
"""Made by Kubernetes; making them anew would take them over."""

BUILT_IN_GROUPS = frozenset(
    {
        "",
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "apps",
        "authentication.k8s.io",
        "authorization.k8s.io",
        "autoscaling",
        "batch",
        "certificates.k8s.io",
        "coordination.k8s.io",
        "discovery.k8s.io",
        "events.k8s.io",
        "flowcontrol.apiserver.k8s.io",
        "lifecycle.k8s.io",
        "networking.k8s.io",
        "node.k8s.io",
        "policy",
        "rbac.authorization.k8s.io",
        "resource.k8s.io",
        "scheduling.k8s.io",
        "storage.k8s.io",
        "storagemigration.k8s.io",
    }
)

_CLUSTER_SCOPED = frozenset(
    {
        ("", "Namespace"),
        ("", "Node"),
        ("", "PersistentVolume"),
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"),
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("apiregistration.k8s.io", "APIService"),
        ("certificates.k8s.io", "CertificateSigningRequest"),
        ("certificates.k8s.io", "ClusterTrustBundle"),
        ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
        ("networking.k8s.io", "IPAddress"),
        ("networking.k8s.io", "IngressClass"),
        ("networking.k8s.io", "ServiceCIDR"),
        ("node.k8s.io", "RuntimeClass"),
        ("rbac.authorization.k8s.io", "ClusterRole"),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
        ("resource.k8s.io", "DeviceClass"),
        ("resource.k8s.io", "DeviceTaintRule"),
        ("resource.k8s.io", "ResourceSlice"),
        ("scheduling.k8s.io", "PriorityClass"),
        ("storage.k8s.io", "CSIDriver"),
        ("storage.k8s.io", "CSINode"),
        ("storage.k8s.io", "StorageClass"),
        ("storage.k8s.io", "VolumeAttachment"),
        ("storage.k8s.io", "VolumeAttributesClass"),
        ("storagemigration.k8s.io", "StorageVersionMigration"),
    }
)

# NVIDIA/gpu-operator@v26.7.0:deployments/gpu-operator/crds
_OF_THE_GPU_OPERATOR = frozenset(
    {("nvidia.com", "ClusterPolicy"), ("nvidia.com", "GPUCluster"), ("nvidia.com", "NVIDIADriver")}
)


def group_of(api_version: str) -> str:
    """Give the API group of ``apps/v1`` (``apps``) or ``v1`` (the core group, empty)."""
    return api_version.rpartition("/")[0]


def is_cluster_scoped(api_version: str, kind: str) -> bool:
    """Tell whether a kind of Kubernetes, or of the GPU Operator, lives outside namespaces."""
    return (group_of(api_version), kind) in _CLUSTER_SCOPED | _OF_THE_GPU_OPERATOR


def identity_of(manifest: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """Give group, kind, namespace and name: two objects that share them are one to the API server."""
    metadata = manifest["metadata"]
    group = group_of(manifest["apiVersion"])
    return group, manifest["kind"], metadata.get("namespace") or "", metadata["name"]
