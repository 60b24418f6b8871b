"""`PyTorchTraining`: a PyTorch training as a Job, or as a custom resource of a Kubeflow operator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Unpack

from constructs import Construct

from gpu_constructs.cluster.namespace import namespace_in
from gpu_constructs.errors import GpuConstructsError, warn
from gpu_constructs.kube import fields, volume
from gpu_constructs.recipes.training_pod import (
    PYTORCH_IMAGE,
    RenderedPod,
    TrainingObject,
    TrainingPod,
    launched,
    require_name,
)
from gpu_constructs.records import dataclass, replace
from gpu_constructs.tree.construct import checked
from gpu_constructs.workload.gpu_request import GpuRequest
from gpu_constructs.workload.options import ObjectOptions, name_given
from gpu_constructs.workload.run import Run

Api = Literal["Job", "PyTorchJob", "TrainJob"]
RestartPolicy = Literal["Never", "OnFailure", "ExitCode"]

CONTAINERS: Mapping[Api, str] = {"Job": "training", "PyTorchJob": "pytorch", "TrainJob": "node"}
"""Name of the training container by API. The operators of Kubeflow find the container by this name."""

# The Istio sidecar never ends. A pod that does not end keeps its GPUs, so this annotation disables the sidecar.
POD_ANNOTATIONS = {"sidecar.istio.io/inject": "false"}

_ENV = {"HOME": "/tmp", "PYTHONUNBUFFERED": "1"}
_PORT = {"pytorchjob-port": 23456}
_SET_BY_OPERATORS = (
    "MASTER_ADDR MASTER_PORT WORLD_SIZE RANK PET_NNODES PET_NPROC_PER_NODE PET_NODE_RANK PET_MASTER_ADDR "
    "PET_MASTER_PORT"
).split()
KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"


@dataclass(frozen=True, kw_only=True)
class TrainingJob:
    """A PyTorch training: its pod, the number of pods, and settings for retries and deadlines.

    ``PyTorchTraining`` describes the attributes.

    Raises:
        GpuConstructsError: A value is not allowed, or ``api`` does not support an option.

    Source:
        kubeflow/training-operator@v1.9.4:pkg/controller.v1/pytorch/envvar.go and
        pkg/apis/kubeflow.org/v1/pytorch_defaults.go;
        kubeflow/trainer@v2.3.0:pkg/runtime/framework/plugins/torch/torch.go
    """

    api: Api
    pod: TrainingPod
    num_nodes: int = 1
    nproc_per_node: int | None = None
    restart_policy: RestartPolicy | None = None
    backoff_limit: int = 2
    active_deadline_seconds: int | None = None
    ttl_seconds_after_finished: int | None = None
    suspend: bool = False

    def __post_init__(self) -> None:
        fields.whole_number("num_nodes", self.num_nodes, minimum=1)
        if self.nproc_per_node is not None:
            _check_processes(self.nproc_per_node, self.pod.request)
        if self.api == "Job" and self.num_nodes > 1:
            raise GpuConstructsError(
                f"num_nodes must be 1 for a Job, got {self.num_nodes}: its pods have no names with which they find "
                "each other. Use api='PyTorchJob' or 'TrainJob'"
            )
        if self.restart_policy == "ExitCode" and self.api != "PyTorchJob":
            raise GpuConstructsError(f"restart_policy 'ExitCode' needs a PyTorchJob, got {self.api!r}")
        by_operator = [] if self.api == "Job" else [name for name in self.pod.env if name in _SET_BY_OPERATORS]
        for name in by_operator:
            raise GpuConstructsError(f"env[{name!r}] must be absent: the Kubeflow operator of a {self.api} sets it")
        # The default command of the PyTorch image is a shell, so a command or a script is necessary.
        if self.pod.image == PYTORCH_IMAGE and not (self.pod.script or self.pod.command or self.pod.args):
            raise GpuConstructsError(
                f"script or command must have a value with the image {self.pod.image!r}, whose default command is a "
                "shell"
            )
        # The limits of a Job for retries and times apply to each API.
        self._run()

    def _run(self) -> Run:
        return Run.job(
            backoff_limit=self.backoff_limit,
            active_deadline_seconds=self.active_deadline_seconds,
            ttl_seconds_after_finished=self.ttl_seconds_after_finished,
            suspend=self.suspend,
        )

    @property
    def processes(self) -> int:
        """Number of processes of each pod. By default one process for each GPU, or one in total for MIG devices."""
        if self.nproc_per_node is not None:
            return self.nproc_per_node
        return self.pod.request.count if self.pod.request.mig_size is None else 1

    def rendered(self, name: str, namespace: str, *, pods_at_once: int | None = None) -> RenderedPod:
        """Return the manifest of the pods of the training, and the objects that the pods need, such as a ConfigMap.

        Args:
            name: Name of the Job, PyTorchJob or TrainJob.
            namespace: Name of the namespace of all objects.
            pods_at_once: Number of pods that mount the disks at the same time. None: ``num_nodes``.

        Raises:
            GpuConstructsError: Only one node can mount a disk, but several pods need it.
        """
        rendered = self.pod.render(
            name=name,
            namespace=namespace,
            component="training",
            container=CONTAINERS[self.api],
            command=launched(
                self.pod, nproc_per_node=self.processes, num_nodes=self.num_nodes, by_operator=self.api != "Job"
            ),
            env=_ENV,
            ports=_PORT if self.api == "PyTorchJob" else None,
            volumes={} if "/tmp" in self.pod.volumes else {"/tmp": volume.Volume.empty_dir(size_limit="10Gi")},
            pods_at_once=self.num_nodes if pods_at_once is None else pods_at_once,
        )
        # The training operator copies the restart policy of its replicas to the pods.
        policy = None if self.api == "PyTorchJob" else self.restart_policy or "Never"
        return replace(rendered, spec={**rendered.spec, "restartPolicy": policy})

    def manifests(self, rendered: RenderedPod, metadata: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Return the manifests of the objects that run the training, by construct ID.

        The result contains one Job, one PyTorchJob, or a TrainingRuntime and its TrainJob.

        Args:
            rendered: Manifest of the pods.
            metadata: Metadata of the Job, PyTorchJob or TrainJob.
        """
        template = {
            "metadata": {"labels": dict(rendered.metadata["labels"]), "annotations": POD_ANNOTATIONS},
            "spec": rendered.spec,
        }
        if self.api == "Job":
            made = self._run().manifest(metadata, rendered.spec, selector={})
            return {"Default": {**made, "spec": {**made["spec"], "template": template}}}
        if self.api == "PyTorchJob":
            return {"Default": _pytorch_job(self, template, metadata)}
        return {"runtime": _training_runtime(self, template, metadata), "Default": _train_job(self, metadata)}


def _check_processes(number: int, request: GpuRequest) -> None:
    fields.whole_number("nproc_per_node", number, minimum=1)
    count = request.count
    if request.resource_claim is None and number > count:
        raise GpuConstructsError(
            f"nproc_per_node must be at most the pod's {count} GPU{'s' if count > 1 else ''}, because NCCL does "
            f"not allow two processes on one GPU, got {number}"
        )


def _pytorch_job(job: TrainingJob, template: Mapping[str, Any], metadata: Mapping[str, Any]) -> dict[str, Any]:
    replica = {"restartPolicy": job.restart_policy or "OnFailure", "template": template}
    replicas = {"Master": {"replicas": 1, **replica}}
    if job.num_nodes > 1:
        replicas["Worker"] = {"replicas": job.num_nodes - 1, **replica}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": metadata,
        "spec": {
            # By default, torchrun counts the GPUs that nvidia-smi shows. That number can be wrong.
            "nprocPerNode": str(job.processes),
            "pytorchReplicaSpecs": replicas,
            "runPolicy": {
                "activeDeadlineSeconds": job.active_deadline_seconds,
                "backoffLimit": job.backoff_limit,
                # With the default, None, workers that hang keep their GPUs after the master ends.
                "cleanPodPolicy": "Running",
                "suspend": job.suspend or None,
                "ttlSecondsAfterFinished": job.ttl_seconds_after_finished,
            },
        },
    }


def _training_runtime(job: TrainingJob, template: Mapping[str, Any], metadata: Mapping[str, Any]) -> dict[str, Any]:
    replicated = {
        "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
        "spec": {"backoffLimit": job.backoff_limit, "template": template},
    }
    labels = {**metadata["labels"], "trainer.kubeflow.org/framework": "torch"}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainingRuntime",
        "metadata": {**metadata, "labels": labels},
        "spec": {
            "mlPolicy": {"numNodes": job.num_nodes, "torch": {}},
            "template": {
                "spec": {
                    "replicatedJobs": [{"name": "node", "template": replicated}],
                    "ttlSecondsAfterFinished": job.ttl_seconds_after_finished,
                }
            },
        },
    }


def _train_job(job: TrainingJob, metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": metadata,
        "spec": {
            "activeDeadlineSeconds": job.active_deadline_seconds,
            "runtimeRef": {
                "apiGroup": "trainer.kubeflow.org",
                "kind": "TrainingRuntime",
                "name": metadata["name"],
            },
            "suspend": job.suspend or None,
            # If the number is missing, the operator counts resources with `gpu` in their name, and otherwise CPUs. The
            # name of a MIG resource does not contain `gpu`.
            "trainer": {"numNodes": job.num_nodes, "numProcPerNode": job.processes},
        },
    }


class PyTorchTraining(TrainingObject):
    """A PyTorch training: a Job, or a custom resource of a Kubeflow operator for several nodes.

    Emits one of these objects, depending on ``api``:

    - ``Job``: a Job of one pod on one node. It needs no operator.
    - ``PyTorchJob``: a PyTorchJob of the Kubeflow training operator (1.9, ``kubeflow.org/v1``) with a Master and
      ``num_nodes - 1`` Workers.
    - ``TrainJob``: a TrainJob of Kubeflow Trainer (2.3, ``trainer.kubeflow.org/v1alpha1``), and a TrainingRuntime in
      the same namespace. The TrainingRuntime contains the complete pod template, because a TrainJob cannot set the
      runtime class that GPU pods on Talos need.

    Also emits an immutable ConfigMap for the script, a PersistentVolumeClaim for each ``VolumeClaim``, and a
    ResourceClaimTemplate if the backend of the profile is ``Backend.dra_claims()``.

    The pod runs a script with ``python`` or, if the training has several processes, with ``torchrun``. A ``command``
    runs unchanged, so for several processes it must start ``torchrun`` itself. The operators set the options of
    ``torchrun`` as environment variables ``PET_*``. An annotation disables the Istio sidecar of the pods, because the
    sidecar would never end.

    Attributes:
        name: Name of the Job, PyTorchJob or TrainJob.
        namespace: Name of the namespace of all objects.
        api_object: The Job, PyTorchJob or TrainJob.

    Source:
        kubeflow/training-operator@v1.9.4:pkg/webhooks/pytorch/pytorchjob_webhook.go;
        kubeflow/trainer@v2.3.0:manifests/base/runtimes/torch_distributed.yaml
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        pod: TrainingPod,
        api: Api = "Job",
        num_nodes: int = 1,
        nproc_per_node: int | None = None,
        restart_policy: RestartPolicy | None = None,
        backoff_limit: int = 2,
        active_deadline_seconds: int | None = None,
        ttl_seconds_after_finished: int | None = None,
        suspend: bool = False,
        **options: Unpack[ObjectOptions],
    ) -> None:
        """Create the objects of the training.

        Args:
            scope: Chart, or a construct in a chart.
            id: ID of the construct. It is also the name of the objects, unless you set ``name``.
            pod: Options of each pod, such as its image, script and GPUs.
            api: API that runs the training: ``Job``, ``PyTorchJob`` or ``TrainJob``.
            num_nodes: Number of pods that train together (nodes, in PyTorch). For several pods, ``api`` must be
                ``PyTorchJob`` or ``TrainJob``. Each pod starts as soon as its GPUs are free, and then keeps the GPUs
                while it waits for the other pods. A queue of Kueue can start all pods together. The construct warns if
                several pods have neither ``suspend=True`` nor the label ``kueue.x-k8s.io/queue-name``.
            nproc_per_node: Number of processes of each pod. None: one process for each GPU. For MIG devices, one
                process in total, because a CUDA process sees only one MIG device. The construct always sets this
                number, because the operators do not count MIG devices.
            restart_policy: Action after a failure. With ``Never``, a Job or TrainJob starts a new pod, perhaps on
                another GPU, and keeps the log of the failed pod. A PyTorchJob with ``Never`` does not retry. With
                ``OnFailure``, the container restarts in the same pod. ``ExitCode``, for a PyTorchJob only, retries exit
                codes above 127. None: ``OnFailure`` for a PyTorchJob, otherwise ``Never``.
            backoff_limit: Number of retries. The default is 2, not 6 as in Kubernetes, because each retry needs the
                GPUs again. All pods of a TrainJob together have this number of retries, because one Job runs them.
            active_deadline_seconds: Time after which Kubernetes or the operator stops the training, in seconds. None:
                never.
            ttl_seconds_after_finished: Time after which Kubernetes or the operator deletes the finished training, in
                seconds. For a TrainJob, this deletes only the pods. None: never, because GitOps tools would create a
                deleted training again.
            suspend: Whether the training waits until a user or a queue such as Kueue sets ``suspend`` to False.
            options: Options of the Job, PyTorchJob or TrainJob. ``name`` has at most 52 characters.

        Raises:
            GpuConstructsError: If a value is not allowed, or if the API does not support an option.
        """
        job = TrainingJob(
            api=api,
            pod=pod,
            num_nodes=num_nodes,
            nproc_per_node=nproc_per_node,
            restart_policy=restart_policy,
            backoff_limit=backoff_limit,
            active_deadline_seconds=active_deadline_seconds,
            ttl_seconds_after_finished=ttl_seconds_after_finished,
            suspend=suspend,
        )
        name = name_given(id, options)
        require_name(name)
        rendered = job.rendered(name, namespace_in(scope, options.get("namespace")))
        metadata = rendered.described(pod.request, options)
        if num_nodes > 1 and not suspend and KUEUE_QUEUE not in metadata["labels"]:
            gpus = num_nodes * pod.request.count
            warn(
                f"{scope.node.path}/{id}: the {num_nodes} pods start one by one. With fewer than {gpus} GPUs free, the "
                "started pods wait forever and keep their GPUs. Let Kueue start them together "
                f"(labels={{{KUEUE_QUEUE!r}: ...}}), or pass suspend=True"
            )
        super().__init__(scope, id)
        self._emit(pod, metadata, {**rendered.beside, **job.manifests(rendered, metadata)})
