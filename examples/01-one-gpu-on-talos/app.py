"""One GPU on Talos, shared by a chat server and an image generator."""

from gpu_constructs import (
    App,
    CapacityPlan,
    Chart,
    ComfyUI,
    DevicePluginChart,
    GpuInventory,
    GpuNamespace,
    GpuNode,
    GpuProfile,
    GpuRequest,
    Ollama,
    Sharing,
    Talos,
    TalosGpuNode,
    synth,
)

# Facts about your node: change these first.
TALOS = Talos("1.12.11")
BOARD = "NVIDIA GeForce RTX 4090"
SHARING = Sharing.time_slicing(replicas=4)

PROFILE = GpuProfile(platform=TALOS, sharing=SHARING)
INVENTORY = GpuInventory(nodes=[GpuNode(name="gpu-node", gpu_model=BOARD)])


def node(app: App) -> None:
    """Write the machine configuration of the node, and install the device plugin."""
    TalosGpuNode(app, "gpu-node", platform=TALOS)
    DevicePluginChart(app, "nvidia-device-plugin", platform=TALOS, sharing=SHARING)


def ollama(app: App) -> None:
    """Run a chat server with one model, which takes at most 8 GiB of the board."""
    chart = Chart(app, "ollama", namespace="ollama")
    GpuNamespace(chart, "namespace", name="ollama", pod_security="restricted")
    gpu = GpuRequest(products=[BOARD], vram="8Gi")
    Ollama(chart, "ollama", profile=PROFILE, gpus=gpu, models=["qwen3:8b"])


def comfyui(app: App) -> None:
    """Run an image generator, which takes at most 12 GiB of the board."""
    chart = Chart(app, "comfyui", namespace="comfyui")
    GpuNamespace(chart, "namespace", name="comfyui", pod_security="baseline")  # the image runs as root
    gpu = GpuRequest(products=[BOARD], vram="12Gi")
    ComfyUI(chart, "comfyui", image="docker.io/yanwk/comfyui-boot:cu128-slim", profile=PROFILE, gpus=gpu)


app = App()
node(app)
ollama(app)
comfyui(app)
CapacityPlan(app, INVENTORY)
synth(app)
