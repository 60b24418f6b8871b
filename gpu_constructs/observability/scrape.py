"""`Scrape`: options of the ServiceMonitor (or similar object) that makes Prometheus scrape an exporter."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Literal, get_args

from gpu_constructs.errors import GpuConstructsError, then
from gpu_constructs.kube import fields
from gpu_constructs.records import dataclass, field, regex

ScrapeKind = Literal["ServiceMonitor", "PodMonitor", "VMServiceScrape", "VMPodScrape", "annotations", "none"]

SCRAPE_KINDS: tuple[ScrapeKind, ...] = get_args(ScrapeKind)

_API_VERSION: Mapping[str, str] = {
    "ServiceMonitor": "monitoring.coreos.com/v1",
    "PodMonitor": "monitoring.coreos.com/v1",
    "VMServiceScrape": "operator.victoriametrics.com/v1beta1",
    "VMPodScrape": "operator.victoriametrics.com/v1beta1",
}

_Action = Literal[
    "replace",
    "keep",
    "drop",
    "hashmod",
    "labelmap",
    "labeldrop",
    "labelkeep",
    "lowercase",
    "uppercase",
    "keepequal",
    "dropequal",
]
# Required and optional fields of a relabeling step, by its action.
_ACTIONS: Mapping[str, tuple[str, str]] = {
    "replace": ("target_label", "source_labels separator regex replacement"),
    "keep": ("source_labels", "separator regex"),
    "drop": ("source_labels", "separator regex"),
    "hashmod": ("source_labels target_label modulus", "separator"),
    "labelmap": ("regex", "replacement"),
    "labeldrop": ("regex", ""),
    "labelkeep": ("regex", ""),
    "lowercase": ("source_labels target_label", "separator"),
    "uppercase": ("source_labels target_label", "separator"),
    "keepequal": ("source_labels target_label", ""),
    "dropequal": ("source_labels target_label", ""),
}
_MEMBERS = {
    "source_labels": "sourceLabels",
    "separator": "separator",
    "regex": "regex",
    "modulus": "modulus",
    "target_label": "targetLabel",
    "replacement": "replacement",
}
_LABEL_NAME = regex(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_GROUP = regex(r"\$(?:\{\w+\}|\w+)", re.ASCII)
_TOKEN = regex(
    r"\\Q.*?(?:\\E|\Z)|\\[1-7][0-7]|(?P<foreign>\\[1-9Z]|\(\?(?:P?=|!|<=|<!|>|\(|#))|\\."
    r"|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]",
    re.DOTALL,
)
_POSSESSIVE = regex(r"[*+?]\+")
_BROKEN = (
    "missing )",
    "unbalanced",
    "unterminated character set",
    "nothing to repeat",
    "multiple repeat",
    "bad escape",
)


def check_re2(field: str, expression: str, what: str = "a regular expression", way_out: str = "") -> None:
    """Raise an error if a regular expression is invalid for RE2, which Prometheus and the exporters use.

    The check compiles the expression with Python. It does not find errors that only RE2 reports.

    Args:
        field: Name of the field in the message.
        expression: Regular expression.
        what: Words for a valid value in the message, such as ``a regular expression``.
        way_out: Advice at the end of the message. Empty, the default: no advice.

    Raises:
        GpuConstructsError: If the expression is invalid. The message contains the reason.
    """
    problem = _re2_problem(expression)
    if problem:
        end = then(way_out)
        raise GpuConstructsError(f"{field} must be {what} that RE2 reads, got {expression!r}: {problem}{end}")


def _re2_problem(expression: str) -> str | None:
    # Python and RE2 differ in character classes and escapes, so the check replaces each of them by one letter.
    plain = _TOKEN.sub("x", expression)
    foreign = [token["foreign"] for token in _TOKEN.finditer(expression) if token["foreign"]]
    foreign += _POSSESSIVE.findall(plain)
    if foreign:
        return f"RE2 has no {foreign[0]!r}"
    try:
        re.compile(plain)
    except re.error as error:
        return error.msg if error.msg.startswith(_BROKEN) else None
    return None


@dataclass(frozen=True, kw_only=True)
class Relabeling(fields.Options):
    """One relabeling step of a ServiceMonitor, PodMonitor, VMServiceScrape or VMPodScrape.

    The library checks the fields of the step, because the API server does not check them in a VMServiceScrape or
    VMPodScrape. The VictoriaMetrics operator reports errors only in its log.

    Attributes:
        action: Action of the step. ``replace`` by default, as in Prometheus.
        source_labels: Labels whose values the step joins.
        separator: Text between the joined values. ``;`` by default in Prometheus.
        regex: Regular expression (RE2) that the joined values must match. ``(.*)`` by default in Prometheus.
        modulus: Divisor of the hash, for the action ``hashmod``.
        target_label: Label that the step writes.
        replacement: Value that the step writes. ``$1`` by default in Prometheus.

    Raises:
        GpuConstructsError: If a field that the action needs is missing, the action ignores a field, a label name is not
            valid, or RE2 rejects the expression.

    Source: prometheus-operator v0.93.0 and VictoriaMetrics operator v0.74.1, their CRDs.
    """

    action: _Action = "replace"
    source_labels: Sequence[str] = ()
    separator: str | None = None
    regex: str | None = None
    modulus: int | None = None
    target_label: str | None = None
    replacement: str | None = None

    _CHECKS: ClassVar[fields.Checks] = {
        "source_labels": fields.each_matching(_LABEL_NAME.pattern, "be names of labels"),
        "regex": check_re2,
        "modulus": fields.positive,
    }

    _KEPT: ClassVar[fields.Kept] = {"source_labels": tuple}

    def _conflicts(self) -> Iterable[fields.Conflict]:
        needed, taken = (names.split() for names in _ACTIONS[self.action])
        for name in _MEMBERS:
            got = getattr(self, name)
            is_given = got not in (None, ())
            yield name in needed and not is_given, f"relabeling.{name} must have a value with action {self.action!r}"
            yield (
                is_given and name not in (*needed, *taken),
                f"relabeling.{name} must be left out with action {self.action!r}, which ignores it, got {got!r}",
            )
        target = self.target_label or ""
        # Only this action replaces references to groups of the expression, such as $1.
        named = _GROUP.sub("x", target) if self.action == "replace" else target
        is_named = self.target_label is None or _LABEL_NAME.match(named)
        yield not is_named, f"relabeling.target_label must be the name of a label, got {self.target_label!r}"

    def to_manifest(self) -> dict[str, Any]:
        """Return the relabeling step as in a manifest. A ServiceMonitor and a VMServiceScrape use the same fields."""
        given = {theirs: getattr(self, ours) for ours, theirs in _MEMBERS.items()}
        given["sourceLabels"] = list(self.source_labels) or None
        return {"action": self.action, **{name: value for name, value in given.items() if value is not None}}


_SECONDS = partial(fields.whole_number, minimum=1, maximum=3600)


@dataclass(frozen=True, kw_only=True)
class Scrape(fields.Options):
    """Options of the object, such as a ServiceMonitor, that makes Prometheus or VictoriaMetrics scrape an exporter.

    The scraper is Prometheus or vmagent. The exporter adds the labels ``pod``, ``namespace`` and ``container`` of the
    pod that uses a GPU, and ``honor_labels`` makes the scraper keep these labels. For an idle GPU, the exporter adds no
    such labels. The scraper would then add the labels of the exporter's own pod, as if that pod used the GPU. The
    object therefore contains a relabeling step that drops these three labels of the exporter's own pod. The labels
    ``exporter_pod`` and ``node`` still distinguish the pods of the exporter.

    Attributes:
        kind: Kind of the object. ``ServiceMonitor``, the default, and ``PodMonitor`` belong to Prometheus Operator. The
            VictoriaMetrics operator converts them if their CRDs are in the cluster. ``VMServiceScrape`` and
            ``VMPodScrape`` belong to the VictoriaMetrics operator. ``annotations`` sets ``prometheus.io/scrape`` on the
            Service, for a Prometheus that looks for this annotation. The configuration of that Prometheus determines
            labels such as ``job``. ``none`` emits no object and no annotation. Use only one object: two objects for the
            same pods double every series.
        labels: Labels with which the monitoring stack selects the object, such as ``release: kube-prometheus-stack``.
        interval_seconds: Time between two scrapes, in seconds. None, the default: the time between two readings of the
            GPUs. A shorter interval returns the same values several times.
        scrape_timeout_seconds: Time limit of a scrape, in seconds, at most the interval. None, the default: 10, or the
            interval if it is shorter.
        honor_labels: Whether labels of the exporter take precedence over labels of the scraper. True by default.
        relabelings: Relabeling steps for the labels of the scrape target. They run after the steps of this library.
        metric_relabelings: Relabeling steps for the labels of every series.
        sample_limit: Number of series in one scrape above which the scrape fails. None, the default: no limit.

    Raises:
        GpuConstructsError: If the kind is unknown, or the timeout is above the interval. Also raised if the kind is
            ``annotations`` or ``none``, but the user sets another option.
    """

    kind: ScrapeKind = "ServiceMonitor"
    labels: Mapping[str, str] = field(default_factory=dict)
    interval_seconds: int | None = None
    scrape_timeout_seconds: int | None = None
    honor_labels: bool = True
    relabelings: Sequence[Relabeling] = ()
    metric_relabelings: Sequence[Relabeling] = ()
    sample_limit: int | None = None

    _CHECKS: ClassVar[fields.Checks] = {
        "labels": fields.labels,
        "interval_seconds": _SECONDS,
        "scrape_timeout_seconds": _SECONDS,
        "sample_limit": fields.positive,
    }

    _KEPT: ClassVar[fields.Kept] = {
        "labels": dict,
        "relabelings": tuple,
        "metric_relabelings": tuple,
    }

    def _conflicts(self) -> Iterable[fields.Conflict]:
        if self.scrape_timeout_seconds is not None and self.interval_seconds is not None:
            _check_timeout(self.scrape_timeout_seconds, self.interval_seconds)
        numbers = (self.interval_seconds, self.scrape_timeout_seconds, self.sample_limit)
        has_options = any((self.labels, self.relabelings, self.metric_relabelings, *numbers, not self.honor_labels))
        yield (
            has_options and not self.is_object,
            f"scrape must have no other options with {self.kind!r}, which creates no object. Remove them",
        )

    @classmethod
    def of(cls, given: ScrapeKind | Scrape, labels: Mapping[str, str] | None) -> Scrape:
        """Return the scrape settings of an exporter.

        ``given`` is the option ``scrape`` of the exporter, and ``labels`` is the option ``scrape_labels``.

        Raises:
            GpuConstructsError: If the user sets labels in both options, sets labels for a kind that emits no object, or
                sets an invalid value.
        """
        fields.of_type("scrape_labels", labels, Mapping[str, str] | None)
        if isinstance(given, Scrape):
            if labels:
                raise GpuConstructsError(
                    "scrape_labels must be left out with scrape=Scrape(...), which has its own keyword labels, got "
                    f"{dict(labels)!r}"
                )
            return given
        fields.one_of("scrape", given, SCRAPE_KINDS)
        fields.labels("scrape_labels", labels or {})
        if labels and given not in _API_VERSION:
            raise GpuConstructsError(
                f"scrape_labels must be left out with scrape={given!r}, which creates no object, got {dict(labels)!r}"
            )
        return cls(kind=given, labels=dict(labels or {}))

    @property
    def is_object(self) -> bool:
        """Whether ``kind`` names an object, such as a ServiceMonitor. False for ``annotations`` and ``none``."""
        return self.kind in _API_VERSION

    def annotations(self, port: int, path: str = "/metrics") -> dict[str, str]:
        """Return the annotations of the Service, for a Prometheus that looks for ``prometheus.io/scrape``."""
        if self.kind != "annotations":
            return {}
        return {
            "prometheus.io/scrape": "true",
            "prometheus.io/port": str(port),
            "prometheus.io/path": path,
            "prometheus.io/scheme": "http",
        }

    @property
    def selects_pods(self) -> bool:
        """Whether the object selects pods directly, so that it needs no Service: a PodMonitor or a VMPodScrape."""
        return self.kind in ("PodMonitor", "VMPodScrape")


def scrape_manifest(
    scrape: Scrape,
    *,
    metadata: Mapping[str, Any],
    selector_labels: Mapping[str, str],
    port: str,
    collect_interval_seconds: int,
    access: Mapping[str, Any] | None = None,
    path: str = "/metrics",
) -> dict[str, Any]:
    """Return the ServiceMonitor, PodMonitor, VMServiceScrape or VMPodScrape of an exporter.

    With each of these kinds, the label ``job`` of the series is the name of the exporter.

    Args:
        scrape: Scrape settings of the user.
        metadata: Metadata of the exporter. The object has the same name and namespace.
        selector_labels: Labels of the Service. For a PodMonitor or VMPodScrape: labels of the pods.
        port: Name of the port of the Service. For a PodMonitor or VMPodScrape: name of the container port.
        collect_interval_seconds: Time between two readings of the GPUs, in seconds. It is the default scrape interval.
        access: Further fields of the endpoint, for HTTPS and passwords. None: plain HTTP without a password.
        path: HTTP path of the metrics.

    Raises:
        GpuConstructsError: If the timeout is longer than the interval.

    Source: prometheus-operator v0.93.0 and VictoriaMetrics operator v0.74.1, their CRDs. Both operators add their own
        relabelings before those of the object.
    """
    interval = scrape.interval_seconds or collect_interval_seconds
    timeout = scrape.scrape_timeout_seconds or min(10, interval)
    _check_timeout(timeout, interval)
    is_vm = scrape.kind.startswith("VM")
    metric_steps = [step.to_manifest() for step in scrape.metric_relabelings]
    endpoint: dict[str, Any] = {
        "port": port,
        "path": path,
        "interval": f"{interval}s",
        "scrapeTimeout": f"{timeout}s",
        "honorLabels": scrape.honor_labels,
        "relabelConfigs" if is_vm else "relabelings": [
            *_own_steps(metadata["name"] if scrape.selects_pods else None, honor_labels=scrape.honor_labels),
            *(step.to_manifest() for step in scrape.relabelings),
        ],
        **({"metricRelabelConfigs" if is_vm else "metricRelabelings": metric_steps} if metric_steps else {}),
        **(access or {}),
    }
    spec: dict[str, Any] = {
        "selector": {"matchLabels": dict(selector_labels)},
        "namespaceSelector": {"matchNames": [metadata["namespace"]]},
        "podMetricsEndpoints" if scrape.selects_pods else "endpoints": [endpoint],
        **({"sampleLimit": scrape.sample_limit} if scrape.sample_limit else {}),
    }
    return {
        "apiVersion": _API_VERSION[scrape.kind],
        "kind": scrape.kind,
        "metadata": {**metadata, "labels": {**metadata["labels"], **scrape.labels}},
        "spec": spec,
    }


def _check_timeout(timeout: int, interval: int) -> None:
    if timeout > interval:
        raise GpuConstructsError(
            "scrape.scrape_timeout_seconds must be at most the interval, because Prometheus Operator rejects a longer "
            f"timeout and vmagent shortens it, got {timeout} with an interval of {interval} seconds"
        )


def _own_steps(job: str | None, *, honor_labels: bool) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = [
        {"action": "replace", "sourceLabels": ["__meta_kubernetes_pod_node_name"], "targetLabel": "node"}
    ]
    if job is not None:
        # If there is no Service, the operators would set the job to <namespace>/<object>.
        steps.append({"action": "replace", "targetLabel": "job", "replacement": job})
    if not honor_labels:
        return steps
    return [
        {"action": "replace", "sourceLabels": ["pod"], "targetLabel": "exporter_pod"},
        *steps,
        {"action": "labeldrop", "regex": "pod|container|namespace|service|endpoint"},
    ]
