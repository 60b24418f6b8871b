"""How many pods each kind of object makes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from gpu_constructs._kinds import group_of
from gpu_constructs.capacity.demand import kserve, ray, trainer
from gpu_constructs.capacity.demand.app_objects import App
from gpu_constructs.capacity.demand.pod_group import (
    PodGroup,
    is_suspended,
    leader_and_workers,
    mapping,
    members,
    number,
    pods_of,
    runs,
    share,
    update,
    whole_set,
)
from gpu_constructs.capacity.demand.trial import with_greatest_values
from gpu_constructs.capacity.demand.volcano import volcano_job
from gpu_constructs.rules.facts import Manifest, annotations_of, namespace_of

Maker = Callable[[Manifest, App], Iterator[PodGroup]]


def pod_groups(manifest: Manifest, app: App) -> list[PodGroup]:
    """Give the pods that an object makes; templates, which others make pods of, make none."""
    maker = _MAKERS.get(_kind(manifest))
    return [group for group in maker(manifest, app) if group.spec or group.asks] if maker else []


def is_known(manifest: Manifest) -> bool:
    """Tell whether it is known how many pods an object makes, be it none."""
    kind = _kind(manifest)
    held = _HELD.get(kind)
    if held is None:
        return kind in _MAKERS or kind in TEMPLATES
    for step in held:
        manifest = mapping(manifest.get(step))
    return not manifest or is_known(manifest)


def makes_pods(kind: tuple[str, str]) -> bool:
    """Tell whether objects of a group and kind make pods, and how many is known."""
    return kind in _MAKERS


def _kind(manifest: Manifest) -> tuple[str, str]:
    return group_of(str(manifest.get("apiVersion"))), str(manifest.get("kind"))


def _spec(manifest: Manifest) -> Mapping[str, Any]:
    return mapping(manifest.get("spec"))


def _replicas(manifest: Manifest, app: App) -> tuple[int, int]:
    return app.copies(manifest, number(_spec(manifest).get("replicas"), 1))


# Kubernetes. Defaults: kubernetes/api@v0.36.3 apps/v1/types.go, batch/v1/types.go.


def _pod(manifest: Manifest, _app: App) -> Iterator[PodGroup]:
    ends = _spec(manifest).get("restartPolicy") in ("Never", "OnFailure")
    yield PodGroup(**pods_of(manifest), least_copies=0 if ends else 1)


def _replicated(manifest: Manifest, app: App) -> Iterator[PodGroup]:
    copies, least = _replicas(manifest, app)
    yield PodGroup(**pods_of(_spec(manifest).get("template")), copies=copies, least_copies=least)


def _deployment(manifest: Manifest, app: App) -> Iterator[PodGroup]:
    spec = _spec(manifest)
    copies, least = _replicas(manifest, app)
    strategy = mapping(spec.get("strategy"))
    rolls = strategy.get("type", "RollingUpdate") == "RollingUpdate"
    rollout = update(mapping(strategy.get("rollingUpdate")), copies, least) if rolls else {}
    if spec.get("paused") is True:
        # kubernetes/kubernetes@v1.36.2:pkg/controller/deployment/sync.go: a paused Deployment is scaled, but gets no
        # ReplicaSet for its template.
        runs = number(mapping(manifest.get("status")).get("replicas"), 0) > 0
        rollout = {} if runs else {"is_stopped": True, "notes": ("a paused Deployment that is new makes no pods",)}
    yield PodGroup(**pods_of(spec.get("template")), copies=copies, least_copies=least, **rollout)


def _daemon_set(manifest: Manifest, _app: App) -> Iterator[PodGroup]:
    spec = _spec(manifest)
    strategy = mapping(spec.get("updateStrategy"))
    rolling = mapping(strategy.get("rollingUpdate"))
    # A percentage is one of the nodes, which are not known here: one of them at least.
    surge = 0 if strategy.get("type") == "OnDelete" else share(rolling.get("maxSurge", 0), 1, up=True) or 0
    is_share = surge > 0 and isinstance(rolling.get("maxSurge"), str)
    yield PodGroup(
        **pods_of(spec.get("template")),
        least_copies=1,
        is_for_each_node=True,
        surge=surge,
        # Kubernetes takes maxSurge with maxUnavailable 0 only.
        surge_is_needed=surge > 0,
        notes=("its maxSurge is a share of the nodes: counted as one",) if is_share else (),
    )


def _job_pods(spec: Mapping[str, Any]) -> int:
    parallel = number(spec.get("parallelism"), 1)
    return min(parallel, number(spec.get("completions"), parallel))


def _job(manifest: Manifest, _app: App) -> Iterator[PodGroup]:
    spec = _spec(manifest)
    yield PodGroup(**pods_of(spec.get("template")), copies=_job_pods(spec), is_stopped=is_suspended(spec))


def _cron_job(manifest: Manifest, _app: App) -> Iterator[PodGroup]:
    spec = _spec(manifest)
    job = mapping(mapping(spec.get("jobTemplate")).get("spec"))
    overlaps = spec.get("concurrencyPolicy", "Allow") == "Allow"
    yield PodGroup(**pods_of(job.get("template")), pods_each=_job_pods(job), **runs(spec, overlaps=overlaps))


# Kubeflow.


def _notebook(manifest: Manifest, _app: App) -> Iterator[PodGroup]:
    # kubeflow/kubeflow@v1.10.0:components/notebook-controller/controllers/notebook_controller.go
    stopped = "kubeflow-resource-stopped" in annotations_of(manifest)
    yield PodGroup(**pods_of(_spec(manifest).get("template")), least_copies=1, is_stopped=stopped)


def _experiment(manifest: Manifest, app: App) -> Iterator[PodGroup]:
    # kubeflow/katib@v0.19.0:pkg/apis/controller/experiments/v1beta1/experiment_defaults.go: 3 trials at a time;
    # pkg/controller.v1beta1/experiment/experiment_controller.go: never more than are left of maxTrialCount.
    spec = _spec(manifest)
    trials = number(spec.get("parallelTrialCount"), 3)
    trials = min(trials, number(spec.get("maxTrialCount"), trials))
    held, notes = with_greatest_values(spec, _spec(app.as_written(manifest)).get("parameters"))
    for group in _held(held, manifest, app):
        yield replace(group, copies=trials, notes=(*group.notes, *notes))


def _trial(manifest: Manifest, app: App) -> Iterator[PodGroup]:
    yield from _held(mapping(_spec(manifest).get("runSpec")), manifest, app)


def _held(held: Mapping[str, Any], holder: Manifest, app: App) -> Iterator[PodGroup]:
    """Give the pods of an object that stands in another, as one copy of that."""
    metadata = mapping(held.get("metadata"))
    # No name: scalers of the app mean other objects.
    known = {"namespace": namespace_of(holder), "labels": metadata.get("labels")}
    for group in pod_groups({**held, "metadata": {**known, "annotations": metadata.get("annotations")}}, app):
        pods = group.copies * group.pods_each
        annotations = {**group.annotations, **mapping(metadata.get("annotations"))}
        yield replace(
            group,
            annotations=annotations,
            copies=1,
            pods_each=pods,
            least_copies=0,
            surge=0,
            surge_is_needed=False,
            surge_together=1,
            # Who suspends each trial has something else that lets it run, as a queue.
            is_stopped=False,
        )


_REPLICA_SPECS = {
    "JAXJob": "jaxReplicaSpecs",
    "MPIJob": "mpiReplicaSpecs",
    "PaddleJob": "paddleReplicaSpecs",
    "PyTorchJob": "pytorchReplicaSpecs",
    "TFJob": "tfReplicaSpecs",
    "XGBoostJob": "xgbReplicaSpecs",
}


def _training_job(manifest: Manifest, app: App) -> Iterator[PodGroup]:
    # kubeflow/training-operator@v1.9.0:pkg/apis/kubeflow.org/v1/*_defaults.go: one of each type, of MPI no workers.
    spec = _spec(manifest)
    kind = str(manifest.get("kind"))
    types = mapping(spec.get(_REPLICA_SPECS[kind]))
    least, most = _elastic(spec, types)
    is_elastic = least != most
    notes = (f"it is elastic: it runs with {least} workers and takes {most}",) if is_elastic else ()
    for name, given in types.items():
        is_worker = name.lower() == "worker"
        pods = number(mapping(given).get("replicas"), 0 if kind == "MPIJob" and is_worker else 1)
        if is_worker:
            pods = app.copies(manifest, pods if most is None else most)[0]
        yield PodGroup(
            **pods_of(mapping(given).get("template")),
            part=name if len(types) > 1 else "",
            pods_each=pods,
            is_gang=True,
            starts_with=least if is_worker and is_elastic else None,
            is_stopped=is_suspended(mapping(spec.get("runPolicy"))),
            notes=notes,
        )


def _elastic(spec: Mapping[str, Any], types: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Give the fewest and the most workers of an elastic job; either one absent, it is as the other."""
    policy = spec.get("elasticPolicy")
    if not isinstance(policy, Mapping):
        return None, None
    declared = next((mapping(given).get("replicas") for name, given in types.items() if name.lower() == "worker"), 1)
    least, most = (policy.get("minReplicas"), policy.get("maxReplicas"))
    fallback = number(most if least is None else least, number(declared, 1))
    return number(least, fallback), number(most, fallback)


# Groups of pods.


def _leader_worker_set(manifest: Manifest, app: App) -> Iterator[PodGroup]:
    # kubernetes-sigs/lws@v0.10.0:api/leaderworkerset/v1/leaderworkerset_types.go: one group of one pod, an update
    # takes one old group away first; pkg/controllers/leaderworkerset_controller.go: a surge is no larger than the set.
    spec = _spec(manifest)
    copies, least = _replicas(manifest, app)
    template = mapping(spec.get("leaderWorkerTemplate"))
    strategy = mapping(spec.get("rolloutStrategy"))
    rollout = update(mapping(strategy.get("rollingUpdateConfiguration")), copies, least, surge=0, unavailable=1)
    parts = leader_and_workers(
        template.get("leaderTemplate"), template.get("workerTemplate"), number(template.get("size"), 1)
    )
    for part, pods, each in parts:
        surge = min(rollout.get("surge", 0), copies) * each
        yield PodGroup(
            **pods_of(pods),
            **{**rollout, "surge": surge},
            part=part,
            copies=copies,
            least_copies=least,
            pods_each=each,
            is_gang=True,
        )


def _job_set(manifest: Manifest, _app: App) -> Iterator[PodGroup]:
    # kubernetes-sigs/jobset@v0.12.0:api/jobset/v1alpha2/jobset_types.go: one Job of each.
    spec = _spec(manifest)
    jobs = members(spec.get("replicatedJobs"))
    in_turn = any(one.get("status") == "Complete" for job in jobs for one in members(job.get("dependsOn")))
    notes = ("its jobs run in turn: counted as if at once",) if in_turn else ()
    for job in jobs:
        made = mapping(mapping(job.get("template")).get("spec"))
        yield PodGroup(
            **pods_of(made.get("template")),
            part=str(job.get("name")) if len(jobs) > 1 else "",
            pods_each=number(job.get("replicas"), 1) * _job_pods(made),
            is_gang=not in_turn,
            is_stopped=is_suspended(spec),
            notes=notes,
        )


# Serving.


def _knative_service(manifest: Manifest, _app: App) -> Iterator[PodGroup]:
    pods = pods_of(_spec(manifest).get("template"))
    yield PodGroup(**pods, **_knative_copies(pods["annotations"]))


def _knative_copies(annotations: Mapping[str, Any]) -> dict[str, Any]:
    """Give how many copies a revision of Knative has, by the annotations of its pods.

    knative/serving@knative-v1.23.0:pkg/apis/autoscaling/register.go, pkg/autoscaler/config/config.go: from 0 copies
    up without end, and one to begin with.
    """
    least, most, first = (
        _scale(annotations, *names)
        for names in (("min-scale", "minScale"), ("max-scale", "maxScale"), ("initial-scale", "initialScale"))
    )
    copies = max(most or 0, least or 0) or 1
    notes = () if most else (f"it sets no max-scale: counted as {copies}, and Knative may make more",)
    surge = max(least or 0, 1 if first is None else first)
    return {
        "copies": copies,
        "least_copies": least or 0,
        "surge": surge,
        "surge_is_needed": surge > 0,
        # pkg/reconciler/autoscaling/kpa: traffic moves once all of them are ready.
        "surge_together": max(surge, 1),
        "notes": notes,
    }


def _scale(annotations: Mapping[str, Any], *names: str) -> int | None:
    for name in names:
        text = str(annotations.get(f"autoscaling.knative.dev/{name}", ""))
        if text.isascii() and text.isdecimal() and len(text) < 12:
            return int(text)
    return None


def _rollout(manifest: Manifest, app: App) -> Iterator[PodGroup]:
    # argoproj/argo-rollouts@v1.9.1:utils/defaults/defaults.go, utils/replicaset/replicaset.go: as a Deployment, or a
    # whole second set.
    spec = _spec(manifest)
    copies, least = _replicas(manifest, app)
    strategy = mapping(spec.get("strategy"))
    canary = mapping(strategy.get("canary"))
    if "blueGreen" in strategy or canary.get("trafficRouting"):
        rollout = whole_set(copies, least)
        if canary.get("dynamicStableScale") is True:
            # The old set goes as the new one comes.
            rollout["surge_together"] = 1
    else:
        rollout = update(canary, copies, least)
    template = spec.get("template")
    meant = mapping(spec.get("workloadRef"))
    if template is None and meant:
        group = group_of(str(meant.get("apiVersion") or "apps/v1"))
        other = app.named(group, str(meant.get("kind")), meant.get("name"), namespace_of(manifest))
        template = _spec(other or {}).get("template")
    yield PodGroup(**pods_of(template), copies=copies, least_copies=least, **rollout)


# Of others.


def _clone_set(manifest: Manifest, app: App) -> Iterator[PodGroup]:
    # openkruise/kruise@02e91aeb:apis/apps/v1alpha1/cloneset_types.go: pods go first, but for a maxSurge.
    spec = _spec(manifest)
    copies, least = _replicas(manifest, app)
    rollout = update(mapping(spec.get("updateStrategy")), copies, least, surge=0, unavailable="20%")
    yield PodGroup(**pods_of(spec.get("template")), copies=copies, least_copies=least, **rollout)


def _scaled_job(manifest: Manifest, _app: App) -> Iterator[PodGroup]:
    # kedacore/keda@v2.20.2:apis/keda/v1alpha1/scaledjob_types.go: at most 100 jobs at a time and down to 0 where
    # absent; paused by anything that is not false.
    spec = _spec(manifest)
    job = mapping(spec.get("jobTargetRef"))
    most = number(spec.get("maxReplicaCount"), 100)
    paused = annotations_of(manifest).get("autoscaling.keda.sh/paused")
    yield PodGroup(
        **pods_of(job.get("template")),
        copies=most,
        least_copies=min(number(spec.get("minReplicaCount"), 0), most),
        pods_each=_job_pods(job),
        is_stopped=paused is not None and str(paused).lower() not in ("0", "f", "false"),
        notes=() if "maxReplicaCount" in spec else ("it sets no maxReplicaCount: counted as 100 jobs at a time",),
    )


_MAKERS: Mapping[tuple[str, str], Maker] = {
    ("", "Pod"): _pod,
    ("", "ReplicationController"): _replicated,
    ("apps", "DaemonSet"): _daemon_set,
    ("apps", "Deployment"): _deployment,
    ("apps", "ReplicaSet"): _replicated,
    ("apps", "StatefulSet"): _replicated,
    ("apps.kruise.io", "CloneSet"): _clone_set,
    ("apps.kruise.io", "StatefulSet"): _replicated,
    ("argoproj.io", "Rollout"): _rollout,
    ("batch", "CronJob"): _cron_job,
    ("batch", "Job"): _job,
    ("batch.volcano.sh", "Job"): volcano_job,
    ("jobset.x-k8s.io", "JobSet"): _job_set,
    ("keda.sh", "ScaledJob"): _scaled_job,
    ("kubeflow.org", "Experiment"): _experiment,
    ("kubeflow.org", "Notebook"): _notebook,
    ("kubeflow.org", "Trial"): _trial,
    **{("kubeflow.org", kind): _training_job for kind in _REPLICA_SPECS},
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): _leader_worker_set,
    ("ray.io", "RayCluster"): ray.ray_cluster,
    ("ray.io", "RayCronJob"): ray.ray_cron_job,
    ("ray.io", "RayJob"): ray.ray_job,
    ("ray.io", "RayService"): ray.ray_service,
    ("serving.knative.dev", "Service"): _knative_service,
    ("serving.kserve.io", "InferenceService"): kserve.inference_service,
    ("serving.kserve.io", "LLMInferenceService"): kserve.llm_inference_service,
    ("trainer.kubeflow.org", "TrainJob"): trainer.train_job,
}

TEMPLATES = frozenset(
    {
        ("", "PodTemplate"),
        ("serving.kserve.io", "ClusterServingRuntime"),
        ("serving.kserve.io", "ServingRuntime"),
        ("trainer.kubeflow.org", "ClusterTrainingRuntime"),
        ("trainer.kubeflow.org", "TrainingRuntime"),
    }
)
"""Kinds with pod specs that make no pods by themselves."""

_HELD: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("kubeflow.org", "Experiment"): ("spec", "trialTemplate", "trialSpec"),
    ("kubeflow.org", "Trial"): ("spec", "runSpec"),
}
"""Where the object stands that makes the pods of another."""
