from gpu_constructs.kube import rbac

METADATA = {"name": "agent", "namespace": "gpu", "labels": {"a": "b"}}
RULES = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}]
SUBJECTS = [{"kind": "ServiceAccount", "name": "agent", "namespace": "gpu"}]


def test_a_service_account_does_not_mount_its_token_by_default(expected):
    assert rbac.service_account(METADATA) == expected


def test_a_cluster_role_has_no_namespace_but_its_service_account_has_one():
    made = rbac.cluster_role(METADATA, RULES)
    assert list(made) == ["cluster-role", "cluster-role-binding"]
    assert [manifest["kind"] for manifest in made.values()] == ["ClusterRole", "ClusterRoleBinding"]
    for manifest in made.values():
        assert manifest["metadata"] == {"name": "agent", "labels": {"a": "b"}}
    assert made["cluster-role"]["rules"] == RULES
    assert made["cluster-role-binding"]["roleRef"]["kind"] == "ClusterRole"
    assert made["cluster-role-binding"]["subjects"] == SUBJECTS
    assert METADATA["namespace"] == "gpu"
