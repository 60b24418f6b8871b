"""docs/command-*.md: each console block shows what its command prints. UPDATE_PAGES=1 writes the output anew.

A block ``console`` begins with ``$ gpu-constructs …`` and goes on with the output. A YAML block whose first line is
``# name.yaml`` is a file that the commands of the page read. The commands run beside ``dist/``, ``examples/``
and ``docs/``.
"""

import contextlib
import io
import os
import re
import shlex

import pytest

import documents
from dist import ROOT
from gpu_constructs.cli.main import main

PAGES = sorted((ROOT / "docs").glob("command-*.md"))
BLOCK = re.compile(r"^```console\n\$ (gpu-constructs [^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def printed(command: str) -> str:
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output), contextlib.suppress(SystemExit):
        main(shlex.split(command)[1:])
    return output.getvalue()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_shows_what_its_commands_print(page, tmp_path, monkeypatch):
    for block in documents.blocks(page, "yaml"):
        if name := re.match(r"# (\S+\.yaml)\n", block.text):
            (tmp_path / name[1]).write_text(block.text.split("\n", 1)[1], encoding="utf-8")
    for folder in ("dist", "examples", "docs"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    right = BLOCK.sub(lambda match: f"```console\n$ {match[1]}\n{printed(match[1])}```", text)
    if os.environ.get("UPDATE_PAGES"):
        page.write_text(right, encoding="utf-8")
    assert text.splitlines() == right.splitlines()
