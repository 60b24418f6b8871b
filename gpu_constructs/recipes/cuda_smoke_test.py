"""`CudaSmokeTest`: a Job that tests GPUs and shows how many GPU slots a cluster advertises."""

from __future__ import annotations

from math import ceil
from typing import Unpack

from constructs import Construct

from gpu_constructs.errors import GpuConstructsError
from gpu_constructs.kube import fields
from gpu_constructs.kube.resources import Resources
from gpu_constructs.recipes.http_server import with_defaults
from gpu_constructs.tree.construct import checked
from gpu_constructs.workload.gpu_request import GpuRequest
from gpu_constructs.workload.options import WorkloadOptions
from gpu_constructs.workload.run import Run
from gpu_constructs.workload.workload import GpuWorkload

DEFAULT_IMAGE = "nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0-ubuntu22.04"

_RESOURCES: Resources = {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "1Gi"}}
_TIME_TO_START = 600


class CudaSmokeTest(GpuWorkload):
    """A Job whose pods test a GPU and then keep it for a while, so that you can count the GPU slots of a cluster.

    A slot is one unit of the extended resource that nodes advertise: a GPU, one of the ``replicas`` of a shared GPU, or
    a MIG device. With claims, a slot is a GPU that a claim allocates. By default, each pod uses one slot. With
    ``gpus=2``, each pod uses two slots, so ``slots`` is then the number of pairs.

    Emits one Job that creates ``slots + beyond`` indexed pods at once. Each pod logs its GPU (``nvidia-smi -L``), adds
    two vectors on the GPU, logs ``Test PASSED``, and keeps its slot for ``hold_seconds``. If exactly ``slots`` slots
    are free, ``slots`` pods run at once, and ``beyond`` pods stay Pending until other pods of the Job end. If more
    than ``slots`` pods run at once, the cluster advertises more slots than you expect. If fewer pods run at once, a pod
    of another workload uses a slot, or a node does not share its GPUs.

    One failed pod fails the Job (``backoffLimit: 0``), because a retry would hide the failure. The Job has no
    ``podFailurePolicy``. If a drain deletes a pod, the result of the Job is therefore meaningless; start the test
    again.

    The pods satisfy the Pod Security level ``restricted``.

    Attributes:
        slots: Number of pods that must run at once.
        beyond: Number of additional pods, which must wait for a slot.

    Source:
        NVIDIA/gpu-operator@v26.7.0:tests; NVIDIA/k8s-device-plugin@v0.20.0:README.md
    """

    _NOT_TAKEN: dict[str, str] = {}  # noqa: RUF012

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        slots: int,
        beyond: int = 1,
        hold_seconds: int = 60,
        disable_require: bool = False,
        image: str = DEFAULT_IMAGE,
        run_as_user: int = 1000,
        active_deadline_seconds: int | None = None,
        ttl_seconds_after_finished: int | None = None,
        **options: Unpack[WorkloadOptions],
    ) -> None:
        """Create the Job.

        Args:
            scope: Chart, or a construct in a chart.
            id: ID of the construct.
            slots: Number of pods that must run at once.
            beyond: Number of additional pods, which must wait for a slot. If they wait, the cluster has no more free
                slots than you expect.
            hold_seconds: Time for which a pod keeps its slot after the test of the GPU, in seconds. The pods of one
                node start together, so 60 is enough. Increase the time if nodes pull the image at different speeds.
            disable_require: Whether the container starts even if the NVIDIA driver is too old for the CUDA release of
                the image (``NVIDIA_DISABLE_REQUIRE``). The test then shows whether the driver works anyway.
            image: Image with a shell and ``/cuda-samples/vectorAdd``.
            run_as_user: User ID of the processes.
            active_deadline_seconds: Time after which the Job fails, in seconds. None: ten minutes for the start, plus
                ``hold_seconds`` for each group of ``slots`` pods, one after the other.
            ttl_seconds_after_finished: Time after which Kubernetes deletes the finished Job, in seconds. None: never.
                GitOps tools would create a deleted Job again and repeat the test.
            options: Options of ``GpuWorkload``. For this test:

                - ``gpus`` is the number of slots that each pod uses. To count MIG devices, pass
                  ``GpuRequest(mig_profile=...)``.
                - ``node_selector`` can select one node by its label ``kubernetes.io/hostname``, to count the slots of
                  this node.
                - ``name`` is ``gpu-test`` by default.
                - ``resources`` by default request 100m CPU and 256Mi, with a memory limit of 1Gi.
                - ``priority_class_name`` must not be a class that evicts other pods.

        Raises:
            GpuConstructsError: If a number is below its minimum, if ``active_deadline_seconds`` is too short for all
                pods, or if ``gpus`` uses a ``resource_claim``, which has no slots.
        """
        fields.whole_number("slots", slots, minimum=1)
        fields.whole_number("beyond", beyond, minimum=0)
        fields.whole_number("hold_seconds", hold_seconds, minimum=1)
        gpus = options.get("gpus")
        if isinstance(gpus, GpuRequest) and gpus.resource_claim is not None:
            raise GpuConstructsError(
                "gpus.resource_claim must be absent, because a shared claim has no slots to count. Remove it. Each pod "
                "then claims its own GPU"
            )
        least = hold_seconds * ceil((slots + beyond) / slots)
        deadline = _TIME_TO_START + least if active_deadline_seconds is None else active_deadline_seconds
        if deadline <= least:
            raise GpuConstructsError(
                f"active_deadline_seconds must be more than {least}, got {active_deadline_seconds}. The Job has "
                f"{slots + beyond} pods, but only {slots} of them run at once, each for hold_seconds={hold_seconds}. "
                "Remove active_deadline_seconds, or reduce hold_seconds"
            )
        super().__init__(
            scope,
            id,
            image=image,
            run=Run.job(
                completions=slots + beyond,
                completion_mode="Indexed",
                backoff_limit=0,
                active_deadline_seconds=deadline,
                ttl_seconds_after_finished=ttl_seconds_after_finished,
            ),
            command=["sh", "-c", command(hold_seconds)],
            run_as_user=run_as_user,
            read_only_root_filesystem=True,
            # The shell does not react to the stop signal, and the pod has nothing to finish.
            termination_grace_period_seconds=1,
            **with_defaults(
                {"name": "gpu-test", **options},
                env={"NVIDIA_DISABLE_REQUIRE": "true"} if disable_require else {},
                resources=_RESOURCES,
            ),
        )
        self.slots = slots
        self.beyond = beyond


def command(hold_seconds: int) -> str:
    """Return the shell command of each pod, which tests the GPU and then sleeps for ``hold_seconds`` seconds."""
    # Only the vector addition decides the result. nvidia-smi needs the driver capability utility, which an image can
    # lack.
    return f"nvidia-smi -L; /cuda-samples/vectorAdd && sleep {hold_seconds}"
