"""Four clusters, one App each: copy the one that is nearest to yours.

``uv run python app.py`` writes them to dist/, or to the folder that CDK8S_OUTDIR names.
"""

import os  # noqa: I001
from pathlib import Path

from gpu_constructs import (
    DcgmExporter, Delivery, DevicePluginChart, GpuAlerts, GpuNamespace, GpuOperator, GpuWorkload, Kubernetes,
    NvidiaGpuExporter, NvidiaRuntimeClass, PowerLimit, Probe, Sharing, Taint, Talos, TalosGpuNode, Toleration,
    ValidationBridge, Volume, synth,
)  # fmt: skip
import cdk8s_plus_27 as kplus
from cdk8s import ApiObjectMetadata, App, Chart, Size
from imports.org.kubeflow import Experiment, Notebook, NotebookSpec, NotebookSpecTemplate

PYTORCH = "docker.io/pytorch/pytorch:2.7.1-cuda12.8-cudnn9-runtime"
TRAIN = """import sys, time, torch
rate, end = float(sys.argv[1]) if sys.argv[1:] else 0.02, time.time() + 30
weights = torch.ones(4096, device="cuda")
while time.time() < end:
    weights -= rate * 2 * weights  # the gradient of the loss below
print(f"loss={(weights**2).sum().item()}")
"""


def cluster(name: str) -> App:
    return App(outdir=str(Path(os.environ.get("CDK8S_OUTDIR", "dist")) / name))


def disk(chart: Chart, name: str) -> kplus.PersistentVolumeClaim:
    metadata, once = ApiObjectMetadata(name=name), [kplus.PersistentVolumeAccessMode.READ_WRITE_ONCE]
    return kplus.PersistentVolumeClaim(chart, name, metadata=metadata, access_modes=once, storage=Size.gibibytes(100))


def ollama(app: App, platform: Talos, taints: list[Toleration]) -> None:
    chart = Chart(app, "ollama", namespace="ollama")
    GpuNamespace(chart, "namespace", name="ollama", pod_security="restricted")
    GpuWorkload(
        chart, "ollama", image="docker.io/ollama/ollama:0.32.15", platform=platform, tolerations=taints,
        env={"HOME": "/data", "OLLAMA_MODELS": "/data/models", "OLLAMA_MAX_LOADED_MODELS": "1"},
        ports={"http": 11434},
        startup_probe=Probe.http_get("/", port="http", failure_threshold=60),
        readiness_probe=Probe.http_get("/", port="http"),
        volumes={"/data": disk(chart, "ollama-data"), "/tmp": Volume.empty_dir(size_limit="10Gi")},
        resources={"requests": {"cpu": "1", "memory": "4Gi"}, "limits": {"memory": "24Gi"}},
        run_as_user=1000, fs_group=1000, read_only_root_filesystem=True,
    )  # fmt: skip


def comfyui(app: App, platform: Talos, taints: list[Toleration]) -> None:
    chart = Chart(app, "comfyui", namespace="comfyui")
    GpuNamespace(chart, "namespace", name="comfyui", pod_security="baseline")  # the image runs as root
    GpuWorkload(
        chart, "comfyui", image="docker.io/yanwk/comfyui-boot:cu128-slim", platform=platform, tolerations=taints,
        env={"CLI_ARGS": "--disable-xformers --reserve-vram 4"},
        ports={"http": 8188},
        startup_probe=Probe.http_get("/system_stats", port="http", failure_threshold=120),
        volumes={"/root": disk(chart, "comfyui-data")},
        resources={"requests": {"cpu": "2", "memory": "8Gi"}, "limits": {"memory": "32Gi"}},
    )  # fmt: skip


def training_job(chart: Chart, platform: Talos | Kubernetes, taints: list[Toleration]) -> GpuWorkload:
    metadata = ApiObjectMetadata(name="train.py")
    script = kplus.ConfigMap(chart, "train.py", metadata=metadata, data={"train.py": TRAIN})
    return GpuWorkload(
        chart, "gpu-training-job", kind="Job", image=PYTORCH, platform=platform, tolerations=taints,
        command=["python", "/train/train.py"], env={"HOME": "/tmp"},
        volumes={"/train": script, "/tmp": Volume.empty_dir(size_limit="10Gi")}, shared_memory="2Gi",
        run_as_user=1000, read_only_root_filesystem=True,
    )  # fmt: skip


def kubeflow(app: App, platform: Talos, taints: list[Toleration]) -> None:
    """A training job, and its pod once more in custom resources that the library does not wrap yet."""
    chart = Chart(app, "kubeflow", namespace="kubeflow-user")
    katib = {"katib.kubeflow.org/metrics-collector-injection": "enabled"}
    GpuNamespace(chart, "namespace", name="kubeflow-user", pod_security="baseline", labels=katib)
    pod = training_job(chart, platform, taints).api_object.to_json()["spec"]["template"]["spec"]
    container = pod["containers"][0]
    notebook = {
        **pod, "restartPolicy": None, "securityContext": {**pod["securityContext"], "fsGroup": 100},
        "volumes": [{"name": "home", "persistentVolumeClaim": {"claimName": disk(chart, "notebook-home").name}}],
        "containers": [{
            **container, "name": "notebook", "command": None, "env": None,
            "image": "ghcr.io/kubeflow/kubeflow/notebook-servers/jupyter-pytorch-cuda-full:v1.11.0",
            "securityContext": {**container["securityContext"], "readOnlyRootFilesystem": False},
            "volumeMounts": [{"name": "home", "mountPath": "/home/jovyan"}],
        }],
    }  # fmt: skip
    spec = NotebookSpec(template=NotebookSpecTemplate(spec=notebook))
    Notebook(chart, "notebook", metadata=ApiObjectMetadata(name="notebook"), spec=spec)
    command = [*container["command"], "${trialParameters.rate}"]
    trial = {"backoffLimit": 0, "template": {"spec": {**pod, "containers": [{**container, "command": command}]}}}
    experiment = {
        "objective": {"type": "minimize", "objectiveMetricName": "loss"}, "algorithm": {"algorithmName": "random"},
        "parallelTrialCount": 1, "maxTrialCount": 3, "maxFailedTrialCount": 1,
        "parameters": [{"name": "lr", "parameterType": "double", "feasibleSpace": {"min": "0.01", "max": "0.05"}}],
        "trialTemplate": {
            "primaryContainerName": container["name"], "trialParameters": [{"name": "rate", "reference": "lr"}],
            "trialSpec": {"apiVersion": "batch/v1", "kind": "Job", "spec": trial},
        },
    }  # fmt: skip
    Experiment(chart, "experiment", metadata=ApiObjectMetadata(name="learning-rate"), spec=experiment)


def talos_rtx5070ti() -> App:
    """One RTX 5070 Ti with 16 GB, shared by five; tainted for AI; metrics scraped by VictoriaMetrics."""
    app, platform = cluster("talos-rtx5070ti"), Talos("1.12.11")
    taint = Taint(key="dedicated", value="ai", effect="NoSchedule")
    taints = [taint.toleration]
    TalosGpuNode(app, "gpu-node", platform=platform, gpu_architecture="blackwell", taints=[taint])
    chart = Chart(app, "gpu-cluster")
    namespace, runtime_class = GpuNamespace(chart, "namespace"), NvidiaRuntimeClass(chart, "runtime-class")
    sharing = Sharing.time_slicing(replicas=5)
    DevicePluginChart(
        app, "nvidia-device-plugin", platform=platform, namespace=namespace, runtime_class=runtime_class,
        version="0.18.2", tolerations=taints, sharing=sharing,
    )  # fmt: skip
    exporter = DcgmExporter(
        chart, "dcgm-exporter", platform=platform, namespace=namespace, tolerations=taints, sharing=sharing,
        gpu_models=["NVIDIA GeForce RTX 5070 Ti"],
    )  # fmt: skip
    GpuAlerts(chart, "gpu-alerts", exporter=exporter)
    for users in (ollama, comfyui, kubeflow):
        users(app, platform, taints)
    return app


def talos_rtx3090() -> App:
    """Two RTX 3090, four slots each, held at 300 W and watched; a smoke test that needs nine slots, finds eight."""
    app, platform, namespace = cluster("talos-rtx3090"), Talos("1.10.9"), "gpu-device-plugin"
    TalosGpuNode(app, "gpu-node", platform=platform, kernel_module_type="proprietary", default_runtime=True)
    DevicePluginChart(
        app, "nvidia-device-plugin", platform=platform, namespace=namespace, sharing=Sharing.time_slicing(replicas=4)
    )
    limit = PowerLimit(
        Chart(app, "nvidia-powerlimit"), "nvidia-powerlimit", platform=platform, namespace=namespace, watts=300,
        gpu_models=["NVIDIA GeForce RTX 3090"],
    )  # fmt: skip
    chart = Chart(app, "gpu-monitoring")
    monitoring = GpuNamespace(chart, "namespace", name="gpu-monitoring", pod_security="restricted")
    exporter = NvidiaGpuExporter(chart, "nvidia-gpu-exporter", platform=platform, namespace=monitoring)
    GpuAlerts(chart, "gpu-alerts", exporter=exporter, power_limit=limit)
    GpuWorkload(
        Chart(app, "gpu-test"), "gpu-test", kind="Job", namespace=namespace, platform=platform, completions=9,
        image="nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0-ubuntu22.04",
        command=["sh", "-c", "/cuda-samples/vectorAdd && sleep 60"],
        resources={"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "1Gi"}},
        run_as_user=1000, read_only_root_filesystem=True,
    )  # fmt: skip
    return app


def talos_gpu_operator() -> App:
    """The GPU Operator, installed by Flux, and the bridge that it needs until Talos 1.12."""
    app, platform = cluster("talos-gpu-operator"), Talos("1.12.11")
    TalosGpuNode(app, "gpu-node", platform=platform, gpu_architecture="blackwell", operator_validator=False)
    chart = Chart(app, "gpu-operator")
    namespace = GpuNamespace(chart, "namespace")
    bridge = ValidationBridge(chart, "validation-bridge", platform=platform, namespace=namespace)
    GpuOperator(
        chart, "gpu-operator", platform=platform, version="25.10.1", delivery=Delivery.flux(), namespace=namespace,
        bridge=bridge, device_list_strategy="envvar",
    )  # fmt: skip
    for users in (ollama, comfyui):
        users(app, platform, [])
    return app


def kubernetes_basic() -> App:
    """Any Kubernetes whose nodes have driver and toolkit: the plugin alone, and one training job."""
    app, platform = cluster("kubernetes-basic"), Kubernetes()
    DevicePluginChart(
        app, "nvidia-device-plugin", platform=platform, namespace="nvidia-device-plugin", fail_on_init_error=False,
        node_feature_discovery=False, gpu_feature_discovery=False,
    )  # fmt: skip
    chart = Chart(app, "gpu-training-job", namespace="training")
    GpuNamespace(chart, "namespace", name="training", pod_security="restricted")
    training_job(chart, platform, [])
    return app


synth(talos_rtx5070ti(), talos_rtx3090(), talos_gpu_operator(), kubernetes_basic())
