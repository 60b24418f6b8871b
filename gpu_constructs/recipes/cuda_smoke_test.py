"""A test that counts the slots of GPUs that a cluster really has."""

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
    """Pods that compute something on a GPU and then hold it, so that what is free can be counted.

    Emits one Job of ``slots + beyond`` numbered pods, all wanted at once. Each logs the GPU it got
    (``nvidia-smi -L``), adds two vectors on it, logs ``Test PASSED``, and holds its slot for ``hold_seconds``. Where
    there are as many free slots as were said, ``slots`` pods run at once and ``beyond`` are Pending until one ends;
    then these run too, and the Job completes. More running says that more is advertised than was thought; fewer, that
    something else holds a slot or that a node does not share.

    A slot is what the device plugin advertises: ``GPUs x replicas`` of the sharing where GPUs are shared, else a
    GPU; a MIG device or a claimed GPU under DRA likewise. With ``gpus=2`` a pod holds two.

    A failed pod ends the Job (``backoffLimit: 0``), since a retry would hide it. There is no ``podFailurePolicy``
    either: a pod that a drain took away has shown nothing, so the test is to be started anew.

    The pods satisfy the Pod Security level ``restricted``.

    Attributes:
        slots: Pods that should run at once.
        beyond: Pods more than that.

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
        """Make the test.

        Args:
            scope: A chart, or a construct in one.
            id: Construct id.
            slots: Pods that should run at once.
            beyond: Pods more than that, which should wait: they show that nothing more is advertised. 0: none.
            hold_seconds: How long a pod keeps its slot after it has computed. 60 by default, since pods of one node
                start together; more where nodes pull the image at different speeds.
            disable_require: Whether the image runs on a driver older than its CUDA asks for, as on long-term branches
                (``NVIDIA_DISABLE_REQUIRE``): the container then starts, and only the computing shows what works.
            image: One with a shell and ``/cuda-samples/vectorAdd``.
            run_as_user: User id.
            active_deadline_seconds: When the test has failed at the latest. None: ten minutes to start in, and
                ``hold_seconds`` for each turn that the pods need.
            ttl_seconds_after_finished: When the finished Job is deleted. None: never, since GitOps tools would start a
                deleted one again.
            options: ``gpus`` are the slots that each pod holds; ``GpuRequest(mig_profile=...)`` counts MIG devices.
                ``node_selector`` with one node's name in ``kubernetes.io/hostname`` counts its slots alone. ``name`` is
                ``gpu-test`` by default. ``resources`` are requests of 100m and 256Mi and a limit of 1Gi by default. A
                ``priority_class_name`` that evicts would take slots from others.

        Raises:
            GpuConstructsError: Fewer slots than 1, a deadline before the last turn can end, or a shared claim, which
                has no slots.
        """
        fields.whole_number("slots", slots, minimum=1)
        fields.whole_number("beyond", beyond, minimum=0)
        fields.whole_number("hold_seconds", hold_seconds, minimum=1)
        gpus = options.get("gpus")
        if isinstance(gpus, GpuRequest) and gpus.resource_claim is not None:
            raise GpuConstructsError(
                "gpus must not name a resource_claim: pods share it without limit, so there are no slots to count; "
                "leave it out, and each pod claims a GPU of its own"
            )
        least = hold_seconds * ceil((slots + beyond) / slots)
        deadline = _TIME_TO_START + least if active_deadline_seconds is None else active_deadline_seconds
        if deadline <= least:
            raise GpuConstructsError(
                f"active_deadline_seconds must be more than {least}, which {slots + beyond} pods on {slots} slots hold "
                f"them for; got {active_deadline_seconds}; leave it out, or give less hold_seconds"
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
            # The shell takes no signal, and there is nothing to finish.
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
    """Return the line of shell that a pod runs."""
    # Only the computing decides: nvidia-smi is missing where the driver's utilities were not asked for.
    return f"nvidia-smi -L; /cuda-samples/vectorAdd && sleep {hold_seconds}"
