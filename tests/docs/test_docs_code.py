"""The Python blocks of the documents: each is a program by itself. The tests of the pages run them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import test_readme

import documents


def programs(document: Path) -> list[str]:
    """The Python blocks of a document; those of the README that continue its first app, with that app."""
    blocks = [block.text for block in documents.blocks(document, "python")]
    return [test_readme.program(block) if document == documents.README else block for block in blocks]


def complaints(folder: Path) -> str:
    """What ruff finds in the programs of a folder: undefined names, unused imports, unused variables."""
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--quiet", "--select", "F"]
    ran = subprocess.run(
        [*command, "--output-format", "concise", "."], cwd=folder, capture_output=True, text=True, check=False
    )
    return ran.stdout + ran.stderr


def test_a_python_block_defines_and_imports_all_that_it_uses(tmp_path: Path) -> None:
    written = 0
    for document in documents.DOCUMENTS:
        for number, program in enumerate(programs(document)):
            (tmp_path / f"{document.stem}-{number}.py").write_text(program, encoding="utf-8")
            written += 1
    assert written > 100
    assert complaints(tmp_path) == ""


def test_a_block_that_uses_what_another_one_defines_would_be_found(tmp_path: Path) -> None:
    (tmp_path / "page-0.py").write_text('GpuWorkload(chart, "chat")\n', encoding="utf-8")
    found = complaints(tmp_path)
    assert "Undefined name `GpuWorkload`" in found
    assert "Undefined name `chart`" in found
