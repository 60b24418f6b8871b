"""Which pods keep away from one another, as far as a plan looks at it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpu_constructs.capacity.demand.pod_group import mapping, members

_HOST = "kubernetes.io/hostname"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def most_per_node(pod_spec: Mapping[str, Any], labels: Mapping[str, Any], namespace: str) -> int | None:
    """Give 1 where pods keep one another off their nodes, by their own required anti-affinity."""
    return 1 if any(_keeps_off(term, labels, namespace) for term in _terms(pod_spec, "podAntiAffinity")) else None


def _terms(pod_spec: Mapping[str, Any], kind: str) -> list[Mapping[str, Any]]:
    return members(mapping(mapping(pod_spec.get("affinity")).get(kind)).get(_REQUIRED))


def _keeps_off(term: Mapping[str, Any], labels: Mapping[str, Any], namespace: str) -> bool:
    if term.get("topologyKey") != _HOST or term.get("mismatchLabelKeys"):
        return False
    namespaces, selected = term.get("namespaces"), term.get("namespaceSelector")
    # An empty selector takes every namespace; what another one takes is not known here.
    if namespaces or selected is not None:
        listed = isinstance(namespaces, list) and namespace in namespaces
        if not listed and selected != {}:
            return False
    selector = term.get("labelSelector")
    # None at all selects nothing, an empty one everything.
    return isinstance(selector, Mapping) and _selects(selector, labels)


def _selects(selector: Mapping[str, Any], labels: Mapping[str, Any]) -> bool:
    wanted = mapping(selector.get("matchLabels"))
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        _holds(expression, labels) for expression in members(selector.get("matchExpressions"))
    )


def _holds(expression: Mapping[str, Any], labels: Mapping[str, Any]) -> bool:
    key, given = str(expression.get("key")), expression.get("values")
    values = given if isinstance(given, list) else []
    match expression.get("operator"):
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return key not in labels or labels[key] not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    return False


def placement_notes(pod_spec: Mapping[str, Any], *, is_apart: bool) -> Iterator[str]:
    """Tell what else decides where its pods go, which a plan does not look at."""
    if any(
        one.get("whenUnsatisfiable") != "ScheduleAnyway" for one in members(pod_spec.get("topologySpreadConstraints"))
    ):
        yield "its topologySpreadConstraints are not looked at"
    if _terms(pod_spec, "podAffinity"):
        yield "its podAffinity is not looked at"
    if len(_terms(pod_spec, "podAntiAffinity")) > is_apart:
        yield "its podAntiAffinity to other pods is not looked at"
    scheduler = pod_spec.get("schedulerName")
    if scheduler not in (None, "", "default-scheduler"):
        yield f"its scheduler {scheduler} may place it otherwise"
