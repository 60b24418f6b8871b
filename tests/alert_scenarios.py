"""What Prometheus sees, and which alert it then raises: for each alert at least one of each kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from gpu_constructs.observability.alert_rules import Options, Rule, gpu_rules
from gpu_constructs.observability.alert_thresholds import AlertThresholds
from gpu_constructs.observability.gpu_series import GpuSeries, dcgm_series, nvidia_smi_series, quantities
from gpu_constructs.observability.metrics import metric_set

JOBS = {"dcgm": "dcgm-exporter", "nvidia_smi": "nvidia-gpu-exporter"}
RTX3090 = "NVIDIA GeForce RTX 3090"
RTX4090 = "NVIDIA GeForce RTX 4090"


class Wish(NamedTuple):
    """As ``PowerLimit`` tells it."""

    target: Literal["uuid", "pci", "index", "name"] | None = None
    pattern: str = ""
    watts: int | None = None
    percent: int | None = None


def dcgm(
    metrics: str = "recommended",
    release: str = "4.8.3",
    pods: Literal["none", "one", "all"] = "all",
    job: str | None = JOBS["dcgm"],
) -> GpuSeries:
    fields = [m.field for m in metric_set(metrics, release) if m.prometheus_type != "label"]  # type: ignore[arg-type]
    label = "hostname" if release == "4.8.3" else "Hostname"
    return dcgm_series(job=job, metrics=fields, hostname_label=label, pods=pods)


_OF_NVML = ("nvidia_smi_xid_last_timestamp_seconds", "nvidia_smi_energy_joules_total")


def nvidia_smi(*, nvml: bool = True, job: str | None = JOBS["nvidia_smi"]) -> GpuSeries:
    series = nvidia_smi_series(job=job, metrics=())
    names = {series.metric_of(quantity) for quantity in quantities()} - {None}
    names |= {f"nvidia_smi_clocks_event_reasons_hw_{what}_slowdown" for what in ("thermal", "power_brake")}
    names.add("nvidia_smi_clocks_event_reasons_counters_sw_thermal_slowdown_seconds")
    names = names | set(_OF_NVML) if nvml else names - set(_OF_NVML)
    return replace(series, metrics=frozenset(names))  # type: ignore[arg-type]


WISHES = (
    Wish("uuid", "GPU-special", watts=250),
    Wish("pci", "0000:C1:00.0"),
    Wish("index", "7", watts=200),
    Wish("name", "*RTX 4090*", percent=80),
    Wish(watts=300),
)


class Agent(NamedTuple):
    """What a ``PowerLimit`` tells of itself."""

    wishes: tuple[Wish, ...] = WISHES
    name: str = "nvidia-powerlimit"
    namespace: str = "gpu"
    interval_seconds: int = 1800
    retry_seconds: int = 15
    out_of_range: str = "clamp"


BY_MODEL = AlertThresholds(
    temperatures_by_model={"*RTX 3090*": (70, 75), "*RTX*": (60, 65)}, vram_ignored_namespaces=("serving", "batch")
)

VARIANTS: Mapping[str, tuple[GpuSeries, Options]] = {
    "dcgm": (dcgm(), Options(AlertThresholds(), power=Agent())),
    "dcgm-3.4.2": (dcgm(release="3.4.2", pods="one"), Options(AlertThresholds(), power=Agent(out_of_range="refuse"))),
    "dcgm-without-power": (dcgm(pods="one"), Options(BY_MODEL, device_plugin="nvidia-device-plugin")),
    "dcgm-without-job": (dcgm(job=None), Options(AlertThresholds())),
    "dcgm-pools": (
        dcgm(),
        Options(
            AlertThresholds(),
            power={
                "train-.*": Agent((Wish(watts=300),)),
                ".*-1": Agent((Wish(watts=450),), "power-serve", interval_seconds=10),
            },
        ),
    ),
    "dcgm-default-metrics": (
        dcgm("default"),
        Options(
            AlertThresholds(),
            kube_state_metrics=False,
            leave_out=(
                "GpuXidCritical GpuXidWarning GpuEccUncorrectable GpuEccCorrectableRate GpuRowRemapPending "
                "GpuThermalThrottling GpuThermalSlowdown GpuPowerBrake GpuPowerCapped"
            ).split(),
        ),
    ),
    "nvidia_smi": (nvidia_smi(), Options(AlertThresholds(), power=Agent())),
    "nvidia_smi-by-model": (
        nvidia_smi(nvml=False),
        Options(AlertThresholds(temperatures_by_model={"*RTX*": (60, 65)})),
    ),
    "nvidia_smi-without-job": (nvidia_smi(job=None), Options(AlertThresholds())),
}


def rules_of(variant: str) -> list[Rule]:
    return gpu_rules(*VARIANTS[variant])


class Scenario(NamedTuple):
    """Series by minute, and how many alerts of a name fire at one of them."""

    alert: str
    about: str
    fires: int
    series: Mapping[str, str]
    at: str = "40m"
    variant: str = "dcgm"


def _labels(labels: Mapping[str, str]) -> str:
    return ",".join(f'{name}="{value}"' for name, value in labels.items())


def gpu(
    metric: str, *, node: str = "n1", index: str = "0", uuid: str = "GPU-1", model: str = RTX3090, **more: str
) -> str:
    """A series as release 4.8.3 of the DCGM exporter prints it."""
    bus = more.pop("bus", "00000000:01:00.0")
    own = {"gpu": index, "UUID": uuid, "pci_bus_id": bus, "device": f"nvidia{index}", "modelName": model}
    labels = {**own, "hostname": node, **more, "job": JOBS["dcgm"], "node": node}
    name = metric if metric.startswith("DCGM_") else f"DCGM_FI_DEV_{metric}"
    return f"{name}{{{_labels(labels)}}}"


def smi(metric: str, *, node: str = "n1", uuid: str = "1", **more: str) -> str:
    """A series as nvidia_gpu_exporter prints it."""
    return f"nvidia_smi_{metric}{{{_labels({'uuid': uuid, **more, 'job': JOBS['nvidia_smi'], 'node': node})}}}"


def smi_gpus(*uuids: str, model: str = RTX3090, **more: str) -> dict[str, str]:
    infos = (
        smi("gpu_info", uuid=uuid, index=str(n), name=model, pci_bus_id=f"00000000:0{n + 1}:00.0", **more)
        for n, uuid in enumerate(uuids)
    )
    return dict.fromkeys(infos, "1x60")


def smi_self(metric: str, **more: str) -> str:
    return f"nvidia_smi_{metric}{{{_labels({'job': JOBS['nvidia_smi'], 'node': 'n1', 'instance': 'a', **more})}}}"


def of_pod(pod: str, namespace: str = "ai") -> dict[str, str]:
    return {"namespace": namespace, "pod": pod, "container": "main"}


def power_limits(now: str, least: int, most: int, default: int, **whose: str) -> dict[str, str]:
    return {
        gpu("POWER_MGMT_LIMIT", **whose): now,
        gpu("POWER_MGMT_LIMIT_MIN", **whose): f"{least}x60",
        gpu("POWER_MGMT_LIMIT_MAX", **whose): f"{most}x60",
        gpu("POWER_MGMT_LIMIT_DEF", **whose): f"{default}x60",
    }


def smi_power_limits(now: str, least: int, most: int, default: int, uuid: str) -> dict[str, str]:
    return {
        smi("power_limit_watts", uuid=uuid): now,
        smi("power_min_limit_watts", uuid=uuid): f"{least}x60",
        smi("power_max_limit_watts", uuid=uuid): f"{most}x60",
        smi("power_default_limit_watts", uuid=uuid): f"{default}x60",
    }


def kube(metric: str, **labels: str) -> str:
    return f"kube_{metric}{{{_labels(labels)}}}"


def units(capacity: int, allocatable: int, node: str = "n1", resource: str = "nvidia_com_gpu") -> dict[str, str]:
    return {
        kube("node_status_capacity", node=node, resource=resource, unit="integer"): f"{capacity}x60",
        kube("node_status_allocatable", node=node, resource=resource, unit="integer"): f"{allocatable}x60",
    }


def requests(
    name: str,
    wants: int = 1,
    *,
    container: str = "main",
    kind: str = "container",
    resource: str = "nvidia_com_gpu",
    namespace: str = "ai",
    node: str = "",
) -> dict[str, str]:
    where = {"namespace": namespace, "pod": name, "container": container, "node": node}
    return {kube(f"pod_{kind}_resource_requests", **where, resource=resource, unit="integer"): f"{wants}x60"}


def pod(name: str, phase: str, wants: int = 1, scheduled: str = "true", **more: str) -> dict[str, str]:
    """A pod that runs, or one without a node: gated, or unknown to the scheduler."""
    phases = {one: int(one == phase) for one in ("Pending", "Running", "Succeeded", "Failed", "Unknown")}
    conditions = {one: int(one == scheduled) for one in ("true", "false", "unknown")}
    whose = {"namespace": more.get("namespace", "ai"), "pod": name}
    return {
        **requests(name, wants, **{"node": "n1" if scheduled == "true" else "", **more}),
        **{kube("pod_status_phase", **whose, phase=one): f"{value}x60" for one, value in phases.items()},
        **{kube("pod_status_scheduled", **whose, condition=one): f"{value}x60" for one, value in conditions.items()},
    }


def waits(name: str, wants: int = 1, **more: str) -> dict[str, str]:
    """A pod that fits no node."""
    unschedulable = kube("pod_status_unschedulable", namespace=more.get("namespace", "ai"), pod=name)
    return {**pod(name, "Pending", wants, scheduled="false", **more), unschedulable: "1x60"}


def not_ready(node: str) -> dict[str, str]:
    return {kube("node_status_condition", node=node, condition="Ready", status="true"): "0x60"}


def cordoned(node: str) -> dict[str, str]:
    return {kube("node_spec_unschedulable", node=node): "1x60"}


def daemon_pod(name: str, node: str, namespace: str = "gpu") -> dict[str, str]:
    whose = {"created_by_kind": "DaemonSet", "created_by_name": name}
    return {kube("pod_info", namespace=namespace, pod=f"{name}-{node}", node=node, **whose): "1x60"}


def daemonset(name: str, unavailable: str = "0x60", desired: str = "1x60", namespace: str = "gpu") -> dict[str, str]:
    whose = {"namespace": namespace, "daemonset": name}
    return {
        kube("daemonset_status_number_unavailable", **whose): unavailable,
        kube("daemonset_status_desired_number_scheduled", **whose): desired,
    }


def up(value: str, node: str = "n1", job: str = JOBS["dcgm"]) -> dict[str, str]:
    labels = {"job": job, "instance": f"{node}:9400", "exporter_pod": "exporter-x", "node": node}
    return {f"up{{{_labels(labels)}}}": value}


XIDS = "DCGM_EXP_XID_ERRORS_COUNT"
EVENTS = "DCGM_EXP_CLOCK_EVENTS_COUNT"
MIG = {"model": "NVIDIA A100-SXM4-80GB", "GPU_I_PROFILE": "1g.10gb"}
BLANK = "9223372036854775794"
SHARED = ("pod-a", "pod-b", "pod-c", "pod-d")
# An XID at minute 30 of a run that begins at the epoch.
AT_30 = "_x29 1800x40"

SCENARIOS: tuple[Scenario, ...] = (
    # XIDs
    Scenario("GpuXidCritical", "the GPU fell off the bus", 1, {gpu(XIDS, xid="79"): "_x35 1x5 _x20"}),
    Scenario("GpuXidCritical", "shared by four pods it is one alert", 1,
             {gpu(XIDS, xid="79", **of_pod(name)): "0x30 1x20" for name in SHARED}),
    Scenario("GpuXidCritical", "it stays a while after the window of the exporter", 1,
             {gpu(XIDS, xid="79"): "_x29 1x1 _x30"}),
    Scenario("GpuXidCritical", "an hour later it is over", 0, {gpu(XIDS, xid="79"): "_x5 1x4 _x80"}, at="70m"),
    Scenario("GpuXidCritical", "each of them, on each of two nodes", 30,
             {gpu(XIDS, node=node, xid=xid): "_x35 1x20"
              for xid in "46 48 62 64 74 79 95 109 110 119 120 136 140 143 158".split() for node in ("n1", "n2")}),
    Scenario("GpuXidCritical", "an application's fault", 0, {gpu(XIDS, xid="31"): "1x60"}),
    Scenario("GpuXidCritical", "a GPU without XIDs has no label xid", 0, {gpu(XIDS): "0x60"}),
    Scenario("GpuXidCritical", "from its timestamp", 1,
             {**smi_gpus("1"), smi("xid_last_timestamp_seconds", xid="79"): AT_30}, variant="nvidia_smi"),
    Scenario("GpuXidCritical", "of a GPU that is gone, with its name", 1,
             {smi("xid_last_timestamp_seconds", xid="79"): AT_30}, variant="nvidia_smi"),
    Scenario("GpuXidCritical", "a timestamp of long ago", 0,
             {**smi_gpus("1"), smi("xid_last_timestamp_seconds", xid="79"): "60x60"}, variant="nvidia_smi"),
    Scenario("GpuXidWarning", "a contained memory error", 1, {gpu(XIDS, xid="94"): "_x35 1x20"}),
    Scenario("GpuXidWarning", "each of them", 15,
             {gpu(XIDS, xid=xid): "_x35 1x20"
              for xid in "32 38 39 42 54 56 57 58 60 61 67 73 94 121 137".split()}),
    Scenario("GpuXidWarning", "one of the critical ones", 0, {gpu(XIDS, xid="79"): "_x35 1x20"}),
    Scenario("GpuXidWarning", "from its timestamp", 1,
             {**smi_gpus("1"), smi("xid_last_timestamp_seconds", xid="94"): AT_30}, variant="nvidia_smi"),
    Scenario("GpuXidNew", "one of no list", 1, {gpu(XIDS, xid="69"): "_x34 1x5 _x20"}),
    Scenario("GpuXidNew", "the same one again, a day after the gauge took it", 1,
             {gpu("XID_ERRORS", err_code="69"): "69x200", gpu(XIDS, xid="69"): "_x175 1x5 _x20"}, at="3h"),
    Scenario("GpuXidNew", "one that an ignored one followed between two scrapes", 1,
             {gpu("XID_ERRORS", err_code="0"): "0x34 _x30", gpu("XID_ERRORS", err_code="31"): "_x34 31x30",
              gpu(XIDS, xid="69"): "_x34 1x5 _x20", gpu(XIDS, xid="31"): "_x34 1x5 _x20"}),
    Scenario("GpuXidNew", "an application's faults, and notes", 0,
             {gpu(XIDS, xid=xid): "1x60" for xid in "13 31 43 45 63 92".split()}),
    Scenario("GpuXidNew", "those that other alerts are for", 0,
             {gpu(XIDS, xid=xid): "1x60" for xid in ("79", "94")}),
    Scenario("GpuXidNew", "a GPU without XIDs has no label xid", 0, {gpu(XIDS): "0x60"}),
    Scenario("GpuXidNew", "the gauge changes", 1,
             {gpu("XID_ERRORS", err_code="0"): "0x34 _x30", gpu("XID_ERRORS", err_code="69"): "_x34 69x30"},
             variant="dcgm-default-metrics"),
    Scenario("GpuXidNew", "the gauge keeps its code forever", 0,
             {gpu("XID_ERRORS", err_code="69"): "69x60"}, variant="dcgm-default-metrics"),
    Scenario("GpuXidNew", "the gauge keeps its code and the pod changes", 0,
             {gpu("XID_ERRORS", err_code="69", **of_pod("a")): "69x37 _x30",
              gpu("XID_ERRORS", err_code="69", **of_pod("b")): "_x38 69x30"}, variant="dcgm-default-metrics"),
    Scenario("GpuXidNew", "the gauge was not scraped for some minutes", 0,
             {gpu("XID_ERRORS", err_code="69"): "69x15 _x12 69x40"}, variant="dcgm-default-metrics"),
    Scenario("GpuXidNew", "an application's fault", 0,
             {gpu("XID_ERRORS", err_code="0"): "0x34 _x30", gpu("XID_ERRORS", err_code="31"): "_x34 31x30"},
             variant="dcgm-default-metrics"),
    Scenario("GpuXidNew", "the same one where the other alert is left out", 1,
             {gpu("XID_ERRORS", err_code="0"): "0x34 _x30", gpu("XID_ERRORS", err_code="79"): "_x34 79x30"},
             variant="dcgm-default-metrics"),
    Scenario("GpuXidNew", "a blank of an old release", 0,
             {gpu("XID_ERRORS", err_code=BLANK): f"_x34 {BLANK}x30"}, variant="dcgm-default-metrics"),
    Scenario("GpuXidNew", "from its timestamp", 1,
             {**smi_gpus("1"), smi("xid_last_timestamp_seconds", xid="69"): AT_30}, variant="nvidia_smi"),
    # What the driver and the memory say
    Scenario("GpuRecoveryActionNeeded", "reset", 1, {gpu("GET_GPU_RECOVERY_ACTION"): "0x30 1x20"}),
    Scenario("GpuRecoveryActionNeeded", "reboot", 1, {gpu("GET_GPU_RECOVERY_ACTION"): "0x30 2x20"}),
    Scenario("GpuRecoveryActionNeeded", "nothing", 0, {gpu("GET_GPU_RECOVERY_ACTION"): "0x60"}),
    Scenario("GpuRecoveryActionNeeded", "a blank", 0, {gpu("GET_GPU_RECOVERY_ACTION"): f"{BLANK}x60"}),
    Scenario("GpuRecoveryActionNeeded", "reboot", 1,
             {**smi_gpus("1"), smi("gpu_recovery_action"): "0x30 2x20"}, variant="nvidia_smi"),
    Scenario("GpuEccUncorrectable", "one more", 1, {gpu("ECC_DBE_VOL_TOTAL"): "4x30 5x40"}),
    Scenario("GpuEccUncorrectable", "one more that ends the pod, and with it the series", 1,
             {gpu("ECC_DBE_VOL_TOTAL", **of_pod("a")): "4x30 _x30", gpu("ECC_DBE_VOL_TOTAL"): "_x31 5x30"}),
    Scenario("GpuEccUncorrectable", "one of almost an hour ago", 1, {gpu("ECC_DBE_VOL_TOTAL"): "4x10 5x150"}, at="1h"),
    Scenario("GpuEccUncorrectable", "one, and then the node rebooted, which sets the counter to 0", 1,
             {gpu("ECC_DBE_VOL_TOTAL"): "0x30 1x1 _x3 0x60"}, at="80m"),
    Scenario("GpuEccUncorrectable", "one, and an hour after the reboot it is over", 0,
             {gpu("ECC_DBE_VOL_TOTAL"): "0x30 1x1 _x3 0x90"}, at="95m"),
    Scenario("GpuEccUncorrectable", "one that came while nothing was scraped", 1,
             {gpu("ECC_DBE_VOL_TOTAL"): "4x20 _x12 5x60"}),
    Scenario("GpuEccUncorrectable", "the four of last month", 0, {gpu("ECC_DBE_VOL_TOTAL"): "4x60"}),
    Scenario("GpuEccUncorrectable", "reset with the driver", 0, {gpu("ECC_DBE_VOL_TOTAL"): "4x30 0x30"}),
    Scenario("GpuEccUncorrectable", "after two hours it is over", 0,
             {gpu("ECC_DBE_VOL_TOTAL"): "4x10 5x150"}, at="2h"),
    Scenario("GpuEccUncorrectable", "a GeForce has no ECC", 0, {gpu("GPU_TEMP"): "60x60"}),
    Scenario("GpuEccUncorrectable", "one more", 1,
             {**smi_gpus("1"), smi("ecc_errors_uncorrected_volatile_total"): "4x30 5x40"}, variant="nvidia_smi"),
    Scenario("GpuEccCorrectableRate", "200 an hour", 1, {gpu("ECC_SBE_VOL_TOTAL"): "0+3.4x200"}, at="3h"),
    Scenario("GpuEccCorrectableRate", "200 an hour, with a reset on the way", 1,
             {gpu("ECC_SBE_VOL_TOTAL"): "0+3.4x140 0+3.4x60"}, at="160m"),
    Scenario("GpuEccCorrectableRate", "96 an hour", 0, {gpu("ECC_SBE_VOL_TOTAL"): "0+1.6x200"}, at="3h"),
    Scenario("GpuEccCorrectableRate", "60 an hour", 0, {gpu("ECC_SBE_VOL_TOTAL"): "5000+1x200"}, at="3h"),
    Scenario("GpuEccCorrectableRate", "one burst", 0, {gpu("ECC_SBE_VOL_TOTAL"): "0x100 500x100"}, at="2h"),
    Scenario("GpuEccCorrectableRate", "200 an hour", 1,
             {**dict.fromkeys(smi_gpus("1"), "1x200"), smi("ecc_errors_corrected_volatile_total"): "0+3.4x200"},
             at="3h", variant="nvidia_smi"),
    Scenario("GpuRowRemapFailure", "no spare row", 1, {gpu("ROW_REMAP_FAILURE"): "0x30 1x20"}),
    Scenario("GpuRowRemapFailure", "spare rows", 0, {gpu("ROW_REMAP_FAILURE"): "0x60"}),
    Scenario("GpuRowRemapFailure", "a blank of an old release", 0, {gpu("ROW_REMAP_FAILURE"): f"{BLANK}x60"}),
    Scenario("GpuRowRemapFailure", "no spare row", 1,
             {**smi_gpus("1"), smi("remapped_rows_failure"): "0x30 1x20"}, variant="nvidia_smi"),
    Scenario("GpuRowRemapPending", "for more than an hour", 1, {gpu("ROW_REMAP_PENDING"): "1x90"}, at="65m"),
    Scenario("GpuRowRemapPending", "for more than an hour", 1,
             {**dict.fromkeys(smi_gpus("1"), "1x90"), smi("remapped_rows_pending"): "1x90"},
             at="65m", variant="nvidia_smi"),
    Scenario("GpuRowRemapPending", "half an hour", 0, {gpu("ROW_REMAP_PENDING"): "1x60"}, at="30m"),
    Scenario("GpuPcieReplays", "20 a minute", 1, {gpu("PCIE_REPLAY_COUNTER"): "100+20x60"}),
    Scenario("GpuPcieReplays", "9 a minute", 0, {gpu("PCIE_REPLAY_COUNTER"): "100+9x60"}),
    Scenario("GpuPcieReplays", "many once, none since", 0, {gpu("PCIE_REPLAY_COUNTER"): "100000x60"}),
    Scenario("GpuLost", "one of two, while another node gets one", 1,
             {gpu("GPU_TEMP"): "50x60", gpu("GPU_TEMP", uuid="GPU-2", index="1"): "50x25 _x30",
              gpu("GPU_TEMP", node="n2", uuid="GPU-3"): "50x60",
              gpu("GPU_TEMP", node="n2", uuid="GPU-4"): "_x20 50x60", **up("1x60"), **up("1x60", node="n2")}),
    Scenario("GpuLost", "one of two, hours ago", 1,
             {gpu("GPU_TEMP"): "50x320", gpu("GPU_TEMP", uuid="GPU-2", index="1"): "50x25 _x300", **up("1x320")},
             at="5h"),
    Scenario("GpuLost", "one of two, seven hours ago", 0,
             {gpu("GPU_TEMP"): "50x500", gpu("GPU_TEMP", uuid="GPU-2", index="1"): "50x25 _x500", **up("1x500")},
             at="8h"),
    Scenario("GpuLost", "the only one", 1, {gpu("GPU_TEMP"): "50x25 _x30", **up("1x60")}),
    Scenario("GpuLost", "the only one, with its exporter: the node reboots", 0,
             {gpu("GPU_TEMP"): "50x25 _x30", **up("1x25 0x40")}),
    Scenario("GpuLost", "the only one of a node that is gone", 0,
             {gpu("GPU_TEMP"): "50x60", **up("1x60"),
              gpu("GPU_TEMP", node="n2", uuid="GPU-2"): "50x25 _x30", **up("1x25 _x40", node="n2")}),
    Scenario("GpuLost", "another name of the model, with both told of for some minutes", 0,
             {gpu("GPU_TEMP"): "50x32 _x60", gpu("GPU_TEMP", model="NVIDIA-GeForce-RTX-3090"): "_x29 50x60",
              **up("1x60")}),
    Scenario("GpuLost", "one of two, of a job nobody knows", 1,
             {gpu("GPU_TEMP"): "50x60", gpu("GPU_TEMP", uuid="GPU-2", index="1"): "50x25 _x30"},
             variant="dcgm-without-job"),
    Scenario("GpuLost", "both are there", 0,
             {gpu("GPU_TEMP"): "50x60", gpu("GPU_TEMP", uuid="GPU-2", index="1"): "50x60", **up("1x60")}),
    Scenario("GpuLost", "fewer pods share it", 0,
             {gpu("GPU_TEMP", **of_pod("a")): "50x60", gpu("GPU_TEMP", **of_pod("b")): "50x20 _x30", **up("1x60")}),
    Scenario("GpuLost", "one of two", 1,
             {smi("gpu_info", uuid="1", index="0", name="x"): "1x60",
              smi("gpu_info", uuid="2", index="1", name="x"): "1x25 _x30",
              smi("temperature_gpu"): "50x60", smi("temperature_gpu", uuid="2"): "50x25 _x30",
              **up("1x60", job=JOBS["nvidia_smi"])}, variant="nvidia_smi"),
    Scenario("GpuLost", "all of two", 1,
             {**smi_gpus("1", "2"), **{smi("temperature_gpu", uuid=uuid): "50x25 _x30" for uuid in ("1", "2")},
              **up("1x60", job=JOBS["nvidia_smi"])}, variant="nvidia_smi"),
    # Heat
    Scenario("GpuTemperatureHigh", "88 degrees", 1, {gpu("GPU_TEMP"): "88x60"}),
    Scenario("GpuTemperatureHigh", "88 degrees, of a MIG GPU with two instances", 1,
             {gpu("GPU_TEMP", **MIG, GPU_I_ID=number): "88x60" for number in ("1", "2")}),
    Scenario("GpuTemperatureHigh", "88 degrees on two nodes", 2,
             {gpu("GPU_TEMP", node=node): "88x60" for node in ("n1", "n2")}),
    Scenario("GpuTemperatureHigh", "85 degrees", 0, {gpu("GPU_TEMP"): "85x60"}),
    Scenario("GpuTemperatureHigh", "a short peak", 0, {gpu("GPU_TEMP"): "60x34 88x30"}),
    Scenario("GpuTemperatureHigh", "a blank of an old release", 0, {gpu("GPU_TEMP"): f"{BLANK}x60"}),
    Scenario("GpuTemperatureHigh", "72 degrees, too much for this model", 1,
             {gpu("GPU_TEMP"): "72x60"}, variant="dcgm-without-power"),
    Scenario("GpuTemperatureHigh", "65 degrees: the first pattern wins", 0,
             {gpu("GPU_TEMP"): "65x60"}, variant="dcgm-without-power"),
    Scenario("GpuTemperatureHigh", "65 degrees, too much for the second pattern", 1,
             {gpu("GPU_TEMP", model=RTX4090): "65x60"}, variant="dcgm-without-power"),
    Scenario("GpuTemperatureHigh", "80 degrees of a model without its own", 0,
             {gpu("GPU_TEMP", model="NVIDIA L4"): "80x60"}, variant="dcgm-without-power"),
    Scenario("GpuTemperatureHigh", "88 degrees", 1,
             {**smi_gpus("1"), smi("temperature_gpu"): "88x60"}, variant="nvidia_smi"),
    Scenario("GpuTemperatureHigh", "62 degrees, too much for this model only", 1,
             {**smi_gpus("1"), smi("gpu_info", uuid="2", index="0", name="NVIDIA L4"): "1x60",
              smi("temperature_gpu"): "62x60", smi("temperature_gpu", uuid="2"): "62x60"},
             variant="nvidia_smi-by-model"),
    Scenario("GpuTemperatureCritical", "93 degrees", 1, {gpu("GPU_TEMP"): "60x30 93x20"}),
    Scenario("GpuTemperatureCritical", "93 degrees", 1,
             {**smi_gpus("1"), smi("temperature_gpu"): "60x30 93x20"}, variant="nvidia_smi"),
    Scenario("GpuTemperatureCritical", "93 degrees, of a GPU whose number has changed, with both told of", 1,
             {smi("gpu_info", uuid="1", index="0", name="x"): "1x38 _x30",
              smi("gpu_info", uuid="1", index="1", name="x"): "_x38 1x30", smi("temperature_gpu"): "93x60"},
             variant="nvidia_smi"),
    Scenario("GpuTemperatureCritical", "92 degrees", 0, {gpu("GPU_TEMP"): "92x60"}),
    Scenario("GpuTemperatureCritical", "a blank of an old release", 0, {gpu("GPU_TEMP"): f"{BLANK}x60"}),
    Scenario("GpuTemperatureCritical", "40 degrees, where 0 stands for where it slows down", 0,
             {gpu("GPU_TEMP"): "40x60", gpu("SLOWDOWN_TEMP"): "0x60"}),
    Scenario("GpuTemperatureCritical", "40 degrees, where a count of degrees stands for it", 0,
             {gpu("GPU_TEMP"): "40x60", gpu("SLOWDOWN_TEMP"): "-2x60"}),
    Scenario("GpuTemperatureCritical", "87 degrees, where it slows down at 89", 0,
             {gpu("GPU_TEMP"): "87x60", gpu("SLOWDOWN_TEMP"): "89x60"}),
    Scenario("GpuTemperatureCritical", "88 degrees, where it slows down at 89", 1,
             {gpu("GPU_TEMP"): "88x60", gpu("SLOWDOWN_TEMP"): "89x60"}),
    Scenario("GpuTemperatureCritical", "94 degrees, where it slows down at 100", 0,
             {gpu("GPU_TEMP"): "94x60", gpu("SLOWDOWN_TEMP"): "100x60"}),
    Scenario("GpuTemperatureCritical", "94 degrees, where a blank stands for it", 1,
             {gpu("GPU_TEMP"): "94x60", gpu("SLOWDOWN_TEMP"): f"{BLANK}x60"}),
    Scenario("GpuTemperatureCritical", "76 degrees of a model with its own, which slows down at 93", 1,
             {gpu("GPU_TEMP"): "76x60", gpu("SLOWDOWN_TEMP"): "93x60"}, variant="dcgm-without-power"),
    Scenario("GpuThermalThrottling", "half of the time", 1, {gpu("THERMAL_VIOLATION"): "0+30000000000x60"}),
    Scenario("GpuThermalThrottling", "a twentieth of the time", 0, {gpu("THERMAL_VIOLATION"): "0+3000000000x60"}),
    Scenario("GpuThermalThrottling", "long ago", 0, {gpu("THERMAL_VIOLATION"): "99999999999999x60"}),
    Scenario("GpuThermalThrottling", "half of the time", 1,
             {**smi_gpus("1"), smi("clocks_event_reasons_counters_hw_thermal_slowdown_seconds"): "0+30x60",
              smi("clocks_event_reasons_counters_sw_thermal_slowdown_seconds"): "0x60"}, variant="nvidia_smi"),
    Scenario("GpuThermalThrottling", "half of the time, by the driver as on a GeForce", 1,
             {**smi_gpus("1"), smi("clocks_event_reasons_counters_hw_thermal_slowdown_seconds"): "0x60",
              smi("clocks_event_reasons_counters_sw_thermal_slowdown_seconds"): "0+30x60"}, variant="nvidia_smi"),
    Scenario("GpuThermalThrottling", "a twentieth of the time", 0,
             {**smi_gpus("1"), smi("clocks_event_reasons_counters_hw_thermal_slowdown_seconds"): "0x60",
              smi("clocks_event_reasons_counters_sw_thermal_slowdown_seconds"): "0+3x60"}, variant="nvidia_smi"),
    Scenario("GpuThermalSlowdown", "again and again", 1, {gpu(EVENTS, clock_event="hw_thermal"): "3x60"}),
    Scenario("GpuThermalSlowdown", "another reason", 0, {gpu(EVENTS, clock_event="sw_thermal"): "3x60"}),
    Scenario("GpuThermalSlowdown", "every third minute", 1,
             {**smi_gpus("1"), smi("clocks_event_reasons_hw_thermal_slowdown"): "0 0 1 " * 20}, variant="nvidia_smi"),
    # Power
    Scenario("GpuPowerBrake", "again and again", 1, {gpu(EVENTS, clock_event="hw_power_brake"): "1x60"}),
    Scenario("GpuPowerBrake", "once", 0, {gpu(EVENTS, clock_event="hw_power_brake"): "_x36 1x3 _x30"}),
    Scenario("GpuPowerBrake", "again and again", 1,
             {**smi_gpus("1"), smi("clocks_event_reasons_hw_power_brake_slowdown"): "1x60"}, variant="nvidia_smi"),
    Scenario("GpuPowerCapped", "busy, and held back most of the time", 1,
             {gpu("POWER_VIOLATION"): "0+50000000000x60", gpu("GPU_UTIL"): "95x60"}, at="50m"),
    Scenario("GpuPowerCapped", "busy, and held back less than half of the time", 0,
             {gpu("POWER_VIOLATION"): "0+24000000000x60", gpu("GPU_UTIL"): "95x60"}, at="50m"),
    Scenario("GpuPowerCapped", "half busy", 0,
             {gpu("POWER_VIOLATION"): "0+50000000000x60", gpu("GPU_UTIL"): "50x60"}, at="50m"),
    Scenario("GpuPowerCapped", "idle, as an RTX 3090 says it is held back", 0,
             {gpu("POWER_VIOLATION"): "0+50000000000x60", gpu("GPU_UTIL"): "0x60"}, at="50m"),
    Scenario("GpuPowerCapped", "busy, and held back most of the time", 1,
             {**smi_gpus("1"), smi("clocks_event_reasons_counters_sw_power_cap_seconds"): "0+50x60",
              smi("utilization_gpu_ratio"): "0.95x60"}, at="50m", variant="nvidia_smi"),
    Scenario("GpuPowerLimitDrift", "350 W instead of 300 W", 1, power_limits("350x60", 100, 350, 350)),
    Scenario("GpuPowerLimitDrift", "350 W on a GPU that four pods share", 1,
             {name: values for one in SHARED
              for name, values in power_limits("350x60", 100, 350, 350, **of_pod(one)).items()}),
    Scenario("GpuPowerLimitDrift", "300 W", 0, power_limits("300x60", 100, 350, 350)),
    Scenario("GpuPowerLimitDrift", "a watt more, which rounding may be", 0, power_limits("301x60", 100, 350, 350)),
    Scenario("GpuPowerLimitDrift", "two watts more", 1, power_limits("302x60", 100, 350, 350)),
    Scenario("GpuPowerLimitDrift", "50 W less, on one of two nodes", 1,
             {**power_limits("250x60", 100, 350, 350), **power_limits("300x60", 100, 350, 350, node="n2")}),
    Scenario("GpuPowerLimitDrift", "a board that tells a limit and takes none", 0,
             {gpu("POWER_MGMT_LIMIT"): "80x60", gpu("POWER_MGMT_LIMIT_MIN"): f"{BLANK}x60",
              gpu("POWER_MGMT_LIMIT_MAX"): f"{BLANK}x60"}),
    Scenario("GpuPowerLimitDrift", "the same under refuse", 0,
             {gpu("POWER_MGMT_LIMIT").replace("hostname", "Hostname"): "80x60"}, variant="dcgm-3.4.2"),
    Scenario("GpuPowerLimitDrift", "of a pool with a limit of its own", 0,
             power_limits("300x60", 100, 480, 350, node="train-1"), variant="dcgm-pools"),
    Scenario("GpuPowerLimitDrift", "at the limit of another pool", 1,
             power_limits("450x60", 100, 480, 350, node="train-1"), variant="dcgm-pools"),
    Scenario("GpuPowerLimitDrift", "of the other pool", 0,
             power_limits("450x60", 400, 600, 575, node="serve-1"), variant="dcgm-pools"),
    Scenario("GpuPowerLimitDrift", "of the other pool, at another limit", 1,
             power_limits("575x60", 400, 600, 575, node="serve-1"), variant="dcgm-pools"),
    Scenario("GpuPowerLimitDrift", "of no pool", 0,
             power_limits("575x60", 400, 600, 575, node="serve-11"), variant="dcgm-pools"),
    Scenario("GpuPowerLimitDrift", "back before the agent's next look", 0,
             power_limits("300x10 350x20 300x30", 100, 350, 350)),
    Scenario("GpuPowerLimitDrift", "a board that takes no less than 400 W, at 400 W", 0,
             power_limits("400x60", 400, 575, 575)),
    Scenario("GpuPowerLimitDrift", "the same board at its default", 1, power_limits("575x60", 400, 575, 575)),
    Scenario("GpuPowerLimitDrift", "a board that takes no more than 72 W, at 72 W", 0,
             power_limits("72x60", 40, 72, 72)),
    Scenario("GpuPowerLimitDrift", "a board out of range that is refused", 1,
             {name.replace("hostname", "Hostname"): v for name, v in power_limits("72x60", 40, 72, 72).items()},
             variant="dcgm-3.4.2"),
    Scenario("GpuPowerLimitDrift", "80 % of 450 W are 360 W", 0,
             power_limits("360x60", 150, 450, 450, model=RTX4090)),
    Scenario("GpuPowerLimitDrift", "80 % of 333 W are 266 W, in whole watts", 0,
             power_limits("266x60", 150, 450, 333, model=RTX4090)),
    Scenario("GpuPowerLimitDrift", "300 W where 80 % of 450 W were asked for", 1,
             power_limits("300x60", 150, 450, 450, model=RTX4090)),
    Scenario("GpuPowerLimitDrift", "80 % of 450 W, on a board that takes no less than 400 W", 0,
             power_limits("400x60", 400, 450, 450, model=RTX4090)),
    Scenario("GpuPowerLimitDrift", "by its UUID, whatever its name", 0,
             power_limits("250x60", 150, 450, 450, uuid="GPU-SPECIAL", model=RTX4090)),
    Scenario("GpuPowerLimitDrift", "by its UUID, at what its name asks for", 1,
             power_limits("360x60", 150, 450, 450, uuid="GPU-special", model=RTX4090)),
    Scenario("GpuPowerLimitDrift", "by its bus id, at its default", 0,
             power_limits("450x60", 150, 450, 450, bus="00000000:c1:00.0", index="7")),
    Scenario("GpuPowerLimitDrift", "by its bus id, at what its number asks for", 1,
             power_limits("200x60", 150, 450, 450, bus="00000000:C1:00.0", index="7")),
    Scenario("GpuPowerLimitDrift", "by its number", 0, power_limits("200x60", 150, 450, 450, index="7")),
    Scenario("GpuPowerLimitDrift", "a GPU that does not tell", 0, power_limits(f"{BLANK}x60", 100, 350, 350)),
    Scenario("GpuPowerLimitDrift", "350 W instead of 300 W, and one that is right", 1,
             {**smi_gpus("1", "2"), **smi_power_limits("350x60", 100, 350, 350, "1"),
              **smi_power_limits("300x60", 100, 350, 350, "2")}, variant="nvidia_smi"),
    Scenario("GpuPowerLimitDrift", "by its UUID, which has no prefix there", 0,
             {**smi_gpus("special"), **smi_power_limits("250x60", 100, 350, 350, "special")}, variant="nvidia_smi"),
    Scenario("GpuPowerLimitDrift", "80 % of 450 W are 360 W", 0,
             {**smi_gpus("1", model=RTX4090), **smi_power_limits("360x60", 100, 450, 450, "1")}, variant="nvidia_smi"),
    Scenario("GpuPowerLimitUnavailable", "on one node", 1, daemonset("nvidia-powerlimit", "1x60")),
    Scenario("GpuPowerLimitUnavailable", "of each pool", 2,
             {**daemonset("nvidia-powerlimit", "1x60"), **daemonset("power-serve", "1x60")}, variant="dcgm-pools"),
    Scenario("GpuPowerLimitUnavailable", "on a node that is off", 0,
             {**daemonset("nvidia-powerlimit", "1x60"), **daemon_pod("nvidia-powerlimit", "n2"), **not_ready("n2")}),
    Scenario("GpuPowerLimitUnavailable", "on none, and another namespace's on one", 0,
             {**daemonset("nvidia-powerlimit"), **daemonset("nvidia-powerlimit", "1x60", namespace="other")}),
    # Use
    Scenario("GpuMemoryNearlyFull", "98 %", 1, {gpu("FB_USED"): "23520x60", gpu("FB_FREE"): "480x60"}),
    Scenario("GpuMemoryNearlyFull", "98 %, shared by pods that have a part of it each", 1,
             {gpu("FB_USED"): "23520x60", gpu("FB_FREE"): "480x60",
              **{gpu("FB_USED", **of_pod(name)): "5000x60" for name in SHARED},
              **{gpu("FB_FREE", **of_pod(name)): "480x60" for name in SHARED}}),
    Scenario("GpuMemoryNearlyFull", "90 %, as an inference server takes it", 0,
             {gpu("FB_USED"): "21600x60", gpu("FB_FREE"): "2400x60"}),
    Scenario("GpuMemoryNearlyFull", "96 %", 0, {gpu("FB_USED"): "23040x60", gpu("FB_FREE"): "960x60"}),
    Scenario("GpuMemoryNearlyFull", "98 %, of another namespace that may", 0,
             {gpu("FB_USED", **of_pod("a", "batch")): "23520x60", gpu("FB_FREE", **of_pod("a", "batch")): "480x60"},
             variant="dcgm-without-power"),
    Scenario("GpuMemoryNearlyFull", "98 %, beside a GPU of a namespace that may", 1,
             {gpu("FB_USED", **of_pod("a", "serving")): "23520x60", gpu("FB_FREE", **of_pod("a", "serving")): "480x60",
              gpu("FB_USED", uuid="GPU-2", index="1", **of_pod("a")): "23520x60",
              gpu("FB_FREE", uuid="GPU-2", index="1", **of_pod("a")): "480x60"}, variant="dcgm-without-power"),
    Scenario("GpuMemoryNearlyFull", "one of two MIG instances", 1,
             {gpu("FB_USED", **MIG, GPU_I_ID="1"): "9900x60", gpu("FB_FREE", **MIG, GPU_I_ID="1"): "100x60",
              gpu("FB_USED", **MIG, GPU_I_ID="2"): "100x60", gpu("FB_FREE", **MIG, GPU_I_ID="2"): "9900x60"}),
    Scenario("GpuMemoryNearlyFull", "98 %, of a namespace that may", 0,
             {gpu("FB_USED", **of_pod("a", "serving")): "23520x60", gpu("FB_FREE", **of_pod("a", "serving")): "480x60"},
             variant="dcgm-without-power"),
    Scenario("GpuMemoryNearlyFull", "98 %", 1,
             {**smi_gpus("1"), smi("memory_used_bytes"): "23520x60", smi("memory_free_bytes"): "480x60"},
             variant="nvidia_smi"),
    Scenario("GpuIdleWhileAllocated", "one of two sharers does nothing for hours", 1,
             {gpu("GPU_UTIL"): "80x200", gpu("GPU_UTIL", **of_pod("busy")): "80x200",
              gpu("GPU_UTIL", **of_pod("idle")): "0x200"}, at="3h"),
    Scenario("GpuIdleWhileAllocated", "two of one name in two namespaces", 2,
             {gpu("GPU_UTIL", uuid=f"GPU-{namespace}", **of_pod("idle", namespace)): "0x200"
              for namespace in ("ai", "web")}, at="3h"),
    Scenario("GpuIdleWhileAllocated", "it works a little", 0, {gpu("GPU_UTIL", **of_pod("idle")): "3x200"}, at="3h"),
    Scenario("GpuIdleWhileAllocated", "it worked an hour ago", 0,
             {gpu("GPU_UTIL", **of_pod("idle")): "0x100 40x20 0x80"}, at="3h"),
    Scenario("GpuIdleWhileAllocated", "it came an hour ago", 0,
             {gpu("GPU_UTIL", **of_pod("idle")): "_x120 0x80"}, at="3h"),
    Scenario("GpuIdleWhileAllocated", "it is gone", 0, {gpu("GPU_UTIL", **of_pod("idle")): "0x165 _x30"}, at="3h"),
    Scenario("GpuIdleWhileAllocated", "nobody holds it", 0, {gpu("GPU_UTIL"): "0x200"}, at="3h"),
    Scenario("GpuIdleWhileAllocated", "a MIG instance, which has no utilisation of its own", 0,
             {gpu("GPU_UTIL", **MIG, GPU_I_ID="1", **of_pod("mig")): "0x200"}, at="3h"),
    # Exporter
    Scenario("GpuExporterAbsent", "no target", 1, {**up("1x60", job="another"), **units(1, 1)}),
    Scenario("GpuExporterAbsent", "no target, where nobody tells what nodes offer", 1, {},
             variant="dcgm-default-metrics"),
    Scenario("GpuExporterAbsent", "no target, and no node that offers a GPU", 0, {**units(0, 0)}),
    Scenario("GpuExporterAbsent", "no target, and no node with GPUs", 0, {}),
    Scenario("GpuExporterAbsent", "a target that does not answer", 0, up("0x60")),
    Scenario("GpuExporterAbsent", "nothing of a job nobody knows", 1, units(1, 1), variant="dcgm-without-job"),
    Scenario("GpuExporterAbsent", "something of a job nobody knows", 0,
             {gpu("GPU_TEMP"): "50x60", **units(1, 1)}, variant="dcgm-without-job"),
    Scenario("GpuExporterAbsent", "no target", 1, units(1, 1), variant="nvidia_smi"),
    Scenario("GpuExporterDown", "on one of two nodes", 1, {**up("1x60"), **up("0x60", node="n2")}),
    Scenario("GpuExporterDown", "while its pod is replaced", 0, up("1x36 0x2 1x30")),
    Scenario("GpuExporterDown", "on one of two nodes", 1,
             {**up("1x60", job=JOBS["nvidia_smi"]), **up("0x60", node="n2", job=JOBS["nvidia_smi"])},
             variant="nvidia_smi"),
    Scenario("GpuCollectionFailing", "readings fail", 1,
             {smi_self("last_collect_success"): "0x60"}, variant="nvidia_smi"),
    Scenario("GpuCollectionFailing", "one reading fails", 0,
             {smi_self("last_collect_success"): "1x38 0x1 1x30"}, variant="nvidia_smi"),
    Scenario("GpuCollectionStale", "the last of ten minutes ago", 1,
             {smi_self("last_collect_success_timestamp_seconds"): "0+60x30 1800x30"}, variant="nvidia_smi"),
    Scenario("GpuCollectionStale", "the last of four minutes ago", 0,
             {smi_self("last_collect_success_timestamp_seconds"): "0+60x30 1800x30"}, at="34m", variant="nvidia_smi"),
    Scenario("GpuCollectionStale", "readings go on", 0,
             {smi_self("last_collect_success_timestamp_seconds"): "0+60x60"}, variant="nvidia_smi"),
    Scenario("GpuNodeWithoutMetrics", "one of two nodes", 1,
             {**units(1, 1), **units(4, 4, "n2", "nvidia_com_gpu_shared"), gpu("GPU_TEMP"): "50x60"}),
    Scenario("GpuNodeWithoutMetrics", "a node with MIG instances alone", 1,
             units(7, 7, "n2", "nvidia_com_mig_1g_10gb")),
    Scenario("GpuNodeWithoutMetrics", "another exporter watches the other node", 0,
             {**units(1, 1), **units(1, 1, "n2"), gpu("GPU_TEMP"): "50x60",
              gpu("GPU_TEMP", node="n2").replace(JOBS["dcgm"], "dcgm-serve"): "50x60"}),
    Scenario("GpuNodeWithoutMetrics", "an exporter of the other kind watches the other node", 0,
             {**units(1, 1), **units(1, 1, "n2"), gpu("GPU_TEMP"): "50x60",
              smi("temperature_gpu", node="n2"): "50x60"}),
    Scenario("GpuNodeWithoutMetrics", "a node without GPUs", 0, {**units(1, 1), **units(0, 0, "n2"),
             gpu("GPU_TEMP"): "50x60"}),
    Scenario("GpuNodeWithoutMetrics", "one of two nodes", 1,
             {**units(1, 1), **units(1, 1, "n2"), **smi_gpus("1"), smi("temperature_gpu"): "50x60"},
             variant="nvidia_smi"),
    # Scheduling
    Scenario("NvidiaDevicePluginUnavailable", "on one node", 1, daemonset("nvidia-device-plugin-daemonset", "1x60")),
    Scenario("NvidiaDevicePluginUnavailable", "of one name in two namespaces", 2,
             {**daemonset("nvidia-device-plugin", "1x60"), **daemonset("nvidia-device-plugin", "1x60", namespace="b")}),
    Scenario("NvidiaDevicePluginUnavailable", "on a node that is off", 0,
             {**daemonset("nvidia-device-plugin", "1x60"), **daemon_pod("nvidia-device-plugin", "n1"),
              **daemon_pod("nvidia-device-plugin", "n2"), **not_ready("n2")}),
    Scenario("NvidiaDevicePluginUnavailable", "on a node that is off and on one that is on", 1,
             {**daemonset("nvidia-device-plugin", "2x60"), **daemon_pod("nvidia-device-plugin", "n1"),
              **daemon_pod("nvidia-device-plugin", "n2"), **not_ready("n2")}),
    Scenario("NvidiaDevicePluginUnavailable", "on a node that is on, while another's pod is on one that is off", 1,
             {**daemonset("nvidia-device-plugin", "1x60"), **daemon_pod("nvidia-device-plugin", "n1"),
              **daemon_pod("nvidia-device-plugin", "n2", namespace="b"), **daemon_pod("other", "n2"),
              **not_ready("n2")}),
    Scenario("NvidiaDevicePluginUnavailable", "during a rollout", 0,
             daemonset("nvidia-device-plugin", "0x35 1x2 0x30")),
    Scenario("NvidiaDevicePluginUnavailable", "of another name than the one given", 0,
             daemonset("my-nvidia-device-plugin", "1x60"), variant="dcgm-without-power"),
    Scenario("NvidiaDevicePluginNotScheduled", "no node fits", 1, daemonset("nvidia-device-plugin", desired="0x60")),
    Scenario("NvidiaDevicePluginNotScheduled", "the MPS daemon alone fits none", 0,
             {**daemonset("nvidia-device-plugin"),
              **daemonset("nvidia-device-plugin-mps-control-daemon", desired="0x60")}),
    Scenario("GpuUnhealthyDevices", "one of four", 1, units(4, 3)),
    Scenario("GpuUnhealthyDevices", "one of four on one of two nodes", 1, {**units(4, 3), **units(4, 4, "n2")}),
    Scenario("GpuUnhealthyDevices", "one of seven MIG instances", 1, units(7, 6, resource="nvidia_com_mig_1g_10gb")),
    Scenario("GpuUnhealthyDevices", "none of four", 0, units(4, 4)),
    Scenario("GpuCapacityExhausted", "one runs, one waits", 1,
             {**units(2, 2), **pod("a", "Running"), **waits("b")}, at="50m"),
    Scenario("GpuCapacityExhausted", "one of two MIG instances is free", 0,
             {**units(2, 2, resource="nvidia_com_mig_1g_10gb"),
              **pod("a", "Running", resource="nvidia_com_mig_1g_10gb")}, at="50m"),
    Scenario("GpuCapacityExhausted", "no MIG instance is free, and a whole GPU is", 1,
             {**units(1, 1, resource="nvidia_com_mig_1g_10gb"), **units(1, 1),
              **pod("a", "Running", resource="nvidia_com_mig_1g_10gb")}, at="50m"),
    Scenario("GpuCapacityExhausted", "one of two nodes is free", 0,
             {**units(1, 1), **units(1, 1, "n2"), **pod("a", "Running")}, at="50m"),
    Scenario("GpuCapacityExhausted", "two containers of a pod take both", 1,
             {**units(2, 2), **pod("a", "Running"), **requests("a", container="other", node="n1")}, at="50m"),
    Scenario("GpuCapacityExhausted", "an init container took both", 1,
             {**units(2, 2), **pod("a", "Running"),
              **requests("a", 2, container="before", kind="init_container", node="n1")}, at="50m"),
    Scenario("GpuCapacityExhausted", "an init container took one, which the pod has still", 0,
             {**units(2, 2), **pod("a", "Running"),
              **requests("a", container="before", kind="init_container", node="n1")}, at="50m"),
    Scenario("GpuCapacityExhausted", "one runs, and one of the same name elsewhere has ended", 0,
             {**units(2, 2), **pod("a", "Running"), **pod("a", "Succeeded", namespace="web")}, at="50m"),
    Scenario("GpuCapacityExhausted", "one runs, one is held back by a gate", 0,
             {**units(2, 2), **pod("a", "Running"), **pod("b", "Pending", scheduled="false")}, at="50m"),
    Scenario("GpuCapacityExhausted", "two are free on a cordoned node", 1,
             {**units(2, 2), **units(2, 2, "n2"), **cordoned("n2"), **pod("a", "Running", 2)}, at="50m"),
    Scenario("GpuCapacityExhausted", "two are free on a node that is off", 1,
             {**units(2, 2), **units(2, 2, "n2"), **not_ready("n2"), **pod("a", "Running", 2)}, at="50m"),
    Scenario("GpuCapacityExhausted", "two are free, two are taken on a cordoned node", 0,
             {**units(2, 2), **units(2, 2, "n2"), **cordoned("n2"), **pod("a", "Running", 2, node="n2")}, at="50m"),
    Scenario("GpuCapacityExhausted", "one runs, one has ended", 0,
             {**units(2, 2), **pod("a", "Running"), **pod("b", "Succeeded")}, at="50m"),
    Scenario("GpuPodUnschedulable", "one waits", 1, {**pod("a", "Running"), **waits("b")}),
    Scenario("GpuPodUnschedulable", "one with two containers waits", 1, {**waits("b"), **requests("b", container="c")}),
    Scenario("GpuPodUnschedulable", "one of whose two namesakes waits", 1,
             {**pod("b", "Running", namespace="web"), **waits("b")}),
    Scenario("GpuPodUnschedulable", "one waits for a MIG instance", 1, waits("b", resource="nvidia_com_mig_1g_10gb")),
    Scenario("GpuPodUnschedulable", "one waits whose init container alone takes a GPU", 1,
             {**{name: values for name, values in waits("b").items() if "requests" not in name},
              **requests("b", kind="init_container")}),
    Scenario("GpuPodUnschedulable", "one is held back by a gate", 0, pod("b", "Pending", scheduled="false")),
    Scenario("GpuPodUnschedulable", "one without GPU waits", 0,
             {**pod("a", "Running"), kube("pod_status_unschedulable", namespace="ai", pod="web"): "1x60"}),
)  # fmt: skip


def promtool_test(scenarios: Iterable[Scenario], rules_file: str) -> dict[str, Any]:
    """Scenarios as promtool reads them."""
    return {
        "rule_files": [rules_file],
        "evaluation_interval": "1m",
        "tests": [_promtool_group(one) for one in scenarios],
    }


ONE_GPU = {"hostname": "n1", "gpu": "0", "UUID": "GPU-1", "modelName": RTX3090}
OF_PLUGIN = {"namespace": "gpu", "daemonset": "nvidia-device-plugin-daemonset"}
OF_UNITS = {"resource": "nvidia_com_gpu"}
UP = {"job": JOBS["dcgm"], "instance": "n2:9400", "exporter_pod": "exporter-x", "node": "n2"}
SELF = {"job": JOBS["nvidia_smi"], "instance": "a", "node": "n1"}

FIRES_AS: Mapping[str, Mapping[str, str]] = {
    "GpuXidCritical": {"severity": "critical", **ONE_GPU, "xid": "79"},
    "GpuXidWarning": {"severity": "warning", **ONE_GPU, "xid": "94"},
    "GpuXidNew": {"severity": "warning", **ONE_GPU, "xid": "69"},
    "GpuRecoveryActionNeeded": {"severity": "critical", **ONE_GPU},
    "GpuEccUncorrectable": {"severity": "critical", **ONE_GPU},
    "GpuEccCorrectableRate": {"severity": "warning", **ONE_GPU},
    "GpuRowRemapFailure": {"severity": "critical", **ONE_GPU},
    "GpuRowRemapPending": {"severity": "warning", **ONE_GPU},
    "GpuPcieReplays": {"severity": "warning", **ONE_GPU},
    "GpuLost": {"severity": "critical", "hostname": "n1"},
    "GpuTemperatureHigh": {"severity": "warning", **ONE_GPU},
    "GpuTemperatureCritical": {"severity": "critical", **ONE_GPU},
    "GpuThermalThrottling": {"severity": "warning", **ONE_GPU},
    "GpuThermalSlowdown": {"severity": "warning", **ONE_GPU},
    "GpuPowerBrake": {"severity": "critical", **ONE_GPU},
    "GpuPowerCapped": {"severity": "info", **ONE_GPU},
    "GpuPowerLimitDrift": {"severity": "warning", **ONE_GPU, "wish": "watts"},
    "GpuPowerLimitUnavailable": {"severity": "warning", "namespace": "gpu", "daemonset": "nvidia-powerlimit"},
    "GpuMemoryNearlyFull": {"severity": "warning", **ONE_GPU},
    "GpuIdleWhileAllocated": {"severity": "info", **ONE_GPU, **of_pod("idle")},
    "GpuExporterAbsent": {"severity": "warning", "job": JOBS["dcgm"]},
    "GpuExporterDown": {"severity": "warning", **UP},
    "GpuCollectionFailing": {"severity": "warning", **SELF},
    "GpuCollectionStale": {"severity": "warning", **SELF},
    "GpuNodeWithoutMetrics": {"severity": "warning", "node": "n2"},
    "NvidiaDevicePluginUnavailable": {"severity": "critical", **OF_PLUGIN},
    "NvidiaDevicePluginNotScheduled": {"severity": "warning", "namespace": "gpu", "daemonset": "nvidia-device-plugin"},
    "GpuUnhealthyDevices": {"severity": "critical", "node": "n1", **OF_UNITS},
    "GpuCapacityExhausted": {"severity": "info", **OF_UNITS},
    "GpuPodUnschedulable": {"severity": "warning", "namespace": "ai", "pod": "b", **OF_UNITS},
}
"""The labels of each alert in the first scenario in which it fires."""

_FIRST = {one.alert: one for one in reversed(SCENARIOS) if one.fires}


def _promtool_group(one: Scenario) -> dict[str, Any]:
    firing = f'ALERTS{{alertname="{one.alert}",alertstate="firing"}}'
    if one is _FIRST.get(one.alert):
        whose = {"alertname": one.alert, "alertstate": "firing", **FIRES_AS[one.alert]}
        return _group(one, firing, [{"labels": f"ALERTS{{{_labels(whose)}}}", "value": 1}])
    return _group(one, f"count({firing})", [{"labels": "{}", "value": one.fires}] if one.fires else [])


def _group(one: Scenario, expr: str, expected: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "name": f"{one.alert}: {one.about}",
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in one.series.items()],
        "promql_expr_test": [
            {
                "expr": expr,
                "eval_time": one.at,
                "exp_samples": expected,
            }
        ],
    }
