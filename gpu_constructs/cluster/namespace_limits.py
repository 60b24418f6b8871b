"""Resource limits for the pods of one namespace: its ResourceQuota and its LimitRange."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from gpu_constructs.catalog.sharing import GPU
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube import fields
from gpu_constructs.records import dataclass, field

DEVICE_CLASS_SUFFIX = ".deviceclass.resource.k8s.io/devices"
"""Suffix of a ResourceQuota key that limits the devices of resource claims.

The name of a DeviceClass precedes the suffix, for example ``gpu.nvidia.com.deviceclass.resource.k8s.io/devices``.
"""

_NVIDIA = "nvidia.com/"
_DEFAULTED = ("cpu", "memory", "ephemeral-storage")
_SUFFIXES_WITH_A_SLASH = (
    DEVICE_CLASS_SUFFIX,
    ".storageclass.storage.k8s.io/requests.storage",
    ".storageclass.storage.k8s.io/persistentvolumeclaims",
)

Amounts = Mapping[str, int | str]


def _check_amounts(where: str, given: Amounts) -> None:
    for name, amount in given.items():
        _check_resource(where, name)
        _check_amount(f"{where}[{name!r}]", name, amount)


def _check_resource(where: str, name: str) -> None:
    if "/" not in name:
        fields.one_of(f"{where} key", name, _DEFAULTED)
    elif where == "limit_range.max":
        fields.label_key(where, name)
    else:
        raise GpuConstructsError(
            f"{where} must not contain {name!r}, because every container that sets no value would get this resource. "
            "Request it in the containers that need it"
        )


def _check_amount(where: str, name: str, amount: int | str) -> None:
    fields.amount_of(where, name, str(amount))
    if _NVIDIA in name and not str(amount).isdigit():
        raise GpuConstructsError(
            f"{where} must be a whole number, because Kubernetes cannot divide a GPU, got {amount!r}"
        )


@dataclass(frozen=True, kw_only=True)
class NamespaceQuota(fields.Options):
    """The maximum of GPUs and other resources that all pods of a namespace together may request.

    With a quota on a key such as ``requests.cpu`` or ``limits.memory``, Kubernetes rejects each pod that does not set
    this request or limit. In that case, also use ``ContainerLimits`` with defaults. A quota on GPUs does not affect
    pods that request no GPU.

    Attributes:
        gpus: Number of GPUs by resource name, for example ``{"nvidia.com/gpu": 4}``. Kubernetes counts each name
            separately: ``nvidia.com/gpu.shared`` and ``nvidia.com/mig-1g.10gb`` need their own entries. The number 0
            forbids the resource.
        device_classes: Number of devices that resource claims may allocate, by name of the DeviceClass, for example
            ``{"gpu.nvidia.com": 4}``.
        hard: Amounts of other resources, by the keys of a ResourceQuota, for example ``requests.cpu``,
            ``limits.memory`` or ``pods``.

    Raises:
        GpuConstructsError: If the quota limits nothing, an amount is invalid, or two options set the same key. Also
            raised if the key of an extended resource in ``hard`` does not start with ``requests.``.

    Source:
        kubernetes/kubernetes:pkg/quota/v1/evaluator/core/pods.go (Kubernetes counts extended resources by request)
    """

    gpus: Mapping[str, int] = field(default_factory=dict)
    device_classes: Mapping[str, int] = field(default_factory=dict)
    hard: Amounts = field(default_factory=dict)

    _NAME: ClassVar[str] = "resource_quota"
    _CHECKS: ClassVar[fields.Checks] = {
        "gpus": fields.entries(fields.natural),
        "device_classes": fields.entries(fields.natural, fields.dns_subdomain),
    }

    def _conflicts(self) -> Iterable[fields.Conflict]:
        for name in self.gpus:
            yield (
                not name.startswith(_NVIDIA),
                f"resource_quota.gpus must contain names like {GPU!r}, got {name!r}. Put other keys in hard",
            )
            fields.label_key("resource_quota.gpus", name)
        counted = self._counted()
        for key, amount in self.hard.items():
            _check_key(key)
            _check_amount(f"resource_quota.hard[{key!r}]", key, amount)
            yield key in counted, f"resource_quota.hard must not contain {key!r}, because another option sets it"
        yield (
            not counted and not self.hard,
            "resource_quota must contain at least one limit. Leave resource_quota out if you need no quota",
        )

    def _counted(self) -> dict[str, int]:
        return {f"requests.{name}": count for name, count in self.gpus.items()} | {
            f"{name}{DEVICE_CLASS_SUFFIX}": count for name, count in self.device_classes.items()
        }

    def to_manifest(self) -> dict[str, Any]:
        """Return the field ``spec.hard`` of the ResourceQuota, for example ``{"requests.nvidia.com/gpu": "4"}``."""
        return {key: str(amount) for key, amount in {**self._counted(), **self.hard}.items()}


@dataclass(frozen=True, kw_only=True)
class ContainerLimits(fields.Options):
    """The maximum for each container of a namespace, and the defaults for a container that sets no resources.

    If a resource is in ``max`` and not in ``default``, Kubernetes uses the maximum as the default. A maximum of one GPU
    would therefore allocate a GPU to every container. To prevent this, the LimitRange sets a default of 0 for each GPU
    resource in ``max``.

    Attributes:
        max: Upper limits for one container by resource, for example ``{"nvidia.com/gpu": 1, "memory": "64Gi"}``.
        default: Limits by resource for a container that sets no limit. Possible resources are ``cpu``, ``memory`` and
            ``ephemeral-storage``.
        default_request: Requests by resource for a container that sets no request. Possible resources are ``cpu``,
            ``memory`` and ``ephemeral-storage``. If a resource is only in ``default``, Kubernetes also uses the default
            limit as the request.

    Raises:
        GpuConstructsError: If all three options are empty, if an amount is invalid, or if a default is for an extended
            resource. Also raised if a request is above the limit or the maximum, or a limit is above the maximum.

    Source:
        kubernetes/kubernetes:pkg/apis/core/v1/defaults.go, plugin/pkg/admission/limitranger/admission.go
    """

    max: Amounts = field(default_factory=dict)
    default: Amounts = field(default_factory=dict)
    default_request: Amounts = field(default_factory=dict)

    _NAME: ClassVar[str] = "limit_range"
    _CHECKS: ClassVar[fields.Checks] = dict.fromkeys(("max", "default", "default_request"), _check_amounts)

    def _conflicts(self) -> Iterable[fields.Conflict]:
        for low, high in (("default_request", "default"), ("default", "max"), ("default_request", "max")):
            ceilings = getattr(self, high)
            for name, amount in getattr(self, low).items():
                ceiling = ceilings.get(name, amount)
                yield (
                    fields.amount(str(amount)) > fields.amount(str(ceiling)),
                    f"limit_range.{low}[{name!r}] must be at most limit_range.{high}[{name!r}] ({ceiling}), got "
                    f"{amount}",
                )
        is_empty = not (self.max or self.default or self.default_request)
        yield is_empty, "limit_range must contain at least one limit. Leave limit_range out if you need no limits"

    def to_manifest(self) -> dict[str, Any]:
        """Return the only item of ``spec.limits`` of the LimitRange, which has the type ``Container``."""
        none = {name: "0" for name in self.max if "/" in name}
        item = {
            "max": self._written("max"),
            "default": self._written("default") | none,
            "defaultRequest": self._written("default_request") | none,
        }
        return {"type": "Container", **{key: amounts for key, amounts in item.items() if amounts}}

    def _written(self, member: str) -> dict[str, str]:
        return {name: str(amount) for name, amount in getattr(self, member).items()}


def _check_key(key: str) -> None:
    """Raise an error if a key of a ResourceQuota names an extended resource without the prefix ``requests.``.

    Kubernetes accepts such a key, for example ``nvidia.com/gpu``, but never counts the resource.
    """
    name = key.removeprefix("limits.").removeprefix("requests.")
    if key.startswith("count/") or key.endswith(_SUFFIXES_WITH_A_SLASH) or "/" not in name:
        return
    if not key.startswith("requests."):
        raise GpuConstructsError(
            f"resource_quota.hard must not contain {key!r}, which Kubernetes accepts but never counts. Use "
            f"{'requests.' + name!r}" + (f", or gpus={{{name!r}: …}}" if name.startswith(_NVIDIA) else "")
        )


def namespace_quota(given: NamespaceQuota | Amounts | None) -> NamespaceQuota | None:
    """Return the user's quota as a ``NamespaceQuota``. Return None if the user sets no quota.

    Args:
        given: ``NamespaceQuota``, or a mapping with the keys of a ResourceQuota, such as ``requests.nvidia.com/gpu``.

    Raises:
        GpuConstructsError: If ``NamespaceQuota`` would reject a key or an amount.
    """
    return given if isinstance(given, NamespaceQuota) or given is None else NamespaceQuota(hard=given)
