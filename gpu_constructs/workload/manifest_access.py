"""Giving GPUs to the pods of a manifest, whoever wrote it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube import kinds
from gpu_constructs.kube.annotations import IGNORE_RULES
from gpu_constructs.kube.pod_specs import model_server, pod_spec_paths, pod_specs
from gpu_constructs.workload.gpu_in_pod import GpuAllocation, VisibleDevices, container_named, with_containers
from gpu_constructs.workload.manifests import check_shared_memory
from gpu_constructs.workload.options import Strategy, annotations_of

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
        container: Name of the container. None: what the kind's operator calls it, else the first.
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
        """Raise if a manifest can never get GPUs.

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
        """Return the manifest with GPUs in its pods. Done twice, it changes nothing the second time.

        Raises:
            GpuConstructsError: Something in it contradicts.
        """
        made = copy.deepcopy(dict(manifest))
        for pod in self._holding(made):
            pod.update(self._with_gpus(pod, made, claim_template))
        _annotate(self, made)
        if isinstance(self.strategy, Strategy):
            _update_by(self.strategy, made)
        elif self.strategy == "one-at-a-time":
            _update_one_at_a_time(made)
        return made

    def hide_from_others(self, made: dict[str, Any]) -> None:
        """Let all containers that hold no GPU see none."""
        for pod in self._holding(made):
            pod.update(self.allocation.hide_from_others(pod))

    def missing_from(self, manifest: Mapping[str, Any], *, claim_template: str | None) -> str | None:
        """Return what of it is not in a manifest, as after a later patch; None where all is there.

        Raises:
            GpuConstructsError: Something in it contradicts.
        """
        self.check(manifest)
        gone = (_difference(self._with_gpus(pod, manifest, claim_template), pod) for pod in self._holding(manifest))
        return next((one for one in gone if one is not None), None)

    def _with_gpus(
        self, pod: Mapping[str, Any], manifest: Mapping[str, Any], claim_template: str | None
    ) -> dict[str, Any]:
        named = self.container or _holder_of_kind(manifest)
        holder = named if self.container is not None or _has(pod, named) else None
        made = self.allocation.give(
            pod,
            container=holder,
            claim_template=claim_template,
            visible_devices=self.visible_devices,
            names_runtime_class=self.has_place_for_runtime_class(manifest),
        )
        if self.shared_memory is not None:
            _mount_shared_memory(made, container_named(made, holder), size=self.shared_memory)
        return made

    def _holding(self, manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the pods that get GPUs.

        Where the kind has pods that only coordinate, not these, unless there are no others; of the rest those with the
        container, or, where the kind only suggests its name and none has it, all.
        """
        pods = _working_pods(manifest, self.pod_spec)
        name = self.container or _holder_of_kind(manifest)
        # Steps of a training that load data are pods of their own.
        named = [pod for pod in pods if _has(pod, name)]
        if self.container is not None and pods and not named:
            container_named(pods[0], self.container)
        found = [pod for pod in pods if pod in named or model_server(pod) is not None]
        return found or [pod for pod in pods if pod.get("containers")] or pods


def _working_pods(manifest: Mapping[str, Any], path: str | None) -> list[dict[str, Any]]:
    """Return the pods that do not only coordinate others, or all if there are no such pods."""
    coordinating = _COORDINATING.get(_kind(manifest), frozenset()) if path is None else frozenset()
    pods = [*pod_specs(manifest, path)]
    places = pod_spec_paths(manifest, path)
    return [pod for place, pod in zip(places, pods, strict=True) if coordinating.isdisjoint(place)] or pods


def _mount_shared_memory(pod: dict[str, Any], holder: Mapping[str, Any], *, size: str) -> None:
    container = repr(holder.get("name"))
    check_shared_memory(size, holder.get("resources") or {}, way_out=f"raise the limit of container {container}")
    volumes = {one.get("name"): one for one in pod.get("volumes") or ()}
    mounts, memory = list(holder.get("volumeMounts") or ()), {"medium": "Memory", "sizeLimit": size}
    there = [volumes.get(mount.get("name"), {}) for mount in mounts if _is_shared_memory(mount)]
    if there and there[0].get("emptyDir") != memory:
        raise GpuConstructsError(
            f"container {container} mounts another volume at /dev/shm already; leave shared_memory out"
        )
    if there:
        return
    names = (_SHARED_MEMORY, *(f"{_SHARED_MEMORY}-{number}" for number in range(1, len(volumes) + 1)))
    free = next(name for name in names if name not in volumes)
    changed = {**holder, "volumeMounts": [*mounts, {"name": free, "mountPath": "/dev/shm"}]}
    pod.update(with_containers(pod, lambda one: changed if one is holder else one))
    pod["volumes"] = [*(pod.get("volumes") or ()), {"name": free, "emptyDir": memory}]


def _is_shared_memory(mount: Mapping[str, Any]) -> bool:
    return str(mount.get("mountPath")).rstrip("/") == "/dev/shm"


def _annotate(access: ManifestAccess, made: dict[str, Any]) -> None:
    metadata = made.setdefault("metadata", {})
    there = metadata.get("annotations") or {}
    said = annotations_of(None, access.allocation.request, access.ignore_rules, access.visible_devices)
    for name, amount in access.allocation.request.annotations.items():
        if there.get(name, amount) != amount:
            field = name.removeprefix("gpu-constructs/").replace("-", "_")
            raise GpuConstructsError(
                f"the object has a budget of {there[name]!r} already ({name}), where request.{field} is "
                f"{amount!r}; leave one of the two out"
            )
    if IGNORE_RULES in said:
        codes = [*there.get(IGNORE_RULES, "").split(","), *access.ignore_rules]
        said[IGNORE_RULES] = ",".join(dict.fromkeys(code for code in codes if code))
    if said:
        metadata["annotations"] = {**there, **said}


def _kind(manifest: Mapping[str, Any]) -> tuple[str, str]:
    return kinds.group_of(str(manifest.get("apiVersion", ""))), str(manifest.get("kind"))


def _holder_of_kind(manifest: Mapping[str, Any]) -> str | None:
    if _kind(manifest) == ("kubeflow.org", "Experiment"):
        template = (manifest.get("spec") or {}).get("trialTemplate") or {}
        return template.get("primaryContainerName")
    return _HOLDERS.get(_kind(manifest))


def _has(pod: Mapping[str, Any], name: str | None) -> bool:
    there = (one.get("name") for group in ("containers", "initContainers") for one in pod.get(group) or ())
    return name is not None and name in there


def _difference(wanted: Any, there: Any, path: str = "pod") -> str | None:
    """Return where something wanted is not there; what is there besides does not matter."""
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
