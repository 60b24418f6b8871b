"""dist/ is what app.py writes, every invariant holds on it, and the documented commands find what they name."""

from __future__ import annotations

import difflib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dist
import invariants
import schemas
from gpu_constructs import PluginConfig, Sharing
from gpu_constructs.kube import side_files
from gpu_constructs.kube.pod_specs import pod_specs

RTX5070TI, RTX3090, OPERATOR, BASIC = "talos-rtx5070ti", "talos-rtx3090", "talos-gpu-operator", "kubernetes-basic"
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


@pytest.fixture(scope="session")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh synth of all clusters, from a folder of its own."""
    folder = tmp_path_factory.mktemp("fresh")
    run_app(folder, PYTHONHASHSEED="1")
    return folder / "dist"


def differences(committed: dict[str, str], written: dict[str, str]) -> list[str]:
    """What a reviewer needs to see, file by file."""
    found = []
    for name in sorted(committed.keys() | written.keys()):
        if name not in written:
            found.append(f"dist/{name}: app.py does not write it any more")
        elif name not in committed:
            found.append(f"dist/{name}: app.py writes it, but it is not there")
        else:
            lines = (committed[name].splitlines(keepends=True), written[name].splitlines(keepends=True))
            found.append("".join(difflib.unified_diff(*lines, f"dist/{name}", f"app.py writes {name}")))
    return [difference for difference in found if difference]


def test_dist_is_what_app_py_writes(fresh: Path) -> None:
    found = differences(dist.all_texts(dist.DIST), dist.all_texts(fresh))
    assert not found, "run `uv run python app.py`\n" + "\n".join(found)


def test_another_run_gives_the_same_bytes_in_the_folder_that_cdk8s_outdir_names(fresh: Path, tmp_path: Path) -> None:
    run_app(tmp_path, PYTHONHASHSEED="2", CDK8S_OUTDIR="else/where")
    assert dist.all_texts(tmp_path) == {f"else/where/{name}": text for name, text in dist.all_texts(fresh).items()}


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


def pod_of(manifest: Manifest) -> Manifest:
    (spec,) = invariants.pod_specs(manifest)
    return spec


def container_of(manifest: Manifest) -> Manifest:
    (container,) = invariants.containers(pod_of(manifest))
    return container


def variables_of(manifest: Manifest) -> dict[str, str]:
    return {variable["name"]: variable["value"] for variable in container_of(manifest)["env"] if "value" in variable}


def config_of(cluster: str, name: str = "nvidia-device-plugin-config") -> Any:
    """The configuration file in a ConfigMap, read."""
    (text,) = dist.find(cluster, "ConfigMap", name)["data"].values()
    (config,) = schemas.load_yaml(text)
    return config


def namespace_of(cluster: str, kind: str, name: str) -> str:
    return str(dist.find(cluster, kind, name)["metadata"]["namespace"])


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


@pytest.mark.parametrize(
    ("cluster", "kind", "name", "namespace"),
    [
        (RTX5070TI, "DaemonSet", "nvidia-device-plugin", "nvidia-gpu-operator"),
        (RTX5070TI, "DaemonSet", "nvidia-device-plugin-gpu-feature-discovery", "nvidia-gpu-operator"),
        (RTX5070TI, "DaemonSet", "dcgm-exporter", "nvidia-gpu-operator"),
        (RTX5070TI, "ServiceMonitor", "dcgm-exporter", "nvidia-gpu-operator"),
        (RTX5070TI, "Deployment", "ollama", "ollama"),
        (RTX5070TI, "Job", "gpu-training-job", "kubeflow-user"),
        (RTX3090, "DaemonSet", "nvidia-device-plugin", "gpu-device-plugin"),
        (RTX3090, "DaemonSet", "nvidia-device-plugin-gpu-feature-discovery", "gpu-device-plugin"),
        (RTX3090, "ConfigMap", "nvidia-device-plugin-config", "gpu-device-plugin"),
        (RTX3090, "DaemonSet", "nvidia-powerlimit", "gpu-device-plugin"),
        (RTX3090, "Job", "gpu-test", "gpu-device-plugin"),
        (OPERATOR, "DaemonSet", "nvidia-validation-bridge", "nvidia-gpu-operator"),
        (OPERATOR, "Deployment", "ollama", "ollama"),
        (BASIC, "DaemonSet", "nvidia-device-plugin", "nvidia-device-plugin"),
        (BASIC, "Job", "gpu-training-job", "training"),
    ],
)
def test_the_names_of_the_commands_are_there(cluster: str, kind: str, name: str, namespace: str) -> None:
    assert namespace_of(cluster, kind, name) == namespace


@pytest.mark.parametrize("name", ["nvidia-device-plugin", "nvidia-powerlimit"])
def test_pods_are_found_by_the_label_of_the_commands(name: str) -> None:
    pods = dist.find(RTX3090, "DaemonSet", name)["spec"]["template"]
    assert pods["metadata"]["labels"]["app.kubernetes.io/name"] == name


@pytest.mark.parametrize(("cluster", "replicas"), [(RTX5070TI, 5), (RTX3090, 4)])
def test_each_gpu_is_shared_by_as_many_as_the_seed_says(cluster: str, replicas: int) -> None:
    time_slicing = config_of(cluster)["sharing"]["timeSlicing"]
    assert time_slicing["resources"] == [{"name": GPU, "replicas": replicas}]
    assert time_slicing["failRequestsGreaterThanOne"] is True


def test_the_five_gpu_users_of_the_rtx_5070_ti_take_its_five_slots() -> None:
    assert gpu_users(RTX5070TI) == {
        "Deployment comfyui": 1,
        "Deployment ollama": 1,
        "Experiment learning-rate": 1,
        "Job gpu-training-job": 1,
        "Notebook notebook": 1,
    }


@pytest.mark.parametrize("cluster", [RTX5070TI, RTX3090])
def test_talos_gets_the_strategies_that_work_there(cluster: str) -> None:
    variables = variables_of(dist.find(cluster, "DaemonSet", "nvidia-device-plugin"))
    assert variables["DEVICE_LIST_STRATEGY"] == "envvar"
    assert variables["DEVICE_DISCOVERY_STRATEGY"] == "nvml"


@pytest.mark.parametrize(("cluster", "release"), [(RTX5070TI, "v0.18.2"), (RTX3090, "v0.20.0"), (BASIC, "v0.20.0")])
def test_the_plugin_is_of_the_release_of_the_cluster(cluster: str, release: str) -> None:
    container = container_of(dist.find(cluster, "DaemonSet", "nvidia-device-plugin"))
    assert container["image"] == f"nvcr.io/nvidia/k8s-device-plugin:{release}"


@pytest.mark.parametrize("cluster", [RTX5070TI, RTX3090])
def test_the_nfd_worker_labels_nodes_with_gpu_present_and_the_master_lets_it(cluster: str) -> None:
    (rule,) = config_of(cluster, "nvidia-device-plugin-node-feature-discovery-worker-conf")["sources"]["custom"]
    assert rule["labels"] == {"nvidia.com/gpu.present": "true"}
    master = config_of(cluster, "nvidia-device-plugin-node-feature-discovery-master-conf")
    assert "nvidia.com" in master["extraLabelNs"]


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


def test_the_exporter_brings_a_dashboard_and_reads_the_metrics_of_the_seed() -> None:
    dashboard = dist.find(RTX5070TI, "ConfigMap", "dcgm-exporter-dashboard")
    assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"
    (metrics,) = dist.find(RTX5070TI, "ConfigMap", "dcgm-exporter-metrics")["data"].values()
    fields = {line.split(",")[0] for line in metrics.splitlines()}
    assert fields >= {
        "DCGM_FI_DEV_GPU_UTIL",
        "DCGM_FI_DEV_FB_USED",
        "DCGM_FI_DEV_GPU_TEMP",
        "DCGM_FI_DEV_POWER_USAGE",
        "DCGM_FI_DEV_SM_CLOCK",
        "DCGM_FI_DEV_MEM_CLOCK",
    }


def test_the_power_limit_holds_300_watts_looks_every_half_hour_and_takes_no_slot() -> None:
    power_limit = dist.find(RTX3090, "DaemonSet", "nvidia-powerlimit")
    variables = variables_of(power_limit)
    assert variables["POWER_LIMIT"] == "300"
    assert variables["INTERVAL_SECONDS"] == "1800"
    assert variables["PERSISTENCE_MODE"] == "1"
    assert "DaemonSet nvidia-powerlimit" not in gpu_users(RTX3090)


def test_the_smoke_test_wants_nine_slots_at_once_of_which_there_are_eight() -> None:
    job = dist.find(RTX3090, "Job", "gpu-test")["spec"]
    assert (job["completions"], job["parallelism"]) == (9, 9)
    assert gpu_users(RTX3090) == {"Job gpu-test": 9}


def test_the_values_of_the_operator_state_envvar_and_leave_driver_and_toolkit_to_talos() -> None:
    (text,) = dist.all_texts(dist.DIST / "helm-values" / OPERATOR).values()
    assert schemas.load_yaml(text) == [
        {
            "driver": {"enabled": False},
            "toolkit": {"enabled": False},
            "cdi": {"enabled": False},
            "migManager": {"enabled": False},
            "devicePlugin": {
                "env": [{"name": "DEVICE_LIST_STRATEGY", "value": "envvar"}],
                "config": {
                    "create": True,
                    "name": "nvidia-device-plugin-configs-31a6c83e",
                    "default": "default",
                    "data": {"default": PluginConfig(sharing=Sharing.vram_units(vram="16303Mi")).to_yaml()},
                },
            },
        }
    ]


def test_beside_the_operator_the_two_that_want_the_one_board_fit_it_by_the_gib() -> None:
    assert gpu_users(OPERATOR) == {"Deployment ollama": 7, "Deployment comfyui": 8}
    assert Sharing.vram_units(vram="16303Mi").replicas == 15


def test_beside_the_operator_stands_no_plugin_of_ours() -> None:
    daemonsets = [m["metadata"]["name"] for m in dist.objects(OPERATOR) if m["kind"] == "DaemonSet"]
    assert daemonsets == ["nvidia-validation-bridge"]


def test_plain_kubernetes_gets_the_plugin_alone_quiet_on_nodes_without_gpu() -> None:
    plugin = dist.find(BASIC, "DaemonSet", "nvidia-device-plugin")
    assert variables_of(plugin)["FAIL_ON_INIT_ERROR"] == "false"
    assert not {"affinity", "nodeSelector", "runtimeClassName"} & pod_of(plugin).keys()
    assert "sharing" not in config_of(BASIC)
    kinds = {m["kind"] for m in dist.objects(BASIC)}
    assert kinds == {"Namespace", "ConfigMap", "DaemonSet", "Job"}


def test_the_training_job_on_plain_kubernetes_asks_for_one_whole_gpu() -> None:
    assert gpu_users(BASIC) == {"Job gpu-training-job": 1}
    assert "runtimeClassName" not in pod_of(dist.find(BASIC, "Job", "gpu-training-job"))
