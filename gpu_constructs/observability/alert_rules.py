"""Alert rules for GPUs, rendered from ``alerts.yaml`` for one exporter."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal, NamedTuple

from gpu_constructs.errors import GpuConstructsError, did_you_mean, then
from gpu_constructs.kube.tables import table
from gpu_constructs.observability.alert_thresholds import AlertThresholds, prometheus_duration, seconds
from gpu_constructs.observability.gpu_series import GpuSeries, KeepsPowerLimits
from gpu_constructs.observability.terms import NoAnswer, Terms

Severity = Literal["critical", "warning", "info"]

DEVICE_PLUGIN = ".*nvidia-device-plugin.*"
NO_DEVICE_PLUGIN = ".*(mps-control-daemon|feature-discovery).*"
"""Pattern of other DaemonSets of the device plugin's Helm chart. Alerts exclude them, because they can have no pods."""

_LONGEST_INTERVAL = 120
_FEWEST_SCRAPES = 4
"""Smallest number of scrapes in the window of a rate. If one scrape fails, the remaining values still give a rate."""

_LISTS = ("vram_ignored_namespaces", "xid_critical", "xid_warning")
_WINDOWS = ("idle", "xid_window", "lost_window", "collection_stale")
_RATE_SECONDS = 300
_SLACK_SECONDS = 240
_DRIFT = "GpuPowerLimitDrift"

_SPECIAL = re.compile(r"([\\.^$*+?()\[\]{}|])")
# One part of a shell pattern: a set of letters, or one letter. A closing bracket at the start of a set belongs to it.
_PART = re.compile(r"\[(?:([!^])|(?![!^]))(.[^]]*)\]|(.)", re.DOTALL)


class Options(NamedTuple):
    """Options of the alert rules.

    Attributes:
        thresholds: Thresholds of the alerts, and the times for which a value must exceed them.
        device_plugin: Name of the DaemonSet of the device plugin, or a regular expression for it. If None, there are no
            alerts about the device plugin.
        kube_state_metrics: Whether kube-state-metrics runs in the cluster.
        power: ``PowerLimit`` for all nodes, or a mapping from a regular expression for node names to the ``PowerLimit``
            of these nodes. None: no alerts about power limits.
        leave_out: Names of rules to omit.
        severities: Severities that replace the defaults, by name of the alert.
        runbook_url: Address of the runbook. If None, alerts have no link to a runbook.
        alert_labels: Labels of every alert.
    """

    thresholds: AlertThresholds
    device_plugin: str | None = DEVICE_PLUGIN
    kube_state_metrics: bool = True
    power: KeepsPowerLimits | Mapping[str, KeepsPowerLimits] | None = None
    leave_out: Collection[str] = ()
    severities: Mapping[str, Severity] = {}
    runbook_url: str | None = None
    alert_labels: Mapping[str, str] = {}


class Rule(NamedTuple):
    """An alert or a recording rule that is ready to emit.

    Attributes:
        name: Name of the alert, or of the series that the rule records.
        group: Name of the group of rules that contains the rule.
        expr: Expression in PromQL.
        needs: Metrics of the exporter that the expression uses.
        pending: Seconds for which ``expr`` must have results before the alert fires. None for a recording rule.
        labels: Labels of the alert.
        annotations: Annotations of the alert.
    """

    name: str
    group: str
    expr: str
    needs: frozenset[str]
    pending: int | None = None
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}


_TABLE: Mapping[str, Any] = table(__package__, "alerts.yaml")

ALERT_NAMES: tuple[str, ...] = tuple(row["name"] for row in _TABLE["alerts"])
RULE_NAMES: tuple[str, ...] = (*_TABLE["recording"], *ALERT_NAMES)


def gpu_rules(series: GpuSeries, options: Options) -> list[Rule]:
    """Return the alerts and recording rules for the metrics of an exporter.

    The result omits the rules of ``options.leave_out``, and rules that need a metric that this exporter never has.

    Raises:
        GpuConstructsError: If the options of the exporter disable a metric that a rule needs, the scrape interval is
            too long, or ``options.leave_out`` or ``options.severities`` contains an unknown rule.
    """
    known = {
        "leave_out": (options.leave_out, RULE_NAMES),
        "severities": (options.severities, ALERT_NAMES),
        "thresholds.pending": (options.thresholds.pending or (), ALERT_NAMES),
    }
    for field, (given, names) in known.items():
        for name in given:
            if name not in names:
                raise GpuConstructsError(
                    f"{field} must contain names of rules, got {name!r}{did_you_mean(name, names)}"
                )
    _check_series(series, options)
    rules = [rule for rule in _all(series, options) if rule.name not in options.leave_out]
    _refuse_missing(rules, series)
    return rules


def _check_series(series: GpuSeries, options: Options) -> None:
    if series.scrape_interval_seconds > _LONGEST_INTERVAL:
        raise GpuConstructsError(
            f"exporter must have a scrape interval of {_LONGEST_INTERVAL} seconds or less for alerts, because "
            f"Prometheus forgets a value after five minutes, got {series.scrape_interval_seconds} seconds. Give the "
            "exporter "
            "scrape=Scrape(interval_seconds=60), or leave out the alerts"
        )
    if isinstance(options.power, Mapping) and series.job is None and series.dialect == "nvidia_smi":
        raise GpuConstructsError(
            "power_limit must be one PowerLimit, because the series of the exporter have no label with the node, got "
            f"{len(options.power)}. Set scrape='ServiceMonitor' on the exporter, which adds the label"
        )
    ignored = options.thresholds.vram_ignored_namespaces
    if ignored and series.pods == "none":
        raise GpuConstructsError(
            "thresholds.vram_ignored_namespaces must be empty for an exporter whose series have no label with the pod, "
            f"got {list(ignored)}"
        )


def _all(series: GpuSeries, options: Options) -> Iterator[Rule]:
    terms = _terms(series, options)
    for name, template in _TABLE["recording"].items():
        query = terms.query(template)
        yield Rule(name, "recording", query.expr, query.needs)
    for row in _TABLE["alerts"]:
        of_row = terms.extended(row.get("with"))
        try:
            if row["name"] == _DRIFT:
                yield from _drifts(row, of_row, series, options)
            else:
                yield _alert(row, of_row, options, {})
        except NoAnswer:
            continue


def _alert(row: Mapping[str, Any], terms: Terms, options: Options, labels: Mapping[str, str]) -> Rule:
    """Return the alert that ``row``, an item of ``alerts.yaml``, describes. Add ``labels`` to the labels of the alert.

    Raises:
        NoAnswer: The alert does not apply to this exporter or these options, according to ``row``.
    """
    if not terms.holds(row.get("if", {})):
        raise NoAnswer
    expr, needs = terms.query(row["expr"])
    name = row["name"]
    pending = (options.thresholds.pending or {}).get(name, terms.render(row["for"]))
    annotations = {key: terms.render(row[key]) for key in ("summary", "description")}
    if options.runbook_url is not None:
        annotations["runbook_url"] = f"{options.runbook_url}#{name.lower()}"
    return Rule(
        name=name,
        group=row["group"],
        expr=expr,
        needs=needs,
        pending=seconds("thresholds.pending", pending),
        labels={**options.alert_labels, **labels, "severity": options.severities.get(name, row["severity"])},
        annotations=annotations,
    )


def _drifts(row: Mapping[str, Any], terms: Terms, series: GpuSeries, options: Options) -> Iterator[Rule]:
    """Yield an alert from ``row`` for each requested power limit. It fires if the actual limit of a GPU differs."""
    node, before = series.labels.node, list[str]()
    for nodes, agent in _agents(options).items():
        chosen, labels = list[str](), dict[str, str]()
        if nodes is not None:
            chosen = [f"{node}=~{_quoted(nodes)}", *(f"{node}!~{_quoted(other)}" for other in before)]
            labels = {"power_limit": agent.name}
            before.append(nodes)
        for number, request in enumerate(agent.requests):
            whose = "watts" if request.target is None else f"{request.target}:{request.pattern}"
            values = {
                "boards": ",".join([*chosen, *_boards(series, request, agent.requests[:number])]),
                "corrects_within": f"{_corrects_within(agent)}s",
                "percent": request.percent,
                "watts": request.watts,
                # Escaped, so that the templates of Prometheus print the braces unchanged.
                "whose": whose.replace("{{", '{{ "{{" }}'),
            }
            kind = "percent" if request.percent is not None else "default" if request.watts is None else "watts"
            of_request = terms.extended(values=values, facts={"request": kind, "out_of_range": agent.out_of_range})
            yield _alert(row, of_request, options, {**labels, "request": whose})


def _agents(options: Options) -> Mapping[str | None, KeepsPowerLimits]:
    """Return a dict from a pattern of node names (None: all nodes) to the ``PowerLimit`` of these nodes."""
    power = options.power
    if power is None:
        return {}
    return dict(power.items()) if isinstance(power, Mapping) else {None: power}


def _corrects_within(agent: KeepsPowerLimits) -> int:
    """Return the number of seconds after which a ``PowerLimit`` has certainly corrected a wrong limit.

    The result is the time between two checks plus the time of a retry, rounded up to full minutes, plus four minutes.
    The four minutes are for the restart of the pod and for the scrape of the new value.
    """
    return -(-(agent.interval_seconds + agent.retry_seconds) // 60) * 60 + _SLACK_SECONDS


def _terms(series: GpuSeries, options: Options) -> Terms:
    thresholds = options.thresholds
    by_model, boards = _temperatures(series, thresholds)
    windows = {name: seconds(name, getattr(thresholds, name)) for name in _WINDOWS}
    return Terms(
        series,
        {**_TABLE["terms"], **by_model},
        values={
            **{f"thresholds.{one.name}": getattr(thresholds, one.name) for one in fields(thresholds)},
            **{f"window.{name}": _window(length, series) for name, length in windows.items()},
            **{f"seconds.{name}": length for name, length in windows.items()},
            "window.rate": _window(_RATE_SECONDS, series),
            "vram_ignored_namespaces": "|".join(thresholds.vram_ignored_namespaces),
            **boards,
            **_codes(series, options),
            **_daemonsets(series, options),
        },
        facts={
            "kube_state_metrics": options.kube_state_metrics,
            "device_plugin": options.device_plugin is not None,
            "power": options.power is not None,
            "node_label": series.labels.node,
            **{name: bool(getattr(thresholds, name)) for name in _LISTS},
        },
    )


def _window(number: int, series: GpuSeries) -> str:
    return prometheus_duration(max(number, _FEWEST_SCRAPES * series.scrape_interval_seconds))


def _temperatures(series: GpuSeries, thresholds: AlertThresholds) -> tuple[dict[str, Any], dict[str, str]]:
    """Return two dicts for the alerts about the GPU models in ``temperatures_by_model``.

    The keys are names in templates of ``alerts.yaml``. The first dict contains PromQL templates that compare each GPU
    with the temperatures of its model. The second dict contains label matchers that select GPUs by their model.
    """
    by_model = thresholds.temperatures_by_model or {}
    patterns = [_glob(pattern) for pattern in by_model]
    model = series.labels.model
    terms: dict[str, Any] = {"models.warning": "", "models.critical": ""}
    boards = {"models.others": f"{model}!~{_quoted('|'.join(patterns))}" if patterns else ""}
    for number, (warning, critical) in enumerate(by_model.values()):
        before = f",{model}!~{_quoted('|'.join(patterns[:number]))}" if number else ""
        boards[f"boards.{number}"] = f"{model}=~{_quoted(patterns[number])}{before}"
        terms[f"model.{number}"] = {**_TABLE["terms"]["temperature_of_others"], "boards": f"<boards.{number}>"}
        terms["models.warning"] += f"<model.{number}> > {warning} or "
        terms["models.critical"] += f"<model.{number}> > {critical} or "
    return terms, boards


def _codes(series: GpuSeries, options: Options) -> dict[str, str]:
    """Return regular expressions for XIDs (error numbers of the NVIDIA driver), by the placeholder in ``alerts.yaml``.

    ``xid.critical`` matches the XIDs of the alert ``GpuXidCritical``, and ``xid.warning`` those of ``GpuXidWarning``.
    The alert ``GpuXidNew`` fires for each XID that ``xid.others`` does not match.
    """
    thresholds, others = options.thresholds, options.leave_out
    spoken_of = [
        *((0,) if series.dialect == "dcgm" else ()),
        *thresholds.xid_ignored,
        *(thresholds.xid_critical if "GpuXidCritical" not in others else ()),
        *(thresholds.xid_warning if "GpuXidWarning" not in others else ()),
    ]
    lists = {"critical": thresholds.xid_critical, "warning": thresholds.xid_warning, "others": sorted(spoken_of)}
    return {f"xid.{name}": "|".join(map(str, xids)) for name, xids in lists.items()}


def _daemonsets(series: GpuSeries, options: Options) -> dict[str, str]:
    """Return PromQL for the device plugin and for missing ``PowerLimit`` pods, by placeholder in ``alerts.yaml``."""
    plugin = options.device_plugin or ""
    is_name = all(letter.isalnum() or letter == "-" for letter in plugin)
    chosen = f'%s="{plugin}"' if is_name else f'%s=~{_quoted(plugin)},%s!~"{NO_DEVICE_PLUGIN}"'
    agents = dict.fromkeys(f'namespace="{agent.namespace}",%s="{agent.name}"' for agent in _agents(options).values())
    unavailable = (Terms(series, _TABLE["terms"], values=_of(agent, "of"), facts={}) for agent in agents)
    return {
        **_of(chosen, "plugin"),
        "agents.unavailable": " or ".join(terms.render("<unavailable>") for terms in unavailable),
    }


def _of(matchers: str, prefix: str) -> dict[str, str]:
    return {f"{prefix}.{label}": matchers.replace("%s", label) for label in ("daemonset", "created_by_name")}


def _refuse_missing(rules: Sequence[Rule], series: GpuSeries) -> None:
    missing: dict[str, dict[str, None]] = {}
    for rule in rules:
        for metric in sorted(rule.needs - series.metrics):
            missing.setdefault(metric, {})[rule.name] = None
    if not missing:
        return
    listed = ", ".join(f"{metric} (for {', '.join(names)})" for metric, names in missing.items())
    concerned = list(dict.fromkeys(rule.name for rule in rules if rule.needs - series.metrics))
    more = "give the exporter metrics='recommended'" if series.dialect == "dcgm" else "make the exporter query them"
    raise GpuConstructsError(
        f"exporter must export the metrics of the rules, got none of {listed}{then(more)}. To omit the rules instead, "
        f"pass leave_out={concerned}"
    )


def _boards(series: GpuSeries, request: Any, before: Sequence[Any]) -> list[str]:
    """Return PromQL label matchers that select the GPUs to which the requested power limit ``request`` applies.

    The requests ``before`` take precedence, so the matchers exclude the GPUs that these requests select.
    """
    matchers = []
    if request.target is not None:
        label, pattern = _choice(series, request)
        matchers.append(f"{label}=~{_quoted(pattern)}")
    taken: dict[str, list[str]] = {}
    for other in before:
        # A GPU has only one index and one UUID, so two limits by index or by UUID never select the same GPU.
        if other.target != request.target or other.target == "name":
            label, pattern = _choice(series, other)
            taken.setdefault(label, []).append(pattern)
    return [*matchers, *(f"{label}!~{_quoted('|'.join(patterns))}" for label, patterns in taken.items())]


def _choice(series: GpuSeries, request: Any) -> tuple[str, str]:
    """Return a metric label, and a regular expression for its value, that select the GPUs of the limit ``request``."""
    if request.target == "uuid":
        # This exporter omits the prefix "GPU-". Source:
        # utkuozdemir/nvidia_gpu_exporter@v1.14.0:internal/integration/testdata.
        uuid = request.pattern if series.dialect == "dcgm" else request.pattern.removeprefix("GPU-")
        return series.labels.uuid, f"(?i:{_escaped(uuid)})"
    if request.target == "pci":
        domain, _, rest = request.pattern.rpartition(":")[0].rpartition(":")
        bus = f"{rest}:{request.pattern.rpartition(':')[2]}"
        return "pci_bus_id", f"(?i:0*{domain.lstrip('0')}:{_escaped(bus)})"
    if request.target == "index":
        return series.labels.gpu, _escaped(request.pattern)
    return series.labels.model, _glob(request.pattern)


def _glob(pattern: str) -> str:
    """Convert a shell pattern to a regular expression without ``^`` and ``$``, because Prometheus adds these."""
    return _PART.sub(_expression_of, pattern)


def _expression_of(part: re.Match[str]) -> str:
    negation, letters, letter = part.groups()
    if letters:
        escaped = re.sub(r"([\\\[\]^])", r"\\\1", letters)
        return f"[{'^' if negation else ''}{escaped}]"
    return {"*": ".*", "?": "."}.get(letter, _escaped(letter))


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def rule_groups(name: str, rules: Sequence[Rule]) -> list[dict[str, Any]]:
    """Return the field ``spec.groups`` of a PrometheusRule or a VMRule, with the given rules.

    Args:
        name: Prefix of the names of the groups.
        rules: Rules that ``gpu_rules`` returns.
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
