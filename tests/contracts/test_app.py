"""app.py as the example that everyone copies: short, complete, and it writes everything or nothing."""

import ast
import re
import runpy
from pathlib import Path

import pytest

import dist

APP = dist.ROOT / "app.py"


def test_it_is_short_as_the_formatter_writes_it() -> None:
    assert len(APP.read_text().splitlines()) <= 300


def test_all_six_constructs_are_used() -> None:
    called = {
        node.func.id
        for node in ast.walk(ast.parse(APP.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert called >= {
        "DcgmExporter",
        "DevicePluginChart",
        "GpuNamespace",
        "GpuOperator",
        "GpuWorkload",
        "NvidiaRuntimeClass",
        "TalosGpuNode",
        "ValidationBridge",
    }


def test_an_error_in_one_cluster_writes_nothing_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The last but one cluster loses its operator; the others are as good as ever."""
    text = APP.read_text()
    app = tmp_path / "app.py"
    app.write_text(re.sub(r"    GpuOperator\(\n.*?\n    \).*?\n", "", text, count=1, flags=re.DOTALL))
    assert "GpuOperator(" not in app.read_text()
    kept = tmp_path / "dist" / "kubernetes-basic" / "of-an-earlier-run.k8s.yaml"
    kept.parent.mkdir(parents=True)
    kept.write_text("# here\n")
    monkeypatch.setenv("CDK8S_OUTDIR", str(tmp_path / "dist"))

    with pytest.raises(SystemExit) as exit_:
        runpy.run_path(str(app))

    assert exit_.value.code == 1
    assert dist.all_texts(tmp_path / "dist") == {"kubernetes-basic/of-an-earlier-run.k8s.yaml": "# here\n"}
    told = capsys.readouterr()
    assert told.out == ""
    assert "nothing was written" in told.err
    assert "ollama/ollama: runtime_class 'nvidia'" in told.err
    assert "Traceback" not in told.err
