"""The options of ``NodeFeatureRule``: rules, the features that they match, and the expressions on these features.

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
    """Raise unless an operator of NFD (Node Feature Discovery) accepts these values.

    Args:
        field: Path of the values in messages.
        operands: Values of the expression.
        operator: Operator, such as ``In``.
        kind: How the operator compares values: as versions (``version``), or as whole numbers (None).

    Raises:
        GpuConstructsError: The number of values is wrong, or the operator compares numbers and a value is not one.
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
    """Raise an error for a key in a domain that the master of NFD (Node Feature Discovery) ignores.

    Args:
        where: Path of the key in messages.
        key: Key of a label, an annotation, a taint or an extended resource.
        own: Prefixes of keys in domains of Kubernetes that the master accepts.
        extra: Domains that the master allows by its option ``extra_label_ns``.

    Raises:
        GpuConstructsError: The domain of the key belongs to Kubernetes.
    """
    domain, slash, _ = f".{key}".rpartition("/")
    is_reserved = slash and domain.endswith(".kubernetes.io") and domain[1:] not in extra
    refuse_if(
        is_reserved and not domain.endswith(tuple(f".{prefix[:-1]}" for prefix in own)),
        where,
        f"be outside kubernetes.io, except for {' and '.join(own)}",
        key,
        way_out="use another domain, because the master ignores this one",
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
    """An expression on the value of a feature of a node.

    Attributes:
        op: Operator. ``Ge``, ``Le`` and ``GeLe`` need Node Feature Discovery 0.18.0 or later.
        value: Values, which are text. ``Exists``, ``DoesNotExist``, ``IsTrue`` and ``IsFalse`` take none. ``Gt``,
            ``Ge``, ``Lt`` and ``Le`` take one number. ``GtLt`` and ``GeLe`` take two.
        type: ``version`` to compare versions such as ``6.12`` in place of whole numbers. It needs Node Feature
            Discovery 0.18.0 or later. None: whole numbers.

    Raises:
        GpuConstructsError: The operator does not take this number of values, or it compares numbers and a value is
            not one.
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
        """Return the expression as it appears in a manifest."""
        return {"op": self.op, "value": list(self.value) or None, "type": self.type}


@dataclass(frozen=True, kw_only=True)
class FeatureMatch(fields.Options):
    """The features of a node that a rule matches.

    Attributes:
        feature: Name of the feature, such as ``pci.device`` or ``kernel.version``.
        match_expressions: Expressions by name of the element or attribute, such as ``vendor``. Each must match. A list
            of values means the operator ``In``.
        match_name: Expression on the names of the elements. None: no such expression.

    Raises:
        GpuConstructsError: Node Feature Discovery does not discover the feature.
    """

    _CHECKS: ClassVar[fields.Checks] = {"feature": _feature}

    feature: str
    match_expressions: Mapping[str, FeatureExpression | Sequence[str]] = field(default_factory=dict)
    match_name: FeatureExpression | None = None

    def to_manifest(self) -> dict[str, Any]:
        """Return the features as they appear in a manifest."""
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
    """A rule of a ``NodeFeatureRule``: what a node gets if its features match.

    A node matches if all items of ``match_features`` match, and all items of at least one list in ``match_any``. A rule
    without these two options matches every node. A value ``@<domain>.<feature>.<element>`` stands for the value of that
    feature.

    Attributes:
        name: Name of the rule.
        labels: Labels of the node. A key without a domain gets the domain ``feature.node.kubernetes.io``.
        labels_template: Template of labels, a line ``key=value`` each, in the template language of Go.
        vars: Variables that later rules can match as ``rule.matched``.
        vars_template: Template of variables, a line ``key=value`` each, in the template language of Go.
        annotations: Annotations of the node, at most 1024 bytes each.
        extended_resources: Extended resources of the node, each with its amount as a whole number.
        taints: Taints of the node. They need ``NfdMaster(enable_taints=True)``.
        match_features: Features that must all match.
        match_any: Lists of features. The features of at least one list must match.

    Raises:
        GpuConstructsError: The rule has no effect, or Node Feature Discovery would ignore a part of it.
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
        """Return the rule as it appears in a manifest."""
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
