"""Node labels that Node Feature Discovery (NFD) publishes, derived from its configuration files.

Source: kubernetes-sigs/node-feature-discovery@v0.16.0, @v0.17.3 and @v0.19.0: the folder ``source``, and the file
``pkg/nfd-worker/nfd-worker.go``.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

Config = Mapping[str, Any]

DOMAIN = "feature.node.kubernetes.io/"
"""Prefix of most node labels of Node Feature Discovery."""

_NAMES: Mapping[str, Sequence[str]] = {
    "cpu": (
        *("coprocessor.nx_gzip", "cpu_atom", "cpu_core", "cpuid.*", "cstate.*", "hardware_multithreading", "model.*"),
        *("power.sst_*", "pstate.*", "security.*"),
    ),
    "kernel": ("selinux.enabled", "version.*"),
    "memory": ("numa", "nv.dax", "nv.present", "swap"),
    "network": ("sriov.capable", "sriov.configured"),
    "storage": ("nonrotationaldisk",),
    "system": ("os_release.ID", "os_release.VERSION_ID", "os_release.VERSION_ID.major", "os_release.VERSION_ID.minor"),
}
"""Patterns of label names by feature source of Node Feature Discovery, such as ``cpu``.

The label in the cluster is ``feature.node.kubernetes.io/<source>-<name>``.
"""

_KERNEL_OPTIONS = ("NO_HZ", "NO_HZ_IDLE", "NO_HZ_FULL", "PREEMPT")
_WILDCARD = re.compile(r"[*?[]")
_CONTROL = re.compile(r"{{-?\s*(range|if|else|with|end|break|continue|/\*|\$\w+\s*:?=)[^}]*}}")
"""Pattern of the actions in a Go template that insert no text, such as ``{{ if … }}``."""

_VALUE = re.compile(r"{{[^}]*}}")
_STATIC_RULES = ("rdma.available", "rdma.capable")


class _Bus(NamedTuple):
    """The format of the node labels that Node Feature Discovery publishes for PCI or USB devices.

    A label contains the values of device fields and an ending. For example, ``pci-0302_10de.present`` contains the
    fields ``class`` (0302) and ``vendor`` (10de).

    Attributes:
        fields: Shell pattern for the value of each device field, such as ``????``, by name of the field. Labels contain
            the fields in the order of this mapping.
        endings: Endings of the labels, such as ``.present``. Each ending results in a separate label.
        classes: First digits of the device classes that have labels by default, such as ``03``.
        chosen: Names of the device fields that the label contains by default.
    """

    fields: Mapping[str, str]
    endings: Sequence[str]
    classes: Sequence[str]
    chosen: Sequence[str]


_BUSES: Mapping[str, _Bus] = {
    "pci": _Bus(
        fields=dict.fromkeys(("class", "vendor", "device", "subsystem_vendor", "subsystem_device"), "????"),
        endings=(".present", ".sriov.capable"),
        classes=("03", "0b40", "12"),
        chosen=("class", "vendor"),
    ),
    "usb": _Bus(
        fields={"class": "??", "vendor": "????", "device": "????", "serial": "*"},
        endings=(".present",),
        classes=("0e", "ef", "fe", "ff"),
        chosen=("class", "vendor", "device"),
    ),
}


class NfdLabels(NamedTuple):
    """The node labels that an installation of Node Feature Discovery can publish.

    Attributes:
        patterns: Shell patterns of the labels, such as ``feature.node.kubernetes.io/pci-03??_????.present``.
        allowed: Regular expressions of the option ``labelWhiteList``. The part of a label after the slash must match
            each expression.
    """

    patterns: Sequence[str]
    allowed: Sequence[str] = ()

    def publishes(self, label: str) -> bool:
        """Check whether this installation of Node Feature Discovery can publish a node label."""
        name = label.rpartition("/")[2]
        return any(_fits(label, pattern) for pattern in self.patterns) and all(
            _matches(expression, name) for expression in self.allowed
        )


def _fits(label: str, pattern: str) -> bool:
    # The comparison of the prefix is fast, and it excludes most patterns.
    return label.startswith(_WILDCARD.split(pattern, maxsplit=1)[0]) and fnmatchcase(label, pattern)


def is_of_a_source(label: str) -> bool:
    """Check whether a node label begins like labels from the feature sources of Node Feature Discovery.

    A feature source is a part of nfd-worker that detects one kind of feature. For example, all labels of the source
    ``cpu`` begin with ``feature.node.kubernetes.io/cpu-``.
    """
    return label.startswith(tuple(f"{DOMAIN}{source}-" for source in (*_NAMES, *_BUSES)))


def nfd_labels(worker: Config, master: Config) -> NfdLabels:
    """Return the node labels that nfd-worker and nfd-master of one installation can publish.

    The result does not include two groups of labels: labels that the feature source ``local`` reads from files on the
    node, and labels from NodeFeature and NodeFeatureRule objects.

    Args:
        worker: Content of the configuration file of nfd-worker, including the defaults of the library or Helm chart.
        master: Content of the configuration file of nfd-master, including the defaults of the library or Helm chart.
    """
    core, sources = _section(worker, "core"), _section(worker, "sources")
    # If the list has its old and its new name, the worker reads the old one.
    enabled = enabled_sources(core.get("sources", core.get("labelSources")))
    # A source sets no labels if the configuration disables its feature detection.
    enabled &= enabled_sources(core.get("featureSources")) | {"custom"}
    names = [f"{source}-{name}" for source in enabled for name in _names(source, _section(sources, source))]
    patterns = [DOMAIN + name for name in names]
    if "custom" in enabled:
        patterns += [DOMAIN + name for name in _STATIC_RULES]
        patterns += labels_of_rules(sources.get("custom") or ())
    allowed = (core.get("labelWhiteList"), master.get("labelWhiteList"))
    return NfdLabels(tuple(sorted(patterns)), tuple(str(one) for one in allowed if one))


def labels_of_rules(rules: Iterable[Config]) -> Iterator[str]:
    """Yield patterns of the node labels that rules of Node Feature Discovery create.

    For a label from a Go template, the pattern contains the text before the first inserted value, and ``*`` for the
    rest. For example, ``vendor-{{.name}}-x`` becomes ``feature.node.kubernetes.io/vendor-*``. The pattern ``*`` means
    that every label is possible.

    Args:
        rules: Rules of an nfd-worker configuration file or of a NodeFeatureRule, as in a manifest.
    """
    for rule in rules:
        for key in (*(rule.get("labels") or ()), *_templated(rule.get("labelsTemplate"))):
            yield key if "/" in key or key == "*" else DOMAIN + key


def _templated(template: object) -> Iterator[str]:
    text = _VALUE.sub("*", _CONTROL.sub("", template)) if isinstance(template, str) else ""
    for line in text.splitlines():
        start, star, _ = line.strip().partition("=")[0].partition("*")
        if start or star:
            yield start + star


def _names(source: str, config: Config) -> Iterator[str]:
    yield from _NAMES.get(source, ())
    if source == "kernel":
        yield from (f"config.{option}" for option in _list(config, "configOpts", _KERNEL_OPTIONS))
    if source == "fake":
        yield from config.get("labels") or ("fakefeature?",)
    if source in _BUSES:
        yield from _names_of_bus(_BUSES[source], config)


def _names_of_bus(bus: _Bus, config: Config) -> Iterator[str]:
    chosen = [field for field in bus.fields if field in _list(config, "deviceLabelFields", bus.chosen)]
    for prefix in _list(config, "deviceClassWhitelist", bus.classes):
        # If the label does not contain the class, all classes have the same label.
        patterns = {**bus.fields, "class": f"{str(prefix).lower()}{bus.fields['class'][len(str(prefix)) :]}"}
        name = "_".join(patterns[field] for field in chosen or bus.chosen)
        yield from (f"{name}{ending}" for ending in bus.endings)


def enabled_sources(given: object) -> set[str]:
    """Return the feature sources that a list in the configuration file of nfd-worker enables, such as ``pci``.

    Args:
        given: Value of a key such as ``core.labelSources``. In this list, ``all`` enables the default feature sources,
            and a name with a leading dash disables a source. If ``given`` is not a list, the default sources apply.
    """
    enabled: set[str] = set()
    for source in given if isinstance(given, Sequence) and not isinstance(given, str) else ("all",):
        if source == "all":
            # The source "fake" is not a default source.
            enabled |= {*_NAMES, *_BUSES, "custom"}
        elif str(source).startswith("-"):
            enabled.discard(str(source)[1:])
        else:
            enabled.add(str(source))
    return enabled


def _section(config: Config, key: str) -> Config:
    section = config.get(key)
    return section if isinstance(section, Mapping) else {}


def _list(config: Config, key: str, default: Sequence[str]) -> Sequence[str]:
    given = config.get(key)
    return given if isinstance(given, Sequence) and not isinstance(given, str) else default


def _matches(expression: str, name: str) -> bool:
    try:
        with warnings.catch_warnings(action="ignore"):
            return re.search(expression, name) is not None
    except re.error:
        return True  # Python cannot parse the expression, which is for Go. So assume that it may match.
