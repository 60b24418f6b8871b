"""ConfigMaps whose change restarts the pods that read them, and the shell scripts that they hold."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from importlib import resources
from typing import Any


def sha256(text: str) -> str:
    """Return the checksum that a pod template carries, so that a changed file rolls its pods."""
    return hashlib.sha256(text.encode()).hexdigest()


def config_map(metadata: dict[str, Any], data: dict[str, str]) -> dict[str, Any]:
    """Return the ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


SCRIPT_MODE = 0o555
"""Readable and executable by everyone, writable by nobody."""


@lru_cache(maxsize=8)
def shell_script(package: str, name: str) -> str:
    """Return the text of a script that lies beside the module that uses it."""
    return (resources.files(package) / name).read_text(encoding="utf-8")
