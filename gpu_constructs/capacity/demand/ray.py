"""How many pods the clusters of Ray make.

ray-project/kuberay@v1.7.0:ray-operator/apis/ray/v1/*_types.go, ray-operator/controllers/ray/utils/util.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpu_constructs.capacity.demand.app_objects import App
from gpu_constructs.capacity.demand.pod_group import OVERLAPS, PodGroup, mapping, members, number, pods_of, suspended
from gpu_constructs.rules.facts import Manifest


def ray_cluster(manifest: Manifest, _app: App) -> Iterator[PodGroup]:
    """Give the pods of a RayCluster, which stays."""
    yield from _cluster(mapping(manifest.get("spec")), lasts=True)


def ray_service(manifest: Manifest, _app: App) -> Iterator[PodGroup]:
    """Give the pods of a RayService."""
    # controllers/ray/rayservice_controller.go: an update makes a second cluster beside the first, if not forbidden.
    spec = mapping(manifest.get("spec"))
    kind = mapping(spec.get("upgradeStrategy")).get("type", "NewCluster")
    doubles = isinstance(kind, str) and kind.startswith("NewCluster")
    for group in _cluster(mapping(spec.get("rayClusterConfig")), lasts=True, holder=spec):
        pods = group.copies * group.pods_each
        yield replace(group, surge=pods, surge_is_needed=True) if doubles and pods else group


def ray_job(manifest: Manifest, _app: App) -> Iterator[PodGroup]:
    """Give the pods of a RayJob."""
    yield from _job_pods(mapping(manifest.get("spec")))


def ray_cron_job(manifest: Manifest, _app: App) -> Iterator[PodGroup]:
    """Give the pods of a RayCronJob."""
    # apis/ray/v1/raycronjob_types.go has no concurrency policy.
    spec = mapping(manifest.get("spec"))
    for group in _job_pods(mapping(spec.get("jobTemplate"))):
        pods = group.copies * group.pods_each
        yield replace(group, copies=2, pods_each=pods, notes=suspended(spec, *group.notes, OVERLAPS))


def _job_pods(spec: Mapping[str, Any]) -> Iterator[PodGroup]:
    # A clusterSelector means a cluster that is there already.
    if not mapping(spec.get("clusterSelector")):
        yield from _cluster(mapping(spec.get("rayClusterSpec")), lasts=False, holder=spec)
    if spec.get("submissionMode", "K8sJobMode") == "K8sJobMode" and "submitterPodTemplate" in spec:
        yield PodGroup(**pods_of(spec.get("submitterPodTemplate")), part="submitter", notes=suspended(spec))


def _cluster(cluster: Mapping[str, Any], *, lasts: bool, holder: Mapping[str, Any] | None = None) -> Iterator[PodGroup]:
    notes = suspended(cluster) or suspended(holder or {})
    lasts = lasts and not notes
    head = mapping(cluster.get("headGroupSpec"))
    yield PodGroup(**pods_of(head.get("template")), part="head", least_copies=int(lasts), notes=notes)
    scales = cluster.get("enableInTreeAutoscaling") is True
    for index, workers in enumerate(members(cluster.get("workerGroupSpecs"))):
        copies, least, told = _workers(workers, scales)
        hosts = number(workers.get("numOfHosts"), 1) or 1
        yield PodGroup(
            **pods_of(workers.get("template")),
            part=str(workers.get("groupName") or f"workers {index}"),
            copies=0 if workers.get("suspend") is True else copies,
            least_copies=least if lasts else 0,
            pods_each=hosts,
            is_gang=hosts > 1,
            notes=(*notes, *told),
        )


def _workers(group: Mapping[str, Any], scales: bool) -> tuple[int, int, Sequence[str]]:
    least = number(group.get("minReplicas"), 0)
    most = number(group.get("maxReplicas"), -1)
    declared = max(number(group.get("replicas"), 0), least)
    if not scales:
        copies = declared if most < 0 else min(declared, most)
        return copies, copies, ()
    if most < 0:
        return declared, least, ("its autoscaler has no maxReplicas: counted as the replicas declared",)
    return max(most, least), least, ()
