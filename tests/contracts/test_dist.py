"""dist/ is what app.py writes, every invariant holds on it, and the documented commands find what they name."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import dist
import invariants
import schemas
from gpu_constructs.kube import side_files
from gpu_constructs.kube.pod_specs import pod_specs

RTX5070TI, RTX3090, OPERATOR = "talos-rtx5070ti", "talos-rtx3090", "talos-gpu-operator"
DEDICATED = {"key": "dedicated", "operator": "Equal", "value": "ai", "effect": "NoSchedule"}
GPU = "nvidia.com/gpu"

Manifest = dict[str, Any]


def run_app(cwd: Path, **env: str) -> None:
    """Run app.py as a program of its own, as a user does."""
    environment = {name: value for name, value in os.environ.items() if name != "CDK8S_OUTDIR"}
    app = subprocess.run(
        [sys.executable, str(dist.ROOT / "app.py")],
        cwd=cwd,
        env={**environment, **env},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (app.returncode, app.stdout) == (0, "")
    (line,) = app.stderr.splitlines()
    assert line.startswith("wrote ")


def test_dist_is_what_app_py_writes_in_the_folder_that_cdk8s_outdir_names(tmp_path: Path) -> None:
    run_app(tmp_path, PYTHONHASHSEED="2", CDK8S_OUTDIR="else/where")
    assert [path.name for path in tmp_path.iterdir()] == ["else"]
    found = dist.differences(dist.all_texts(dist.DIST), dist.all_texts(tmp_path / "else/where"))
    assert not found, "run `uv run python app.py`\n" + "\n".join(found)


def test_dist_holds_the_four_clusters_helm_values_machine_configuration_and_reports_only() -> None:
    beside = {"helm-values", "machine-config", "reports"}
    assert {path.name for path in dist.DIST.iterdir()} == {*dist.CLUSTERS, *beside}
    folders = {path.parent.relative_to(dist.DIST).as_posix() for path in dist.DIST.rglob("*") if path.is_file()}
    assert folders == {
        *dist.CLUSTERS,
        f"{RTX3090}/needs-crds",
        f"{RTX5070TI}/needs-crds",
        f"{OPERATOR}/needs-crds",
        f"helm-values/{OPERATOR}",
        *(f"machine-config/{cluster}" for cluster in dist.CLUSTERS if cluster.startswith("talos-")),
        *(f"reports/{cluster}" for cluster in dist.CLUSTERS),
    }


def test_no_report_lies_where_kubectl_reads() -> None:
    read = [path for cluster in dist.CLUSTERS for path in (dist.DIST / cluster).rglob("*") if path.is_file()]
    assert read
    assert [path.name for path in read if not path.name.endswith(".k8s.yaml")] == []
    assert {path.suffix for path in (dist.DIST / "reports").rglob("*.*")} == {".html", ".json", ".svg", ".txt"}


@pytest.mark.parametrize("cluster", dist.CLUSTERS)
def test_every_invariant_holds(cluster: str) -> None:
    invariants.hold_for_cluster(dist.DIST / cluster)


@pytest.mark.parametrize("row", dist.EXTERNALS, ids=lambda row: f"{row.cluster} {row.name}")
def test_every_row_of_the_externals_is_needed(row: dist.External) -> None:
    others = [other for other in dist.EXTERNALS if other != row]
    with pytest.raises(AssertionError, match=row.name):
        invariants.hold_for_cluster(dist.DIST / row.cluster, externals=others)


def test_custom_resources_are_valid_against_the_committed_crds() -> None:
    resources = [m for folder in dist.DIST.glob("*/needs-crds") for ms in dist.files(folder).values() for m in ms]
    assert {manifest["kind"] for manifest in resources} == {
        "Experiment",
        "HelmRelease",
        "HelmRepository",
        "Notebook",
        "PrometheusRule",
        "ServiceMonitor",
    }
    crds = schemas.committed_crds()
    assert [error for m in resources for error in schemas.custom_resource_errors(m, crds)] == []


def test_every_file_says_in_its_first_line_that_it_is_generated() -> None:
    texts = dist.all_texts(dist.DIST)
    assert [name for name, text in texts.items() if not text.startswith(side_files.first_line(name))] == []
    assert {text.partition("\n")[0] for name, text in texts.items() if name.endswith(".yaml")} == {
        "# Written by gpu_constructs: change the app, not this file."
    }


def test_no_key_is_given_twice_in_any_file() -> None:
    texts = [text for name, text in dist.all_texts(dist.DIST).items() if name.endswith((".json", ".yaml"))]
    assert texts
    for text in texts:
        assert schemas.load_yaml(text)


@pytest.mark.parametrize("cluster", dist.CLUSTERS)
def test_the_checks_at_synth_see_every_pod(cluster: str) -> None:
    for manifest in dist.objects(cluster):
        assert list(pod_specs(manifest)) == invariants.pod_specs(manifest), manifest["kind"]


# --- what field notes say, and the documented commands ask for ------------------------------------------------

FACTS = yaml.safe_load(Path(__file__).with_name("dist_facts.yaml").read_text(encoding="utf-8"))


def at(value: Any, path: str) -> Any:
    """Return what is at a place of an object; the facts say how one is written."""
    for step in path.split("/"):
        if isinstance(value, str):
            (value,) = schemas.load_yaml(value)
        if isinstance(value, list):
            value = value[int(step)] if step.isdigit() else next(one for one in value if one["name"] == step)
        else:
            value = value.get(step.replace("~", "/"))
    return value


def gpu_users(cluster: str) -> dict[str, int]:
    """How many GPU slots each workload takes when all of its pods run."""
    users = {}
    for manifest in dist.objects(cluster):
        for spec in invariants.pod_specs(manifest):
            slots = sum(int(c.get("resources", {}).get("limits", {}).get(GPU, 0)) for c in invariants.containers(spec))
            how_many = manifest["spec"]
            pods = how_many.get("replicas", how_many.get("parallelism", how_many.get("parallelTrialCount", 1)))
            if slots:
                users[f"{manifest['kind']} {manifest['metadata']['name']}"] = slots * pods
    return users


@pytest.mark.parametrize("cluster", dist.CLUSTERS)
def test_a_cluster_is_as_field_notes_and_documented_commands_have_it(cluster: str) -> None:
    for name, facts in FACTS["objects"][cluster].items():
        manifest = dist.find(cluster, *name.split())
        assert {path: at(manifest, path) for path in facts} == facts, name
    assert gpu_users(cluster) == FACTS["gpu_users"][cluster]
    if cluster in FACTS["daemon_sets"]:
        daemon_sets = [one["metadata"]["name"] for one in dist.objects(cluster) if one["kind"] == "DaemonSet"]
        assert daemon_sets == FACTS["daemon_sets"][cluster]


def test_everything_that_must_run_on_the_tainted_node_tolerates_its_taint() -> None:
    tolerant = {
        f"{manifest['kind']} {manifest['metadata']['name']}"
        for manifest in dist.objects(RTX5070TI)
        for spec in invariants.pod_specs(manifest)
        if DEDICATED in spec.get("tolerations", ())
    }
    discovery = "nvidia-device-plugin-node-feature-discovery"
    jobs = (one["metadata"]["name"] for one in dist.objects(RTX5070TI) if one["kind"] == "Job")
    assert tolerant == {
        "DaemonSet nvidia-device-plugin",
        "DaemonSet nvidia-device-plugin-gpu-feature-discovery",
        f"DaemonSet {discovery}-worker",
        f"Deployment {discovery}-master",
        f"Deployment {discovery}-gc",
        "DaemonSet dcgm-exporter",
        # Its node may be the only one.
        *(f"Job {one}" for one in jobs if one.startswith("ollama-pull-")),
        *gpu_users(RTX5070TI),
    }


@pytest.mark.parametrize("cluster", [RTX5070TI, RTX3090, OPERATOR])
def test_on_talos_every_gpu_user_names_the_runtime_class(cluster: str) -> None:
    for manifest in dist.objects(cluster):
        for spec in invariants.pod_specs(manifest):
            if any(c.get("resources", {}).get("limits", {}).get(GPU) for c in spec["containers"]):
                assert spec["runtimeClassName"] == "nvidia"
                assert spec["nodeSelector"] == {"nvidia.com/gpu.present": "true"}


def test_the_exporter_reads_the_metrics_of_the_seed() -> None:
    (metrics,) = dist.find(RTX5070TI, "ConfigMap", "dcgm-exporter-metrics")["data"].values()
    fields = {line.split(",")[0] for line in metrics.splitlines()}
    wanted = "GPU_UTIL FB_USED GPU_TEMP POWER_USAGE SM_CLOCK MEM_CLOCK"
    assert fields >= {f"DCGM_FI_DEV_{name}" for name in wanted.split()}
