"""`GpuWorkload`: a workload whose pods use GPUs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Unpack

from cdk8s import ApiObject
from constructs import Construct

from gpu_constructs.catalog.platforms import DEFAULT_PLATFORM
from gpu_constructs.cluster.namespace import namespace_in
from gpu_constructs.kube.container import Container, url
from gpu_constructs.kube.env import AnyEnvValue
from gpu_constructs.kube.volume import Mountable
from gpu_constructs.tree.construct import GpuObject, at_own_path, checked
from gpu_constructs.tree.manifest import Manifest
from gpu_constructs.workload import manifests
from gpu_constructs.workload.gpu_allocation import allocation_of
from gpu_constructs.workload.gpu_profile import profile_of
from gpu_constructs.workload.options import GpuWorkloadOptions, name_given
from gpu_constructs.workload.run import SETTINGS, Kind, Run, run_of


class GpuWorkload(GpuObject):
    """A workload, such as a Deployment or a Job, whose pods have one container with GPUs.

    Emits the object that runs the pods, and these objects:

    - a Service if the container has ports, but not for a Job or CronJob. A StatefulSet always has a headless Service.
    - a PodDisruptionBudget (``maxUnavailable: 1``) for two replicas or more.
    - a PersistentVolumeClaim for each ``VolumeClaim``. The manifest of a StatefulSet itself contains these claims.
    - a ResourceClaimTemplate if the backend of the profile is ``Backend.dra_claims()``.
    - a ServiceAccount for a bare Pod. Without it, Kubernetes would reject the Pod while its Namespace is new.

    The pods have a GPU limit or a claim, and a toleration of the GPU taint. They also have the node selector and, if
    they need one, the runtime class of the platform. By default, the container with GPUs must not have the variable
    ``NVIDIA_VISIBLE_DEVICES``, which would override the allocated GPU. All other containers have
    ``NVIDIA_VISIBLE_DEVICES=void``, so that they get no GPU. If a DRA driver allocates the GPUs and the pods have no
    runtime class, the library does not set the variable.

    If you pass a ConfigMap as an object, a change of its data restarts the pods of a Deployment or StatefulSet.

    Attributes:
        name: Name of the Deployment, StatefulSet, Job, CronJob or Pod, and of its Service.
        namespace: Name of the namespace of all objects.
        kind: Kind of the object that runs the pods.
        gpus: Number of GPUs of a pod.
        request: Number and properties of the GPUs of a pod.
        match_labels: Labels that identify the pods, for selectors of a Service or a NetworkPolicy.
        service: Service of the pods. None if there is no Service.
        url: URL at which other pods of the cluster reach the pods. None if there is no Service, or no port named
            ``http`` or ``https``.
        api_object: The Deployment, StatefulSet, Job, CronJob or Pod.

    Source:
        Kubernetes documentation, "Schedule GPUs"; NVIDIA/k8s-device-plugin@v0.20.0:README.md
    """

    _NOT_TAKEN = {name: f"pass run={factory}" for name, factory in SETTINGS.items()}  # noqa: RUF012

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        image: str,
        kind: Kind = "Deployment",
        run: Run | None = None,
        **options: Unpack[GpuWorkloadOptions],
    ) -> None:
        """Create the objects of the workload.

        Args:
            scope: Chart, or a construct in a chart.
            id: ID of the construct. It is also the name of the objects, unless you set ``name``.
            image: Image as ``repository:tag`` or with a digest. The tag ``latest`` is an error.
            kind: Kind of the object that runs the pods: ``Deployment``, ``StatefulSet``, ``Job`` or ``Pod``. The object
                has the default settings of its kind. To change them, use ``run``.
            run: Object that runs the pods, with settings: ``Run.deployment(replicas=2)``, ``Run.stateful_set(...)``,
                ``Run.job(completions=8)``, ``Run.cron_job(schedule="@daily")`` or ``Run.pod()``. None: the object of
                ``kind``.
            options: Options of the workload. The default of ``resources`` is a request of 1 CPU and 4Gi, and a memory
                limit of 16Gi. Your value replaces the whole default. The default has no CPU limit, because a throttled
                CPU makes the GPU wait.

        Raises:
            GpuConstructsError: A value that is not allowed, or values that contradict each other.
        """
        runs = run_of(kind, run)
        profile = profile_of(
            options.get("profile"),
            options.get("platform", DEFAULT_PLATFORM),
            options.get("tolerations", ()),
            options.get("node_selector"),
            options.get("runtime_class"),
        )
        allocated = allocation_of(options.get("gpus", 1), profile, resource=options.get("gpu_resource"))
        where = namespace_in(scope, options.get("namespace"))
        allocated.check_claim_namespace(where)
        made = manifests.plain_workload(
            name_given(id, options), where, image=image, run=runs, allocation=allocated, options=options
        )
        super().__init__(scope, id)
        self.name: str = made.metadata["name"]
        self.namespace = where
        self.kind = runs.kind
        self.request = allocated.request
        self.provides = profile.assumes
        self.gpus = allocated.request.count
        self.match_labels = made.selector
        self.url = url(self.name, where, made.ports) if made.has_service else None
        self._made = made
        objects = {child: Manifest(self, child, manifest) for child, manifest in manifests.beside(made).items()}
        self.service: ApiObject | None = objects.get("service")
        self._make_disks()
        Manifest(self, "Default", lambda: self._made.manifest(_content_of))

    @at_own_path
    def attach_volume(self, path: str, volume: Mountable) -> None:
        """Mount a volume into the container with the GPUs.

        Args:
            path: Absolute path of the mount.
            volume: Volume, of one of the types that the option ``volumes`` allows.

        Raises:
            GpuConstructsError: The container already has a mount at this path, or the value is not a volume.
        """
        self._change(manifests.attach_volume, path, volume)

    @at_own_path
    def add_env(self, name: str, value: str | AnyEnvValue) -> None:
        """Set an environment variable of the container with the GPUs.

        Args:
            name: Name of the variable.
            value: Text or an ``EnvValue``.

        Raises:
            GpuConstructsError: The container already has the variable, or ``value`` has another type.
        """
        self._change(manifests.add_env, name, value)

    @at_own_path
    def add_init_container(self, container: Container) -> None:
        """Add an init container, which runs to its end before the main container starts.

        Args:
            container: Container to add. It has no access to a GPU.

        Raises:
            GpuConstructsError: Another container has the same name, or a value of the container is not allowed.
        """
        self._change(manifests.add_init_container, container)

    @at_own_path
    def add_sidecar(self, container: Container) -> None:
        """Add a sidecar, which runs beside the main container and ends after it.

        Args:
            container: Container to add. It has no access to a GPU.

        Raises:
            GpuConstructsError: Another container has the same name, or the Kubernetes release of the platform has no
                native sidecars.
        """
        self._change(manifests.add_sidecar, container)

    def _change(self, change: Callable[..., None], *given: object) -> None:
        self._made = self._made.changed(change, *given)
        self._make_disks()

    def _make_disks(self) -> None:
        for child, disk in self._made.new_disks().items():
            Manifest(self, child, disk)


def _content_of(config_map: object) -> object:
    return ApiObject.of(config_map).to_json()  # type: ignore[arg-type]
