"""Functions that return ServiceAccounts, roles and role bindings, as manifests by construct ID."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_GROUP = "rbac.authorization.k8s.io"
Rules = Sequence[Mapping[str, Any]]


def service_account(metadata: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return a dict with one entry: the construct ID and the manifest of a ServiceAccount.

    The ServiceAccount sets ``automountServiceAccountToken: false``. A pod that needs a token sets the field to true.
    """
    return {
        "service-account": {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": metadata,
            "automountServiceAccountToken": False,
        }
    }


def role(metadata: Mapping[str, Any], rules: Rules) -> dict[str, dict[str, Any]]:
    """Return a Role, and a RoleBinding to the ServiceAccount with the same name, as manifests by construct ID."""
    return _granted("role", "Role", metadata, rules, metadata)


def cluster_role(metadata: Mapping[str, Any], rules: Rules, *, account: str | None = None) -> dict[str, dict[str, Any]]:
    """Return a ClusterRole, and a ClusterRoleBinding to a ServiceAccount, as manifests by construct ID.

    The argument ``account`` is the name of the ServiceAccount; by default the name of the ClusterRole.
    """
    of_cluster = {key: value for key, value in metadata.items() if key != "namespace"}
    return _granted("cluster-role", "ClusterRole", of_cluster, rules, {**metadata, "name": account or metadata["name"]})


def _granted(
    child: str, kind: str, metadata: Mapping[str, Any], rules: Rules, account: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    return {
        child: {"apiVersion": f"{_GROUP}/v1", "kind": kind, "metadata": metadata, "rules": rules},
        f"{child}-binding": {
            "apiVersion": f"{_GROUP}/v1",
            "kind": f"{kind}Binding",
            "metadata": metadata,
            "roleRef": {"apiGroup": _GROUP, "kind": kind, "name": metadata["name"]},
            "subjects": [{"kind": "ServiceAccount", "name": account["name"], "namespace": account["namespace"]}],
        },
    }
