"""Claims of Dynamic Resource Allocation: which GPUs, said to the scheduler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpu_constructs.workload.backend import Backend
from gpu_constructs.workload.gpu_request import GpuRequest, known_board

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
        conditions.append(_names_one_of(request.products))
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


def _names_one_of(products: Sequence[str]) -> str:
    boards = {product: known_board(product) for product in products}
    known = list(dict.fromkeys(_quoted(model.name) for model in boards.values() if model is not None))
    # The driver tells the name with blanks, a label has dashes: either spelling may have been given.
    others = [_quoted("-".join(one.removesuffix("-SHARED").split())) for one, model in boards.items() if model is None]
    name = f"{_ATTRIBUTES}.productName"
    tests = [
        f"{called} == {names[0]}" if len(names) == 1 else f"{called} in [{', '.join(names)}]"
        for called, names in ((name, known), (f"{name}.replace(' ', '-')", list(dict.fromkeys(others))))
        if names
    ]
    return tests[0] if len(tests) == 1 else f"({' || '.join(tests)})"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


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
