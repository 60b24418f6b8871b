"""Label selectors, and the namespaces in which policies of any origin write the runtime class into pods."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Manifest = Mapping[str, Any]
Selectors = Sequence[Manifest]
"""Namespace selectors that all must take a namespace."""

_NATIVE = ("admissionregistration.k8s.io", "MutatingAdmissionPolicy")
KINDS = (_NATIVE, ("kyverno.io", "ClusterPolicy"), ("policies.kyverno.io", "MutatingPolicy"))
BINDING = ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding")

_NAME = "kubernetes.io/metadata.name"
# As a member that is set, in CEL or in a patch, or as the path of a JSON patch; not where it only is asked for.
_SETS = re.compile(r"/spec/runtimeClassName\b|\bruntimeClassName\)?['\"]?\s*:")


def selects(selector: object, labels: Manifest) -> bool:
    """Check whether a label selector takes labels: none at all takes nothing, an empty one everything."""
    if not isinstance(selector, Mapping):
        return False
    wanted, expressions = _mapping(selector.get("matchLabels")), selector.get("matchExpressions")
    listed = expressions if isinstance(expressions, list) else []
    has_labels = all(labels.get(key) == value for key, value in wanted.items())
    return has_labels and all(holds(one, labels) for one in listed if isinstance(one, Mapping))


def holds(expression: Manifest, labels: Manifest) -> bool:
    """Check whether labels meet one expression of a selector."""
    value, given = labels.get(str(expression.get("key"))), expression.get("values")
    is_listed = value is not None and isinstance(given, list) and value in given
    answers = {"In": is_listed, "NotIn": not is_listed, "Exists": value is not None, "DoesNotExist": value is None}
    return answers.get(str(expression.get("operator")), False)


def sets_runtime_class(policy: Manifest) -> bool:
    """Check whether a mutation of the policy names the runtime class; a message that does is none."""
    return any(_SETS.search(str(mutation)) for mutation in _mutations(_mapping(policy.get("spec"))))


def _mutations(spec: Manifest) -> Iterator[object]:
    yield spec.get("mutations")
    rules = spec.get("rules")
    for rule in rules if isinstance(rules, list) else ():
        yield _mapping(rule).get("mutate")


def selectors(policy: Manifest, bindings: Sequence[Manifest]) -> Selectors:
    """Return what a policy, and the one binding of it where there is one, says of its namespaces."""
    name = _mapping(policy.get("metadata")).get("name")
    bound = [spec for one in bindings if (spec := _mapping(one.get("spec"))).get("policyName") == name]
    scopes = [_mapping(_mapping(policy.get("spec")).get("matchConstraints"))]
    if policy.get("kind") == _NATIVE[1] and len(bound) == 1:
        scopes.append(_mapping(bound[0].get("matchResources")))
    return [_mapping(scope.get("namespaceSelector")) for scope in scopes]


def may_hold_in(given: Selectors, namespace: str | None) -> bool:
    """Check whether nothing keeps the policy from a namespace by its name; of other labels nothing is known."""
    return namespace is None or all(_may_take(selector, namespace) for selector in given)


def _may_take(selector: Manifest, namespace: str) -> bool:
    if _mapping(selector.get("matchLabels")).get(_NAME, namespace) != namespace:
        return False
    terms = selector.get("matchExpressions")
    for term in map(_mapping, terms if isinstance(terms, list) else ()):
        is_known = term.get("operator") in ("In", "NotIn") and isinstance(term.get("values"), list)
        if term.get("key") == _NAME and is_known and not holds(term, {_NAME: namespace}):
            return False
    return True


def _mapping(value: object) -> Manifest:
    return value if isinstance(value, Mapping) else {}
