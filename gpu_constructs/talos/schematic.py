"""What an Image Factory puts into an installer, and the identifier it gives to it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpu_constructs import _fields
from gpu_constructs.errors import GpuConstructsError, ShortErrors

# No number, date, boolean or null of YAML holds a '=', so that behind a digit it makes certain text.
_KERNEL_ARGUMENT = re.compile(r"-?(?:[A-Za-z_][!-~]*|[0-9][!-<>-~]*=[!-~]*)\Z")
# Releases of the factory's YAML writer quote these in different ways, so that the identifier would not be certain.
_UNCERTAIN = frozenset("y yes n no on off true false null".split())


@dataclass(frozen=True, kw_only=True)
class TalosSchematic(metaclass=ShortErrors):
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

    def __post_init__(self) -> None:
        _fields.members(self, "schematic")
        for name in self.official_extensions:
            if not re.fullmatch(r"[a-z][a-z0-9-]*/[a-z0-9.-]+", name):
                raise GpuConstructsError(
                    f"schematic.official_extensions must hold names like 'siderolabs/iscsi-tools'; got {name!r}"
                )
        for argument in self.extra_kernel_args:
            if not _KERNEL_ARGUMENT.match(argument) or argument.lower() in _UNCERTAIN:
                raise GpuConstructsError(
                    "extra_kernel_args must hold one kernel argument in each item (a letter first, or a digit and a "
                    f"'=' behind it; '-' before it to remove one; no spaces); got {argument!r}"
                )

    @property
    def id(self) -> str:
        """The identifier under which the factory knows the schematic once it is registered."""
        return hashlib.sha256(self.to_yaml().encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Give the schematic as the factory reads it."""
        customization: dict[str, Any] = {}
        if self.extra_kernel_args:
            customization["extraKernelArgs"] = list(self.extra_kernel_args)
        if self.official_extensions:
            customization["systemExtensions"] = {"officialExtensions": list(self.official_extensions)}
        return {"customization": customization}

    def to_yaml(self) -> str:
        """Give the schematic's canonical text, of which the identifier is the checksum."""
        return canonical_yaml(self.to_dict())


def canonical_yaml(document: Mapping[str, Any]) -> str:
    """Write a document as the factory does before it takes the checksum: the words and numbers of a schematic."""
    return "\n".join(_lines(document)) + "\n"


def _lines(mapping: Mapping[str, Any]) -> Iterator[str]:
    for key, value in mapping.items():
        if isinstance(value, Mapping):
            yield f"{key}:" if value else f"{key}: {{}}"
            yield from (f"    {line}" for line in _lines(value))
        elif isinstance(value, list):
            yield f"{key}:"
            for item in value:
                first, *others = _lines(item) if isinstance(item, Mapping) else [_scalar(item)]
                yield f"    - {first}"
                yield from (f"      {line}" for line in others)
        else:
            yield f"{key}: {_scalar(value)}"


def _scalar(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if text.endswith(":"):
        return "'" + text.replace("'", "''") + "'"
    return text
