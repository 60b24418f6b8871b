"""A name for certain GPUs, under which claims and extended resources ask for them."""

from __future__ import annotations

from collections.abc import Mapping

from constructs import Construct

from gpu_constructs import _fields
from gpu_constructs._construct import GpuObject, checked
from gpu_constructs._manifest import Manifest
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.workload.backend import Backend
from gpu_constructs.workload.claim_sharing import DRIVER
from gpu_constructs.workload.gpu_profile import GpuProfile
from gpu_constructs.workload.gpu_request import EXTENDED_RESOURCE, GpuRequest
from gpu_constructs.workload.resource_claim import API_VERSION, cel_selector

_NOT_OF_A_CLASS = ("resource", "resource_claim", "driver_capabilities", "vram")


class GpuDeviceClass(GpuObject):
    """Certain GPUs under a name of their own, for the whole cluster.

    Emits one DeviceClass of ``resource.k8s.io/v1``, which has no namespace, with a CEL selector: devices of NVIDIA's
    driver, of the type ``gpu`` (or ``mig`` with ``mig_profile``), that meet the request. Claims ask for it by
    ``Backend.dra_claims(device_class=...)``, pods by ``extended_resource_name``.

    Attributes:
        name: Name of the class.
        extended_resource_name: As given.
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
        for field in _NOT_OF_A_CLASS:
            if getattr(request, field):
                raise GpuConstructsError(
                    f"request.{field} must be left out of a device class, which holds devices alone"
                )
        name = id if name is None else name
        _fields.dns_subdomain("name", name)
        if name in ("gpu.nvidia.com", "mig.nvidia.com"):
            raise GpuConstructsError(
                f"name must differ from the classes that the chart of NVIDIA's driver makes; got {name!r}"
            )
        if extended_resource_name is not None:
            _require_extended_resource(extended_resource_name, profile)
        _fields.labels("labels", labels or {})
        super().__init__(scope, id)
        self.name = name
        self.extended_resource_name = extended_resource_name
        spec = {
            "extendedResourceName": extended_resource_name,
            "selectors": [{"cel": {"expression": device_condition(request)}}],
        }
        metadata = {"name": name, "labels": dict(labels or {}) or None}
        Manifest(
            self,
            "Default",
            {"apiVersion": API_VERSION, "kind": "DeviceClass", "metadata": metadata, "spec": spec},
        )


def device_condition(request: GpuRequest) -> str:
    """Give the condition, as CEL, on devices of any driver that are GPUs of NVIDIA and meet a request."""
    kind = "mig" if request.mig_profile else "gpu"
    # Other drivers' devices lack the attributes, and a missing key is an error: the driver is asked for first.
    conditions = [f"device.driver == '{DRIVER}'", f"device.attributes['{DRIVER}'].type == '{kind}'"]
    wishes = cel_selector(request)
    return " && ".join([*conditions, *([wishes] if wishes else [])])


def _require_extended_resource(name: str, profile: GpuProfile) -> None:
    Backend.dra_extended_resource().require(profile.platform)
    _fields.labels("extended_resource_name", {name: ""})
    if not EXTENDED_RESOURCE.match(name):
        raise GpuConstructsError(
            "extended_resource_name must be a domain and a name, like 'nvidia.com/mig-1g.12gb', outside kubernetes.io; "
            f"got {name!r}"
        )
