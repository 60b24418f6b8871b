"""One claim on GPUs that several pods share."""

from __future__ import annotations

from collections.abc import Mapping

from constructs import Construct

from gpu_constructs import _fields
from gpu_constructs._construct import GpuObject, checked
from gpu_constructs._manifest import Manifest
from gpu_constructs._references import NamedObject
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.namespace import namespace_in
from gpu_constructs.workload.claim_sharing import ClaimSharing
from gpu_constructs.workload.gpu_allocation import allocation
from gpu_constructs.workload.gpu_profile import GpuProfile
from gpu_constructs.workload.gpu_request import GpuRequest
from gpu_constructs.workload.resource_claim import API_VERSION, CLAIM

_OF_A_CONTAINER = {
    "driver_capabilities": "the container that holds the GPU says what it needs of the driver",
    "vram": "the workload that holds the GPU says what it takes",
}


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
        if request.resource_claim is not None:
            raise GpuConstructsError("request.resource_claim must be left out: it names a claim, and this is one")
        for field, why in _OF_A_CONTAINER.items():
            if getattr(request, field):
                raise GpuConstructsError(f"request.{field} must be left out of a claim: {why}")
        name = id if name is None else name
        _fields.dns_subdomain("name", name)
        _fields.labels("labels", labels or {})
        spec = dict(allocation(request, profile).claim or {})
        if sharing is not None:
            config = sharing.to_manifest(of_mig_devices=request.mig_profile is not None)
            spec["devices"] = {**spec["devices"], "config": [{"requests": [CLAIM], **config}]}
        where = namespace_in(scope, namespace)
        super().__init__(scope, id)
        self.name = name
        self.namespace = where
        metadata = {"name": name, "namespace": self.namespace, "labels": dict(labels or {}) or None}
        Manifest(
            self,
            "Default",
            {"apiVersion": API_VERSION, "kind": "ResourceClaim", "metadata": metadata, "spec": spec},
        )
