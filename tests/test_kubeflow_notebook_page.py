"""The page on notebooks: its program runs as written, and what it says of the Notebook is in it."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
import yaml

import dist
import documents
from gpu_constructs.recipes.kubeflow_notebook import _STOPPED

PAGE = dist.ROOT / "docs" / "kubeflow-notebook.md"
TEXT = " ".join(documents.prose(PAGE).split())
(PROGRAM,) = (block.text for block in documents.blocks(PAGE, "python"))


def test_the_block_makes_a_notebook_where_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exec(compile(PROGRAM, "kubeflow-notebook.md", "exec"), {})
    written = [one for path in tmp_path.rglob("*.k8s.yaml") for one in yaml.safe_load_all(path.read_text())]
    (notebook,) = (one for one in written if one["kind"] == "Notebook")
    metadata, pod = notebook["metadata"], notebook["spec"]["template"]["spec"]
    assert f"`/notebook/{metadata['namespace']}/{metadata['name']}/`" in TEXT
    assert f"user {pod['securityContext']['runAsUser']} and group {pod['securityContext']['fsGroup']}" in TEXT
    (disk,) = (one for one in written if one["kind"] == "PersistentVolumeClaim")
    assert f"a disk of {disk['spec']['resources']['requests']['storage']} at `/home/jovyan`" in TEXT


def test_the_annotation_is_the_one_that_is_written() -> None:
    assert f"`{_STOPPED}`" in TEXT
