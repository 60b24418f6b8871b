import schemas
from gpu_constructs.kube import kinds


def test_cluster_scoped_kinds_are_distinguished_from_namespaced_ones(rows):
    for kind, is_outside in rows:
        assert kinds.is_cluster_scoped(*kind.split()) == is_outside, kind


SERVED = {
    (kinds.group_of(api_version), kind)
    for release in schemas.SUPPORTED_RELEASES
    for api_version, kind in schemas._built_in_kinds(release)
    if kind not in ("DeleteOptions", "Status", "WatchEvent") and not kind.endswith("List")
}


def test_a_supported_kubernetes_release_serves_each_cluster_scoped_kind():
    for group, kind in sorted(kinds._CLUSTER_SCOPED):
        assert (group, kind) in SERVED, (group, kind)


def test_the_built_in_groups_are_those_that_the_supported_kubernetes_releases_serve():
    internal = {"internal.apiserver.k8s.io"}
    assert {group for group, _ in SERVED} - internal == kinds.BUILT_IN_GROUPS
