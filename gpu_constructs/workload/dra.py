"""Objects of dynamic resource allocation (DRA): a claim that pods share, its sharing strategy, and a DeviceClass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, ClassVar, Literal

from constructs import Construct

from gpu_constructs.cluster.namespace import namespace_in
from gpu_constructs.errors import GpuConstructsError, refuse_if, short_errors
from gpu_constructs.kube import fields
from gpu_constructs.kube.references import NamedObject
from gpu_constructs.records import dataclass, field
from gpu_constructs.tree.construct import GpuObject, checked
from gpu_constructs.tree.manifest import Manifest
from gpu_constructs.workload.gpu_allocation import API_VERSION, DRIVER, allocation, device_condition
from gpu_constructs.workload.gpu_in_pod import CLAIM
from gpu_constructs.workload.gpu_profile import Backend, GpuProfile
from gpu_constructs.workload.gpu_request import EXTENDED_RESOURCE, GpuRequest

Interval = Literal["Default", "Short", "Medium", "Long"]

FEATURE_GATES: Mapping[str, str] = {"TimeSlicing": "TimeSlicingSettings", "MPS": "MPSSupport"}
"""Feature gate of the DRA driver that each sharing strategy needs. Both gates are alpha and off by default."""

_SETTINGS = {
    "TimeSlicing": ("interval",),
    "MPS": (
        "default_active_thread_percentage",
        "default_pinned_device_memory_limit",
        "default_per_device_pinned_memory_limit",
    ),
}
"""Names of the settings that each sharing strategy has."""

_LEAST_MEMORY = 2**20
_NOT_OF_A_CLASS = ("resource", "resource_claim", "driver_capabilities", "vram")
_CLASSES_OF_THE_CHART = ("gpu.nvidia.com", "mig.nvidia.com")


def _memory_limit(field: str, amount: str) -> None:
    fields.quantity(field, amount)
    refuse_if(fields.amount(amount) < _LEAST_MEMORY, field, "be at least '1Mi', the unit of MPS", amount)


@dataclass(frozen=True, kw_only=True)
class ClaimSharing(fields.Options):
    """The strategy with which pods share the GPUs of a ``GpuResourceClaim``.

    Create it with ``ClaimSharing.time_slicing(...)`` or ``ClaimSharing.mps(...)``. Each strategy needs an alpha feature
    gate of the DRA driver: ``TimeSlicingSettings`` or ``MPSSupport``. If this feature gate is off, the driver rejects
    the pods of the claim. A claim without a ``ClaimSharing`` needs no feature gate, and its pods share the GPUs in time
    slices of the default length.

    Attributes:
        strategy: ``TimeSlicing`` or ``MPS``, as in the API of the DRA driver.
        interval: Length of a time slice: ``Short``, ``Medium`` or ``Long``. MIG devices do not have this setting.
        default_active_thread_percentage: Percentage of the GPU threads that each MPS client may use, 0 to 100.
        default_pinned_device_memory_limit: Memory that each MPS client may use on each GPU, as a quantity.
        default_per_device_pinned_memory_limit: Memory that each MPS client may use on individual GPUs. The key is the
            index of the GPU in the claim, or its UUID.

    Raises:
        GpuConstructsError: A setting belongs to another strategy, a value is not a percentage, or a memory limit is
            less than 1Mi.

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
                f"sharing.{name} must be absent with the strategy {self.strategy!r}, got {got!r}",
            )

    @classmethod
    @short_errors
    def time_slicing(cls, interval: Interval | None = None) -> ClaimSharing:
        """Return a strategy in which pods use the GPU one after the other, in time slices.

        Args:
            interval: Length of a time slice: ``Short``, ``Medium`` or ``Long``. None: ``Default``, the length that CUDA
                chooses.
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
        """Return a strategy in which pods use the GPU at the same time, as clients of one MPS server.

        Args:
            default_active_thread_percentage: Percentage of the GPU threads that each client may use, 0 to 100. None: no
                limit.
            default_pinned_device_memory_limit: Memory that each client may use on each GPU, as a quantity. None: no
                limit.
            default_per_device_pinned_memory_limit: Memory that each client may use on individual GPUs. The key is the
                index of the GPU in the claim, or its UUID. None: no such limits.
        """
        return cls(
            strategy="MPS",
            default_active_thread_percentage=default_active_thread_percentage,
            default_pinned_device_memory_limit=default_pinned_device_memory_limit,
            default_per_device_pinned_memory_limit=default_per_device_pinned_memory_limit or {},
        )

    def to_manifest(self, *, of_mig_devices: bool) -> dict[str, Any]:
        """Return the item of ``spec.devices.config`` in a ResourceClaim that sets this strategy.

        Args:
            of_mig_devices: Whether the claim is for MIG devices. The parameters in the item are then a
                ``MigDeviceConfig``, otherwise a ``GpuConfig``.

        Raises:
            GpuConstructsError: The strategy has an interval, but the claim is for MIG devices.
        """
        if of_mig_devices and self.interval is not None:
            raise GpuConstructsError(
                f"sharing.interval must be absent for MIG devices, which have no time slices, got {self.interval!r}"
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
    """A claim for GPUs that several pods share.

    Emits one ResourceClaim of ``resource.k8s.io/v1``. Pods in its namespace use it with
    ``GpuRequest(resource_claim=claim)``, at most 256 pods at a time. These pods run on one node, because the GPUs of
    the claim are on one node. The pods can use all memory of the GPUs, unless ``sharing`` sets the limits of MPS. Only
    shared GPUs need this object: a workload with its own GPUs emits a ResourceClaimTemplate.

    Attributes:
        name: Name of the claim, for ``GpuRequest(resource_claim=...)``. That option also accepts this construct.
        namespace: Name of the claim's namespace.
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
        """Create the claim.

        Args:
            scope: Chart, or a construct in a chart.
            id: ID of the construct. It is also the name of the claim, unless you set ``name``.
            profile: Settings that all GPU workloads of the cluster share. Its backend must be ``Backend.dra_claims()``.
            request: Number and properties of the GPUs. None: one GPU of any model.
            sharing: Strategy with which pods share the GPUs. It is an alpha feature of the DRA driver and needs the
                feature gate ``TimeSlicingSettings`` or ``MPSSupport`` of the driver. None: time slices of the default
                length, which need no feature gate.
            name: Name of the claim. None: ``id``.
            namespace: Namespace as a name, a ``GpuNamespace`` or a cdk8s-plus Namespace. None: the namespace of the
                cdk8s chart. If the chart has no namespace, ``default``.
            labels: Labels of the claim.

        Raises:
            GpuConstructsError: The backend of the profile is not ``Backend.dra_claims()``, or a claim cannot express
                the request.
        """
        request = request or GpuRequest()
        if profile.backend.kind != "dra-claims":
            raise GpuConstructsError(
                f"profile.backend must be Backend.dra_claims() for a claim, got {profile.backend.kind!r}"
            )
        request.refuse(
            "must be absent: it names an existing claim, and this construct creates a claim", "resource_claim"
        )
        request.refuse(
            "must be absent for a claim. Set it for the container with the GPU",
            "driver_capabilities",
        )
        request.refuse("must be absent for a claim. Set it for the workload with the GPU", "vram")
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
    """A DeviceClass: a named selection of GPUs that claims in all namespaces can use.

    Emits one DeviceClass of ``resource.k8s.io/v1``. A DeviceClass has no namespace. Its CEL expression selects the
    devices of NVIDIA's DRA driver that match the keyword ``request``: MIG devices if it has a ``mig_profile``,
    otherwise whole GPUs. Claims use the class through ``Backend.dra_claims(device_class=...)``. Pods can use the class
    without a claim through its ``extended_resource_name``.

    Attributes:
        name: Name of the class.
        extended_resource_name: Name of the extended resource. None if the class has none.
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
        """Create the DeviceClass.

        Args:
            scope: Chart, or a construct in a chart.
            id: ID of the construct. It is also the name of the class, unless you set ``name``.
            profile: Settings that all GPU workloads of the cluster share. Its backend must be ``Backend.dra_claims()``
                or ``Backend.dra_extended_resource()``.
            name: Name of the class, such as ``big.gpu.example.com``. The Helm chart of NVIDIA's DRA driver already
                creates ``gpu.nvidia.com`` and ``mig.nvidia.com``. None: ``id``.
            request: Properties of the devices. Do not set ``count``, because a class has no number of devices. None:
                all whole GPUs.
            extended_resource_name: Name of an extended resource that pods can use in ``limits`` without a claim, such
                as ``nvidia.com/mig-1g.12gb``. It needs Kubernetes 1.36 or later. If two classes have the same
                extended resource, the newer class applies. None: only claims can use the class.
            labels: Labels of the class.

        Raises:
            GpuConstructsError: The backend of the profile does not use DRA, a class cannot express the request, or a
                name is not allowed. Also raised if ``extended_resource_name`` needs a later Kubernetes release.
        """
        request = request or GpuRequest()
        if not profile.backend.is_dra:
            raise GpuConstructsError(
                "profile.backend must be Backend.dra_claims() or Backend.dra_extended_resource() for a device class, "
                f"got {profile.backend.kind!r}"
            )
        if request.count != 1:
            raise GpuConstructsError(
                "request.count must be absent for a device class, got "
                f"{request.count}. Set it in the request of the workload"
            )
        request.refuse("must be absent for a device class", *_NOT_OF_A_CLASS)
        metadata = _metadata(id if name is None else name, labels)
        if metadata["name"] in _CLASSES_OF_THE_CHART:
            raise GpuConstructsError(
                "name must differ from the classes that the Helm chart of NVIDIA's DRA driver creates, got "
                f"{metadata['name']!r}"
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
            "extended_resource_name must be a domain and a name, like 'nvidia.com/mig-1g.12gb', outside kubernetes.io, "
            f"got {name!r}"
        )


def _metadata(name: str, labels: Mapping[str, str] | None) -> dict[str, Any]:
    fields.dns_subdomain("name", name)
    fields.labels("labels", labels or {})
    return {"name": name, "labels": dict(labels or {}) or None}
