"""`GpuProfile`: the settings that all GPU workloads of a cluster share, such as the API that allocates GPUs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
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
from gpu_constructs.records import dataclass, field, replace

_FIRST_WITH_EXTENDED_RESOURCES = "1.36"


@dataclass(frozen=True, kw_only=True)
class Backend(fields.Options):
    """The API through which pods get GPUs.

    Create it with ``Backend.device_plugin()``, ``Backend.dra_claims(...)`` or ``Backend.dra_extended_resource()``.

    Attributes:
        kind: Kind of the backend: ``device-plugin``, ``dra-claims`` or ``dra-extended-resource``.
        device_class: Name of the DeviceClass for whole GPUs. Only claims use it.
        mig_device_class: Name of the DeviceClass for MIG devices. Only claims use it.
    """

    kind: Literal["device-plugin", "dra-claims", "dra-extended-resource"]
    device_class: str = "gpu.nvidia.com"
    mig_device_class: str = "mig.nvidia.com"

    _CHECKS: ClassVar[fields.Checks] = dict.fromkeys(("device_class", "mig_device_class"), fields.dns_subdomain)

    @classmethod
    @short_errors
    def device_plugin(cls) -> Backend:
        """Return a backend in which pods request the extended resource of the device plugin.

        An example is ``limits: {nvidia.com/gpu: 1}``.
        """
        return cls(kind="device-plugin")

    @classmethod
    @short_errors
    def dra_claims(cls, *, device_class: str = "gpu.nvidia.com", mig_device_class: str = "mig.nvidia.com") -> Backend:
        """Return a backend in which pods use resource claims (``resource.k8s.io/v1``).

        It needs Kubernetes 1.34 or later. NVIDIA's DRA driver serves the claims. Each workload gets a
        ResourceClaimTemplate, from which Kubernetes creates a claim for each pod. CEL expressions in the claim select
        the GPU, so no node labels are necessary. The pods need no runtime class, because the driver passes devices by
        CDI.

        Args:
            device_class: Name of the DeviceClass for whole GPUs. The Helm chart of the DRA driver creates
                ``gpu.nvidia.com``.
            mig_device_class: Name of the DeviceClass for MIG devices. The Helm chart of the DRA driver creates
                ``mig.nvidia.com``.

        Source:
            kubernetes-sigs/dra-driver-nvidia-gpu@v0.4.0:deployments/helm
        """
        return cls(kind="dra-claims", device_class=device_class, mig_device_class=mig_device_class)

    @classmethod
    @short_errors
    def dra_extended_resource(cls) -> Backend:
        """Return a backend in which pods request an extended resource, and the scheduler creates the claims for it.

        It needs Kubernetes 1.36 or later. The cluster also needs a DeviceClass with ``extendedResourceName:
        nvidia.com/gpu``. The Helm chart of NVIDIA's DRA driver creates this DeviceClass. The manifests are the same as
        for the device plugin, but they set no runtime class.

        Source:
            kubernetes/enhancements, KEP-5004 (beta in 1.36)
        """
        return cls(kind="dra-extended-resource")

    @property
    def is_dra(self) -> bool:
        """Whether a DRA driver allocates the GPUs. Otherwise the device plugin allocates them."""
        return self.kind != "device-plugin"

    def require(self, platform: Platform) -> None:
        """Raise an error unless the platform's Kubernetes release has the API of this backend.

        Raises:
            GpuConstructsError: The Kubernetes release is too old. The message names the first release with the API.
        """
        if not self.is_dra:
            return
        why = platform.refusal_of("dra")
        if why:
            raise GpuConstructsError(
                f"backend {self.kind!r} is not available on {platform}: {why}. "
                "Use Backend.device_plugin(), or a newer release of the platform"
            )
        first = KUBERNETES_RELEASES.index(_FIRST_WITH_EXTENDED_RESOURCES)
        if self.kind == "dra-extended-resource" and KUBERNETES_RELEASES.index(platform.kubernetes) < first:
            raise GpuConstructsError(
                f"backend {self.kind!r} needs Kubernetes {_FIRST_WITH_EXTENDED_RESOURCES} or later, where the "
                f"scheduler turns extended resources into claims, got {platform}. Use Backend.dra_claims()"
            )


@dataclass(frozen=True, kw_only=True)
class GpuProfile(fields.Options):
    """The settings that all GPU workloads of a cluster share.

    Attributes:
        platform: Platform of the cluster, ``Talos("1.12")`` or ``Kubernetes()``. It decides the runtime class and the
            node selector.
        sharing: Sharing that the device plugin uses. It determines the name of the extended resource, for example
            ``nvidia.com/gpu.shared``, and the product label that pods select. The library rejects a GPU request that
            the device plugin would reject.
        mig_strategy: MIG strategy that the device plugin uses. None: unknown. MIG devices then have their own resource
            names, as with ``mixed``.
        tolerations: Taints of the GPU nodes to tolerate, besides ``nvidia.com/gpu``.
        node_selector: Node labels to select, besides those of the platform.
        runtime_class: Name or object of a RuntimeClass. None: the runtime class of the platform.
        backend: API that allocates GPUs: ``Backend.device_plugin()``, ``Backend.dra_claims()`` or
            ``Backend.dra_extended_resource()``.

    Raises:
        GpuConstructsError: The platform does not support the backend, or a value has the wrong type.
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
        """The platform and the sharing of GPUs that a workload with this profile expects.

        ``synth`` reports a problem if another construct of the app has another platform or another sharing.
        """
        sharing = None if self.backend.is_dra else self.sharing
        return Provided(is_workload=True, platform=self.platform, assumed_sharing=sharing)

    @property
    def has_mps(self) -> bool:
        """Whether pods share GPUs through MPS."""
        return self.sharing is not None and self.sharing.strategy == "mps"

    @property
    def runtime_class_name(self) -> str | None:
        """Name of the RuntimeClass of GPU pods: the one that the user sets, otherwise the one of the platform.

        If the user sets none, the value is None for a DRA driver, and for a platform without a RuntimeClass.
        """
        if self.runtime_class is not None:
            return references.name_of("profile.runtime_class", self.runtime_class, "RuntimeClass")
        return None if self.backend.is_dra else self.platform.runtime_class

    def check_memory_of_mps(self, mounted: Collection[str]) -> None:
        """Raise an error if a pod with MPS mounts a volume at ``/dev/shm``, where MPS mounts its own memory.

        ``mounted`` contains the paths at which the pod mounts volumes.
        """
        if self.has_mps and "/dev/shm" in mounted:
            raise GpuConstructsError(
                "shared_memory (or a volume at /dev/shm) must be absent with MPS, because the device plugin mounts the "
                "memory of the MPS server there"
            )


def profile_of(
    given: GpuProfile | None,
    platform: Platform,
    tolerations: Sequence[Toleration],
    node_selector: Mapping[str, str] | None,
    runtime_class: str | NamedObject | None,
) -> GpuProfile:
    """Return the profile of one workload: the profile of the cluster plus the options of the workload.

    Args:
        given: Profile of the cluster, which the user passes as ``profile``. None: a profile with only ``platform``.
        platform: Platform that the user passes besides the profile. If ``given`` is not None, this must be the default
            platform or the platform of ``given``.
        tolerations: Tolerations of the workload, besides those of the profile.
        node_selector: Node labels that the workload selects, besides those of the profile. None: no further labels.
        runtime_class: RuntimeClass of the workload, in place of that of the profile. None: that of the profile.

    Raises:
        GpuConstructsError: The platform differs from that of the profile, or Kubernetes would reject a name.
    """
    # Compare by identity: if a user passes a platform that equals the default, it counts as set.
    if given is not None and platform is not DEFAULT_PLATFORM and platform != given.platform:
        raise GpuConstructsError("platform and profile must not both have a value. Use GpuProfile(platform=...)")
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
