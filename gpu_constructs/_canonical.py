"""The form in which the API server stores objects: for any other, ``kubectl apply`` says ``configured`` each time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import ROUND_CEILING, Decimal
from typing import Any

from gpu_constructs import _kinds
from gpu_constructs.pod_specs import pod_specs

Object = dict[str, Any]

_QUANTITY = re.compile(r"(-?[0-9]+(?:\.[0-9]+)?)(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|)\Z")
_DECIMAL = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")

# Not pointers in Go, so the server leaves them out if they are false (kubernetes/api@v0.36.0:core/v1/types.go).
_FALSE_OF_POD = ("hostIPC", "hostNetwork", "hostPID")
_FALSE_OF_CONTAINER = ("stdin", "stdinOnce", "tty")
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_LIMIT_RANGE = ("default", "defaultRequest", "max", "maxLimitRequestRatio", "min")


def canonical_quantity(given: object) -> object:
    """Return an amount as the API server writes it: ``"1"`` for 1 and ``1000m``, ``"1Gi"`` for ``1024Mi``.

    Args:
        given: A number or a text. What is not an amount, or has an exponent, is returned as it is.

    Source:
        kubernetes/apimachinery@v0.36.0:pkg/api/resource/quantity.go, CanonicalizeBytes
    """
    read = _QUANTITY.match(str(given)) if isinstance(given, int | float | str) and not isinstance(given, bool) else None
    if read is None:
        return given
    number, unit = Decimal(read[1]), read[2]
    if unit in _BINARY[1:]:
        amount = number * 1024 ** _BINARY.index(unit)
        if abs(amount) >= 1024:
            return _shortest(int(amount.to_integral_value(ROUND_CEILING)), 1024, _BINARY)
    else:
        amount = number.scaleb(3 * (_DECIMAL.index(unit) - 3))
    return _shortest(int(amount.scaleb(9).to_integral_value(ROUND_CEILING)), 1000, _DECIMAL)


def _shortest(amount: int, step: int, units: tuple[str, ...]) -> str:
    if amount == 0:
        return "0"
    unit = 0
    while amount % step == 0 and unit < len(units) - 1:
        amount, unit = amount // step, unit + 1
    return f"{amount}{units[unit]}"


def make_canonical(manifest: Object) -> None:
    """Write an object of a built-in kind as the API server stores it, in place.

    Amounts become canonical text. Members that the server leaves out, since they are false or empty, go.
    """
    if _kinds.group_of(manifest["apiVersion"]) not in _kinds.BUILT_IN_GROUPS:
        return
    for pod_spec in pod_specs(manifest):
        _make_pod_canonical(pod_spec)
    kind, spec = manifest["kind"], manifest.get("spec")
    _write_amounts(_amounts(kind, spec if isinstance(spec, dict) else {}))
    if kind == "PriorityClass":
        _leave_out(manifest, ("globalDefault",))
    if kind == "Service" and isinstance(spec, dict):
        _leave_out(spec, ())


def _write_amounts(each: Iterator[Object]) -> None:
    for amounts in each:
        for name, amount in amounts.items():
            amounts[name] = canonical_quantity(amount)


def _amounts(kind: str, spec: Object) -> Iterator[Object]:
    """Return the amounts of an object outside pods."""
    claims = [{"spec": spec}] if kind == "PersistentVolumeClaim" else _objects(spec.get("volumeClaimTemplates"))
    for claim in claims:
        for claimed in _mappings(claim, ("spec",)):
            yield from _mappings(claimed.get("resources"), ("limits", "requests"))
    if kind == "ResourceQuota":
        yield from _mappings(spec, ("hard",))
    if kind == "LimitRange":
        for item in _objects(spec.get("limits")):
            yield from _mappings(item, _LIMIT_RANGE)


def _make_pod_canonical(spec: Any) -> None:
    _leave_out(spec, _FALSE_OF_POD)
    for container in (each for group in _CONTAINERS for each in _objects(spec.get(group))):
        _leave_out(container, _FALSE_OF_CONTAINER)
        _write_amounts(_mappings(container.get("resources"), ("limits", "requests")))
        for mount in _objects(container.get("volumeMounts")):
            _leave_out(mount, ("readOnly",))
    for volume in _objects(spec.get("volumes")):
        for claim in _mappings(volume, ("persistentVolumeClaim",)):
            _leave_out(claim, ("readOnly",))
        for source in _mappings(volume, ("emptyDir",)):
            if "sizeLimit" in source:
                source["sizeLimit"] = canonical_quantity(source["sizeLimit"])


def _leave_out(members: Any, if_false: tuple[str, ...]) -> None:
    """Remove empty lists, and the named members if they are false."""
    for name in [key for key, value in members.items() if value == [] or (value is False and key in if_false)]:
        del members[name]


def _objects(given: Any) -> list[Object]:
    return [each for each in given if isinstance(each, dict)] if isinstance(given, list) else []


def _mappings(given: Any, names: tuple[str, ...]) -> Iterator[Object]:
    for name in names if isinstance(given, dict) else ():
        if isinstance(given.get(name), dict):
            yield given[name]
