"""Paths of the pod specs in manifests of Kubernetes and of common operators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cache
from typing import Any

from gpu_constructs.errors import GpuConstructsError

Path = tuple[str | int, ...]
"""Path in a manifest, as keys and list indices from its root."""

_TEMPLATE = ("spec.template.spec",)
_JOB_SET = "spec.replicatedJobs.*.template.spec.template.spec"
_RAY_CLUSTER = ("headGroupSpec.template.spec", "workerGroupSpecs.*.template.spec")
_RAY_JOB = (*(f"rayClusterSpec.{path}" for path in _RAY_CLUSTER), "submitterPodTemplate.spec")

# A TrainJob of trainer.kubeflow.org contains no pod spec. Its runtimePatches are patches of a pod spec elsewhere.
_PATHS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("", "Pod"): ("spec",),
    ("", "PodTemplate"): ("template.spec",),
    ("", "ReplicationController"): _TEMPLATE,
    ("apps", "DaemonSet"): _TEMPLATE,
    ("apps", "Deployment"): _TEMPLATE,
    ("apps", "ReplicaSet"): _TEMPLATE,
    ("apps", "StatefulSet"): _TEMPLATE,
    ("apps.kruise.io", "CloneSet"): _TEMPLATE,
    ("apps.kruise.io", "StatefulSet"): _TEMPLATE,
    ("argoproj.io", "Rollout"): _TEMPLATE,
    ("batch", "CronJob"): ("spec.jobTemplate.spec.template.spec",),
    ("batch", "Job"): _TEMPLATE,
    ("batch.volcano.sh", "Job"): ("spec.tasks.*.template.spec",),
    ("jobset.x-k8s.io", "JobSet"): (_JOB_SET,),
    ("kubeflow.org", "JAXJob"): ("spec.jaxReplicaSpecs.*.template.spec",),
    ("kubeflow.org", "MPIJob"): ("spec.mpiReplicaSpecs.*.template.spec",),
    ("kubeflow.org", "Notebook"): _TEMPLATE,
    ("kubeflow.org", "PaddleJob"): ("spec.paddleReplicaSpecs.*.template.spec",),
    ("kubeflow.org", "PyTorchJob"): ("spec.pytorchReplicaSpecs.*.template.spec",),
    ("kubeflow.org", "TFJob"): ("spec.tfReplicaSpecs.*.template.spec",),
    ("kubeflow.org", "XGBoostJob"): ("spec.xgbReplicaSpecs.*.template.spec",),
    ("keda.sh", "ScaledJob"): ("spec.jobTargetRef.template.spec",),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): (
        "spec.leaderWorkerTemplate.leaderTemplate.spec",
        "spec.leaderWorkerTemplate.workerTemplate.spec",
    ),
    ("ray.io", "RayCluster"): tuple(f"spec.{path}" for path in _RAY_CLUSTER),
    ("ray.io", "RayCronJob"): tuple(f"spec.jobTemplate.{path}" for path in _RAY_JOB),
    ("ray.io", "RayJob"): tuple(f"spec.{path}" for path in _RAY_JOB),
    ("ray.io", "RayService"): tuple(f"spec.rayClusterConfig.{path}" for path in _RAY_CLUSTER),
    # Pod specs of KServe have additional fields. Some replace fields of Kubernetes.
    ("serving.kserve.io", "ClusterServingRuntime"): ("spec", "spec.workerSpec"),
    ("serving.kserve.io", "InferenceService"): (
        "spec.predictor",
        "spec.predictor.workerSpec",
        "spec.transformer",
        "spec.explainer",
        "spec.canary.*.predictor",
        "spec.canary.*.predictor.workerSpec",
    ),
    ("serving.kserve.io", "LLMInferenceService"): (
        "spec.template",
        "spec.worker",
        "spec.prefill.template",
        "spec.prefill.worker",
        "spec.router.scheduler.template",
    ),
    ("serving.kserve.io", "ServingRuntime"): ("spec", "spec.workerSpec"),
    ("serving.knative.dev", "Service"): _TEMPLATE,
    ("trainer.kubeflow.org", "ClusterTrainingRuntime"): (f"spec.template.{_JOB_SET}",),
    ("trainer.kubeflow.org", "TrainingRuntime"): (f"spec.template.{_JOB_SET}",),
}

_OBJECTS: Mapping[tuple[str, str], str] = {
    ("kubeflow.org", "Experiment"): "spec.trialTemplate.trialSpec",
    ("kubeflow.org", "Trial"): "spec.runSpec",
}
"""Path to the inner manifest, by kind of an object that contains one, such as a Katib Experiment.

The kind of the inner manifest determines where its pod specs are.
"""

_MODEL_SERVERS = (
    "model",
    "huggingface",
    "lightgbm",
    "onnx",
    "paddle",
    "pmml",
    "pytorch",
    "sklearn",
    "tensorflow",
    "triton",
    "xgboost",
)
"""Fields of the predictor of a KServe InferenceService that can contain the model server container."""


@cache
def _steps(path: str) -> tuple[str, ...]:
    return tuple(path.replace("[*]", ".*").split("."))


def _follow(value: Any, steps: tuple[str, ...], done: Path = ()) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield a pair for each mapping at a path of a manifest: the actual path, and the mapping.

    The actual path has keys and list indices in place of ``*``.

    Args:
        value: Part of the manifest at the path ``done``.
        steps: Rest of the path to follow.
        done: Actual path from the manifest to ``value``; empty for the manifest itself.
    """
    if not steps:
        if isinstance(value, dict):
            yield done, value
    elif steps[0] != "*":
        if isinstance(value, dict):
            yield from _follow(value.get(steps[0]), steps[1:], (*done, steps[0]))
    elif isinstance(value, dict | list):
        for key, member in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _follow(member, steps[1:], (*done, key))


def _found(manifest: Mapping[str, Any], path: str | None) -> Iterator[tuple[Path, dict[str, Any]]]:
    if path is not None:
        if not isinstance(path, str) or not all(_steps(path)):
            msg = f"path must be keys joined by dots, with * for each member, such as {_JOB_SET!r}, got {path!r}"
            raise GpuConstructsError(msg)
        yield from _follow(manifest, _steps(path))
        return
    kind = (str(manifest.get("apiVersion", "")).rpartition("/")[0], str(manifest.get("kind")))
    for known in _PATHS.get(kind, ()):
        yield from _follow(manifest, _steps(known))
    if kind in _OBJECTS:
        for place, held in _follow(manifest, _steps(_OBJECTS[kind])):
            yield from ((place + inner, spec) for inner, spec in _found(held, None))


def holds_pods(api_version: str, kind: str) -> bool:
    """Check whether the library knows that objects of a kind create pods."""
    known = (api_version.rpartition("/")[0], kind)
    return known in _PATHS or known in _OBJECTS


def pod_spec_paths(manifest: Mapping[str, Any], path: str | None = None) -> list[Path]:
    """Return the path of each pod spec of a manifest, as keys and list indices.

    Args:
        manifest: Manifest of any kind.
        path: Path of the pod specs, such as ``"spec.groups[*].template.spec"``, with ``*`` for each member of a list
            or mapping. By default, the kind determines the paths. The function supports the kinds of Kubernetes and
            of common operators for training and serving.

    Raises:
        GpuConstructsError: ``path`` has an empty step.
    """
    return [place for place, _ in _found(manifest, path)]


def pod_specs(manifest: Mapping[str, Any], path: str | None = None) -> Iterator[dict[str, Any]]:
    """Yield every pod spec of a manifest, at the paths that :func:`pod_spec_paths` returns."""
    for _, spec in _found(manifest, path):
        yield spec


def model_server(pod_spec: Mapping[str, Any]) -> str | None:
    """Return the field, such as ``model``, in which the predictor of an InferenceService contains its model server.

    Return None if the pod spec has no such field.
    """
    return next((server for server in _MODEL_SERVERS if isinstance(pod_spec.get(server), Mapping)), None)


def containers(pod_spec: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the init containers of a pod spec, and then its containers.

    For the predictor of a KServe InferenceService, the last container is the model server in a field such as ``model``.
    """
    for group in ("initContainers", "containers"):
        yield from pod_spec.get(group) or ()
    for server in _MODEL_SERVERS:
        if isinstance(pod_spec.get(server), dict):
            yield pod_spec[server]


def containers_in_turn(pod_spec: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], bool]]:
    """Yield a pair for each container of a pod: the container, and whether it ends before the next container starts.

    This is True for init containers that are not sidecars.
    """
    first = len(pod_spec.get("initContainers") or ())
    for index, container in enumerate(containers(pod_spec)):
        passes = index < first and container.get("restartPolicy") != "Always"
        yield container, passes


def most_at_once(pod_spec: Mapping[str, Any], held: Mapping[int, Decimal]) -> Decimal:
    """Return the amount of a resource that the scheduler reserves for a pod: the most that its containers use at once.

    Containers and sidecars run until the pod ends, so the function adds up their amounts. While an init container runs,
    only the sidecars that start before this init container run too.

    Args:
        pod_spec: Spec of the pod.
        held: Amount of the resource that each container requests, by the ``id()`` of the container.

    Source: kubernetes/component-helpers@v0.36.0:resource/helpers.go, AggregateContainerRequests
    """
    lasting = most = Decimal(0)
    for container, passes in containers_in_turn(pod_spec):
        together = lasting + held.get(id(container), 0)
        most = max(most, together)
        if not passes:
            lasting = together
    return most


def node_labels_required(pod_spec: Mapping[str, Any]) -> Iterator[frozenset[str]]:
    """Yield sets of node labels that a pod requires. A node must have at least one label of each set.

    Each label in ``nodeSelector`` forms a set. If the required node affinity has one term, each label in the term also
    forms a set. If it has several terms, all their labels form one set, because a node must match only one term. If one
    of several terms requires no label, the function omits this set. ``NotIn`` and ``DoesNotExist`` require no label.
    """
    for label in pod_spec.get("nodeSelector") or {}:
        yield frozenset({label})
    terms = [
        frozenset(one["key"] for one in term if one.get("operator") not in ("NotIn", "DoesNotExist"))
        for term in _node_terms(pod_spec)
    ]
    if len(terms) == 1:
        yield from (frozenset({label}) for label in sorted(terms[0]))
    elif terms and all(terms):
        yield frozenset().union(*terms)


def node_values_required(pod_spec: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """Yield a pair for each node label for which a pod requires certain values: the label and these values."""
    for label, value in (pod_spec.get("nodeSelector") or {}).items():
        yield label, [str(value)]
    terms = [
        {one["key"]: [str(value) for value in one.get("values") or ()] for one in term if one.get("operator") == "In"}
        for term in _node_terms(pod_spec)
    ]
    for label in terms[0] if terms else ():
        if all(label in term for term in terms):
            yield label, [value for term in terms for value in term[label]]


def _node_terms(pod_spec: Mapping[str, Any]) -> list[Sequence[Mapping[str, Any]]]:
    """Return the terms of the required node affinity of a pod. Each term is a list of its expressions."""
    affinity = (pod_spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    return [term.get("matchExpressions") or () for term in required.get("nodeSelectorTerms") or ()]
