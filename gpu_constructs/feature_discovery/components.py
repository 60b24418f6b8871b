"""What a user may say about each program of Node Feature Discovery, by the names of the values of its chart.

Source: the node-feature-discovery charts 0.17.3 and 0.19.0 bundled in NVIDIA/k8s-device-plugin@v0.18.2 and @v0.20.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar, Literal

from gpu_constructs.feature_discovery import config as files
from gpu_constructs.feature_discovery.options import (
    NfdNetworkPolicy,
    NfdOptions,
    NfdPodDisruptionBudget,
    NfdProbe,
    NfdServiceAccount,
)
from gpu_constructs.kube import durations, fields
from gpu_constructs.kube.env import AnyEnvValue
from gpu_constructs.kube.placement import Toleration
from gpu_constructs.kube.resources import Resources
from gpu_constructs.kube.update_strategy import UpdateStrategy


@dataclass(frozen=True, kw_only=True)
class NfdComponent(NfdOptions):
    """Options of each component.

    Attributes:
        extra_args: Flags that have no option here, like ``-v=4``.
        extra_envs: Environment variables: text or an ``EnvValue``.
        host_network: Whether to use the network of the node. Components that do need ports of their own.
        host_users: False runs the pod in a user namespace of its own; not with ``host_network``. None leaves
            it to Kubernetes, which does not.
        dns_policy: ``ClusterFirst``, ``ClusterFirstWithHostNet`` or ``Default``. None lets the pod resolve
            names of the cluster wherever it runs.
        port: Port of metrics and health, 8080 by default (from NFD 0.18.0).
        metrics_port: Port of metrics, 8081 by default (before NFD 0.18.0).
        annotations: Annotations of the pods.
        labels: Labels of the pods, in addition to ours.
        pod_security_context: Security context of the pods, on top of ours; None takes a key away.
        security_context: Security context of the container, on top of ours; None takes a key away.
        init_containers: Containers that run before, in the form of Kubernetes.
        service_account: Account that the pods run as.
        rbac_create: Whether to make the roles it needs and bind them to the account.
        revision_history_limit: Old revisions that Kubernetes keeps; None keeps its 10.
        priority_class_name: Name of a PriorityClass, in place of that of all components.
        resources: Requests and limits of the container, in place of ours.
        node_selector: Node labels to select.
        tolerations: Taints to tolerate, in addition to the chart's.
        affinity: Affinity in the form of Kubernetes, in place of ours.
        liveness_probe: Numbers on top of ours.
        readiness_probe: Numbers on top of ours.
        network_policy: What the pods may reach; None makes no policy.

    Raises:
        GpuConstructsError: A value that the program or Kubernetes would refuse or ignore, a label, variable,
            annotation or flag that this library sets, a network policy in the network of the node, where none holds.
    """

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
    service_account: NfdServiceAccount = NfdServiceAccount()  # noqa: RUF009
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
        super().__post_init__()
        self.document()

    def _conflicts(self) -> Iterable[fields.Conflict]:
        name, context = self._NAME, self.security_context
        return [
            (
                self.host_network and self.host_users is False,
                f"{name}.host_users must not be False with host_network, which Kubernetes refuses; leave one out",
            ),
            (
                self.host_network and self.network_policy is not None,
                f"{name}.network_policy must be left out with host_network: in the node's network none holds",
            ),
            (
                context.get("privileged") and context.get("allowPrivilegeEscalation", False) is False,
                f"{name}.security_context must also hold 'allowPrivilegeEscalation': None with privileged: Kubernetes "
                "refuses a privileged container that is forbidden to gain rights",
            ),
        ]

    def ports(self) -> dict[str, int | None]:
        """Return the ports by the names of their options, None for a default."""
        members = ("port", "metrics_port", "health_port")
        return {member: getattr(self, member) for member in members if hasattr(self, member)}

    def document(self) -> dict[str, Any] | None:
        """Return the content of its configuration file, None if it reads none."""
        return None

    @property
    def container_name(self) -> str:
        """Name of the component in the spelling of NFD."""
        return self._NAME.replace("_", "-")


@dataclass(frozen=True, kw_only=True)
class NfdDeployment(NfdComponent):
    """Options of a component that runs once for the whole cluster.

    Attributes:
        deployment_annotations: Annotations of the Deployment.
        replica_count: Number of pods; 1 by default.
        pod_disruption_budget: Budget of the pods; None makes none.

    Raises:
        GpuConstructsError: No pod, or a budget that would block every drain.
    """

    deployment_annotations: Mapping[str, str] = field(default_factory=dict)
    replica_count: int = 1
    pod_disruption_budget: NfdPodDisruptionBudget | None = None

    def _conflicts(self) -> Iterable[fields.Conflict]:
        yield from super()._conflicts()
        yield (
            self.pod_disruption_budget is not None and self.pod_disruption_budget.allows(self.replica_count) < 1,
            f"{self._NAME}.pod_disruption_budget lets none of {self.replica_count} go, so no node that runs one could "
            "be drained; raise replica_count or pass max_unavailable=1",
        )


@dataclass(frozen=True, kw_only=True)
class NfdDaemonSet(NfdComponent):
    """Options of a component that runs on each node.

    Attributes:
        daemonset_annotations: Annotations of the DaemonSet.
        update_strategy: How its pods are replaced.
    """

    daemonset_annotations: Mapping[str, str] = field(default_factory=dict)
    update_strategy: UpdateStrategy = UpdateStrategy.rolling_update()  # noqa: RUF009


@dataclass(frozen=True, kw_only=True)
class NfdMaster(NfdDeployment):
    """Options of the master, which puts on the nodes what workers and other programs found.

    Attributes:
        config: Content of ``nfd-master.conf``, laid over ours, which allows labels of ``nvidia.com``: keys
            are merged, lists replaced, None takes a key away.
        health_port: Port of health, 8082 by default (before NFD 0.18.0).
        instance: Name that tells the annotations of several masters in one cluster apart.
        resync_period: Time between two updates of all nodes; an hour by default.
        deny_label_ns: Domains whose labels it refuses; a leading ``*`` stands for the rest.
        extra_label_ns: Domains whose labels it takes in any case, in place of ours.
        enable_taints: Whether to put the taints of NodeFeatureRules on nodes.
        nfd_api_parallelism: Nodes it works on at once; 10 by default.
        replica_count: Number of pods. Several elect a leader; the others wait.
        startup_probe: Numbers on top of ours: up to 30 failures.
        liveness_probe: Numbers on top of those of Kubernetes.
        readiness_probe: Numbers on top of ours: up to 10 failures.
        extra_args: Logging flags, ``-kubeconfig`` and ``-informer-page-size``.
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
    _IN_FILE: ClassVar[dict[str, str]] = {
        "deny_label_ns": "denyLabelNs",
        "extra_label_ns": "extraLabelNs",
        "enable_taints": "enableTaints",
        "resync_period": "resyncPeriod",
        "nfd_api_parallelism": "nfdApiParallelism",
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

    def _conflicts(self) -> Iterable[fields.Conflict]:
        yield from super()._conflicts()
        for member, key in self._IN_FILE.items():
            yield (
                getattr(self, member) and key in self.config,
                f"master.{member} overrides master.config.{key} silently; keep one of them",
            )

    def document(self) -> dict[str, Any]:
        """Return the content of its configuration file."""
        return files.master_config(self.config, deny=self.deny_label_ns or None, extra=self.extra_label_ns or None)


@dataclass(frozen=True, kw_only=True)
class NfdWorker(NfdDaemonSet):
    """Options of the worker, which looks at the hardware of each node.

    Attributes:
        config: Content of ``nfd-worker.conf``, laid over ours, which labels network and display controllers
            by vendor and marks GPU nodes with ``nvidia.com/gpu.present``: keys are merged, lists replaced,
            None takes a key away. The rule that marks GPU nodes stays whatever is given, unless a rule of
            yours sets that label.
        health_port: Port of health, 8082 by default (before NFD 0.18.0).
        owner_refs: Owners of what a worker publishes, so that it goes with its last owner: ``pod``, ``ds``
            (its DaemonSet), ``node``. The first two by default (from NFD 0.19.0).
        mount_usr_src: Whether to show it ``/usr/src``, where some distributions keep the configuration of the
            kernel. Not on Talos, which has no such directory.
        mount_features_d: Whether to show it ``/etc/kubernetes/node-feature-discovery/features.d``, where files
            with further features of a node may lie. NFD's chart always does; ours must be asked.
        liveness_probe: Numbers on top of ours: after 10 seconds.
        readiness_probe: Numbers on top of ours: after 5 seconds, up to 10 failures.
        update_strategy: By default a tenth of the nodes at a time.
        extra_args: Logging flags and ``-kubeconfig``.

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

    def _conflicts(self) -> Iterable[fields.Conflict]:
        owners = list(self.owner_refs or ())
        yield from super()._conflicts()
        yield len(set(owners)) < len(owners), f"worker.owner_refs must not repeat an owner; got {owners!r}"

    def document(self) -> dict[str, Any]:
        """Return the content of its configuration file."""
        return files.worker_config(self.config)


@dataclass(frozen=True, kw_only=True)
class NfdGarbageCollector(NfdDeployment):
    """Options of the garbage collector, which removes what was published for nodes that are gone.

    Attributes:
        interval: Time between two searches for what it missed.
        replica_count: Number of pods; all of them work.
        liveness_probe: Numbers on top of ours: after 10 seconds (from NFD 0.18.0; before, it serves no health).
        readiness_probe: Numbers on top of ours: after 5 seconds (likewise).
        extra_args: Logging flags, ``-kubeconfig`` and ``-list-size``.

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


@dataclass(frozen=True, kw_only=True)
class NfdTopologyUpdater(NfdDaemonSet):
    """Options of the topology updater, which publishes what each NUMA zone of a node has left.

    It runs as root, without capabilities, and sees the kubelet's socket of pod resources.

    Attributes:
        config: Content of ``nfd-topology-updater.conf``: ``excludeList``.
        create_crds: Whether to bring the definition of NodeResourceTopology. False by default in NFD's chart,
            whose topology updater then fails until the definition is there.
        health_port: Port of health, 8082 by default (before NFD 0.18.0).
        update_interval: Time between two updates; with zero only when the kubelet's files change.
        watch_namespace: Namespace whose pods count; ``*`` counts all.
        kubelet_state_dir: Directory of the kubelet on the node; a change of its files is published at once.
            The whole directory is shown, read-only, with the secrets of the node's pods in it: ``""`` does
            without.
        kubelet_config_path: Configuration file of the kubelet on the node. None asks the kubelet, for which the
            right ``nodes/configz`` suffices from Kubernetes 1.33 on; before, name the file.
        kubelet_pod_resources_sock_path: Socket of pod resources on the node; its directory is mounted, so that a
            restarted kubelet is found again.
        pod_set_fingerprint: Whether to publish which pods were counted.
        liveness_probe: Numbers on top of ours: after 10 seconds.
        readiness_probe: Numbers on top of ours: after 5 seconds, up to 10 failures.
        extra_args: Logging flags, ``-kubeconfig``, ``-no-publish`` and ``-api-auth-token-file``.

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

    def _conflicts(self) -> Iterable[fields.Conflict]:
        interval = self.update_interval
        span = durations.from_go_duration("", interval) if isinstance(interval, str) else interval
        yield from super()._conflicts()
        yield (
            not span and not self.kubelet_state_dir,
            f"{self._NAME}.update_interval must be above zero without kubelet_state_dir: nothing would ever be "
            "published",
        )

    def document(self) -> dict[str, Any]:
        """Return the content of its configuration file."""
        return files.document(self._NAME, self.config, {})
