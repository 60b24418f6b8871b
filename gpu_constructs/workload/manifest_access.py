"""Giving GPUs to the pods of a manifest, whoever wrote it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from gpu_constructs import _kinds
from gpu_constructs.annotations import IGNORE_RULES, VISIBLE_DEVICES_CHOICE, VRAM
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.pod_specs import Path, pod_spec_paths
from gpu_constructs.workload.gpu_allocation import (
    GpuAllocation,
    VisibleDevices,
    container_named,
)
from gpu_constructs.workload.strategy import Strategy

UpdateChoice = Literal["one-at-a-time", "unchanged"]

_HOLDERS: Mapping[tuple[str, str], str] = {
    ("kubeflow.org", "PyTorchJob"): "pytorch",
    ("kubeflow.org", "TFJob"): "tensorflow",
    ("serving.kserve.io", "ClusterServingRuntime"): "kserve-container",
    ("serving.kserve.io", "InferenceService"): "kserve-container",
    ("serving.kserve.io", "ServingRuntime"): "kserve-container",
    ("trainer.kubeflow.org", "ClusterTrainingRuntime"): "node",
    ("trainer.kubeflow.org", "TrainingRuntime"): "node",
}
"""What the operators call the container that does the work."""

_WITHOUT_RUNTIME_CLASS = {
    ("serving.kserve.io", "ClusterServingRuntime"): "the InferenceService that uses it",
    ("serving.kserve.io", "ServingRuntime"): "the InferenceService that uses it",
}
"""Kinds whose pods have no runtimeClassName, and what names it instead."""

# The API server prunes claims from these, whose schema of a pod is older or narrower.
_WITHOUT_CLAIMS = (("kubeflow.org", "Notebook"), *_WITHOUT_RUNTIME_CLASS)

_NO_PODS = {
    ("trainer.kubeflow.org", "TrainJob"): (
        "a TrainJob has no place for a runtime class; give the GPUs to the TrainingRuntime it refers to"
    ),
}
_DEFAULT_SURGE = (None, "25%")
_SHARED_MEMORY = "dev-shm"


@dataclass(frozen=True, kw_only=True)
class ManifestAccess:
    """GPUs for one container of each pod that a manifest makes.

    Attributes:
        container: Its name. None: what the kind's operator calls it, else the first.
        pod_spec: Where the pods are, for kinds that are not known: ``spec.groups[*].template.spec``.
        shared_memory: Size of ``/dev/shm``.
        strategy: What becomes of a Deployment that updates with additional pods, as Kubernetes does by default.
    """

    allocation: GpuAllocation
    container: str | None = None
    pod_spec: str | None = None
    shared_memory: str | None = None
    visible_devices: VisibleDevices = "managed"
    strategy: UpdateChoice = "one-at-a-time"
    ignore_rules: tuple[str, ...] = ()

    def has_place_for_runtime_class(self, manifest: Mapping[str, Any]) -> bool:
        """Whether the pods of that kind can name a runtime class."""
        return _kind(manifest) not in _WITHOUT_RUNTIME_CLASS

    def check(self, manifest: Mapping[str, Any]) -> None:
        """Refuse a manifest that can never get GPUs.

        Raises:
            GpuConstructsError: Its kind holds no pods, or no claims where claims are made.
        """
        kind = _kind(manifest)
        if kind in _NO_PODS:
            raise GpuConstructsError(_NO_PODS[kind])
        if not pod_spec_paths(manifest, self.pod_spec):
            where = f" at {self.pod_spec!r}" if self.pod_spec else ""
            raise GpuConstructsError(
                f"a {manifest.get('kind')} holds no pod template{where}, so there is nothing to give a GPU to; give it "
                "to the workload itself, or say where its pods are: GpuAccess(pod_spec='spec.….template.spec')"
            )
        if self.allocation.by_claims and kind in _WITHOUT_CLAIMS:
            raise GpuConstructsError(
                f"pods of a {kind[1]} have no place for claims, which the API server would drop; use "
                "Backend.device_plugin() or Backend.dra_extended_resource() for it"
            )

    def given(self, manifest: Mapping[str, Any], *, claim_template: str | None) -> dict[str, Any]:
        """Give the manifest with GPUs in its pods. Done twice, it changes nothing the second time.

        Raises:
            GpuConstructsError: Something in it contradicts.
        """
        made = copy.deepcopy(dict(manifest))
        for path in self._holding_paths(made):
            parent, key = _parent(made, path)
            pod = self.allocation.give(
                parent[key],
                container=self._holder_in(made, parent[key]),
                claim_template=claim_template,
                visible_devices=self.visible_devices,
                names_runtime_class=self.has_place_for_runtime_class(made),
            )
            if self.shared_memory is not None:
                self._mount_shared_memory(pod, container_named(pod, self._holder_in(made, pod)))
            parent[key] = pod
        self._annotate(made)
        if self.strategy == "one-at-a-time":
            _update_one_at_a_time(made)
        return made

    def hide_from_others(self, made: dict[str, Any]) -> None:
        """Let all containers that hold no GPU see none."""
        for path in self._holding_paths(made):
            parent, key = _parent(made, path)
            parent[key] = self.allocation.hide_from_others(parent[key])

    def missing_from(self, manifest: Mapping[str, Any]) -> str | None:
        """Say what of it is not in a manifest, as after a later patch; None where all is there."""
        for path in self._holding_paths(manifest):
            parent, key = _parent(manifest, path)
            holder = container_named(parent[key], self._holder_in(manifest, parent[key]))
            resources = holder.get("resources") or {}
            for resource, count in self.allocation.limits.items():
                there = (resources.get("limits") or {}).get(resource)
                if str(there) != str(count):
                    return f"limits of {count} x {resource} in container {holder.get('name')!r}, where {there!r} is now"
            if self.allocation.by_claims and not resources.get("claims"):
                return f"the claim of container {holder.get('name')!r}"
        return None

    def _holding_paths(self, manifest: Mapping[str, Any]) -> list[Path]:
        """Give the pods that have the container; where the kind only suggests its name, else all of them."""
        paths = pod_spec_paths(manifest, self.pod_spec)
        name = self.container or _holder_of_kind(manifest)
        pods = {path: _at(manifest, path) for path in paths}
        # Workers of a KServe runtime, and steps of a training that load data, are pods of their own.
        found = [path for path, pod in pods.items() if name is not None and _has(pod, name)]
        if found:
            return found
        if self.container is not None:
            container_named(next(iter(pods.values())), self.container)
        return [path for path, pod in pods.items() if pod.get("containers") or pod.get("model")] or paths

    def _holder_in(self, manifest: Mapping[str, Any], pod: Mapping[str, Any]) -> str | None:
        if self.container is not None:
            return self.container
        name = _holder_of_kind(manifest)
        return name if name is not None and _has(pod, name) else None

    def _mount_shared_memory(self, pod: dict[str, Any], holder: Mapping[str, Any]) -> None:
        mounts = list(holder.get("volumeMounts") or ())
        if any(str(mount.get("mountPath")).rstrip("/") == "/dev/shm" for mount in mounts):
            if any(mount.get("name") == _SHARED_MEMORY for mount in mounts):
                return
            raise GpuConstructsError(
                f"container {holder.get('name')!r} mounts a volume at /dev/shm already; leave shared_memory out"
            )
        changed = {**holder, "volumeMounts": [*mounts, {"name": _SHARED_MEMORY, "mountPath": "/dev/shm"}]}
        for group in ("containers", "initContainers"):
            if pod.get(group):
                pod[group] = [changed if one is holder else one for one in pod[group]]
        others = [volume for volume in pod.get("volumes") or () if volume.get("name") != _SHARED_MEMORY]
        memory = {"name": _SHARED_MEMORY, "emptyDir": {"medium": "Memory", "sizeLimit": self.shared_memory}}
        pod["volumes"] = [*others, memory]

    def _annotate(self, made: dict[str, Any]) -> None:
        said = {}
        if self.visible_devices == "unmanaged":
            said[VISIBLE_DEVICES_CHOICE] = "unmanaged"
        if self.allocation.request.vram is not None:
            said[VRAM] = self.allocation.request.vram
        metadata = made.setdefault("metadata", {})
        if self.ignore_rules:
            there = (metadata.get("annotations") or {}).get(IGNORE_RULES, "").split(",")
            said[IGNORE_RULES] = ",".join(dict.fromkeys(code for code in (*there, *self.ignore_rules) if code))
        if said:
            metadata["annotations"] = {**(metadata.get("annotations") or {}), **said}


def _kind(manifest: Mapping[str, Any]) -> tuple[str, str]:
    return _kinds.group_of(str(manifest.get("apiVersion", ""))), str(manifest.get("kind"))


def _holder_of_kind(manifest: Mapping[str, Any]) -> str | None:
    if _kind(manifest) == ("kubeflow.org", "Experiment"):
        template = (manifest.get("spec") or {}).get("trialTemplate") or {}
        return template.get("primaryContainerName")
    return _HOLDERS.get(_kind(manifest))


def _has(pod: Mapping[str, Any], name: str) -> bool:
    return any(one.get("name") == name for group in ("containers", "initContainers") for one in pod.get(group) or ())


def _at(manifest: Mapping[str, Any], path: Path) -> Mapping[str, Any]:
    parent, key = _parent(manifest, path)
    pod: Mapping[str, Any] = parent[key]
    return pod


def _parent(manifest: Any, path: Path) -> tuple[Any, str | int]:
    for step in path[:-1]:
        manifest = manifest[step]
    return manifest, path[-1]


def _update_one_at_a_time(manifest: dict[str, Any]) -> None:
    """Let a Deployment that updates by Kubernetes' default stop a pod before its successor wants a GPU."""
    if _kind(manifest) != ("apps", "Deployment"):
        return
    spec = manifest["spec"]
    strategy = spec.get("strategy") or {}
    rolling = strategy.get("rollingUpdate") or {}
    is_default = strategy.get("type", "RollingUpdate") == "RollingUpdate" and all(
        rolling.get(number) in _DEFAULT_SURGE for number in ("maxSurge", "maxUnavailable")
    )
    if is_default:
        replicas = spec.get("replicas", 1)
        safe = Strategy.recreate() if replicas is not None and replicas <= 1 else Strategy.rolling_update()
        spec["strategy"] = safe.to_manifest("Deployment")
