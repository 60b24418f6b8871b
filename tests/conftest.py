"""What every test shares: an app in a folder of its own, readable snapshots, invariants on every object."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cdk8s import Yaml
from hypothesis import HealthCheck, settings
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

import invariants
from gpu_constructs import App, Chart, Testing

# The same examples in every run, and none refused for the time it took: a busy machine is no fault of the code.
settings.register_profile(
    "tests",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.function_scoped_fixture],
)
settings.load_profile("tests")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect without the garbage collector, which takes a quarter of the time until the first test starts."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


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
