"""The configuration files of NFD's programs, checked more strictly than by them: they skip what they do not know.

Source: kubernetes-sigs/node-feature-discovery@v0.17.3 and @v0.19.0, pkg/nfd-worker, pkg/nfd-master,
pkg/nfd-topology-updater and source; the values of NVIDIA/k8s-device-plugin@v0.18.2 and @v0.20.0.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Union

from gpu_constructs import _fields
from gpu_constructs._durations import from_go_duration
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.feature_discovery.nfd_flags import LOGGING
from gpu_constructs.feature_discovery.nfd_labels import enabled_sources
from gpu_constructs.platforms import GPU_PRESENT
from gpu_constructs.versions import NodeFeatureDiscoveryRelease

Config = Mapping[str, Any]
_Check = Callable[[str, Any], None]
_Schema = Mapping[str, Union[_Check, "_Schema"]]

_GPU_RULE: Config = {
    "name": "nvidia gpu present",
    "labels": {GPU_PRESENT: "true"},
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
"""Labels ``pci-10de.present`` as NVIDIA's chart does, and besides publishes ``nvidia.com/gpu.present``, which
in a standalone installation nothing else does. A rule in the worker's own file needs no custom resource, so one
``kubectl apply`` is enough. Classes: 0300 display controller, 0302 3D controller."""

MASTER: Config = {"extraLabelNs": ["nvidia.com"]}
"""Allows labels outside NFD's own domain."""

_GPU_DOMAIN, _, _GPU_NAME = GPU_PRESENT.partition("/")
_LOGGING_KEYS = [re.sub("_(.)", lambda letter: letter[1].upper(), flag) for flag in LOGGING]
_NAMESPACE_NAME = "kubernetes.io/metadata.name"
_WHY = "else no node would get nvidia.com/gpu.present and no GPU pod a node"


# --- one value ------------------------------------------------------------------------------------------------


def _text(field: str, value: Any) -> None:
    if not isinstance(value, str):
        raise GpuConstructsError(
            f"{field} must be text; got {value!r} ({type(value).__name__}); in YAML, quote it: 0300 without quotes is "
            "a number"
        )


def _bool(field: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise GpuConstructsError(f"{field} must be true or false; got {value!r}")


def _number(field: str, value: Any, *, minimum: int) -> None:
    _fields.whole_number(field, value, minimum=minimum)


def _span(field: str, value: Any) -> None:
    if not isinstance(value, str):
        raise GpuConstructsError(
            f"{field} must be text with a unit, like '60s'; got {value!r}, which the program takes for nanoseconds"
        )
    from_go_duration(field, value)


def _list(field: str, value: Any) -> Sequence[Any]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise GpuConstructsError(f"{field} must be a list; got {value!r}")
    return value


def _texts(field: str, value: Any) -> None:
    for index, item in enumerate(_list(field, value)):
        _text(f"{field}[{index}]", item)


def _map(field: str, value: Any, *, check: _Check = _text) -> None:
    if not isinstance(value, Mapping):
        raise GpuConstructsError(f"{field} must hold keys and values; got {value!r}")
    for key, member in value.items():
        _text(f"{field} key", key)
        check(f"{field}[{key!r}]", member)


def _maps(field: str, value: Any) -> None:
    for index, item in enumerate(_list(field, value)):
        _map(f"{field}[{index}]", item)


def _logging(field: str, value: Any) -> None:
    _section(field, value, dict.fromkeys(_LOGGING_KEYS, _text_or_number))


def _text_or_number(field: str, value: Any) -> None:
    if not isinstance(value, str | int):
        raise GpuConstructsError(f"{field} must be text or a number; got {value!r}")


def _renamed(use: str) -> _Check:
    def refuse(field: str, value: Any) -> None:
        raise GpuConstructsError(f"{field} must be left out; {use}")

    return refuse


def _whitelist(field: str, value: Any, *, digits: int, may_be_empty: bool) -> None:
    items = _list(field, value)
    if not items and not may_be_empty:
        raise GpuConstructsError(f"{field} must not be empty: no PCI device would be labelled; leave it out for ours")
    for index, item in enumerate(items):
        where = f"{field}[{index}]"
        if not isinstance(item, str):
            raise GpuConstructsError(
                f"{where} must be text like '03'; got {item!r} ({type(item).__name__}); in YAML, quote it: 02 without "
                "quotes is the number 2, which matches no device"
            )
        if not re.fullmatch(rf"[0-9a-fA-F]{{1,{digits}}}", item):
            raise GpuConstructsError(f"{where} must be the 1 to {digits} first hex digits of a class; got {item!r}")


def _label_fields(field: str, value: Any, *, allowed: Sequence[str]) -> None:
    items = _list(field, value)
    if not items:
        raise GpuConstructsError(f"{field} must not be empty: that means class and vendor; leave it out for ours")
    for index, item in enumerate(items):
        _fields.one_of(f"{field}[{index}]", item, allowed)


def _sources(field: str, value: Any, *, known: Sequence[str]) -> None:
    for index, item in enumerate(_list(field, value)):
        _text(f"{field}[{index}]", item)
        _fields.one_of(f"{field}[{index}]", item.removeprefix("-"), ("all", *known))


def _selections(field: str, value: Any) -> None:
    for index, item in enumerate(_list(field, value)):
        _section(f"{field}[{index}]", item, {"key": _text, "operator": _text, "values": _texts})


def _selector(field: str, value: Any) -> None:
    _section(field, value, {"matchLabels": _map, "matchExpressions": _selections})


# --- rules ----------------------------------------------------------------------------------------------------

_ONLY_IN_OBJECTS = "only NodeFeatureRule objects have it"
_RULE_NOT_TAKEN = {
    "matchOn": "it was the old way to write a rule, which yields nothing now; write matchFeatures",
    "taints": _ONLY_IN_OBJECTS,
    "annotations": _ONLY_IN_OBJECTS,
    "extendedResources": _ONLY_IN_OBJECTS,
}
_OUTPUTS = ("labels", "labelsTemplate", "vars", "varsTemplate")

_FEATURES: Mapping[str, str] = {
    **dict.fromkeys(
        "cpu.coprocessor cpu.cpuid cpu.cstate cpu.model cpu.pstate cpu.rdt cpu.security cpu.sst cpu.topology "
        "fake.attribute fake.flag fake.instance kernel.config kernel.enabledmodule kernel.loadedmodule kernel.selinux "
        "kernel.version local.feature local.label memory.numa memory.nv memory.swap network.device network.virtual "
        "pci.device rule.matched storage.block system.dmiid system.name system.osrelease usb.device".split(),
        "0",
    ),
    "memory.hugepages": "0.18.0",
    "kernel.kvm": "0.19.0",
}
"""What rules can match, each with the first release that discovers it."""

_OPERANDS: Mapping[str, tuple[int, int | None]] = {
    "In": (1, None),
    "NotIn": (1, None),
    "InRegexp": (1, None),
    "Exists": (0, 0),
    "DoesNotExist": (0, 0),
    "Gt": (1, 1),
    "Lt": (1, 1),
    "GtLt": (2, 2),
    "IsTrue": (0, 0),
    "IsFalse": (0, 0),
}


def _required(field: str, value: Config, key: str) -> Any:
    if value.get(key) is None:
        raise GpuConstructsError(f"{field}.{key} is required")
    return value[key]


def _expression(field: str, value: Any) -> None:
    """Check one expression: an operator with values, or the short forms of ``In``."""
    if not isinstance(value, Mapping):
        _operands(field, value, "In")
        return
    _section(field, value, {"op": _text, "value": lambda *_: None})
    operator = _required(field, value, "op")
    if operator not in _OPERANDS:
        raise GpuConstructsError(
            f"{field}.op must be one of {', '.join(map(repr, _OPERANDS))}, else the worker does not start; got "
            f"{operator!r}{_fields.did_you_mean(operator, _OPERANDS)}"
        )
    operands = value.get("value")
    _operands(f"{field}.value", () if operands is None else operands, operator)


def _operands(field: str, value: Any, operator: str) -> None:
    if isinstance(value, bool):
        value = str(value).lower()
    if isinstance(value, str) or not isinstance(value, Sequence):
        _text(field, value)
        value = (value,)
    _texts(field, value)
    fewest, most = _OPERANDS[operator]
    if len(value) < fewest or (most is not None and len(value) > most):
        count = f"{fewest} or more" if most is None else f"exactly {most}" if most else "none"
        raise GpuConstructsError(f"{field} must hold {count} for {operator}; got {list(value)!r}")
    if operator in ("Gt", "Lt", "GtLt"):
        if not all(re.fullmatch(r"[-+]?[0-9]+", item) for item in value):
            raise GpuConstructsError(f"{field} must be whole numbers as text for {operator}; got {list(value)!r}")
        if operator == "GtLt" and int(value[0]) >= int(value[1]):
            raise GpuConstructsError(f"{field} must hold the smaller number first; got {list(value)!r}")


def _expressions(field: str, value: Any) -> None:
    if isinstance(value, Mapping):
        _map(field, value, check=lambda where, member: None if member is None else _expression(where, member))
    else:
        _texts(field, value)


def _terms(field: str, value: Any) -> None:
    for index, term in enumerate(_list(field, value)):
        where = f"{field}[{index}]"
        _section(where, term, {"feature": _text, "matchExpressions": _expressions, "matchName": _expression})
        feature = _required(where, term, "feature")
        if feature not in _FEATURES:
            near = _fields.did_you_mean(feature, _FEATURES) or f"; there are {', '.join(sorted(_FEATURES))}"
            raise GpuConstructsError(
                f"{where}.feature must be a feature that the worker discovers, else the rule matches nothing; got "
                f"{feature!r}{near}"
            )


def _alternatives(field: str, value: Any) -> None:
    for index, alternative in enumerate(_list(field, value)):
        _section(f"{field}[{index}]", alternative, {"matchFeatures": _terms})


def _rule_labels(field: str, value: Any) -> None:
    _map(field, value, check=lambda where, member: None if isinstance(member, bool) else _text(where, member))
    for key, member in value.items():
        dynamic = isinstance(member, bool) or member.startswith("@")
        _fields.labels(field, {key: "" if dynamic else member})


def _rules(field: str, value: Any) -> None:
    for index, rule in enumerate(_list(field, value)):
        where = f"{field}[{index}]"
        for key, why in _RULE_NOT_TAKEN.items():
            if isinstance(rule, Mapping) and key in rule:
                raise GpuConstructsError(f"{where}.{key} must be left out: {why}")
        _section(where, rule, _RULE)
        if not any(rule.get(output) for output in _OUTPUTS):
            raise GpuConstructsError(f"{where} must have one of {', '.join(_OUTPUTS)}, else it yields nothing")


_RULE: _Schema = {
    "name": _text,
    "labels": _rule_labels,
    "labelsTemplate": _text,
    "vars": _map,
    "varsTemplate": _text,
    "matchFeatures": _terms,
    "matchAny": _alternatives,
}

# --- whole files ----------------------------------------------------------------------------------------------

_FEATURE_SOURCES = "cpu fake kernel local memory network pci storage system usb".split()
_LABEL_SOURCES = [*_FEATURE_SOURCES, "custom"]

_WORKER: _Schema = {
    "core": {
        "klog": _logging,
        "labelWhiteList": _text,
        "noPublish": _bool,
        "noOwnerRefs": _bool,
        "ownerRefs": _renamed("set owner_refs, which would override it"),
        "featureSources": partial(_sources, known=_FEATURE_SOURCES),
        "labelSources": partial(_sources, known=_LABEL_SOURCES),
        "sources": _renamed("it is the old name of labelSources"),
        "noPublishFeatures": _texts,
        "sleepInterval": _span,
    },
    "sources": {
        "cpu": {"cpuid": {"attributeBlacklist": _texts, "attributeWhitelist": _texts}},
        "kernel": {"kconfigFile": _text, "configOpts": _texts},
        "pci": {
            "deviceClassWhitelist": partial(_whitelist, digits=4, may_be_empty=False),
            "deviceLabelFields": partial(
                _label_fields, allowed=("class", "vendor", "device", "subsystem_vendor", "subsystem_device")
            ),
        },
        "usb": {
            "deviceClassWhitelist": partial(_whitelist, digits=2, may_be_empty=True),
            "deviceLabelFields": partial(_label_fields, allowed=("class", "vendor", "device", "serial")),
        },
        "custom": _rules,
        "fake": {
            "labels": _map,
            "flagFeatures": _texts,
            "attributeFeatures": _map,
            "instanceFeatures": _maps,
        },
        "local": {},
    },
}

_MASTER: _Schema = {
    "autoDefaultNs": _bool,
    "denyLabelNs": _texts,
    "extraLabelNs": _texts,
    "labelWhiteList": _text,
    "noPublish": _bool,
    "enableTaints": _bool,
    "resyncPeriod": _span,
    "leaderElection": {"leaseDuration": _span, "renewDeadline": _span, "retryPeriod": _span},
    "nfdApiParallelism": partial(_number, minimum=1),
    "informerPageSize": partial(_number, minimum=0),
    "klog": _logging,
    "restrictions": {
        "nodeFeatureNamespaceSelector": _selector,
        "disableLabels": _bool,
        "disableExtendedResources": _bool,
        "disableAnnotations": _bool,
        "denyNodeFeatureLabels": _bool,
        "allowOverwrite": _bool,
    },
}

_TOPOLOGY_UPDATER: _Schema = {"excludeList": partial(_map, check=_texts)}


def _section(field: str, value: Any, schema: _Schema) -> None:
    if not isinstance(value, Mapping):
        raise GpuConstructsError(f"{field} must hold keys and values; got {value!r}")
    for key, member in value.items():
        if key not in schema:
            near = _fields.did_you_mean(key, schema) or (f"; it has {', '.join(schema)}" if schema else "")
            raise GpuConstructsError(f"{field} has no key {key!r}, which the program would skip without a word{near}")
        if member is None:
            continue
        check = schema[key]
        if isinstance(check, Mapping):
            _section(f"{field}.{key}", member, check)
        else:
            check(f"{field}.{key}", member)


def merged(default: Any, given: Any) -> Any:
    """Lay one document over another as Helm does: mappings key by key, the rest as a whole, None takes a key away."""
    if not isinstance(given, Mapping):
        return plain(given)
    below = default if isinstance(default, Mapping) else {}
    laid = {
        key: merged(below.get(key), given[key]) if key in given else plain(below[key]) for key in {**below, **given}
    }
    return {key: value for key, value in laid.items() if key not in given or given[key] is not None}


def plain(value: Any) -> Any:
    """Give a copy in mappings and lists that are Python's own."""
    if isinstance(value, Mapping):
        return {key: plain(member) for key, member in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    return value


def worker_config(given: Config) -> dict[str, Any]:
    """Give the worker's file: ours with the user's over it, and always the rule that marks GPU nodes.

    Raises:
        GpuConstructsError: A key or value that the worker would skip or not start with, or that would take
            the mark off GPU nodes.
    """
    _section("worker.config", given, _WORKER)
    config: dict[str, Any] = merged(WORKER, given)
    rules = config.setdefault("sources", {}).setdefault("custom", [])
    if not any(GPU_PRESENT in (rule.get("labels") or {}) for rule in rules):
        rules.insert(0, plain(_GPU_RULE))
    core = config.get("core", {})
    _keeps_publishing("worker.config.core", core)
    for key, source in (("featureSources", "pci"), ("labelSources", "custom")):
        if key in core and source not in enabled_sources(core[key]):
            raise GpuConstructsError(
                f"worker.config.core.{key} must keep the source {source!r}, {_WHY}; got {list(core[key])!r}"
            )
    return config


def master_config(
    given: Config, *, deny: Sequence[str] | None = None, extra: Sequence[str] | None = None
) -> dict[str, Any]:
    """Give the master's file: ours with the user's over it.

    Args:
        given: The user's file.
        deny: Label domains denied on the command line, instead of the file's.
        extra: Label domains allowed on the command line, instead of the file's.

    Raises:
        GpuConstructsError: A key or value that the master would skip or not start with, or that would keep
            the labels of GPU nodes from them.
    """
    _section("master.config", given, _MASTER)
    config: dict[str, Any] = merged(MASTER, given)
    _keeps_publishing("master.config", config)
    if config.get("restrictions", {}).get("disableLabels"):
        raise GpuConstructsError(f"master.config.restrictions.disableLabels must not be true, {_WHY}")
    denied = config.get("denyLabelNs", ()) if deny is None else deny
    allowed = config.get("extraLabelNs", ()) if extra is None else extra
    for domain in denied:
        wildcard = domain.startswith("*") and _GPU_DOMAIN.endswith(domain.lstrip("*"))
        if (domain == _GPU_DOMAIN or wildcard) and _GPU_DOMAIN not in allowed:
            field = "master.config.denyLabelNs" if deny is None else "master.deny_label_ns"
            raise GpuConstructsError(
                f"{field} must not deny {_GPU_DOMAIN!r}, {_WHY}; got {domain!r}; name {_GPU_DOMAIN!r} among the extra "
                "domains as well"
            )
    election = {"leaseDuration": "15s", "renewDeadline": "10s", "retryPeriod": "2s", **config.get("leaderElection", {})}
    lease, renew, retry = (from_go_duration("", text) for text in election.values())
    if not lease > renew > 1.2 * retry > timedelta(0):
        raise GpuConstructsError(
            "master.config.leaderElection must have leaseDuration above renewDeadline, and that above 1.2 times "
            f"retryPeriod, else the master does not start; got {', '.join(f'{k} {v}' for k, v in election.items())}"
        )
    return config


def topology_updater_config(given: Config) -> dict[str, Any]:
    """Give the topology updater's file.

    Raises:
        GpuConstructsError: A key or value that the topology updater would skip or not start with.
    """
    _section("topology_updater.config", given, _TOPOLOGY_UPDATER)
    config: dict[str, Any] = merged({}, given)
    return config


def _keeps_publishing(field: str, config: Config) -> None:
    if config.get("noPublish"):
        raise GpuConstructsError(f"{field}.noPublish must not be true, {_WHY}")
    allowed = config.get("labelWhiteList", "")
    try:
        with warnings.catch_warnings(action="ignore"):
            passes = re.search(allowed, _GPU_NAME)
    except re.error:
        return  # Go's syntax is not Python's; what Python cannot read is left to Go.
    if not passes:
        raise GpuConstructsError(f"{field}.labelWhiteList must match {_GPU_NAME!r}, {_WHY}; got {allowed!r}")


def check_namespace(master: Config, namespace: str) -> None:
    """Refuse a master that would not look at what the workers of its own namespace publish.

    Only names can be compared: what other labels the namespace has is not known here.

    Raises:
        GpuConstructsError: The file selects namespaces by name, and this one is not among them.
    """
    field = "master.config.restrictions.nodeFeatureNamespaceSelector"
    selector = (master.get("restrictions") or {}).get("nodeFeatureNamespaceSelector") or {}
    named = [[value] for key, value in selector.get("matchLabels", {}).items() if key == _NAMESPACE_NAME]
    for expression in selector.get("matchExpressions", ()):
        if expression.get("key") == _NAMESPACE_NAME and expression.get("operator") == "In":
            named.append(list(expression.get("values", ())))
    for names in named:
        if namespace not in names:
            raise GpuConstructsError(
                f"{field} must take the namespace {namespace!r} of the workers, {_WHY}; got {names}"
            )


def check_release(given: Mapping[str, Config], release: NodeFeatureDiscoveryRelease) -> None:
    """Refuse what only other releases know.

    Args:
        given: The user's files by component.
        release: The release that is to read them.

    Raises:
        GpuConstructsError: A key or feature that came later, or that is gone.
    """
    core = given.get("worker", {}).get("core") or {}
    master = given.get("master", {})
    if "noPublishFeatures" in core:
        release.require("worker.config.core.noPublishFeatures", "0.19.0")
    if "informerPageSize" in master:
        release.require("master.config.informerPageSize", "0.18.0")
    if "autoDefaultNs" in master and release.is_at_least("0.18.0"):
        raise GpuConstructsError(
            f"master.config.autoDefaultNs is not read any more by Node Feature Discovery {release.version}; set "
            "feature_gates={'DisableAutoPrefix': True}"
        )
    if "noOwnerRefs" in core and release.has_owner_refs:
        raise GpuConstructsError(
            f"worker.config.core.noOwnerRefs beats owner_refs in Node Feature Discovery {release.version}; set "
            "owner_refs=[] instead"
        )
    rules = (given.get("worker", {}).get("sources") or {}).get("custom") or ()
    for where, feature in _features("worker.config.sources.custom", rules):
        release.require(f"{where} {feature!r}", _FEATURES[feature])


def _features(field: str, rules: Sequence[Config]) -> Iterator[tuple[str, str]]:
    for index, rule in enumerate(rules):
        where = f"{field}[{index}]"
        terms = [(f"{where}.matchFeatures", rule.get("matchFeatures") or ())]
        for nth, alternative in enumerate(rule.get("matchAny") or ()):
            terms.append((f"{where}.matchAny[{nth}].matchFeatures", alternative.get("matchFeatures") or ()))
        for path, features in terms:
            yield from ((f"{path}[{nth}].feature", term["feature"]) for nth, term in enumerate(features))
