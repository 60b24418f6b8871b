"""GPUs for a chart that Helm rendered, and for a job that runs every night."""

from pathlib import Path

from gpu_constructs import (
    App,
    CapacityPlan,
    Chart,
    DevicePluginChart,
    GpuAccess,
    GpuInventory,
    GpuNamespace,
    GpuNode,
    GpuProfile,
    GpuRequest,
    GpuWorkload,
    Include,
    Run,
    Sharing,
    Talos,
    Volume,
    VolumeClaim,
    synth,
)

# Facts about your cluster: change these first.
TALOS = Talos("1.12.11")
BOARD = "NVIDIA GeForce RTX 4090"
SHARING = Sharing.time_slicing(replicas=2)

CHART = Path(__file__).with_name("jellyfin.yaml")  # what `helm template` wrote
PROFILE = GpuProfile(platform=TALOS, sharing=SHARING)
INVENTORY = GpuInventory(nodes=[GpuNode(name="gpu-node", gpu_model=BOARD)])

SCRIPT = """import torch
batches = torch.randn(1000, 4096, device="cuda").split(100)
torch.save(torch.stack([batch.mean(dim=0) for batch in batches]), "/results/means.pt")
"""


def jellyfin(app: App) -> None:
    """Include the rendered chart, and give a GPU with the video encoder to its Deployment."""
    chart = Chart(app, "jellyfin")
    GpuNamespace(chart, "namespace", name="media", pod_security="baseline")  # the image runs as root
    rendered = Include(chart, "rendered", url=str(CHART))
    (server,) = (one for one in rendered.api_objects if one.kind == "Deployment")
    GpuAccess(profile=PROFILE, request=GpuRequest(driver_capabilities=["video"], vram="2Gi")).apply_to(server)


def nightly(app: App) -> None:
    """Run a script on the GPU every night at three, and keep its results on a disk."""
    chart = Chart(app, "nightly", namespace="nightly")
    GpuNamespace(chart, "namespace", name="nightly", pod_security="restricted")
    GpuWorkload(
        chart,
        "nightly",
        run=Run.cron_job(schedule="0 3 * * *", time_zone="Europe/Berlin", active_deadline_seconds=4 * 3600),
        image="docker.io/pytorch/pytorch:2.7.1-cuda12.8-cudnn9-runtime",
        command=["python", "-c", SCRIPT],
        profile=PROFILE,
        gpus=GpuRequest(vram="8Gi"),
        env={"HOME": "/tmp"},
        volumes={"/results": VolumeClaim(storage="10Gi"), "/tmp": Volume.empty_dir(size_limit="10Gi")},
        resources={"requests": {"cpu": "1", "memory": "4Gi"}, "limits": {"memory": "16Gi"}},
        run_as_user=1000,
        fs_group=1000,
        read_only_root_filesystem=True,
    )


app = App()
DevicePluginChart(app, "nvidia-device-plugin", platform=TALOS, sharing=SHARING)
jellyfin(app)
nightly(app)
CapacityPlan(app, INVENTORY)
synth(app)
