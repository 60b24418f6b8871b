"""What ``GpuOperator`` tells the chart, beside the values that are known to work on Talos.

``python -m tests.operator_parity DIR`` takes a folder with one folder for each release (``v26.7.0``), which hold
``talos-1.12-legacy.values.yaml`` and ``talos-1.13-official.values.yaml``. Ours must be the same, plus exactly what
``BESIDE`` names and, where taints are given, the tolerations in both places of the chart.

With ``--chart FOLDER``, a chart of one release on this machine, and a ``helm`` on the PATH, the values are rendered
too: the objects must be those of the folder's ``*.nohooks.crds.rendered.yaml``, but for what ``BESIDE`` changes.

It prints a line for each check, and exits with 1 when one fails or cannot be made.
"""

import argparse
import copy
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import cdk8s
import yaml

from gpu_constructs import Delivery, GpuConstructsError, GpuOperator, Talos, Toleration
from gpu_constructs.catalog.versions import GPU_OPERATOR

OFFICIAL = "talos-1.13-official"
ROUTES = {"talos-1.12-legacy": ("1.10", "1.11", "1.12"), OFFICIAL: ("1.13", "1.14")}
BESIDE: Mapping[str, Mapping[str, Any]] = {"talos-1.12-legacy": {}, OFFICIAL: {"migManager": {"enabled": False}}}
REFUSED = {(OFFICIAL, "25.10.1"): "must be at least '26.3.1'"}
TAINT = Toleration(key="dedicated", value="ai", effect="NoSchedule")

Check = tuple[str, Callable[[], str]]
"""What is checked, and a function that gives what is wrong: nothing where all is well."""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.operator_parity", description=__doc__)
    parser.add_argument("goldens", metavar="DIR", type=Path)
    parser.add_argument("--chart", metavar="FOLDER", type=Path, action="append", default=[])
    given = parser.parse_args(arguments)
    failed = made = 0
    for name, check in (*_values(given.goldens), *(_rendered(given.goldens, chart) for chart in given.chart)):
        try:
            wrong = check()
        except (OSError, KeyError, yaml.YAMLError, GpuConstructsError) as error:
            wrong = f"cannot be checked: {error}"
        made, failed = made + 1, failed + bool(wrong)
        print(f"FAILED {name}: {wrong}" if wrong else f"ok     {name}")
    print(f"{made} checks: {made - failed} hold, {failed} do not; {'' if given.chart else 'no '}chart was rendered")
    return 1 if failed or not made else 0


def _values(goldens: Path) -> Iterator[Check]:
    for version in (one for one in GPU_OPERATOR if (goldens / f"v{one}").is_dir()):
        for route, lines in ROUTES.items():
            file = goldens / f"v{version}" / f"{route}.values.yaml"
            for line in lines:
                says = "refused" if (route, version) in REFUSED else f"those of {route}"
                name = f"values of {version} on Talos {line}: {says}"
                yield name, lambda file=file, route=route, version=version, line=line: _of(file, route, version, line)


def _of(file: Path, route: str, version: str, line: str) -> str:
    if (route, version) in REFUSED:
        return _not_refused(version, line, REFUSED[route, version])
    expected = {**yaml.safe_load(file.read_text(encoding="utf-8")), **BESIDE[route]}
    alone, tainted = (operator(version, line, tolerations=taints).values for taints in ([], [TAINT]))
    if alone != expected:
        return f"expected {expected}, got {alone}"
    without = copy.deepcopy(tainted)
    both = [
        without.pop("daemonsets").pop("tolerations"),
        without.pop("node-feature-discovery")["worker"].pop("tolerations"),
    ]
    if without != expected:
        return f"with a taint: expected {expected}, got {without}"
    return "" if all(TAINT.to_manifest() in place for place in both) else f"no toleration of the taint in {both}"


def operator(version: str, line: str, **given: Any) -> GpuOperator:
    chart = cdk8s.Chart(cdk8s.App(), "gpu")
    keywords: dict[str, Any] = {"delivery": Delivery.values(), "namespace": "gpu-operator", **given}
    return GpuOperator(chart, "gpu-operator", platform=Talos(line), version=version, **keywords)


def _not_refused(version: str, line: str, why: str) -> str:
    try:
        operator(version, line)
    except GpuConstructsError as error:
        return "" if why in str(error) else f"refused for another reason: {error}"
    return "not refused"


def _rendered(goldens: Path, chart: Path) -> Check:
    about = yaml.safe_load((chart / "Chart.yaml").read_text(encoding="utf-8"))
    version = str(about["version"]).removeprefix("v")
    return f"objects of {version}, rendered", lambda: _difference(goldens, chart, version)


def _difference(goldens: Path, chart: Path, version: str) -> str:
    text = (goldens / f"v{version}" / f"{OFFICIAL}.nohooks.crds.rendered.yaml").read_text(encoding="utf-8")
    theirs = _by_identity(one for one in yaml.safe_load_all(text) if one)
    theirs[("ClusterPolicy", "cluster-policy")]["spec"]["migManager"]["enabled"] = False
    made = operator(version, "1.13", delivery=Delivery.helm(chart=str(chart)))
    ours = _by_identity(cdk8s.Chart.of(made).to_json())
    differing = [name for name in theirs if ours.get(name) != theirs[name]]
    return f"these differ: {differing}" if differing or ours.keys() != theirs.keys() else ""


def _by_identity(objects: Any) -> dict[tuple[str, str], Any]:
    return {(one["kind"], one["metadata"]["name"]): _without_nothing(one) for one in objects}


def _without_nothing(value: Any) -> Any:
    """Leave out members that are null, as our manifests do, and the namespace that ours state and the chart may not."""
    if isinstance(value, Mapping):
        kept = {key: _without_nothing(item) for key, item in value.items() if item is not None}
        if "annotations" in kept or "labels" in kept or "name" in kept:
            kept.pop("namespace", None)
        return kept
    return [_without_nothing(item) for item in value] if isinstance(value, list) else value


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
