"""A workload that uses GPUs."""

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
    """Pods of which one container holds GPUs.

    Emits the object that ``run`` names, and with it:

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
        kind: Kind of the object.
        gpus: Number of GPUs that a pod holds.
        request: GPUs that a pod asks for.
        match_labels: Labels that tell its pods from others: for selectors of a Service or a NetworkPolicy.
        service: The Service in front of the pods; None where there is none.
        url: The URL that other pods of the cluster reach the pods at. None where there is no Service, or none of its
            ports is named ``http`` or ``https``.
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
        """Make the workload.

        Args:
            scope: A chart, or a construct in one.
            id: Construct id, and the name unless ``name`` says otherwise.
            image: ``repository:tag`` or digest; never ``latest``.
            kind: Short for ``run`` with its defaults: ``Deployment``, ``StatefulSet``, ``Job`` or ``Pod``.
            run: What runs the pods: ``Run.deployment(replicas=2)``, ``Run.stateful_set(...)``,
                ``Run.job(completions=8)``, ``Run.cron_job(schedule="@daily")`` or ``Run.pod()``. None: as ``kind``
                says.
            options: ``resources`` are requests of 1 CPU and 4Gi and a memory limit of 16Gi by default; what is given
                replaces them as a whole. No CPU limit: throttling starves the GPU.

        Raises:
            GpuConstructsError: A value above is not allowed, or does not fit the others.
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
        """Mount something more into the container that holds the GPUs.

        Args:
            path: Absolute path of the mount.
            volume: As in ``volumes``.

        Raises:
            GpuConstructsError: Something is mounted there already, or cannot be mounted.
        """
        self._change(manifests.attach_volume, path, volume)

    @at_own_path
    def add_env(self, name: str, value: str | AnyEnvValue) -> None:
        """Set one more variable of the container that holds the GPUs.

        Args:
            name: Name of the variable.
            value: Text or an ``EnvValue``.

        Raises:
            GpuConstructsError: The variable is set already, or ``value`` is neither.
        """
        self._change(manifests.add_env, name, value)

    @at_own_path
    def add_init_container(self, container: Container) -> None:
        """Run one more container to its end before the others start.

        Args:
            container: It sees no GPU.

        Raises:
            GpuConstructsError: The name is taken, or a value of the container is not allowed.
        """
        self._change(manifests.add_init_container, container)

    @at_own_path
    def add_sidecar(self, container: Container) -> None:
        """Run one more container beside the main one, until that has ended.

        Args:
            container: It sees no GPU.

        Raises:
            GpuConstructsError: The name is taken, or the platform's Kubernetes has no native sidecars.
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
