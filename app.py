"""Clusters, one App each: copy the one that is nearest to yours.

``uv run python app.py`` writes them to dist/, or to the folder that CDK8S_OUTDIR names.
"""

import os  # noqa: I001
from pathlib import Path

from gpu_constructs import (
    DevicePluginChart, GpuNamespace, GpuWorkload, Kubernetes,
    Talos, Toleration, Volume, synth,
)  # fmt: skip
import cdk8s_plus_27 as kplus
from cdk8s import ApiObjectMetadata, App, Chart

PYTORCH = "docker.io/pytorch/pytorch:2.7.1-cuda12.8-cudnn9-runtime"
TRAIN = "import torch\nx = torch.rand(4096, 4096, device='cuda')\nprint('loss:', (x @ x).mean().item())\n"


def cluster(name: str) -> App:
    return App(outdir=str(Path(os.environ.get("CDK8S_OUTDIR", "dist")) / name))


def training_job(chart: Chart, platform: Talos | Kubernetes, taints: list[Toleration]) -> None:
    metadata = ApiObjectMetadata(name="gpu-training-job")
    script = kplus.ConfigMap(chart, "train.py", metadata=metadata, data={"train.py": TRAIN})
    GpuWorkload(
        chart, "gpu-training-job", kind="Job", image=PYTORCH, platform=platform, tolerations=taints,
        command=["python", "/train/train.py"], env={"HOME": "/tmp"},
        volumes={"/train": script, "/tmp": Volume.empty_dir(size_limit="10Gi")}, shared_memory="2Gi",
        run_as_user=1000, read_only_root_filesystem=True,
    )  # fmt: skip


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


synth(kubernetes_basic())
