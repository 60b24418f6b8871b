"""What Kubernetes, Kubeflow's training operator and Kubeflow Trainer make of a training pod, as plain manifests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from gpu_constructs import _fields
from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.recipes.training_pod import RenderedPod, TrainingPod
from gpu_constructs.workload.controller import Controller
from gpu_constructs.workload.volume import Volume

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
        _fields.whole_number("num_nodes", self.num_nodes, minimum=1)
        if self.nproc_per_node is not None:
            _fields.whole_number("nproc_per_node", self.nproc_per_node, minimum=1)
            count = self.pod.request.count
            if self.pod.request.resource_claim is None and self.nproc_per_node > count:
                raise GpuConstructsError(
                    f"nproc_per_node must be at most the pod's {count} GPU{'s' if count > 1 else ''}, since NCCL takes "
                    f"no two processes on one; got {self.nproc_per_node}"
                )
        if self.api == "Job" and self.num_nodes > 1:
            raise GpuConstructsError(
                f"num_nodes must be 1 for api 'Job', got {self.num_nodes}: its pods have no names by which they could "
                "find each other; use api='PyTorchJob' or 'TrainJob'"
            )
        if self.restart_policy == "ExitCode" and self.api != "PyTorchJob":
            raise GpuConstructsError(f"restart_policy 'ExitCode' needs api 'PyTorchJob'; got {self.api!r}")
        if self.api != "Job":
            for name in self.pod.env:
                if name in _SET_BY_OPERATORS:
                    raise GpuConstructsError(f"env[{name!r}] must be left out: the operator of a {self.api} sets it")
        if not self.pod.runs_something:
            raise GpuConstructsError(
                f"script or command is required with the image {self.pod.image!r}, which runs a shell by itself"
            )
        # Every API counts and times its pods as a Job does.
        self._controller()

    def _controller(self) -> Controller:
        return Controller(
            kind="Job",
            backoff_limit=self.backoff_limit,
            active_deadline_seconds=self.active_deadline_seconds,
            ttl_seconds_after_finished=self.ttl_seconds_after_finished,
            suspend=self.suspend,
        )

    @property
    def processes(self) -> int:
        """Processes of a pod."""
        return self.pod.processes if self.nproc_per_node is None else self.nproc_per_node

    def rendered(self, name: str, namespace: str, *, pods_at_once: int | None = None) -> RenderedPod:
        """Give its pods.

        Args:
            name: Of the object that runs them.
            namespace: Likewise.
            pods_at_once: How many share its disks. None: those of this job.

        Raises:
            GpuConstructsError: A disk that serves one node for pods on several.
        """
        by_operator = self.api != "Job"
        return self.pod.render(
            name=name,
            namespace=namespace,
            component="training",
            container=CONTAINERS[self.api],
            command=self.pod.launched(nproc_per_node=self.processes, num_nodes=self.num_nodes, by_operator=by_operator),
            env=_ENV,
            ports=_PORT if self.api == "PyTorchJob" else None,
            volumes={} if "/tmp" in self.pod.volumes else {"/tmp": Volume.empty_dir(size_limit="10Gi")},
            # The training operator writes the policy of its replicas into the pods.
            restart_policy=None if self.api == "PyTorchJob" else self.restart_policy or "Never",
            pods_at_once=self.num_nodes if pods_at_once is None else pods_at_once,
        )

    def manifests(self, rendered: RenderedPod, metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Give the object that runs the pods, last, and before it what it refers to."""
        if self.api == "Job":
            made = self._controller().manifest(metadata, rendered.spec, selector=rendered.labels)
            return [{**made, "spec": {**made["spec"], "template": self._template(rendered)}}]
        if self.api == "PyTorchJob":
            return [self._pytorch_job(rendered, metadata)]
        return [self._training_runtime(rendered, metadata), self._train_job(metadata)]

    def _template(self, rendered: RenderedPod) -> dict[str, Any]:
        return {
            "metadata": {"labels": dict(rendered.labels), "annotations": POD_ANNOTATIONS},
            "spec": rendered.spec,
        }

    def _pytorch_job(self, rendered: RenderedPod, metadata: Mapping[str, Any]) -> dict[str, Any]:
        replica = {"restartPolicy": self.restart_policy or "OnFailure", "template": self._template(rendered)}
        replicas = {"Master": {"replicas": 1, **replica}}
        if self.num_nodes > 1:
            replicas["Worker"] = {"replicas": self.num_nodes - 1, **replica}
        return {
            "apiVersion": "kubeflow.org/v1",
            "kind": "PyTorchJob",
            "metadata": metadata,
            "spec": {
                # By itself the operator leaves counting to torchrun, which counts what nvidia-smi would show.
                "nprocPerNode": str(self.processes),
                "pytorchReplicaSpecs": replicas,
                "runPolicy": {
                    "activeDeadlineSeconds": self.active_deadline_seconds,
                    "backoffLimit": self.backoff_limit,
                    # Its default, None, lets workers that hang hold their GPUs after the master has ended.
                    "cleanPodPolicy": "Running",
                    "suspend": self.suspend or None,
                    "ttlSecondsAfterFinished": self.ttl_seconds_after_finished,
                },
            },
        }

    def _training_runtime(self, rendered: RenderedPod, metadata: Mapping[str, Any]) -> dict[str, Any]:
        job = {
            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
            "spec": {"backoffLimit": self.backoff_limit, "template": self._template(rendered)},
        }
        labels = {**metadata["labels"], "trainer.kubeflow.org/framework": "torch"}
        return {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainingRuntime",
            "metadata": {**metadata, "labels": labels},
            "spec": {
                "mlPolicy": {"numNodes": self.num_nodes, "torch": {}},
                "template": {
                    "spec": {
                        "replicatedJobs": [{"name": "node", "template": job}],
                        "ttlSecondsAfterFinished": self.ttl_seconds_after_finished,
                    }
                },
            },
        }

    def _train_job(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "metadata": metadata,
            "spec": {
                "activeDeadlineSeconds": self.active_deadline_seconds,
                "runtimeRef": {
                    "apiGroup": "trainer.kubeflow.org",
                    "kind": "TrainingRuntime",
                    "name": metadata["name"],
                },
                "suspend": self.suspend or None,
                # Without a number the operator counts resources with "gpu" in their name, which a MIG device has not,
                # and then CPUs.
                "trainer": {"numNodes": self.num_nodes, "numProcPerNode": self.processes},
            },
        }
