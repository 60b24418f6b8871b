"""The check of Helm values against chart_keys.yaml: the keys that each release of the GPU Operator's chart reads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from gpu_constructs.catalog.versions import GPU_OPERATOR, GpuOperatorRelease
from gpu_constructs.errors import GpuConstructsError, then
from gpu_constructs.kube.plain_data import Shapes, shown
from gpu_constructs.kube.tables import table
from gpu_constructs.migration.chart_values import PARENT, Key, is_parent_of, nearest
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
            live = _limited(releases, "until", below["$live_until"]) if "$live" in below else releases
            kind, why_not = below.get("$live", "any"), below["$dead"]
            yield path, Key(type=kind, releases=live, why_not=why_not, default=below.get("$default"))
        elif isinstance(below, Mapping):
            yield from _keys(f"{path}.", below, releases)


KEYS: Mapping[str, Key] = dict(_keys("", _TABLE["keys"], _RELEASES))
"""Keys of the chart by dotted path."""

STRUCTS: Mapping[str, Mapping[str, str]] = _TABLE["structs"]
MAY_BE_NULL: Sequence[str] = _TABLE["may_be_null"]
_MEANT: Mapping[str, str] = _TABLE["meant"]
_SHAPES = Shapes(STRUCTS, _TABLE["reasons"])
_OPERANDS = frozenset(
    path.removesuffix(".image") for path in KEYS if re.fullmatch(r"(?!operator|draDriver)[A-Za-z]+\.image", path)
)


@cache
def _read_by(release: str, *, with_dead: bool = False) -> Mapping[str, None]:
    """Return the dotted keys and the sections that a release of the chart reads, in the order of ``chart_keys.yaml``.

    A section is a key with further keys below it, such as ``devicePlugin.config``. The result is a dict whose values
    are all None. If ``with_dead`` is True, it also contains keys that the chart reads without an effect.
    """
    read = [path for path, key in KEYS.items() if release in key.releases and (with_dead or not key.why_not)]
    sections = [path[:dot] for path in read for dot, letter in enumerate(path) if letter == "."]
    return dict.fromkeys((*read, *sections))


class KeyProblem(NamedTuple):
    """A problem with a key of the Helm values.

    Attributes:
        path: Dotted path of the key, such as ``devicePlugin.config``.
        message: Message about the key.
        is_ignored: Whether the Helm chart ignores the key and has no similar key, so the key is probably not a typing
            error. False by default.
    """

    path: str
    message: str
    is_ignored: bool = False


def check_keys(values: Mapping[str, Any], release: GpuOperatorRelease) -> None:
    """Raise an error for Helm values that would have no effect, or with which the chart would fail.

    Args:
        values: Values for ``helm install -f``. A value of None removes a default.
        release: Release of the operator.

    Raises:
        GpuConstructsError: A key that the chart of this release does not read, or a value whose type the chart or the
            ClusterPolicy would reject. The message names the first such key.
    """
    for problem in problems_of(values, release):
        raise GpuConstructsError(problem.message)


def problems_of(values: Mapping[str, Any], release: GpuOperatorRelease) -> Iterator[KeyProblem]:
    """Yield a problem for each wrong key of Helm values, in the order of the keys. ``check_keys`` raises the first one.

    Raises:
        GpuConstructsError: The values are not a mapping.
    """
    if not isinstance(values, Mapping):
        raise GpuConstructsError(f"values must be a mapping, got {shown(values)}. Parse a file with yaml.safe_load")
    yield from _of_section("", values, release)


def _of_section(prefix: str, values: Mapping[Any, Any], release: GpuOperatorRelease) -> Iterator[KeyProblem]:
    for name, value in values.items():
        path = f"{prefix}{name}"
        if not isinstance(name, str):
            yield KeyProblem(path, f"values.{path} must have text as its key, got {name!r}. Quote it")
        elif "." in name:
            yield KeyProblem(
                path,
                f"{f'values.{prefix}'.rstrip('.')}[{name!r}] must not contain dots, because Helm does not split keys "
                f"at dots, got {shown(value)}. Write it nested: {_nested(name)}",
            )
        elif path in KEYS:
            yield from _of_key(path, value, KEYS[path], release)
        elif path not in _read_by(release.behaves_like, with_dead=True):
            yield _unknown(path, value, release)
        elif isinstance(value, Mapping):
            yield from _of_section(f"{path}.", value, release)
        elif value is not None or path not in MAY_BE_NULL:
            fails = ", without which the chart does not render" if value is None else ""
            yield KeyProblem(path, f"values.{path} must be a mapping{fails}, got {shown(value)}. Remove it")


def _nested(name: str) -> str:
    first, _, rest = name.partition(".")
    return f"{{{first!r}: {_nested(rest) if rest else '...'}}}"


def _of_key(path: str, value: Any, key: Key, release: GpuOperatorRelease) -> Iterator[KeyProblem]:
    is_read = release.behaves_like in key.releases
    is_dead = key.why_not and (key.type == "any" or not is_read)
    if is_dead or not is_read:
        if value in (None, "", {}, [], key.default):
            return
        reason, _, way_out = key.why_not.partition(". ")
        dead = KeyProblem(path, f"values.{path} {reason}, got {shown(value)}{then(way_out)}", is_ignored=True)
        yield dead if is_dead else _unknown(path, value, release)
    # Templates write any value of an affinity that is not empty.
    elif value is not None and not (value == [] and path.endswith(".affinity")):
        for place, problem in _SHAPES.problems(path, value, key.type):
            yield KeyProblem(place, f"values.{place} {problem}")


def _unknown(path: str, value: Any, release: GpuOperatorRelease) -> KeyProblem:
    way_out, is_ignored = _way_out(path, value, release)
    return KeyProblem(
        path,
        f"values.{path} is not a key that the chart of GPU Operator {release.version} reads, so Helm would silently "
        f"skip it, got {shown(value)}{then(way_out)}",
        is_ignored,
    )


def _way_out(path: str, value: Any, release: GpuOperatorRelease) -> tuple[str, bool]:
    """Return a pair for a key that the chart does not read: advice for the user, and whether to drop the key.

    The second item is False if the user probably meant another key of the chart, for example one with a similar name.
    """
    section, _, name = path.rpartition(".")
    known = _read_by(release.behaves_like)
    near = _MEANT.get(path) or _same(path, known) or nearest(path, KEYS, release.behaves_like)
    if path not in _MEANT and is_parent_of(value, path, near, known.__contains__):
        return f"{PARENT} {path!r}", False
    read = [other for other in _RELEASES if path in _read_by(other)]
    if section in (*_OPERANDS, "daemonsets", "") and name in _TABLE["of_all_operands"] and not read:
        return _TABLE["of_all_operands"][name], True
    if read:
        return f"releases {' to '.join(dict.fromkeys((read[0], read[-1])))} read it. Remove it", True
    if path.startswith("nfd."):
        return f"the keys of Node Feature Discovery are below {NFD!r}", False
    if not near or path.startswith(f"{near}."):
        return "remove it", True
    return f"did you mean {near!r}?", False


def _same(path: str, known: Iterable[str]) -> str:
    """Return the key in ``known`` that differs from ``path`` only in hyphens, underscores and case.

    For ``device-plugin``, return ``devicePlugin``. Return an empty text if there is no such key.
    """
    bare = {re.sub(r"[-_]", "", other).lower(): other for other in known}
    return bare.get(re.sub(r"[-_]", "", path).lower(), "")
