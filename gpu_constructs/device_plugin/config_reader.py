"""Reads a user's plugin configuration as strictly as the plugin does not: the plugin skips what it does not know."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import yaml

from gpu_constructs import _fields
from gpu_constructs._durations import from_go_duration
from gpu_constructs._located_yaml import Refused, Value, key_in_words
from gpu_constructs.device_plugin import config_yaml
from gpu_constructs.device_plugin.config import Flags, GfdFlags, Imex, PluginConfig, PluginFlags
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.sharing import GPU, Sharing

_DOMAIN = "nvidia.com/"
_SHARING_KEYS = ("renameByDefault", "failRequestsGreaterThanOne", "resources")
_RESOURCE_KEYS = ("name", "replicas")
_STRATEGIES = {"timeSlicing": "time-slicing", "mps": "mps"}
_IGNORED = {
    "resources": "the plugin reads it, warns and throws it away, so resources keep their names; delete it",
    "rename": "the plugin reads it, warns and throws it away; delete it, or use renameByDefault",
    "devices": "the plugin reads it, warns and shares every device alike; delete it",
}


class _Value(Value):
    """A value as the plugin reads it."""

    GIVEN_TWICE = ": the plugin would take the last one without a word"

    @staticmethod
    def read(node: yaml.ScalarNode) -> Any:
        return config_yaml.scalar(node)


def read(text: str) -> PluginConfig:
    """Read the file."""
    root = _root(text)
    if root is None:
        raise GpuConstructsError("text is empty: the plugin would run with its defaults; say so with PluginConfig()")
    try:
        return _config(root)
    except Refused as refused:
        raise GpuConstructsError(refused.problem) from None


def read_without(text: str, drop: Callable[[str], None]) -> PluginConfig:
    """Read the file without the keys that would be refused, each of whose problems goes to ``drop``."""
    try:
        root = _root(text)
    except GpuConstructsError as error:
        drop(error.problem)
        return PluginConfig()
    while root is not None:
        try:
            return _config(root)
        except Refused as refused:
            drop(f"{_path_to(root, refused.node)}: {refused.problem}".removeprefix(": "))
            root = None if refused.node is root else _cut(root, refused.node)
    return PluginConfig()


def _path_to(node: yaml.Node, culprit: yaml.Node) -> str:
    """Give the keys that lead to a value or its key; nothing for the whole file."""
    children: list[tuple[str, Any]] = []
    if isinstance(node, yaml.MappingNode):
        children = [(f".{key.value}", (key, value)) for key, value in node.value]
    elif isinstance(node, yaml.SequenceNode):
        children = [(f"[{index}]", (child, child)) for index, child in enumerate(node.value)]
    for step, (key, value) in children:
        if culprit is key or culprit is value:
            return step.removeprefix(".")
        below = _path_to(value, culprit)
        if below:
            return f"{step}{'' if below.startswith('[') else '.'}{below}".removeprefix(".")
    return ""


def _cut(node: yaml.Node, culprit: yaml.Node) -> yaml.Node:
    if isinstance(node, yaml.MappingNode):
        node.value = [pair for pair in node.value if culprit not in pair]
        for pair in node.value:
            _cut(pair[1], culprit)
    elif isinstance(node, yaml.SequenceNode):
        node.value = [_cut(child, culprit) for child in node.value if child is not culprit]
    return node


def _root(text: str) -> yaml.Node | None:
    _fields.of_type("text", text, str)
    root = config_yaml.compose(text)
    return None if root is None or root.tag == "tag:yaml.org,2002:null" else root


def _config(root: yaml.Node) -> PluginConfig:
    top = _Value(root, "", root.start_mark.line + 1)
    members = top.items()
    if "kind" in members:
        raise Refused(
            "text is a whole Kubernetes object, of which the plugin would read nothing; pass the text below a key of "
            "its data",
            root,
        )
    _known(members, "the file", ("version", "flags", "sharing", "imex", "resources"))
    version, resources = members.get("version"), members.get("resources")
    if version and version.scalar() not in ("v1", None):
        raise version.refuse(f"version must be 'v1'; got {version.shown}")
    if resources and not resources.is_null and (not isinstance(resources.node, yaml.MappingNode) or resources.items()):
        raise resources.refuse(f"resources must be left out: {_IGNORED['resources']}")
    given: dict[str, Any] = {}
    if "flags" in members:
        given["flags"] = _struct(members["flags"], Flags)
    if "imex" in members:
        given["imex"] = _struct(members["imex"], Imex)
    if "sharing" in members:
        given["sharing"] = _sharing(members["sharing"])
    return members.get("sharing", top).at(lambda: PluginConfig(**given))


def _struct(value: _Value, struct: Any) -> Any:
    """Read one section into its struct: each member alone first, so that an error has the member's own line."""
    if value.is_null:
        return struct()
    fields = {field.metadata["key"]: field for field in dataclasses.fields(struct)}
    hints = typing.get_type_hints(struct)
    members = value.items()
    _known(members, value.path, tuple(fields))
    given: dict[str, Any] = {}
    for key, member in members.items():
        name = fields[key].name
        if member.is_null:
            continue
        if dataclasses.is_dataclass(hints[name]):
            given[name] = _struct(member, hints[name])
            continue
        read = _span(member) if name == "sleep_interval" else _plain(member, hints[name])
        if key == "deviceListStrategy" and isinstance(read, str) and "," in read:
            raise member.refuse(f"{member.path} must be a list in the file, not text with commas; got {read!r}")
        if name != "required":
            member.at(partial(struct, **{name: read}))
        given[name] = read
    return value.at(lambda: struct(**given))


def _plain(value: _Value, hint: Any) -> Any:
    """Read a member by the hint of its struct, so that a wrong kind of value is refused as YAML, not as Python."""
    options = typing.get_args(hint) or (hint,)
    if int in options:
        return [_whole_number(element) for element in value.elements()]
    if isinstance(value.node, yaml.SequenceNode) and any(typing.get_origin(option) is Sequence for option in options):
        return [element.scalar() for element in value.elements()]
    read = value.scalar()
    if bool in options and not isinstance(read, bool):
        raise value.refuse(f"{value.path} must be true or false; got {value.shown}")
    if str in options and not isinstance(read, str):
        raise value.refuse(f"{value.path} must be text; got {value.shown}; quote it")
    return read


def _whole_number(value: _Value) -> int:
    number = value.scalar()
    if isinstance(number, bool) or not isinstance(number, int):
        raise value.refuse(f"{value.path} must be a whole number; got {value.shown}")
    return number


def _span(value: _Value) -> Any:
    text = value.scalar()
    if isinstance(text, bool) or not isinstance(text, int | float | str):
        raise value.refuse(f"{value.path} must be a duration like '60s'; got {value.shown}")
    if not isinstance(text, str):
        raise value.refuse(
            f"{value.path} must have a unit: the plugin takes {value.shown} for nanoseconds; write "
            f"'{value.shown}s' for seconds"
        )
    return text if text == "infinite" else value.at(lambda: from_go_duration(value.path, text))


def _sharing(value: _Value) -> Sharing:
    if value.is_null:
        return Sharing.none()
    members = value.items()
    _known(members, "sharing", tuple(_STRATEGIES))
    sharings = {key: member for key, member in members.items() if not (key == "mps" and member.is_null)}
    if len(sharings) > 1:
        raise sharings["timeSlicing"].refuse(
            "sharing must hold timeSlicing or mps: with both the plugin takes mps without a word; delete one"
        )
    for key, member in sharings.items():
        return _replicated(member, _STRATEGIES[key])
    return Sharing.none()


def _replicated(value: _Value, strategy: Any) -> Sharing:
    members = {} if value.is_null else value.items()
    _known(members, value.path, _SHARING_KEYS)
    listed = members.get("resources")
    entries = [] if listed is None or listed.is_null else listed.elements()
    if not entries:
        raise (listed or value).refuse(
            f"{value.path}.resources must name what is shared; the plugin refuses to start", culprit=value
        )
    resources: dict[str, int] = {}
    for entry in entries:
        name, replicas = _resource(entry)
        if name in resources:
            raise entry.refuse(f"{entry.path}.name {name!r} is listed twice; the plugin would take the larger number")
        resources[name] = replicas
        entry.at(partial(Sharing, strategy=strategy, resources={name: replicas}))
    switches = {"renameByDefault": False, "failRequestsGreaterThanOne": strategy == "mps"}
    for key in switches:
        if key in members and not members[key].is_null:
            switches[key] = _plain(members[key], bool)
    return value.at(
        lambda: Sharing(
            strategy=strategy,
            resources=resources,
            rename_by_default=switches["renameByDefault"],
            fail_requests_greater_than_one=switches["failRequestsGreaterThanOne"],
        ),
    )


def _resource(entry: _Value) -> tuple[str, Any]:
    members = entry.items()
    for key in ("rename", "devices"):
        if key in members and not (key == "devices" and members[key].shown == "'all'"):
            raise members[key].refuse(f"{members[key].path} must be left out: {_IGNORED[key]}")
    _known(members, entry.path, (*_RESOURCE_KEYS, "rename", "devices"))
    for key in _RESOURCE_KEYS:
        if key not in members or members[key].is_null:
            raise entry.refuse(f"{entry.path}.{key} is required")
    name, replicas = members["name"].scalar(), _whole_number(members["replicas"])
    if not isinstance(name, str):
        raise members["name"].refuse(f"{entry.path}.name must be text like {GPU!r}; got {members['name'].shown}")
    return name if name.startswith(_DOMAIN) else _DOMAIN + name, replicas


def _homes() -> Iterator[tuple[str, str]]:
    for section, struct in (("flags", Flags), ("flags.plugin", PluginFlags), ("flags.gfd", GfdFlags), ("imex", Imex)):
        for field in dataclasses.fields(struct):
            yield field.metadata["key"], section
    for key in _SHARING_KEYS:
        yield key, "sharing.timeSlicing or sharing.mps"
    for key in _RESOURCE_KEYS:
        yield key, "an entry of sharing.timeSlicing.resources or sharing.mps.resources"
    for key in _STRATEGIES:
        yield key, "sharing"
    for key in ("flags", "sharing", "imex"):
        yield key, "the top of the file"


_HOMES = dict(reversed(list(_homes())))


def _known(members: Mapping[str, _Value], where: str, keys: tuple[str, ...]) -> None:
    for key, member in members.items():
        if key in keys:
            continue
        same = [right for right in keys if right.casefold() == key.casefold()]
        if same:
            raise member.refuse(
                f"{key_in_words(key)} of {where} must be written {same[0]}: the plugin takes other spellings of "
                "some keys and skips those of others"
            )
        if key in _HOMES:
            problem = f", the plugin would not take it from there; it belongs to {_HOMES[key]}"
        else:
            problem = ", the plugin would skip it without a word"
            problem += _fields.did_you_mean(key, keys) or f"; it has {', '.join(keys)}"
        raise member.refuse(f"{key_in_words(key)} is no key of {where}{problem}")
