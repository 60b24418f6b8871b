"""What a cluster offers to pods: runtime classes, node labels, namespaces, GPU slots.

Constructs say it of themselves, ``External`` says it of what is installed some other way, and ``synth``
compares it with what the pods of an app ask for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, runtime_checkable

from gpu_constructs.catalog.platforms import Platform
from gpu_constructs.catalog.sharing import Sharing

if TYPE_CHECKING:
    from gpu_constructs.catalog.nfd_labels import NfdLabels

Component = Literal[
    "dcgm-exporter",
    "device-plugin",
    "gpu-feature-discovery",
    "gpu-operator",
    "node-feature-discovery",
    "validation-bridge",
]
COMPONENTS: Mapping[Component, str] = {
    "dcgm-exporter": "the DCGM exporter",
    "device-plugin": "the device plugin",
    "gpu-feature-discovery": "GPU Feature Discovery",
    "gpu-operator": "the GPU Operator",
    "node-feature-discovery": "Node Feature Discovery",
    "validation-bridge": "the validation bridge",
}
"""What runs on the GPU nodes of a whole cluster, and what it is called in a sentence."""


def listed(components: Sequence[Component]) -> str:
    """Return what components are called, joined for a sentence."""
    *first, last = (COMPONENTS[component] for component in components)
    return f"{', '.join(first)} and {last}" if first else last


GpuRuntime = Literal["runtime-class", "default", "cdi"]
"""How containers get at their GPUs: by a runtime class that pods name, by the nodes' default runtime, by CDI alone."""


_PLACES_PODS = ("nodeSelector", "affinity", "tolerations")


def placement_of(pod_spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of a pod spec that decide which nodes take the pod."""
    return {key: pod_spec[key] for key in _PLACES_PODS if pod_spec.get(key)}


def is_among(name: str, offered: Iterable[str]) -> bool:
    """Check whether a name is offered; a trailing star stands for the rest of it."""
    return any(name == offer or (offer.endswith("*") and name.startswith(offer[:-1])) for offer in offered)


_Construct = TypeVar("_Construct")


@dataclass(frozen=True, kw_only=True)
class GpuNodes:
    """What the configuration of nodes with GPUs gives them.

    Attributes:
        labels: Their labels.
        taints: Their taints, as Kubernetes writes them.
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Mapping[str, str]] = ()


@dataclass(frozen=True, kw_only=True)
class GpuOffer:
    """How a device plugin advertises the GPUs of the nodes that it has one configuration for.

    Attributes:
        sharing: How pods share them.
        mig_strategy: How MIG devices are called.
        config: Value of the node label ``nvidia.com/device-plugin.config`` that chooses the configuration; empty
            where there is one only.
        is_default: Whether it serves the nodes whose label chooses none.
        pod_spec: What decides which nodes its pods run on, as Kubernetes writes it: ``nodeSelector``, ``affinity`` and
            ``tolerations``. None where nothing is known of them.
        names_mig_attributes: Whether MIG devices with attributes have them in their resource name under ``mixed``.
    """

    sharing: Sharing
    mig_strategy: Literal["none", "single", "mixed"] = "none"
    config: str = ""
    is_default: bool = True
    pod_spec: Mapping[str, Any] | None = None
    names_mig_attributes: bool = True


@dataclass(frozen=True, kw_only=True)
class PowerCap:
    """Power limits that something holds the GPUs of some nodes at.

    Attributes:
        limits: Watts (``300``), a share of the board's default (``80%``) or ``default``, by a shell pattern for the
            board's name; the first that fits counts.
        node_selector: Labels of the nodes.
    """

    limits: Mapping[str, str]
    node_selector: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class DeviceGuard:
    """What an admission policy refuses of pods that would see GPUs beyond those allocated to them.

    Attributes:
        variable: The variable that shows a container its GPUs.
        harmless_values: Values of it that every container may have.
        runtime_classes: Names of the classes whose pods it looks at more closely.
        requires_gpu: Whether such a pod must ask for a GPU, and must not name its node.
        forbids_env_from: Whether its containers must set the variable themselves to have ``envFrom``.
        excluded_namespaces: Namespaces it leaves alone.
        allow_label: A namespace with this label set to ``true`` is left alone too.
    """

    variable: str
    harmless_values: Sequence[str]
    runtime_classes: Sequence[str]
    requires_gpu: bool
    forbids_env_from: bool
    excluded_namespaces: Sequence[str]
    allow_label: str


@dataclass(frozen=True, kw_only=True)
class Provided:
    """What one construct adds to the cluster, beyond the objects it emits.

    Attributes:
        node_labels: Labels it publishes on nodes; a trailing ``*`` stands for the rest of the key.
        nfd_labels: Labels that its own Node Feature Discovery publishes besides, where its configuration is known.
        runtime_classes: RuntimeClass objects that something else creates.
        namespaces: Namespaces that something else creates.
        objects: Further objects that something else creates: their names by kind, as ``namespace/name`` or, in
            whichever namespace, ``name``; a trailing ``*`` stands for the rest of the name.
        gpu_resources: Resources it advertises on nodes, with the sharing behind them.
        other_gpu_resources: Names under which other plugins advertise GPUs, of whose sharing nothing is known.
        gpu_offers: The same by the configuration that a node has, where it knows them.
        mig_strategy: How it calls MIG devices whatever a configuration says that is not known; None if nothing sets it.
        has_mig_manager: Whether it divides GPUs as the node label ``nvidia.com/mig.config`` says.
        power_caps: Power limits that it holds GPUs at.
        platform: What it was made for. None where it is the same everywhere.
        is_workload: Whether it only uses GPUs, so that all it says is what it takes for granted.
        components: What it runs on the GPU nodes of the whole cluster.
        is_alone: Whether none of its components may be there a second time, from another construct.
        needs: Components that must be there beside it, each with what to do where they are not.
        refuses: Components that must not be there beside it, each with why.
        stages_driver_in: The folder it copies the driver's files to, for an operator that looks for them there.
        driver_install_dir: The folder an operator looks for them in.
        gpu_nodes: Nodes with GPUs, where it configures some.
        wants_node_labels: Node labels, ``key=value``, that somebody must set for it to work, each with what
            else happens.
        unwanted_node_labels: Node labels, ``key=value``, with which it cannot work, each with why.
        privileged_namespaces: Namespaces whose pods it brings later, host paths and privileged ones among them.
        later_tolerations: What those of its later pods tolerate that are for GPU nodes, as Kubernetes writes it.
        runs_on: For each DaemonSet on GPU nodes what decides which nodes take its pods, as Kubernetes writes it:
            ``nodeSelector``, ``affinity`` and ``tolerations``.
        makes: API group, kind, namespace and name of each object that it makes, where two of its sort would make the
            same ones.
        profiles_gpus: Whether it profiles the GPUs of those nodes: only one can at a time.
        gpu_runtime: How containers get at their GPUs, where it decides or knows it.
        device_guard: Which pods it refuses, where it does.
        assumed_sharing: How it was told that the device plugin of its nodes shares GPUs. None: nothing was said.
        names_one_pod: Whether its metrics name one pod of a GPU, because nothing was said of sharing.
    """

    node_labels: Sequence[str] = ()
    nfd_labels: NfdLabels | None = None
    runtime_classes: Sequence[str] = ()
    namespaces: Sequence[str] = ()
    objects: Mapping[str, Sequence[str]] = field(default_factory=dict)
    gpu_resources: Mapping[str, Sharing] = field(default_factory=dict)
    other_gpu_resources: Sequence[str] = ()
    gpu_offers: Sequence[GpuOffer] = ()
    mig_strategy: Literal["none", "single", "mixed"] | None = None
    has_mig_manager: bool = False
    power_caps: Sequence[PowerCap] = ()
    platform: Platform | None = None
    is_workload: bool = False
    components: Sequence[Component] = ()
    is_alone: bool = False
    needs: Mapping[Component, str] = field(default_factory=dict)
    refuses: Mapping[Component, str] = field(default_factory=dict)
    stages_driver_in: str | None = None
    driver_install_dir: str | None = None
    gpu_nodes: GpuNodes | None = None
    wants_node_labels: Mapping[str, str] = field(default_factory=dict)
    unwanted_node_labels: Mapping[str, str] = field(default_factory=dict)
    privileged_namespaces: Sequence[str] = ()
    later_tolerations: Sequence[Mapping[str, Any]] | None = None
    runs_on: Sequence[Mapping[str, Any]] = ()
    makes: Collection[tuple[str, str, str, str]] = ()
    profiles_gpus: bool = False
    gpu_runtime: GpuRuntime | None = None
    device_guard: DeviceGuard | None = None
    assumed_sharing: Sharing | None = None
    names_one_pod: bool = False

    @property
    def pod_security_default(self) -> str | None:
        """The Pod Security level of namespaces that state none, where it is known."""
        return None if self.platform is None or self.is_workload else self.platform.pod_security_default

    def publishes(self, label: str) -> bool:
        """Check whether it publishes a label on nodes."""
        return is_among(label, self.node_labels) or (self.nfd_labels is not None and self.nfd_labels.publishes(label))


@runtime_checkable
class Provider(Protocol):
    """A construct that says what it provides."""

    provides: Provided


def providers_in(constructs: Iterable[_Construct]) -> tuple[list[_Construct], list[Provided]]:
    """Return the constructs that say what they provide, and what; of workloads that assume the same, the first."""
    providers: list[_Construct] = []
    provided: list[Provided] = []
    for construct in constructs:
        # Asked by isinstance, a protocol looks itself over each time, which costs more than all else here.
        says = getattr(construct, "provides", None)
        if isinstance(says, Provided) and (not says.is_workload or says not in provided):
            providers.append(construct)
            provided.append(says)
    return providers, provided
