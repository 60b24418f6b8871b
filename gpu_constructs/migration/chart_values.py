"""Checks of Helm values against the keys that a Helm chart reads. Helm itself accepts unknown keys."""

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
    """The description of a key of the Helm values of a Helm chart, and of the conversion of its value.

    Attributes:
        type: Type that the Helm chart expects: ``bool``, ``text``, ``number``, ``number or text``, ``list`` or ``map``.
        into: Keyword of the construct that accepts the value. It can contain the attribute of an option class, such as
            ``node_feature_discovery.master.port``.
        convert: Name of the function that converts the value; empty if other code calculates the value from several
            keys.
        note: Text for the documentation of the key.
        why_not: Reason why the library cannot convert the value; empty if it can.
        is_ignored: Whether the Helm chart ignores the key. The library then ignores the key with a warning, even in
            strict mode.
        no_map: Text for the message about a mapping in place of a list, if the Helm chart ignores the mapping. Empty if
            the Helm chart fails with a mapping.
        releases: Releases of the component whose Helm charts read the key. Empty if all supported releases read it.
        default: Default of the Helm chart; None if the Helm chart has no default. Helm merges a mapping of the user
            with a default that is a mapping. Null in the Helm values removes the default.
        null: Value that the library uses if the Helm values contain null and the Helm chart has no default. None: no
            value.
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
    """The Helm values of the user, by dotted key.

    Keys that the user does not set are absent. A mapping of the user, such as the value of ``affinity``, also contains
    the defaults of the Helm chart, because Helm merges both mappings.
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
            self.refuse(
                path, f"is not a key of the Helm chart, which would silently skip it{hint}", is_ignored=not near
            )
        elif value is not None or path != "global":
            self.refuse(path, f"must be a mapping, got {shown(value)}: Helm could not render the chart. Leave it out")

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
        """Report a problem of a key: an error in strict mode, otherwise a warning that the library ignores the key.

        Args:
            path: Dotted path of the key.
            problem: Text that follows the key in the message.
            is_ignored: Whether the Helm chart also ignores the key, or the pods do not need its value. If True, the
                method only warns, even in strict mode. False by default.
        """
        self._problems.refuse(path, f"values.{path} {problem}", is_ignored=is_ignored)

    def warn(self, path: str, sentence: str) -> None:
        """Warn about a key whose value the library converts.

        Args:
            path: Dotted path of the key.
            sentence: Text that follows the key in the message.
        """
        self._problems.warn(path, f"values.{path} {sentence}")

    def contradict(self, path: str, file: str, member: str, stated: object, value: object) -> None:
        """Report that a Helm value silently overrides the value of a setting in a configuration file.

        The report is an error in strict mode, and otherwise a warning.

        Args:
            path: Dotted path of the Helm key.
            file: Dotted path of the Helm key that contains the configuration file, such as ``config.map.default``.
            member: Name of the setting in the configuration file.
            stated: Value in the configuration file.
            value: Helm value that overrides the value in the configuration file.
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
        """Call the function ``make``, and return its result.

        If the function raises an error, report this error as a problem of the Helm key ``path``, and return None.
        """
        try:
            return make()
        except GpuConstructsError as error:
            self.refuse(path, f"is not convertible: {error.problem}")
            return None

    def accepts(self, path: str, check: Callable[[], object]) -> bool:
        """Call the function ``check``. Return True if it raises no error.

        If the function raises an error, report this error as a problem of the Helm key ``path``, and return False.
        """
        return self.attempt(path, lambda: (check(),)) is not None

    def made_of(self, make: Callable[..., _Made], members: Mapping[str, tuple[str, Any]]) -> _Made:
        """Return the object that ``make`` creates from Helm values, without invalid arguments.

        The method omits arguments whose value is None. If ``make`` raises an error, the method adds the arguments one
        by one. It omits each argument with which ``make`` raises an error, and reports a problem of its Helm key.

        Args:
            make: Class or function that creates the object from keyword arguments.
            members: Pairs of the Helm key and the value, by name of the argument.
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
        """Replace the value of the key ``path``."""
        self._read[path] = value

    def __contains__(self, path: str) -> bool:
        """Check whether the Helm values of the user contain the key ``path``. Its value can be null."""
        return path in self._read

    def get(self, path: str, default: Any = None) -> Any:
        """Return the value of the key ``path``. Return ``default`` if the value is missing or null."""
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
    """Check whether the user probably passes the values of a parent chart instead of the values of this Helm chart.

    In the values of a parent chart, the values of this Helm chart are below an unknown key, such as ``gpu-operator``.
    The result is True if most keys below the unknown key are keys of this Helm chart.

    Args:
        value: Value of the unknown key.
        path: Dotted path of the unknown key.
        near: Key of this Helm chart that resembles the unknown key most; empty if there is none. If both keys have the
            same last word, the result is False, because the user probably means ``near``.
        is_read: Function that checks whether this Helm chart has a key or a section with a given name.
    """
    is_elsewhere = near.rpartition(".")[2] == path.rpartition(".")[2]
    return isinstance(value, Mapping) and not is_elsewhere and sum(map(is_read, map(str, value))) > len(value) / 2


def _is_read(path: str, keys: Mapping[str, Key]) -> bool:
    """Check whether ``keys`` contains the dotted path ``path``, as a key or as a section such as ``image``."""
    return any(f"{known}.".startswith(f"{path}.") for known in keys)


def nearest(path: str, keys: Mapping[str, Key], release: str) -> str:
    """Return the key or section of a Helm chart that resembles an unknown key most, for a suggestion in a message.

    Return an empty text if no key is similar. First, the function compares the last word of the unknown key with the
    keys in the same section. Then it searches other sections for a key with the same last word. Finally, it compares
    the whole dotted path.

    Args:
        path: Dotted path of the unknown key.
        keys: Descriptions of the keys of the Helm chart, by dotted path.
        release: Release of the component. The function considers only keys that the Helm chart of this release reads.
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
    """Return the keys in other sections of a Helm chart with the same last word as an unknown key.

    If some of these keys are directly in a parent section of the unknown key, return only those. Otherwise, if there
    are more than two keys, return an empty list.

    Args:
        section: Dotted path of the section that contains the unknown key.
        word: Last word of the unknown key.
        names: Dotted paths of the keys and sections of the Helm chart.
    """
    same = [name for name in names if name.rpartition(".")[2] == word]
    around = [name for name in same if f"{section}.".startswith(name[: -len(word)])]
    return around or (same if len(same) <= _FEW else [])


def _is_near(name: str, path: str) -> bool:
    words = list(zip(name.split("."), path.split("."), strict=False))
    is_near = all(difflib.SequenceMatcher(None, *pair).ratio() >= _NEAR for pair in words)
    return name.count(".") == path.count(".") and is_near


def _is_nothing(value: object, kind: str) -> bool:
    """Check whether a Helm value removes the default of the Helm chart.

    The value null does so. In place of a list or a mapping, an empty value of another type also does so, such as an
    empty text.

    Args:
        value: Helm value.
        kind: Type that the Helm chart expects, as in ``Key.type``.
    """
    return value is None or (kind in ("list", "map") and not value and not isinstance(value, _TYPES[kind][1]))


def coalesced(default: Any, given: Any) -> Any:
    """Return the Helm value ``given`` merged into the default of the Helm chart. As in Helm, null removes a key."""
    if not isinstance(default, Mapping) or not isinstance(given, Mapping):
        return given
    merged = {**default, **{key: coalesced(default.get(key), value) for key, value in given.items()}}
    return {key: value for key, value in merged.items() if value is not None}
