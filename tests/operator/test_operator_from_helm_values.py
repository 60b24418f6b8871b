"""Tests of the GPU Operator from the values of its Helm chart."""

import re
import warnings
from pathlib import Path
from typing import Any

import pytest
import yaml
from cdk8s import App, Chart

from gpu_constructs import Delivery, GpuConstructsError, GpuConstructsWarning, GpuOperator, Talos
from house_style import assert_house_style

CASES = yaml.safe_load((Path(__file__).parent / "helm_values.yaml").read_text(encoding="utf-8"))
RELEASE = {"release_name": "gpu-operator", "namespace": "gpu-operator"}


def made(values: Any, **given: Any) -> tuple[GpuOperator, list[str]]:
    """Return the operator and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        operator = GpuOperator.from_helm_values(Chart(App(), "c"), "operator", values, **{**RELEASE, **given})
    assert {warning.category for warning in caught} <= {GpuConstructsWarning}
    return operator, [str(warning.message) for warning in caught]


def refused(values: Any, **given: Any) -> Any:
    with pytest.raises(GpuConstructsError) as caught:
        made(values, **given)
    assert_house_style(caught.value, "c/operator")
    return caught.value


@pytest.mark.parametrize("case", CASES["taken"], ids=lambda case: str(case["values"])[:60])
def test_the_chart_gets_the_values_without_the_keys_that_it_ignores(case):
    operator, warned = made(case["values"], version=case.get("version", "26.7.0"))
    assert operator.values == case.get("kept", case["values"])
    assert [re.sub(r", got .*", "", one) for one in warned] == case.get("warns", [])


@pytest.mark.parametrize("case", CASES["refused"], ids=lambda case: str(case["values"])[:60])
def test_all_problems_are_reported_at_once_or_their_keys_are_dropped(case):
    problems = refused(case["values"]).problems
    assert [problem.partition(" ")[0] for problem in problems] == case["keys"]
    assert all(problem.endswith(" Pass strict=False to drop it") for problem in problems)
    operator, warned = made(case["values"], strict=False)
    assert operator.values == case["kept"]
    dropped = [one.partition(" is dropped: it ")[0] for one in warned if " is dropped: it " in one]
    assert sorted(dropped) == sorted(case["keys"])


def test_a_platform_and_a_delivery_are_options():
    operator, _ = made({"driver": {"enabled": False}}, platform=Talos("1.13"), delivery=Delivery.flux())
    assert operator.values["hostPaths"] == {"driverInstallDir": "/usr/local"}
    assert operator.api_object.kind == "HelmRelease"
    assert "on Talos" in refused({"driver": {"enabled": True}}, platform=Talos("1.13")).problem


def test_an_error_names_the_line_in_the_file(tmp_path):
    file = tmp_path / "values.yaml"
    file.write_text("driver:\n  enabled: 'false'\nmig:\n  strategy: all\n", encoding="utf-8")
    with pytest.raises(GpuConstructsError) as caught:
        GpuOperator.from_helm_values_file(Chart(App(), "c"), "operator", file, **RELEASE)
    starts = [problem.partition(" must")[0] for problem in caught.value.problems]
    assert starts == ["line 2: values.driver.enabled", "line 4: values.mig.strategy"]


def test_values_must_be_a_mapping():
    assert refused("${values}").problem.startswith("values must be ")
