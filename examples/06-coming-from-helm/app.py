"""The values of two Helm releases, moved to constructs without a change."""

from pathlib import Path
from typing import Any

import yaml

from gpu_constructs import App, Chart, DcgmExporter, DevicePluginChart, synth

NAMESPACE = "nvidia-device-plugin"


def values(chart: str) -> dict[str, Any]:
    """Return the values of a release, as Helm has them."""
    return yaml.safe_load(Path(__file__).with_name(f"{chart}.values.yaml").read_text()) or {}


def device_plugin(app: App) -> None:
    """Replace the release of the device plugin."""
    DevicePluginChart.from_helm_values(
        app,
        "nvdp",
        values("nvidia-device-plugin"),
        release_name="nvdp",
        namespace=NAMESPACE,
        version="0.20.0",
    )


def dcgm_exporter(app: App) -> None:
    """Replace the release of the exporter."""
    DcgmExporter.from_helm_values(
        Chart(app, "dcgm-exporter"),
        "exporter",
        values("dcgm-exporter"),
        release_name="dcgm-exporter",
        namespace=NAMESPACE,
        version="4.8.2",
    )


app = App()
device_plugin(app)
dcgm_exporter(app)
synth(app)
