"""A DaemonSet around the pod that runs on every node it fits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def daemonset(
    *,
    metadata: Mapping[str, Any],
    selector: Mapping[str, str],
    annotations: Mapping[str, str],
    pod_spec: Mapping[str, Any],
    rolling_update: Mapping[str, Any] | None = None,
    update_strategy: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Give the DaemonSet.

    Args:
        metadata: Of the DaemonSet; its labels go on the pods too.
        selector: Labels that tell its pods from all others.
        annotations: Of the pods; checksums of what they read, so that a change restarts them.
        pod_spec: The pod.
        rolling_update: How many pods may be missing or doubled during an update.
        update_strategy: The whole strategy, instead of a rolling update.
    """
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": metadata,
        "spec": {
            "selector": {"matchLabels": dict(selector)},
            "updateStrategy": update_strategy or {"type": "RollingUpdate", "rollingUpdate": rolling_update},
            "template": {
                "metadata": {"labels": dict(metadata["labels"]), "annotations": dict(annotations) or None},
                "spec": pod_spec,
            },
        },
    }
