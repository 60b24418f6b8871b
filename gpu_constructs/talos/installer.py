"""What the installer of a Talos GPU node holds: drivers, system extensions, and the schematic of an Image Factory.

drivers.csv has a row for the patch releases of Talos that share a pair of drivers.
"""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, ClassVar, Literal

from gpu_constructs.catalog.platforms import Talos
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube import fields

Branch = Literal["production", "lts"]
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
# No number, date, boolean or null of YAML holds a '=', so that behind a digit it makes certain text.
_KERNEL_ARGUMENT = re.compile(r"-?(?:[A-Za-z_][!-~]*|[0-9][!-<>-~]*=[!-~]*)\Z")
# Releases of the factory's YAML writer quote these in different ways, so that the identifier would not be certain.
_UNCERTAIN = frozenset("y yes n no on off true false null".split())


@cache
def _rows() -> list[dict[str, str]]:
    text = (resources.files("gpu_constructs.talos") / "drivers.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def _of_line(platform: Talos) -> list[dict[str, str]]:
    return [row for row in _rows() if row["line"] == platform.line]


def patch_release(platform: Talos) -> str | None:
    """Return ``1.12.4`` for ``Talos("v1.12.4")``, ``1.14.0-rc.1`` for that candidate, None for a mere line."""
    rest = platform.version.removeprefix("v").removeprefix(platform.line).removeprefix(".")
    patch, dash, candidate = rest.partition("-")
    return f"{platform.line}.{int(patch)}{dash}{candidate}" if patch else None


def newest_known_release(platform: Talos) -> str:
    """Return the newest known patch release of the platform's line, or a candidate for its first."""
    row = _of_line(platform)[-1]
    return row["candidate"] or f"{row['line']}.{row['last']}"


def driver_version(platform: Talos, branch: Branch) -> str | None:
    """Return the driver of a branch in a patch release; None for a line or an unknown release."""
    release = patch_release(platform)
    for row in _of_line(platform):
        patches = range(int(row["first"]), int(row["last"]) + 1)
        if release in (row["candidate"], *(f"{row['line']}.{patch}" for patch in patches)):
            return row[branch]
    return None


def driver_branch(platform: Talos, branch: Branch) -> int:
    """Return NVIDIA's number of a branch, 570 for 570.211.01; it is the same for a whole line."""
    return int(_of_line(platform)[0][branch].partition(".")[0])


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
    """Return the names of all extensions of a GPU node, sorted, ``siderolabs/`` in front.

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
    is_nvidias = "nvidia" in name
    fields.refuse_first(
        [
            (
                ":" in name or "@" in name or name.count("/") > 1,
                f"{field} must be a name, Image Factory picks the version; got the image {given!r}; "
                f"use {replacement(given)}",
            ),
            (
                not _NAME.match(name),
                f"{field} must be the name of an official extension like 'siderolabs/iscsi-tools'; got {given!r}",
            ),
            (
                name in _BRANCHED,
                f"{field} must end in '-production' or '-lts' since Talos 1.8; got {given!r}; "
                f"use {f'{name}-{branch}'!r} or leave it to {_keyword(name)}",
            ),
            (
                is_nvidias and name not in _OF_NVIDIA,
                f"{field} must be an NVIDIA extension of Talos; got {given!r}{fields.did_you_mean(name, _OF_NVIDIA)}",
            ),
            (
                is_nvidias and name != GDRDRV and not name.endswith(f"-{branch}"),
                f"{field} must be of branch {branch!r}, like the others; got {given!r}",
            ),
            (
                name.startswith(tuple(KERNEL_MODULES.values())) and name != kernel_modules,
                f"{field} would be the second extension with kernel modules; got {given!r} beside {kernel_modules!r}; "
                "choose by kernel_module_type",
            ),
        ]
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
    """Return the keyword for what an image under ``machine.install.extensions`` was meant to do."""
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


@dataclass(frozen=True, kw_only=True)
class TalosSchematic(fields.Options):
    """A schematic for an Image Factory (https://factory.talos.dev); the words are those of the factory.

    Its identifier is computed here, without asking the factory. The order of extensions and of arguments
    counts: another order is another identifier.

    Attributes:
        official_extensions: System extensions, ``siderolabs/`` in front.
        extra_kernel_args: Kernel arguments, one in each item; a leading ``-`` removes a default one.

    Raises:
        GpuConstructsError: An extension or an argument whose identifier we could not be certain of.

    Source:
        siderolabs/image-factory@v1.5.0:pkg/schematic/schematic.go
    """

    official_extensions: Sequence[str] = ()
    extra_kernel_args: Sequence[str] = ()

    _NAME: ClassVar[str] = "schematic"
    _CHECKS: ClassVar[fields.Checks] = {
        "official_extensions": fields.each_matching(
            r"[a-z][a-z0-9-]*/[a-z0-9.-]+\Z", "hold names like 'siderolabs/iscsi-tools'"
        )
    }

    def _conflicts(self) -> Iterable[fields.Conflict]:
        for argument in self.extra_kernel_args:
            yield (
                not _KERNEL_ARGUMENT.match(argument) or argument.lower() in _UNCERTAIN,
                "extra_kernel_args must hold one kernel argument in each item (a letter first, or a digit and a "
                f"'=' behind it; '-' before it to remove one; no spaces); got {argument!r}",
            )

    @property
    def id(self) -> str:
        """The identifier under which the factory knows the schematic once it is registered."""
        return hashlib.sha256(self.to_yaml().encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Return the schematic as the factory reads it."""
        customization: dict[str, Any] = {}
        if self.extra_kernel_args:
            customization["extraKernelArgs"] = list(self.extra_kernel_args)
        if self.official_extensions:
            customization["systemExtensions"] = {"officialExtensions": list(self.official_extensions)}
        return {"customization": customization}

    def to_yaml(self) -> str:
        """Return the schematic's canonical text, as the factory writes it; the identifier is its checksum."""
        return "\n".join(_lines(self.to_dict())) + "\n"


def _lines(mapping: Mapping[str, Any]) -> Iterator[str]:
    for key, value in mapping.items():
        if isinstance(value, list):
            yield f"{key}:"
            yield from (f"    - {_scalar(item)}" for item in value)
        else:
            yield f"{key}:" if value else f"{key}: {{}}"
            yield from (f"    {line}" for line in _lines(value))


def _scalar(text: str) -> str:
    return "'" + text.replace("'", "''") + "'" if text.endswith(":") else text
