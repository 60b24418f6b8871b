"""Options of a `GpuWorkload`, except its image and the kind of the object that runs the pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypedDict

from gpu_constructs.catalog.platforms import Platform
from gpu_constructs.errors import GpuConstructsError, refuse_if, short_errors
from gpu_constructs.kube import fields, placement, update_strategy
from gpu_constructs.kube.annotations import IGNORE_RULES, VISIBLE_DEVICES_CHOICE
from gpu_constructs.kube.container import Container, Probe
from gpu_constructs.kube.env import AnyEnvValue
from gpu_constructs.kube.pods import ImagePullPolicy, PodOptions, check_affinity
from gpu_constructs.kube.references import NamedObject
from gpu_constructs.kube.volume import Mountable
from gpu_constructs.records import dataclass
from gpu_constructs.workload.gpu_in_pod import VisibleDevices
from gpu_constructs.workload.gpu_profile import GpuProfile
from gpu_constructs.workload.gpu_request import GpuRequest

_SPREAD = (
    *("labelSelector", "matchLabelKeys", "maxSkew", "minDomains", "nodeAffinityPolicy", "nodeTaintsPolicy"),
    *("topologyKey", "whenUnsatisfiable"),
)

_STRATEGIES = {
    "Deployment": (("Recreate", "RollingUpdate"), "recreate() or rolling_update()"),
    "StatefulSet": (("RollingUpdate", "OnDelete"), "rolling_update() or on_delete()"),
}
"""Types of update strategies that each kind supports, and the methods of ``Strategy`` that create them."""

if TYPE_CHECKING:
    Gpus = int | GpuRequest
else:
    # GpuRequest checks the value itself, because its error message explains more than a type error.
    Gpus = object


def _check_spread(field: str, constraint: Mapping[str, Any]) -> None:
    for key in constraint:
        fields.one_of(f"{field} key", key, _SPREAD)
    fields.positive(f"{field}['maxSkew']", constraint.get("maxSkew"))
    fields.of_type(f"{field}['topologyKey']", constraint.get("topologyKey"), str)
    fields.labels(f"{field}['topologyKey']", {constraint["topologyKey"]: ""})
    allowed = ("DoNotSchedule", "ScheduleAnyway")
    fields.one_of(f"{field}['whenUnsatisfiable']", constraint.get("whenUnsatisfiable"), allowed)


@dataclass(frozen=True, kw_only=True)
class Scheduling(fields.Options):
    """Options that decide on which nodes the pods run, besides the node conditions of their GPU request.

    Attributes:
        affinity: Affinity, as in the Kubernetes API. The workload adds the node conditions of its GPUs to each
            alternative (``nodeSelectorTerms``) of the affinity.
        topology_spread_constraints: Topology spread constraints, as in the Kubernetes API. None: if there are several
            replicas, they spread over nodes as far as free GPUs allow (``ScheduleAnyway``). An empty list: no
            constraint.
        scheduler_name: Name of another scheduler, such as Volcano or KAI. None: the default scheduler.
        scheduling_gates: Names of scheduling gates. The scheduler ignores the pods until a controller removes all
            gates.

    Raises:
        GpuConstructsError: Kubernetes would reject a name, or an affinity or constraint has an unknown key at its top
            level.
    """

    affinity: Mapping[str, Any] | None = None
    topology_spread_constraints: Sequence[Mapping[str, Any]] | None = None
    scheduler_name: str | None = None
    scheduling_gates: Sequence[str] = ()

    _CHECKS: ClassVar[fields.Checks] = {
        "affinity": check_affinity,
        "topology_spread_constraints": partial(fields.each, _check_spread),
        "scheduler_name": fields.dns_subdomain,
        "scheduling_gates": lambda name, gates: fields.labels(name, dict.fromkeys(gates, "")),
    }

    def to_manifest(self, *, replicas: int, selector: Mapping[str, str]) -> dict[str, Any]:
        """Return a dict with the fields of the pod spec for these options. A field is None if its option has no value.

        Args:
            replicas: Number of replicas of a Deployment or StatefulSet. 1 for other kinds.
            selector: Labels that identify the pods, for the default topology spread constraint.
        """
        spread = self.topology_spread_constraints
        if spread is None and replicas > 1:
            by_node = {"maxSkew": 1, "topologyKey": placement.HOSTNAME, "whenUnsatisfiable": "ScheduleAnyway"}
            spread = [{**by_node, "labelSelector": {"matchLabels": dict(selector)}}]
        return {
            "affinity": self.affinity or None,
            "topologySpreadConstraints": [dict(one) for one in spread or ()] or None,
            "schedulerName": self.scheduler_name,
            "schedulingGates": [{"name": gate} for gate in self.scheduling_gates] or None,
        }


@dataclass(frozen=True, kw_only=True)
class Strategy(fields.Options):
    """The update strategy of a Deployment or StatefulSet. The attributes have the names of the Kubernetes API.

    Create it with ``Strategy.recreate()``, ``Strategy.rolling_update(...)`` or ``Strategy.on_delete()``.

    Attributes:
        type: Strategy type: ``Recreate`` (Deployment), ``RollingUpdate``, or ``OnDelete`` (StatefulSet).
        max_surge: Number or percentage of new pods that can run besides the old pods. Each new pod needs its own GPUs.
        max_unavailable: Number or percentage of pods that can be missing during an update.
        partition: Ordinal of a pod of a StatefulSet. Pods with a lower ordinal keep the old spec.

    Raises:
        GpuConstructsError: A number is negative, a text is not a percentage, a type other than ``RollingUpdate`` has
            numbers, or both ``max_surge`` and ``max_unavailable`` are 0.
    """

    type: Literal["Recreate", "RollingUpdate", "OnDelete"]
    max_surge: int | str | None = None
    max_unavailable: int | str | None = None
    partition: int | None = None

    _CHECKS: ClassVar[fields.Checks] = {
        "max_surge": update_strategy.check_amount,
        "max_unavailable": update_strategy.check_amount,
        "partition": fields.natural,
    }

    def _conflicts(self) -> Iterable[fields.Conflict]:
        given = (self.max_surge, self.max_unavailable, self.partition)
        return [
            (
                self.type != "RollingUpdate" and given != (None, None, None),
                f"strategy must have no numbers with {self.type}. Use Strategy.rolling_update(...)",
            ),
            (
                all(str(amount).rstrip("%") == "0" for amount in (self.max_surge, self.max_unavailable)),
                "strategy must allow missing pods (max_unavailable) or additional pods (max_surge), got 0 for both",
            ),
        ]

    @classmethod
    @short_errors
    def recreate(cls) -> Strategy:
        """Return a strategy that stops all old pods before it starts the new pods.

        The old pods therefore free their GPUs before the new pods need them. Another pending pod can still take a free
        GPU first, unless the new pods have a PriorityClass of a higher value.
        """
        return cls(type="Recreate")

    @classmethod
    @short_errors
    def rolling_update(
        cls,
        *,
        max_surge: int | str | None = 0,
        max_unavailable: int | str | None = 1,
        partition: int | None = None,
    ) -> Strategy:
        """Return a strategy that replaces a few pods at a time. By default, an old pod stops before a new one starts.

        Args:
            max_surge: Number or percentage (``"25%"``) of new pods that can run besides the old pods. Each new pod
                waits for a free GPU. Only a Deployment has this setting.
            max_unavailable: Number or percentage (``"25%"``) of pods that can be missing. For a value other than 1, the
                default, a StatefulSet needs the feature gate ``MaxUnavailableStatefulSet``.
            partition: Ordinal of a pod of a StatefulSet. Pods with a lower ordinal keep the old spec.
        """
        return cls(type="RollingUpdate", max_surge=max_surge, max_unavailable=max_unavailable, partition=partition)

    @classmethod
    @short_errors
    def on_delete(cls) -> Strategy:
        """Return a strategy that replaces a pod of a StatefulSet only after you delete it."""
        return cls(type="OnDelete")

    def to_manifest(self, kind: str) -> dict[str, Any]:
        """Return the value of ``spec.strategy`` for a Deployment, or of ``spec.updateStrategy`` for a StatefulSet.

        For example, ``Strategy.recreate()`` becomes ``{"type": "Recreate"}`` for a Deployment.

        Args:
            kind: Kind of the object, ``Deployment`` or ``StatefulSet``.

        Raises:
            GpuConstructsError: The kind does not have this strategy.
        """
        types, factories = _STRATEGIES[kind]
        refuse_if(self.type not in types, f"strategy of a {kind}", f"be {factories}", self.type)
        numbers = {"maxSurge": self.max_surge, "maxUnavailable": self.max_unavailable, "partition": self.partition}
        if kind == "StatefulSet":
            if self.max_surge:
                raise GpuConstructsError(f"strategy.max_surge needs kind 'Deployment', got {kind!r}")
            numbers |= {"maxSurge": None, "maxUnavailable": None if self.max_unavailable == 1 else self.max_unavailable}
        elif self.partition is not None:
            raise GpuConstructsError(f"strategy.partition needs kind 'StatefulSet', got {kind!r}")
        given = {name: value for name, value in numbers.items() if value is not None}
        return {"type": self.type, **({"rollingUpdate": given} if given and self.type == "RollingUpdate" else {})}


class ObjectOptions(TypedDict, total=False):
    """Options of an object that runs pods with GPUs, such as a Deployment or a Job.

    Attributes:
        annotations: Annotations of that object.
        ignore_rules: Codes of rules, such as ``R13``, that ``synth`` does not check for that object.
        labels: Labels to add to that object. Its pods get them too, unless an operator creates the pods.
        name: Name of that object. None: the ID of the construct.
        namespace: Namespace as a name, a ``GpuNamespace`` or a cdk8s-plus Namespace. None: the namespace of the cdk8s
            chart. If the chart has no namespace, ``default``.
    """

    annotations: Mapping[str, str] | None
    ignore_rules: Sequence[str]
    labels: Mapping[str, str] | None
    name: str | None
    namespace: str | NamedObject | None


class WorkloadOptions(PodOptions, ObjectOptions, total=False):
    """Options of ``GpuWorkload`` and of all constructs that extend it, such as ``Ollama``.

    Attributes:
        env: Environment variables of the container with the GPUs, each as text, an ``EnvValue``, or a value of
            cdk8s-plus. They override the default variables of the construct. A recipe rejects variables that it must
            set itself, such as ``HOME`` in ``Ollama``.
        gpus: Number of GPUs, or of slots of shared GPUs, for each pod. 1 by default. A ``GpuRequest`` can also select
            boards and memory.
        platform: Platform of the cluster, ``Talos("1.12")`` or ``Kubernetes()``. It determines the runtime class and
            the node selector. A ``profile`` contains a platform, so do not set both.
        profile: Settings that all GPU workloads of the cluster share. None: only the settings of ``platform``.
        volumes: Volumes by mount path: a ``Volume``, a ``VolumeClaim`` for a new disk, or a PersistentVolumeClaim,
            ConfigMap or Secret object.
    """

    env: Mapping[str, str | AnyEnvValue] | None
    gpus: Gpus
    platform: Platform
    profile: GpuProfile | None
    volumes: Mapping[str, Mountable] | None


class GpuWorkloadOptions(WorkloadOptions, total=False):
    """Options of ``GpuWorkload``.

    Attributes:
        args: Arguments of the container. They replace the arguments (``CMD``) of the image.
        capabilities: Linux capabilities that the container keeps. It drops all others.
        command: Command of the container. It replaces the entrypoint of the image.
        fs_group: ID of the group that owns mounted volumes. None: the number of ``run_as_user`` if the pod mounts a
            disk, so that this user can write to the disk. No group if the pod mounts no disk or runs as root.
        gpu_resource: Name of the extended resource if ``gpus`` is a number, such as ``nvidia.com/mig-1g.10gb``. None:
            ``nvidia.com/gpu``, or the name that the sharing of the profile sets.
        host_users: False runs the pods in their own Linux user namespaces, which needs CDI. None: the user namespace of
            the node.
        image_pull_policy: Pull policy. ``IfNotPresent`` by default, because tags are exact and images are large.
        init_containers: Containers that run one after the other before the main container. They have no access to a
            GPU.
        liveness_probe: Probe that restarts the container when it fails.
        pod_annotations: Annotations to add to the pods.
        ports: Port numbers by name, or a list of numbers, whose names are ``tcp-<number>``. If there are ports, the
            pods get a Service, except the pods of a Job or CronJob.
        read_only_root_filesystem: Whether the container can write only to its volumes. False by default.
        readiness_probe: Probe that decides whether the Service sends requests to the pod.
        run_as_user: User ID of the processes. An ID above 0 also sets ``runAsNonRoot``. None: the user of the image.
        scheduling: Affinity, topology spread, scheduler and scheduling gates. None: if there are several replicas, they
            spread over nodes as far as free GPUs allow.
        service_account: Name or object of a ServiceAccount, whose token the pod mounts. None: the pod mounts no token.
        shared_memory: Size of ``/dev/shm``, as a quantity. Data loaders and tensor parallelism need more than the
            default. Data in it counts against the memory limit. None: 64 MiB, the default of the container runtime. Do
            not set this option with MPS, which provides its own ``/dev/shm``.
        sidecars: Native sidecars (Kubernetes 1.29 and later) that start after ``init_containers``. They stop when the
            main container ends, so a Job can end too. They have no access to a GPU.
        startup_probe: Probe that delays the other probes while the container loads a model. Otherwise, Kubernetes could
            restart the container too early. None: the request or command of ``liveness_probe``, every 10 s for up to
            ten minutes. Without a ``liveness_probe``, the container then has no startup probe.
        termination_grace_period_seconds: Time that a pod has to finish requests after a stop signal, in seconds. None:
            60 for pods that run until you delete them, and 30 for pods of a Job, a CronJob or a bare Pod.
        visible_devices: Treatment of ``NVIDIA_VISIBLE_DEVICES`` in ``env``. ``managed``, the default, rejects it.
            ``unmanaged`` allows it, so that the container can choose its GPUs, and records the choice in an annotation.
        working_dir: Working directory of the command.
    """

    args: Sequence[str]
    capabilities: Sequence[str]
    command: Sequence[str]
    fs_group: int | None
    gpu_resource: str | None
    host_users: bool | None
    image_pull_policy: ImagePullPolicy
    init_containers: Sequence[Container]
    liveness_probe: Probe | None
    pod_annotations: Mapping[str, str] | None
    ports: Sequence[int] | Mapping[str, int]
    read_only_root_filesystem: bool
    readiness_probe: Probe | None
    run_as_user: int | None
    scheduling: Scheduling | None
    service_account: str | NamedObject | None
    shared_memory: str | None
    sidecars: Sequence[Container]
    startup_probe: Probe | None
    termination_grace_period_seconds: int | None
    visible_devices: VisibleDevices
    working_dir: str | None


def name_given(id: str, options: ObjectOptions) -> str:
    """Return the name of the object that runs the pods: the option ``name``, otherwise ``id``, the construct ID."""
    name = options.get("name")
    return id if name is None else name


def metadata_of(
    name: str,
    namespace: str,
    own_labels: Mapping[str, str],
    options: Mapping[str, Any],
    request: GpuRequest,
    more_annotations: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the metadata of an object that runs pods with GPUs.

    Args:
        name: Name of the object.
        namespace: Name of its namespace.
        own_labels: Labels that identify the pods of the object.
        options: Options of the user.
        request: GPU request of a pod.
        more_annotations: Annotations that the construct adds. None: no annotations.

    Raises:
        GpuConstructsError: Kubernetes would reject a label or annotation, or the user sets a label in ``own_labels``.
    """
    labels = options.get("labels") or {}
    fields.labels("labels", labels)
    for label in own_labels:
        refuse_if(label in labels, "labels", f"not contain {label!r}, which identifies the pods")
    said = (request, options.get("ignore_rules", ()), options.get("visible_devices", "managed"))
    annotations = {**annotations_of(options.get("annotations"), *said), **(more_annotations or {})}
    made = {"name": name, "namespace": namespace, "labels": {**labels, **own_labels}}
    return {**made, "annotations": annotations or None}


def annotations_of(
    given: Mapping[str, str] | None,
    request: GpuRequest,
    ignore_rules: Sequence[str],
    visible_devices: VisibleDevices = "managed",
) -> dict[str, str]:
    """Return the annotations of an object that runs pods with GPUs.

    Args:
        given: Annotations that the user sets. None: no annotations.
        request: GPU request, whose memory budget becomes an annotation.
        ignore_rules: Codes of rules that ``synth`` does not check for the object.
        visible_devices: ``unmanaged`` adds an annotation with this choice.

    Raises:
        GpuConstructsError: Kubernetes would reject a key, or the code of a rule is unknown.
    """
    fields.labels("annotations key", dict.fromkeys(given or {}, ""))
    made = {**(given or {}), **request.annotations}
    if visible_devices == "unmanaged":
        made[VISIBLE_DEVICES_CHOICE] = "unmanaged"
    if ignore_rules:
        from gpu_constructs.checks.rules.table import require_codes

        require_codes("ignore_rules", ignore_rules)
        made[IGNORE_RULES] = ",".join(ignore_rules)
    return made
