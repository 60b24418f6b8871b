"""What the objects of an app say about one another: names, scalers, classes of devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gpu_constructs._kinds import group_of
from gpu_constructs.capacity.demand.pod_group import mapping, members, number
from gpu_constructs.rules.facts import Facts, Manifest, annotations_of, limits_of, namespace_of

_DRA = "resource.k8s.io"
_OF_NO_NAMESPACE = frozenset({"DeviceClass", "PriorityClass"})
_CLASSES = frozenset({"gpu.nvidia.com", "mig.nvidia.com", "vfio.gpu.nvidia.com"})
IMPLICIT = "deviceclass.resource.kubernetes.io/"
"""With a device class behind it, a resource that Kubernetes makes a claim of that class for."""


@dataclass(frozen=True)
class Scale:
    """The copies between which something scales an object.

    Attributes:
        least: The fewest.
        most: The most.
        wakes: Whether it starts an object that is declared with no copies.
    """

    least: int
    most: int
    wakes: bool = False


@dataclass(frozen=True)
class App:
    """What the objects of an app say about one another.

    Attributes:
        facts: The app.
    """

    facts: Facts

    def named(self, group: str, kind: str, name: object, namespace: str | None = None) -> Manifest | None:
        """Give the object of a name; in no namespace where none is given."""
        index = self.index_of(group, kind, name, namespace)
        return None if index is None else self.facts.objects[index]

    def index_of(self, group: str, kind: str, name: object, namespace: str | None = None) -> int | None:
        """Give the index of the object of a name; in no namespace where none is given."""
        return self._indexes.get((group, kind, namespace, str(name)))

    @cached_property
    def _indexes(self) -> dict[tuple[str, str, str | None, str], int]:
        found: dict[tuple[str, str, str | None, str], int] = {}
        for index, ((group, kind), manifest) in enumerate(zip(self.facts.kinds, self.facts.objects, strict=True)):
            namespace = None if kind.startswith("Cluster") or kind in _OF_NO_NAMESPACE else namespace_of(manifest)
            found.setdefault((group, kind, namespace, str(_metadata(manifest).get("name"))), index)
        return found

    def as_written(self, manifest: Manifest) -> Manifest:
        """Give an object with the members too that the rules take for others and leave out; not one of a List."""
        group, kind = group_of(str(manifest.get("apiVersion"))), str(manifest.get("kind"))
        index = self.index_of(group, kind, _metadata(manifest).get("name"), namespace_of(manifest))
        written = None if index is None else self.facts.manifests[self.facts.origins[index]]
        return written if written is not None and written.get("kind") == kind else manifest

    def is_gpu(self, resource: str) -> bool:
        """Tell whether a resource of a container is GPUs, by a device plugin or by DRA."""
        if self.facts.is_gpu(resource) or resource in self._resources_of_classes:
            return True
        return resource.startswith(IMPLICIT) and self.is_gpu_class(resource.removeprefix(IMPLICIT))

    def is_gpu_class(self, name: str) -> bool:
        """Tell whether a device class of DRA is GPUs."""
        return name in _CLASSES or name in self.own_classes

    @cached_property
    def own_classes(self) -> dict[str, object]:
        """Device classes of the app that are GPUs of NVIDIA, each with the resource that asks for them."""
        found = {}
        for _, manifest in self.facts.of_kind((_DRA, "DeviceClass")):
            spec = mapping(manifest.get("spec"))
            if any("gpu.nvidia.com" in str(selector) for selector in members(spec.get("selectors"))):
                found[str(_metadata(manifest).get("name"))] = spec.get("extendedResourceName")
        return found

    @cached_property
    def _resources_of_classes(self) -> frozenset[str]:
        return frozenset(name for name in self.own_classes.values() if isinstance(name, str))

    def copies(self, manifest: Manifest, declared: int) -> tuple[int, int]:
        """Give how many copies an object has at most and at least, where it declares some."""
        name = _metadata(manifest).get("name")
        known = self._scales.get((namespace_of(manifest), str(manifest.get("kind")), str(name))) if name else None
        group = group_of(str(manifest.get("apiVersion")))
        scales = [scale for wanted, scale in known or () if wanted in (None, group) and (declared or scale.wakes)]
        if not scales:
            return declared, declared
        return max(scale.most for scale in scales), min(scale.least for scale in scales)

    @cached_property
    def default_priority(self) -> Manifest | None:
        """The PriorityClass of pods that name none: of several the one that counts least."""
        classes = (one for _, one in self.facts.of_kind(("scheduling.k8s.io", "PriorityClass")))
        defaults = [one for one in classes if one.get("globalDefault") is True]
        return min(defaults, key=lambda one: number(one.get("value"), 0), default=None)

    @cached_property
    def limit_ranges(self) -> dict[str, list[tuple[str, Manifest]]]:
        """What the LimitRanges of each namespace say, each with the name of the LimitRange."""
        found: dict[str, list[tuple[str, Manifest]]] = {}
        for _, manifest in self.facts.of_kind(("", "LimitRange")):
            named = [(str(_metadata(manifest).get("name")), limit) for limit in members(limits_of(manifest))]
            found.setdefault(namespace_of(manifest), []).extend(named)
        return found

    @cached_property
    def quotas(self) -> dict[str, dict[str, Manifest]]:
        """ResourceQuotas by namespace and name."""
        found: dict[str, dict[str, Manifest]] = {}
        for _, quota in self.facts.of_kind(("", "ResourceQuota")):
            found.setdefault(namespace_of(quota), {}).setdefault(str(_metadata(quota).get("name")), quota)
        return found

    @cached_property
    def _scales(self) -> dict[tuple[str, str, str], list[tuple[str | None, Scale]]]:
        found: dict[tuple[str, str, str], list[tuple[str | None, Scale]]] = {}
        for index, scaler in self.facts.of_kind(
            ("autoscaling", "HorizontalPodAutoscaler"), ("keda.sh", "ScaledObject")
        ):
            spec = mapping(scaler.get("spec"))
            is_keda = self.facts.kinds[index][0] == "keda.sh"
            scale = _keda(scaler, spec) if is_keda else _horizontal(spec)
            target = mapping(spec.get("scaleTargetRef"))
            # kedacore/keda@v2.20.2:pkg/util/gvkr.go: a ScaledObject means a Deployment where it names no kind.
            kind = target.get("kind") or ("Deployment" if is_keda else "")
            version = target.get("apiVersion") or ("apps/v1" if is_keda else None)
            if scale is not None:
                key = (namespace_of(scaler), str(kind), str(target.get("name")))
                found.setdefault(key, []).append((None if version is None else group_of(str(version)), scale))
        return found


def _metadata(manifest: Manifest) -> Mapping[str, Any]:
    return mapping(manifest.get("metadata"))


def _horizontal(spec: Mapping[str, Any]) -> Scale | None:
    """Kubernetes v1.36 autoscaling/v2: minReplicas is 1 where absent; a target declared with 0 is left alone."""
    most = spec.get("maxReplicas")
    if number(most, -1) < 1:
        return None
    least = number(spec.get("minReplicas"), 1)
    return Scale(least, max(least, number(most, 1)), wakes=least == 0)


def _keda(scaler: Manifest, spec: Mapping[str, Any]) -> Scale:
    """kedacore/keda@v2.20.2:apis/keda/v1alpha1/scaledobject_types.go: at most 100 and down to 0 where absent."""
    paused = str(annotations_of(scaler).get("autoscaling.keda.sh/paused-replicas", ""))
    if paused.isdecimal() and len(paused) < 10:
        return Scale(int(paused), int(paused), wakes=True)
    least = number(spec.get("minReplicaCount"), 0)
    idle = min(least, number(spec.get("idleReplicaCount"), least))
    return Scale(idle, max(least, number(spec.get("maxReplicaCount"), 100)), wakes=True)
