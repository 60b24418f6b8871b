"""The object that tells Prometheus or VictoriaMetrics to scrape an exporter."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Literal, get_args

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube import fields

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
# What each action needs, and what it takes besides.
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
_LABEL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_GROUP = re.compile(r"\$(?:\{\w+\}|\w+)", re.ASCII)
_TOKEN = re.compile(
    r"\\Q.*?(?:\\E|\Z)|\\[1-7][0-7]|(?P<foreign>\\[1-9Z]|\(\?(?:P?=|!|<=|<!|>|\(|#))|\\."
    r"|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]",
    re.DOTALL,
)
_POSSESSIVE = re.compile(r"[*+?]\+")
_BROKEN = (
    "missing )",
    "unbalanced",
    "unterminated character set",
    "nothing to repeat",
    "multiple repeat",
    "bad escape",
)


def check_re2(field: str, expression: str, what: str = "a regular expression", way_out: str = "") -> None:
    """Raise for a regular expression that RE2, with which scrapers and exporters read them, would refuse.

    Only what Python refuses for the same reason is reported as broken: each knows things that the other does not.

    Raises:
        GpuConstructsError: With the reason.
    """
    problem = _re2_problem(expression)
    if problem:
        end = f"; {way_out}" if way_out else ""
        raise GpuConstructsError(f"{field} must be {what} that RE2 reads; got {expression!r}: {problem}{end}")


def _re2_problem(expression: str) -> str | None:
    # Classes and escapes, which are where Python and RE2 differ, stand for one letter here.
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
    """One step of relabeling, as both operators read it.

    VictoriaMetrics' objects take any text in these fields and its operator complains only in its log, so they
    are checked here.

    Attributes:
        action: What to do; ``replace`` by default, as in Prometheus.
        source_labels: Labels whose values are joined.
        separator: What they are joined with; ``;`` in Prometheus.
        regex: Regular expression (RE2) that is matched; ``(.*)`` in Prometheus.
        modulus: For ``hashmod``.
        target_label: Label that is written.
        replacement: What is written; ``$1`` in Prometheus.

    Raises:
        GpuConstructsError: A member is missing that the action needs, or there is one it ignores; a name that
            is not a label; an expression that RE2 does not know.

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
            yield name in needed and not is_given, f"relabeling.{name} is required with action {self.action!r}"
            yield (
                is_given and name not in (*needed, *taken),
                f"relabeling.{name} must be left out with action {self.action!r}, which ignores it; got {got!r}",
            )
        target = self.target_label or ""
        # Only here Prometheus fills in groups of the expression.
        named = _GROUP.sub("x", target) if self.action == "replace" else target
        is_named = self.target_label is None or _LABEL_NAME.match(named)
        yield not is_named, f"relabeling.target_label must be the name of a label; got {self.target_label!r}"

    def to_manifest(self) -> dict[str, Any]:
        """Return the step as both operators write it."""
        given = {theirs: getattr(self, ours) for ours, theirs in _MEMBERS.items()}
        given["sourceLabels"] = list(self.source_labels) or None
        return {"action": self.action, **{name: value for name, value in given.items() if value is not None}}


_SECONDS = partial(fields.whole_number, minimum=1, maximum=3600)


@dataclass(frozen=True, kw_only=True)
class Scrape(fields.Options):
    """How a monitoring stack learns of an exporter, and what it does with the labels.

    The exporter says which pod uses a GPU (``pod``, ``namespace``, ``container``). ``honor_labels`` keeps that.
    Of an idle GPU it says nothing, and the scraper's own labels would fill the gap: the GPU would look used by
    the exporter. So they are dropped, once ``exporter_pod`` and ``node`` keep what tells targets apart.

    Attributes:
        kind: ``ServiceMonitor`` or ``PodMonitor`` (prometheus-operator; the VictoriaMetrics operator converts
            them where their CRDs are installed), ``VMServiceScrape`` or ``VMPodScrape`` (VictoriaMetrics
            operator), ``annotations`` (``prometheus.io/scrape`` on the Service, for a Prometheus that is
            configured to look for them; it does its own labelling), or ``none``. One is enough: a second
            object for the same target doubles every series.
        labels: Labels by which the stack finds the object, such as ``release: kube-prometheus-stack``.
        interval_seconds: Seconds between two scrapes. None: as often as the exporter reads the GPUs; more
            often repeats points.
        scrape_timeout_seconds: Seconds to wait for an answer, no more than the interval. None: 10, or the
            interval where that is shorter.
        honor_labels: Whether the exporter's labels win. True; see above.
        relabelings: Steps on the target's labels, after ours.
        metric_relabelings: Steps on the labels of every series.
        sample_limit: Series in one answer at which the scraper gives up; None for no limit.

    Raises:
        GpuConstructsError: Another kind, a timeout above the interval, or options beside ``annotations`` or
            ``none``, which carry none.
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
        said = any((self.labels, self.relabelings, self.metric_relabelings, *numbers, not self.honor_labels))
        yield (
            said and not self.is_object,
            f"scrape must hold nothing but its kind with {self.kind!r}, which makes no object to hold it; "
            "choose another kind",
        )

    @classmethod
    def of(cls, given: ScrapeKind | Scrape, labels: Mapping[str, str] | None) -> Scrape:
        """Return the scrape that a user asks for by a word or with options.

        Raises:
            GpuConstructsError: Labels in two places, or for no object; something else altogether.
        """
        fields.of_type("scrape_labels", labels, Mapping[str, str] | None)
        if isinstance(given, Scrape):
            if labels:
                raise GpuConstructsError(
                    f"scrape_labels must be left out beside scrape=Scrape(...), which has labels; got {dict(labels)!r}"
                )
            return given
        fields.one_of("scrape", given, SCRAPE_KINDS)
        fields.labels("scrape_labels", labels or {})
        if labels and given not in _API_VERSION:
            raise GpuConstructsError(
                f"scrape_labels must be left out with scrape={given!r}, which makes no object; got {dict(labels)!r}"
            )
        return cls(kind=given, labels=dict(labels or {}))

    @property
    def is_object(self) -> bool:
        """Whether it is an object of its own."""
        return self.kind in _API_VERSION

    def annotations(self, port: int, path: str = "/metrics") -> dict[str, str]:
        """Return the annotations of the Service by which a Prometheus finds the pods if it is configured to."""
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
        """Whether it finds pods without a Service."""
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
    """Return the manifest of the scrape object.

    ``job`` of the series is the exporter's name, whatever the kind.

    Args:
        scrape: Scrape of the user.
        metadata: Metadata of the exporter, whose name and namespace the object has.
        selector_labels: Labels of the Service, or of the pods for kinds that select pods.
        port: Name of the port of the Service, or of the container for kinds that select pods.
        collect_interval_seconds: Seconds between two readings of the GPUs.
        access: Further fields of the endpoint: scheme, TLS, passwords.
        path: Path of the metrics.

    Raises:
        GpuConstructsError: The timeout is longer than the exporter's interval.

    Source: prometheus-operator v0.93.0 and VictoriaMetrics operator v0.74.1, their CRDs; both append a user's
    relabelings to their own.
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
            "scrape.scrape_timeout_seconds must be at most the interval: the operators refuse such an object; "
            f"got {timeout} with an interval of {interval} seconds"
        )


def _own_steps(job: str | None, *, honor_labels: bool) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = [
        {"action": "replace", "sourceLabels": ["__meta_kubernetes_pod_node_name"], "targetLabel": "node"}
    ]
    if job is not None:
        # Without a Service the operators would call the job <namespace>/<object>.
        steps.append({"action": "replace", "targetLabel": "job", "replacement": job})
    if not honor_labels:
        return steps
    return [
        {"action": "replace", "sourceLabels": ["pod"], "targetLabel": "exporter_pod"},
        *steps,
        {"action": "labeldrop", "regex": "pod|container|namespace|service|endpoint"},
    ]
