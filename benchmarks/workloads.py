"""What many GpuWorkloads in one chart cost beside the same manifests written without this library.

``uv run python benchmarks/workloads.py`` prints seconds, milliseconds for each object and how the time grows from
1,000 to 10,000 workloads; ``--quick`` leaves the 10,000 out. Each measurement is a process of its own, timed inside
from the App to the written files, because what one chart leaves behind in Node.js would slow the next one down.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

from gpu_constructs.tree.manifest import Manifest  # First, since it chooses the Node.js.  # isort: skip
from cdk8s import ApiObject, ApiObjectMetadata, App, Chart, Testing
from constructs import Construct

MANY = 1_000
MORE = 10_000
_MAPS = ("labels", "annotations", "matchLabels", "nodeSelector")
_AMOUNTS = ("limits", "requests")
_LISTS = {"containers": ["Container"], "tolerations": ["Toleration"], "ports": ["ContainerPort", "ServicePort"]}
_FITS = {"Container": "image", "Toleration": "operator", "ContainerPort": "containerPort", "ServicePort": "port"}
_NATIVE = """
const { App, Chart, ApiObject } = require('cdk8s');
const [bodies, count, outdir] = [JSON.parse(process.argv[2]), Number(process.argv[3]), process.argv[4]];
const start = performance.now();
const app = new App({ outdir });
const chart = new Chart(app, 'workloads');
for (let i = 0; i < count; i++) {
  bodies.forEach((body, k) => {
    const copy = structuredClone(body);
    copy.metadata.name = `w${i}`;
    new ApiObject(chart, `w${i}-${k}`, copy);
  });
}
app.synth();
console.log((performance.now() - start) / 1000);
"""


def construct_under_test(chart: Chart, id: str) -> Construct:
    """The one place that says what is measured."""
    from gpu_constructs import GpuWorkload

    return GpuWorkload(chart, id, image="example.com/app:1", ports={"http": 8080})


class Lazy(ApiObject):
    """A bare ApiObject whose body stays in Python until it is rendered."""

    def __init__(self, scope: Construct, id: str, body: dict[str, Any]) -> None:
        self._rest = {key: value for key, value in body.items() if key not in ("apiVersion", "kind", "metadata")}
        metadata = ApiObjectMetadata(**body["metadata"])
        super().__init__(scope, id, api_version=body["apiVersion"], kind=body["kind"], metadata=metadata)

    def to_json(self) -> Any:
        return {**super().to_json(), **self._rest}


def typed(scope: Construct, id: str, body: dict[str, Any]) -> None:
    """The same object through the classes of cdk8s-plus-27 for each field of Kubernetes."""
    from cdk8s_plus_27 import k8s

    def amount(value: object) -> k8s.Quantity:
        return k8s.Quantity.from_number(value) if isinstance(value, int) else k8s.Quantity.from_string(str(value))

    def member(key: str, value: Any) -> Any:
        if key in _MAPS:
            return value
        if key in _AMOUNTS:
            return {name: amount(each) for name, each in value.items()}
        if key == "targetPort":
            return k8s.IntOrString.from_string(value) if isinstance(value, str) else k8s.IntOrString.from_number(value)
        if isinstance(value, list) and key in _LISTS:
            # A list takes no plain dicts, as a single struct does.
            return [
                getattr(k8s, next(name for name in _LISTS[key] if _FITS[name] in each))(**struct(each))
                for each in value
            ]
        return struct(value)

    def struct(value: Any) -> Any:
        if isinstance(value, dict):
            return {re.sub("([A-Z])", r"_\1", key).lower(): member(key, each) for key, each in value.items()}
        return value

    rest = {key: value for key, value in body.items() if key not in ("apiVersion", "kind")}
    getattr(k8s, f"Kube{body['kind']}")(scope, id, **struct(rest))


def bodies() -> list[dict[str, Any]]:
    """What one workload writes."""
    chart = Testing.chart()
    construct_under_test(chart, "app")
    return Testing.synth(chart)


def _of_bodies(make: Callable[[Construct, str, dict[str, Any]], object]) -> Callable[[Chart, str], None]:
    each = bodies()

    def workload(chart: Chart, id: str) -> None:
        for index, body in enumerate(each):
            make(chart, f"{id}-{index}", {**body, "metadata": {**body["metadata"], "name": id}})

    return workload


def seconds(what: str, count: int, folder: str) -> float:
    """Make and write ``count`` workloads in this process."""
    from gpu_constructs import External, synthesize

    make: Callable[[Chart, str], object] = {
        "ours": lambda: construct_under_test,
        "manifest": lambda: _of_bodies(lambda chart, id, body: Manifest(chart, id, body)),
        "lazy by our synth": lambda: _of_bodies(Lazy),
        "lazy": lambda: _of_bodies(Lazy),
        "typed": lambda: _of_bodies(typed),
    }[what]()
    # The first of a kind pays for imports.
    make(Chart(App(outdir=folder), "first"), "first")
    start = time.perf_counter()
    app = App(outdir=folder)
    External(app, "nodes", runtime_classes=["nvidia"], node_labels=["nvidia.com/gpu.present"])
    chart = Chart(app, "workloads")
    for index in range(count):
        make(chart, f"w{index}")
    if what in ("lazy", "typed"):
        app.synth()
    else:
        synthesize(app)
    return time.perf_counter() - start


def unpack_javascript(folder: str) -> None:
    """Write the packages that the Python ones carry to ``node_modules`` in a folder."""
    modules = Path(folder, "node_modules")
    for package in ("cdk8s", "constructs"):
        (archive,) = (file for file in files(f"{package}._jsii").iterdir() if file.name.endswith(".tgz"))
        with tarfile.open(str(archive)) as packed:
            packed.extractall(folder, filter="data")
        modules.mkdir(exist_ok=True)
        Path(folder, "package").rename(modules / package)


def native(count: int, folder: str) -> float:
    """The same by cdk8s without a bridge: JavaScript."""
    unpack_javascript(folder)
    script = Path(folder, "native.js")
    script.write_text(_NATIVE)
    node = os.environ.get("JSII_NODE", "node")
    command = [node, str(script), json.dumps(bodies()), str(count), str(Path(folder, "dist"))]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measured(what: str, count: int) -> float:
    """Return the seconds of one measurement in a process of its own."""
    command = [sys.executable, __file__, "--one", what, "--count", str(count)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"{MANY:,} only, one round")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--count", type=int, default=MANY, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        with tempfile.TemporaryDirectory() as folder:
            made = native if given.one == "native" else lambda count, into: seconds(given.one, count, into)
            print(made(given.count, folder))
        return
    objects = len(bodies())
    print(f"{MANY:,} workloads of {objects} objects{'':14} seconds  ms/object  ours is times")
    names = {
        "ours": "this library",
        "manifest": "the same bodies as Manifest",
        "lazy by our synth": "lazy ApiObject, our synth",
        "lazy": "lazy ApiObject, App.synth",
        "typed": "typed L1 of cdk8s-plus-27",
        "native": "JavaScript cdk8s",
    }
    rounds: list[dict[str, float]] = [
        {what: measured(what, MANY) for what in names} for _ in range(1 if given.quick else 3)
    ]
    for what, name in names.items():
        took = statistics.median(each[what] for each in rounds)
        times = statistics.median(each["ours"] / each[what] for each in rounds)
        print(f"{name:38} {took:7.2f} {1000 * took / MANY / objects:10.3f} {times:14.2f}", flush=True)
    if given.quick:
        return
    for what in ("ours", "lazy", "native"):
        small, large = statistics.median(each[what] for each in rounds), measured(what, MORE)
        exponent = math.log(large / small) / math.log(MORE / MANY)
        each = 1000 * large / MORE / objects
        print(f"{names[what]:38} {large:7.2f} {each:10.3f}  {MORE:,} workloads, exponent {exponent:.2f}", flush=True)


if __name__ == "__main__":
    main()
