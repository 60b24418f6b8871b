"""A chart's values held against the keys the chart really reads: the chart itself takes everything."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from gpu_constructs import _fields
from gpu_constructs._plain_data import below
from gpu_constructs._resources import Resources, container_resources
from gpu_constructs.errors import GpuConstructsError, warn
from gpu_constructs.placement import Toleration
from gpu_constructs.update_strategy import UpdateStrategy

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
_LONGEST_SHOWN = 80
_LONGEST_RELEASE_NAME = 53


@dataclass(frozen=True, kw_only=True)
class Key:
    """One key of a chart's values.

    Attributes:
        type: What the chart reads: ``bool``, ``text``, ``number``, ``list``, ``map``.
        to: Where its value goes in this library.
        why_not: Why it goes nowhere; empty where it does.
        releases: Chart releases that read it; empty for all we know.
        default: What the chart has for it: a mapping is laid over it, and null takes it away. None where
            neither matters.
    """

    type: str
    to: str = ""
    why_not: str = ""
    releases: Sequence[str] = ()
    default: Any = None


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
        if key is None and _is_section(path, keys):
            if value is not None or path != "global":
                self.refuse(path, f"must be a mapping, got {shown(value)}: the chart would fail; leave it out")
        elif key is None:
            path = path if path.isprintable() else repr(path)
            near = nearest(path, keys, self.release)
            hint = f" (did you mean {near!r}?)" if near else ""
            self.refuse(path, f"is no key of the chart, which would skip it without a word{hint}")
        elif key.releases and self.release not in key.releases:
            self.refuse(path, f"is no key of release {self.release}, which would skip it without a word; leave it out")
        elif key.why_not:
            if value not in (None, "", {}, [], key.default):
                self.refuse(path, key.why_not)
        elif value in (None, "") and path.endswith(("image.repository", "image.pullPolicy")):
            self.refuse(path, "cannot be taken over: the chart would render nothing there; leave it out")
        elif _is_nothing(value, key.type):
            self._read[path] = _NOTHING.get(key.type) if key.default else None
        elif not isinstance(value, _TYPES[key.type][1]) or (key.type.startswith("number") and isinstance(value, bool)):
            self.refuse(path, f"must be {_TYPES[key.type][0]}, got {shown(value)}{_quotes(key.type, value)}")
        else:
            if value != {} or not key.default:  # Helm lays an empty mapping over the chart's: nothing changes.
                self._read[path] = coalesced(key.default, value)

    def refuse(self, path: str, problem: str) -> None:
        """Raise for a key, or warn that it is dropped."""
        if self._strict:
            raise GpuConstructsError(f"values.{path} {problem}; or pass strict=False to drop it")
        warn(f"values.{path} is dropped: it {problem}")

    def contradict(self, path: str, file: str, member: str, stated: object, value: object) -> None:
        """Raise for a value that the chart would let override a file without a word, or warn that it does."""
        problem = f"says {value!r} and values.{file} says {stated!r} for {member}"
        if self._strict:
            raise GpuConstructsError(
                f"values.{path} {problem}: the chart lets the former win without a word; keep one of them, or pass "
                "strict=False to let it win here too"
            )
        warn(f"values.{path} wins: it {problem}")

    def attempt(self, path: str, make: Callable[[], _Made]) -> _Made | None:
        """Make something of a key's value; what is refused is the key's fault."""
        try:
            return make()
        except GpuConstructsError as error:
            self.refuse(path, f"cannot be taken over: {error.problem}")
            return None

    def accepts(self, path: str, check: Callable[[], object]) -> bool:
        """Tell whether a check of a key's value passes; if not, that is the key's fault."""
        return self.attempt(path, lambda: (check(),)) is not None

    def made_of(self, make: Callable[..., _Made], members: Mapping[str, tuple[str, Any]]) -> _Made:
        """Make something of its members, each with its key, that are not None.

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
        """Whether the user gave a value, null among them."""
        return path in self._read

    def get(self, path: str, default: Any = None) -> Any:
        """Give a value, or the default where there is none; null counts as none."""
        value = self._read.get(path)
        return default if value is None else value

    def below(self, prefix: str) -> dict[str, Any]:
        """Give the values under a prefix, null ones left out, by what follows it."""
        start = f"{prefix}."
        return {p.removeprefix(start): v for p, v in self._read.items() if p.startswith(start) and v is not None}


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
    """Name the key or section likely meant: nearly this word beside it, this word elsewhere, nearly this path."""
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


def shown(value: object) -> str:
    """Give a value as an error shows it, cut where it is long."""
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def _is_nothing(value: object, kind: str) -> bool:
    """Check whether a value takes the chart's own away: templates skip what is empty, such as [] for a mapping."""
    return value is None or (kind in ("list", "map") and not value and not isinstance(value, _TYPES[kind][1]))


def _quotes(kind: str, value: object) -> str:
    if kind == "text" and isinstance(value, bool | int | float):
        return "; quote it"
    if kind in ("bool", "number") and isinstance(value, str):
        return "; write it without quotes"
    return ""


def coalesced(default: Any, given: Any) -> Any:
    """Lay values over a chart's default as Helm does: maps merge, null deletes, everything else replaces."""
    if not isinstance(default, Mapping) or not isinstance(given, Mapping):
        return given
    merged = {**default, **{key: coalesced(default.get(key), value) for key, value in given.items()}}
    return {key: value for key, value in merged.items() if value is not None}


def object_name(
    read: Values,
    section: str,
    *,
    release_name: str,
    default: str,
    longest: int,
    check: Callable[[str, str], None],
) -> str:
    """Give what the names of objects begin with, as a chart does, shorter where more stands behind it.

    Args:
        read: The values.
        section: Where ``nameOverride`` and ``fullnameOverride`` stand, with its dot.
        release_name: Of the Helm release.
        default: The chart's name.
        longest: What the longest of the objects' names leaves of 63 characters.
        check: Refuses what Kubernetes would not take.
    """
    name = read.get(f"{section}nameOverride") or default
    overrides = {
        f"{section}fullnameOverride": read.get(f"{section}fullnameOverride"),
        f"{section}nameOverride": full_name(release_name, name),
    }
    for path, override in overrides.items():
        cut = (override or "")[: min(longest, 63)].rstrip("-.")
        if read.get(path) and read.accepts(path, partial(check, path, cut)):
            return cut
    return full_name(release_name, default)[:longest].rstrip("-.")


def full_name(release_name: str, name: str) -> str:
    """Give the name that a chart puts in front of its objects' names."""
    if len(release_name) > _LONGEST_RELEASE_NAME:
        raise GpuConstructsError(
            f"release_name must have at most {_LONGEST_RELEASE_NAME} characters, as Helm has it; got {release_name!r}"
        )
    return (release_name if name in release_name else f"{release_name}-{name}")[:63].rstrip("-")


def named(read: Values, path: str, check: Callable[[str, str], None]) -> str | None:
    """Give the name that a key holds; None where it holds none, or none that Kubernetes would take."""
    name = read.get(path)
    return name if name and read.accepts(path, partial(check, path, name)) else None


def secret_names(secrets: Sequence[Any]) -> list[str]:
    """Read references to Secrets as Kubernetes writes them."""
    names = []
    for secret in secrets:
        if not isinstance(secret, Mapping) or set(secret) != {"name"} or not isinstance(secret["name"], str):
            raise GpuConstructsError(f"imagePullSecrets must list mappings like {{'name': 'registry'}}; got {secret!r}")
        _fields.dns_subdomain("name", secret["name"])
        names.append(secret["name"])
    return names


def update_strategy(given: Mapping[str, Any]) -> UpdateStrategy:
    """Read an update strategy as Kubernetes writes it."""
    for key in given:
        _fields.one_of("updateStrategy key", key, ("type", "rollingUpdate"))
    numbers = given.get("rollingUpdate") or {}
    _fields.of_type("updateStrategy.rollingUpdate", numbers, Mapping)
    for key in numbers:
        _fields.one_of("updateStrategy.rollingUpdate key", key, ("maxUnavailable", "maxSurge"))
    return UpdateStrategy(
        type=given.get("type") or "RollingUpdate",
        max_unavailable=numbers.get("maxUnavailable"),
        max_surge=numbers.get("maxSurge"),
    )


def resources(read: Values, path: str, given: Any) -> dict[str, Any] | None:
    """Read the amounts of a container, each by itself; None where none of them can be taken over."""
    kept: dict[str, dict[str, Any]] = {}
    for section, amounts in given.items():
        for name, amount in amounts.items() if isinstance(amounts, Mapping) else [(None, amounts)]:
            place = f"{path}.{section}" if name is None else below(f"{path}.{section}", name)
            # Kubernetes reads an amount of 0.1 as it reads "0.1".
            said = str(amount) if type(amount) is float else amount
            if read.accepts(place, partial(_amount, section, name, said)) and name is not None:
                kept.setdefault(section, {})[name] = said
    return kept if kept and read.accepts(path, partial(container_resources, kept, default={})) else None


def _amount(section: str, name: object, amount: object) -> None:
    one = {section: amount if name is None else {name: amount}}
    _fields.of_type("resources", one, Resources)
    container_resources(one, default={})  # type: ignore[arg-type]


_TOLERATION = {
    "key": "key",
    "operator": "operator",
    "value": "value",
    "effect": "effect",
    "tolerationSeconds": "toleration_seconds",
}


def tolerations(read: Values, path: str) -> list[Toleration]:
    """Read tolerations as Kubernetes writes them."""
    made = [read.attempt(f"{path}[{i}]", partial(_toleration, one)) for i, one in enumerate(read.get(path, ()))]
    return [toleration for toleration in made if toleration is not None]


def _toleration(given: Any) -> Toleration:
    _fields.of_type("toleration", given, Mapping)
    for key in given:
        _fields.one_of("toleration key", key, tuple(_TOLERATION))
    members = {_TOLERATION[key]: value for key, value in given.items() if value not in (None, "")}
    return Toleration(**members)
