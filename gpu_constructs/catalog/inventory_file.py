"""Reader of a `GpuInventory` from a YAML file. Each error message states the line in the inventory file.

The functions take the class ``GpuInventory`` as an argument, because its module imports this module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar

import yaml

from gpu_constructs.catalog.sharing import Sharing
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube import fields
from gpu_constructs.kube.located_yaml import Dialect, Refused, Value

_Inventory = TypeVar("_Inventory")

_WHOLE_NUMBER = fields.regex(r"-?(?:0|[1-9][0-9]*)\Z")
_STRATEGIES: Mapping[str, Callable[..., Sharing]] = {
    "none": Sharing.none,
    "time-slicing": Sharing.time_slicing,
    "vram-units": Sharing.vram_units,
    "mps": Sharing.mps,
}


def read(text: str, inventory: type[_Inventory]) -> _Inventory:
    """Return the inventory in a YAML text.

    Args:
        text: YAML text.
        inventory: The class ``GpuInventory``. The result is an instance of it.

    Raises:
        GpuConstructsError: The text is not a valid inventory.
    """
    fields.of_type("text", text, str)
    top = InventoryFile().root(text)
    if top is None:
        raise GpuConstructsError("text is empty. Write a list of nodes, such as 'nodes: [{name: gpu-1}]'")
    try:
        check_names(top, "nodes", "Use count: for equal nodes")
        made: _Inventory = top.struct(inventory)
    except Refused as refused:
        raise GpuConstructsError(refused.problem) from None
    return made


def check_names(top: Value, key: str, way_out: str) -> None:
    """Raise if two elements of a list in a YAML file have the same value of ``name``.

    Args:
        top: Root value of the YAML file.
        key: Key of the list, such as ``nodes``.
        way_out: Last sentence of the error message, without a full stop.
    """
    listed = top.items().get(key)
    lines: dict[str, int] = {}
    for element in listed.elements() if listed and isinstance(listed.node, yaml.SequenceNode) else ():
        name = element.items().get("name") if isinstance(element.node, yaml.MappingNode) else None
        if name is None or not isinstance(name.node, yaml.ScalarNode):
            continue
        if name.node.value in lines:
            raise element.refuse(
                f"{element.path}.name must be unique, got {name.shown} as on line {lines[name.node.value]}. {way_out}"
            )
        lines[name.node.value] = element.line


def _sharing(value: Value) -> Sharing:
    strategy = value.items().get("strategy")
    if strategy is None:
        raise value.refuse(f"{value.path}.strategy is missing. Set it to one of {', '.join(map(repr, _STRATEGIES))}")
    name = strategy.as_hinted(str)
    strategy.at(lambda: fields.one_of(f"{value.path}.strategy", name, tuple(_STRATEGIES)))
    called, where = f"sharing.{name.replace('-', '_')}", f"{value.path} with strategy {name!r}"
    made: Sharing = value.struct(_STRATEGIES[name], beside=("strategy",), called=called, where=where)
    return made


class InventoryFile(Dialect):
    """The rules by which the library reads an inventory file in YAML, for example that it contains no anchors."""

    deepest = 8
    called = "an inventory"
    required: ClassVar[Mapping[str, str]] = {"nodes": ": a list of nodes, each with its name"}
    readers: ClassVar[Mapping[Any, Callable[[Value], Any]]] = {Sharing: _sharing}

    def problem_of(self, event: yaml.Event, text: str) -> str | None:
        """Return the end of an error message for an anchor (``&name``) or an alias (``*name``); otherwise None.

        Args:
            event: Parser event of PyYAML for one YAML node, such as a scalar or the start of a list.
            text: Text of the inventory file.
        """
        is_anchored = isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None)
        return "have no anchors or aliases. Write the value out" if is_anchored else None

    def is_whole_number(self, read: Any, written: str) -> bool:
        """Check whether all YAML parsers read a scalar of the inventory file as the same whole number.

        For example, some parsers read 010 as 8 and others as 10, and some read 1:30 as text.

        Args:
            read: Value of the scalar, as PyYAML reads it.
            written: Text of the scalar in the file.
        """
        return super().is_whole_number(read, written) and bool(_WHOLE_NUMBER.match(written))
