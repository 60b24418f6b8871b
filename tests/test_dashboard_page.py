"""The page on the dashboard: its programs run as written, and its tables name what is there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

import dashboard_picture
import dist
import documents

PAGE = dist.ROOT / "docs" / "dashboard.md"
PROGRAMS = [block.text for block in documents.blocks(PAGE, "python")]
APPS = [program for program in PROGRAMS if "synth(app)" in program]
CONTENTS = dashboard_picture.contents().values()
PANELS = [panel for content in CONTENTS for panel in content["panels"]]


def written_by(program: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[dist.Manifest]:
    monkeypatch.chdir(folder)
    exec(compile(program, "dashboard.md", "exec"), {})
    files = sorted(folder.rglob("*.k8s.yaml"))
    objects = [one for file in files for one in yaml.safe_load_all(file.read_text(encoding="utf-8")) if one]
    return [one for one in objects if one["metadata"].get("labels", {}).get("grafana_dashboard") == "1"]


def test_a_dashboard_in_the_namespace_of_grafana(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (board,) = written_by(APPS[0], tmp_path, monkeypatch)
    assert board["metadata"]["namespace"] == "monitoring"
    assert board["metadata"]["annotations"] == {"grafana_folder": "GPUs"}


def test_two_exporters_of_one_kind_have_dashboards_that_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    boards = written_by(APPS[1], tmp_path, monkeypatch)
    contents = [json.loads(text) for board in boards for text in board["data"].values()]
    assert {one["uid"] for one in contents} == {"gpus-train", "gpus-serve"}
    assert len({one["title"] for one in contents}) == 2
    assert len({board["metadata"]["name"] for board in boards}) == 2


def test_a_changed_dashboard_is_what_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (board,) = written_by(APPS[2], tmp_path, monkeypatch)
    content = json.loads(board["data"]["dcgm-exporter.json"])
    assert content["time"]["from"] == "now-24h"
    assert "team-ai" in content["tags"]
    (hottest,) = (panel for panel in content["panels"] if panel["title"] == "Hottest GPU")
    assert hottest["fieldConfig"]["defaults"]["thresholds"]["steps"][1] == {"color": "orange", "value": 75}


def test_a_dashboard_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (program,) = set(PROGRAMS) - set(APPS)
    monkeypatch.chdir(tmp_path)
    exec(compile(program, "dashboard.md", "exec"), {})
    assert json.loads((tmp_path / "our-gpus.json").read_text())["uid"] == "our-gpus"


def test_the_table_of_rows_has_every_row_in_order() -> None:
    told = [row[0] for row in documents.table(PAGE, "row")]
    assert len(told) == len(set(told))
    for content in CONTENTS:
        rows = [panel["title"] for panel in content["panels"] if panel["type"] == "row"]
        assert [title for title in told if title in rows] == rows
    assert set(told) == {panel["title"] for panel in PANELS if panel["type"] == "row"}


def test_panels_that_are_named_are_there() -> None:
    named = set(re.findall(r"(?<!\*)\*([A-Z][^*]+)\*(?!\*)", documents.prose(PAGE)))
    assert named - {"Save as"} <= {panel["title"] for panel in PANELS} | {"Profiling"}
    assert len(named) > 15


def test_the_table_of_variables_has_every_variable() -> None:
    told = [row[0] for row in documents.table(PAGE, "variable")]
    content, *_ = CONTENTS
    assert told == [variable["label"] for variable in content["templating"]["list"]]


def test_every_link_leads_somewhere() -> None:
    for target in documents.links(PAGE):
        file, _, anchor = target.partition("#")
        assert (PAGE.parent / file).exists()
        assert not anchor or file or anchor in documents.anchors(PAGE)


def test_the_values_for_the_sidecar_are_yaml() -> None:
    (block,) = documents.blocks(PAGE, "yaml")
    sidecar = yaml.safe_load(block.text)["grafana"]["sidecar"]["dashboards"]
    assert (sidecar["label"], sidecar["labelValue"], sidecar["folderAnnotation"]) == (
        "grafana_dashboard",
        "1",
        "grafana_folder",
    )


def test_its_size_is_as_told() -> None:
    sizes = [len(json.dumps(content)) for content in CONTENTS]
    assert min(sizes) > 25_000
    assert max(sizes) < 85_000
