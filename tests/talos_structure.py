"""Reduce Talos' machine configuration schemas to the structure of what a GPU node's documents touch.

    python -m tests.talos_structure DIR > tests/data/talos_machine_config.yaml

DIR holds a copy of siderolabs/talos:pkg/machinery/config/schemas/config.schema.json for each release line, named
``schema-<line>.json``. Kept are keys, types and enums; no descriptions. What lies beside our documents' own levels
may hold anything. Beside it stand the names of all kinds of documents.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator

SOURCES = {
    "1.10": "v1.10.9",
    "1.11": "v1.11.6",
    "1.12": "v1.12.11",
    "1.13": "v1.13.9",
    "1.14": "v1.14.0-rc.1",
}
PATH = "siderolabs/talos@{tag}:pkg/machinery/config/schemas/config.schema.json"
COMMITTED = Path(__file__).parent / "data" / "talos_machine_config.yaml"

CONFIG = "v1alpha1"
"""What the document without a kind is called here."""

KINDS = (CONFIG, "CRICustomizationConfig", "KernelModuleConfig", "KubeNodeConfig", "KubeletConfig", "SysctlConfig")
_FOLLOWED = ("InstallConfig", "KernelConfig", "KernelModuleConfig", "KubeletConfig", "MachineConfig", "MachineFile")
_NAMED = ("ClusterConfig",)
"""Kinds whose keys are kept without the structure below them."""

_STRUCTURE = ("additionalProperties", "enum", "items", "oneOf", "patternProperties", "properties", "required", "type")


def branches(schema: Mapping[str, Any]) -> dict[str, str]:
    """Return the definition of each kind of document that a whole schema has."""
    found = {}
    for branch in schema["oneOf"]:
        name = branch["$ref"].removeprefix("#/$defs/")
        kind = schema["$defs"][name]["properties"].get("kind", {"enum": [CONFIG]})
        found[kind["enum"][0]] = name
    return found


def reduced(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the structure of each kind that a GPU node's documents may be."""
    definitions = schema["$defs"]
    return {kind: _reduced(definitions[name], definitions) for kind, name in branches(schema).items() if kind in KINDS}


def _reduced(schema: Any, definitions: Mapping[str, Any]) -> Any:
    if not isinstance(schema, Mapping):
        return schema
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        if name.removeprefix("v1alpha1.") in _NAMED:
            keys = {key: {} for key in sorted(definitions[name]["properties"])}
            return {"additionalProperties": False, "properties": keys, "type": "object"}
        is_followed = name.removeprefix("v1alpha1.") in _FOLLOWED and name.startswith("v1alpha1.")
        return _reduced(definitions[name], definitions) if is_followed else {}
    kept = {}
    for keyword in _STRUCTURE:
        if keyword not in schema:
            continue
        value = schema[keyword]
        if keyword in ("properties", "patternProperties"):
            value = {name: _reduced(value[name], definitions) for name in sorted(value)}
        elif keyword in ("items", "additionalProperties"):
            value = _reduced(value, definitions)
        elif keyword == "oneOf":
            value = [_reduced(option, definitions) for option in value]
        kept[keyword] = value
    return kept


def document_kinds(schema: Mapping[str, Any]) -> list[str]:
    """Return the names of all kinds of documents that a whole schema has."""
    return sorted(set(branches(schema)) - {CONFIG})


def problems(kinds: Mapping[str, Any], document: Mapping[str, Any]) -> Iterator[str]:
    """Return what a structure, whole or reduced, has against a patch: the kind is looked at first."""
    kind = document.get("kind", CONFIG)
    if kind not in kinds:
        yield f"no document kind {kind}"
        return
    for error in Draft202012Validator(kinds[kind]).iter_errors(document):
        # A patch names the kubelet's image only where it changes it.
        if error.message != "'image' is a required property":
            yield f"{kind} {error.json_path}: {error.message}"


def whole(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of each kind, with all that it refers to."""
    shared = {"$schema": schema["$schema"], "$defs": schema["$defs"]}
    return {kind: {**shared, "$ref": f"#/$defs/{name}"} for kind, name in branches(schema).items()}


def read_schema(folder: Path, line: str) -> dict[str, Any]:
    return json.loads((folder / f"schema-{line}.json").read_text(encoding="utf-8"))


@cache
def _entries() -> dict[str, Any]:
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    entries: dict[str, Any] = yaml.load(COMMITTED.read_text(encoding="utf-8"), loader)
    return entries


def committed() -> dict[str, Any]:
    """Return the committed structure: kinds by release line."""
    return {line: entry["kinds"] for line, entry in _entries().items()}


def committed_kinds() -> dict[str, list[str]]:
    """Return the committed names of all kinds of documents, by release line."""
    return {line: entry["documents"] for line, entry in _entries().items()}


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def text(folder: Path) -> str:
    entries = {}
    for line, tag in SOURCES.items():
        schema = read_schema(folder, line)
        entries[line] = {
            "source": PATH.format(tag=tag),
            "documents": document_kinds(schema),
            "kinds": reduced(schema),
        }
    dumped = yaml.dump(entries, Dumper=_Dumper, sort_keys=False, width=118, default_flow_style=None)
    return f"# Written by tests/talos_structure.py.\n{dumped}"


if __name__ == "__main__":
    print(text(Path(sys.argv[1])), end="")
