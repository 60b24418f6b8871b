"""The page on giving GPUs: its programs run as written, and its table of kinds is that of their definitions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import dist
import documents
import schemas
from gpu_constructs import GpuAccess, GpuConstructsError, GpuProfile, Kubernetes
from gpu_constructs.pod_specs import pod_spec_paths
from gpu_constructs.workload.gpu_allocation import allocation
from gpu_constructs.workload.gpu_request import GpuRequest
from gpu_constructs.workload.manifest_access import ManifestAccess

PAGE = dist.ROOT / "docs" / "gpu-access.md"
PROGRAMS = [block.text for block in documents.blocks(PAGE, "python")]
APPS = [program for program in PROGRAMS if "synth(app)" in program]
(RENDERED,) = (block.text for block in documents.blocks(PAGE, "yaml"))
KINDS = {tuple(row[0].replace("`", "").split()): row[1:] for row in documents.table(PAGE, "kind")}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rendered.yaml").write_text(RENDERED)
    return tmp_path


def written(number: int, folder: Path) -> list[dict[str, Any]]:
    # Node.js stays in the folder that it was started in.
    program = APPS[number].replace('"rendered.yaml"', repr(str(folder / "rendered.yaml")))
    exec(compile(program, f"gpu-access.md block {number}", "exec"), {})
    return [one for path in folder.rglob("*.k8s.yaml") for one in yaml.safe_load_all(path.read_text())]


def limits(pod: dict[str, Any]) -> list[int]:
    return [c.get("resources", {}).get("limits", {}).get("nvidia.com/gpu") for c in pod["containers"]]


def pods_of(manifests: list[dict[str, Any]]) -> dict[str, list[int]]:
    found = {}
    for one in manifests:
        places = "spec.steps.*.template.spec" if one["kind"] == "Pipeline" else None
        for path in pod_spec_paths(one, places):
            pod: Any = one
            for step in path:
                pod = pod[step]
            if any(limits(pod)):
                assert pod["runtimeClassName"] == "nvidia"
                found[one["metadata"]["name"]] = limits(pod)
    return found


@pytest.mark.parametrize(
    ("number", "held"),
    [(0, {"llm": ["1"]}), (1, {"job": ["2"]}), (2, {"llm": ["1"]}), (3, {"pipeline": [1]})],
    ids=["cdk8s-plus", "typed", "helm", "custom"],
)
def test_a_block_runs_as_written_and_its_pods_hold_gpus(number: int, held: dict[str, list[Any]], folder: Path) -> None:
    found = pods_of(written(number, folder))
    assert found == held


def test_a_chart_s_workloads_all_hold_one(folder: Path) -> None:
    found = pods_of(written(4, folder))
    assert list(found.values()) == [["1"], ["1"]]


def test_the_refused_block_gives_the_error_that_is_shown() -> None:
    (block,) = set(PROGRAMS) - set(APPS)
    with pytest.raises(GpuConstructsError) as refused:
        exec(block, {})
    assert [shown.text for shown in documents.blocks(PAGE, "text")] == [f"{refused.value}\n"]


def test_the_commands_are_about_the_first_block(folder: Path) -> None:
    (llm,) = (one for one in written(0, folder) if one["metadata"]["name"] == "llm" and one["kind"] == "Deployment")
    assert llm["metadata"]["namespace"] == "llm"
    for command, _ in documents.table(PAGE, "command"):
        assert "-n llm" in command
        assert "deployment llm" in command or "deploy/llm" in command


def definition(kind: str, version: str) -> str:
    """The text of a kind's definition in the given version."""
    found = [
        json.dumps(served["schema"])
        for file in schemas.CRD_FOLDER.glob("*.yaml")
        for crd in schemas.load_yaml(file.read_text(encoding="utf-8"))
        for served in crd["spec"]["versions"]
        if (crd["spec"]["names"]["kind"], served["name"]) == (kind, version)
    ]
    (text,) = found
    return text


@pytest.mark.parametrize(("kind", "version"), list(KINDS))
def test_what_a_kind_s_pods_can_say_is_in_its_definition(kind: str, version: str) -> None:
    runtime_class, claims, _ = KINDS[(kind, version)]
    text = definition(kind, version)
    has = {"yes": True, "no": False, "open": False}
    assert ('"runtimeClassName"' in text) == has[runtime_class]
    assert ('"resourceClaimTemplateName"' in text) == has[claims]
    assert ("x-kubernetes-preserve-unknown-fields" in text) == (runtime_class == "open")


GROUPS = {
    "Notebook": "kubeflow.org/v1",
    "PyTorchJob": "kubeflow.org/v1",
    "TrainingRuntime": "trainer.kubeflow.org/v1alpha1",
    "ClusterTrainingRuntime": "trainer.kubeflow.org/v1alpha1",
    "InferenceService": "serving.kserve.io/v1beta1",
    "ServingRuntime": "serving.kserve.io/v1alpha1",
    "ClusterServingRuntime": "serving.kserve.io/v1alpha1",
}
POD = {"containers": [{"name": "sidecar"}, {"name": "pytorch"}, {"name": "node"}, {"name": "kserve-container"}]}
REPLICATED = {"template": {"spec": {"replicatedJobs": [{"template": {"spec": {"template": {"spec": POD}}}}]}}}
SPECS: dict[str, dict[str, Any]] = {
    "Notebook": {"template": {"spec": POD}},
    "PyTorchJob": {"pytorchReplicaSpecs": {"Worker": {"template": {"spec": POD}}}},
    "TrainingRuntime": REPLICATED,
    "ClusterTrainingRuntime": REPLICATED,
    "InferenceService": {"predictor": POD},
    "ServingRuntime": POD,
    "ClusterServingRuntime": POD,
}


@pytest.mark.parametrize("kind", list(SPECS))
def test_gpus_go_to_the_container_that_is_named(kind: str) -> None:
    access = ManifestAccess(allocation=allocation(GpuRequest(), GpuProfile(platform=Kubernetes())))
    made = access.given({"apiVersion": GROUPS[kind], "kind": kind, "spec": SPECS[kind]}, claim_template=None)
    (path,) = pod_spec_paths(made)
    pod: Any = made
    for step in path:
        pod = pod[step]
    (holder,) = (c["name"] for c in pod["containers"] if c.get("resources"))
    said = next(row[2] for (name, _), row in KINDS.items() if name == kind)
    assert ("the first container" if holder == "sidecar" else f"`{holder}`") in said


def test_a_train_job_is_refused_as_is_said() -> None:
    access = ManifestAccess(allocation=allocation(GpuRequest(), GpuProfile(platform=Kubernetes())))
    with pytest.raises(GpuConstructsError, match="give the GPUs to the TrainingRuntime"):
        access.check({"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "spec": {}})


def test_given_twice_it_is_the_same(folder: Path) -> None:
    once = written(0, folder)
    twice = APPS[0].replace("llm.with_(GpuAccess(count=1))\n", "llm.with_(GpuAccess(count=1))\n" * 2)
    assert twice != APPS[0]
    exec(twice, {"GpuAccess": GpuAccess})
    found = [one for path in folder.rglob("*.k8s.yaml") for one in yaml.safe_load_all(path.read_text())]
    assert found == once
