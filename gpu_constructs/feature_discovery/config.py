"""Checks of the configuration files of Node Feature Discovery (NFD), whose components silently ignore unknown keys."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from gpu_constructs.catalog.nfd_labels import NfdLabels, enabled_sources
from gpu_constructs.errors import GpuConstructsError, refuse_if
from gpu_constructs.feature_discovery.rule_options import check_operands
from gpu_constructs.kube import durations, fields, placement, tables

Config = Mapping[str, Any]

_GPU_RULE: Config = {
    "name": "nvidia gpu present",
    "labels": {placement.GPU_PRESENT: "true"},
    "matchFeatures": [
        {
            "feature": "pci.device",
            "matchExpressions": {
                "vendor": {"op": "In", "value": ["10de"]},
                "class": {"op": "In", "value": ["0300", "0302"]},
            },
        }
    ],
}
WORKER: Config = {
    "sources": {
        "pci": {"deviceClassWhitelist": ["02", "03"], "deviceLabelFields": ["vendor"]},
        "custom": [_GPU_RULE],
    }
}
"""Default configuration file of the worker.

With this file, the worker publishes the labels ``feature.node.kubernetes.io/pci-10de.present``, as with NVIDIA's Helm
chart, and ``nvidia.com/gpu.present``. The PCI class 0300 is a display controller, and 0302 is a 3D controller.
"""

MASTER: Config = {"extraLabelNs": ["nvidia.com"]}
"""Default configuration file of the NFD master. It allows node labels in the domain ``nvidia.com``."""

_GPU_DOMAIN, _, _GPU_NAME = placement.GPU_PRESENT.partition("/")
_NAMESPACE_NAME = "kubernetes.io/metadata.name"
_ELECTION = {"leaseDuration": "15s", "renewDeadline": "10s", "retryPeriod": "2s"}
_WHY = "otherwise no node gets nvidia.com/gpu.present"
_OUTPUTS = ("labels", "labelsTemplate", "vars", "varsTemplate")


def facts_of_files() -> Any:
    """Return the table ``config.yaml``: the keys, operators and features that NFD configuration files can contain."""
    return tables.table(__package__, "config.yaml")


class Skipped(GpuConstructsError):
    """The error for a key or a rule that an NFD component ignores in its configuration file.

    Attributes:
        place: Dotted path of the key or rule, such as ``worker.config.core.noPublish``.
    """

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(problem)
        self.place = place


# --- one value ------------------------------------------------------------------------------------------------


_TYPES: Mapping[str, tuple[Any, str]] = {
    "text": (str, "text, got {value!r} ({type}). In YAML, quote it: 0300 without quotes is a number"),
    "bool": (bool, "true or false, got {value!r}"),
    "number of class": (
        str,
        "text like '03', got {value!r} ({type}). In YAML, quote it: 02 without quotes is the number 2, which matches "
        "no device",
    ),
    "span": (str, "text with a unit, like '60s', got {value!r}, which the program reads as nanoseconds"),
    "text or number": (str | int, "text or a number, got {value!r}"),
    "list": (list | tuple, "a list, got {value!r}"),
    "any": (object, ""),
}


def _type(field: str, value: Any, kind: str) -> None:
    allowed, message = _TYPES[kind]
    if not isinstance(value, allowed):
        raise GpuConstructsError(f"{field} must be {message.format(value=value, type=type(value).__name__)}")


def _span(field: str, value: Any) -> None:
    _type(field, value, "span")
    durations.from_go_duration(field, value)


def _logging(field: str, value: Any) -> None:
    flags = tables.table(__package__, "programs.yaml")["logging"]
    keys = [re.sub("_(.)", lambda letter: letter[1].upper(), flag) for flag in flags]
    _section(field, value, dict.fromkeys(keys, "text or number"))


def _list(field: str, value: Any, node: Any) -> None:
    _type(field, value, "list")
    fields.each(partial(_check, node=node), field, value)


def _some(field: str, value: Any, node: Any) -> None:
    _list(field, value, node["of"])
    if not value:
        raise GpuConstructsError(f"{field} must not be empty: {node['why']}. Remove it to use the default")


def _map(field: str, value: Any, node: Any) -> None:
    refuse_if(not isinstance(value, Mapping), field, "be a mapping", value)
    for key, member in value.items():
        _type(f"{field} key", key, "text")
        _check(f"{field}[{key!r}]", member, node)


def _source(field: str, value: Any, known: Sequence[str]) -> None:
    _type(field, value, "text")
    fields.one_of(field, value.removeprefix("-"), ("all", *known))


def _class(field: str, value: Any, digits: int) -> None:
    _type(field, value, "number of class")
    if not re.fullmatch(rf"[0-9a-fA-F]{{1,{digits}}}", value):
        raise GpuConstructsError(
            f"{field} must be the first 1 to {digits} hexadecimal digits of a device class, got {value!r}"
        )


def _gone(field: str, _: Any, why: str) -> None:
    raise Skipped(field, f"{field} must be absent{why}")


# --- rules ----------------------------------------------------------------------------------------------------


def _rule(field: str, value: Any) -> None:
    _section(field, value, facts_of_files()["rule"])
    if not any(value.get(output) for output in _OUTPUTS):
        raise Skipped(field, f"{field} must have one of {', '.join(_OUTPUTS)}, otherwise it has no effect")


def _rule_labels(field: str, value: Any) -> None:
    _map(field, value, "any")
    for key, member in value.items():
        is_computed = isinstance(member, bool) or str(member).startswith("@")
        if not is_computed:
            _type(f"{field}[{key!r}]", member, "text")
        fields.labels(field, {key: "" if is_computed else member})


def _term(field: str, value: Any) -> None:
    _section(field, value, facts_of_files()["term"])
    _required(field, value, "feature")


def _expressions(field: str, value: Any) -> None:
    """Raise if the match expressions of an NFD rule are invalid.

    Match expressions are a mapping from attribute names to expressions, or a list of attribute names. An expression
    that is None matches if the attribute exists.
    """
    if not isinstance(value, Mapping):
        _list(field, value, "text")
        return
    _map(field, {key: member for key, member in value.items() if member is not None}, "expression")


def _expression(field: str, value: Any) -> None:
    """Raise if a match expression of an NFD rule is invalid.

    A match expression is a mapping with an operator and values, or a list of values for the operator ``In``.
    """
    if not isinstance(value, Mapping):
        _operands(field, value, "In")
        return
    _section(field, value, facts_of_files()["expression"])
    operator, operands = _required(field, value, "op"), value.get("value")
    _operands(f"{field}.value", () if operands is None else operands, operator)


def _operands(field: str, value: Any, operator: str) -> None:
    if isinstance(value, bool):
        value = str(value).lower()
    if not isinstance(value, list | tuple):
        _type(field, value, "text")
        value = (value,)
    _list(field, value, "text")
    check_operands(field, value, operator)


def _required(field: str, value: Config, key: str) -> Any:
    if value.get(key) is None:
        raise GpuConstructsError(f"{field}.{key} is required")
    return value[key]


_PLAIN: Mapping[str, Callable[[str, Any], None]] = {
    "expression": _expression,
    "expressions": _expressions,
    "logging": _logging,
    "rule": _rule,
    "rule labels": _rule_labels,
    "span": _span,
    "term": _term,
}
_WITH: Mapping[str, Callable[[str, Any, Any], None]] = {
    "$class": _class,
    "$gone": _gone,
    "$key of": lambda field, value, words: fields.one_of(field, value, list(facts_of_files()[words])),
    "$list": _list,
    "$map": _map,
    "$number": lambda field, value, minimum: fields.whole_number(field, value, minimum=minimum),
    "$some": _some,
    "$source": _source,
    "$word": fields.one_of,
}
"""Checks with an argument, by the name of the check in ``config.yaml``. The checks in ``_PLAIN`` have no argument."""


def _check(field: str, value: Any, node: Any) -> None:
    if isinstance(node, str) and node in _PLAIN:
        _PLAIN[node](field, value)
    elif isinstance(node, str):
        _type(field, value, node)
    elif node and node.keys() <= _WITH.keys():
        for kind, argument in node.items():
            _WITH[kind](field, value, argument)
    else:
        _section(field, value, node)


def _section(field: str, value: Any, keys: Config) -> None:
    refuse_if(not isinstance(value, Mapping), field, "be a mapping", value)
    for key, member in value.items():
        if key not in keys:
            near = fields.did_you_mean(key, keys)
            hint = near or (f"; it has {', '.join(keys)}" if keys else "")
            problem = f"{field} has no key {key!r}, which the program would silently skip{hint}"
            raise GpuConstructsError(problem) if near else Skipped(f"{field}.{key}", problem)
        if member is not None:
            _check(f"{field}.{key}", member, keys[key])


# --- whole files ----------------------------------------------------------------------------------------------


def merged(default: Any, given: Any) -> Any:
    """Return ``given`` merged into ``default`` as in Helm.

    Lists and scalars in ``given`` replace those in ``default``. None in ``given`` removes a key.
    """
    if not isinstance(given, Mapping):
        return plain(given)
    below = default if isinstance(default, Mapping) else {}
    laid = {
        key: merged(below.get(key), given[key]) if key in given else plain(below[key]) for key in {**below, **given}
    }
    return {key: value for key, value in laid.items() if key not in given or given[key] is not None}


def plain(value: Any) -> Any:
    """Return a copy of a value in which all mappings are dicts and all sequences are lists."""
    if isinstance(value, Mapping):
        return {key: plain(member) for key, member in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    return value


def document(component: str, given: Config, default: Config) -> dict[str, Any]:
    """Return the configuration file of an NFD component as a dict: the values of the user merged into the default.

    Raises:
        GpuConstructsError: The component would ignore a key or value, or would not start with it.
    """
    if given:
        _section(f"{component}.config", given, facts_of_files()[component])
    laid: dict[str, Any] = merged(default, given)
    return laid


def worker_config(given: Config, *, marks_gpu_nodes: bool = True) -> dict[str, Any]:
    """Return the configuration file of the NFD worker as a dict: the values of the user merged into the default.

    Args:
        given: Values of the user for the configuration file.
        marks_gpu_nodes: Whether to add the default, which sets ``nvidia.com/gpu.present`` on GPU nodes.

    Raises:
        GpuConstructsError: The worker would ignore a key or a value, or would not start. Or no node would get
            ``nvidia.com/gpu.present`` although ``marks_gpu_nodes`` is True.
    """
    if not marks_gpu_nodes:
        return document("worker", given, {})
    config = document("worker", given, WORKER)
    rules = config.setdefault("sources", {}).setdefault("custom", [])
    if not any(placement.GPU_PRESENT in (rule.get("labels") or {}) for rule in rules):
        rules.insert(0, plain(_GPU_RULE))
    core = config.get("core", {})
    labeling = "sources" if "sources" in core else "labelSources"
    fields.refuse_first(
        [
            *_hides_the_mark("worker.config.core", core),
            *(
                (
                    key in core and source not in enabled_sources(core[key]),
                    f"worker.config.core.{key} must keep the source {source!r}, {_WHY}, got {core.get(key)!r}",
                )
                for key, source in (
                    ("featureSources", "pci"),
                    (labeling, "custom"),
                )
            ),
        ]
    )
    return config


def master_config(
    given: Config, *, deny: Sequence[str] | None = None, extra: Sequence[str] | None = None
) -> dict[str, Any]:
    """Return the configuration file of the NFD master as a dict: the values of the user merged into the default.

    Args:
        given: Values of the user for the configuration file.
        deny: Label domains that a command-line flag denies, in place of ``denyLabelNs`` in the configuration file.
        extra: Label domains that a command-line flag allows, in place of ``extraLabelNs`` in the configuration file.

    Raises:
        GpuConstructsError: The master would ignore a key or a value, would not start, or would reject the label
            ``nvidia.com/gpu.present``.
    """
    config = document("master", given, MASTER)
    denied = config.get("denyLabelNs", ()) if deny is None else deny
    allowed = config.get("extraLabelNs", ()) if extra is None else extra
    field = "master.config.denyLabelNs" if deny is None else "master.deny_label_ns"
    election = {**_ELECTION, **config.get("leaderElection", {})}
    lease, renew, retry = (durations.from_go_duration("", text) for text in election.values())
    fields.refuse_first(
        [
            *_hides_the_mark("master.config", config),
            (
                config.get("restrictions", {}).get("disableLabels"),
                f"master.config.restrictions.disableLabels must not be true, {_WHY}",
            ),
            *(
                (
                    _GPU_DOMAIN not in allowed and _denies_ours(domain),
                    f"{field} must not deny {_GPU_DOMAIN!r}, {_WHY}, got {domain!r}. Remove it, or also add "
                    f"{_GPU_DOMAIN!r} to the extra label domains",
                )
                for domain in denied
            ),
            (
                not lease > renew > 1.2 * retry > timedelta(0),
                "master.config.leaderElection must have leaseDuration above renewDeadline, and renewDeadline above 1.2 "
                "times retryPeriod. Otherwise, the master does not start, got "
                f"{', '.join(f'{key} {value}' for key, value in election.items())}",
            ),
        ]
    )
    return config


def _denies_ours(domain: str) -> bool:
    return domain == _GPU_DOMAIN or (domain.startswith("*") and _GPU_DOMAIN.endswith(domain.lstrip("*")))


def _hides_the_mark(field: str, config: Config) -> Iterator[fields.Conflict]:
    allowed = config.get("labelWhiteList", "")
    yield config.get("noPublish"), f"{field}.noPublish must not be true, {_WHY}"
    hides = not NfdLabels(patterns=[placement.GPU_PRESENT], allowed=[allowed]).publishes(placement.GPU_PRESENT)
    yield hides, f"{field}.labelWhiteList must match {_GPU_NAME!r}, {_WHY}, got {allowed!r}"


def check_namespace(master: Config, namespace: str) -> None:
    """Raise if the NFD master would ignore the namespace in which the workers create NodeFeature objects.

    Raises:
        GpuConstructsError: ``nodeFeatureNamespaceSelector`` in ``master`` lists namespaces, but not ``namespace``.
    """
    field = "master.config.restrictions.nodeFeatureNamespaceSelector"
    selector = (master.get("restrictions") or {}).get("nodeFeatureNamespaceSelector") or {}
    named = [[value] for key, value in selector.get("matchLabels", {}).items() if key == _NAMESPACE_NAME]
    named += [
        list(expression.get("values", ()))
        for expression in selector.get("matchExpressions", ())
        if expression.get("key") == _NAMESPACE_NAME and expression.get("operator") == "In"
    ]
    fields.refuse_first(
        (namespace not in names, f"{field} must select the namespace {namespace!r} of the workers, {_WHY}, got {names}")
        for names in named
    )
