"""What the exporters would say of a small fleet, without a GPU: two nodes, and every way to hand out a GPU.

Series have the labels of theirs: NVIDIA/dcgm-exporter@4.5.3-4.8.2 and @7ad58324 (release 4.6.0-4.8.3):
internal/pkg/rendermetrics, @3.3.6-3.4.2:pkg/dcgmexporter/pipeline.go;
utkuozdemir/nvidia_gpu_exporter@v1.14.0:internal/integration/testdata.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from gpu_constructs.observability.gpu_series import Dialect, quantities
from gpu_constructs.observability.metrics import Metric, hostname_label

Labels = tuple[tuple[str, str], ...]
PodsMode = Literal["none", "one", "all"]

START = 1_767_261_600  # a whole hour, of which the history tells one
SECONDS = 3600
STEP = 30
MOMENTS = range(START, START + SECONDS + 1, STEP)
END = MOMENTS[-1]


class Pod(NamedTuple):
    name: str
    util: int
    vram: int
    resource: str = "nvidia_com_gpu"
    namespace: str = "ai"


class Instance(NamedTuple):
    """A part of a GPU split by MIG."""

    id: str
    profile: str
    used: int
    total: int
    pods: tuple[Pod, ...] = ()


class Gpu(NamedTuple):
    node: str
    index: int
    model: str
    util: int
    used: int
    total: int
    watts: int
    limit: int
    celsius: int
    is_data_centre: bool = False
    pods: tuple[Pod, ...] = ()
    later: tuple[Pod, ...] = ()
    """The pods of the second half hour, if they are others."""
    instances: tuple[Instance, ...] = ()
    xids: tuple[tuple[int, int], ...] = ()

    @property
    def uuid(self) -> str:
        return f"GPU-{self.node}-{self.index}"

    def pods_at(self, moment: int) -> tuple[Pod, ...]:
        return self.later if self.later and moment >= START + SECONDS // 2 else self.pods


SHARING = (Pod("chat", 50, 9000), Pod("images", 30, 6000), Pod("speech", 10, 2500))
SPLIT = (
    Instance("7", "1g.10gb", 4000, 10000, (Pod("notebook", 0, 4000, "nvidia_com_mig_1g_10gb"),)),
    Instance("8", "1g.10gb", 20, 10000),
)
TRAINING = ((Pod("train-0", 98, 70000),), (Pod("train-1", 98, 70000),))
FLEET = (
    Gpu("node-a", 0, "NVIDIA GeForce RTX 3090", 90, 18000, 24576, 300, 320, 71, pods=SHARING, xids=((31, 2), (79, 1))),
    Gpu("node-a", 1, "NVIDIA GeForce RTX 3090", 0, 10, 24576, 20, 320, 33),
    Gpu("node-b", 0, "NVIDIA A100-SXM4-80GB", 0, 0, 81920, 150, 400, 45, True, instances=SPLIT),
    Gpu("node-b", 1, "NVIDIA H100 80GB HBM3", 98, 70000, 81920, 650, 700, 64, True, *TRAINING),
)
NODES = sorted({gpu.node for gpu in FLEET})
XID_TEXTS = {0: "No Error", 31: "GPU memory page fault", 79: "GPU has fallen off the bus"}


class Series(NamedTuple):
    labels: Labels
    value: float


class Family(NamedTuple):
    name: str
    series: list[Series]


def history(scrapes: Mapping[int, Sequence[Family]]) -> list[str]:
    """The lines of many scrapes in OpenMetrics, with the moment of each, without the end mark."""
    points: dict[str, dict[Labels, list[str]]] = {}
    for moment, families in scrapes.items():
        for family in families:
            for one in family.series:
                inside = ",".join(f'{key}="{value}"' for key, value in one.labels)
                value = int(one.value) if one.value == int(one.value) else one.value
                line = f"{family.name}{{{inside}}} {value!r} {moment}"
                points.setdefault(family.name, {}).setdefault(one.labels, []).append(line)
    # A counter of OpenMetrics would have to end in _total.
    return [
        line
        for name, series in points.items()
        for line in (f"# TYPE {name} unknown", *(point for of_one in series.values() for point in of_one))
    ]


def scraped(families: Iterable[Family], job: str) -> list[Family]:
    """The same as Prometheus keeps it: with the labels of the target, which the exporter's own win over."""
    kept = []
    for family in families:
        series = []
        for one in family.series:
            labels = dict(one.labels)
            on = labels.get("hostname") or labels.get("Hostname") or labels.pop("__node__", "")
            series.append(Series(tuple(sorted({**_target(job, on), **labels}.items())), one.value))
        kept.append(Family(family.name, series))
    return kept


def up(job: str) -> Family:
    """What Prometheus says of the exporters: one on each node."""
    return Family("up", [Series(tuple(_target(job, node).items()), 1) for node in NODES])


def _target(job: str, node: str) -> dict[str, str]:
    return {"exporter_pod": f"{job}-{node}", "instance": f"{node}:9400", "job": job, "node": node}


_Reading = Callable[[Gpu, int], float]

_READINGS: dict[str, _Reading] = {
    "utilization": lambda gpu, _: gpu.util,
    "copy_utilization": lambda gpu, _: gpu.util / 2,
    "vram_used": lambda gpu, _: gpu.used,
    "vram_free": lambda gpu, _: gpu.total - gpu.used - 500,
    "vram_reserved": lambda gpu, _: 500,
    "temperature": lambda gpu, _: gpu.celsius,
    "memory_temperature": lambda gpu, _: gpu.celsius + 5,
    "slowdown_temperature": lambda gpu, _: 95,
    "power": lambda gpu, _: gpu.watts,
    "power_limit": lambda gpu, _: gpu.limit,
    "power_limit_min": lambda gpu, _: 100,
    "power_limit_max": lambda gpu, _: gpu.limit + 50,
    "power_limit_default": lambda gpu, _: gpu.limit + 30,
    "enforced_power_limit": lambda gpu, _: gpu.limit,
    "energy": lambda gpu, since: 5_000_000 + gpu.watts * since,
    "sm_clock": lambda gpu, _: 210 + 15 * gpu.util,
    "memory_clock": lambda gpu, _: 9751,
    "fan_speed": lambda gpu, _: gpu.celsius,
    "performance_state": lambda gpu, _: 0 if gpu.util else 8,
    "power_throttled": lambda gpu, since: gpu.util * since / 200,
    "ecc_corrected": lambda gpu, since: since // 600,
    "row_remap_pending": lambda gpu, _: gpu.index,
    "recovery_action": lambda gpu, _: 1 if gpu.xids else 0,
    "pcie_link_width": lambda gpu, _: 16 if gpu.index else 8,
    "pcie_max_link_width": lambda gpu, _: 16,
}
"""Quantities of a GPU in their units; others are 0."""


def _metrics_of(dialect: Dialect) -> dict[str, _Reading]:
    """The metric of each quantity, in the unit of the exporter."""
    found: dict[str, _Reading] = {}
    for name, row in quantities().items():
        operation, _, number = row[f"{dialect}_scale"].partition(" ")
        base, _, power = (number or "1").partition("^")
        factor = float(base) ** int(power or 1)
        factor = 1 / factor if operation == "*" else factor
        reading = _READINGS.get(name, lambda gpu, _: 0)
        found[row[dialect]] = lambda gpu, since, reading=reading, factor=factor: reading(gpu, since) * factor
    return found


# --- dcgm-exporter --------------------------------------------------------------------------------------------

_DATA_CENTRE = ("MEMORY_TEMP", "ECC_", "ROW_REMAP", "REMAPPED_ROWS", "PROF_", "NVLINK_", "VGPU_")
_NOT_SPLIT = ("GPU_UTIL", "MEM_COPY_UTIL", "ENC_UTIL", "DEC_UTIL")
_OF_INSTANCE = ("FB_USED", "FB_FREE", "FB_RESERVED")
_DCGM = _metrics_of("dcgm")


def dcgm(metrics: Sequence[Metric], release: str, *, pods: PodsMode, moment: int = END) -> list[Family]:
    """One scrape of dcgm-exporter on all nodes.

    ``one``: the device plugin's allocation, whose last pod wins; ``all``: virtual GPUs with values per process.
    """
    constant = {metric.field: "570.133.07" for metric in metrics if metric.prometheus_type == "label"}
    return [
        Family(field, [series for gpu in FLEET for series in _of_gpu(field, gpu, release, constant, pods, moment)])
        for field in (metric.field for metric in metrics if metric.prometheus_type != "label")
    ]


def _of_gpu(
    field: str, gpu: Gpu, release: str, constant: dict[str, str], pods: PodsMode, moment: int
) -> Iterator[Series]:
    short = field.removeprefix("DCGM_FI_DEV_").removeprefix("DCGM_FI_PROF_")
    is_missing = short == "FAN_SPEED" if gpu.is_data_centre else any(part in field for part in _DATA_CENTRE)
    if is_missing or (gpu.instances and short in _NOT_SPLIT):
        return
    for instance in gpu.instances or (None,):
        holders = instance.pods if instance else gpu.pods_at(moment)
        for more, value in _values(field, short, gpu, instance, moment):
            labels = {**_device_labels(gpu, instance, release), **constant, **more}
            own = {"GPU_UTIL": "util", "FB_USED": "vram"}.get(short)
            if pods == "none" or not holders or (pods == "all" and own):
                yield Series(tuple(labels.items()), value)
            if pods == "one" and holders:
                yield Series(tuple({**labels, **_pod_labels(holders[-1])}.items()), value)
            if pods == "all":
                for slot, pod in enumerate(holders):
                    vgpu = {"vgpu": str(slot)} if len(gpu.pods) > 1 else {}
                    held = {**labels, **_pod_labels(pod), "pod_uid": f"uid-{pod.name}", **vgpu}
                    yield Series(tuple(held.items()), getattr(pod, own) if own else value)


def _device_labels(gpu: Gpu, instance: Instance | None, release: str) -> dict[str, str]:
    is_new = not release.startswith("3.")
    return {
        "gpu": str(gpu.index),
        "UUID": gpu.uuid,
        **({"pci_bus_id": f"00000000:0{gpu.index + 1}:00.0"} if is_new else {}),
        "device": f"nvidia{gpu.index}",
        "modelName": gpu.model,
        **({"GPU_I_PROFILE": instance.profile, "GPU_I_ID": instance.id} if instance else {}),
        hostname_label(release): gpu.node,
    }


def _pod_labels(pod: Pod) -> dict[str, str]:
    return {"container": "main", "namespace": pod.namespace, "pod": pod.name}


def _values(
    field: str, short: str, gpu: Gpu, instance: Instance | None, moment: int
) -> Iterator[tuple[dict[str, str], float]]:
    window = {"window_size_in_ms": "300000"}
    if field == "DCGM_EXP_XID_ERRORS_COUNT":
        yield from [({**window, "xid": str(xid)}, count) for xid, count in gpu.xids] or [(window, 0)]
    elif field == "DCGM_EXP_CLOCK_EVENTS_COUNT":
        yield {**window, "clock_event": "power_cap" if gpu.util else "gpu_idle"}, 10
    elif short == "XID_ERRORS":
        code = gpu.xids[-1][0] if gpu.xids else 0
        yield {"err_code": str(code), "err_msg": XID_TEXTS[code]}, code
    elif instance and short in _OF_INSTANCE:
        free = instance.total - instance.used - 100
        yield {}, {"FB_USED": instance.used, "FB_FREE": free, "FB_RESERVED": 100}[short]
    elif field.startswith("DCGM_FI_PROF_"):
        yield {}, 1e6 * gpu.util if field.endswith("_BYTES") else int(instance.id) / 10 if instance else gpu.util / 100
    else:
        # A counter of the exporter that is not a quantity rises by one a minute.
        yield {}, _DCGM.get(field, lambda gpu, since: since // 60)(gpu, moment - START)


# --- nvidia_gpu_exporter --------------------------------------------------------------------------------------

_REASONS = (
    "gpu_idle applications_clocks_setting sw_power_cap sw_thermal_slowdown hw_thermal_slowdown hw_power_brake_slowdown "
    "hw_slowdown sync_boost"
).split()
_COUNTED = "sw_power_cap sw_thermal_slowdown hw_thermal_slowdown hw_power_brake_slowdown sync_boost".split()
_SMI: dict[str, _Reading] = {
    **{f"nvidia_smi_clocks_event_reasons_{name}": lambda gpu, _: 0 for name in _REASONS},
    **{f"nvidia_smi_clocks_event_reasons_counters_{name}_seconds": lambda gpu, since: since for name in _COUNTED},
    **{f"nvidia_smi_remapped_rows_{name}": lambda gpu, _: 1 for name in ("correctable", "uncorrectable")},
    **{f"nvidia_smi_pcie_throughput_{way}_bytes_per_second": lambda gpu, _: 1e6 * gpu.util for way in ("tx", "rx")},
    **{name: reading for name, reading in _metrics_of("nvidia_smi").items() if name},
}
_SMI_SPLIT: dict[str, Callable[[Instance], float]] = {
    "nvidia_smi_mig_memory_used_bytes": lambda instance: instance.used * 2**20,
    "nvidia_smi_mig_graphics_activity_ratio": lambda instance: int(instance.id) / 10,
    "nvidia_smi_mig_sm_activity_ratio": lambda instance: int(instance.id) / 10,
    "nvidia_smi_mig_tensor_activity_ratio": lambda instance: int(instance.id) / 20,
}
_SMI_DATA_CENTRE = ("nvidia_smi_temperature_memory", "nvidia_smi_ecc_", "nvidia_smi_remapped_")
_SMI_EVENTS = ("gpu_info", "last_collect_success", "xid_errors_total", "xid_last_timestamp_seconds")
NVIDIA_SMI_METRICS = frozenset({*_SMI, *_SMI_SPLIT, *(f"nvidia_smi_{name}" for name in _SMI_EVENTS)})
"""What the image with NVML exports with PCIe traffic asked for."""


def nvidia_smi(*, moment: int = END) -> list[Family]:
    """One scrape of nvidia_gpu_exporter on all nodes; ``__node__`` is for ``scraped``, as it says no node itself."""

    def of(gpu: Gpu, value: float, **more: str) -> Series:
        return Series(tuple({"__node__": gpu.node, "uuid": gpu.uuid, **more}.items()), value)

    def is_told(gpu: Gpu, name: str) -> bool:
        of_data_centre = name == "nvidia_smi_fan_speed_ratio"
        is_missing = of_data_centre if gpu.is_data_centre else name.startswith(_SMI_DATA_CENTRE)
        return not is_missing and not (gpu.instances and name.startswith("nvidia_smi_utilization_"))

    families = [
        Family(name, [of(gpu, reading(gpu, moment - START)) for gpu in FLEET if is_told(gpu, name)])
        for name, reading in _SMI.items()
    ]
    families += [
        Family(name, [of(gpu, reading(one), gpu_instance_id=one.id) for gpu in FLEET for one in gpu.instances])
        for name, reading in _SMI_SPLIT.items()
    ]
    xids = [(gpu, str(xid), count) for gpu in FLEET for xid, count in gpu.xids]
    # Only XID 79 came in the last five minutes.
    latest = [of(gpu, END - 60 if xid == "79" else START, xid=xid) for gpu, xid, _ in xids]
    infos = [of(gpu, 1, index=str(gpu.index), name=gpu.model, driver_version="570.133.07") for gpu in FLEET]
    return [
        *families,
        Family("nvidia_smi_gpu_info", infos),
        Family("nvidia_smi_last_collect_success", [Series((("__node__", node),), 1) for node in NODES]),
        Family("nvidia_smi_xid_errors_total", [of(gpu, count, xid=xid) for gpu, xid, count in xids]),
        Family("nvidia_smi_xid_last_timestamp_seconds", latest),
    ]


# --- kube-state-metrics ---------------------------------------------------------------------------------------


def kube_state() -> list[Family]:
    """What kube-state-metrics says of the cluster: slots of shared GPUs; pods that wait, are gated, have ended."""
    slots = {
        ("node-a", "nvidia_com_gpu"): (8, 4),
        ("node-b", "nvidia_com_gpu"): (1, 1),
        ("node-b", "nvidia_com_mig_1g_10gb"): (2, 2),
    }
    holders = [
        (pod, gpu.node)
        for gpu in FLEET
        for pod in (*gpu.pods_at(END), *(pod for instance in gpu.instances for pod in instance.pods))
    ]
    pods = [
        *((pod, node, "Running") for pod, node in holders),
        (Pod("waits", 0, 0), "", "Pending"),
        (Pod("is-gated", 0, 0), "", "Pending"),
        (Pod("has-ended", 0, 0), "node-a", "Succeeded"),
    ]
    told: dict[str, list[tuple[dict[str, str], float]]] = {}

    def tell(name: str, value: float, **labels: str) -> None:
        told.setdefault(f"kube_{name}", []).append((labels, value))

    for (node, resource), (capacity, allocatable) in slots.items():
        tell("node_status_capacity", capacity, node=node, resource=resource, unit="integer")
        tell("node_status_allocatable", allocatable, node=node, resource=resource, unit="integer")
    for pod, node, now in pods:
        whose = {"namespace": pod.namespace, "pod": pod.name, "uid": f"uid-{pod.name}"}
        # An init container that takes as many as the main one adds nothing.
        for kind, container in (("container", "main"), ("init_container", "before")):
            taken = {"container": container, "node": node, "resource": pod.resource, "unit": "integer"}
            tell(f"pod_{kind}_resource_requests", 1, **whose, **taken)
        for phase in ("Pending", "Running", "Succeeded", "Failed", "Unknown"):
            tell("pod_status_phase", int(phase == now), **whose, phase=phase)
        for condition in ("true", "false"):
            tell("pod_status_scheduled", int((condition == "true") == bool(node)), **whose, condition=condition)
        if pod.name == "waits":
            tell("pod_status_unschedulable", 1, **whose)
    target = {"instance": "10.0.0.9:8080", "job": "kube-state-metrics"}
    return [
        Family(name, [Series(tuple({**labels, **target}.items()), value) for labels, value in series])
        for name, series in told.items()
    ]
