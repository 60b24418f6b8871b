"""What pods ask for by claims of DRA."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from typing import Any

from gpu_constructs.capacity.consumer import Choice, Condition
from gpu_constructs.capacity.demand.app_objects import App
from gpu_constructs.facts.readable import at, mapping, members, number

_GROUP = "resource.k8s.io"
_WHOLE_GPUS = "gpu.nvidia.com"
_WHOLE_GPU = {"spec": {"spec": {"devices": {"requests": [{"deviceClassName": _WHOLE_GPUS}]}}}}
_MOST_CHOICES = 64


@dataclass
class PodClaims:
    """What a pod asks for by claims.

    Attributes:
        choices: Devices of claims of its own, by their class; several where they leave a choice, the best first.
        shared: Claims that it has together with others, by the index of the object.
        notes: What was assumed, each a sentence without a full stop.
    """

    choices: Sequence[Choice] = (Choice({}),)
    shared: list[int] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def pod_claims(pod_spec: Mapping[str, Any], namespace: str, app: App, *, says_vram: bool) -> PodClaims:
    """Return what a pod asks for by claims; each is allocated once, whichever containers hold it.

    Where a template is not in the app, only a pod that says how much memory it takes is known to want a GPU.
    """
    found = PodClaims()
    for claim in members(pod_spec.get("resourceClaims")):
        if isinstance(claim.get("resourceClaimName"), str):
            index = app.index_of(_GROUP, "ResourceClaim", claim["resourceClaimName"], namespace)
            if index is None:
                found.notes.append(
                    Condition(f"ResourceClaim {claim['resourceClaimName']}, which is not in this app, has its devices")
                )
            elif index not in found.shared:
                found.shared.append(index)
            continue
        name = claim.get("resourceClaimTemplateName")
        template = app.named(_GROUP, "ResourceClaimTemplate", name, namespace)
        if template is None and not says_vram:
            continue
        if template is None:
            found.notes.append(
                Condition(f"ResourceClaimTemplate {name}, which is not in this app, asks for one {_WHOLE_GPUS}")
            )
        choices, notes = claim_choices(at(template or _WHOLE_GPU, "spec.spec"), app)
        found.choices = _together(found.choices, choices)
        found.notes.extend(notes)
    return found


def claim_choices(spec: Mapping[str, Any], app: App) -> tuple[Sequence[Choice], list[str]]:
    """Return what a claim may be given of the classes of GPUs, the best first, and what was assumed about it."""
    found: Sequence[Choice] = (Choice({}),)
    notes: list[str] = []
    for request in members(mapping(spec.get("devices")).get("requests")):
        name = request.get("name")
        # resource.k8s.io/v1beta1 has the members of "exactly" in the request itself.
        wanted = members(request.get("firstAvailable")) or [mapping(request.get("exactly")) or request]
        choices = [_choice(one, name, app, notes) for one in wanted]
        if choices[1:] and any(one.asks for one in choices):
            notes.append(f"of the choices of its request {name} each node gives the first that it has")
        found = _together(found, choices)
    if any(one.asks for one in found) and mapping(spec.get("devices")).get("constraints"):
        notes.append(Condition("devices meet the constraints of its claim, which are not looked at"))
    return found, list(dict.fromkeys(notes))


def _choice(wanted: Mapping[str, Any], name: object, app: App, notes: list[str]) -> Choice:
    device_class = wanted.get("deviceClassName")
    # Access for monitoring takes no device away from others.
    if not isinstance(device_class, str) or wanted.get("adminAccess") is True:
        return Choice({})
    if not app.is_gpu_class(device_class):
        if app.index_of(_GROUP, "DeviceClass", device_class) is None:
            notes.append(Condition(f"a device of class {device_class}, which is not known to be GPUs, is there for it"))
        return Choice({})
    has_conditions = bool(wanted.get("selectors"))
    if has_conditions:
        notes.append(Condition(f"devices meet the conditions of its request {name}, which are not looked at"))
    if device_class in app.own_classes:
        notes.append(Condition(f"devices meet the conditions of device class {device_class}, which are not looked at"))
        has_conditions = True
    if wanted.get("allocationMode") != "All":
        return Choice({device_class: number(wanted.get("count"), 1) or 1})
    if has_conditions:
        notes.append(
            Condition(
                f"one device of a node meets the conditions of its request {name}, which takes all that do and waits "
                "while one of them is taken"
            )
        )
        return Choice({device_class: 1})
    return Choice({device_class: 1}, frozenset([device_class]))


def _together(some: Sequence[Choice], others: Sequence[Choice]) -> Sequence[Choice]:
    """Return what two requests may be given, in the order in which the allocator tries it."""
    found: dict[tuple[frozenset[tuple[str, int]], frozenset[str]], Choice] = {}
    for one, other in islice(product(some, others), _MOST_CHOICES):
        names = dict.fromkeys([*one.asks, *other.asks])
        both = Choice(
            {name: one.asks.get(name, 0) + other.asks.get(name, 0) for name in names}, one.takes_all | other.takes_all
        )
        found.setdefault((frozenset(both.asks.items()), both.takes_all), both)
    return list(found.values())
