"""What pods ask for by claims of DRA."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpu_constructs.capacity.demand.app_objects import App
from gpu_constructs.capacity.demand.pod_group import mapping, members, number

_GROUP = "resource.k8s.io"
_WHOLE_GPUS = "gpu.nvidia.com"


@dataclass
class PodClaims:
    """What a pod asks for by claims.

    Attributes:
        asks: Devices of claims of its own, by their class.
        shared: Claims that it has together with others, by the index of the object.
        notes: What was assumed, each a sentence without a full stop.
    """

    asks: dict[str, int] = field(default_factory=dict)
    shared: list[int] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def pod_claims(pod_spec: Mapping[str, Any], namespace: str, app: App, *, says_vram: bool) -> PodClaims:
    """Give what a pod asks for by claims; each is allocated once, whichever containers hold it.

    Where a template is not in the app, only a pod that says how much memory it takes is known to want a GPU.
    """
    found = PodClaims()
    for claim in members(pod_spec.get("resourceClaims")):
        if isinstance(claim.get("resourceClaimName"), str):
            index = app.index_of(_GROUP, "ResourceClaim", claim["resourceClaimName"], namespace)
            if index is None:
                found.notes.append(f"ResourceClaim {claim['resourceClaimName']} is not in this app: not counted")
            elif index not in found.shared:
                found.shared.append(index)
            continue
        name = claim.get("resourceClaimTemplateName")
        template = app.named(_GROUP, "ResourceClaimTemplate", name, namespace)
        if template is None:
            if says_vram:
                found.asks[_WHOLE_GPUS] = found.asks.get(_WHOLE_GPUS, 0) + 1
                found.notes.append(f"ResourceClaimTemplate {name} is not in this app: counted as one {_WHOLE_GPUS}")
            continue
        asks, notes = claim_asks(mapping(mapping(template.get("spec")).get("spec")), app)
        for device_class, count in asks.items():
            found.asks[device_class] = found.asks.get(device_class, 0) + count
        found.notes.extend(notes)
    return found


def claim_asks(spec: Mapping[str, Any], app: App) -> tuple[dict[str, int], list[str]]:
    """Give how many devices of each class of GPUs a claim asks for, and what was assumed about it."""
    asks: dict[str, int] = {}
    notes: list[str] = []
    for request in members(mapping(spec.get("devices")).get("requests")):
        name = request.get("name")
        choices = members(request.get("firstAvailable"))
        # resource.k8s.io/v1beta1 has the members of "exactly" in the request itself.
        wanted = choices[0] if choices else mapping(request.get("exactly")) or request
        device_class = wanted.get("deviceClassName")
        # Access for monitoring takes no device away from others.
        if not isinstance(device_class, str) or wanted.get("adminAccess") is True:
            continue
        if not app.is_gpu_class(device_class):
            if app.index_of(_GROUP, "DeviceClass", device_class) is None:
                notes.append(f"device class {device_class} is not known to be GPUs: not counted")
            continue
        if choices[1:]:
            notes.append(f"of the choices of its request {name} the first is counted")
        if wanted.get("allocationMode") == "All":
            notes.append(f"its request {name} takes all devices of a node that match: counted as one")
            count = 1
        else:
            count = number(wanted.get("count"), 1) or 1
        asks[device_class] = asks.get(device_class, 0) + count
        if wanted.get("selectors"):
            notes.append(f"the conditions of its request {name} are not looked at")
        if device_class in app.own_classes:
            notes.append(f"the conditions of device class {device_class} are not looked at")
    if asks and mapping(spec.get("devices")).get("constraints"):
        notes.append("the constraints between the devices of its claim are not looked at")
    return asks, notes
