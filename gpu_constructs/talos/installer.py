"""Contents of the installer image of a Talos GPU node: NVIDIA drivers, system extensions, and the schematic.

A schematic is a list of system extensions and kernel arguments, from which an Image Factory builds the installer image.
The table ``drivers.csv`` lists the NVIDIA driver versions in the Talos patch releases.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, ClassVar, Literal

from gpu_constructs.catalog.platforms import Talos
from gpu_constructs.errors import GpuConstructsError, then
from gpu_constructs.kube import fields
from gpu_constructs.records import dataclass, regex

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
_NAME = regex(r"[a-z0-9]+(?:[.-][a-z0-9]+)*\Z")
# In YAML, a value that starts with a digit can be a number, a date, a boolean or null. None of them contains a '='.
_KERNEL_ARGUMENT = regex(r"-?(?:[A-Za-z_][!-~]*|[0-9][!-<>-~]*=[!-~]*)\Z")
# The YAML library of the factory quotes these words or not, depending on its release. Their ID is therefore unknown.
_UNCERTAIN = frozenset("y yes n no on off true false null".split())


@cache
def _rows() -> list[dict[str, str]]:
    text = (resources.files("gpu_constructs.talos") / "drivers.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def _of_line(platform: Talos) -> list[dict[str, str]]:
    return [row for row in _rows() if row["line"] == platform.line]


def patch_release(platform: Talos) -> str | None:
    """Return the Talos patch release of a platform, such as ``1.12.4`` for ``Talos("v1.12.4")``.

    Return None for a release that has no patch number, such as ``Talos("1.12")``.
    """
    rest = platform.version.removeprefix("v").removeprefix(platform.line).removeprefix(".")
    patch, dash, candidate = rest.partition("-")
    return f"{platform.line}.{int(patch)}{dash}{candidate}" if patch else None


def newest_known_release(platform: Talos) -> str:
    """Return the newest Talos patch release in ``drivers.csv`` for the minor release of a platform.

    For example, the result for ``Talos("1.12")`` begins with ``1.12.``. If the minor release only has release
    candidates, return the newest release candidate.
    """
    row = _of_line(platform)[-1]
    return row["candidate"] or f"{row['line']}.{row['last']}"


def driver_version(platform: Talos, branch: Branch) -> str | None:
    """Return the NVIDIA driver version in a Talos patch release, such as ``570.148.08``. Return None if it is unknown.

    Args:
        platform: Talos release.
        branch: Driver branch: ``production`` or ``lts``.
    """
    release = patch_release(platform)
    for row in _of_line(platform):
        patches = range(int(row["first"]), int(row["last"]) + 1)
        if release in (row["candidate"], *(f"{row['line']}.{patch}" for patch in patches)):
            return row[branch]
    return None


def driver_branch(platform: Talos, branch: Branch) -> int:
    """Return the major version of the NVIDIA driver of a driver branch in a Talos release, such as 570.

    All patch releases of a minor Talos release have the same major version.
    """
    return int(_of_line(platform)[0][branch].partition(".")[0])


@dataclass(frozen=True)
class _Support:
    """The types of kernel modules and the versions of the NVIDIA driver that support a GPU architecture.

    Attributes:
        kernel_module_types: Types of kernel modules that support the architecture.
        first_branch: First major version of the NVIDIA driver that supports the architecture, such as 570. None: no
            minimum.
        last_branch: Last major version of the NVIDIA driver that supports the architecture. None: no maximum.
    """

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
    """Return the names of all system extensions of a GPU node, sorted, with the prefix ``siderolabs/``.

    ``TalosGpuNode`` describes the arguments. ``further`` is its keyword ``extensions``.

    Raises:
        GpuConstructsError: If Talos has no such extension, if extensions exclude each other, or if the kernel modules
            do not support the architecture of the GPUs.
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
        way_out = "Leave gdrdrv out" if gdrdrv else "leave it out"
        raise GpuConstructsError(
            f"extensions must not contain {GDRDRV!r}, which {platform} does not have{then(way_out)}"
        )
    return tuple(sorted(OWNER + name for name in names))


def _further(field: str, given: str, kernel_modules: str, branch: Branch) -> str:
    name = given.removeprefix(OWNER)
    is_nvidias = "nvidia" in name
    fields.refuse_first(
        [
            (
                ":" in name or "@" in name or name.count("/") > 1,
                f"{field} must be a name, because Image Factory chooses the version, got the image {given!r}. "
                f"Use {replacement(given)}",
            ),
            (
                not _NAME.match(name),
                f"{field} must be the name of an official extension like 'siderolabs/iscsi-tools', got {given!r}",
            ),
            (
                name in _BRANCHED,
                f"{field} must end in '-production' or '-lts' since Talos 1.8, got {given!r}. Use "
                f"{f'{name}-{branch}'!r} or remove it and set {_keyword(name)}",
            ),
            (
                is_nvidias and name not in _OF_NVIDIA,
                f"{field} must be an NVIDIA extension of Talos, got {given!r}{fields.did_you_mean(name, _OF_NVIDIA)}",
            ),
            (
                is_nvidias and name != GDRDRV and not name.endswith(f"-{branch}"),
                f"{field} must belong to branch {branch!r}, like the other extensions, got {given!r}",
            ),
            (
                name.startswith(tuple(KERNEL_MODULES.values())) and name != kernel_modules,
                f"{field} must not be a second extension with kernel modules, got {given!r} besides "
                f"{kernel_modules!r}. To change the kernel modules, set kernel_module_type",
            ),
        ]
    )
    return name


def _drives(platform: Talos, module_type: KernelModuleType, branch: Branch, architecture: GpuArchitecture) -> None:
    support = _ARCHITECTURES[architecture]
    if module_type not in support.kernel_module_types:
        needed = support.kernel_module_types[0]
        raise GpuConstructsError(
            f"kernel_module_type must be {needed!r} for gpu_architecture {architecture!r}, because the other kernel "
            f"modules do not support it, got {module_type!r}"
        )
    if not _is_driven(platform, branch, support):
        fitting = [repr(other) for other in BRANCHES if _is_driven(platform, other, support)]
        way_out = f"Use branch {fitting[0]}" if fitting else "Use a Talos release with a driver for this architecture"
        raise GpuConstructsError(
            f"branch must support gpu_architecture {architecture!r}, got {branch!r}, which is driver "
            f"{driver_branch(platform, branch)} on {platform}{then(way_out)}"
        )


def _is_driven(platform: Talos, branch: Branch, support: _Support) -> bool:
    number = driver_branch(platform, branch)
    return (support.first_branch or number) <= number <= (support.last_branch or number)


def replacement(image: str) -> str:
    """Return, as text for messages, the keyword of ``TalosGpuNode`` that adds a system extension.

    For example, the result for ``nvidia-gdrdrv-device`` is ``gdrdrv=True``.

    Args:
        image: Image of the system extension, as in the list ``machine.install.extensions`` of a machine configuration.
    """
    name = re.split(r"[:@]", image.rpartition("/")[2])[0]
    for branch in BRANCHES:
        name = name.removesuffix(f"-{branch}")
    return _keyword(name)


def _keyword(name: str) -> str:
    keywords = {
        **{extension: f"kernel_module_type={module_type!r}" for module_type, extension in KERNEL_MODULES.items()},
        TOOLKIT: "branch='lts' or branch='production' (which adds the toolkit)",
        FABRIC_MANAGER: "fabric_manager=True",
        GDRDRV: "gdrdrv=True",
    }
    return keywords.get(name, f"extensions=[{OWNER + name!r}]")


@dataclass(frozen=True, kw_only=True)
class TalosSchematic(fields.Options):
    """The list of system extensions and kernel arguments from which an Image Factory builds an installer image.

    The attributes are fields of the Image Factory (https://factory.talos.dev), such as ``extraKernelArgs``. The library
    computes the ID of the schematic without a request to the Image Factory. A different order of extensions or
    arguments results in a different ID.

    Attributes:
        official_extensions: Names of system extensions, with the prefix ``siderolabs/``.
        extra_kernel_args: Kernel arguments, one in each item. A leading ``-`` removes a default argument.

    Raises:
        GpuConstructsError: If the library cannot compute the ID, because an extension name or a kernel argument has an
            unusual form.

    Source:
        siderolabs/image-factory@v1.5.0:pkg/schematic/schematic.go
    """

    official_extensions: Sequence[str] = ()
    extra_kernel_args: Sequence[str] = ()

    _NAME: ClassVar[str] = "schematic"
    _CHECKS: ClassVar[fields.Checks] = {
        "official_extensions": fields.each_matching(
            r"[a-z][a-z0-9-]*/[a-z0-9.-]+\Z", "contain names like 'siderolabs/iscsi-tools'"
        )
    }

    def _conflicts(self) -> Iterable[fields.Conflict]:
        for argument in self.extra_kernel_args:
            yield (
                not _KERNEL_ARGUMENT.match(argument) or argument.lower() in _UNCERTAIN,
                f"extra_kernel_args must contain one kernel argument in each item, without spaces, got {argument!r}. "
                "Write name=value, or a name that starts with a letter and is not a YAML word such as 'on'. A '-' at "
                "the start removes the argument",
            )

    @property
    def id(self) -> str:
        """The ID that an Image Factory computes for the schematic when you register it."""
        import hashlib

        return hashlib.sha256(self.to_yaml().encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Return the schematic as a dict with the field names of an Image Factory."""
        customization: dict[str, Any] = {}
        if self.extra_kernel_args:
            customization["extraKernelArgs"] = list(self.extra_kernel_args)
        if self.official_extensions:
            customization["systemExtensions"] = {"officialExtensions": list(self.official_extensions)}
        return {"customization": customization}

    def to_yaml(self) -> str:
        """Return the exact YAML text that an Image Factory writes for the schematic. Its SHA-256 is the ID."""
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
