"""What the charts have in common: their names, and what of their objects is told in other words.

A port by name is told by its number, a duration in seconds, relabelings with the action that they have in any case.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar

from cdk8s import App, Chart, Testing
from constructs import Construct

from gpu_constructs.errors import GpuConstructsWarning

Manifest = dict[str, Any]
Step = Mapping[str, Any]

CONSTRUCT_ID = "exporter"


def merged(defaults: Any, given: Any) -> Any:
    """Lay values over defaults as Helm does: maps are merged, null deletes, everything else replaces."""
    if not isinstance(defaults, Mapping) or not isinstance(given, Mapping):
        return copy.deepcopy(given)
    result = {key: value for key, value in copy.deepcopy(dict(defaults)).items() if given.get(key, value) is not None}
    for key, value in given.items():
        if isinstance(value, Mapping):
            result[key] = merged(defaults.get(key), value)
        elif value is not None:
            result[key] = copy.deepcopy(value)
    return result


class ChartRelease:
    """One installation of a chart: its values, and the names that follow from them.

    Attributes:
        chart: Name of the chart.
        versions: Releases of the chart whose values this library reads.
        defaults: The values.yaml of each release, as far as the proof reads values.
    """

    chart: ClassVar[str]
    versions: ClassVar[Collection[str]]
    defaults: ClassVar[Mapping[str, Manifest]]

    def __init__(self, *, release: str, namespace: str, version: str, values: Mapping[str, Any]) -> None:
        self.release = release
        self.release_namespace = namespace
        self.version = version
        self.given = values
        self.values = merged(self.defaults[version], values)

    def value(self, path: str, default: Any = None) -> Any:
        """Return a value by its path, over the chart's defaults."""
        return _at(self.values, path, default)

    def given_value(self, path: str, default: Any = None) -> Any:
        """Return a value by its path as the user wrote it; null counts as none."""
        return _at(self.given, path, default)

    def facts(self) -> dict[str, str]:
        """What the rows of the deviations name in braces."""
        return {"version": self.version, "release": self.release, "namespace": getattr(self, "namespace", "")}

    @property
    def chart_name(self) -> str:
        return cut(self.value("nameOverride") or self.chart)

    @property
    def fullname(self) -> str:
        return cut(self.value("fullnameOverride") or self.name_with(self.value("nameOverride") or self.chart))

    def name_with(self, name: str) -> str:
        """Return the name of the release with that of the chart behind it, where it is not in it."""
        return self.release if name in self.release else f"{self.release}-{name}"

    def as_read(self, warned: Sequence[str]) -> ChartRelease | None:
        """Return the release with switches as the templates take them, or None where that changes nothing."""
        return None

    def told(self, manifests: Sequence[Manifest], *, is_ours: bool) -> list[Manifest]:
        """Return the objects of one side with what they mean in the place of how they say it."""
        return list(manifests)

    def made_by(
        self, make: Callable[..., Any], scope: Construct, id: str, *, version: str
    ) -> tuple[list[Manifest], list[str]]:
        """Return the objects that a construct makes of the values, and what it warned of."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", GpuConstructsWarning)
            made = make(
                scope,
                id,
                copy.deepcopy(dict(self.given)),
                release_name=self.release,
                namespace=self.release_namespace,
                version=version,
                strict=False,
            )
            manifests = Testing.synth(Chart.of(made))
        return manifests, [str(warning.message) for warning in caught]


class ExporterRelease(ChartRelease):
    """One installation of an exporter's chart, which has no configurations."""

    configs: Mapping[str, str] = {}
    default_config = our_default = external_config_map = None
    uses_config_manager = False

    def made_in_a_chart(self, make: Callable[..., Any], *, version: str) -> tuple[list[Manifest], list[str]]:
        """Return the objects that a construct makes of the values in a chart, and what it warned of."""
        return self.made_by(make, Chart(App(), self.chart), CONSTRUCT_ID, version=version)


def cut(name: str) -> str:
    """Return a name as short as a label may be."""
    return name[:63].removesuffix("-")


def _at(values: Any, path: str, default: Any) -> Any:
    for word in path.split("."):
        if not isinstance(values, Mapping) or values.get(word) is None:
            return default
        values = values[word]
    return values


def tell_ports(manifest: Manifest, main: Manifest, ports: dict[str, Any]) -> None:
    """Write the ports of probes as numbers, and drop defaults of Kubernetes from the update strategy.

    Args:
        manifest: A DaemonSet.
        main: Its container.
        ports: Gets the numbers of the container's ports by name.
    """
    ports.update({str(port.get("name")): port.get("containerPort") for port in main.get("ports") or ()})
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        for way in ("httpGet", "tcpSocket"):
            question = (main.get(probe) or {}).get(way)
            if question:
                question["port"] = ports.get(str(question.get("port")), question.get("port"))
    strategy = (manifest["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
    # Kubernetes' own.
    for member, default in (("maxUnavailable", 1), ("maxSurge", 0)):
        if strategy.get(member) == default:
            del strategy[member]


def tell_service(manifest: Manifest, ports: Mapping[str, Any]) -> None:
    """Write the target ports of a Service as numbers, and drop its defaults."""
    spec = manifest["spec"]
    if spec.get("internalTrafficPolicy") == "Cluster":
        del spec["internalTrafficPolicy"]
    for port in spec.get("ports") or ():
        target = port.get("targetPort")
        port["targetPort"] = ports.get(str(target), target)


def tell_monitor(manifest: Manifest, own_steps: Sequence[Sequence[Step]]) -> None:
    """Write durations in seconds, and separate our relabeling steps from those of the user.

    Args:
        manifest: A ServiceMonitor or a PodMonitor.
        own_steps: What ours may begin with; nothing for the chart's.
    """
    for endpoint in manifest["spec"].get("endpoints") or manifest["spec"].get("podMetricsEndpoints") or ():
        for key in ("interval", "scrapeTimeout"):
            if key in endpoint:
                endpoint[key] = seconds(str(endpoint[key]))
        for key in ("relabelings", "metricRelabelings"):
            if not endpoint.get(key):
                endpoint.pop(key, None)
        steps = steps_told(endpoint.get("relabelings"))
        own = next((known for known in own_steps if steps[: len(known)] == list(known)), ())
        if own:
            endpoint["own relabelings"] = {str(place): said_of(step) for place, step in enumerate(own)}
        endpoint["relabelings"] = steps[len(own) :]
        if not endpoint["relabelings"]:
            del endpoint["relabelings"]
        if "metricRelabelings" in endpoint:
            endpoint["metricRelabelings"] = steps_told(endpoint["metricRelabelings"])


def steps_told(steps: Sequence[Step] | None) -> list[dict[str, Any]]:
    """Return relabelings with their action, which the operator takes in any case."""
    return [{**step, "action": str(step.get("action") or "replace").lower()} for step in steps or ()]


def said_of(step: Step) -> str:
    """Return a step in one line."""
    return " ".join(f"{key}={','.join(v) if isinstance(v, list) else v}" for key, v in sorted(step.items()))


def seconds(text: str) -> int | str:
    """Return a duration of Prometheus as whole seconds; text where it is none."""
    units = {"h": 3600, "m": 60, "s": 1}
    total, number = 0, ""
    for letter in text:
        if letter.isdigit():
            number += letter
        elif letter in units and number:
            total, number = total + int(number) * units[letter], ""
        else:
            return text
    return text if number or not text else total
