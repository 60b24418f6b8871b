"""Which nodes take a pod, by what decides it for DaemonSets: node labels and taints, never resources."""

from collections.abc import Mapping
from typing import Any, NamedTuple

PodSpec = Mapping[str, Any]


class Node(NamedTuple):
    """A node as the scheduler sees it."""

    labels: Mapping[str, str]
    taints: tuple[Mapping[str, str], ...] = ()


def fits(pod: PodSpec, node: Node) -> bool:
    """Whether a pod of this kind would run on the node."""
    selected = (pod.get("nodeSelector") or {}).items() <= node.labels.items()
    hard = [taint for taint in node.taints if taint["effect"] != "PreferNoSchedule"]
    tolerated = all(any(_tolerates(t, taint) for t in pod.get("tolerations") or ()) for taint in hard)
    return selected and tolerated and _has_affinity(pod, node)


def _has_affinity(pod: PodSpec, node: Node) -> bool:
    affinity = (pod.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    return any(_matches(term, node) for term in required["nodeSelectorTerms"])


def _matches(term: Mapping[str, Any], node: Node) -> bool:
    """A term without expressions matches no node at all."""
    assert term.keys() <= {"matchExpressions"}, f"no rule for {sorted(term)}"
    expressions = term.get("matchExpressions") or ()
    return bool(expressions) and all(_holds(expression, node.labels) for expression in expressions)


def _holds(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value, values = labels.get(expression["key"]), expression.get("values") or []
    match expression["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values  # a node without the label too
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case other:
            raise AssertionError(f"no rule for the operator {other!r}")


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, str]) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return toleration.get("key") in (None, "", taint["key"])
    return toleration.get("key") == taint["key"] and toleration.get("value", "") == taint.get("value", "")
