"""Translation of a GPU request into Kubernetes fields: a resource limit with node selection, or a resource claim."""

from __future__ import annotations

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
"""Name of NVIDIA's DRA driver. It is also the domain of the attributes of the driver's devices."""

_ATTRIBUTES = f"device.attributes['{DRIVER}']"
_CAPACITY = f"device.capacity['{DRIVER}']"
_CONDITIONS = {
    "mig_profile": f"{_ATTRIBUTES}.profile == '%s'",
    "products": "%s",
    # A device that shares the memory of the CPU has no memory entry. CEL fails if it reads a missing key.
    "min_vram": f"'memory' in {_CAPACITY} && {_CAPACITY}.memory.compareTo(quantity('%s')) >= 0",
    "min_compute_capability": f"{_ATTRIBUTES}.cudaComputeCapability.compareTo(semver('%s.0')) >= 0",
    "family": f"{_ATTRIBUTES}.architecture.lowerAscii().replace(' ', '-') in [%s]",
}
"""CEL condition that a device must satisfy, for each attribute of a ``GpuRequest``.

Source:
    kubernetes-sigs/dra-driver-nvidia-gpu@v0.4.0:cmd/gpu-kubelet-plugin/deviceinfo.go
"""
_OF_THE_DEVICE_PLUGIN = fields.regex(r"nvidia\.com/(gpu|gpu\.shared|mig-[a-z0-9]([-a-z0-9.]*[a-z0-9])?)\Z")


def allocation(request: GpuRequest, profile: GpuProfile) -> GpuAllocation:
    """Return the fields of a pod (``GpuAllocation``) for a GPU request, in a cluster with the given profile.

    Raises:
        GpuConstructsError: The cluster would reject the request, or could never satisfy it.
    """
    return _by_claim(request, profile) if profile.backend.kind == "dra-claims" else _by_limit(request, profile)


def allocation_of(
    gpus: int | GpuRequest, profile: GpuProfile, *, called: str = "gpus", resource: str | None = None
) -> GpuAllocation:
    """Return the Kubernetes fields for the value of a keyword such as ``gpus``, in a cluster with the given profile.

    Args:
        gpus: GPU request, or number of GPUs.
        profile: Settings that all GPU workloads of the cluster share.
        called: Name of the keyword that contains ``gpus``, for error messages.
        resource: Value of the keyword ``gpu_resource``. It must be None if ``gpus`` is a ``GpuRequest``.

    Raises:
        GpuConstructsError: The cluster would reject the request, or could never satisfy it.
    """
    if isinstance(gpus, GpuRequest):
        if resource is not None:
            raise GpuConstructsError(
                "gpu_resource and a GpuRequest must not both have a value. Pass GpuRequest(resource=...)"
            )
        return allocation(gpus, profile)
    try:
        return allocation(GpuRequest(count=gpus, resource=resource), profile)
    except GpuConstructsError as error:
        problem = error.problem.replace("request.count", called).replace("request.resource", "gpu_resource")
        raise GpuConstructsError(problem.replace("Remove resource", "Remove gpu_resource")) from None


def _by_claim(request: GpuRequest, profile: GpuProfile) -> GpuAllocation:
    if request.resource is not None:
        raise GpuConstructsError(
            f"request.resource must be absent with the backend 'dra-claims', got {request.resource!r}. Set "
            "Backend.dra_claims(device_class=...)"
        )
    if profile.sharing is not None and profile.sharing.strategy != "none":
        raise GpuConstructsError(
            f"profile.sharing must be absent with the backend 'dra-claims', got {profile.sharing.strategy!r}. To share "
            "a claim, create a GpuResourceClaim and set GpuRequest(resource_claim=...)"
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
        raise GpuConstructsError(f"request.resource_claim needs the backend 'dra-claims', got {backend.kind!r}")
    if backend.is_dra:
        request.refuse(
            f"must be absent with the backend {backend.kind!r}, whose devices have no node labels. Create a "
            "GpuDeviceClass that selects these GPUs, and pass its extended_resource_name as GpuRequest(resource=...)",
            *SELECTING,
        )
    resource = _resource(request, profile)
    is_refused = sharing is not None and sharing.fail_requests_greater_than_one and request.count > 1
    if is_refused and resource in _slots(profile):
        raise GpuConstructsError(
            f"request.count must be 1 if sharing of {resource} has fail_requests_greater_than_one, got "
            f"{request.count}: several slots can belong to the same GPU. Request 1, or share with "
            "fail_requests_greater_than_one=False"
        )
    # GPU Feature Discovery publishes these labels. Workloads with a DRA driver need none of them.
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
            "profile.sharing by vram_units needs the device plugin, got the backend "
            f"{profile.backend.kind!r}. Remove sharing from the profile"
        )
    if profile.mig_strategy == "single":
        raise GpuConstructsError(
            "profile.mig_strategy must not be 'single' with Sharing.vram_units, because MIG devices differ in memory. "
            "Use 'mixed'"
        )
    if request.count != 1:
        raise GpuConstructsError(
            f"request.count must be 1 if slots of {resource} stand for {sharing.vram_unit} of memory, got "
            f"{request.count}: vram decides the number of slots. Set only GpuRequest(vram='8Gi')"
        )
    if request.vram is None:
        raise GpuConstructsError(
            f"request.vram must have a value if slots of {resource} stand for {sharing.vram_unit} of memory, because "
            "vram decides the number of slots. Set gpus=GpuRequest(vram='8Gi')"
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
    """Return the name of the extended resource that the pods request. Raise an error if no node would advertise it."""
    if profile.backend.is_dra and request.resource is not None:
        return request.resource
    _require_resource_of_device_plugin(request)
    wanted = request.resource or _mig_resource(request, profile)
    if wanted.startswith("nvidia.com/mig-") and profile.mig_strategy in ("none", "single"):
        raise GpuConstructsError(
            f"request.resource {wanted!r} needs a profile with mig_strategy 'mixed', got {profile.mig_strategy!r}. "
            f"With this strategy, the device plugin advertises {GPU!r} only. Remove resource"
        )
    sharing = profile.sharing
    if sharing is None:
        return wanted
    shared = sharing.resource_name(wanted)
    if request.resource is None:
        return shared
    if wanted in sharing.resources and shared != wanted:
        raise GpuConstructsError(
            f"request.resource must be {shared!r}, because sharing has rename_by_default, got {wanted!r}. Remove "
            "resource"
        )
    if wanted.endswith(".shared") and wanted not in _slots(profile):
        raise GpuConstructsError(
            f"request.resource {wanted!r} exists only if profile.sharing has rename_by_default=True. Remove resource, "
            f"or set {wanted.removesuffix('.shared')!r}"
        )
    return wanted


def _require_resource_of_device_plugin(request: GpuRequest) -> None:
    if request.resource is None:
        return
    if not _OF_THE_DEVICE_PLUGIN.match(request.resource):
        raise GpuConstructsError(
            f"request.resource must be {GPU!r}, '{GPU}.shared' or a MIG resource such as 'nvidia.com/mig-1g.10gb', "
            f"got {request.resource!r}"
        )
    if request.resource.startswith(MIG):
        require_mig_profile("request.resource", request.resource.removeprefix(MIG).removesuffix(".shared"))


def _mig_resource(request: GpuRequest, profile: GpuProfile) -> str:
    """Return the name of the extended resource that a request without ``resource`` uses.

    This is the resource of whole GPUs if the request has no MIG profile, or if the MIG strategy is ``single``.
    Otherwise, it is the resource of the MIG profile.
    """
    if request.mig_profile is None:
        return GPU
    if profile.mig_strategy == "none":
        raise GpuConstructsError(
            f"request.mig_profile {request.mig_profile!r} needs a profile with mig_strategy 'single' or 'mixed', "
            "got 'none'. With this strategy, the device plugin advertises whole GPUs only"
        )
    if profile.mig_strategy == "single" and not request.products:
        example = next((repr(board) for board, profiles in MIG_PROFILES.items() if request.mig_size in profiles), "...")
        raise GpuConstructsError(
            f"request.mig_profile {request.mig_profile!r} also needs request.products with mig_strategy 'single', "
            f"because {GPU!r} is then a MIG device of any profile. Add "
            f"products=[{example}], or remove mig_profile if all devices are alike"
        )
    return GPU if profile.mig_strategy == "single" else mig_resource(request.mig_profile)


def node_terms(request: GpuRequest, profile: GpuProfile) -> list[list[dict[str, Any]]]:
    """Return the match expressions on node labels for a request, as alternative lists.

    A node must match all expressions of one list. For a compute capability such as 8.9, there are two lists: one for a
    greater major number, and one for the same major number and a high enough minor number.
    """
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
    """Return the GPU families whose boards all have at least the given compute capability.

    Args:
        least: Compute capability as two numbers. None: the result is empty.
        families: Requested families. Empty: all families that the library knows.
    """
    later = [family for family, first in FIRST_COMPUTE.items() if least is not None and first >= least]
    return [family for family in later if not families or family in families]


def _capability_terms(major: int, minor: int) -> list[list[dict[str, Any]]]:
    """Return match expressions on node labels for GPUs with at least a given compute capability, such as 8.9.

    The result contains alternative lists, and a node must match all expressions of one list. One list requires a
    greater major number. The other list requires the same major number and a high enough minor number. If ``minor`` is
    0, one list is enough.
    """
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
        # In the product label, a dot replaces the plus of the profile:
        # NVIDIA/k8s-device-plugin@v0.20.0:internal/resource/nvml-mig-device.go.
        labels = [f"{label}-MIG-{request.mig_profile.replace('+', '.')}" for label in labels]
    elif profile.mig_strategy == "single" and any(map(_may_be_divided, request.products)):
        warn(
            "request.products without request.mig_profile selects only whole boards: with mig_strategy 'single', a "
            "node in MIG mode has the label <board>-MIG-<MIG profile>. To select MIG devices, add "
            "request.mig_profile. To select whole boards, remove mig_strategy from the GpuProfile"
        )
    # If sharing keeps the name of the resource, GPU Feature Discovery appends -SHARED to the product label.
    is_shared = GPU in _slots(profile)
    forms: list[str] = []
    for label in dict.fromkeys(labels):
        own = [form for form in (label, f"{label}-SHARED") if fields.is_label_value(form)]
        if not own or (is_shared and len(own) < 2):
            missing = f"{label}-SHARED" if is_shared else label
            raise GpuConstructsError(
                f"request.products cannot select {missing!r}: nodes do not have the label, because its {len(missing)} "
                "characters exceed the limit of 63. Remove products, and select the nodes by your own label "
                "(profile.node_selector)"
            )
        forms += own
    return forms


def _may_be_divided(product: str) -> bool:
    board = known_board(product)
    # The user can also write the product label of a node in MIG mode, which already contains the profile.
    return "-MIG-" not in product and (board is None or MIG_PROFILES.get(board.name) != ())


def cel_selector(request: GpuRequest) -> str | None:
    """Return a CEL condition for the GPU properties of a request. Return None if the request has no such property.

    Use the condition only for devices of NVIDIA's DRA driver. ``device_condition`` also checks the driver.
    """
    wanted = {
        "mig_profile": request.mig_profile,
        "products": _names_one_of(request.products),
        "min_vram": request.min_vram,
        "min_compute_capability": request.min_compute_capability,
        "family": ", ".join(f"'{family}'" for family in request.families),
    }
    return " && ".join(_CONDITIONS[name] % value for name, value in wanted.items() if value) or None


def device_condition(request: GpuRequest) -> str:
    """Return a CEL condition for the driver of a device, its type (GPU or MIG device), and the requested properties.

    The condition is false for any device of another driver.
    """
    kind = "mig" if request.mig_profile else "gpu"
    # The condition on the driver must be first: devices of other drivers lack the attributes, and CEL fails for a
    # missing key.
    conditions = (f"device.driver == '{DRIVER}'", f"{_ATTRIBUTES}.type == '{kind}'", cel_selector(request))
    return " && ".join(condition for condition in conditions if condition)


def _names_one_of(products: Sequence[str]) -> str:
    boards = {product: known_board(product) for product in products}
    known = list(dict.fromkeys(_quoted(model.name) for model in boards.values() if model is not None))
    # The driver writes board names with blanks, and node labels contain dashes. Users write either form.
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
    """Return the ``spec`` of a ResourceClaim that requests the GPUs."""
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
    """Return the ResourceClaimTemplate from which Kubernetes creates a claim for each pod."""
    return {
        "apiVersion": API_VERSION,
        "kind": "ResourceClaimTemplate",
        "metadata": metadata,
        "spec": {"spec": claim},
    }
