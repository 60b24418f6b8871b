"""`TrainingPod`: the options for the pods of a PyTorch training, a Katib experiment or a Kubeflow notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpu_constructs.catalog.gpu_models import known_board
from gpu_constructs.catalog.platforms import DEFAULT_PLATFORM, Platform
from gpu_constructs.errors import GpuConstructsError, ShortErrors, refuse_if
from gpu_constructs.kube import fields
from gpu_constructs.kube.config_map import config_map, sha256
from gpu_constructs.kube.env import AnyEnvValue
from gpu_constructs.kube.labels import object_labels, selector_labels
from gpu_constructs.kube.placement import Toleration
from gpu_constructs.kube.pods import ImagePullPolicy
from gpu_constructs.kube.references import NamedObject
from gpu_constructs.kube.resources import Resources
from gpu_constructs.kube.volume import Mountable, Mounts, Volume
from gpu_constructs.recipes.http_server import memory_of_products
from gpu_constructs.records import dataclass, field, regex
from gpu_constructs.tree.construct import GpuObject
from gpu_constructs.tree.manifest import Manifest
from gpu_constructs.workload.gpu_allocation import allocation, resource_claim_template
from gpu_constructs.workload.gpu_in_pod import GpuAllocation
from gpu_constructs.workload.gpu_profile import GpuProfile, profile_of
from gpu_constructs.workload.gpu_request import GpuRequest
from gpu_constructs.workload.manifests import check_options, container_of, pod_of
from gpu_constructs.workload.options import Gpus, ObjectOptions, metadata_of

PYTORCH_IMAGE = "docker.io/pytorch/pytorch:2.7.1-cuda12.8-cudnn9-runtime"
"""Default image. CUDA 12.8 is the first release with kernels for Blackwell. CUDA 13 would need NVIDIA driver 580."""

LONGEST_NAME = 52
"""Largest length of an object name, because operators append the number of a pod or a checksum to the name."""

_SCRIPT_DIRECTORY = "/train"
_SCRIPT = "train.py"
_LARGEST_SCRIPT = 1_000_000
_SHARED_MEMORY = "2Gi"
_SHM = "/dev/shm"
_MANY_PODS = "use access_modes=['ReadWriteMany']"
_ALLOCATOR = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
_NGC = regex(r"nvcr\.io/nvidia/pytorch:(\d\d)\.(\d\d)-")
_CUDA = regex(r"[:-]cu(?:da)?(\d\d)\.?(\d)")
_PYTORCH = regex(r"(?:docker\.io/)?pytorch/pytorch:(\d+)\.(\d+)")
_FIRST_NGC_FOR_BLACKWELL = (25, 1)
_FIRST_CUDA_FOR_BLACKWELL = (12, 8)
_FIRST_PYTORCH_WITH_FRACTION = (2, 10)


@dataclass(frozen=True, kw_only=True)
class TrainingPod(metaclass=ShortErrors):
    """The options for the pods of a ``PyTorchTraining``, ``KatibExperiment`` or ``KubeflowNotebook``.

    The defaults satisfy the Pod Security level ``restricted``. The container cannot write to its root file system.
    ``/tmp`` is an empty directory of 10Gi. ``HOME`` is ``/tmp``, because user 1000 has no home directory in the images
    of PyTorch.

    Attributes:
        image: Image as ``repository:tag`` or with a digest. The library rejects the tag ``latest``.
        script: Text of a Python file. The construct writes it to an immutable ConfigMap, which the pod mounts at
            ``/train``. The name of the ConfigMap contains a checksum of the script, so a retry runs the same script. A
            new script changes the pod template, which Kubernetes rejects for an existing Job. Delete this Job first, or
            set another name.
        command: Command that replaces the entrypoint of the image. Set either ``command`` or ``script``.
        args: Arguments of the script, the command or the entrypoint.
        working_dir: Working directory of the command.
        env: Environment variables, each as text, an ``EnvValue``, or a value of cdk8s-plus. They override ``HOME=/tmp``
            and ``PYTHONUNBUFFERED=1``.
        gpus: Number of GPUs, or of slots of shared GPUs, for each pod. A ``GpuRequest`` can also select boards and
            memory. Its ``vram`` limits each process to the fraction ``vram / memory`` of its GPU, rounded down to
            hundredths. For this, the library must know the memory of the boards in ``GpuRequest.products``. For
            example, 8Gi of an RTX 3090 (24576 MiB) is 0.33, so the pod has the environment variable
            ``PYTORCH_CUDA_ALLOC_CONF=per_process_memory_fraction:0.33``. PyTorch before 2.10 fails with this setting,
            so only images ``pytorch/pytorch:2.10`` and later get it. The limit does not include the CUDA context (a few
            hundred MiB).
        profile: Settings that all GPU workloads of the cluster share. None: only the settings of ``platform``.
        platform: Platform of the cluster, for example ``Talos("1.12")`` or ``Kubernetes()``. A ``profile`` contains a
            platform, so do not set both.
        tolerations: Tolerations, besides those of the taint ``nvidia.com/gpu`` and of the profile.
        node_selector: Labels that a node must have, besides those of the platform and the profile.
        runtime_class: Name or object of a RuntimeClass. None: the runtime class of the profile or of the platform.
        volumes: Volumes by mount path: a ``Volume``, a ``VolumeClaim`` for a new disk, or a PersistentVolumeClaim,
            ConfigMap or Secret object.
        shared_memory: Size of ``/dev/shm``, through which the data loaders of PyTorch pass batches. Data in
            ``/dev/shm`` counts against the memory limit. None: 2Gi. With 64 MiB, the default of the container runtime,
            data loaders fail with "bus error". Do not set it with MPS, which provides its own ``/dev/shm``.
        resources: Requests and limits of CPU and memory. The default is a request of 1 CPU and 4Gi, and a memory limit
            of 16Gi. Your value replaces the whole default.
        run_as_user: User ID of the processes. The default is 1000. None: the user of the image. In images of PyTorch,
            that is root.
        fs_group: ID of the group that owns mounted disks, so that the user can write to them.
        read_only_root_filesystem: Whether the container can write only to its volumes.
        image_pull_policy: Pull policy. The default is ``IfNotPresent``, because tags are exact and images are large.
        image_pull_secrets: Names or objects of Secrets for a registry that needs a login.
        service_account: Name or object of a ServiceAccount, whose token the pod mounts. None: the pod mounts no token.
        priority_class_name: Name of a PriorityClass.

    Raises:
        GpuConstructsError: If a value is not allowed, if two values contradict each other, or if the image has no CUDA
            kernels for a requested Blackwell board. The tag of such an image contains a CUDA release before 12.8 or an
            NGC release before 25.01.

    Source:
        PyTorch 2.10.0 release notes (per_process_memory_fraction)
    """

    image: str = PYTORCH_IMAGE
    script: str | None = None
    command: Sequence[str] = ()
    args: Sequence[str] = ()
    working_dir: str | None = None
    env: Mapping[str, str | AnyEnvValue] = field(default_factory=dict)
    gpus: Gpus = 1
    profile: GpuProfile | None = None
    platform: Platform = DEFAULT_PLATFORM
    tolerations: Sequence[Toleration] = ()
    node_selector: Mapping[str, str] = field(default_factory=dict)
    runtime_class: str | NamedObject | None = None
    volumes: Mapping[str, Mountable] = field(default_factory=dict)
    shared_memory: str | None = None
    resources: Resources | None = None
    run_as_user: int | None = 1000
    fs_group: int | None = 1000
    read_only_root_filesystem: bool = True
    image_pull_policy: ImagePullPolicy = "IfNotPresent"
    image_pull_secrets: Sequence[str | NamedObject] = ()
    service_account: str | NamedObject | None = None
    priority_class_name: str | None = None

    def __post_init__(self) -> None:
        fields.members(self, "training_pod")
        try:
            if self.script is not None:
                _check_script(self, self.script)
            _require_kernels(self.image, self.request)
            self.render(name="x", namespace="x", component="x", container="x", command=self.command)
        except GpuConstructsError as error:
            problem = error.problem.replace("request.count", "gpus")
            raise GpuConstructsError(
                problem if problem.startswith("training_pod.") else f"training_pod.{problem}"
            ) from None

    @property
    def request(self) -> GpuRequest:
        """The value of ``gpus`` as a ``GpuRequest``. A number becomes ``GpuRequest(count=...)``."""
        return self.gpus if isinstance(self.gpus, GpuRequest) else GpuRequest(count=self.gpus)

    @property
    def allocation(self) -> GpuAllocation:
        """The fields of the pod that request its GPUs in the cluster of the profile: limits, claims, node selector."""
        added = (self.tolerations, self.node_selector or None, self.runtime_class)
        return allocation(self.request, profile_of(self.profile, self.platform, *added))

    def render(
        self,
        *,
        name: str,
        namespace: str,
        component: str,
        container: str,
        command: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        ports: Mapping[str, int] | None = None,
        volumes: Mapping[str, Mountable] | None = None,
        pods_at_once: int = 1,
    ) -> RenderedPod:
        """Return the manifest of the pod, and the objects that the pod needs, such as a ConfigMap for the script.

        Args:
            name: Name of the object that creates the pod, such as a Job. The names of the other objects start with this
                name.
            namespace: Name of the namespace of all objects.
            component: Value of the label ``app.kubernetes.io/component``.
            container: Name of the container.
            command: Command that replaces the entrypoint of the image.
            env: Environment variables of the construct. The variables of the user override them.
            ports: Port numbers by name.
            volumes: Volumes by mount path, besides those of the user.
            pods_at_once: Number of pods that mount the disks at the same time.

        Raises:
            GpuConstructsError: Only one node can mount a disk, but several pods need it.
        """
        given = self.allocation
        labels = object_labels(selector_labels(name=name, instance=name, component=component))
        metadata = {"name": name, "namespace": namespace, "labels": labels}
        beside: dict[str, Mapping[str, Any]] = {}
        mounted = {**(volumes or {}), **self.volumes}
        if self.script is not None:
            file_name = f"{name}-{sha256(self.script)[:10]}"
            beside["script"] = config_map({**metadata, "name": file_name}, {_SCRIPT: self.script}) | {"immutable": True}
            mounted = {**(volumes or {}), _SCRIPT_DIRECTORY: Volume.config_map(file_name), **self.volumes}
        mounts, profile = Mounts(), given.profile
        options = {
            **vars(self),
            "command": command,
            "env": {**(env or {}), **_memory_limit(self), **self.env},
            "ports": ports or {},
            "volumes": mounted,
        }
        check_options(options, profile)
        shared_memory = None if profile.has_mps or _SHM in mounted else _SHARED_MEMORY
        holder = container_of(container, options, mounts, shared_memory=shared_memory)
        pod = pod_of(holder, options)
        pod["volumes"] = [*mounts.sources, *mounts.disks(name, pods_at_once=pods_at_once, way_out=_MANY_PODS)] or None
        beside |= {f"disk-{volume}": claim for volume, claim in mounts.claim_manifests(metadata).items()}
        if given.claim is not None:
            beside["gpu-claim"] = resource_claim_template({**metadata, "name": f"{name}-gpu"}, given.claim)
        return RenderedPod(metadata=metadata, spec=given.give(pod, claim_template=f"{name}-gpu"), beside=beside)


@dataclass(frozen=True, kw_only=True)
class RenderedPod:
    """The manifest of a training pod, and the objects that the pod needs.

    Attributes:
        metadata: Name, namespace and labels of the object that creates the pod, such as a Job. The pod has the same
            labels.
        spec: Spec of the pod.
        beside: Manifests of other objects that the pod needs, such as its ConfigMap, by construct ID.
    """

    metadata: Mapping[str, Any]
    spec: Mapping[str, Any]
    beside: Mapping[str, Mapping[str, Any]]

    def described(
        self, request: GpuRequest, options: ObjectOptions, more: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Return the metadata of the object that creates the pod, such as a Job.

        Args:
            request: GPU request of the pod. Its memory budget becomes an annotation.
            options: Labels and annotations of the user.
            more: Annotations that the construct adds.

        Raises:
            GpuConstructsError: Kubernetes would reject a label or annotation, or the user sets a label that identifies
                the pods.
        """
        name, namespace, labels = (self.metadata[key] for key in ("name", "namespace", "labels"))
        return metadata_of(name, namespace, labels, options, request, more)


class TrainingObject(GpuObject):
    """Base class of ``PyTorchTraining``, ``KatibExperiment`` and ``KubeflowNotebook``.

    Attributes:
        name: Name of the object that creates the pods, such as a Job.
        namespace: Name of the namespace of this object.
    """

    name: str
    namespace: str

    def _emit(self, pod: TrainingPod, metadata: Mapping[str, Any], manifests: Mapping[str, Mapping[str, Any]]) -> None:
        self.name, self.namespace = metadata["name"], metadata["namespace"]
        self.provides = pod.allocation.profile.assumes
        for child, manifest in manifests.items():
            Manifest(self, child, manifest)


def launched(pod: TrainingPod, *, nproc_per_node: int, num_nodes: int, by_operator: bool) -> list[str]:
    """Return the command of the training container.

    If the pod has a script, the command runs it with ``python`` or, for several processes, with ``torchrun``. If the
    pod has no script, the result is the command of the user.

    Args:
        pod: Options of the pod.
        nproc_per_node: Number of processes of a pod.
        num_nodes: Number of pods.
        by_operator: Whether an operator sets the options of ``torchrun`` as environment variables ``PET_*``.
    """
    if pod.script is None:
        return list(pod.command)
    path = f"{_SCRIPT_DIRECTORY}/{_SCRIPT}"
    if nproc_per_node * num_nodes == 1:
        return ["python", path]
    return ["torchrun", *([] if by_operator else ["--standalone", f"--nproc-per-node={nproc_per_node}"]), path]


def _memory_limit(pod: TrainingPod) -> dict[str, str]:
    tag = _PYTORCH.match(pod.image)
    fraction = memory_fraction(pod.request)
    is_known = tag is not None and (int(tag[1]), int(tag[2])) >= _FIRST_PYTORCH_WITH_FRACTION
    if fraction is None or not is_known or any(name in pod.env for name in _ALLOCATOR):
        return {}
    return {"PYTORCH_CUDA_ALLOC_CONF": f"per_process_memory_fraction:{fraction}"}


def memory_fraction(request: GpuRequest) -> str | None:
    """Return the memory budget ``vram`` as a fraction of the memory of the GPU, such as the text ``0.33``.

    Return None if the request has no budget, if ``memory_of_products`` does not know the memory of the GPU, or if the
    budget is the whole memory.
    """
    total = memory_of_products(request)
    if request.vram is None or total is None:
        return None
    hundredths = int(fields.amount(request.vram) / 2**20 * 100 / total)
    return f"{max(hundredths, 1) / 100:.2f}" if hundredths < 100 else None


def require_name(name: str, *, longest: int = LONGEST_NAME) -> None:
    """Raise an error if an object name is not valid, or too long for the suffixes that Kubeflow operators append.

    Args:
        name: Name of the object.
        longest: Largest number of characters of the name.

    Raises:
        GpuConstructsError: The name is not a DNS label, is too long, or starts with a digit.
    """
    fields.dns_label("name", name)
    if len(name) > longest:
        raise GpuConstructsError(f"name must have at most {longest} characters, got {len(name)}")
    refuse_if(name[0].isdigit(), "name", "start with a letter", name)


def _check_script(pod: TrainingPod, script: str) -> None:
    refuse_if(not script.strip(), "script", "be the text of a Python file", script)
    refuse_if(pod.command, "script and command", "not both have a value. Use one of them, with args for its arguments")
    if len(script.encode()) > _LARGEST_SCRIPT:
        raise GpuConstructsError(
            f"script must have at most {_LARGEST_SCRIPT} bytes, the limit of a ConfigMap, got "
            f"{len(script.encode())}. Put it in the image or a volume, and set command"
        )
    if _SCRIPT_DIRECTORY in pod.volumes:
        raise GpuConstructsError(
            f"volumes[{_SCRIPT_DIRECTORY!r}] must be absent with script, whose ConfigMap is at that path"
        )


def _require_kernels(image: str, request: GpuRequest) -> None:
    """Raise an error if the user requests a Blackwell board, but the image has no CUDA kernels for this architecture.

    The tag of such an image contains a CUDA release before 12.8 or an NGC release before 25.01.
    """
    models = [known_board(product) for product in request.products]
    if "blackwell" not in request.families and all(one is None or one.architecture != "Blackwell" for one in models):
        return
    for tag, first, what in (
        (_NGC, _FIRST_NGC_FOR_BLACKWELL, "NGC 25.01"),
        (_CUDA, _FIRST_CUDA_FOR_BLACKWELL, "CUDA 12.8"),
    ):
        found = tag.search(image)
        if found is not None and (int(found[1]), int(found[2])) < first:
            raise GpuConstructsError(
                f"image must be of {what} or later for a Blackwell board, because earlier images have no CUDA kernels "
                f"for it, got {image!r}. Use {PYTORCH_IMAGE!r} or a later one"
            )
