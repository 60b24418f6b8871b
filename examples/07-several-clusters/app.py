"""Three clusters from one program: the parts are functions, and each cluster is one row of facts."""

from dataclasses import dataclass

from gpu_constructs import (
    App,
    CapacityPlan,
    Chart,
    DcgmExporter,
    DevicePluginChart,
    GpuAlerts,
    GpuInventory,
    GpuNamespace,
    GpuNode,
    GpuProfile,
    GpuRequest,
    Kubernetes,
    Ollama,
    Sharing,
    Talos,
    TalosGpuNode,
    synth,
)


@dataclass(frozen=True)
class Cluster:
    """The facts in which the clusters differ."""

    platform: Talos | Kubernetes
    board: str
    nodes: int
    slots: int
    models: tuple[str, ...]

    @property
    def sharing(self) -> Sharing:
        """How pods share a board."""
        return Sharing.time_slicing(replicas=self.slots) if self.slots > 1 else Sharing.none()


CLUSTERS = {
    "lab": Cluster(Talos("1.13.9"), "NVIDIA GeForce RTX 4090", nodes=1, slots=4, models=("llama3.2:3b",)),
    "office": Cluster(Talos("1.12.11"), "NVIDIA L4", nodes=2, slots=2, models=("qwen3:8b",)),
    "cloud": Cluster(Kubernetes(), "NVIDIA L40S", nodes=3, slots=1, models=("qwen3:8b", "llama3.2:3b")),
}


def gpu_nodes(app: App, cluster: Cluster) -> None:
    """Make the nodes advertise their GPUs; on Talos, also write the machine configuration."""
    if isinstance(cluster.platform, Talos):
        TalosGpuNode(app, "gpu-node", platform=cluster.platform)
    DevicePluginChart(app, "nvidia-device-plugin", platform=cluster.platform, sharing=cluster.sharing)


def monitoring(app: App, cluster: Cluster) -> None:
    """Export metrics, and raise alerts on them."""
    chart = Chart(app, "monitoring")
    exporter = DcgmExporter(
        chart,
        "exporter",
        platform=cluster.platform,
        sharing=cluster.sharing,
        gpu_models=[cluster.board],
    )
    GpuAlerts(chart, "alerts", exporter=exporter)


def chat(app: App, cluster: Cluster) -> None:
    """Run the chat server with the models of the cluster."""
    chart = Chart(app, "chat", namespace="chat")
    GpuNamespace(chart, "namespace", name="chat", pod_security="restricted")
    profile = GpuProfile(platform=cluster.platform, sharing=cluster.sharing)
    gpu = GpuRequest(products=[cluster.board], vram="8Gi")
    Ollama(chart, "chat", profile=profile, gpus=gpu, models=cluster.models)


def capacity(app: App, cluster: Cluster) -> None:
    """Check that the pods fit the nodes of the cluster."""
    pool = GpuNode(name="gpu-node", gpu_model=cluster.board, count=cluster.nodes)
    CapacityPlan(app, GpuInventory(nodes=[pool]))


def app_of(name: str, cluster: Cluster) -> App:
    """Return the app of one cluster, which has all parts."""
    app = App(outdir=f"dist/{name}")
    for part in (gpu_nodes, monitoring, chat, capacity):
        part(app, cluster)
    return app


synth(*(app_of(name, cluster) for name, cluster in CLUSTERS.items()))
