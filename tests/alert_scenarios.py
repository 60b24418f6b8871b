"""What Prometheus sees, and which alert it then raises, as ``observability/alert_scenarios.yaml`` holds it."""

import itertools
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import yaml

from gpu_constructs.observability.alert_rules import Options, Rule, gpu_rules
from gpu_constructs.observability.alert_thresholds import AlertThresholds
from gpu_constructs.observability.gpu_series import GpuSeries, dcgm_series, nvidia_smi_series, quantities
from gpu_constructs.observability.metrics import metric_set

JOBS = {"dcgm": "dcgm-exporter", "nvidia_smi": "nvidia-gpu-exporter"}
RTX3090 = "NVIDIA GeForce RTX 3090"
BLANK = "9223372036854775794"


class Request(NamedTuple):
    """A requested limit, with the fields of ``PowerRequest``."""

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


REQUESTS = (
    Request("uuid", "GPU-special", watts=250),
    Request("pci", "0000:C1:00.0"),
    Request("index", "7", watts=200),
    Request("name", "*RTX 4090*", percent=80),
    Request(watts=300),
)


class Agent(NamedTuple):
    """What a ``PowerLimit`` tells of itself."""

    requests: tuple[Request, ...] = REQUESTS
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
                "train-.*": Agent((Request(watts=300),)),
                ".*-1": Agent((Request(watts=450),), "power-serve", interval_seconds=10),
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
    series: Mapping[str, str | None]
    at: str = "40m"
    variant: str = "dcgm"


TABLES = yaml.safe_load((Path(__file__).parent / "observability" / "alert_scenarios.yaml").read_text(encoding="utf-8"))
ALERTS: Mapping[str, Any] = TABLES["alerts"]
SCENARIOS = [Scenario(alert, **given) for alert, said in ALERTS.items() for given in said["scenarios"]]


# --- series, by the words of the table -----------------------------------------------------------------------------


def _series(metric: str, **labels: str) -> str:
    told = ",".join(f'{name}="{value}"' for name, value in labels.items())
    return f"{metric}{{{told}}}"


def _gpu(
    metric: str,
    *,
    node: str = "n1",
    index: str = "0",
    uuid: str = "GPU-1",
    model: str = RTX3090,
    bus: str = "00000000:01:00.0",
    job: str = JOBS["dcgm"],
    mig: str = "",
    **more: str,
) -> str:
    """Return a series as release 4.8.3 of the DCGM exporter prints it."""
    if "pod" in more:
        more = {"namespace": "ai", "container": "main", **more}
    if mig:
        model = "NVIDIA A100-SXM4-80GB"
        more = {"GPU_I_PROFILE": "1g.10gb", "GPU_I_ID": mig, **more}
    own = {"gpu": index, "UUID": uuid, "pci_bus_id": bus, "device": f"nvidia{index}", "modelName": model}
    name = metric if metric.startswith("DCGM_") else f"DCGM_FI_DEV_{metric}"
    return _series(name, **own, hostname=node, **more, job=job, node=node)


def _smi(metric: str, *, node: str = "n1", uuid: str = "1", **more: str) -> str:
    """Return a series as nvidia_gpu_exporter prints it."""
    return _series(f"nvidia_smi_{metric}", uuid=uuid, **more, job=JOBS["nvidia_smi"], node=node)


def _smi_gpus(*uuids: str, model: str = RTX3090) -> dict[str, str]:
    where = ((uuid, {"index": str(n), "pci_bus_id": f"00000000:0{n + 1}:00.0"}) for n, uuid in enumerate(uuids))
    return {_smi("gpu_info", uuid=uuid, name=model, **labels): "1x60" for uuid, labels in where}


def _smi_self(metric: str) -> str:
    return _series(f"nvidia_smi_{metric}", job=JOBS["nvidia_smi"], node="n1", instance="a")


def _power_limits(now: str, least: str, most: str, default: str, **whose: str) -> dict[str, str]:
    values = {"": now, "_MIN": f"{least}x60", "_MAX": f"{most}x60", "_DEF": f"{default}x60"}
    return {_gpu(f"POWER_MGMT_LIMIT{which}", **whose): value for which, value in values.items()}


def _smi_power_limits(now: str, least: str, most: str, default: str, uuid: str) -> dict[str, str]:
    values = {"": now, "min_": f"{least}x60", "max_": f"{most}x60", "default_": f"{default}x60"}
    return {_smi(f"power_{which}limit_watts", uuid=uuid): value for which, value in values.items()}


def _kube(metric: str, **labels: str) -> str:
    return _series(f"kube_{metric}", **labels)


def _units(capacity: str, allocatable: str, node: str = "n1", resource: str = "nvidia_com_gpu") -> dict[str, str]:
    amounts = {"capacity": capacity, "allocatable": allocatable}
    whose = {"node": node, "resource": resource, "unit": "integer"}
    return {_kube(f"node_status_{name}", **whose): f"{amount}x60" for name, amount in amounts.items()}


def _requests(
    name: str,
    wants: str = "1",
    *,
    container: str = "main",
    kind: str = "container",
    resource: str = "nvidia_com_gpu",
    namespace: str = "ai",
    node: str = "",
) -> dict[str, str]:
    where = {"namespace": namespace, "pod": name, "container": container, "node": node}
    return {_kube(f"pod_{kind}_resource_requests", **where, resource=resource, unit="integer"): f"{wants}x60"}


def _pod(name: str, phase: str, wants: str = "1", scheduled: str = "true", **more: str) -> dict[str, str]:
    """Return the series of a pod that runs, or of one without a node: gated, or unknown to the scheduler."""
    whose = {"namespace": more.get("namespace", "ai"), "pod": name}
    made = _requests(name, wants, **{"node": "n1" if scheduled == "true" else "", **more})
    for one in ("Pending", "Running", "Succeeded", "Failed", "Unknown"):
        made[_kube("pod_status_phase", **whose, phase=one)] = f"{int(one == phase)}x60"
    for one in ("true", "false", "unknown"):
        made[_kube("pod_status_scheduled", **whose, condition=one)] = f"{int(one == scheduled)}x60"
    return made


def _waits(name: str, wants: str = "1", **more: str) -> dict[str, str]:
    """Return the series of a pod that fits no node."""
    unschedulable = _kube("pod_status_unschedulable", namespace=more.get("namespace", "ai"), pod=name)
    return {**_pod(name, "Pending", wants, scheduled="false", **more), unschedulable: "1x60"}


def _not_ready(node: str) -> dict[str, str]:
    return {_kube("node_status_condition", node=node, condition="Ready", status="true"): "0x60"}


def _cordoned(node: str) -> dict[str, str]:
    return {_kube("node_spec_unschedulable", node=node): "1x60"}


def _daemon_pod(name: str, node: str, namespace: str = "gpu") -> dict[str, str]:
    whose = {"created_by_kind": "DaemonSet", "created_by_name": name}
    return {_kube("pod_info", namespace=namespace, pod=f"{name}-{node}", node=node, **whose): "1x60"}


def _daemonset(name: str, unavailable: str = "0x60", desired: str = "1x60", namespace: str = "gpu") -> dict[str, str]:
    numbers = {"number_unavailable": unavailable, "desired_number_scheduled": desired}
    whose = {"namespace": namespace, "daemonset": name}
    return {_kube(f"daemonset_status_{what}", **whose): number for what, number in numbers.items()}


def _up(value: str, node: str = "n1", job: str = JOBS["dcgm"]) -> dict[str, str]:
    return {_series("up", job=job, instance=f"{node}:9400", exporter_pod="exporter-x", node=node): value}


def series_of(wanted: Mapping[str, str | None], variant: str = "dcgm") -> dict[str, str]:
    """Return series with their values, of which a row holds words and values."""
    found: dict[str, str] = {}
    for what, values in wanted.items():
        function, *words = shlex.split(what.replace("BLANK", BLANK))
        given = [word for word in words if "=" not in word]
        named = dict(word.split("=", 1) for word in words if "=" in word)
        for chosen in itertools.product(*(value.split("|") for value in named.values())):
            made = globals()[f"_{function}"](*given, **dict(zip(named, chosen, strict=True)))
            found.update(made if values is None else dict.fromkeys([made] if isinstance(made, str) else made, values))
    node = VARIANTS[variant][0].labels.node
    return {name.replace('hostname="', f'{node}="'): values.replace("BLANK", BLANK) for name, values in found.items()}


# --- what promtool reads -------------------------------------------------------------------------------------------


def promtool_test(scenarios: Iterable[Scenario], rules_file: str) -> dict[str, Any]:
    """Return scenarios as promtool reads them."""
    return {
        "rule_files": [rules_file],
        "evaluation_interval": "1m",
        "tests": [_promtool_group(one) for one in scenarios],
    }


_FIRST = {one.alert: one for one in reversed(SCENARIOS) if one.fires}


def _promtool_group(one: Scenario) -> dict[str, Any]:
    firing = _series("ALERTS", alertname=one.alert, alertstate="firing")
    asked = {"expr": f"count({firing})", "exp_samples": [{"labels": "{}", "value": one.fires}] if one.fires else []}
    if one is _FIRST[one.alert]:
        labels = _series("ALERTS", alertname=one.alert, alertstate="firing", **ALERTS[one.alert]["labels"])
        asked = {"expr": firing, "exp_samples": [{"labels": labels, "value": 1}]}
    return {
        "name": f"{one.alert}: {one.about}",
        "interval": "1m",
        "input_series": input_series(one.series, one.variant),
        "promql_expr_test": [{**asked, "eval_time": one.at}],
    }


def input_series(wanted: Mapping[str, str | None], variant: str = "dcgm") -> list[dict[str, str]]:
    """Return series as promtool reads them."""
    return [{"series": name, "values": values} for name, values in series_of(wanted, variant).items()]
