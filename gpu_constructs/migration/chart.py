"""Tables of the keys of Helm charts, and the conversion of Helm values by these tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from importlib import resources as files
from typing import Any, TypeVar

import yaml

from gpu_constructs.catalog import versions
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube import fields
from gpu_constructs.migration.chart_values import Key, Values
from gpu_constructs.migration.converters import CONVERTERS, EACH, Converter, resources
from gpu_constructs.migration.problems import Problems
from gpu_constructs.records import dataclass, field, regex

_Made = TypeVar("_Made")

_ALTERNATIVES = regex(r"\{([^{}]+)\}")
_RELEASE = regex(r"[0-9]+\.[0-9]+\.[0-9]+")
_LONGEST_RELEASE_NAME = 53


@dataclass(frozen=True)
class Chart:
    """The table of a Helm chart whose values this library converts into keyword arguments of a construct.

    Attributes:
        name: Name of the Helm chart, such as ``nvidia-device-plugin``.
        keys: Description of each key of the Helm values, by dotted path.
        flags: Descriptions of the command-line flags of an exporter, by the long form of the flag. Empty if the Helm
            chart installs no exporter.
        structs: Names of option classes, by the keyword of the construct that accepts an instance of the class. For
            example, ``node_feature_discovery.master`` has the value ``NfdMaster``.
        meant: A dict from a wrong key, such as ``env``, to the key that the user probably means, such as ``extraEnv``.
    """

    name: str
    keys: Mapping[str, Key]
    flags: Mapping[str, Mapping[str, Any]]
    structs: Mapping[str, str]
    meant: Mapping[str, str] = field(default_factory=dict)


@cache
def chart(name: str, own_releases: str = "") -> Chart:
    """Return the table of the keys of a Helm chart, including the keys of its subcharts.

    Args:
        name: Name of the Helm chart, such as ``nvidia-device-plugin``.
        own_releases: Name of a table in ``releases.json``, such as ``node_feature_discovery``. Set it if ``name`` is a
            subchart that the user installs without its parent chart. Empty by default.
    """
    text = files.files("gpu_constructs.migration").joinpath("charts", f"{name}.yaml").read_text(encoding="utf-8")
    table = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    by_release = {"table": own_releases, "column": "version"} if own_releases else {}
    ranges = _ranges(**{**table.get("releases", {}), **by_release})
    keys = {path: Key(**row) for path, row in _rows(table["keys"], ranges) if row["releases"] is not None}
    flags = dict(_rows(table.get("flags", {}), ranges))
    structs = dict(table["structs"])
    for inner in map(chart, table.get("charts", ())):
        keys.update(inner.keys)
        structs.update(inner.structs)
    return Chart(name, keys, flags, structs, table.get("meant", {}))


def _ranges(table: str = "", column: str = "version", **ranges: str) -> dict[str, tuple[str, ...] | None]:
    """Return the releases in each version range, by name of the range.

    A value is an empty tuple if the range contains all releases of the table, and None if it contains no release.

    Args:
        table: Name of the table of releases in ``releases.json``, such as ``device_plugin``. Empty (the default) if
            there are no ranges.
        column: Column of the table whose versions the function compares with the ranges.
        ranges: Ranges of versions, such as ``>=0.18``, by name.
    """
    found = {name: versions.releases_in(table, releases, column) for name, releases in ranges.items()}
    every = versions.releases_in(table, "", column) if table else ()
    return {name: None if not releases else () if releases == every else releases for name, releases in found.items()}


def _rows(table: Mapping[str, Any], releases: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the dotted path and the row of each key in a table of Helm keys.

    A path in the table such as ``nfd.{a,b}.port`` describes two keys, ``nfd.a.port`` and ``nfd.b.port``. In the column
    ``into`` of their rows, ``a`` or ``b`` replaces ``{}``.

    Args:
        table: Rows by path.
        releases: Releases of the Helm chart by name of the range. The column ``releases`` of a row contains this name.
    """
    for path, row in table.items():
        alternatives = _ALTERNATIVES.search(path)
        if alternatives is None:
            yield path, {**row, "releases": releases[row["releases"]] if "releases" in row else ()}
            continue
        for word in alternatives[1].split(","):
            chosen = {**row, "into": row.get("into", "").replace("{}", fields.snake(word), 1)}
            yield from _rows({path.replace(alternatives[0], word, 1): chosen}, releases)


class Reading(Values):
    """Helm values, checked against the keys of a Helm chart, and their conversion into keyword arguments.

    Attributes:
        keys: Descriptions of the keys of the Helm chart, by dotted path.
        said: Settings from command-line flags in the Helm values, which override other values. The dict key is a
            dotted keyword of the construct, such as ``scrape.interval``. The dict value is a pair: the Helm key of the
            flag, such as ``arguments[0]``, and the value of the keyword.
    """

    def __init__(
        self,
        of: Chart,
        values: Mapping[str, Any],
        *,
        release: str,
        strict: bool | Problems,
        converters: Mapping[str, Converter] | None = None,
        each: Mapping[str, Callable[[Any], Any]] | None = None,
    ) -> None:
        """Check Helm values against the keys of a Helm chart.

        Args:
            of: Table of the Helm chart.
            values: Helm values of the user.
            release: Release of the component, such as the device plugin, whose Helm chart reads the values.
            strict: Whether a value that the library cannot convert is an error (True) or a warning (False). If you pass
                a ``Problems`` object, its ``is_strict`` applies, and it collects the errors.
            converters: Functions that convert Helm values, by the name that ``Key.convert`` contains. They replace or
                extend the default functions ``CONVERTERS``. None: only the default functions.
            each: Functions that convert the items of a list, by the name that ``Key.convert`` contains. They replace or
                extend the default functions ``EACH``.
        """
        super().__init__(values, of.keys, release=release, strict=strict, meant=of.meant)
        self.keys = of.keys
        self.said: dict[str, tuple[str, Any]] = {}
        self._own = converters or {}
        self._converters = {**CONVERTERS, **self._own}
        self._each = {**EACH, **(each or {})}

    def options(self) -> dict[str, Any]:
        """Return the keyword arguments of the construct, except those that depend on several Helm keys."""
        return {keyword: value for keyword, (_, value) in self.members("").items()}

    def members(self, struct: str, *, under: str = "") -> dict[str, tuple[str, Any]]:
        """Return the attributes of an option class that the Helm values set, by name of the attribute.

        Each value of the result is a pair: the Helm key, and the value of the attribute.

        Args:
            struct: Keyword that accepts the option class, such as ``node_feature_discovery.master``. Empty for the
                keyword arguments of the construct itself.
            under: Prefix of the Helm keys to read; by default all keys.
        """
        found: dict[str, tuple[str, Any]] = {}
        start = f"{struct}." if struct else ""
        for path, key in self.keys.items():
            if not key.convert or key.into.rpartition(".")[0] != struct or not path.startswith(under):
                continue
            value = self.converted(path, key.convert, key.into, self.get(path), has_default=key.default is not None)
            if value is not None:
                found[key.into.removeprefix(start)] = path, value
        said = {into.removeprefix(start): at for into, at in self.said.items() if into.rpartition(".")[0] == struct}
        return {**found, **said}

    def converted(self, path: str, convert: str, into: str, value: Any, *, has_default: bool = False) -> Any:
        """Return the value of a keyword for a Helm value. Return None if the Helm value is null or invalid.

        Also return None for an empty text, list or mapping, except in two cases. The Helm key has a default, or the
        function ``convert`` is in the argument ``converters`` of the constructor.

        Args:
            path: Dotted key of the value in the Helm values.
            convert: Name of the function that converts the value, as in ``Key.convert``.
            into: Keyword of the construct that accepts the result, such as ``node_feature_discovery.master.port``.
            value: Helm value.
            has_default: Whether the Helm chart has a default for the key; False by default.
        """
        is_own = convert in self._own
        if value is None or (value in ("", [], (), {}) and not has_default and not is_own):
            return None
        if convert == "resources" and value:
            return resources(self, path, value)
        if convert in self._each:
            make = self._each[convert]
            made = [self.attempt(f"{path}[{place}]", partial(make, entry)) for place, entry in enumerate(value)]
            kept = [entry for entry in made if entry is not None]
            return dict(kept) or None if convert == "variables" else kept
        return self.attempt(path, partial(self._converters[convert], into.rpartition(".")[2], value))

    def struct(self, keyword: str, make: Callable[..., _Made], **more: tuple[str, Any]) -> _Made:
        """Return an instance of an option class, with the attributes that the Helm values set.

        Args:
            keyword: Keyword that accepts the option class, such as ``node_feature_discovery.master``.
            make: Option class, such as ``NfdMaster``.
            more: Pairs of the Helm key and the value, by name of the attribute. They replace the attributes from the
                Helm values. If a value is None, the method omits the attribute.
        """
        return self.made_of(make, {**self.members(keyword), **more})

    def name(
        self, release_name: str, default: str, longest: int, check: Callable[[str, str], None], *, section: str = ""
    ) -> str:
        """Return the prefix of object names, as the Helm chart calculates it from the Helm values and the release name.

        Args:
            release_name: Name of the Helm release.
            default: Name of the Helm chart.
            longest: Largest number of characters of the prefix.
            check: Function that raises an error for an invalid name.
            section: Prefix of the keys ``nameOverride`` and ``fullnameOverride``, with its dot; empty by default.
        """
        full = f"{section}fullnameOverride"
        name = self.get(f"{section}nameOverride") or default
        for path, override in ((full, self.get(full)), (f"{section}nameOverride", full_name(release_name, name))):
            cut = (override or "")[: min(longest, 63)].rstrip("-.")
            if self.get(path) and self.accepts(path, partial(check, path, cut)):
                return cut
        return full_name(release_name, default)[:longest].rstrip("-.")

    def image(self, tag: str) -> str | None:
        """Return the image that the Helm values specify, as ``repository:tag``. Return None if they specify no image.

        Args:
            tag: Default tag of the Helm chart.
        """
        if not self.get("image.repository") and not self.get("image.tag"):
            return None
        repository = self.get("image.repository", self.keys["image.repository"].default)
        given = self.get("image.tag") or tag
        self.warn_of_other_release("image.tag", given, tag)
        image = f"{repository}:{given}"
        return image if self.accepts("image", partial(fields.image, "image", image)) else None

    def warn_of_other_release(self, path: str, given: str, tag: str) -> None:
        """Warn if an image tag in the Helm values contains another release than the default tag of the Helm chart.

        Args:
            path: Helm key of the tag.
            given: Tag in the Helm values.
            tag: Default tag of the Helm chart.
        """
        if _RELEASE.search(given) and not {*_RELEASE.findall(given)} & {*_RELEASE.findall(tag)}:
            self.warn(
                path,
                f"is {given!r}, but the manifests are for version={self.release!r}. Set version to the release of the "
                "image, or remove the tag",
            )


def full_name(release_name: str, name: str) -> str:
    """Return the prefix of object names that a Helm chart calculates from the name of the Helm release.

    Args:
        release_name: Name of the Helm release.
        name: Name of the Helm chart, or the value of ``nameOverride``.
    """
    if len(release_name) > _LONGEST_RELEASE_NAME:
        raise GpuConstructsError(
            f"release_name must have at most {_LONGEST_RELEASE_NAME} characters, like in Helm, got {release_name!r}"
        )
    return (release_name if name in release_name else f"{release_name}-{name}")[:63].rstrip("-")
