"""`GpuRequest`: the number, the boards and the memory of the GPUs that a pod requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import ClassVar, Literal

from gpu_constructs.catalog.gpu_models import GpuModel, doubt_of, is_full_name, known_board, product_label
from gpu_constructs.catalog.mig_profiles import MIG_PROFILES, memory_gb, require_mig_profile, size_of
from gpu_constructs.errors import GpuConstructsError, refuse_if, warn
from gpu_constructs.kube import fields
from gpu_constructs.kube.annotations import VRAM, VRAM_TYPICAL
from gpu_constructs.kube.references import NamedObject
from gpu_constructs.records import dataclass, regex

DriverCapability = Literal["compute", "compat32", "graphics", "utility", "video", "display", "ngx", "all"]
Family = Literal["maxwell", "pascal", "volta", "turing", "ampere", "ada-lovelace", "hopper", "blackwell", "rubin"]

FIRST_COMPUTE: Mapping[Family, tuple[int, int]] = {
    "maxwell": (5, 0),
    "pascal": (6, 0),
    "volta": (7, 0),
    "turing": (7, 5),
    "ampere": (8, 0),
    "ada-lovelace": (8, 9),
    "hopper": (9, 0),
    "blackwell": (10, 0),
    "rubin": (13, 0),
}
"""Lowest CUDA compute capability of each GPU family. GPU Feature Discovery uses the same family names."""

EXTENDED_RESOURCE = regex(r"(?!requests\.|(?:[^/]*\.)?kubernetes\.io/)[^/]+/[^/]+\Z")
"""Pattern of the names of extended resources. The API server also applies its rules for label keys."""

SELECTING = ("products", "min_vram", "min_compute_capability", "family")
"""Attributes of a ``GpuRequest`` that select GPUs by a property of the board."""

MIG = "nvidia.com/mig-"
_COMPUTE_CAPABILITY = regex(r"([0-9]{1,2})\.([0-9])\Z")


@dataclass(frozen=True, kw_only=True)
class GpuRequest(fields.Options):
    """The GPUs that one container of a pod requests.

    With the device plugin as the backend, a request becomes a limit of an extended resource and a node affinity. With
    claims as the backend, it becomes a resource claim with CEL selectors. A GPU must have all requested properties.

    Attributes:
        count: Number of whole GPUs, slots of shared GPUs, or MIG devices for each pod. 1 by default. With
            ``Sharing.vram_units`` it must be 1, because then ``vram`` determines the number of slots.
        resource: Name of the extended resource: ``nvidia.com/gpu``, ``nvidia.com/gpu.shared`` or a MIG resource. With
            ``Backend.dra_extended_resource()`` it can be the resource of any DeviceClass. None: the resource that
            results from the sharing and the MIG strategy of the ``GpuProfile``.
        mig_profile: MIG profile such as ``1g.10gb``. Do not set ``resource`` too. With the MIG strategy ``single``,
            also set ``products``: the request then selects nodes by a product label that contains the board and the
            profile.
        products: Names of boards. The request accepts each of these boards. Write a name as in ``nvidia-smi`` (``NVIDIA
            GeForce RTX 5070 Ti``) or as in the node label ``nvidia.com/gpu.product``. The request also selects nodes
            whose label is the name of the board plus ``-SHARED``. For boards that the library knows, you can omit the
            prefix ``NVIDIA`` and use lower case. Other names must be exact.
        min_vram: Lowest amount of memory that a GPU may have, as a quantity (``12Gi``). A board reports less than its
            name suggests: a "16 GB" RTX 5070 Ti has 16303 MiB. A GPU without its own memory never matches, because its
            node has no memory label.
        min_compute_capability: Lowest CUDA compute capability that a GPU may have, such as ``8.9``.
        family: GPU architecture, or several of them. The values are those of the node label ``nvidia.com/gpu.family``.
        driver_capabilities: Driver capabilities that the container needs besides ``compute`` and ``utility``. Video
            encoding needs ``video``; OpenGL and Vulkan need ``graphics``. The container gets these capabilities,
            ``compute`` and ``utility`` in the variable ``NVIDIA_DRIVER_CAPABILITIES``. Empty: the value of this
            variable in the image or, if the image has none, ``utility,compute``. With DRA, the library does not set the
            variable, because devices have all capabilities.
        vram: Memory budget of a pod on each of its GPUs, as a quantity. All containers of the pod share this budget,
            which Kubernetes does not enforce. Rules and capacity plans read the budget in the annotation
            ``gpu-constructs/vram``. With ``Sharing.vram_units``, the budget determines the number of slots, so always
            set it.
        vram_typical: Memory that a pod uses most of the time, at most ``vram``. The annotation
            ``gpu-constructs/vram-typical`` contains it for capacity plans. None: the value of ``vram``.
        resource_claim: Name or object of an existing ResourceClaim that several pods share. Only for
            ``Backend.dra_claims()``. The claim selects the GPUs, so do not set any other attribute.

    Raises:
        GpuConstructsError: A number is below 1 or not whole, a resource or MIG profile does not exist, or a value is
            not a quantity. Also raised if no board has all requested properties.

    Source:
        NVIDIA/k8s-device-plugin@v0.20.0:internal/lm/resource.go; Kubernetes documentation, "Schedule GPUs"
    """

    count: int = 1
    resource: str | None = None
    mig_profile: str | None = None
    products: Sequence[str] = ()
    min_vram: str | None = None
    min_compute_capability: str | None = None
    family: Family | Sequence[Family] | None = None
    driver_capabilities: Sequence[DriverCapability] = ()
    vram: str | None = None
    vram_typical: str | None = None
    resource_claim: str | NamedObject | None = None

    _NAME: ClassVar[str] = "request"
    _CHECKS: ClassVar[fields.Checks] = {
        "mig_profile": require_mig_profile,
        "products": lambda name, products: fields.each(_check_name, name, products),
        "min_vram": fields.size,
        "vram": fields.size,
        "vram_typical": fields.size,
    }
    # In a resource name, a dot replaces the plus of a MIG profile. Users write either form.
    _KEPT: ClassVar[fields.Kept] = {"mig_profile": lambda profile: profile.replace("gb.", "gb+")}

    def __post_init__(self) -> None:
        if isinstance(self.count, float):
            raise GpuConstructsError(
                f"request.count must be an int, got {self.count!r} (float). To use a part of a GPU, share GPUs with "
                "DevicePluginChart(sharing=Sharing.time_slicing(replicas=...)) and request 1"
            )
        fields.whole_number(
            "request.count", self.count, minimum=1, way_out="If the pod needs no GPU, remove the request"
        )
        super().__post_init__()
        if self.resource is not None:
            _check_resource(self, self.resource)
        for check in (_check_members, _check_typical, _check_claim, _check_families, _check_boards):
            check(self)

    def refuse(self, why: str, *names: str) -> None:
        """Raise an error if the request sets one of the attributes ``names``, which do not work for the caller.

        Args:
            why: Rest of the error message, after the name of the attribute.
            names: Names of the attributes that must not be set.

        Raises:
            GpuConstructsError: The request sets one of the attributes.
        """
        for name in names:
            if getattr(self, name):
                raise GpuConstructsError(f"request.{name} {why}")

    @property
    def driver_capabilities_variable(self) -> str:
        """Value of ``NVIDIA_DRIVER_CAPABILITIES``. Empty if the value in the image applies."""
        asked = self.driver_capabilities
        if not asked or "all" in asked:
            return ",".join(asked)
        return ",".join(dict.fromkeys(("compute", "utility", *asked)))

    @property
    def mig_size(self) -> str | None:
        """MIG profile of the request, such as ``1g.10gb``, without attributes such as ``+me``. None for whole GPUs."""
        resource = self.resource or ""
        given = self.mig_profile or (resource.removeprefix(MIG) if resource.startswith(MIG) else "")
        return size_of(given)

    @property
    def families(self) -> tuple[str, ...]:
        """Requested GPU architectures, always as a tuple."""
        if self.family is None:
            return ()
        return (self.family,) if isinstance(self.family, str) else tuple(self.family)

    @property
    def min_mib(self) -> int | None:
        """Lowest amount of memory that a GPU may have, in MiB, the unit of the node label ``nvidia.com/gpu.memory``."""
        return None if self.min_vram is None else ceil(fields.amount(self.min_vram) / 2**20)

    @property
    def compute_capability(self) -> tuple[int, int] | None:
        """Lowest compute capability that a GPU may have, as two numbers, such as (8, 9)."""
        if self.min_compute_capability is None:
            return None
        major, _, minor = self.min_compute_capability.partition(".")
        return int(major), int(minor)

    @property
    def annotations(self) -> dict[str, str]:
        """Annotations ``gpu-constructs/vram`` and ``gpu-constructs/vram-typical`` of the object that runs the pods.

        Rules of ``synth`` and capacity plans read them. The dict omits annotations for options without a value.
        """
        said = {VRAM: self.vram, VRAM_TYPICAL: self.vram_typical}
        return {name: amount for name, amount in said.items() if amount is not None}

    @property
    def selects(self) -> bool:
        """Whether the request selects GPUs by a property of the board, such as its name or memory."""
        return any(getattr(self, name) for name in SELECTING)


def _check_resource(request: GpuRequest, resource: str) -> None:
    refuse_if(request.mig_profile is not None, "request.resource and request.mig_profile", "not both have a value")
    fields.labels("request.resource", {resource: ""})
    if not EXTENDED_RESOURCE.match(resource):
        raise GpuConstructsError(
            f"request.resource must be a domain other than kubernetes.io, a slash and a name, got {resource!r}"
        )


def _check_members(request: GpuRequest) -> None:
    least = request.min_compute_capability
    if least is not None and not _COMPUTE_CAPABILITY.match(least):
        raise GpuConstructsError(
            f"request.min_compute_capability must be like '8.9', major and minor number, got {least!r}"
        )
    if "all" in request.driver_capabilities and len(request.driver_capabilities) > 1:
        raise GpuConstructsError(
            "request.driver_capabilities must be 'all' or a list without 'all', got "
            f"{list(request.driver_capabilities)}"
        )


def _check_typical(request: GpuRequest) -> None:
    if request.vram_typical is None:
        return
    if request.vram is None:
        raise GpuConstructsError(
            f"request.vram_typical needs request.vram, got {request.vram_typical!r} alone. Set both"
        )
    if fields.amount(request.vram_typical) > fields.amount(request.vram):
        raise GpuConstructsError(
            f"request.vram_typical must be at most request.vram of {request.vram!r}, got {request.vram_typical!r}"
        )


def _check_claim(request: GpuRequest) -> None:
    if request.resource_claim is None:
        return
    request.refuse(
        "and request.resource_claim must not both have a value: the claim selects the GPUs",
        *("resource", "mig_profile", *SELECTING),
    )
    if request.count != 1:
        raise GpuConstructsError(
            f"request.count must be absent with request.resource_claim, which decides the number, got {request.count}"
        )


def _check_families(request: GpuRequest) -> None:
    least = request.compute_capability
    if least is not None and request.families and not any(_may_reach(family, least) for family in request.families):
        raise GpuConstructsError(
            f"request.min_compute_capability {request.min_compute_capability} is more than any board of "
            f"request.family {' or '.join(request.families)} has. Remove one of them"
        )


def _check_boards(request: GpuRequest) -> None:
    """Raise an error if no requested board has the requested properties. An unknown board counts as having them."""
    known = [known_board(product) for product in request.products]
    boards = [] if None in known else [board for board in known if board is not None]
    _check_mig(request, boards)
    if boards:
        _check_that_a_board_can_meet_it(request, boards)


def _check_mig(request: GpuRequest, boards: Sequence[GpuModel]) -> None:
    size = request.mig_size
    if size is None:
        return
    for name in ("min_vram", "vram"):
        wanted = getattr(request, name)
        if wanted is not None and fields.amount(wanted) > memory_gb(size) * 2**30:
            raise GpuConstructsError(
                f"request.{name} must be at most the {memory_gb(size)} GB that a MIG device {size!r} has, got "
                f"{wanted!r}. Request less memory, or set a larger MIG profile"
            )
    profiles = {board.name: MIG_PROFILES.get(board.name) for board in boards}
    known = [each for of_board in profiles.values() for each in of_board or ()]
    if boards and None not in profiles.values() and size not in known:
        has = f"has {', '.join(dict.fromkeys(known))}" if known else "has no MIG"
        raise GpuConstructsError(
            f"request.mig_profile must be a profile of a board of request.products, got {size!r}: "
            f"{' or '.join(profiles)} {has}. Use another profile or other boards"
        )


def _check_that_a_board_can_meet_it(request: GpuRequest, boards: Sequence[GpuModel]) -> None:
    least_mib = request.min_mib
    if least_mib is not None and all((board.vram_mib or least_mib) < least_mib for board in boards):
        most = max(boards, key=lambda board: board.vram_mib or 0)
        raise GpuConstructsError(
            f"request.min_vram of {request.min_vram} is more than any board in request.products has: {most.name} "
            f"reports {most.vram_mib} MiB. Set less, such as '{most.vram_mib}Mi'"
        )
    families = {board.architecture.lower().replace(" ", "-") for board in boards}
    if request.families and families.isdisjoint(request.families):
        raise GpuConstructsError(
            f"request.family {' or '.join(request.families)} does not match request.products, which are "
            f"{' and '.join(sorted(families))}. Remove one of them"
        )
    least = request.compute_capability
    if least is not None and not any(_may_reach(family, least) for family in families):
        raise GpuConstructsError(
            f"request.min_compute_capability {request.min_compute_capability} is more than the boards in "
            f"request.products have: {' and '.join(sorted(families))}. Remove one of the two options"
        )


def _may_reach(family: str, least: tuple[int, int]) -> bool:
    later = [first for first in FIRST_COMPUTE.values() if first > FIRST_COMPUTE.get(family, (99, 0))]  # type: ignore[call-overload]
    return not later or least < min(later)


def _check_name(field: str, product: str) -> None:
    fields.label_value(field, product_label(product))
    refuse_if(not product_label(product) or not product.isprintable(), field, "name a board", product)
    near = doubt_of(product.removesuffix("-SHARED"))
    if near and not is_full_name(product):
        raise GpuConstructsError(
            f"{field} must be the whole name of a board in nvidia-smi, got {product!r}{near}. An unknown board needs "
            "its exact name, which starts with 'NVIDIA '"
        )
    if near is not None:
        warn(f"{field} {product!r} is not the name of a known board{near}. Write the whole name that nvidia-smi shows")
