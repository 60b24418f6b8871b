"""The options of Node Feature Discovery (NFD): `NodeFeatureDiscovery`, and one class for each component.

Source: the Helm charts of NFD 0.17.3 and 0.19.0 in NVIDIA/k8s-device-plugin@v0.18.2 and @v0.20.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
from gpu_constructs.records import dataclass, field

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
    """The options of Node Feature Discovery (NFD) in a ``DevicePluginChart`` or a ``NodeFeatureDiscoveryChart``.

    Attributes:
        image: Image as ``repository:tag`` or with a digest. None: the image of the NFD release.
        image_pull_policy: Pull policy of the image. ``IfNotPresent`` by default.
        image_pull_secrets: Names of Secrets for the registry of the image.
        fullname: Prefix of the names of the objects. None: a default prefix that the chart sets, such as
            ``node-feature-discovery``.
        namespace: Namespace of the objects. Its Pod Security level must be ``privileged``. ``DevicePluginChart``
            creates this namespace, but ``NodeFeatureDiscoveryChart`` does not. None: the namespace of the chart.
        feature_gates: Values of the feature gates ``DisableAutoPrefix`` and ``NodeFeatureGroupAPI``, by name. Both are
            off by default.
        priority_class_name: Name of the PriorityClass of all components. None: no PriorityClass, as in the Helm chart
            of NFD.
        master: Options of the master. None: no master. Use None if the cluster already has a master.
        worker: Options of the worker. None: no worker.
        gc: Options of the garbage collector. None: no garbage collector.
        topology_updater: Options of the topology updater. None: no topology updater.
        prometheus: Options of a PodMonitor. None: no PodMonitor.

    Raises:
        GpuConstructsError: Kubernetes would reject a name or image, a feature gate is unknown, two components use the
            same port in the network of the node, or there is no component.
    """

    _NAME: ClassVar[str] = "node_feature_discovery"
    _NOT_TAKEN: ClassVar[dict[str, str]] = {
        "post_delete_cleanup": "the hook of the chart is a Job that kubectl apply would start at once, and it "
        "removes all NFD labels of nodes",
        "checksum_values_only": "the checksum of a pod covers only its file",
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
    master: NfdMaster | None = field(default_factory=NfdMaster)
    worker: NfdWorker | None = field(default_factory=NfdWorker)
    gc: NfdGarbageCollector | None = field(default_factory=NfdGarbageCollector)
    topology_updater: NfdTopologyUpdater | None = None
    prometheus: NfdPodMonitor | None = None

    def _conflicts(self) -> Iterable[fields.Conflict]:
        yield not self.components, f"{self._NAME} must have a component. Pass node_feature_discovery=False for none"

    @property
    def components(self) -> dict[str, NfdComponent]:
        """Options of the components to install, by name: ``master``, ``worker``, ``gc`` or ``topology_updater``."""
        every: dict[str, NfdComponent | None] = {
            "master": self.master,
            "worker": self.worker,
            "gc": self.gc,
            "topology_updater": self.topology_updater,
        }
        return {name: component for name, component in every.items() if component is not None}

    @property
    def denies_features_of_others(self) -> bool:
        """Whether the master reads labels only from NodeFeature objects of the NFD worker.

        If True, the master ignores the labels in NodeFeature objects of other programs, such as GPU Feature Discovery.
        The value comes from ``restrictions.denyNodeFeatureLabels`` in the configuration file of the master.
        """
        restrictions = self.master.document().get("restrictions") if self.master is not None else None
        return bool((restrictions or {}).get("denyNodeFeatureLabels"))

    def has_gate(self, gate: str) -> bool:
        """Check whether the options turn on a feature gate of NFD, such as ``NodeFeatureGroupAPI``."""
        return self.feature_gates.get(gate, False)
