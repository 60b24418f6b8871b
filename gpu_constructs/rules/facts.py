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
from gpu_constructs.inventory import GpuInventory
from gpu_constructs.pod_specs import containers, pod_specs
from gpu_constructs.provided import GpuNodes, GpuRuntime, Provided
from gpu_constructs.sharing import Sharing

Manifest = Mapping[str, Any]

_GPU = re.compile(r"nvidia\.com/(gpu|gpu\.shared|mig-.+)\Z")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")
_POLICIES = (
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"),
    ("kyverno.io", "ClusterPolicy"),
    ("policies.kyverno.io", "MutatingPolicy"),
)
_CDI = re.compile(r"cdi-(?:cri|annotations)")


def quantity(given: object) -> Decimal | None:
    """Give what an amount in a manifest says as a number; None where Kubernetes would not read it."""
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        return None
    text = str(given)
    if _NUMBER.match(text):
        return Decimal(text)
    try:
        _fields.quantity("amount", text)
    except GpuConstructsError:
        return None
    return _fields.amount(text)


def annotations_of(manifest: Manifest) -> Mapping[str, Any]:
    """Give the annotations of an object or a pod template."""
    return (manifest.get("metadata") or {}).get("annotations") or {}


def kind_of(manifest: Manifest) -> tuple[str, str]:
    """Give the API group and the kind."""
    return _kinds.group_of(manifest["apiVersion"]), manifest["kind"]


def namespace_of(manifest: Manifest) -> str:
    """Give the namespace an object is in where it is in one."""
    return str((manifest.get("metadata") or {}).get("namespace") or "default")


def is_among(name: str, offered: Iterable[str]) -> bool:
    """Tell whether a name is offered, a trailing star standing for the rest of it."""
    return any(name == offer or (offer.endswith("*") and name.startswith(offer[:-1])) for offer in offered)


def amounts(container: Manifest, section: str) -> Mapping[str, Any]:
    """Give the limits or requests of a container."""
    return (container.get("resources") or {}).get(section) or {}


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
        asks: What its containers hold, by container and resource.
    """

    index: int
    manifest: Manifest
    spec: Manifest
    asks: list[Ask] = field(default_factory=list)

    @property
    def metadata(self) -> Manifest:
        """The metadata that stands beside the pod spec."""
        return next((each.get("metadata") or {} for each in _holders(self.manifest, self.spec)), {})

    @property
    def is_for_each_node(self) -> bool:
        """Whether every node gets one."""
        return bool(self.manifest["kind"] == "DaemonSet")

    def lasting(self) -> list[Ask]:
        """Give what its containers hold at once: one that ends before the others start hands its GPUs on."""
        passing = {id(c) for c in self.spec.get("initContainers") or () if c.get("restartPolicy") != "Always"}
        return [ask for ask in self.asks if id(ask.container) not in passing]

    def counts(self) -> dict[str, int]:
        """Give how many of each resource the pod takes."""
        sums: dict[str, int] = {}
        for ask in self.lasting():
            sums[ask.resource] = sums.get(ask.resource, 0) + ask.count
        for ask in self.asks:
            sums[ask.resource] = max(sums.get(ask.resource, 0), ask.count)
        return sums


def _holders(value: object, spec: Manifest) -> Iterator[Manifest]:
    if isinstance(value, Mapping):
        if value.get("spec") is spec:
            yield value
        for member in value.values():
            if isinstance(member, Mapping):
                yield from _holders(member, spec)


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
    def pods(self) -> list[Pod]:
        """Every pod spec."""
        made = [Pod(index, m, spec) for index, m in enumerate(self.manifests) for spec in pod_specs(m)]
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

    def is_gpu(self, resource: str) -> bool:
        """Tell whether a resource is GPUs, slots of them or MIG devices."""
        return bool(_GPU.match(resource)) or resource in self.offered

    @cached_property
    def kinds(self) -> list[tuple[str, str]]:
        """The API group and kind of each object."""
        return [kind_of(manifest) for manifest in self.manifests]

    def of_kind(self, *kinds: tuple[str, str]) -> Iterator[tuple[int, Manifest]]:
        """Give the objects of some kinds."""
        for kind in kinds:
            for index in self._by_kind.get(kind, ()):
                yield index, self.manifests[index]

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
        """Labels that something in the app publishes."""
        published = {label for offer in self.provided for label in offer.node_labels}
        return frozenset(published | {label for _, nodes in self.gpu_nodes for label in nodes.labels})

    @cached_property
    def nvidia_runtime_classes(self) -> list[str]:
        """RuntimeClass objects of the app that lead to NVIDIA's runtime."""
        return [
            manifest["metadata"]["name"]
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

    @cached_property
    def runtime_class_is_injected(self) -> bool:
        """Whether a policy of the app writes the runtime class into pods."""
        return any("runtimeClassName" in str(manifest.get("spec")) for _, manifest in self.of_kind(*_POLICIES))

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

    def slots(self, resource: str) -> int | None:
        """Give how many of a resource the cluster has; None where it is not known."""
        sharings = [offer.gpu_resources[resource] for offer in self.provided if resource in offer.gpu_resources]
        if self.inventory is None or not sharings or not resource.startswith("nvidia.com/gpu"):
            return None
        return max(self.inventory.slots(sharing) for sharing in sharings)


def _data(manifest: Manifest) -> Iterable[object]:
    return (manifest.get("data") or {}).values()
