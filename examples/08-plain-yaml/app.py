"""The GPU rules and a capacity plan over manifests that another tool rendered."""

from pathlib import Path

from gpu_constructs import App, CapacityPlan, Chart, GpuInventory, Include, synth

HERE = Path(__file__).parent

app = App()
for file in sorted(HERE.glob("rendered/*.yaml")):
    Include(Chart(app, file.stem), "manifests", url=str(file))
CapacityPlan(app, GpuInventory.from_file(HERE / "gpus.yaml"))
synth(app, strict=True)
