"""YAML that readers of YAML 1.1 and of 1.2, Go's among them, take for the same thing."""

from __future__ import annotations

import re
from typing import Any

import yaml

# Plain only where no reader could see a number, a date, a boolean or null: PyYAML alone leaves 0e10 and .5e3 bare.
_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_/.-]*\Z")
_NUMBER_TO_SOMEBODY = re.compile(r"[-+.]*[0-9][-+._:0-9a-fA-FxXoO]*\Z")
# Some of them are all digits, or digits around an e: quoted or not, a checksum is always written the same way.
_CHECKSUM = re.compile(r"[0-9a-f]{64}\Z")
_BREAKS = str.maketrans("", "", "\n\t")
_WORDS = frozenset("y yes n no on off true false null nan inf".split())


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


def _text(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    style = None if _PLAIN.match(value) and value.lower() not in _WORDS else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if _is_block(value) else style)


def _text_of_manifest(dumper: _ManifestDumper, value: str) -> yaml.ScalarNode:
    is_quoted = _NUMBER_TO_SOMEBODY.match(value) or _CHECKSUM.match(value) or value.lower() in _WORDS
    style = '"' if is_quoted else None
    node: yaml.ScalarNode = dumper.represent_scalar(
        "tag:yaml.org,2002:str", value, style="|" if _is_block(value) else style
    )
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


def yaml_text(document: Any) -> str:
    """Write a configuration file."""
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=10**6, allow_unicode=True)


def manifest_text(manifest: Any) -> str:
    """Write an object of Kubernetes."""
    text: str = yaml.dump(
        manifest, Dumper=_ManifestDumper, sort_keys=False, width=10**6, allow_unicode=True, default_flow_style=False
    )
    return text
