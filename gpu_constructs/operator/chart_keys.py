"""Check of values against the keys that the GPU Operator's chart reads, release by release: chart_keys.yaml."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from gpu_constructs.catalog.versions import GPU_OPERATOR, GpuOperatorRelease
from gpu_constructs.errors import GpuConstructsError, refuse_if
from gpu_constructs.kube.plain_data import Shapes, shown
from gpu_constructs.kube.tables import table
from gpu_constructs.migration.chart_values import Key, nearest
from gpu_constructs.operator.values import NFD

_RELEASES = tuple(GPU_OPERATOR)
_LIMITED = re.compile(r"(.+?)(?: (since|until) (\S+))?")
_TABLE: Mapping[str, Any] = table(__package__, "chart_keys.yaml")


def _limited(releases: Sequence[str], word: str | None, release: str | None) -> tuple[str, ...]:
    bound = _RELEASES.index(release) if release else 0
    kept = _RELEASES[bound:] if word != "until" else _RELEASES[: bound + 1]
    return tuple(one for one in releases if one in kept)


def _keys(prefix: str, tree: Mapping[str, Any], releases: Sequence[str]) -> Iterator[tuple[str, Key]]:
    for word in ("since", "until"):
        releases = _limited(releases, word, tree[f"${word}"]) if f"${word}" in tree else releases
    for name, below in tree.items():
        path = f"{prefix}{name}"
        if isinstance(below, str) and not name.startswith("$"):
            shape, word, release = _LIMITED.fullmatch(below).groups()  # type: ignore[union-attr]
            yield path, Key(type=shape, releases=_limited(releases, word, release))
        elif isinstance(below, Mapping) and "$dead" in below:
            yield path, Key(type="any", releases=releases, why_not=below["$dead"], default=below.get("$default"))
        elif isinstance(below, Mapping):
            yield from _keys(f"{path}.", below, releases)


KEYS: Mapping[str, Key] = dict(_keys("", _TABLE["keys"], _RELEASES))
"""The keys by dotted path."""

STRUCTS: Mapping[str, Mapping[str, str]] = _TABLE["structs"]
MAY_BE_NULL: Sequence[str] = _TABLE["may_be_null"]
_SHAPES = Shapes(STRUCTS, _TABLE["reasons"])
_OPERANDS = frozenset(
    path.removesuffix(".image") for path in KEYS if re.fullmatch(r"(?!operator|draDriver)[A-Za-z]+\.image", path)
)


@cache
def _read_by(release: str, *, with_dead: bool = False) -> Mapping[str, None]:
    """Return the keys and sections that a release reads, in their order."""
    read = [path for path, key in KEYS.items() if release in key.releases and (with_dead or not key.why_not)]
    sections = [path[:dot] for path in read for dot, letter in enumerate(path) if letter == "."]
    return dict.fromkeys((*read, *sections))


def check_keys(values: Mapping[str, Any], release: GpuOperatorRelease) -> None:
    """Raise for values of the chart that would have no effect, or make it fail.

    Args:
        values: Values that ``helm install -f`` would be given; null takes a default away.
        release: Release of the operator.

    Raises:
        GpuConstructsError: A key that the chart of the release does not read, or a value of a type that the chart, or
            the object it goes into, does not take. The first one is named.
    """
    if not isinstance(values, Mapping):
        raise GpuConstructsError(f"values must be a mapping; got {shown(values)}; parse a file with yaml.safe_load")
    _check_section("", values, release)


def _check_section(prefix: str, values: Mapping[Any, Any], release: GpuOperatorRelease) -> None:
    for name, value in values.items():
        path = f"{prefix}{name}"
        refuse_if(not isinstance(name, str), f"values.{path}", "have a text for its key", name, way_out="quote it")
        if "." in name:
            raise GpuConstructsError(
                f"{f'values.{prefix}'.rstrip('.')}[{name!r}] must be nested: Helm takes no key apart at its dots; got "
                f"{shown(value)}; write it nested: {_nested(name)}"
            )
        if path in KEYS:
            _check_key(path, value, KEYS[path], release)
        elif path not in _read_by(release.behaves_like, with_dead=True):
            _refuse_unknown(path, value, release)
        elif isinstance(value, Mapping):
            _check_section(f"{path}.", value, release)
        elif value is not None or path not in MAY_BE_NULL:
            fails = ": without it the chart fails to render" if value is None else ""
            raise GpuConstructsError(f"values.{path} must be a mapping{fails}; got {shown(value)}; leave it out")


def _nested(name: str) -> str:
    first, _, rest = name.partition(".")
    return f"{{{first!r}: {_nested(rest) if rest else '...'}}}"


def _check_key(path: str, value: Any, key: Key, release: GpuOperatorRelease) -> None:
    is_read = release.behaves_like in key.releases
    if key.why_not or not is_read:
        if value in (None, "", {}, [], key.default):
            return
        if not is_read:
            _refuse_unknown(path, value, release)
        raise GpuConstructsError(f"values.{path} {key.why_not}; got {shown(value)}")
    # Templates write an affinity where it is not empty, whatever it is.
    if value is not None and not (value == [] and path.endswith(".affinity")):
        _SHAPES.check(f"values.{path}", value, key.type)


def _refuse_unknown(path: str, value: Any, release: GpuOperatorRelease) -> None:
    section, _, name = path.rpartition(".")
    known = _read_by(release.behaves_like)
    same = next((other for other in known if _bare(other) == _bare(path)), "")
    near = same or nearest(path, KEYS, release.behaves_like)
    read = [other for other in _RELEASES if path in _read_by(other)]
    way_out = f"did you mean {near!r}?" if near and not path.startswith(f"{near}.") else "leave it out"
    if section in _OPERANDS and name in _TABLE["of_all_operands"] and not read:
        way_out = _TABLE["of_all_operands"][name]
    elif read:
        way_out = f"releases {', '.join(read)} read it; leave it out"
    elif path.startswith("nfd."):
        way_out = f"the keys of Node Feature Discovery stand below {NFD!r}"
    raise GpuConstructsError(
        f"values.{path} is not a key that the chart of GPU Operator {release.version} reads, and Helm would skip it "
        f"silently; got {shown(value)}; {way_out}"
    )


def _bare(path: str) -> str:
    return re.sub(r"[-_]", "", path).lower()
