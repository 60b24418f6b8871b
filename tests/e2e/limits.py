"""Quotas and limit ranges, which the API server knows a moment after it has stored them.

Admission reads them from a watch. Where that shows no limit range yet, it asks the storage and keeps the answer for 30
seconds, even if the limit range is deleted meanwhile: so the answer that it keeps is asked for before there is one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cluster import ApiError, Cluster, Found, eventually

_KINDS = ("LimitRange", "ResourceQuota")
_RESOURCE = "e2e.invalid/probe"


def enforce(cluster: Cluster, manifests: Sequence[Found]) -> None:
    """Apply objects, and wait until the quotas and limit ranges among them hold for pods of their namespace."""
    limits = [one for one in manifests if one["kind"] in _KINDS]
    for namespace in {one["metadata"]["namespace"] for one in limits}:
        _judged(cluster, namespace, {})
    cluster.apply(*manifests)
    for one in limits:
        namespace = one["metadata"]["namespace"]
        if one["kind"] == "LimitRange":
            eventually(lambda where=namespace: _is_limited(cluster, where), "the limits hold")
        else:
            eventually(lambda quota=one: _is_counted(cluster, quota), "the quota counts")
            _wait_for_the_watch(cluster, namespace, _minimum(limits))


def _judged(cluster: Cluster, namespace: str, limits: Mapping[str, str]) -> tuple[Found, str]:
    """Return the resources that a container with limits gets, or why its pod is refused."""
    container = {"name": "main", "image": "e2e.invalid/none", "resources": {"limits": dict(limits)}}
    metadata = {"name": "e2e-probe", "namespace": namespace}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}
    try:
        return cluster.create(pod, dry_run=True)["spec"]["containers"][0]["resources"], ""
    except ApiError as error:
        return {}, error.message


def _is_limited(cluster: Cluster, namespace: str) -> bool:
    """Check whether a container that states nothing gets amounts, or is refused for want of some."""
    resources, refusal = _judged(cluster, namespace, {})
    return bool(resources) or (refusal != "" and "quota" not in refusal)


def _minimum(limits: Sequence[Found]) -> dict[str, str]:
    """Return what a container has to ask for."""
    ranges = [item for one in limits if one["kind"] == "LimitRange" for item in one["spec"]["limits"]]
    return {name: amount for item in ranges for name, amount in item.get("min", {}).items()}


def _is_counted(cluster: Cluster, quota: Found) -> bool:
    metadata = quota["metadata"]
    found = cluster.get("v1", "ResourceQuota", metadata["name"], metadata["namespace"])
    return set(found.get("status", {}).get("hard", ())) == set(quota["spec"]["hard"])


def _wait_for_the_watch(cluster: Cluster, namespace: str, minimum: Mapping[str, str]) -> None:
    """Wait until admission enforces a quota that is made now: by then it knows all earlier ones."""
    marker = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "e2e-probe", "namespace": namespace},
        "spec": {"hard": {f"requests.{_RESOURCE}": "0"}},
    }
    cluster.apply(marker)
    asked = {**minimum, _RESOURCE: "1"}
    eventually(lambda: "quota" in _judged(cluster, namespace, asked)[1], "the quota is enforced")
    cluster.delete(marker)
