import pytest

import schemas
from gpu_constructs import _kinds


@pytest.mark.parametrize(
    ("api_version", "group"),
    [
        ("v1", ""),
        ("apps/v1", "apps"),
        ("node.k8s.io/v1", "node.k8s.io"),
        ("monitoring.coreos.com/v1", "monitoring.coreos.com"),
    ],
)
def test_the_group_of_an_api_version_is_what_stands_before_the_version(api_version, group):
    assert _kinds.group_of(api_version) == group


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("v1", "Namespace"),
        ("v1", "Node"),
        ("v1", "PersistentVolume"),
        ("node.k8s.io/v1", "RuntimeClass"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole"),
        ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
        ("scheduling.k8s.io/v1", "PriorityClass"),
        ("storage.k8s.io/v1", "StorageClass"),
        ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"),
        ("resource.k8s.io/v1", "DeviceClass"),
        ("resource.k8s.io/v1beta1", "DeviceClass"),
        ("nvidia.com/v1", "ClusterPolicy"),
        ("nvidia.com/v1alpha1", "NVIDIADriver"),
        ("nvidia.com/v1alpha1", "GPUCluster"),
    ],
)
def test_a_kind_outside_namespaces_is_known_in_every_version(api_version, kind):
    assert _kinds.is_cluster_scoped(api_version, kind)


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("v1", "Pod"),
        ("v1", "PersistentVolumeClaim"),
        ("v1", "ServiceAccount"),
        ("v1", "ResourceQuota"),
        ("apps/v1", "DaemonSet"),
        ("rbac.authorization.k8s.io/v1", "Role"),
        ("rbac.authorization.k8s.io/v1", "RoleBinding"),
        ("resource.k8s.io/v1", "ResourceClaim"),
        ("resource.k8s.io/v1", "ResourceClaimTemplate"),
        ("networking.k8s.io/v1", "Ingress"),
        ("storage.k8s.io/v1", "CSIStorageCapacity"),
        ("monitoring.coreos.com/v1", "ServiceMonitor"),
        ("example.com/v1", "Namespace"),
    ],
)
def test_a_kind_inside_namespaces_is_told_apart(api_version, kind):
    assert not _kinds.is_cluster_scoped(api_version, kind)


def test_the_namespaces_that_kubernetes_makes_are_known():
    assert {"default", "kube-system", "kube-public", "kube-node-lease"} == _kinds.NAMESPACES_OF_EVERY_CLUSTER


SERVED = {
    (_kinds.group_of(api_version), kind)
    for release in schemas.SUPPORTED_RELEASES
    for api_version, kind in schemas._built_in_kinds(release)
    if kind not in ("DeleteOptions", "Status", "WatchEvent") and not kind.endswith("List")
}


@pytest.mark.parametrize(("group", "kind"), sorted(_kinds._CLUSTER_SCOPED))
def test_each_kind_outside_namespaces_is_one_that_a_supported_kubernetes_serves(group, kind):
    assert (group, kind) in SERVED


def test_the_built_in_groups_are_those_that_the_supported_kubernetes_releases_serve():
    internal = {"internal.apiserver.k8s.io"}
    assert {group for group, _ in SERVED} - internal == _kinds.BUILT_IN_GROUPS
