"""Which pods keep away from one another, as far as a plan looks at it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpu_constructs.capacity.condition import Condition
from gpu_constructs.capacity.consumer import Consumer
from gpu_constructs.capacity.demand.pod_group import mapping, members

HOST = "kubernetes.io/hostname"
"""The label whose domains are nodes."""
# Labels that only a controller writes, another value for each revision of the pods.
_OF_REVISIONS = frozenset({"controller-revision-hash", "pod-template-hash", "rollouts-pod-template-hash"})
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def most_per_node(pod_spec: Mapping[str, Any], labels: Mapping[str, Any], namespace: str) -> int | None:
    """Give 1 where pods keep one another off their nodes, by their own required anti-affinity."""
    return (
        1 if any(_keeps_off(term, labels, namespace) for term in required_terms(pod_spec, "podAntiAffinity")) else None
    )


def is_apart_by_revision(pod_spec: Mapping[str, Any], labels: Mapping[str, Any], namespace: str) -> bool:
    """Tell whether pods keep off only those of their own revision, so that an update may go beside the old ones."""
    terms = [one for one in required_terms(pod_spec, "podAntiAffinity") if _keeps_off(one, labels, namespace)]
    return bool(terms) and all(is_of_revision(term) for term in terms)


def is_of_revision(term: Mapping[str, Any]) -> bool:
    """Check whether a term is about pods of one revision only."""
    return bool(_OF_REVISIONS.intersection(_texts(term.get("matchLabelKeys"))))


def meets(term: Mapping[str, Any], one: Consumer, other: Consumer) -> bool:
    """Check whether a term of a consumer's pods is about the pods of another one, or about its own."""
    if other is not one and is_of_revision(term):
        return False
    keys = _texts(term.get("matchLabelKeys"))
    if any(one.labels[key] != other.labels.get(key) for key in keys if key in one.labels):
        return False
    # No namespaces at all mean its own.
    if term.get("namespaces") or term.get("namespaceSelector") is not None:
        return _is_about(term, other.labels, other.namespace)
    return one.namespace == other.namespace and _is_about(term, other.labels, other.namespace)


def _texts(value: object) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def required_terms(pod_spec: Mapping[str, Any], kind: str) -> list[Mapping[str, Any]]:
    """Return the terms that must hold of an affinity, as ``podAntiAffinity``."""
    return members(mapping(mapping(pod_spec.get("affinity")).get(kind)).get(_REQUIRED))


def _keeps_off(term: Mapping[str, Any], labels: Mapping[str, Any], namespace: str) -> bool:
    is_known = term.get("topologyKey") == HOST and not term.get("mismatchLabelKeys")
    return is_known and _is_about(term, labels, namespace)


def _is_about(term: Mapping[str, Any], labels: Mapping[str, Any], namespace: str) -> bool:
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


def placement_notes(pod_spec: Mapping[str, Any]) -> Iterator[Condition]:
    """Return what else decides where its pods go, which a plan does not look at."""
    scheduler = pod_spec.get("schedulerName")
    if scheduler not in (None, "", "default-scheduler"):
        yield Condition(f"its scheduler {scheduler} places its pods where kube-scheduler would")
