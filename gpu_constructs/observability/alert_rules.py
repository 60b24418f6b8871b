"""The rules on GPUs as data: what is recorded, what alerts, and what each needs to be answered."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, Protocol

from gpu_constructs.errors import GpuConstructsError, did_you_mean
from gpu_constructs.observability.alert_thresholds import AlertThresholds, prometheus_duration, seconds
from gpu_constructs.observability.gpu_series import QUANTITIES, GpuSeries, Quantity

Severity = Literal["critical", "warning", "info"]

GPU_RESOURCES = "nvidia_com_.+"
"""GPUs as kube-state-metrics calls them: shared and MIG resources too."""

DEVICE_PLUGIN = ".*nvidia-device-plugin.*"
NO_DEVICE_PLUGIN = ".*(mps-control-daemon|feature-discovery).*"
"""Named like the plugin, and rightly without a pod on nodes that do not share by MPS."""


class Wish(Protocol):
    """A power limit wished for GPUs of one description; see ``gpu_constructs.power.wish``."""

    @property
    def target(self) -> Literal["uuid", "pci", "index", "name"] | None:
        """By what they are chosen; None for all that no other wish is for."""

    @property
    def pattern(self) -> str:
        """Which value that must have."""

    @property
    def watts(self) -> int | None:
        """The limit."""

    @property
    def percent(self) -> int | None:
        """The limit as a share of the board's default."""


class PowerAgent(NamedTuple):
    """What keeps the power limits.

    Attributes:
        namespace: Of its DaemonSet.
        name: Of its DaemonSet.
        wishes: In the order in which they win.
        out_of_range: ``clamp`` or ``refuse``.
        corrects_within: Seconds in which it sets right what has drifted.
    """

    namespace: str
    name: str
    wishes: Sequence[Wish]
    out_of_range: str
    corrects_within: int


class Options(NamedTuple):
    """What the rules are to be like.

    Attributes:
        thresholds: From what value on an alert is one.
        device_plugin: Name of its DaemonSet, or a regular expression; None leaves its alerts out.
        kube_state_metrics: Whether that is there.
        power: What keeps the limits: of every node, or by a regular expression of node names.
        leave_out: Names of rules.
        severities: By alert.
        runbook_url: Address of the runbook; None for no link.
        alert_labels: Of every alert.
    """

    thresholds: AlertThresholds
    device_plugin: str | None = DEVICE_PLUGIN
    kube_state_metrics: bool = True
    power: PowerAgent | Mapping[str, PowerAgent] | None = None
    leave_out: Collection[str] = ()
    severities: Mapping[str, Severity] = {}
    runbook_url: str | None = None
    alert_labels: Mapping[str, str] = {}


class Rule(NamedTuple):
    """A rule, ready to be written.

    Attributes:
        name: Of the alert, or of the series it records.
        group: Where it belongs.
        expr: In PromQL.
        needs: Metrics of the exporter.
        pending: Seconds for which it must hold; None for a recording rule.
        labels: Of the alert.
        annotations: Of the alert.
    """

    name: str
    group: str
    expr: str
    needs: frozenset[str]
    pending: int | None = None
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}


class _NoMetric(Exception):
    """This exporter has nothing that could answer."""


class _Ask:
    """Asks for what an exporter knows, and notes the metrics that takes."""

    def __init__(self, series: GpuSeries, options: Options) -> None:
        names = (series.name_of(quantity) for quantity in QUANTITIES)
        # As if all were exported: what is not is told of rule by rule.
        self._series = replace(series, metrics=frozenset(name for name in names if name))
        self.exported = series.metrics
        self.options = options
        self.t = options.thresholds
        self.dialect = series.dialect
        self.pods = series.pods
        self.job = series.job
        self.interval = series.scrape_interval_seconds
        self.labels = series.labels
        self.gpu = ", ".join(series.labels)
        self.key = f"{series.labels.node}, {series.labels.uuid}"
        self.names_xid = "xid"
        self.needs: set[str] = set()

    def __call__(self, quantity: Quantity, **options: Any) -> str:
        """One value per GPU, or more by the labels asked for; see ``GpuSeries.metric``."""
        query = self._series.quantity(quantity, **options)
        if query is None:
            raise _NoMetric
        self.needs |= query.needs
        return query.expr

    def metric(self, *, dcgm: str = "", nvidia_smi: str = "", **options: Any) -> str:
        name = dcgm if self.dialect == "dcgm" else nvidia_smi
        if not name:
            raise _NoMetric
        self.needs.add(name)
        return self._series.metric(name, **options).expr

    def of_boards(self, quantity: Quantity, boards: str, **options: Any) -> str:
        """The same of some GPUs only, by matchers of their labels."""
        if self.dialect == "dcgm" or not boards:
            return self(quantity, where=boards, **options)
        # Its metrics carry the UUID alone; the rest is in the labels of another one.
        return f"({self(quantity, **options)} and on ({self.key}) nvidia_smi_gpu_info{{{self._of_job(boards)}}})"

    def plain(self, name: str, matchers: str = "") -> str:
        """A metric as it was scraped, not a GPU's; what the exporter says of itself it always does."""
        inside = self._of_job(matchers)
        return f"{name}{{{inside}}}" if inside else name

    def optional(self, name: str | None) -> None:
        """Do without the rule, and without a word, where the exporter cannot be told to export this."""
        if name not in self.exported:
            raise _NoMetric

    def name_of(self, quantity: Quantity) -> str:
        return self._series.name_of(quantity) or ""

    def only(self, dialect: str) -> None:
        if self.dialect != dialect:
            raise _NoMetric

    def _of_job(self, matchers: str) -> str:
        return ",".join([*([f'job="{self.job}"'] if self.job is not None else []), *([matchers] if matchers else [])])


_LONGEST_INTERVAL = 120
_FEWEST_SCRAPES = 4
"""In a window, so that one that fails leaves a rate."""


def _at_least(number: int, ask: _Ask) -> str:
    return prometheus_duration(max(number, _FEWEST_SCRAPES * ask.interval))


def _window(name: str, ask: _Ask) -> str:
    return _at_least(seconds(name, getattr(ask.t, name)), ask)


# --- what is recorded --------------------------------------------------------

# Old releases print 2^63 for a temperature or a limit that the GPU does not tell.
_TOLD = "{} < 200"
_TOLD_WATTS = "{} < 100000"
# Boards that count degrees down to a limit say 0 or less for where they slow down.
_TOLD_SLOWDOWN = "{} > 50 < 200"


def _vram_ratio(ask: _Ask) -> str:
    used = ask("vram_used")
    return f"{used} / ({used} + {ask('vram_free')})"


_RECORDED: tuple[tuple[str, Callable[[_Ask], str]], ...] = (
    ("gpu:utilization:percent", lambda ask: ask("utilization")),
    ("gpu:memory_used:mib", lambda ask: ask("vram_used")),
    ("gpu:memory_used:ratio", _vram_ratio),
    ("gpu:power:watts", lambda ask: ask("power")),
    ("gpu:temperature:celsius", lambda ask: ask("temperature", over=_TOLD)),
)


# --- what goes wrong ---------------------------------------------------------


def _codes(xids: Sequence[int]) -> str:
    return "|".join(str(xid) for xid in xids)


_XID_COUNT = "DCGM_EXP_XID_ERRORS_COUNT"


def _xids(ask: _Ask, matcher: str) -> str:
    window = _window("xid_window", ask)
    if ask.dialect == "dcgm":
        over = f"max_over_time({{}}[{window}])"
        return f"{ask.metric(dcgm=_XID_COUNT, over=over, where=f'xid{matcher}', by=('xid',))} > 0"
    name = "nvidia_smi_xid_last_timestamp_seconds"
    ask.optional(name)
    named = ask.metric(nvidia_smi=name, where=f"xid{matcher}", by=("xid",))
    # A GPU that is gone has no name any more; its XIDs stay.
    by = f"{ask.key}, xid"
    bare = f"max by ({by}) ({ask.plain(name, f'xid{matcher}')})"
    return f"time() - ({named} or on ({by}) {bare}) < {seconds('xid_window', ask.t.xid_window)}"


def _xids_of(ask: _Ask, xids: Sequence[int]) -> str:
    if not xids:
        raise _NoMetric
    return _xids(ask, f'=~"{_codes(xids)}"')


def _xid_new(ask: _Ask) -> str:
    """What no other rule speaks of."""
    t, others = ask.t, ask.options.leave_out
    spoken_of = [
        *((0,) if ask.dialect == "dcgm" else ()),
        *t.xid_ignored,
        *(t.xid_critical if "GpuXidCritical" not in others else ()),
        *(t.xid_warning if "GpuXidWarning" not in others else ()),
    ]
    codes = _codes(sorted(spoken_of))
    if ask.dialect == "nvidia_smi" or _XID_COUNT in ask.exported:
        return _xids(ask, f'!~"{codes}"')
    # The gauge keeps the last code until the exporter restarts: only one that was not there before is news.
    ask.names_xid = "err_code"
    options: dict[str, Any] = {"where": f'err_code!~"{codes}"', "by": ("err_code",)}
    before = f"max_over_time({{}}[1h] offset {_window('xid_window', ask)})"
    now = ask.metric(dcgm="DCGM_FI_DEV_XID_ERRORS", over="{} < 1000", **options)
    return f"{now} > 0 unless {ask.metric(dcgm='DCGM_FI_DEV_XID_ERRORS', over=before, **options)} > 0"


def _recovery_action(ask: _Ask) -> str:
    ask.optional(ask.name_of("recovery_action"))
    return f"{ask('recovery_action', over='{} < 100')} > 0"


def _rises(ask: _Ask, quantity: Quantity, most: int) -> str:
    """Tell whether a counter gained more within an hour.

    Also where the pod on the GPU, and with it the series, changed at that very moment. Its steps are added up,
    since a reset of the GPU sets it to 0, and the whole rise is taken, since a step within a gap is none.
    """
    now, before = ask(quantity), ask(quantity, over="{} offset 1m")
    steps = f"sum_over_time(clamp_min({now} - {before}, 0)[1h:1m])"
    return f"{steps} > {most} or {now} + {ask(quantity, over='-min_over_time({}[1h])')} > {most}"


def _pcie_replays(ask: _Ask) -> str:
    replays = ask.metric(dcgm="DCGM_FI_DEV_PCIE_REPLAY_COUNTER", over="rate({}[15m])")
    return f"{replays} * 60 > {ask.t.pcie_replays_per_minute}"


def _lost(ask: _Ask) -> str:
    node = ask.labels.node
    temperature = ask.name_of("temperature")
    ask.needs.add(temperature)
    # By UUID alone: number and model of a GPU may change, and then it is told of twice for some minutes.
    there = f"count by ({node}) (count by ({ask.key}) ({ask.plain(temperature)}))"
    most = f"max_over_time(({there})[{_window('lost_window', ask)}:5m])"
    fewer = f"{there} < {most}"
    if ask.job is None:
        if ask.dialect == "nvidia_smi":
            # What would tell its nodes apart is a label of our scrape objects.
            raise _NoMetric
        return fewer
    scraped = f'up{{job="{ask.job}"}} == 1'
    if node != "node":
        scraped = f'label_replace({scraped}, "{node}", "$1", "node", "(.+)")'
    # Of a node that has lost all of them there is no count any more.
    return f"({fewer} or 0 * ({most} unless on ({node}) {there})) and on ({node}) {scraped}"


# --- heat and power ----------------------------------------------------------


def _temperature(ask: _Ask, level: int) -> str:
    t = ask.t
    by_model = t.temperatures_by_model or {}
    patterns = [_glob(pattern) for pattern in by_model]
    model = ask.labels.model
    parts = []
    for number, limits in enumerate(by_model.values()):
        boards = f"{model}=~{_quoted(patterns[number])}"
        if number:
            boards += f",{model}!~{_quoted('|'.join(patterns[:number]))}"
        parts.append(f"{ask.of_boards('temperature', boards, over=_TOLD)} > {limits[level]}")
    others = f"{model}!~{_quoted('|'.join(patterns))}" if patterns else ""
    rest = ask.of_boards("temperature", others, over=_TOLD)
    if level == 0:
        return " or ".join([*parts, f"{rest} > {t.temperature_warning}"])
    slowdown = ask.name_of("slowdown_temperature")
    if slowdown not in ask.exported:
        return " or ".join([*parts, f"{rest} > {t.temperature_critical}"])
    limit = ask("slowdown_temperature", over=_TOLD_SLOWDOWN)
    parts.append(f"{rest} > on ({ask.gpu}) ({limit} - {t.slowdown_margin})")
    parts.append(f"({rest} unless on ({ask.gpu}) {limit}) > {t.temperature_critical}")
    return " or ".join(parts)


def _thermal_throttling(ask: _Ask) -> str:
    over = f"rate({{}}[{_at_least(300, ask)}])"
    held_back = ask("thermal_throttled", over=over)
    if ask.dialect == "nvidia_smi":
        # Of hardware and software; both at once are no more than all of the time.
        software = ask.metric(
            nvidia_smi="nvidia_smi_clocks_event_reasons_counters_sw_thermal_slowdown_seconds", over=over
        )
        held_back = f"clamp_max({held_back} + {software}, 1)"
    return f"{held_back} > {ask.t.thermal_throttled_ratio}"


def _held_back(ask: _Ask, event: str, flag: str) -> str:
    if ask.dialect == "dcgm":
        readings = ask.metric(dcgm="DCGM_EXP_CLOCK_EVENTS_COUNT", where=f'clock_event="{event}"')
        return f"{readings} > 0"
    name = f"nvidia_smi_clocks_event_reasons_{flag}"
    ask.optional(name)
    return f"{ask.metric(nvidia_smi=name, over='max_over_time({}[5m])')} > 0"


def _power_capped(ask: _Ask) -> str:
    held_back = ask("power_throttled", over="rate({}[10m])")
    busy = ask("utilization", over="avg_over_time({}[10m])")
    t = ask.t
    return f"{held_back} > {t.power_throttled_ratio} and on ({ask.gpu}) {busy} > {t.power_throttled_utilization}"


def _drift(ask: _Ask, wish: Wish, before: Sequence[Wish], out_of_range: str, nodes: Sequence[str]) -> str:
    """The limits of the GPUs for which a wish wins, where they are not what it asks for."""
    on = f"on ({ask.gpu})"
    limit = ask.of_boards("power_limit", ",".join([*nodes, *_boards(ask, wish, before)]), over=_TOLD_WATTS)
    most, least = ask("power_limit_max", over=_TOLD_WATTS), ask("power_limit_min", over=_TOLD_WATTS)
    default = wish.watts is None and wish.percent is None
    if wish.watts is not None:
        wanted = f"{limit} * 0 + {wish.watts}"
    else:
        wanted = ask("power_limit_default", over=_TOLD_WATTS)
        if wish.percent is not None:
            wanted = f"{wanted} * {wish.percent} / 100"
    if out_of_range == "clamp" and not default:
        compared = str(wish.watts) if wish.watts is not None else f"{on} ({wanted})"
        wanted = f"{most} < {compared} or {on} {least} > {compared} or {on} {wanted}"
    off = f"abs({limit} - {on} ({wanted})) > {ask.t.power_limit_tolerance}"
    # A board without a range takes no limit, whatever it says that it has.
    return f"{limit} and {on} {least} and {on} {most} and {on} {off}"


def _boards(ask: _Ask, wish: Wish, before: Sequence[Wish]) -> list[str]:
    """The matchers of the GPUs for which a wish wins: its own, less those of the wishes before it."""
    matchers = []
    own = _choice(ask, wish) if wish.target is not None else None
    if own is not None:
        matchers.append(f"{own[0]}=~{_quoted(own[1])}")
    taken: dict[str, list[str]] = {}
    for other in before:
        label, pattern = _choice(ask, other)
        # Of two numbers or two UUIDs no GPU has both.
        if other.target != wish.target or other.target == "name":
            taken.setdefault(label, []).append(pattern)
    return [*matchers, *(f"{label}!~{_quoted('|'.join(patterns))}" for label, patterns in taken.items())]


def _choice(ask: _Ask, wish: Wish) -> tuple[str, str]:
    """The label by which a wish chooses GPUs, and what that must match."""
    if wish.target == "uuid":
        # Without its prefix there. Source: utkuozdemir/nvidia_gpu_exporter@v1.14.0:internal/integration/testdata.
        uuid = wish.pattern if ask.dialect == "dcgm" else wish.pattern.removeprefix("GPU-")
        return ask.labels.uuid, f"(?i:{_escaped(uuid)})"
    if wish.target == "pci":
        domain, _, rest = wish.pattern.rpartition(":")[0].rpartition(":")
        bus = f"{rest}:{wish.pattern.rpartition(':')[2]}"
        return "pci_bus_id", f"(?i:0*{domain.lstrip('0')}:{_escaped(bus)})"
    if wish.target == "index":
        return ask.labels.gpu, _escaped(wish.pattern)
    return ask.labels.model, _glob(wish.pattern)


_SPECIAL = frozenset(r"\.^$*+?()[]{}|")


def _escaped(text: str) -> str:
    return "".join(f"\\{letter}" if letter in _SPECIAL else letter for letter in text)


def _glob(pattern: str) -> str:
    """The regular expression of a shell pattern; Prometheus anchors it."""
    made, rest = "", pattern
    while rest:
        letter, rest = rest[0], rest[1:]
        # A closing bracket that comes first is one of those it may be.
        end = rest.find("]", 2 if rest[:1] in ("!", "^") else 1) if letter == "[" else -1
        if letter == "*":
            made += ".*"
        elif letter == "?":
            made += "."
        elif end > 0:
            inside, rest = rest[:end], rest[end + 1 :]
            negated = inside[0] in "!^"
            letters = inside[negated:].replace("\\", r"\\").replace("[", r"\[").replace("]", r"\]").replace("^", r"\^")
            made += f"[{'^' * negated}{letters}]"
        else:
            made += _escaped(letter)
    return made


def _quoted(text: str) -> str:
    """Text as PromQL writes it."""
    escaped = text.replace("\\", r"\\").replace('"', r"\"")
    return f'"{escaped}"'


def _agents(options: Options) -> list[tuple[str | None, PowerAgent]]:
    """What keeps the limits, and on which nodes: None for all."""
    power = options.power
    if power is None:
        return []
    return [(None, power)] if isinstance(power, PowerAgent) else list(power.items())


def _agent_unavailable(ask: _Ask) -> str:
    agents = dict.fromkeys((agent.namespace, agent.name) for _, agent in _agents(ask.options))
    return " or ".join(_unavailable(f'namespace="{namespace}",%s="{name}"') for namespace, name in agents)


# --- how GPUs are used -------------------------------------------------------


def _memory_nearly_full(ask: _Ask) -> str:
    full = f"{_vram_ratio(ask)} > {ask.t.vram_ratio}"
    if not ask.t.vram_ignored_namespaces:
        return full
    if ask.pods == "none":
        raise GpuConstructsError(
            "thresholds.vram_ignored_namespaces must be empty for an exporter that names no pods; got "
            f"{list(ask.t.vram_ignored_namespaces)}"
        )
    namespaces = "|".join(ask.t.vram_ignored_namespaces)
    theirs = ask("vram_used", where=f'namespace=~"{namespaces}"')
    return f"{full} unless {theirs}"


def _idle(ask: _Ask) -> str:
    # Where others scrape, the pod may be the exporter's own.
    if ask.pods == "none" or ask.job is None:
        raise _NoMetric
    idle = _window("idle", ask)
    # The whole GPU's utilisation says nothing of a MIG instance.
    options: dict[str, Any] = {"where": 'pod!="",GPU_I_ID=""', "by": ("namespace", "pod", "container")}
    now = ask("utilization", **options)
    busiest = ask("utilization", over=f"max_over_time({{}}[{idle}])", **options)
    then = ask("utilization", over=f"{{}} offset {idle}", **options)
    return f"{now} == 0 and {busiest} == 0 and {then}"


# --- what watches ------------------------------------------------------------


def _exporter_absent(ask: _Ask) -> str:
    absent = f'absent(up{{job="{ask.job}"}})'
    if ask.job is None:
        ask("temperature")
        absent = f"absent({ask.name_of('temperature')})"
    if not ask.options.kube_state_metrics:
        return absent
    # A cluster that has scaled to no GPU needs no exporter.
    return f'{absent} and on () sum(kube_node_status_capacity{{resource=~"{GPU_RESOURCES}"}}) > 0'


def _exporter_down(ask: _Ask) -> str:
    if ask.job is None:
        raise _NoMetric
    return f'up{{job="{ask.job}"}} == 0'


def _collection_failing(ask: _Ask) -> str:
    ask.only("nvidia_smi")
    return f"{ask.plain('nvidia_smi_last_collect_success')} == 0"


def _collection_stale(ask: _Ask) -> str:
    ask.only("nvidia_smi")
    last = ask.plain("nvidia_smi_last_collect_success_timestamp_seconds")
    return f"time() - {last} > {seconds('collection_stale', ask.t.collection_stale)}"


def _node_without_metrics(ask: _Ask) -> str:
    if ask.job is None:
        # The label node is one of our scrape objects.
        raise _NoMetric
    temperature = ask.name_of("temperature")
    ask.needs.add(temperature)
    # Whatever exporter watches it: other nodes may have another.
    others = ("DCGM_FI_DEV_GPU_TEMP", "nvidia_smi_temperature_gpu")
    seen = " or ".join(f"max by (node) ({name})" for name in dict.fromkeys((temperature, *others)))
    return f'max by (node) (kube_node_status_capacity{{resource=~"{GPU_RESOURCES}"}}) > 0 unless on (node) ({seen})'


# --- what hands GPUs out -----------------------------------------------------


_NOT_READY = 'max by (node) (kube_node_status_condition{condition="Ready",status="true"}) == 0'
_CORDONED = "max by (node) (kube_node_spec_unschedulable) == 1"


def _unavailable(matchers: str) -> str:
    """How many pods of a DaemonSet are missing on nodes that are up; where matchers have %s is its name."""
    by = "max by (namespace, daemonset)"
    missing = f"{by} (kube_daemonset_status_number_unavailable{{{matchers.replace('%s', 'daemonset')}}})"
    owned = f'kube_pod_info{{created_by_kind="DaemonSet",{matchers.replace("%s", "created_by_name")}}}'
    off = f"max by (namespace, created_by_name, node) ({owned}) and on (node) {_NOT_READY}"
    off = f'label_replace({off}, "daemonset", "$1", "created_by_name", "(.+)")'
    return f"{missing} - (count by (namespace, daemonset) ({off}) or {missing} * 0) > 0"


def _plugin(ask: _Ask) -> str:
    name = ask.options.device_plugin
    assert name is not None
    if all(letter.isalnum() or letter == "-" for letter in name):
        return f'%s="{name}"'
    return f'%s=~{_quoted(name)},%s!~"{NO_DEVICE_PLUGIN}"'


def _plugin_not_scheduled(ask: _Ask) -> str:
    wanted = f"kube_daemonset_status_desired_number_scheduled{{{_plugin(ask).replace('%s', 'daemonset')}}}"
    return f"max by (namespace, daemonset) ({wanted}) == 0"


def _units(metric: str) -> str:
    return f'max by (node, resource) (kube_node_status_{metric}{{resource=~"{GPU_RESOURCES}"}})'


def _requests() -> str:
    """What each pod asks for: the sum of its containers, or what one of its init containers takes before, if more."""
    asked = f'container_resource_requests{{resource=~"{GPU_RESOURCES}"}}'
    by = "by (namespace, pod, node, resource)"
    together = f"sum {by} (max by (namespace, pod, node, container, resource) (kube_pod_{asked}))"
    before = f"max {by} (kube_pod_init_{asked})"
    return f'max {by} (label_replace({together}, "of", "all", "", "") or label_replace({before}, "of", "init", "", ""))'


_WAITING = "max by (namespace, pod) (kube_pod_status_unschedulable) == 1"


def _capacity_exhausted(ask: _Ask) -> str:
    # The requests of pods that have ended stay, and those of gated pods do not count yet.
    alive = 'max by (namespace, pod) (kube_pod_status_phase{phase=~"Pending|Running"}) == 1'
    placed = f'max by (namespace, pod) (kube_pod_status_scheduled{{condition="true"}}) == 1 or {_WAITING}'
    counted = f"{_requests()} and on (namespace, pod) ({alive}) and on (namespace, pod) ({placed})"
    requested = f"sum by (resource) ({counted} unless on (node) {_CORDONED} unless on (node) {_NOT_READY})"
    free = f"{_units('allocatable')} unless on (node) {_CORDONED} unless on (node) {_NOT_READY}"
    return f"{requested} >= on (resource) sum by (resource) ({free})"


def _pod_unschedulable(ask: _Ask) -> str:
    return f"max by (namespace, pod, resource) ({_requests()}) > 0 and on (namespace, pod) {_WAITING}"


class _Alert(NamedTuple):
    name: str
    group: str
    severity: Severity
    pending: int
    ask: Callable[[_Ask], str]
    summary: str
    description: str


# In the texts <gpu> and <node> stand for the labels of a GPU, in a summary <gpu> for its node's name too; what is in
# braces is for Prometheus.
_ALERTS: tuple[_Alert, ...] = (
    # An XID is over when it shows: to wait would be to miss it.
    _Alert(
        "GpuXidCritical", "errors", "critical", 0, lambda ask: _xids_of(ask, ask.t.xid_critical),
        "XID {{ $labels.xid }} on <gpu>: unusable until it is reset",
        "<gpu> of <node> reported XID {{ $labels.xid }}. Cordon the node, move the pods off this GPU, then "
        "reset the GPU or reboot the node. First look: dmesg of the node, for 'Xid'.",
    ),
    _Alert(
        "GpuXidWarning", "errors", "warning", 0, lambda ask: _xids_of(ask, ask.t.xid_warning),
        "XID {{ $labels.xid }} on <gpu>",
        "<gpu> of <node> reported XID {{ $labels.xid }}, which may have cost a pod its work. First look: "
        "dmesg of the node, for 'Xid', and restarts of the pods on this GPU.",
    ),
    _Alert(
        "GpuXidNew", "errors", "warning", 0, _xid_new,
        "XID <xid> on <gpu>, of no known class",
        "<gpu> of <node> reported XID <xid>, which is in none of the lists. First look: dmesg of the node, for "
        "'Xid', and NVIDIA's catalogue of XIDs.",
    ),
    # The driver's own verdict does not waver.
    _Alert(
        "GpuRecoveryActionNeeded", "errors", "critical", 0, _recovery_action,
        "The driver asks for recovery of <gpu>",
        "The driver asks for action {{ $value }} on <gpu> of <node> (1 reset the GPU, 2 reboot the node, 3 drain its "
        "peers, 4 drain and reset). Cordon the node and move the pods off. First look: dmesg of the node, for 'Xid'.",
    ),
    # One is too many, and the hour looked back over keeps it, whatever is reset meanwhile.
    _Alert(
        "GpuEccUncorrectable", "errors", "critical", 0,
        lambda ask: _rises(ask, "ecc_uncorrected", 0),
        "Uncorrectable memory errors on <gpu>",
        "<gpu> of <node> had {{ $value }} uncorrectable memory errors within an hour; results may be wrong. Move "
        "the pods off it and reset it. First look: nvidia-smi -q -d ECC,ROW_REMAPPER.",
    ),
    # A trend: one burst is no reason to act.
    _Alert(
        "GpuEccCorrectableRate", "errors", "warning", 3600,
        lambda ask: _rises(ask, "ecc_corrected", ask.t.ecc_corrected_per_hour),
        "Many corrected memory errors on <gpu>",
        "<gpu> of <node> corrected {{ $value }} memory errors within an hour, and has gone on for another. Plan a "
        "reset. First look: nvidia-smi -q -d ECC,ROW_REMAPPER.",
    ),
    _Alert(
        "GpuRowRemapFailure", "errors", "critical", 0, lambda ask: f"{ask('row_remap_failure')} == 1",
        "<gpu> cannot repair its memory any more",
        "<gpu> of <node> has no spare memory row left for a broken one. Take it out of use and have it replaced. "
        "First look: nvidia-smi -q -d ROW_REMAPPER.",
    ),
    # A reset that somebody has planned comes within the hour.
    _Alert(
        "GpuRowRemapPending", "errors", "warning", 3600, lambda ask: f"{ask('row_remap_pending')} == 1",
        "<gpu> waits for a reset to repair its memory",
        "<gpu> of <node> replaces broken memory rows at its next reset. Plan one. First look: nvidia-smi -q -d "
        "ROW_REMAPPER.",
    ),
    # A rate over 15 minutes, seen for as long: a link that trains once is no fault.
    _Alert(
        "GpuPcieReplays", "errors", "warning", 900, _pcie_replays,
        "Bad PCIe link to <gpu>",
        "<gpu> of <node> sends {{ $value | printf \"%.0f\" }} PCIe packets a minute again. Look at riser, cable and "
        "slot. First look: nvidia-smi -q, for 'Replays Since Reset' and 'Link Width'.",
    ),
    # Longer than an exporter takes to start.
    _Alert(
        "GpuLost", "errors", "critical", 300, _lost,
        "A GPU of <node> is gone",
        "<node> shows {{ $value }} GPUs, fewer than a few hours ago. First look: nvidia-smi -L on the node, and "
        "dmesg for 'Xid 79' and 'fallen off the bus'.",
    ),
    # Cooling needs minutes; a peak of load is no fault.
    _Alert(
        "GpuTemperatureHigh", "power", "warning", 600, lambda ask: _temperature(ask, 0),
        "<gpu> is hot: {{ $value | printf \"%.0f\" }} °C",
        "<gpu> of <node> has {{ $value | printf \"%.0f\" }} °C. Look at fans, dust and airflow, or lower its power "
        "limit. First look: nvidia-smi -q -d TEMPERATURE,PERFORMANCE.",
    ),
    _Alert(
        "GpuTemperatureCritical", "power", "critical", 120, lambda ask: _temperature(ask, 1),
        "<gpu> is about to slow down: {{ $value | printf \"%.0f\" }} °C",
        "<gpu> of <node> has {{ $value | printf \"%.0f\" }} °C, near where it slows down and later turns itself off. "
        "Take load off it now, then look at the cooling. First look: nvidia-smi -q -d TEMPERATURE,PERFORMANCE.",
    ),
    # The rate is over five minutes; once more as long, so that a start under full load passes.
    _Alert(
        "GpuThermalThrottling", "power", "warning", 300, _thermal_throttling,
        "<gpu> is held back by heat",
        "Heat holds <gpu> of <node> back {{ $value | humanizePercentage }} of the time. Look at fans, dust and "
        "airflow. First look: nvidia-smi -q -d PERFORMANCE,TEMPERATURE.",
    ),
    # Each looks back five minutes: it must come again to last.
    _Alert(
        "GpuThermalSlowdown", "power", "warning", 300,
        lambda ask: _held_back(ask, "hw_thermal", "hw_thermal_slowdown"),
        "<gpu> halves its clocks for heat",
        "The hardware of <gpu> of <node> cuts its clocks for heat again and again: its cooling does not do. Take "
        "load off it. First look: nvidia-smi -q -d PERFORMANCE,TEMPERATURE.",
    ),
    _Alert(
        "GpuPowerBrake", "power", "critical", 300,
        lambda ask: _held_back(ask, "hw_power_brake", "hw_power_brake_slowdown"),
        "Something outside brakes <gpu>",
        "A signal from outside, such as the power supply's, cuts the clocks of <gpu> of <node> again and again. Look "
        "at power supply, cables and rack. First look: nvidia-smi -q -d PERFORMANCE,POWER.",
    ),
    # Long work under a limit is wanted; half an hour of it is worth a note.
    _Alert(
        "GpuPowerCapped", "power", "info", 1800, _power_capped,
        "<gpu> is held back by its power limit",
        "The power limit holds <gpu> of <node> back {{ $value | humanizePercentage }} of the time, under load. "
        "Expected where the limit is low on purpose. First look: nvidia-smi -q -d POWER,PERFORMANCE.",
    ),
    # The agent's next look must have failed, too.
    _Alert(
        "GpuPowerLimitUnavailable", "power", "warning", 900, _agent_unavailable,
        "Power limits are not kept on {{ $value }} nodes",
        "{{ $value }} pods of DaemonSet {{ $labels.namespace }}/{{ $labels.daemonset }} are not ready: a power limit "
        "there is not set, or not what was asked for. First look: the pods' logs, for level=error.",
    ),
    # As long as a server takes to load a model and settle.
    _Alert(
        "GpuMemoryNearlyFull", "use", "warning", 600, _memory_nearly_full,
        "Memory of <gpu><instance> is {{ $value | humanizePercentage }} full",
        "<gpu> of <node><instance> has {{ $value | humanizePercentage }} of its memory in use; the next allocation may "
        "fail. First look: nvidia-smi on the node, for the memory of each process.",
    ),
    # The time is in the expression; this much more so that a scrape that is late does not fire it.
    _Alert(
        "GpuIdleWhileAllocated", "use", "info", 600, _idle,
        "{{ $labels.namespace }}/{{ $labels.pod }} holds <gpu> and does not use it",
        "Pod {{ $labels.namespace }}/{{ $labels.pod }} (container {{ $labels.container }}) has not used <gpu> of "
        "<node> for <idle>. First look: the pod's log. Ask its owner, or scale it down.",
    ),
    # Longer than a monitoring stack takes to restart.
    _Alert(
        "GpuExporterAbsent", "exporter", "warning", 600, _exporter_absent,
        "No GPU exporter is scraped",
        "Prometheus has no target of the GPU exporter, so no other alert on GPUs can fire. First look: does the "
        "scrape object exist, with the label by which the stack finds it, and has the DaemonSet any pods?",
    ),
    # Longer than a pod takes to be replaced.
    _Alert(
        "GpuExporterDown", "exporter", "warning", 300, _exporter_down,
        "The GPU exporter of node {{ $labels.node }} does not answer",
        "The exporter at {{ $labels.instance }} (node {{ $labels.node }}"
        "{{ with or $labels.exporter_pod $labels.pod }}, pod {{ . }}{{ end }}) cannot be scraped: its node's GPUs are "
        "not watched. First look: the pod's state and log.",
    ),
    _Alert(
        "GpuCollectionFailing", "exporter", "warning", 600, _collection_failing,
        "GPUs of node {{ $labels.node }} cannot be read",
        "The exporter of node {{ $labels.node }} ({{ $labels.instance }}) runs, but its readings fail. First look: "
        "nvidia-smi in its pod; after an upgrade of the driver, restart the pod.",
    ),
    # The age is in the expression.
    _Alert(
        "GpuCollectionStale", "exporter", "warning", 60, _collection_stale,
        "Readings of the GPUs of node {{ $labels.node }} are old",
        "The last good reading on node {{ $labels.node }} ({{ $labels.instance }}) is {{ $value | humanizeDuration }} "
        "old: what dashboards show is not what is. First look: does nvidia-smi hang on the node?",
    ),
    # A new node needs minutes until driver, plugin and exporter are there.
    _Alert(
        "GpuNodeWithoutMetrics", "exporter", "warning", 900, _node_without_metrics,
        "GPUs of node {{ $labels.node }} are not watched",
        "Node {{ $labels.node }} offers {{ $value }} GPU units and no exporter tells of them. First look: is there an "
        "exporter pod on the node, and do its node selector and tolerations fit?",
    ),
    # Longer than a rollout takes for one node.
    _Alert(
        "NvidiaDevicePluginUnavailable", "scheduling", "critical", 600, lambda ask: _unavailable(_plugin(ask)),
        "The device plugin is down on {{ $value }} nodes",
        "{{ $value }} pods of DaemonSet {{ $labels.namespace }}/{{ $labels.daemonset }} are not available on nodes "
        "that are ready: these offer no GPUs to new pods. First look: the pods' state and logs.",
    ),
    # Labels of a new node take minutes.
    _Alert(
        "NvidiaDevicePluginNotScheduled", "scheduling", "warning", 900, _plugin_not_scheduled,
        "The device plugin runs nowhere",
        "DaemonSet {{ $labels.namespace }}/{{ $labels.daemonset }} fits no node: the label that marks GPU nodes is "
        "missing. First look: kubectl get nodes -l nvidia.com/gpu.present=true.",
    ),
    # A plugin that restarts withdraws its devices for a moment.
    _Alert(
        "GpuUnhealthyDevices", "scheduling", "critical", 300,
        lambda ask: f"{_units('capacity')} - {_units('allocatable')} > 0",
        "{{ $value }} units of {{ $labels.resource }} on node {{ $labels.node }} are unhealthy",
        "Node {{ $labels.node }} may not hand out {{ $value }} of its {{ $labels.resource }}: the device plugin calls "
        "them unhealthy. First look: the plugin's log on the node, and dmesg for 'Xid'.",
    ),
    # Full is what one pays for: a note for whoever plans.
    _Alert(
        "GpuCapacityExhausted", "scheduling", "info", 1800, _capacity_exhausted,
        "All of {{ $labels.resource }} is taken",
        "Pods ask for {{ $value }} of {{ $labels.resource }}, all that nodes in use have or more: the next one waits. "
        "First look: GpuIdleWhileAllocated, for who could give some back.",
    ),
    # Longer than it takes to replace a pod, or to add a node.
    _Alert(
        "GpuPodUnschedulable", "scheduling", "warning", 900, _pod_unschedulable,
        "{{ $labels.namespace }}/{{ $labels.pod }} waits for a GPU",
        "Pod {{ $labels.namespace }}/{{ $labels.pod }} asks for {{ $value }} of {{ $labels.resource }} and finds no "
        "node. First look: kubectl describe pod -n {{ $labels.namespace }} {{ $labels.pod }}.",
    ),
)  # fmt: skip

_DRIFT = "GpuPowerLimitDrift"
_OF_KUBE_STATE_METRICS = frozenset(
    {"GpuNodeWithoutMetrics", "GpuPowerLimitUnavailable"} | {one.name for one in _ALERTS if one.group == "scheduling"}
)

ALERT_NAMES: tuple[str, ...] = (*(one.name for one in _ALERTS), _DRIFT)
RULE_NAMES: tuple[str, ...] = (*(name for name, _ in _RECORDED), *ALERT_NAMES)


def gpu_rules(series: GpuSeries, options: Options) -> list[Rule]:
    """Give the rules for an exporter, less those that are left out and those it has no metric for.

    Raises:
        GpuConstructsError: The exporter could export what a rule needs but is not told to, is scraped too seldom,
            or a name is no rule's.
    """
    _check_names("leave_out", options.leave_out, RULE_NAMES)
    _check_names("severities", options.severities, ALERT_NAMES)
    _check_names("thresholds.pending", options.thresholds.pending or (), ALERT_NAMES)
    if series.scrape_interval_seconds > _LONGEST_INTERVAL:
        raise GpuConstructsError(
            f"exporter must be scraped every {_LONGEST_INTERVAL} seconds or more often for alerts, since Prometheus "
            f"forgets a value after five minutes; got {series.scrape_interval_seconds} seconds; give the exporter "
            "scrape=Scrape(interval_seconds=60), or leave the alerts out"
        )
    if isinstance(options.power, Mapping) and series.job is None and series.dialect == "nvidia_smi":
        raise GpuConstructsError(
            "power_limit must be one PowerLimit where the exporter's series do not name their node; got "
            f"{len(options.power)} by node; give the exporter a scrape object, such as scrape='ServiceMonitor'"
        )
    rules = [rule for rule in _all(series, options) if rule.name not in options.leave_out]
    _refuse_missing(rules, series)
    return rules


def _check_names(field: str, given: Collection[str], known: Collection[str]) -> None:
    for name in given:
        if name not in known:
            raise GpuConstructsError(f"{field} must name rules of ours; got {name!r}{did_you_mean(name, known)}")


def _all(series: GpuSeries, options: Options) -> Iterator[Rule]:
    for record, build in _RECORDED:
        ask = _Ask(series, options)
        yield Rule(record, "recording", build(ask), frozenset(ask.needs))
    for alert in _ALERTS:
        if not _is_wanted(alert, options):
            continue
        ask = _Ask(series, options)
        try:
            expr = alert.ask(ask)
        except _NoMetric:
            continue
        yield _rule(alert, expr, ask)
        # Beside what else is said of power.
        if alert.name == "GpuPowerCapped":
            yield from _drifts(series, options)


def _is_wanted(alert: _Alert, options: Options) -> bool:
    if alert.name in _OF_KUBE_STATE_METRICS and not options.kube_state_metrics:
        return False
    if alert.name.startswith("NvidiaDevicePlugin"):
        return options.device_plugin is not None
    return alert.name != "GpuPowerLimitUnavailable" or options.power is not None


def _drifts(series: GpuSeries, options: Options) -> Iterator[Rule]:
    before: list[str] = []
    for nodes, agent in _agents(options):
        chosen, more = [], {}
        if nodes is not None:
            node = series.labels.node
            chosen = [f"{node}=~{_quoted(nodes)}", *(f"{node}!~{_quoted(other)}" for other in before)]
            more = {"power_limit": agent.name}
            before.append(nodes)
        for number, wish in enumerate(agent.wishes):
            whose = "watts" if wish.target is None else f"{wish.target}:{wish.pattern}"
            ask = _Ask(series, options)
            expr = _drift(ask, wish, agent.wishes[:number], agent.out_of_range, chosen)
            yield _rule(_drift_alert(wish, whose, agent), expr, ask, {**more, "wish": whose})


def _drift_alert(wish: Wish, whose: str, agent: PowerAgent) -> _Alert:
    if wish.percent is not None:
        limit = f"{wish.percent} % of the board's default"
    else:
        limit = "the board's default" if wish.watts is None else f"{wish.watts} W"
    return _Alert(
        _DRIFT,
        "power",
        "warning",
        agent.corrects_within,
        lambda ask: "",
        "Power limit of <gpu> is not what was asked for",
        f"<gpu> of <node> has a power limit of {{{{ $value }}}} W; wanted is {limit} ({_go_text(whose)}), and the "
        f"power limit agent has not set it in time. First look: the log of its pod on the node, for level=error.",
    )


def _go_text(text: str) -> str:
    """Text that Prometheus' templates leave as it is."""
    return text.replace("{{", '{{ "{{" }}')


def _rule(alert: _Alert, expr: str, ask: _Ask, labels: Mapping[str, str] | None = None) -> Rule:
    options = ask.options
    pending = (options.thresholds.pending or {}).get(alert.name)
    link = {} if options.runbook_url is None else {"runbook_url": f"{options.runbook_url}#{alert.name.lower()}"}
    return Rule(
        name=alert.name,
        group=alert.group,
        expr=expr,
        needs=frozenset(ask.needs),
        pending=alert.pending if pending is None else seconds("thresholds.pending", pending),
        labels={
            **options.alert_labels,
            **(labels or {}),
            "severity": options.severities.get(alert.name, alert.severity),
        },
        annotations={
            "summary": _summary(alert.summary, ask),
            "description": _description(alert.description, ask),
            **link,
        },
    )


def _summary(text: str, ask: _Ask) -> str:
    return _text(text, ask, "GPU {gpu} of {node}")


def _description(text: str, ask: _Ask) -> str:
    return _text(text, ask, "GPU {gpu} ({model}, {uuid})")


_OF_INSTANCE = "{{ with $labels.GPU_I_ID }}, MIG instance {{ . }},{{ end }}"


def _text(text: str, ask: _Ask, gpu: str) -> str:
    labels = {name: f"{{{{ $labels.{label} }}}}" for name, label in ask.labels._asdict().items()}
    said = {
        "<gpu>": gpu.format(**labels),
        "<node>": f"node {labels['node']}",
        "<xid>": f"{{{{ $labels.{ask.names_xid} }}}}",
        "<instance>": _OF_INSTANCE if ask.dialect == "dcgm" else "",
        "<idle>": _window("idle", ask),
    }
    for place, value in said.items():
        text = text.replace(place, value)
    return text


def _refuse_missing(rules: Sequence[Rule], series: GpuSeries) -> None:
    missing: dict[str, list[str]] = {}
    for rule in rules:
        for metric in sorted(rule.needs - series.metrics):
            names = missing.setdefault(metric, [])
            if rule.name not in names:
                names.append(rule.name)
    if not missing:
        return
    listed = ", ".join(f"{metric} (for {', '.join(names)})" for metric, names in missing.items())
    concerned = list(dict.fromkeys(rule.name for rule in rules if rule.needs - series.metrics))
    more = "give the exporter metrics='recommended'" if series.dialect == "dcgm" else "have the exporter query them"
    raise GpuConstructsError(
        f"exporter must export what the rules need; got none of {listed}; {more}, or leave the rules out with "
        f"leave_out={concerned}"
    )


def rule_groups(name: str, rules: Sequence[Rule]) -> list[dict[str, Any]]:
    """Write the rules in groups, as PrometheusRule and VMRule both take them.

    Args:
        name: What the names of the groups start with.
        rules: See ``gpu_rules``.
    """
    groups: dict[str, list[dict[str, Any]]] = {}
    for rule in rules:
        groups.setdefault(rule.group, []).append(_written(rule))
    return [{"name": f"{name}-{group}", "rules": members} for group, members in groups.items()]


def _written(rule: Rule) -> dict[str, Any]:
    if rule.pending is None:
        return {"record": rule.name, "expr": rule.expr}
    waits = {"for": prometheus_duration(rule.pending)} if rule.pending else {}
    return {
        "alert": rule.name,
        "expr": rule.expr,
        **waits,
        "labels": dict(rule.labels),
        "annotations": dict(rule.annotations),
    }
