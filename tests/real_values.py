"""Counts the values files of real users that the library accepts, chart by chart.

``python -m tests.real_values DIR`` takes a folder with an ``index.json``. Its entries name a file (``file``), its chart
(``chart``), and its release (``version``, ``release``, ``namespace``; null if the file names none). The tool reads each
file at the newest release of its chart, and at the file's own release if it names one. The library accepts
a file, accepts it with ``strict=False``, or rejects it with a reason. `tests.parity` compares what the charts render.

It exits with 1 if it reads no file.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import yaml

import gpu_constructs as gpu
from gpu_constructs.catalog import versions

_RELEASE = re.compile(r"v?[0-9]+\.[0-9]+\.[0-9]+")
"""A range such as ``24.*`` names no release."""

AS_IS, DROPPED, REFUSED = "accepted", "accepted with strict=False", "rejected"


@dataclass(frozen=True)
class Outcome:
    """One of the three results for a file, with the reason unless the library accepts it."""

    what: str
    why: str = ""


def _in_chart(make: Callable[..., object]) -> Callable[..., object]:
    return lambda app, id, values, **given: make(gpu.Chart(app, id), "made", values, **given)


def _operator(app: gpu.App, id: str, values: Any, **given: Any) -> object:
    return gpu.GpuOperator.from_helm_values(gpu.Chart(app, id), "made", values, **given)


READERS: Mapping[str, tuple[Callable[..., object], str]] = {
    "dcgm-exporter": (_in_chart(gpu.DcgmExporter.from_helm_values), versions.DEFAULT_DCGM_EXPORTER),
    "gpu-operator": (_operator, versions.DEFAULT_GPU_OPERATOR),
    "node-feature-discovery": (
        gpu.NodeFeatureDiscoveryChart.from_helm_values,
        versions.DEFAULT_NODE_FEATURE_DISCOVERY,
    ),
    "nvidia-device-plugin": (gpu.DevicePluginChart.from_helm_values, versions.DEFAULT_DEVICE_PLUGIN),
    "nvidia-gpu-exporter": (_in_chart(gpu.NvidiaGpuExporter.from_helm_values), versions.DEFAULT_NVIDIA_GPU_EXPORTER),
}
EXPORTERS = ("dcgm-exporter", "nvidia-gpu-exporter")
"""Charts that need what a device plugin brings to the cluster."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Read all files, print the counts, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.real_values", description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=Path, metavar="DIR", help="folder with an index.json")
    parser.add_argument("-q", "--quiet", action="store_true", help="print the numbers without the reasons")
    options = parser.parse_args(arguments)
    entries = json.loads((options.folder / "index.json").read_text(encoding="utf-8"))
    for title, chosen in _modes(entries).items():
        outcomes = [(entry, _outcome(options.folder, entry, version)) for entry, version in chosen]
        print(f"{title}: {_share([outcome for _, outcome in outcomes])}")
        for chart in sorted({entry["chart"] for entry, _ in chosen}):
            _print_chart(chart, [pair for pair in outcomes if pair[0]["chart"] == chart], is_quiet=options.quiet)
    return 0 if entries else 1


def _modes(entries: Sequence[Mapping[str, Any]]) -> dict[str, list[tuple[Mapping[str, Any], str | None]]]:
    return {
        "at the newest release": [(entry, None) for entry in entries],
        # A range such as 24.* names no release.
        "at the file's own release": [
            (entry, entry["version"])
            for entry in entries
            if re.match(r"v?[0-9]+\.[0-9]+\.[0-9]+", entry["version"] or "")
        ],
    }


def _print_chart(chart: str, outcomes: Sequence[tuple[Mapping[str, Any], Outcome]], *, is_quiet: bool) -> None:
    print(f"  {chart}: {_share([outcome for _, outcome in outcomes])}")
    for entry, outcome in outcomes if not is_quiet else ():
        if outcome.what != AS_IS:
            print(f"    {entry['file']} {outcome.what}: {outcome.why}")


def _share(outcomes: Sequence[Outcome]) -> str:
    counts = Counter(outcome.what for outcome in outcomes)
    words = [f"{what} {counts[what]} ({counts[what] / len(outcomes):.0%})" for what in (AS_IS, DROPPED, REFUSED)]
    return f"{len(outcomes)} files, {', '.join(words)}" if outcomes else "no file"


def _outcome(folder: Path, entry: Mapping[str, Any], version: str | None) -> Outcome:
    text = (folder / entry["file"]).read_text(encoding="utf-8")
    problems = list(_problems(entry, text, version, strict=True))
    if not problems:
        return Outcome(AS_IS)
    if entry["chart"] in READERS and not list(_problems(entry, text, version, strict=False)):
        return Outcome(DROPPED, problems[0])
    return Outcome(REFUSED, problems[0])


def _problems(entry: Mapping[str, Any], text: str, version: str | None, *, strict: bool) -> Iterator[str]:
    """Yield the reason why the library rejects a file, if it does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            _take(entry, text, version, strict=strict)
        except (gpu.GpuConstructsError, yaml.YAMLError) as error:
            yield str(error)


def _take(entry: Mapping[str, Any], text: str, version: str | None, *, strict: bool) -> None:
    if entry["chart"] == "plugin-config":
        gpu.PluginConfig.from_yaml(text)
        return
    values = yaml.safe_load(text)
    if entry["chart"] not in READERS:
        raise gpu.GpuConstructsError("the library does not read values of this chart")
    make, newest = READERS[entry["chart"]]
    namespace = entry["namespace"] or "gpu"
    with tempfile.TemporaryDirectory() as folder:
        app = gpu.App(outdir=folder)
        make(
            app,
            "values",
            {} if values is None else values,
            release_name=entry["release"] or entry["chart"],
            namespace=namespace,
            version=version or newest,
            strict=strict,
        )
        # Objects of the rest of a cluster.
        around = {"namespaces": [namespace], **{kind: ["*"] for kind in ("config_maps", "secrets", "service_accounts")}}
        if entry["chart"] in EXPORTERS:
            around |= {"runtime_classes": ["nvidia"], "node_labels": ["nvidia.com/gpu.present"]}
        gpu.External(app, "around", **around)
        gpu.synthesize(app)


if __name__ == "__main__":
    raise SystemExit(main())
