"""Reduce upstream CustomResourceDefinitions to their structure: no prose, no status, storage version only.

    uv run python imports/reduce.py <crd.yaml>... > imports/crds/<group>.yaml

Give all kinds of one API group at once: `cdk8s import` writes one Python module per group, so a second file
of the same group would replace the first. Each input opens with the line
`# source: <owner>/<repository>@<version>:<path>`, which the output repeats for the kinds found in it.
`--open <Kind>.<field>.<field>` accepts anything below that field, for a file that only serves to generate
bindings.

The result describes manifests as people write them; it is not meant to be installed in a cluster. What it says
more than once, such as the many containers of an `InferenceService`, it writes once, as a YAML anchor.
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from typing import Any

import yaml

PROSE = ("description", "title", "example", "externalDocs", "x-kubernetes-validations")
"""Schema keywords left out; the last one holds CEL rules, which only an API server evaluates."""

OPEN: dict[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
"""A schema that accepts every object."""

ANCHORED_FROM = 100
"""Length, as JSON, of the shortest part worth an anchor."""


def reduced_schema(schema: Any) -> Any:  # noqa: ANN401
    """Return the schema without prose; a property that happens to be called `description` stays."""
    if not isinstance(schema, dict):
        return schema
    reduced = {}
    for keyword, value in schema.items():
        if keyword in PROSE:
            continue
        if keyword == "properties":
            value = {name: reduced_schema(subschema) for name, subschema in value.items()}
        elif keyword in ("items", "additionalProperties", "not"):
            value = reduced_schema(value)
        elif keyword in ("allOf", "anyOf", "oneOf"):
            value = [reduced_schema(subschema) for subschema in value]
        reduced[keyword] = value
    return reduced


def reduced_crd(crd: dict[str, Any]) -> dict[str, Any]:
    """Return the CRD with its storage version only, and of that only the fields a manifest may hold.

    A root schema that upstream leaves wholly open gets an open `spec`: the class generated from it would
    otherwise accept `metadata` and nothing else.
    """
    spec = crd["spec"]
    version = next(version for version in spec["versions"] if version["storage"])
    schema = reduced_schema(version["schema"]["openAPIV3Schema"])
    schema.setdefault("properties", {"spec": dict(OPEN)}).pop("status", None)
    if "required" in schema:
        schema["required"] = [name for name in schema["required"] if name != "status"]
    return {
        "apiVersion": crd["apiVersion"],
        "kind": crd["kind"],
        "metadata": {"name": crd["metadata"]["name"]},
        "spec": {
            "group": spec["group"],
            "names": {name: spec["names"][name] for name in ("kind", "plural", "singular")},
            "scope": spec["scope"],
            "versions": [
                {
                    "name": version["name"],
                    "schema": {"openAPIV3Schema": schema},
                    "served": True,
                    "storage": True,
                }
            ],
        },
    }


def open_field(crd: dict[str, Any], path: str) -> None:
    """Let the field at `path` (`spec.template`) of a reduced CRD hold any object."""
    *parents, name = path.split(".")
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for parent in parents:
        schema = schema["properties"][parent]
    schema["properties"][name] = dict(OPEN)


def with_equal_parts_shared(value: Any, parts: dict[str, Any] | None = None) -> Any:
    """Return the value with one object for all its equal parts of some size: `yaml` writes that as an anchor."""
    parts = {} if parts is None else parts
    if isinstance(value, dict):
        value = {key: with_equal_parts_shared(member, parts) for key, member in value.items()}
    elif isinstance(value, list):
        value = [with_equal_parts_shared(member, parts) for member in value]
    else:
        return value
    text = json.dumps(value)
    return parts.setdefault(text, value) if len(text) >= ANCHORED_FROM else value


def main() -> None:
    """Print the reduced CRDs of all files given on the command line, below the sources of their kinds."""
    parser = argparse.ArgumentParser(description="Reduce CustomResourceDefinitions to their structure.")
    parser.add_argument("files", nargs="+", type=Path, metavar="crd.yaml")
    parser.add_argument("--open", action="append", default=[], metavar="Kind.field")
    arguments = parser.parse_args()

    sources: list[str] = []
    crds: dict[str, dict[str, Any]] = {}
    for file in arguments.files:
        text = file.read_text(encoding="utf-8")
        source = re.match(r"# source: ([^;\n]+)", text)
        if not source:
            parser.error(f"{file} must open with '# source: <owner>/<repository>@<version>:<path>'")
        for crd in filter(None, yaml.safe_load_all(text)):
            kind = crd["spec"]["names"]["kind"]
            crds[kind] = reduced_crd(crd)
            sources.append(f"# {kind}: {source[1]}")
    groups = sorted({crd["spec"]["group"] for crd in crds.values()})
    if len(groups) != 1:
        parser.error(f"the files must share one API group; got {', '.join(groups)}")
    for field in arguments.open:
        kind, path = field.split(".", 1)
        open_field(crds[kind], path)
        sources.append(f"# Open, to keep the generated bindings small: {field}")
    print("\n".join(sources))
    print(yaml.safe_dump_all([with_equal_parts_shared(crd) for crd in crds.values()]), end="")


if __name__ == "__main__":
    main()
