"""YAML that readers of YAML 1.1 and of 1.2, Go's among them, take for the same thing; and tables that lie as YAML."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import yaml

# Plain only where no reader could see a number, a date, a boolean or null: PyYAML alone leaves 0e10 and .5e3 bare.
_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_/.-]*\Z")
_NUMBER_TO_SOMEBODY = re.compile(r"[-+.]*[0-9][-+._:0-9a-fA-FxXoO]*\Z")
# Some of them are all digits, or digits around an e: quoted or not, a checksum is always written the same way.
_CHECKSUM = re.compile(r"[0-9a-f]{64}\Z")
_BREAKS = str.maketrans("", "", "\n\t")
_WORDS = frozenset("y yes n no on off true false null nan inf".split())

# Bare in YAML wherever it stands. PyYAML, which is slower, decides about all other text of a manifest.
_BARE = re.compile(r"(?:--)?[A-Za-z/($](?:[!-9;-~]|:(?=[!-~])| (?=[!\"$-~]))*\Z")
_WITHOUT_ESCAPES = re.compile(r"[ !#-\[\]-~]*\Z")
_BLOCK = re.compile(r"\|2?-?\n")
_LONGEST_KEY = 100


class _Dumper(yaml.SafeDumper):
    """Quotes every text but plain words, and never writes an alias."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


# Written in C where PyYAML was built with it, as its wheels are; the two write the same up to U+FFFF.
class _ManifestDumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Leaves a text bare where nobody takes it for anything else, and never writes an alias."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _is_block(value: str) -> bool:
    # A block keeps nothing but plain lines: next line and line separator would break one.
    return "\n" in value and value.translate(_BREAKS).isprintable()


def _is_plain(value: str) -> bool:
    return bool(_PLAIN.match(value)) and value.lower() not in _WORDS


def _is_quoted_in_manifests(value: str) -> bool:
    return bool(_NUMBER_TO_SOMEBODY.match(value) or _CHECKSUM.match(value)) or value.lower() in _WORDS


def _text(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    style = "|" if _is_block(value) else None if _is_plain(value) else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


def _text_of_manifest(dumper: _ManifestDumper, value: str) -> yaml.ScalarNode:
    style = "|" if _is_block(value) else '"' if _is_quoted_in_manifests(value) else None
    node: yaml.ScalarNode = dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)
    return node


def _number_of_manifest(dumper: _ManifestDumper, value: float) -> yaml.ScalarNode:
    # As in JSON, where 1.0 is 1.
    whole: yaml.ScalarNode = (
        dumper.represent_int(int(value)) if value.is_integer() else yaml.SafeDumper.represent_float(dumper, value)
    )
    return whole


_Dumper.add_representer(str, _text)
_ManifestDumper.add_representer(str, _text_of_manifest)
_ManifestDumper.add_representer(float, _number_of_manifest)


class _Unusual(Exception):
    """Text that looks different in each place."""


class _Writer(NamedTuple):
    """Writes what ``yaml.dump`` writes, in a fraction of its time.

    Attributes:
        dumper: Writes a whole document that holds unusual text.
        indent_of_lists: Spaces of a list below its key.
        scalar: Returns how a value that holds no others is written below the left margin.
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
        """Return the lines of a mapping or a list that is not empty, each with its indentation."""
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
    # A block that keeps the empty lines at its end has a mark of its own at the end of the document.
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
    """Return a configuration file as YAML."""
    return _CONFIG.text(document)


def manifest_text(manifest: Any) -> str:
    """Return an object of Kubernetes as YAML."""
    return _MANIFEST.text(manifest)
