"""The table of the keys of the GPU Operator's chart, held against the chart itself.

``python -m tests.operator_keys FOLDER...`` reads folders of one release each, or of several in folders named by their
tags, and exits 1 on a difference that nothing here explains. A folder is a chart (``templates/``, ``crds/``,
``values.yaml``, the sub-chart in ``charts/``), or what was taken from one: ``chart-accepted-keys.json``,
``crd-clusterpolicies.yaml``, ``chart-values.yaml``. What the table lacks is printed as a line of it, with the type that
the custom resource definition states.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from gpu_constructs.catalog.versions import GPU_OPERATOR
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.operator.chart_keys import KEYS, STRUCTS, check_keys
from gpu_constructs.operator.values import NFD

TABLES = yaml.safe_load((Path(__file__).parent / "parity_tables" / "gpu-operator.yaml").read_text(encoding="utf-8"))
_OF_DEFINITION = {
    "string": ("text", "number or text", "duration"),
    "boolean": ("bool",),
    "integer": ("number", "number or text"),
    "int-or-string": ("number or text",),
}


def main(folders: list[str]) -> int:
    differences = [line for folder in folders for line in _of_folder(Path(folder))]
    print("\n".join(differences) or f"{len(KEYS)} keys: no difference")
    return 1 if differences or not folders else 0


def _of_folder(folder: Path) -> Iterator[str]:
    releases = {release: _folder_of(folder, release) for release in GPU_OPERATOR}
    found = {release: path for release, path in releases.items() if path}
    if not found:
        yield f"{folder}: no folder of a release in it"
    for release, path in found.items():
        yield from (f"{release}: {line}" for line in differences(path, release))


def _folder_of(folder: Path, release: str) -> Path | None:
    for inside in ("", "gpu-operator"):
        for candidate in (
            folder / inside / f"v{release}",
            folder / inside / f"v{release}" / "deployments/gpu-operator",
        ):
            if (candidate / "chart-accepted-keys.json").exists() or (candidate / "templates").exists():
                return candidate
    return None


def differences(folder: Path, release: str) -> Iterator[str]:
    """What the chart of a folder and the table say differently about a release."""
    read, fields, table = keys_read(folder), definition(folder), _table(release)
    below = {path for path in fields if any(path.startswith(f"{whole}.") for whole in read)}
    sections = {path[:dot] for path in table for dot, letter in enumerate(path) if letter == "."}
    dead = {path for path, key in KEYS.items() if key.why_not}
    for path in sorted(read - table - sections - dead):
        yield f'lacks "{path}": "{_type_of(fields.get(path, {}))}", which a template reads'
    for path in sorted(path for path in below - table - sections if not _is_dead(path, dead)):
        yield f'lacks "{path}": "{_type_of(fields[path])}", a field of what a template copies whole'
    for path in sorted(table - read - below):
        if not path.startswith(tuple(TABLES["not named"])):
            yield f"{path} is read by no template, and no ClusterPolicy has it"
    for path in sorted((table & set(fields)) - dead):
        yield from _type_differs(path, fields[path])
    for path in sorted(table - dead - set(fields)):
        if not path.startswith(tuple(TABLES["elsewhere"])):
            yield f"{path} goes into the ClusterPolicy, which has no such field"
    yield from _sub_chart(folder, table)
    yield from _own_values(folder, release)


def _is_dead(path: str, dead: set[str]) -> bool:
    return any(path == whole or path.startswith(f"{whole}.") for whole in dead)


def _table(release: str) -> set[str]:
    return {path for path, key in KEYS.items() if not key.why_not and release in (key.releases or tuple(GPU_OPERATOR))}


def keys_read(folder: Path) -> set[str]:
    """Every dotted path that a template of the chart reads."""
    listed = folder / "chart-accepted-keys.json"
    return set(json.loads(listed.read_text("utf-8"))) if listed.exists() else _in_templates(folder / "templates")


def _in_templates(folder: Path) -> set[str]:
    text = "\n".join(path.read_text("utf-8") for path in sorted(folder.rglob("*")) if path.is_file())
    return set(re.findall(r"\.Values\.([A-Za-z0-9_.]*[A-Za-z0-9_])", text))


def definition(folder: Path) -> dict[str, Mapping[str, Any]]:
    """The schema of each field of a ClusterPolicy's spec, mappings with members left to these."""
    candidates = (folder / "crd-clusterpolicies.yaml", folder / "crds" / "nvidia.com_clusterpolicies.yaml")
    crd = yaml.safe_load(next(path for path in candidates if path.exists()).read_text("utf-8"))
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return dict(_fields("", spec))


_WHOLE = ("resources", "seccompProfile", "appArmorProfile", "seLinuxOptions", "windowsOptions")


def _fields(prefix: str, schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, below in schema.get("properties", {}).items():
        path = f"{prefix}{name}"
        if below.get("properties") and name not in _WHOLE:
            yield from _fields(f"{path}.", below)
        else:
            yield path, below


def _type_of(schema: Mapping[str, Any]) -> str:
    kind = "int-or-string" if schema.get("x-kubernetes-int-or-string") else schema.get("type", "any")
    if "enum" in schema:
        return "|".join(sorted(schema["enum"]))
    if kind == "array":
        return f"[{_type_of(schema['items'])}]"
    if kind == "object":
        members = schema.get("properties")
        return (
            f"{{{_type_of(schema.get('additionalProperties') or {})}}}" if not members else ", ".join(sorted(members))
        )
    return _OF_DEFINITION.get(kind, (kind,))[0]


def _type_differs(path: str, schema: Mapping[str, Any]) -> Iterator[str]:
    mine, theirs = KEYS[path].type, _type_of(schema)
    if mine == theirs or sorted(mine.split("|")) == theirs.split("|"):
        return
    if mine in _OF_DEFINITION.get(schema.get("type", ""), ()):
        return
    if "|" in mine and schema.get("type") == "string" and "enum" not in schema:
        return
    if _members(mine.strip("[]")) == theirs.strip("[]") and mine.startswith("[") == theirs.startswith("["):
        return
    yield f"{path} is {mine!r} here and {theirs!r} in the definition"


def _members(kind: str) -> str:
    return ", ".join(sorted(STRUCTS[kind])) if kind in STRUCTS else kind


def _sub_chart(folder: Path, table: set[str]) -> Iterator[str]:
    templates = folder / "charts" / NFD / "templates"
    if not templates.exists():
        return
    read = {f"{NFD}.{path}" for path in _in_templates(templates)}
    mine = {path for path in table if path.startswith(f"{NFD}.")}
    sections = {path[:dot] for path in mine for dot, letter in enumerate(path) if letter == "."}
    for path in sorted(read - mine - sections - {path for path, key in KEYS.items() if key.why_not}):
        yield f'lacks "{path}", which a template of the sub-chart reads'
    for path in sorted(mine - read):
        if not any(path.startswith(f"{whole}.") for whole in read):
            yield f"{path} is read by no template of the sub-chart"


def _own_values(folder: Path, release: str) -> Iterator[str]:
    """The chart's own values pass the check: what says the default again says nothing."""
    candidates = (folder / "chart-values.yaml", folder / "values.yaml")
    values = yaml.safe_load(next(path for path in candidates if path.exists()).read_text("utf-8"))
    try:
        check_keys(values, GPU_OPERATOR[release])
    except GpuConstructsError as error:
        yield f"the chart's own values are refused: {error}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
