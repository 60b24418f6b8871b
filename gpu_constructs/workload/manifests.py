"""The objects of a `GpuWorkload` as plain data, which functions such as ``add_env`` can change before the rendering."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from gpu_constructs.catalog.versions import KUBERNETES_RELEASES
from gpu_constructs.errors import GpuConstructsError, refuse_if
from gpu_constructs.kube import config_map, container_security, labels, pods, references
from gpu_constructs.kube import fields as checks
from gpu_constructs.kube.annotations import CONFIG_CHECKSUM
from gpu_constructs.kube.container import Container, PlainContainer, Probe, named_ports, service
from gpu_constructs.kube.env import EnvValue, environment
from gpu_constructs.kube.volume import Mounts
from gpu_constructs.records import dataclass, field, fields, replace
from gpu_constructs.workload.gpu_allocation import resource_claim_template
from gpu_constructs.workload.gpu_in_pod import GpuAllocation, VisibleDevices
from gpu_constructs.workload.gpu_profile import GpuProfile
from gpu_constructs.workload.options import GpuWorkloadOptions, Scheduling, metadata_of
from gpu_constructs.workload.run import Run

_FIRST_WITH_SIDECARS = "1.29"
_STARTUP_FAILURES = 60
_MANY_PODS = "use kind='StatefulSet' for one disk for each pod, or access_modes=['ReadWriteMany']"


def check_shared_memory(size: str, resources: Mapping[str, Any], *, way_out: str) -> None:
    """Raise an error unless a size of ``/dev/shm`` is a quantity below the memory limit of its container.

    Args:
        size: Size of ``/dev/shm``.
        resources: Requests and limits of the container.
        way_out: Advice at the end of the error message.
    """
    checks.size("shared_memory", size)
    limit = (resources.get("limits") or {}).get("memory")
    if limit is not None and checks.amount(size) >= checks.amount(str(limit)):
        raise GpuConstructsError(
            f"shared_memory must be less than the memory limit of {limit}, got {size!r}. {way_out}"
        )


@dataclass(kw_only=True)
class PlainWorkload:
    """The data from which a ``GpuWorkload`` renders its objects: its pods without the fields for GPUs, and settings.

    Attributes:
        run: Kind and settings of the object that runs the pods.
        metadata: Metadata of the object that runs the pods, the main object.
        selector: Labels that identify the pods.
        pod_annotations: Annotations of the pods.
        pod_spec: Spec of the pod without the fields for GPUs. Its first container gets the GPUs.
        mounts: Volumes of the pod.
        allocation: Kubernetes fields for the GPU request.
        visible_devices: ``managed`` rejects ``NVIDIA_VISIBLE_DEVICES`` in the container with the GPUs, and
            ``unmanaged`` allows it.
        ports: Port numbers by name.
    """

    run: Run
    metadata: Mapping[str, Any]
    selector: Mapping[str, str]
    pod_annotations: Mapping[str, str]
    pod_spec: dict[str, Any]
    mounts: Mounts
    allocation: GpuAllocation
    visible_devices: VisibleDevices
    ports: Mapping[str, int]
    _config_maps: list[object] = field(default_factory=list)
    _disks_given: set[str] = field(default_factory=set)
    _body: dict[str, Any] = field(default_factory=dict)

    def changed(self, change: Callable[..., None], *given: object) -> PlainWorkload:
        """Call a function with a copy of this workload, and return the changed copy. This workload stays the same.

        Args:
            change: Function that changes the copy, such as ``add_env``.
            given: Further arguments of the function.

        Raises:
            GpuConstructsError: The changed workload is not valid.
        """
        pod_spec = {**self.pod_spec, "containers": [{**self.holder}]}
        made = replace(self, pod_spec=pod_spec, mounts=self.mounts.copy(), _config_maps=[*self._config_maps])
        change(made, *given)
        made.render()
        return made

    @property
    def holder(self) -> dict[str, Any]:
        """The container that gets the GPUs, as a dict in the pod spec that the caller can change."""
        container: dict[str, Any] = self.pod_spec["containers"][0]
        return container

    @property
    def has_service(self) -> bool:
        """Whether the pods have a Service."""
        return self.run.has_service(self.ports)

    def note_config_maps(self, env: Mapping[str, object]) -> None:
        """Record the ConfigMap objects of the volumes and of ``env``, so that a change of their data restarts the pods.

        This applies only to pods that run until you delete them. Pods of a Job read the new data at their next start.
        """
        if not self.run.serves:
            return
        of_env = [value.of_object for value in env.values() if isinstance(value, EnvValue) and value.of_object]
        for one in (*self.mounts.objects, *of_env):
            kind = getattr(getattr(one, "api_object", one), "kind", None)
            if kind == "ConfigMap" and all(one is not other for other in self._config_maps):
                self._config_maps.append(one)

    def new_disks(self) -> dict[str, dict[str, Any]]:
        """Return the manifests of PersistentVolumeClaims that no earlier call returned, by construct ID.

        The result is empty for a StatefulSet, because its manifest contains the claims.
        """
        if self.run.kind == "StatefulSet":
            return {}
        claims = self.mounts.claim_manifests(self.metadata)
        new = {name: claim for name, claim in claims.items() if name not in self._disks_given}
        self._disks_given.update(new)
        return {f"disk-{claim['metadata']['name']}": claim for claim in new.values()}

    def render(self) -> None:
        """Compute the manifest of the main object again, after a change.

        Raises:
            GpuConstructsError: The options contradict each other.
        """
        name, annotations = self.metadata["name"], self.metadata["annotations"]
        if self.run.kind == "Pod":
            annotations = {**(annotations or {}), **self.pod_annotations} or None
        sources, templates = list(self.mounts.sources), []
        if self.run.kind == "StatefulSet":
            for volume, claim in self.mounts.claims.items():
                templates.append({"metadata": {"name": volume}, "spec": claim.spec()})
        else:
            sources += self.mounts.disks(name, pods_at_once=self.run.pods_at_once, way_out=_MANY_PODS)
        pod: Mapping[str, Any] = self.allocation.give(
            {**self.pod_spec, "securityContext": _security(self), "volumes": sources or None},
            claim_template=f"{name}-gpu",
            visible_devices=self.visible_devices,
        )
        if pod.get("initContainers"):
            pod = self.allocation.hide_from_others(pod)
        self._body = self.run.manifest(
            {**self.metadata, "annotations": annotations},
            pod,
            selector=self.selector,
            pod_annotations=self.pod_annotations,
            volume_claim_templates=templates,
        )

    def manifest(self, content_of: Callable[[object], object]) -> dict[str, Any]:
        """Return the manifest of the main object, with a checksum of the ConfigMaps that its pods read.

        Args:
            content_of: Function that returns the rendered manifest of a ConfigMap object.
        """
        if not self._config_maps:
            return self._body
        text = json.dumps([content_of(one) for one in self._config_maps], sort_keys=True)
        spec = self._body["spec"]
        metadata = spec["template"]["metadata"]
        annotations = {**(metadata["annotations"] or {}), CONFIG_CHECKSUM: config_map.sha256(text)}
        template = {**spec["template"], "metadata": {**metadata, "annotations": annotations}}
        return {**self._body, "spec": {**spec, "template": template}}


def attach_volume(workload: PlainWorkload, path: str, volume: object) -> None:
    """Mount a volume into the container with the GPUs."""
    workload.allocation.profile.check_memory_of_mps([path])
    there = workload.holder["volumeMounts"] or ()
    if any(mount["mountPath"] == path for mount in there):
        raise GpuConstructsError(f"volumes[{path!r}] already exists. Remove one of the two")
    workload.holder["volumeMounts"] = [
        *there,
        *workload.mounts.mounted({path: volume}),
    ]
    workload.note_config_maps({})


def add_env(workload: PlainWorkload, name: str, value: object) -> None:
    """Set an environment variable of the container with the GPUs."""
    there = workload.holder["env"] or []
    if any(variable["name"] == name for variable in there):
        raise GpuConstructsError(f"env[{name!r}] already exists. Remove one of the two")
    managed = workload.visible_devices == "managed"
    workload.holder["env"] = [*there, *environment({name: value}, visible_devices_is_managed=managed)]
    workload.note_config_maps({name: value})


def add_init_container(workload: PlainWorkload, container: Container) -> None:
    """Add an init container. It runs before the sidecars and before the main container."""
    if container.startup_probe or container.readiness_probe or container.liveness_probe:
        raise GpuConstructsError("container of init_containers must have no probes")
    _add(workload, container, {})


def add_sidecar(workload: PlainWorkload, container: Container) -> None:
    """Add a sidecar, which runs at the same time as the main container."""
    release = workload.allocation.profile.platform.kubernetes
    if KUBERNETES_RELEASES.index(release) < KUBERNETES_RELEASES.index(_FIRST_WITH_SIDECARS):
        raise GpuConstructsError(
            f"sidecars need Kubernetes {_FIRST_WITH_SIDECARS} or later, got {release}. In earlier releases, a "
            "sidecar prevents the end of a Job. Run it as a separate workload"
        )
    _add(workload, container, {"restartPolicy": "Always"})


def _add(workload: PlainWorkload, container: Container, more: Mapping[str, str]) -> None:
    before = workload.pod_spec.get("initContainers") or []
    for other in (workload.holder, *before):
        if other["name"] == container.name:
            raise GpuConstructsError(f"container.name {container.name!r} already exists. Choose another name")
    made = {**container.to_manifest(workload.mounts), **more}
    place = len(before) if more else sum("restartPolicy" not in other for other in before)
    workload.pod_spec["initContainers"] = [*before[:place], made, *before[place:]]
    workload.note_config_maps(container.env or {})


def beside(workload: PlainWorkload) -> dict[str, dict[str, Any]]:
    """Return the objects that a workload needs besides its main object, such as a Service, by construct ID.

    The result omits the PersistentVolumeClaims. The main object is the Deployment, StatefulSet, Job, CronJob or Pod.
    """
    name, metadata = workload.metadata["name"], {**workload.metadata, "annotations": None}
    bare = {"apiVersion": "v1", "metadata": metadata}
    made: dict[str, dict[str, Any]] = {}
    if workload.has_service:
        headless = workload.run.kind == "StatefulSet"
        made["service"] = service(metadata, selector=workload.selector, ports=workload.ports, headless=headless)
    if workload.run.kind == "Pod" and not workload.pod_spec["automountServiceAccountToken"]:
        made["service-account"] = {**bare, "kind": "ServiceAccount", "automountServiceAccountToken": False}
    if workload.run.has_budget:
        budget = {"maxUnavailable": 1, "selector": {"matchLabels": workload.selector}}
        made["disruption-budget"] = {
            **bare,
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "spec": budget,
        }
    if workload.allocation.claim is not None:
        made["gpu-claim"] = resource_claim_template({**metadata, "name": f"{name}-gpu"}, workload.allocation.claim)
    return made


def _security(workload: PlainWorkload) -> Mapping[str, Any]:
    """Return the security context of the pod, whose ``fsGroup`` lets a non-root user write to the disks of the pod."""
    given: Mapping[str, Any] = workload.pod_spec["securityContext"]
    if given.get("fsGroup") is not None or not given.get("runAsUser") or not workload.mounts.has_disk:
        return given
    return {**given, **container_security.pod_security(run_as_user=given["runAsUser"], fs_group=given["runAsUser"])}


def plain_workload(
    name: str, namespace: str, *, image: str, run: Run, allocation: GpuAllocation, options: GpuWorkloadOptions
) -> PlainWorkload:
    """Return the data from which a ``GpuWorkload`` renders its objects.

    Raises:
        GpuConstructsError: A value that is not allowed, or values that contradict each other.
    """
    check_options(options, allocation.profile)
    ports = named_ports(options.get("ports", ()))
    _check_name(name, run, has_service=run.has_service(ports))
    selector = labels.selector_labels(name=name, instance=name, component=run.kind.lower())
    mounts = Mounts()
    made = PlainWorkload(
        run=run,
        metadata=metadata_of(name, namespace, labels.object_labels(selector), options, allocation.request),
        selector=selector,
        pod_annotations=dict(options.get("pod_annotations") or {}),
        pod_spec=_pod_spec(name, container_of(name, {**options, "image": image}, mounts), run, selector, options),
        mounts=mounts,
        allocation=allocation,
        visible_devices=options.get("visible_devices", "managed"),
        ports=ports,
    )
    made.note_config_maps(options.get("env") or {})
    for container in options.get("init_containers", ()):
        add_init_container(made, container)
    for container in options.get("sidecars", ()):
        add_sidecar(made, container)
    made.render()
    return made


_CHECKS: checks.Checks = {
    "priority_class_name": checks.dns_subdomain,
    "fs_group": checks.natural,
    "termination_grace_period_seconds": checks.natural,
    "pod_annotations": lambda name, given: checks.annotation_keys(f"{name} key", given),
}


def check_options(options: Mapping[str, Any], profile: GpuProfile) -> None:
    """Check the priority class, group ID, grace period, annotations, shared memory and user namespace of a pod.

    Raises:
        GpuConstructsError: A value that is not allowed, or that the cluster does not support.
    """
    checks.options(options, _CHECKS)
    shared_memory = options.get("shared_memory")
    profile.check_memory_of_mps([*(options.get("volumes") or ()), *(["/dev/shm"] if shared_memory else ())])
    if options.get("host_users") is False and not profile.backend.is_dra and not profile.platform.supports_cdi:
        raise GpuConstructsError(
            f"host_users=False needs devices by CDI, which {profile.platform} does not have. Remove host_users"
        )


def _check_name(name: str, run: Run, *, has_service: bool) -> None:
    checks.dns_label("name", name)
    if len(name) > run.longest_name:
        raise GpuConstructsError(
            f"name of a {run.kind} must have at most {run.longest_name} characters, got {len(name)}"
        )
    refuse_if(
        has_service and name[0].isdigit(), "name", "start with a letter, because its Service has the same name", name
    )


def container_of(
    name: str, options: Mapping[str, Any], mounts: Mounts, *, shared_memory: str | None = None
) -> dict[str, Any]:
    """Return the manifest of the container that gets the GPUs.

    Args:
        name: Name of the container.
        options: Options of the user.
        mounts: Volumes of the pod. The function adds the volumes that the container mounts.
        shared_memory: Size of ``/dev/shm`` if the user sets none. None: the default of the container runtime.

    Raises:
        GpuConstructsError: A value that is not allowed, or values that contradict each other.
    """
    given = {key.name: options[key.name] for key in fields(PlainContainer) if key.name in options}
    startup = options.get("startup_probe") or _time_to_load(options.get("liveness_probe"))
    size = options.get("shared_memory")
    made = PlainContainer(**{**given, "name": name, "startup_probe": startup}).rendered(
        mounts,
        shared_memory=shared_memory if size is None else size,
        visible_devices_is_managed=options.get("visible_devices", "managed") == "managed",
    )
    if size is not None:
        check_shared_memory(size, made["resources"], way_out="Raise resources['limits']['memory']")
    return made


def pod_of(container: Mapping[str, Any], options: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return the ``spec`` of a pod.

    Args:
        container: Container that gets the GPUs.
        options: Options of the user.
        more: Further fields of the pod spec, as in the Kubernetes API.

    Raises:
        GpuConstructsError: A value that is not allowed.
    """
    account = options.get("service_account")
    return pods.pod_spec(
        [container],
        service_account=None if account is None else references.name_of("service_account", account, "ServiceAccount"),
        security_context=container_security.pod_security(
            run_as_user=options.get("run_as_user"), fs_group=options.get("fs_group")
        ),
        imagePullSecrets=pods.pull_secrets(options.get("image_pull_secrets", ())),
        priorityClassName=options.get("priority_class_name"),
        **more,
    )


def _time_to_load(liveness: Probe | None) -> Probe | None:
    if liveness is None:
        return None
    return replace(liveness, initial_delay_seconds=0, period_seconds=10, failure_threshold=_STARTUP_FAILURES)


def _pod_spec(
    name: str, holder: Mapping[str, Any], run: Run, selector: Mapping[str, str], options: GpuWorkloadOptions
) -> dict[str, Any]:
    grace = options.get("termination_grace_period_seconds")
    scheduling = options.get("scheduling") or Scheduling()
    spec = pod_of(
        holder,
        options,
        hostUsers=options.get("host_users"),
        restartPolicy=None if run.serves else "Never",
        terminationGracePeriodSeconds=(60 if run.serves else 30) if grace is None else grace,
        **scheduling.to_manifest(replicas=run.pods_at_once if run.serves else 1, selector=selector),
    )
    # A bare Pod gets its own ServiceAccount. Otherwise Kubernetes rejects the Pod while its Namespace is new.
    needs_account = run.kind == "Pod" and options.get("service_account") is None
    return {**spec, "serviceAccountName": name} if needs_account else spec
