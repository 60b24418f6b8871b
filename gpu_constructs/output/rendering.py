"""Functions that render an app to plain data, with as few calls of JavaScript (cdk8s) as possible."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, cast

from cdk8s import ApiObject, App, Chart, DependencyGraph
from constructs import Construct, IConstruct, Node
from jsii.errors import JavaScriptError

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.records import dataclass, field, regex
from gpu_constructs.tree.manifest import Manifest

_RESOLVERS = 3
"""Number of resolvers (functions of cdk8s that convert values) that an App has by default."""

_PASSING = "gpu-constructs-validation"
"""ID of a temporary cdk8s chart, which synth removes before it writes the output files."""

_ERROR_NAMES = regex(r"\b[A-Za-z]*Error: ")


@dataclass(frozen=True)
class Rendered:
    """All objects of an app as plain data.

    Attributes:
        manifests: Objects of all cdk8s charts in one list.
        charts: Pairs: a cdk8s chart, and the indices of its objects in ``manifests``.
        paths: Construct paths of objects, by chart and then by API version, kind and name. ``path_of`` fills it.
    """

    manifests: list[dict[str, Any]]
    charts: list[tuple[Chart, range]]
    paths: dict[Chart, dict[tuple[str, str, str], list[str]]] = field(default_factory=dict)

    def path_of(self, index: int) -> str:
        """Return the construct path of the object at an index of ``manifests``, such as ``web/ollama``.

        The lookup is slow, so only error messages use it.
        """
        chart, own = next((chart, own) for chart, own in self.charts if index in own)
        identity = _identity(self.manifests[index])
        earlier = sum(_identity(self.manifests[i]) == identity for i in own if i < index)
        same = self._paths(chart).get(identity)
        path = same[min(earlier, len(same) - 1)] if same else chart.node.path
        return path.removesuffix("/Default").removesuffix("/Resource")

    def _paths(self, chart: Chart) -> dict[tuple[str, str, str], list[str]]:
        """Return the construct paths of the objects of a cdk8s chart, by API version, kind and name.

        The first call stores the paths of all objects of the chart, because one error often concerns many objects.
        """
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
    """Return the objects of all cdk8s charts as plain data.

    The transfer of manifests to and from cdk8s, which runs in JavaScript, is slow. So this function itself renders each
    chart that contains only ``Manifest`` objects. cdk8s renders the remaining charts, and validates the whole app.

    Args:
        charts: cdk8s charts of the app, in the order of the result.
        constructs: All constructs of the app, in tree order.
        order: Objects of each chart in the order of cdk8s. For a chart that is not a key, the function gets the order
            from cdk8s.
        asks_cdk8s: Whether cdk8s can change the metadata of objects. If True, the function calls cdk8s for each object.
    """
    held: dict[Chart, list[ApiObject]] = {}
    latest: list[ApiObject] = []  # An object that cdk8s refused, because it has no chart, can precede all charts.
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
    """Make cdk8s validate the app.

    cdk8s validates an app only when cdk8s renders a chart, so this function adds, renders and removes an empty chart.
    """
    chart = Chart(app, _PASSING)
    try:
        chart.to_json()
    finally:
        app.node.try_remove_child(_PASSING)


def order_without_dependencies(
    tree: Node, constructs: Sequence[IConstruct]
) -> Mapping[Chart, list[ApiObject | Chart]] | None:
    """Return the objects of each cdk8s chart in the order of cdk8s, by chart. Each list also contains the chart itself.

    Return None if dependencies or nested charts can change the order. The result is the argument ``order`` of
    ``render``, which is slower without it.

    Args:
        tree: Root node of the app.
        constructs: All constructs of the app, in tree order.
    """
    charts = [construct for construct in constructs if isinstance(construct, Chart)]
    if len([child for child in tree.children if isinstance(child, Chart)]) < len(charts):
        return None
    ordered = DependencyGraph(tree).topology()
    if len(ordered) != len(constructs) or any(a is not b for a, b in zip(ordered, constructs, strict=True)):
        return None
    below: dict[Chart, list[ApiObject | Chart]] = {}
    latest: list[ApiObject | Chart] = []
    for construct in constructs:
        if isinstance(construct, Chart):
            latest = below[construct] = []
        if isinstance(construct, ApiObject | Chart):
            latest.append(construct)
    return below


def _objects(chart: Chart, below: Sequence[ApiObject | Chart] | None, *, asks_cdk8s: bool) -> list[dict[str, Any]]:
    """Return the objects of a cdk8s chart as plain data, without cdk8s if all objects are ``Manifest`` objects.

    Args:
        chart: cdk8s chart.
        below: The chart and its objects, in the order of cdk8s. None: the function gets the order from cdk8s.
        asks_cdk8s: Whether cdk8s can change the metadata of objects, so that the function must call cdk8s.
    """
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
    """Check whether a resolver of the app, or the environment variable CDK8S_DISABLE_SORT, affects the rendering."""
    return len(app.resolvers) != _RESOLVERS or bool(os.environ.get("CDK8S_DISABLE_SORT"))


def unwrapped(error: RuntimeError) -> list[str]:
    """Return the messages of an error of cdk8s during rendering, without the texts that jsii adds.

    The cause can be an exception in Python code that cdk8s called. If the exception is a ``GpuConstructsError``, the
    result is its message. The function raises any other exception again, because its traceback shows the cause.
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
    """Convert a line of a cdk8s validation error from ``[path] problem`` to the message format of this library."""
    path, _, problem = line.removeprefix("[").partition("] ")
    return problem if not path and re.match(r"[\w./-]+: ", problem) else f"{path or 'app'}: {problem}"
