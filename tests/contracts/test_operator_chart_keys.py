"""Values of the operator's chart are checked key by key, and the table of keys is held against the chart."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

import refusals
from gpu_constructs.catalog.versions import GPU_OPERATOR
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.operator.chart_keys import KEYS, MAY_BE_NULL, check_keys
from gpu_constructs.operator.values import NFD
from operator_keys import main

MIDDLE, NEW = (GPU_OPERATOR[release] for release in ("26.3.3", "26.7.0"))
ROWS = yaml.safe_load((Path(__file__).parent / "operator_chart_keys.yaml").read_text(encoding="utf-8"))
GPU_NODES = {"nvidia.com/gpu.present": "true"}


def at(path: str, value: Any) -> dict[str, Any]:
    for name in reversed(path.split(".")):
        value = {name: value}
    return value


def refusal(values, release=NEW):
    return refusals.problem(check_keys, values, release)


def test_a_key_or_a_value_that_the_chart_would_skip_or_break_at_is_refused():
    for path, value, problem in ROWS["refused"]:
        assert problem in refusal(at(path, value)), path
    for path in ("drivr.enabled", "toleration"):
        assert "Did you mean" in refusal(at(path, True)) or "Remove it" in refusal(at(path, True))
    assert "daemonsets.labels must have text keys, got 1" in refusal({"daemonsets": {"labels": {1: "a"}}})


def test_what_the_chart_takes_passes():
    for path, value in ROWS["taken"]:
        check_keys(at(path, value), NEW)
    for path in (path for path, key in KEYS.items() if path.endswith(".affinity") and not key.why_not):
        check_keys(at(path, []), NEW)
        assert f"values.{path} must be a mapping, got [1]" in refusal(at(path, [1]))
    for section in MAY_BE_NULL:
        check_keys(at(section, None), MIDDLE if section == "operator.initContainer" else NEW)


def test_the_first_key_without_effect_is_named_with_what_to_do():
    values = {"driver": {"enabled": True, "nodeSelector": GPU_NODES}, "gfd": {"nodeSelector": GPU_NODES}}
    for release in GPU_OPERATOR.values():
        check_keys({"driver": {"enabled": False}, "hostPaths": {"driverInstallDir": "/usr/local"}}, release)
        assert refusal(values, release) == (
            f"values.driver.nodeSelector is not a key that the chart of GPU Operator {release.version} reads, so Helm "
            "would silently skip it, got {'nvidia.com/gpu.present': 'true'}. The operator places its operands by its "
            "own node labels nvidia.com/gpu.deploy.*. Remove it. To keep operands off a node, set its label "
            "nvidia.com/gpu.deploy.operands=false"
        )
    assert "daemonsets.tolerations. Move the value there" in refusal({"devicePlugin": {"tolerations": []}})
    assert f"are below {NFD!r}" in refusal({"nfd": {"worker": {"tolerations": []}}})


def test_a_key_is_taken_by_the_releases_that_have_it():
    for path, value, first in ROWS["from"]:
        for release in GPU_OPERATOR.values():
            if release.is_at_least(first):
                check_keys(at(path, value), release)
            else:
                assert f"{NEW.version} read it. Remove it" in refusal(at(path, value), release), path
    for path, value, last in ROWS["until"]:
        for release in GPU_OPERATOR.values():
            if GPU_OPERATOR[last].is_at_least(release.version):
                check_keys(at(path, value), release)
            else:
                assert f"values.{path.rpartition('.')[0]}" in refusal(at(path, value), release), path
    gone = at("driver.nvidiaDriverCRD.nodeSelector", GPU_NODES)
    check_keys(gone, MIDDLE)
    assert "Releases 25.3.0 to 26.3.3 read it" in refusal(gone, NEW)
    unverified = MIDDLE._replace(version="26.3.9")
    assert "GPU Operator 26.3.9 reads" in refusal({"gpuCluster": {"deployCR": True}}, unverified)


def test_values_must_be_a_mapping_with_text_for_keys_and_no_dots():
    for given in ("driver: {}", None, []):
        assert refusal(given).startswith("values must be a mapping, got ")
    assert "values.driver.1 must have text as its key, got 1" in refusal({"driver": {1: 2}})
    assert refusal({"devicePlugin": {"config.name": "x"}}) == (
        "values.devicePlugin['config.name'] must not contain dots, because Helm does not split keys at dots, got 'x'. "
        "Write it nested: {'config': {'name': ...}}"
    )


def test_every_type_of_the_table_is_one_that_can_be_checked():
    for path, key in KEYS.items():
        for value in ("x", 1, [], {}, ["x"], {"x": "x"}):
            if not key.why_not:
                with suppress(GpuConstructsError):
                    check_keys(at(path, value), NEW)


def test_the_comparison_names_what_the_table_lacks_and_has_too_much(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main([str(tmp_path)]) == 1
    assert "no folder of a release in it" in capsys.readouterr().out
    folder = tmp_path / "v26.7.0"
    folder.mkdir()
    below = {"properties": {"a": {"type": "string"}}}
    fields = {
        "brandNew": {"properties": {"enabled": {"type": "boolean"}, "below": below}},
        "mig": {"properties": {"strategy": {"type": "integer"}}},
    }
    versions = [{"schema": {"openAPIV3Schema": {"properties": {"spec": {"properties": fields}}}}}]
    read = ["brandNew.enabled", "brandNew.below", "mig.strategy"]
    (folder / "chart-accepted-keys.json").write_text(json.dumps(read), "utf-8")
    (folder / "chart-values.yaml").write_text("{}", "utf-8")
    (folder / "crd-clusterpolicies.yaml").write_text(json.dumps({"spec": {"versions": versions}}), "utf-8")
    assert main([str(tmp_path)]) == 1
    printed = capsys.readouterr().out
    assert '26.7.0: lacks "brandNew.enabled": "bool", which a template reads' in printed
    assert '26.7.0: lacks "brandNew.below.a": "text", a field of what a template copies whole' in printed
    assert "26.7.0: mig.strategy is 'none|single|mixed' here and 'number' in the definition" in printed
    assert "26.7.0: cdi.enabled is read by no template, and no ClusterPolicy has it" in printed
