"""Configuration files as YAML text that YAML 1.1 and 1.2 readers, Go's among them, take for the same thing."""

from __future__ import annotations

import re
from typing import Any

import yaml

# Plain only where no reader could see a number, a date, a boolean or null: PyYAML alone leaves 0e10 and .5e3 bare.
_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_/.-]*\Z")
_WORDS = frozenset("y yes n no on off true false null nan inf".split())


class _Dumper(yaml.SafeDumper):
    """Quotes every text but plain words, and never writes an alias."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _text(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    style = None if _PLAIN.match(value) and value.lower() not in _WORDS else '"'
    # A block keeps nothing but plain lines: next line and line separator would break one.
    if "\n" in value and all(letter.isprintable() or letter in "\n\t" for letter in value):
        style = "|"
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def yaml_text(document: Any) -> str:
    """Write a configuration file."""
    return yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=10**6, allow_unicode=True)
