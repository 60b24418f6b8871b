"""Functions that render an app and run all checks on the result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cdk8s import App
from constructs import IConstruct

from gpu_constructs.checks.cluster_checks import Finding, check
from gpu_constructs.cluster.gpu_rules import settings_of
from gpu_constructs.cluster.namespace import STATES_NO_NAMESPACE
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.facts.provided import providers_in
from gpu_constructs.output.rendering import Rendered, changes_metadata, order_without_dependencies, render, unwrapped
from gpu_constructs.tree.held_apps import left_to_synth
from gpu_constructs.tree.manifest import GRANTS

_NO_NAMESPACE = (
    "has no namespace, so its workloads go to 'default'. Pass namespace= to the Chart or to each workload, or "
    "namespace='default' if you want that"
)


class Examined(NamedTuple):
    """The result of all checks of an app: its objects, the problems and the warnings.

    Attributes:
        app: The cdk8s App.
        constructs: All constructs of the app, in tree order.
        rendered: Rendered objects of the app; None if a problem prevented the rendering.
        problems: Messages of the problems, each with a construct path.
        warnings: Messages of the warnings, each with a construct path.
    """

    app: App
    constructs: Sequence[IConstruct] = ()
    rendered: Rendered | None = None
    problems: Sequence[str] = ()
    warnings: Sequence[str] = ()


def examined(app: App) -> Examined:
    """Render an app, and run all checks.

    Return an ``Examined`` with the rendered objects, the problems and the warnings.
    """
    constructs = app.node.find_all()
    grants = getattr(app, GRANTS, None)
    if grants is not None:
        grants.follow_dependencies()
    try:
        return _examined(app, constructs)
    except GpuConstructsError as error:
        return Examined(app, problems=[str(error)])
    except RuntimeError as error:
        return Examined(app, problems=unwrapped(error))


def _examined(app: App, constructs: Sequence[IConstruct]) -> Examined:
    order = order_without_dependencies(app.node, constructs)
    # `app.charts` sorts the charts by their dependencies, and fails if the dependencies have a cycle.
    charts = app.charts if order is None else list(order)
    with left_to_synth(app):
        # Rendering a chart validates the whole app. An app without charts needs its own validation.
        problems = [] if charts else list(_problems_of(constructs))
        if problems:
            return Examined(app, problems=problems)
        rendered = render(charts, constructs, order or {}, asks_cdk8s=changes_metadata(app))
    providers, provided = providers_in(constructs)
    found = [("", finding) for finding in check(rendered.manifests, provided, settings_of(app))]
    found += [
        (chart.node.path, Finding(None, _NO_NAMESPACE, is_warning=True))
        for chart in charts
        if getattr(chart, STATES_NO_NAMESPACE, False)
    ]
    # Constructs such as a capacity plan examine the app only if all its objects are valid.
    if all(finding.is_warning for _, finding in found):
        for construct in constructs:
            if hasattr(construct, "examine"):
                found += [(construct.node.path, one) for one in construct.examine(rendered.manifests, provided)]

    def provider_path(index: int) -> str:
        return providers[index].node.path

    sentences: dict[bool, list[str]] = {True: [], False: []}
    for finder, finding in found:
        sentences[finding.is_warning].append(finding.sentence(rendered.path_of, provider_path, finder))
    return Examined(app, constructs, rendered, sentences[False], sentences[True])


def _problems_of(constructs: Sequence[IConstruct]) -> Iterator[str]:
    for construct in constructs:
        node = construct.node
        for problem in node.validate():
            yield f"{node.path or 'app'}: {problem}"
