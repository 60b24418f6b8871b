"""The page on capacity plans: its programs run as written, and what it says of words and kinds is in the code."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pytest
from cdk8s import App, Chart

import dist
import documents
from gpu_constructs import (
    CapacityPlan,
    DevicePluginChart,
    GpuInventory,
    GpuNamespace,
    GpuNode,
    GpuProfile,
    GpuRequest,
    GpuWorkload,
    Kubernetes,
    Sharing,
    SynthesisError,
    synthesize,
)
from gpu_constructs.capacity.plan import VramVerdict

PAGE = dist.ROOT / "docs" / "capacity-plan.md"
PROGRAMS = [block.text for block in documents.blocks(PAGE, "python")]
REPORTS = dist.DIST / "reports"


def run(number: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    monkeypatch.chdir(folder)
    names: dict[str, object] = {}
    exec(compile(PROGRAMS[number], f"capacity-plan.md block {number}", "exec"), names)
    return names


def test_the_first_program_writes_a_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(0, tmp_path, monkeypatch)
    plan = json.loads((tmp_path / "dist-plan/reports/capacity-plan.json").read_text())
    assert plan["verdict"]["vram"] == "safe"


def test_the_file_is_an_inventory(tmp_path: Path) -> None:
    (block,) = documents.blocks(PAGE, "yaml")
    file = tmp_path / "gpus.yaml"
    file.write_text(block.text)
    inventory = GpuInventory.from_file(file)
    assert [(node.name, node.count) for node in inventory.nodes] == [("workstation", 1), ("a100-pool", 2)]


def test_nodes_come_from_what_kubectl_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = {"nvidia.com/gpu.product": "NVIDIA-L4", "nvidia.com/gpu.count": "1", "nvidia.com/gpu.memory": "23034"}
    node = {"metadata": {"name": "n", "labels": labels}, "status": {"allocatable": {"nvidia.com/gpu": "1"}}}
    (tmp_path / "nodes.json").write_text(json.dumps({"kind": "List", "items": [node]}))
    inventory = run(1, tmp_path, monkeypatch)["inventory"]
    assert isinstance(inventory, GpuInventory)
    assert inventory.gpus == 1


def test_the_recommendation_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(2, tmp_path, monkeypatch)
    assert capsys.readouterr().out.startswith("home ")


def test_plain_manifests_are_planned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = dist.DIST / "talos-rtx5070ti" / "ollama.k8s.yaml"
    (tmp_path / "rendered.yaml").write_text(source.read_text())
    run(3, tmp_path, monkeypatch)
    assert "ollama/ollama" in capsys.readouterr().out


def test_every_program_is_run_here() -> None:
    assert len(PROGRAMS) == 4


def test_the_gate_of_a_pipeline_is_a_command_that_runs() -> None:
    (command,) = [block.text for block in documents.blocks(PAGE, "bash") if "python3" in block.text]
    script = command.replace("python3", sys.executable)
    assert subprocess.run(["bash", "-c", script], cwd=dist.ROOT, check=False).returncode == 0
    other = script.replace("talos-rtx3090", "talos-rtx5070ti")
    assert subprocess.run(["bash", "-c", other], cwd=dist.ROOT, check=False).returncode == 1


def test_the_refusal_is_what_synth_says(tmp_path: Path) -> None:
    sharing, app = Sharing.time_slicing(replicas=3), App(outdir=str(tmp_path))
    profile = GpuProfile(platform=Kubernetes(), sharing=sharing)
    DevicePluginChart(
        app, "plugin", platform=Kubernetes(), sharing=sharing, node_feature_discovery=False, gpu_feature_discovery=False
    )
    chart = Chart(app, "chat", namespace="chat")
    GpuNamespace(chart, "namespace", name="chat", pod_security="baseline")
    for name in "abcd":
        GpuWorkload(chart, name, image="a/b:1", profile=profile, gpus=GpuRequest(vram="1Gi"))
    CapacityPlan(app, GpuInventory(nodes=[GpuNode(name="one", vram="24Gi")]))
    with pytest.raises(SynthesisError) as refused:
        synthesize(app)
    (block,) = documents.blocks(PAGE, "text")
    assert refused.value.problems == [block.text.strip()]


def test_the_table_of_a_node_has_each_of_its_members_once() -> None:
    rows = [row[0] for row in documents.table(PAGE, "`GpuNode(...)`")]
    named = [name.strip(" `") for row in rows for name in row.split(",")]
    assert sorted(named) == sorted(field.name for field in dataclasses.fields(GpuNode))


def test_the_table_of_verdicts_has_each_word_but_that_of_a_search_that_gave_up() -> None:
    assert {row[0] for row in documents.table(PAGE, "memory is")} == {*get_args(VramVerdict)} - {"undecided"}


@pytest.mark.parametrize("cluster", dist.CLUSTERS)
def test_the_report_of_each_cluster_is_linked(cluster: str) -> None:
    assert f"](../dist/reports/{cluster}/capacity-plan.txt)" in PAGE.read_text()


def report(cluster: str) -> Any:
    return json.loads((REPORTS / cluster / "capacity-plan.json").read_text())


@pytest.mark.parametrize(
    ("cluster", "slots", "wanted", "memory"),
    [
        ("talos-rtx5070ti", 5, 5, "overcommitted"),
        ("talos-rtx3090", 8, 9, "safe"),
        ("talos-gpu-operator", 15, 15, "safe"),
        ("kubernetes-basic", 1, 1, "safe"),
    ],
)
def test_the_plans_have_the_numbers_of_field_notes(cluster: str, slots: int, wanted: int, memory: str) -> None:
    plan = report(cluster)
    stock = plan["stock"]["nvidia.com/gpu"]
    assert (stock["total"], stock["wanted"], plan["verdict"]["vram"]) == (slots, wanted, memory)


def test_flux_and_ollama_collide_in_the_pool_of_16_gb_that_holds_what_they_take_mostly() -> None:
    plan = report("talos-rtx5070ti")
    (node,) = plan["nodes"]
    (device,) = node["devices"]
    assert device["vramMiB"] == 16303
    assert 10 * 1024 <= device["typicalMiB"] <= 12 * 1024
    titles = [(one["namespace"], one["name"]) for one in plan["consumers"]]
    pairs = [sorted(titles[pod["consumer"]][1] for pod in one["pods"]) for one in plan["conflicts"]]
    assert ["comfyui", "ollama"] in pairs
