"""What the recipes have in common: servers, options under those of the user, and budgets of memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from cdk8s import ApiObject

from gpu_constructs.catalog.gpu_models import known_board
from gpu_constructs.catalog.mig_profiles import mig_resource, mig_vram_mib
from gpu_constructs.errors import GpuConstructsError, refuse_if
from gpu_constructs.kube import fields
from gpu_constructs.kube.container import Probe
from gpu_constructs.kube.resources import Resources
from gpu_constructs.workload.gpu_profile import GpuProfile
from gpu_constructs.workload.gpu_request import GpuRequest
from gpu_constructs.workload.options import WorkloadOptions
from gpu_constructs.workload.workload import GpuWorkload

_MEBIBYTE = 1024 * 1024
_MORE_THAN_ANY = 1024 * 1024 * _MEBIBYTE


class HttpServer(GpuWorkload):
    """A workload with a Service and a port named ``http``.

    Attributes:
        service: The Service in front of the pods.
        url: The URL that other pods of the cluster reach the server at.
    """

    _NOT_TAKEN: dict[str, str] = {}  # noqa: RUF012

    service: ApiObject
    url: str


def with_defaults(
    options: WorkloadOptions,
    *,
    resources: Resources,
    env: Mapping[str, object] | None = None,
    volumes: Mapping[str, object] | None = None,
) -> dict[str, Any]:
    """Return the options of a workload: those of a recipe, and the user's on top of them."""
    given = options.get("resources")
    return {
        **options,
        "env": {**(env or {}), **(options.get("env") or {})},
        "volumes": {**(volumes or {}), **(options.get("volumes") or {})},
        "resources": resources if given is None else given,
    }


def refuse_variables(options: WorkloadOptions, reserved: Mapping[str, str]) -> None:
    """Raise if the user sets a variable that the recipe needs for itself."""
    for name, why in reserved.items():
        refuse_if(name in (options.get("env") or {}), f"env[{name!r}]", f"be left to the recipe, {why}")


def startup_probe(path: str, seconds: int) -> Probe:
    """Return the probe that gives a server so many seconds to start."""
    fields.whole_number("startup_seconds", seconds, minimum=1)
    return Probe.http_get(path, port="http", failure_threshold=ceil(seconds / 10))


def refuse_flags(
    words: Sequence[str], *, keyword_of: Mapping[str, str], fixed: Mapping[str, str], underscores: bool = False
) -> None:
    """Raise if a flag of the user is one that a keyword stands for, or one that the recipe sets.

    Args:
        words: Arguments of the user.
        keyword_of: Keyword of each flag that has one.
        fixed: Why the recipe sets a flag itself.
        underscores: Whether the program takes flags with underscores too.
    """
    for index, word in enumerate(words):
        flag = word.partition("=")[0]
        flag = flag.replace("_", "-") if underscores else flag
        if flag in keyword_of:
            raise GpuConstructsError(
                f"args[{index}] must not be {flag}, which has a keyword; use {keyword_of[flag]}=..."
            )
        if flag in fixed:
            raise GpuConstructsError(f"args[{index}] must not be {flag}: {fixed[flag]}")


@dataclass(frozen=True, kw_only=True)
class VramBudget:
    """A budget and the memory of the GPU.

    Attributes:
        vram: The budget as it was given.
        budget_mib: The same in MiB, rounded down.
        total_mib: All memory of the GPU as ``nvidia-smi`` shows it; None where it is not known.
    """

    vram: str
    budget_mib: int
    total_mib: int | None

    @property
    def rest_mib(self) -> int | None:
        """What is left to others, in MiB."""
        return None if self.total_mib is None else self.total_mib - self.budget_mib

    @property
    def hundredths(self) -> int | None:
        """The part of all memory, in hundredths, rounded down."""
        return None if self.total_mib is None else 100 * self.budget_mib // self.total_mib


def vram_budget(gpus: object, gpu_memory: str | None) -> VramBudget | None:
    """Return the budget of a request; None where it states none.

    Args:
        gpus: What the workload was given as ``gpus``.
        gpu_memory: All memory of a GPU, as a quantity. None: that of the largest of ``request.products``, or of its MIG
            device, where all of them are known; of the largest, since a smaller one then takes less than the budget.

    Raises:
        GpuConstructsError: An amount that is none, no budget beside ``gpu_memory``, or more than there is.
    """
    request = gpus if isinstance(gpus, GpuRequest) else GpuRequest()
    if gpu_memory is not None:
        _check_gpu_memory(gpu_memory)
        if request.vram is None:
            raise GpuConstructsError(
                f"gpu_memory is for the budget of a GpuRequest, which there is not; got {gpu_memory!r}; pass "
                "gpus=GpuRequest(vram=...) too, or leave it out"
            )
    if request.vram is None:
        return None
    budget = int(fields.amount(request.vram) // _MEBIBYTE)
    total = int(fields.amount(gpu_memory) // _MEBIBYTE) if gpu_memory is not None else memory_of_products(request)
    if budget < 1 or (total is not None and budget > total):
        has = "" if total is None else f" and at most the GPU's {total}Mi"
        way_out = "give it with its unit" if budget < 1 else "take a smaller model, or a larger GPU"
        raise GpuConstructsError(f"request.vram must be at least 1Mi{has}; got {request.vram!r}; {way_out}")
    return VramBudget(vram=request.vram, budget_mib=budget, total_mib=total)


def _check_gpu_memory(given: str) -> None:
    fields.quantity("gpu_memory", given)
    if not _MEBIBYTE <= fields.amount(given) < _MORE_THAN_ANY:
        raise GpuConstructsError(
            f"gpu_memory must be the memory of one GPU with its unit, like '16303Mi'; got {given!r}"
        )


def memory_of_products(request: GpuRequest) -> int | None:
    """Return the memory in MiB of the largest board asked for, or of its MIG device; None where one is not known."""
    models = [known_board(product) for product in request.products]
    if request.mig_size is not None:
        sizes = [None if model is None else mig_vram_mib(model.name, request.mig_size) for model in models]
    else:
        sizes = [None if model is None else model.vram_mib for model in models]
    known = [size for size in sizes if size is not None]
    return max(known) if known and len(known) == len(sizes) else None


def is_shared(profile: GpuProfile | None, gpus: object = None) -> bool:
    """Check whether several pods hold one GPU, as far as the profile and the workload's ``gpus`` say."""
    if isinstance(gpus, GpuRequest) and (gpus.resource_claim is not None or (gpus.resource or "").endswith(".shared")):
        return True
    if profile is None or profile.sharing is None or profile.sharing.strategy == "none":
        return False
    if isinstance(gpus, GpuRequest) and gpus.mig_size is not None and profile.mig_strategy != "single":
        return mig_resource(gpus.mig_profile or gpus.mig_size) in profile.sharing.resources
    return True
