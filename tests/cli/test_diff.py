"""What ``gpu-constructs diff`` says about changes of manifests."""

import json

import pytest
import yaml

from cli.changes import changes
from gpu_constructs.cli.main import main


def written(path, *manifests):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("---\n".join(yaml.safe_dump(one, sort_keys=False) for one in manifests))
    return str(path)


def said(capsys, *arguments):
    """Return the exit status, and the result as JSON."""
    status = main(["diff", *map(str, arguments), "--format", "json"])
    return status, json.loads(capsys.readouterr().out)


def _texts(item):
    return [effect["text"] for effect in item["effects"]]


@pytest.mark.parametrize(("row", "old", "new"), changes())
def test_each_change_has_its_consequence(row, old, new, tmp_path, capsys):
    status, result = said(capsys, written(tmp_path / "old.yaml", old), written(tmp_path / "new.yaml", new))
    texts = [text for one in result["objects"] for text in (one["consequence"], *_texts(one))]
    topics = {effect["topic"] for one in result["objects"] for effect in one["effects"]}
    assert status == bool(texts)
    assert ("immutable" in topics) == (row.get("refused") is True)
    assert ("restart" in topics) == ("restarts" in row)
    assert row.get("says", "") in "\n".join(texts)
