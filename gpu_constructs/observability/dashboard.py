"""The Grafana dashboard of a GPU exporter, as plain dicts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.observability.gpu_series import GpuSeries, Quantity, Query

DatasourceType = Literal["prometheus", "victoriametrics-metrics-datasource"]
"""Grafana's own data source, or the plugin of VictoriaMetrics."""

DEFAULT_UIDS = {"dcgm": "gpu-constructs-gpus", "nvidia_smi": "gpu-constructs-gpus-nvidia-smi"}
"""By dialect, so that both can live in one Grafana."""

DEFAULT_TITLES = {"dcgm": "NVIDIA GPUs", "nvidia_smi": "NVIDIA GPUs (nvidia-smi)"}
"""By dialect: Grafana wants titles to differ within a folder."""

_COLUMNS = 24

_Kind = Literal["stat", "timeseries", "bargauge", "table", "text"]
_Steps = Sequence[tuple[float, str]]

_HOT: _Steps = ((85, "orange"), (92, "red"))
_FULL: _Steps = ((0.9, "orange"), (0.97, "red"))
_ANY: _Steps = ((1, "red"),)
_SPENT: _Steps = ((1, "orange"),)

_RECOVERY = {"0": "nothing", "1": "GPU reset", "2": "node reboot", "3": "drain P2P", "4": "drain and reset"}
_YES_NO = {"0": "no", "1": "yes"}

_NOTHING: frozenset[str] = frozenset()


class _Target(NamedTuple):
    """One query, None where the exporter cannot answer it, and what its series are called."""

    query: Query | None
    legend: str = ""


class _Panel(NamedTuple):
    """One panel; its id is written down, so that panels left out never renumber the others."""

    id: int
    title: str
    kind: _Kind
    targets: Sequence[_Target] = ()
    width: int = 12
    height: int = 8
    unit: str = "none"
    steps: _Steps = ()
    maximum: float | None = None
    description: str = ""
    labels: Mapping[str, str] = {}
    """Of a table: titles of the columns that are labels."""
    values: Sequence[tuple[str, str]] = ()
    """Of a table: title and unit of the column of each query; an untitled one is hidden."""
    mappings: Mapping[str, Mapping[str, str]] = {}
    """Of a table: texts instead of values, by the column's title."""
    text: str = ""


class _Row(NamedTuple):
    id: int
    title: str
    panels: Sequence[_Panel]


def _join(template: str, *queries: Query | None) -> Query | None:
    """Put queries into an expression; None where one of them is missing."""
    known = [query for query in queries if query is not None]
    if len(known) < len(queries):
        return None
    needs = _NOTHING.union(*(query.needs for query in known))
    return Query(template.format(*(query.expr for query in known)), needs)


class _Ask:
    """Asks one exporter for the GPUs that the variables choose."""

    def __init__(self, series: GpuSeries) -> None:
        self.series = series
        self.is_dcgm = series.dialect == "dcgm"
        node, gpu, uuid, model = series.labels
        self.legend = f"{{{{{node}}}}} / GPU {{{{{gpu}}}}}"
        self.device_columns = {node: "Node", gpu: "GPU", model: "Model"}
        self.device = f"{node}, {gpu}, {uuid}"
        # Of a MIG GPU these columns and names say which instance it is.
        self.instance = ("GPU_I_ID",) if self.is_dcgm else ()
        self.instance_legend = f"{self.legend} {{{{GPU_I_ID}}}}" if self.is_dcgm else self.legend
        self.pod_labels = ("namespace", "pod", "container", *(("vgpu",) if series.pods == "all" else ()))

    def quantity(self, name: Quantity, over: str = "{}", by: Sequence[str] = (), where: str = "") -> Query | None:
        return self.series.quantity(name, over=over, node="$node", gpu="$gpu", by=by, where=where)

    def metric(self, name: str, over: str = "{}", by: Sequence[str] = (), where: str = "") -> Query | None:
        if not self.series.has(name):
            return None
        return self.series.metric(name, over=over, node="$node", gpu="$gpu", by=by, where=where)

    def each(self, query: Query | None, suffix: str = "") -> _Target:
        """One series per GPU."""
        return _Target(query, f"{self.legend}{suffix}")

    def each_instance(self, query: Query | None, suffix: str = "") -> _Target:
        """One series per GPU, per instance of one that is split."""
        return _Target(query, f"{self.instance_legend}{suffix}")

    def temperature(self, name: Quantity) -> Query | None:
        # Old exporters print a number near 2^63 for a sensor that is not there.
        return _join("({} < 200)", self.quantity(name))

    def vram_total(self) -> Query | None:
        used, free = self.quantity("vram_used"), self.quantity("vram_free")
        return _join("({} + {} + {})", used, free, self.quantity("vram_reserved")) or _join("({} + {})", used, free)

    def vram_share(self) -> Query | None:
        return _join("{} / {}", self.quantity("vram_used"), self.vram_total())

    def energy(self) -> Query | None:
        # Counted over one series per GPU: those of the exporter begin and end with the pods that use it.
        return _join("increase({}[$__range:1m]) / 3.6e6", self.quantity("energy"))

    def of_exporter(self, template: str, metric: str, needs: frozenset[str] = _NOTHING) -> Query | None:
        """Ask for something that is told of the exporter, not of its GPUs; None where nobody knows its job."""
        if self.series.job is None or not needs <= self.series.metrics:
            return None
        selector = f'{metric}{{job="{self.series.job}",node=~"$node"}}'
        return Query(template.format(selector), needs)


_ANCHORS: tuple[Quantity, ...] = ("temperature", "power", "sm_clock", "memory_clock", "utilization", "vram_used")


def _anchor(series: GpuSeries) -> str:
    """Name the metric that tells which GPUs, nodes and pods there are."""
    if series.dialect == "nvidia_smi":
        return "nvidia_smi_gpu_info"
    known = (name for name in map(series.name_of, _ANCHORS) if name in series.metrics)
    return next(known, None) or min(series.metrics)


def _stat(
    id: int, title: str, *targets: _Target, unit: str = "none", steps: _Steps = (), description: str = ""
) -> _Panel:
    return _Panel(id, title, "stat", targets, width=4, height=4, unit=unit, steps=steps, description=description)


def _graph(id: int, title: str, *targets: _Target, **options: Any) -> _Panel:
    return _Panel(id, title, "timeseries", targets, **options)


def _fleet(ask: _Ask, anchor: str) -> _Row:
    used, power, limit = ask.quantity("vram_used"), ask.quantity("power"), ask.quantity("power_limit")
    gpus = _join(
        f"count(count by ({ask.series.labels.uuid}) ({{}}))", ask.series.metric(anchor, node="$node", gpu="$gpu")
    )
    collected = "nvidia_smi_last_collect_success"
    if ask.is_dcgm:
        window = _join("sum({}) or vector(0)", ask.metric("DCGM_EXP_XID_ERRORS_COUNT", by=("xid",)))
        ever = _join("count({} > 0) or vector(0)", ask.metric("DCGM_FI_DEV_XID_ERRORS"))
    else:
        last = ask.metric("nvidia_smi_xid_last_timestamp_seconds", by=("xid",))
        window = _join("count(time() - {} < 300) or vector(0)", last)
        ever = None
    return _Row(
        1,
        "Fleet",
        [
            _stat(11, "GPUs", _Target(gpus)),
            _stat(
                10,
                "Exporters up",
                _Target(ask.of_exporter("sum({})", "up"), "up"),
                _Target(ask.of_exporter("count({})", "up"), "of"),
                _Target(ask.of_exporter("sum({})", collected, frozenset({collected})), "read their GPUs"),
            ),
            _stat(12, "Mean utilisation", _Target(_join("avg({})", ask.quantity("utilization"))), unit="percent"),
            _stat(13, "VRAM used", _Target(_join("sum({})", used)), unit="mbytes"),
            _stat(
                14,
                "VRAM share",
                _Target(_join("sum({}) / sum({})", used, ask.vram_total())),
                unit="percentunit",
                steps=_FULL,
            ),
            _stat(
                15,
                "Hottest GPU",
                _Target(_join("topk(1, {})", ask.temperature("temperature")), ask.legend),
                unit="celsius",
                steps=_HOT,
            ),
            _stat(
                16,
                "Power and limit",
                _Target(_join("sum({})", power), "now"),
                _Target(_join("sum({})", limit), "limit"),
                unit="watt",
            ),
            _stat(
                19,
                "Power, share of limit",
                _Target(_join("sum({} and {}) / sum({} and {})", power, limit, limit, power)),
                unit="percentunit",
                description="What all GPUs draw of what all their limits allow.",
            ),
            _stat(17, "Energy in time range", _Target(_join("sum({})", ask.energy())), unit="kwatth"),
            _stat(
                110,
                "XIDs, last 5 minutes",
                _Target(window),
                steps=_ANY,
                description=""
                if ask.is_dcgm
                else "Kinds of XID that came in the last five minutes, counted by GPU and code.",
            ),
            _stat(
                18,
                "GPUs with an XID",
                _Target(ever),
                steps=_SPENT,
                description="Since the exporter started: it forgets the code only then.",
            ),
            _stat(
                111,
                "GPUs to be reset",
                _Target(_join("count({} > 0) or vector(0)", ask.quantity("recovery_action"))),
                steps=_ANY,
                description="GPUs whose driver asks for a reset or a reboot; which, the table under Errors tells.",
            ),
        ],
    )


def _gpus(ask: _Ask) -> _Row:
    each, quantity = ask.each, ask.quantity
    panels = [
        _graph(
            21,
            "Utilisation",
            each(quantity("utilization")),
            unit="percent",
            maximum=100,
            description="Share of time in which any kernel ran, not how much of the GPU was busy. "
            "A GPU that is split by MIG reports none.",
        ),
        _graph(22, "VRAM used", ask.each_instance(quantity("vram_used")), unit="mbytes"),
        _graph(23, "VRAM share", ask.each_instance(ask.vram_share()), unit="percentunit", maximum=1),
        _graph(
            24,
            "Temperature",
            each(ask.temperature("temperature")),
            each(ask.temperature("memory_temperature"), " memory"),
            unit="celsius",
        ),
        _graph(25, "SM clock", each(_join("{} * 1e6", quantity("sm_clock"))), unit="hertz"),
        _graph(26, "Memory clock", each(_join("{} * 1e6", quantity("memory_clock"))), unit="hertz"),
        _graph(
            27,
            "Memory transfer time",
            each(quantity("copy_utilization")),
            unit="percent",
            maximum=100,
            description="Share of time in which memory was read or written, not how full it is.",
        ),
        _graph(
            28,
            "Video encoder and decoder",
            each(quantity("encoder_utilization"), " encoder"),
            each(quantity("decoder_utilization"), " decoder"),
            unit="percent",
            maximum=100,
        ),
        _graph(29, "Fan", each(quantity("fan_speed")), unit="percent", width=8, description="Absent without a fan."),
        _graph(
            201,
            "Performance state",
            each(quantity("performance_state")),
            width=8,
            description="0 is the fastest, 15 the slowest.",
        ),
        _graph(
            20,
            "PCIe lanes",
            each(quantity("pcie_link_width")),
            each(quantity("pcie_max_link_width"), " limit"),
            width=8,
            description="Fewer than GPU and slot have: a bad slot, riser or cable, or lanes shared with another slot.",
        ),
    ]
    if not ask.is_dcgm:
        panels.append(_traffic(ask, 64, "PCIe traffic", "nvidia_smi_pcie_throughput_{}x_bytes_per_second"))
    return _Row(2, "GPUs", panels)


def _traffic(ask: _Ask, id: int, title: str, metric: str) -> _Panel:
    # Rates already, as the driver measures them.
    t, r = ("T", "R") if ask.is_dcgm else ("t", "r")
    sent, received = (ask.metric(metric.format(letter)) for letter in (t, r))
    return _graph(id, title, ask.each(sent, " sent"), ask.each(received, " received"), unit="Bps", width=8)


_HELD_BACK: dict[str, tuple[tuple[str, str, str], ...]] = {
    "dcgm": (
        ("DCGM_FI_DEV_POWER_VIOLATION", " / 1e9", "power limit"),
        ("DCGM_FI_DEV_THERMAL_VIOLATION", " / 1e9", "temperature"),
        ("DCGM_FI_DEV_RELIABILITY_VIOLATION", " / 1e9", "reliability"),
        ("DCGM_FI_DEV_BOARD_LIMIT_VIOLATION", " / 1e9", "limit of the board"),
    ),
    "nvidia_smi": tuple(
        (f"nvidia_smi_clocks_event_reasons_counters_{name}_seconds", "", text)
        for name, text in (
            ("sw_power_cap", "power limit"),
            ("sw_thermal_slowdown", "temperature, by software"),
            ("hw_thermal_slowdown", "temperature, by hardware"),
            ("hw_power_brake_slowdown", "power brake"),
            ("sync_boost", "sync boost"),
        )
    ),
}
_CLOCK_EVENTS = (
    ("gpu_idle", "idle"),
    ("applications_clocks_setting", "clocks that are set"),
    ("sw_power_cap", "power limit"),
    ("sw_thermal_slowdown", "temperature, by software"),
    ("hw_thermal_slowdown", "temperature, by hardware"),
    ("hw_power_brake_slowdown", "power brake"),
    ("hw_slowdown", "hardware slowdown"),
    ("sync_boost", "sync boost"),
)


def _power(ask: _Ask) -> _Row:
    power, limit = ask.quantity("power"), ask.quantity("power_limit")
    held_back = [
        ask.each(_join(f"{{}}{scale}", ask.metric(name, "rate({}[$__rate_interval])")), f" {reason}")
        for name, scale, reason in _HELD_BACK[ask.series.dialect]
    ]
    if ask.is_dcgm:
        count = ask.metric("DCGM_EXP_CLOCK_EVENTS_COUNT", by=("clock_event",), where='clock_event!=""')
        events = [ask.each(count, " {{clock_event}}")]
        told = "Readings of the last five minutes at which a reason held clocks back, by reason."
    else:
        events = [
            ask.each(ask.metric(f"nvidia_smi_clocks_event_reasons_{name}"), f" {text}") for name, text in _CLOCK_EVENTS
        ]
        told = "1 while a reason holds clocks back."
    limits: tuple[tuple[Quantity, str], ...] = (
        ("power", "Draw"),
        ("power_limit", "Limit"),
        ("enforced_power_limit", "Enforced limit"),
        ("power_limit_default", "Board's default"),
        ("power_limit_min", "Lowest limit"),
        ("power_limit_max", "Highest limit"),
    )
    return _Row(
        3,
        "Power",
        [
            _graph(31, "Power and limit", ask.each(power), ask.each(limit, " limit"), unit="watt"),
            _graph(33, "Draw as a share of the limit", ask.each(_join("{} / {}", power, limit)), unit="percentunit"),
            _graph(
                34,
                "Time held back, by reason",
                *held_back,
                unit="percentunit",
                description="Share of time in which clocks were lower than asked for.",
            ),
            _graph(35, "Clock events, by reason", *events, description=told),
            _Panel(32, "Energy in time range", "bargauge", [ask.each(ask.energy())], unit="kwatth", width=8),
            _Panel(
                36,
                "Power limits",
                "table",
                [_Target(ask.quantity(name)) for name, _ in limits],
                width=16,
                description="The limit that is set, what the driver enforces, and the range that the board takes.",
                labels=ask.device_columns,
                values=[(title, "watt") for _, title in limits],
            ),
        ],
    )


_WHOLE_GPU = "power, temperature, clocks and errors belong to the whole GPU"
_POD_NOTES = {
    "all": (
        "**Utilisation and VRAM are each pod's own**, also where pods share a GPU; a pod with several containers "
        f"or slots shows its whole use at each of them. **The rest is not divided**: {_WHOLE_GPU}, and each pod that "
        "shares it shows the same value. Never add those up over pods.\n\nA MIG instance has VRAM of its own; how "
        "busy it is, *Engine active* under *Profiling* tells."
    ),
    "one": (
        "**All values are those of the whole GPU**, or of the MIG instance for VRAM. Where pods share a GPU by "
        f"time-slicing, only one of them is named here: the others are missing, and {_WHOLE_GPU}. Never add values "
        "up over pods."
    ),
}


def _pods(ask: _Ask, anchor: str) -> _Row:
    pods = ask.series.pods
    if pods == "none":
        return _Row(4, "Pods", [])
    chosen = 'namespace=~"$namespace",pod=~"$pod",pod!=""'
    own = "The pod's own use." if pods == "all" else "The use of the whole GPU, under the pod that is named for it."
    by = (*ask.instance, *ask.pod_labels)

    def by_pod(name: Quantity) -> Query | None:
        return ask.quantity(name, by=(*ask.instance, "namespace", "pod"), where=chosen)

    legend = "{{namespace}}/{{pod}} @ " + ask.instance_legend
    shared = (*ask.instance, "namespace", "pod")
    per_gpu = ", ".join((ask.device, *ask.instance))
    sharing = _join(f"count by ({per_gpu}) ({{}})", ask.metric(anchor, by=shared, where='pod!=""'))
    of_gpu = "" if pods == "all" else " of the GPU"
    values = [
        (f"Utilisation{of_gpu}", "percent"),
        (f"VRAM used{of_gpu}", "mbytes"),
        ("Power of the GPU", "watt"),
        ("Temperature of the GPU", "celsius"),
    ]
    quantities: tuple[Quantity, ...] = ("utilization", "vram_used", "power", "temperature")
    return _Row(
        4,
        "Pods",
        [
            _Panel(45, "What is per pod", "text", width=6, height=10, text=_POD_NOTES[pods]),
            _Panel(
                41,
                "Pods with a GPU",
                "table",
                [_Target(ask.quantity(name, by=by, where=chosen)) for name in quantities],
                width=18,
                height=10,
                description="Needs series that keep the workload's own pod label (honorLabels).",
                labels={
                    "namespace": "Namespace",
                    "pod": "Pod",
                    "container": "Container",
                    **({"vgpu": "Slot"} if pods == "all" else {}),
                    **ask.device_columns,
                    **dict.fromkeys(ask.instance, "MIG instance"),
                },
                values=values,
            ),
            _graph(
                42,
                "Utilisation by pod",
                _Target(by_pod("utilization"), legend),
                unit="percent",
                description=own,
                width=8,
            ),
            _graph(43, "VRAM by pod", _Target(by_pod("vram_used"), legend), unit="mbytes", description=own, width=8),
            *(
                [
                    _graph(
                        44,
                        "Pods per GPU",
                        ask.each_instance(sharing),
                        width=8,
                        description="How many pods share a GPU or a MIG instance.",
                    )
                ]
                if pods == "all"
                else []
            ),
        ],
    )


_RESOURCES = 'resource=~"nvidia_com_.*"'


def _scheduling() -> _Row:
    def ask(expr: str) -> Query:
        return Query(expr, _NOTHING)

    def per_node(name: str, more: str = "") -> str:
        return f"max by (node, resource) (kube_node_status_{name}{{{_RESOURCES}{more}}})"

    by = "by (namespace, pod, node, resource)"

    def requests(more: str = "") -> str:
        # Of containers together, or of the init container that takes most, if that is more.
        asked = f"container_resource_requests{{{_RESOURCES}{more}}}"
        together = f"sum {by} (max by (namespace, pod, container, node, resource) (kube_pod_{asked}))"
        before = f"max {by} (kube_pod_init_{asked})"
        kinds = f'label_replace({together}, "of", "all", "", "") or label_replace({before}, "of", "init", "", "")'
        return f"max {by} ({kinds})"

    alive = 'max by (namespace, pod) (kube_pod_status_phase{phase=~"Pending|Running"} == 1)'
    waiting = "max by (namespace, pod) (kube_pod_status_unschedulable == 1)"
    placed = f'(max by (namespace, pod) (kube_pod_status_scheduled{{condition="true"}} == 1) or {waiting})'

    def requested(more: str = "") -> str:
        # What pods that have ended asked for is still told, and that of gated pods is told already.
        return f"({requests(more)} and on (namespace, pod) {alive} and on (namespace, pod) {placed})"

    allocatable = per_node("allocatable")
    here = ',node=~"$node",node!=""'
    return _Row(
        7,
        "Scheduling",
        [
            _graph(
                71,
                "Requested and allocatable",
                _Target(ask(f"sum by (resource) ({requested()})"), "{{resource}}"),
                _Target(ask(f"sum by (resource) ({allocatable})"), "{{resource}} limit"),
                width=8,
                description="In the whole cluster. Where GPUs are shared, the resource counts slots.",
            ),
            _Panel(
                72,
                "Requested share",
                "bargauge",
                [
                    _Target(
                        ask(f"sum by (resource) ({requested()}) / (sum by (resource) ({allocatable}) > 0)"),
                        "{{resource}}",
                    )
                ],
                width=4,
                unit="percentunit",
                steps=_SPENT,
                maximum=1,
                description="Above 1, pods are waiting.",
            ),
            _Panel(
                73,
                "Pods waiting for a GPU",
                "table",
                [_Target(ask(f"sum by (namespace, pod, resource) ({requests()}) and on (namespace, pod) {waiting}"))],
                description="Pods that ask for a GPU and fit no node; those held back by a gate do not wait for one.",
                labels={"namespace": "Namespace", "pod": "Pod", "resource": "Resource"},
                values=[("Asks for", "none")],
            ),
            _Panel(
                74,
                "Nodes",
                "table",
                [
                    _Target(ask(per_node("capacity", here))),
                    _Target(ask(per_node("allocatable", here))),
                    _Target(ask(f"sum by (node, resource) ({requested(here)})")),
                ],
                width=24,
                description="Allocatable below capacity: the device plugin took a GPU for broken.",
                labels={"node": "Node", "resource": "Resource"},
                values=[("Capacity", "none"), ("Allocatable", "none"), ("Requested", "none")],
            ),
        ],
    )


def _errors(ask: _Ask) -> _Row:
    each, quantity = ask.each, ask.quantity
    per_minute = "rate({}[$__rate_interval])"
    if ask.is_dcgm:
        last = ask.metric("DCGM_FI_DEV_XID_ERRORS", by=("err_code", "err_msg"))
        # So that both stand in one line, the code gets the name that it has in the count.
        named = _join('label_replace({} > 0, "xid", "$1", "err_code", "(.+)")', last)
        xids = _Panel(
            51,
            "XIDs",
            "table",
            [_Target(_join("{} > 0", ask.metric("DCGM_EXP_XID_ERRORS_COUNT", by=("xid",)))), _Target(named)],
            description="How often in the last five minutes, and the last code of each GPU since the exporter "
            "started; empty when there was none.",
            labels={**ask.device_columns, "xid": "XID", "err_msg": "Meaning"},
            values=[("In 5 minutes", "none"), ("Last code", "none")],
        )
    else:
        xids = _Panel(
            51,
            "XIDs",
            "table",
            [
                _Target(ask.metric("nvidia_smi_xid_errors_total", by=("xid",))),
                _Target(_join("{} * 1000", ask.metric("nvidia_smi_xid_last_timestamp_seconds", by=("xid",)))),
            ],
            description="Since the exporter started; empty when there was none.",
            labels={**ask.device_columns, "xid": "XID"},
            values=[("Since start", "none"), ("Last", "dateTimeFromNow")],
        )
    state = (
        quantity("recovery_action"),
        quantity("row_remap_pending"),
        quantity("row_remap_failure"),
    )
    if ask.is_dcgm:
        replays = ask.metric("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", per_minute)
        uncorrectable = ask.metric("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS")
        correctable = ask.metric("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS")
    else:
        replays = None
        uncorrectable = ask.metric("nvidia_smi_remapped_rows_uncorrectable")
        correctable = ask.metric("nvidia_smi_remapped_rows_correctable")
    return _Row(
        5,
        "Errors",
        [
            xids,
            _Panel(
                55,
                "What the driver asks for",
                "table",
                [_Target(query) for query in state],
                description="Absent on GPUs that do not report it; rows are remapped on data centre GPUs only.",
                labels=ask.device_columns,
                values=[("Recovery", "none"), ("Reset to remap rows", "none"), ("Out of spare rows", "none")],
                mappings={"Recovery": _RECOVERY, "Reset to remap rows": _YES_NO, "Out of spare rows": _YES_NO},
            ),
            _graph(
                54,
                "ECC errors since the driver started",
                each(quantity("ecc_uncorrected"), " uncorrected"),
                each(quantity("ecc_corrected"), " corrected"),
                width=8,
                description="Absent on GPUs without ECC, as most GeForce.",
            ),
            _graph(
                53,
                "Remapped memory rows",
                each(uncorrectable, " uncorrectable"),
                each(correctable, " correctable"),
                width=8,
                description="Absent on GeForce.",
            ),
            _graph(
                52,
                "PCIe replays per minute",
                each(_join("{} * 60", replays)),
                width=8,
                description="Packets sent again. A steady stream of them means a bad slot, riser or cable.",
            ),
        ],
    )


def _profiling(ask: _Ask) -> _Row:
    if not ask.is_dcgm:
        return _Row(6, "Profiling", [])

    def share(id: int, title: str, *fields: tuple[str, str], description: str = "") -> _Panel:
        # Of a MIG GPU each instance has its own. Shares of time already, never to be derived.
        targets = [
            ask.each_instance(ask.metric(f"DCGM_FI_PROF_{name}", by=ask.instance), suffix) for name, suffix in fields
        ]
        return _graph(id, title, *targets, unit="percentunit", maximum=1, description=description, width=8)

    return _Row(
        6,
        "Profiling (empty on GeForce before Blackwell)",
        [
            share(
                61,
                "Engine active",
                ("GR_ENGINE_ACTIVE", ""),
                description="Share of time in which the graphics or compute engine was busy, also of a MIG instance.",
            ),
            share(62, "Tensor pipe active", ("PIPE_TENSOR_ACTIVE", "")),
            share(63, "Memory interface active", ("DRAM_ACTIVE", "")),
            share(
                65,
                "Multiprocessors",
                ("SM_ACTIVE", " active"),
                ("SM_OCCUPANCY", " occupancy"),
                description="Active: time in which a multiprocessor had work. Occupancy: warps resident of those "
                "that fit.",
            ),
            share(
                66,
                "Floating point pipes",
                ("PIPE_FP64_ACTIVE", " FP64"),
                ("PIPE_FP32_ACTIVE", " FP32"),
                ("PIPE_FP16_ACTIVE", " FP16"),
            ),
            _traffic(ask, 64, "PCIe traffic", "DCGM_FI_PROF_PCIE_{}X_BYTES"),
            _traffic(ask, 67, "NVLink traffic", "DCGM_FI_PROF_NVLINK_{}X_BYTES"),
        ],
    )


def _instances(ask: _Ask) -> _Row:
    """What nvidia_gpu_exporter tells of MIG under names of its own."""

    def each(name: str, suffix: str = "", scale: str = "") -> _Target:
        query = ask.metric(f"nvidia_smi_mig_{name}", by=("gpu_instance_id",))
        return _Target(_join(f"{{}}{scale}", query), f"{ask.legend} {{{{gpu_instance_id}}}}{suffix}")

    return _Row(
        8,
        "MIG instances",
        [
            _graph(81, "VRAM used", each("memory_used_bytes"), unit="bytes"),
            _graph(
                82,
                "Activity",
                each("graphics_activity_ratio", " engine"),
                each("sm_activity_ratio", " multiprocessors"),
                each("tensor_activity_ratio", " tensor pipe"),
                unit="percentunit",
                maximum=1,
                description="From Hopper on.",
            ),
        ],
    )


def _rows(series: GpuSeries, anchor: str, kube_state_metrics: bool) -> Iterator[_Row]:
    ask = _Ask(series)
    yield _fleet(ask, anchor)
    yield _gpus(ask)
    if not ask.is_dcgm:
        yield _instances(ask)
    yield _power(ask)
    yield _pods(ask, anchor)
    if kube_state_metrics:
        yield _scheduling()
    yield _errors(ask)
    yield _profiling(ask)


class _Grafana(NamedTuple):
    """Writes panels as Grafana reads them."""

    datasource: Mapping[str, str]
    interval: str
    """Between two scrapes: without it Grafana takes its data source's for ``$__rate_interval``."""

    def target(self, letter: str, target: _Target, kind: _Kind) -> dict[str, Any]:
        is_graph = kind == "timeseries"
        return {
            "refId": letter,
            "datasource": dict(self.datasource),
            "editorMode": "code",
            "expr": target.query.expr if target.query else "",
            "interval": self.interval,
            "format": "table" if kind == "table" else "time_series",
            "instant": not is_graph,
            "range": is_graph,
            **({"legendFormat": target.legend} if target.legend else {}),
        }

    def panel(self, panel: _Panel, place: dict[str, int]) -> dict[str, Any]:
        written: dict[str, Any] = {"id": panel.id, "type": panel.kind, "title": panel.title, "gridPos": place}
        if panel.kind == "text":
            return {**written, "options": {"mode": "markdown", "content": panel.text}}
        targets = dict(_answered(panel))
        if panel.description:
            written["description"] = panel.description
        written |= {
            "datasource": dict(self.datasource),
            "targets": [self.target(letter, target, panel.kind) for letter, target in targets.items()],
            "fieldConfig": _field_config(panel, targets),
            "options": _options(panel, targets.values()),
        }
        if panel.kind == "table":
            written["transformations"] = _transformations(panel, list(targets))
        return written

    def variable(self, name: str, label: str, query: str) -> dict[str, Any]:
        return {
            "name": name,
            "label": label,
            "type": "query",
            "datasource": dict(self.datasource),
            "definition": query,
            "query": {"query": query, "refId": name},
            "refresh": 2,
            "sort": 3,
            "multi": True,
            "includeAll": True,
            "allValue": ".*",
            "current": {"text": ["All"], "value": ["$__all"]},
        }


def _answered(panel: _Panel) -> Iterator[tuple[str, _Target]]:
    """Give the queries that the exporter can answer, each under its letter, which it keeps without the others."""
    return ((letter, one) for letter, one in zip("ABCDEFGH", panel.targets, strict=False) if one.query is not None)


def _columns(panel: _Panel, letters: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Give title and unit of each value of a table; Grafana numbers the values of several queries only."""
    values = {f"Value #{letter}": panel.values["ABCDEFGH".index(letter)] for letter in letters}
    return values if len(values) > 1 else dict.fromkeys(["Value"], *values.values())


def _field_config(panel: _Panel, targets: Mapping[str, _Target]) -> dict[str, Any]:
    steps = [{"color": "text", "value": None}, *({"color": color, "value": value} for value, color in panel.steps)]
    defaults: dict[str, Any] = {"unit": panel.unit, "thresholds": {"mode": "absolute", "steps": steps}}
    overrides: list[dict[str, Any]] = []
    if panel.kind == "table":
        for title, unit in _columns(panel, targets).values():
            properties: list[dict[str, Any]] = [{"id": "unit", "value": unit}]
            if title in panel.mappings:
                texts = {value: {"text": text} for value, text in panel.mappings[title].items()}
                properties.append({"id": "mappings", "value": [{"type": "value", "options": texts}]})
            overrides.append({"matcher": {"id": "byName", "options": title}, "properties": properties})
        return {"defaults": defaults, "overrides": overrides}
    defaults["min"] = 0
    if panel.maximum is not None:
        defaults["max"] = panel.maximum
    if panel.kind == "timeseries":
        defaults |= {"color": {"mode": "palette-classic"}, "custom": {"lineWidth": 1, "showPoints": "never"}}
        if any(target.legend.endswith(" limit") for target in targets.values()):
            dashed = {"id": "custom.lineStyle", "value": {"fill": "dash", "dash": [8, 8]}}
            overrides.append({"matcher": {"id": "byRegexp", "options": "/ limit$/"}, "properties": [dashed]})
    else:
        defaults["color"] = {"mode": "thresholds"}
    return {"defaults": defaults, "overrides": overrides}


def _options(panel: _Panel, targets: Iterable[_Target]) -> dict[str, Any]:
    reduce = {"calcs": ["lastNotNull"], "fields": "", "values": False}
    if panel.kind == "timeseries":
        calcs = ["lastNotNull", "max"]
        return {
            "legend": {"displayMode": "table", "placement": "bottom", "calcs": calcs, "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"},
        }
    if panel.kind == "bargauge":
        return {"displayMode": "basic", "orientation": "horizontal", "showUnfilled": True, "reduceOptions": reduce}
    if panel.kind == "stat":
        is_named = any(target.legend for target in targets)
        text = "value_and_name" if is_named else "value"
        return {"colorMode": "value", "graphMode": "none", "textMode": text, "reduceOptions": reduce}
    return {"showHeader": True}


def _transformations(panel: _Panel, letters: Sequence[str]) -> list[dict[str, Any]]:
    values = _columns(panel, letters)
    renamed = {**panel.labels, **{value: title for value, (title, _) in values.items()}}
    index = {name: number for number, name in enumerate(renamed)}
    organize = {"excludeByName": dict.fromkeys(_HIDDEN, True), "indexByName": index, "renameByName": renamed}
    return [{"id": "merge", "options": {}}, {"id": "organize", "options": organize}]


_HIDDEN = ("Time", "UUID", "uuid", "err_code")


def _place(rows: Iterable[_Row], grafana: _Grafana) -> list[dict[str, Any]]:
    """Lay the panels out from left to right, without those that have nothing to show, each line filled."""
    placed: list[dict[str, Any]] = []
    y = 0
    for row in rows:
        lines: list[list[_Panel]] = []
        for panel in row.panels:
            if panel.kind != "text" and not any(_answered(panel)):
                continue
            if not lines or sum(one.width for one in lines[-1]) + panel.width > _COLUMNS:
                lines.append([])
            lines[-1].append(panel)
        if all(panel.kind == "text" for line in lines for panel in line):
            continue
        head = {"id": row.id, "type": "row", "title": row.title, "collapsed": False, "panels": []}
        placed.append({**head, "gridPos": {"x": 0, "y": y, "w": _COLUMNS, "h": 1}})
        y += 1
        for line in lines:
            taken, height, x = sum(panel.width for panel in line), max(panel.height for panel in line), 0
            for panel in line:
                width = _COLUMNS - x if panel is line[-1] else panel.width * _COLUMNS // taken
                placed.append(grafana.panel(panel, {"x": x, "y": y, "w": width, "h": height}))
                x += width
            y += height
    return placed


def _variables(series: GpuSeries, anchor: str, grafana: _Grafana) -> Iterator[dict[str, Any]]:
    node, gpu, _, _ = series.labels
    job = [f'job="{series.job}"'] if series.job is not None else []
    chosen = f'{node}=~"$node"'

    def values(label: str, *matchers: str) -> str:
        inside = ",".join([*job, *matchers])
        return f"label_values({anchor}{{{inside}}}, {label})" if inside else f"label_values({anchor}, {label})"

    yield grafana.variable("node", "Node", values(node))
    yield grafana.variable("gpu", "GPU", values(gpu, chosen))
    if series.pods != "none":
        used = (chosen, f'{gpu}=~"$gpu"', 'pod!=""')
        yield grafana.variable("namespace", "Namespace", values("namespace", *used))
        yield grafana.variable("pod", "Pod", values("pod", *used, 'namespace=~"$namespace"'))


def dashboard(
    series: GpuSeries,
    *,
    title: str | None = None,
    uid: str | None = None,
    datasource_type: DatasourceType = "prometheus",
    kube_state_metrics: bool = True,
    refresh: str = "1m",
) -> dict[str, Any]:
    """Give a Grafana dashboard that asks only for metrics which the exporter publishes.

    A panel whose metrics are not among them is left out, and a row without panels too. Every query on GPUs
    first takes one value per GPU, so that those that pods share are never counted twice. Panel ids and the uid
    never change. Needs Grafana 10.4 or newer.

    Args:
        series: What the exporter publishes, its ``series``.
        title: Title of the dashboard; None: ``NVIDIA GPUs``, for nvidia_gpu_exporter with ``(nvidia-smi)``.
        uid: Its identity in Grafana: two dashboards in one Grafana need two. None: one per dialect.
        datasource_type: What the metrics are read from: ``prometheus``, which also reads VictoriaMetrics, or
            ``victoriametrics-metrics-datasource``, the plugin of VictoriaMetrics.
        kube_state_metrics: Whether to show what is requested and what waits, from kube-state-metrics.
        refresh: How often the panels are read anew; ``""`` for never.

    Raises:
        GpuConstructsError: No metric is known to be exported.
    """
    if not series.metrics:
        raise GpuConstructsError(
            "exporter must export metrics that are known here; got none; give it metrics='recommended' or a list"
        )
    anchor = _anchor(series)
    grafana = _Grafana({"type": datasource_type, "uid": "${datasource}"}, f"{series.scrape_interval_seconds}s")
    source = {"name": "datasource", "label": "Data source", "type": "datasource", "query": datasource_type}
    return {
        "uid": DEFAULT_UIDS[series.dialect] if uid is None else uid,
        "title": DEFAULT_TITLES[series.dialect] if title is None else title,
        "tags": ["gpu", "nvidia", series.dialect.replace("_", "-")],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": refresh,
        "time": {"from": "now-6h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": [source, *_variables(series, anchor, grafana)]},
        "annotations": {"list": []},
        "panels": _place(_rows(series, anchor, kube_state_metrics), grafana),
    }


_LONG = ("targets", "fieldConfig", "options", "transformations")


def json_text(content: Mapping[str, Any]) -> str:
    """Write a dashboard as JSON: the same bytes for the same content, in lines that a reviewer can compare."""
    encode = json.JSONEncoder(ensure_ascii=False).encode

    def panel_text(panel: Mapping[str, Any]) -> str:
        parts = [encode({key: value for key, value in panel.items() if key not in _LONG})[:-1]]
        for key in _LONG:
            if key == "targets" and key in panel:
                targets = ",\n        ".join(map(encode, panel[key]))
                parts.append(f'"targets": [\n        {targets}]')
            elif key in panel:
                parts.append(f'"{key}": {encode(panel[key])}')
        return ",\n      ".join(parts) + "}"

    texts = {
        "panels": map(panel_text, content["panels"]),
        "templating": map(encode, content["templating"]["list"]),
    }
    lists = {key: "[\n    " + ",\n    ".join(parts) + "\n  ]" for key, parts in texts.items()}
    lists["templating"] = f'{{"list": {lists["templating"]}}}'
    lines = (f'"{key}": {lists.get(key) or encode(value)}' for key, value in content.items())
    return "{\n  " + ",\n  ".join(lines) + "\n}\n"
