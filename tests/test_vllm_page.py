"""The page on vLLM: its programs run as written, its commands and numbers are those of what they make."""

from __future__ import annotations

from pathlib import Path

import pytest

import dist
import recipe_pages
from gpu_constructs.recipes.vllm import Vllm

PAGE = dist.ROOT / "docs" / "vllm.md"
TEXT = PAGE.read_text(encoding="utf-8")


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[recipe_pages.Manifest]]:
    return recipe_pages.written(PAGE, tmp_path, monkeypatch)


def test_the_programs_make_what_is_said(written: dict[str, list[recipe_pages.Manifest]]) -> None:
    assert sorted(written) == ["dist-shared", "dist-vllm"]
    made = [m for m in written["dist-vllm"] if m["metadata"].get("namespace") == "vllm"]
    names = {m["kind"]: m["metadata"]["name"] for m in made}
    assert names == {"Deployment": "vllm", "Service": "vllm", "PersistentVolumeClaim": "vllm-data"}
    (deployment,) = (m for m in made if m["kind"] == "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    assert (pod["securityContext"]["runAsUser"], pod["enableServiceLinks"]) == (2000, False)
    probe = pod["containers"][0]["startupProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] == 1800


def test_the_part_of_a_shared_gpu_is_the_number_that_is_said(
    written: dict[str, list[recipe_pages.Manifest]],
) -> None:
    args = recipe_pages.container(written["dist-shared"])["args"]
    index = args.index("--gpu-memory-utilization")
    assert f"`{' '.join(args[index : index + 2])}`" in TEXT


def test_the_commands_name_what_the_programs_make(written: dict[str, list[recipe_pages.Manifest]]) -> None:
    assert len(recipe_pages.commands(PAGE)) == 6
    assert recipe_pages.wrong_commands(PAGE, written["dist-vllm"]) == []


def test_the_keywords_are_the_construct_s() -> None:
    assert recipe_pages.keywords(PAGE, Vllm) == []
