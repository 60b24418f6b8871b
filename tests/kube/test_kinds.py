import schemas
from gpu_constructs.kube import kinds

OUTSIDE = [
    *("v1 Namespace", "v1 Node", "v1 PersistentVolume", "node.k8s.io/v1 RuntimeClass", "nvidia.com/v1 ClusterPolicy"),
    *("apiextensions.k8s.io/v1 CustomResourceDefinition", "rbac.authorization.k8s.io/v1 ClusterRoleBinding"),
    *("scheduling.k8s.io/v1 PriorityClass", "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy"),
    *("resource.k8s.io/v1 DeviceClass", "resource.k8s.io/v1beta1 DeviceClass", "storage.k8s.io/v1 StorageClass"),
]
INSIDE = [
    *("v1 Pod", "v1 PersistentVolumeClaim", "v1 ResourceQuota", "apps/v1 DaemonSet", "networking.k8s.io/v1 Ingress"),
    *("rbac.authorization.k8s.io/v1 RoleBinding", "resource.k8s.io/v1 ResourceClaimTemplate", "a.com/v1 Namespace"),
    *("storage.k8s.io/v1 CSIStorageCapacity", "monitoring.coreos.com/v1 ServiceMonitor"),
]


def test_kinds_outside_namespaces_are_told_from_those_inside():
    for one in (*OUTSIDE, *INSIDE):
        assert kinds.is_cluster_scoped(*one.split()) == (one in OUTSIDE), one


SERVED = {
    (kinds.group_of(api_version), kind)
    for release in schemas.SUPPORTED_RELEASES
    for api_version, kind in schemas._built_in_kinds(release)
    if kind not in ("DeleteOptions", "Status", "WatchEvent") and not kind.endswith("List")
}


def test_each_kind_outside_namespaces_is_one_that_a_supported_kubernetes_serves():
    for group, kind in sorted(kinds._CLUSTER_SCOPED):
        assert (group, kind) in SERVED, (group, kind)


def test_the_built_in_groups_are_those_that_the_supported_kubernetes_releases_serve():
    internal = {"internal.apiserver.k8s.io"}
    assert {group for group, _ in SERVED} - internal == kinds.BUILT_IN_GROUPS
