"""Effects of plain manifests on a cluster: the declarations that constructs of this library make for themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpu_constructs.facts.provided import Provided


def provided_by(manifests: Sequence[Mapping[str, Any]]) -> list[Provided]:
    """Return the effects on the cluster of the device plugins, operators and other programs among manifests.

    Args:
        manifests: Kubernetes objects as plain data.
    """
    return []
