"""What a workload emits, as plain data that may still grow."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from gpu_constructs.catalog.versions import KUBERNETES_RELEASES
from gpu_constructs.errors import GpuConstructsError, refuse_if
from gpu_constructs.kube import config_map, container_security, labels, pods, references
from gpu_constructs.kube import fields as checks
from gpu_constructs.kube.annotations import CONFIG_CHECKSUM
from gpu_constructs.kube.container import Container, PlainContainer, Probe, named_ports, service
from gpu_constructs.kube.env import EnvValue, environment
from gpu_constructs.kube.volume import Mounts
from gpu_constructs.workload.gpu_allocation import resource_claim_template
from gpu_constructs.workload.gpu_in_pod import GpuAllocation, VisibleDevices
from gpu_constructs.workload.gpu_profile import GpuProfile
from gpu_constructs.workload.options import GpuWorkloadOptions, Scheduling, metadata_of
from gpu_constructs.workload.run import Run

_FIRST_WITH_SIDECARS = "1.29"
_STARTUP_FAILURES = 60
_MANY_PODS = "use kind='StatefulSet' for a disk of each, or access_modes=['ReadWriteMany']"


def check_shared_memory(size: str, resources: Mapping[str, Any], *, way_out: str) -> None:
    """Raise unless a size of ``/dev/shm`` is a quantity below the memory limit of its container."""
    checks.size("shared_memory", size)
    limit = (resources.get("limits") or {}).get("memory")
    if limit is not None and checks.amount(size) >= checks.amount(str(limit)):
        raise GpuConstructsError(
            f"shared_memory must be less than the memory limit of {limit}, against which it counts; got {size!r}; "
            f"{way_out}"
        )


@dataclass(kw_only=True)
class PlainWorkload:
    """A workload before its GPUs are given to it, and the objects that come of it.

    Attributes:
        pod_spec: The pod, without anything that its GPUs need; its first container holds them.
        metadata: Metadata of the main object.
        selector: Labels that tell its pods from others.
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
        """Return the workload after a change; one that is refused leaves this workload as it is."""
        pod_spec = {**self.pod_spec, "containers": [{**self.holder}]}
        made = replace(self, pod_spec=pod_spec, mounts=self.mounts.copy(), _config_maps=[*self._config_maps])
        change(made, *given)
        made.render()
        return made

    @property
    def holder(self) -> dict[str, Any]:
        """The container that holds the GPUs."""
        container: dict[str, Any] = self.pod_spec["containers"][0]
        return container

    @property
    def has_service(self) -> bool:
        """Whether a Service is in front of the pods."""
        return self.run.has_service(self.ports)

    def note_config_maps(self, env: Mapping[str, object]) -> None:
        """Remember ConfigMaps that were handed over as objects; pods that end read the new one at their next start."""
        if not self.run.serves:
            return
        of_env = [value.of_object for value in env.values() if isinstance(value, EnvValue) and value.of_object]
        for one in (*self.mounts.objects, *of_env):
            kind = getattr(getattr(one, "api_object", one), "kind", None)
            if kind == "ConfigMap" and all(one is not other for other in self._config_maps):
                self._config_maps.append(one)

    def new_disks(self) -> dict[str, dict[str, Any]]:
        """Return the PersistentVolumeClaims that were not returned yet; a StatefulSet holds them in itself."""
        if self.run.kind == "StatefulSet":
            return {}
        claims = self.mounts.claim_manifests(self.metadata)
        new = {name: claim for name, claim in claims.items() if name not in self._disks_given}
        self._disks_given.update(new)
        return {f"disk-{claim['metadata']['name']}": claim for claim in new.values()}

    def render(self) -> None:
        """Compute the main object anew.

        Raises:
            GpuConstructsError: What was given contradicts itself.
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
        """Return the main object, with the checksum of the ConfigMaps that its pods read.

        Args:
            content_of: Function that returns what a ConfigMap object is emitted as.
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
    """Mount something more where the GPUs are."""
    workload.allocation.profile.check_memory_of_mps([path])
    there = workload.holder["volumeMounts"] or ()
    if any(mount["mountPath"] == path for mount in there):
        raise GpuConstructsError(f"volumes[{path!r}] is given already; leave one of the two out")
    workload.holder["volumeMounts"] = [
        *there,
        *workload.mounts.mounted({path: volume}),
    ]
    workload.note_config_maps({})


def add_env(workload: PlainWorkload, name: str, value: object) -> None:
    """Set one more variable where the GPUs are."""
    there = workload.holder["env"] or []
    if any(variable["name"] == name for variable in there):
        raise GpuConstructsError(f"env[{name!r}] is set already; leave one of the two out")
    managed = workload.visible_devices == "managed"
    workload.holder["env"] = [*there, *environment({name: value}, visible_devices_is_managed=managed)]
    workload.note_config_maps({name: value})


def add_init_container(workload: PlainWorkload, container: Container) -> None:
    """Run a container before the others, and before the sidecars."""
    if container.startup_probe or container.readiness_probe or container.liveness_probe:
        raise GpuConstructsError("container of init_containers must have no probes: it only runs to its end")
    _add(workload, container, {})


def add_sidecar(workload: PlainWorkload, container: Container) -> None:
    """Run a container beside the main one."""
    release = workload.allocation.profile.platform.kubernetes
    if KUBERNETES_RELEASES.index(release) < KUBERNETES_RELEASES.index(_FIRST_WITH_SIDECARS):
        raise GpuConstructsError(
            f"sidecars need Kubernetes {_FIRST_WITH_SIDECARS} or later, got {release}; before, such a container "
            "keeps a Job from ending: run it as a workload of its own"
        )
    _add(workload, container, {"restartPolicy": "Always"})


def _add(workload: PlainWorkload, container: Container, more: Mapping[str, str]) -> None:
    before = workload.pod_spec.get("initContainers") or []
    for other in (workload.holder, *before):
        if other["name"] == container.name:
            raise GpuConstructsError(f"container.name {container.name!r} is taken already; choose another")
    made = {**container.to_manifest(workload.mounts), **more}
    place = len(before) if more else sum("restartPolicy" not in other for other in before)
    workload.pod_spec["initContainers"] = [*before[:place], made, *before[place:]]
    workload.note_config_maps(container.env or {})


def beside(workload: PlainWorkload) -> dict[str, dict[str, Any]]:
    """Return the objects beside the main one and the disks, by child id."""
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
    """Return the pod's security context, with a group that may write to a disk of a user that is not root."""
    given: Mapping[str, Any] = workload.pod_spec["securityContext"]
    if given.get("fsGroup") is not None or not given.get("runAsUser") or not workload.mounts.has_disk:
        return given
    return {**given, **container_security.pod_security(run_as_user=given["runAsUser"], fs_group=given["runAsUser"])}


def plain_workload(
    name: str, namespace: str, *, image: str, run: Run, allocation: GpuAllocation, options: GpuWorkloadOptions
) -> PlainWorkload:
    """Return a workload as its options describe it.

    Raises:
        GpuConstructsError: A value is not allowed, or does not fit the others.
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
    """Check the options of a pod that no other part of it checks.

    Raises:
        GpuConstructsError: A value is not allowed, or does not fit the cluster.
    """
    checks.options(options, _CHECKS)
    shared_memory = options.get("shared_memory")
    profile.check_memory_of_mps([*(options.get("volumes") or ()), *(["/dev/shm"] if shared_memory else ())])
    if options.get("host_users") is False and not profile.backend.is_dra and not profile.platform.supports_cdi:
        raise GpuConstructsError(
            f"host_users=False needs devices by CDI, which {profile.platform} does not have; leave it out"
        )


def _check_name(name: str, run: Run, *, has_service: bool) -> None:
    checks.dns_label("name", name)
    if len(name) > run.longest_name:
        raise GpuConstructsError(
            f"name of a {run.kind} must have at most {run.longest_name} characters; got {len(name)}"
        )
    refuse_if(has_service and name[0].isdigit(), "name", "start with a letter where a Service bears it", name)


def container_of(
    name: str, options: Mapping[str, Any], mounts: Mounts, *, shared_memory: str | None = None
) -> dict[str, Any]:
    """Return the container that holds the GPUs.

    Args:
        name: Name of the container.
        options: Options of its user.
        mounts: Volumes of the pod, to which those of the container are added.
        shared_memory: Size of ``/dev/shm`` if the user sets none.

    Raises:
        GpuConstructsError: A value is not allowed, or does not fit the others.
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
        check_shared_memory(size, made["resources"], way_out="raise resources['limits']['memory']")
    return made


def pod_of(container: Mapping[str, Any], options: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return the spec of a pod.

    Args:
        container: The container that holds the GPUs.
        options: Options of its user.
        more: Further fields of the spec, in the form of Kubernetes.

    Raises:
        GpuConstructsError: A value is not allowed.
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
    # A Pod without an account of its own is refused while its Namespace is still new.
    needs_account = run.kind == "Pod" and options.get("service_account") is None
    return {**spec, "serviceAccountName": name} if needs_account else spec
