"""Functions that add GPUs to the workloads of a Helm release, and write the changes into its Helm values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.facts.charts import EMPTY, Field, Workload, known_charts, pod_path, put, workloads
from gpu_constructs.facts.helm_releases import APPLICATION, HELM_RELEASE, Release, releases
from gpu_constructs.facts.readable import kind_of, mapping
from gpu_constructs.kube import plain_data
from gpu_constructs.kube.placement import label_is, with_node_alternatives
from gpu_constructs.kube.pod_specs import containers
from gpu_constructs.kube.yaml_text import yaml_text

Change = Callable[[dict[str, Any]], Mapping[str, Any]]
"""Function that returns a changed copy of a workload."""

_ADDED = frozenset({"env", "tolerations"})


def is_release(manifest: Mapping[str, Any]) -> bool:
    """Check whether an object is a HelmRelease of Flux or an Application of Argo CD."""
    return kind_of(manifest) in (HELM_RELEASE, APPLICATION)


def counted(manifest: Mapping[str, Any], chart: str | None) -> list[tuple[Release, Workload]]:
    """Return the workloads of the Helm releases that an object creates, as pairs of a release and one of its workloads.

    The result omits workloads that the Helm values disable. It also omits Helm releases of charts that the library does
    not know.

    Args:
        manifest: HelmRelease of Flux or Application of Argo CD.
        chart: Name of the Helm chart, if a HelmRelease refers to the chart only through another object of the app, such
            as an OCIRepository. Otherwise None.
    """
    source = None if chart is None else {"spec": {"url": chart, "chart": chart}}
    found = releases(manifest, lambda *_: source)
    return [(release, one) for release in found for one in workloads(release, {}) if one.is_counted]


def gpu_workloads(
    manifest: Mapping[str, Any], chart: str | None, container: str | None
) -> list[tuple[Release, Workload]]:
    """Return those workloads of Helm releases that get GPUs, as pairs of a Helm release and one of its workloads.

    Args:
        manifest: HelmRelease of Flux or Application of Argo CD.
        chart: Name of the Helm chart, if a HelmRelease refers to the chart only through another object of the app, such
            as an OCIRepository. Otherwise None.
        container: Name of the container that gets the GPUs. None: the first container of a workload.

    Raises:
        GpuConstructsError: The library does not know the chart, or cannot determine which workload gets the GPUs.
    """
    each = counted(manifest, chart)
    if not each:
        raise GpuConstructsError(
            f"GpuAccess knows only the Helm values of the charts {', '.join(known_charts())}, and of charts with the "
            "values of app-template. For another chart, include the output of helm template, and apply GpuAccess to "
            "the workload"
        )
    held = [_names(one) for _, one in each]
    found = [pair for pair, names in zip(each, held, strict=True) if container is None or container in names]
    main = [pair for pair in found if pair[1].row.get("main")]
    if len(found) == 1 or main:
        return main or found
    choices = ", ".join(sorted(set(chain.from_iterable(held))))
    raise GpuConstructsError(
        f"container must be the name of a container in one workload of the chart, got {container!r}. The containers "
        f"are {choices}"
    )


def _names(workload: Workload) -> list[str]:
    return [str(one.get("name")) for one in containers(workload.pod)]


def with_workloads(
    manifest: Mapping[str, Any], chart: str | None, container: str | None, change: Change
) -> dict[str, Any]:
    """Return a copy of a HelmRelease or an Application whose Helm values change the workloads that get GPUs.

    Args:
        manifest: HelmRelease of Flux or Application of Argo CD.
        chart: Name of the Helm chart, if a HelmRelease refers to the chart only through another object of the app, such
            as an OCIRepository. Otherwise None.
        container: Name of the container that gets the GPUs. None: the first container of a workload.
        change: Function that accepts the manifest of a workload, and returns the manifest with the changes.

    Raises:
        GpuConstructsError: ``gpu_workloads`` or ``change`` raises the error.
    """
    made: Any = manifest
    for number in range(len(gpu_workloads(manifest, chart, container))):
        # Workloads can share values, so a later workload already has some changes of an earlier one.
        release, workload = gpu_workloads(made, chart, container)[number]
        values = _with_changes(release.values, workload, change(dict(workload.manifest)))
        is_text = release.place[-1] == "values" and "helm" in release.place
        if values != release.values:
            made = put(made, release.place, yaml_text(values) if is_text else values)
    return dict(made)


def in_fields_of_chart(workload: Workload, made: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the manifest of a workload, changed so that its Helm chart can express the node selection.

    If the chart has no key for the node selector, an affinity with the same effect replaces the node selector.

    Args:
        workload: Workload of the Helm release before ``GpuAccess`` changes it.
        made: Manifest of the workload with the changes of ``GpuAccess``.
    """
    pod = pod_path(workload.manifest["kind"])
    selected = plain_data.at(made, (*pod, "nodeSelector"))
    if not selected or "nodeSelector" in workload.row["pod"]:
        return made
    terms = [[label_is(label, value) for label, value in selected.items()]]
    affinity = with_node_alternatives(plain_data.at(made, (*pod, "affinity")), terms)
    rest = {key: value for key, value in plain_data.at(made, pod).items() if key != "nodeSelector"}
    return mapping(put(made, pod, {**rest, "affinity": affinity}))


def _with_changes(values: Mapping[str, Any], workload: Workload, made: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a copy of Helm values with which the chart creates the changed manifest of a workload.

    If the chart reads a field from several Helm keys, the function changes the first of these keys.

    Args:
        values: Helm values.
        workload: Workload of the Helm release before ``GpuAccess`` changes it.
        made: Manifest of the workload with the changes of ``GpuAccess``.
    """
    made = in_fields_of_chart(workload, made)
    values, made = _with_gpus(values, workload, made) if workload.gpus else (values, made)
    written: list[Field] = []
    # The more general of two fields comes last in the table.
    for field in reversed(workload.fields):
        old, new = plain_data.at(workload.manifest, field.target), plain_data.at(made, field.target)
        is_written = any(field.target[: len(one.target)] == one.target for one in written)
        if new not in EMPTY and new != old and not is_written:
            values = put(values, field.places[0], _in_form_of_chart(field, workload, old, new))
            written.append(field)
    return values


def _in_form_of_chart(field: Field, workload: Workload, old: Any, new: Any) -> Any:
    """Return the new value of a pod field in the form that the chart expects, a list or a mapping.

    For environment variables and tolerations, the items that the user set stay, and the new items follow them.

    Args:
        field: Pod field, and the Helm keys from which the chart reads it.
        workload: Workload of the Helm release before ``GpuAccess`` changes it.
        old: Value of the field in ``workload``.
        new: Value of the field with the changes of ``GpuAccess``.
    """
    if field.target[-1] not in _ADDED:
        return new
    given, added = field.stated(workload.values), [one for one in new if one not in (old or ())]
    if isinstance(given, Mapping) or (given is None and workload.row.get("env") == "map" and field.target[-1] == "env"):
        return {**mapping(given), **{one["name"]: one["value"] for one in added}}
    return [*(given or ()), *added]


def _with_gpus(
    values: Mapping[str, Any], workload: Workload, made: Mapping[str, Any]
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Move the GPU limit of a workload from its manifest to the Helm keys that the chart has for GPUs.

    Some charts have such keys, for example for the number of GPUs, besides the keys for container resources.

    Args:
        values: Helm values.
        workload: Workload of the Helm release before ``GpuAccess`` changes it.
        made: Manifest of the workload with the changes of ``GpuAccess``.

    Returns:
        A pair: the Helm values with the GPU limit, and the manifest without it.
    """
    resources = (*pod_path(workload.manifest["kind"]), "containers", 0, "resources")
    before, after = (dict(mapping(plain_data.at(one, (*resources, "limits")))) for one in (workload.manifest, made))
    for resource in [one for one in after if one not in before and "/" in one]:
        for column, value in {"if": True, "count": after.pop(resource), "resource": resource}.items():
            if column in workload.gpus and plain_data.at(workload.values, workload.gpus[column]) != value:
                values = put(values, workload.gpus[column], value)
    rest = {**mapping(plain_data.at(made, resources)), "limits": after}
    return values, put(made, resources, {key: one for key, one in rest.items() if one})
