"""Which system extensions of Talos carry the NVIDIA driver, and which of them go together."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from gpu_constructs import _fields
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.platforms import Talos
from gpu_constructs.talos.driver_versions import Branch, driver_branch

KernelModuleType = Literal["open", "proprietary"]
GpuArchitecture = Literal["maxwell", "pascal", "volta", "turing", "ampere", "ada", "hopper", "blackwell"]

OWNER = "siderolabs/"
GDRDRV = "nvidia-gdrdrv-device"
TOOLKIT = "nvidia-container-toolkit"
FABRIC_MANAGER = "nvidia-fabricmanager"
KERNEL_MODULES: Mapping[KernelModuleType, str] = {
    "open": "nvidia-open-gpu-kernel-modules",
    "proprietary": "nonfree-kmod-nvidia",
}
BRANCHES: tuple[Branch, ...] = ("production", "lts")

_BRANCHED = (TOOLKIT, FABRIC_MANAGER, *KERNEL_MODULES.values())
_OF_NVIDIA = (*(f"{name}-{branch}" for name in _BRANCHED for branch in BRANCHES), GDRDRV)
_NAME = re.compile(r"[a-z0-9]+(?:[.-][a-z0-9]+)*\Z")


@dataclass(frozen=True)
class _Support:
    """What drives an architecture: kernel modules, NVIDIA's first and last branch (None: no limit that matters)."""

    kernel_module_types: tuple[KernelModuleType, ...] = ("open", "proprietary")
    first_branch: int | None = None
    last_branch: int | None = None


# NVIDIA/open-gpu-kernel-modules:README.md; the driver's release notes, "supported products".
_ARCHITECTURES: Mapping[GpuArchitecture, _Support] = {
    "maxwell": _Support(("proprietary",), last_branch=580),
    "pascal": _Support(("proprietary",), last_branch=580),
    "volta": _Support(("proprietary",), last_branch=580),
    "turing": _Support(),
    "ampere": _Support(),
    "ada": _Support(),
    "hopper": _Support(),
    "blackwell": _Support(("open",), first_branch=570),
}


def gpu_extensions(
    *,
    platform: Talos,
    kernel_module_type: KernelModuleType,
    branch: Branch,
    fabric_manager: bool,
    gdrdrv: bool,
    further: Sequence[str],
    gpu_architecture: GpuArchitecture | None,
) -> tuple[str, ...]:
    """Give the names of all extensions of a GPU node, sorted, ``siderolabs/`` in front.

    Raises:
        GpuConstructsError: A name that Talos does not have, extensions that exclude each other, or kernel
            modules that do not drive the architecture.
    """
    if gpu_architecture is not None:
        _drives(platform, kernel_module_type, branch, gpu_architecture)
    kernel_modules = f"{KERNEL_MODULES[kernel_module_type]}-{branch}"
    names = {kernel_modules, f"{TOOLKIT}-{branch}"}
    if fabric_manager:
        names.add(f"{FABRIC_MANAGER}-{branch}")
    if gdrdrv:
        names.add(GDRDRV)
    for index, given in enumerate(further):
        names.add(_further(f"extensions[{index}]", given, kernel_modules, branch))
    if GDRDRV in names and not platform.has_gdrdrv:
        way_out = "leave gdrdrv out" if gdrdrv else "leave it out"
        raise GpuConstructsError(f"extensions must not hold {GDRDRV!r}: {platform} has none; {way_out}")
    return tuple(sorted(OWNER + name for name in names))


def _further(field: str, given: str, kernel_modules: str, branch: Branch) -> str:
    name = given.removeprefix(OWNER)
    if ":" in name or "@" in name or name.count("/") > 1:
        raise GpuConstructsError(
            f"{field} must be a name, Image Factory picks the version; got the image {given!r}; "
            f"use {replacement(given)}"
        )
    if not _NAME.match(name):
        raise GpuConstructsError(
            f"{field} must be the name of an official extension like 'siderolabs/iscsi-tools'; got {given!r}"
        )
    if "nvidia" not in name:
        return name
    if name in _BRANCHED:
        raise GpuConstructsError(
            f"{field} must end in '-production' or '-lts' since Talos 1.8; got {given!r}; "
            f"use {f'{name}-{branch}'!r} or leave it to {_keyword(name)}"
        )
    if name not in _OF_NVIDIA:
        raise GpuConstructsError(
            f"{field} is no NVIDIA extension of Talos; got {given!r}{_fields.did_you_mean(name, _OF_NVIDIA)}"
        )
    if name != GDRDRV and not name.endswith(f"-{branch}"):
        raise GpuConstructsError(f"{field} must be of branch {branch!r}, like the others; got {given!r}")
    if name.startswith(tuple(KERNEL_MODULES.values())) and name != kernel_modules:
        raise GpuConstructsError(
            f"{field} would be the second extension with kernel modules; got {given!r} beside {kernel_modules!r}; "
            "choose by kernel_module_type"
        )
    return name


def _drives(platform: Talos, module_type: KernelModuleType, branch: Branch, architecture: GpuArchitecture) -> None:
    support = _ARCHITECTURES[architecture]
    if module_type not in support.kernel_module_types:
        needed = support.kernel_module_types[0]
        raise GpuConstructsError(
            f"kernel_module_type must be {needed!r} for gpu_architecture {architecture!r}, which the other kernel "
            f"modules do not drive; got {module_type!r}"
        )
    if not _is_driven(platform, branch, support):
        fitting = [repr(other) for other in BRANCHES if _is_driven(platform, other, support)]
        way_out = f"use branch {fitting[0]}" if fitting else "no branch of this release drives it"
        raise GpuConstructsError(
            f"branch must drive gpu_architecture {architecture!r}; got {branch!r}, which is driver "
            f"{driver_branch(platform, branch)} on {platform}; {way_out}"
        )


def _is_driven(platform: Talos, branch: Branch, support: _Support) -> bool:
    number = driver_branch(platform, branch)
    return (support.first_branch or number) <= number <= (support.last_branch or number)


def replacement(image: str) -> str:
    """Say which keyword does what an image under ``machine.install.extensions`` was meant to do."""
    name = re.split(r"[:@]", image.rpartition("/")[2])[0]
    for branch in BRANCHES:
        name = name.removesuffix(f"-{branch}")
    return _keyword(name)


def _keyword(name: str) -> str:
    keywords = {
        **{extension: f"kernel_module_type={module_type!r}" for module_type, extension in KERNEL_MODULES.items()},
        TOOLKIT: "branch='lts' or branch='production' (which brings the toolkit too)",
        FABRIC_MANAGER: "fabric_manager=True",
        GDRDRV: "gdrdrv=True",
    }
    return keywords.get(name, f"extensions=[{OWNER + name!r}]")
