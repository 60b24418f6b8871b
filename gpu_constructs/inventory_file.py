"""Reads an inventory from YAML, and says of whatever is wrong with it on which line it stands."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import yaml

from gpu_constructs import _fields
from gpu_constructs._located_yaml import Refused, Value, key_in_words
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.inventory import GpuInventory, GpuNode
from gpu_constructs.sharing import Sharing
from gpu_constructs.taint import Taint

_Made = TypeVar("_Made")

_DEEPEST = 8
_WHOLE_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)\Z")
_STRATEGIES: Mapping[str, Callable[..., Sharing]] = {
    "none": Sharing.none,
    "time-slicing": Sharing.time_slicing,
    "vram-units": Sharing.vram_units,
    "mps": Sharing.mps,
}
_NUMBERS = ("gpus", "count", "power_limit", "replicas")
_SWITCHES = ("is_observed", "fail_requests_greater_than_one", "rename_by_default")


def inventory_from_file(path: str | Path) -> GpuInventory:
    """Read the file.

    Raises:
        GpuConstructsError: It cannot be read, or holds no inventory.
    """
    _fields.of_type("path", path, str | Path)
    path = Path(path)
    text = text_of(path, "path", "YAML")
    try:
        return inventory_from_yaml(text)
    except GpuConstructsError as error:
        raise GpuConstructsError(f"{path.name} {error.problem}") from None


def text_of(path: Path, field: str, language: str) -> str:
    """Read a file.

    Raises:
        GpuConstructsError: It cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        # A path with a null byte, and text that is no UTF-8, are no OSError.
        reason = error.strerror if isinstance(error, OSError) else "it is no file of UTF-8 text"
        raise GpuConstructsError(
            f"{field} must be a file of {language} that can be read; got {str(path)!r}: {reason}"
        ) from None


def inventory_from_yaml(text: str) -> GpuInventory:
    """Read the text.

    Raises:
        GpuConstructsError: It holds no inventory.
    """
    _fields.of_type("text", text, str)
    try:
        root = _root(text)
        return _inventory(Value(root, "", root.start_mark.line + 1))
    except Refused as refused:
        raise GpuConstructsError(refused.problem) from None


def _inventory(top: Value) -> GpuInventory:
    members = _members(top, "the file", tuple(field.name for field in dataclasses.fields(GpuInventory)))
    if "nodes" not in members:
        raise top.refuse("nodes is required: a list of nodes, each with its name")
    lines: dict[str, Value] = {}
    nodes: list[GpuNode] = []
    for element in members["nodes"].elements():
        nodes.append(_node(element))
        if nodes[-1].name in lines:
            raise element.refuse(
                f"{element.path}.name must be its own; got {nodes[-1].name!r} as on line {lines[nodes[-1].name].line}; "
                "use count: for nodes that are alike"
            )
        lines[nodes[-1].name] = element
    given: dict[str, Any] = {"nodes": nodes}
    if "rack_watts" in members:
        given["rack_watts"] = {rack: _number(watts) for rack, watts in members["rack_watts"].items().items()}
    return _made(top, members, "gpu_inventory", lambda: GpuInventory(**given))


def _node(value: Value) -> GpuNode:
    names = tuple(field.name for field in dataclasses.fields(GpuNode))
    members = _members(value, value.path, names)
    given = {name: _MEMBERS.get(name, _text)(member) for name, member in members.items()}
    return _made(value, members, "gpu_node", lambda: GpuNode(**given))


def _sharing(value: Value) -> Sharing:
    members = value.items()
    if "strategy" not in members:
        raise value.refuse(f"{value.path}.strategy is required: one of {', '.join(map(repr, _STRATEGIES))}")
    strategy = _text(members["strategy"])
    members["strategy"].at(lambda: _fields.one_of(f"{value.path}.strategy", strategy, tuple(_STRATEGIES)))
    factory = _STRATEGIES[strategy]
    members = _members(value, f"{value.path} with strategy {strategy!r}", ("strategy", *_keywords(factory)))
    given = {name: _MEMBERS.get(name, _text)(member) for name, member in members.items() if name != "strategy"}
    return _made(value, members, f"sharing.{strategy.replace('-', '_')}", lambda: factory(**given))


def _keywords(factory: Callable[..., Sharing]) -> tuple[str, ...]:
    return tuple(inspect.signature(factory).parameters)


def _taints(value: Value) -> list[Taint]:
    names = tuple(field.name for field in dataclasses.fields(Taint))
    taints = []
    for element in value.elements():
        members = _members(element, element.path, names)
        given: dict[str, Any] = {name: _text(member) for name, member in members.items()}
        taints.append(_made(element, members, "taint", lambda given=given: Taint(**given)))  # type: ignore[misc]
    return taints


def _layout(value: Value) -> Any:
    if isinstance(value.node, yaml.SequenceNode):
        return [_numbers(element) for element in value.elements()]
    return _numbers(value)


def _numbers(value: Value) -> dict[str, int]:
    return {name: _number(member) for name, member in value.items().items()}


def _texts(value: Value) -> dict[str, str]:
    return {name: _text(member) for name, member in value.items().items()}


def _text(value: Value) -> str:
    text = value.scalar()
    if not isinstance(text, str):
        raise value.refuse(f"{value.path} must be text; got {value.shown}; quote it")
    return text


def _number(value: Value) -> int:
    number = value.scalar()
    # Readers of YAML differ over 010, 1_000 and 1:30.
    if isinstance(number, bool) or not isinstance(number, int) or not _WHOLE_NUMBER.match(str(value.node.value)):
        raise value.refuse(f"{value.path} must be a whole number; got {value.shown}")
    return number


def _switch(value: Value) -> bool:
    switch = value.scalar()
    if not isinstance(switch, bool):
        raise value.refuse(f"{value.path} must be true or false; got {value.shown}")
    return switch


_MEMBERS: Mapping[str, Callable[[Value], Any]] = {
    **dict.fromkeys(_NUMBERS, _number),
    **dict.fromkeys(_SWITCHES, _switch),
    "sharing": _sharing,
    "mig_layout": _layout,
    "labels": _texts,
    "taints": _taints,
    "resources": _numbers,
}
"""How each member is read that is no text."""


def _members(value: Value, where: str, names: tuple[str, ...]) -> Mapping[str, Value]:
    """Give those members of a mapping that hold something, and refuse others than those named."""
    members = value.items()
    for key, member in members.items():
        if key not in names:
            near = _fields.did_you_mean(key, names) or f"; it has {', '.join(names)}"
            raise member.refuse(f"{key_in_words(key)} is no key of {where}{near}")
    return {key: member for key, member in members.items() if not member.is_null}


def _made(value: Value, members: Mapping[str, Value], called: str, make: Callable[[], _Made]) -> _Made:
    """Make a struct; what is refused of a member gets the member's line, and its path for the struct's own words."""
    try:
        return make()
    except GpuConstructsError as error:
        missing = re.match(r"(\w+) is required by ", error.problem)
        if missing:
            raise value.refuse(f"{value.path}.{missing[1]} is required".removeprefix(".")) from None
        about = re.match(rf"{re.escape(called)}\b(?:\.(\w+))?", error.problem)
        if about is None:
            raise value.refuse(error.problem) from None
        path = ".".join(part for part in (value.path, about[1]) if part)
        raise members.get(about[1], value).refuse(path + error.problem[about.end() :]) from None


class _Loader(yaml.SafeLoader):
    """Takes one document of plain YAML: no anchors, no tags, nothing nested deeper than an inventory is."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise GpuConstructsError(f"line {line}: text must have no anchors or aliases; write the value out")
        if getattr(event, "tag", None):
            raise GpuConstructsError(f"line {line}: text must have no tags; got {event.tag!r}; write the value alone")
        if self.depth > _DEEPEST:
            raise GpuConstructsError(f"line {line}: text must not be nested deeper than any key of an inventory")
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def _root(text: str) -> yaml.Node:
    try:
        root = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = ", ".join(part for part in (error.context, error.problem) if part)
        way_out = "; use spaces" if "'\\t'" in problem else ""
        raise GpuConstructsError(f"line {mark.line + 1 if mark else 1}: text is no YAML: {problem}{way_out}") from None
    except yaml.YAMLError as error:
        line = text.count("\n", 0, getattr(error, "position", 0)) + 1
        raise GpuConstructsError(f"line {line}: text is no YAML: {str(error).partition(chr(10))[0]}") from None
    if root is None or root.tag == "tag:yaml.org,2002:null":
        raise GpuConstructsError("text is empty; write nodes: with a list of nodes, each with its name")
    return root
