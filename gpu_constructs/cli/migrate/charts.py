"""The Helm charts whose values the command converts, and the constructs that take their place."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib import resources as files
from typing import Any

from packaging.version import InvalidVersion, Version

from gpu_constructs.catalog import versions
from gpu_constructs.catalog.platforms import Platform
from gpu_constructs.cli.exits import CommandError
from gpu_constructs.errors import did_you_mean
from gpu_constructs.records import dataclass


@dataclass(frozen=True)
class HelmChart:
    """A Helm chart whose values the command converts.

    Attributes:
        name: Name of the chart.
        title: Name of the program in the tables of releases, such as ``the device plugin``.
        table: Name of the table of the supported releases.
        default_version: Release that the construct installs by default.
        construct: Module and name of the construct that takes the place of the chart.
        options: Module and name of the function that converts Helm values to keywords of the construct.
        namespace: Namespace of the release by default.
        is_chart: Whether the construct is a cdk8s chart of its own.
        has_platform: Whether the construct has the keyword ``platform``.
    """

    name: str
    title: str
    table: str
    default_version: str
    construct: str
    options: str
    namespace: str = "nvidia-gpu-operator"
    is_chart: bool = False
    has_platform: bool = True

    @property
    def class_name(self) -> str:
        """Name of the construct."""
        return self.construct.rpartition(".")[2]

    def convert(self, values: Mapping[str, Any], *, platform: Platform, **installation: Any) -> dict[str, Any]:
        """Return the keywords of the construct for Helm values.

        Args:
            values: Values of the chart.
            platform: Platform of the cluster.
            installation: Release name, namespace, version and strictness.
        """
        module, _, function = self.options.rpartition(".")
        of_platform = {"platform": platform} if self.has_platform else {}
        convert: Callable[..., dict[str, Any]] = getattr(import_module(f"gpu_constructs.{module}"), function)
        return convert(values, **installation, **of_platform)

    def known(self, values: Mapping[str, Any]) -> int:
        """Return the number of values in a values file that the chart reads."""
        keys = self._keys()
        return sum(any(f"{path}.".startswith(f"{key}.") for key in keys) for path in _leaves("", values))

    def _keys(self) -> Sequence[str]:
        """Return the dotted keys that the chart reads."""
        if self.name == "gpu-operator":
            from gpu_constructs.operator.chart_keys import KEYS

            return list(KEYS)
        from gpu_constructs.migration.chart import chart

        is_nested = self.name == "node-feature-discovery"
        keys = chart(self.name, self.table if is_nested else "").keys
        return [path.removeprefix("nfd.") if is_nested else path for path in keys]

    def releases(self) -> list[str]:
        """Return the releases that the construct supports."""
        return [row["version"] for row in versions.rows(self.table)]

    def changes(self, since: str | None, until: str) -> list[str]:
        """Return what changes between two releases of the chart, one sentence for each change.

        Args:
            since: Release that runs now; None if it is not known.
            until: Release to install.

        Raises:
            CommandError: ``since`` is not a release.
        """
        if since is None:
            return []
        try:
            old, new = Version(since), Version(until)
        except InvalidVersion as error:
            raise CommandError(f"--from-version must be a release such as 0.17.1: {error}") from None
        rows = [row for row in versions.rows("changes") if row["of"] == self.title]
        changes = [f"Release {row['what']}." for row in rows if old < Version(row["since"]) <= new]
        before, after = ({**one} for one in (self._facts(old), self._facts(new)))
        facts = ((name, before.get(name), after.get(name)) for name in _FACTS if before)
        return changes + [_FACTS[name].format(old=one, new=other) for name, one, other in facts if one != other]

    def _facts(self, release: Version) -> Mapping[str, Any]:
        """Return what the library knows about a release of the chart. The mapping is empty for an unknown release."""
        return next((row for row in versions.rows(self.table) if Version(row["version"]) == release), {})

    def defaults(self) -> dict[str, Any]:
        """Return the default of each keyword of the construct, by keyword.

        The function reads the source of the construct and does not import it. It omits defaults that are not constants.
        """
        *folders, module, name = self.construct.split(".")
        source = files.files("gpu_constructs").joinpath(*folders, f"{module}.py").read_text(encoding="utf-8")
        (constructor,) = (
            member
            for node in ast.parse(source).body
            if isinstance(node, ast.ClassDef) and node.name == name
            for member in node.body
            if isinstance(member, ast.FunctionDef) and member.name == "__init__"
        )
        pairs = zip(constructor.args.kwonlyargs, constructor.args.kw_defaults, strict=True)
        return {keyword.arg: value.value for keyword, value in pairs if isinstance(value, ast.Constant)}


CHARTS: Mapping[str, HelmChart] = {
    one.name: one
    for one in (
        HelmChart(
            "nvidia-device-plugin",
            "the device plugin",
            "device_plugin",
            versions.DEFAULT_DEVICE_PLUGIN,
            "device_plugin.chart.DevicePluginChart",
            "device_plugin.chart_values.chart_options",
            is_chart=True,
        ),
        HelmChart(
            "gpu-operator",
            "the GPU Operator",
            "gpu_operator",
            versions.DEFAULT_GPU_OPERATOR,
            "operator.gpu_operator.GpuOperator",
            "operator.chart_values.chart_values",
        ),
        HelmChart(
            "dcgm-exporter",
            "the DCGM exporter",
            "dcgm_exporter",
            versions.DEFAULT_DCGM_EXPORTER,
            "observability.dcgm_exporter.DcgmExporter",
            "observability.dcgm_exporter_values.exporter_options",
        ),
        HelmChart(
            "nvidia-gpu-exporter",
            "nvidia_gpu_exporter",
            "nvidia_gpu_exporter",
            versions.DEFAULT_NVIDIA_GPU_EXPORTER,
            "observability.nvidia_gpu_exporter.NvidiaGpuExporter",
            "observability.nvidia_gpu_exporter_values.exporter_options",
            namespace="gpu-monitoring",
        ),
        HelmChart(
            "node-feature-discovery",
            "Node Feature Discovery",
            "node_feature_discovery",
            versions.DEFAULT_NODE_FEATURE_DISCOVERY,
            "feature_discovery.chart.NodeFeatureDiscoveryChart",
            "feature_discovery.chart_values.own_chart_options",
            namespace="node-feature-discovery",
            is_chart=True,
            has_platform=False,
        ),
    )
}
"""Charts by the name that Helm uses."""


_FACTS: Mapping[str, str] = {
    "node_feature_discovery": "Node Feature Discovery changes from {old} to {new}.",
    "device_plugin": "The device plugin changes from {old} to {new}.",
    "dcgm_exporter": "The DCGM exporter changes from {old} to {new}.",
    "image": "The image changes from {old} to {new}.",
    "chart_memory_limit": "The memory limit of the chart changes from {old!r} to {new!r}.",
    "uses_cdi_by_default": "CDI is on by default: {new}, before: {old}.",
    "names_mig_attributes": "Resource names contain the attributes of MIG devices, such as .me: {new}, before: {old}.",
}
"""Sentences about a move between two supported releases, by the column of the table of releases that differs."""


def chart_of(name: str | None, file: str, values: Mapping[str, Any]) -> str:
    """Return the name of the chart of some Helm values.

    Args:
        name: Name that the user passes; None to find the chart that reads the most keys of the values.
        file: Name of the values file. If several charts read the same number of keys, the chart counts whose name is a
            part of the name of the file.
        values: Helm values.

    Raises:
        CommandError: The name is unknown, or the keys fit no chart or several charts equally well.
    """
    if name is not None:
        if name not in CHARTS:
            allowed, hint = ", ".join(CHARTS), did_you_mean(name, CHARTS)
            raise CommandError(f"--chart must be one of {allowed}, got {name!r}{hint}. Pass one of them")
        return name
    fits = {chart: one.known(values) for chart, one in CHARTS.items()}
    best = [chart for chart, number in fits.items() if number == max(fits.values())]
    if not fits[best[0]]:
        raise CommandError("the values have no key of a chart that the command knows. Pass the chart with --chart")
    named = [chart for chart in best if chart in file]
    if len(named or best) > 1:
        raise CommandError(f"the values fit several charts: {', '.join(best)}. Pass one with --chart")
    return (named or best)[0]


def _leaves(prefix: str, values: Mapping[Any, Any]) -> Iterator[str]:
    """Yield the dotted path of each value that is not a mapping with content.

    Args:
        prefix: Start of all paths.
        values: Nested mappings.
    """
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(f"{prefix}{key}.", value)
        else:
            yield f"{prefix}{key}"
