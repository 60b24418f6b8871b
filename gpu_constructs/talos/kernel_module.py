"""Kernel modules that a node loads at boot."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gpu_constructs import _fields
from gpu_constructs.errors import GpuConstructsError, ShortErrors

NVIDIA_MODULES = ("nvidia", "nvidia_uvm", "nvidia_drm", "nvidia_modeset")
"""Must be named: the extension keeps the kernel from loading them by itself."""

GDRDRV_MODULE = "gdrdrv"

_NAME = re.compile(r"[A-Za-z0-9_-]+\Z")
_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*(=[!-~]*)?\Z")


@dataclass(frozen=True, kw_only=True)
class KernelModule(metaclass=ShortErrors):
    """A kernel module to load; the words are those of Talos.

    Attributes:
        name: The module's name, ``nvidia_peermem``.
        parameters: Its parameters, one in each item: ``NVreg_EnableGpuFirmware=0``.

    Raises:
        GpuConstructsError: A name or a parameter that the kernel would not take.
    """

    name: str
    parameters: Sequence[str] = ()

    def __post_init__(self) -> None:
        _fields.members(self, "kernel_module")
        if not _NAME.match(self.name):
            raise GpuConstructsError(
                f"kernel_module.name must be a module's name (letters, digits, '_', '-'); got {self.name!r}"
            )
        for parameter in self.parameters:
            if not _PARAMETER.match(parameter):
                raise GpuConstructsError(
                    "kernel_module.parameters must hold one 'name=value' in each item, without spaces; "
                    f"got {parameter!r}"
                )

    def to_dict(self) -> dict[str, Any]:
        """Give the module as Talos writes it."""
        return {"name": self.name, **({"parameters": list(self.parameters)} if self.parameters else {})}


def module_key(name: str) -> str:
    """Give the name that the kernel knows a module by."""
    return name.replace("-", "_")
