"""The page on workloads: its programs run as written, and its tables are what the kinds and requests make."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from cdk8s import Chart, Testing

import dist
import documents
from gpu_constructs import GpuConstructsError, GpuProfile, GpuRequest, GpuWorkload, Kubernetes, Probe, VolumeClaim
from gpu_constructs.gpu_models import GPU_MODELS
from gpu_constructs.pod_security import violations
from gpu_constructs.pod_specs import pod_specs
from gpu_constructs.workload.controller import Kind
from gpu_constructs.workload.gpu_allocation import allocation

PAGE = dist.ROOT / "docs" / "gpu-workload.md"
TEXT = " ".join(documents.prose(PAGE).split())
PROGRAMS = [block.text for block in documents.blocks(PAGE, "python")]
APPS = [program for program in PROGRAMS if "synth(app)" in program]


def written(number: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    monkeypatch.chdir(folder)
    exec(compile(APPS[number], f"gpu-workload.md block {number}", "exec"), {})
    return [one for path in folder.rglob("*.k8s.yaml") for one in yaml.safe_load_all(path.read_text())]


def gpu_pods(manifests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        pod
        for one in manifests
        for pod in pod_specs(one)
        if any("nvidia.com/gpu" in c.get("resources", {}).get("limits", {}) for c in pod["containers"])
    ]


def made(chart: Chart, **given: Any) -> list[dict[str, Any]]:
    kind = given.get("kind")
    schedule = {"schedule": "@daily"} if kind == "CronJob" else {}
    GpuWorkload(chart, "app", image="a:1", platform=Kubernetes(), **schedule, **given)
    found: list[dict[str, Any]] = Testing.synth(chart)
    return found


@pytest.mark.parametrize("number", range(len(APPS)))
def test_a_block_runs_as_written_and_one_pod_holds_gpus(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(gpu_pods(written(number, tmp_path, monkeypatch))) == 1


@pytest.mark.parametrize("number", [0, 1], ids=["smallest", "server"])
def test_pods_with_a_user_are_restricted(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (pod,) = gpu_pods(written(number, tmp_path, monkeypatch))
    assert violations(pod, "restricted") == []
    assert pod["automountServiceAccountToken"] is False


def test_the_disk_is_one_and_the_other_containers_see_no_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifests = written(1, tmp_path, monkeypatch)
    assert [one["kind"] for one in manifests].count("PersistentVolumeClaim") == 1
    (pod,) = gpu_pods(manifests)
    assert {c["name"] for c in pod["initContainers"]} == {"fetch", "proxy"}
    for container in pod["initContainers"]:
        assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"} in container["env"]


def test_what_was_added_later_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (pod,) = gpu_pods(written(3, tmp_path, monkeypatch))
    (container,) = pod["containers"]
    assert pod["hostname"] == "chat"
    assert [mount["mountPath"] for mount in container["volumeMounts"]] == ["/cache"]
    assert [variable["name"] for variable in container["env"]] == ["TOKEN"]
    for method in ("attach_volume", "add_env", "add_init_container", "add_sidecar", "service", "match_labels"):
        assert f"`{method}`" in TEXT
        assert method == "match_labels" or hasattr(GpuWorkload, method)


def test_the_refused_block_gives_the_error_that_is_shown() -> None:
    (block,) = set(PROGRAMS) - set(APPS)
    with pytest.raises(GpuConstructsError) as refused:
        exec(block, {})
    assert [shown.text for shown in documents.blocks(PAGE, "text")] == [f"{refused.value}\n"]


def test_every_kind_has_its_row() -> None:
    assert [row[0].strip("`") for row in documents.table(PAGE, "kind")] == list(get_args(Kind))


@pytest.mark.parametrize("row", documents.table(PAGE, "kind"), ids=lambda row: row[0].strip("`"))
def test_a_kind_has_the_service_and_the_restarts_that_are_said(row: list[str], chart: Chart) -> None:
    kind, _, has_service, restarts = (cell.strip("`") for cell in row)
    with_ports = made(Chart(chart, "ports"), kind=kind, ports=[80])
    without = made(Chart(chart, "none"), kind=kind)
    there = ["Service" in [one["kind"] for one in manifests] for manifests in (with_ports, without)]
    assert there == {"with ports": [True, False], "always, headless": [True, True], "no": [False, False]}[has_service]
    (pod,) = gpu_pods(without)
    assert pod.get("restartPolicy", "Always") == restarts.capitalize()


@pytest.mark.parametrize("text", [row[0].strip("`") for row in documents.table(PAGE, "request")])
def test_a_request_chooses_nodes_or_none_as_its_row_says(text: str) -> None:
    given = eval(text, {"GpuRequest": GpuRequest})
    (says,) = (row[1] for row in documents.table(PAGE, "request") if row[0].strip("`") == text)
    terms = allocation(given, GpuProfile(platform=Kubernetes())).node_terms
    assert bool(terms) == (not says.startswith("any;") and "MIG" not in says)


def test_the_memory_that_is_reported_is_the_boards() -> None:
    assert "24564 MiB" in TEXT
    assert GPU_MODELS["NVIDIA GeForce RTX 4090"].vram_mib == 24564


@pytest.mark.parametrize(
    ("replicas", "strategy", "has_budget"),
    [(1, {"type": "Recreate"}, False), (2, {"type": "RollingUpdate", "maxSurge": 0, "maxUnavailable": 1}, True)],
)
def test_updates_and_budgets_are_as_said(
    replicas: int, strategy: dict[str, Any], has_budget: bool, chart: Chart
) -> None:
    manifests = made(chart, replicas=replicas)
    (workload,) = (one for one in manifests if one["kind"] == "Deployment")
    found = workload["spec"]["strategy"]
    assert {"type": found["type"], **found.get("rollingUpdate", {})} == strategy
    assert ("PodDisruptionBudget" in [one["kind"] for one in manifests]) == has_budget


def test_the_numbers_are_the_code_s(chart: Chart) -> None:
    (server,) = gpu_pods(made(Chart(chart, "server"), liveness_probe=Probe.http_get("/", port=80), ports=[80]))
    startup = server["containers"][0]["startupProbe"]
    assert "asks the same for ten minutes" in TEXT
    assert startup["periodSeconds"] * startup["failureThreshold"] == 600
    assert f"An answer may take {startup['timeoutSeconds']} seconds" in TEXT
    assert f"get {server['terminationGracePeriodSeconds']} seconds" in TEXT
    (job,) = made(Chart(chart, "job"), kind="Job")
    assert "Two retries" in TEXT
    assert job["spec"]["backoffLimit"] == 2
    assert "ttlSecondsAfterFinished" not in job["spec"]
    resources = server["containers"][0]["resources"]
    assert "cpu" not in resources["limits"]
    assert "nvidia.com/gpu" not in resources["requests"]


def test_a_stateful_set_has_a_disk_for_each_pod(chart: Chart) -> None:
    manifests = made(chart, kind="StatefulSet", volumes={"/data": VolumeClaim(storage="1Gi")})
    (one,) = (m for m in manifests if m["kind"] == "StatefulSet")
    assert len(one["spec"]["volumeClaimTemplates"]) == 1
