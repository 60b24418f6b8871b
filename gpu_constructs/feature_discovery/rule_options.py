"""The options of `NodeFeatureRule`: rules, the features that the rules match, and the expressions on these features.

Source: kubernetes-sigs/node-feature-discovery@v0.16.0 and @v0.19.0:api/nfd/v1alpha1/types.go,
pkg/apis/nfd/validate/validate.go and pkg/apis/nfd/nodefeaturerule/expression.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Literal

from gpu_constructs.catalog import nfd_labels
from gpu_constructs.errors import refuse_if
from gpu_constructs.kube import fields, tables
from gpu_constructs.kube.placement import Taint
from gpu_constructs.records import dataclass, field, regex

_NUMBER = regex(r"[-+]?[0-9]+\Z")
_VERSION = regex(r"v?[0-9]+(\.[0-9]+){0,2}([-+][-+.0-9A-Za-z]+)?\Z")
_VALUE_OF_FEATURE = regex(r"@[^.]+\.[^.]+\..+\Z")


def check_operands(field: str, operands: Sequence[str], operator: str, kind: str | None = None) -> None:
    """Raise if an operator of Node Feature Discovery does not accept the given values.

    Args:
        field: Path of the values in messages.
        operands: Values of the expression.
        operator: Operator, such as ``In``.
        kind: ``version`` if operators such as ``Gt`` compare versions. None if they compare whole numbers.

    Raises:
        GpuConstructsError: The operator does not accept this number of values, or it compares numbers and a value is
            not a number.
    """
    known = tables.table(__package__, "config.yaml")
    fewest, *most = {**known["operators"], **known["rule_operators"]}[operator]
    count = f"{fewest} or more" if not most else f"exactly {fewest}" if fewest else "none"
    refuse_if(
        len(operands) < fewest or (most and len(operands) > most[0]),
        field,
        f"have {count} for {operator}",
        list(operands),
    )
    if operator.startswith(("G", "L")):
        form, what = (_VERSION, "versions like '6.12'") if kind else (_NUMBER, "whole numbers as text")
        refuse_if(not all(map(form.match, operands)), field, f"be {what} for {operator}", list(operands))
        refuse_if(
            fewest == 2 and not kind and int(operands[0]) >= int(operands[1]),
            field,
            "have the smaller number first",
            list(operands),
        )


def check_domain(where: str, key: str, own: Sequence[str] = (nfd_labels.DOMAIN,), extra: Sequence[str] = ()) -> None:
    """Raise if the master of Node Feature Discovery ignores a key because of its domain.

    The master ignores keys in domains below ``kubernetes.io``, such as ``node.kubernetes.io/a``, with some exceptions.

    Args:
        where: Path of the key in messages.
        key: Key of a label, an annotation, a taint or an extended resource.
        own: Domains below ``kubernetes.io`` that the master always accepts, each with a slash at its end, such as
            ``feature.node.kubernetes.io/``. The master also accepts their subdomains.
        extra: Domains that the user allows with ``NfdMaster(extra_label_ns=...)``, without their subdomains.

    Raises:
        GpuConstructsError: The master ignores the domain of the key.
    """
    domain, slash, _ = f".{key}".rpartition("/")
    is_reserved = slash and domain.endswith(".kubernetes.io") and domain[1:] not in extra
    refuse_if(
        is_reserved and not domain.endswith(tuple(f".{prefix[:-1]}" for prefix in own)),
        where,
        f"be outside kubernetes.io, except for {' and '.join(own)}",
        key,
        way_out="use another domain, because the NFD master ignores this one",
    )


def _feature(where: str, given: str) -> None:
    refuse_if(given.count(".") != 1, where, "be '<domain>.<feature>', such as 'pci.device'", given)
    known = tables.table(__package__, "config.yaml")["features"]
    # Other programs can publish features of domains that the worker does not have.
    if given.partition(".")[0] in {one.partition(".")[0] for one in known}:
        fields.one_of(where, given, [*known])


def _labels(where: str, given: Mapping[str, str]) -> None:
    fields.labels(where, {key: "" if _VALUE_OF_FEATURE.match(value) else value for key, value in given.items()})


def _key(where: str, given: str) -> None:
    fields.label_key(where, given)
    check_domain(where, given)


def _annotation(where: str, given: str) -> None:
    refuse_if(len(given.encode()) > 1024, where, "have at most 1024 bytes", len(given.encode()))


def _amount(where: str, given: str | int) -> None:
    if not _VALUE_OF_FEATURE.match(str(given)):
        fields.quantity(where, str(given))
        refuse_if(fields.amount(str(given)) % 1, where, "be a whole number", given)


def _taint(where: str, given: Taint) -> None:
    refuse_if("/" not in given.key, f"{where}.key", "have a domain, like 'nvidia.com/gpu'", given.key)
    check_domain(f"{where}.key", given.key)


@dataclass(frozen=True, kw_only=True)
class FeatureExpression(fields.Options):
    """A condition on an attribute of a node feature, for example that the PCI attribute ``vendor`` is ``10de``.

    Attributes:
        op: Operator. ``Ge``, ``Le`` and ``GeLe`` need Node Feature Discovery 0.18.0 or later.
        value: Values to compare with the attribute, as text. ``Exists``, ``DoesNotExist``, ``IsTrue`` and ``IsFalse``
            accept no value. ``Gt``, ``Ge``, ``Lt`` and ``Le`` need one number. ``GtLt`` and ``GeLe`` need two numbers.
        type: ``version`` if an operator such as ``Gt`` compares versions such as ``6.12``. This needs Node Feature
            Discovery 0.18.0 or later. None (the default) if it compares whole numbers.

    Raises:
        GpuConstructsError: If the operator does not accept the values, or does not accept ``type``.
    """

    op: Literal[
        "In",
        "NotIn",
        "InRegexp",
        "Exists",
        "DoesNotExist",
        "Gt",
        "Ge",
        "Lt",
        "Le",
        "GtLt",
        "GeLe",
        "IsTrue",
        "IsFalse",
    ]
    value: Sequence[str] = ()
    type: Literal["version"] | None = None

    def _conflicts(self) -> Iterable[fields.Conflict]:
        check_operands("feature_expression.value", self.value, self.op, self.type)
        yield (
            self.type is not None and not self.op.startswith(("G", "L")),
            f"feature_expression.type must be None for {self.op}, which compares no numbers. Leave it out",
        )

    def to_manifest(self) -> dict[str, Any]:
        """Return the condition as a match expression in a NodeFeatureRule."""
        return {"op": self.op, "value": list(self.value) or None, "type": self.type}


@dataclass(frozen=True, kw_only=True)
class FeatureMatch(fields.Options):
    """Conditions on one node feature in a rule, for example on ``pci.device``.

    Attributes:
        feature: Name of the feature, such as ``pci.device`` or ``kernel.version``.
        match_expressions: Conditions by name of the attribute, such as ``vendor``. All conditions must match. A list of
            values means the operator ``In``.
        match_name: Condition on the names of the elements of the feature, for example on the names of kernel modules in
            ``kernel.loadedmodule``. None: no such condition.

    Raises:
        GpuConstructsError: If Node Feature Discovery does not discover the feature.
    """

    _CHECKS: ClassVar[fields.Checks] = {"feature": _feature}

    feature: str
    match_expressions: Mapping[str, FeatureExpression | Sequence[str]] = field(default_factory=dict)
    match_name: FeatureExpression | None = None

    def to_manifest(self) -> dict[str, Any]:
        """Return the conditions as an item of ``matchFeatures`` in a NodeFeatureRule."""
        return {
            "feature": self.feature,
            "matchExpressions": {
                key: (
                    one if isinstance(one, FeatureExpression) else FeatureExpression(op="In", value=one)
                ).to_manifest()
                for key, one in self.match_expressions.items()
            }
            or None,
            "matchName": None if self.match_name is None else self.match_name.to_manifest(),
        }


@dataclass(frozen=True, kw_only=True)
class FeatureRule(fields.Options):
    """A rule of a ``NodeFeatureRule``: the labels, annotations, extended resources and taints of nodes that match.

    A node matches if it matches both ``match_features`` and ``match_any``. Empty conditions match every node.

    A label value or a resource amount can refer to a feature of the node: ``@<domain>.<feature>.<element>``. For
    example, ``@kernel.version.major`` is the major version of the kernel.

    Attributes:
        name: Name of the rule.
        labels: Labels of the node. A key without a domain gets the domain ``feature.node.kubernetes.io``.
        labels_template: Go template that creates labels, with one line ``key=value`` for each label.
        vars: Variables that later rules can match as the feature ``rule.matched``.
        vars_template: Go template that creates variables, with one line ``key=value`` for each variable.
        annotations: Annotations of the node. Each value has at most 1024 bytes.
        extended_resources: Amounts of extended resources of the node by resource name. An amount is a whole number, or
            refers to a feature.
        taints: Taints of the node. The master applies taints only with ``NfdMaster(enable_taints=True)``.
        match_features: Conditions on features, which must all match.
        match_any: Lists of conditions on features. All conditions of at least one list must match.

    Raises:
        GpuConstructsError: If the rule sets nothing, or if a key or a value is invalid.
    """

    _CHECKS: ClassVar[fields.Checks] = {
        "labels": _labels,
        "annotations": fields.entries(_annotation, _key),
        "extended_resources": fields.entries(_amount, _key),
        "taints": partial(fields.each, _taint),
    }

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    labels_template: str | None = None
    vars: Mapping[str, str] = field(default_factory=dict)
    vars_template: str | None = None
    annotations: Mapping[str, str] = field(default_factory=dict)
    extended_resources: Mapping[str, str | int] = field(default_factory=dict)
    taints: Sequence[Taint] = ()
    match_features: Sequence[FeatureMatch] = ()
    match_any: Sequence[Sequence[FeatureMatch]] = ()

    def _conflicts(self) -> Iterable[fields.Conflict]:
        effects = "labels labels_template vars vars_template annotations extended_resources taints".split()
        yield (
            not any(getattr(self, effect) for effect in effects),
            f"feature_rule must have one of {', '.join(effects)}, got none of them. Add one",
        )

    def to_manifest(self) -> dict[str, Any]:
        """Return the rule as an item of ``spec.rules`` of a NodeFeatureRule."""
        return {
            "name": self.name,
            "labels": dict(self.labels) or None,
            "labelsTemplate": self.labels_template,
            "vars": dict(self.vars) or None,
            "varsTemplate": self.vars_template,
            "annotations": dict(self.annotations) or None,
            "extendedResources": {key: str(value) for key, value in self.extended_resources.items()} or None,
            "taints": [taint.to_manifest() for taint in self.taints] or None,
            "matchFeatures": [one.to_manifest() for one in self.match_features] or None,
            "matchAny": [{"matchFeatures": [one.to_manifest() for one in each]} for each in self.match_any] or None,
        }
