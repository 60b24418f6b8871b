"""Conditions of the checks of ``doctor``. A check applies to a cluster only if its conditions are true."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from gpu_constructs.cli.doctor.view import View, asked, container_states, key, metadata, spec, status

EXPORTERS = ("DCGM exporter", "nvidia_gpu_exporter")


class Condition(NamedTuple):
    """A condition of a check.

    Attributes:
        because: Reason why the check does not apply to the cluster, as words that follow "because" in a sentence.
        holds: Function that returns True if the check applies to the cluster.
    """

    because: str
    holds: Callable[[View], bool]


def is_of_the_operator(release: Mapping[str, object]) -> bool:
    """Check whether a HelmRelease of Flux installs the GPU Operator."""
    chart = ((spec(release).get("chart") or {}).get("spec") or {}).get("chart")
    return "gpu-operator" in (chart, metadata(release).get("name"))


def _has_started(view: View, pod: Mapping[str, Any]) -> bool:
    """Check whether at least one container of a pod has started."""
    has_ended = any("exitCode" in state for _, state in container_states(pod))
    return status(pod).get("phase") == "Running" or has_ended or key(pod) in view.snapshot.logs


def _some_started(*programs: str) -> Callable[[View], bool]:
    return lambda view: any(_has_started(view, pod) for pod in view.program_pods(*programs))


def _runs(view: View, pod: Mapping[str, Any]) -> bool:
    """Check whether a pod has started and has not succeeded."""
    return _has_started(view, pod) and status(pod).get("phase") != "Succeeded"


CONDITIONS: Mapping[str, Condition] = {
    "talos": Condition("no GPU node runs Talos", lambda view: bool(view.talos)),
    "features": Condition("the cluster has no NodeFeature", lambda view: bool(view.all("NodeFeature"))),
    "programs": Condition("the cluster runs none of the GPU programs", lambda view: bool(view.programs())),
    "pods": Condition("no pod of the GPU programs exists", lambda view: bool(view.program_pods())),
    "logs": Condition("no pod of the GPU programs has started", _some_started()),
    "plugin-pods": Condition("no pod of the device plugin has started", _some_started("device plugin")),
    "validator": Condition(
        "no pod of the validator exists", lambda view: bool(view.program_pods("operator validator"))
    ),
    "workloads": Condition(
        "the command finds no GPU workload",
        lambda view: bool(view.workloads) or any(True for _ in view.controllers(programs=False)),
    ),
    "workload-pods": Condition("the command finds no GPU pod", lambda view: bool(view.workloads)),
    "on-nodes": Condition(
        "no GPU pod has a node", lambda view: any(spec(pod).get("nodeName") for pod in view.gpu_pods)
    ),
    "placed": Condition("no GPU pod has a node", lambda view: any(spec(pod).get("nodeName") for pod in view.workloads)),
    "running": Condition("no GPU pod runs", lambda view: any(_runs(view, pod) for pod in view.workloads)),
    "holding": Condition(
        "no pod that runs requests a GPU",
        lambda view: any(asked(spec(pod)) and status(pod).get("phase") == "Running" for pod in view.workloads),
    ),
    "policy": Condition("the cluster has no ClusterPolicy", lambda view: bool(view.all("ClusterPolicy"))),
    "release": Condition(
        "no HelmRelease installs the GPU Operator", lambda view: any(map(is_of_the_operator, view.all("HelmRelease")))
    ),
    "discovery": Condition(
        "GPU Feature Discovery does not run", lambda view: bool(view.program_pods("GPU Feature Discovery"))
    ),
    "plugin": Condition(
        "the cluster has no device plugin", lambda view: bool(view.programs("device plugin", "GPU Operator"))
    ),
    "dra": Condition("the cluster has no DRA driver", lambda view: bool(view.programs("DRA driver"))),
    "claims": Condition("the cluster has no resource claim", lambda view: bool(view.all("ResourceClaim"))),
    "classes": Condition("no RuntimeClass has an NVIDIA handler", lambda view: bool(view.gpu_classes)),
    "power": Condition("no pod of PowerLimit exists", lambda view: bool(view.program_pods("PowerLimit"))),
    "exporter": Condition("the cluster has no exporter of GPU metrics", lambda view: bool(view.programs(*EXPORTERS))),
    "plan": Condition("the option --plan is not set", lambda view: view.plan is not None),
    "plan-file": Condition(
        "the command knows no capacity plan", lambda view: bool(view.planned_nodes or view.planned_slots)
    ),
    "schematic": Condition(
        "the command knows no schematic of a plan", lambda view: bool(view.talos and view.plan and view.plan.schematics)
    ),
    "plan-alerts": Condition(
        "the command knows no plan with alerts",
        lambda view: any(one["kind"] == "PrometheusRule" for one in (view.plan.manifests if view.plan else ())),
    ),
}
