"""YAML of which every value knows its line and the path that leads to it, so that what is refused can be found."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeVar

import yaml
from yaml.constructor import SafeConstructor

from gpu_constructs.errors import GpuConstructsError

_Made = TypeVar("_Made")

LONGEST_SHOWN = 80
_PLAIN_KEY = re.compile(r"[\w.-]+\Z")


class Refused(GpuConstructsError):
    """A problem of the file, with the node that must go for it to go."""

    def __init__(self, problem: str, node: yaml.Node) -> None:
        super().__init__(problem)
        self.node = node


@dataclass(frozen=True)
class Value:
    """A value of the file with the path that leads to it and the line of its key.

    A dialect is a subclass with its own ``read``.
    """

    node: yaml.Node
    path: str
    line: int

    GIVEN_TWICE: ClassVar[str] = ""
    """What happens to a key that is given twice, behind a colon."""

    @staticmethod
    def read(node: yaml.ScalarNode) -> Any:
        """Give what a scalar means; ``ValueError`` for a number that cannot be read."""
        return SafeConstructor().construct_object(node)

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
        """Give an error with the value's line."""
        return Refused(f"line {self.line}: {problem}", (culprit or self).node)

    def scalar(self) -> Any:
        """Give a plain value: text, a number, a boolean or None."""
        if not isinstance(self.node, yaml.ScalarNode):
            raise self.refuse(f"{self.path} must be a plain value; got {self.shown}")
        try:
            value = self.read(self.node)
        except ValueError:
            raise self.refuse(f"{self.path} must be a number that can be read; got {self.shown}") from None
        if isinstance(value, int) and value.bit_length() > 63:
            raise self.refuse(f"{self.path} must be a number of at most 64 bits; got {self.shown}")
        return value

    def items(self) -> Mapping[str, Self]:
        """Give the members of a mapping, each key once."""
        if not isinstance(self.node, yaml.MappingNode):
            raise self.refuse(f"{self.path or 'the file'} must hold keys and values; got {self.shown}")
        found: dict[str, Self] = {}
        for key, value in self.node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode) or key.value == "<<":
                problem = f"{self.path or 'the file'} must have plain keys, neither merged (<<) nor composed"
                raise Refused(f"line {line}: {problem}", key)
            path = f"{self.path}.{key_in_words(key.value)}".removeprefix(".")
            if key.value in found:
                before = found[key.value]
                raise Value(before.node, path, line).refuse(
                    f"{path} is given twice (before on line {before.line}){self.GIVEN_TWICE}; keep one"
                )
            found[key.value] = type(self)(value, path, line)
        return found

    def elements(self) -> list[Self]:
        """Give the elements of a list."""
        if not isinstance(self.node, yaml.SequenceNode):
            raise self.refuse(f"{self.path} must be a list; got {self.shown}")
        return [
            type(self)(element, f"{self.path}[{index}]", element.start_mark.line + 1)
            for index, element in enumerate(self.node.value)
        ]

    def at(self, make: Callable[[], _Made]) -> _Made:
        """Make something of the value; what is refused gets the value's line."""
        try:
            return make()
        except GpuConstructsError as error:
            raise self.refuse(error.problem) from None


def key_in_words(key: str) -> str:
    """Give a key as it stands in a sentence."""
    return key if _PLAIN_KEY.match(key) else repr(key[:LONGEST_SHOWN])
