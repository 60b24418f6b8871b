"""What can be said about Node Feature Discovery: the options of its charts, by the names of their values.

Source: the node-feature-discovery charts 0.17.3 and 0.19.0 bundled in NVIDIA/k8s-device-plugin@v0.18.2 and @v0.20.0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar, Literal

from gpu_constructs import _fields, credentials
from gpu_constructs._container_security import POD_SECURITY_CONTEXT, SECURITY_CONTEXT
from gpu_constructs._durations import from_go_duration, go_duration
from gpu_constructs._resources import Resources, container_resources
from gpu_constructs.errors import GpuConstructsError, ShortErrors
from gpu_constructs.feature_discovery import nfd_config, nfd_flags
from gpu_constructs.placement import Toleration
from gpu_constructs.update_strategy import UpdateStrategy
from gpu_constructs.workload.env import AnyEnvValue, environment

CONFIG_CHECKSUM = "gpu-constructs/config-sha256"

_FEATURE_GATES = ("DisableAutoPrefix", "NodeFeatureGroupAPI")
_AFFINITIES = ("nodeAffinity", "podAffinity", "podAntiAffinity")
_OUR_LABELS = tuple(f"app.kubernetes.io/{key}" for key in ("name", "instance", "component", "version", "managed-by"))
_OUR_VARIABLES = ("NODE_NAME", "NODE_ADDRESS", "POD_NAME", "POD_UID")
_LONGEST_SUFFIX = "-topology-updater"
_PERCENT = re.compile(r"(100|[1-9]?[0-9])%\Z")
_PROMETHEUS_DURATION = re.compile(r"(?=.)(\d+y)?(\d+w)?(\d+d)?(\d+h)?(\d+m)?(\d+s)?(\d+ms)?\Z")


def duration_text(span: timedelta | str) -> str:
    """Give a span of time as a program reads it: text as it was given."""
    return span if isinstance(span, str) else go_duration(span)


def _span(name: str, given: timedelta | str, *, above_zero: bool = False) -> timedelta:
    span = from_go_duration(name, given) if isinstance(given, str) else given
    if span < timedelta(0) or (above_zero and not span):
        raise GpuConstructsError(f"{name} must be {'above' if above_zero else 'at least'} zero; got {given!r}")
    return span


def _annotations(name: str, given: Mapping[str, str]) -> None:
    _fields.labels(name, dict.fromkeys(given, ""))
    if CONFIG_CHECKSUM in given:
        raise GpuConstructsError(f"{name} must not hold {CONFIG_CHECKSUM!r}: this library sets it; leave it out")


@dataclass(frozen=True, kw_only=True)
class NfdServiceAccount(metaclass=ShortErrors):
    """The account that a component runs as.

    Attributes:
        create: Make it. False takes one that is there, by name.
        name: Its name; by default that of the component's other objects.
        annotations: Of the account, such as a cloud's identity.

    Raises:
        GpuConstructsError: No name, or annotations, for an account that is there.
    """

    create: bool = True
    name: str | None = None
    annotations: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _fields.members(self, "service_account")
        if self.name is not None:
            _fields.dns_subdomain("service_account.name", self.name)
        _annotations("service_account.annotations", self.annotations)
        if not self.create and self.name is None:
            raise GpuConstructsError(
                "service_account.name is required with create=False; got None; name='default' would give the rights "
                "to every pod of the namespace that names no account"
            )
        if not self.create and self.annotations:
            raise GpuConstructsError(
                "service_account.annotations need create=True; annotate the account where it is made"
            )


@dataclass(frozen=True, kw_only=True)
class NfdProbe(metaclass=ShortErrors):
    """The numbers of a probe; what it asks is the program's. None leaves a number as it is by default.

    Attributes:
        initial_delay_seconds: Pause before the first check.
        timeout_seconds: How long an answer may take.
        period_seconds: Time from one check to the next.
        failure_threshold: Failed checks in a row that count as a failure.
        success_threshold: Good ones in a row that count as well again; of readiness probes.

    Raises:
        GpuConstructsError: A number below what Kubernetes takes.
    """

    initial_delay_seconds: int | None = None
    timeout_seconds: int | None = None
    period_seconds: int | None = None
    failure_threshold: int | None = None
    success_threshold: int | None = None

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if value is not None:
                _fields.whole_number(f"probe.{name}", value, minimum=0 if name == "initial_delay_seconds" else 1)

    def to_manifest(self) -> dict[str, int]:
        """Give the numbers as Kubernetes writes them."""
        numbers = {
            "initialDelaySeconds": self.initial_delay_seconds,
            "timeoutSeconds": self.timeout_seconds,
            "periodSeconds": self.period_seconds,
            "failureThreshold": self.failure_threshold,
            "successThreshold": self.success_threshold,
        }
        return {name: value for name, value in numbers.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class NfdNetworkPolicy(metaclass=ShortErrors):
    """What a component's pods may reach, and who may reach them, as Kubernetes writes it.

    Attributes:
        egress: By default DNS (port 53) and the API server's usual ports (TCP 80, 443, 6443), anywhere; for a
            topology updater that asks the kubelet its port (TCP 10250) too.
        ingress: By default the component's own ports, from anywhere.

    Raises:
        GpuConstructsError: A rule with a key that Kubernetes does not have.
    """

    egress: Sequence[Mapping[str, Any]] | None = None
    ingress: Sequence[Mapping[str, Any]] | None = None

    def __post_init__(self) -> None:
        _fields.members(self, "network_policy")
        for name, peers in (("egress", "to"), ("ingress", "from")):
            for index, rule in enumerate(getattr(self, name) or ()):
                for key in rule:
                    _fields.one_of(f"network_policy.{name}[{index}] key", key, ("ports", peers))


@dataclass(frozen=True, kw_only=True)
class NfdPodDisruptionBudget(metaclass=ShortErrors):
    """How many pods of a Deployment a drain of nodes may take at once.

    Attributes:
        min_available: Pods that must stay, a number or a percentage (``"50%"``). 1 when neither is given.
        max_unavailable: Pods that may go, instead.
        unhealthy_pod_eviction_policy: ``AlwaysAllow`` lets broken pods go in any case, ``IfHealthyBudget``
            only while the budget is met.

    Raises:
        GpuConstructsError: Both numbers, or text that is no percentage.
    """

    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: Literal["AlwaysAllow", "IfHealthyBudget"] = "AlwaysAllow"

    def __post_init__(self) -> None:
        name = "pod_disruption_budget"
        _fields.members(self, name)
        if self.min_available is not None and self.max_unavailable is not None:
            raise GpuConstructsError(f"{name} takes min_available or max_unavailable, not both; leave one out")
        for member in ("min_available", "max_unavailable"):
            value = getattr(self, member)
            if isinstance(value, str):
                if not _PERCENT.match(value):
                    raise GpuConstructsError(
                        f"{name}.{member} must be a number or a percentage like '50%'; got {value!r}"
                    )
            elif value is not None:
                _fields.whole_number(f"{name}.{member}", value, minimum=0)

    def allows(self, replicas: int) -> int:
        """Tell how many of so many healthy pods may go."""

        def pods(given: int | str) -> int:
            return given if isinstance(given, int) else math.ceil(replicas * int(given[:-1]) / 100)

        if self.max_unavailable is not None:
            return pods(self.max_unavailable)
        return replicas - pods(1 if self.min_available is None else self.min_available)

    def to_manifest(self) -> dict[str, Any]:
        """Give the budget as Kubernetes writes it."""
        policy = {"unhealthyPodEvictionPolicy": self.unhealthy_pod_eviction_policy}
        if self.max_unavailable is not None:
            return {"maxUnavailable": self.max_unavailable, **policy}
        return {"minAvailable": 1 if self.min_available is None else self.min_available, **policy}


@dataclass(frozen=True, kw_only=True)
class NfdPodMonitor(metaclass=ShortErrors):
    """A PodMonitor (prometheus-operator) of all components.

    Attributes:
        scrape_interval: How often they are asked.
        labels: Labels by which the monitoring stack finds the object, like ``release: kube-prometheus-stack``.

    Raises:
        GpuConstructsError: An interval that Prometheus does not read, a label that Kubernetes does not take.
    """

    scrape_interval: timedelta | str = "10s"
    labels: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _fields.members(self, "prometheus")
        _fields.labels("prometheus.labels", self.labels)
        if not _PROMETHEUS_DURATION.match(duration_text(self.scrape_interval)):
            raise GpuConstructsError(
                "prometheus.scrape_interval must be whole seconds, or a Prometheus duration like '30s' or '1m'; got "
                f"{self.scrape_interval!r}"
            )


@dataclass(frozen=True, kw_only=True)
class NfdComponent(metaclass=ShortErrors):
    """What can be said about each component.

    Attributes:
        extra_args: Flags that have no member here, like ``-v=4``.
        extra_envs: Environment variables: text or an ``EnvValue``.
        host_network: Run in the node's network. Components that do need ports of their own.
        host_users: False runs the pod in a user namespace of its own; not with ``host_network``. None leaves
            it to Kubernetes, which does not.
        dns_policy: ``ClusterFirst``, ``ClusterFirstWithHostNet`` or ``Default``. None lets the pod resolve
            names of the cluster wherever it runs.
        port: Of metrics and health, 8080 by default (from NFD 0.18.0).
        metrics_port: Of metrics, 8081 by default (before NFD 0.18.0).
        annotations: Of the pods.
        labels: Of the pods, besides ours.
        pod_security_context: Of the pods, on top of ours; None takes a key away.
        security_context: Of the container, on top of ours; None takes a key away.
        init_containers: Containers that run before, as Kubernetes writes them.
        service_account: The account the pods run as.
        rbac_create: Make the roles it needs and give them to the account. False where they are there.
        revision_history_limit: Old revisions that Kubernetes keeps; None keeps its 10.
        priority_class_name: Instead of that of all components.
        resources: Of the container, instead of ours.
        node_selector: Node labels asked for.
        tolerations: Taints put up with, besides the chart's.
        affinity: As Kubernetes writes it, instead of ours.
        liveness_probe: Numbers, over ours.
        readiness_probe: Numbers, over ours.
        network_policy: What the pods may reach; None lets them reach all.

    Raises:
        GpuConstructsError: A value that the program or Kubernetes would refuse or ignore, a label, variable,
            annotation or flag that this library sets, a network policy in the node's network, where none holds.
    """

    _NAME: ClassVar[str] = "component"

    extra_args: Sequence[str] = ()
    extra_envs: Mapping[str, str | AnyEnvValue] = field(default_factory=dict)
    host_network: bool = False
    host_users: bool | None = None
    dns_policy: Literal["ClusterFirst", "ClusterFirstWithHostNet", "Default"] | None = None
    port: int | None = None
    metrics_port: int | None = None
    annotations: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    pod_security_context: Mapping[str, Any] = field(default_factory=dict)
    security_context: Mapping[str, Any] = field(default_factory=dict)
    init_containers: Sequence[Mapping[str, Any]] = ()
    service_account: NfdServiceAccount = NfdServiceAccount()
    rbac_create: bool = True
    revision_history_limit: int | None = None
    priority_class_name: str | None = None
    resources: Resources | None = None
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: Sequence[Toleration] = ()
    affinity: Mapping[str, Any] | None = None
    liveness_probe: NfdProbe | None = None
    readiness_probe: NfdProbe | None = None
    network_policy: NfdNetworkPolicy | None = None

    def __post_init__(self) -> None:
        name = self._NAME
        _fields.members(self, name)
        nfd_flags.check(name, self.extra_args)
        self._check_environment()
        if self.host_network and self.host_users is False:
            raise GpuConstructsError(
                f"{name}.host_users must not be False with host_network, which Kubernetes refuses; leave one out"
            )
        if self.host_network and self.network_policy is not None:
            raise GpuConstructsError(
                f"{name}.network_policy must be left out with host_network: in the node's network none holds"
            )
        for port, number in self.ports().items():
            if number is not None:
                _fields.port_number(f"{name}.{port}", number)
        _annotations(f"{name}.annotations", self.annotations)
        _fields.labels(f"{name}.labels", self.labels)
        for key in self.labels:
            if key in _OUR_LABELS:
                raise GpuConstructsError(f"{name}.labels must not hold {key!r}: this library sets it; leave it out")
        for key in self.pod_security_context:
            _fields.one_of(f"{name}.pod_security_context key", key, POD_SECURITY_CONTEXT)
        for key in self.security_context:
            _fields.one_of(f"{name}.security_context key", key, SECURITY_CONTEXT)
        if (
            self.security_context.get("privileged")
            and self.security_context.get("allowPrivilegeEscalation", False) is False
        ):
            raise GpuConstructsError(
                f"{name}.security_context must also hold 'allowPrivilegeEscalation': None with privileged: Kubernetes "
                "refuses a privileged container that is forbidden to gain rights"
            )
        self._check_init_containers()
        if self.revision_history_limit is not None:
            _fields.whole_number(f"{name}.revision_history_limit", self.revision_history_limit, minimum=0)
        if self.priority_class_name is not None:
            _fields.dns_subdomain(f"{name}.priority_class_name", self.priority_class_name)
        _fields.labels(f"{name}.node_selector", self.node_selector)
        _one_success(f"{name}.liveness_probe", self.liveness_probe)
        for key in self.affinity or {}:
            _fields.one_of(f"{name}.affinity key", key, _AFFINITIES)
        try:
            container_resources(self.resources, default={})
        except GpuConstructsError as error:
            raise GpuConstructsError(f"{name}.{error.problem}") from None

    def _check_environment(self) -> None:
        for variable in self.extra_envs:
            if variable in _OUR_VARIABLES:
                raise GpuConstructsError(
                    f"{self._NAME}.extra_envs must not hold {variable!r}: this library sets it; leave it out"
                )
        try:
            self.environment()
        except GpuConstructsError as error:
            raise GpuConstructsError(f"{self._NAME}.extra_envs: {error.problem}") from None

    def _check_init_containers(self) -> None:
        taken = [self.container_name]
        for index, container in enumerate(self.init_containers):
            where = f"{self._NAME}.init_containers[{index}]"
            for key in ("name", "image"):
                if not isinstance(container.get(key), str):
                    raise GpuConstructsError(f"{where}[{key!r}] is required as text; got {container.get(key)!r}")
            _fields.dns_label(f"{where}['name']", container["name"])
            _fields.image(f"{where}['image']", container["image"])
            for member, found in credentials.in_container(container):
                raise found.refusal(f"{where}.{member}", "use valueFrom.secretKeyRef")
            if container["name"] in taken:
                raise GpuConstructsError(f"{where}['name'] is taken by another container; got {container['name']!r}")
            taken.append(container["name"])

    def ports(self) -> dict[str, int | None]:
        """Give the ports by the names of their members, None where a default holds."""
        members = ("port", "metrics_port", "health_port")
        return {member: getattr(self, member) for member in members if hasattr(self, member)}

    def document(self) -> dict[str, Any] | None:
        """Give the content of its configuration file, None if it reads none."""
        return None

    @property
    def container_name(self) -> str:
        """The component as NFD spells it."""
        return self._NAME.replace("_", "-")

    def environment(self) -> list[dict[str, Any]]:
        """Give the further variables as Kubernetes writes them."""
        return environment(self.extra_envs, visible_devices_is_managed=False)


def _one_success(name: str, probe: NfdProbe | None) -> None:
    if probe is not None and probe.success_threshold not in (None, 1):
        raise GpuConstructsError(
            f"{name}.success_threshold must be 1, as Kubernetes takes no other here; got {probe.success_threshold}"
        )


@dataclass(frozen=True, kw_only=True)
class NfdDeployment(NfdComponent):
    """What can be said about a component that runs once for the whole cluster.

    Attributes:
        deployment_annotations: Of the Deployment.
        replica_count: Pods; 1 by default.
        pod_disruption_budget: None makes none.

    Raises:
        GpuConstructsError: No pod, or a budget that would block every drain.
    """

    deployment_annotations: Mapping[str, str] = field(default_factory=dict)
    replica_count: int = 1
    pod_disruption_budget: NfdPodDisruptionBudget | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        name = self._NAME
        _annotations(f"{name}.deployment_annotations", self.deployment_annotations)
        way_out = f"pass {name}=None to leave it out"
        _fields.whole_number(f"{name}.replica_count", self.replica_count, minimum=1, way_out=way_out)
        if self.pod_disruption_budget is not None and self.pod_disruption_budget.allows(self.replica_count) < 1:
            raise GpuConstructsError(
                f"{name}.pod_disruption_budget lets none of {self.replica_count} go, so no node that runs one could be "
                "drained; raise replica_count or pass max_unavailable=1"
            )


@dataclass(frozen=True, kw_only=True)
class NfdDaemonSet(NfdComponent):
    """What can be said about a component that runs on each node.

    Attributes:
        daemonset_annotations: Of the DaemonSet.
        update_strategy: How its pods are replaced.
    """

    daemonset_annotations: Mapping[str, str] = field(default_factory=dict)
    update_strategy: UpdateStrategy = UpdateStrategy.rolling_update()  # noqa: RUF009

    def __post_init__(self) -> None:
        super().__post_init__()
        _annotations(f"{self._NAME}.daemonset_annotations", self.daemonset_annotations)


@dataclass(frozen=True, kw_only=True)
class NfdMaster(NfdDeployment):
    """The master: puts on the nodes what workers and others found out.

    Attributes:
        config: Its file (``nfd-master.conf``), laid over ours, which allows labels of ``nvidia.com``: keys
            are merged, lists replaced, None takes a key away.
        health_port: Of health, 8082 by default (before NFD 0.18.0).
        instance: Tells the annotations of several masters in one cluster apart.
        resync_period: How often it goes over all nodes; an hour by default.
        deny_label_ns: Domains whose labels it refuses; a leading ``*`` stands for the rest.
        extra_label_ns: Domains whose labels it takes in any case, instead of ours.
        enable_taints: Put the taints of NodeFeatureRules on nodes.
        nfd_api_parallelism: Nodes it works on at once; 10 by default.
        replica_count: Pods. Several elect a leader; the others wait.
        startup_probe: Numbers, over ours: up to 30 failures.
        liveness_probe: Numbers, over Kubernetes'.
        readiness_probe: Numbers, over ours: up to 10 failures.
        extra_args: Besides logging flags ``-kubeconfig`` and ``-informer-page-size``.
        affinity: By default it prefers control plane nodes.

    Raises:
        GpuConstructsError: A value that the master would refuse or ignore; a setting both here and in the
            file; a file or domain that would keep ``nvidia.com/gpu.present`` from the nodes; a budget that
            would block every drain.
    """

    _NAME: ClassVar[str] = "master"
    _NOT_TAKEN: ClassVar[dict[str, str]] = {
        "enable": "pass master=None to leave the master out",
        "feature_rules_controller": "the chart's flag for it is none that nfd-master 0.17.3 knows, so it would exit",
        "feature_api": "no release of the chart reads it",
    }

    config: Mapping[str, Any] = field(default_factory=dict)
    health_port: int | None = None
    instance: str | None = None
    resync_period: timedelta | str | None = None
    deny_label_ns: Sequence[str] = ()
    extra_label_ns: Sequence[str] = ()
    enable_taints: bool = False
    nfd_api_parallelism: int | None = None
    startup_probe: NfdProbe | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.instance is not None:
            # Stricter than the program, which would write annotations that the API server refuses.
            _fields.dns_subdomain("master.instance", self.instance)
        if self.resync_period is not None:
            _span("master.resync_period", self.resync_period)
        if self.nfd_api_parallelism is not None:
            _fields.whole_number("master.nfd_api_parallelism", self.nfd_api_parallelism, minimum=1)
        for index, domain in enumerate(self.deny_label_ns):
            if domain != "*":
                _fields.dns_subdomain(f"master.deny_label_ns[{index}]", domain.removeprefix("*").removeprefix("."))
        for index, domain in enumerate(self.extra_label_ns):
            _fields.dns_subdomain(f"master.extra_label_ns[{index}]", domain)
        for member, key in (
            ("deny_label_ns", "denyLabelNs"),
            ("extra_label_ns", "extraLabelNs"),
            ("enable_taints", "enableTaints"),
            ("resync_period", "resyncPeriod"),
            ("nfd_api_parallelism", "nfdApiParallelism"),
        ):
            if getattr(self, member) and key in self.config:
                raise GpuConstructsError(
                    f"master.{member} overrides master.config.{key} without a word; keep one of them"
                )
        _one_success("master.startup_probe", self.startup_probe)
        self.document()

    def document(self) -> dict[str, Any]:
        """Give the content of its configuration file."""
        return nfd_config.master_config(self.config, deny=self.deny_label_ns or None, extra=self.extra_label_ns or None)


@dataclass(frozen=True, kw_only=True)
class NfdWorker(NfdDaemonSet):
    """The worker: looks at the hardware of each node.

    Attributes:
        config: Its file (``nfd-worker.conf``), laid over ours, which labels network and display controllers
            by vendor and marks GPU nodes with ``nvidia.com/gpu.present``: keys are merged, lists replaced,
            None takes a key away. The rule that marks GPU nodes stays whatever is given, unless a rule of
            yours sets that label.
        health_port: Of health, 8082 by default (before NFD 0.18.0).
        owner_refs: Who owns what a worker publishes, so that it goes with its last owner: ``pod``, ``ds``
            (its DaemonSet), ``node``. Both of the first by default (from NFD 0.19.0).
        mount_usr_src: Show it ``/usr/src``, where some distributions keep the kernel's configuration.
            Not on Talos, which has no such directory.
        mount_features_d: Show it ``/etc/kubernetes/node-feature-discovery/features.d``, where files with
            features of a node's own may lie. NFD's chart always does; ours must be asked.
        liveness_probe: Numbers, over ours: after 10 seconds.
        readiness_probe: Numbers, over ours: after 5 seconds, up to 10 failures.
        update_strategy: By default a tenth of the nodes at a time.
        extra_args: Besides logging flags ``-kubeconfig``.

    Raises:
        GpuConstructsError: A value that the worker would refuse or ignore; a file that would take the mark
            off GPU nodes.
    """

    _NAME: ClassVar[str] = "worker"
    _NOT_TAKEN: ClassVar[dict[str, str]] = {"enable": "pass worker=None to leave the worker out"}

    config: Mapping[str, Any] = field(default_factory=dict)
    health_port: int | None = None
    owner_refs: Sequence[Literal["pod", "ds", "node"]] | None = None
    mount_usr_src: bool = False
    mount_features_d: bool = False
    update_strategy: UpdateStrategy = UpdateStrategy.rolling_update(max_unavailable="10%")  # noqa: RUF009

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(set(self.owner_refs or ())) < len(self.owner_refs or ()):
            raise GpuConstructsError(f"worker.owner_refs must not repeat an owner; got {list(self.owner_refs or ())!r}")
        self.document()

    def document(self) -> dict[str, Any]:
        """Give the content of its configuration file."""
        return nfd_config.worker_config(self.config)


@dataclass(frozen=True, kw_only=True)
class NfdGarbageCollector(NfdDeployment):
    """The garbage collector: removes what was published for nodes that are gone.

    Attributes:
        interval: How often it looks for what it missed.
        replica_count: Pods; all of them work.
        liveness_probe: Numbers, over ours: after 10 seconds (from NFD 0.18.0; before, it serves no health).
        readiness_probe: Numbers, over ours: after 5 seconds (likewise).
        extra_args: Besides logging flags ``-kubeconfig`` and ``-list-size``.

    Raises:
        GpuConstructsError: A value that the garbage collector would refuse or ignore; a budget that would
            block every drain.
    """

    _NAME: ClassVar[str] = "gc"
    _NOT_TAKEN: ClassVar[dict[str, str]] = {
        "enable": "pass gc=None to leave the garbage collector out",
        "health_port": "no release of the garbage collector has a port for health alone",
    }

    interval: timedelta | str = "1h"

    def __post_init__(self) -> None:
        super().__post_init__()
        _span("gc.interval", self.interval, above_zero=True)


@dataclass(frozen=True, kw_only=True)
class NfdTopologyUpdater(NfdDaemonSet):
    """The topology updater: publishes what each NUMA zone of a node has left, for schedulers that ask.

    It runs as root, without capabilities, and sees the kubelet's socket of pod resources.

    Attributes:
        config: Its file (``nfd-topology-updater.conf``): ``excludeList``.
        create_crds: Bring the definition of NodeResourceTopology. False by default in NFD's chart, whose
            topology updater then fails until somebody else brought it.
        health_port: Of health, 8082 by default (before NFD 0.18.0).
        update_interval: How often it publishes; zero only when the kubelet's files change.
        watch_namespace: The namespace whose pods count; ``*`` counts all.
        kubelet_state_dir: The kubelet's directory on the node; a change of its files is published at once.
            The whole directory is shown, read-only, with the secrets of the node's pods in it: ``""`` does
            without.
        kubelet_config_path: The kubelet's configuration on the node. None asks the kubelet, for which the
            right ``nodes/configz`` suffices from Kubernetes 1.33 on; before, name the file.
        kubelet_pod_resources_sock_path: The kubelet's socket of pod resources on the node; its directory is
            mounted, so that a restarted kubelet is found again.
        pod_set_fingerprint: Publish which pods were counted.
        liveness_probe: Numbers, over ours: after 10 seconds.
        readiness_probe: Numbers, over ours: after 5 seconds, up to 10 failures.
        extra_args: Besides logging flags ``-kubeconfig``, ``-no-publish`` and ``-api-auth-token-file``.

    Raises:
        GpuConstructsError: A value that the topology updater would refuse or ignore, a path that is not
            absolute, neither an interval nor a directory to watch.
    """

    _NAME: ClassVar[str] = "topology_updater"
    _NOT_TAKEN: ClassVar[dict[str, str]] = {"enable": "pass topology_updater=None to leave the topology updater out"}

    config: Mapping[str, Any] = field(default_factory=dict)
    create_crds: bool = True
    health_port: int | None = None
    update_interval: timedelta | str = "60s"
    watch_namespace: str = "*"
    kubelet_state_dir: str = "/var/lib/kubelet"
    kubelet_config_path: str | None = None
    kubelet_pod_resources_sock_path: str = "/var/lib/kubelet/pod-resources/kubelet.sock"
    pod_set_fingerprint: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        name = self._NAME
        interval = _span(f"{name}.update_interval", self.update_interval)
        if not interval and not self.kubelet_state_dir:
            raise GpuConstructsError(
                f"{name}.update_interval must be above zero without kubelet_state_dir: nothing would ever be published"
            )
        if self.watch_namespace != "*":
            _fields.dns_label(f"{name}.watch_namespace", self.watch_namespace)
        for member in ("kubelet_state_dir", "kubelet_config_path", "kubelet_pod_resources_sock_path"):
            path = getattr(self, member)
            if path is not None and (path or member != "kubelet_state_dir"):
                _fields.absolute_path(f"{name}.{member}", path)
        if not self.kubelet_pod_resources_sock_path.rpartition("/")[0]:
            raise GpuConstructsError(
                f"{name}.kubelet_pod_resources_sock_path must lie in a directory of its own, which is mounted; got "
                f"{self.kubelet_pod_resources_sock_path!r}"
            )
        self.document()

    def document(self) -> dict[str, Any]:
        """Give the content of its configuration file."""
        return nfd_config.topology_updater_config(self.config)


@dataclass(frozen=True, kw_only=True)
class NodeFeatureDiscovery(metaclass=ShortErrors):
    """Node Feature Discovery, as the chart of the device plugin installs it.

    Attributes:
        image: Another ``repository:tag`` or digest.
        image_pull_policy: ``IfNotPresent`` by default.
        image_pull_secrets: Names of Secrets that open the image's registry.
        fullname: What the names of its objects begin with; the chart's by default.
        namespace: Where it lives; the chart's by default. It must be there, and allow privileged pods.
        feature_gates: ``DisableAutoPrefix`` and ``NodeFeatureGroupAPI``, both off by default.
        priority_class_name: Of all components; none by default, as in NFD's chart.
        master: Its master; None leaves it out, for one that is there.
        worker: Its worker; None leaves it out.
        gc: Its garbage collector; None leaves it out.
        topology_updater: None leaves it out.
        prometheus: A PodMonitor; None makes none.

    Raises:
        GpuConstructsError: A name or image that Kubernetes would not take, an unknown feature gate, two
            components with one port in the node's network, nothing to install.
    """

    _NOT_TAKEN: ClassVar[dict[str, str]] = {
        "post_delete_cleanup": "the chart's hook is a Job that kubectl apply would start at once, and it takes every "
        "label of NFD off the nodes",
        "checksum_values_only": "pods carry the checksum of their file alone",
        "name_override": "set fullname",
        "fullname_override": "set fullname",
        "namespace_override": "set namespace",
    }

    image: str | None = None
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    image_pull_secrets: Sequence[str] = ()
    fullname: str | None = None
    namespace: str | None = None
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    priority_class_name: str | None = None
    master: NfdMaster | None = NfdMaster()
    worker: NfdWorker | None = NfdWorker()
    gc: NfdGarbageCollector | None = NfdGarbageCollector()
    topology_updater: NfdTopologyUpdater | None = None
    prometheus: NfdPodMonitor | None = None

    def __post_init__(self) -> None:
        name = "node_feature_discovery"
        _fields.members(self, name)
        if self.image is not None:
            _fields.image(f"{name}.image", self.image)
        for index, secret in enumerate(self.image_pull_secrets):
            _fields.dns_subdomain(f"{name}.image_pull_secrets[{index}]", secret)
        if self.fullname is not None:
            longest = 63 - len(_LONGEST_SUFFIX)
            _fields.dns_subdomain(f"{name}.fullname", self.fullname)
            if len(self.fullname) > longest:
                raise GpuConstructsError(
                    f"{name}.fullname must have at most {longest} characters, since {_LONGEST_SUFFIX!r} follows; got "
                    f"{self.fullname!r}"
                )
        if self.namespace is not None:
            _fields.dns_label(f"{name}.namespace", self.namespace)
            if self.namespace == "default":
                raise GpuConstructsError(
                    f"{name}.namespace must not be 'default': the worker mounts host paths, which only a privileged "
                    "namespace allows; leave it out for the chart's"
                )
        for gate in self.feature_gates:
            if gate == "NodeFeatureAPI":
                raise GpuConstructsError(
                    f"{name}.feature_gates must not hold {gate!r}, which is always on; leave it out"
                )
            _fields.one_of(f"{name}.feature_gates key", gate, _FEATURE_GATES)
        if self.priority_class_name is not None:
            _fields.dns_subdomain(f"{name}.priority_class_name", self.priority_class_name)
        if not self.components:
            raise GpuConstructsError(f"{name} must have a component; pass node_feature_discovery=False for none")

    @property
    def components(self) -> dict[str, NfdComponent]:
        """The components to install, by the names of their members."""
        every: dict[str, NfdComponent | None] = {
            "master": self.master,
            "worker": self.worker,
            "gc": self.gc,
            "topology_updater": self.topology_updater,
        }
        return {name: component for name, component in every.items() if component is not None}

    @property
    def labels_nodes(self) -> bool:
        """Whether it finds out and publishes node labels by itself."""
        return self.master is not None and self.worker is not None

    @property
    def denies_features_of_others(self) -> bool:
        """Whether its master drops the labels that programs other than its own workers publish."""
        restrictions = self.master.document().get("restrictions") if self.master is not None else None
        return bool((restrictions or {}).get("denyNodeFeatureLabels"))

    def has_gate(self, gate: str) -> bool:
        """Tell whether a feature gate is on."""
        return self.feature_gates.get(gate, False)
