"""Security contexts of pods and containers. They grant only the rights that a container needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpu_constructs.records import dataclass

POD = {"seccompProfile": {"type": "RuntimeDefault"}}
"""Security context of every pod that the library emits."""

SECURITY_CONTEXT = (
    "allowPrivilegeEscalation appArmorProfile capabilities privileged procMount readOnlyRootFilesystem runAsGroup "
    "runAsNonRoot runAsUser seLinuxOptions seccompProfile windowsOptions"
).split()
"""Fields of the security context of a container."""

POD_SECURITY_CONTEXT = (
    "appArmorProfile fsGroup fsGroupChangePolicy runAsGroup runAsNonRoot runAsUser seLinuxChangePolicy seLinuxOptions "
    "seccompProfile supplementalGroups supplementalGroupsPolicy sysctls windowsOptions"
).split()
"""Fields of the security context of a pod."""


def container_security(
    *, add: tuple[str, ...] = (), privileged: bool = False, non_root: bool = False, read_only: bool = True
) -> dict[str, Any]:
    """Return the security context of a container.

    Args:
        add: Linux capabilities that the container keeps; none by default.
        privileged: Whether the container is privileged; False by default. If True, ``add`` and ``non_root`` have no
            effect.
        non_root: Whether to set ``runAsNonRoot``, so that the container cannot run as root; False by default.
        read_only: Whether the container cannot write to its root file system; True by default.
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
    """Return the security context of a pod.

    Args:
        run_as_user: User ID of the processes. None: the user of the image. An ID above 0 also sets ``runAsNonRoot``.
        fs_group: Group ID that owns the volumes of the pod. None: no such group.
    """
    return {
        "runAsNonRoot": True if run_as_user else None,
        "runAsUser": run_as_user,
        "fsGroup": fs_group,
        # With the default "Always", the kubelet changes the owner of every file at each start of the pod.
        "fsGroupChangePolicy": None if fs_group is None else "OnRootMismatch",
    }


@dataclass(frozen=True, kw_only=True)
class Rights:
    """The rights that a container needs: Linux capabilities, or privileged mode.

    Attributes:
        add: Linux capabilities that the container needs.
        privileged: Whether the container must run in privileged mode.
    """

    add: tuple[str, ...] = ()
    privileged: bool = False

    def __str__(self) -> str:
        return "privileged=True" if self.privileged else f"capabilities.add {', '.join(self.add)}"

    def to_manifest(self, *, read_only: bool = True) -> dict[str, Any]:
        """Return the security context that grants exactly these rights.

        Args:
            read_only: Whether the container cannot write to its root file system; True by default.
        """
        return container_security(add=self.add, privileged=self.privileged, read_only=read_only)

    def are_in(self, context: Mapping[str, Any]) -> bool:
        """Check whether a security context that the user passes (as in a manifest) grants these rights."""
        held = (context.get("capabilities") or {}).get("add") or ()
        return bool(context.get("privileged")) or (not self.privileged and {*self.add} <= {*held, *_all(held)})


def _all(held: Any) -> tuple[str, ...]:
    return ("SYS_ADMIN",) if "ALL" in held else ()
