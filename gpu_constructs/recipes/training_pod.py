"""The pod of a PyTorch training, described once for everything that can run it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import floor
from typing import TYPE_CHECKING, Any

from gpu_constructs import _fields, _references
from gpu_constructs._config_map import config_map, sha256
from gpu_constructs._container_security import POD
from gpu_constructs._labels import object_labels, selector_labels
from gpu_constructs._references import NamedObject
from gpu_constructs._resources import Resources, container_resources
from gpu_constructs.annotations import IGNORE_RULES
from gpu_constructs.errors import GpuConstructsError, ShortErrors
from gpu_constructs.placement import Toleration
from gpu_constructs.platforms import DEFAULT_PLATFORM, Platform
from gpu_constructs.recipes.vram_budget import memory_of_products
from gpu_constructs.workload.container import ImagePullPolicy, container_manifest
from gpu_constructs.workload.env import AnyEnvValue, environment
from gpu_constructs.workload.gpu_allocation import GpuAllocation, allocation
from gpu_constructs.workload.gpu_profile import GpuProfile, profile_of
from gpu_constructs.workload.gpu_request import GpuRequest, known_board
from gpu_constructs.workload.resource_claim import resource_claim_template
from gpu_constructs.workload.volume import Mountable, Mounts, Volume

if TYPE_CHECKING:
    Gpus = int | GpuRequest
else:
    # Left to GpuRequest, which says more of a number that is no whole one than its type.
    Gpus = object

PYTORCH_IMAGE = "docker.io/pytorch/pytorch:2.7.1-cuda12.8-cudnn9-runtime"
"""CUDA 12.8 is the first with kernels for Blackwell; images of CUDA 13 need driver 580 or later."""

LONGEST_NAME = 52
"""Of an object whose operator appends to its name: a pod's number, a checksum."""

_SCRIPT_DIRECTORY = "/train"
_SCRIPT = "train.py"
_LARGEST_SCRIPT = 1_000_000
_RESOURCES: Resources = {"requests": {"cpu": "1", "memory": "4Gi"}, "limits": {"memory": "16Gi"}}
_SHARED_MEMORY = "2Gi"
_SHM = "/dev/shm"
_TMP = "/tmp"
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
        _fields.members(self, "training_pod")
        try:
            self._check()
        except GpuConstructsError as error:
            problem = error.problem.replace("request.count", "gpus")
            raise GpuConstructsError(
                problem if problem.startswith("training_pod.") else f"training_pod.{problem}"
            ) from None

    def _check(self) -> None:
        if self.script is not None:
            if not self.script.strip():
                raise GpuConstructsError(f"script must be the text of a Python file; got {self.script!r}")
            if self.command:
                raise GpuConstructsError("script and command must not both be given; args go to either")
            if len(self.script.encode()) > _LARGEST_SCRIPT:
                raise GpuConstructsError(
                    f"script must have at most {_LARGEST_SCRIPT} bytes, which a ConfigMap holds; got "
                    f"{len(self.script.encode())}; bring it by the image or a volume, and name it in command"
                )
            if _SCRIPT_DIRECTORY in self.volumes:
                raise GpuConstructsError(
                    f"volumes[{_SCRIPT_DIRECTORY!r}] must be left out beside script, which is there"
                )
        for name in ("run_as_user", "fs_group"):
            if getattr(self, name) is not None:
                _fields.whole_number(name, getattr(self, name), minimum=0)
        if self.priority_class_name is not None:
            _fields.dns_subdomain("priority_class_name", self.priority_class_name)
        self._check_shared_memory()
        _require_kernels(self.image, self.request)
        self.render(name="x", namespace="x", component="x", container="x", command=self.command)

    def _check_shared_memory(self) -> None:
        if self._has_mps and (self.shared_memory is not None or _SHM in self.volumes):
            raise GpuConstructsError(
                "shared_memory must be left out where GPUs are shared by MPS, and /dev/shm of volumes: there the "
                "device plugin mounts the memory through which the pod reaches the MPS server"
            )
        if self.shared_memory is None:
            return
        _fields.size("shared_memory", self.shared_memory)
        amounts = container_resources(self.resources, default=_RESOURCES, has_gpus=True)
        limit = amounts.get("limits", {}).get("memory")
        if limit is not None and _fields.amount(self.shared_memory) >= _fields.amount(limit):
            raise GpuConstructsError(
                f"shared_memory must be less than the memory limit of {limit}, against which it counts; got "
                f"{self.shared_memory!r}; raise resources['limits']['memory']"
            )

    @property
    def request(self) -> GpuRequest:
        """What it wants of GPUs."""
        return self.gpus if isinstance(self.gpus, GpuRequest) else GpuRequest(count=self.gpus)

    @property
    def allocation(self) -> GpuAllocation:
        """What that means in its cluster."""
        return allocation(
            self.request,
            profile_of(self.profile, self.platform, self.tolerations, self.node_selector or None, self.runtime_class),
        )

    @property
    def processes(self) -> int:
        """How many processes of PyTorch a pod runs: one for each GPU; CUDA shows a process one MIG device only."""
        return self.request.count if self.request.mig_size is None else 1

    @property
    def runs_something(self) -> bool:
        """Whether it says what to run; PyTorch's own image runs a shell."""
        return bool(self.script or self.command or self.args) or self.image != PYTORCH_IMAGE

    @property
    def _has_mps(self) -> bool:
        sharing = self.allocation.profile.sharing
        return sharing is not None and sharing.strategy == "mps"

    def launched(self, *, nproc_per_node: int, num_nodes: int, by_operator: bool) -> list[str]:
        """Give the command, with ``torchrun`` before a script that runs in several processes.

        Args:
            nproc_per_node: Processes of a pod.
            num_nodes: Pods.
            by_operator: Whether an operator tells torchrun the rest by variables ``PET_*``.
        """
        if self.script is None:
            return list(self.command)
        path = f"{_SCRIPT_DIRECTORY}/{_SCRIPT}"
        if nproc_per_node * num_nodes == 1:
            return ["python", path]
        return ["torchrun", *([] if by_operator else ["--standalone", f"--nproc-per-node={nproc_per_node}"]), path]

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
        restart_policy: str | None = None,
        pods_at_once: int = 1,
    ) -> RenderedPod:
        """Give the pod as Kubernetes writes it, and the objects it needs.

        Args:
            name: Of the object that runs it, after which the others are called.
            namespace: Of all of them.
            component: What runs it, for the labels.
            container: Name of its container.
            command: In place of the image's entrypoint.
            env: Variables that the described ones win over.
            ports: Names and numbers.
            volumes: What is mounted besides.
            restart_policy: Of the pod.
            pods_at_once: How many pods share its disks.

        Raises:
            GpuConstructsError: A disk that serves one node for pods on several.
        """
        mounts = Mounts()
        given = self.allocation
        labels = object_labels(selector_labels(name=name, instance=name, component=component))
        metadata = {"name": name, "namespace": namespace, "labels": labels}
        beside: dict[str, Mapping[str, Any]] = {}
        own: dict[str, object] = dict(volumes or {})
        if self.script is not None:
            file_name = f"{name}-{sha256(self.script)[:10]}"
            beside["script"] = config_map({**metadata, "name": file_name}, {_SCRIPT: self.script}) | {"immutable": True}
            own[_SCRIPT_DIRECTORY] = Volume.config_map(file_name)
        shared_memory = self.shared_memory
        if shared_memory is None and not self._has_mps and _SHM not in self.volumes:
            shared_memory = _SHARED_MEMORY
        holder = container_manifest(
            name=container,
            image=self.image,
            command=command,
            args=self.args,
            working_dir=self.working_dir,
            env=environment({**(env or {}), **self._memory_limit(), **self.env}, visible_devices_is_managed=True),
            ports=ports or {},
            probes=dict.fromkeys(("startup_probe", "readiness_probe", "liveness_probe")),
            resources=container_resources(self.resources, default=_RESOURCES, has_gpus=True),
            mounted=mounts.mounted({**own, **self.volumes}, shared_memory=shared_memory),
            run_as_user=self.run_as_user,
            capabilities=(),
            read_only_root_filesystem=self.read_only_root_filesystem,
            image_pull_policy=self.image_pull_policy,
        )
        account = self.service_account
        if account is not None:
            account = _references.name_of("service_account", account, "ServiceAccount")
        pod = {
            "automountServiceAccountToken": account is not None,
            "containers": [holder],
            "enableServiceLinks": False,
            "imagePullSecrets": [
                {"name": _references.name_of(f"image_pull_secrets[{i}]", secret, "Secret")}
                for i, secret in enumerate(self.image_pull_secrets)
            ]
            or None,
            "priorityClassName": self.priority_class_name,
            "restartPolicy": restart_policy,
            "securityContext": {
                **POD,
                "runAsNonRoot": True if self.run_as_user else None,
                "runAsUser": self.run_as_user,
                "fsGroup": self.fs_group,
                # Else the kubelet walks through a disk full of data at every start.
                "fsGroupChangePolicy": None if self.fs_group is None else "OnRootMismatch",
            },
            "serviceAccountName": account,
        }
        disks = []
        for volume, claim in mounts.claims.items():
            if pods_at_once > 1 and not claim.serves_several_nodes:
                raise GpuConstructsError(
                    f"volumes: a VolumeClaim with access_modes {list(claim.access_modes)} serves one node, but "
                    f"{pods_at_once} pods run at once; use access_modes=['ReadWriteMany']"
                )
            disk = f"{name}-{volume}"
            body = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {**metadata, "name": disk}}
            beside[f"disk-{volume}"] = {**body, "spec": claim.spec()}
            disks.append({"name": volume, "persistentVolumeClaim": {"claimName": disk}})
        if given.claim is not None:
            beside["gpu-claim"] = resource_claim_template({**metadata, "name": f"{name}-gpu"}, given.claim)
        return RenderedPod(
            labels=labels,
            spec=given.give({**pod, "volumes": [*mounts.sources, *disks] or None}, claim_template=f"{name}-gpu"),
            beside=beside,
        )

    def _memory_limit(self) -> dict[str, str]:
        tag = _PYTORCH.match(self.image)
        fraction = memory_fraction(self.request)
        is_known = tag is not None and (int(tag[1]), int(tag[2])) >= _FIRST_PYTORCH_WITH_FRACTION
        if fraction is None or not is_known or any(name in self.env for name in _ALLOCATOR):
            return {}
        return {"PYTORCH_CUDA_ALLOC_CONF": f"per_process_memory_fraction:{fraction}"}

    def annotations(self, given: Mapping[str, str] | None, ignore_rules: Sequence[str]) -> dict[str, str] | None:
        """Give the annotations of the object that runs it.

        Raises:
            GpuConstructsError: A key that is no annotation key.
        """
        _fields.labels("annotations key", dict.fromkeys(given or {}, ""))
        said = self.request.annotations
        if ignore_rules:
            said[IGNORE_RULES] = ",".join(ignore_rules)
        return {**(given or {}), **said} or None


@dataclass(frozen=True, kw_only=True)
class RenderedPod:
    """A pod as plain data.

    Attributes:
        labels: Of the object that runs it and of its pods.
        spec: The pod.
        beside: The objects it needs, by construct id.
    """

    labels: Mapping[str, str]
    spec: Mapping[str, Any]
    beside: Mapping[str, Mapping[str, Any]]

    def metadata(
        self, name: str, namespace: str, labels: Mapping[str, str] | None, annotations: Mapping[str, str] | None
    ) -> dict[str, Any]:
        """Give the metadata of the object that runs it.

        Raises:
            GpuConstructsError: A label that Kubernetes would not take, or one that tells these pods from others.
        """
        _fields.labels("labels", labels or {})
        for label in self.labels:
            if label in (labels or {}):
                raise GpuConstructsError(f"labels must not hold {label!r}, which tells these pods from others")
        made = {**(labels or {}), **self.labels}
        return {"name": name, "namespace": namespace, "labels": made, "annotations": annotations}


def memory_fraction(request: GpuRequest) -> str | None:
    """Give the part of a GPU's memory that ``vram`` is, rounded down, of the largest board that may be allocated.

    Of a MIG device it is the device's memory. None where no budget is given, where not all boards are known, and where
    the budget is all of it.
    """
    total = memory_of_products(request)
    if request.vram is None or total is None:
        return None
    hundredths = floor(_fields.amount(request.vram) / 2**20 * 100 / total)
    return f"{max(hundredths, 1) / 100:.2f}" if hundredths < 100 else None


def require_name(name: str, *, longest: int = LONGEST_NAME) -> None:
    """Refuse a name that an operator could not make Services and pods of.

    Raises:
        GpuConstructsError: It is no DNS label, too long, or starts with a digit.
    """
    _fields.dns_label("name", name)
    if len(name) > longest:
        raise GpuConstructsError(f"name must have at most {longest} characters; got {len(name)}")
    if name[0].isdigit():
        raise GpuConstructsError(f"name must start with a letter; got {name!r}")


def _require_kernels(image: str, request: GpuRequest) -> None:
    """Refuse an image whose tag says that it is too old for a Blackwell board that is asked for."""
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
