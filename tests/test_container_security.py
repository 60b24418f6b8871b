import pytest

from gpu_constructs import pod_security
from gpu_constructs._container_security import POD, container_security

HARDENED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}


def violations(container):
    return pod_security.violations(
        {"securityContext": POD, "containers": [{"name": "c", "securityContext": container}]}, "restricted"
    )


def test_a_container_holds_nothing_unless_it_is_told_to():
    assert container_security() == HARDENED


def test_capabilities_are_added_to_none_in_the_order_given():
    added = container_security(add=("SYS_ADMIN", "NET_RAW"))
    assert added == {**HARDENED, "capabilities": {"drop": ["ALL"], "add": ["SYS_ADMIN", "NET_RAW"]}}


def test_a_user_that_is_not_root_is_stated_and_any_other_left_open():
    assert container_security(non_root=True) == {**HARDENED, "runAsNonRoot": True}
    assert "runAsNonRoot" not in container_security(non_root=False)


def test_a_root_file_system_can_be_left_writable():
    assert container_security(read_only=False) == {**HARDENED, "readOnlyRootFilesystem": False}


@pytest.mark.parametrize("read_only", [True, False])
def test_a_privileged_container_says_no_word_that_contradicts_it(read_only):
    given = container_security(privileged=True, add=("SYS_ADMIN",), non_root=True, read_only=read_only)
    assert given == {"privileged": True, "readOnlyRootFilesystem": read_only}


def test_with_a_user_that_is_not_root_it_passes_the_restricted_level():
    assert violations(container_security(non_root=True)) == []
    assert len(violations(container_security())) == 1


def test_two_containers_share_no_list():
    first = container_security(add=("SYS_ADMIN",))
    first["capabilities"]["add"].append("NET_RAW")
    first["capabilities"]["drop"].clear()
    assert container_security() == HARDENED
