"""Ollama: a server of language models, and the Job that pulls them."""

from __future__ import annotations

import json
import re
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
_RESERVED = dict.fromkeys(("HOME", "OLLAMA_HOST", "OLLAMA_MODELS"), "whose Service, Job and disk count on it")

# ollama/ollama@v0.32.15:types/model/name.go
_HOST = r"[A-Za-z0-9_][-A-Za-z0-9_.:]{0,349}"
_NAMESPACE = r"[A-Za-z0-9_][-A-Za-z0-9_]{0,79}"
_PART = r"[A-Za-z0-9_][-A-Za-z0-9_.]{0,79}"
_MODEL = re.compile(rf"(?:(?:{_HOST}/)?{_NAMESPACE}/)?{_PART}(?::{_PART})?\Z")
_SECONDS = re.compile(r"-?[0-9]{1,9}\Z")


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
"""Variable of each keyword, and what it holds."""

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
    """An Ollama server with a disk for its models.

    Emits a Deployment of one pod (``Recreate``), a Service, a PersistentVolumeClaim and, where ``models`` are named, a
    Job that has the server pull them. The pod runs as a user other than root on a read-only root, with ``HOME`` and the
    models on the disk, so a namespace of level ``restricted`` takes it.

    **The Job** runs in the same image without a GPU, on any node that ``tolerations`` and ``node_selector`` leave,
    waits until the server answers and runs ``ollama pull`` for one model after the other. The pod of a Job
    cannot be changed, so the Job's name ends in a checksum of all it says: another list of models is another Job, and
    applying the same list twice changes nothing.
    The old Job stays until it is pruned or deleted, and so does a model that was taken off the list.
    A restart of the server pulls nothing: the models are on the disk.

    **On a shared GPU** (``profile.sharing``, or a ``GpuRequest`` with ``vram``) Ollama still sizes itself by the whole
    board, so these are set unless given: ``OLLAMA_MAX_LOADED_MODELS=1`` (its own default is 3 for each GPU) and
    ``OLLAMA_CONTEXT_LENGTH=4096`` (its own is 4096, 32768 from 23 GiB, 262144 from 47 GiB). With ``vram`` and the
    board's memory, ``LLAMA_ARG_FIT_TARGET`` is what the budget leaves to others, in MiB: 16303 of an RTX 5070 Ti less
    6144 of ``vram="6Gi"`` is 10159. That much stays free when a model is loaded; layers that do not fit are computed by
    the CPU. It is a margin of what is free at that moment, so beside a neighbour that has loaded already Ollama takes
    less than its budget, by what the neighbour holds: leave ``vram`` out then, or give a smaller ``fit_target``.

    Attributes:
        models: Names of the models.
        pull_job: The Job that pulls the models; None without any.

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
        """Make the server.

        Args:
            scope: A chart, or a construct in one.
            id: Construct id, and the name unless ``name`` says otherwise.
            models: What to pull, as in ``ollama pull``: ``qwen3:8b``, or ``hf.co/<user>/<repository>:<quantization>``.
                Empty: nothing; clients may pull.
            context_length: Tokens of context where a request does not say; each costs memory, ``num_parallel`` times.
            keep_alive: How long a model stays loaded after its last request: ``10m``, seconds, or ``-1`` without end.
                None: Ollama's own, five minutes; then the memory is free again.
            max_loaded_models: Models in memory at once. None: 3 for each GPU; 1 on a shared one.
            num_parallel: Requests to one model at once. None: 1.
            max_queue: Requests that may wait. None: 512.
            kv_cache_type: How the context is kept: ``q8_0`` takes half of the memory of ``f16``, ``q4_0`` a quarter,
                and both need flash attention. None: ``f16``.
            flash_attention: Forces it on or off. None: where the board has it.
            load_timeout: How long loading may stall: ``10m`` or seconds; 0 is without end. None: five minutes; slow
                disks need more.
            fit_target: Memory of each GPU that stays free when a model is loaded, as a quantity. None: what the budget
                leaves, else llama.cpp's own.
            gpu_overhead: Memory of each GPU that is set aside, as a quantity. In 0.32.15 it only counts where the
                context length is chosen, not where a model is loaded: use ``fit_target``.
            origins: Web origins that may ask besides localhost.
            storage: Size of the disk for the models.
            storage_class_name: Kind of storage. None: the cluster's default.
            startup_seconds: How long the server may take to answer for the first time. Pulling and loading models is
                not part of it.
            gpu_memory: All memory of a GPU as ``nvidia-smi`` shows it, as a quantity, for the budget. None: that of
                ``request.products``, where they are known.
            image: A release of 0.32 or later, where models are fitted by ``LLAMA_ARG_FIT_TARGET``.
            run_as_user: User id, and group of the disk; not 0.
            options: ``gpus`` may be a ``GpuRequest``, whose ``vram`` is wired in as said above. ``name`` has at most 49
                characters beside ``models``. ``env`` wins over what sharing sets, and contradicts no keyword; ``HOME``,
                ``OLLAMA_HOST`` and ``OLLAMA_MODELS`` are the recipe's. A volume at ``/data`` replaces the disk.
                ``resources`` are requests of 1 CPU and 4Gi and a memory limit of 24Gi by default; layers that do not
                fit the GPU stay in memory, so let the limit be the largest model and 2Gi more. The Job gets
                ``image_pull_secrets``, ``labels``, ``node_selector`` and ``tolerations``, with those of the profile, as
                well.

        Raises:
            GpuConstructsError: A model that Ollama would not know by that name, a setting it would not read or that is
                given twice, or what ``GpuWorkload`` refuses.
        """
        _check_models(models, name_given(id, options))
        way_out = "Ollama needs no root; use GpuWorkload for an image that does"
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
            # An answer takes longer than the usual minute.
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
                f"{self.node.path}: request.vram of {budget.vram} is not kept by Ollama, since the memory of the GPU "
                "is not known; pass gpu_memory, e.g. '16303Mi' as nvidia-smi shows it, or fit_target"
            )
        self.models = tuple(models)
        self.pull_job: ApiObject | None = None
        if models:
            job = _pull_job(self.name, self.namespace, models, image=image, user=run_as_user, options=options)
            self.pull_job = Manifest(self, "pull", job)


def _variables(settings: Mapping[str, Any], options: WorkloadOptions, budget: VramBudget | None) -> dict[str, str]:
    """Return the variables of the server that keywords and sharing stand for.

    Raises:
        GpuConstructsError: A setting that Ollama would not read, or one that is given twice.
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
            raise GpuConstructsError(
                f"{setting} and env[{variable!r}] must not both be given; leave one of the two out"
            )
        made[variable] = _text(setting, holds, value)
    return made


def _text(setting: str, holds: str, value: Any) -> str:
    """Return the value of a variable, checked."""
    if holds == "count":
        fields.whole_number(setting, value, minimum=1, way_out="leave it out for Ollama's own default")
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
                    f"origins[{index}] must be one origin like 'https://*.example.com'; got {origin!r}"
                )
        return ",".join(value)
    return str(value)


def _check_models(models: Sequence[str], name: str) -> None:
    for index, model in enumerate(models):
        if not _MODEL.match(model):
            raise GpuConstructsError(
                f"models[{index}] must be a name as ollama pull takes it, like 'qwen3:8b' or "
                f"'hf.co/<user>/<repository>:<quantization>'; got {model!r}"
            )
    refuse_if(len(set(models)) < len(models), "models", "not repeat a name", list(models))
    if models and len(name) > 49:
        raise GpuConstructsError(
            f"name must have at most 49 characters beside models, whose Job bears it too; got {len(name)}"
        )


def _pull_job(
    name: str, namespace: str, models: Sequence[str], *, image: str, user: int, options: WorkloadOptions
) -> dict[str, Any]:
    """Return the Job that has a server pull models; its name ends in a checksum of the rest."""
    mounts = volume.Mounts()
    container = Container(
        name="pull",
        image=image,
        command=["sh", "-ec", _PULL, "pull"],
        args=models,
        # Without the variable an image with CUDA would be shown every GPU of the node.
        env={"HOME": "/tmp", "OLLAMA_HOST": f"http://{name}:{_PORT}", env.VISIBLE_DEVICES: "void"},
        volumes={"/tmp": volume.Volume.empty_dir(size_limit="100Mi")},
    ).to_manifest(mounts)
    labels = object_labels(selector_labels(name=name, instance=name, component="model-pull"))
    profile, selector = options.get("profile"), options.get("node_selector")
    tolerations = [*(profile.tolerations if profile else ()), *options.get("tolerations", ())]
    # The nodes that are selected may be those with GPUs.
    tolerations = [placement.GPU_TAINT, *tolerations] if selector else tolerations
    pod = {
        **pods.pod_spec([container], security_context={"runAsNonRoot": True, "runAsUser": user}),
        "imagePullSecrets": pods.pull_secrets(options.get("image_pull_secrets", ())),
        "restartPolicy": "Never",
        "volumes": mounts.sources,
        **({"nodeSelector": dict(selector)} if selector else {}),
        **({"tolerations": [one.to_manifest() for one in tolerations]} if tolerations else {}),
    }
    # Fields that came later must not change the name of a Job that is there.
    del pod["dnsPolicy"], pod["serviceAccountName"]
    # Nothing is held while it tries again: no GPU, and what was pulled so far stays with the server.
    metadata = metadata_of(name, namespace, labels, {"labels": options.get("labels")}, GpuRequest())
    spec = {"backoffLimit": 6, "template": {"metadata": {"labels": metadata["labels"]}, "spec": pod}}
    checksum = config_map.sha256(json.dumps(spec, sort_keys=True))[:8]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {**metadata, "name": f"{name}-pull-{checksum}"},
        "spec": spec,
    }
