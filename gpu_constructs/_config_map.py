"""ConfigMaps whose change restarts the pods that read them."""

from __future__ import annotations

import hashlib
from typing import Any


def sha256(text: str) -> str:
    """Give the checksum that a pod template carries, so that a changed file rolls its pods."""
    return hashlib.sha256(text.encode()).hexdigest()


def config_map(metadata: dict[str, Any], data: dict[str, str]) -> dict[str, Any]:
    """Give the ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
