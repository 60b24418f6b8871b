"""Readers of YAML that take plain words in other ways than PyYAML."""

import re

import yaml

_NULL = r"~|null|Null|NULL|"
_FLOAT = r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"


class Yaml12(yaml.SafeLoader):
    """A loader that reads plain scalars like YAML 1.2 (the core schema)."""


class PluginYaml(yaml.SafeLoader):
    """A loader that reads plain scalars like go.yaml.in/yaml/v2."""


for loader, words, integers in (
    (Yaml12, r"true|True|TRUE|false|False|FALSE", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"),
    (
        PluginYaml,
        r"y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF",
        r"[-+]?(0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|[0-9][0-9_]*)",
    ),
):
    loader.yaml_implicit_resolvers = {}
    for tag, pattern in {"null": _NULL, "bool": words, "int": integers, "float": _FLOAT}.items():
        loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"(?:{pattern})\\Z"), None)

READERS = [yaml.SafeLoader, Yaml12, PluginYaml]
