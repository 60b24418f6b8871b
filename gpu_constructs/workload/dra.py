"""Objects of dynamic resource allocation: a claim that pods share, how they share it, and a class of devices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Literal

from constructs import Construct

from gpu_constructs.cluster.namespace import namespace_in
from gpu_constructs.errors import GpuConstructsError, refuse_if, short_errors
from gpu_constructs.kube import fields
from gpu_constructs.kube.references import NamedObject
from gpu_constructs.tree.construct import GpuObject, checked
from gpu_constructs.tree.manifest import Manifest
from gpu_constructs.workload.gpu_allocation import API_VERSION, DRIVER, allocation, device_condition
from gpu_constructs.workload.gpu_in_pod import CLAIM
from gpu_constructs.workload.gpu_profile import Backend, GpuProfile
from gpu_constructs.workload.gpu_request import EXTENDED_RESOURCE, GpuRequest

Interval = Literal["Default", "Short", "Medium", "Long"]

FEATURE_GATES: Mapping[str, str] = {"TimeSlicing": "TimeSlicingSettings", "MPS": "MPSSupport"}
"""The driver's feature gate behind each strategy, both alpha and off by default."""

_SETTINGS = {
    "TimeSlicing": ("interval",),
    "MPS": (
        "default_active_thread_percentage",
        "default_pinned_device_memory_limit",
        "default_per_device_pinned_memory_limit",
    ),
}
"""Settings that each strategy has."""

_LEAST_MEMORY = 2**20
_NOT_OF_A_CLASS = ("resource", "resource_claim", "driver_capabilities", "vram")
_CLASSES_OF_THE_CHART = ("gpu.nvidia.com", "mig.nvidia.com")


def _memory_limit(field: str, amount: str) -> None:
    fields.quantity(field, amount)
    refuse_if(fields.amount(amount) < _LEAST_MEMORY, field, "be at least '1Mi', the unit of MPS", amount)


@dataclass(frozen=True, kw_only=True)
class ClaimSharing(fields.Options):
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
        GpuConstructsError: A setting of the other strategy, a share that is not a percentage, less memory than 1Mi.

    Source:
        kubernetes-sigs/dra-driver-nvidia-gpu@v0.4.0:api/nvidia.com/resource/v1beta1/validate.go, sharing.go
    """

    strategy: Literal["TimeSlicing", "MPS"]
    interval: Interval | None = None
    default_active_thread_percentage: int | None = None
    default_pinned_device_memory_limit: str | None = None
    default_per_device_pinned_memory_limit: Mapping[str, str] = field(default_factory=dict)

    _NAME: ClassVar[str] = "sharing"
    _CHECKS: ClassVar[fields.Checks] = {
        "default_active_thread_percentage": partial(fields.whole_number, minimum=0, maximum=100),
        "default_pinned_device_memory_limit": _memory_limit,
        "default_per_device_pinned_memory_limit": fields.entries(_memory_limit),
    }

    def _conflicts(self) -> Iterable[fields.Conflict]:
        for name in (name for strategy, names in _SETTINGS.items() if strategy != self.strategy for name in names):
            got = getattr(self, name)
            yield (
                got not in (None, {}),
                f"sharing.{name} must be left out with the strategy {self.strategy!r}; got {got!r}",
            )

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
        """Return the claim's ``config`` entry.

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
            "apiVersion": "resource.nvidia.com/v1beta1",
            "kind": "MigDeviceConfig" if of_mig_devices else "GpuConfig",
            "sharing": sharing,
        }
        return {"opaque": {"driver": DRIVER, "parameters": parameters}}


class GpuResourceClaim(GpuObject):
    """GPUs that stay the same ones for all pods that name this claim.

    Emits one ResourceClaim of ``resource.k8s.io/v1``. Pods of its namespace hold it by
    ``GpuRequest(resource_claim=claim)``, up to 256 at a time, and all run on the node whose GPUs the first of them was
    given. Nothing keeps their memory apart, but for what ``sharing`` says to MPS. A workload that shall have GPUs of
    its own needs no such object: it makes a template itself.

    Attributes:
        name: Name of the claim, for ``GpuRequest(resource_claim=...)``; the construct itself serves as well.
        namespace: Name of its namespace.
        api_object: The ResourceClaim.

    Source:
        Kubernetes documentation, "Dynamic Resource Allocation"
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        profile: GpuProfile,
        request: GpuRequest | None = None,
        sharing: ClaimSharing | None = None,
        name: str | None = None,
        namespace: str | NamedObject | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """Make the claim.

        Args:
            scope: A chart, or a construct in one.
            id: Construct id, and the name unless ``name`` says otherwise.
            profile: What the GPU workloads of the cluster have in common; its backend must be that of claims.
            request: Which GPUs and how many. None: any single one.
            sharing: How the pods take turns; alpha in NVIDIA's driver, behind its feature gates
                ``TimeSlicingSettings`` and ``MPSSupport``. None: as CUDA does by itself, without any of them.
            name: Name of the claim.
            namespace: A name, a ``GpuNamespace`` or a cdk8s-plus Namespace. None: the chart's namespace, else
                ``default``.
            labels: Labels of the claim.

        Raises:
            GpuConstructsError: The profile's backend makes no claims, or the request says what no claim holds.
        """
        request = request or GpuRequest()
        if profile.backend.kind != "dra-claims":
            raise GpuConstructsError(
                f"profile.backend must be Backend.dra_claims() for a claim; got {profile.backend.kind!r}"
            )
        request.refuse("must be left out: it names a claim, and this is one", "resource_claim")
        request.refuse(
            "must be left out of a claim: the container that holds the GPU says what it needs of the driver",
            "driver_capabilities",
        )
        request.refuse("must be left out of a claim: the workload that holds the GPU says what it takes", "vram")
        metadata = _metadata(id if name is None else name, labels)
        spec = dict(allocation(request, profile).claim or {})
        if sharing is not None:
            config = sharing.to_manifest(of_mig_devices=request.mig_profile is not None)
            spec["devices"] = {**spec["devices"], "config": [{"requests": [CLAIM], **config}]}
        where = namespace_in(scope, namespace)
        super().__init__(scope, id)
        self.name: str = metadata["name"]
        self.namespace = where
        claim = {"apiVersion": API_VERSION, "kind": "ResourceClaim", "metadata": {**metadata, "namespace": where}}
        Manifest(self, "Default", {**claim, "spec": spec})


class GpuDeviceClass(GpuObject):
    """Certain GPUs under a name of their own, for the whole cluster.

    Emits one DeviceClass of ``resource.k8s.io/v1``, which has no namespace, with a CEL selector: devices of NVIDIA's
    driver, of the type ``gpu`` (or ``mig`` with ``mig_profile``), that meet the request. Claims ask for it by
    ``Backend.dra_claims(device_class=...)``, pods by ``extended_resource_name``.

    Attributes:
        name: Name of the class.
        extended_resource_name: Name of the extended resource, or None.
        api_object: The DeviceClass.

    Source:
        kubernetes-sigs/dra-driver-nvidia-gpu@v0.4.0:deployments/helm/dra-driver-nvidia-gpu/templates
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        profile: GpuProfile,
        name: str | None = None,
        request: GpuRequest | None = None,
        extended_resource_name: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """Make the class.

        Args:
            scope: A chart, or a construct in one.
            id: Construct id, and the name unless ``name`` says otherwise.
            profile: What the GPU workloads of the cluster have in common; its backend must be one of DRA.
            name: Name of the class, like ``big.gpu.example.com``. Those of NVIDIA's chart (``gpu.nvidia.com``,
                ``mig.nvidia.com``) are taken.
            request: Which devices belong to it; a class says nothing of how many. None: every whole GPU.
            extended_resource_name: What pods may ask for in ``limits`` instead of making a claim, like
                ``nvidia.com/mig-1g.12gb``; Kubernetes 1.36 and later. Of two classes with one name the newer counts.
                None: the class is for claims alone.
            labels: Labels of the class.

        Raises:
            GpuConstructsError: The profile has no DRA, its Kubernetes no extended resources of classes, or the request
                says what no class holds.
        """
        request = request or GpuRequest()
        if not profile.backend.is_dra:
            raise GpuConstructsError(
                "profile.backend must be Backend.dra_claims() or Backend.dra_extended_resource() for a device class; "
                f"got {profile.backend.kind!r}"
            )
        if request.count != 1:
            raise GpuConstructsError(
                f"request.count must be left out of a device class, which devices belong to one by one; got "
                f"{request.count}; ask for several in the workload"
            )
        request.refuse("must be left out of a device class, which holds devices alone", *_NOT_OF_A_CLASS)
        metadata = _metadata(id if name is None else name, labels)
        if metadata["name"] in _CLASSES_OF_THE_CHART:
            raise GpuConstructsError(
                f"name must differ from the classes that the chart of NVIDIA's driver makes; got {metadata['name']!r}"
            )
        if extended_resource_name is not None:
            _require_extended_resource(extended_resource_name, profile)
        super().__init__(scope, id)
        self.name: str = metadata["name"]
        self.extended_resource_name = extended_resource_name
        spec = {
            "extendedResourceName": extended_resource_name,
            "selectors": [{"cel": {"expression": device_condition(request)}}],
        }
        made = {"apiVersion": API_VERSION, "kind": "DeviceClass", "metadata": metadata, "spec": spec}
        Manifest(self, "Default", made)


def _require_extended_resource(name: str, profile: GpuProfile) -> None:
    Backend.dra_extended_resource().require(profile.platform)
    fields.labels("extended_resource_name", {name: ""})
    if not EXTENDED_RESOURCE.match(name):
        raise GpuConstructsError(
            "extended_resource_name must be a domain and a name, like 'nvidia.com/mig-1g.12gb', outside kubernetes.io; "
            f"got {name!r}"
        )


def _metadata(name: str, labels: Mapping[str, str] | None) -> dict[str, Any]:
    fields.dns_subdomain("name", name)
    fields.labels("labels", labels or {})
    return {"name": name, "labels": dict(labels or {}) or None}
