"""Tests of the fields and their metrics, which compare them with recorded outputs of the exporter."""

from pathlib import Path

import refusals
from gpu_constructs.observability.gpu_series import nvidia_smi_series, quantities
from gpu_constructs.observability.nvidia_smi_fields import (
    exported_metrics,
    fields,
    fields_of,
    identity,
    queried_fields,
)
from tables import beside

DATA = Path(__file__).parents[1] / "data"
PRINTED = [line for line in (DATA / "nvidia_smi_metrics.txt").read_text().splitlines() if not line.startswith("#")]


def refusal(backend="nvidia-smi", names=("AUTO",), exclude=()):
    return refusals.refusal(queried_fields, backend, names, exclude)


def test_every_metric_of_recorded_outputs_is_known():
    known = exported_metrics("nvidia-smi", compute_apps=True) | exported_metrics(
        "nvml", compute_apps=True, pcie_throughput=True
    )
    assert {f"nvidia_smi_{name}" for name in PRINTED} <= known


def test_a_numeric_field_becomes_a_metric_in_snake_case_with_its_unit(expected):
    for field, metric in expected.items():
        assert fields()[field]["metric"] == f"nvidia_smi_{metric}"
    for field in ("uuid", "timestamp", "pci.bus_id"):
        assert not fields()[field]["metric"]
    names = [row["metric"] for row in fields().values() if row["metric"]]
    assert len(names) == len(set(names))


def test_as_many_fields_are_known_as_upstream_lists():
    # All captures have 241 fields of nvidia-smi, and the catalog of NVML has 179. Ten fields also have an older name.
    assert (len(fields_of("nvidia-smi")) - 10, len(fields_of("nvml")) - 10) == (241, 179)
    assert fields_of("nvml") < fields_of("nvidia-smi")
    assert "module.power.limit" not in fields_of("nvml")


def test_backend_and_options_add_metrics():
    of_smi, of_nvml = exported_metrics("nvidia-smi"), exported_metrics("nvml")
    more = "energy_joules_total mig_info nvml_return_code xid_errors_total".split()
    assert {f"nvidia_smi_{name}" for name in more} <= of_nvml - of_smi
    assert "nvidia_smi_command_exit_code" in of_smi - of_nvml
    for plain, backend in ((of_smi, "nvidia-smi"), (of_nvml, "nvml")):
        added = exported_metrics(backend, compute_apps=True, pcie_throughput=True) - plain
        assert added == {
            "nvidia_smi_compute_app_info",
            "nvidia_smi_compute_app_used_memory_bytes",
            "nvidia_smi_compute_apps",
            "nvidia_smi_compute_apps_last_collect_success",
            "nvidia_smi_pcie_throughput_tx_bytes_per_second",
            "nvidia_smi_pcie_throughput_rx_bytes_per_second",
        }


def test_every_quantity_of_alerts_and_dashboards_is_there_with_the_library():
    series = nvidia_smi_series(job="e", metrics=())
    named = {series.metric_of(quantity) for quantity in quantities()} - {None}
    assert named <= exported_metrics("nvml")
    assert named - exported_metrics("nvidia-smi") == {"nvidia_smi_energy_joules_total"}


def test_names_select_fields_and_labels_and_patterns_exclude_fields():
    assert queried_fields("nvml", ["power.draw", "power.draw"], []) == {"power.draw", *identity()}
    metrics = exported_metrics("nvidia-smi", ["power.draw"])
    assert {"nvidia_smi_power_draw_watts", "nvidia_smi_gpu_info"} <= metrics
    assert "nvidia_smi_power_limit_watts" not in metrics
    for pattern in ("remapped_rows.histogram.*", "*.histogram.*", "remapped_rows.histogram.max"):
        left = queried_fields("nvidia-smi", ["AUTO"], [pattern])
        assert ("remapped_rows.histogram.max" in left, "remapped_rows.pending" in left) == (False, True)
    assert queried_fields("nvidia-smi", ["AUTO"], ["pci.*", "*"]) == identity()
    for field in identity():
        assert refusal(exclude=[field]).startswith(
            f"query_field_names_exclude[0] must not be {field!r}, because dashboards"
        )


REFUSED = beside(__file__, "nvidia_smi_fields")["refused"]


def test_fields_that_the_exporter_rejects_or_ignores_are_rejected():
    for given, message in REFUSED:
        assert refusal(**given) == message, given
