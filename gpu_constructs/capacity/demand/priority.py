"""Whom the scheduler takes away for whom.

kubernetes/kubernetes@v1.36.0:plugin/pkg/admission/priority/admission.go, pkg/apis/scheduling/types.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpu_constructs.capacity.demand.app_objects import App

_GROUP = "scheduling.k8s.io"
_BUILT_IN = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def priority_of(pod_spec: Mapping[str, Any], app: App) -> dict[str, Any]:
    """Give the members ``priority``, ``preempts`` and ``notes`` of pods."""
    name = pod_spec.get("priorityClassName")
    known = (app.named(_GROUP, "PriorityClass", name) if name else app.default_priority) or {}
    policy = pod_spec.get("preemptionPolicy") or known.get("preemptionPolicy")
    for value in (pod_spec.get("priority"), known.get("value"), _BUILT_IN.get(str(name))):
        if isinstance(value, int) and not isinstance(value, bool):
            return {"priority": value, "preempts": policy != "Never", "notes": ()}
    notes = (f"PriorityClass {name} is not in this app: taken as priority 0",) if name and not known else ()
    return {"priority": 0, "preempts": policy != "Never", "notes": notes}
