"""A workload that uses GPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from cdk8s import ApiObject
from constructs import Construct

from gpu_constructs import _fields, _references
from gpu_constructs._construct import GpuObject, at_own_path, checked
from gpu_constructs._container_security import POD
from gpu_constructs._labels import object_labels, selector_labels
from gpu_constructs._manifest import Manifest
from gpu_constructs._references import NamedObject
from gpu_constructs._resources import Resources, container_resources
from gpu_constructs.annotations import IGNORE_RULES, VISIBLE_DEVICES_CHOICE
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.namespace import namespace_in
from gpu_constructs.placement import Toleration
from gpu_constructs.platforms import DEFAULT_PLATFORM, Platform
from gpu_constructs.workload.container import Container, ImagePullPolicy, container_manifest
from gpu_constructs.workload.controller import Controller, Kind
from gpu_constructs.workload.env import AnyEnvValue, environment
from gpu_constructs.workload.gpu_allocation import GpuAllocation, VisibleDevices, allocation
from gpu_constructs.workload.gpu_profile import GpuProfile, profile_of
from gpu_constructs.workload.gpu_request import GpuRequest
from gpu_constructs.workload.plain_workload import PlainWorkload
from gpu_constructs.workload.probe import Probe
from gpu_constructs.workload.resource_claim import resource_claim_template
from gpu_constructs.workload.scheduling import Scheduling
from gpu_constructs.workload.service import named_ports, service, url
from gpu_constructs.workload.strategy import Strategy
from gpu_constructs.workload.volume import Mountable, Mounts

if TYPE_CHECKING:
    Gpus = int | GpuRequest
else:
    # Left to GpuRequest, which says more of a number that is no whole one than its type.
    Gpus = object

_RESOURCES: Resources = {"requests": {"cpu": "1", "memory": "4Gi"}, "limits": {"memory": "16Gi"}}
_STARTUP_FAILURES = 60


class GpuWorkload(GpuObject):
    """Pods of which one container holds GPUs.

    Emits the object named by ``kind``, and with it:

    - a Service where ports are given; for a Job or CronJob none, for a StatefulSet always a headless one;
    - a PodDisruptionBudget (``maxUnavailable: 1``) for two replicas or more;
    - a PersistentVolumeClaim for each ``VolumeClaim``, which a StatefulSet holds in itself;
    - a ResourceClaimTemplate where the profile's backend is ``Backend.dra_claims()``;
    - for a bare Pod a ServiceAccount, without which a Pod is refused while its Namespace is still new.

    The pods carry the GPU limit, the runtime class and node selector of the platform, a toleration of the
    GPU taint, and ``NVIDIA_VISIBLE_DEVICES`` never: in a pod it would override the GPU that was allocated. All other
    containers get ``NVIDIA_VISIBLE_DEVICES=void``, since in the runtime of NVIDIA an image with CUDA asks for every
    GPU of the node by itself.

    A changed ConfigMap that was handed over as an object restarts the pods of a Deployment or StatefulSet.

    Attributes:
        name: Name of the object and its Service.
        namespace: Name of its namespace.
        kind: As given.
        gpus: How many GPUs a pod holds.
        request: What it wants of GPUs.
        match_labels: What tells its pods from others: for selectors of a Service or a NetworkPolicy.
        api_object: The Deployment, StatefulSet, Job, CronJob or Pod.

    Source:
        Kubernetes documentation, "Schedule GPUs"; NVIDIA/k8s-device-plugin@v0.20.0:README.md
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        image: str,
        kind: Kind = "Deployment",
        gpus: Gpus = 1,
        gpu_resource: str | None = None,
        profile: GpuProfile | None = None,
        name: str | None = None,
        namespace: str | NamedObject | None = None,
        platform: Platform = DEFAULT_PLATFORM,
        runtime_class: str | NamedObject | None = None,
        tolerations: Sequence[Toleration] = (),
        node_selector: Mapping[str, str] | None = None,
        scheduling: Scheduling | None = None,
        command: Sequence[str] = (),
        args: Sequence[str] = (),
        working_dir: str | None = None,
        env: Mapping[str, str | AnyEnvValue] | None = None,
        visible_devices: VisibleDevices = "managed",
        ports: Sequence[int] | Mapping[str, int] = (),
        volumes: Mapping[str, Mountable] | None = None,
        shared_memory: str | None = None,
        init_containers: Sequence[Container] = (),
        sidecars: Sequence[Container] = (),
        startup_probe: Probe | None = None,
        readiness_probe: Probe | None = None,
        liveness_probe: Probe | None = None,
        resources: Resources | None = None,
        replicas: int = 1,
        strategy: Strategy | None = None,
        pod_management_policy: Literal["OrderedReady", "Parallel"] | None = None,
        pod_disruption_budget: bool | None = None,
        completions: int = 1,
        completion_mode: Literal["Indexed", "NonIndexed"] | None = None,
        parallelism: int | None = None,
        backoff_limit: int = 2,
        pod_failure_policy: Mapping[str, Any] | None = None,
        active_deadline_seconds: int | None = None,
        ttl_seconds_after_finished: int | None = None,
        suspend: bool = False,
        schedule: str | None = None,
        time_zone: str | None = None,
        concurrency_policy: Literal["Allow", "Forbid", "Replace"] = "Forbid",
        run_as_user: int | None = None,
        fs_group: int | None = None,
        capabilities: Sequence[str] = (),
        read_only_root_filesystem: bool = False,
        host_users: bool | None = None,
        service_account: str | NamedObject | None = None,
        image_pull_policy: ImagePullPolicy = "IfNotPresent",
        image_pull_secrets: Sequence[str | NamedObject] = (),
        priority_class_name: str | None = None,
        termination_grace_period_seconds: int | None = None,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        pod_annotations: Mapping[str, str] | None = None,
        ignore_rules: Sequence[str] = (),
    ) -> None:
        """Make the workload.

        Args:
            scope: A chart, or a construct in one.
            id: Construct id, and the name unless ``name`` says otherwise.
            image: ``repository:tag`` or digest; never ``latest``.
            kind: ``Deployment``, ``StatefulSet``, ``Job``, ``CronJob`` or ``Pod``.
            gpus: Whole GPUs, or slots of shared ones, for each pod; written as a limit only, which
                Kubernetes copies to the request. A ``GpuRequest`` says more: which boards, how much memory.
            gpu_resource: What is asked for, where ``gpus`` is a number; ``nvidia.com/gpu.shared`` where sharing
                renames, or a MIG resource like ``nvidia.com/mig-1g.10gb``. None: ``nvidia.com/gpu``, or what the
                profile's sharing makes of it.
            profile: What the GPU workloads of the cluster have in common. None: one of ``platform`` alone.
            name: Name of the object.
            namespace: A name, a ``GpuNamespace`` or a cdk8s-plus Namespace. None: the chart's namespace,
                else ``default``.
            platform: ``Talos("1.12")`` or ``Kubernetes()``: decides runtime class and node selector. A
                profile has one of its own, so not both.
            runtime_class: Name or object. None: the profile or platform decides.
            tolerations: Taints of the GPU nodes, on top of ``nvidia.com/gpu`` and the profile's.
            node_selector: Node labels, on top of the platform's and the profile's.
            scheduling: Affinity, topology spread, another scheduler, gates. By default several replicas are spread
                over nodes as far as GPUs allow.
            command: Replaces the image's entrypoint.
            args: Replaces the image's arguments.
            working_dir: Directory the command starts in.
            env: Variables: text, an ``EnvValue`` of ours or one of cdk8s-plus.
            visible_devices: ``managed`` refuses ``NVIDIA_VISIBLE_DEVICES`` in ``env``; ``unmanaged`` lets
                it through, and with it the choice of GPUs, and says so in an annotation.
            ports: Names and numbers, or numbers alone, which are then called ``tcp-<number>``. A Job gets no
                Service.
            volumes: Mount paths, each with a ``Volume``, a ``VolumeClaim`` for a disk of its own, or a
                PersistentVolumeClaim, ConfigMap or Secret object.
            shared_memory: Size of ``/dev/shm``, for data loaders and tensor parallelism; it counts against
                the memory limit. None leaves the runtime's 64 MiB. Refused where GPUs are shared by MPS, which has
                its own memory there.
            init_containers: Run to their end one after the other before the others start; they see no GPU.
            sidecars: Native ones (Kubernetes 1.29 and later), started after ``init_containers`` and running until
                the main container has ended, so that a Job ends too; they see no GPU.
            startup_probe: Time for loading a model; holds the other probes back. None: the liveness probe's
                question, asked for ten minutes (60 times every 10 s), else the model would be killed while it loads.
            readiness_probe: Decides whether the Service sends requests.
            liveness_probe: Restarts the container when it fails.
            resources: CPU and memory; what is given replaces the default as a whole, which is requests of 1
                CPU and 4Gi and a memory limit of 16Gi. No CPU limit: throttling starves the GPU.
            replicas: Pods of a Deployment or StatefulSet. 1 by default, where cdk8s-plus has 2: each holds
                its own GPUs.
            strategy: How pods are replaced. None: ``Recreate`` for one replica, else one after the other without
                surge; a surge waits for a GPU that may never be free.
            pod_management_policy: Of a StatefulSet: ``Parallel`` starts all pods at once, as training over nodes
                needs it.
            pod_disruption_budget: Whether only one pod may be missing when nodes are drained. None: for two replicas
                or more; of one replica it would block every drain, so True is refused there.
            completions: Pods that must succeed, of a Job; more than one are numbered
                (``JOB_COMPLETION_INDEX``).
            completion_mode: ``Indexed`` or ``NonIndexed``. None: indexed for more than one.
            parallelism: Pods of a Job at once; all of them by default.
            backoff_limit: Retries of a Job's pods; 2 where Kubernetes has 6, since each holds a GPU again.
            pod_failure_policy: Of a Job, as Kubernetes writes it: which failures count, and which end it at once.
            active_deadline_seconds: When a Job is stopped at the latest. None: never.
            ttl_seconds_after_finished: When a finished Job is deleted. None: never, since GitOps tools
                would start a deleted one again.
            suspend: Whether a Job or CronJob starts nothing until somebody sets it to false, as Kueue does.
            schedule: Of a CronJob, in cron's five fields or as ``@daily`` and its like.
            time_zone: Of the schedule, like ``Europe/Berlin``. None: that of the cluster's control plane.
            concurrency_policy: Of a CronJob. ``Forbid`` by default: two of its Jobs at once would both want the GPU.
            run_as_user: User id; one above 0 states ``runAsNonRoot``. None leaves the image's own user.
            fs_group: Group that owns mounted volumes. None: where a user that is not root mounts a disk, a group of
                the user's number, since a new disk is writable for root alone.
            capabilities: Linux capabilities to keep; all others are dropped.
            read_only_root_filesystem: True lets the container write to its volumes only.
            host_users: False puts the pods into user namespaces of their own; it needs devices by CDI.
            service_account: Name or object; its token is mounted then, and never otherwise.
            image_pull_policy: ``IfNotPresent`` by default, since tags are pinned and images large.
            image_pull_secrets: Names or objects.
            priority_class_name: Name of a PriorityClass.
            termination_grace_period_seconds: Time to finish requests; by default 60 for what serves and 30
                for what ends.
            labels: Further labels of object and pods.
            annotations: Of the object.
            pod_annotations: Of the pods.
            ignore_rules: Codes of rules, like ``R13``, that ``synth`` does not hold against this object.

        Raises:
            GpuConstructsError: A value above is not allowed, or does not fit the kind.
        """
        profile = profile_of(profile, platform, tolerations, node_selector, runtime_class)
        allocated = _allocation(gpus, gpu_resource, profile)
        runs = Controller(
            kind=kind,
            replicas=replicas,
            strategy=strategy,
            pod_management_policy=pod_management_policy,
            completions=completions,
            completion_mode=completion_mode,
            parallelism=parallelism,
            backoff_limit=backoff_limit,
            pod_failure_policy=pod_failure_policy,
            active_deadline_seconds=active_deadline_seconds,
            ttl_seconds_after_finished=ttl_seconds_after_finished,
            suspend=suspend,
            schedule=schedule,
            time_zone=time_zone,
            concurrency_policy=concurrency_policy,
        )
        name = id if name is None else name
        port_numbers = named_ports(ports)
        has_service = runs.has_service(port_numbers)
        _fields.dns_label("name", name)
        if len(name) > runs.longest_name:
            raise GpuConstructsError(
                f"name of a {kind} must have at most {runs.longest_name} characters; got {len(name)}"
            )
        if has_service and name[0].isdigit():
            raise GpuConstructsError(f"name must start with a letter where a Service bears it; got {name!r}")
        if priority_class_name is not None:
            _fields.dns_subdomain("priority_class_name", priority_class_name)
        for field, value in (
            ("fs_group", fs_group),
            ("termination_grace_period_seconds", termination_grace_period_seconds),
        ):
            if value is not None:
                _fields.whole_number(field, value, minimum=0)
        selector = selector_labels(name=name, instance=name, component=kind.lower())
        own_labels = object_labels(selector)
        _fields.labels("labels", labels or {})
        for label in own_labels:
            if label in (labels or {}):
                raise GpuConstructsError(f"labels must not hold {label!r}, which tells these pods from others")
        self_says = _annotations(visible_devices, allocated.request, ignore_rules)
        for field, given in (("annotations", annotations), ("pod_annotations", pod_annotations)):
            _fields.labels(f"{field} key", dict.fromkeys(given or {}, ""))
        amounts = container_resources(resources, default=_RESOURCES, has_gpus=True)
        if shared_memory is not None:
            _check_shared_memory(shared_memory, amounts, profile)
        _check_memory_of_mps(profile, *(volumes or {}))
        has_budget = runs.has_budget(pod_disruption_budget)
        if host_users is False and not profile.backend.is_dra and not profile.platform.supports_cdi:
            raise GpuConstructsError(
                f"host_users=False needs devices by CDI, which {profile.platform} does not have; leave it out"
            )
        mounts = Mounts()
        account = None
        if service_account is not None:
            account = _references.name_of("service_account", service_account, "ServiceAccount")
        secrets = [
            {"name": _references.name_of(f"image_pull_secrets[{i}]", secret, "Secret")}
            for i, secret in enumerate(image_pull_secrets)
        ]
        where = namespace_in(scope, namespace)
        allocated.check_claim_namespace(where)
        makes_account = kind == "Pod" and account is None
        grace = termination_grace_period_seconds
        holder = container_manifest(
            name=name,
            image=image,
            command=command,
            args=args,
            working_dir=working_dir,
            env=environment(env or {}, visible_devices_is_managed=visible_devices == "managed"),
            ports=port_numbers,
            probes={
                "startup_probe": startup_probe or _time_to_load(liveness_probe),
                "readiness_probe": readiness_probe,
                "liveness_probe": liveness_probe,
            },
            resources=amounts,
            mounted=mounts.mounted(volumes or {}, shared_memory=shared_memory),
            run_as_user=run_as_user,
            capabilities=capabilities,
            read_only_root_filesystem=read_only_root_filesystem,
            image_pull_policy=image_pull_policy,
        )
        pod_spec = {
            "automountServiceAccountToken": account is not None,
            "containers": [holder],
            "enableServiceLinks": False,
            "hostUsers": host_users,
            "imagePullSecrets": secrets or None,
            "priorityClassName": priority_class_name,
            "restartPolicy": None if runs.serves else "Never",
            "securityContext": {
                **POD,
                "runAsNonRoot": True if run_as_user else None,
                "runAsUser": run_as_user,
                "fsGroup": fs_group,
                # Else the kubelet walks through a disk full of models at every start.
                "fsGroupChangePolicy": None if fs_group is None else "OnRootMismatch",
            },
            "serviceAccountName": name if makes_account else account,
            "terminationGracePeriodSeconds": (60 if runs.serves else 30) if grace is None else grace,
            **(scheduling or _SCHEDULING).to_manifest(replicas=runs.replicas if runs.serves else 1, selector=selector),
        }
        made = PlainWorkload(
            controller=runs,
            metadata={
                "name": name,
                "namespace": where,
                "labels": {**(labels or {}), **own_labels},
                "annotations": {**(annotations or {}), **self_says} or None,
            },
            selector=selector,
            pod_annotations=dict(pod_annotations or {}),
            pod_spec=pod_spec,
            mounts=mounts,
            allocation=allocated,
            visible_devices=visible_devices,
            env=env or {},
        )
        for container in init_containers:
            made.add_init_container(container)
        for container in sidecars:
            made.add_sidecar(container)
        made.render()
        super().__init__(scope, id)
        self.name = name
        self.namespace = made.metadata["namespace"]
        self.kind = kind
        self.request = allocated.request
        self.provides = profile.assumes
        self.gpus = allocated.request.count
        self.match_labels = selector
        self._made = made

        bare: dict[str, Any] = {"apiVersion": "v1", "metadata": {**made.metadata, "annotations": None}}
        self._service = None
        self._url = url(name, where, port_numbers) if has_service else None
        if has_service:
            headless = kind == "StatefulSet"
            self._service = Manifest(
                self,
                "service",
                service(bare["metadata"], selector=selector, ports=port_numbers, headless=headless),
            )
        if makes_account:
            Manifest(self, "service-account", {**bare, "kind": "ServiceAccount", "automountServiceAccountToken": False})
        if has_budget:
            budget = {"maxUnavailable": 1, "selector": {"matchLabels": selector}}
            Manifest(
                self,
                "disruption-budget",
                {**bare, "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": budget},
            )
        if allocated.claim is not None:
            metadata = {**bare["metadata"], "name": made.claim_template}
            Manifest(self, "gpu-claim", resource_claim_template(metadata, allocated.claim))
        self._make_disks()
        Manifest(self, "Default", lambda: made.manifest(_content_of))

    @property
    def service(self) -> ApiObject | None:
        """The Service in front of the pods; None where there is none."""
        return self._service

    @property
    def url(self) -> str | None:
        """The URL that other pods of the cluster reach the pods at.

        None where there is no Service, or none of its ports is named ``http`` or ``https``.
        """
        return self._url

    @at_own_path
    def attach_volume(self, path: str, volume: Mountable) -> None:
        """Mount something more into the container that holds the GPUs.

        Args:
            path: Absolute path of the mount.
            volume: As in ``volumes``.

        Raises:
            GpuConstructsError: Something is mounted there already, or cannot be mounted.
        """
        _check_memory_of_mps(self._made.allocation.profile, path)
        with self._made.all_or_nothing():
            self._made.attach_volume(path, volume)
        self._make_disks()

    @at_own_path
    def add_env(self, name: str, value: str | AnyEnvValue) -> None:
        """Set one more variable of the container that holds the GPUs.

        Args:
            name: Name of the variable.
            value: Text or an ``EnvValue``.

        Raises:
            GpuConstructsError: The variable is set already, or ``value`` is neither.
        """
        with self._made.all_or_nothing():
            self._made.add_env(name, value)
        self._make_disks()

    @at_own_path
    def add_init_container(self, container: Container) -> None:
        """Run one more container to its end before the others start.

        Args:
            container: It sees no GPU.

        Raises:
            GpuConstructsError: The name is taken, or a value of the container is not allowed.
        """
        with self._made.all_or_nothing():
            self._made.add_init_container(container)
        self._make_disks()

    @at_own_path
    def add_sidecar(self, container: Container) -> None:
        """Run one more container beside the main one, until that has ended.

        Args:
            container: It sees no GPU.

        Raises:
            GpuConstructsError: The name is taken, or the platform's Kubernetes has no native sidecars.
        """
        with self._made.all_or_nothing():
            self._made.add_sidecar(container)
        self._make_disks()

    def _make_disks(self) -> None:
        for disk in self._made.new_disks():
            Manifest(self, f"disk-{disk['metadata']['name']}", disk)


_SCHEDULING = Scheduling()


def _allocation(gpus: Gpus, resource: str | None, profile: GpuProfile) -> GpuAllocation:
    if isinstance(gpus, GpuRequest):
        if resource is not None:
            raise GpuConstructsError(
                "gpu_resource and a GpuRequest must not both be given; pass GpuRequest(resource=...)"
            )
        return allocation(gpus, profile)
    try:
        # A bool is an int to a cache.
        is_int = type(gpus) is int
        request = _request_of(gpus, resource) if is_int else GpuRequest(count=gpus, resource=resource)
        return allocation(request, profile)
    except GpuConstructsError as error:
        problem = error.problem.replace("request.count", "gpus").replace("request.resource", "gpu_resource")
        raise GpuConstructsError(problem.replace("leave resource out", "leave gpu_resource out")) from None


@lru_cache(maxsize=256)
def _request_of(count: int, resource: str | None) -> GpuRequest:
    return GpuRequest(count=count, resource=resource)


def _content_of(config_map: object) -> object:
    return ApiObject.of(config_map).to_json()  # type: ignore[arg-type]


def _annotations(visible_devices: VisibleDevices, request: GpuRequest, ignore_rules: Sequence[str]) -> dict[str, str]:
    said = {VISIBLE_DEVICES_CHOICE: "unmanaged"} if visible_devices == "unmanaged" else {}
    said |= request.annotations
    if ignore_rules:
        from gpu_constructs.rules.table import require_codes

        require_codes("ignore_rules", ignore_rules)
        said[IGNORE_RULES] = ",".join(ignore_rules)
    return said


def _check_memory_of_mps(profile: GpuProfile, *paths: str) -> None:
    if profile.sharing is not None and profile.sharing.strategy == "mps" and "/dev/shm" in paths:
        raise GpuConstructsError(
            "/dev/shm must not be mounted (shared_memory, volumes) where GPUs are shared by MPS: there the device "
            "plugin mounts the memory through which the pod reaches the MPS server; leave it out"
        )


def _check_shared_memory(size: str, resources: Mapping[str, Any], profile: GpuProfile) -> None:
    _fields.size("shared_memory", size)
    _check_memory_of_mps(profile, "/dev/shm")
    limit = (resources.get("limits") or {}).get("memory")
    if limit is not None and _fields.amount(size) >= _fields.amount(limit):
        raise GpuConstructsError(
            f"shared_memory must be less than the memory limit of {limit}, against which it counts; got {size!r}; "
            "raise resources['limits']['memory']"
        )


def _time_to_load(liveness: Probe | None) -> Probe | None:
    if liveness is None:
        return None
    return replace(liveness, initial_delay_seconds=0, period_seconds=10, failure_threshold=_STARTUP_FAILURES)
