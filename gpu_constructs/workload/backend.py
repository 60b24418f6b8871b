"""By which API of Kubernetes pods get their GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gpu_constructs import _fields
from gpu_constructs.errors import GpuConstructsError, ShortErrors, short_errors
from gpu_constructs.platforms import Platform
from gpu_constructs.versions import KUBERNETES_RELEASES

_FIRST_WITH_EXTENDED_RESOURCES = "1.36"


@dataclass(frozen=True, kw_only=True)
class Backend(metaclass=ShortErrors):
    """``Backend.device_plugin()``, ``Backend.dra_claims(...)`` or ``Backend.dra_extended_resource()``.

    Attributes:
        kind: ``device-plugin``, ``dra-claims`` or ``dra-extended-resource``.
        device_class: The DeviceClass of whole GPUs, for claims.
        mig_device_class: The DeviceClass of MIG devices, for claims.
    """

    kind: Literal["device-plugin", "dra-claims", "dra-extended-resource"]
    device_class: str = "gpu.nvidia.com"
    mig_device_class: str = "mig.nvidia.com"

    def __post_init__(self) -> None:
        _fields.members(self, "backend")
        for name in ("device_class", "mig_device_class"):
            _fields.dns_subdomain(f"backend.{name}", getattr(self, name))

    @classmethod
    @short_errors
    def device_plugin(cls) -> Backend:
        """Ask for an extended resource that NVIDIA's device plugin advertises: ``limits: {nvidia.com/gpu: 1}``."""
        return cls(kind="device-plugin")

    @classmethod
    @short_errors
    def dra_claims(cls, *, device_class: str = "gpu.nvidia.com", mig_device_class: str = "mig.nvidia.com") -> Backend:
        """Ask by claims of ``resource.k8s.io/v1``, which NVIDIA's DRA driver serves; Kubernetes 1.34 and later.

        Each workload gets a ResourceClaimTemplate, from which Kubernetes makes a claim for every pod. Which GPU it may
        be is said to the scheduler by CEL expressions on the device, rather than by labels of the node. Pods name no
        runtime class: devices come by CDI.

        Args:
            device_class: The DeviceClass of whole GPUs; by default the one that the driver's chart brings.
            mig_device_class: The DeviceClass of MIG devices; likewise.

        Source:
            kubernetes-sigs/dra-driver-nvidia-gpu@v0.4.0:deployments/helm
        """
        return cls(kind="dra-claims", device_class=device_class, mig_device_class=mig_device_class)

    @classmethod
    @short_errors
    def dra_extended_resource(cls) -> Backend:
        """Ask for an extended resource that the scheduler turns into a claim; Kubernetes 1.36 and later.

        A DeviceClass with ``extendedResourceName: nvidia.com/gpu`` must be there, as the driver's chart makes it.
        Manifests stay as for the device plugin but for the runtime class.

        Source:
            kubernetes/enhancements, KEP-5004 (beta in 1.36)
        """
        return cls(kind="dra-extended-resource")

    @property
    def is_dra(self) -> bool:
        """Whether a DRA driver hands devices out, by CDI, rather than the device plugin."""
        return self.kind != "device-plugin"

    def require(self, platform: Platform) -> None:
        """Refuse a platform that has no such API.

        Raises:
            GpuConstructsError: With the releases that have it.
        """
        if not self.is_dra:
            return
        why = platform.refusal_of("dra")
        if why:
            raise GpuConstructsError(
                f"backend {self.kind!r} does not go with platform {platform}: {why}; "
                "use Backend.device_plugin() there, or a newer release"
            )
        first = KUBERNETES_RELEASES.index(_FIRST_WITH_EXTENDED_RESOURCES)
        if self.kind == "dra-extended-resource" and KUBERNETES_RELEASES.index(platform.kubernetes) < first:
            brings = (
                ""
                if str(platform) == f"Kubernetes {platform.kubernetes}"
                else f" with Kubernetes {platform.kubernetes}"
            )
            raise GpuConstructsError(
                f"backend {self.kind!r} needs Kubernetes {_FIRST_WITH_EXTENDED_RESOURCES} or later, where the "
                f"scheduler turns extended resources into claims; got {platform}{brings}; use Backend.dra_claims()"
            )
