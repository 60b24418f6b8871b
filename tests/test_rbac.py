import pytest

from gpu_constructs import _rbac
from schemas import schema_errors

METADATA = {"name": "agent", "namespace": "gpu", "labels": {"a": "b"}}
RULES = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}]
SUBJECTS = [{"kind": "ServiceAccount", "name": "agent", "namespace": "gpu"}]


def test_an_account_hands_out_no_token_by_itself():
    assert _rbac.service_account(METADATA) == {
        "service-account": {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": METADATA,
            "automountServiceAccountToken": False,
        }
    }


def test_a_role_is_bound_to_the_account_of_its_name_in_its_namespace():
    made = _rbac.role(METADATA, RULES)
    assert list(made) == ["role", "role-binding"]
    assert made["role"]["kind"] == "Role"
    assert made["role"]["rules"] == RULES
    assert made["role"]["metadata"] == made["role-binding"]["metadata"] == METADATA
    assert made["role-binding"]["kind"] == "RoleBinding"
    assert made["role-binding"]["roleRef"] == {
        "apiGroup": "rbac.authorization.k8s.io",
        "kind": "Role",
        "name": "agent",
    }
    assert made["role-binding"]["subjects"] == SUBJECTS


def test_a_cluster_role_has_no_namespace_but_the_account_it_is_bound_to_has():
    made = _rbac.cluster_role(METADATA, RULES)
    assert list(made) == ["cluster-role", "cluster-role-binding"]
    assert [manifest["kind"] for manifest in made.values()] == ["ClusterRole", "ClusterRoleBinding"]
    for manifest in made.values():
        assert manifest["metadata"] == {"name": "agent", "labels": {"a": "b"}}
    assert made["cluster-role"]["rules"] == RULES
    assert made["cluster-role-binding"]["roleRef"]["kind"] == "ClusterRole"
    assert made["cluster-role-binding"]["subjects"] == SUBJECTS
    assert METADATA["namespace"] == "gpu"


@pytest.mark.parametrize("make", [_rbac.role, _rbac.cluster_role])
def test_kubernetes_takes_them(make):
    for manifest in (*_rbac.service_account(METADATA).values(), *make(METADATA, RULES).values()):
        assert schema_errors(manifest) == []
