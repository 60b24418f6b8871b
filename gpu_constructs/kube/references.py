"""Other objects a construct points at, given by name or as the object itself."""

from __future__ import annotations

from typing import Any, Protocol

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube import fields


class NamedObject(Protocol):
    """An object of any cdk8s library: a construct of cdk8s-plus or of this library, or an ``ApiObject``."""

    @property
    def name(self) -> str:
        """Name of the object."""


def name_of(field: str, given: object, kind: str) -> str:
    """Return the name of an object handed over as text or as a construct of any cdk8s library.

    Constructs are recognised by what they carry (``kind`` and ``name``), so cdk8s-plus objects of every
    version, plain ``ApiObject``s and ours serve alike, and none of those libraries is imported here.
    """
    if isinstance(given, str):
        fields.dns_subdomain(field, given)
        return given
    target: Any = getattr(given, "api_object", given)
    found = getattr(target, "kind", None)
    name = getattr(target, "name", None) if found == kind else None
    if not isinstance(name, str):
        got = f"a {found}" if isinstance(found, str) else type(given).__name__
        raise GpuConstructsError(f"{field} must be the name of a {kind} or a {kind} object; got {got}")
    return name
