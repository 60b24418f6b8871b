"""The user's own mappings: copied as plain data, which YAML and JSON hold alike, and held against shapes of a table."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from gpu_constructs.errors import GpuConstructsError, did_you_mean, refuse_if
from gpu_constructs.kube import fields

_LARGEST = 2**53
"""Up to here JSON's numbers, which are JavaScript's, are exact."""

_DEEPEST = 64
_UNREADABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufffe\uffff\ud800-\udfff]")
"""Manifests are written with these as they are, and readers of YAML take them for a new line, or for no text."""


def plain(field: str, value: object, *, may_be_none: bool = False, depth: int = 0) -> Any:
    """Copy dicts, lists, texts and numbers, of whatever class they are; what is given may change later.

    Args:
        field: For errors.
        value: What the user gave.
        may_be_none: Whether None means something where it goes.
        depth: How many mappings and lists hold it.

    Raises:
        GpuConstructsError: Anything else, named by its place; mappings and lists nested without an end.
    """
    if depth > _DEEPEST:
        whole = re.split(r"[.\[]", field, maxsplit=1)[0]
        raise GpuConstructsError(
            f"{whole} must be nested at most {_DEEPEST} deep; got one that is deeper, or holds itself, at "
            f"{field[:60]}...; flatten it"
        )
    deeper = partial(plain, may_be_none=may_be_none, depth=depth + 1)
    if isinstance(value, Mapping):
        return {_key(field, key): deeper(below(field, key), item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [deeper(f"{field}[{index}]", item) for index, item in enumerate(value)]
    if value is None and not may_be_none:
        raise GpuConstructsError(f"{field} must have a value; got None; leave it out")
    return _plain_scalar(field, value)


def _plain_scalar(field: str, value: object) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        if _UNREADABLE.search(value):
            raise GpuConstructsError(
                f"{field} must be text that every reader of YAML takes; got {value!r}; leave out the control character "
                "or line separator in it"
            )
        return str.__str__(value)
    if isinstance(value, int | float):
        if not math.isfinite(value) or abs(value) > _LARGEST:
            raise GpuConstructsError(f"{field} must be a number within 2**53; got {value!r}; write it as text")
        return int(value) if isinstance(value, int) else float(value)
    raise GpuConstructsError(f"{field} must be what YAML can hold; got {value!r} ({type(value).__name__})")


def _key(field: str, key: object) -> str:
    if not isinstance(key, str):
        raise GpuConstructsError(f"{field} must have text for keys; got {key!r}")
    refuse_if(not key.isprintable(), field, "have printable text for keys", key)
    return str.__str__(key)


def at(value: Any, place: str | Sequence[str], default: Any = None) -> Any:
    """Return what lies at a place, dotted or as keys, or the default."""
    for key in place.split(".") if isinstance(place, str) else place:
        value = value.get(key) if isinstance(value, Mapping) else None
    return default if value is None else value


def below(field: str, key: object) -> str:
    """Return the place of a key: behind a dot where it is a word, else in brackets."""
    return f"{field}.{key}" if isinstance(key, str) and re.fullmatch(r"[\w-]+", key) else f"{field}[{key!r}]"


_LONGEST_SHOWN = 80
_DURATION = re.compile(
    r"(?:0|(?=.)(?:[0-9]+y)?(?:[0-9]+w)?(?:[0-9]+d)?(?:[0-9]+h)?(?:[0-9]+m)?(?:[0-9]+s)?(?:[0-9]+ms)?)\Z"
)
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
# Shapes of resources; other mappings may have a key 'memory' too.
_AMOUNTS = ("{number or text}", "{quantity}")


@dataclass(frozen=True)
class Shapes:
    """A table of structs, which plain data is held against.

    A shape is a scalar (``bool``, ``text``), words to choose from (``a|b``), ``[shape]`` for a list, ``{shape}`` for a
    mapping with any keys, or the name of a struct: a mapping with the listed keys alone, of which those with ``!`` are
    required.

    Attributes:
        structs: Shapes of the keys of each struct.
        reasons: Why a key is not taken, by ``struct.key``.
    """

    structs: Mapping[str, Mapping[str, str]]
    reasons: Mapping[str, str] = field(default_factory=dict)

    def check(self, where: str, got: Any, shape: str) -> None:
        """Check a value against a shape.

        Raises:
            GpuConstructsError: The value, or one inside it, has another shape. The first one is named.
        """
        if shape in self.structs:
            self._check_struct(where, got, shape)
        elif shape.startswith("["):
            _check_scalar(where, got, "list")
            for index, item in enumerate(got):
                self.check(f"{where}[{index}]", item, shape[1:-1])
        elif shape.startswith("{"):
            _check_scalar(where, got, "map")
            self._check_entries(where, got, shape)
        elif shape in _SCALARS:
            _check_scalar(where, got, shape)
        else:
            _check_word(where, got, shape)

    def _check_entries(self, where: str, got: Mapping[Any, Any], shape: str) -> None:
        for name, item in got.items():
            refuse_if(not isinstance(name, str), where, "have texts for keys", name, way_out="quote it")
            if item is None:
                continue
            place = f"{where}[{name!r}]"
            self.check(place, item, shape[1:-1])
            if shape in _AMOUNTS and fields.counts_bytes(name) and fields.lacks_unit(item):
                raise GpuConstructsError(f"{place} {fields.without_unit(item)}")

    def _check_struct(self, where: str, got: Any, struct: str) -> None:
        shapes = self.structs[struct]
        listed = ", ".join(shapes)
        if not isinstance(got, Mapping):
            raise GpuConstructsError(f"{where} must be a mapping of {listed}; got {shown(got)}; write it as one")
        for name, value in got.items():
            if name not in shapes:
                why = self.reasons.get(f"{struct}.{name}", f"it takes {listed}")
                near = did_you_mean(name, shapes)
                raise GpuConstructsError(f"{where}.{name} is not taken: {why}; got {shown(value)}{near}")
            if value is not None:
                self.check(f"{where}.{name}", value, shapes[name].removesuffix("!"))
        for name, shape in shapes.items():
            if shape.endswith("!") and got.get(name) in (None, ""):
                raise GpuConstructsError(
                    f"{where}.{name} is required; got {shown(got)}; add it, or leave the entry out"
                )


def _check_word(where: str, got: Any, shape: str) -> None:
    words = shape.split("|")
    if got not in words:
        near = "; quote it" if isinstance(got, bool) else did_you_mean(got, words) if isinstance(got, str) else ""
        listed = ", ".join(repr(word) for word in words if word)
        raise GpuConstructsError(f"{where} must be one of {listed}; got {shown(got)}{near}")


def _check_scalar(where: str, got: Any, shape: str) -> None:
    what, types = _SCALARS[shape]
    is_right = isinstance(got, types) and not (isinstance(got, bool) and shape not in ("bool", "any"))
    if not is_right or (shape == "duration" and not _DURATION.match(got)):
        raise GpuConstructsError(f"{where} must be {what}; got {shown(got)}{way_out(got, shape)}")


def way_out(got: Any, shape: str) -> str:
    """Return how to write a value of another shape, as the end of a sentence about it."""
    if shape in ("bool", "number") and isinstance(got, str):
        return "; write it without quotes"
    if "text" in shape and isinstance(got, bool | int | float):
        return "; quote it"
    if shape == "text" and isinstance(got, Mapping) and set(got) == {"name"}:
        return "; write the name alone"
    return {"list": "; write it as a list", "map": "; write it as one"}.get(shape, "")


def shown(value: object) -> str:
    """Return a value as an error shows it, cut if it is long."""
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
