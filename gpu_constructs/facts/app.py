"""Data that the library derives from the manifests of the user's app, for the checks and the capacity plan.

A provider is a construct that declares its effects on the cluster, such as the extended resources that it advertises. A
slot is one unit of an extended resource.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from itertools import chain
from typing import Any

from gpu_constructs.catalog.inventory import GpuInventory
from gpu_constructs.catalog.nfd_labels import is_of_a_source
from gpu_constructs.catalog.sharing import Sharing
from gpu_constructs.facts import publishing, selectors
from gpu_constructs.facts.provided import Component, GpuNodes, GpuRuntime, Provided, is_among
from gpu_constructs.facts.readable import (
    Manifest,
    amounts,
    at,
    is_gpu_name,
    kind_of,
    labels_of,
    members,
    name_of,
    namespace_of,
    quantity,
)
from gpu_constructs.facts.release_workloads import ReleaseWorkloads, with_release_workloads
from gpu_constructs.kube.pod_specs import (
    containers,
    containers_in_turn,
    most_at_once,
    node_labels_required,
    pod_spec_paths,
)
from gpu_constructs.records import dataclass, field, regex

_CDI = regex(r"cdi-(?:cri|annotations)")


@dataclass(frozen=True)
class Ask:
    """The request of one container for one GPU resource.

    Attributes:
        pod: Pod spec that contains the container.
        container: Container in the pod spec.
        resource: Name of the extended resource, such as ``nvidia.com/gpu``.
        amount: Requested amount, as the manifest states it.
        count: Requested amount, rounded down to a whole number; 1 if it is less than 1 or not a number.
    """

    pod: Pod
    container: Manifest
    resource: str
    amount: str
    count: int

    @property
    def name(self) -> object:
        """Name of the container."""
        return self.container.get("name")


@dataclass(frozen=True)
class Pod:
    """A pod spec, and the object that contains it, for example a Deployment.

    Attributes:
        index: Index of the object in ``Facts.objects``.
        manifest: Object that contains the pod spec.
        spec: Pod spec.
        metadata: Metadata of the pod template, such as its labels.
        asks: GPU requests of the containers, one for each container and resource.
    """

    index: int
    manifest: Manifest
    spec: Manifest
    metadata: Manifest = field(default_factory=dict)
    asks: list[Ask] = field(default_factory=list)

    @property
    def is_for_each_node(self) -> bool:
        """Whether the object with the pod spec is a DaemonSet, which creates a pod on each node."""
        return bool(self.manifest["kind"] == "DaemonSet")

    def lasting(self) -> list[Ask]:
        """Return the GPU requests of the containers that run until the pod ends, including sidecars."""
        lasting = {id(container) for container, passes in containers_in_turn(self.spec) if not passes}
        return [ask for ask in self.asks if id(ask.container) in lasting]

    def counts(self) -> dict[str, int]:
        """Return the number of GPUs that the scheduler reserves for one pod, by resource."""
        held: dict[str, dict[int, Decimal]] = {}
        for ask in self.asks:
            held.setdefault(ask.resource, {})[id(ask.container)] = Decimal(ask.count)
        return {resource: int(most_at_once(self.spec, each)) for resource, each in held.items()}


def _pods(index: int, manifest: Manifest) -> Iterator[Pod]:
    """Yield a ``Pod`` for each pod spec that an object contains."""
    for path in pod_spec_paths(manifest):
        holder: Any = manifest
        for step in path[:-1]:
            holder = holder[step]
        metadata = holder.get("metadata") if isinstance(holder, Mapping) else None
        yield Pod(index, manifest, holder[path[-1]], metadata or {})


@dataclass(frozen=True)
class Facts:
    """The manifests of an app, and the data that the checks and the capacity plan derive from these manifests.

    Attributes:
        manifests: All manifests of the app.
        provided: Effects of constructs on the cluster, one ``Provided`` for each construct that declares its effects.
        inventory: GPU nodes of the cluster; None if the user does not declare the nodes.
    """

    manifests: Sequence[Manifest]
    provided: Sequence[Provided] = ()
    inventory: GpuInventory | None = None

    @cached_property
    def _expanded(self) -> tuple[list[Manifest], list[int], list[ReleaseWorkloads], int]:
        return with_release_workloads(self.manifests)

    @property
    def objects(self) -> list[Manifest]:
        """Objects of the app, with the workloads of its Helm releases at the end.

        Each item of a List is a separate object. Values of a wrong type are absent or empty.
        """
        return self._expanded[0]

    @property
    def written(self) -> list[Manifest]:
        """Objects of the app without the workloads of Helm releases."""
        return self.objects[: self._expanded[3]]

    @property
    def origins(self) -> list[int]:
        """For each object in ``objects``, the index in ``manifests`` of the manifest that contains or creates it."""
        return self._expanded[1]

    @property
    def releases(self) -> list[ReleaseWorkloads]:
        """Helm releases of the app, with their workloads."""
        return self._expanded[2]

    @cached_property
    def pods(self) -> list[Pod]:
        """All pod specs in the objects of the app, one entry for each pod spec."""
        return self._with_asks(pod for index, manifest in enumerate(self.objects) for pod in _pods(index, manifest))

    @cached_property
    def completed_pods(self) -> list[Pod]:
        """Pod specs of TrainJobs (Kubeflow Trainer).

        These pod specs contain only resources, because a TrainingRuntime defines the other fields.
        """
        found = []
        for index, job in self.of_kind(("trainer.kubeflow.org", "TrainJob")):
            given = at(job, "spec.trainer").get("resourcesPerNode")
            container = {"name": "trainer.resourcesPerNode", "resources": given or {}}
            found.append(Pod(index, job, {"containers": [container]}))
        return self._with_asks(found)

    def _with_asks(self, pods: Iterable[Pod]) -> list[Pod]:
        """Add the GPU requests of the containers to the attribute ``asks`` of each pod. Return the pods."""
        made = list(pods)
        for pod in made:
            for container in containers(pod.spec):
                if container.get("resources"):
                    pod.asks.extend(self._asks(pod, container))
        return made

    def _asks(self, pod: Pod, container: Manifest) -> Iterator[Ask]:
        """Yield an ``Ask`` for each GPU resource that a container of a pod requests."""
        for resource, amount in {**amounts(container, "requests"), **amounts(container, "limits")}.items():
            if self.is_gpu(resource) and str(amount) != "0":
                count = quantity(amount)
                yield Ask(pod, container, resource, str(amount), int(count) if count and count >= 1 else 1)

    @cached_property
    def gpu_pods(self) -> list[Pod]:
        """Pod specs in which a container requests GPUs."""
        return [pod for pod in self.pods if pod.asks]

    @cached_property
    def asks(self) -> list[Ask]:
        """GPU requests of all containers in the app."""
        return [ask for pod in self.gpu_pods for ask in pod.asks]

    @cached_property
    def gpu_containers(self) -> list[tuple[Pod, Manifest]]:
        """Containers that request GPUs, each with its pod spec. Each container occurs once."""
        return list({id(ask.container): (ask.pod, ask.container) for ask in self.asks}.values())

    @cached_property
    def offered(self) -> list[str]:
        """Names of the extended resources that device plugins of the app advertise on nodes."""
        return sorted({resource for offer in self.provided for resource in offer.gpu_resources})

    @cached_property
    def declared(self) -> frozenset[str]:
        """GPU resources of device plugins outside of the app, as ``External(gpu_resources=...)`` declares them."""
        return frozenset(resource for offer in self.provided for resource in offer.other_gpu_resources)

    def is_gpu(self, resource: str) -> bool:
        """Check whether an extended resource stands for GPUs, slots of GPUs, or MIG devices."""
        return is_gpu_name(resource) or resource in self.offered or resource in self.declared

    @cached_property
    def kinds(self) -> list[tuple[str, str]]:
        """API group and kind of each object in ``objects``."""
        return [kind_of(manifest) for manifest in self.objects]

    def of_kind(self, *kinds: tuple[str, str]) -> Iterator[tuple[int, Manifest]]:
        """Yield the objects of the given kinds, each with its index in ``objects``."""
        for kind in kinds:
            for index in self._by_kind.get(kind, ()):
                yield index, self.objects[index]

    @cached_property
    def _by_kind(self) -> Mapping[tuple[str, str], list[int]]:
        """Indices of the objects by API group and kind."""
        by_kind: dict[tuple[str, str], list[int]] = defaultdict(list)
        for index, kind in enumerate(self.kinds):
            by_kind[kind].append(index)
        return by_kind

    @cached_property
    def limit_ranges(self) -> Mapping[str, list[tuple[int, Manifest]]]:
        """Pairs by namespace: index in ``objects`` of a LimitRange, and item of its ``spec.limits``."""
        found: dict[str, list[tuple[int, Manifest]]] = defaultdict(list)
        for index, manifest in self.of_kind(("", "LimitRange")):
            limits = members(at(manifest, "spec").get("limits"))
            found[namespace_of(manifest)] += [(index, limit) for limit in limits]
        return found

    @cached_property
    def quotas(self) -> Mapping[str, list[tuple[int, str, object]]]:
        """Limits of the ResourceQuotas without scopes, by namespace.

        Each limit is a tuple: index of the ResourceQuota in ``objects``, key such as ``requests.cpu``, and amount.
        """
        found: dict[str, list[tuple[int, str, object]]] = defaultdict(list)
        for index, manifest in self.of_kind(("", "ResourceQuota")):
            spec = at(manifest, "spec")
            if not spec.get("scopes") and not spec.get("scopeSelector"):
                found[namespace_of(manifest)] += [(index, *one) for one in at(spec, "hard").items()]
        return found

    @cached_property
    def gpu_nodes(self) -> list[tuple[int, GpuNodes]]:
        """Pairs: index in ``provided`` of a construct that configures nodes, and labels and taints of these nodes."""
        return [(index, offer.gpu_nodes) for index, offer in enumerate(self.provided) if offer.gpu_nodes is not None]

    @cached_property
    def node_labels(self) -> frozenset[str]:
        """Keys of the labels that constructs, NodeFeatureRules and pods of the app publish on nodes.

        A final ``*`` in a key stands for any text. The set omits the labels in ``Provided.nfd_labels`` and
        ``Provided.gpu_nodes``.
        """
        published = {label for offer in self.provided for label in offer.node_labels}
        published.update(publishing.labels_of_rules(manifest for _, manifest in self.of_kind(*publishing.KINDS)))
        pods = [pod for pod in self.pods if not self._is_declared(pod.manifest)]
        published.update(label for pod in pods for label in publishing.labels_of_pod(pod.spec))
        return frozenset(published)

    def publishes(self, label: str) -> bool:
        """Check whether the app publishes a node label, or declares that software outside of the app publishes it."""
        return is_among(label, self.node_labels) or any(offer.publishes(label) for offer in self.provided)

    @cached_property
    def stated_node_labels(self) -> Mapping[str, frozenset[str]]:
        """Values of labels of GPU nodes, by label key, from constructs that configure nodes and from the inventory."""
        nodes = [gpu_nodes.labels for _, gpu_nodes in self.gpu_nodes]
        nodes += [node.labels for node in (self.inventory.nodes if self.inventory is not None else ())]
        stated: dict[str, set[str]] = defaultdict(set)
        for label, value in chain.from_iterable(labels.items() for labels in nodes):
            stated[label].add(value)
        return {label: frozenset(values) for label, values in stated.items()}

    @cached_property
    def selected_labels(self) -> frozenset[str]:
        """Node labels that pods of the app select by ``nodeSelector`` or a required node affinity."""
        required = (alternatives for pod in self.pods for alternatives in node_labels_required(pod.spec))
        return frozenset(chain.from_iterable(required))

    @cached_property
    def unpublished_labels(self) -> frozenset[str]:
        """Labels of Node Feature Discovery that pods of the app select, but that the app does not publish."""
        if all(offer.nfd_labels is None for offer in self.provided):
            return frozenset()
        return frozenset(one for one in self.selected_labels if is_of_a_source(one) and not self.publishes(one))

    def _is_declared(self, manifest: Manifest) -> bool:
        """Check whether an object may belong to the Node Feature Discovery that a construct of this library installs.

        Such a construct already declares its node labels in ``Provided.nfd_labels``.
        """
        is_ours = labels_of(manifest).get("app.kubernetes.io/managed-by") == "cdk8s"
        return is_ours and bool(self.bringing("node-feature-discovery"))

    def bringing(self, component: Component) -> list[int]:
        """Return the indices in ``provided`` of the constructs that install a component, such as ``gpu-operator``."""
        return [index for index, offer in enumerate(self.provided) if component in offer.components]

    @cached_property
    def nvidia_runtime_classes(self) -> list[str]:
        """Names of the RuntimeClass objects in the app whose handler is ``nvidia``."""
        return [
            name_of(manifest)
            for _, manifest in self.of_kind(("node.k8s.io", "RuntimeClass"))
            if manifest.get("handler") == "nvidia"
        ]

    @cached_property
    def gpu_runtime(self) -> GpuRuntime | None:
        """Method by which containers get access to their GPUs; None if it is not known.

        The declarations of the constructs take precedence over the objects of the app. If nodes use different methods,
        the result is the method that requires the fewest fields in a pod spec.
        """
        stated = {offer.gpu_runtime for offer in self.provided}
        # The way that requires the least from pods comes first, because nodes can use different ways.
        orderly: tuple[GpuRuntime, ...] = ("default", "cdi", "runtime-class")
        seen: GpuRuntime | None = "runtime-class" if self.nvidia_runtime_classes else None
        return next((one for one in orderly if one in stated), "cdi" if self._hands_out_by_cdi else seen)

    def runtime_class_is_injected(self, manifest: Manifest) -> bool:
        """Check whether an admission policy in the app can set the RuntimeClass of the pods of an object."""
        # A cluster-scoped object, such as a ClusterTrainingRuntime, has no namespace.
        namespace = None if manifest["kind"].startswith("Cluster") else namespace_of(manifest)
        return any(selectors.may_hold_in(one, namespace) for one in self._injections)

    @cached_property
    def _injections(self) -> list[selectors.Selectors]:
        """Namespace selectors of each admission policy in the app that sets the RuntimeClass of pods."""
        bindings = [manifest for _, manifest in self.of_kind(selectors.BINDING)]
        return [
            selectors.selectors(manifest, bindings)
            for _, manifest in self.of_kind(*selectors.KINDS)
            if selectors.sets_runtime_class(manifest)
        ]

    @cached_property
    def _hands_out_by_cdi(self) -> bool:
        """Whether a device plugin in the app passes GPUs to containers through CDI."""
        agents = [container for pod in self.pods if pod.is_for_each_node for container in containers(pod.spec)]
        variables = [variable for container in agents for variable in container.get("env") or ()]
        strategies = [one.get("value") for one in variables if one.get("name") == "DEVICE_LIST_STRATEGY"]
        files = [text for _, manifest in self.of_kind(("", "ConfigMap")) for text in at(manifest, "data").values()]
        strategies += [text for text in files if "deviceListStrategy" in str(text)]
        return any(_CDI.search(str(strategy)) for strategy in strategies)

    def sharing_of(self, resource: str) -> tuple[int, Sharing] | None:
        """Return a pair: the index in ``provided`` of the construct that shares a resource, and its sharing settings.

        Return None if no construct shares the resource.
        """
        return self._shared.get(resource)

    @cached_property
    def _shared(self) -> dict[str, tuple[int, Sharing]]:
        """For each shared resource: index in ``provided`` of the construct that shares it, and its sharing settings."""
        shared: dict[str, tuple[int, Sharing]] = {}
        for provider, offer in enumerate(self.provided):
            for resource, sharing in offer.gpu_resources.items():
                if sharing.strategy != "none":
                    shared.setdefault(resource, (provider, sharing))
        return shared

    def is_exclusive_somewhere(self, resource: str) -> bool:
        """Check whether a device plugin in the app advertises the given extended resource without sharing."""
        return any(
            offer.gpu_resources[resource].strategy == "none"
            for offer in self.provided
            if resource in offer.gpu_resources
        )

    def slots(self, resource: str) -> int | None:
        """Return how many slots of a resource, such as ``nvidia.com/gpu``, the nodes of the inventory advertise.

        Return None if the number is not known.
        """
        sharings = [offer.gpu_resources[resource] for offer in self.provided if resource in offer.gpu_resources]
        if self.inventory is None or not sharings or not resource.startswith("nvidia.com/gpu"):
            return None
        return max(self.inventory.slots(sharing) for sharing in sharings)
