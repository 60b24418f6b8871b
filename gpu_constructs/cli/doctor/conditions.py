"""Conditions without which a check does not apply, each with the reason in a sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from gpu_constructs.cli.doctor.view import View, metadata, spec

EXPORTERS = ("DCGM exporter", "nvidia_gpu_exporter")


class Condition(NamedTuple):
    """A condition of a check.

    Attributes:
        because: Reason why the check does not apply, for a sentence after "because".
        holds: Function that checks whether the check applies.
    """

    because: str
    holds: Callable[[View], bool]


def is_of_the_operator(release: Mapping[str, object]) -> bool:
    """Check whether a HelmRelease installs the GPU Operator."""
    chart = ((spec(release).get("chart") or {}).get("spec") or {}).get("chart")
    return "gpu-operator" in (chart, metadata(release).get("name"))


CONDITIONS: Mapping[str, Condition] = {
    "talos": Condition("no GPU node runs Talos", lambda view: bool(view.talos)),
    "features": Condition("the cluster has no NodeFeature", lambda view: bool(view.all("NodeFeature"))),
    "programs": Condition("the cluster runs none of the GPU programs", lambda view: bool(view.programs())),
    "policy": Condition("the cluster has no ClusterPolicy", lambda view: bool(view.all("ClusterPolicy"))),
    "release": Condition(
        "no HelmRelease installs the GPU Operator", lambda view: any(map(is_of_the_operator, view.all("HelmRelease")))
    ),
    "discovery": Condition(
        "GPU Feature Discovery does not run", lambda view: bool(view.program_pods("GPU Feature Discovery"))
    ),
    "plugin": Condition(
        "no device plugin is installed", lambda view: bool(view.programs("device plugin", "GPU Operator"))
    ),
    "dra": Condition("the cluster has no DRA driver", lambda view: bool(view.programs("DRA driver"))),
    "claims": Condition("the cluster has no resource claim", lambda view: bool(view.all("ResourceClaim"))),
    "classes": Condition("no RuntimeClass has an NVIDIA handler", lambda view: bool(view.gpu_classes)),
    "power": Condition("PowerLimit does not run", lambda view: bool(view.programs("PowerLimit"))),
    "exporter": Condition("no exporter of GPU metrics is installed", lambda view: bool(view.programs(*EXPORTERS))),
    "plan": Condition("the option --plan is not set", lambda view: view.plan is not None),
    "plan-file": Condition("no capacity plan is known", lambda view: bool(view.planned_nodes or view.planned_slots)),
    "schematic": Condition(
        "no schematic of a plan is known", lambda view: bool(view.talos and view.plan and view.plan.schematics)
    ),
    "plan-alerts": Condition(
        "no plan with alerts is known",
        lambda view: any(one["kind"] == "PrometheusRule" for one in (view.plan.manifests if view.plan else ())),
    ),
}
