"""What a trial of an experiment asks for at most, where its numbers are parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from gpu_constructs.capacity.demand.pod_group import mapping, members
from gpu_constructs.rules.facts import quantity

_PLACEHOLDER = re.compile(r"\$\{trialParameters\.([^}]+)\}\Z")
_AMOUNTS = ("limits", "requests")
_COUNTS = frozenset(
    {"completions", "maxReplicas", "minReplicas", "numNodes", "numOfHosts", "parallelism", "replicas", "size"}
)


def with_greatest_values(
    experiment: Mapping[str, Any], parameters: object
) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """Give the object that a trial runs, with the greatest value wherever a count is a parameter, and notes on them.

    The notes name those parameters. ``parameters`` are those of the experiment, as written.
    """
    template = mapping(experiment.get("trialTemplate"))
    held = mapping(template.get("trialSpec"))
    spaces = {one.get("name"): mapping(one.get("feasibleSpace")) for one in _named(parameters)}
    greatest = {}
    for parameter in _named(template.get("trialParameters")):
        space = spaces.get(str(parameter.get("reference")), {})
        found = space.get("list")
        numbers = [quantity(value) for value in (*(found if isinstance(found, list) else ()), space.get("max"))]
        known = [value for value in numbers if value is not None]
        if known:
            greatest[parameter["name"]] = int(max(known))
    if not greatest:
        return held, ()
    used: dict[str, int] = {}
    filled = _filled(held, greatest, used, is_amount=False)
    return filled, tuple(f"trialParameters.{name} is counted as its greatest, {used[name]}" for name in sorted(used))


def _named(value: object) -> list[Mapping[str, Any]]:
    return [one for one in members(value) if isinstance(one.get("name"), str)]


def _filled(value: Any, greatest: Mapping[str, int], used: dict[str, int], *, is_amount: bool) -> Any:
    if isinstance(value, list):
        return [_filled(member, greatest, used, is_amount=False) for member in value]
    if not isinstance(value, Mapping):
        return value
    made = {}
    for key, member in value.items():
        if isinstance(member, str):
            placeholder = _PLACEHOLDER.match(member) if is_amount or key in _COUNTS else None
            if placeholder and placeholder[1] in greatest:
                member = used[placeholder[1]] = greatest[placeholder[1]]
            made[key] = member
        else:
            made[key] = _filled(member, greatest, used, is_amount=key in _AMOUNTS)
    return made
