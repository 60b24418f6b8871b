"""How many pods a TrainJob makes, from the runtime that it names.

kubeflow/trainer@v2.3.0:pkg/runtime/core/trainingruntime.go, pkg/runtime/framework/plugins/mpi/mpi.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpu_constructs.capacity.demand.app_objects import App
from gpu_constructs.capacity.demand.pod_group import PodGroup, is_suspended, mapping, members, merged, number, pods_of
from gpu_constructs.rules.facts import Manifest, namespace_of

_GROUP = "trainer.kubeflow.org"
_STEP = "trainer.kubeflow.org/trainjob-ancestor-step"
_NODE = "node"
# Of a pod, a patch changes these as a whole, and labels of nodes one by one.
_PATCHED = ("affinity", "nodeSelector", "tolerations")


def train_job(manifest: Manifest, app: App) -> Iterator[PodGroup]:
    """Give the pods of a TrainJob: those of its runtime, with the nodes and the resources that it states itself."""
    spec = mapping(manifest.get("spec"))
    own = mapping(spec.get("trainer"))
    runtime = _runtime(manifest, spec, app)
    if runtime is None:
        yield _without_runtime(spec, own)
        return
    policy = mapping(runtime.get("mlPolicy"))
    jobs = members(mapping(mapping(runtime.get("template")).get("spec")).get("replicatedJobs"))
    for job in jobs:
        pods, is_trainer = _pods(job, own, runtime, policy)
        template = pods_of(mapping(mapping(job.get("template")).get("spec")).get("template"))
        pod_spec = _patched(template["spec"], spec, job.get("name"))
        resources = own.get("resourcesPerNode")
        if is_trainer and isinstance(resources, Mapping):
            pod_spec = {**pod_spec, "containers": _with_resources(pod_spec, resources)}
        yield PodGroup(
            **{**template, "spec": pod_spec},
            part=str(job.get("name")) if len(jobs) > 1 else "",
            pods_each=pods,
            is_gang=True,
            is_stopped=is_suspended(spec),
        )


def _runtime(manifest: Manifest, spec: Mapping[str, Any], app: App) -> Mapping[str, Any] | None:
    ref = mapping(spec.get("runtimeRef"))
    kind = str(ref.get("kind") or "ClusterTrainingRuntime")
    namespace = None if kind.startswith("Cluster") else namespace_of(manifest)
    found = app.named(_GROUP, kind, ref.get("name"), namespace)
    return None if found is None else mapping(found.get("spec"))


def _without_runtime(spec: Mapping[str, Any], own: Mapping[str, Any]) -> PodGroup:
    containers = [{"name": _NODE, "resources": mapping(own.get("resourcesPerNode"))}]
    told = ["its runtime is not in this app: only what it states itself is counted"]
    if "numNodes" not in own:
        told.append("it states no numNodes: counted as one node")
    pod_spec = _patched({"containers": containers}, spec, _NODE)
    return PodGroup(
        spec=pod_spec,
        pods_each=number(own.get("numNodes"), 1),
        is_gang=True,
        is_stopped=is_suspended(spec),
        notes=tuple(told),
    )


def _pods(
    job: Mapping[str, Any], own: Mapping[str, Any], runtime: Mapping[str, Any], policy: Mapping[str, Any]
) -> tuple[int, bool]:
    """Give how many pods a job of the runtime makes, and whether they get the resources of a node."""
    template = mapping(job.get("template"))
    declared = number(mapping(template.get("spec")).get("parallelism"), 1)
    nodes = number(own.get("numNodes"), -1)
    labels = mapping(mapping(template.get("metadata")).get("labels"))
    is_trainer = labels.get(_STEP) == "trainer" and "mlPolicy" in runtime
    mpi = policy.get("mpi")
    if isinstance(mpi, Mapping):
        launches = mpi.get("runLauncherAsNode") is True
        if job.get("name") == _NODE:
            # One of the nodes is the launcher's own.
            wanted = max(nodes - 1, 1) if launches else nodes
            return (declared if nodes < 0 else wanted), is_trainer or launches
        return (number(policy.get("numNodes"), 1) if is_trainer else declared), is_trainer
    if is_trainer:
        return (number(policy.get("numNodes"), 1) if nodes < 0 else nodes), True
    return declared * number(job.get("replicas"), 1), False


def _patched(pod_spec: Mapping[str, Any], spec: Mapping[str, Any], job: object) -> dict[str, Any]:
    made = dict(pod_spec)
    for patch in members(spec.get("runtimePatches")):
        template = mapping(mapping(patch.get("trainingRuntimeSpec")).get("template"))
        for one in members(mapping(template.get("spec")).get("replicatedJobs")):
            if one.get("name") == job:
                inner = mapping(mapping(mapping(one.get("template")).get("spec")).get("template"))
                changes = mapping(inner.get("spec"))
                made.update({key: merged(made.get(key), changes[key]) for key in _PATCHED if key in changes})
    return made


def _with_resources(pod_spec: Mapping[str, Any], resources: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [
        {**container, "resources": merged(mapping(container.get("resources")), resources)}
        if container.get("name") == _NODE
        else container
        for container in members(pod_spec.get("containers"))
    ]
