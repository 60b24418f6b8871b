"""Functions that find the objects of an app that affect a workload, such as its autoscaler, quotas and claims.

Sources:
    kubernetes/kubernetes@v1.36.0:plugin/pkg/admission/priority/admission.go, pkg/apis/scheduling/types.go: The API
    server assigns the default PriorityClass to a pod without one before quotas count the pod.

    kubernetes/kubernetes@v1.36.2:pkg/quota/v1/evaluator/core/pods.go: Extended resources count as ``requests.<name>``
    only. A pod counts until it has ended, also while it is Pending. A quota counts a pod that is in all its scopes.

    kubernetes/kubernetes@v1.36.2:pkg/quota/v1/evaluator/core/resource_claims.go: Devices of claims count by their DRA
    device class.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice, product
from typing import Any

from gpu_constructs.capacity.consumer import Choice, Condition, QuotaShare
from gpu_constructs.facts.app import Facts
from gpu_constructs.facts.readable import (
    Manifest,
    annotations_of,
    at,
    mapping,
    members,
    name_of,
    namespace_of,
    number,
    quantity,
)
from gpu_constructs.facts.selectors import holds
from gpu_constructs.kube.kinds import group_of
from gpu_constructs.records import dataclass, field

_DRA = "resource.k8s.io"
_OF_NO_NAMESPACE = frozenset({"DeviceClass", "PriorityClass"})
_CLASSES = frozenset({"gpu.nvidia.com", "mig.nvidia.com", "vfio.gpu.nvidia.com"})
_BUILT_IN = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
IMPLICIT = "deviceclass.resource.kubernetes.io/"
"""Prefix of the resources for which Kubernetes creates a claim, for example ``<prefix>gpu.nvidia.com``."""


@dataclass(frozen=True)
class Scale:
    """The smallest and the largest number of replicas that an autoscaler sets.

    Attributes:
        least: Smallest number of replicas.
        most: Largest number of replicas.
        wakes: Whether the autoscaler also scales an object whose manifest has 0 replicas.
    """

    least: int
    most: int
    wakes: bool = False


@dataclass(frozen=True)
class App:
    """The objects of the user's app, with methods that find the objects related to a workload.

    Attributes:
        facts: Manifests of the app, and data that the library derives from them.
    """

    facts: Facts

    def named(self, group: str, kind: str, name: object, namespace: str | None = None) -> Manifest | None:
        """Return the object with an API group, a kind and a name. Return None if the app does not contain it.

        If ``namespace`` is None, the method searches for a cluster-scoped object.
        """
        index = self.index_of(group, kind, name, namespace)
        return None if index is None else self.facts.objects[index]

    def index_of(self, group: str, kind: str, name: object, namespace: str | None = None) -> int | None:
        """Return the index of an object in ``facts.objects``. Return None if the app does not contain the object.

        If ``namespace`` is None, the method searches for a cluster-scoped object.
        """
        return self._indexes.get((group, kind, namespace, str(name)))

    @cached_property
    def _indexes(self) -> dict[tuple[str, str, str | None, str], int]:
        def key(index: int) -> tuple[str, str, str | None, str]:
            (group, kind), manifest = self.facts.kinds[index], self.facts.objects[index]
            is_global = kind.startswith("Cluster") or kind in _OF_NO_NAMESPACE
            return group, kind, None if is_global else namespace_of(manifest), name_of(manifest)

        # Of several objects with the same kind, namespace and name, the first one counts.
        return {key(index): index for index in reversed(range(len(self.facts.objects)))}

    def as_written(self, manifest: Manifest) -> Manifest:
        """Return the manifest of an object as the app emits it. The argument ``manifest`` omits values of a wrong type.

        If the app emits no such manifest, for example for an item of a ``List``, the method returns ``manifest``.
        """
        group, kind = group_of(str(manifest.get("apiVersion"))), str(manifest.get("kind"))
        index = self.index_of(group, kind, name_of(manifest), namespace_of(manifest))
        written = None if index is None else self.facts.manifests[self.facts.origins[index]]
        return written if written is not None and written.get("kind") == kind else manifest

    def is_gpu(self, resource: str) -> bool:
        """Check whether a resource name, such as ``nvidia.com/gpu``, stands for GPUs of a device plugin or of DRA."""
        return (
            self.facts.is_gpu(resource)
            or resource in self.own_classes.values()
            or (resource.startswith(IMPLICIT) and self.is_gpu_class(resource.removeprefix(IMPLICIT)))
        )

    def is_gpu_class(self, name: str) -> bool:
        """Check whether the DRA device class with this name selects NVIDIA GPUs."""
        return name in _CLASSES or name in self.own_classes

    @cached_property
    def own_classes(self) -> dict[str, object]:
        """Field ``extendedResourceName`` (or None) of each DRA device class that selects NVIDIA GPUs, by class name."""
        return {
            name_of(manifest): at(manifest, "spec").get("extendedResourceName")
            for _, manifest in self.facts.of_kind((_DRA, "DeviceClass"))
            if "gpu.nvidia.com" in str(members(at(manifest, "spec").get("selectors")))
        }

    def copies(self, manifest: Manifest, declared: int) -> tuple[int, int]:
        """Return the largest and the smallest number of replicas of an object.

        An autoscaler of the object sets both numbers. Without an autoscaler, both are ``declared`` (``spec.replicas``).
        """
        known = self._scales.get((namespace_of(manifest), str(manifest.get("kind")), name_of(manifest)), ())
        group = group_of(str(manifest.get("apiVersion")))
        scales = [scale for wanted, scale in known if wanted in (None, group) and (declared or scale.wakes)]
        if not scales or not manifest["metadata"].get("name"):
            return declared, declared
        return max(scale.most for scale in scales), min(scale.least for scale in scales)

    @cached_property
    def default_priority(self) -> Manifest | None:
        """PriorityClass of the app with ``globalDefault: true`` and the lowest value; None if no such class exists."""
        classes = (one for _, one in self.facts.of_kind(("scheduling.k8s.io", "PriorityClass")))
        defaults = [one for one in classes if one.get("globalDefault") is True]
        return min(defaults, key=lambda one: number(one.get("value"), 0), default=None)

    @cached_property
    def quotas(self) -> dict[str, dict[str, Manifest]]:
        """ResourceQuotas of the app, by namespace and then by name."""
        found: dict[str, dict[str, Manifest]] = {}
        for _, quota in self.facts.of_kind(("", "ResourceQuota")):
            found.setdefault(namespace_of(quota), {}).setdefault(name_of(quota), quota)
        return found

    @cached_property
    def _scales(self) -> dict[tuple[str, str, str], list[tuple[str | None, Scale]]]:
        """Ranges of replicas that autoscalers set, by namespace, kind and name of the object that they scale.

        Each value is a list of pairs: the API group of the scaled object (None means any group), and the range.
        """
        found: dict[tuple[str, str, str], list[tuple[str | None, Scale]]] = {}
        for index, scaler in self.facts.of_kind(
            ("autoscaling", "HorizontalPodAutoscaler"), ("keda.sh", "ScaledObject")
        ):
            spec = mapping(scaler.get("spec"))
            is_keda = self.facts.kinds[index][0] == "keda.sh"
            scale = _keda(scaler, spec) if is_keda else _horizontal(spec)
            target = mapping(spec.get("scaleTargetRef"))
            # kedacore/keda@v2.20.2:pkg/util/gvkr.go: Without a kind, a ScaledObject targets a Deployment.
            kind = target.get("kind") or ("Deployment" if is_keda else "")
            version = target.get("apiVersion") or ("apps/v1" if is_keda else None)
            if scale is not None:
                key = (namespace_of(scaler), str(kind), str(target.get("name")))
                found.setdefault(key, []).append((None if version is None else group_of(str(version)), scale))
        return found


def _horizontal(spec: Mapping[str, Any]) -> Scale | None:
    """Return the range of replicas that a HorizontalPodAutoscaler sets. Return None if it sets no maximum.

    In Kubernetes v1.36 autoscaling/v2, the default of minReplicas is 1. The autoscaler scales a target with 0 replicas
    only if minReplicas is 0.
    """
    most = spec.get("maxReplicas")
    if number(most, -1) < 1:
        return None
    least = number(spec.get("minReplicas"), 1)
    return Scale(least, max(least, number(most, 1)), wakes=least == 0)


def _keda(scaler: Manifest, spec: Mapping[str, Any]) -> Scale:
    """Return the range of replicas that a ScaledObject of KEDA sets. The default range is 0 to 100.

    Source:
        kedacore/keda@v2.20.2:apis/keda/v1alpha1/scaledobject_types.go
    """
    paused = str(annotations_of(scaler).get("autoscaling.keda.sh/paused-replicas", ""))
    if paused.isdecimal() and len(paused) < 10:
        return Scale(int(paused), int(paused), wakes=True)
    least = number(spec.get("minReplicaCount"), 0)
    idle = min(least, number(spec.get("idleReplicaCount"), least))
    return Scale(idle, max(least, number(spec.get("maxReplicaCount"), 100)), wakes=True)


def priority_of(pod_spec: Mapping[str, Any], app: App) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the arguments ``priority`` and ``preempts`` of ``Consumer`` as a dict, and assumptions of the plan."""
    name = pod_spec.get("priorityClassName")
    known = (app.named("scheduling.k8s.io", "PriorityClass", name) if name else app.default_priority) or {}
    preempts = (pod_spec.get("preemptionPolicy") or known.get("preemptionPolicy")) != "Never"
    values = (pod_spec.get("priority"), known.get("value"), _BUILT_IN.get(str(name)))
    priority = next((one for one in values if isinstance(one, int) and not isinstance(one, bool)), None)
    is_unknown = priority is None and name and not known
    notes = (f"PriorityClass {name} is not in this app: the plan assumes priority 0",) if is_unknown else ()
    return {"priority": priority or 0, "preempts": preempts}, notes


def quota_shares(pod_spec: Mapping[str, Any], takes: Mapping[str, int], namespace: str, app: App) -> list[QuotaShare]:
    """Return the amounts that a pod uses of each ResourceQuota that counts the pod.

    Args:
        pod_spec: Spec of the pod.
        takes: Amounts that the pod uses, by their key in a ResourceQuota, such as ``requests.nvidia.com/gpu``.
        namespace: Namespace of the pod.
        app: Objects of the app that contains the pod.
    """
    return [
        QuotaShare(
            quota=f"ResourceQuota {namespace_of(quota)}/{name}", resource=resource, hard=hard, takes=takes[resource]
        )
        for name, quota in app.quotas.get(namespace, {}).items()
        if all(_is_in(scope, pod_spec, app) for scope in _scopes(app.as_written(quota)))
        for resource, hard in _limits(quota)
        if takes.get(resource)
    ]


def quota_names(asks: Mapping[str, int]) -> dict[str, int]:
    """Return the requested amounts by key of a ResourceQuota: ``nvidia.com/gpu`` becomes ``requests.nvidia.com/gpu``.

    A DRA device class has two keys: ``requests.deviceclass.resource.kubernetes.io/<class>``, and
    ``<class>.deviceclass.resource.k8s.io/devices``.
    """
    resources = {f"requests.{name if '/' in name else IMPLICIT + name}": count for name, count in asks.items()}
    return {**resources, **device_names(asks)}


def device_names(asks: Mapping[str, int]) -> dict[str, int]:
    """Return requested devices, by DRA class, under quota keys: ``<class>.deviceclass.resource.k8s.io/devices``."""
    return {f"{name}.deviceclass.resource.k8s.io/devices": count for name, count in asks.items() if "/" not in name}


def _limits(quota: Manifest) -> Iterator[tuple[str, int]]:
    amounts = ((str(resource), quantity(hard)) for resource, hard in at(quota, "spec.hard").items())
    return ((resource, int(amount)) for resource, amount in amounts if amount is not None)


def _scopes(quota: Manifest) -> Iterator[Mapping[str, Any]]:
    """Yield the scopes of a ResourceQuota, which restrict the pods that it counts."""
    names = at(quota, "spec").get("scopes")
    yield from ({"scopeName": name, "operator": "Exists"} for name in (names if isinstance(names, list) else ()))
    yield from members(at(quota, "spec.scopeSelector").get("matchExpressions"))


def _is_in(scope: Mapping[str, Any], pod_spec: Mapping[str, Any], app: App) -> bool:
    """Check whether a pod is in a scope of a ResourceQuota. Return False if the plan does not know the scope."""
    match scope.get("scopeName"):
        case "Terminating" | "NotTerminating" as name:
            return isinstance(pod_spec.get("activeDeadlineSeconds"), int) is (name == "Terminating")
        case "BestEffort" | "NotBestEffort" as name:
            return _is_best_effort(pod_spec) is (name == "BestEffort")
        case "PriorityClass":
            default = None if app.default_priority is None else name_of(app.default_priority)
            own = pod_spec.get("priorityClassName") or default
            return holds({"operator": "Exists", **scope, "key": "class"}, {"class": own} if own else {})
    return False


def _is_best_effort(pod_spec: Mapping[str, Any]) -> bool:
    each = [*members(pod_spec.get("initContainers")), *members(pod_spec.get("containers"))]
    sections = [at(one, f"resources.{section}") for one in each for section in ("limits", "requests")]
    return not any(quantity(section.get(name)) for section in sections for name in ("cpu", "memory"))


_WHOLE_GPUS = "gpu.nvidia.com"
_WHOLE_GPU = {"spec": {"spec": {"devices": {"requests": [{"deviceClassName": _WHOLE_GPUS}]}}}}
_MOST_CHOICES = 64


@dataclass
class PodClaims:
    """The devices that a pod requests with ResourceClaims and ResourceClaimTemplates.

    Attributes:
        choices: Alternative sets of devices from the pod's ResourceClaimTemplates, the preferred set first.
        shared: Indices (in the objects of the app) of the ResourceClaims that other pods can use too.
        notes: Assumptions about the claims, each a sentence without a period, or a ``Condition``.
    """

    choices: Sequence[Choice] = (Choice({}),)
    shared: list[int] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def pod_claims(pod_spec: Mapping[str, Any], namespace: str, app: App, *, says_vram: bool) -> PodClaims:
    """Return the devices that a pod requests with claims. A claim counts once, even if several containers use it.

    For a ResourceClaimTemplate that is not in the app, the function assumes one GPU if ``says_vram`` is True.

    Args:
        pod_spec: Spec of the pod.
        namespace: Namespace of the pod.
        app: Objects of the app that contains the pod.
        says_vram: Whether an annotation of the pod states its GPU memory.
    """
    found = PodClaims()
    for claim in members(pod_spec.get("resourceClaims")):
        if isinstance(claim.get("resourceClaimName"), str):
            index = app.index_of(_DRA, "ResourceClaim", claim["resourceClaimName"], namespace)
            if index is None:
                found.notes.append(
                    Condition(f"ResourceClaim {claim['resourceClaimName']}, which is not in this app, gets its devices")
                )
            elif index not in found.shared:
                found.shared.append(index)
            continue
        name = claim.get("resourceClaimTemplateName")
        template = app.named(_DRA, "ResourceClaimTemplate", name, namespace)
        if template is None and not says_vram:
            continue
        if template is None:
            found.notes.append(
                Condition(f"ResourceClaimTemplate {name}, which is not in this app, requests one {_WHOLE_GPUS}")
            )
        choices, notes = claim_choices(at(template or _WHOLE_GPU, "spec.spec"), app)
        found.choices = _together(found.choices, choices)
        found.notes.extend(notes)
    return found


def claim_choices(spec: Mapping[str, Any], app: App) -> tuple[Sequence[Choice], list[str]]:
    """Return the alternative sets of GPUs that satisfy a ResourceClaim, and the assumptions of the capacity plan.

    The preferred set comes first. Each assumption is a sentence or a ``Condition``. ``spec`` is the spec of the claim.
    """
    found: Sequence[Choice] = (Choice({}),)
    notes: list[str] = []
    for request in members(mapping(spec.get("devices")).get("requests")):
        name = request.get("name")
        # In resource.k8s.io/v1beta1, the members of "exactly" belong to the request itself.
        wanted = members(request.get("firstAvailable")) or [mapping(request.get("exactly")) or request]
        choices = [_choice(one, name, app, notes) for one in wanted]
        if choices[1:] and any(one.asks for one in choices):
            notes.append(f"request {name} gets the first alternative for which the node has devices")
        found = _together(found, choices)
    if any(one.asks for one in found) and mapping(spec.get("devices")).get("constraints"):
        notes.append(Condition("devices meet the constraints of the claim, which the plan cannot check"))
    return found, list(dict.fromkeys(notes))


def _choice(wanted: Mapping[str, Any], request: object, app: App, notes: list[str]) -> Choice:
    """Return the GPUs of ``wanted``, an alternative of the device request ``request``. Add assumptions to ``notes``."""
    device_class = wanted.get("deviceClassName")
    # Administrative access takes no device from other pods.
    if not isinstance(device_class, str) or wanted.get("adminAccess") is True:
        return Choice({})
    if not app.is_gpu_class(device_class):
        if app.index_of(_DRA, "DeviceClass", device_class) is None:
            notes.append(Condition(f"a device of class {device_class}, which may not be a GPU, is free for the pod"))
        return Choice({})
    has_conditions = bool(wanted.get("selectors"))
    if has_conditions:
        notes.append(Condition(f"devices meet the conditions of the request {request}, which the plan cannot check"))
    if device_class in app.own_classes:
        notes.append(
            Condition(f"devices meet the conditions of device class {device_class}, which the plan cannot check")
        )
        has_conditions = True
    if wanted.get("allocationMode") != "All":
        return Choice({device_class: number(wanted.get("count"), 1) or 1})
    if has_conditions:
        notes.append(
            Condition(
                f"one device of a node meets the conditions of the request {request}, which takes all such devices and "
                "waits until all are free"
            )
        )
        return Choice({device_class: 1})
    return Choice({device_class: 1}, frozenset([device_class]))


def _together(some: Sequence[Choice], others: Sequence[Choice]) -> Sequence[Choice]:
    """Return each set in ``some`` plus each in ``others``: ``[a, b]`` and ``[c]`` result in ``[a + c, b + c]``."""
    found: dict[tuple[frozenset[tuple[str, int]], frozenset[str]], Choice] = {}
    for one, other in islice(product(some, others), _MOST_CHOICES):
        names = dict.fromkeys([*one.asks, *other.asks])
        both = Choice(
            {name: one.asks.get(name, 0) + other.asks.get(name, 0) for name in names}, one.takes_all | other.takes_all
        )
        found.setdefault((frozenset(both.asks.items()), both.takes_all), both)
    return list(found.values())
