"""A company cluster: two pools, two teams, an operator, and a language model on four GPUs."""

from gpu_constructs import (
    App,
    CapacityPlan,
    Chart,
    ContainerLimits,
    Delivery,
    EnvValue,
    External,
    GpuInventory,
    GpuNamespace,
    GpuNode,
    GpuOperator,
    GpuPriorityClasses,
    GpuProfile,
    GpuRequest,
    Kubernetes,
    NamespaceQuota,
    PyTorchTraining,
    TrainingPod,
    Vllm,
    synth,
)

# Facts about your cluster: change these first.
PLATFORM = Kubernetes()
H100, A100 = "NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB"
SMALL_GPU = "1g.10gb"
TEAMS = {"search": 6, "vision": 8}  # MIG devices that a team may hold

PROFILE = GpuProfile(platform=PLATFORM, mig_strategy="mixed")
INVENTORY = GpuInventory(
    nodes=[
        GpuNode(name="h100-pool", gpu_model=H100, gpus=8, rack="r1"),
        GpuNode(name="a100-pool", gpu_model=A100, gpus=1, count=2, mig_layout={SMALL_GPU: 7}, rack="r2"),
    ],
    rack_watts={"r1": 6000, "r2": 1000},
)


def operator(app: App) -> None:
    """Let Argo CD install the GPU Operator, which divides the boards of the A100 pool."""
    chart = Chart(app, "gpu-operator")
    GpuOperator(
        chart,
        "gpu-operator",
        platform=PLATFORM,
        namespace=GpuNamespace(chart, "namespace"),
        delivery=Delivery.argo_cd(),
        mig_strategy="mixed",
    )


def language_model(app: App, priorities: GpuPriorityClasses) -> None:
    """Serve one model on four whole GPUs; it may evict batch work."""
    chart = Chart(app, "llm", namespace="llm")
    GpuNamespace(chart, "namespace", name="llm", pod_security="restricted")
    External(chart, "existing", secrets=["llm/hugging-face"])
    Vllm(
        chart,
        "llm",
        model="Qwen/Qwen3-32B",
        hf_token=EnvValue.secret("hugging-face", key="token"),
        gpus=GpuRequest(count=4, products=[H100]),
        profile=PROFILE,
        priority_class_name=priorities.serving,
        resources={"requests": {"cpu": "8", "memory": "64Gi"}, "limits": {"memory": "128Gi"}},
    )


def team(app: App, name: str, devices: int, priorities: GpuPriorityClasses) -> None:
    """Create the namespace of a team, with a quota for its GPUs and a first training."""
    chart = Chart(app, name, namespace=name)
    GpuNamespace(
        chart,
        "namespace",
        name=name,
        pod_security="restricted",
        resource_quota=NamespaceQuota(gpus={f"nvidia.com/mig-{SMALL_GPU}": devices, "nvidia.com/gpu": 0}),
        limit_range=ContainerLimits(default={"memory": "16Gi"}, default_request={"memory": "4Gi"}),
    )
    pod = TrainingPod(
        script="import torch; print(torch.cuda.get_device_name())",
        gpus=GpuRequest(mig_profile=SMALL_GPU),
        profile=PROFILE,
        priority_class_name=priorities.batch,
    )
    PyTorchTraining(chart, "first-training", pod=pod)


app = App()
operator(app)
priorities = GpuPriorityClasses(Chart(app, "priorities"), "priorities")
language_model(app, priorities)
for name, devices in TEAMS.items():
    team(app, name, devices, priorities)
CapacityPlan(app, INVENTORY, power="error")
synth(app)
