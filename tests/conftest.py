"""What every test shares: an app in a folder of its own, readable snapshots, invariants on every object."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cdk8s import App, Chart, Testing, Yaml
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

import gpu_constructs  # noqa: F401  (first: it finds Node.js before jsii looks for it)
import invariants


class YamlSnapshot(SingleFileSnapshotExtension):
    """A snapshot as the YAML that a reviewer would read."""

    _write_mode = WriteMode.TEXT
    file_extension = "yaml"

    def serialize(self, data: Any, **_: Any) -> str:
        return data if isinstance(data, str) else Yaml.stringify(*data)


@pytest.fixture
def snapshot(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    return snapshot.use_extension(YamlSnapshot)


@pytest.fixture
def app(tmp_path: Path) -> App:
    return App(outdir=str(tmp_path / "dist"))


@pytest.fixture
def chart(app: App) -> Chart:
    return Chart(app, "gpu")


@pytest.fixture
def objects() -> Callable[[Chart], list[dict[str, Any]]]:
    """Give what a chart renders, after every object passed the invariants."""

    def rendered(chart: Chart) -> list[dict[str, Any]]:
        manifests = Testing.synth(chart)
        invariants.hold_for(manifests)
        return manifests

    return rendered
