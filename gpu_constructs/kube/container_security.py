"""The security context of our own containers: nothing held that the container does not use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

POD = {"seccompProfile": {"type": "RuntimeDefault"}}
"""Security context of every pod that the library emits."""

SECURITY_CONTEXT = (
    "allowPrivilegeEscalation appArmorProfile capabilities privileged procMount readOnlyRootFilesystem runAsGroup "
    "runAsNonRoot runAsUser seLinuxOptions seccompProfile windowsOptions"
).split()
"""What a container's security context can hold."""

POD_SECURITY_CONTEXT = (
    "appArmorProfile fsGroup fsGroupChangePolicy runAsGroup runAsNonRoot runAsUser seLinuxChangePolicy seLinuxOptions "
    "seccompProfile supplementalGroups supplementalGroupsPolicy sysctls windowsOptions"
).split()
"""What a pod's security context can hold."""


def container_security(
    *, add: tuple[str, ...] = (), privileged: bool = False, non_root: bool = False, read_only: bool = True
) -> dict[str, Any]:
    """Return a container's security context: all capabilities dropped, then only those named added.

    A privileged container holds every capability anyway, so nothing else is written for it but a read-only
    root.
    """
    if privileged:
        return {"privileged": True, "readOnlyRootFilesystem": read_only}
    context: dict[str, Any] = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"], **({"add": list(add)} if add else {})},
        "readOnlyRootFilesystem": read_only,
    }
    if non_root:
        context["runAsNonRoot"] = True
    return context


def pod_security(*, run_as_user: int | None, fs_group: int | None) -> dict[str, Any]:
    """Return the security context of a pod with a user, and with a group that owns its disks."""
    return {
        "runAsNonRoot": True if run_as_user else None,
        "runAsUser": run_as_user,
        "fsGroup": fs_group,
        # Else the kubelet walks through a disk full of models at every start.
        "fsGroupChangePolicy": None if fs_group is None else "OnRootMismatch",
    }


@dataclass(frozen=True, kw_only=True)
class Rights:
    """What a container must hold beyond nothing."""

    add: tuple[str, ...] = ()
    privileged: bool = False

    def __str__(self) -> str:
        return "privileged=True" if self.privileged else f"capabilities.add {', '.join(self.add)}"

    def to_manifest(self, *, read_only: bool = True) -> dict[str, Any]:
        """Return the security context that holds them and no more."""
        return container_security(add=self.add, privileged=self.privileged, read_only=read_only)

    def are_in(self, context: Mapping[str, Any]) -> bool:
        """Check whether a security context of the user's holds them."""
        held = (context.get("capabilities") or {}).get("add") or ()
        return bool(context.get("privileged")) or (not self.privileged and {*self.add} <= {*held, *_all(held)})


def _all(held: Any) -> tuple[str, ...]:
    return ("SYS_ADMIN",) if "ALL" in held else ()
