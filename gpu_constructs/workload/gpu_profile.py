"""What the GPU workloads of a cluster have in common: the API that hands GPUs out, and where the GPUs are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, Literal

from gpu_constructs.catalog.platforms import DEFAULT_PLATFORM, Platform
from gpu_constructs.catalog.sharing import Sharing
from gpu_constructs.catalog.versions import KUBERNETES_RELEASES
from gpu_constructs.errors import GpuConstructsError, short_errors
from gpu_constructs.facts.provided import Provided
from gpu_constructs.kube import fields, references
from gpu_constructs.kube.placement import Toleration
from gpu_constructs.kube.references import NamedObject

_FIRST_WITH_EXTENDED_RESOURCES = "1.36"


@dataclass(frozen=True, kw_only=True)
class Backend(fields.Options):
    """``Backend.device_plugin()``, ``Backend.dra_claims(...)`` or ``Backend.dra_extended_resource()``.

    Attributes:
        kind: ``device-plugin``, ``dra-claims`` or ``dra-extended-resource``.
        device_class: The DeviceClass of whole GPUs, for claims.
        mig_device_class: The DeviceClass of MIG devices, for claims.
    """

    kind: Literal["device-plugin", "dra-claims", "dra-extended-resource"]
    device_class: str = "gpu.nvidia.com"
    mig_device_class: str = "mig.nvidia.com"

    _CHECKS: ClassVar[fields.Checks] = dict.fromkeys(("device_class", "mig_device_class"), fields.dns_subdomain)

    @classmethod
    @short_errors
    def device_plugin(cls) -> Backend:
        """Ask for an extended resource that NVIDIA's device plugin advertises: ``limits: {nvidia.com/gpu: 1}``."""
        return cls(kind="device-plugin")

    @classmethod
    @short_errors
    def dra_claims(cls, *, device_class: str = "gpu.nvidia.com", mig_device_class: str = "mig.nvidia.com") -> Backend:
        """Ask by claims of ``resource.k8s.io/v1``, which NVIDIA's DRA driver serves; Kubernetes 1.34 and later.

        Each workload gets a ResourceClaimTemplate, from which Kubernetes makes a claim for every pod. Which GPU it may
        be is said to the scheduler by CEL expressions on the device, rather than by labels of the node. Pods name no
        runtime class: devices come by CDI.

        Args:
            device_class: The DeviceClass of whole GPUs; by default the one that the driver's chart brings.
            mig_device_class: The DeviceClass of MIG devices; likewise.

        Source:
            kubernetes-sigs/dra-driver-nvidia-gpu@v0.4.0:deployments/helm
        """
        return cls(kind="dra-claims", device_class=device_class, mig_device_class=mig_device_class)

    @classmethod
    @short_errors
    def dra_extended_resource(cls) -> Backend:
        """Ask for an extended resource that the scheduler turns into a claim; Kubernetes 1.36 and later.

        A DeviceClass with ``extendedResourceName: nvidia.com/gpu`` must be there, as the driver's chart makes it.
        Manifests stay as for the device plugin but for the runtime class.

        Source:
            kubernetes/enhancements, KEP-5004 (beta in 1.36)
        """
        return cls(kind="dra-extended-resource")

    @property
    def is_dra(self) -> bool:
        """Whether a DRA driver hands devices out, by CDI, rather than the device plugin."""
        return self.kind != "device-plugin"

    def require(self, platform: Platform) -> None:
        """Raise unless a platform has the API.

        Raises:
            GpuConstructsError: With the releases that have it.
        """
        if not self.is_dra:
            return
        why = platform.refusal_of("dra")
        if why:
            raise GpuConstructsError(
                f"backend {self.kind!r} does not go with platform {platform}: {why}; "
                "use Backend.device_plugin() there, or a newer release"
            )
        first = KUBERNETES_RELEASES.index(_FIRST_WITH_EXTENDED_RESOURCES)
        if self.kind == "dra-extended-resource" and KUBERNETES_RELEASES.index(platform.kubernetes) < first:
            raise GpuConstructsError(
                f"backend {self.kind!r} needs Kubernetes {_FIRST_WITH_EXTENDED_RESOURCES} or later, where the "
                f"scheduler turns extended resources into claims; got {platform}; use Backend.dra_claims()"
            )


@dataclass(frozen=True, kw_only=True)
class GpuProfile(fields.Options):
    """How pods of a cluster reach its GPUs: one profile for all its workloads, one switch for all of them.

    Attributes:
        platform: ``Talos("1.12")`` or ``Kubernetes()``: decides runtime class and node selector.
        sharing: Sharing that the device plugin was given. Decides the resource's name and which board names are
            selected; with it, requests that it would refuse fail here.
        mig_strategy: MIG strategy that the device plugin was given. None: not known; MIG devices then have names of
            their own, as under ``mixed``.
        tolerations: Taints of the GPU nodes, on top of ``nvidia.com/gpu``.
        node_selector: Node labels, on top of the platform's.
        runtime_class: Name or object. None: the platform decides.
        backend: ``Backend.device_plugin()``, ``Backend.dra_claims()`` or ``Backend.dra_extended_resource()``.

    Raises:
        GpuConstructsError: A backend that the platform does not have, or a member of another type.
    """

    platform: Platform = DEFAULT_PLATFORM
    sharing: Sharing | None = None
    mig_strategy: Literal["none", "single", "mixed"] | None = None
    tolerations: Sequence[Toleration] = ()
    node_selector: Mapping[str, str] = field(default_factory=dict)
    runtime_class: str | NamedObject | None = None
    backend: Backend = field(default_factory=Backend.device_plugin)

    _NAME: ClassVar[str] = "profile"
    _CHECKS: ClassVar[fields.Checks] = {
        "node_selector": fields.labels,
        "runtime_class": partial(references.name_of, kind="RuntimeClass"),
    }

    def _conflicts(self) -> Iterable[fields.Conflict]:
        self.backend.require(self.platform)
        return ()

    @property
    def assumes(self) -> Provided:
        """What a workload of it takes for granted, for ``synth`` to compare with the rest of the app."""
        sharing = None if self.backend.is_dra else self.sharing
        return Provided(is_workload=True, platform=self.platform, assumed_sharing=sharing)

    @property
    def has_mps(self) -> bool:
        """Whether GPUs are shared by MPS."""
        return self.sharing is not None and self.sharing.strategy == "mps"

    @property
    def runtime_class_name(self) -> str | None:
        """The runtime class of GPU pods; none where a DRA driver hands devices out, unless one was asked for."""
        if self.runtime_class is not None:
            return references.name_of("profile.runtime_class", self.runtime_class, "RuntimeClass")
        return None if self.backend.is_dra else self.platform.runtime_class

    def check_memory_of_mps(self, mounted: Collection[str]) -> None:
        """Raise if ``/dev/shm`` is mounted where GPUs are shared by MPS."""
        if self.has_mps and "/dev/shm" in mounted:
            raise GpuConstructsError(
                "shared_memory (or a volume at /dev/shm) must be left out where GPUs are shared by MPS: there the "
                "device plugin mounts the memory through which the pod reaches the MPS server"
            )


def profile_of(
    given: GpuProfile | None,
    platform: Platform,
    tolerations: Sequence[Toleration],
    node_selector: Mapping[str, str] | None,
    runtime_class: str | NamedObject | None,
) -> GpuProfile:
    """Return the profile of one workload: the cluster's, with what the workload adds.

    Raises:
        GpuConstructsError: A platform beside a profile, or names that Kubernetes would not take.
    """
    # By identity: whoever wrote a platform that equals the default meant it.
    if given is not None and platform is not DEFAULT_PLATFORM and platform != given.platform:
        raise GpuConstructsError(
            "platform and profile must not both be given; pass GpuProfile(platform=...) for both in one"
        )
    profile = given or GpuProfile(platform=platform)
    if tolerations or node_selector or runtime_class is not None:
        fields.labels("node_selector", node_selector or {})
        if runtime_class is not None:
            runtime_class = references.name_of("runtime_class", runtime_class, "RuntimeClass")
        profile = replace(
            profile,
            tolerations=(*profile.tolerations, *tolerations),
            node_selector={**profile.node_selector, **(node_selector or {})},
            runtime_class=runtime_class if runtime_class is not None else profile.runtime_class,
        )
    return profile
