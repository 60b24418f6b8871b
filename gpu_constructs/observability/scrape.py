"""The object that tells Prometheus or VictoriaMetrics to scrape an exporter."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from gpu_constructs import _fields
from gpu_constructs.errors import GpuConstructsError, ShortErrors, warn

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
_NEEDS: Mapping[str, tuple[str, ...]] = {
    "replace": ("target_label",),
    "keep": ("source_labels",),
    "drop": ("source_labels",),
    "hashmod": ("source_labels", "target_label", "modulus"),
    "labelmap": ("regex",),
    "labeldrop": ("regex",),
    "labelkeep": ("regex",),
    "lowercase": ("source_labels", "target_label"),
    "uppercase": ("source_labels", "target_label"),
    "keepequal": ("source_labels", "target_label"),
    "dropequal": ("source_labels", "target_label"),
}
_TAKES: Mapping[str, tuple[str, ...]] = {
    "replace": ("source_labels", "separator", "regex", "replacement"),
    "keep": ("separator", "regex"),
    "drop": ("separator", "regex"),
    "hashmod": ("separator",),
    "labelmap": ("replacement",),
    "lowercase": ("separator",),
    "uppercase": ("separator",),
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


def re2_problem(expression: str) -> str | None:
    """Say why RE2, with which scrapers and exporters read expressions, would refuse one; None as far as we know.

    Only what Python refuses for the same reason is reported as broken: each knows things that the other does not.
    """
    for token in _TOKEN.finditer(expression):
        if token["foreign"]:
            return f"RE2 has no {token['foreign']!r}"
    # Classes and escapes, which are where Python and RE2 differ, stand for one letter here.
    plain = _TOKEN.sub("x", expression)
    possessive = _POSSESSIVE.search(plain)
    if possessive:
        return f"RE2 has no {possessive[0]!r}"
    try:
        re.compile(plain)
    except re.error as error:
        return error.msg if error.msg.startswith(_BROKEN) else None
    return None


@dataclass(frozen=True, kw_only=True)
class Relabeling(metaclass=ShortErrors):
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
            is no label; an expression that RE2 does not know.

    Source: prometheus-operator v0.93.0 and VictoriaMetrics operator v0.74.1, their CRDs.
    """

    action: _Action = "replace"
    source_labels: Sequence[str] = ()
    separator: str | None = None
    regex: str | None = None
    modulus: int | None = None
    target_label: str | None = None
    replacement: str | None = None

    def __post_init__(self) -> None:
        _fields.members(self, "relabeling")
        object.__setattr__(self, "source_labels", tuple(self.source_labels))
        needed, taken = _NEEDS[self.action], _TAKES.get(self.action, ())
        for name in _MEMBERS:
            is_given = getattr(self, name) not in (None, ())
            if name in needed and not is_given:
                raise GpuConstructsError(f"relabeling.{name} is required with action {self.action!r}")
            if is_given and name not in (*needed, *taken):
                raise GpuConstructsError(
                    f"relabeling.{name} must be left out with action {self.action!r}, which ignores it; "
                    f"got {getattr(self, name)!r}"
                )
        for label in self.source_labels:
            if not _LABEL_NAME.match(label):
                raise GpuConstructsError(f"relabeling.source_labels must be names of labels; got {label!r}")
        target = self.target_label or ""
        # Only here Prometheus fills in groups of the expression.
        named = _GROUP.sub("x", target) if self.action == "replace" else target
        if self.target_label is not None and not _LABEL_NAME.match(named):
            raise GpuConstructsError(f"relabeling.target_label must be the name of a label; got {self.target_label!r}")
        if self.modulus is not None:
            _fields.whole_number("relabeling.modulus", self.modulus, minimum=1)
        problem = re2_problem(self.regex or "")
        if problem:
            raise GpuConstructsError(
                f"relabeling.regex must be a regular expression that RE2 reads; got {self.regex!r}: {problem}"
            )

    def to_manifest(self) -> dict[str, Any]:
        """Give the step as both operators write it."""
        given = {theirs: getattr(self, ours) for ours, theirs in _MEMBERS.items()}
        given["sourceLabels"] = list(self.source_labels) or None
        return {"action": self.action, **{name: value for name, value in given.items() if value is not None}}


@dataclass(frozen=True, kw_only=True)
class Scrape(metaclass=ShortErrors):
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

    def __post_init__(self) -> None:
        _fields.members(self, "scrape")
        _fields.labels("scrape.labels", self.labels)
        if self.interval_seconds is not None:
            _fields.whole_number("scrape.interval_seconds", self.interval_seconds, minimum=1, maximum=3600)
        if self.scrape_timeout_seconds is not None:
            _fields.whole_number("scrape.scrape_timeout_seconds", self.scrape_timeout_seconds, minimum=1, maximum=3600)
            if self.interval_seconds is not None:
                _check_timeout(self.scrape_timeout_seconds, self.interval_seconds)
        if self.sample_limit is not None:
            _fields.whole_number("scrape.sample_limit", self.sample_limit, minimum=1)
        object.__setattr__(self, "labels", dict(self.labels))
        object.__setattr__(self, "relabelings", tuple(self.relabelings))
        object.__setattr__(self, "metric_relabelings", tuple(self.metric_relabelings))
        numbers = (self.interval_seconds, self.scrape_timeout_seconds, self.sample_limit)
        said = (self.labels, self.relabelings, self.metric_relabelings, *numbers)
        if not self.is_object and (any(said) or not self.honor_labels):
            raise GpuConstructsError(
                f"scrape must hold nothing but its kind with {self.kind!r}, which makes no object to hold it; "
                "choose another kind"
            )

    @classmethod
    def of(cls, given: ScrapeKind | Scrape, labels: Mapping[str, str] | None) -> Scrape:
        """Give the scrape for what a user said by a word or with options.

        Raises:
            GpuConstructsError: Labels in two places, or for no object; something else altogether.
        """
        _fields.of_type("scrape_labels", labels, Mapping[str, str] | None)
        if isinstance(given, Scrape):
            if labels:
                raise GpuConstructsError(
                    f"scrape_labels must be left out beside scrape=Scrape(...), which has labels; got {dict(labels)!r}"
                )
            return given
        _fields.one_of("scrape", given, SCRAPE_KINDS)
        _fields.labels("scrape_labels", labels or {})
        if labels and given not in _API_VERSION:
            raise GpuConstructsError(
                f"scrape_labels must be left out with scrape={given!r}, which makes no object; got {dict(labels)!r}"
            )
        return cls(kind=given, labels=dict(labels or {}))

    @property
    def is_object(self) -> bool:
        """Whether it is an object of its own."""
        return self.kind in _API_VERSION

    def require_way(self, *, has_service: bool, is_guarded: bool) -> None:
        """Refuse ways to the pods that are not there, or that cannot get in."""
        if not has_service and self.kind in ("ServiceMonitor", "VMServiceScrape", "annotations"):
            raise GpuConstructsError(
                f"service must not be False with scrape={self.kind!r}, which finds pods through the Service; use "
                "scrape='PodMonitor' or 'VMPodScrape'"
            )
        if self.kind == "annotations" and is_guarded:
            raise GpuConstructsError(
                "scrape must not be 'annotations' with tls or basic_auth, since annotations carry neither certificates "
                "nor passwords; take one of the kinds that are objects, or 'none'"
            )

    def annotations(self, port: int, path: str = "/metrics") -> dict[str, str]:
        """Give the Service's annotations that a Prometheus looks for which is configured to; else none."""
        if self.kind != "annotations":
            return {}
        return {
            "prometheus.io/scrape": "true",
            "prometheus.io/port": str(port),
            "prometheus.io/path": path,
            "prometheus.io/scheme": "http",
        }

    def warn_of_another(self, *, service_annotations: Mapping[str, str], pod_annotations: Mapping[str, str]) -> None:
        """Warn of annotations by which a Prometheus that looks for them scrapes what this object has scraped."""
        for place, given in (("service.annotations", service_annotations), ("pod_annotations", pod_annotations)):
            if self.is_object and given.get("prometheus.io/scrape") == "true":
                warn(
                    f"{place} holds 'prometheus.io/scrape' beside scrape={self.kind!r}: a Prometheus that looks for it "
                    "scrapes the same target again; leave it out, or pass scrape='annotations'"
                )

    @property
    def selects_pods(self) -> bool:
        """Whether it finds pods without a Service."""
        return self.kind in ("PodMonitor", "VMPodScrape")


def scrape_manifest(
    scrape: Scrape,
    *,
    name: str,
    namespace: str,
    labels: Mapping[str, str],
    selector_labels: Mapping[str, str],
    port: str,
    collect_interval_seconds: int,
    access: Mapping[str, Any] | None = None,
    path: str = "/metrics",
) -> dict[str, Any]:
    """Give the manifest of the scrape object.

    ``job`` of the series is the exporter's name, whatever the kind.

    Args:
        scrape: What the user said.
        name: Of the object; the exporter's.
        namespace: Of the object and of what it selects.
        labels: Of the object.
        selector_labels: Of the Service, for kinds that select pods of the pods.
        port: Name of the Service's port, for kinds that select pods of the container's.
        collect_interval_seconds: How often the exporter reads the GPUs.
        access: Further fields of the endpoint: scheme, TLS, passwords.
        path: Where the metrics are.

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
            *_own_steps(name if scrape.selects_pods else None, honor_labels=scrape.honor_labels),
            *(step.to_manifest() for step in scrape.relabelings),
        ],
        **({"metricRelabelConfigs" if is_vm else "metricRelabelings": metric_steps} if metric_steps else {}),
        **(access or {}),
    }
    spec: dict[str, Any] = {
        "selector": {"matchLabels": dict(selector_labels)},
        "namespaceSelector": {"matchNames": [namespace]},
        "podMetricsEndpoints" if scrape.selects_pods else "endpoints": [endpoint],
        **({"sampleLimit": scrape.sample_limit} if scrape.sample_limit else {}),
    }
    return {
        "apiVersion": _API_VERSION[scrape.kind],
        "kind": scrape.kind,
        "metadata": {"name": name, "namespace": namespace, "labels": {**labels, **scrape.labels}},
        "spec": spec,
    }


def _check_timeout(timeout: int, interval: int) -> None:
    if timeout > interval:
        raise GpuConstructsError(
            "scrape.scrape_timeout_seconds must be at most the interval: the operators refuse such an object; "
            f"got {timeout} with an interval of {interval} seconds"
        )


def _own_steps(job: str | None, *, honor_labels: bool) -> list[dict[str, Any]]:
    node: dict[str, Any] = {
        "action": "replace",
        "sourceLabels": ["__meta_kubernetes_pod_node_name"],
        "targetLabel": "node",
    }
    # Without a Service the operators would call the job <namespace>/<object>.
    named: list[dict[str, Any]] = (
        [] if job is None else [{"action": "replace", "targetLabel": "job", "replacement": job}]
    )
    if not honor_labels:
        return [node, *named]
    return [
        {"action": "replace", "sourceLabels": ["pod"], "targetLabel": "exporter_pod"},
        node,
        *named,
        {"action": "labeldrop", "regex": "pod|container|namespace|service|endpoint"},
    ]
