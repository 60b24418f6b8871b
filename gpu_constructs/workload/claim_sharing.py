"""How the pods that share a claim take turns on its GPUs, said to NVIDIA's DRA driver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from gpu_constructs import _fields
from gpu_constructs.errors import GpuConstructsError, ShortErrors, short_errors

Interval = Literal["Default", "Short", "Medium", "Long"]

DRIVER = "gpu.nvidia.com"
FEATURE_GATES: Mapping[str, str] = {"TimeSlicing": "TimeSlicingSettings", "MPS": "MPSSupport"}
"""The driver's feature gate behind each strategy, both alpha and off by default."""

_API_VERSION = "resource.nvidia.com/v1beta1"
_LEAST_MEMORY = 2**20


@dataclass(frozen=True, kw_only=True)
class ClaimSharing(metaclass=ShortErrors):
    """``ClaimSharing.time_slicing(...)`` or ``ClaimSharing.mps(...)``, for ``GpuResourceClaim``.

    Pods share a claim without it as well, by turns of the driver's default length. Both strategies are alpha in the
    driver: it refuses the claim's pods unless its feature gate ``TimeSlicingSettings`` or ``MPSSupport`` is on.

    Attributes:
        strategy: ``TimeSlicing`` or ``MPS``, as the driver writes it.
        interval: Length of a turn under time-slicing; nothing for MIG devices, which have no setting of it.
        default_active_thread_percentage: Share of a GPU's threads that each client of MPS gets, 0 to 100.
        default_pinned_device_memory_limit: Memory of each GPU that each client of MPS gets at most, as a quantity.
        default_per_device_pinned_memory_limit: The same for single GPUs of the claim, by index in it or by UUID.

    Raises:
        GpuConstructsError: A setting of the other strategy, a share that is no percentage, less memory than 1Mi.

    Source:
        kubernetes-sigs/dra-driver-nvidia-gpu@v0.4.0:api/nvidia.com/resource/v1beta1/validate.go, sharing.go
    """

    strategy: Literal["TimeSlicing", "MPS"]
    interval: Interval | None = None
    default_active_thread_percentage: int | None = None
    default_pinned_device_memory_limit: str | None = None
    default_per_device_pinned_memory_limit: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _fields.members(self, "sharing")
        of_mps = ("default_active_thread_percentage", "default_pinned_device_memory_limit")
        others = (
            (*of_mps, "default_per_device_pinned_memory_limit") if self.strategy == "TimeSlicing" else ("interval",)
        )
        for name in others:
            if getattr(self, name) not in (None, {}):
                raise GpuConstructsError(
                    f"sharing.{name} must be left out with the strategy {self.strategy!r}; got {getattr(self, name)!r}"
                )
        if self.default_active_thread_percentage is not None:
            share = self.default_active_thread_percentage
            _fields.whole_number("sharing.default_active_thread_percentage", share, minimum=0, maximum=100)
        limits = {"default_pinned_device_memory_limit": self.default_pinned_device_memory_limit}
        for gpu, limit in self.default_per_device_pinned_memory_limit.items():
            limits[f"default_per_device_pinned_memory_limit[{gpu!r}]"] = limit
        for name, amount in limits.items():
            if amount is None:
                continue
            _fields.quantity(f"sharing.{name}", amount)
            if _fields.amount(amount) < _LEAST_MEMORY:
                raise GpuConstructsError(f"sharing.{name} must be at least '1Mi', the unit of MPS; got {amount!r}")

    @classmethod
    @short_errors
    def time_slicing(cls, interval: Interval | None = None) -> ClaimSharing:
        """Let the pods take turns, each of a length that the driver calls ``Short``, ``Medium`` or ``Long``.

        Args:
            interval: None: ``Default``, the length that CUDA has by itself.
        """
        return cls(strategy="TimeSlicing", interval=interval)

    @classmethod
    @short_errors
    def mps(
        cls,
        *,
        default_active_thread_percentage: int | None = None,
        default_pinned_device_memory_limit: str | None = None,
        default_per_device_pinned_memory_limit: Mapping[str, str] | None = None,
    ) -> ClaimSharing:
        """Let the pods run at the same time as clients of one MPS server, which can hold each to a share.

        Args:
            default_active_thread_percentage: None: no limit.
            default_pinned_device_memory_limit: None: no limit.
            default_per_device_pinned_memory_limit: None: none for single GPUs.
        """
        return cls(
            strategy="MPS",
            default_active_thread_percentage=default_active_thread_percentage,
            default_pinned_device_memory_limit=default_pinned_device_memory_limit,
            default_per_device_pinned_memory_limit=default_per_device_pinned_memory_limit or {},
        )

    def to_manifest(self, *, of_mig_devices: bool) -> dict[str, Any]:
        """Give the claim's ``config`` entry.

        Args:
            of_mig_devices: Whether the claim is one of MIG devices, whose settings are of another kind.

        Raises:
            GpuConstructsError: An interval for MIG devices.
        """
        if of_mig_devices and self.interval is not None:
            raise GpuConstructsError(
                f"sharing.interval must be left out for MIG devices, which the driver gives none; got {self.interval!r}"
            )
        sharing: dict[str, Any] = {"strategy": self.strategy}
        if self.strategy == "MPS":
            sharing["mpsConfig"] = {
                "defaultActiveThreadPercentage": self.default_active_thread_percentage,
                "defaultPinnedDeviceMemoryLimit": self.default_pinned_device_memory_limit,
                "defaultPerDevicePinnedMemoryLimit": dict(self.default_per_device_pinned_memory_limit) or None,
            }
        elif not of_mig_devices:
            sharing["timeSlicingConfig"] = {"interval": self.interval or "Default"}
        parameters = {
            "apiVersion": _API_VERSION,
            "kind": "MigDeviceConfig" if of_mig_devices else "GpuConfig",
            "sharing": sharing,
        }
        return {"opaque": {"driver": DRIVER, "parameters": parameters}}
