"""What the rules look at, read once from the manifests of an app."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any

from gpu_constructs import _fields, _kinds
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.feature_discovery.nfd_labels import is_of_a_source
from gpu_constructs.inventory import GpuInventory
from gpu_constructs.pod_specs import containers, node_labels_required, pod_spec_paths
from gpu_constructs.provided import GpuNodes, GpuRuntime, Provided
from gpu_constructs.provided import is_among as is_among
from gpu_constructs.rules import policies, publishing
from gpu_constructs.rules.readable import readable
from gpu_constructs.sharing import Sharing

Manifest = Mapping[str, Any]

_GPU = re.compile(r"nvidia\.com/(gpu|gpu\.shared|mig-.+)\Z")
_NUMBER = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:[eE]([+-]?)0*([0-9]+))?\Z")
# Kubernetes takes no more of anything.
_MOST = Decimal(2**63 - 1)
_NONE = Decimal(0)
_CDI = re.compile(r"cdi-(?:cri|annotations)")


def quantity(given: object) -> Decimal | None:
    """Give what an amount in a manifest says as a number; None where Kubernetes would not read it."""
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        return None
    text = str(given)
    number = _NUMBER.match(text)
    if number:
        mantissa, sign, exponent = number.groups(default="")
        # Decimal takes no exponent of any length.
        found = Decimal(f"{mantissa}e{sign}{exponent if len(exponent) < 3 else 99}" if exponent else mantissa)
        return max(-_MOST, min(found, _MOST))
    try:
        _fields.quantity("amount", text)
    except GpuConstructsError:
        return None
    return min(_fields.amount(text), _MOST)


def annotations_of(manifest: Manifest) -> Mapping[str, Any]:
    """Give the annotations of an object or a pod template."""
    return (manifest.get("metadata") or {}).get("annotations") or {}


def kind_of(manifest: Manifest) -> tuple[str, str]:
    """Give the API group and the kind."""
    return _kinds.group_of(manifest["apiVersion"]), manifest["kind"]


def namespace_of(manifest: Manifest) -> str:
    """Give the namespace an object is in where it is in one."""
    return str((manifest.get("metadata") or {}).get("namespace") or "default")


def limits_of(limit_range: Manifest) -> list[Manifest]:
    """Give what a LimitRange says, by the type of what it limits."""
    limits = (limit_range.get("spec") or {}).get("limits")
    return limits if isinstance(limits, list) else []


def is_gpu_name(resource: str) -> bool:
    """Tell whether the plugin gives GPUs, slots of them or MIG devices this name by itself."""
    return bool(_GPU.match(resource))


def amounts(container: Manifest, section: str) -> Mapping[str, Any]:
    """Give the limits or requests of a container."""
    given = (container.get("resources") or {}).get(section)
    return given if isinstance(given, Mapping) else {}


@dataclass(frozen=True)
class Ask:
    """A container's wish for GPUs.

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
        index: Of the object.
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

    @property
    def _passing(self) -> set[int]:
        """Containers that end before those behind them start."""
        return {id(c) for c in self.spec.get("initContainers") or () if c.get("restartPolicy") != "Always"}

    def lasting(self) -> list[Ask]:
        """Give what its containers hold at once: one that ends before the others start hands its GPUs on."""
        passing = self._passing
        return [ask for ask in self.asks if id(ask.container) not in passing]

    def counts(self) -> dict[str, int]:
        """Give how many of each resource the scheduler sets aside for the pod.

        One that ends before the others start counts with those that started before it and run on.
        """
        held: dict[str, dict[int, Decimal]] = {}
        for ask in self.asks:
            held.setdefault(ask.resource, {})[id(ask.container)] = Decimal(ask.count)
        return {resource: int(self.at_once(each)) for resource, each in held.items()}

    def at_once(self, held: Mapping[int, Decimal]) -> Decimal:
        """Return the most that its containers hold at once.

        Args:
            held: What each holds, by its ``id()``.
        """
        passing, lasting, most = self._passing, _NONE, _NONE
        for container in containers(self.spec):
            together = lasting + held.get(id(container), _NONE)
            most = max(most, together)
            if id(container) not in passing:
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
            given = ((job.get("spec") or {}).get("trainer") or {}).get("resourcesPerNode")
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
        """Those that hold GPUs."""
        return [pod for pod in self.pods if pod.asks]

    @cached_property
    def asks(self) -> list[Ask]:
        """Every wish of every container."""
        return [ask for pod in self.gpu_pods for ask in pod.asks]

    @cached_property
    def gpu_containers(self) -> list[tuple[Pod, Manifest]]:
        """Each container that holds GPUs, once."""
        return [
            pair for pod in self.gpu_pods for pair in {id(a.container): (pod, a.container) for a in pod.asks}.values()
        ]

    @cached_property
    def offered(self) -> list[str]:
        """Resources that device plugins of the app advertise."""
        return sorted({resource for offer in self.provided for resource in offer.gpu_resources})

    @cached_property
    def declared(self) -> frozenset[str]:
        """Resources that plugins from elsewhere advertise."""
        return frozenset(resource for offer in self.provided for resource in offer.other_gpu_resources)

    def is_gpu(self, resource: str) -> bool:
        """Tell whether a resource is GPUs, slots of them or MIG devices."""
        return is_gpu_name(resource) or resource in self.offered or resource in self.declared

    @cached_property
    def kinds(self) -> list[tuple[str, str]]:
        """The API group and kind of each object."""
        return [kind_of(manifest) for manifest in self.objects]

    def of_kind(self, *kinds: tuple[str, str]) -> Iterator[tuple[int, Manifest]]:
        """Give the objects of some kinds."""
        for kind in kinds:
            for index in self._by_kind.get(kind, ()):
                yield index, self.objects[index]

    @cached_property
    def _by_kind(self) -> dict[tuple[str, str], list[int]]:
        by_kind: dict[tuple[str, str], list[int]] = {}
        for index, kind in enumerate(self.kinds):
            by_kind.setdefault(kind, []).append(index)
        return by_kind

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
        stated: dict[str, set[str]] = {}
        for labels in nodes:
            for label, value in labels.items():
                stated.setdefault(label, set()).add(value)
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
        brings = any("node-feature-discovery" in offer.components for offer in self.provided)
        labels = (manifest.get("metadata") or {}).get("labels") or {}
        return brings and labels.get("app.kubernetes.io/managed-by") == "cdk8s"

    @cached_property
    def nvidia_runtime_classes(self) -> list[str]:
        """RuntimeClass objects of the app that lead to NVIDIA's runtime."""
        return [
            str(manifest["metadata"].get("name"))
            for _, manifest in self.of_kind(("node.k8s.io", "RuntimeClass"))
            if manifest.get("handler") == "nvidia"
        ]

    @cached_property
    def gpu_runtime(self) -> GpuRuntime | None:
        """How containers get at their GPUs: as providers say, else as the objects let on; None where it is unknown."""
        said = {offer.gpu_runtime for offer in self.provided}
        # What needs least of a pod first: some nodes may be other than the rest.
        orderly: tuple[GpuRuntime, ...] = ("default", "cdi", "runtime-class")
        for runtime in orderly:
            if runtime in said:
                return runtime
        if self._hands_out_by_cdi():
            return "cdi"
        return "runtime-class" if self.nvidia_runtime_classes else None

    def runtime_class_is_injected(self, manifest: Manifest) -> bool:
        """Tell whether a policy of the app writes the runtime class into the pods of an object."""
        # What serves all namespaces, as a ClusterTrainingRuntime, is in none.
        namespace = None if manifest["kind"].startswith("Cluster") else namespace_of(manifest)
        return any(policies.may_hold_in(selectors, namespace) for selectors in self._injections)

    @cached_property
    def _injections(self) -> list[policies.Selectors]:
        bindings = [manifest for _, manifest in self.of_kind(policies.BINDING)]
        return [
            policies.selectors(manifest, bindings)
            for _, manifest in self.of_kind(*policies.KINDS)
            if policies.sets_runtime_class(manifest)
        ]

    def _hands_out_by_cdi(self) -> bool:
        for _, manifest in self.of_kind(("", "ConfigMap")):
            if any("deviceListStrategy" in str(text) and _CDI.search(str(text)) for text in _data(manifest)):
                return True
        return any(
            variable.get("name") == "DEVICE_LIST_STRATEGY" and _CDI.search(str(variable.get("value")))
            for pod in self.pods
            if pod.is_for_each_node
            for container in containers(pod.spec)
            for variable in container.get("env") or ()
        )

    def sharing_of(self, resource: str) -> tuple[int, Sharing] | None:
        """Give the sharing behind a resource and its provider, where a plugin of the app shares it."""
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
        """Tell whether some plugin of the app hands a resource out unshared."""
        return any(
            offer.gpu_resources[resource].strategy == "none"
            for offer in self.provided
            if resource in offer.gpu_resources
        )

    def slots(self, resource: str) -> int | None:
        """Give how many of a resource the cluster has; None where it is not known."""
        sharings = [offer.gpu_resources[resource] for offer in self.provided if resource in offer.gpu_resources]
        if self.inventory is None or not sharings or not resource.startswith("nvidia.com/gpu"):
            return None
        return max(self.inventory.slots(sharing) for sharing in sharings)


def _data(manifest: Manifest) -> Iterable[object]:
    data = manifest.get("data")
    return data.values() if isinstance(data, Mapping) else ()
