"""Functions that copy mappings of the user as plain data for YAML and JSON, and that check their structure."""

from __future__ import annotations

import math
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from gpu_constructs.errors import GpuConstructsError, did_you_mean, refuse_if
from gpu_constructs.kube import fields
from gpu_constructs.records import dataclass, field, regex

_LARGEST = 2**53
"""Largest whole number that is exact in JavaScript and in other languages that store numbers as 64-bit floats."""

_DEEPEST = 64
_UNREADABLE = regex("[\x7f-\x9f\u2028\u2029\ufffe\uffff\ud800-\udfff]")
"""Characters that the YAML writer does not escape, although YAML readers reject them or read them as a new line."""


def plain(field: str, value: object, *, may_be_none: bool = False, depth: int = 0) -> Any:
    """Return a deep copy of a value as plain dicts, lists, texts and numbers.

    Args:
        field: Name of the value in messages.
        value: Value that the user passes.
        may_be_none: Whether the value, and the values in it, can be None; False by default.
        depth: Number of mappings and lists around the value; 0 by default.

    Raises:
        GpuConstructsError: The value contains itself or something that YAML does not support, or has too many nested
            levels. The message states the path of the invalid part.
    """
    if depth > _DEEPEST:
        whole = re.split(r"[.\[]", field, maxsplit=1)[0]
        raise GpuConstructsError(
            f"{whole} must have at most {_DEEPEST} nested levels, got more, or a recursive value, at "
            f"{field[:60]}.... Flatten it"
        )
    deeper = partial(plain, may_be_none=may_be_none, depth=depth + 1)
    if isinstance(value, Mapping):
        return {_key(field, key): deeper(below(field, key), item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [deeper(f"{field}[{index}]", item) for index, item in enumerate(value)]
    if value is None and not may_be_none:
        raise GpuConstructsError(f"{field} must have a value, got None. Set a value, or leave it out")
    return _plain_scalar(field, value)


def _plain_scalar(field: str, value: object) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        if _UNREADABLE.search(value):
            raise GpuConstructsError(
                f"{field} must be text that every YAML reader accepts, got {value!r}. Remove the control character or "
                "line separator"
            )
        return str.__str__(value)
    if isinstance(value, int | float):
        if not math.isfinite(value) or abs(value) > _LARGEST:
            raise GpuConstructsError(f"{field} must be a number within 2**53, got {value!r}. Write it as text")
        return int(value) if isinstance(value, int) else float(value)
    raise GpuConstructsError(f"{field} must be a value that YAML supports, got {value!r} ({type(value).__name__})")


def _key(field: str, key: object) -> str:
    if not isinstance(key, str):
        raise GpuConstructsError(f"{field} must have text keys, got {key!r}")
    refuse_if(not key.isprintable(), field, "have printable keys", key)
    return str.__str__(key)


def at(value: Any, place: str | Sequence[str | int], default: Any = None) -> Any:
    """Return the value at a path in nested mappings and lists. Return the default if the path has no value.

    The path is a text with dots, or a sequence of keys and of list indices.
    """
    for key in place.split(".") if isinstance(place, str) else place:
        is_item = isinstance(value, list) and isinstance(key, int) and key < len(value)
        value = value[key] if is_item else value.get(key) if isinstance(value, Mapping) else None
    return default if value is None else value


def merged(base: Any, over: Any) -> Any:
    """Return a mapping in which the values of a second mapping replace those of the first mapping.

    The function merges nested mappings in the same way. It replaces lists and other values.

    Args:
        base: First mapping.
        over: Second mapping, whose values take precedence.
    """
    if not isinstance(base, Mapping) or not isinstance(over, Mapping):
        return over
    return {**base, **{key: merged(base.get(key), value) for key, value in over.items()}}


def without(value: Any, place: str, prefix: str = "") -> Any:
    """Return a copy of a mapping or a list without the value at a path.

    For example, the path ``a.b`` removes the key ``b`` of ``a``. If a key of the path is missing, the function removes
    the value at the longest existing part of the path, such as ``a``.

    Args:
        value: Mapping or list.
        place: Path of the value to remove, as in error messages, for example ``a.b[0]['x.y']``.
        prefix: First part of ``place``, which is the path of ``value`` itself; empty by default.
    """
    keys = value if isinstance(value, Mapping) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        at_key = [f"{prefix}.{key}".lstrip("."), f"{prefix}[{key!r}]"]
        if not any(place == one or place.startswith((f"{one}.", f"{one}[")) for one in at_key):
            continue
        inner = value[key]
        for one in at_key:
            inner = without(inner, place, one)
        kept = {} if inner == value[key] else {key: inner}
        if isinstance(value, list):
            return [*value[:key], *kept.values(), *value[key + 1 :]]
        return {name: kept.get(key) if name == key else one for name, one in value.items() if name != key or kept}
    return value


def below(field: str, key: object) -> str:
    """Return the path of a key of a mapping, for messages.

    The path is ``field.key`` if the key is a word, otherwise ``field['key']``.
    """
    return f"{field}.{key}" if isinstance(key, str) and re.fullmatch(r"[\w-]+", key) else f"{field}[{key!r}]"


_LONGEST_SHOWN = 80
_DURATION = regex(r"(?:0|(?=.)(?:[0-9]+y)?(?:[0-9]+w)?(?:[0-9]+d)?(?:[0-9]+h)?(?:[0-9]+m)?(?:[0-9]+s)?(?:[0-9]+ms)?)\Z")
_SCALARS: Mapping[str, tuple[str, tuple[type, ...]]] = {
    "any": ("anything", (object,)),
    "bool": ("true or false", (bool,)),
    "text": ("text", (str,)),
    "duration": ("a duration like '15s'", (str,)),
    "number": ("a whole number", (int,)),
    "number or text": ("a whole number or text", (int, str)),
    "quantity": ("a number or text", (int, float, str)),
    "list": ("a list", (list, tuple)),
    "map": ("a mapping", (Mapping,)),
    "map or text": ("a mapping or text", (Mapping, str)),
}
# Shapes of resource amounts. In mappings of other shapes, a key 'memory' is not an amount of bytes.
_AMOUNTS = ("{number or text}", "{quantity}")


Problem = tuple[str, str]
"""Path of an invalid value, and the end of the message about it."""


@dataclass(frozen=True)
class Shapes:
    """A table of the valid structure of plain data. A shape is a text that describes the valid values of a key.

    A shape is a scalar type (``bool``, ``text``), a choice of words (``a|b``), a list (``[shape]``), a mapping with any
    keys (``{shape}``) or the name of a struct. A struct is a mapping that can have only the keys in this table. If the
    shape of a key ends with ``!``, the struct must have this key.

    Attributes:
        structs: Shapes of the keys of each struct, by name of the struct.
        reasons: For messages, the reason why a struct cannot have a key, by ``struct.key``.
    """

    structs: Mapping[str, Mapping[str, str]]
    reasons: Mapping[str, str] = field(default_factory=dict)

    def check(self, where: str, got: Any, shape: str) -> None:
        """Raise unless a value has the structure that a shape describes.

        Args:
            where: Path of the value in messages.
            got: Value.
            shape: Expected shape.

        Raises:
            GpuConstructsError: The value, or a value in it, does not have the expected shape. The message names the
                first such value.
        """
        for place, problem in self.problems(where, got, shape):
            raise GpuConstructsError(f"{place} {problem}")

    def problems(self, where: str, got: Any, shape: str) -> Iterator[Problem]:
        """Yield a pair for each value that does not have the expected shape: its path, and the end of a message.

        Args:
            where: Path of the value.
            got: Value to check.
            shape: Expected shape, as the docstring of ``Shapes`` describes it.
        """
        if shape in self.structs:
            yield from self._of_struct(where, got, shape)
        elif shape.startswith("["):
            if not (yield from _of_scalar(where, got, "list")):
                for index, item in enumerate(got):
                    yield from self.problems(f"{where}[{index}]", item, shape[1:-1])
        elif shape.startswith("{"):
            if not (yield from _of_scalar(where, got, "map")):
                yield from self._of_entries(where, got, shape)
        elif shape in _SCALARS:
            yield from _of_scalar(where, got, shape)
        elif got not in shape.split("|"):
            yield where, _no_word(got, shape.split("|"))

    def _of_entries(self, where: str, got: Mapping[Any, Any], shape: str) -> Iterator[Problem]:
        for name, item in got.items():
            place = f"{where}[{name!r}]"
            if not isinstance(name, str):
                yield where, f"must have text keys, got {name!r}. Quote it"
            elif item is not None:
                yield from self.problems(place, item, shape[1:-1])
                if shape in _AMOUNTS and fields.counts_bytes(name) and fields.lacks_unit(item):
                    yield place, fields.without_unit(item)

    def _of_struct(self, where: str, got: Any, struct: str) -> Iterator[Problem]:
        shapes = self.structs[struct]
        listed = ", ".join(shapes)
        if not isinstance(got, Mapping):
            yield where, f"must be a mapping of {listed}, got {shown(got)}. Write it as a mapping"
            return
        for name, value in got.items():
            if name not in shapes:
                why = self.reasons.get(f"{struct}.{name}", f"the keys are {listed}")
                yield f"{where}.{name}", f"is not supported: {why}, got {shown(value)}{did_you_mean(name, shapes)}"
            elif value is not None:
                yield from self.problems(f"{where}.{name}", value, shapes[name].removesuffix("!"))
        for name, shape in shapes.items():
            if shape.endswith("!") and got.get(name) in (None, ""):
                yield f"{where}.{name}", f"is missing, got {shown(got)}. Add it, or remove the entry"


def _no_word(got: Any, words: Sequence[str]) -> str:
    near = ". Quote it" if isinstance(got, bool) else did_you_mean(got, words) if isinstance(got, str) else ""
    return f"must be one of {', '.join(repr(word) for word in words if word)}, got {shown(got)}{near}"


def _of_scalar(where: str, got: Any, shape: str) -> Generator[Problem, None, bool]:
    """Check that a value has the right type. The check does not cover the items of a list or a mapping.

    Args:
        where: Path of the value.
        got: Value to check.
        shape: Name of the expected type: a scalar type such as ``bool``, or ``list`` or ``map``.

    Yields:
        Path of the value and the end of a message, if the type is wrong.

    Returns:
        Whether the type is wrong.
    """
    what, types = _SCALARS[shape]
    is_right = isinstance(got, types) and not (isinstance(got, bool) and shape not in ("bool", "any"))
    is_wrong = not is_right or (shape == "duration" and not _DURATION.match(got))
    if is_wrong:
        yield where, f"must be {what}, got {shown(got)}{way_out(got, shape)}"
    return is_wrong


def way_out(got: Any, shape: str) -> str:
    """Return the last sentence of the message about a value of the wrong shape, which states how to write the value."""
    if shape in ("bool", "number") and isinstance(got, str):
        return ". Write it without quotes"
    if "text" in shape and isinstance(got, bool | int | float):
        return ". Quote it"
    if shape == "text" and isinstance(got, Mapping) and set(got) == {"name"}:
        return ". Write the name alone"
    return {"list": ". Write it as a list", "map": ". Write it as a mapping"}.get(shape, "")


def shown(value: object) -> str:
    """Return the text of a value for messages, with at most 80 characters."""
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
