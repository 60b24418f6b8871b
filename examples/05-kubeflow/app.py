"""Kubeflow with GPUs: a notebook, a training on two nodes, and a search for parameters."""

from dataclasses import replace

from gpu_constructs import (
    App,
    CapacityPlan,
    Chart,
    DevicePluginChart,
    GpuInventory,
    GpuNamespace,
    GpuNode,
    GpuProfile,
    KatibExperiment,
    KatibParameter,
    KubeflowNotebook,
    PyTorchTraining,
    Talos,
    TrainingPod,
    synth,
)

# Facts about your cluster: change these first.
TALOS = Talos("1.13.9")
BOARD = "NVIDIA L4"
USER = "kubeflow-user"  # the namespace of a Kubeflow profile

PROFILE = GpuProfile(platform=TALOS)
INVENTORY = GpuInventory(nodes=[GpuNode(name="l4-pool", gpu_model=BOARD, gpus=2, count=2)])

TRAIN = """import sys, time, torch
rate, end = float(sys.argv[1]), time.time() + 30
weights = torch.ones(4096, device="cuda")
while time.time() < end:
    weights -= rate * 2 * weights
print(f"loss={(weights**2).sum().item()}")
"""

# What a training and a trial have in common: the program and one GPU.
POD = TrainingPod(script=TRAIN, args=["0.02"], profile=PROFILE)


def namespace(chart: Chart) -> None:
    """Create the namespace of the user, in which Katib collects metrics."""
    collects = {"katib.kubeflow.org/metrics-collector-injection": "enabled"}
    GpuNamespace(chart, "namespace", name=USER, pod_security="baseline", labels=collects)


def training(chart: Chart) -> None:
    """Train on two nodes at once; Kueue starts both pods or none."""
    queue = {"kueue.x-k8s.io/queue-name": "gpus"}
    PyTorchTraining(chart, "training", pod=POD, api="PyTorchJob", num_nodes=2, labels=queue)


def search(chart: Chart) -> None:
    """Search for the best learning rate, one trial after the other."""
    KatibExperiment(
        chart,
        "learning-rate",
        trial=replace(POD, args=["${trialParameters.rate}"]),
        parameters={"rate": KatibParameter.double(min=0.01, max=0.05)},
        objective_metric_name="loss",
        max_trial_count=6,
    )


app = App()
DevicePluginChart(app, "nvidia-device-plugin", platform=TALOS)
chart = Chart(app, "kubeflow", namespace=USER)
namespace(chart)
KubeflowNotebook(chart, "lab", pod=TrainingPod(profile=PROFILE))
training(chart)
search(chart)
CapacityPlan(app, INVENTORY, unchecked="off")  # the quota of the queue is not in this app
synth(app)
