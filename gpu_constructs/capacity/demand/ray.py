"""How many pods the clusters of Ray make.

ray-project/kuberay@v1.7.0:ray-operator/apis/ray/v1/*_types.go, ray-operator/controllers/ray/utils/util.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpu_constructs.capacity.demand.app_objects import App
from gpu_constructs.capacity.demand.pod_group import (
    PodGroup,
    is_suspended,
    mapping,
    members,
    number,
    pods_of,
    runs,
    whole_set,
)
from gpu_constructs.rules.facts import Manifest


def ray_cluster(manifest: Manifest, _app: App) -> Iterator[PodGroup]:
    """Give the pods of a RayCluster, which stays; its workers come and go one by one."""
    yield from _cluster(mapping(manifest.get("spec")))


def ray_service(manifest: Manifest, _app: App) -> Iterator[PodGroup]:
    """Give the pods of a RayService."""
    # controllers/ray/rayservice_controller.go: an update makes a second cluster beside the first, if not forbidden.
    spec = mapping(manifest.get("spec"))
    kind = mapping(spec.get("upgradeStrategy")).get("type", "NewCluster")
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
    """Give the pods of a RayJob."""
    yield from _job_pods(mapping(manifest.get("spec")))


def ray_cron_job(manifest: Manifest, _app: App) -> Iterator[PodGroup]:
    """Give the pods of a RayCronJob."""
    # apis/ray/v1/raycronjob_types.go has no concurrency policy.
    spec = mapping(manifest.get("spec"))
    calendar = runs(spec, overlaps=True)
    for group in _job_pods(mapping(spec.get("jobTemplate"))):
        stopped = group.is_stopped or calendar["is_stopped"]
        yield replace(group, **{**calendar, "is_stopped": stopped, "notes": (*group.notes, *calendar["notes"])})


def _job_pods(spec: Mapping[str, Any]) -> Iterator[PodGroup]:
    """Give the pods of one run: the job is handed over once all of the cluster runs that is wanted at first."""
    # controllers/ray/rayjob_controller.go, raycluster_controller.go: state Ready. A clusterSelector means a cluster
    # that is there already.
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
    stopped = is_suspended(cluster) or is_suspended(holder or {})
    head = mapping(cluster.get("headGroupSpec"))
    yield PodGroup(**pods_of(head.get("template")), part="head", least_copies=1, is_stopped=stopped)
    scales = cluster.get("enableInTreeAutoscaling") is True
    for index, workers in enumerate(members(cluster.get("workerGroupSpecs"))):
        copies, least, told = (0, 0, ()) if is_suspended(workers) else _workers(workers, scales)
        hosts = number(workers.get("numOfHosts"), 1) or 1
        yield PodGroup(
            **pods_of(workers.get("template")),
            part=str(workers.get("groupName") or f"workers {index}"),
            copies=copies,
            least_copies=least,
            pods_each=hosts,
            is_gang=hosts > 1,
            is_stopped=stopped,
            notes=tuple(told),
        )


def _workers(group: Mapping[str, Any], scales: bool) -> tuple[int, int, Sequence[str]]:
    """Give the most and the fewest copies of a group of workers, and what was assumed."""
    least = number(group.get("minReplicas"), 0)
    most = number(group.get("maxReplicas"), -1)
    first = _at_first(group)
    if not scales:
        return first, first, ()
    if most < 0:
        return first, least, ("its autoscaler has no maxReplicas: counted as the replicas declared",)
    return max(most, least), least, ()


def _at_first(group: Mapping[str, Any]) -> int:
    """Give how many copies of a group of workers are wanted before any autoscaler has a say."""
    most = number(group.get("maxReplicas"), -1)
    declared = max(number(group.get("replicas"), 0), number(group.get("minReplicas"), 0))
    return declared if most < 0 else min(declared, most)
