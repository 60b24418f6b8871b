"""Disks that a workload brings itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gpu_constructs import _fields
from gpu_constructs.errors import GpuConstructsError, ShortErrors

AccessMode = Literal["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"]


@dataclass(frozen=True, kw_only=True)
class VolumeClaim(metaclass=ShortErrors):
    """A disk of its own for a workload, mounted by ``volumes={"/path": VolumeClaim(storage="100Gi")}``.

    A StatefulSet gets one for each of its pods (``volumeClaimTemplates``), every other kind one
    PersistentVolumeClaim named after workload and path.

    Attributes:
        storage: How much, as a quantity.
        access_modes: Who may mount it at once; ``ReadWriteOnce``, one node, by default, since every storage has it.
        storage_class_name: Kind of storage. None: the cluster's default.

    Raises:
        GpuConstructsError: An amount that is no quantity, an access mode that Kubernetes does not have, or none.
    """

    storage: str
    access_modes: Sequence[AccessMode] = ("ReadWriteOnce",)
    storage_class_name: str | None = None

    def __post_init__(self) -> None:
        _fields.members(self, "volume_claim")
        _fields.size("volume_claim.storage", self.storage)
        if not self.access_modes:
            raise GpuConstructsError("volume_claim.access_modes must name at least one; got none")
        if self.storage_class_name:
            _fields.dns_subdomain("volume_claim.storage_class_name", self.storage_class_name)

    @property
    def serves_several_nodes(self) -> bool:
        """Whether pods of several nodes may mount it at once."""
        return any(mode in ("ReadWriteMany", "ReadOnlyMany") for mode in self.access_modes)

    def spec(self) -> dict[str, Any]:
        """Give the claim as Kubernetes writes it."""
        return {
            "accessModes": list(self.access_modes),
            "resources": {"requests": {"storage": self.storage}},
            "storageClassName": self.storage_class_name,
        }
