"""What holds for every page: its programs run as written, and what is refused gives the error that is shown."""

import inspect
import re
import warnings
from pathlib import Path
from typing import Any

import pytest

import documents
import gpu_constructs
import recipe_pages
from documents import Page
from gpu_constructs import GpuConstructsError
from tables import cases

# Their programs read files or run programs, for which they have tests of their own.
WITH_FILES = {"capacity-plan", "coming-from-helm", "gpu-access", "gpu-operator", "rules", "tutorial", "fleets"}
PAGES = [
    path.stem
    for path in documents.DOCUMENTS
    if path.parent.name == "docs" and path.stem not in WITH_FILES and documents.blocks(path, "python")
]
# What is not refused, and is no app by itself.
FRAGMENTS = {"dashboard": 1, "pytorch-training": 2}
# Outputs that are no refusals: other tests of the page compare them.
OUTPUTS = {"dra": 1, "power": 1, "talos-gpu-node": 6, "vllm": 1, "which-route": 1, "your-own-app": 1}
# Pages that are not about a task.
NO_TASK = {"design-decisions", "field-notes", "glossary", "how-it-is-tested", "index", "metrics", "rules", "runbook"}
NO_TASK |= {"security", "speed", "troubleshooting", "which-route"}
TASKS = [
    path
    for path in documents.DOCUMENTS
    if path.parent.name == "docs" and path.stem not in NO_TASK and not path.stem.startswith("command-")
]
# Pages whose apps have to be free of advice.
WITHOUT_ADVICE = {"pytorch-training", "katib-experiment", "kubeflow-notebook"}


def refusal_of(page: Page, program: str, folder: Path) -> GpuConstructsError | None:
    try:
        page.run(program, folder)
    except GpuConstructsError as error:
        return error
    return None


def urls(service: dict[str, Any]) -> list[str]:
    """The addresses of a Service for pods of other namespaces."""
    host = f"{service['metadata']['name']}.{service['metadata']['namespace']}.svc"
    return [f"http://{host}:{port['port']}" for port in service["spec"]["ports"]]


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
    services = [one for one in documents.objects_in(tmp_path) if one["kind"] == "Service"]
    assert set(re.findall(r"`(http://[^/`]+\.svc:\d+)", page.raw)) <= {url for one in services for url in urls(one)}
    for applied in re.findall(r"`kubectl apply -f (dist-\S+)/`", page.raw):
        assert list(tmp_path.glob(f"*/{applied}/*.k8s.yaml")), applied
        assert f"{applied}/needs-crds/`" in page.raw or not list(tmp_path.glob(f"*/{applied}/needs-crds")), applied
    shown = page.blocks("text")
    for program in page.refused:
        error = refusal_of(page, program, tmp_path)
        if error is None:
            fragments -= 1
        else:
            shown.remove(f"{error}\n")
    assert fragments == 0
    assert len(shown) == OUTPUTS.get(name, 0), shown


def test_a_page_for_a_task_begins_with_what_it_needs_and_ends_with_what_to_run() -> None:
    for path in TASKS:
        text = path.read_text(encoding="utf-8")
        assert re.findall(r"^## (.*)$", text, re.M)[0] == "Before you begin", path.name
        last = text.rpartition("\n## ")[2]
        assert re.search(r"[`\n](kubectl|uv|python) |`http://\S+\.svc:", last), path.name
        assert all(f'App(outdir="{folder}")' in text for folder in re.findall(r"(dist-[a-z]+)/", last)), path.name
    assert len(TASKS) > 20


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


@pytest.mark.parametrize(("name", "count"), [("comfyui", 4), ("media-servers", 6), ("ollama", 9), ("vllm", 6)])
def test_the_commands_of_a_recipe_name_what_its_first_program_makes(name: str, count: int, tmp_path: Path) -> None:
    page = Page(name)
    written = page.written(0, tmp_path)
    assert len(recipe_pages.commands(page.path)) == count
    assert recipe_pages.wrong_commands(page.path, written) == []
