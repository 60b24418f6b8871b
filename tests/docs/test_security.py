"""The security list of a hardened GPU cluster, on every pod of dist/; each exception is a row with its reason."""

import copy
from pathlib import Path
from typing import Any

import dist
import invariants
import tables
from documents import Page
from held import excessive, has_token, held, rights

PAGE = Page("security")

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


def test_the_page_shows_what_every_workload_holds_and_why() -> None:
    workloads = {
        f"{manifest['kind']} {manifest['metadata']['name']}"
        for cluster in dist.CLUSTERS
        for manifest in dist.objects(cluster)
        if invariants.pod_specs(manifest)
    }
    computed = set().union(*ALL_HELD.values())
    rows = [(workload.strip("`"), rule, reason) for workload, rule, reason in PAGE.table("Pods of")]
    assert sorted((workload, rule) for workload, rule, _ in rows if rule != "nothing") == sorted(computed)
    assert [row for row in rows if (row[1] == "nothing") == bool(row[2])] == []
    assert {workload for workload, *_ in rows} == workloads


def test_the_page_shows_what_each_role_allows() -> None:
    computed = {
        (f"`{role}`", ", ".join(rule["verbs"]), ", ".join(f"{r}.{group}".rstrip(".") for r in rule["resources"]))
        for cluster in dist.CLUSTERS
        for role, rule in rights(dist.objects(cluster))
        for group in rule["apiGroups"]
    }
    assert PAGE.table("Role") == [list(row) for row in sorted(computed)]


def test_roles_hold_no_wildcard_no_secrets_and_no_way_to_more_rights() -> None:
    for cluster in dist.CLUSTERS:
        found = [f"{role}: {what}" for role, rule in rights(dist.objects(cluster)) for what in excessive(rule)]
        assert found == []


def test_a_pod_has_a_token_exactly_when_a_binding_gives_its_account_rights() -> None:
    for cluster in dist.CLUSTERS:
        manifests = dist.objects(cluster)
        assert accounts_with_a_token(manifests) == accounts_with_rights(manifests)


# --- the checks themselves ----------------------------------------------------------------------------------------


def hardened() -> Manifest:
    """A pod that keeps the whole list."""
    manifest: Manifest = copy.deepcopy(tables.read(Path(__file__).with_name("hardened.yaml")))
    return manifest


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


def test_a_pod_that_leaves_the_list_is_seen(rows) -> None:
    for place, field, value, rules in rows:
        assert held_after(place, field, value) == rules


def test_a_host_path_that_every_container_mounts_read_only_is_told_apart() -> None:
    manifest = hardened()
    spec = manifest["spec"]["template"]["spec"]
    spec["volumes"][0] = {"name": "v", "hostPath": {"path": "/sys"}}
    spec["containers"][0]["volumeMounts"][0]["readOnly"] = True
    assert list(held([manifest])) == [("Notebook n", "host path /sys, read-only")]


def test_a_pod_that_says_nothing_of_its_token_does_as_its_account_says() -> None:
    for says, rules in [(False, []), (True, ["service account token"])]:
        manifest = hardened()
        spec = manifest["spec"]["template"]["spec"]
        del spec["automountServiceAccountToken"]
        spec["serviceAccountName"] = "a"
        metadata = {"name": "a", "namespace": "gpu"}
        account = {"kind": "ServiceAccount", "metadata": metadata, "automountServiceAccountToken": says}
        assert [rule for _, rule in held([manifest, account])] == rules


def test_a_role_that_holds_too_much_is_seen(rows) -> None:
    for rule, found in rows:
        assert list(excessive(rule)) == found
