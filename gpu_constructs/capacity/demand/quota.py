"""Which ResourceQuotas count a pod, and how much of each it takes.

Sources:
    kubernetes/kubernetes@v1.36.2:pkg/quota/v1/evaluator/core/pods.go: extended resources count as ``requests.<name>``
    only; a pod counts until it has ended, also while it is Pending; scopes are conditions that must all hold.

    kubernetes/kubernetes@v1.36.2:pkg/quota/v1/evaluator/core/resource_claims.go: devices of claims count by their
    class.

    kubernetes/kubernetes@v1.36.2:plugin/pkg/admission/priority/admission.go: a pod without a class gets the default
    one before quotas look at it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gpu_constructs.capacity.consumer import QuotaShare
from gpu_constructs.capacity.demand.app_objects import IMPLICIT, App
from gpu_constructs.capacity.demand.pod_group import mapping, members
from gpu_constructs.rules.facts import Manifest, namespace_of, quantity

_COMPUTE = ("cpu", "memory")


def quota_shares(pod_spec: Mapping[str, Any], takes: Mapping[str, int], namespace: str, app: App) -> list[QuotaShare]:
    """Return what a pod takes of every quota of its namespace that counts it.

    Args:
        pod_spec: Of the pod.
        takes: What it takes, by the name of a quota for it.
        namespace: Of the pod.
        app: The app.
    """
    return [
        QuotaShare(
            quota=f"ResourceQuota {namespace_of(quota)}/{name}", resource=resource, hard=hard, takes=takes[resource]
        )
        for name, quota in app.quotas.get(namespace, {}).items()
        if all(_is_in(scope, pod_spec, app) for scope in _scopes(app.as_written(quota)))
        for resource, hard in _limits(quota)
        if takes.get(resource)
    ]


def quota_names(asks: Mapping[str, int]) -> dict[str, int]:
    """Return the names by which quotas count what is asked for: resources by requests, classes of DRA by devices."""
    resources = {f"requests.{name if '/' in name else IMPLICIT + name}": count for name, count in asks.items()}
    return {**resources, **device_names(asks)}


def device_names(asks: Mapping[str, int]) -> dict[str, int]:
    """Return the names by which quotas count devices of claims."""
    return {f"{name}.deviceclass.resource.k8s.io/devices": count for name, count in asks.items() if "/" not in name}


def _limits(quota: Manifest) -> Iterator[tuple[str, int]]:
    for resource, hard in mapping(mapping(quota.get("spec")).get("hard")).items():
        amount = quantity(hard)
        if amount is not None:
            yield str(resource), int(amount)


def _scopes(quota: Manifest) -> Iterator[Mapping[str, Any]]:
    spec = mapping(quota.get("spec"))
    names = spec.get("scopes")
    yield from ({"scopeName": name, "operator": "Exists"} for name in (names if isinstance(names, list) else ()))
    yield from members(mapping(spec.get("scopeSelector")).get("matchExpressions"))


def _is_in(scope: Mapping[str, Any], pod_spec: Mapping[str, Any], app: App) -> bool:
    judge = _SCOPES.get(str(scope.get("scopeName")))
    return judge is not None and judge(scope, pod_spec, app)


def _ends(_scope: Mapping[str, Any], pod_spec: Mapping[str, Any], _app: App) -> bool:
    return isinstance(pod_spec.get("activeDeadlineSeconds"), int)


def _is_best_effort(_scope: Mapping[str, Any], pod_spec: Mapping[str, Any], _app: App) -> bool:
    containers = [*members(pod_spec.get("initContainers")), *members(pod_spec.get("containers"))]
    amounts = [
        mapping(mapping(one.get("resources")).get(kind)) for one in containers for kind in ("limits", "requests")
    ]
    return not any(quantity(one.get(name)) for one in amounts for name in _COMPUTE)


def _has_class(scope: Mapping[str, Any], pod_spec: Mapping[str, Any], app: App) -> bool:
    default = mapping(mapping(app.default_priority).get("metadata")).get("name")
    name, values = pod_spec.get("priorityClassName") or default, scope.get("values")
    is_listed = isinstance(values, list) and name in values
    match scope.get("operator"):
        case "In":
            return is_listed
        case "NotIn":
            return not is_listed
        case "DoesNotExist":
            return not name
    return bool(name)


_Judge = Callable[[Mapping[str, Any], Mapping[str, Any], App], bool]
_SCOPES: Mapping[str, _Judge] = {
    "BestEffort": _is_best_effort,
    "NotBestEffort": lambda *given: not _is_best_effort(*given),
    "NotTerminating": lambda *given: not _ends(*given),
    "PriorityClass": _has_class,
    "Terminating": _ends,
}
"""Scopes of a quota that is on GPUs; what is in another one is not counted."""
