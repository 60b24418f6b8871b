"""Functions for label selectors, and for admission policies that set the RuntimeClass of pods.

Such a policy is a MutatingAdmissionPolicy of Kubernetes or a policy of Kyverno. A namespace selector limits the
namespaces in which a policy applies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpu_constructs.records import regex

Manifest = Mapping[str, Any]
Selectors = Sequence[Manifest]
"""Namespace selectors of an admission policy. The policy applies in a namespace that matches all these selectors."""

_NATIVE = ("admissionregistration.k8s.io", "MutatingAdmissionPolicy")
KINDS = (_NATIVE, ("kyverno.io", "ClusterPolicy"), ("policies.kyverno.io", "MutatingPolicy"))
BINDING = ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding")

_NAME = "kubernetes.io/metadata.name"
# A mutation sets the field in CEL, in a patch or in the path of a JSON patch. A condition only reads it.
_SETS = regex(r"/spec/runtimeClassName\b|\bruntimeClassName\)?['\"]?\s*:")


def selects(selector: object, labels: Manifest) -> bool:
    """Check whether a label selector matches the labels of an object.

    None, for a missing selector, matches nothing. An empty selector matches everything.

    Args:
        selector: Label selector with ``matchLabels`` and ``matchExpressions``.
        labels: Labels of the object.
    """
    if not isinstance(selector, Mapping):
        return False
    wanted, expressions = _mapping(selector.get("matchLabels")), selector.get("matchExpressions")
    listed = expressions if isinstance(expressions, list) else []
    has_labels = all(labels.get(key) == value for key, value in wanted.items())
    return has_labels and all(holds(one, labels) for one in listed if isinstance(one, Mapping))


def holds(expression: Manifest, labels: Manifest) -> bool:
    """Check whether the labels of an object match one item of ``matchExpressions`` of a label selector."""
    value, given = labels.get(str(expression.get("key"))), expression.get("values")
    is_listed = value is not None and isinstance(given, list) and value in given
    answers = {"In": is_listed, "NotIn": not is_listed, "Exists": value is not None, "DoesNotExist": value is None}
    return answers.get(str(expression.get("operator")), False)


def sets_runtime_class(policy: Manifest) -> bool:
    """Check whether an admission policy sets the RuntimeClass of pods.

    The function reads only the mutations in the policy, because its conditions can also name ``runtimeClassName``.
    """
    return any(_SETS.search(str(mutation)) for mutation in _mutations(_mapping(policy.get("spec"))))


def _mutations(spec: Manifest) -> Iterator[object]:
    """Yield the fields in the ``spec`` of an admission policy that state how the policy changes objects."""
    yield spec.get("mutations")
    rules = spec.get("rules")
    for rule in rules if isinstance(rules, list) else ():
        yield _mapping(rule).get("mutate")


def selectors(policy: Manifest, bindings: Sequence[Manifest]) -> Selectors:
    """Return the namespace selectors that restrict where an admission policy applies.

    The result contains the selector of the policy. For a MutatingAdmissionPolicy with exactly one binding, it also
    contains the selector of the binding.

    Args:
        policy: Manifest of the policy.
        bindings: Manifests of all bindings, also those of other policies.
    """
    name = _mapping(policy.get("metadata")).get("name")
    bound = [spec for one in bindings if (spec := _mapping(one.get("spec"))).get("policyName") == name]
    scopes = [_mapping(_mapping(policy.get("spec")).get("matchConstraints"))]
    if policy.get("kind") == _NATIVE[1] and len(bound) == 1:
        scopes.append(_mapping(bound[0].get("matchResources")))
    return [_mapping(scope.get("namespaceSelector")) for scope in scopes]


def may_hold_in(given: Selectors, namespace: str | None) -> bool:
    """Check whether an admission policy may apply in a namespace whose labels are not known.

    Args:
        given: Namespace selectors of the policy.
        namespace: Name of the namespace. If it is None, the result is True.
    """
    return namespace is None or all(_may_take(selector, namespace) for selector in given)


def _may_take(selector: Manifest, namespace: str) -> bool:
    """Check whether a namespace selector can match a namespace that has a known name and unknown labels."""
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
