"""vLLM: a server of language models with OpenAI's API."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Unpack

from constructs import Construct

from gpu_constructs.errors import GpuConstructsError, refuse_if
from gpu_constructs.kube import container, fields, volume
from gpu_constructs.kube.env import AnyEnvValue
from gpu_constructs.kube.resources import Resources
from gpu_constructs.recipes.http_server import (
    HttpServer,
    VramBudget,
    is_shared,
    refuse_flags,
    refuse_variables,
    startup_probe,
    vram_budget,
    with_defaults,
)
from gpu_constructs.tree.construct import checked
from gpu_constructs.workload.gpu_request import GpuRequest
from gpu_constructs.workload.options import WorkloadOptions
from gpu_constructs.workload.run import Run

IMAGE = "docker.io/vllm/vllm-openai:v0.26.0"

_PORT = 8000
_DATA = "/data"
_SHARED_MEMORY = "2Gi"
_RESOURCES: Resources = {"requests": {"cpu": "2", "memory": "8Gi"}, "limits": {"memory": "32Gi"}}
_RESERVED = dict.fromkeys(("HOME", "HF_HOME"), f"whose disk is at {_DATA}")
_KEYWORD_OF = {
    "--model": "model",
    "--gpu-memory-utilization": "gpu_memory_utilization",
    "--max-model-len": "max_model_len",
    "--pipeline-parallel-size": "pipeline_parallel_size",
    "-pp": "pipeline_parallel_size",
    "--served-model-name": "served_model_name",
    "--tensor-parallel-size": "gpus",
    "-tp": "gpus",
    "--hf-token": "hf_token",
}
_FIXED = {
    **dict.fromkeys(
        ("--host", "--port", "--uds", "--data-parallel-size", "-dp"),
        "Service, probes and the allocated GPUs count on the recipe's",
    ),
    "--api-key": "it would stand in the manifest; pass env={'VLLM_API_KEY': EnvValue.secret(...)}",
    "--kv-cache-memory-bytes": "vLLM would then not look at gpu_memory_utilization",
    "--download-dir": "models belong on the disk, where HF_HOME is",
}
_MODEL = re.compile(
    r"(?:[a-z0-9]+://|/)?[A-Za-z0-9][-A-Za-z0-9_.]*(?:/[A-Za-z0-9][-A-Za-z0-9_.]*)*(?::[-A-Za-z0-9_.]+)?\Z"
)


class Vllm(HttpServer):
    """A vLLM server for one model, with a disk for what it downloads and compiles.

    Emits a Deployment, a Service and a PersistentVolumeClaim. A Deployment rather than a StatefulSet, since the disk
    is a cache that every pod could fill again, and clients want one address, which the headless Service of a
    StatefulSet is not. One replica is replaced by ``Recreate``; for several all pods share one disk, which
    ``volumes={"/data": ...}`` must then bring.

    The pods run as the image's user ``vllm`` (uid 2000) on a read-only root with ``HOME`` on the disk, so a namespace
    of level ``restricted`` takes them. PyTorch asks for the user's name; any other id is fine since ``USER`` is set.

    **The budget.** vLLM takes ``--gpu-memory-utilization`` of *all* memory of the GPU at its start, 0.92 by its own
    default, and ends where less is free. ``gpus=GpuRequest(vram=...)`` becomes that number, rounded down to hundredths:
    8192 MiB of ``vram="8Gi"`` by 16303 of an RTX 5070 Ti is 0.5025, so 0.50. The memory comes from
    ``request.products`` or ``gpu_memory``; one of the two is required then. On a shared GPU (``profile.sharing``, slots
    as ``resource``, an existing claim) either ``vram`` or ``gpu_memory_utilization`` is required, for the default would
    leave the neighbours nothing. Two servers that start at once both look at memory that is still free: start one after
    the other.

    Source:
        vllm-project/vllm:vllm/config/cache.py, docs/deployment/docker.md, docs/deployment/k8s.md,
        docker/entrypoints/vllm-nonroot-entrypoint.sh
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        model: str,
        served_model_name: str | None = None,
        max_model_len: int | None = None,
        gpu_memory_utilization: int | float | None = None,
        pipeline_parallel_size: int = 1,
        hf_token: AnyEnvValue | None = None,
        args: Sequence[str] = (),
        storage: str = "100Gi",
        storage_class_name: str | None = None,
        shared_memory: str | None = None,
        startup_seconds: int = 1800,
        replicas: int = 1,
        gpu_memory: str | None = None,
        image: str = IMAGE,
        run_as_user: int = 2000,
        **options: Unpack[WorkloadOptions],
    ) -> None:
        """Make the server.

        Args:
            scope: A chart, or a construct in one.
            id: Construct id, and the name unless ``name`` says otherwise.
            model: A repository of Hugging Face (``Qwen/Qwen3-8B``), or a path in the container.
            served_model_name: What clients call it. None: ``model``.
            max_model_len: Tokens of context. None: all that the model was made for, which often does not fit.
            gpu_memory_utilization: Part of each GPU's memory, above 0 and at most 1. None: of the budget, else vLLM's
                own 0.92.
            pipeline_parallel_size: Parts that the model's layers are split into, one after the other. Each layer is
                split over ``gpus`` by this number (``--tensor-parallel-size``), which must divide the model's attention
                heads: with 3 GPUs pass 3.
            hf_token: For models that want a login: ``EnvValue.secret("hugging-face", key="token")``.
            args: Further flags of ``vllm serve``.
            storage: Size of the disk for models and compiled kernels.
            storage_class_name: Kind of storage. None: the cluster's default.
            shared_memory: Size of ``/dev/shm``. None: 2Gi for several GPUs, through which their processes talk, and the
                runtime's 64 MiB for one; nothing under MPS, which has its own memory there.
            startup_seconds: How long a start may take; the first one downloads the model.
            replicas: Pods, each with GPUs of its own.
            gpu_memory: All memory of a GPU as ``nvidia-smi`` shows it, as a quantity, for the budget. None: that of
                ``request.products``, where they are known.
            image: The official one; releases before the user ``vllm`` came (spring 2026) work alike.
            run_as_user: User id, and group of the disk; not 0.
            options: ``gpus`` are those of one pod. vLLM needs compute capability 7.5; say
                ``GpuRequest(min_compute_capability="7.5")`` where older boards are about and GPU Feature Discovery is
                there to label them. ``profile`` says whether GPUs are shared. ``env`` wins over ``USER`` and
                ``HF_TOKEN``; ``HOME`` and ``HF_HOME`` are the recipe's. A volume at ``/data`` replaces the disk.
                ``resources`` are requests of 2 CPUs and 8Gi and a memory limit of 32Gi by default.

        Raises:
            GpuConstructsError: No name of a model, a part of a GPU that cannot be said or is not said, a flag that has
                a keyword or that the recipe sets, several replicas on a disk for one, or what ``GpuWorkload`` refuses.
        """
        _check_model("model", model)
        fields.whole_number("run_as_user", run_as_user, minimum=1)
        refuse_flags(args, keyword_of=_KEYWORD_OF, fixed=_FIXED, underscores=True)
        refuse_variables(options, _RESERVED)
        _check_token(hf_token)
        run = Run.deployment(replicas=replicas)
        if replicas > 1 and _DATA not in (options.get("volumes") or {}):
            raise GpuConstructsError(
                f"replicas of {replicas} need a disk that several nodes mount; pass volumes={{'{_DATA}': "
                "VolumeClaim(storage=..., access_modes=['ReadWriteMany'])}"
            )
        gpus, profile = options.get("gpus", 1), options.get("profile")
        count = _count(gpus)
        flags = flags_of(
            model,
            count=count,
            pipeline_parallel_size=pipeline_parallel_size,
            served_model_name=served_model_name,
            max_model_len=max_model_len,
            utilization=utilization_of(
                gpu_memory_utilization, vram_budget(gpus, gpu_memory), is_shared=is_shared(profile, gpus)
            ),
        )
        if shared_memory is None and count > 1 and not (profile and profile.has_mps):
            shared_memory = _SHARED_MEMORY
        super().__init__(
            scope,
            id,
            image=image,
            run=run,
            command=["vllm", "serve"],
            args=[*flags, *args],
            ports={"http": _PORT},
            startup_probe=startup_probe("/health", startup_seconds),
            readiness_probe=container.Probe.http_get("/health", port="http"),
            liveness_probe=container.Probe.http_get("/health", port="http", failure_threshold=6),
            shared_memory=shared_memory,
            run_as_user=run_as_user,
            fs_group=run_as_user,
            read_only_root_filesystem=True,
            termination_grace_period_seconds=120,
            **with_defaults(
                options,
                env={
                    "HOME": _DATA,
                    "HF_HOME": f"{_DATA}/huggingface",
                    "USER": "vllm",
                    **({} if hf_token is None else {"HF_TOKEN": hf_token}),
                },
                volumes={
                    _DATA: volume.VolumeClaim(storage=storage, storage_class_name=storage_class_name),
                    "/tmp": volume.Volume.empty_dir(size_limit="10Gi"),
                },
                resources=_RESOURCES,
            ),
        )


def _check_token(given: object) -> None:
    if given is not None and getattr(given, "value_from", None) is None:
        raise GpuConstructsError(
            "hf_token must be EnvValue.secret(<name>, key=<key>), for a manifest is no place for a token; got "
            f"{type(given).__name__}, not shown here"
        )


def _count(gpus: object) -> int:
    """Return the number of GPUs of a pod. GpuWorkload refuses anything but a whole number, and says more."""
    if not isinstance(gpus, GpuRequest):
        return gpus if isinstance(gpus, int) else 1
    if gpus.mig_size is not None and gpus.count > 1:
        raise GpuConstructsError(
            f"request.count must be 1 for MIG devices, of which CUDA shows a process one; got {gpus.count}; ask "
            "for a larger profile, or for replicas"
        )
    return gpus.count


def utilization_of(given: float | None, budget: VramBudget | None, *, is_shared: bool) -> str | None:
    """Return the part of a GPU's memory, as the flag wants it; None for vLLM's own default.

    Raises:
        GpuConstructsError: It is out of range, said twice, or cannot be computed.
    """
    if given is not None:
        if budget is not None:
            raise GpuConstructsError(
                "gpu_memory_utilization and request.vram must not both be given; leave one of them out"
            )
        refuse_if(not 0 < given <= 1, "gpu_memory_utilization", "be above 0 and at most 1", given)
        return f"{given:g}"
    if budget is None:
        if is_shared:
            raise GpuConstructsError(
                "gpus must say a budget where GPUs are shared: vLLM takes 0.92 of all memory by default and leaves its "
                "neighbours nothing; pass gpus=GpuRequest(vram='8Gi', products=[...]), or gpu_memory=... in place of "
                "products, or gpu_memory_utilization=..."
            )
        return None
    if budget.hundredths is None:
        raise GpuConstructsError(
            f"request.vram of {budget.vram} needs the memory of the GPU, of which vLLM takes a part; pass gpu_memory, "
            "e.g. '16303Mi' as nvidia-smi shows it, or a known board in request.products"
        )
    if budget.hundredths < 1:
        raise GpuConstructsError(
            f"request.vram of {budget.vram} is less than a hundredth of the GPU's {budget.total_mib}Mi"
        )
    return f"{budget.hundredths // 100}.{budget.hundredths % 100:02d}"


def flags_of(
    model: str,
    *,
    count: int,
    pipeline_parallel_size: int,
    served_model_name: str | None,
    max_model_len: int | None,
    utilization: str | None,
) -> list[str]:
    """Return the arguments of ``vllm serve`` that keywords stand for.

    Raises:
        GpuConstructsError: GPUs that cannot be split so, or a number that is none.
    """
    fields.whole_number("pipeline_parallel_size", pipeline_parallel_size, minimum=1)
    if count % pipeline_parallel_size:
        raise GpuConstructsError(
            f"pipeline_parallel_size must divide the number of GPUs, {count}; got {pipeline_parallel_size}"
        )
    if max_model_len is not None:
        fields.whole_number("max_model_len", max_model_len, minimum=1)
    if served_model_name is not None:
        _check_model("served_model_name", served_model_name)
    tensor_parallel_size = count // pipeline_parallel_size
    given: dict[str, object] = {
        "--served-model-name": served_model_name,
        "--tensor-parallel-size": tensor_parallel_size if tensor_parallel_size > 1 else None,
        "--pipeline-parallel-size": pipeline_parallel_size if pipeline_parallel_size > 1 else None,
        "--gpu-memory-utilization": utilization,
        "--max-model-len": max_model_len,
    }
    said = [word for flag, value in given.items() if value is not None for word in (flag, str(value))]
    return [model, "--host", "0.0.0.0", "--port", str(_PORT), *said]


def _check_model(field: str, given: str) -> None:
    refuse_if(not _MODEL.match(given), field, "be a repository like 'Qwen/Qwen3-8B', or a path in the container", given)
