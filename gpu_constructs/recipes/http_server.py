"""`HttpServer`, the base class of recipes with a Service, and functions for default options and memory budgets."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any

from cdk8s import ApiObject

from gpu_constructs.catalog.gpu_models import known_board
from gpu_constructs.catalog.mig_profiles import mig_resource, mig_vram_mib
from gpu_constructs.errors import GpuConstructsError, refuse_if, then
from gpu_constructs.kube import fields
from gpu_constructs.kube.container import Probe
from gpu_constructs.kube.resources import Resources
from gpu_constructs.records import dataclass
from gpu_constructs.workload.gpu_profile import GpuProfile
from gpu_constructs.workload.gpu_request import GpuRequest
from gpu_constructs.workload.options import WorkloadOptions
from gpu_constructs.workload.workload import GpuWorkload

_MEBIBYTE = 1024 * 1024
_MORE_THAN_ANY = 1024 * 1024 * _MEBIBYTE


class HttpServer(GpuWorkload):
    """Base class of recipes that serve HTTP, with a Service whose port has the name ``http``.

    Attributes:
        service: Service of the pods.
        url: URL of the Service for other pods of the cluster.
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
    """Return the user's options of ``GpuWorkload``, with the defaults of a recipe for missing values.

    Args:
        options: Options of the user.
        resources: Default requests and limits. If the user sets ``resources``, they replace the whole default.
        env: Default environment variables. A variable of the user replaces the default with the same name.
        volumes: Default volumes by mount path. A volume of the user replaces the default with the same path.
    """
    given = options.get("resources")
    return {
        **options,
        "env": {**(env or {}), **(options.get("env") or {})},
        "volumes": {**(volumes or {}), **(options.get("volumes") or {})},
        "resources": resources if given is None else given,
    }


def refuse_variables(options: WorkloadOptions, reserved: Mapping[str, str]) -> None:
    """Raise an error if the user sets an environment variable in ``env`` that the recipe sets itself.

    Args:
        options: Options of the user.
        reserved: Names of the variables that the recipe sets, each with the reason for the error message.
    """
    for name, why in reserved.items():
        refuse_if(name in (options.get("env") or {}), f"env[{name!r}]", f"be absent, because the recipe sets it: {why}")


def is_image_of(image: str, repository: str) -> bool:
    """Check whether an image comes from a repository such as ``jellyfin/jellyfin``, in any registry."""
    return ("/" + re.sub(r"(:[^:/]*)?(@.*)?\Z", "", image)).endswith(f"/{repository}")


def startup_probe(path: str, seconds: int) -> Probe:
    """Return a startup probe that allows a server the given number of seconds to start."""
    fields.whole_number("startup_seconds", seconds, minimum=1)
    return Probe.http_get(path, port="http", failure_threshold=ceil(seconds / 10))


def refuse_flags(
    words: Sequence[str], *, keyword_of: Mapping[str, str], fixed: Mapping[str, str], underscores: bool = False
) -> None:
    """Raise an error if arguments of the user contain a flag that the recipe sets, or that has its own keyword.

    Args:
        words: Command-line arguments of the user.
        keyword_of: Flags that a keyword of the recipe sets, each with the name of the keyword.
        fixed: Flags that the recipe always sets itself, each with the reason for the error message.
        underscores: Whether the server also accepts flags with underscores in place of dashes.
    """
    for index, word in enumerate(words):
        flag = word.partition("=")[0]
        flag = flag.replace("_", "-") if underscores else flag
        if flag in keyword_of:
            raise GpuConstructsError(
                f"args[{index}] must not be {flag}, which has a keyword. Use {keyword_of[flag]}=..."
            )
        if flag in fixed:
            raise GpuConstructsError(f"args[{index}] must not be {flag}: {fixed[flag]}")


@dataclass(frozen=True, kw_only=True)
class VramBudget:
    """The memory budget of a pod on a GPU, with the total memory of the GPU.

    Attributes:
        vram: Budget as the user specifies it, such as ``8Gi``.
        budget_mib: Budget in MiB, rounded down.
        total_mib: Total memory of the GPU in MiB, as ``nvidia-smi`` shows it. None if the total memory is unknown.
    """

    vram: str
    budget_mib: int
    total_mib: int | None

    @property
    def rest_mib(self) -> int | None:
        """Memory of the GPU that the budget leaves to other pods, in MiB. None if the total memory is unknown."""
        return None if self.total_mib is None else self.total_mib - self.budget_mib

    @property
    def hundredths(self) -> int | None:
        """Memory budget as a percentage of the total memory of the GPU, rounded down to a whole number.

        None if the total memory is unknown.
        """
        return None if self.total_mib is None else 100 * self.budget_mib // self.total_mib


def vram_budget(gpus: object, gpu_memory: str | None) -> VramBudget | None:
    """Return the memory budget of a GPU request. Return None if the request sets no ``vram``.

    Args:
        gpus: Value of the option ``gpus``: a number or a ``GpuRequest``.
        gpu_memory: Memory of one whole GPU, as a quantity. None: the memory of the boards in ``GpuRequest.products``.

    Raises:
        GpuConstructsError: An amount is invalid, the budget is above the memory of the GPU, or the user sets
            ``gpu_memory`` but no budget.
    """
    request = gpus if isinstance(gpus, GpuRequest) else GpuRequest()
    if gpu_memory is not None:
        _check_gpu_memory(gpu_memory)
        if request.vram is None:
            raise GpuConstructsError(
                f"gpu_memory must be absent without request.vram, got {gpu_memory!r}. Pass "
                "gpus=GpuRequest(vram=...) too, or remove gpu_memory"
            )
    if request.vram is None:
        return None
    budget = int(fields.amount(request.vram) // _MEBIBYTE)
    total = int(fields.amount(gpu_memory) // _MEBIBYTE) if gpu_memory is not None else memory_of_products(request)
    if budget < 1 or (total is not None and budget > total):
        has = "" if total is None else f" and at most the GPU's {total}Mi"
        way_out = "Add a unit" if budget < 1 else "Choose a smaller model, or a larger GPU"
        raise GpuConstructsError(f"request.vram must be at least 1Mi{has}, got {request.vram!r}{then(way_out)}")
    return VramBudget(vram=request.vram, budget_mib=budget, total_mib=total)


def _check_gpu_memory(given: str) -> None:
    fields.quantity("gpu_memory", given)
    if not _MEBIBYTE <= fields.amount(given) < _MORE_THAN_ANY:
        raise GpuConstructsError(
            f"gpu_memory must be the memory of one GPU with its unit, like '16303Mi', got {given!r}"
        )


def memory_of_products(request: GpuRequest) -> int | None:
    """Return the memory of the largest board in ``request.products``, in MiB.

    For a request with a MIG profile, return the memory of the MIG device. Return None if one of these boards is not in
    the catalog of the library.
    """
    models = [known_board(product) for product in request.products]
    if request.mig_size is not None:
        sizes = [None if model is None else mig_vram_mib(model.name, request.mig_size) for model in models]
    else:
        sizes = [None if model is None else model.vram_mib for model in models]
    known = [size for size in sizes if size is not None]
    return max(known) if known and len(known) == len(sizes) else None


def is_shared(profile: GpuProfile | None, gpus: object = None) -> bool:
    """Check whether several pods can use the same GPU.

    Args:
        profile: GPU profile of the workload. Pods share GPUs if its ``sharing`` applies to the requested resource.
        gpus: Value of the option ``gpus``. Pods also share GPUs if this is a ``GpuRequest`` with a ``resource_claim``,
            or with a ``resource`` that ends in ``.shared``.
    """
    if isinstance(gpus, GpuRequest) and (gpus.resource_claim is not None or (gpus.resource or "").endswith(".shared")):
        return True
    if profile is None or profile.sharing is None or profile.sharing.strategy == "none":
        return False
    if isinstance(gpus, GpuRequest) and gpus.mig_size is not None and profile.mig_strategy != "single":
        return mig_resource(gpus.mig_profile or gpus.mig_size) in profile.sharing.resources
    return True
