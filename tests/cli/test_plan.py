"""The commands ``plan`` and ``recommend``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpu_constructs.catalog.inventory import GpuInventory, GpuNode
from gpu_constructs.cli.documents import read
from gpu_constructs.cli.main import main
from gpu_constructs.cli.plan import planned
from gpu_constructs.cli.plan.what_if import Situation
from gpu_constructs.cli.plan.wording import for_manifests
from gpu_constructs.cli.seen import provided_by
from gpu_constructs.kube.placement import Taint
from tests.tables import cases

REPOSITORY = Path(__file__).parents[2]
CLUSTER = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: sharing, namespace: nvdp}
data:
  config.yaml: "{version: v1, sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}}"
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: plugin, namespace: nvdp}
spec:
  template:
    spec:
      containers:
      - name: plugin
        image: nvcr.io/nvidia/k8s-device-plugin:v0.20.0
        env: [{name: CONFIG_FILE, value: /config/config.yaml}]
        volumeMounts: [{name: config, mountPath: /config}]
      volumes: [{name: config, configMap: {name: sharing}}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: big, namespace: ai}
spec:
  replicas: 3
  strategy: {type: Recreate}
  template:
    metadata: {annotations: {gpu-constructs/vram: 6Gi}}
    spec:
      containers: [{name: c, image: c, resources: {limits: {nvidia.com/gpu: 1}}}]
"""
NODES = "nodes: [{name: gpu-1, gpu_model: NVIDIA GeForce RTX 4090}]\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, with the manifests of a cluster and an inventory."""
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    (tmp_path / "gpus.yaml").write_text(NODES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def plan(*arguments: str, inventory: str = "gpus.yaml") -> int:
    return main(["plan", "cluster.yaml", "--inventory", inventory, *arguments])


def as_data(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any]]:
    status = plan("--format", "json", *arguments)
    return status, json.loads(capsys.readouterr().out)


def test_the_slots_come_from_the_plugin_among_the_manifests(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert plan() == 0
    shown = capsys.readouterr().out
    assert "gpu-1  GPU 0   time-slicing x 4  3/4   24.0 GiB" in shown
    assert shown.endswith("Everything fits: every pod has a place at once. Memory is safe: it suffices for\nany pods "
                          "that can share a device.\n")  # fmt: skip
    assert max(map(len, shown.splitlines())) <= 80


def test_an_inventory_that_contradicts_the_plugin_names_its_configuration(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "other.yaml").write_text(NODES.replace("}]", ", sharing: {strategy: time-slicing, replicas: 2}}]"))
    assert plan(inventory="other.yaml") == 2
    problem = "must be time-slicing x 4, as in the configuration of the device plugin, got time-slicing x 2"
    assert problem in capsys.readouterr().err


def test_a_problem_names_its_object_and_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, shown = as_data(capsys, "--what-if", "replicas=2", "--what-if", "Deployment/ai/big.replicas=4")
    assert status == 1
    (found,) = [one for one in shown["findings"] if one["severity"] == "error"]
    where = {key: found[key] for key in ("code", "object", "file", "line")}
    assert where == {"code": "plan-slots", "object": "Deployment ai/big", "file": "cluster.yaml", "line": 20}
    assert shown["plan"]["stock"]["nvidia.com/gpu"]["total"] == 2


def test_a_node_that_no_pod_can_use_is_named_with_the_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "gpus.yaml").write_text("nodes: [{name: gpu-1, taints: [{key: dedicated, effect: NoExecute}]}]")
    assert plan("--format", "github") == 1
    assert "::error file=cluster.yaml,line=20,title=plan-placement::Deployment ai/big: " in capsys.readouterr().out
    assert plan("--fail-on", "never") == 0


@cases
def test_what_ifs_show_the_difference(
    what_if: list[str], status: int, changes: dict[str, list[str]], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found, shown = as_data(capsys, *(part for one in what_if for part in ("--what-if", one)))
    assert {one["about"]: [one["before"], one["after"]] for one in shown["changes"]} == changes
    assert (found, shown["what_if"]) == (status, what_if)


def test_an_autoscaler_does_not_undo_a_what_if(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scaler = "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: s, namespace: ai}\n"
    scaler += "spec: {scaleTargetRef: {kind: Deployment, name: big}, minReplicas: 2, maxReplicas: 4}\n"
    (folder / "cluster.yaml").write_text(f"{scaler}---\n{CLUSTER}")
    _, shown = as_data(capsys, "--what-if", "Deployment/ai/big.replicas=1")
    assert shown["plan"]["stock"]["nvidia.com/gpu"]["wanted"] == 1


@cases
def test_changes_that_are_not_possible_are_refused(
    change: str, error: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status = plan("--what-if", change)
    except SystemExit as stop:
        status = int(str(stop.code))
    assert status == 2
    assert error in capsys.readouterr().err


@cases
def test_inventories_name_their_problem(
    text: str, error: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "gpus.yaml").write_text(text)
    assert plan() == 2
    assert f"gpu-constructs plan: inventory gpus.yaml: {error}" in capsys.readouterr().err


def test_an_inventory_can_be_the_nodes_of_a_cluster(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels = {"nvidia.com/gpu.product": "NVIDIA-L4", "nvidia.com/gpu.count": "1", "nvidia.com/gpu.memory": "23034"}
    status = {"allocatable": {"nvidia.com/gpu": "1"}, "capacity": {"nvidia.com/gpu": "1"}}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "w1", "labels": labels}, "status": status}
    (folder / "nodes.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [node]}))
    assert plan(inventory="nodes.json") == 0
    assert "w1    GPU 0   time-slicing x 4  3/4" in capsys.readouterr().out


def test_a_missing_or_empty_input_is_not_green(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert plan(inventory="missing.yaml") == 3
    assert "cannot read the inventory missing.yaml: No such file or directory" in capsys.readouterr().err
    (folder / "cluster.yaml").write_text("# nothing\n")
    assert plan() == 3
    (folder / "cluster.yaml").write_text(f"{CLUSTER}---\na: [\n")
    assert plan() == 3
    assert "cluster.yaml:32: is not YAML" in capsys.readouterr().err


def test_conditions_are_stated_and_do_not_fail(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "cluster.yaml").write_text(
        CLUSTER.replace("containers: [{name: c", "schedulerName: mine\n      containers: [{name: c")
    )
    assert plan() == 0
    shown = capsys.readouterr().out
    assert "note plan-unchecked: " in shown
    assert "It fits, if the scheduler mine places the pods where" in " ".join(shown.split())


def test_reports_go_to_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert plan("--format", "markdown", "--report", "html=a.html", "--report", "svg=a.svg") == 0
    assert "| gpu-1 | GPU 0 | time-slicing x 4 | 3/4 |" in capsys.readouterr().out
    assert (folder / "a.html").read_text().startswith("<!doctype html>")
    assert "<svg" in (folder / "a.svg").read_text()


def test_a_recommendation_states_what_to_set_and_why(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recommend", "cluster.yaml", "--inventory", "gpus.yaml"]) == 0
    shown = capsys.readouterr().out
    assert "  - 3 pods request GPUs at once, and the cluster has 1\n" in shown
    assert "            replicas: 23\n" in shown
    assert main(["recommend", "cluster.yaml", "--inventory", "gpus.yaml", "--format", "json", "--isolation"]) == 0
    (made,) = json.loads(capsys.readouterr().out)["recommendations"]
    assert made["workloads"] == ["ai/big"]
    trusted = ["recommend", "cluster.yaml", "--inventory", "gpus.yaml", "--trusted-cuda-services"]
    assert main(trusted) == main([*trusted, "--platform", "talos"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("gpu-1: mps, ") == shown.count("gpu-1: vram-units, ") == 1


def consumers(plan: dict[str, Any]) -> list[list[object]]:
    """Return what a plan says about each workload, in the order of their names."""
    keys = ("namespace", "name", "kind", "asks", "placed", "waiting", "vramMiB", "typicalVramMiB")
    return sorted(([one[key] for key in keys] for one in plan["consumers"]), key=str)


REPORTS = sorted([*REPOSITORY.glob("dist/reports/**/*.json"), *REPOSITORY.glob("examples/*/dist/reports/**/*.json")])


@pytest.mark.parametrize("report", REPORTS, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_plain_manifests_have_the_plan_of_their_app(report: Path) -> None:
    of_app = json.loads(report.read_text())
    pools: dict[str, list[dict[str, Any]]] = {}
    for node in of_app["nodes"]:
        pools.setdefault(node["pool"], []).append(node)
    own = ("nvidia.com/", "kubernetes.io/", "feature.node.kubernetes.io/")
    nodes = [
        GpuNode(
            name=name,
            gpu_model=pool[0]["gpuModel"] or None,
            gpus=len(pool[0]["gpuWatts"]),
            count=sum(one["count"] for one in pool),
            labels={key: value for key, value in pool[0]["labels"].items() if not key.startswith(own)},
            taints=[Taint(**taint) for taint in pool[0]["taints"]],
            mig_layout={"1g.10gb": 7} if any(one["profile"] for one in pool[0]["devices"]) else None,
        )
        for name, pool in pools.items()
    ]
    manifests = read([str(report.parent).replace("/reports", "")]).manifests
    made = planned(Situation(manifests, provided_by(manifests), GpuInventory(nodes=nodes)))[1]
    of_manifests = json.loads(made.to_json(of_app["title"]))
    for key in ("stock", "verdict"):
        assert of_manifests[key] == of_app[key]
    assert consumers(of_manifests) == consumers(of_app)


@cases
def test_texts_speak_of_manifests(text: str, shown: str) -> None:
    assert for_manifests(text) == shown
