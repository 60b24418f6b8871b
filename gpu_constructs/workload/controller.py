"""What runs the pods: Deployment, StatefulSet, Job, CronJob or a bare Pod, as plain manifests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

Kind = Literal["Deployment", "StatefulSet", "Job", "CronJob", "Pod"]

API_VERSIONS: Mapping[Kind, str] = {
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
    "Pod": "v1",
}


def deployment(template: Mapping[str, Any], *, selector: Mapping[str, str], replicas: int) -> dict[str, Any]:
    """Give the spec of a Deployment.

    An update never needs a GPU that the old pods still hold: a single pod is stopped before its successor
    starts, of several one at a time.
    """
    one_by_one = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    return {
        "replicas": replicas,
        "selector": {"matchLabels": dict(selector)},
        "strategy": {"type": "Recreate"} if replicas <= 1 else one_by_one,
        "template": template,
    }


def stateful_set(
    template: Mapping[str, Any], *, selector: Mapping[str, str], replicas: int, service_name: str
) -> dict[str, Any]:
    """Give the spec of a StatefulSet; it replaces its pods one by one by itself."""
    return {
        "replicas": replicas,
        "selector": {"matchLabels": dict(selector)},
        "serviceName": service_name,
        "template": template,
    }


def job(
    template: Mapping[str, Any],
    *,
    completions: int,
    parallelism: int,
    backoff_limit: int,
    active_deadline_seconds: int | None,
    ttl_seconds_after_finished: int | None,
) -> dict[str, Any]:
    """Give the spec of a Job; several completions are indexed, so that each pod has its own number."""
    return {
        "activeDeadlineSeconds": active_deadline_seconds,
        "backoffLimit": backoff_limit,
        "completionMode": "Indexed" if completions > 1 else None,
        "completions": completions if completions > 1 else None,
        "parallelism": parallelism if parallelism > 1 else None,
        "template": template,
        "ttlSecondsAfterFinished": ttl_seconds_after_finished,
    }


def cron_job(job_spec: Mapping[str, Any], *, schedule: str) -> dict[str, Any]:
    """Give the spec of a CronJob that never runs two of its Jobs at once, since both would want the GPU."""
    return {
        "concurrencyPolicy": "Forbid",
        "failedJobsHistoryLimit": 1,
        "jobTemplate": {"spec": job_spec},
        "schedule": schedule,
        "successfulJobsHistoryLimit": 1,
    }
