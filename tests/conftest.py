"""What every test shares: an app in a folder of its own, readable snapshots, invariants on every object."""

import gc
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cdk8s import Yaml
from hypothesis import HealthCheck, settings
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

import depth
import invariants
import refusals
import tables
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


def is_asked_for(marker: str, expression: str) -> bool:
    """Check whether the expression of ``-m`` names a marker without ``not``."""
    return re.search(rf"(?<!not ){marker}\b", expression) is not None


def pytest_configure(config: pytest.Config) -> None:
    """Choose how deep properties look, and refuse end-to-end tests on a machine without the programs that they run."""
    sys.path.insert(0, str(Path(__file__).parent / "e2e"))
    depth.is_deep = is_asked_for("slow", str(config.option.markexpr))
    if not hasattr(config, "workerinput"):
        import assets

        expression = str(config.option.markexpr)
        try:
            assets.check(expression)
        except assets.AssetsError as error:
            raise pytest.UsageError(str(error)) from None
        if assets.are_asked_for(expression) and assets.has_own_cluster() and config.option.numprocesses:
            raise pytest.UsageError(f"tests cannot share the cluster of {assets.CLUSTER_VARIABLE}; add: -n 0")


OF_A_MARKER = ("e2e", "slow")
"""Folders whose tests carry the marker of that name, and are not even read in a run that does not ask for it."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the folders of markers that no one asked for, so that the first test starts sooner."""
    name = collection_path.name
    if name not in OF_A_MARKER or collection_path.parent != Path(__file__).parent:
        return None
    return None if is_asked_for(name, str(config.option.markexpr)) else True


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests of tests/slow."""
    if "slow" in item.path.relative_to(Path(__file__).parent).parts:
        item.add_marker("slow")


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
    """Return what a chart renders, after every object passed the invariants."""

    def rendered(chart: Chart) -> list[dict[str, Any]]:
        manifests = Testing.synth(chart)
        invariants.hold_for(manifests)
        return manifests

    return rendered


@pytest.fixture
def rows(request: pytest.FixtureRequest) -> list[tuple[Any, ...]]:
    """Return what stands in each row of the test's table, by the columns of its first row."""
    found = tables.table(request.function)
    return [tuple(row[column] for column in found[0]) for row in found]


@pytest.fixture
def keywords(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Return the test's table where it holds the keywords of one call."""
    return tables.table(request.function)


@pytest.fixture
def expected(request: pytest.FixtureRequest) -> Any:
    """Return the test's table where it holds what the test expects."""
    return tables.table(request.function)


@pytest.fixture
def refused(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Return a check that functions refuse each row of the test's table, in its words."""
    return partial(refusals.check_refused, request.function)
