"""`Vllm`: a server for a language model, with the OpenAI API."""

from __future__ import annotations

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
_RESERVED = dict.fromkeys(("HOME", "HF_HOME"), f"its disk is at {_DATA}")
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
        "the Service, the probes or the allocated GPUs depend on the value that the recipe sets",
    ),
    "--api-key": "the manifest would contain it. Set env={'VLLM_API_KEY': EnvValue.secret(...)}",
    "--kv-cache-memory-bytes": "with it, vLLM ignores gpu_memory_utilization",
    "--download-dir": "models must be in HF_HOME on the disk",
}
_MODEL = fields.regex(
    r"(?:[a-z0-9]+://|/)?[A-Za-z0-9][-A-Za-z0-9_.]*(?:/[A-Za-z0-9][-A-Za-z0-9_.]*)*(?::[-A-Za-z0-9_.]+)?\Z"
)


class Vllm(HttpServer):
    """A vLLM server for one language model, with a disk for downloads and compiled kernels.

    Emits a Deployment, a Service and a PersistentVolumeClaim. A single replica uses the strategy ``Recreate``. Several
    replicas must share one disk, which you set with ``volumes={"/data": ...}``.

    The pods run as the user ``vllm`` of the image (user ID 2000), and cannot write to their root file system. ``HOME``
    is on the disk. The pods satisfy the Pod Security level ``restricted``. Other user IDs also work, because the recipe
    sets ``USER=vllm``: PyTorch needs a username.

    **The memory budget.** At its start, vLLM reserves the fraction ``--gpu-memory-utilization`` of *all* memory of the
    GPU. The default of vLLM is 0.92. vLLM exits if less memory is free. The recipe computes the fraction from
    ``gpus=GpuRequest(vram=...)`` and rounds it down to hundredths. For example, ``vram="8Gi"`` (8192 MiB) on an RTX
    5070 Ti (16303 MiB) is 0.5025, so the recipe sets 0.50. For this, the recipe must know the memory of the GPU, from
    ``GpuRequest(products=...)`` or ``gpu_memory``.

    On a shared GPU, set ``vram`` or ``gpu_memory_utilization``, because the default leaves no memory to other pods. A
    GPU counts as shared if ``profile.sharing`` shares it. It also counts as shared if the ``GpuRequest`` has a
    ``resource`` that ends in ``.shared``, or a ``resource_claim``. If two servers share a GPU, start the second one
    when the first one is ready. If they start together, both count the same memory as free.

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
        """Create the objects of the server.

        Args:
            scope: Chart, or a construct in a chart.
            id: ID of the construct. It is also the name of the objects, unless you set ``name``.
            model: Hugging Face repository (``Qwen/Qwen3-8B``), or path in the container.
            served_model_name: Name by which clients request the model. None: the value of ``model``.
            max_model_len: Context length in tokens. None: the longest context of the model, which often does not fit in
                memory.
            gpu_memory_utilization: Fraction of the memory of each GPU that vLLM reserves, above 0 and at most 1. None:
                the fraction that results from ``vram``. Without ``vram``, 0.92, the default of vLLM.
            pipeline_parallel_size: Number of groups of GPUs between which vLLM divides the layers of the model. Each
                group has ``gpus / pipeline_parallel_size`` GPUs, the value of ``--tensor-parallel-size``. The number of
                attention heads of the model must be divisible by the number of GPUs in a group. For example, with 3
                GPUs, set 3, so that each group has one GPU.
            hf_token: Hugging Face token for models that need a login: ``EnvValue.secret("hugging-face", key="token")``.
            args: Command-line flags of ``vllm serve`` to add.
            storage: Size of the disk for models and compiled kernels, as a quantity.
            storage_class_name: Name of the StorageClass of the disk. None: the default of the cluster.
            shared_memory: Size of ``/dev/shm``, as a quantity. None: 2Gi for several GPUs, whose processes communicate
                through ``/dev/shm``. For one GPU, 64 MiB, the default of the container runtime. Do not set it with MPS,
                which provides its own ``/dev/shm``.
            startup_seconds: Time that the server may need to start, in seconds. The first start downloads the model.
            replicas: Number of pods, each with its own GPUs.
            gpu_memory: Memory of one whole GPU, as ``nvidia-smi`` shows it, such as ``16303Mi``. The recipe needs this
                value only for a memory budget (``vram``). None: the memory of the largest board in
                ``GpuRequest(products=...)``, if the library knows each of these boards.
            image: Official image of vLLM. Releases without the user ``vllm`` (before spring 2026) also work.
            run_as_user: User ID of the processes and group ID of the disk. It must not be 0.
            options: Options of ``GpuWorkload``. For this recipe:

                - ``gpus`` is the number of GPUs of each pod, or a ``GpuRequest``. vLLM needs compute capability 7.5 or
                  later. If the cluster has older boards and runs GPU Feature Discovery, use
                  ``GpuRequest(min_compute_capability="7.5")``.
                - ``env`` overrides ``USER`` and ``HF_TOKEN``. It must not contain ``HOME`` or ``HF_HOME``.
                - A volume at the path ``/data`` in ``volumes`` replaces the disk.
                - ``resources`` by default request 2 CPUs and 8Gi, with a memory limit of 32Gi.

        Raises:
            GpuConstructsError: If the model name is not valid, if a shared GPU has no budget, or if the recipe cannot
                compute the fraction for the budget. Also raised if ``args`` contains a flag that a keyword or the
                recipe sets, several replicas have no shared disk, or ``GpuWorkload`` rejects an option.
        """
        _check_model("model", model)
        fields.whole_number("run_as_user", run_as_user, minimum=1)
        refuse_flags(args, keyword_of=_KEYWORD_OF, fixed=_FIXED, underscores=True)
        refuse_variables(options, _RESERVED)
        _check_token(hf_token)
        run = Run.deployment(replicas=replicas)
        if replicas > 1 and _DATA not in (options.get("volumes") or {}):
            raise GpuConstructsError(
                f"replicas of {replicas} need a disk that several nodes can mount. Set volumes={{'{_DATA}': "
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
            "hf_token must be EnvValue.secret(<name>, key=<key>), because a manifest must not contain a token, got "
            f"{type(given).__name__}, not shown here"
        )


def _count(gpus: object) -> int:
    """Return the number of GPUs of a pod.

    Args:
        gpus: Value of the option ``gpus``: a number or a ``GpuRequest``. For an invalid value, the result is 1, and
            ``GpuWorkload`` later rejects the value.

    Raises:
        GpuConstructsError: The user requests several MIG devices for a pod.
    """
    if not isinstance(gpus, GpuRequest):
        return gpus if isinstance(gpus, int) else 1
    if gpus.mig_size is not None and gpus.count > 1:
        raise GpuConstructsError(
            f"request.count must be 1 for MIG devices, because a CUDA process sees only one, got {gpus.count}. Use "
            "a larger profile or more replicas"
        )
    return gpus.count


def utilization_of(given: float | None, budget: VramBudget | None, *, is_shared: bool) -> str | None:
    """Return the value of ``--gpu-memory-utilization`` as text. Return None if the default of vLLM applies.

    Args:
        given: Value of the keyword ``gpu_memory_utilization``.
        budget: Memory budget of the pod; None if the pod has no budget.
        is_shared: Whether several pods can use the same GPU.

    Raises:
        GpuConstructsError: The value is out of range, two options set it, or the memory of the GPU is unknown.
    """
    if given is not None:
        if budget is not None:
            raise GpuConstructsError(
                "gpu_memory_utilization and request.vram must not both have a value. Remove one of them"
            )
        refuse_if(not 0 < given <= 1, "gpu_memory_utilization", "be above 0 and at most 1", given)
        return f"{given:g}"
    if budget is None:
        if is_shared:
            raise GpuConstructsError(
                "request.vram must have a value for shared GPUs: by default, vLLM reserves 0.92 of the whole memory. "
                "Set gpus=GpuRequest(vram='8Gi', products=[...]). Without products, also set gpu_memory=... of Vllm. "
                "Or set only gpu_memory_utilization=..."
            )
        return None
    if budget.hundredths is None:
        raise GpuConstructsError(
            f"request.vram of {budget.vram} needs the memory size of the GPU. Set gpu_memory, such as '16303Mi' from "
            "nvidia-smi, or a known board in request.products"
        )
    if budget.hundredths < 1:
        raise GpuConstructsError(
            f"request.vram of {budget.vram} must be at least a hundredth of the GPU's {budget.total_mib}Mi"
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
    """Return the arguments of ``vllm serve`` for the keywords of the recipe.

    ``Vllm`` describes the arguments, except ``count`` (number of GPUs of each pod) and ``utilization`` (value of
    ``--gpu-memory-utilization``; None for the default of vLLM).

    Raises:
        GpuConstructsError: A number is not valid, or ``pipeline_parallel_size`` does not divide the number of GPUs.
    """
    fields.whole_number("pipeline_parallel_size", pipeline_parallel_size, minimum=1)
    if count % pipeline_parallel_size:
        raise GpuConstructsError(
            f"pipeline_parallel_size must divide the number of GPUs, {count}, got {pipeline_parallel_size}"
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
