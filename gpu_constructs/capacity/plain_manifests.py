"""Objects of Kubernetes that come as plain data, from a file or another tool."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gpu_constructs.errors import GpuConstructsError

_LONGEST_SHOWN = 60


def plain_manifests(field: str, given: object) -> list[dict[str, Any]]:
    """Return the objects; an empty document of YAML, which is None, is left out.

    Raises:
        GpuConstructsError: Not a list, or a member that is not an object.
    """
    if isinstance(given, Mapping):
        raise GpuConstructsError(f"{field} must be a list of objects; got one; put it in a list: {field}=[...]")
    if not isinstance(given, Iterable) or isinstance(given, str | bytes):
        raise GpuConstructsError(
            f"{field} must be a list of objects as plain data; got {_shown(given)}; read the file first, by "
            "yaml.safe_load_all(text)"
        )
    found = []
    for index, one in enumerate(given):
        if one is None:
            continue
        if not isinstance(one, Mapping) or not all(isinstance(one.get(key), str) for key in ("apiVersion", "kind")):
            raise GpuConstructsError(
                f"{field}[{index}] must be an object of Kubernetes, a mapping with apiVersion and kind; got "
                f"{_shown(one)}; leave it out"
            )
        found.append(dict(one))
    return found


def _shown(given: object) -> str:
    text = repr(given)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}… ({type(given).__name__})"
