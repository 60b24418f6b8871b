"""What holds for every page: its programs run as written, and what is refused gives the error that is shown."""

from __future__ import annotations

import inspect
import warnings
from pathlib import Path

import pytest

import documents
import gpu_constructs
import recipe_pages
from documents import Page
from gpu_constructs import GpuConstructsError
from tables import cases

# Their programs read files or run programs, for which they have tests of their own.
WITH_FILES = {"capacity-plan", "coming-from-helm", "gpu-access", "gpu-operator", "rules"}
PAGES = [
    path.stem
    for path in documents.DOCUMENTS
    if path.parent.name == "docs" and path.stem not in WITH_FILES and documents.blocks(path, "python")
]
# What is not refused, and is no app by itself.
FRAGMENTS = {"dashboard": 1, "pytorch-training": 2}
# Pages whose apps have to be free of advice.
WITHOUT_ADVICE = {"pytorch-training", "katib-experiment", "kubeflow-notebook"}


def refusal_of(page: Page, program: str, folder: Path) -> GpuConstructsError | None:
    try:
        page.run(program, folder)
    except GpuConstructsError as error:
        return error
    return None


@pytest.mark.parametrize("name", PAGES)
def test_programs_run_as_written_and_refusals_are_those_that_are_shown(name: str, tmp_path: Path) -> None:
    page, fragments = Page(name), FRAGMENTS.get(name, 0)
    for number, program in enumerate(page.apps):
        folder = tmp_path / str(number)
        folder.mkdir()
        with warnings.catch_warnings():
            warnings.simplefilter("error" if name in WITHOUT_ADVICE else "ignore")
            page.run(program, folder)
        assert list(folder.rglob("*.*")), program
    for program in page.refused:
        error = refusal_of(page, program, tmp_path)
        assert error is None or f"{error}\n" in page.blocks("text")
        fragments -= error is None
    assert fragments == 0


@cases
def test_a_table_of_keywords_has_those_of_the_construct_and_their_defaults(name: str, construct: str) -> None:
    known = inspect.signature(getattr(gpu_constructs, construct)).parameters
    page = Page(name)
    shows_defaults = "| keyword | default |" in page.raw
    for keyword, says, *_ in page.table("keyword"):
        keyword = keyword.strip("`")
        member = keyword.partition(".")[2]
        assert keyword in known or member in gpu_constructs.TrainingPod.__dataclass_fields__, keyword
        if shows_defaults and keyword in known and known[keyword].default not in (None, ...):
            assert says.strip('`"') == str(known[keyword].default), keyword


@pytest.mark.parametrize(("name", "count"), [("comfyui", 4), ("ollama", 9), ("vllm", 6)])
def test_the_commands_of_a_recipe_name_what_its_first_program_makes(name: str, count: int, tmp_path: Path) -> None:
    page = Page(name)
    written = page.written(0, tmp_path)
    assert len(recipe_pages.commands(page.path)) == count
    assert recipe_pages.wrong_commands(page.path, written) == []
