"""A training with PyTorch, by the API that the cluster has for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from constructs import Construct

from gpu_constructs._construct import GpuObject, checked
from gpu_constructs._manifest import Manifest
from gpu_constructs._references import NamedObject
from gpu_constructs.errors import warn
from gpu_constructs.namespace import namespace_in
from gpu_constructs.recipes.training_job import Api, RestartPolicy, TrainingJob
from gpu_constructs.recipes.training_pod import TrainingPod, require_name

KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"


class PyTorchTraining(GpuObject):
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
        name: str | None = None,
        namespace: str | NamedObject | None = None,
        restart_policy: RestartPolicy | None = None,
        backoff_limit: int = 2,
        active_deadline_seconds: int | None = None,
        ttl_seconds_after_finished: int | None = None,
        suspend: bool = False,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        ignore_rules: Sequence[str] = (),
    ) -> None:
        """Make the training.

        Args:
            scope: A chart, or a construct in one.
            id: Construct id, and the name unless ``name`` says otherwise.
            pod: What runs, with which GPUs; ``gpus`` of it are for each node.
            api: ``Job``, ``PyTorchJob`` or ``TrainJob``.
            num_nodes: Pods that train together. More than one needs an operator; they start one by one as GPUs are
                free, and those that have started wait for the rest and hold theirs. So a warning says it unless a label
                ``kueue.x-k8s.io/queue-name`` or ``suspend`` leaves the start to somebody who sees to all of them.
            nproc_per_node: Processes of each pod. None: one for each GPU, of MIG devices one, since CUDA shows no more
                to a process. It is always written: the operators count GPUs in ways that miss MIG devices.
            name: Name of the object; at most 52 characters.
            namespace: A name, a ``GpuNamespace`` or a cdk8s-plus Namespace. None: the chart's namespace,
                else ``default``.
            restart_policy: ``Never`` starts a new pod, perhaps on another GPU, and keeps the log of the failed one;
                ``OnFailure`` starts the container again in the same pod; ``ExitCode``, of a PyTorchJob, retries only
                for codes above 127. None: ``Never``, but ``OnFailure`` for a PyTorchJob, which with ``Never`` retries
                nothing.
            backoff_limit: Retries; 2 where Kubernetes has 6, since each holds the GPUs again. All pods of a
                TrainJob share them, since one Job runs them all.
            active_deadline_seconds: When it is stopped at the latest. None: never.
            ttl_seconds_after_finished: When it is deleted after its end; of a TrainJob only its pods are. None: never,
                since GitOps tools would start a deleted one again.
            suspend: Whether it starts nothing until somebody sets it to false.
            labels: Further labels of the object.
            annotations: Of the object.
            ignore_rules: Codes of rules, like ``R13``, that ``synth`` does not hold against this object.

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
        name = id if name is None else name
        require_name(name)
        where = namespace_in(scope, namespace)
        rendered = job.rendered(name, where)
        metadata = rendered.metadata(name, where, labels, pod.annotations(annotations, ignore_rules))
        if num_nodes > 1 and not suspend and KUEUE_QUEUE not in (labels or {}):
            gpus = num_nodes * pod.request.count
            warn(
                f"{scope.node.path}/{id}: the {num_nodes} pods start one by one; with fewer than {gpus} GPUs free, "
                "those that have started wait for ever and hold theirs; have Kueue start them together "
                f"(labels={{{KUEUE_QUEUE!r}: ...}}), or pass suspend=True"
            )
        super().__init__(scope, id)
        self.name = name
        self.namespace = where
        self.provides = pod.allocation.profile.assumes
        for child, manifest in rendered.beside.items():
            Manifest(self, child, manifest)
        *before, main = job.manifests(rendered, metadata)
        for manifest in before:
            Manifest(self, "runtime", manifest)
        Manifest(self, "Default", main)
