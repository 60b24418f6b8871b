"""Compute resources of a container: what a user asks for, checked, in Kubernetes' own shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpu_constructs.errors import GpuConstructsError, refuse_if
from gpu_constructs.kube import fields

_NAMES = ("cpu", "memory", "ephemeral-storage")

Resources = Mapping[str, Mapping[str, str | int]]
"""``{"requests": {"cpu": "1", "memory": "4Gi"}, "limits": {"memory": "16Gi"}}``"""


def container_resources(given: Resources | None, *, default: Resources, has_gpus: bool = False) -> dict[str, Any]:
    """Return the ``resources`` of a container: the user's whole choice, else the default.

    Args:
        given: The user's choice.
        default: Taken where the user chose nothing.
        has_gpus: Whether the keyword ``gpus=`` asks for the GPUs of this pod.

    Raises:
        GpuConstructsError: A section other than requests and limits, an amount that is not a quantity, or a GPU.
    """
    chosen = default if given is None else given
    for section, amounts in chosen.items():
        fields.one_of("resources key", section, ("requests", "limits"))
        for name, amount in amounts.items():
            _check(section, name, amount, has_gpus=has_gpus)
    limits = chosen.get("limits", {})
    for name, amount in chosen.get("requests", {}).items():
        if name in limits and fields.amount(str(amount)) > fields.amount(str(limits[name])):
            raise GpuConstructsError(
                f"resources['requests'][{name!r}] must be at most the limit of {limits[name]}; got {amount}"
            )
    return {section: {n: str(a) for n, a in amounts.items()} for section, amounts in chosen.items() if amounts}


def _check(section: str, name: str, amount: object, *, has_gpus: bool) -> None:
    field = f"resources[{section!r}][{name!r}]"
    if name.startswith("nvidia.com/"):
        way_out = (
            "ask for GPUs with gpus="
            if has_gpus
            else "leave it out: this pod needs no GPU of its own, and would take one from the workloads"
        )
        raise GpuConstructsError(f"{field} must not be set here; got {amount!r}; {way_out}")
    refuse_if(isinstance(amount, bool), field, "be a Kubernetes quantity like '500m'", amount)
    fields.amount_of(field, name, str(amount))
    if name not in _NAMES and not ("/" in name or name.startswith("hugepages-")):
        raise GpuConstructsError(
            f"resources[{section!r}] must hold {', '.join(map(repr, _NAMES))} or a name with a domain; "
            f"got {name!r}{fields.did_you_mean(name, _NAMES)}"
        )
