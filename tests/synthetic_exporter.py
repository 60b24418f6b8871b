"""What the exporters would say of a small fleet, without a GPU: two nodes, and every way to hand out a GPU.

The text is laid out as theirs is: NVIDIA/dcgm-exporter@4.5.3-4.8.2 and @7ad58324 (release 4.6.0-4.8.3):
internal/pkg/rendermetrics, @3.3.6-3.4.2:pkg/dcgmexporter/pipeline.go;
utkuozdemir/nvidia_gpu_exporter@v1.14.0:internal/integration/testdata.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from gpu_constructs.observability.metrics import Metric, hostname_label, release_number

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

    @property
    def uid(self) -> str:
        return f"uid-{self.name}"


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

    @property
    def is_shared(self) -> bool:
        return len(self.pods) > 1

    def pods_at(self, moment: int) -> tuple[Pod, ...]:
        return self.later if self.later and moment >= START + SECONDS // 2 else self.pods


FLEET = (
    Gpu(
        "node-a",
        0,
        "NVIDIA GeForce RTX 3090",
        util=90,
        used=18000,
        total=24576,
        watts=300,
        limit=320,
        celsius=71,
        pods=(Pod("chat", 50, 9000), Pod("images", 30, 6000), Pod("speech", 10, 2500)),
        xids=((31, 2), (79, 1)),
    ),
    Gpu("node-a", 1, "NVIDIA GeForce RTX 3090", util=0, used=10, total=24576, watts=20, limit=320, celsius=33),
    Gpu(
        "node-b",
        0,
        "NVIDIA A100-SXM4-80GB",
        util=0,
        used=0,
        total=81920,
        watts=150,
        limit=400,
        celsius=45,
        is_data_centre=True,
        instances=(
            Instance("7", "1g.10gb", 4000, 10000, (Pod("notebook", 0, 4000, "nvidia_com_mig_1g_10gb"),)),
            Instance("8", "1g.10gb", 20, 10000),
        ),
    ),
    Gpu(
        "node-b",
        1,
        "NVIDIA H100 80GB HBM3",
        util=98,
        used=70000,
        total=81920,
        watts=650,
        limit=700,
        celsius=64,
        is_data_centre=True,
        pods=(Pod("train-0", 98, 70000),),
        later=(Pod("train-1", 98, 70000),),
    ),
)
WAITING = Pod("waits", 0, 0)
GATED = Pod("is-gated", 0, 0)
ENDED = Pod("has-ended", 0, 0)
XID_TEXTS = {0: "No Error", 31: "GPU memory page fault", 79: "GPU has fallen off the bus"}


class Series(NamedTuple):
    labels: Labels
    value: float


class Family(NamedTuple):
    name: str
    type: str
    help: str
    series: list[Series]


def exposition(families: Iterable[Family]) -> str:
    """The text of one scrape."""
    lines = []
    for family in families:
        lines += [f"# HELP {family.name} {family.help}", f"# TYPE {family.name} {family.type}"]
        lines += [f"{_series(family.name, one.labels)} {_number(one.value)}" for one in family.series]
    return "\n".join(lines) + "\n"


def history(scrapes: Mapping[int, Sequence[Family]]) -> list[str]:
    """The lines of many scrapes in OpenMetrics, with the moment of each, without the end mark."""
    heads: dict[str, list[str]] = {}
    points: dict[str, dict[str, list[str]]] = {}
    for moment, families in scrapes.items():
        for family in families:
            # A counter of OpenMetrics would have to end in _total.
            heads[family.name] = [f"# HELP {family.name} {family.help}", f"# TYPE {family.name} unknown"]
            of_family = points.setdefault(family.name, {})
            for one in family.series:
                name = _series(family.name, one.labels)
                of_family.setdefault(name, []).append(f"{name} {_number(one.value)} {moment}")
    return [
        line
        for name, series in points.items()
        for line in (*heads[name], *(point for of_one in series.values() for point in of_one))
    ]


def scraped(families: Iterable[Family], job: str) -> list[Family]:
    """The same as Prometheus keeps it: with the labels of the target, which the exporter's own win over."""
    kept = []
    for family in families:
        series = []
        for one in family.series:
            labels = dict(one.labels)
            on = labels.get("hostname") or labels.get("Hostname") or labels.pop("__node__", "")
            target = {"exporter_pod": f"{job}-{on}", "instance": f"{on}:9400", "job": job, "node": on}
            series.append(Series(tuple(sorted({**target, **labels}.items())), one.value))
        kept.append(family._replace(series=series))
    return kept


def up(job: str, *, down: Sequence[str] = ()) -> Family:
    """What Prometheus says of the exporters: one on each node."""
    nodes = sorted({gpu.node for gpu in FLEET})
    return Family(
        "up",
        "gauge",
        "Whether the last scrape worked",
        [
            Series(
                (("exporter_pod", f"{job}-{node}"), ("instance", f"{node}:9400"), ("job", job), ("node", node)),
                0 if node in down else 1,
            )
            for node in nodes
        ],
    )


def _series(name: str, labels: Labels) -> str:
    inside = ",".join(f'{key}="{value}"' for key, value in labels)
    return f"{name}{{{inside}}}" if inside else name


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


# --- dcgm-exporter --------------------------------------------------------------------------------------------

_Reading = Callable[[Gpu, int], float]
_DATA_CENTRE = ("MEMORY_TEMP", "ECC_", "ROW_REMAP", "REMAPPED_ROWS", "PROF_", "NVLINK_", "VGPU_")
_NOT_SPLIT = ("GPU_UTIL", "MEM_COPY_UTIL", "ENC_UTIL", "DEC_UTIL")
_OF_INSTANCE = ("FB_USED", "FB_FREE", "FB_RESERVED")

_DCGM: dict[str, _Reading] = {
    "SM_CLOCK": lambda gpu, _: 210 + 15 * gpu.util,
    "MEM_CLOCK": lambda gpu, _: 9751,
    "GPU_TEMP": lambda gpu, _: gpu.celsius,
    "MEMORY_TEMP": lambda gpu, _: gpu.celsius + 5,
    "SLOWDOWN_TEMP": lambda gpu, _: 95,
    "FAN_SPEED": lambda gpu, _: gpu.celsius,
    "POWER_USAGE": lambda gpu, _: gpu.watts,
    "TOTAL_ENERGY_CONSUMPTION": lambda gpu, since: 1000 * (5_000_000 + gpu.watts * since),
    "POWER_MGMT_LIMIT": lambda gpu, _: gpu.limit,
    "ENFORCED_POWER_LIMIT": lambda gpu, _: gpu.limit,
    "POWER_MGMT_LIMIT_MIN": lambda gpu, _: 100,
    "POWER_MGMT_LIMIT_MAX": lambda gpu, _: gpu.limit + 50,
    "POWER_MGMT_LIMIT_DEF": lambda gpu, _: gpu.limit + 30,
    "POWER_VIOLATION": lambda gpu, since: gpu.util * since * 1e7 / 2,
    "THERMAL_VIOLATION": lambda gpu, since: 0,
    "RELIABILITY_VIOLATION": lambda gpu, since: 0,
    "BOARD_LIMIT_VIOLATION": lambda gpu, since: 0,
    "GPU_UTIL": lambda gpu, _: gpu.util,
    "MEM_COPY_UTIL": lambda gpu, _: gpu.util // 2,
    "ENC_UTIL": lambda gpu, _: 0,
    "DEC_UTIL": lambda gpu, _: 0,
    "FB_USED": lambda gpu, _: gpu.used,
    "FB_FREE": lambda gpu, _: gpu.total - gpu.used - 500,
    "FB_RESERVED": lambda gpu, _: 500,
    "XID_ERRORS": lambda gpu, _: gpu.xids[-1][0] if gpu.xids else 0,
    "PCIE_REPLAY_COUNTER": lambda gpu, since: since // 60 * gpu.index,
    "UNCORRECTABLE_REMAPPED_ROWS": lambda gpu, _: 0,
    "CORRECTABLE_REMAPPED_ROWS": lambda gpu, _: 1,
    "ROW_REMAP_FAILURE": lambda gpu, _: 0,
    "ROW_REMAP_PENDING": lambda gpu, _: gpu.index,
    "ECC_SBE_VOL_TOTAL": lambda gpu, since: since // 600,
    "ECC_DBE_VOL_TOTAL": lambda gpu, since: 0,
    "GET_GPU_RECOVERY_ACTION": lambda gpu, _: 1 if gpu.xids else 0,
    "PSTATE": lambda gpu, _: 0 if gpu.util else 8,
    "PCIE_LINK_WIDTH": lambda gpu, _: 16 if gpu.index else 8,
    "PCIE_MAX_LINK_WIDTH": lambda gpu, _: 16,
    "NVLINK_BANDWIDTH_TOTAL": lambda gpu, _: 1e6,
    "VGPU_LICENSE_STATUS": lambda gpu, _: 0,
    **{
        f"{name}_ACTIVE": lambda gpu, _: gpu.util / 100
        for name in ("GR_ENGINE", "PIPE_TENSOR", "DRAM", "SM", "PIPE_FP64", "PIPE_FP32", "PIPE_FP16")
    },
    "SM_OCCUPANCY": lambda gpu, _: gpu.util / 200,
    **{f"{link}_{way}X_BYTES": lambda gpu, _: 1e6 * gpu.util for link in ("PCIE", "NVLINK") for way in "TR"},
}


def dcgm(metrics: Sequence[Metric], release: str, *, pods: PodsMode, moment: int = END) -> list[Family]:
    """One scrape of dcgm-exporter on all nodes.

    ``one``: the device plugin's allocation, whose last pod wins; ``all``: virtual GPUs with values per process.
    """
    constant = {metric.field: "570.133.07" for metric in metrics if metric.prometheus_type == "label"}
    return [
        Family(
            metric.field,
            metric.prometheus_type,
            metric.help,
            [series for gpu in FLEET for series in _of_gpu(metric.field, gpu, release, constant, pods, moment)],
        )
        for metric in metrics
        if metric.prometheus_type != "label"
    ]


def _of_gpu(
    field: str, gpu: Gpu, release: str, constant: dict[str, str], pods: PodsMode, moment: int
) -> Iterator[Series]:
    short = field.removeprefix("DCGM_FI_DEV_").removeprefix("DCGM_FI_PROF_")
    if not gpu.is_data_centre and any(part in field for part in _DATA_CENTRE):
        return
    if gpu.is_data_centre and short == "FAN_SPEED":
        return
    if gpu.instances and short in _NOT_SPLIT:
        return
    for instance in gpu.instances or (None,):
        holders = instance.pods if instance else gpu.pods_at(moment)
        for more, value in _values(field, short, gpu, instance, moment):
            base = _device_labels(gpu, instance, release)
            labels = {**constant, **{key: text for key, text in more.items() if not key.startswith("err_")}}
            attributes = {key: text for key, text in more.items() if key.startswith("err_")}

            def one(
                held: dict[str, str],
                value: float,
                base: Labels = base,
                labels: dict[str, str] = labels,
                attributes: dict[str, str] = attributes,
            ) -> Series:
                return Series((*base, *sorted(labels.items()), *sorted({**attributes, **held}.items())), value)

            if pods == "none" or not holders:
                yield one({}, value)
            elif pods == "one":
                yield one(_pod_labels(holders[-1]), value)
            else:
                own = {"GPU_UTIL": lambda pod: pod.util, "FB_USED": lambda pod: pod.vram}.get(short)
                if own:
                    yield one({}, value)
                for slot, pod in enumerate(holders):
                    held = {**_pod_labels(pod), "pod_uid": pod.uid, **({"vgpu": str(slot)} if gpu.is_shared else {})}
                    yield one(held, own(pod) if own else value)


def _device_labels(gpu: Gpu, instance: Instance | None, release: str) -> Labels:
    bus = (("pci_bus_id", f"00000000:0{gpu.index + 1}:00.0"),) if release_number(release) >= (4, 0, 0) else ()
    split = (("GPU_I_PROFILE", instance.profile), ("GPU_I_ID", instance.id)) if instance else ()
    return (
        ("gpu", str(gpu.index)),
        ("UUID", gpu.uuid),
        *bus,
        ("device", f"nvidia{gpu.index}"),
        ("modelName", gpu.model),
        *split,
        (hostname_label(release), gpu.node),
    )


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
        code = int(_DCGM[short](gpu, 0))
        yield {"err_code": str(code), "err_msg": XID_TEXTS[code]}, code
    elif instance and short in _OF_INSTANCE:
        free = instance.total - instance.used - 100
        yield {}, {"FB_USED": instance.used, "FB_FREE": free, "FB_RESERVED": 100}[short]
    elif instance and field.startswith("DCGM_FI_PROF_") and not field.endswith("_BYTES"):
        yield {}, int(instance.id) / 10
    else:
        yield {}, _DCGM[short](gpu, moment - START)


# --- nvidia_gpu_exporter --------------------------------------------------------------------------------------

_SMI: dict[str, tuple[str, _Reading]] = {
    "utilization_gpu_ratio": ("utilization.gpu [%]", lambda gpu, _: gpu.util / 100),
    "utilization_memory_ratio": ("utilization.memory [%]", lambda gpu, _: gpu.util / 200),
    "utilization_encoder_ratio": ("utilization.encoder [%]", lambda gpu, _: 0),
    "utilization_decoder_ratio": ("utilization.decoder [%]", lambda gpu, _: 0),
    "memory_used_bytes": ("memory.used [MiB]", lambda gpu, _: gpu.used * 2**20),
    "memory_free_bytes": ("memory.free [MiB]", lambda gpu, _: (gpu.total - gpu.used - 500) * 2**20),
    "memory_reserved_bytes": ("memory.reserved [MiB]", lambda gpu, _: 500 * 2**20),
    "temperature_gpu": ("temperature.gpu", lambda gpu, _: gpu.celsius),
    "temperature_memory": ("temperature.memory", lambda gpu, _: gpu.celsius + 5),
    "power_draw_watts": ("power.draw [W]", lambda gpu, _: gpu.watts),
    "power_limit_watts": ("power.limit [W]", lambda gpu, _: gpu.limit),
    "power_min_limit_watts": ("power.min_limit [W]", lambda gpu, _: 100),
    "power_max_limit_watts": ("power.max_limit [W]", lambda gpu, _: gpu.limit + 50),
    "power_default_limit_watts": ("power.default_limit [W]", lambda gpu, _: gpu.limit + 30),
    "enforced_power_limit_watts": ("enforced.power.limit [W]", lambda gpu, _: gpu.limit),
    "energy_joules_total": ("Energy since the driver was loaded.", lambda gpu, since: 5_000_000 + gpu.watts * since),
    "clocks_current_sm_clock_hz": ("clocks.current.sm [MHz]", lambda gpu, _: 1e6 * (210 + 15 * gpu.util)),
    "clocks_current_memory_clock_hz": ("clocks.current.memory [MHz]", lambda gpu, _: 9_751e6),
    "fan_speed_ratio": ("fan.speed [%]", lambda gpu, _: gpu.celsius / 100),
    "pstate": ("pstate", lambda gpu, _: 0 if gpu.util else 8),
    **{
        f"clocks_event_reasons_counters_{name}_seconds": (
            f"clocks_event_reasons_counters.{name} [us]",
            lambda gpu, since: gpu.util * since / 200,
        )
        for name in (
            "sw_power_cap",
            "sw_thermal_slowdown",
            "hw_thermal_slowdown",
            "hw_power_brake_slowdown",
            "sync_boost",
        )
    },
    **{
        f"clocks_event_reasons_{name}": (f"clocks_event_reasons.{name}", lambda gpu, _: 0)
        for name in (
            "gpu_idle applications_clocks_setting sw_power_cap sw_thermal_slowdown hw_thermal_slowdown "
            "hw_power_brake_slowdown hw_slowdown sync_boost"
        ).split()
    },
    "ecc_errors_corrected_volatile_total": ("ecc.errors.corrected.volatile.total", lambda gpu, since: since // 600),
    "ecc_errors_uncorrected_volatile_total": ("ecc.errors.uncorrected.volatile.total", lambda gpu, _: 0),
    "remapped_rows_pending": ("remapped_rows.pending", lambda gpu, _: gpu.index),
    "remapped_rows_failure": ("remapped_rows.failure", lambda gpu, _: 0),
    "remapped_rows_correctable": ("remapped_rows.correctable", lambda gpu, _: 1),
    "remapped_rows_uncorrectable": ("remapped_rows.uncorrectable", lambda gpu, _: 0),
    "gpu_recovery_action": ("gpu_recovery_action", lambda gpu, _: 1 if gpu.xids else 0),
    "pcie_link_width_current": ("pcie.link.width.current", lambda gpu, _: 16 if gpu.index else 8),
    "pcie_link_width_max": ("pcie.link.width.max", lambda gpu, _: 16),
    "pcie_throughput_tx_bytes_per_second": ("Bytes sent over PCIe per second.", lambda gpu, _: 1e6 * gpu.util),
    "pcie_throughput_rx_bytes_per_second": ("Bytes received over PCIe per second.", lambda gpu, _: 1e6 * gpu.util),
}
_SMI_SPLIT: dict[str, Callable[[Instance], float]] = {
    "mig_memory_used_bytes": lambda instance: instance.used * 2**20,
    "mig_graphics_activity_ratio": lambda instance: int(instance.id) / 10,
    "mig_sm_activity_ratio": lambda instance: int(instance.id) / 10,
    "mig_tensor_activity_ratio": lambda instance: int(instance.id) / 20,
}
_SMI_DATA_CENTRE = ("temperature_memory", "ecc_", "remapped_")
NVIDIA_SMI_METRICS = frozenset(
    f"nvidia_smi_{name}"
    for name in (
        *_SMI,
        *_SMI_SPLIT,
        "gpu_info",
        "last_collect_success",
        "xid_errors_total",
        "xid_last_timestamp_seconds",
    )
)
"""What the image with NVML exports with PCIe traffic asked for."""


def nvidia_smi(metrics: frozenset[str] = NVIDIA_SMI_METRICS, *, moment: int = END) -> list[Family]:
    """One scrape of nvidia_gpu_exporter on all nodes; ``__node__`` is for ``scraped``, as it says no node itself."""
    since = moment - START
    families = [
        Family(
            f"nvidia_smi_{name}",
            "counter" if name == "energy_joules_total" else "gauge",
            text,
            [
                Series((("__node__", gpu.node), ("uuid", gpu.uuid)), reading(gpu, since))
                for gpu in FLEET
                if gpu.is_data_centre or not name.startswith(_SMI_DATA_CENTRE)
                if not (gpu.instances and name.startswith("utilization_"))
                if not (gpu.is_data_centre and name == "fan_speed_ratio")
            ],
        )
        for name, (text, reading) in _SMI.items()
    ]
    families += [
        Family(
            f"nvidia_smi_{name}",
            "gauge",
            "Of an instance.",
            [
                Series(
                    (("__node__", gpu.node), ("gpu_instance_id", instance.id), ("uuid", gpu.uuid)), reading(instance)
                )
                for gpu in FLEET
                for instance in gpu.instances
            ],
        )
        for name, reading in _SMI_SPLIT.items()
    ]
    events = [(gpu, xid, count) for gpu in FLEET for xid, count in gpu.xids]
    families += [
        Family(
            "nvidia_smi_gpu_info",
            "gauge",
            "Identity of a GPU.",
            [
                Series(
                    (
                        ("__node__", gpu.node),
                        ("driver_version", "570.133.07"),
                        ("index", str(gpu.index)),
                        ("name", gpu.model),
                        ("pci_bus_id", f"00000000:0{gpu.index + 1}:00.0"),
                        ("uuid", gpu.uuid),
                    ),
                    1,
                )
                for gpu in FLEET
            ],
        ),
        Family(
            "nvidia_smi_last_collect_success",
            "gauge",
            "Whether the last collection worked.",
            [Series((("__node__", node),), 1) for node in sorted({gpu.node for gpu in FLEET})],
        ),
        Family(
            "nvidia_smi_xid_errors_total",
            "counter",
            "XIDs since the exporter started.",
            [Series((("__node__", g.node), ("uuid", g.uuid), ("xid", str(xid))), count) for g, xid, count in events],
        ),
        Family(
            "nvidia_smi_xid_last_timestamp_seconds",
            "gauge",
            "When the last XID came.",
            [
                Series((("__node__", g.node), ("uuid", g.uuid), ("xid", str(xid))), END - 60 if xid == 79 else START)
                for g, xid, _ in events
            ],
        ),
    ]
    return sorted((family for family in families if family.name in metrics), key=lambda family: family.name)


# --- kube-state-metrics ---------------------------------------------------------------------------------------


def kube_state() -> list[Family]:
    """What kube-state-metrics says of the cluster: slots of shared GPUs; pods that wait, are gated, have ended."""
    slots = {
        ("node-a", "nvidia_com_gpu"): (8, 4),
        ("node-b", "nvidia_com_gpu"): (1, 1),
        ("node-b", "nvidia_com_mig_1g_10gb"): (2, 2),
    }
    running = [
        (pod, gpu.node)
        for gpu in FLEET
        for pod in (*gpu.pods_at(END), *(pod for instance in gpu.instances for pod in instance.pods))
    ]
    pods = [
        *((pod, node, "Running") for pod, node in running),
        (WAITING, "", "Pending"),
        (GATED, "", "Pending"),
        (ENDED, "node-a", "Succeeded"),
    ]

    def of_node(number: int) -> list[Series]:
        return [
            Series((("node", node), ("resource", resource), ("unit", "integer")), values[number])
            for (node, resource), values in slots.items()
        ]

    def of_pod(pod: Pod) -> Labels:
        return (("namespace", pod.namespace), ("pod", pod.name), ("uid", pod.uid))

    families = [
        Family("kube_node_status_capacity", "gauge", "The total amount of resources.", of_node(0)),
        Family("kube_node_status_allocatable", "gauge", "The amount of resources for pods.", of_node(1)),
        Family(
            "kube_pod_container_resource_requests",
            "gauge",
            "The number of requested request resource by a container.",
            [
                Series(
                    (
                        *of_pod(pod),
                        ("container", "main"),
                        ("node", node),
                        ("resource", pod.resource),
                        ("unit", "integer"),
                    ),
                    1,
                )
                for pod, node, _ in pods
            ],
        ),
        # An init container that takes as many as the main one adds nothing.
        Family(
            "kube_pod_init_container_resource_requests",
            "gauge",
            "The number of requested request resource by an init container.",
            [
                Series((*of_pod(pod), ("container", "before"), ("node", node), ("resource", pod.resource)), 1)
                for pod, node, _ in pods
            ],
        ),
        Family(
            "kube_pod_status_unschedulable",
            "gauge",
            "Describes the unschedulable status for the pod.",
            [Series(of_pod(WAITING), 1)],
        ),
        Family(
            "kube_pod_status_phase",
            "gauge",
            "The pods current phase.",
            [
                Series((*of_pod(pod), ("phase", phase)), 1 if phase == now else 0)
                for pod, _, now in pods
                for phase in ("Pending", "Running", "Succeeded", "Failed", "Unknown")
            ],
        ),
        Family(
            "kube_pod_status_scheduled",
            "gauge",
            "Describes the status of the scheduling process for the pod.",
            [
                Series((*of_pod(pod), ("condition", condition)), 1 if (condition == "true") == bool(node) else 0)
                for pod, node, _ in pods
                for condition in ("true", "false")
            ],
        ),
    ]
    target = (("instance", "10.0.0.9:8080"), ("job", "kube-state-metrics"))
    return [
        family._replace(series=[Series((*one.labels, *target), one.value) for one in family.series])
        for family in families
    ]
