"""What a workload wants of GPUs: how many, which boards, how much memory."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import ClassVar, Literal

from gpu_constructs.catalog.gpu_models import GpuModel, doubt_of, is_full_name, known_board, product_label
from gpu_constructs.catalog.mig_profiles import MIG_PROFILES, memory_gb, require_mig_profile, size_of
from gpu_constructs.errors import GpuConstructsError, refuse_if, warn
from gpu_constructs.kube import fields
from gpu_constructs.kube.annotations import VRAM, VRAM_TYPICAL
from gpu_constructs.kube.references import NamedObject

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
"""The lowest CUDA compute capability of each family, as GPU Feature Discovery names families."""

EXTENDED_RESOURCE = re.compile(r"(?!requests\.|(?:[^/]*\.)?kubernetes\.io/)[^/]+/[^/]+\Z")
"""The apiserver's rules for names of extended resources, on top of those for label keys."""

SELECTING = ("products", "min_vram", "min_compute_capability", "family")
"""Members that select certain GPUs of a cluster."""

MIG = "nvidia.com/mig-"
_COMPUTE_CAPABILITY = re.compile(r"([0-9]{1,2})\.([0-9])\Z")


@dataclass(frozen=True, kw_only=True)
class GpuRequest(fields.Options):
    """The GPUs that one container of a pod holds.

    The same request becomes a limit on an extended resource with a node affinity, or a claim with CEL selectors,
    as the backend of the ``GpuProfile`` says. All that is given must hold.

    Attributes:
        count: Whole GPUs, slots of shared ones or MIG devices, of each pod. 1 by default, and always where slots count
            memory (``Sharing.vram_units``): ``vram`` then says how many slots.
        resource: The extended resource: ``nvidia.com/gpu``, ``nvidia.com/gpu.shared`` or one of a MIG profile; under
            ``Backend.dra_extended_resource()`` whatever a DeviceClass is called. None: what the profile's sharing and
            MIG strategy advertise.
        mig_profile: A MIG profile like ``1g.10gb``, in place of ``resource``. Under the MIG strategy ``single`` it
            needs ``products``, for the node label of a board tells its profile there.
        products: Boards of which any will do, as ``nvidia-smi`` prints them (``NVIDIA GeForce RTX 5070 Ti``) or as
            the node label ``nvidia.com/gpu.product`` has them. The label's ``-SHARED`` form is taken too. Of boards
            that are known neither case nor ``NVIDIA`` in front matters; others are taken to the letter.
        min_vram: Least memory of a GPU, as a quantity (``12Gi``). A board reports less than what is sold: a
            "16 GB" RTX 5070 Ti 16303 MiB. Nodes whose GPUs share the CPU's memory have no such label: they never match.
        min_compute_capability: Least CUDA compute capability, like ``8.9``.
        family: One generation of chips or several, as the node label ``nvidia.com/gpu.family`` names them.
        driver_capabilities: Parts of the driver that the container needs besides ``compute`` and ``utility``
            (``NVIDIA_DRIVER_CAPABILITIES``): encoding of video needs ``video``, OpenGL and Vulkan ``graphics``. The
            variable takes the place of the image's own, so those two, without which there is no CUDA, are always in
            it. Empty: what the image says, else ``utility,compute``. Not written under DRA, whose devices come with
            the whole driver.
        vram: What a pod will take of the memory of each GPU that it holds, its containers together, as a quantity.
            Nothing in Kubernetes counts it: it goes into the annotation ``gpu-constructs/vram``, against which rules
            and plans compute. Where slots count memory (``Sharing.vram_units``) it is required, and asks for as many.
        vram_typical: What it takes most of the time, at most ``vram``; for plans, in the annotation
            ``gpu-constructs/vram-typical``. None: as much as ``vram``.
        resource_claim: An existing ResourceClaim, by name or as an object, that several pods share; only for the
            backend of claims. It says which GPUs, so nothing else may be asked for.

    Raises:
        GpuConstructsError: A number that is not a whole one of at least 1, a resource or MIG profile that does not
            exist, something that is not a quantity, or members that no board can meet together.

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
    # A resource has a dot where the profile has a plus: either spelling may have been given.
    _KEPT: ClassVar[fields.Kept] = {"mig_profile": lambda profile: profile.replace("gb.", "gb+")}

    def __post_init__(self) -> None:
        if isinstance(self.count, float):
            raise GpuConstructsError(
                f"request.count must be an int, got {self.count!r} (float); a part of a GPU is a slot: share GPUs "
                "with DevicePluginChart(sharing=Sharing.time_slicing(replicas=...)) and ask for 1"
            )
        fields.whole_number("request.count", self.count, minimum=1, way_out="a pod without a GPU asks for none")
        super().__post_init__()
        if self.resource is not None:
            _check_resource(self, self.resource)
        for check in (_check_members, _check_typical, _check_claim, _check_families, _check_boards):
            check(self)

    def refuse(self, why: str, *names: str) -> None:
        """Raise if a member is given.

        Args:
            why: What is wrong with the member, behind its name.
            names: Members that must not be given.

        Raises:
            GpuConstructsError: One of the members is given.
        """
        for name in names:
            if getattr(self, name):
                raise GpuConstructsError(f"request.{name} {why}")

    @property
    def driver_capabilities_variable(self) -> str:
        """What ``NVIDIA_DRIVER_CAPABILITIES`` is set to; empty where the image decides."""
        asked = self.driver_capabilities
        if not asked or "all" in asked:
            return ",".join(asked)
        return ",".join(dict.fromkeys(("compute", "utility", *asked)))

    @property
    def mig_size(self) -> str | None:
        """The MIG profile asked for, without its attributes; None for whole GPUs."""
        resource = self.resource or ""
        given = self.mig_profile or (resource.removeprefix(MIG) if resource.startswith(MIG) else "")
        return size_of(given)

    @property
    def families(self) -> tuple[str, ...]:
        """The generations of chips asked for."""
        if self.family is None:
            return ()
        return (self.family,) if isinstance(self.family, str) else tuple(self.family)

    @property
    def min_mib(self) -> int | None:
        """The least memory in MiB, the unit of the node label ``nvidia.com/gpu.memory``."""
        return None if self.min_vram is None else ceil(fields.amount(self.min_vram) / 2**20)

    @property
    def compute_capability(self) -> tuple[int, int] | None:
        """The least compute capability as numbers."""
        if self.min_compute_capability is None:
            return None
        major, _, minor = self.min_compute_capability.partition(".")
        return int(major), int(minor)

    @property
    def annotations(self) -> dict[str, str]:
        """What is written on the object whose pods hold the GPUs, for rules and plans."""
        said = {VRAM: self.vram, VRAM_TYPICAL: self.vram_typical}
        return {name: amount for name, amount in said.items() if amount is not None}

    @property
    def selects(self) -> bool:
        """Whether it wants more than any GPU."""
        return any(getattr(self, name) for name in SELECTING)


def _check_resource(request: GpuRequest, resource: str) -> None:
    refuse_if(request.mig_profile is not None, "request.resource and request.mig_profile", "not both be given")
    fields.labels("request.resource", {resource: ""})
    if not EXTENDED_RESOURCE.match(resource):
        raise GpuConstructsError(
            "request.resource must be a domain and a name, like 'nvidia.com/gpu', outside kubernetes.io; "
            f"got {resource!r}"
        )


def _check_members(request: GpuRequest) -> None:
    least = request.min_compute_capability
    if least is not None and not _COMPUTE_CAPABILITY.match(least):
        raise GpuConstructsError(
            f"request.min_compute_capability must be like '8.9', major and minor number; got {least!r}"
        )
    if "all" in request.driver_capabilities and len(request.driver_capabilities) > 1:
        raise GpuConstructsError(
            f"request.driver_capabilities must be 'all' or a list without it; got {list(request.driver_capabilities)}"
        )


def _check_typical(request: GpuRequest) -> None:
    if request.vram_typical is None:
        return
    if request.vram is None:
        raise GpuConstructsError(
            f"request.vram_typical needs request.vram, the most it takes; got {request.vram_typical!r} alone; pass both"
        )
    if fields.amount(request.vram_typical) > fields.amount(request.vram):
        raise GpuConstructsError(
            f"request.vram_typical must be at most request.vram of {request.vram!r}; got {request.vram_typical!r}"
        )


def _check_claim(request: GpuRequest) -> None:
    if request.resource_claim is None:
        return
    request.refuse(
        "and request.resource_claim must not both be given: the claim says which GPUs",
        *("resource", "mig_profile", *SELECTING),
    )
    if request.count != 1:
        raise GpuConstructsError(
            f"request.count must be left out beside request.resource_claim, which says how many; got {request.count}"
        )


def _check_families(request: GpuRequest) -> None:
    least = request.compute_capability
    if least is not None and request.families and not any(_may_reach(family, least) for family in request.families):
        raise GpuConstructsError(
            f"request.min_compute_capability {request.min_compute_capability} is more than any board of "
            f"request.family {' or '.join(request.families)} has; leave one of the two out"
        )


def _check_boards(request: GpuRequest) -> None:
    """Compare the request with what is known of the boards named; a board that is unknown may meet anything."""
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
                f"request.{name} must be at most the {memory_gb(size)} GB that a MIG device {size!r} has; got "
                f"{wanted!r}; ask for less, or for a larger profile"
            )
    profiles = {board.name: MIG_PROFILES.get(board.name) for board in boards}
    known = [each for of_board in profiles.values() for each in of_board or ()]
    if boards and None not in profiles.values() and size not in known:
        has = f"has {', '.join(dict.fromkeys(known))}" if known else "has no MIG"
        raise GpuConstructsError(
            f"request.mig_profile must be one of a board of request.products; got {size!r}, where "
            f"{' or '.join(profiles)} {has}; take another profile or other boards"
        )


def _check_that_a_board_can_meet_it(request: GpuRequest, boards: Sequence[GpuModel]) -> None:
    least_mib = request.min_mib
    if least_mib is not None and all((board.vram_mib or least_mib) < least_mib for board in boards):
        most = max(boards, key=lambda board: board.vram_mib or 0)
        raise GpuConstructsError(
            f"request.min_vram of {request.min_vram} is more than any of request.products has: {most.name} reports "
            f"{most.vram_mib} MiB; ask for less, e.g. '{most.vram_mib}Mi'"
        )
    families = {board.architecture.lower().replace(" ", "-") for board in boards}
    if request.families and families.isdisjoint(request.families):
        raise GpuConstructsError(
            f"request.family {' or '.join(request.families)} is none of request.products', which are "
            f"{' and '.join(sorted(families))}; leave one of the two out"
        )
    least = request.compute_capability
    if least is not None and not any(_may_reach(family, least) for family in families):
        raise GpuConstructsError(
            f"request.min_compute_capability {request.min_compute_capability} is more than any of request.products "
            f"has, which are {' and '.join(sorted(families))}; leave one of the two out"
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
            f"{field} must be a board's whole name as nvidia-smi prints it; got {product!r}{near}; a board that is "
            "not known here is taken to the letter where the name begins with 'NVIDIA '"
        )
    if near is not None:
        warn(
            f"{field} {product!r} is not the name of a known board{near}; nodes have the whole name, so write it as "
            "nvidia-smi prints it"
        )
