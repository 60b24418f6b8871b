"""Fields that nvidia_gpu_exporter can ask a GPU for, and the metrics that the answers become."""

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
"""In place of names: every field that the driver knows."""


@cache
def fields() -> Mapping[str, Mapping[str, str]]:
    """Return every field with its row of the table."""
    return {row["field"]: row for row in rows(__package__, "nvidia_smi_fields.csv")}


@cache
def identity() -> frozenset[str]:
    """Return the fields that are labels of ``nvidia_smi_gpu_info``, which are asked for in any case."""
    return frozenset(name for name, row in fields().items() if row["label"])


def fields_of(backend: Backend) -> frozenset[str]:
    """Return the fields that a backend knows; the driver may know fewer, and nvidia-smi of a newer driver more."""
    return frozenset(name for name, row in fields().items() if backend == "nvidia-smi" or row["nvml"])


def queried_fields(backend: Backend, names: Sequence[str], exclude: Sequence[str]) -> frozenset[str]:
    """Return the fields that are asked for, those among ``AUTO`` that some driver or GPU does not have included.

    Raises:
        GpuConstructsError: A field that the backend does not know, a pattern without a field, or one that takes
            away what the labels of all series are made of.
    """
    known = fields_of(backend)
    if not names:
        raise GpuConstructsError(f"query_field_names must name a field; got []; leave it out for {AUTO!r}")
    if AUTO in names and len(names) > 1:
        raise GpuConstructsError(
            f"query_field_names must be either {AUTO!r} or names; got {list(names)!r}; {AUTO!r} holds them all"
        )
    if AUTO not in names:
        for number, name in enumerate(names):
            if name not in known:
                is_of_other = name in fields()
                raise GpuConstructsError(
                    f"query_field_names[{number}] must be a field that {backend} knows; got {name!r}"
                    f"{'' if is_of_other else did_you_mean(name, known)}; "
                    + ("nvidia-smi knows it" if is_of_other else f"{AUTO!r} asks for all that the driver has")
                )
        known = identity() | {*names}
    return known.difference(*(_excluded(f"query_field_names_exclude[{i}]", p, known) for i, p in enumerate(exclude)))


def _excluded(field: str, pattern: str, among: frozenset[str]) -> frozenset[str]:
    expression = re.compile(".*".join(map(re.escape, pattern.split("*"))))
    found = {name for name in fields() if expression.fullmatch(name)}
    if not found:
        raise GpuConstructsError(f"{field} must match a field; got {pattern!r}{did_you_mean(pattern, fields())}")
    # The exporter keeps these whatever a wider pattern says.
    if found <= identity():
        raise GpuConstructsError(
            f"{field} must not be {pattern!r}: the labels of nvidia_smi_gpu_info need it, by which dashboards and "
            "alerts know a GPU; leave it out"
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
    """Return the names of the metrics that the exporter publishes, as far as driver and GPU have them.

    Args:
        backend: What reads the GPUs.
        names: Fields, or ``AUTO``.
        exclude: Patterns of fields that are left out.
        compute_apps: Whether processes are counted.
        pcie_throughput: Whether the traffic on the bus is measured.

    Raises:
        GpuConstructsError: See ``queried_fields``.
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
