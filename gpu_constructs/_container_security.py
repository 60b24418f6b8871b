"""The security context of our own containers: nothing held that the container does not use."""

from __future__ import annotations

from typing import Any

POD = {"seccompProfile": {"type": "RuntimeDefault"}}
"""Of every pod of ours."""


def container_security(
    *, add: tuple[str, ...] = (), privileged: bool = False, non_root: bool = False, read_only: bool = True
) -> dict[str, Any]:
    """Give a container's security context: all capabilities dropped, then only those named added.

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
