"""Option classes that the components of Node Feature Discovery (NFD) share, such as `NfdProbe`, and their checks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, ClassVar, Literal

from gpu_constructs.errors import GpuConstructsError, refuse_if, then
from gpu_constructs.kube import container_security, credentials, durations, env, fields, tables, update_strategy
from gpu_constructs.kube.pods import keys_among, pod_annotations, pod_labels
from gpu_constructs.kube.resources import Resources, container_resources
from gpu_constructs.records import dataclass, field, regex

LONGEST_SUFFIX = "-topology-updater"

_AFFINITIES = ("nodeAffinity", "podAffinity", "podAntiAffinity")
_FEATURE_GATES = ("DisableAutoPrefix", "NodeFeatureGroupAPI")
_OUR_VARIABLES = ("NODE_NAME", "NODE_ADDRESS", "POD_NAME", "POD_UID")
_PROMETHEUS_DURATION = regex(r"(?=.)(\d+y)?(\d+w)?(\d+d)?(\d+h)?(\d+m)?(\d+s)?(\d+ms)?\Z")


def duration_text(span: timedelta | str) -> str:
    """Return a duration as text in the format of Go, such as ``3600s``. If ``span`` is text, return it unchanged."""
    return span if isinstance(span, str) else durations.go_duration(span)


# --- flags ------------------------------------------------------------------------------------------------------


def programs() -> Any:
    """Return the table ``programs.yaml``: flags, ports, mounts and RBAC rules of each component of NFD."""
    return tables.table(__package__, "programs.yaml")


def known_flags(component: str) -> Mapping[str, str]:
    """Return the command-line flags that ``extra_args`` of a component can contain.

    The result is a dict from the flag to the first NFD release with this flag, such as ``{"list-size": "0.18.0"}``. The
    release ``0`` means that all releases have the flag.
    """
    return {**programs()["logging"], **programs()[component]["free"]}


def flags(field: str, arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield a pair for each command-line flag: its path for messages, and its name.

    For example, the pair for ``-v=4`` is ``("master.extra_args[0]", "v")``. An argument without a leading dash is the
    value of the flag before it. ``field`` is the name of the option, such as ``master.extra_args``.

    Raises:
        GpuConstructsError: An argument is neither a flag nor the value of a flag.
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
            raise GpuConstructsError(f"{where} must be a flag like '-v=4' or the value of one, got {argument!r}")


def check_flags(field: str, arguments: Sequence[str]) -> None:
    """Raise if an NFD component does not have a command-line flag, or if users must not set the flag themselves.

    Args:
        field: Name of the option, such as ``master.extra_args``. The first word is the component.
        arguments: Value of this option.

    Raises:
        GpuConstructsError: A flag is unknown, or the user must not set the flag in this option.
    """
    component = field.partition(".")[0]
    known, taken = known_flags(component), programs()[component]["taken"]
    for where, flag in flags(field, arguments):
        if flag in taken:
            raise GpuConstructsError(f"{where} must not contain -{flag}{then(taken[flag])}")
        if flag not in known:
            raise GpuConstructsError(
                f"{where} must be a flag of nfd-{component.replace('_', '-')}, which exits if it gets an unknown flag, "
                f"got -{flag}{fields.did_you_mean(flag, known)}"
            )


# --- checks of values -----------------------------------------------------------------------------------------


def _span(where: str, given: timedelta | str, *, least: timedelta = timedelta(0), words: str = "at least zero") -> None:
    if (durations.from_go_duration(where, given) if isinstance(given, str) else given) < least:
        raise GpuConstructsError(f"{where} must be {words}, got {given!r}")


def _variables(where: str, given: Mapping[str, Any]) -> None:
    fields.refuse_first(
        (variable in _OUR_VARIABLES, f"{where} must not contain {variable!r}: the library sets it. Remove it")
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
                raise GpuConstructsError(f"{at}[{key!r}] must be text, got {container.get(key)!r}")
            check(f"{at}[{key!r}]", container[key])
        for member, found in credentials.in_container(container):
            raise found.refusal(f"{at}.{member}", "use valueFrom.secretKeyRef")
        if container["name"] in taken:
            raise GpuConstructsError(
                f"{at}['name'] must differ from the names of other containers, got {container['name']!r}"
            )
        taken.append(container["name"])


def _one_success(where: str, probe: NfdProbe) -> None:
    got = probe.success_threshold
    message = f"{where}.success_threshold must be 1, because Kubernetes allows no other value, got {got}"
    fields.refuse_first([(got not in (None, 1), message)])


def _replicas(where: str, given: int) -> None:
    way_out = f"Pass {where.partition('.')[0]}=None for no such component"
    fields.whole_number(where, given, minimum=1, way_out=way_out)


def _scrape_interval(where: str, given: timedelta | str) -> None:
    if not _PROMETHEUS_DURATION.match(duration_text(given)):
        raise GpuConstructsError(
            f"{where} must be whole seconds, or a Prometheus duration like '30s' or '1m', got {given!r}"
        )


def _socket(where: str, given: str) -> None:
    fields.absolute_path(where, given)
    refuse_if(not given.rpartition("/")[0], where, "be in a separate directory, which the pod mounts", given)


def _namespace(where: str, given: str) -> None:
    fields.dns_label(where, given)
    if given == "default":
        raise GpuConstructsError(
            f"{where} must not be 'default': the worker mounts host paths, which only a privileged namespace allows. "
            "Remove it to use the namespace of the chart"
        )


def _fullname(where: str, given: str) -> None:
    longest = 63 - len(LONGEST_SUFFIX)
    fields.dns_subdomain(where, given)
    if len(given) > longest:
        raise GpuConstructsError(
            f"{where} must have at most {longest} characters, because of the suffix {LONGEST_SUFFIX!r}, got {given!r}"
        )


def _feature_gates(where: str, given: Mapping[str, bool]) -> None:
    refuse_if("NodeFeatureAPI" in given, where, "not contain 'NodeFeatureAPI', which is always on. Remove it")
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
    # Stricter than the program, which would write annotations that the API server rejects.
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
"""Checks of option values, by name of the option.

A name such as ``port`` applies to all classes, and a name such as ``prometheus.labels`` to one class.
"""


# --- options ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class NfdOptions(fields.Options):
    """Base class of the option classes for Node Feature Discovery, with the checks that these classes share."""

    _CHECKS: ClassVar[fields.Checks] = CHECKS


@dataclass(frozen=True, kw_only=True)
class NfdServiceAccount(NfdOptions):
    """The ServiceAccount of a component of Node Feature Discovery.

    Attributes:
        create: Whether to create the ServiceAccount. If False, ``name`` is an existing ServiceAccount.
        name: Name of the ServiceAccount. None: the name that the other objects of the component have.
        annotations: Annotations of the ServiceAccount, for example for an IAM role of a cloud provider.

    Raises:
        GpuConstructsError: If ``create`` is False, but ``name`` is None or ``annotations`` is not empty.
    """

    _NAME: ClassVar[str] = "service_account"

    create: bool = True
    name: str | None = None
    annotations: Mapping[str, str] = field(default_factory=dict)

    def _conflicts(self) -> Iterable[fields.Conflict]:
        return [
            (
                not self.create and self.name is None,
                "service_account.name must have a value with create=False, got None. With name='default', each "
                "pod without an account would get the rights",
            ),
            (
                not self.create and self.annotations,
                "service_account.annotations need create=True. Annotate the existing account itself",
            ),
        ]


@dataclass(frozen=True, kw_only=True)
class NfdProbe(NfdOptions):
    """The numeric settings of a probe of Node Feature Discovery. The library sets the endpoint of the probe.

    None keeps the default of this library. For a setting without such a default, the default of Kubernetes applies.

    Attributes:
        initial_delay_seconds: Time before the first check, in seconds.
        timeout_seconds: Time in which the container must reply to a check, in seconds.
        period_seconds: Time between two checks, in seconds.
        failure_threshold: Number of failed checks in a row after which the probe fails.
        success_threshold: Number of successful checks in a row after which a failed probe succeeds again. For liveness
            and startup probes, it must be 1.

    Raises:
        GpuConstructsError: If a number is below the minimum of Kubernetes.
    """

    _NAME: ClassVar[str] = "probe"

    initial_delay_seconds: int | None = None
    timeout_seconds: int | None = None
    period_seconds: int | None = None
    failure_threshold: int | None = None
    success_threshold: int | None = None

    def to_manifest(self) -> dict[str, int]:
        """Return the numeric fields of the probe as in a manifest, such as ``periodSeconds``."""
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
    """The network policy of a component of Node Feature Discovery. Its rules have the fields of the Kubernetes API.

    Attributes:
        egress: Egress rules. None allows DNS (port 53) and the usual ports of the API server (TCP 80, 443 and 6443), to
            any address. If the topology updater requests the kubelet configuration from the kubelet, the default also
            allows the port of the kubelet (TCP 10250).
        ingress: Ingress rules. None allows the ports of the component, from any address.

    Raises:
        GpuConstructsError: If a rule has a key that Kubernetes does not have.
    """

    _NAME: ClassVar[str] = "network_policy"

    egress: Sequence[Mapping[str, Any]] | None = None
    ingress: Sequence[Mapping[str, Any]] | None = None


@dataclass(frozen=True, kw_only=True)
class NfdPodDisruptionBudget(NfdOptions):
    """The PodDisruptionBudget of a Deployment of Node Feature Discovery.

    Attributes:
        min_available: Number or percentage (``"50%"``) of pods that a drain must leave running. If both this option and
            ``max_unavailable`` are None, the number is 1.
        max_unavailable: Number or percentage of pods that a drain can evict. Do not set it together with
            ``min_available``.
        unhealthy_pod_eviction_policy: ``AlwaysAllow`` always allows the eviction of unhealthy pods.
            ``IfHealthyBudget`` allows it only if enough other pods are healthy.

    Raises:
        GpuConstructsError: If the user sets both numbers, or if a text is not a percentage.
    """

    _NAME: ClassVar[str] = "pod_disruption_budget"

    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: Literal["AlwaysAllow", "IfHealthyBudget"] = "AlwaysAllow"

    def _conflicts(self) -> Iterable[fields.Conflict]:
        is_twice = self.min_available is not None and self.max_unavailable is not None
        yield is_twice, f"{self._NAME} must have min_available or max_unavailable, not both. Remove one of them"

    def allows(self, replicas: int) -> int:
        """Return the number of pods that a drain can evict if all ``replicas`` pods are healthy."""

        def pods(given: int | str) -> int:
            return given if isinstance(given, int) else math.ceil(replicas * int(given[:-1]) / 100)

        if self.max_unavailable is not None:
            return pods(self.max_unavailable)
        return replicas - pods(1 if self.min_available is None else self.min_available)

    def to_manifest(self) -> dict[str, Any]:
        """Return the fields of ``spec`` of the PodDisruptionBudget, without the selector."""
        policy = {"unhealthyPodEvictionPolicy": self.unhealthy_pod_eviction_policy}
        if self.max_unavailable is not None:
            return {"maxUnavailable": self.max_unavailable, **policy}
        return {"minAvailable": 1 if self.min_available is None else self.min_available, **policy}


@dataclass(frozen=True, kw_only=True)
class NfdPodMonitor(NfdOptions):
    """The options of a PodMonitor (Prometheus Operator) for all components of Node Feature Discovery.

    Attributes:
        scrape_interval: Time between two scrapes.
        labels: Labels by which Prometheus selects the PodMonitor, such as ``release: kube-prometheus-stack``.

    Raises:
        GpuConstructsError: If Prometheus would reject the interval, or Kubernetes would reject a label.
    """

    _NAME: ClassVar[str] = "prometheus"

    scrape_interval: timedelta | str = "10s"
    labels: Mapping[str, str] = field(default_factory=dict)
