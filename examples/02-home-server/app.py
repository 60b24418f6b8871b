"""A home server: Ollama with Open WebUI, a power limit, metrics, alerts and a dashboard."""

from gpu_constructs import (
    App,
    CapacityPlan,
    Chart,
    DevicePluginChart,
    GpuAlerts,
    GpuInventory,
    GpuNamespace,
    GpuNode,
    GpuProfile,
    NvidiaGpuExporter,
    Ollama,
    PowerLimit,
    Talos,
    TalosGpuNode,
    synth,
)

# Facts about your server: change these first.
TALOS = Talos("1.12.11")
BOARD = "NVIDIA GeForce RTX 3090"
WATTS = 280
PROMETHEUS = {"release": "kube-prometheus-stack"}  # the labels by which Prometheus selects objects

PROFILE = GpuProfile(platform=TALOS)
INVENTORY = GpuInventory(nodes=[GpuNode(name="server", gpu_model=BOARD)])


def node(app: App) -> PowerLimit:
    """Write the machine configuration, install the device plugin, and limit the power of the board."""
    TalosGpuNode(app, "server", platform=TALOS)
    DevicePluginChart(app, "nvidia-device-plugin", platform=TALOS)
    return PowerLimit(Chart(app, "power"), "power", platform=TALOS, watts=WATTS, gpu_models=[BOARD])


def monitoring(app: App, limit: PowerLimit) -> None:
    """Export the metrics of the GPU without privileges, with a dashboard and alerts."""
    chart = Chart(app, "monitoring")
    namespace = GpuNamespace(chart, "namespace", name="gpu-monitoring", pod_security="restricted")
    exporter = NvidiaGpuExporter(chart, "exporter", platform=TALOS, namespace=namespace, scrape_labels=PROMETHEUS)
    GpuAlerts(chart, "alerts", exporter=exporter, power_limit=limit, labels=PROMETHEUS)


def ollama(app: App) -> Ollama:
    """Run the chat server, which gets the whole GPU."""
    chart = Chart(app, "ollama", namespace="ollama")
    GpuNamespace(chart, "namespace", name="ollama", pod_security="restricted")
    return Ollama(chart, "ollama", profile=PROFILE, models=["qwen3:8b", "llama3.2:3b"], keep_alive="30m")


def open_webui(app: App, server: Ollama) -> None:
    """Run the web page of the chat server with cdk8s-plus; it needs no GPU."""
    import cdk8s_plus_27 as kplus
    from cdk8s import ApiObjectMetadata, Size

    chart = Chart(app, "open-webui", namespace="open-webui")
    GpuNamespace(chart, "namespace", name="open-webui", pod_security="baseline")  # the image runs as root
    disk = kplus.PersistentVolumeClaim(
        chart,
        "disk",
        access_modes=[kplus.PersistentVolumeAccessMode.READ_WRITE_ONCE],
        storage=Size.gibibytes(10),
    )
    page = kplus.Deployment(
        chart,
        "page",
        metadata=ApiObjectMetadata(name="open-webui"),
        replicas=1,
        strategy=kplus.DeploymentStrategy.recreate(),
        security_context=kplus.PodSecurityContextProps(ensure_non_root=False),
    )
    container = page.add_container(
        image="ghcr.io/open-webui/open-webui:v0.11.3",
        port_number=8080,
        env_variables={"OLLAMA_BASE_URL": kplus.EnvValue.from_value(server.url)},
        startup=kplus.Probe.from_http_get("/health", failure_threshold=60),
        resources=kplus.ContainerResources(
            memory=kplus.MemoryResources(request=Size.gibibytes(1), limit=Size.gibibytes(4))
        ),
        security_context=kplus.ContainerSecurityContextProps(ensure_non_root=False, read_only_root_filesystem=False),
    )
    container.mount("/app/backend/data", kplus.Volume.from_persistent_volume_claim(chart, "data", disk))
    page.expose_via_service(name="open-webui", ports=[kplus.ServicePort(port=80, target_port=8080)])


app = App()
limit = node(app)
monitoring(app, limit)
open_webui(app, ollama(app))
CapacityPlan(app, INVENTORY)
synth(app)
