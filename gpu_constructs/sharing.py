"""How the pods of a node share its GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gpu_constructs import _fields
from gpu_constructs.errors import GpuConstructsError, ShortErrors, short_errors


@dataclass(frozen=True, kw_only=True)
class Sharing(metaclass=ShortErrors):
    """How many pods may hold one GPU; made by ``Sharing.none()`` or ``Sharing.time_slicing(...)``.

    Attributes:
        strategy: ``none`` or ``time-slicing``.
        replicas: How many slots each GPU is advertised as; 1 without sharing.
        fail_requests_greater_than_one: Whether a container that asks for more than one slot is refused.
        rename_by_default: Whether slots are advertised as ``nvidia.com/gpu.shared``.
    """

    strategy: Literal["none", "time-slicing"]
    replicas: int = 1
    fail_requests_greater_than_one: bool = False
    rename_by_default: bool = False

    def __post_init__(self) -> None:
        _fields.one_of("sharing.strategy", self.strategy, ("none", "time-slicing"))
        if self.strategy == "none":
            if (self.replicas, self.fail_requests_greater_than_one, self.rename_by_default) != (1, False, False):
                raise GpuConstructsError("sharing without a strategy takes nothing else; use Sharing.none()")
            return
        field = "sharing.time_slicing"
        way_out = "use Sharing.none() for exclusive GPUs"
        _fields.whole_number(f"{field}.replicas", self.replicas, minimum=2, way_out=way_out)
        _fields.of_type(f"{field}.fail_requests_greater_than_one", self.fail_requests_greater_than_one, bool)
        _fields.of_type(f"{field}.rename_by_default", self.rename_by_default, bool)

    @classmethod
    @short_errors
    def none(cls) -> Sharing:
        """Give each GPU to one container at a time."""
        return cls(strategy="none")

    @classmethod
    @short_errors
    def time_slicing(
        cls,
        *,
        replicas: int,
        fail_requests_greater_than_one: bool = True,
        rename_by_default: bool = False,
    ) -> Sharing:
        """Let containers take turns on each GPU. Memory is neither divided nor protected.

        A node advertises GPUs times replicas. Two slots may be two turns on one GPU: they are never more
        GPU than one slot.

        Args:
            replicas: Slots for each GPU, 2 or more.
            fail_requests_greater_than_one: Refuse containers that ask for several slots. The plugin's own
                default is False; ours is True because such a request is always a misunderstanding.
            rename_by_default: Advertise ``nvidia.com/gpu.shared`` instead of ``nvidia.com/gpu``.

        Raises:
            GpuConstructsError: Replicas is no int of at least 2.

        Source:
            NVIDIA/k8s-device-plugin@v0.20.0:README.md, "Shared Access to GPUs"
        """
        return cls(
            strategy="time-slicing",
            replicas=replicas,
            fail_requests_greater_than_one=fail_requests_greater_than_one,
            rename_by_default=rename_by_default,
        )

    @property
    def gpu_resource(self) -> str:
        """The resource name that a container asks for under this sharing."""
        return "nvidia.com/gpu.shared" if self.rename_by_default else "nvidia.com/gpu"
