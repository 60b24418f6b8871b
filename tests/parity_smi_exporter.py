"""What the chart of nvidia_gpu_exporter does, so that a render can be read, and both sides told in the same words.

The program's flags become settings, a dashboard no more than that it is one, a port by name its number: what is left
differs in truth.

Source: utkuozdemir/nvidia_gpu_exporter@v1.14.0: charts/nvidia-gpu-exporter, internal/app/app.go.
"""

import copy
import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from gpu_constructs.observability.nvidia_gpu_exporter import NvidiaGpuExporter
from parity_cases import facts
from parity_told import ExporterRelease, Manifest, Step, tell_monitor, tell_ports, tell_service

CHART = "nvidia-gpu-exporter"
VERSION = "2.14.0"
VERSIONS = (VERSION,)
PROGRAM = "1.14.0"
"""The release of the program that the chart brings."""
MAIN = "nvidia-gpu-exporter"
A_DASHBOARD = "(a dashboard)"

DEFAULTS: Mapping[str, Manifest] = facts(CHART)["values"]
"""The chart's values.yaml, as far as the proof reads values."""

# What the program does where nothing is said; collect.backend is the image's.
_FLAGS: Mapping[str, str] = facts(CHART)["flags"]
_SWITCHES = ("collect.compute-apps", "collect.compute-apps-mig", "collect.pcie-throughput")
_DURATIONS = ("collect.interval", "collect.timeout")
_LISTS = ("query-field-names", "query-field-names-exclude")
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|h|m|s)")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z")
_SCALE = {"ms": Decimal("0.001"), "s": Decimal(1), "m": Decimal(60), "h": Decimal(3600)}


class SmiRelease(ExporterRelease):
    """One installation of the chart: its values, and the names that follow from them."""

    chart = CHART
    versions = VERSIONS
    defaults = DEFAULTS

    @property
    def namespace(self) -> str:
        return self.release_namespace

    @property
    def our_fullname(self) -> str:
        """The chart's, as long as it is a DNS label when room is left behind it."""
        override, name = self.value("fullnameOverride"), self.value("nameOverride")
        candidates = [override, name and self.name_with(name), self.name_with(CHART)]
        cut = [str(one)[: 63 - len("-web-config")].rstrip("-.") for one in candidates if one]
        return next((one for one in cut if _LABEL.match(one)), cut[-1])

    @property
    def account(self) -> str:
        """The account of the chart's pods."""
        is_made = self.value("serviceAccount.create")
        return self.value("serviceAccount.name") or (self.fullname if is_made else "default")

    @property
    def has_alerts(self) -> bool:
        """Whether the chart makes a PrometheusRule."""
        section = self.value("prometheusRule", {})
        is_any = any(isinstance(one, Mapping) and one.get("enabled") for one in section.values())
        return bool(section.get("enabled") and is_any)

    def selector(self) -> dict[str, str]:
        """What the chart's pods are found by."""
        return {"app.kubernetes.io/name": self.chart_name, "app.kubernetes.io/instance": self.release}

    def labels(self) -> dict[str, str]:
        """The labels of the chart's objects."""
        return {
            "helm.sh/chart": f"{CHART}-{self.version}",
            **self.selector(),
            "app.kubernetes.io/version": PROGRAM,
            "app.kubernetes.io/managed-by": "Helm",
        }

    def chart_roles(self) -> dict[tuple[str, str], list[str]]:
        """Return what an object of the chart is, by kind and name."""
        full = self.fullname
        return {
            ("ServiceAccount", self.account): ["account"],
            ("Pod", f"{full}-test-connection"): ["test"],
            ("PrometheusRule", full): ["alerts"],
            ("ConfigMap", f"{full}-dashboard"): ["dashboard"],
            **{(kind, full): ["exporter"] for kind in _OF_EXPORTER},
        }

    def our_roles(self) -> dict[tuple[str, str], list[str]]:
        """Return what an object of ours is, by kind and name."""
        full = self.our_fullname
        return {
            ("ConfigMap", f"{full}-dashboard"): ["dashboard"],
            **{(kind, full): ["exporter"] for kind in _OF_EXPORTER},
        }

    def told(self, manifests: Sequence[Manifest], *, is_ours: bool) -> list[Manifest]:
        """Return the objects of one side with what they mean in the place of how they say it."""
        return told(manifests, self, is_ours=is_ours)

    def synthesize(self) -> tuple[list[Manifest], list[str]]:
        """Return the objects this library makes of the values, and what it warned of."""
        return self.made_in_a_chart(NvidiaGpuExporter.from_helm_values, version=PROGRAM)


_OF_EXPORTER = ("DaemonSet", "Service", "ServiceMonitor", "PodMonitor")


def told(manifests: Sequence[Manifest], release: SmiRelease, *, is_ours: bool) -> list[Manifest]:
    """Return the objects of one side with what they mean in the place of how they say it."""
    made = copy.deepcopy(list(manifests))
    ports: dict[str, Any] = {}
    for manifest in made:
        if manifest.get("kind") == "DaemonSet":
            _tell_program(manifest, ports)
    for manifest in made:
        match manifest.get("kind"):
            case "Service":
                tell_service(manifest, ports)
                # The API server's own.
                manifest["spec"]["type"] = manifest["spec"].get("type") or "ClusterIP"
            case "ServiceMonitor" | "PodMonitor" as kind:
                tell_monitor(manifest, [_own_steps(kind, release)] if is_ours else ())
            case "ConfigMap":
                manifest["data"] = {key: _shown(text) for key, text in (manifest.get("data") or {}).items()}
    return made


def _own_steps(kind: str, release: SmiRelease) -> list[Step]:
    node = {"action": "replace", "sourceLabels": ["__meta_kubernetes_pod_node_name"], "targetLabel": "node"}
    job = {"action": "replace", "targetLabel": "job", "replacement": release.our_fullname}
    return [node, job] if kind == "PodMonitor" else [node]


def _shown(text: str) -> str:
    try:
        document = json.loads(text)
    except json.JSONDecodeError:
        return text
    return A_DASHBOARD if isinstance(document, dict) and document.get("panels") else text


def _tell_program(manifest: Manifest, ports: dict[str, Any]) -> None:
    main = next(
        (c for c in manifest["spec"]["template"]["spec"].get("containers") or () if c.get("name") == MAIN), None
    )
    if main is None:
        return
    tell_ports(manifest, main, ports)
    # Of variables with one name the last counts.
    main["env"] = list({variable.get("name"): variable for variable in main.get("env") or ()}.values())
    strategy = manifest["spec"].get("updateStrategy") or {}
    if not strategy.get("rollingUpdate"):
        strategy.pop("rollingUpdate", None)
    manifest["settings"], main["args"] = _settings(main)


def _settings(main: Manifest) -> tuple[dict[str, str], list[str]]:
    """Return what the program runs with, by flag, with a dash for each dot; and the words that are no flag."""
    settings = {**_FLAGS, **dict.fromkeys(_SWITCHES, "false")}
    if str(main.get("image")).endswith("-nvml"):
        settings["collect.backend"] = "nvml"
    said: dict[str, str] = {}
    rest: list[str] = []
    words = ["" if word is None else str(word) for word in main.get("args") or ()]
    while words:
        word = words.pop(0)
        if not word.startswith("--"):
            rest.append(word)
            continue
        flag, is_joined, value = word.removeprefix("--").partition("=")
        if not is_joined and flag.removeprefix("no-") in _SWITCHES:
            flag, value = flag.removeprefix("no-"), "false" if flag.startswith("no-") else "true"
        elif not is_joined and words and not words[0].startswith("--"):
            value = words.pop(0)
        # With a flag given twice the program ends.
        said[flag] = f"{said[flag]} and {value}" if flag in said else value
    settings.update(said)
    for flag in _DURATIONS:
        settings[flag] = duration(settings[flag])
    for flag in _LISTS:
        settings[flag] = ",".join(dict.fromkeys(name.strip() for name in settings[flag].split(",") if name.strip()))
    return {flag.replace(".", "-"): value for flag, value in settings.items()}, rest


def duration(text: str) -> str:
    """Return a duration of Go in seconds; text where it is none."""
    if text == "0":
        return "0s"
    if not text or _PART.sub("", text):
        return text
    return f"{sum(Decimal(number) * _SCALE[unit] for number, unit in _PART.findall(text)).normalize():f}s"
