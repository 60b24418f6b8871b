"""What nvidia_gpu_exporter can ask a GPU for, and the metrics that the answers become.

Source: utkuozdemir/nvidia_gpu_exporter@v1.14.0: internal/captures (nvidia-smi of the drivers 590 to 610),
internal/nvmlnative/catalog.go, internal/nvidiasmi/{fields,resolve,exclude}.go, internal/exporter/exporter.go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Literal

from gpu_constructs._fields import did_you_mean
from gpu_constructs.errors import GpuConstructsError

Backend = Literal["nvidia-smi", "nvml"]

AUTO = "AUTO"
"""In place of names: every field that the driver knows."""

IDENTITY = (
    "uuid",
    "name",
    "driver_model.current",
    "driver_model.pending",
    "vbios_version",
    "driver_version",
    "pci.bus_id",
    "serial",
    "compute_cap",
    "pci.sub_device_id",
    "index",
)
"""Always asked for: they are the labels of ``nvidia_smi_gpu_info``, and ``uuid`` is on every series of a GPU."""

_ECC = (
    *product(
        ("corrected", "uncorrected"),
        ("volatile", "aggregate"),
        "device_memory dram register_file l1_cache l2_cache texture_memory cbu sram total".split(),
    ),
    *product(("uncorrected",), ("volatile", "aggregate"), ("sram.parity", "sram.secded")),
    *product(("uncorrected",), ("aggregate",), (f"sram.{p}" for p in "thresholdExceeded l2 sm mcu pcie other".split())),
)
_CLOCK_REASONS = (
    "supported active gpu_idle applications_clocks_setting sw_power_cap hw_slowdown hw_thermal_slowdown "
    "hw_power_brake_slowdown sw_thermal_slowdown sync_boost"
).split()

_BY_UNIT: Mapping[str, Sequence[str]] = {
    "": [
        *"""
        driver_version count name serial pci.domain pci.bus pci.device pci.baseClass pci.subClass pci.device_id
        pci.sub_device_id pcie.link.gen.current pcie.link.gen.gpucurrent pcie.link.gen.max pcie.link.gen.gpumax
        pcie.link.gen.hostmax pcie.link.width.current pcie.link.width.max index display_mode display_attached
        display_active persistence_mode addressing_mode accounting.mode accounting.buffer_size driver_model.current
        driver_model.pending inforom.oem inforom.ecc inforom.pwr inforom.checksum_validation gpu_recovery_action
        gom.current gom.pending pstate compute_mode compute_cap encoder.stats.sessionCount encoder.stats.averageFps
        encoder.stats.averageLatency dramEncryption.mode.current dramEncryption.mode.pending ecc.mode.current
        ecc.mode.pending retired_pages.single_bit_ecc.count retired_pages.double_bit.count retired_pages.pending
        remapped_rows.correctable remapped_rows.correctable_inactive remapped_rows.uncorrectable
        remapped_rows.uncorrectable_inactive remapped_rows.pending remapped_rows.failure remapped_rows.histogram.max
        remapped_rows.histogram.high remapped_rows.histogram.partial remapped_rows.histogram.low
        remapped_rows.histogram.none temperature.gpu temperature.gpu.tlimit temperature.memory power.management
        mig.mode.current mig.mode.pending gsp.mode.current gsp.mode.default c2c.mode fabric.state fabric.status
        fabric.cliqueId fabric.health.summary fabric.health.bandwidth fabric.health.route_recovery_in_progress
        fabric.health.route_unhealthy fabric.health.access_timeout_recovery fabric.health.incorrect_configuration
        fabric.health.partition_assigned platform.chassis_serial_number platform.slot_number platform.tray_index
        platform.host_id platform.peer_type platform.module_id platform.gpu_fabric_guid kmd_version
        vgpu_driver_capability.heterogenous_multivGPU vgpu_device_capability.fractional_multiVgpu
        vgpu_device_capability.heterogeneous_timeSlice_profile vgpu_device_capability.heterogeneous_timeSlice_sizes
        vgpu_device_capability.homogeneous_placements vgpu_device_capability.mig_timeSlicing
        vgpu_device_capability.mig_timeSlicing_mode power_smoothing.enabled
        power_smoothing.delayed_power_smoothing_supported power_smoothing.soc_power_smoothing_enabled
        power_smoothing.priv_level power_smoothing.imm_ramp_down power_smoothing.num_preset_profiles
        power_smoothing.curr_profile.primary_floor_act_window_multiplier
        power_smoothing.curr_profile.primary_floor_tar_window_multiplier power_smoothing.active_profile
        power_smoothing.admin_override.primary_floor_act_window_multiplier
        power_smoothing.admin_override.primary_floor_tar_window_multiplier
        """.split(),
        *(f"ecc.errors.{'.'.join(words)}" for words in _ECC),
        *(f"clocks_event_reasons.{reason}" for reason in _CLOCK_REASONS),
        # The same in older drivers; those from 590 on have the names above.
        *(f"clocks_throttle_reasons.{reason}" for reason in _CLOCK_REASONS),
    ],
    "_bytes": """
        memory.total memory.reserved memory.used memory.free protected_memory.total protected_memory.used
        protected_memory.free
    """.split(),
    "_clock_hz": """
        clocks.current.graphics clocks.current.sm clocks.current.memory clocks.current.video
        clocks.applications.graphics clocks.applications.memory clocks.default_applications.graphics
        clocks.default_applications.memory clocks.max.graphics clocks.max.sm clocks.max.memory
    """.split(),
    "_ratio": """
        fan.speed utilization.gpu utilization.memory utilization.encoder utilization.decoder utilization.jpeg
        utilization.ofa edpp_multiplier power_smoothing.hw_lifetime_remaining_percent
        power_smoothing.max_percent_tmp_floor power_smoothing.min_percent_tmp_floor
        power_smoothing.curr_profile.percent_tmp_floor power_smoothing.admin_override.percent_tmp_floor
    """.split(),
    "_seconds": """
        clocks_event_reasons_counters.sw_power_cap clocks_event_reasons_counters.sync_boost
        clocks_event_reasons_counters.sw_thermal_slowdown clocks_event_reasons_counters.hw_thermal_slowdown
        clocks_event_reasons_counters.hw_power_brake_slowdown power_smoothing.window_multiplier
        power_smoothing.curr_profile.ramp_down_hysteresis power_smoothing.admin_override.ramp_down_hysteresis
        bbx.time_run
    """.split(),
    "_watts": """
        power.draw power.draw.average power.draw.instant power.limit enforced.power.limit power.default_limit
        power.min_limit power.max_limit module.power.draw.average module.power.draw.instant module.power.limit
        module.enforced.power.limit module.power.default_limit module.power.min_limit module.power.max_limit
        gpu.base.current gpu.base.requested gpu.base.default gpu.base.min gpu.base.max power_smoothing.tmp_floor
        power_smoothing.tmp_ceil power_smoothing.primary_power_floor power_smoothing.secondary_power_floor
        power_smoothing.min_primary_floor_activation_offset power_smoothing.min_primary_floor_activation_point
        power_smoothing.curr_profile.secondary_power_floor power_smoothing.curr_profile.primary_floor_act_offset
        power_smoothing.admin_override.secondary_power_floor power_smoothing.admin_override.primary_floor_act_offset
    """.split(),
    "_watts_per_second": """
        power_smoothing.curr_profile.ramp_up_rate power_smoothing.curr_profile.ramp_down_rate
        power_smoothing.admin_override.ramp_up_rate power_smoothing.admin_override.ramp_down_rate
    """.split(),
}
_SUFFIX: Mapping[str, str] = {field: suffix for suffix, fields in _BY_UNIT.items() for field in fields}

_TEXTS = "timestamp uuid pci.bus_id vbios_version inforom.img hostname fabric.clusterUuid".split()
"""Read as text, of which no metric can be made."""

FIELDS: frozenset[str] = frozenset({*_SUFFIX, *_TEXTS})
"""Every field there is."""

_NOT_IN_NVML = (
    "bbx.",
    "fabric.health.",
    "gpu.base.",
    "kmd_version",
    "module.",
    "pcie.link.gen.hostmax",
    "power_smoothing.",
    "vgpu_",
)

_COLLECTION = (
    "gpu_info",
    "failed_scrapes_total",
    "last_collect_success",
    "last_collect_success_timestamp_seconds",
    "last_collect_duration_seconds",
)
_OF_BACKEND: Mapping[Backend, Sequence[str]] = {
    "nvidia-smi": ("command_exit_code",),
    "nvml": (
        "nvml_return_code",
        "energy_joules_total",
        "xid_errors_total",
        "xid_last_timestamp_seconds",
        "mig_info",
        *(f"mig_memory_{kind}_bytes" for kind in ("total", "used", "free", "reserved")),
        *(f"mig_{what}_ratio" for what in ("graphics_activity", "sm_activity", "sm_occupancy", "tensor_activity")),
        *(f"mig_pcie_throughput_{way}_bytes_per_second" for way in ("tx", "rx")),
    ),
}
_COMPUTE_APPS = (
    "compute_app_info",
    "compute_app_used_memory_bytes",
    "compute_apps",
    "compute_apps_last_collect_success",
)
_PCIE_THROUGHPUT = ("pcie_throughput_tx_bytes_per_second", "pcie_throughput_rx_bytes_per_second")


def fields_of(backend: Backend) -> frozenset[str]:
    """Give the fields that a backend knows; the driver may know fewer, and nvidia-smi of a newer driver more."""
    if backend == "nvidia-smi":
        return FIELDS
    return frozenset(field for field in FIELDS if not field.startswith(_NOT_IN_NVML))


def metric_name(field: str) -> str | None:
    """Give the metric that a field becomes; None for one that holds text."""
    if field not in _SUFFIX:
        return None
    words = field.replace(".", "_")
    if not words.islower():
        words = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", words))
    return f"nvidia_smi_{words.lower()}{_SUFFIX[field]}"


def queried_fields(backend: Backend, names: Sequence[str], exclude: Sequence[str]) -> frozenset[str]:
    """Give the fields that are asked for, those among ``AUTO`` that some driver or GPU does not have included.

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
                is_of_other = name in FIELDS
                raise GpuConstructsError(
                    f"query_field_names[{number}] must be a field that {backend} knows; got {name!r}"
                    f"{'' if is_of_other else did_you_mean(name, known)}; "
                    + ("nvidia-smi knows it" if is_of_other else f"{AUTO!r} asks for all that the driver has")
                )
        known = frozenset({*names, *IDENTITY})
    return known.difference(*(_excluded(f"query_field_names_exclude[{i}]", p, known) for i, p in enumerate(exclude)))


def _excluded(field: str, pattern: str, among: frozenset[str]) -> frozenset[str]:
    expression = re.compile(".*".join(map(re.escape, pattern.split("*"))))
    found = {name for name in FIELDS if expression.fullmatch(name)}
    if not found:
        raise GpuConstructsError(f"{field} must match a field; got {pattern!r}{did_you_mean(pattern, FIELDS)}")
    # The exporter keeps these whatever a wider pattern says.
    if found <= set(IDENTITY):
        raise GpuConstructsError(
            f"{field} must not be {pattern!r}: the labels of nvidia_smi_gpu_info need it, by which dashboards and "
            "alerts know a GPU; leave it out"
        )
    return (among & found).difference(IDENTITY)


def exported_metrics(
    backend: Backend,
    names: Sequence[str] = (AUTO,),
    exclude: Sequence[str] = (),
    *,
    compute_apps: bool = False,
    pcie_throughput: bool = False,
) -> frozenset[str]:
    """Give the names of the metrics that the exporter publishes, as far as driver and GPU have them.

    Args:
        backend: What reads the GPUs.
        names: Fields, or ``AUTO``.
        exclude: Patterns of fields that are left out.
        compute_apps: Whether processes are counted.
        pcie_throughput: Whether the traffic on the bus is measured.

    Raises:
        GpuConstructsError: See ``queried_fields``.
    """
    own = [*_COLLECTION, *_OF_BACKEND[backend]]
    own += _COMPUTE_APPS if compute_apps else ()
    own += _PCIE_THROUGHPUT if pcie_throughput else ()
    of_fields = (metric_name(field) for field in queried_fields(backend, names, exclude))
    return frozenset({*(f"nvidia_smi_{name}" for name in own), *filter(None, of_fields)})
