import pytest

from gpu_constructs.kube import pod_security
from gpu_constructs.kube.container_security import (
    POD,
    POD_SECURITY_CONTEXT,
    SECURITY_CONTEXT,
    Rights,
    container_security,
)
from schemas import SUPPORTED_RELEASES, schema_errors
from tables import cases

HARDENED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True}


def violations(container):
    return pod_security.violations(
        {"securityContext": POD, "containers": [{"name": "c", "securityContext": container}]}, "restricted"
    )


@pytest.mark.parametrize("read_only", [True, False])
def test_the_context_of_a_privileged_container_has_no_contradiction(read_only):
    given = container_security(privileged=True, add=("SYS_ADMIN",), non_root=True, read_only=read_only)
    assert given == {"privileged": True, "readOnlyRootFilesystem": read_only}


def test_the_context_of_a_user_other_than_root_passes_the_restricted_level():
    assert violations(container_security(non_root=True)) == []
    assert len(violations(container_security())) == 1


def refused_fields(place, fields):
    """Return the fields of a security context that the schema of the newest Kubernetes release does not have."""
    known = []
    for field in fields:
        context = {"securityContext": {field: None}}
        pod = {"containers": [{"name": "c", "image": "a:1"}]}
        if place == "pod":
            pod |= context
        else:
            pod["containers"][0] |= context
        manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n"}, "spec": pod}
        if any("unexpected" in error for error in schema_errors(manifest, SUPPORTED_RELEASES[-1:])):
            known.append(field)
    return known


@pytest.mark.parametrize(("place", "fields"), [("container", SECURITY_CONTEXT), ("pod", POD_SECURITY_CONTEXT)])
def test_every_allowed_field_exists_in_kubernetes(place, fields):
    assert refused_fields(place, fields) == []
    assert refused_fields(place, ["privilege"]) == ["privilege"]


NONE, SYS_ADMIN, PRIVILEGED = Rights(), Rights(add=("SYS_ADMIN",)), Rights(add=("SYS_ADMIN",), privileged=True)


def test_rights_become_the_security_context_that_grants_exactly_them():
    assert NONE.to_manifest() == HARDENED
    assert SYS_ADMIN.to_manifest() == {**HARDENED, "capabilities": {"drop": ["ALL"], "add": ["SYS_ADMIN"]}}
    assert PRIVILEGED.to_manifest(read_only=False) == {"privileged": True, "readOnlyRootFilesystem": False}


@cases
def test_a_context_that_grants_at_least_the_rights_contains_them(context, held):
    by_weight = [NONE, SYS_ADMIN, PRIVILEGED]
    assert [rights for rights in by_weight if rights.are_in(context)] == by_weight[:held]
