"""`ManifestAccess`: adds GPUs to the pods of a manifest, even if another library wrote the manifest."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Literal

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.facts.charts import Workload
from gpu_constructs.facts.helm_releases import Release
from gpu_constructs.kube import kinds
from gpu_constructs.kube.annotations import IGNORE_RULES
from gpu_constructs.kube.pod_specs import model_server, pod_spec_paths, pod_specs
from gpu_constructs.records import dataclass
from gpu_constructs.workload.gpu_in_pod import GpuAllocation, VisibleDevices, container_named, with_containers
from gpu_constructs.workload.manifests import check_shared_memory
from gpu_constructs.workload.options import Strategy, annotations_of
from gpu_constructs.workload.release_access import Change, gpu_workloads, in_fields_of_chart, is_release, with_workloads

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
"""Name of the main container, for each kind whose operator finds that container by a fixed name."""

_WITHOUT_RUNTIME_CLASS = {
    ("serving.kserve.io", "ClusterServingRuntime"): "the InferenceService that uses it",
    ("serving.kserve.io", "ServingRuntime"): "the InferenceService that uses it",
}
"""Kinds whose pods have no field for a runtime class, each with the object that has the field instead."""

# The API server removes claims from the pods of these kinds, because the pod schema of the kinds lacks the field.
_WITHOUT_CLAIMS = (("kubeflow.org", "Notebook"), *_WITHOUT_RUNTIME_CLASS)

_NO_PODS = {
    ("trainer.kubeflow.org", "TrainJob"): (
        "a TrainJob has no field for a runtime class. Apply GpuAccess to its TrainingRuntime"
    ),
}
# Pods that start other pods, load data or route requests. They get no GPU.
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
    """The checked options of a ``GpuAccess``, which adds GPUs to one container of each pod in a manifest.

    Attributes:
        allocation: Kubernetes fields for the GPU request.
        container: Name of the container that gets the GPUs. None: the container with the name that the operator of the
            kind requires, such as ``pytorch`` for a PyTorchJob. For other kinds, the first container.
        pod_spec: Path of the pod specs in a kind that the library does not know, such as
            ``spec.groups[*].template.spec``.
        shared_memory: Size of ``/dev/shm`` in that container, as a quantity. None: the size stays as it is.
        visible_devices: ``managed`` rejects ``NVIDIA_VISIBLE_DEVICES`` in that container, and ``unmanaged`` allows it.
        strategy: Update strategy, with the values of the keyword ``strategy`` of ``GpuAccess``.
        ignore_rules: Codes of rules that ``synth`` does not check for the object.
        chart: Name of the Helm chart of a HelmRelease, if the HelmRelease refers to the chart through another object of
            the app, such as an OCIRepository. Otherwise None.
    """

    allocation: GpuAllocation
    container: str | None = None
    pod_spec: str | None = None
    shared_memory: str | None = None
    visible_devices: VisibleDevices = "managed"
    strategy: UpdateChoice = "one-at-a-time"
    ignore_rules: tuple[str, ...] = ()
    chart: str | None = None

    def has_place_for_runtime_class(self, manifest: Mapping[str, Any]) -> bool:
        """Check whether the kind of the manifest has a field for the ``runtimeClassName`` of its pods.

        A ServingRuntime or ClusterServingRuntime of KServe does not. The InferenceService that uses it has the field.
        """
        return _kind(manifest) not in _WITHOUT_RUNTIME_CLASS

    def check(self, manifest: Mapping[str, Any]) -> None:
        """Raise an error if the pods of a manifest can never get GPUs.

        Raises:
            GpuConstructsError: The kind has no pods, or its pods have no field for a claim and need one.
        """
        kind = _kind(manifest)
        if kind in _NO_PODS:
            raise GpuConstructsError(_NO_PODS[kind])
        if kind[1] == "List":
            raise GpuConstructsError("GpuAccess does not support the items of a List. Include its items one by one")
        if is_release(manifest):
            for _, workload in self._workloads(manifest):
                self.check(workload.manifest)
        elif not pod_spec_paths(manifest, self.pod_spec):
            where = f" at {self.pod_spec!r}" if self.pod_spec else ""
            raise GpuConstructsError(
                f"a {manifest.get('kind')} contains no pod template{where}. Apply GpuAccess to the workload itself, or "
                "set the path of its pods: GpuAccess(pod_spec='spec.….template.spec')"
            )
        if self.allocation.by_claims and (kind in _WITHOUT_CLAIMS or is_release(manifest)):
            raise GpuConstructsError(
                f"pods of a {kind[1]} have no field for claims, and the API server drops unknown fields. Use "
                "Backend.device_plugin() or Backend.dra_extended_resource()"
            )

    def given(self, manifest: Mapping[str, Any], *, claim_template: str | None) -> dict[str, Any]:
        """Return a copy of the manifest with GPUs in its pods. Pods that already have the GPUs do not change.

        Args:
            manifest: Manifest of an object that creates pods, of a HelmRelease or of an Application.
            claim_template: Name of the ResourceClaimTemplate that the pods use. None if they use none.

        Raises:
            GpuConstructsError: A field of the manifest conflicts with the GPUs.
        """
        made = copy.deepcopy(dict(manifest))
        if is_release(manifest):
            made = self._in_values(made, lambda one: self.given(one, claim_template=claim_template))
            gone = self.missing_from(made, claim_template=claim_template)
            if gone is not None:
                raise GpuConstructsError(
                    f"GpuAccess sets {gone} in the workload, because the Helm values of the chart have no key for "
                    "this field. Leave out the option of GpuAccess that sets the field, or render the chart with helm "
                    "template, include the result and apply GpuAccess to the workload"
                )
            _annotate(self, made)
            return made
        for pod in self._holding(made):
            pod.update(self._with_gpus(pod, made, claim_template))
        _annotate(self, made)
        if isinstance(self.strategy, Strategy):
            _update_by(self.strategy, made)
        elif self.strategy == "one-at-a-time":
            _update_one_at_a_time(made)
        return made

    def hide_from_others(self, made: dict[str, Any]) -> None:
        """Set ``NVIDIA_VISIBLE_DEVICES=void`` in each container without GPUs, in all pods that get GPUs.

        The method changes the manifest ``made`` and returns nothing.
        """
        if is_release(made):
            made.update(self._in_values(made, self._hidden))
            return
        for pod in self._holding(made):
            pod.update(self.allocation.hide_from_others(pod))

    def missing_from(self, manifest: Mapping[str, Any], *, claim_template: str | None) -> str | None:
        """Return text that describes the first GPU field that is missing or different in the manifest.

        For example, a JSON patch of the user removed the field. Return None if there is no such field.

        Args:
            manifest: Manifest after all changes.
            claim_template: Name of the ResourceClaimTemplate that the pods use. None if they use none.

        Raises:
            GpuConstructsError: A field of the manifest conflicts with the GPUs.
        """
        self.check(manifest)
        if is_release(manifest):
            each = [
                (in_fields_of_chart(one, self.given(one.manifest, claim_template=None)), one.manifest)
                for _, one in self._workloads(manifest)
            ]
            gone = (_difference(wanted["spec"], there["spec"], "spec") for wanted, there in each)
            return next((one for one in gone if one is not None), None)
        gone = (_difference(self._with_gpus(pod, manifest, claim_template), pod) for pod in self._holding(manifest))
        return next((one for one in gone if one is not None), None)

    def _workloads(self, manifest: Mapping[str, Any]) -> list[tuple[Release, Workload]]:
        return gpu_workloads(manifest, self.chart, self.container)

    def _in_values(self, manifest: Mapping[str, Any], change: Change) -> dict[str, Any]:
        return with_workloads(manifest, self.chart, self.container, change)

    def _hidden(self, workload: Mapping[str, Any]) -> dict[str, Any]:
        made = copy.deepcopy(dict(workload))
        self.hide_from_others(made)
        return made

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
        """Return those pod specs in the result of ``_working_pods`` that get GPUs.

        The result contains the pods with the container ``container`` or, if this option is None, with the main
        container of the kind, such as ``pytorch`` for a PyTorchJob. It also contains KServe predictors with a model
        server. If there are no such pods, it contains all pods that have containers.

        Raises:
            ContainerMissingError: No pod has the container ``container``.
        """
        pods = _working_pods(manifest, self.pod_spec)
        name = self.container or _holder_of_kind(manifest)
        # A training can have further pods that load data. They do not have the container.
        named = [pod for pod in pods if _has(pod, name)]
        if self.container is not None and pods and not named:
            container_named(pods[0], self.container)
        found = [pod for pod in pods if pod in named or model_server(pod) is not None]
        return found or [pod for pod in pods if pod.get("containers")] or pods


def _working_pods(manifest: Mapping[str, Any], path: str | None) -> list[dict[str, Any]]:
    """Return the pod specs of a manifest, without those of pods that only coordinate other pods, such as a launcher.

    If all pods only coordinate others, return all pod specs.

    Args:
        manifest: Manifest of an object that creates pods.
        path: Path of the pod specs in a kind that the library does not know. For such a kind, the result contains all
            pod specs. None for a known kind.
    """
    coordinating = _COORDINATING.get(_kind(manifest), frozenset()) if path is None else frozenset()
    pods = [*pod_specs(manifest, path)]
    places = pod_spec_paths(manifest, path)
    return [pod for place, pod in zip(places, pods, strict=True) if coordinating.isdisjoint(place)] or pods


def _mount_shared_memory(pod: dict[str, Any], holder: Mapping[str, Any], *, size: str) -> None:
    container = repr(holder.get("name"))
    check_shared_memory(size, holder.get("resources") or {}, way_out=f"Raise the limit of container {container}")
    volumes = {one.get("name"): one for one in pod.get("volumes") or ()}
    mounts, memory = list(holder.get("volumeMounts") or ()), {"medium": "Memory", "sizeLimit": size}
    there = [volumes.get(mount.get("name"), {}) for mount in mounts if _is_shared_memory(mount)]
    if there and there[0].get("emptyDir") != memory:
        raise GpuConstructsError(
            f"container {container} already mounts another volume at /dev/shm. Remove shared_memory"
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
                f"the object already has a budget of {there[name]!r} ({name}), and request.{field} is "
                f"{amount!r}. Remove one of them"
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
    """Return text that describes the first field of ``wanted`` that is missing or different in ``there``.

    The text continues a message after the word "sets": ``pod.runtimeClassName to 'nvidia', but it is None``. Return
    None if there is no such field.

    The argument ``wanted`` is a pod spec with the GPU fields, and ``there`` is the pod spec in the manifest. ``there``
    can have further fields, with any value.
    """
    if isinstance(wanted, Mapping) and isinstance(there, Mapping):
        found = (_difference(value, there.get(key), f"{path}.{key}") for key, value in wanted.items())
        return next((one for one in found if one), None)
    if isinstance(wanted, list) and isinstance(there, list) and len(wanted) == len(there):
        found = (_difference(a, b, f"{path}[{i}]") for i, (a, b) in enumerate(zip(wanted, there, strict=True)))
        return next((one for one in found if one), None)
    return None if wanted == there else f"{path} to {wanted!r}, but it is {there!r}"


def _update_by(strategy: Strategy, manifest: dict[str, Any]) -> None:
    group, kind = _kind(manifest)
    if group == "apps" and kind in ("Deployment", "StatefulSet"):
        key = "strategy" if kind == "Deployment" else "updateStrategy"
        manifest["spec"][key] = strategy.to_manifest(kind)


def _update_one_at_a_time(manifest: dict[str, Any]) -> None:
    """Make a Deployment with the default update strategy stop an old pod before it starts a new one."""
    if _kind(manifest) != ("apps", "Deployment"):
        return
    spec = manifest["spec"]
    strategy = spec.get("strategy") or {}
    rolling = strategy.get("rollingUpdate") or {}
    is_default = strategy.get("type", "RollingUpdate") == "RollingUpdate" and all(
        rolling.get(number) in _DEFAULT_SURGE for number in ("maxSurge", "maxUnavailable")
    )
    if is_default:
        # If the Deployment sets no number of replicas, an autoscaler sets it.
        replicas = spec.get("replicas")
        safe = Strategy.recreate() if replicas is not None and replicas <= 1 else Strategy.rolling_update()
        spec["strategy"] = safe.to_manifest("Deployment")
