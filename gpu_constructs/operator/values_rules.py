"""Rules against Helm values of the GPU Operator that contradict each other, the platform or the operator's code.

At least one release of the chart accepts such values without an error. values_rules.yaml contains the rules that need
no Python code, with their sources.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, get_args

from gpu_constructs.catalog.platforms import NO_VOLUME_MOUNTS, DeviceListStrategy, Platform
from gpu_constructs.catalog.versions import GPU_OPERATOR, GpuOperatorRelease
from gpu_constructs.errors import GpuConstructsError, did_you_mean, then
from gpu_constructs.kube import fields, plain_data, tables
from gpu_constructs.migration.chart_values import coalesced
from gpu_constructs.operator.values import NFD

Row = Mapping[str, Any]

_STRATEGY = "DEVICE_LIST_STRATEGY"
_FLAG = fields.regex(r"--?device-list-strategy[= ]+[\"']?([^\s\"']*)")
_ENV, _ARGS, _CONFIG = "devicePlugin.env", "devicePlugin.args", "devicePlugin.config"
_DIRECTORY, _RUNTIME = "hostPaths.driverInstallDir", "operator.runtimeClass"
_WORKER = f"{NFD}.worker.tolerations"
_OPERANDS = "daemonsets.tolerations"
_CONTROL_PLANE = {"key": "node-role.kubernetes.io/control-plane", "operator": "Equal", "effect": "NoSchedule"}
# cmd/nvidia-validator/driver.go and manifests/state-dra-driver/0500_daemonset.yaml@v26.7.0. Talos has a link
# /usr/bin/nvidia-smi, so the validator writes / as the driver root to driver-ready.
_GPU_CLUSTER_FINDS_NO_DRIVER = (
    "the validator of the GPU Operator passes '/' to the DRA driver as the folder of the NVIDIA driver, but on Talos "
    "this folder is /usr/local. Install the DRA driver with its own Helm chart"
)
_REFUSAL = "{{name}} must be {must}, got {{got!r}}: {why}. Remove {{name}}"


def _table() -> Any:
    return tables.table(__package__, "values_rules.yaml")


_STATES: Mapping[str, Callable[[Any], bool]] = {
    "false": partial(operator.is_, False),
    "not-false": partial(operator.is_not, False),
    "given": bool,
    "empty": operator.not_,
}


class _Seen:
    """The Helm values that the rules check: those that the chart gets, merged over the defaults of the chart.

    Args:
        values: Helm values that the chart gets: those of the platform, of keywords and of the user.
        keywords: Keyword of ``GpuOperator`` that set each Helm key, by dotted key.
        facts: Properties of the platform and the app that the conditions of the rules test, by name. For example,
            ``talos`` is True if the nodes run Talos.
        release: Release of the operator.
    """

    def __init__(
        self,
        values: Mapping[str, Any],
        keywords: Mapping[str, str],
        facts: Mapping[str, object],
        release: GpuOperatorRelease,
    ) -> None:
        self.stated = values
        by_release = {"cdi": {"enabled": release.uses_cdi_by_default}}
        self._values = coalesced(coalesced(_table()["defaults"], by_release), values)
        self._keywords = keywords
        self._facts = facts

    def get(self, path: str) -> Any:
        """Return the value of a dotted Helm key, such as ``driver.enabled``. Return None if there is no value."""
        return plain_data.at(self._values, path)

    def keyword(self, path: str) -> str:
        """Return the keyword of ``GpuOperator`` that set a Helm key or a section that contains the key.

        Return an empty text if no keyword set it.
        """
        return next((name for known, name in self._keywords.items() if f"{path}.".startswith(f"{known}.")), "")

    def off(self, path: str) -> str:
        """Return the text with which a message shows that a Helm key must be false.

        The text is ``False``, as in Python, if a keyword of ``GpuOperator`` set the key. Otherwise, it is ``false``, as
        in YAML.
        """
        return "False" if self.keyword(path) else "false"

    def said(self, row: Row) -> str | None:
        """Return the message of a rule if its conditions are true for the Helm values. Otherwise, return None.

        ``row`` is the rule in ``values_rules.yaml``.
        """
        paths = list(row["when"])
        if not all(self._facts[fact] for fact in row.get("facts", ())):
            return None
        if not all(_STATES[state](self.get(path)) for path, state in row["when"].items()):
            return None
        first, other = paths[0], paths[-1]
        template: str = row["says"] if "says" in row else _REFUSAL.format_map(row)
        return template.format(
            **self._facts,
            name=self.keyword(first) or f"values.{first}",
            got=self.get(first),
            off=self.off(first),
            other=self.keyword(other) or other,
            other_off=self.off(other),
        )


def check_rules(
    values: Mapping[str, Any],
    release: GpuOperatorRelease,
    platform: Platform,
    *,
    driver_install_dir: str | None = None,
    has_bridge: bool = False,
    keywords: Mapping[str, str] = MappingProxyType({}),
) -> list[str]:
    """Raise an error if Helm values contradict each other, the platform or the code of the GPU Operator.

    Args:
        values: Helm values that passed ``check_keys``.
        release: Release of the operator.
        platform: Platform of the cluster.
        driver_install_dir: Required value of ``hostPaths.driverInstallDir``, if a ``ValidationBridge`` copies the
            driver files. None: the value of the platform.
        has_bridge: Whether the app has a ``ValidationBridge``.
        keywords: Keyword of ``GpuOperator`` that set each Helm key, by dotted key, for messages.

    Returns:
        Warnings about values that are probably a mistake.

    Raises:
        GpuConstructsError: The first contradiction.
    """
    seen = _seen(values, release, platform, has_bridge=has_bridge, keywords=keywords)
    for _, problem in _contradictions(seen, platform, driver_install_dir):
        raise GpuConstructsError(problem)
    warnings = [message for message in map(seen.said, _table()["warnings"]) if message]
    return [*warnings, *_of_the_validator(seen, release), *_of_tolerations(seen)]


def contradictions(
    values: Mapping[str, Any], release: GpuOperatorRelease, platform: Platform
) -> Iterator[tuple[str, str]]:
    """Yield (Helm key, error message) for each contradiction. ``check_rules`` raises an error for the first one."""
    yield from _contradictions(_seen(values, release, platform), platform, None)


def _seen(
    values: Mapping[str, Any],
    release: GpuOperatorRelease,
    platform: Platform,
    *,
    has_bridge: bool = False,
    keywords: Mapping[str, str] = MappingProxyType({}),
) -> _Seen:
    facts = {
        "platform": platform,
        "talos": platform.brings_driver,
        "bridge": has_bridge,
        "no_cdi": not platform.supports_cdi,
        "no_gdrdrv": not platform.has_gdrdrv,
        "no_dra": platform.refusal_of("dra") or (_GPU_CLUSTER_FINDS_NO_DRIVER if platform.brings_driver else None),
    }
    return _Seen(values, keywords, facts, release)


def _contradictions(seen: _Seen, platform: Platform, staged: str | None) -> Iterator[tuple[str, str]]:
    for row in _table()["refusals"]:
        problem = seen.said(row)
        if problem:
            stated = [path for path in row["when"] if plain_data.at(seen.stated, path) is not None]
            yield next(iter(stated or row["when"])), problem
    strategies = {
        f"{_ENV}[{index}]": variable.get("value") or ""
        for index, variable in enumerate(seen.get(_ENV) or ())
        if variable.get("name") == _STRATEGY
    }
    checks: list[tuple[str, Callable[[], None]]] = [
        *(
            (path, partial(_check_strategy, seen, platform, seen.keyword(_ENV) or f"values.{path}.value", strategy))
            for path, strategy in strategies.items()
        ),
        (_ARGS, partial(_check_arguments, seen, platform)),
        (_DIRECTORY, partial(_check_directory, seen, platform, staged)),
        (_RUNTIME, partial(_check_runtime, seen, platform)),
        (f"{_CONFIG}.default", partial(_check_default_config, seen)),
        (_OPERANDS, partial(_check_labelling_worker, seen)),
    ]
    for path, check in checks:
        try:
            check()
        except GpuConstructsError as error:
            yield path, error.problem


def _check_strategy(seen: _Seen, platform: Platform, name: str, given: str) -> None:
    """Raise an error if the user's device list strategy does not work with the platform or with ``cdi.enabled``.

    The strategy of the user overrides the strategy that the operator sets.

    Args:
        seen: Helm values.
        platform: Platform of the cluster.
        name: Keyword or Helm key with which the user sets the strategy, for messages.
        given: Value of ``DEVICE_LIST_STRATEGY``: names of strategies, separated by commas.

    Source: NVIDIA/gpu-operator:controllers/object_controls.go, TransformDevicePlugin.
    """
    allowed = get_args(DeviceListStrategy)
    words, is_on = given.split(","), seen.get("cdi.enabled") is not False
    fields.refuse_first(
        [
            *(
                (
                    word not in allowed,
                    f"{name} must be one or more of {', '.join(allowed)}, joined by commas without spaces, got "
                    f"{given!r}{did_you_mean(word, allowed)}. Remove it to use the default of the operator",
                )
                for word in words
            ),
            (
                "volume-mounts" in words and not platform.accepts_volume_mounts,
                f"{name} must not contain 'volume-mounts' on {platform}, got {given!r}; "
                f"{NO_VOLUME_MOUNTS}. Use 'envvar'",
            ),
        ]
    )
    has_cdi = any(word.startswith("cdi-") for word in words)
    is_typed, cdi = name == seen.keyword(_ENV), seen.keyword("cdi.enabled")
    if has_cdi and not is_on:
        off = "CDI is off" if is_typed else "cdi.enabled is false"
        way_out = f"Remove {name}{', or cdi=False' if cdi else ''}"
        raise GpuConstructsError(f"{name} must be 'envvar' or 'volume-mounts' while {off}, got {given!r}. {way_out}")
    if not has_cdi and is_on:
        on, off = "cdi.enabled is true", "set cdi.enabled to false"
        if is_typed or cdi:
            on, off = "CDI is on", "pass cdi=False"
        raise GpuConstructsError(
            f"{name} must be a strategy that starts with 'cdi-' while {on} (the default), got {given!r}{then(off)}, or "
            f"remove {name}. Later releases of the GPU Operator reject this strategy"
        )


def _check_arguments(seen: _Seen, platform: Platform) -> None:
    """Raise an error unless the Helm value ``devicePlugin.args`` of the user works on the platform.

    These arguments replace the script that the operator runs with ``/bin/sh -c`` in the container of the device plugin
    (NVIDIA/gpu-operator:assets/state-device-plugin).
    """
    arguments = [str(one) for one in seen.get(_ARGS) or ()]
    if arguments and arguments[0].startswith("-"):
        raise GpuConstructsError(
            f"values.{_ARGS} must start with a shell command, got {arguments[0]!r}: the GPU Operator runs the "
            f"arguments with '/bin/sh -c' instead of its own script. Set flags as variables in values.{_ENV}, such as "
            f"{_STRATEGY}"
        )
    for given in _FLAG.findall(" ".join(arguments)):
        _check_strategy(seen, platform, f"--device-list-strategy in values.{_ARGS}", given)


def _check_directory(seen: _Seen, platform: Platform, staged: str | None) -> None:
    """Raise an error if the operator's validator would look for the driver files in a wrong folder.

    Args:
        seen: Helm values.
        platform: Platform of the cluster.
        staged: Folder to which a bridge copies the driver files; None if there is no such bridge.
    """
    expected = staged or platform.driver_install_dir
    if expected and (seen.get(_DIRECTORY) or "").rstrip("/") != expected:
        where = "the bridge" if staged else platform
        raise GpuConstructsError(
            f"values.{_DIRECTORY} must be {expected!r}, the folder of the driver files of {where}, got "
            f"{seen.get(_DIRECTORY)!r}. Remove values.{_DIRECTORY}"
        )


def _check_runtime(seen: _Seen, platform: Platform) -> None:
    """Raise an error unless containerd on the platform has a handler with the name of the operator's RuntimeClass.

    The operator uses this name for the handler too. Source: controllers/object_controls.go getRuntimeClassName.
    """
    if platform.brings_driver and seen.get(_RUNTIME) not in (None, "", platform.runtime_class):
        raise GpuConstructsError(
            f"values.{_RUNTIME} must be {platform.runtime_class!r} on {platform}, because containerd has no other "
            f"handler for GPUs there, got {seen.get(_RUNTIME)!r}. Remove values.{_RUNTIME}"
        )


def _check_default_config(seen: _Seen) -> None:
    """Raise an error if the default configuration of the device plugin is not among its configurations.

    In that case, config-manager would fail.
    """
    default, entries = seen.get(f"{_CONFIG}.default"), seen.get(f"{_CONFIG}.data") or {}
    if seen.get(f"{_CONFIG}.create") and default not in (None, "") and str(default) not in entries:
        raise GpuConstructsError(
            f"values.{_CONFIG}.default must be one of {', '.join(entries)}, got {default!r}"
            f"{did_you_mean(default, entries)}. Use one of them"
        )


def _check_labelling_worker(seen: _Seen) -> None:
    """Raise an error if the worker of Node Feature Discovery lacks a toleration that the user sets for the operands.

    The operands are the pods of the operator, with the tolerations in ``daemonsets.tolerations``. The operator runs
    them only on GPU nodes that the worker labels. The function ignores tolerations that operands have by default.

    Source: controllers/state_manager.go hasGPULabels.
    """
    missing = [one for one in _not_in(seen, _OPERANDS, _WORKER) if one not in _default_tolerations()]
    if missing:
        raise GpuConstructsError(
            f"values.{_WORKER} must contain all tolerations of {seen.keyword(_OPERANDS) or _OPERANDS}, got no "
            f"{missing[0]!r}. Add this toleration, or pass tolerations=[...], which sets both lists. Otherwise, a node "
            "with that taint silently gets no GPU label and no pod of the operator"
        )


def _default_tolerations() -> Sequence[Mapping[str, Any]]:
    """Return the default value of ``daemonsets.tolerations``, the tolerations of the pods that the operator creates."""
    tolerations: Sequence[Mapping[str, Any]] = _table()["defaults"]["daemonsets"]["tolerations"]
    return tolerations


def _not_in(seen: _Seen, path: str, other: str) -> list[Mapping[str, Any]]:
    if not seen.get("nfd.enabled") or seen.get(f"{NFD}.worker.enable") is False:
        return []
    return [one for one in seen.get(path) or () if not any(_covers(two, one) for two in seen.get(other) or ())]


def _covers(wide: Mapping[str, Any], narrow: Mapping[str, Any]) -> bool:
    """Check whether the toleration ``wide`` covers all taints that the toleration ``narrow`` covers."""
    if wide.get("effect") not in (None, "", narrow.get("effect")):
        return False
    if wide.get("operator") == "Exists":
        return not wide.get("key") or wide["key"] == narrow.get("key")
    first, second = ((one.get("key"), one.get("operator") or "Equal", one.get("value") or "") for one in (wide, narrow))
    return first == second


def _of_tolerations(seen: _Seen) -> Iterator[str]:
    for toleration in _not_in(seen, _OPERANDS, _WORKER):
        if toleration not in _default_tolerations():
            continue
        yield (
            f"values.{_WORKER} lacks {toleration!r}, which the operands have by default: a node with that taint gets "
            "no GPU label, and so no pod of the operator. Add the toleration if a node has this taint"
        )
    for toleration in _not_in(seen, _WORKER, _OPERANDS):
        if not _covers(_CONTROL_PLANE, toleration) and toleration.get("key") != "node-role.kubernetes.io/master":
            yield (
                f"values.{_OPERANDS} lacks {toleration!r}, which {_WORKER} has: a node with that taint "
                "gets a GPU label and no pod of the operator. Add it, or pass tolerations=[...]"
            )


def _of_the_validator(seen: _Seen, release: GpuOperatorRelease) -> Iterator[str]:
    read = list(_table()["validator_reads"])
    for first, names in _table()["validator_reads_since"].items():
        read += names if _behaves_since(first, release) else ()
    others: Sequence[str] = _table()["others_read"].split()
    validator = seen.get("validator") or {}
    sections = {"validator": validator, **{f"validator.{name}": below for name, below in validator.items()}}
    for path, section in sections.items():
        for variable in (section.get("env") or ()) if isinstance(section, Mapping) else ():
            name = variable.get("name") or ""
            if name not in read and not name.startswith(tuple(others)):
                yield (
                    f"values.{path}.env sets {name!r}, which the validator does not read"
                    f"{did_you_mean(name, read)}. Remove it unless another program in its containers reads it; the "
                    f"validator reads {', '.join(read)}"
                )


def _behaves_since(first: str, release: GpuOperatorRelease) -> bool:
    known = tuple(GPU_OPERATOR)
    return known.index(release.behaves_like) >= known.index(first)
