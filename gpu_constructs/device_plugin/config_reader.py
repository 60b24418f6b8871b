"""Reader of configuration files of the NVIDIA device plugin in YAML.

The reader rejects unknown keys, which the device plugin silently ignores. It also rejects text that PyYAML and the YAML
parser of the device plugin read in different ways.

Source: NVIDIA/k8s-device-plugin@v0.20.0:vendor/go.yaml.in/yaml/v2 (resolve.go, scannerc.go)
"""

from __future__ import annotations

import dataclasses
import re
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import cache, partial
from typing import Any, ClassVar, TypeVar

import yaml

from gpu_constructs.catalog.platforms import DeviceListStrategy
from gpu_constructs.catalog.sharing import GPU, Sharing
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube import durations, fields
from gpu_constructs.kube.located_yaml import Dialect, Refused, Value, key_in_words, line_of

_Config = TypeVar("_Config")

_DOMAIN = "nvidia.com/"
_STRATEGIES = {"timeSlicing": "time-slicing", "mps": "mps"}
_SHARING_KEYS = ("renameByDefault", "failRequestsGreaterThanOne", "resources")
_RESOURCE_KEYS = ("name", "replicas")
_HOMES = {
    **dict.fromkeys(_SHARING_KEYS, "sharing.timeSlicing or sharing.mps"),
    **dict.fromkeys(_RESOURCE_KEYS, "an entry of sharing.timeSlicing.resources or sharing.mps.resources"),
    **dict.fromkeys(_STRATEGIES, "sharing"),
}
_IGNORED = {
    "resources": "the plugin warns about it and ignores it, so resources keep their names. Delete it",
    "rename": "the plugin warns about it and ignores it. Delete it, or use renameByDefault",
    "devices": "the plugin warns about it, and shares all devices in the same way. Delete it",
}
_INDENT = fields.regex(r"^[ \t]+(?=[^\s#])", re.MULTILINE)
_DIRECTIVE = fields.regex(r"^%", re.MULTILINE)
_GLUED_COLON = fields.regex(r":[,\[\]{}]")
_ESCAPED_SLASH = fields.regex(r"(?<!\\)(?:\\\\)*\\/")


# --- text ------------------------------------------------------------------------------------------------------


class PluginLoader(yaml.SafeLoader):
    """A PyYAML loader that reads scalars like the YAML parser of the device plugin.

    For example, it reads ``y`` as true. It reads ``1:30`` and dates as text.
    """

    bool_values: ClassVar[dict[str, bool]] = {**yaml.SafeLoader.bool_values, "y": True, "n": False}


PluginLoader.yaml_implicit_resolvers = {}
for _kind, _pattern, _first in (
    ("bool", r"[yYnN]|yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF", "yYnNtTfFoO"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]+|0|[1-9][0-9_]*)", "-+0123456789"),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+.0123456789",
    ),
):
    PluginLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", re.compile(rf"(?:{_pattern})\Z"), list(_first))


class PluginYaml(Dialect):
    """The rules by which the library reads the YAML text of a device plugin configuration."""

    loader = PluginLoader
    deepest = 16
    called = "the file"
    first_alone = ": the plugin would read only the first one"
    given_twice = ": the plugin would silently use the last one"

    def root(self, text: str) -> Value | None:
        """Return the root value of the only YAML document in a text. Return None if the text is empty.

        The result contains the line numbers of all values, for messages.

        Raises:
            GpuConstructsError: The text is not YAML, or the device plugin would read it in an unexpected way.
        """
        before, brace, json = text.partition("{")
        if brace and not before.strip():  # Tabs can indent JSON, but not YAML.
            text = before + brace + _INDENT.sub(lambda indent: " " * len(indent[0]), json)
        directive = _DIRECTIVE.search(text)
        if directive:
            line = line_of(text, directive.start())
            problem = "have no YAML directives, because the plugin rejects most of them. Delete the line"
            raise GpuConstructsError(f"line {line}: text must {problem}")
        return super().root(text)

    def problem_of(self, event: yaml.Event, text: str) -> str | None:
        """Return a message about a scalar that PyYAML and the device plugin read in different ways.

        The message starts after "must", for example with "have a space after each colon". Return None if both
        parsers read the scalar in the same way, or if the event is not a scalar.

        Args:
            event: Item of the file, as an event of PyYAML.
            text: Text of the file.
        """
        if not isinstance(event, yaml.ScalarEvent):
            return None
        start, end = event.start_mark.index, event.end_mark.index  # type: ignore[union-attr]
        if event.implicit[0] and _GLUED_COLON.match(text, end):
            return f"have a space after each colon, got {text[start : end + 2]!r}"
        if event.style == '"' and _ESCAPED_SLASH.search(text, start, end):
            return r"not escape '/', which the plugin cannot read, got '\/'"
        return None


# --- the file ----------------------------------------------------------------------------------------------------


def read(text: str, struct: type[_Config]) -> _Config:
    """Return the configuration in the YAML text of a configuration file.

    Args:
        text: Content of the configuration file.
        struct: The class ``PluginConfig``. The result is an instance of it.

    Raises:
        GpuConstructsError: The text is empty or contains a mistake.
    """
    root = _root(text, struct)
    if root is None:
        raise GpuConstructsError(
            "text must not be empty: the device plugin would run with its defaults. For defaults, use PluginConfig()"
        )
    try:
        return _config(root, struct)
    except Refused as refused:
        raise GpuConstructsError(refused.problem) from None


def read_without(text: str, struct: type[_Config], drop: Callable[[str], None]) -> _Config:
    """Return the configuration in the YAML text of a configuration file, without the keys that have problems.

    Args:
        text: Content of the configuration file.
        struct: The class ``PluginConfig``. The result is an instance of it.
        drop: Function that the reader calls with the message of each problem.
    """
    try:
        root = _root(text, struct)
    except GpuConstructsError as error:
        drop(error.problem)
        return struct()
    while root is not None:
        try:
            return _config(root, struct)
        except Refused as refused:
            drop(f"{refused.path}: {refused.problem}".removeprefix(": "))
            if refused.node is root.node:
                break
            _cut(root.node, refused.node)
    return struct()


def _cut(node: yaml.Node, culprit: yaml.Node) -> None:
    if isinstance(node, yaml.MappingNode):
        node.value = [pair for pair in node.value if culprit not in pair]
        for _, below in node.value:
            _cut(below, culprit)
    elif isinstance(node, yaml.SequenceNode):
        node.value = [child for child in node.value if child is not culprit]
        for below in node.value:
            _cut(below, culprit)


def _root(text: str, struct: type[_Config]) -> Value | None:
    fields.of_type("text", text, str)
    return _PluginFile(struct).root(text)


def _config(top: Value, struct: type[_Config]) -> _Config:
    members = top.items()
    if "kind" in members:
        raise Refused(
            "text must not be a whole Kubernetes object, which the device plugin would ignore. Pass the text of one "
            "key of its data",
            top.node,
            "",
        )
    hints = typing.get_type_hints(struct)
    sections = [field.name for field in dataclasses.fields(struct)]  # type: ignore[arg-type]
    known = top.members(["version", *sections, "resources"])
    version, resources = known.get("version"), known.get("resources")
    if version and version.scalar() != "v1":
        raise version.refuse(f"version must be 'v1', got {version.shown}")
    if resources and (not isinstance(resources.node, yaml.MappingNode) or resources.items()):
        raise resources.refuse(f"resources must be absent: {_IGNORED['resources']}")
    given = {name: known[name].as_hinted(hints[name]) for name in sections if name in known}
    return members.get("sharing", top).at(lambda: struct(**given))


@cache
def _homes(struct: type) -> Mapping[str, str]:
    """Return the section to which each key of the configuration file belongs, for messages about misplaced keys.

    For example, the section of ``passDeviceSpecs`` is ``flags.plugin``. If a section and its subsection have the
    same key, the result contains the outer section.
    """
    return {**_HOMES, **dict(reversed([*_keys(struct, "")]))}


def _keys(struct: Any, where: str) -> Iterator[tuple[str, str]]:
    hints = typing.get_type_hints(struct)
    for field in dataclasses.fields(struct):
        key = field.metadata.get("key", field.name)
        yield key, where or "the top of the file"
        if dataclasses.is_dataclass(hints[field.name]) and hints[field.name] is not Sharing:
            yield from _keys(hints[field.name], f"{where}.{key}".removeprefix("."))


def _span(value: Value) -> Any:
    text = value.scalar()
    if isinstance(text, bool) or not isinstance(text, int | float | str):
        raise value.must_be("a duration like '60s'")
    if not isinstance(text, str):
        raise value.refuse(
            f"{value.path} must have a unit: the device plugin reads {value.shown} as nanoseconds. Write "
            f"'{value.shown}s' for seconds"
        )
    return text if text == "infinite" else value.at(lambda: durations.from_go_duration(value.path, text))


def _strategies(value: Value) -> Any:
    if isinstance(value.node, yaml.SequenceNode):
        return [element.scalar() for element in value.elements()]
    read = value.scalar()
    if isinstance(read, str) and "," in read:
        raise value.refuse(f"{value.path} must be a list in the file, not text with commas, got {read!r}")
    return read


def _sharing(value: Value) -> Sharing:
    members = value.items()
    value.members(tuple(_STRATEGIES))
    given = [key for key in members if not (key == "mps" and members[key].is_null)]
    if len(given) > 1:
        raise members["timeSlicing"].refuse(
            "sharing must contain only one of timeSlicing and mps: with both, the device plugin silently uses mps. "
            "Delete one of them"
        )
    return _replicated(members[given[0]], _STRATEGIES[given[0]]) if given else Sharing.none()


def _replicated(value: Value, strategy: Any) -> Sharing:
    members = {} if value.is_null else value.members(_SHARING_KEYS)
    listed = members.get("resources")
    entries = listed.elements() if listed else []
    if not entries:
        where = (value if value.is_null else value.items().get("resources")) or value
        raise where.refuse(
            f"{value.path}.resources must name a resource. Otherwise, the device plugin does not start", culprit=value
        )
    resources: dict[str, int] = {}
    for entry in entries:
        name, replicas = _resource(entry)
        if name in resources:
            raise entry.refuse(
                f"{entry.path}.name {name!r} must be unique: the device plugin would use the larger number of replicas"
            )
        resources[name] = replicas
        entry.at(partial(Sharing, strategy=strategy, resources={name: replicas}))
    rename, fail = (members[key].as_hinted(bool) if key in members else None for key in _SHARING_KEYS[:2])
    return value.at(
        lambda: Sharing(
            strategy=strategy,
            resources=resources,
            rename_by_default=bool(rename),
            fail_requests_greater_than_one=strategy == "mps" if fail is None else fail,
        ),
    )


def _resource(entry: Value) -> tuple[str, int]:
    given = entry.items()
    for key in ("rename", "devices"):
        if key in given and not (key == "devices" and given[key].shown == "'all'"):
            raise given[key].refuse(f"{given[key].path} must be absent: {_IGNORED[key]}")
    members = entry.members((*_RESOURCE_KEYS, "rename", "devices"))
    for key in _RESOURCE_KEYS:
        if key not in members:
            raise entry.refuse(f"{entry.path}.{key} is required")
    name, replicas = members["name"].scalar(), members["replicas"].number()
    if not isinstance(name, str):
        raise members["name"].must_be(f"text like {GPU!r}")
    return name if name.startswith(_DOMAIN) else _DOMAIN + name, replicas


class _PluginFile(PluginYaml):
    """The rules by which the library checks the keys and values in a configuration file of the device plugin."""

    readers: ClassVar[Mapping[Any, Callable[[Value], Any]]] = {
        timedelta: _span,
        Sharing: _sharing,
        DeviceListStrategy: _strategies,
    }

    def __init__(self, struct: type) -> None:
        self._struct = struct

    def unknown(self, key: str, where: str, keys: Sequence[str]) -> str:
        """Return the message about an unknown key in a configuration file of the device plugin.

        The message suggests the correct spelling or the correct section. Otherwise, it lists the keys of the section.

        Args:
            key: Unknown key.
            where: Name of the section that contains the key, such as ``flags.plugin``.
            keys: Keys that this section can have.
        """
        same = [right for right in keys if right.casefold() == key.casefold()]
        if same:
            return (
                f"{key_in_words(key)} of {where} must have the spelling {same[0]}: the plugin accepts other spellings "
                "for some keys only"
            )
        home = _homes(self._struct).get(key)
        if home:
            problem = f", and the plugin would ignore it there. It belongs to {home}"
        else:
            problem = ", so the plugin would silently skip it"
            problem += fields.did_you_mean(key, keys) or f"; it has {', '.join(keys)}"
        return f"{key_in_words(key)} is not a key of {where}{problem}"
