from __future__ import annotations

import dataclasses
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.operator.chart_keys import KEYS, MAY_BE_NULL, check_keys
from gpu_constructs.operator.values import NFD
from gpu_constructs.versions import GPU_OPERATOR, GpuOperatorRelease
from operator_keys import main

OLD, MIDDLE, NEW = GPU_OPERATOR.values()
GPU_NODES = {"nvidia.com/gpu.present": "true"}
LEGACY = {
    "driver": {"enabled": False},
    "toolkit": {"enabled": False},
    "cdi": {"enabled": False},
    "migManager": {"enabled": False},
}
OFFICIAL = {
    "driver": {"enabled": False},
    "toolkit": {"enabled": False},
    "hostPaths": {"driverInstallDir": "/usr/local"},
}
FOUND_IN_THE_WILD = {
    "driver": {"enabled": True, "nodeSelector": GPU_NODES},
    "toolkit": {"enabled": False, "nodeSelector": GPU_NODES},
    "devicePlugin": {"nodeSelector": GPU_NODES, "env": [{"name": "DEVICE_LIST_STRATEGY", "value": "envvar"}]},
    "dcgmExporter": {"nodeSelector": GPU_NODES},
    "gfd": {"nodeSelector": GPU_NODES},
}


def at(path: str, value: Any) -> dict[str, Any]:
    for name in reversed(path.split(".")):
        value = {name: value}
    return value


def refusal(values: Any, release: GpuOperatorRelease = NEW) -> str:
    with pytest.raises(GpuConstructsError) as refused:
        check_keys(values, release)
    return refused.value.problem


@pytest.mark.parametrize("release", GPU_OPERATOR.values(), ids=GPU_OPERATOR)
@pytest.mark.parametrize("values", [{}, LEGACY, OFFICIAL], ids=["default", "legacy", "official"])
def test_values_that_talos_needs_pass(values: dict[str, Any], release: GpuOperatorRelease) -> None:
    check_keys(values, release)


@pytest.mark.parametrize("release", GPU_OPERATOR.values(), ids=GPU_OPERATOR)
def test_the_first_key_without_effect_is_named(release: GpuOperatorRelease) -> None:
    assert refusal(FOUND_IN_THE_WILD, release) == (
        f"values.driver.nodeSelector is no key that the chart of GPU Operator {release.version} reads, and Helm would "
        "skip it without a word; got {'nvidia.com/gpu.present': 'true'}; the operator places its operands by its own "
        "node labels nvidia.com/gpu.deploy.*; leave it out, and keep a node free of them by its label "
        "nvidia.com/gpu.deploy.operands=false"
    )


@pytest.mark.parametrize("operand", ["driver", "toolkit", "devicePlugin", "dcgmExporter", "gfd", "validator", "gds"])
def test_no_operand_has_a_node_selector(operand: str) -> None:
    assert "nvidia.com/gpu.deploy.operands=false" in refusal({operand: {"nodeSelector": GPU_NODES}})


def test_the_operator_itself_has_a_node_selector() -> None:
    check_keys({"operator": {"nodeSelector": GPU_NODES}}, OLD)


def test_what_goes_for_all_operands_is_sent_there() -> None:
    assert "daemonsets.tolerations; move it there" in refusal({"devicePlugin": {"tolerations": []}})


@pytest.mark.parametrize(
    ("path", "near"),
    [
        ("drivr.enabled", ""),
        ("devicePlugin.enable", "devicePlugin.enabled"),
        ("dcgmExporter.serviceMonitor.enabld", "dcgmExporter.serviceMonitor.enabled"),
        ("hostPaths.driverInstalDir", "hostPaths.driverInstallDir"),
        ("toleration", ""),
        (f"{NFD}.worker.toleration", f"{NFD}.worker.tolerations"),
        (f"{NFD}.worker.enabled", f"{NFD}.worker.enable"),
        ("global.imagePullSecret", "global.imagePullSecrets"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest(path: str, near: str) -> None:
    problem = refusal(at(path, True))
    assert "is no key that the chart of GPU Operator 26.7.0 reads" in problem
    assert f"did you mean {near!r}?" in problem if near else "did you mean" in problem or "leave it out" in problem


def test_keys_of_the_sub_chart_are_sent_below_its_name() -> None:
    assert f"stand below {NFD!r}" in refusal({"nfd": {"worker": {"tolerations": []}}})


@pytest.mark.parametrize(
    ("path", "value", "first"),
    [
        ("cdi.nriPluginEnabled", False, MIDDLE),
        ("kataSandboxDevicePlugin.enabled", False, MIDDLE),
        ("dcgm.hostNetwork", True, MIDDLE),
        ("extraObjects", [{"kind": "ConfigMap"}], MIDDLE),
        ("hostPaths.kubeletRootDir", "/var/lib/kubelet", NEW),
        ("dcgmExporter.serviceMonitor.scrapeTimeout", "10s", NEW),
        ("operator.env", [{"name": "A", "value": "b"}], NEW),
        ("gpuCluster.deployCR", True, NEW),
        (f"{NFD}.worker.ownerRefs", ["pod"], NEW),
    ],
)
def test_a_key_is_refused_before_its_first_release(path: str, value: Any, first: GpuOperatorRelease) -> None:
    for release in GPU_OPERATOR.values():
        if release.is_at_least(first.version):
            check_keys(at(path, value), release)
        else:
            assert f"{NEW.version} read it; leave it out" in refusal(at(path, value), release)


def test_a_key_is_refused_after_its_last_release() -> None:
    values = at("driver.nvidiaDriverCRD.nodeSelector", GPU_NODES)
    check_keys(values, MIDDLE)
    assert "releases 25.10.1, 26.3.3 read it" in refusal(values, NEW)


def test_an_unverified_release_takes_the_keys_of_the_one_it_is_like() -> None:
    unverified = dataclasses.replace(MIDDLE, version="26.3.9")
    assert "GPU Operator 26.3.9 reads" in refusal({"gpuCluster": {"deployCR": True}}, unverified)


@pytest.mark.parametrize(
    ("path", "value", "why"),
    [
        ("devicePlugin.mps.root", "/mps", "documented by the chart and never read"),
        ("cdi.default", True, "no effect since release 25.10"),
        ("operator.defaultRuntime", "containerd", "does not render"),
        ("operator.defaultGPUMode", "x", "ClusterPolicy does not have"),
        ("fullnameOverride", "gpu", "never uses it"),
        ("toolkit.args", ["--x"], "does not render"),
        ("driver.upgradePolicy.podDeletion", {"force": True}, "gpuPodDeletion"),
        ("driver.useOpenKernelModules", True, "kernelModuleType"),
    ],
)
def test_a_key_without_effect_is_refused_with_the_reason(path: str, value: Any, why: str) -> None:
    problem = refusal(at(path, value))
    assert path in problem
    assert why in problem


@pytest.mark.parametrize(
    "values",
    [
        {"devicePlugin": {"mps": {"root": "/run/nvidia/mps"}}},
        {"cdi": {"default": False}},
        {"driver": {"nvidiaDriverCRD": {"nodeSelector": {}}}},
    ],
)
def test_a_key_without_effect_may_say_the_chart_s_own_default(values: dict[str, Any]) -> None:
    check_keys(values, NEW)


@pytest.mark.parametrize(
    ("path", "value", "problem"),
    [
        ("driver.enabled", "false", "driver.enabled must be true or false; got 'false'; write it without quotes"),
        ("driver.version", 580, "driver.version must be text; got 580; quote it"),
        ("driver.startupProbe.periodSeconds", "10", "must be a whole number; got '10'; write it without quotes"),
        ("driver.startupProbe.periodSeconds", True, "must be a whole number; got True"),
        ("mig.strategy", "mixd", "must be one of 'none', 'single', 'mixed'; got 'mixd' (did you mean 'mixed'?)"),
        ("ccManager.defaultMode", True, "must be one of 'on', 'off', 'devtools'; got True; quote it"),
        ("daemonsets.tolerations", {"key": "a"}, "must be a list; got {'key': 'a'}; write it as a list"),
        ("daemonsets.tolerations", [{"key": "a", "efect": "x"}], "tolerations[0].efect is not taken"),
        ("daemonsets.tolerations", [{"key": "a", "effect": "NoSchedul"}], "(did you mean 'NoSchedule'?)"),
        ("daemonsets.tolerations", ["nvidia.com/gpu"], "tolerations[0] must be a mapping of key, operator"),
        ("daemonsets.labels", {"a": 1}, "daemonsets.labels['a'] must be text; got 1; quote it"),
        ("daemonsets.labels", {1: "a"}, "daemonsets.labels must have texts for keys; got 1; quote it"),
        ("daemonsets.labels", ["a"], "daemonsets.labels must be a mapping; got ['a']"),
        ("devicePlugin.env", [{"name": "A", "value": 1}], "env[0].value must be text; got 1; quote it"),
        ("devicePlugin.env", [{"value": "a"}], "env[0].name is required"),
        ("devicePlugin.env", [{"name": "A", "valueFrom": {}}], "takes name and value only, and the API server drops"),
        ("devicePlugin.imagePullSecrets", [{"name": "x"}], "must be text; got {'name': 'x'}; write the name alone"),
        ("devicePlugin.resources", {"limit": {}}, "resources.limit is not taken: it takes limits, requests"),
        ("devicePlugin.resources", {"limits": {"cpu": 0.5}}, "must be a whole number or text; got 0.5; quote it"),
        ("devicePlugin.resources", {"limits": {"memory": 4}}, "got 4, which is 4 bytes; write '4Gi' or '4Mi'"),
        ("operator.resources", {"requests": {"memory": "400m"}}, "must have a unit; got '400m', which is 400 thou"),
        ("devicePlugin.config.data", {"a": {"version": "v1"}}, "data['a'] must be text"),
        ("dcgmExporter.serviceMonitor.interval", "15", "must be a duration like '15s'; got '15'"),
        ("dcgmExporter.serviceMonitor.relabelings", [{"source_labels": []}], "(did you mean 'sourceLabels'?)"),
        ("draDriver.gpus.kubeletPlugin.healthcheck", {"ports": 1}, "(did you mean 'port'?)"),
        ("hostPaths", None, "must be a mapping: without it the chart fails to render; got None; leave it out"),
        ("toolkit", False, "values.toolkit must be a mapping; got False; leave it out"),
        ("global.imagePullSecrets", ["x"], "must be a mapping of name; got 'x'"),
    ],
)
def test_a_value_of_another_type_is_refused(path: str, value: Any, problem: str) -> None:
    assert problem in refusal(at(path, value))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("operator.env", [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]),
        ("operator.resources", {"limits": {"cpu": 0.5}}),
        ("operator.affinity", {"nodeAffinity": {"any": "thing"}}),
        ("operator.annotations", {"openshift.io/scc": None}),
        ("daemonsets.tolerations", [{"operator": "Exists", "effect": ""}]),
        ("daemonsets.rollingUpdate.maxUnavailable", 1),
        ("devicePlugin.config.data", {"default": "version: v1"}),
        (f"{NFD}.worker.config", {"sources": {"pci": {"deviceLabelFields": ["vendor"]}}}),
        ("extraObjects", ["kind: ConfigMap", {"kind": "ConfigMap"}]),
        ("driver.version", None),
        ("gds", None),
        (NFD, None),
    ],
)
def test_what_the_chart_takes_passes(path: str, value: Any) -> None:
    check_keys(at(path, value), NEW)


def test_a_section_that_the_chart_tests_may_be_null() -> None:
    for section in MAY_BE_NULL:
        check_keys(at(section, None), MIDDLE if section == "operator.initContainer" else NEW)


@pytest.mark.parametrize("given", ["driver: {}", None, []])
def test_values_must_be_a_mapping(given: object) -> None:
    assert refusal(given).startswith("values must be a mapping; got ")


def test_a_key_must_be_text() -> None:
    assert "values.driver.1 must have a text for its key; got 1" in refusal({"driver": {1: 2}})


def test_every_type_of_the_table_is_one_that_can_be_checked() -> None:
    for path, key in KEYS.items():
        for value in ("x", 1, [], {}, ["x"], {"x": "x"}):
            if not key.why_not:
                with suppress(GpuConstructsError):
                    check_keys(at(path, value), NEW)


def folder_of(tmp_path: Path, read: list[str], fields: dict[str, Any]) -> Path:
    folder = tmp_path / "v26.7.0"
    folder.mkdir()
    (folder / "chart-accepted-keys.json").write_text(json.dumps(read), "utf-8")
    (folder / "chart-values.yaml").write_text("{}", "utf-8")
    spec = {"properties": fields}
    versions = [{"schema": {"openAPIV3Schema": {"properties": {"spec": spec}}}}]
    (folder / "crd-clusterpolicies.yaml").write_text(json.dumps({"spec": {"versions": versions}}), "utf-8")
    return tmp_path


def test_the_comparison_names_what_the_table_lacks_and_has_too_much(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fields = {
        "brandNew": {
            "properties": {"enabled": {"type": "boolean"}, "below": {"properties": {"a": {"type": "string"}}}}
        },
        "mig": {"properties": {"strategy": {"type": "integer"}}},
    }
    folder = folder_of(tmp_path, ["brandNew.enabled", "brandNew.below", "mig.strategy"], fields)
    assert main([str(folder)]) == 1
    printed = capsys.readouterr().out
    assert '26.7.0: lacks "brandNew.enabled": "bool", which a template reads' in printed
    assert '26.7.0: lacks "brandNew.below.a": "text", a field of what a template copies whole' in printed
    assert "26.7.0: mig.strategy is 'none|single|mixed' here and 'number' in the definition" in printed
    assert "26.7.0: cdi.enabled is read by no template, and no ClusterPolicy has it" in printed


def test_the_comparison_needs_a_folder_with_a_release(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 1
    assert "no folder of a release in it" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("values", "told"),
    [
        (
            {"driver.enabled": True},
            "values['driver.enabled'] must be nested: Helm takes no key apart at its dots; got True; write it nested: "
            "{'driver': {'enabled': ...}}",
        ),
        (
            {"devicePlugin": {"config.name": "x"}},
            "values.devicePlugin['config.name'] must be nested: Helm takes no key apart at its dots; got 'x'; write it "
            "nested: {'config': {'name': ...}}",
        ),
    ],
)
def test_a_key_with_dots_is_refused_for_the_nested_one(values, told):
    with pytest.raises(GpuConstructsError) as refused:
        check_keys(values, GPU_OPERATOR["26.7.0"])
    assert str(refused.value) == told


def test_dots_in_keys_of_the_users_own_are_kept():
    check_keys({"daemonsets": {"labels": {"a.example/b": "c"}}}, GPU_OPERATOR["26.7.0"])


@pytest.mark.parametrize(
    ("values", "near"),
    [
        ({"DRIVER": {}}, "driver"),
        ({"device_plugin": {}}, "devicePlugin"),
        ({"driver": {"Enabled": True}}, "driver.enabled"),
        ({"nodeFeatureDiscovery": {}}, "node-feature-discovery"),
        ({"DCGMEXPORTER": {}}, "dcgmExporter"),
    ],
)
def test_a_key_in_other_letters_is_told_the_right_one(values, near):
    with pytest.raises(GpuConstructsError) as refused:
        check_keys(values, GPU_OPERATOR["26.7.0"])
    assert str(refused.value).endswith(f"; did you mean {near!r}?")


@pytest.mark.parametrize("path", [path for path, key in KEYS.items() if path.endswith(".affinity") and not key.why_not])
def test_an_empty_list_for_an_affinity_means_none(path: str) -> None:
    check_keys(at(path, []), NEW)
    assert f"values.{path} must be a mapping; got [1]" in refusal(at(path, [1]))
