"""Which pods keep away from one another, as far as a plan looks at it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.demand.pod_group import mapping, members

_HOST = "kubernetes.io/hostname"
# Labels that only a controller writes, another value for each revision of the pods.
_OF_REVISIONS = frozenset({"controller-revision-hash", "pod-template-hash", "rollouts-pod-template-hash"})
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def most_per_node(pod_spec: Mapping[str, Any], labels: Mapping[str, Any], namespace: str) -> int | None:
    """Give 1 where pods keep one another off their nodes, by their own required anti-affinity."""
    return 1 if any(_keeps_off(term, labels, namespace) for term in _terms(pod_spec, "podAntiAffinity")) else None


def is_apart_by_revision(pod_spec: Mapping[str, Any], labels: Mapping[str, Any], namespace: str) -> bool:
    """Tell whether pods keep off only those of their own revision, so that an update may go beside the old ones."""
    terms = [one for one in _terms(pod_spec, "podAntiAffinity") if _keeps_off(one, labels, namespace)]
    return bool(terms) and all(_OF_REVISIONS.intersection(_texts(term.get("matchLabelKeys"))) for term in terms)


def strangers(consumers: Sequence[Consumer]) -> Iterator[tuple[int, str]]:
    """Tell of each whose pods keep off their own like whom they keep off besides, which a plan does not look at."""
    labelled: dict[tuple[str, object], list[Consumer]] = {}
    # A claim has the labels of those that hold it.
    pods = [one for one in consumers if one.kind != "ResourceClaim"]
    for one in pods:
        for key, value in one.labels.items():
            if isinstance(value, str):
                labelled.setdefault((key, value), []).append(one)
    for index, one in enumerate(consumers):
        if one.most_per_node is None:
            continue
        for term in _terms(one.pod_spec, "podAntiAffinity"):
            if _keeps_off(term, one.labels, one.namespace):
                near = min((labelled.get(wanted, []) for wanted in _labels_wanted(term)), key=len, default=pods)
                other = next((two for two in near if two.subject != one.subject and _meets(term, one, two)), None)
                if other is not None:
                    yield index, f"it keeps off nodes of {other.kind} {other.title} too, which is not looked at"
                    break


def _labels_wanted(term: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    wanted = mapping(mapping(term.get("labelSelector")).get("matchLabels"))
    return ((key, value) for key, value in wanted.items() if isinstance(value, str))


def _meets(term: Mapping[str, Any], one: Consumer, other: Consumer) -> bool:
    """Tell whether a term is about the pods of another consumer."""
    keys = _texts(term.get("matchLabelKeys"))
    if _OF_REVISIONS.intersection(keys) or any(
        one.labels[key] != other.labels.get(key) for key in keys if key in one.labels
    ):
        return False
    # No namespaces at all mean its own.
    if term.get("namespaces") or term.get("namespaceSelector") is not None:
        return _keeps_off(term, other.labels, other.namespace)
    return one.namespace == other.namespace and _keeps_off(term, other.labels, other.namespace)


def _texts(value: object) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


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
