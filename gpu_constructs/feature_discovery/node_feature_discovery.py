"""Node Feature Discovery as a whole, with the names of all its options.

Source: the node-feature-discovery charts 0.17.3 and 0.19.0 bundled in NVIDIA/k8s-device-plugin@v0.18.2 and @v0.20.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from gpu_constructs.feature_discovery.components import (
    NfdComponent,
    NfdGarbageCollector,
    NfdMaster,
    NfdTopologyUpdater,
    NfdWorker,
)
from gpu_constructs.feature_discovery.options import (
    NfdNetworkPolicy,
    NfdOptions,
    NfdPodDisruptionBudget,
    NfdPodMonitor,
    NfdProbe,
    NfdServiceAccount,
)
from gpu_constructs.kube import fields

__all__ = [
    "NfdComponent",
    "NfdGarbageCollector",
    "NfdMaster",
    "NfdNetworkPolicy",
    "NfdPodDisruptionBudget",
    "NfdPodMonitor",
    "NfdProbe",
    "NfdServiceAccount",
    "NfdTopologyUpdater",
    "NfdWorker",
    "NodeFeatureDiscovery",
]


@dataclass(frozen=True, kw_only=True)
class NodeFeatureDiscovery(NfdOptions):
    """Options of Node Feature Discovery, as the chart of the device plugin installs it.

    Attributes:
        image: Another ``repository:tag`` or digest.
        image_pull_policy: ``IfNotPresent`` by default.
        image_pull_secrets: Names of Secrets for the registry of the image.
        fullname: Prefix of the names of its objects; the chart's by default.
        namespace: Namespace it lives in; the chart's by default. It must exist, and allow privileged pods.
        feature_gates: ``DisableAutoPrefix`` and ``NodeFeatureGroupAPI``, both off by default.
        priority_class_name: PriorityClass of all components; none by default, as in NFD's chart.
        master: Its master; None leaves it out, for an existing one.
        worker: Its worker; None leaves it out.
        gc: Its garbage collector; None leaves it out.
        topology_updater: Its topology updater; None leaves it out.
        prometheus: A PodMonitor; None makes none.

    Raises:
        GpuConstructsError: A name or image that Kubernetes would not take, an unknown feature gate, two
            components with one port in the node's network, nothing to install.
    """

    _NAME: ClassVar[str] = "node_feature_discovery"
    _NOT_TAKEN: ClassVar[dict[str, str]] = {
        "post_delete_cleanup": "the chart's hook is a Job that kubectl apply would start at once, and it takes every "
        "label of NFD off the nodes",
        "checksum_values_only": "pods carry the checksum of their file alone",
        "name_override": "set fullname",
        "fullname_override": "set fullname",
        "namespace_override": "set namespace",
    }

    image: str | None = None
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    image_pull_secrets: Sequence[str] = ()
    fullname: str | None = None
    namespace: str | None = None
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    priority_class_name: str | None = None
    master: NfdMaster | None = NfdMaster()  # noqa: RUF009
    worker: NfdWorker | None = NfdWorker()  # noqa: RUF009
    gc: NfdGarbageCollector | None = NfdGarbageCollector()  # noqa: RUF009
    topology_updater: NfdTopologyUpdater | None = None
    prometheus: NfdPodMonitor | None = None

    def _conflicts(self) -> Iterable[fields.Conflict]:
        yield not self.components, f"{self._NAME} must have a component; pass node_feature_discovery=False for none"

    @property
    def components(self) -> dict[str, NfdComponent]:
        """The components to install, by the names of their options."""
        every: dict[str, NfdComponent | None] = {
            "master": self.master,
            "worker": self.worker,
            "gc": self.gc,
            "topology_updater": self.topology_updater,
        }
        return {name: component for name, component in every.items() if component is not None}

    @property
    def denies_features_of_others(self) -> bool:
        """Whether its master drops the labels that programs other than its own workers publish."""
        restrictions = self.master.document().get("restrictions") if self.master is not None else None
        return bool((restrictions or {}).get("denyNodeFeatureLabels"))

    def has_gate(self, gate: str) -> bool:
        """Return whether a feature gate is on."""
        return self.feature_gates.get(gate, False)
