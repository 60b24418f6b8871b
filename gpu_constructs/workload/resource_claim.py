"""Claims of Dynamic Resource Allocation: which GPUs, said to the scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpu_constructs.workload.backend import Backend
from gpu_constructs.workload.gpu_request import GpuRequest, product_label

API_VERSION = "resource.k8s.io/v1"
CLAIM = "gpu"
"""What the claim is called in a pod, and the request in it."""

_ATTRIBUTES = "device.attributes['gpu.nvidia.com']"
_CAPACITY = "device.capacity['gpu.nvidia.com']"


def cel_selector(request: GpuRequest) -> str | None:
    """Give the condition on a device that meets a request, as CEL; None where any GPU does.

    Source:
        kubernetes-sigs/dra-driver-nvidia-gpu@v0.4.0:cmd/gpu-kubelet-plugin/deviceinfo.go
    """
    conditions = []
    if request.mig_profile:
        conditions.append(f"{_ATTRIBUTES}.profile == '{request.mig_profile}'")
    if request.products:
        labels = ", ".join(f"'{product_label(product)}'" for product in request.products)
        # The driver tells the name with blanks, a label has dashes: either spelling may have been given.
        conditions.append(f"{_ATTRIBUTES}.productName.replace(' ', '-') in [{labels}]")
    if request.min_mib is not None:
        # Missing where GPU and CPU share their memory, and a missing key is an error.
        conditions.append(
            f"'memory' in {_CAPACITY} && {_CAPACITY}.memory.compareTo(quantity('{request.min_vram}')) >= 0"
        )
    if request.min_compute_capability:
        least = f"semver('{request.min_compute_capability}.0')"
        conditions.append(f"{_ATTRIBUTES}.cudaComputeCapability.compareTo({least}) >= 0")
    if request.families:
        names = ", ".join(f"'{family}'" for family in request.families)
        conditions.append(f"{_ATTRIBUTES}.architecture.lowerAscii().replace(' ', '-') in [{names}]")
    return " && ".join(conditions) or None


def device_claim(request: GpuRequest, backend: Backend) -> dict[str, Any]:
    """Give the spec of a ResourceClaim that meets a request."""
    condition = cel_selector(request)
    return {
        "devices": {
            "requests": [
                {
                    "name": CLAIM,
                    "exactly": {
                        "deviceClassName": backend.mig_device_class if request.mig_profile else backend.device_class,
                        "allocationMode": "ExactCount",
                        "count": request.count,
                        "selectors": [{"cel": {"expression": condition}}] if condition else None,
                    },
                }
            ]
        }
    }


def resource_claim_template(metadata: Mapping[str, Any], claim: Mapping[str, Any]) -> dict[str, Any]:
    """Give the ResourceClaimTemplate of which each pod gets a claim of its own."""
    return {
        "apiVersion": API_VERSION,
        "kind": "ResourceClaimTemplate",
        "metadata": metadata,
        "spec": {"spec": claim},
    }
