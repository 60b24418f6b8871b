"""Fields that nvidia_gpu_exporter can query from nvidia-smi, and the Prometheus metrics that result from them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Literal

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube.fields import did_you_mean
from gpu_constructs.kube.tables import rows

Backend = Literal["nvidia-smi", "nvml"]

AUTO = "AUTO"
"""Value that selects every field that the driver knows."""


@cache
def fields() -> Mapping[str, Mapping[str, str]]:
    """Return the row in ``nvidia_smi_fields.csv`` of each known nvidia-smi field, by name of the field."""
    return {row["field"]: row for row in rows(__package__, "nvidia_smi_fields.csv")}


@cache
def identity() -> frozenset[str]:
    """Return the fields that identify a GPU.

    The exporter always queries them, because they become the labels of the metric ``nvidia_smi_gpu_info``.
    """
    return frozenset(name for name, row in fields().items() if row["label"])


def fields_of(backend: Backend) -> frozenset[str]:
    """Return the fields that a backend knows.

    An older driver on a node can know fewer fields, and a newer driver can know more.
    """
    return frozenset(name for name, row in fields().items() if backend == "nvidia-smi" or row["nvml"])


def queried_fields(backend: Backend, names: Sequence[str], exclude: Sequence[str]) -> frozenset[str]:
    """Return the fields that the exporter queries. For ``AUTO``, some drivers or GPUs may lack some of the fields.

    Args:
        backend: Source of the readings, ``nvidia-smi`` or ``nvml``.
        names: Fields that the user sets, such as ``power.draw``, or only ``AUTO``.
        exclude: Patterns of fields to omit, such as ``remapped_rows.histogram.*``.

    Raises:
        GpuConstructsError: If the backend does not know a field, a pattern matches no field, or a pattern matches only
            fields that identify a GPU.
    """
    known = fields_of(backend)
    if not names:
        raise GpuConstructsError(f"query_field_names must name a field, got []. Leave it out to use {AUTO!r}")
    if AUTO in names and len(names) > 1:
        raise GpuConstructsError(
            f"query_field_names must be either {AUTO!r} or names, got {list(names)!r}. {AUTO!r} includes them all"
        )
    if AUTO not in names:
        for number, name in enumerate(names):
            if name not in known:
                is_of_other = name in fields()
                raise GpuConstructsError(
                    f"query_field_names[{number}] must be a field that {backend} knows, got {name!r}"
                    f"{'' if is_of_other else did_you_mean(name, known)}; "
                    + ("nvidia-smi knows it" if is_of_other else f"{AUTO!r} queries all fields of the driver")
                )
        known = identity() | {*names}
    return known.difference(*(_excluded(f"query_field_names_exclude[{i}]", p, known) for i, p in enumerate(exclude)))


def _excluded(field: str, pattern: str, among: frozenset[str]) -> frozenset[str]:
    expression = re.compile(".*".join(map(re.escape, pattern.split("*"))))
    found = {name for name in fields() if expression.fullmatch(name)}
    if not found:
        raise GpuConstructsError(f"{field} must match a field, got {pattern!r}{did_you_mean(pattern, fields())}")
    # The exporter queries the fields that identify a GPU even if a pattern matches them.
    if found <= identity():
        raise GpuConstructsError(
            f"{field} must not be {pattern!r}, because dashboards and alerts identify a GPU by the labels of "
            "nvidia_smi_gpu_info, which include this field. Remove the pattern"
        )
    return (among & found).difference(identity())


def exported_metrics(
    backend: Backend,
    names: Sequence[str] = (AUTO,),
    exclude: Sequence[str] = (),
    *,
    compute_apps: bool = False,
    pcie_throughput: bool = False,
) -> frozenset[str]:
    """Return the names of the metrics that the exporter can export. Some drivers and GPUs support fewer metrics.

    Args:
        backend: Source of the readings, ``nvidia-smi`` or ``nvml``.
        names: Fields to query, or ``AUTO``.
        exclude: Patterns of fields to omit.
        compute_apps: Whether the exporter reports the processes on a GPU.
        pcie_throughput: Whether the exporter measures the PCIe traffic.

    Raises:
        GpuConstructsError: If ``queried_fields`` rejects a field or a pattern.
    """
    options = {
        "",
        backend,
        *(["compute_apps"] if compute_apps else []),
        *(["pcie_throughput"] if pcie_throughput else []),
    }
    own = (row["metric"] for row in rows(__package__, "nvidia_smi_metrics.csv") if row["with"] in options)
    of_fields = (fields()[field]["metric"] for field in queried_fields(backend, names, exclude))
    return frozenset({*own, *filter(None, of_fields)})
