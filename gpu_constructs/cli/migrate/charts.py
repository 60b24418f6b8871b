"""The Helm charts whose values the command ``migrate`` converts, and the constructs that replace these charts."""

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
        name: Name of the Helm chart, such as ``nvidia-device-plugin``.
        title: Name of the software in the table ``changes`` of ``releases.json``, such as ``the device plugin``.
        table: Name of the table of supported releases in ``releases.json``, such as ``device_plugin``.
        default_version: Release of the software that the construct installs by default.
        construct: Module and name of the construct that replaces the Helm chart, such as
            ``operator.gpu_operator.GpuOperator``.
        options: Module and name of the function that converts Helm values into keyword arguments of the construct,
            such as ``operator.chart_values.chart_values``.
        namespace: Default namespace of the Helm release.
        is_chart: Whether the construct is a subclass of the cdk8s ``Chart``.
        has_platform: Whether the construct has the keyword argument ``platform``.
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
        """Name of the class of the construct, such as ``DevicePluginChart``."""
        return self.construct.rpartition(".")[2]

    def convert(self, values: Mapping[str, Any], *, platform: Platform, **installation: Any) -> dict[str, Any]:
        """Convert Helm values into keyword arguments of the construct, and return them by name.

        Args:
            values: Values of the Helm chart.
            platform: Platform of the cluster.
            installation: Keyword arguments ``release_name``, ``namespace``, ``version`` and ``strict``.
        """
        module, _, function = self.options.rpartition(".")
        of_platform = {"platform": platform} if self.has_platform else {}
        convert: Callable[..., dict[str, Any]] = getattr(import_module(f"gpu_constructs.{module}"), function)
        return convert(values, **installation, **of_platform)

    def known(self, values: Mapping[str, Any]) -> int:
        """Return how many of the given Helm values the Helm chart reads."""
        keys = self._keys()
        return sum(any(f"{path}.".startswith(f"{key}.") for key in keys) for path in _leaves("", values))

    def _keys(self) -> Sequence[str]:
        """Return the keys of values that the Helm chart reads, with dots, such as ``image.tag``."""
        if self.name == "gpu-operator":
            from gpu_constructs.operator.chart_keys import KEYS

            return list(KEYS)
        from gpu_constructs.migration.chart import chart

        is_nested = self.name == "node-feature-discovery"
        keys = chart(self.name, self.table if is_nested else "").keys
        return [path.removeprefix("nfd.") if is_nested else path for path in keys]

    def releases(self) -> list[str]:
        """Return the releases of the software, such as ``0.17.1``, that the construct supports."""
        return [row["version"] for row in versions.rows(self.table)]

    def changes(self, since: str | None, until: str) -> list[str]:
        """Return what changes between two releases of the Helm chart, one sentence for each change.

        Args:
            since: Release that the cluster runs now. If None, the result is empty.
            until: Release to install.

        Raises:
            CommandError: ``since`` is not a release number.
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
        """Return the row of a release in the table of supported releases. It is empty for an unsupported release."""
        return next((row for row in versions.rows(self.table) if Version(row["version"]) == release), {})

    def defaults(self) -> dict[str, Any]:
        """Return the default values of the keyword-only parameters of the construct, by name of the parameter.

        For example, the value for ``namespace`` can be ``nvidia-gpu-operator``. The function parses the source file of
        the construct, because an import is slow. It omits defaults that are not constants, such as a call.
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
"""Helm charts by name."""


_FACTS: Mapping[str, str] = {
    "node_feature_discovery": "Node Feature Discovery changes from {old} to {new}.",
    "device_plugin": "The device plugin changes from {old} to {new}.",
    "dcgm_exporter": "The DCGM exporter changes from {old} to {new}.",
    "image": "The image changes from {old} to {new}.",
    "chart_memory_limit": "The memory limit of the chart changes from {old!r} to {new!r}.",
    "uses_cdi_by_default": "CDI is on by default: {new}, before: {old}.",
    "names_mig_attributes": "Resource names contain the attributes of MIG devices, such as .me: {new}, before: {old}.",
}
"""Sentences about the difference between two releases, by the column of the table of releases that differs."""


def chart_of(name: str | None, file: str, values: Mapping[str, Any]) -> str:
    """Return the name of the Helm chart to which values belong.

    Args:
        name: Name that the user passes. None: the result is the Helm chart that reads the most keys of the values.
        file: Path of the values file. If several Helm charts read the same number of keys, the result is the chart
            whose name occurs in this path.
        values: Helm values.

    Raises:
        CommandError: The name is unknown, no Helm chart reads any of the keys, or several Helm charts fit equally.
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
    """Yield the path with dots, such as ``image.tag``, of each value that is not a mapping or is an empty mapping.

    Args:
        prefix: Start of all paths, such as ``image.``; empty for none.
        values: Helm values as nested mappings.
    """
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(f"{prefix}{key}.", value)
        else:
            yield f"{prefix}{key}"
