"""Workloads that Helm charts create. The table ``charts.yaml`` describes the workloads of some Helm charts.

The library converts the values of a Helm release into the objects that the Helm chart creates. These objects have only
the fields that the checks and the capacity plan read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gpu_constructs.facts.helm_releases import Release
from gpu_constructs.facts.readable import Manifest, mapping, members
from gpu_constructs.kube import plain_data
from gpu_constructs.kube.plain_data import merged
from gpu_constructs.kube.pod_specs import Path, pod_spec_paths
from gpu_constructs.kube.tables import table
from gpu_constructs.records import dataclass

Row = Mapping[str, Any]
"""Part of the table ``charts.yaml``: the description of one Helm chart, or of one workload of a Helm chart."""

_KINDS = {
    "cronjob": ("batch/v1", "CronJob"),
    "daemonset": ("apps/v1", "DaemonSet"),
    "deployment": ("apps/v1", "Deployment"),
    "job": ("batch/v1", "Job"),
    "statefulset": ("apps/v1", "StatefulSet"),
}
EMPTY: tuple[object, ...] = (None, "", {}, [])
_OWN = "gpu-constructs/"


class Field(NamedTuple):
    """A field of a workload, and the paths of the Helm values that set this field.

    Attributes:
        target: Path of the field in the object, such as ``("spec", "replicas")``.
        places: Paths in the Helm values. The first path that has a value sets the field.
        added: Paths of lists in the Helm values. The field contains their items after those from ``places``.
    """

    target: Path
    places: Sequence[Path]
    added: Sequence[Path]

    def read(self, values: object) -> Any:
        """Return the value of the field from Helm values, in the form that a Kubernetes object needs."""
        given = self.stated(values)
        if self.target[-1] == "env":
            return _environment(given)
        if self.target[-1] == "image" and isinstance(given, Mapping):
            return f"{given['repository']}:{given['tag']}" if given.get("repository") and given.get("tag") else None
        further = [item for place in self.added for item in members(plain_data.at(values, place))]
        return [*members(given), *further] if further else given

    def stated(self, values: object) -> Any:
        """Return the value of the field as the Helm values state it, before the conversion for a Kubernetes object."""
        return next((one for one in (plain_data.at(values, place) for place in self.places) if one is not None), None)


@dataclass(frozen=True)
class Workload:
    """A workload that a Helm chart creates from its values.

    Attributes:
        manifest: Object that the Helm chart creates, with the fields that the table ``charts.yaml`` contains.
        scaler: HorizontalPodAutoscaler of the object; None if it has none.
        is_on: Whether the Helm chart creates the object with these values.
        elsewhere: Path of a Helm value that moves the GPU requests of this workload to pods that the library does not
            count. None if no Helm value does so.
        row: Description of the workload in the table ``charts.yaml``.
        values: Values of the Helm release, with the defaults that the table contains.
        fields: Fields of the object.
        gpus: Paths of the Helm values that request GPUs outside of the ``resources`` of a container. The keys are those
            of ``gpus`` in the table, for example ``count`` for the number of GPUs.
        unused: Paths of Helm values that concern this workload, but that set none of ``fields``. Examples are the
            values of a disabled container.
    """

    manifest: Manifest
    scaler: Manifest | None
    is_on: bool
    elsewhere: Path | None
    row: Row
    values: Mapping[str, Any]
    fields: Sequence[Field]
    gpus: Mapping[str, Path]
    unused: Sequence[Path]

    @property
    def is_counted(self) -> bool:
        """Whether the library counts the GPUs of this workload.

        It does if the Helm chart creates the object, and no Helm value (``elsewhere``) moves the GPU requests to other
        pods.
        """
        return self.is_on and self.elsewhere is None

    @property
    def pod(self) -> Mapping[str, Any]:
        """Pod spec of the workload."""
        return mapping(plain_data.at(self.manifest, pod_path(self.manifest["kind"])))

    def covers(self, path: Path) -> bool:
        """Check whether the library knows the effect of a Helm value on the workload, from the table ``charts.yaml``.

        Args:
            path: Path of the Helm value.
        """
        places = [place for one in self.fields for place in (*one.places, *one.added)]
        return any(path[: len(one)] == one for one in (*places, *self.unused))


def row_of(release: Release) -> Row | None:
    """Return the row of the table ``charts.yaml`` for a Helm release. Return None if the table has no such row.

    For many Helm charts, whose values have the structure of the Helm chart ``app-template``, this is the row of
    ``app-template``.
    """
    rows: Mapping[str, Row] = table("gpu_constructs.facts", "charts.yaml")
    row = rows.get(release.chart)
    # Many charts use the library of app-template, and their values have the same structure.
    is_common = bool(pod_spec_paths(release.values, "controllers.*.containers.*"))
    return rows["app-template"] if is_common and not (row and row.get("has_controllers")) else row


def known_charts() -> list[str]:
    """Return the names of the Helm charts whose workloads the table ``charts.yaml`` describes."""
    rows: Mapping[str, Row] = table("gpu_constructs.facts", "charts.yaml")
    return sorted(name for name, row in rows.items() if row["workloads"])


def workloads(release: Release, annotations: Mapping[str, Any]) -> list[Workload]:
    """Return the workloads of a Helm release, including those that its values disable.

    The list is empty if the table ``charts.yaml`` does not contain the Helm chart.

    Args:
        release: Helm release.
        annotations: Annotations of the object that creates the Helm release. The workloads get the annotations whose
            keys start with ``gpu-constructs/``.
    """
    row = row_of(release) or {"workloads": ()}
    values = merged(row.get("default", {}), release.values)
    own = {key: text for key, text in annotations.items() if str(key).startswith(_OWN)}
    made = []
    for one in row["workloads"]:
        places = _all(values, one["at"])
        for at in places:
            of_chart = put(values, at, merged(one.get("default", {}), plain_data.at(values, at)))
            suffix = "" if len(places) == 1 and one["at"].endswith("*") else f"-{at[-1]}" if at else ""
            made.append(_workload(release, one, at, of_chart, own, suffix))
    return made


def _workload(
    release: Release, row: Row, at: Path, values: Any, annotations: Mapping[str, Any], suffix: str
) -> Workload:
    """Return one workload of a Helm release.

    Args:
        release: Helm release.
        row: Description of the workload in the table ``charts.yaml``.
        at: Path of the workload in the Helm values, such as ``controllers.main``.
        values: Values of the Helm release, with the defaults that the table contains.
        annotations: Annotations of the workload.
        suffix: Text for the placeholder ``{key}`` in the workload's name, such as ``-main``; empty for none.
    """
    chart = "" if release.chart in release.name else f"-{release.chart}"
    names = {
        "release": release.name,
        "chart": chart,
        "name": mapping(plain_data.at(values, at)).get("name"),
        "key": suffix,
    }
    name = row["names"].format(**names)
    stated = plain_data.at(values, _path(row["kind"], at)) if row["kind"][0] == "^" else row["kind"]
    api_version, kind = _KINDS.get(str(stated).lower(), _KINDS["deployment"])
    metadata = {"name": name, "namespace": release.namespace, "annotations": annotations}
    pod = pod_path(kind)
    manifest: Any = put({"apiVersion": api_version, "kind": kind, "metadata": metadata}, pod, {})
    fields = [*_fields((), row["object"], at), *_fields(pod, row["pod"], at)]
    unused: list[Path] = []
    for group in ("initContainers", "containers"):
        column = row.get(group, {"at": "none.*"})
        places, off = _containers(column["at"], at, values)
        unused += off
        named = [{"name": column.get("name") or place[-1]} for place in places]
        manifest = put(manifest, (*pod, group), named)
        for index, place in enumerate(places):
            fields += _fields((*pod, group, index), row["container"], at, place)
    for field in fields:
        value = field.read(values)
        manifest = manifest if value in EMPTY else put(manifest, field.target, value)
    columns = {column: _path(path, at) for column, path in row.get("gpus", {}).items()}
    gpus = {} if any(one for _, one in _stated(row, "unless", values, at)) else columns
    return Workload(
        manifest=_with_gpus(manifest, _gpus(gpus, values), row),
        scaler=_scaler(manifest, row.get("scaler"), values, at),
        is_on=all(one is not False for _, one in _stated(row, "enabled_by", values, at)),
        elsewhere=next((path for path, one in _stated(row, "elsewhere", values, at) if one), None),
        row=row,
        values=values,
        fields=fields,
        gpus=gpus,
        unused=[*unused, *columns.values()],
    )


def _containers(path: str, at: Path, values: object) -> tuple[list[Path], list[Path]]:
    """Return two lists of paths in the Helm values: the enabled and the disabled containers of a workload.

    Args:
        path: Path of the containers below the workload, as in the table ``charts.yaml``.
        at: Path of the workload in the Helm values.
        values: Helm values.
    """
    each = [(*at, *one) for one in _all(plain_data.at(values, at), path)]
    off = [one for one in each if one != at and mapping(plain_data.at(values, one)).get("enabled") is False]
    return [one for one in each if one not in off], off


def _stated(row: Row, column: str, values: object, at: Path) -> Iterator[tuple[Path, Any]]:
    """Yield a pair for each item in a column of the table ``charts.yaml``: a path in the Helm values, and the value.

    An item is a path such as ``enabled``, or a condition such as ``kind=DaemonSet``. For a condition, the value is True
    or False.

    Args:
        row: Description of the workload in the table.
        column: Name of the column, such as ``enabled_by``.
        values: Helm values.
        at: Path of the workload in the Helm values.
    """
    for text in row.get(column, ()):
        path, _, wanted = text.partition("=")
        given = plain_data.at(values, _path(path, at))
        yield _path(path, at), given == wanted if wanted else given


def _fields(base: Path, columns: Mapping[str, str], at: Path, container: Path | None = None) -> Iterator[Field]:
    """Yield a ``Field`` for each key in a section of the table ``charts.yaml``, such as ``pod`` or ``container``.

    Args:
        base: Path in the Kubernetes object at which the paths of the fields start, such as the path of the pod spec.
        columns: Section of the table, such as ``{"nodeSelector": "pod.nodeSelector /nodeSelector"}``. A key is the path
            of a field below ``base``. Its value contains paths in the Helm values, separated by spaces.
        at: Path of the workload in the Helm values.
        container: Path of the container in the Helm values. None (the default) for fields outside of a container.
    """
    for target, text in columns.items():
        places = [_path(one, at, container) for one in text.split() if one[0] != "+"]
        added = [_path(one[1:], at, container) for one in text.split() if one[0] == "+"]
        yield Field((*base, *target.split(".")), places, added)


def _path(text: str, at: Path, container: Path | None = None) -> Path:
    """Return the full path in the Helm values for a path in the table ``charts.yaml``.

    A path with ``/`` at its start begins at the root of the values. A path with ``^`` begins at the values of the
    workload. Any other path begins at the values of the container, or of the workload if ``container`` is None.

    Args:
        text: Path in the table, such as ``^replicas``.
        at: Path of the workload in the Helm values.
        container: Path of the container in the Helm values. None, the default, for a field outside of containers.
    """
    base: Path = () if text[0] == "/" else at if text[0] == "^" or container is None else container
    return (*base, *(step for step in text.lstrip("/^").split(".") if step))


def _gpus(columns: Mapping[str, Path], values: object) -> dict[str, Any]:
    """Return the GPUs that Helm values outside of ``resources`` request, for example ``{"nvidia.com/gpu": 2}``.

    Args:
        columns: Paths of these Helm values, by the keys of ``gpus`` in the table ``charts.yaml``, such as ``count``.
        values: Helm values.
    """
    stated = {column: plain_data.at(values, path) for column, path in columns.items()}
    if not stated or stated.get("if", True) is not True or stated["count"] in (None, 0):
        return {}
    if stated.get("if_mig") is True:
        return {f"nvidia.com/mig-{profile}": number for profile, number in mapping(stated["mig"]).items()}
    return {str(stated["resource"]): stated["count"]}


def _with_gpus(manifest: Manifest, gpus: Mapping[str, Any], row: Row) -> Manifest:
    """Return a workload whose first container requests the given GPUs.

    If the container already sets a limit on a resource, its limit takes precedence over ``gpus``.

    Args:
        manifest: Workload.
        gpus: Number of GPUs by resource.
        row: Description of the workload in the table ``charts.yaml``. If its key ``tolerates_gpus`` is true, the
            workload also gets a toleration for each GPU resource.
    """
    if not gpus:
        return manifest
    pod = pod_path(manifest["kind"])
    limits, tolerations = (*pod, "containers", 0, "resources", "limits"), (*pod, "tolerations")
    manifest = put(manifest, limits, {**gpus, **mapping(plain_data.at(manifest, limits))})
    tolerated = [
        {"key": one, "operator": "Exists", "effect": "NoSchedule"} for one in gpus if row.get("tolerates_gpus")
    ]
    return mapping(put(manifest, tolerations, [*tolerated, *members(plain_data.at(manifest, tolerations))]))


def _scaler(manifest: Manifest, columns: Row | None, values: object, at: Path) -> Manifest | None:
    """Return the HorizontalPodAutoscaler that a Helm chart creates for a workload; None if the values disable it.

    Args:
        manifest: Workload.
        columns: Paths of the Helm values of the autoscaler, as in the table ``charts.yaml``. None for a Helm chart
            without an autoscaler.
        values: Helm values.
        at: Path of the workload in the Helm values.
    """
    stated = {column: plain_data.at(values, _path(path, at)) for column, path in (columns or {"if": "none"}).items()}
    if not stated["if"]:
        return None
    name = {"name": manifest["metadata"]["name"]}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {**name, "namespace": manifest["metadata"]["namespace"]},
        "spec": {
            "scaleTargetRef": {"apiVersion": manifest["apiVersion"], "kind": manifest["kind"], **name},
            "minReplicas": stated["least"],
            "maxReplicas": stated["most"],
        },
    }


def _environment(given: object) -> Any:
    """Return environment variables in the form of the field ``env`` of a container.

    Args:
        given: Variables in the Helm values: a list in this form, or a mapping from name to value.
    """
    if not isinstance(given, Mapping):
        return given
    return [
        {"name": name, **value} if isinstance(value, Mapping) else {"name": name, "value": str(value)}
        for name, value in given.items()
    ]


def pod_path(kind: str) -> Path:
    """Return the keys that lead to the pod spec in an object of a kind, such as ``("spec", "template", "spec")``."""
    job: Path = ("jobTemplate", "spec") if kind == "CronJob" else ()
    return ("spec", *job, "template", "spec")


def _all(values: Any, path: str) -> list[Path]:
    return pod_spec_paths(mapping(values), path) if path else [()]


def put(value: Any, path: Path, new: Any) -> Any:
    """Return a copy of nested mappings and lists in which ``new`` is the value at a path of keys and indices."""
    if not path:
        return new
    inner = put(plain_data.at(value, path[:1]), path[1:], new)
    if isinstance(value, list):
        return [inner if index == path[0] else one for index, one in enumerate(value)]
    return {**mapping(value), path[0]: inner}
