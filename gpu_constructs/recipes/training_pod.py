"""The pod of a PyTorch training, described once for everything that can run it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
from gpu_constructs.tree.construct import GpuObject
from gpu_constructs.tree.manifest import Manifest
from gpu_constructs.workload.gpu_allocation import allocation, resource_claim_template
from gpu_constructs.workload.gpu_in_pod import GpuAllocation
from gpu_constructs.workload.gpu_profile import GpuProfile, profile_of
from gpu_constructs.workload.gpu_request import GpuRequest
from gpu_constructs.workload.manifests import check_options, container_of, pod_of
from gpu_constructs.workload.options import Gpus, ObjectOptions, metadata_of

PYTORCH_IMAGE = "docker.io/pytorch/pytorch:2.7.1-cuda12.8-cudnn9-runtime"
"""CUDA 12.8 is the first with kernels for Blackwell; images of CUDA 13 need driver 580 or later."""

LONGEST_NAME = 52
"""Most characters in the name of an object whose operator appends the number of a pod or a checksum."""

_SCRIPT_DIRECTORY = "/train"
_SCRIPT = "train.py"
_LARGEST_SCRIPT = 1_000_000
_SHARED_MEMORY = "2Gi"
_SHM = "/dev/shm"
_MANY_PODS = "use access_modes=['ReadWriteMany']"
_ALLOCATOR = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
_NGC = re.compile(r"nvcr\.io/nvidia/pytorch:(\d\d)\.(\d\d)-")
_CUDA = re.compile(r"[:-]cu(?:da)?(\d\d)\.?(\d)")
_PYTORCH = re.compile(r"(?:docker\.io/)?pytorch/pytorch:(\d+)\.(\d+)")
_FIRST_NGC_FOR_BLACKWELL = (25, 1)
_FIRST_CUDA_FOR_BLACKWELL = (12, 8)
_FIRST_PYTORCH_WITH_FRACTION = (2, 10)


@dataclass(frozen=True, kw_only=True)
class TrainingPod(metaclass=ShortErrors):
    """What a PyTorch training runs and holds, for ``PyTorchTraining``, ``KatibExperiment`` and ``KubeflowNotebook``.

    The defaults satisfy the Pod Security level ``restricted``. ``/tmp`` is an empty directory of 10Gi and ``HOME``
    points there, since the root file system is read-only and user 1000 has no home in PyTorch's images.

    Attributes:
        image: ``repository:tag`` or digest; never ``latest``.
        script: Text of a Python file. It becomes an immutable ConfigMap, mounted read-only at ``/train``, that bears
            the script's checksum in its name: a pod that is retried runs what the run started with. A changed script
            changes the pod template, which Kubernetes refuses for a Job that exists: delete it first, or give another
            name.
        command: Replaces the image's entrypoint; not beside ``script``.
        args: Arguments of script, command or entrypoint.
        working_dir: Directory the command starts in.
        env: Variables: text, an ``EnvValue`` of ours or one of cdk8s-plus. They win over ``HOME=/tmp`` and
            ``PYTHONUNBUFFERED=1``.
        gpus: Whole GPUs, or slots of shared ones, of each pod. A ``GpuRequest`` says more: which boards, how much
            memory.
            With ``vram`` and ``products`` whose memory is known, each process may take ``vram / memory`` of its GPU,
            rounded down to a hundredth: 8Gi of an RTX 3090 (24576 MiB) is 0.33, given as
            ``PYTORCH_CUDA_ALLOC_CONF=per_process_memory_fraction:0.33``. PyTorch knows that option from 2.10 on, and an
            earlier one ends with an error, so it is set for images ``pytorch/pytorch:2.10`` and later only. It bounds
            PyTorch's allocator; the CUDA context (some hundred MiB) is not counted.
        profile: What the GPU workloads of the cluster have in common. None: one of ``platform`` alone.
        platform: ``Talos("1.12")`` or ``Kubernetes()``, where no ``profile`` is given, which has one of its own.
        tolerations: Taints of the GPU nodes, on top of ``nvidia.com/gpu`` and the profile's.
        node_selector: Node labels, on top of the platform's and the profile's.
        runtime_class: Name or object. None: the profile or platform decides.
        volumes: Mount paths, each with a ``Volume``, a ``VolumeClaim`` for a disk of its own, or a
            PersistentVolumeClaim, ConfigMap or Secret object.
        shared_memory: Size of ``/dev/shm``, through which data loaders pass batches; it counts against the memory
            limit. None: 2Gi, since the runtime's 64 MiB end in "bus error"; nothing under MPS, which has its own
            memory there.
        resources: CPU and memory; what is given replaces the default as a whole, which is requests of 1 CPU and 4Gi
            and a memory limit of 16Gi.
        run_as_user: User id; 1000 by default. None leaves the image's own user, root for PyTorch's images.
        fs_group: Group that owns mounted disks, so that the user can write there.
        read_only_root_filesystem: Whether only volumes can be written.
        image_pull_policy: ``IfNotPresent`` by default, since tags are pinned and images large.
        image_pull_secrets: Names or objects.
        service_account: Name or object; its token is mounted then, and never otherwise.
        priority_class_name: Name of a PriorityClass.

    Raises:
        GpuConstructsError: A value above is not allowed, or contradicts another; or a Blackwell board is asked for with
            an image whose tag says that it has no kernels for it (CUDA before 12.8, NGC before 25.01).

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
        """What it wants of GPUs."""
        return self.gpus if isinstance(self.gpus, GpuRequest) else GpuRequest(count=self.gpus)

    @property
    def allocation(self) -> GpuAllocation:
        """What that means in its cluster."""
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
        """Return the pod as Kubernetes writes it, and the objects it needs.

        Args:
            name: Of the object that runs it, after which the others are called.
            namespace: Of all of them.
            component: What runs it, for the labels.
            container: Name of its container.
            command: In place of the image's entrypoint.
            env: Variables that the described ones win over.
            ports: Names and numbers.
            volumes: What is mounted besides.
            pods_at_once: How many pods share its disks.

        Raises:
            GpuConstructsError: A disk that serves one node for pods on several.
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
    """A pod as plain data.

    Attributes:
        metadata: Name, namespace and labels of the object that runs it; its pods have the labels too.
        spec: Spec of the pod.
        beside: Objects that the pod needs, by child id.
    """

    metadata: Mapping[str, Any]
    spec: Mapping[str, Any]
    beside: Mapping[str, Mapping[str, Any]]

    def described(
        self, request: GpuRequest, options: ObjectOptions, more: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Return the metadata of the object that runs it.

        Args:
            request: GPUs of the pod.
            options: Options of the user.
            more: Additional annotations.

        Raises:
            GpuConstructsError: A label or annotation that Kubernetes would not take, or a label that tells these pods
                from others.
        """
        name, namespace, labels = (self.metadata[key] for key in ("name", "namespace", "labels"))
        return metadata_of(name, namespace, labels, options, request, more)


class TrainingObject(GpuObject):
    """An object that runs a ``TrainingPod``.

    Attributes:
        name: Name of the object.
        namespace: Name of its namespace.
    """

    name: str
    namespace: str

    def _emit(self, pod: TrainingPod, metadata: Mapping[str, Any], manifests: Mapping[str, Mapping[str, Any]]) -> None:
        self.name, self.namespace = metadata["name"], metadata["namespace"]
        self.provides = pod.allocation.profile.assumes
        for child, manifest in manifests.items():
            Manifest(self, child, manifest)


def launched(pod: TrainingPod, *, nproc_per_node: int, num_nodes: int, by_operator: bool) -> list[str]:
    """Return the command, with ``torchrun`` before a script that runs in several processes.

    Args:
        pod: What runs.
        nproc_per_node: Processes of a pod.
        num_nodes: Pods.
        by_operator: Whether an operator tells torchrun the rest by variables ``PET_*``.
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
    """Return the part of a GPU's memory that ``vram`` is, rounded down, of the largest board that may be allocated.

    Of a MIG device it is the device's memory. None where no budget is given, where not all boards are known, and where
    the budget is all of it.
    """
    total = memory_of_products(request)
    if request.vram is None or total is None:
        return None
    hundredths = int(fields.amount(request.vram) / 2**20 * 100 / total)
    return f"{max(hundredths, 1) / 100:.2f}" if hundredths < 100 else None


def require_name(name: str, *, longest: int = LONGEST_NAME) -> None:
    """Raise unless an operator can make Services and pods of a name.

    Raises:
        GpuConstructsError: The name is not a DNS label, too long, or starts with a digit.
    """
    fields.dns_label("name", name)
    if len(name) > longest:
        raise GpuConstructsError(f"name must have at most {longest} characters; got {len(name)}")
    refuse_if(name[0].isdigit(), "name", "start with a letter", name)


def _check_script(pod: TrainingPod, script: str) -> None:
    refuse_if(not script.strip(), "script", "be the text of a Python file", script)
    refuse_if(pod.command, "script and command", "not both be given; args go to either")
    if len(script.encode()) > _LARGEST_SCRIPT:
        raise GpuConstructsError(
            f"script must have at most {_LARGEST_SCRIPT} bytes, which a ConfigMap holds; got "
            f"{len(script.encode())}; bring it by the image or a volume, and name it in command"
        )
    if _SCRIPT_DIRECTORY in pod.volumes:
        raise GpuConstructsError(f"volumes[{_SCRIPT_DIRECTORY!r}] must be left out beside script, which is there")


def _require_kernels(image: str, request: GpuRequest) -> None:
    """Raise if a Blackwell board is asked for with an image whose tag says that it is too old."""
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
                f"image must be of {what} or later for a Blackwell board, for which earlier ones have no kernels; got "
                f"{image!r}; take {PYTORCH_IMAGE!r} or a later one"
            )
