"""Check of the requests and limits of containers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpu_constructs.errors import GpuConstructsError, refuse_if, then
from gpu_constructs.kube import fields

_NAMES = ("cpu", "memory", "ephemeral-storage")

Resources = Mapping[str, Mapping[str, str | int]]
"""Requests and limits of a container: ``{"requests": {"cpu": "1", "memory": "4Gi"}, "limits": {"memory": "16Gi"}}``."""


def container_resources(given: Resources | None, *, default: Resources, has_gpus: bool = False) -> dict[str, Any]:
    """Return the ``resources`` of a container.

    Args:
        given: Requests and limits that the user specifies. They replace the default as a whole.
        default: Requests and limits if ``given`` is None.
        has_gpus: Whether the error message about a GPU resource recommends the keyword ``gpus=`` of the construct;
            False by default.

    Raises:
        GpuConstructsError: A section is not ``requests`` or ``limits``, an amount is not a quantity, a request is
            above its limit, or a resource is unknown or a GPU (``nvidia.com/...``).
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
                f"resources['requests'][{name!r}] must be at most the limit of {limits[name]}, got {amount}"
            )
    return {section: {n: str(a) for n, a in amounts.items()} for section, amounts in chosen.items() if amounts}


def _check(section: str, name: str, amount: object, *, has_gpus: bool) -> None:
    field = f"resources[{section!r}][{name!r}]"
    if name.startswith("nvidia.com/"):
        way_out = "Request GPUs with gpus=" if has_gpus else "leave it out: this pod needs no GPU"
        raise GpuConstructsError(f"{field} must be absent here, got {amount!r}{then(way_out)}")
    refuse_if(isinstance(amount, bool), field, "be a Kubernetes quantity like '500m'", amount)
    fields.amount_of(field, name, str(amount))
    if name not in _NAMES and not ("/" in name or name.startswith("hugepages-")):
        raise GpuConstructsError(
            f"resources[{section!r}] must name {', '.join(map(repr, _NAMES))} or a resource with a domain, got "
            f"{name!r}{fields.did_you_mean(name, _NAMES)}"
        )
