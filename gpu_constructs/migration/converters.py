"""Functions that convert Helm values into values of keywords.

The tables of Helm keys contain the names of these functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, get_type_hints

from gpu_constructs.errors import GpuConstructsError, refuse_if
from gpu_constructs.kube import credentials, durations, fields, plain_data, pods
from gpu_constructs.kube.env import EnvValue
from gpu_constructs.kube.placement import Toleration
from gpu_constructs.kube.resources import Resources, container_resources
from gpu_constructs.kube.update_strategy import UpdateStrategy
from gpu_constructs.migration.chart_values import Values

Converter = Callable[[str, Any], Any]
"""A function that converts a Helm value into the value of a keyword.

Its arguments are the name of the keyword, for messages, and the Helm value.
"""


# --- values that stay unchanged ---------------------------------------------------------------------------------


def _texts(field: str, given: Mapping[Any, Any]) -> None:
    for pair in given.items():
        for text in pair:
            refuse_if(not isinstance(text, str), field, f"be text, got {text!r}. Quote it")


def _pod_option(field: str, given: Any) -> None:
    """Raise if a Helm value is not valid for the pod option ``field``, such as ``node_selector``."""
    if isinstance(given, Mapping) and field in ("node_selector", "pod_annotations", "pod_labels"):
        _texts(field, given)
    fields.of_type(field, given, get_type_hints(pods.ProgramOptions)[field])
    pods.Pods(options={field: given}, image="", resources={})


def _anything(field: str, given: object) -> None:
    pass


_CHECKS: Mapping[str, Callable[[str, Any], None]] = {
    "dns label": fields.dns_label,
    "dns subdomain": fields.dns_subdomain,
    "log format": partial(fields.one_of, allowed=("logfmt", "json")),
    "log level": partial(fields.one_of, allowed=("debug", "info", "warn", "error")),
    "pod option": _pod_option,
    "port": fields.port_number,
    "resources": _anything,  # Only for empty values. The function `resources` checks the others.
    "same": _anything,
    "texts": _texts,
}


# --- values that change -----------------------------------------------------------------------------------------


def _secret_names(field: str, secrets: Sequence[Any]) -> list[str]:
    for secret in secrets:
        if not isinstance(secret, Mapping) or set(secret) != {"name"} or not isinstance(secret["name"], str):
            raise GpuConstructsError(f"imagePullSecrets must list mappings like {{'name': 'registry'}}, got {secret!r}")
        fields.dns_subdomain("name", secret["name"])
    return [secret["name"] for secret in secrets]


def update_strategy(field: str, given: Mapping[str, Any]) -> UpdateStrategy | None:
    """Return the update strategy of a DaemonSet for a Helm value. Return None if the value is empty.

    For the strategy ``OnDelete``, the result does not contain ``maxUnavailable`` and ``maxSurge``, which Kubernetes
    ignores.
    """
    if not given:
        return None
    pods.keys_among(("type", "rollingUpdate"))("updateStrategy", given)
    numbers = given.get("rollingUpdate") or {}
    fields.of_type("updateStrategy.rollingUpdate", numbers, Mapping)
    pods.keys_among(("maxUnavailable", "maxSurge"))("updateStrategy.rollingUpdate", numbers)
    if given.get("type") == "OnDelete":
        return UpdateStrategy.on_delete()
    return UpdateStrategy(
        type=given.get("type") or "RollingUpdate",
        max_unavailable=numbers.get("maxUnavailable"),
        max_surge=numbers.get("maxSurge"),
    )


def _seconds(field: str, text: str) -> int:
    span = durations.from_go_duration(field, text)
    refuse_if(span % timedelta(seconds=1) or span < timedelta(0), field, "be whole seconds", text)
    return span // timedelta(seconds=1)


def words(field: str, text: str) -> list[str]:
    """Return the comma-separated words of a text, for example ``["a", "b"]`` for ``a, b``. ``field`` has no effect."""
    return [word.strip() for word in text.split(",") if word.strip()]


def checked(check: Callable[[str, Any], None]) -> Converter:
    """Return a converter that calls ``check`` with a Helm value and returns the value unchanged."""

    def convert(field: str, value: Any) -> Any:
        check(field, value)
        return value

    return convert


CONVERTERS: Mapping[str, Converter] = {
    **{name: checked(check) for name, check in _CHECKS.items()},
    "seconds": _seconds,
    "secret names": _secret_names,
    "update strategy": update_strategy,
    "words": words,
}


# --- lists, entry by entry --------------------------------------------------------------------------------------


def _members(what: str, names: Mapping[str, str], given: Any) -> dict[str, Any]:
    fields.of_type(what, given, Mapping[str, Any])
    pods.keys_among(tuple(names))(what, given)
    return {names[key]: value for key, value in given.items() if value is not None}


_TOLERATION = {
    "key": "key",
    "operator": "operator",
    "value": "value",
    "effect": "effect",
    "tolerationSeconds": "toleration_seconds",
}


def _toleration(given: Any) -> Toleration:
    members = _members("toleration", _TOLERATION, given)
    return Toleration(**{member: value for member, value in members.items() if value != ""})


def variable(given: Any) -> tuple[str, str | EnvValue]:
    """Return the name and the value of an environment variable in Helm values.

    Args:
        given: Item of a list such as ``env`` in the Helm values: a mapping with ``name``, and ``value`` or
            ``valueFrom``.
    """
    members = _members("variable", {"name": "name", "value": "value", "valueFrom": "value_from"}, given)
    name, value = members.get("name"), members.get("value", "")
    if not isinstance(name, str):
        raise GpuConstructsError(f"variable must have a name, got {dict(given)!r}")
    fields.environment_name("name", name)
    if "value_from" in members:
        fields.of_type(f"{name}.valueFrom", members["value_from"], Mapping[str, Any])
        return name, EnvValue(value_from=members["value_from"])
    refuse_if(not isinstance(value, str), name, f"be text, got {value!r}. Quote it")
    credentials.refuse_variable(name, name, value, "use valueFrom.secretKeyRef")
    return name, value


EACH: Mapping[str, Callable[[Any], Any]] = {"tolerations": _toleration, "variables": variable}


_RELABELING = {
    "action": "action",
    "sourceLabels": "source_labels",
    "separator": "separator",
    "regex": "regex",
    "modulus": "modulus",
    "targetLabel": "target_label",
    "replacement": "replacement",
}


def relabelings(make: Callable[..., Any]) -> Callable[[Any], Any]:
    """Return a function that converts a Prometheus relabeling step in Helm values into an instance of ``make``."""

    def convert(given: Any) -> Any:
        members = _members("relabeling", _RELABELING, given)
        # The Prometheus operator accepts an action in any case.
        if isinstance(members.get("action"), str):
            members["action"] = members["action"].lower()
        return make(**members)

    return convert


# --- amounts ----------------------------------------------------------------------------------------------------


def resources(read: Values, path: str, given: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the requests and limits of a container from Helm values, without invalid amounts.

    Return None if no amount is valid, or if a request is above its limit. The result also omits GPU resources
    (``nvidia.com/...``).

    Args:
        read: Helm values, to which the function reports problems.
        path: Dotted key of the resources in the Helm values.
        given: Value of this key.
    """
    kept: dict[str, dict[str, Any]] = {}
    for section, amounts in given.items():
        for name, amount in amounts.items() if isinstance(amounts, Mapping) else [(None, amounts)]:
            place = f"{path}.{section}" if name is None else plain_data.below(f"{path}.{section}", name)
            # Kubernetes reads the amounts 0.1 and "0.1" as the same.
            text = str(amount) if type(amount) is float else amount
            if str(name).startswith("nvidia.com/"):
                read.refuse(
                    place,
                    "takes GPUs from workloads, and this pod sees all GPUs through the container runtime anyway. "
                    "Remove this resource",
                    is_ignored=True,
                )
            elif read.accepts(place, partial(_amount, section, name, text)) and name is not None:
                kept.setdefault(section, {})[name] = text
    return kept if kept and read.accepts(path, partial(container_resources, kept, default={})) else None


def _amount(section: str, name: object, amount: object) -> None:
    one: Any = {section: amount if name is None else {name: amount}}
    fields.of_type("resources", one, Resources)
    container_resources(one, default={})
