"""The options of each component of Node Feature Discovery (NFD). Their names follow the values of the Helm chart.

Source: the Helm charts of NFD 0.17.3 and 0.19.0 in NVIDIA/k8s-device-plugin@v0.18.2 and @v0.20.0.
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
    """The options that every component of Node Feature Discovery (NFD) has, such as the master and the worker.

    Attributes:
        extra_args: Command-line flags for which this class has no option, such as ``-v=4``.
        extra_envs: Environment variables by name, each as text or an ``EnvValue``.
        host_network: Whether the pods use the network of the node. If several components use it, their ports must be
            different.
        host_users: False to run the pods in their own user namespace. Do not set False together with ``host_network``.
            None: the default of Kubernetes, which is the namespace of the host.
        dns_policy: DNS policy: ``ClusterFirst``, ``ClusterFirstWithHostNet`` or ``Default``. None: the policy with
            which the pods can resolve the names of Services.
        port: Port of metrics and health checks. None: 8080. This option needs NFD 0.18.0 or later.
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
        node_selector: Labels that a node must have.
        tolerations: Tolerations of the pods, besides the tolerations of the chart that installs NFD.
        affinity: Affinity of the pods, as in a manifest. It replaces the default of the library.
        liveness_probe: Numeric fields of the liveness probe, such as ``periodSeconds``. They override the defaults of
            the library.
        readiness_probe: Numeric fields of the readiness probe, such as ``periodSeconds``. They override the defaults of
            the library.
        network_policy: Network policy of the pods. None: no policy.

    Raises:
        GpuConstructsError: If the component or Kubernetes would reject or ignore a value. Also raised if the user sets
            a label, variable, annotation or flag that the library sets, or sets ``network_policy`` together with
            ``host_network``. The network of the node makes the policy ineffective.
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
        """Return the values of the options ``port``, ``metrics_port`` and ``health_port``, by name of the option.

        A value is None if the user does not set the option. The dict omits options that the component does not have.
        """
        members = ("port", "metrics_port", "health_port")
        return {member: getattr(self, member) for member in members if hasattr(self, member)}

    def document(self) -> dict[str, Any] | None:
        """Return the content of the component's configuration file as a dict. Return None if there is no such file."""
        return None

    @property
    def container_name(self) -> str:
        """Name of the component and its container, such as ``topology-updater``."""
        return self._NAME.replace("_", "-")


@dataclass(frozen=True, kw_only=True)
class NfdDeployment(NfdComponent):
    """The options of a component of Node Feature Discovery that runs as a Deployment.

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
    """The options of a component of Node Feature Discovery that runs as a DaemonSet.

    Attributes:
        daemonset_annotations: Annotations of the DaemonSet.
        update_strategy: Update strategy of the DaemonSet.
    """

    daemonset_annotations: Mapping[str, str] = field(default_factory=dict)
    update_strategy: UpdateStrategy = UpdateStrategy.rolling_update()


@dataclass(frozen=True, kw_only=True)
class NfdMaster(NfdDeployment):
    """The options of the master of Node Feature Discovery (NFD).

    The master sets the node labels that workers, GPU Feature Discovery and NodeFeatureRules request.

    Attributes:
        config: Content of the configuration file ``nfd-master.conf``. It overrides the default of the library, which
            allows labels in the domain ``nvidia.com``. A list replaces the complete list of the default, and None
            removes a key.
        health_port: Port of health checks before NFD 0.18.0. None: 8082.
        instance: Suffix of the node annotations of this master, to distinguish several masters in one cluster. None: no
            suffix.
        resync_period: Time between two updates of all nodes. None: one hour.
        deny_label_ns: Label domains that the master rejects. A leading ``*`` matches any prefix.
        extra_label_ns: Label domains that the master always accepts. They replace the default of the library,
            ``nvidia.com``.
        enable_taints: Whether to apply the taints of NodeFeatureRules to nodes.
        nfd_api_parallelism: Number of nodes that the master updates in parallel. None: 10.
        replica_count: Number of pods. If there are several pods, only the elected leader updates nodes.
        startup_probe: Numeric fields of the startup probe. They override the default of the library: 30 failures.
        liveness_probe: Numeric fields of the liveness probe. They override the defaults of Kubernetes.
        readiness_probe: Numeric fields of the readiness probe. They override the default of the library: 10 failures.
        extra_args: Command-line flags to add. Valid: logging flags, ``-kubeconfig`` and ``-informer-page-size``.
        affinity: Affinity of the pods, as in a manifest. None: the pods prefer control plane nodes.

    Raises:
        GpuConstructsError: If the master would reject or ignore a value, if an option overrides a key of ``config``, or
            if the disruption budget would block each drain of a node. Also raised if ``config`` or ``deny_label_ns``
            prevents the label ``nvidia.com/gpu.present``.
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
    """The options of the worker of Node Feature Discovery (NFD), which discovers the hardware of each node.

    Attributes:
        config: Content of the configuration file ``nfd-worker.conf``. It overrides the default of the library, which
            labels network and display controllers by vendor. A list replaces the complete list of the default, and None
            removes a key. The default rule for the label ``nvidia.com/gpu.present`` stays, unless one of your rules
            sets this label.
        marks_gpu_nodes: Whether the worker sets the label ``nvidia.com/gpu.present`` on GPU nodes. If False, the
            configuration file contains only ``config``, as in the Helm chart of NFD.
        health_port: Port of health checks before NFD 0.18.0. None: 8082.
        owner_refs: Owners of the NodeFeature objects that a worker creates: ``pod`` (the pod of the worker), ``ds``
            (its DaemonSet) and ``node``. Kubernetes deletes a NodeFeature object when its last owner no longer exists.
            None: ``pod`` and ``ds``. This option needs NFD 0.19.0 or later.
        mount_usr_src: Whether to mount ``/usr/src``, where some distributions store the kernel configuration. Talos
            does not have this directory.
        mount_features_d: Whether to mount ``/etc/kubernetes/node-feature-discovery/features.d``, which can contain
            files with additional features of the node. The Helm chart of NFD always mounts this directory.
        liveness_probe: Numeric fields of the liveness probe. They override the default of the library: a delay of 10
            seconds.
        readiness_probe: Numeric fields of the readiness probe. They override the defaults of the library: a delay of 5
            seconds, and 10 failures.
        update_strategy: Update strategy of the DaemonSet. The default replaces pods on a tenth of the nodes at a time.
        extra_args: Command-line flags to add. Valid: logging flags and ``-kubeconfig``.

    Raises:
        GpuConstructsError: If the worker would reject or ignore a value, or if ``config`` would remove the label
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
    """The options of the garbage collector of Node Feature Discovery (NFD).

    The garbage collector deletes the NodeFeature and NodeResourceTopology objects of nodes that no longer exist.

    Attributes:
        interval: Time between two complete searches for such objects. Between the searches, the garbage collector
            reacts to the deletion of nodes.
        replica_count: Number of pods. All pods work at the same time.
        liveness_probe: Numeric fields of the liveness probe. They override the default of the library: a delay of 10
            seconds. This option needs NFD 0.18.0 or later.
        readiness_probe: Numeric fields of the readiness probe. They override the default of the library: a delay of 5
            seconds. This option needs NFD 0.18.0 or later.
        extra_args: Command-line flags to add. Valid: logging flags, ``-kubeconfig`` and ``-list-size``.

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
    """The options of the topology updater of Node Feature Discovery (NFD).

    The topology updater publishes the free resources of each NUMA zone of a node. It reads them from the pod resources
    socket of the kubelet. Its container runs as root without capabilities.

    Attributes:
        config: Content of the configuration file ``nfd-topology-updater.conf``. The only key is ``excludeList``.
        create_crds: Whether to create the CRD of NodeResourceTopology, without which the topology updater fails. True
            by default, unlike in the Helm chart of NFD.
        health_port: Port of health checks before NFD 0.18.0. None: 8082.
        update_interval: Time between two updates. With zero, the topology updater publishes only after a change of
            files in ``kubelet_state_dir``.
        watch_namespace: Namespace of the pods whose resources the topology updater counts. ``*`` counts all pods.
        kubelet_state_dir: Directory of the kubelet on the node. The topology updater publishes the resources when files
            in this directory change. The pod mounts the directory read-only, and can therefore read the Secrets that
            other pods of the node mount. If the text is empty, the pod does not mount the directory.
        kubelet_config_path: Path of the kubelet configuration file on the node. None: the topology updater requests the
            configuration from the kubelet, with the right ``nodes/configz``. Before Kubernetes 1.33, this right is not
            enough, so set the path.
        kubelet_pod_resources_sock_path: Path of the pod resources socket on the node. The pod mounts the directory of
            the socket, so that it finds the new socket after a restart of the kubelet.
        pod_set_fingerprint: Whether to publish a fingerprint of the pods that the topology updater counts.
        liveness_probe: Numeric fields of the liveness probe. They override the default of the library: a delay of 10
            seconds.
        readiness_probe: Numeric fields of the readiness probe. They override the defaults of the library: a delay of 5
            seconds, and 10 failures.
        extra_args: Command-line flags to add. Valid: logging flags, ``-kubeconfig``, ``-no-publish`` and
            ``-api-auth-token-file``.

    Raises:
        GpuConstructsError: If the topology updater would reject or ignore a value, if a path is not absolute, or if
            ``update_interval`` is zero and ``kubelet_state_dir`` is empty.
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
