"""A ServiceAccount and what it may do, by construct id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_GROUP = "rbac.authorization.k8s.io"
Rules = Sequence[Mapping[str, Any]]


def service_account(metadata: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the account; pods that need its token say so themselves."""
    return {
        "service-account": {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": metadata,
            "automountServiceAccountToken": False,
        }
    }


def role(metadata: Mapping[str, Any], rules: Rules) -> dict[str, dict[str, Any]]:
    """Return the account of the same name rights in its own namespace."""
    return _granted("role", "Role", metadata, rules, metadata)


def cluster_role(metadata: Mapping[str, Any], rules: Rules, *, account: str | None = None) -> dict[str, dict[str, Any]]:
    """Return an account rights on the whole cluster, by default the one of the same name."""
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
