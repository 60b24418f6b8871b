"""Counts the values files of real users that the library accepts, chart by chart.

``python -m tests.real_values DIR`` takes a folder with an ``index.json``. Its entries name a file (``file``), its chart
(``chart``), and its release (``version``, ``release``, ``namespace``; null or absent if the file names none). The tool
reads each file at the newest release of its chart, and at the file's own release if it names one. The library accepts
a file, accepts it with ``strict=False``, or rejects it with a reason.

If a render of Helm is at hand, the tool compares it with the output of the library, as `tests.parity` does. An entry
can name its render (``render``). The tool also finds cases of `tests.parity` with the same values, in the folders after
``--renders``. By default, it searches DIR and the folder ``golden`` beside it.

It exits with 1 if it reads no file, if the library crashes on a file, or if a difference from Helm has no explanation.
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

import gpu_constructs as gpu
import parity
from gpu_constructs.catalog import versions
from parity_cases import Case, UnreadableCase, find_cases

_RELEASE = re.compile(r"v?[0-9]+\.[0-9]+\.[0-9]+")
"""A range such as ``24.*`` names no release."""

AS_IS, DROPPED, REFUSED, CRASHED = "accepted", "accepted with strict=False", "rejected", "crashed"


@dataclass(frozen=True)
class Outcome:
    """The result for a file, with the reason unless the library accepts it."""

    what: str
    why: str = ""


@dataclass(frozen=True)
class File:
    """An entry of the index. Only the name of the file and the chart are required.

    Attributes:
        name: Path of the file in the folder.
        chart: Name of the chart, or ``plugin-config`` for a configuration file of the device plugin.
        version: Release of the chart, without a leading v, or a range; empty if unknown.
        release: Name of the Helm release; the name of the chart if unknown.
        namespace: Namespace of the Helm release; ``gpu`` if unknown.
        render: Path of the render of Helm in the folder; empty if there is none.
        folder: Folder of the index.
    """

    name: str
    chart: str
    version: str
    release: str
    namespace: str
    render: str
    folder: Path

    @classmethod
    def of(cls, entry: Mapping[str, Any], folder: Path) -> File:
        texts = {
            key: str(entry.get(key) or "") for key in ("file", "chart", "version", "release", "namespace", "render")
        }
        name, chart = texts["file"], texts["chart"]
        version, release = texts["version"].removeprefix("v"), texts["release"] or chart
        return cls(name, chart, version, release, texts["namespace"] or "gpu", texts["render"], folder)

    def text(self) -> str:
        return (self.folder / self.name).read_text(encoding="utf-8")

    def cases(self, known: Sequence[Case]) -> Iterator[Case]:
        """Yield the renders of the values in this file."""
        given = {"release": self.release, "namespace": self.namespace, "values": self.folder / self.name}
        if self.render:
            render = self.folder / self.render
            yield Case(name=self.name, chart=self.chart, version=self.version, render=render, **given)
        try:
            values = Case(name="", chart="", version="", render=self.folder, **given).read_values()
        except (UnreadableCase, UnicodeDecodeError):
            return
        yield from (case for case in known if case.chart == self.chart and case.read_values() == values)


def _in_chart(made: type[Any]) -> Callable[..., object]:
    return lambda app, id, path, **given: made.from_helm_values_file(gpu.Chart(app, id), "made", path, **given)


READERS: Mapping[str, tuple[Callable[..., object], str]] = {
    "dcgm-exporter": (_in_chart(gpu.DcgmExporter), versions.DEFAULT_DCGM_EXPORTER),
    "gpu-operator": (_in_chart(gpu.GpuOperator), versions.DEFAULT_GPU_OPERATOR),
    "node-feature-discovery": (
        gpu.NodeFeatureDiscoveryChart.from_helm_values_file,
        versions.DEFAULT_NODE_FEATURE_DISCOVERY,
    ),
    "nvidia-device-plugin": (gpu.DevicePluginChart.from_helm_values_file, versions.DEFAULT_DEVICE_PLUGIN),
    "nvidia-gpu-exporter": (_in_chart(gpu.NvidiaGpuExporter), versions.DEFAULT_NVIDIA_GPU_EXPORTER),
}
EXPORTERS = ("dcgm-exporter", "nvidia-gpu-exporter")
"""Charts that need what a device plugin brings to the cluster."""
CONFIG = "plugin-config"


def main(arguments: Sequence[str] | None = None) -> int:
    """Read all files, print the counts, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.real_values", description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=Path, metavar="DIR", help="folder with an index.json")
    parser.add_argument("-q", "--quiet", action="store_true", help="print the numbers without the reasons")
    parser.add_argument("--renders", type=Path, nargs="*", metavar="DIR", help="folders with cases of tests.parity")
    options = parser.parse_args(arguments)
    try:
        index = json.loads((options.folder / "index.json").read_text(encoding="utf-8"))
        files = [File.of(entry, options.folder) for entry in index if isinstance(entry, Mapping)]
        renders = options.renders or [options.folder, options.folder.resolve().parent / "golden"]
        known = [case for folder in renders for case in find_cases(folder) if parity.is_mapped(case)]
    except (OSError, ValueError, UnreadableCase) as error:
        print(f"UNREADABLE {error}")
        return 1
    failed = not files
    for title, chosen in _modes(files).items():
        outcomes = [(file, _outcome(file, version)) for file, version in chosen]
        failed |= any(outcome.what == CRASHED for _, outcome in outcomes)
        print(f"{title}: {_share([outcome for _, outcome in outcomes])}")
        for chart in sorted({file.chart for file, _ in chosen}):
            _print_chart(chart, [pair for pair in outcomes if pair[0].chart == chart], is_quiet=options.quiet)
    print("compared with renders of Helm:")
    for chart in sorted({file.chart for file in files}):
        failed |= not _compare(chart, [file for file in files if file.chart == chart], known, is_quiet=options.quiet)
    return 1 if failed else 0


def _modes(files: Sequence[File]) -> dict[str, list[tuple[File, str]]]:
    own = [(file, file.version) for file in files if _RELEASE.match(file.version)]
    return {"at the newest release": [(file, "") for file in files], "at the file's own release": own}


def _print_chart(chart: str, outcomes: Sequence[tuple[File, Outcome]], *, is_quiet: bool) -> None:
    print(f"  {chart}: {_share([outcome for _, outcome in outcomes])}")
    for file, outcome in outcomes if not is_quiet else ():
        if outcome.what != AS_IS:
            print(f"    {file.name} {outcome.what}: {outcome.why}")


def _share(outcomes: Sequence[Outcome]) -> str:
    counts = Counter(outcome.what for outcome in outcomes)
    kinds = [AS_IS, DROPPED, REFUSED, *([CRASHED] if counts[CRASHED] else ())]
    words = [f"{what} {counts[what]} ({counts[what] / len(outcomes):.0%})" for what in kinds if outcomes]
    return f"{len(outcomes)} files, {', '.join(words)}" if outcomes else "no file"


def _compare(chart: str, files: Sequence[File], known: Sequence[Case], *, is_quiet: bool) -> bool:
    """Compare the files of a chart with their renders, print the differences, and return whether all are explained."""
    pairs = [(file, case) for file in files for case in file.cases(known)]
    wrong = {f"{file.name} beside {case.name}": _differences(case) for file, case in pairs}
    wrong = {name: found for name, found in wrong.items() if found}
    count = len({file.name for file, _ in pairs})
    print(f"  {chart}: {count} of {len(files)} files have a render, {len(wrong)} of {len(pairs)} renders differ")
    for name, found in wrong.items() if not is_quiet else ():
        print(f"    {name}: {len(found)} unexplained differences")
        for difference in found:
            print(f"      {difference}")
    return not wrong


def _differences(case: Case) -> list[str]:
    if not parity.is_mapped(case):
        return [f"tests.parity does not compare chart {case.chart} {case.version or 'of an unknown release'}"]
    try:
        return [str(difference) for difference in parity.check(case).unexplained]
    except Exception as error:
        return [f"{type(error).__name__}: {error}"]


def _outcome(file: File, version: str) -> Outcome:
    try:
        problems = list(_problems(file, version, strict=True))
        if not problems:
            return Outcome(AS_IS)
        is_readable = file.chart in READERS and not list(_problems(file, version, strict=False))
    except Exception as error:
        return Outcome(CRASHED, f"{type(error).__name__}: {error}")
    return Outcome(DROPPED if is_readable else REFUSED, problems[0])


def _problems(file: File, version: str, *, strict: bool) -> Iterator[str]:
    """Yield the reason why the library rejects a file, if it does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            _take(file, version, strict=strict)
        except (gpu.GpuConstructsError, OSError, UnicodeDecodeError) as error:
            yield str(error)


def _take(file: File, version: str, *, strict: bool) -> None:
    if file.chart == CONFIG:
        gpu.PluginConfig.from_yaml(file.text())
        return
    if file.chart not in READERS:
        raise gpu.GpuConstructsError(f"the library does not read values of the chart {file.chart!r}")
    make, newest = READERS[file.chart]
    with tempfile.TemporaryDirectory() as folder:
        app = gpu.App(outdir=folder)
        given = {"release_name": file.release, "namespace": file.namespace, "version": version or newest}
        make(app, "values", file.folder / file.name, **given, strict=strict)
        # Objects of the rest of a cluster.
        around = {kind: ["*"] for kind in ("config_maps", "secrets", "service_accounts")}
        around["namespaces"] = [file.namespace]
        if file.chart in EXPORTERS:
            around |= {"runtime_classes": ["nvidia"], "node_labels": ["nvidia.com/gpu.present"]}
        gpu.External(app, "around", **around)
        gpu.synthesize(app)


if __name__ == "__main__":
    raise SystemExit(main())
