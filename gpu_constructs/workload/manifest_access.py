"""Giving GPUs to the pods of a manifest, whoever wrote it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal

from gpu_constructs import _fields, _kinds
from gpu_constructs.annotations import IGNORE_RULES, VISIBLE_DEVICES_CHOICE
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.pod_specs import Path, model_server, pod_spec_paths
from gpu_constructs.workload.gpu_allocation import GpuAllocation, VisibleDevices, container_named
from gpu_constructs.workload.strategy import Strategy

UpdateChoice = Literal["one-at-a-time", "unchanged"] | Strategy

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
# Pods that start others, load data or choose where a request goes: they hold no GPU.
_COORDINATING: Mapping[tuple[str, str], frozenset[str]] = {
    ("kubeflow.org", "MPIJob"): frozenset({"Launcher"}),
    ("kubeflow.org", "TFJob"): frozenset({"PS", "Evaluator"}),
    ("ray.io", "RayCluster"): frozenset({"headGroupSpec"}),
    ("ray.io", "RayCronJob"): frozenset({"headGroupSpec", "submitterPodTemplate"}),
    ("ray.io", "RayJob"): frozenset({"headGroupSpec", "submitterPodTemplate"}),
    ("ray.io", "RayService"): frozenset({"headGroupSpec"}),
    ("serving.kserve.io", "InferenceService"): frozenset({"transformer", "explainer"}),
    ("serving.kserve.io", "LLMInferenceService"): frozenset({"router"}),
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
        strategy: What becomes of a Deployment that updates with additional pods, as Kubernetes does by default; or the
            strategy that a Deployment or StatefulSet gets.
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
        if kind[1] == "List":
            raise GpuConstructsError(
                "a List is not looked into, so its workloads would get no GPU; include its items one by one"
            )
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
                self._mount_shared_memory(
                    pod, container_named(pod, self._holder_in(made, pod)), size=self.shared_memory
                )
            parent[key] = pod
        self._annotate(made)
        if isinstance(self.strategy, Strategy):
            _update_by(self.strategy, made)
        elif self.strategy == "one-at-a-time":
            _update_one_at_a_time(made)
        return made

    def hide_from_others(self, made: dict[str, Any]) -> None:
        """Let all containers that hold no GPU see none."""
        for path in self._holding_paths(made):
            parent, key = _parent(made, path)
            parent[key] = self.allocation.hide_from_others(parent[key])

    def missing_from(self, manifest: Mapping[str, Any], *, claim_template: str | None) -> str | None:
        """Say what of it is not in a manifest, as after a later patch; None where all is there.

        Raises:
            GpuConstructsError: Something in it contradicts.
        """
        self.check(manifest)
        again = self.given(manifest, claim_template=claim_template)
        for path in self._holding_paths(again):
            gone = _difference(_at(again, path), _at(manifest, path))
            if gone is not None:
                return gone
        return None

    def _holding_paths(self, manifest: Mapping[str, Any]) -> list[Path]:
        """Give the pods that get GPUs.

        Where the kind has pods that only coordinate, not these, unless there are no others; of the rest those with the
        container, or, where the kind only suggests its name and none has it, all.
        """
        paths = pod_spec_paths(manifest, self.pod_spec)
        if self.pod_spec is None:
            coordinating = _COORDINATING.get(_kind(manifest), frozenset())
            paths = [path for path in paths if coordinating.isdisjoint(path)] or paths
        name = self.container or _holder_of_kind(manifest)
        pods = {path: _at(manifest, path) for path in paths}
        # Steps of a training that load data are pods of their own.
        found = [path for path, pod in pods.items() if name is not None and _has(pod, name)]
        if self.container is not None and not found and pods:
            container_named(next(iter(pods.values())), self.container)
        served = [path for path, pod in pods.items() if model_server(pod) is not None]
        if found or served:
            return [path for path in paths if path in found or path in served]
        return [path for path, pod in pods.items() if pod.get("containers")] or paths

    def _holder_in(self, manifest: Mapping[str, Any], pod: Mapping[str, Any]) -> str | None:
        if self.container is not None:
            return self.container
        name = _holder_of_kind(manifest)
        return name if name is not None and _has(pod, name) else None

    def _mount_shared_memory(self, pod: dict[str, Any], holder: Mapping[str, Any], *, size: str) -> None:
        limit = ((holder.get("resources") or {}).get("limits") or {}).get("memory")
        if limit is not None and _fields.amount(size) >= _fields.amount(str(limit)):
            raise GpuConstructsError(
                f"shared_memory must be less than the memory limit of {limit}, against which it counts; got {size!r}; "
                f"raise the limit of container {holder.get('name')!r}"
            )
        volumes, mounts = list(pod.get("volumes") or ()), list(holder.get("volumeMounts") or ())
        memory = {"medium": "Memory", "sizeLimit": size}
        there = next((one for one in mounts if str(one.get("mountPath")).rstrip("/") == "/dev/shm"), None)
        if there is not None:
            if any(one.get("name") == there.get("name") and one.get("emptyDir") == memory for one in volumes):
                return
            raise GpuConstructsError(
                f"container {holder.get('name')!r} mounts another volume at /dev/shm already; leave shared_memory out"
            )
        taken = {one.get("name") for one in volumes}
        name = next(
            name for number in count() if (name := _SHARED_MEMORY + (f"-{number}" if number else "")) not in taken
        )
        changed = {**holder, "volumeMounts": [*mounts, {"name": name, "mountPath": "/dev/shm"}]}
        for group in ("containers", "initContainers"):
            if pod.get(group):
                pod[group] = [changed if one is holder else one for one in pod[group]]
        pod["volumes"] = [*volumes, {"name": name, "emptyDir": memory}]

    def _annotate(self, made: dict[str, Any]) -> None:
        said = {}
        if self.visible_devices == "unmanaged":
            said[VISIBLE_DEVICES_CHOICE] = "unmanaged"
        budget = self.allocation.request.annotations
        said |= budget
        metadata = made.setdefault("metadata", {})
        if self.ignore_rules:
            there = (metadata.get("annotations") or {}).get(IGNORE_RULES, "").split(",")
            said[IGNORE_RULES] = ",".join(dict.fromkeys(code for code in (*there, *self.ignore_rules) if code))
        there = metadata.get("annotations") or {}
        for name, amount in budget.items():
            if there.get(name, amount) != amount:
                field = name.removeprefix("gpu-constructs/").replace("-", "_")
                raise GpuConstructsError(
                    f"the object has a budget of {there[name]!r} already ({name}), where request.{field} is "
                    f"{amount!r}; leave one of the two out"
                )
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


def _difference(wanted: Any, there: Any, path: str = "pod") -> str | None:
    """Say where something wanted is not there; what is there besides does not matter."""
    if isinstance(wanted, Mapping) and isinstance(there, Mapping):
        found = (_difference(value, there.get(key), f"{path}.{key}") for key, value in wanted.items())
        return next((one for one in found if one), None)
    if isinstance(wanted, list) and isinstance(there, list) and len(wanted) == len(there):
        found = (_difference(a, b, f"{path}[{i}]") for i, (a, b) in enumerate(zip(wanted, there, strict=True)))
        return next((one for one in found if one), None)
    return None if wanted == there else f"{path} of {wanted!r}, where {there!r} is now"


def _update_by(strategy: Strategy, manifest: dict[str, Any]) -> None:
    group, kind = _kind(manifest)
    if group == "apps" and kind in ("Deployment", "StatefulSet"):
        key = "strategy" if kind == "Deployment" else "updateStrategy"
        manifest["spec"][key] = strategy.to_manifest(kind)


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
        # Without a number an autoscaler sets it.
        replicas = spec.get("replicas")
        safe = Strategy.recreate() if replicas is not None and replicas <= 1 else Strategy.rolling_update()
        spec["strategy"] = safe.to_manifest("Deployment")
