"""The page about fleets: its file and its program write what the page shows."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "fleets.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S)


def test_the_program_of_the_page_prints_and_writes_what_the_page_shows(tmp_path):
    (tmp_path / "clusters.yaml").write_text(blocks("yaml")[0])
    (tmp_path / "app.py").write_text(blocks("python")[0])
    done = subprocess.run([sys.executable, "app.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    printed, table = blocks("text")
    assert (done.returncode, done.stderr) == (0, printed)
    before = sorted((tmp_path / "dist").rglob("*"))
    for command in blocks("bash")[1:]:
        arguments = shlex.split(command)[3:]
        done = subprocess.run([sys.executable, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert (done.returncode, "unchanged" in done.stderr) == (0, True), command
    assert sorted((tmp_path / "dist").rglob("*")) == before
    assert (tmp_path / "dist/reports/fleet-capacity.txt").read_text().partition("\n")[2] == table
