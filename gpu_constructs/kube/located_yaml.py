"""Reader that creates option structs (dataclasses) from YAML files.

The type hints of a struct describe the keys and values that the file can have.

Each error states the line and the path of the invalid value. A ``Dialect`` contains the rules for one kind of file,
such as an inventory.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import yaml

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube import fields
from gpu_constructs.records import dataclass, regex

_Made = TypeVar("_Made")

LONGEST_SHOWN = 80
_PLAIN_KEY = regex(r"[\w.-]+\Z")


class Refused(GpuConstructsError):
    """The error for an invalid value in a YAML file.

    Attributes:
        path: Path of the invalid value, as keys joined by dots.
        node: Part of the YAML file that causes the problem, as a node of PyYAML.
    """

    def __init__(self, problem: str, node: yaml.Node, path: str) -> None:
        super().__init__(problem)
        self.node = node
        self.path = path


class Dialect:
    """The rules for one kind of YAML file, such as an inventory, and texts for error messages about these files."""

    loader: ClassVar[type[yaml.SafeLoader]] = yaml.SafeLoader
    deepest: ClassVar[int]
    """Largest depth of nested mappings and lists in a file."""
    called: ClassVar[str]
    """Name of this kind of file in messages."""
    first_alone: ClassVar[str] = ""
    """End of the message about a second YAML document, such as ": the plugin would read only the first one"."""
    given_twice: ClassVar[str] = ""
    """End of the message about a duplicate key, such as ": the plugin would silently use the last one"."""
    required: ClassVar[Mapping[str, str]] = {}
    """Ends of the messages about missing keys, by path of the key, such as ": a list of clusters"."""
    readers: ClassVar[Mapping[Any, Callable[[Value], Any]]] = {}
    """Functions that convert a YAML value, by the type hint for which the reader calls them."""

    def problem_of(self, event: yaml.Event, text: str) -> str | None:
        """Return the problem of an event that this kind of file must not contain. Return None for an allowed event.

        The problem is the end of the message "text must …", for example "have no anchors".

        Args:
            event: PyYAML event for a part of the file, such as a scalar or the start of a list.
            text: Text of the file.
        """
        return None

    def unknown(self, key: str, where: str, keys: Sequence[str]) -> str:
        """Return the message about an unknown key.

        Args:
            key: Key that the file must not contain.
            where: Name of the mapping that contains the key.
            keys: Allowed keys.
        """
        near = fields.did_you_mean(key, keys) or f"; it has {', '.join(keys)}"
        return f"{key_in_words(key)} is not a key of {where}{near}"

    def is_whole_number(self, read: Any, written: str) -> bool:
        """Check whether a scalar in the file is a whole number.

        Args:
            read: Value as PyYAML parsed it.
            written: Text of the value in the file.
        """
        return isinstance(read, int) and not isinstance(read, bool)

    def root(self, text: str) -> Value | None:
        """Return the root of the only YAML document in a text, with its line numbers. Return None if the text is empty.

        Raises:
            GpuConstructsError: The text is not YAML, or has parts that this kind of file must not contain.
        """
        try:
            self._check(text)
            node = yaml.compose(text, Loader=self.loader)
        except yaml.YAMLError as error:
            raise _no_yaml(text, error) from None
        if node is None or node.tag == "tag:yaml.org,2002:null":
            return None
        return Value(node, "", node.start_mark.line + 1, self)

    def _check(self, text: str) -> None:
        open_anchors: list[str | None] = []
        documents = 0
        for event in yaml.parse(text, Loader=self.loader):
            documents += isinstance(event, yaml.DocumentStartEvent)
            tag, problem = getattr(event, "tag", None), None
            if isinstance(event, yaml.CollectionStartEvent):
                open_anchors.append(event.anchor)
            elif isinstance(event, yaml.CollectionEndEvent):
                open_anchors.pop()
            if documents > 1:
                problem = f"be one document{self.first_alone}. Delete the other documents"
            elif tag is not None:
                problem = f"have no tags, got {tag!r}. Write the value without the tag"
            elif isinstance(event, yaml.AliasEvent) and event.anchor in open_anchors:
                problem = f"not contain itself, got *{event.anchor}"
            elif len(open_anchors) > self.deepest:
                problem = f"not have deeper nesting than the keys of {self.called}"
            problem = problem or self.problem_of(event, text)
            if problem:
                line = event.start_mark.line + 1  # type: ignore[union-attr]
                raise GpuConstructsError(f"line {line}: text must {problem}")


@dataclass(frozen=True)
class Value:
    """A value in a YAML file, with its position and the rules for the file.

    Attributes:
        node: Value as PyYAML parsed it.
        path: Path of the value, as keys joined by dots.
        line: Number of the line with the key of the value. The first line is 1.
        dialect: Rules for the kind of file.
    """

    node: yaml.Node
    path: str
    line: int
    dialect: Dialect

    @property
    def shown(self) -> str:
        """Text of the value in messages, with at most 80 characters."""
        if not isinstance(self.node, yaml.ScalarNode):
            return "a list" if isinstance(self.node, yaml.SequenceNode) else "keys and values"
        text = self.node.value if len(self.node.value) <= LONGEST_SHOWN else f"{self.node.value[:LONGEST_SHOWN]}…"
        return repr(text) if self.node.tag.endswith(":str") else text or "nothing"

    @property
    def is_null(self) -> bool:
        """Whether the value is null or missing."""
        return self.node.tag == "tag:yaml.org,2002:null"

    def refuse(self, problem: str, *, culprit: Value | None = None) -> Refused:
        """Return an error about this value. The message begins with the line number of this value.

        Args:
            problem: Rest of the message.
            culprit: Value whose ``path`` and ``node`` the error gets; by default this value.
        """
        which = culprit or self
        return Refused(f"line {self.line}: {problem}", which.node, which.path)

    def must_be(self, what: str) -> Refused:
        """Return the error that states what the value must be, for example ``a list``."""
        return self.refuse(f"{self.path} must be {what}, got {self.shown}")

    def scalar(self) -> Any:
        """Return the value as text, a number, a boolean or None."""
        if not isinstance(self.node, yaml.ScalarNode):
            raise self.must_be("a single value")
        try:
            value = self.dialect.loader("").construct_object(self.node)
        except ValueError:
            raise self.must_be("a valid number") from None
        if isinstance(value, int) and value.bit_length() > 63:
            raise self.must_be("a number that fits 64 bits")
        return value

    def number(self) -> int:
        """Return the value as a whole number."""
        number = self.scalar()
        if not self.dialect.is_whole_number(number, str(self.node.value)):
            raise self.must_be("a whole number")
        return int(number)

    def items(self) -> dict[str, Value]:
        """Return the values in a YAML mapping by key. Raise an error if a key occurs twice."""
        if not isinstance(self.node, yaml.MappingNode):
            raise self.refuse(f"{self.path or 'the file'} must be a mapping, got {self.shown}")
        found: dict[str, Value] = {}
        for key, node in self.node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode) or key.value == "<<":
                problem = f"{self.path or 'the file'} must have plain keys, not merge keys (<<) or complex keys"
                raise Refused(f"line {line}: {problem}", key, self.path)
            path = f"{self.path}.{key_in_words(key.value)}".removeprefix(".")
            value = Value(node, path, line, self.dialect)
            if key.value in found:
                before = found[key.value]
                problem = f"{path} is a duplicate key (first on line {before.line}){self.dialect.given_twice}. Keep one"
                raise value.refuse(problem, culprit=before)
            found[key.value] = value
        return found

    def members(self, keys: Sequence[str], where: str = "") -> dict[str, Value]:
        """Return the values in a YAML mapping by key, without null values.

        Args:
            keys: Allowed keys.
            where: Name of the mapping in the error message; by default the path of the mapping.

        Raises:
            Refused: The mapping has a key that is not in ``keys``.
        """
        members = self.items()
        for key, member in members.items():
            if key not in keys:
                raise member.refuse(self.dialect.unknown(key, where or self.path or "the file", keys))
        return {key: member for key, member in members.items() if not member.is_null}

    def elements(self) -> list[Value]:
        """Return the values in a YAML list."""
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.must_be("a list")
        return [
            Value(element, f"{self.path}[{index}]", element.start_mark.line + 1, self.dialect)
            for index, element in enumerate(self.node.value)
        ]

    def at(self, make: Callable[[], _Made]) -> _Made:
        """Call ``make`` without arguments, and return its result.

        If ``make`` raises an error, add the line of this value to the error message.
        """
        try:
            return make()
        except GpuConstructsError as error:
            raise self.refuse(error.problem) from None

    def as_hinted(self, hint: Any) -> Any:
        """Convert the value to the type that a Python type hint specifies, and return the result."""
        options = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
        for option in options:
            reader = self.dialect.readers.get(option)
            if reader or dataclasses.is_dataclass(option):
                return reader(self) if reader else self.struct(option)
        generic = {typing.get_origin(option): typing.get_args(option) for option in options}
        if Sequence in generic and (len(options) == 1 or isinstance(self.node, yaml.SequenceNode)):
            return [element.as_hinted(generic[Sequence][0]) for element in self.elements()]
        if Mapping in generic:
            return {name: member.as_hinted(generic[Mapping][1]) for name, member in self.items().items()}
        return self._plain(options)

    def _plain(self, options: Sequence[Any]) -> Any:
        if int in options:
            return self.number()
        read = self.scalar()
        if bool in options and not isinstance(read, bool):
            raise self.must_be("true or false")
        if str in options and not isinstance(read, str):
            raise self.refuse(f"{self.path} must be text, got {self.shown}. Quote it")
        return read

    def struct(self, make: Any, *, beside: Sequence[str] = (), called: str = "", where: str = "") -> Any:
        """Call a class or a function with the keys and values of this YAML mapping, and return the result.

        Args:
            make: Class or function. Its parameters are the allowed keys. If a dataclass field has the metadata ``key``,
                this key replaces the name of the field.
            beside: Further allowed keys, which the method does not pass to ``make``.
            called: Name with which the messages of ``make`` begin; by default the name of ``make`` in ``snake_case``.
            where: Name of the mapping in messages about unknown keys; by default the path of the mapping.
        """
        keys = {name: name for name in inspect.signature(make).parameters}
        if dataclasses.is_dataclass(make):
            keys = {field.metadata.get("key", field.name): field.name for field in dataclasses.fields(make)}
        hints = typing.get_type_hints(make)
        members = {
            keys[key]: member for key, member in self.members([*beside, *keys], where).items() if key not in beside
        }
        given = {name: member.as_hinted(hints[name]) for name, member in members.items()}
        try:
            return make(**given)
        except GpuConstructsError as error:
            called = called or fields.snake(make.__name__)
            raise self._located(error.problem, called, members) from None

    def _located(self, problem: str, called: str, members: Mapping[str, Value]) -> Refused:
        """Return the error that a class such as ``GpuNode`` raises, with the line and the path in the YAML file.

        Args:
            problem: Message of the error, without the line and the path.
            called: Name with which error messages of the class begin, such as ``gpu_node``.
            members: Values in the YAML mapping, by parameter of the class.
        """
        missing = re.match(r"(\w+) is required by ", problem)
        if missing:
            path = f"{self.path}.{missing[1]}".removeprefix(".")
            return self.refuse(f"{path} is required{self.dialect.required.get(path, '')}")
        names = "|".join(re.escape(one) for one in (called, self.path) if one)
        about = re.match(rf"(?:{names})\b(?:\.(\w+))?", problem)
        if about is None:
            return self.refuse(problem)
        path = ".".join(filter(None, (self.path, about[1])))
        return members.get(about[1], self).refuse(path + problem[about.end() :])


def key_in_words(key: str) -> str:
    """Return a key of a YAML mapping for a message, in quotation marks unless it is a plain word."""
    return key if _PLAIN_KEY.match(key) else repr(key[:LONGEST_SHOWN])


def _no_yaml(text: str, error: yaml.YAMLError) -> GpuConstructsError:
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        problem = ", ".join(filter(None, (error.context, error.problem)))
    else:
        line, problem = line_of(text, getattr(error, "position", 0)), str(error).partition("\n")[0]
    way_out = ". Use spaces" if "'\\t'" in problem else ""
    return GpuConstructsError(f"line {line}: text is not YAML: {problem}{way_out}")


def line_of(text: str, position: int) -> int:
    """Return the number of the line that contains a position in a text. The first line is 1."""
    return text.count("\n", 0, position) + 1
