"""What the pods of one namespace may take: its ResourceQuota and its LimitRange."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from gpu_constructs.catalog.sharing import GPU
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube import fields

DEVICE_CLASS_SUFFIX = ".deviceclass.resource.k8s.io/devices"
"""Behind the name of a DeviceClass: the quota key of devices that claims hold."""

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
            f"{where} must not hold {name!r}: every container that states none would get one; "
            "let the containers that need it ask for it"
        )


def _check_amount(where: str, name: str, amount: int | str) -> None:
    fields.amount_of(where, name, str(amount))
    if _NVIDIA in name and not str(amount).isdigit():
        raise GpuConstructsError(f"{where} must be a whole number, for Kubernetes divides no GPU; got {amount!r}")


@dataclass(frozen=True, kw_only=True)
class NamespaceQuota(fields.Options):
    """How much all pods of a namespace may hold together.

    A quota on ``requests.cpu``, ``limits.memory`` or the like makes every pod state that amount: one that
    does not is refused. Give ``ContainerLimits`` with defaults beside it. A quota on GPUs asks nothing of
    pods without one.

    Attributes:
        gpus: GPUs by the name that pods ask for them, as ``{"nvidia.com/gpu": 4}``. Each name is counted for
            itself: ``nvidia.com/gpu.shared`` and ``nvidia.com/mig-1g.10gb`` need entries of their own.
            0 allows none.
        device_classes: Devices that claims may hold, by DeviceClass, as ``{"gpu.nvidia.com": 4}``.
        hard: Everything else, by Kubernetes' own keys: ``requests.cpu``, ``limits.memory``, ``pods``.

    Raises:
        GpuConstructsError: Nothing is limited, an amount is none, a key counts twice, or Kubernetes would
            take a key of ``hard`` and never count it.

    Source:
        kubernetes/kubernetes:pkg/quota/v1/evaluator/core/pods.go (extended resources are counted by request)
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
                f"resource_quota.gpus must hold names like {GPU!r}, as pods ask for them; got {name!r}; "
                "other keys go into hard",
            )
            fields.label_key("resource_quota.gpus", name)
        counted = self._counted()
        for key, amount in self.hard.items():
            _check_key(key)
            _check_amount(f"resource_quota.hard[{key!r}]", key, amount)
            yield key in counted, f"resource_quota.hard must not hold {key!r}, which gpus or device_classes set"
        yield not counted and not self.hard, "resource_quota must limit something; leave it out for no quota"

    def _counted(self) -> dict[str, int]:
        return {f"requests.{name}": count for name, count in self.gpus.items()} | {
            f"{name}{DEVICE_CLASS_SUFFIX}": count for name, count in self.device_classes.items()
        }

    def to_manifest(self) -> dict[str, Any]:
        """Return the quota's ``hard`` as Kubernetes writes it."""
        return {key: str(amount) for key, amount in {**self._counted(), **self.hard}.items()}


@dataclass(frozen=True, kw_only=True)
class ContainerLimits(fields.Options):
    """What each container of a namespace may take, and what one that says nothing gets.

    Where ``max`` names a resource and ``default`` does not, Kubernetes takes the maximum as default: a bare
    maximum of one GPU hands a GPU to every container. So for each GPU in ``max`` a default of 0 is written.

    Attributes:
        max: The most one container may take, as ``{"nvidia.com/gpu": 1, "memory": "64Gi"}``.
        default: Limits of a container that states none; cpu, memory or ephemeral-storage.
        default_request: Requests of a container that states none, likewise; Kubernetes takes ``default``
            where this says nothing.

    Raises:
        GpuConstructsError: Nothing is limited, an amount is none, a default is an extended resource, or the
            request is above the limit, or the limit above the maximum.

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
                    f"limit_range.{low}[{name!r}] must be at most limit_range.{high}[{name!r}], {ceiling}; got "
                    f"{amount}",
                )
        is_empty = not (self.max or self.default or self.default_request)
        yield is_empty, "limit_range must limit something; leave it out for no limits"

    def to_manifest(self) -> dict[str, Any]:
        """Return the one item of the LimitRange."""
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
    """Raise for keys with a domain that Kubernetes stores and never counts."""
    name = key.removeprefix("limits.").removeprefix("requests.")
    if key.startswith("count/") or key.endswith(_SUFFIXES_WITH_A_SLASH) or "/" not in name:
        return
    if not key.startswith("requests."):
        raise GpuConstructsError(
            f"resource_quota.hard must not hold {key!r}, which Kubernetes takes and never counts; "
            f"write {'requests.' + name!r}" + (f", or gpus={{{name!r}: …}}" if name.startswith(_NVIDIA) else "")
        )


def namespace_quota(given: NamespaceQuota | Amounts | None) -> NamespaceQuota | None:
    """Return a quota handed over as such or as Kubernetes' own keys.

    Raises:
        GpuConstructsError: As ``NamespaceQuota``.
    """
    return given if isinstance(given, NamespaceQuota) or given is None else NamespaceQuota(hard=given)
