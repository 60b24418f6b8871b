"""Writers of YAML. All parsers of YAML 1.1 and of YAML 1.2 read the same values from the text."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import yaml

from gpu_constructs.records import regex

# Texts without quotes. No YAML reader takes them for a number, a date, a boolean or null. PyYAML does not quote 0e10.
_PLAIN = regex(r"[A-Za-z/][A-Za-z0-9_/.-]*\Z")
_LOOKS_LIKE_NUMBER = regex(r"[-+.]*[0-9][-+._:0-9a-fA-FxXoO]*\Z")
# Some checksums look like numbers, so every checksum has quotes. A change of a checksum then changes one line only.
_CHECKSUM = regex(r"[0-9a-f]{64}\Z")
_BREAKS = str.maketrans("", "", "\n\t")
_WORDS = frozenset("y yes n no on off true false null nan inf".split())

# Texts that need no quotes at any place in YAML. PyYAML, which is slower, decides about all other texts of a manifest.
_BARE = regex(r"(?:--)?[A-Za-z/($](?:[!-9;-~]|:(?=[!-~])| (?=[!\"$-~]))*\Z")
_WITHOUT_ESCAPES = regex(r"[ !#-\[\]-~]*\Z")
_BLOCK = regex(r"\|2?-?\n")
_LONGEST_KEY = 100


class _Dumper(yaml.SafeDumper):
    """A PyYAML dumper for configuration files.

    It quotes every text except plain words, and writes no YAML alias (``*x``).
    """

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


# The dumper in C is missing in some builds of PyYAML. Both dumpers write the same for characters up to U+FFFF.
class _ManifestDumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """A PyYAML dumper for manifests. It quotes a text only if a YAML parser could read it as another type.

    It never writes an alias.
    """

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _is_block(value: str) -> bool:
    # A block can contain printable characters only: U+0085 and U+2028 would end a line.
    return "\n" in value and value.translate(_BREAKS).isprintable()


def _is_plain(value: str) -> bool:
    return bool(_PLAIN.match(value)) and value.lower() not in _WORDS


def _is_quoted_in_manifests(value: str) -> bool:
    return bool(_LOOKS_LIKE_NUMBER.match(value) or _CHECKSUM.match(value)) or value.lower() in _WORDS


def _text(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    style = "|" if _is_block(value) else None if _is_plain(value) else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


def _text_of_manifest(dumper: _ManifestDumper, value: str) -> yaml.ScalarNode:
    style = "|" if _is_block(value) else '"' if _is_quoted_in_manifests(value) else None
    node: yaml.ScalarNode = dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)
    return node


def _number_of_manifest(dumper: _ManifestDumper, value: float) -> yaml.ScalarNode:
    # JSON does not distinguish 1.0 from 1.
    whole: yaml.ScalarNode = (
        dumper.represent_int(int(value)) if value.is_integer() else yaml.SafeDumper.represent_float(dumper, value)
    )
    return whole


_Dumper.add_representer(str, _text)
_ManifestDumper.add_representer(str, _text_of_manifest)
_ManifestDumper.add_representer(float, _number_of_manifest)


class _Unusual(Exception):
    """The error for a text that ``_Writer`` cannot write. ``_Writer`` then writes the whole document with PyYAML."""


class _Writer(NamedTuple):
    """A fast writer with the same output as ``yaml.dump``.

    Attributes:
        dumper: PyYAML dumper for documents that this writer cannot write.
        indent_of_lists: Indentation of a list below its key, as spaces.
        scalar: Function that returns the YAML form of a scalar.
    """

    dumper: Any
    indent_of_lists: str
    scalar: Callable[[Any], str]

    def text(self, document: Any) -> str:
        """Return a document as YAML."""
        try:
            if document and isinstance(document, dict):
                return self._lines(document, "")
        except _Unusual:
            pass
        return _dumped(document, self.dumper)

    def _lines(self, value: Any, indent: str) -> str:
        """Return a mapping or a list with at least one item as indented lines of YAML, in one text."""
        if isinstance(value, dict):
            return "".join([f"{indent}{self._key(key)}:{self._of_key(one, indent)}" for key, one in value.items()])
        return "".join([f"{indent}-{self._of_item(one, indent)}" for one in value])

    def _key(self, key: str) -> str:
        if not isinstance(key, str) or not key or not key.isascii() or "\n" in key or len(key) > _LONGEST_KEY:
            raise _Unusual
        return self.scalar(key)

    def _of_key(self, value: Any, indent: str) -> str:
        if value and isinstance(value, dict):
            return "\n" + self._lines(value, indent + "  ")
        if value and isinstance(value, list):
            return "\n" + self._lines(value, indent + self.indent_of_lists)
        return self._on_the_same_line(value, indent)

    def _of_item(self, value: Any, indent: str) -> str:
        if value and isinstance(value, dict | list):
            return " " + self._lines(value, indent + "  ").removeprefix(indent + "  ")
        return self._on_the_same_line(value, indent)

    def _on_the_same_line(self, value: Any, indent: str) -> str:
        if isinstance(value, dict | list):
            return " {}\n" if isinstance(value, dict) else " []\n"
        written = self.scalar(value)
        return f" {written}\n" if "\n" not in written else f" {written}\n".replace("\n  ", "\n  " + indent)


def _dumped(document: Any, dumper: Any) -> str:
    text: str = yaml.dump(
        document, Dumper=dumper, sort_keys=False, width=10**6, allow_unicode=True, default_flow_style=False
    )
    return text


def _scalar(value: Any, dumper: Any) -> str:
    if isinstance(value, str) and not value.isprintable() and not _is_block(value):
        raise _Unusual
    written = _dumped({"k": value}, dumper).removeprefix("k: ").removesuffix("\n")
    # A block that keeps the empty lines at its end has a different form at the end of the document.
    if "\n" in written and not _BLOCK.match(written):
        raise _Unusual
    return written


@lru_cache(maxsize=4096, typed=True)
def _scalar_of_manifest(value: Any) -> str:
    if isinstance(value, str):
        if _is_quoted_in_manifests(value):
            return f'"{value}"'
        if _BARE.match(value):
            return value
    return _scalar(value, _ManifestDumper)


@lru_cache(maxsize=4096, typed=True)
def _scalar_of_config(value: Any) -> str:
    if isinstance(value, str):
        if _is_plain(value):
            return value
        if _WITHOUT_ESCAPES.match(value):
            return f'"{value}"'
    return _scalar(value, _Dumper)


_CONFIG = _Writer(_Dumper, "  ", _scalar_of_config)
_MANIFEST = _Writer(_ManifestDumper, "", _scalar_of_manifest)


def yaml_text(document: Any) -> str:
    """Return plain data as YAML text for a configuration file. The writer quotes every text except plain words."""
    return _CONFIG.text(document)


def manifest_text(manifest: Any) -> str:
    """Return plain data as YAML text in the format of Kubernetes manifests."""
    return _MANIFEST.text(manifest)
