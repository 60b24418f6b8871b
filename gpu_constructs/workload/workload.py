"""A workload that uses GPUs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from cdk8s import Chart
from constructs import Construct

from gpu_constructs import _fields, _references, placement
from gpu_constructs._construct import GpuObject, checked
from gpu_constructs._container_security import POD, container_security
from gpu_constructs._labels import object_labels, selector_labels
from gpu_constructs._manifest import Manifest
from gpu_constructs._resources import Resources, container_resources
from gpu_constructs.cluster_checks import VISIBLE_DEVICES_ANNOTATION
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.namespace import namespace_name
from gpu_constructs.placement import Toleration
from gpu_constructs.platforms import DEFAULT_PLATFORM, Platform
from gpu_constructs.runtime_class import runtime_class_name
from gpu_constructs.workload.controller import Controller, Kind
from gpu_constructs.workload.env import environment
from gpu_constructs.workload.probe import Probe
from gpu_constructs.workload.service import named_ports, service
from gpu_constructs.workload.volume import mounts

_RESOURCES: Resources = {"requests": {"cpu": "1", "memory": "4Gi"}, "limits": {"memory": "16Gi"}}
_GPU_RESOURCE = re.compile(r"nvidia\.com/(gpu|gpu\.shared|mig-[a-z0-9]([-a-z0-9.]*[a-z0-9])?)\Z")


class GpuWorkload(GpuObject):
    """Pods of one container that holds GPUs.

    Emits the object named by ``kind``, and before it a Service where ports are given (for a Job or CronJob
    none; for a StatefulSet always a headless one), and for a bare Pod a ServiceAccount, without which a Pod
    is refused while its Namespace is still new.

    The pods carry the GPU limit, the runtime class and node selector of the platform, a toleration of the
    GPU taint, and ``NVIDIA_VISIBLE_DEVICES`` never: in a pod it would override the GPU that was allocated.

    Attributes:
        name: Name of the object and its Service.
        gpus: How many GPUs a pod holds.
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
        gpus: int = 1,
        gpu_resource: str = "nvidia.com/gpu",
        name: str | None = None,
        namespace: object = None,
        platform: Platform = DEFAULT_PLATFORM,
        runtime_class: object = None,
        tolerations: Sequence[Toleration] = (),
        node_selector: Mapping[str, str] | None = None,
        command: Sequence[str] = (),
        args: Sequence[str] = (),
        working_dir: str | None = None,
        env: Mapping[str, object] | None = None,
        visible_devices: Literal["managed", "unmanaged"] = "managed",
        ports: Sequence[int] | Mapping[str, int] = (),
        volumes: Mapping[str, object] | None = None,
        shared_memory: str | None = None,
        startup_probe: Probe | None = None,
        readiness_probe: Probe | None = None,
        liveness_probe: Probe | None = None,
        resources: Resources | None = None,
        replicas: int = 1,
        completions: int = 1,
        parallelism: int | None = None,
        backoff_limit: int = 2,
        active_deadline_seconds: int | None = None,
        ttl_seconds_after_finished: int | None = None,
        schedule: str | None = None,
        run_as_user: int | None = None,
        fs_group: int | None = None,
        capabilities: Sequence[str] = (),
        read_only_root_filesystem: bool = False,
        service_account: object = None,
        image_pull_secrets: Sequence[object] = (),
        priority_class_name: str | None = None,
        termination_grace_period_seconds: int | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """Make the workload.

        Args:
            scope: A chart, or a construct in one.
            id: Construct id, and the name unless ``name`` says otherwise.
            image: ``repository:tag`` or digest; never ``latest``.
            kind: ``Deployment``, ``StatefulSet``, ``Job``, ``CronJob`` or ``Pod``.
            gpus: Whole GPUs, or slots of shared ones, for each pod; written as a limit only, which
                Kubernetes copies to the request.
            gpu_resource: What is asked for; ``nvidia.com/gpu.shared`` where sharing renames, or a MIG
                resource like ``nvidia.com/mig-1g.10gb``.
            name: Name of the object.
            namespace: A name, a ``GpuNamespace`` or a cdk8s-plus Namespace. None: the chart's namespace,
                else ``default``.
            platform: ``Talos("1.12")`` or ``Kubernetes()``: decides runtime class and node selector.
            runtime_class: Name or object. None: the platform decides.
            tolerations: Taints of the GPU nodes, on top of ``nvidia.com/gpu``.
            node_selector: Node labels, on top of the platform's.
            command: Replaces the image's entrypoint.
            args: Replaces the image's arguments.
            working_dir: Directory the command starts in.
            env: Variables: text, an ``EnvValue`` of ours or one of cdk8s-plus.
            visible_devices: ``managed`` refuses ``NVIDIA_VISIBLE_DEVICES`` in ``env``; ``unmanaged`` lets
                it through, and with it the choice of GPUs, and says so in an annotation.
            ports: Names and numbers, or numbers alone, which are then called ``tcp-<number>``. A Job gets no
                Service.
            volumes: Mount paths, each with a ``Volume`` or a PersistentVolumeClaim, ConfigMap or Secret
                object.
            shared_memory: Size of ``/dev/shm``, for data loaders and tensor parallelism; it counts against
                the memory limit. None leaves the runtime's 64 MiB.
            startup_probe: Time for loading a model; holds the other probes back.
            readiness_probe: Decides whether the Service sends requests.
            liveness_probe: Restarts the container when it fails.
            resources: CPU and memory; what is given replaces the default as a whole, which is requests of 1
                CPU and 4Gi and a memory limit of 16Gi. No CPU limit: throttling starves the GPU.
            replicas: Pods of a Deployment or StatefulSet. 1 by default, where cdk8s-plus has 2: each holds
                its own GPUs.
            completions: Pods that must succeed, of a Job; more than one are numbered
                (``JOB_COMPLETION_INDEX``).
            parallelism: Pods of a Job at once; all of them by default.
            backoff_limit: Retries of a Job's pods; 2 where Kubernetes has 6, since each holds a GPU again.
            active_deadline_seconds: When a Job is stopped at the latest. None: never.
            ttl_seconds_after_finished: When a finished Job is deleted. None: never, since GitOps tools
                would start a deleted one again.
            schedule: Of a CronJob, in cron's five fields or as ``@daily`` and its like, in the time zone of
                the cluster's control plane.
            run_as_user: User id; one above 0 states ``runAsNonRoot``. None leaves the image's own user.
            fs_group: Group that owns mounted volumes.
            capabilities: Linux capabilities to keep; all others are dropped.
            read_only_root_filesystem: True lets the container write to its volumes only.
            service_account: Name or object; its token is mounted then, and never otherwise.
            image_pull_secrets: Names or objects.
            priority_class_name: Name of a PriorityClass.
            termination_grace_period_seconds: Time to finish requests; by default 60 for what serves and 30
                for what ends.
            labels: Further labels of object and pods.

        Raises:
            GpuConstructsError: A value above is not allowed, or does not fit the kind.
        """
        gpu_limit = _gpu_limit(gpus, gpu_resource)
        runs = Controller(
            kind=kind,
            replicas=replicas,
            completions=completions,
            parallelism=parallelism,
            backoff_limit=backoff_limit,
            active_deadline_seconds=active_deadline_seconds,
            ttl_seconds_after_finished=ttl_seconds_after_finished,
            schedule=schedule,
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
        _fields.image("image", image)
        if priority_class_name is not None:
            _fields.dns_subdomain("priority_class_name", priority_class_name)
        if working_dir is not None:
            _fields.absolute_path("working_dir", working_dir)
        for index, capability in enumerate(capabilities):
            _fields.capability(f"capabilities[{index}]", capability)
        _fields.labels("node_selector", node_selector or {})
        for field, value in (
            ("run_as_user", run_as_user),
            ("fs_group", fs_group),
            ("termination_grace_period_seconds", termination_grace_period_seconds),
        ):
            if value is not None:
                _fields.whole_number(field, value, minimum=0)
        probes = {
            "startup_probe": startup_probe,
            "readiness_probe": readiness_probe,
            "liveness_probe": liveness_probe,
        }
        for field, probe in probes.items():
            if probe is not None and isinstance(probe.port, str):
                _fields.one_of(f"{field} port", probe.port, list(port_numbers))
        selector = selector_labels(name=name, instance=name, component=kind.lower())
        own_labels = object_labels(selector)
        _fields.labels("labels", labels or {})
        for label in own_labels:
            if label in (labels or {}):
                raise GpuConstructsError(f"labels must not hold {label!r}, which tells these pods from others")
        mounted, sources = mounts(volumes or {}, shared_memory=shared_memory)
        variables = environment(env or {}, visible_devices_is_managed=visible_devices == "managed")
        amounts = container_resources(resources, default=_RESOURCES)
        amounts["limits"] = {**amounts.get("limits", {}), **gpu_limit}
        account = None
        if service_account is not None:
            account = _references.name_of("service_account", service_account, "ServiceAccount")
        secrets = [
            {"name": _references.name_of(f"image_pull_secrets[{i}]", secret, "Secret")}
            for i, secret in enumerate(image_pull_secrets)
        ]
        where = Chart.of(scope).namespace if namespace is None else namespace_name(namespace)
        runtime = runtime_class_name(runtime_class, platform)
        grace = termination_grace_period_seconds
        super().__init__(scope, id)
        self.name = name
        self.gpus = gpus

        metadata = {
            "name": name,
            "namespace": where or "default",
            "labels": {**(labels or {}), **own_labels},
            "annotations": {VISIBLE_DEVICES_ANNOTATION: "unmanaged"} if visible_devices == "unmanaged" else None,
        }
        makes_account = kind == "Pod" and account is None
        container = {
            "name": name,
            "image": image,
            "imagePullPolicy": "IfNotPresent",
            "command": list(command) or None,
            "args": list(args) or None,
            "workingDir": working_dir,
            "env": variables or None,
            "ports": [{"name": n, "containerPort": p} for n, p in port_numbers.items()] or None,
            "startupProbe": startup_probe.to_manifest() if startup_probe else None,
            "readinessProbe": readiness_probe.to_manifest() if readiness_probe else None,
            "livenessProbe": liveness_probe.to_manifest() if liveness_probe else None,
            "resources": amounts,
            "securityContext": container_security(
                add=tuple(capabilities), non_root=bool(run_as_user), read_only=read_only_root_filesystem
            ),
            "volumeMounts": mounted or None,
        }
        pod_spec = {
            "automountServiceAccountToken": account is not None,
            "containers": [container],
            "enableServiceLinks": False,
            "imagePullSecrets": secrets or None,
            "nodeSelector": {**platform.gpu_node_selector, **(node_selector or {})} or None,
            "priorityClassName": priority_class_name,
            "restartPolicy": None if runs.serves else "Never",
            "runtimeClassName": runtime,
            "securityContext": {
                **POD,
                "runAsUser": run_as_user,
                "fsGroup": fs_group,
                # Else the kubelet walks through a disk full of models at every start.
                "fsGroupChangePolicy": None if fs_group is None else "OnRootMismatch",
            },
            "serviceAccountName": name if makes_account else account,
            "terminationGracePeriodSeconds": (60 if runs.serves else 30) if grace is None else grace,
            "tolerations": placement.tolerations(tolerations, (placement.GPU_TAINT,)),
            "volumes": sources or None,
        }
        if has_service:
            headless = kind == "StatefulSet"
            Manifest(self, "service", service(metadata, selector=selector, ports=port_numbers, headless=headless))
        if makes_account:
            bare = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
            Manifest(self, "service-account", {**bare, "automountServiceAccountToken": False})
        Manifest(self, "Default", runs.manifest(metadata, pod_spec, selector=selector))


def _gpu_limit(gpus: int, resource: str) -> dict[str, int]:
    if isinstance(gpus, float):
        raise GpuConstructsError(
            f"gpus must be an int, got {gpus!r} (float); a part of a GPU is a slot: share GPUs with "
            "DevicePluginChart(sharing=Sharing.time_slicing(replicas=...)) and ask for 1"
        )
    _fields.whole_number("gpus", gpus, minimum=1, way_out="a pod without a GPU needs no GpuWorkload")
    if not _GPU_RESOURCE.match(resource):
        raise GpuConstructsError(
            "gpu_resource must be 'nvidia.com/gpu', 'nvidia.com/gpu.shared' or a MIG resource like "
            f"'nvidia.com/mig-1g.10gb'; got {resource!r}"
        )
    return {resource: gpus}
