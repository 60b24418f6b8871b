"""Checks of Helm values against the keys that a chart reads. The chart itself accepts every key."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube.plain_data import shown, way_out
from gpu_constructs.migration.problems import Problems
from gpu_constructs.records import dataclass

_Made = TypeVar("_Made")

_TYPES: Mapping[str, tuple[str, tuple[type, ...]]] = {
    "bool": ("true or false", (bool,)),
    "text": ("text", (str,)),
    "number": ("a whole number", (int,)),
    "number or text": ("a whole number or text", (int, str)),
    "list": ("a list", (list, tuple)),
    "map": ("a mapping", (Mapping,)),
}
_FEW, _NEAR = 2, 0.75
PARENT = "it contains keys of the chart. Pass only the values below"
_NOTHING: Mapping[str, Any] = {"bool": False, "text": "", "list": (), "map": {}}


@dataclass(frozen=True, kw_only=True)
class Key:
    """A key of the Helm values of a chart, and what the library does with its value.

    Attributes:
        type: Type that the chart expects: ``bool``, ``text``, ``number``, ``number or text``, ``list`` or ``map``.
        into: Keyword that accepts the value. If the value is for an option class, also the attribute of this class.
        convert: Name of the function that converts the value; empty if other code calculates the value from several
            keys.
        note: Text for the documentation of the key.
        why_not: Reason why the library cannot convert the value; empty if it can.
        is_ignored: Whether the chart ignores the key. The library then drops the key even in strict mode.
        no_map: Reason why a mapping has no effect, for a key whose value must be a list. Empty if the chart fails with
            a mapping.
        releases: Chart releases that read the key. Empty if all supported releases read it.
        default: Default of the chart; None if the chart has none. Helm merges a mapping of the user with a default that
            is a mapping. Null in the Helm values removes the default.
        null: Value that the library uses if the Helm values contain null and the chart has no default. None: no value.
    """

    type: str
    into: str = ""
    convert: str = ""
    note: str = ""
    why_not: str = ""
    is_ignored: bool = False
    no_map: str = ""
    releases: Sequence[str] = ()
    default: Any = None
    null: Any = None


class Values:
    """The Helm values that a chart reads, by dotted key.

    They are the user's values, merged with the defaults of the chart as Helm does it.
    """

    def __init__(
        self,
        values: Mapping[str, Any],
        keys: Mapping[str, Key],
        *,
        release: str,
        strict: bool | Problems,
        meant: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        if not isinstance(values, Mapping):
            hints = {str: ". Parse it: yaml.safe_load(text)", type(None): "; for an empty file pass {}"}
            raise GpuConstructsError(f"values must be a mapping, got {shown(values)}{hints.get(type(values), '')}")
        self.release, self._meant = release, meant
        self._problems = (
            strict if isinstance(strict, Problems) else Problems(values, strict=strict, is_first_raised=True)
        )
        self._read: dict[str, Any] = {}
        for path, value in _leaves("", values, keys):
            self._take(path, value, keys)

    def _take(self, path: str, value: Any, keys: Mapping[str, Key]) -> None:
        key = keys.get(path)
        if key is None:
            self._refuse_unknown(path, value, keys)
        elif key.releases and self.release not in key.releases:
            problem = f"is not a key of release {self.release}, which would silently skip it. Leave it out"
            self.refuse(path, problem, is_ignored=True)
        elif not key.why_not:
            self._keep(path, key, value)
        elif value not in (None, "", {}, [], key.default):
            self.refuse(path, key.why_not, is_ignored=key.is_ignored)

    def _refuse_unknown(self, path: str, value: Any, keys: Mapping[str, Key]) -> None:
        if not _is_read(path, keys):
            path = path if path.isprintable() else repr(path)
            near = self._meant.get(path) or nearest(path, keys, self.release)
            hint = f" (did you mean {near!r}?)" if near else ". Leave it out"
            if path not in self._meant and is_parent_of(
                value, path, near, lambda name: _is_read(f"{path[: path.rfind('.') + 1]}{name}", keys)
            ):
                near, hint = path, f": {PARENT} {path!r}"
            self.refuse(path, f"is not a key of the chart, which would silently skip it{hint}", is_ignored=not near)
        elif value is not None or path != "global":
            self.refuse(path, f"must be a mapping, got {shown(value)}: the chart would fail. Leave it out")

    def _keep(self, path: str, key: Key, value: Any) -> None:
        words, types = _TYPES[key.type]
        if value in (None, "") and path.endswith(("image.repository", "image.pullPolicy")):
            self.refuse(path, "is not convertible, because the chart would render an empty value. Leave it out")
        elif _is_nothing(value, key.type):
            self._read[path] = _NOTHING.get(key.type) if key.default else key.null
        elif isinstance(value, Mapping) and key.no_map:
            self.refuse(path, key.no_map, is_ignored=True)
        elif not isinstance(value, types) or (key.type.startswith("number") and isinstance(value, bool)):
            self.refuse(path, f"must be {words}, got {shown(value)}{way_out(value, key.type)}")
        elif value != {} or not key.default:  # An empty mapping does not change the default.
            self._read[path] = coalesced(key.default, value)

    def refuse(self, path: str, problem: str, *, is_ignored: bool = False) -> None:
        """Report a key as an error in strict mode. Otherwise, warn that the library drops the key.

        Args:
            path: Dotted path of the key.
            problem: Text that follows the key in the message.
            is_ignored: Whether the chart ignores the key too, or no program needs its value. Then the library drops the
                key in both modes.
        """
        self._problems.refuse(path, f"values.{path} {problem}", is_ignored=is_ignored)

    def warn(self, path: str, sentence: str) -> None:
        """Warn about a key whose value the library converts."""
        self._problems.warn(path, f"values.{path} {sentence}")

    def contradict(self, path: str, file: str, member: str, stated: object, value: object) -> None:
        """Report that a Helm value silently overrides a different setting in a configuration file of the Helm values.

        The report is an error in strict mode, and otherwise a warning.

        Args:
            path: Dotted path of the Helm key.
            file: Dotted path of the key with the configuration file.
            member: Name of the setting in this file.
            stated: Value in the file.
            value: Value that overrides it.
        """
        problem = f"is {value!r}, but values.{file} has {stated!r} for {member}"
        if self._problems.is_strict:
            self._problems.add(
                path,
                f"values.{path} {problem}: the chart silently uses values.{path}. Keep one of the two, or pass "
                f"strict=False to use values.{path} here too",
                is_droppable=False,
            )
        else:
            self._problems.warn(path, f"values.{path} {problem}. Both the chart and this library use values.{path}")

    def attempt(self, path: str, make: Callable[[], _Made]) -> _Made | None:
        """Call a function, and return its result.

        If the function raises an error, report this error as a problem of the Helm key ``path``, and return None.
        """
        try:
            return make()
        except GpuConstructsError as error:
            self.refuse(path, f"is not convertible: {error.problem}")
            return None

    def accepts(self, path: str, check: Callable[[], object]) -> bool:
        """Check whether a value passes a check. Return True if it does.

        If the check raises an error, report this error as a problem of the Helm key ``path``, and return False.
        """
        return self.attempt(path, lambda: (check(),)) is not None

    def made_of(self, make: Callable[..., _Made], members: Mapping[str, tuple[str, Any]]) -> _Made:
        """Create an object from Helm values, without the arguments whose value is None.

        If ``make`` raises an error, the method adds the arguments one by one. If ``make`` raises an error with an
        argument, the method omits the argument, and reports a problem of its Helm key.

        Args:
            make: Function or class that creates the object.
            members: Helm key and value of each argument, by name of the argument.
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

    def replace(self, path: str, value: Any) -> None:
        """Replace the value of a key. Later reads return the new value."""
        self._read[path] = value

    def __contains__(self, path: str) -> bool:
        """Check whether the user specifies a value for a key. The value can be null."""
        return path in self._read

    def get(self, path: str, default: Any = None) -> Any:
        """Return the value of a key. Return the default if the value is missing or null."""
        value = self._read.get(path)
        return default if value is None else value


def _leaves(prefix: str, values: Mapping[Any, Any], keys: Mapping[str, Key]) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        path = f"{prefix}{name}"
        if isinstance(value, Mapping) and path not in keys and _is_read(path, keys):
            yield from _leaves(f"{path}.", value, keys)
        else:
            yield path, value


def is_parent_of(value: Any, path: str, near: str, is_read: Callable[[str], bool]) -> bool:
    """Check whether the values are probably those of a parent chart, with the name of this chart as the unknown key.

    This is probable if most keys below the unknown key are keys of this chart.

    Args:
        value: Value of the unknown key.
        path: Dotted path of the unknown key.
        near: Key of this chart that resembles the unknown key most; empty if there is none. If its last word equals
            that of the unknown key, the result is False.
        is_read: Function that checks whether this chart has a key or a section with a given name.
    """
    is_elsewhere = near.rpartition(".")[2] == path.rpartition(".")[2]
    return isinstance(value, Mapping) and not is_elsewhere and sum(map(is_read, map(str, value))) > len(value) / 2


def _is_read(path: str, keys: Mapping[str, Key]) -> bool:
    """Check whether the chart has a key or a section with this dotted path."""
    return any(f"{known}.".startswith(f"{path}.") for known in keys)


def nearest(path: str, keys: Mapping[str, Key], release: str) -> str:
    """Return the key or section of the chart that resembles an unknown key most. Return an empty text if none does.

    First, the function compares the last word of the unknown key with the last words of the keys in the same section.
    Then it searches the other sections for a key with the same last word. At last, it compares the whole dotted path.
    """
    real = [known for known, key in keys.items() if not key.why_not and release in (key.releases or (release,))]
    sections = [known[:end] for known in real for end, letter in enumerate(known) if letter == "."]
    names = dict.fromkeys((*real, *sections))
    section, _, word = path.rpartition(".")
    beside = {name.rpartition(".")[2]: name for name in names if name.rpartition(".")[0] == section}
    near = [
        *(beside[other] for other in difflib.get_close_matches(word, beside, n=1, cutoff=_NEAR)),
        *difflib.get_close_matches(path, _elsewhere(section, word, names), n=1, cutoff=0.0),
        *(name for name in difflib.get_close_matches(path, names, n=1, cutoff=0.8) if _is_near(name, path)),
    ]
    return near[0] if near else ""


def _elsewhere(section: str, word: str, names: Iterable[str]) -> list[str]:
    """Return keys of a chart that a user may mean with an unknown key.

    All these keys have the same last word as the unknown key. If some of them are in the section of the unknown key, or
    in a section that contains that section, return only those. Otherwise, return all, or none if there are too many.

    Args:
        section: Dotted path of the section that contains the unknown key.
        word: Last word of the unknown key.
        names: Dotted paths of the keys and sections of the chart.
    """
    same = [name for name in names if name.rpartition(".")[2] == word]
    around = [name for name in same if f"{section}.".startswith(name[: -len(word)])]
    return around or (same if len(same) <= _FEW else [])


def _is_near(name: str, path: str) -> bool:
    words = list(zip(name.split("."), path.split("."), strict=False))
    is_near = all(difflib.SequenceMatcher(None, *pair).ratio() >= _NEAR for pair in words)
    return name.count(".") == path.count(".") and is_near


def _is_nothing(value: object, kind: str) -> bool:
    """Check whether a Helm value removes the default of the chart.

    Such a value is null, or an empty value of another type where the chart expects a list or a mapping.

    Args:
        value: Helm value.
        kind: Type that the chart expects, as in ``Key.type``.
    """
    return value is None or (kind in ("list", "map") and not value and not isinstance(value, _TYPES[kind][1]))


def coalesced(default: Any, given: Any) -> Any:
    """Return the default of a chart with Helm values merged over it. As in Helm, null removes a key."""
    if not isinstance(default, Mapping) or not isinstance(given, Mapping):
        return given
    merged = {**default, **{key: coalesced(default.get(key), value) for key, value in given.items()}}
    return {key: value for key, value in merged.items() if value is not None}
