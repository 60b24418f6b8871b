"""A chart's values held against the keys the chart really reads: the chart itself takes everything."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from gpu_constructs.errors import GpuConstructsError, warn
from gpu_constructs.kube.plain_data import shown, way_out

_Made = TypeVar("_Made")

_TYPES: Mapping[str, tuple[str, tuple[type, ...]]] = {
    "bool": ("true or false", (bool,)),
    "text": ("text", (str,)),
    "number": ("a whole number", (int,)),
    "number or text": ("a whole number or text", (int, str)),
    "list": ("a list", (list, tuple)),
    "map": ("a mapping", (Mapping,)),
}
_NOTHING: Mapping[str, Any] = {"bool": False, "text": "", "list": (), "map": {}}


@dataclass(frozen=True, kw_only=True)
class Key:
    """One key of a chart's values.

    Attributes:
        type: Type that the chart reads: ``bool``, ``text``, ``number``, ``list``, ``map``.
        into: Keyword that takes the value, with the member of its option class where it has one.
        convert: Name of the converter; empty where several keys make one value, which a function computes.
        note: What the documents say of it besides.
        why_not: Reason why it goes nowhere; empty where it does.
        releases: Chart releases that read it; empty for all known ones.
        default: Value in the chart: a mapping is laid over it, and null takes it away. None where neither matters.
        null: What null stands for, where that is more than nothing.
    """

    type: str
    into: str = ""
    convert: str = ""
    note: str = ""
    why_not: str = ""
    releases: Sequence[str] = ()
    default: Any = None
    null: Any = None


class Values:
    """The values that a chart would read, by dotted key, as Helm lays them over its defaults."""

    def __init__(self, values: Mapping[str, Any], keys: Mapping[str, Key], *, release: str, strict: bool) -> None:
        if not isinstance(values, Mapping):
            hints = {str: "; parse it: yaml.safe_load(text)", type(None): "; for an empty file pass {}"}
            raise GpuConstructsError(f"values must be a mapping, got {shown(values)}{hints.get(type(values), '')}")
        self.release = release
        self._strict = strict
        self._read: dict[str, Any] = {}
        for path, value in _leaves("", values, keys):
            self._take(path, value, keys)

    def _take(self, path: str, value: Any, keys: Mapping[str, Key]) -> None:
        key = keys.get(path)
        if key is None:
            self._refuse_unknown(path, value, keys)
        elif key.releases and self.release not in key.releases:
            self.refuse(path, f"is not a key of release {self.release}, which would skip it silently; leave it out")
        elif not key.why_not:
            self._keep(path, key, value)
        elif value not in (None, "", {}, [], key.default):
            self.refuse(path, key.why_not)

    def _refuse_unknown(self, path: str, value: Any, keys: Mapping[str, Key]) -> None:
        if not _is_section(path, keys):
            path = path if path.isprintable() else repr(path)
            near = nearest(path, keys, self.release)
            hint = f" (did you mean {near!r}?)" if near else ""
            self.refuse(path, f"is not a key of the chart, which would skip it silently{hint}")
        elif value is not None or path != "global":
            self.refuse(path, f"must be a mapping, got {shown(value)}: the chart would fail; leave it out")

    def _keep(self, path: str, key: Key, value: Any) -> None:
        words, types = _TYPES[key.type]
        if value in (None, "") and path.endswith(("image.repository", "image.pullPolicy")):
            self.refuse(path, "cannot be taken over: the chart would render nothing there; leave it out")
        elif _is_nothing(value, key.type):
            self._read[path] = _NOTHING.get(key.type) if key.default else key.null
        elif not isinstance(value, types) or (key.type.startswith("number") and isinstance(value, bool)):
            self.refuse(path, f"must be {words}, got {shown(value)}{way_out(value, key.type)}")
        elif value != {} or not key.default:  # Helm lays an empty mapping over the chart's: nothing changes.
            self._read[path] = coalesced(key.default, value)

    def refuse(self, path: str, problem: str) -> None:
        """Raise for a key, or warn that it is dropped."""
        if self._strict:
            raise GpuConstructsError(f"values.{path} {problem}; or pass strict=False to drop it")
        warn(f"values.{path} is dropped: it {problem}")

    def contradict(self, path: str, file: str, member: str, stated: object, value: object) -> None:
        """Raise for a value that the chart would let override a file silently, or warn that it does."""
        problem = f"says {value!r} and values.{file} says {stated!r} for {member}"
        if self._strict:
            raise GpuConstructsError(
                f"values.{path} {problem}: the chart lets the former win silently; keep one of them, or pass "
                "strict=False to let it win here too"
            )
        warn(f"values.{path} wins: it {problem}")

    def attempt(self, path: str, make: Callable[[], _Made]) -> _Made | None:
        """Return what is made of a key's value; what is refused is the key's fault."""
        try:
            return make()
        except GpuConstructsError as error:
            self.refuse(path, f"cannot be taken over: {error.problem}")
            return None

    def accepts(self, path: str, check: Callable[[], object]) -> bool:
        """Check whether a check of a key's value passes; if not, that is the key's fault."""
        return self.attempt(path, lambda: (check(),)) is not None

    def made_of(self, make: Callable[..., _Made], members: Mapping[str, tuple[str, Any]]) -> _Made:
        """Return what is made of the members, each with its key, that are not None.

        What is refused is the fault of the first that does not go with those before.
        """
        given = {member: (path, value) for member, (path, value) in members.items() if value is not None}
        try:
            return make(**{member: value for member, (_, value) in given.items()})
        except GpuConstructsError:
            kept: dict[str, Any] = {}
            for member, (path, value) in given.items():
                if self.accepts(path, partial(make, **kept, **{member: value})):
                    kept[member] = value
            return make(**kept)

    def __contains__(self, path: str) -> bool:
        """Check whether the user gave a value, null among them."""
        return path in self._read

    def get(self, path: str, default: Any = None) -> Any:
        """Return a value, or the default where there is none; null counts as none."""
        value = self._read.get(path)
        return default if value is None else value


def _leaves(prefix: str, values: Mapping[Any, Any], keys: Mapping[str, Key]) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        path = f"{prefix}{name}"
        if isinstance(value, Mapping) and path not in keys and _is_section(path, keys):
            yield from _leaves(f"{path}.", value, keys)
        else:
            yield path, value


def _is_section(path: str, keys: Mapping[str, Key]) -> bool:
    return any(known.startswith(f"{path}.") for known in keys)


def nearest(path: str, keys: Mapping[str, Key], release: str) -> str:
    """Return the key or section likely meant: nearly this word beside it, this word elsewhere, nearly this path."""
    real = [known for known, key in keys.items() if not key.why_not and release in (key.releases or (release,))]
    sections = [known[:end] for known in real for end, letter in enumerate(known) if letter == "."]
    names = dict.fromkeys((*real, *sections))
    section, _, word = path.rpartition(".")
    beside = {name.rpartition(".")[2]: name for name in names if name.rpartition(".")[0] == section}
    elsewhere = [name for name in names if name.rpartition(".")[2] == word]
    near = [
        *(beside[other] for other in difflib.get_close_matches(word, beside, n=1, cutoff=0.7)),
        *difflib.get_close_matches(path, elsewhere, n=1, cutoff=0.0),
        *difflib.get_close_matches(path, names, n=1, cutoff=0.8),
    ]
    return near[0] if near else ""


def _is_nothing(value: object, kind: str) -> bool:
    """Check whether a value takes the chart's own away: templates skip what is empty, such as [] for a mapping."""
    return value is None or (kind in ("list", "map") and not value and not isinstance(value, _TYPES[kind][1]))


def coalesced(default: Any, given: Any) -> Any:
    """Return values laid over a chart's default as Helm does it: maps merge, null deletes, everything else replaces."""
    if not isinstance(default, Mapping) or not isinstance(given, Mapping):
        return given
    merged = {**default, **{key: coalesced(default.get(key), value) for key, value in given.items()}}
    return {key: value for key, value in merged.items() if value is not None}
