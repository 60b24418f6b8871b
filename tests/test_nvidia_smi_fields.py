"""The fields that can be asked for and the metrics they become, held against what the exporter really prints."""

import pytest

from gpu_constructs import GpuConstructsError
from gpu_constructs.observability.gpu_series import QUANTITIES, nvidia_smi_series
from gpu_constructs.observability.nvidia_smi_fields import (
    FIELDS,
    IDENTITY,
    exported_metrics,
    fields_of,
    metric_name,
    queried_fields,
)

# utkuozdemir/nvidia_gpu_exporter@v1.14.0:internal/integration/testdata/*.metrics, without nvidia_smi_ in front.
PRINTED = """
    accounting_buffer_size accounting_mode c2c_mode clocks_current_graphics_clock_hz clocks_current_memory_clock_hz
    clocks_current_sm_clock_hz clocks_current_video_clock_hz clocks_event_reasons_active
    clocks_event_reasons_applications_clocks_setting clocks_event_reasons_counters_hw_power_brake_slowdown_seconds
    clocks_event_reasons_counters_hw_thermal_slowdown_seconds clocks_event_reasons_counters_sw_power_cap_seconds
    clocks_event_reasons_counters_sw_thermal_slowdown_seconds clocks_event_reasons_counters_sync_boost_seconds
    clocks_event_reasons_gpu_idle clocks_event_reasons_hw_power_brake_slowdown clocks_event_reasons_hw_slowdown
    clocks_event_reasons_hw_thermal_slowdown clocks_event_reasons_supported clocks_event_reasons_sw_power_cap
    clocks_event_reasons_sw_thermal_slowdown clocks_event_reasons_sync_boost clocks_max_graphics_clock_hz
    clocks_max_memory_clock_hz clocks_max_sm_clock_hz command_exit_code compute_app_info
    compute_app_used_memory_bytes compute_apps compute_apps_last_collect_success compute_cap compute_mode count
    display_active display_attached driver_version ecc_errors_corrected_aggregate_device_memory
    ecc_errors_corrected_aggregate_dram ecc_errors_corrected_aggregate_sram ecc_errors_corrected_aggregate_total
    ecc_errors_corrected_volatile_device_memory ecc_errors_corrected_volatile_dram
    ecc_errors_corrected_volatile_sram ecc_errors_corrected_volatile_total
    ecc_errors_uncorrected_aggregate_device_memory ecc_errors_uncorrected_aggregate_dram
    ecc_errors_uncorrected_aggregate_sram ecc_errors_uncorrected_aggregate_sram_l2
    ecc_errors_uncorrected_aggregate_sram_mcu ecc_errors_uncorrected_aggregate_sram_other
    ecc_errors_uncorrected_aggregate_sram_parity ecc_errors_uncorrected_aggregate_sram_pcie
    ecc_errors_uncorrected_aggregate_sram_secded ecc_errors_uncorrected_aggregate_sram_sm
    ecc_errors_uncorrected_aggregate_sram_threshold_exceeded ecc_errors_uncorrected_aggregate_total
    ecc_errors_uncorrected_volatile_device_memory ecc_errors_uncorrected_volatile_dram
    ecc_errors_uncorrected_volatile_sram ecc_errors_uncorrected_volatile_sram_parity
    ecc_errors_uncorrected_volatile_sram_secded ecc_errors_uncorrected_volatile_total ecc_mode_current
    ecc_mode_pending edpp_multiplier_ratio encoder_stats_average_fps encoder_stats_average_latency
    encoder_stats_session_count energy_joules_total enforced_power_limit_watts fabric_clique_id fabric_state
    failed_scrapes_total fan_speed_ratio gpu_info gpu_recovery_action gsp_mode_current gsp_mode_default index
    inforom_ecc inforom_oem kmd_version last_collect_success memory_free_bytes memory_reserved_bytes
    memory_total_bytes memory_used_bytes mig_info mig_memory_free_bytes mig_memory_reserved_bytes
    mig_memory_total_bytes mig_memory_used_bytes mig_mode_current mig_mode_pending name nvml_return_code
    pci_base_class pci_bus pci_device pci_device_id pci_domain pci_sub_class pci_sub_device_id pcie_link_gen_current
    pcie_link_gen_gpucurrent pcie_link_gen_gpumax pcie_link_gen_hostmax pcie_link_gen_max pcie_link_width_current
    pcie_link_width_max pcie_throughput_rx_bytes_per_second pcie_throughput_tx_bytes_per_second persistence_mode
    platform_gpu_fabric_guid platform_host_id platform_module_id platform_slot_number platform_tray_index
    power_default_limit_watts power_draw_average_watts power_draw_instant_watts power_draw_watts power_limit_watts
    power_max_limit_watts power_min_limit_watts protected_memory_free_bytes protected_memory_total_bytes
    protected_memory_used_bytes pstate remapped_rows_correctable remapped_rows_correctable_inactive
    remapped_rows_failure remapped_rows_histogram_high remapped_rows_histogram_low remapped_rows_histogram_max
    remapped_rows_histogram_none remapped_rows_histogram_partial remapped_rows_pending remapped_rows_uncorrectable
    remapped_rows_uncorrectable_inactive serial temperature_gpu temperature_gpu_tlimit temperature_memory
    utilization_decoder_ratio utilization_encoder_ratio utilization_gpu_ratio utilization_jpeg_ratio
    utilization_memory_ratio utilization_ofa_ratio xid_errors_total
""".split()
ONLY_NVML = "energy_joules_total mig_info nvml_return_code xid_errors_total".split()
BACKENDS = ("nvidia-smi", "nvml")


def refusal(backend="nvidia-smi", names=("AUTO",), exclude=()):
    with pytest.raises(GpuConstructsError) as refused:
        queried_fields(backend, names, exclude)
    return str(refused.value)


def test_every_metric_that_the_exporter_was_seen_to_print_is_known():
    known = exported_metrics("nvidia-smi", compute_apps=True) | exported_metrics(
        "nvml", compute_apps=True, pcie_throughput=True
    )
    assert {f"nvidia_smi_{name}" for name in PRINTED} <= known


@pytest.mark.parametrize(
    ("field", "metric"),
    [
        ("power.draw", "power_draw_watts"),
        ("memory.used", "memory_used_bytes"),
        ("clocks.max.sm", "clocks_max_sm_clock_hz"),
        ("fan.speed", "fan_speed_ratio"),
        ("clocks_event_reasons_counters.sw_power_cap", "clocks_event_reasons_counters_sw_power_cap_seconds"),
        ("power_smoothing.curr_profile.ramp_up_rate", "power_smoothing_curr_profile_ramp_up_rate_watts_per_second"),
        ("temperature.gpu", "temperature_gpu"),
        ("encoder.stats.averageFps", "encoder_stats_average_fps"),
        ("pci.baseClass", "pci_base_class"),
        ("fabric.cliqueId", "fabric_clique_id"),
        (
            "ecc.errors.uncorrected.aggregate.sram.thresholdExceeded",
            "ecc_errors_uncorrected_aggregate_sram_threshold_exceeded",
        ),
    ],
)
def test_a_field_becomes_a_metric_in_snake_case_with_its_unit_behind(field, metric):
    assert metric_name(field) == f"nvidia_smi_{metric}"


@pytest.mark.parametrize("field", ["uuid", "timestamp", "pci.bus_id"])
def test_text_becomes_no_metric(field):
    assert field in FIELDS
    assert metric_name(field) is None


def test_no_two_fields_become_one_metric():
    names = [metric_name(field) for field in FIELDS if metric_name(field)]
    assert len(names) == len(set(names))


def test_as_many_fields_are_known_as_upstream_lists():
    # 241 of nvidia-smi in all captures, 179 in the catalogue of NVML; ten have an older name each.
    assert {backend: len(fields_of(backend)) - 10 for backend in BACKENDS} == {"nvidia-smi": 241, "nvml": 179}


def test_nvml_knows_no_field_that_nvidia_smi_does_not_know():
    assert fields_of("nvml") < fields_of("nvidia-smi")
    assert "module.power.limit" not in fields_of("nvml")
    assert "power.limit" in fields_of("nvml")


def test_the_library_tells_more_of_the_rest():
    exec_metrics, nvml_metrics = map(exported_metrics, BACKENDS)
    assert {f"nvidia_smi_{name}" for name in ONLY_NVML} <= nvml_metrics - exec_metrics
    assert "nvidia_smi_command_exit_code" in exec_metrics - nvml_metrics


@pytest.mark.parametrize("backend", BACKENDS)
def test_options_add_the_metrics_of_processes_and_of_the_bus(backend):
    plain = exported_metrics(backend)
    assert exported_metrics(backend, compute_apps=True, pcie_throughput=True) - plain == {
        "nvidia_smi_compute_app_info",
        "nvidia_smi_compute_app_used_memory_bytes",
        "nvidia_smi_compute_apps",
        "nvidia_smi_compute_apps_last_collect_success",
        "nvidia_smi_pcie_throughput_tx_bytes_per_second",
        "nvidia_smi_pcie_throughput_rx_bytes_per_second",
    }


def test_every_quantity_of_alerts_and_dashboards_is_there_with_the_library():
    series = nvidia_smi_series(job="e", metrics=exported_metrics("nvml"))
    named = [quantity for quantity in QUANTITIES if series.name_of(quantity)]
    assert [quantity for quantity in named if series.quantity(quantity) is None] == []
    without = nvidia_smi_series(job="e", metrics=exported_metrics("nvidia-smi"))
    assert [quantity for quantity in named if without.quantity(quantity) is None] == ["energy"]


def test_names_ask_for_these_fields_and_the_labels():
    assert queried_fields("nvml", ["power.draw", "power.draw"], []) == {"power.draw", *IDENTITY}
    metrics = exported_metrics("nvidia-smi", ["power.draw"])
    assert "nvidia_smi_power_draw_watts" in metrics
    assert "nvidia_smi_gpu_info" in metrics
    assert "nvidia_smi_power_limit_watts" not in metrics


@pytest.mark.parametrize("pattern", ["remapped_rows.histogram.*", "*.histogram.*", "remapped_rows.histogram.max"])
def test_a_pattern_leaves_its_fields_out(pattern):
    assert "remapped_rows.histogram.max" not in queried_fields("nvidia-smi", ["AUTO"], [pattern])
    assert "remapped_rows.pending" in queried_fields("nvidia-smi", ["AUTO"], [pattern])


def test_a_dot_in_a_pattern_is_a_dot():
    assert "must match a field" in refusal(exclude=["fan_speed"])


def test_a_wide_pattern_keeps_what_the_labels_need():
    left = queried_fields("nvidia-smi", ["AUTO"], ["pci.*", "*"])
    assert left == set(IDENTITY)


@pytest.mark.parametrize("field", IDENTITY)
def test_what_the_labels_need_cannot_be_left_out(field):
    assert refusal(exclude=[field]).startswith(f"query_field_names_exclude[0] must not be {field!r}: the labels of")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"names": ["power.draw", "utilisation.gpu"]},
            "query_field_names[1] must be a field that nvidia-smi knows; got 'utilisation.gpu' "
            "(did you mean 'utilization.gpu'?); 'AUTO' asks for all that the driver has",
        ),
        (
            {"backend": "nvml", "names": ["module.power.limit"]},
            "query_field_names[0] must be a field that nvml knows; got 'module.power.limit'; nvidia-smi knows it",
        ),
        ({"names": []}, "query_field_names must name a field; got []; leave it out for 'AUTO'"),
        (
            {"names": ["AUTO", "power.draw"]},
            "query_field_names must be either 'AUTO' or names; got ['AUTO', 'power.draw']; 'AUTO' holds them all",
        ),
        (
            {"exclude": ["fan.*", "fan.sped"]},
            "query_field_names_exclude[1] must match a field; got 'fan.sped' (did you mean 'fan.speed'?)",
        ),
    ],
)
def test_what_the_exporter_would_end_at_or_skip_is_refused(given, message):
    assert refusal(**given) == message
