"""The tables of the charts' keys, and the reading of values by them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib import resources as files
from typing import Any, TypeVar

import yaml

from gpu_constructs.catalog import versions
from gpu_constructs.catalog.platforms import Platform
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube import fields
from gpu_constructs.migration.chart_values import Key, Values
from gpu_constructs.migration.converters import CONVERTERS, EACH, Converter, resources

_Made = TypeVar("_Made")

_ALTERNATIVES = re.compile(r"\{([^{}]+)\}")
_LONGEST_RELEASE_NAME = 53


@dataclass(frozen=True)
class Chart:
    """A chart whose values are read.

    Attributes:
        name: Name of the chart.
        keys: The keys of its values.
        flags: The flags of its program, by their long form.
        structs: Names of the option classes, by the keyword or the member that takes them.
    """

    name: str
    keys: Mapping[str, Key]
    flags: Mapping[str, Mapping[str, Any]]
    structs: Mapping[str, str]


@cache
def chart(name: str) -> Chart:
    """Return the table of a chart, and of the charts inside it."""
    text = files.files("gpu_constructs.migration").joinpath("charts", f"{name}.yaml").read_text(encoding="utf-8")
    table = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    keys = {path: Key(**row) for path, row in _rows(table["keys"], table.get("releases", {}))}
    structs = dict(table["structs"])
    for inner in map(chart, table.get("charts", ())):
        keys.update(inner.keys)
        structs.update(inner.structs)
    return Chart(name, keys, table.get("flags", {}), structs)


def _rows(table: Mapping[str, Any], releases: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a row for each key: ``{a,b}`` in a path stands for either word, and ``{}`` in ``into`` for the one."""
    for path, row in table.items():
        alternatives = _ALTERNATIVES.search(path)
        if alternatives is None:
            yield path, {**row, "releases": tuple(releases[row["releases"]] if "releases" in row else ())}
            continue
        for word in alternatives[1].split(","):
            chosen = {**row, "into": row.get("into", "").replace("{}", fields.snake(word), 1)}
            yield from _rows({path.replace(alternatives[0], word, 1): chosen}, releases)


class Reading(Values):
    """The values of a chart, read by its table.

    Attributes:
        keys: The rows of the table.
        said: What the program's own flags say, by keyword or member, each with its key: that counts more.
    """

    def __init__(
        self,
        of: Chart,
        values: Mapping[str, Any],
        *,
        release: str,
        strict: bool,
        converters: Mapping[str, Converter] | None = None,
        each: Mapping[str, Callable[[Any], Any]] | None = None,
    ) -> None:
        """Check values against the table.

        Args:
            of: The chart.
            values: What the user gave Helm.
            release: Release of the chart.
            strict: Whether what cannot be taken over is an error.
            converters: Converters of the chart's own.
            each: Converters of the chart's own for the entries of lists.
        """
        super().__init__(values, of.keys, release=release, strict=strict)
        self.keys = of.keys
        self.said: dict[str, tuple[str, Any]] = {}
        self._own = converters or {}
        self._converters = {**CONVERTERS, **self._own}
        self._each = {**EACH, **(each or {})}

    def options(self) -> dict[str, Any]:
        """Return the keywords that one key each makes."""
        return {keyword: value for keyword, (_, value) in self.members("").items()}

    def members(self, struct: str, *, under: str = "") -> dict[str, tuple[str, Any]]:
        """Return the members of an option class, each with its key and value.

        Args:
            struct: Keyword that takes the class; empty for the keywords themselves.
            under: Section of the values.
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
        """Return what a converter makes of a value; None for nothing, and for what is refused.

        An empty value says nothing but where the chart has something that it takes away, and to the chart's own
        converters.
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
        """Return an option class of its members.

        Args:
            keyword: Keyword that takes it.
            make: The class.
            more: Further members, each with its key and value, that come first; None leaves one out.
        """
        return self.made_of(make, {**self.members(keyword), **more})

    def name(
        self, release_name: str, default: str, longest: int, check: Callable[[str, str], None], *, section: str = ""
    ) -> str:
        """Return the name in front of the objects' names, as the chart has it, shorter where more stands behind it.

        Args:
            release_name: Name of the Helm release.
            default: Name of the chart.
            longest: What the longest of the objects' names leaves of 63 characters.
            check: Raises for what Kubernetes would not take.
            section: Where ``nameOverride`` and ``fullnameOverride`` stand, with its dot.
        """
        full = f"{section}fullnameOverride"
        name = self.get(f"{section}nameOverride") or default
        for path, override in ((full, self.get(full)), (f"{section}nameOverride", full_name(release_name, name))):
            cut = (override or "")[: min(longest, 63)].rstrip("-.")
            if self.get(path) and self.accepts(path, partial(check, path, cut)):
                return cut
        return full_name(release_name, default)[:longest].rstrip("-.")

    def image(self, tag: str) -> str | None:
        """Return the image that the values name, with this tag where they name none; None for the chart's own."""
        if not self.get("image.repository") and not self.get("image.tag"):
            return None
        repository = self.get("image.repository", self.keys["image.repository"].default)
        image = f"{repository}:{self.get('image.tag') or tag}"
        return image if self.accepts("image", partial(fields.image, "image", image)) else None


def full_name(release_name: str, name: str) -> str:
    """Return the name that a chart puts in front of its objects' names."""
    if len(release_name) > _LONGEST_RELEASE_NAME:
        raise GpuConstructsError(
            f"release_name must have at most {_LONGEST_RELEASE_NAME} characters, as Helm has it; got {release_name!r}"
        )
    return (release_name if name in release_name else f"{release_name}-{name}")[:63].rstrip("-")


def check_installation(
    release_name: object, namespace: object, version: object, platform: object, strict: object
) -> None:
    """Raise for what is not about the values and of the wrong type."""
    for field, got, kind in (
        ("release_name", release_name, str),
        ("namespace", namespace, str),
        ("version", version, str | versions.Unverified),
        ("platform", platform, Platform),
        ("strict", strict, bool),
    ):
        fields.of_type(field, got, kind)
    fields.dns_subdomain("release_name", str(release_name))
