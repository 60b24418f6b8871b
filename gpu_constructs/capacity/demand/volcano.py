"""How many pods a Job of Volcano makes, and with how many of each task it starts.

volcano-sh/volcano@v1.15.1:pkg/webhooks/admission/jobs/mutate/mutate_job.go, pkg/scheduler/api/job_info.go,
pkg/controllers/job/job_controller_util.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpu_constructs.capacity.demand.app_objects import App
from gpu_constructs.capacity.demand.pod_asks import pod_asks
from gpu_constructs.capacity.demand.pod_group import PodGroup, mapping, members, number, pods_of
from gpu_constructs.rules.facts import Manifest


def volcano_job(manifest: Manifest, app: App) -> Iterator[PodGroup]:
    """Give the pods of a Job of Volcano; a task without replicas has none."""
    spec = mapping(manifest.get("spec"))
    tasks = members(spec.get("tasks"))
    templates = [pods_of(task.get("template")) for task in tasks]
    pods = [number(task.get("replicas"), 0) for task in tasks]
    starts = _starting(spec, tasks, pods, [bool(pod_asks(one["spec"], app.is_gpu)) for one in templates])
    notes = (f"it starts with {sum(starts)} of its {sum(pods)} pods (minAvailable)",) if starts != pods else ()
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
    """Give with how many pods of each task the job starts: the least of each, then those without GPUs first."""
    least = [min(number(task.get("minAvailable"), count), count) for task, count in zip(tasks, pods, strict=True)]
    together = number(spec.get("minAvailable"), 0) or sum(least)
    # With fewer in all than the tasks have together, Volcano looks at the sum alone.
    starts = least if together >= sum(least) else [0] * len(pods)
    for index in sorted(range(len(pods)), key=lambda one: hold_gpus[one]):
        starts[index] += max(min(together - sum(starts), pods[index] - starts[index]), 0)
    return starts
