"""The tutorial: its commands print what it shows, and what it says of the result is so."""

import json
from pathlib import Path

import documents
import tutorial


def test_the_commands_print_what_is_shown_and_make_what_is_described(tmp_path: Path) -> None:
    text = tutorial.PAGE.read_text(encoding="utf-8")
    assert tutorial.played(tmp_path, install=False) == text
    written = tmp_path / tutorial.PROJECT / "dist"
    service = documents.of_kind("Service", documents.objects_in(written))
    name, namespace, (port,) = service["metadata"]["name"], service["metadata"]["namespace"], service["spec"]["ports"]
    assert f"reach the model at `http://{name}.{namespace}.svc:{port['port']}`" in text
    (node,) = json.loads((written / "reports" / "capacity-plan.json").read_text(encoding="utf-8"))["nodes"]
    assert node["allocatable"]["nvidia.com/gpu"] == 4
    assert "The node then has four slots" in text
