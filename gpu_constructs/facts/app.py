"""What the rules look at, read once from the manifests of an app."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
    readable,
)
from gpu_constructs.kube.pod_specs import containers, node_labels_required, pod_spec_paths

_CDI = re.compile(r"cdi-(?:cri|annotations)")


@dataclass(frozen=True)
class Ask:
    """A container's request for GPUs.

    Attributes:
        pod: The pod.
        container: The container.
        resource: What it asks for.
        amount: How many, as it is written.
        count: The same as a number; 1 where it is none.
    """

    pod: Pod
    container: Manifest
    resource: str
    amount: str
    count: int

    @property
    def name(self) -> object:
        """The name of the container."""
        return self.container.get("name")


@dataclass(frozen=True)
class Pod:
    """One pod spec of one object.

    Attributes:
        index: Index of the object.
        manifest: The object.
        spec: The pod spec.
        metadata: What stands beside it.
        asks: What its containers hold, by container and resource.
    """

    index: int
    manifest: Manifest
    spec: Manifest
    metadata: Manifest = field(default_factory=dict)
    asks: list[Ask] = field(default_factory=list)

    @property
    def is_for_each_node(self) -> bool:
        """Whether every node gets one."""
        return bool(self.manifest["kind"] == "DaemonSet")

    def lasting(self) -> list[Ask]:
        """Return what its containers hold at once. An init container that ends hands its GPUs on to the others."""
        lasting = {id(container) for container, passes in _in_turn(self.spec) if not passes}
        return [ask for ask in self.asks if id(ask.container) in lasting]

    def counts(self) -> dict[str, int]:
        """Return how many of each resource the scheduler sets aside for the pod."""
        held: dict[str, dict[int, Decimal]] = {}
        for ask in self.asks:
            held.setdefault(ask.resource, {})[id(ask.container)] = Decimal(ask.count)
        return {resource: int(most_at_once(self.spec, each)) for resource, each in held.items()}


def _in_turn(pod_spec: Manifest) -> Iterator[tuple[Manifest, bool]]:
    """Yield the containers of a pod, each with whether it ends before those behind it start."""
    first = len(pod_spec.get("initContainers") or ())
    for index, container in enumerate(containers(pod_spec)):
        passes = index < first and container.get("restartPolicy") != "Always"
        yield container, passes


def most_at_once(pod_spec: Manifest, held: Mapping[int, Decimal]) -> Decimal:
    """Return the most that the containers of a pod hold at once, as the scheduler counts it.

    Those that run until the pod ends count together; one that ends before them counts with the ones of them that
    start before it. Kubernetes v1.36 component-helpers resource/helpers.go AggregateContainerRequests.

    Args:
        pod_spec: Spec of the pod.
        held: What each container holds, by its ``id()``.
    """
    lasting = most = Decimal(0)
    for container, passes in _in_turn(pod_spec):
        together = lasting + held.get(id(container), 0)
        most = max(most, together)
        if not passes:
            lasting = together
    return most


def _pods(index: int, manifest: Manifest) -> Iterator[Pod]:
    for path in pod_spec_paths(manifest):
        holder: Any = manifest
        for step in path[:-1]:
            holder = holder[step]
        metadata = holder.get("metadata") if isinstance(holder, Mapping) else None
        yield Pod(index, manifest, holder[path[-1]], metadata or {})


@dataclass(frozen=True)
class Facts:
    """An app as the rules see it.

    Attributes:
        manifests: All objects of one App.
        provided: What its constructs say they provide.
        inventory: The GPU nodes of the cluster, where they are declared.
    """

    manifests: Sequence[Manifest]
    provided: Sequence[Provided] = ()
    inventory: GpuInventory | None = None

    @cached_property
    def _readable(self) -> tuple[list[Manifest], list[int]]:
        return readable(self.manifests)

    @property
    def objects(self) -> list[Manifest]:
        """The manifests as the rules read them: with the members of a List, and nothing of a type it cannot have."""
        return self._readable[0]

    @property
    def origins(self) -> list[int]:
        """For each object the index of the manifest that it comes from."""
        return self._readable[1]

    @cached_property
    def pods(self) -> list[Pod]:
        """Every pod spec."""
        return self._with_asks(pod for index, manifest in enumerate(self.objects) for pod in _pods(index, manifest))

    @cached_property
    def completed_pods(self) -> list[Pod]:
        """Pods of which only the resources are written here: a TrainJob completes those of its runtime."""
        found = []
        for index, job in self.of_kind(("trainer.kubeflow.org", "TrainJob")):
            given = at(job, "spec.trainer").get("resourcesPerNode")
            container = {"name": "trainer.resourcesPerNode", "resources": given or {}}
            found.append(Pod(index, job, {"containers": [container]}))
        return self._with_asks(found)

    def _with_asks(self, pods: Iterable[Pod]) -> list[Pod]:
        made = list(pods)
        for pod in made:
            for container in containers(pod.spec):
                if container.get("resources"):
                    pod.asks.extend(self._asks(pod, container))
        return made

    def _asks(self, pod: Pod, container: Manifest) -> Iterator[Ask]:
        for resource, amount in {**amounts(container, "requests"), **amounts(container, "limits")}.items():
            if self.is_gpu(resource) and str(amount) != "0":
                count = quantity(amount)
                yield Ask(pod, container, resource, str(amount), int(count) if count and count >= 1 else 1)

    @cached_property
    def gpu_pods(self) -> list[Pod]:
        """Pods that hold GPUs."""
        return [pod for pod in self.pods if pod.asks]

    @cached_property
    def asks(self) -> list[Ask]:
        """Every request of every container."""
        return [ask for pod in self.gpu_pods for ask in pod.asks]

    @cached_property
    def gpu_containers(self) -> list[tuple[Pod, Manifest]]:
        """Each container that holds GPUs, once."""
        return list({id(ask.container): (ask.pod, ask.container) for ask in self.asks}.values())

    @cached_property
    def offered(self) -> list[str]:
        """Resources that device plugins of the app advertise."""
        return sorted({resource for offer in self.provided for resource in offer.gpu_resources})

    @cached_property
    def declared(self) -> frozenset[str]:
        """Resources that plugins from elsewhere advertise."""
        return frozenset(resource for offer in self.provided for resource in offer.other_gpu_resources)

    def is_gpu(self, resource: str) -> bool:
        """Check whether a resource is GPUs, slots of them or MIG devices."""
        return is_gpu_name(resource) or resource in self.offered or resource in self.declared

    @cached_property
    def kinds(self) -> list[tuple[str, str]]:
        """The API group and kind of each object."""
        return [kind_of(manifest) for manifest in self.objects]

    def of_kind(self, *kinds: tuple[str, str]) -> Iterator[tuple[int, Manifest]]:
        """Return the objects of some kinds."""
        for kind in kinds:
            for index in self._by_kind.get(kind, ()):
                yield index, self.objects[index]

    @cached_property
    def _by_kind(self) -> Mapping[tuple[str, str], list[int]]:
        by_kind: dict[tuple[str, str], list[int]] = defaultdict(list)
        for index, kind in enumerate(self.kinds):
            by_kind[kind].append(index)
        return by_kind

    @cached_property
    def limit_ranges(self) -> Mapping[str, list[tuple[int, Manifest]]]:
        """What the LimitRanges of each namespace say, each with the index of the LimitRange."""
        found: dict[str, list[tuple[int, Manifest]]] = defaultdict(list)
        for index, manifest in self.of_kind(("", "LimitRange")):
            limits = members(at(manifest, "spec").get("limits"))
            found[namespace_of(manifest)] += [(index, limit) for limit in limits]
        return found

    @cached_property
    def quotas(self) -> Mapping[str, list[tuple[int, str, object]]]:
        """Index, key and amount of what ResourceQuotas bound in each namespace, without those that count some pods."""
        found: dict[str, list[tuple[int, str, object]]] = defaultdict(list)
        for index, manifest in self.of_kind(("", "ResourceQuota")):
            spec = at(manifest, "spec")
            if not spec.get("scopes") and not spec.get("scopeSelector"):
                found[namespace_of(manifest)] += [(index, *one) for one in at(spec, "hard").items()]
        return found

    @cached_property
    def gpu_nodes(self) -> list[tuple[int, GpuNodes]]:
        """Nodes whose configuration is in the app, with the provider."""
        return [(index, offer.gpu_nodes) for index, offer in enumerate(self.provided) if offer.gpu_nodes is not None]

    @cached_property
    def node_labels(self) -> frozenset[str]:
        """Labels that something in the app publishes, apart from its own Node Feature Discovery and stated labels."""
        published = {label for offer in self.provided for label in offer.node_labels}
        rules = [manifest for _, manifest in self.of_kind(*publishing.KINDS) if not self._is_told(manifest)]
        published.update(publishing.labels_of_rules(rules))
        pods = [pod for pod in self.pods if not self._is_told(pod.manifest)]
        published.update(label for pod in pods for label in publishing.labels_of_pod(pod.spec))
        return frozenset(published)

    def publishes(self, label: str) -> bool:
        """Check whether something in the app publishes a label on nodes, or declares it."""
        return is_among(label, self.node_labels) or any(offer.publishes(label) for offer in self.provided)

    @cached_property
    def stated_node_labels(self) -> Mapping[str, frozenset[str]]:
        """Labels that the configuration of nodes and the inventory give to nodes with GPUs, each with its values."""
        nodes = [gpu_nodes.labels for _, gpu_nodes in self.gpu_nodes]
        nodes += [node.labels for node in (self.inventory.nodes if self.inventory is not None else ())]
        stated: dict[str, set[str]] = defaultdict(set)
        for label, value in chain.from_iterable(labels.items() for labels in nodes):
            stated[label].add(value)
        return {label: frozenset(values) for label, values in stated.items()}

    @cached_property
    def unpublished_labels(self) -> frozenset[str]:
        """Labels that pods select, and that the app's own Node Feature Discovery is known not to publish."""
        if all(offer.nfd_labels is None for offer in self.provided):
            return frozenset()
        selected = {
            label for pod in self.pods for alternatives in node_labels_required(pod.spec) for label in alternatives
        }
        return frozenset(label for label in selected if is_of_a_source(label) and not self.publishes(label))

    def _is_told(self, manifest: Manifest) -> bool:
        """Whether a construct of this app made the object, and so has told what it publishes."""
        is_ours = labels_of(manifest).get("app.kubernetes.io/managed-by") == "cdk8s"
        return is_ours and bool(self.bringing("node-feature-discovery"))

    def bringing(self, component: Component) -> list[int]:
        """Return the providers that bring a component."""
        return [index for index, offer in enumerate(self.provided) if component in offer.components]

    @cached_property
    def nvidia_runtime_classes(self) -> list[str]:
        """RuntimeClass objects of the app that lead to NVIDIA's runtime."""
        return [
            name_of(manifest)
            for _, manifest in self.of_kind(("node.k8s.io", "RuntimeClass"))
            if manifest.get("handler") == "nvidia"
        ]

    @cached_property
    def gpu_runtime(self) -> GpuRuntime | None:
        """How containers get at their GPUs: as providers say, else as the objects let on; None where it is unknown."""
        stated = {offer.gpu_runtime for offer in self.provided}
        # What needs least of a pod first: some nodes may be other than the rest.
        orderly: tuple[GpuRuntime, ...] = ("default", "cdi", "runtime-class")
        seen: GpuRuntime | None = "runtime-class" if self.nvidia_runtime_classes else None
        return next((one for one in orderly if one in stated), "cdi" if self._hands_out_by_cdi else seen)

    def runtime_class_is_injected(self, manifest: Manifest) -> bool:
        """Check whether a policy of the app writes the runtime class into the pods of an object."""
        # What serves all namespaces, as a ClusterTrainingRuntime, is in none.
        namespace = None if manifest["kind"].startswith("Cluster") else namespace_of(manifest)
        return any(selectors.may_hold_in(one, namespace) for one in self._injections)

    @cached_property
    def _injections(self) -> list[selectors.Selectors]:
        bindings = [manifest for _, manifest in self.of_kind(selectors.BINDING)]
        return [
            selectors.selectors(manifest, bindings)
            for _, manifest in self.of_kind(*selectors.KINDS)
            if selectors.sets_runtime_class(manifest)
        ]

    @cached_property
    def _hands_out_by_cdi(self) -> bool:
        agents = [container for pod in self.pods if pod.is_for_each_node for container in containers(pod.spec)]
        variables = [variable for container in agents for variable in container.get("env") or ()]
        strategies = [one.get("value") for one in variables if one.get("name") == "DEVICE_LIST_STRATEGY"]
        files = [text for _, manifest in self.of_kind(("", "ConfigMap")) for text in at(manifest, "data").values()]
        strategies += [text for text in files if "deviceListStrategy" in str(text)]
        return any(_CDI.search(str(strategy)) for strategy in strategies)

    def sharing_of(self, resource: str) -> tuple[int, Sharing] | None:
        """Return the sharing behind a resource and its provider, where a plugin of the app shares it."""
        return self._shared.get(resource)

    @cached_property
    def _shared(self) -> dict[str, tuple[int, Sharing]]:
        shared: dict[str, tuple[int, Sharing]] = {}
        for provider, offer in enumerate(self.provided):
            for resource, sharing in offer.gpu_resources.items():
                if sharing.strategy != "none":
                    shared.setdefault(resource, (provider, sharing))
        return shared

    def is_exclusive_somewhere(self, resource: str) -> bool:
        """Check whether some plugin of the app hands a resource out unshared."""
        return any(
            offer.gpu_resources[resource].strategy == "none"
            for offer in self.provided
            if resource in offer.gpu_resources
        )

    def slots(self, resource: str) -> int | None:
        """Return how many of a resource the cluster has; None where it is not known."""
        sharings = [offer.gpu_resources[resource] for offer in self.provided if resource in offer.gpu_resources]
        if self.inventory is None or not sharings or not resource.startswith("nvidia.com/gpu"):
            return None
        return max(self.inventory.slots(sharing) for sharing in sharings)
