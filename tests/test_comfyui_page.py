"""The page on ComfyUI: its programs run as written, its commands and numbers are those of what they make."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import get_args

import pytest

import dist
import documents
import recipe_pages
from gpu_constructs.recipes.comfyui import LAYOUTS, ComfyUI, ComfyUILayout, VramMode

PAGE = dist.ROOT / "docs" / "comfyui.md"
TEXT = PAGE.read_text(encoding="utf-8")


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[recipe_pages.Manifest]]:
    return recipe_pages.written(PAGE, tmp_path, monkeypatch)


def test_the_programs_make_what_is_said(written: dict[str, list[recipe_pages.Manifest]]) -> None:
    assert sorted(written) == ["dist-comfyui", "dist-models", "dist-own", "dist-shared"]
    made = [m for m in written["dist-comfyui"] if m["metadata"].get("namespace") == "comfyui"]
    names = {m["kind"]: m["metadata"]["name"] for m in made}
    assert names == {"Deployment": "comfyui", "Service": "comfyui", "PersistentVolumeClaim": "comfyui-root"}
    (service,) = (m for m in made if m["kind"] == "Service")
    assert [port["port"] for port in service["spec"]["ports"]] == [8188]


def test_the_budget_is_the_number_that_is_said(written: dict[str, list[recipe_pages.Manifest]]) -> None:
    (variable,) = recipe_pages.container(written["dist-shared"])["env"]
    assert variable == {"name": "CLI_ARGS", "value": "--reserve-vram 4"}
    assert "4015 MiB, so 4:" in TEXT


def test_models_that_may_only_be_read_are_mounted_where_the_image_copies_nothing(
    written: dict[str, list[recipe_pages.Manifest]],
) -> None:
    mounts = recipe_pages.container(written["dist-models"])["volumeMounts"]
    found = {one["subPath"]: one["mountPath"] for one in mounts if one.get("readOnly")}
    assert found == {name: f"/root/ComfyUI/models/{name}/shared" for name in ("checkpoints", "loras")}
    assert len({one["name"] for one in mounts if one.get("readOnly")}) == 1


def test_another_image_is_told_to_listen_as_said(written: dict[str, list[recipe_pages.Manifest]]) -> None:
    assert f"`{' '.join(recipe_pages.container(written['dist-own'])['args'])}` is added" in TEXT


def test_the_commands_name_what_the_programs_make(written: dict[str, list[recipe_pages.Manifest]]) -> None:
    assert len(recipe_pages.commands(PAGE)) == 4
    assert recipe_pages.wrong_commands(PAGE, written["dist-comfyui"]) == []


def test_keywords_and_members_are_the_code_s() -> None:
    assert recipe_pages.keywords(PAGE, ComfyUI) == []
    members = [row[0].strip("`") for row in documents.table(PAGE, "member")]
    assert sorted(members) == sorted(member.name for member in dataclasses.fields(ComfyUILayout))
    (modes,) = (row[1] for row in documents.table(PAGE, "keyword") if row[0] == "`vram_mode`")
    assert all(f"`{mode}`" in modes for mode in get_args(VramMode))


def test_the_image_that_is_known_is_the_code_s() -> None:
    (known,) = LAYOUTS
    assert f"`docker.io/{known}` is known" in TEXT
    assert f"`{LAYOUTS[known].flags_variable}`" in TEXT
