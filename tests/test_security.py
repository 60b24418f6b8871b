"""The security list of a hardened GPU cluster, on every pod of dist/; each exception is a row with its reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dist
import invariants
from held import excessive, has_token, held, rights
from security_exceptions import EXCEPTIONS

PAGE = dist.ROOT / "docs" / "security.md"

Manifest = dict[str, Any]


def accounts_with_rights(manifests: list[Manifest]) -> set[tuple[str, str]]:
    return {
        (subject["namespace"], subject["name"])
        for manifest in manifests
        if manifest["kind"] in ("RoleBinding", "ClusterRoleBinding")
        for subject in manifest["subjects"]
        if subject["kind"] == "ServiceAccount"
    }


def accounts_with_a_token(manifests: list[Manifest]) -> set[tuple[str, str]]:
    return {
        (manifest["metadata"]["namespace"], spec.get("serviceAccountName", "default"))
        for manifest in manifests
        for spec in invariants.pod_specs(manifest)
        if has_token(spec, manifest["metadata"]["namespace"], manifests)
    }


ALL_HELD = {cluster: set(held(dist.objects(cluster))) for cluster in dist.CLUSTERS}


@pytest.mark.parametrize("cluster", dist.CLUSTERS)
def test_nothing_is_held_that_has_no_row(cluster: str) -> None:
    rows = {(row.workload, row.rule) for row in EXCEPTIONS}
    assert sorted(ALL_HELD[cluster] - rows) == []


def test_no_row_is_stale() -> None:
    needed = set().union(*ALL_HELD.values())
    assert [row for row in EXCEPTIONS if (row.workload, row.rule) not in needed] == []


def test_every_row_is_there_once_with_a_reason() -> None:
    keys = [(row.workload, row.rule) for row in EXCEPTIONS]
    assert len(keys) == len(set(keys))
    assert all(row.reason for row in EXCEPTIONS)


@pytest.mark.parametrize("cluster", dist.CLUSTERS)
def test_roles_hold_no_wildcard_no_secrets_and_no_way_to_more_rights(cluster: str) -> None:
    found = [f"{role}: {what}" for role, rule in rights(dist.objects(cluster)) for what in excessive(rule)]
    assert found == []


@pytest.mark.parametrize("cluster", dist.CLUSTERS)
def test_a_pod_has_a_token_exactly_when_a_binding_gives_its_account_rights(cluster: str) -> None:
    manifests = dist.objects(cluster)
    assert accounts_with_a_token(manifests) == accounts_with_rights(manifests)


# --- the checks themselves ----------------------------------------------------------------------------------------


def hardened() -> Manifest:
    """A pod that keeps the whole list."""
    container = {
        "name": "c",
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "1Gi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        "ports": [{"containerPort": 80}],
    }
    spec = {
        "automountServiceAccountToken": False,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
        "volumes": [{"name": "v", "emptyDir": {}}],
    }
    return {"kind": "Notebook", "metadata": {"name": "n", "namespace": "gpu"}, "spec": {"template": {"spec": spec}}}


def held_after(place: str, field: str, value: object) -> list[str]:
    """The rules that a hardened pod breaks once one field of it is set, or removed by None."""
    manifest = hardened()
    spec = manifest["spec"]["template"]["spec"]
    container = spec["containers"][0]
    places = {
        "pod": spec,
        "pod security": spec["securityContext"],
        "container": container,
        "container security": container["securityContext"],
        "resources": container["resources"],
    }
    places[place].update({field: value})
    if value is None:
        del places[place][field]
    return [rule for _, rule in held([manifest])]


def test_a_hardened_pod_of_a_custom_resource_breaks_no_rule() -> None:
    assert list(held([hardened()])) == []


@pytest.mark.parametrize(
    ("place", "field", "value", "rules"),
    [
        ("pod security", "runAsNonRoot", None, ["may run as root"]),
        ("container security", "runAsNonRoot", False, ["may run as root"]),
        ("pod security", "runAsUser", 0, ["may run as root"]),
        ("container security", "runAsUser", 0, ["may run as root"]),
        ("container security", "readOnlyRootFilesystem", None, ["writable root file system"]),
        ("container security", "capabilities", {"drop": ["NET_RAW"]}, ["keeps default capabilities"]),
        (
            "container security",
            "capabilities",
            {"drop": ["ALL"], "add": ["SYS_ADMIN"]},
            ["adds capability SYS_ADMIN"],
        ),
        ("pod security", "seccompProfile", None, ["no seccomp profile RuntimeDefault"]),
        ("container security", "seccompProfile", {"type": "Unconfined"}, ["no seccomp profile RuntimeDefault"]),
        ("container security", "allowPrivilegeEscalation", None, ["may escalate privileges"]),
        ("container security", "privileged", True, ["privileged"]),
        ("resources", "limits", None, ["no memory limit"]),
        ("resources", "requests", None, ["no memory request", "no cpu request"]),
        ("pod", "hostNetwork", True, ["host network namespace"]),
        ("pod", "hostPID", True, ["host PID namespace"]),
        ("pod", "hostIPC", True, ["host IPC namespace"]),
        ("container", "ports", [{"containerPort": 80, "hostPort": 80}], ["host port 80"]),
        ("pod", "automountServiceAccountToken", None, ["service account token"]),
        ("pod", "volumes", [{"name": "v", "hostPath": {"path": "/"}}], ["host path /, writable"]),
        (
            "pod",
            "initContainers",
            [{**hardened()["spec"]["template"]["spec"]["containers"][0], "resources": {"limits": {"memory": "1Gi"}}}],
            ["no memory request", "no cpu request"],
        ),
    ],
)
def test_a_pod_that_leaves_the_list_is_seen(place: str, field: str, value: object, rules: list[str]) -> None:
    assert held_after(place, field, value) == rules


def test_a_host_path_that_every_container_mounts_read_only_is_told_apart() -> None:
    manifest = hardened()
    spec = manifest["spec"]["template"]["spec"]
    spec["volumes"][0] = {"name": "v", "hostPath": {"path": "/sys"}}
    spec["containers"][0]["volumeMounts"][0]["readOnly"] = True
    assert list(held([manifest])) == [("Notebook n", "host path /sys, read-only")]


@pytest.mark.parametrize(("says", "rules"), [(False, []), (True, ["service account token"])])
def test_a_pod_that_says_nothing_of_its_token_does_as_its_account_says(says: bool, rules: list[str]) -> None:
    manifest = hardened()
    spec = manifest["spec"]["template"]["spec"]
    del spec["automountServiceAccountToken"]
    spec["serviceAccountName"] = "a"
    metadata = {"name": "a", "namespace": "gpu"}
    account = {"kind": "ServiceAccount", "metadata": metadata, "automountServiceAccountToken": says}
    assert [rule for _, rule in held([manifest, account])] == rules


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        ({"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}, []),
        ({"apiGroups": ["*"], "resources": ["nodes"], "verbs": ["list"]}, ["wildcard in apiGroups"]),
        ({"apiGroups": [""], "resources": ["nodes/*"], "verbs": ["list"]}, ["wildcard in resources"]),
        ({"apiGroups": [""], "resources": ["nodes"], "verbs": ["*"]}, ["wildcard in verbs"]),
        ({"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}, ["access to secrets"]),
        ({"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["create"]}, ["access to pods/exec"]),
        ({"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"]}, ["verb impersonate"]),
    ],
)
def test_a_role_that_holds_too_much_is_seen(rule: Manifest, found: list[str]) -> None:
    assert list(excessive(rule)) == found


# --- the page -----------------------------------------------------------------------------------------------------


def table_of_pods() -> str:
    """What the pods of every workload hold beyond the list, and why."""
    workloads = {
        f"{manifest['kind']} {manifest['metadata']['name']}"
        for cluster in dist.CLUSTERS
        for manifest in dist.objects(cluster)
        if invariants.pod_specs(manifest)
    }
    lines = ["| Pods of | Hold | Because |", "|---|---|---|"]
    lines += [f"| `{row.workload}` | {row.rule} | {row.reason} |" for row in sorted(EXCEPTIONS)]
    lines += [f"| `{name}` | nothing | |" for name in sorted(workloads - {row.workload for row in EXCEPTIONS})]
    return "\n".join(lines) + "\n"


def table_of_rights() -> str:
    """What each role allows at the API server."""
    lines = ["| Role | May | Objects |", "|---|---|---|"]
    found = {
        (role, ", ".join(rule["verbs"]), ", ".join(f"{r}.{group}".rstrip(".") for r in rule["resources"]))
        for cluster in dist.CLUSTERS
        for role, rule in rights(dist.objects(cluster))
        for group in rule["apiGroups"]
    }
    lines += [f"| `{role}` | {verbs} | {what} |" for role, verbs, what in sorted(found)]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("table", [table_of_pods, table_of_rights], ids=["pods", "rights"])
def test_the_page_shows_the_whole_table(table: Callable[[], str]) -> None:
    assert table() in PAGE.read_text(encoding="utf-8"), f"put this into {PAGE.name}:\n\n{table()}"
