"""What a cluster's GPU workloads have in common, said once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal

from gpu_constructs import _fields, _references
from gpu_constructs._references import NamedObject
from gpu_constructs.errors import GpuConstructsError, ShortErrors
from gpu_constructs.placement import Toleration
from gpu_constructs.platforms import DEFAULT_PLATFORM, Platform
from gpu_constructs.provided import Provided
from gpu_constructs.sharing import Sharing
from gpu_constructs.workload.backend import Backend


@dataclass(frozen=True, kw_only=True)
class GpuProfile(metaclass=ShortErrors):
    """How pods of a cluster reach its GPUs: one profile for all its workloads, one switch for all of them.

    Attributes:
        platform: ``Talos("1.12")`` or ``Kubernetes()``: decides runtime class and node selector.
        sharing: As the device plugin was given it. Decides the resource's name and which board names are selected;
            with it, requests that it would refuse fail here.
        mig_strategy: As the device plugin was given it. None: not known; MIG devices then have names of their own, as
            under ``mixed``.
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

    def __post_init__(self) -> None:
        _fields.members(self, "profile")
        _fields.labels("profile.node_selector", self.node_selector)
        if self.runtime_class is not None:
            _references.name_of("profile.runtime_class", self.runtime_class, "RuntimeClass")
        self.backend.require(self.platform)

    @property
    def assumes(self) -> Provided:
        """What a workload of it takes for granted, for ``synth`` to compare with the rest of the app."""
        sharing = None if self.backend.is_dra else self.sharing
        return Provided(is_workload=True, platform=self.platform, assumed_sharing=sharing)

    @property
    def runtime_class_name(self) -> str | None:
        """The runtime class of GPU pods; none where a DRA driver hands devices out, unless one was asked for."""
        if self.runtime_class is not None:
            return _references.name_of("profile.runtime_class", self.runtime_class, "RuntimeClass")
        return None if self.backend.is_dra else self.platform.runtime_class


def profile_of(
    given: GpuProfile | None,
    platform: Platform,
    tolerations: Sequence[Toleration],
    node_selector: Mapping[str, str] | None,
    runtime_class: str | NamedObject | None,
) -> GpuProfile:
    """Give the profile of one workload: the cluster's, with what the workload adds.

    Raises:
        GpuConstructsError: A platform beside a profile, or names that Kubernetes would not take.
    """
    # By identity: whoever wrote a platform that equals the default meant it.
    if given is not None and platform is not DEFAULT_PLATFORM and platform != given.platform:
        raise GpuConstructsError(
            "platform and profile must not both be given; pass GpuProfile(platform=...) for both in one"
        )
    profile = given or _of_platform(platform)
    if tolerations or node_selector or runtime_class is not None:
        _fields.labels("node_selector", node_selector or {})
        if runtime_class is not None:
            runtime_class = _references.name_of("runtime_class", runtime_class, "RuntimeClass")
        profile = replace(
            profile,
            tolerations=(*profile.tolerations, *tolerations),
            node_selector={**profile.node_selector, **(node_selector or {})},
            runtime_class=runtime_class if runtime_class is not None else profile.runtime_class,
        )
    return profile


@lru_cache(maxsize=64)
def _of_platform(platform: Platform) -> GpuProfile:
    return GpuProfile(platform=platform)
