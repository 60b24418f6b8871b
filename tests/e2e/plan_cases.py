"""Cases in which a capacity plan is compared with a real cluster: nodes, objects, and what is updated."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from gpu_constructs import GpuInventory, plan_capacity
from gpu_constructs.capacity.plan import Plan

Manifest = dict[str, Any]
EXAMPLES = Path(__file__).parent / "plan_examples"
DEPLOYED = ("Deployment", "StatefulSet", "DaemonSet")
MAKES_PODS = (*DEPLOYED, "ReplicaSet", "Job", "Pod")


@dataclass(frozen=True)
class Case:
    """A cluster and what is applied to it.

    Attributes:
        nodes: Its GPU nodes, as ``GpuInventory.from_yaml`` reads them.
        manifests: The objects, all in the namespace ``default``.
        update: Name of the object whose image changes once all that always runs is there; empty for none.
        why: What a kept example is about.
        one_by_one: Whether each object is applied only when all earlier ones are where they go.
        expect: What a kept example ends with: ``fits``, the answer of the plan of everything; ``bound``, the pods with
            a node by name; ``update``, whether that ``waits`` or ``ends``; ``differs``, the class of an intended
            difference.
    """

    nodes: Sequence[Manifest]
    manifests: Sequence[Manifest]
    update: str = ""
    why: str = ""
    one_by_one: bool = False
    expect: Manifest = field(default_factory=dict)

    @property
    def inventory(self) -> GpuInventory:
        """The nodes, for the library."""
        return GpuInventory.from_yaml(yaml.dump({"nodes": list(self.nodes)}, Dumper=_Plain))

    def to_yaml(self) -> str:
        """Return the case as a file of ``plan_examples``."""
        kept: Manifest = {"why": self.why or "drawn", "nodes": list(self.nodes), "manifests": list(self.manifests)}
        kept |= {"update": self.update} if self.update else {}
        kept |= {"one_by_one": True} if self.one_by_one else {}
        kept |= {"expect": self.expect} if self.expect else {}
        return yaml.dump(kept, Dumper=_Plain, sort_keys=False, width=110)

    def stages(self) -> tuple[list[Manifest], list[Manifest]]:
        """Return what always runs, and everything.

        In the first stage an autoscaler has made the fewest replicas and is left out itself: it would work without
        metrics once every 15 seconds. In the second one it has made the most.
        """
        everything = [copy.deepcopy(one) for one in self.manifests]
        bounds = {
            (one["spec"]["scaleTargetRef"]["kind"], one["spec"]["scaleTargetRef"]["name"]): one["spec"]
            for one in everything
            if one["kind"] == "HorizontalPodAutoscaler"
        }
        lasting = [copy.deepcopy(one) for one in everything if not ends(one) and one["kind"] != _SCALER]
        for stage, key in ((lasting, "minReplicas"), (everything, "maxReplicas")):
            for one in stage:
                scaler = bounds.get((one["kind"], one["metadata"]["name"]))
                if scaler is not None:
                    one["spec"]["replicas"] = scaler.get(key, 1)
        return lasting, everything

    def plan(self, manifests: Sequence[Manifest]) -> Plan:
        """Return the plan of some of the objects on these nodes."""
        return plan_capacity(manifests, self.inventory)


_SCALER = "HorizontalPodAutoscaler"


def ends(manifest: Mapping[str, Any]) -> bool:
    """Check whether an object makes pods that end by themselves."""
    policy = manifest.get("spec", {}).get("restartPolicy", "Always")
    return manifest["kind"] == "Job" or (manifest["kind"] == "Pod" and policy != "Always")


def kept_cases() -> dict[str, Case]:
    """Return the kept examples by name."""
    found = {}
    for path in sorted(EXAMPLES.glob("*.yaml")):
        found[path.stem] = Case(**yaml.safe_load(path.read_text(encoding="utf-8")))
    return found


class _Plain(yaml.SafeDumper):
    """Writes no anchors, which a reader would have to follow."""

    def ignore_aliases(self, data: object) -> bool:
        return True
