"""Helm releases that the objects of an app create: HelmReleases of Flux and Applications of Argo CD."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import yaml

from gpu_constructs.facts.readable import Manifest, at, kind_of, mapping, name_of, namespace_of
from gpu_constructs.kube.pod_specs import Path
from gpu_constructs.records import dataclass

Named = Callable[[str, str, object], Manifest | None]
"""Function that returns the object with a kind, namespace and name, or None if the app does not have this object."""

HELM_RELEASE = ("helm.toolkit.fluxcd.io", "HelmRelease")
APPLICATION = ("argoproj.io", "Application")
_UNREAD = ("valueFiles", "parameters", "fileParameters")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class Release:
    """A Helm release that an object of the app creates: a Helm chart, and the values that the object sets.

    Attributes:
        chart: Name of the Helm chart, without its repository.
        name: Name of the Helm release.
        namespace: Namespace of the Helm release.
        place: Path of the field in the manifest that contains the values, such as ``("spec", "values")``.
        values: Values of the Helm release, without the defaults of the Helm chart.
        unread: Path of the field that refers to values outside of the manifest, such as ``spec.valuesFrom``. Empty if
            no field does.
        problem: Reason why the values are not readable. Empty if the values are readable.
    """

    chart: str
    name: str
    namespace: str
    place: Path
    values: Mapping[str, Any]
    unread: str
    problem: str


def releases(manifest: Manifest, named: Named) -> Iterator[Release]:
    """Yield the Helm releases that an object creates: one for a HelmRelease, and one for each source of an Application.

    Args:
        manifest: Object of the app.
        named: Function that returns an object of the app by kind, namespace and name, such as an OCIRepository.

    Sources:
        fluxcd/helm-controller@v1.3.0:api/v2/helmrelease_types.go: GetReleaseName, GetReleaseNamespace.

        argoproj/argo-cd@v3.5.1:pkg/apis/application/v1alpha1/types.go: ``valuesObject`` replaces ``values``.
    """
    spec = at(manifest, "spec")
    if kind_of(manifest) == HELM_RELEASE:
        target = spec.get("targetNamespace")
        name = spec.get("releaseName") or "-".join(str(one) for one in (target, name_of(manifest)) if one)
        chart, home = chart_of_flux(manifest, named), str(target or namespace_of(manifest))
        yield _release((chart, str(name), home), ("spec",), spec, ("valuesFrom",), "values")
    elif kind_of(manifest) == APPLICATION:
        many = spec.get("sources")
        for index, source in enumerate(many if isinstance(many, list) else [spec.get("source")]):
            place: Path = ("spec", "sources", index) if isinstance(many, list) else ("spec", "source")
            if mapping(source).get("chart") or mapping(source).get("helm"):
                yield _release_of_argo_cd(manifest, source, place)


def _release_of_argo_cd(manifest: Manifest, source: Mapping[str, Any], place: Path) -> Release:
    helm = mapping(source.get("helm"))
    key = "valuesObject" if helm.get("valuesObject") is not None or not helm.get("values") else "values"
    chart = _last_step(source.get("chart") or source.get("path") or source.get("repoURL"))
    home = str(at(manifest, "spec.destination").get("namespace") or "default")
    name = str(helm.get("releaseName") or name_of(manifest))
    return _release((chart, name, home), (*place, "helm"), helm, _UNREAD, key)


def _release(
    names: tuple[str, str, str], place: Path, holder: Mapping[str, Any], further: tuple[str, ...], key: str
) -> Release:
    """Return a Helm release, with its values from an object of the app.

    Args:
        names: Name of the Helm chart, and name and namespace of the Helm release.
        place: Path of ``holder`` in the manifest of the object, such as ``("spec", "source", "helm")``.
        holder: Part of the manifest that contains the values.
        further: Names of the fields in ``holder`` that refer to values outside of the manifest, such as ``valuesFrom``.
        key: Name of the field in ``holder`` that contains the values.
    """
    shown = ".".join(map(str, place))
    unread = next((f"{shown}.{one}" for one in further if holder.get(one)), "")
    given, found = holder.get(key), "text that YAML readers reject"
    try:
        read = yaml.load(given, _LOADER) if isinstance(given, str) and further == _UNREAD else given
        found = type(read).__name__
    except (yaml.YAMLError, ValueError) as error:
        mark, read = getattr(error, "problem_mark", None), ""
        found += "" if mark is None else f" in line {mark.line + 1}"
    is_mapping = read is None or isinstance(read, Mapping)
    problem = "" if is_mapping else f"{shown}.{key} must be a YAML mapping, got {found}. Correct the values"
    return Release(*names, (*place, key), mapping(read), unread, problem)


def chart_of_flux(manifest: Manifest, named: Named) -> str:
    """Return the name of the Helm chart of a HelmRelease.

    The name is in the field ``spec.chart``, or in the OCIRepository or HelmChart to which ``spec.chartRef`` refers.

    Args:
        manifest: HelmRelease.
        named: Function that returns an object of the app by kind, namespace and name.
    """
    spec = at(manifest, "spec")
    reference = mapping(spec.get("chartRef"))
    kind, home = str(reference.get("kind")), str(reference.get("namespace") or namespace_of(manifest))
    source = at(named(kind, home, reference.get("name")), "spec") if reference else {}
    stated = at(manifest, "spec.chart.spec").get("chart")
    return _last_step(source.get("url" if kind == "OCIRepository" else "chart") or stated or reference.get("name"))


def _last_step(path: object) -> str:
    return str(path or "").rstrip("/").rpartition("/")[2]
