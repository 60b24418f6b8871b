"""What a request for GPUs means in a cluster."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from gpu_constructs.catalog.gpu_models import known_board, product_label
from gpu_constructs.catalog.mig_profiles import MIG_PROFILES, mig_resource, require_mig_profile
from gpu_constructs.catalog.sharing import GPU
from gpu_constructs.errors import GpuConstructsError, warn
from gpu_constructs.kube import fields, placement, references
from gpu_constructs.workload.gpu_in_pod import CLAIM, GpuAllocation
from gpu_constructs.workload.gpu_profile import Backend, GpuProfile
from gpu_constructs.workload.gpu_request import FIRST_COMPUTE, MIG, SELECTING, GpuRequest

API_VERSION = "resource.k8s.io/v1"
DRIVER = "gpu.nvidia.com"
"""Name of NVIDIA's DRA driver, under which its devices have their attributes."""

_ATTRIBUTES = f"device.attributes['{DRIVER}']"
_CAPACITY = f"device.capacity['{DRIVER}']"
_CONDITIONS = {
    "mig_profile": f"{_ATTRIBUTES}.profile == '%s'",
    "products": "%s",
    # Missing where GPU and CPU share their memory, and a missing key is an error.
    "min_vram": f"'memory' in {_CAPACITY} && {_CAPACITY}.memory.compareTo(quantity('%s')) >= 0",
    "min_compute_capability": f"{_ATTRIBUTES}.cudaComputeCapability.compareTo(semver('%s.0')) >= 0",
    "family": f"{_ATTRIBUTES}.architecture.lowerAscii().replace(' ', '-') in [%s]",
}
"""Condition on a device behind each member of a request, as CEL.

Source:
    kubernetes-sigs/dra-driver-nvidia-gpu@v0.4.0:cmd/gpu-kubelet-plugin/deviceinfo.go
"""
_OF_THE_DEVICE_PLUGIN = re.compile(r"nvidia\.com/(gpu|gpu\.shared|mig-[a-z0-9]([-a-z0-9.]*[a-z0-9])?)\Z")


def allocation(request: GpuRequest, profile: GpuProfile) -> GpuAllocation:
    """Return what a request means under a profile.

    Raises:
        GpuConstructsError: The cluster would refuse the request, or never meet it.
    """
    return _by_claim(request, profile) if profile.backend.kind == "dra-claims" else _by_limit(request, profile)


def allocation_of(
    gpus: int | GpuRequest, profile: GpuProfile, *, called: str = "gpus", resource: str | None = None
) -> GpuAllocation:
    """Return what a request means under a profile, or a number of GPUs.

    Args:
        gpus: The request, or the number.
        profile: What the GPU workloads of the cluster have in common.
        called: Name of the keyword for the number, for errors.
        resource: Resource beside a number, of the keyword ``gpu_resource``.

    Raises:
        GpuConstructsError: The cluster would refuse the request, or never meet it.
    """
    if isinstance(gpus, GpuRequest):
        if resource is not None:
            raise GpuConstructsError(
                "gpu_resource and a GpuRequest must not both be given; pass GpuRequest(resource=...)"
            )
        return allocation(gpus, profile)
    try:
        return allocation(GpuRequest(count=gpus, resource=resource), profile)
    except GpuConstructsError as error:
        problem = error.problem.replace("request.count", called).replace("request.resource", "gpu_resource")
        raise GpuConstructsError(problem.replace("leave resource out", "leave gpu_resource out")) from None


def _by_claim(request: GpuRequest, profile: GpuProfile) -> GpuAllocation:
    if request.resource is not None:
        raise GpuConstructsError(
            f"request.resource must be left out with the backend 'dra-claims', got {request.resource!r}; a claim "
            "names a DeviceClass: Backend.dra_claims(device_class=...)"
        )
    if profile.sharing is not None and profile.sharing.strategy != "none":
        raise GpuConstructsError(
            f"profile.sharing {profile.sharing.strategy!r} is the device plugin's; under the backend 'dra-claims' "
            "pods share one claim: make a GpuResourceClaim and pass it as GpuRequest(resource_claim=...)"
        )
    existing = None
    if request.resource_claim is not None:
        existing = references.name_of("request.resource_claim", request.resource_claim, "ResourceClaim")
    return GpuAllocation(
        profile=profile,
        request=request,
        limits={},
        claim=None if existing else device_claim(request, profile.backend),
        existing_claim=existing,
        existing_claim_namespace=_namespace_of(request.resource_claim),
        node_selector=profile.node_selector,
    )


def _by_limit(request: GpuRequest, profile: GpuProfile) -> GpuAllocation:
    backend, sharing = profile.backend, profile.sharing
    if request.resource_claim is not None:
        raise GpuConstructsError(f"request.resource_claim needs the backend 'dra-claims'; got {backend.kind!r}")
    if backend.is_dra:
        request.refuse(
            f"must be left out with the backend {backend.kind!r}, whose devices no node label tells; make a "
            "GpuDeviceClass of that request and ask for its extended_resource_name: GpuRequest(resource=...)",
            *SELECTING,
        )
    resource = _resource(request, profile)
    is_refused = sharing is not None and sharing.fail_requests_greater_than_one and request.count > 1
    if is_refused and resource in _slots(profile):
        raise GpuConstructsError(
            f"request.count must be 1 where {resource} is shared with fail_requests_greater_than_one, got "
            f"{request.count}: slots are not GPUs, and several may be turns on the same one; ask for 1, or share with "
            "fail_requests_greater_than_one=False"
        )
    # Published by what the device plugin brings along; a DRA driver needs none of it.
    selector = {} if backend.is_dra else profile.platform.gpu_node_selector
    return GpuAllocation(
        profile=profile,
        request=request,
        limits={resource: _amount(request, resource, profile)},
        node_terms=node_terms(request, profile) if request.selects else (),
        node_selector={**selector, **profile.node_selector},
    )


def _amount(request: GpuRequest, resource: str, profile: GpuProfile) -> int:
    sharing = profile.sharing
    if sharing is None or sharing.vram_unit is None or resource not in _slots(profile):
        return request.count
    if profile.backend.is_dra:
        raise GpuConstructsError(
            "profile.sharing by vram_units is the device plugin's, and a DRA driver knows no slots; got the backend "
            f"{profile.backend.kind!r}; leave sharing out of the profile"
        )
    if profile.mig_strategy == "single":
        raise GpuConstructsError(
            "profile.mig_strategy must not be 'single' beside Sharing.vram_units, which counts one memory in each "
            "node; use 'mixed' where boards are divided"
        )
    if request.count != 1:
        raise GpuConstructsError(
            f"request.count must be 1 where {resource} is shared in units of {sharing.vram_unit}, got {request.count}: "
            "a pod gets the one GPU of its node, and as many units as vram says; pass GpuRequest(vram='8Gi') alone"
        )
    if request.vram is None:
        raise GpuConstructsError(
            f"request.vram is required where {resource} is shared in units of {sharing.vram_unit}, since it says how "
            "many are asked for; pass a GpuRequest(vram='8Gi')"
        )
    try:
        return sharing.units(request.vram)
    except GpuConstructsError as error:
        raise GpuConstructsError(f"request.{error.problem}") from None


def _namespace_of(claim: object) -> str | None:
    for holder in (claim, getattr(claim, "metadata", None)):
        found = getattr(holder, "namespace", None)
        if isinstance(found, str):
            return found
    return None


def _slots(profile: GpuProfile) -> set[str]:
    sharing = profile.sharing
    return set() if sharing is None else {sharing.resource_name(resource) for resource in sharing.resources}


def _resource(request: GpuRequest, profile: GpuProfile) -> str:
    """Return the resource that the pod asks for, which the cluster must advertise."""
    if profile.backend.is_dra and request.resource is not None:
        return request.resource
    _require_resource_of_device_plugin(request)
    wanted = request.resource or _mig_resource(request, profile)
    if wanted.startswith("nvidia.com/mig-") and profile.mig_strategy in ("none", "single"):
        raise GpuConstructsError(
            f"request.resource {wanted!r} needs a profile with mig_strategy 'mixed'; got {profile.mig_strategy!r}, "
            f"under which the device plugin advertises {GPU!r} only; leave resource out"
        )
    sharing = profile.sharing
    if sharing is None:
        return wanted
    shared = sharing.resource_name(wanted)
    if request.resource is None:
        return shared
    if wanted in sharing.resources and shared != wanted:
        raise GpuConstructsError(
            f"request.resource {wanted!r} is advertised as {shared!r}, since sharing has rename_by_default; leave "
            "resource out"
        )
    if wanted.endswith(".shared") and wanted not in _slots(profile):
        raise GpuConstructsError(
            f"request.resource {wanted!r} is advertised only by a sharing with rename_by_default; leave resource out, "
            f"or ask for {wanted.removesuffix('.shared')!r}"
        )
    return wanted


def _require_resource_of_device_plugin(request: GpuRequest) -> None:
    if request.resource is None:
        return
    if not _OF_THE_DEVICE_PLUGIN.match(request.resource):
        raise GpuConstructsError(
            "request.resource must be 'nvidia.com/gpu', 'nvidia.com/gpu.shared' or a MIG resource like "
            f"'nvidia.com/mig-1g.10gb'; got {request.resource!r}"
        )
    if request.resource.startswith(MIG):
        require_mig_profile("request.resource", request.resource.removeprefix(MIG).removesuffix(".shared"))


def _mig_resource(request: GpuRequest, profile: GpuProfile) -> str:
    """Return the resource of whole GPUs, or of the MIG devices asked for."""
    if request.mig_profile is None:
        return GPU
    if profile.mig_strategy == "none":
        raise GpuConstructsError(
            f"request.mig_profile {request.mig_profile!r} needs a profile with mig_strategy 'single' or 'mixed'; "
            "got 'none', under which the device plugin advertises whole GPUs only"
        )
    if profile.mig_strategy == "single" and not request.products:
        example = next((repr(board) for board, profiles in MIG_PROFILES.items() if request.mig_size in profiles), "...")
        raise GpuConstructsError(
            f"request.mig_profile {request.mig_profile!r} needs request.products under mig_strategy 'single', "
            f"where {GPU!r} may be a device of any profile and the label of a node's board tells which; add "
            f"products=[{example}], or leave mig_profile out where all devices are alike"
        )
    return GPU if profile.mig_strategy == "single" else mig_resource(request.mig_profile)


def node_terms(request: GpuRequest, profile: GpuProfile) -> list[list[dict[str, Any]]]:
    """Return the node selector terms that a request demands: one, or two for a capability amid a major number."""
    rules, least, families = [], request.compute_capability, request.families
    is_first = least is not None and least[1] > 0 and least in FIRST_COMPUTE.values()
    if request.products:
        rules.append(placement.label_is("nvidia.com/gpu.product", *_product_labels(request, profile)))
    if families and not is_first:
        rules.append(placement.label_is("nvidia.com/gpu.family", *families))
    if request.min_mib is not None:
        rules.append(placement.label_is_above("nvidia.com/gpu.memory", request.min_mib - 1))
    if is_first:
        return [[*rules, placement.label_is("nvidia.com/gpu.family", *_families_from(least, families))]]
    return [rules] if least is None else [[*rules, *term] for term in _capability_terms(*least)]


def _families_from(least: tuple[int, int] | None, families: tuple[str, ...]) -> list[str]:
    """Return the families whose boards all have a compute capability, of those asked for if any are."""
    later = [family for family, first in FIRST_COMPUTE.items() if least is not None and first >= least]
    return [family for family in later if not families or family in families]


def _capability_terms(major: int, minor: int) -> list[list[dict[str, Any]]]:
    """Return the alternatives: a greater major number, or the same with a minor number that is enough."""
    if minor == 0:
        return [[placement.label_is_above("nvidia.com/gpu.compute.major", major - 1)]]
    same = placement.label_is("nvidia.com/gpu.compute.major", str(major))
    return [
        [placement.label_is_above("nvidia.com/gpu.compute.major", major)],
        [same, placement.label_is_above("nvidia.com/gpu.compute.minor", minor - 1)],
    ]


def _product_labels(request: GpuRequest, profile: GpuProfile) -> list[str]:
    labels = [product_label(product) for product in request.products]
    if request.mig_profile is not None and profile.mig_strategy == "single":
        # NVIDIA/k8s-device-plugin@v0.20.0:internal/resource/nvml-mig-device.go names a device with a dot for the plus.
        labels = [f"{label}-MIG-{request.mig_profile.replace('+', '.')}" for label in labels]
    elif profile.mig_strategy == "single" and any(map(_may_be_divided, request.products)):
        warn(
            "request.products without request.mig_profile selects whole boards alone: under mig_strategy 'single' a "
            "node in MIG mode is labelled <board>-MIG-<profile>; add mig_profile, or leave mig_strategy out of the "
            "profile where whole boards are meant"
        )
    # What a node advertises as shared without a name of its own has that in its product's.
    is_shared = GPU in _slots(profile)
    forms: list[str] = []
    for label in dict.fromkeys(labels):
        own = [form for form in (label, f"{label}-SHARED") if fields.is_label_value(form)]
        if not own or (is_shared and len(own) < 2):
            missing = f"{label}-SHARED" if is_shared else label
            raise GpuConstructsError(
                f"request.products cannot select {missing!r}: nodes do not have the label, since its {len(missing)} "
                "characters are more than the 63 of a label value and Node Feature Discovery drops it; leave products "
                "out and select the nodes by a label of your own (profile.node_selector)"
            )
        forms += own
    return forms


def _may_be_divided(product: str) -> bool:
    board = known_board(product)
    # A label of a node in MIG mode is as good as a profile.
    return "-MIG-" not in product and (board is None or MIG_PROFILES.get(board.name) != ())


def cel_selector(request: GpuRequest) -> str | None:
    """Return the condition on a device that meets a request, as CEL; None where any GPU does."""
    wanted = {
        "mig_profile": request.mig_profile,
        "products": _names_one_of(request.products),
        "min_vram": request.min_vram,
        "min_compute_capability": request.min_compute_capability,
        "family": ", ".join(f"'{family}'" for family in request.families),
    }
    return " && ".join(_CONDITIONS[name] % value for name, value in wanted.items() if value) or None


def device_condition(request: GpuRequest) -> str:
    """Return the condition, as CEL, on devices of any driver that are GPUs of NVIDIA and meet a request."""
    kind = "mig" if request.mig_profile else "gpu"
    # Devices of other drivers lack the attributes, and a missing key is an error: so the driver stands first.
    conditions = (f"device.driver == '{DRIVER}'", f"{_ATTRIBUTES}.type == '{kind}'", cel_selector(request))
    return " && ".join(condition for condition in conditions if condition)


def _names_one_of(products: Sequence[str]) -> str:
    boards = {product: known_board(product) for product in products}
    known = list(dict.fromkeys(_quoted(model.name) for model in boards.values() if model is not None))
    # The driver writes the name with blanks, a label has dashes: either spelling may have been given.
    others = [_quoted("-".join(one.removesuffix("-SHARED").split())) for one, model in boards.items() if model is None]
    name = f"{_ATTRIBUTES}.productName"
    tests = [
        f"{called} == {names[0]}" if len(names) == 1 else f"{called} in [{', '.join(names)}]"
        for called, names in ((name, known), (f"{name}.replace(' ', '-')", list(dict.fromkeys(others))))
        if names
    ]
    return f"({' || '.join(tests)})" if len(tests) > 1 else "".join(tests)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def device_claim(request: GpuRequest, backend: Backend) -> dict[str, Any]:
    """Return the spec of a ResourceClaim that meets a request."""
    condition = cel_selector(request)
    return {
        "devices": {
            "requests": [
                {
                    "name": CLAIM,
                    "exactly": {
                        "deviceClassName": backend.mig_device_class if request.mig_profile else backend.device_class,
                        "allocationMode": "ExactCount",
                        "count": request.count,
                        "selectors": [{"cel": {"expression": condition}}] if condition else None,
                    },
                }
            ]
        }
    }


def resource_claim_template(metadata: Mapping[str, Any], claim: Mapping[str, Any]) -> dict[str, Any]:
    """Return the ResourceClaimTemplate of which each pod gets a claim of its own."""
    return {
        "apiVersion": API_VERSION,
        "kind": "ResourceClaimTemplate",
        "metadata": metadata,
        "spec": {"spec": claim},
    }
