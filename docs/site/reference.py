"""The pages of the reference that come from the package itself: objects, alerts, labels and releases.

``python docs/site/reference.py`` writes the pages. A test compares them with the package.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

import gpu_constructs
from gpu_constructs.catalog import versions
from gpu_constructs.catalog.platforms import DEFAULT_PLATFORM

PAGES = Path(__file__).parents[1] / "reference"
LABELS = Path(__file__).with_name("labels.yaml")

CALLS = {
    "DevicePluginChart": "",
    "NodeFeatureDiscoveryChart": "",
    "NodeFeatureRule": 'rules=[FeatureRule(name="gpu", labels={"example.com/gpu": "true"})]',
    "GpuNamespace": "",
    "NvidiaRuntimeClass": "",
    "GpuPriorityClasses": "",
    "GpuRuntimeInjection": 'platform=Kubernetes("1.36"), runtime_class="nvidia"',
    "DenyVisibleDevicesOverride": "",
    "GpuOperator": "delivery=Delivery.flux()",
    "ValidationBridge": "",
    "DcgmExporter": "",
    "NvidiaGpuExporter": "",
    "GpuAlerts": "exporter=exporter",
    "GpuDashboard": "exporter=exporter",
    "PowerLimit": "",
    "GpuWorkload": 'image="registry.example.com/app:1", ports={"http": 8080}',
    "GpuDeviceClass": "profile=profile",
    "GpuResourceClaim": "profile=profile",
    "Ollama": 'models=["qwen3:8b"]',
    "ComfyUI": 'image="docker.io/yanwk/comfyui-boot:cu128-slim"',
    "Vllm": 'model="Qwen/Qwen3-8B"',
    "Jellyfin": "",
    "Plex": "",
    "PyTorchTraining": 'pod=TrainingPod(script="print(1)")',
    "KubeflowNotebook": "",
    "KatibExperiment": 'trial=trial, parameters={"rate": rate}, objective_metric_name="loss"',
    "CudaSmokeTest": "slots=4",
}
"""The call of each construct that emits objects, with the required keywords. ``_given`` has the values that it uses."""

WITHOUT_OBJECTS = {
    "CapacityPlan": "writes a report to `dist/reports/`",
    "External": "writes nothing",
    "HelmValues": "writes a values file to `dist/helm-values/`",
    "TalosGpuNode": "writes machine configuration to `dist/machine-config/`",
}

_FORM = re.compile(r"(?<![\w./:-])(?:(?:[a-z0-9-]+\.)+[a-z]+|gpu-constructs)/(?:[A-Za-z0-9][\w.-]*)?(?![\w/:-])")


def table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [heading, ["---"] * len(heading), *rows]
    return "\n".join(f"| {' | '.join(line)} |".replace("| --- |", "|---|").replace(" --- |", "---|") for line in lines)


def page_of_names() -> dict[str, str]:
    """Return the page of the reference that has each public name."""
    return {
        name: path.name
        for path in sorted(PAGES.glob("*.md"))
        for name in re.findall(r"^::: gpu_constructs\.(\w+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    }


def _given(app: gpu_constructs.App) -> dict[str, Any]:
    """Return what the calls name."""
    g = gpu_constructs
    return {
        **{name: getattr(g, name) for name in g.__all__},
        "exporter": g.DcgmExporter(g.Chart(app, "metrics"), "exporter", dashboard=False),
        "profile": g.GpuProfile(platform=g.Kubernetes(), backend=g.Backend.dra_claims()),
        "trial": g.TrainingPod(script="print('loss=1')", args=["${trialParameters.rate}"]),
        "rate": g.KatibParameter.double(min=0.01, max=0.1),
    }


def rendered(name: str) -> list[dict[str, Any]]:
    """Return the objects that a construct emits with only the required keywords."""
    app = gpu_constructs.App()
    scope = app if name.endswith("Chart") else gpu_constructs.Chart(app, "chart", namespace="example")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = eval(call(name), {**_given(app), "chart": scope, "app": scope})
        objects: list[dict[str, Any]] = gpu_constructs.Testing.synth(made if scope is app else scope)
    return objects


def call(name: str) -> str:
    """Return the call of a construct with only the required keywords."""
    scope = "app" if name.endswith("Chart") else "chart"
    options = f", {CALLS[name]}" if CALLS[name] else ""
    return f'{name}({scope}, "example"{options})'


def objects() -> str:
    """Return the page of objects by construct."""
    pages = page_of_names()
    parts = [
        "# Emitted objects",
        "This page lists the objects that each construct emits if you set only the required keywords. Options add\n"
        "further objects. Names that contain `example` come from the ID of the construct. A checksum at the end of a\n"
        "name changes with the content.",
    ]
    for name in CALLS:
        rows = [(one["kind"], f"`{one['metadata']['name']}`", f"`{one['apiVersion']}`") for one in rendered(name)]
        link = f"{pages[name]}#gpu_constructs.{name}"
        parts += [f"## {name}", f"[`{call(name)}`]({link})", table(("kind", "name", "API version"), rows)]
    without = [(f"[`{name}`]({pages[name]}#gpu_constructs.{name})", what) for name, what in WITHOUT_OBJECTS.items()]
    parts += ["## Constructs without objects", table(("construct", "what `synth` does"), without)]
    return "\n\n".join(parts) + "\n"


EXPORTERS: dict[str, tuple[str, dict[str, Any]]] = {
    "DCGM": ("DcgmExporter", {}),
    "nvidia-smi": ("NvidiaGpuExporter", {}),
    "NVML": ("NvidiaGpuExporter", {"backend": "nvml"}),
}


def _rules(exporter: str, options: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rules for an exporter, in a cluster with power limits."""
    chart = gpu_constructs.Chart(gpu_constructs.App(), "chart", namespace="example")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = getattr(gpu_constructs, exporter)(chart, "exporter", **options)
        power = gpu_constructs.PowerLimit(chart, "power")
        gpu_constructs.GpuAlerts(chart, "alerts", exporter=made, power_limit=power)
        objects = gpu_constructs.Testing.synth(chart)
    (found,) = (one for one in objects if one["kind"] == "PrometheusRule")
    return [rule for group in found["spec"]["groups"] for rule in group["rules"]]


def alerts() -> str:
    """Return the page of alerts and recording rules."""
    rules = {
        title: {one.get("alert", one.get("record")): one for one in _rules(*how)} for title, how in EXPORTERS.items()
    }
    known = {name: rule for each in rules.values() for name, rule in each.items()}

    def row(name: str, *cells: str) -> tuple[str, ...]:
        return name, *cells, *("yes" if name in each else "no" for each in rules.values())

    firing = [
        row(name, one["labels"]["severity"], one.get("for", "0s")) for name, one in known.items() if "alert" in one
    ]
    recorded = [row(name) for name, one in known.items() if "record" in one]
    parts = [
        "# Alerts and recording rules",
        "This page lists the rules that [`GpuAlerts`](observability.md#gpu_constructs.GpuAlerts) writes by default.\n"
        "The last columns show the exporters that have their metrics: `DcgmExporter`, and `NvidiaGpuExporter` with\n"
        "the backends `nvidia-smi` and `nvml`. An alert fires if its condition holds for the stated time.",
        "## Alerts",
        "Each alert has a section in the [runbook](../runbook.md).",
        table(
            ("alert", "severity", "for", *EXPORTERS),
            ((f"[`{name}`](../runbook.md#{name.lower()})", *cells) for name, *cells in firing),
        ),
        "## Recording rules",
        table(("series", *EXPORTERS), ((f"`{name}`", *cells) for name, *cells in recorded)),
    ]
    return "\n\n".join(parts) + "\n"


def labels() -> str:
    """Return the page of labels, annotations and taints."""
    parts = [
        "# Labels, annotations and taints",
        "This page lists the keys that the library writes, selects or reads. A key that ends in `*` stands for all\n"
        "keys that begin with the part before it.",
    ]
    for title, section in _keys()[0].items():
        rows = [(f"`{key}`", who, what) for key, (who, what) in section["keys"].items()]
        parts += [f"## {title}", section["text"], table(("key", "this library", "meaning"), rows)]
    return "\n\n".join(parts) + "\n"


@cache
def _keys() -> tuple[dict[str, Any], list[str]]:
    """Return the sections of the page, and the texts of the form of a key that are something else."""
    sections: dict[str, Any] = yaml.safe_load(LABELS.read_text(encoding="utf-8"))
    return sections, sections.pop("not listed").split()


def keys_in(texts: Iterable[str]) -> Iterator[str]:
    """Yield each word of the texts that has the form of a key with a domain."""
    for text in texts:
        yield from _FORM.findall(text)


def is_explained(key: str) -> bool:
    """Check whether the page explains a key, or the table states that it is something else."""
    sections, other = _keys()
    patterns = [re.escape(one).replace(r"\*", ".*") for each in sections.values() for one in each["keys"]]
    return any(re.fullmatch(one, key) for one in (*patterns, *other))


def _release(version: str, default: str) -> str:
    return f"{version} (default)" if version == default else version


def supported_releases() -> str:
    """Return the page of supported releases."""
    plugin = [
        (
            _release(one.version, versions.DEFAULT_DEVICE_PLUGIN),
            f"`{one.image}`",
            one.node_feature_discovery.version,
            one.source,
        )
        for one in versions.DEVICE_PLUGIN.values()
    ]
    operator = [
        (
            _release(one.version, versions.DEFAULT_GPU_OPERATOR),
            one.device_plugin.version,
            one.node_feature_discovery,
            one.source,
        )
        for one in versions.GPU_OPERATOR.values()
    ]
    sections = {
        "Device plugin and GPU Feature Discovery": table(
            ("release", "image", "Node Feature Discovery", "source"), plugin
        ),
        "Node Feature Discovery": _images(versions.NODE_FEATURE_DISCOVERY.values(), ""),
        "DCGM exporter": _images(versions.DCGM_EXPORTER.values(), versions.DEFAULT_DCGM_EXPORTER),
        "nvidia_gpu_exporter": _images(versions.NVIDIA_GPU_EXPORTER.values(), versions.DEFAULT_NVIDIA_GPU_EXPORTER),
        "GPU Operator": table(("release", "device plugin", "Node Feature Discovery", "source"), operator),
        "Talos": table(("release", "Kubernetes", "CDI", "source"), map(_talos, versions.rows("talos"))),
        "Kubernetes": f"The library supports Kubernetes {versions.KUBERNETES_RELEASES[0]} to "
        f"{versions.KUBERNETES_RELEASES[-1]}.",
        "Base images": table(
            ("image", "used by"),
            (
                (f"`{versions.BUSYBOX_IMAGE}`", "`ValidationBridge`"),
                (f"`{versions.DEBIAN_IMAGE}`", "`PowerLimit`"),
            ),
        ),
    }
    parts = [
        "# Supported releases",
        "This page lists the releases that the library knows, with the source of each fact. For another release, pass\n"
        "[`Unverified`](cluster.md#gpu_constructs.Unverified).",
        *(f"## {title}\n\n{text}" for title, text in sections.items()),
    ]
    return "\n\n".join(parts) + "\n"


def _talos(row: dict[str, Any]) -> tuple[str, ...]:
    version = _release(row["line"], DEFAULT_PLATFORM.version)
    return version, row["kubernetes"], "yes" if row["runtime_mode"] == "cdi" else "no", row["source"]


def _images(releases: Iterable[Any], default: str) -> str:
    rows = [(_release(one.version, default), f"`{one.image}`", one.source) for one in releases]
    return table(("release", "image", "source"), rows)


WRITTEN = {"objects": objects, "alerts": alerts, "labels": labels, "versions": supported_releases}
"""The pages, by the name of their file."""

if __name__ == "__main__":
    for name, content in WRITTEN.items():
        (PAGES / f"{name}.md").write_text(content(), encoding="utf-8")
