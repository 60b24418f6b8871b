"""Objects of an app as plain data, rendered with as few calls across the bridge to JavaScript as can be."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from cdk8s import ApiObject, App, Chart, DependencyGraph
from constructs import Construct, IConstruct, Node
from jsii.errors import JavaScriptError

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.tree.manifest import Manifest

_RESOLVERS = 3
"""How many resolvers an App has of itself."""

_PASSING = "gpu-constructs-validation"
"""Id of a chart that is gone before anything is written."""

_ERROR_NAMES = re.compile(r"\b[A-Za-z]*Error: ")


@dataclass(frozen=True)
class Rendered:
    """All objects of an app, and which file each belongs to."""

    manifests: list[dict[str, Any]]
    charts: list[tuple[Chart, range]]
    paths: dict[Chart, dict[tuple[str, str, str], list[str]]] = field(default_factory=dict)

    def path_of(self, index: int) -> str:
        """Return the construct path of an object; only asked for when something is wrong."""
        chart, own = next((chart, own) for chart, own in self.charts if index in own)
        identity = _identity(self.manifests[index])
        earlier = sum(_identity(self.manifests[i]) == identity for i in own if i < index)
        same = self._paths(chart).get(identity)
        path = same[min(earlier, len(same) - 1)] if same else chart.node.path
        return path.removesuffix("/Default").removesuffix("/Resource")

    def _paths(self, chart: Chart) -> dict[tuple[str, str, str], list[str]]:
        """Ask each object of a chart once, for a mistake is often made in all of them."""
        if chart not in self.paths:
            paths = self.paths[chart] = defaultdict(list)
            for made in chart.node.find_all():
                if isinstance(made, ApiObject) and Chart.of(made) is chart:
                    paths[made.api_version, made.kind, made.name].append(made.node.path)
        return self.paths[chart]


def _identity(manifest: Mapping[str, Any]) -> tuple[str, str, str]:
    return manifest["apiVersion"], manifest["kind"], manifest.get("metadata", {}).get("name", "")


def render(
    charts: Sequence[Chart],
    constructs: Sequence[IConstruct],
    order: Mapping[Chart, Sequence[ApiObject | Chart]],
    *,
    asks_cdk8s: bool,
) -> Rendered:
    """Render every chart.

    For each ``Manifest`` cdk8s calls back, and then hands over what it was given. A chart of nothing else is rendered
    here, in the order of cdk8s, so that no body crosses the bridge only to come back. A chart that cdk8s renders goes
    first: that validates the whole app and settles the order of its objects.
    """
    held: dict[Chart, list[ApiObject]] = {}
    for construct in constructs:
        if isinstance(construct, Chart):
            latest = held[construct] = []
        elif isinstance(construct, ApiObject):
            latest.append(construct)
    by_cdk8s = [chart for chart in charts if not all(isinstance(made, Manifest) for made in held[chart])]
    if charts and not by_cdk8s:
        _validate(cast(Construct, constructs[0]))
    made = {chart: list(chart.to_json()) for chart in by_cdk8s}
    manifests: list[dict[str, Any]] = []
    spans: list[tuple[Chart, range]] = []
    for chart in charts:
        objects = made[chart] if chart in made else _objects(chart, order.get(chart), asks_cdk8s=asks_cdk8s)
        spans.append((chart, range(len(manifests), len(manifests) + len(objects))))
        manifests.extend(objects)
    return Rendered(manifests, spans)


def _validate(app: Construct) -> None:
    """Have cdk8s render an empty chart, since it validates an app in no other way."""
    chart = Chart(app, _PASSING)
    try:
        chart.to_json()
    finally:
        app.node.try_remove_child(_PASSING)


def order_without_dependencies(
    tree: Node, constructs: Sequence[IConstruct]
) -> Mapping[Chart, list[ApiObject | Chart]] | None:
    """Return what stands in each chart, in order, where no dependency changes that and no chart is in another.

    The graph of a whole app is asked for once, instead of one for each chart.
    """
    charts = [construct for construct in constructs if isinstance(construct, Chart)]
    if len([child for child in tree.children if isinstance(child, Chart)]) < len(charts):
        return None
    ordered = DependencyGraph(tree).topology()
    if len(ordered) != len(constructs) or any(a is not b for a, b in zip(ordered, constructs, strict=True)):
        return None
    below: dict[Chart, list[ApiObject | Chart]] = {}
    for construct in constructs:
        if isinstance(construct, Chart):
            latest = below[construct] = []
        if isinstance(construct, ApiObject | Chart):
            latest.append(construct)
    return below


def _objects(chart: Chart, below: Sequence[ApiObject | Chart] | None, *, asks_cdk8s: bool) -> list[dict[str, Any]]:
    """Render a chart here where it holds nothing but our objects and changes nothing in them."""
    if below is None:
        below = [made for made in DependencyGraph(chart.node).topology() if isinstance(made, ApiObject | Chart)]
    manifests = [made for made in below if isinstance(made, Manifest)]
    if type(chart).to_json is not Chart.to_json or len(manifests) + 1 < len(below):
        return list(chart.to_json())
    if asks_cdk8s:
        return [manifest.to_json() for manifest in manifests]
    namespace, labels = chart.namespace, chart.labels
    return [manifest.to_json_in(namespace, labels) for manifest in manifests]


def changes_metadata(app: App) -> bool:
    """Check whether cdk8s was told to do more with metadata than to lay it over the chart's."""
    return len(app.resolvers) != _RESOLVERS or bool(os.environ.get("CDK8S_DISABLE_SORT"))


def unwrapped(error: RuntimeError) -> list[str]:
    """Return what a failed rendering says, without the layers of the JavaScript bridge.

    An exception of Python code that jsii called back is raised again as it was: its own traceback is the
    one that helps.
    """
    if not isinstance(error.__cause__, JavaScriptError):
        raise error
    original = error.__context__
    while original is not None and isinstance(original.__cause__, JavaScriptError):
        original = original.__context__
    if isinstance(original, GpuConstructsError):
        return [str(original)]
    if original is not None:
        raise original from None
    heading, _, listed = str(error).partition("following errors:\n")
    if listed:
        return [_line_of_validation(line.strip()) for line in listed.splitlines() if line.strip()]
    return [_ERROR_NAMES.sub("", heading.partition("\n")[0]).strip()]


def _line_of_validation(line: str) -> str:
    """Return ``[path] problem`` as we write it; who validates a whole app names the construct itself."""
    path, _, problem = line.removeprefix("[").partition("] ")
    return problem if not path and re.match(r"[\w./-]+: ", problem) else f"{path or 'app'}: {problem}"
