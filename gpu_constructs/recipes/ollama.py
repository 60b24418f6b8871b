"""`Ollama`: a server for language models, with a Job that makes the server download models."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Unpack

from cdk8s import ApiObject
from constructs import Construct

from gpu_constructs.errors import GpuConstructsError, refuse_if, warn
from gpu_constructs.kube import config_map, durations, env, fields, placement, pods, volume
from gpu_constructs.kube.container import Container, Probe
from gpu_constructs.kube.labels import object_labels, selector_labels
from gpu_constructs.kube.resources import Resources
from gpu_constructs.recipes.http_server import (
    HttpServer,
    VramBudget,
    is_shared,
    refuse_variables,
    startup_probe,
    vram_budget,
    with_defaults,
)
from gpu_constructs.tree.construct import checked
from gpu_constructs.tree.manifest import Manifest
from gpu_constructs.workload.gpu_request import GpuRequest
from gpu_constructs.workload.options import WorkloadOptions, metadata_of, name_given

IMAGE = "docker.io/ollama/ollama:0.32.15"

_PORT = 11434
_DATA = "/data"
_RESOURCES: Resources = {"requests": {"cpu": "1", "memory": "4Gi"}, "limits": {"memory": "24Gi"}}
_RESERVED = dict.fromkeys(("HOME", "OLLAMA_HOST", "OLLAMA_MODELS"), "its Service, Job and disk depend on the value")

# ollama/ollama@v0.32.15:types/model/name.go
_HOST = r"[A-Za-z0-9_][-A-Za-z0-9_.:]{0,349}"
_NAMESPACE = r"[A-Za-z0-9_][-A-Za-z0-9_]{0,79}"
_PART = r"[A-Za-z0-9_][-A-Za-z0-9_.]{0,79}"
_MODEL = fields.regex(rf"(?:(?:{_HOST}/)?{_NAMESPACE}/)?{_PART}(?::{_PART})?\Z")
_SECONDS = fields.regex(r"-?[0-9]{1,9}\Z")


_VARIABLES = {
    "context_length": ("OLLAMA_CONTEXT_LENGTH", "count"),
    "flash_attention": ("OLLAMA_FLASH_ATTENTION", "switch"),
    "fit_target": ("LLAMA_ARG_FIT_TARGET", "MiB"),
    "gpu_overhead": ("OLLAMA_GPU_OVERHEAD", "bytes"),
    "keep_alive": ("OLLAMA_KEEP_ALIVE", "duration"),
    "kv_cache_type": ("OLLAMA_KV_CACHE_TYPE", "word"),
    "load_timeout": ("OLLAMA_LOAD_TIMEOUT", "duration"),
    "max_loaded_models": ("OLLAMA_MAX_LOADED_MODELS", "count"),
    "max_queue": ("OLLAMA_MAX_QUEUE", "count"),
    "num_parallel": ("OLLAMA_NUM_PARALLEL", "count"),
    "origins": ("OLLAMA_ORIGINS", "origins"),
}
"""Environment variable that a keyword of ``Ollama`` sets, and the kind of the value, by name of the keyword."""

_UNITS = {"MiB": 2**20, "bytes": 1}

_PULL = """until ollama list > /dev/null 2>&1; do
  echo "waiting for $OLLAMA_HOST"
  sleep 5
done
for model in "$@"; do
  echo "pulling $model"
  ollama pull "$model"
done
"""


class Ollama(HttpServer):
    """An Ollama server for language models, with a disk for the models.

    Emits a Deployment of one pod with the strategy ``Recreate``, a Service and a PersistentVolumeClaim. If ``models``
    is not empty, the construct also emits a Job that makes the server pull (download) the models. The container runs as
    a non-root user, and it cannot write to its root file system. ``HOME`` and the models are on the disk. The pods
    satisfy the Pod Security level ``restricted``.

    **The Job** uses the same image and no GPU. It can run on any node that ``tolerations`` and ``node_selector`` allow.
    It waits until the server is ready, and then runs ``ollama pull`` for each model. The pod template of a Job is
    immutable, so the name of the Job ends in a checksum of its spec. If you change the list of models, the construct
    emits a Job with another name. The old Job stays until you prune or delete it. A model that you remove from the list
    stays on the disk. A restart of the server pulls nothing, because the models are on the disk.

    **On a shared GPU**, Ollama would use the memory of the whole board. A GPU counts as shared if ``profile.sharing``
    shares it. It also counts as shared if the ``GpuRequest`` has ``vram``, a ``resource_claim``, or a ``resource`` that
    ends in ``.shared``. The recipe then sets these variables, unless you set them:

    - ``OLLAMA_MAX_LOADED_MODELS=1``. The default of Ollama is 3 for each GPU.
    - ``OLLAMA_CONTEXT_LENGTH=4096``. The default of Ollama depends on the memory of the GPU: 4096 tokens, 32768 from
      23 GiB on, and 262144 from 47 GiB on.
    - ``LLAMA_ARG_FIT_TARGET``, if the library knows the memory of the board: the memory of the board that exceeds the
      budget, in MiB. An RTX 5070 Ti has 16303 MiB. With ``vram="6Gi"`` (6144 MiB), the value is 10159.

    When Ollama loads a model, it leaves at least ``LLAMA_ARG_FIT_TARGET`` MiB of the GPU free. The CPU computes the
    layers of the model that do not fit. If another pod already uses memory of the board, Ollama can therefore use less
    than its budget. In that case, omit ``vram`` or set a smaller ``fit_target``.

    Attributes:
        models: Names of the models.
        pull_job: Job that makes the server pull the models. None if ``models`` is empty.

    Source:
        ollama/ollama@v0.32.15:envconfig/config.go, server/routes.go, llm/llama_server.go, Dockerfile
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        models: Sequence[str] = (),
        context_length: int | None = None,
        keep_alive: str | None = None,
        max_loaded_models: int | None = None,
        num_parallel: int | None = None,
        max_queue: int | None = None,
        kv_cache_type: Literal["f16", "q8_0", "q4_0"] | None = None,
        flash_attention: bool | None = None,
        load_timeout: str | None = None,
        fit_target: str | None = None,
        gpu_overhead: str | None = None,
        origins: Sequence[str] = (),
        storage: str = "100Gi",
        storage_class_name: str | None = None,
        startup_seconds: int = 600,
        gpu_memory: str | None = None,
        image: str = IMAGE,
        run_as_user: int = 1000,
        **options: Unpack[WorkloadOptions],
    ) -> None:
        """Create the objects of the server.

        Args:
            scope: Chart, or a construct in a chart.
            id: ID of the construct. It is also the name of the objects, unless you set ``name``.
            models: Names of models that the Job makes the server pull. Write them as for ``ollama pull``: ``qwen3:8b``,
                or ``hf.co/<user>/<repository>:<quantization>``. If empty, there is no Job, but clients can still pull
                models.
            context_length: Number of tokens in the context of a request that sets no length. Each token uses memory,
                for each of the ``num_parallel`` requests. None: the default of Ollama.
            keep_alive: Time for which a model stays in memory after its last request, such as ``10m``, or seconds as
                text, such as ``600``. A negative number: no limit. None: five minutes, the default of Ollama.
            max_loaded_models: Largest number of models in memory. None: 3 for each GPU, or 1 on a shared GPU.
            num_parallel: Number of requests that one model processes in parallel. None: 1, the default of Ollama.
            max_queue: Largest number of requests in the queue. None: 512, the default of Ollama.
            kv_cache_type: Format of the key-value cache. Compared with ``f16``, ``q8_0`` uses half of the memory, and
                ``q4_0`` a quarter. Both need flash attention. None: ``f16``.
            flash_attention: Whether Ollama uses flash attention. None: only if the board supports it.
            load_timeout: Time without progress after which Ollama cancels the load of a model, such as ``10m``, or
                seconds as text, such as ``600``. ``0``: no limit. None: five minutes. Slow disks need more.
            fit_target: Memory that Ollama leaves free on each GPU when it loads a model, as a quantity. None: the
                memory of the board minus the budget (``vram`` of ``gpus``). Without a budget, or if the memory of the
                board is unknown, the default of llama.cpp.
            gpu_overhead: Memory that Ollama reserves on each GPU, as a quantity. Release 0.32.15 uses it only to choose
                the context length, and not when it loads a model. To leave memory free, use ``fit_target``.
            origins: Web origins (such as ``https://chat.example.com``) that can send requests, besides localhost.
            storage: Size of the disk for the models, as a quantity.
            storage_class_name: Name of the StorageClass of the disk. None: the default of the cluster.
            startup_seconds: Time that the server may need to start, in seconds. The server starts before it pulls or
                loads models.
            gpu_memory: Memory of one whole GPU, as ``nvidia-smi`` shows it, such as ``16303Mi``. The recipe needs this
                value only for a memory budget (``vram``). None: the memory of the largest board in
                ``GpuRequest(products=...)``, if the library knows each of these boards.
            image: Image of Ollama, release 0.32 or later. Earlier releases do not read ``LLAMA_ARG_FIT_TARGET``.
            run_as_user: User ID of the processes and group ID of the disk. It must not be 0.
            options: Options of ``GpuWorkload``. For this recipe:

                - ``gpus`` can be a ``GpuRequest``, whose ``vram`` is the memory budget.
                - ``name`` has at most 49 characters if ``models`` is not empty.
                - ``env`` overrides the variables that the recipe sets for shared GPUs. It must not contain ``HOME``,
                  ``OLLAMA_HOST``, ``OLLAMA_MODELS``, or a variable that a keyword sets.
                - A volume at the path ``/data`` in ``volumes`` replaces the disk.
                - ``resources`` by default request 1 CPU and 4Gi, with a memory limit of 24Gi. Layers that do not fit on
                  the GPU stay in main memory, so set the limit to the size of the largest model plus 2Gi.
                - ``image_pull_secrets``, ``labels``, ``node_selector``, ``tolerations`` and the tolerations of
                  ``profile`` also apply to the Job.

        Raises:
            GpuConstructsError: If Ollama would not accept a model name or a setting, if two options set the same
                variable, or if ``GpuWorkload`` rejects an option.
        """
        _check_models(models, name_given(id, options))
        way_out = "Ollama needs no root. Use GpuWorkload for an image that needs it"
        fields.whole_number("run_as_user", run_as_user, minimum=1, way_out=way_out)
        settings = {
            "context_length": context_length,
            "flash_attention": flash_attention,
            "fit_target": fit_target,
            "gpu_overhead": gpu_overhead,
            "keep_alive": keep_alive,
            "kv_cache_type": kv_cache_type,
            "load_timeout": load_timeout,
            "max_loaded_models": max_loaded_models,
            "max_queue": max_queue,
            "num_parallel": num_parallel,
            "origins": origins or None,
        }
        budget = vram_budget(options.get("gpus"), gpu_memory)
        super().__init__(
            scope,
            id,
            image=image,
            ports={"http": _PORT},
            startup_probe=startup_probe("/", startup_seconds),
            readiness_probe=Probe.http_get("/", port="http"),
            liveness_probe=Probe.http_get("/", port="http", failure_threshold=6),
            run_as_user=run_as_user,
            fs_group=run_as_user,
            read_only_root_filesystem=True,
            # An answer can take longer than the 60 seconds of GpuWorkload.
            termination_grace_period_seconds=120,
            **with_defaults(
                options,
                env={"HOME": _DATA, "OLLAMA_MODELS": f"{_DATA}/models", **_variables(settings, options, budget)},
                volumes={
                    _DATA: volume.VolumeClaim(storage=storage, storage_class_name=storage_class_name),
                    "/tmp": volume.Volume.empty_dir(size_limit="10Gi"),
                },
                resources=_RESOURCES,
            ),
        )
        if budget is not None and budget.total_mib is None and fit_target is None:
            warn(
                f"{self.node.path}: request.vram of {budget.vram} has no effect on Ollama, because the library does "
                "not know the memory of the GPU. Set gpu_memory, such as '16303Mi' from nvidia-smi, or fit_target"
            )
        self.models = tuple(models)
        self.pull_job: ApiObject | None = None
        if models:
            job = _pull_job(self.name, self.namespace, models, image=image, user=run_as_user, options=options)
            self.pull_job = Manifest(self, "pull", job)


def _variables(settings: Mapping[str, Any], options: WorkloadOptions, budget: VramBudget | None) -> dict[str, str]:
    """Return the environment variables of the server for the keywords of the recipe, and for a shared GPU.

    Args:
        settings: Values of the keywords by name. None for a keyword that the user does not set.
        options: Options of ``GpuWorkload``.
        budget: Memory budget of the pod; None if the pod has no budget.

    Raises:
        GpuConstructsError: Ollama would ignore the value of a setting, or both a keyword and ``env`` set a variable.
    """
    refuse_variables(options, _RESERVED)
    made: dict[str, str] = {}
    if budget is not None or is_shared(options.get("profile"), options.get("gpus")):
        made = {"OLLAMA_MAX_LOADED_MODELS": "1", "OLLAMA_CONTEXT_LENGTH": "4096"}
    if budget is not None and budget.rest_mib is not None:
        made["LLAMA_ARG_FIT_TARGET"] = str(budget.rest_mib)
    for setting, value in settings.items():
        if value is None:
            continue
        variable, holds = _VARIABLES[setting]
        if variable in (options.get("env") or {}):
            raise GpuConstructsError(f"{setting} and env[{variable!r}] must not both have a value. Remove one of them")
        made[variable] = _text(setting, holds, value)
    return made


def _text(setting: str, holds: str, value: Any) -> str:
    """Return the value of a keyword as text for its environment variable. Raise an error if the value is invalid.

    Args:
        setting: Keyword of ``Ollama``.
        holds: Kind of the value: ``count``, ``switch``, ``duration``, ``word`` or ``origins``. For a quantity, the unit
            of the result: ``MiB`` or ``bytes``.
        value: Value of the keyword.
    """
    if holds == "count":
        fields.whole_number(setting, value, minimum=1, way_out="Remove it to use the default of Ollama")
    elif holds == "duration" and not _SECONDS.match(value):
        durations.from_go_duration(setting, value)
    elif holds in _UNITS:
        fields.size(setting, value)
        return str(int(fields.amount(value) // _UNITS[holds]))
    elif holds == "switch":
        return "1" if value else "0"
    elif holds == "origins":
        for index, origin in enumerate(value):
            if not origin or "," in origin or not origin.isprintable() or " " in origin:
                raise GpuConstructsError(
                    f"origins[{index}] must be one origin like 'https://*.example.com', got {origin!r}"
                )
        return ",".join(value)
    return str(value)


def _check_models(models: Sequence[str], name: str) -> None:
    for index, model in enumerate(models):
        if not _MODEL.match(model):
            raise GpuConstructsError(
                f"models[{index}] must be a name for 'ollama pull', such as 'qwen3:8b' or "
                f"'hf.co/<user>/<repository>:<quantization>', got {model!r}"
            )
    refuse_if(len(set(models)) < len(models), "models", "not repeat a name", list(models))
    if models and len(name) > 49:
        raise GpuConstructsError(
            "name must have at most 49 characters with models, because it is part of the name of the Job that pulls "
            f"the models, got {len(name)}"
        )


def _pull_job(
    name: str, namespace: str, models: Sequence[str], *, image: str, user: int, options: WorkloadOptions
) -> dict[str, Any]:
    """Return the Job that makes the Ollama server pull models. The name of the Job ends in a checksum of its spec.

    Args:
        name: Name of the Service of the server.
        namespace: Namespace of the Job and the Service.
        models: Names of the models.
        image: Image of Ollama.
        user: User ID of the process.
        options: Options of ``GpuWorkload``, of which some also apply to the Job, such as ``tolerations``.
    """
    mounts = volume.Mounts()
    container = Container(
        name="pull",
        image=image,
        command=["sh", "-ec", _PULL, "pull"],
        args=models,
        # If this variable is missing, the NVIDIA runtime gives an image with CUDA every GPU of the node.
        env={"HOME": "/tmp", "OLLAMA_HOST": f"http://{name}:{_PORT}", env.VISIBLE_DEVICES: "void"},
        volumes={"/tmp": volume.Volume.empty_dir(size_limit="100Mi")},
    ).to_manifest(mounts)
    labels = object_labels(selector_labels(name=name, instance=name, component="model-pull"))
    profile, selector = options.get("profile"), options.get("node_selector")
    tolerations = [*(profile.tolerations if profile else ()), *options.get("tolerations", ())]
    # The node selector of the user can select nodes with GPUs, so the pod tolerates their taint.
    tolerations = [placement.GPU_TAINT, *tolerations] if selector else tolerations
    pod = {
        **pods.pod_spec([container], security_context={"runAsNonRoot": True, "runAsUser": user}),
        "imagePullSecrets": pods.pull_secrets(options.get("image_pull_secrets", ())),
        "restartPolicy": "Never",
        "volumes": mounts.sources,
        **({"nodeSelector": dict(selector)} if selector else {}),
        **({"tolerations": [one.to_manifest() for one in tolerations]} if tolerations else {}),
    }
    # Earlier releases of this library computed the checksum without these fields. An existing Job must keep its name.
    del pod["dnsPolicy"], pod["serviceAccountName"]
    # Retries of the Job need no GPU, and the server keeps the layers that it already pulled.
    metadata = metadata_of(name, namespace, labels, {"labels": options.get("labels")}, GpuRequest())
    spec = {"backoffLimit": 6, "template": {"metadata": {"labels": metadata["labels"]}, "spec": pod}}
    checksum = config_map.sha256(json.dumps(spec, sort_keys=True))[:8]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {**metadata, "name": f"{name}-pull-{checksum}"},
        "spec": spec,
    }
