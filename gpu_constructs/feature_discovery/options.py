"""What a user may say about parts of Node Feature Discovery, and the check of each option."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any, ClassVar, Literal

from gpu_constructs.errors import GpuConstructsError, refuse_if
from gpu_constructs.kube import container_security, credentials, durations, env, fields, tables, update_strategy
from gpu_constructs.kube.pods import keys_among, pod_annotations, pod_labels
from gpu_constructs.kube.resources import Resources, container_resources

LONGEST_SUFFIX = "-topology-updater"

_AFFINITIES = ("nodeAffinity", "podAffinity", "podAntiAffinity")
_FEATURE_GATES = ("DisableAutoPrefix", "NodeFeatureGroupAPI")
_OUR_VARIABLES = ("NODE_NAME", "NODE_ADDRESS", "POD_NAME", "POD_UID")
_PROMETHEUS_DURATION = re.compile(r"(?=.)(\d+y)?(\d+w)?(\d+d)?(\d+h)?(\d+m)?(\d+s)?(\d+ms)?\Z")


def duration_text(span: timedelta | str) -> str:
    """Return a span of time as a program reads it: text as it was given."""
    return span if isinstance(span, str) else durations.go_duration(span)


# --- flags ------------------------------------------------------------------------------------------------------


def programs() -> Any:
    """Return the table of programs."""
    return tables.table(__package__, "programs.yaml")


def known_flags(component: str) -> Mapping[str, str]:
    """Return the flags that ``extra_args`` of a component may hold, each with the first release that has it."""
    return {**programs()["logging"], **programs()[component]["free"]}


def flags(field: str, arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield where each flag is and its name; a word without a dash is the value of the flag before it.

    Raises:
        GpuConstructsError: A word that is neither a flag nor the value of one.
    """
    takes_value = False
    for index, argument in enumerate(arguments):
        where = f"{field}[{index}]"
        if argument.startswith("-") and argument.strip("-"):
            takes_value = "=" not in argument
            yield where, argument.removeprefix("-").removeprefix("-").partition("=")[0]
        elif takes_value:
            takes_value = False
        else:
            raise GpuConstructsError(f"{where} must be a flag like '-v=4' or the value of one; got {argument!r}")


def check_flags(field: str, arguments: Sequence[str]) -> None:
    """Check that a program has each flag, and that no option sets it.

    A program that is given a flag it does not know exits, and of a flag given twice the last one counts.

    Raises:
        GpuConstructsError: A flag that no supported release has, or that has an option of its own.
    """
    component = field.partition(".")[0]
    known, taken = known_flags(component), programs()[component]["taken"]
    for where, flag in flags(field, arguments):
        if flag in taken:
            raise GpuConstructsError(f"{where} must not hold -{flag}; {taken[flag]}")
        if flag not in known:
            raise GpuConstructsError(
                f"{where} must be a flag of nfd-{component.replace('_', '-')}, which exits on any other; got -{flag}"
                f"{fields.did_you_mean(flag, known)}"
            )


# --- checks of values -----------------------------------------------------------------------------------------


def _span(where: str, given: timedelta | str, *, least: timedelta = timedelta(0), words: str = "at least zero") -> None:
    if (durations.from_go_duration(where, given) if isinstance(given, str) else given) < least:
        raise GpuConstructsError(f"{where} must be {words}; got {given!r}")


def _variables(where: str, given: Mapping[str, Any]) -> None:
    fields.refuse_first(
        (variable in _OUR_VARIABLES, f"{where} must not hold {variable!r}: this library sets it; leave it out")
        for variable in given
    )
    try:
        env.environment(given, visible_devices_is_managed=False)
    except GpuConstructsError as error:
        raise GpuConstructsError(f"{where}: {error.problem}") from None


def _resources(where: str, given: Resources) -> None:
    try:
        container_resources(given, default={})
    except GpuConstructsError as error:
        raise GpuConstructsError(f"{where.partition('.')[0]}.{error.problem}") from None


def _init_containers(where: str, given: Sequence[Mapping[str, Any]]) -> None:
    taken = [where.partition(".")[0].replace("_", "-")]
    for index, container in enumerate(given):
        at = f"{where}[{index}]"
        for key, check in (("name", fields.dns_label), ("image", fields.image)):
            if not isinstance(container.get(key), str):
                raise GpuConstructsError(f"{at}[{key!r}] is required as text; got {container.get(key)!r}")
            check(f"{at}[{key!r}]", container[key])
        for member, found in credentials.in_container(container):
            raise found.refusal(f"{at}.{member}", "use valueFrom.secretKeyRef")
        if container["name"] in taken:
            raise GpuConstructsError(f"{at}['name'] is taken by another container; got {container['name']!r}")
        taken.append(container["name"])


def _one_success(where: str, probe: NfdProbe) -> None:
    got = probe.success_threshold
    message = f"{where}.success_threshold must be 1, as Kubernetes takes no other here; got {got}"
    fields.refuse_first([(got not in (None, 1), message)])


def _replicas(where: str, given: int) -> None:
    way_out = f"pass {where.partition('.')[0]}=None to leave it out"
    fields.whole_number(where, given, minimum=1, way_out=way_out)


def _scrape_interval(where: str, given: timedelta | str) -> None:
    if not _PROMETHEUS_DURATION.match(duration_text(given)):
        raise GpuConstructsError(
            f"{where} must be whole seconds, or a Prometheus duration like '30s' or '1m'; got {given!r}"
        )


def _socket(where: str, given: str) -> None:
    fields.absolute_path(where, given)
    refuse_if(not given.rpartition("/")[0], where, "lie in a directory of its own, which is mounted", given)


def _namespace(where: str, given: str) -> None:
    fields.dns_label(where, given)
    if given == "default":
        raise GpuConstructsError(
            f"{where} must not be 'default': the worker mounts host paths, which only a privileged namespace allows; "
            "leave it out for the chart's"
        )


def _fullname(where: str, given: str) -> None:
    longest = 63 - len(LONGEST_SUFFIX)
    fields.dns_subdomain(where, given)
    if len(given) > longest:
        raise GpuConstructsError(
            f"{where} must have at most {longest} characters, since {LONGEST_SUFFIX!r} follows; got {given!r}"
        )


def _feature_gates(where: str, given: Mapping[str, bool]) -> None:
    refuse_if("NodeFeatureAPI" in given, where, "not hold 'NodeFeatureAPI', which is always on; leave it out")
    keys_among(_FEATURE_GATES)(where, given)


CHECKS: Mapping[str, fields.Check] = {
    "affinity": keys_among(_AFFINITIES),
    "annotations": pod_annotations,
    "daemonset_annotations": pod_annotations,
    "deny_label_ns": partial(
        fields.each,
        fields.unless("*", lambda at, domain: fields.dns_subdomain(at, domain.removeprefix("*").removeprefix("."))),
    ),
    "deployment_annotations": pod_annotations,
    "egress": partial(fields.each, keys_among(("ports", "to"))),
    "extra_args": check_flags,
    "extra_envs": _variables,
    "extra_label_ns": partial(fields.each, fields.dns_subdomain),
    "failure_threshold": fields.positive,
    "feature_gates": _feature_gates,
    "fullname": _fullname,
    "health_port": fields.port_number,
    "image": fields.image,
    "image_pull_secrets": partial(fields.each, fields.dns_subdomain),
    "ingress": partial(fields.each, keys_among(("ports", "from"))),
    "init_containers": _init_containers,
    "initial_delay_seconds": fields.natural,
    # Stricter than the program, which would write annotations that the API server refuses.
    "instance": fields.dns_subdomain,
    "interval": partial(_span, least=timedelta.resolution, words="above zero"),
    "kubelet_config_path": fields.absolute_path,
    "kubelet_pod_resources_sock_path": _socket,
    "kubelet_state_dir": fields.path_or_nothing,
    "labels": pod_labels,
    "liveness_probe": _one_success,
    "max_unavailable": update_strategy.check_amount,
    "metrics_port": fields.port_number,
    "min_available": update_strategy.check_amount,
    "name": fields.dns_subdomain,
    "namespace": _namespace,
    "nfd_api_parallelism": fields.positive,
    "node_selector": fields.labels,
    "period_seconds": fields.positive,
    "pod_security_context": keys_among(container_security.POD_SECURITY_CONTEXT),
    "port": fields.port_number,
    "priority_class_name": fields.dns_subdomain,
    "prometheus.labels": fields.labels,
    "replica_count": _replicas,
    "resources": _resources,
    "resync_period": _span,
    "revision_history_limit": fields.natural,
    "scrape_interval": _scrape_interval,
    "security_context": keys_among(container_security.SECURITY_CONTEXT),
    "startup_probe": _one_success,
    "success_threshold": fields.positive,
    "timeout_seconds": fields.positive,
    "update_interval": _span,
    "watch_namespace": fields.unless("*", fields.dns_label),
}
"""Check of each option whose type alone does not say what is allowed, by its name in any of the structs."""


# --- options ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class NfdOptions(fields.Options):
    """Options of Node Feature Discovery or a part of it."""

    _CHECKS: ClassVar[fields.Checks] = CHECKS


@dataclass(frozen=True, kw_only=True)
class NfdServiceAccount(NfdOptions):
    """The account that a component runs as.

    Attributes:
        create: Whether to make it. False takes an existing one, by name.
        name: Name of the account; by default that of the component's other objects.
        annotations: Annotations of the account, such as the identity of a cloud.

    Raises:
        GpuConstructsError: No name, or annotations, for an existing account.
    """

    _NAME: ClassVar[str] = "service_account"

    create: bool = True
    name: str | None = None
    annotations: Mapping[str, str] = field(default_factory=dict)

    def _conflicts(self) -> Iterable[fields.Conflict]:
        return [
            (
                not self.create and self.name is None,
                "service_account.name is required with create=False; got None; name='default' would give the rights "
                "to every pod of the namespace that names no account",
            ),
            (
                not self.create and self.annotations,
                "service_account.annotations need create=True; annotate the account where it is made",
            ),
        ]


@dataclass(frozen=True, kw_only=True)
class NfdProbe(NfdOptions):
    """Numbers of a probe; what it asks is the program's. None keeps the default of a number.

    Attributes:
        initial_delay_seconds: Seconds before the first check.
        timeout_seconds: Seconds that an answer may take.
        period_seconds: Seconds from one check to the next.
        failure_threshold: Failed checks in a row that count as a failure.
        success_threshold: Successful checks in a row after which the probe succeeds again; for readiness probes.

    Raises:
        GpuConstructsError: A number below what Kubernetes takes.
    """

    _NAME: ClassVar[str] = "probe"

    initial_delay_seconds: int | None = None
    timeout_seconds: int | None = None
    period_seconds: int | None = None
    failure_threshold: int | None = None
    success_threshold: int | None = None

    def to_manifest(self) -> dict[str, int]:
        """Return the numbers in the form of Kubernetes."""
        numbers = {
            "initialDelaySeconds": self.initial_delay_seconds,
            "timeoutSeconds": self.timeout_seconds,
            "periodSeconds": self.period_seconds,
            "failureThreshold": self.failure_threshold,
            "successThreshold": self.success_threshold,
        }
        return {name: value for name, value in numbers.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class NfdNetworkPolicy(NfdOptions):
    """What the pods of a component may reach, and who may reach them, in the form of Kubernetes.

    Attributes:
        egress: By default DNS (port 53) and the API server's usual ports (TCP 80, 443, 6443), anywhere; for a
            topology updater that asks the kubelet also its port (TCP 10250).
        ingress: By default the component's own ports, from anywhere.

    Raises:
        GpuConstructsError: A rule with a key that Kubernetes does not have.
    """

    _NAME: ClassVar[str] = "network_policy"

    egress: Sequence[Mapping[str, Any]] | None = None
    ingress: Sequence[Mapping[str, Any]] | None = None


@dataclass(frozen=True, kw_only=True)
class NfdPodDisruptionBudget(NfdOptions):
    """How many pods of a Deployment a drain of nodes may take at once.

    Attributes:
        min_available: Pods that must stay, a number or a percentage (``"50%"``). 1 if neither is given.
        max_unavailable: Pods that may go, instead.
        unhealthy_pod_eviction_policy: ``AlwaysAllow`` evicts broken pods in any case, ``IfHealthyBudget``
            only while the budget is met.

    Raises:
        GpuConstructsError: Both numbers, or text that is not a percentage.
    """

    _NAME: ClassVar[str] = "pod_disruption_budget"

    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: Literal["AlwaysAllow", "IfHealthyBudget"] = "AlwaysAllow"

    def _conflicts(self) -> Iterable[fields.Conflict]:
        is_twice = self.min_available is not None and self.max_unavailable is not None
        yield is_twice, f"{self._NAME} takes min_available or max_unavailable, not both; leave one out"

    def allows(self, replicas: int) -> int:
        """Return how many of so many healthy pods may go."""

        def pods(given: int | str) -> int:
            return given if isinstance(given, int) else math.ceil(replicas * int(given[:-1]) / 100)

        if self.max_unavailable is not None:
            return pods(self.max_unavailable)
        return replicas - pods(1 if self.min_available is None else self.min_available)

    def to_manifest(self) -> dict[str, Any]:
        """Return the budget in the form of Kubernetes."""
        policy = {"unhealthyPodEvictionPolicy": self.unhealthy_pod_eviction_policy}
        if self.max_unavailable is not None:
            return {"maxUnavailable": self.max_unavailable, **policy}
        return {"minAvailable": 1 if self.min_available is None else self.min_available, **policy}


@dataclass(frozen=True, kw_only=True)
class NfdPodMonitor(NfdOptions):
    """A PodMonitor (prometheus-operator) of all components.

    Attributes:
        scrape_interval: Time between two scrapes.
        labels: Labels by which the monitoring stack finds the object, like ``release: kube-prometheus-stack``.

    Raises:
        GpuConstructsError: An interval that Prometheus does not read, a label that Kubernetes does not take.
    """

    _NAME: ClassVar[str] = "prometheus"

    scrape_interval: timedelta | str = "10s"
    labels: Mapping[str, str] = field(default_factory=dict)
