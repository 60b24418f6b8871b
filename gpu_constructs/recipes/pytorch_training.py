"""A training with PyTorch, by the API that the cluster has for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
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
from gpu_constructs.tree.construct import checked
from gpu_constructs.workload.gpu_request import GpuRequest
from gpu_constructs.workload.options import ObjectOptions, name_given
from gpu_constructs.workload.run import Run

Api = Literal["Job", "PyTorchJob", "TrainJob"]
RestartPolicy = Literal["Never", "OnFailure", "ExitCode"]

CONTAINERS: Mapping[Api, str] = {"Job": "training", "PyTorchJob": "pytorch", "TrainJob": "node"}
"""What the container is called; the operators look for theirs by that name."""

# Istio's proxy never ends, and a training whose pod does not end holds its GPUs.
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
    """A training pod, on so many nodes, and how its run ends.

    Raises:
        GpuConstructsError: A number out of range, or what the API does not have.

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
                f"num_nodes must be 1 for api 'Job', got {self.num_nodes}: its pods have no names by which they could "
                "find each other; use api='PyTorchJob' or 'TrainJob'"
            )
        if self.restart_policy == "ExitCode" and self.api != "PyTorchJob":
            raise GpuConstructsError(f"restart_policy 'ExitCode' needs api 'PyTorchJob'; got {self.api!r}")
        by_operator = [] if self.api == "Job" else [name for name in self.pod.env if name in _SET_BY_OPERATORS]
        for name in by_operator:
            raise GpuConstructsError(f"env[{name!r}] must be left out: the operator of a {self.api} sets it")
        # The image of PyTorch itself runs a shell.
        if self.pod.image == PYTORCH_IMAGE and not (self.pod.script or self.pod.command or self.pod.args):
            raise GpuConstructsError(
                f"script or command is required with the image {self.pod.image!r}, which runs a shell by itself"
            )
        # Every API counts and times its pods as a Job does.
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
        """Processes of a pod: by default one for each GPU; CUDA shows a process one MIG device only."""
        if self.nproc_per_node is not None:
            return self.nproc_per_node
        return self.pod.request.count if self.pod.request.mig_size is None else 1

    def rendered(self, name: str, namespace: str, *, pods_at_once: int | None = None) -> RenderedPod:
        """Return its pods.

        Args:
            name: Of the object that runs them.
            namespace: Likewise.
            pods_at_once: How many share its disks. None: those of this job.

        Raises:
            GpuConstructsError: A disk that serves one node for pods on several.
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
        # The training operator writes the policy of its replicas into the pods.
        policy = None if self.api == "PyTorchJob" else self.restart_policy or "Never"
        return replace(rendered, spec={**rendered.spec, "restartPolicy": policy})

    def manifests(self, rendered: RenderedPod, metadata: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Return the object that runs the pods and, before it, what it refers to, by child id."""
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
            f"nproc_per_node must be at most the pod's {count} GPU{'s' if count > 1 else ''}, since NCCL takes "
            f"no two processes on one; got {number}"
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
            # By itself the operator leaves counting to torchrun, which counts what nvidia-smi would show.
            "nprocPerNode": str(job.processes),
            "pytorchReplicaSpecs": replicas,
            "runPolicy": {
                "activeDeadlineSeconds": job.active_deadline_seconds,
                "backoffLimit": job.backoff_limit,
                # Its default, None, lets workers that hang hold their GPUs after the master has ended.
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
            # Without a number the operator counts resources with "gpu" in their name, which a MIG device has not,
            # and then CPUs.
            "trainer": {"numNodes": job.num_nodes, "numProcPerNode": job.processes},
        },
    }


class PyTorchTraining(TrainingObject):
    """A training with PyTorch: a Job, or one of Kubeflow's operators for several nodes.

    Emits, as ``api`` says:

    - ``Job``: a Job of one pod, for one node. Needs nothing but Kubernetes.
    - ``PyTorchJob``: a PyTorchJob of Kubeflow's training operator (1.9, ``kubeflow.org/v1``) with a Master and
      ``num_nodes - 1`` Workers.
    - ``TrainJob``: a TrainJob of Kubeflow Trainer (2.3, ``trainer.kubeflow.org/v1alpha1``) and a TrainingRuntime of its
      own in the same namespace. A TrainJob can name no runtime class, and without one the pods would see no GPU on
      Talos; so all of the pod is said in the TrainingRuntime.

    With it come an immutable ConfigMap for the script, a PersistentVolumeClaim for each ``VolumeClaim``, and a
    ResourceClaimTemplate where the profile's backend is ``Backend.dra_claims()``.

    A script is run by ``python``, or by ``torchrun`` where it has several processes. A ``command`` runs as it is: start
    it with ``torchrun`` yourself, the operators tell it the rest by ``PET_*``. The pods tell Istio to leave its proxy
    out, which would never end.

    Attributes:
        name: Name of the object.
        namespace: Name of its namespace.
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
        """Make the training.

        Args:
            scope: A chart, or a construct in one.
            id: Construct id, and the name unless ``name`` says otherwise.
            pod: What runs, with which GPUs; ``gpus`` of it are for each node.
            api: ``Job``, ``PyTorchJob`` or ``TrainJob``.
            num_nodes: Pods that train together. More than one needs an operator; they start one by one as GPUs are
                free, and those that have started wait for the rest and hold theirs. So a warning says it unless a label
                ``kueue.x-k8s.io/queue-name`` or ``suspend`` leaves the start to a queue that sees to all of them.
            nproc_per_node: Processes of each pod. None: one for each GPU, of MIG devices one, since CUDA shows no more
                to a process. It is always written: the operators count GPUs in ways that miss MIG devices.
            restart_policy: ``Never`` starts a new pod, perhaps on another GPU, and keeps the log of the failed one;
                ``OnFailure`` starts the container again in the same pod; ``ExitCode``, of a PyTorchJob, retries only
                for codes above 127. None: ``Never``, but ``OnFailure`` for a PyTorchJob, which with ``Never`` retries
                nothing.
            backoff_limit: Retries; 2 where Kubernetes has 6, since each holds the GPUs again. All pods of a
                TrainJob share them, since one Job runs them all.
            active_deadline_seconds: When it is stopped at the latest. None: never.
            ttl_seconds_after_finished: When it is deleted after its end; of a TrainJob only its pods are. None: never,
                since GitOps tools would start a deleted one again.
            suspend: Whether nothing starts until this is set to false.
            options: ``name`` has at most 52 characters.

        Raises:
            GpuConstructsError: A value above is not allowed, or does not fit the API.
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
                f"{scope.node.path}/{id}: the {num_nodes} pods start one by one; with fewer than {gpus} GPUs free, "
                "those that have started wait forever and hold theirs; have Kueue start them together "
                f"(labels={{{KUEUE_QUEUE!r}: ...}}), or pass suspend=True"
            )
        super().__init__(scope, id)
        self._emit(pod, metadata, {**rendered.beside, **job.manifests(rendered, metadata)})
