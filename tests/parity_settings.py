"""What the programs of the plugin's image run with, wherever it is said: variable over file over built-in default.

Source: NVIDIA/k8s-device-plugin@v0.18.2 and @v0.20.0: api/config/v1, cmd/*/main.go.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any

from gpu_constructs.cli.compare.fields import Fields, Path, Value, canonical
from parity_cases import UnreadableCase, facts, load

PROGRAMS = {"plugin": "nvidia-device-plugin-ctr", "gfd": "gpu-feature-discovery-ctr", "mps": "mps-control-daemon-ctr"}
"""The programs that read the file, and the containers they run in on both sides."""

_ALL = ("plugin", "gfd", "mps")


@dataclass(frozen=True)
class Setting:
    """A key of the file: the variables over it, first wins, and the programs that read it."""

    path: str
    env: tuple[str, ...]
    default: Value
    read_by: tuple[str, ...] = ("plugin",)
    kind: str = "text"
    gfd_env: tuple[str, ...] = ()
    since: tuple[int, ...] = ()

    def variables(self, program: str) -> tuple[str, ...]:
        if program not in self.read_by or (program == "mps" and self.path != "flags.migStrategy"):
            return ()
        return (*(self.gfd_env if program == "gfd" else ()), *self.env)


SETTINGS = tuple(
    Setting(**{member: tuple(given) if isinstance(given, list) else given for member, given in row.items()})
    for row in facts("device-plugin")
)

_SHARING = ("timeSlicing", "mps")
_TRUE = frozenset("1 t T TRUE true True".split())
_FALSE = frozenset("0 f F FALSE false False".split())
_DURATION = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?(?:ns|us|µs|ms|s|m|h))+\Z")
_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?)(ns|us|µs|ms|s|m|h)")
_SECONDS = {
    "ns": Decimal("1e-9"),
    "us": Decimal("1e-6"),
    "µs": Decimal("1e-6"),
    "ms": Decimal("1e-3"),
    "s": Decimal(1),
    "m": Decimal(60),
    "h": Decimal(3600),
}


def release_of(version: str) -> tuple[int, ...]:
    """Return a version's first two numbers, to compare by."""
    return tuple(int(part) for part in re.findall(r"[0-9]+", version)[:2])


@cache
def known(version: str) -> tuple[Setting, ...]:
    """The settings that the programs of a release have."""
    return tuple(setting for setting in SETTINGS if setting.since <= release_of(version))


def file_settings(text: str, version: str) -> Fields:
    """Return every leaf of a file: what the programs understand under its key, the rest below ``ignored``."""
    try:
        document = load(text)
    except UnreadableCase:
        return {("unreadable",): text}
    if document is None:
        return {}
    if not isinstance(document, Mapping):
        return {("unreadable",): text}
    found: Fields = {}
    kinds = {setting.path: setting.kind for setting in known(version)}
    for path, value in _leaves_of_file(document):
        if ".".join(path) in kinds:
            found[path] = _from_file(value, kinds[".".join(path)])
        elif path == ("version",) and value in ("v1", ""):
            continue
        else:
            found["ignored", *path] = canonical(value)
    found.update(_sharing(_lowered(document).get("sharing"), version))
    return found


def _lowered(document: Any) -> dict[str, Any]:
    """Keys of Go's structs are found whatever their case; the last of several wins."""
    return {key.lower(): value for key, value in document.items()} if isinstance(document, Mapping) else {}


_STRUCTS: dict[Path, dict[str, str]] = {
    (): {"version": "version", "flags": "flags", "resources": "resources", "sharing": "sharing", "imex": "imex"}
}
for _setting in SETTINGS:
    *_parents, _key = _setting.path.split(".")
    _STRUCTS.setdefault(tuple(_parents), {})[_key.lower()] = _key
_STRUCTS["flags",] |= {"plugin": "plugin", "gfd": "gfd"}


def _leaves_of_file(document: Mapping[str, Any], path: Path = ()) -> Iterator[tuple[Path, Any]]:
    names = _STRUCTS[path]
    for key, value in document.items():
        here = (*path, names.get(key.lower(), key))
        if here == ("sharing",) or value is None:
            continue
        if here in _STRUCTS and isinstance(value, Mapping):
            yield from _leaves_of_file(value, here)
        else:
            yield here, value


def _from_file(value: Any, kind: str) -> Value:
    if kind == "set":
        return _as_set(value if isinstance(value, list) else [value])
    if kind == "numbers":
        return ",".join(map(str, value)) if isinstance(value, list) else canonical(value)
    if kind == "duration":
        # A bare number in the file is nanoseconds.
        return _duration(f"{value}ns" if isinstance(value, int | float) else str(value))
    return value if isinstance(value, bool | str) else canonical(value)


def _from_variable(text: Value, kind: str) -> Value:
    if not isinstance(text, str):
        # No variable at all: the API server takes text only.
        return text
    if kind == "bool":
        return True if text in _TRUE else False if text in _FALSE else text
    if kind == "set":
        return _as_set([part.strip() for part in text.split(",")])
    if kind == "duration":
        return _duration(text)
    return text


def of_text(text: Value, path: str) -> Value:
    """Return a setting from the text of a variable, for comparing with what a file says."""
    return _from_variable(text, next((setting.kind for setting in SETTINGS if setting.path == path), "text"))


def _as_set(words: list[Any]) -> str:
    return ",".join(sorted({str(word) for word in words}))


def _duration(text: str) -> str:
    if not _DURATION.match(text):
        return text
    seconds = sum((Decimal(amount) * _SECONDS[unit] for amount, unit in _PART.findall(text)), Decimal(0))
    return f"{seconds.normalize():f}s"


def _sharing(section: Any, version: str) -> Iterator[tuple[Path, Value]]:
    if section is None:
        return
    if not isinstance(section, Mapping):
        yield ("ignored", "sharing"), canonical(section)
        return
    names = {name.lower(): name for name in _SHARING}
    kinds = {names.get(key.lower(), key): value for key, value in section.items()}
    # A null timeSlicing is refused by the plugin, a null mps is none.
    used = next((kind for kind in ("mps", "timeSlicing") if kinds.get(kind) is not None), None)
    for kind, value in kinds.items():
        if kind != used and not (kind == "mps" and value is None):
            yield ("ignored", "sharing", kind), canonical(value)
    if used is None:
        return
    replicated = kinds[used]
    yield ("sharing", "strategy"), {"mps": "mps", "timeSlicing": "time-slicing"}[used]
    if not isinstance(replicated, Mapping):
        yield ("ignored", "sharing", used), canonical(replicated)
        return
    rest = dict(replicated)
    yield ("sharing", "renameByDefault"), rest.pop("renameByDefault", None) or False
    given = rest.pop("failRequestsGreaterThanOne", None)
    # 0.18 always refused requests for more than one under MPS.
    is_forced = used == "mps" and (given is None or release_of(version) < (0, 20))
    yield ("sharing", "failRequestsGreaterThanOne"), True if is_forced else given or False
    resources = rest.pop("resources", None)
    replicas: dict[str, Any] = {}
    for place, entry in enumerate(resources if isinstance(resources, list) else ()):
        if not isinstance(entry, Mapping):
            yield ("ignored", "sharing", used, "resources", f"[{place}]"), canonical(entry)
            continue
        name = str(entry.get("name"))
        name = name if name.startswith("nvidia.com/") else f"nvidia.com/{name}"
        count = entry.get("replicas")
        replicas[name] = max(replicas[name], count) if isinstance(replicas.get(name), int) else count
        for key in entry.keys() - {"name", "replicas"}:
            if (key, entry[key]) not in (("devices", "all"), ("rename", "")):
                yield ("ignored", "sharing", used, "resources", f"[{place}]", key), canonical(entry[key])
    for name, count in replicas.items():
        yield ("sharing", "resources", f"[{name}]"), count
    for key, value in rest.items():
        yield ("ignored", "sharing", used, key), canonical(value)


def effective(program: str, env: Mapping[str, Value], file: Fields | None, version: str) -> Fields:
    """Return what a program runs with.

    Args:
        program: One of ``PROGRAMS``.
        env: Its variables.
        file: The leaves of its file; None when no one can know them, so that only the variables count.
        version: Release of the program.
    """
    found: Fields = {}
    for setting in known(version):
        if program not in setting.read_by:
            continue
        path = tuple(setting.path.split("."))
        variable = next((name for name in setting.variables(program) if name in env), None)
        if variable is not None:
            found[path] = _from_variable(env[variable], setting.kind)
        elif file is not None:
            found[path] = file.get(path, _default(setting, version))
    if found.get(("flags", "nvidiaDevRoot")) == "":
        found["flags", "nvidiaDevRoot"] = found.get(("flags", "nvidiaDriverRoot"), "")
    if file is not None:
        found["sharing", "strategy"] = "none"
        found.update(
            {path: value for path, value in file.items() if path[0] in ("sharing", "ignored", "unreadable", "missing")}
        )
    return found


def _default(setting: Setting, version: str) -> Value:
    if setting.path == "flags.useNodeFeatureAPI":
        return release_of(version) >= (0, 19)
    return setting.default


def default_of(path: str, version: str) -> Value | None:
    """What the programs do where nothing says; None for what is no setting of theirs."""
    if path == "sharing.strategy":
        return "none"
    return next((_default(setting, version) for setting in known(version) if setting.path == path), None)


@cache
def variables(program: str, version: str) -> frozenset[str]:
    """The variables over the settings of a program."""
    return frozenset(name for setting in known(version) for name in setting.variables(program))
