"""The comparison with the schemas of Talos notices what does not fit; here they are made of the committed structure."""

import json
from pathlib import Path

import pytest

import talos_schemas
import talos_structure
from gpu_constructs import Talos
from gpu_constructs.talos.installer import driver_version

RELEASE = "v1.12.11"


@pytest.fixture
def folder(tmp_path):
    """Write schemas like the committed structure, and the drivers of one release."""
    for line, kinds in talos_structure.committed().items():
        definitions = {f"{'v1alpha1.' if kind == talos_structure.CONFIG else ''}{kind}": kinds[kind] for kind in kinds}
        for kind in talos_structure.committed_kinds()[line]:
            definitions.setdefault(kind, {"properties": {"kind": {"enum": [kind]}}})
        schema = {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$defs": definitions,
            "oneOf": [{"$ref": f"#/$defs/{name}"} for name in definitions],
        }
        (tmp_path / f"schema-{line}.json").write_text(json.dumps(schema))
    write_drivers(tmp_path, {b: driver_version(Talos(RELEASE), b) for b in ("lts", "production")})
    return tmp_path


def write_drivers(folder: Path, drivers) -> None:
    (folder / "driver-versions.json").write_text(json.dumps({RELEASE: drivers}))


def edit(folder: Path, line, change) -> None:
    path = folder / f"schema-{line}.json"
    schema = json.loads(path.read_text())
    change(schema)
    path.write_text(json.dumps(schema))


def test_all_checks_hold_for_schemas_like_the_committed_structure(folder, capsys):
    assert talos_schemas.main([str(folder)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "58 checks: 58 hold, 0 do not"
    (folder / "schema-1.11.json").unlink()
    assert talos_schemas.main([str(folder)]) == 1
    assert capsys.readouterr().out.startswith("UNREADABLE ")


def test_what_does_not_fit_fails_its_checks_and_no_other(folder, capsys, expected):
    def drop_sysctls(schema):
        schema["$defs"]["v1alpha1.v1alpha1"]["properties"]["machine"]["properties"].pop("sysctls")

    def take_anything(schema):
        schema["$defs"]["v1alpha1.v1alpha1"] = {"properties": {}}
        schema["$defs"]["SysctlConfig"]["properties"].update(more={})

    def add_a_kind(schema):
        schema["$defs"]["NewConfig"] = {"properties": {"kind": {"enum": ["NewConfig"]}}}
        schema["oneOf"].append({"$ref": "#/$defs/NewConfig"})

    edit(folder, "1.12", drop_sysctls)
    edit(folder, "1.14", take_anything)
    edit(folder, "1.13", add_a_kind)
    write_drivers(folder, {"lts": "1.2.3", "production": "570.211.01"})
    assert talos_schemas.main([str(folder)]) == 1
    found = [line.partition(" ")[2] for line in capsys.readouterr().out.splitlines() if line.startswith("FAILED")]
    one_document = "valid for 1.10, 1.11, 1.12, 1.13 only"
    assert {f"Talos 1.10, bare: {one_document}", f"Talos 1.13, bare: {one_document}"} <= set(found)
    assert [name for name in found if not name.endswith(one_document)] == expected


def test_the_committed_structure_names_its_sources():
    text = talos_structure.COMMITTED.read_text()
    for line, tag in talos_structure.SOURCES.items():
        assert talos_structure.PATH.format(tag=tag) in text
        assert line in talos_structure.committed()
