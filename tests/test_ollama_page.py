"""The page on Ollama: its programs run as written, its commands and numbers are those of what they make."""

from __future__ import annotations

from pathlib import Path

import pytest

import dist
import documents
import recipe_pages
from gpu_constructs.recipes.ollama import IMAGE, Ollama

PAGE = dist.ROOT / "docs" / "ollama.md"
TEXT = PAGE.read_text(encoding="utf-8")


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[recipe_pages.Manifest]]:
    return recipe_pages.written(PAGE, tmp_path, monkeypatch)


def test_the_programs_make_what_is_said(written: dict[str, list[recipe_pages.Manifest]]) -> None:
    assert sorted(written) == ["dist-ollama", "dist-shared"]
    made = [m for m in written["dist-ollama"] if m["metadata"].get("namespace") == "ollama"]
    names = {m["kind"]: m["metadata"]["name"] for m in made}
    assert names.pop("Job").startswith("ollama-pull-")
    assert names == {"Deployment": "ollama", "Service": "ollama", "PersistentVolumeClaim": "ollama-data"}
    (disk,) = (m for m in made if m["kind"] == "PersistentVolumeClaim")
    assert disk["spec"]["resources"]["requests"]["storage"] == "100Gi"


def test_the_variables_of_a_shared_gpu_are_those_in_the_table(
    written: dict[str, list[recipe_pages.Manifest]],
) -> None:
    made = {one["name"]: one["value"] for one in recipe_pages.container(written["dist-shared"])["env"]}
    shown = {row[0].strip("`"): row[1] for row in documents.table(PAGE, "variable")}
    assert shown == {name: value for name, value in made.items() if name not in ("HOME", "OLLAMA_MODELS")}


def test_the_commands_name_what_the_programs_make(written: dict[str, list[recipe_pages.Manifest]]) -> None:
    assert len(recipe_pages.commands(PAGE)) == 9
    assert recipe_pages.wrong_commands(PAGE, written["dist-ollama"]) == []


def test_the_keywords_are_the_construct_s() -> None:
    assert recipe_pages.keywords(PAGE, Ollama) == []


def test_the_release_is_the_one_that_runs() -> None:
    release = IMAGE.rpartition(":")[2]
    assert f"ollama/ollama@v{release}" in TEXT
    assert f"in {release} it counts" in TEXT
