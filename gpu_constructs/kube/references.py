"""References to Kubernetes objects, which a user specifies as a name or as a cdk8s construct."""

from __future__ import annotations

from typing import Any, Protocol

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube import fields


class NamedObject(Protocol):
    """A cdk8s construct that emits one Kubernetes object: from cdk8s-plus, from this library, or an ``ApiObject``."""

    @property
    def name(self) -> str:
        """Name of the Kubernetes object that the construct emits."""


def name_of(field: str, given: object, kind: str) -> str:
    """Return the name of a Kubernetes object that the user specifies as a name or as a construct.

    The function accepts any object with the attributes ``kind`` and ``name`` as a construct. So it accepts constructs
    of every release of cdk8s-plus, and does not import that library.

    Args:
        field: Name of the option in messages.
        given: Name or construct.
        kind: Required kind of the object.

    Raises:
        GpuConstructsError: The value is not a valid name, or is an object of another kind.
    """
    if isinstance(given, str):
        fields.dns_subdomain(field, given)
        return given
    target: Any = getattr(given, "api_object", given)
    found = getattr(target, "kind", None)
    name = getattr(target, "name", None) if found == kind else None
    if not isinstance(name, str):
        got = f"a {found}" if isinstance(found, str) else type(given).__name__
        raise GpuConstructsError(f"{field} must be the name of a {kind} or a {kind} object, got {got}")
    return name
