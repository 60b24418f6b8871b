"""Rules on GPUs, rendered from ``alerts.yaml`` for one exporter."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal, NamedTuple

from gpu_constructs.errors import GpuConstructsError, did_you_mean
from gpu_constructs.kube.tables import table
from gpu_constructs.observability.alert_thresholds import AlertThresholds, prometheus_duration, seconds
from gpu_constructs.observability.gpu_series import GpuSeries, KeepsPowerLimits
from gpu_constructs.observability.terms import NoAnswer, Terms

Severity = Literal["critical", "warning", "info"]

DEVICE_PLUGIN = ".*nvidia-device-plugin.*"
NO_DEVICE_PLUGIN = ".*(mps-control-daemon|feature-discovery).*"
"""Names like that of the plugin, of DaemonSets that rightly have no pod on nodes that do not share by MPS."""

_LONGEST_INTERVAL = 120
_FEWEST_SCRAPES = 4
"""Scrapes in a window, so that a rate remains if one of them fails."""

_LISTS = ("vram_ignored_namespaces", "xid_critical", "xid_warning")
_WINDOWS = ("idle", "xid_window", "lost_window", "collection_stale")
_RATE_SECONDS = 300
_SLACK_SECONDS = 240
_DRIFT = "GpuPowerLimitDrift"

_SPECIAL = re.compile(r"([\\.^$*+?()\[\]{}|])")
# Of a shell pattern: one of some letters, or a letter. A closing bracket that comes first is one of those.
_PART = re.compile(r"\[(?:([!^])|(?![!^]))(.[^]]*)\]|(.)", re.DOTALL)


class Options(NamedTuple):
    """Options of the rules.

    Attributes:
        thresholds: Thresholds and windows of the alerts.
        device_plugin: Name of the DaemonSet of the device plugin, or a regular expression; None leaves its alerts out.
        kube_state_metrics: Whether kube-state-metrics runs.
        power: What keeps the limits: of every node, or by a regular expression of node names.
        leave_out: Names of rules to leave out.
        severities: Other severities, by alert.
        runbook_url: Address of the runbook; None for no link.
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
    """A rule, ready to be written.

    Attributes:
        name: Name of the alert, or of the series that is recorded.
        group: Name of the group.
        expr: Expression in PromQL.
        needs: Metrics of the exporter in it.
        pending: Seconds for which it must hold; None for a recording rule.
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
    """Return the rules for an exporter, without those that are left out and those it has no metric for.

    Raises:
        GpuConstructsError: The exporter could export what a rule needs but does not, it is scraped too seldom, or a
            name is not that of a rule.
    """
    known = {
        "leave_out": (options.leave_out, RULE_NAMES),
        "severities": (options.severities, ALERT_NAMES),
        "thresholds.pending": (options.thresholds.pending or (), ALERT_NAMES),
    }
    for field, (given, names) in known.items():
        for name in given:
            if name not in names:
                raise GpuConstructsError(f"{field} must name rules of ours; got {name!r}{did_you_mean(name, names)}")
    _check_series(series, options)
    rules = [rule for rule in _all(series, options) if rule.name not in options.leave_out]
    _refuse_missing(rules, series)
    return rules


def _check_series(series: GpuSeries, options: Options) -> None:
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
    ignored = options.thresholds.vram_ignored_namespaces
    if ignored and series.pods == "none":
        raise GpuConstructsError(
            f"thresholds.vram_ignored_namespaces must be empty for an exporter that names no pods; got {list(ignored)}"
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
    """Return the rule of one row of the table.

    Raises:
        NoAnswer: The row is not for this exporter, or not for these options.
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
    """Return a rule for each power limit of each agent, which holds GPUs of its nodes against it."""
    node, before = series.labels.node, list[str]()
    for nodes, agent in _agents(options).items():
        chosen, labels = list[str](), dict[str, str]()
        if nodes is not None:
            chosen = [f"{node}=~{_quoted(nodes)}", *(f"{node}!~{_quoted(other)}" for other in before)]
            labels = {"power_limit": agent.name}
            before.append(nodes)
        for number, wish in enumerate(agent.wishes):
            whose = "watts" if wish.target is None else f"{wish.target}:{wish.pattern}"
            values = {
                "boards": ",".join([*chosen, *_boards(series, wish, agent.wishes[:number])]),
                "corrects_within": f"{_corrects_within(agent)}s",
                "percent": wish.percent,
                "watts": wish.watts,
                # Prometheus' templates leave it as it is.
                "whose": whose.replace("{{", '{{ "{{" }}'),
            }
            kind = "percent" if wish.percent is not None else "default" if wish.watts is None else "watts"
            of_wish = terms.extended(values=values, facts={"wish": kind, "out_of_range": agent.out_of_range})
            yield _alert(row, of_wish, options, {**labels, "wish": whose})


def _agents(options: Options) -> Mapping[str | None, KeepsPowerLimits]:
    """Return what keeps power limits, by the nodes that it is for, or None for all."""
    power = options.power
    if power is None:
        return {}
    return dict(power.items()) if isinstance(power, Mapping) else {None: power}


def _corrects_within(agent: KeepsPowerLimits) -> int:
    """Return the seconds in which an agent sets right what has drifted.

    In whole minutes, and then time for its pod to restart and for the new value to be scraped.
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
    """Return terms that compare models with temperatures of their own, and the matchers of these models."""
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
    """Return the XIDs that each alert names. The last alert is about all XIDs except those that it names."""
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
    """Return the matchers of the device plugin, by each of the labels that hold its name, and those of agents."""
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
    more = "give the exporter metrics='recommended'" if series.dialect == "dcgm" else "have the exporter query them"
    raise GpuConstructsError(
        f"exporter must export what the rules need; got none of {listed}; {more}, or leave the rules out with "
        f"leave_out={concerned}"
    )


def _boards(series: GpuSeries, wish: Any, before: Sequence[Any]) -> list[str]:
    """Return the matchers of the GPUs for which a power limit wins: its own, without those of the ones before it."""
    matchers = []
    if wish.target is not None:
        label, pattern = _choice(series, wish)
        matchers.append(f"{label}=~{_quoted(pattern)}")
    taken: dict[str, list[str]] = {}
    for other in before:
        # No GPU has two numbers or two UUIDs.
        if other.target != wish.target or other.target == "name":
            label, pattern = _choice(series, other)
            taken.setdefault(label, []).append(pattern)
    return [*matchers, *(f"{label}!~{_quoted('|'.join(patterns))}" for label, patterns in taken.items())]


def _choice(series: GpuSeries, wish: Any) -> tuple[str, str]:
    """Return the label by which a power limit chooses GPUs, and the expression that its value must match."""
    if wish.target == "uuid":
        # Without its prefix there. Source: utkuozdemir/nvidia_gpu_exporter@v1.14.0:internal/integration/testdata.
        uuid = wish.pattern if series.dialect == "dcgm" else wish.pattern.removeprefix("GPU-")
        return series.labels.uuid, f"(?i:{_escaped(uuid)})"
    if wish.target == "pci":
        domain, _, rest = wish.pattern.rpartition(":")[0].rpartition(":")
        bus = f"{rest}:{wish.pattern.rpartition(':')[2]}"
        return "pci_bus_id", f"(?i:0*{domain.lstrip('0')}:{_escaped(bus)})"
    if wish.target == "index":
        return series.labels.gpu, _escaped(wish.pattern)
    return series.labels.model, _glob(wish.pattern)


def _glob(pattern: str) -> str:
    """Return the regular expression of a shell pattern; Prometheus anchors it."""
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
    """Return a text as PromQL writes it."""
    return json.dumps(text, ensure_ascii=False)


def rule_groups(name: str, rules: Sequence[Rule]) -> list[dict[str, Any]]:
    """Return the rules in groups, in the form of PrometheusRule and VMRule.

    Args:
        name: Prefix of the names of the groups.
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
