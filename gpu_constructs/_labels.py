"""The labels every object of ours carries, by Kubernetes' recommended keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_WRITTEN_BY = {"app.kubernetes.io/managed-by": "cdk8s"}
COMPONENT = "app.kubernetes.io/component"


def selector_labels(*, name: str, instance: str, component: str) -> dict[str, str]:
    """Give the labels that tell the pods of one workload from all others; they never change."""
    return {
        "app.kubernetes.io/name": name,
        "app.kubernetes.io/instance": instance,
        COMPONENT: component,
    }


def object_labels(selector: dict[str, str], *, version: str | None = None) -> dict[str, str]:
    """Give the labels of an object: its selector's, the release it runs, and who wrote it."""
    release = {"app.kubernetes.io/version": version} if version else {}
    return {**selector, **release, **_WRITTEN_BY}


def is_ours(manifest: Mapping[str, Any]) -> bool:
    """Check whether an object carries the labels that every object of this library carries."""
    labels: dict[str, str] = (manifest.get("metadata") or {}).get("labels") or {}
    expected = object_labels(selector_labels(name="", instance="", component=""))
    return expected.keys() <= labels.keys() and _WRITTEN_BY.items() <= labels.items()
