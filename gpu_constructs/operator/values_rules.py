"""Rules on values of the GPU Operator's chart that contradict each other, the platform or the operator's code.

All that they refuse renders silently in at least one release. values_rules.yaml holds the rules that need no code, with
their sources.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, get_args

from gpu_constructs.catalog.platforms import NO_VOLUME_MOUNTS, DeviceListStrategy, Platform
from gpu_constructs.catalog.versions import GPU_OPERATOR, GpuOperatorRelease
from gpu_constructs.errors import GpuConstructsError, did_you_mean
from gpu_constructs.kube import fields, plain_data, tables
from gpu_constructs.migration.chart_values import coalesced
from gpu_constructs.operator.values import NFD

Row = Mapping[str, Any]

_STRATEGY = "DEVICE_LIST_STRATEGY"
_FLAG = re.compile(r"--?device-list-strategy[= ]+[\"']?([^\s\"']*)")
_ENV = "devicePlugin.env"
_WORKER = f"{NFD}.worker.tolerations"
_OPERANDS = "daemonsets.tolerations"
_CONTROL_PLANE = {"key": "node-role.kubernetes.io/control-plane", "operator": "Equal", "effect": "NoSchedule"}
# cmd/nvidia-validator/driver.go and manifests/state-dra-driver/0500_daemonset.yaml@v26.7.0. Talos links
# /usr/bin/nvidia-smi, so the validator takes / for the driver root and writes it to driver-ready.
_GPU_CLUSTER_FINDS_NO_DRIVER = (
    "its validator tells the DRA driver the root '/', and the driver lies in /usr/local; install the DRA driver by its "
    "own chart"
)
_REFUSAL = "{{name}} must be {must}; got {{got!r}}; {why}; leave {{name}} out"


def _table() -> Any:
    return tables.table(__package__, "values_rules.yaml")


_STATES: Mapping[str, Callable[[Any], bool]] = {
    "false": partial(operator.is_, False),
    "not-false": partial(operator.is_not, False),
    "given": bool,
    "empty": operator.not_,
}


class _Seen:
    """The values as the chart sees them, laid over its defaults."""

    def __init__(self, values: Mapping[str, Any], keywords: Mapping[str, str], facts: Mapping[str, object]) -> None:
        self.stated = values
        self._values = coalesced(_table()["defaults"], values)
        self._keywords = keywords
        self._facts = facts

    def get(self, path: str) -> Any:
        """Return the value of a dotted key, or None."""
        return plain_data.at(self._values, path)

    def keyword(self, path: str) -> str:
        """Return the keyword that stated a key, or what holds it; empty if none did."""
        return next((name for known, name in self._keywords.items() if f"{path}.".startswith(f"{known}.")), "")

    def off(self, path: str) -> str:
        """Return false as the user would write it."""
        return "False" if self.keyword(path) else "false"

    def said(self, row: Row) -> str | None:
        """Return the message of a row that holds."""
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
    """Raise for what contradicts itself, the platform or the operator.

    Args:
        values: Values for the chart, of keys and types that ``check_keys`` passed.
        release: Release of the operator.
        platform: Platform of the cluster.
        driver_install_dir: Value that ``hostPaths.driverInstallDir`` must have where something else stages the
            driver's files; None for the platform's.
        has_bridge: Whether a ``ValidationBridge`` answers for the nodes' own driver.
        keywords: Keyword that stated a key, for errors to name it.

    Returns:
        Warnings of what works, or may work, and is likely not what the user wants.

    Raises:
        GpuConstructsError: The first contradiction.
    """
    facts = {
        "platform": platform,
        "talos": platform.brings_driver,
        "bridge": has_bridge,
        "no_cdi": not platform.supports_cdi,
        "no_gdrdrv": not platform.has_gdrdrv,
        "no_dra": platform.refusal_of("dra") or (_GPU_CLUSTER_FINDS_NO_DRIVER if platform.brings_driver else None),
    }
    seen = _Seen(values, keywords, facts)
    for row in _table()["refusals"]:
        problem = seen.said(row)
        if problem:
            raise GpuConstructsError(problem)
    for index, variable in enumerate(seen.get(_ENV) or ()):
        if variable.get("name") == _STRATEGY:
            name = seen.keyword(_ENV) or f"values.{_ENV}[{index}].value"
            _check_strategy(seen, platform, name, variable.get("value") or "")
    _check_arguments(seen, platform)
    _check_fixed(seen, platform, driver_install_dir)
    _check_default_config(seen)
    _check_labelling_worker(seen)
    warnings = [message for message in map(seen.said, _table()["warnings"]) if message]
    return [*warnings, *_of_the_validator(seen, release), *_of_tolerations(seen)]


def _check_strategy(seen: _Seen, platform: Platform, name: str, given: str) -> None:
    """Check a strategy, which comes last and wins: controllers/object_controls.go TransformDevicePlugin."""
    allowed = get_args(DeviceListStrategy)
    words, is_on = given.split(","), seen.get("cdi.enabled") is not False
    fields.refuse_first(
        [
            *(
                (
                    word not in allowed,
                    f"{name} must be words of {', '.join(allowed)}, joined by commas alone; got {given!r}"
                    f"{did_you_mean(word, allowed)}; leave it out for what goes with CDI on or off",
                )
                for word in words
            ),
            (
                "volume-mounts" in words and not platform.accepts_volume_mounts,
                f"{name} must not hold 'volume-mounts' on {platform}; got {given!r}; {NO_VOLUME_MOUNTS}; use 'envvar'",
            ),
        ]
    )
    has_cdi = any(word.startswith("cdi-") for word in words)
    is_typed, cdi = name == seen.keyword(_ENV), seen.keyword("cdi.enabled")
    if has_cdi and not is_on:
        off = "CDI is off" if is_typed else "cdi.enabled is false"
        way_out = f"leave {name} out{', or take cdi=False back' if cdi else ''}"
        raise GpuConstructsError(f"{name} must be 'envvar' or 'volume-mounts' while {off}; got {given!r}; {way_out}")
    if not has_cdi and is_on:
        on, off = "cdi.enabled is true", "set cdi.enabled to false"
        if is_typed or cdi:
            on, off = "CDI is on", "pass cdi=False"
        raise GpuConstructsError(
            f"{name} must be a cdi- strategy while {on}, as it is by default; got {given!r}; {off}, which alone gives "
            f"'envvar', or leave {name} out; later operators refuse to reconcile this"
        )


def _check_arguments(seen: _Seen, platform: Platform) -> None:
    """Check the arguments that stand for the script of ``/bin/sh -c``: assets/state-device-plugin."""
    path = "devicePlugin.args"
    arguments = [str(one) for one in seen.get(path) or ()]
    if arguments and arguments[0].startswith("-"):
        raise GpuConstructsError(
            f"values.{path} must open with a command of a shell: the operator runs '/bin/sh -c' with it instead of its "
            f"own script; got {arguments[0]!r}; say flags as variables in values.{_ENV}, like {_STRATEGY}"
        )
    for given in _FLAG.findall(" ".join(arguments)):
        _check_strategy(seen, platform, f"--device-list-strategy in values.{path}", given)


def _check_fixed(seen: _Seen, platform: Platform, staged: str | None) -> None:
    """Check what the platform decides.

    cmd/nvidia-validator looks for the driver's libraries and nvidia-smi below one folder; one word names the
    RuntimeClass and its handler alike (controllers/object_controls.go getRuntimeClassName).
    """
    directory, runtime = "hostPaths.driverInstallDir", "operator.runtimeClass"
    expected = staged or platform.driver_install_dir
    if expected and (seen.get(directory) or "").rstrip("/") != expected:
        where = "there the driver's files are staged" if staged else f"{platform} has the driver's files there"
        raise GpuConstructsError(
            f"values.{directory} must be {expected!r}; got {seen.get(directory)!r}; {where}, and the operator's "
            f"validator looks there; leave values.{directory} out"
        )
    if platform.brings_driver and seen.get(runtime) not in (None, "", platform.runtime_class):
        raise GpuConstructsError(
            f"values.{runtime} must be {platform.runtime_class!r} on {platform}; got {seen.get(runtime)!r}; it names "
            f"the handler too, and containerd has no other for NVIDIA's runtime there; leave values.{runtime} out"
        )


def _check_default_config(seen: _Seen) -> None:
    """Check the name of the default, an error to config-manager if missing: NVIDIA/k8s-device-plugin."""
    config = "devicePlugin.config"
    default, entries = seen.get(f"{config}.default"), seen.get(f"{config}.data") or {}
    if seen.get(f"{config}.create") and default not in (None, "") and str(default) not in entries:
        raise GpuConstructsError(
            f"values.{config}.default must be one of {', '.join(entries)}; got {default!r}; config-manager fails"
            f"{did_you_mean(default, entries)}; name one of them"
        )


def _check_labelling_worker(seen: _Seen) -> None:
    """The operator labels only nodes that NFD's worker labelled (controllers/state_manager.go hasGPULabels)."""
    missing = _not_in(seen, _OPERANDS, _WORKER)
    if missing and plain_data.at(seen.stated, _OPERANDS) is not None:
        raise GpuConstructsError(
            f"values.{_WORKER} must hold what {seen.keyword(_OPERANDS) or _OPERANDS} holds; got no {missing[0]!r}; add "
            "it, or pass tolerations=[...], which writes both: a node with that taint would get no GPU label, and so "
            "no pod of the operator, without any event"
        )


def _not_in(seen: _Seen, path: str, other: str) -> list[Mapping[str, Any]]:
    if not seen.get("nfd.enabled") or seen.get(f"{NFD}.worker.enable") is False:
        return []
    return [one for one in seen.get(path) or () if not any(_covers(two, one) for two in seen.get(other) or ())]


def _covers(wide: Mapping[str, Any], narrow: Mapping[str, Any]) -> bool:
    """Check whether one toleration puts up with every taint that another puts up with."""
    if wide.get("effect") not in (None, "", narrow.get("effect")):
        return False
    if wide.get("operator") == "Exists":
        return not wide.get("key") or wide["key"] == narrow.get("key")
    first, second = ((one.get("key"), one.get("operator") or "Equal", one.get("value") or "") for one in (wide, narrow))
    return first == second


def _of_tolerations(seen: _Seen) -> Iterator[str]:
    for toleration in [] if plain_data.at(seen.stated, _OPERANDS) is not None else _not_in(seen, _OPERANDS, _WORKER):
        yield (
            f"values.{_WORKER} lacks {toleration!r}, which the operands have by default: a node with that taint "
            "gets no GPU label, and so no pod of the operator; add it, if a node has it"
        )
    for toleration in _not_in(seen, _WORKER, _OPERANDS):
        if not _covers(_CONTROL_PLANE, toleration) and toleration.get("key") != "node-role.kubernetes.io/master":
            yield (
                f"values.{_OPERANDS} lacks {toleration!r}, which {_WORKER} holds: a node with that taint is "
                "labelled for its GPU and gets no pod of the operator; add it, or pass tolerations=[...]"
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
                    f"values.{path}.env sets {name!r}, which the validator does not read by itself"
                    f"{did_you_mean(name, read)}; leave it out unless another program in its containers reads it; the "
                    f"validator reads {', '.join(read)}"
                )


def _behaves_since(first: str, release: GpuOperatorRelease) -> bool:
    known = tuple(GPU_OPERATOR)
    return known.index(release.behaves_like) >= known.index(first)
