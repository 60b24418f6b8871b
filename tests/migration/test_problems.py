"""Tests of the error that reports all problems of values at once, with the line of each in the file."""

import warnings
from pathlib import Path
from typing import Any

import pytest
import yaml
from cdk8s import App, Chart, Testing

from gpu_constructs import (
    DcgmExporter,
    DevicePluginChart,
    GpuConstructsError,
    GpuConstructsWarning,
    GpuOperator,
    NodeFeatureDiscoveryChart,
)
from gpu_constructs.errors import ValuesError
from house_style import assert_house_style
from tables import beside, cases

FILE = """\
# Values of a user.
serviceMonitor:
  interval: 15x
image: {tag: 1.5}
resources:
  limits:
    example.com/disk: 1 x
extraEnv:
  - name: A
    value: 1
"""
PROBLEMS = beside(__file__, "problems")["problems"]
RELEASE = {"release_name": "r", "namespace": "gpu"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "values.yaml"
    path.write_text(FILE, encoding="utf-8")
    return path


def refused(make: Any, *given: Any, **more: Any) -> Any:
    with pytest.raises(GpuConstructsError) as caught:
        make(Chart(App(), "c"), "exporter", *given, **RELEASE, **more)
    assert_house_style(caught.value, "c/exporter")
    return caught.value


def test_an_error_names_every_problem_of_a_file_once_with_its_line(file):
    error = refused(DcgmExporter.from_helm_values_file, file)
    starts = [f"line {line}: {key} " for line, key in PROBLEMS.items()]
    assert [problem.startswith(start) for problem, start in zip(error.problems, starts, strict=True)] == [True] * 4
    assert error.problem.startswith("4 problems in the values\n  line 3: ")


def test_a_warning_names_the_line_of_the_dropped_key(file):
    with pytest.warns(GpuConstructsWarning) as caught:
        DcgmExporter.from_helm_values_file(Chart(App(), "c"), "exporter", file, **RELEASE, strict=False)
    said = [str(warning.message) for warning in caught]
    assert {one.partition(" is dropped")[0] for one in said} == {f"line {n}: {key}" for n, key in PROBLEMS.items()}


def test_values_from_python_have_no_line_numbers_and_one_problem_is_one_line(expected):
    values = {"service": {"typ": "NodePort"}, "image": {"tag": 1}}
    assert [one.partition(" ")[0] for one in refused(DcgmExporter.from_helm_values, values).problems] == expected
    assert refused(DcgmExporter.from_helm_values, {"image": {"tag": 1}}).problem.startswith("values.image.tag must be")


def test_a_problem_that_strict_false_cannot_drop_is_reported_with_the_rest():
    values = {"config": {"name": "a", "map": {"b": "version: v1"}}, "image": {"tag": 1}}
    with pytest.raises(GpuConstructsError) as caught:
        DevicePluginChart.from_helm_values(App(), "c", values, **RELEASE)
    assert [one.partition(" ")[0] for one in caught.value.problems] == ["values.config", "values.image.tag"]


@cases
def test_a_file_without_values_is_rejected(file, text, problem):
    file.unlink() if text is None else file.write_text(text, encoding="utf-8")
    with pytest.raises(GpuConstructsError) as caught:
        DcgmExporter.from_helm_values_file(Chart(App(), "c"), "exporter", file, **RELEASE)
    assert caught.value.problem.startswith(problem)


MAKERS: dict[str, Any] = {
    "dcgm-exporter": DcgmExporter,
    "gpu-operator": GpuOperator,
    "node-feature-discovery": NodeFeatureDiscoveryChart,
    "nvidia-device-plugin": DevicePluginChart,
}
ADVICE = yaml.safe_load((Path(__file__).parent / "tables" / "hints.yaml").read_text(encoding="utf-8"))["advice"]


@pytest.mark.parametrize("row", ADVICE, ids=lambda row: f"{row['chart']} {row['values']}"[:70])
def test_each_message_names_what_the_user_means(row):
    parent = App() if row["chart"] in ("node-feature-discovery", "nvidia-device-plugin") else Chart(App(), "c")
    version = {"version": row["version"]} if "version" in row else {}
    errors: tuple[str, ...] = ()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            MAKERS[row["chart"]].from_helm_values(parent, "x", row["values"], **RELEASE, **version)
        except GpuConstructsError as error:
            errors = error.problems if isinstance(error, ValuesError) else (error.problem,)
    warned = [str(one.message) for one in caught]
    for kind, found in (("errors", errors), ("warnings", warned)):
        expected = row.get(kind, [])
        assert [part for part, message in zip(expected, found, strict=True) if part not in message] == []


def test_a_version_can_have_the_leading_v_of_helm():
    DcgmExporter.from_helm_values(Chart(App(), "c"), "exporter", {}, **RELEASE, version="v4.8.2")


def test_only_the_first_document_of_a_file_counts(file):
    file.write_text("service: {type: NodePort}\n---\n# nothing\n---\nservice: {type: A}\n", encoding="utf-8")
    chart = Chart(App(), "c")
    with pytest.warns(GpuConstructsWarning, match="line 5: the document has no effect") as caught:
        DcgmExporter.from_helm_values_file(chart, "exporter", file, **RELEASE)
    assert len(caught) == 1
    service = next(one for one in Testing.synth(chart) if one["kind"] == "Service")
    assert service["spec"]["type"] == "NodePort"


def test_a_date_is_text_like_in_helm(file):
    file.write_text("podAnnotations: {since: 2024-01-31}\n", encoding="utf-8")
    chart = Chart(App(), "c")
    DcgmExporter.from_helm_values_file(chart, "exporter", file, **RELEASE)
    pods = next(one for one in Testing.synth(chart) if one["kind"] == "DaemonSet")["spec"]["template"]
    assert pods["metadata"]["annotations"]["since"] == "2024-01-31"


def test_an_empty_file_has_no_values(file):
    file.write_text("# nothing\n", encoding="utf-8")
    DcgmExporter.from_helm_values_file(Chart(App(), "c"), "exporter", file, **RELEASE)
