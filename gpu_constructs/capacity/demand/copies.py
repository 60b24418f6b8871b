"""The number of pods that each kind of object creates, for example a Deployment or a PyTorchJob.

The table ``kinds.yaml`` contains, for each kind of object, the name of the rule (a function) that counts the pods. A
copy is a unit that the number of replicas counts: one pod, or several pods that start together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from gpu_constructs.capacity.demand import kserve, training
from gpu_constructs.capacity.demand.app_objects import App
from gpu_constructs.capacity.demand.pod_group import (
    PodGroup,
    is_suspended,
    leader_and_workers,
    pods_of,
    runs,
    update,
    whole_set,
)
from gpu_constructs.facts.readable import Manifest, annotations_of, at, mapping, members, namespace_of, number, share
from gpu_constructs.kube.kinds import group_of
from gpu_constructs.kube.tables import table

Row = Mapping[str, Any]
"""One row of the table ``kinds.yaml``: the function that counts the pods of a kind, and its options."""


@cache
def kinds() -> Mapping[tuple[str, str], Row]:
    """Return the rows of the table ``kinds.yaml``. A key is (API group, kind), such as ``("apps", "Deployment")``."""
    return {tuple(name.split("/")): row for name, row in table("gpu_constructs.capacity.demand", "kinds.yaml").items()}


def pod_groups(manifest: Manifest, app: App) -> list[PodGroup]:
    """Return the pods that an object creates, one entry for each pod spec.

    The result is empty for an object of an unknown kind. It is also empty for an object that is only a template, such
    as a PodTemplate or a ServingRuntime, because another object creates the pods.
    """
    row = kinds().get(_kind(manifest))
    if row is None or row["rule"] == "template":
        return []
    options = {key: value for key, value in row.items() if key not in ("rule", "source")}
    return [group for group in _RULES[row["rule"]](manifest, app, **options) if group.spec or group.asks]


def is_known(manifest: Manifest) -> bool:
    """Check whether the plan knows how many pods an object creates (possibly 0).

    If the object contains another manifest, as a Katib Trial does, the plan must also know the kind of that manifest.
    """
    row = kinds().get(_kind(manifest))
    if row is None or "holds" not in row:
        return row is not None
    held = at(manifest, row["holds"])
    return not held or is_known(held)


def makes_pods(kind: tuple[str, str]) -> bool:
    """Check whether the plan can count the pods of a kind of objects, for example ``("apps", "Deployment")``.

    Return False for an unknown kind, and for a kind whose objects are only templates, such as PodTemplate.
    """
    row = kinds().get(kind)
    return row is not None and row["rule"] != "template"


def _kind(manifest: Manifest) -> tuple[str, str]:
    return group_of(str(manifest.get("apiVersion"))), str(manifest.get("kind"))


def _spec(manifest: Manifest) -> Mapping[str, Any]:
    return at(manifest, "spec")


def _copies(manifest: Manifest, app: App) -> dict[str, Any]:
    """Return the attributes ``copies`` and ``least_copies`` of ``Pods``, as a dict, for an object with replicas.

    Their values are the largest and the smallest number of replicas. If the object has an autoscaler, the autoscaler
    decides both numbers.
    """
    copies, least = app.copies(manifest, number(_spec(manifest).get("replicas"), 1))
    return {"copies": copies, "least_copies": least}


# Kubernetes. Defaults: kubernetes/api@v0.36.3 apps/v1/types.go, batch/v1/types.go.


def _pod(manifest: Manifest, _app: App) -> Iterator[PodGroup]:
    ends = _spec(manifest).get("restartPolicy") in ("Never", "OnFailure")
    yield PodGroup(**pods_of(manifest), least_copies=0 if ends else 1)


def _replicated(
    manifest: Manifest,
    app: App,
    *,
    rolling: str = "",
    strategy: str = "spec.strategy",
    surge: object = 0,
    unavailable: object = 0,
    pausable: bool = False,
) -> Iterator[PodGroup]:
    """Yield the pods of an object with replicas, and the extra pods of an update.

    Args:
        manifest: Object with ``spec.replicas`` and ``spec.template``.
        app: Objects of the app.
        rolling: Dotted path of the settings for rolling updates; empty if the object has none.
        strategy: Dotted path of the update strategy.
        surge: Default of ``maxSurge``.
        unavailable: Default of ``maxUnavailable``.
        pausable: Whether ``spec.paused`` stops the creation of pods.
    """
    spec, copies = _spec(manifest), _copies(manifest, app)
    rollout: dict[str, Any] = {}
    if rolling and at(manifest, strategy).get("type", "RollingUpdate") == "RollingUpdate":
        rollout = update(at(manifest, rolling), **copies, surge=surge, unavailable=unavailable)
    if pausable and spec.get("paused") is True:
        is_new = not number(at(manifest, "status").get("replicas"), 0)
        rollout = {"is_stopped": True, "notes": ("a paused new Deployment creates no pods",)} if is_new else {}
    yield PodGroup(**pods_of(spec.get("template")), **copies, **rollout)


def _daemon_set(manifest: Manifest, _app: App) -> Iterator[PodGroup]:
    most = at(manifest, "spec.updateStrategy.rollingUpdate").get("maxSurge", 0)
    # A percentage refers to the number of nodes, which this function does not know. It means at least one node.
    surge = 0 if at(manifest, "spec.updateStrategy").get("type") == "OnDelete" else share(most, 1, up=True) or 0
    yield PodGroup(
        **pods_of(at(manifest, "spec.template")),
        least_copies=1,
        is_for_each_node=True,
        surge=surge,
        # Kubernetes allows maxSurge only together with maxUnavailable 0.
        surge_is_needed=surge > 0,
        notes=("maxSurge is a percentage of the nodes: the plan counts one new pod",)
        if surge and isinstance(most, str)
        else (),
    )


def _job_pods(spec: Mapping[str, Any]) -> int:
    parallel = number(spec.get("parallelism"), 1)
    return min(parallel, number(spec.get("completions"), parallel))


def _job(manifest: Manifest, _app: App) -> Iterator[PodGroup]:
    spec = _spec(manifest)
    yield PodGroup(**pods_of(spec.get("template")), copies=_job_pods(spec), is_stopped=is_suspended(spec))


def _cron_job(manifest: Manifest, _app: App) -> Iterator[PodGroup]:
    spec, job = _spec(manifest), at(manifest, "spec.jobTemplate.spec")
    overlaps = spec.get("concurrencyPolicy", "Allow") == "Allow"
    yield PodGroup(**pods_of(job.get("template")), pods_each=_job_pods(job), **runs(spec, overlaps=overlaps))


# Kubeflow.


def _notebook(manifest: Manifest, _app: App) -> Iterator[PodGroup]:
    # kubeflow/kubeflow@v1.10.0:components/notebook-controller/controllers/notebook_controller.go
    stopped = "kubeflow-resource-stopped" in annotations_of(manifest)
    yield PodGroup(**pods_of(_spec(manifest).get("template")), least_copies=1, is_stopped=stopped)


def _held(manifest: Manifest, app: App, *, holds: str) -> Iterator[PodGroup]:
    """Yield the pods of an object that contains another manifest, such as an Experiment with its trial template.

    For an Experiment of Katib, the number of copies is the number of trials that run at the same time.

    Args:
        manifest: Object that contains the inner manifest.
        app: Objects of the app.
        holds: Dotted path of the inner manifest.
    """
    # kubeflow/katib@v0.19.0:pkg/apis/controller/experiments/v1beta1/experiment_defaults.go: 3 trials at a time.
    # pkg/controller.v1beta1/experiment/experiment_controller.go: never more than maxTrialCount.
    spec, trials, remarks = _spec(manifest), 1, tuple[str, ...]()
    held = at(manifest, holds)
    if manifest.get("kind") == "Experiment":
        trials = number(spec.get("parallelTrialCount"), 3)
        trials = min(trials, number(spec.get("maxTrialCount"), trials))
        held, remarks = training.with_greatest_values(spec, _spec(app.as_written(manifest)).get("parameters"))
    own = at(held, "metadata.annotations")
    # The object of a trial has no name here, so that no autoscaler of the app matches it.
    known = {"namespace": namespace_of(manifest), "labels": at(held, "metadata.labels"), "annotations": own}
    for group in pod_groups({**held, "metadata": known}, app):
        yield replace(
            group,
            annotations={**group.annotations, **own},
            copies=trials,
            pods_each=group.pods,
            notes=(*group.notes, *remarks),
            # No controller updates a trial. A program that suspends a trial, for example a queue, also resumes it.
            least_copies=0,
            surge=0,
            surge_is_needed=False,
            surge_together=1,
            is_stopped=False,
        )


def _training(manifest: Manifest, app: App, *, types: str, workers: int = 1) -> Iterator[PodGroup]:
    # kubeflow/training-operator@v1.9.0:pkg/apis/kubeflow.org/v1/*_defaults.go: one of each type, no MPI workers.
    spec = _spec(manifest)
    given_types = at(manifest, types)
    least, most = _elastic(spec, given_types)
    is_elastic = least != most
    notes = (f"the number of workers is elastic: from {least} to {most}",) if is_elastic else ()
    for name, given in given_types.items():
        is_worker = name.lower() == "worker"
        pods = number(mapping(given).get("replicas"), workers if is_worker else 1)
        if is_worker:
            pods = app.copies(manifest, pods if most is None else most)[0]
        yield PodGroup(
            **pods_of(mapping(given).get("template")),
            part=name if len(given_types) > 1 else "",
            pods_each=pods,
            is_gang=True,
            starts_with=least if is_worker and is_elastic else None,
            is_stopped=is_suspended(mapping(spec.get("runPolicy"))),
            notes=notes,
        )


def _elastic(spec: Mapping[str, Any], types: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Return the smallest and the largest number of workers that the elastic policy of a training job allows.

    If the policy sets only one of the two numbers, both results have this value. If it sets neither, both results are
    the declared number of workers. If the job has no elastic policy, both results are None.

    Args:
        spec: Spec of the training job.
        types: Specs of the pods by type, such as ``Worker``.
    """
    policy = spec.get("elasticPolicy")
    if not isinstance(policy, Mapping):
        return None, None
    declared = next((mapping(given).get("replicas") for name, given in types.items() if name.lower() == "worker"), 1)
    least, most = (policy.get("minReplicas"), policy.get("maxReplicas"))
    fallback = number(most if least is None else least, number(declared, 1))
    return number(least, fallback), number(most, fallback)


# Groups of pods.


def _leader_worker_set(manifest: Manifest, app: App) -> Iterator[PodGroup]:
    # kubernetes-sigs/lws@v0.10.0:api/leaderworkerset/v1/leaderworkerset_types.go: One group of one pod; an update
    # deletes one old group first. pkg/controllers/leaderworkerset_controller.go: A surge never exceeds the set.
    copies, template = _copies(manifest, app), at(manifest, "spec.leaderWorkerTemplate")
    rollout = update(at(manifest, "spec.rolloutStrategy.rollingUpdateConfiguration"), **copies, surge=0, unavailable=1)
    size = number(template.get("size"), 1)
    for part, pods, each in leader_and_workers(template.get("leaderTemplate"), template.get("workerTemplate"), size):
        rollout["surge"] = min(rollout.get("surge", 0), copies["copies"]) * each
        yield PodGroup(**pods_of(pods), **copies, **rollout, part=part, pods_each=each, is_gang=True)


def _job_set(manifest: Manifest, _app: App) -> Iterator[PodGroup]:
    # kubernetes-sigs/jobset@v0.12.0:api/jobset/v1alpha2/jobset_types.go: one Job of each.
    spec = _spec(manifest)
    jobs = members(spec.get("replicatedJobs"))
    in_turn = any(one.get("status") == "Complete" for job in jobs for one in members(job.get("dependsOn")))
    notes = ("the jobs in it run one after another: the plan counts them as if they ran together",) if in_turn else ()
    for job in jobs:
        made = at(job, "template.spec")
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
    """Return attributes of ``Pods``, as a dict, that state how many copies (pods) a Knative revision runs.

    The argument ``annotations`` contains the annotations of its pods. By default, a revision starts with one copy, and
    Knative scales it between 0 and an unlimited number of copies.

    Source:
        knative/serving@knative-v1.23.0:pkg/apis/autoscaling/register.go, pkg/autoscaler/config/config.go
    """
    least, most, first = (
        _scale(annotations, *names)
        for names in (("min-scale", "minScale"), ("max-scale", "maxScale"), ("initial-scale", "initialScale"))
    )
    copies = max(most or 0, least or 0) or 1
    notes = () if most else (f"the object sets no max-scale: the plan counts {copies}, but Knative may create more",)
    surge = max(least or 0, 1 if first is None else first)
    return {
        "copies": copies,
        "least_copies": least or 0,
        "surge": surge,
        "surge_is_needed": surge > 0,
        # pkg/reconciler/autoscaling/kpa: Traffic moves once all new copies are ready.
        "surge_together": max(surge, 1),
        "notes": notes,
    }


def _scale(annotations: Mapping[str, Any], *names: str) -> int | None:
    """Return the value of a Knative autoscaling annotation that has several spellings, or None if it has no value.

    The argument ``names`` contains the spellings, such as ``min-scale`` and ``minScale``. The first
    spelling with a numeric value takes precedence.
    """
    texts = (str(annotations.get(f"autoscaling.knative.dev/{name}", "")) for name in names)
    return next((int(text) for text in texts if text.isascii() and text.isdecimal() and len(text) < 12), None)


def _rollout(manifest: Manifest, app: App) -> Iterator[PodGroup]:
    # argoproj/argo-rollouts@v1.9.1:utils/defaults/defaults.go, utils/replicaset/replicaset.go: An update works as for a
    # Deployment, or it creates a whole second set.
    spec, copies = _spec(manifest), _copies(manifest, app)
    canary = at(manifest, "spec.strategy.canary")
    if "blueGreen" in at(manifest, "spec.strategy") or canary.get("trafficRouting"):
        rollout = whole_set(copies["copies"], copies["least_copies"])
        if canary.get("dynamicStableScale") is True:
            # The controller scales the old ReplicaSet down while it scales the new ReplicaSet up.
            rollout["surge_together"] = 1
    else:
        rollout = update(canary, **copies, surge="25%", unavailable="25%")
    meant = at(manifest, "spec.workloadRef")
    if spec.get("template") is None and meant:
        group = group_of(str(meant.get("apiVersion") or "apps/v1"))
        spec = _spec(app.named(group, str(meant.get("kind")), meant.get("name"), namespace_of(manifest)) or {})
    yield PodGroup(**pods_of(spec.get("template")), **copies, **rollout)


# Other kinds.


def _scaled_job(manifest: Manifest, _app: App) -> Iterator[PodGroup]:
    # kedacore/keda@v2.20.2:apis/keda/v1alpha1/scaledjob_types.go: By default between 0 and 100 jobs at a time. Any
    # value that is not false pauses it.
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
        notes=()
        if "maxReplicaCount" in spec
        else ("the object sets no maxReplicaCount: the plan counts the default of 100 jobs",),
    )


_RULES: Mapping[str, Callable[..., Iterator[PodGroup]]] = {
    "cron_job": _cron_job,
    "daemon_set": _daemon_set,
    "held": _held,
    "inference_service": kserve.inference_service,
    "job": _job,
    "job_set": _job_set,
    "knative_service": _knative_service,
    "leader_worker_set": _leader_worker_set,
    "llm_inference_service": kserve.llm_inference_service,
    "notebook": _notebook,
    "pod": _pod,
    "ray_cluster": training.ray_cluster,
    "ray_cron_job": training.ray_cron_job,
    "ray_job": training.ray_job,
    "ray_service": training.ray_service,
    "replicated": _replicated,
    "rollout": _rollout,
    "scaled_job": _scaled_job,
    "train_job": training.train_job,
    "training": _training,
    "volcano_job": training.volcano_job,
}
