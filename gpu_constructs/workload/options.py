"""What a user may say of a workload, beyond its image and the kind of object that runs it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
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
"""Types of strategies that each kind has, and their factories."""

if TYPE_CHECKING:
    Gpus = int | GpuRequest
else:
    # Left to GpuRequest, which says more of a number that is no whole one than its type.
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
    """Where pods run, beyond what their GPUs demand.

    Attributes:
        affinity: Affinity in the form of Kubernetes. What the GPUs demand of a node is added to each of its
            alternatives.
        topology_spread_constraints: Constraints in the form of Kubernetes. None: several replicas are spread over
            nodes as far as GPUs allow (``ScheduleAnyway``); an empty list: not at all.
        scheduler_name: Name of another scheduler, such as Volcano or KAI.
        scheduling_gates: Names of gates that must be opened before the pods are scheduled.

    Raises:
        GpuConstructsError: An affinity or a constraint whose first levels are not as Kubernetes writes them, or a name
            that it would not take.
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
        """Return the members of a pod that say so."""
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
    """``Strategy.recreate()``, ``Strategy.rolling_update(...)`` or ``Strategy.on_delete()``; words of Kubernetes.

    Attributes:
        type: ``Recreate`` (of a Deployment), ``RollingUpdate`` or ``OnDelete`` (of a StatefulSet).
        max_surge: Pods beside those that are replaced, each with GPUs of its own: a number or a percentage.
        max_unavailable: Pods that may be missing meanwhile; likewise.
        partition: For a StatefulSet: number below which pods stay as they are.

    Raises:
        GpuConstructsError: A number below zero, text that is not a percentage, numbers beside another type, or neither
            missing nor additional pods.
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
                f"strategy takes no numbers with {self.type}; use Strategy.rolling_update(...)",
            ),
            (
                all(str(amount).rstrip("%") == "0" for amount in (self.max_surge, self.max_unavailable)),
                "strategy must let pods either be missing (max_unavailable) or be doubled (max_surge); got 0 of both",
            ),
        ]

    @classmethod
    @short_errors
    def recreate(cls) -> Strategy:
        """Stop all pods, then start the new ones.

        A GPU is free before it is asked for again. A pod that waits may take it in between, unless the new pod has a
        PriorityClass of a higher value.
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
        """Replace pods a few at a time; by default one that is stopped before its successor starts.

        Args:
            max_surge: Additional pods meanwhile, a number or ``"25%"``: each waits for a GPU that is free. Only for a
                Deployment.
            max_unavailable: Pods that may be missing, a number or ``"25%"``. Of a StatefulSet only where the cluster
                has the feature ``MaxUnavailableStatefulSet``; 1 is its own way anyway.
            partition: For a StatefulSet: number below which pods stay as they are.
        """
        return cls(type="RollingUpdate", max_surge=max_surge, max_unavailable=max_unavailable, partition=partition)

    @classmethod
    @short_errors
    def on_delete(cls) -> Strategy:
        """Replace a pod of a StatefulSet only after it was deleted."""
        return cls(type="OnDelete")

    def to_manifest(self, kind: str) -> dict[str, Any]:
        """Return the strategy as the kind writes it.

        Raises:
            GpuConstructsError: The kind has no such strategy.
        """
        types, factories = _STRATEGIES[kind]
        refuse_if(self.type not in types, f"strategy of a {kind}", f"be {factories}", self.type)
        numbers = {"maxSurge": self.max_surge, "maxUnavailable": self.max_unavailable, "partition": self.partition}
        if kind == "StatefulSet":
            if self.max_surge:
                raise GpuConstructsError(f"strategy.max_surge needs kind 'Deployment'; got {kind!r}")
            numbers |= {"maxSurge": None, "maxUnavailable": None if self.max_unavailable == 1 else self.max_unavailable}
        elif self.partition is not None:
            raise GpuConstructsError(f"strategy.partition needs kind 'StatefulSet'; got {kind!r}")
        given = {name: value for name, value in numbers.items() if value is not None}
        return {"type": self.type, **({"rollingUpdate": given} if given and self.type == "RollingUpdate" else {})}


class ObjectOptions(TypedDict, total=False):
    """Options of an object that runs pods with GPUs.

    Attributes:
        annotations: Annotations of the main object.
        ignore_rules: Codes of rules, like ``R13``, that ``synth`` does not hold against the main object.
        labels: Additional labels of the main object, and of its pods unless an operator makes them.
        name: Name of the object. None: the construct id.
        namespace: A name, a ``GpuNamespace`` or a cdk8s-plus Namespace. None: the chart's namespace, else ``default``.
    """

    annotations: Mapping[str, str] | None
    ignore_rules: Sequence[str]
    labels: Mapping[str, str] | None
    name: str | None
    namespace: str | NamedObject | None


class WorkloadOptions(PodOptions, ObjectOptions, total=False):
    """Options of all workloads, which recipes pass on.

    Attributes:
        env: Variables of the container with the GPUs: text, an ``EnvValue`` of ours or one of cdk8s-plus. They win over
            those that a recipe sets.
        gpus: Whole GPUs, or slots of shared ones, for each pod; 1 by default. Written as a limit only, which Kubernetes
            copies to the request. A ``GpuRequest`` says more: which boards, how much memory.
        platform: ``Talos("1.12")`` or ``Kubernetes()``: decides runtime class and node selector. A profile has one of
            its own, so not both.
        profile: What the GPU workloads of the cluster have in common. None: one of ``platform`` alone.
        volumes: Mount paths, each with a ``Volume``, a ``VolumeClaim`` for a disk of its own, or a
            PersistentVolumeClaim, ConfigMap or Secret object.
    """

    env: Mapping[str, str | AnyEnvValue] | None
    gpus: Gpus
    platform: Platform
    profile: GpuProfile | None
    volumes: Mapping[str, Mountable] | None


class GpuWorkloadOptions(WorkloadOptions, total=False):
    """Options of ``GpuWorkload``.

    Attributes:
        args: Replaces the image's arguments.
        capabilities: Linux capabilities to keep; all others are dropped.
        command: Replaces the image's entrypoint.
        fs_group: Group that owns mounted volumes. None: where a user that is not root mounts a disk, a group of the
            user's number, since a new disk is writable for root alone.
        gpu_resource: Resource to ask for, where ``gpus`` is a number; ``nvidia.com/gpu.shared`` where sharing renames,
            or a MIG resource like ``nvidia.com/mig-1g.10gb``. None: ``nvidia.com/gpu``, or what the profile's sharing
            makes of it.
        host_users: False puts the pods into user namespaces of their own; it needs devices by CDI.
        image_pull_policy: ``IfNotPresent`` by default, since tags are pinned and images large.
        init_containers: Run to their end one after the other before the others start; they see no GPU.
        liveness_probe: Restarts the container when it fails.
        pod_annotations: Additional annotations of the pods.
        ports: Names and numbers, or numbers alone, which are then called ``tcp-<number>``. A Job gets no Service.
        read_only_root_filesystem: True lets the container write to its volumes only. False by default.
        readiness_probe: Decides whether the Service sends requests.
        run_as_user: User id; one above 0 states ``runAsNonRoot``. None leaves the image's own user.
        scheduling: Affinity, topology spread, another scheduler, gates. By default several replicas are spread over
            nodes as far as GPUs allow.
        service_account: Name or object; its token is mounted then, and never otherwise.
        shared_memory: Size of ``/dev/shm``, for data loaders and tensor parallelism; it counts against the memory
            limit. None leaves the runtime's 64 MiB. Refused where GPUs are shared by MPS, which has its own memory
            there.
        sidecars: Native ones (Kubernetes 1.29 and later), started after ``init_containers`` and running until the main
            container has ended, so that a Job ends too; they see no GPU.
        startup_probe: Time for loading a model; holds the other probes back. None: the liveness probe's question, asked
            for ten minutes (60 times every 10 s), else the model would be killed while it loads.
        termination_grace_period_seconds: Time to finish requests; by default 60 for what serves and 30 for what ends.
        visible_devices: ``managed``, the default, refuses ``NVIDIA_VISIBLE_DEVICES`` in ``env``; ``unmanaged`` lets it
            through, and with it the choice of GPUs, and says so in an annotation.
        working_dir: Directory the command starts in.
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
    """Return the name of the object: the one given, else the construct id."""
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
        own_labels: Labels that tell its pods from others.
        options: Options of its user.
        request: GPUs of a pod.
        more_annotations: Annotations that the object gets besides.

    Raises:
        GpuConstructsError: A label or annotation that Kubernetes does not take, or a label that tells these pods from
            others.
    """
    labels = options.get("labels") or {}
    fields.labels("labels", labels)
    for label in own_labels:
        refuse_if(label in labels, "labels", f"not hold {label!r}, which tells these pods from others")
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

    Raises:
        GpuConstructsError: A key that Kubernetes does not take, or a code that no rule has.
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
