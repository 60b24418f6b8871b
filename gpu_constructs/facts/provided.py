"""Declarations of the effects that constructs have on a cluster, such as runtime classes, node labels and GPU slots.

A construct that makes such a declaration is a provider. The construct ``External`` declares what tools outside of the
app install. ``synth`` compares the declarations with the needs of the pods in an app. A slot is one unit of an extended
resource that a node advertises.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, runtime_checkable

from gpu_constructs.catalog.platforms import Platform
from gpu_constructs.catalog.sharing import Sharing
from gpu_constructs.records import dataclass, field

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
"""Software that runs on the GPU nodes of a cluster, such as ``device-plugin``, with its name for messages."""


def listed(components: Sequence[Component]) -> str:
    """Return the names of components for a sentence: ``the device plugin and GPU Feature Discovery``."""
    *first, last = (COMPONENTS[component] for component in components)
    return f"{', '.join(first)} and {last}" if first else last


GpuRuntime = Literal["runtime-class", "default", "cdi"]
"""Method by which containers get their GPUs: a RuntimeClass in the pod spec, the default runtime, or CDI."""


_PLACES_PODS = ("nodeSelector", "affinity", "tolerations")


def placement_of(pod_spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a pod spec that selects nodes: ``nodeSelector``, ``affinity`` and ``tolerations``."""
    return {key: pod_spec[key] for key in _PLACES_PODS if pod_spec.get(key)}


def is_among(name: str, offered: Iterable[str]) -> bool:
    """Check whether a list of names and patterns contains a name.

    An entry that ends with ``*`` is a pattern. For example, ``nvidia.com/mig*`` matches ``nvidia.com/mig.capable``.

    Args:
        name: Name, such as a node label or an extended resource.
        offered: Names and patterns.
    """
    return any(name == offer or (offer.endswith("*") and name.startswith(offer[:-1])) for offer in offered)


_Construct = TypeVar("_Construct")


@dataclass(frozen=True, kw_only=True)
class GpuNodes:
    """Labels and taints of GPU nodes that a construct configures.

    Attributes:
        labels: Labels of the nodes; none by default.
        taints: Taints of the nodes, as in a Kubernetes manifest; none by default.
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    taints: Sequence[Mapping[str, str]] = ()


@dataclass(frozen=True, kw_only=True)
class GpuOffer:
    """One configuration of a device plugin, which determines the extended resources that nodes advertise.

    Attributes:
        sharing: Sharing settings: how pods share the GPUs, and the number of slots.
        mig_strategy: MIG strategy of the device plugin; ``none`` by default.
        config: Value of the node label ``nvidia.com/device-plugin.config`` that selects the configuration. Empty (the
            default) if there is only one configuration.
        is_default: Whether the configuration applies to nodes without that label; True by default.
        pod_spec: Fields of the device plugin's pod spec that select nodes: ``nodeSelector``, ``affinity`` and
            ``tolerations``. None (the default) if these fields are not known.
        names_mig_attributes: Whether resource names contain the attributes of MIG devices, such as ``.me``, if the MIG
            strategy is ``mixed``; True by default.
    """

    sharing: Sharing
    mig_strategy: Literal["none", "single", "mixed"] = "none"
    config: str = ""
    is_default: bool = True
    pod_spec: Mapping[str, Any] | None = None
    names_mig_attributes: bool = True


@dataclass(frozen=True, kw_only=True)
class PowerCap:
    """Power limits that a construct sets for the GPUs of all or some nodes.

    Attributes:
        limits: Power limits by shell pattern for the board name, such as ``*RTX 4090*``. The first pattern that matches
            a board applies. A limit is a power in watts (``300``), a share of the default limit of the board (``80%``),
            or ``default``.
        node_selector: Labels that the nodes have; by default the power limits apply to all nodes.
    """

    limits: Mapping[str, str]
    node_selector: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class DeviceGuard:
    """An admission policy that rejects pods with access to GPUs that the kubelet does not allocate to them.

    Attributes:
        variable: Name of the environment variable that selects the GPUs that a container can access.
        harmless_values: Values of the environment variable that the policy admits in all pods.
        runtime_classes: Names of RuntimeClasses. ``requires_gpu`` and ``forbids_env_from`` apply only to pods with one
            of these classes.
        requires_gpu: Whether the policy rejects a pod that requests no GPU, and a pod that sets ``nodeName``.
        forbids_env_from: Whether the policy rejects a container that has ``envFrom`` and does not set the environment
            variable.
        excluded_namespaces: Namespaces in which the policy does not apply.
        allow_label: Label that exempts a namespace if its value is ``true``.
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
    """The effects of a construct on the cluster, such as node labels, for the checks of ``synth``.

    Every attribute is empty, None or False by default.

    Attributes:
        node_labels: Labels that the construct publishes on nodes. A key that ends with ``*`` stands for all keys with
            the same start.
        nfd_labels: Labels that the Node Feature Discovery of the construct publishes. None if the construct does not
            install Node Feature Discovery, or if the labels are not known.
        runtime_classes: Names of RuntimeClass objects that tools outside of the app create.
        namespaces: Names of namespaces that tools outside of the app create.
        objects: Names of further objects that tools outside of the app create, by kind. A name is ``namespace/name``,
            or ``name`` for all namespaces. A name that ends with ``*`` stands for all names with the same start.
        gpu_resources: Extended resources that the construct advertises on nodes, such as ``nvidia.com/gpu.shared``,
            each with the sharing settings of its GPUs.
        other_gpu_resources: Extended resources with which device plugins outside of the app advertise GPUs. The sharing
            of these GPUs is not known.
        gpu_offers: Configurations of the device plugin that the construct runs; empty if they are not known.
        mig_strategy: MIG strategy that the construct sets for all configurations of the device plugin. None if the
            construct sets none.
        has_mig_manager: Whether the construct runs a MIG manager, which creates MIG devices as the node label
            ``nvidia.com/mig.config`` states.
        power_caps: Power limits that the construct sets for GPUs.
        platform: Platform of the cluster, from the options of the construct. None without such an option.
        is_workload: Whether the construct is a workload that only uses GPUs. If so, its ``platform`` is only an
            assumption about the cluster.
        components: Components that the construct runs on GPU nodes, such as ``device-plugin``.
        is_alone: Whether ``synth`` reports each other construct that also runs one of the ``components``.
        needs: Components that the app must also have, each with an instruction for the message.
        refuses: Components that the app must not have, each with the reason for the message.
        stages_driver_in: Folder on the nodes to which the construct copies the NVIDIA driver files for the GPU
            Operator.
        driver_install_dir: Folder on the nodes in which the GPU Operator searches for the NVIDIA driver files.
        gpu_nodes: Labels and taints of the GPU nodes that the construct configures.
        wants_node_labels: Node labels that the construct needs, as ``key=value``, each with the effect if the label is
            missing.
        unwanted_node_labels: Node labels that prevent the construct from working, as ``key=value``, each with the
            reason.
        privileged_namespaces: Namespaces of pods that the GPU Operator, or a DaemonSet of the construct, creates in the
            cluster. These pods need privileges or host paths.
        later_tolerations: Tolerations of the pods that the GPU Operator creates on GPU nodes, as in a manifest.
        runs_on: For each DaemonSet of the construct, the fields of its pod spec that select GPU nodes:
            ``nodeSelector``, ``affinity`` and ``tolerations``.
        makes: API group, kind, namespace and name of objects of the construct. ``synth`` reports two constructs
            that have such an object in common.
        profiles_gpus: Whether the construct exports DCGM profiling metrics, which only one process on a node can
            collect at a time.
        gpu_runtime: Method by which containers get their GPUs. None if the construct neither sets nor declares it.
        device_guard: Admission policy that the construct emits.
        assumed_sharing: Sharing settings that the user passes to the construct. They must equal those of the device
            plugin.
        names_one_pod: Whether the metrics of the construct name only one pod for each GPU, because the user passes no
            sharing settings.
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
        """Pod Security level of namespaces without a Pod Security label. None if the level is not known."""
        return None if self.platform is None or self.is_workload else self.platform.pod_security_default

    def publishes(self, label: str) -> bool:
        """Check whether the construct publishes a label on nodes."""
        return is_among(label, self.node_labels) or (self.nfd_labels is not None and self.nfd_labels.publishes(label))


@runtime_checkable
class Provider(Protocol):
    """A construct that declares its effects on the cluster in the attribute ``provides``."""

    provides: Provided


def providers_in(constructs: Iterable[_Construct]) -> tuple[list[_Construct], list[Provided]]:
    """Return a pair of lists: the constructs that declare their effects on the cluster, and these declarations.

    The lists have the same order. If several workloads have equal declarations, the lists contain only the first of
    these workloads.
    """
    providers: list[_Construct] = []
    provided: list[Provided] = []
    for construct in constructs:
        # An isinstance check against a protocol is slow.
        says = getattr(construct, "provides", None)
        if isinstance(says, Provided) and (not says.is_workload or says not in provided):
            providers.append(construct)
            provided.append(says)
    return providers, provided
