import json
from pathlib import Path

import pytest

import talos_schemas
import talos_structure
from gpu_constructs import Talos
from gpu_constructs.talos.driver_versions import driver_version

RELEASE = "v1.12.11"


@pytest.fixture
def folder(tmp_path):
    """Schemas made of the committed structure, and the drivers of one release."""
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
    write_drivers(tmp_path, {RELEASE: {b: driver_version(Talos(RELEASE), b) for b in ("lts", "production")}})
    return tmp_path


def write_drivers(folder: Path, releases) -> None:
    (folder / "driver-versions.json").write_text(json.dumps(releases))


def edit(folder: Path, line, change) -> None:
    path = folder / f"schema-{line}.json"
    schema = json.loads(path.read_text())
    change(schema["$defs"])
    path.write_text(json.dumps(schema))


def failed(capsys) -> list[str]:
    return [line.removeprefix("FAILED ") for line in capsys.readouterr().out.splitlines() if line.startswith("FAILED")]


def test_all_checks_hold_for_schemas_like_the_committed_structure(folder, capsys):
    assert talos_schemas.main([str(folder)]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[-1] == "58 checks: 58 hold, 0 do not"
    assert len(out) == 59


def test_a_missing_schema_is_no_pass(folder, capsys):
    (folder / "schema-1.11.json").unlink()
    assert talos_schemas.main([str(folder)]) == 1
    assert capsys.readouterr().out.startswith("UNREADABLE ")


def test_a_field_that_a_release_drops_fails_the_variants_that_have_it(folder, capsys):
    edit(folder, "1.13", lambda defs: defs["v1alpha1.v1alpha1"]["properties"]["machine"]["properties"].pop("sysctls"))
    assert talos_schemas.main([str(folder)]) == 1
    names = failed(capsys)
    assert "Talos 1.10, bare: valid for 1.10, 1.11, 1.12, 1.13 only" in names
    assert "committed structure of 1.13" in names
    assert "Talos 1.14, bare: valid for 1.14 only" not in names


def test_a_configuration_valid_for_another_shape_fails(folder, capsys):
    edit(folder, "1.14", lambda defs: defs.update({"v1alpha1.v1alpha1": {"properties": {}}}))
    assert talos_schemas.main([str(folder)]) == 1
    assert "Talos 1.13, bare: valid for 1.10, 1.11, 1.12, 1.13 only" in failed(capsys)


def test_a_key_that_our_checks_refuse_fails(folder, capsys):
    edit(folder, "1.14", lambda defs: defs["SysctlConfig"]["properties"].update(more={}))
    assert talos_schemas.main([str(folder)]) == 1
    assert failed(capsys) == ["committed structure of 1.14", "keys that patches may hold"]


def test_a_kind_that_our_table_lacks_fails(folder, capsys):
    path = folder / "schema-1.13.json"
    schema = json.loads(path.read_text())
    schema["$defs"]["NewConfig"] = {"properties": {"kind": {"enum": ["NewConfig"]}}}
    schema["oneOf"].append({"$ref": "#/$defs/NewConfig"})
    path.write_text(json.dumps(schema))
    assert talos_schemas.main([str(folder)]) == 1
    assert failed(capsys) == ["kinds of documents"]


@pytest.mark.parametrize("releases", [{RELEASE: {"lts": "1.2.3", "production": "570.211.01"}}, {}])
def test_a_wrong_driver_or_none_at_all_fails(folder, capsys, releases):
    write_drivers(folder, releases)
    assert talos_schemas.main([str(folder)]) == 1
    assert failed(capsys) == ["drivers by release"]


def test_the_committed_structure_names_its_sources():
    text = talos_structure.COMMITTED.read_text()
    for line, tag in talos_structure.SOURCES.items():
        assert talos_structure.PATH.format(tag=tag) in text
        assert line in talos_structure.committed()
