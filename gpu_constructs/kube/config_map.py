"""Functions that return ConfigMaps, the shell scripts in them, and the checksums that restart pods after a change."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from typing import Any


def sha256(text: str) -> str:
    """Return the SHA-256 checksum of a text. As a pod annotation, it restarts the pods after a change of the text."""
    import hashlib  # Here, because the library of the operating system that it loads is large.

    return hashlib.sha256(text.encode()).hexdigest()


def config_map(metadata: dict[str, Any], data: dict[str, str]) -> dict[str, Any]:
    """Return a ConfigMap manifest."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


SCRIPT_MODE = 0o555
"""File mode of mounted scripts: every user can read and execute them, and no user can write them."""


@lru_cache(maxsize=8)
def shell_script(package: str, name: str) -> str:
    """Return the text of a shell script from the data files of a Python package, by the filename of the script."""
    return (resources.files(package) / name).read_text(encoding="utf-8")
