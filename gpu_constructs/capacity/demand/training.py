"""The number of pods that jobs with several pod specs create: Ray clusters, Volcano Jobs, TrainJobs, Katib trials.

Sources:
    ray-project/kuberay@v1.7.0:ray-operator/apis/ray/v1/*_types.go, ray-operator/controllers/ray/utils/util.go.

    volcano-sh/volcano@v1.15.1:pkg/webhooks/admission/jobs/mutate/mutate_job.go, pkg/scheduler/api/job_info.go,
    pkg/controllers/job/job_controller_util.go.

    kubeflow/trainer@v2.3.0:pkg/runtime/core/trainingruntime.go, pkg/runtime/framework/plugins/mpi/mpi.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpu_constructs.capacity.demand.app_objects import App
from gpu_constructs.capacity.demand.pod_group import PodGroup, is_suspended, pod_asks, pods_of, runs, whole_set
from gpu_constructs.facts.readable import Manifest, at, mapping, members, namespace_of, number, quantity
from gpu_constructs.kube.plain_data import merged
from gpu_constructs.records import regex

_TRAINER = "trainer.kubeflow.org"
_STEP = "trainer.kubeflow.org/trainjob-ancestor-step"
_NODE = "node"
_UNKNOWN_RUNTIME: Mapping[str, Any] = {
    "mlPolicy": {},
    "template": {
        "spec": {
            "replicatedJobs": [
                {
                    "name": _NODE,
                    "template": {
                        "metadata": {"labels": {_STEP: "trainer"}},
                        "spec": {"template": {"spec": {"containers": [{"name": _NODE}]}}},
                    },
                }
            ]
        }
    },
}
"""Substitute for a TrainingRuntime that is not in the app: one job, whose pods have one container."""
# Keys of a pod spec that a patch of a TrainJob replaces. A patch merges nodeSelector instead.
_PATCHED = ("affinity", "nodeSelector", "tolerations")
_PLACEHOLDER = regex(r"\$\{trialParameters\.([^}]+)\}\Z")
_AMOUNTS = ("limits", "requests")
_COUNTS = frozenset(
    {"completions", "maxReplicas", "minReplicas", "numNodes", "numOfHosts", "parallelism", "replicas", "size"}
)


def ray_cluster(manifest: Manifest, _app: App) -> Iterator[PodGroup]:
    """Yield the pods of a RayCluster. The cluster runs until someone deletes it, even if some workers lack room."""
    yield from _cluster(at(manifest, "spec"))


def ray_service(manifest: Manifest, _app: App) -> Iterator[PodGroup]:
    """Yield the pods of a RayService, including the pods of the second Ray cluster that an update creates."""
    # controllers/ray/rayservice_controller.go: Unless forbidden, an update creates a second cluster next to the first.
    spec = at(manifest, "spec")
    kind = at(spec, "upgradeStrategy").get("type", "NewCluster")
    doubles = isinstance(kind, str) and kind.startswith("NewCluster")
    for group in _cluster(mapping(spec.get("rayClusterConfig")), holder=spec):
        if not doubles:
            yield group
        elif group.least_copies == group.copies:
            pods = group.copies * group.pods_each
            once: dict[str, Any] = {"copies": 1, "least_copies": 1, "pods_each": pods, "is_gang": True}
            yield replace(group, **once, surge=pods, surge_is_needed=True) if pods else group
        else:
            surge = whole_set(group.copies, group.least_copies)
            yield replace(group, **{**surge, "surge": group.copies * group.pods_each})


def ray_job(manifest: Manifest, _app: App) -> Iterator[PodGroup]:
    """Yield the pods of a RayJob: the head and the workers of its cluster, and the pod that submits the job."""
    yield from _job_pods(at(manifest, "spec"))


def ray_cron_job(manifest: Manifest, _app: App) -> Iterator[PodGroup]:
    """Yield the pods of the RayJobs that a RayCronJob starts on its schedule."""
    # apis/ray/v1/raycronjob_types.go has no concurrency policy.
    spec = at(manifest, "spec")
    calendar = runs(spec, overlaps=True)
    for group in _job_pods(mapping(spec.get("jobTemplate"))):
        stopped = group.is_stopped or calendar["is_stopped"]
        yield replace(group, **{**calendar, "is_stopped": stopped, "notes": (*group.notes, *calendar["notes"])})


def _job_pods(spec: Mapping[str, Any]) -> Iterator[PodGroup]:
    """Yield the pods of one run of a RayJob. The job starts once all initial pods of its Ray cluster run."""
    # controllers/ray/rayjob_controller.go, raycluster_controller.go: state Ready. A clusterSelector refers to an
    # existing cluster.
    if not mapping(spec.get("clusterSelector")):
        cluster = mapping(spec.get("rayClusterSpec"))
        first = [None, *(_at_first(workers) for workers in members(cluster.get("workerGroupSpecs")))]
        for group, wanted in zip(_cluster(cluster, holder=spec), first, strict=True):
            pods = group.copies * group.pods_each
            starts = pods if wanted is None else min(wanted * group.pods_each, pods)
            once: dict[str, Any] = {"copies": 1, "least_copies": 0, "pods_each": pods, "is_gang": True}
            yield replace(group, **once, starts_with=None if starts == pods else starts)
    if spec.get("submissionMode", "K8sJobMode") == "K8sJobMode" and "submitterPodTemplate" in spec:
        template = pods_of(spec.get("submitterPodTemplate"))
        yield PodGroup(**template, part="submitter", is_gang=True, is_stopped=is_suspended(spec))


def _cluster(cluster: Mapping[str, Any], *, holder: Mapping[str, Any] | None = None) -> Iterator[PodGroup]:
    """Yield the pods of a Ray cluster: the head, and each group of workers.

    Args:
        cluster: Spec of the cluster.
        holder: Spec of the object that creates the RayCluster, such as a RayJob. None if no object creates it.
    """
    stopped = is_suspended(cluster) or is_suspended(holder or {})
    head = mapping(cluster.get("headGroupSpec"))
    yield PodGroup(**pods_of(head.get("template")), part="head", least_copies=1, is_stopped=stopped)
    scales = cluster.get("enableInTreeAutoscaling") is True
    for index, workers in enumerate(members(cluster.get("workerGroupSpecs"))):
        copies, least, remarks = (0, 0, ()) if is_suspended(workers) else _workers(workers, scales)
        hosts = number(workers.get("numOfHosts"), 1) or 1
        yield PodGroup(
            **pods_of(workers.get("template")),
            part=str(workers.get("groupName") or f"workers {index}"),
            copies=copies,
            least_copies=least,
            pods_each=hosts,
            is_gang=hosts > 1,
            is_stopped=stopped,
            notes=tuple(remarks),
        )


def _workers(group: Mapping[str, Any], scales: bool) -> tuple[int, int, Sequence[str]]:
    """Return the largest and the smallest number of copies of a group of Ray workers, and assumptions as sentences.

    Args:
        group: Entry of ``workerGroupSpecs`` in the spec of the Ray cluster.
        scales: Whether the Ray autoscaler changes the number of copies.
    """
    least = number(group.get("minReplicas"), 0)
    most = number(group.get("maxReplicas"), -1)
    first = _at_first(group)
    if not scales:
        return first, first, ()
    if most < 0:
        return first, least, ("the autoscaler has no maxReplicas: the plan counts the declared replicas",)
    return max(most, least), least, ()


def _at_first(group: Mapping[str, Any]) -> int:
    """Return the number of copies with which a group of Ray workers starts, before an autoscaler changes it."""
    most = number(group.get("maxReplicas"), -1)
    declared = max(number(group.get("replicas"), 0), number(group.get("minReplicas"), 0))
    return declared if most < 0 else min(declared, most)


def volcano_job(manifest: Manifest, app: App) -> Iterator[PodGroup]:
    """Yield the pods of a Volcano Job, one entry for each of its tasks."""
    spec = at(manifest, "spec")
    tasks = members(spec.get("tasks"))
    templates = [pods_of(task.get("template")) for task in tasks]
    pods = [number(task.get("replicas"), 0) for task in tasks]
    starts = _starting(spec, tasks, pods, [bool(pod_asks(one["spec"], app.is_gpu)) for one in templates])
    notes = (f"the job starts with {sum(starts)} of its {sum(pods)} pods (minAvailable)",) if starts != pods else ()
    priority = {key: spec[key] for key in ("priorityClassName",) if spec.get(key)}
    for index, (task, template) in enumerate(zip(tasks, templates, strict=True)):
        yield PodGroup(
            **{**template, "spec": {**priority, **template["spec"]} if template["spec"] else {}},
            part=str(task.get("name") or f"default{index}") if len(tasks) > 1 else "",
            pods_each=pods[index],
            is_gang=True,
            starts_with=None if starts[index] == pods[index] else starts[index],
            notes=notes,
        )


def _starting(
    spec: Mapping[str, Any], tasks: Sequence[Mapping[str, Any]], pods: Sequence[int], hold_gpus: Sequence[bool]
) -> list[int]:
    """Return the number of pods of each task that must have room before a Volcano Job starts.

    If the job can start before all pods run, the function assumes that pods without GPUs start first.

    Args:
        spec: Spec of the job.
        tasks: Field ``tasks`` of the spec.
        pods: Number of pods of each task.
        hold_gpus: Whether the pods of each task request GPUs.
    """
    least = [min(number(task.get("minAvailable"), count), count) for task, count in zip(tasks, pods, strict=True)]
    together = number(spec.get("minAvailable"), 0) or sum(least)
    # If the job's minimum is below the sum over the tasks, Volcano looks at the job's minimum alone.
    starts = least if together >= sum(least) else [0] * len(pods)
    for index in sorted(range(len(pods)), key=lambda one: hold_gpus[one]):
        starts[index] += max(min(together - sum(starts), pods[index] - starts[index]), 0)
    return starts


def train_job(manifest: Manifest, app: App) -> Iterator[PodGroup]:
    """Yield the pods that the TrainingRuntime (or ClusterTrainingRuntime) of a TrainJob defines.

    The TrainJob can override the number of nodes and the resources of the runtime.
    """
    spec = at(manifest, "spec")
    own = mapping(spec.get("trainer"))
    runtime = _runtime(manifest, spec, app)
    remarks: tuple[str, ...] = ()
    if runtime is None:
        runtime = _UNKNOWN_RUNTIME
        own_nodes = () if "numNodes" in own else ("the job sets no numNodes: the plan counts one node",)
        remarks = ("the runtime of the job is not in this app: the plan reads only the fields of the job", *own_nodes)
    policy = mapping(runtime.get("mlPolicy"))
    jobs = members(at(runtime, "template.spec").get("replicatedJobs"))
    for job in jobs:
        pods, is_trainer = _pods(job, own, runtime, policy)
        template = pods_of(at(job, "template.spec").get("template"))
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
            notes=remarks,
        )


def _runtime(manifest: Manifest, spec: Mapping[str, Any], app: App) -> Mapping[str, Any] | None:
    ref = mapping(spec.get("runtimeRef"))
    kind = str(ref.get("kind") or "ClusterTrainingRuntime")
    namespace = None if kind.startswith("Cluster") else namespace_of(manifest)
    found = app.named(_TRAINER, kind, ref.get("name"), namespace)
    return None if found is None else mapping(found.get("spec"))


def _pods(
    job: Mapping[str, Any], own: Mapping[str, Any], runtime: Mapping[str, Any], policy: Mapping[str, Any]
) -> tuple[int, bool]:
    """Return the number of pods of one job in a TrainingRuntime, and whether each pod is one node of the training.

    Args:
        job: Entry of ``replicatedJobs`` in the training runtime.
        own: Field ``trainer`` of the TrainJob.
        runtime: Spec of the training runtime.
        policy: Field ``mlPolicy`` of the training runtime.
    """
    declared = number(at(job, "template.spec").get("parallelism"), 1)
    nodes = number(own.get("numNodes"), -1)
    is_trainer = at(job, "template.metadata.labels").get(_STEP) == "trainer" and "mlPolicy" in runtime
    mpi = policy.get("mpi")
    if isinstance(mpi, Mapping):
        launches = mpi.get("runLauncherAsNode") is True
        if job.get("name") == _NODE:
            # The launcher pod counts as one of the nodes of the training.
            wanted = max(nodes - 1, 1) if launches else nodes
            return (declared if nodes < 0 else wanted), is_trainer or launches
        return (number(policy.get("numNodes"), 1) if is_trainer else declared), is_trainer
    if is_trainer:
        return (number(policy.get("numNodes"), 1) if nodes < 0 else nodes), True
    return declared * number(job.get("replicas"), 1), False


def _patched(pod_spec: Mapping[str, Any], spec: Mapping[str, Any], job: object) -> dict[str, Any]:
    made = dict(pod_spec)
    for patch in members(spec.get("runtimePatches")):
        for one in members(at(patch, "trainingRuntimeSpec.template.spec").get("replicatedJobs")):
            if one.get("name") == job:
                changes = at(one, "template.spec.template.spec")
                made.update({key: merged(made.get(key), changes[key]) for key in _PATCHED if key in changes})
    return made


def _with_resources(pod_spec: Mapping[str, Any], resources: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [
        {**container, "resources": merged(mapping(container.get("resources")), resources)}
        if container.get("name") == _NODE
        else container
        for container in members(pod_spec.get("containers"))
    ]


def with_greatest_values(
    experiment: Mapping[str, Any], parameters: object
) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """Return the object that a Katib trial creates, for the parameter values that need the most pods and GPUs.

    A trial template contains placeholders for parameters, such as ``${trialParameters.gpus}``. If a placeholder is a
    count of pods or an amount of a resource, the function inserts the largest value of the parameter. The second member
    of the result contains one sentence for each inserted parameter.

    Args:
        experiment: Spec of the Katib Experiment.
        parameters: List of the parameters in the spec of the Experiment.
    """
    template = mapping(experiment.get("trialTemplate"))
    held = mapping(template.get("trialSpec"))
    spaces = {one.get("name"): mapping(one.get("feasibleSpace")) for one in _named(parameters)}
    named = {one["name"]: spaces.get(str(one.get("reference")), {}) for one in _named(template.get("trialParameters"))}
    known = ((name, _greatest(space)) for name, space in named.items())
    greatest = {name: most for name, most in known if most is not None}
    used: dict[str, int] = {}
    filled = _filled(held, greatest, used, is_amount=False)
    return filled, tuple(
        f"the plan counts trialParameters.{name} as its largest value, {used[name]}" for name in sorted(used)
    )


def _greatest(space: Mapping[str, Any]) -> int | None:
    """Return the largest value that a Katib parameter can have. Return None if the parameter has no numeric value.

    The argument ``space`` is the field ``feasibleSpace`` of the parameter.
    """
    listed = space.get("list")
    numbers = (quantity(one) for one in (*(listed if isinstance(listed, list) else ()), space.get("max")))
    return max((int(one) for one in numbers if one is not None), default=None)


def _named(value: object) -> list[Mapping[str, Any]]:
    return [one for one in members(value) if isinstance(one.get("name"), str)]


def _filled(value: Any, greatest: Mapping[str, int], used: dict[str, int], *, is_amount: bool) -> Any:
    """Return a part of a trial template in which numbers replace the placeholders of parameters.

    The function changes only numbers of pods and amounts of resources. It uses the largest value of each parameter.

    Args:
        value: Part of the trial template.
        greatest: Largest value of each parameter.
        used: Dict to which the function adds the parameters that it replaces, with their values.
        is_amount: Whether ``value`` is the number of pods, or an amount of a resource.
    """
    if isinstance(value, list):
        return [_filled(member, greatest, used, is_amount=False) for member in value]
    if isinstance(value, Mapping):
        counted = {key: is_amount or key in _COUNTS for key, one in value.items() if isinstance(one, str)}
        amounts = {key: counted.get(key, key in _AMOUNTS) for key in value}
        return {key: _filled(one, greatest, used, is_amount=amounts[key]) for key, one in value.items()}
    placeholder = _PLACEHOLDER.match(value) if is_amount and isinstance(value, str) else None
    if placeholder is None or placeholder[1] not in greatest:
        return value
    used[placeholder[1]] = greatest[placeholder[1]]
    return greatest[placeholder[1]]
