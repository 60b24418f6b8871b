"""The options of the programs of Node Feature Discovery (NFD). Their names follow the values of its Helm chart.

Source: the node-feature-discovery charts 0.17.3 and 0.19.0 bundled in NVIDIA/k8s-device-plugin@v0.18.2 and @v0.20.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
from gpu_constructs.records import dataclass, field


@dataclass(frozen=True, kw_only=True)
class NfdComponent(NfdOptions):
    """The options that every component (program) of Node Feature Discovery has.

    NFD is short for Node Feature Discovery.

    Attributes:
        extra_args: Command-line flags for which this class has no option, such as ``-v=4``.
        extra_envs: Environment variables, each as text or an ``EnvValue``.
        host_network: Whether the pods use the network of the node. If several components do, their ports must be
            different.
        host_users: False to run the pods in their own user namespace. Do not set False together with ``host_network``.
            None: the default of Kubernetes, which is the namespace of the host.
        dns_policy: DNS policy: ``ClusterFirst``, ``ClusterFirstWithHostNet`` or ``Default``. None: the policy with
            which the pods can resolve the names of Services.
        port: Port of metrics and health checks. None: 8080. The option needs NFD 0.18.0 or later.
        metrics_port: Port of metrics before NFD 0.18.0. None: 8081.
        annotations: Annotations of the pods.
        labels: Labels of the pods, besides the labels that the library sets.
        pod_security_context: Fields of the security context of the pods. They override the fields that the library
            sets. None removes a field.
        security_context: Fields of the security context of the container. They override the fields that the library
            sets. None removes a field.
        init_containers: Init containers, as in a manifest.
        service_account: ServiceAccount of the pods.
        rbac_create: Whether to create the RBAC roles of the component and bind them to its ServiceAccount.
        revision_history_limit: Number of old revisions that Kubernetes keeps. None: 10.
        priority_class_name: Name of a PriorityClass. It replaces ``NodeFeatureDiscovery(priority_class_name=...)`` for
            this component.
        resources: Requests and limits of the container. They replace the default of the library.
        node_selector: Node labels to select.
        tolerations: Tolerations of the pods, besides those of the chart.
        affinity: Affinity of the pods, as in a manifest. It replaces the default of the library.
        liveness_probe: Numeric fields of the liveness probe, such as ``periodSeconds``. They override the defaults of
            the library.
        readiness_probe: Numeric fields of the readiness probe, such as ``periodSeconds``. They override the defaults of
            the library.
        network_policy: Network policy of the pods. None: no policy.

    Raises:
        GpuConstructsError: The program or Kubernetes would reject or ignore a value. Also raised if the user sets a
            label, variable, annotation or flag that the library sets, or a network policy together with
            ``host_network``, which makes it ineffective.
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
    service_account: NfdServiceAccount = field(default_factory=NfdServiceAccount)
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
                f"{name}.host_users must not be False with host_network, which Kubernetes rejects. Remove one of them",
            ),
            (
                self.host_network and self.network_policy is not None,
                f"{name}.network_policy must be absent with host_network, which makes it ineffective",
            ),
            (
                context.get("privileged") and context.get("allowPrivilegeEscalation", False) is False,
                f"{name}.security_context must also contain 'allowPrivilegeEscalation': None with 'privileged': True, "
                "because Kubernetes rejects a privileged container without privilege escalation",
            ),
        ]

    def ports(self) -> dict[str, int | None]:
        """Return the port numbers by option name, such as ``metrics_port``.

        A port is None if the user does not set it.
        """
        members = ("port", "metrics_port", "health_port")
        return {member: getattr(self, member) for member in members if hasattr(self, member)}

    def document(self) -> dict[str, Any] | None:
        """Return the content of the configuration file as a dict. Return None if the component reads no file."""
        return None

    @property
    def container_name(self) -> str:
        """Name of the component as NFD spells it, such as ``topology-updater``."""
        return self._NAME.replace("_", "-")


@dataclass(frozen=True, kw_only=True)
class NfdDeployment(NfdComponent):
    """The options of a component that runs as a Deployment, so once in the cluster and not on each node.

    Attributes:
        deployment_annotations: Annotations of the Deployment.
        replica_count: Number of pods. 1 by default.
        pod_disruption_budget: Disruption budget of the pods. None: no budget.

    Raises:
        GpuConstructsError: The replica count is 0, or the disruption budget would block each drain of a node.
    """

    deployment_annotations: Mapping[str, str] = field(default_factory=dict)
    replica_count: int = 1
    pod_disruption_budget: NfdPodDisruptionBudget | None = None

    def _conflicts(self) -> Iterable[fields.Conflict]:
        yield from super()._conflicts()
        yield (
            self.pod_disruption_budget is not None and self.pod_disruption_budget.allows(self.replica_count) < 1,
            f"{self._NAME}.pod_disruption_budget must allow the eviction of one of {self.replica_count} pods, so that "
            "nodes can drain. Raise replica_count or pass max_unavailable=1",
        )


@dataclass(frozen=True, kw_only=True)
class NfdDaemonSet(NfdComponent):
    """The options of a component that runs as a DaemonSet, on each node.

    Attributes:
        daemonset_annotations: Annotations of the DaemonSet.
        update_strategy: Update strategy of the DaemonSet.
    """

    daemonset_annotations: Mapping[str, str] = field(default_factory=dict)
    update_strategy: UpdateStrategy = UpdateStrategy.rolling_update()


@dataclass(frozen=True, kw_only=True)
class NfdMaster(NfdDeployment):
    """The options of the master, which sets the node labels that workers and other programs request.

    Attributes:
        config: Content of the file ``nfd-master.conf``. It overrides the default of the library, which allows labels in
            the domain ``nvidia.com``. A list replaces the complete list of the default, and None removes a key.
        health_port: Port of health checks before NFD 0.18.0. None: 8082.
        instance: Suffix of the annotations, to distinguish several masters in one cluster. None: no suffix.
        resync_period: Time between two updates of all nodes. None: one hour.
        deny_label_ns: Label domains that the master rejects. A leading ``*`` matches any prefix.
        extra_label_ns: Label domains that the master always accepts. They replace the default of the library,
            ``nvidia.com``.
        enable_taints: Whether to apply the taints of NodeFeatureRules to nodes.
        nfd_api_parallelism: Number of nodes that the master updates in parallel. None: 10.
        replica_count: Number of pods. If there are several pods, only the elected leader works, and the others wait.
        startup_probe: Numeric fields of the startup probe. They override the default of the library: 30 failures.
        liveness_probe: Numeric fields of the liveness probe. They override the defaults of Kubernetes.
        readiness_probe: Numeric fields of the readiness probe. They override the default of the library: 10 failures.
        extra_args: Command-line flags: logging flags, ``-kubeconfig`` and ``-informer-page-size``.
        affinity: Affinity of the pods, as in a manifest. None: the pods prefer control plane nodes.

    Raises:
        GpuConstructsError: The master would reject or ignore a value, an option and the file set the same thing, or the
            disruption budget would block each drain of a node. Also raised if the file or a label domain prevents the
            label ``nvidia.com/gpu.present``.
    """

    _NAME: ClassVar[str] = "master"
    _NOT_TAKEN: ClassVar[dict[str, str]] = {
        "enable": "set master=None for no master",
        "feature_rules_controller": (
            "nfd-master 0.17.3 would exit, because it does not have the flag that the chart sets"
        ),
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
                getattr(self, member) and self.config.get(key) is not None,
                f"master.{member} overrides master.config.{key} silently. Remove one of them",
            )

    def document(self) -> dict[str, Any]:
        """Return the content of the configuration file as a dict, including the defaults of the library."""
        return files.master_config(self.config, deny=self.deny_label_ns or None, extra=self.extra_label_ns or None)


@dataclass(frozen=True, kw_only=True)
class NfdWorker(NfdDaemonSet):
    """The options of the worker, which discovers the hardware of each node.

    Attributes:
        config: Content of the file ``nfd-worker.conf``. It overrides the default of the library, which labels network
            and display controllers by vendor. A list replaces the complete list of the default, and None removes a key.
            The rule for ``nvidia.com/gpu.present`` stays, unless one of your rules sets that label.
        marks_gpu_nodes: Whether the worker sets the label ``nvidia.com/gpu.present`` on GPU nodes. If False, the file
            contains only ``config``, as in the chart of NFD.
        health_port: Port of health checks before NFD 0.18.0. None: 8082.
        owner_refs: Owners of the NodeFeature objects that a worker creates: ``pod``, ``ds`` (its DaemonSet) and
            ``node``. Kubernetes deletes the objects when the last owner no longer exists. None: ``pod`` and ``ds``. The
            option needs NFD 0.19.0 or later.
        mount_usr_src: Whether to mount ``/usr/src``, where some distributions keep the kernel configuration. Talos does
            not have this directory.
        mount_features_d: Whether to mount ``/etc/kubernetes/node-feature-discovery/features.d``, which can contain
            files with further features of the node. The chart of NFD always mounts it.
        liveness_probe: Numeric fields of the liveness probe. They override the default of the library: a delay of 10
            seconds.
        readiness_probe: Numeric fields of the readiness probe. They override the defaults of the library: a delay of 5
            seconds, and 10 failures.
        update_strategy: Update strategy of the DaemonSet. The default replaces pods on a tenth of the nodes at a time.
        extra_args: Command-line flags: logging flags and ``-kubeconfig``.

    Raises:
        GpuConstructsError: The worker would reject or ignore a value, or the file would remove the label
            ``nvidia.com/gpu.present``.
    """

    _NAME: ClassVar[str] = "worker"
    _NOT_TAKEN: ClassVar[dict[str, str]] = {"enable": "set worker=None for no worker"}

    config: Mapping[str, Any] = field(default_factory=dict)
    marks_gpu_nodes: bool = True
    health_port: int | None = None
    owner_refs: Sequence[Literal["pod", "ds", "node"]] | None = None
    mount_usr_src: bool = False
    mount_features_d: bool = False
    update_strategy: UpdateStrategy = UpdateStrategy.rolling_update(max_unavailable="10%")

    def _conflicts(self) -> Iterable[fields.Conflict]:
        owners = list(self.owner_refs or ())
        yield from super()._conflicts()
        yield len(set(owners)) < len(owners), f"worker.owner_refs must not repeat an owner, got {owners!r}"

    def document(self) -> dict[str, Any]:
        """Return the content of the configuration file as a dict, including the defaults of the library."""
        return files.worker_config(self.config, marks_gpu_nodes=self.marks_gpu_nodes)


@dataclass(frozen=True, kw_only=True)
class NfdGarbageCollector(NfdDeployment):
    """The options of the garbage collector, which deletes the NFD objects of nodes that no longer exist.

    Attributes:
        interval: Time between two searches for objects whose deletion the garbage collector missed.
        replica_count: Number of pods. All pods work at the same time.
        liveness_probe: Numeric fields of the liveness probe. They override the default of the library: a delay of 10
            seconds. The option needs NFD 0.18.0 or later.
        readiness_probe: Numeric fields of the readiness probe. They override the default of the library: a delay of 5
            seconds. The option needs NFD 0.18.0 or later.
        extra_args: Command-line flags: logging flags, ``-kubeconfig`` and ``-list-size``.

    Raises:
        GpuConstructsError: The garbage collector would reject or ignore a value, or the disruption budget would block
            each drain of a node.
    """

    _NAME: ClassVar[str] = "gc"
    _NOT_TAKEN: ClassVar[dict[str, str]] = {
        "enable": "set gc=None for no garbage collector",
        "health_port": "no release of the garbage collector has a port only for health checks",
    }

    interval: timedelta | str = "1h"


@dataclass(frozen=True, kw_only=True)
class NfdTopologyUpdater(NfdDaemonSet):
    """The options of the topology updater, which publishes the free resources of each NUMA zone of a node.

    It runs as root without capabilities, and can use the socket of the kubelet for pod resources.

    Attributes:
        config: Content of the file ``nfd-topology-updater.conf``, which can have the key ``excludeList``.
        create_crds: Whether to create the CRD of NodeResourceTopology. The default of NFD's chart is False. Its
            topology updater then fails until the CRD exists.
        health_port: Port of health checks before NFD 0.18.0. None: 8082.
        update_interval: Time between two updates. With zero, the updater works only after a change of the files of the
            kubelet.
        watch_namespace: Namespace of the pods to count. ``*`` counts all pods.
        kubelet_state_dir: Directory of the kubelet on the node. The updater publishes the resources when files in it
            change. The pod mounts the directory read-only. It contains the Secrets that other pods mount. An empty
            text: no mount.
        kubelet_config_path: Path of the kubelet configuration file on the node. None: the updater requests the
            configuration from the kubelet. From Kubernetes 1.33 on, it needs only the right ``nodes/configz`` for the
            request. For earlier releases, set the path.
        kubelet_pod_resources_sock_path: Path of the socket for pod resources on the node. The pod mounts the directory
            of the socket, so that it finds the new socket after a restart of the kubelet.
        pod_set_fingerprint: Whether to publish a fingerprint of the pods that the updater counts.
        liveness_probe: Numeric fields of the liveness probe. They override the default of the library: a delay of 10
            seconds.
        readiness_probe: Numeric fields of the readiness probe. They override the defaults of the library: a delay of 5
            seconds, and 10 failures.
        extra_args: Command-line flags: logging flags, ``-kubeconfig``, ``-no-publish`` and ``-api-auth-token-file``.

    Raises:
        GpuConstructsError: The topology updater would reject or ignore a value, a path is not absolute, or the updater
            has neither an interval nor a directory to watch.
    """

    _NAME: ClassVar[str] = "topology_updater"
    _NOT_TAKEN: ClassVar[dict[str, str]] = {"enable": "set topology_updater=None for no topology updater"}

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
            f"{self._NAME}.update_interval must be above zero without kubelet_state_dir, because the updater would "
            "publish nothing",
        )

    def document(self) -> dict[str, Any]:
        """Return the content of the configuration file as a dict, including the defaults of the library."""
        return files.document(self._NAME, self.config, {})
