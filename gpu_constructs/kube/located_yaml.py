"""Reads YAML into option structs, whose type hints say what each key holds; what is refused has its line and its path.

How a kind of file differs from others is a ``Dialect``.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import yaml

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube import fields

_Made = TypeVar("_Made")

LONGEST_SHOWN = 80
_PLAIN_KEY = re.compile(r"[\w.-]+\Z")


class Refused(GpuConstructsError):
    """A problem of the file.

    Attributes:
        path: Keys that lead to the problem.
        node: Node that must go for the problem to go.
    """

    def __init__(self, problem: str, node: yaml.Node, path: str) -> None:
        super().__init__(problem)
        self.node = node
        self.path = path


class Dialect:
    """What a kind of file takes, and the words in which the rest is refused."""

    loader: ClassVar[type[yaml.SafeLoader]] = yaml.SafeLoader
    deepest: ClassVar[int]
    """Collections that may lie in each other."""
    called: ClassVar[str]
    """What a file of this kind is called in a sentence."""
    first_alone: ClassVar[str] = ""
    """What happens to a second document, behind a colon."""
    given_twice: ClassVar[str] = ""
    """What happens to a key that is given twice, behind a colon."""
    required: ClassVar[Mapping[str, str]] = {}
    """What a key must hold that is missing, behind a colon, by its path."""
    readers: ClassVar[Mapping[Any, Callable[[Value], Any]]] = {}
    """How the values of some type hints are read."""

    def problem_of(self, event: yaml.Event, text: str) -> str | None:
        """Return what is wrong with a part of the text, behind "text must"; None if it is right."""
        return None

    def unknown(self, key: str, where: str, keys: Sequence[str]) -> str:
        """Return why a key is refused."""
        near = fields.did_you_mean(key, keys) or f"; it has {', '.join(keys)}"
        return f"{key_in_words(key)} is not a key of {where}{near}"

    def is_whole_number(self, read: Any, written: str) -> bool:
        """Return whether a scalar is a whole number."""
        return isinstance(read, int) and not isinstance(read, bool)

    def root(self, text: str) -> Value | None:
        """Return the one document of a text; None if it holds nothing.

        Raises:
            GpuConstructsError: The text is not YAML, or has parts that the dialect does not take.
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
                problem = f"be one document{self.first_alone}; delete the others"
            elif tag is not None:
                problem = f"have no tags; got {tag!r}; write the value alone"
            elif isinstance(event, yaml.AliasEvent) and event.anchor in open_anchors:
                problem = f"not hold itself; got *{event.anchor}"
            elif len(open_anchors) > self.deepest:
                problem = f"not be nested deeper than any key of {self.called}"
            problem = problem or self.problem_of(event, text)
            if problem:
                line = event.start_mark.line + 1  # type: ignore[union-attr]
                raise GpuConstructsError(f"line {line}: text must {problem}")


@dataclass(frozen=True)
class Value:
    """A value of the file.

    Attributes:
        node: The value.
        path: Keys that lead to it.
        line: Line of its key.
        dialect: What the file takes.
    """

    node: yaml.Node
    path: str
    line: int
    dialect: Dialect

    @property
    def shown(self) -> str:
        """What stands in the file, in a few words."""
        if not isinstance(self.node, yaml.ScalarNode):
            return "a list" if isinstance(self.node, yaml.SequenceNode) else "keys and values"
        text = self.node.value if len(self.node.value) <= LONGEST_SHOWN else f"{self.node.value[:LONGEST_SHOWN]}…"
        return repr(text) if self.node.tag.endswith(":str") else text or "nothing"

    @property
    def is_null(self) -> bool:
        """Whether nothing stands there."""
        return self.node.tag == "tag:yaml.org,2002:null"

    def refuse(self, problem: str, *, culprit: Value | None = None) -> Refused:
        """Return an error with the value's line."""
        which = culprit or self
        return Refused(f"line {self.line}: {problem}", which.node, which.path)

    def must_be(self, what: str) -> Refused:
        """Return an error that says what the value must be."""
        return self.refuse(f"{self.path} must be {what}; got {self.shown}")

    def scalar(self) -> Any:
        """Return a plain value: text, a number, a boolean or None."""
        if not isinstance(self.node, yaml.ScalarNode):
            raise self.must_be("a plain value")
        try:
            value = self.dialect.loader("").construct_object(self.node)
        except ValueError:
            raise self.must_be("a number that can be read") from None
        if isinstance(value, int) and value.bit_length() > 63:
            raise self.must_be("a number of at most 64 bits")
        return value

    def number(self) -> int:
        """Return a whole number."""
        number = self.scalar()
        if not self.dialect.is_whole_number(number, str(self.node.value)):
            raise self.must_be("a whole number")
        return int(number)

    def items(self) -> dict[str, Value]:
        """Return the members of a mapping, each key once."""
        if not isinstance(self.node, yaml.MappingNode):
            raise self.refuse(f"{self.path or 'the file'} must hold keys and values; got {self.shown}")
        found: dict[str, Value] = {}
        for key, node in self.node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode) or key.value == "<<":
                problem = f"{self.path or 'the file'} must have plain keys, neither merged (<<) nor composed"
                raise Refused(f"line {line}: {problem}", key, self.path)
            path = f"{self.path}.{key_in_words(key.value)}".removeprefix(".")
            value = Value(node, path, line, self.dialect)
            if key.value in found:
                before = found[key.value]
                problem = f"{path} is given twice (before on line {before.line}){self.dialect.given_twice}; keep one"
                raise value.refuse(problem, culprit=before)
            found[key.value] = value
        return found

    def members(self, keys: Sequence[str], where: str = "") -> dict[str, Value]:
        """Return the members of a mapping that hold something; refuse keys that are not among those given."""
        members = self.items()
        for key, member in members.items():
            if key not in keys:
                raise member.refuse(self.dialect.unknown(key, where or self.path or "the file", keys))
        return {key: member for key, member in members.items() if not member.is_null}

    def elements(self) -> list[Value]:
        """Return the elements of a list."""
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.must_be("a list")
        return [
            Value(element, f"{self.path}[{index}]", element.start_mark.line + 1, self.dialect)
            for index, element in enumerate(self.node.value)
        ]

    def at(self, make: Callable[[], _Made]) -> _Made:
        """Return what a function makes of the value; what it refuses gets the value's line."""
        try:
            return make()
        except GpuConstructsError as error:
            raise self.refuse(error.problem) from None

    def as_hinted(self, hint: Any) -> Any:
        """Return the value as a type hint describes it."""
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
            raise self.refuse(f"{self.path} must be text; got {self.shown}; quote it")
        return read

    def struct(self, make: Any, *, beside: Sequence[str] = (), called: str = "", where: str = "") -> Any:
        """Return what a class or a factory makes of the members of a mapping.

        Args:
            make: The class or the factory. Metadata ``key`` of a field names its key, else its name does.
            beside: Further keys, which are read elsewhere.
            called: Name that the struct's own messages begin with; by default that of the class.
            where: What the mapping is called where a key is refused; by default its path.
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
        """Return a struct's error with the line of the member it is about, and its path for the struct's own words."""
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
    """Return a key as it stands in a sentence."""
    return key if _PLAIN_KEY.match(key) else repr(key[:LONGEST_SHOWN])


def _no_yaml(text: str, error: yaml.YAMLError) -> GpuConstructsError:
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        problem = ", ".join(filter(None, (error.context, error.problem)))
    else:
        line, problem = line_of(text, getattr(error, "position", 0)), str(error).partition("\n")[0]
    way_out = "; use spaces" if "'\\t'" in problem else ""
    return GpuConstructsError(f"line {line}: text is not YAML: {problem}{way_out}")


def line_of(text: str, position: int) -> int:
    """Return the number of the line at a position."""
    return text.count("\n", 0, position) + 1
